// Spatial algebra in matrix form and in the forms of model files: quaternions, roll-pitch-yaw, logarithms, the 6x6 matrices of motions, forces and
// inertias, and checks of a body's inertia. The algorithms do not use this file.
//
// Only is_physical branches on values; all other functions accept doubles and packets.
#pragma once

#include "exponential.hpp"
#include "inertia.hpp"

namespace sarrus {

template <class T> using SpatialMatrix = Eigen::Matrix<T, 6, 6>;

// --- rotations ---------------------------------------------------------------------------------------------------------------

/// Return the unit quaternion of a rotation, with w >= 0. The matrix 4 q q^T is linear in the elements of R, and each of its rows is q multiplied by
/// four times one component. The row of the largest component is normalised, so that no cancellation occurs, even near half a revolution (Shepperd
/// 1978).
template <class T> inline Quaternion<T> quaternion(const Mat3<T>& R) {
  const T trace = R(0, 0) + R(1, 1) + R(2, 2);
  const T xy = R(1, 0) + R(0, 1), xz = R(0, 2) + R(2, 0), yz = R(2, 1) + R(1, 2);
  const T wx = R(2, 1) - R(1, 2), wy = R(0, 2) - R(2, 0), wz = R(1, 0) - R(0, 1);
  const T xx = T(1.0) + T(2.0) * R(0, 0) - trace, yy = T(1.0) + T(2.0) * R(1, 1) - trace;
  const T zz = T(1.0) + T(2.0) * R(2, 2) - trace, ww = T(1.0) + trace;

  Quaternion<T> q{wx, wy, wz, ww};
  T largest = ww;
  const auto offer = [&](const T& diagonal, const Quaternion<T>& row) {
    const auto better = diagonal > largest;
    q = {select(better, row.x, q.x), select(better, row.y, q.y), select(better, row.z, q.z), select(better, row.w, q.w)};
    largest = select(better, diagonal, largest);
  };
  offer(xx, {xx, xy, xz, wx});
  offer(yy, {xy, yy, yz, wy});
  offer(zz, {xz, yz, zz, wz});
  const T turn = select(q.w < T(0.0), T(-1.0), T(1.0));  // q and -q are one rotation
  return Quaternion<T>{q.x * turn, q.y * turn, q.z * turn, q.w * turn}.normalized();
}

/// Return the unit quaternion of a rotation: q or -q, whichever is nearer to `near` (x, y, z, w). If `near` is zero, the sign is arbitrary.
template <class T> inline Quaternion<T> quaternion_near(const Mat3<T>& R, const T* near) {
  const Quaternion<T> a = quaternion(R);
  const T sign = select(a.x * near[0] + a.y * near[1] + a.z * near[2] + a.w * near[3] < T(0.0), T(-1.0), T(1.0));
  return {a.x * sign, a.y * sign, a.z * sign, a.w * sign};
}

/// Return R = Rz(yaw) Ry(pitch) Rx(roll), as in URDF: rotations about fixed axes, roll first.
template <class T> inline Mat3<T> rotation_from_rpy(const Vec3<T>& rpy) {
  T s[3], c[3];
  sincos(3, rpy.data(), s, c);
  return rotation_z(s[2], c[2]) * (rotation_y(s[1], c[1]) * rotation_x(s[0], c[0]));
}

/// Return roll, pitch and yaw, with |pitch| <= pi/2. In gimbal lock, |pitch| = pi/2, only yaw - roll (or their sum) is determined, and yaw is set to
/// 0. Roll is computed from R and yaw instead of by atan2(R21, R22), so that the three angles reproduce R to rounding even near gimbal lock.
template <class T> inline Vec3<T> rpy(const Mat3<T>& R) {
  const T cos_pitch = sqrt(R(0, 0) * R(0, 0) + R(1, 0) * R(1, 0));
  const T yaw = select(cos_pitch < T(4e-15), T(0.0), atan2(R(1, 0), R(0, 0)));
  T s, c;
  sincos(1, &yaw, &s, &c);
  const T roll = atan2(s * R(0, 2) - c * R(1, 2), c * R(1, 1) - s * R(0, 1));
  return vec3<T>(roll, atan2(-R(2, 0), cos_pitch), yaw);
}

/// Return the rotation vector: the axis times the angle, of length at most pi.
template <class T> inline Vec3<T> log(const Mat3<T>& R) { return log(quaternion(R)); }

/// Return the rotation nearest to a matrix that is nearly a rotation, by two Newton steps. Each step squares the error R^T R - 1.
template <class T> inline Mat3<T> nearest_rotation(Mat3<T> R) {
  for (int step = 0; step < 2; ++step) {
    Mat3<T> half = Mat3<T>(R.transpose()) * R;
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 3; ++i) half(i, j) = T(i == j ? 1.5 : 0.0) - T(0.5) * half(i, j);
    R = R * half;
  }
  return R;
}

