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

/// The same where the unknowns, and the equations with them, have units (of the k-th: unit(k)): only then pivots compare.
template <class Unit> bool solve_dense(int n, double* A, double* b, const Unit& unit) {
  for (int r = 0; r < n; ++r) {
    for (int c = 0; c < n; ++c) A[r * n + c] *= unit(c) / unit(r);
    b[r] /= unit(r);
  }
  if (!solve_dense(n, A, b)) return false;
  for (int k = 0; k < n; ++k) b[k] *= unit(k);
  return true;
}

/// A = U^T U, U in the upper triangle, 1 / u on its diagonal; false: a pivot is not positive.
inline bool cholesky(int n, double* A) {
  for (int k = 0; k < n; ++k) {
    double* row = A + k * n;
    if (row[k] < 1e-300 || !finite_bits(row[k])) return false;
    row[k] = 1.0 / std::sqrt(row[k]);
    for (int i = k + 1; i < n; ++i) row[i] *= row[k];
    for (int i = k + 1; i < n; ++i) subtract_scaled(A + i * n + i, row + i, row[i], n - i);
  }
  return true;
}
inline void cholesky_solve(int n, const double* U, double* x) {
  for (int k = 0; k < n; ++k) x[k] *= U[k * n + k], subtract_scaled(x + k + 1, U + k * n + k + 1, x[k], n - k - 1);
  for (int k = n - 1; k >= 0; --k) x[k] = (x[k] - scalar_product(U + k * n + k + 1, x + k + 1, n - k - 1)) * U[k * n + k];
}

}  // namespace sarrus
