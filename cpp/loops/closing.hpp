// Closing the loops: from a configuration with open loops to a nearby closed one, by steps of least norm on the manifold of configurations,
//
//   x = argmin |J x + phi|^2 + mu |x|^2,    q <- integrate(q, x),    mu in proportion to |phi|,
//
// These are Levenberg and Marquardt's steps, which approach Newton's steps as mu decreases. They converge quadratically even if rows of J depend on
// one another, as in planar loops, or if J is rank-deficient at solutions that are not isolated (Fan and Yuan, Computing 74, 2005). Near a double
// root each step only halves the distance. With y = -(J x + phi) / mu, a step is the solution of the saddle equation
//
//   [1 J^T; J -mu] [x; -y] = [0; -phi].
//
// Velocities and rows are scaled. `column` scales velocities, so that radians and metres are comparable; it is 0 for fixed joints. `row` scales rows;
// it is 0 for inactive rows. A step is accepted only if it reduces the residual. The configuration of a finished lane no longer changes.
#pragma once

#include "../dynamics/configuration.hpp"
#include "constraints.hpp"
#include "substructures.hpp"

namespace sarrus {

template <class T> struct ClosureOptions {
  const T *column, *row;
  T damping;  // initial mu / |phi|
  T steps;  // largest number of steps
  T farthest;  // largest initial |phi|; if |phi| is larger, no step is taken
};

/// Residual phi and Jacobian J of the rows at a configuration, both scaled.
template <class T> struct Residual {
  T *phi, *J, size;  // size: |phi|
};

/// Take steps from q until one does not reduce the residual even with increased damping. `evaluate(q, residual)` computes a residual, without J if J
/// is null; `step(q, residual, mu, x)` computes the step x. If the damping is zero, it cannot be increased: the first step that does not reduce the
/// residual ends the iteration.
template <class T, class Evaluate, class Step>
SARRUS_INLINE T take_steps(const Tree& tree, Arena& arena, T damping, const T& most, const T& farthest, const Evaluate& evaluate,
                           const Step& step, Residual<T> current, Residual<T> trial, T* q) {
  T *next = arena.take<T>(tree.nq), *x = arena.take<T>(tree.nv);
  const T exact = sqrt(T(tree.loops.rows)) * T(tolerances::exact);
  evaluate(q, current);
  auto active = both(current.size > exact, current.size < farthest);
  for (int k = 0; any(active = both(active, T(k) < most)); ++k) {
    const Arena::Scope scope(arena);
    step(q, current, damping * current.size, x);
    integrate(tree, q, x, next);
    evaluate(next, trial);
    const auto improves = both(active, trial.size < current.size);
    for (int i = 0; i < tree.nq; ++i) q[i] = select(improves, next[i], q[i]);
    for (int r = 0; r < tree.loops.rows; ++r) current.phi[r] = select(improves, trial.phi[r], current.phi[r]);
    for (int i = 0; current.J && i < tree.loops.entries; ++i) current.J[i] = select(improves, trial.J[i], current.J[i]);
    current.size = select(improves, trial.size, current.size);
    const T lower = damping * T(0.3), higher = damping * T(4.0), least = T(tolerances::least_damping);
    damping = select(damping > T(0.0), select(improves, select(lower > least, lower, least), higher), damping);
    // the step did not reduce the residual: increase the damping, unless the residual is already at rounding level
    const T hope = select(improves, T(1.0), select(current.size > T(tolerances::rounding), damping, T(0.0)));
    active = both(both(active, current.size > exact), both(hope > T(0.0), damping < T(tolerances::stuck)));
  }
  return current.size;
}

/// Scale J (blocks) by rows and columns.
template <class T> SARRUS_INLINE void scale_jacobian(const Tree& tree, const ClosureOptions<T>& options, T* J) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r, ++J) {
        const T x = *J * (options.column[c.column[k]] * options.row[c.row + r]);
        *J = select(abs(x) < T(1e300), x, T(0.0));  // a rod of zero length has no direction, so its rows are undefined
      }
  }
}

