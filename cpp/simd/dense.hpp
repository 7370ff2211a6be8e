// Small dense equations of plain numbers, row after row, in place.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "packet.hpp"

namespace sarrus {

/// Whatever the compiler, which is told that all numbers are finite, makes of comparisons.
inline bool finite_bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  asm("" : "+r"(bits));  // and of bits whose origin it knows
  return (bits >> 52 & 0x7ff) != 0x7ff;
}

/// A becomes L (below its diagonal, of ones) and U, by elimination with row pivots, each of which goes to swap(row, other). False: it is singular.
template <class Swap> bool eliminate(int n, double* A, Swap&& swap) {
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int r = k + 1; r < n; ++r)
      if (std::abs(A[r * n + k]) > std::abs(A[pivot * n + k])) pivot = r;
    if (A[pivot * n + k] == 0.0) return false;
    if (pivot != k) std::swap_ranges(A + k * n, A + (k + 1) * n, A + pivot * n);
    swap(k, pivot);
    const double inverse = 1.0 / A[k * n + k];
    for (int r = k + 1; r < n; ++r) {
      const double share = A[r * n + k] *= inverse;
      if (share != 0.0) subtract_scaled(A + r * n + k + 1, A + k * n + k + 1, share, n - k - 1);
    }
  }
  return true;
}
/// b, whose rows were swapped, becomes x.
inline void solve_eliminated(int n, const double* LU, double* b) {
  for (int k = 0; k < n; ++k) b[k] -= scalar_product(LU + k * n, b, k);
  for (int k = n - 1; k >= 0; --k) b[k] = (b[k] - scalar_product(LU + k * n + k + 1, b + k + 1, n - k - 1)) / LU[k * n + k];
}
/// A x = b; A and b are used up.
inline bool solve_dense(int n, double* A, double* b) {
  if (!eliminate(n, A, [&](int row, int other) { std::swap(b[row], b[other]); })) return false;
  solve_eliminated(n, A, b);
  return true;
}

/// A = L L^T, L in the lower triangle; false: a pivot is not positive.
inline bool cholesky(int n, double* A) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) A[i * n + j] = (A[i * n + j] - scalar_product(A + i * n, A + j * n, j)) / A[j * n + j];
    const double d = A[i * n + i] - scalar_product(A + i * n, A + i * n, i);
    if (d < 1e-300 || !finite_bits(d)) return false;
    A[i * n + i] = std::sqrt(d);
  }
  return true;
}
inline void cholesky_solve(int n, const double* L, double* x) {
  for (int i = 0; i < n; ++i) x[i] = (x[i] - scalar_product(L + i * n, x, i)) / L[i * n + i];
  for (int i = n - 1; i >= 0; --i) {
    x[i] /= L[i * n + i];
    subtract_scaled(x, L + i * n, x[i], i);
  }
}

}  // namespace sarrus
