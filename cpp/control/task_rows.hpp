// The rows of a task in one state: J a = r, with what they have in a while the velocities do not change (drift) taken to the right.
//
// A frame follows a target pose that may move in a frame of reference which moves itself. With e the rotation vector and the displacement
// that lead to the target, V_t and A_t what a point of the reference does that is carried along the target's motion,
//
//   J a = A_t + kd (V_t - V) + kp e - drift          J: of the frame less that of the reference at the target
//
// (Khatib 1987; Murray, Li and Sastry 4.5.2), along the axes of the reference or of the target. An impedance has matrices:
// inertia (A_t - A) + D (V_t - V) + K e + push = 0 (Hogan 1985).
#pragma once

#include "../dynamics/momentum.hpp"
#include "../loops/loop_joints.hpp"
#include "../spatial/conversions.hpp"
#include "../spatial/exponential.hpp"
#include "cascade.hpp"
#include "tasks.hpp"

namespace sarrus {

/// What tasks read of a state.
template <class T> struct TaskState {
  const Tree& tree;
  Arena& arena;
  const T *q, *v, *time, *parameter, *given;
  Kinematics<T> k;  // while joints do not accelerate
  LoopJoints<T> loop;  // of joints that close loops, if tasks, motors or limits are at them; a: their drift
  bool counts;  // whether these have counted their turns
};

/// Rows of one task: J (rows x nv), what J a must be, and how far the task is off. J goes on with the components beside them.
template <class T> struct TaskRows {
  T *J, *right, *error;
};

/// The whole mechanism as one rigid body. What it would answer to a force, or how it would move with a unit of energy, is what counts as small:
/// no joint, and no frame, need move less than that, but by a leverage, a singular position or a dead centre.
template <class T> struct RigidWhole {
  T m = T(0.0), trace = T(0.0);  // mass; of the inertia about c
  Vec3<T> c = zero3<T>();

  explicit RigidWhole(const TaskState<T>& s) {
    for (int i = 1; i < s.tree.links; ++i) {
      const auto& b = s.tree.link[i].inertia;
      if (b.m > 0.0) m += T(b.m), c += s.k.link[i].X.p * T(b.m) + s.k.link[i].X.R * cast<T>(b.h);
    }
    c = c * inverse_or_none(m);
    for (int i = 1; i < s.tree.links; ++i) {
      const auto& b = s.tree.link[i].inertia;
      trace += T(b.I.xx + b.I.yy + b.I.zz);
      if (!(b.m > 0.0)) continue;
      const Vec3<T> r = s.k.link[i].X.p + s.k.link[i].X.R * cast<T>(Vec3<double>(b.h * (1.0 / b.m))) - c;
      trace += T(2.0 * b.m) * dot(r, r) - T(2.0 / b.m * dot(b.h, b.h));
    }
  }

  /// 1 / inertia, at most half the trace about p about any axis through it; with the armature of a joint.
  T turning(const Vec3<T>& p, double armature = 0.0) const {
    const Vec3<T> r = p - c;
    return inverse_or_none(T(0.5) * trace + m * dot(r, r) + T(armature));
  }
  T moving(double armature = 0.0) const { return inverse_or_none(m + T(armature)); }
  /// Along a velocity of any joint.
  T along(const TaskState<T>& s, int iv, bool angular) const {
    if (iv < s.tree.nv) {
      const double armature = s.tree.passive[iv].armature;
      return angular ? turning(s.k.link[s.tree.column_link[iv]].X.p, armature) : moving(armature);
    }
    int i = 0;
    while (i + 1 < s.tree.loop_motions && s.tree.loop_motion[i + 1].iv <= iv - s.tree.nv) ++i;
    const LoopMotion& joint = s.tree.loop_motion[i];
    const double armature = joint.terms[iv - s.tree.nv - joint.iv].armature;
    if (!angular) return moving(armature);
    const Transform<T>& X = s.k.link[joint.link[1]].X;
    return turning(X.p + X.R * cast<T>(joint.X[1].p), armature);
  }
};

template <class T> struct TargetMotion {
  Mat3<T> R;
  Vec3<T> p;
  Motion<T> V, A;
};

template <class T> SARRUS_NOINLINE TargetMotion<T> target_motion(const TaskState<T>& s, const Task& task) {
  TargetMotion<T> t;
  if (task.given >= 0) {
    const T* x = s.given + task.given;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) t.R(i, j) = x[3 * i + j];
    t.p = vec3<T>(x[9], x[10], x[11]), t.V = load_motion(x + 12), t.A = load_motion(x + 18);
    return t;
  }
  T x[3][6];
  const T* number = s.parameter + task.parameter + 3 * task.rows();
  bool moves = false;
  for (int i = 0; i < 6; ++i) {
    T g[3] = {T(0.0), T(0.0), T(0.0)};
    if (task.target[i]) evaluate(*task.target[i], s.parameter, s.time, g), moves = true;
    x[0][i] = g[0] + number[i], x[1][i] = g[1], x[2][i] = g[2];
  }
  const Vec3<T> r = vec3<T>(x[0][0], x[0][1], x[0][2]);
  t.R = rotation(exp(r));
  t.p = vec3<T>(x[0][3], x[0][4], x[0][5]);
  t.V = t.A = Motion<T>::zero();
  if (!moves) return t;
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

/// Adds what the velocities move at the point p of a link, times sign, along axis i of [angular; linear] in E.
template <class T, class Axis>
SARRUS_INLINE void add_columns(const TaskState<T>& s, int link, const Vec3<T>& p, double sign, int rows, Axis&& axis, T* J) {
  const int nv = s.tree.nv;
  for (int b = link; b != 0; b = s.tree.link[b].parent) {
    const Link& joint = s.tree.link[b];
    const Vec3<T> arm = p - s.k.link[b].X.p;
    for (int c = joint.iv; c < joint.iv + joint.nv; ++c) {
      const Motion<T>& m = s.k.column[c];
      const Vec3<T> u = m.linear + cross(m.angular, arm);
      for (int r = 0; r < rows; ++r) J[r * nv + c] += T(sign) * axis(r, m.angular, u);
    }
  }
}

template <class T> void frame_rows(const TaskState<T>& s, const Task& task, const TaskRows<T>& out) {
  const TargetMotion<T> g = target_motion(s, task);
  const LinkMotion<T>&child = s.k.link[task.link[0]], &reference = s.k.link[task.link[1]];
  const Transform<T> X = child.X * cast<T>(task.X[0]), X0 = reference.X * cast<T>(task.X[1]);
  const Mat3<T> R_t = X0.R * g.R;
  const Vec3<T> p_t = X0.p + X0.R * g.p;
  // what the frame does, and what the target does while joints do not accelerate
  const Vec3<T> r = X.p - child.X.p, &w = child.V.angular;
  const Motion<T> V = {w, child.V.linear + cross(w, r)};
  const Motion<T> A = {child.A.angular, child.A.linear + cross(child.A.angular, r) + cross(w, cross(w, r))};
  const Vec3<T> d = p_t - reference.X.p, &w0 = reference.V.angular;
  const Motion<T> V_g = turned(X0.R, g.V), A_g = turned(X0.R, g.A);
  const Motion<T> V_t = {w0 + V_g.angular, reference.V.linear + cross(w0, d) + V_g.linear};
  const Motion<T> A_t = {
      reference.A.angular + cross(w0, V_g.angular) + A_g.angular,
      reference.A.linear + cross(reference.A.angular, d) + cross(w0, cross(w0, d)) + cross(w0, V_g.linear) * T(2.0) + A_g.linear};
  Vec3<T> turn = zero3<T>();
  for (const int c : task.component)
    if (c < 3) {
      turn = log(Mat3<T>(R_t * Mat3<T>(X.R.transpose())));
      break;
    }
  const Motion<T> e = {turn, p_t - X.p};
  const Mat3<T>& E = task.target_axes ? R_t : X0.R;
  const int n = task.rows(), all = n + static_cast<int>(task.beside.size()), nv = s.tree.nv;
  const auto along = [&](int row, const Vec3<T>& angular, const Vec3<T>& linear) SARRUS_INLINED {
    const int c = row < n ? task.component[row] : task.beside[row - n];
    return c < 3 ? dot(Vec3<T>(E.col(c)), angular) : dot(Vec3<T>(E.col(c - 3)), linear);
  };
  for (int k = 0; k < all * nv; ++k) out.J[k] = T(0.0);
  add_columns(s, task.link[0], X.p, 1.0, all, along, out.J);
  add_columns(s, task.link[1], p_t, -1.0, all, along, out.J);

  // Components s = E^T e along axes that turn with w_E: s-dot = E^T (e-dot - w_E x e), and s-dot-dot has the accelerations of a turning frame;
  // of those, w_E-dot x e is partly the reference's own, which the joints' accelerations move
  const Vec3<T>& w_E = task.target_axes ? V_t.angular : w0;
  const Vec3<T>& alpha_E = task.target_axes ? A_t.angular : reference.A.angular;
  T off[6], slip[6];
  const auto turning = [&](const Vec3<T>& x, const Vec3<T>& x_dot) {
    return Vec3<T>(cross(w_E, x_dot) * T(2.0) + cross(alpha_E, x) + cross(w_E, cross(w_E, x)));
  };
  const Motion<T> e_dot = {V_t.angular - V.angular - cross(w_E, e.angular), V_t.linear - V.linear - cross(w_E, e.linear)};
  const Vec3<T> more[2] = {turning(e.angular, e_dot.angular), turning(e.linear, e_dot.linear)};
  for (int i = 0; i < n; ++i) {
    out.error[i] = off[i] = along(i, e.angular, e.linear);
    slip[i] = along(i, e_dot.angular, e_dot.linear);
    out.right[i] = along(i, Vec3<T>(A_t.angular - A.angular - more[0]), Vec3<T>(A_t.linear - A.linear - more[1]));
  }
  if (task.link[1] != 0)
    add_columns(
        s, task.link[1], p_t, 1.0, all,
        [&](int row, const Vec3<T>& angular, const Vec3<T>&)
            SARRUS_INLINED { return along(row, Vec3<T>(cross(angular, e.angular)), Vec3<T>(cross(angular, e.linear))); },
        out.J);
  if (task.stiffness.empty()) {
    const T* gain = s.parameter + task.parameter;
    for (int i = 0; i < n; ++i) out.right[i] += gain[3 * i] * off[i] + gain[3 * i + 1] * slip[i];
    return;
  }
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j) {
      out.right[i] += off[j] * T(task.stiffness[i * n + j]) + slip[j] * T(task.damping[i * n + j]);
      if (task.push.empty()) continue;
      T push[3];
      evaluate(*task.push[j], s.parameter, s.time, push);
      out.right[i] += push[0] * T(task.yielding[i * n + j]);
    }
}

