// Rank-revealing QR factorisation of small dense matrices: orthonormal basis of the column space, and least-squares solutions of least norm.
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
/// Add factor x to y.
inline void add_multiple(int n, double factor, const double* x, double* y) { subtract_scaled(y, x, -factor, n); }

/// Factorisation A P = Q R (m x n, A is destroyed) by Householder reflections. Each pivot is the longest remaining column. The first `rank` columns
/// of Q span those of A. A column is dependent if its remaining norm is below `negligible`, relative to the longest column, or to `size` if that is
/// larger.
///
/// Reflection vectors are padded with zeros above their first entry, so that all of them begin at a packet boundary of a column. Otherwise the loads
/// of a reflection would partly overlap the stores of the previous reflection, and the processor would wait until these stores are in its cache.
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
  /// Replace b (m) by the residual of the least-squares solution of A y = b.
  void leave(double* b) const {
    times_transpose(b);
    std::fill(b, b + rank, 0.0);
    times(b);
  }
  /// Compute the least-squares solution of least norm of A y = b, from R R^T z = Q^T b, y = R^T z. b becomes the residual.
  void solve(double* b, double* y) const;

 private:
  using Wide = WideDoubles;
  static constexpr int width = sizeof(Wide) / sizeof(double);
  static constexpr int together = 4;  // columns reflected together, with independent sums

  double* column(int j) const { return A_ + j * m_; }
  /// Return the index of the first entry of the packet that contains entry k; the reflection begins at this entry.
  static int first(int k) { return k - k % width; }
  void swap(double* a, double* b) const;
  /// Apply reflection k to `count` columns x.
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
  double *A_, *V_;  // R; vectors v of the reflections 1 - turn v v^T; all column-major
  int* pivot_;
  double *diagonal_, *inverse_, *turn_;
  Arena& arena_;
};

/// Restrict the projector P (n x n) to the motions in which velocity k is zero.
inline void hold_velocity(int n, double* P, int k) {
  const double pivot = P[k * n + k];
  const double* row = P + k * n;
  for (int a = 0; a < n; ++a)
    if (a != k) add_multiple(n, -P[a * n + k] / pivot, row, P + a * n);
  for (int a = 0; a < n; ++a) P[k * n + a] = P[a * n + k] = 0.0;
}

/// Choose `count` velocities that best determine the motions onto which P (n x n, destroyed) projects, by a Cholesky factorisation: each next pivot
/// is the largest remaining diagonal entry, or the first of those that are equal up to rounding. The caller prescribes the first `chosen` velocities.
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

/// Return which groups of velocities (each a half-open range of columns) determine the motions onto which P (n x n, destroyed) projects. A group is
/// included if it can still move while the groups before it are at rest.
inline std::vector<bool> determining_groups(int n, double* P, const std::vector<std::pair<int, int>>& groups) {
  constexpr double moves = tolerances::nearly_singular * tolerances::nearly_singular;  // the diagonal of P contains squares
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
