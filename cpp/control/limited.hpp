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

/// Orthonormal columns (r, each n) of what the directions of the cascade leave free; the largest rest of a unit vector first.
inline int free_directions(const Cascade<double>& c, Arena& arena, double* N) {
  const int n = c.n;
  double *rest = arena.take<double>(n * n), *size = arena.take<double>(n);
  for (int i = 0; i < n; ++i) {
    double* row = rest + i * n;
    for (int k = 0; k < n; ++k) row[k] = k == i ? 1.0 : 0.0;
    for (int j = 0; j < c.directions; ++j) subtract_scaled(row, c.q + j * n, c.q[j * n + i], n);
    size[i] = scalar_product(row, row, n);
  }
  int r = 0;
  for (const int free = std::max(0, n - c.directions); r < free; ++r) {
    const int i = static_cast<int>(std::max_element(size, size + n) - size);
    double *row = rest + i * n, *to = N + r * n;
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < c.directions; ++j) subtract_scaled(row, c.q + j * n, scalar_product(c.q + j * n, row, n), n);
      for (int j = 0; j < r; ++j) subtract_scaled(row, N + j * n, scalar_product(N + j * n, row, n), n);
    }
    const double length = std::sqrt(scalar_product(row, row, n));
    for (int k = 0; k < n; ++k) to[k] = row[k] / length;
    for (int k = 0; k < n; ++k) {
      subtract_scaled(rest + k * n, to, scalar_product(to, rest + k * n, n), n);
      size[k] = scalar_product(rest + k * n, rest + k * n, n);
    }
    size[i] = -1.0;
  }
  return r;
}

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
};

/// Gives up soft limits as far as they are missed at x, and names them; whether that was enough.
inline bool relax(const LimitedRows& p, const double* x, Standing& s, signed char* active) {
  s.relaxed = true;
  bool enough = true;
  for (int i = 0; i < p.limits; ++i) {
    const double at = scalar_product(p.C + i * p.n, x, p.n), margin = 1e-6 * (1.0 + std::abs(at));
    const bool below = at<s.lower[i] - margin, above = at> s.upper[i] + margin;
    if (!below && !above) continue;
    active[i] = below ? -3 : 3;
    if (!p.soft[i]) enough = false;
    if (p.soft[i] && below) s.lower[i] = at - margin;
    if (p.soft[i] && above) s.upper[i] = at + margin;
  }
  return enough;
}

constexpr int again = 100;  // with less to satisfy

