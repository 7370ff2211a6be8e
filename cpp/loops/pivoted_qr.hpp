// Orthogonal factors of small dense matrices whose rank is to be found: what columns span, what is nearest, what is shortest.
#pragma once

#include <algorithm>
#include <cmath>

#include "../mechanism/arena.hpp"
#include "../simd/packet.hpp"
#include "tolerances.hpp"

namespace sarrus {

inline double dot_product(int n, const double* a, const double* b) { return scalar_product(a, b, n); }
/// y += factor x.
inline void add_multiple(int n, double factor, const double* x, double* y) { subtract_scaled(y, x, -factor, n); }

/// A P = Q R of n columns of m numbers (A is destroyed), by Householder's reflections, the longest column first: Q's first `rank` columns span
/// them. What is left of a column counts as nothing below `negligible` of the largest, or of `size` where that is larger.
class PivotedQr {
 public:
  int rank = 0;

  PivotedQr(int m, int n, double* A, Arena& arena, double negligible = tolerances::negligible, double size = 0.0)
      : m_(m),
        n_(n),
        A_(A),
        pivot_(arena.take<int>(n)),
        diagonal_(arena.take<double>(n)),
        inverse_(arena.take<double>(n)),
        arena_(arena) {
    // squares of what is left of each column, and of what it was when that was last summed up: differences lose digits
    double largest = size, *left = arena.take<double>(n), *summed = arena.take<double>(n);
    for (int j = 0; j < n; ++j) pivot_[j] = j, left[j] = summed[j] = dot_product(m, column(j), column(j));
    for (; rank < std::min(m, n); ++rank) {
      const int best = static_cast<int>(std::max_element(left + rank, left + n) - left);
      const double length = std::sqrt(dot_product(m - rank, column(best), column(best)));
      largest = std::max(largest, length);
      if (length <= negligible * largest || length == 0.0) break;
      std::swap_ranges(column(best, 0), column(best, m), column(rank, 0)), std::swap(pivot_[best], pivot_[rank]);
      left[best] = left[rank], summed[best] = summed[rank];
      double* v = column(rank);
      diagonal_[rank] = v[0] > 0.0 ? -length : length;
      v[0] -= diagonal_[rank], inverse_[rank] = 1.0 / diagonal_[rank];
      const double unit = 1.0 / std::sqrt(dot_product(m - rank, v, v));  // exact along an axis
      for (int i = 0; i < m - rank; ++i) v[i] *= unit;
      for (int j = rank + 1; j < n; ++j) {
        double* x = column(j);
        reflect(rank, x);
        left[j] -= x[0] * x[0];
        if (!(left[j] > 1e-8 * summed[j])) left[j] = summed[j] = dot_product(m - rank - 1, x + 1, x + 1);
      }
    }
  }
  double R(int i, int j) const { return i == j ? diagonal_[i] : A_[j * m_ + i]; }
  const double* above_diagonal(int j) const { return A_ + j * m_; }
  double inverse(int i) const { return inverse_[i]; }  // 1 / R(i, i)
  int pivot(int j) const { return pivot_[j]; }
  void times_transpose(double* x) const {
    for (int k = 0; k < rank; ++k) reflect(k, x + k);
  }
  void times(double* x) const {
    for (int k = rank - 1; k >= 0; --k) reflect(k, x + k);
  }
  /// b (m) becomes what A y leaves of it at best.
  void leave(double* b) const {
    times_transpose(b);
    std::fill(b, b + rank, 0.0);
    times(b);
  }
  /// Of all y with A y nearest to b the shortest: R R^T z = Q^T b, y = R^T z; b becomes what is left of it.
  void solve(double* b, double* y) const {
    times_transpose(b);
    if (rank == n_) {
      for (int i = rank - 1; i >= 0; --i) {
        const double x = y[pivot_[i]] = b[i] * inverse_[i];
        add_multiple(i, -x, column(i, 0), b);
      }
      std::fill(b, b + rank, 0.0);
      return times(b);
    }
    const Arena::Scope scope(arena_);
    double *L = arena_.take<double>(rank * rank), *z = arena_.take<double>(rank);
    for (int i = 0; i < rank; ++i)
      for (int j = 0; j <= i; ++j) {
        double sum = 0.0;
        for (int k = i; k < n_; ++k) sum += R(i, k) * R(j, k);
        for (int k = 0; k < j; ++k) sum -= L[i * rank + k] * L[j * rank + k];
        L[i * rank + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / L[j * rank + j];
      }
    for (int j = 0; j < n_; ++j) y[j] = 0.0;
    for (int twice = 0; twice < 2; ++twice) {  // the second time takes away what R R^T has lost
      for (int i = 0; i < rank; ++i) z[i] = (b[i] - dot_product(i, L + i * rank, z)) / L[i * rank + i];
      for (int i = rank - 1; i >= 0; --i) {
        for (int k = i + 1; k < rank; ++k) z[i] -= L[k * rank + i] * z[k];
        z[i] /= L[i * rank + i];
      }
      for (int k = 0; k < n_; ++k) {
        double along = 0.0;
        for (int i = 0; i <= std::min(k, rank - 1); ++i) along += R(i, k) * z[i];
        y[pivot_[k]] += along;
        for (int i = 0; i <= std::min(k, rank - 1); ++i) b[i] -= R(i, k) * along;
      }
    }
    times(b);
  }

 private:
  double* column(int j, int from) const { return A_ + j * m_ + from; }
  double* column(int j) const { return column(j, rank); }
  void reflect(int k, double* x) const {
    const double* v = column(k, k);
    add_multiple(m_ - k, -2.0 * dot_product(m_ - k, v, x), v, x);
  }

  int m_, n_;
  double* A_;
  int* pivot_;
  double *diagonal_, *inverse_;
  Arena& arena_;
};

/// The velocities in which motions show best, P (n x n, destroyed) being the projector onto them: pivots of Cholesky's factorisation, the first of
/// those that are largest but for rounding. The first `chosen` of the `count` columns are there already.
inline void showing(int n, double* P, int count, int chosen, int* columns) {
  for (int i = 0; i < count; ++i) {
    int& k = columns[i];
    if (i >= chosen) {
      k = 0;
      for (int j = 1; j < n; ++j)
        if (P[j * n + j] > P[k * n + k] * (1.0 + tolerances::negligible)) k = j;
    }
    const double pivot = P[k * n + k];
    if (!(pivot > 0.0)) continue;
    const double* row = P + k * n;
    for (int a = 0; a < n; ++a)
      if (a != k) add_multiple(n, -P[a * n + k] / pivot, row, P + a * n);
    for (int a = 0; a < n; ++a) P[k * n + a] = P[a * n + k] = 0.0;
  }
  std::sort(columns, columns + count);
}

}  // namespace sarrus
