// The constraints that a mechanism has besides its tree, as the kernels see them: plain constants in plain arrays.
#pragma once

#include "../joints/joint.hpp"

namespace sarrus {

enum class ConstraintKind : int { joint, distance, rolling, coupler, pfaffian };

/// A coordinate as a function of time: piecewise polynomial plus harmonics.
struct Law {
  int pieces, terms, harmonics;
  const double* start;        // of each piece
  const double* coefficient;  // pieces x terms, of (t - start)^k
  const double* harmonic;     // amplitude, rate, phase each
};

/// A coupler's share of one coordinate: c1 q + c2 q^2 + ...
struct CouplerTerm {
  int iq, iv, degree;
  const double* coefficient;
};

enum class Rolling : int { disc_on_plane, sphere_on_plane, sphere_on_sphere };

/// Rows that tie velocities to each other: what a closing joint does not leave free, or a relation of another kind.
struct Constraint {
  ConstraintKind kind;
  int row, rows;      // its place among the rows of all constraints
  int entry;          // of its block of J, rows x columns, column by column, within the blocks of all constraints
  int columns;        // velocities that it touches
  const int* column;  // which
  int own;            // the first so many move the child, the rest the parent

  // between two bodies: a frame on the parent and one on the child (a joint's axis on z)
  JointKind joint;
  JointConstants constants;
  int parent, child;
  Transform<double> X_parent, X_child;
  Mat3<double> R_joint;     // the frames' axes in those in which the joint was described
  int component[6];         // of a row that is a component of the relative motion; -1: it is a combination
  const Law* laws[6];       // rx .. tz of a gimbal that carries the frame on the parent along, or null
  bool driven;
  bool aimed;               // the frame on the parent, which is the ground, comes with the call: where a frame of the child is to be
  bool turns;               // whether a row looks at rotation
  double length;            // of a rod; of a rolling body's radius
  double other_radius;      // of the sphere that a sphere rolls on
  Rolling rolling;

  // between coordinates
  int terms;
  const CouplerTerm* term;
  double offset;
  const Law* law;
  const double* pfaffian;   // rows x columns, row by row; null: given with the call
  const double* value;      // c of A v = c
  int given;                // where the call's numbers for this constraint start: A, c and gamma, or a target
};

/// In which order the unknowns of [M J^T; J -mu] are eliminated, and where every number of L D L^T stands. Made once a mechanism.
///
/// Row k of the factor holds its diagonal first, then the later unknowns that it meets, in their order.
struct Elimination {
  int unknowns, slots;
  const int* unknown;        // the k-th to go: a velocity, or nv + a row
  const int* place;          // its inverse
  const int* first;          // unknowns + 1: where row k starts
  const int* column;         // slots: which later unknown, counted in the order of elimination
  const int* before;         // unknowns + 1: where, in the next two, the earlier unknowns that row k is met by start
  const int* before_row;     // which
  const int* before_slot;    // and where
  const int* run;  // for each k and each of its later unknowns a: the slot from which on it meets itself and those after it
  // without a gap, or -1 - where in `target` the slots stand one by one
  const int* target;
  const int* mass_slot;  // of entry (i, j) of M, i = 0 .. nv - 1 and j on the way from i to the ground; -1: not kept
  const int* jacobian_slot;  // of the entries of J, block by block
};

struct Loops {
  int constraints, rows, entries, given;
  int soft_constraints, soft_rows, soft_entries;  // after those: motors in joints that close loops (statics only)
  const Constraint* constraint;
  int actuators;
  const int* actuator;  // what carries each effort: a velocity, or nv + a row
  const int* mass_first;  // nv + 1: where the entries of row i of M start
  Elimination dynamics;  // with the mass matrix
  Elimination statics;  // with a diagonal in its place
};

}  // namespace sarrus
