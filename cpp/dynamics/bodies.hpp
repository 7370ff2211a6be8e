// Quantities of the bodies of the user's description, before bodies with fixed joints were merged: the wrench that every joint transmits, and the
// regressor of the inertial parameters. Both follow from Newton and Euler's equations of each body (van der Merwe 4.21, 4.22).
#pragma once

#include "between_bodies.hpp"

namespace sarrus {

/// Motion of a body's frame, in its own axes. The acceleration is relative to free fall: it includes -g.
template <class T> struct BodyMotion {
  Transform<T> X;  // pose in the world
  Vec3<T> w, dw, a;
};
template <class T> SARRUS_INLINE BodyMotion<T> body_motion(const Tree& tree, const Kinematics<T>& k, const Body& body) {
  const LinkMotion<T>& b = k.link[body.link];
  BodyMotion<T> m;
  m.X = b.X * tree.numbers<T>()(body.X);
  const Vec3<T> r = m.X.p - b.X.p, &w = b.V.angular;
  const Vec3<T> a = b.A.linear + cross(b.A.angular, r) + cross(w, cross(w, r)) - tree.numbers<T>()(tree.gravity);
  m.w = transpose_times(m.X.R, w), m.dw = transpose_times(m.X.R, b.A.angular), m.a = transpose_times(m.X.R, a);
  return m;
}

/// For each body, the wrench that its joint applies to it, in world axes at the joint's origin on that body.
template <class T> struct BodyForces {
  Force<T>* f;
  Vec3<T>* joint;
};

/// Compute the transmitted wrenches from the leaves inward: inertial forces minus applied forces. `add_forces` adds further applied forces; it has
/// the arguments of each_force_between().
template <class T, class Others>
BodyForces<T> transmitted_by_bodies(const Tree& tree, Arena& arena, const Kinematics<T>& k, int wrenches,
                                    const ExternalWrench<T>* wrench, const Others& add_forces) {
  Force<T>* f = arena.take<Force<T>>(tree.bodies);
  Vec3<T>* joint = arena.take<Vec3<T>>(tree.bodies);
  for (int i = 0; i < tree.bodies; ++i) {
    const Body& body = tree.body[i];
    const BodyMotion<T> m = body_motion(tree, k, body);
    joint[i] = k.link[body.link].X.p + k.link[body.link].X.R * tree.numbers<T>()(body.X_joint.p);
    const Inertia<T> I = tree.numbers<T>()(body.inertia);
    Force<T> need = I * Motion<T>{m.dw, m.a};
    need += I.gyroscopic(m.w);
    const Vec3<T> F = m.X.R * need.linear;
    f[i] = {m.X.R * need.angular + cross(Vec3<T>(m.X.p - joint[i]), F), F};
  }
  for (int n = 0; n < wrenches; ++n) {
    const ExternalWrench<T>& w = wrench[n];
    const Transform<T>& X = k.link[w.link].X;
    const Force<T> link = w.in_link();
    const Vec3<T> F = X.R * link.linear, N = X.R * link.angular + cross(Vec3<T>(X.p - joint[w.body]), F);
    f[w.body].angular -= N, f[w.body].linear -= F;
  }
  const auto put = [&](int, int body, const Force<T>& w, const Vec3<T>& p) {
    f[body].angular -= w.angular + cross(Vec3<T>(p - joint[body]), w.linear), f[body].linear -= w.linear;
  };
  each_force_between(tree, k, put);
  add_forces(put);
  for (int i = tree.bodies - 1; i > 0; --i) {
    const int parent = tree.body[i].parent;
    f[parent] += {f[i].angular + cross(Vec3<T>(joint[i] - joint[parent]), f[i].linear), f[i].linear};
  }
  return {f, joint};
}

/// Compute the wrench that each joint applies to its successor, in the joint's frame on the successor: 6 numbers per body except the ground.
template <class T>
void reactions(const Tree& tree, Arena& arena, const Kinematics<T>& k, int wrenches, const ExternalWrench<T>* wrench, T* out) {
  const Force<T>* f = transmitted_by_bodies(tree, arena, k, wrenches, wrench, [](const auto&) {}).f;
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& body = tree.body[i];
    const Mat3<T> R = k.link[body.link].X.R * tree.numbers<T>()(body.X_joint.R);
    store(Force<T>{transpose_times(R, f[i].angular), transpose_times(R, f[i].linear)}, out + 6 * (i - 1));
  }
}

/// Compute the power of a body's inertial force along a virtual velocity W of the body's frame, in the form of coefficients of the inertial
/// parameters. The power is linear in these parameters, pi = (m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) about the frame's origin (van der Merwe 4.21,
/// 4.22):
///
///   m    W_u . a        m c = h    W_u . (dw x h + w x (w x h)) + W_w . (h x a)        I    W_w . I dw + (W_w x w) . I w
template <class T> SARRUS_INLINE void parameter_powers(const BodyMotion<T>& m, const Motion<T>& W, T* out) {
  const Vec3<T>&w = m.w, &dw = m.dw;
  const Vec3<T> by_h = cross(m.a, W.angular) + cross(W.linear, dw) + w * dot(w, W.linear) - W.linear * dot(w, w);
  const Vec3<T> turned = cross(W.angular, w);
  out[0] = dot(W.linear, m.a);
  for (int x = 0; x < 3; ++x) out[1 + x] = by_h(x);
  const int row[6] = {0, 0, 1, 0, 1, 2}, col[6] = {0, 1, 1, 2, 2, 2};
  for (int p = 0; p < 6; ++p) {
    const int r = row[p], c = col[p];
    out[4 + p] = W.angular(r) * dw(c) + turned(r) * w(c);
    if (r != c) out[4 + p] += W.angular(c) * dw(r) + turned(c) * w(r);
  }
}

/// Compute Y (nv x 10 bodies) with tau = Y pi; bodies are in the order of the user's description.
template <class T> void regressor(const Tree& tree, const Kinematics<T>& k, T* out) {
  const int columns = 10 * (tree.bodies - 1);
  for (int i = 0; i < tree.nv * columns; ++i) out[i] = T(0.0);
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& body = tree.body[i];
    const BodyMotion<T> m = body_motion(tree, k, body);
    for (int link = body.link; link != 0; link = tree.link[link].parent) {
      const Vec3<T> r = m.X.p - k.link[link].X.p;
      for (int c = tree.link[link].iv; c < tree.link[link].iv + tree.link[link].nv; ++c) {
        const Motion<T>& s = k.column[c];
        const Motion<T> virtual_motion = in_axes(m.X.R, Motion<T>{s.angular, s.linear + cross(s.angular, r)});
        parameter_powers(m, virtual_motion, out + c * columns + 10 * body.described);
      }
    }
  }
}

}  // namespace sarrus
