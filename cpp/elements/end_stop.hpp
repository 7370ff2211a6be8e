// Spring and damper that act if a coordinate, or a sum of several, exceeds its limits by d: k d + c d-dot, with |c d-dot| at most k d. Therefore the
// force never pulls, and increases from zero without a jump. In rigid steps (simulation/contact_step.hpp) the stop is a row instead of a force, and
// the row's mean force in the last step is the stop's internal state.
#pragma once

#include "element.hpp"

namespace sarrus {

struct EndStop : ForceElement {
  static constexpr const char* name = "EndStop";
  static constexpr bool has_rates = true, has_chord = true;
  std::vector<JointCoordinate> joint;
  Range limits;
  Number stiffness, damping;
  bool rigid;  // true: the stop is a row in steps of method="contact"

  template <class F> void fields(F field) {
    field("joint", joint), field("limits", limits);
    field("stiffness", stiffness, Sign::positive), field("damping", damping, Sign::not_negative);
    field("rigid", rigid);
  }
  int states() const { return rigid ? 1 : 0; }  // force along the coordinate [N m, N]
  double state_unit(const StateUnits& units) const { return units.effort(joint.front().iv); }

  template <class T> void apply(ElementCall<T>& e) const {
    if (rigid) e.z_dot[iz] = T(0.0);
    if (e.rigid) return;
    if (rigid) {  // outside of steps, apply the stop's mean force in the last step
      for (const JointCoordinate& coordinate : joint) e.tau[coordinate.iv] += e.z[iz];
      return;
    }
    T at = T(0.0), v = T(0.0);
    for (const JointCoordinate& coordinate : joint) at += e.q[coordinate.iq], v += e.v[coordinate.iv];
    const T spring = e[stiffness] * (most(at - e[limits.upper], T(0.0)) + least(at - e[limits.lower], T(0.0))),
            room = abs(spring);
    T damper = least(most(e[damping] * v, -room), room);
    if (e.chord) {
      const auto moves = abs(v) > T(0.0);
      if (!e.chords.frozen)
        *e.chord = select(moves, abs(damper) / select(moves, abs(v), T(1.0)), select(room > T(0.0), e[damping], T(0.0)));
      damper = *e.chord * v;
    }
    for (const JointCoordinate& coordinate : joint) e.tau[coordinate.iv] -= spring + damper;
    e.press(room > T(0.0));
  }
};

}  // namespace sarrus
