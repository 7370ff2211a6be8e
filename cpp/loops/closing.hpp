// Closing the loops: from a configuration to one nearby, by steps of least motion on the manifold of configurations,
//
//   x = argmin |J x + phi|^2 + mu |x|^2,    q <- integrate(q, x),    mu in proportion to |phi|,
//
// Levenberg's and Marquardt's, which tend to Newton's. They converge quadratically also where rows of J depend on one another, as those
// of planar loops always do, and where solutions are not isolated and J loses rank on them (Fan and Yuan, Computing 74, 2005); they halve
// the way to a double root. With y = -(J x + phi) / mu a step is the saddle equation
//
//   [1 J^T; J -mu] [x; -y] = [0; -phi].
//
// Everything is scaled: a velocity by `column`, in which radians and metres compare and which is 0 where a joint is held; a row by `row`,
// which is 0 where it is not asked for. A step is taken only if it leaves less open; a lane that is done keeps what it has.
#pragma once

#include "../dynamics/configuration.hpp"
#include "constraints.hpp"
#include "substructures.hpp"

namespace sarrus {

template <class T> struct Closing {
  const T *column, *row;
  T damping;  // mu / |phi| at the start
  T steps;  // at most
  T farthest;  // |phi| up to which a start is tried at all
};

/// The rows at a configuration.
template <class T> struct Gap {
  T *phi, *J, size;  // size: |phi|
};

/// Steps from q as long as they bring something. `evaluate(q, gap)` fills in a gap, but for J where the steps do not want it;
/// `step(q, gap, mu, x)` finds x. An undamped step that brings nothing is the last.
template <class T, class Evaluate, class Step>
SARRUS_INLINE T take_steps(const Tree& tree, Arena& arena, T damping, const T& most, const T& farthest, const Evaluate& evaluate,
                           const Step& step, Gap<T> here, Gap<T> there, T* q) {
  T *next = arena.take<T>(tree.nq), *x = arena.take<T>(tree.nv);
  const T exact = sqrt(T(tree.loops.rows)) * T(tolerances::exact);
  evaluate(q, here);
  auto active = both(here.size > exact, here.size < farthest);
  for (int k = 0; any(active = both(active, T(k) < most)); ++k) {
    const Arena::Scope scope(arena);
    step(q, here, damping * here.size, x);
    integrate(tree, q, x, next);
    evaluate(next, there);
    const auto improves = both(active, there.size < here.size);
    for (int i = 0; i < tree.nq; ++i) q[i] = select(improves, next[i], q[i]);
    for (int r = 0; r < tree.loops.rows; ++r) here.phi[r] = select(improves, there.phi[r], here.phi[r]);
    for (int i = 0; here.J && i < tree.loops.entries; ++i) here.J[i] = select(improves, there.J[i], here.J[i]);
    here.size = select(improves, there.size, here.size);
    const T lower = damping * T(0.3), higher = damping * T(4.0), least = T(tolerances::least_damping);
    damping = select(damping > T(0.0), select(improves, select(lower > least, lower, least), higher), damping);
    // more damping may help, but not against rounding
    const T hope = select(improves, T(1.0), select(here.size > T(tolerances::rounding), damping, T(0.0)));
    active = both(both(active, here.size > exact), both(hope > T(0.0), damping < T(tolerances::stuck)));
  }
  return here.size;
}

/// J, in blocks, as steps take it.
template <class T> SARRUS_INLINE void scale_jacobian(const Tree& tree, const Closing<T>& how, T* J) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r, ++J) {
        const T x = *J * (how.column[c.column[k]] * how.row[c.row + r]);
        *J = select(abs(x) < T(1e300), x, T(0.0));  // a rod of no length has no direction
      }
  }
}

/// phi of all constraints at q and, if there is room for it, J (blocks), scaled.
template <class T> SARRUS_NOINLINE void scaled_rows(const Tree& tree, Arena& arena, const Closing<T>& how, const T* q,
                                                    const T* time, const T* pfaffian_values, Gap<T>& out) {
  const Arena::Scope scope(arena);
  const Loops& loops = tree.loops;
  ConstraintRows<T> asked;
  asked.J = out.J, asked.residual = out.phi;
  constraint_rows(tree, arena, place(tree, arena, q, time, pfaffian_values), asked, 0, loops.constraints);
  if (out.J) scale_jacobian(tree, how, out.J);
  for (int r = 0; r < loops.rows; ++r) out.phi[r] *= how.row[r];
  out.size = sqrt(sum_of_squares(out.phi, loops.rows));
}

/// Return 1 if a target pose of a frame has no rotation matrix, else 0.
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

/// Velocities for scaled ones, but no longer a step than the linear model is good for.
template <class T> SARRUS_INLINE void scaled_step(const Tree& tree, const Closing<T>& how, const T* y, T* x) {
  T longest = T(tolerances::longest_step);
  for (int k = 0; k < tree.nv; ++k) longest = select(abs(y[k]) > longest, abs(y[k]), longest);
  for (int k = 0; k < tree.nv; ++k) x[k] = y[k] * how.column[k] * (T(tolerances::longest_step) / longest);
}

