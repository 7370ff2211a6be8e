// Protection against objects created by `cls.__new__(cls)` alone, without __init__: pybind11 would pass uninitialised memory to their methods.
#pragma once

#include <pybind11/pybind11.h>

namespace sarrus::bindings {
namespace py = pybind11;

/// Change the classes of a module such that using an object without a C++ value raises a TypeError. This is done in the class's `operator new`,
/// because pybind11 calls it to allocate a missing value, while constructors do not call it.
inline void refuse_unbuilt(const py::handle& module) {
  for (const auto& [name, value] : py::dict(module.attr("__dict__"))) {
    if (py::isinstance<py::module_>(value)) refuse_unbuilt(value);
    if (!PyType_Check(value.ptr())) continue;
    if (py::detail::type_info* const type = py::detail::get_type_info(reinterpret_cast<PyTypeObject*>(value.ptr())))
      type->operator_new = [](std::size_t) -> void* {
        throw py::type_error("this object was never initialised: __new__ created it without a call of __init__");
      };
  }
}

}  // namespace sarrus::bindings
