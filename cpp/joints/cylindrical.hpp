#pragma once
#include "joint.hpp"

namespace sarrus {

/// Turns about and slides along one axis. q = (angle about z [rad], displacement along z [m]).
struct Cylindrical : ConstantSubspace<2>, VectorCoordinates<2> {
  static constexpr int nq = 2, nv = 2;
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return {rotation_z(c.sin[0], c.cos[0]), vec3<T>(T(0.0), T(0.0), c.q[1])};
  }
  template <class T> static Subspace<T, 2> subspace(const Coordinates<T>&) { return {{unit_motion<T>(2), unit_motion<T>(5)}}; }
};

}  // namespace sarrus
