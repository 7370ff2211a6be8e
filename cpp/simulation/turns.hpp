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

/// A mechanism without the springs along these angles, and the springs.
class WithoutLoopSprings {
 public:
  explicit WithoutLoopSprings(const Tree& described)
      : tree_(described),
        angles_(loop_angles(described)),
        motions_(described.loop_motion, described.loop_motion + described.loop_motions) {
    for (LoopMotion& joint : motions_)
      for (int k = 0; k < joint.nv; ++k) take(joint, k);
    if (springs_.empty()) return;
    tree_.ties_links = tree_.springs > 0;
    for (LoopMotion& joint : motions_) {
      joint.has_forces =
          std::any_of(joint.terms, joint.terms + joint.nv, [](const PassiveTerms& terms) { return terms.has_forces(); });
      tree_.ties_links |= joint.has_forces || joint.has_armature;
    }
    tree_.loop_motion = motions_.data();
  }
  WithoutLoopSprings(const WithoutLoopSprings&) = delete;
  WithoutLoopSprings& operator=(const WithoutLoopSprings&) = delete;

  const Tree& tree() const { return tree_; }
  const std::vector<LoopAngle>& angles() const { return angles_; }
  const std::vector<LoopSpring>& springs() const { return springs_; }

 private:
  void take(LoopMotion& joint, int k) {
    PassiveTerms& terms = joint.terms[k];
    const auto acts_on = [&](const LoopAngle& angle) { return terms.iq >= 0 && angle.iq == joint.iq + terms.iq; };
    if (terms.stiffness == 0.0 || std::none_of(angles_.begin(), angles_.end(), acts_on)) return;
    LoopSpring spring;
    spring.joint = {tree_.nq + joint.iq + terms.iq, tree_.nv + joint.iv + k};
    spring.stiffness = terms.stiffness, spring.rest = terms.rest;
    springs_.push_back(spring);
    terms.stiffness = 0.0;
  }

  Tree tree_;
  std::vector<LoopAngle> angles_;
  std::vector<LoopMotion> motions_;
  std::vector<LoopSpring> springs_;
};

}  // namespace sarrus
