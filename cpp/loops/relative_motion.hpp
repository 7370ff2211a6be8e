// Relative motion of the two frames of a constraint between bodies: the input of its rows.
#pragma once

#include "../dynamics/rnea.hpp"

namespace sarrus {

/// Poses of the bodies and, on request, their accelerations at zero accelerations of the joints.
template <class T> struct LoopState {
  const T *q, *v;  // v: null if at rest
  const T *time, *pfaffian_values;  // time: null means 0; pfaffian_values: null means that there are none
  Transform<T>* X;  // poses of the bodies in the world
  Motion<T>* column;  // columns of the velocities, each in world axes at the origin of the body that the velocity moves
  const RneaLink<T>* link;  // null if accelerations are not needed
  // Set only if the kinematics are computed from q alone. in_parent: poses of the bodies in their parents; stored: columns of the joints that visit()
  // does not inline
  const Transform<T>* in_parent = nullptr;
  const Motion<T>* stored = nullptr;
  NumbersOf<T> numbers = {};
};

/// Compute poses and columns in the world from those in the parents.
template <class T>
SARRUS_NOINLINE void place(const Tree& tree, Arena& arena, Poses<T> X, const Motion<T>* columns, LoopState<T>& state) {
  state.numbers = tree.numbers<T>();
  state.X = arena.take<Transform<T>>(tree.links);
  state.column = arena.take<Motion<T>>(tree.nv);
  state.X[0] = Transform<T>::identity();
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    state.X[i] = b.parent == 0 ? X[i] : state.X[b.parent] * X[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto S = joint.subspace(columns + b.iv);
      for (int k = 0; k < joint.nv; ++k) state.column[b.iv + k] = turned(state.X[i].R, S.column[k]);
    });
  }
}

/// Compute the state from q alone.
template <class T> SARRUS_NOINLINE LoopState<T> place(const Tree& tree, Arena& arena, const T* q, const T* time,
                                                      const T* pfaffian_values) {
  LoopState<T> state = {q, nullptr, time, pfaffian_values, nullptr, nullptr, nullptr};
  Transform<T>* X = arena.take<Transform<T>>(tree.links);
  Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
  joint_poses(tree, arena, q, X, columns);
  place(tree, arena, Poses<T>{X}, columns, state);
  state.in_parent = X, state.stored = columns;
  return state;
}

/// Columns of the relative motion of a constraint's frames, one for each velocity that changes it.
template <class T> struct Columns {
  Motion<T>* column;  // columns in the child's axes at its origin; the sign is reversed for velocities that move the parent
  Motion<T> drive;  // velocity with which time functions move the parent's frame
  Transform<T> child;  // pose of the child's frame in the world
  T mobility, speed;  // sum of 1/M_ii and sum of the squares of these velocities
};

/// Move a frame of the user's description by a gimbal of time functions g(t): X becomes X R^T Gimbal(g(t)) R, where R rotates the joint's axis onto
/// z. V and A receive the velocity and the apparent acceleration of this motion, in the moved frame.
template <class T> SARRUS_NOINLINE void carry(const Constraint& c, const NumbersOf<T>& numbers, const T* time, Transform<T>& X,
                                              Motion<T>& V, Motion<T>& A) {
  T q[6], sin[3], cos[3], v[6], a[6];
  for (int k = 0; k < 6; ++k) {
    T x[3] = {T(0.0), T(0.0), T(0.0)};
    if (c.carried[k]) evaluate(*c.carried[k], time, x);
    q[k] = x[0], v[k] = x[1], a[k] = x[2];
  }
  sincos(3, q, sin, cos);
  JointConstants all;
  all.free = 63;
  const Coordinates<T> coordinates = {q, sin, cos, {&all}};
  const Mat3<T> R = numbers(c.R_described);
  X = X * pure_rotation(Mat3<T>(R.transpose())) * Gimbal<6>::transform(coordinates) * pure_rotation(R);
  const auto S = Gimbal<6>::subspace(coordinates);
  V = in_axes(R, S * v);
  A = in_axes(R, S * a + Gimbal<6>::subspace_rate(coordinates, v) * v);
}

