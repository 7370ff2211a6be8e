#pragma once
#include "joint.hpp"

namespace sarrus {

/// No joint at all. q = (quaternion x y z w, position) of the successor; v = its velocity [angular; linear] in its own axes.
struct Free : ConstantSubspace<6> {
  static constexpr int nq = 7, nv = 6;
  template <class T> static SARRUS_INLINE Transform<T> transform(const Coordinates<T>& c) {
    return {rotation(Quaternion<T>::load(c.q)), vec3<T>(c.q[4], c.q[5], c.q[6])};
  }
  template <class T> static SARRUS_INLINE Subspace<T, 6> subspace(const Coordinates<T>&) {
    Subspace<T, 6> S;
    for (int k = 0; k < 6; ++k) S.column[k] = unit_motion<T>(k);
    return S;
  }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>& A) {
    A = {Sym3<T>::zero(), skew(zero3<T>()), Sym3<T>::zero()};  // a free body passes nothing on
  }
  template <class T> static void integrate(const T* q, const T* dv, T* q1) {
    const Pose<T> step = exp(load_motion(dv));
    const Quaternion<T> r = Quaternion<T>::load(q);
    const Vec3<T> p = vec3<T>(q[4], q[5], q[6]) + times(rotation(r), step.position);
    (r * step.rotation).normalized().store(q1);
    for (int k = 0; k < 3; ++k) q1[4 + k] = p(k);
  }
  template <class T> static void difference(const T* q0, const T* q1, T* dv) {
    const Quaternion<T> r0 = Quaternion<T>::load(q0);
    const Vec3<T> p = transpose_times(rotation(r0), vec3<T>(q1[4] - q0[4], q1[5] - q0[5], q1[6] - q0[6]));
    store(log(Pose<T>{(r0.conjugate() * Quaternion<T>::load(q1)).normalized(), p}), dv);
  }
  template <class T> static void rate(const T* q, const T* v, T* q_dot) {
    const Quaternion<T> r = Quaternion<T>::load(q);
    const Vec3<T> u = times(rotation(r), vec3<T>(v[3], v[4], v[5]));
    (r * Quaternion<T>{v[0] * T(0.5), v[1] * T(0.5), v[2] * T(0.5), T(0.0)}).store(q_dot);
    for (int k = 0; k < 3; ++k) q_dot[4 + k] = u(k);
  }
  template <class T> static void bracket(const T* u, const T* v, T* uv) {
    const Motion<T> a = load_motion(u), b = load_motion(v);
    store(Motion<T>{cross(a.angular, b.angular), cross(a.angular, b.linear) + cross(a.linear, b.angular)}, uv);
  }
};

}  // namespace sarrus
