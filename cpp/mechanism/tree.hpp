// A mechanism in the form that the kernels read: plain constants in plain arrays, because they are passed between shared libraries. A link is a rigid
// group: a body together with the bodies that fixed joints weld to it. Link 0 and body 0 are the ground; the index of a parent is less than that of
// its children.
#pragma once

#include "../spatial/numbers.hpp"
#include "loops.hpp"

namespace sarrus {

/// A rigid group of bodies with its joint towards the ground. The frame of the link is the joint's successor frame, with the joint's axis on z.
struct Link {
  int parent;
  JointKind joint;  // the joint's type in the direction from the ground
  JointKind described;  // the joint's type in the description; `joint` differs from it if the tree contains the joint in reverse
  int nv, iq, iv;  // number of the joint's velocities; indices of its first coordinate in q and of its first velocity in v
  int iangle;  // index of the joint's first angle in Tree::angle
  // the subtree of this link consists of the links from this one to `end` (exclusive), because links are numbered depth first
  int end;
  int root;  // the link next to the ground on the path from this link to the ground
  Transform<double> X_tree;  // the joint's predecessor frame in the parent link
  Mat3<double> R_joint;  // rotation from the axes of this frame (z is the joint's axis) to those of the description
  Inertia<double> inertia;
  Sym3<double> euler;  // Euler tensor about the frame's origin (3.29)
  JointConstants constants;
};

/// Nonlinear terms of a spring with a damper, in addition to the linear ones: for the deflection x and its rate v, the force is
///   (quadratic_stiffness + cubic_stiffness s) s x + (quadratic_damping + cubic_damping |v|) |v| v
/// where s = x; for a ball joint, x is a component of the rotation vector, and s its norm.
struct NonlinearTerms {
  double quadratic_stiffness = 0.0, cubic_stiffness = 0.0, quadratic_damping = 0.0, cubic_damping = 0.0;

  bool has_spring() const { return quadratic_stiffness != 0.0 || cubic_stiffness != 0.0; }
  bool has_forces() const { return has_spring() || quadratic_damping != 0.0 || cubic_damping != 0.0; }
};

/// Passive forces along one velocity (4.25, 4.26).
struct PassiveTerms {
  double armature, damping, friction, stiffness, rest;
  NonlinearTerms nonlinear;
  int iq;  // coordinate along which a spring acts, or -1: a ball joint's spring acts along the logarithm of its quaternion
  static constexpr int numbers = 9;

  bool has_spring() const { return stiffness != 0.0 || nonlinear.has_spring(); }
  bool has_forces() const { return damping != 0.0 || friction != 0.0 || stiffness != 0.0 || nonlinear.has_forces(); }
};

/// A body of the description, before fixed joints were merged. Parameters and reactions belong to it.
struct Body {
  int parent;  // index of the parent body
  int described;  // index in the description
  int link;  // the link that contains this body
  Transform<double> X;  // pose of the body's frame in the link's frame
  Transform<double> X_joint;  // the joint towards the ground: its frame on this body, in the link's frame
  Inertia<double> inertia;  // in the body's own frame
  // true if the tree contains that joint in reverse: in the description this body is the joint's parent, and its predecessor the child
  bool reversed;
  int child_link;
  Transform<double> X_before;  // the joint's frame on the other body, in that body's link

  const Transform<double>& X_child() const {
    return reversed ? X_before : X_joint;
  }  // frame on the joint's child, in that child's link
};

/// A frame in a link; `body` is the body of the description to which it belongs.
struct PlacedFrame {
  int link, body;
  Transform<double> X;
};

/// A spring with a damper between points of two bodies, given in the bodies' frames.
struct PointSpring {
  int link[2], body[2];
  Vec3<double> point[2];
  double stiffness, rest_length, damping;
  NonlinearTerms nonlinear;
  static constexpr int numbers = 7;
};

/// A loop joint as a motion between two bodies, with the forces along it. Its constraint rows are a Constraint.
struct LoopMotion {
  JointKind joint;
  int nv, nq, iq, iv;  // iq, iv: indices of its first coordinate and velocity among those of all loop joints
  JointConstants constants;
  int constraint;
  int link[2], body[2];  // parent, child
  Transform<double> X[2];  // the joint's frame on each body, with its axis on z
  PassiveTerms terms[6];  // in these terms, iq is an index among the coordinates of this joint
  bool has_forces, has_armature;
};

struct Tree {
  int links;  // number of links, including the ground
  int nq, nv, angles, bodies;
  const Link* link;
  const PassiveTerms* passive;  // (nv)
  const int* angle;  // index in q of each angle
  const int* column_link;  // for velocity i, the link whose joint has it
  const int* column_parent;  // for velocity i, the preceding velocity on the path to the ground, or -1
  const int* column_depth;  // number of velocities on that path
  // like column_parent, for the pattern of M: if armature of loop joints couples all velocities, they form a single chain
  const int* mass_parent;
  // (nv) unit of each velocity, comparable to 1 rad/s: 1 for rotations, the mechanism's characteristic length for translations
  const double* unit;
  const double* per_unit_square;  // 1 / unit^2
  const char*
      lacks_inertia;  // (nv, or null) 1 if a velocity's own body has almost no inertia along its joint, so that M may be singular
  double length, mass;  // characteristic length and total mass of the mechanism
  double light;  // bodies with at most this mass are treated as massless
  const Body* body;
  const PlacedFrame* frame;
  int springs;
  const PointSpring* spring;
  int loop_motions, loop_nq, loop_nv;
  const LoopMotion* loop_motion;
  Vec3<double> gravity;
  bool has_armature, has_joint_forces, has_nonlinear_forces;
  /// Set the flags for passive terms of the tree.
  void note(const PassiveTerms& terms) {
    has_joint_forces |= terms.has_forces(), has_nonlinear_forces |= terms.nonlinear.has_forces();
  }
  bool ties_links;  // true if springs or loop joints act between bodies
  bool floats;  // true if link 1 is the only link next to the ground, and has six velocities that occur in no constraint
  Loops loops;
  std::intptr_t lanes = 0;  // if each lane has its own parameters: distance of their block (NumbersOf::shift)

  /// Access to the parameters of this tree and of its arrays; these must not move in memory.
  template <class T> SARRUS_INLINE NumbersOf<T> numbers() const {
    if constexpr (has_own_numbers<T>)
      return {lanes};
    else
      return {};
  }
};

/// A tree of the same bodies in which bodies beyond cut joints are floating (substructures.hpp). Its constraints are those of the original tree in
/// their order, then the cut joints, then the motions of cut joints with armature. Other motions of cut joints follow, in the same form as those of
/// motors.
struct Substructures {
  Tree tree;
  const int* from;  // for each velocity of this tree, its index in the original tree; -1: velocity of a floating body
  const int* velocity;  // for each velocity of the original tree, its index in this tree; -1 - r: it is the motion in row r
  int substructures, cuts;  // number of substructures, and of cuts
  int first_motion;  // index of the first constraint that is the motion of a cut joint
  int compliant_row;  // the rows from this one to loops.rows are compliant, because they represent armature
  const double* compliance;  // compliances of these rows
  // large inertia for floating bodies without inertia about an axis; joints prevent rotations about this axis. Else 0
  const double* lacking;
};

}  // namespace sarrus
