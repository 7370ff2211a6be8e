// The constraints of a mechanism (in addition to its tree), in the form that the kernels read.
#pragma once

#include "../constraints/set.hpp"

namespace sarrus {

/// Target that each call prescribes for a constraint: none; the pose of the child's frame; or the coordinates of the joint between the bodies.
enum class Target : char { none, frame, coordinates };

/// A constraint: the indices of its rows, its type, and the bodies or coordinates that it relates.
struct Constraint {
  int row, rows;
  int entry;  // index of the first entry of its block of J (rows x columns, column-major) among the entries of all blocks
  int columns;  // number of velocities in its rows
  const int* column;  // indices of these velocities
  AnyConstraint kind;
  bool driven;  // true if the constraint depends on functions of time

  // for constraints between two bodies: one frame on the parent and one on the child (for joints, z is the joint's axis)
  int parent, child = -1;  // child -1: the constraint is between coordinates
  int body[2];  // bodies of parent and child in the description, before fixed joints were merged
  // number of leading columns whose velocities move the child; the remaining ones move the parent
  int child_columns;
  bool turns;  // true if a row depends on rotation
  Transform<double> X_parent, X_child;
  // true: the rows are along the world's axes instead of the child's. For ball joints in recorded code, this saves operations; a target has such rows
  // if it prescribes components along the world's axes
  bool in_world = false;
  // rotation from the frames' axes to the axes in which the wrench is reported
  Mat3<double> R_described = Mat3<double>::Identity();
  // empty, or six time functions (rx .. tz) of a gimbal that moves the frame on the parent
  std::vector<std::optional<Law>> carried;
  Target target;

  // members of constraints between coordinates
  const int* coordinate;  // index in q of the coordinate of each column
  int values;  // index of its row values, or of its target, among the values that each call supplies
};

/// Return true if all rows of a constraint restrict positions, and not only velocities.
inline bool holonomic(const Constraint& c) {
  return visit_constraint(c.kind, [&](const auto& kind) {
    int count = 0;
    for (int r = 0; r < c.rows; ++r) count += kind.holonomic(r);
    return count == c.rows;
  });
}

/// A front: the dense matrix of unknowns that are eliminated together, and of their later neighbours (fronts.hpp).
struct Front {
  int first, pivots;  // position of the first unknown in the elimination order
  int size;  // number of unknowns of the front, including the later neighbours
  int slot;  // index in L of the first entry of its rows (pivots x size)
  int later;  // index in Elimination::later at which the later neighbours begin
  int into;  // index in Elimination::into of the positions of its later neighbours within the parent front
  int parent;  // the parent: the front in which its first later neighbour is eliminated; -1 if it has no later neighbour
  int children;  // number of fronts with contributions to it
  int mass, jacobian;  // indices of its first entries of M and of J; its last entries precede the first entries of the next front
};

/// Largest number of unknowns that are eliminated together, so that the rows below them are traversed only once for four unknowns.
constexpr int panel_size = 4;

/// Elimination order of the unknowns of [M J^T; J -mu], and the index of every entry of L D L^T. Computed once per mechanism.
///
/// Row k of the factor stores its diagonal, then the entries of its later neighbours, in the order of elimination.
struct Elimination {
  int unknowns, slots;
  const int* unknown;  // the k-th unknown to be eliminated: velocity k < nv, or nv + a row index
  const int* place;  // inverse of `unknown`: position of each unknown in the elimination order
  const int* first;  // (unknowns + 1) slot at which row k begins
  const int* column;  // for each slot: position of the later neighbour in the elimination order
  const int* neighbour;  // for each slot: the later neighbour, as in `unknown`
  const int* panel;  // positions at which panels begin (loops/panels.hpp), then the number of unknowns
  const int* before;  // (unknowns + 1) index in the next two arrays at which the earlier neighbours of unknown k begin
  const int* before_row;  // the earlier neighbours of each unknown
  const int* before_slot;  // slot of unknown k in the row of each earlier neighbour
  // for each panel and each later neighbour a of all its unknowns: slot of entry (a, a), if the entries of row a for the later neighbours of the panel
  // are contiguous from this slot on; otherwise -1 - the index in `target` at which their slots are listed
  const int* run;
  const int* target;
  // slots of the entries (i, j) of M for i = 0 .. nv - 1 and all j on the path from i to the ground; -1: not stored
  const int* mass_slot;
  const int* jacobian_slot;  // slots of the entries of J, block by block

  // With fronts, only some of these members are used: unknowns, slots, unknown, place, and the slots of entries, which are then relative to a front.
  int fronts;  // number of fronts; 0: the elimination does not use fronts
  const Front* front;
  const int *later, *into;
  const int *mass_entry, *jacobian_entry;  // entries of M and of J that belong to each front
  int stack;  // largest number of entries of contributions on the stack, which wait for later fronts
  int widest, largest;  // largest size of a front, and largest number of later neighbours of a front
};

struct Substructures;  // tree.hpp

struct Loops {
  int constraints, rows, entries, pfaffian_values;
  int motor_constraints, motor_rows,
      motor_entries;  // number of rows after the constraints: velocities of loop joints with a motor or armature
  int rotor_rows;  // number of these rows in `dynamics`: motor_rows, or 0 if no loop joint has armature
  const double *driven, *rotor;  // for each motor row: 1 if a motor drives it, else 0; the square root of its armature
  const double* motor_unit;  // unit of each motor row's velocity, as in Tree::unit
  const Constraint* constraint;
  const Constraint* motion;  // motions (velocities) of all loop joints; each motion has its own rows and entries
  int actuators;
  const int* actuator;  // unknown of each effort: velocity k < nv, or nv + a row index
  const int* mass_first;  // (nv + 1) index at which the entries of row i of M begin
  Elimination dynamics;  // for equations with the mass matrix and the armature of loop joints
  Elimination statics;  // for equations with a diagonal matrix instead of the mass matrix
  const Substructures* substructures = nullptr;  // if not null, the substructures replace both eliminations
};

}  // namespace sarrus
