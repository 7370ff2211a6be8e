// Three-vectors and 3x3 matrices: fixed-size Eigen types over the scalar T, and a symmetric matrix stored as six numbers.
#pragma once

#include <Eigen/Core>

#include "../simd/dual.hpp"

namespace Eigen {
template <class T> struct ScalarTraits : GenericNumTraits<T> {
  using Real = T;
  using NonInteger = T;
  using Nested = T;
  using Literal = double;
  enum { IsComplex = 0, IsInteger = 0, IsSigned = 1, RequireInitialization = 0, ReadCost = 1, AddCost = 1, MulCost = 1 };
};
template <int W, bool Own> struct NumTraits<sarrus::Packet<W, Own>> : ScalarTraits<sarrus::Packet<W, Own>> {};
template <class T, class R> struct NumTraits<sarrus::Dual<T, R>> : ScalarTraits<sarrus::Dual<T, R>> {};
}  // namespace Eigen

namespace sarrus {

template <class T> using Vec3 = Eigen::Matrix<T, 3, 1>;
template <class T> using Mat3 = Eigen::Matrix<T, 3, 3>;

template <class T> SARRUS_INLINE Vec3<T> vec3(T x, T y, T z) {
  Vec3<T> v;
  v(0) = x, v(1) = y, v(2) = z;
  return v;
}
/// Convert a constant vector or matrix to scalars of type T.
template <class T> SARRUS_INLINE Vec3<T> cast(const Vec3<double>& v) { return vec3<T>(T(v(0)), T(v(1)), T(v(2))); }
template <class T> SARRUS_INLINE Mat3<T> cast(const Mat3<double>& A) {
  Mat3<T> B;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) B(i, j) = T(A(i, j));
  return B;
}
template <class T> SARRUS_INLINE Vec3<T> zero3() { return vec3<T>(T(0.0), T(0.0), T(0.0)); }

template <class T> SARRUS_INLINE T dot(const Vec3<T>& a, const Vec3<T>& b) { return a(0) * b(0) + a(1) * b(1) + a(2) * b(2); }

/// Return a / |a|; a zero vector is returned unchanged.
template <class T> SARRUS_INLINE Vec3<T> unit(const Vec3<T>& a) {
  const T n2 = dot(a, a);
  return a * (T(1.0) / sqrt(select(n2 > T(0.0), n2, T(1.0))));
}
template <class T> SARRUS_INLINE Vec3<T> cross(const Vec3<T>& a, const Vec3<T>& b) {
  return vec3<T>(a(1) * b(2) - a(2) * b(1), a(2) * b(0) - a(0) * b(2), a(0) * b(1) - a(1) * b(0));
}

// Products R * x and R * S, used instead of Eigen's. They are written out, so that the compiler can use the zeros and ones of a joint's axis as
// constants. The transpose is a function, because an expression object would copy packets.
template <class T> SARRUS_INLINE Vec3<T> operator*(const Mat3<T>& A, const Vec3<T>& b) {
  return vec3<T>(A(0, 0) * b(0) + A(0, 1) * b(1) + A(0, 2) * b(2), A(1, 0) * b(0) + A(1, 1) * b(1) + A(1, 2) * b(2),
                 A(2, 0) * b(0) + A(2, 1) * b(1) + A(2, 2) * b(2));
}
template <class T> SARRUS_INLINE Vec3<T> transpose_times(const Mat3<T>& A, const Vec3<T>& b) {
  return vec3<T>(A(0, 0) * b(0) + A(1, 0) * b(1) + A(2, 0) * b(2), A(0, 1) * b(0) + A(1, 1) * b(1) + A(2, 1) * b(2),
                 A(0, 2) * b(0) + A(1, 2) * b(1) + A(2, 2) * b(2));
}
template <class T> SARRUS_INLINE Mat3<T> operator*(const Mat3<T>& A, const Mat3<T>& B) {
  Mat3<T> C;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) C(i, j) = A(i, 0) * B(0, j) + A(i, 1) * B(1, j) + A(i, 2) * B(2, j);
  return C;
}
/// Return the product with an Eigen expression, which is evaluated first.
template <class T, class E> SARRUS_INLINE auto operator*(const Mat3<T>& A, const Eigen::MatrixBase<E>& b) {
  return A * typename E::PlainObject(b);
}

/// Return the skew-symmetric tensor of a vector, skew(a) b = a x b (van der Merwe 2.8).
template <class T> SARRUS_INLINE Mat3<T> skew(const Vec3<T>& a) {
  Mat3<T> S;
  S(0, 0) = T(0.0), S(0, 1) = -a(2), S(0, 2) = a(1);
  S(1, 0) = a(2), S(1, 1) = T(0.0), S(1, 2) = -a(0);
  S(2, 0) = -a(1), S(2, 1) = a(0), S(2, 2) = T(0.0);
  return S;
}

/// Symmetric 3x3 matrix.
template <class T> struct Sym3 {
  T xx, xy, xz, yy, yz, zz;

  template <class U> SARRUS_INLINE Sym3<U> cast() const { return {U(xx), U(xy), U(xz), U(yy), U(yz), U(zz)}; }
  static SARRUS_INLINE Sym3 zero() { return {T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)}; }

  SARRUS_INLINE Sym3& operator+=(const Sym3& b) {
    xx += b.xx, xy += b.xy, xz += b.xz, yy += b.yy, yz += b.yz, zz += b.zz;
    return *this;
  }
  SARRUS_INLINE Vec3<T> operator*(const Vec3<T>& v) const {
    return vec3<T>(xx * v(0) + xy * v(1) + xz * v(2), xy * v(0) + yy * v(1) + yz * v(2), xz * v(0) + yz * v(1) + zz * v(2));
  }
  SARRUS_INLINE Mat3<T> matrix() const {
    Mat3<T> A;
    A(0, 0) = xx, A(0, 1) = A(1, 0) = xy, A(0, 2) = A(2, 0) = xz, A(1, 1) = yy, A(1, 2) = A(2, 1) = yz, A(2, 2) = zz;
    return A;
  }
};
template <class T> SARRUS_INLINE Sym3<T> cast(const Sym3<double>& S) { return S.cast<T>(); }
template <class T> SARRUS_INLINE Sym3<T> operator+(Sym3<T> a, const Sym3<T>& b) { return a += b; }

/// Return R S R^T.
template <class T> SARRUS_INLINE Sym3<T> rotate(const Mat3<T>& R, const Sym3<T>& S) {
  const Vec3<T> x = S * Vec3<T>(R.row(0)), y = S * Vec3<T>(R.row(1)), z = S * Vec3<T>(R.row(2));
  const auto row = [&](int i, const Vec3<T>& c) { return R(i, 0) * c(0) + R(i, 1) * c(1) + R(i, 2) * c(2); };
  return {row(0, x), row(1, x), row(2, x), row(1, y), row(2, y), row(2, z)};
}

/// Return a b^T + b a^T.
template <class T> SARRUS_INLINE Sym3<T> symmetric_product(const Vec3<T>& a, const Vec3<T>& b) {
  return {T(2.0) * a(0) * b(0), a(0) * b(1) + a(1) * b(0), a(0) * b(2) + a(2) * b(0),
          T(2.0) * a(1) * b(1), a(1) * b(2) + a(2) * b(1), T(2.0) * a(2) * b(2)};
}

}  // namespace sarrus
