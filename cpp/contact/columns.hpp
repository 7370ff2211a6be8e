// G = J A^-1 J^T of many rows J (count x nv), for example of contacts, where A^-1 is the inverse mass matrix on the motions that the loops allow. G
// maps forces along the rows to the accelerations along the rows. Uses the existing factor of the saddle equation (loops/saddle.hpp); the lanes of a
// packet compute several rows at once:
//
//   [A J_l^T; J_l -mu] [x; y] = [J^T; 0],    G = J x - sum over rows mu_r y_r y_r^T
//
// The forward substitution visits only the unknowns that a row reaches in the elimination tree: the bodies between a contact and the ground, and the
// rows of loops that contain these bodies. The last term is the first of the corrections by which saddle.hpp removes the effect of mu. More
// corrections are necessary if this term is large, for example near a singular position, or if inertia is added to massless bodies. In these cases,
// and for substructures, each row is solved and corrected separately. The motions x of all rows are kept, because the motion that the impulses cause
// is a combination of them.
#pragma once

#include "../loops/constrained_dynamics.hpp"
#include "../simd/lanes.hpp"

namespace sarrus {

namespace cones {
/// Largest ratio of the first correction to G for which further corrections are omitted; the remaining error is the square of this ratio, which is
/// negligible.
constexpr double corrected = 1e-8;
/// Ratio of the first correction to G below which it is omitted: a thousandth of the largest error of a solution (cones::reached).
constexpr double negligible = 1e-13;
/// Largest correction of the velocities after impulses, relative to these velocities, after which no other correction follows. The next correction
/// would be smaller by about the same factor, and thus below rounding.
constexpr double corrected_motion = 1e-9;
/// A row is locked by the loops if its mobility is below this fraction of its mobility without loops, because such a small value is a rounding error.
constexpr double locked = 1e-12;
}  // namespace cones

/// Motions and multipliers that unit forces along rows cause: for each unknown, in the order of elimination, the packets of all rows. x is null if they
/// are not known with the accuracy of G.
struct RowMotions {
  using P = SideBySide;
  static constexpr int width = width_of<P>;
  int count = 0, packets = 0;
  P* x = nullptr;

