// Interface of a joint (van der Merwe 2.9-2.16): the pose of its successor in its predecessor, the motion space phi that it leaves free, the
// rate of phi, and its other properties. A joint is a type with constants and static functions. joint_set.hpp lists all of them; no other
// file distinguishes them.
//
//   name                        name of the type for users
//   coordinates, velocities     name and unit of each coordinate and velocity
//   nq, nv                      number of coordinates, number of velocities
//   is_rate(k)                  true if velocity k is the rate of coordinate k
//   free_components             bits of [angular; linear] in the successor's axes; `combined` if the columns of phi are not unit vectors
//   constant_subspace           true if phi does not depend on q
//   axis_names                  names of its axes in descriptions: none, one or two
//   axes(axis, second, k)       axes in which phi has this form, in the axes of the description; sets the constants of k that depend on them
//   fields(k, field)            calls field("key", number, unit) for each further parameter that a description has
//   settle(k)                   computes once, from these parameters, the constants that its functions use
//   is_unconstrained            true if the joint has no constraint rows and is never a tree joint (Cable); it provides measure(k, X, V, out)
//   its_own_reverse             true if the reversed joint is of the same kind, with the opposite axis
//   ...                         members that only few joints define: see JointDefaults
//
//   transform(c)                successor's pose in the predecessor
//   subspace(c)                 the columns of phi, in the successor's axes at the successor's origin
//   subspace_rate(c, v)         phi-dot, the apparent derivative of those columns in the successor's axes
//   integrate, difference       configuration after unit time at constant velocity, and the inverse
//   rate(q, v)                  the rate of the coordinates themselves
//   bracket(u, v)               u v - v u of velocities in the successor's axes: the effect of the order of two motions
//   close(k, X, V, out)         rows of the joint as a loop joint, see closing_rows.hpp
//   read(k, X, near, q)         the inverse of transform(): the q with the pose X that are nearest to `near`
//   clear_transmitted(I)        sets entries of I that a free axis cannot transmit to exact zeros (only for joints that visit() inlines)
//
// Axes are rotated onto z when a mechanism is built, so that the compiler can use the zeros and ones of phi as constants when it inlines.
#pragma once

#include <initializer_list>

#include "../spatial/exponential.hpp"
#include "../spatial/inertia.hpp"
#include "../spatial/numbers.hpp"

