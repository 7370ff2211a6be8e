// Pairs of a description's shapes that may touch.
#pragma once

#include <vector>

#include "description.hpp"

namespace sarrus::model {

/// Two shapes that may touch, by their indices, and the coefficients of the pair. `setting`: index of the pair's contact setting; -1: none.
struct TouchingPair {
  int first, second;
  double friction, restitution, torsional_friction, rolling_friction;
  int setting;
};

/// Return the pairs of shapes that may touch: pairs with a setting, and by default shapes of bodies that no joint connects.
///
/// Bodies that are welded to each other count as one body. A joint to the ground does not exclude contact with the ground, unless it is a weld. A mesh
/// touches only planes by default, because files often contain many meshes whose contacts are not needed.
std::vector<TouchingPair> touching_pairs(const Description& description);

}  // namespace sarrus::model
