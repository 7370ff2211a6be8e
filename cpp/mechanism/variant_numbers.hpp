// Variants as kernels see them: one block of memory with the tree and all arrays that it points to, and of each variant the numbers in which it
// differs from the first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sarrus {

struct VariantNumbers {
  struct Pointer {
    std::size_t at, to;  // where it stands in the block, and where it leads
  };
  const char* block;
  std::size_t bytes;  // of which each number takes eight, at a multiple of eight
  int pointers, numbers, differing, recursive;
  const Pointer* pointer;
  const std::size_t* number;  // where each stands
  const std::size_t* differs;  // those that do, alike; the first `recursive` are all that dynamics and loops ask for
  const double* values;  // by groups of variants, number by number, variant beside variant
  std::size_t frames, pieces;  // where they stand; pieces: 0 where it is not cut

  static constexpr std::int64_t group = 8;  // variants whose numbers stand side by side, on one line
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
