// Centre of mass, momentum, energies, and the centroidal momentum matrix A_G with its bias. Orin, Goswami and Lee (2013); the centre
// of mass and the system's inertia are SpaceDyn 3.19-3.28.
#pragma once

#include "between_bodies.hpp"

namespace sarrus {

// include bodies welded to the ground: they contribute to the centre of mass and to the potential energy

/// Rotational inertia and centre of mass of a body, in world axes.
template <class T> struct Mass {
  T m;
  Vec3<T> c;  // centre of mass, from the world's origin
  Vec3<T> r;  // centre of mass, from the body's origin
  Sym3<T> I;  // about the body's origin
};
template <class T> SARRUS_INLINE Mass<T> mass_of(const Tree& tree, const Link& b, const LinkMotion<T>& k) {
  const auto numbers = tree.numbers<T>();
  const T m = numbers(b.inertia.m);
  const Vec3<T> h = k.X.R * numbers(b.inertia.h);
  const Vec3<T> r = h * inverse_or_zero(m);  // the centre of mass of a massless body is undefined, and not used
  return {m, k.X.p + r, r, rotate(k.X.R, numbers(b.inertia.I))};
}

template <class T> T total_mass(const Tree& tree) {
  T total = T(0.0);
  for (int i = 0; i < tree.links; ++i) total += tree.numbers<T>()(tree.link[i].inertia.m);
  return total;
}

template <class T> Vec3<T> center_of_mass(const Tree& tree, const Kinematics<T>& k) {
  Vec3<T> sum = zero3<T>();
  for (int i = 0; i < tree.links; ++i) {
    const Mass<T> b = mass_of(tree, tree.link[i], k.link[i]);
    sum += b.c * b.m;
  }
  return sum * (T(1.0) / total_mass<T>(tree));
}

/// Return the momentum of link i, [angular, about the point `about`; linear], in world axes.
template <class T> SARRUS_INLINE Force<T> momentum_of(const Tree& tree, int i, const Kinematics<T>& k, const Vec3<T>& about) {
  const Mass<T> b = mass_of(tree, tree.link[i], k.link[i]);
  const Motion<T>& V = k.link[i].V;
  const Vec3<T> p = (V.linear + cross(V.angular, b.r)) * b.m, h = b.r * b.m;
  const Vec3<T> L = b.I * V.angular + cross(h, V.linear);  // about the body's origin
  return {L + cross(Vec3<T>(k.link[i].X.p - about), p), p};
}
/// Return the momentum of all bodies.
template <class T> Force<T> momentum(const Tree& tree, const Kinematics<T>& k, const Vec3<T>& about) {
  Force<T> sum = Force<T>::zero();
  for (int i = 1; i < tree.links; ++i) sum += momentum_of(tree, i, k, about);
  return sum;
}

/// Return the rate of the momentum of link i about `about`, for the accelerations in k. `about` must be the centre of mass of all bodies or at rest.
template <class T>
SARRUS_INLINE Force<T> momentum_rate_of(const Tree& tree, int i, const Kinematics<T>& k, const Vec3<T>& about) {
  const Mass<T> b = mass_of(tree, tree.link[i], k.link[i]);
  const Motion<T>&V = k.link[i].V, &A = k.link[i].A;
  const Vec3<T>& w = V.angular;
  const Vec3<T> f = (A.linear + cross(A.angular, b.r) + cross(w, cross(w, b.r))) * b.m, h = b.r * b.m;
  const Vec3<T> n = b.I * A.angular + cross(w, Vec3<T>(b.I * w)) + cross(h, A.linear);
  return {n + cross(Vec3<T>(k.link[i].X.p - about), f), f};
}
template <class T> Force<T> momentum_rate(const Tree& tree, const Kinematics<T>& k, const Vec3<T>& about) {
  Force<T> sum = Force<T>::zero();
  for (int i = 1; i < tree.links; ++i) sum += momentum_rate_of(tree, i, k, about);
  return sum;
}

/// Compute the inertia of each body together with its descendants, about the point `about`, in world axes.
template <class T>
SARRUS_INLINE const Inertia<T>* subtree_inertias(const Tree& tree, Arena& arena, const Kinematics<T>& k, const Vec3<T>& about) {
  Inertia<T>* subtree = arena.take<Inertia<T>>(tree.links);
  for (int i = 1; i < tree.links; ++i) {
    Transform<T> X = k.link[i].X;
    X.p -= about;
    subtree[i] = transformed(X, tree.numbers<T>()(tree.link[i].inertia));
  }
  for (int i = tree.links - 1; i > 0; --i)
    if (tree.link[i].parent != 0) subtree[tree.link[i].parent] += subtree[i];
  return subtree;
}

/// Compute the momentum matrix (6 x nv) about the point `about`: each column is the momentum of the subtree that a unit velocity of the joint moves.
template <class T>
void momentum_matrix(const Tree& tree, Arena& arena, const Kinematics<T>& k, const Vec3<T>& about, T* out) {
  const Inertia<T>* subtree = subtree_inertias(tree, arena, k, about);
  for (int i = tree.links - 1; i > 0; --i) {
    const Link& b = tree.link[i];
    for (int c = b.iv; c < b.iv + b.nv; ++c) {
      const Motion<T>& s = k.column[c];
      const Motion<T> at_reference = {s.angular, s.linear + cross(s.angular, Vec3<T>(about - k.link[i].X.p))};
      const Force<T> h = subtree[i] * at_reference;
      for (int r = 0; r < 3; ++r) out[r * tree.nv + c] = h.angular(r), out[(3 + r) * tree.nv + c] = h.linear(r);
    }
  }
}

/// Return the kinetic energy 1/2 v^T M v, including that of armature.
template <class T> T kinetic_energy(const Tree& tree, const Kinematics<T>& k, const T* v) {
  T twice = T(0.0);
  for (int i = 1; i < tree.links; ++i) {
    const Motion<T> V = in_axes(k.link[i].X.R, k.link[i].V);
    twice += dot(V, tree.numbers<T>()(tree.link[i].inertia) * V);
  }
  for (int c = 0; c < tree.nv; ++c) twice += tree.numbers<T>()(tree.passive[c].armature) * v[c] * v[c];
  return T(0.5) * twice + (tree.ties_links ? loop_armature_energy(tree, k) : T(0.0));
}

/// Return the potential energy of gravity and joint springs. That of gravity is zero if the centre of mass is at the height of the world's origin.
template <class T> T potential_energy(const Tree& tree, const Kinematics<T>& k, const T* q) {
  T U = spring_energy(tree, k);
  for (int i = 0; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const Mass<T> mass = mass_of(tree, b, k.link[i]);
    U -= mass.m * dot(tree.numbers<T>()(tree.gravity), mass.c);
    BallDeflection<T> ball;
    if (has_ball_spring(b.described)) ball = BallDeflection<T>(log(Quaternion<T>::load(q + b.iq).normalized()));
    for (int l = 0; l < b.nv; ++l) {
      const PassiveTerms& f = tree.passive[b.iv + l];
      U += joint_energy(f, tree.numbers<T>(), deflection(f, tree.numbers<T>(), q, ball, l));
    }
  }
  return U;
}

}  // namespace sarrus
