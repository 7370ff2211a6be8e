// A linearly implicit step (Rosenbrock 1963), for forces that are too stiff for an explicit step: y = (q, v, z), y-dot = f(t, y),
//
//   (1 - g h A) k1 = f(t, y0),   (1 - g h A) k2 = f(t + h, y0 + h k1) - 2 k1,   y1 = y0 + h (3 k1 + k2) / 2,   g = 1 - 1/sqrt(2)
//
// is of order 2 for any A, and L-stable if A is the derivative of f (Verwer, Spee, Blom and Hundsdorfer 1999, ROS2). A includes only the terms that
// make steps unstable: the derivatives of the forces, by finite differences, with constant M and loops. Forces with a limit, such as the friction of
// a contact, are replaced in A by linear dampers with the same force at the current speed (element.hpp, Chords). The slope of such a force is not
// used, because it is small while a contact slips, and the contact would then not come to rest in long steps.
//
// A step uses one matrix and two evaluations, and no iteration that could fail to converge. If the forces are slow enough, an explicit Runge-Kutta
// step of order 4 is taken instead, at a third of the cost. If dry friction keeps a joint at rest, the implicit midpoint rule is used (advance.hpp),
// because that force is no function of the state.
#pragma once

#include "../simd/dense.hpp"
#include "../simd/lanes.hpp"
#include "rates.hpp"
#include "steps.hpp"

