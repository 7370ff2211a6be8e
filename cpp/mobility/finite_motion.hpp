// With how many degrees of freedom a mechanism can move away from a configuration, whatever its velocities there promise.
//
// Where all constraints are independent the velocities are the beginning of motions. Elsewhere the mechanism is moved: steps along random
// possible velocities, of two sizes, each followed by closing the loops again. If they come back it is stuck; if they stay near where they
// aimed, it has all these freedoms; else (a bifurcation) the freedoms are counted in the configurations reached, by what further small
// steps from there can reach. Where the steps contradict each other there is no answer.
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
  std::string because;
  std::vector<Neighbour> neighbours;
};

/// `motions` (nv, d) are the null space of R J C at q to this tolerance; without `compared` neighbours are found where the answer needs them.
FiniteMotion finite_motion(const ScaledLoops& loops, const double* q, const Matrix& motions, double tolerance, bool compared);

}  // namespace sarrus
