// Interface of a kind of constraint. A constraint is a set of rows J v = c with J a = gamma. Most rows are the rate of a residual phi(q, t) that is
// zero if the constraint is satisfied. There are two categories:
//
//   between two bodies     a row is a force Phi on the child, J = Phi . (the velocity of the child's frame relative to the parent's);
//                          the row depends on the relative motion only, not on q or the tree
//   between coordinates    a row is a linear combination of velocities of the tree, with coefficients that depend on q
//
// A kind is a struct with its parameters, and
//
//   name                   its name in descriptions
//   rows()                 number of rows
//   row_name(r)            name of row r in messages and tables
//   holonomic(r)           true if row r restricts positions, and not only velocities
//   driven()               true if the constraint depends on functions of time
//   fields(field)          calls field("key", number) for each parameter that a description has
//   evaluate(...)          phi, J and gamma: see below
#pragma once

#include <string>
#include <type_traits>

#include "../joints/joint.hpp"

namespace sarrus {

/// Squared norms of the rotational and of the translational terms.
template <class T> struct Size {
  T angular, linear;
};

/// Motion of the child's frame relative to the parent's, in the child's axes at its origin.
template <class T> struct RelativeMotion {
  Transform<T> X;  // pose of the child's frame in the parent's
  Motion<T> V;
  Size<T> velocity_size;  // squared norm of V for unit velocities, weighted by mobility: rounding errors are relative to it
  NumbersOf<T> numbers;  // access to the parameters of the constraint
  const T* target;  // prescribed coordinates of the joint between the bodies; null: not prescribed
  bool accelerates;  // true if w, dw and a below are set, for zero joint accelerations
  Vec3<T> w_parent, w_child;  // angular velocities
  Vec3<T> dw, a;  // alpha_child - alpha_parent; a_child minus the acceleration of the parent's coincident point
  Size<T> acceleration_size;  // squared norms of the terms of dw and a

  /// Position and acceleration of the child's origin relative to the parent's rotating
  /// axes, with components in the child's axes; V.linear is its velocity there.
  SARRUS_INLINE Vec3<T> position() const { return transpose_times(X.R, X.p); }
  SARRUS_INLINE Vec3<T> acceleration() const { return a - cross(w_parent, V.linear) * T(2.0); }
};

template <class T> struct Row {
  Force<T> force;  // Phi: wrench on the child for a unit multiplier, in the child's axes at its origin
  T residual;  // phi
  T gamma;  // set only if the relative motion has accelerations
  T size;  // squared norm of the terms of J, before they cancel in differences
};

/// Interface of a constraint between two bodies:  template <class T> void evaluate(const RelativeMotion<T>&, Row<T>*) const;  it has at most six
/// rows.
struct BetweenBodies {
  static constexpr bool between_bodies = true;
  /// Number of leading rows that are components of one vector [m]; the remaining rows are independent quantities.
  static constexpr int parts_of_a_length = 6;
  static constexpr bool holds_a_point_of_the_parent = true;  // false if the point of contact moves along the parent
  // length of the constraint itself, which contributes to the mechanism's characteristic length [m]
  double own_length() const { return 0.0; }
  bool holonomic(int) const { return true; }
  bool driven() const { return false; }
};

/// True if the constraint type that is passed to a visitor acts between bodies.
template <class Kind> constexpr bool between_bodies = std::decay_t<Kind>::between_bodies;

/// State for a relation between coordinates: its coordinate k is q[coordinate[k]], with the rate v[column[k]].
template <class T> struct CoordinateState {
  const T *q, *v, *time;  // null v means at rest; null time means 0
  const T* values;  // values that the call supplies for this constraint
  const int *coordinate, *column;
  int columns;
};

template <class T> struct CoordinateRow {
  T residual, velocity, gamma;  // phi, c and gamma
};

/// Interface between coordinates:  template <class T, class Entry> CoordinateRow<T> evaluate(const CoordinateState<T>&, int row, Entry entry)
/// const;  it calls entry(k, J_k, size of the terms of J_k) for each velocity k of the row.
struct BetweenCoordinates {
  static constexpr bool between_bodies = false;
  std::string row_name(int r) const { return "row " + std::to_string(r + 1); }
  bool holonomic(int) const { return true; }
  bool driven() const { return false; }
  int values_with_call(int) const { return 0; }  // number of values that each call supplies, for this number of columns
  std::string fault(int) const { return {}; }  // error message for this number of columns; empty if it is valid
};

}  // namespace sarrus
