// A frame as the input of a computation.
#pragma once

#include "../mechanism/tree.hpp"

namespace sarrus {

enum class ExpressedIn : int { frame, world, world_aligned };

/// A frame that sits at X in a link; `body` is the described one that it belongs to.
struct Frame {
  int link, body;
  Transform<double> X;
  ExpressedIn expressed_in;
  int placed = -1;  // which one of the mechanism's it is
};

/// Scalars that cached kinematics holds: 24 a body, 12 a velocity (Kinematics lays itself over them).
inline int cached_kinematics_size(const Tree& t) { return 24 * t.links + 12 * t.nv; }

}  // namespace sarrus
