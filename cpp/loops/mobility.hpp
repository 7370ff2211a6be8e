// Mobility of a mechanism in one configuration: the rank of J, and the velocities of motors and of an output frame along the motions that J allows.
// Let P be the projector onto these motions, S the rows of the motors' velocities and G those of the output frame, all scaled as in closing.hpp.
// Then
//
//   B B^T = S P S^T,   C = G P S^T,   G P G^T
//
// determine all results. A motion that moves no motor is an output singularity; a motor that does not move the output is an input singularity
// (Gosselin and Angeles 1990). K = C (B B^T)^-1 maps motor velocities to output velocities. Singular values are square roots of eigenvalues of these
// products, so rounding by eps becomes an error of 1e-8 or more. Therefore singular values below 1e-6 (with rows of norm one) are treated as zero.
#pragma once

#include "../dynamics/frame.hpp"
#include "closing.hpp"

namespace sarrus {

/// Reduce a symmetric matrix A (n x n, destroyed) to tridiagonal form by Householder reflections. Outputs: its diagonal, and the squares of its
/// off-diagonal entries.
template <class T> SARRUS_NOINLINE void tridiagonalise(int n, T* A, T* diagonal, T* squares, Arena& arena) {
  T *v = arena.take<T>(n), *w = arena.take<T>(n);
  for (int k = 0; k < n; ++k) {
    diagonal[k] = A[k * n + k];
    if (k + 1 == n) break;
    T length = T(0.0);
    for (int i = k + 1; i < n; ++i) v[i] = A[i * n + k], length += v[i] * v[i];
    squares[k] = length;
    if (k + 2 == n) continue;
    v[k + 1] += select(v[k + 1] < T(0.0), -sqrt(length), sqrt(length));
    const T vv = length - A[(k + 1) * n + k] * A[(k + 1) * n + k] + v[k + 1] * v[k + 1];
    const T beta = T(2.0) / select(vv > T(0.0), vv, T(1.0));
    T along = T(0.0);
    for (int i = k + 1; i < n; ++i) {
      w[i] = T(0.0);
      for (int j = k + 1; j < n; ++j) w[i] += A[i * n + j] * v[j];
      w[i] *= beta, along += w[i] * v[i];
    }
    for (int i = k + 1; i < n; ++i) w[i] -= v[i] * (along * beta * T(0.5));
    for (int i = k + 1; i < n; ++i)
      for (int j = k + 1; j < n; ++j) A[i * n + j] -= v[i] * w[j] + w[i] * v[j];
  }
}

/// Nonzero singular values of F, computed from F F^T (n x n, destroyed): a Sturm sequence counts the eigenvalues above a value, and bisection locates
/// them.
template <class T> class SingularValues {
 public:
  T rank;

  SingularValues(int n, T* A, Arena& arena) : n_(n), d_(arena.take<T>(n)), e_(arena.take<T>(n)), trace_(T(0.0)) {
    for (int k = 0; k < n; ++k) trace_ += A[k * n + k];
    tridiagonalise(n, A, d_, e_, arena);
    rank = above(T(least));
  }
  /// Return the count-th largest singular value, to nine digits; 0 if there are fewer.
  SARRUS_NOINLINE T find(const T& count) const {
    T low = T(least), high = T(least) + trace_ * T(1.001);
    for (int k = 0; k < 34; ++k) {
      const T middle = sqrt(low * high);
      const auto more = above(middle) > count - T(0.5);
      low = select(more, middle, low), high = select(more, high, middle);
    }
    return select(rank > count - T(0.5), select(rank > T(0.5), sqrt(low), T(0.0)), T(0.0));
  }

 private:
  static constexpr double least = tolerances::present * tolerances::present;

  T above(const T& x) const {
    T count = T(0.0), q = T(1.0);
    for (int k = 0; k < n_; ++k) {
      q = d_[k] - x - (k > 0 ? e_[k - 1] / q : T(0.0));
      q = select(abs(q) > T(1e-200), q, T(1e-200));
      count += select(q > T(0.0), T(1.0), T(0.0));
    }
    return count;
  }

  int n_;
  T *d_, *e_, trace_;
};

/// Eight outputs for one configuration: rank and smallest singular value of J; rank and smallest singular value of B; rank of G on the allowed
/// motions, rank of B and G together; condition number of K, and its rank.
///
///   scale   (nv + rows) as in closing.hpp        gains  (efforts + 6) inverse weights of unit velocities, of each motor and of the output
template <class T> void mobility_numbers(const Tree& tree, Arena& arena, const Frame& frame, const ClosureOptions<T>& options,
                                         const T* gains, const T* q, const T* time, const T* pfaffian_values, T* out) {
  const Loops& loops = tree.loops;
  const int nv = tree.nv, rows = loops.rows + loops.motor_rows, motors = loops.actuators, rate_rows = motors + 6;
  const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
  T *J = arena.take<T>(loops.entries + loops.motor_entries), *dense = arena.take<T>(rows * nv);
  ConstraintRows<T> row_output;
  row_output.J = J;
  constraint_rows(tree, arena, state, row_output, 0, loops.constraints + loops.motor_constraints);
  for (int k = 0; k < rows * nv; ++k) dense[k] = T(0.0);
  T* entry = J;
  for (int i = 0; i < loops.constraints + loops.motor_constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r, ++entry) {
        const T row = c.row + r < loops.rows ? options.row[c.row + r] : T(1.0);
        *entry *= options.column[c.column[k]] * row;
        dense[(c.row + r) * nv + c.column[k]] = *entry;
      }
  }

