// Efforts of redundant motors within limits. What brings a motion about is u = u_0 + P p: the least efforts, and what a preload p becomes in
// them (loops/efforts.hpp). Where efforts are weighed by D^2, D P D^-1 is an orthogonal projector; with V an orthonormal basis of what it leaves,
//
//   u = u_0 + D^-1 V y,    |D (u - u_0)| = |y|
//
// so that the least efforts between limits are a quadratic programme for the least y. Where no efforts are between them, the programme for the
// least t by which all limits would have to be wider tells how much they lack.
#pragma once

#include "../loops/efforts.hpp"
#include "../loops/pivoted_qr.hpp"
#include "quadratic_programme.hpp"

namespace sarrus {

struct EffortBounds {
  static constexpr double far = 1e30;  // no limit
  static constexpr double rounding = 1e-10;  // by which limits may be missed, relative to the largest effort or limit

  const double *lower, *upper;  // actuators

  void clip(int nu, double* u) const {
    for (int i = 0; i < nu; ++i) u[i] = std::min(std::max(u[i], lower[i]), upper[i]);
  }
  double slack(int nu, const double* u) const {
    double largest = 0.0;
    for (int i = 0; i < nu; ++i)
      for (const double x : {u[i], lower[i], upper[i]})
        if (std::abs(x) < far) largest = std::max(largest, std::abs(x));
    return rounding * largest;
  }
};

/// The least motion of u along k directions, rows of `moves` (nu x k), that brings it between the bounds. Returns by how much they lack, or 0.
inline double move_between(QuadraticProgramme solve, Arena& arena, int nu, int k, const double* moves, const EffortBounds& bounds,
                           double* u) {
  const double slack = bounds.slack(nu, u);
  const auto low = [&](int i) { return std::max(bounds.lower[i] - u[i], -EffortBounds::far); };
  const auto high = [&](int i) { return std::min(bounds.upper[i] - u[i], EffortBounds::far); };
  double lacking = 0.0;
  for (int i = 0; i < nu; ++i) lacking = std::max({lacking, low(i), -high(i)});
  if (lacking <= slack || k == 0) {
    bounds.clip(nu, u);
    return lacking <= slack ? 0.0 : lacking;
  }
  const int n = k + 1, rows = 2 * nu;
  double *H = arena.take<double>(n * n), *zero = arena.take<double>(n), *y = arena.take<double>(n),
         *C = arena.take<double>(rows * n), *lower = arena.take<double>(rows), *upper = arena.take<double>(rows),
         *force = arena.take<double>(rows);
  const auto unit = [&](int size) {
    std::fill(H, H + size * size, 0.0), std::fill(zero, zero + size, 0.0);
    for (int j = 0; j < size; ++j) H[j * size + j] = 1.0;
  };
  const auto move = [&](double scale) {
    for (int i = 0; i < nu; ++i) u[i] += scale * dot_product(k, moves + i * k, y);
    bounds.clip(nu, u);
  };
  unit(k);
  for (int i = 0; i < nu; ++i) lower[i] = low(i) - 0.5 * slack, upper[i] = high(i) + 0.5 * slack;
  if (solve(k, nu, H, zero, moves, lower, upper, y, force) > 0) {
    double most = 0.0, *end = arena.take<double>(nu);
    for (int i = 0; i < nu; ++i) most = std::max(most, std::abs(force[i]));
    const auto holds = [&](int i) { return std::abs(force[i]) > 1e-9 * most; };
    int active = 0;
    for (int i = 0; i < nu; ++i)
      if (holds(i)) end[active++] = force[i] > 0.0 ? high(i) : low(i);
    for (int i = 0, r = 0; i < nu; ++i)  // columns, of so many numbers
      if (holds(i)) {
        for (int j = 0; j < k; ++j) C[j * active + r] = moves[i * k + j];
        ++r;
      }
    PivotedQr(active, k, C, arena, 1e-12).solve(end, y);  // with all digits
    move(1.0);
    return 0.0;
  }
  constexpr double little = 1e-4;  // |y| counts next to nothing beside t
  unit(n);
  for (int i = 0; i < nu; ++i)
    for (const int side : {0, 1}) {
      double* row = C + (i + side * nu) * n;
      for (int j = 0; j < k; ++j) row[j] = moves[i * k + j] / little;
      row[k] = side ? -1.0 : 1.0;
      lower[i + side * nu] = side ? -EffortBounds::far : low(i), upper[i + side * nu] = side ? high(i) : EffortBounds::far;
    }
  if (solve(n, rows, H, zero, C, lower, upper, y, force) <= 0) return lacking;  // enough, but perhaps not the least
  move(1.0 / little);
  return y[k] <= slack ? 0.0 : y[k];
}

/// u (actuators), and by how much the bounds lack; returns the relative residual of the motors' equation.
inline double bounded_efforts(QuadraticProgramme solve, const Tree& tree, Arena& arena, const RneaInput<double>& in,
                              const double* time, const double* pfaffian_values, const Sharing<double>& sharing,
                              const EffortBounds& bounds, double* u, double& lacking) {
  const int nu = tree.loops.actuators;
  double *P = arena.take<double>(nu * nu), *root = arena.take<double>(nu), *moves = arena.take<double>(nu * nu);
  const double error =
      actuator_efforts(tree, arena, in, time, pfaffian_values, sharing, u, static_cast<OffLoops<double>*>(nullptr), P);
  for (int i = 0; i < nu; ++i) root[i] = sharing.weights ? std::sqrt(sharing.weights[i]) : unit_of_effort<double>(tree, i);
  for (int j = 0; j < nu; ++j)
    for (int i = 0; i < nu; ++i) P[j * nu + i] *= root[i] / root[j];
  constexpr double nothing = 1e-3;  // what is left of a projector's column, longest first, is of order one or rounding
  const PivotedQr range(nu, nu, P, arena, nothing, 1.0);
  double* v = arena.take<double>(nu);
  for (int j = 0; j < range.rank; ++j) {
    std::fill(v, v + nu, 0.0), v[j] = 1.0;
    range.times(v);
    for (int i = 0; i < nu; ++i) moves[i * range.rank + j] = v[i] / root[i];
  }
  lacking = move_between(solve, arena, nu, range.rank, moves, bounds, u);
  return error;
}

}  // namespace sarrus
