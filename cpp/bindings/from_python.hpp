// Python functions and classes that the package registers when it is imported. The core calls Python only through these.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

#include "../model/text.hpp"

namespace sarrus::bindings {

namespace py = pybind11;

struct FromPython {
  PyObject *ModelError = PyExc_ValueError, *ShapeError = PyExc_ValueError, *StateError = PyExc_ValueError,
           *AssemblyError = PyExc_ValueError, *PathTrackingError = PyExc_ValueError, *NotRealizableError = PyExc_ValueError;
  PyObject* NameNotFoundError = PyExc_KeyError;
  PyObject *Transform = nullptr, *Inertia = nullptr, *JointType = nullptr, *Law = nullptr;  // classes
  PyObject* real_numbers = nullptr;  // (value): returns a float64 array, or raises TypeError or ValueError
  PyObject* explain = nullptr;  // (mechanism, operation, status, arguments, result): raises the error of one state
  PyObject* pfaffian_values = nullptr;  // (mechanism, q, v or None, rates): returns rows that depend on q, or their rates
};
inline FromPython& from_python() {
  static FromPython handed;
  return handed;
}

inline void hand_over(const py::KWArgs<py::object>& all) {
  FromPython& to = from_python();
  const struct {
    const char* name;
    PyObject*& slot;
  } table[] = {{"ModelError", to.ModelError},
               {"ShapeError", to.ShapeError},
               {"StateError", to.StateError},
               {"NameNotFoundError", to.NameNotFoundError},
               {"AssemblyError", to.AssemblyError},
               {"PathTrackingError", to.PathTrackingError},
               {"NotRealizableError", to.NotRealizableError},
               {"explain", to.explain},
               {"pfaffian_values", to.pfaffian_values},
               {"Transform", to.Transform},
               {"Inertia", to.Inertia},
               {"JointType", to.JointType},
               {"Law", to.Law},
               {"real_numbers", to.real_numbers}};
  for (const auto& [name, object] : all) {
    PyObject** slot = nullptr;
    for (const auto& row : table)
      if (name.cast<std::string>() == row.name) slot = &row.slot;
    if (!slot) throw py::type_error("unknown object '" + name.cast<std::string>() + "' for the core");
    *slot = py::handle(object).inc_ref().ptr();  // the reference is held until the interpreter ends
  }
}

/// Convert a message to a str. Bytes that are not UTF-8, such as those of lone surrogates in names, are replaced by Python's escapes.
inline py::object message_text(const std::string& message) {
  return py::reinterpret_steal<py::object>(
      PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()), "backslashreplace"));
}
/// Set the Python exception.
inline void set_error(PyObject* error, const std::string& message) { PyErr_SetObject(error, message_text(message).ptr()); }

[[noreturn]] inline void fail(PyObject* error, const std::string& message) {
  set_error(error, message);
  throw py::error_already_set();
}
[[noreturn]] inline void no_such_name(const std::string& kind, const std::string& name, std::vector<std::string> names) {
  fail(from_python().NameNotFoundError, unknown_name(kind, name, std::move(names)));
}
[[noreturn]] inline void shape_error(const std::string& message) { fail(from_python().ShapeError, message); }
[[noreturn]] inline void state_error(const std::string& message) { fail(from_python().StateError, message); }

/// Return the result of a function of C's interface, or null with Python's error for its C++ exception.
template <class F> PyObject* with_python_errors(const F& compute) {
  try {
    return compute();
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const py::builtin_exception& e) {
    e.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    set_error(PyExc_RuntimeError, e.what());
  }
  return nullptr;
}

}  // namespace sarrus::bindings
