// Exponential and logarithm of rigid motions (Murray, Li and Sastry 2.3; Li and Wu 4.3). Where the angle vanishes the series is
// exact to rounding, and 1 keeps the unused lane finite.
#pragma once

#include "motion.hpp"
#include "rotation.hpp"

namespace sarrus {

template <class T> struct Pose {
  Quaternion<T> rotation;
  Vec3<T> position;
};

/// The pose reached in unit time at a constant velocity m in the moving axes.
template <class T> inline Pose<T> exp(const Motion<T>& m) {
  const Vec3<T>& w = m.angular;
  const T t2 = dot(w, w);
  const auto small = t2 < T(1e-4);
  const T t = sqrt(select(small, T(1.0), t2)), half = T(0.5) * t;
  T s, c;
  sincos(1, &half, &s, &c);
  // (1 - cos t)/t^2 and (t - sin t)/t^3, by half angles, which keep the digits that 1 - cos t would lose
  const T a = select(small, T(0.5) - t2 * (T(1.0 / 24.0) - t2 / T(720.0)), T(2.0) * s * s / (t * t));
  const T b = select(small, T(1.0 / 6.0) - t2 * (T(1.0 / 120.0) - t2 / T(5040.0)), (t - T(2.0) * s * c) / (t * t * t));
  const Vec3<T> wv = cross(w, m.linear);
  return {exp(w), m.linear + wv * a + cross(w, wv) * b};
}

/// The velocity that reaches this pose in unit time.
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

/// exp(share w) is the turn that Cayley's map makes of w: half of it has the tangent |w|/2.
inline double cayley_share(const Vec3<double>& w) {
  const double c = std::sqrt(0.25 * dot(w, w));
  return c == 0.0 ? 1.0 : std::atan(c) / c;
}

}  // namespace sarrus
