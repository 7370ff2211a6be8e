// Efforts of redundant motors within limits. The efforts for a motion are u = u_0 + P p: the least efforts u_0, plus the effect of a preload p
// (loops/efforts.hpp). If D^2 are the weights of the efforts, D P D^-1 is an orthogonal projector. Let V be an orthonormal basis of its range. Then
//
//   u = u_0 + D^-1 V y,    |D (u - u_0)| = |y|
//
// so that the least efforts within limits are the solution of a quadratic programme for the least y. If no efforts are within the limits, a second
// programme computes the least amount t by which all limits would have to be widened.
#pragma once

#include "../loops/efforts.hpp"
#include "../loops/pivoted_qr.hpp"
#include "quadratic_programme.hpp"

namespace sarrus {

struct EffortBounds {
  static constexpr double unlimited = 1e30;  // bound that means no limit
  static constexpr double rounding = 1e-10;  // violation of limits that is tolerated, relative to the largest effort or limit

  const double *lower, *upper;  // (actuators) each

  void clip(int nu, double* u) const {
    for (int i = 0; i < nu; ++i) u[i] = std::min(std::max(u[i], lower[i]), upper[i]);
  }
  double largest(int nu, const double* unit, const double* u) const {
    double most = 0.0;
    for (int i = 0; i < nu; ++i)
      for (const double x : {u[i], lower[i], upper[i]})
        if (std::abs(x) < unlimited) most = std::max(most, unit[i] * std::abs(x));
    return most;
  }
};

/// Change u, along the k columns of `moves` (nu x k, row-major), by the shortest step that brings it between the bounds. Returns 0, or the amount by
/// which the bounds are too narrow. Because the tolerance of the programme is absolute, u is scaled by the largest effort, and `moves` by its longest
/// row.
inline double move_between(QuadraticProgramme solve, Arena& arena, int nu, int k, const double* moves, const double* unit,
                           const EffortBounds& bounds, double* u) {
  const double size = bounds.largest(nu, unit, u);
  double lacking = 0.0, excess = 0.0, widest = 0.0;
  for (int i = 0; i < nu; ++i) {
    const double short_of = std::max(bounds.lower[i] - u[i], u[i] - bounds.upper[i]);
    lacking = std::max(lacking, short_of), excess = std::max(excess, unit[i] * short_of), widest = std::max(widest, unit[i]);
  }
  constexpr double slack = EffortBounds::rounding;
  if (excess <= slack * size || k == 0) {
    bounds.clip(nu, u);
    return excess <= slack * size ? 0.0 : lacking;
  }
  const auto low = [&](int i) {
    return bounds.lower[i] > -EffortBounds::unlimited ? (bounds.lower[i] - u[i]) * unit[i] / size : -EffortBounds::unlimited;
  };
  const auto high = [&](int i) {
    return bounds.upper[i] < EffortBounds::unlimited ? (bounds.upper[i] - u[i]) * unit[i] / size : EffortBounds::unlimited;
  };
  const int n = k + 1, rows = 2 * nu;
  double *H = arena.take<double>(n * n), *zero = arena.take<double>(n), *y = arena.take<double>(n),
         *C = arena.take<double>(rows * n), *lower = arena.take<double>(rows), *upper = arena.take<double>(rows),
         *force = arena.take<double>(rows), *scaled = arena.take<double>(nu * k), longest = 0.0;
  for (int i = 0; i < nu; ++i) {
    const double* row = moves + i * k;
    longest = std::max(longest, unit[i] * std::sqrt(dot_product(k, row, row)));
  }
  for (int i = 0; i < nu; ++i)
    for (int j = 0; j < k; ++j) scaled[i * k + j] = unit[i] * moves[i * k + j] / longest;
  const auto set_cost = [&](int count) {
    std::fill(H, H + count * count, 0.0), std::fill(zero, zero + count, 0.0);
    for (int j = 0; j < count; ++j) H[j * count + j] = 1.0;
  };
  const auto move = [&](double share) {
    for (int i = 0; i < nu; ++i) u[i] += share * size / unit[i] * dot_product(k, scaled + i * k, y);
    bounds.clip(nu, u);
  };
  set_cost(k);
  for (int i = 0; i < nu; ++i) lower[i] = low(i) - 0.5 * slack, upper[i] = high(i) + 0.5 * slack;
  if (solve(k, nu, H, zero, scaled, lower, upper, y, force) > 0) {
    double most = 0.0, *end = arena.take<double>(nu);
    for (int i = 0; i < nu; ++i) most = std::max(most, std::abs(force[i]));
    const auto holds = [&](int i) { return std::abs(force[i]) > 1e-9 * most; };
    int active = 0;
    for (int i = 0; i < nu; ++i)
      if (holds(i)) end[active++] = force[i] > 0.0 ? high(i) : low(i);
    for (int i = 0, r = 0; i < nu; ++i)  // C is stored column by column; each column has `end` entries
      if (holds(i)) {
        for (int j = 0; j < k; ++j) C[j * active + r] = scaled[i * k + j];
        ++r;
      }
    PivotedQr(active, k, C, arena, 1e-12).solve(end, y);  // compute y again from the active bounds, to full precision
    move(1.0);
    return 0.0;
  }
  constexpr double little = 1e-4;  // weight of |y| relative to t
  set_cost(n);
  for (int i = 0; i < nu; ++i)
    for (const int side : {0, 1}) {
      double* row = C + (i + side * nu) * n;
      for (int j = 0; j < k; ++j) row[j] = scaled[i * k + j] / little;
      row[k] = (side ? -1.0 : 1.0) * unit[i] / widest;
      lower[i + side * nu] = side ? -EffortBounds::unlimited : low(i),
                       upper[i + side * nu] = side ? high(i) : EffortBounds::unlimited;
    }
  if (solve(n, rows, H, zero, C, lower, upper, y, force) <= 0) return lacking;  // upper bound of the amount
  move(1.0 / little);
  return y[k] <= slack ? 0.0 : y[k] * size / widest;
}

/// Compute u (actuators) and, if the bounds are too narrow, by how much. Returns the relative residual of the motors' equation.
inline double bounded_efforts(QuadraticProgramme solve, const Tree& tree, Arena& arena, const RneaInput<double>& in,
                              const double* time, const double* pfaffian_values, const Sharing<double>& sharing,
                              const EffortBounds& bounds, double* u, double& lacking) {
  const int nu = tree.loops.actuators;
  double *P = arena.take<double>(nu * nu), *root = arena.take<double>(nu), *unit = arena.take<double>(nu),
         *moves = arena.take<double>(nu * nu);
  const double error =
      actuator_efforts(tree, arena, in, time, pfaffian_values, sharing, u, static_cast<OffLoops<double>*>(nullptr), P);
  for (int i = 0; i < nu; ++i) {
    unit[i] = unit_of_effort<double>(tree, i);
    root[i] = sharing.weights ? std::sqrt(sharing.weights[i]) : unit[i];
  }
  for (int j = 0; j < nu; ++j)
    for (int i = 0; i < nu; ++i) P[j * nu + i] *= root[i] / root[j];
  // the longest column of a projector is removed first, so the norm of a remaining column is either of order one or at rounding level
  constexpr double dependent = 1e-3;
  const PivotedQr range(nu, nu, P, arena, dependent, 1.0);
  double* v = arena.take<double>(nu);
  for (int j = 0; j < range.rank; ++j) {
    std::fill(v, v + nu, 0.0), v[j] = 1.0;
    range.times(v);
    for (int i = 0; i < nu; ++i) moves[i * range.rank + j] = v[i] / root[i];
  }
  lacking = move_between(solve, arena, nu, range.rank, moves, unit, bounds, u);
  return error;
}

}  // namespace sarrus