  RowMotions() = default;
  RowMotions(const Elimination& plan, Arena& arena, int rows, int packets_of_rows)
      : count(rows), packets(packets_of_rows), x(arena.take<P>(plan.unknowns * packets)) {}
  const P& of(int unknown, int packet) const { return x[unknown * packets + packet]; }
};

/// Entries of rows that are not zero (in lanes: in some lane): those of row i begin at first[i]. `unknown`: index in the order of elimination.
template <class T> struct RowEntries {
  int *first, *unknown;
  T* value;

  RowEntries(const LoopEquation<T>& e, Arena& arena, int count, const T* J)
      : first(arena.take<int>(count + 1)),
        unknown(arena.take<int>(count * e.matrix.tree.nv)),
        value(arena.take<T>(count * e.matrix.tree.nv)) {
    const int nv = e.matrix.tree.nv, *place = e.matrix.plan.place;
    int n = 0;
    for (int i = 0; i < count; ++i, J += nv) {
      first[i] = n;
      for (int c = 0; c < nv; ++c)
        if (any(abs(J[c]) > T(0.0))) unknown[n] = place[c], value[n++] = J[c];
    }
    first[count] = n;
  }
};

/// Solve for N packets, beginning with packet `first`. F is double, and a packet contains rows of one state; or F is a packet of states, and a packet
/// contains a row of each state.
template <int N, class F>
SARRUS_NOINLINE void solve_row_packets(const LoopEquation<F>& e, const Factor<F>& f, Arena& arena, const RowEntries<F>& J,
                                       int first, RowMotions& motions) {
  using P = RowMotions::P;
  constexpr int W = RowMotions::width / width_of<F>;
  const Arena::Scope scope(arena);
  const Elimination& plan = e.matrix.plan;
  const int n = plan.unknowns, begin = first * W, rows = std::min(N * W, motions.count - begin);
  bool* reached = arena.take<bool>(n);
  P* x = arena.take<P>(N * n);
  std::fill(reached, reached + n, false), std::fill(x, x + N * n, P(0.0));
  for (int l = 0; l < rows; ++l)
    for (int i = J.first[begin + l]; i < J.first[begin + l + 1]; ++i) {
      reached[J.unknown[i]] = true;
      if constexpr (std::is_same_v<F, double>)
        lane(x[N * J.unknown[i] + l / W], l % W) = J.value[i];
      else
        x[N * J.unknown[i] + l] = J.value[i];
    }
  for (int k = 0; k < n; ++k) {
    if (!reached[k]) continue;
    P u[N];
    for (int b = 0; b < N; ++b) u[b] = x[N * k + b];
    for (int s = plan.first[k] + 1; s < plan.first[k + 1]; ++s) {
      const int to = plan.column[s];
      const P l = P(f.L[s]);
      reached[to] = true;
      for (int b = 0; b < N; ++b) x[N * to + b] -= l * u[b];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    P w[N];
    for (int b = 0; b < N; ++b) w[b] = x[N * k + b] * P(f.D_inverse[k]);
    for (int s = plan.first[k + 1] - 1; s > plan.first[k]; --s) {
      const P l = P(f.L[s]), *later = x + N * plan.column[s];
      for (int b = 0; b < N; ++b) w[b] -= l * later[b];
    }
    P* kept = motions.x + k * motions.packets + first;
    for (int b = 0; b < N; ++b) x[N * k + b] = kept[b] = w[b];
  }
}

/// Solve for each row separately, with corrections.
SARRUS_NOINLINE inline void solve_rows(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena, int count,
                                       const double* J, double* G) {
  const Saddle<double>& matrix = e.solved();
  const int nv = e.matrix.tree.nv, rows = e.matrix.rows;
  double* b = arena.take<double>(nv + rows);
  for (int i = 0; i < count; ++i) {
    const Arena::Scope scope(arena);
    std::copy(J + i * nv, J + (i + 1) * nv, b), std::fill(b + nv, b + nv + rows, 0.0);
    double* y = arena.take<double>(matrix.plan.unknowns);
    refine(matrix, arena, f, e.lifted(arena, b), y, tolerances::most_corrections);
    const double* x = e.lowered(arena, y);
    for (int j = 0; j < count; ++j) G[i * count + j] = scalar_product(J + j * nv, x, nv);
  }
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < i; ++j) G[i * count + j] = G[j * count + i] = 0.5 * (G[i * count + j] + G[j * count + i]);
}

/// Return the mobility along a row (nv) if only its own velocities move: the sum of J_c^2 / M_cc.
inline double mobility_without_loops(const LoopEquation<double>& e, const double* J) {
  using Wide = WideDoubles;
  constexpr int width = sizeof(Wide) / sizeof(double);
  const int nv = e.matrix.tree.nv;
  const double* mobility = e.matrix.mobility;
  Wide sums = {};
  int c = 0;
  for (; c + width <= nv; c += width) {
    const Wide entry = *reinterpret_cast<const Wide*>(J + c);
    sums += entry * entry * *reinterpret_cast<const Wide*>(mobility + c);
  }
  double sum = 0.0;
  for (int k = 0; k < width; ++k) sum += sums[k];
  for (; c < nv; ++c) sum += square(J[c]) * mobility[c];
  return sum;
}

/// Set G to zero along rows that the loops lock, because rounding would leave a small mobility in them.
inline void lock_rows(const LoopEquation<double>& e, int count, const double* J, double* G) {
  for (int i = 0; i < count; ++i) {
    if (G[i * count + i] > cones::locked * mobility_without_loops(e, J + i * e.matrix.tree.nv)) continue;
    for (int j = 0; j < count; ++j) G[i * count + j] = G[j * count + i] = 0.0;
  }
}

/// No force can change the velocity of a row that the loops lock. If this velocity, for the motion `motion` (nv), is at rounding level, set the row's
/// entry of w (count) to its entry of `shift` (count; null: zero), or to zero if that entry is negative. If the loops lock everything, the motion itself
/// is at rounding level; so the motion that e.b would cause without loops counts too.
inline void rest_on_loops(const LoopEquation<double>& e, int count, const double* J, const double* G, const double* motion,
                          const double* shift, double* w) {
  const int nv = e.matrix.tree.nv;
  double size = -1.0;
  for (int i = 0; i < count; ++i) {
    if (G[i * count + i] != 0.0) continue;
    if (size < 0.0) size = in_metric(e.matrix, motion) + mobility_without_loops(e, e.b);
    const double besides = shift ? shift[i] : 0.0, moves = w[i] - besides;
    if (moves * moves <= square(tolerances::at_rest) * mobility_without_loops(e, J + i * nv) * size)
      w[i] = std::max(besides, 0.0);
  }
}

/// Add the first correction for mu to G = J x. Returns its largest entry on the diagonal, relative to G. If all of these are below rounding, all other
/// entries are too, and none is added.
inline double correct_for_mu(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena, const RowMotions& motions,
                             double* G) {
  using P = RowMotions::P;
  constexpr int W = RowMotions::width;
  const int rows = e.matrix.rows, count = motions.count, *place = e.matrix.plan.place + e.matrix.tree.nv;
  double largest = 0.0;
  for (int b = 0; b < motions.packets; ++b) {
    P sum = P(0.0);
    for (int r = 0; r < rows; ++r) sum += square(motions.of(place[r], b)) * P(f.mu[r]);
    for (int i = b * W; i < std::min(count, (b + 1) * W); ++i) {
      const double by = lane(sum, i % W), g = std::abs(G[i * count + i] - by);
      if (by > 0.0) largest = std::max(largest, g > 0.0 ? by / g : 1.0);
    }
  }
  if (largest <= cones::negligible) return largest;
  const Arena::Scope scope(arena);
  P* sum = arena.take<P>(motions.packets);
  for (int i = 0; i < count; ++i) {
    std::fill(sum, sum + motions.packets, P(0.0));
    for (int r = 0; r < rows; ++r) {
      const P by = P(f.mu[r] * lane(motions.of(place[r], i / W), i % W));
      for (int b = i / W; b < motions.packets; ++b) sum[b] += by * motions.of(place[r], b);
    }
    for (int j = i; j < count; ++j) G[i * count + j] -= lane(sum[j / W], j % W), G[j * count + i] = G[i * count + j];
  }
  return largest;
}

/// Compute G (count x count) and the motions of the rows.
SARRUS_NOINLINE inline RowMotions inverse_along_rows(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena,
                                                     int count, const double* J, double* G) {
  if (e.pieces || e.epsilon) {
    const Arena::Scope scope(arena);
    solve_rows(e, f, arena, count, J, G), lock_rows(e, count, J, G);
    return {};
  }
  using P = RowMotions::P;
  constexpr int W = RowMotions::width;
  RowMotions motions(e.matrix.plan, arena, count, (count + W - 1) / W);
  const Arena::Scope scope(arena);
  const RowEntries<double> entries(e, arena, count, J);
  for (int b = 0; b < motions.packets;) {
    const int left = motions.packets - b;
    if (left == 1) solve_row_packets<1>(e, f, arena, entries, b, motions), b += 1;
    if (left == 2 || left == 4) solve_row_packets<2>(e, f, arena, entries, b, motions), b += 2;
    if (left == 3 || left > 4) solve_row_packets<3>(e, f, arena, entries, b, motions), b += 3;
  }
  for (int i = 0; i < count; ++i)
    for (int b = i / W; b < motions.packets; ++b) {
      P sum = P(0.0);
      for (int k = entries.first[i]; k < entries.first[i + 1]; ++k)
        sum += P(entries.value[k]) * motions.of(entries.unknown[k], b);
      for (int j = std::max(i, b * W); j < std::min(count, (b + 1) * W); ++j)
        G[i * count + j] = G[j * count + i] = lane(sum, j % W);
    }
  const double largest = correct_for_mu(e, f, arena, motions, G);
  const bool small = largest <= cones::corrected;
  if (!small) solve_rows(e, f, arena, count, J, G);
  lock_rows(e, count, J, G);
  return small ? motions : RowMotions{};
}

/// The same for several states in lanes, with a packet for each row. `sufficient`: 1 in lanes that need no further corrections, else 0. Locked rows
/// are not treated.
SARRUS_NOINLINE inline RowMotions inverse_along_rows(const LoopEquation<SideBySide>& e, const Factor<SideBySide>& f, Arena& arena,
                                                     int count, const SideBySide* J, SideBySide* G, SideBySide& sufficient) {
  using P = SideBySide;
  const int rows = e.matrix.rows, *place = e.matrix.plan.place + e.matrix.tree.nv;
  RowMotions motions(e.matrix.plan, arena, count, count);
  const Arena::Scope scope(arena);
  const RowEntries<P> entries(e, arena, count, J);
  for (int b = 0; b < count;) {
    const int left = count - b;
    if (left < 3) solve_row_packets<1>(e, f, arena, entries, b, motions), b += 1;
    if (left >= 3 && left < 6) solve_row_packets<3>(e, f, arena, entries, b, motions), b += 3;
    if (left >= 6) solve_row_packets<6>(e, f, arena, entries, b, motions), b += 6;
  }
  constexpr int block = 4;  // columns whose sums are in registers
  for (int i = 0; i < count; ++i)
    for (int j = i; j < count; j += block) {
      const int columns = std::min(block, count - j);
      P sums[block] = {P(0.0), P(0.0), P(0.0), P(0.0)};
      for (int k = entries.first[i]; k < entries.first[i + 1]; ++k) {
        const P *motion = &motions.of(entries.unknown[k], j), share = entries.value[k];
        for (int c = 0; c < block; ++c)
          if (c < columns) sums[c] += share * motion[c];
      }
      for (int c = 0; c < block; ++c)
        if (c < columns) G[i * count + j + c] = sums[c];
    }
  P largest = P(0.0);
  for (int i = 0; i < count; ++i) {
    P correction = P(0.0);
    for (int r = 0; r < rows; ++r) correction += f.mu[r] * square(motions.of(place[r], i));
    const P g = abs(G[i * count + i] - correction), nothing = select(correction > P(0.0), P(1.0), P(0.0));
    const P ratio = select(g > P(0.0), correction / select(g > P(0.0), g, P(1.0)), nothing);
    largest = select(ratio > largest, ratio, largest);
  }
  // as in correct_for_mu(), only in lanes in which the corrections exceed rounding errors
  const P corrects = select(largest > P(cones::negligible), P(1.0), P(0.0));
  for (int i = 0; i < count; ++i) {
    for (int r = 0; r < rows && any(corrects > P(0.5)); ++r) {
      const P *y = &motions.of(place[r], 0), by = corrects * f.mu[r] * y[i];
      for (int j = i; j < count; ++j) G[i * count + j] -= by * y[j];
    }
    for (int j = i + 1; j < count; ++j) G[j * count + i] = G[i * count + j];
  }
  sufficient = select(largest > P(cones::corrected), P(0.0), P(1.0));
  return motions;
}

/// Rows that are combinations of fewer rows J: row i is the product of row i of `share` (count x width) with the `width` rows of J that begin at
/// first[i]. Example: many points of one body, which all move with its six velocities.
struct CombinedRows {
  static constexpr int width = 8;  // six rows, padded with zeros to fill registers
  int count, fewer;
  double* J;  // fewer x nv
  int* first;
  double* share;

