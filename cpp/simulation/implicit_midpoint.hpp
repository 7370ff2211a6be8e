// The implicit midpoint rule: v1 = v0 + h a(t + h/2, q0 cay(h/4 (v0 + v1)), (v0 + v1)/2), q1 = q0 cay(h/2 (v0 + v1)). Symmetric and
// A-stable. Cayley's transform turns by 2 atan(|h w|/2), and with it a free body keeps its momentum and energy to rounding.
// On loops the projection is symmetric too (Hairer, Lubich and Wanner V.4.1): what moves the end onto them also moved the start. So the rule
// can be run backwards, and energy swings and does not drift where motion is regular; chaotic chains may wander, in coarse steps.
//
// Plain iteration where it contracts; else Newton's, with the derivative by differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

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

/// A displacement whose turns are Cayley's becomes one whose turns are the exponential's.
inline void as_exponential(const Tree& tree, double* u) {
  for (int i = 1; i < tree.bodies; ++i)
    visit_every(tree.body[i].described, 0, [&](auto joint) { joint.cayley_to_exponential(u + tree.body[i].iv); });
}

/// Whatever the compiler, which is told that all numbers are finite, makes of comparisons.
inline bool finite_bits(double x) {
  std::uint64_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  asm("" : "+r"(bits));  // and of bits whose origin it knows
  return (bits >> 52 & 0x7ff) != 0x7ff;
}

