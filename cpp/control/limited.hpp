// The cascade with limits: each level is solved in the least-squares sense within the limits and without changing the levels before (Kanoun, Lamiraux
// and Wieber 2011; Escande, Mansard and Wieber 2014). From a feasible point, a level reaches its optimum by active sets (Nocedal and Wright 2006,
// algorithm 16.3). All iterates are within the limits, so the optimum is reached even in tiny feasible sets. If no feasible point is known, a
// quadratic programme computes one. The next level has the same limits, and must not change A x.
//
// Errors are relative to the size of a row, or to the norm of a limit's terms, so that the result does not depend on units.
#pragma once

#include <algorithm>
#include <cmath>

#include "cascade.hpp"
#include "tasks.hpp"

namespace sarrus {

/// State of the cascade without limits after a level: its number of directions, and x.
struct CascadeMark {
  int directions;
  bool damped;
  double damping;
  const double* x;
};

/// Weighted rows of all levels, and the rows of the limits.
struct LimitedRows {
  int n, levels;  // number of unknowns; number of levels: the first one contains the hard rows, the last one the least effort
  const int* level;  // (levels + 1) first row of each level
  const double *A, *b, *size;  // rows x n; sizes as in cascade.hpp
  int limits;
  const double* C;  // limits x n
  const double *lower, *upper;
  const double* terms;  // norm of the terms of each limit
  const bool* soft;  // true for limits of motion, which are relaxed before hard rows
  const double* q = nullptr;  // directions of the cascade without limits
  const CascadeMark* mark = nullptr;  // state of that cascade after each level; null: not known
  // (limits + 1) offset into `column`, which lists the nonzero columns of each limit; nothing is listed for dense rows
  const int* first = nullptr;
  const int* column = nullptr;
  const double* length = nullptr;  // norm of each limit's row

  void set_columns(Arena& arena) {
    int *starts = arena.take<int>(limits + 1), *columns = arena.take<int>(limits * n), count = 0;
    double* lengths = arena.take<double>(limits);
    for (int i = 0; i < limits; ++i) {
      const double* row = C + i * n;
      starts[i] = count;
      for (int k = 0; k < n; ++k)
        if (row[k] != 0.0) columns[count++] = k;
      if (count - starts[i] > few) count = starts[i];
      lengths[i] = std::sqrt(scalar_product(row, row, n));
    }
    starts[limits] = count;
    first = starts, column = columns, length = lengths;
  }
  double along(int i, const double* x) const {
    const double* row = C + i * n;
    if (first[i] == first[i + 1]) return scalar_product(row, x, n);
    double sum = 0.0;
    for (int k = first[i]; k < first[i + 1]; ++k) sum += row[column[k]] * x[column[k]];
    return sum;
  }
  static constexpr int few = 2;
};

/// Active limits: -1 or 1 if x is at the lower or upper bound; -3 or 3 if that bound had to be relaxed.
struct LimitedReport {
  signed char* active;
  bool misses_hard = false;  // true if hard rows are violated
};

namespace limited {

inline double square(double x) { return x * x; }

constexpr double rounding = 1e-9;  // rounding error, relative to the norm of a limit's terms
// fraction of a limit's row in the free directions below which no free motion changes the limit's value
constexpr double immobile = 1e-9;
constexpr double near_end = 100.0;  // x is at a limit if its distance is below this multiple of the rounding
constexpr double converged = 1e-12;  // relative improvement below which a level has reached its optimum

/// Bounds of the limits. If limits contradict one another, the limits of motion are relaxed first, then hard rows.
struct Ends {
  double *lower, *upper;
  bool relaxed = false;  // limits of motion were relaxed
  bool softens = false;  // true: hard rows are solved as a level of the highest priority instead of as equations
  bool pins_motion = true;  // true: limits of motion with lower = upper are equations
};

/// Value `at` of a limit's row at x, with the rounding errors of its bounds. side_of: 1 if the value exceeds the upper bound by more than `margin`
/// times rounding; -1 if it is below the lower bound by that amount; else 0.
struct Place {
  double at, low, high;  // low, high: rounding errors of the bounds

