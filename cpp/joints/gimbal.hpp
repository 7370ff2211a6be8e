#pragma once
#include "joint.hpp"

namespace sarrus {

/// The thesis' general joint: any of rx ry rz tx ty tz free, the others held. Rotations about x, y, z, each axis carried along by
/// the ones before it (2.26), then a displacement along the axes so turned (2.29); the successor sits at its end. N is how many
/// are free. Where ry is a quarter turn the columns of phi become dependent; no angle is ever divided by, so inverse dynamics
/// stays finite there.
template <int N> struct Gimbal : VectorCoordinates<N> {
  static constexpr int nq = N, nv = N;

  template <class T> struct Stages {
    T sin[3], cos[3];       // of the three rotations
    Vec3<T> d;              // displacement
    Vec3<T> axis[3];        // of the three rotations, in the successor (2.38, 2.39)
  };
  template <class T> static Stages<T> stages(const Coordinates<T>& c) {
    const JointConstants& k = *c.constants;
    Stages<T> g;
    int i = 0;
    for (int r = 0; r < 3; ++r) {
      const bool is_free = k.mask >> r & 1;
      g.sin[r] = is_free ? c.sin[i] : T(k.parameter[r]);
      g.cos[r] = is_free ? c.cos[i] : T(k.cosine[r]);
      i += is_free;
    }
    for (int t = 0; t < 3; ++t) {
      const bool is_free = k.mask >> (3 + t) & 1;
      g.d(t) = is_free ? c.q[i] : T(k.parameter[3 + t]);
      i += is_free;
    }
    const T &sy = g.sin[1], &cy = g.cos[1], &sz = g.sin[2], &cz = g.cos[2];
    g.axis[0] = vec3<T>(cz * cy, -sz * cy, sy);
    g.axis[1] = vec3<T>(sz, cz, T(0.0));
    g.axis[2] = vec3<T>(T(0.0), T(0.0), T(1.0));
    return g;
  }

  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    const Stages<T> g = stages(c);
    const Mat3<T> R =
        times(times(rotation_x(g.sin[0], g.cos[0]), rotation_y(g.sin[1], g.cos[1])), rotation_z(g.sin[2], g.cos[2]));
    return {R, times(R, g.d)};
  }
  template <class T> static Subspace<T, N> subspace(const Coordinates<T>& c) {
    const Stages<T> g = stages(c);
    Subspace<T, N> S;
    int i = 0;
    for (int k = 0; k < 6 && i < N; ++k) {
      if (!(c.constants->mask >> k & 1)) continue;
      S.column[i++] = k < 3 ? Motion<T>{g.axis[k], cross(g.axis[k], g.d)} : unit_motion<T>(k);
    }
    return S;
  }
  /// Seen from the successor an axis turns backwards with the rotations that come after it (5.68-5.71, with the sign that the
  /// print lacks), and the arm d of the rotations changes with the displacements.
  template <class T> static Subspace<T, N> subspace_rate(const Coordinates<T>& c, const T* v) {
    const Stages<T> g = stages(c);
    T rate[6];
    for (int k = 0, i = 0; k < 6; ++k) rate[k] = c.constants->mask >> k & 1 ? v[i++] : T(0.0);
    const Vec3<T> after_y = g.axis[2] * rate[2], after_x = g.axis[1] * rate[1] + after_y;
    const Vec3<T> axis_dot[3] = {cross(g.axis[0], after_x), cross(g.axis[1], after_y), zero3<T>()};
    const Vec3<T> d_dot = vec3<T>(rate[3], rate[4], rate[5]);
    Subspace<T, N> S;
    int i = 0;
    for (int k = 0; k < 6 && i < N; ++k) {
      if (!(c.constants->mask >> k & 1)) continue;
      S.column[i++] = k < 3 ? Motion<T>{axis_dot[k], cross(axis_dot[k], g.d) + cross(g.axis[k], d_dot)} : Motion<T>::zero();
    }
    return S;
  }
};

}  // namespace sarrus
