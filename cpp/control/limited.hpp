// The cascade with limits: each level is solved in the least-squares sense within the limits and without changing the levels before (Kanoun, Lamiraux
// and Wieber 2011; Escande, Mansard and Wieber 2014). From a feasible point, a level reaches its optimum by active sets (Nocedal and Wright 2006,
// algorithm 16.3). All iterates are within the limits, so the optimum is reached even in tiny feasible sets. The next level has the same limits, and
// must not change A x.
//
// The first level that exceeds limits begins at an estimate of the solution of this level and all later ones: in the metric of their rows, each level
// with a far smaller weight than the one before, the point within the limits nearest to the solution without limits. Few active sets are then left to
// try, and the result does not depend on the estimate. If there is none, and no feasible point is known, a quadratic programme computes one.
#pragma once

#include <optional>

#include "nearest_point.hpp"

namespace sarrus {

namespace limited {

/// Compute the feasible y nearest to `goal` (d) by the quadratic programme. `all`: include the limits of motion. Returns true if a feasible y exists.
inline bool nearest_feasible(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, const FreeSpace& f, const double* goal,
                             bool all, WorkingSet& w, double* y) {
  const Arena::Scope scope(arena);
  const int d = f.d;
  double *H = arena.take<double>(d * d), *zero = arena.take<double>(d), *C = arena.take<double>(p.limits * d),
         *low = arena.take<double>(p.limits), *high = arena.take<double>(p.limits), *force = arena.take<double>(p.limits),
         size = 0.0;
  int *rows_of_limits = arena.take<int>(p.limits), rows = 0;
  for (int i = 0; i < p.limits; ++i) {
    if (f.ratio[i] == 0.0 || (!all && p.soft[i]) || (f.low[i] <= -far_limit && f.high[i] >= far_limit)) continue;
    const double inverse = 1.0 / f.ratio[i];
    double* row = C + rows * d;
    for (int j = 0; j < d; ++j) row[j] = f.C[j * f.tall + i] * inverse;
    const double at = scalar_product(row, goal, d);
    low[rows] = f.low[i] > -far_limit ? f.low[i] * inverse - at : -far_limit;
    high[rows] = f.high[i] < far_limit ? f.high[i] * inverse - at : far_limit;
    size = std::max(size, std::max(low[rows], -high[rows]));
    rows_of_limits[rows++] = i;
  }
  std::copy(goal, goal + d, y);
  w.clear();
  if (!(size > 0.0)) return true;
  constexpr double none = 1e30;  // bound that the programme treats as infinite
  for (int i = 0; i < rows; ++i) {
    low[i] = low[i] > -none * std::min(size, 1.0) ? std::max(low[i] / size, -none) : -none;
    high[i] = high[i] < none * std::min(size, 1.0) ? std::min(high[i] / size, none) : none;
  }
  for (int i = 0; i < d * d; ++i) H[i] = i % (d + 1) == 0 ? 1.0 : 0.0;
  std::fill(zero, zero + d, 0.0);
  double* step = arena.take<double>(d);
  if (solve(d, rows, H, zero, C, low, high, step, force) <= 0) return false;
  for (int j = 0; j < d; ++j) y[j] += size * step[j];
  double strongest = 0.0;
  for (int i = 0; i < rows; ++i) strongest = std::max(strongest, std::abs(force[i]));
  for (int i = 0; i < rows; ++i)
    if (std::abs(force[i]) > 1e-9 * strongest) w.add(rows_of_limits[i], force[i] > 0.0 ? 1 : -1);
  return true;
}

/// Move y from a feasible point to the minimum of |B y - e| (B: m x d, rows padded) within the limits, by active sets. Returns true if the method
/// converged. `space`: rows of the first limits of w.
inline bool minimise(Arena& arena, const LimitedRows& p, const FreeSpace& f, const double* B, const double* e, int m,
                     WorkingSet& w, ActiveRows& space, double* y) {
  const Arena::Scope scope(arena);
  const int d = f.d, wide = f.wide, patience = 3 * (p.limits + d), high = padded(m);
  double *step = arena.take<double>(wide), *off = zeros(arena, high), *right = arena.take<double>(high),
         *slope = arena.take<double>(wide), *push = arena.take<double>(d + 1), *at = arena.take<double>(f.tall),
         *change = arena.take<double>(f.tall), *squares = arena.take<double>(m), terms = 0.0, size = 0.0;
  const bool moved = padded_product(y, y, wide) > 0.0;
  for (int i = 0; i < m; ++i) {
    const double* row = B + i * wide;
    size += squares[i] = padded_product(row, row, wide), terms += e[i] * e[i];
    if (moved) terms += padded_square(row, y, wide);
  }
  // true for active limits, and for limits that depend on them, because their values change only by rounding in a step along the active limits
  bool *active = arena.take<bool>(p.limits), *depends = arena.take<bool>(p.limits);
  std::fill(depends, depends + p.limits, false);
  int added = -1;
  for (int round = 0; round < 4 * patience; ++round) {
    project_onto(f, w, space, y);
    std::fill(active, active + p.limits, false);
    for (int k = 0; k < w.count; ++k) active[w.limit[k]] = true;
    if (added >= 0 && !active[added]) depends[added] = true;
    // the shortest step along the active limits that minimises |B (y + step) - e|
    const int standing = space.count;
    for (int i = 0; i < m; ++i) off[i] = e[i] - padded_product(B + i * wide, y, wide);
    for (int i = 0; i < m && space.count < d; ++i) {
      space.count += space.split(B + i * wide, squares[i], Cascade<double>::dependent * std::sqrt(squares[i])) > 0.0;
    }
    const int moves = space.count - standing;
    space.count = standing;
    if (moves == 0) {
      std::fill(step, step + wide, 0.0);
    } else {
      const Arena::Scope columns_scope(arena);
      ActiveRows columns(arena, high, moves);
      for (int j = 0; j < moves; ++j) {
        for (int i = 0; i < m; ++i) columns.row[i] = padded_product(B + i * wide, space.q + (standing + j) * wide, wide);
        for (int i = m; i < high; ++i) columns.row[i] = 0.0;
        columns.add(columns.row);
      }
      for (int j = 0; j < moves; ++j) push[j] = padded_product(columns.q + j * high, off, high);
      columns.factors(push, moves);
      combine(nullptr, space.q + standing * wide, push, moves, wide, step);
    }
    double gain = 0.0;
    for (int i = 0; i < m; ++i) right[i] = padded_product(B + i * wide, step, wide), gain += square(right[i]);
    const bool rests = gain <= converged * converged * terms;  // true if the step is only rounding
    if (!rests) {
      // largest fraction of the step that remains within the limits
      const double length = std::sqrt(padded_product(step, step, wide));
      double fraction = 1.0;
      int next = -1, side = 0;
      f.values(y, at), f.values(step, change);
      for (int i = 0; i < p.limits; ++i) {
        if (std::abs(change[i]) <= Cascade<double>::dependent * length || f.ratio[i] == 0.0 || depends[i] || active[i]) continue;
        const double end = change[i] > 0.0 ? f.high[i] : f.low[i];
        if (std::abs(end) >= far_limit) continue;
        const double reach = std::max(0.0, (end - at[i]) / change[i]);
        if (reach < fraction) fraction = reach, next = i, side = change[i] > 0.0 ? 1 : -1;
      }
      subtract_scaled(y, step, -fraction, wide);
      if (next >= 0) {
        w.add(added = next, side);
        continue;
      }
      for (int i = 0; i < m; ++i) off[i] -= right[i];
    }
    // this is the optimum for the working set: search for an active limit whose multiplier has the wrong sign
    std::fill(slope, slope + wide, 0.0);
    for (int i = 0; i < m; ++i) subtract_scaled(slope, B + i * wide, -off[i], wide);
    const double negligible = converged * std::sqrt(size * terms);
    for (int k = 0; k < standing; ++k) push[k] = padded_product(slope, space.q + k * wide, wide);
    space.factors(push, standing);
    int wrong = -1;
    double worst = 0.0;
    for (int k = w.fixed; k < w.count; ++k) {
      const int i = w.limit[k];
      const double pulls = -push[k] * w.side[k] * f.ratio[i];
      if (pulls <= negligible) continue;
      // choose the largest multiplier; after many rounds, in case of cycling, the first limit (Bland's rule)
      if (round > patience ? wrong < 0 || i < w.limit[wrong] : pulls > worst) wrong = k, worst = pulls;
    }
    if (wrong < 0) {
      // fix limits with multipliers, unless rows are so nearly dependent that multipliers are uncertain
      constexpr double certain = 1e-6, strong = 1e-8;
      bool independent = true;
      for (int k = 0; k < standing; ++k) independent = independent && space.L[k * d + k] > certain;
      for (int k = w.fixed; k < w.count && independent; ++k)
        if (std::abs(push[k]) * f.ratio[w.limit[k]] > strong * std::sqrt(size * terms)) w.fix(k), space.count = 0;
      return true;
    }
    w.drop(wrong), space.count = std::min(standing, wrong);
    std::fill(depends, depends + p.limits, false), added = -1;
  }
  return false;
}

/// Factors of a level's rows in its directions N (m x n): [A; F] N^T = Q R. If each row has added one direction, A N^T is triangular: then N contains
/// the directions in the opposite order, and Q reverses the rows.
struct LevelFactors {
  int k, rows, m, high;  // rows of the level; of [A; F]; columns; length of the padded columns of Q
  const double *Q = nullptr, *R = nullptr;  // m x high, null if it reverses the rows; R[j m + i] is R_ij

