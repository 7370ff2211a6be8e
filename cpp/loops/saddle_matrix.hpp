// Matrix of the saddle equation (saddle.hpp), its factor, and the regularisation of a row's pivot.
#pragma once

#include "../mechanism/arena.hpp"
#include "../mechanism/tree.hpp"
#include "tolerances.hpp"

namespace sarrus {

/// Entries of the matrix. M is stored by rows: each row contains its diagonal entry, then those of the velocities on the path to the ground. J is
/// stored as one block (rows x columns, column-major) per constraint.
template <class T> struct Saddle {
  const Tree& tree;
  const Elimination& plan;
  const int* mass_first;  // index of the first entry of each row of M; null: M is diagonal
  int constraints, rows;
  const T* M;
  const T* J;
  const T* soft;  // diagonal of S; null: zero
  const T* mobility;  // (nv) 1/M_ii, weights of residuals
  const T* row_weight;  // (rows) 1/(diagonal entry of J M^-1 J^T), weights of residuals
  const T* inertia = nullptr;  // (nv) metric of motions; null: the diagonal of M

  SARRUS_INLINE int entries(int i) const { return mass_first ? mass_first[i + 1] - mass_first[i] : 1; }
  SARRUS_INLINE int first_entry(int i) const { return mass_first ? mass_first[i] : i; }
};

/// Factor: L^T, row by row without its unit diagonal, and 1/D. A factorisation without fronts also stores the mu that was used for each row (rows).
template <class T> struct Factor {
  T* L;
  T* D_inverse;
  const T* mu = nullptr;
};

/// Subtract mu from the pivot d of a row when the row is eliminated. mu is subtracted after all other terms, because it could be lost if those terms
/// cancel. If large terms have cancelled in d, mu is at least a fixed fraction of their sum `passed`. Returns mu.
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
