// Linear least squares with strict priorities: each level A x = b is solved in the least-squares sense without changing the residuals of the levels
// before (Nakamura 1991; Siciliano and Slotine 1991). The algorithm does not pivot, so that several states can be solved at once in lanes.
//
// Orthonormal vectors q_j span the directions that the levels so far determine. Gram-Schmidt splits a row into components along the q_j and a
// remainder (in two passes if much cancels). The normalised remainder is a new direction; there is none if the row depends on the rows before it.
// With A N = L in the new directions N, the level minimises |L c - (b - A x)|, and x changes by the sum of c_j q_j. No later level can change A x.
//
// Every row has a size: its norm, including its weight, far from singular positions. Let K = U S V^T be the rows divided by their sizes. If a
// singular value of K is below `singular`, a level that may have errors is damped along the corresponding vector (Nakamura and Hanafusa 1986). The
// damping mu grows from 0 to `singular` as the singular value decreases to 0. With the weights W = diag(size) of the rows, the level is
//
//   min |W (K c - r)|^2 + |W F c|^2      F = U diag(mu) V^T
//
// The result does not depend on rotations of the rows or of the unknowns.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "../loops/tolerances.hpp"
#include "../mechanism/arena.hpp"
#include "../simd/packet.hpp"

namespace sarrus {

/// Return true if x exceeds a limit in some lane. When code is recorded, the condition is evaluated at the sample states only, and the generated code
/// assumes that x remains below `unnoticed` times the limit at other states (recording/operations.cpp).
template <class T> SARRUS_INLINE bool exceeds(const T& x, const T& limit, [[maybe_unused]] double unnoticed = 1.0) {
  return any(x > limit);
}

/// Subtract from `rest` (n) its components along orthonormal directions (count x n) by Gram-Schmidt, in two passes if much cancels. The components
/// along the directions from `first` on are added to `along`. `size` is the squared norm of `rest` before the call. Returns the squared norm after
/// it.
template <class T>
SARRUS_INLINE T orthogonalise(const T* directions, int first, int count, int n, const T& size, T* rest, T* along) {
  constexpr int together = 4;  // independent products, for instruction-level parallelism
  T left = size;
  for (int pass = 0; pass < 2; ++pass) {
    for (int j = 0; j < count; j += together) {
      const int block = std::min(together, count - j);
      T part[together];
      const T* from[together];
      for (int l = 0; l < block; ++l) part[l] = scalar_product(from[l] = directions + (j + l) * n, rest, n);
      if (block == together)
        subtract_scaled(rest, from, part, n);
      else
        for (int l = 0; l < block; ++l) subtract_scaled(rest, from[l], part[l], n);
      for (int l = 0; l < block; ++l)
        if (j + l >= first) along[j + l - first] += part[l];
    }
    left = scalar_product(rest, rest, n);
    if (!exceeds(T(size * T(0.01)), left, 100.0)) break;  // a second pass is unnecessary if little has cancelled
  }
  return left;
}

/// Return the sum of weight x^2. It uses four independent sums, for instruction-level parallelism.
template <class T> SARRUS_INLINE T weighed_square(const T* x, const T* weight, int count) {
  T sum[4] = {T(0.0), T(0.0), T(0.0), T(0.0)};
  int i = 0;
  for (; i + 4 <= count; i += 4)
    for (int l = 0; l < 4; ++l) sum[l] += x[i + l] * x[i + l] * weight[i + l];
  for (; i < count; ++i) sum[0] += x[i] * x[i] * weight[i];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/// Return 1 / x, or 0 if x is not positive.
template <class T> SARRUS_INLINE T inverse_or_none(const T& x) {
  const auto positive = x > T(0.0);
  return select(positive, T(1.0) / select(positive, x, T(1.0)), T(0.0));
}

/// Factorise A = Q R. `column` (k x m, column-major) contains A, and becomes Q; R (m x m) is upper triangular, column-major. A column that depends on
/// the columns before it becomes zero, and so does its diagonal entry of R.
template <class T> SARRUS_INLINE void orthonormal_columns(T* column, int k, int m, T* R) {
  for (int j = 0; j < m; ++j) {
    T *at = column + j * k, *along = R + j * m;
    for (int i = 0; i < m; ++i) along[i] = T(0.0);
    const T size = scalar_product(at, at, k), left = orthogonalise(column, 0, j, k, size, at, along);
    along[j] = select(left > size * tolerance<T>(1e-30, 1e-12), sqrt(left), T(0.0));
    const T inverse = inverse_or_none(along[j]);
    for (int i = 0; i < k; ++i) at[i] *= inverse;
  }
}

/// Compute singular vectors by rotations of pairs of columns (Hestenes 1958). `column` (k x m, column-major) becomes U S; V is m x m, column-major.
template <class T> SARRUS_NOINLINE void singular_columns(T* column, int k, int m, T* V) {
  constexpr int sweeps = 12;  // sufficient, because each sweep squares the error once it is small
  for (int i = 0; i < m * m; ++i) V[i] = T(i % (m + 1) == 0 ? 1.0 : 0.0);
  for (int sweep = 0; sweep < sweeps; ++sweep) {
    bool turned = false;
    for (int i = 0; i < m; ++i)
      for (int j = i + 1; j < m; ++j) {
        T *x = column + i * k, *y = column + j * k;
        const T a = scalar_product(x, x, k), b = scalar_product(y, y, k), g = scalar_product(x, y, k);
        const T square = g * g, least = a * b * tolerance<T>(1e-30, 1e-13);
        if (!exceeds(square, least, 1e6)) continue;
        const auto turns = square > least;
        turned = true;
        const T ratio = (b - a) / select(turns, g + g, T(1.0)), length = abs(ratio) + sqrt(T(1.0) + ratio * ratio);
        const T t = select(turns, select(ratio < T(0.0), T(-1.0), T(1.0)) / length, T(0.0));
        const T c = T(1.0) / sqrt(T(1.0) + t * t), s = c * t;
        const auto turn = [&](T* p, T* q, int count) {
          for (int l = 0; l < count; ++l) {
            const T kept = p[l];
            p[l] = c * kept - s * q[l], q[l] = s * kept + c * q[l];
          }
        };
        turn(x, y, k), turn(V + i * m, V + j * m, m);
      }
    if (!turned) return;
  }
}

template <class T> struct Cascade {
  static constexpr double dependent =
      1e-10;  // remainder, relative to the row's size, below which a row adds no direction, because the remainder may be rounding
  static constexpr double dependent_in_single = 1e-4, rounding_in_single = 1e-6;
  // below this value a remainder is rounding; between this value and the previous constant, the row has no effect, as if it were fully damped
  static constexpr double rounding = 1e-12;
  static constexpr double singular = 1e-3;

  Arena& arena;
  int n;
  T* x;
  T* q;  // directions x n, with memory for n additional rows
  int directions = 0;
  bool everywhere = true;  // true if every lane has all directions; false if some directions are zero in some lanes
  T damping = T(0.0);  // largest mu

  Cascade(Arena& a, int unknowns, int rows)
      : arena(a), n(unknowns), x(a.take<T>(unknowns)), q(a.take<T>(static_cast<std::size_t>(rows + unknowns) * unknowns)) {
    for (int k = 0; k < n; ++k) x[k] = T(0.0);
  }

  /// Return true if no direction remains for later levels.
  bool full() const { return everywhere && directions == n; }

  /// Add a level of k weighted rows with their sizes. `yields`: true if the level may have errors and may therefore be damped. `damped` (k x n, or
  /// null) receives W F, in the form of rows for x. Returns true if the level is damped.
  SARRUS_NOINLINE bool add(const T* A, const T* b, const T* sizes, int k, bool yields, T* damped = nullptr) {
    if (n == 0 || k == 0) return false;
    const Arena::Scope scope(arena);
    const int first = directions;
    T *L = arena.template take<T>(k * k), *r = arena.template take<T>(k), *rest = arena.template take<T>(n);
    bool exact = true;  // true if the matrix of the level is triangular in all lanes
    for (int i = 0; i < k; ++i) {
      const T* row = A + i * n;
      const T least = square(sizes[i] * tolerance<T>(dependent, dependent_in_single));
      r[i] = b[i] - scalar_product(row, x, n);
      for (int j = 0; j < k; ++j) L[i * k + j] = T(0.0);
      if (full()) {
        for (int j = first; j < n; ++j) L[i * k + j - first] = scalar_product(q + j * n, row, n);
        exact = false;
        continue;
      }
      for (int c = 0; c < n; ++c) rest[c] = row[c];
      const T left = orthogonalise(q, first, directions, n, scalar_product(row, row, n), rest, L + i * k);
      const auto stands = left > least;
      if (yields) {
        const auto faint = both(left > square(sizes[i] * tolerance<T>(rounding, rounding_in_single)), left < least);
        damping = select(both(faint, damping < T(singular)), T(singular), damping);
      }
      if (!exceeds(left, least)) {
        exact = false;
        continue;
      }
      const T length = sqrt(select(stands, left, T(1.0))), inverse = select(stands, T(1.0) / length, T(0.0));
      T* direction = q + directions * n;
      for (int c = 0; c < n; ++c) direction[c] = rest[c] * inverse;
      L[i * k + directions++ - first] = select(stands, length, T(0.0));
      if (exceeds(select(stands, T(0.0), T(1.0)), T(0.5))) exact = everywhere = false;
    }
    const int m = directions - first;
    if (m == 0) return false;
    T* c = arena.template take<T>(m);
    const bool small = yields && may_be_singular(L, sizes, k, m, exact);
    bool damps = false;
    if (exact && !small) {
      forward(L, r, k, m, c);
    } else {
      // column-major, with memory for the additional rows of damping
      T *columns = arena.template take<T>(2 * k * m), *right = arena.template take<T>(2 * k);
      if (small) damps = damp(L, sizes, k, m, first, columns, right, damped);
      const int rows = damps ? 2 * k : k;
      for (int j = 0; j < m; ++j)
        for (int i = 0; i < k; ++i) columns[j * rows + i] = L[i * k + j];
      std::copy(r, r + k, right);
      least_squares(columns, right, rows, m, c);
    }
    for (int j = 0; j < m; ++j) subtract_scaled(x, q + (first + j) * n, -c[j], n);
    return damps;
  }

  /// Add directions until there are n. Each new direction is the component of a coordinate axis perpendicular to all previous directions; the axis
  /// for which this component is largest is chosen. Only for a single state, because this code branches on values.
  void add_all_directions() {
    const Arena::Scope scope(arena);
    T *left = arena.template take<T>(n), *along = arena.template take<T>(n);  // squared norms of the free components
    for (int k = 0; k < n; ++k) left[k] = T(1.0);
    for (int j = 0; j < n; ++j) {
      T* direction = q + j * n;
      if (j == directions) {
        const int most = static_cast<int>(std::max_element(left, left + n) - left);
        for (int k = 0; k < n; ++k) direction[k] = T(k == most ? 1.0 : 0.0);
        const T length = std::sqrt(orthogonalise(q, 0, directions, n, T(1.0), direction, along));
        for (int k = 0; k < n; ++k) direction[k] /= length;
        ++directions;
      }
      for (int k = 0; k < n; ++k) left[k] -= square(direction[k]);
    }
  }

 private:
  static SARRUS_INLINE T square(const T& x) { return x * x; }

  static void forward(const T* L, const T* r, int k, int m, T* c) {
    for (int i = 0; i < m; ++i) c[i] = (r[i] - scalar_product(L + i * k, c, i)) / L[i * k + i];
  }

  /// Return true if K (the rows divided by their sizes) may have a singular value below `singular`. The test uses 1 / |K^-1|, a lower bound of the
  /// singular values.
  bool may_be_singular(const T* L, const T* sizes, int k, int m, bool triangular) {
    const Arena::Scope scope(arena);
    T* R = arena.template take<T>(m * m);  // upper triangular, column-major: the factor R of K^T, or of K = Q R
    if (triangular) {
      for (int i = 0; i < m; ++i) {
        const T inverse = inverse_or_none(sizes[i]);
        for (int j = 0; j < m; ++j) R[i * m + j] = j <= i ? L[i * k + j] * inverse : T(0.0);
      }
    } else {
      T* columns = arena.template take<T>(k * m);
      divided(L, sizes, k, m, columns);
      orthonormal_columns(columns, k, m, R);
    }
    // compute the inverse column by column; in a lane without some direction, the column of that direction is zero
    T norm = T(0.0), *y = arena.template take<T>(m), *inverse = arena.template take<T>(m);
    for (int i = 0; i < m; ++i) inverse[i] = inverse_or_none(R[i * m + i]);
    for (int j = 0; j < m; ++j) {
      for (int i = j; i >= 0; --i) {
        T sum = T(i == j ? 1.0 : 0.0);
        for (int l = i + 1; l <= j; ++l) sum -= R[l * m + i] * y[l];
        y[i] = sum * inverse[i];
        norm += square(y[i]);
      }
    }
    return exceeds(norm, T(1.0 / (singular * singular)));
  }

  /// Write K to `columns`, column-major.
  static void divided(const T* L, const T* sizes, int k, int m, T* columns) {
    for (int i = 0; i < k; ++i) {
      const T inverse = inverse_or_none(sizes[i]);
      for (int j = 0; j < m; ++j) columns[j * k + i] = L[i * k + j] * inverse;
    }
  }

  /// Write W F below the level's rows in `columns` (2 k x m), and its right-hand side, which damps motion along the new directions. Returns true if
  /// there is damping.
  bool damp(const T* L, const T* sizes, int k, int m, int first, T* columns, T* right, T* damped) {
    const Arena::Scope scope(arena);
    T *U = arena.template take<T>(k * m), *V = arena.template take<T>(m * m);
    divided(L, sizes, k, m, U);
    singular_columns(U, k, m, V);
    for (int j = 0; j < m; ++j)
      for (int i = 0; i < k; ++i) columns[j * 2 * k + k + i] = T(0.0);
    bool damps = false;
    for (int l = 0; l < m; ++l) {
      const T s = sqrt(scalar_product(U + l * k, U + l * k, k)), share = s * T(1.0 / singular);
      const T unity = select(s > T(0.0), T(1.0), T(0.0));
      if (!exceeds(unity, share)) continue;
      const auto small = share < unity;
      damps = true;
      const T mu = select(small, (T(1.0) - share * share) * T(singular), T(0.0)), relative = mu * inverse_or_none(s);
      damping = select(mu > damping, mu, damping);
      for (int i = 0; i < k; ++i) {
        const T part = U[l * k + i] * relative * sizes[i];
        for (int j = 0; j < m; ++j) columns[j * 2 * k + k + i] += part * V[l * m + j];
      }
    }
    if (!damps) return false;
    for (int i = 0; i < k; ++i) {
      right[k + i] = T(0.0);
      for (int j = 0; j < m; ++j) right[k + i] -= columns[j * 2 * k + k + i] * scalar_product(q + (first + j) * n, x, n);
      if (!damped) continue;
      for (int c = 0; c < n; ++c) damped[i * n + c] = T(0.0);
      for (int j = 0; j < m; ++j) subtract_scaled(damped + i * n, q + (first + j) * n, -columns[j * 2 * k + k + i], n);
    }
    return true;
  }

  /// Compute the c that minimises |columns c - right|, with one correction by the residual.
  void least_squares(T* columns, T* right, int k, int m, T* c) {
    T *Q = arena.template take<T>(k * m), *R = arena.template take<T>(m * m), *inverse = arena.template take<T>(m),
      *step = arena.template take<T>(m);
    std::copy(columns, columns + k * m, Q);
    orthonormal_columns(Q, k, m, R);
    for (int j = 0; j < m; ++j) inverse[j] = inverse_or_none(R[j * m + j]), c[j] = T(0.0);
    for (int round = 0; round < 2; ++round) {
      for (int j = m - 1; j >= 0; --j) {
        T sum = scalar_product(Q + j * k, right, k);
        for (int l = j + 1; l < m; ++l) sum -= R[l * m + j] * step[l];
        step[j] = sum * inverse[j];
      }
      for (int j = 0; j < m; ++j) c[j] += step[j], subtract_scaled(right, columns + j * k, step[j], k);
    }
  }
};

}  // namespace sarrus
