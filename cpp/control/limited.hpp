// The cascade with limits: each level is solved in the least-squares sense within the limits and without changing the levels before (Kanoun, Lamiraux
// and Wieber 2011; Escande, Mansard and Wieber 2014). From a feasible point, a level reaches its optimum by active sets (Nocedal and Wright 2006,
// algorithm 16.3). All iterates are within the limits, so the optimum is reached even in tiny feasible sets. The next level has the same limits, and
// must not change A x.
//
// The first level that exceeds limits begins at an estimate of the solution of this level and all later ones: in the metric of their rows, each level
// with a far smaller weight than the one before, the point within the limits nearest to the solution without limits. Few active sets are then left to
// try, and the result does not depend on the estimate. If there is none, and no feasible point is known, a quadratic programme computes one.
//
// Errors are relative to the size of a row, or to the norm of a limit's terms, so that the result does not depend on units.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>

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

  void set_factors(Arena& arena, const int* columns) {
    double *factors = arena.take<double>(2 * limits), *lengths = arena.take<double>(limits);
    for (int i = 0; i < limits; ++i) {
      const double* row = C + i * n;
      const int j = columns[2 * i], k = columns[2 * i + 1];
      if (j >= 0) factors[2 * i] = row[j], factors[2 * i + 1] = k == j ? 0.0 : row[k];
      lengths[i] = std::sqrt(j < 0 ? scalar_product(row, row, n)
                                   : factors[2 * i] * factors[2 * i] + factors[2 * i + 1] * factors[2 * i + 1]);
    }
    pair = columns, factor = factors, length = lengths;
  }
  double along(int i, const double* x) const {
    if (pair[2 * i] < 0) return scalar_product(C + i * n, x, n);
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
  const double* row = p.C + i * p.n;
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

/// Return the length of a row of `count` numbers that zeros follow, so that loops over it have no remainder.
inline int padded(int count) {
  constexpr int block = 2 * sizeof(WideDoubles) / sizeof(double);
  return (count + block - 1) / block * block;
}
inline double* zeros(Arena& arena, int count) {
  double* x = arena.take<double>(count);
  std::fill(x, x + count, 0.0);
  return x;
}

constexpr int width = sizeof(WideDoubles) / sizeof(double);
SARRUS_INLINE const WideDoubles& wide_at(const double* x) { return *reinterpret_cast<const WideDoubles*>(x); }
SARRUS_INLINE WideDoubles& wide_at(double* x) { return *reinterpret_cast<WideDoubles*>(x); }

/// Return the scalar product. `count` is a padded length here and below.
SARRUS_INLINE double padded_product(const double* a, const double* b, int count) {
  WideDoubles even = {}, odd = {};
  for (int i = 0; i < count; i += 2 * width)
    even += wide_at(a + i) * wide_at(b + i), odd += wide_at(a + i + width) * wide_at(b + i + width);
  even += odd;
  double sum = even[0] + even[1];
  for (int k = 2; k < width; k += 2) sum += even[k] + even[k + 1];
  return sum;
}
/// Compute factor x.
inline void scaled(const double* x, double factor, int count, double* to) {
  for (int i = 0; i < count; i += width) wide_at(to + i) = wide_at(x + i) * factor;
}
/// Compute the sum of columns times factors; if `start` is not null, start - sum.
template <int Blocks>
SARRUS_INLINE void combine(const double* start, const double* column, const double* factor, int count, int length, double* to) {
  WideDoubles sum[Blocks] = {};
  for (int j = 0; j < count; ++j, column += length)
    for (int b = 0; b < Blocks; ++b) sum[b] += wide_at(column + b * width) * factor[j];
  for (int b = 0; b < Blocks; ++b) wide_at(to + b * width) = start ? wide_at(start + b * width) - sum[b] : sum[b];
}
inline void combine(const double* start, const double* column, const double* factor, int count, int length, double* to) {
  int i = 0;
  const auto at = [&](int k) { return start ? start + k : nullptr; };
  for (; i + 4 * width <= length; i += 4 * width) combine<4>(at(i), column + i, factor, count, length, to + i);
  for (; i < length; i += 2 * width) combine<2>(at(i), column + i, factor, count, length, to + i);
}

/// Free space x = x_0 + N^T y, in which the results of previous levels do not change, and the limits in it: low <= C y <= high, each divided by the
/// norm of its row for x.
struct FreeSpace {
  int d, wide, tall;  // unknowns y; lengths of padded rows and columns of C
  const double* N;  // d x n
  double* C;  // by columns
  double *low, *high;
  double* ratio;  // fraction of each limit's row in the free space; 0: no motion in this space changes its value

  /// `wider`, or null: a free space whose last directions are those of this one.
  FreeSpace(Arena& arena, const LimitedRows& p, const double* directions, int count, const FreeSpace* wider)
      : d(count),
        wide(padded(count)),
        tall(padded(p.limits)),
        N(directions),
        C(wider ? wider->C + (wider->d - d) * tall : arena.take<double>(d * tall)),
        low(arena.take<double>(p.limits)),
        high(arena.take<double>(p.limits)),
        ratio(arena.take<double>(tall)) {
    if (!wider) set_rows(arena, p);
    for (int i = 0; i < tall; i += width) {
      WideDoubles squares = {};
      for (int j = 0; j < d; ++j) squares += wide_at(C + j * tall + i) * wide_at(C + j * tall + i);
      for (int k = 0; k < width; ++k) ratio[i + k] = squares[k] > immobile * immobile ? std::sqrt(squares[k]) : 0.0;
    }
  }
  void set_rows(Arena& arena, const LimitedRows& p) {
    const Arena::Scope scope(arena);
    const int n = p.n, unknowns = d, row_length = wide, column_length = tall;  // local copies, because stores may alias members
    double *by_x = arena.take<double>(n * row_length), *row = arena.take<double>(row_length), *factor = arena.take<double>(n),
           *to = C;
    for (int j = 0; j < row_length; ++j) {
      const double* direction = N + j * n;
      for (int k = 0; k < n; ++k) by_x[k * row_length + j] = j < unknowns ? direction[k] : 0.0;
    }
    for (int i = 0; i < p.limits; ++i, ++to) {
      const double inverse = p.length[i] > 0.0 ? 1.0 / p.length[i] : 0.0;
      if (const int* k = p.pair + 2 * i; k[0] < 0) {
        for (int c = 0; c < n; ++c) factor[c] = p.C[i * n + c] * inverse;
        combine(nullptr, by_x, factor, n, row_length, row);
      } else {
        const double first = p.factor[2 * i] * inverse, second = p.factor[2 * i + 1] * inverse;
        const double *one = by_x + k[0] * row_length, *other = by_x + k[1] * row_length;
        for (int j = 0; j < row_length; j += width) wide_at(row + j) = wide_at(one + j) * first + wide_at(other + j) * second;
      }
      for (int j = 0; j < unknowns; ++j) to[j * column_length] = row[j];
    }
    for (int i = p.limits; i < column_length; ++i, ++to)
      for (int j = 0; j < unknowns; ++j) to[j * column_length] = 0.0;
  }
  /// Copy row i of C to `row`, padded.
  const double* copy_row(int i, double* row) const {
    const double* from = C + i;
    const int unknowns = d, step = tall;
    for (int j = 0; j < unknowns; ++j) row[j] = from[j * step];
    for (int j = unknowns; j < wide; ++j) row[j] = 0.0;
    return row;
  }
  /// Compute C y.
  void values(const double* y, double* value) const { combine(nullptr, C, y, d, tall, value); }

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

/// Working set of the active-set method: the active limits, each with its side, 1 for the upper bound and -1 for the lower one. The first `fixed` ones
/// have multipliers in a previous level: every motion that does not change this level's rows stays at these limits, so that they are equations.
struct WorkingSet {
  int* limit;
  signed char* side;
  int count = 0, fixed = 0;

  void add(int i, int at) { limit[count] = i, side[count++] = static_cast<signed char>(at); }
  void clear() { count = fixed = 0; }
  void fix(int k) {
    std::swap(limit[k], limit[fixed]), std::swap(side[k], side[fixed]);
    ++fixed;
  }
  void drop(int k) {
    --count, fixed -= k < fixed;
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

/// Rows of active limits as combinations of orthonormal directions: row k is the sum of L_kj q_j, j <= k.
struct ActiveRows {
  int wide, most, count = 0;
  double *q, *L, *row;  // most x wide; most x most; memory for one row
  double* share;

  ActiveRows(Arena& arena, int width, int d)
      : wide(width),
        most(d),
        q(arena.take<double>((d + 1) * width)),
        L(arena.take<double>((d + 1) * (d + 1))),
        row(arena.take<double>(width)),
        share(arena.take<double>(d + 1)) {}

  /// Split a row into components along the directions and a remainder, which becomes direction `count`; `least`: length below which there is none.
  /// The caller increases `count`. Returns the length of the remainder, or zero.
  double split(const double* row, double least) const {
    if (count == most) return 0.0;
    double *rest = q + count * wide, *along = L + count * most;
    const double size = padded_product(row, row, wide);
    const double* from = row;
    double left = size;
    for (int pass = 0; pass < 2 && count > 0; ++pass) {
      for (int j = 0; j < count; ++j) share[j] = padded_product(q + j * wide, from, wide);
      for (int j = 0; j < count; ++j) along[j] = share[j] + (pass > 0 ? along[j] : 0.0);
      combine(from, q, share, count, wide, rest);
      from = rest, left = padded_product(rest, rest, wide);
      if (left > size * 0.01) break;  // a second pass is unnecessary if little has cancelled
    }
    if (!(left > least * least)) return 0.0;
    const double length = along[count] = std::sqrt(left);
    scaled(from, 1.0 / length, wide, rest);
    return length;
  }
  /// Add a row, whose direction is zero if it depends on those before.
  void add(const double* added) {
    const double length = split(added, 1e-15 * std::sqrt(padded_product(added, added, wide)));
    if (length == 0.0) L[count * most + count] = 0.0, std::fill(q + count * wide, q + (count + 1) * wide, 0.0);
    ++count;
  }
  /// Compute factors of the first `rows` rows whose sum has the components `x` along the directions; x becomes the factors.
  void factors(double* x, int rows) const {
    for (int k = rows - 1; k >= 0; --k) {
      x[k] *= inverse_or_none(L[k * most + k]);
      for (int j = 0; j < k; ++j) x[j] -= L[k * most + j] * x[k];
    }
  }
};

/// Project y onto the limits of `w`: for each limit that is not in `space` yet, add a direction to `space`. Limits that depend on earlier ones are
/// removed from w.
inline void project_onto(const FreeSpace& f, WorkingSet& w, ActiveRows& space, double* y) {
  for (int k = space.count; k < w.count;) {
    const int i = w.limit[k];
    const double *row = f.copy_row(i, space.row), length = space.split(row, Cascade<double>::dependent);
    if (length == 0.0) {
      w.drop(k);
      continue;
    }
    const double end = w.side[k] > 0 ? f.high[i] : f.low[i];
    subtract_scaled(y, space.q + k * f.wide, (padded_product(row, y, f.wide) - end) / length, f.wide);
    space.count = ++k;
  }
}

/// Rows of a level and of all later ones in the free space, each in the form |T y - g|^2 of its unknowns y, which are `first` to `end`, and those of
/// the levels before. T (d x d, column-major) is triangular in the order of elimination: the unknowns of the last level come first.
struct LevelMetric {
  int d;
  double *T, *g;
  int* first;  // (d) first unknown of the level to which an unknown belongs
  int* end;  // (d) one after its last unknown

  /// Call use(r) for the entries of column j except the diagonal.
  template <class Use> void each_in_column(int j, Use use) const {
    for (int r = first[j]; r < j; ++r) use(r);
    for (int r = end[j]; r < d; ++r) use(r);
  }
  /// Solve T y = x in place.
  void solve(double* x) const {
    for (int begin = 0; begin < d; begin = end[begin])
      for (int j = end[begin] - 1; j >= begin; --j) {
        x[j] /= T[j * d + j];
        each_in_column(j, [&](int r) { x[r] -= T[j * d + r] * x[j]; });
      }
  }
};

/// Compute the y within the limits nearest to `goal` in the norm |T (y - goal)|, by the dual active-set method of Goldfarb and Idnani (1983): the most
/// violated limit becomes active, and active limits whose multipliers would change their sign are released. Returns false if there is no such y, or
/// if the method does not converge.
inline bool nearest_in_metric(Arena& arena, const LimitedRows& p, const FreeSpace& f, const LevelMetric& metric,
                              const double* goal, WorkingSet& w, double* y) {
  const Arena::Scope scope(arena);
  constexpr double none = 1e300, negligible = 1e-10;
  constexpr double dependent = 1e-6;  // remainder of a row of norm 1 below which it depends on the active rows
  const int d = f.d, wide = f.wide, tall = f.tall, limits = p.limits;
  // in z = T (y - goal): low <= G z <= high, by columns; `unit`: inverse norms of the rows
  double *G = arena.take<double>(d * tall), *unit = arena.take<double>(tall), *at = arena.take<double>(tall),
         *low = arena.take<double>(tall), *high = arena.take<double>(tall), *excess = arena.take<double>(tall),
         *z = zeros(arena, wide), *row = zeros(arena, wide), *rows = arena.take<double>(d * wide),
         *pull = arena.take<double>(d + 1), *share = arena.take<double>(d + 1), *change = arena.take<double>(wide);
  for (int begin = d, stop = d; begin > 0; stop = begin) {
    begin = metric.first[stop - 1];
    for (int j = begin; j < stop; ++j) {
      double* column = G + j * tall;
      const double* factor = metric.T + j * d;
      combine(f.C + j * tall, G + stop * tall, factor + stop, d - stop, tall, column);
      combine(column, G + begin * tall, factor + begin, j - begin, tall, column);
      scaled(column, 1.0 / factor[j], tall, column);
    }
  }
  for (int i = 0; i < tall; i += width) {
    WideDoubles squares = {};
    for (int j = 0; j < d; ++j) squares += wide_at(G + j * tall + i) * wide_at(G + j * tall + i);
    for (int k = 0; k < width; ++k) unit[i + k] = f.ratio[i + k] > 0.0 ? 1.0 / std::sqrt(squares[k]) : 0.0;
  }
  f.values(goal, at);
  double size = 0.0;
  for (int i = 0; i < tall; ++i) {
    low[i] = -none, high[i] = none;
    if (unit[i] == 0.0) continue;
    if (f.low[i] > -far_limit) low[i] = f.low[i] - at[i], size = std::max(size, low[i] * unit[i]);
    if (f.high[i] < far_limit) high[i] = f.high[i] - at[i], size = std::max(size, -high[i] * unit[i]);
  }
  std::fill(at, at + tall, 0.0);
  w.clear();
  ActiveRows space(arena, wide, d);
  int steps = 2 * (limits + d);
  for (;;) {
    double most = 0.0;  // of the most violated limit
    int next = 0;
    WideDoubles largest = {};
    for (int i = 0; i < tall; i += width) {
      const WideDoubles below = wide_at(low + i) - wide_at(at + i), above = wide_at(at + i) - wide_at(high + i),
                        off = (below > above ? below : above) * wide_at(unit + i);
      wide_at(excess + i) = off, largest = off > largest ? off : largest;
    }
    for (int k = 0; k < width; ++k) most = std::max(most, largest[k]);
    if (most <= negligible * size) break;
    while (excess[next] < most) ++next;
    const int side = at[next] > high[next] ? 1 : -1;
    const double scale = side * unit[next];
    for (int j = 0; j < d; ++j) row[j] = scale * G[j * tall + next];
    double push = 0.0, violation = most;
    for (;;) {
      if (--steps < 0) return false;
      const double length = space.split(row, dependent);
      for (int k = 0; k < space.count; ++k) share[k] = space.L[space.count * d + k];
      space.factors(share, space.count);
      // increase the multiplier of this limit until it is satisfied, or until that of an active limit becomes zero
      double step = length > 0.0 ? violation / (length * length) : none;
      int released = -1;
      for (int k = 0; k < w.count; ++k)
        if (share[k] > 0.0 && pull[k] < step * share[k]) step = pull[k] / share[k], released = k;
      if (step >= none) return false;
      for (int k = 0; k < w.count; ++k) pull[k] -= step * share[k];
      push += step;
      if (length > 0.0) {
        const double* along = space.q + space.count * wide;
        scaled(along, step * length, wide, change);
        combine(at, G, change, d, tall, at), subtract_scaled(z, change, 1.0, wide);
        violation -= step * length * length;
      }
      if (released < 0) {
        std::copy(row, row + wide, rows + w.count * wide);
        pull[w.count] = push, w.add(next, side), ++space.count;
        break;
      }
      w.drop(released), space.count = released;
      std::copy(pull + released + 1, pull + w.count + 1, pull + released);
      std::copy(rows + (released + 1) * wide, rows + (w.count + 1) * wide, rows + released * wide);
      for (int k = released; k < w.count; ++k) {
        if (space.split(rows + k * wide, 0.0) == 0.0) return false;
        ++space.count;
      }
    }
  }
  metric.solve(z);
  for (int j = 0; j < d; ++j) y[j] = goal[j] + z[j];
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
         *change = arena.take<double>(f.tall), terms = 0.0, size = 0.0;
  const bool moved = padded_product(y, y, wide) > 0.0;
  for (int i = 0; i < m; ++i) {
    size += padded_product(B + i * wide, B + i * wide, wide), terms += e[i] * e[i];
    for (int j = 0; j < d && moved; ++j) terms += square(B[i * wide + j] * y[j]);
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
      const double* row = B + i * wide;
      space.count += space.split(row, Cascade<double>::dependent * std::sqrt(padded_product(row, row, wide))) > 0.0;
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

/// Factors of a level's rows in its directions N (m x n): [A; F] N^T = Q R.
struct LevelFactors {
  int k, rows, m, high;  // rows of the level; of [A; F]; columns; length of the padded columns of Q
  double *Q = nullptr, *R;  // m x high; R[j m + i] is R_ij

  LevelFactors() = default;
  /// F: additional rows of damping, or null.
  LevelFactors(Arena& arena, const LimitedRows& p, int l, const double* F, const double* N, int count)
      : k(p.level[l + 1] - p.level[l]), rows(k * (F ? 2 : 1)), m(count), high(padded(rows)) {
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
    for (int j = 0; j < m; ++j) e[j] = -padded_product(Q + j * high, off, high);
  }
};

/// Move x (n) to an estimate of the solution of level l and all later levels within the limits. `first`: number of directions of the levels before l;
/// `factors`: of all levels, added if missing. Returns true if x is within the limits; otherwise x is not changed.
inline bool estimate_solution(Arena& arena, const LimitedRows& p, const Ends& s, const FreeSpace& f, int l, int first,
                              LevelFactors* factors, const double* e, WorkingSet& w, ActiveRows& space, double* x) {
  constexpr double less = 1e-3, least = 1e-6;  // weight of a level relative to the one before, and the least one
  const int d = f.d, n = p.n;
  LevelMetric metric = {d, arena.take<double>(d * d), zeros(arena, f.wide), arena.take<int>(d), arena.take<int>(d)};
  double *y = zeros(arena, f.wide), *moved = arena.take<double>(n), weight = 1.0, *part = nullptr;
  int begin = 0;
  for (int level = l; level < p.levels && begin < d; ++level) {
    const int m = p.mark[level].directions - first - begin;
    if (m == 0) continue;
    LevelFactors& level_factors = factors[level];
    if (!level_factors.Q) level_factors = LevelFactors(arena, p, level, nullptr, f.N + begin * n, m);
    const double scale = weight / *std::max_element(p.size + p.level[level], p.size + p.level[level + 1]);
    weight = std::max(weight * less, least);
    if (level > l) {
      level_factors.right(arena, p, level, nullptr, x, metric.g + begin);
      part = arena.take<double>(level_factors.high);
    } else {
      std::copy(e, e + m, metric.g);
    }
    for (int j = 0; j < begin; ++j) {
      level_factors.product(p, level, nullptr, f.N + j * n, part);
      for (int r = 0; r < m; ++r)
        metric.T[j * d + begin + r] = padded_product(level_factors.Q + r * level_factors.high, part, level_factors.high) * scale;
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
    if (within(p, s, moved)) return std::copy(moved, moved + n, x), true;
  }
  w.clear(), space.count = 0;
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
  if (spans) std::copy(p.q, p.q + p.directions * n, cascade.q);
  LevelFactors* factors = arena.take<LevelFactors>(p.levels);
  std::fill(factors, factors + p.levels, LevelFactors{});
  std::optional<FreeSpace> free;
  const auto pin = [&] {  // limits with lower = upper are equations
    const int before = cascade.directions;
    for (int i = 0; i < p.limits; ++i) {
      if (s.upper[i] <= s.lower[i] && (s.pins_motion || !p.soft[i]))
        cascade.add(p.C + i * n, s.upper + i, p.length + i, 1, false);
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
      std::copy(cascade.x, cascade.x + n, x);
      return inside = true;
    };
    if ((same || !spanned) && reached()) continue;
    const double* N = cascade.q + before * n;
    const bool whole = spans && p.directions == n;  // true if all directions are known
    const bool begun = inside && !same && w.count > 0;  // true if the working set of the level before is known
    if (!whole) cascade.add_all_directions();
    cascade.directions = before + m;
    FreeSpace f(arena, p, N, n - before, whole && free ? &*free : nullptr);
    if (whole) free.emplace(f);
    ActiveRows space(arena, f.wide, f.d);
    if (begun) {  // omit limits that are no longer active
      const double length = norm(start, n);
      for (int j = w.count - 1; j >= 0; --j)
        if (f.ratio[w.limit[j]] == 0.0 || place(p, s, w.limit[j], start, length).side_of(s, w.limit[j], -near_end) != w.side[j])
          w.drop(j);
      for (int k = 0; k < w.fixed && space.count < f.d; ++k)
        space.count += space.split(f.copy_row(w.limit[k], space.row), Cascade<double>::dependent) > 0.0;
      if (space.count == f.d) continue;  // fixed limits leave no motion
      space.count = 0;
    }
    LevelFactors& factor = factors[l];
    const double* damping_rows = damped ? F : nullptr;
    if (!spans || damped || !factor.Q) factor = LevelFactors(arena, p, l, damping_rows, N, m);
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
    double *y = zeros(arena, f.wide), *B = zeros(arena, m * f.wide);
    for (int i = 0; i < m; ++i)
      for (int j = i; j < m; ++j) B[i * f.wide + j] = factor.R[j * m + i];
    f.set_ends(p, s, start, inside);
    factor.right(arena, p, l, damping_rows, start, e);
    if (!continues && whole && estimate_solution(arena, p, s, f, l, before, factors, e, w, space, start)) {
      f.set_ends(p, s, start, inside = true), factor.right(arena, p, l, damping_rows, start, e);
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
    f.move(y, n, x);
  }
  if (!inside) {
    if (!within(p, s, x, false)) return s.softens ? -1 : (s.softens = report.misses_hard = true, again);
    relax(p, x, s, report.active);
  }
  const double length = norm(x, n);
  for (int i = 0; i < p.limits; ++i) {
    const double at = p.along(i, x);
    const double near = 2.0 * near_end * rounding * (p.terms[i] + 2.0 * p.length[i] * length + std::abs(at));
    const bool clear = at - s.lower[i] > near && s.upper[i] - at > near;
    if (report.active[i] == 0 && !clear)
      report.active[i] = static_cast<signed char>(place(p, s, i, x, length).side_of(s, i, -near_end));
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
