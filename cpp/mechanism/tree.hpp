// A mechanism in the form that the kernels read: plain constants in plain arrays, because they are passed between shared libraries. A link is a rigid
// group: a body together with the bodies that fixed joints weld to it. Link 0 and body 0 are the ground; the index of a parent is less than that of
// its children.
#pragma once

#include "../spatial/numbers.hpp"
#include "loops.hpp"

namespace sarrus {

/// Rigid group of bodies, and its joint towards the ground. The frame of the link is the joint's successor frame, with the joint's axis on z.
struct Link {
  int parent;
  JointKind joint;  // as the tree passes it
  JointKind described;  // the joint's type in the description; `joint` differs from it if the tree contains the joint in reverse
  int nv, iq, iv;  // indices of the joint's first coordinate in q and first velocity in v, and their numbers
  int iangle;  // its first angle within Tree::angle
  int end;  // its subtree consists of the links [this, end), because links are numbered depth first
  int root;  // the link next to the ground on the path from this link to the ground
  Transform<double> X_tree;  // the joint's predecessor frame in the parent link
  Mat3<double> R_joint;  // rotation from this frame's axes (joint axis rotated onto z) to those of the description
  Inertia<double> inertia;
  Sym3<double> euler;  // Euler tensor about the frame's origin (3.29)
  JointConstants constants;
};

/// Passive forces along one velocity (4.25, 4.26).
struct PassiveTerms {
  double armature, damping, friction, stiffness, rest;
  int iq;  // coordinate along which a spring acts, or -1: a ball joint's spring acts along the logarithm of its quaternion

  bool has_forces() const { return damping != 0.0 || friction != 0.0 || stiffness != 0.0; }
};

/// A body of the description, before fixed joints were merged. Parameters and reactions belong to it.
struct Body {
  int parent;  // body
  int described;  // its place among the described bodies
  int link;  // the link that it is welded to
  Transform<double> X;  // its own frame in that link's
  Transform<double> X_joint;  // frame of the joint towards the ground, in the link's frame
  Inertia<double> inertia;  // in its own frame
  // true if the tree contains that joint in reverse: in the description this body is the parent, and the predecessor the child
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

/// A spring with a damper between points of two bodies, in their frames.
struct PointSpring {
  int link[2], body[2];
  Vec3<double> point[2];
  double stiffness, rest_length, damping;
};

/// A loop joint as a motion between two bodies, with the forces along it. Its constraint rows are a Constraint.
struct LoopMotion {
  JointKind joint;
  int nv, nq, iq, iv;  // iq, iv: index of its first coordinate and velocity among those of all loop joints
  JointConstants constants;
  int constraint;
  int link[2], body[2];  // parent, child
  Transform<double> X[2];  // the joint's frame on each body, with its axis on z
  PassiveTerms terms[6];  // their iq counts its own coordinates
  bool has_forces, has_armature;
};

struct Tree {
  int links;  // with the ground
  int nq, nv, angles, bodies;
  const Link* link;
  const PassiveTerms* passive;  // nv of them
  const int* angle;  // which q is the i-th angle
  const int* column_link;  // which link moves velocity i
  const int* column_parent;  // for velocity i, the preceding velocity on the path to the ground, or -1
  const int* column_depth;  // number of velocities on that path
  const int* mass_parent;  // as column_parent; but if armature of loop joints couples all velocities, they form a single chain
  // (nv) the velocity that is comparable to 1 rad/s: 1 for rotations, the mechanism's characteristic length for translations
  const double* unit;
  const double* per_unit_square;  // 1 / unit^2
  const char*
      lacks_inertia;  // (nv, or null) 1 if a velocity's own body has almost no inertia along its joint, so that M may be singular
  double length, mass;  // the mechanism's own
  double light;  // bodies with at most this mass are treated as massless
  const Body* body;
  const PlacedFrame* frame;
  int springs;
  const PointSpring* spring;
  int loop_motions, loop_nq, loop_nv;
  const LoopMotion* loop_motion;
  Vec3<double> gravity;
  bool has_armature, has_joint_forces;
  bool ties_links;  // true if springs or loop joints act between bodies
  bool floats;  // true if link 1 is the only link next to the ground, and has six velocities that occur in no constraint
  Loops loops;
  std::intptr_t lanes = 0;  // NumbersOf::shift, if lanes have their own numbers

  /// Access to the parameters of this tree and of its arrays; these must not move in memory.
  template <class T> SARRUS_INLINE NumbersOf<T> numbers() const {
    if constexpr (has_own_numbers<T>)
      return {lanes};
    else
      return {};
  }
};

/// The same bodies; joints at the cuts are replaced by floating bodies: substructures.hpp. The constraints are those of the tree in their order, then
/// the cut joints, then the motions of cut joints with armature. Other motions of cut joints follow, in the same form as those of motors.
struct Substructures {
  Tree tree;
  const int* from;  // for each of its velocities, the index in the tree; -1: velocity of a floating body
  const int* velocity;  // the inverse: for each velocity of the tree, its index here; -1 - r: row r
  int substructures, cuts;  // number of these
  int first_motion;  // the first constraint that is a motion
  int compliant_row;  // the rows from this one to loops.rows are compliant, because of an armature:
  const double* compliance;  // so much
  // a large inertia for floating bodies that have no inertia about some axis, a direction that joints constrain; else 0
  const double* lacking;
};

}  // namespace sarrus
