// Effort of a drive for a commanded effort u along a velocity. It is u or, with a lag of first or second order, the internal state z:
//   z-dot = b (u - z)   or   z-double-dot = b^2 (u - z) - 2 d b z-dot
// With stall effort s and no-load speed v_0, the effort is at most s (1 - |v|/v_0) while it accelerates the motion, and at most s while it brakes
// the motion.
#pragma once

#include "element.hpp"

namespace sarrus {

struct ActuatorModel : ForceElement {
  static constexpr const char* name = "ActuatorModel";
  static constexpr bool has_rates = true, delivers = true;
  JointVelocity joint;
  int order;  // order of the lag (0, 1 or 2), which equals its number of internal states
  Number bandwidth, damping_ratio, stall, no_load_speed;  // bandwidth: 1/time constant, or the natural frequency

  template <class F> void fields(F field) {
    field("joint", joint), field("order", order);
    field("bandwidth", bandwidth, Sign::positive), field("damping_ratio", damping_ratio, Sign::not_negative);
    field("stall", stall, Sign::positive), field("no_load_speed", no_load_speed, Sign::positive);
  }
  int states() const { return order; }
  double state_unit(const StateUnits& units) const { return units.effort(joint.iv); }

  template <class T> void apply(ElementCall<T>&) const {}  // this element only changes the efforts that other elements command
  template <class T> void deliver(ElementCall<T>& e) const {
    const T &b = e[bandwidth], *lag = e.z + iz;
    T &effort = e.motor[joint.iv], *z_dot = e.z_dot + iz;
    if (order == 1) z_dot[0] = b * (effort - lag[0]);
    if (order == 2) z_dot[0] = lag[1], z_dot[1] = b * (b * (effort - lag[0]) - T(2.0) * e[damping_ratio] * lag[1]);
    if (order > 0) effort = lag[0];
    const T slower = e.v[joint.iv] / e[no_load_speed], forth = most(least(T(1.0) - slower, T(1.0)), T(0.0)),
            back = most(least(T(1.0) + slower, T(1.0)), T(0.0));
    effort = least(most(effort, -e[stall] * back), e[stall] * forth);
  }
};

}  // namespace sarrus
