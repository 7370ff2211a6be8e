// Descriptions from Python (sarrus.description): dataclasses with the fields of model/description.hpp.
#pragma once

#include <pybind11/pybind11.h>

#include <optional>

#include "../mechanism/mechanism.hpp"
#include "../model/description.hpp"
#include "../model/joint_type.hpp"
#include "../model/values.hpp"

namespace sarrus::bindings {

namespace py = pybind11;

/// Return the kernels' description; raise ModelError if a field has a value of the wrong type.
Description to_description(const py::handle& description);
/// Convert real numbers in rows; none if an object is something else.
std::optional<model::NumberArray> numbers_of(const py::handle& object);
/// Return the type of joint j of a description.
const model::JointType& joint_type_of(const py::handle& description, int j);
/// Return the joints of a description.
std::vector<model::Joint> to_joints(const py::handle& description);
/// Return the fields of a joint, for changing the JointSpec from which it was read: its type as (kind, fields), placements and hints.
py::dict changed_joint(const py::handle& spec, const model::Joint& joint);
void bind_model(py::module_& m);

}  // namespace sarrus::bindings
