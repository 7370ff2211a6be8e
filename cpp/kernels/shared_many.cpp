// Functions that several files of kernels share, for as many states as a packet holds.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED(, Packet<loop_lanes>)
}
