#pragma once

#include <pybind11/pybind11.h>

#include "../position/positions.hpp"

namespace sarrus::bindings {

/// Return the C++ object that a Python object of the class Positions contains.
const Positions& positions_of(const pybind11::handle& object);

void bind_position(pybind11::module_& m);

}  // namespace sarrus::bindings
