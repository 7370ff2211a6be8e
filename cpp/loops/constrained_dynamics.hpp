// M a + h = tau + J^T lambda, J a = gamma: the accelerations that satisfy the loop constraints, and the multipliers. Van der Merwe 5.22-5.33 (with
// these constraint forces), Li and Wu 4.6. The equation is solved by saddle.hpp.
//
//   reads   q (nq), v, tau (nv), wrenches, time     writes  a (nv); lambda (rows) on request
//   cost    O(bodies * depth) for M; the rows of the loops add a cost linear in the number of loops, if each couples few bodies
#pragma once

#include "substructures.hpp"

namespace sarrus {

template <class T> struct LoopInput {
  const T *q, *v, *tau;
  int wrenches = 0;
  const ExternalWrench<T>* wrench = nullptr;
  const T *time = nullptr, *pfaffian_values = nullptr;
  // the right-hand side is J a = gamma - velocity_gain (J v - c) - position_gain phi
  double velocity_gain = 0.0, position_gain = 0.0;
  OffLoops<T>* off = nullptr;  // receives the violation of the loops by q and v; null: not computed
  const T* armature = nullptr;  // (nv) added to the diagonal of M, without substructures; null: zero
};

/// Saddle matrix of one state, with its right-hand side.
template <class T> struct LoopEquation {
  Saddle<T> matrix;
  T* b;  // right-hand side: forces, then gamma
  T* scale;  // scale of each row
  T terms;  // squared norm of the terms whose sum is the right-hand side, with the weights of residuals
  // set if the equation of the substructures is solved instead of that of the tree; M is then null
  const SubstructuredEquation<T>* pieces = nullptr;
  const T* epsilon = nullptr;  // (nv) inertia that is added to massless bodies in the factor; null: there are none

  const Saddle<T>& solved() const { return pieces ? pieces->matrix : matrix; }
  /// lifted: convert velocities and rows of the mechanism to the unknowns of the equation that is solved (of the tree, or of substructures); lowered:
  /// convert back.
  const T* lifted(Arena& arena, const T* b) const { return pieces ? pieces->lift(matrix.tree, arena, b) : b; }
  const T* lowered(Arena& arena, const T* x) const { return pieces ? pieces->lower(matrix.tree, arena, x) : x; }

  /// Add inertia for massless bodies (borrowed_inertia.hpp). Substructures need none. Call after the rows are set.
  void borrow(Arena& arena) {
    if (!matrix.tree.lacks_inertia || pieces) return;
    T* borrowed = arena.take<T>(matrix.tree.nv);
    for (int k = 0; k < matrix.tree.nv; ++k) borrowed[k] = T(0.0);
    borrow_inertia(matrix, arena, const_cast<T*>(matrix.mobility), scale, borrowed);
    epsilon = borrowed;
    matrix.inertia = inverses(arena, matrix.tree.nv, matrix.mobility);
  }

  /// Return the residual relative to the terms of the right-hand side, not to their sum, so that it is small even if these terms cancel; 0 if the
  /// terms overflow.
  SARRUS_INLINE T relative(const T& error) const {
    return select(terms < T(1e300), sqrt(error / select(terms > T(0.0), terms, T(1.0))), T(0.0));
  }
};

template <class T>
SARRUS_INLINE void set_row_weights(Arena& arena, LoopEquation<T>& e) {
  e.matrix.row_weight = inverses(arena, e.matrix.rows, e.scale);
}

/// Set M (or another metric), or set up the substructures, at a configuration. The rows and the right-hand side are not set.
template <class T>
SARRUS_INLINE LoopEquation<T> mass_equation(const Tree& tree, Arena& arena, const LoopState<T>& state, Poses<T> X,
                                            const Motion<T>* columns, const Metric<T>& metric = {}, const T* armature = nullptr) {
  const Loops& loops = tree.loops;
  const int rows = metric.plain ? loops.rows + loops.motor_rows : loops.rows;
  LoopEquation<T> e = {{tree, metric.plain ? loops.statics : loops.dynamics, metric.plain ? nullptr : loops.mass_first,
                        loops.constraints, rows, nullptr, nullptr, nullptr, nullptr, nullptr},
                       nullptr,
                       arena.take<T>(rows + loops.rotor_rows),
                       T(0.0)};
  if (loops.substructures)
    e.pieces = new (arena.take<SubstructuredEquation<T>>(1)) SubstructuredEquation<T>(tree, arena, state, X, columns, metric);
  if (metric.plain) {
    T* unit_weights = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) unit_weights[k] = T(1.0);
    e.matrix.M = e.matrix.mobility = unit_weights;
  } else if (e.pieces) {
    e.matrix.mobility = e.pieces->joint_mobilities(arena, tree.nv);
  } else {
    T* M = sparse_mass_matrix(tree, arena, state.q, X, columns);
    for (int k = 0; armature && k < tree.nv; ++k) M[e.matrix.first_entry(k)] += armature[k];
    e.matrix.M = M;
    T* mobility = mobilities(tree, arena, e.matrix.M);
    leave_out_massless(tree, mobility);
    e.matrix.mobility = mobility;
  }
  return e;
}

