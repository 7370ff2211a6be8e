#include "linear_algebra.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

namespace sarrus {
namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();

/// Compute the absolute values of the eigenvalues of a symmetric tridiagonal matrix with zero diagonal, by implicit QL steps (Wilkinson).
void eigenvalue_sizes(std::vector<double>& d, std::vector<double>& e, double size) {
  const int n = static_cast<int>(d.size());
  for (int l = 0; l < n; ++l)
    for (int step = 0; step < 60; ++step) {
      int m = l;
      while (m + 1 < n && std::abs(e[m]) > eps * size) ++m;
      if (m == l) break;
      double g = (d[l + 1] - d[l]) / (2.0 * e[l]), r = std::hypot(g, 1.0), s = 1.0, c = 1.0, p = 0.0;
      g = d[m] - d[l] + e[l] / (g + std::copysign(r, g));
      int i = m - 1;
      for (; i >= l; --i) {
        const double f = s * e[i], b = c * e[i];
        e[i + 1] = r = std::sqrt(f * f + g * g);
        if (r == 0.0) break;
        s = f / r, c = g / r, g = d[i + 1] - p;
        r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r, d[i + 1] = g + p, g = c * r - b;
      }
      d[i < l ? l : i + 1] -= p;
      if (i < l) e[l] = g;
      e[m] = 0.0;
    }
  for (double& x : d) x = std::abs(x);
}

}  // namespace

Vector singular_values(Matrix A) {
  if (A.rows() < A.cols()) A.transposeInPlace();
  const int m = static_cast<int>(A.rows()), n = static_cast<int>(A.cols());
  // reflections from both sides reduce A to a bidiagonal B. With rows and columns interleaved, [0 B; B^T 0] is tridiagonal, and its eigenvalues are
  // plus and minus the singular values of B
  std::vector<double> diagonal(2 * n, 0.0), beside(2 * n + 1, 0.0);
  Vector work(m + n);
  for (int k = 0; k < n; ++k) {
    double turn, length;
    A.col(k).tail(m - k).makeHouseholderInPlace(turn, length);
    beside[2 * k] = length;
    if (k + 1 == n) break;
    A.bottomRightCorner(m - k, n - k - 1).applyHouseholderOnTheLeft(A.col(k).tail(m - k - 1), turn, work.data());
    A.row(k).tail(n - k - 1).makeHouseholderInPlace(turn, length);
    beside[2 * k + 1] = length;
    A.bottomRightCorner(m - k - 1, n - k - 1).applyHouseholderOnTheRight(A.row(k).tail(n - k - 2).transpose(), turn, work.data());
  }
  double size = 0.0;
  for (const double x : beside) size = std::max(size, std::abs(x));
  eigenvalue_sizes(diagonal, beside, size);
  std::sort(diagonal.begin(), diagonal.end(), std::greater<double>());
  Vector values(n);
  for (int k = 0; k < n; ++k) values(k) = diagonal[2 * k];
  return values;
}

int count_above(const Vector& values, double tolerance) { return static_cast<int>((values.array() > tolerance).count()); }
int rank(const Matrix& A, double tolerance) { return A.size() ? count_above(singular_values(A), tolerance) : 0; }

Matrix null_space(const Matrix& A, int rank) {
  const Eigen::Index n = A.cols();
  Matrix N = Matrix::Identity(n, n).rightCols(n - rank);
  // use only the reflections of the independent rows: reflections of dependent rows consist of rounding errors, and would rotate the basis
  // arbitrarily
  if (rank > 0 && rank < n) N.applyOnTheLeft(Eigen::ColPivHouseholderQR<Matrix>(A.transpose()).householderQ().setLength(rank));
  return N;
}
Matrix null_space(const Matrix& A, double tolerance) { return null_space(A, rank(A, tolerance)); }