/// Compute phi of all constraints at q and, if J is not null, J (blocks); both scaled.
template <class T> SARRUS_NOINLINE void scaled_rows(const Tree& tree, Arena& arena, const ClosureOptions<T>& options, const T* q,
                                                    const T* time, const T* pfaffian_values, Residual<T>& out) {
  const Arena::Scope scope(arena);
  const Loops& loops = tree.loops;
  ConstraintRows<T> row_output;
  row_output.J = out.J, row_output.residual = out.phi;
  constraint_rows(tree, arena, place(tree, arena, q, time, pfaffian_values), row_output, 0, loops.constraints);
  if (out.J) scale_jacobian(tree, options, out.J);
  for (int r = 0; r < loops.rows; ++r) out.phi[r] *= options.row[r];
  out.size = sqrt(sum_of_squares(out.phi, loops.rows));
}

/// Return 1 if the target pose of some frame has no valid rotation matrix, else 0.
template <class T> SARRUS_INLINE T no_rotation(const Tree& tree, const T* pfaffian_values) {
  T defect = T(0.0);
  for (int i = 0; i < tree.loops.constraints && pfaffian_values; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    if (c.target != Target::frame || !c.turns) continue;
    const Mat3<T> R = target_pose(c, pfaffian_values + c.values).R;
    const Vec3<T> x = Vec3<T>(R.row(0)), y = Vec3<T>(R.row(1)), z = Vec3<T>(R.row(2)) - cross(x, y);
    defect += square(T(dot(x, x) - T(1.0))) + square(T(dot(y, y) - T(1.0))) + square(dot(x, y)) + dot(z, z);
  }
  return select(defect < T(1e-8), T(0.0), T(1.0));
}

/// Convert a scaled step y to velocities x. Steps are shortened to the range in which the linear model is valid.
template <class T> SARRUS_INLINE void scaled_step(const Tree& tree, const ClosureOptions<T>& options, const T* y, T* x) {
  T longest = T(tolerances::longest_step);
  for (int k = 0; k < tree.nv; ++k) longest = select(abs(y[k]) > longest, abs(y[k]), longest);
  for (int k = 0; k < tree.nv; ++k) x[k] = y[k] * options.column[k] * (T(tolerances::longest_step) / longest);
}

