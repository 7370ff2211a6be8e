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
// The equation is solved by a fixed-point iteration with M + h D/2 + h^2 K/4 instead of M, where D and K belong to fast dampers and springs of the
// tree's joints. If the iteration does not contract, Newton's method is used, with a derivative by finite differences.
#pragma once

#include <algorithm>
#include <cmath>

#include "../dynamics/floating_groups.hpp"
#include "../simd/dense.hpp"
#include "friction.hpp"
#include "steps.hpp"

namespace sarrus {

/// Convert a displacement u from Cayley's transform of rotations to the exponential.
template <class T> void as_exponential(const Tree& tree, T* u) {
  for (int i = 1; i < tree.links; ++i)
    visit_every(tree.link[i].described, 0, [&](auto joint) { joint.cayley_to_exponential(u + tree.link[i].iv); });
}

/// The midpoint rule as a fixed-point problem in y = (v1, z1): y is the solution if the rule maps y to itself.
template <class T> struct MidpointRule {
  System<T>& s;
  T time, h;
  const SimulationState<T>& x;  // v and z are contiguous
  int nv = s.tree.nv, n = nv + s.plan.force_elements.nz;
  T *middle = take(n), *rate = take(n), *u = take(nv), *q = take(s.tree.nq);
  const FloatingGroups<T> groups{s.tree, s.arena};
  Force<T>*p0 = s.arena.template take<Force<T>>(groups.count),
  *p1 = s.arena.template take<Force<T>>(groups.count);  // momenta of floating groups at both ends

  MidpointRule(System<T>& system, const T& start, const T& length, const SimulationState<T>& state)
      : s(system), time(start), h(length), x(state) {
    if (groups.count > 0) groups.momenta(x.q, x.v, p0);
    if (s.tree.has_joint_forces) find_late_damping();
  }

  /// (nv) coefficients of v1 - v0 in the additional damping force of joints whose damping is evaluated after the middle of the step; null: none
  T *later = nullptr, *late = nullptr;
  T* M = nullptr;  // (nv x nv) M at the beginning of the step; only if joints have dampers or springs
  void find_late_damping() {
    later = take(nv), late = take(nv), M = take(nv * nv);
    crba(s.tree, s.arena, x.q, M);
    bool any_later = false;
    for (int k = 0; k < nv; ++k) {
      const auto numbers = s.tree.template numbers<T>();
      const PassiveTerms& f = s.tree.passive[k];
      const T damping = tangent_damping(T(numbers(f.damping)), f.nonlinear, numbers, x.v[k]), z = damping * h / M[k * nv + k];
      const auto fast = z > T(2.0);
      later[k] = select(fast, damping * (T(0.5) - T(1.0) / select(fast, z, T(2.0))), T(0.0));
      any_later = any_later || any(later[k] > T(0.0));
    }
    if (!any_later) later = nullptr;
  }

  static constexpr double overflow = 1e300;

  T* take(int size) { return s.arena.template take<T>(size); }
  void apply(const T* y, T* out) {
    for (int k = 0; k < n; ++k) middle[k] = T(0.5) * (x.v[k] + y[k]);
    for (int k = 0; k < nv; ++k) u[k] = h * middle[k];
    as_exponential(s.tree, u);
    for (int k = 0; k < nv; ++k) u[k] *= T(0.5);
    integrate(s.tree, x.q, u, q);
    if (any(s.closes > T(0.5))) project(s, T(time + T(0.5) * h), q, middle);
    s.watches = s.guards();
    for (int k = 0; later && k < nv; ++k) late[k] = later[k] * (x.v[k] - y[k]);
    s.late = later ? late : nullptr;
    s.evaluate(T(time + T(0.5) * h), q, middle, middle + nv, rate, rate + nv);
    s.late = nullptr;
    for (int k = 0; k < n; ++k) out[k] = x.v[k] + h * rate[k];
    if (groups.count == 0) return;
    groups.momentum_rates(q, middle, rate, p1);
    for (int g = 0; g < groups.count; ++g) p1[g] = p0[g] + p1[g] * h;
    for (int k = 0; k < nv; ++k) u[k] *= T(2.0);
    integrate(s.tree, x.q, u, q);
    groups.move_bases(p1, q, out);
  }

  /// Unit of a velocity or internal state. Errors are relative to its value, but to at least a thousandth of this unit.
  T unit(int k) const { return k < nv ? s.unit(s.plan.velocity_unit, k) : s.unit(s.plan.z_unit, k - nv); }
  static constexpr double rest = 1e-3;

  /// Compute the residual out - y, where `out` is the value of the rule at y; return its relative norm.
  double difference_of(const double* y, const double* out, double* by) const {
    double sum = 0.0, size = square(rest);
    for (int k = 0; k < n; ++k) {
      by[k] = out[k] - y[k];
      const double w = 1.0 / square(unit(k));
      sum += by[k] * by[k] * w, size += (out[k] * out[k] + x.v[k] * x.v[k]) * w;
    }
    return finite_bits(sum) && finite_bits(size) ? std::sqrt(sum / size) : overflow;
  }

  /// Compute the derivative (n x n) of the residual y - out by finite differences.
  void derivative(double* y, const double* out, double* out_varied, double* A) {
    const double power = s.power;
    for (int c = 0; c < n; ++c) {
      const double kept = y[c], delta = 1e-7 * std::max(rest * unit(c), std::abs(kept));
      y[c] = kept + delta;
      apply(y, out_varied);
      y[c] = kept;
      for (int r = 0; r < n; ++r) A[r * n + c] = (r == c ? 1.0 : 0.0) - (out_varied[r] - out[r]) / delta;
    }
    s.power = power;
  }

  /// Set the state to the end of the step for the solution y.
  void finish(const T* y) {
    for (int k = 0; k < nv; ++k) u[k] = T(0.5) * h * (x.v[k] + y[k]);
    as_exponential(s.tree, u);
    integrate(s.tree, x.q, u, q);
    std::copy(q, q + s.tree.nq, x.q);
    std::copy(y, y + n, x.v);
    s.work.supplied = h * s.power;
    if (groups.count == 0) return;
    // set the momenta to their exact values, because residuals of the iteration would add up over the steps
    groups.move_bases(p1, x.q, x.v);
    for (int g = 0; g < groups.count && s.impulses; ++g) s.impulses[g] = p1[g], s.impulses[g] -= p0[g];
  }
};

/// Correction of the iteration for linear dampers and springs of joints. It is not used if these are slow.
class LinearJoints {
 public:
  explicit LinearJoints(const MidpointRule<double>& rule)
      : M_(rule.M), nv_(rule.nv), tree_(rule.s.tree), there_{tree_, rule.s.arena, rule.s.plan, rule.s.parameter} {
    if (!M_ || tree_.loops.substructures) return;
    PassiveTerms* terms = rule.s.arena.take<PassiveTerms>(nv_);
    std::copy(tree_.passive, tree_.passive + nv_, terms);
    for (int k = 0; k < nv_; ++k) {
      const PassiveTerms& f = terms[k];
      const double slope = tangent_damping(f.damping, f.nonlinear, tree_.numbers<double>(), rule.x.v[k]),
                   stiffness = tangent_stiffness(f.stiffness, f.nonlinear, f.iq < 0 ? 0.0 : rule.x.q[f.iq] - f.rest);
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
  const double* M_;
  const int nv_;
  Tree tree_;
  System<double> there_;
  std::optional<Response<double>> response_{};
  bool acts_ = false;
};

/// Take a step. `guess`: initial (v, z) of the iteration at the end of the step; null: those at its beginning.
inline void implicit_midpoint_step(System<double>& s, double time, double h, const SimulationState<double>& x,
                                   const double* guess = nullptr) {
  MidpointRule<double> rule(s, time, h, x);
  const int n = rule.n;
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

/// Take the step between two projections, which change the constraint rows by equal amounts at its beginning and its end, such that the end satisfies
/// the loops. These amounts are found in several rounds. All rounds use the same two least motions: one computed at the beginning, and one at the
/// closed end of the first trial. The resulting error is of second order in the drift.
template <class T> void implicit_midpoint_on_loops(System<T>& s, const T& time, const T& h, const SimulationState<T>& x) {
  const Tree& tree = s.tree;
  Arena& arena = s.arena;
  const int nq = tree.nq, nv = tree.nv, rows = tree.loops.rows, size = s.size();
  const auto take = [&](int count) { return arena.template take<T>(count); };
  T *position = take(rows), *rate = take(rows), *q = take(nq);  // changes of the rows, and changes of their rates
  T *begin = take(size), *row = take(size), *guess = take(size), *end = take(size);
  const auto start = SimulationState<T>::of(tree, begin), at = SimulationState<T>::of(tree, row),
             at_end = SimulationState<T>::of(tree, end);
  std::copy(x.q, x.q + size, begin);  // q, v and z are contiguous
  std::copy(x.q, x.q + size, row);
  std::fill(position, position + rows, T(0.0)), std::fill(rate, rate + rows, T(0.0));

  LeastMotion<T>& first = *s.least;
  implicit_midpoint_step(s, time, h, at);
  std::copy(row, row + size, end);
  const T end_time = time + h, half = time + T(0.5) * h;
  project(s, end_time, at_end.q, at_end.v);
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

  LeftOpen<T> before;
  for (int round = 0; round < 10 && !any(s.status > T(0.0)); ++round) {
    const Arena::Scope scope(arena);
    LoopRows<T> open(s, end_time, s.pfaffian_values(at.q, at.v));
    const T phi = open.evaluate(at.q, open.phi), slip = open.subtract_motion(at.v);
    const LeftOpen<T> now = {phi, slip / (T(1.0) + s.squares_of_velocities(at.v))};
    // the residual is at rounding level, or a row hardly changes by any motion (singular position)
    if (!goes_on(now, before)) break;
    before = now;
    std::copy(row, row + size, x.q);
    if (keeps_loops(open, now.sum(), start) && !(middle && round == 0)) break;
    for (int r = 0; r < rows; ++r) position[r] -= T(0.5) * open.phi[r], rate[r] += T(0.5) * open.slip[r];
    if (middle) as_in_the_middle(position), as_in_the_middle(rate);
    std::copy(at.v, at.v + size - nq, guess);
    std::copy(begin, begin + size, row);
    shift(first, position, rate, q, at);
    implicit_midpoint_step(s, time, h, at, guess);
    shift(last, position, rate, q, at);
  }
  s.least = &first;
}

}  // namespace sarrus
