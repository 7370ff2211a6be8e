// Bias forces c(u) at the mean velocity u = (v* + v')/2 of a kick, by iteration:
//
//   v' - v* <- A^-1 (b - h c(u) + J_c^T p_0)     one RNEA and one solution with the factor a round
//
// p_0 are estimated impulses of contacts. A round multiplies the error by about half the angle [rad] of the largest rotation in the step. If u is
// exact, a free body conserves its energy and the norm of its angular momentum (implicit midpoint rule).
#pragma once

#include "../loops/constrained_dynamics.hpp"
#include "glide.hpp"

namespace sarrus {

namespace contact_steps {
/// Largest number of rounds, and tolerances relative to the velocities. iteration_tolerance: for a passive mechanism, which must conserve energy over
/// many steps. iteration_tolerance_with_rates: with springs, dampers or motors. acceptable: largest error that is accepted if more rounds do not
/// reduce it.
constexpr int rounds = 20;
constexpr double iteration_tolerance = 1e-10, iteration_tolerance_with_rates = 1e-8, acceptable = 1e-6;
/// c(v*) replaces c(u) if the rotations [rad] and displacements [body sizes] in a step are below these limits.
constexpr double slow = 1e-7;
}  // namespace contact_steps

/// Compute gravity, gyroscopic and Coriolis forces (nv) in uniform motion at v (glide.hpp), without joint forces and forces between links.
template <class T> void bias_forces(const Tree& tree, Arena& arena, const T* q, const T* v, T* force) {
  const Arena::Scope scope(arena);
  Tree bare = tree;
  bare.has_joint_forces = bare.ties_links = false;
  T* a = arena.take<T>(tree.nv);
  uniform_motion<T>(bare, v, a);
  rnea<T>(bare, arena, RneaInput<T>{q, v, a}, force);
}

template <class T> struct MidpointBias {
  const Tree& tree;
  Arena& arena;
  const T *q, *v;
  double h;
  T *force, *expected;  // (nv) bias force: at v* before the iteration, at u after it; velocities that the iteration predicted
  T rests = T(0.0);  // 1: nothing moves, and c(v*) replaces c(u)

  MidpointBias(const Tree& t, Arena& a, const T* q_middle, const T* v_begin, double step)
      : tree(t), arena(a), q(q_middle), v(v_begin), h(step), force(a.take<T>(t.nv)), expected(a.take<T>(t.nv)) {}

  /// Replace the bias force c(v*) in the right-hand side e.b by c(u). `pressed` (nv): estimated generalised impulse of contacts. `share`: tolerance
  /// relative to the velocities. soften(x) adds the effect of springs and dampers between bodies to a solution. Returns 1 if the iteration converges,
  /// else 0.
  template <class Soften>
  T find(LoopEquation<T>& e, const Factor<T>& factor, const T* pressed, const T& share, Soften&& soften) {
    const Arena::Scope scope(arena);
    const int nv = tree.nv, n = nv + e.matrix.rows;
    T speed = T(0.0);
    for (int k = 0; k < nv; ++k) speed += square(v[k]) * T(tree.per_unit_square[k]);
    rests = select(T(square(h)) * speed > T(square(contact_steps::slow)), T(0.0), T(1.0));
    auto active = rests < T(0.5);
    if (!any(active)) return T(1.0);
    T *mean = arena.take<T>(nv), *x = arena.take<T>(n), *now = arena.take<T>(nv);
    T size = in_metric(e.matrix, v);
    for (int k = 0; k < nv; ++k) size += square(e.b[k]) * e.matrix.mobility[k];
    size = select(active, size, T(1.0));
    if (tree.ties_links) bias_forces(tree, arena, q, v, force);
    T last = T(1e150), converged = rests;
    for (int round = 0; round < contact_steps::rounds && any(active); ++round) {
      std::copy(e.b, e.b + n, x);
      for (int k = 0; k < nv; ++k) x[k] += pressed[k];
      solve_once(e, arena, factor, x), soften(x);
      for (int k = 0; k < nv; ++k) mean[k] = v[k] + T(0.5) * x[k], expected[k] = select(active, v[k] + x[k], expected[k]);
      bias_forces(tree, arena, q, static_cast<const T*>(mean), now);
      T change = T(0.0);
      for (int k = 0; k < nv; ++k) {
        const T by = T(h) * (now[k] - force[k]);
        e.b[k] = select(active, e.b[k] - by, e.b[k]), force[k] = select(active, now[k], force[k]);
        change += square(by) * e.matrix.mobility[k];
      }
      change = sqrt(change / size);
      // estimate of the next change: the first change is half the square of the rotation angle, and each later change is the previous one times half
      // this angle
      const T next = change * least(round == 0 ? sqrt(change) : change / last, T(1.0));
      const T precise = select(next > share, T(0.0), T(1.0)),
              tolerable = select(change > T(contact_steps::acceptable), T(0.0), T(1.0));
      const T stalls = round > 2 ? select(change < last, T(0.0), T(1.0)) : T(0.0);
      converged = select(active, most(precise, stalls * tolerable), converged);
      active = both(active, precise + stalls < T(0.5));
      last = select(active, change, last);
    }
    return select(active, select(last > T(contact_steps::acceptable), T(0.0), T(1.0)), converged);
  }

  /// Return true if v_end differs from the velocity that the iteration predicted by more than the fraction `share` of the velocities.
  bool missed(const LoopEquation<T>& e, const T* v_end, double share) const {
    if (rests > 0.5) return false;
    const Arena::Scope scope(arena);
    T* off = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) off[k] = v_end[k] - expected[k];
    return in_metric(e.matrix, static_cast<const T*>(off)) > square(share) * in_metric(e.matrix, v);
  }

  /// Replace e.b by the right-hand side with (c(v*) + c(v_end))/2.
  void take_ends(LoopEquation<T>& e, const T* v_end) {
    const Arena::Scope scope(arena);
    T *before = arena.take<T>(tree.nv), *after = arena.take<T>(tree.nv);
    bias_forces(tree, arena, q, v, before), bias_forces(tree, arena, q, v_end, after);
    for (int k = 0; k < tree.nv; ++k) {
      const T mean = T(0.5) * (before[k] + after[k]);
      e.b[k] += T(h) * (force[k] - mean), force[k] = mean;
    }
  }
};

}  // namespace sarrus
