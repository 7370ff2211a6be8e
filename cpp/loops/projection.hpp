// Projections onto the loops: the nearest velocity that satisfies them, the change of velocity at an impact, and the nearest closed configuration.
// Distances are measured in the metric of M, by which constraint forces act (Li and Wu 4.6), or in the metric of scaled velocities (`plain`).
#pragma once

#include "answers.hpp"
#include "closing.hpp"
#include "constrained_dynamics.hpp"

namespace sarrus {

/// Multiply the columns of J by the weights (nv).
template <class T> SARRUS_INLINE void weigh_columns(const Tree& tree, int constraints, const T* weight, T* J) {
  for (int i = 0; i < constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) *J++ *= weight[c.column[k]];
  }
}

/// Remove velocities of weight 0 from M: 1 on the diagonal, 0 in the rest of their rows and columns.
template <class T> SARRUS_INLINE void hold_inertias(const Tree& tree, const T* weight, T* M) {
  for (int i = 0; i < tree.nv; ++i)
    for (int j = i; j >= 0; j = tree.column_parent[j], ++M)
      *M = i == j ? select(weight[i] > T(0.0), *M, T(1.0)) : *M * (weight[i] * weight[j]);
}

/// Set up the matrix at q with M, or with 1 instead of M (`plain`), and a zero right-hand side. With weights (nv) the unknowns are y, and the
/// velocities are x = weight y. A weight of 0 fixes a joint; if the metric is M, all other weights are 1. Outputs, computed if not null: `off`, the
/// violation of the loops by q; `target`, the right-hand side c; `unweighed`, J before its multiplication by the weights.
template <class T>
LoopEquation<T> metric_equation(const Tree& tree, Arena& arena, const T* q, const T* weight, const T* time,
                                const T* pfaffian_values, bool plain, OffLoops<T>* off = nullptr, T* target = nullptr,
                                T* unweighed = nullptr) {
  const Loops& loops = tree.loops;
  const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
  LoopEquation<T> e = mass_equation(tree, arena, state, Poses<T>{state.in_parent}, state.stored, {weight, plain});
  const int rows = e.matrix.rows;
  T* J = arena.take<T>(loops.entries + loops.motor_entries);
  e.b = arena.take<T>(tree.nv + rows + loops.rotor_rows);
  for (int k = 0; k < tree.nv + rows; ++k) e.b[k] = T(0.0);
  for (int r = loops.rows; r < rows; ++r) e.scale[r] = T(1.0);  // rows of motors have no effect here
  ConstraintRows<T> out;
  out.J = J, out.target = target, out.scale = e.scale, out.mobility = e.matrix.mobility, out.off = off;
  if (weight) {  // convert the mobilities of velocities to those of the unknowns y
    T* moved = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) moved[k] = e.matrix.mobility[k] * weight[k] * weight[k];
    out.mobility = moved;
  }
  constraint_rows(tree, arena, state, out, 0, loops.constraints);
  if (weight && !plain && !e.pieces) {
    hold_inertias(tree, weight, const_cast<T*>(e.matrix.M));
    T* mobility = mobilities(tree, arena, e.matrix.M);
    leave_out_massless(tree, mobility);
    e.matrix.mobility = mobility;
  }
  for (int k = 0; unweighed && k < loops.entries; ++k) unweighed[k] = J[k];
  e.matrix.J = J;
  if (!plain && loops.rotor_rows > 0 && !e.pieces) add_rotors(tree, arena, state, out.mobility, J, e);
  if (weight) weigh_columns(tree, e.matrix.constraints, weight, J);
  if (!plain) e.borrow(arena);
  set_row_weights(arena, e);
  return e;
}

/// Compute c - J v.
template <class T> void missing_velocity(const Tree& tree, Arena& arena, const LoopEquation<T>& e, const T* q, const T* v,
                                         const T* time, const T* pfaffian_values, T* out) {
  const Loops& loops = tree.loops;
  const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
  ConstraintRows<T> row_output;
  row_output.target = out;
  constraint_rows(tree, arena, state, row_output, 0, loops.constraints);
  add_motion_along_rows(tree, e.matrix.J, v, T(-1.0), out);
}