  /// Return the forces along the fewer rows, written to `sums`, that equal the forces p along all rows.
  const double* forces(const double* p, double* sums) const {
    if (fewer == count) return p;
    std::fill(sums, sums + fewer, 0.0);
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < width; ++k)
        if (const double entry = share[i * width + k]; entry != 0.0) sums[first[i] + k] += entry * p[i];
    return sums;
  }
};

/// Compute G = B G_fewer B^T of the combined rows, where G_fewer belongs to the fewer rows, and B contains `share`. J: all rows.
inline void combine_inverse(const LoopEquation<double>& e, Arena& arena, const CombinedRows& rows, const double* J,
                            const double* fewer, double* G) {
  const Arena::Scope scope(arena);
  constexpr int width = CombinedRows::width;
  const int n = rows.count, m = rows.fewer;
  double *moved = arena.take<double>(m), *along = arena.take<double>(m * n);  // along: G_fewer B^T
  const auto add_rows = [&](int i, const double* from, int size, double* sum) SARRUS_INLINED {
    const double *share = rows.share + i * width, *row = from + rows.first[i] * size;
    const bool single = std::all_of(share + 1, share + 6, [](double x) { return x == 0.0; });
    std::fill(sum, sum + size, 0.0);
    if (single) return subtract_scaled(sum, row, -share[0], size);
    const double* six[6] = {row, row + size, row + 2 * size, row + 3 * size, row + 4 * size, row + 5 * size};
    const double shares[6] = {-share[0], -share[1], -share[2], -share[3], -share[4], -share[5]};
    subtract_scaled(sum, six, shares, size);
  };
  for (int i = 0; i < n; ++i) {
    add_rows(i, fewer, m, moved);
    for (int k = 0; k < m; ++k) along[k * n + i] = moved[k];
  }
  for (int i = 0; i < n; ++i) {
    add_rows(i, along, n, G + i * n);
    for (int j = 0; j < i; ++j) G[j * n + i] = G[i * n + j];
  }
  lock_rows(e, n, J, G);
}
/// The same from the rows themselves. Returns the motions of the fewer rows.
inline RowMotions inverse_along_combined(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena,
                                         const CombinedRows& rows, const double* J, double* G) {
  if (rows.fewer == rows.count) return inverse_along_rows(e, f, arena, rows.count, J, G);
  double* fewer = arena.take<double>(rows.fewer * rows.fewer);
  const RowMotions motions = inverse_along_rows(e, f, arena, rows.fewer, rows.J, fewer);
  combine_inverse(e, arena, rows, J, fewer, G);
  return motions;
}

