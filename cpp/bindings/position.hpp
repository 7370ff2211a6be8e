#pragma once

#include <pybind11/pybind11.h>

namespace sarrus::bindings {

void bind_position(pybind11::module_& m);

}  // namespace sarrus::bindings
