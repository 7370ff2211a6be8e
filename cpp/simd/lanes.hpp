// Number of lanes of packets of states, for the instruction set level for which a file is compiled.
#pragma once

#include <type_traits>

#include "packet.hpp"

namespace sarrus {

// for recursions over a tree: at most four lanes, even if registers have eight, because the data of a body with eight lanes would not fit into the
// registers
#if defined(__AVX__)
constexpr int tree_lanes = 4;
#else
constexpr int tree_lanes = 2;
#endif

// for sparse solves: these are chains of dependent sums, and more states in lanes hide the latency (measured on Zen 4: eight lanes have 3.2 to 3.8
// times the throughput of one state, four lanes 2.5 to 3.2 times)
#if defined(__AVX512F__)
#define SARRUS_TREE_LANES_DIFFER
constexpr int loop_lanes = 8;
#else
constexpr int loop_lanes = tree_lanes;
#endif

/// Packet of several directions of one state.
#ifdef SARRUS_ONE_STATE
using SideBySide = double;
#else
using SideBySide = Packet<loop_lanes>;
#endif

/// Type that contains either several directions of one state, or one direction of each of several states.
template <class T> using Along = std::conditional_t<std::is_same_v<T, double>, SideBySide, T>;

/// Packet of states of different variants.
using OwnLanes = Packet<loop_lanes, true>;

}  // namespace sarrus
