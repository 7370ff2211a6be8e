// Conversion of document values (model/value.hpp) to and from Python's None, bool, int, float, str, list and dict. All elements of a description are
// converted through such values, so that their types need no bindings.
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "../mechanism/errors.hpp"
#include "../model/value.hpp"

namespace sarrus::bindings {

namespace py = pybind11;

/// Convert a text. Lone surrogates, which JSON may contain, are preserved.
inline py::object to_text(const std::string& text) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogatepass"));
}
inline std::string from_text(const py::handle& text) {
  const auto bytes = py::reinterpret_steal<py::object>(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
  if (!bytes) throw py::error_already_set();
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<std::size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

inline py::object to_python(const Value& value) {
  switch (value.sort()) {
    case Value::Sort::null: return py::none();
    case Value::Sort::truth: return py::bool_(value.number() != 0.0);
    case Value::Sort::integer: return py::reinterpret_steal<py::object>(PyLong_FromString(value.text().c_str(), nullptr, 10));
    case Value::Sort::number: return py::float_(value.number());
    case Value::Sort::text: return to_text(value.text());
    case Value::Sort::list: {
      py::list all;
      for (const Value& x : value.list()) all.append(to_python(x));
      return std::move(all);
    }
    case Value::Sort::object: {
      py::dict all;
      for (const auto& [key, x] : value.object()) all[to_text(key)] = to_python(x);
      return std::move(all);
    }
  }
  return py::none();
}

inline Value from_python_value(const py::handle& h) {
  if (h.is_none()) return {};
  if (PyBool_Check(h.ptr())) return h.ptr() == Py_True;
  if (PyFloat_Check(h.ptr())) return PyFloat_AS_DOUBLE(h.ptr());
  if (PyLong_Check(h.ptr())) return Value::integer(py::str(h).cast<std::string>(), PyLong_AsDouble(h.ptr()));
  if (PyUnicode_Check(h.ptr())) return from_text(h);
  if (PyDict_Check(h.ptr())) {
    Value::Object all;
    for (const auto& [key, x] : py::reinterpret_borrow<py::dict>(h)) all.emplace_back(from_text(key), from_python_value(x));
    return all;
  }
  if (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) {
    Value::List all;
    for (const py::handle x : py::reinterpret_borrow<py::sequence>(h)) all.push_back(from_python_value(x));
    return all;
  }
  throw py::type_error("a document cannot contain " + py::repr(h).cast<std::string>());
}

}  // namespace sarrus::bindings
