// Elimination by panels: consecutive unknowns whose rows of the factor have the same columns, for example the rows of one constraint (supernodes: Ng and
// Peyton, SIAM J. Sci. Comput. 14, 1993). Each later row is loaded and stored once per panel instead of once per unknown, and its entries are found by
// one index. The columns are unions of the neighbours of all earlier unknowns, so most unknowns are in panels.
//
// A panel of three unknowns 2, 3 and 4, which are coupled to the later unknowns 6, 7 and 9:
//
//   a         0    1    2     3     4     5
//   column    2    3    4     6     7     9
//   row[0]    d    l    l     l     l     l       after the elimination, 1/d is stored separately, and l / d replaces l
//   row[1]         d    l     l     l     l       row i is stored from its diagonal entry on: row[i][a] with a >= i
//   row[2]              d     l     l     l
//
// The elimination subtracts (l_a / d) l_b of all three rows from entry (a, b) of each later row, for b >= a. The columns of these rows are found in
// advance:
//
//   row 6:   6  7  9        the same columns, without a gap    run = first[6]: consecutive slots from this one on
//   row 7:   7  8  9        column 8 is not in the panel       run = -1 - t: target[t], target[t + 1] are the slots of columns 7 and 9
//   row 9:   9                                                 run = first[9]
#pragma once

#include <type_traits>

#include "saddle_matrix.hpp"

namespace sarrus {

/// Rows of the N unknowns that begin with the one eliminated at `begin`.
template <int N, class T> struct Panel {
  int begin, size;  // size: number of columns
  T* row[N];

  SARRUS_INLINE Panel(const Elimination& e, T* L, int first) : begin(first), size(e.first[first + 1] - e.first[first]) {
    for (int i = 0; i < N; ++i) row[i] = L + e.first[begin + i] - i;
  }
};

/// Call f with the number of unknowns of a panel, as a constant.
template <class F> SARRUS_INLINE void with_count(int count, F&& f) {
  static_assert(panel_size == 4);
  switch (count) {
    case 1: return f(std::integral_constant<int, 1>());
    case 2: return f(std::integral_constant<int, 2>());
    case 3: return f(std::integral_constant<int, 3>());
    default: return f(std::integral_constant<int, 4>());
  }
}

/// Subtract the products of the first `Rows` rows of a panel from the row of its column a, whose entries begin at `entry`, or (if entry is null) have
/// the slots `target` in L. Then divide column a of the panel by the pivots.
template <int Rows, int N, class T>
SARRUS_INLINE void subtract_rows(const Panel<N, T>& p, const T* D_inverse, int a, T* entry, T* L, const int* target) {
  const T* from[Rows];
  T l[Rows];
  for (int i = 0; i < Rows; ++i) from[i] = p.row[i] + a, l[i] = *from[i] * D_inverse[i];
  if (entry) {
    subtract_scaled(entry, from, l, p.size - a);
  } else {
    for (int b = 0; b < p.size - a; ++b) {
      T sum = L[target[b]];
      for (int i = 0; i < Rows; ++i) sum -= l[i] * from[i][b];
      L[target[b]] = sum;
    }
  }
  for (int i = 0; i < Rows; ++i) p.row[i][a] = l[i];
}

/// Complete the rows of a panel from row i on. invert(k, d) regularises the pivot d of unknown k, and stores 1 / d.
template <int i, int N, class T, class Invert>
SARRUS_INLINE void complete_rows(const Panel<N, T>& p, const T* D_inverse, const Invert& invert) {
  if constexpr (i < N) {
    if constexpr (i > 0) subtract_rows<i>(p, D_inverse, i, p.row[i] + i, static_cast<T*>(nullptr), nullptr);
    invert(p.begin + i, p.row[i][i]);
    complete_rows<i + 1>(p, D_inverse, invert);
  }
}

/// Eliminate all unknowns: replace the entries of the matrix in L by those of the factor.
template <class T, class Invert>
SARRUS_INLINE void eliminate_panels(const Elimination& e, T* L, const T* D_inverse, const Invert& invert) {
  const int* run = e.run;
  for (const int* begin = e.panel; *begin < e.unknowns; ++begin)
    with_count(begin[1] - begin[0], [&](auto count) SARRUS_INLINED {
      const Panel<count, T> p(e, L, *begin);
      complete_rows<0>(p, D_inverse + *begin, invert);
      for (int a = count; a < p.size; ++a) {
        const int start = *run++;
        const bool in_a_run = start >= 0;
        subtract_rows<count>(p, D_inverse + *begin, a, in_a_run ? L + start : nullptr, L,
                             in_a_run ? nullptr : e.target + (-1 - start));
      }
    });
}

/// Replace x (velocities, then rows) by the solution. T is the factor's scalar, or a packet of right-hand sides for the factor of one state.
template <class F, class T> SARRUS_INLINE void solve_by_panels(const Elimination& e, const Factor<F>& f, T* x) {
  const int* begin = e.panel;
  for (; *begin < e.unknowns; ++begin)
    with_count(begin[1] - begin[0], [&](auto count) SARRUS_INLINED {
      const Panel<count, const F> p(e, f.L, *begin);
      const int* unknown = e.neighbour + e.first[*begin];
      T w[count];
      for (int i = 0; i < count; ++i) {
        w[i] = x[unknown[i]];
        for (int j = 0; j < i; ++j) w[i] -= p.row[j][i] * w[j];
        x[unknown[i]] = w[i];
      }
      for (int a = count; a < p.size; ++a) {
        T sum = x[unknown[a]];
        for (int i = 0; i < count; ++i) sum -= p.row[i][a] * w[i];
        x[unknown[a]] = sum;
      }
    });
  while (begin != e.panel) {
    --begin;
    with_count(begin[1] - begin[0], [&](auto count) SARRUS_INLINED {
      const Panel<count, const F> p(e, f.L, *begin);
      const int* unknown = e.neighbour + e.first[*begin];
      T w[count];
      for (int i = 0; i < count; ++i) w[i] = x[unknown[i]] * f.D_inverse[*begin + i];
      // the nearest unknowns were computed last; their terms are added last, so that the processor need not wait for them
      for (int a = p.size - 1; a >= count; --a) {
        const T later = x[unknown[a]];
        for (int i = 0; i < count; ++i) w[i] -= p.row[i][a] * later;
      }
      for (int i = count - 1; i >= 0; --i) {
        for (int j = i + 1; j < count; ++j) w[i] -= p.row[i][j] * w[j];
        x[unknown[i]] = w[i];
      }
    });
  }
}

}  // namespace sarrus
