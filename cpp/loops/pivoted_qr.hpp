// Rank-revealing QR factorisation of small dense matrices: orthonormal basis of the column space, least-squares solutions of minimum norm.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "../mechanism/arena.hpp"
#include "../simd/packet.hpp"
#include "tolerances.hpp"

namespace sarrus {

inline double dot_product(int n, const double* a, const double* b) { return scalar_product(a, b, n); }
/// y += factor x.
inline void add_multiple(int n, double factor, const double* x, double* y) { subtract_scaled(y, x, -factor, n); }

/// A P = Q R of n columns of m numbers (A is destroyed), by Householder's reflections, the longest column first: Q's first `rank` columns span
/// them. The rest of a column counts as zero below `negligible` of the largest, or of `size` if that is larger.
///
/// Reflections have zeros above their diagonal, so that all of them use the same packets of a column. Otherwise a reflection
/// would have to wait for results of the previous one in the processor's store buffer.
class PivotedQr {
 public:
  int rank = 0;

  PivotedQr(int m, int n, double* A, Arena&, double negligible = tolerances::negligible, double size = 0.0);
  double R(int i, int j) const { return i == j ? diagonal_[i] : A_[j * m_ + i]; }
  const double* above_diagonal(int j) const { return A_ + j * m_; }
  double inverse(int i) const { return inverse_[i]; }  // 1 / R(i, i)
  int pivot(int j) const { return pivot_[j]; }
  void times_transpose(double* x) const {
    for (int k = 0; k < rank; ++k) reflect<1>(k, x);
  }
  void times(double* x) const {
    for (int k = rank - 1; k >= 0; --k) reflect<1>(k, x);
  }
  /// Replace b (m) by the least-squares residual of A y = b.
  void leave(double* b) const {
    times_transpose(b);
    std::fill(b, b + rank, 0.0);
    times(b);
  }
  /// Find the shortest y with A y nearest to b: R R^T z = Q^T b, y = R^T z; b becomes the residual.
  void solve(double* b, double* y) const;

 private:
  using Wide = WideDoubles;
  static constexpr int width = sizeof(Wide) / sizeof(double);
  static constexpr int together = 4;  // columns, with independent sums

  double* column(int j) const { return A_ + j * m_; }
  /// First entry of the packet in which the reflection begins.
  static int first(int k) { return k - k % width; }
  void swap(double* a, double* b) const;
  /// Reflect x of `count` columns.
  template <int count> void reflect(int k, double* x) const {
    const double* v = V_ + k * m_;
    const int vector_end = m_ - m_ % width;
    Wide sum[count] = {};
    double along[count];
    for (int i = first(k); i < vector_end; i += width) {
      const Wide part = *reinterpret_cast<const Wide*>(v + i);
      for (int c = 0; c < count; ++c) sum[c] += part * *reinterpret_cast<const Wide*>(x + c * m_ + i);
    }
    for (int c = 0; c < count; ++c) {
      along[c] = sum[c][0];
      for (int l = 1; l < width; ++l) along[c] += sum[c][l];
      for (int i = vector_end; i < m_; ++i) along[c] += v[i] * x[c * m_ + i];
      along[c] *= turn_[k];
    }
    for (int i = first(k); i < vector_end; i += width) {
      const Wide part = *reinterpret_cast<const Wide*>(v + i);
      for (int c = 0; c < count; ++c) *reinterpret_cast<Wide*>(x + c * m_ + i) -= part * along[c];
    }
    for (int c = 0; c < count; ++c)
      for (int i = vector_end; i < m_; ++i) x[c * m_ + i] -= v[i] * along[c];
  }

  int m_, n_;
  double *A_, *V_;  // R, and vectors v of reflections 1 - turn v v^T, column by column
  int* pivot_;
  double *diagonal_, *inverse_, *turn_;
  Arena& arena_;
};

/// Restrict the projector P (n x n) to motions with zero velocity k.
inline void hold_velocity(int n, double* P, int k) {
  const double pivot = P[k * n + k];
  const double* row = P + k * n;
  for (int a = 0; a < n; ++a)
    if (a != k) add_multiple(n, -P[a * n + k] / pivot, row, P + a * n);
  for (int a = 0; a < n; ++a) P[k * n + a] = P[a * n + k] = 0.0;
}

/// The velocities that determine the motions best, P (n x n, destroyed) being the projector onto them. They are the pivots of a
/// Cholesky factorisation: the largest ones, the first of equal ones up to rounding. The first `chosen` of the `count` columns
/// are given.
inline void showing(int n, double* P, int count, int chosen, int* columns) {
  for (int i = 0; i < count; ++i) {
    int& k = columns[i];
    if (i >= chosen) {
      k = 0;
      for (int j = 1; j < n; ++j)
        if (P[j * n + j] > P[k * n + k] * (1.0 + tolerances::negligible)) k = j;
    }
    if (P[k * n + k] > 0.0) hold_velocity(n, P, k);
  }
  std::sort(columns, columns + count);
}

/// Return the groups of velocities (each from one column to before another) that determine the motions that P (n x n, destroyed)
/// projects onto. A group is returned if it can still move with the groups before it at rest.
inline std::vector<bool> determining_groups(int n, double* P, const std::vector<std::pair<int, int>>& groups) {
  constexpr double moves = tolerances::nearly_singular * tolerances::nearly_singular;  // P has squares on its diagonal
  std::vector<bool> leads;
  for (const auto& [first, end] : groups) {
    double left = 0.0;
    for (int k = first; k < end; ++k) left += P[k * n + k];
    leads.push_back(left >= moves);
    for (int k = first; k < end && leads.back(); ++k)
      if (P[k * n + k] > moves * left) hold_velocity(n, P, k);
  }
  return leads;
}

}  // namespace sarrus
