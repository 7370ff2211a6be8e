// A motor with a reaction wheel of limited momentum h. Its effort is u(t) plus the efforts of other elements, within limits. Near the largest
// momentum, the rate of h is at most the distance divided by 10 ms; above it, the wheel is braked.
#pragma once

#include "element.hpp"

namespace sarrus {

struct ReactionWheel : ForceElement {
  static constexpr const char* name = "ReactionWheel";
  static constexpr bool has_rates = true, delivers = true;
  JointVelocity joint;
  Number inertia;  // moment of inertia about the axis
  const Law* torque;
  Number torque_limit, momentum_limit;

  template <class F> void fields(F field) {
    field("joint", joint), field("inertia", inertia, Sign::any), field("torque", torque);
    field("torque_limit", torque_limit, Sign::not_negative_or_infinite);
    field("momentum_limit", momentum_limit, Sign::not_negative_or_infinite);
  }

  template <class T> void apply(ElementCall<T>& e) const { e.motor[joint.iv] += e.value(torque); }
  template <class T> void deliver(ElementCall<T>& e) const {
    const T h = e.v[joint.iv] * e[inertia], &greatest = e[momentum_limit], &limit = e[torque_limit];
    T& motor = e.motor[joint.iv];
    const T within = least(most(motor, (-greatest - h) * T(100.0)), (greatest - h) * T(100.0));
    motor = least(most(within, -limit), limit);
  }
};

}  // namespace sarrus
