#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Planar joint. q = (x, y [m], angle about the normal z [rad]); v = (velocity along the successor's own x and y [m/s], rate).
struct Planar : JointDefaults, UnitSubspace<tx, ty, rz> {
  static constexpr const char* name = "Planar";
  static constexpr CoordinateList coordinates = {{"x", "m"}, {"y", "m"}, {"angle", "rad"}}, velocities = coordinates;
  static constexpr int nq = 3;
  static constexpr bool is_rate(int k) { return k == 2; }
  static constexpr std::initializer_list<const char*> axis_names = {"normal"};
  static Mat3<double> axes(const Vec3<double>& normal, const Vec3<double>&, JointConstants&) { return axis_frame(normal); }
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return {rotation_z(c.sin[0], c.cos[0]), vec3<T>(c.q[0], c.q[1], T(0.0))};
  }
  template <class T> static void integrate(const T* q, const T* dv, T* q1) {
    const Pose<T> step = exp(Motion<T>{vec3<T>(T(0.0), T(0.0), dv[2]), vec3<T>(dv[0], dv[1], T(0.0))});
    T s, c;
    sincos(1, q + 2, &s, &c);
    q1[0] = q[0] + c * step.position(0) - s * step.position(1);
    q1[1] = q[1] + s * step.position(0) + c * step.position(1);
    q1[2] = q[2] + dv[2];
  }
  /// The difference includes whole revolutions of the angle. Therefore it is not computed by the logarithm of a rotation, which omits them.
  template <class T> static void difference(const T* q0, const T* q1, T* dv) {
    const T turn = q1[2] - q0[2], dx = q1[0] - q0[0], dy = q1[1] - q0[1];
    T s, c;
    sincos(1, q0 + 2, &s, &c);
    const T x = c * dx + s * dy, y = c * dy - s * dx;
    // the inverse of p = V(angle) u with V = [S -C; C S]
    const auto small = abs(turn) < T(1e-2);
    const T t = select(small, T(1.0), turn), half = T(0.5) * t, t2 = turn * turn;
    T sh, ch;
    sincos(1, &half, &sh, &ch);
    const T k = select(small, T(1.0) - t2 * (T(1.0 / 12.0) + t2 / T(720.0)), half * ch / sh), h = T(0.5) * turn;
    dv[0] = k * x + h * y, dv[1] = k * y - h * x, dv[2] = turn;
  }
  template <class T> static void rate(const T* q, const T* v, T* q_dot) {
    T s, c;
    sincos(1, q + 2, &s, &c);
    q_dot[0] = c * v[0] - s * v[1], q_dot[1] = s * v[0] + c * v[1], q_dot[2] = v[2];
  }
  template <class T> static void bracket(const T* u, const T* v, T* uv) {
    uv[0] = v[2] * u[1] - u[2] * v[1], uv[1] = u[2] * v[0] - v[2] * u[0], uv[2] = T(0.0);
  }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>& X, const Motion<T>&, ClosingJoint<T>& out) {
    close_components(free_components, X, {TurnAboutZ<T>(X.R).rotation(), vec3<T>(X.p(0), X.p(1), T(0.0))}, out);
  }
  template <class T> static void read(const JointNumbers<T>&, const Transform<T>& X, const T* near, T* q) {
    q[0] = X.p(0), q[1] = X.p(1), q[2] = TurnAboutZ<T>(X.R).angle_near(near[2]);
  }
};

}  // namespace sarrus
