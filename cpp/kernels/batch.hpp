// Evaluation of many states on several threads, with a status for each. The rows of states are never mixed, so an invalid state affects only its own
// row: the result is NaN, and the status is the reason.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <thread>
#include <type_traits>
#include <vector>

#include "../mechanism/mechanism.hpp"
#include "../mechanism/status.hpp"
#include "../mechanism/variants.hpp"
#include "kernels.hpp"
#include "variant_copies.hpp"

namespace sarrus {

inline bool finite(const double* x, std::int64_t n) {
  // x * 0 is 0, or NaN if x is not finite; several sums are used, because each addition to a single sum would wait for the previous one
  using P = Packet<2>;
  const auto pair = [x](std::int64_t i) {
    Register<2>::real two;
    std::memcpy(&two, x + i, sizeof two);
    return P(two) * P(0.0);
  };
  P a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) a += pair(i), b += pair(i + 2), c += pair(i + 4), d += pair(i + 6);
  double rest = 0.0;
  for (; i < n; ++i) rest += x[i] * 0.0;
  const P all = (a + b) + (c + d);
  return all.lanes[0] + all.lanes[1] + rest == 0.0;
}

inline double squared_norm(const double* q) { return q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]; }
/// Return true if the norms of all quaternions are near 1. A small deviation is harmless, because kernels divide by the norm. A large deviation is an
/// error of the caller.
inline bool unit_quaternion(const double* q) { return squared_norm(q) > 0.998 && squared_norm(q) < 1.002; }
inline bool usable_quaternion(const double* q) { return q[0] != 0.0 || q[1] != 0.0 || q[2] != 0.0 || q[3] != 0.0; }

inline bool sound_quaternions(const Mechanism& m, bool any_length, const double* q) {
  for (const int k : m.quaternions())
    if (!(any_length ? usable_quaternion(q + k) : unit_quaternion(q + k))) return false;
  return true;
}

struct Batch {
  const Mechanism& m;
  std::function<std::remove_pointer_t<ManyStates>> kernel, each;
  ManyVariants variants;
  int lanes;
  const Parameters& p;
  const Rows& rows;
  std::int64_t count;
  bool is_configuration[max_inputs];
  bool any_length;  // quaternions may have any norm
  bool answerless;  // true: no state has a result, because of a zero inertia in the mechanism
  bool ends;  // true: the last entries of a valid result may be NaN
  const std::vector<std::int64_t>* variant_of_rows = nullptr;  // variant of each row; null: the indices that the mechanism stores

  /// Evaluate all chunks of a batch. The calling thread calls `stop` between chunks. Returns true if `stop` ended the evaluation.
  template <class Stop> bool run(std::int64_t threads, Stop stop) const {
    const std::int64_t chunk = rows_at_once(), chunks = (count + chunk - 1) / chunk;
    std::atomic<std::int64_t> next{0};
    std::atomic<bool> failed{false}, stopped{false};
    const auto worker = [&](bool polls) {
      try {
        for (std::int64_t c; !stopped && (c = next.fetch_add(1)) < chunks;) {
          work(c * chunk, std::min(count, (c + 1) * chunk));
          if (polls && stop()) stopped = true;
        }
      } catch (...) {  // an exception, for example out of memory, must not leave a thread
        failed = true;
      }
    };
    std::vector<std::thread> helpers;
    try {
      for (std::int64_t t = 1; t < std::min(threads, chunks); ++t) helpers.emplace_back(worker, false);
    } catch (...) {  // the system cannot start another thread: the existing threads compute all chunks
    }
    worker(true);
    for (std::thread& t : helpers) t.join();
    if (failed) throw std::bad_alloc();
    return stopped;
  }

  /// Return the status of row i. If the row is invalid, set its result to NaN.
  signed char judge(std::int64_t i) const {
    double* out = rows.out + i * rows.out_size;
    signed char verdict = (ends || finite(out, rows.out_size)) && !answerless ? rows.status[i] : no_answer;
    for (int k = 0; k < max_inputs; ++k) {
      if (!rows.in[k]) continue;
      const double* x = rows.in[k] + i * rows.in_step[k];
      if (!finite(x, rows.in_size[k]) || (is_configuration[k] && !sound_quaternions(m, any_length, x))) verdict = invalid_state;
    }
    for (int k = 0; k < p.wrenches; ++k)
      if (!finite(rows.wrench[k] + i * rows.wrench_step[k], 6)) verdict = invalid_state;
    if (verdict != fine && !(ends && verdict == no_answer))
      std::fill(out, out + rows.out_size, std::numeric_limits<double>::quiet_NaN());
    return verdict;
  }

 private:
  /// Evaluate the rows of variants, whose states are stored variant by variant.
  void run_variants(std::int64_t begin, std::int64_t end) const {
    const VariantNumbers& numbers = m.variants()->view();
    const std::vector<std::int64_t>& indices = variant_of_rows ? *variant_of_rows : m.variant_indices();
    const std::int64_t *variant = indices.data(), states = count / static_cast<std::int64_t>(indices.size());
    if (variants && states < lanes && !leaves_the_cache(m.tree(), lanes))
      return variants(numbers, variant, states, p, rows, begin, end);
    Arena& arena = thread_arena();
    const Arena::Scope scope(arena);
    VariantCopy copy(numbers, p, arena);
    for (std::int64_t i = begin, last; i < end; i = last) {
      last = std::min(end, (i / states + 1) * states);
      copy.take(variant[i / states]);
      (last - i < lanes ? each : kernel)(copy.tree(), copy.parameters(), rows, i, last);
    }
  }

  /// Return the number of rows in a chunk. It is so small that a chunk fits into the cache of a thread, and so large that the cost of copying a
  /// variant's block is small in comparison.
  std::int64_t rows_at_once() const { return m.variants() ? 512 : 64; }

  void work(std::int64_t begin, std::int64_t end) const {
    if (m.variants())
      run_variants(begin, end);
    else
      kernel(m.tree(), p, rows, begin, end);
    // check the complete chunk at once, and single rows only if that check fails
    bool clean = !answerless && finite(rows.out + begin * rows.out_size, (end - begin) * rows.out_size);
    for (std::int64_t i = begin; i < end; ++i) clean &= rows.status[i] == fine;
    for (int k = 0; k < max_inputs && clean; ++k) {
      if (!rows.in[k]) continue;
      const double* first = rows.in[k] + begin * rows.in_step[k];
      clean = finite(first, rows.in_step[k] ? (end - begin) * rows.in_size[k] : rows.in_size[k]);
      if (is_configuration[k])
        for (std::int64_t i = begin; i < end && clean; ++i)
          clean = sound_quaternions(m, any_length, rows.in[k] + i * rows.in_step[k]);
    }
    for (int k = 0; k < p.wrenches; ++k)
      for (std::int64_t i = begin; i < end && clean; ++i) clean = finite(rows.wrench[k] + i * rows.wrench_step[k], 6);
    for (std::int64_t i = begin; i < end && !clean; ++i) rows.status[i] = judge(i);
  }
};

}  // namespace sarrus
