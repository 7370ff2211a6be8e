// Variants for the kernels: one block of memory with the tree and all arrays that it points to, and for each variant the numbers in which it
// differs from the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sarrus {

struct VariantNumbers {
  struct Pointer {
    std::size_t at, to;  // offset of the pointer in the block, and of its target
  };
  const char* block;
  std::size_t bytes;  // numbers are doubles at multiples of eight bytes
  int pointers, numbers, differing, recursive;
  const Pointer* pointer;
  const std::size_t* number;  // place of each
  const std::size_t* differs;  // offsets of the numbers that differ; dynamics and loops need only the first `recursive` ones
  const double* values;  // ordered by group of variants, then number, then variant
  std::size_t frames, pieces;  // offsets of the frames and of the substructures; pieces: 0 if the mechanism is not cut

  static constexpr std::int64_t group = 8;  // number of variants whose values are side by side, on one cache line
  static constexpr std::size_t line = 64;  // of a cache
  static std::size_t lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

  void copy(char* to) const {
    std::memcpy(to, block, bytes);
    for (int i = 0; i < pointers; ++i) {
      char* place = to + pointer[i].to;
      std::memcpy(to + pointer[i].at, &place, sizeof place);
    }
  }
  /// Address of differing number k of this variant. The values of the next variants of its group follow; number k + 1 is `group` further on.
  const double* value(std::int64_t variant, int k) const {
    return values + (variant / group * differing + k) * group + variant % group;
  }
};

}  // namespace sarrus
