// The distance between the origins of two frames follows a law g. With d from the reference's to the frame's, n = d / |d|, u the frame's
// velocity relative to the reference's, and w their accelerations' difference while joints do not accelerate,
//
//   J = n . (J_frame - J_reference)
//   J a = g-dot-dot + kd (g-dot - n . u) + kp (g - |d|) - n . w - (u . u - (n . u)^2) / |d|
#pragma once

#include "task.hpp"

namespace sarrus {

struct DistanceTask : FollowingTask {
  static constexpr const char* name = "DistanceTask";
  TaskFrame frame, reference;
  Targets target;

  int rows() const { return 1; }
  template <class F> void fields(F field) {
    field("frame", frame), field("reference", reference), field("target", target), FollowingTask::fields(field);
  }
  template <class T> void evaluate(const TaskState<T>& s, const TaskRows<T>& out) const {
    const LinkMotion<T> here = frame_motion(s, frame), there = frame_motion(s, reference);
    const Vec3<T> d = here.X.p - there.X.p, u = here.V.linear - there.V.linear, w = here.A.linear - there.A.linear;
    const T distance = sqrt(dot(d, d));
    const Vec3<T> n = d * (T(1.0) / distance);
    for (int k = 0; k < s.tree.nv; ++k) out.J[k] = T(0.0);
    const auto along = [&](int, const Vec3<T>&, const Vec3<T>& linear) { return dot(n, linear); };
    add_columns(s, frame.link, here.X.p, 1.0, 1, along, out.J);
    add_columns(s, reference.link, there.X.p, -1.0, 1, along, out.J);
    T g[3];
    target.evaluate(s, 0, g);
    const T rate = dot(n, u);
    out.error[0] = g[0] - distance;
    out.right[0] = g[2] + feedback(s, 0, out.error[0], T(g[1] - rate)) - dot(n, w) - (dot(u, u) - rate * rate) / distance;
  }
  template <class T> T rigid_mobility(const TaskState<T>&, const RigidMechanism<T>& whole, int) const {
    return whole.linear_mobility();
  }
};

}  // namespace sarrus
