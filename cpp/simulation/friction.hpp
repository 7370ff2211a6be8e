// Dry friction of joints in a simulation, as a set-valued law (Moreau 1988; Glocker 2001). Friction opposes a sliding joint with its limit F. On a
// joint at rest it acts with any force in [-F, F] that prevents sliding.
//
// Directions of sliding do not change within a step, because the method must integrate a smooth function. They are determined in the first evaluation
// of a step. Let E be the rows of the velocities of the joints at rest, and W = E M^-1 E^T, where M^-1 maps forces to accelerations on the loops. The
// accelerations r of these joints and their friction forces f satisfy
//
//   r = r_0 + W f,   r_i = 0 if |f_i| <= F_i,   else f_i = -F_i and r_i >= 0, or f_i = F_i and r_i <= 0
//
// by principal pivoting (Murty 1974). If a joint comes to rest within a step, the step ends there. Impulses of friction then remove the remaining
// velocity of the joint, and directions are determined again. There is no threshold between rest and motion: a joint at rest has exactly zero
// velocity. The velocity of a loop joint is a difference of others, so that it has their errors (see begin()).
//
// Dependent joints of a loop can share friction in many ways, with equal motions; a compliance of 1e-11 selects one solution.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "system.hpp"

namespace sarrus {

/// Solve W f = -r for the friction forces f (n) of the joints that are marked 1 (resting); f of the others is 0. The compliance bounds f of joints
/// that no force can move.
template <class T> void held_forces(Arena& arena, int n, const T* W, const T* r, const T* resting, const T& compliance, T* f) {
  const T rounding = tolerance<T>(1e-13, 1e-6);
  constexpr double without_bound = 1e30;
  const Arena::Scope scope(arena);
  T *L = arena.take<T>(n * n), *inverse = arena.take<T>(n), *movable = arena.take<T>(n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) L[i * n + j] = W[i * n + j] * (resting[i] * resting[j]);
    L[i * n + i] *= T(1.0) + compliance;
    f[i] = -r[i] * resting[i];
  }
  for (int k = 0; k < n; ++k) {
    const T size = W[k * n + k], &pivot = L[k * n + k];
    movable[k] = select(both(size > T(0.0), pivot > size * rounding), T(1.0), T(0.0));
    inverse[k] = movable[k] / select(movable[k] > T(0.5), pivot, T(1.0));
    for (int i = k + 1; i < n; ++i) {
      const T l = L[i * n + k] * inverse[k];
      for (int j = k + 1; j <= i; ++j) L[i * n + j] -= l * L[j * n + k];
    }
  }
  for (int k = 0; k < n; ++k)
    for (int i = k + 1; i < n; ++i) f[i] -= L[i * n + k] * inverse[k] * f[k];
  for (int k = n - 1; k >= 0; --k) {
    f[k] *= select(movable[k] > T(0.5), inverse[k], T(without_bound));
    for (int i = k + 1; i < n; ++i) f[k] -= L[i * n + k] * inverse[k] * f[i];
  }
}

/// Compliances relative to the diagonal of W. `tight` is larger than the rounding errors of W, but too small to affect a step. `loose` bounds the forces
/// by which rounding errors of the velocities of dependent joints would be removed.
template <class T> T tight() { return tolerance<T>(1e-11, 1e-5); }
template <class T> T loose() { return tolerance<T>(1e-6, 1e-3); }

/// held_forces(), which recorded steps call as a function (recording/step.cpp).
template <class T> void hold_at_rest(Arena& arena, int n, const T* W, const T* r, const T* resting, const T& compliance, T* f) {
  held_forces(arena, n, W, r, resting, compliance, f);
}

// relative tolerance within which a force is at its limit, and an acceleration is zero; in single precision, that of the rounding errors
constexpr double margin = 1e-9, margin_in_single = 1e-4;

/// Largest number of changes of directions. A recorded step has a smaller number, and reports states that need more (recording/step.cpp).
template <class T> int most_changes(int n) { return 20 + 4 * n; }
/// Report, in the status of recorded code, that a decision was not reached.
template <class T> void expect(const T&) {}

