// Form of a mechanism that the kernels read: plain constants in plain arrays, because they are
// passed from one shared library to another. Links are rigid groups: described bodies with those
// that fixed joints weld to them. Link 0 and body 0 are the ground; a parent has a smaller number.
#pragma once

#include "../spatial/numbers.hpp"
#include "loops.hpp"

namespace sarrus {

/// Rigid group of bodies, and the joint that carries it. Its frame is the joint's successor frame, with the joint's axis on z.
struct Link {
  int parent;
  JointKind joint;  // as the tree passes it
  JointKind described;  // the joint's type in the description; it differs if the tree traverses the joint backwards
  int nv, iq, iv;  // the joint's coordinates and velocities within q and v
  int iangle;  // its first angle within Tree::angle
  int end;  // its subtree is the links [this, end): numbered depth first
  int root;  // the link next to the ground on the path to the ground
  Transform<double> X_tree;  // the joint's predecessor frame in the parent link
  Mat3<double> R_joint;  // rotation from this frame's axes (joint axis turned onto z) to those of the description
  Inertia<double> inertia;
  Sym3<double> euler;  // Euler tensor about the frame's origin (3.29)
  JointConstants constants;
};

/// Passive forces along one velocity coordinate (4.25, 4.26).
struct PassiveTerms {
  double armature, damping, friction, stiffness, rest;
  int iq;  // the coordinate that a spring acts on, or -1: a ball joint's spring acts on the logarithm of its quaternion

  bool has_forces() const { return damping != 0.0 || friction != 0.0 || stiffness != 0.0; }
};

/// A body as described, before fixed joints were welded: parameters and reactions belong to it.
struct Body {
  int parent;  // body
  int described;  // its place among the described bodies
  int link;  // the link that it is welded to
  Transform<double> X;  // its own frame in that link's
  Transform<double> X_joint;  // the frame of the joint that carries it, in that link's frame
  Inertia<double> inertia;  // in its own frame
  bool reversed;  // true if the description has the body as that joint's parent, and its predecessor as the child
  int child_link;
  Transform<double> X_before;  // the joint's frame on the other body, in that body's link

  const Transform<double>& X_child() const {
    return reversed ? X_before : X_joint;
  }  // on the joint's child, in that child's link
};

/// A frame in a link; `body` is the described body that it belongs to.
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

/// A loop joint as a motion between two bodies, with the forces along it. Its rows are a Constraint.
struct LoopMotion {
  JointKind joint;
  int nv, nq, iq, iv;  // iq, iv: its first index among the coordinates and velocities of all loop joints
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
  const int* column_parent;  // the velocity before i on the path to the ground, or -1
  const int* column_depth;  // number of velocities on that path
  const int* mass_parent;  // as column_parent; if armature of loop joints couples all velocities, one chain of all
  const double*
      unit;  // nv: the velocity that is equivalent to 1 rad/s: 1 for rotations, the mechanism's characteristic length for translations
  const double* per_unit_square;  // 1 / unit^2
  const char*
      lacks_inertia;  // nv, or null: 1 if a velocity's own body has next to no inertia along its joint, so that M may be singular
  double length, mass;  // the mechanism's own
  double light;  // bodies of at most this mass count as massless
  const Body* body;
  const PlacedFrame* frame;
  int springs;
  const PointSpring* spring;
  int loop_motions, loop_nq, loop_nv;
  const LoopMotion* loop_motion;
  Vec3<double> gravity;
  bool has_armature, has_joint_forces;
  bool ties_links;  // true if springs or loop joints act between bodies
  bool floats;  // true if only link 1 is next to the ground, with six velocities that no constraint contains
  Loops loops;
  std::intptr_t lanes = 0;  // NumbersOf::shift, if lanes have their own numbers

  /// Access to numbers of this tree and of its arrays, which must not move.
  template <class T> SARRUS_INLINE NumbersOf<T> numbers() const {
    if constexpr (has_own_numbers<T>)
      return {lanes};
    else
      return {};
  }
};

/// The same bodies; joints at the cuts are replaced by floating bodies: substructures.hpp. The constraints are those of the tree in
/// their order, then the cut joints, then the motions of cut joints with armature. Other motions of cut joints follow, like motors.
struct Substructures {
  Tree tree;
  const int* from;  // index in the tree of each of its velocities; -1: velocity of a floating body
  const int* velocity;  // inverse: index of each velocity of the tree; -1 - r: row r
  int substructures, cuts;  // number of these
  int first_motion;  // the first constraint that is a motion
  int compliant_row;  // rows from here to loops.rows are compliant, by an armature:
  const double* compliance;  // so much
  const double* lacking;  // a large inertia for floating bodies without inertia about some axis, which joints constrain; else 0
};

}  // namespace sarrus
