// M a + h = tau + J^T lambda, J a = gamma: the acceleration that satisfies the loops, and what they carry. Van der Merwe 5.22-5.33
// (whose constraint forces are these), Li and Wu 4.6; solved as saddle.hpp says.
//
//   reads   q (nq), v, tau (nv), wrenches, time     writes  a (nv); lambda (rows) if asked for
//   cost    O(bodies * depth) for M, then what the loops couple: linear in their number where they are local
#pragma once

#include "../dynamics/crba.hpp"
#include "constraints.hpp"
#include "saddle.hpp"

namespace sarrus {

template <class T> struct LoopInput {
  const T *q, *v, *tau;
  int wrenches = 0;
  const ExternalWrench<T>* wrench = nullptr;
  const T *time = nullptr, *pfaffian_values = nullptr;
  double velocity_gain = 0.0, position_gain = 0.0;  // J a = gamma - velocity_gain (J v - c) - position_gain phi
  OffLoops<T>* off = nullptr;  // if asked for, how far q and v are off the loops
};

/// The matrix of one state with its right-hand side.
template <class T> struct LoopEquation {
  Saddle<T> matrix;
  T* b;  // forces, then gamma
  T* scale;  // of the rows
  T terms;  // size, squared, of the numbers that the right-hand side is made of, weighed as residuals are

  /// A residual, relative: rounding of the terms is no contradiction, even where they cancel.
  SARRUS_INLINE T relative(const T& left) const { return sqrt(left / select(terms > T(0.0), terms, T(1.0))); }
};

/// 1/M_ii; where nothing has inertia, nothing.
template <class T> SARRUS_INLINE T* mobilities(const Tree& tree, Arena& arena, const T* M) {
  T* mobility = arena.take<T>(tree.nv);
  for (int i = 0; i < tree.nv; ++i) {
    const T& m = M[tree.loops.mass_first[i]];
    mobility[i] = select(m > T(0.0), T(1.0) / m, T(0.0));
  }
  return mobility;
}

template <class T>
SARRUS_INLINE void set_row_weights(Arena& arena, LoopEquation<T>& e) {
  T* row_weight = arena.take<T>(e.matrix.rows);
  for (int r = 0; r < e.matrix.rows; ++r) row_weight[r] = T(1.0) / e.scale[r];
  e.matrix.row_weight = row_weight;
}

/// M by rows, each from its diagonal towards the ground.
template <class T>
SARRUS_NOINLINE T* sparse_mass_matrix(const Tree& tree, Arena& arena, Poses<T> X, const Motion<T>* columns) {
  const int* first = tree.loops.mass_first;
  T* M = arena.take<T>(first[tree.nv]);
  composite_inertias(tree, arena, X, columns, [&](int r, int c, const T& m) SARRUS_INLINED {
    M[first[r] + tree.column_depth[r] - tree.column_depth[c]] = m;
  });
  return M;
}

/// Armature of joints that close loops, after the rows of constraints: with r = sqrt(A) J_m the equation
///
///   [M r^T; r -1] [a; y] = [f; 0]    is    (M + J_m^T A J_m) a = f
///
/// Writes its entries into J, and into e their scale, S and what stands on the right; the matrix gets so many rows more.
template <class T>
SARRUS_NOINLINE void add_rotors(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* mobility, T* J,
                                LoopEquation<T>& e) {
  const Loops& loops = tree.loops;
  const int rows = loops.rows + loops.rotor_rows;
  T* soft = arena.take<T>(rows);
  for (int r = 0; r < rows; ++r) soft[r] = T(r < loops.rows ? 0.0 : 1.0);
  ConstraintRows<T> wanted;
  wanted.J = J, wanted.scale = e.scale, wanted.mobility = mobility;
  constraint_rows(tree, arena, state, wanted, loops.constraints, loops.constraints + loops.motor_constraints);
  for (int i = loops.constraints; i < loops.constraints + loops.motor_constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns * c.rows; ++k) J[c.entry + k] *= T(loops.rotor[c.row + k % c.rows - loops.rows]);
  }
  for (int r = loops.rows; r < rows; ++r) {
    const double root = loops.rotor[r - loops.rows];
    e.scale[r] = T(1.0) + e.scale[r] * T(root * root);
    e.b[tree.nv + r] = T(0.0);
  }
  e.matrix.soft = soft, e.matrix.rows = rows, e.matrix.constraints = loops.constraints + loops.motor_constraints;
}

/// M with its rows of constraints at (q, v), and on the right tau - h and gamma. With v null: at rest, the right-hand side left open.
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

  T* M = sparse_mass_matrix(tree, arena, work.poses(), work.columns);

  LoopEquation<T> e = {
      {tree, loops.dynamics, loops.mass_first, loops.constraints, loops.rows, M, nullptr, nullptr, nullptr, nullptr},
      b,
      arena.take<T>(loops.rows + loops.rotor_rows),
      T(0.0)};
  LoopState<T> state = {in.q, in.v ? in.v : rest, in.time, in.pfaffian_values, nullptr, nullptr, work.body};
  place(tree, arena, work.poses(), work.columns, state);
  T* J = arena.take<T>(loops.entries + (loops.rotor_rows ? loops.motor_entries : 0));
  ConstraintRows<T> rows;
  rows.J = J, rows.gamma = b + tree.nv, rows.scale = e.scale;
  rows.mobility = mobilities(tree, arena, M), rows.gamma_size = terms + tree.nv, rows.off = in.off;
  const bool corrects = in.velocity_gain != 0.0 || in.position_gain != 0.0;
  if (corrects) rows.residual = arena.take<T>(loops.rows), rows.target = arena.take<T>(loops.rows);
  constraint_rows(tree, arena, state, rows, 0, loops.constraints);
  if (corrects) {
    add_motion_along_rows(tree, J, in.v, T(-1.0), rows.target);
    for (int r = 0; r < loops.rows; ++r)
      rows.gamma[r] += rows.target[r] * T(in.velocity_gain) - rows.residual[r] * T(in.position_gain);
  }
  e.matrix.J = J, e.matrix.mobility = rows.mobility;
  if (loops.rotor_rows > 0) add_rotors(tree, arena, state, rows.mobility, J, e);
  set_row_weights(arena, e);
  for (int k = 0; k < tree.nv; ++k) e.terms += terms[k] * e.matrix.mobility[k];
  for (int r = 0; r < loops.rows; ++r) e.terms += terms[tree.nv + r] * e.matrix.row_weight[r];
  return e;
}