template <class T> void joint_rows(const TaskState<T>& s, const Task& task, const TaskRows<T>& out) {
  const int n = task.rows(), nq = s.tree.nq, nv = s.tree.nv;
  const T *gain = s.parameter + task.parameter, *number = gain + 3 * n;
  for (int i = 0; i < n; ++i) {
    T g[3] = {T(0.0), T(0.0), T(0.0)};
    if (task.target[i]) evaluate(*task.target[i], s.parameter, s.time, g);
    g[0] += number[i];
    const bool closes = task.iv[i] >= nv;
    const T at = closes ? s.loop.q[task.iq[i] - nq] : s.q[task.iq[i]],
            rate = closes ? s.loop.v[task.iv[i] - nv] : s.v[task.iv[i]];
    T* J = out.J + i * nv;
    for (int c = 0; c < nv; ++c) J[c] = closes ? s.loop.J[(task.iv[i] - nv) * nv + c] : T(c == task.iv[i] ? 1.0 : 0.0);
    const T lead = g[0] - at;
    out.error[i] = task.turns[i] && !s.counts ? turns_near(lead, T(0.0)) : lead;
    out.right[i] = g[2] + gain[3 * i + 1] * (g[1] - rate) + gain[3 * i] * out.error[i];
    if (closes) out.right[i] -= s.loop.a[task.iv[i] - nv];
  }
}