/// Add the armature A of loop joints as rows after the constraints. With J_m the Jacobian of these joints and r = sqrt(A) J_m, the equation
///
///   [M r^T; r -1] [a; y] = [f; 0]    is    (M + J_m^T A J_m) a = f
///
/// Write the entries of r into J. Write the scale, S and right-hand side of these rows into e, and increase the number of rows of its matrix.
template <class T>
SARRUS_NOINLINE void add_rotors(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* mobility, T* J,
                                LoopEquation<T>& e) {
  const Loops& loops = tree.loops;
  const int rows = loops.rows + loops.rotor_rows;
  T* soft = arena.take<T>(rows);
  for (int r = 0; r < rows; ++r) soft[r] = T(r < loops.rows ? 0.0 : 1.0);
  ConstraintRows<T> row_output;
  row_output.J = J, row_output.scale = e.scale, row_output.mobility = mobility;
  constraint_rows(tree, arena, state, row_output, loops.constraints, loops.constraints + loops.motor_constraints);
  for (int i = loops.constraints; i < loops.constraints + loops.motor_constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns * c.rows; ++k) J[c.entry + k] *= state.numbers(loops.rotor[c.row + k % c.rows - loops.rows]);
  }
  for (int r = loops.rows; r < rows; ++r) {
    e.scale[r] = T(1.0) + e.scale[r] * square(T(state.numbers(loops.rotor[r - loops.rows])));
    e.b[tree.nv + r] = T(0.0);
  }
  e.matrix.soft = soft, e.matrix.rows = rows, e.matrix.constraints = loops.constraints + loops.motor_constraints;
}

/// Set M, the constraint rows at (q, v), and the right-hand side tau - h and gamma. If in.v is null, the velocity is zero and the right-hand side
/// remains incomplete.
template <class T> LoopEquation<T> loop_equation(const Tree& tree, Arena& arena, const LoopInput<T>& in) {
  const Loops& loops = tree.loops;
  T* b = arena.take<T>(tree.nv + loops.rows + loops.rotor_rows);
  const T* rest = zeros<T>(arena, tree.nv);
  const auto work = rnea(tree, arena, RneaInput<T>{in.q, in.v ? in.v : rest, rest, {}, in.wrenches, in.wrench}, b);
  T* terms = arena.take<T>(tree.nv + loops.rows);
  for (int k = 0; k < tree.nv; ++k) {
    const T tau = in.tau ? in.tau[k] : T(0.0);
    terms[k] = tau * tau + b[k] * b[k];
    b[k] = tau - b[k];
  }

  LoopState<T> state = {in.q, in.v ? in.v : rest, in.time, in.pfaffian_values, nullptr, nullptr, work.link};
  place(tree, arena, work.poses(), work.columns, state);
  LoopEquation<T> e = mass_equation(tree, arena, state, work.poses(), work.columns, {}, in.armature);
  e.b = b;
  T* J = arena.take<T>(loops.entries + (loops.rotor_rows ? loops.motor_entries : 0));
  ConstraintRows<T> rows;
  rows.J = J, rows.gamma = b + tree.nv, rows.scale = e.scale;
  rows.mobility = e.matrix.mobility, rows.gamma_size = terms + tree.nv, rows.off = in.off;
  const bool corrects = in.velocity_gain != 0.0 || in.position_gain != 0.0;
  if (corrects) rows.residual = arena.take<T>(loops.rows), rows.target = arena.take<T>(loops.rows);
  constraint_rows(tree, arena, state, rows, 0, loops.constraints);
  if (corrects) {
    add_motion_along_rows(tree, J, in.v, T(-1.0), rows.target);
    for (int r = 0; r < loops.rows; ++r)
      rows.gamma[r] += rows.target[r] * T(in.velocity_gain) - rows.residual[r] * T(in.position_gain);
  }
  e.matrix.J = J;
  if (loops.rotor_rows > 0 && !e.pieces) add_rotors(tree, arena, state, e.matrix.mobility, J, e);
  e.borrow(arena);
  set_row_weights(arena, e);
  for (int k = 0; k < tree.nv; ++k) e.terms += terms[k] * e.matrix.mobility[k];
  for (int r = 0; r < loops.rows; ++r) e.terms += terms[tree.nv + r] * e.matrix.row_weight[r];
  return e;
}