  // F: rows that map scaled velocities to the velocities of the motors and of the output
  T* F = arena.take<T>(rate_rows * nv);
  for (int k = 0; k < rate_rows * nv; ++k) F[k] = T(0.0);
  for (int a = 0; a < motors; ++a) {
    const int actuator = loops.actuator[a];
    for (int k = 0; k < nv; ++k) {
      const T unit = actuator < nv ? (actuator == k ? options.column[k] : T(0.0)) : dense[(actuator - nv) * nv + k];
      F[a * nv + k] = unit * gains[a];
    }
  }
  if (frame.link > 0) {
    const Transform<T> X = state.X[frame.link] * state.numbers(frame.X);
    const Link& link = tree.link[frame.link];
    for (int k = link.iv + link.nv - 1; k >= 0; k = tree.column_parent[k]) {
      T six[6];
      const Motion<T>& s = state.column[k];
      store(Motion<T>{s.angular, s.linear + cross(s.angular, Vec3<T>(X.p - state.X[tree.column_link[k]].p))}, six);
      for (int r = 0; r < 6; ++r) F[(motors + r) * nv + k] = six[r] * options.column[k] * gains[motors + r];
    }
  }

  T *unit_weights = arena.take<T>(nv), *unit_row_weights = arena.take<T>(rows), *S = arena.take<T>(rows),
    *x = arena.take<T>(nv + rows), *all = arena.take<T>(rate_rows * rate_rows), *part = arena.take<T>(rate_rows * rate_rows);
  for (int k = 0; k < nv; ++k) unit_weights[k] = T(1.0);
  for (int r = 0; r < rows; ++r) unit_row_weights[r] = T(1.0), S[r] = r < loops.rows ? T(tolerances::least_square) : T(1.0);
  const Saddle<T> s = {tree, loops.statics, nullptr, loops.constraints, rows, unit_weights, J, S, unit_weights, unit_row_weights};
  Factor<T> factor{};
  SubstructuredEquation<T>* pieces = nullptr;
  if (loops.substructures) {
    pieces = new (arena.take<SubstructuredEquation<T>>(1))
        SubstructuredEquation<T>(tree, arena, state, Poses<T>{state.in_parent}, state.stored, {options.column, true});
    pieces->weigh_rows(tree, options.row, T(tolerances::least_square));
    factor = pieces->factorise(arena);
  } else if (rows > 0) {
    factor = factorise(s, arena, static_cast<const T*>(nullptr), zeros<T>(arena, rows));
  }
  for (int a = 0; a < rate_rows; ++a) {
    for (int k = 0; k < nv; ++k) x[k] = F[a * nv + k];
    // project twice, because each pass leaves the fraction mu / (mu + s^2) of the forbidden part, where s is a singular value of J
    for (int twice = 0; rows > 0 && twice < 2; ++twice) {
      for (int r = 0; r < rows; ++r) x[nv + r] = T(0.0);
      pieces ? void(pieces->solve(tree, arena, factor, x, x, 20)) : solve(loops.statics, factor, arena, x);
    }
    for (int b = 0; b < rate_rows; ++b) {
      all[a * rate_rows + b] = T(0.0);
      for (int k = 0; k < nv; ++k) all[a * rate_rows + b] += F[b * nv + k] * x[k];
    }
  }
  const auto block = [&](int begin, int end) {
    for (int a = begin; a < end; ++a)
      for (int b = begin; b < end; ++b) part[(a - begin) * (end - begin) + b - begin] = all[a * rate_rows + b];
    return SingularValues<T>(end - begin, part, arena);
  };
  const auto B = block(0, motors), G = block(motors, rate_rows), both_of_them = block(0, rate_rows);

