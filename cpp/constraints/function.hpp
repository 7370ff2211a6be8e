// A product of functions of coordinates, p = f_1(q_1) f_2(q_2) ..., which is a term of a coupler. Its derivatives along a coordinate i and along the
// velocities v (') follow factor by factor, p <- p f:
//   p_i <- p_i f + p f_i        p' <- p' f + p f'        p_i' <- p_i' f + p_i f' + p' f_i + p f_i'
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "law.hpp"
#include "row.hpp"

namespace sarrus {

template <int N> void derivatives(const Law& law, double x, double (&out)[N], double (&bound)[2]) {
  derivatives(law, x, N, out, bound);
}
template <int N, int W, bool Own>
void derivatives(const Law& law, const Packet<W, Own>& x, Packet<W, Own> (&out)[N], Packet<W, Own> (&bound)[2]) {
  for (int l = 0; l < W; ++l) {
    double f[N], most[2];
    derivatives(law, x.lanes[l], N, f, most);
    for (int n = 0; n < N; ++n) out[n].lanes[l] = f[n];
    for (int n = 0; n < 2; ++n) bound[n].lanes[l] = most[n];
  }
}
template <int N, class T, class R>
void derivatives(const Law& law, const Dual<T, R>& x, Dual<T, R> (&out)[N], Dual<T, R> (&bound)[2]) {
  T f[N + 1], most[2];
  derivatives(law, x.value, f, most);
  for (int n = 0; n < N; ++n) out[n] = {f[n], R(f[n + 1]) * x.rate};
  for (int n = 0; n < 2; ++n) bound[n] = {most[n], R(0.0)};
}

struct Product {
  std::vector<int> column;  // index of the coordinate of each factor, in the constraint
  std::vector<Law> functions;  // of the coordinates

  /// Add the contribution to column i of a row, and to its value and gamma. The first factor's column contributes the value.
  template <class T> SARRUS_NOINLINE void add(const CoordinateState<T>& s, int i, T& value, T& gamma, T& slope,
                                              T& steepest) const {
    if (std::find(column.begin(), column.end(), i) == column.end()) return;
    T p = T(1.0), p_i = T(0.0), rate = T(0.0), rate_i = T(0.0), p_bound = T(1.0), slope_bound = T(0.0);
    for (std::size_t k = 0; k < column.size(); ++k) {
      T f[3], bound[2];
      derivatives(functions[k], s.q[s.coordinate[column[k]]], f, bound);
      const T v = s.v ? s.v[s.column[column[k]]] : T(0.0), f_rate = f[1] * v;
      rate_i = rate_i * f[0] + p_i * f_rate;
      slope_bound = slope_bound * bound[0];
      p_i = p_i * f[0];
      if (column[k] == i) rate_i += rate * f[1] + p * f[2] * v, slope_bound += p_bound * bound[1], p_i += p * f[1];
      rate = rate * f[0] + p * f_rate;
      p = p * f[0], p_bound = p_bound * bound[0];
    }
    if (column[0] == i) value += p;
    if (s.v) gamma -= rate_i * s.v[s.column[i]];
    slope += p_i, steepest += slope_bound;
  }
};

}  // namespace sarrus
