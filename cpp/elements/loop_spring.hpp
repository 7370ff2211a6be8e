// A spring of the mechanism along an angle of a loop joint, k (r - x), where x includes the revolutions that a simulation has counted.
// simulation/run_numbers.hpp creates these elements, for use in simulations only.
#pragma once

#include "element.hpp"

namespace sarrus {

struct LoopSpring : ForceElement {
  static constexpr const char* name = "";  // empty, because it does not occur in descriptions
  static constexpr bool has_rates = true;
  JointCoordinate joint;
  JointTerms terms;  // terms of the mechanism, with its numbers

  template <class F> void fields(F field) { field("joint", joint); }
  template <class T> void apply(ElementCall<T>&) const {}  // its force is added with the mechanism's own forces
};

}  // namespace sarrus
