// Checks of the arguments of class Positions, and small functions that its files share.
#pragma once

#include <string>
#include <vector>

#include "positions.hpp"

namespace sarrus::position {

/// Conversions of arguments to the types of the algorithms.
Vector vector(const std::vector<double>& x);
const double* pointer(const std::optional<double>& time);
RowMajor row(const Vector& x);
/// Return the frame of this name. Raises NameNotFoundError, with the names of all frames, if there is none.
Frame placed(const Mechanism& mechanism, const std::string& name);
/// Raise ModelError for a frame on the ground.
void check_movable(const Mechanism& mechanism, const std::string& name);
/// Return the number of values of a frame's target, 3 or 12; `numbers` contains `count` targets. Raises an error if the frame or the number is wrong.
int target_size(const Mechanism& mechanism, const std::string& frame, const std::vector<double>& numbers, int count);
/// Return the components that the targets (count rows) of a frame prescribe. Raises NoAnswer if a target is invalid, and std::invalid_argument if the
/// components differ.
unsigned common_components(const std::string& frame, const std::vector<double>& numbers, int count);
/// Return the coordinates (n or 1 rows) with unit quaternions. Raises NoAnswer if they are not finite, or if a quaternion is zero.
RowMajor checked_coordinates(const JointDescription& joint, const std::vector<double>& numbers, const char* quantity, int size,
                             int count);
/// Set the coordinates in q of those of the joints that are tree joints.
void set_coordinates(const Mechanism& mechanism, const std::vector<int>& joints, const std::vector<RowMajor>& coordinates,
                     RowMajor& q);
/// Raise std::invalid_argument if a tolerance of loops is too small to be reached.
void check_tolerance(double tolerance);
/// Raise std::invalid_argument if step lengths are so small that a path would never end.
void check_steps(const PathOptions& options);
/// Return the numbers with six digits, for messages.
std::string numbers_of(const Vector& x);
bool contains(const std::vector<int>& all, int x);

}  // namespace sarrus::position