/// Compute v + dv with J (v + dv) - c = -restitution (J v - c), and the least impulses with M dv = J^T impulses. Returns the relative residual.
/// `ambiguous`: 1 if the loops are so far open that the result depends on their gaps, else 0.
template <class T>
T change_velocity(const Tree& tree, Arena& arena, const T* q, const T* v, const T* restitution, const T* time,
                  const T* pfaffian_values, bool plain, T* after, T* impulses, T& ambiguous) {
  for (int k = 0; k < tree.nv; ++k) after[k] = v[k];
  ambiguous = T(0.0);
  if (tree.loops.rows == 0) return T(0.0);
  OffLoops<T> off;
  LoopEquation<T> e = metric_equation(tree, arena, q, static_cast<const T*>(nullptr), time, pfaffian_values, plain, &off);
  missing_velocity(tree, arena, e, q, v, time, pfaffian_values, e.b + tree.nv);
  e.terms = T(0.0);
  for (int k = 0; k < tree.nv; ++k) {
    const T& mobility = e.matrix.mobility[k];
    e.terms += select(mobility > T(0.0), v[k] * v[k] / mobility, T(0.0));
  }
  for (int r = 0; r < tree.loops.rows; ++r) e.terms += e.b[tree.nv + r] * e.b[tree.nv + r] * e.matrix.row_weight[r];
  if (restitution)
    for (int r = 0; r < tree.loops.rows; ++r) e.b[tree.nv + r] *= T(1.0) + *restitution;
  const LoopSolution<T> solution = solve_tightly(e, arena, e.b);
  for (int k = 0; k < tree.nv; ++k) after[k] += solution.x[k];
  if (any(off.open > T(0.0))) ambiguous = select(gap_decides(e, arena, solution, off.open), T(1.0), T(0.0));
  if (impulses) {
    const T* lambda = least_multipliers(tree, arena, e, solution);
    for (int r = 0; r < tree.loops.rows; ++r) impulses[r] = lambda[r];
  }
  return solution.error;
}

/// Return the largest squared gap of all rows. A gap is measured by the displacement along the row's velocities that closes it [rad, body sizes].
template <class T> SARRUS_INLINE T farthest_row(int rows, const T* phi) {
  T farthest = T(0.0);
  for (int r = 0; r < rows; ++r) {
    const T motion = square(phi[r]);
    farthest = select(motion > farthest, motion, farthest);
  }
  return farthest;
}

/// Take Newton steps from q onto the loops; q should be close to them. A step is limited to the range in which the linear model is valid, and the
/// following steps are shortened if it increases the residual. If M is nearly singular, as in a folded long chain, steps of least M-norm may be large
/// displacements of the joints and diverge. Then damped steps in the metric of velocities start again from q. `weight` (nv, or null): 1, or 0 for
/// fixed joints. Returns the remaining farthest_row().
template <class T>
T project_configuration(const Tree& tree, Arena& arena, const T* q, const T* weight, const T* time, const T* pfaffian_values,
                        bool plain, T* out) {
  const Loops& loops = tree.loops;
  for (int k = 0; k < tree.nq; ++k) out[k] = q[k];
  if (loops.rows == 0) return T(0.0);
  T *phi = arena.take<T>(loops.rows), *trial = arena.take<T>(loops.rows);
  const T* unit = row_sizes(tree, arena, q, time, pfaffian_values);
  const auto evaluate = [&](const T* at, Residual<T>& gap) {
    const Arena::Scope scope(arena);
    ConstraintRows<T> row_output;
    row_output.residual = gap.phi;
    constraint_rows(tree, arena, place(tree, arena, at, time, pfaffian_values), row_output, 0, loops.constraints);
    for (int r = 0; r < loops.rows; ++r) gap.phi[r] /= unit[r];
    gap.size = sqrt(sum_of_squares(gap.phi, loops.rows));
  };
  constexpr double least_damping = tolerances::least_damping;
  const auto step = [&](const T* at, const Residual<T>& gap, const T& mu, T* x) {
    const T least_mu = gap.size * T(least_damping),
            part = select(mu > least_mu, least_mu / mu, T(1.0));  // mu was increased if a step did not reduce the residual
    const LoopEquation<T> e = metric_equation(tree, arena, at, weight, time, pfaffian_values, plain);
    for (int r = 0; r < loops.rows; ++r) e.b[tree.nv + r] = -gap.phi[r] * unit[r];
    const T* y = solve_tightly(e, arena, e.b).x;
    T longest = T(tolerances::longest_step);
    for (int k = 0; k < tree.nv; ++k) {
      x[k] = weight ? y[k] * weight[k] * part : y[k] * part;
      const T size = abs(x[k]) / tree.numbers<T>()(tree.unit[k]);
      longest = select(size > longest, size, longest);
    }
    const T kept = T(tolerances::longest_step) / longest;
    for (int k = 0; k < tree.nv; ++k) x[k] *= kept;
  };
  // allow 50 steps, because near singular positions each step removes only part of the residual
  take_steps(tree, arena, T(least_damping), T(50.0), T(1e300), evaluate, step, {phi, nullptr, T(0.0)}, {trial, nullptr, T(0.0)},
             out);
  const T farthest = farthest_row(loops.rows, phi);
  const auto open = farthest > T(square(tolerances::projected));
  if (!any(open)) return farthest;
  T *column = arena.take<T>(tree.nv), *row = arena.take<T>(loops.rows), *next = arena.take<T>(tree.nq);
  for (int k = 0; k < tree.nv; ++k) column[k] = tree.numbers<T>()(tree.unit[k]) * (weight ? weight[k] : T(1.0));
  for (int r = 0; r < loops.rows; ++r) row[r] = T(1.0) / unit[r];
  for (int k = 0; k < tree.nq; ++k) next[k] = q[k];
  close(tree, arena, {column, row, T(1.0), T(100.0), select(open, T(1e300), T(-1.0))}, time, pfaffian_values, next);
  Residual<T> gap = {trial, nullptr, T(0.0)};
  evaluate(next, gap);
  const T left = farthest_row(loops.rows, trial);
  const auto better = both(open, left < farthest);
  for (int k = 0; k < tree.nq; ++k) out[k] = select(better, next[k], out[k]);
  return select(better, left, farthest);
}

