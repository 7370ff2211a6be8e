// Turns of joints that close loops. Such a joint reads its coordinates off the pose of one body to the other, which does not tell how often an
// angle has turned. A run counts: behind what samplings hold, its state has these coordinates as they were at the end of the last step, and
//
//   x = angle + 2 pi n,   the one nearest to x_last + (t - t_last) v
//
// is what acts, stages within a step included, and what the end of the step hands on; v so that steps may be longer than half a turn. Springs of
// such angles are force elements in a run, as those of the mechanism act on the angle that is nearest to their rest.
#pragma once

#include <algorithm>
#include <vector>

#include "../joints/visit.hpp"
#include "plan.hpp"

namespace sarrus {

/// Angles of joints that close loops whose turns a pose does not tell.
inline std::vector<LoopAngle> loop_angles(const Tree& tree) {
  std::vector<LoopAngle> angles;
  for (int i = 0; i < tree.loop_motions; ++i) {
    const LoopMotion& of = tree.loop_motion[i];
    visit_every(of.joint, of.nv, [&](auto joint) {
      if (joint.pose_tells_turns(of.constants)) return;
      int listed = 0, k = 0;
      for (const Coordinate& c : joint.coordinates) {
        if (!joint.has(of.constants, listed++)) continue;
        if (c.is_angle()) angles.push_back({of.iq + k, of.iv + k});
        ++k;
      }
    });
  }
  return angles;
}

}  // namespace sarrus
