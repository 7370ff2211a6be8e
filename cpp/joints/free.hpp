#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Free joint. q = (quaternion x y z w, position) of the successor; v = velocity [angular; linear] of the successor in its own axes.
struct Free : JointDefaults, UnitSubspace<rx, ry, rz, tx, ty, tz> {
  static constexpr const char* name = "Free";
  static constexpr CoordinateList coordinates = {{"qx", "1"}, {"qy", "1"}, {"qz", "1"}, {"qw", "1"},
                                                 {"x", "m"},  {"y", "m"},  {"z", "m"}},
                                  velocities = {{"rx", "rad"}, {"ry", "rad"}, {"rz", "rad"}, {"x", "m"}, {"y", "m"}, {"z", "m"}};
  static constexpr int nq = 7;
  static constexpr bool has_quaternion = true;
  static constexpr bool is_rate(int) { return false; }
  template <class T> static SARRUS_INLINE Transform<T> transform(const Coordinates<T>& c) {
    return {rotation(Quaternion<T>::load(c.q)), vec3<T>(c.q[4], c.q[5], c.q[6])};
  }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>& A) {
    A = {Sym3<T>::zero(), skew(zero3<T>()), Sym3<T>::zero()};  // a free joint transmits no inertia to the predecessor
  }
  template <class T> static void integrate(const T* q, const T* dv, T* q1) {
    const Pose<T> step = exp(load_motion(dv));
    const Quaternion<T> r = Quaternion<T>::load(q);
    const Vec3<T> p = vec3<T>(q[4], q[5], q[6]) + rotation(r) * step.position;
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
    const Vec3<T> u = rotation(r) * vec3<T>(v[3], v[4], v[5]);
    (r * Quaternion<T>{v[0] * T(0.5), v[1] * T(0.5), v[2] * T(0.5), T(0.0)}).store(q_dot);
    for (int k = 0; k < 3; ++k) q_dot[4 + k] = u(k);
  }
  template <class T> static void bracket(const T* u, const T* v, T* uv) {
    const Motion<T> a = load_motion(u), b = load_motion(v);
    store(Motion<T>{cross(a.angular, b.angular), cross(a.angular, b.linear) + cross(a.linear, b.angular)}, uv);
  }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>&, const Motion<T>&, ClosingJoint<T>&) {}
  template <class T> static void read(const JointNumbers<T>&, const Transform<T>& X, const T* near, T* q) {
    quaternion_near(X.R, near).store(q);
    for (int k = 0; k < 3; ++k) q[4 + k] = X.p(k);
  }
  /// Also convert the displacement of the origin: a uniform motion with mean velocity v0 displaces it by h (v0 + c x v0), c = h w/2.
  template <class T> static void cayley_to_exponential(T* u) {
    const Vec3<T> turn = vec3<T>(u[0], u[1], u[2]), along = vec3<T>(u[3], u[4], u[5]);
    const T c2 = T(0.25) * dot(turn, turn), share = cayley_share(turn);
    const auto small = c2 < T(1e-6);
    const T stretch = select(small, T(2.0 / 3.0) - c2 * (T(2.0 / 15.0) - c2 * T(2.0 / 35.0)),
                             (share * (T(1.0) + c2) - T(1.0)) / select(small, T(1.0), c2));
    // contribution of the component perpendicular to the axis
    const Vec3<T> across = cross(turn, cross(turn, along)) * (T(-0.25) * stretch);
    for (int k = 0; k < 3; ++k) u[k] *= share, u[3 + k] += across(k);
  }
};

}  // namespace sarrus
