// Error of a frame's pose relative to a target, which may move relative to a moving reference frame. e consists of the rotation vector and the
// displacement to the target; V_t and A_t are the motion of a point fixed in the target:
//
//   J a = A_t + kd (V_t - V) + kp e - drift          J: Jacobian of the frame, minus that of the reference at the target
//
// (Khatib 1987; Murray, Li and Sastry 4.5.2), along the axes of the reference or of the target.
#pragma once

#include "../../spatial/conversions.hpp"
#include "../../spatial/exponential.hpp"
#include "task.hpp"

namespace sarrus {

/// Target pose. Either a constant and a time function for each component of rotation vector and position; or arguments of the call: R (9), p (3), V,
/// A (6 each).
struct PoseTarget {
  Targets numbers;
  // index of the target's first value among the arguments of the call; -1: the target is a constant and time functions
  int call = -1;

  template <class F> void fields(F field) { field("numbers", numbers), field("call", call); }

  template <class T> struct Motion {
    Mat3<T> R;
    Vec3<T> p;
    sarrus::Motion<T> V, A;
  };
  template <class T> SARRUS_NOINLINE Motion<T> motion(const TaskState<T>& s) const {
    Motion<T> t;
    if (call >= 0) {
      const T* x = s.call + call;
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) t.R(i, j) = x[3 * i + j];
      t.p = vec3<T>(x[9], x[10], x[11]), t.V = load_motion(x + 12), t.A = load_motion(x + 18);
      return t;
    }
    T x[3][6];
    for (int i = 0; i < 6; ++i) {
      T g[3];
      numbers.evaluate(s, i, g);
      for (int k = 0; k < 3; ++k) x[k][i] = g[k];
    }
    const Vec3<T> r = vec3<T>(x[0][0], x[0][1], x[0][2]);
    t.R = rotation(exp(r));
    t.p = vec3<T>(x[0][3], x[0][4], x[0][5]);
    t.V = t.A = sarrus::Motion<T>::zero();
    if (!numbers.moves()) return t;
    t.V.linear = vec3<T>(x[1][3], x[1][4], x[1][5]), t.A.linear = vec3<T>(x[2][3], x[2][4], x[2][5]);
    Vec3<Dual<T>> turn, rate;  // omega = J_l(r) r-dot, and its rate
    for (int i = 0; i < 3; ++i) turn(i) = {x[0][i], x[1][i]}, rate(i) = {x[1][i], x[2][i]};
    const Mat3<Dual<T>> map = left_jacobian(turn);
    for (int i = 0; i < 3; ++i) {
      const Dual<T> w = map(i, 0) * rate(0) + map(i, 1) * rate(1) + map(i, 2) * rate(2);
      t.V.angular(i) = w.value, t.A.angular(i) = w.rate;
    }
    return t;
  }
};

/// Data of a task that makes a frame follow a target pose.
struct PoseFollower {
  TaskFrame frame, reference;
  Components components;
  PoseTarget target;
  bool target_axes = false;  // true: components along the target's axes; false: along the axes of the reference frame

  int rows() const { return components.rows(); }
  int companions() const { return components.companions(); }
  int group(int row) const { return components[row] / 3; }
  template <class F> void fields(F field) {
    field("frame", frame), field("reference", reference), field("components", components), field("target", target);
    field("axes", target_axes);
  }
  template <class T> T rigid_mobility(const TaskState<T>& s, const RigidMechanism<T>& rigid_body, int row) const {
    const Transform<T>& X = s.k.link[frame.link].X;
    return components[row] < 3 ? rigid_body.angular_mobility(X.p + X.R * cast<T>(frame.X.p)) : rigid_body.linear_mobility();
  }

  /// Compute J, the error and its rate, and the terms of r without feedback.
  template <class T> void evaluate(const TaskState<T>& s, const TaskRows<T>& out, T* rate) const {
    const typename PoseTarget::Motion<T> g = target.motion(s);
    const LinkMotion<T> me = frame_motion(s, frame);
    const LinkMotion<T>& base = s.k.link[reference.link];
    const Transform<T> X0 = base.X * cast<T>(reference.X);
    const Mat3<T> R_t = X0.R * g.R;
    const Vec3<T> p_t = X0.p + X0.R * g.p;
    // acceleration of the target at zero joint accelerations
    const Vec3<T> d = p_t - base.X.p, &w0 = base.V.angular;
    const Motion<T> V_g = turned(X0.R, g.V), A_g = turned(X0.R, g.A);
    const Motion<T> V_t = {w0 + V_g.angular, base.V.linear + cross(w0, d) + V_g.linear};
    const Motion<T> A_t = {
        base.A.angular + cross(w0, V_g.angular) + A_g.angular,
        base.A.linear + cross(base.A.angular, d) + cross(w0, cross(w0, d)) + cross(w0, V_g.linear) * T(2.0) + A_g.linear};
    Motion<T> e = {zero3<T>(), p_t - me.X.p};
    if (components.rotates()) e.angular = log(Mat3<T>(R_t * Mat3<T>(me.X.R.transpose())));

    const Mat3<T>& E = target_axes ? R_t : X0.R;
    const int n = rows(), all = n + companions();
    const auto along = [&](int row, const Vec3<T>& angular, const Vec3<T>& linear) SARRUS_INLINED {
      const int c = components[row];
      return c < 3 ? dot(Vec3<T>(E.col(c)), angular) : dot(Vec3<T>(E.col(c - 3)), linear);
    };
    for (int k = 0; k < all * s.tree.nv; ++k) out.J[k] = T(0.0);
    add_columns(s, frame.link, me.X.p, 1.0, all, along, out.J);
    add_columns(s, reference.link, p_t, -1.0, all, along, out.J);

    // Components s = E^T e along axes that rotate with w_E have the rate s-dot = E^T (e-dot - w_E x e). s-dot-dot also contains the terms of a
    // rotating frame; one of them, w_E-dot x e, depends on joint accelerations if the reference frame moves
    const Vec3<T>& w_E = target_axes ? V_t.angular : w0;
    const Vec3<T>& alpha_E = target_axes ? A_t.angular : base.A.angular;
    const auto turning = [&](const Vec3<T>& x, const Vec3<T>& x_dot) {
      return Vec3<T>(cross(w_E, x_dot) * T(2.0) + cross(alpha_E, x) + cross(w_E, cross(w_E, x)));
    };
    const Motion<T> e_dot = {V_t.angular - me.V.angular - cross(w_E, e.angular), V_t.linear - me.V.linear - cross(w_E, e.linear)};
    const Vec3<T> turn[2] = {turning(e.angular, e_dot.angular), turning(e.linear, e_dot.linear)};
    for (int i = 0; i < n; ++i) {
      out.error[i] = along(i, e.angular, e.linear);
      rate[i] = along(i, e_dot.angular, e_dot.linear);
      out.right[i] = along(i, Vec3<T>(A_t.angular - me.A.angular - turn[0]), Vec3<T>(A_t.linear - me.A.linear - turn[1]));
    }
    if (reference.link == 0) return;
    add_columns(
        s, reference.link, p_t, 1.0, all,
        [&](int row, const Vec3<T>& angular, const Vec3<T>&)
            SARRUS_INLINED { return along(row, Vec3<T>(cross(angular, e.angular)), Vec3<T>(cross(angular, e.linear))); },
        out.J);
  }
};

}  // namespace sarrus
