#pragma once
#include "joint.hpp"

namespace sarrus {

/// Cross joint: turns by q0 about an axis a fixed in the predecessor, then by q1 about z of the successor. a lies in the x-z plane
/// and need not be perpendicular to z; where it is parallel the two columns of phi coincide, and nothing divides by that.
struct Universal : VectorCoordinates<2> {
  static constexpr int nq = 2, nv = 2;
  template <class T> static Vec3<T> first_axis(const Coordinates<T>& c) {
    return vec3<T>(T(c.constants->first_axis[0]), T(0.0), T(c.constants->first_axis[1]));
  }
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return pure_rotation(times(rotation_about(first_axis(c), c.sin[0], c.cos[0]), rotation_z(c.sin[1], c.cos[1])));
  }
  template <class T> static Subspace<T, 2> subspace(const Coordinates<T>& c) {
    return {{{transpose_times(rotation_z(c.sin[1], c.cos[1]), first_axis(c)), zero3<T>()}, unit_motion<T>(2)}};
  }
  /// The first axis turns backwards about z, seen from the successor: phi-dot = -w~ phi (5.69).
  template <class T> static Subspace<T, 2> subspace_rate(const Coordinates<T>& c, const T* v) {
    const Vec3<T> a = subspace(c).column[0].angular;
    return {{{vec3<T>(a(1) * v[1], -a(0) * v[1], T(0.0)), zero3<T>()}, Motion<T>::zero()}};
  }
};

}  // namespace sarrus
