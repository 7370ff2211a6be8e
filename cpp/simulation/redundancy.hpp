// Detection of rows that are redundant on the loops, but independent at a small distance from them.
//
// Redundant rows of planar loops are consistent at every configuration, so a stage of a step may be off the loops by a small residual. The rows of
// Bennett's, Goldberg's and Bricard's linkages are consistent only on closed loops. Let lambda be a combination of rows with lambda^T J = 0 on the
// loops. At a distance d from them it is a constraint, lambda^T (dJ/dq d) v = 0 to first order. This constraint forbids motions and locks the
// linkage.
//
// To detect this, take a velocity v that the loops allow, and J(d) at a distance d. With J of the closed configuration, whose factor is available,
//
//   v <- v - J^+ J(d) v,   repeated,
//
// removes from J(d) v the component in the range of J. If the rows are consistent at d too, the remainder is zero, to rounding; otherwise it is the
// forbidden motion. No rank has to be determined. A wrong result is improbable: with random directions, the probability is one in a million that the
// remainder is below a millionth of the forbidden motion.
#pragma once

#include <algorithm>
#include <utility>

#include "system.hpp"

namespace sarrus {

template <class T> class Redundancy {
 public:
  Redundancy(System<T>& system, const T& time) : s_(system), time_(time) {}

  /// Return 1 if rows are consistent only on closed loops, else 0. The test is done near q instead of at q, because q may be singular.
  T only_on_loops(const T* q) {
    const Arena::Scope scope(s_.arena);
    T most = T(0.0);
    for (int sample = 0; sample < 2; ++sample) {
      T* displaced = take(tree_.nq);
      move(q, sample, displaced);
      most = sarrus::most(most, forbidden_near(displaced, sample));
    }
    return select(most > T(tolerances::agreement), T(1.0), T(0.0));
  }

 private:
  T* take(int size) { return s_.arena.template take<T>(size); }
  const T* pfaffian_values(const T* q) { return s_.pfaffian_values(q, zeros<T>(s_.arena, tree_.nv)); }

  /// Compute a configuration at a small distance from q that closes the loops.
  void move(const T* q, int sample, T* displaced) {
    const Arena::Scope scope(s_.arena);
    LeastMotion<T> motion(tree_, s_.arena, q, time_, pfaffian_values(q));
    const T* v = allowed(motion, 2 * sample);
    T *u = take(tree_.nv), *velocity = take(tree_.nv), size = T(0.0);
    for (int k = 0; k < tree_.nv; ++k) size = sarrus::most(size, abs(v[k])), velocity[k] = T(0.0);
    const T length = T(along_loops) / select(size > T(0.0), size, T(1.0));
    for (int k = 0; k < tree_.nv; ++k) u[k] = v[k] * length;
    integrate(tree_, q, u, displaced);
    LeastMotion<T>* kept = std::exchange(s_.least, &motion);
    const T error = project(s_, time_, displaced, velocity, nullptr, false);
    s_.least = kept;
    for (int k = 0; k < tree_.nq; ++k) displaced[k] = select(error < T(square(tolerances::nearly_closed)), displaced[k], q[k]);
  }

  /// Return a random velocity that the loops allow at the configuration of the factor. Its components are scaled by their inertia.
  T* allowed(LeastMotion<T>& motion, int sample) {
    T *v = take(tree_.nv), *slip = take(tree_.loops.rows);
    for (int k = 0; k < tree_.nv; ++k) v[k] = T(scattered(k + sample * tree_.nv)) * sqrt(motion.e.matrix.mobility[k]);
    for (int round = 0; round < 3; ++round) subtract_reachable(motion, motion.e.matrix.J, v, slip);
    return v;
  }

  /// Replace v by v - J^+ J_displaced v. Returns the squared norm of J_displaced v, whose entries are divided by the scales of the rows.
  T subtract_reachable(LeastMotion<T>& motion, const T* J_displaced, T* v, T* slip) {
    const int rows = tree_.loops.rows;
    for (int r = 0; r < rows; ++r) slip[r] = T(0.0);
    add_motion_along_rows(tree_, J_displaced, v, T(1.0), slip);
    T size = T(0.0);
    for (int r = 0; r < rows; ++r) size += slip[r] * slip[r] * motion.e.matrix.row_weight[r];
    const T* x = motion.along(slip, -1.0);
    for (int k = 0; k < tree_.nv; ++k) v[k] += x[k];
    return size;
  }

  /// Return the fraction of an allowed velocity at q that the rows at a small distance from q forbid.
  T forbidden_near(const T* q, int sample) {
    const Arena::Scope scope(s_.arena);
    LeastMotion<T> motion(tree_, s_.arena, q, time_, pfaffian_values(q), nullptr, false);
    T *v = allowed(motion, 2 * sample), *displaced = take(tree_.nq), *slip = take(tree_.loops.rows),
      *J = take(tree_.loops.entries);
    integrate(tree_, q, displacement(motion.e.matrix.mobility, q, 2 * sample + 1), displaced);
    ConstraintRows<T> rows;
    rows.J = J;
    constraint_rows(tree_, s_.arena, place(tree_, s_.arena, displaced, &time_, pfaffian_values(displaced)), rows, 0,
                    tree_.loops.constraints);
    drop_driven_rows(tree_, J);
    T size = T(0.0), scale = T(0.0);
    for (int k = 0; k < tree_.nv; ++k) {
      const T &mobility = motion.e.matrix.mobility[k], inertia = select(mobility > T(0.0), T(1.0) / mobility, T(0.0));
      size += v[k] * v[k] * inertia, scale += mobility * inertia;
    }
    const auto moves = size > scale * T(1e-20);  // without allowed motions none can be forbidden
    size = select(moves, size, T(1.0));
    T error = T(0.0);
    for (int round = 0; round < 12; ++round) {
      error = select(moves, subtract_reachable(motion, J, v, slip) / size, T(0.0));
      if (!any(error > T(square(0.1 * tolerances::agreement)))) break;
    }
    return sqrt(error);
  }

  /// Return a displacement: off_loops rad for rotations, and for slides a comparable length, computed from the ratio of moments of inertia and
  /// masses.
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

/// Take a step from x. Its stages are projected onto the loops if redundant rows are consistent only on closed loops. This property is tested at the
/// beginning of a run, and again after each step in which constraint forces have done work. If the test then succeeds, the step is repeated with
/// projected stages; if it fails (long steps may cause such a false alarm), the threshold of work is raised. A step is also repeated if its rows
/// contradicted one another. This may happen even to rows that are consistent everywhere, if the dependence between them changes with the
/// configuration: their accelerations are then consistent only if the velocities satisfy the loops.
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
