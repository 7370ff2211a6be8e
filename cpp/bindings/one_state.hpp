// Functions of one state in plain arrays that combine the results of several kernels, or return an object of named arrays. They look at the arguments
// once and make the result in C++, because Python takes longer for this than the kernels take.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <string>

#include "arrays.hpp"

namespace sarrus::bindings {

namespace py = pybind11;

/// Return the function (robot, ...) of this name in the table of one_state.cpp, whose results are objects of a class. It returns None, without any
/// effect, for all calls except those of one state in plain arrays of a single mechanism; states without a result also return None, or raise their error.
py::function of_one_state(const std::string& name, const py::object& type);

inline py::object taken(PyObject* made) {
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

inline bool is_row(PyObject* x, int size) { return is_plain(x) && proxy(x)->nd == 1 && proxy(x)->dimensions[0] == size; }
inline double* numbers(PyObject* x) { return reinterpret_cast<double*>(proxy(x)->data); }

/// Return an array of some numbers of another array, whose memory it shares.
inline py::object part_of(const py::object& whole, double* data, int nd, const Py_ssize_t* dims) {
  auto& api = py::detail::npy_api::get();
  Py_INCREF(double_descr());
  constexpr int flags = plain | py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  py::object made = taken(api.PyArray_NewFromDescr_(api.PyArray_Type_, double_descr(), nd, dims, nullptr, data, flags, nullptr));
  api.PyArray_SetBaseObject_(made.ptr(), py::object(whole).release().ptr());
  return made;
}

/// Return an object of a class with these attributes. Its constructor is not called.
inline py::object object_of(PyTypeObject* type, const py::dict& fields) {
  py::object made = taken(type->tp_alloc(type, 0));
  if (PyObject_GenericSetDict(made.ptr(), fields.ptr(), nullptr) < 0) throw py::error_already_set();
  return made;
}

}  // namespace sarrus::bindings
