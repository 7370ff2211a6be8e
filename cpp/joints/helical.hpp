#pragma once
#include "closing_rows.hpp"

namespace sarrus {

/// Helical joint (screw). q = angle about z [rad]; the displacement along z is the pitch [m/rad] times q.
struct Helical : OneAxis, ConstantSubspace<1>, VectorCoordinates<1> {
  static constexpr const char* name = "Helical";
  static constexpr CoordinateList coordinates = {{"", "rad"}}, velocities = coordinates;
  static constexpr int free_components = combined;
  static constexpr bool whole_turns_return = false, has_pitch = true;
  static double pitch(const JointConstants& k) { return k.number[0]; }
  static bool pose_tells_turns(const JointConstants& k) { return pitch(k) != 0.0; }
  template <class F> static void fields(JointConstants& k, F field) { field("pitch", k.number[0], "m/rad"); }
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return {rotation_z(c.sin[0], c.cos[0]), vec3<T>(T(0.0), T(0.0), c.constants[0] * c.q[0])};
  }
  template <class T> static Subspace<T, 1> subspace(const Coordinates<T>& c) {
    Subspace<T, 1> S = {{unit_motion<T>(2)}};
    S.column[0].linear(2) = c.constants[0];
    return S;
  }
  /// Read q at the pose X. The number of whole revolutions is determined from the displacement, because the rotation does not determine it.
  template <class T> static void read(const JointNumbers<T>& k, const Transform<T>& X, const T* near, T* q) {
    q[0] = TurnAboutZ<T>(X.R).angle_near(pitch(*k.constants) != 0.0 ? X.p(2) / k[0] : near[0]);
  }
  template <class T> static void close(const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>&, ClosingJoint<T>& out) {
    Transform<T> nearest = {TurnAboutZ<T>(X.R).rotation(), zero3<T>()};
    if (pitch(*k.constants) != 0.0) {
      T angle;
      read<T>(k, X, nullptr, &angle);
      nearest.p(2) = k[0] * angle;
    }
    const Motion<T> off = off_by(X, nearest);
    const Vec3<T> x = unit_motion<T>(rx).angular, y = unit_motion<T>(ry).angular, z = unit_motion<T>(rz).angular, o = zero3<T>();
    const Force<T> row[5] = {{x, o}, {y, o}, {o, x}, {o, y}, {z * -k[0], z}};
    const T residual[5] = {off.angular(0), off.angular(1), off.linear(0), off.linear(1), off.linear(2)};
    for (int r = 0; r < 5; ++r) out.row[r] = row[r], out.residual[r] = residual[r];
  }
};

}  // namespace sarrus
