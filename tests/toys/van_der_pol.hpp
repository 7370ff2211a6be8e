// Van der Pol's oscillator: an effort mu (1 - q^2) v along a joint, which drives small motions and damps large ones.
#pragma once

#include "element.hpp"

namespace sarrus {

struct VanDerPol : ForceElement {
  static constexpr const char* name = "VanDerPol";
  static constexpr bool has_rates = true;
  JointCoordinate joint;
  Number mu;

  template <class F> void fields(F field) { field("joint", joint), field("mu", mu, Sign::not_negative); }

  template <class T> void apply(ElementCall<T>& e) const {
    const T& q = e.q[joint.iq];
    e.tau[joint.iv] += e[mu] * (T(1.0) - q * q) * e.v[joint.iv];
  }
};

}  // namespace sarrus
