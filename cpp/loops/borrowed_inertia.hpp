// Massless bodies in loops. M is singular along their joints, at least in some configurations. The accelerations are determined nevertheless if every
// motion N that the loops allow moves some mass, because N^T M N is then positive. But the factorisation eliminates velocities before rows; its first
// pivots come from M alone, so they could be zero. Therefore a small inertia epsilon is added ("borrowed") for these bodies. The corrections of
// saddle.hpp use the true M and remove the effect of epsilon: each correction leaves the fraction epsilon / (epsilon + inertia of the motion on the
// loops) of the error.
//
// The value of epsilon follows from the inertias that rows couple to a velocity. Let s_r, the diagonal entry of J M^-1 J^T, be the acceleration of
// row r by a unit force along it. Row r then couples the inertia J_rk^2 / s_r to velocity k. Therefore light fingers of a heavy robot borrow little
// inertia. Rows between massless bodies only transmit the borrowed inertia. Velocities without any coupled mass borrow in proportion to the mass of
// the mechanism.
#pragma once

#include "saddle_matrix.hpp"
#include "tolerances.hpp"

namespace sarrus {

/// Return the k-th quasi-random number between -1 and 1 (from multiples of the golden ratio). A vector of them is perpendicular to no direction that
/// occurs in practice.
inline double scattered(int k) {
  const double part = 0.6180339887498949 * (k + 1);
  return (k % 2 ? -1.0 : 1.0) * (0.5 + part - static_cast<int>(part));
}

/// Set the mobility (1/M_kk) of velocities without inertia to zero; borrow_inertia() sets it to the inverse of the borrowed inertia later.
template <class T> SARRUS_INLINE void leave_out_massless(const Tree& tree, T* mobility) {
  for (int k = 0; tree.lacks_inertia && k < tree.nv; ++k)
    if (tree.lacks_inertia[k]) mobility[k] = T(0.0);
}

/// Call f(row, column, entry) for each entry of J.
template <class T, class F> SARRUS_INLINE void each_entry(const Saddle<T>& s, F&& f) {
  const T* J = s.J;
  for (int i = 0; i < s.constraints; ++i) {
    const Constraint& c = s.tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) f(c.row + r, c.column[k], *J++);
  }
}

/// Copy J, and set entries to zero that are rounding errors of the largest entry of the same constraint in that column. Residuals are relative to the
/// row's own scale: without this step, a row that consists of rounding errors only would be treated as a constraint.
template <class T> SARRUS_INLINE const T* without_rounding(const Saddle<T>& s, Arena& arena) {
  int entries = 0;
  for (int i = 0; i < s.constraints; ++i) entries += s.tree.loops.constraint[i].rows * s.tree.loops.constraint[i].columns;
  T* clean = arena.take<T>(entries);
  const T rounding = tolerance<T>(tolerances::no_entry, tolerances::no_entry_in_single);
  for (int i = 0, first = 0; i < s.constraints; ++i) {
    const Constraint& c = s.tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k, first += c.rows) {
      T largest = T(0.0);
      for (int r = first; r < first + c.rows; ++r) largest = select(abs(s.J[r]) > largest, abs(s.J[r]), largest);
      for (int r = first; r < first + c.rows; ++r) clean[r] = select(abs(s.J[r]) < largest * rounding, T(0.0), s.J[r]);
    }
  }
  return clean;
}