/// Of all bodies together; the mass is in every row, and taken out of those of the centre of mass.
template <class T> void centroidal_rows(const TaskState<T>& s, const Task& task, const TaskRows<T>& out) {
  const Arena::Scope scope(s.arena);
  const int n = task.rows(), nv = s.tree.nv;
  const Vec3<T> c = center_of_mass(s.tree, s.k);
  T *whole = s.arena.template take<T>(6 * nv), h[6], drift[6];
  momentum_matrix(s.tree, s.arena, s.k, c, whole);
  store(momentum(s.tree, s.k, c), h), store(momentum_rate(s.tree, s.k, c), drift);
  T mass = T(0.0);
  for (int i = 1; i < s.tree.links; ++i) mass += T(s.tree.link[i].inertia.m);
  const T *gain = s.parameter + task.parameter, *number = gain + 3 * n;
  for (int i = 0; i < n; ++i) {
    const int k = task.component[i];
    T g[3] = {T(0.0), T(0.0), T(0.0)};
    if (task.target[i]) evaluate(*task.target[i], s.parameter, s.time, g);
    g[0] += number[i];
    const bool place = task.kind == TaskKind::center_of_mass;
    const T share = place ? T(1.0) / mass : T(1.0);
    for (int l = 0; l < nv; ++l) out.J[i * nv + l] = whole[k * nv + l] * share;
    out.error[i] = g[0] - (place ? c(k - 3) : h[k]);
    out.right[i] =
        gain[3 * i] * out.error[i] - drift[k] * share + (place ? g[2] + gain[3 * i + 1] * (g[1] - h[k] * share) : g[1]);
  }
  for (std::size_t i = 0; i < task.beside.size(); ++i)
    for (int l = 0; l < nv; ++l)
      out.J[(n + i) * nv + l] = whole[task.beside[i] * nv + l] * (task.kind == TaskKind::center_of_mass ? T(1.0) / mass : T(1.0));
}

