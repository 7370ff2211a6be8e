// Task of a frame that follows a target pose: J a = A_t + kd (V_t - V) + kp e - drift, as in pose.hpp.
#pragma once

#include "pose.hpp"

namespace sarrus {

struct FrameTask : FollowingTask, PoseFollower {
  static constexpr const char* name = "FrameTask";
  using PoseFollower::companions, PoseFollower::group;

  template <class F> void fields(F field) { PoseFollower::fields(field), FollowingTask::fields(field); }
  template <class T> void evaluate(const TaskState<T>& s, const TaskRows<T>& out) const {
    T rate[6];
    PoseFollower::evaluate(s, out, rate);
    for (int i = 0; i < rows(); ++i) out.right[i] += feedback(s, i, out.error[i], rate[i]);
  }
};

}  // namespace sarrus
