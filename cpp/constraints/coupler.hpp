// A relation between coordinates: a gear, a belt, a cam, a motion prescribed by a function of time. With polynomials P_k without
// constants, and products p_m of functions of coordinates (function.hpp),
//   phi   = sum P_k(q_k) + sum p_m(q) - offset - g(t)  (1) [rad or m]
//   J     = P_k'(q_k) + sum dp_m/dq_k                  J v = g-dot
//   gamma = g-dot-dot - sum P_k''(q_k) v_k^2 - sum v' (d2p_m/dq2) v
// removes 1 dof.
#pragma once

#include <cstdlib>
#include <optional>

#include "function.hpp"

namespace sarrus {

struct Coupler : BetweenCoordinates {
  static constexpr const char* name = "Coupler";
  std::vector<std::vector<double>> coefficients;  // coefficients of q, q^2, ...; one polynomial per coordinate
  double offset = 0.0;
  std::optional<Law> law;
  std::vector<Product> products;

  int rows() const { return 1; }
  bool driven() const { return law.has_value(); }
  template <class F> void fields(F field) {
    field("coefficients", coefficients), field("offset", offset), field("law", law), field("products", products);
  }

  template <class T, class Entry> SARRUS_INLINE CoordinateRow<T> evaluate(const CoordinateState<T>& s, int, Entry entry) const {
    T g[3] = {T(0.0), T(0.0), T(0.0)};
    if (law) sarrus::evaluate(*law, s.time, g);
    T value = -(T(offset) + g[0]), gamma = g[2];
    for (int i = 0; i < s.columns; ++i) {
      const double* c = coefficients[i].data();
      const T q = s.q[s.coordinate[i]];
      // Horner's scheme: value of the polynomial, its first two derivatives, and a bound of |p1|
      T p = T(0.0), p1 = T(0.0), p2 = T(0.0), steepest = T(0.0);
      for (int k = static_cast<int>(coefficients[i].size()); k >= 0; --k) {
        if (k > 0) steepest = steepest * abs(q) + T(k * std::abs(c[k - 1]));
        p2 = p2 * q + T(2.0) * p1;
        p1 = p1 * q + p;
        p = p * q + T(k > 0 ? c[k - 1] : 0.0);
      }
      value += p;
      if (s.v) gamma -= p2 * s.v[s.column[i]] * s.v[s.column[i]];
      for (const Product& product : products) product.add(s, i, value, gamma, p1, steepest);
      entry(i, p1, steepest);
    }
    return {value, g[1], gamma};
  }
};

}  // namespace sarrus
