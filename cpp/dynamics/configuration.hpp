// The configuration manifold: integration of a constant velocity over unit time, its inverse (the difference of two
// configurations), and the motion space of each joint. SpaceDyn 3.4 (with its misprints corrected), van der Merwe 2.10 and 6.52.
#pragma once

#include "state.hpp"

namespace sarrus {

template <class T> void integrate(const Tree& tree, const T* q, const T* dv, T* q1) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    visit_every(b.described, b.nv, [&](auto joint) { joint.integrate(q + b.iq, dv + b.iv, q1 + b.iq); });
  }
}

template <class T> void difference(const Tree& tree, const T* q0, const T* q1, T* dv) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    visit_every(b.described, b.nv, [&](auto joint) { joint.difference(q0 + b.iq, q1 + b.iq, dv + b.iv); });
  }
}

/// Compute the rate of the coordinates.
template <class T> void coordinate_rate(const Tree& tree, const T* q, const T* v, T* q_dot) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    visit_every(b.described, b.nv, [&](auto joint) { joint.rate(q + b.iq, v + b.iv, q_dot + b.iq); });
  }
}

/// Return x with the rates x_dot as dual numbers.
template <class T> Dual<T>* moving(Arena& arena, int n, const T* x, const T* x_dot) {
  Dual<T>* both = arena.take<Dual<T>>(n);
  for (int k = 0; k < n; ++k) both[k] = {x[k], x_dot[k]};
  return both;
}

/// Compute the second time derivative of the coordinates for the acceleration a.
template <class T>
void coordinate_acceleration(const Tree& tree, Arena& arena, const T* q, const T* v, const T* a, T* q_ddot) {
  coordinate_rate(tree, q, v, q_ddot);
  Dual<T>* rate = arena.take<Dual<T>>(tree.nq);
  coordinate_rate<Dual<T>>(tree, moving(arena, tree.nq, q, q_ddot), moving(arena, tree.nv, v, a), rate);
  for (int k = 0; k < tree.nq; ++k) q_ddot[k] = rate[k].rate;
}

/// Compute the rate of u for which integrate(q, u) moves with velocity v: v + [u, v]/2 + [u, [u, v]]/12 - ..., the inverse of the exponential's
/// differential (Hairer, Lubich and Wanner IV.7). In that book [u, v] has the opposite sign; in this file the axes move with the body. The first
/// omitted term is of sixth order in u.
template <class T> void exponential_rate(const Tree& tree, const T* u, const T* v, T* u_dot) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    visit_every(b.described, b.nv, [&](auto joint) {
      constexpr int n = joint.nv;
      T once[6], twice[6], thrice[6], four[6];
      joint.bracket(u + b.iv, v + b.iv, once);
      joint.bracket(u + b.iv, once, twice);
      joint.bracket(u + b.iv, twice, thrice);
      joint.bracket(u + b.iv, thrice, four);
      for (int k = 0; k < n; ++k)
        u_dot[b.iv + k] = v[b.iv + k] + once[k] * T(0.5) + twice[k] * T(1.0 / 12.0) - four[k] * T(1.0 / 720.0);
    });
  }
}

/// Compute the Lie bracket [u, v] = u v - v u of each joint. If a motion deviates by u from a motion with velocity v, the rate of u is u-dot = dv +
/// [u, v].
template <class T> void bracket(const Tree& tree, const T* u, const T* v, T* uv) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    visit_every(b.described, b.nv, [&](auto joint) { joint.bracket(u + b.iv, v + b.iv, uv + b.iv); });
  }
}

/// Normalise quaternions; copy the other coordinates.
template <class T> void normalize(const Tree& tree, const T* q, T* q1) {
  for (int k = 0; k < tree.nq; ++k) q1[k] = q[k];
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    if (!has_quaternion(b.described)) continue;
    // divide by the largest entry before normalising, because the squares of very large or small entries overflow or underflow
    T largest = abs(q[b.iq]);
    for (int k = 1; k < 4; ++k) largest = select(abs(q[b.iq + k]) > largest, abs(q[b.iq + k]), largest);
    for (int k = 0; k < 4; ++k) q1[b.iq + k] = q[b.iq + k] / largest;
    Quaternion<T>::load(q1 + b.iq).normalized().store(q1 + b.iq);
  }
}

/// Compute the motion spaces phi of all joints, as columns (6 x nv), each in the joint's frame on its successor.
template <class T> void motion_space(const Tree& tree, Arena& arena, const T* q, T* out) {
  const JointCoordinates<T> coordinates(tree, arena, q);
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    JointMotion<T> J;
    joint_motion(b.joint, b.nv, coordinates.of(b), static_cast<const T*>(nullptr), J);
    for (int k = 0; k < b.nv; ++k) {
      T column[6];
      store(turned(tree.numbers<T>()(b.R_joint), J.column[k]), column);
      for (int r = 0; r < 6; ++r) out[r * tree.nv + b.iv + k] = column[r];
    }
  }
}

}  // namespace sarrus
