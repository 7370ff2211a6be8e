// Solver of cone problems: tries the stages in order until one of them finds the solution.
#pragma once

#include "cone_sweeps.hpp"

namespace sarrus {

class ConeSolver : public ConeSweeps {
 public:
  using ConeSweeps::ConeSweeps;

  /// Solve from the guess p, which becomes the impulses. `least` (or null) receives the impulses of least norm that have the same velocities; these
  /// depend neither on the guess nor on the order of the rows.
  ConeSolution solve(double* p, double* least) {
    double *best = take(n_), *start = take(n_), *zero = take(n_), *x = take(n_);
    std::fill(zero, zero + n_, 0.0);
    project(zero, best);
    ConeSolution solution = {false, natural_map(best), 0, 0};
    for (int i = 0; i < n_; ++i) x[i] = finite_bits(p[i]) ? p[i] / (size_ * scale_[i]) : 0.0;
    project(x, start);
    const auto tries = [&](int stage, auto method, const double* from) {
      if (solution.reached || limit_.over()) return;
      std::copy(from, from + n_, x);
      (this->*method)(x);
      const double now = natural_map(x);
      if (now <= std::max(solution.natural_map, tolerance_)) std::copy(x, x + n_, best), solution.natural_map = now;
      solution.reached = now <= tolerance_, solution.stage = stage;
    };
    solution.reached = solution.natural_map == 0.0;
    // if contacts rest, the impulses of least norm often satisfy the problem itself, and no stage is needed
    if (least && !solution.reached) {
      std::copy(start, start + n_, x);
      if (const double now = find_least_at_rest(x); now <= tolerance_) {
        give(x, least), give(x, p);
        return {true, now, iterations_, 1};
      }
    }
    tries(1, &ConeSolver::proximal, start);
    if (!slips_) tries(2, &ConeSolver::interior_at_once, zero);
    if (!slips_) tries(2, &ConeSolver::interior_slowly, zero);
    tries(3, &ConeSolver::swept, zero);
    tries(4, &ConeSolver::proximal_from_afar, start);
    tries(4, &ConeSolver::proximal_from_afar, zero);
    tries(4, &ConeSolver::proximal_to_weakest, start);
    tries(4, &ConeSolver::proximal_to_weakest, zero);
    solution.iterations = iterations_;
    if (least) {
      const double now = find_least(best, x);
      give(x, least);
      // the impulses of least norm replace the solution if they are as accurate
      if (now <= tolerance_) std::copy(x, x + n_, best), solution.natural_map = now, solution.reached = true;
    }
    give(best, p);
    return solution;
  }
};

/// Solve a problem for its impulses, from the guess p.
inline ConeSolution solve_cones(const ConeProblem& problem, Arena& arena, double* p, double* least, SolverLimit& limit) {
  if (!limit.allows(problem.rows)) return {false, cones::unbounded, 0, 0};
  const Arena::Scope scope(arena);
  return ConeSolver(problem, arena, limit).solve(p, least);
}

}  // namespace sarrus
