// Parameters of a mechanism other than inertias: placements of joints, lengths of rods, radii, gear ratios, springs, gravity. They are stored in this
// order:
//
//   placements     12 for the joint of every body of the user's description, then 12 for every constraint: displacements [rotation;
//                  translation] of its frame on the parent, then of its frame on the child, each in the frame's own axes
//   joint terms    stiffness of every velocity of the tree, then of loop joints; then, in the same way, rest, damping, friction,
//                  armature, pitch, and the nonlinear terms
//   springs        stiffness, rest length, damping and the nonlinear terms of each
//   constraints    the parameters of each constraint's type, in its order; for a coupler its coefficients, then its offset
//   gravity        3
#pragma once

#include "../mechanism/tree.hpp"

namespace sarrus {

/// Return the number of parameters of a constraint's type. A loop joint has none: its dimensions are placements and joint terms.
inline int own_numbers(const Constraint& c) {
  int count = 0;
  visit_constraint(const_cast<AnyConstraint&>(c.kind), [&](auto& kind) {  // fields() only reads here
    kind.fields([&](const char*, auto& x) {
      using X = std::decay_t<decltype(x)>;
      if constexpr (std::is_same_v<X, double>) ++count;
      if constexpr (std::is_same_v<X, std::vector<std::vector<double>>>)
        for (const auto& row : x) count += static_cast<int>(row.size());
    });
  });
  return count;
}

template <class T> class Dimensions {
 public:
  static constexpr int terms = 10;
  enum Term : int {
    stiffness,
    rest,
    damping,
    friction,
    armature,
    pitch,
    quadratic_stiffness,
    cubic_stiffness,
    quadratic_damping,
    cubic_damping
  };

  Dimensions(const Tree& tree, T* out) : tree_(tree), out_(out) {}
  static int size(const Tree& t) {
    int count = 12 * (t.bodies - 1 + t.loops.constraints) + terms * (t.nv + t.loop_nv) + PointSpring::numbers * t.springs + 3;
    for (int i = 0; i < t.loops.constraints; ++i) count += own_numbers(t.loops.constraint[i]);
    return count;
  }

  void turn_round() const {
    for (int k = 0; k < size(tree_); ++k) out_[k] = -out_[k];
  }

  /// Return the six placement numbers of a joint or constraint: those of its frame on the parent (0) or on the child (1).
  T* joint_placement(const Body& body, int side) const { return out_ + 12 * body.described + 6 * side; }
  T* constraint_placement(int i, int side) const { return out_ + 12 * (tree_.bodies - 1 + i) + 6 * side; }
  /// Return a joint term (stiffness, rest, ...) of a velocity. The velocities of loop joints follow those of the tree.
  T& joint_term(Term term, int velocity) const { return out_[after_placements() + term * velocities() + velocity]; }
  T* spring_numbers(int i) const { return out_ + after_placements() + terms * velocities() + PointSpring::numbers * i; }
  T* constraint_numbers(int i) const {
    T* at = spring_numbers(tree_.springs);
    for (int k = 0; k < i; ++k) at += own_numbers(tree_.loops.constraint[k]);
    return at;
  }
  T* gravity() const { return constraint_numbers(tree_.loops.constraints); }

 private:
  int velocities() const { return tree_.nv + tree_.loop_nv; }
  int after_placements() const { return 12 * (tree_.bodies - 1 + tree_.loops.constraints); }

  const Tree& tree_;
  T* out_;
};

}  // namespace sarrus
