// The same mechanism on another spanning tree, such that a loop joint becomes a tree joint.
//
// The spanning tree is a choice. A configuration has coordinates in each tree; those of a joint follow from the poses of its two bodies. The
// result of a search from far away depends on the tree, so a search uses a tree that depends on its arguments only.
#pragma once

#include "closure.hpp"

namespace sarrus {

class OtherTree {
 public:
  /// The tree with these joints, by index. Bodies and joints are added in the order of their names. Raises ModelError if a kind of joint in
  /// the mechanism cannot close loops, or these joints do among themselves.
  OtherTree(const PositionModel& base, const std::vector<int>& joints);

  /// The mechanism on the other tree, and the index there of a joint of the base mechanism.
  const PositionModel& model() const { return *model_; }
  const Closures& closures() const { return *closures_; }
  int joint(int base_joint) const { return joint_[base_joint]; }
  /// True if both trees have the same joints.
  bool is_same() const { return is_same_; }

  /// Return configurations (n, nq) of the base mechanism in the coordinates of this tree.
  RowMajor convert(const States& states, const RowMajor& q, const Times& time) const;
  /// Return configurations of this tree in the coordinates of the base mechanism. Angles are within whole turns of `start`, as near as limits
  /// allow; those of the joints that `closure` fixes do not change.
  RowMajor convert_back(const States& states, const RowMajor& q, const RowMajor& start, const Times& time,
                        const Closure& closure) const;

 private:
  std::unique_ptr<const Mechanism> mechanism_;
  std::optional<PositionModel> model_;
  std::optional<Closures> closures_;
  const PositionModel& base_;
  std::vector<int> joint_;
  std::vector<int> places_,
      places_back_;  // of q of one tree among all coordinates of the other: those in q, then those of loop joints
  std::vector<int>
      reference_;  // (coordinates of this tree's loop joints) place in q of the base mechanism; -1: a loop joint in both
  bool is_same_ = true;
};

/// Return the starts of a search (n, nq): q (n or 1 rows), or the home, with the coordinates that constraints prescribe at these times.
RowMajor start_near(const PositionModel& model, const States& states, const std::optional<RowMajor>& q, const Times& time);
/// Coordinates of all loop joints of a mechanism at q (n, nq), within limits by whole turns.
RowMajor loop_coordinates(const PositionModel& model, const States& states, const RowMajor& q, const Times& time);

}  // namespace sarrus