/// Solve the equation e with the additional forces p (count) along the rows J. Returns the unknowns, valid during the caller's scope; `error`
/// receives the relative residual.
inline const double* solve_pushed(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena, int count,
                                  const double* J, const double* p, double* error = nullptr) {
  const int nv = e.matrix.tree.nv, n = nv + e.matrix.rows;
  double* b = arena.take<double>(n);
  std::copy(e.b, e.b + n, b);
  for (int i = 0; i < count; ++i) subtract_scaled(b, J + i * nv, -p[i], nv);
  const Saddle<double>& matrix = e.solved();
  double* y = arena.take<double>(matrix.plan.unknowns);
  const double left = refine(matrix, arena, f, e.lifted(arena, b), y, tolerances::most_corrections);
  if (error) *error = e.relative(left);
  return e.lowered(arena, y);
}

/// Correct x, a solution for the right-hand side b, once; `error` receives the relative residual before the correction. Returns 1 if the correction was
/// so small that no other one is necessary, else 0.
template <class T>
T correct_once(const LoopEquation<T>& e, const Factor<T>& f, Arena& arena, const T* b, T* x, T& error) {
  const Arena::Scope scope(arena);
  const Saddle<T>& matrix = e.matrix;
  const int nv = matrix.tree.nv, n = nv + matrix.rows;
  T* step = arena.take<T>(n);
  error = e.relative(residual(matrix, b, static_cast<const T*>(x), step));
  solve(matrix.plan, f, arena, step);
  T moved = T(0.0), size = T(0.0);
  for (int k = 0; k < nv; ++k) {
    const T inertia = matrix.inertia ? matrix.inertia[k] : matrix.M[matrix.first_entry(k)];
    moved += square(step[k]) * inertia, x[k] += step[k], size += square(x[k]) * inertia;
  }
  for (int k = nv; k < n; ++k) x[k] += step[k];
  return select(moved > T(square(cones::corrected_motion)) * size, T(0.0), T(1.0));
}