namespace sarrus {

enum class JointKind : int;  // joint_set.hpp

/// Name and unit of a coordinate or (per second) of a velocity: "rad", "m", or "1" for the entries of a quaternion. A joint with a single coordinate
/// has an empty name for it.
struct Coordinate {
  const char *name, *unit;
  constexpr bool is_angle() const { return unit[0] == 'r'; }
  constexpr bool is_length() const { return unit[0] == 'm'; }
};
using CoordinateList = std::initializer_list<Coordinate>;

/// Constant parameters of one joint. Only the joint's own file defines their meaning.
struct JointConstants {
  JointKind reversed = {};  // for a reversed joint: the type of the original joint, from successor to predecessor
  int free = 0;  // bit set of the coordinates of the type that this joint has, if it does not have all
  double number[9] = {0, 0, 0, 0, 0, 0, 0, 0, 0};
};

/// The constants of a joint as scalars of type T.
template <class T> struct JointNumbers {
  const JointConstants* constants;
  NumbersOf<T> numbers = {};

  SARRUS_INLINE bool free(int i) const { return constants->free >> i & 1; }
  SARRUS_INLINE T operator[](int i) const { return numbers(constants->number[i]); }
};

/// Storage of a joint's coordinates: q itself, then sine and cosine of each of its angles.
template <class T> struct Coordinates {
  const T* q;
  const T* sin;
  const T* cos;
  JointNumbers<T> constants;
};

/// Return phi v, a combination of n columns.
template <class T> SARRUS_INLINE Motion<T> combination(int n, const Motion<T>* column, const T* v) {
  Motion<T> m = column[0] * v[0];
  for (int k = 1; k < n; ++k) m = m + column[k] * v[k];
  return m;
}
/// Compute phi^T f, the generalised force of the wrench f along the joint (4.24).
template <class T> SARRUS_INLINE void project(int n, const Motion<T>* column, const Force<T>& f, T* tau) {
  for (int k = 0; k < n; ++k) tau[k] = dot(column[k], f);
}

/// Columns of phi as a fixed-size array, for joint types whose number of columns is a compile-time constant.
template <class T, int N> struct Subspace {
  Motion<T> column[N == 0 ? 1 : N];
  SARRUS_INLINE Motion<T> operator*(const T* v) const {
    if constexpr (N == 0) return Motion<T>::zero();
    return combination(N, column, v);
  }
  SARRUS_INLINE void project(const Force<T>& f, T* tau) const { sarrus::project(N, column, f, tau); }
};
/// Columns that are stored at run time, because their number or values depend on the joint.
template <class T> struct StoredSubspace {
  const Motion<T>* column;
  int n;
  SARRUS_INLINE Motion<T> operator*(const T* v) const { return combination(n, column, v); }
  SARRUS_INLINE void project(const Force<T>& f, T* tau) const { sarrus::project(n, column, f, tau); }
};

template <class T> SARRUS_INLINE Motion<T> unit_motion(int k) {
  Motion<T> m = Motion<T>::zero();
  (k < 3 ? m.angular(k) : m.linear(k - 3)) = T(1.0);
  return m;
}
template <class T> SARRUS_INLINE Transform<T> pure_rotation(const Mat3<T>& R) { return {R, zero3<T>()}; }

/// Return a frame whose z axis is n. Its x axis is the given x (y if x is nearly parallel to n) minus its component along n.
inline Mat3<double> axis_frame(const Vec3<double>& n) {
  const Vec3<double> start = std::abs(n(0)) > 0.9 ? Vec3<double>::UnitY() : Vec3<double>::UnitX();
  const Vec3<double> across = start - n * dot(start, n);
  Mat3<double> Q;
  Q.col(2) = n, Q.col(0) = across / across.norm(), Q.col(1) = cross<double>(Q.col(2), Q.col(0));
  return Q;
}

/// Defaults of all joints.
struct JointDefaults {
  static constexpr bool its_own_reverse = false, is_unconstrained = false;
  static constexpr bool has_quaternion = false;  // true if q begins with a quaternion
  static constexpr bool has_pitch = false;  // true if the joint's parameter is the displacement along its axis per radian
  static constexpr bool has_ball_spring = false;  // true if springs act along the rotation vector of the quaternion
  static constexpr bool whole_turns_return = true;  // true if a whole revolution of an angle leads to the same pose
  static constexpr std::initializer_list<const char*> axis_names = {};
  static Mat3<double> axes(const Vec3<double>&, const Vec3<double>&, JointConstants&) { return Mat3<double>::Identity(); }
  template <class F> static void fields(JointConstants&, F) {}
  static void settle(JointConstants&) {}
  /// Return true if the joint has entry i of `coordinates`. A gimbal has only the free ones.
  static bool has(const JointConstants&, int) { return true; }
  /// Return true if a pose determines the number of revolutions of the joint's angle.
  static bool pose_tells_turns(const JointConstants&) { return false; }
  /// Return the reason why the joint cannot be a loop joint, or null if it can.
  static const char* cannot_close(const JointConstants&) { return nullptr; }
  /// Convert u from Cayley's map (of u/2) to the exponential map of the same rotation.
  template <class T> static void cayley_to_exponential(T*) {}
};
/// Properties of joints with one axis, which becomes z of the joint's frame.
struct OneAxis : JointDefaults {
  static constexpr bool its_own_reverse = true;
  static constexpr std::initializer_list<const char*> axis_names = {"axis"};
  static Mat3<double> axes(const Vec3<double>& axis, const Vec3<double>&, JointConstants&) { return axis_frame(axis); }
};

/// Defaults of most joints: columns that are constant in the successor's axes.
template <int N> struct ConstantSubspace {
  static constexpr int nv = N;
  static constexpr bool constant_subspace = true;
  template <class T> static SARRUS_INLINE Subspace<T, N> subspace_rate(const Coordinates<T>&, const T*) {
    Subspace<T, N> rate;
    for (int k = 0; k < N; ++k) rate.column[k] = Motion<T>::zero();
    return rate;
  }
};
enum Component { rx, ry, rz, tx, ty, tz };  // components of [angular; linear]
constexpr int combined = -1;  // value of free_components if the columns are not unit vectors

/// Columns that are unit vectors: the joint's velocities are components of the spatial velocity.
template <Component... free> struct UnitSubspace : ConstantSubspace<sizeof...(free)> {
  static constexpr std::initializer_list<int> components = {free...};
  static constexpr int free_components = (0 | ... | (1 << free));
  template <class T> static SARRUS_INLINE Subspace<T, sizeof...(free)> subspace(const Coordinates<T>&) {
    return {{unit_motion<T>(free)...}};
  }
};

/// Defaults of most joints: velocities are the rates of the coordinates, and displacements are added to the coordinates.
template <int N> struct VectorCoordinates {
  static constexpr int nq = N;
  static constexpr bool is_rate(int) { return true; }
  template <class T> static void integrate(const T* q, const T* dv, T* q1) {
    for (int k = 0; k < N; ++k) q1[k] = q[k] + dv[k];
  }
  template <class T> static void difference(const T* q0, const T* q1, T* dv) {
    for (int k = 0; k < N; ++k) dv[k] = q1[k] - q0[k];
  }
  template <class T> static void rate(const T*, const T* v, T* q_dot) {
    for (int k = 0; k < N; ++k) q_dot[k] = v[k];
  }
  template <class T> static void bracket(const T*, const T*, T* uv) {
    for (int k = 0; k < N; ++k) uv[k] = T(0.0);
  }
};

}  // namespace sarrus
