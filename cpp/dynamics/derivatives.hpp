// Derivatives of inverse dynamics with respect to v and to a displacement d (nv) in the tangent space, which changes the configuration to
// integrate(q, d).
//
// The recursion of rnea_derivatives.hpp differentiates the bodies. Joint forces, and mechanisms that the recursion does not support, are
// differentiated by inverse dynamics on dual numbers, with as many directions as R has lanes (simd/dual.hpp).
//
//   cost    O(bodies * depth), or O(bodies) per direction
#pragma once

#include <algorithm>

#include "configuration.hpp"
#include "crba.hpp"
#include "rnea.hpp"
#include "rnea_derivatives.hpp"

namespace sarrus {

/// A dual number of one state, or of several states in lanes.
template <class R, class T = double> using Varied = Dual<T, R>;

/// Displacements (nv), one per lane; null: none.
template <class R> struct Directions {
  const R *q = nullptr, *v = nullptr, *a = nullptr;
};

/// Convert a vector to dual numbers with zero rates, because it is constant along the direction.
template <class R, class T> Vec3<Varied<R, T>> still(const Vec3<T>& x) {
  return vec3<Varied<R, T>>({x(0), R(0.0)}, {x(1), R(0.0)}, {x(2), R(0.0)});
}
template <class R, class T> Transform<Varied<R, T>> still(const Transform<T>& X) {
  Transform<Varied<R, T>> Y;
  for (int k = 0; k < 9; ++k) Y.R(k % 3, k / 3) = {X.R(k % 3, k / 3), R(0.0)};
  Y.p = still<R>(X.p);
  return Y;
}

/// Return x with these rates as dual numbers; null rates are zero. Return null if x is null.
template <class R, class T> const Varied<R, T>* varied(Arena& arena, int n, const T* x, const R* rate) {
  if (!x) return nullptr;
  auto* both = arena.take<Varied<R, T>>(n);
  for (int k = 0; k < n; ++k) both[k] = {x[k], rate ? rate[k] : R(0.0)};
  return both;
}
template <class R, class T> const Varied<R, T>* varied_configuration(const Tree& tree, Arena& arena, const T* q, const R* d) {
  if (!d) return varied(arena, tree.nq, q, d);
  R *constant_q = arena.take<R>(tree.nq), *rate = arena.take<R>(tree.nq);
  for (int k = 0; k < tree.nq; ++k) constant_q[k] = R(q[k]);
  coordinate_rate<R>(tree, constant_q, d, rate);
  return varied(arena, tree.nq, q, static_cast<const R*>(rate));
}

/// Inputs of inverse dynamics as dual numbers, with the rates along the directions.
template <class R, class T>
RneaInput<Varied<R, T>> varied(const Tree& tree, Arena& arena, const RneaInput<T>& in, const Directions<R>& along) {
  const R* none = nullptr;
  const auto constant = [&](int n, const T* x) { return varied(arena, n, x, none); };
  auto* wrench = arena.take<ExternalWrench<Varied<R, T>>>(in.wrenches);
  for (int k = 0; k < in.wrenches; ++k)
    wrench[k] = {in.wrench[k].link, in.wrench[k].body, still<R>(in.wrench[k].X), constant(6, in.wrench[k].value)};
  return {varied_configuration(tree, arena, in.q, along.q),
          varied(arena, tree.nv, in.v, along.v),
          varied(arena, tree.nv, in.a, along.a),
          {constant(6, in.ground.velocity), constant(6, in.ground.acceleration)},
          in.wrenches,
          wrench};
}

/// Compute the rate of tau along these directions.
inline void inverse_dynamics_jvp(const Tree& tree, Arena& arena, const RneaInput<double>& in, const Directions<double>& along,
                                 double* rate) {
  auto* tau = arena.take<Varied<double>>(tree.nv);
  rnea(tree, arena, varied(tree, arena, in, along), tau);
  for (int k = 0; k < tree.nv; ++k) rate[k] = tau[k].rate;
}

/// Call each(first, count, d) for all velocities: d contains the unit displacements of velocities first .. first + count - 1, one per lane.
template <class R, class Each> void each_direction(const Tree& tree, Arena& arena, Each each) {
  for (int first = 0; first < tree.nv; first += width_of<R>) {
    const Arena::Scope scope(arena);
    const int count = std::min(width_of<R>, tree.nv - first);
    R* d = arena.take<R>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) d[k] = R(0.0);
    for (int l = 0; l < count; ++l) lane(d[first + l], l) = 1.0;
    each(first, count, d);
  }
}