  // compute K^T from (B B^T) K^T = C^T by a Cholesky factor; redundant motors cause no error, because along their direction the right-hand side is
  // zero to 1e-16
  T *L = arena.take<T>(motors * motors), *K = arena.take<T>(motors * 6), *KK = arena.take<T>(36);
  for (int a = 0; a < motors; ++a)
    for (int b = 0; b <= a; ++b) {
      T sum = all[a * rate_rows + b] + T(a == b ? 1e-11 : 0.0);
      for (int k = 0; k < b; ++k) sum -= L[a * motors + k] * L[b * motors + k];
      L[a * motors + b] = a == b ? sqrt(select(sum > T(1e-15), sum, T(1e-15))) : sum / L[b * motors + b];
    }
  for (int r = 0; r < 6; ++r) {
    for (int a = 0; a < motors; ++a) {
      T sum = all[a * rate_rows + motors + r];
      for (int k = 0; k < a; ++k) sum -= L[a * motors + k] * K[r * motors + k];
      K[r * motors + a] = sum / L[a * motors + a];
    }
    for (int a = motors - 1; a >= 0; --a) {
      T sum = K[r * motors + a];
      for (int k = a + 1; k < motors; ++k) sum -= L[k * motors + a] * K[r * motors + k];
      K[r * motors + a] = sum / L[a * motors + a];
    }
  }
  for (int r = 0; r < 6; ++r)
    for (int c = 0; c < 6; ++c) {
      KK[6 * r + c] = T(0.0);
      for (int a = 0; a < motors; ++a) KK[6 * r + c] += K[r * motors + a] * K[c * motors + a];
    }
  const SingularValues<T> gain(6, KK, arena);

  T* JJ = arena.take<T>(loops.rows * loops.rows);
  for (int r = 0; r < loops.rows; ++r)
    for (int c = 0; c <= r; ++c) {
      T sum = T(0.0);
      for (int k = 0; k < nv; ++k) sum += dense[r * nv + k] * dense[c * nv + k];
      JJ[r * loops.rows + c] = JJ[c * loops.rows + r] = sum;
    }
  const SingularValues<T> loop(loops.rows, JJ, arena);
  const T gained = gain.find(gain.rank);
  const T condition = gain.find(T(1.0)) / select(gained > T(0.0), gained, T(1.0));
  const T numbers[8] = {loop.rank, loop.find(loop.rank), B.rank, B.find(B.rank), G.rank, both_of_them.rank, condition, gain.rank};
  for (int k = 0; k < 8; ++k) out[k] = numbers[k];
}

}  // namespace sarrus
