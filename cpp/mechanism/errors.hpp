// Errors of descriptions and of states.
#pragma once

#include <stdexcept>

namespace sarrus {

/// The description is invalid; the message names the element.
struct ModelError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// No part has this name.
struct NameNotFoundError : ModelError {
  using ModelError::ModelError;
};

/// The state contradicts the constraints, or a degree of freedom has no inertia.
struct NoAnswer : std::domain_error {
  using std::domain_error::domain_error;
};

}  // namespace sarrus
