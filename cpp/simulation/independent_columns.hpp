// Changes of a state on the loops have only as many independent columns as the loops have degrees of freedom: S = B C. B consists of columns of S,
// which are chosen by Gram-Schmidt orthogonalisation with pivoting. Steps are linear in these changes, so only B is propagated through them.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace sarrus {

class IndependentColumns {
 public:
  std::vector<int> chosen;  // columns of B

  /// Choose at most `rank` columns of S (rows x columns, row-major), whose rows have these units. Sets is_complete() if the others depend on them.
  IndependentColumns(int rows, int columns, const double* S, const double* unit, int rank)
      : columns_(columns), C_(static_cast<std::size_t>(rank) * columns) {
    std::vector<double> column(static_cast<std::size_t>(rows) * columns), size(columns), left(columns);
    for (int c = 0; c < columns; ++c) {
      double* to = column.data() + c * rows;
      for (int r = 0; r < rows; ++r) to[r] = S[r * columns + c] / unit[r];
      size[c] = std::sqrt(product(rows, to, to));
      for (int r = 0; r < rows && size[c] > 0.0; ++r) to[r] /= size[c];
      left[c] = size[c] > 0.0 ? 1.0 : 0.0;
    }
    while (static_cast<int>(chosen.size()) < rank) {
      const int pivot = static_cast<int>(std::max_element(left.begin(), left.end()) - left.begin());
      if (!(left[pivot] > rounding)) break;
      double *q = column.data() + pivot * rows, *R = C_.data() + chosen.size() * columns;
      const double length = std::sqrt(product(rows, q, q));
      for (int r = 0; r < rows; ++r) q[r] /= length;
      chosen.push_back(pivot);
      for (int c = 0; c < columns; ++c) {
        if (left[c] <= 0.0) continue;
        double* x = column.data() + c * rows;
        R[c] = c == pivot ? length : product(rows, q, x);
        for (int r = 0; r < rows && c != pivot; ++r) x[r] -= R[c] * q[r];
        left[c] = c == pivot ? 0.0 : product(rows, x, x);
      }
    }
    is_complete_ = *std::max_element(left.begin(), left.end()) <= rounding;
    // C = R1^-1 R, where R1 are the chosen columns of R; then in the units of S
    for (int i = static_cast<int>(chosen.size()) - 1; i >= 0; --i) {
      double* row = C_.data() + i * columns;
      for (int j = i + 1; j < static_cast<int>(chosen.size()); ++j) {
        const double factor = row[chosen[j]];
        const double* other = C_.data() + j * columns;
        for (int c = 0; c < columns; ++c) row[c] -= factor * other[c];
      }
      const double pivot = row[chosen[i]];
      for (int c = 0; c < columns; ++c) row[c] /= pivot;
    }
    for (int i = 0; i < static_cast<int>(chosen.size()); ++i)
      for (int c = 0; c < columns; ++c) C_[i * columns + c] *= size[c] / size[chosen[i]];
  }
  bool is_complete() const { return is_complete_; }

  /// Compute the row B C of S from a row of B.
  void expand(const double* B, double* S) const {
    std::fill(S, S + columns_, 0.0);
    for (std::size_t i = 0; i < chosen.size(); ++i)
      for (int c = 0; c < columns_; ++c) S[c] += B[i] * C_[i * columns_ + c];
  }

 private:
  static constexpr double rounding = 1e-22;  // of squared norms, relative to those of the columns
  static double product(int n, const double* a, const double* b) { return std::inner_product(a, a + n, b, 0.0); }

  int columns_;
  std::vector<double> C_;
  bool is_complete_ = false;
};

}  // namespace sarrus
