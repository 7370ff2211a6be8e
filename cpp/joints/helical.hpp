#pragma once
#include "joint.hpp"

namespace sarrus {

/// Screw. q = angle about z [rad]; it advances by pitch [m/rad] times that.
struct Helical : ConstantSubspace<1>, VectorCoordinates<1> {
  static constexpr int nq = 1, nv = 1;
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return {rotation_z(c.sin[0], c.cos[0]), vec3<T>(T(0.0), T(0.0), T(c.constants->pitch) * c.q[0])};
  }
  template <class T> static Subspace<T, 1> subspace(const Coordinates<T>& c) {
    Subspace<T, 1> S = {{unit_motion<T>(2)}};
    S.column[0].linear(2) = T(c.constants->pitch);
    return S;
  }
};

}  // namespace sarrus