// --- rigid motions -----------------------------------------------------------------------------------------------------------

template <class T> inline Transform<T> transform(const Pose<T>& x) { return {rotation(x.rotation), x.position}; }
template <class T> inline Motion<T> log(const Transform<T>& X) { return log(Pose<T>{quaternion(X.R), X.p}); }

/// Return the matrix [a b; c d].
template <class T> inline SpatialMatrix<T> spatial_matrix(const Mat3<T>& a, const Mat3<T>& b, const Mat3<T>& c,
                                                          const Mat3<T>& d) {
  SpatialMatrix<T> M;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) M(i, j) = a(i, j), M(i, 3 + j) = b(i, j), M(3 + i, j) = c(i, j), M(3 + i, 3 + j) = d(i, j);
  return M;
}

/// Return the matrix that transforms the components of a motion from B to A; X is the pose of B in A. The matrix for X.inverse() is van der Merwe's
/// 2.6 (and 6.40): [A 0; A b~^T A] with A = R^T, b = p.
template <class T> inline SpatialMatrix<T> motion_matrix(const Transform<T>& X) {
  return spatial_matrix<T>(X.R, skew(zero3<T>()), skew(X.p) * X.R, X.R);
}

/// Return the matrix that transforms the components of a force from B to A (4.23, with the tilde on b that the thesis omits). It is the inverse
/// transpose of motion_matrix(), so that power does not change.
template <class T> inline SpatialMatrix<T> force_matrix(const Transform<T>& X) {
  return spatial_matrix<T>(X.R, skew(X.p) * X.R, skew(zero3<T>()), X.R);
}

/// Return the rate of a motion m, or of a force f, that is constant in a frame moving at v (Featherstone 2008, 2.31, 2.32): (v x m).f = -m.(v x* f).
template <class T> inline Motion<T> cross(const Motion<T>& v, const Motion<T>& m) {
  return {cross(v.angular, m.angular), Vec3<T>(cross(v.angular, m.linear) + cross(v.linear, m.angular))};
}
template <class T> inline Force<T> cross(const Motion<T>& v, const Force<T>& f) {
  return {Vec3<T>(cross(v.angular, f.angular) + cross(v.linear, f.linear)), cross(v.angular, f.linear)};
}

/// Return the matrix ad(v) with ad(v) m = v x m; and that of v x* for forces, -ad(v)^T.
template <class T> inline SpatialMatrix<T> ad(const Motion<T>& v) {
  return spatial_matrix<T>(skew(v.angular), skew(zero3<T>()), skew(v.linear), skew(v.angular));
}
template <class T> inline SpatialMatrix<T> ad_dual(const Motion<T>& v) {
  return spatial_matrix<T>(skew(v.angular), skew(v.linear), skew(zero3<T>()), skew(v.angular));
}

/// Tangent maps of the exponential of rigid motions, from those of rotations on dual numbers: see exponential.hpp.
template <class T, class Map> SpatialMatrix<T> rigid_motion_map(const Motion<T>& m, Map map) {
  Vec3<Dual<T>> w;
  for (int i = 0; i < 3; ++i) w(i) = {m.angular(i), m.linear(i)};
  const Mat3<Dual<T>> J = map(w);
  Mat3<T> value, rate;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) value(i, j) = J(i, j).value, rate(i, j) = J(i, j).rate;
  return spatial_matrix<T>(value, skew(zero3<T>()), rate, value);
}
template <class T> inline SpatialMatrix<T> left_jacobian(const Motion<T>& m) {
  return rigid_motion_map(m, [](const auto& w) { return left_jacobian(w); });
}
template <class T> inline SpatialMatrix<T> left_jacobian_inverse(const Motion<T>& m) {
  return rigid_motion_map(m, [](const auto& w) { return left_jacobian_inverse(w); });
}

/// Compute exp(xi_1 q_1) ... exp(xi_n q_n). Before each factor k, call put(k, product of the factors to its left) (Murray, Li and Sastry 3.2.2).
template <class T, class Put> Transform<T> product_of_exponentials(int n, const T* screw, const T* q, Put put) {
  Transform<T> X = Transform<T>::identity();
  for (int k = 0; k < n; ++k) {
    put(k, X);
    X = X * transform(exp(load_motion(screw + 6 * k) * q[k]));
  }
  return X;
}

// --- inertia -----------------------------------------------------------------------------------------------------------------

