// Conversion of states from Python. A function of a state is a C function in the class (METH_FASTCALL): one state in float64 arrays
// costs 50 ns to get in, which no converter of pybind11's comes near. Everything else (lists, other dtypes, strides, broadcasting,
// batches, threads) goes through one general path.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include "../kernels/kernels.hpp"
#include "../mechanism/mechanism.hpp"

namespace sarrus::bindings {

namespace py = pybind11;

const KernelTable& kernels();
void use_kernels(const KernelTable*);

/// The method descriptor of an operation, with its text signature and docstring. `declaration` is the Python function in whose place it
/// stands: where keywords ask for more than the core answers, its body does.
py::object method(const py::handle& type, const std::string& name, const std::string& doc, const py::function& declaration);

/// The mechanism in an object of the class; TypeError where a subclass has not called __init__ of it, or where it is many.
const Mechanism& built(const py::handle& self);
const Mechanism& built_or_variants(const py::handle& self);

/// Seconds per call of the one-state kernel, called from C++ on each row in turn (for benchmarks: no Python in the loop); `check`: with the
/// look whether states are off the loops.
double time_one_state(const py::object& mechanism, const std::string& operation, const std::vector<py::array_t<double>>& inputs,
                      int repeats, bool check);

}  // namespace sarrus::bindings
