// The cascade with limits: each level does its best within them and with what the levels before leave free (Kanoun, Lamiraux and Wieber
// 2011; Escande, Mansard and Wieber 2014). A quadratic programme over what is free finds how much of a level can be had; that A x stays what it
// is, and the limits are the next level's again. The last level, of least effort, has one solution: which limits act in it becomes rows.
#pragma once

#include <algorithm>
#include <cmath>

#include "cascade.hpp"
#include "tasks.hpp"

namespace sarrus {

/// Weighted rows of all levels, and of the limits.
struct LimitedRows {
  int n, levels;  // unknowns; levels with that of hard rows, and the last, of least effort
  const int* level;  // levels + 1: where the rows of each start
  const double *A, *b;  // rows x n
  int limits;
  const double* C;  // limits x n
  const double *lower, *upper;
  const bool* soft;  // which of them are given up first: those of motion
};

/// What held it back: of each limit -1 or 1 where it acts at its lower or upper end; 2 added to the size where it had to be missed.
struct LimitedReport {
  signed char* active;
  bool misses_hard = false;  // rows that must hold could not
};

namespace limited {

constexpr double share = 1e-9;  // of a row's size that is rounding

inline double square(double x) { return x * x; }

inline bool within(const LimitedRows& p, const double* lower, const double* upper, const double* x) {
  for (int i = 0; i < p.limits; ++i) {
    const double at = scalar_product(p.C + i * p.n, x, p.n), off = std::max(lower[i] - at, at - upper[i]);
    if (off > share * (1.0 + std::abs(at))) return false;
  }
  return true;
}

/// Limits as far as they stand: those of motion, and then rows that must hold, are given up where they contradict the others.
struct Standing {
  double *lower, *upper;
  bool relaxed = false, gives_way = false;
  int rounds = 0;  // of giving up limits of motion
};

/// Gives up a limit as far as it is missed at `at`, and names it; whether it is.
inline bool relax(int limit, double at, double margin, Standing& s, signed char* active) {
  const bool below = at<s.lower[limit] - margin, above = at> s.upper[limit] + margin;
  if (below) s.lower[limit] = at - margin;
  if (above) s.upper[limit] = at + margin;
  if (!below && !above) return false;
  active[limit] = below ? -3 : 3;
  return s.relaxed = true;
}

/// The same with all soft limits. `size` of x: the programme knows it to a billionth. False where nothing was missed, or, and then nothing is
/// given up, others were too.
inline bool relax(const LimitedRows& p, const double* x, double size, Standing& s, signed char* active) {
  bool some = false;
  for (const bool soft : {false, true})
    for (int i = 0; i < p.limits; ++i) {
      const double *row = p.C + i * p.n, at = scalar_product(row, x, p.n);
      const double margin = 1e-6 * (1.0 + std::abs(at)) + 1e-8 * size * std::sqrt(scalar_product(row, row, p.n));
      if (p.soft[i] != soft) continue;
      if (!soft && (at < s.lower[i] - margin || at > s.upper[i] + margin)) return false;
      if (soft && relax(i, at, margin, s, active)) some = true;
    }
  return some;
}

/// One level A x = b (k x n), and the A x that it would have without limits: what it is to have with them.
struct Level {
  const double* A;
  int k;
  double* reach;
};

/// A level as a quadratic programme over what the levels before leave free: x moves by N y. The first m columns of N are the directions along
/// which the level moves x; there A N = Q R (Gram-Schmidt), and with w = R y the level is |w - Q^T (reach - A x)|^2, well-conditioned at
/// singular positions too. The others hardly count. Limits of w are lower <= C w <= upper.
struct Programme {
  int n, free, m;
  const double* N;  // free x n
  double* R;  // m x m, column by column
  double *H, *f, *C, *lower, *upper;
  double size = 0.0;  // all numbers are divided by it: near 1, which the solver's tolerances are for
  double *w, *force;  // the solution; of each limit, what it takes, positive at its upper end

  Programme(Arena& arena, int unknowns, int limits, const double* directions, int all, int own)
      : n(unknowns), free(all), m(own), N(directions) {
    const auto take = [&](int count) { return arena.take<double>(count); };
    R = take(m * m), H = take(free * free), f = take(free), C = take(limits * free), lower = take(limits), upper = take(limits),
    w = take(free), force = take(limits);
  }

  /// A row (n) as one of w. Returns how much of it is free, squared.
  double in_unknowns(const double* row, double* out) const {
    double part = 0.0;
    for (int j = 0; j < free; ++j) out[j] = scalar_product(row, N + j * n, n), part += square(out[j]);
    for (int j = 0; j < m; ++j) out[j] = (out[j] - scalar_product(R + j * m, out, j)) / R[j * m + j];
    return part;
  }

