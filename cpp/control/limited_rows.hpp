// Rows of the levels and limits of limited.hpp, and places of points with regard to limits.
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
  // number of unknowns; number of levels: the first one contains the hard rows, the last one the least effort, a diagonal matrix
  int n, levels;
  const int* level;  // (levels + 1) first row of each level
  const double *A, *b, *size;  // rows x n; sizes as in cascade.hpp
  int limits;
  const double* C;  // limits x n
  const double *lower, *upper;
  const double* terms;  // norm of the terms of each limit
  const bool* soft;  // true for limits of motion, which are relaxed before hard rows
  const double* q = nullptr;  // directions of the cascade without limits, and their number
  int directions = 0;
  const CascadeMark* mark = nullptr;  // state of that cascade after each level
  const int* pair = nullptr;  // (limits x 2) columns of the nonzero entries of each limit, which may be the same; -1: a dense row
  const double *factor = nullptr, *length = nullptr;  // (limits x 2) these entries; norm of each limit's row
  const double* const* row = nullptr;  // (limits) each limit's row

  void set_factors(Arena& arena, const int* columns) {
    double *factors = arena.take<double>(2 * limits), *lengths = arena.take<double>(limits);
    const double** rows = arena.take<const double*>(limits);
    for (int i = 0; i < limits; ++i) {
      const double* from = rows[i] = C + i * n;
      const int j = columns[2 * i], k = columns[2 * i + 1];
      factors[2 * i] = j >= 0 ? from[j] : 0.0, factors[2 * i + 1] = k != j ? from[k] : 0.0;
      lengths[i] = std::sqrt(j < 0 ? scalar_product(from, from, n)
                                   : factors[2 * i] * factors[2 * i] + factors[2 * i + 1] * factors[2 * i + 1]);
    }
    pair = columns, factor = factors, length = lengths, row = rows;
  }
  /// Return the rows with `count` of the limits.
  LimitedRows part(Arena& arena, const int* limit, int count) const {
    LimitedRows to = *this;
    const auto some = [&](const auto* from, int size) {
      using Number = std::decay_t<decltype(*from)>;
      Number* chosen = arena.take<Number>(count * size);
      for (int i = 0; i < count; ++i)
        for (int k = 0; k < size; ++k) chosen[i * size + k] = from[limit[i] * size + k];
      return chosen;
    };
    to.limits = count, to.row = some(row, 1), to.lower = some(lower, 1), to.upper = some(upper, 1), to.terms = some(terms, 1);
    to.soft = some(soft, 1), to.pair = some(pair, 2), to.factor = some(factor, 2), to.length = some(length, 1);
    return to;
  }
  double along(int i, const double* x) const {
    if (pair[2 * i] < 0) return scalar_product(row[i], x, n);
    return factor[2 * i] * x[pair[2 * i]] + factor[2 * i + 1] * x[pair[2 * i + 1]];
  }
  /// Solve the cascade without limits.
  void set_marks(Arena& arena) {
    Cascade<double> cascade(arena, n, level[levels]);
    CascadeMark* marks = arena.take<CascadeMark>(levels);
    for (int l = 0; l < levels; ++l) {
      const double *rows = A + level[l] * n, *right = b + level[l], *sizes = size + level[l];
      const bool damped = cascade.add(rows, right, sizes, level[l + 1] - level[l], l > 0 && l < levels - 1);
      double* x = arena.take<double>(n);
      std::copy(cascade.x, cascade.x + n, x);
      marks[l] = {cascade.directions, damped, cascade.damping, x};
    }
    q = cascade.q, directions = cascade.directions, mark = marks;
  }
  /// Return true if each row of level l has added one of its m directions, so that it is a combination of this direction and those before. The level
  /// keeps the order of its directions if it is damped, because the cascade computes them again.
  bool reversed(int l, int m) const { return m == level[l + 1] - level[l] && !mark[l].damped; }
  /// Copy the directions of all levels, in the opposite order where `reversed` is true (see LevelFactors).
  void copy_directions(double* to) const {
    int first = 0;
    for (int l = 0; l < levels && first < directions; ++l) {
      const int end = mark[l].directions, m = end - first;
      for (int j = 0; j < m; ++j) {
        const double* direction = q + (reversed(l, m) ? end - 1 - j : first + j) * n;
        std::copy(direction, direction + n, to + (first + j) * n);
      }
      first = end;
    }
  }
  const double* diagonal = nullptr;  // of the rows of the last level
  void set_diagonal(Arena& arena) {
    double* entry = arena.take<double>(n);
    for (int i = 0; i < n; ++i) entry[i] = A[(level[levels - 1] + i) * n + i];
    diagonal = entry;
  }
  /// Compute A x of a level.
  void product(int l, const double* x, double* to) const {
    constexpr int width = sizeof(WideDoubles) / sizeof(double);
    int i = 0;
    if (l < levels - 1) {
      for (const double* row = A + level[l] * n; i < level[l + 1] - level[l]; ++i, row += n) to[i] = scalar_product(row, x, n);
      return;
    }
    for (; i + width <= n; i += width)
      *reinterpret_cast<WideDoubles*>(to + i) =
          *reinterpret_cast<const WideDoubles*>(diagonal + i) * *reinterpret_cast<const WideDoubles*>(x + i);
    for (; i < n; ++i) to[i] = diagonal[i] * x[i];
  }
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

  Ends(Arena& arena, const LimitedRows& p) : lower(arena.take<double>(p.limits)), upper(arena.take<double>(p.limits)) {}
  Ends(double* low, double* high) : lower(low), upper(high) {}
  void copy(const LimitedRows& p) {
    std::copy(p.lower, p.lower + p.limits, lower), std::copy(p.upper, p.upper + p.limits, upper);
  }
};

