#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Prismatic joint. q = displacement along z [m].
struct Prismatic : OneAxis, UnitSubspace<tz>, VectorCoordinates<1> {
  static constexpr const char* name = "Prismatic";
  static constexpr CoordinateList coordinates = {{"", "m"}}, velocities = coordinates;
  template <class T> static SARRUS_INLINE Transform<T> transform(const Coordinates<T>& c) {
    Transform<T> X = Transform<T>::identity();
    X.p(2) = c.q[0];
    return X;
  }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>& X, const Motion<T>&, ClosingJoint<T>& out) {
    close_components(free_components, X, {Mat3<T>(Mat3<T>::Identity()), vec3<T>(T(0.0), T(0.0), X.p(2))}, out);
  }
  template <class T> static void read(const JointNumbers<T>&, const Transform<T>& X, const T*, T* q) { q[0] = X.p(2); }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>& A) {
    A.M.xz = A.M.yz = A.M.zz = T(0.0);
    A.H(0, 2) = A.H(1, 2) = A.H(2, 2) = T(0.0);
  }
};

}  // namespace sarrus
