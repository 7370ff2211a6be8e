// The implicit midpoint rule: v1 = v0 + h a(t + h/2, q0 cay(h/4 (v0 + v1)), (v0 + v1)/2), q1 = q0 cay(h/2 (v0 + v1)). It is symmetric and A-stable.
//
// - Rotations. Cayley's transform rotates by 2 atan(|h w|/2). With it a free body conserves momentum and energy to rounding.
// - Floating groups of bodies. v1 of their bases is computed from the momentum of the group: p1 = p0 + h p-dot, with the rate at the middle.
//   This is the midpoint rule for the momentum instead of the velocity. Forces of joints, including loop joints, do not contribute to p-dot. So
//   without external forces, momentum is conserved to rounding.
// - Fast damping. If damping d is faster than the step, z = h d / M_kk > 2, the rule would make a joint's velocity oscillate from step to step.
//   Therefore the damping force is evaluated at v0 + (1 - 1/z) (v1 - v0). A velocity without a driving force then decays within one step.
// - Loops. The projection is symmetric too (Hairer, Lubich and Wanner V.4.1): the correction at the end is also applied at the beginning. So the
//   rule is reversible, and energy oscillates without drift in regular motion. In long steps of chaotic chains it may drift.
//
// On loops, the equation is solved by a simplified Newton iteration (midpoint_newton.hpp). It is solved roughly before the loops are closed, because
// the corrections of the ends change it. Otherwise it is solved by a fixed-point iteration with M + h D/2 + h^2 K/4 instead of M, where D and K belong to fast dampers and springs of the
// tree's joints. If the iteration does not contract, Newton's method is used, with a derivative by finite differences.
#pragma once

#include <algorithm>
#include <cmath>

#include "../simd/dense.hpp"
#include "friction.hpp"
#include "midpoint_newton.hpp"

namespace sarrus {

/// Correction of the iteration for linear dampers and springs of joints. It is not used if these are slow.
class LinearJoints {
 public:
  explicit LinearJoints(const MidpointRule<double>& rule)
      : M_(rule.M), nv_(rule.nv), tree_(rule.s.tree), there_{tree_, rule.s.arena, rule.s.plan, rule.s.parameter} {
    if (!tree_.has_joint_forces || tree_.loops.substructures) return;
    if (!M_) M_ = there_.arena.take<double>(nv_ * nv_), crba(tree_, there_.arena, rule.x.q, M_);
    PassiveTerms* terms = rule.s.arena.take<PassiveTerms>(nv_);
    std::copy(tree_.passive, tree_.passive + nv_, terms);
    for (int k = 0; k < nv_; ++k) {
      const PassiveTerms& f = terms[k];
      const double slope = tangent_damping(f.damping, f.nonlinear, tree_.numbers<double>(), rule.x.v[k]),
                   stiffness = tangent_stiffness(f.stiffness, f.nonlinear, tree_.numbers<double>(),
                                                 f.iq < 0 ? 0.0 : rule.x.q[f.iq] - f.rest);
      const double damping = 0.5 * std::max(0.0, slope) + (rule.later ? rule.later[k] : 0.0);
      const double more = rule.h * damping + 0.25 * square(rule.h) * std::max(0.0, stiffness);
      acts_ |= more > slow * M_[k * nv_ + k], terms[k].armature += more;
    }
    if (!acts_) return;
    tree_.passive = terms, tree_.has_armature = true;
    response_.emplace(there_, rule.time, rule.x.q, rule.x.v);
  }
  bool act() const { return acts_; }
  /// Replace out - y (nv) by the change of y: (M + h D/2 + h^2 K/4)^-1 M (out - y), on the loops.
  void operator()(double* by) {
    const Arena::Scope scope(there_.arena);
    double* force = there_.arena.take<double>(nv_);
    for (int k = 0; k < nv_; ++k) force[k] = scalar_product(M_ + k * nv_, by, nv_);
    (*response_)(force);
    std::copy(force, force + nv_, by);
  }

