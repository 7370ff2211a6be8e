#pragma once
#include "closing_rows.hpp"

namespace sarrus {

template <class T> SARRUS_INLINE Mat3<T> turn_about(int axis, const T& sin, const T& cos) {
  return axis == 0 ? rotation_x(sin, cos) : axis == 1 ? rotation_y(sin, cos) : rotation_z(sin, cos);
}

// Constants of the fixed coordinates, in this order: sines of the rotations, displacements, cosines of the rotations.
template <class T> SARRUS_INLINE T fixed_sine(const JointNumbers<T>& k, int r) { return k[r]; }
template <class T> SARRUS_INLINE T fixed_cosine(const JointNumbers<T>& k, int r) { return k[6 + r]; }
template <class T> SARRUS_INLINE T fixed_displacement(const JointNumbers<T>& k, int t) { return k[3 + t]; }

/// Sines and cosines of the free angles of R = Rot(x) Rot(y) Rot(z), if at most two are free and the others are fixed. Because the fixed angle is
/// known, the solution is unique even at a quarter revolution about y.
template <class T> SARRUS_INLINE void read_angles(int free, Mat3<T> R, T (&sin)[3], T (&cos)[3]) {
  const auto read = [&](int k, const T& s, const T& c) {
    const T inverse = T(1.0) / sqrt(s * s + c * c + T(1e-300));
    sin[k] = s * inverse, cos[k] = c * inverse;
  };
  if (free == 5) {  // only x and z are free, and the fixed rotation about y is between them
    const T side = select(cos[1] < T(0.0), T(-1.0), T(1.0));
    read(0, -side * R(1, 2), side * R(2, 2));
    read(2, -side * R(0, 1), side * R(0, 0));
    return;
  }
  // remove the fixed rotations on both sides
  for (int k = 0; k < 3 && !(free >> k & 1); ++k) R = turn_about(k, T(-sin[k]), cos[k]) * R;
  for (int k = 2; k >= 0 && !(free >> k & 1); --k) R = R * turn_about(k, T(-sin[k]), cos[k]);
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

/// Compute q at the pose X. For three free angles there are two solutions, with ry below and above a quarter revolution; the one nearer to `near` is
/// returned.
template <class T> SARRUS_NOINLINE void gimbal_coordinates(const JointNumbers<T>& k, const Transform<T>& X, const T* near, T* q) {
  const Mat3<T>& R = X.R;
  T angle[3];
  int n = 0;
  if ((k.constants->free & 7) == 7) {
    const T cos_y = sqrt(R(0, 0) * R(0, 0) + R(0, 1) * R(0, 1));
    const T principal[3] = {atan2(T(-R(1, 2)), R(2, 2)), atan2(R(0, 2), cos_y), atan2(T(-R(0, 1)), R(0, 0))};
    const T half = T(M_PI), other[3] = {principal[0] + half, half - principal[1], principal[2] + half};
    T distance = T(0.0), other_distance = T(0.0), turned[3];
    for (int r = 0; r < 3; ++r) {
      angle[r] = turns_near(principal[r], near[r]), turned[r] = turns_near(other[r], near[r]);
      distance += (angle[r] - near[r]) * (angle[r] - near[r]), other_distance += (turned[r] - near[r]) * (turned[r] - near[r]);
    }
    for (int r = 0; r < 3; ++r) q[n++] = select(other_distance < distance, turned[r], angle[r]);
  } else {
    T sin[3], cos[3];
    for (int r = 0; r < 3; ++r) sin[r] = fixed_sine(k, r), cos[r] = fixed_cosine(k, r);
    read_angles(k.constants->free & 7, R, sin, cos);
    for (int r = 0; r < 3; ++r)
      if (k.free(r)) q[n] = turns_near(atan2(sin[r], cos[r]), near[n]), ++n;
  }
  const Vec3<T> d = transpose_times(R, X.p);
  for (int t = 0; t < 3; ++t)
    if (k.free(3 + t)) q[n++] = d(t);
}

/// Rows of the thesis' general joint. R and the fixed angles determine the free angles; the remaining rotation is the residual. The displacement is
/// along the rotated axes.
template <class T> SARRUS_NOINLINE void close_gimbal(const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>& V,
                                                     ClosingJoint<T>& out) {
  const Mat3<T>& R = X.R;
  const Vec3<T>& w = V.angular;
  const int free = k.constants->free & 7;
  Vec3<T> turning = zero3<T>();  // angular part of phi-dot q-dot
  int row = 0;
  if (free != 7) {
    T sin[3], cos[3];
    for (int r = 0; r < 3; ++r) sin[r] = fixed_sine(k, r), cos[r] = fixed_cosine(k, r);
    read_angles(free, R, sin, cos);
    const Mat3<T> reached = (rotation_x(sin[0], cos[0]) * rotation_y(sin[1], cos[1])) * rotation_z(sin[2], cos[2]);
    const Vec3<T> off = log(Mat3<T>(reached.transpose()) * R);

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
      // in the child's axes, the first axis rotates in the direction opposite to the second angle
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
    if (k.free(3 + t)) continue;
    const Vec3<T> e = unit_motion<T>(t).angular;
    out.row[row] = {cross(e, d), e};  // the constraint force of this row acts through the centre of the rotations
    out.residual[row++] = d(t) - fixed_displacement(k, t);
  }
  out.bias = {turning, cross(turning, d) + cross(w, d_dot)};
}

/// The general joint of the thesis: any of rx ry rz tx ty tz free, the others fixed. The rotations are about x, y, z, where each axis is rotated
/// by the preceding rotations (2.26). Then the successor's origin is displaced along the rotated axes (2.29). N is the number of free
/// coordinates. At ry = a quarter revolution the columns of phi become dependent. No function divides by their determinant, so inverse dynamics
/// remains finite.
template <int N> struct Gimbal : JointDefaults, VectorCoordinates<N> {
  static constexpr const char* name = "Gimbal";
  static constexpr CoordinateList coordinates = {{"rx", "rad"}, {"ry", "rad"}, {"rz", "rad"},
                                                 {"tx", "m"},   {"ty", "m"},   {"tz", "m"}},
                                  velocities = coordinates;  // only the free coordinates are used
  static constexpr int nv = N, free_components = combined;
  static constexpr bool constant_subspace = false;
  static bool has(const JointConstants& k, int i) { return k.free >> i & 1; }
  template <class F> static void fields(JointConstants& k, F field) {
    field("free", k.free, "");
    for (int i = 0; i < 6; ++i) field("fixed", k.number[i], i < 3 ? "rad" : "m");
  }
  static void settle(JointConstants& k) {
    for (int r = 0; r < 3; ++r) k.number[6 + r] = std::cos(k.number[r]), k.number[r] = std::sin(k.number[r]);
  }

  template <class T> struct Stages {
    T sin[3], cos[3];       // sines and cosines of the three rotations
    Vec3<T> d;              // displacement
    Vec3<T> axis[3];        // columns of the three rotations, in the successor's axes (2.38, 2.39)
  };
  template <class T> static Stages<T> stages(const Coordinates<T>& c) {
    const JointNumbers<T>& k = c.constants;
    Stages<T> g;
    int i = 0;
    for (int r = 0; r < 3; ++r) {
      const bool is_free = k.free(r);
      g.sin[r] = is_free ? c.sin[i] : fixed_sine(k, r);
      g.cos[r] = is_free ? c.cos[i] : fixed_cosine(k, r);
      i += is_free;
    }
    for (int t = 0; t < 3; ++t) {
      const bool is_free = k.free(3 + t);
      g.d(t) = is_free ? c.q[i] : fixed_displacement(k, t);
      i += is_free;
    }
    const T &sy = g.sin[1], &cy = g.cos[1], &sz = g.sin[2], &cz = g.cos[2];
    g.axis[0] = vec3<T>(cz * cy, -sz * cy, sy);
    g.axis[1] = vec3<T>(sz, cz, T(0.0));
    g.axis[2] = vec3<T>(T(0.0), T(0.0), T(1.0));
    return g;
  }

  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    const Stages<T> g = stages(c);
    const Mat3<T> R = (rotation_x(g.sin[0], g.cos[0]) * rotation_y(g.sin[1], g.cos[1])) * rotation_z(g.sin[2], g.cos[2]);
    return {R, R * g.d};
  }
  template <class T> static Subspace<T, N> subspace(const Coordinates<T>& c) {
    const Stages<T> g = stages(c);
    Subspace<T, N> S;
    int i = 0;
    for (int k = 0; k < 6 && i < N; ++k) {
      if (!(c.constants.free(k))) continue;
      S.column[i++] = k < 3 ? Motion<T>{g.axis[k], cross(g.axis[k], g.d)} : unit_motion<T>(k);
    }
    return S;
  }
  /// Rate of the subspace. In the successor's axes, an axis rotates opposite to the rotations that follow it (5.68-5.71, with a sign that the thesis
  /// omits). The lever arm d of the rotations changes with the displacements.
  template <class T> static Subspace<T, N> subspace_rate(const Coordinates<T>& c, const T* v) {
    const Stages<T> g = stages(c);
    T rate[6];
    for (int k = 0, i = 0; k < 6; ++k) rate[k] = c.constants.free(k) ? v[i++] : T(0.0);
    const Vec3<T> after_y = g.axis[2] * rate[2], after_x = g.axis[1] * rate[1] + after_y;
    const Vec3<T> axis_dot[3] = {cross(g.axis[0], after_x), cross(g.axis[1], after_y), zero3<T>()};
    const Vec3<T> d_dot = vec3<T>(rate[3], rate[4], rate[5]);
    Subspace<T, N> S;
    int i = 0;
    for (int k = 0; k < 6 && i < N; ++k) {
      if (!(c.constants.free(k))) continue;
      S.column[i++] = k < 3 ? Motion<T>{axis_dot[k], cross(axis_dot[k], g.d) + cross(g.axis[k], d_dot)} : Motion<T>::zero();
    }
    return S;
  }
  template <class T>
  static void close(const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>& V, ClosingJoint<T>& out) {
    close_gimbal(k, X, V, out);
  }
  template <class T> static void read(const JointNumbers<T>& k, const Transform<T>& X, const T* near, T* q) {
    gimbal_coordinates(k, X, near, q);
  }
};

}  // namespace sarrus
