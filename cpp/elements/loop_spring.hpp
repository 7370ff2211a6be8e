// A spring of the mechanism along an angle of a joint that closes a loop, k (r - x), x with the turns that a run has counted: it is made by
// simulation/run_numbers.hpp, and acts there.
#pragma once

#include "element.hpp"

namespace sarrus {

struct LoopSpring : ForceElement {
  static constexpr const char* name = "";  // nobody describes it
  static constexpr bool has_rates = true;
  JointCoordinate joint;
  JointTerms terms;  // the mechanism's, with its numbers

  template <class F> void fields(F field) { field("joint", joint); }
  template <class T> void apply(ElementCall<T>&) const {}  // with the mechanism's other forces, which control laws know
};

}  // namespace sarrus
