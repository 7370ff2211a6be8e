// An effort that is a function of time.
#pragma once

#include "element.hpp"

namespace sarrus {

struct FeedforwardEffort : ForceElement {
  static constexpr const char* name = "FeedforwardEffort";
  static constexpr bool has_rates = false, can_be_sampled = true;
  JointVelocity joint;
  const Law* law;

  template <class F> void fields(F field) { field("joint", joint), field("effort", law); }
  template <class T> void apply(ElementCall<T>& e) const { e.motor[joint.iv] += e.value(law); }
};

}  // namespace sarrus
