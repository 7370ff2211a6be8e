// The stiffness matrix of bodies that bushings of unit stiffness hold on each other and on the ground, and its Cholesky factor by 6 x 6 blocks. The
// body that meets the fewest others goes first (minimum degree), found anew for each state: a word of bits for 64 bodies.
//
//   cost    about 400 multiplications a body, and 200 for each two that its going joins
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "../mechanism/arena.hpp"
#include "../spatial/vector.hpp"

namespace sarrus {

using Six = Eigen::Matrix<double, 6, 1>;
using Block = Eigen::Matrix<double, 6, 6>;

class Bushings {
 public:
  Bushings(int bodies, Arena& arena) : n_(bodies), words_((bodies + 63) / 64), arena_(arena) {
    meets_ = arena.take<std::uint64_t>(n_ * words_), order_ = arena.take<int>(n_), place_ = arena.take<int>(n_);
    std::fill(meets_, meets_ + n_ * words_, 0);
  }

  void join(int a, int b) {
    if (a == b) return;
    row(a)[b / 64] |= bit(b), row(b)[a / 64] |= bit(a);
  }
  /// Once all are joined: the order, and an empty block for each two that meet by then.
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
      const int gone = order_[k];
      place_[gone] = k, blocks += 1 + degree[gone];
      each_met(gone, [&](int a) {
        for (int w = 0; w < words_; ++w) row(a)[w] |= row(gone)[w];
        row(a)[a / 64] &= ~bit(a), row(a)[gone / 64] &= ~bit(gone);
        degree[a] = count(a);
      });
    }
    block_ = arena_.take<Block>(blocks), first_ = arena_.take<int>(n_ + 1), later_ = arena_.take<int>(blocks);
    slot_ = arena_.take<int>(n_ * n_);
    for (int k = 0, at = 0; k < n_; first_[++k] = at) {  // row k: its diagonal, then the later ones that it meets
      first_[k] = at, later_[at++] = k;
      each_met(order_[k], [&](int a) { later_[at++] = place_[a]; });
      std::sort(later_ + first_[k] + 1, later_ + at);
      for (int i = first_[k]; i < at; ++i) slot_[k * n_ + later_[i]] = i;
    }
    for (int i = 0; i < blocks; ++i) block_[i].setZero();
  }

  /// K += the block on the rows of a and the columns of b; once of each two.
  template <class Matrix> void add(int a, int b, const Matrix& X) {
    const int i = place_[a], j = place_[b];
    if (i <= j)
      block_[slot_[i * n_ + j]] += X;
    else
      block_[slot_[j * n_ + i]] += X.transpose();
  }

  /// K + epsilon (1 + its diagonal) = U^T U: U stands in its place.
  SARRUS_NOINLINE void factorise(double epsilon) {
    for (int k = 0; k < n_; ++k) {
      Block& D = block_[first_[k]];
      for (int i = 0; i < 6; ++i) D(i, i) += epsilon * (1.0 + D(i, i));
    }
    for (int k = 0; k < n_; ++k) {
      Block& U = block_[first_[k]];
      for (int i = 0; i < 6; ++i) {
        for (int j = i; j < 6; ++j) {
          double sum = U(i, j);
          for (int m = 0; m < i; ++m) sum -= U(m, i) * U(m, j);
          U(i, j) = j == i ? std::sqrt(std::max(sum, 0.1 * epsilon)) : sum / U(i, i);
        }
      }
      for (int a = first_[k] + 1; a < first_[k + 1]; ++a) {
        Block& W = block_[a];
        for (int i = 0; i < 6; ++i) {
          for (int m = 0; m < i; ++m) W.row(i) -= U(m, i) * W.row(m);
          W.row(i) *= 1.0 / U(i, i);
        }
      }
      for (int a = first_[k] + 1; a < first_[k + 1]; ++a)
        for (int b = a; b < first_[k + 1]; ++b)
          block_[slot_[later_[a] * n_ + later_[b]]].noalias() -= block_[a].transpose() * block_[b];
    }
  }

  /// x of each body becomes K^-1 x.
  SARRUS_NOINLINE void solve(Six* x) const {
    for (int k = 0; k < n_; ++k) {
      const Block& U = block_[first_[k]];
      Six& z = x[order_[k]];
      for (int i = 0; i < 6; ++i) {
        for (int m = 0; m < i; ++m) z(i) -= U(m, i) * z(m);
        z(i) /= U(i, i);
      }
      for (int a = first_[k] + 1; a < first_[k + 1]; ++a) x[order_[later_[a]]].noalias() -= block_[a].transpose() * z;
    }
    for (int k = n_ - 1; k >= 0; --k) {
      const Block& U = block_[first_[k]];
      Six& z = x[order_[k]];
      for (int a = first_[k] + 1; a < first_[k + 1]; ++a) z.noalias() -= block_[a] * x[order_[later_[a]]];
      for (int i = 5; i >= 0; --i) {
        for (int m = i + 1; m < 6; ++m) z(i) -= U(i, m) * z(m);
        z(i) /= U(i, i);
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
  std::uint64_t* meets_;  // of each body, those that it meets and that are left
  int *order_, *place_, *first_, *later_, *slot_;
  Block* block_;
};

}  // namespace sarrus
