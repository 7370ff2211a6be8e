// Effective inertia along velocities: the ratio of a force along them to the acceleration along them that it adds, at rest with closed loops.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/state_functions.hpp"
#include "linear_algebra.hpp"

namespace sarrus {

/// Return the effective inertia (groups, count) along the sum of the velocities of each group, at configurations q (count, nq). Indices of loop joint
/// velocities follow those of the tree. With variants, configuration i belongs to variant i, or all variants share a single one. If the loops lock a
/// group, its inertia without the loops is returned, or 1 if it moves no mass. `rows` evaluates the rows that depend on q.
RowMajor effective_inertia(const StateFunctions& functions, const std::vector<std::vector<int>>& groups, const double* q,
                           std::int64_t count, const RowsOfState& rows = {});

}  // namespace sarrus
