// Coordinates, velocities and accelerations of loop joints. They are defined as those of tree joints in q, v and a, but are computed from the
// relative motion of the two bodies.
#pragma once

#include "constraints.hpp"

namespace sarrus {

/// Outputs for all loop joints, contiguous in the order of the joints. A null pointer: not computed.
template <class T> struct LoopJoints {
  T *q = nullptr, *v = nullptr, *a = nullptr;
  T* J = nullptr;  // (loop_nv x nv) maps tree velocities to loop joint velocities, with prescribed motions at rest
};

/// Compute the requested outputs. `near`: reference coordinates (null: zero); among angles that differ by whole revolutions, the one nearest to its
/// reference is returned. Velocities need state.v; accelerations need state.link with the accelerations of the tree.
template <class T>
void read_loop_joints(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* near, const LoopJoints<T>& out) {
  const T none[7] = {T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
  for (int k = 0; out.J && k < tree.loop_nv * tree.nv; ++k) out.J[k] = T(0.0);
  for (int i = 0; i < tree.loop_motions; ++i) {
    const Arena::Scope scope(arena);
    const LoopMotion& joint = tree.loop_motion[i];
    const Constraint& c = tree.loops.motion[i];
    RelativeMotion<T> m;
    Columns<T> columns;
    relative_motion(tree, arena, state, c, m, columns, true, static_cast<const T*>(nullptr));
    ReadJoint<T> read;
    read_joint(joint.joint, joint.nv, {&joint.constants, state.numbers}, m.X, m.V, near ? near + joint.iq : none, read);
    for (int k = 0; out.q && k < joint.nq; ++k) out.q[joint.iq + k] = read.q[k];
    for (int k = 0; k < joint.nv; ++k) {
      const Force<T>& psi = read.psi[k];
      if (out.v) out.v[joint.iv + k] = read.v[k];
      if (out.a) out.a[joint.iv + k] = dot(LoopJoint::apparent_acceleration(m), psi) - dot(read.bias, psi);
      for (int l = 0; out.J && l < c.columns; ++l) out.J[(joint.iv + k) * tree.nv + c.column[l]] = dot(columns.column[l], psi);
    }
  }
}

/// Compute the wrench of the friction, springs and armature of each loop joint. It acts on the child, at the joint's frame, and is given in the
/// axes that this frame has in the user's model. The entries of other constraints are zero.
template <class T> void loop_joint_wrenches(const Tree& tree, const Kinematics<T>& k, T* out) {
  const auto numbers = tree.numbers<T>();
  for (int i = 0; i < 6 * tree.loops.constraints; ++i) out[i] = T(0.0);
  for (int i = 0; i < tree.loop_motions; ++i) {
    const LoopMotion& joint = tree.loop_motion[i];
    if (!joint.has_forces && !joint.has_armature) continue;
    const Force<T> f = loop_joint_force(joint, numbers, loop_joint_motion(joint, numbers, k), true);
    const Mat3<T> R = numbers(tree.loops.constraint[joint.constraint].R_described);
    store(Force<T>{R * f.angular, R * f.linear}, out + 6 * joint.constraint);
  }
}

}  // namespace sarrus
