// What a joint is to the algorithms (van der Merwe 2.9-2.16): the pose of its successor in its predecessor, the motion space phi
// that the joint leaves free, and its rate phi-dot. A joint is a type with static functions of its coordinates:
//
//   nq, nv                 how many coordinates and velocities
//   transform(c)           successor's pose in the predecessor
//   subspace(c)            the columns of phi, in the successor's axes at the successor's origin
//   subspace_rate(c, v)    phi-dot, the apparent derivative of those columns in the successor's axes
//   integrate, difference  along a constant velocity from q for unit time, and back
//   rate(q, v)             the rate of the coordinates themselves
//   bracket(u, v)          u v - v u of velocities in the successor's axes: what order makes of two motions
//   clear_transmitted(I)   zeroes, exactly, what cannot pass along a free axis (only where phi is made of unit vectors)
//
// Axes have been turned onto z when the mechanism was built, so that the zeros and ones of phi fold away when this is inlined.
#pragma once

#include "../spatial/exponential.hpp"
#include "../spatial/inertia.hpp"

namespace sarrus {

enum class JointKind : int {
  fixed,
  revolute,
  prismatic,
  helical,
  cylindrical,
  universal,
  planar,
  spherical,
  free,
  gimbal,
  reversed
};

/// Numbers that belong to one joint and do not change. `gimbal` uses all; the others say what they use.
struct JointConstants {
  JointKind reversed = JointKind::fixed;  // reversed: which joint it is, passed from its successor to its predecessor
  double pitch = 0.0;                     // helical [m/rad]
  double first_axis[2] = {0.0, 0.0};      // universal: x and z of the first axis (the second is z)
  int mask = 0;                           // gimbal: bit k set where parameter k of rx ry rz tx ty tz is free
  double parameter[6] = {0, 0, 0, 0, 0, 0};  // gimbal: sine of a fixed rotation, fixed displacement
  double cosine[3] = {1, 1, 1};           // gimbal: cosine of a fixed rotation
};

/// Where a joint reads its coordinates: q itself, and sine and cosine of those that are angles, in their order.
template <class T> struct Coordinates {
  const T* q;
  const T* sin;
  const T* cos;
  const JointConstants* constants;
};

/// phi v: a combination of n columns.
template <class T> SARRUS_INLINE Motion<T> combination(int n, const Motion<T>* column, const T* v) {
  Motion<T> m = column[0] * v[0];
  for (int k = 1; k < n; ++k) m = m + column[k] * v[k];
  return m;
}
/// phi^T f: the part of a force that works along the joint (4.24).
template <class T> SARRUS_INLINE void project(int n, const Motion<T>* column, const Force<T>& f, T* tau) {
  for (int k = 0; k < n; ++k) tau[k] = dot(column[k], f);
}

/// Columns that a joint's type knows.
template <class T, int N> struct Subspace {
  Motion<T> column[N == 0 ? 1 : N];
  SARRUS_INLINE Motion<T> operator*(const T* v) const { return combination(N, column, v); }
  SARRUS_INLINE void project(const Force<T>& f, T* tau) const { sarrus::project(N, column, f, tau); }
};
/// Columns that were stored, as many as the joint has.
template <class T> struct StoredSubspace {
  const Motion<T>* column;
  int n;
  SARRUS_INLINE Motion<T> operator*(const T* v) const { return combination(n, column, v); }
  SARRUS_INLINE void project(const Force<T>& f, T* tau) const { sarrus::project(n, column, f, tau); }
};

/// What most joints have: columns that do not change in the successor's axes.
template <int N> struct ConstantSubspace {
  template <class T> static SARRUS_INLINE Subspace<T, N> subspace_rate(const Coordinates<T>&, const T*) {
    Subspace<T, N> rate;
    for (int k = 0; k < N; ++k) rate.column[k] = Motion<T>::zero();
    return rate;
  }
};

/// What most joints have: coordinates that add up.
template <int N> struct VectorCoordinates {
  template <class T> static void integrate(const T* q, const T* dv, T* q1) {
    for (int k = 0; k < N; ++k) q1[k] = q[k] + dv[k];
  }
  template <class T> static void difference(const T* q0, const T* q1, T* dv) {
    for (int k = 0; k < N; ++k) dv[k] = q1[k] - q0[k];
  }
  template <class T> static void rate(const T*, const T* v, T* q_dot) {
    for (int k = 0; k < N; ++k) q_dot[k] = v[k];
  }
  template <class T> static void bracket(const T*, const T*, T* uv) {
    for (int k = 0; k < N; ++k) uv[k] = T(0.0);
  }
};

template <class T> SARRUS_INLINE Motion<T> unit_motion(int k) {
  Motion<T> m = Motion<T>::zero();
  (k < 3 ? m.angular(k) : m.linear(k - 3)) = T(1.0);
  return m;
}
template <class T> SARRUS_INLINE Transform<T> pure_rotation(const Mat3<T>& R) { return {R, zero3<T>()}; }

}  // namespace sarrus
