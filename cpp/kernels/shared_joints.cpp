// Instances of shared functions of any joint.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED_JOINTS(, double)
#ifndef SARRUS_ONE_STATE
SARRUS_SHARED_JOINTS(, Packet<loop_lanes>)
#ifdef SARRUS_TREE_LANES_DIFFER
SARRUS_SHARED_JOINTS(, Packet<tree_lanes>)
#endif
#endif
}  // namespace sarrus
