// Solution of small dense linear equations with scalar entries; matrices are row-major and overwritten.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "packet.hpp"

namespace sarrus {

/// Return true if x is finite, even if the compiler may assume that all numbers are finite.
inline bool finite_bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  asm("" : "+r"(bits));  // prevents the optimiser from using the assumption that x is finite
  return (bits >> 52 & 0x7ff) != 0x7ff;
}

/// Number of pivots that are eliminated before the remaining matrix is updated by all of them at once. This is faster for matrices that do not fit
/// into a cache. The results do not depend on this number.
constexpr int panel_width = 8;

/// Subtract scale(row, k) times row k of a panel from each row below it, in the columns from `from` on.
template <class Scale> void subtract_panel(int n, double* A, int first, int row, int from, Scale&& scale) {
  const double* rows[panel_width];
  double scales[panel_width];
  bool any = false;
  for (int k = 0; k < panel_width; ++k) rows[k] = A + (first + k) * n + from, scales[k] = scale(k), any |= scales[k] != 0.0;
  if (any) subtract_scaled(A + row * n + from, rows, scales, n - from);
}

/// Default of `stops`, which never stops.
struct NeverStops {
  bool operator()(double) const { return false; }
};

/// Factorise A = L U by elimination with row pivots: L (unit diagonal) is stored below the diagonal. swap(row, other) is
/// called for each pivot. Returns false if A is singular, or if stops(multiplications since the last call) returned true.
template <class Swap, class Stops = NeverStops> bool eliminate(int n, double* A, Swap&& swap, Stops&& stops = {}) {
  for (int first = 0; first < n; first += panel_width) {
    const int end = std::min(n, first + panel_width);
    for (int k = first; k < end; ++k) {
      int pivot = k;
      for (int r = k + 1; r < n; ++r)
        if (std::abs(A[r * n + k]) > std::abs(A[pivot * n + k])) pivot = r;
      if (A[pivot * n + k] == 0.0) return false;
      if (pivot != k) std::swap_ranges(A + k * n, A + (k + 1) * n, A + pivot * n);
      swap(k, pivot);
      for (int j = first; j < k; ++j) subtract_scaled(A + k * n + end, A + j * n + end, A[k * n + j], n - end);
      const double inverse = 1.0 / A[k * n + k];
      for (int r = k + 1; r < n; ++r) {
        const double share = A[r * n + k] *= inverse;
        if (share != 0.0) subtract_scaled(A + r * n + k + 1, A + k * n + k + 1, share, end - k - 1);
      }
    }
    for (int r = end; r < n; ++r) subtract_panel(n, A, first, r, end, [&](int k) { return A[r * n + first + k]; });
    if (stops(1.0 * panel_width * (n - end) * (n - end))) return false;
  }
  return true;
}
/// Replace b, whose rows must already be swapped, by the solution x.
inline void solve_eliminated(int n, const double* LU, double* b) {
  for (int k = 0; k < n; ++k) b[k] -= scalar_product(LU + k * n, b, k);
  for (int k = n - 1; k >= 0; --k) b[k] = (b[k] - scalar_product(LU + k * n + k + 1, b + k + 1, n - k - 1)) / LU[k * n + k];
}
/// Solve A x = b; A and b are overwritten.
inline bool solve_dense(int n, double* A, double* b) {
  if (!eliminate(n, A, [&](int row, int other) { std::swap(b[row], b[other]); })) return false;
  solve_eliminated(n, A, b);
  return true;
}

/// Solve A x = b, where unknowns and equations have the units unit(k). Pivots are compared in these units.
template <class Unit> bool solve_dense(int n, double* A, double* b, const Unit& unit) {
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) A[r * n + c] *= unit(c) / unit(r);
    b[r] /= unit(r);
  }
  if (!solve_dense(n, A, b)) return false;
  for (int k = 0; k < n; ++k) b[k] *= unit(k);
  return true;
}

/// Factorise A = U^T U, with U in the upper triangle and 1 / u on its diagonal. Returns false if a pivot is not positive, or if stops() returned
/// true.
template <class Stops = NeverStops> bool cholesky(int n, double* A, Stops&& stops = {}) {
  for (int first = 0; first < n; first += panel_width) {
    const int end = std::min(n, first + panel_width);
    for (int k = first; k < end; ++k) {
      double* row = A + k * n;
      for (const double* above = A + first * n; above < row; above += n) subtract_scaled(row + k, above + k, above[k], n - k);
      if (row[k] < 1e-300 || !finite_bits(row[k])) return false;
      row[k] = 1.0 / std::sqrt(row[k]);
      for (int i = k + 1; i < n; ++i) row[i] *= row[k];
    }
    for (int i = end; i < n; ++i) subtract_panel(n, A, first, i, i, [&](int k) { return A[(first + k) * n + i]; });
    if (stops(0.5 * panel_width * (n - end) * (n - end))) return false;
  }
  return true;
}
/// Replace x by U^-T x.
inline void cholesky_forward(int n, const double* U, double* x) {
  for (int k = 0; k < n; ++k) x[k] *= U[k * n + k], subtract_scaled(x + k + 1, U + k * n + k + 1, x[k], n - k - 1);
}
/// Replace x by A^-1 x.
inline void cholesky_solve(int n, const double* U, double* x) {
  cholesky_forward(n, U, x);
  for (int k = n - 1; k >= 0; --k) x[k] = (x[k] - scalar_product(U + k * n + k + 1, x + k + 1, n - k - 1)) * U[k * n + k];
}

}  // namespace sarrus
