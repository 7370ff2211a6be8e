// What is asked of the bodies as they were described, before fixed joints were welded: the wrench that every joint carries, and the
// regressor of their inertial parameters. From Newton and Euler's equations of each part (van der Merwe 4.21, 4.22).
#pragma once

#include "between_bodies.hpp"

namespace sarrus {

/// Motion of a part's frame: in its own axes, acceleration against gravity.
template <class T> struct PartMotion {
  Transform<T> X;  // in the world
  Vec3<T> w, dw, a;
};
template <class T> SARRUS_INLINE PartMotion<T> part_motion(const Tree& tree, const Kinematics<T>& k, const Part& part) {
  const BodyMotion<T>& b = k.body[part.body];
  PartMotion<T> m;
  m.X = b.X * cast<T>(part.X);
  const Vec3<T> r = m.X.p - b.X.p, &w = b.V.angular;
  const Vec3<T> a = b.A.linear + cross(b.A.angular, r) + cross(w, cross(w, r)) - cast<T>(tree.gravity);
  m.w = transpose_times(m.X.R, w), m.dw = transpose_times(m.X.R, b.A.angular), m.a = transpose_times(m.X.R, a);
  return m;
}

/// The wrench that each joint exerts on the body it carries, in the joint's frame on that body: 6 numbers a part, the ground left out.
template <class T>
void reactions(const Tree& tree, Arena& arena, const Kinematics<T>& k, int wrenches, const ExternalWrench<T>* wrench, T* out) {
  Force<T>* f = arena.take<Force<T>>(tree.parts);  // in world axes at the origin of the part's joint
  Vec3<T>* joint = arena.take<Vec3<T>>(tree.parts);
  for (int i = 0; i < tree.parts; ++i) {
    const Part& part = tree.part[i];
    const PartMotion<T> m = part_motion(tree, k, part);
    joint[i] = k.body[part.body].X.p + k.body[part.body].X.R * cast<T>(part.X_joint.p);
    const Inertia<T> I = cast<T>(part.inertia);
    Force<T> need = I * Motion<T>{m.dw, m.a};
    need += I.gyroscopic(m.w);
    const Vec3<T> F = m.X.R * need.linear;
    f[i] = {m.X.R * need.angular + cross(Vec3<T>(m.X.p - joint[i]), F), F};
  }
  for (int n = 0; n < wrenches; ++n) {
    const ExternalWrench<T>& w = wrench[n];
    const Transform<T>& X = k.body[w.body].X;
    const Force<T> body = w.in_body();
    const Vec3<T> F = X.R * body.linear, N = X.R * body.angular + cross(Vec3<T>(X.p - joint[w.part]), F);
    f[w.part].angular -= N, f[w.part].linear -= F;
  }
  each_force_between(tree, k, [&](int, int part, const Force<T>& w, const Vec3<T>& p) {
    f[part].angular -= w.angular + cross(Vec3<T>(p - joint[part]), w.linear), f[part].linear -= w.linear;
  });
  for (int i = tree.parts - 1; i > 0; --i) {
    const Part& part = tree.part[i];
    const Mat3<T> R = k.body[part.body].X.R * cast<T>(part.X_joint.R);
    store(Force<T>{transpose_times(R, f[i].angular), transpose_times(R, f[i].linear)}, out + 6 * (i - 1));
    f[part.parent] += {f[i].angular + cross(Vec3<T>(joint[i] - joint[part.parent]), f[i].linear), f[i].linear};
  }
}

/// Y (nv x 10 parts) with tau = Y pi, pi = (m, m c, Ixx, Ixy, Iyy, Ixz, Iyz, Izz) of each part about its own frame's origin,
/// in the order of the description.
template <class T> void regressor(const Tree& tree, const Kinematics<T>& k, T* out) {
  const int columns = 10 * (tree.parts - 1);
  for (int i = 0; i < tree.nv * columns; ++i) out[i] = T(0.0);
  for (int i = 1; i < tree.parts; ++i) {
    const Part& part = tree.part[i];
    const PartMotion<T> m = part_motion(tree, k, part);
    const Vec3<T>&w = m.w, &dw = m.dw;
    Force<T> unit[10];
    unit[0] = {zero3<T>(), m.a};
    for (int x = 0; x < 3; ++x) {
      const Vec3<T> e = unit_motion<T>(x).angular;
      unit[1 + x] = {cross(e, m.a), cross(dw, e) + cross(w, cross(w, e))};
    }
    const int row[6] = {0, 0, 1, 0, 1, 2}, col[6] = {0, 1, 1, 2, 2, 2};
    for (int p = 0; p < 6; ++p) {
      Vec3<T> Iw = zero3<T>(), Idw = zero3<T>();  // of the symmetric matrix with ones at (row, col)
      Iw(row[p]) = w(col[p]), Iw(col[p]) = w(row[p]);
      Idw(row[p]) = dw(col[p]), Idw(col[p]) = dw(row[p]);
      unit[4 + p] = {Idw + cross(w, Iw), zero3<T>()};
    }
    for (int body = part.body; body != 0; body = tree.body[body].parent) {
      const Vec3<T> r = m.X.p - k.body[body].X.p;
      for (int c = tree.body[body].iv; c < tree.body[body].iv + tree.body[body].nv; ++c) {
        const Motion<T>& s = k.column[c];
        const Motion<T> here = in_axes(m.X.R, Motion<T>{s.angular, s.linear + cross(s.angular, r)});
        for (int p = 0; p < 10; ++p) out[c * columns + 10 * part.described + p] = dot(here, unit[p]);
      }
    }
  }
}

}  // namespace sarrus
