// Equations of motion of a closed-chain mechanism in as many coordinates y as it has degrees of freedom (Li and Wu 2011, 4.6; Sonoda, Ishii and
// Isobe). Their rates y-dot = E v are velocities of some joints, or components of a frame's velocity. Together with J v = c they determine v = G
// y-dot + g, where
//
//   J G = 0, E G = 1     J g = c, E g = 0     and, differentiated,     J G-dot = -J-dot G, E G-dot = -E-dot G
//
// The accelerations are a = G y-ddot + a_0 with J a_0 = gamma and E a_0 = -E-dot v. With M a + h = tau + J^T lambda:
//
//   G^T M G y-ddot + G^T (M a_0 + h) = G^T tau
//
// If there are more coordinates than degrees of freedom, the rates y-dot depend on one another: they are in the range of the projector P = (E N)(E
// N)^+, where N spans the null space of J. E G = P then replaces E G = 1. Of all G that map these rates correctly, the one of least norm is used: G =
// N (E N)^+, with G P = G. Let K solve J K = -J-dot G, change = E K + E-dot G, and D = (1 - P) change:
//
//   G-dot = K + G (D^T - change)
#pragma once

#include "../dynamics/crba.hpp"
#include "../dynamics/frames.hpp"
#include "answers.hpp"
#include "loop_motions.hpp"

namespace sarrus {

struct ReducedInput {
  const double *q, *v, *column, *row;  // column, row: scales as in closing.hpp
  // (nv + 6) for each velocity, and for each component of the frame's velocity: the index of the coordinate whose rate it is, counted from 1, or 0 if
  // there is none. If null, the best-conditioned velocities are chosen
  const double* coordinates;
  const double *time, *pfaffian_values, *pfaffian_rates;
  int wrenches;
  const ExternalWrench<double>* wrench;
};

/// Results, contiguous in the output row of a state, for k coordinates. If these coordinates do not determine the motion, only the first three
/// numbers are set.
struct ReducedOutput {
  double *freedom, *determined, *count;  // degrees of freedom; how many of them the coordinates determine; k
  double *index, *drift, *bias_acceleration;  // (nv each) input index of each coordinate; drift g; bias acceleration a_0
  double *velocity, *bias, *G, *G_dot, *mass;  // y-dot (k); G^T (M a_0 + h) (k); G and G-dot (nv, k); G^T M G (k, k)

  static int size(int nv) { return 3 + nv * (5 + 3 * nv); }
  static ReducedOutput over(int nv, int k, double* x) {
    double* y = x + 3 + 3 * nv;
    return {x, x + 1, x + 2, x + 3, x + 3 + nv, x + 3 + 2 * nv, y, y + k, y + 2 * k, y + 2 * k + nv * k, y + 2 * k + 2 * nv * k};
  }
};

/// Terms of the rows; J in blocks.
struct LoopRates {
  double *J, *target, *gamma, *J_dot;  // J_dot (rows, nv)
};

/// Compute h, and the terms of J v = c and of its time derivative.
SARRUS_NOINLINE inline LoopRates loop_rates(const Tree& tree, Arena& arena, const ReducedInput& in, double* h) {
  const Loops& loops = tree.loops;
  const auto take = [&](int n) { return arena.take<double>(n); };
  const LoopRates rates = {take(loops.entries), take(loops.rows), take(loops.rows), take(loops.rows * tree.nv)};
  const double* rest = zeros<double>(arena, tree.nv);
  const auto work = rnea(tree, arena, RneaInput<double>{in.q, in.v, rest, {}, in.wrenches, in.wrench}, h);
  if (loops.rows == 0) return rates;
  LoopState<double> state = {in.q, in.v, in.time, in.pfaffian_values, nullptr, nullptr, work.link};
  place(tree, arena, work.poses(), work.columns, state);
  ConstraintRows<double> row_output;
  row_output.J = rates.J, row_output.target = rates.target, row_output.gamma = rates.gamma;
  constraint_rows(tree, arena, state, row_output, 0, loops.constraints);
  constraint_jacobian_derivative(tree, arena, in.q, in.v, in.time, in.pfaffian_rates, rates.J_dot);
  return rates;
}

/// Compute E (k, nv) and its rate for the requested coordinates, and for each row of E the unit of its coordinate's rate.
struct ReducedCoordinates {
  int count = 0;
  int* index;
  double *E, *E_dot, *unit;

