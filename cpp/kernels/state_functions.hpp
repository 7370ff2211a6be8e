// Functions of a state, with rows of values as inputs and outputs, for algorithms that are compiled once, in double, for all instruction set levels.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include "../mechanism/mechanism.hpp"
#include "kernels.hpp"
#include "operation_sizes.hpp"

namespace sarrus {

/// Function that evaluates the rows that depend on q, at one configuration (Loops::pfaffian_values values). Empty: there are no such rows.
using RowsOfState = std::function<void(const double* q, double* values)>;

class StateFunctions {
 public:
  StateFunctions(const Mechanism& mechanism, const KernelTable& kernels) : mechanism_(mechanism), kernels_(kernels) {}

  const Mechanism& mechanism() const { return mechanism_; }
  const Tree& tree() const { return mechanism_.tree(); }
  const KernelTable& kernels() const { return kernels_; }

  /// Evaluate an operation. Inputs are in the order of operation_list.hpp; null: omitted. `waypoints`: number of waypoints, for branches. Returns the
  /// status.
  double evaluate(Operation operation, std::initializer_list<const double*> inputs, double* out, const Frame& frame = {},
                  int waypoints = 1) const {
    const double* in[max_inputs] = {};
    std::copy(inputs.begin(), inputs.end(), in);
    return kernels_.single[static_cast<int>(operation)](tree(), {frame, 0, nullptr, false, false, waypoints}, in, nullptr, out);
  }

  /// Evaluate an operation for many configurations (rows of nq); the other inputs are the same for all. out: (count x size).
  struct Repeated {
    const double* data;
    int size;
    bool same;
  };
  void evaluate_many(Operation operation, std::initializer_list<Repeated> inputs, int count, int size, double* out) const {
    Rows rows{};
    int k = 0;
    for (const Repeated& input : inputs) {
      rows.in[k] = input.data, rows.in_size[k] = input.size, rows.in_step[k] = input.same ? 0 : input.size;
      ++k;
    }
    std::vector<signed char> status(static_cast<std::size_t>(count));
    rows.out = out, rows.out_size = size, rows.status = status.data();
    const bool exceeds_cache = leaves_the_cache(tree(), kernels_.lanes);
    (exceeds_cache ? kernels_.each : kernels_.many)[static_cast<int>(operation)](tree(), {{}, 0, nullptr, false}, rows, 0, count);
  }

 private:
  const Mechanism& mechanism_;
  const KernelTable& kernels_;
};

}  // namespace sarrus
