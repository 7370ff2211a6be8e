// The matrix of the saddle equation (saddle.hpp), its factor, and the regularisation of a row's pivot.
#pragma once

#include "../mechanism/arena.hpp"
#include "../mechanism/tree.hpp"
#include "tolerances.hpp"

namespace sarrus {

/// The numbers of the matrix: M by rows, each from its diagonal towards the ground; J in blocks, rows x columns, column by column.
template <class T> struct Saddle {
  const Tree& tree;
  const Elimination& plan;
  const int* mass_first;  // start of row i of M; null: M is a diagonal
  int constraints, rows;
  const T* M;
  const T* J;
  const T* soft;  // S, null: zero
  const T* mobility;  // 1/M_ii, which makes residuals comparable
  const T* row_weight;  // and 1/size of each row's J M^-1 J^T
  const T* inertia = nullptr;  // metric of motions; null: the diagonal of M

  SARRUS_INLINE int entries(int i) const { return mass_first ? mass_first[i + 1] - mass_first[i] : 1; }
  SARRUS_INLINE int first_entry(int i) const { return mass_first ? mass_first[i] : i; }
};

/// L below D, row-major, and 1/D; and, not by fronts, the mu that each row got (rows).
template <class T> struct Factor {
  T* L;
  T* D_inverse;
  const T* mu = nullptr;
};

/// Add mu at a row's elimination, so that it is not lost by cancellation. If these were large, mu is a share of `passed`, the
/// size of all that has been subtracted from the pivot d. Returns mu.
template <class T, class Passed> SARRUS_INLINE T subtract_mu(T& d, T mu, Passed passed) {
  const T least = tolerance<T>(tolerances::regularisation, tolerances::regularisation_in_single);
  const auto cancelled = both(mu > T(0.0), abs(d) * (T(1e3) * least) < mu);
  if (any(cancelled)) {
    const T share = passed() * least;
    mu = select(both(cancelled, mu < share), share, mu);
  }
  d -= mu;
  return mu;
}

}  // namespace sarrus
