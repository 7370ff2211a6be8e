// Pose, velocity and acceleration of every body, and the motion that each joint velocity causes, in world axes. van der Merwe
// 4.27, 4.28 (corrected); [RBDA] 4.1. Algorithms that are not performance-critical use these results.
//
// A column of phi is stored at the origin of the body that it moves, to avoid cancellation far from the world's origin. Its time derivative (5.65) is
// stored with it: w x s + R phi-dot, because the joint's axes rotate with the body.
#pragma once

#include "frame.hpp"
#include "state.hpp"

namespace sarrus {

template <class T> struct LinkMotion {
  Transform<T> X;  // pose in the world
  // pose, velocity and acceleration in world axes at the body's origin; A is classical and does not include gravity
  Motion<T> V, A;
};

template <class T> struct Kinematics {
  LinkMotion<T>* link;  // tree.links
  Motion<T>* column;  // tree.nv
  Motion<T>* column_dot;
  NumbersOf<T> numbers = {};

  static int size(const Tree& t) { return cached_kinematics_size(t); }

  /// Set the three arrays to consecutive ranges of `size(tree)` contiguous scalars.
  static SARRUS_INLINE Kinematics over(const Tree& tree, T* block) {
    static_assert(sizeof(LinkMotion<T>) == 24 * sizeof(T) && sizeof(Motion<T>) == 6 * sizeof(T), "no padding");
    Kinematics k;
    k.link = reinterpret_cast<LinkMotion<T>*>(block);
    k.column = reinterpret_cast<Motion<T>*>(block + 24 * tree.links);
    k.column_dot = k.column + tree.nv;
    k.numbers = tree.numbers<T>();
    return k;
  }
};

/// Compute the kinematics. v or a may be null, which means zero.
template <class T>
void kinematics(const Tree& tree, Arena& arena, const T* q, const T* v, const T* a, const Kinematics<T>& out,
                const GroundMotion<T>& ground = {}) {
  const JointCoordinates<T> coordinates(tree, arena, q);
  const T* zero = zeros<T>(arena, tree.nv);
  if (!v) v = zero;
  if (!a) a = zero;

  out.link[0] = {Transform<T>::identity(), Motion<T>::zero(), Motion<T>::zero()};
  if (ground.velocity) out.link[0].V = load_motion(ground.velocity);
  if (ground.acceleration) out.link[0].A = load_motion(ground.acceleration);
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const LinkMotion<T>& parent = out.link[b.parent];
    LinkMotion<T>& link = out.link[i];
    JointMotion<T> J;
    joint_motion(b.joint, b.nv, coordinates.of(b), v + b.iv, J);
    link.X = parent.X * (tree.numbers<T>()(b.X_tree) * J.X);
    const Mat3<T>& R = link.X.R;

    // V_J, A_J: velocity and acceleration due to the joint alone, in the parent's axes
    Motion<T> V_J = Motion<T>::zero(), A_J = turned(R, J.bias);
    for (int k = 0; k < b.nv; ++k) {
      const Motion<T> s = turned(R, J.column[k]);
      out.column[b.iv + k] = s;
      V_J = V_J + s * v[b.iv + k];
      A_J = A_J + s * a[b.iv + k];
    }
    const Vec3<T> r = link.X.p - parent.X.p, &w = parent.V.angular;
    link.V = Motion<T>{w, parent.V.linear + cross(w, r)} + V_J;
    link.A.angular = parent.A.angular + cross(w, V_J.angular) + A_J.angular;
    link.A.linear = parent.A.linear + cross(parent.A.angular, r) + cross(w, cross(w, r)) +
                    cross(Vec3<T>(w * T(2.0) + V_J.angular), V_J.linear) + A_J.linear;
    for (int k = 0; k < b.nv; ++k) {
      const Motion<T>& s = out.column[b.iv + k];
      out.column_dot[b.iv + k] =
          Motion<T>{cross(link.V.angular, s.angular), cross(link.V.angular, s.linear)} + turned(R, J.column_rate[k]);
    }
  }
}

}  // namespace sarrus
