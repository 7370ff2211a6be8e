// Instances of shared functions for several variants in lanes.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED(, OwnLanes)
SARRUS_SHARED_JOINTS(, OwnLanes)
}  // namespace sarrus
