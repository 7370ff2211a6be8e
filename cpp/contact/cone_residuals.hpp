// How well impulses p and velocities u = G p + w satisfy a cone problem, by the usual measures (Tsounis et al. 2025, whose names they have); with De
// Saxce's shift u' = u + mu |u_t| n, K the cones and intervals, K* what is dual to them:
//
//   primal   |p - proj_K(p)|         [N s, N m s]
//   dual     |u' - proj_K*(u')|      [m/s, rad/s]   = |proj_K(-u')| (Moreau); of what has two ends none
//   compl    |p . u'| of a contact   [J]            of an interval (p - lo) max(u, 0) + (hi - p) max(-u, 0)
//
// and the work p . (u + u_before) / 2 of contacts [J], which does not grow where they take energy.
#pragma once

#include "cone_problem.hpp"

namespace sarrus {

struct ConeResiduals {
  double primal = 0.0, dual = 0.0, complementarity = 0.0, work = 0.0;
};

/// u_before (rows): velocities before the impulses, without what stands in w besides.
inline ConeResiduals cone_residuals(const ConeProblem& problem, const double* p, const double* shift, const double* u_before) {
  ConeResiduals residuals;
  const int n = problem.rows, contacts = problem.contacts;
  const auto velocity = [&](int i) { return problem.w[i] + scalar_product(problem.G + i * n, p, n); };
  const auto note = [](double& most, double x) { most = std::max(most, std::abs(x)); };
  double work = 0.0;
  for (int i = 0; i < contacts; ++i) {
    const double mu = problem.friction[i];
    double u[3];
    for (int r = 0; r < 3; ++r) {
      const int k = 3 * i + r;
      u[r] = velocity(k), work += 0.5 * p[k] * (u[r] - shift[k] + u_before[k]);
    }
    u[0] += mu * std::sqrt(u[1] * u[1] + u[2] * u[2]);
    double off[3], negative[3] = {-u[0], -u[1], -u[2]}, near[3];
    project_on_cone(mu, p + 3 * i, near);
    for (int r = 0; r < 3; ++r) note(residuals.primal, p[3 * i + r] - near[r]);
    project_on_cone(mu, negative, off);
    for (const double x : off) note(residuals.dual, x);
    note(residuals.complementarity, scalar_product(p + 3 * i, u, 3));
  }
  for (int k = 3 * contacts; k < n; ++k) {
    const double low = problem.low[k - 3 * contacts], high = problem.high[k - 3 * contacts], u = velocity(k);
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
