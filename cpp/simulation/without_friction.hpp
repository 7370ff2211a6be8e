// A mechanism without the dry friction of its joints, of which a simulation's steps decide: see friction.hpp.
#pragma once

#include <utility>
#include <vector>

#include "plan.hpp"

namespace sarrus {

class WithoutFriction {
 public:
  explicit WithoutFriction(const Tree& described)
      : tree_(described),
        passive_(described.passive, described.passive + described.nv),
        motions_(described.loop_motion, described.loop_motion + described.loop_motions) {
    tree_.has_joint_forces = false, tree_.ties_links = tree_.springs > 0;
    for (int k = 0; k < tree_.nv; ++k) take(passive_[k], k), tree_.has_joint_forces |= passive_[k].has_forces();
    for (LoopMotion& joint : motions_) {
      joint.has_forces = false;
      for (int k = 0; k < joint.nv; ++k)
        take(joint.terms[k], tree_.nv + joint.iv + k), joint.has_forces |= joint.terms[k].has_forces();
      tree_.ties_links |= joint.has_forces || joint.has_armature;
    }
    tree_.passive = passive_.data(), tree_.loop_motion = motions_.data();
  }
  WithoutFriction(const WithoutFriction&) = delete;
  WithoutFriction& operator=(const WithoutFriction&) = delete;

  const Tree& tree() const { return tree_; }
  const std::vector<JointFriction>& frictions() const { return frictions_; }

 private:
  void take(PassiveTerms& terms, int iv) {
    if (const double limit = std::exchange(terms.friction, 0.0); limit != 0.0) frictions_.push_back({iv, limit});
  }

  Tree tree_;
  std::vector<PassiveTerms> passive_;
  std::vector<LoopMotion> motions_;
  std::vector<JointFriction> frictions_;
};

}  // namespace sarrus
