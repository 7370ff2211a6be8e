// Kinematics of a frame: pose, velocity, classical acceleration, Jacobian and its time derivative. van der Merwe 5.6, 5.14, 5.64-5.71.
//
// A motion has three representations: in the frame's own axes; in world axes at the frame's origin ("world_aligned"); in world axes for the point of
// the body that passes through the world's origin ("world", the spatial Jacobian of Murray, Li and Sastry).
#pragma once

#include "kinematics.hpp"

namespace sarrus {

template <class T> struct FrameMotion {
  Mat3<T> R;  // rotation from the frame's axes to the world's
  Vec3<T> p, v;  // reference point p of the motion; velocity of the point from which the lever arms of the joints are measured
  Motion<T> V;  // motion of the frame's body at p, in world axes
};

/// Compute the orientation of the frame, and the motion of the frame's body at the reference point of the representation.
template <class T> SARRUS_INLINE FrameMotion<T> frame_motion(const Kinematics<T>& k, const Frame& f) {
  const LinkMotion<T>& b = k.link[f.link];
  const Transform<T> X = b.X * k.numbers(f.X);
  const bool at_origin = f.expressed_in == ExpressedIn::world;
  FrameMotion<T> m;
  m.R = X.R;
  m.p = at_origin ? zero3<T>() : X.p;
  m.V.angular = b.V.angular;
  m.V.linear = b.V.linear + cross(b.V.angular, Vec3<T>(m.p - b.X.p));
  m.v = at_origin ? zero3<T>() : m.V.linear;  // lever arms are measured from the world's origin, which is at rest
  return m;
}

template <class T> SARRUS_INLINE void frame_pose(const Kinematics<T>& k, const Frame& f, T* out) {
  const Transform<T> X = k.link[f.link].X * k.numbers(f.X);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) out[4 * i + j] = X.R(i, j);
    out[4 * i + 3] = X.p(i);
    out[12 + i] = T(0.0);
  }
  out[15] = T(1.0);
}

template <class T> SARRUS_INLINE void frame_velocity(const Kinematics<T>& k, const Frame& f, T* out) {
  const FrameMotion<T> m = frame_motion(k, f);
  store(f.expressed_in == ExpressedIn::frame ? in_axes(m.R, m.V) : m.V, out);
}

/// Compute the classical acceleration. In "world" it is the derivative of the spatial velocity, because the reference point is at rest.
template <class T> SARRUS_INLINE void frame_acceleration(const Kinematics<T>& k, const Frame& f, T* out) {
  const LinkMotion<T>& b = k.link[f.link];
  const FrameMotion<T> m = frame_motion(k, f);
  const Vec3<T> r = m.p - b.X.p, &w = b.V.angular;
  Motion<T> A = {b.A.angular, b.A.linear + cross(b.A.angular, r) + cross(w, cross(w, r))};
  if (f.expressed_in == ExpressedIn::world) A.linear -= cross(w, m.V.linear);
  store(f.expressed_in == ExpressedIn::frame ? in_axes(m.R, A) : A, out);
}

/// Compute J (6 x nv), and its time derivative if out_dot is not null. Each column is that of Kinematics, shifted from its body's origin to the
/// reference point.
template <class T> void frame_jacobian(const Tree& tree, const Kinematics<T>& k, const Frame& f, T* out, T* out_dot) {
  for (int i = 0; i < 6 * tree.nv; ++i) {
    if (out) out[i] = T(0.0);
    if (out_dot) out_dot[i] = T(0.0);
  }
  const FrameMotion<T> m = frame_motion(k, f);
  for (int link = f.link; link != 0; link = tree.link[link].parent) {
    const Link& b = tree.link[link];
    const LinkMotion<T>& motion = k.link[link];
    const Vec3<T> r = m.p - motion.X.p, r_dot = m.v - motion.V.linear;
    for (int c = b.iv; c < b.iv + b.nv; ++c) {
      const Motion<T>&s = k.column[c], &s_dot = k.column_dot[c];
      Motion<T> J = {s.angular, s.linear + cross(s.angular, r)};
      Motion<T> J_dot = {s_dot.angular, s_dot.linear + cross(s_dot.angular, r) + cross(s.angular, r_dot)};
      if (f.expressed_in == ExpressedIn::frame) {
        const Vec3<T>& w = m.V.angular;
        J_dot = in_axes(m.R, Motion<T>{J_dot.angular - cross(w, J.angular), J_dot.linear - cross(w, J.linear)});
        J = in_axes(m.R, J);
      }
      for (int i = 0; i < 3; ++i) {
        if (out) out[i * tree.nv + c] = J.angular(i), out[(3 + i) * tree.nv + c] = J.linear(i);
        if (out_dot) out_dot[i * tree.nv + c] = J_dot.angular(i), out_dot[(3 + i) * tree.nv + c] = J_dot.linear(i);
      }
    }
  }
}

/// Compute the motion per unit of each velocity, in world axes, at the point of the body that coincides with the world's origin: six numbers per
/// velocity.
template <class T> void joint_screws(const Tree& tree, const Kinematics<T>& k, T* out) {
  for (int c = 0; c < tree.nv; ++c) {
    const Motion<T>& s = k.column[c];
    store(Motion<T>{s.angular, s.linear - cross(s.angular, k.link[tree.column_link[c]].X.p)}, out + 6 * c);
  }
}

}  // namespace sarrus
