#pragma once
#include "joint.hpp"

namespace sarrus {

/// Sliding joint. q = displacement along z [m].
struct Prismatic : ConstantSubspace<1>, VectorCoordinates<1> {
  static constexpr int nq = 1, nv = 1;
  template <class T> static SARRUS_INLINE Transform<T> transform(const Coordinates<T>& c) {
    Transform<T> X = Transform<T>::identity();
    X.p(2) = c.q[0];
    return X;
  }
  template <class T> static SARRUS_INLINE Subspace<T, 1> subspace(const Coordinates<T>&) { return {{unit_motion<T>(5)}}; }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>& A) {
    A.M.xz = A.M.yz = A.M.zz = T(0.0);
    A.H(0, 2) = A.H(1, 2) = A.H(2, 2) = T(0.0);
  }
};

}  // namespace sarrus
