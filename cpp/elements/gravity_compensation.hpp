// Compensation of gravity by the motors: tau = scale n, where n is the generalised force that balances gravity and springs at rest.
#pragma once

#include "model_based.hpp"

namespace sarrus {

struct GravityCompensation : ModelLaw {
  static constexpr const char* name = "GravityCompensation";
  static constexpr const char* unrecorded = reasons::model;
  Number scale;

  template <class F> void fields(F field) { field("motors", motors), field("scale", scale); }

  template <class T> void apply(ElementCall<T>& e) const {
    const Arena::Scope scope(e.arena);
    ModelBased<T> model(*this, e);
    const T* rest = zeros<T>(e.arena, e.tree.nv);
    T* tau = model.take(e.tree.nv);
    const auto work = model.inverse_dynamics(rest, rest, tau);
    for (int k = 0; k < e.tree.nv; ++k) tau[k] *= e[scale];
    const T off = model.share(work, tau);
    if (e.tree.loops.rows > 0)
      // trees are not checked: each motor only compensates the force on its own joint
      e.lacking = most(e.lacking, off);
  }
};

}  // namespace sarrus
