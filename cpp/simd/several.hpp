// Several<T, D>: the rates of a number along D directions, side by side. What Dual<T, R> (dual.hpp) asks of rates, and no more: they are not
// compared.
#pragma once

#include "packet.hpp"

namespace sarrus {

template <class T, int D> struct Several {
  T of[D];

  Several() = default;
  SARRUS_INLINE explicit Several(double x) : Several(T(x)) {}
  SARRUS_INLINE explicit Several(const T& x) {
#pragma GCC unroll 8
    for (int d = 0; d < D; ++d) of[d] = x;
  }
  SARRUS_INLINE Several operator-() const {
    return each([&](int d) SARRUS_INLINED { return -of[d]; });
  }
  friend SARRUS_INLINE Several operator+(const Several& a, const Several& b) {
    return each([&](int d) SARRUS_INLINED { return a.of[d] + b.of[d]; });
  }
  friend SARRUS_INLINE Several operator-(const Several& a, const Several& b) {
    return each([&](int d) SARRUS_INLINED { return a.of[d] - b.of[d]; });
  }
  friend SARRUS_INLINE Several operator*(const Several& a, const Several& b) {
    return each([&](int d) SARRUS_INLINED { return a.of[d] * b.of[d]; });
  }
  friend SARRUS_INLINE Several operator/(const Several& a, const Several& b) {
    return each([&](int d) SARRUS_INLINED { return a.of[d] / b.of[d]; });
  }
  template <class F> static SARRUS_INLINE Several each(F&& f) {
    Several r;
#pragma GCC unroll 8
    for (int d = 0; d < D; ++d) r.of[d] = f(d);
    return r;
  }
};

template <class M, class T, int D>
SARRUS_INLINE Several<T, D> select(const M& m, const Several<T, D>& a, const Several<T, D>& b) {
  return Several<T, D>::each([&](int d) SARRUS_INLINED { return select(m, a.of[d], b.of[d]); });
}

/// How many directions an R holds of a number T, and one of them.
template <class R> constexpr int directions_of = 1;
template <class T, int D> constexpr int directions_of<Several<T, D>> = D;
template <class R> SARRUS_INLINE R& along(R& x, int) { return x; }
template <class T, int D> SARRUS_INLINE T& along(Several<T, D>& x, int d) { return x.of[d]; }
template <class R> SARRUS_INLINE const R& along(const R& x, int) { return x; }
template <class T, int D> SARRUS_INLINE const T& along(const Several<T, D>& x, int d) { return x.of[d]; }

}  // namespace sarrus
