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
/// Return the sum of the squares of a_i b_i.
SARRUS_INLINE double padded_square(const double* a, const double* b, int count) {
  WideDoubles sum = {};
  for (int i = 0; i < count; i += width) {
    const WideDoubles product = wide_at(a + i) * wide_at(b + i);
    sum += product * product;
  }
  double total = 0.0;
  for (int k = 0; k < width; ++k) total += sum[k];
  return total;
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
  double *low, *high;  // padded, relative to a point x
  double* ratio;  // fraction of each limit's row in the free space; 0: no motion in this space changes its value

  /// `wider`, or null: a free space whose last directions are those of this one. The bounds are kept in `ends` (2 x padded limits).
  FreeSpace(Arena& arena, const LimitedRows& p, const double* directions, int count, const FreeSpace* wider, double* ends)
      : d(count),
        wide(padded(count)),
        tall(padded(p.limits)),
        N(directions),
        C(wider ? wider->C + (wider->d - d) * tall : arena.take<double>(d * tall)),
        low(ends),
        high(ends + tall),
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
    const int n = p.n, limits = p.limits, column_length = tall;  // local copies, because stores may alias members
    struct Entries {
      int first, second;
      double first_factor, second_factor;
    };
    Entries* entries = arena.take<Entries>(limits);
    for (int i = 0; i < limits; ++i) {
      const int* k = p.pair + 2 * i;
      const double inverse = k[0] < 0 ? 0.0 : inverse_or_none(p.length[i]);
      entries[i] = {std::max(k[0], 0), std::max(k[1], 0), p.factor[2 * i] * inverse, p.factor[2 * i + 1] * inverse};
    }
    constexpr int together = 4;
    for (int j = 0; j < d; j += together) {
      const double* direction[together];
      double* column[together];
      for (int l = 0; l < together; ++l) {  // the last columns may be the same
        const int k = std::min(j + l, d - 1);
        direction[l] = N + k * n, column[l] = C + k * column_length;
        std::fill(column[l] + limits, column[l] + column_length, 0.0);
      }
      for (int i = 0; i < limits; ++i) {
        const Entries at = entries[i];
        for (int l = 0; l < together; ++l)
          column[l][i] = at.first_factor * direction[l][at.first] + at.second_factor * direction[l][at.second];
      }
    }
    for (int i = 0; i < limits; ++i) {  // dense rows
      const double inverse = inverse_or_none(p.length[i]);
      for (int j = 0; j < d && p.pair[2 * i] < 0; ++j)
        C[j * column_length + i] = scalar_product(p.row[i], N + j * n, n) * inverse;
    }
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
    for (int i = p.limits; i < tall; ++i) low[i] = -far_limit, high[i] = far_limit;
  }
  /// Move bounds that y exceeds by rounding to y.
  void include(Arena& arena, const double* y) {
    const Arena::Scope scope(arena);
    double* at = arena.take<double>(tall);
    values(y, at);
    for (int i = 0; i < tall; ++i) low[i] = std::min(low[i], at[i]), high[i] = std::max(high[i], at[i]);
  }
  /// Set the bounds relative to x + N^T y, which is within the limits.
  void move_ends(Arena& arena, const double* y) {
    const Arena::Scope scope(arena);
    double* at = arena.take<double>(tall);
    values(y, at);
    for (int i = 0; i < tall; ++i) low[i] = std::min(low[i] - at[i], 0.0), high[i] = std::max(high[i] - at[i], 0.0);
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

  /// Split a row into components along the directions and a remainder, which becomes direction `count`. size: squared norm of the row; least: length of
  /// the remainder below which there is none. The caller increases `count`. Returns the length of the remainder, or zero.
  double split(const double* row, double size, double least) const {
    if (count == most) return 0.0;
    double *rest = q + count * wide, *along = L + count * most;
    const double* from = row;
    double left = size;
    for (int pass = 0; pass < 2 && count > 0; ++pass) {
      double* part = pass > 0 ? share : along;
      for (int j = 0; j < count; ++j) part[j] = padded_product(q + j * wide, from, wide);
      for (int j = 0; j < count && pass > 0; ++j) along[j] += share[j];
      combine(from, q, part, count, wide, rest);
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
    const double size = padded_product(added, added, wide), length = split(added, size, 1e-15 * std::sqrt(size));
    if (length == 0.0) L[count * most + count] = 0.0, std::fill(q + count * wide, q + (count + 1) * wide, 0.0);
    ++count;
  }
  /// Remove row k by rotations of pairs of directions.
  void remove(int k) {
    for (--count; k < count; ++k) {
      std::copy(L + (k + 1) * most, L + (k + 1) * most + k + 2, L + k * most);
      const double *a = L + k * most + k, length = std::sqrt(square(a[0]) + square(a[1])), c = a[0] / length, s = a[1] / length;
      double *one = q + k * wide, *other = one + wide;
      for (int i = 0; i < wide; i += width) {
        const WideDoubles kept = wide_at(one + i);
        wide_at(one + i) = kept * c + wide_at(other + i) * s, wide_at(other + i) = wide_at(other + i) * c - kept * s;
      }
      L[k * most + k] = length;
      for (int row = k + 2; row <= count; ++row) {
        double *x = L + row * most + k, kept = x[0];
        x[0] = c * kept + s * x[1], x[1] = c * x[1] - s * kept;
      }
    }
  }
  /// Compute factors of the first `rows` rows whose sum has the components `x` along the directions; x becomes the factors.
  void factors(double* x, int rows) const {
    for (int k = rows - 1; k >= 0; --k) {
      const double factor = x[k] *= inverse_or_none(L[k * most + k]);
      for (int j = 0; j < k; ++j) x[j] -= L[k * most + j] * factor;
    }
  }
};

/// Project y onto the limits of `w`: for each limit that is not in `space` yet, add a direction to `space`. Limits that depend on earlier ones are
/// removed from w. `all`: include the limits that are not fixed.
inline void project_onto(const FreeSpace& f, WorkingSet& w, ActiveRows& space, double* y, bool all = true) {
  for (int k = space.count; k < (all ? w.count : w.fixed);) {
    const int i = w.limit[k];
    const double *row = f.copy_row(i, space.row), length = space.split(row, square(f.ratio[i]), Cascade<double>::dependent);
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
