// Outputs of constraints for users: the dense Jacobian, and the wrenches of the multipliers.
#pragma once

#include "../dynamics/configuration.hpp"
#include "constraints.hpp"

namespace sarrus {

/// Compute the dense J (rows x nv).
template <class T> void constraint_jacobian(const Tree& tree, Arena& arena, const LoopState<T>& state, T* out) {
  const Loops& loops = tree.loops;
  T* J = arena.take<T>(loops.entries);
  ConstraintRows<T> row_output;
  row_output.J = J;
  constraint_rows(tree, arena, state, row_output, 0, loops.constraints);
  for (int k = 0; k < loops.rows * tree.nv; ++k) out[k] = T(0.0);
  for (int i = 0; i < loops.constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) out[(c.row + r) * tree.nv + c.column[k]] = *J++;
  }
}

/// Compute J-dot (rows x nv) along v: the rate of J at q + epsilon q-dot, t + epsilon. `pfaffian_rates`: rates of the row coefficients that the
/// caller supplies.
template <class T>
void constraint_jacobian_derivative(const Tree& tree, Arena& arena, const T* q, const T* v, const T* time,
                                    const T* pfaffian_rates, T* out) {
  T* q_dot = arena.take<T>(tree.nq);
  coordinate_rate(tree, q, v, q_dot);
  const Dual<T> now = {time ? *time : T(0.0), T(1.0)};
  const Dual<T>* rows = moving(arena, tree.loops.pfaffian_values, pfaffian_rates, pfaffian_rates);
  Dual<T>* J = arena.take<Dual<T>>(tree.loops.rows * tree.nv);
  constraint_jacobian(tree, arena, place<Dual<T>>(tree, arena, moving(arena, tree.nq, q, q_dot), &now, rows), J);
  for (int k = 0; k < tree.loops.rows * tree.nv; ++k) out[k] = J[k].rate;
}

/// Compute gamma, the value that J a must have. If not null, `size` (rows) receives the sum of the squares of the terms that add up to gamma.
template <class T>
void constraint_bias(const Tree& tree, Arena& arena, const T* q, const T* v, const T* time, const T* pfaffian_values, T* out,
                     T* size = nullptr) {
  const T* rest = zeros<T>(arena, tree.nv);
  const auto work = rnea(tree, arena, RneaInput<T>{q, v, rest}, arena.take<T>(tree.nv));
  LoopState<T> state = {q, v, time, pfaffian_values, nullptr, nullptr, work.link};
  place(tree, arena, work.poses(), work.columns, state);
  ConstraintRows<T> row_output;
  row_output.gamma = out, row_output.gamma_size = size;
  constraint_rows(tree, arena, state, row_output, 0, tree.loops.constraints);
}

/// Return the wrench that a constraint's multipliers apply to its child, at the origin and in the axes of its frame; zero if it has no child.
template <class T>
Force<T> constraint_wrench(const Tree& tree, Arena& arena, const LoopState<T>& state, const Constraint& c, const T* multipliers) {
  Force<T> f = Force<T>::zero();
  const LoopJoint* joint = std::get_if<LoopJoint>(&c.kind);
  if (joint && joint->plain()) {
    for (int r = 0; r < c.rows; ++r) {
      const int k = joint->component[r];
      (k < 3 ? f.angular(k) : f.linear(k - 3)) += multipliers[c.row + r];
    }
  } else if (c.child >= 0) {
    const Arena::Scope scope(arena);
    RelativeMotion<T> m;
    Columns<T> columns;
    relative_motion(tree, arena, state, c, m, columns, true, static_cast<const T*>(nullptr));
    Row<T> rows[6];
    evaluate(c, m, rows);
    for (int r = 0; r < c.rows; ++r)
      f += {rows[r].force.angular * multipliers[c.row + r], rows[r].force.linear * multipliers[c.row + r]};
  }
  return f;
}

/// Compute the wrenches of all constraints. Each acts on the constraint's child at its frame, in the axes that this frame has in the user's model.
template <class T>
void loop_wrenches(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* multipliers, T* out) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    const Force<T> f = constraint_wrench(tree, arena, state, c, multipliers);
    const Mat3<T> R = state.numbers(c.R_described);
    store(Force<T>{R * f.angular, R * f.linear}, out + 6 * i);
  }
}

}  // namespace sarrus
