// Revolutions of loop joints. The coordinates of a loop joint follow from the relative pose of two bodies, which determines an angle only up to whole
// revolutions. A simulation counts the revolutions. For this purpose its state contains, after the sampled values, these coordinates at the end of
// the last step. The value
//
//   x = angle + 2 pi n,   the one nearest to x_last + (t - t_last) v
//
// is used in evaluations, also in stages within a step, and stored at the end of the step. The term with v allows steps longer than half a
// revolution. In a simulation, springs along such angles are force elements, because the springs in the mechanism use the angle nearest to their rest
// angle.
#pragma once

#include <algorithm>
#include <vector>

#include "../joints/visit.hpp"
#include "plan.hpp"

namespace sarrus {

/// Return the angles of loop joints whose number of revolutions the pose does not determine.
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