template <class T> Factor<T> factorise_tightly(const LoopEquation<T>& e, Arena& arena) {
  T* mu = arena.take<T>(e.matrix.rows);
  for (int r = 0; r < e.matrix.rows; ++r) mu[r] = e.scale[r] * T(tolerances::regularisation);
  return factorise(e.matrix, arena, static_cast<const T*>(nullptr), mu);
}

/// Solves for [a; -lambda] and returns the relative residual.
template <class T> T solve_tightly(const LoopEquation<T>& e, Arena& arena, const T* b, T* x) {
  return e.relative(refine(e.matrix, arena, factorise_tightly(e, arena), b, x, 60));
}

/// Of all lambda with the same J^T lambda, the one of least norm. What dependent rows carry is, so near to a division of zero by zero, the
/// rounding of it; lambda = J y takes that out, and J^T J y = f is the saddle equation with nothing for M and one for S:
///
///   [0 J^T; J -1] [y; lambda] = [J^T lambda; 0]
///
/// A y may be as large as it likes, so entries of J that are rounding would count: they are left out.
template <class T> void least_multipliers(const Tree& tree, Arena& arena, const LoopEquation<T>& e, T* lambda) {
  const Loops& loops = tree.loops;
  const int nv = tree.nv, rows = loops.rows + loops.motor_rows;
  T *J = arena.take<T>(loops.entries), *nothing = arena.take<T>(nv), *epsilon = arena.take<T>(nv), *inverse = arena.take<T>(nv);
  T *one = arena.take<T>(rows), *mu = arena.take<T>(rows), *b = arena.take<T>(nv + rows), *x = arena.take<T>(nv + rows);
  for (int k = 0; k < nv; ++k) nothing[k] = epsilon[k] = b[k] = T(0.0);
  for (int r = 0; r < rows; ++r) one[r] = T(1.0), mu[r] = b[nv + r] = T(0.0);
  for (int i = 0, entry = 0; i < loops.constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r, ++entry) {
        const T& x = e.matrix.J[entry];
        J[entry] = select(x * x * e.matrix.mobility[c.column[k]] < e.scale[c.row + r] * T(1e-28), T(0.0), x);
        b[c.column[k]] += J[entry] * lambda[c.row + r];
        epsilon[c.column[k]] += J[entry] * J[entry];
      }
  }
  for (int k = 0; k < nv; ++k) {
    const T size = select(epsilon[k] > T(0.0), epsilon[k], T(1.0));
    inverse[k] = T(1.0) / size, epsilon[k] = size * T(tolerances::regularisation);
  }
  const Saddle<T> s = {tree, loops.statics, nullptr, loops.constraints, rows, nothing, J, one, inverse, one};
  refine(s, arena, factorise(s, arena, epsilon, mu), b, x, 60);
  for (int r = 0; r < loops.rows; ++r) lambda[r] = x[nv + r];
}

/// a; if not null, the least multipliers (rows) and the relative residual that both leave. Returns what a leaves at best.
template <class T>
T constrained_dynamics(const Tree& tree, Arena& arena, const LoopInput<T>& in, T* a, T* multipliers, T* true_residual) {
  const LoopEquation<T> e = loop_equation(tree, arena, in);
  T* x = arena.take<T>(tree.nv + e.matrix.rows);
  const T left = solve_tightly(e, arena, e.b, x);
  for (int k = 0; k < tree.nv; ++k) a[k] = x[k];
  if (multipliers) {
    for (int r = 0; r < tree.loops.rows; ++r) multipliers[r] = -x[tree.nv + r];
    least_multipliers(tree, arena, e, multipliers);
    T *least = arena.take<T>(tree.nv + e.matrix.rows), *work = arena.take<T>(e.matrix.plan.unknowns);
    for (int k = 0; k < tree.nv + e.matrix.rows; ++k) least[k] = x[k];
    for (int r = 0; r < tree.loops.rows; ++r) least[tree.nv + r] = -multipliers[r];
    const T with_least = e.relative(residual(e.matrix, e.b, least, work)),
            with_any = e.relative(residual(e.matrix, e.b, x, work));
    // near a singular position the least ones lose what rows that nearly depend on each other carry: then no row is dependent
    const auto lossy = both(with_least > T(tolerances::unresolved), with_any < with_least);
    for (int r = 0; r < tree.loops.rows; ++r) multipliers[r] = select(lossy, -x[tree.nv + r], multipliers[r]);
    *true_residual = select(lossy, with_any, with_least);
  }
  return left;
}

}  // namespace sarrus
