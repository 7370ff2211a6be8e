// Inertia of a rigid body about its frame's origin (van der Merwe 4.1): mass, first moment h = m s, rotational inertia I. This file also contains the
// articulated inertia, a symmetric 6x6 matrix that in general is not the inertia of a rigid body.
#pragma once

#include "motion.hpp"

namespace sarrus {

template <class T> struct Inertia {
  T m;  // mass [kg]
  Vec3<T> h;  // mass times centre of mass [kg m]
  Sym3<T> I;  // rotational inertia about the origin [kg m2]

  static SARRUS_INLINE Inertia zero() { return {T(0.0), zero3<T>(), Sym3<T>::zero()}; }
  template <class U> SARRUS_INLINE Inertia<U> cast() const { return {U(m), sarrus::cast<U>(h), I.template cast<U>()}; }
  SARRUS_INLINE Inertia& operator+=(const Inertia& b) {
    m += b.m, h += b.h, I += b.I;
    return *this;
  }
  /// Return the momentum for a velocity, or the force for an acceleration.
  SARRUS_INLINE Force<T> operator*(const Motion<T>& v) const {
    return {I * v.angular + cross(h, v.linear), v.linear * m - cross(h, v.angular)};
  }
  /// Return the wrench that a rotation at constant w requires: [w x I w; w x (w x h)] (4.21).
  SARRUS_INLINE Force<T> gyroscopic(const Vec3<T>& w) const { return {cross(w, Vec3<T>(I * w)), cross(w, Vec3<T>(cross(w, h)))}; }
};

template <class T> SARRUS_INLINE Inertia<T> cast(const Inertia<double>& b) { return b.cast<T>(); }

/// Convert the inertia of a body from frame B to frame A, where X is the pose of B in A (4.4, by the parallel axis theorem 3.31).
template <class T> SARRUS_INLINE Inertia<T> transformed(const Transform<T>& X, const Inertia<T>& b) {
  const Vec3<T> h = X.R * b.h, k = h + X.p * (T(0.5) * b.m);
  Sym3<T> I = rotate(X.R, b.I);
  const T twice = T(2.0) * dot(X.p, k);
  const Sym3<T> pk = symmetric_product(X.p, k);
  I.xx += twice - pk.xx, I.yy += twice - pk.yy, I.zz += twice - pk.zz;
  I.xy -= pk.xy, I.xz -= pk.xz, I.yz -= pk.yz;
  return {b.m, h + X.p * b.m, I};
}

/// Return the Euler tensor J = tr(I)/2 - I, the integral of r r^T dm (3.29).
template <class T> SARRUS_INLINE Sym3<T> euler_tensor(const Sym3<T>& I) {
  const T half_trace = T(0.5) * (I.xx + I.yy + I.zz);
  return {half_trace - I.xx, -I.xy, -I.xz, half_trace - I.yy, -I.yz, half_trace - I.zz};
}

/// Articulated inertia [I H; H^T M]: force = this * motion.
template <class T> struct ArticulatedInertia {
  Sym3<T> I;
  Mat3<T> H;
  Sym3<T> M;

  static SARRUS_INLINE ArticulatedInertia rigid(const Inertia<T>& b) {
    return {b.I, skew(b.h), {b.m, T(0.0), T(0.0), b.m, T(0.0), b.m}};
  }
  SARRUS_INLINE ArticulatedInertia& operator+=(const ArticulatedInertia& b) {
    I += b.I, H += b.H, M += b.M;
    return *this;
  }
  SARRUS_INLINE Force<T> operator*(const Motion<T>& v) const {
    return {I * v.angular + H * v.linear, transpose_times(H, v.angular) + M * v.linear};
  }
  /// Subtract x y^T. The sum of all subtracted products must be symmetric.
  SARRUS_INLINE void subtract_product(const Force<T>& x, const Force<T>& y) {
    const Vec3<T>&n = x.angular, &f = x.linear, &m = y.angular, &g = y.linear;
    I += Sym3<T>{-n(0) * m(0), -n(0) * m(1), -n(0) * m(2), -n(1) * m(1), -n(1) * m(2), -n(2) * m(2)};
    M += Sym3<T>{-f(0) * g(0), -f(0) * g(1), -f(0) * g(2), -f(1) * g(1), -f(1) * g(2), -f(2) * g(2)};
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s) H(r, s) -= n(r) * g(s);
  }
  /// Return the magnitude of the terms of s . (this s), to estimate the rounding error of this product.
  SARRUS_INLINE T size_along(const Motion<T>& s) const {
    return (I.xx + I.yy + I.zz) * dot(s.angular, s.angular) + (M.xx + M.yy + M.zz) * dot(s.linear, s.linear);
  }
};

/// Transform the articulated inertia from frame B to frame A; X is the pose of B in A.
template <class T> SARRUS_INLINE ArticulatedInertia<T> transformed(const Transform<T>& X, const ArticulatedInertia<T>& b) {
  // with L = R H R^T, N = R M R^T and [p] = skew(p):  H' = L + [p] N,  I' = R I R^T + [p] L^T - H' [p]
  ArticulatedInertia<T> a;
  a.M = rotate(X.R, b.M);
  const Mat3<T> RH = X.R * b.H;
  Mat3<T> L;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) L(i, j) = RH(i, 0) * X.R(j, 0) + RH(i, 1) * X.R(j, 1) + RH(i, 2) * X.R(j, 2);
  const Mat3<T> N = a.M.matrix();
  for (int j = 0; j < 3; ++j) a.H.col(j) = Vec3<T>(L.col(j)) + cross(X.p, Vec3<T>(N.col(j)));
  a.I = rotate(X.R, b.I);
  // column j of [p] L^T is p x (row j of L); row i of -H' [p] is p x (row i of H')
  const Vec3<T> x = cross(X.p, Vec3<T>(L.row(0))), y = cross(X.p, Vec3<T>(L.row(1))), z = cross(X.p, Vec3<T>(L.row(2)));
  const Vec3<T> u = cross(X.p, Vec3<T>(a.H.row(0))), v = cross(X.p, Vec3<T>(a.H.row(1))), w = cross(X.p, Vec3<T>(a.H.row(2)));
  a.I += Sym3<T>{x(0) + u(0), x(1) + v(0), x(2) + w(0), y(1) + v(1), y(2) + w(1), z(2) + w(2)};
  return a;
}

}  // namespace sarrus
