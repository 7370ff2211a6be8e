// Saddle equation [M J^T; J -S] [x; y] = [f; g], for all problems with loops. M is symmetric and positive semidefinite (the mass matrix, or a
// diagonal). S is a diagonal that is zero except in compliant rows. J is arbitrary: rows may be dependent.
//
// -mu is added to the lower right block, and epsilon is added to the diagonal entries of M that have no inertia. The matrix is then quasi-definite: L
// D L^T exists in every order and needs no pivoting (Vanderbei 1995). The order is fixed once per mechanism. A few corrections, driven by the
// residual of the equation without mu, remove the effect of mu: this is the proximal method. Along independent rows each correction leaves the
// fraction mu / (mu + eigenvalue of J M^-1 J^T) of the error. Along dependent rows there is no residual, so nothing has to be corrected. (Carpentier,
// Budhiraja and Mansard 2021; Featherstone, [RBDA] 6.5 for the order.)
#pragma once

#include <type_traits>

#include "fronts.hpp"
#include "panels.hpp"

namespace sarrus {

/// Factorise the matrix, regularised by epsilon (nv; null: zero) and mu (rows).
template <class T> SARRUS_NOINLINE Factor<T> factorise(const Saddle<T>& s, Arena& arena, const T* epsilon, const T* mu) {
  const Elimination& e = s.plan;
  if (e.fronts) return factorise_by_fronts(s, arena, epsilon, mu);
  const int nv = s.tree.nv;
  T* L = arena.take<T>(e.slots);
  T *D_inverse = arena.take<T>(e.unknowns), *used = arena.take<T>(s.rows);
  for (int k = 0; k < e.slots; ++k) L[k] = T(0.0);
  const int entries = s.mass_first ? s.mass_first[nv] : nv;
  for (int k = 0; k < entries; ++k) L[e.mass_slot[k]] = s.M[k];
  if (epsilon)
    for (int i = 0; i < nv; ++i) L[e.first[e.place[i]]] += epsilon[i];
  for (int r = 0; r < s.rows; ++r) {
    if (s.soft) L[e.first[e.place[nv + r]]] = -s.soft[r];
  }
  const int* slot = e.jacobian_slot;
  const T* J = s.J;
  for (int i = 0; i < s.constraints; ++i) {
    const int size = s.tree.loops.constraint[i].rows * s.tree.loops.constraint[i].columns;
    for (int k = 0; k < size; ++k) L[*slot++] = *J++;
  }

  eliminate_panels(e, L, D_inverse, [&](int k, T& d) SARRUS_INLINED {
    if (e.unknown[k] >= nv)
      used[e.unknown[k] - nv] = subtract_mu(d, mu[e.unknown[k] - nv], [&] {
        T passed = T(0.0);
        for (int i = e.before[k]; i < e.before[k + 1]; ++i) {
          const T& l = L[e.before_slot[i]];
          passed += l * l * abs(L[e.first[e.before_row[i]]]);
        }
        return passed;
      });
    D_inverse[k] = T(1.0) / d;
  });
  return {L, D_inverse, used};
}

/// Replace x (velocities, then rows) by the solution with the regularised matrix. T is the factor's scalar, or a packet of right-hand sides for the
/// factor of one state (not with fronts).
template <class F, class T> SARRUS_NOINLINE void solve(const Elimination& e, const Factor<F>& f, Arena& arena, T* x) {
  if constexpr (std::is_same_v<F, T>)
    if (e.fronts) return solve_by_fronts(e, f, arena, x);
  solve_by_panels(e, f, x);
}

/// r = b - [M J^T; J -S] x. Returns its squared norm, in which each entry is weighted by its mobility. T is the matrix's scalar, or a packet of
/// right-hand sides, as in `solve`.
template <class F, class T> SARRUS_NOINLINE T residual(const Saddle<F>& s, const T* b, const T* x, T* r) {
  const int nv = s.tree.nv;
  const T* y = x + nv;
  for (int k = 0; k < nv + s.rows; ++k) r[k] = b[k];
  const F* M = s.M;
  for (int i = 0; i < nv; ++i) {
    T sum = r[i] - *M++ * x[i];
    const int n = s.entries(i);
    for (int k = 1, j = s.tree.column_parent[i]; k < n; ++k, j = s.tree.column_parent[j]) {
      sum -= *M * x[j];
      r[j] -= *M++ * x[i];
    }
    r[i] = sum;
  }
  const F* J = s.J;
  for (int i = 0; i < s.constraints; ++i) {
    const Constraint& c = s.tree.loops.constraint[i];
    T* below = r + nv + c.row;
    const T* force = y + c.row;
    for (int k = 0; k < c.columns; ++k) {
      const T motion = x[c.column[k]];
      T sum = r[c.column[k]];
      for (int l = 0; l < c.rows; ++l) {
        sum -= *J * force[l];
        below[l] -= *J++ * motion;
      }
      r[c.column[k]] = sum;
    }
  }
  if (s.soft)
    for (int k = 0; k < s.rows; ++k) r[nv + k] += s.soft[k] * y[k];
  T size = T(0.0);
  for (int k = 0; k < nv; ++k) size += r[k] * r[k] * s.mobility[k];
  for (int k = 0; k < s.rows; ++k) size += r[nv + k] * r[nv + k] * s.row_weight[k];
  return size;
}

/// Solve the unregularised equation for x = [x; y]. Returns the squared norm of the remaining residual, or of the last one computed.
///
/// Corrections end if one changes the motion by less than 1e-12 of its norm, or by less than the rounding of an unconstrained motion. They also end
/// if a correction is not smaller than the previous one and does not reduce the residual, because such corrections are rounding errors. The residual
/// alone cannot be the criterion. Near a singular position the residual is at rounding level from the beginning, but the error of the solution is
/// large, and each correction removes only a small part of it (the fraction lambda / (mu + lambda) of Carpentier et al.). Motions are measured by the
/// minimised quantity x^T M x + y^T S y, which makes metres and radians comparable and ignores motions without inertia. The solutions of finished
/// lanes do not change.
template <class F, class T>
SARRUS_NOINLINE T refine(const Saddle<F>& s, Arena& arena, const Factor<F>& f, const T* b, T* x, int most) {
  const int n = s.plan.unknowns;
  T *r = arena.take<T>(n), *step = arena.take<T>(n);
  const int nv = s.tree.nv;
  for (int k = 0; k < n; ++k) x[k] = b[k];
  solve(s.plan, f, arena, x);
  T error = residual(s, b, x, r);
  auto active = error > T(0.0);
  T before = T(1e150);  // squared norm of the previous correction
  T unheld = T(0.0);  // squared norm of the unconstrained motion
  for (int i = 0; i < nv; ++i) unheld += b[i] * b[i] * s.mobility[i];
  for (int r = 0; r < s.rows; ++r) unheld += b[nv + r] * b[nv + r] * s.row_weight[r];
  LastCorrection<T> last = {T(0.0), T(0.0), T(0.0), unheld};
  for (int k = 0; k < most && any(active); ++k) {
    for (int i = 0; i < n; ++i) step[i] = r[i];
    solve(s.plan, f, arena, step);
    T moved = T(0.0), size = T(0.0);
    const auto count = [&](int i, const T& metric) SARRUS_INLINED {
      const T sum = x[i] + step[i];
      moved += step[i] * step[i] * metric, size += sum * sum * metric;
    };
    for (int i = 0; i < nv; ++i) count(i, s.inertia ? s.inertia[i] : s.M[s.first_entry(i)]);
    for (int r = 0; s.soft && r < s.rows; ++r) count(nv + r, s.soft[r]);
    for (int i = 0; i < n; ++i) step[i] += x[i];
    // if the motion of a lane no longer changes, the lane is finished, and its residual is not needed; in lanes that are not finished, the residual
    // determines if the correction is accepted
    const T little = size * tolerance<T>(1e-24, 1e-14) + unheld * T(1e-30);
    const auto settled = both(active, moved < little), unsettled = both(active, moved > little);
    T next_error = error;
    if (any(unsettled)) next_error = residual(s, b, step, r);
    // a correction is accepted if the smaller of the two ratios (motion / previous motion, residual / previous residual) is below 1; no division is
    // needed for this comparison
    const T by_motion = moved * error, by_residual = next_error * before, previous = before * error;
    const auto accepted = both(unsettled, select(by_motion < by_residual, by_motion, by_residual) < previous);
    for (int i = 0; i < n; ++i) x[i] = select(settled, step[i], select(accepted, step[i], x[i]));
    const T clearly = by_residual * T(1.0 / 0.9);
    active = both(accepted, select(by_motion < clearly, by_motion, clearly) < previous);
    error = select(accepted, next_error, error);
    last.moved = moved, last.before = k > 0 ? before : size, last.size = size;
    before = moved;
  }
  expect_settled(last);
  return error;
}

}  // namespace sarrus
