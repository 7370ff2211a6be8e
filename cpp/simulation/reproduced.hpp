// Whether a step that is taken again, in other registers or by other sums, leads where it led.
#pragma once

#include "plan.hpp"

namespace sarrus {

/// The largest gap between both ends, in the units of the plan (plan.hpp).
template <class P> class Reproduced {
 public:
  explicit Reproduced(const Plan& plan) : plan_(plan) {}
  /// Along direction k: a displacement between both, and velocities of both.
  void see_displacement(int k, const P& off) { see(off, of_velocity(k)); }
  void see_velocity(int k, const P& v, const P& before) { see(v - before, of_velocity(k) + abs(before)); }
  void see_internal_state(int k, const P& z, const P& before) { see(z - before, P(Plan::one_of(plan_.z_unit, k)) + abs(before)); }
  /// Where it does not, one a lane.
  using Mask = decltype(P() > P());
  Mask missed() const { return gap_ > P(1e-8); }  // what rounding makes of a step, near singular positions as well

 private:
  P of_velocity(int k) const { return P(Plan::one_of(plan_.velocity_unit, k)); }
  void see(const P& off, const P& unit) {
    const P gap = abs(off) / unit;
    gap_ = select(gap < gap_, gap_, gap);  // with a NaN, that
  }
  const Plan& plan_;
  P gap_ = P(0.0);
};

}  // namespace sarrus
