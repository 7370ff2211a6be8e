// Gamma(q) (nv x nv x nv) with C(q, v)_ij = sum_k Gamma_ijk v_k, the matrix of coriolis.hpp: C v are the Coriolis and centrifugal forces and M-dot -
// 2C is skew. For joints with q-dot = v they are the Christoffel symbols of M (Li and Wu 4.3); Echeandia and Wensing (2021) derive a closed form,
// also for quasi-velocities.
//
// Let S be spatial columns about one point at rest, I the inertia of all bodies beyond the outermost of the three joints, and
//
//   P_i = I S_i . (S_j x S_k)       P_j = I S_j . (S_k x S_i)       P_k = I S_k . (S_i x S_j)
//
// The sum of J^T (I J-dot + B J) over the bodies is then, if i, j, k are on one path to the ground,
//
//   Gamma_ijk = 1/2 (-s P_i - P_j + P_k)      s = 1 if velocity k moves the axis of j (k is nearer to the ground, or of the same joint); else -1
//
// and otherwise 0, because S_j-dot contains the term v_k S_k x S_j if k moves the axis of j. Therefore the three products of a triple (a, b, c), with
// c outermost, yield Gamma for the six permutations of its indices. Gamma_ijk and Gamma_ikj differ only if j and k are velocities of one joint and
// not rates of coordinates; the difference is P_i, from the Lie bracket of S_j and S_k.
//
//   reads   q (nq)     writes  Gamma, row-major      cost  O(bodies * depth^2), 33 multiplications per triple
#pragma once

#include "../spatial/conversions.hpp"
#include "between_bodies.hpp"

namespace sarrus {

/// Add the contribution of joints whose columns change in the successor's axes: S_i . I S_jk, where S_jk is the rate of S_j per unit of velocity k.
template <class T>
SARRUS_NOINLINE void add_turning_columns(const Tree& tree, const JointCoordinates<T>& coordinates, int i, const Transform<T>& X,
                                         const Inertia<T>* I, const Motion<T>* S, T* out) {
  const Link& b = tree.link[i];
  const int n = tree.nv;
  T unit[6];
  for (int l = 0; l < 6; ++l) unit[l] = T(0.0);
  for (int k = b.iv; k < b.iv + b.nv; ++k) {
    JointMotion<T> J;
    unit[k - b.iv] = T(1.0);
    joint_motion(b.joint, b.nv, coordinates.of(b), unit, J);
    unit[k - b.iv] = T(0.0);
    for (int j = b.iv; j < b.iv + b.nv; ++j) {
      const Motion<T> S_jk = X.to_parent(J.column_rate[j - b.iv]);
      const Force<T> F = I[i] * S_jk;
      for (int a = b.iv + b.nv - 1; a >= 0; a = tree.column_parent[a]) out[(a * n + j) * n + k] += dot(S[a], F);
      for (int outer = i + 1; outer < b.end; ++outer)
        for (int a = tree.link[outer].iv; a < tree.link[outer].iv + tree.link[outer].nv; ++a)
          out[(a * n + j) * n + k] += dot(S_jk, I[outer] * S[a]);
    }
  }
}

template <class T> SARRUS_NOINLINE void christoffel_symbols(const Tree& tree, Arena& arena, const T* q, T* out) {
  const int n = tree.nv;
  for (int k = 0; k < n * n * n; ++k) out[k] = T(0.0);
  Transform<T>* X = arena.take<Transform<T>>(tree.links);
  Motion<T>*stored = arena.take<Motion<T>>(n), *S = arena.take<Motion<T>>(n);
  Inertia<T>* I = arena.take<Inertia<T>>(tree.links);
  joint_poses(tree, arena, q, X, stored);

  // all vectors are in the frame of the body next to the ground: in its axes, about its origin
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    if (b.root == i)
      X[i] = Transform<T>::identity();
    else if (b.parent != b.root)
      X[i] = X[b.parent] * X[i];
    I[i] = b.root == i ? tree.numbers<T>()(b.inertia) : transformed(X[i], tree.numbers<T>()(b.inertia));
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto columns = joint.subspace(stored + b.iv);
      for (int k = 0; k < joint.nv; ++k) S[b.iv + k] = b.root == i ? columns.column[k] : X[i].to_parent(columns.column[k]);
    });
  }

  Force<T>* IS = arena.take<Force<T>>(n);
  for (int i = tree.links - 1; i > 0; --i) {
    const Link& link = tree.link[i];
    if (link.parent != 0) I[link.parent] += I[i];
    if (link.nv == 0) continue;
    for (int a = link.iv + link.nv - 1; a >= 0; a = tree.column_parent[a]) IS[a] = I[i] * S[a];
    for (int c = link.iv; c < link.iv + link.nv; ++c)
      for (int b = c; b >= 0; b = tree.column_parent[b]) {
        const bool joint_bc = tree.column_link[b] == i;
        const Motion<T> bc = cross(S[b], S[c]);
        const Force<T> c_b = cross(S[c], IS[b]), b_c = cross(S[b], IS[c]);
        for (int a = b; a >= 0; a = tree.column_parent[a]) {
          const T P_a = dot(bc, IS[a]), P_b = -dot(S[a], c_b), P_c = dot(S[a], b_c);
          const T sum = T(0.5) * (P_a - P_b + P_c), rest = T(0.5) * (P_a - P_b - P_c);
          const bool joint_ab = tree.column_link[a] == tree.column_link[b], joint_ac = joint_bc && joint_ab;
          out[(a * n + c) * n + b] = sum, out[(a * n + b) * n + c] = joint_bc ? sum - P_a : sum;
          out[(b * n + c) * n + a] = rest, out[(b * n + a) * n + c] = joint_ac ? rest + P_b : rest;
          out[(c * n + b) * n + a] = -rest, out[(c * n + a) * n + b] = joint_ab ? -rest - P_c : -rest;
        }
      }
  }

  const auto turns = [](const Link& b) {
    return !visit_every(b.joint, b.nv, [](auto joint) { return joint.constant_subspace; });
  };
  for (int i = 1; i < tree.links; ++i)
    if (turns(tree.link[i])) add_turning_columns(tree, JointCoordinates<T>(tree, arena, q), i, X[i], I, S, out);

  if (tree.loops.rotor_rows == 0) return;
  T *unit = arena.take<T>(n), *C = arena.take<T>(n * n);
  for (int k = 0; k < n; ++k) unit[k] = T(0.0);
  for (int k = 0; k < n; ++k) {
    const Arena::Scope scope(arena);
    for (int r = 0; r < n * n; ++r) C[r] = T(0.0);
    unit[k] = T(1.0);
    add_loop_armature(tree, arena, q, static_cast<const T*>(unit), C);
    unit[k] = T(0.0);
    for (int r = 0; r < n * n; ++r) out[r * n + k] += C[r];
  }
}

/// Compute the derivative of M_ij along velocity k: Gamma_ijk + Gamma_jik, because M-dot = C + C^T.
template <class T> void mass_matrix_derivative(const Tree& tree, Arena& arena, const T* q, T* out) {
  christoffel_symbols(tree, arena, q, out);
  const int n = tree.nv;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j)
      for (int k = 0; k < n; ++k) {
        T &ij = out[(i * n + j) * n + k], &ji = out[(j * n + i) * n + k];
        ij = ji = ij + ji;
      }
}

}  // namespace sarrus
