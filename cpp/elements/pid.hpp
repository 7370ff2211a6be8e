// PID control of a coordinate within limits: u = kp e + kd e-dot + z, z-dot = ki e, e = g(t) - q. z is constant while an increase would drive u
// beyond its limits (anti-windup).
#pragma once

#include "element.hpp"

namespace sarrus {

struct PID : ForceElement {
  static constexpr const char* name = "PID";
  static constexpr bool has_rates = true, has_linear_rates = true, can_be_sampled = true;
  JointCoordinate joint;
  const Law* target;
  Number proportional, integral, derivative;
  Range limits;

  template <class F> void fields(F field) {
    field("joint", joint), field("target", target);
    field("proportional", proportional), field("integral", integral), field("derivative", derivative);
    field("limits", limits);
  }
  int states() const { return 1; }
  double state_unit(const StateUnits& units) const { return units.effort(joint.iv); }

  template <class T> void apply(ElementCall<T>& e) const {
    T g[3];
    e.follow(target, g);
    const T off = g[0] - e.q[joint.iq];
    const T effort = e[proportional] * off + e.z[iz] + e[derivative] * (g[1] - e.v[joint.iv]);
    e.motor[joint.iv] += e.within(limits, effort);
    if (e.stiffness) {
      const auto within = both(effort > e[limits.lower], effort < e[limits.upper]);
      e.stiffness[joint.iv] += select(within, e[proportional], T(0.0)),
          e.damping[joint.iv] += select(within, e[derivative], T(0.0));
    }
    // near a limit, the rate of z is at most the distance to the limit divided by 1 ms; with a jump of this rate, implicit steps would fail
    const T unwinding = T(e.unwinding);
    const T room = most(e[limits.upper] - effort, T(0.0)), room_below = least(e[limits.lower] - effort, T(0.0));
    e.z_dot[iz] = most(least(e[integral] * off, room * unwinding), room_below * unwinding);
  }
};

}  // namespace sarrus
