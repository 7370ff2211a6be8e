// Motions that motors drive, and motor efforts that cause no motion.
#pragma once

#include "scaled_loops.hpp"

namespace sarrus {

/// Return the index of a joint in the description; raises NameNotFoundError.
int joint_by_name(const Mechanism& mechanism, const std::string& name);
/// Return the joints that have a motor in the description.
std::vector<int> actuated_joints(const Mechanism& mechanism);
std::vector<int> joints_by_names(const Mechanism& mechanism, const std::vector<std::string>& names);

/// Return S^T (nu, nv) of these joints, which may be loop joints: the velocities of their motors are S^T v. Time functions that prescribe the motion
/// of these joints are treated as constant. Raises ModelError for such a joint if its columns depend on its position.
Matrix motor_rows(const StateFunctions& functions, const double* q, const std::vector<int>& joints);
/// Return the unit (nu) of each motor's velocity: 1 rad/s, or the mechanism's length per second for a sliding motor.
Vector motor_units(const Mechanism& mechanism, const std::vector<int>& joints);

/// Return an orthonormal basis (nu, k) of the internal efforts: efforts u with N^T S u = 0, in which redundant motors work against each other.
Matrix internal_efforts(const ScaledLoops& loops, const double* q, const std::vector<int>& joints);

}  // namespace sarrus
