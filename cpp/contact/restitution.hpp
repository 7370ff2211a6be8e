// Restitution that adds no energy. By Newton's law an impact adds e u_n to w_n, so that contacts leave with u_n' = -e u_n; by Poisson's law it has a
// phase of expansion (poisson.hpp). With friction, or with several contacts, the impulses of either law may do positive work (Kane and Levinson 1985;
// Glocker 2013). If they would do so in an island, all coefficients e of this island are multiplied by the largest common fraction at which the work
// p . (u + u_before) / 2 is not positive. Such a fraction exists, because the work is never positive without restitution.
#pragma once

#include "poisson.hpp"

namespace sarrus {

namespace cones {
/// Largest positive work of an impact, relative to the sum of the absolute works of its impulses: ten times the solver's tolerance.
constexpr double gain = 1e-9;
/// Largest number of trial fractions of the restitution of an island.
constexpr int restitution_trials = 40;
}  // namespace cones

/// Velocities of the rows of a cone problem before an impact, and the terms of w that are not velocities.
struct ImpactRows {
  const double *before, *shift;  // (rows); a null shift is zero
  double* rebound;  // (contacts) e u_n of Newton's law, not positive
};

/// Impulses of a cone problem, and the islands on which they act. Reduces restitution in the islands that gain energy.
class RestitutionLimit {
 public:
  RestitutionLimit(const ConeProblem& problem, const ImpactRows& rows, Arena& arena, double* p, double* least,
                   ConeSolution& solution, SolverLimit& limit)
      : problem_(problem),
        rows_(rows),
        arena_(arena),
        p_(p),
        least_(least),
        solution_(solution),
        limit_(limit),
        part_(arena.take<int>(problem.rows)),
        parts_(number_parts(problem, arena, part_)) {}

  /// Reduce the rebound e u_n of Newton's law of an island whose impulses would do positive work, and solve for the impulses again. Changes `w`, the
  /// constant velocities of the cone problem, and `rebound`.
  void newton(double* w) {
    const auto work = [&](int part) { return work_of(part, w, p_, rows_.before); };
    reduce(rows_.rebound, work, [&](int part, double fraction, const double* full) {
      for (int i = 0; i < problem_.contacts; ++i)
        if (part_[i] == part) w[3 * i] += fraction * full[i] - rows_.rebound[i], rows_.rebound[i] = fraction * full[i];
      solution_ = solve_parts(problem_, arena_, p_, least_, limit_);
    });
  }
  /// Compute the expansion with Poisson's restitution e (contacts), which is reduced if necessary. `q` receives the impulses of expansion. Returns
  /// the problem of expansion.
  ConeProblem poisson(double* e, double* q) {
    const int n = problem_.rows;
    double *p = copy(p_), *least = copy(least_), *u = arena_.take<double>(n);
    const ConeSolution compressed = solution_;
    const ConeProblem second = expansion(problem_, e, arena_, p);
    expand(second, arena_, q, p_, least_, solution_, limit_);
    for (int i = 0; i < n; ++i) u[i] = second.w[i] - shift(i);
    const auto work = [&](int part) {
      const Work first = work_of(part, problem_.w, p, rows_.before), next = work_of(part, second.w, q, u);
      return Work{first.sum + next.sum, first.size + next.size};
    };
    reduce(e, work, [&](int part, double fraction, const double* full) {
      for (int i = 0; i < problem_.contacts; ++i)
        if (part_[i] == part) e[i] = fraction * full[i];
      std::copy(p, p + n, p_), std::copy(least, least + n, least_), solution_ = compressed;
      const Arena::Scope scope(arena_);
      expand(expansion(problem_, e, arena_, p), arena_, q, p_, least_, solution_, limit_);
    });
    for (int i = 0; i < n; ++i) q[i] = p_[i] - p[i];
    return expansion(problem_, e, arena_, p);
  }

 private:
  struct Work {
    double sum, size;  // size: sum of absolute works

    bool gains() const { return sum > cones::gain * size; }
  };