  /// x moves to where the solution is.
  void move(double* x) const {
    for (int j = 0; j < free; ++j) w[j] *= size;
    for (int j = m - 1; j >= 0; --j) {
      w[j] /= R[j * m + j];
      for (int i = 0; i < j; ++i) w[i] -= R[j * m + i] * w[j];
    }
    for (int j = 0; j < free; ++j) subtract_scaled(x, N + j * n, -w[j], n);
  }
};

/// `inside`: x is within the limits, and rounding must not forbid that it stays: neither that of a limit that the levels before hold where it is,
/// nor that of one at whose end x is. Else, soft limits that nothing can move are given up.
inline Programme make(Arena& arena, const LimitedRows& p, Standing& s, const Level& level, const double* N, int free, int m,
                      const double* x, bool inside, LimitedReport& report) {
  Programme q(arena, p.n, p.limits, N, free, m);
  const int n = p.n, k = level.k;
  double *Q = arena.take<double>(m * k), *off = arena.take<double>(k);
  for (int i = 0; i < k; ++i) off[i] = level.reach[i] - scalar_product(level.A + i * n, x, n);
  std::fill(q.R, q.R + m * m, 0.0), std::fill(q.H, q.H + free * free, 0.0), std::fill(q.f, q.f + free, 0.0);
  for (int j = 0; j < m; ++j) {
    q.H[j * free + j] = 1.0;
    double *column = Q + j * k, *along = q.R + j * m;
    for (int i = 0; i < k; ++i) column[i] = scalar_product(level.A + i * n, N + j * n, n);
    const double length = std::sqrt(orthogonalise(Q, 0, j, k, scalar_product(column, column, k), column, along));
    along[j] = length;
    for (int i = 0; i < k; ++i) column[i] /= length;
    q.f[j] = -scalar_product(column, off, k);
    q.size = std::max(q.size, std::abs(q.f[j]));
  }
  for (int i = 0; i < p.limits; ++i) {
    const double *limit = p.C + i * n, at = scalar_product(limit, x, n);
    double* row = q.C + i * free;
    const bool held = q.in_unknowns(limit, row) <= square(share) * scalar_product(limit, limit, n);
    if (held && p.soft[i] && !inside) relax(i, at, share * (1.0 + std::abs(at)), s, report.active);
    q.lower[i] = s.lower[i] - at, q.upper[i] = s.upper[i] - at;
    if (held) std::fill(row, row + free, 0.0);  // not a direction that rounding has made up
    if (inside) {
      const double room = share * (1.0 + std::abs(at));
      q.lower[i] = held ? -TaskLimits::far : std::min(q.lower[i], -room);
      q.upper[i] = held ? TaskLimits::far : std::max(q.upper[i], room);
    }
    const double length = std::sqrt(scalar_product(row, row, free));
    if (length > 0.0) q.size = std::max(q.size, std::max(q.lower[i], -q.upper[i]) / length);
  }
  if (!(q.size > 0.0)) q.size = 1.0;
  for (int j = 0; j < m; ++j) q.f[j] /= q.size;
  for (int i = 0; i < p.limits; ++i) {
    if (q.lower[i] > -TaskLimits::far) q.lower[i] /= q.size;
    if (q.upper[i] < TaskLimits::far) q.upper[i] /= q.size;
  }
  return q;
}

/// Solves it. Directions that hardly count make it ill-conditioned, and where there is little room it may take that for none: then they count more.
inline int best(QuadraticProgramme solve, Programme& q, int limits) {
  int flag = -1;
  for (const double count : {1e-8, 1e-4, 1.0}) {
    for (int j = q.m; j < q.free; ++j) q.H[j * q.free + j] = count;
    flag = solve(q.free, limits, q.H, q.f, q.C, q.lower, q.upper, nullptr, q.w, q.force);
    if (flag > 0) break;
  }
  return flag;
}

/// After that: where it misses as little as possible of soft limits; whether there is such a place.
inline bool least_missed(QuadraticProgramme solve, Programme& q, const LimitedRows& p) {
  return solve(q.free, p.limits, q.H, q.f, q.C, q.lower, q.upper, p.soft, q.w, q.force) > 0;
}

/// The solution with the digits that the programme's does not have: the level again, with the limits that act as rows before it. Where that
/// is within the limits, x becomes it.
inline void correct(Arena& arena, const LimitedRows& p, const Standing& s, const Level& level, const double* force,
                    Cascade<double>& cascade, double* x) {
  const int n = p.n;
  double *acting = arena.take<double>(p.limits * n), *ends = arena.take<double>(p.limits), strongest = 0.0;
  for (int i = 0; i < p.limits; ++i) strongest = std::max(strongest, std::abs(force[i]));
  int count = 0;
  for (int i = 0; i < p.limits; ++i) {
    if (std::abs(force[i]) <= 1e-9 * strongest) continue;
    std::copy(p.C + i * n, p.C + (i + 1) * n, acting + count * n);
    ends[count++] = force[i] > 0.0 ? s.upper[i] : s.lower[i];
  }
  cascade.add(acting, ends, count, false);
  cascade.add(level.A, level.reach, level.k, false);
  if (within(p, s.lower, s.upper, cascade.x)) std::copy(cascade.x, cascade.x + n, x);
}

constexpr int again = 100;  // with less to satisfy

/// What to do where limits and rows that must hold contradict each other. `found`: x, of that size, misses as little as possible of the limits
/// of motion, which are given up so far. Where that is no help the rows give way; limits of motion may contradict the others even then.
inline int give_up(const LimitedRows& p, const double* x, double size, bool found, Standing& s, LimitedReport& report) {
  if (found && ++s.rounds < 3 && relax(p, x, size, s, report.active)) return again;
  if (s.gives_way) return -1;
  s.gives_way = report.misses_hard = true, s.rounds = 0;
  return again;
}

inline int attempt(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, Standing& s, double* x, double& damping,
                   LimitedReport& report) {
  const Arena::Scope scope(arena);
  const int n = p.n;
  Cascade<double> cascade(arena, n, 2 * p.level[p.levels] + p.limits);
  double* before = arena.take<double>(n);
  bool inside = false;  // whether x is within the limits, as it is as soon as one level has been
  std::copy(cascade.x, cascade.x + n, x);
  for (int l = 0; l < p.levels; ++l) {
    const Arena::Scope of_level(arena);
    const int k = p.level[l + 1] - p.level[l];
    const Level level = {p.A + p.level[l] * n, k, arena.take<double>(k)};
    const double* b = p.b + p.level[l];
    const bool last = l == p.levels - 1;
    if (k == 0) continue;
    if (l == 0 && !s.gives_way) {  // what must hold does, whatever the limits
      cascade.add(level.A, b, k, false);
      std::copy(cascade.x, cascade.x + n, x);
      continue;
    }
    const int directions = cascade.directions;
    if (directions >= n) {  // the levels before have left nothing free
      if (inside || within(p, s.lower, s.upper, x)) break;
      return give_up(p, x, 0.0, true, s, report);
    }
    const auto return_to = [&](int count, const double* there) {
      cascade.directions = count;
      std::copy(there, there + n, cascade.x);
    };
    // what the level would do without limits, damped where that is due, is what it is to do with them
    std::copy(cascade.x, cascade.x + n, before);
    cascade.add(level.A, b, k, !last);
    for (int i = 0; i < k; ++i) level.reach[i] = scalar_product(level.A + i * n, cascade.x, n);
    if (within(p, s.lower, s.upper, cascade.x)) {
      std::copy(cascade.x, cascade.x + n, x);
      inside = true;
      continue;
    }
    const int own = cascade.directions - directions;
    cascade.add_all_directions();
    return_to(directions, before);
    Programme q = make(arena, p, s, level, cascade.q + directions * n, n - directions, own, x, inside, report);
    const int flag = best(solve, q, p.limits);
    if (flag < 0 && !inside) {
      const bool found = least_missed(solve, q, p);
      if (found) q.move(x);
      return give_up(p, x, q.size, found, s, report);
    }
    if (flag < 0) {  // so little room is left that rounding takes it for none: it stays where it is
      std::fill(q.w, q.w + q.free, 0.0), std::fill(q.force, q.force + p.limits, 0.0);
    }
    q.move(x);
    correct(arena, p, s, level, q.force, cascade, x);
    inside = true;
    if (last) break;
    // A x is the same in every solution of the level: it stays, and the limits are the next level's again
    return_to(directions, before);
    for (int i = 0; i < k; ++i) level.reach[i] = scalar_product(level.A + i * n, x, n);
    cascade.add(level.A, level.reach, k, false);
  }
  for (int i = 0; i < p.limits; ++i) {
    const double at = scalar_product(p.C + i * n, x, n), near = 1e-7 * (1.0 + std::abs(at));
    if (report.active[i] == 0) report.active[i] = at > s.upper[i] - near ? 1 : at < s.lower[i] + near ? -1 : 0;
  }
  damping = cascade.damping;
  return s.relaxed || s.gives_way ? 0 : 1;
}

}  // namespace limited

/// x of the cascade within the limits. Returns 1; 0 where limits and rows that must hold contradict each other, which the report names, and
/// then limits of motion, or if that is not enough the rows that must hold, do their best; below 0 where the programme fails.
inline int solve_limited(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, double* x, double& damping,
                         LimitedReport& report) {
  const Arena::Scope scope(arena);
  limited::Standing s = {arena.take<double>(p.limits), arena.take<double>(p.limits)};
  std::copy(p.lower, p.lower + p.limits, s.lower), std::copy(p.upper, p.upper + p.limits, s.upper);
  std::fill(report.active, report.active + p.limits, static_cast<signed char>(0));
  int flag = limited::again;
  while (flag == limited::again) flag = limited::attempt(solve, arena, p, s, x, damping, report);
  return flag;
}

}  // namespace sarrus
