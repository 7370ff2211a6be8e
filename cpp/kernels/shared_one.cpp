// Functions that several files of kernels share, for one state.
#define SARRUS_COMPILES_SHARED
#include "shared.hpp"

namespace sarrus {
SARRUS_SHARED(, double)
}
