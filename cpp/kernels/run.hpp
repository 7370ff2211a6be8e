// An operation for one state and for packets of states: what turns rows of numbers into packets and back.
#pragma once

#include <algorithm>

#include "call.hpp"
#include "kernels.hpp"

namespace sarrus {
namespace {

// four lanes even where registers hold eight: with eight, what a body needs no longer fits into them
#if defined(SARRUS_LANES)
constexpr int lanes = SARRUS_LANES;
#elif defined(__AVX__)
constexpr int lanes = 4;
#else
constexpr int lanes = 2;
#endif

template <Operation op>
double one(const Tree& tree, const Parameters& p, const double* const* in, const double* const* wrench, double* out) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  auto* external = arena.take<ExternalWrench<double>>(p.wrenches);
  for (int k = 0; k < p.wrenches; ++k)
    external[k] = {p.wrench_frame[k].body, p.wrench_frame[k].part, p.wrench_frame[k].X, wrench[k]};
  return Run<op>::template run<double>({tree, arena, p, in, external, out});
}

using P = Packet<lanes>;

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define SARRUS_TRANSPOSES
#endif
#endif

/// Four rows of four become four columns, in registers. Three columns of a row of seven are had by a block that overlaps the last one.
#ifdef SARRUS_TRANSPOSES
constexpr bool transposes = lanes == 4;
using Four = Register<4>::real;
using UnalignedFour = double __attribute__((vector_size(32), aligned(8), may_alias));
SARRUS_INLINE void transpose(Four (&r)[4]) {
  const Four a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6), b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
  const Four c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6), d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5), r[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  r[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7), r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}
SARRUS_INLINE void gather_block(const double* const* row, int k, P* to) {
  Four r[4];
  for (int l = 0; l < 4; ++l) r[l] = *reinterpret_cast<const UnalignedFour*>(row[l] + k);
  transpose(r);
  for (int l = 0; l < 4; ++l) reinterpret_cast<Four&>(to[k + l]) = r[l];
}
SARRUS_INLINE void scatter_block(const P* from, int k, double* const* row) {
  Four r[4];
  for (int l = 0; l < 4; ++l) r[l] = reinterpret_cast<const Four&>(from[k + l]);
  transpose(r);
  for (int l = 0; l < 4; ++l) *reinterpret_cast<UnalignedFour*>(row[l] + k) = r[l];
}
#else
constexpr bool transposes = false;
SARRUS_INLINE void gather_block(const double* const*, int, P*) {}
SARRUS_INLINE void scatter_block(const P*, int, double* const*) {}
#endif

/// Calls f with the first column of each block of four that covers `size` columns.
template <class F> SARRUS_INLINE void for_blocks(int size, F&& f) {
  int k = 0;
  for (; k + 4 <= size; k += 4) f(k);
  if (k < size) f(size - 4);
}

/// Rows i .. i + lanes - 1 of an input, one a lane; past the last row it is repeated.
SARRUS_INLINE void gather(const double* from, long step, int size, long i, long end, P* to) {
  const double* row[lanes];
  for (int l = 0; l < lanes; ++l) row[l] = from + (i + l < end ? i + l : end - 1) * step;
  if (transposes && size >= 4) {
    for_blocks(size, [&](int k) SARRUS_INLINED { gather_block(row, k, to); });
    return;
  }
  for (int k = 0; k < size; ++k)
    for (int l = 0; l < lanes; ++l) to[k].lanes[l] = row[l][k];
}
SARRUS_INLINE void scatter(const P* from, int size, long i, long end, double* to) {
  if (transposes && size >= 4 && i + lanes <= end) {
    double* row[lanes];
    for (int l = 0; l < lanes; ++l) row[l] = to + (i + l) * size;
    for_blocks(size, [&](int k) SARRUS_INLINED { scatter_block(from, k, row); });
    return;
  }
  const int rows = i + lanes <= end ? lanes : static_cast<int>(end - i);
  for (int l = 0; l < rows; ++l)
    for (int k = 0; k < size; ++k) to[(i + l) * size + k] = from[k].lanes[l];
}

template <Operation op> void many(const Tree& tree, const Parameters& p, const Rows& rows, long begin, long end) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  P* in[max_inputs];
  for (int k = 0; k < max_inputs; ++k) in[k] = rows.in[k] ? arena.take<P>(rows.in_size[k]) : nullptr;
  auto* external = arena.take<ExternalWrench<P>>(p.wrenches);
  P** wrench = arena.take<P*>(p.wrenches);
  for (int k = 0; k < p.wrenches; ++k) {
    wrench[k] = arena.take<P>(6);
    external[k] = {p.wrench_frame[k].body, p.wrench_frame[k].part, p.wrench_frame[k].X, wrench[k]};
  }
  P* out = arena.take<P>(rows.out_size);
  for (long i = begin; i < end; i += lanes) {
    // a large result has left the cache since the last call: ask for its lines while the kernel works
    const long last = std::min(i + lanes, end) * rows.out_size;
    for (long k = i * rows.out_size; k < last; k += 8) __builtin_prefetch(rows.out + k, 1);
    for (int k = 0; k < max_inputs; ++k)
      if (in[k]) gather(rows.in[k], rows.in_step[k], rows.in_size[k], i, end, in[k]);
    for (int k = 0; k < p.wrenches; ++k) gather(rows.wrench[k], rows.wrench_step[k], 6, i, end, wrench[k]);
    const Arena::Scope inner(arena);
    const P status = Run<op>::template run<P>({tree, arena, p, in, external, out});
    for (long l = i; l < std::min(i + lanes, end); ++l) rows.status[l] = static_cast<signed char>(status.lanes[l - i]);
    scatter(out, rows.out_size, i, end, rows.out);
  }
}

}  // namespace
}  // namespace sarrus
