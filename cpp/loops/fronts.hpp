// Factorisation L D L^T of the saddle equation by the multifrontal method (mechanism/fronts.hpp). Its operations are on dense rows, although the
// matrix is sparse.
//
// A front adds its entries of M and J to the contributions of earlier fronts and eliminates its pivots. The remaining matrix, packed row-major, goes
// onto a stack for the parent front. mu is added when a row is eliminated, as in saddle.hpp.
#pragma once

#include "saddle_matrix.hpp"

namespace sarrus {

/// Dense matrix of a front. `ahead`: rows of its pivots, stored in L; `behind`: rows of the later neighbours.
template <class T> struct FrontRows {
  int pivots, size;
  T *ahead, *behind;
  T* passed;  // for each row, the sum of the absolute values that were subtracted from its diagonal entry (saddle_matrix.hpp)

  SARRUS_INLINE T* row(int i) const { return (i < pivots ? ahead + i * size : behind + (i - pivots) * size); }
};

template <class T> SARRUS_NOINLINE void eliminate(const FrontRows<T>& f, const bool* is_row, const T* mu, T* D_inverse) {
  const int m = f.size;
  for (int begin = 0; begin < f.pivots; begin += panel_size) {
    const int end = begin + panel_size < f.pivots ? begin + panel_size : f.pivots;
    for (int k = begin; k < end; ++k) {
      T* row = f.row(k);
      for (int i = begin; i < k; ++i) {
        const T* above = f.row(i);
        const T l = above[k] * D_inverse[i];
        f.passed[k] += abs(T(l * above[k]));
        subtract_scaled(row + k, above + k, l, m - k);
      }
      if (is_row[k]) subtract_mu(row[k], mu[k], [&] { return f.passed[k]; });
      D_inverse[k] = T(1.0) / row[k];
    }
    const T* from[panel_size];
    T l[panel_size];
    for (int a = end; a < m; ++a) {
      for (int i = 0; i < panel_size; ++i) {
        const int k = begin + i < end ? begin + i : begin;
        from[i] = f.row(k) + a;
        l[i] = begin + i < end ? *from[i] * D_inverse[k] : T(0.0);
        f.passed[a] += abs(T(l[i] * *from[i]));
      }
      subtract_scaled(f.row(a) + a, from, l, m - a);
    }
  }
  for (int k = 0; k < f.pivots; ++k) {
    T* row = f.row(k);
    for (int a = k + 1; a < m; ++a) row[a] *= D_inverse[k];
  }
}

template <class T> SARRUS_NOINLINE Factor<T> factorise_by_fronts(const Saddle<T>& s, Arena& arena, const T* epsilon,
                                                                 const T* mu) {
  const Elimination& e = s.plan;
  const int nv = s.tree.nv;
  T *L = arena.take<T>(e.slots), *D_inverse = arena.take<T>(e.unknowns), *top = arena.take<T>(e.stack);
  const Arena::Scope scope(arena);
  T *behind = arena.take<T>(static_cast<std::size_t>(e.largest) * e.widest), *passed = arena.take<T>(e.widest),
    *pivot_mu = arena.take<T>(e.widest);
  bool* is_row = arena.take<bool>(e.widest);
  int* waiting = arena.take<int>(e.fronts);  // stack of fronts whose contributions are not yet added
  for (int n = 0; n < e.fronts; ++n) {
    const Front& f = e.front[n];
    const int m = f.size, later = m - f.pivots;
    const FrontRows<T> rows = {f.pivots, m, L + f.slot, behind, passed};
    for (int k = 0; k < f.pivots * m; ++k) rows.ahead[k] = T(0.0);
    for (int i = 0; i < later; ++i)
      for (int j = f.pivots + i; j < m; ++j) behind[i * m + j] = T(0.0);
    for (int k = 0; k < m; ++k) passed[k] = T(0.0);
    for (int k = f.mass; k < e.front[n + 1].mass; ++k) rows.ahead[e.mass_slot[k]] = s.M[e.mass_entry[k]];
    for (int k = f.jacobian; k < e.front[n + 1].jacobian; ++k) rows.ahead[e.jacobian_slot[k]] = s.J[e.jacobian_entry[k]];
    for (int k = 0; k < f.pivots; ++k) {
      const int unknown = e.unknown[f.first + k], r = unknown - nv;
      is_row[k] = r >= 0;
      if (is_row[k]) pivot_mu[k] = mu[r];
      T& d = rows.ahead[k * m + k];
      if (is_row[k] && s.soft) d -= s.soft[r];
      if (!is_row[k] && epsilon) d += epsilon[unknown];
    }
    for (int c = 0; c < f.children; ++c) {
      const Front& child = e.front[*--waiting];
      const int count = child.size - child.pivots;
      const int* into = e.into + child.into;
      top -= count * (count + 1) / 2 + count;
      const T* entry = top;
      for (int i = 0; i < count; ++i) {
        T* row = rows.row(into[i]);
        for (int j = i; j < count; ++j) row[into[j]] += *entry++;
      }
      for (int i = 0; i < count; ++i) passed[into[i]] += *entry++;
    }
    eliminate(rows, is_row, pivot_mu, D_inverse + f.first);
    if (f.parent < 0) continue;
    for (int i = 0; i < later; ++i)
      for (int j = f.pivots + i; j < m; ++j) *top++ = behind[i * m + j];
    for (int i = 0; i < later; ++i) *top++ = passed[f.pivots + i];
    *waiting++ = n;
  }
  return {L, D_inverse};
}

/// Replace x (velocities, then rows) by the solution.
template <class T> SARRUS_NOINLINE void solve_by_fronts(const Elimination& e, const Factor<T>& f, Arena& arena, T* x) {
  const Arena::Scope scope(arena);
  T *front_values = arena.take<T>(e.widest), *work = arena.take<T>(e.unknowns);
  for (int k = 0; k < e.unknowns; ++k) work[k] = x[e.unknown[k]];
  for (int n = 0; n < e.fronts; ++n) {
    const Front& front = e.front[n];
    const int m = front.size, p = front.pivots;
    const int* later = e.later + front.later - p;
    for (int i = 0; i < p; ++i) front_values[i] = work[front.first + i];
    for (int i = p; i < m; ++i) front_values[i] = work[later[i]];
    for (int i = 0; i < p; ++i) {
      const T* row = f.L + front.slot + i * m;
      subtract_scaled(front_values + i + 1, row + i + 1, front_values[i], m - i - 1);
      work[front.first + i] = front_values[i];
    }
    for (int i = p; i < m; ++i) work[later[i]] = front_values[i];
  }
  for (int n = e.fronts - 1; n >= 0; --n) {
    const Front& front = e.front[n];
    const int m = front.size, p = front.pivots;
    const int* later = e.later + front.later - p;
    for (int i = p; i < m; ++i) front_values[i] = work[later[i]];
    for (int i = p - 1; i >= 0; --i) {
      const T along = scalar_product(f.L + front.slot + i * m + i + 1, front_values + i + 1, m - i - 1);
      front_values[i] = work[front.first + i] = work[front.first + i] * f.D_inverse[front.first + i] - along;
    }
  }
  for (int k = 0; k < e.unknowns; ++k) x[e.unknown[k]] = work[k];
}

}  // namespace sarrus
