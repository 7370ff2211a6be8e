// G = J A^-1 J^T of many rows J (count x nv), for example of contacts, where A^-1 is the inverse mass matrix on the motions that the loops allow. G
// maps forces along the rows to the accelerations along the rows. Uses the existing factor of the saddle equation (loops/saddle.hpp); the lanes of a
// packet compute several rows at once:
//
//   [A J_l^T; J_l -mu] = L D L^T,    U = L^-1 [J^T; 0],    G = U^T D^-1 U - sum over rows mu_r y_r y_r^T
//
// This costs half a solve per row, and G is symmetric by construction. L^-1 is applied only to the unknowns that a row reaches in the elimination
// tree: the bodies between a contact and the ground, and the rows of loops that contain these bodies. The last term, in which y are the multipliers
// from the back substitution, is the first of the corrections by which saddle.hpp removes the effect of mu. More corrections are necessary if this
// term is large, for example near a singular position, or if inertia is added to massless bodies. In these cases, and for substructures, each row is
// solved and corrected separately.
#pragma once

#include "../loops/constrained_dynamics.hpp"
#include "../simd/lanes.hpp"

namespace sarrus {

namespace cones {
/// Largest ratio of the first correction to G for which further corrections are omitted; the remaining error is the square of this ratio, which is
/// negligible.
constexpr double corrected = 1e-8;
/// A row is locked by the loops if its mobility is below this fraction of its mobility without loops, because such a small value is a rounding error.
constexpr double locked = 1e-12;
}  // namespace cones

/// A packet of rows, in the order of elimination: the unknowns that the rows reach, U at these unknowns, and the solution.
template <class P> struct ReachedRows {
  int* list;
  int count;
  char* reached;
  P *U, *x;  // x: velocities and multipliers
};

template <class P>
SARRUS_INLINE ReachedRows<P> eliminate_rows(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena, int rows,
                                            const double* J) {
  const Elimination& plan = e.matrix.plan;
  const int n = plan.unknowns, nv = e.matrix.tree.nv;
  ReachedRows<P> r = {arena.take<int>(n), 0, arena.take<char>(n), arena.take<P>(n), arena.take<P>(n)};
  std::fill(r.reached, r.reached + n, char(0)), std::fill(r.U, r.U + n, P(0.0));
  for (int c = 0; c < nv; ++c)
    for (int l = 0; l < rows; ++l)
      if (const double entry = J[l * nv + c]; entry != 0.0) r.reached[plan.place[c]] = 1, lane(r.U[plan.place[c]], l) = entry;
  for (int k = 0; k < n; ++k) {
    if (!r.reached[k]) continue;
    r.list[r.count++] = k;
    const P u = r.U[k];
    for (int s = plan.first[k] + 1; s < plan.first[k + 1]; ++s)
      r.reached[plan.column[s]] = 1, r.U[plan.column[s]] -= P(f.L[s]) * u;
  }
  if (e.matrix.rows == 0) return r;
  for (int k = n - 1; k >= 0; --k) {
    P w = r.U[k] * P(f.D_inverse[k]), other = P(0.0);  // two independent sums, as in solve()
    const int nearest = plan.first[k] + 1;
    int s = plan.first[k + 1] - 1;
    for (; s > nearest + 1; s -= 2) w -= P(f.L[s]) * r.x[plan.column[s]], other -= P(f.L[s - 1]) * r.x[plan.column[s - 1]];
    if (s > nearest) w -= P(f.L[s]) * r.x[plan.column[s]];
    w += other;
    if (s >= nearest) w -= P(f.L[nearest]) * r.x[plan.column[nearest]];
    r.x[k] = w;
  }
  return r;
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

/// Set G to zero along rows that the loops lock, because rounding would leave a small mobility in them.
inline void lock_rows(const LoopEquation<double>& e, int count, const double* J, double* G) {
  const int nv = e.matrix.tree.nv;
  for (int i = 0; i < count; ++i) {
    double free = 0.0;
    for (int c = 0; c < nv; ++c) free += square(J[i * nv + c]) * e.matrix.mobility[c];
    if (G[i * count + i] > cones::locked * free) continue;
    for (int j = 0; j < count; ++j) G[i * count + j] = G[j * count + i] = 0.0;
  }
}

/// No force can change the velocity of a row that the loops lock. If this velocity, for the motion `motion` (nv), is at rounding level, set the row's
/// entry of w (count) to its entry of `shift` (count; null: zero), or to zero if that entry is negative.
inline void rest_on_loops(const LoopEquation<double>& e, int count, const double* J, const double* G, const double* motion,
                          const double* shift, double* w) {
  const int nv = e.matrix.tree.nv;
  const double size = in_metric(e.matrix, motion);
  for (int i = 0; i < count; ++i) {
    if (G[i * count + i] != 0.0) continue;
    const double besides = shift ? shift[i] : 0.0, moves = w[i] - besides;
    double free = 0.0;
    for (int c = 0; c < nv; ++c) free += square(J[i * nv + c]) * e.matrix.mobility[c];
    if (moves * moves <= square(tolerances::at_rest) * free * size) w[i] = std::max(besides, 0.0);
  }
}

/// Compute G (count x count).
template <class P = SideBySide>
SARRUS_NOINLINE void inverse_along_rows(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena, int count,
                                        const double* J, double* G) {
  const Arena::Scope scope(arena);
  if (e.pieces || e.epsilon) return solve_rows(e, f, arena, count, J, G), lock_rows(e, count, J, G);
  constexpr int W = width_of<P>;
  const int nv = e.matrix.tree.nv, blocks = (count + W - 1) / W, *place = e.matrix.plan.place;
  ReachedRows<P>* all = arena.take<ReachedRows<P>>(blocks);
  for (int b = 0; b < blocks; ++b) all[b] = eliminate_rows<P>(e, f, arena, std::min(W, count - b * W), J + b * W * nv);
  bool small = true;
  for (int a = 0; a < blocks; ++a)
    for (int b = a; b < blocks; ++b) {
      P sum[W], correction[W];
      for (P& x : sum) x = P(0.0);
      for (P& x : correction) x = P(0.0);
      for (int i = 0; i < all[b].count; ++i) {
        const int k = all[b].list[i];
        if (!all[a].reached[k]) continue;
        const P u = all[b].U[k] * P(f.D_inverse[k]);
        for (int l = 0; l < W; ++l) sum[l] += u * P(lane(all[a].U[k], l));
      }
      const auto correct = [&](int k, double by) {
        const P x = all[b].x[k] * P(by);
        for (int l = 0; l < W; ++l) correction[l] += x * P(lane(all[a].x[k], l));
      };
      for (int r = 0; r < e.matrix.rows; ++r) correct(place[nv + r], -f.mu[r]);
      for (int l = 0; l < W && a * W + l < count; ++l)
        for (int m = 0; m < W && b * W + m < count; ++m) {
          const int i = a * W + l, j = b * W + m;
          const double by = lane(correction[l], m), g = lane(sum[l], m) + by;
          if (i == j) small = small && std::abs(by) <= cones::corrected * std::abs(g);
          G[i * count + j] = G[j * count + i] = g;
        }
    }
  if (!small) solve_rows(e, f, arena, count, J, G);
  lock_rows(e, count, J, G);
}

/// Rows that are combinations of fewer rows J: row i is the product of row i of `share` (count x width) with the `width` rows of J that begin at
/// first[i]. Example: many points of one body, which all move with its six velocities.
struct CombinedRows {
  static constexpr int width = 8;  // six rows, padded with zeros to fill registers
  int count, fewer;
  double* J;  // fewer x nv
  int* first;
  double* share;
};

/// Compute G = B G_fewer B^T of the combined rows, where G_fewer belongs to the fewer rows, and B contains `share`. J: all rows.
inline void inverse_along_combined(const LoopEquation<double>& e, const Factor<double>& f, Arena& arena, const CombinedRows& rows,
                                   const double* J, double* G) {
  if (rows.fewer == rows.count) return inverse_along_rows(e, f, arena, rows.count, J, G);
  const Arena::Scope scope(arena);
  constexpr int width = CombinedRows::width;
  const int n = rows.count, m = rows.fewer;
  double *fewer = arena.take<double>(m * m), *moved = arena.take<double>(m + width);
  inverse_along_rows(e, f, arena, m, rows.J, fewer);
  for (int i = 0; i < n; ++i) {
    std::fill(moved, moved + m + width, 0.0);
    for (int k = 0; k < width; ++k)
      if (const double share = rows.share[i * width + k]; share != 0.0)
        subtract_scaled(moved, fewer + (rows.first[i] + k) * m, -share, m);
    for (int j = 0; j <= i; ++j)
      G[i * n + j] = G[j * n + i] = scalar_product(rows.share + j * width, moved + rows.first[j], width);
  }
  lock_rows(e, n, J, G);
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

}  // namespace sarrus
