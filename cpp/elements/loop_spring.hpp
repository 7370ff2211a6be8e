// A spring of the mechanism along an angle of a loop joint, k (r - x), with x including the turns that a run has counted. It is created by
// simulation/run_numbers.hpp, and acts only there.
#pragma once

#include "element.hpp"

namespace sarrus {

struct LoopSpring : ForceElement {
  static constexpr const char* name = "";  // it has no description
  static constexpr bool has_rates = true;
  JointCoordinate joint;
  JointTerms terms;  // terms of the mechanism, with its numbers

  template <class F> void fields(F field) { field("joint", joint); }
  template <class T> void apply(ElementCall<T>&) const {}  // it acts with the mechanism's other forces
};

}  // namespace sarrus
