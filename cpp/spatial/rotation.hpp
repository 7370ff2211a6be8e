// Rotations: quaternions (x, y, z, w), exponential and logarithm. R converts components in the rotated frame to components in the original frame (the
// transpose of the thesis' A).
#pragma once

#include "../simd/trig.hpp"
#include "vector.hpp"

namespace sarrus {

template <class T> struct Quaternion {
  T x, y, z, w;
  static SARRUS_INLINE Quaternion load(const T* q) { return {q[0], q[1], q[2], q[3]}; }
  SARRUS_INLINE void store(T* q) const { q[0] = x, q[1] = y, q[2] = z, q[3] = w; }
  SARRUS_INLINE T squared_norm() const { return x * x + y * y + z * z + w * w; }
  SARRUS_INLINE Vec3<T> vector() const { return vec3<T>(x, y, z); }
  SARRUS_INLINE Quaternion conjugate() const { return {-x, -y, -z, w}; }
  SARRUS_INLINE Quaternion operator*(const Quaternion& b) const {
    return {w * b.x + x * b.w + y * b.z - z * b.y, w * b.y - x * b.z + y * b.w + z * b.x, w * b.z + x * b.y - y * b.x + z * b.w,
            w * b.w - x * b.x - y * b.y - z * b.z};
  }
  SARRUS_INLINE Quaternion normalized() const {
    const T s = T(1.0) / sqrt(squared_norm());
    return {x * s, y * s, z * s, w * s};
  }
};

/// Return R(q/|q|). The division by the squared norm ensures that R is a rotation, even if the norm of q has drifted.
template <class T> SARRUS_INLINE Mat3<T> rotation(const Quaternion<T>& q) {
  const T s = T(2.0) / q.squared_norm();
  const T xs = q.x * s, ys = q.y * s, zs = q.z * s;
  const T xx = q.x * xs, xy = q.x * ys, xz = q.x * zs, yy = q.y * ys, yz = q.y * zs, zz = q.z * zs;
  const T wx = q.w * xs, wy = q.w * ys, wz = q.w * zs;
  Mat3<T> R;
  R(0, 0) = T(1.0) - (yy + zz), R(0, 1) = xy - wz, R(0, 2) = xz + wy;
  R(1, 0) = xy + wz, R(1, 1) = T(1.0) - (xx + zz), R(1, 2) = yz - wx;
  R(2, 0) = xz - wy, R(2, 1) = yz + wx, R(2, 2) = T(1.0) - (xx + yy);
  return R;
}

/// Return the quaternion of a rotation vector. For small angles the series of sin(t/2)/t is used, which is exact to rounding. Lanes that do not use
/// the closed form evaluate it at 1, so that it is finite.
template <class T> inline Quaternion<T> exp(const Vec3<T>& r) {
  const T t2 = dot(r, r);
  const auto small = t2 < T(1e-8);
  const T t = sqrt(select(small, T(1.0), t2)), half = T(0.5) * t;
  T s, c;
  sincos(1, &half, &s, &c);
  const T k = select(small, T(0.5) - t2 / T(48.0), s / t);
  return {r(0) * k, r(1) * k, r(2) * k, select(small, T(1.0) - t2 / T(8.0), c)};
}

/// Return the rotation vector of a unit quaternion, of length at most pi (q and -q are one rotation). At half a revolution its direction is that of
/// the quaternion's vector part, which rounding does not affect.
template <class T> inline Vec3<T> log(const Quaternion<T>& q) {
  const Vec3<T> v = q.vector();
  const T s2 = dot(v, v), turn = select(q.w < T(-1e-9), T(-1.0), T(1.0)), w = q.w * turn;
  // for small rotations the series is exact to rounding. It is used often, because all rotations are small if loops are nearly closed
  const auto large = s2 > T(1e-6);
  const T x = s2 / (w * w);
  T share = T(2.0) / w * (T(1.0) - x * (T(1.0 / 3.0) - x * T(0.2)));
  if (width_of<T> == 1 || any(large)) {  // for packets, skip the other formula if no lane needs it
    const T s = sqrt(select(large, s2, T(1.0)));
    share = select(large, T(2.0) * atan2(s, w) / s, share);
  }
  return v * (turn * share);
}

/// Return the rotation about a coordinate axis, from sine and cosine of the angle.
template <class T> SARRUS_INLINE Mat3<T> rotation_x(const T& s, const T& c) {
  Mat3<T> R;
  R(0, 0) = T(1.0), R(0, 1) = T(0.0), R(0, 2) = T(0.0);
  R(1, 0) = T(0.0), R(1, 1) = c, R(1, 2) = -s;
  R(2, 0) = T(0.0), R(2, 1) = s, R(2, 2) = c;
  return R;
}
template <class T> SARRUS_INLINE Mat3<T> rotation_y(const T& s, const T& c) {
  Mat3<T> R;
  R(0, 0) = c, R(0, 1) = T(0.0), R(0, 2) = s;
  R(1, 0) = T(0.0), R(1, 1) = T(1.0), R(1, 2) = T(0.0);
  R(2, 0) = -s, R(2, 1) = T(0.0), R(2, 2) = c;
  return R;
}
template <class T> SARRUS_INLINE Mat3<T> rotation_z(const T& s, const T& c) {
  Mat3<T> R;
  R(0, 0) = c, R(0, 1) = -s, R(0, 2) = T(0.0);
  R(1, 0) = s, R(1, 1) = c, R(1, 2) = T(0.0);
  R(2, 0) = T(0.0), R(2, 1) = T(0.0), R(2, 2) = T(1.0);
  return R;
}
/// Return the rotation about any unit axis (Rodrigues; SpaceDyn 3.4, with the terms that are missing in print).
template <class T> SARRUS_INLINE Mat3<T> rotation_about(const Vec3<T>& axis, const T& s, const T& c) {
  const T k = T(1.0) - c;
  Mat3<T> R;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) R(i, j) = k * axis(i) * axis(j);
  const Mat3<T> S = skew(Vec3<T>(axis * s));
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) R(i, j) += S(i, j);
  for (int i = 0; i < 3; ++i) R(i, i) += c;
  return R;
}

}  // namespace sarrus
