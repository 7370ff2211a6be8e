#pragma once
#include "joint.hpp"

namespace sarrus {

/// Turning joint. q = angle about z [rad].
struct Revolute : ConstantSubspace<1>, VectorCoordinates<1> {
  static constexpr int nq = 1, nv = 1;
  template <class T> static SARRUS_INLINE Transform<T> transform(const Coordinates<T>& c) {
    return pure_rotation(rotation_z(c.sin[0], c.cos[0]));
  }
  template <class T> static SARRUS_INLINE Subspace<T, 1> subspace(const Coordinates<T>&) { return {{unit_motion<T>(2)}}; }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>& A) {
    A.I.xz = A.I.yz = A.I.zz = T(0.0);
    A.H(2, 0) = A.H(2, 1) = A.H(2, 2) = T(0.0);
  }
};

}  // namespace sarrus