/// Determine the direction in which each joint at rest begins to slide: -1, 1, or 0 if friction prevents sliding.
template <class T> void decide_directions(Arena& arena, int n, const T* W, const T* r, const T* limit, const T* rests,
                                          T* direction) {
  const Arena::Scope scope(arena);
  T *resting = arena.take<T>(n), *left = arena.take<T>(n), *f = arena.take<T>(n), right = T(1.0);
  const T within = tolerance<T>(margin, margin_in_single);
  std::fill(direction, direction + n, T(0.0));
  for (int change = 0; change < most_changes<T>(n); ++change) {
    for (int i = 0; i < n; ++i) {
      resting[i] = select(abs(direction[i]) > T(0.5), T(0.0), rests[i]);
      left[i] = r[i];
      for (int j = 0; j < n; ++j) left[i] -= W[i * n + j] * limit[j] * direction[j];
    }
    hold_at_rest(arena, n, W, left, resting, tight<T>(), f);
    // first change all wrong directions at once, because this nearly always suffices; then one at a time, because this always terminates
    right = T(1.0);
    for (int i = 0; i < n; ++i) {
      T a = left[i], size = abs(r[i]) + abs(left[i] - r[i]);
      for (int j = 0; j < n; ++j) a += W[i * n + j] * f[j], size += abs(W[i * n + j] * f[j]);
      const auto changes = change < 20 ? T(0.5) > T(0.0) : right > T(0.5);
      const T excess = abs(f[i]) - limit[i] * (T(1.0) + within);
      const auto begins = both(both(resting[i] > T(0.5), excess > T(0.0)), changes),
                 ends = both(a * direction[i] < -(within * size), changes);
      right = select(begins, T(0.0), select(ends, T(0.0), right));
      direction[i] = select(begins, select(f[i] > T(0.0), T(-1.0), T(1.0)), select(ends, T(0.0), direction[i]));
    }
    if (!any(right < T(0.5))) return;
  }
  expect(right);
}

/// The operator M^-1 on the loops at one configuration: change of the velocities by a force.
template <class T> class Response {
 public:
  Response(System<T>& s, const T& time, const T* q, const T* v) : tree_(s.tree), arena_(s.arena) {
    if (tree_.loops.rows > 0) {
      motion_.emplace(tree_, arena_, q, time, s.pfaffian_values(q, v));
      return;
    }
    L_ = arena_.template take<T>(tree_.nv * tree_.nv);
    crba(tree_, arena_, q, L_);
    factorise(tree_, arena_, L_);
  }
  /// Replace `x`, a force (nv), by the change of velocities. X is T, or a packet of forces.
  template <class X> void operator()(X* x) {
    if (!motion_) return solve_inward(tree_, L_, x, 1), solve_outward(tree_, L_, x, 1);
    motion_->by(x);
  }

 private:
  const Tree& tree_;
  Arena& arena_;
  std::optional<LeastMotion<T>> motion_{};
  T* L_ = nullptr;
};

