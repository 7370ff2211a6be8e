// Number of degrees of freedom of finite motions from a configuration. It may be less than the number of independent velocities.
//
// If all constraints are independent, every possible velocity begins a motion. Otherwise steps of two lengths are taken along random
// possible velocities, and the loops are closed after each. If all steps return to the start, the mechanism is locked. If all end near
// their targets, it has all these freedoms. Otherwise (a bifurcation) the freedoms are counted in the configurations that are reached,
// by small steps from there. If the results contradict each other, there is no result.
#pragma once

#include "scaled_loops.hpp"

namespace sarrus {

/// A configuration nearby, and a basis (nv, degrees of freedom) of the scaled velocities with which it can really move.
struct Neighbour {
  Vector q;
  Matrix tangent;
};

struct FiniteMotion {
  std::optional<int> freedom;  // of the motions through q
  std::string reason;
  std::vector<Neighbour> neighbours;
};

/// `motions` (nv, d) span the null space of R J C at q to this tolerance.
/// Unless `compared`, neighbours are computed only if necessary.
FiniteMotion finite_motion(const ScaledLoops& loops, const double* q, const Matrix& motions, double tolerance, bool compared);

}  // namespace sarrus
