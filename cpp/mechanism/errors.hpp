// Errors of descriptions.
#pragma once

#include <stdexcept>

namespace sarrus {

/// The description is wrong; the message names the part.
struct ModelError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

/// No part has this name.
struct NameNotFoundError : ModelError {
  using ModelError::ModelError;
};

}  // namespace sarrus
