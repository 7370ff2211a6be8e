// Simplified Newton iteration for the accelerations a and the multipliers lambda in the middle of an implicit midpoint step on loops:
//
//   [M + h D/2 + h^2 K/4   J^T] [ da     ]   [tau - M a - h + J^T lambda]
//   [J                      0 ] [-dlambda] = [gamma - J a               ]    v1 = v0 + h a;  the middle state follows from v1
//
// D and K are damping and stiffness along the tree's joints, of the mechanism and of force elements. The matrix is that of the first middle state of
// the step. It is kept, because the middle state changes little; a round then costs one RNEA, the rows and one solution, less than half of the
// forward dynamics. It leaves about h/2 times the derivative of the accelerations with respect to the velocities of the error. If the iteration does
// not contract, the matrix is computed again at the current middle state; if it still does not, implicit_midpoint.hpp iterates with evaluations.
//
// Velocities of the bases of floating groups follow from momenta (implicit_midpoint.hpp). Their difference from v0 + h a is of third order in h. It
// costs more than a round, so it is updated only after the other error has become smaller than the last update.
#pragma once

#include "midpoint_rule.hpp"

namespace sarrus {

/// Matrix of a step, and the last solution, from which the iteration begins again. Steps on dual numbers have their own iteration (step_rates.hpp).
template <class T> struct MidpointNewton {
  explicit MidpointNewton(System<T>&) {}
};

template <> class MidpointNewton<double> {
 public:
  explicit MidpointNewton(System<double>& s)
      : s_(s),
        arena_(s.arena),
        nv_(s.tree.nv),
        nz_(s.plan.force_elements.nz),
        rows_(s.tree.loops.rows),
        x_(zeros(nv_ + rows_)),
        z_dot_(zeros(nz_)),
        by_momenta_(zeros(nv_)),
        side_(zeros(nv_ + rows_)),
        J_(zeros(s.tree.loops.entries)),
        tree_(s.tree) {}

  /// Return true if the iteration is possible for these steps.
  bool applies() const {
    const Tree& tree = s_.tree;
    return !failed_ && s_.projects() && !s_.friction && s_.closes < 0.5 && !tree.lacks_inertia && tree.loops.rotor_rows == 0 &&
           tree.loops.pfaffian_values == 0;
  }

  /// Set y to the solution, or with `rough` to an approximation. Returns false if the iteration does not converge.
  bool solve(MidpointRule<double>& rule, double* y, bool rough) {
    constexpr double none = MidpointRule<double>::overflow;
    const double accuracy = rough ? preliminary : final;
    double before = none, moved = none;
    bool renewed = !matrix_, momenta = rule.groups.count == 0;  // true if the momenta are satisfied
    for (int round = 0; round < most_rounds; ++round) {
      set(rule, y), rule.place_middle(y);
      const double change = improve(rule);
      set(rule, y);
      if (s_.status != 0.0) return true;
      if (!finite_bits(change)) break;
      const double ratio = change / before;
      if (std::exchange(before, change) < none) rate_ = ratio;
      const bool grows = ratio > slowest, settled = grows && change <= rounding;
      // the remaining error is the sum of a geometric series
      double left = settled ? 0.0 : rate_ < slowest ? change * rate_ / (1.0 - rate_) : change;
      changes_ += change;
      if (changes_ <= still) momenta = true;
      if (!momenta && left <= std::max(accuracy, std::min(loose, 0.1 * moved))) {
        const double last = std::exchange(moved, follow_momenta(rule, y));
        left = std::max(left, moved * rate_), before = none;
        // each update is smaller than the last one by about the same factor
        momenta = rough || !(moved < last) || moved * moved <= final * std::min(last, 1.0);
        changes_ = 0.0;
      }
      if (momenta && left <= accuracy) return finish(rule, y, rough), true;
      if (!grows || settled) continue;
      if (std::exchange(renewed, true)) break;
      matrix_.reset(), before = none;
    }
    failed_ = true;
    return false;
  }

 private:
  static constexpr int most_rounds = 30;
  /// Accuracies of velocities and internal states, relative to their norm: of solutions; of the first update of the bases' velocities.
  static constexpr double final = 2e-16, preliminary = 1e-13, loose = 1e-8;
  /// Changes at rounding level, and changes after which the velocities of bases still satisfy the momenta, because they change far less.
  static constexpr double rounding = 1e-14, still = 1e-12;
  /// Largest ratio of successive changes at which the matrix is kept.
  static constexpr double slowest = 0.3;

  double* zeros(int n) const {
    double* x = arena_.take<double>(n);
    std::fill(x, x + n, 0.0);
    return x;
  }

  void set(const MidpointRule<double>& rule, double* y) const {
    for (int k = 0; k < nv_; ++k) y[k] = rule.x.v[k] + rule.h * x_[k] + by_momenta_[k];
    for (int k = 0; k < nz_; ++k) y[nv_ + k] = rule.x.z[k] + rule.h * z_dot_[k];
  }

  /// Do a round. Returns the norm of the change of y, relative to y.
  double improve(MidpointRule<double>& rule) {
    double *tau = arena_.take<double>(nv_), *z_dot = arena_.take<double>(nz_);
    const bool fresh = !matrix_ && !begun_;
    matrix_ ? rule.forces(tau, z_dot) : set_matrix(rule, tau, z_dot);
    if (!fresh) find_residual(rule, tau);
    begun_ = true;
    error_ = 0.0;
    for (int k = 0; k < nv_; ++k) error_ += square(side_[k]) * matrix_->matrix.mobility[k];
    for (int r = 0; r < rows_; ++r) error_ += square(side_[nv_ + r]) * matrix_->matrix.row_weight[r];
    solve_once(*matrix_, arena_, *factor_, side_);
    for (int k = 0; k < nv_ + rows_; ++k) x_[k] += side_[k];
    double sum = 0.0, size = square(rule.rest);
    for (int k = 0; k < nv_ + nz_; ++k) {
      const double rate = k < nv_ ? x_[k] : z_dot[k - nv_], by = k < nv_ ? side_[k] : rate - z_dot_[k - nv_];
      const double w = 1.0 / square(rule.unit(k));
      sum += square(rule.h * by) * w, size += (square(rule.x.v[k] + rule.h * rate) + square(rule.x.v[k])) * w;
    }
    std::copy(z_dot, z_dot + nz_, z_dot_);
    return std::sqrt(sum / size);
  }

  /// Compute the matrix and its factor in the middle state, and the residual of a = 0, lambda = 0.
  void set_matrix(MidpointRule<double>& rule, double* tau, double* z_dot) {
    const int all = nv_ + s_.tree.loop_nv;
    s_.stiffness = zeros(all), s_.damping = zeros(all);
    rule.forces(tau, z_dot);
    if (!s_.tree.loops.substructures) {
      PassiveTerms* terms = arena_.take<PassiveTerms>(nv_);
      std::copy(s_.tree.passive, s_.tree.passive + nv_, terms);
      for (int k = 0; k < nv_; ++k) {
        const PassiveTerms& f = terms[k];
        const double slope = tangent_damping(f.damping, f.nonlinear, s_.tree.numbers<double>(), rule.middle[k]);
        const double spring =
            tangent_stiffness(f.stiffness, f.nonlinear, s_.tree.numbers<double>(), f.iq < 0 ? 0.0 : rule.q[f.iq] - f.rest);
        const double damping = 0.5 * (slope + s_.damping[k]) + (rule.later ? rule.later[k] : 0.0);
        const double stiffness = 0.25 * rule.h * (spring + s_.stiffness[k]);
        terms[k].armature += rule.h * std::max(0.0, damping + stiffness);
      }
      tree_.passive = terms, tree_.has_armature = true;
    }
    s_.stiffness = s_.damping = nullptr;
    time_ = rule.middle_time();
    LoopInput<double> in{rule.q, rule.middle, tau};
    in.time = &time_;
    matrix_.emplace(loop_equation(tree_, arena_, in));
    factor_.emplace(factorise_tightly(*matrix_, arena_));
    std::copy(matrix_->b, matrix_->b + nv_ + rows_, side_);
    std::copy(matrix_->matrix.J, matrix_->matrix.J + s_.tree.loops.entries, J_);
  }

  /// Compute the residual, and J, in the middle state.
  void find_residual(const MidpointRule<double>& rule, const double* tau) {
    const Arena::Scope scope(arena_);
    const auto work = rnea(s_.tree, arena_, RneaInput<double>{rule.q, rule.middle, x_}, side_);
    for (int k = 0; k < nv_; ++k) side_[k] = tau[k] - side_[k];
    time_ = rule.middle_time();
    LoopState<double> state = {rule.q, rule.middle, &time_, nullptr, nullptr, nullptr, work.link};
    place(s_.tree, arena_, work.poses(), work.columns, state);
    ConstraintRows<double> out;
    out.J = J_, out.gamma = side_ + nv_;
    const Loops& loops = s_.tree.loops;
    constraint_rows(s_.tree, arena_, state, out, 0, loops.constraints);
    const double* J = J_;
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r, ++J) {
          side_[c.column[k]] -= *J * x_[nv_ + c.row + r];
          // for rows between bodies, gamma already contains -J a, because the motion includes the accelerations of the bodies
          if (c.child < 0) side_[nv_ + c.row + r] -= *J * x_[c.column[k]];
        }
    }
  }

  /// Set the velocities of the bases by the momenta. Returns the norm of the change of y, relative to y.
  double follow_momenta(MidpointRule<double>& rule, double* y) {
    const Arena::Scope scope(arena_);
    double* v = arena_.take<double>(nv_);
    for (int k = 0; k < nv_; ++k) v[k] = rule.x.v[k] + rule.h * x_[k];
    rule.place_middle(y), rule.move_bases(x_, v);
    double sum = 0.0, size = square(rule.rest);
    for (int k = 0; k < nv_; ++k) {
      const double by = v[k] - (rule.x.v[k] + rule.h * x_[k]), w = 1.0 / square(rule.unit(k));
      sum += square(by - std::exchange(by_momenta_[k], by)) * w, size += (square(v[k]) + square(rule.x.v[k])) * w;
    }
    set(rule, y);
    return std::sqrt(sum / size);
  }

  /// Set the results of the last evaluation in the system.
  void finish(MidpointRule<double>& rule, const double* y, bool rough) {
    if (rough) return;
    s_.flag_contradiction(matrix_->relative(error_));
    rule.place_middle(y);
    if (rule.has_momenta) rule.find_momenta(x_);  // the last update of the bases' velocities preceded the last rounds
    if (s_.acting) {
      if (s_.drives) s_.add_drives(J_, x_ + nv_, s_.acting);
      s_.power = scalar_product(s_.acting, rule.middle, nv_) - s_.damped(rule.q, rule.middle, rule.middle);
    }
    if (!s_.guards()) return;
    matrix_->matrix.J = J_;
    s_.watch(*matrix_, rule.middle, x_ + nv_);
  }

  System<double>& s_;
  Arena& arena_;
  const int nv_, nz_, rows_;
  double *x_, *z_dot_;  // [a; -lambda] and the rates of the internal states
  double* by_momenta_;  // (nv) velocities at the end minus v0 + h a
  double *side_, *J_;  // residual, then the change of x; rows in the current middle state
  Tree tree_;  // the tree with h D/2 + h^2 K/4 as armature
  double time_ = 0.0, rate_ = 1.0, error_ = 0.0,
         changes_ = MidpointRule<double>::overflow;  // changes: since the last update of the bases' velocities
  std::optional<LoopEquation<double>> matrix_{};
  std::optional<Factor<double>> factor_{};
  bool begun_ = false, failed_ = false;
};

}  // namespace sarrus