/// Factorised equation of the steps at one configuration: for any phi it returns y = argmin |J y + phi|^2 + mu |y|^2.
template <class T> class StepSolver {
 public:
  /// J: scaled blocks. `tight`: a larger regularisation of the rows, relative to J J^T, which replaces mu if mu is below least_square; proximal
  /// corrections remove its effect. 0: unused.
  SARRUS_NOINLINE StepSolver(const Tree& tree, Arena& arena, const ClosureOptions<T>& options, const T* q, const T* time,
                             const T* pfaffian_values, const T* J, const T& mu, const T& tight)
      : tree_(tree), arena_(arena), rows_(tree.loops.rows + tree.loops.motor_rows), tight_(tight) {
    const Loops& loops = tree.loops;
    const int nv = tree.nv;
    b_ = arena.take<T>(nv + rows_), y_ = arena.take<T>(nv + rows_);
    if (loops.rows == 0) return;  // without constraint rows y = 0, and no matrix is needed
    if (loops.substructures) {
      const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
      pieces_ = new (arena.take<SubstructuredEquation<T>>(1))
          SubstructuredEquation<T>(tree, arena, state, Poses<T>{state.in_parent}, state.stored, {options.column, true});
      pieces_->weigh_rows(tree, options.row, select(mu > T(tolerances::least_square), mu, T(tolerances::least_square)));
      factor_ = pieces_->factorise(arena);
      return;
    }
    T *unit_weights = arena.take<T>(nv), *unit_row_weights = arena.take<T>(rows_), *S = arena.take<T>(rows_),
      *least = arena.take<T>(rows_);
    for (int k = 0; k < nv; ++k) unit_weights[k] = T(1.0);
    for (int r = 0; r < rows_; ++r) unit_row_weights[r] = T(1.0), least[r] = T(0.0);
    for (int r = 0; r < rows_; ++r) S[r] = r < loops.rows ? mu : T(1.0);  // motor rows are inactive
    // lanes whose damping is below rounding level need proximal corrections, which do not change the results of other lanes
    if (any(tight > T(0.0)))
      for (int i = 0; i < loops.constraints; ++i) {
        const Constraint& c = loops.constraint[i];
        const T* block = J + c.entry;
        for (int k = 0; k < c.columns; ++k)
          for (int r = 0; r < c.rows; ++r, ++block) least[c.row + r] += *block * *block * tight;
      }
    matrix_ = new (arena.take<Saddle<T>>(1))
        Saddle<T>{tree, loops.statics, nullptr, loops.constraints, rows_, unit_weights, J, S, unit_weights, unit_row_weights};
    factor_ = factorise(*matrix_, arena, static_cast<const T*>(nullptr), least);
  }

  /// Return y (nv), valid until the next call.
  SARRUS_NOINLINE const T* solve(const T* phi) {
    const Arena::Scope scope(arena_);
    const int nv = tree_.nv;
    for (int k = 0; k < nv + rows_; ++k) b_[k] = T(0.0);
    if (tree_.loops.rows == 0) return b_;
    for (int r = 0; r < tree_.loops.rows; ++r) b_[nv + r] = -phi[r];
    if (pieces_) {
      pieces_->solve(tree_, arena_, factor_, b_, y_, 20);
      return y_;
    }
    for (int k = 0; k < nv + rows_; ++k) y_[k] = b_[k];
    sarrus::solve(tree_.loops.statics, factor_, arena_, y_);
    if (any(tight_ > T(0.0))) {
      T* refined = arena_.take<T>(nv + rows_);
      refine(*matrix_, arena_, factor_, b_, refined, 20);
      for (int k = 0; k < nv; ++k) y_[k] = select(tight_ > T(0.0), refined[k], y_[k]);
    }
    return y_;
  }

 private:
  const Tree& tree_;
  Arena& arena_;
  int rows_;
  T tight_, *b_, *y_;
  SubstructuredEquation<T>* pieces_ = nullptr;
  const Saddle<T>* matrix_ = nullptr;
  Factor<T> factor_{};
};

/// Move q to a nearby configuration that closes the loops as well as possible; returns the remaining scaled |phi|.
template <class T>
T close(const Tree& tree, Arena& arena, const ClosureOptions<T>& options, const T* time, const T* pfaffian_values, T* q) {
  const Loops& loops = tree.loops;
  if (loops.rows == 0) return T(0.0);
  const auto evaluate = [&](const T* at, Residual<T>& out) { scaled_rows(tree, arena, options, at, time, pfaffian_values, out); };
  const auto step = [&](const T* at, const Residual<T>& gap, const T& damped, T* x) {
    const auto rounding = gap.size < T(tolerances::rounding), small = damped < T(tolerances::least_square);
    const T mu = select(both(rounding, small), T(tolerances::least_square), damped);
    const T regular = tolerance<T>(tolerances::regularisation, tolerances::regularisation_in_single);
    const T tight = select(rounding, T(0.0), select(small, regular, T(0.0)));
    StepSolver<T> equation(tree, arena, options, at, time, pfaffian_values, gap.J, mu, tight);
    scaled_step(tree, options, equation.solve(gap.phi), x);
  };
  const auto gap = [&] { return Residual<T>{arena.take<T>(loops.rows), arena.take<T>(loops.entries), T(0.0)}; };
  const T error = take_steps(tree, arena, options.damping, options.steps, options.farthest, evaluate, step, gap(), gap(), q);
  const T invalid = no_rotation(tree, pfaffian_values);
  return select(both(error < T(1e300), invalid < T(0.5)), error, T(1e300));
}

}  // namespace sarrus
