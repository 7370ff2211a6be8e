// The same mechanism on another spanning tree, such that a loop joint becomes a tree joint.
//
// A configuration has coordinates in each spanning tree; the coordinates of a joint follow from the poses of its two bodies. The result of a search
// that starts far from the solution depends on the tree. Therefore a search uses a tree that is determined by its arguments alone, so that the result
// does not depend on the spanning tree of the model.
#pragma once

#include "closure.hpp"

namespace sarrus {

class OtherTree {
 public:
  /// Build the tree that contains these joints (indices). Bodies and joints are added in the order of their names. Raises ModelError if the mechanism
  /// contains a kind of joint that cannot be a loop joint, or if these joints form a loop.
  OtherTree(const PositionModel& base, const std::vector<int>& joints);

  /// model, closures: the mechanism on the other tree. joint: the index that a joint of the base mechanism has there.
  const PositionModel& model() const { return *model_; }
  const Closures& closures() const { return *closures_; }
  int joint(int base_joint) const { return joint_[base_joint]; }
  /// Return true if both trees have the same joints.
  bool is_same() const { return is_same_; }

  /// Return configurations (n, nq) of the base mechanism in the coordinates of this tree.
  RowMajor convert(const States& states, const RowMajor& q, const Times& time) const;
  /// Return configurations of this tree in the coordinates of the base mechanism. Whole turns are added to angles such that they are as near to those
  /// of `start` as limits allow, except to angles of the joints that `closure` fixes.
  RowMajor convert_back(const States& states, const RowMajor& q, const RowMajor& start, const Times& time,
                        const Closure& closure) const;

 private:
  std::unique_ptr<const Mechanism> mechanism_;
  std::optional<PositionModel> model_;
  std::optional<Closures> closures_;
  const PositionModel& base_;
  std::vector<int> joint_;
  // for each entry of q: its index among all coordinates of the other tree (those in q, then those of loop joints). places_: of this tree's q;
  // places_back_: of the base mechanism's q
  std::vector<int> places_, places_back_;
  // for each coordinate of this tree's loop joints: its index in q of the base mechanism; -1 if the joint is a loop joint in both trees
  std::vector<int> reference_;
  bool is_same_ = true;
};

/// Return the starts of a search (n, nq): q (n or 1 rows), or the home, with the coordinates that constraints prescribe at these times.
RowMajor start_near(const PositionModel& model, const States& states, const std::optional<RowMajor>& q, const Times& time);
/// Return the coordinates of all loop joints of a mechanism at q (n, nq); whole turns are added to angles such that they are within their limits.
RowMajor loop_coordinates(const PositionModel& model, const States& states, const RowMajor& q, const Times& time);

}  // namespace sarrus
