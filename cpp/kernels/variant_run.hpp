// Simulation of variants, one run after another: tree and plan of the current variant, in a copy that belongs to the thread.
#pragma once

#include "../simulation/run_numbers.hpp"
#include "variant_copies.hpp"

namespace sarrus {

class VariantRun {
 public:
  VariantRun(const Plan& plan, Arena& arena)
      : units_(units_of(plan)),
        copy_(*plan.variants, RunNumbers::bytes(block(plan), units_), arena),
        numbers_(copy_.tree(), units_, copy_.behind()),
        plan_(plan) {
    numbers_.give(plan_, copy_.tree());
  }
  /// Copy the parameters of the variant `variant` of the plan.
  void take(std::int64_t variant) {
    copy_.take(plan_.variant[variant]);
    numbers_.take<double>(copy_.tree(), plan_, [&](int) { return plan_.units_of + variant * units_; });
  }
  const Tree& tree() const { return numbers_.tree(); }
  const Tree& full_tree() const { return copy_.tree(); }
  const Plan& plan() const { return plan_; }

  static const Tree& block(const Plan& plan) { return *reinterpret_cast<const Tree*>(plan.variants->block); }
  static int units_of(const Plan& plan) { return plan.units_of ? plan.units(block(plan)) : 0; }

 private:
  int units_;
  VariantCopy copy_;
  RunNumbers numbers_;
  Plan plan_;
};

}  // namespace sarrus