/// Write each lane to one column of a matrix with nv columns.
template <class R> void store_columns(const Tree& tree, int rows, const R* x, int first, int count, double* out) {
  for (int i = 0; i < rows; ++i)
    for (int l = 0; l < count; ++l) out[i * tree.nv + first + l] = lane(x[i], l);
}

/// Return true if no forces act between bodies and no joint with several velocities is reversed. A reversed joint is excluded because its columns
/// depend on other velocities of the joint than those of the original joint.
inline bool is_plain_tree(const Tree& tree) {
  bool plain = !tree.ties_links;
  for (int i = 1; i < tree.links; ++i) plain &= tree.link[i].nv == 1 || tree.link[i].joint != JointKind::reversed;
  return plain;
}

/// Compute the derivatives of the joint forces of a plain tree. Each force depends only on the motion of its own joint, so one direction can perturb
/// one velocity of every joint at once.
template <class T>
void add_joint_force_derivatives(const Tree& tree, Arena& arena, const RneaInput<T>& in, T* by_q, T* by_v) {
  using D = Dual<T>;
  const int n = tree.nv;
  D *q = arena.take<D>(tree.nq), *v = arena.take<D>(n), *tau = arena.take<D>(n);
  T *d = arena.take<T>(n), *rate = arena.take<T>(tree.nq);
  int most = 0;
  for (int i = 1; i < tree.links; ++i) most = std::max(most, tree.link[i].nv);
  for (int c = 0; c < most; ++c) {
    for (int i = 1; i < tree.links; ++i)
      for (int k = 0; k < tree.link[i].nv; ++k) d[tree.link[i].iv + k] = T(k == c ? 1.0 : 0.0);
    coordinate_rate(tree, in.q, d, rate);
    for (const bool along_q : {true, false}) {
      for (int k = 0; k < tree.nq; ++k) q[k] = {in.q[k], along_q ? rate[k] : T(0.0)};
      for (int k = 0; k < n; ++k) v[k] = {in.v[k], along_q ? T(0.0) : d[k]}, tau[k] = D(0.0);
      add_joint_forces(tree, static_cast<const D*>(q), static_cast<const D*>(v), D(1.0), tau);
      T* out = along_q ? by_q : by_v;
      for (int i = 1; i < tree.links; ++i) {
        const Link& b = tree.link[i];
        for (int k = b.iv; k < b.iv + b.nv && c < b.nv; ++k) out[k * n + b.iv + c] += tau[k].rate;
      }
    }
  }
}

/// Compute the derivatives of inverse dynamics of a plain tree; by_a may be null.
template <class R, class T>
void plain_tree_derivatives(const Tree& tree, Arena& arena, const RneaInput<T>& in, const TreeMotion<T>& motion, T* by_q, T* by_v,
                            T* by_a = nullptr) {
  rnea_derivatives<R>(tree, arena, motion, by_q, by_v, by_a);
  for (int k = 0; k < tree.nv && by_a; ++k) by_a[k * tree.nv + k] += tree.numbers<T>()(tree.passive[k].armature);
  if (tree.has_joint_forces) add_joint_force_derivatives(tree, arena, in, by_q, by_v);
}

/// Compute d tau / d q, d tau / d v and d tau / d a, which is the mass matrix (nv x nv each); by_a may be null.
template <class R>
void inverse_dynamics_derivatives(const Tree& tree, Arena& arena, const RneaInput<double>& in, double* by_q, double* by_v,
                                  double* by_a = nullptr) {
  if (is_plain_tree(tree))
    return plain_tree_derivatives<R>(tree, arena, in, TreeMotion<double>::at(tree, arena, in), by_q, by_v, by_a);
  if (by_a) crba(tree, arena, in.q, by_a);
  Varied<R>* tau = arena.take<Varied<R>>(tree.nv);
  each_direction<R>(tree, arena, [&](int first, int count, const R* d) {
    for (const bool along_q : {true, false}) {
      const Arena::Scope scope(arena);
      rnea(tree, arena, varied<R>(tree, arena, in, along_q ? Directions<R>{d, nullptr} : Directions<R>{nullptr, d}), tau);
      double* out = along_q ? by_q : by_v;
      for (int i = 0; i < tree.nv; ++i)
        for (int l = 0; l < count; ++l) out[i * tree.nv + first + l] = lane(tau[i].rate, l);
    }
  });
}

}  // namespace sarrus
