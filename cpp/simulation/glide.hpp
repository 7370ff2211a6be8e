// Uniform motion: bodies rotate at constant rates, while the origins of Free and Planar joints move along straight lines.
//
// Velocities of these joints are components along the successor's axes, which rotate with it. In uniform motion, the velocity of an origin is
// constant in the predecessor's axes. In the successor's axes it changes by v' = R'^T R v, exactly, at the rate -w x v. An integrator that uses
// glide() integrates this transport term in its drift. Its kick then includes only the other accelerations. All other joints move by integrate().
#pragma once

#include "../dynamics/configuration.hpp"
#include "../spatial/rotation.hpp"

namespace sarrus {

/// Compute the configuration q1 after the displacement u (nv), a velocity times a duration. Transforms v (nv) to the axes of q1.
template <class T> void glide(const Tree& tree, const T* q, const T* u, T* q1, T* v) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    visit_every(b.described, b.nv, [&](auto joint) {
      const T *from = q + b.iq, *by = u + b.iv;
      T *to = q1 + b.iq, *w = v + b.iv;
      if constexpr (std::is_same_v<decltype(joint), Free>) {
        const T turn[6] = {by[0], by[1], by[2], T(0.0), T(0.0), T(0.0)};
        joint.integrate(from, turn, to);
        const Mat3<T> R = rotation(Quaternion<T>::load(from)), R1 = rotation(Quaternion<T>::load(to));
        const Vec3<T> displacement = R * vec3<T>(by[3], by[4], by[5]), along = R * vec3<T>(w[3], w[4], w[5]);
        const Vec3<T> turned = transpose_times(R1, along);
        // if there is no rotation, the velocity must not change, not even by rounding
        const auto turns = by[0] * by[0] + by[1] * by[1] + by[2] * by[2] > T(0.0);
        for (int k = 0; k < 3; ++k) to[4 + k] = from[4 + k] + displacement(k), w[3 + k] = select(turns, turned(k), w[3 + k]);
      } else if constexpr (std::is_same_v<decltype(joint), Planar>) {
        T s[2], c[2];
        sincos(1, from + 2, s, c), sincos(1, by + 2, s + 1, c + 1);
        to[0] = from[0] + c[0] * by[0] - s[0] * by[1], to[1] = from[1] + s[0] * by[0] + c[0] * by[1], to[2] = from[2] + by[2];
        const T x = c[1] * w[0] + s[1] * w[1], y = c[1] * w[1] - s[1] * w[0];
        w[0] = x, w[1] = y;
      } else {
        joint.integrate(from, by, to);
      }
    });
  }
}

/// Compute the rates a (nv) of the velocities v (nv) in uniform motion. Returns true if some rate is not zero.
template <class T> bool uniform_motion(const Tree& tree, const T* v, T* a) {
  bool turns = false;
  for (int k = 0; k < tree.nv; ++k) a[k] = T(0.0);
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const T* w = v + b.iv;
    T* rate = a + b.iv;
    if (b.described == JointKind::free) {
      const Vec3<T> transport = cross(vec3<T>(w[3], w[4], w[5]), vec3<T>(w[0], w[1], w[2]));
      for (int k = 0; k < 3; ++k) rate[3 + k] = transport(k);
      turns = true;
    } else if (b.described == JointKind::planar) {
      rate[0] = w[2] * w[1], rate[1] = -w[2] * w[0];
      turns = true;
    }
  }
  return turns;
}

}  // namespace sarrus
