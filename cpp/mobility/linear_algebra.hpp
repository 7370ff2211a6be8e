// Linear algebra of one matrix of unknown rank.
#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace sarrus {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Return A B, or A^T B. Each product of other expressions takes a compiler more than a second; these functions are compiled once.
Matrix product(const Matrix& A, const Matrix& B);
Matrix transposed_product(const Matrix& A, const Matrix& B);

/// Return the min(m, n) singular values, largest first. The absolute error of each is the rounding error of the largest one.
Vector singular_values(Matrix A);
/// Return the number of singular values above the tolerance.
int rank(const Matrix& A, double tolerance);
int count_above(const Vector& singular_values, double tolerance);

/// Return an orthonormal basis (n, n - rank) of the null space of A (m, n), whose rank the caller supplies.
Matrix null_space(const Matrix& A, int rank);
Matrix null_space(const Matrix& A, double tolerance);
/// Return an orthonormal basis (n, n - rank) of the null space of A by elimination of rows, largest first. A row is treated as dependent if its
/// component orthogonal to the preceding rows is below `negligible` times the largest row.
Matrix null_space_by_pivots(const Matrix& A, double negligible, double largest = 0.0);

/// Return A^+ of a matrix with independent columns.
Matrix pseudo_inverse(const Matrix& A);
/// Return A^+ of a matrix whose rank the caller supplies.
Matrix pseudo_inverse(const Matrix& A, int rank);

/// Return the solution of A X = B. `pivots`, if not null, receives the smallest pivot of A as a fraction of the largest one.
Matrix solution(const Matrix& A, const Matrix& B, double* pivots = nullptr);

/// Return the solution of A x = b with the least norm. Singular values of at most `negligible` times the largest count as zero.
Vector least_solution(const Matrix& A, const Vector& b, double negligible);

/// Singular values and all n columns of V in A = U diag(values) V^T, by Hestenes' rotations, which are efficient for matrices of few columns.
struct RightFactor {
  Vector values;
  Matrix V;
};
RightFactor right_singular_vectors(Matrix A);

/// Return an orthogonal matrix (n, n) whose first columns span the columns of A (n, k).
Matrix orthogonal_from(const Matrix& A);

/// Random numbers that are the same on every machine (SplitMix64; normal ones by Box and Muller).
class RandomNumbers {
 public:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15;  // increment of the state for each uniform number

  explicit RandomNumbers(std::uint64_t seed = 0) : state_(seed) {}
  double uniform(double low = 0.0, double high = 1.0);
  Matrix normal(int rows, int columns);

 private:
  std::uint64_t state_;
};

}  // namespace sarrus
