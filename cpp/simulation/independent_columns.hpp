// Changes of a state on the loops have only as many independent directions as the loops have degrees of freedom: P = B C, where P is the projection of
// all changes onto the loops, and B consists of columns of P, chosen by Gram-Schmidt orthogonalisation with pivoting. Steps are linear in the changes,
// so only B is propagated through them.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace sarrus {

class IndependentColumns {
 public:
  std::vector<int> chosen;  // columns of B
  bool are_all = false;  // true if the other columns depend on them

  /// Choose at most `rank` columns of P (n x n, row-major). unit: units of the changes.
  IndependentColumns(int n, const double* P, const double* unit, int rank) : n_(n), C_(static_cast<std::size_t>(rank) * n) {
    std::vector<double> column(static_cast<std::size_t>(n) * n), left(n);
    for (int c = 0; c < n; ++c) {
      double* to = column.data() + c * n;
      for (int r = 0; r < n; ++r) to[r] = P[r * n + c] * unit[c] / unit[r];
      left[c] = product(to, to);
    }
    const double negligible = rounding * *std::max_element(left.begin(), left.end());
    while (static_cast<int>(chosen.size()) < rank) {
      const int pivot = static_cast<int>(std::max_element(left.begin(), left.end()) - left.begin());
      if (!(left[pivot] > negligible)) break;
      double *q = column.data() + pivot * n, *R = C_.data() + chosen.size() * n;
      const double length = std::sqrt(product(q, q));
      for (int r = 0; r < n; ++r) q[r] /= length;
      chosen.push_back(pivot);
      for (int c = 0; c < n; ++c) {
        if (left[c] < 0.0) continue;  // chosen before
        double* x = column.data() + c * n;
        R[c] = c == pivot ? length : product(q, x);
        for (int r = 0; r < n && c != pivot; ++r) x[r] -= R[c] * q[r];
        left[c] = c == pivot ? -1.0 : product(x, x);
      }
    }
    are_all = static_cast<int>(chosen.size()) == rank && *std::max_element(left.begin(), left.end()) <= negligible;
    // C = R1^-1 R, where R1 are the chosen columns of R; then in the units of P
    for (int i = static_cast<int>(chosen.size()) - 1; i >= 0; --i) {
      double* row = C_.data() + i * n;
      for (int j = i + 1; j < static_cast<int>(chosen.size()); ++j) add(-row[chosen[j]], C_.data() + j * n, row);
      const double pivot = row[chosen[i]];
      for (int c = 0; c < n; ++c) row[c] /= pivot;
    }
    for (int i = 0; i < static_cast<int>(chosen.size()); ++i)
      for (int c = 0; c < n; ++c) C_[i * n + c] *= unit[chosen[i]] / unit[c];
  }

  /// Compute a row of derivatives by all changes (n) from that by the chosen ones.
  void expand(const double* by_chosen, double* by_all) const {
    std::fill(by_all, by_all + n_, 0.0);
    for (std::size_t i = 0; i < chosen.size(); ++i) add(by_chosen[i], C_.data() + i * n_, by_all);
  }

 private:
  static constexpr double rounding = 1e-22;  // of squared norms, relative to that of the largest column
  double product(const double* a, const double* b) const { return std::inner_product(a, a + n_, b, 0.0); }
  void add(double factor, const double* x, double* to) const {
    for (int c = 0, n = n_; c < n; ++c) to[c] += factor * x[c];
  }

  int n_;
  std::vector<double> C_;
};

}  // namespace sarrus
