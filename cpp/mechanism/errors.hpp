// Errors of descriptions and of states.
#pragma once

#include <stdexcept>

namespace sarrus {

/// Error: the description is invalid. The message contains the name of the element.
struct ModelError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// Error: no element has this name.
struct NameNotFoundError : ModelError {
  using ModelError::ModelError;
};

/// Error: there is no result at this state, because it contradicts the constraints, or because a degree of freedom has no inertia.
struct NoAnswer : std::domain_error {
  using std::domain_error::domain_error;
};

}  // namespace sarrus
