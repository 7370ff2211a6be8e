// Compiled once per instruction set level, and shared by the kernel files that factorise small matrices.
#include "pivoted_qr.hpp"

namespace sarrus {

PivotedQr::PivotedQr(int m, int n, double* A, Arena& arena, double negligible, double size)
    : m_(m),
      n_(n),
      A_(A),
      V_(arena.take<double>(m * std::min(m, n))),
      pivot_(arena.take<int>(n)),
      diagonal_(arena.take<double>(n)),
      inverse_(arena.take<double>(n)),
      turn_(arena.take<double>(n)),
      arena_(arena) {
  // left: squared norm of the remaining part of each column, updated by subtraction; summed: the same when it was last computed as a sum. Subtraction
  // loses digits, so `left` is summed again if it has become much smaller than `summed`
  double largest = size, *left = arena.take<double>(n), *summed = arena.take<double>(n);
  for (int j = 0; j < n; ++j) pivot_[j] = j, left[j] = summed[j] = dot_product(m, column(j), column(j));
  for (; rank < std::min(m, n); ++rank) {
    const int best = static_cast<int>(std::max_element(left + rank, left + n) - left), from = first(rank);
    double *v = V_ + rank * m, *longest = column(best);
    for (int i = from; i < m; ++i) v[i] = i < rank ? 0.0 : longest[i];
    const double length = std::sqrt(dot_product(m - from, v + from, v + from));
    largest = std::max(largest, length);
    if (length <= negligible * largest || length == 0.0) break;
    if (best != rank) swap(longest, column(rank)), std::swap(pivot_[best], pivot_[rank]);
    left[best] = left[rank], summed[best] = summed[rank];
    diagonal_[rank] = v[rank] > 0.0 ? -length : length;
    const double head = v[rank] - diagonal_[rank], inverse_head = 1.0 / head;
    // the factor of the reflection, turn_, is computed in a form that is exactly 2 for a column along an axis
    inverse_[rank] = 1.0 / diagonal_[rank], turn_[rank] = -head / diagonal_[rank];
    for (int i = rank; i < m; ++i) v[i] *= inverse_head;
    v[rank] = 1.0;
    int next = rank + 1;
    for (; next + together <= n; next += together) reflect<together>(rank, column(next));
    for (; next < n; ++next) reflect<1>(rank, column(next));
    for (int j = rank + 1; j < n; ++j) {
      left[j] -= square(column(j)[rank]);
      if (!(left[j] > 1e-8 * summed[j]))
        left[j] = summed[j] = dot_product(m - rank - 1, column(j) + rank + 1, column(j) + rank + 1);
    }
  }
}

void PivotedQr::solve(double* b, double* y) const {
  times_transpose(b);
  if (rank == n_) {
    for (int i = rank - 1; i >= 0; --i) {
      const double x = y[pivot_[i]] = b[i] * inverse_[i];
      add_multiple(i, -x, column(i), b);
    }
    std::fill(b, b + rank, 0.0);
    if (rank < m_) times(b);  // otherwise the residual is zero
    return;
  }
  const Arena::Scope scope(arena_);
  const auto take = [&](int size) { return arena_.take<double>(size); };
  double *R_rows = take(rank * n_), *L = take(rank * rank), *z = take(rank), *along = take(n_);
  const auto row = [&](int i) { return R_rows + i * n_; };
  for (int i = 0; i < rank; ++i) {
    for (int k = i; k < n_; ++k) row(i)[k] = R(i, k);
    for (int j = 0; j <= i; ++j) {
      const double sum = dot_product(n_ - i, row(i) + i, row(j) + i) - dot_product(j, L + i * rank, L + j * rank);
      L[i * rank + j] = i == j ? std::sqrt(std::max(sum, 1e-300)) : sum / L[j * rank + j];
    }
  }
  for (int j = 0; j < n_; ++j) y[j] = 0.0;
  // R R^T squares the condition number; a second pass removes the resulting rounding error
  for (int twice = 0; twice < 2; ++twice) {
    for (int i = 0; i < rank; ++i) z[i] = (b[i] - dot_product(i, L + i * rank, z)) / L[i * rank + i];
    for (int i = rank - 1; i >= 0; --i) z[i] /= L[i * rank + i], add_multiple(i, -z[i], L + i * rank, z);
    std::fill(along, along + n_, 0.0);
    for (int i = 0; i < rank; ++i) add_multiple(n_ - i, z[i], row(i) + i, along + i);
    for (int i = 0; i < rank; ++i) b[i] -= dot_product(n_ - i, row(i) + i, along + i);
    for (int k = 0; k < n_; ++k) y[pivot_[k]] += along[k];
  }
  times(b);
}

void PivotedQr::swap(double* a, double* b) const {
  int i = 0;
  for (; i + width <= m_; i += width) {
    Wide &to = *reinterpret_cast<Wide*>(a + i), &from = *reinterpret_cast<Wide*>(b + i), kept = to;
    to = from, from = kept;
  }
  std::swap_ranges(a + i, a + m_, b + i);
}

}  // namespace sarrus