/// Value `at` of a limit's row at x, with the rounding errors of its bounds. side_of: 1 if the value exceeds the upper bound by more than `margin`
/// times rounding; -1 if it is below the lower bound by that amount; else 0.
struct Place {
  double at, low, high;  // low, high: rounding errors of the bounds

  int side_of(const Ends& s, int i, double margin = 1.0) const {
    return at > s.upper[i] + margin * high ? 1 : at < s.lower[i] - margin * low ? -1 : 0;
  }
};
/// `length`: norm of x.
inline Place place(const LimitedRows& p, const Ends& s, int i, const double* x, double length) {
  constexpr double noise = 1e-4;  // relative rounding error of x, divided by `rounding`
  const double* row = p.row[i];
  double size = p.terms[i] + noise * p.length[i] * length;
  if (const int* k = p.pair + 2 * i; k[0] < 0)
    for (int c = 0; c < p.n; ++c) size += std::abs(row[c] * x[c]);
  else
    size += std::abs(p.factor[2 * i] * x[k[0]]) + std::abs(p.factor[2 * i + 1] * x[k[1]]);
  return {p.along(i, x), rounding * (size + std::abs(s.lower[i])), rounding * (size + std::abs(s.upper[i]))};
}
inline double norm(const double* x, int n) { return std::sqrt(scalar_product(x, x, n)); }

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
    if (!plain && (all || !p.soft[i]) && place(p, s, i, x, norm(x, p.n)).side_of(s, i) != 0) return false;
  }
  return true;
}

/// Relax motion limits that x violates: move the bound to the value at x, and mark the limit in `active`.
inline void relax(const LimitedRows& p, const double* x, Ends& s, signed char* active) {
  const double length = norm(x, p.n);
  for (int i = 0; i < p.limits; ++i) {
    const Place position = place(p, s, i, x, length);
    const int side = p.soft[i] ? position.side_of(s, i) : 0;
    if (side == 0) continue;
    (side < 0 ? s.lower : s.upper)[i] = position.at;
    active[i] = static_cast<signed char>(3 * side);
    s.relaxed = true;
  }
}

}  // namespace limited

}  // namespace sarrus
