// Instances of shared functions for several states, one per lane of a packet.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED(, Packet<loop_lanes>)
}
