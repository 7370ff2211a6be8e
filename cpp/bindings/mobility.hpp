#pragma once

#include <pybind11/pybind11.h>

#include "../mobility/scaled_loops.hpp"

namespace sarrus::bindings {

void bind_mobility(pybind11::module_& m);

}  // namespace sarrus::bindings