/// Dry friction in the current step. The method's evaluations compute accelerations by `accelerate`.
template <class T> class DryFriction {
 public:
  explicit DryFriction(System<T>& system) : s_(system) {
    for (T** list : {&direction_, &rests_, &stops_, &lets_go_, &speed_, &slowing_, &limit_}) *list = take(n_);
    for (T** list : {&v_begun_, &braked_}) *list = take(nv_);
    for (int k = 0; k < n_; ++k) {
      closing_ = closing_ || friction_[k].iv >= nv_;
      limit_[k] = tree_.numbers<T>()(friction_[k].terms.of(s_.full_tree()).friction);
    }
    for (int i = 1; closing_ && i < tree_.bodies; ++i) {
      const Inertia<double>& body = tree_.body[i].inertia;
      inertia_ += body.m * tree_.length * tree_.length + body.I.xx + body.I.yy + body.I.zz;
    }
    for (int c = 0; closing_ && c < nv_; ++c) inertia_ += tree_.passive[c].armature * tree_.unit[c] * tree_.unit[c];
  }

  /// Begin a step of length h at the state x: determine which joints are at rest.
  void begin(const T& time, const T& h, const SimulationState<T>& x) {
    const Arena::Scope scope(s_.arena);
    T *rounding = take(n_), *energy = take(n_);
    speeds(time, x.q, x.v, speed_, rounding, energy);
    undecided_ = false;
    for (int k = 0; k < n_; ++k) {
      const T acts = select(limit_[k] > T(0.0), T(1.0), T(0.0));  // 0 in lanes whose variant has no friction at this joint
      rests_[k] = select(abs(speed_[k]) > rounding[k], T(0.0), acts);
      // the velocities of a loop joint at rest are errors of the projection onto the loops: friction would dissipate their energy at once
      if (friction_[k].iv >= nv_) rests_[k] = select(energy[k] > h * T(at_once) * limit_[k] * abs(speed_[k]), rests_[k], acts);
      direction_[k] = sign(speed_[k]) * (acts - rests_[k]);
      slowing_[k] = lets_go_[k] = T(0.0);
      undecided_ = undecided_ || any(rests_[k] > T(0.5));
    }
    rest_ = undecided_;
    std::copy(x.v, x.v + nv_, v_begun_), std::fill(braked_, braked_ + nv_, T(0.0));
  }

  /// Compute the accelerations a due to tau and friction.
  void accelerate(const T& time, const T* q, const T* v, T* tau, T* a) {
    const Arena::Scope scope(s_.arena);
    const T* J = rows(time, q);
    for (int k = 0; k < n_; ++k) {
      const T braking = direction_[k] * -limit_[k];
      push(J, k, braking, tau);
      if (s_.acting) push(J, k, braking, s_.acting);
      if (kept_) kept_[k] = braking;
    }
    s_.accelerations(time, q, v, tau, a);
    if (!rest_) return;
    T *r = take(n_), *resting = take(n_), *f = take(n_);
    rates(time, q, v, a, r);
    const Columns columns(*this, time, q, v, J);
    T* begins = take(n_);  // directions in which resting joints begin to slide
    for (int k = 0; k < n_; ++k) begins[k] = T(0.0);
    if (std::exchange(undecided_, false)) {
      decide_directions(s_.arena, n_, columns.W, r, limit_, rests_, begins);
      for (int k = 0; k < n_; ++k) slowing_[k] = columns.W[k * n_ + k] * limit_[k], direction_[k] += begins[k];
      for (int i = 0; i < n_; ++i)
        for (int j = 0; j < n_; ++j) r[i] -= columns.W[i * n_ + j] * (begins[j] * limit_[j]);
    }
    for (int k = 0; k < n_; ++k) resting[k] = select(abs(direction_[k]) > T(0.5), T(0.0), rests_[k]);
    hold(columns.W, r, resting, f);
    for (int k = 0; k < n_; ++k) f[k] -= begins[k] * limit_[k];
    columns.add(f, a);
    columns.add_sizes(f, braked_);
    for (int k = 0; s_.acting && k < n_; ++k) push(J, k, f[k], s_.acting);
    for (int k = 0; kept_ && k < n_; ++k) kept_[k] += f[k];
  }

  /// Compute the friction force (n) along each joint, at a state between two steps of length about h. At such a state, the velocity of a joint at
  /// rest may differ from zero by a small error. Therefore a joint counts as resting if friction would stop it within a small part of a step.
  void forces(const T& time, const T& h, const SimulationState<T>& x, T* tau, T* force) {
    const Arena::Scope scope(s_.arena);
    begin(time, h, x);
    T* rests = take(n_);
    std::copy(rests_, rests_ + n_, rests);
    std::fill(rests_, rests_ + n_, T(1.0));
    const Columns columns(*this, time, x.q, x.v, rows(time, x.q));
    const MethodFacts& method = facts(s_.plan.method);
    const double part = method.rigid || method.adaptive() ? inexact_rest : 1e-9;
    for (int k = 0; k < n_; ++k) {
      const T instant = h * T(part) * columns.W[k * n_ + k] * limit_[k];
      rests_[k] = select(abs(speed_[k]) > instant, rests[k], T(1.0));
      direction_[k] *= T(1.0) - rests_[k];
      rest_ = undecided_ = undecided_ || any(rests_[k] > T(0.5));
    }
    kept_ = force;
    accelerate(time, x.q, x.v, tau, take(nv_));
    kept_ = nullptr;
  }

  static constexpr double at_once = 1e-6;  // part of a step
  /// This part of a step for methods at whose states the velocities of resting joints have larger errors. These are rigid steps, whose second half
  /// step closes the loops and rotates the joints' axes, and adaptive steps, whose states are interpolated.
  static constexpr double inexact_rest = 1e-2;

  /// Return the fraction of the step, which ends at x, after which the first joint stops (1 if none does), and mark the joints that stop.
  T stopped(const T& time, const T& h, const SimulationState<T>& x) {
    const Arena::Scope scope(s_.arena);
    T *speed = take(n_), *part = take(n_), first = T(1.0);
    speeds(time, x.q, x.v, speed);
    for (int k = 0; k < n_; ++k) {
      const auto turned = both(rests_[k] < T(0.5), speed[k] * direction_[k] < T(0.0));
      part[k] = select(turned, speed_[k] / select(turned, speed_[k] - speed[k], T(1.0)), T(2.0));
      first = least(first, part[k]);
      // a joint that was at rest is stopped again if friction prevented its sliding, or if it hardly moved before another joint stopped
      const auto moved = speed[k] * direction_[k] > h * slowing_[k] * T(1e-9);
      stops_[k] = rests_[k] * (T(1.0) - lets_go_[k]) * select(moved, T(0.0), T(1.0));
    }
    first = most(first, T(least_part));
    for (int k = 0; k < n_; ++k) stops_[k] = select(part[k] < first + T(least_part), T(1.0), stops_[k]);
    return first;
  }
  /// Return true if some joint that slid at the beginning of the step slides in the opposite direction at x.
  bool turned(const T& time, const SimulationState<T>& x) {
    const Arena::Scope scope(s_.arena);
    T* speed = take(n_);
    speeds(time, x.q, x.v, speed);
    bool any_has = false;
    for (int k = 0; k < n_; ++k) any_has = any_has || any(both(rests_[k] < T(0.5), speed[k] * direction_[k] < T(0.0)));
    return any_has;
  }
  /// Return true if some joint slid at the beginning of the step.
  bool slides() const {
    return std::any_of(rests_, rests_ + n_, [](const T& rests) { return any(rests < T(0.5)); });
  }
  /// Return true if some joint was at rest at the beginning of the step.
  bool holds() const {
    return std::any_of(rests_, rests_ + n_, [](const T& rests) { return any(rests > T(0.5)); });
  }
  // smallest fraction of a step that is taken as a step of its own; if a joint stops earlier, an impulse stops it
  static constexpr double least_part = 1e-3;

  /// Stop the marked joints at the end of a step of length h, which is a part of a step of length most_length. Velocities at rounding level become
  /// zero; rounding is relative to the velocity that friction has removed in the step plus the velocity before the stop.
  void settle(const T& time, const T& h, const T& most_length, const SimulationState<T>& x) {
    if (!rest_ && !any(stopping() > T(0.5))) return;
    const Arena::Scope scope(s_.arena);
    const T stopping_now = stopping();
    T* size = take(nv_);
    for (int k = 0; k < nv_; ++k) size[k] = select(stopping_now > T(0.5), abs(v_begun_[k]), T(0.0)) + h * braked_[k];
    if (any(stopping_now > T(0.5))) {
      const T* J = rows(time, x.q);
      T *speed = take(n_), *impulse = take(n_);
      speeds(time, x.q, x.v, speed);
      std::swap(rests_, stops_);
      const Columns columns(*this, time, x.q, x.v, J);
      std::swap(rests_, stops_);
      hold_at_rest(s_.arena, n_, columns.W, speed, stops_, tight<T>(), impulse);
      T *bounded = take(n_), exceeds = T(0.0);
      for (int k = 0; k < n_; ++k) exceeds = most(exceeds, select(abs(impulse[k]) > limit_[k] * most_length, T(1.0), T(0.0)));
      if (any(exceeds > T(0.5))) {
        hold_at_rest(s_.arena, n_, columns.W, speed, stops_, loose<T>(), bounded);
        copy_where(exceeds > T(0.5), bounded, impulse, n_);
      }
      // a joint that would need an impulse larger than friction can supply is not stopped: its velocity reverses because of the geometry of a loop,
      // as that of a rocker does
      bool stop = true;
      for (int k = 0; k < n_; ++k) {
        const auto over = abs(impulse[k]) > limit_[k] * most_length;
        stop = stop && !any(over);
        stops_[k] = select(over, T(0.0), stops_[k]);
      }
      if (!stop) {
        hold_at_rest(s_.arena, n_, columns.W, speed, stops_, loose<T>(), bounded);
        copy_where(exceeds > T(0.5), bounded, impulse, n_);
      }
      columns.add(impulse, x.v);
      columns.add_sizes(impulse, size);
      if (s_.acting) s_.work.supplied += T(0.5) * scalar_product(impulse, speed, n_);
    }
    const T little = tolerance<T>(rounding, rounding_in_single);
    for (int k = 0; k < nv_; ++k) x.v[k] = select(abs(x.v[k]) > size[k] * little, x.v[k], T(0.0));
    for (int k = 0; k < n_; ++k)
      if (friction_[k].iv < nv_) x.v[friction_[k].iv] = select(stops_[k] > T(0.5), T(0.0), x.v[friction_[k].iv]);
  }
  // relative rounding error of velocities after projections onto the loops
  static constexpr double rounding = 1e-9, rounding_in_single = 1e-4;

  /// Call visit(values, size) for the values that evaluations use or change.
  template <class Visit> void each_value(Visit&& visit) {
    for (T* x : {direction_, rests_, lets_go_, slowing_}) visit(x, n_);
    visit(braked_, nv_);
  }
  /// True until the first evaluation of a step, which determines the directions of joints at rest.
  bool is_undecided() const { return undecided_; }
  void continue_with(bool undecided) { rest_ = true, undecided_ = undecided; }

  /// Compute the velocities along which friction acts. On request also computes the magnitude of the rounding error of each, and, for loop joints, an
  /// estimate of the kinetic energy of the motion from which it follows.
  void speeds(const T& time, const T* q, const T* v, T* speed, T* rounding = nullptr, T* energy = nullptr) {
    const Arena::Scope scope(s_.arena);
    const T* J = rows(time, q);
    for (int k = 0; k < n_; ++k) {
      T along = T(0.0), entries = T(0.0), size = T(0.0);
      each_entry(J, k, [&](int i, const T& entry) {
        along += entry * v[i];
        // rounding errors of all entries are relative to the largest one, also those of entries that would be zero without them
        entries = most(entries, abs(entry) * T(tree_.unit[i]));
        size += select(abs(entry) > T(0.0), abs(v[i]) * T(1.0 / tree_.unit[i]), T(0.0));
      });
      speed[k] = along;
      if (rounding) rounding[k] = friction_[k].iv < nv_ ? T(0.0) : entries * size * tolerance<T>(1e-13, 1e-5);
      if (energy) energy[k] = T(inertia_) * size * size;
    }
  }

 private:
  T* take(int size) { return s_.arena.template take<T>(size); }

  /// Return 1 if a sliding joint comes to rest, or if a joint that began to slide comes to rest again.
  T stopping() const {
    T any_stops = T(0.0);
    for (int k = 0; k < n_; ++k) any_stops = most(any_stops, select(abs(direction_[k]) > T(0.5), stops_[k], T(0.0)));
    return any_stops;
  }

  /// Compute J of loop joints (loop_nv x nv), if some loop joint has friction.
  const T* rows(const T& time, const T* q) {
    if (!closing_) return nullptr;
    LoopJoints<T> joints;
    joints.J = take(tree_.loop_nv * nv_);
    read_loop_joints(tree_, s_.arena, place(tree_, s_.arena, q, &time, static_cast<const T*>(nullptr)),
                     static_cast<const T*>(nullptr), joints);
    return joints.J;
  }
  template <class Visit> void each_entry(const T* J, int k, Visit&& visit) const {
    const int iv = friction_[k].iv;
    if (iv < nv_) return visit(iv, T(1.0));
    for (int i = 0; i < nv_; ++i) visit(i, J[(iv - nv_) * nv_ + i]);
  }
  void push(const T* J, int k, const T& force, T* tau) const {
    each_entry(J, k, [&](int i, const T& entry) { tau[i] += entry * force; });
  }

  /// Compute the rates r of the velocities along which friction acts.
  void rates(const T& time, const T* q, const T* v, const T* a, T* r) {
    T* loop_rates = nullptr;
    if (closing_) {
      const auto work = rnea(tree_, s_.arena, RneaInput<T>{q, v, a}, take(nv_));
      LoopState<T> state = {q, v, &time, nullptr, nullptr, nullptr, work.link};
      place(tree_, s_.arena, work.poses(), work.columns, state);
      LoopJoints<T> joints;
      joints.a = loop_rates = take(tree_.loop_nv);
      read_loop_joints(tree_, s_.arena, state, static_cast<const T*>(nullptr), joints);
    }
    for (int k = 0; k < n_; ++k) r[k] = friction_[k].iv < nv_ ? a[friction_[k].iv] : loop_rates[friction_[k].iv - nv_];
  }

  /// Compute M^-1 E^T and W for the joints that are at rest in some lane.
  struct Columns {
    int n, nv;
    T *M_inverse_E, *W;
    Columns(DryFriction& f, const T& time, const T* q, const T* v, const T* J)
        : n(f.n_), nv(f.nv_), M_inverse_E(f.take(f.n_ * f.nv_)), W(f.take(f.n_ * f.n_)) {
      compute(f, time, q, v, J);
    }
    /// evaluate(), which recorded steps call as a function (recording/step.cpp).
    void compute(DryFriction& f, const T& time, const T* q, const T* v, const T* J) { evaluate(f, time, q, v, J); }
    void evaluate(DryFriction& f, const T& time, const T* q, const T* v, const T* J) {
      const Arena::Scope scope(f.s_.arena);
      std::fill(M_inverse_E, M_inverse_E + n * nv, T(0.0)), std::fill(W, W + n * n, T(0.0));
      Response<T> response(f.s_, time, q, v);
      for (int k = 0; k < n; ++k) {
        if (!is_symbolic<T> && !any(f.rests_[k] > T(0.5))) continue;
        T* column = M_inverse_E + k * nv;
        f.push(J, k, T(1.0), column);
        response(column);
        for (int i = 0; i < n; ++i) f.each_entry(J, i, [&](int c, const T& entry) { W[i * n + k] += entry * column[c]; });
      }
    }
    void add(const T* f, T* to) const {
      for (int k = 0; k < n; ++k)
        for (int c = 0; c < nv; ++c) to[c] += M_inverse_E[k * nv + c] * f[k];
    }
    void add_sizes(const T* f, T* to) const {
      for (int k = 0; k < n; ++k)
        for (int c = 0; c < nv; ++c) to[c] += abs(M_inverse_E[k * nv + c] * f[k]);
    }
  };

  /// Compute the friction forces of resting joints, within their limits. A joint whose force would exceed its limit slides, and the other resting
  /// joints carry the rest of its load.
  void hold(const T* W, T* r, T* resting, T* f) {
    hold_at_rest(s_.arena, n_, W, r, resting, tight<T>(), f);
    bool lets_go = false;
    T* limited = take(n_);
    const T within = tolerance<T>(margin, margin_in_single);
    for (int k = 0; k < n_; ++k) {
      const T limit = limit_[k];
      const auto over = abs(f[k]) > limit * (T(1.0) + within);
      lets_go = lets_go || any(over);
      limited[k] = select(over, sign(f[k]) * limit, T(0.0));
      resting[k] = select(over, T(0.0), resting[k]);
      lets_go_[k] = select(over, T(1.0), lets_go_[k]);
    }
    if (!lets_go) return;
    for (int i = 0; i < n_; ++i)
      for (int j = 0; j < n_; ++j) r[i] += W[i * n_ + j] * limited[j];
    hold_at_rest(s_.arena, n_, W, r, resting, tight<T>(), f);
    for (int k = 0; k < n_; ++k) f[k] = limited[k] + least(most(f[k], -limit_[k]), limit_[k]);
  }

  System<T>& s_;
  const Tree& tree_ = s_.tree;
  const JointFriction* friction_ = s_.plan.friction;
  const int n_ = s_.plan.frictions, nv_ = tree_.nv;
  bool closing_ = false, undecided_ = false, rest_ = false;
  double inertia_ = 0.0;  // sum of the moments of inertia of all bodies about points at the characteristic length from them
  // values of each joint. direction_: direction of sliding, 0 at rest; rests_: 1 if at rest at the step's beginning; stops_: 1 if it comes to rest at
  // the step's end; lets_go_: 1 if it was at rest and the load exceeds its friction limit; speed_: speed at the step's beginning; slowing_:
  // deceleration that friction can cause; limit_: friction limit
  T *direction_, *rests_, *stops_, *lets_go_, *speed_, *slowing_, *limit_;
  T* kept_ = nullptr;  // output for the friction forces of an evaluation; null: none
  // v_begun_: velocities at the step's beginning; braked_: magnitudes of the decelerations (nv) by friction, summed over all evaluations of the step
  T *v_begun_, *braked_;
};

