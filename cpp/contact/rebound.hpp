// Newton's restitution, limited by energy. An impact adds e u_n to w_n, so that contacts leave with u_n' = -e u_n. With friction, or with different e
// in several contacts, the impulses of this law may do positive work (Kane and Levinson 1985; Glocker 2013, part I). An island in which they would
// leaves with the largest common fraction of all its e at which the work p . (u + u_before) / 2 is not positive. Without restitution it never is.
#pragma once

#include "islands.hpp"

namespace sarrus {

namespace cones {
/// Largest positive work of an impact, relative to the sum of the absolute works of its impulses: ten times the solver's tolerance.
constexpr double gain = 1e-9;
/// Largest number of trial fractions of the restitution of an island.
constexpr int rebound_trials = 40;
}  // namespace cones

struct Rebound {
  double* speed;  // (contacts) e u_n, not positive, as contained in w_n. A limited restitution makes it smaller
  const double* before;  // (rows) velocities before the impulses
  const double* shift;  // (rows) other parts of w that are no velocities; null: zero
};

/// Solves a cone problem with less restitution in the islands that gain energy.
class ReboundLimit {
 public:
  /// `w`: the same array as in the problem, because it changes.
  ReboundLimit(const ConeProblem& problem, double* w, const Rebound& rebound, Arena& arena)
      : problem_(problem), w_(w), rebound_(rebound), arena_(arena), part_(arena.take<int>(problem.rows)) {}

  void apply(double* p, double* least, ConeSolution& solution, SolverLimit& limit) {
    const int parts = number_parts(problem_, arena_, part_);
    for (int k = 0; k < parts && solution.reached; ++k) {
      bool bounces = false;
      for (int i = 0; i < problem_.contacts; ++i) bounces |= part_[i] == k && rebound_.speed[i] < 0.0;
      if (double size; bounces && work(k, p, size) > cones::gain * size) reduce(k, p, least, solution, limit);
    }
  }

 private:
  /// Work of the impulses on an island. `size`: the sum of the absolute works.
  double work(int part, const double* p, double& size) const {
    const int n = problem_.rows, contacts = problem_.contacts;
    double work = 0.0;
    size = 0.0;
    for (int i = 0; i < n; ++i) {
      if (part_[i < 3 * contacts ? i / 3 : i - 2 * contacts] != part) continue;
      double u = w_[i] + scalar_product(problem_.G + i * n, p, n) - (rebound_.shift ? rebound_.shift[i] : 0.0);
      if (i < 3 * contacts && i % 3 == 0) u -= rebound_.speed[i / 3];
      const double before = rebound_.before[i];
      work += 0.5 * p[i] * (u + before), size += 0.5 * std::abs(p[i]) * (std::abs(u) + std::abs(before));
    }
    return work;
  }
  /// Find the largest fraction of the island's restitution that adds no energy, by false position (Illinois).
  void reduce(int part, double* p, double* least, ConeSolution& solution, SolverLimit& limit) {
    const Arena::Scope scope(arena_);
    const int n = problem_.rows, contacts = problem_.contacts;
    double *full = arena_.take<double>(contacts), *p_low = arena_.take<double>(n), *least_low = arena_.take<double>(n), size;
    std::copy(rebound_.speed, rebound_.speed + contacts, full);
    const auto set = [&](double fraction) {
      for (int i = 0; i < contacts; ++i)
        if (part_[i] == part) w_[3 * i] += fraction * full[i] - rebound_.speed[i], rebound_.speed[i] = fraction * full[i];
    };
    const double most = work(part, p, size);
    double low = 0.0, high = 1.0, allowed = 0.0, at_low = 0.0, at_high = most, left = HUGE_VAL;
    int last = 0;  // the end that the last trial moved, -1 or 1
    for (int k = 0; k < cones::rebound_trials && left > cones::gain * size; ++k) {
      const double fraction = k == 0 ? 0.0 : low + (high - low) * std::clamp(at_low / (at_low - at_high), 1e-3, 1.0 - 1e-3);
      set(fraction);
      const ConeSolution trial = solve_parts(problem_, arena_, p, least, limit);
      if (k == 0 && !trial.reached) return void(solution = trial);
      const double now = trial.reached ? work(part, p, size) : most;
      if (k == 0) allowed = std::max(0.0, now), at_high = std::max(at_high - allowed, 0.0);  // penetration may cost energy
      if (trial.reached && now <= allowed) {
        low = fraction, at_low = now - allowed, left = allowed - now, solution = trial;
        at_high *= last < 0 ? 0.5 : 1.0, last = -1;
        std::copy(p, p + n, p_low), std::copy(least, least + n, least_low);
      } else {
        high = fraction, at_high = std::max(now - allowed, 0.0), at_low *= last > 0 ? 0.5 : 1.0, last = 1;
      }
    }
    set(low), std::copy(p_low, p_low + n, p), std::copy(least_low, least_low + n, least);
  }

  const ConeProblem& problem_;
  double* w_;
  const Rebound& rebound_;
  Arena& arena_;
  int* part_;
};

/// Reduce the restitution of each island whose impulses p do positive work, in `w`, which is the problem's, and in `rebound`.
inline void limit_rebound(const ConeProblem& problem, double* w, const Rebound& rebound, Arena& arena, double* p, double* least,
                          ConeSolution& solution, SolverLimit& limit) {
  if (std::none_of(rebound.speed, rebound.speed + problem.contacts, [](double speed) { return speed < 0.0; })) return;
  const Arena::Scope scope(arena);
  ReboundLimit(problem, w, rebound, arena).apply(p, least, solution, limit);
}

}  // namespace sarrus
