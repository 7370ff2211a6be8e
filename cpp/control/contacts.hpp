// Where a body touches what stands still: it stays there, and is pushed within a cone.
//
// A contact asks J a = -J' v - damping J v. Of several points of one rigid body, of which each would ask this for itself, the centripetal
// accelerations w x (w x r) are no motion of a rigid body: so they ask it of one place c, the middle of them all,
//
//   a_c = -damping v_c      w' = -damping w      at each point p: J a = -J' v - damping J v + w x (w x (p - c))
//
// which is the same of one contact, and for points at rest.
#pragma once

#include "tasks/task.hpp"

namespace sarrus {

struct TaskContact {
  TaskFrame frame;  // its z is the normal, away from what is touched,
  std::optional<Mat3<double>> world_axes;  // or that of these axes, which do not turn with the link
  int rows;  // 1: along the normal alone; 3: at a point; 6: on a rectangle about the frame's origin
  double friction, torsion, half_x, half_y;  // torsion: moment about the normal per normal force [m]
  double damping;  // of a velocity that it should not have [1/s]
  std::vector<TaskFrame> together;  // of all contacts of its rigid body, with its own; none where it is alone

  template <class F> void fields(F field) {
    field("frame", frame), field("world_axes", world_axes), field("rows", rows), field("friction", friction);
    field("torsion", torsion), field("half_x", half_x), field("half_y", half_y), field("damping", damping);
    field("together", together);
  }

  int normal() const { return rows == 1 ? 0 : 2; }
  int group(int row) const { return row / 3; }
  int limits() const { return rows == 1 ? 1 : 1 + 2 * (rows - 1); }

  template <class T> T rigid_mobility(const TaskState<T>& s, const RigidMechanism<T>& whole, int row) const {
    const Transform<T>& X = s.k.link[frame.link].X;
    return row < 3 ? whole.linear_mobility() : whole.angular_mobility(X.p + X.R * cast<T>(frame.X.p));
  }

  /// Its forces, and moments, in world axes at its place: J (rows x nv), and J a for which it stays where it is.
  template <class T> void evaluate(const TaskState<T>& s, T* J, T* right) const {
    const LinkMotion<T> m = frame_motion(s, frame);
    const Mat3<T> E = world_axes ? cast<T>(*world_axes) : m.X.R;
    const auto along = [&](int row, const Vec3<T>& angular, const Vec3<T>& linear) SARRUS_INLINED {
      if (rows == 1) return dot(Vec3<T>(E.col(2)), linear);
      return row < 3 ? dot(Vec3<T>(E.col(row)), linear) : dot(Vec3<T>(E.col(row - 3)), angular);
    };
    for (int k = 0; k < rows * s.tree.nv; ++k) J[k] = T(0.0);
    add_columns(s, frame.link, m.X.p, 1.0, rows, along, J);
    Vec3<T> drift = m.A.linear;
    if (!together.empty()) {
      const Vec3<T> arm = m.X.p - middle(s);
      drift = drift - cross(m.V.angular, cross(m.V.angular, arm));
    }
    for (int i = 0; i < rows; ++i) right[i] = -along(i, m.A.angular, drift) - T(damping) * along(i, m.V.angular, m.V.linear);
  }

  /// Of all contacts of its body.
  template <class T> Vec3<T> middle(const TaskState<T>& s) const {
    Vec3<T> sum = zero3<T>();
    for (const TaskFrame& other : together) {
      const Transform<T>& X = s.k.link[other.link].X;
      sum = sum + X.p + X.R * cast<T>(other.X.p);
    }
    return sum * T(1.0 / static_cast<double>(together.size()));
  }

  /// bound(component, ratio, sign) of each side of the cone, 0 <= ratio f_n - sign f_component; component -1: the normal force itself.
  template <class Bound> void each_side(Bound bound) const {
    bound(-1, 1.0, 0.0);
    const double edge = friction / std::sqrt(2.0), ratio[6] = {edge, edge, 0.0, half_y, half_x, torsion};
    for (int k = 0; k < rows && rows > 1; ++k)
      if (k != 2) bound(k, ratio[k], 1.0), bound(k, ratio[k], -1.0);
  }
};

}  // namespace sarrus
