// Constraint rows of a loop joint. With X the pose of the child's frame in the parent's, V its relative velocity and Phi_c a basis of the
// complement of the joint's motion space (van der Merwe 2.10-2.16, 5.22):
//   phi   = difference of X from a pose that the joint can take, along the rows   (6 - nv) [rad, m]
//   J     = Phi_c^T V
//   gamma = Phi_c^T (phi-dot q-dot - A)      A: the apparent derivative of V. The rate of Phi_c is not needed
// removes 6 - nv dof. Rows of most joints are plain components of V in the child's frame, whose z is the joint's axis: loops/constraints.hpp
// has a faster path for them. The rows of other joints are in joints/closing_rows.hpp.
//
// If a motor drives the joint, or if it has armature, its motion has rows of a second kind: its velocities psi^T V, with psi the dual basis
// of the motion space (see joints/closing.hpp). If calls prescribe its coordinates, the residual is the difference from the prescribed values.
//
// Functions of time may move the frame on the parent; X and V are then relative to the moving frame.
#pragma once

#include <algorithm>

#include "../joints/closing.hpp"
#include "row.hpp"

namespace sarrus {

struct LoopJoint : BetweenBodies {
  static constexpr const char* name = "";  // empty, because these constraints are created from joints of the description
  static constexpr int parts_of_a_length = 0;
  JointKind joint;
  JointConstants constants;
  int row_count = 0;  // number of rows
  int moves = 0;  // 0: the rows are constraint rows. Otherwise the rows are the velocities of the joint, and this is their number
  int component[6];  // for each row its index in [angular; linear]; -1: the row is a linear combination

  LoopJoint() = default;
  LoopJoint(JointKind kind, const JointConstants& k, int rows) : joint(kind), constants(k) {
    const int free = free_components(kind);
    if (free < 0)
      for (; row_count < rows; ++row_count) component[row_count] = -1;
    else
      for (const int k : {0, 1, 2, 3, 4, 5})
        if (!(free >> k & 1)) component[row_count++] = k;
  }
  /// Return the rows of the joint's n velocities, in order; they are plain components if the joint's velocities are.
  LoopJoint motion(int n) const {
    LoopJoint m = *this;
    m.row_count = m.moves = n;
    visit_every(joint, 0, [&](auto type) {
      if constexpr (type.free_components != combined)
        std::copy(type.components.begin(), type.components.end(), m.component);
      else
        std::fill(m.component, m.component + n, -1);
    });
    return m;
  }

  int rows() const { return row_count; }
  bool plain() const { return row_count > 0 && component[0] >= 0; }
  std::string row_name(int r) const {
    static const char* const names[] = {"rotation about x", "rotation about y", "rotation about z", "x", "y", "z"};
    const int k = component[r];
    if (k < 0) return "row " + std::to_string(r + 1);
    const bool has_axis = joint != JointKind::fixed && joint != JointKind::spherical;
    return std::string(names[k]) + (has_axis && k % 3 < 2 ? " across" : "");
  }
  template <class F> void fields(F) {}

  template <class T> static SARRUS_INLINE Motion<T> apparent_acceleration(const RelativeMotion<T>& m) {
    return {m.dw + cross(m.w_child, m.w_parent), m.a - cross(Vec3<T>(m.w_parent + m.w_child), m.V.linear)};
  }
  /// Evaluate the rows of a joint whose rows are not plain components of the relative motion.
  template <class T> SARRUS_INLINE void evaluate(const RelativeMotion<T>& m, Row<T>* row) const {
    Motion<T> A, bias;
    if (m.accelerates) A = apparent_acceleration(m);
    if (moves) {
      const T none[7] = {T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
      T off[6] = {T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
      ReadJoint<T> read;
      read_joint(joint, moves, {&constants, m.numbers}, m.X, m.V, m.target ? m.target : none, read);
      if (m.target) visit_every(joint, moves, [&](auto type) { type.difference(m.target, read.q, off); });
      for (int r = 0; r < row_count; ++r) row[r].force = read.psi[r], row[r].residual = off[r];
      bias = read.bias;
    } else {
      ClosingJoint<T> closing;
      close_joint(joint, {&constants, m.numbers}, m.X, m.V, closing);
      for (int r = 0; r < row_count; ++r) row[r].force = closing.row[r], row[r].residual = closing.residual[r];
      bias = closing.bias;
    }
    for (int r = 0; r < row_count; ++r) {
      const Force<T>& force = row[r].force;
      row[r].size =
          m.velocity_size.angular * dot(force.angular, force.angular) + m.velocity_size.linear * dot(force.linear, force.linear);
      if (m.accelerates) row[r].gamma = dot(bias, force) - dot(A, force);
    }
  }
};

}  // namespace sarrus
