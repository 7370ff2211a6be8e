// Access of algorithms to the parameters of a mechanism. Parameters are doubles, which all lanes of a packet share, except in a Packet<W, true>:
// there each lane is another mechanism of the same structure. A parameter with the address x in that structure then has W values, one per lane, which
// are contiguous at `shift` + W x (kernels/variant_copies.hpp). Values are read where they are stored, without a copy.
#pragma once

#include <cstdint>

#include "inertia.hpp"

namespace sarrus {

template <class T> constexpr bool has_own_numbers = false;
template <int W> constexpr bool has_own_numbers<Packet<W, true>> = true;

template <class T, bool = has_own_numbers<T>> struct NumbersOf {
  SARRUS_INLINE T operator()(const double& x) const { return T(x); }
  SARRUS_INLINE Vec3<T> operator()(const Vec3<double>& x) const { return cast<T>(x); }
  SARRUS_INLINE Mat3<T> operator()(const Mat3<double>& x) const { return cast<T>(x); }
  template <class X> SARRUS_INLINE auto operator()(const X& x) const { return cast<T>(x); }
};

template <class T> struct NumbersOf<T, true> {
  std::intptr_t shift = 0;

  SARRUS_INLINE const T& operator()(const double& x) const { return at<T>(&x); }
  SARRUS_INLINE const Vec3<T>& operator()(const Vec3<double>& x) const { return at<Vec3<T>>(&x); }
  SARRUS_INLINE const Mat3<T>& operator()(const Mat3<double>& x) const { return at<Mat3<T>>(&x); }
  template <template <class> class X> SARRUS_INLINE const X<T>& operator()(const X<double>& x) const { return at<X<T>>(&x); }

 private:
  template <class Y> SARRUS_INLINE const Y& at(const void* x) const {
    static_assert(sizeof(Y) % sizeof(T) == 0 && alignof(Y) <= alignof(T), "its lanes have gaps");
    return *reinterpret_cast<const Y*>(shift + T::width * reinterpret_cast<std::intptr_t>(x));
  }
};

}  // namespace sarrus
