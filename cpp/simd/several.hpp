// Several<T, D>: D numbers as one scalar, such as the derivatives of a number along D directions for Dual<T, R>
// (dual.hpp), or D right-hand sides of an equation (loops/saddle.hpp). Comparisons are elementwise, for select().
#pragma once

#include "packet.hpp"

namespace sarrus {

template <class T, int D> struct Several {
  T of[D];

  Several() = default;
  SARRUS_INLINE explicit Several(double x) : Several(T(x)) {}
  SARRUS_INLINE Several(const T& x) {
#pragma GCC unroll 8
    for (int d = 0; d < D; ++d) of[d] = x;
  }
  SARRUS_INLINE Several& operator+=(const Several& b) { return *this = *this + b; }
  SARRUS_INLINE Several& operator-=(const Several& b) { return *this = *this - b; }
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
  friend SARRUS_INLINE auto operator<(const Several& a, const Several& b) {
    return Several<decltype(a.of[0] < b.of[0]), D>::each([&](int d) SARRUS_INLINED { return a.of[d] < b.of[d]; });
  }
  friend SARRUS_INLINE auto operator>(const Several& a, const Several& b) { return b < a; }
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
template <class M, class T, int D>
SARRUS_INLINE Several<T, D> select(const Several<M, D>& m, const Several<T, D>& a, const Several<T, D>& b) {
  return Several<T, D>::each([&](int d) SARRUS_INLINED { return select(m.of[d], a.of[d], b.of[d]); });
}
template <class M, int D> SARRUS_INLINE Several<M, D> both(const Several<M, D>& a, const Several<M, D>& b) {
  return Several<M, D>::each([&](int d) SARRUS_INLINED { return both(a.of[d], b.of[d]); });
}
template <class M, int D> SARRUS_INLINE bool any(const Several<M, D>& m) {
  bool r = false;
  for (int d = 0; d < D; ++d) r |= any(m.of[d]);
  return r;
}

/// Number of directions in an R, and access to one of them.
template <class R> constexpr int directions_of = 1;
template <class T, int D> constexpr int directions_of<Several<T, D>> = D;
template <class R> SARRUS_INLINE R& along(R& x, int) { return x; }
template <class T, int D> SARRUS_INLINE T& along(Several<T, D>& x, int d) { return x.of[d]; }
template <class R> SARRUS_INLINE const R& along(const R& x, int) { return x; }
template <class T, int D> SARRUS_INLINE const T& along(const Several<T, D>& x, int d) { return x.of[d]; }

}  // namespace sarrus
