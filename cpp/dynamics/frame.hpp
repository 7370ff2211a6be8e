// A frame as an argument of functions.
#pragma once

#include "../mechanism/tree.hpp"

namespace sarrus {

enum class ExpressedIn : int { frame, world, world_aligned };

/// A frame with the pose X in a link; `body` is the body of the description to which it belongs.
struct Frame {
  int link, body;
  Transform<double> X;
  ExpressedIn expressed_in;
  int placed = -1;  // index among the frames of the mechanism; -1: not known
};

/// Return the number of scalars of cached kinematics: 24 per body and 12 per velocity. The struct Kinematics is a view of them.
inline int cached_kinematics_size(const Tree& t) { return 24 * t.links + 12 * t.nv; }

}  // namespace sarrus
