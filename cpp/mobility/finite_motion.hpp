// Number of degrees of freedom of finite motions from a configuration. It may be less than the number of independent velocities.
//
// If all constraints are independent, every possible velocity begins a motion. Otherwise steps of two lengths are taken along random possible
// velocities, and the loops are closed after each step. If all steps return to the initial configuration, the mechanism is locked. If all end near
// their targets, every possible velocity begins a motion. Otherwise (a bifurcation) the degrees of freedom are counted in the configurations that the
// steps reach, by small steps from there. If these numbers contradict each other, the result is undecided.
#pragma once

#include "scaled_loops.hpp"

namespace sarrus {

/// A nearby configuration, and a basis (nv, degrees of freedom) of the scaled velocities there that begin finite motions.
struct Neighbour {
  Vector q;
  Matrix tangent;
};

struct FiniteMotion {
  std::optional<int> freedom;  // number of degrees of freedom of the finite motions through q; no value: undecided
  std::string reason;
  std::vector<Neighbour> neighbours;
};

/// Count the degrees of freedom. `motions` (nv, d): a basis of the null space of R J C at q, to this tolerance. If `compared`, nearby configurations
/// are always computed; otherwise only if they are needed.
FiniteMotion finite_motion(const ScaledLoops& loops, const double* q, const Matrix& motions, double tolerance, bool compared);

}  // namespace sarrus
