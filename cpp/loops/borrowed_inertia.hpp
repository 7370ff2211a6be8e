// Massless bodies in loops. M is singular along their joints, or would be in some configuration, and yet the accelerations are determined as
// long as every motion that the loops allow moves some mass: N^T M N is positive. The factor eliminates velocities before rows and so
// divides by M alone; it borrows a little inertia for them, epsilon. The corrections of saddle.hpp use the true M, and remove it again: each
// leaves the share epsilon / (epsilon + the inertia of the motion on the loops).
//
// The size of epsilon follows from the inertias that rows tie a velocity to. A row r between masses that are moved by J M^-1 J^T = s_r for a unit
// of force adds J_rk^2 / s_r of them to velocity k. So light fingers on a heavy robot borrow inertia of their own size. Rows
// between massless bodies only transmit the borrowed inertia; velocities that no mass is tied to borrow in proportion to the
// whole mechanism.
#pragma once

#include "saddle_matrix.hpp"
#include "tolerances.hpp"

namespace sarrus {

/// Quasi-random number between -1 and 1 (multiples of the golden ratio), so that no direction is special.
inline double scattered(int k) {
  const double part = 0.6180339887498949 * (k + 1);
  return (k % 2 ? -1.0 : 1.0) * (0.5 + part - static_cast<int>(part));
}

/// Velocities without inertia of their own have no mobility until borrow_inertia() sets it.
template <class T> SARRUS_INLINE void leave_out_massless(const Tree& tree, T* mobility) {
  for (int k = 0; tree.lacks_inertia && k < tree.nv; ++k)
    if (tree.lacks_inertia[k]) mobility[k] = T(0.0);
}

/// f(row, column, entry) of all rows of the matrix.
template <class T, class F> SARRUS_INLINE void each_entry(const Saddle<T>& s, F&& f) {
  const T* J = s.J;
  for (int i = 0; i < s.constraints; ++i) {
    const Constraint& c = s.tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) f(c.row + r, c.column[k], *J++);
  }
}

/// J without entries that are rounding, compared with those that other rows of a constraint have in the same column. A row of such entries alone
/// moves nothing, but compared with its own size it would count like any other.
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

/// Add to `epsilon` (nv) the inertia that the factor borrows, set the `mobility` (nv) of massless velocities by it, and add these to the
/// `scale` of the rows, which does not include them before.
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
  constexpr int links = 4;  // largest number of massless bodies between two with mass, for an inertia to act across them
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

/// True if the loops allow a motion that moves no mass: a pseudo-random force then accelerates massless bodies by 1 / epsilon.
template <class T, class Solve>
SARRUS_NOINLINE auto is_undetermined(const Saddle<T>& s, Arena& arena, const Solve& solve) {
  const Arena::Scope scope(arena);
  const int nv = s.tree.nv;
  T *x = arena.take<T>(s.plan.unknowns), *work = arena.take<T>(s.plan.unknowns), pushed = T(0.0), moved = T(0.0);
  for (int k = 0; k < s.plan.unknowns; ++k) x[k] = T(0.0);
  for (int k = 0; k < nv; ++k) {
    if (!s.tree.lacks_inertia[k]) continue;
    x[k] = T(scattered(k)) / sqrt(s.mobility[k]);
    pushed += T(scattered(k) * scattered(k));
  }
  solve(x, work);
  for (int k = 0; k < nv; ++k)
    moved += select(s.mobility[k] > T(0.0), x[k] * x[k] / select(s.mobility[k] > T(0.0), s.mobility[k], T(1.0)), T(0.0));
  const T most = T(tolerances::no_inertia) / tolerance<T>(tolerances::borrowed, tolerances::borrowed_in_single);
  return moved > pushed * square(most);
}

}  // namespace sarrus