/// Target pose of a frame, from values that the caller supplies: a point, or the rows of a pose matrix.
template <class T> SARRUS_INLINE Transform<T> target_pose(const Constraint& c, const T* values) {
  Transform<T> X = Transform<T>::identity();
  const int step = c.turns ? 4 : 1;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j + 1 < step; ++j) X.R(i, j) = values[step * i + j];
    X.p(i) = values[step * i + step - 1];
  }
  return X;
}

template <class T> SARRUS_INLINE Transform<T> frame_on_parent(const LoopState<T>& s, const Constraint& c) {
  if (c.target == Target::frame && s.pfaffian_values) return target_pose(c, s.pfaffian_values + c.values);
  const Transform<T> X = s.numbers(c.X_parent);
  return c.parent == 0 ? X : s.X[c.parent] * X;
}

/// Compute the relative acceleration of the frames at zero joint acceleration. If time functions move the parent's frame, `carried` is the velocity
/// of that motion and A its apparent acceleration.
template <class T>
SARRUS_INLINE void relative_acceleration(const LoopState<T>& s, const Constraint& c, const Transform<T>& X_child,
                                         const Motion<T>& carried, const Motion<T>& A, RelativeMotion<T>& m) {
  const Mat3<T> R_child = c.in_world ? Mat3<T>(s.X[c.child].R.transpose()) : s.numbers(c.X_child.R);
  const auto motion_at = [&](int link, const Vec3<T>& p, const Mat3<T>& R, Vec3<T>& w, Vec3<T>& dw, Vec3<T>& a) SARRUS_INLINED {
    // R: rotation from the child's axes to the axes of the body
    const RneaLink<T>& b = s.link[link];
    w = transpose_times(R, b.w), dw = transpose_times(R, b.dw);
    a = transpose_times(R, Vec3<T>(b.a + b.Omega * p));
  };
  Vec3<T> dw_child, a_child, w_parent, dw_parent, a_parent;
  motion_at(c.child, s.numbers(c.X_child.p), R_child, m.w_child, dw_child, a_child);
  if (c.parent == 0) {
    w_parent = dw_parent = zero3<T>();
    a_parent = transpose_times(X_child.R, s.link[0].a);
  } else {
    const Transform<T>& X = s.X[c.parent];
    motion_at(c.parent, transpose_times(X.R, Vec3<T>(X_child.p - X.p)), Mat3<T>(X.R.transpose()) * X_child.R, w_parent, dw_parent,
              a_parent);
  }
  if (c.driven) {
    // the moved frame rotates with w_parent + w_d; its point at the child's origin has the velocity u_d in addition to that of the parent
    const Vec3<T>&w_d = carried.angular, &u_d = carried.linear;
    const Vec3<T> r = transpose_times(m.X.R, m.X.p);  // vector from the moved frame's origin to the child's, in the child's axes
    const Vec3<T> dw_d = transpose_times(m.X.R, A.angular);
    const Vec3<T> a_origin = transpose_times(m.X.R, A.linear) + cross(w_d, Vec3<T>(u_d - cross(w_d, r)));
    a_parent = a_parent + cross(Vec3<T>(w_parent * T(2.0)), u_d) + a_origin + cross(dw_d, r) + cross(w_d, cross(w_d, r));
    dw_parent = dw_parent + dw_d + cross(w_parent, w_d);
    w_parent = w_parent + w_d;
  }
  m.w_parent = w_parent;
  m.dw = dw_child - dw_parent;
  m.a = a_child - a_parent;
  m.acceleration_size.angular =
      dot(dw_child, dw_child) + dot(dw_parent, dw_parent) + dot(m.w_child, m.w_child) * dot(w_parent, w_parent);
  m.acceleration_size.linear = dot(a_child, a_child) + dot(a_parent, a_parent);
  if (c.in_world && c.target == Target::frame) m.w_child = zero3<T>();  // the rows' axes do not rotate
}

