// Inverse of a small symmetric positive definite matrix, such as the inertia along a joint's velocities, by L D L^T without pivots or branches.
#pragma once

#include "../simd/packet.hpp"

namespace sarrus {

/// Compute the inverse of A (N x N, N at most `most`). The lower half of A is read and destroyed; `inverse` has rows of 6. `scale`: magnitude of the
/// terms that are summed in the diagonal entries. A pivot at the rounding level of this magnitude is treated as zero, and the inverse is then not
/// finite.
template <class T, int most> SARRUS_INLINE void invert_symmetric(int N, T (&A)[most][most], const T (&scale)[most], T* inverse) {
  if constexpr (most == 1) {
    inverse[0] = T(1.0) / unless_rounding(A[0][0], scale[0]);
  } else {
    T L[most][most], d_inverse[most];
    for (int j = 0; j < N; ++j) {
      T d = A[j][j];
      for (int k = 0; k < j; ++k) d -= L[j][k] * L[j][k] * A[k][k];
      A[j][j] = d, d_inverse[j] = T(1.0) / unless_rounding(d, scale[j]);
      for (int i = j + 1; i < N; ++i) {
        T s = A[i][j];
        for (int k = 0; k < j; ++k) s -= L[i][k] * L[j][k] * A[k][k];
        L[i][j] = s * d_inverse[j];
      }
    }
    for (int c = 0; c < N; ++c) {
      T x[most];
      for (int i = 0; i < N; ++i) {
        x[i] = T(i == c ? 1.0 : 0.0);
        for (int k = 0; k < i; ++k) x[i] -= L[i][k] * x[k];
      }
      for (int i = N - 1; i >= 0; --i) {
        x[i] *= d_inverse[i];
        for (int k = i + 1; k < N; ++k) x[i] -= L[k][i] * x[k];
      }
      for (int i = 0; i < N; ++i) inverse[6 * i + c] = x[i];
    }
  }
}

/// Return the scalar product of two arrays of n numbers.
template <class T> SARRUS_INLINE T dot(int n, const T* a, const T* b) {
  T sum = T(0.0);
  for (int k = 0; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

}  // namespace sarrus
