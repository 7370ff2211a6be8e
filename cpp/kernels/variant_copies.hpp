// A thread's copy of the memory block that contains a variant's parameters. It contains the parameters of one variant (VariantCopy), or of W variants
// interleaved by lanes (VariantLanes), as NumbersOf requires. The frames of a call are stored after the block, because their poses are parameters of
// a variant too. Simulations store other data there (simulation/run_numbers.hpp).
#pragma once

#include <algorithm>
#include <new>
#include <optional>

#include "../mechanism/arena.hpp"
#include "../mechanism/variant_numbers.hpp"
#include "operation_list.hpp"

namespace sarrus {

class VariantCall {
 public:
  static std::size_t bytes(const Parameters& p) {
    return VariantNumbers::lines(sizeof(Parameters)) +
           VariantNumbers::lines(static_cast<std::size_t>(p.wrenches) * sizeof(Frame));
  }
  VariantCall(const Parameters& p, char* memory) : parameters_(new (memory) Parameters(p)) {
    wrench_ = reinterpret_cast<Frame*>(memory + VariantNumbers::lines(sizeof(Parameters)));
    for (int k = 0; k < p.wrenches; ++k) new (wrench_ + k) Frame(p.wrench_frame[k]);
    parameters_->wrench_frame = wrench_;
  }
  const Parameters& parameters() const { return *parameters_; }
  /// Set the poses of the frames from `frames`.
  void place(const PlacedFrame* frames) {
    each_frame([&](Frame& f) {
      if (f.placed >= 0) f.X = frames[f.placed].X;
    });
  }
  template <class F> void each_frame(F f) {
    f(parameters_->frame);
    for (int k = 0; k < parameters_->wrenches; ++k) f(wrench_[k]);
  }

 private:
  Parameters* parameters_;
  Frame* wrench_;
};

class VariantCopy {
 public:
  VariantCopy(const VariantNumbers& source, std::size_t behind, Arena& arena)
      : source_(source), memory_(reinterpret_cast<char*>(arena.take<double>((source.bytes + behind) / sizeof(double)))) {
    source.copy(memory_);
  }
  VariantCopy(const VariantNumbers& source, const Parameters& p, Arena& arena)
      : VariantCopy(source, VariantCall::bytes(p), arena) {
    call_.emplace(p, behind());
  }
  void take(std::int64_t variant) {
    const double* value = source_.value(variant, 0);
    for (int k = 0; k < source_.differing; ++k)
      *reinterpret_cast<double*>(memory_ + source_.differs[k]) = value[k * source_.group];
    if (call_) call_->place(reinterpret_cast<const PlacedFrame*>(memory_ + source_.frames));
  }
  const Tree& tree() const { return *reinterpret_cast<const Tree*>(memory_); }
  const Parameters& parameters() const { return call_->parameters(); }
  char* behind() const { return memory_ + source_.bytes; }

 private:
  const VariantNumbers& source_;
  char* memory_;
  std::optional<VariantCall> call_{};
};

template <int W> class VariantLanes {
  using P = Packet<W, true>;

 public:
  VariantLanes(const VariantNumbers& source, std::size_t behind, Arena& arena)
      : source_(source),
        memory_(reinterpret_cast<char*>(arena.take<P>(packets(source.bytes + behind)))),
        lanes_(arena.take<P>((source.bytes + behind) / sizeof(double))) {
    source.copy(memory_);
    const std::intptr_t shift = reinterpret_cast<std::intptr_t>(lanes_) - W * reinterpret_cast<std::intptr_t>(memory_);
    reinterpret_cast<Tree*>(memory_)->lanes = shift;
    if (source.pieces) reinterpret_cast<Substructures*>(memory_ + source.pieces)->tree.lanes = shift;
    for (int k = 0; k < source.numbers; ++k)
      lanes_[source.number[k] / sizeof(double)] = P(*reinterpret_cast<double*>(memory_ + source.number[k]));
  }
  VariantLanes(const VariantNumbers& source, const Parameters& p, Arena& arena)
      : VariantLanes(source, VariantCall::bytes(p), arena) {
    call_.emplace(p, behind());
    call_->place(reinterpret_cast<const PlacedFrame*>(memory_ + source.frames));
    call_->each_frame([&](Frame& f) {
      for (int i = 0; i < pose; ++i) lanes_of(f)[i] = P(f.X.R.data()[i]);
    });
  }
  /// Copy one variant to each lane. If there are fewer variants than lanes, the last variant is repeated.
  /// Numbers that only other readers than `reader` read keep the values of the first variant.
  template <class Variant> void take(int count, Variant variant, VariantNumbers::Reader reader = VariantNumbers::bodies) {
    std::int64_t index[W];
    bool same = true,
         in_row = true;  // in a row: the variants are consecutive and in one group, so that their values are contiguous
    for (int l = 0; l < W; ++l) {
      index[l] = variant(l < count ? l : count - 1);
      same = same && index[l] == held_[l];
      in_row = in_row && index[l] == index[0] + l;
    }
    if (same) return;
    std::copy_n(index, W, held_);
    in_row = in_row && index[0] % W == 0;
    const int read = source_.read_by[reader];
    if (in_row) {
      const double* from = source_.value(index[0], 0);
      put(read, [&](P& to, int k) SARRUS_INLINED { to = *reinterpret_cast<const P*>(from + k * VariantNumbers::group); });
      // the next variants are likely to be needed next: fetch their values during the evaluation of these
      const double* next = source_.value(index[0] + VariantNumbers::group, 0);
      for (int k = 0; k < read; ++k) __builtin_prefetch(next + k * VariantNumbers::group);
    } else {
      const double* from[W];
      for (int l = 0; l < W; ++l) from[l] = source_.value(index[l], 0);
      put(read, [&](P& to, int k) SARRUS_INLINED {
        for (int l = 0; l < W; ++l) lane(to, l) = from[l][k * VariantNumbers::group];
      });
    }
  }
  const Tree& tree() const { return *reinterpret_cast<const Tree*>(memory_); }
  const Parameters& parameters() const { return call_->parameters(); }
  char* behind() const { return memory_ + source_.bytes; }

 private:
  static constexpr int pose = 12;  // values of one pose
  static_assert(sizeof(Transform<double>) == pose * sizeof(double), "no padding");
  /// Copy the first `read` differing numbers, and those of the frames of a call.
  template <class Put> SARRUS_INLINE void put(int read, Put one) {
    for (int k = 0; k < read; ++k) one(lanes_[source_.differs[k] / sizeof(double)], k);
    if (!call_) return;
    call_->each_frame([&](Frame& f) {
      const std::size_t at = source_.frames + static_cast<std::size_t>(f.placed) * sizeof(PlacedFrame) + offsetof(PlacedFrame, X);
      if (f.placed < 0) return;
      const auto* first = std::lower_bound(source_.differs + source_.read_by[VariantNumbers::recursions],
                                           source_.differs + source_.differing, at);
      for (; first < source_.differs + source_.differing && *first < at + pose * sizeof(double); ++first)
        one(lanes_of(f)[(*first - at) / sizeof(double)], static_cast<int>(first - source_.differs));
    });
  }
  static int packets(std::size_t bytes) { return static_cast<int>(bytes / sizeof(P)) + 1; }
  P* lanes_of(Frame& f) { return lanes_ + (reinterpret_cast<char*>(&f.X) - memory_) / sizeof(double); }

  const VariantNumbers& source_;
  char* memory_;
  P* lanes_;
  std::int64_t held_[W] = {-1};  // the variants in the lanes
  std::optional<VariantCall> call_{};
};

}  // namespace sarrus
