#pragma once
#include "joint.hpp"

namespace sarrus {

/// Ball joint. q = unit quaternion (x, y, z, w); v = angular velocity of the successor in its own axes [rad/s].
struct Spherical : ConstantSubspace<3> {
  static constexpr int nq = 4, nv = 3;
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return pure_rotation(rotation(Quaternion<T>::load(c.q)));
  }
  template <class T> static Subspace<T, 3> subspace(const Coordinates<T>&) {
    return {{unit_motion<T>(0), unit_motion<T>(1), unit_motion<T>(2)}};
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
};

}  // namespace sarrus