/// Return the inertia tensor about a point, by the parallel axis theorem (3.31); r: vector from the point to the centre of mass.
template <class T> inline Sym3<T> parallel_axes(const T& m, const Vec3<T>& r, const Sym3<T>& about_com) {
  const T x = r(0), y = r(1), z = r(2);
  return about_com + Sym3<T>{m * (y * y + z * z), -m * x * y, -m * x * z, m * (x * x + z * z), -m * y * z, m * (x * x + y * y)};
}

/// Return the inertia tensor I = tr(J) 1 - J from the Euler tensor J (3.30).
template <class T> inline Sym3<T> inertia_tensor(const Sym3<T>& J) {
  return {J.yy + J.zz, -J.xy, -J.xz, J.xx + J.zz, -J.yz, J.xx + J.yy};
}

/// Return the spatial inertia matrix [I h~; h~^T m1] about the frame's origin (4.1).
template <class T> inline SpatialMatrix<T> inertia_matrix(const Inertia<T>& b) {
  const Sym3<T> mass{b.m, T(0.0), T(0.0), b.m, T(0.0), b.m};
  return spatial_matrix<T>(b.I.matrix(), skew(b.h), skew(Vec3<T>(-b.h)), mass.matrix());
}

/// Return the pseudo-inertia [J h; h^T m], where J is the Euler tensor about the origin: the second moments of the mass in homogeneous coordinates.
/// An inertia belongs to some distribution of mass if and only if this matrix is positive semidefinite (Wensing, Kim, Slotine 2018).
template <class T> inline Eigen::Matrix<T, 4, 4> pseudo_inertia(const Inertia<T>& b) {
  const Mat3<T> J = euler_tensor(b.I).matrix();
  Eigen::Matrix<T, 4, 4> P;
  for (int j = 0; j < 3; ++j) {
    for (int i = 0; i < 3; ++i) P(i, j) = J(i, j);
    P(j, 3) = P(3, j) = b.h(j);
  }
  P(3, 3) = b.m;
  return P;
}

/// Return the eigenvalues in ascending order, by Jacobi's rotations, which converge for a 3x3 matrix in five sweeps. The closed form (with an arc
/// cosine) is not used: it loses half the digits if two eigenvalues are equal, as for a body of revolution.
template <class T> inline Vec3<T> principal_moments(Sym3<T> A) {
  T size = T(0.0);
  for (const T& x : {A.xx, A.xy, A.xz, A.yy, A.yz, A.zz}) size = select(size < abs(x), abs(x), size);
  size = select(T(0.0) < size, size, T(1.0));  // scale the matrix to entries of order one, because these are squared
  A = {A.xx / size, A.xy / size, A.xz / size, A.yy / size, A.yz / size, A.zz / size};
  const auto annihilate = [](T& pq, T& pp, T& qq, T& rp, T& rq) {
    const T d = qq - pp, sum = abs(d) + sqrt(d * d + T(4.0) * pq * pq);
    const auto turns = T(0.0) < sum;
    const T tan = select(turns, T(2.0) * pq, T(0.0)) * select(d < T(0.0), T(-1.0), T(1.0)) / select(turns, sum, T(1.0));
    const T cos = T(1.0) / sqrt(T(1.0) + tan * tan), sin = tan * cos, p = rp;
    pp -= tan * pq, qq += tan * pq, pq = T(0.0);
    rp = cos * p - sin * rq, rq = sin * p + cos * rq;
  };
  for (int sweep = 0; sweep < 6; ++sweep) {
    annihilate(A.xy, A.xx, A.yy, A.xz, A.yz);
    annihilate(A.xz, A.xx, A.zz, A.xy, A.yz);
    annihilate(A.yz, A.yy, A.zz, A.xy, A.xz);
  }
  const auto order = [](T& low, T& high) {
    const auto wrong = high < low;
    const T a = low;
    low = select(wrong, high, low), high = select(wrong, a, high);
  };
  order(A.xx, A.yy), order(A.yy, A.zz), order(A.xx, A.yy);
  return vec3<T>(A.xx * size, A.yy * size, A.zz * size);
}

/// Return true if a body can have this inertia. Mass and inertia may be zero. Otherwise the mass is positive, and no principal moment exceeds the sum
/// of the other two by more than `tolerance` times the largest one. The pseudo-inertia is then positive semidefinite, up to that tolerance.
inline bool is_physical(double mass, const Sym3<double>& about_com, double tolerance) {
  const Vec3<double> moments = principal_moments(about_com);
  const double largest = moments(2) > -moments(0) ? moments(2) : -moments(0);
  if (mass == 0.0) return largest == 0.0;
  return mass > 0.0 && moments(0) + moments(1) >= moments(2) - tolerance * largest;
}

}  // namespace sarrus
