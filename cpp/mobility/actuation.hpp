// Motions that motors drive, and motor efforts that cause no motion.
#pragma once

#include "scaled_loops.hpp"

namespace sarrus {

/// Return the index of a joint in the description; raises NameNotFoundError.
int joint_by_name(const Mechanism& mechanism, const std::string& name);
/// Joints with a motor, by the description.
std::vector<int> actuated_joints(const Mechanism& mechanism);
std::vector<int> joints_by_names(const Mechanism& mechanism, const std::vector<std::string>& names);

/// Return S^T (nu, nv) of these joints, also of loop joints: the velocities of their
/// motors are S^T v. Functions of time that drive these joints are treated as constant.
/// Raises ModelError for a driven joint whose columns depend on its position.
Matrix motor_rows(const StateFunctions& functions, const double* q, const std::vector<int>& joints);
/// Return (nu) the velocity of each motor that is comparable to 1 rad/s: for a sliding motor, the mechanism's length per second.
Vector motor_units(const Mechanism& mechanism, const std::vector<int>& joints);

/// Orthonormal basis (nu, k) of the efforts u with N^T S u = 0, in which redundant motors work against each other.
Matrix internal_efforts(const ScaledLoops& loops, const double* q, const std::vector<int>& joints);

}  // namespace sarrus
