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

/// Compute f, f', f'', ... of a function of a coordinate; `bound`: bounds of |f| and |f'|, the sums of the magnitudes of their terms.
SARRUS_NOINLINE inline void derivatives(const Law& law, double x, int orders, double* out, double* bound) {
  const int pieces = static_cast<int>(law.start.size()), terms = static_cast<int>(law.coefficient.size()) / pieces;
  const double at = law.within(x);
  int piece = 0;
  while (piece + 1 < pieces && at >= law.start[piece + 1]) ++piece;
  const double* c = law.coefficient.data() + piece * terms;
  const double s = at - law.start[piece];
  std::fill_n(out, orders, 0.0), bound[0] = bound[1] = 0.0;
  for (int k = terms - 1; k >= 0; --k) {
    for (int n = orders - 1; n > 0; --n) out[n] = out[n] * s + n * out[n - 1];
    out[0] = out[0] * s + c[k];
    bound[0] = bound[0] * std::abs(s) + std::abs(c[k]);
    if (k > 0) bound[1] = bound[1] * std::abs(s) + k * std::abs(c[k]);
  }
  for (std::size_t h = 0; h < law.harmonic.size(); h += 3) {
    const double *a = law.harmonic.data() + h, phase = a[1] * x + a[2];
    double sine = a[0] * std::sin(phase), cosine = a[0] * std::cos(phase);
    bound[0] += std::abs(a[0]), bound[1] += std::abs(a[0] * a[1]);
    for (int n = 0; n < orders; ++n) {
      const double slope = a[1] * cosine;
      out[n] += sine, cosine = -a[1] * sine, sine = slope;
    }
  }
}
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
