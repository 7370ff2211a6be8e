// Task of a frame that responds to forces like a mass with spring and damper (Hogan 1985), in components s of the pose error:
//
//   inertia (a_t - a) + damping s-dot + stiffness s + wrench = 0
//   J a = A_t - drift + inertia^-1 (damping s-dot + stiffness s + wrench)
#pragma once

#include "pose.hpp"

namespace sarrus {

struct ImpedanceTask : AccelerationTask, PoseFollower {
  static constexpr const char* name = "ImpedanceTask";
  using PoseFollower::companions, PoseFollower::group;
  std::vector<double> mobility, stiffness, damping;  // rows x rows; mobility: inertia^-1
  std::optional<Targets> wrench;  // external wrench in each row; none: zero

  template <class F> void fields(F field) {
    PoseFollower::fields(field);
    field("mobility", mobility), field("stiffness", stiffness), field("damping", damping), field("wrench", wrench);
  }
  template <class T> void evaluate(const TaskState<T>& s, const TaskRows<T>& out) const {
    const int n = rows();
    T rate[6], force[6];
    PoseFollower::evaluate(s, out, rate);
    for (int i = 0; i < n; ++i) {
      T external[3] = {T(0.0), T(0.0), T(0.0)};
      if (wrench) wrench->evaluate(s, i, external);
      force[i] = external[0];
      for (int j = 0; j < n; ++j) force[i] += out.error[j] * T(stiffness[i * n + j]) + rate[j] * T(damping[i * n + j]);
    }
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) out.right[i] += force[j] * T(mobility[i * n + j]);
  }
};

}  // namespace sarrus
