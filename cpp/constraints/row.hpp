// Interface of a kind of constraint. A constraint is rows J v = c with J a = gamma, most of them the rate of a
// residual phi(q, t) that is zero where the constraint holds. There are two sorts:
//
//   between two bodies     a row is a force Phi on the child, J = Phi . (the velocity of the child's frame relative to the parent's);
//                          its kind reads the relative motion, not q or the tree
//   between coordinates    a row is a sum over velocities of the tree, a function of q and v
//
// A kind is a struct with its numbers, and
//
//   name                   its name in descriptions
//   rows()                 number of rows
//   row_name(r)            name of row r in messages and tables
//   holonomic(r)           true if row r constrains positions too
//   driven()               true if functions of time drive it
//   fields(field)          field("key", number) for each of its numbers, as a description has them
//   evaluate(...)          phi, J and gamma: see below
#pragma once

#include <string>
#include <type_traits>

#include "../joints/joint.hpp"

namespace sarrus {

/// A size, squared, of rotations and of displacements.
template <class T> struct Size {
  T angular, linear;
};

/// Motion of the child's frame relative to the parent's, in the child's axes at its origin.
template <class T> struct RelativeMotion {
  Transform<T> X;  // pose of the child's frame in the parent's
  Motion<T> V;
  Size<T> velocity_size;  // of a unit of the velocities, by their mobilities: no rounding of a difference counts as motion
  NumbersOf<T> numbers;  // of the constraint
  const T* target;  // coordinates that the joint between them is to have; null: none
  bool accelerates;  // true if the following are set: accelerations while those of the joints are zero
  Vec3<T> w_parent, w_child;  // angular velocities
  Vec3<T> dw, a;  // alpha_child - alpha_parent; a_child - acceleration of the parent's point at the same place
  Size<T> acceleration_size;  // of the terms of dw and a

  /// The child's origin seen from the parent's turning axes (written in the child's): where it is, and how it accelerates; V.linear is
  /// its velocity there.
  SARRUS_INLINE Vec3<T> position() const { return transpose_times(X.R, X.p); }
  SARRUS_INLINE Vec3<T> acceleration() const { return a - cross(w_parent, V.linear) * T(2.0); }
};

template <class T> struct Row {
  Force<T> force;  // Phi: wrench of a unit multiplier on the child, in its axes at its origin
  T residual;  // phi
  T gamma;  // set if the motion has accelerations
  T size;  // squared: of J, if the row were no small difference of large numbers
};

/// Between two bodies, and  template <class T> void evaluate(const RelativeMotion<T>&, Row<T>*) const;  it has six rows at most.
struct BetweenBodies {
  static constexpr bool between_bodies = true;
  /// Number of leading rows that are components of one length [m]; the other rows are independent of each other.
  static constexpr int parts_of_a_length = 6;
  static constexpr bool holds_a_point_of_the_parent = true;  // or that slides along it
  double own_length() const { return 0.0; }  // own length, which counts among the sizes of the bodies [m]
  bool holonomic(int) const { return true; }
  bool driven() const { return false; }
};

/// True if the kind passed to a visitor acts between bodies.
template <class Kind> constexpr bool between_bodies = std::decay_t<Kind>::between_bodies;

/// The state, as a relation between coordinates sees it: of the velocity k that it touches, q[coordinate[k]] and v[column[k]].
template <class T> struct CoordinateState {
  const T *q, *v, *time;  // v may be null: at rest; time too: 0
  const T* values;  // values of the call for this constraint
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
  int values_with_call(int) const { return 0; }  // count of numbers from every call, with so many columns
  std::string fault(int) const { return {}; }  // its fault with so many columns; empty: none
};

}  // namespace sarrus
