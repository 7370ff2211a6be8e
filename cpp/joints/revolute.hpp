#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Revolute joint. q = angle about z [rad].
struct Revolute : OneAxis, UnitSubspace<rz>, VectorCoordinates<1> {
  static constexpr const char* name = "Revolute";
  static constexpr CoordinateList coordinates = {{"", "rad"}}, velocities = coordinates;
  template <class T> static SARRUS_INLINE Transform<T> transform(const Coordinates<T>& c) {
    return pure_rotation(rotation_z(c.sin[0], c.cos[0]));
  }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>& X, const Motion<T>&, ClosingJoint<T>& out) {
    close_components(free_components, X, {TurnAboutZ<T>(X.R).rotation(), zero3<T>()}, out);
  }
  template <class T> static void read(const JointNumbers<T>&, const Transform<T>& X, const T* near, T* q) {
    q[0] = TurnAboutZ<T>(X.R).angle_near(near[0]);
  }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>& A) {
    A.I.xz = A.I.yz = A.I.zz = T(0.0);
    A.H(2, 0) = A.H(2, 1) = A.H(2, 2) = T(0.0);
  }
};

}  // namespace sarrus