/// Compute the child's frame in the world, m.X on request, and the velocity and apparent acceleration with which time functions move the parent's
/// frame.
template <class T>
SARRUS_INLINE void relative_pose(const LoopState<T>& s, const Constraint& c, bool posed, RelativeMotion<T>& m, Columns<T>& l,
                                 Motion<T>& A_drive) {
  l.child = s.X[c.child] * s.numbers(c.X_child);
  if (c.in_world) l.child.R = Mat3<T>::Identity();
  l.drive = Motion<T>::zero();
  if (!posed && !c.driven) return;
  Transform<T> X_parent = frame_on_parent(s, c);
  if (c.driven) carry(c, s.numbers, s.time, X_parent, l.drive, A_drive);
  m.X = {Mat3<T>(X_parent.R.transpose()) * l.child.R, transpose_times(X_parent.R, Vec3<T>(l.child.p - X_parent.p))};
}
/// Subtract the motion that time functions prescribe, and complete m. Call this function after m.V is set for the frames fixed to the bodies.
template <class T>
SARRUS_INLINE void complete_relative_motion(const LoopState<T>& s, const Constraint& c, const Transform<T>& X_child,
                                            const Motion<T>& A_drive, RelativeMotion<T>& m, Columns<T>& l) {
  if (c.driven) {  // subtract the motion of the drive
    l.drive = m.X.to_child(l.drive);
    m.V = m.V + l.drive * T(-1.0);
  }
  m.numbers = s.numbers;
  m.target = c.target == Target::coordinates && s.pfaffian_values ? s.pfaffian_values + c.values : nullptr;
  m.accelerates = s.link;
  if (m.accelerates) relative_acceleration(s, c, X_child, l.drive, A_drive, m);
}

/// Compute the relative motion. `posed`: also compute m.X. `mobility` (1/M_ii, or null): also compute m.velocity_size and l.mobility.
template <class T>
SARRUS_INLINE void relative_motion(const Tree& tree, Arena& arena, const LoopState<T>& s, const Constraint& c,
                                   RelativeMotion<T>& m, Columns<T>& l, bool posed, const T* mobility) {
  Motion<T> A_drive;
  relative_pose(s, c, posed, m, l, A_drive);
  const Transform<T> X_child = l.child;

  l.column = arena.take<Motion<T>>(c.columns);
  m.V = Motion<T>::zero();
  m.velocity_size.angular = m.velocity_size.linear = l.mobility = l.speed = T(0.0);
  // for two coincident points the computed lever arm is a rounding error; set it to zero
  const T arm_rounding = dot(X_child.p, X_child.p) * T(1e-4);
  for (int i = 0; i < c.columns; ++i) {
    const int k = c.column[i];
    const Motion<T>& world = s.column[k];
    const Vec3<T> r = X_child.p - s.X[tree.column_link[k]].p;
    Motion<T>& column = l.column[i];
    column.linear = transpose_times(X_child.R, Vec3<T>(world.linear + cross(world.angular, r)));
    column.angular = c.turns ? transpose_times(X_child.R, world.angular) : zero3<T>();
    if (i >= c.child_columns) column = column * T(-1.0);
    if (mobility) {
      l.mobility += mobility[k] * s.numbers(tree.per_unit_square[k]);
      const T turn = dot(world.angular, world.angular) * mobility[k];
      m.velocity_size.angular += turn;
      m.velocity_size.linear += dot(world.linear, world.linear) * mobility[k] + (dot(r, r) + arm_rounding) * turn;
    }
    if (s.v) m.V = m.V + column * s.v[k], l.speed += s.v[k] * s.v[k] * s.numbers(tree.per_unit_square[k]);
  }
  if (mobility) {  // if no velocity moves the row, its gap is relative to 1 rad or to the mechanism's length
    l.mobility = select(l.mobility > T(0.0), l.mobility, T(1.0));
    const T angular = l.mobility, linear = angular * square(T(s.numbers(tree.length)));
    m.velocity_size.angular = select(m.velocity_size.angular > T(0.0), m.velocity_size.angular, angular);
    m.velocity_size.linear = select(m.velocity_size.linear > T(0.0), m.velocity_size.linear, linear);
  }
  complete_relative_motion(s, c, X_child, A_drive, m, l);
}

}  // namespace sarrus
