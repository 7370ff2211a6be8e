// Dual<T>: a number and its rate. An algorithm written for a scalar T and run on q + epsilon q-dot gives, beside its answer, the exact rate
// of that along the motion (epsilon^2 = 0), without a formula of its own. select() and comparisons go by the number.
#pragma once

#include "trig.hpp"

namespace sarrus {

template <class T> struct Dual {
  T value, rate;

  Dual() = default;
  SARRUS_INLINE Dual(double x) : value(x), rate(0.0) {}
  SARRUS_INLINE Dual(const T& x, const T& x_dot) : value(x), rate(x_dot) {}

  SARRUS_INLINE Dual& operator+=(const Dual& b) { return *this = *this + b; }
  SARRUS_INLINE Dual& operator-=(const Dual& b) { return *this = *this - b; }
  SARRUS_INLINE Dual& operator*=(const Dual& b) { return *this = *this * b; }
  SARRUS_INLINE Dual& operator/=(const Dual& b) { return *this = *this / b; }
  SARRUS_INLINE Dual operator-() const { return {-value, -rate}; }

  friend SARRUS_INLINE Dual operator+(const Dual& a, const Dual& b) { return {a.value + b.value, a.rate + b.rate}; }
  friend SARRUS_INLINE Dual operator-(const Dual& a, const Dual& b) { return {a.value - b.value, a.rate - b.rate}; }
  friend SARRUS_INLINE Dual operator*(const Dual& a, const Dual& b) {
    return {a.value * b.value, a.rate * b.value + a.value * b.rate};
  }
  friend SARRUS_INLINE Dual operator/(const Dual& a, const Dual& b) {
    const T x = a.value / b.value;
    return {x, (a.rate - x * b.rate) / b.value};
  }
  friend SARRUS_INLINE auto operator<(const Dual& a, const Dual& b) { return a.value < b.value; }
  friend SARRUS_INLINE auto operator>(const Dual& a, const Dual& b) { return a.value > b.value; }
};

template <class M, class T> SARRUS_INLINE Dual<T> select(const M& m, const Dual<T>& a, const Dual<T>& b) {
  return {select(m, a.value, b.value), select(m, a.rate, b.rate)};
}
template <class T> SARRUS_INLINE Dual<T> sqrt(const Dual<T>& x) {
  const T root = sqrt(x.value);
  return {root, x.rate / (root * T(2.0))};
}
template <class T> Dual<T> atan2(const Dual<T>& y, const Dual<T>& x) {
  return {atan2(y.value, x.value), (x.value * y.rate - y.value * x.rate) / (x.value * x.value + y.value * y.value)};
}
template <class T> Dual<T> nearest(const Dual<T>& x) { return {nearest(x.value), T(0.0)}; }
template <class T> void sincos(const Dual<T>& x, Dual<T>& s, Dual<T>& c) {
  T sine, cosine;
  sincos(1, &x.value, &sine, &cosine);
  s = {sine, cosine * x.rate}, c = {cosine, -sine * x.rate};
}

}  // namespace sarrus
