// Whether rows that depend on one another on the loops still do so a little off them.
//
// Redundant rows of planar loops agree wherever bodies are, and a stage of a step may be off the loops by what the step has not corrected yet.
// Those of Bennett's, Goldberg's and Bricard's linkages agree only where loops are closed: off by d, some combination lambda of them that was
// nothing, lambda^T J = 0, forbids motions, by lambda^T (dJ/dq d) v to first order, and the linkage is held fast.
//
// So a velocity v that the loops allow is taken along to a configuration at d. With J of the closed one, whose factor is at hand,
//
//   v <- v - J^+ J(d) v,   again and again,
//
// takes out of J(d) v whatever J can reach. Nothing is left where the rows agree there too, to rounding; else, what they forbid. No rank is
// counted, and nothing depends on luck: with directions drawn from a continuum, the chance of meeting one in which a millionth is left of
// what there is, is a millionth.
#pragma once

#include <algorithm>
#include <utility>

#include "system.hpp"

namespace sarrus {

template <class T> class Redundancy {
 public:
  Redundancy(System<T>& system, const T& time) : s_(system), time_(time) {}

  /// 1 where rows agree only on the loops, else 0: near q, not at q, which may be singular.
  T only_on_loops(const T* q) {
    const Arena::Scope scope(s_.arena);
    T most = T(0.0);
    for (int sample = 0; sample < 2; ++sample) {
      T* there = take(tree_.nq);
      move(q, sample, there);
      most = sarrus::most(most, forbidden_near(there, sample));
    }
    return select(most > T(tolerances::agreement), T(1.0), T(0.0));
  }

 private:
  T* take(int size) { return s_.arena.template take<T>(size); }
  const T* pfaffian_values(const T* q) { return s_.pfaffian_values(q, zeros<T>(s_.arena, tree_.nv)); }

  /// A little along the loops.
  void move(const T* q, int sample, T* there) {
    const Arena::Scope scope(s_.arena);
    LeastMotion<T> here(tree_, s_.arena, q, time_, pfaffian_values(q));
    const T* v = allowed(here, 2 * sample);
    T *u = take(tree_.nv), *velocity = take(tree_.nv), size = T(0.0);
    for (int k = 0; k < tree_.nv; ++k) size = sarrus::most(size, abs(v[k])), velocity[k] = T(0.0);
    const T length = T(along_loops) / select(size > T(0.0), size, T(1.0));
    for (int k = 0; k < tree_.nv; ++k) u[k] = v[k] * length;
    integrate(tree_, q, u, there);
    LeastMotion<T>* kept = std::exchange(s_.least, &here);
    const T error = project(s_, time_, there, velocity, nullptr, false);
    s_.least = kept;
    for (int k = 0; k < tree_.nq; ++k) there[k] = select(error < T(square(tolerances::nearly_closed)), there[k], q[k]);
  }

  /// A velocity that the loops allow, each part of it as likely as its inertia allows; rows are those of the factor.
  T* allowed(LeastMotion<T>& here, int sample) {
    T *v = take(tree_.nv), *slip = take(tree_.loops.rows);
    for (int k = 0; k < tree_.nv; ++k) v[k] = T(scattered(k + sample * tree_.nv)) * sqrt(here.e.matrix.mobility[k]);
    for (int round = 0; round < 3; ++round) subtract_what_is_reached(here, here.e.matrix.J, v, slip);
    return v;
  }

  /// v - J^+ J_there v; returns |J_there v|, squared, each row weighed by its size.
  T subtract_what_is_reached(LeastMotion<T>& here, const T* J_there, T* v, T* slip) {
    const int rows = tree_.loops.rows;
    for (int r = 0; r < rows; ++r) slip[r] = T(0.0);
    add_motion_along_rows(tree_, J_there, v, T(1.0), slip);
    T size = T(0.0);
    for (int r = 0; r < rows; ++r) size += slip[r] * slip[r] * here.e.matrix.row_weight[r];
    const T* x = here.along(slip, -1.0);
    for (int k = 0; k < tree_.nv; ++k) v[k] += x[k];
    return size;
  }

  /// What rows forbid, off q, of the velocities that they allow at q: as a share.
  T forbidden_near(const T* q, int sample) {
    const Arena::Scope scope(s_.arena);
    LeastMotion<T> here(tree_, s_.arena, q, time_, pfaffian_values(q), nullptr, false);
    T *v = allowed(here, 2 * sample), *there = take(tree_.nq), *slip = take(tree_.loops.rows), *J = take(tree_.loops.entries);
    integrate(tree_, q, displacement(here.e.matrix.mobility, q, 2 * sample + 1), there);
    ConstraintRows<T> rows;
    rows.J = J;
    constraint_rows(tree_, s_.arena, place(tree_, s_.arena, there, &time_, pfaffian_values(there)), rows, 0,
                    tree_.loops.constraints);
    leave_out_driven(tree_, J);
    T size = T(0.0), whole = T(0.0);
    for (int k = 0; k < tree_.nv; ++k) {
      const T &mobility = here.e.matrix.mobility[k], inertia = select(mobility > T(0.0), T(1.0) / mobility, T(0.0));
      size += v[k] * v[k] * inertia, whole += mobility * inertia;
    }
    const auto moves = size > whole * T(1e-20);  // where nothing can move, nothing can be forbidden
    size = select(moves, size, T(1.0));
    T error = T(0.0);
    for (int round = 0; round < 12; ++round) {
      error = select(moves, subtract_what_is_reached(here, J, v, slip) / size, T(0.0));
      if (!any(error > T(square(0.1 * tolerances::agreement)))) break;
    }
    return sqrt(error);
  }

  /// By off_loops rad, and by lengths that compare with it: masses and moments of inertia tell which.
  const T* displacement(const T* mobility, const T* q, int sample) {
    T *d = take(tree_.nv), turning = T(0.0), turns = T(0.0);
    const LoopState<T> state = place(tree_, s_.arena, q, &time_, static_cast<const T*>(nullptr));
    const auto is_angular = [&](int k) { return dot(state.column[k].angular, state.column[k].angular) > T(0.0); };
    for (int k = 0; k < tree_.nv; ++k)
      turning += select(is_angular(k), mobility[k], T(0.0)), turns += select(is_angular(k), T(1.0), T(0.0));
    const T length = select(turning > T(0.0), turns / select(turning > T(0.0), turning, T(1.0)), T(1.0));
    for (int k = 0; k < tree_.nv; ++k)
      d[k] = T(scattered(k + sample * tree_.nv) * off_loops) * select(is_angular(k), T(1.0), sqrt(mobility[k] * length));
    return d;
  }

  static constexpr double along_loops = 1e-3, off_loops = 1e-4;  // [rad]
  System<T>& s_;
  const T& time_;
  const Tree& tree_ = s_.tree;
};

/// A step from x, with its stages closed where rows agree only on the loops. That is looked for at the start of a run; and where constraint
/// forces have worked in a step: if the run has come to where it is so, the step is taken again. What was a false alarm, as in long steps,
/// is none the next time. And the step is taken again where rows contradicted one another in it: where they agree everywhere, though by a
/// combination that turns with the configuration, their accelerations agree only if velocities are on the loops.
template <class T, class Step> void guarded_step(System<T>& s, const T& time, T* x, const Guard<T>& guard, Step&& step) {
  if (!s.projects()) return step();
  T &closes = guard.closes, &alarm = guard.alarm;
  const auto evaluate = [&](const T* q) { return Redundancy<T>(s, time).only_on_loops(q); };
  if (any(closes < T(0.0))) closes = select(closes < T(0.0), evaluate(x), closes);
  s.closes = closes;
  if (!s.guards()) return step();
  T* begin = s.arena.template take<T>(s.size());
  std::copy(x, x + s.size(), begin);
  const T status = s.status;
  s.worked = T(0.0);
  step();
  const T failed = select(both(s.status > status, s.status < T(caller_failed)), T(1.0), T(0.0));
  const T alarmed = select(closes > T(0.5), T(0.0), select(s.worked > alarm, T(1.0), failed));
  if (!any(alarmed > T(0.5))) return;
  const auto needed = both(alarmed > T(0.5), most(failed, evaluate(begin)) > T(0.5));
  alarm = select(s.worked > alarm, s.worked * T(1e4), alarm);
  if (!any(needed)) return;
  closes = s.closes = select(needed, T(1.0), closes);
  std::copy(begin, begin + s.size(), x);
  s.status = status;
  step();
}

}  // namespace sarrus
