// The constraints that a mechanism has besides its tree, as the kernels see them.
#pragma once

#include "../constraints/set.hpp"

namespace sarrus {

/// Rows between velocities: their place among those of all constraints, the bodies or coordinates that they relate, and their kind.
/// Target of a constraint that calls give: the pose of the child's frame, or the coordinates of the joint between the bodies.
enum class Target : char { none, frame, coordinates };

struct Constraint {
  int row, rows;
  int entry;          // where its block of J starts, rows x columns, column by column, within the blocks of all constraints
  int columns;        // velocities that it touches
  const int* column;  // which
  AnyConstraint kind;
  bool driven;        // depends on functions of time

  // between two bodies: a frame on the parent and one on the child (a joint's axis on z)
  int parent, child = -1;  // -1: it is between coordinates
  int body[2];             // parent and child, before fixed joints were welded
  int child_columns;                 // number of leading columns that move the child; the rest move the parent
  bool turns;              // true if a row depends on rotation
  Transform<double> X_parent, X_child;
  bool in_world = false;  // a ball joint's rows are along the world's axes, not the child's: fewer operations, in recordings
  Mat3<double> R_described = Mat3<double>::Identity();  // rotation of the frames' axes to the axes of its wrench
  std::vector<std::optional<Law>> carried;  // none, or six, rx .. tz of a gimbal that carries the frame on the parent along
  Target target;

  // between coordinates
  const int* coordinate;  // of each column, in q
  int values;  // place of its values in those of the call; of a target too
};

/// True if all of its rows constrain positions.
inline bool holonomic(const Constraint& c) {
  return visit_constraint(c.kind, [&](const auto& kind) {
    int count = 0;
    for (int r = 0; r < c.rows; ++r) count += kind.holonomic(r);
    return count == c.rows;
  });
}

/// Unknowns that are eliminated together, with their later neighbours: a dense matrix (fronts.hpp).
struct Front {
  int first, pivots;  // position of the first one in the elimination order
  int size;  // with the later ones
  int slot;  // where its rows of L start, pivots x size
  int later;  // place of the later ones in Elimination::later
  int into;  // place of their positions within the parent, in Elimination::into
  int parent;  // the front of the first of them; -1: there are none
  int children;  // number of fronts with contributions to it
  int mass, jacobian;  // where its entries of M and of J start; the next front's end them
};

/// Elimination order of the unknowns of [M J^T; J -mu], and the place of every number of L D L^T. Made once per mechanism.
///
/// Row k of the factor holds its diagonal first, then the later unknowns that it meets, in their order.
struct Elimination {
  int unknowns, slots;
  const int* unknown;  // the k-th unknown to be eliminated: a velocity, or nv + a row
  const int* place;  // its inverse
  const int* first;  // unknowns + 1: start of row k
  const int* column;  // slots: which later unknown, counted in the order of elimination
  const int* before;  // unknowns + 1: where, in the next two, the earlier unknowns that row k is met by start
  const int* before_row;  // which
  const int* before_slot;  // and where
  const int* run;  // for each k and each of its later unknowns a: the slot from which on it meets itself and those after it
  // without a gap, or -1 - the place in `target` of the single slots
  const int* target;
  const int* mass_slot;  // of entry (i, j) of M, i = 0 .. nv - 1 and j on the path from i to the ground; -1: not stored
  const int* jacobian_slot;  // of the entries of J, block by block

  // by fronts instead: of the above then unknowns, slots, unknown and place, and the slots of entries, which count within a front
  int fronts;  // 0: not by fronts
  const Front* front;
  const int *later, *into;
  const int *mass_entry, *jacobian_entry;  // entries of M and of J that belong to each front
  int stack;  // largest number of entries that fronts leave for later ones
  int widest, largest;  // the largest front, and the most later ones of a front
};

struct Substructures;  // tree.hpp

struct Loops {
  int constraints, rows, entries, pfaffian_values;
  int motor_constraints, motor_rows,
      motor_entries;  // after those: velocities of loop joints with a motor or armature
  int rotor_rows;  // as many, or 0 if none has armature: those of `dynamics`
  const double *driven, *rotor;  // of each: 1, or 0 where no motor drives it; the square root of its armature
  const double* motor_unit;  // as Tree::unit
  const Constraint* constraint;
  const Constraint* motion;  // the velocities of every loop joint, each with its own rows and entries
  int actuators;
  const int* actuator;  // unknown of each effort: a velocity, or nv + a row
  const int* mass_first;  // nv + 1: where the entries of row i of M start
  Elimination dynamics;  // with the mass matrix, and rotors
  Elimination statics;  // with a diagonal in its place
  const Substructures* substructures = nullptr;  // replacement of both
};

}  // namespace sarrus