template <class T> Factor<T> factorise_tightly(const LoopEquation<T>& e, Arena& arena) {
  if (e.pieces) return e.pieces->factorise(arena);
  T* mu = arena.take<T>(e.matrix.rows);
  for (int r = 0; r < e.matrix.rows; ++r)
    mu[r] = e.scale[r] * tolerance<T>(tolerances::regularisation, tolerances::regularisation_in_single);
  return factorise(e.matrix, arena, e.epsilon, mu);
}

/// Replace x by the solution of the regularised equation, without correction steps.
template <class T> void solve_once(const LoopEquation<T>& e, Arena& arena, const Factor<T>& factor, T* x) {
  const Arena::Scope scope(arena);
  const Saddle<T>& matrix = e.solved();
  T* y = const_cast<T*>(e.lifted(arena, x));
  solve(matrix.plan, factor, arena, y);
  if (!e.pieces) return;
  const T* lowered = e.lowered(arena, y);
  for (int k = 0; k < e.matrix.tree.nv + e.matrix.tree.loops.rows; ++k) x[k] = lowered[k];
}

/// Solve the equation with correction steps. The solution is [a; -lambda] of the mechanism, in the arena.
template <class T> const T* solve_corrected(const LoopEquation<T>& e, Arena& arena, const Factor<T>& factor, const T* b) {
  const Saddle<T>& matrix = e.solved();
  T* y = arena.take<T>(matrix.plan.unknowns);
  refine(matrix, arena, factor, e.lifted(arena, b), y, tolerances::most_corrections);
  return e.lowered(arena, y);
}

/// x: [a; -lambda] of the mechanism. y: the unknowns of the equation that is solved; with substructures these are the substructures' velocities and
/// rows.
template <class T> struct LoopSolution {
  const T *x, *y;
  T error;  // relative residual
  Factor<T> factor;
};

/// Solve the equation with correction steps. If the loops allow a motion that moves no mass, the returned error is tolerances::undetermined.
template <class T>
SARRUS_INLINE LoopSolution<T> solve_tightly(const LoopEquation<T>& e, Arena& arena, const T* b, const Factor<T>& factor) {
  const Saddle<T>& matrix = e.solved();
  T* y = arena.take<T>(matrix.plan.unknowns);
  const T* lifted = e.lifted(arena, b);
  T error = e.relative(refine(matrix, arena, factor, lifted, y, tolerances::most_corrections));
  if (const auto large = error > T(tolerances::unresolved); any(large)) {  // refine() may return an earlier error
    const Arena::Scope scope(arena);
    error = select(large, e.relative(residual(matrix, lifted, y, arena.take<T>(matrix.plan.unknowns))), error);
  }
  if (e.epsilon || (e.pieces && e.pieces->borrows)) {
    const auto undetermined = is_undetermined(matrix, arena, [&](T* x) { solve(matrix.plan, factor, arena, x); });
    error = select(undetermined, T(tolerances::undetermined), error);
  }
  return {e.lowered(arena, y), y, error, factor};
}
template <class T> LoopSolution<T> solve_tightly(const LoopEquation<T>& e, Arena& arena, const T* b) {
  return solve_tightly(e, arena, b, factorise_tightly(e, arena));
}

