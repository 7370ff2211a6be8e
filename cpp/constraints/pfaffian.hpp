// User-defined rows over the velocities of some joints, constant or functions of q:
//   A(q) v = c              (k rows), restricts no positions
//   gamma  = -A-dot v       (constant rows: 0)
// The number of removed velocity dof is the rank of A. If rows depend on q, every call supplies their values: A (row-major), then c, then gamma.
#pragma once

#include <algorithm>
#include <vector>

#include "row.hpp"

namespace sarrus {

struct Pfaffian : BetweenCoordinates {
  static constexpr const char* name = "Pfaffian";
  std::vector<double> matrix;  // rows x columns, row-major; empty if A is an input of each call
  std::vector<double> value;  // c

  int rows() const { return static_cast<int>(value.size()); }
  bool holonomic(int) const { return false; }
  int values_with_call(int columns) const { return matrix.empty() ? rows() * (columns + 2) : 0; }
  std::string fault(int columns) const {
    if (matrix.empty() || static_cast<int>(matrix.size()) == columns * rows()) return {};
    return "has rows of " + std::to_string(matrix.size() / std::max(value.size(), std::size_t{1})) +
           " entries; its joints have " + std::to_string(columns) + " velocities";
  }
  template <class F> void fields(F field) { field("matrix", matrix), field("value", value); }

  template <class T, class Entry> SARRUS_INLINE CoordinateRow<T> evaluate(const CoordinateState<T>& s, int r, Entry entry) const {
    const T* values = matrix.empty() ? s.values : nullptr;
    for (int i = 0; i < s.columns; ++i) {
      const T x = values ? values[r * s.columns + i] : T(matrix[r * s.columns + i]);
      entry(i, x, x);
    }
    if (!values) return {T(0.0), T(value[r]), T(0.0)};
    return {T(0.0), values[rows() * s.columns + r], values[rows() * (s.columns + 1) + r]};
  }
};

}  // namespace sarrus