/// Add the borrowed inertia to `epsilon` (nv), set the `mobility` (nv) of massless velocities to its inverse, and add the contribution of these
/// velocities to the `scale` of the rows.
template <class T>
SARRUS_NOINLINE void borrow_inertia(const Saddle<T>& matrix, Arena& arena, T* mobility, T* scale, T* epsilon) {
  const Arena::Scope scope(arena);
  Saddle<T> s = matrix;
  s.J = without_rounding(matrix, arena);
  const char* lacks = s.tree.lacks_inertia;
  const int nv = s.tree.nv;
  T *inertia = arena.take<T>(nv), *size = arena.take<T>(s.rows), *moved = arena.take<T>(s.rows);
  const auto find_moved = [&] {
    for (int r = 0; r < s.rows; ++r) moved[r] = T(0.0);
    each_entry(s, [&](int r, int k, const T& x) SARRUS_INLINED { moved[r] += x * x * mobility[k]; });
  };
  find_moved();
  for (int r = 0; r < s.rows; ++r) size[r] = select(moved[r] > T(0.0), scale[r], T(0.0));
  for (int k = 0; k < nv; ++k) inertia[k] = T(0.0);
  constexpr int links = 4;  // largest number of successive massless bodies that transmit inertia between two bodies with mass
  for (int pass = 0; pass < links; ++pass) {
    T* felt = arena.take<T>(nv);
    for (int k = 0; k < nv; ++k) felt[k] = lacks[k] ? s.M[s.first_entry(k)] : T(0.0);
    each_entry(s, [&](int r, int k, const T& x) SARRUS_INLINED {
      if (lacks[k]) felt[k] += select(size[r] > T(0.0), x * x / select(size[r] > T(0.0), size[r], T(1.0)), T(0.0));
    });
    for (int k = 0; k < nv; ++k) {
      if (!lacks[k]) continue;
      inertia[k] = select(inertia[k] > T(0.0), inertia[k], felt[k]);
      mobility[k] = select(inertia[k] > T(0.0), T(1.0) / select(inertia[k] > T(0.0), inertia[k], T(1.0)), T(0.0));
    }
    find_moved();
    for (int r = 0; r < s.rows; ++r) size[r] = select(size[r] > T(0.0), size[r], moved[r]);
  }
  const auto numbers = s.tree.template numbers<T>();
  const T mass = select(numbers(s.tree.mass) > T(0.0), T(numbers(s.tree.mass)), T(1.0));
  for (int k = 0; k < nv; ++k) {
    if (!lacks[k]) continue;
    inertia[k] = select(inertia[k] > T(0.0), inertia[k], T(mass * square(T(numbers(s.tree.unit[k])))));
    mobility[k] = T(1.0) / inertia[k];
    epsilon[k] += inertia[k] * tolerance<T>(tolerances::borrowed, tolerances::borrowed_in_single);
  }
  for (int r = 0; r < s.rows; ++r) scale[r] = size[r];
  each_entry(s, [&](int r, int k, const T& x) SARRUS_INLINED {
    if (lacks[k]) scale[r] += x * x * mobility[k];
  });
  for (int r = 0; r < s.rows; ++r) scale[r] = select(scale[r] > T(0.0), scale[r], T(1.0));
}

/// Return true if the loops allow a motion that moves no mass. It is found by a pseudo-random force, which then causes accelerations of about 1 /
/// epsilon.
template <class T, class Solve>
SARRUS_NOINLINE auto is_undetermined(const Saddle<T>& s, Arena& arena, const Solve& solve) {
  const Arena::Scope scope(arena);
  const int nv = s.tree.nv;
  T *x = arena.take<T>(s.plan.unknowns), pushed = T(0.0), moved = T(0.0);
  for (int k = 0; k < s.plan.unknowns; ++k) x[k] = T(0.0);
  for (int k = 0; k < nv; ++k) {
    if (!s.tree.lacks_inertia[k]) continue;
    x[k] = T(scattered(k)) / sqrt(s.mobility[k]);
    pushed += T(scattered(k) * scattered(k));
  }
  solve(x);
  for (int k = 0; k < nv; ++k)
    moved += select(s.mobility[k] > T(0.0), x[k] * x[k] / select(s.mobility[k] > T(0.0), s.mobility[k], T(1.0)), T(0.0));
  const T most = T(tolerances::no_inertia) / tolerance<T>(tolerances::borrowed, tolerances::borrowed_in_single);
  return moved > pushed * square(most);
}

}  // namespace sarrus