template <class T> void task_rows(const TaskState<T>& s, const Task& task, const TaskRows<T>& out) {
  switch (task.kind) {
    case TaskKind::frame: return frame_rows(s, task, out);
    case TaskKind::joints: return joint_rows(s, task, out);
    case TaskKind::center_of_mass:
    case TaskKind::momentum: return centroidal_rows(s, task, out);
    case TaskKind::multiplier:
    case TaskKind::force: return;  // rows of the unknowns: see task_control.hpp
  }
}

/// Where a contact is.
template <class T> Vec3<T> contact_place(const TaskState<T>& s, const TaskContact& c) {
  const Transform<T>& X = s.k.link[c.link].X;
  return X.p + X.R * cast<T>(c.X.p);
}

/// Of a contact: its rows of forces in world axes, at its place; J (rows x nv), and J a for which it stays where it is.
template <class T> void contact_rows(const TaskState<T>& s, const TaskContact& c, T* J, T* right) {
  const LinkMotion<T>& body = s.k.link[c.link];
  const Transform<T> X = body.X * cast<T>(c.X);
  const Vec3<T> r = X.p - body.X.p, &w = body.V.angular;
  const Motion<T> V = {w, body.V.linear + cross(w, r)};
  const Motion<T> A = {body.A.angular, body.A.linear + cross(body.A.angular, r) + cross(w, cross(w, r))};
  const Mat3<T> E = c.in_world ? cast<T>(c.X.R) : X.R;
  const auto along = [&](int row, const Vec3<T>& angular, const Vec3<T>& linear) SARRUS_INLINED {
    if (c.rows == 1) return dot(Vec3<T>(E.col(2)), linear);
    return row < 3 ? dot(Vec3<T>(E.col(row)), linear) : dot(Vec3<T>(E.col(row - 3)), angular);
  };
  for (int k = 0; k < c.rows * s.tree.nv; ++k) J[k] = T(0.0);
  add_columns(s, c.link, X.p, 1.0, c.rows, along, J);
  for (int i = 0; i < c.rows; ++i) right[i] = -along(i, A.angular, A.linear) - T(c.damping) * along(i, V.angular, V.linear);
}

}  // namespace sarrus