  int side_of(const Ends& s, int i, double margin = 1.0) const {
    return at > s.upper[i] + margin * high ? 1 : at < s.lower[i] - margin * low ? -1 : 0;
  }
};
inline Place place(const LimitedRows& p, const Ends& s, int i, const double* x) {
  constexpr double noise = 1e-4;  // relative rounding error of x, divided by `rounding`
  const double* row = p.C + i * p.n;
  double size = p.terms[i] + noise * p.length[i] * std::sqrt(scalar_product(x, x, p.n));
  for (int k = 0; k < p.n; ++k) size += std::abs(row[k] * x[k]);
  return {p.along(i, x), rounding * (size + std::abs(s.lower[i])), rounding * (size + std::abs(s.upper[i]))};
}

/// Return true if x is within all limits, without a tolerance for rounding.
inline bool within_exactly(const LimitedRows& p, const double* x) {
  for (int i = 0; i < p.limits; ++i) {
    const double at = scalar_product(p.C + i * p.n, x, p.n);
    if (!(at >= p.lower[i] && at <= p.upper[i])) return false;
  }
  return true;
}

/// Return true if x is within the limits, up to rounding; if `all`, also within the limits of motion.
inline bool within(const LimitedRows& p, const Ends& s, const double* x, bool all = true) {
  for (int i = 0; i < p.limits; ++i) {
    const double at = p.along(i, x);
    const bool plain = at >= s.lower[i] && at <= s.upper[i];  // without a tolerance for rounding
    if (!plain && (all || !p.soft[i]) && place(p, s, i, x).side_of(s, i) != 0) return false;
  }
  return true;
}

/// Relax motion limits that x violates: move the bound to the value at x, and mark the limit in `active`.
inline void relax(const LimitedRows& p, const double* x, Ends& s, signed char* active) {
  for (int i = 0; i < p.limits; ++i) {
    const Place position = place(p, s, i, x);
    const int side = p.soft[i] ? position.side_of(s, i) : 0;
    if (side == 0) continue;
    (side < 0 ? s.lower : s.upper)[i] = position.at;
    active[i] = static_cast<signed char>(3 * side);
    s.relaxed = true;
  }
}

/// Free space x = x_0 + N^T y, in which the results of previous levels do not change, and the limits in it: low <= C y <= high, each divided by the
/// norm of its row for x.
struct FreeSpace {
  int d;
  const double* N;  // d x n
  double *C, *low, *high;  // limits x d
  double* ratio;  // fraction of each limit's row in the free space; 0: no motion in this space changes its value

  FreeSpace(Arena& arena, const LimitedRows& p, const double* directions, int count)
      : d(count),
        N(directions),
        C(arena.take<double>(p.limits * count)),
        low(arena.take<double>(p.limits)),
        high(arena.take<double>(p.limits)),
        ratio(arena.take<double>(p.limits)) {
    for (int i = 0; i < p.limits; ++i) {
      const double inverse = p.length[i] > 0.0 ? 1.0 / p.length[i] : 0.0;
      double *row = C + i * d, squares = 0.0;
      for (int j = 0; j < d; ++j) row[j] = p.along(i, N + j * p.n) * inverse, squares += row[j] * row[j];
      ratio[i] = squares > immobile * immobile ? std::sqrt(squares) : 0.0;
    }
  }

  /// Set the bounds of the limits relative to x. If x is at a bound up to rounding, the bound is moved to x, so that x remains feasible.
  void set_ends(const LimitedRows& p, const Ends& s, const double* x, bool inside) {
    for (int i = 0; i < p.limits; ++i) {
      const double at = p.along(i, x), inverse = p.length[i] > 0.0 ? 1.0 / p.length[i] : 0.0;
      low[i] = s.lower[i] > -far_limit ? (s.lower[i] - at) * inverse : -far_limit;
      high[i] = s.upper[i] < far_limit ? (s.upper[i] - at) * inverse : far_limit;
      if (inside) low[i] = std::min(low[i], 0.0), high[i] = std::max(high[i], 0.0);
    }
  }

  void move(const double* y, int n, double* x) const {
    for (int j = 0; j < d; ++j) subtract_scaled(x, N + j * n, -y[j], n);
  }
};

/// Working set of the active-set method: the active limits, each with its side, 1 for the upper bound and -1 for the lower one.
struct WorkingSet {
  int* limit;
  signed char* side;
  int count = 0;