Matrix null_space_by_pivots(const Matrix& A, double negligible, double largest) {
  const Eigen::Index n = A.cols();
  if (A.rows() == 0 || n == 0) return Matrix::Identity(n, n);
  const Eigen::ColPivHouseholderQR<Matrix> rows(A.transpose());
  const Vector left = rows.matrixQR().diagonal().cwiseAbs();
  const int rank = count_above(left, negligible * std::max(largest, left.maxCoeff()));
  Matrix N = Matrix::Identity(n, n).rightCols(n - rank);
  N.applyOnTheLeft(rows.householderQ().setLength(rank));
  return N;
}

Matrix product(const Matrix& A, const Matrix& B) { return A * B; }
Matrix transposed_product(const Matrix& A, const Matrix& B) { return A.transpose() * B; }

Matrix solution(const Matrix& A, const Matrix& B, double* pivots) {
  const Eigen::ColPivHouseholderQR<Matrix> factor(A);
  if (pivots) {
    const Vector sizes = factor.matrixQR().diagonal().cwiseAbs();
    *pivots = sizes.minCoeff() / sizes.maxCoeff();
  }
  return factor.solve(B);
}

Matrix pseudo_inverse(const Matrix& A) { return solution(A, Matrix::Identity(A.rows(), A.rows())); }

namespace {

/// Return an orthonormal basis (n, rank) of the row space.
Matrix row_space(const Matrix& A, int rank) {
  Matrix Q = Matrix::Identity(A.cols(), A.cols()).leftCols(rank);  // apply the reflections of the independent rows only
  if (rank > 0) Q.applyOnTheLeft(Eigen::ColPivHouseholderQR<Matrix>(A.transpose()).householderQ().setLength(rank));
  return Q;
}

}  // namespace

Matrix pseudo_inverse(const Matrix& A, int rank) {
  if (rank == 0) return Matrix::Zero(A.cols(), A.rows());
  const Matrix Q = row_space(A, rank);
  return product(Q, pseudo_inverse(product(A, Q)));
}

Vector least_solution(const Matrix& A, const Vector& b, double negligible) {
  const Vector s = A.size() ? singular_values(A) : Vector();
  const int rank = s.size() ? count_above(s, negligible * s(0)) : 0;
  if (rank == 0) return Vector::Zero(A.cols());
  const Matrix Q = row_space(A, rank);
  return product(Q, solution(product(A, Q), b));
}

RightFactor right_singular_vectors(Matrix A) {
  const int n = static_cast<int>(A.cols());
  Matrix V = Matrix::Identity(n, n);
  bool turned = true;
  for (int sweep = 0; turned && sweep < 60; ++sweep) {
    turned = false;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        const double pp = A.col(p).squaredNorm(), qq = A.col(q).squaredNorm(), pq = A.col(p).dot(A.col(q));
        if (!(std::abs(pq) > eps * std::sqrt(pp * qq))) continue;
        turned = true;
        const double zeta = (qq - pp) / (2.0 * pq);
        const double t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta)), c = 1.0 / std::hypot(1.0, t);
        for (Matrix* X : {&A, &V}) {
          const Vector before = X->col(p);
          X->col(p) = c * before - (c * t) * X->col(q);
          X->col(q) = (c * t) * before + c * X->col(q);
        }
      }
  }
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  const Vector length = A.colwise().norm();
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return length(a) > length(b); });
  RightFactor sorted{Vector(n), Matrix(n, n)};
  for (int k = 0; k < n; ++k) sorted.values(k) = length(order[k]), sorted.V.col(k) = V.col(order[k]);
  return sorted;
}

Matrix orthogonal_from(const Matrix& A) {
  if (A.cols() == 0) return Matrix::Identity(A.rows(), A.rows());
  return Eigen::ColPivHouseholderQR<Matrix>(A).householderQ();
}

double RandomNumbers::uniform(double low, double high) {
  std::uint64_t z = state_ += step;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9, z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return low + (high - low) * ((static_cast<double>((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53);
}
Matrix RandomNumbers::normal(int rows, int columns) {
  Matrix x(rows, columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      const double radius = std::sqrt(-2.0 * std::log(uniform()));
      x(i, j) = radius * std::cos(2.0 * M_PI * uniform());
    }
  return x;
}

}  // namespace sarrus
