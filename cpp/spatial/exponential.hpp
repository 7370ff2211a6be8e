// Exponential and logarithm of rigid motions (Murray, Li and Sastry 2.3; Li and Wu 4.3). For small angles the series is exact to rounding. Lanes that
// do not use the closed form evaluate it at an angle of 1, so that it is finite.
#pragma once

#include "motion.hpp"
#include "rotation.hpp"

namespace sarrus {

template <class T> struct Pose {
  Quaternion<T> rotation;
  Vec3<T> position;
};

/// Return the pose after unit time at the constant velocity m, given in the moving axes.
template <class T> inline Pose<T> exp(const Motion<T>& m) {
  const Vec3<T>& w = m.angular;
  const T t2 = dot(w, w);
  const auto small = t2 < T(1e-4);
  const T t = sqrt(select(small, T(1.0), t2)), half = T(0.5) * t;
  T s, c;
  sincos(1, &half, &s, &c);
  // (1 - cos t)/t^2 and (t - sin t)/t^3, computed with half angles, because 1 - cos t would lose digits
  const T a = select(small, T(0.5) - t2 * (T(1.0 / 24.0) - t2 / T(720.0)), T(2.0) * s * s / (t * t));
  const T b = select(small, T(1.0 / 6.0) - t2 * (T(1.0 / 120.0) - t2 / T(5040.0)), (t - T(2.0) * s * c) / (t * t * t));
  const Vec3<T> wv = cross(w, m.linear);
  return {exp(w), m.linear + wv * a + cross(w, wv) * b};
}

/// Return the constant velocity that leads to this pose in unit time.
template <class T> inline Motion<T> log(const Pose<T>& x) {
  const Vec3<T> w = log(x.rotation);
  const T t2 = dot(w, w);
  const auto small = t2 < T(1e-4);
  const T t = sqrt(select(small, T(1.0), t2)), half = T(0.5) * t;
  T s, c;
  sincos(1, &half, &s, &c);
  const T k = select(small, T(1.0 / 12.0) + t2 * (T(1.0 / 720.0) + t2 / T(30240.0)), T(1.0) / (t * t) - c / (T(2.0) * t * s));
  const Vec3<T> wp = cross(w, x.position);
  return {w, x.position - wp * T(0.5) + cross(w, wp) * k};
}

// --- tangent maps --------------------------------------------------------------------------------------------------------------
//
// Differential of exp:  exp(x + dx) = exp(J_l dx) exp(x) = exp(x) exp(J_r dx)  to first order, J_r(x) = J_l(-x), with
//
//   J_l = sum of ad^n / (n + 1)! = 1 + a ad + b ad^2         a = (1 - cos t)/t^2,  b = (t - sin t)/t^3
//   J_l^-1                       = 1 - ad/2 + k ad^2         k = (1 - t/2 cot(t/2))/t^2
//
// for rotations, with ad = skew(w), t = |w|. For a rigid motion, ad = [w~ 0; v~ w~], and the same functions are evaluated on dual numbers: if f is a
// function of w~, and f-dot its rate along v, then [f 0; f-dot f] is this function of ad (Selig 2005, 4.5; principle of transference). The tangent
// map of the logarithm is the inverse of that of exp.

/// Return the sum of coefficient[n] x^n.
template <class T, int N> SARRUS_INLINE T polynomial(const double (&coefficient)[N], const T& x) {
  T sum = T(coefficient[N - 1]);
  for (int n = N - 2; n >= 0; --n) sum = sum * x + T(coefficient[n]);
  return sum;
}

/// Return 1 + x skew(w) + y skew(w)^2.
template <class T> SARRUS_INLINE Mat3<T> rotation_polynomial(const Vec3<T>& w, const T& x, const T& y) {
  const Mat3<T> W = skew(w), WW = W * W;
  Mat3<T> J;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) J(i, j) = T(i == j ? 1.0 : 0.0) + x * W(i, j) + y * WW(i, j);
  return J;
}

/// Coefficients of the tangent maps. For angles below half a radian, series are used: they and their rates are exact to rounding, while the closed
/// forms would lose digits.
template <class T> struct HalfAngle {
  T t2, t, s, c;
  decltype(t2 < t2) small;
  explicit HalfAngle(const Vec3<T>& w) : t2(dot(w, w)), small(t2 < T(0.25)) {
    t = sqrt(select(small, T(1.0), t2));
    const T half = T(0.5) * t;
    sincos(1, &half, &s, &c);
  }
};

template <class T> inline Mat3<T> left_jacobian(const Vec3<T>& w) {
  static constexpr double one_cosine[] = {1.0 / 2,       -1.0 / 24,        1.0 / 720,        -1.0 / 40320,
                                          1.0 / 3628800, -1.0 / 479001600, 1.0 / 87178291200};
  static constexpr double less_sine[] = {1.0 / 6,        -1.0 / 120,        1.0 / 5040,         -1.0 / 362880,
                                         1.0 / 39916800, -1.0 / 6227020800, 1.0 / 1307674368000};
  const HalfAngle<T> x(w);
  const T a = select(x.small, polynomial(one_cosine, x.t2), T(2.0) * x.s * x.s / (x.t * x.t));
  const T b = select(x.small, polynomial(less_sine, x.t2), (x.t - T(2.0) * x.s * x.c) / (x.t * x.t * x.t));
  return rotation_polynomial(w, a, b);
}

template <class T> inline Mat3<T> left_jacobian_inverse(const Vec3<T>& w) {
  // coefficients |B_2n| / (2n)! of the series of t/2 cot(t/2), with Bernoulli's numbers B_2n
  static constexpr double less_cotangent[] = {1.0 / 12,          1.0 / 720,
                                              1.0 / 30240,       1.0 / 1209600,
                                              1.0 / 47900160,    691.0 / 1307674368000,
                                              1.0 / 74724249600, 3617.0 / 10670622842880000};
  const HalfAngle<T> x(w);
  const T k = select(x.small, polynomial(less_cotangent, x.t2), (T(1.0) - T(0.5) * x.t * x.c / x.s) / (x.t * x.t));
  return rotation_polynomial(w, T(-0.5), k);
}

/// Return the factor `share` with exp(share w) = cay(w): the tangent of half the angle is |w|/2.
template <class T> T cayley_share(const Vec3<T>& w) {
  const T c2 = T(0.25) * dot(w, w);
  const auto small = c2 < T(1e-6);
  const T c = sqrt(select(small, T(1.0), c2));
  return select(small, T(1.0) - c2 * (T(1.0 / 3.0) - c2 * T(0.2)), atan2(c, T(1.0)) / c);
}

}  // namespace sarrus
