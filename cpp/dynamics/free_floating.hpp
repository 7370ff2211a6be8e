// Floating mechanisms: the motion of the base follows from that of the joints by conservation of momentum (SpaceDyn 3.16-3.28). With the base's
// motion x_b and the joints' coordinates phi,
//
//   momentum            p = H_b x_b' + H_bm phi'                     the base's rows of 3.18, integrated
//   frame               x_h' = J_b x_b' + J_m phi'                   (3.16)
//   therefore           x_h' = J* phi' + J_b H_b^-1 p,   J* = J_m - J_b H_b^-1 H_bm
//
// The coordinates of the base are arbitrary, because H_b belongs to a rigid motion of all bodies. A joint's column of J* is the motion that the joint
// alone causes, minus the rigid motion of all bodies that cancels its momentum. Therefore J* does not depend on the choice of the base. These
// equations also hold with loops, which only restrict phi'.
#pragma once

#include "../spatial/symmetric.hpp"
#include "configuration.hpp"
#include "frames.hpp"
#include "momentum.hpp"

namespace sarrus {

// link of the base of a floating mechanism, which is connected to the ground by a free joint only
constexpr int base_link = 1;

/// Compute kinematics with poses of links and columns of joints only.
template <class T> Kinematics<T> placed_links(const Tree& tree, Arena& arena, const T* q) {
  const auto k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  Transform<T>* X = arena.take<Transform<T>>(tree.links);
  Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
  joint_poses(tree, arena, q, X, columns);
  k.link[0].X = Transform<T>::identity();
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    k.link[i].X = b.parent == 0 ? X[i] : k.link[b.parent].X * X[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto S = joint.subspace(columns + b.iv);
      for (int l = 0; l < joint.nv; ++l) k.column[b.iv + l] = turned(k.link[i].X.R, S.column[l]);
    });
  }
  return k;
}

/// Inertia of the mechanism with all joints locked, as one rigid body, in world axes about a given point.
template <class T> class LockedBodies {
 public:
  explicit SARRUS_INLINE LockedBodies(const Inertia<T>& I) : inverse_mass_(T(1.0) / I.m), c_(I.h * inverse_mass_) {
    const Sym3<T> ch = symmetric_product(c_, I.h);  // convert the inertia to one about the centre of mass: I - m (c.c - c c^T)
    const T cc = dot(c_, I.h), half = T(0.5);
    const T scale[3] = {I.I.xx, I.I.yy, I.I.zz};
    T about_c[3][3] = {};
    about_c[0][0] = I.I.xx - cc + half * ch.xx;
    about_c[1][0] = I.I.xy + half * ch.xy, about_c[1][1] = I.I.yy - cc + half * ch.yy;
    about_c[2][0] = I.I.xz + half * ch.xz, about_c[2][1] = I.I.yz + half * ch.yz, about_c[2][2] = I.I.zz - cc + half * ch.zz;
    invert_symmetric(3, about_c, scale, inverse_);
  }

  /// Return the motion of the rigid body at the given point, from its momentum about that point.
  SARRUS_INLINE Motion<T> motion(const Force<T>& h) const {
    const Vec3<T> L = h.angular - cross(c_, h.linear);
    Vec3<T> w;
    for (int i = 0; i < 3; ++i) w(i) = inverse_[6 * i] * L(0) + inverse_[6 * i + 1] * L(1) + inverse_[6 * i + 2] * L(2);
    return {w, h.linear * inverse_mass_ - cross(w, c_)};
  }

 private:
  T inverse_mass_;
  Vec3<T> c_;  // centre of mass
  T inverse_[18];  // inverse of the rotational inertia about the centre of mass, in rows of six
};

/// Compute J* (6 x (nv - 6)); its columns belong to all velocities except those of the base, in their order.
template <class T> void generalized_jacobian(const Tree& tree, Arena& arena, const T* q, const Frame& f, T* out) {
  const Kinematics<T> k = placed_links(tree, arena, q);
  const int base = tree.link[base_link].iv, n = tree.nv - 6;
  const Vec3<T> about = k.link[base_link].X.p;
  const Inertia<T>* subtree = subtree_inertias(tree, arena, k, about);
  const LockedBodies<T> all(subtree[base_link]);
  const Transform<T> X = k.link[f.link].X * k.numbers(f.X);
  const Vec3<T> r = (f.expressed_in == ExpressedIn::world ? zero3<T>() : X.p) - about;
  for (int i = base_link + 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const bool carries = i <= f.link && f.link < b.end;
    for (int l = 0; l < b.nv; ++l) {
      const Motion<T>& column = k.column[b.iv + l];
      const Motion<T> s = {column.angular, column.linear + cross(column.angular, Vec3<T>(about - k.link[i].X.p))};
      Motion<T> J = all.motion(subtree[i] * s) * T(-1.0);
      if (carries) J = J + s;
      J.linear += cross(J.angular, r);
      if (f.link == 0) J = Motion<T>::zero();  // the frame is on the ground
      if (f.expressed_in == ExpressedIn::frame) J = in_axes(X.R, J);
      const int c = b.iv + l < base ? b.iv + l : b.iv + l - 6;
      for (int x = 0; x < 3; ++x) out[x * n + c] = J.angular(x), out[(3 + x) * n + c] = J.linear(x);
    }
  }
}

/// Compute the rate of J* along v, by dual numbers.
template <class T>
void generalized_jacobian_derivative(const Tree& tree, Arena& arena, const T* q, const T* v, const Frame& f, T* out) {
  const int size = 6 * (tree.nv - 6);
  T* q_dot = arena.take<T>(tree.nq);
  coordinate_rate(tree, q, v, q_dot);
  Dual<T>* J = arena.take<Dual<T>>(size);
  generalized_jacobian(tree, arena, static_cast<const Dual<T>*>(moving(arena, tree.nq, q, q_dot)), f, J);
  for (int i = 0; i < size; ++i) out[i] = J[i].rate;
}

/// Set the base's velocity in v so that the momentum of the mechanism is h (about the world's origin, in world axes; null: zero): H_b x_b' = p - H_bm
/// phi'.
template <class T> void momentum_velocity(const Tree& tree, Arena& arena, const T* q, const T* v, const T* h, T* out) {
  const int base = tree.link[base_link].iv;
  for (int i = 0; i < tree.nv; ++i) out[i] = i < base || i >= base + 6 ? v[i] : T(0.0);
  const auto k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, q, static_cast<const T*>(out), static_cast<const T*>(nullptr), k);
  const Vec3<T> about = k.link[base_link].X.p;
  Force<T> lacking = h ? load_force(h) : Force<T>::zero();
  lacking.angular -= cross(about, lacking.linear);
  lacking -= momentum(tree, k, about);

  const Inertia<T> all = subtree_inertias(tree, arena, k, about)[base_link];
  const Motion<T>* s = k.column + base;
  Force<T> p[6];
  T H[6][6], size[6], along[6], inverse[36];
  for (int i = 0; i < 6; ++i) {
    p[i] = all * s[i];
    for (int j = 0; j <= i; ++j) H[i][j] = dot(s[j], p[i]);
    size[i] = H[i][i];
  }
  invert_symmetric(6, H, size, inverse);
  // one correction step: without it, rounding errors of the inverse would accumulate in a simulation
  for (int twice = 0; twice < 2; ++twice) {
    for (int i = 0; i < 6; ++i) along[i] = dot(s[i], lacking);
    for (int i = 0; i < 6; ++i) {
      const T x = dot(6, inverse + 6 * i, along);
      out[base + i] += x;
      lacking -= p[i] * x;
    }
  }
}

}  // namespace sarrus
