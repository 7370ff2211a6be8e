// Factorisation M = L^T D L along the branches of the tree, without fill-in (Featherstone, [RBDA] 6.5, Tables 6.3-6.5). It is used for the inverse of
// M, Omega = M^-1 J^T and Lambda^-1 = J M^-1 J^T (van der Merwe 5.51, 5.58).
#pragma once

#include "../simd/lanes.hpp"
#include "crba.hpp"
#include "frames.hpp"
#include "rnea.hpp"

namespace sarrus {

/// Call f with each velocity: descendants before their ancestors (inward), or ancestors before their descendants (outward).
template <class F> SARRUS_INLINE void inward(const Tree& tree, F&& f) {
  for (int i = tree.links - 1; i > 0; --i)
    for (int c = tree.link[i].iv + tree.link[i].nv - 1; c >= tree.link[i].iv; --c) f(c);
}
template <class F> SARRUS_INLINE void outward(const Tree& tree, F&& f) {
  for (int i = 1; i < tree.links; ++i)
    for (int c = tree.link[i].iv; c < tree.link[i].iv + tree.link[i].nv; ++c) f(c);
}

/// Factorise M in place: D replaces its diagonal, and row k of L the entries of row k at the ancestors of k. A pivot at rounding level becomes zero,
/// and divisions by it are not finite.
template <class T> void factorise(const Tree& tree, Arena& arena, T* M) {
  const int n = tree.nv, *up = tree.mass_parent;
  T* size = arena.take<T>(n);
  for (int k = 0; k < n; ++k) size[k] = M[k * n + k];
  int* run = arena.take<int>(n);  // for each velocity, the first of the consecutive indices in its chain of ancestors
  outward(tree, [&](int k) { run[k] = k > 0 && up[k] == k - 1 ? run[k - 1] : k; });
  inward(tree, [&](int k) {
    M[k * n + k] = unless_rounding(M[k * n + k], size[k]);
    const T inverse = T(1.0) / M[k * n + k];
    for (int i = up[k]; i >= 0; i = up[i]) {
      const T l = M[k * n + i] * inverse;
      for (int j = i; j >= 0; j = up[run[j]]) subtract_scaled(M + i * n + run[j], M + k * n + run[j], l, j - run[j] + 1);
      M[k * n + i] = l;
    }
  });
}

/// Replace x by L^-T x. x may be a packet of right-hand sides for the L of one state.
template <class F, class T> SARRUS_INLINE void solve_inward(const Tree& tree, const F* L, T* x, int stride) {
  inward(tree, [&](int k) {
    for (int i = tree.mass_parent[k]; i >= 0; i = tree.mass_parent[i]) x[i * stride] -= L[k * tree.nv + i] * x[k * stride];
  });
}
/// Replace x by L^-1 D^-1 x.
template <class F, class T> SARRUS_INLINE void solve_outward(const Tree& tree, const F* L, T* x, int stride) {
  const int n = tree.nv;
  outward(tree, [&](int k) {
    x[k * stride] /= L[k * n + k];
    for (int i = tree.mass_parent[k]; i >= 0; i = tree.mass_parent[i]) x[k * stride] -= L[k * n + i] * x[i * stride];
  });
}

/// Applies M^-1 to many right-hand sides. For one state, packets R contain several right-hand sides; for packets of states, right-hand sides are
/// processed one by one. A few right-hand sides remain in registers while a row is updated. The inward pass updates a row from the rows of its
/// descendants, which are contiguous in outward order; the outward pass updates it from the rows of its ancestors.
template <class T> class RowSolver {
 public:
  template <class R> static constexpr int columns = width_of<R> / width_of<T>;

  RowSolver(const Tree& tree, Arena& arena, const T* L) : tree_(tree), L_(L), n_(tree.nv) {
    order_ = arena.take<int>(n_), place_ = arena.take<int>(n_), carried_ = arena.take<int>(n_);
    int placed = 0;
    outward(tree, [&](int k) { order_[placed] = k, place_[k] = placed++, carried_[k] = 1; });
    inward(tree, [&](int k) {
      if (const int i = tree.mass_parent[k]; i >= 0) carried_[i] += carried_[k];
    });
  }

  /// Replace X (nv x count, row-major) by M^-1 X.
  template <class R> void solve(R* X, int count) const { in_tiles(X, count, false); }

  /// Compute M^-1 (nv x nv). Only the entries on and above the diagonal are computed; the others follow by symmetry.
  template <class R> void invert(Arena& arena, T* out) const {
    const Arena::Scope scope(arena);
    const int count = (n_ + columns<R> - 1) / columns<R>;
    R* X = arena.take<R>(n_ * count);
    std::fill(X, X + n_ * count, R(0.0));
    const auto entry = [&](int k, int place) -> T& { return reinterpret_cast<T*>(X + k * count)[place]; };
    for (int k = 0; k < n_; ++k) entry(k, place_[k]) = T(1.0);
    in_tiles(X, count, true);
    for (int k = 0; k < n_; ++k)
      for (int p = place_[k]; p < n_; ++p) out[k * n_ + order_[p]] = out[order_[p] * n_ + k] = entry(k, p);
  }

 private:
  /// upper: the right-hand sides are the unit matrix, in the order of velocities, and only entries on and above the diagonal are computed.
  template <class R> void in_tiles(R* X, int count, bool upper) const {
    const auto rows = [&](int end) { return upper ? std::min(n_, end * columns<R>) : n_; };
    int begin = 0;
    for (; begin + 4 <= count; begin += 4) tile<4>(X + begin, count, rows(begin + 4));
    for (; begin + 2 <= count; begin += 2) tile<2>(X + begin, count, rows(begin + 2));
    if (begin < count) tile<1>(X + begin, count, rows(begin + 1));
  }
  /// A velocity and its parent, if they are neighbours in outward order, are updated together, because both sums use the same rows.
  template <int size, class R> void tile(R* X, int stride, int rows) const {
    const int* up = tree_.mass_parent;
    for (int p = rows - 1; p >= 0; --p) {
      const int k = order_[p], last = std::min(rows, p + carried_[k]);
      R sum[size], *row = X + k * stride;
      for (int c = 0; c < size; ++c) sum[c] = row[c];
      if (p == 0 || up[k] != order_[p - 1]) {
        subtract_rows<size>(X, stride, k, p + 1, last, sum);
        for (int c = 0; c < size; ++c) row[c] = sum[c];
        continue;
      }
      const int parent = order_[--p];
      R above[size], *row_above = X + parent * stride;
      for (int c = 0; c < size; ++c) above[c] = row_above[c];
      for (int other = p + 2; other < last; ++other) {
        const int j = order_[other];
        const R l(L_[j * n_ + k]), l_above(L_[j * n_ + parent]);
        for (int c = 0; c < size; ++c) sum[c] -= l * X[j * stride + c], above[c] -= l_above * X[j * stride + c];
      }
      const R l(L_[k * n_ + parent]);
      for (int c = 0; c < size; ++c) row[c] = sum[c], above[c] -= l * sum[c];
      subtract_rows<size>(X, stride, parent, last, std::min(rows, p + carried_[parent]), above);
      for (int c = 0; c < size; ++c) row_above[c] = above[c];
    }
    for (int p = 0; p < rows; ++p) {
      const int k = order_[p];
      const R inverse = R(T(1.0) / L_[k * n_ + k]);
      R sum[size], *row = X + k * stride;
      for (int c = 0; c < size; ++c) sum[c] = row[c] * inverse;
      if (p + 1 == rows || up[order_[p + 1]] != k) {
        for (int i = up[k]; i >= 0; i = up[i])
          for (int c = 0; c < size; ++c) sum[c] -= R(L_[k * n_ + i]) * X[i * stride + c];
        for (int c = 0; c < size; ++c) row[c] = sum[c];
        continue;
      }
      const int child = order_[++p];
      const R inverse_below = R(T(1.0) / L_[child * n_ + child]);
      R below[size], *row_below = X + child * stride;
      for (int c = 0; c < size; ++c) below[c] = row_below[c] * inverse_below;
      for (int i = up[k]; i >= 0; i = up[i]) {
        const R l(L_[k * n_ + i]), l_below(L_[child * n_ + i]);
        for (int c = 0; c < size; ++c) sum[c] -= l * X[i * stride + c], below[c] -= l_below * X[i * stride + c];
      }
      const R l(L_[child * n_ + k]);
      for (int c = 0; c < size; ++c) row[c] = sum[c], row_below[c] = below[c] - l * sum[c];
    }
  }
  /// Subtract from `sum` the rows at the places begin .. end - 1, multiplied by their entries of L in column k.
  template <int size, class R> SARRUS_INLINE void subtract_rows(const R* X, int stride, int k, int begin, int end, R* sum) const {
    for (int other = begin; other < end; ++other) {
      const int j = order_[other];
      for (int c = 0; c < size; ++c) sum[c] -= R(L_[j * n_ + k]) * X[j * stride + c];
    }
  }

  const Tree& tree_;
  const T* L_;
  int n_, *order_, *place_, *carried_;  // carried_: number of descendants of a velocity, including itself
};

/// Compute a = M^-1 (tau - h), as aba() does for a tree, but including the armature of loop joints.
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
  RowSolver<T>(tree, arena, L).template invert<Along<T>>(arena, out);
}

/// Compute L, and Y = L^-T J^T (nv x 6) for the Jacobian J of a frame.
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
