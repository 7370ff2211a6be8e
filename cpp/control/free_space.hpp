// The free space of a level, in which limits become active: see limited.hpp. Rows and columns have a padded length, so that all loops over them are
// vectorised.
#pragma once

#include "limited_rows.hpp"

namespace sarrus {

namespace limited {

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

}  // namespace limited

}  // namespace sarrus
