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
  int pointers, numbers, differing;
  const Pointer* pointer;
  const std::size_t* number;  // where each stands
  const std::size_t* differs;  // those that do, alike
  const double* row;  // variants x differing
  std::size_t frames, pieces;  // where they stand; pieces: 0 where it is not cut

  static constexpr std::size_t line = 64;  // of a cache
  static std::size_t lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

  void copy(char* to) const {
    std::memcpy(to, block, bytes);
    for (int i = 0; i < pointers; ++i) {
      char* place = to + pointer[i].to;
      std::memcpy(to + pointer[i].at, &place, sizeof place);
    }
  }
  const double* of(std::int64_t variant) const { return row + static_cast<std::size_t>(variant) * differing; }
};

}  // namespace sarrus
