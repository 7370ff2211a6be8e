// Contact of a body with fixed surroundings: the contact point does not accelerate, and its force is within a friction cone.
//
// A contact requires J a = -J' v - damping J v. Several points of one rotating rigid body cannot satisfy this condition, because of the centripetal
// accelerations w x (w x r). Therefore the condition is applied to one point c of the body, the mean of its contact points,
//
//   a_c = -damping v_c      w' = -damping w      at each point p: J a = -J' v - damping J v + w x (w x (p - c))
//
// which is equivalent for a single contact, and for points at rest. For a sphere, p is its centre, and its lowest point is at rest, so that it rolls.
//
// A function of time, or the distance from the plane, can make a contact inactive. An inactive contact has no condition and no force: its rows and
// columns are zero, so that it may be active in some lanes only.
#pragma once

#include "tasks/task.hpp"

namespace sarrus {

struct TaskContact {
  TaskFrame frame;  // its z axis is the contact normal, which points away from the surroundings
  std::optional<Mat3<double>> world_axes;  // if set, these axes replace those of the frame; they do not rotate with the link
  // number of force components. 1: normal force; 3: force at a point; 4: force at a point and moment about the normal; 6: force and moment on a
  // rectangle about the frame's origin
  int rows;
  double friction, torsion, half_x, half_y;  // torsion: largest moment about the normal per normal force [m]
  double damping;  // damping of a residual velocity [1/s]
  std::vector<int> together;  // contacts on the same rigid body, including itself; empty for a single contact
  std::optional<Law> stands;  // the contact is active while this function is positive; without a value, it is always active
  // for a sphere: its plane is normal . x = offset, and the contact is active if the distance of the sphere from the plane is at most `within`
  double radius = 0.0, offset = 0.0, within = HUGE_VAL;

  template <class F> void fields(F field) {
    field("frame", frame), field("world_axes", world_axes), field("rows", rows), field("friction", friction);
    field("torsion", torsion), field("half_x", half_x), field("half_y", half_y), field("damping", damping);
    field("together", together), field("stands", stands), field("radius", radius), field("offset", offset);
    field("within", within);
  }

  int normal() const { return rows == 1 ? 0 : 2; }
  int group(int row) const { return row / 3; }
  int turns_about(int row) const { return rows == 4 ? 2 : row - 3; }
  int limits() const { return rows == 1 ? 1 : 1 + 2 * (rows - 1); }

  template <class T> T rigid_mobility(const TaskState<T>& s, const RigidMechanism<T>& rigid_body, int row) const {
    const Transform<T>& X = s.k.link[frame.link].X;
    return row < 3 ? rigid_body.linear_mobility() : rigid_body.angular_mobility(X.p + X.R * cast<T>(frame.X.p));
  }

  template <class T> Mat3<T> axes(const Transform<T>& X) const { return world_axes ? cast<T>(*world_axes) : X.R; }
  template <class T> Vec3<T> place(const TaskState<T>& s) const {
    const Transform<T>& X = s.k.link[frame.link].X;
    return X.p + X.R * cast<T>(frame.X.p);
  }
  /// Return 1 if the contact is active, else 0.
  template <class T> T standing(const TaskState<T>& s) const {
    T on = T(1.0), g[3] = {on, on, on};
    if (stands) sarrus::evaluate(*stands, s.parameter, s.time, g), on = select(g[0] > T(0.0), on, T(0.0));
    if (within == HUGE_VAL) return on;
    const T above = dot(Vec3<T>(axes(s.k.link[frame.link].X).col(2)), place(s));
    return select(above < T(offset + radius + within), on, T(0.0));
  }

  /// Compute J (rows x nv) of the contact's point, in world axes; its rows correspond to forces and moments. Also compute `right`, the value of J a
  /// that the contact requires. `all`: all contacts.
  template <class T> void evaluate(const TaskState<T>& s, const std::vector<TaskContact>& all, T* J, T* right) const {
    const LinkMotion<T> m = frame_motion(s, frame);
    const Mat3<T> E = axes(m.X);
    const Vec3<T> down = Vec3<T>(E.col(2)) * T(-radius);
    const auto along = [&](int row, const Vec3<T>& angular, const Vec3<T>& linear) SARRUS_INLINED {
      if (rows == 1) return dot(Vec3<T>(E.col(2)), linear);
      return row < 3 ? dot(Vec3<T>(E.col(row)), linear) : dot(Vec3<T>(E.col(turns_about(row))), angular);
    };
    for (int k = 0; k < rows * s.tree.nv; ++k) J[k] = T(0.0);
    add_columns(s, frame.link, Vec3<T>(m.X.p + down), 1.0, rows, along, J);
    Vec3<T> drift = m.A.linear + cross(m.A.angular, down);
    const Vec3<T> velocity = m.V.linear + cross(m.V.angular, down);
    if (!together.empty()) {
      const Vec3<T> arm = m.X.p - middle(s, all);
      drift = drift - cross(m.V.angular, cross(m.V.angular, arm));
    }
    for (int i = 0; i < rows; ++i) right[i] = -along(i, m.A.angular, drift) - T(damping) * along(i, m.V.angular, velocity);
    if (!stands && within == HUGE_VAL) return;
    const T on = standing(s);
    for (int i = 0; i < rows; ++i) right[i] *= on;
    for (int k = 0; k < rows * s.tree.nv; ++k) J[k] *= on;
  }

  /// Return the mean of the active contact points on this contact's body.
  template <class T> Vec3<T> middle(const TaskState<T>& s, const std::vector<TaskContact>& all) const {
    Vec3<T> sum = zero3<T>();
    T count = T(0.0);
    for (const int k : together) {
      const T on = all[k].standing(s);
      sum = sum + all[k].place(s) * on, count += on;
    }
    return sum * inverse_or_none(count);
  }

  /// Call bound(component, ratio, sign) for each side of the friction cone, 0 <= ratio f_n - sign f_component. Component -1: the side is 0 <= f_n.
  template <class Bound> void each_side(Bound bound) const {
    bound(-1, 1.0, 0.0);
    const double edge = friction / std::sqrt(2.0), ratio[6] = {edge, edge, 0.0, half_y, half_x, torsion};
    for (int k = 0; k < rows && rows > 1; ++k)
      if (k != 2) {
        const double most = ratio[k < 3 ? k : 3 + turns_about(k)];
        bound(k, most, 1.0), bound(k, most, -1.0);
      }
  }
};

}  // namespace sarrus
