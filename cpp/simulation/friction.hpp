// Dry friction of joints in a simulation, as a set-valued law (Moreau 1988; Glocker 2001): a joint that slides is braked by its limit F, one
// at rest is held by whatever within [-F, F] keeps it there.
//
// Within a step the directions of sliding do not change, so that what a method integrates is smooth. They are decided by the step's first
// evaluation: of joints at rest with W = E M^-1 E^T on the loops, E the directions along which friction acts, the accelerations and forces
//
//   r = r_0 + W f,   r_i = 0 where |f_i| <= F_i,  else f_i = -F_i and r_i >= 0, or the other way round
//
// by principal pivoting (Murty 1974). Where a joint comes to rest within a step, the step is cut there, what is left of that velocity is taken
// away by impulses of friction, and directions are decided anew. No threshold tells rest from motion: what rests has a velocity of zero.
//
// Dependent joints of a loop can share friction in many ways, all of which make the same motion; a compliance of 1e-11 chooses one.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

#include "system.hpp"

namespace sarrus {

/// f (n) with W f = -r, of those that are held (1, others 0, whose f is zero). Those that no force moves would take one without bound.
template <class T> void hold_at_rest(Arena& arena, int n, const T* W, const T* r, const T* held, T* f) {
  constexpr double compliance = 1e-11,
                   rounding = 1e-13;  // of W's diagonal: far above its rounding, far below what a step can tell
  constexpr double without_bound = 1e30;
  const Arena::Scope scope(arena);
  T *L = arena.take<T>(n * n), *inverse = arena.take<T>(n), *movable = arena.take<T>(n);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j <= i; ++j) L[i * n + j] = W[i * n + j] * (held[i] * held[j]);
    L[i * n + i] *= T(1.0 + compliance);
    f[i] = -r[i] * held[i];
  }
  for (int k = 0; k < n; ++k) {
    const T size = W[k * n + k], &pivot = L[k * n + k];
    movable[k] = select(both(size > T(0.0), pivot > size * T(rounding)), T(1.0), T(0.0));
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

constexpr double margin = 1e-9;  // relative: a force that is just its limit holds, and an acceleration of rounding is none

/// Of joints at rest, which way each begins to slide, -1 or 1, or 0: it is held.
inline void decide_directions(Arena& arena, int n, const double* W, const double* r, const double* limit, const double* rests,
                              double* way) {
  const Arena::Scope scope(arena);
  double *held = arena.take<double>(n), *left = arena.take<double>(n), *f = arena.take<double>(n);
  std::fill(way, way + n, 0.0);
  for (int change = 0; change < 20 + 4 * n; ++change) {
    for (int i = 0; i < n; ++i) {
      held[i] = rests[i] > 0.5 && way[i] == 0.0;
      left[i] = r[i];
      for (int j = 0; j < n; ++j) left[i] -= W[i * n + j] * limit[j] * way[j];
    }
    hold_at_rest(arena, n, W, left, held, f);
    // the first few times all that are wrong change at once, which is nearly always enough; then one by one, which always ends
    bool right = true;
    for (int i = 0; i < n && (right || change < 20); ++i) {
      if (rests[i] < 0.5) continue;
      if (way[i] == 0.0) {
        if (std::abs(f[i]) <= limit[i] * (1.0 + margin)) continue;
        way[i] = f[i] > 0.0 ? -1.0 : 1.0;
      } else {
        double a = left[i], size = std::abs(r[i]) + std::abs(left[i] - r[i]);
        for (int j = 0; j < n; ++j) a += W[i * n + j] * f[j], size += std::abs(W[i * n + j] * f[j]);
        if (a * way[i] >= -margin * size) continue;
        way[i] = 0.0;
      }
      right = false;
    }
    if (right) return;
  }
}

/// What a force makes of the velocities at a configuration, on the loops: M^-1.
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
  /// `x`, a force (nv), becomes the change of velocities. X is T, or a packet of forces.
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

/// What friction does in the step at hand; `accelerate` is what its evaluations ask.
template <class T> class DryFriction {
 public:
  explicit DryFriction(System<T>& system) : s_(system) {
    for (T** list : {&way_, &rests_, &stops_, &lets_go_, &speed_, &slowing_, &limit_}) *list = take(n_);
    for (T** list : {&v_begun_, &taken_}) *list = take(nv_);
    for (int k = 0; k < n_; ++k) {
      closing_ = closing_ || friction_[k].iv >= nv_;
      limit_[k] = tree_.numbers<T>()(friction_[k].terms.of(s_.whole()).friction);
    }
  }

  /// A step begins at x.
  void begin(const T& time, const SimulationState<T>& x) {
    const Arena::Scope scope(s_.arena);
    T* size = take(n_);
    speeds(time, x.q, x.v, speed_, size);
    undecided_ = false;
    for (int k = 0; k < n_; ++k) {
      // of a joint that closes a loop, the rounding of a difference is rest
      const T acts =
          select(limit_[k] > T(0.0), T(1.0), T(0.0));  // another lane's variant may have friction here, and this one none
      rests_[k] = select(abs(speed_[k]) > size[k], T(0.0), acts);
      way_[k] = sign(speed_[k]) * (acts - rests_[k]);
      slowing_[k] = lets_go_[k] = T(0.0);
      undecided_ = undecided_ || any(rests_[k] > T(0.5));
    }
    rest_ = undecided_;
    std::copy(x.v, x.v + nv_, v_begun_), std::fill(taken_, taken_ + nv_, T(0.0));
  }

  /// a under tau and friction.
  void accelerate(const T& time, const T* q, const T* v, T* tau, T* a) {
    const Arena::Scope scope(s_.arena);
    const T* J = rows(time, q);
    for (int k = 0; k < n_; ++k) {
      const T braking = way_[k] * -limit_[k];
      push(J, k, braking, tau);
      if (s_.acting) push(J, k, braking, s_.acting);
      if (kept_) kept_[k] = braking;
    }
    s_.accelerations(time, q, v, tau, a);
    if (!rest_) return;
    T *r = take(n_), *held = take(n_), *f = take(n_);
    rates(time, q, v, a, r);
    const Columns columns(*this, time, q, v, J);
    T* begins = take(n_);  // to slide
    for (int k = 0; k < n_; ++k) begins[k] = T(0.0);
    if (std::exchange(undecided_, false)) {
      decide(columns.W, r, begins);
      for (int k = 0; k < n_; ++k) slowing_[k] = columns.W[k * n_ + k] * limit_[k], way_[k] += begins[k];
      for (int i = 0; i < n_; ++i)
        for (int j = 0; j < n_; ++j) r[i] -= columns.W[i * n_ + j] * (begins[j] * limit_[j]);
    }
    for (int k = 0; k < n_; ++k) held[k] = select(abs(way_[k]) > T(0.5), T(0.0), rests_[k]);
    hold(columns.W, r, held, f);
    for (int k = 0; k < n_; ++k) f[k] -= begins[k] * limit_[k];
    columns.add(f, a);
    columns.add_sizes(f, taken_);
    for (int k = 0; s_.acting && k < n_; ++k) push(J, k, f[k], s_.acting);
    for (int k = 0; kept_ && k < n_; ++k) kept_[k] += f[k];
  }

  /// The force (n) along each joint that has friction, in a state of a run whose steps are about h long. Between its steps, what rests has
  /// velocities of rounding: those that friction alone would take away within a billionth of a step.
  void forces(const T& time, const T& h, const SimulationState<T>& x, T* tau, T* force) {
    const Arena::Scope scope(s_.arena);
    begin(time, x);
    T* rests = take(n_);
    std::copy(rests_, rests_ + n_, rests);
    std::fill(rests_, rests_ + n_, T(1.0));
    const Columns columns(*this, time, x.q, x.v, rows(time, x.q));
    for (int k = 0; k < n_; ++k) {
      const T instant = h * T(1e-9) * columns.W[k * n_ + k] * limit_[k];
      rests_[k] = select(abs(speed_[k]) > instant, rests[k], T(1.0));
      way_[k] *= T(1.0) - rests_[k];
      rest_ = undecided_ = undecided_ || any(rests_[k] > T(0.5));
    }
    kept_ = force;
    accelerate(time, x.q, x.v, tau, take(nv_));
    kept_ = nullptr;
  }

  /// The part of the step after which the first joint stops, 1 if none does, where the step ends at x; and which ones do.
  T stopped(const T& time, const T& h, const SimulationState<T>& x) {
    const Arena::Scope scope(s_.arena);
    T *speed = take(n_), *part = take(n_), first = T(1.0);
    speeds(time, x.q, x.v, speed, nullptr);
    for (int k = 0; k < n_; ++k) {
      const auto turned = both(rests_[k] < T(0.5), speed[k] * way_[k] < T(0.0));
      part[k] = select(turned, speed_[k] / select(turned, speed_[k] - speed[k], T(1.0)), T(2.0));
      first = least(first, part[k]);
      // it rests if it did before and was held, or hardly moved, as the last of several that hold together
      const auto moved = speed[k] * way_[k] > h * slowing_[k] * T(1e-9);
      stops_[k] = rests_[k] * (T(1.0) - lets_go_[k]) * select(moved, T(0.0), T(1.0));
    }
    first = most(first, T(least_part));
    for (int k = 0; k < n_; ++k) stops_[k] = select(part[k] < first + T(least_part), T(1.0), stops_[k]);
    return first;
  }
  /// Whether a joint that slid at the start goes the other way at x.
  bool turned(const T& time, const SimulationState<T>& x) {
    const Arena::Scope scope(s_.arena);
    T* speed = take(n_);
    speeds(time, x.q, x.v, speed, nullptr);
    bool any_has = false;
    for (int k = 0; k < n_; ++k) any_has = any_has || any(both(rests_[k] < T(0.5), speed[k] * way_[k] < T(0.0)));
    return any_has;
  }
  /// Whether one slid at the start.
  bool slides() const {
    return std::any_of(rests_, rests_ + n_, [](const T& rests) { return any(rests < T(0.5)); });
  }
  /// Whether one rested there.
  bool holds() const {
    return std::any_of(rests_, rests_ + n_, [](const T& rests) { return any(rests > T(0.5)); });
  }
  static constexpr double least_part = 1e-3;  // of a step: an impulse may do what is left

  /// Brings to rest what stopped, at the end of the step of length h, which was to be most_length long. Velocities of which nothing but rounding is left become zero: beside
  /// what friction took from them, and beside what they were where something stops.
  void settle(const T& time, const T& h, const T& most_length, const SimulationState<T>& x) {
    if (!rest_ && !any(stopping() > T(0.5))) return;
    const Arena::Scope scope(s_.arena);
    const T stopping_now = stopping();
    T* size = take(nv_);
    for (int k = 0; k < nv_; ++k) size[k] = select(stopping_now > T(0.5), abs(v_begun_[k]), T(0.0)) + h * taken_[k];
    if (any(stopping_now > T(0.5))) {
      const T* J = rows(time, x.q);
      T *speed = take(n_), *impulse = take(n_);
      speeds(time, x.q, x.v, speed, nullptr);
      std::swap(rests_, stops_);
      const Columns columns(*this, time, x.q, x.v, J);
      std::swap(rests_, stops_);
      hold_at_rest(s_.arena, n_, columns.W, speed, stops_, impulse);
      // what turns back because the loop's position makes it, as a rocker does, stops by no impulse that friction could give
      bool stop = true;
      for (int k = 0; k < n_; ++k) {
        const auto over = abs(impulse[k]) > limit_[k] * most_length;
        stop = stop && !any(over);
        stops_[k] = select(over, T(0.0), stops_[k]);
      }
      if (!stop) hold_at_rest(s_.arena, n_, columns.W, speed, stops_, impulse);
      columns.add(impulse, x.v);
      columns.add_sizes(impulse, size);
      if (s_.acting) s_.work.supplied += T(0.5) * scalar_product(impulse, speed, n_);
    }
    for (int k = 0; k < nv_; ++k) x.v[k] = select(abs(x.v[k]) > size[k] * T(rounding), x.v[k], T(0.0));
    for (int k = 0; k < n_; ++k)
      if (friction_[k].iv < nv_) x.v[friction_[k].iv] = select(stops_[k] > T(0.5), T(0.0), x.v[friction_[k].iv]);
  }
  static constexpr double rounding = 1e-9;  // of velocities on loops, which projections leave

  /// Velocities along which friction acts, and below which they are rounding.
  void speeds(const T& time, const T* q, const T* v, T* speed, T* rounding) {
    const Arena::Scope scope(s_.arena);
    const T* J = rows(time, q);
    for (int k = 0; k < n_; ++k) {
      T along = T(0.0), size = T(0.0);
      each_entry(J, k, [&](int i, const T& entry) { along += entry * v[i], size += abs(entry * v[i]); });
      speed[k] = along;
      if (rounding) rounding[k] = friction_[k].iv < nv_ ? T(0.0) : size * T(1e-13);
    }
  }

 private:
  T* take(int size) { return s_.arena.template take<T>(size); }

  /// 1 where a joint that slid comes to rest, or one that began to slide goes back to it.
  T stopping() const {
    T some = T(0.0);
    for (int k = 0; k < n_; ++k) some = most(some, select(abs(way_[k]) > T(0.5), stops_[k], T(0.0)));
    return some;
  }

  /// J of joints that close loops (loop_nv x nv), if one of them has friction.
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

  /// Rates of the velocities along which friction acts.
  void rates(const T& time, const T* q, const T* v, const T* a, T* r) {
    T* of_loops = nullptr;
    if (closing_) {
      const auto work = rnea(tree_, s_.arena, RneaInput<T>{q, v, a}, take(nv_));
      LoopState<T> state = {q, v, &time, nullptr, nullptr, nullptr, work.link};
      place(tree_, s_.arena, work.poses(), work.columns, state);
      LoopJoints<T> joints;
      joints.a = of_loops = take(tree_.loop_nv);
      read_loop_joints(tree_, s_.arena, state, static_cast<const T*>(nullptr), joints);
    }
    for (int k = 0; k < n_; ++k) r[k] = friction_[k].iv < nv_ ? a[friction_[k].iv] : of_loops[friction_[k].iv - nv_];
  }

  /// M^-1 E^T and W of joints that rest in some lane.
  struct Columns {
    int n, nv;
    T *M_inverse_E, *W;
    Columns(DryFriction& f, const T& time, const T* q, const T* v, const T* J)
        : n(f.n_), nv(f.nv_), M_inverse_E(f.take(f.n_ * f.nv_)), W(f.take(f.n_ * f.n_)) {
      const Arena::Scope scope(f.s_.arena);
      std::fill(M_inverse_E, M_inverse_E + n * nv, T(0.0)), std::fill(W, W + n * n, T(0.0));
      Response<T> response(f.s_, time, q, v);
      for (int k = 0; k < n; ++k) {
        if (!any(f.rests_[k] > T(0.5))) continue;
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

  /// Forces that hold what is held, within the limits; what they let go within a step is free from then on, and the others take its load.
  void hold(const T* W, T* r, T* held, T* f) {
    hold_at_rest(s_.arena, n_, W, r, held, f);
    bool lets_go = false;
    T* limited = take(n_);
    for (int k = 0; k < n_; ++k) {
      const T limit = limit_[k];
      const auto over = abs(f[k]) > limit * T(1.0 + margin);
      lets_go = lets_go || any(over);
      limited[k] = select(over, sign(f[k]) * limit, T(0.0));
      held[k] = select(over, T(0.0), held[k]);
      lets_go_[k] = select(over, T(1.0), lets_go_[k]);
    }
    if (!lets_go) return;
    for (int i = 0; i < n_; ++i)
      for (int j = 0; j < n_; ++j) r[i] += W[i * n_ + j] * limited[j];
    hold_at_rest(s_.arena, n_, W, r, held, f);
    for (int k = 0; k < n_; ++k) f[k] = limited[k] + least(most(f[k], -limit_[k]), limit_[k]);
  }

  /// In each lane.
  void decide(T* W, T* r, T* begins) {
    const Arena::Scope scope(s_.arena);
    const auto doubles = [&](int size) { return s_.arena.template take<double>(size); };
    double *one_W = doubles(n_ * n_), *one_r = doubles(n_), *one_rests = doubles(n_), *one_way = doubles(n_),
           *limit = doubles(n_);
    for (int l = 0; l < width_of<T>; ++l) {
      for (int i = 0; i < n_ * n_; ++i) one_W[i] = lane(W[i], l);
      for (int i = 0; i < n_; ++i) one_r[i] = lane(r[i], l), one_rests[i] = lane(rests_[i], l), limit[i] = lane(limit_[i], l);
      decide_directions(s_.arena, n_, one_W, one_r, limit, one_rests, one_way);
      for (int i = 0; i < n_; ++i) lane(begins[i], l) = one_way[i];
    }
  }

  System<T>& s_;
  const Tree& tree_ = s_.tree;
  const JointFriction* friction_ = s_.plan.friction;
  const int n_ = s_.plan.frictions, nv_ = tree_.nv;
  bool closing_ = false, undecided_ = false, rest_ = false;
  // directions of sliding; which rested at the step's start, come to rest at its end, and were held by more than friction can; speeds at the
  // start; what friction can take from them a second
  T *way_, *rests_, *stops_, *lets_go_, *speed_, *slowing_, *limit_;
  T* kept_ = nullptr;  // where the forces of an evaluation are to be seen
  T *v_begun_, *taken_;  // velocities at the step's start, and what friction has taken from them a second, in all evaluations
};

/// A step that is cut where joints come to rest. Lanes in which none does wait for the others.
template <class T, class Step>
void step_with_friction(System<T>& s, const T& time, const T& h, const SimulationState<T>& x, Step&& step) {
  if (!s.friction) return step(time, h);
  constexpr int most_pieces =
      4;  // those that stop one after the other within a step, more than that do so by impulses at its end
  const int size = s.integrated();
  T *begun = s.arena.template take<T>(size), *done = s.arena.template take<T>(size);
  T now = time, left = h, waits = T(0.0);
  Work<T> work{};  // of all pieces
  for (int piece = 1;; ++piece) {
    const Arena::Scope scope(s.arena);
    const T status = s.status;
    std::copy(x.q, x.q + size, begun);  // q, v and z stand side by side
    s.friction->begin(now, x);
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
    work.supplied += select(was_done, T(0.0), s.work.supplied), work.apart += select(was_done, T(0.0), s.work.apart);
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
