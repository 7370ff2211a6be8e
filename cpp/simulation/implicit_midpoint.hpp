// The implicit midpoint rule: v1 = v0 + h a(t + h/2, q0 exp(h/4 (v0 + v1)), (v0 + v1)/2), q1 = q0 exp(h/2 (v0 + v1)). Symmetric, A-stable;
// a free body keeps its energy and the size of its momentum to rounding, a tree its energy without drift. Projection onto loops at one end
// of the step costs some of that (Hairer, Lubich and Wanner V.4.1).
//
// Plain iteration where it contracts; else Newton's, with the derivative by differences.
#pragma once

#include <algorithm>
#include <cmath>

#include "steps.hpp"

namespace sarrus {

/// A x = b by elimination with row pivots; A and b are used up. n is small.
inline bool solve_dense(int n, double* A, double* b) {
  for (int k = 0; k < n; ++k) {
    int pivot = k;
    for (int r = k + 1; r < n; ++r)
      if (std::abs(A[r * n + k]) > std::abs(A[pivot * n + k])) pivot = r;
    if (A[pivot * n + k] == 0.0) return false;
    if (pivot != k) {
      std::swap_ranges(A + k * n, A + (k + 1) * n, A + pivot * n);
      std::swap(b[k], b[pivot]);
    }
    for (int r = k + 1; r < n; ++r) {
      const double share = A[r * n + k] / A[k * n + k];
      if (share == 0.0) continue;
      for (int c = k; c < n; ++c) A[r * n + c] -= share * A[k * n + c];
      b[r] -= share * b[k];
    }
  }
  for (int k = n - 1; k >= 0; --k) {
    for (int c = k + 1; c < n; ++c) b[k] -= A[k * n + c] * b[c];
    b[k] /= A[k * n + k];
  }
  return true;
}

inline void implicit_midpoint_step(System<double>& s, double time, double h, const SimulationState<double>& x) {
  const int nq = s.tree.nq, nv = s.tree.nv, n = nv + s.plan.actions.memory;
  Arena& arena = s.arena;
  double *y = arena.take<double>(n), *next = arena.take<double>(n), *off = arena.take<double>(n), *other = arena.take<double>(n);
  double *rate = arena.take<double>(n), *middle = arena.take<double>(n), *u = arena.take<double>(nv), *q = arena.take<double>(nq);
  // y = (v1, z1); x.v and x.z stand side by side
  std::copy(x.v, x.v + n, y);
  const auto lead = [&](const double* from, double* to) {  // to what the rule makes of y
    for (int k = 0; k < n; ++k) middle[k] = 0.5 * (x.v[k] + from[k]);
    for (int k = 0; k < nv; ++k) u[k] = 0.5 * h * middle[k];
    integrate(s.tree, x.q, u, q);
    s.evaluate(time + 0.5 * h, q, middle, middle + nv, rate, rate + nv);
    for (int k = 0; k < n; ++k) to[k] = x.v[k] + h * rate[k];
  };
  const auto miss = [&](const double* from, const double* to, double* by) {
    double sum = 0.0, size = 1e-300;
    for (int k = 0; k < n; ++k) by[k] = to[k] - from[k], sum += by[k] * by[k], size += to[k] * to[k] + x.v[k] * x.v[k];
    return std::sqrt(sum / size);
  };

  lead(y, next);
  double left = miss(y, next, off);
  double* A = nullptr;
  for (int round = 0; left > 1e-15 && round < 50 && s.status == 0.0; ++round) {
    if (A) {  // Newton: (1 - G) step = off, with G the derivative of `lead`
      double* used = arena.take<double>(n * n);
      std::copy(A, A + n * n, used);
      if (!solve_dense(n, used, off)) break;
    }
    for (int k = 0; k < n; ++k) y[k] += off[k];
    lead(y, next);
    const double now = miss(y, next, off);
    if (now >= left && now < 1e-12) break;  // rounding
    if (!A && now > 0.2 * left) {
      A = arena.take<double>(n * n);
      for (int c = 0; c < n; ++c) {
        const double kept = y[c], delta = 1e-7 * std::max(1e-3, std::abs(kept));
        y[c] = kept + delta;
        lead(y, other);
        y[c] = kept;
        for (int r = 0; r < n; ++r) A[r * n + c] = (r == c ? 1.0 : 0.0) - (other[r] - next[r]) / delta;
      }
    }
    left = now;
  }
  if (left > 1e-9 && s.status == 0.0) s.status = no_convergence;
  for (int k = 0; k < nv; ++k) u[k] = 0.5 * h * (x.v[k] + y[k]);
  integrate(s.tree, x.q, u, q);
  std::copy(q, q + nq, x.q);
  std::copy(y, y + n, x.v);
}

}  // namespace sarrus
