// A spring of the mechanism along an angle of a joint that closes a loop, k (r - x), x with the turns that a run has counted: it is made by
// simulation/turns.hpp, and acts there.
#pragma once

#include "element.hpp"

namespace sarrus {

struct LoopSpring : ForceElement {
  static constexpr const char* name = "";  // nobody describes it
  static constexpr bool has_rates = true;
  JointCoordinate joint;
  double stiffness, rest;

  template <class F> void fields(F field) {
    field("joint", joint), field("stiffness", stiffness, Sign::any), field("rest", rest, Sign::any);
  }
  template <class T> void apply(ElementCall<T>&) const {}  // with the mechanism's other forces, which control laws know
};

}  // namespace sarrus
