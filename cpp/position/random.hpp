// Random configurations, with open or closed loops.
#pragma once

#include <functional>

#include "positions.hpp"

namespace sarrus {

/// Draw configurations (n, nq) with open loops, within joint limits. Without limits, angles are in [-pi, pi], displacements between -`metre` and
/// `metre` [m], and rotations uniformly distributed.
RowMajor open_configurations(const PositionModel& model, int count, RandomNumbers& numbers, double metre = 1.0);

/// Close the loops from `drawn` configurations (n, nq), with all joints within their limits. Each is an initial guess; one from which the loops do
/// not close, or close in a singular position, is replaced by a new one of `draw`(count). AssemblyError: a configuration has none after 100 draws.
RowMajor closed_configurations(const Positions& positions, RowMajor drawn, const std::function<RowMajor(int count)>& draw);

}  // namespace sarrus
