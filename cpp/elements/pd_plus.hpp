// PD+: tau = M a_d + C v_d + n + kp (g - q) + kd (g-dot - v)                 (Paden and Panja 1988)
//
// If v_d satisfies the loop equations, the error v - v_d does too, so constraint forces do no work on it. Therefore the stability proof of PD+ for
// trees also holds with loops.
#pragma once

#include "../dynamics/coriolis.hpp"
#include "model_based.hpp"

namespace sarrus {

struct PDPlus : TrackingLaw {
  static constexpr const char* name = "PDPlus";
  static constexpr const char* unrecorded = reasons::model;
  static constexpr bool beside_variants = false;  // dual numbers do not support parameters that differ by lane

  template <class T> void apply(ElementCall<T>& e) const {
    const Arena::Scope scope(e.arena);
    ModelBased<T> model(*this, e);
    model.factorise();
    const Tree& tree = e.tree;
    const int nv = tree.nv, rows = tree.loops.rows, n = model.targets();
    T *rate = model.take(n), *second = model.take(n), *push = model.take(n), *c = model.take(rows), *c_dot = model.take(rows),
      *size = model.take(rows), *v_d = model.take(nv), *a_d = model.take(nv), *tau = model.take(nv), *C = model.take(nv * nv),
      g[3];
    for (int k = 0; k < n; ++k) {
      const auto& [iq, iv, law] = targets[k];
      e.follow(law, g);
      rate[k] = g[1], second[k] = g[2];
      push[k] = e[proportional][k] * (g[0] - e.q[iq]) + e[derivative][k] * (g[1] - e.v[iv]);
    }
    model.targets_of_rows(c);
    T off = model.complete(rate, c, nullptr, v_d);
    model.rates_of_rows(v_d, c_dot, size);
    off = most(off, model.complete(second, c_dot, size, a_d));
    const T* rest = zeros<T>(e.arena, nv);
    const auto work = model.inverse_dynamics(rest, a_d, tau);
    // compensate the friction of the desired motion, not of the actual motion: the difference of both damps the error
    if (tree.has_joint_forces) {
      add_joint_forces(tree, e.q, rest, T(-1.0), tau);
      add_joint_forces(tree, e.q, v_d, T(1.0), tau);
    }
    const auto k = Kinematics<T>::over(tree, model.take(Kinematics<T>::size(tree)));
    kinematics(tree, e.arena, e.q, e.v, static_cast<const T*>(nullptr), k);
    coriolis(tree, e.arena, k, C);
    for (int r = 0; r < nv; ++r)
      for (int j = 0; j < nv; ++j) tau[r] += C[r * nv + j] * v_d[j];
    for (int j = 0; j < n; ++j) tau[targets[j].iv] += push[j];
    e.lacking = most(e.lacking, most(off, model.share(work, tau)));
  }
};

}  // namespace sarrus
