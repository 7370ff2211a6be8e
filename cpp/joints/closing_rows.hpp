// Constraint rows of loop joints. Given the pose X of the child's frame in the parent's, the residual is the difference of X from a pose that the
// joint can take. The rows span the complement of the joint's motion space (van der Merwe 2.10-2.16): Phi_c^T phi = 0, and a relative
// velocity V is possible if Phi_c^T V = 0.
//
// If the constraint is satisfied, Phi_c^T (A - phi-dot q-dot) = 0, where A is the apparent derivative of V in the child's axes. Therefore the rate of
// Phi_c is not needed. All vectors are in the child's axes at its origin, because the rows of most joints are plain components of V there.
#pragma once

#include "../spatial/conversions.hpp"
#include "joint.hpp"

namespace sarrus {

/// Rows of a loop joint and their residual. If the rows are plain components, only the residual is computed.
template <class T> struct ClosingJoint {
  T residual[6];  // [rad, m], along the rows
  Force<T> row[6];  // Phi_c
  Motion<T> bias;  // phi-dot q-dot, where q-dot are the joint velocities that correspond to V
};

/// Compute two unit vectors that form a right-handed frame with n; they are smooth functions of n except at n = -z.
template <class T> SARRUS_INLINE void perpendiculars(const Vec3<T>& n, Vec3<T>& x, Vec3<T>& y) {
  const T s = select(n(2) < T(0.0), T(-1.0), T(1.0)), k = T(-1.0) / (s + n(2)), xy = n(0) * n(1) * k;
  x = vec3<T>(T(1.0) + s * n(0) * n(0) * k, s * xy, -s * n(0));
  y = vec3<T>(xy, s + n(1) * n(1) * k, -n(1));
}

/// Add whole revolutions to an angle, such that it is nearest to `near`, because a pose does not determine the number of revolutions.
template <class T> SARRUS_INLINE T turns_near(const T& angle, const T& near) {
  return angle + T(2 * M_PI) * nearest((near - angle) / T(2 * M_PI));
}

/// Angle of a rotation about z, read from its matrix R.
template <class T> struct TurnAboutZ {
  T sin, cos;  // sine and cosine, both multiplied by the same positive number
  SARRUS_INLINE explicit TurnAboutZ(const Mat3<T>& R) : sin(R(1, 0) - R(0, 1)), cos(R(0, 0) + R(1, 1)) {}
  SARRUS_INLINE T angle() const { return atan2(sin, cos); }
  SARRUS_INLINE T angle_near(const T& near) const { return turns_near(angle(), near); }
  SARRUS_INLINE Mat3<T> rotation() const {
    const T inverse = T(1.0) / sqrt(sin * sin + cos * cos + T(1e-300));
    return rotation_z(T(sin * inverse), T(cos * inverse));
  }
};

/// Return the difference of the pose X from a nearby pose, in the axes of X.
template <class T> SARRUS_INLINE Motion<T> off_by(const Transform<T>& X, const Transform<T>& near) {
  return {log(Mat3<T>(near.R.transpose()) * X.R), transpose_times(X.R, Vec3<T>(X.p - near.p))};
}

/// Compute the residual of the components that are not free; `nearest`: the nearest pose that the joint can take.
template <class T>
SARRUS_NOINLINE void close_components(int free, const Transform<T>& X, const Transform<T>& nearest, ClosingJoint<T>& out) {
  const bool turns_freely = (free & 7) == 7;
  const Motion<T> off = turns_freely ? Motion<T>{zero3<T>(), transpose_times(X.R, Vec3<T>(X.p - nearest.p))} : off_by(X, nearest);
  for (int i = 0, row = 0; i < 6; ++i)
    if (!(free >> i & 1)) out.residual[row++] = i < 3 ? off.angular(i) : off.linear(i - 3);
}

}  // namespace sarrus
