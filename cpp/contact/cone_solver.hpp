// The stages one after another, each from where the last one helps, until one has reached the answer.
#pragma once

#include "cone_sweeps.hpp"

namespace sarrus {

class ConeSolver : public ConeSweeps {
 public:
  using ConeSweeps::ConeSweeps;

  /// From p, a guess, to the impulses; and, if `least` is not null, of those with the same velocities the least ones, which no start and no order of
  /// the rows has a say in.
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
    // what rests: the least impulses are the answer at once, where they satisfy the problem itself
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
    solution.iterations = iterations_;
    if (least) {
      const double now = find_least(best, x);
      give(x, least);
      // they are what makes the motion, where they are as good
      if (now <= tolerance_) std::copy(x, x + n_, best), solution.natural_map = now, solution.reached = true;
    }
    give(best, p);
    return solution;
  }
};

/// The impulses of a problem, from a guess.
inline ConeSolution solve_cones(const ConeProblem& problem, Arena& arena, double* p, double* least, SolverLimit& limit) {
  if (!limit.allows(problem.rows)) return {false, cones::unbounded, 0, 0};
  const Arena::Scope scope(arena);
  return ConeSolver(problem, arena, limit).solve(p, least);
}

}  // namespace sarrus
