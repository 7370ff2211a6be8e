// Calls for one state whose result is an object of several arrays, such as the derivative with respect to each input. The object and its arrays are
// made in C++, because Python takes longer for this than a kernel takes for the dynamics of an arm.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>
#include <vector>

namespace sarrus::bindings {

namespace py = pybind11;

/// Name of a part of an operation's result and its axes, in the letters of kernels/operation_list.hpp; without letters, all axes of the result but the
/// first.
using NamedAxes = std::vector<std::pair<std::string, std::string>>;

/// Return a function (robot, inputs..., frame if the operation has one) for one state in plain arrays. Its result is an object of the class with these
/// parts as attributes, and with a copy of the inputs, one after the other, in the attribute `_state`, and the mechanism in `_robot`, if `keeps` is
/// true. The result is the array itself if the class is None. The function returns None, without any effect, for all other calls. The input
/// `displacements` is passed as three arrays; the input `tangent` is 1.
py::function call_with_parts(const std::string& operation, const py::object& type, const NamedAxes& parts, bool keeps);

}  // namespace sarrus::bindings