/// The same from the solution `free` without these forces and the motions of the rows. One correction removes the effect of mu and of rounding; if it
/// is not small, the equation is solved anew. `fewer` (motions.count): the forces along the rows of `motions`.
inline const double* solve_pushed(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena, int count,
                                  const double* J, const double* p, const double* free, const double* fewer,
                                  const RowMotions& motions, double* error = nullptr) {
  if (!motions.x) return solve_pushed(e, f, arena, count, J, p, error);
  using P = RowMotions::P;
  constexpr int W = RowMotions::width;
  const Saddle<double>& matrix = e.matrix;
  const int nv = matrix.tree.nv, n = nv + matrix.rows, *unknown = matrix.plan.unknown;
  double *b = arena.take<double>(n), *x = arena.take<double>(n), left = 0.0;
  P* forces = arena.take<P>(motions.packets);
  std::fill(forces, forces + motions.packets, P(0.0));
  for (int i = 0; i < motions.count; ++i) lane(forces[i / W], i % W) = fewer[i];
  for (int k = 0; k < n; ++k) {
    P sum = P(0.0);
    for (int l = 0; l < motions.packets; ++l) sum += motions.of(k, l) * forces[l];
    double moved = 0.0;
    for (int l = 0; l < W; ++l) moved += lane(sum, l);
    x[unknown[k]] = free[unknown[k]] + moved;
  }
  std::copy(e.b, e.b + n, b);
  for (int i = 0; i < count; ++i) subtract_scaled(b, J + i * nv, -p[i], nv);
  if (correct_once(e, f, arena, b, x, left) < 0.5) return solve_pushed(e, f, arena, count, J, p, error);
  if (error) *error = left;
  return x;
}

}  // namespace sarrus