/// `guess`, if given: of (v, z) at the end.
inline void implicit_midpoint_step(System<double>& s, double time, double h, const SimulationState<double>& x,
                                   const double* guess = nullptr) {
  const int nq = s.tree.nq, nv = s.tree.nv, n = nv + s.plan.actions.memory;
  Arena& arena = s.arena;
  double *y = arena.take<double>(n), *next = arena.take<double>(n), *off = arena.take<double>(n), *other = arena.take<double>(n),
         *step = arena.take<double>(n);
  double *rate = arena.take<double>(n), *middle = arena.take<double>(n), *u = arena.take<double>(nv), *q = arena.take<double>(nq);
  // y = (v1, z1); x.v and x.z stand side by side
  std::copy_n(guess ? guess : x.v, n, y);
  const auto lead = [&](const double* from, double* to) {  // to what the rule makes of y
    for (int k = 0; k < n; ++k) middle[k] = 0.5 * (x.v[k] + from[k]);
    for (int k = 0; k < nv; ++k) u[k] = h * middle[k];
    as_exponential(s.tree, u);
    for (int k = 0; k < nv; ++k) u[k] *= 0.5;
    integrate(s.tree, x.q, u, q);
    if (s.plan.close_stages) project(s, time + 0.5 * h, q, middle);
    s.evaluate(time + 0.5 * h, q, middle, middle + nv, rate, rate + nv);
    for (int k = 0; k < n; ++k) to[k] = x.v[k] + h * rate[k];
  };
  constexpr double overflow = 1e300;
  const auto miss = [&](const double* from, const double* to, double* by) {  // relative; at rest, of 1e-3
    double sum = 0.0, size = 1e-6;
    for (int k = 0; k < n; ++k) by[k] = to[k] - from[k], sum += by[k] * by[k], size += to[k] * to[k] + x.v[k] * x.v[k];
    return finite_bits(sum) && finite_bits(size) ? std::sqrt(sum / size) : overflow;
  };

  lead(y, next);
  double left = miss(y, next, off);
  double* A = nullptr;
  for (int round = 0; left > 1e-15 && left < overflow && round < 50 && s.status == 0.0; ++round) {
    double now = 0.0;
    std::copy(off, off + n, step);
    if (A) {  // Newton: (1 - G) step = off, with G the derivative of `lead`
      std::copy(A, A + n * n, A + n * n);
      if (!solve_dense(n, A + n * n, step)) break;
    }
    double share = 1.0;
    for (;; share *= 0.5) {  // shorter where friction sets in, or contact, on the way
      for (int k = 0; k < n; ++k) y[k] += (share == 1.0 ? 1.0 : -share) * step[k];
      lead(y, next);
      now = miss(y, next, off);
      if (!A || now < left || now < 1e-12 || share < 1e-9) break;
    }
    if (now >= left && now < 1e-9) {  // rounding: of two that are as good, the one before
      for (int k = 0; k < n; ++k) y[k] -= now > left ? share * step[k] : 0.0;
      left = std::min(now, left);
      break;
    }
    if (now > 0.2 * left) {
      if (!A) A = arena.take<double>(2 * n * n);
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
  if (left > 1e-7 && s.status == 0.0)  // near singular positions rounding is that large
    s.status = left < overflow ? no_convergence : diverged;
  for (int k = 0; k < nv; ++k) u[k] = 0.5 * h * (x.v[k] + y[k]);
  as_exponential(s.tree, u);
  integrate(s.tree, x.q, u, q);
  std::copy(q, q + nq, x.q);
  std::copy(y, y + n, x.v);
}

/// The step between two projections: rows change at the start and at the end by the same `change`, so that the end is on the loops.
/// Here the motions that change them are those at the start and at the end of the first try, closed; what they are off by later is the
/// square of a drift.
inline void implicit_midpoint_on_loops(System<double>& s, double time, double h, const SimulationState<double>& x) {
  const Tree& tree = s.tree;
  Arena& arena = s.arena;
  const int nq = tree.nq, nv = tree.nv, rows = tree.loops.rows, size = s.size();
  double *change = arena.take<double>(2 * rows), *off = arena.take<double>(2 * rows), *q = arena.take<double>(nq);
  double *begin = arena.take<double>(size), *row = arena.take<double>(size), *guess = arena.take<double>(size),
         *end = arena.take<double>(size);
  double* J = arena.take<double>(tree.loops.entries);
  const auto at = SimulationState<double>::of(tree, row);
  const auto shift = [&](LeastMotion<double>& least) {
    integrate(tree, at.q, least.along(change, 1.0), q);
    std::copy(q, q + nq, at.q);
    const double* faster = least.along(change + rows, 1.0);
    for (int k = 0; k < nv; ++k) at.v[k] += faster[k];
  };
  const auto open = [&](double when) {  // by how much, and how fast it opens, at the end
    const Arena::Scope scope(arena);
    ConstraintRows<double> wanted;
    wanted.residual = off, wanted.target = off + rows, wanted.J = J;
    constraint_rows(tree, arena, place(tree, arena, at.q, &when, s.given(at.q, at.v)), wanted, 0, tree.loops.constraints);
    add_motion_along_rows(tree, J, at.v, -1.0, off + rows);
    return sum_of_squares(off, rows) + sum_of_squares(off + rows, rows) / (1.0 + sum_of_squares(at.v, nv));
  };

  std::copy(x.q, x.q + size, begin);  // q, v and z stand side by side
  std::copy(x.q, x.q + size, row);
  std::fill(change, change + 2 * rows, 0.0);
  LeastMotion<double>& first = *s.least;
  implicit_midpoint_step(s, time, h, at);
  std::copy(row, row + size, end);
  const auto at_end = SimulationState<double>::of(tree, end);
  project(s, time + h, at_end.q, at_end.v);
  LeastMotion<double> last(tree, arena, at_end.q, time + h, s.given(at_end.q, at_end.v));
  std::optional<LeastMotion<double>> middle;
  if (s.plan.close_stages) {  // seen from either end the same
    double* u = arena.take<double>(nv);
    difference(tree, x.q, at_end.q, u);
    for (int k = 0; k < nv; ++k) u[k] *= 0.5;
    integrate(tree, x.q, u, q);
    project(s, time + 0.5 * h, q, at_end.v, nullptr, false);
    s.least = &middle.emplace(tree, arena, q, time + 0.5 * h, s.given(q, at_end.v));
  }
  double left = HUGE_VAL;
  for (int round = 0; round < 10 && s.status == 0.0; ++round) {
    const Arena::Scope scope(arena);
    const double now = open(time + h);
    if (!(now < left) && !(now < closed)) break;  // rounding, or a singular position, where no motion to speak of changes a row
    left = now;
    std::copy(row, row + size, x.q);
    if (left < closed && !(middle && round == 0)) break;
    for (int r = 0; r < rows; ++r) change[r] -= 0.5 * off[r], change[rows + r] += 0.5 * off[rows + r];
    for (double* part : {change, change + rows}) {
      if (!middle) break;
      const double* motion = middle->along(part, 1.0);  // what rows can agree on in the middle
      std::fill(part, part + rows, 0.0);
      add_motion_along_rows(tree, middle->e.matrix.J, motion, 1.0, part);
    }
    std::copy(at.v, at.v + size - nq, guess);
    std::copy(begin, begin + size, row);
    shift(first);
    implicit_midpoint_step(s, time, h, at, guess);
    shift(last);
  }
  s.least = &first;
}

}  // namespace sarrus
