// Explanations of states in which a function has no answer: the messages of NoAnswer.
#pragma once

#include "scaled_loops.hpp"

namespace sarrus {

/// Inputs of a call for one state; null: the function has no such input, or it was omitted.
struct StateInputs {
  const double *q = nullptr, *v = nullptr, *a = nullptr, *weight = nullptr, *rates = nullptr, *time = nullptr,
               *pfaffian_values = nullptr;
};

/// Return the reason why a function has no answer at a state, with a cure. `function` has its name in Python; `result` is the configuration where a
/// projection onto the loops ended. `rows` are the rows that depend on q, unless the inputs contain them.
std::string explanation(const StateFunctions& functions, const std::string& function, int status, const StateInputs& inputs,
                        const double* result = nullptr, const RowsOfState& rows = {});

}  // namespace sarrus
