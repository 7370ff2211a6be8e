// Stiffness matrix of bodies that are connected to each other and to the ground by bushings of unit stiffness, and its Cholesky factor in 6 x 6
// blocks. The body with the fewest remaining neighbours is eliminated next. This minimum-degree order is computed for each state; sets of neighbours
// are stored as bits.
//
//   cost    about 400 multiplications per body, and 200 for each pair of bodies that become coupled when the body is eliminated
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../mechanism/arena.hpp"
#include "../simd/packet.hpp"
#include "../spatial/vector.hpp"

namespace sarrus {

template <class T> using Six = Eigen::Matrix<T, 6, 1>;

/// Number of stored entries for a row of six. For a single state a row is padded with zeros to eight entries, which fill whole registers.
template <class T> constexpr int padded = width_of<T> == 1 ? 8 : 6;

/// 6 x 6 block.
template <class T> class Block {
 public:
  T& operator()(int i, int j) { return entry_[i][j]; }
  const T& operator()(int i, int j) const { return entry_[i][j]; }
  void clear() {
    for (auto& row : entry_)
      for (T& x : row) x = T(0.0);
  }
  SARRUS_INLINE const T* row(int i) const { return entry_[i]; }
  SARRUS_INLINE T* row(int i) { return entry_[i]; }

 private:
  alignas(64) T entry_[6][padded<T>];
};
/// subtract_row: y -= factor x, where x and y are rows of six. subtract_rows: y -= X^T x, for the six entries x of a body.
template <class T> SARRUS_INLINE void subtract_row(T* y, T factor, const T* x) { subtract_scaled(y, x, factor, padded<T>); }
template <class T> SARRUS_INLINE void subtract_rows(T* y, const Block<T>& X, const T (&x)[6]) {
  const T* const rows[6] = {X.row(0), X.row(1), X.row(2), X.row(3), X.row(4), X.row(5)};
  subtract_scaled(y, rows, x, padded<T>);
}
/// Vector of six entries for a body, padded like a row.
template <class T> struct Padded {
  alignas(64) T value[padded<T>];
  Eigen::Map<Six<T>> six() { return Eigen::Map<Six<T>>(value); }
};

template <class T> class Bushings {
 public:
  Bushings(int bodies, Arena& arena) : n_(bodies), words_((bodies + 63) / 64), arena_(arena) {
    meets_ = arena.take<std::uint64_t>(n_ * words_), order_ = arena.take<int>(n_), place_ = arena.take<int>(n_);
    std::fill(meets_, meets_ + n_ * words_, 0);
  }

  void join(int a, int b) {
    if (a == b) return;
    row(a)[b / 64] |= bit(b), row(b)[a / 64] |= bit(a);
  }
  /// Compute the order of elimination and allocate a zero block for each fill-in. Call after all bodies are connected.
  SARRUS_NOINLINE void plan() {
    int *degree = arena_.take<int>(n_), blocks = 0;
    const auto count = [&](int a) {
      int sum = 0;
      for (int w = 0; w < words_; ++w) sum += __builtin_popcountll(row(a)[w]);
      return sum;
    };
    for (int a = 0; a < n_; ++a) degree[a] = count(a), order_[a] = a;
    for (int k = 0; k < n_; ++k) {
      std::swap(order_[k], *std::min_element(order_ + k, order_ + n_, [&](int a, int b) {
                  return degree[a] != degree[b] ? degree[a] < degree[b] : a < b;
                }));
      const int pivot = order_[k];
      place_[pivot] = k, blocks += 1 + degree[pivot];
      each_met(pivot, [&](int a) {
        for (int w = 0; w < words_; ++w) row(a)[w] |= row(pivot)[w];
        row(a)[a / 64] &= ~bit(a), row(a)[pivot / 64] &= ~bit(pivot);
        degree[a] = count(a);
      });
    }
    block_ = arena_.take<Block<T>>(blocks), first_ = arena_.take<int>(n_ + 1), later_ = arena_.take<int>(blocks);
    slot_ = arena_.take<int>(n_ * n_);
    // row k: its diagonal block, then the blocks of later bodies that are coupled to body k
    for (int k = 0, at = 0; k < n_; first_[++k] = at) {
      first_[k] = at, later_[at++] = k;
      each_met(order_[k], [&](int a) { later_[at++] = place_[a]; });
      std::sort(later_ + first_[k] + 1, later_ + at);
      for (int i = first_[k]; i < at; ++i) slot_[k * n_ + later_[i]] = i;
    }
    for (int i = 0; i < blocks; ++i) block_[i].clear();
  }

  /// Add `factor` S to the rows of body a and the columns of body b of K. Call once for each pair of bodies.
  void add(int a, int b, double factor, const Block<T>& S) {
    const int i = place_[a], j = place_[b];
    Block<T>& K = block_[i <= j ? slot_[i * n_ + j] : slot_[j * n_ + i]];
    for (int r = 0; r < 6; ++r)
      if (i <= j)
        subtract_row(K.row(r), T(-factor), S.row(r));
      else
        for (int c = 0; c < 6; ++c) K(r, c) += T(factor) * S(c, r);
  }

  /// Factorise K + epsilon (1 + diagonal of K) = U^T U. U replaces K; its diagonal stores the inverse of each pivot.
  SARRUS_NOINLINE void factorise(double epsilon) {
    for (int k = 0; k < n_; ++k) {
      Block<T>& D = block_[first_[k]];
      for (int i = 0; i < 6; ++i) D(i, i) += T(epsilon) * (T(1.0) + D(i, i));
    }
    for (int k = 0; k < n_; ++k) {
      Block<T>& U = block_[first_[k]];
      const int begin = first_[k] + 1, end = first_[k + 1];
      for (int i = 0; i < 6; ++i) {
        const T least = T(0.1 * epsilon), inverse = T(1.0) / sqrt(select(U(i, i) > least, U(i, i), least));
        subtract_row(U.row(i), T(T(1.0) - inverse), U.row(i));
        for (int j = i + 1; j < 6; ++j) subtract_row(U.row(j), T(U(i, j)), U.row(i));
        U(i, i) = inverse;
      }
      for (int a = begin; a < end; ++a) {
        Block<T>& W = block_[a];
        for (int i = 0; i < 6; ++i) {
          for (int m = 0; m < i; ++m) subtract_row(W.row(i), T(U(m, i)), W.row(m));
          subtract_row(W.row(i), T(T(1.0) - U(i, i)), W.row(i));
        }
      }
      for (int a = begin; a < end; ++a)
        for (int b = a; b < end; ++b) {
          Block<T>& K = block_[slot_[later_[a] * n_ + later_[b]]];
          const Block<T>& A = block_[a];
          for (int i = 0; i < 6; ++i) {
            const T column[6] = {A(0, i), A(1, i), A(2, i), A(3, i), A(4, i), A(5, i)};
            subtract_rows(K.row(i), block_[b], column);
          }
        }
    }
  }

  /// Replace x by K^-1 x.
  SARRUS_NOINLINE void solve(Padded<T>* x) const {
    for (int k = 0; k < n_; ++k) {
      const Block<T>& U = block_[first_[k]];
      T* z = x[order_[k]].value;
      for (int i = 0; i < 6; ++i) {
        for (int m = 0; m < i; ++m) z[i] -= U(m, i) * z[m];
        z[i] *= U(i, i);
      }
      for (int a = first_[k] + 1; a < first_[k + 1]; ++a)
        subtract_rows(x[order_[later_[a]]].value, block_[a], {z[0], z[1], z[2], z[3], z[4], z[5]});
    }
    for (int k = n_ - 1; k >= 0; --k) {
      const Block<T>& U = block_[first_[k]];
      T* z = x[order_[k]].value;
      for (int a = first_[k] + 1; a < first_[k + 1]; ++a) {
        const T* later = x[order_[later_[a]]].value;
        for (int i = 0; i < 6; ++i)
          for (int c = 0; c < 6; ++c) z[i] -= block_[a](i, c) * later[c];
      }
      for (int i = 5; i >= 0; --i) {
        for (int m = i + 1; m < 6; ++m) z[i] -= U(i, m) * z[m];
        z[i] *= U(i, i);
      }
    }
  }

 private:
  std::uint64_t* row(int a) const { return meets_ + a * words_; }
  static std::uint64_t bit(int a) { return std::uint64_t{1} << (a % 64); }
  template <class Visit> void each_met(int a, const Visit& visit) const {
    for (int w = 0; w < words_; ++w)
      for (std::uint64_t left = row(a)[w]; left; left &= left - 1) visit(64 * w + __builtin_ctzll(left));
  }

  int n_, words_;
  Arena& arena_;
  std::uint64_t* meets_;  // for each body, its remaining neighbours
  int *order_, *place_, *first_, *later_, *slot_;
  Block<T>* block_;
};

}  // namespace sarrus
