// Messages of the error NoAnswer: the reasons why a function has no result at a state.
#pragma once

#include "scaled_loops.hpp"

namespace sarrus {

/// Inputs of a call for one state; null: the function has no such input, or it was omitted.
struct StateInputs {
  const double *q = nullptr, *v = nullptr, *a = nullptr, *weight = nullptr, *rates = nullptr, *time = nullptr,
               *pfaffian_values = nullptr;
};

/// Return the reason why a function has no result at a state, and what the user can do. `function`: its name in Python. `result`: the configuration
/// at which a projection onto the loops ended. `rows`: evaluates the rows that depend on q, unless the inputs contain them.
std::string explanation(const StateFunctions& functions, const std::string& function, int status, const StateInputs& inputs,
                        const double* result = nullptr, const RowsOfState& rows = {});

/// Raise the error for a motion that the motors cannot produce. With `exact`, NoAnswer names the constraint that the motion violates; otherwise
/// NotRealizable names joints that lack a motor. `force`: generalised force (nv) of the motion.
[[noreturn]] void raise_not_realizable(const StateFunctions& functions, const StateInputs& inputs, const double* force,
                                       bool exact, const RowsOfState& rows = {});

}  // namespace sarrus
