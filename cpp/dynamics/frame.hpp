// A frame of which something is asked.
#pragma once

#include "../mechanism/tree.hpp"

namespace sarrus {

enum class ExpressedIn : int { frame, world, world_aligned };

/// A frame that sits at X in a body; `part` is the described body that it belongs to.
struct Frame {
  int body, part;
  Transform<double> X;
  ExpressedIn expressed_in;
};

/// Scalars that cached kinematics holds: 24 a body, 12 a velocity (Kinematics lays itself over them).
inline int cached_kinematics_size(const Tree& t) { return 24 * t.bodies + 12 * t.nv; }

}  // namespace sarrus
