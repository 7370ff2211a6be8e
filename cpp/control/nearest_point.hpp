// The point within limits that is nearest in the metric of all levels that are left: an estimate for limited.hpp.
#pragma once

#include "free_space.hpp"

namespace sarrus {

namespace limited {

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
        const double to = x[j] /= T[j * d + j];
        each_in_column(j, [&](int r) { x[r] -= T[j * d + r] * to; });
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
         *low = arena.take<double>(tall), *high = arena.take<double>(tall), *z = zeros(arena, wide), *row = zeros(arena, wide),
         *pull = arena.take<double>(d + 1), *share = arena.take<double>(d + 1);
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
    double most = 0.0;
    int next = 0;  // the most violated limit
    WideDoubles largest = {}, first = {};  // largest excesses; first limits of the vectors that contain them
    for (int i = 0; i < tall; i += width) {
      const WideDoubles below = wide_at(low + i) - wide_at(at + i), above = wide_at(at + i) - wide_at(high + i),
                        off = (below > above ? below : above) * wide_at(unit + i);
      first = off > largest ? WideDoubles{} + i : first, largest = off > largest ? off : largest;
    }
    for (int k = 0; k < width; ++k)
      if (largest[k] > most) most = largest[k], next = static_cast<int>(first[k]) + k;
    if (most <= negligible * size) break;
    const int side = at[next] > high[next] ? 1 : -1;
    const double scale = side * unit[next];
    for (int j = 0; j < d; ++j) row[j] = scale * G[j * tall + next];
    double push = 0.0, violation = most;
    for (;;) {
      if (--steps < 0) return false;
      const double length = space.split(row, 1.0, dependent);
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
        subtract_scaled(z, space.q + space.count * wide, step * length, wide);
        violation -= step * length * length;
      }
      if (released < 0) {
        pull[w.count] = push, w.add(next, side), ++space.count;
        break;
      }
      w.drop(released), space.remove(released);
      std::copy(pull + released + 1, pull + w.count + 1, pull + released);
    }
    combine(nullptr, G, z, d, tall, at);
  }
  metric.solve(z);
  for (int j = 0; j < d; ++j) y[j] = goal[j] + z[j];
  return true;
}

}  // namespace limited

}  // namespace sarrus
