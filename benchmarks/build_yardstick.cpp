// A fixed source file whose compile time is the unit of cost in tools/build_cost.py. It includes standard headers only, so that changes of the
// library do not affect it. Like the kernels, it consists of templates over small arrays, and most of its compile time is spent in the optimiser.
#include <array>
#include <cmath>
#include <utility>

namespace yardstick {

template <class T, int N> struct Matrix {
  std::array<T, N * N> x;
  T& operator()(int i, int j) { return x[i * N + j]; }
  const T& operator()(int i, int j) const { return x[i * N + j]; }
};

template <class T, int N> Matrix<T, N> operator*(const Matrix<T, N>& a, const Matrix<T, N>& b) {
  Matrix<T, N> c{};
  for (int i = 0; i < N; ++i)
    for (int k = 0; k < N; ++k)
      for (int j = 0; j < N; ++j) c(i, j) += a(i, k) * b(k, j);
  return c;
}

template <class T, int N> Matrix<T, N> cholesky(Matrix<T, N> a) {
  for (int j = 0; j < N; ++j) {
    for (int k = 0; k < j; ++k)
      for (int i = j; i < N; ++i) a(i, j) -= a(i, k) * a(j, k);
    const T inverse = T(1) / std::sqrt(a(j, j));
    for (int i = j; i < N; ++i) a(i, j) *= inverse;
  }
  return a;
}

template <class T, int N> Matrix<T, N> solve(const Matrix<T, N>& L, Matrix<T, N> b) {
  for (int j = 0; j < N; ++j)
    for (int i = 0; i < N; ++i) {
      for (int k = 0; k < i; ++k) b(i, j) -= L(i, k) * b(k, j);
      b(i, j) /= L(i, i);
    }
  return b;
}

template <class T, int N> T work(const T* from) {
  Matrix<T, N> a{}, b{};
  for (int i = 0; i < N * N; ++i) a.x[i] = from[i], b.x[i] = std::sin(from[i]);
  const Matrix<T, N> L = cholesky(a * a), c = solve(L, b * a), d = solve(L, c * b);
  T sum = T(0);
  for (int i = 0; i < N * N; ++i) sum += d.x[i] * (c * d).x[i];
  return sum;
}

template <class T, int... N> T all(const T* from, std::integer_sequence<int, N...>) {
  return (T(0) + ... + work<T, N + 1>(from));
}

template float all<float>(const float*, std::make_integer_sequence<int, 8>);
template double all<double>(const double*, std::make_integer_sequence<int, 8>);

}  // namespace yardstick
