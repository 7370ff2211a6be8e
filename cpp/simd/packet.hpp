// Packet<W>: W doubles with the interface of a double, so that an algorithm that is written for a scalar T can be used with T = double (one state)
// and T = Packet<W> (W states, one per lane). A comparison returns a Mask, which does not convert to bool: an `if` on values of lanes does not
// compile, and must be replaced by select(). Requires the vector extensions of GCC and Clang.
#pragma once

#include <cmath>
#include <cstdint>

#if defined(__GNUC__)
#if defined(__OPTIMIZE__) && !defined(SARRUS_ONE_STATE)
#define SARRUS_INLINE inline __attribute__((always_inline))
#define SARRUS_INLINED __attribute__((always_inline))  // for lambdas
#else  // without inlining, debuggers can step into functions, and recorded functions compile faster
#define SARRUS_INLINE inline
#define SARRUS_INLINED
#endif
#define SARRUS_NOINLINE __attribute__((noinline))
#else
#error "sarrus needs the vector extensions of GCC or Clang (on Windows: clang-cl)"
#endif

namespace sarrus {

// one specialisation per width, because GCC ignores a vector_size that depends on a template parameter
template <int W> struct Register;
template <> struct Register<2> {
  typedef double real __attribute__((vector_size(16)));
  typedef std::int64_t bits __attribute__((vector_size(16)));
};
template <> struct Register<4> {
  typedef double real __attribute__((vector_size(32)));
  typedef std::int64_t bits __attribute__((vector_size(32)));
};
template <> struct Register<8> {
  typedef double real __attribute__((vector_size(64)));
  typedef std::int64_t bits __attribute__((vector_size(64)));
};

template <int W> struct Mask {
  typename Register<W>::bits lanes;  // all bits are one in lanes in which the condition is true
};

/// `Own`: true if each lane is another mechanism with its own parameters (spatial/numbers.hpp); false if all lanes are states of one mechanism.
template <int W, bool Own = false> struct Packet {
  using Real = typename Register<W>::real;
  static constexpr int width = W;
  Real lanes;

  Packet() = default;
  SARRUS_INLINE Packet(double x) : lanes(Real{} + x) {}
  SARRUS_INLINE explicit Packet(Real x) : lanes(x) {}

  SARRUS_INLINE Packet& operator+=(Packet b) {
    lanes += b.lanes;
    return *this;
  }
  SARRUS_INLINE Packet& operator-=(Packet b) {
    lanes -= b.lanes;
    return *this;
  }
  SARRUS_INLINE Packet& operator*=(Packet b) {
    lanes *= b.lanes;
    return *this;
  }
  SARRUS_INLINE Packet& operator/=(Packet b) {
    lanes /= b.lanes;
    return *this;
  }
  SARRUS_INLINE Packet operator-() const { return Packet(-lanes); }

  friend SARRUS_INLINE Packet operator+(Packet a, Packet b) { return Packet(a.lanes + b.lanes); }
  friend SARRUS_INLINE Packet operator-(Packet a, Packet b) { return Packet(a.lanes - b.lanes); }
  friend SARRUS_INLINE Packet operator*(Packet a, Packet b) { return Packet(a.lanes * b.lanes); }
  friend SARRUS_INLINE Packet operator/(Packet a, Packet b) { return Packet(a.lanes / b.lanes); }
  friend SARRUS_INLINE Mask<W> operator<(Packet a, Packet b) { return {a.lanes < b.lanes}; }
  friend SARRUS_INLINE Mask<W> operator>(Packet a, Packet b) { return {a.lanes > b.lanes}; }

  // call a scalar function lane by lane, if there is no vector instruction; not used in time-critical code
  template <class F> static Packet each(F f) {
    Packet r;
    for (int i = 0; i < W; ++i) r.lanes[i] = f(i);
    return r;
  }
};

template <int W, bool Own> SARRUS_INLINE Packet<W, Own> select(Mask<W> m, Packet<W, Own> a, Packet<W, Own> b) {
  return Packet<W, Own>(m.lanes ? a.lanes : b.lanes);
}
template <int W> SARRUS_INLINE bool any(Mask<W> m) {
  bool r = false;
  for (int i = 0; i < W; ++i) r |= m.lanes[i] != 0;
  return r;
}
template <int W> SARRUS_INLINE Mask<W> both(Mask<W> a, Mask<W> b) { return {a.lanes & b.lanes}; }
template <int W, bool Own> SARRUS_INLINE Packet<W, Own> sqrt(Packet<W, Own> x) {
  for (int i = 0; i < W; ++i) x.lanes[i] = __builtin_sqrt(x.lanes[i]);
  return x;
}
template <int W, bool Own> Packet<W, Own> atan2(Packet<W, Own> y, Packet<W, Own> x) {
  return Packet<W, Own>::each([&](int i) { return std::atan2(y.lanes[i], x.lanes[i]); });
}

template <int W, bool Own> Packet<W, Own> nearest(Packet<W, Own> x) {
  return Packet<W, Own>::each([&](int i) { return std::nearbyint(x.lanes[i]); });
}

SARRUS_INLINE double select(bool m, double a, double b) { return m ? a : b; }
template <int W, bool Own> SARRUS_INLINE Packet<W, Own> select(bool m, Packet<W, Own> a, Packet<W, Own> b) { return m ? a : b; }
SARRUS_INLINE bool any(bool m) { return m; }
SARRUS_INLINE bool both(bool a, bool b) { return a && b; }
using std::atan2;
SARRUS_INLINE double nearest(double x) { return std::nearbyint(x); }
SARRUS_INLINE double sqrt(double x) { return __builtin_sqrt(x); }

/// Number of lanes of a T, and access to one of them.
template <class T> constexpr int width_of = 1;
template <int W, bool Own> constexpr int width_of<Packet<W, Own>> = W;
SARRUS_INLINE double& lane(double& x, int) { return x; }
SARRUS_INLINE double lane(const double& x, int) { return x; }
template <int W, bool Own> SARRUS_INLINE double& lane(Packet<W, Own>& x, int l) { return reinterpret_cast<double*>(&x)[l]; }
template <int W, bool Own> SARRUS_INLINE double lane(const Packet<W, Own>& x, int l) { return x.lanes[l]; }

// a typedef, because in `using` Clang drops the alignment of the elements
#if defined(__AVX__)
typedef double WideDoubles __attribute__((vector_size(32), aligned(8), may_alias));
#else
typedef double WideDoubles __attribute__((vector_size(16), aligned(8), may_alias));
#endif

// the same for the last entries of arrays, if they do not fill a register
typedef double TwoDoubles __attribute__((vector_size(16), aligned(8), may_alias));

/// Subtract scale[0] * from[0] + scale[1] * from[1] + ... from `to` (arrays of `count` entries); for doubles the loop is vectorised.
template <class T, int N>
SARRUS_INLINE void subtract_scaled(T* to, const T* const (&from)[N], const T (&scale)[N], int count) {
  for (int i = 0; i < count; ++i) {
    T sum = to[i];
    for (int k = 0; k < N; ++k) sum -= scale[k] * from[k][i];
    to[i] = sum;
  }
}
template <int N>
SARRUS_INLINE void subtract_scaled(double* to, const double* const (&from)[N], const double (&scale)[N], int count) {
  using Wide = WideDoubles;
  constexpr int width = sizeof(Wide) / sizeof(double);
  int i = 0;
  for (; i + width <= count; i += width) {
    Wide sum = *reinterpret_cast<Wide*>(to + i);
    for (int k = 0; k < N; ++k) sum -= *reinterpret_cast<const Wide*>(from[k] + i) * scale[k];
    *reinterpret_cast<Wide*>(to + i) = sum;
  }
  if (i + 2 <= count) {
    TwoDoubles sum = *reinterpret_cast<TwoDoubles*>(to + i);
    for (int k = 0; k < N; ++k) sum -= *reinterpret_cast<const TwoDoubles*>(from[k] + i) * scale[k];
    *reinterpret_cast<TwoDoubles*>(to + i) = sum;
    i += 2;
  }
  if (i < count) {
    double sum = to[i];
    for (int k = 0; k < N; ++k) sum -= scale[k] * from[k][i];
    to[i] = sum;
  }
}
/// Subtract scale * from from `to`.
template <class T> SARRUS_INLINE void subtract_scaled(T* to, const T* from, T scale, int count) {
  for (int i = 0; i < count; ++i) to[i] -= scale * from[i];
}
SARRUS_INLINE void subtract_scaled(double* to, const double* from, double scale, int count) {
  using Wide = WideDoubles;
  constexpr int width = sizeof(Wide) / sizeof(double);
  int i = 0;
  for (; i + width <= count; i += width) *reinterpret_cast<Wide*>(to + i) -= *reinterpret_cast<const Wide*>(from + i) * scale;
  for (; i < count; ++i) to[i] -= scale * from[i];
}

/// Return the scalar product; for doubles the loop is vectorised.
template <class T> SARRUS_INLINE T scalar_product(const T* a, const T* b, int count) {
  T even = T(0.0), odd = T(0.0);
  int i = 0;
  for (; i + 1 < count; i += 2) even += a[i] * b[i], odd += a[i + 1] * b[i + 1];
  if (i < count) even += a[i] * b[i];
  return even + odd;
}
SARRUS_INLINE double scalar_product(const double* a, const double* b, int count) {
  using Wide = WideDoubles;
  constexpr int width = sizeof(Wide) / sizeof(double);
  Wide even = {}, odd = {};
  int i = 0;
  for (; i + 2 * width <= count; i += 2 * width) {
    even += *reinterpret_cast<const Wide*>(a + i) * *reinterpret_cast<const Wide*>(b + i);
    odd += *reinterpret_cast<const Wide*>(a + i + width) * *reinterpret_cast<const Wide*>(b + i + width);
  }
  even += odd;
  double sum = 0.0;
  for (int k = 0; k < width; ++k) sum += even[k];
  for (; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

template <class T> SARRUS_INLINE T square(const T& x) { return x * x; }
template <class T> SARRUS_INLINE T inverse_or_zero(const T& x) {
  return select(x > T(0.0), T(1.0) / select(x > T(0.0), x, T(1.0)), T(0.0));
}

template <class T> SARRUS_INLINE T abs(T x) { return select(x < T(0.0), -x, x); }
template <class T> SARRUS_INLINE T least(const T& a, const T& b) { return select(a < b, a, b); }
template <class T> SARRUS_INLINE T most(const T& a, const T& b) { return select(a > b, a, b); }

/// Return x, a difference of terms of magnitude `scale`, or zero if it is at rounding level.
template <class T> SARRUS_INLINE T unless_rounding(T x, T scale) { return select(x > scale * T(3e-15), x, T(0.0)); }

/// Return the sign of x, -1, 0 or 1, such as the direction of a velocity for Coulomb friction.
template <class T> SARRUS_INLINE T sign(T x) { return select(x > T(0.0), T(1.0), select(x < T(0.0), T(-1.0), T(0.0))); }

}  // namespace sarrus
