// Descriptions from Python (sarrus.description): dataclasses with the fields of model/description.hpp.
#pragma once

#include <pybind11/pybind11.h>

#include "../mechanism/mechanism.hpp"

namespace sarrus::bindings {

namespace py = pybind11;

/// Return the kernels' description; raise ModelError if a field has a value of the wrong type.
Description to_description(const py::handle& description);
void bind_model(py::module_& m);

}  // namespace sarrus::bindings
