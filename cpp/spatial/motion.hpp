// Spatial vectors [angular; linear], in the axes and at the origin of their frame (van der Merwe 2.1-2.3), and the rigid transform between frames.
#pragma once

#include "vector.hpp"

namespace sarrus {

/// Velocity [rad/s, m/s] or acceleration.
template <class T> struct Motion {
  Vec3<T> angular, linear;
  static SARRUS_INLINE Motion zero() { return {zero3<T>(), zero3<T>()}; }
};
template <class T> SARRUS_INLINE Motion<T> operator+(const Motion<T>& a, const Motion<T>& b) {
  return {a.angular + b.angular, a.linear + b.linear};
}
template <class T> SARRUS_INLINE Motion<T> operator*(const Motion<T>& a, const T& s) { return {a.angular * s, a.linear * s}; }

/// Moment [N m] and force [N].
template <class T> struct Force {
  Vec3<T> angular, linear;
  static SARRUS_INLINE Force zero() { return {zero3<T>(), zero3<T>()}; }
  SARRUS_INLINE Force& operator+=(const Force& b) {
    angular += b.angular, linear += b.linear;
    return *this;
  }
  SARRUS_INLINE Force& operator-=(const Force& b) {
    angular -= b.angular, linear -= b.linear;
    return *this;
  }
};
template <class T> SARRUS_INLINE Force<T> operator*(const Force<T>& a, const T& s) { return {a.angular * s, a.linear * s}; }
template <class T> SARRUS_INLINE Force<T> operator+(Force<T> a, const Force<T>& b) { return a += b; }

/// Return the power of a force along a motion.
template <class T> SARRUS_INLINE T dot(const Motion<T>& m, const Force<T>& f) {
  return dot(m.angular, f.angular) + dot(m.linear, f.linear);
}

/// Pose of frame B in frame A: p_A = R p_B + p. In the thesis' symbols R = A^T and p = b (2.6, 2.26-2.29).
template <class T> struct Transform {
  Mat3<T> R;
  Vec3<T> p;

  static SARRUS_INLINE Transform identity() {
    Transform X;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) X.R(i, j) = T(i == j ? 1.0 : 0.0);
    X.p = zero3<T>();
    return X;
  }
  template <class U> SARRUS_INLINE Transform<U> cast() const { return {sarrus::cast<U>(R), sarrus::cast<U>(p)}; }
  SARRUS_INLINE Transform operator*(const Transform& b) const { return {R * b.R, R * b.p + p}; }
  SARRUS_INLINE Transform inverse() const { return {R.transpose(), -transpose_times(R, p)}; }

  /// Convert a motion from A's axes and origin to B's (2.6).
  SARRUS_INLINE Motion<T> to_child(const Motion<T>& m) const {
    return {transpose_times(R, m.angular), transpose_times(R, Vec3<T>(m.linear + cross(m.angular, p)))};
  }
  /// Convert a motion from B's axes and origin to A's.
  SARRUS_INLINE Motion<T> to_parent(const Motion<T>& m) const {
    const Vec3<T> w = R * m.angular;
    return {w, R * m.linear + cross(p, w)};
  }
  /// Convert a force from B's axes and origin to A's (4.23, with the tilde on b that the thesis omits).
  SARRUS_INLINE Force<T> to_parent(const Force<T>& f) const {
    const Vec3<T> F = R * f.linear;
    return {R * f.angular + cross(p, F), F};
  }
};

template <class T> SARRUS_INLINE Transform<T> cast(const Transform<double>& X) { return X.cast<T>(); }

/// Convert a motion from axes B to axes A, at the same point; the columns of R are the axes B in A. in_axes: convert from A to B.
template <class T> SARRUS_INLINE Motion<T> turned(const Mat3<T>& R, const Motion<T>& m) { return {R * m.angular, R * m.linear}; }
template <class T> SARRUS_INLINE Motion<T> in_axes(const Mat3<T>& R, const Motion<T>& m) {
  return {transpose_times(R, m.angular), transpose_times(R, m.linear)};
}

/// Read six numbers, [angular; linear].
template <class T> SARRUS_INLINE Motion<T> load_motion(const T* x) {
  return {vec3<T>(x[0], x[1], x[2]), vec3<T>(x[3], x[4], x[5])};
}
template <class T> SARRUS_INLINE Force<T> load_force(const T* x) {
  return {vec3<T>(x[0], x[1], x[2]), vec3<T>(x[3], x[4], x[5])};
}
template <class Six, class T> SARRUS_INLINE void store(const Six& m, T* out) {
  for (int i = 0; i < 3; ++i) out[i] = m.angular(i), out[3 + i] = m.linear(i);
}

}  // namespace sarrus