/// Take a step in parts: a part ends at each time at which a joint comes to rest. Lanes in which no joint comes to rest wait for the others.
template <class T, class Step>
void step_with_friction(System<T>& s, const T& time, const T& h, const SimulationState<T>& x, Step&& step) {
  if (!s.friction) return step(time, h);
  // largest number of joints for which a step is divided; further joints that stop in it are stopped by impulses at its end
  constexpr int most_pieces = 4;
  const int size = s.integrated();
  T *begun = s.arena.template take<T>(size), *done = s.arena.template take<T>(size);
  T now = time, left = h, waits = T(0.0);
  Work<T> work{};  // sum over all parts of the step
  for (int piece = 1;; ++piece) {
    const Arena::Scope scope(s.arena);
    const T status = s.status;
    std::copy(x.q, x.q + size, begun);  // q, v and z are contiguous
    s.friction->begin(now, left, x);
    step(now, left);
    T part = s.friction->stopped(T(now + left), left, x);
    if (piece < most_pieces && any(part < T(1.0))) {
      std::copy(begun, begun + size, x.q);
      s.status = status;
      step(now, T(left * part));
    } else {
      part = T(1.0);
    }
    s.friction->settle(T(now + left * part), T(left * part), left, x);
    const auto was_done = waits > T(0.5);
    copy_where(was_done, done, x.q, size);
    s.status = select(was_done, status, s.status);
    work.supplied += select(was_done, T(0.0), s.work.supplied),
        work.quadrature_error += select(was_done, T(0.0), s.work.quadrature_error);
    s.work = work;
    if constexpr (std::is_same_v<T, double>)
      if (s.status != 0.0) return;
    std::copy(x.q, x.q + size, done);
    waits = select(part < T(1.0), waits, T(1.0));
    if (!any(waits < T(0.5))) return;
    const auto waiting = waits > T(0.5);
    now = select(waiting, now, T(now + left * part)), left = select(waiting, left, T(left * (T(1.0) - part)));
  }
}

}  // namespace sarrus