/// Return the squared norm of velocities in the metric of residuals: each squared velocity is divided by its mobility.
template <class T> SARRUS_INLINE T in_metric(const Saddle<T>& s, const T* a) {
  T sum = T(0.0);
  for (int k = 0; k < s.tree.nv; ++k) sum += a[k] * a[k] * inverse_or_zero(s.mobility[k]);
  return sum;
}

/// Estimate the squared change of the solution if every entry of the equation has the relative error `share`, compared with the largest entry.
/// `size`: squared norm of the accelerations, plus that of the accelerations of free bodies under the same forces.
template <class T> T moved_by_errors(const LoopEquation<T>& e, Arena& arena, const Factor<T>& factor, const T& size,
                                     const T& share, bool rows_only = false) {
  const Saddle<T>& matrix = e.solved();
  const int nv = matrix.tree.nv;
  T* r = arena.take<T>(nv + matrix.rows);
  for (int k = 0; k < nv && rows_only; ++k) r[k] = T(0.0);
  for (int k = rows_only ? nv : 0; k < nv + matrix.rows; ++k) {
    const T weight = inverse_or_zero(k < nv ? matrix.mobility[k] : matrix.row_weight[k - nv]);
    r[k] = sqrt(size * weight) * share * T(scattered(k));
  }
  solve(matrix.plan, factor, arena, r);
  return in_metric(matrix, static_cast<const T*>(r));
}

/// Estimate the squared change of the accelerations by rounding errors of the rows alone. Near a singular position, its square root grows as 1 /
/// distance.
template <class T> T moved_by_rounding(const LoopEquation<T>& e, Arena& arena, const Factor<T>& factor, const T& size) {
  return moved_by_errors(e, arena, factor, size, T(tolerances::entry_rounding), true);
}
/// Return true if the position is so near to a singular one that derivatives would be meaningless. `moved`: result of moved_by_rounding().
template <class T> SARRUS_INLINE auto is_near_singular(const T& moved, const T& size) {
  return moved > size * T(square(tolerances::differentiable));
}

/// Return true if gaps of the loops may change the accelerations by more than tolerances::decides. This happens because a gap makes dependent rows
/// independent, and the mechanism is then locked. `open`: squared norm of the gaps. `rows_only`: assume errors in the rows only; this is necessary if
/// some velocities have no inertia.
template <class T>
SARRUS_NOINLINE auto gap_decides(const LoopEquation<T>& e, Arena& arena, const LoopSolution<T>& solution, const T& open,
                                 bool rows_only = false) {
  const Arena::Scope scope(arena);
  const T size = e.terms + in_metric(e.solved(), solution.y), gap = sqrt(open);
  const T share = select(gap < T(tolerances::off_loops), gap, T(tolerances::off_loops));
  return moved_by_errors(e, arena, solution.factor, size, share, rows_only) > size * T(square(tolerances::decides));
}

template <class T>
void check_gap(const LoopEquation<T>& e, Arena& arena, const LoopSolution<T>& solution, OffLoops<T>& off) {
  if (any(off.open > T(0.0))) off.fault = select(gap_decides(e, arena, solution, off.open), T(2.0), off.fault);
}

