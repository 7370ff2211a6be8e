// Computed torque: tau = M a + h,   a = g-double-dot + kd (g-dot - v) + kp (g - q)      (Li and Wu 4.4; Murray, Li and Sastry
// 4.5)
#pragma once

#include "model_based.hpp"

namespace sarrus {

struct ComputedTorque : TrackingLaw {
  static constexpr const char* name = "ComputedTorque";
  static constexpr const char* unrecorded = reasons::model;

  template <class T> void apply(ElementCall<T>& e) const {
    const Arena::Scope scope(e.arena);
    ModelBased<T> model(*this, e);
    model.factorise();
    const Tree& tree = e.tree;
    T *target_rates = model.take(model.targets()), *a = model.take(tree.nv), *gamma = model.take(tree.loops.rows),
      *size = model.take(tree.loops.rows), *tau = model.take(tree.nv), g[3];
    for (int k = 0; k < model.targets(); ++k) {
      const auto& [iq, iv, law] = targets[k];
      e.follow(law, g);
      target_rates[k] = g[2] + e[derivative][k] * (g[1] - e.v[iv]) + e[proportional][k] * (g[0] - e.q[iq]);
    }
    if (tree.loops.rows > 0) constraint_bias(tree, e.arena, e.q, e.v, &e.time, e.pfaffian_values(), gamma, size);
    const T off = model.complete(target_rates, gamma, size, a);
    e.lacking = most(e.lacking, most(off, model.share(model.inverse_dynamics(e.v, a, tau), tau)));
  }
};

}  // namespace sarrus