/// Return the squared norm to which contradictions of the rows are relative: a contradiction that is small compared with it is rounding. It is the
/// sum of the squares of the velocities or accelerations x (in rad and lengths of the mechanism), of the right-hand sides c of the rows, and of their
/// terms (`size`: squared norm per row, or null).
template <class T>
T size_of_motion(const LoopEquation<T>& e, const T* x, const T* c, const T* size) {
  constexpr double rounding = tolerances::rounding / tolerances::contradiction;  // rounding of terms, relative to the tolerance
  const Tree& tree = e.matrix.tree;
  T terms = T(square(tolerances::at_rest));
  for (int k = 0; k < tree.nv; ++k) terms += x[k] * x[k] * T(tree.numbers<T>()(tree.per_unit_square[k]));
  for (int r = 0; r < tree.loops.rows; ++r)
    terms += (c[r] * c[r] + (size ? size[r] * T(rounding * rounding) : T(0.0))) * e.matrix.row_weight[r];
  return terms;
}

/// Compute v + dv with J (v + dv) = c, where dv is the least change in the metric of these weights (nv); a weight of 0 fixes a velocity. If `a` is
/// not null, compute accelerations at v instead: a + da with J (a + da) = gamma. `rates` (rows, or null): contributions to c or gamma of frames and
/// joints whose motion the caller prescribes. Returns the relative residual.
template <class T>
T least_motion(const Tree& tree, Arena& arena, const T* q, const T* v, const T* a, const T* weight, const T* rates, const T* time,
               const T* pfaffian_values, T* out) {
  const T* x = a ? a : v;
  for (int k = 0; k < tree.nv; ++k) out[k] = x[k];
  if (tree.loops.rows == 0) return T(0.0);
  T *J = arena.take<T>(tree.loops.entries), *c = arena.take<T>(tree.loops.rows),
    *size = a ? arena.take<T>(tree.loops.rows) : nullptr;
  LoopEquation<T> e = metric_equation(tree, arena, q, weight, time, pfaffian_values, true, static_cast<OffLoops<T>*>(nullptr),
                                      a ? nullptr : c, J);
  if (a) constraint_bias(tree, arena, q, v, time, pfaffian_values, c, size);
  T* missing = e.b + tree.nv;
  for (int r = 0; r < tree.loops.rows; ++r) missing[r] = rates ? c[r] + rates[r] : c[r];
  e.terms = size_of_motion<T>(e, x, missing, size);
  add_motion_along_rows(tree, J, x, T(-1.0), missing);
  const LoopSolution<T> solution = solve_tightly(e, arena, e.b);
  for (int k = 0; k < tree.nv; ++k) out[k] += solution.x[k] * weight[k];
  return solution.error;
}

}  // namespace sarrus