  void add(int i, int at) { limit[count] = i, side[count++] = static_cast<signed char>(at); }
  void drop(int k) {
    --count;
    std::copy(limit + k + 1, limit + count + 1, limit + k), std::copy(side + k + 1, side + count + 1, side + k);
  }
};

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
    for (int j = 0; j < d; ++j) row[j] = f.C[i * d + j] * inverse;
    const double at = scalar_product(row, goal, d);
    low[rows] = f.low[i] > -far_limit ? f.low[i] * inverse - at : -far_limit;
    high[rows] = f.high[i] < far_limit ? f.high[i] * inverse - at : far_limit;
    size = std::max(size, std::max(low[rows], -high[rows]));
    rows_of_limits[rows++] = i;
  }
  std::copy(goal, goal + d, y);
  w.count = 0;
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

/// Project onto the limits of `w`: for each limit that is not in `space` yet, add a direction to `space`. Limits that depend on earlier ones are
/// removed from w.
inline void project_onto(const FreeSpace& f, WorkingSet& w, Cascade<double>& space) {
  for (int k = space.directions; k < w.count;) {
    const int i = w.limit[k], before = space.directions;
    const double end = w.side[k] > 0 ? f.high[i] : f.low[i];
    const double size = 1.0;
    space.add(f.C + i * f.d, &end, &size, 1, false);
    if (space.directions > before)
      ++k;
    else
      w.drop(k);
  }
}

/// Move y from a feasible point to the minimum of |B y - e| (B: m x d) within the limits, by active sets. Returns true if the method converged.
inline bool minimise(Arena& arena, const LimitedRows& p, const FreeSpace& f, const double* B, const double* e, int m,
                     WorkingSet& w, double* y) {
  const Arena::Scope scope(arena);
  const int d = f.d, patience = 3 * (p.limits + d);
  double *sizes = arena.take<double>(m), *step = arena.take<double>(d), *off = arena.take<double>(m),
         *slope = arena.take<double>(d), *push = arena.take<double>(p.limits), terms = 0.0;
  for (int i = 0; i < m; ++i) {
    const double size = scalar_product(B + i * d, B + i * d, d);
    sizes[i] = std::sqrt(size), terms += e[i] * e[i];
    for (int j = 0; j < d; ++j) terms += B[i * d + j] * y[j] * B[i * d + j] * y[j];
  }
  Cascade<double> space(arena, d, m + d);
  // mark limits that depend on active ones, because their values change only by rounding in a step along the active limits
  bool* depends = arena.take<bool>(p.limits);
  std::fill(depends, depends + p.limits, false);
  const auto active = [&](int i) { return std::find(w.limit, w.limit + w.count, i) != w.limit + w.count; };
  int added = -1;
  for (int round = 0; round < 4 * patience; ++round) {
    std::copy(y, y + d, space.x);
    project_onto(f, w, space);
    if (added >= 0 && !active(added)) depends[added] = true;
    std::copy(space.x, space.x + d, y);
    const int standing = space.directions;
    if (standing < d) space.add(B, e, sizes, m, false);
    space.directions = standing;
    for (int j = 0; j < d; ++j) step[j] = space.x[j] - y[j];
    double gain = 0.0;
    for (int i = 0; i < m; ++i) gain += square(scalar_product(B + i * d, step, d));
    if (gain <= converged * converged * terms) std::fill(step, step + d, 0.0);  // the step is only rounding
    // largest fraction of the step that remains within the limits
    const double length = std::sqrt(scalar_product(step, step, d));
    double fraction = 1.0;
    int next = -1, side = 0;
    for (int i = 0; i < p.limits; ++i) {
      if (f.ratio[i] == 0.0 || depends[i] || active(i)) continue;
      const double* row = f.C + i * d;
      const double along = scalar_product(row, step, d);
      if (std::abs(along) <= Cascade<double>::dependent * length) continue;
      const double end = along > 0.0 ? f.high[i] : f.low[i];
      if (std::abs(end) >= far_limit) continue;
      const double reach = std::max(0.0, (end - scalar_product(row, y, d)) / along);
      if (reach < fraction) fraction = reach, next = i, side = along > 0.0 ? 1 : -1;
    }
    for (int j = 0; j < d; ++j) y[j] += fraction * step[j];
    if (next >= 0) {
      w.add(added = next, side);
      continue;
    }
    // this is the optimum for the working set: search for an active limit whose multiplier has the wrong sign
    double size = 0.0, worst = 0.0;
    std::fill(slope, slope + d, 0.0);
    for (int i = 0; i < m; ++i) {
      off[i] = e[i] - scalar_product(B + i * d, y, d);
      subtract_scaled(slope, B + i * d, -off[i], d);
      size += sizes[i] * sizes[i];
    }
    const double negligible = converged * std::sqrt(size * terms);
    for (int k = standing - 1; k >= 0; --k) {
      double sum = scalar_product(slope, space.q + k * d, d);
      for (int l = k + 1; l < standing; ++l) sum -= push[l] * scalar_product(f.C + w.limit[l] * d, space.q + k * d, d);
      push[k] = sum / scalar_product(f.C + w.limit[k] * d, space.q + k * d, d);
    }
    int wrong = -1;
    for (int k = 0; k < w.count; ++k) {
      const int i = w.limit[k];
      const double pulls = -push[k] * w.side[k] * f.ratio[i];
      if (pulls <= negligible) continue;
      // choose the largest multiplier; after many rounds, in case of cycling, the first limit (Bland's rule)
      if (round > patience ? wrong < 0 || i < w.limit[wrong] : pulls > worst) wrong = k, worst = pulls;
    }
    if (wrong < 0) return true;
    w.drop(wrong), space.directions = std::min(standing, wrong);
    std::fill(depends, depends + p.limits, false), added = -1;
  }
  return false;
}

/// Move x (n) to a feasible point, near `goal` if possible, by the quadratic programme. `all`: include the limits of motion. Returns true if a
/// feasible point exists.
inline bool make_feasible(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, const Ends& s, const FreeSpace& f,
                          const double* goal, bool all, WorkingSet& w, double* x) {
  const Arena::Scope scope(arena);
  Cascade<double> space(arena, f.d, f.d);
  double *y = arena.take<double>(f.d), *toward = arena.take<double>(f.d), *moved = arena.take<double>(p.n);
  // if the goal is so far away that the programme fails, use the current point as the goal
  for (const double factor : {1.0, 0.0}) {
    for (int j = 0; j < f.d; ++j)
      toward[j] = factor * (scalar_product(f.N + j * p.n, goal, p.n) - scalar_product(f.N + j * p.n, x, p.n));
    if (!nearest_feasible(solve, arena, p, f, toward, all, w, y)) continue;
    std::copy(toward, toward + f.d, space.x);
    space.directions = 0;
    project_onto(f, w, space);  // this satisfies the active limits more precisely than the programme
    for (const double* place : {static_cast<const double*>(space.x), static_cast<const double*>(y)}) {
      std::copy(x, x + p.n, moved), f.move(place, p.n, moved);
      if (!within(p, s, moved, all)) continue;
      std::copy(moved, moved + p.n, x);
      return true;
    }
  }
  w.count = 0;
  return false;
}

/// Move x, which satisfies all other limits, as near as possible to the limits of motion, by least squares. The violations are those of limits of the
/// scaled unknowns, so that limits of different units are comparable.
inline bool approach_motion_limits(Arena& arena, const LimitedRows& p, const Ends& s, FreeSpace& f, WorkingSet& w, double* x) {
  constexpr int rounds = 5;  // after each round, limits that x has reached become active
  for (int round = 0; round < rounds; ++round) {
    const Arena::Scope scope(arena);
    double *B = arena.take<double>(p.limits * f.d), *e = arena.take<double>(p.limits), *y = arena.take<double>(f.d);
    int m = 0;
    f.set_ends(p, s, x, false);
    for (int i = 0; i < p.limits; ++i) {
      const int side = p.soft[i] && f.ratio[i] > 0.0 ? place(p, s, i, x).side_of(s, i) : 0;
      if (side != 0) {
        std::copy(f.C + i * f.d, f.C + (i + 1) * f.d, B + m * f.d);
        e[m++] = side > 0 ? f.high[i] : f.low[i];
        f.low[i] = -far_limit, f.high[i] = far_limit;
      } else {
        f.low[i] = std::min(f.low[i], 0.0), f.high[i] = std::max(f.high[i], 0.0);
      }
    }
    if (m == 0) return true;
    std::fill(y, y + f.d, 0.0);
    w.count = 0;
    if (!minimise(arena, p, f, B, e, m, w, y)) return false;
    f.move(y, p.n, x);
  }
  return true;
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
  bool inside = within(p, s, x);  // true after the first level
  bool same = p.mark && !s.softens;  // true if the solution of all levels so far equals that of the cascade without limits
  const auto pin = [&] {  // limits with lower = upper are equations
    const int before = cascade.directions;
    for (int i = 0; i < p.limits; ++i) {
      if (s.upper[i] <= s.lower[i] && (s.pins_motion || !p.soft[i]))
        cascade.add(p.C + i * n, s.upper + i, p.length + i, 1, false);
    }
    same = same && cascade.directions == before;
    std::copy(cascade.x, cascade.x + n, x);
    inside = within(p, s, x);
  };
  for (int l = 0; l < p.levels; ++l) {
    const Arena::Scope level_scope(arena);
    const int k = p.level[l + 1] - p.level[l];
    const double *A = p.A + p.level[l] * n, *b = p.b + p.level[l], *size = p.size + p.level[l];
    if (l == 0 && (s.softens || k == 0)) pin();
    if (k == 0) continue;
    const int before = cascade.directions;
    if (before >= n) break;  // no direction remains
    std::copy(x, x + n, start), std::copy(x, x + n, cascade.x);
    // add the level without limits to the cascade, damped if necessary
    same = same && !p.mark[l].damped;
    bool damped = false;
    if (same) {
      const CascadeMark& mark = p.mark[l];
      std::copy(p.q + before * n, p.q + mark.directions * n, cascade.q + before * n);
      std::copy(mark.x, mark.x + n, cascade.x);
      cascade.directions = mark.directions, cascade.damping = mark.damping;
    } else {
      damped = cascade.add(A, b, size, k, l > 0 && l < p.levels - 1, F);
    }
    if (l == 0 && !s.softens) {  // first satisfy hard rows, ignoring the limits
      pin();
      continue;
    }
    const int m = cascade.directions - before;
    if (m == 0) continue;
    if (within(p, s, cascade.x)) {
      std::copy(cascade.x, cascade.x + n, x);
      inside = true;
      continue;
    }
    same = false;
    cascade.add_all_directions();
    cascade.directions = before + m;
    FreeSpace f(arena, p, cascade.q + before * n, n - before);
    double* y = arena.take<double>(f.d);
    std::fill(y, y + f.d, 0.0);
    f.set_ends(p, s, start, inside);
    if (!inside) {
      // relax limits of motion if necessary; if that does not suffice, relax hard rows too
      if (!make_feasible(solve, arena, p, s, f, cascade.x, true, w, start)) {
        const bool within_others = within(p, s, start, false) || make_feasible(solve, arena, p, s, f, cascade.x, false, w, start);
        if (!within_others && !s.softens) return s.softens = report.misses_hard = true, again;
        if (!within_others || !approach_motion_limits(arena, p, s, f, w, start)) return -1;
        relax(p, start, s, report.active);
      }
      f.set_ends(p, s, start, inside = true);
    } else {  // begin with the working set of the level before, without limits that are no longer active
      for (int j = w.count - 1; j >= 0; --j)
        if (f.ratio[w.limit[j]] == 0.0 || place(p, s, w.limit[j], start).side_of(s, w.limit[j], -near_end) != w.side[j])
          w.drop(j);
    }
    // rows of the level in the free space: [A; F] N^T = Q B with B = [R 0], because the rows depend only on the first m directions
    const int rows = damped ? 2 * k : k;
    double *column = arena.take<double>(rows * m), *R = arena.take<double>(m * m), *off = arena.take<double>(rows),
           *B = arena.take<double>(m * f.d), *e = arena.take<double>(m);
    for (int i = 0; i < rows; ++i) {
      const double* row = i < k ? A + i * n : F + (i - k) * n;
      off[i] = (i < k ? b[i] : 0.0) - scalar_product(row, start, n);
      for (int j = 0; j < m; ++j) column[j * rows + i] = scalar_product(row, f.N + j * n, n);
    }
    orthonormal_columns(column, rows, m, R);
    std::fill(B, B + m * f.d, 0.0);
    for (int i = 0; i < m; ++i) {
      e[i] = scalar_product(column + i * rows, off, rows);
      for (int j = i; j < m; ++j) B[i * f.d + j] = R[j * m + i];
    }
    if (!minimise(arena, p, f, B, e, m, w, y)) return -2;
    std::copy(start, start + n, x);
    f.move(y, n, x);
  }
  if (!inside) {
    if (!within(p, s, x, false)) return s.softens ? -1 : (s.softens = report.misses_hard = true, again);
    relax(p, x, s, report.active);
  }
  for (int i = 0; i < p.limits; ++i) {
    const Place position = place(p, s, i, x);
    if (report.active[i] == 0) report.active[i] = static_cast<signed char>(position.side_of(s, i, -near_end));
  }
  damping = cascade.damping;
  return s.relaxed || s.softens ? 0 : 1;
}

}  // namespace limited

/// Solve the cascade within the limits. Returns 1 on success; 0 if limits and hard rows contradict one another; a value below 0 if there is no
/// solution. If they contradict one another, x approaches the limits of motion by least squares; if this is not sufficient, x violates hard rows too.
inline int solve_limited(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, double* x, double& damping,
                         LimitedReport& report) {
  const Arena::Scope scope(arena);
  limited::Ends s = {arena.take<double>(p.limits), arena.take<double>(p.limits)};
  bool pinned = false;
  for (int i = 0; i < p.limits; ++i) pinned |= p.soft[i] && p.upper[i] <= p.lower[i];
  int flag = limited::again;
  while (flag == limited::again) {
    if (!s.softens) std::copy(p.lower, p.lower + p.limits, s.lower), std::copy(p.upper, p.upper + p.limits, s.upper);
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
