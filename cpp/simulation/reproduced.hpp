// Comparison of a step with its repetition, which may use other registers or another order of sums.
#pragma once

#include "plan.hpp"

namespace sarrus {

/// Return the largest difference between the two final states, in the units of the plan (plan.hpp).
template <class P> class Reproduced {
 public:
  explicit Reproduced(const Plan& plan) : plan_(plan) {}
  /// compare along direction k: the displacement between the two configurations, and the difference of the velocities
  void see_displacement(int k, const P& off) { see(off, unit_of_velocity(k)); }
  void see_velocity(int k, const P& v, const P& before) { see(v - before, unit_of_velocity(k) + abs(before)); }
  void see_internal_state(int k, const P& z, const P& before) {
    see(z - before, P(Plan::unit_of(plan_.z_unit, k)) + abs(before));
  }
  /// Return a mask of the lanes in which the two final states differ.
  using Mask = decltype(P() > P());
  Mask missed() const { return gap_ > P(1e-8); }  // larger than the rounding errors of a step, even near singular positions

 private:
  P unit_of_velocity(int k) const { return P(Plan::unit_of(plan_.velocity_unit, k)); }
  void see(const P& off, const P& unit) {
    const P gap = abs(off) / unit;
    gap_ = select(gap < gap_, gap_, gap);  // NaN if the gap is NaN
  }
  const Plan& plan_;
  P gap_ = P(0.0);
};

}  // namespace sarrus
