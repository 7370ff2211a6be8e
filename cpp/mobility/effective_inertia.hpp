// Effective inertia along velocities: the ratio of a force along them to the acceleration along them that it adds, at rest with closed loops.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/state_functions.hpp"
#include "linear_algebra.hpp"

namespace sarrus {

/// Return the effective inertia (groups, count) along the sum of the velocities of each group, at configurations q (count, nq). Velocities of loop joints
/// continue after the tree's. With variants, configuration i is that of variant i, or a single one applies to all. If loops lock a group, its inertia
/// with open loops is returned, and 1 if it moves no mass. `rows` evaluates the rows that depend on q.
RowMajor effective_inertia(const StateFunctions& functions, const std::vector<std::vector<int>>& groups, const double* q,
                           std::int64_t count, const RowsOfState& rows = {});

}  // namespace sarrus
