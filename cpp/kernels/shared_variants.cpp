// Functions that the kernels of variants share, for as many variants as a packet holds.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED(, OwnLanes)
SARRUS_SHARED_JOINTS(, OwnLanes)
}  // namespace sarrus
