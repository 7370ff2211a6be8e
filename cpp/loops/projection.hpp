// Onto the loops: the nearest velocity that satisfies them, the jump of velocity when they close with an impact, and the nearest
// configuration that closes them. Nearest in the metric of M, in which the loops push (Li and Wu 4.6), or of the plain velocities.
#pragma once

#include "../dynamics/configuration.hpp"
#include "constrained_dynamics.hpp"

namespace sarrus {

/// The matrix at q with M, or with 1 in its place; on the right are zeros.
template <class T>
LoopEquation<T> metric_equation(const Tree& tree, Arena& arena, const T* q, const T* time, const T* pfaffian_values, bool plain) {
  const Loops& loops = tree.loops;
  const int rows = plain ? loops.rows + loops.soft_rows : loops.rows;
  T *J = arena.take<T>(loops.entries), *b = arena.take<T>(tree.nv + rows), *scale = arena.take<T>(rows), *M, *mobility;
  for (int k = 0; k < tree.nv + rows; ++k) b[k] = T(0.0);
  for (int r = loops.rows; r < rows; ++r) scale[r] = T(1.0);  // motors have no say here
  const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
  if (plain) {
    M = mobility = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) M[k] = T(1.0);
  } else {
    M = sparse_mass_matrix(tree, arena, Poses<T>{state.in_parent}, state.stored);
    mobility = mobilities(tree, arena, M);
  }
  ConstraintRows<T> wanted;
  wanted.J = J, wanted.scale = scale, wanted.mobility = mobility;
  constraint_rows(tree, arena, state, wanted, 0, loops.constraints);
  const Elimination& order = plain ? loops.statics : loops.dynamics;
  const int* mass_first = plain ? nullptr : loops.mass_first;
  LoopEquation<T> e = {{tree, order, mass_first, loops.constraints, rows, M, J, nullptr, mobility, nullptr}, b, scale, T(0.0)};
  shares(arena, e);
  return e;
}

/// What J v lacks of c.
template <class T> void missing_velocity(const Tree& tree, Arena& arena, const LoopEquation<T>& e, const T* q, const T* v,
                                         const T* time, const T* pfaffian_values, T* out) {
  const Loops& loops = tree.loops;
  const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
  ConstraintRows<T> wanted;
  wanted.target = out;
  constraint_rows(tree, arena, state, wanted, 0, loops.constraints);
  add_motion_along_rows(tree, e.matrix.J, v, T(-1.0), out);
}

/// v + dv with J (v + dv) - c = -restitution (J v - c), and the least impulses: M dv = J^T impulses. Returns the relative residual.
template <class T>
T change_velocity(const Tree& tree, Arena& arena, const T* q, const T* v, const T* restitution, const T* time,
                  const T* pfaffian_values, bool plain, T* after, T* impulses) {
  for (int k = 0; k < tree.nv; ++k) after[k] = v[k];
  if (tree.loops.rows == 0) return T(0.0);
  LoopEquation<T> e = metric_equation(tree, arena, q, time, pfaffian_values, plain);
  missing_velocity(tree, arena, e, q, v, time, pfaffian_values, e.b + tree.nv);
  e.terms = T(0.0);
  for (int k = 0; k < tree.nv; ++k) {
    const T& share = e.matrix.mobility[k];
    e.terms += select(share > T(0.0), v[k] * v[k] / share, T(0.0));
  }
  for (int r = 0; r < tree.loops.rows; ++r) e.terms += e.b[tree.nv + r] * e.b[tree.nv + r] * e.matrix.row_share[r];
  if (restitution)
    for (int r = 0; r < tree.loops.rows; ++r) e.b[tree.nv + r] *= T(1.0) + *restitution;
  T* x = arena.take<T>(tree.nv + e.matrix.rows);
  const T left = solve_tightly(e, arena, e.b, x);
  for (int k = 0; k < tree.nv; ++k) after[k] += x[k];
  if (impulses) {
    for (int r = 0; r < tree.loops.rows; ++r) impulses[r] = -x[tree.nv + r];
    least_multipliers(tree, arena, e, impulses);
  }
  return left;
}

constexpr double closed_limit = 1e-9;  // [rad, m]: what Newton's steps leave of loops that they close, and a margin

/// Newton's steps from q onto the loops, as long as they make the residual smaller. Meant for a start that is close. Returns what is left,
/// squared: how much the velocities that a row touches would have to move, of the row that is farthest from closed.
template <class T>
T project_configuration(const Tree& tree, Arena& arena, const T* q, const T* time, const T* pfaffian_values, bool plain, T* out) {
  const Loops& loops = tree.loops;
  T *next = arena.take<T>(tree.nq), *phi = arena.take<T>(loops.rows);
  for (int k = 0; k < tree.nq; ++k) out[k] = q[k];
  if (loops.rows == 0) return T(0.0);
  const auto open = [&](const T* at) {  // the residual, squared
    const Arena::Scope scope(arena);
    const LoopState<T> state = place(tree, arena, at, time, pfaffian_values);
    ConstraintRows<T> wanted;
    wanted.residual = phi;
    constraint_rows(tree, arena, state, wanted, 0, loops.constraints);
    T sum = T(0.0);
    for (int r = 0; r < loops.rows; ++r) sum += phi[r] * phi[r];
    return sum;
  };
  T left = open(out);
  auto going = left > T(1e-31);
  for (int step = 0; step < 50 && any(going); ++step) {  // near singular positions each takes away a part only
    const Arena::Scope scope(arena);
    const LoopEquation<T> e = metric_equation(tree, arena, out, time, pfaffian_values, plain);
    for (int r = 0; r < loops.rows; ++r) e.b[tree.nv + r] = -phi[r];
    T* x = arena.take<T>(tree.nv + e.matrix.rows);
    solve_tightly(e, arena, e.b, x);
    integrate(tree, out, x, next);
    const T now = open(next);
    const auto better = both(going, now < left);
    for (int k = 0; k < tree.nq; ++k) out[k] = select(better, next[k], out[k]);
    left = select(better, now, left);
    going = both(better, left > T(1e-31));
  }
  T *one = arena.take<T>(tree.nv), *scale = arena.take<T>(loops.rows);
  for (int k = 0; k < tree.nv; ++k) one[k] = T(1.0);
  ConstraintRows<T> rows;
  rows.residual = phi, rows.scale = scale, rows.mobility = one;
  constraint_rows(tree, arena, place(tree, arena, out, time, pfaffian_values), rows, 0, loops.constraints);
  T farthest = T(0.0);
  for (int r = 0; r < loops.rows; ++r) {
    const T motion = phi[r] * phi[r] / scale[r];
    farthest = select(motion > farthest, motion, farthest);
  }
  return farthest;
}

}  // namespace sarrus
