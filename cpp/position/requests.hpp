// Requests of positions: checks of their arguments, and small functions that the files of class Positions share.
#pragma once

#include <string>
#include <vector>

#include "positions.hpp"

namespace sarrus::position {

/// Conversions.
Vector vector(const std::vector<double>& x);
const double* pointer(const std::optional<double>& time);
RowMajor row(const Vector& x);
/// Return a frame by its name; NameNotFoundError with the names if there is none.
Frame placed(const Mechanism& mechanism, const std::string& name);
/// Raise ModelError for a frame on the ground.
void check_movable(const Mechanism& mechanism, const std::string& name);
/// Coordinates (n or 1 rows) with unit quaternions; NoAnswer if they are not finite, or a quaternion is zero.
RowMajor checked_coordinates(const JointDescription& joint, const std::vector<double>& numbers, const char* quantity, int size,
                             int count);
/// Set the coordinates of the joints among these that are in the tree.
void set_coordinates(const Mechanism& mechanism, const std::vector<int>& joints, const std::vector<RowMajor>& coordinates,
                     RowMajor& q);
/// Raise std::invalid_argument for a tolerance of loops that no search reaches.
void check_tolerance(double tolerance);
/// Raise std::invalid_argument for steps with which a path would not end.
void check_steps(const PathOptions& options);
/// Return numbers with six digits, as messages show them.
std::string numbers_of(const Vector& x);
bool contains(const std::vector<int>& all, int x);

}  // namespace sarrus::position