  double* copy(const double* x) {
    double* other = arena_.take<double>(problem_.rows);
    std::copy(x, x + problem_.rows, other);
    return other;
  }
  double shift(int i) const {
    const bool normal = i < 3 * problem_.contacts && i % 3 == 0;
    return (rows_.shift ? rows_.shift[i] : 0.0) + (normal ? rows_.rebound[i / 3] : 0.0);
  }

  /// Return the work of the impulses p on an island, for the velocities G p + w without shifts.
  Work work_of(int part, const double* w, const double* p, const double* before) const {
    const int n = problem_.rows, contacts = problem_.contacts;
    Work work = {0.0, 0.0};
    for (int i = 0; i < n; ++i) {
      if (part_[i < 3 * contacts ? i / 3 : i - 2 * contacts] != part) continue;
      const double u = w[i] + scalar_product(problem_.G + i * n, p, n) - shift(i);
      work.sum += 0.5 * p[i] * (u + before[i]), work.size += 0.5 * std::abs(p[i]) * (std::abs(u) + std::abs(before[i]));
    }
    return work;
  }

  /// Find the largest fraction of the restitution of each island that adds no energy, by false position (Illinois). `solve(island, fraction, full)`
  /// solves with a fraction of the restitution `full`.
  template <class WorkOf, class Solve> void reduce(const double* restitution, WorkOf&& work, Solve&& solve) {
    const Arena::Scope scope(arena_);
    const int n = problem_.rows, contacts = problem_.contacts;
    double *full = arena_.take<double>(contacts), *p = arena_.take<double>(n), *least = arena_.take<double>(n);
    std::copy(restitution, restitution + contacts, full);
    for (int part = 0; part < parts_ && solution_.reached; ++part) {
      bool has_restitution = false;
      for (int i = 0; i < contacts; ++i) has_restitution |= part_[i] == part && restitution[i] != 0.0;
      if (!has_restitution) continue;  // skip these islands to save time: most islands of a step are bodies at rest
      const Work all = work(part);
      const double most = all.sum;
      if (!all.gains()) continue;
      double low = 0.0, high = 1.0, allowed = 0.0, at_low = 0.0, at_high = most, left = HUGE_VAL, size = 0.0;
      ConeSolution best = solution_;
      int last = 0;  // end of the bracket that the last trial replaced: -1 or 1
      for (int k = 0; k < cones::restitution_trials && left > cones::gain * size; ++k) {
        const double at = std::clamp(at_low / (at_low - at_high), 1e-3, 1.0 - 1e-3),
                     fraction = k == 0 ? 0.0 : low + (high - low) * at;
        solve(part, fraction, full);
        if (k == 0 && !solution_.reached) return;
        const Work now = solution_.reached ? work(part) : Work{most, size};
        size = now.size;
        if (k == 0) allowed = std::max(0.0, now.sum), at_high = most - allowed;  // separating bodies that penetrate adds energy
        if (at_high <= 0.0) {
          low = 1.0, solve(part, low, full), best = solution_;
          std::copy(p_, p_ + n, p), std::copy(least_, least_ + n, least);
          break;
        }
        if (solution_.reached && now.sum <= allowed) {
          low = fraction, at_low = now.sum - allowed, left = allowed - now.sum, best = solution_;
          at_high *= last < 0 ? 0.5 : 1.0, last = -1;
          std::copy(p_, p_ + n, p), std::copy(least_, least_ + n, least);
        } else {
          high = fraction, at_high = now.sum - allowed, at_low *= last > 0 ? 0.5 : 1.0, last = 1;
        }
      }
      solve(part, low, full);
      std::copy(p, p + n, p_), std::copy(least, least + n, least_), solution_ = best;
    }
  }

  const ConeProblem& problem_;
  const ImpactRows rows_;
  Arena& arena_;
  double *p_, *least_;
  ConeSolution& solution_;
  SolverLimit& limit_;
  int* part_;
  int parts_;
};

}  // namespace sarrus
