// What several files of kernels share, on numbers that carry their rates.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED_RATES(, double)
#ifndef SARRUS_FALLBACK
SARRUS_SHARED_RATES(, Packet<loop_lanes>)
#endif
}  // namespace sarrus
