#include "states.hpp"

#include <limits>

namespace sarrus {

States States::of(const std::vector<int>& rows) const {
  States subset{static_cast<int>(rows.size()), {}, threads, run, is_batch};
  if (!variant.empty())
    for (const int i : rows) subset.variant.push_back(variant[i]);
  return subset;
}

std::vector<int> where(const Flags& flags) {
  std::vector<int> rows;
  for (Eigen::Index i = 0; i < flags.size(); ++i)
    if (flags(i)) rows.push_back(static_cast<int>(i));
  return rows;
}

RowMajor all_rows_of(const RowMajor& x, const std::vector<int>& rows) {
  RowMajor subset(rows.size(), x.cols());
  for (std::size_t k = 0; k < rows.size(); ++k) subset.row(k) = x.row(rows[k]);
  return subset;
}

RowMajor rows_of(const RowMajor& x, const std::vector<int>& rows) { return x.rows() == 1 ? x : all_rows_of(x, rows); }
std::vector<RowMajor> rows_of(const std::vector<RowMajor>& all, const std::vector<int>& rows) {
  std::vector<RowMajor> subset;
  for (const RowMajor& x : all) subset.push_back(rows_of(x, rows));
  return subset;
}

RowMajor repeated(const RowMajor& x, int count) { return x.rows() == 1 ? RowMajor(x.replicate(count, 1)) : x; }

void set_rows(RowMajor& x, const std::vector<int>& rows, const RowMajor& y) {
  for (std::size_t k = 0; k < rows.size(); ++k) x.row(rows[k]) = y.row(k);
}

RowMajor evaluate(const Mechanism& mechanism, const KernelTable& kernels, Operation operation, const States& states,
                  std::initializer_list<const RowMajor*> inputs, int size, const Frame& frame, int waypoints) {
  const int op = static_cast<int>(operation);
  const Parameters parameters{frame, 0, nullptr, false, false, waypoints};
  RowMajor out(states.count, size);
  Rows rows{};
  int k = 0;
  for (const RowMajor* input : inputs) {
    if (input)
      rows.in[k] = input->data(), rows.in_size[k] = static_cast<int>(input->cols()),
      rows.in_step[k] = input->rows() == 1 ? 0 : input->cols();
    ++k;
  }
  const bool ends = operation == Operation::branch;  // its result may contain NaN: the configurations after the end of a branch
  if (!states.is_batch) {
    const double status = kernels.single[op](mechanism.tree(), parameters, rows.in, nullptr, out.data());
    if (!ends && (status != 0.0 || !out.allFinite())) out.setConstant(std::numeric_limits<double>::quiet_NaN());
    return out;
  }
  std::vector<signed char> status(states.count);
  rows.out = out.data(), rows.out_size = size, rows.status = status.data();
  const bool exceeds_cache = leaves_the_cache(mechanism.tree(), kernels.lanes);
  const Batch batch{mechanism,
                    exceeds_cache ? kernels.each[op] : kernels.many[op],
                    kernels.each[op],
                    kernels.variants[op],
                    kernels.lanes,
                    parameters,
                    rows,
                    states.count,
                    {},
                    false,
                    false,
                    ends,
                    &states.variant};
  if (states.run)
    states.run(batch, states.threads);
  else
    batch.run(states.threads, [] { return false; });
  return out;
}

}  // namespace sarrus
