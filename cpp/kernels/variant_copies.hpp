// A thread's own copy of variants' block: with the numbers of one of them in it (VariantCopy), or with those of W of them beside it, number by
// number, lane by lane (VariantLanes), where NumbersOf finds them. What a call says of frames stands behind it: their places are numbers, too. Or
// whatever else somebody wants there, who then has all numbers (simulation/run_numbers.hpp).
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
  /// Place frames as these do.
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
  VariantCopy(const VariantNumbers& of, std::size_t behind, Arena& arena)
      : of_(of), memory_(reinterpret_cast<char*>(arena.take<double>((of.bytes + behind) / sizeof(double)))) {
    of.copy(memory_);
  }
  VariantCopy(const VariantNumbers& of, const Parameters& p, Arena& arena) : VariantCopy(of, VariantCall::bytes(p), arena) {
    call_.emplace(p, behind());
  }
  void take(std::int64_t variant) {
    const double* value = of_.value(variant, 0);
    for (int k = 0; k < of_.differing; ++k) *reinterpret_cast<double*>(memory_ + of_.differs[k]) = value[k * of_.group];
    if (call_) call_->place(reinterpret_cast<const PlacedFrame*>(memory_ + of_.frames));
  }
  const Tree& tree() const { return *reinterpret_cast<const Tree*>(memory_); }
  const Parameters& parameters() const { return call_->parameters(); }
  char* behind() const { return memory_ + of_.bytes; }

 private:
  const VariantNumbers& of_;
  char* memory_;
  std::optional<VariantCall> call_{};
};

template <int W> class VariantLanes {
  using P = Packet<W, true>;

 public:
  VariantLanes(const VariantNumbers& of, std::size_t behind, Arena& arena)
      : of_(of),
        memory_(reinterpret_cast<char*>(arena.take<P>(packets(of.bytes + behind)))),
        lanes_(arena.take<P>((of.bytes + behind) / sizeof(double))) {
    of.copy(memory_);
    const std::intptr_t shift = reinterpret_cast<std::intptr_t>(lanes_) - W * reinterpret_cast<std::intptr_t>(memory_);
    reinterpret_cast<Tree*>(memory_)->lanes = shift;
    if (of.pieces) reinterpret_cast<Substructures*>(memory_ + of.pieces)->tree.lanes = shift;
    for (int k = 0; k < of.numbers; ++k)
      lanes_[of.number[k] / sizeof(double)] = P(*reinterpret_cast<double*>(memory_ + of.number[k]));
  }
  VariantLanes(const VariantNumbers& of, const Parameters& p, Arena& arena) : VariantLanes(of, VariantCall::bytes(p), arena) {
    call_.emplace(p, behind());
    call_->place(reinterpret_cast<const PlacedFrame*>(memory_ + of.frames));
    call_->each_frame([&](Frame& f) {
      for (int i = 0; i < pose; ++i) lanes_of(f)[i] = P(f.X.R.data()[i]);
    });
  }
  /// Take a variant for each lane; the last one is repeated.
  template <class Variant> void take(int count, Variant variant) {
    std::int64_t which[W];
    bool in_row = true;  // of a group
    for (int l = 0; l < W; ++l) {
      which[l] = variant(l < count ? l : count - 1);
      in_row = in_row && which[l] == which[0] + l;
    }
    in_row = in_row && which[0] % W == 0;
    const auto put = [&](P& to, int k) SARRUS_INLINED {
      if (in_row)
        to = *reinterpret_cast<const P*>(of_.value(which[0], k));
      else
        for (int l = 0; l < W; ++l) lane(to, l) = *of_.value(which[l], k);
    };
    for (int k = 0; k < (call_ ? of_.recursive : of_.differing); ++k) put(lanes_[of_.differs[k] / sizeof(double)], k);
    if (!call_) return;
    call_->each_frame([&](Frame& f) {
      const std::size_t at = of_.frames + static_cast<std::size_t>(f.placed) * sizeof(PlacedFrame) + offsetof(PlacedFrame, X);
      if (f.placed < 0) return;
      const auto* first = std::lower_bound(of_.differs + of_.recursive, of_.differs + of_.differing, at);
      for (; first < of_.differs + of_.differing && *first < at + pose * sizeof(double); ++first)
        put(lanes_of(f)[(*first - at) / sizeof(double)], static_cast<int>(first - of_.differs));
    });
  }
  const Tree& tree() const { return *reinterpret_cast<const Tree*>(memory_); }
  const Parameters& parameters() const { return call_->parameters(); }
  char* behind() const { return memory_ + of_.bytes; }

 private:
  static constexpr int pose = 12;  // numbers of one
  static_assert(sizeof(Transform<double>) == pose * sizeof(double), "no padding");
  static int packets(std::size_t bytes) { return static_cast<int>(bytes / sizeof(P)) + 1; }
  P* lanes_of(Frame& f) { return lanes_ + (reinterpret_cast<char*>(&f.X) - memory_) / sizeof(double); }

  const VariantNumbers& of_;
  char* memory_;
  P* lanes_;
  std::optional<VariantCall> call_{};
};

}  // namespace sarrus
