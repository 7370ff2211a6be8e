// The cascade with limits: each level does its best within them and with what the levels before leave free (Kanoun, Lamiraux and Wieber
// 2011; Escande, Mansard and Wieber 2014). From a place within the limits a level goes to its own best place by active sets (Nocedal and
// Wright 2006, algorithm 16.3): it never leaves the limits, so that what can be had is found however little room there is. A quadratic
// programme finds the place to start from where none is known. That A x stays what it is, and the limits are the next level's again.
//
// Every row is compared with its own size, and every limit with the numbers that it is made of: units are nobody's business here.
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
  const double *A, *b, *size;  // rows x n; sizes as the cascade's
  int limits;
  const double* C;  // limits x n
  const double *lower, *upper;
  const double* terms;  // size of what a limit is the difference of
  const bool* soft;  // which of them are given up first: those of motion
};

/// What held it back: of each limit -1 or 1 where it acts at its lower or upper end; 2 added to the size where it had to be missed.
struct LimitedReport {
  signed char* active;
  bool misses_hard = false;  // rows that must hold could not
};

namespace limited {

inline double square(double x) { return x * x; }

constexpr double share = 1e-9;  // of a limit's size that is rounding
constexpr double held = 1e-9;  // a limit of which no more than this is free does not move
constexpr double acts = 100.0;  // times rounding: nearer to its end a limit counts as one that holds back
constexpr double flat = 1e-12;  // a level that can improve by no more than this share of itself is at its best

/// Limits as far as they stand: those of motion, and then rows that must hold, are given up where they contradict the others.
struct Standing {
  double *lower, *upper;
  bool relaxed = false, gives_way = false;
};

/// Where x is along a limit: beyond its upper (1) or lower (-1) end by more than `margin`, so many times what is rounding there; else 0.
struct Place {
  double at, low, high;  // with what is rounding at either end

  int beyond(const Standing& s, int i, double margin = 1.0) const {
    return at > s.upper[i] + margin * high ? 1 : at < s.lower[i] - margin * low ? -1 : 0;
  }
};
inline Place place(const LimitedRows& p, const Standing& s, int i, const double* x) {
  constexpr double noise = 1e-4;  // of `share`: x is known to that share of its length
  const double *row = p.C + i * p.n, squares = scalar_product(row, row, p.n), length = scalar_product(x, x, p.n);
  double size = p.terms[i] + noise * std::sqrt(squares * length);
  for (int k = 0; k < p.n; ++k) size += std::abs(row[k] * x[k]);
  return {scalar_product(row, x, p.n), share * (size + std::abs(s.lower[i])), share * (size + std::abs(s.upper[i]))};
}

/// `all`: limits of motion too.
inline bool within(const LimitedRows& p, const Standing& s, const double* x, bool all = true) {
  for (int i = 0; i < p.limits; ++i) {
    const double at = scalar_product(p.C + i * p.n, x, p.n);
    const bool plain = at >= s.lower[i] && at <= s.upper[i];  // whatever rounding is
    if (!plain && (all || !p.soft[i]) && place(p, s, i, x).beyond(s, i) != 0) return false;
  }
  return true;
}

/// Gives up limits of motion as far as they are missed at x, and names them.
inline void relax(const LimitedRows& p, const double* x, Standing& s, signed char* active) {
  for (int i = 0; i < p.limits; ++i) {
    const Place here = place(p, s, i, x);
    const int side = p.soft[i] ? here.beyond(s, i) : 0;
    if (side == 0) continue;
    (side < 0 ? s.lower : s.upper)[i] = here.at;
    active[i] = static_cast<signed char>(3 * side);
    s.relaxed = true;
  }
}

/// What is free, x = x_0 + N^T y, and the limits in it, each divided by its length in x: low <= c y <= high.
struct Free {
  int d;
  const double* N;  // d x n
  double *C, *low, *high;  // limits x d
  double* part;  // which share of a limit is free; 0: it does not move

  Free(Arena& arena, const LimitedRows& p, const double* directions, int count)
      : d(count),
        N(directions),
        C(arena.take<double>(p.limits * count)),
        low(arena.take<double>(p.limits)),
        high(arena.take<double>(p.limits)),
        part(arena.take<double>(p.limits)) {
    for (int i = 0; i < p.limits; ++i) {
      const double *limit = p.C + i * p.n, length = std::sqrt(scalar_product(limit, limit, p.n));
      double *row = C + i * d, squares = 0.0;
      std::fill(row, row + d, 0.0);
      if (length > 0.0)
        for (int j = 0; j < d; ++j) row[j] = scalar_product(N + j * p.n, limit, p.n) / length, squares += row[j] * row[j];
      part[i] = squares > held * held ? std::sqrt(squares) : 0.0;
    }
  }

