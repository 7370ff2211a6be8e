// Reproducible pseudo-random numbers, for directions that have no special relation to any mechanism.
#pragma once

#include <cstdint>

namespace sarrus {

/// Return the k-th pseudo-random number between -1 and 1 (Steele, Lea and Flood's SplitMix). Rows of these numbers are linearly independent.
/// Multiples of the golden ratio fill an interval more evenly, but are not independent: a matrix of ten columns of them has rank nine.
inline double scattered_anew(int k) {
  std::uint64_t z = 0x9E3779B97F4A7C15u * static_cast<std::uint64_t>(k + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u, z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return static_cast<double>(z >> 11) * 0x1p-52 - 1.0;
}

}  // namespace sarrus
