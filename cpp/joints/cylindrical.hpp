#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Cylindrical joint: rotates about and slides along one axis. q = (angle about z [rad], displacement along z [m]).
struct Cylindrical : OneAxis, UnitSubspace<rz, tz>, VectorCoordinates<2> {
  static constexpr const char* name = "Cylindrical";
  static constexpr CoordinateList coordinates = {{"angle", "rad"}, {"slide", "m"}}, velocities = coordinates;
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return {rotation_z(c.sin[0], c.cos[0]), vec3<T>(T(0.0), T(0.0), c.q[1])};
  }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>& X, const Motion<T>&, ClosingJoint<T>& out) {
    close_components(free_components, X, {TurnAboutZ<T>(X.R).rotation(), vec3<T>(T(0.0), T(0.0), X.p(2))}, out);
  }
  template <class T> static void read(const JointNumbers<T>&, const Transform<T>& X, const T* near, T* q) {
    q[0] = TurnAboutZ<T>(X.R).angle_near(near[0]), q[1] = X.p(2);
  }
};

}  // namespace sarrus
