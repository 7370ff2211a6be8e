// The equation of a step of the implicit midpoint rule (implicit_midpoint.hpp), and the state at its end.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "../dynamics/floating_groups.hpp"
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
  bool has_start_momenta = false, has_momenta = false;  // true if p0, or p1, is set

  MidpointRule(System<T>& system, const T& start, const T& length, const SimulationState<T>& state)
      : s(system), time(start), h(length), x(state) {
    if (s.tree.has_joint_forces) find_late_damping();
  }

  /// (nv) coefficients of v1 - v0 in the additional damping force of joints whose damping is evaluated after the middle of the step; null: none
  T *later = nullptr, *late = nullptr;
  T* M = nullptr;  // (nv x nv) M at the beginning of the step; only if it was computed because joints have dampers or springs
  void find_late_damping() {
    later = take(nv), late = take(nv);
    const Saddle<double>* known = nullptr;  // the equation at the beginning of a step on loops
    if constexpr (std::is_same_v<T, double>)
      if (s.least && !s.least->e.pieces) known = &s.least->e.matrix;
    if (!known) M = take(nv * nv), crba(s.tree, s.arena, x.q, M);
    bool any_later = false;
    for (int k = 0; k < nv; ++k) {
      const T inertia = known ? T(known->M[known->first_entry(k)]) : M[k * nv + k];
      const auto numbers = s.tree.template numbers<T>();
      const PassiveTerms& f = s.tree.passive[k];
      const T damping = tangent_damping(T(numbers(f.damping)), f.nonlinear, numbers, x.v[k]), z = damping * h / inertia;
      const auto fast = z > T(2.0);
      later[k] = select(fast, damping * (T(0.5) - T(1.0) / select(fast, z, T(2.0))), T(0.0));
      any_later = any_later || any(later[k] > T(0.0));
    }
    if (!any_later) later = nullptr;
  }

  static constexpr double overflow = 1e300;

  T* take(int size) { return s.arena.template take<T>(size); }
  T middle_time() const { return time + T(0.5) * h; }
  /// Set the middle state, and the forces that are evaluated later than there.
  void place_middle(const T* y) {
    for (int k = 0; k < n; ++k) middle[k] = T(0.5) * (x.v[k] + y[k]);
    for (int k = 0; k < nv; ++k) u[k] = h * middle[k];
    as_exponential(s.tree, u);
    for (int k = 0; k < nv; ++k) u[k] *= T(0.5);
    integrate(s.tree, x.q, u, q);
    for (int k = 0; later && k < nv; ++k) late[k] = later[k] * (x.v[k] - y[k]);
  }
  void apply(const T* y, T* out) {
    place_middle(y);
    if (any(s.closes > T(0.5))) project(s, middle_time(), q, middle);
    s.watches = s.guards();
    s.late = later ? late : nullptr;
    s.evaluate(middle_time(), q, middle, middle + nv, rate, rate + nv);
    s.late = nullptr;
    for (int k = 0; k < n; ++k) out[k] = x.v[k] + h * rate[k];
    if (groups.count > 0) move_bases(rate, out);
  }
  /// Compute the force of force elements (nv) and z-dot (nz) in the middle state.
  void forces(T* tau, T* z_dot) {
    s.late = later ? late : nullptr;
    s.forces(middle_time(), q, middle, middle + nv, tau, z_dot);
    s.late = nullptr;
  }
  /// Compute the momenta at the end of the step. `a`: accelerations in the middle.
  void find_momenta(const T* a) {
    if (!std::exchange(has_start_momenta, true)) groups.momenta(x.q, x.v, p0);
    groups.momentum_rates(q, middle, a, p1);
    for (int g = 0; g < groups.count; ++g) p1[g] = p0[g] + p1[g] * h;
    has_momenta = true;
  }
  /// Set the velocities of the bases in v (nv), at the end of the step, by the momenta.
  void move_bases(const T* a, T* v) {
    find_momenta(a);
    for (int k = 0; k < nv; ++k) u[k] *= T(2.0);
    integrate(s.tree, x.q, u, q);
    groups.move_bases(p1, q, v);
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
    if (!has_momenta) return;
    // set the momenta to their exact values, because residuals of the iteration would add up over the steps; on loops this is done after their
    // projection
    if (!s.impulses) return groups.move_bases(p1, x.q, x.v);
    for (int g = 0; g < groups.count; ++g) s.impulses[g] = p1[g], s.impulses[g] -= p0[g];
  }
};

}  // namespace sarrus
