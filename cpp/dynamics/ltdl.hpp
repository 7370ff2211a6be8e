// M = L^T D L along the branches of the tree, without fill-in. Featherstone, [RBDA] 6.5, Tables 6.3-6.5. And what it is for: the
// inverse of M, Omega = M^-1 J^T and Lambda^-1 = J M^-1 J^T (van der Merwe 5.51, 5.58).
#pragma once

#include "crba.hpp"
#include "frames.hpp"
#include "rnea.hpp"

namespace sarrus {

/// Calls f with each velocity, descendants before their ancestors, or the other way round.
template <class F> SARRUS_INLINE void inward(const Tree& tree, F&& f) {
  for (int i = tree.links - 1; i > 0; --i)
    for (int c = tree.link[i].iv + tree.link[i].nv - 1; c >= tree.link[i].iv; --c) f(c);
}
template <class F> SARRUS_INLINE void outward(const Tree& tree, F&& f) {
  for (int i = 1; i < tree.links; ++i)
    for (int c = tree.link[i].iv; c < tree.link[i].iv + tree.link[i].nv; ++c) f(c);
}

/// M becomes D on its diagonal and row k of L at the ancestors of k.
/// Where a pivot is nothing but rounding it becomes zero, and what is divided by it is not finite.
template <class T> void factorise(const Tree& tree, Arena& arena, T* M) {
  const int n = tree.nv, *up = tree.mass_parent;
  T* size = arena.take<T>(n);
  for (int k = 0; k < n; ++k) size[k] = M[k * n + k];
  inward(tree, [&](int k) {
    M[k * n + k] = unless_rounding(M[k * n + k], size[k]);
    const T inverse = T(1.0) / M[k * n + k];
    for (int i = up[k]; i >= 0; i = up[i]) {
      const T l = M[k * n + i] * inverse;
      for (int j = i; j >= 0; j = up[j]) M[i * n + j] -= l * M[k * n + j];
      M[k * n + i] = l;
    }
  });
}

/// x becomes L^-T x. It may be a packet of right-hand sides, of one state's L.
template <class F, class T> SARRUS_INLINE void solve_inward(const Tree& tree, const F* L, T* x, int stride) {
  inward(tree, [&](int k) {
    for (int i = tree.mass_parent[k]; i >= 0; i = tree.mass_parent[i]) x[i * stride] -= L[k * tree.nv + i] * x[k * stride];
  });
}
/// x becomes L^-1 D^-1 x.
template <class F, class T> SARRUS_INLINE void solve_outward(const Tree& tree, const F* L, T* x, int stride) {
  const int n = tree.nv;
  outward(tree, [&](int k) {
    x[k * stride] /= L[k * n + k];
    for (int i = tree.mass_parent[k]; i >= 0; i = tree.mass_parent[i]) x[k * stride] -= L[k * n + i] * x[i * stride];
  });
}

/// X (nv x count) becomes M^-1 X, row by row: so many right-hand sides are as many numbers side by side.
template <class T> void solve_rows(const Tree& tree, const T* L, T* X, int count) {
  const int n = tree.nv, *up = tree.mass_parent;
  inward(tree, [&](int k) {
    for (int i = up[k]; i >= 0; i = up[i]) subtract_scaled(X + i * count, X + k * count, L[k * n + i], count);
  });
  outward(tree, [&](int k) {
    const T inverse = T(1.0) / L[k * n + k];
    for (int c = 0; c < count; ++c) X[k * count + c] *= inverse;
    for (int i = up[k]; i >= 0; i = up[i]) subtract_scaled(X + k * count, X + i * count, L[k * n + i], count);
  });
}

/// a = M^-1 (tau - h), as aba() has it of a tree alone: with what armature of joints that close loops ties.
template <class T> SARRUS_NOINLINE void tied_dynamics(const Tree& tree, Arena& arena, const T* q, const T* v, const T* tau,
                                                      T* a) {
  T* L = arena.take<T>(tree.nv * tree.nv);
  crba(tree, arena, q, L);
  factorise(tree, arena, L);
  rnea(tree, arena, RneaInput<T>{q, v, zeros<T>(arena, tree.nv)}, a);
  for (int k = 0; k < tree.nv; ++k) a[k] = tau[k] - a[k];
  solve_inward(tree, L, a, 1);
  solve_outward(tree, L, a, 1);
}

template <class T> void mass_matrix_inverse(const Tree& tree, Arena& arena, const T* q, T* out) {
  const int n = tree.nv;
  T* L = arena.take<T>(n * n);
  crba(tree, arena, q, L);
  factorise(tree, arena, L);
  for (int i = 0; i < n * n; ++i) out[i] = T(i % (n + 1) == 0 ? 1.0 : 0.0);
  solve_rows(tree, L, out, n);
  for (int i = 0; i < n; ++i)  // it is symmetric, and exactly so
    for (int j = 0; j < i; ++j) out[i * n + j] = out[j * n + i] = T(0.5) * (out[i * n + j] + out[j * n + i]);
}

/// Y = L^-T J^T (nv x 6) of a frame, and L.
template <class T> void operational_factor(const Tree& tree, Arena& arena, const T* q, const Frame& f, T* L, T* Y) {
  const int n = tree.nv;
  crba(tree, arena, q, L);
  factorise(tree, arena, L);
  const Kinematics<T> k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, q, static_cast<const T*>(nullptr), static_cast<const T*>(nullptr), k);
  T* J = arena.take<T>(6 * n);
  frame_jacobian(tree, k, f, J, static_cast<T*>(nullptr));
  for (int r = 0; r < 6; ++r) {
    for (int c = 0; c < n; ++c) Y[6 * c + r] = J[r * n + c];
    solve_inward(tree, L, Y + r, 6);
  }
}

template <class T> void omega(const Tree& tree, Arena& arena, const T* q, const Frame& f, T* out) {
  T* L = arena.take<T>(tree.nv * tree.nv);
  operational_factor(tree, arena, q, f, L, out);
  for (int r = 0; r < 6; ++r) solve_outward(tree, L, out + r, 6);
}

template <class T> void operational_inertia_inverse(const Tree& tree, Arena& arena, const T* q, const Frame& f, T* out) {
  const int n = tree.nv;
  T *L = arena.take<T>(n * n), *Y = arena.take<T>(6 * n);
  operational_factor(tree, arena, q, f, L, Y);
  for (int i = 0; i < 36; ++i) out[i] = T(0.0);
  for (int c = 0; c < n; ++c) {
    const T inverse = T(1.0) / L[c * n + c];
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j <= i; ++j) out[6 * i + j] += Y[6 * c + i] * Y[6 * c + j] * inverse;
  }
  for (int i = 0; i < 6; ++i)
    for (int j = 0; j < i; ++j) out[6 * j + i] = out[6 * i + j];
}

}  // namespace sarrus