  LevelFactors() = default;
  /// F: additional rows of damping, or null. `spanned`: true if N contains the directions of the cascade without limits.
  LevelFactors(Arena& arena, const LimitedRows& p, int l, const double* F, const double* N, int count, bool spanned)
      : k(p.level[l + 1] - p.level[l]), rows(k * (F ? 2 : 1)), m(count), high(padded(rows)) {
    if (spanned && p.reversed(l, m)) {
      double* entry = arena.take<double>(m * m);
      R = entry;
      for (int j = 0; j < m; ++j)
        for (int i = 0; i < m; ++i)
          entry[j * m + i] = i > j ? 0.0 : scalar_product(p.A + (p.level[l] + k - 1 - i) * p.n, N + j * p.n, p.n);
      return;
    }
    ActiveRows columns(arena, high, m);
    for (int j = 0; j < m; ++j) product(p, l, F, N + j * p.n, columns.row), columns.add(columns.row);
    Q = columns.q, R = columns.L;
  }
  /// Compute [A; F] x, padded.
  void product(const LimitedRows& p, int l, const double* F, const double* x, double* to) const {
    p.product(l, x, to);
    for (int i = k; i < high; ++i) to[i] = i < rows ? scalar_product(F + (i - k) * p.n, x, p.n) : 0.0;
  }
  /// Compute the right-hand sides e of the level, Q^T ([b; 0] - [A; F] x).
  void right(Arena& arena, const LimitedRows& p, int l, const double* F, const double* x, double* e) const {
    const Arena::Scope scope(arena);
    double* off = arena.take<double>(high);
    product(p, l, F, x, off);
    for (int i = 0; i < k; ++i) off[i] -= p.b[p.level[l] + i];
    project(off, e);
    for (int j = 0; j < m; ++j) e[j] = -e[j];
  }
  /// Compute Q^T v (m).
  void project(const double* v, double* to) const {
    for (int j = 0; j < m; ++j) to[j] = Q ? padded_product(Q + j * high, v, high) : v[m - 1 - j];
  }
};

/// Compute an estimate y of the solution of level l and all later levels within the limits, relative to x. `first`: number of directions of the levels
/// before l; `factors`: of all levels, added if missing. Returns true if y is within the limits; otherwise y is zero.
inline bool estimate_solution(Arena& arena, const LimitedRows& p, const Ends& s, const FreeSpace& f, int l, int first,
                              LevelFactors* factors, const double* e, WorkingSet& w, ActiveRows& space, const double* x,
                              double* y) {
  constexpr double less = 1e-3, least = 1e-6;  // weight of a level relative to the one before, and the least one
  const int d = f.d, n = p.n;
  LevelMetric metric = {d, arena.take<double>(d * d), zeros(arena, f.wide), arena.take<int>(d), arena.take<int>(d)};
  double *moved = arena.take<double>(n), weight = 1.0, *part = arena.take<double>(f.wide), *product = nullptr;
  int begin = 0;
  for (int level = l; level < p.levels && begin < d; ++level) {
    const int m = p.mark[level].directions - first - begin;
    if (m == 0) continue;
    LevelFactors& level_factors = factors[level];
    if (!level_factors.R) level_factors = LevelFactors(arena, p, level, nullptr, f.N + begin * n, m, true);
    const double scale = weight / *std::max_element(p.size + p.level[level], p.size + p.level[level + 1]);
    weight = std::max(weight * less, least);
    if (level > l) {
      level_factors.right(arena, p, level, nullptr, x, metric.g + begin);
      product = arena.take<double>(level_factors.high);
    } else {
      std::copy(e, e + m, metric.g);
    }
    for (int j = 0; j < begin; ++j) {
      level_factors.product(p, level, nullptr, f.N + j * n, product);
      level_factors.project(product, part);
      for (int r = 0; r < m; ++r) metric.T[j * d + begin + r] = part[r] * scale;
    }
    for (int j = begin; j < begin + m; ++j) {
      metric.first[j] = begin, metric.end[j] = begin + m, metric.g[j] *= scale;
      for (int r = begin; r <= j; ++r) metric.T[j * d + r] = level_factors.R[(j - begin) * m + r - begin] * scale;
      if (!(metric.T[j * d + j] > 0.0)) return false;
    }
    begin += m;
  }
  if (begin < d) return false;
  metric.solve(metric.g);
  if (nearest_in_metric(arena, p, f, metric, metric.g, w, y)) {
    project_onto(f, w, space, y);
    std::copy(x, x + n, moved), f.move(y, n, moved);
    if (within(p, s, moved)) return true;
  }
  w.clear(), space.count = 0;
  std::fill(y, y + f.wide, 0.0);
  return false;
}

/// Move x (n) to a feasible point, near `goal` if possible, by the quadratic programme. `all`: include the limits of motion. Returns true if a
/// feasible point exists.
inline bool make_feasible(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, const Ends& s, const FreeSpace& f,
                          const double* goal, bool all, WorkingSet& w, double* x) {
  const Arena::Scope scope(arena);
  double *y = zeros(arena, f.wide), *toward = zeros(arena, f.wide), *nearest = arena.take<double>(f.wide),
         *moved = arena.take<double>(p.n);
  // if the goal is so far away that the programme fails, use the current point as the goal
  for (const double factor : {1.0, 0.0}) {
    for (int j = 0; j < f.d; ++j)
      toward[j] = factor * (scalar_product(f.N + j * p.n, goal, p.n) - scalar_product(f.N + j * p.n, x, p.n));
    if (!nearest_feasible(solve, arena, p, f, toward, all, w, y)) continue;
    std::copy(toward, toward + f.wide, nearest);
    ActiveRows space(arena, f.wide, f.d);
    project_onto(f, w, space, nearest);  // this satisfies the active limits more precisely than the programme
    for (const double* place : {static_cast<const double*>(nearest), static_cast<const double*>(y)}) {
      std::copy(x, x + p.n, moved), f.move(place, p.n, moved);
      if (!within(p, s, moved, all)) continue;
      std::copy(moved, moved + p.n, x);
      return true;
    }
  }
  w.clear();
  return false;
}

/// Move x, which satisfies all other limits, as near as possible to the limits of motion, by least squares. The violations are those of limits of the
/// scaled unknowns, so that limits of different units are comparable.
inline bool approach_motion_limits(Arena& arena, const LimitedRows& p, const Ends& s, FreeSpace& f, WorkingSet& w, double* x) {
  constexpr int rounds = 5;  // after each round, limits that x has reached become active
  for (int round = 0; round < rounds; ++round) {
    const Arena::Scope scope(arena);
    double *B = arena.take<double>(p.limits * f.wide), *e = arena.take<double>(p.limits), *y = zeros(arena, f.wide);
    int m = 0;
    f.set_ends(p, s, x, false);
    for (int i = 0; i < p.limits; ++i) {
      const int side = p.soft[i] && f.ratio[i] > 0.0 ? place(p, s, i, x, norm(x, p.n)).side_of(s, i) : 0;
      if (side != 0) {
        f.copy_row(i, B + m * f.wide);
        e[m++] = side > 0 ? f.high[i] : f.low[i];
        f.low[i] = -far_limit, f.high[i] = far_limit;
      } else {
        f.low[i] = std::min(f.low[i], 0.0), f.high[i] = std::max(f.high[i], 0.0);
      }
    }
    if (m == 0) break;
    w.clear();
    ActiveRows space(arena, f.wide, f.d);
    if (!minimise(arena, p, f, B, e, m, w, space, y)) return false;
    f.move(y, p.n, x);
  }
  w.fixed = 0;
  return true;
}

/// Return true if x, of norm `length`, is so far within limit i that the limit is not active.
inline bool is_clear(const LimitedRows& p, int i, double lower, double upper, const double* x, double length) {
  const double at = p.along(i, x);
  const double near = 2.0 * near_end * rounding * (p.terms[i] + 2.0 * p.length[i] * length + std::abs(at));
  return at - lower > near && upper - at > near;
}

constexpr int again = 100;  // returned if the cascade must be repeated with hard rows as the highest priority

inline int attempt(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, Ends& s, double* x, double& damping,
                   LimitedReport& report) {
  const Arena::Scope scope(arena);
  const int n = p.n;
  int widest = 0;
  for (int l = 0; l < p.levels; ++l) widest = std::max(widest, p.level[l + 1] - p.level[l]);
  Cascade<double> cascade(arena, n, p.level[p.levels] + p.limits);
  double *start = arena.take<double>(n), *F = arena.take<double>(widest * n);
  WorkingSet w = {arena.take<int>(p.limits + n + 1), arena.take<signed char>(p.limits + n + 1)};
  std::copy(cascade.x, cascade.x + n, x);
  bool inside = false;  // true if x is within the limits
  bool same = !s.softens;  // true if the solution of all levels so far equals that of the cascade without limits
  bool spans = same;  // true if the directions so far are those of that cascade
  if (spans) p.copy_directions(cascade.q);
  bool known = false;  // true if `ends` are those of x
  double* ends = arena.take<double>(2 * padded(p.limits));
  LevelFactors* factors = arena.take<LevelFactors>(p.levels);
  std::fill(factors, factors + p.levels, LevelFactors{});
  std::optional<FreeSpace> free;
  const auto pin = [&] {  // limits with lower = upper are equations
    const int before = cascade.directions;
    for (int i = 0; i < p.limits; ++i) {
      if (s.upper[i] <= s.lower[i] && (s.pins_motion || !p.soft[i])) cascade.add(p.row[i], s.upper + i, p.length + i, 1, false);
    }
    spans = spans && cascade.directions == before, same = same && spans;
    std::copy(cascade.x, cascade.x + n, x);
    inside = within(p, s, x);
  };
  for (int l = 0; l < p.levels; ++l) {
    const int k = p.level[l + 1] - p.level[l];
    const double *A = p.A + p.level[l] * n, *b = p.b + p.level[l], *size = p.size + p.level[l];
    if (l == 0 && (s.softens || k == 0)) pin();
    if (k == 0) continue;
    const int before = cascade.directions;
    if (before >= n) break;  // no direction remains
    std::copy(x, x + n, start), std::copy(x, x + n, cascade.x);
    // add the level without limits to the cascade, damped if necessary
    same = same && !p.mark[l].damped;
    const bool spanned = spans && !p.mark[l].damped;
    bool damped = false;
    if (spanned) {
      const CascadeMark& mark = p.mark[l];
      if (same) std::copy(mark.x, mark.x + n, cascade.x);
      cascade.directions = mark.directions, cascade.damping = std::max(cascade.damping, mark.damping);
    } else {
      damped = cascade.add(A, b, size, k, l > 0 && l < p.levels - 1, F);
    }
    if (l == 0 && !s.softens) {  // first satisfy hard rows, ignoring the limits
      pin();
      continue;
    }
    const int m = cascade.directions - before;
    if (m == 0) continue;
    const auto reached = [&] {  // the solution without limits
      if (!within(p, s, cascade.x)) return false;
      std::copy(cascade.x, cascade.x + n, x), known = false;
      return inside = true;
    };
    if ((same || !spanned) && reached()) continue;
    const double* N = cascade.q + before * n;
    const bool whole = spans && p.directions == n;  // true if all directions are known
    const bool begun = inside && !same && w.count > 0;  // true if the working set of the level before is known
    if (!whole) cascade.add_all_directions();
    cascade.directions = before + m;
    FreeSpace f(arena, p, N, n - before, whole && free ? &*free : nullptr, ends);
    if (whole) free.emplace(f);
    ActiveRows space(arena, f.wide, f.d);
    double* y = zeros(arena, f.wide);
    if (!known) f.set_ends(p, s, start, inside);
    if (begun) {  // omit limits that are no longer active; after a motion from the level before, all are
      const double length = norm(start, n);
      for (int j = w.count - 1; j >= 0; --j) {
        const int i = w.limit[j];
        if (f.ratio[i] == 0.0 || (!known && place(p, s, i, start, length).side_of(s, i, -near_end) != w.side[j])) w.drop(j);
      }
      project_onto(f, w, space, y, false);
      if (space.count == f.d) continue;  // fixed limits leave no motion
    }
    LevelFactors& factor = factors[l];
    const double* damping_rows = damped ? F : nullptr;
    if (!spans || damped || !factor.R) factor = LevelFactors(arena, p, l, damping_rows, N, m, spanned);
    double* e = arena.take<double>(m);
    const bool continues = begun && w.count > 0;
    if (spanned && !same && !continues) {
      std::copy(start, start + n, cascade.x);
      for (int round = 0; round < 2; ++round) {  // one correction by the residual
        factor.right(arena, p, l, nullptr, cascade.x, e);
        for (int j = m - 1; j >= 0; --j) {
          e[j] *= inverse_or_none(factor.R[j * m + j]);
          for (int i = 0; i < j; ++i) e[i] -= factor.R[j * m + i] * e[j];
          subtract_scaled(cascade.x, N + j * n, -e[j], n);
        }
      }
      if (reached()) continue;
    }
    same = false;
    // rows of the level in the free space: B = [R 0], because the rows depend only on the first m directions
    double* B = zeros(arena, m * f.wide);
    for (int i = 0; i < m; ++i)
      for (int j = i; j < m; ++j) B[i * f.wide + j] = factor.R[j * m + i];
    factor.right(arena, p, l, damping_rows, start, e);
    if (!continues && whole && estimate_solution(arena, p, s, f, l, before, factors, e, w, space, start, y)) {
      f.include(arena, y), inside = true;
    } else if (!inside) {
      // relax limits of motion if necessary; if that does not suffice, relax hard rows too
      if (!make_feasible(solve, arena, p, s, f, cascade.x, true, w, start)) {
        const bool within_others = within(p, s, start, false) || make_feasible(solve, arena, p, s, f, cascade.x, false, w, start);
        if (!within_others && !s.softens) return s.softens = report.misses_hard = true, again;
        if (!within_others || !approach_motion_limits(arena, p, s, f, w, start)) return -1;
        relax(p, start, s, report.active);
      }
      f.set_ends(p, s, start, inside = true), factor.right(arena, p, l, damping_rows, start, e);
    }
    if (!minimise(arena, p, f, B, e, m, w, space, y)) return -2;
    std::copy(start, start + n, x);
    f.move(y, n, x), f.move_ends(arena, y), known = true;
  }
  if (!inside) {
    if (!within(p, s, x, false)) return s.softens ? -1 : (s.softens = report.misses_hard = true, again);
    relax(p, x, s, report.active);
  }
  const double length = norm(x, n);
  for (int i = 0; i < p.limits; ++i)
    if (report.active[i] == 0 && !is_clear(p, i, s.lower[i], s.upper[i], x, length))
      report.active[i] = static_cast<signed char>(place(p, s, i, x, length).side_of(s, i, -near_end));
  damping = cascade.damping;
  return s.relaxed || s.softens ? 0 : 1;
}

/// Solve without the limits of motion that even accelerations several times those of x, the solution without limits, do not reach. The result is the
/// solution if it is within these limits too. Returns true if it is.
inline bool solve_near(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, double* x, double& damping,
                       LimitedReport& report) {
  const Arena::Scope scope(arena);
  constexpr double several = 4.0;
  int *near = arena.take<int>(p.limits), *far = arena.take<int>(p.limits), count = 0, others = 0;
  double *at = arena.take<double>(p.limits), fastest = 0.0;
  for (int i = 0; i < p.limits; ++i)
    if (p.soft[i]) at[i] = p.along(i, x), fastest = std::max(fastest, std::abs(at[i]) * inverse_or_none(p.length[i]));
  for (int i = 0; i < p.limits; ++i) {
    const double reach = several * fastest * p.length[i];
    const bool is_far = p.soft[i] && at[i] - p.lower[i] > reach && p.upper[i] - at[i] > reach;
    (is_far ? far[others++] : near[count++]) = i;
  }
  if (others == 0) return false;
  const LimitedRows rows = p.part(arena, near, count);
  Ends s(arena, rows);
  double* y = arena.take<double>(p.n);
  LimitedReport found = {arena.take<signed char>(count)};
  s.copy(rows);
  std::fill(found.active, found.active + count, static_cast<signed char>(0));
  if (attempt(solve, arena, rows, s, y, damping, found) != 1) return false;
  const double length = norm(y, p.n);
  for (int k = 0; k < others; ++k)
    if (!is_clear(p, far[k], p.lower[far[k]], p.upper[far[k]], y, length)) return false;
  std::copy(y, y + p.n, x);
  std::fill(report.active, report.active + p.limits, static_cast<signed char>(0));
  for (int k = 0; k < count; ++k) report.active[near[k]] = found.active[k];
  return true;
}

}  // namespace limited

/// Solve the cascade within the limits. x: on entry, the solution without limits. Returns 1 on success; 0 if limits and hard rows contradict one another;
/// a value below 0 if there is no solution. If they contradict one another, x approaches the limits of motion by least squares; if this is not
/// sufficient, x violates hard rows too.
inline int solve_limited(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, double* x, double& damping,
                         LimitedReport& report) {
  const Arena::Scope scope(arena);
  if (limited::solve_near(solve, arena, p, x, damping, report)) return 1;
  limited::Ends s(arena, p);
  bool pinned = false;
  for (int i = 0; i < p.limits; ++i) pinned |= p.soft[i] && p.upper[i] <= p.lower[i];
  int flag = limited::again;
  while (flag == limited::again) {
    if (!s.softens) s.copy(p);
    std::fill(report.active, report.active + p.limits, static_cast<signed char>(0));
    flag = limited::attempt(solve, arena, p, s, x, damping, report);
    if (flag != 1 && pinned && s.pins_motion) {  // relax limits that contradict one another, including those with lower = upper
      s.pins_motion = s.relaxed = s.softens = report.misses_hard = false;
      flag = limited::again;
    }
  }
  return flag;
}

}  // namespace sarrus
