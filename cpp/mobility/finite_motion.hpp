// Number of degrees of freedom with which a mechanism can move away from a configuration. It may be less than that of its velocities.
//
// If all constraints are independent the velocities are the beginning of motions. Otherwise the mechanism is moved: steps along random
// possible velocities, of two sizes, each followed by closing the loops again. If they come back it is locked. If they stay near their
// targets, it has all these freedoms. Otherwise (a bifurcation) the freedoms are counted in the configurations reached, by further small
// steps from there. If the steps contradict each other there is no result.
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

/// `motions` (nv, d) are the null space of R J C at q to this tolerance; without `compared`, neighbours are computed if
/// necessary.
FiniteMotion finite_motion(const ScaledLoops& loops, const double* q, const Matrix& motions, double tolerance, bool compared);

}  // namespace sarrus
