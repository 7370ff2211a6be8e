// Conversion of structs of results to Python: a dict of their fields, by the names in `fields(field)`. Arrays are row-major.
#pragma once

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "fields.hpp"

namespace sarrus::bindings {

template <class X> py::object as_python(X& x);

template <class X> py::object as_python(std::optional<X>& x) { return x ? as_python(*x) : py::none(); }
inline py::object as_python(std::vector<std::string>& names) { return py::tuple(py::cast(names)); }
template <class X> py::object as_python(std::vector<std::pair<std::string, X>>& named) {
  py::dict all;
  for (auto& [name, value] : named) all[py::str(name)] = as_python(value);
  return all;
}

namespace detail {
/// True for types with rows() and cols(): Eigen's matrices and vectors.
template <class X, class = void> struct IsArray : std::false_type {};
template <class X> struct IsArray<X, std::void_t<decltype(std::declval<X&>().rows())>> : std::true_type {};
}  // namespace detail

template <class X> py::object as_python(X& x) {
  if constexpr (HasFields<X>::value) {
    py::dict all;
    x.fields([&](const char* key, auto& member) { all[key] = as_python(member); });
    return all;
  } else if constexpr (detail::IsArray<X>::value) {
    const Py_ssize_t dims[2] = {x.rows(), x.cols()};
    double* data;
    py::object made = py::reinterpret_steal<py::object>(new_array(X::ColsAtCompileTime == 1 ? 1 : 2, dims, &data));
    for (Py_ssize_t i = 0; i < dims[0]; ++i)
      for (Py_ssize_t j = 0; j < dims[1]; ++j) *data++ = x(i, j);
    return made;
  } else {
    return py::cast(x);
  }
}

}  // namespace sarrus::bindings
