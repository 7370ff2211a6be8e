// Constraints as a user sees them: the dense Jacobian, and the wrenches that multipliers stand for.
#pragma once

#include "constraints.hpp"

namespace sarrus {

/// J (rows x nv).
template <class T> void constraint_jacobian(const Tree& tree, Arena& arena, const LoopState<T>& state, T* out) {
  const Loops& loops = tree.loops;
  T* J = arena.take<T>(loops.entries);
  ConstraintRows<T> wanted;
  wanted.J = J;
  constraint_rows(tree, arena, state, wanted, 0, loops.constraints);
  for (int k = 0; k < loops.rows * tree.nv; ++k) out[k] = T(0.0);
  for (int i = 0; i < loops.constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) out[(c.row + r) * tree.nv + c.column[k]] = *J++;
  }
}

/// gamma: what J a must be.
template <class T>
void constraint_bias(const Tree& tree, Arena& arena, const T* q, const T* v, const T* time, const T* given, T* out) {
  const T* rest = zeros<T>(arena, tree.nv);
  const auto work = rnea(tree, arena, RneaInput<T>{q, v, rest}, arena.take<T>(tree.nv));
  LoopState<T> state = {q, v, time, given, nullptr, nullptr, work.body};
  place(tree, arena, work.poses(), work.columns, state);
  ConstraintRows<T> wanted;
  wanted.gamma = out;
  constraint_rows(tree, arena, state, wanted, 0, tree.loops.constraints);
}

/// Per constraint, the wrench on the child at its frame, in that frame's axes as they were described; zero where there is no child.
template <class T>
void loop_wrenches(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* multipliers, T* out) {
  const Loops& loops = tree.loops;
  for (int i = 0; i < loops.constraints; ++i) {
    const Arena::Scope scope(arena);
    const Constraint& c = loops.constraint[i];
    Force<T> f = Force<T>::zero();
    if (c.kind != ConstraintKind::coupler && c.kind != ConstraintKind::pfaffian) {
      // between two free frames the columns would be the unit motions, and J the rows themselves
      RelativeMotion<T> m;
      relative_motion(tree, arena, state, c, m);
      Motion<T> unit[6];
      for (int k = 0; k < 6; ++k) unit[k] = unit_motion<T>(k);
      m.column = unit;
      Constraint alone = c;
      alone.columns = 6, alone.row = alone.entry = 0;
      T J[36];
      ConstraintRows<T> wanted;
      wanted.J = J;
      rows_of(alone, m, false, wanted);
      for (int r = 0; r < c.rows; ++r) {
        const T& m = multipliers[c.row + r];
        f += {vec3<T>(J[r], J[c.rows + r], J[2 * c.rows + r]) * m,
              vec3<T>(J[3 * c.rows + r], J[4 * c.rows + r], J[5 * c.rows + r]) * m};
      }
    }
    const Mat3<T> R = cast<T>(c.R_joint);
    store(Force<T>{times(R, f.angular), times(R, f.linear)}, out + 6 * i);
  }
}

}  // namespace sarrus
