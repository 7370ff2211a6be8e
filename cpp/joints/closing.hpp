// A joint that closes a loop is the same joint, asked the other way round: given the pose X of the child's frame in the parent's,
// how far is it from a pose that the joint can take, and which directions does the joint not leave free? These span the complement
// of its motion space (van der Merwe 2.10-2.16): Phi_c^T phi = 0, and a relative velocity V is possible where Phi_c^T V = 0.
//
// On the constraint Phi_c^T (A - phi-dot q-dot) = 0, so that the rate of Phi_c is never needed; A is the apparent derivative of V in
// the child's axes. Everything is in the child's axes at its origin, where most joints' rows are plain components of V.
#pragma once

#include "../spatial/conversions.hpp"
#include "gimbal.hpp"
#include "helical.hpp"
#include "universal.hpp"

namespace sarrus {

/// The components of [angular; linear] that a joint leaves free, as bits; -1 where its rows are not plain components.
inline int free_components(JointKind kind) {
  switch (kind) {
    case JointKind::fixed: return 0;
    case JointKind::revolute: return 1 << 2;
    case JointKind::prismatic: return 1 << 5;
    case JointKind::cylindrical: return 1 << 2 | 1 << 5;
    case JointKind::planar: return 1 << 2 | 1 << 3 | 1 << 4;
    case JointKind::spherical: return 1 << 0 | 1 << 1 | 1 << 2;
    case JointKind::free: return 63;
    case JointKind::helical:
    case JointKind::universal:
    case JointKind::gimbal:
    case JointKind::reversed: return -1;
  }
  return -1;
}

template <class T> struct ClosingJoint {
  T residual[6];  // [rad, m], along the rows
  Force<T> row[6];  // Phi_c
  Motion<T> bias;  // phi-dot q-dot of the joint coordinates that V makes
};

/// Two unit vectors that make a right-handed frame with n, smooth but where n is -z.
template <class T> SARRUS_INLINE void perpendiculars(const Vec3<T>& n, Vec3<T>& x, Vec3<T>& y) {
  const T s = select(n(2) < T(0.0), T(-1.0), T(1.0)), k = T(-1.0) / (s + n(2)), xy = n(0) * n(1) * k;
  x = vec3<T>(T(1.0) + s * n(0) * n(0) * k, s * xy, -s * n(0));
  y = vec3<T>(xy, s + n(1) * n(1) * k, -n(1));
}

template <class T> SARRUS_INLINE Mat3<T> turn_about(int axis, const T& sin, const T& cos) {
  return axis == 0 ? rotation_x(sin, cos) : axis == 1 ? rotation_y(sin, cos) : rotation_z(sin, cos);
}

/// Sine and cosine of the free ones of up to two angles of R = Rot(x) Rot(y) Rot(z), the others being held. None is lost at a quarter
/// turn about y: held angles are known and need not be told from the free ones.
template <class T> SARRUS_INLINE void read_angles(int free, Mat3<T> R, T (&sin)[3], T (&cos)[3]) {
  const auto read = [&](int k, const T& s, const T& c) {
    const T share = T(1.0) / sqrt(s * s + c * c + T(1e-300));
    sin[k] = s * share, cos[k] = c * share;
  };
  if (free == 5) {  // y is held between them
    const T side = select(cos[1] < T(0.0), T(-1.0), T(1.0));
    read(0, -side * R(1, 2), side * R(2, 2));
    read(2, -side * R(0, 1), side * R(0, 0));
    return;
  }
  // take the held ones away on both sides
  for (int k = 0; k < 3 && !(free >> k & 1); ++k) R = times(turn_about(k, T(-sin[k]), cos[k]), R);
  for (int k = 2; k >= 0 && !(free >> k & 1); --k) R = times(R, turn_about(k, T(-sin[k]), cos[k]));
  if (free == 3)
    read(0, R(2, 1), R(1, 1)), read(1, R(0, 2), R(0, 0));
  else if (free == 6)
    read(1, R(0, 2), R(2, 2)), read(2, R(1, 0), R(1, 1));
  else
    for (int k = 0; k < 3; ++k) {
      const int a = (k + 1) % 3, b = (k + 2) % 3;
      if (free >> k & 1) read(k, R(b, a) - R(a, b), R(a, a) + R(b, b));
    }
}

/// The thesis' general joint. The free angles are read off R given the held ones; what is left of R when they are taken away is how far
/// it is open. The displacement is along the turned axes.
template <class T> void close_gimbal(const JointConstants& k, const Transform<T>& X, const Motion<T>& V, ClosingJoint<T>& out) {
  const Mat3<T>& R = X.R;
  const Vec3<T>& w = V.angular;
  const int free = k.mask & 7;
  Vec3<T> turning = zero3<T>();  // angular part of phi-dot q-dot
  int row = 0;
  if (free != 7) {
    T sin[3], cos[3];
    for (int r = 0; r < 3; ++r) sin[r] = T(k.parameter[r]), cos[r] = T(k.cosine[r]);
    read_angles(free, R, sin, cos);
    const Mat3<T> reached = times(times(rotation_x(sin[0], cos[0]), rotation_y(sin[1], cos[1])), rotation_z(sin[2], cos[2]));
    const Vec3<T> off = log(times(Mat3<T>(reached.transpose()), R));

    const Vec3<T> axis[3] = {vec3<T>(cos[2] * cos[1], -sin[2] * cos[1], sin[1]), vec3<T>(sin[2], cos[2], T(0.0)),
                             unit_motion<T>(2).angular};  // in the child's axes (2.38, 2.39)
    Vec3<T> loose[3], normal[3];
    int n_loose = 0;
    for (int r = 0; r < 3; ++r)
      if (free >> r & 1) loose[n_loose++] = axis[r];
    if (n_loose == 0)
      for (int r = 0; r < 3; ++r) normal[r] = unit_motion<T>(r).angular;
    else if (n_loose == 1)
      perpendiculars(loose[0], normal[0], normal[1]);
    else {
      // the first axis is seen from the child to turn backwards with the second
      const Vec3<T> across = cross(loose[0], loose[1]);
      const T size = dot(across, across), first = dot(cross(w, loose[1]), across) / size,
              second = dot(cross(loose[0], w), across) / size;
      normal[0] = unit(across);
      turning = across * (first * second);
    }
    for (; row < 3 - n_loose; ++row) {
      out.row[row] = {normal[row], zero3<T>()};
      out.residual[row] = dot(normal[row], off);
    }
  }
  const Vec3<T> d = transpose_times(R, X.p), d_dot = V.linear - cross(w, d);
  for (int t = 0; t < 3; ++t) {
    if (k.mask >> (3 + t) & 1) continue;
    const Vec3<T> e = unit_motion<T>(t).angular;
    out.row[row] = {cross(e, d), e};  // a force through the centre of the rotations
    out.residual[row++] = d(t) - T(k.parameter[3 + t]);
  }
  out.bias = {turning, cross(turning, d) + cross(w, d_dot)};
}

/// Residual, and where the rows are not plain components the rows and the bias too. V is the relative velocity.
template <class T>
SARRUS_NOINLINE void close_joint(JointKind kind, const JointConstants& k, const Transform<T>& X, const Motion<T>& V,
                                 ClosingJoint<T>& out) {
  const Mat3<T>& R = X.R;
  out.bias = Motion<T>::zero();
  if (kind == JointKind::gimbal) return close_gimbal(k, X, V, out);

  if (kind == JointKind::universal) {
    // the angle between the two axes stays: a . R z = a . z, along the row z x a'
    const Vec3<T> a = Universal::first_axis(Coordinates<T>{nullptr, nullptr, nullptr, &k}), a_child = transpose_times(R, a);
    const T across = T(std::abs(k.first_axis[0])), share = T(1.0) / across;
    const Vec3<T> n = vec3<T>(-a_child(1) * share, a_child(0) * share, T(0.0)), e = transpose_times(R, X.p);
    out.row[0] = {n, zero3<T>()};
    out.residual[0] = (a_child(2) - T(k.first_axis[1])) * share;
    for (int i = 0; i < 3; ++i) {
      out.row[1 + i] = {zero3<T>(), unit_motion<T>(i).angular};
      out.residual[1 + i] = e(i);
    }
    // the axis a turns backwards in the child's axes, a-dot = a x w, and the row with it: n-dot . w, also where w is not allowed
    const Vec3<T>& w = V.angular;
    const T turning = (w(2) * (a_child(0) * w(0) + a_child(1) * w(1)) - a_child(2) * (w(0) * w(0) + w(1) * w(1))) * share;
    out.bias.angular = n * (-turning / dot(n, n));
    return;
  }

  // what the joint can take away of X: a turn about z, a displacement
  Mat3<T> turn = Transform<T>::identity().R;
  Vec3<T> reached = zero3<T>();
  T angle = T(0.0);
  const auto take_turn = [&] {
    const T s = R(1, 0) - R(0, 1), c = R(0, 0) + R(1, 1), share = T(1.0) / sqrt(s * s + c * c + T(1e-300));
    turn = rotation_z(T(s * share), T(c * share));
    angle = atan2(s, c);
  };
  switch (kind) {
    case JointKind::revolute: take_turn(); break;
    case JointKind::planar: take_turn(), reached = vec3<T>(X.p(0), X.p(1), T(0.0)); break;
    case JointKind::cylindrical: take_turn(), reached = vec3<T>(T(0.0), T(0.0), X.p(2)); break;
    case JointKind::prismatic: reached = vec3<T>(T(0.0), T(0.0), X.p(2)); break;
    case JointKind::helical:
      take_turn();
      if (k.pitch != 0.0) {
        // the angle does not tell how often it has turned: the displacement does
        const T turns = nearest((X.p(2) / T(k.pitch) - angle) / T(2 * M_PI));
        reached = vec3<T>(T(0.0), T(0.0), T(k.pitch) * (angle + T(2 * M_PI) * turns));
      }
      break;
    case JointKind::fixed:
    case JointKind::spherical:
    case JointKind::free: break;
    case JointKind::universal:  // answered above
    case JointKind::gimbal:
    case JointKind::reversed: return;  // a joint that closes a loop is taken as it was described
  }
  Motion<T> off;
  off.linear = transpose_times(R, Vec3<T>(X.p - reached));
  off.angular = kind == JointKind::spherical || kind == JointKind::free ? zero3<T>() : log(times(Mat3<T>(turn.transpose()), R));

  int row = 0;
  if (kind == JointKind::helical) {
    const int component[4] = {0, 1, 3, 4};
    for (const int i : component) {
      out.row[row] =
          i < 3 ? Force<T>{unit_motion<T>(i).angular, zero3<T>()} : Force<T>{zero3<T>(), unit_motion<T>(i - 3).angular};
      out.residual[row++] = i < 3 ? off.angular(i) : off.linear(i - 3);
    }
    const Vec3<T> z = unit_motion<T>(2).angular;
    out.row[row] = {z * T(-k.pitch), z};
    out.residual[row] = off.linear(2);
    return;
  }
  const int free = free_components(kind);
  for (int i = 0; i < 6; ++i)
    if (!(free >> i & 1)) out.residual[row++] = i < 3 ? off.angular(i) : off.linear(i - 3);
}

}  // namespace sarrus
