#pragma once

#include <pybind11/pybind11.h>

#include "../mobility/scaled_loops.hpp"

namespace sarrus::bindings {

/// Return a function that calls Python to evaluate the rows that depend on q.
RowsOfState rows_from_python(const pybind11::handle& self, const Tree& tree);

void bind_mobility(pybind11::module_& m);

}  // namespace sarrus::bindings
