// Conversion of states from Python. Each function of a state is a C function of the Python class (METH_FASTCALL). For one state in float64 arrays its
// overhead is 50 ns, far below that of pybind11's converters. All other calls (lists, other dtypes, strides, broadcasting, batches, threads) use one
// general implementation.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "../kernels/kernels.hpp"
#include "../mechanism/mechanism.hpp"

namespace sarrus::bindings {

namespace py = pybind11;

const KernelTable& kernels();
void use_kernels(const KernelTable*);

/// Return the method descriptor of an operation, with its text signature and docstring. `declaration` is the Python function that it replaces. A call
/// with keywords that are unknown to the core runs the body of that function.
py::object method(const py::handle& type, const std::string& name, const std::string& doc, const py::function& declaration);

/// Return the index of an operation of kernels/operation_list.hpp. Raises ValueError for an unknown name.
int find_operation(const std::string& name);

/// Evaluate an operation for one state in plain arrays. Returns null, without any effect, for other calls, such as lists, batches and variants.
struct Arguments;
PyObject* one_state(PyObject* self, int operation, const Arguments& a);

/// Return the mechanism in a Python object. Raises TypeError for variants, and for a subclass that has not called __init__ of this class.
const Mechanism& built(const py::handle& self);
const Mechanism& built_or_variants(const py::handle& self);

/// Return the rows of mobility/joint_wrenches.hpp for motors in these joints. A state without a result has NaN; if it is the only state, its error is
/// raised.
py::tuple joint_wrenches(const py::object& mechanism, const py::object& q, const py::object& v, const py::object& a,
                         const py::object& multipliers, const py::object& forces, const py::object& time,
                         const py::object& wrenches, const std::vector<std::string>& joints, bool determinate);

/// Return seconds per call of the one-state kernel, called from C++ on one row after the other (for benchmarks, without Python in the loop). With
/// `check` the time includes the test for states off the loops.
double time_one_state(const py::object& mechanism, const std::string& operation, const std::vector<py::array_t<double>>& inputs,
                      int repeats, bool check);

}  // namespace sarrus::bindings
