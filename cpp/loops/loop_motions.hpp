// Motions that the loops allow, and solutions of J x = g, also with dependent rows. C and R are scales of velocities and rows in which radians and
// metres are comparable (closing.hpp):
//
//   (R J C)^T P = Q U,    x = C Q [z; y],    U^T z = P^T R g,    y free
//
// The last columns of C Q span the null space of J. The rank is that of R J C: a row is dependent if its component perpendicular to the rows before
// it is shorter than tolerances::negligible times the longest row. If no x satisfies J x = g, g is replaced by the nearest feasible one, in the rows'
// own units. For one state at a time; dense, cost O(nv rows rank).
#pragma once

#include "constraints.hpp"
#include "pivoted_qr.hpp"

namespace sarrus {

/// Basis of the multipliers z with J^T z = 0, as columns.
class SelfStresses {
 public:
  SelfStresses(int rows, int count, const double* Z, Arena& arena)
      : rows_(rows), count_(count), Z_(Z), arena_(arena), factor_(rows, count, copied(arena, count * rows, Z), arena, 0.0) {}

  /// Replace lambda by the multipliers with the same J^T lambda that are nearest to `to` (rows; null: zero), in the units of the rows.
  SARRUS_NOINLINE void bring_near(const double* to, double* lambda) const {
    const Arena::Scope scope(arena_);
    double *x = arena_.take<double>(rows_), *y = arena_.take<double>(count_);
    for (int r = 0; r < rows_; ++r) x[r] = (to ? to[r] : 0.0) - lambda[r];
    factor_.solve(x, y);
    for (int i = 0; i < count_; ++i) add_multiple(rows_, y[i], Z_ + i * rows_, lambda);
  }

 private:
  static double* copied(Arena& arena, int n, const double* x) {
    double* y = arena.take<double>(n);
    std::copy(x, x + n, y);
    return y;
  }

  int rows_, count_;
  const double* Z_;
  Arena& arena_;
  PivotedQr factor_;
};

class LoopMotions {
 public:
  int freedom;

  /// Factorise R J C. J: blocks of all constraints.
  SARRUS_NOINLINE LoopMotions(const Tree& tree, Arena& arena, const double* J, const double* column, const double* row)
      : nv_(tree.nv),
        rows_(tree.loops.rows),
        column_(column),
        row_(row),
        arena_(arena),
        loops_(nv_, rows_, scaled_rows(tree, arena, J, column, row), arena),
        dependent_(rows_, loops_.rank < rows_ ? loops_.rank : 0, triangle(), arena, 0.0) {
    freedom = nv_ - loops_.rank;
  }

  /// Return a basis C^-1 N of the allowed motions, orthonormal in scaled velocities; each motion (nv) is contiguous.
  const double* basis() const {
    double* N = arena_.take<double>(freedom * nv_);
    for (int i = 0; i < freedom; ++i) {
      double* n = N + i * nv_;
      std::fill(n, n + nv_, 0.0), n[loops_.rank + i] = 1.0;
      loops_.times(n);
      for (int k = 0; k < nv_; ++k) n[k] *= column_[k];
    }
    return N;
  }

  /// Compute P (nv, nv), the projector onto the allowed motions, in scaled velocities.
  SARRUS_NOINLINE void projector(const double* N, double* P) const {
    double* n = arena_.take<double>(nv_);
    std::fill(P, P + nv_ * nv_, 0.0);
    for (int i = 0; i < freedom; ++i) {
      for (int k = 0; k < nv_; ++k) n[k] = column_[k] > 0.0 ? N[i * nv_ + k] / column_[k] : 0.0;  // 0: a fixed joint
      for (int a = 0; a < nv_; ++a) add_multiple(nv_, n[a], n, P + a * nv_);
    }
  }

