#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Slides along an ellipse in the plane across its axis, without turning. q = the parametric angle [rad]: p = (a cos q, b sin q, 0).
struct Elliptic : JointDefaults, VectorCoordinates<1> {
  static constexpr const char* name = "Elliptic";
  static constexpr CoordinateList coordinates = {{"", "rad"}}, velocities = coordinates;
  static constexpr std::initializer_list<const char*> axis_names = {"axis"};
  static constexpr int nv = 1, free_components = combined;
  static constexpr bool constant_subspace = false;
  static Mat3<double> axes(const Vec3<double>& axis, const Vec3<double>&, JointConstants&) { return axis_frame(axis); }
  template <class F> static void fields(JointConstants& k, F field) {
    field("a", k.number[0], "m"), field("b", k.number[1], "m");
  }
  template <class T> static Vec3<T> along(const JointNumbers<T>& k, const T& x, const T& y) {
    return vec3<T>(k[0] * x, k[1] * y, T(0.0));
  }
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return {Mat3<T>(Mat3<T>::Identity()), along<T>(c.constants, c.cos[0], c.sin[0])};
  }
  template <class T> static Subspace<T, 1> subspace(const Coordinates<T>& c) {
    return {{{zero3<T>(), along<T>(c.constants, -c.sin[0], c.cos[0])}}};
  }
  template <class T> static Subspace<T, 1> subspace_rate(const Coordinates<T>& c, const T* v) {
    return {{{zero3<T>(), along<T>(c.constants, -c.cos[0] * v[0], -c.sin[0] * v[0])}}};
  }
  template <class T> static void read(const JointNumbers<T>& k, const Transform<T>& X, const T* near, T* q) {
    q[0] = turns_near(atan2(T(X.p(1) / k[1]), T(X.p(0) / k[0])), near[0]);
  }
  template <class T> static void close(const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>& V,
                                       ClosingJoint<T>& out) {
    const T x = X.p(0) / k[0], y = X.p(1) / k[1], inverse = T(1.0) / sqrt(x * x + y * y + T(1e-300));
    const T cos = x * inverse, sin = y * inverse;
    const Motion<T> off = off_by(X, {Mat3<T>(Mat3<T>::Identity()), along<T>(k, cos, sin)});
    const Vec3<T> tangent = along<T>(k, -sin, cos), o = zero3<T>();
    const Vec3<T> normal = vec3<T>(tangent(1), -tangent(0), T(0.0));
    for (int r = 0; r < 3; ++r) out.row[r] = {unit_motion<T>(r).angular, o}, out.residual[r] = off.angular(r);
    out.row[3] = {o, unit_motion<T>(rz).angular}, out.residual[3] = off.linear(2);
    out.row[4] = {o, normal}, out.residual[4] = dot(normal, off.linear);
    const T rate = dot(tangent, V.linear) / (dot(tangent, tangent) + T(1e-300));
    out.bias = {o, along<T>(k, -cos * rate * rate, -sin * rate * rate)};
  }
};

}  // namespace sarrus