  SARRUS_NOINLINE ReducedCoordinates(const Tree& tree, Arena& arena, const ReducedInput& in, const Frame& frame,
                                     const LoopMotions& motions, const double* N)
      : index(arena.take<int>(tree.nv + 6)) {
    std::fill(index, index + tree.nv + 6, 0);
    const int nv = tree.nv;
    bool has_frame_rows = false;
    for (int i = 0; in.coordinates && i < nv + 6; ++i) {
      const int place = static_cast<int>(in.coordinates[i]) - 1;
      if (place < 0 || place >= nv + 6) continue;
      index[place] = i, count = std::max(count, place + 1), has_frame_rows |= i >= nv;
    }
    if (!in.coordinates) {
      double* P = arena.take<double>(nv * nv);
      motions.projector(N, P);
      count = motions.freedom;
      showing(nv, P, count, 0, index);
    }
    E = arena.take<double>(count * nv), E_dot = arena.take<double>(count * nv), unit = arena.take<double>(count);
    std::fill(E, E + count * nv, 0.0), std::fill(E_dot, E_dot + count * nv, 0.0);
    double *J = arena.take<double>(6 * nv), *J_dot = arena.take<double>(6 * nv);
    if (has_frame_rows) {
      const Kinematics<double> k = Kinematics<double>::over(tree, arena.take<double>(Kinematics<double>::size(tree)));
      kinematics<double>(tree, arena, in.q, in.v, nullptr, k);
      frame_jacobian(tree, k, frame, J, J_dot);
    }
    for (int i = 0; i < count; ++i) {
      const int component = index[i] - nv;
      unit[i] = component < 0 ? in.column[index[i]] : component < 3 ? 1.0 : tree.length;
      if (component < 0) E[i * nv + index[i]] = 1.0 / unit[i];
      for (int a = 0; component >= 0 && a < nv; ++a)
        E[i * nv + a] = J[component * nv + a] / unit[i], E_dot[i * nv + a] = J_dot[component * nv + a] / unit[i];
    }
  }
};

/// Add A x to y, where A is m x n.
inline void add_product(int m, int n, const double* A, const double* x, double* y) {
  for (int i = 0; i < m; ++i) y[i] += dot_product(n, A + i * n, x);
}

/// Memory for G and its rate; each column is contiguous.
struct Dependence {
  double *G, *G_dot;
};

/// Compute G and its rate; `EN` (k, freedom) is the factorised E N.
SARRUS_NOINLINE inline Dependence dependence(const Tree& tree, Arena& arena, const LoopMotions& motions, const double* N,
                                             const ReducedCoordinates& y, const PivotedQr& EN, const double* J_dot) {
  const int nv = tree.nv, k = y.count, rows = tree.loops.rows;
  const auto take = [&](int n) { return arena.take<double>(n); };
  const Dependence d = {take(nv * k), take(nv * k)};
  double *along = take(motions.freedom), *change = take(k * k), *D = take(k * k), *g = take(rows), *left = take(k);
  std::fill(d.G, d.G + nv * k, 0.0), std::fill(change, change + k * k, 0.0);
  for (int i = 0; i < k; ++i) {
    double *G = d.G + i * nv, *K = d.G_dot + i * nv, *rate = change + i * k;
    std::fill(left, left + k, 0.0), left[i] = 1.0;
    EN.solve(left, along);
    for (int j = 0; j < motions.freedom; ++j) add_multiple(nv, along[j], N + j * nv, G);
    for (int r = 0; r < rows; ++r) g[r] = -dot_product(nv, J_dot + r * nv, G);
    motions.solve(g, K);
    add_product(k, nv, y.E, K, rate), add_product(k, nv, y.E_dot, G, rate);
    std::copy(rate, rate + k, D + i * k);
    EN.leave(D + i * k);
  }
  for (int j = 0; j < k; ++j)
    for (int i = 0; i < k; ++i) add_multiple(nv, D[i * k + j] - change[j * k + i], d.G + i * nv, d.G_dot + j * nv);
  return d;
}

inline void reduced_dynamics(const Tree& tree, Arena& arena, const ReducedInput& in, const Frame& frame, double* numbers) {
  const int nv = tree.nv;
  const auto take = [&](int n) { return arena.take<double>(n); };
  double *h = take(nv), *M = take(nv * nv), *rest = take(nv);
  const LoopRates rates = loop_rates(tree, arena, in, h);
  const LoopMotions motions(tree, arena, rates.J, in.column, in.row);
  const double* N = motions.basis();
  const ReducedCoordinates y(tree, arena, in, frame, motions, N);
  const int k = y.count, freedom = motions.freedom;

  double *EN = take(k * freedom), size = 0.0;
  for (int j = 0; j < freedom; ++j)
    for (int i = 0; i < k; ++i) EN[j * k + i] = dot_product(nv, y.E + i * nv, N + j * nv);
  for (int i = 0; i < k * nv; ++i) size += square(y.E[i] * in.column[i % nv]);
  const PivotedQr determined(k, freedom, EN, arena, tolerances::negligible, std::sqrt(size));
  std::fill(numbers, numbers + ReducedOutput::size(nv), 0.0);
  const ReducedOutput out = ReducedOutput::over(nv, k, numbers);
  *out.freedom = freedom, *out.determined = determined.rank, *out.count = k;
  if (determined.rank < freedom || k > nv) return;
  for (int i = 0; i < k; ++i) out.index[i] = y.index[i], out.velocity[i] = y.unit[i] * dot_product(nv, y.E + i * nv, in.v);

  const Dependence d = dependence(tree, arena, motions, N, y, determined, rates.J_dot);
  // compute the x with J x = g and with the E x that `open` prescribes
  const auto on_loops = [&](const double* g, double* open, double* x) {
    motions.solve(g, x);
    for (int i = 0; i < k; ++i) open[i] -= dot_product(nv, y.E + i * nv, x);
    for (int i = 0; i < k; ++i) add_multiple(nv, open[i], d.G + i * nv, x);
  };
  double* open = take(k);
  std::fill(open, open + k, 0.0);
  // without prescribed motion g is zero, so nothing is solved
  if (std::any_of(rates.target, rates.target + tree.loops.rows, [](double c) { return c != 0.0; }))
    on_loops(rates.target, open, out.drift);
  for (int i = 0; i < k; ++i) open[i] = -dot_product(nv, y.E_dot + i * nv, in.v);
  on_loops(rates.gamma, open, out.bias_acceleration);

  crba(tree, arena, in.q, M);
  add_product(nv, nv, M, out.bias_acceleration, h);
  for (int i = 0; i < k; ++i) {
    double* G = d.G + i * nv;
    for (int a = 0; a < nv; ++a) G[a] /= y.unit[i], d.G_dot[i * nv + a] /= y.unit[i];  // convert to the rates' own units
    out.bias[i] = dot_product(nv, G, h);
    std::fill(rest, rest + nv, 0.0), add_product(nv, nv, M, G, rest);
    for (int j = 0; j <= i; ++j) out.mass[i * k + j] = out.mass[j * k + i] = dot_product(nv, d.G + j * nv, rest);
    for (int a = 0; a < nv; ++a) out.G[a * k + i] = G[a], out.G_dot[a * k + i] = d.G_dot[i * nv + a];
  }
}

}  // namespace sarrus
