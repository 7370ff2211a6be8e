// Linear least squares in strict order: each level A x = b does its best with what the levels before leave free (Nakamura 1991; Siciliano
// and Slotine 1991), in a form that needs no pivots, so that several states go side by side.
//
// What the levels have determined so far is kept as orthonormal directions q_j. A row is split into its parts along them and a rest
// (Gram-Schmidt, twice where much cancels); the rest, made unit, is a new direction, or nothing where the row depends on those before. With
// A N = L in the new directions the level solves min |L c - (b - A x)|, and x moves by the sum of c_j q_j: no later level can change A x.
//
// Near a singular position the rest is small beside the row. Below `singular` of it a level that may be missed is damped (Nakamura and
// Hanafusa 1986):  (L^T L + mu^2) c = L^T r  with mu growing from 0 to `singular` times the row's size.
#pragma once

#include <algorithm>
#include <cmath>

#include "../mechanism/arena.hpp"
#include "../simd/packet.hpp"

namespace sarrus {

/// Gram-Schmidt: takes from `rest` (n) its parts along orthonormal directions (count x n), twice where much cancels, and adds those from the
/// `first` direction on to `along`. `size` and what is returned: squares of its length before and after.
template <class T>
SARRUS_INLINE T orthogonalise(const T* directions, int first, int count, int n, const T& size, T* rest, T* along) {
  T left = size;
  for (int pass = 0; pass < 2; ++pass) {
    for (int j = 0; j < count; ++j) {
      const T part = scalar_product(directions + j * n, rest, n);
      subtract_scaled(rest, directions + j * n, part, n);
      if (j >= first) along[j - first] += part;
    }
    left = scalar_product(rest, rest, n);
    if (!any(left < size * T(0.01))) break;  // what cancels little has lost no digits
  }
  return left;
}

template <class T> struct Cascade {
  static constexpr double dependent = 1e-10;  // share of a row that is rounding
  static constexpr double singular = 1e-3;

  Arena& arena;
  int n;
  T* x;
  T* q;  // directions x n, with room for n more
  int directions = 0;
  T damping = T(0.0);  // largest mu beside the size of its row

  Cascade(Arena& a, int unknowns, int rows)
      : arena(a), n(unknowns), x(a.take<T>(unknowns)), q(a.take<T>(static_cast<std::size_t>(rows + unknowns) * unknowns)) {
    for (int k = 0; k < n; ++k) x[k] = T(0.0);
  }

  /// k rows, already weighted. `yields`: whether they may be damped.
  SARRUS_NOINLINE void add(const T* A, const T* b, int k, bool yields) {
    if (n == 0 || k == 0) return;
    const Arena::Scope scope(arena);
    const int first = directions;
    T *L = arena.template take<T>(k * k), *r = arena.template take<T>(k), *rest = arena.template take<T>(n),
      *mu = arena.template take<T>(k);
    bool exact = true;  // whether the level is triangular in all lanes
    for (int i = 0; i < k; ++i) {
      const T* row = A + i * n;
      const T size = scalar_product(row, row, n);
      r[i] = b[i] - scalar_product(row, x, n);
      for (int c = 0; c < n; ++c) rest[c] = row[c];
      for (int j = 0; j < k; ++j) L[i * k + j] = T(0.0);
      const T left = orthogonalise(q, first, directions, n, size, rest, L + i * k);
      const auto stands = left > size * T(dependent * dependent);
      const T ratio = sqrt(left / select(size > T(0.0), size, T(1.0))), length = sqrt(left);
      if (!any(stands)) {
        exact = false;
        continue;
      }
      const T inverse = select(stands, T(1.0) / select(stands, length, T(1.0)), T(0.0));
      T* direction = q + directions * n;
      for (int c = 0; c < n; ++c) direction[c] = rest[c] * inverse;
      const int own = directions++ - first;
      L[i * k + own] = select(stands, length, T(0.0));
      const T share = ratio * T(1.0 / singular);
      const auto damped = both(stands, share < T(1.0));
      mu[own] = T(0.0);
      if (any(damped) && yields) {
        const T relative = (T(1.0) - share * share) * T(singular);
        mu[own] = select(damped, relative * relative * size, T(0.0));
        damping = select(both(damped, relative > damping), relative, damping);
        exact = false;
      }
      if (any(left < size * T(dependent * dependent)) || any(size < T(1e-300))) exact = false;
    }
    const int news = directions - first;
    if (news == 0) return;
    T* c = arena.template take<T>(news);
    if (exact)
      forward(L, r, k, news, c);
    else
      least_squares(L, r, mu, k, news, c);
    for (int j = 0; j < news; ++j) subtract_scaled(x, q + (first + j) * n, -c[j], n);
  }

  /// Adds directions until there are n: unit vectors, those first of which most is free. For one state, as it compares numbers.
  void add_all_directions() {
    if (directions >= n) return;
    const Arena::Scope scope(arena);
    T *rest = arena.template take<T>(n * n), *size = arena.template take<T>(n), *along = arena.template take<T>(n);
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < n; ++k) rest[i * n + k] = T(k == i ? 1.0 : 0.0);
      for (int j = 0; j < directions; ++j) subtract_scaled(rest + i * n, q + j * n, q[j * n + i], n);
      size[i] = scalar_product(rest + i * n, rest + i * n, n);
    }
    while (true) {
      const int i = static_cast<int>(std::max_element(size, size + n) - size);
      T* direction = q + directions * n;
      std::copy(rest + i * n, rest + (i + 1) * n, direction);
      const T length = std::sqrt(orthogonalise(q, 0, directions, n, size[i], direction, along));
      for (int k = 0; k < n; ++k) direction[k] /= length;
      if (++directions == n) return;
      for (int k = 0; k < n; ++k) {
        subtract_scaled(rest + k * n, direction, scalar_product(direction, rest + k * n, n), n);
        size[k] = scalar_product(rest + k * n, rest + k * n, n);
      }
      size[i] = -1.0;
    }
  }

 private:
  static void forward(const T* L, const T* r, int k, int news, T* c) {
    for (int i = 0; i < news; ++i) c[i] = (r[i] - scalar_product(L + i * k, c, i)) / L[i * k + i];
  }

  /// Normal equations, and corrections by the residual, which give back the digits that squaring costs.
  void least_squares(const T* L, T* r, const T* mu, int k, int news, T* c) {
    T *H = arena.template take<T>(news * news), *g = arena.template take<T>(news);
    for (int i = 0; i < news; ++i)
      for (int j = 0; j <= i; ++j) {
        T sum = T(0.0);
        for (int l = 0; l < k; ++l) sum += L[l * k + i] * L[l * k + j];
        H[i * news + j] = sum;
      }
    for (int i = 0; i < news; ++i) {
      const auto nothing = H[i * news + i] < T(1e-300);
      H[i * news + i] += mu[i] + select(nothing, T(1.0), T(0.0));
      c[i] = T(0.0);
    }
    for (int i = 0; i < news; ++i) {  // L D L^T, in place
      for (int j = 0; j < i; ++j) {
        T sum = H[i * news + j];
        for (int l = 0; l < j; ++l) sum -= H[i * news + l] * H[j * news + l] * H[l * news + l];
        H[i * news + j] = sum / H[j * news + j];
      }
      const T whole = H[i * news + i];
      T sum = whole;
      for (int l = 0; l < i; ++l) sum -= H[i * news + l] * H[i * news + l] * H[l * news + l];
      H[i * news + i] = select(sum > whole * T(1e-15), sum, whole);  // rounding of a direction that others have
    }
    for (int round = 0; round < 3; ++round) {
      for (int j = 0; j < news; ++j) {
        g[j] = -mu[j] * c[j];
        for (int l = 0; l < k; ++l) g[j] += L[l * k + j] * r[l];
      }
      for (int i = 0; i < news; ++i)
        for (int l = 0; l < i; ++l) g[i] -= H[i * news + l] * g[l];
      for (int i = news - 1; i >= 0; --i) {
        g[i] = g[i] / H[i * news + i];
        for (int l = i + 1; l < news; ++l) g[i] -= H[l * news + i] * g[l];
      }
      for (int j = 0; j < news; ++j) {
        c[j] += g[j];
        for (int l = 0; l < k; ++l) r[l] -= L[l * k + j] * g[j];
      }
    }
  }
};

}  // namespace sarrus
