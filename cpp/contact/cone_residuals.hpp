// Residuals of impulses p and velocities u = G p + w in a cone problem, with the usual measures (names as in Tsounis et al. 2025). With De Saxce's
// shift u' = u + mu |u_t| n, the cones and intervals K, and their dual cones K*:
//
//   primal   |p - proj_K(p)|         [N s, N m s]
//   dual     |u' - proj_K*(u')|      [m/s, rad/s]   = |proj_K(-u')| (Moreau); none for intervals
//   compl    |p . u'| of a contact   [J]            including its moments; for an interval (p - lo) max(u, 0) + (hi - p) max(-u, 0)
//
// and the work p . (u + u_before) / 2 of contacts [J], which is not positive if they dissipate energy.
#pragma once

#include "cone_problem.hpp"

namespace sarrus {

struct ConeResiduals {
  double primal = 0.0, dual = 0.0, complementarity = 0.0, work = 0.0;

  /// Add the residuals of a later phase of the step.
  void add(const ConeResiduals& next) {
    primal = std::max(primal, next.primal), dual = std::max(dual, next.dual);
    complementarity = std::max(complementarity, next.complementarity), work += next.work;
  }
};

/// Compute the residuals. u_before (rows): velocities before the impulses, without `shift` (rows), which is part of w.
inline ConeResiduals cone_residuals(const ConeProblem& problem, const double* p, const double* shift, const double* u_before) {
  ConeResiduals residuals;
  const int n = problem.rows, contacts = problem.contacts;
  const auto velocity = [&](int i) { return problem.w[i] + scalar_product(problem.G + i * n, p, n); };
  const auto note = [](double& most, double x) { most = std::max(most, std::abs(x)); };
  double work = 0.0;
  int m = 0, at = 3 * contacts;
  for (int i = 0; i < contacts; ++i) {
    // include the rows of a contact, then those of its moments
    FrictionDisk disk[3] = {{problem.friction[i], 0, 1, 2, nullptr}};
    int row[6] = {3 * i, 3 * i + 1, 3 * i + 2}, rows = 3, disks = 1;
    for (; m < problem.moments && problem.moment[m].contact == i; ++m) {
      disk[disks++] = {problem.moment[m].friction, 0, rows, problem.moment[m].rows, nullptr};
      for (int r = 0; r < problem.moment[m].rows; ++r) row[rows++] = at++;
    }
    double u[6], impulse[6], off[6], negative[6], near[6];
    for (int r = 0; r < rows; ++r) {
      const int k = row[r];
      impulse[r] = p[k], u[r] = velocity(k), work += 0.5 * p[k] * (u[r] - shift[k] + u_before[k]);
    }
    for (int d = 0; d < disks; ++d) u[0] += disk[d].mu * disk[d].length(u);
    for (int r = 0; r < rows; ++r) negative[r] = -u[r];
    const double floor = problem.floor ? problem.floor[i] : 0.0;
    project_on_cones(disks, disk, floor, impulse, near), project_on_cones(disks, disk, 0.0, negative, off);
    for (int r = 0; r < rows; ++r) note(residuals.primal, impulse[r] - near[r]), note(residuals.dual, off[r]);
    // an impulse at the floor of p_n does work along u_n itself, so the shift is not included
    note(residuals.complementarity, scalar_product(impulse, u, rows) - floor * velocity(3 * i));
  }
  for (int k = at; k < n; ++k) {
    const double low = problem.low[k - at], high = problem.high[k - at], u = velocity(k);
    const bool has_low = low > -0.1 * cones::unbounded, has_high = high < 0.1 * cones::unbounded;
    note(residuals.primal, p[k] - std::min(std::max(p[k], low), high));
    if (!has_high) note(residuals.dual, std::min(u, 0.0));
    if (!has_low) note(residuals.dual, std::max(u, 0.0));
    note(residuals.complementarity,
         (has_low ? (p[k] - low) * std::max(u, 0.0) : 0.0) + (has_high ? (high - p[k]) * std::max(-u, 0.0) : 0.0));
  }
  residuals.work = work;
  return residuals;
}

}  // namespace sarrus