namespace sarrus {

/// Derivative of f at the state x, and solver of (1 - g h A) k = r. A motion is a displacement (nv), then changes of v (nv) and of z (nz). L: packet
/// type, whose lanes evaluate several finite differences at once; double if functions of the caller are used.
template <class L> class StiffPart {
 public:
  StiffPart(System<double>& s, double time, double length, const SimulationState<double>& x, Response<double>& response)
      : s_(s), time_(time), length_(length), x_{spread(x.q, s.tree.nq), spread(x.v, nv_), spread(x.z, nz_)}, response_(response) {
    there_.held_values = spread(s.held_values, s.plan.force_elements.held_size), there_.since = L(s.since),
    there_.has_springs = s.has_springs;
    std::fill_n(chords_.chord, s.plan.force_elements.chords(), L(1.0));  // contacts that do not touch do not overwrite this value
    std::fill(along_, along_ + m_, L(0.0));
    forces(along_, force_);
    chords_.frozen = true;
    for (int first = 0; first < n_; first += width_of<L>) {
      const int count = std::min(width_of<L>, n_ - first);
      for (int l = 0; l < count; ++l) move(first + l, l, unit(first + l));
      differences(change_);
      for (int l = 0; l < count; ++l) {
        const int c = first + l;
        for (int r = 0; r < n_; ++r) A_[r * n_ + c] = (r == c ? 1.0 : 0.0) - length_ * lane(change_[r], l) / unit(c);
        move(c, l, 0.0);
      }
    }
    sound_ = eliminate(n_, A_, [&](int row, int other) { order_[row] = other; });
  }

  bool sound() const { return sound_; }
  bool failed() const { return lane(there_.status, 0) == caller_failed; }
  /// Replace r by the solution k.
  void solve(double* r) {
    std::fill(along_, along_ + m_, L(0.0));
    double largest = 0.0;
    for (int k = 0; k < nv_; ++k) largest = std::max(largest, std::abs(r[k]) / unit(k));
    if (largest > 0.0) {
      for (int k = 0; k < nv_; ++k) along_[k] = L(r[k] / largest);
      differences(change_);
      for (int k = 0; k < n_; ++k) r[nv_ + k] += length_ * lane(change_[k], 0) * largest;
    }
    for (int k = 0; k < n_; ++k) std::swap(r[nv_ + k], r[nv_ + order_[k]]);
    solve_eliminated(n_, A_, r + nv_);
    for (int k = 0; k < nv_; ++k) r[k] += length_ * r[nv_ + k];
  }
  /// Add to a generalised force (nv) `length` times the derivative of the force elements' force along a motion.
  void add_elements(const double* motion, double length, double* force) {
    const Arena::Scope scope(s_.arena);
    there_.has_springs = false;
    double largest = 0.0;
    for (int k = 0; k < m_; ++k) largest = std::max(largest, std::abs(motion[k]) / (k < nv_ ? unit(k) : unit(k - nv_)));
    if (largest == 0.0) return;
    for (int k = 0; k < m_; ++k) along_[k] = L(0.0);
    elements(along_, change_);
    for (int k = 0; k < nv_; ++k) force[k] -= lane(change_[k], 0) * length * largest / step;
    for (int k = 0; k < m_; ++k) along_[k] = L(motion[k] / largest);
    elements(along_, change_);
    for (int k = 0; k < nv_; ++k) force[k] += lane(change_[k], 0) * length * largest / step;
  }

 private:
  static constexpr double step = 1e-6;  // displacement of differences: small compared with any slip speed of friction

  template <class T> T* take(int size) { return s_.arena.template take<T>(size); }
  /// Copy values to all lanes.
  L* spread(const double* from, int size) {
    L* to = take<L>(size);
    for (int k = 0; k < size; ++k) to[k] = L(from[k]);
    return to;
  }
  double unit(int c) const { return c < nv_ ? s_.unit(s_.plan.velocity_unit, c) : s_.unit(s_.plan.z_unit, c - nv_); }
  /// Set entry c of lane l's direction to `by`: velocities, then internal states. For a velocity, also set its displacement.
  void move(int c, int l, double by) {
    lane(along_[nv_ + c], l) = by;
    if (c < nv_) lane(along_[c], l) = length_ * by;
  }
  /// Evaluate the generalised force (nv) and z-dot (nz) at x + step * motion.
  void forces(const L* along, L* to) {
    const Arena::Scope scope(s_.arena);
    there_.has_springs = s_.has_springs;
    elements(along, to);
    add_smooth_terms<L>(s_.tree, s_.arena, q_, v_, to);
  }
  /// Evaluate the generalised force and z-dot of the force elements only. Springs of loop joints are included only if `there_.has_springs` is true.
  void elements(const L* along, L* to) {
    for (int k = 0; k < nv_; ++k) u_[k] = L(step) * along[k], v_[k] = x_.v[k] + L(step) * along[nv_ + k];
    for (int k = 0; k < nz_; ++k) z_[k] = x_.z[k] + L(step) * along[2 * nv_ + k];
    integrate<L>(s_.tree, x_.q, u_, q_);
    there_.chords = chords_;
    there_.forces(time_, q_, v_, z_, to, to + nv_);
  }
  /// Compute the differences of v-dot and z-dot along the motions of all lanes.
  void differences(L* to) {
    forces(along_, to);
    for (int k = 0; k < n_; ++k) to[k] = (to[k] - force_[k]) / L(step);
    const Arena::Scope scope(s_.arena);
    response_(to);
  }

  System<double>& s_;
  const L time_;
  const double length_;  // g h
  const int nv_ = s_.tree.nv, nz_ = s_.plan.force_elements.nz, n_ = nv_ + nz_, m_ = nv_ + n_;
  const SimulationState<L> x_;
  Response<double>& response_;
  System<L> there_{s_.tree, s_.arena, s_.plan, spread(s_.parameter, s_.plan.force_elements.parameters)};
  L *u_ = take<L>(nv_), *q_ = take<L>(s_.tree.nq), *v_ = take<L>(nv_), *z_ = take<L>(nz_), *along_ = take<L>(m_);
  L *force_ = take<L>(n_), *change_ = take<L>(n_);
  double* A_ = take<double>(n_ * n_);
  Chords<L> chords_ = {take<L>(s_.plan.force_elements.chords()), false};
  int* order_ = take<int>(n_);
  bool sound_ = false;
};

template <class L>
void linearly_implicit_step(System<double>& s, double time, double h, const SimulationState<double>& x,
                            Response<double>& response) {
  const double g = 1.0 - std::sqrt(0.5);
  const int nq = s.tree.nq, nv = s.tree.nv, nz = s.plan.force_elements.nz, m = 2 * nv + nz;
  const auto take = [&](int size) { return s.arena.take<double>(size); };
  double *k1 = take(m), *k2 = take(m), *u = take(nv), *q = take(nq), *v = take(nv), *z = take(nz);
  StiffPart<L> stiff(s, time, g * h, x, response);
  const auto solve = [&](double* k) {
    stiff.solve(k);
    if (stiff.failed()) s.status = caller_failed;
  };
  if (stiff.failed() || !stiff.sound()) s.status = stiff.failed() ? double(caller_failed) : double(diverged);
  std::copy(x.v, x.v + nv, k1);
  s.evaluate(time, x.q, x.v, x.z, k1 + nv, k1 + 2 * nv);
  double* impulse =
      s.acting ? take(nv) : nullptr;  // only if work is computed: impulse of the forces at both ends and of the terms of A
  for (int k = 0; k < nv && impulse; ++k) impulse[k] = 0.5 * h * s.acting[k];
  solve(k1);
  for (int k = 0; k < nv; ++k) u[k] = h * k1[k], v[k] = x.v[k] + h * k1[nv + k];
  for (int k = 0; k < nz; ++k) z[k] = x.z[k] + h * k1[2 * nv + k];
  integrate(s.tree, x.q, u, q);
  if (s.closes > 0.5) project(s, time + h, q, v), difference(s.tree, x.q, q, u);
  s.watches = s.guards();
  exponential_rate(s.tree, u, v, k2);
  s.evaluate(time + h, q, v, z, k2 + nv, k2 + 2 * nv);
  // forces that would produce, at the predicted state, the accelerations of the beginning, minus the forces that act there
  double* moved = impulse ? take(nv) : nullptr;
  if (moved) {
    for (int k = 0; k < nv; ++k) impulse[k] += 0.5 * h * s.acting[k];
    const Arena::Scope scope(s.arena);
    double *M = take(nv * nv), *change = take(nv);
    crba(s.tree, s.arena, x.q, M);
    std::copy(s.acting, s.acting + nv, change);
    Response<double>(s, time + h, q, v)(change);
    for (int k = 0; k < nv; ++k) moved[k] = scalar_product(M + k * nv, change, nv) - s.acting[k];
  }
  for (int k = 0; k < m; ++k) k2[k] -= 2.0 * k1[k];
  solve(k2);
  if (impulse) {
    double *motion = take(m), *passed = take(nv), *after = take(nv);
    for (int k = 0; k < m; ++k) motion[k] = k1[k] + k2[k];
    for (int k = 0; k < nv; ++k) {
      passed[k] = 0.5 * h * (x.v[k] + v[k] + g * h * motion[nv + k]);
      after[k] = x.v[k] + 0.5 * h * (3.0 * k1[nv + k] + k2[nv + k]);
    }
    stiff.add_elements(motion, 0.5 * g * h * h, impulse);
    s.work.supplied += s.impulse_work(h, impulse, passed, x.q, x.v, after);
    s.work.quadrature_error += 0.25 * h * std::abs(scalar_product(moved, x.v, nv) + scalar_product(moved, after, nv));
  }
  for (int k = 0; k < m; ++k) k1[k] = 0.5 * h * (3.0 * k1[k] + k2[k]);
  integrate(s.tree, x.q, k1, q);
  std::copy(q, q + nq, x.q);
  for (int k = 0; k < nv + nz; ++k) x.v[k] += k1[nv + k];  // v and z are contiguous
}

/// Largest product of rate and step length for which an explicit Runge-Kutta step of order 4 is taken. Up to this value, it dissipates at most as
/// much energy of an oscillation as the linearly implicit step.
constexpr double followed = 0.7;

inline void rosenbrock_step(System<double>& s, double time, double h, const SimulationState<double>& x) {
  Response<double> response(s, time, x.q, x.v);
  const double status = s.status, rate = fastest_rate(s, time, h, x.q, x.v, x.z, response, true).rate;
  // ignore failures at states that were evaluated only for finite differences, because the solution does not pass through them
  if (s.status != caller_failed) s.status = status;
  if (rate <= followed) return runge_kutta_step(s, time, h, x);
  if (s.record) *s.record->linearly_implicit += 1.0;
  if (s.plan.controller || s.tree.loops.pfaffian_values > 0)  // functions of the caller require one state at a time
    linearly_implicit_step<double>(s, time, h, x, response);
  else
    linearly_implicit_step<SideBySide>(s, time, h, x, response);
}

}  // namespace sarrus