 private:
  // least ratio of h D/2 + h^2 K/4 to the inertia of a joint; below it the plain iteration contracts as fast
  static constexpr double slow = 0.05;
  double* M_;
  const int nv_;
  Tree tree_;
  System<double> there_;
  std::optional<Response<double>> response_{};
  bool acts_ = false;
};

/// Take a step. `guess`: initial (v, z) of the iteration at the end of the step; null: those at its beginning. `newton`: if not null and if it
/// converges, it replaces this iteration; `rough`: the step is preliminary, and need not be accurate. Returns false if the step is not accurate.
inline bool implicit_midpoint_step(System<double>& s, double time, double h, const SimulationState<double>& x,
                                   const double* guess = nullptr, MidpointNewton<double>* newton = nullptr, bool rough = false) {
  MidpointRule<double> rule(s, time, h, x);
  const int n = rule.n;
  if (newton && newton->applies()) {
    double* y = rule.take(n);
    if (newton->solve(rule, y, rough)) return rule.finish(y), !rough;
  }
  double *y = rule.take(n), *out = rule.take(n), *off = rule.take(n), *out_varied = rule.take(n), *step = rule.take(n),
         *A = nullptr;
  std::copy_n(guess ? guess : x.v, n, y);
  LinearJoints joints(rule);
  rule.apply(y, out);
  double residual = rule.difference_of(y, out, off);
  for (int round = 0; residual > 1e-15 && residual < rule.overflow && round < 50 && s.status == 0.0; ++round) {
    std::copy(off, off + n, step);
    if (A) {  // Newton's method
      std::copy(A, A + n * n, A + n * n);
      if (!solve_dense(n, A + n * n, step, [&](int k) { return rule.unit(k); })) break;
    } else if (joints.act()) {
      joints(step);
    }
    double now = 0.0, length = 1.0;
    for (;; length *= 0.5) {  // a step is shorter if dry friction or a contact begins within it
      for (int k = 0; k < n; ++k) y[k] += (length == 1.0 ? 1.0 : -length) * step[k];
      rule.apply(y, out);
      now = rule.difference_of(y, out, off);
      if (!A || now < residual || now < 1e-12 || length < 1e-9) break;
    }
    // residuals are at rounding level: of two iterates with equal residuals, keep the earlier one
    if (now >= residual && now < 1e-9) {
      for (int k = 0; k < n; ++k) y[k] -= now > residual ? length * step[k] : 0.0;
      residual = std::min(now, residual);
      break;
    }
    if (now > 0.2 * residual) {
      if (!A) A = rule.take(2 * n * n);
      rule.derivative(y, out, out_varied, A);
    }
    residual = now;
  }
  if (residual > 1e-7 && s.status == 0.0)  // near singular positions rounding reaches this value
    s.status = residual < rule.overflow ? no_convergence : diverged;
  rule.finish(y);
  return true;
}

/// Move a state by the least motion that changes the rows by `position`. Then change its velocity by the least motion that changes the rates of the
/// rows by `rate`.
template <class T>
void shift(LeastMotion<T>& least, const T* position, const T* rate, T* q, const SimulationState<T>& at) {
  integrate(least.tree, at.q, least.along(position, 1.0), q);
  std::copy(q, q + least.tree.nq, at.q);
  const T* faster = least.along(rate, 1.0);
  for (int k = 0; k < least.tree.nv; ++k) at.v[k] += faster[k];
}

/// Squared residuals of positions and velocities after a step. A correction of the positions may increase the residual of the velocities, and vice
/// versa.
template <class T> struct LeftOpen {
  T positions = T(HUGE_VAL), velocities = T(HUGE_VAL);
  T sum() const { return positions + velocities; }
};
/// Return true if another round of corrections may reduce the residuals of the loops, or if the loops are nearly closed.
inline bool goes_on(const LeftOpen<double>& now, const LeftOpen<double>& before) {
  return now.positions < before.positions || now.velocities < before.velocities || now.sum() < square(tolerances::no_drift);
}
inline bool keeps_loops(const LoopRows<double>&, double residual, const SimulationState<double>&) {
  return residual < square(tolerances::no_drift);
}

/// Violation of the loops at the end of a step: phi, c - J v, and c - J v at the positions that close the loops.
template <class T> struct EndRows {
  T *phi, *slip, *slip_closed;
};
/// Close the positions at the end of a step. Returns the violation of the loops before that.
template <class T> EndRows<T> close_end(System<T>& s, const T& time, const SimulationState<T>& at) {
  LoopRows<T> rows(s, time, nullptr);
  const auto copied = [&](const T* from) {
    T* to = s.arena.template take<T>(rows.size());
    std::copy(from, from + rows.size(), to);
    return to;
  };
  const T residual = rows.evaluate(at.q, rows.phi);
  rows.subtract_motion(at.v);
  T *phi = copied(rows.phi), *slip = copied(rows.slip);
  if constexpr (carries_rates<T>) {
    project(s, time, at.q, at.v, nullptr, false);
    rows.evaluate(at.q, rows.phi);
  } else {
    if (residual <= square(tolerances::no_drift)) return {phi, slip, slip};
    Corrections<T> corrections{s, time, nullptr, nullptr};
    close_positions(rows, corrections, residual, at.q);
  }
  rows.subtract_motion(at.v);
  return {phi, slip, rows.slip};
}

/// Take the step between two projections, which change the constraint rows by equal amounts at its beginning and its end, such that the end satisfies
/// the loops. These amounts are found in several rounds. All rounds use the same two least motions: one computed at the beginning, and one at the
/// closed end of the first trial. The resulting error is of second order in the drift.
template <class T> void implicit_midpoint_on_loops(System<T>& s, const T& time, const T& h, const SimulationState<T>& x) {
  const Tree& tree = s.tree;
  Arena& arena = s.arena;
  const int nq = tree.nq, nv = tree.nv, rows = tree.loops.rows, size = s.size();
  const auto take = [&](int count) { return arena.template take<T>(count); };
  T *position = take(rows), *rate = take(rows), *q = take(nq);  // changes of the rows, and changes of their rates
  T *begin = take(size), *row = take(size), *end = take(size);
  // v and z, and sampled values: of the last solution, and at its beginning
  T *guess = take(size - nq), *begun = take(size - nq);
  const auto start = SimulationState<T>::of(tree, begin), at = SimulationState<T>::of(tree, row),
             at_end = SimulationState<T>::of(tree, end);
  std::copy(x.q, x.q + size, begin);  // q, v and z are contiguous
  std::copy(x.q, x.q + size, row);
  std::fill(position, position + rows, T(0.0)), std::fill(rate, rate + rows, T(0.0));

  LeastMotion<T>& first = *s.least;
  MidpointNewton<T> newton(s);
  const auto step = [&](const T* from, bool rough) {
    std::copy(at.v, at.v + size - nq, begun);
    const bool accurate = implicit_midpoint_step(s, time, h, at, from, &newton, rough);
    std::copy(at.v, at.v + size - nq, guess);
    return accurate;
  };
  const bool accurate = step(nullptr, true);
  std::copy(row, row + size, end);
  const T end_time = time + h, half = time + T(0.5) * h;
  EndRows<T> violation{};
  if (accurate)
    project(s, end_time, at_end.q, at_end.v, nullptr, false);
  else
    violation = close_end(s, end_time, at_end);
  LeastMotion<T> last(tree, arena, at_end.q, end_time, s.pfaffian_values(at_end.q, at_end.v));
  std::optional<LeastMotion<T>> middle;
  if (any(s.closes > T(0.5))) {  // symmetric in both ends, so that the step is reversible
    T* u = take(nv);
    difference(tree, x.q, at_end.q, u);
    for (int k = 0; k < nv; ++k) u[k] *= T(0.5);
    integrate(tree, x.q, u, q);
    project(s, half, q, at_end.v, nullptr, false);
    s.least = &middle.emplace(tree, arena, q, half, s.pfaffian_values(q, at_end.v));
  }
  const auto as_in_the_middle = [&](T* change) {  // the component of the rates that the rows can satisfy at this end
    const T* motion = middle->along(change, 1.0);
    std::fill(change, change + rows, T(0.0));
    add_motion_along_rows(tree, middle->rows(), motion, T(1.0), change);
  };

  const auto correct = [&](const EndRows<T>& end_rows) {
    for (int r = 0; r < rows; ++r) position[r] -= T(0.5) * end_rows.phi[r], rate[r] += T(0.5) * end_rows.slip_closed[r];
    // the change of the rates at the beginning also changes the positions at the end
    for (int i = 0; i < tree.loops.constraints; ++i)
      if (const Constraint& c = tree.loops.constraint[i]; holonomic(c))
        for (int r = c.row; r < c.row + c.rows; ++r) position[r] -= T(0.25) * h * end_rows.slip[r];
    if (middle) as_in_the_middle(position), as_in_the_middle(rate);
    std::copy(begin, begin + size, row);
    shift(first, position, rate, q, at);
    for (int k = 0; k < size - nq; ++k) guess[k] += at.v[k] - begun[k];
    step(guess, false);
    shift(last, position, rate, q, at);
  };

  LeftOpen<T> before;
  if (!accurate) correct(violation);
  for (int round = 0; round < 10 && !any(s.status > T(0.0)); ++round) {
    LoopRows<T> open(s, end_time, s.pfaffian_values(at.q, at.v));
    const T left = open.evaluate(at.q, open.phi), sliding = open.subtract_motion(at.v);
    const LeftOpen<T> now = {left, sliding / (T(1.0) + s.squares_of_velocities(at.v))};
    // the residual is at rounding level, or a row hardly changes by any motion (singular position)
    if (!goes_on(now, before)) break;
    before = now;
    std::copy(row, row + size, x.q);
    if (keeps_loops(open, now.sum(), start) && !(middle && round == 0)) break;
    correct({open.phi, open.slip, open.slip});
  }
  s.least = &first;
}

}  // namespace sarrus
