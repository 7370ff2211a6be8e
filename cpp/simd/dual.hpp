// Dual<T, R>: a number and its derivatives. An algorithm for a scalar T, evaluated at q + epsilon q-dot (epsilon^2 = 0), returns its result and the
// exact rate along the motion. select() and comparisons use only the number. R is T, or a packet that contains the rates of one number along several
// directions.
#pragma once

#include "trig.hpp"

namespace sarrus {

template <class T, class R = T> struct Dual {
  T value;
  R rate;

  Dual() = default;
  SARRUS_INLINE Dual(double x) : value(x), rate(0.0) {}
  SARRUS_INLINE Dual(const T& x, const R& x_dot) : value(x), rate(x_dot) {}

  SARRUS_INLINE Dual& operator+=(const Dual& b) { return *this = *this + b; }
  SARRUS_INLINE Dual& operator-=(const Dual& b) { return *this = *this - b; }
  SARRUS_INLINE Dual& operator*=(const Dual& b) { return *this = *this * b; }
  SARRUS_INLINE Dual& operator/=(const Dual& b) { return *this = *this / b; }
  SARRUS_INLINE Dual operator-() const { return {-value, -rate}; }

  friend SARRUS_INLINE Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.rate + b.rate}; }
  friend SARRUS_INLINE Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.rate - b.rate}; }
  friend SARRUS_INLINE Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.rate * R(b.value) + R(a.value) * b.rate};
  }
  friend SARRUS_INLINE Dual operator/(const Dual& a, const Dual& b) {
    const T x = a.value / b.value;
    return {x, (a.rate - R(x) * b.rate) / R(b.value)};
  }
  friend SARRUS_INLINE auto operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  friend SARRUS_INLINE auto operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
};

/// True if numbers of type T contain rates.
template <class T> constexpr bool carries_rates = false;
template <class T, class R> constexpr bool carries_rates<Dual<T, R>> = true;

template <class M, class T, class R> SARRUS_INLINE Dual<T, R> select(const M& m, const Dual<T, R>& a, const Dual<T, R>& b) {
  return {select(m, a.value, b.value), select(m, a.rate, b.rate)};
}
template <class T, class R> SARRUS_INLINE Dual<T, R> sqrt(const Dual<T, R>& x) {
  const T root = sqrt(x.value);
  return {root, x.rate / R(root * T(2.0))};
}
template <class T, class R> Dual<T, R> atan2(const Dual<T, R>& y, const Dual<T, R>& x) {
  const T size = x.value * x.value + y.value * y.value;
  return {atan2(y.value, x.value), (R(x.value) * y.rate - R(y.value) * x.rate) / R(size)};
}
template <class T, class R> Dual<T, R> nearest(const Dual<T, R>& x) { return {nearest(x.value), R(0.0)}; }
template <class T, class R> void sincos(const Dual<T, R>& x, Dual<T, R>& s, Dual<T, R>& c) {
  T sine, cosine;
  sincos(1, &x.value, &sine, &cosine);
  s = {sine, R(cosine) * x.rate}, c = {cosine, -R(sine) * x.rate};
}

}  // namespace sarrus
