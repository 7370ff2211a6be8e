// LuGre friction, which can stick: bristles with deflection z (Canudas de Wit et al. 1995). Rates of z are limited to values that a step can resolve.
//   z-dot = v - |v| z s0/F(v),   friction s0 z + min(s1, F/|v|) z-dot,   F = F_c + (F_s - F_c) exp(-(v/v_s)^2)
#pragma once

#include "element.hpp"

namespace sarrus {

struct LuGreFriction : ForceElement {
  static constexpr const char* name = "LuGreFriction";
  static constexpr bool has_rates = true;
  JointVelocity joint;
  Number sliding, sticking, stribeck_velocity, stiffness, damping;  // stiffness and damping of the bristles: s0 and s1

  template <class F> void fields(F field) {
    field("joint", joint);
    field("sliding", sliding, Sign::positive), field("sticking", sticking, Sign::positive);
    field("stribeck_velocity", stribeck_velocity, Sign::positive);
    field("stiffness", stiffness, Sign::positive), field("damping", damping, Sign::not_negative);
  }
  int states() const { return 1; }
  double state_unit(const StateUnits& units) const { return units.velocity[joint.iv]; }

  template <class T> void apply(ElementCall<T>& e) const {
    const T &rate = e.v[joint.iv], &s0 = e[stiffness], &s1 = e[damping], &z = e.z[iz], ratio = rate / e[stribeck_velocity];
    T& z_dot = e.z_dot[iz];
    const T most_friction = e[sliding] + (e[sticking] - e[sliding]) * exponential(-(ratio * ratio));
    // rate at which z decays; it is limited to 1/ms below, because faster rates would need shorter steps
    const T settling = abs(rate) * s0 / most_friction;
    z_dot = (rate - settling * z) / (T(1.0) + settling * T(1e-3));
    // while the bristles slip, their force is at most the total friction
    const T slipping = select(settling * s1 > s0, s0 / settling, s1);
    e.tau[joint.iv] -= s0 * z + slipping * z_dot;
  }
};

}  // namespace sarrus
