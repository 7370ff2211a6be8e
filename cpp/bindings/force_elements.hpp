// Force elements, from Python's descriptions.
#pragma once

#include <pybind11/pybind11.h>

#include "../reading/elements.hpp"

namespace sarrus::bindings {

/// Add force elements from dicts; each contains the name of its kind and the values of its fields.
void add_force_elements(const Mechanism& mechanism, const pybind11::list& described, ForceElementList& list);

/// Mechanism from Python, for reading named arguments. `positions` returns the Positions object of the core.
struct PythonModel {
  PythonModel(const pybind11::object& mechanism, const pybind11::object& positions);
  PythonModel(const PythonModel&) = delete;
  PythonModel& operator=(const PythonModel&) = delete;

 private:
  pybind11::object description_, positions_, kept_positions_;

 public:
  const ElementModel model;
};

/// Convert an argument of an element or a task. Its text in messages is created from the Python object, which must outlive the argument.
Argument to_argument(const pybind11::handle& object, const std::string& label, int depth = 0);

void bind_force_elements(pybind11::module_& m);

}  // namespace sarrus::bindings