/// Return an error bound of the accelerations, relative to the sum of their norm and that of the accelerations of free bodies under the same forces.
/// It adds two estimated changes of the accelerations. The first is the sum of all further correction steps: next correction / (1 - ratio of
/// successive corrections); this ratio is near 1 if the regularisation is large compared with the squared singular value. The second is the effect of
/// a rounding error in every entry of the equation. Near a singular position it grows like the true error, as 1 / singular value, even if the
/// residual remains small.
template <class T> T relative_error(const LoopEquation<T>& e, Arena& arena, const LoopSolution<T>& solution) {
  const Saddle<T>& matrix = e.solved();
  const int n = matrix.plan.unknowns;
  T* r = arena.take<T>(n);
  const T size = e.terms + in_metric(matrix, solution.y);
  const T* b = e.lifted(arena, e.b);
  residual(matrix, b, solution.y, r);
  solve(matrix.plan, solution.factor, arena, r);
  const T correction = sqrt(in_metric(matrix, static_cast<const T*>(r)));
  T *next = arena.take<T>(n), *second = arena.take<T>(n);
  for (int k = 0; k < n; ++k) next[k] = solution.y[k] + r[k];
  residual(matrix, b, next, second);
  solve(matrix.plan, solution.factor, arena, second);
  const T another = sqrt(in_metric(matrix, static_cast<const T*>(second)));
  const T rounding = sqrt(moved_by_errors(e, arena, solution.factor, size, T(tolerances::entry_rounding)));
  const T falls = correction - another;
  // the ratio of two corrections at rounding level is meaningless
  const auto is_regular = both(correction > rounding * T(tolerances::corrects), correction > T(0.0));
  const T least = correction / T(tolerances::many_corrections);
  const T remaining =
      select(is_regular, correction * correction * inverse_or_zero(select(falls > least, falls, least)), correction);
  return select(size > T(0.0), (remaining + rounding) / sqrt(select(size > T(0.0), size, T(1.0))), T(0.0));
}

/// Return the lambda of least norm among those with the same J^T lambda. The multipliers of dependent rows contain arbitrary rounding errors, because
/// their equation is nearly 0 / 0. If lambda is written as J y, it cannot contain those errors. J^T J y = f is the saddle equation with 0 for M and 1
/// for S:
///
///   [0 J^T; J -1] [y; lambda] = [f; 0],  f = M a + h - tau = J^T lambda
///
/// Entries of J at rounding level are set to zero, because y can be so large that even these entries would change the result. With substructures, S
/// is 1 for the rows of loops and 0 for the joints at the cuts, and armature rows do not change. The result has the rows of the solved equation.
template <class T>
T* least_multipliers(const Tree& full_tree, Arena& arena, const LoopEquation<T>& e, const LoopSolution<T>& solution) {
  const Saddle<T>& matrix = e.solved();
  const Tree& tree = matrix.tree;
  const Loops& loops = tree.loops;
  const int nv = tree.nv, counting = full_tree.loops.rows, carrying = e.pieces ? e.pieces->pieces.compliant_row : loops.rows;
  const int rows = e.pieces ? loops.rows : loops.rows + loops.motor_rows;
  const int entries = e.pieces ? loops.mass_first[nv] : nv;
  T *lambda = arena.take<T>(matrix.rows), *moves = arena.take<T>(nv + matrix.rows), *missing = arena.take<T>(nv + matrix.rows);
  // f is computed from M a, because J^T lambda would contain the rounding errors of self-stresses (multipliers of dependent rows that cancel)
  for (int k = 0; k < nv + matrix.rows; ++k) moves[k] = k < nv || k - nv >= carrying ? solution.y[k] : T(0.0);
  residual(matrix, e.lifted(arena, e.b), static_cast<const T*>(moves), missing);
  T *J = arena.take<T>(loops.entries), *zero_mass = arena.take<T>(entries), *epsilon = arena.take<T>(nv),
    *inverse = arena.take<T>(nv);
  T *S = arena.take<T>(rows), *unit_row_weights = arena.take<T>(rows), *mu = arena.take<T>(rows), *b = arena.take<T>(nv + rows),
    *x = arena.take<T>(nv + rows);
  for (int k = 0; k < entries; ++k) zero_mass[k] = T(0.0);
  for (int k = 0; k < nv; ++k) epsilon[k] = T(0.0), b[k] = -missing[k];
  for (int r = 0; r < rows; ++r)
    unit_row_weights[r] = T(1.0), S[r] = T(r < counting || r >= carrying ? 1.0 : 0.0), mu[r] = b[nv + r] = T(0.0);
  const T* scale = e.pieces ? e.pieces->scale : e.scale;
  for (int i = 0, entry = 0; i < loops.constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r, ++entry) {
        const T& x = matrix.J[entry];
        const auto rounding = x * x * matrix.mobility[c.column[k]] < scale[c.row + r] * T(1e-28);
        J[entry] = select(rounding, T(0.0), x) * T(c.row + r < carrying ? 1.0 : 0.0);
        epsilon[c.column[k]] += J[entry] * J[entry];
        if (c.row + r >= counting)
          mu[c.row + r] += J[entry] * J[entry] * tolerance<T>(tolerances::regularisation, tolerances::regularisation_in_single);
      }
  }
  for (int k = 0; k < nv; ++k) {
    const T size = select(epsilon[k] > T(0.0), epsilon[k], T(1.0));
    inverse[k] = T(1.0) / size,
    epsilon[k] = size * tolerance<T>(tolerances::regularisation, tolerances::regularisation_in_single);
  }
  const Saddle<T> s = {tree,
                       e.pieces ? loops.dynamics : loops.statics,
                       e.pieces ? loops.mass_first : nullptr,
                       loops.constraints,
                       rows,
                       zero_mass,
                       J,
                       S,
                       inverse,
                       unit_row_weights};
  refine(s, arena, factorise(s, arena, epsilon, mu), b, x, 60);
  for (int r = 0; r < matrix.rows; ++r) lambda[r] = r < carrying ? x[nv + r] : T(-solution.y[nv + r]);
  return lambda;
}

