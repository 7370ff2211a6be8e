// Variants in the form that the kernels read: one block of memory contains the tree and all arrays to which it points. For each variant, only those
// numbers are stored that differ from the first variant in at least one variant.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sarrus {

struct VariantNumbers {
  struct Pointer {
    std::size_t at, to;  // offset in the block of a pointer, and of the array to which it points
  };
  const char* block;
  std::size_t bytes;  // the numbers are doubles, aligned to eight bytes
  int pointers, numbers, differing;
  const Pointer* pointer;
  const std::size_t* number;  // offset of each number in the block
  /// Functions that read a number. The differing numbers are in this order, so that a call copies only the numbers that it reads.
  enum Reader : char { newton_euler, recursions, bodies };
  int read_by[3];  // number of differing numbers that inverse dynamics reads; that any recursion or the loops read; of all
  const std::size_t* differs;  // offsets of the differing numbers
  const double* values;  // values, ordered by group of variants, then number, then variant
  // offsets of the frames and of the substructures (pieces); 0: the mechanism is not cut into substructures
  std::size_t frames, pieces;

  // number of variants in a group; for each stored number, the values of these variants are contiguous, on one cache line
  static constexpr std::int64_t group = 8;
  static constexpr std::size_t line = 64;  // size of a cache line [bytes]
  static std::size_t lines(std::size_t bytes) { return (bytes + line - 1) / line * line; }

  void copy(char* to) const {
    std::memcpy(to, block, bytes);
    for (int i = 0; i < pointers; ++i) {
      char* place = to + pointer[i].to;
      std::memcpy(to + pointer[i].at, &place, sizeof place);
    }
  }
  /// Return the address of a variant's value of the k-th differing number. The values of the other variants of its group are next to it; those of
  /// number k + 1 follow `group` values later.
  const double* value(std::int64_t variant, int k) const {
    return values + (variant / group * differing + k) * group + variant % group;
  }
};

}  // namespace sarrus
