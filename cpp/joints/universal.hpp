#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Universal joint: rotates by q0 about an axis a fixed in the predecessor, then by q1 about z of the successor. The axis a is in the x-z plane and
/// need not be perpendicular to z. If a is parallel to z, the two columns of phi are equal; no function divides by their determinant.
struct Universal : JointDefaults, VectorCoordinates<2> {
  static constexpr const char* name = "Universal";
  static constexpr CoordinateList coordinates = {{"1", "rad"}, {"2", "rad"}}, velocities = coordinates;
  static constexpr int nv = 2, free_components = combined;
  static constexpr bool constant_subspace = false;
  static constexpr std::initializer_list<const char*> axis_names = {"axis1", "axis2"};
  static Mat3<double> axes(const Vec3<double>& first, const Vec3<double>& second, JointConstants& k) {
    const Vec3<double> across = first - second * dot(first, second);
    Mat3<double> Q = axis_frame(second);  // if the axes are parallel, the direction of x is arbitrary
    if (across.norm() >= 1e-9) Q.col(0) = across / across.norm(), Q.col(1) = cross<double>(Q.col(2), Q.col(0));
    const Vec3<double> turned = transpose_times(Q, first);
    k.number[0] = turned(0), k.number[1] = turned(2);  // the y component is 0
    return Q;
  }
  template <class T> static Vec3<T> first_axis(const Coordinates<T>& c) {
    return vec3<T>(c.constants[0], T(0.0), c.constants[1]);
  }
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return pure_rotation(rotation_about(first_axis(c), c.sin[0], c.cos[0]) * rotation_z(c.sin[1], c.cos[1]));
  }
  template <class T> static Subspace<T, 2> subspace(const Coordinates<T>& c) {
    return {{{transpose_times(rotation_z(c.sin[1], c.cos[1]), first_axis(c)), zero3<T>()}, unit_motion<T>(2)}};
  }
  /// Rate of the subspace: in the successor's axes, the first axis rotates about z, opposite to q1: phi-dot = -w~ phi (5.69).
  template <class T> static Subspace<T, 2> subspace_rate(const Coordinates<T>& c, const T* v) {
    const Vec3<T> a = subspace(c).column[0].angular;
    return {{{vec3<T>(a(1) * v[1], -a(0) * v[1], T(0.0)), zero3<T>()}, Motion<T>::zero()}};
  }
  static const char* cannot_close(const JointConstants& k) {
    return std::abs(k.number[0]) < 1e-9 ? "its two axes are parallel: use a Revolute" : nullptr;
  }
  /// The first angle is the rotation about a that aligns the z axes; the remaining rotation is about z.
  template <class T> static void read(const JointNumbers<T>& k, const Transform<T>& X, const T* near, T* q) {
    const Vec3<T> a = first_axis(Coordinates<T>{nullptr, nullptr, nullptr, k}), z = unit_motion<T>(2).angular;
    const Vec3<T> stands = Vec3<T>(X.R.col(2)), across = z - a * dot(a, z), side = cross(a, z);
    const T sin = dot(stands, side), cos = dot(stands, across), inverse = T(1.0) / sqrt(sin * sin + cos * cos + T(1e-300));
    const Mat3<T> left = rotation_about(a, T(-sin * inverse), T(cos * inverse)) * X.R;
    q[0] = turns_near(atan2(sin, cos), near[0]), q[1] = TurnAboutZ<T>(left).angle_near(near[1]);
  }
  /// The constraint keeps the angle between the two axes constant: a . R z = a . z. Its row is z x a', where a' is the axis a in the child's axes.
  template <class T>
  static void close(const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>& V, ClosingJoint<T>& out) {
    const Vec3<T> a = transpose_times(X.R, first_axis(Coordinates<T>{nullptr, nullptr, nullptr, k}));  // in the child's axes
    const T inverse = T(1.0) / abs(k[0]);
    const Vec3<T> n = vec3<T>(-a(1) * inverse, a(0) * inverse, T(0.0)), e = transpose_times(X.R, X.p), &w = V.angular;
    out.row[0] = {n, zero3<T>()};
    out.residual[0] = (a(2) - k[1]) * inverse;
    for (int i = 0; i < 3; ++i) {
      out.row[1 + i] = {zero3<T>(), unit_motion<T>(i).angular};
      out.residual[1 + i] = e(i);
    }
    // in the child's axes the axis a rotates backwards, a-dot = a x w, and so does the row: n-dot . w, also for a velocity w that the joint does not
    // allow
    const T turning = (w(2) * (a(0) * w(0) + a(1) * w(1)) - a(2) * (w(0) * w(0) + w(1) * w(1))) * inverse;
    out.bias.angular = n * (-turning / dot(n, n));
  }
};

}  // namespace sarrus
