// Poisson's restitution. An impact is a compression, after which contacts are at rest along their normals, and then an expansion, whose normal
// impulse is at least e times that of compression:
//
//   u_c = G p_c + w,    p_c within the cones;      u_e = G p_e + u_c,    p_e within the cones and p_e,n >= e p_c,n        p = p_c + p_e
//
// Each phase includes De Saxce's shift, and its friction is limited by its total p_n (Glocker 2013, without his tangential restitution). For a single
// contact without friction, u_e,n = -e u_n, as in Newton's law. Poisson's law adds no energy without friction, nor for a single contact with
// friction (Glocker); for several contacts there are counterexamples (restitution.hpp). Intervals apply to the sum of both phases' impulses.
#pragma once

#include "islands.hpp"

namespace sarrus {

/// Return the problem of expansion after the impulses p of compression; restitution: e of each contact (contacts). The result is valid during the
/// arena's scope.
inline ConeProblem expansion(const ConeProblem& problem, const double* restitution, Arena& arena, const double* p) {
  const int n = problem.rows, first = problem.first_interval();
  double *w = arena.take<double>(n), *floor = arena.take<double>(problem.contacts), *low = arena.take<double>(n - first),
         *high = arena.take<double>(n - first);
  for (int i = 0; i < n; ++i) w[i] = problem.w[i] + scalar_product(problem.G + i * n, p, n);
  for (int i = 0; i < problem.contacts; ++i) floor[i] = restitution[i] * p[3 * i];
  const auto left = [](double end, double by) { return std::abs(end) < 0.1 * cones::unbounded ? end - by : end; };
  for (int i = first; i < n; ++i)
    low[i - first] = left(problem.low[i - first], p[i]), high[i - first] = left(problem.high[i - first], p[i]);
  ConeProblem second = problem;
  second.w = w, second.floor = floor, second.low = low, second.high = high;
  return second;
}

/// Solve the expansion, and add its impulses q to the impulses p of compression. Each residual is set to the larger of the residuals of both phases.
inline void expand(const ConeProblem& second, Arena& arena, double* q, double* p, double* least, ConeSolution& solution,
                   SolverLimit& limit) {
  const Arena::Scope scope(arena);
  const int n = second.rows;
  double* least_q = arena.take<double>(n);
  std::fill(q, q + n, 0.0);
  for (int i = 0; i < second.contacts; ++i) q[3 * i] = second.floor[i];
  const ConeSolution expanded = solve_parts(second, arena, q, least_q, limit);
  for (int i = 0; i < n; ++i) p[i] += q[i], least[i] += least_q[i];
  solution.reached &= expanded.reached, solution.natural_map = std::max(solution.natural_map, expanded.natural_map);
  solution.iterations += expanded.iterations, solution.stage = std::max(solution.stage, expanded.stage);
}

}  // namespace sarrus
