// Evaluation of an operation for packets of states, one state per lane: converts rows of values to packets, and packets to rows.
#pragma once

#include <algorithm>

#include "../simd/lanes.hpp"
#include "run.hpp"

namespace sarrus {
namespace {

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SARRUS_TRANSPOSES
#endif
#endif

/// Transpose four rows of four values in registers. Rows of seven values are transposed in two blocks; the second one begins at the fourth value, so
/// that it overlaps the first one.
#ifdef SARRUS_TRANSPOSES
template <int W> constexpr bool transposes = W == 4;
using Four = Register<4>::real;
typedef double UnalignedFour __attribute__((vector_size(32), aligned(8), may_alias));
SARRUS_INLINE void transpose(Four (&r)[4]) {
  const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6), b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
  const Four c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6), d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5), r[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  r[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7), r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
template <bool Own> SARRUS_INLINE void gather_block(const double* const* row, int k, Packet<4, Own>* to) {
  Four r[4];
  for (int l = 0; l < 4; ++l) r[l] = *reinterpret_cast<const UnalignedFour*>(row[l] + k);
  transpose(r);
  for (int l = 0; l < 4; ++l) reinterpret_cast<Four&>(to[k + l]) = r[l];
}
template <bool Own> SARRUS_INLINE void scatter_block(const Packet<4, Own>* from, int k, double* const* row) {
  Four r[4];
  for (int l = 0; l < 4; ++l) r[l] = reinterpret_cast<const Four&>(from[k + l]);
  transpose(r);
  for (int l = 0; l < 4; ++l) *reinterpret_cast<UnalignedFour*>(row[l] + k) = r[l];
}
#else
template <int W> constexpr bool transposes = false;
template <bool Own> SARRUS_INLINE void gather_block(const double* const*, int, Packet<4, Own>*) {}
template <bool Own> SARRUS_INLINE void scatter_block(const Packet<4, Own>*, int, double* const*) {}
#endif

/// Call f with the first column of each block of four columns; the blocks cover `size` columns.
template <class F> SARRUS_INLINE void for_blocks(int size, F&& f) {
  int k = 0;
  for (; k + 4 <= size; k += 4) f(k);
  if (k < size) f(size - 4);
}

/// Load rows i .. i + W - 1 of an input into lanes. If there are fewer rows, the last row is repeated.
template <int W, bool Own> void gather(const double* from, std::int64_t step, int size, std::int64_t i, std::int64_t end,
                                       Packet<W, Own>* to) {
  const double* row[W];
  for (int l = 0; l < W; ++l) row[l] = from + (i + l < end ? i + l : end - 1) * step;
  if constexpr (transposes<W>)
    if (size >= 4) {
      for_blocks(size, [&](int k) SARRUS_INLINED { gather_block(row, k, to); });
      return;
    }
  for (int k = 0; k < size; ++k)
    for (int l = 0; l < W; ++l) to[k].lanes[l] = row[l][k];
}
template <int W, bool Own> void scatter(const Packet<W, Own>* from, int size, std::int64_t i, std::int64_t end, double* to) {
  if constexpr (transposes<W>)
    if (size >= 4 && i + W <= end) {
      double* row[W];
      for (int l = 0; l < W; ++l) row[l] = to + (i + l) * size;
      for_blocks(size, [&](int k) SARRUS_INLINED { scatter_block(from, k, row); });
      return;
    }
  const int rows = i + W <= end ? W : static_cast<int>(end - i);
  for (int l = 0; l < rows; ++l)
    for (int k = 0; k < size; ++k) to[(i + l) * size + k] = from[k].lanes[l];
}

/// Evaluate a kernel in packets. All operations share this code, which is not inlined because there are many operations. prepare(i) is called before
/// the packet that begins with row i.
template <int W, bool Own, class Prepare>
SARRUS_NOINLINE void in_packets(Packet<W, Own> (*kernel)(const Call<Packet<W, Own>>&), const Tree& tree, const Parameters& p,
                                const Rows& rows, std::int64_t begin, std::int64_t end, Prepare prepare) {
  using P = Packet<W, Own>;
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  P* in[max_inputs];
  for (int k = 0; k < max_inputs; ++k) in[k] = rows.in[k] ? arena.take<P>(rows.in_size[k]) : nullptr;
  P** wrench = arena.take<P*>(p.wrenches);
  for (int k = 0; k < p.wrenches; ++k) wrench[k] = arena.take<P>(6);
  P* out = arena.take<P>(rows.out_size);
  for (std::int64_t i = begin; i < end; i += W) {
    // prefetch the memory of the output during the evaluation, because a large output does not remain in the cache
    const std::int64_t last = std::min<std::int64_t>(i + W, end) * rows.out_size;
    for (std::int64_t k = i * rows.out_size; k < last; k += 8) __builtin_prefetch(rows.out + k, 1);
    for (int k = 0; k < max_inputs; ++k)
      if (in[k]) gather(rows.in[k], rows.in_step[k], rows.in_size[k], i, end, in[k]);
    for (int k = 0; k < p.wrenches; ++k) gather(rows.wrench[k], rows.wrench_step[k], 6, i, end, wrench[k]);
    const Arena::Scope inner(arena);
    prepare(i);
    const auto* external = external_wrenches(p, arena, tree.numbers<P>(), wrench);
    const P status = kernel({tree, arena, p, in, external, out});
    for (std::int64_t l = i; l < std::min<std::int64_t>(i + W, end); ++l)
      rows.status[l] = static_cast<signed char>(status.lanes[l - i]);
    scatter(out, rows.out_size, i, end, rows.out);
  }
}

template <Operation op, int W> void many(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin,
                                         std::int64_t end) {
  in_packets<W, false>(&Kernel<op>::template run<Packet<W>>, tree, p, rows, begin, end, [](std::int64_t) {});
}

}  // namespace
}  // namespace sarrus
