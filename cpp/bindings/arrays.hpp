// Conversion of NumPy arrays to rows that kernels read, and the errors for Python. pybind11's converters are not used, because they take longer than
// the kernels.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>

namespace sarrus::bindings {

namespace py = pybind11;

using Array = py::detail::PyArray_Proxy;
inline const Array* proxy(PyObject* o) { return py::detail::array_proxy(o); }

/// Return a str as UTF-8. Characters that UTF-8 cannot encode (lone surrogates) become Python's escapes.
inline std::string text(PyObject* str) {
  Py_ssize_t size = 0;
  if (const char* utf8 = PyUnicode_AsUTF8AndSize(str, &size)) return std::string(utf8, static_cast<std::size_t>(size));
  PyErr_Clear();
  return py::repr(str).cast<std::string>();
}

inline PyObject* double_descr() {
  static PyObject* descr = py::detail::npy_api::get().PyArray_DescrFromType_(py::detail::npy_api::NPY_DOUBLE_);
  return descr;
}
/// Return true for float64. The descriptor's fields are compared, not its address, because an unpickled array has its own descriptor.
inline bool is_double(const Array* a) {
  const auto* descr = py::detail::array_descriptor_proxy(a->descr);
  return a->descr == double_descr() || (descr->type_num == py::detail::npy_api::NPY_DOUBLE_ && descr->byteorder == '=');
}
constexpr int plain = py::detail::npy_api::NPY_ARRAY_C_CONTIGUOUS_ | py::detail::npy_api::NPY_ARRAY_ALIGNED_;

/// Return true for an array that a kernel reads directly: float64 in native order, aligned, C-contiguous.
inline bool is_plain(PyObject* o) {
  static PyTypeObject* ndarray = py::detail::npy_api::get().PyArray_Type_;
  if (Py_TYPE(o) != ndarray) return false;
  const Array* a = proxy(o);
  return is_double(a) && (a->flags & plain) == plain;
}

/// Raise a TypeError if entries of a masked array are masked.
inline void refuse_hidden(PyObject* o, const std::string& name) {
  if (!PyObject_HasAttrString(o, "mask") || !py::module_::import("numpy.ma").attr("is_masked")(py::handle(o)).cast<bool>())
    return;
  throw py::type_error(name + " is a masked array with masked entries: fill them with .filled(...)");
}

inline py::object as_plain(PyObject* o, const std::string& name) {
  if (is_plain(o)) return py::reinterpret_borrow<py::object>(o);
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o)) refuse_hidden(o, name);
  auto& api = py::detail::npy_api::get();
  Py_INCREF(double_descr());
  PyObject* made = api.PyArray_FromAny_(o, double_descr(), 0, 0, plain | py::detail::npy_api::NPY_ARRAY_ENSUREARRAY_, nullptr);
  if (!made) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) throw py::error_already_set();
    PyErr_Clear();
    PyErr_Format(PyExc_TypeError, "%s must hold real numbers in the range of float64; got %R", name.c_str(), o);
    throw py::error_already_set();
  }
  const py::object kept = py::reinterpret_steal<py::object>(made);
  if (!is_double(proxy(made))) return kept.attr("astype")("f8");  // convert other byte orders
  return kept;
}

inline std::string shape_text(const Py_ssize_t* dims, int n) {
  std::string s = "(";
  for (int i = 0; i < n; ++i) s += std::to_string(dims[i]) + (n == 1 || i + 1 < n ? "," : "") + (i + 1 < n ? " " : "");
  return s + ")";
}

inline PyObject* new_array(int nd, const Py_ssize_t* dims, double** data) {
  auto& api = py::detail::npy_api::get();
  Py_INCREF(double_descr());
  PyObject* made = api.PyArray_NewFromDescr_(api.PyArray_Type_, double_descr(), nd, dims, nullptr, nullptr, 0, nullptr);
  if (!made) throw py::error_already_set();
  *data = reinterpret_cast<double*>(proxy(made)->data);
  return made;
}

}  // namespace sarrus::bindings
