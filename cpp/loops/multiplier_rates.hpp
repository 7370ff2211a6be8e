// Rates of the multipliers. For independent rows they follow from the equation of derivatives.hpp. For dependent rows, lambda = J y are the
// multipliers of least norm for the same forces. They are of least norm in every configuration with closed loops. Therefore
//
//   J^T Dlambda = f,   Dlambda = DJ y + J Dy        so that Dlambda, of all with J^T Dlambda = f, is nearest to DJ y
//
// where f = M Da - b are the forces on the rows. (The Dlambda of the equation itself has arbitrary rounding errors along J^T z = 0.)
#pragma once

#include "derivatives.hpp"
#include "loop_motions.hpp"

namespace sarrus {

template <class R> class MultiplierRates {
 public:
  MultiplierRates(const Tree& tree, Arena& arena, const double* q, const SensitivityEquation<R>& equation)
      : tree_(tree), arena_(arena), rows_(tree.loops.rows), J_(equation.J()) {
    double* row = arena.take<double>(rows_);
    std::fill(row, row + rows_, 0.0);
    const double* entry = J_;
    for (int i = 0; i < tree.loops.constraints; ++i) {
      const Constraint& c = tree.loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) row[c.row + r] += square(*entry++ * tree.unit[c.column[k]]);
    }
    const double most = rows_ > 0 ? std::max(1e-300, *std::max_element(row, row + rows_)) : 1.0;
    // smaller values are treated as zero: they are rounding errors, which a division would amplify
    const double least = square(tolerances::negligible) * most;
    for (int r = 0; r < rows_; ++r) row[r] = 1.0 / std::sqrt(row[r] > least ? row[r] : most);
    motions_.emplace(tree, arena, J_, tree.unit, row);
    if (tree.nv - motions_->freedom == rows_) return;
    y_ = arena.take<double>(tree.nv), M_ = arena.take<double>(tree.nv * tree.nv);
    motions_->solve(equation.lambda, y_);
    self_stresses_.emplace(motions_->self_stresses());
    crba(tree, arena, q, M_);
  }

  /// Return y with lambda = J y, or null if the rows are independent.
  const double* y() const { return y_; }

  /// Project z (rows) onto the multipliers with J^T z = 0. Only for dependent rows.
  void leave_dependent(double* z) const {
    const Arena::Scope scope(arena_);
    double* motion = arena_.take<double>(tree_.nv);
    motions_->solve(z, motion);
    add_motion_along_rows(tree_, J_, motion, -1.0, z);
  }

  /// Compute lane l of Dlambda (rows). x: solution of the equation; force: its right-hand side; DJ_y: the product DJ y (null if J is constant).
  void put(const R* x, const R* force, const R* DJ_y, int l, double* out) const {
    for (int r = 0; r < rows_; ++r) out[r] = -lane(x[tree_.nv + r], l);
    if (!y_) return;
    const Arena::Scope scope(arena_);
    const int n = tree_.nv;
    double *turning = nullptr, *f = arena_.take<double>(n);
    for (int k = 0; k < n; ++k) {
      f[k] = -lane(force[k], l);
      for (int i = 0; i < n; ++i) f[k] += M_[k * n + i] * lane(x[i], l);
    }
    if (DJ_y) turning = arena_.take<double>(rows_);
    for (int r = 0; r < rows_ && DJ_y; ++r) turning[r] = lane(DJ_y[r], l);
    motions_->forces(f, out);
    self_stresses_->bring_near(turning, out);
  }

 private:
  const Tree& tree_;
  Arena& arena_;
  int rows_;
  const double* J_;
  double *y_ = nullptr, *M_ = nullptr;
  std::optional<LoopMotions> motions_;
  std::optional<SelfStresses> self_stresses_;
};

/// Compute the derivatives of the multipliers with respect to q, v and tau (rows x nv each), along the same directions as those of the accelerations.
/// Returns the same error as forward_dynamics_derivatives.
template <class R>
double multiplier_derivatives(const Tree& tree, Arena& arena, const LoopInput<double>& in, bool tangent, double* out) {
  const int n = tree.nv, rows = tree.loops.rows;
  if (rows == 0) return 0.0;
  const ForwardSensitivity<R> state(tree, arena, in);
  const MultiplierRates<R> rates(tree, arena, in.q, state.equation());
  double *by_q = out, *by_v = out + rows * n, *by_tau = out + 2 * rows * n, worst = 0.0;
  R *x = arena.take<R>(n + rows), *follows = arena.take<R>(n + rows), *DJ_y = arena.take<R>(rows), *force = arena.take<R>(n);
  double* multiplier_rate = arena.take<double>(rows);
  // sum the rates of all directions, weighted by the components of unit displacements along them
  const auto along = [&](const AllowedMotions* motions, double* to, auto rate) {
    const auto add = [&](int first, int count, const R* d) {
      const R* moved = rate(d);
      for (int l = 0; l < count; ++l) {
        rates.put(x, force, moved, l, multiplier_rate);
        for (int r = 0; r < rows; ++r)
          for (int k = 0; k < n; ++k) {
            const double share = motions ? motions->shares[(first + l) * n + k] : k == first + l ? 1.0 : 0.0;
            to[r * n + k] += multiplier_rate[r] * share;
          }
      }
    };
    if (motions)
      motions->template each<R>(arena, add);
    else
      each_direction<R>(tree, arena, add);
  };
  std::fill(out, out + 3 * rows * n, 0.0);
  std::optional<AllowedMotions> changes, holonomic_motions;
  if (tangent) {
    double* M = arena.take<double>(n * n);
    crba(tree, arena, in.q, M);
    changes.emplace(tree, arena, state, M, false);
    if (state.holds_velocities_only()) holonomic_motions.emplace(tree, arena, state, M, true);
  }
  const AllowedMotions* motions = changes ? &*changes : nullptr;
  const auto include_residual = [&](const R& left) {
    for (int l = 0; l < width_of<R>; ++l) worst = std::max(worst, lane(left, l));
  };
  along(holonomic_motions ? &*holonomic_motions : motions, by_q, [&](const R* d) {
    if (tangent) state.follow(d, follows);
    include_residual(state.accelerate({d, tangent ? follows : nullptr}, nullptr, x, R(0.0), {rates.y(), DJ_y, force}));
    return DJ_y;
  });
  along(motions, by_v, [&](const R* d) {
    include_residual(state.accelerate({nullptr, d}, nullptr, x, R(0.0), {nullptr, nullptr, force}));
    return static_cast<R*>(nullptr);
  });
  along(nullptr, by_tau, [&](const R* d) {
    state.push(d, x);
    std::copy(d, d + n, force);
    return static_cast<R*>(nullptr);
  });
  return tangent && worst > tolerances::contradiction ? std::max(worst, state.error()) : state.error();
}

}  // namespace sarrus