/// The equation of steps at one configuration, factorised: of any phi it tells y = argmin |J y + phi|^2 + mu |y|^2.
template <class T> class StepEquation {
 public:
  /// J in blocks, scaled. `tight` (0: not so) takes the place of a mu below tolerances::least_square, and the proximal way that of one solution.
  SARRUS_NOINLINE StepEquation(const Tree& tree, Arena& arena, const Closing<T>& how, const T* q, const T* time,
                               const T* pfaffian_values, const T* J, const T& mu, const T& tight)
      : tree_(tree), arena_(arena), rows_(tree.loops.rows + tree.loops.motor_rows), tight_(tight) {
    const Loops& loops = tree.loops;
    const int nv = tree.nv;
    b_ = arena.take<T>(nv + rows_), y_ = arena.take<T>(nv + rows_), work_ = arena.take<T>(nv + rows_);
    if (loops.rows == 0) return;  // a tree has no matrix: y = 0
    if (loops.substructures) {
      const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
      pieces_ = new (arena.take<SubstructuredEquation<T>>(1))
          SubstructuredEquation<T>(tree, arena, state, Poses<T>{state.in_parent}, state.stored, {how.column, true});
      pieces_->weigh_rows(tree, how.row, select(mu > T(tolerances::least_square), mu, T(tolerances::least_square)));
      factor_ = pieces_->factorise(arena);
      return;
    }
    T *one = arena.take<T>(nv), *one_a_row = arena.take<T>(rows_), *S = arena.take<T>(rows_), *least = arena.take<T>(rows_);
    for (int k = 0; k < nv; ++k) one[k] = T(1.0);
    for (int r = 0; r < rows_; ++r) one_a_row[r] = T(1.0), least[r] = T(0.0);
    for (int r = 0; r < rows_; ++r) S[r] = r < loops.rows ? mu : T(1.0);  // motors have no say here
    // what is damped less than rounding needs the proximal way, and no other lane is to notice
    if (any(tight > T(0.0)))
      for (int i = 0; i < loops.constraints; ++i) {
        const Constraint& c = loops.constraint[i];
        const T* block = J + c.entry;
        for (int k = 0; k < c.columns; ++k)
          for (int r = 0; r < c.rows; ++r, ++block) least[c.row + r] += *block * *block * tight;
      }
    matrix_ = new (arena.take<Saddle<T>>(1))
        Saddle<T>{tree, loops.statics, nullptr, loops.constraints, rows_, one, J, S, one, one_a_row};
    factor_ = factorise(*matrix_, arena, static_cast<const T*>(nullptr), least);
  }

  /// (nv), until it is asked again.
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
    sarrus::solve(tree_.loops.statics, factor_, arena_, y_, work_);
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
  T tight_, *b_, *y_, *work_;
  SubstructuredEquation<T>* pieces_ = nullptr;
  const Saddle<T>* matrix_ = nullptr;
  Factor<T> factor_{};
};

/// The steps of `close`: lengths of the first two, scaled, and J at the configuration where they ended.
template <class T> struct StepsTaken {
  T first, second;
  const T* J;
};

/// q becomes a configuration near it that closes the loops as well as it can; returns |phi| that is left there, scaled.
template <class T>
T close(const Tree& tree, Arena& arena, const Closing<T>& how, const T* time, const T* pfaffian_values, T* q,
        StepsTaken<T>* taken = nullptr) {
  const Loops& loops = tree.loops;
  if (loops.rows == 0) return T(0.0);
  int count = 0;
  const auto evaluate = [&](const T* at, Gap<T>& out) { scaled_rows(tree, arena, how, at, time, pfaffian_values, out); };
  const auto step = [&](const T* at, const Gap<T>& gap, const T& damped, T* x) {
    const auto rounding = gap.size < T(tolerances::rounding), small = damped < T(tolerances::least_square);
    const T mu = select(both(rounding, small), T(tolerances::least_square), damped);
    const T regular = tolerance<T>(tolerances::regularisation, tolerances::regularisation_in_single);
    const T tight = select(rounding, T(0.0), select(small, regular, T(0.0)));
    StepEquation<T> equation(tree, arena, how, at, time, pfaffian_values, gap.J, mu, tight);
    const T* y = equation.solve(gap.phi);
    if (taken && count < 2) (count == 0 ? taken->first : taken->second) = sqrt(sum_of_squares(y, tree.nv));
    ++count;
    scaled_step(tree, how, y, x);
  };
  const auto gap = [&] { return Gap<T>{arena.take<T>(loops.rows), arena.take<T>(loops.entries), T(0.0)}; };
  const Gap<T> here = gap(), there = gap();
  if (taken) *taken = {T(0.0), T(0.0), here.J};
  const T error = take_steps(tree, arena, how.damping, how.steps, how.farthest, evaluate, step, here, there, q);
  const T bad = no_rotation(tree, pfaffian_values);
  return select(both(error < T(1e300), bad < T(0.5)), error, T(1e300));
}

}  // namespace sarrus
