// Variants for the kernels: one block of memory with the tree and all arrays that it points to, and for each variant the numbers in which it
// differs from the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sarrus {

struct VariantNumbers {
  struct Pointer {
    std::size_t at, to;  // its place in the block, and its target
  };
  const char* block;
  std::size_t bytes;  // of which each number takes eight, at a multiple of eight
  int pointers, numbers, differing, recursive;
  const Pointer* pointer;
  const std::size_t* number;  // place of each
  const std::size_t* differs;  // places of the numbers that differ; dynamics and loops need the first `recursive` only
  const double* values;  // by groups of variants, number by number, variant by variant
  std::size_t frames, pieces;  // their places; pieces: 0 if the mechanism is not cut

  static constexpr std::int64_t group = 8;  // variants with their numbers side by side, on one cache line
  static constexpr std::size_t line = 64;  // of a cache
  static std::size_t lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

  void copy(char* to) const {
    std::memcpy(to, block, bytes);
    for (int i = 0; i < pointers; ++i) {
      char* place = to + pointer[i].to;
      std::memcpy(to + pointer[i].at, &place, sizeof place);
    }
  }
  /// Number k of those that differ, of this variant; those of the rest of its group follow, and the next number is `group` further on.
  const double* value(std::int64_t variant, int k) const {
    return values + (variant / group * differing + k) * group + variant % group;
  }
};

}  // namespace sarrus
