// Functions of many states, evaluated in parallel: the states of a batch, or a single state.
//
// Values of states are rows of a matrix: one row for each state, or a single row that all states share.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

#include "../kernels/batch.hpp"
#include "../kernels/state_functions.hpp"
#include "../mobility/linear_algebra.hpp"

namespace sarrus {

/// The states of a call. `variant`: the variant of each state; empty: all states belong to one mechanism.
struct States {
  int count = 1;
  std::vector<std::int64_t> variant;
  std::int64_t threads = 1;
  // function that evaluates a batch, and may release locks meanwhile; empty: the batch is evaluated directly
  std::function<void(const Batch&, std::int64_t threads)> run = {};
  bool is_batch = false;  // false: one state, computed by the faster kernels of single states; results differ by rounding

  States of(const std::vector<int>& rows) const;
};

using Flags = Eigen::Array<bool, Eigen::Dynamic, 1>;
/// Times of prescribed motions [s], (n, 1) or (1, 1); without a value, all times are 0.
using Times = std::optional<RowMajor>;
inline Times times(const std::optional<double>& time) { return time ? Times(RowMajor::Constant(1, 1, *time)) : Times(); }
inline const RowMajor* pointer(const Times& time) { return time ? &*time : nullptr; }
/// Return the time of state i.
inline double time_of(const Times& time, int i) { return !time ? 0.0 : (*time)(time->rows() == 1 ? 0 : i, 0); }

/// Return the indices of the states with a true flag.
std::vector<int> where(const Flags& flags);
/// Return the rows of x with these indices.
RowMajor all_rows_of(const RowMajor& x, const std::vector<int>& rows);
/// Return the rows of x with these indices. If x has a single row, which all states share, return x.
RowMajor rows_of(const RowMajor& x, const std::vector<int>& rows);
std::vector<RowMajor> rows_of(const std::vector<RowMajor>& all, const std::vector<int>& rows);
/// Return x with `count` rows; a single row is repeated.
RowMajor repeated(const RowMajor& x, int count);
/// Set the rows of x with these indices to the rows of y.
void set_rows(RowMajor& x, const std::vector<int>& rows, const RowMajor& y);

/// Evaluate an operation for states of a mechanism. Returns one row for each state, which is NaN if the state has no result. Inputs are in the order
/// of operation_list.hpp, null if omitted. `waypoints`: number of waypoints, for operations on branches.
RowMajor evaluate(const Mechanism& mechanism, const KernelTable& kernels, Operation operation, const States& states,
                  std::initializer_list<const RowMajor*> inputs, int size, const Frame& frame = {}, int waypoints = 1);

}  // namespace sarrus