  /// Ends of the limits as seen from x. Where x stands at one, rounding does not forbid that it stays.
  void see(const LimitedRows& p, const Standing& s, const double* x, bool inside) {
    for (int i = 0; i < p.limits; ++i) {
      const double *limit = p.C + i * p.n, length = std::sqrt(scalar_product(limit, limit, p.n));
      const double at = scalar_product(limit, x, p.n), inverse = length > 0.0 ? 1.0 / length : 0.0;
      low[i] = s.lower[i] > -far_limit ? (s.lower[i] - at) * inverse : -far_limit;
      high[i] = s.upper[i] < far_limit ? (s.upper[i] - at) * inverse : far_limit;
      if (inside) low[i] = std::min(low[i], 0.0), high[i] = std::max(high[i], 0.0);
    }
  }

  void move(const double* y, int n, double* x) const {
    for (int j = 0; j < d; ++j) subtract_scaled(x, N + j * n, -y[j], n);
  }
};

/// Limits at whose ends the search stands: which, and 1 at the upper end, -1 at the lower.
struct Working {
  int* limit;
  signed char* side;
  int count = 0;

  void add(int i, int at) { limit[count] = i, side[count++] = static_cast<signed char>(at); }
  void drop(int k) {
    --count;
    std::copy(limit + k + 1, limit + count + 1, limit + k), std::copy(side + k + 1, side + count + 1, side + k);
  }
};

/// To y that is nearest to `goal` (d) within the limits, by the programme; `all`: limits of motion too. Whether there is one.
inline bool nearest(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, const Free& f, const double* goal, bool all,
                    Working& w, double* y) {
  const Arena::Scope scope(arena);
  const int d = f.d;
  double *H = arena.take<double>(d * d), *zero = arena.take<double>(d), *C = arena.take<double>(p.limits * d),
         *low = arena.take<double>(p.limits), *high = arena.take<double>(p.limits), *force = arena.take<double>(p.limits),
         size = 0.0;
  int *which = arena.take<int>(p.limits), rows = 0;
  for (int i = 0; i < p.limits; ++i) {
    if (f.part[i] == 0.0 || (!all && p.soft[i]) || (f.low[i] <= -far_limit && f.high[i] >= far_limit)) continue;
    const double inverse = 1.0 / f.part[i];
    double* row = C + rows * d;
    for (int j = 0; j < d; ++j) row[j] = f.C[i * d + j] * inverse;
    const double at = scalar_product(row, goal, d);
    low[rows] = f.low[i] > -far_limit ? f.low[i] * inverse - at : -far_limit;
    high[rows] = f.high[i] < far_limit ? f.high[i] * inverse - at : far_limit;
    size = std::max(size, std::max(low[rows], -high[rows]));
    which[rows++] = i;
  }
  std::copy(goal, goal + d, y);
  w.count = 0;
  if (!(size > 0.0)) return true;
  constexpr double none = 1e30;  // the programme's infinity
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
    if (std::abs(force[i]) > 1e-9 * strongest) w.add(which[i], force[i] > 0.0 ? 1 : -1);
  return true;
}

/// Goes to the limits of `w`, exactly, on the shortest way; those of the directions that there are come first, and it stands at them. Limits
/// that depend on others leave w.
inline void stand_at(const Free& f, Working& w, Cascade<double>& space) {
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

/// y becomes the best place within the limits for |B y - e| (B: m x d), by active sets. Whether it was found.
inline bool best(Arena& arena, const LimitedRows& p, const Free& f, const double* B, const double* e, int m, Working& w,
                 double* y) {
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
  for (int round = 0; round < 4 * patience; ++round) {
    std::copy(y, y + d, space.x);
    stand_at(f, w, space);
    std::copy(space.x, space.x + d, y);
    const int standing = space.directions;
    if (standing < d) space.add(B, e, sizes, m, false);
    space.directions = standing;
    for (int j = 0; j < d; ++j) step[j] = space.x[j] - y[j];
    double gain = 0.0;
    for (int i = 0; i < m; ++i) gain += square(scalar_product(B + i * d, step, d));
    if (gain <= flat * flat * terms) std::fill(step, step + d, 0.0);  // rounding goes nowhere
    // how far that way the next limit lets it go
    const double length = std::sqrt(scalar_product(step, step, d));
    double far = 1.0;
    int next = -1, side = 0;
    for (int i = 0; i < p.limits; ++i) {
      if (f.part[i] == 0.0 || std::find(w.limit, w.limit + w.count, i) != w.limit + w.count) continue;
      const double* row = f.C + i * d;
      const double along = scalar_product(row, step, d);
      if (std::abs(along) <= Cascade<double>::dependent * length) continue;
      const double end = along > 0.0 ? f.high[i] : f.low[i];
      if (std::abs(end) >= far_limit) continue;
      const double reach = std::max(0.0, (end - scalar_product(row, y, d)) / along);
      if (reach < far) far = reach, next = i, side = along > 0.0 ? 1 : -1;
    }
    for (int j = 0; j < d; ++j) y[j] += far * step[j];
    if (next >= 0) {
      w.add(next, side);
      continue;
    }
    // at the best place at these limits: which of them holds on to it, not back?
    double size = 0.0, worst = 0.0;
    std::fill(slope, slope + d, 0.0);
    for (int i = 0; i < m; ++i) {
      off[i] = e[i] - scalar_product(B + i * d, y, d);
      subtract_scaled(slope, B + i * d, -off[i], d);
      size += sizes[i] * sizes[i];
    }
    const double rounding = flat * std::sqrt(size * terms);
    for (int k = standing - 1; k >= 0; --k) {
      double sum = scalar_product(slope, space.q + k * d, d);
      for (int l = k + 1; l < standing; ++l) sum -= push[l] * scalar_product(f.C + w.limit[l] * d, space.q + k * d, d);
      push[k] = sum / scalar_product(f.C + w.limit[k] * d, space.q + k * d, d);
    }
    int wrong = -1;
    for (int k = 0; k < w.count; ++k) {
      const int i = w.limit[k];
      const double pulls = -push[k] * w.side[k] * f.part[i];
      if (pulls <= rounding) continue;
      // the most wrong one; later, in case that goes round in circles, the first (Bland's rule)
      if (round > patience ? wrong < 0 || i < w.limit[wrong] : pulls > worst) wrong = k, worst = pulls;
    }
    if (wrong < 0) return true;
    w.drop(wrong), space.directions = std::min(standing, wrong);
  }
  return false;
}

/// x (n) moves to a place within the limits, near `goal` if that can be, by the programme; `all`: limits of motion too. Whether it found one.
inline bool enter(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, const Standing& s, const Free& f,
                  const double* goal, bool all, Working& w, double* x) {
  const Arena::Scope scope(arena);
  Cascade<double> space(arena, f.d, f.d);
  double *y = arena.take<double>(f.d), *toward = arena.take<double>(f.d), *there = arena.take<double>(p.n);
  for (const double share : {1.0, 0.0}) {  // should the goal be too far away for the programme, near where it is
    for (int j = 0; j < f.d; ++j)
      toward[j] = share * (scalar_product(f.N + j * p.n, goal, p.n) - scalar_product(f.N + j * p.n, x, p.n));
    if (!nearest(solve, arena, p, f, toward, all, w, y)) continue;
    std::copy(toward, toward + f.d, space.x);
    space.directions = 0;
    stand_at(f, w, space);  // the same with the digits that the programme does not have
    for (const double* place : {static_cast<const double*>(space.x), static_cast<const double*>(y)}) {
      std::copy(x, x + p.n, there), f.move(place, p.n, there);
      if (!within(p, s, there, all)) continue;
      std::copy(there, there + p.n, x);
      return true;
    }
  }
  w.count = 0;
  return false;
}

/// x, which is within the other limits, misses those of motion as little as possible: their squares, each in units of energy.
inline bool ease(Arena& arena, const LimitedRows& p, const Standing& s, Free& f, Working& w, double* x) {
  constexpr int rounds = 5;  // in which those that need not be missed any more join the others
  for (int round = 0; round < rounds; ++round) {
    const Arena::Scope scope(arena);
    double *B = arena.take<double>(p.limits * f.d), *e = arena.take<double>(p.limits), *y = arena.take<double>(f.d);
    int m = 0;
    f.see(p, s, x, false);
    for (int i = 0; i < p.limits; ++i) {
      const int side = p.soft[i] && f.part[i] > 0.0 ? place(p, s, i, x).beyond(s, i) : 0;
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
    if (!best(arena, p, f, B, e, m, w, y)) return false;
    f.move(y, p.n, x);
  }
  return true;
}

constexpr int again = 100;  // with rows that must hold as the highest priority

inline int attempt(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, Standing& s, double* x, double& damping,
                   LimitedReport& report) {
  const Arena::Scope scope(arena);
  const int n = p.n;
  int widest = 0;
  for (int l = 0; l < p.levels; ++l) widest = std::max(widest, p.level[l + 1] - p.level[l]);
  Cascade<double> cascade(arena, n, p.level[p.levels] + p.limits);
  double *start = arena.take<double>(n), *F = arena.take<double>(widest * n);
  Working w = {arena.take<int>(p.limits + n + 1), arena.take<signed char>(p.limits + n + 1)};
  std::copy(cascade.x, cascade.x + n, x);
  bool inside = within(p, s, x);  // as it is as soon as one level has been
  const auto pin = [&] {  // limits that leave one value are equations
    for (int i = 0; i < p.limits; ++i) {
      const double *row = p.C + i * n, size = std::sqrt(scalar_product(row, row, n));
      if (s.upper[i] <= s.lower[i]) cascade.add(row, s.upper + i, &size, 1, false);
    }
    std::copy(cascade.x, cascade.x + n, x);
    inside = within(p, s, x);
  };
  for (int l = 0; l < p.levels; ++l) {
    const Arena::Scope of_level(arena);
    const int k = p.level[l + 1] - p.level[l];
    const double *A = p.A + p.level[l] * n, *b = p.b + p.level[l], *size = p.size + p.level[l];
    if (l == 0 && (s.gives_way || k == 0)) pin();
    if (k == 0) continue;
    const int before = cascade.directions;
    if (before >= n) break;  // the levels before have left nothing free
    std::copy(x, x + n, start), std::copy(x, x + n, cascade.x);
    // what the level would do without limits, damped where that is due
    const bool damped = cascade.add(A, b, size, k, l > 0 && l < p.levels - 1, F);
    if (l == 0 && !s.gives_way) {  // what must hold does, whatever the limits
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
    cascade.add_all_directions();
    cascade.directions = before + m;
    Free f(arena, p, cascade.q + before * n, n - before);
    double* y = arena.take<double>(f.d);
    std::fill(y, y + f.d, 0.0);
    f.see(p, s, start, inside);
    if (!inside) {
      // limits of motion are given up where they must be; where that is no help, so are rows that must hold
      if (!enter(solve, arena, p, s, f, cascade.x, true, w, start)) {
        const bool others = within(p, s, start, false) || enter(solve, arena, p, s, f, cascade.x, false, w, start);
        if (!others && !s.gives_way) return s.gives_way = report.misses_hard = true, again;
        if (!others || !ease(arena, p, s, f, w, start)) return -1;
        relax(p, start, s, report.active);
      }
      f.see(p, s, start, inside = true);
    } else {  // where the levels before stand, if they still do
      for (int j = w.count - 1; j >= 0; --j)
        if (f.part[w.limit[j]] == 0.0 || place(p, s, w.limit[j], start).beyond(s, w.limit[j], -acts) != w.side[j]) w.drop(j);
    }
    // the level in what is free, [A; F] N = Q R: of R's rows only the first m columns are not zero
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
    if (!best(arena, p, f, B, e, m, w, y)) return -2;
    std::copy(start, start + n, x);
    f.move(y, n, x);
  }
  if (!inside) {
    if (!within(p, s, x, false)) return s.gives_way ? -1 : (s.gives_way = report.misses_hard = true, again);
    relax(p, x, s, report.active);
  }
  for (int i = 0; i < p.limits; ++i) {
    const Place here = place(p, s, i, x);
    if (report.active[i] == 0) report.active[i] = static_cast<signed char>(here.beyond(s, i, -acts));
  }
  damping = cascade.damping;
  return s.relaxed || s.gives_way ? 0 : 1;
}

}  // namespace limited

/// x of the cascade within the limits. Returns 1; 0 where limits and rows that must hold contradict each other, which the report names, and
/// then limits of motion, or if that is not enough the rows that must hold, do their best; below 0 where none is found.
inline int solve_limited(QuadraticProgramme solve, Arena& arena, const LimitedRows& p, double* x, double& damping,
                         LimitedReport& report) {
  const Arena::Scope scope(arena);
  limited::Standing s = {arena.take<double>(p.limits), arena.take<double>(p.limits)};
  std::copy(p.lower, p.lower + p.limits, s.lower), std::copy(p.upper, p.upper + p.limits, s.upper);
  int flag = limited::again;
  while (flag == limited::again) {
    std::fill(report.active, report.active + p.limits, static_cast<signed char>(0));
    flag = limited::attempt(solve, arena, p, s, x, damping, report);
  }
  return flag;
}

}  // namespace sarrus
