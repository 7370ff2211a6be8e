// Bias forces c(u) at the mean velocity u = (v* + v')/2 of a kick, by iteration:
//
//   v' - v* <- A^-1 (b - h c(u) + J_c^T p_0)     one RNEA and one solution with the factor a round
//
// p_0 are estimated impulses of contacts. A round multiplies the error by about half the angle [rad] of the largest rotation in the step. If u is
// exact, a free body conserves its energy and the norm of its angular momentum (implicit midpoint rule).
#pragma once

#include "../loops/constrained_dynamics.hpp"
#include "glide.hpp"
#include "soft_rows.hpp"

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
inline void bias_forces(const Tree& tree, Arena& arena, const double* q, const double* v, double* force) {
  const Arena::Scope scope(arena);
  Tree bare = tree;
  bare.has_joint_forces = bare.ties_links = false;
  double* a = arena.take<double>(tree.nv);
  uniform_motion<double>(bare, v, a);
  rnea<double>(bare, arena, RneaInput<double>{q, v, a}, force);
}

class MidpointBias {
 public:
  double* force;  // (nv) bias force: at v* before the iteration, at u after it

  MidpointBias(const Tree& tree, Arena& arena, const double* q, const double* v, double h)
      : force(arena.take<double>(tree.nv)),
        tree_(tree),
        arena_(arena),
        q_(q),
        v_(v),
        h_(h),
        expected_(arena.take<double>(tree.nv)) {}

  /// Replace the bias force c(v*) in the right-hand side e.b by c(u). `pressed` (nv): estimated generalised impulse of contacts. `share`: tolerance
  /// relative to the velocities. Returns false if the iteration does not converge.
  bool find(LoopEquation<double>& e, const Factor<double>& factor, const SoftRows& soft, const double* pressed, double share) {
    const Arena::Scope scope(arena_);
    const int nv = tree_.nv, n = nv + e.matrix.rows;
    double speed = 0.0;
    for (int k = 0; k < nv; ++k) speed += square(v_[k]) * tree_.per_unit_square[k];
    rests_ = square(h_) * speed <= square(contact_steps::slow);
    if (rests_) return true;
    double *mean = arena_.take<double>(nv), *x = arena_.take<double>(n), *now = arena_.take<double>(nv);
    double size = in_metric(e.matrix, v_);
    for (int k = 0; k < nv; ++k) size += square(e.b[k]) * e.matrix.mobility[k];
    if (tree_.ties_links) bias_forces(tree_, arena_, q_, v_, force);
    double last = HUGE_VAL;
    for (int round = 0; round < contact_steps::rounds; ++round) {
      std::copy(e.b, e.b + n, x);
      for (int k = 0; k < nv; ++k) x[k] += pressed[k];
      solve_once(e, arena_, factor, x), soft.soften(x);
      for (int k = 0; k < nv; ++k) mean[k] = v_[k] + 0.5 * x[k], expected_[k] = v_[k] + x[k];
      bias_forces(tree_, arena_, q_, mean, now);
      double change = 0.0;
      for (int k = 0; k < nv; ++k) {
        const double by = h_ * (now[k] - force[k]);
        e.b[k] -= by, force[k] = now[k], change += square(by) * e.matrix.mobility[k];
      }
      change = std::sqrt(change / size);
      // estimate of the next change: the first change is half the square of the rotation angle, and each later change is the previous one times half
      // this angle
      const double next = change * std::min(round == 0 ? std::sqrt(change) : change / last, 1.0);
      if (next <= share) return true;
      if (round > 2 && !(change < last)) return change <= contact_steps::acceptable;
      last = change;
    }
    return last <= contact_steps::acceptable;
  }

  /// Return true if v_end differs from the velocity that the iteration predicted by more than the fraction `share` of the velocities.
  bool missed(const LoopEquation<double>& e, const double* v_end, double share) const {
    if (rests_) return false;
    const Arena::Scope scope(arena_);
    double* off = arena_.take<double>(tree_.nv);
    for (int k = 0; k < tree_.nv; ++k) off[k] = v_end[k] - expected_[k];
    return in_metric(e.matrix, static_cast<const double*>(off)) > square(share) * in_metric(e.matrix, v_);
  }

  /// Replace e.b by the right-hand side with (c(v*) + c(v_end))/2.
  void take_ends(LoopEquation<double>& e, const double* v_end) {
    const Arena::Scope scope(arena_);
    double *before = arena_.take<double>(tree_.nv), *after = arena_.take<double>(tree_.nv);
    bias_forces(tree_, arena_, q_, v_, before), bias_forces(tree_, arena_, q_, v_end, after);
    for (int k = 0; k < tree_.nv; ++k) {
      const double mean = 0.5 * (before[k] + after[k]);
      e.b[k] += h_ * (force[k] - mean), force[k] = mean;
    }
  }

 private:
  const Tree& tree_;
  Arena& arena_;
  const double *q_, *v_;
  double h_, *expected_;
  bool rests_ = false;
};

}  // namespace sarrus
