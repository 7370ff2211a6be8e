// Turns of loop joints. The coordinates of a loop joint follow from the relative pose of two bodies, which does not determine the number of turns
// of an angle. A run counts them: its state contains, after the held values, these coordinates at the end of the last step, and
//
//   x = angle + 2 pi n,   the one nearest to x_last + (t - t_last) v
//
// is the value that acts, in stages within a step too, and that the end of the step stores; v, so that steps may be longer than half a turn.
// Springs of such angles are force elements in a run, because those of the mechanism act on the angle that is nearest to their rest.
#pragma once

#include <algorithm>
#include <vector>

#include "../joints/visit.hpp"
#include "plan.hpp"

namespace sarrus {

/// Return the angles of loop joints whose turns a pose does not determine.
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
