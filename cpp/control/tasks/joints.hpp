// Task of joint coordinates, also of loop joints, that follow time functions g: J a = g-dot-dot + kd (g-dot - rate) + kp (g - q) - drift.
#pragma once

#include "task.hpp"

namespace sarrus {

struct JointsTask : FollowingTask {
  static constexpr const char* name = "JointsTask";
  std::vector<TaskCoordinate> coordinates;
  Targets target;

  int rows() const { return static_cast<int>(coordinates.size()); }
  template <class F> void fields(F field) {
    field("coordinates", coordinates), field("target", target), FollowingTask::fields(field);
  }
  template <class T> void evaluate(const TaskState<T>& s, const TaskRows<T>& out) const {
    const int nv = s.tree.nv;
    for (int i = 0; i < rows(); ++i) {
      const TaskCoordinate& at = coordinates[i];
      const auto joint = at.motion(s);
      T g[3], *J = out.J + i * nv;
      target.evaluate(s, i, g);
      for (int c = 0; c < nv; ++c) J[c] = joint.J ? joint.J[c] : T(c == at.iv ? 1.0 : 0.0);
      out.error[i] = at.turns && !s.counts ? turns_near(T(g[0] - joint.q), T(0.0)) : g[0] - joint.q;
      out.right[i] = g[2] - joint.a + feedback(s, i, out.error[i], T(g[1] - joint.v));
    }
  }
  template <class T> T rigid_mobility(const TaskState<T>& s, const RigidMechanism<T>& rigid_body, int row) const {
    return rigid_body.joint_mobility(s, coordinates[row].iv, coordinates[row].angular);
  }
};

}  // namespace sarrus
