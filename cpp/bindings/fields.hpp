// Conversion of dicts to structs, by the names of the fields in `fields(field)`. A dict must have exactly these fields.
#pragma once

#include <pybind11/pybind11.h>

#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

namespace sarrus::bindings {

namespace py = pybind11;

struct AnyField {
  template <class X> void operator()(const char*, X&) const {}
};
template <class X, class = void> struct HasFields : std::false_type {};
template <class X> struct HasFields<X, std::void_t<decltype(std::declval<X&>().fields(AnyField()))>> : std::true_type {};

/// Call read(handle, member) for each field; error messages begin with `subject`.
template <class X, class Read> void read_fields(const std::string& subject, const py::dict& described, X& x, Read&& read) {
  std::string names;
  std::size_t count = 0;
  x.fields([&](const char* key, auto& member) {
    names += (names.empty() ? "" : ", ") + std::string(key);
    if (!described.contains(key)) throw std::invalid_argument(subject + " has no field '" + key + "' in its description");
    read(described[key], member), ++count;
  });
  if (count == described.size()) return;
  for (const auto& item : described) {
    const std::string key = py::str(item.first);
    bool is_field = false;
    x.fields([&](const char* name, auto&) { is_field = is_field || key == name; });
    if (!is_field) throw std::invalid_argument(subject + " has no field '" + key + "'; expected one of " + names);
  }
}

}  // namespace sarrus::bindings
