// Random configurations, with open or closed loops.
#pragma once

#include <functional>

#include "positions.hpp"

namespace sarrus {

/// Draw configurations (n, nq) with open loops, within joint limits. Without limits, angles are in [-pi, pi], displacements between -`metre` and
/// `metre` [m], and rotations uniformly distributed.
RowMajor open_configurations(const PositionModel& model, int count, RandomNumbers& numbers, double metre = 1.0);

/// Close the loops from the initial guesses `drawn` (n, nq), with all joints within their limits. A guess from which the loops do not close, or close
/// in a singular position, is replaced by a new one from `draw`(count). Raises AssemblyError if 100 draws yield no solution.
RowMajor closed_configurations(const Positions& positions, RowMajor drawn, const std::function<RowMajor(int count)>& draw);

}  // namespace sarrus
