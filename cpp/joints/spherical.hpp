#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Spherical joint. q = unit quaternion (x, y, z, w); v = angular velocity of the successor in its own axes [rad/s].
struct Spherical : JointDefaults, UnitSubspace<rx, ry, rz> {
  static constexpr const char* name = "Spherical";
  static constexpr CoordinateList coordinates = {{"qx", "1"}, {"qy", "1"}, {"qz", "1"}, {"qw", "1"}},
                                  velocities = {{"rx", "rad"}, {"ry", "rad"}, {"rz", "rad"}};
  static constexpr int nq = 4;
  static constexpr bool has_quaternion = true, has_ball_spring = true;
  static constexpr bool is_rate(int) { return false; }
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return pure_rotation(rotation(Quaternion<T>::load(c.q)));
  }
  template <class T> static void integrate(const T* q, const T* dv, T* q1) {
    (Quaternion<T>::load(q) * exp(vec3<T>(dv[0], dv[1], dv[2]))).normalized().store(q1);
  }
  template <class T> static void difference(const T* q0, const T* q1, T* dv) {
    const Vec3<T> r = log((Quaternion<T>::load(q0).conjugate() * Quaternion<T>::load(q1)).normalized());
    for (int k = 0; k < 3; ++k) dv[k] = r(k);
  }
  template <class T> static void rate(const T* q, const T* v, T* q_dot) {
    (Quaternion<T>::load(q) * Quaternion<T>{v[0] * T(0.5), v[1] * T(0.5), v[2] * T(0.5), T(0.0)}).store(q_dot);
  }
  template <class T> static void bracket(const T* u, const T* v, T* uv) {
    const Vec3<T> c = cross(vec3<T>(u[0], u[1], u[2]), vec3<T>(v[0], v[1], v[2]));
    for (int k = 0; k < 3; ++k) uv[k] = c(k);
  }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>& X, const Motion<T>&, ClosingJoint<T>& out) {
    close_components(free_components, X, {X.R, zero3<T>()}, out);
  }
  template <class T> static void read(const JointNumbers<T>&, const Transform<T>& X, const T* near, T* q) {
    quaternion_near(X.R, near).store(q);
  }
  template <class T> static void cayley_to_exponential(T* u) {
    const T share = cayley_share(vec3<T>(u[0], u[1], u[2]));
    for (int k = 0; k < 3; ++k) u[k] *= share;
  }
};

}  // namespace sarrus
