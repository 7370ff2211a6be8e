// Instances of shared functions for one state.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED(, double)
}