inline int attempt(QuadraticProgramme programme, Arena& arena, const LimitedRows& p, Standing& s, double* x, double& damping,
                   LimitedReport& report) {
  const Arena::Scope scope(arena);
  const int n = p.n;
  Cascade<double> cascade(arena, n, 2 * p.level[p.levels] + p.limits);
  const auto take = [&](int count) { return arena.take<double>(count); };
  double *N = take(n * n), *R = take(n * n), *H = take(n * n), *f = take(n), *y = take(n), *CN = take(p.limits * n),
         *low = take(p.limits), *high = take(p.limits), *force = take(p.limits), *acting = take(p.limits * n),
         *ends = take(p.limits);
  // x is within the limits as soon as one level has been
  std::copy(cascade.x, cascade.x + n, x);
  for (int l = 0; l < p.levels; ++l) {
    const Arena::Scope of_level(arena);
    const int first = p.level[l], k = p.level[l + 1] - first;
    const double *A = p.A + first * n, *b = p.b + first;
    const bool last = l == p.levels - 1;
    if (k == 0) continue;
    if (l == 0 && !s.gives_way) {
      cascade.add(A, b, k, false);
      std::copy(cascade.x, cascade.x + n, x);
      continue;
    }
    if (cascade.directions >= n) {  // the levels before have left nothing free
      if (l > 1 || within(p, s.lower, s.upper, x)) break;
      if (!s.relaxed && relax(p, x, s, report.active)) return again;
      s.gives_way = s.relaxed = report.misses_hard = true;
      return again;
    }
    // what the level would do without limits, damped where that is due, is what it is to do with them
    double *reach = take(k), *AN = take(k * n), *off = take(k), *before = take(n);
    const int directions = cascade.directions;
    std::copy(cascade.x, cascade.x + n, before);
    cascade.add(A, b, k, !last);
    for (int i = 0; i < k; ++i) reach[i] = scalar_product(A + i * n, cascade.x, n);
    if (within(p, s.lower, s.upper, cascade.x)) {
      std::copy(cascade.x, cascade.x + n, x);
      continue;
    }

    // Unknowns of the programme: the directions that the level moves along, and what it leaves free, which hardly counts. Of the first ones
    // A N = Q R (Gram-Schmidt), and with w = R y the level is |w - Q^T off|^2, well-conditioned at singular positions too.
    const int m = cascade.directions - directions;
    std::copy(cascade.q + directions * n, cascade.q + cascade.directions * n, N);
    const int r = m + free_directions(cascade, arena, N + m * n);
    cascade.directions = directions;
    std::copy(before, before + n, cascade.x);
    for (int i = 0; i < k; ++i) {
      off[i] = reach[i] - scalar_product(A + i * n, x, n);
      for (int j = 0; j < m; ++j) AN[j * k + i] = scalar_product(A + i * n, N + j * n, n);
    }
    std::fill(H, H + r * r, 0.0), std::fill(f, f + r, 0.0);
    for (int j = 0; j < m; ++j) {
      double* column = AN + j * k;
      for (int i = 0; i < j; ++i) R[i * m + j] = 0.0;
      for (int pass = 0; pass < 2; ++pass)
        for (int i = 0; i < j; ++i) {
          const double along = scalar_product(AN + i * k, column, k);
          subtract_scaled(column, AN + i * k, along, k);
          R[i * m + j] += along;
        }
      R[j * m + j] = std::sqrt(scalar_product(column, column, k));
      for (int i = 0; i < k; ++i) column[i] /= R[j * m + j];
      f[j] = -scalar_product(column, off, k);
    }
    for (int j = 0; j < r; ++j) H[j * r + j] = j < m ? 1.0 : 1e-8;
    for (int i = 0; i < p.limits; ++i) {
      const double at = scalar_product(p.C + i * n, x, n);
      double *row = CN + i * r, size = 0.0;
      for (int j = 0; j < r; ++j) {
        row[j] = scalar_product(p.C + i * n, N + j * n, n), size += square(row[j]);
        if (j >= m) continue;
        for (int c = 0; c < j; ++c) row[j] -= row[c] * R[c * m + j];
        row[j] /= R[j * m + j];
      }
      // where higher levels hold it, rounding must not make it impossible
      const bool fixed = size < square(share) * scalar_product(p.C + i * n, p.C + i * n, n);
      const double room = l > 1 ? 1e-9 * (1.0 + std::abs(at)) : 0.0;
      low[i] = l > 1 && fixed ? -TaskLimits::far : l > 1 ? std::min(s.lower[i] - at, -room) : s.lower[i] - at;
      high[i] = l > 1 && fixed ? TaskLimits::far : l > 1 ? std::max(s.upper[i] - at, room) : s.upper[i] - at;
    }
    // in numbers near 1, which its tolerances are for
    double size = 0.0;
    for (int j = 0; j < m; ++j) size = std::max(size, std::abs(f[j]));
    for (int i = 0; i < p.limits; ++i) {
      const double length = std::sqrt(scalar_product(CN + i * r, CN + i * r, r));
      if (length > 0.0) size = std::max(size, std::max(low[i], -high[i]) / length);
    }
    if (!(size > 0.0)) size = 1.0;
    for (int j = 0; j < m; ++j) f[j] /= size;
    for (int i = 0; i < p.limits; ++i) {
      if (low[i] > -TaskLimits::far) low[i] /= size;
      if (high[i] < TaskLimits::far) high[i] /= size;
    }
    const auto go = [&] {  // where the programme leads
      for (int j = 0; j < r; ++j) y[j] *= size;
      for (int j = m - 1; j >= 0; --j) {
        for (int c = j + 1; c < m; ++c) y[j] -= R[j * m + c] * y[c];
        y[j] /= R[j * m + j];
      }
      for (int j = 0; j < r; ++j) subtract_scaled(x, N + j * n, -y[j], n);
    };
    int flag = programme(r, p.limits, H, f, CN, low, high, nullptr, y, force);
    if (flag < 0 && l > 1) {  // it may stay where it is: so little room is left that rounding takes it for none
      std::fill(y, y + r, 0.0), std::fill(force, force + p.limits, 0.0);
      flag = 1;
    }
    if (flag == -1 && !s.relaxed) {
      flag = programme(r, p.limits, H, f, CN, low, high, p.soft, y, force);
      s.relaxed = true;
      if (flag > 0) {
        go();
        if (relax(p, x, s, report.active)) return again;
      }
    }
    if (flag == -1 && !s.gives_way) {
      s.gives_way = s.relaxed = report.misses_hard = true;
      return again;
    }
    if (flag < 0) return flag;

    go();
    // with the digits that the programme does not have: the same with the limits that act as rows
    double strongest = 0.0;
    for (int i = 0; i < p.limits; ++i) strongest = std::max(strongest, std::abs(force[i]));
    int count = 0;
    for (int i = 0; i < p.limits; ++i) {
      if (std::abs(force[i]) <= 1e-9 * strongest) continue;
      std::copy(p.C + i * n, p.C + (i + 1) * n, acting + count * n);
      ends[count++] = force[i] > 0.0 ? s.upper[i] : s.lower[i];
    }
    cascade.add(acting, ends, count, false);
    cascade.add(A, reach, k, false);
    if (within(p, s.lower, s.upper, cascade.x)) std::copy(cascade.x, cascade.x + n, x);
    if (last) break;
    // A x is the same in every solution of the level: it stays, and the limits are the next level's again
    cascade.directions = directions;
    std::copy(before, before + n, cascade.x);
    for (int i = 0; i < k; ++i) reach[i] = scalar_product(A + i * n, x, n);
    cascade.add(A, reach, k, false);
  }
  for (int i = 0; i < p.limits; ++i) {
    const double at = scalar_product(p.C + i * n, x, n), near = 1e-7 * (1.0 + std::abs(at));
    if (report.active[i] == 0) report.active[i] = at > s.upper[i] - near ? 1 : at < s.lower[i] + near ? -1 : 0;
  }
  damping = cascade.damping;
  return s.relaxed ? 0 : 1;
}

}  // namespace limited

/// x of the cascade within the limits. Returns 1; 0 where limits and rows that must hold contradict each other, which the report names, and
/// then limits of motion, or if that is not enough the rows that must hold, do their best; below 0 where the programme fails.
inline int solve_limited(QuadraticProgramme programme, Arena& arena, const LimitedRows& p, double* x, double& damping,
                         LimitedReport& report) {
  const Arena::Scope scope(arena);
  limited::Standing s = {arena.take<double>(p.limits), arena.take<double>(p.limits)};
  std::copy(p.lower, p.lower + p.limits, s.lower), std::copy(p.upper, p.upper + p.limits, s.upper);
  std::fill(report.active, report.active + p.limits, static_cast<signed char>(0));
  int flag = limited::again;
  for (int k = 0; k < 4 && flag == limited::again; ++k) flag = limited::attempt(programme, arena, p, s, x, damping, report);
  return flag == limited::again ? -1 : flag;
}

}  // namespace sarrus