/// Compute the multipliers of least norm of all rows, and their relative residual, `left`. Near a singular position, these multipliers lose the loads
/// of nearly dependent rows. Then the multipliers of the solution are used instead, provided that their residual is clearly smaller. (Both residuals
/// include that of the accelerations.) Returns the smaller of the two residuals.
template <class T>
T least_multipliers(const Tree& tree, Arena& arena, const LoopEquation<T>& e, const LoopSolution<T>& solution, T* multipliers,
                    T& left) {
  const Saddle<T>& matrix = e.solved();
  const int nv = matrix.tree.nv;
  const T *b = e.lifted(arena, e.b), *lambda = least_multipliers(tree, arena, e, solution);
  T *least = arena.take<T>(nv + matrix.rows), *work = arena.take<T>(nv + matrix.rows);
  for (int k = 0; k < nv; ++k) least[k] = solution.y[k];
  for (int r = 0; r < matrix.rows; ++r) least[nv + r] = -lambda[r];
  const T with_least = e.relative(residual(matrix, b, static_cast<const T*>(least), work)),
          with_any = e.relative(residual(matrix, b, solution.y, work));
  const auto lossy = both(with_least > T(tolerances::unresolved), with_any < with_least * T(tolerances::loses));
  for (int r = 0; r < tree.loops.rows; ++r) multipliers[r] = select(lossy, -solution.y[nv + r], lambda[r]);
  left = select(lossy, with_any, with_least);
  return select(with_any < with_least, with_any, with_least);
}

/// Return the least pivot of the loops' rows, each relative to the row's diagonal entry of J M^-1 J^T. It is at rounding level if a row depends on
/// other rows. With substructures it is not known, and 0 is returned.
template <class T> T least_pivot(const LoopEquation<T>& e, const LoopSolution<T>& solution) {
  if (e.pieces) return T(0.0);
  T most = T(1.0);
  for (int r = 0; r < e.matrix.tree.loops.rows; ++r) {
    const T inverse = -solution.factor.D_inverse[e.matrix.plan.place[e.matrix.tree.nv + r]] * e.scale[r];
    most = select(inverse > most, inverse, most);
  }
  return T(1.0) / most;
}

/// Compute a. If not null, `multipliers` (rows) receives the multipliers of least norm. If not null, `accuracy` receives the relative residuals of a
/// and of the multipliers, the error bound of a, and the least pivot. Returns the relative residual of a.
template <class T>
T constrained_dynamics(const Tree& tree, Arena& arena, const LoopInput<T>& in, T* a, T* multipliers, T* accuracy) {
  const LoopEquation<T> e = loop_equation(tree, arena, in);
  const LoopSolution<T> solution = solve_tightly(e, arena, e.b);
  for (int k = 0; k < tree.nv; ++k) a[k] = solution.x[k];
  if (in.off) check_gap(e, arena, solution, *in.off);
  if (!multipliers) return solution.error;
  const T left = least_multipliers(tree, arena, e, solution, multipliers, accuracy[0]);
  accuracy[1] = relative_error(e, arena, solution), accuracy[2] = least_pivot(e, solution);
  return select(left > solution.error, left, solution.error);
}

}  // namespace sarrus