  /// Return some lambda (rows) with J^T lambda = f (nv), nonzero only in independent rows.
  SARRUS_NOINLINE void forces(const double* f, double* lambda) const {
    const Arena::Scope scope(arena_);
    double* x = arena_.take<double>(nv_);
    for (int k = 0; k < nv_; ++k) x[k] = f[k] * column_[k];
    loops_.times_transpose(x);
    solve_triangle(x);
    for (int j = 0; j < rows_; ++j) lambda[loops_.pivot(j)] = j < loops_.rank ? x[j] * row_[loops_.pivot(j)] : 0.0;
  }

  /// Return a basis of all z with J^T z = 0. Moments and forces are scaled to be comparable, so that the relative precision of the entries does not
  /// depend on the unit of length.
  SARRUS_NOINLINE SelfStresses self_stresses() const {
    const int rank = loops_.rank, count = rows_ - rank;
    double *Z = arena_.take<double>(count * rows_), *x = arena_.take<double>(rank);
    std::fill(Z, Z + count * rows_, 0.0);
    for (int i = 0; i < count; ++i) {
      double* z = Z + i * rows_;
      for (int k = 0; k < rank; ++k) x[k] = -loops_.R(k, rank + i);
      solve_triangle(x);
      for (int k = 0; k < rank; ++k) z[loops_.pivot(k)] = x[k] * row_[loops_.pivot(k)];
      z[loops_.pivot(rank + i)] = row_[loops_.pivot(rank + i)];
      const double length = std::sqrt(dot_product(rows_, z, z));
      for (int r = 0; r < rows_; ++r) z[r] /= length;
    }
    return {rows_, count, Z, arena_};
  }

  /// Compute some x (nv) with J x = g (rows).
  SARRUS_NOINLINE void solve(const double* g, double* x) const {
    const Arena::Scope scope(arena_);
    const int rank = loops_.rank;
    double *b = arena_.take<double>(rows_), *z = arena_.take<double>(rank);
    std::fill(x, x + nv_, 0.0);
    if (rank == rows_) {
      for (int j = 0; j < rank; ++j) {
        const int r = loops_.pivot(j);
        x[j] = (g[r] * row_[r] - dot_product(j, loops_.above_diagonal(j), x)) * loops_.inverse(j);
      }
    } else {
      for (int j = 0; j < rows_; ++j) b[j] = g[loops_.pivot(j)];
      dependent_.solve(b, z);
      std::copy(z, z + rank, x);
    }
    loops_.times(x);
    for (int k = 0; k < nv_; ++k) x[k] *= column_[k];
  }

 private:
  static double* scaled_rows(const Tree& tree, Arena& arena, const double* J, const double* column, const double* row) {
    double* A = arena.take<double>(tree.loops.rows * tree.nv);
    std::fill(A, A + tree.loops.rows * tree.nv, 0.0);
    for (int i = 0; i < tree.loops.constraints; ++i) {
      const Constraint& c = tree.loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) A[(c.row + r) * tree.nv + c.column[k]] = *J++ * column[c.column[k]] * row[c.row + r];
    }
    return A;
  }
  /// Apply U^-1, the inverse of the square part of U, to the first `rank` entries of x.
  void solve_triangle(double* x) const {
    for (int i = loops_.rank - 1; i >= 0; --i) {
      for (int j = i + 1; j < loops_.rank; ++j) x[i] -= loops_.R(i, j) * x[j];
      x[i] *= loops_.inverse(i);
    }
  }
  /// Return U^T (column-major), with its rows in their own units; null if all rows are independent.
  double* triangle() const {
    if (loops_.rank == rows_) return nullptr;
    double* A = arena_.take<double>(rows_ * loops_.rank);
    for (int i = 0; i < loops_.rank; ++i)
      for (int j = 0; j < rows_; ++j) A[i * rows_ + j] = j < i ? 0.0 : loops_.R(i, j) * inverse_or_zero(row_[loops_.pivot(j)]);
    return A;
  }

  int nv_, rows_;
  const double *column_, *row_;
  Arena& arena_;
  PivotedQr loops_, dependent_;
};

}  // namespace sarrus
