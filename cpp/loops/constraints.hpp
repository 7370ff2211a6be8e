// The rows of all constraints in one state: J with J v = c, phi and gamma, as each kind in constraints/ tells of its own.
#pragma once

#include "../dynamics/rnea.hpp"

namespace sarrus {

/// Where the bodies are and, if asked for, how they accelerate while the joints' accelerations are zero.
template <class T> struct LoopState {
  const T *q, *v;  // v may be null: at rest
  const T *time, *given;  // may be null: time 0, no Pfaffian values
  Transform<T>* X;  // of the bodies, in the world
  Motion<T>* column;  // of the velocities, in world axes at the origin of the body that they move
  const RneaBody<T>* body;  // null: no accelerations asked
  const Transform<T>* in_parent = nullptr;  // if made from q alone: the bodies' poses in their parents,
  const Motion<T>* stored = nullptr;  // and the columns of joints that visit() does not inline
};

/// Poses and columns in the world from those in the parents.
template <class T>
SARRUS_NOINLINE void place(const Tree& tree, Arena& arena, Poses<T> X, const Motion<T>* columns, LoopState<T>& state) {
  state.X = arena.take<Transform<T>>(tree.bodies);
  state.column = arena.take<Motion<T>>(tree.nv);
  state.X[0] = Transform<T>::identity();
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& b = tree.body[i];
    state.X[i] = b.parent == 0 ? X[i] : state.X[b.parent] * X[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto S = joint.subspace(columns + b.iv);
      for (int k = 0; k < joint.nv; ++k) state.column[b.iv + k] = turned(state.X[i].R, S.column[k]);
    });
  }
}

/// From q alone.
template <class T> SARRUS_NOINLINE LoopState<T> place(const Tree& tree, Arena& arena, const T* q, const T* time, const T* given) {
  LoopState<T> state = {q, nullptr, time, given, nullptr, nullptr, nullptr};
  Transform<T>* X = arena.take<Transform<T>>(tree.bodies);
  Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
  joint_poses(tree, arena, q, X, columns);
  place(tree, arena, Poses<T>{X}, columns, state);
  state.in_parent = X, state.stored = columns;
  return state;
}

/// A state that is farther off the loops is not one of this mechanism, and accelerations would mean nothing; nearer, it may be measured.
constexpr double off_loops_limit = 1e-3;  // [rad, m; of the velocities, or of 1 rad/s, m/s]

/// Whether a state is off the loops: whether the velocities that some row touches would have to move by more than the limit to close it, or
/// to change by more than that share of what they are, but no less than 1.
template <class T> struct OffLoops {
  T found = T(0.0);  // 1: a velocity is forbidden; 2: a loop stands open

  /// Squares: of gap and rate along a row; of the row's change with a unit of the velocities, weighed by their mobilities; the sum of these;
  /// the sum of the velocities' squares. (No division: this stands on the hottest path.)
  SARRUS_INLINE void see(const T& gap, const T& rate, const T& change, const T& mobility, const T& speed) {
    const T size = select(change > T(0.0), change, mobility) * T(off_loops_limit * off_loops_limit);
    const auto opens = gap * mobility > size, slips = rate * mobility > size * (T(1.0) + speed);
    found = select(opens, T(2.0), select(both(slips, found < T(1.0)), T(1.0), found));
  }
};

/// The answers, one place a row in the order of the constraints. Null: not asked for.
template <class T> struct ConstraintRows {
  T* J = nullptr;  // blocks, rows x columns, column by column
  T* target = nullptr;  // c
  T* gamma = nullptr;
  T* residual = nullptr;
  const T* mobility = nullptr;  // 1/M_ii of the velocities: with it,
  T* scale = nullptr;  // the size that J M^-1 J^T would have if the row were no small difference of large numbers
  T* gamma_size = nullptr;  // size, squared, of what gamma is the difference of: what its rounding is to be compared with
  OffLoops<T>* off = nullptr;  // with scale

  SARRUS_INLINE void set_scale(int row, const T& size) const {
    if (scale) scale[row] = select(size > T(0.0), size, T(1.0));
  }
};

/// What ties the velocities that one constraint between bodies touches to the relative motion of its frames.
template <class T> struct Columns {
  Motion<T>* column;  // child's axes at its origin, those of the parent negative
  Motion<T> drive;  // velocity of the parent's frame on the parent, seen there
  Transform<T> child;  // its frame in the world
  T mobility, speed;  // of the velocities: sum of 1/M_ii, sum of squares
};

/// A frame that is carried along by a gimbal, as both were described: X becomes X R^T Gimbal(g(t)) R, where R turns the joint's axis onto
/// z. V and A (apparent) are what it adds, in the moved frame.
template <class T> SARRUS_NOINLINE void carry(const Constraint& c, const T* time, Transform<T>& X, Motion<T>& V, Motion<T>& A) {
  T q[6], sin[3], cos[3], v[6], a[6];
  for (int k = 0; k < 6; ++k) {
    T x[3] = {T(0.0), T(0.0), T(0.0)};
    if (c.carried[k]) evaluate(*c.carried[k], time, x);
    q[k] = x[0], v[k] = x[1], a[k] = x[2];
  }
  sincos(3, q, sin, cos);
  JointConstants all;
  all.mask = 63;
  const Coordinates<T> coordinates = {q, sin, cos, &all};
  const Mat3<T> R = cast<T>(c.told_in);
  X = X * pure_rotation(Mat3<T>(R.transpose())) * Gimbal<6>::transform(coordinates) * pure_rotation(R);
  const auto S = Gimbal<6>::subspace(coordinates);
  V = in_axes(R, S * v);
  A = in_axes(R, S * a + Gimbal<6>::subspace_rate(coordinates, v) * v);
}

template <class T> SARRUS_INLINE Transform<T> frame_on_parent(const LoopState<T>& s, const Constraint& c) {
  const Transform<T> X = c.X_parent.template cast<T>();
  return c.parent == 0 ? X : s.X[c.parent] * X;
}

/// `posed`: m.X is wanted too; `mobility`: m.velocity_size, l.mobility.
template <class T>
SARRUS_INLINE void relative_motion(const Tree& tree, Arena& arena, const LoopState<T>& s, const Constraint& c,
                                   RelativeMotion<T>& m, Columns<T>& l, bool posed, const T* mobility) {
  const Transform<T> X_child = s.X[c.child] * c.X_child.template cast<T>();
  l.child = X_child;
  Motion<T> A_drive;
  l.drive = Motion<T>::zero();
  if (posed || c.driven) {
    Transform<T> X_parent = frame_on_parent(s, c);
    if (c.driven) carry(c, s.time, X_parent, l.drive, A_drive);
    m.X = {times(Mat3<T>(X_parent.R.transpose()), X_child.R), transpose_times(X_parent.R, Vec3<T>(X_child.p - X_parent.p))};
  }

  l.column = arena.take<Motion<T>>(c.columns);
  m.V = Motion<T>::zero();
  m.velocity_size.angular = m.velocity_size.linear = l.mobility = l.speed = T(0.0);
  m.acceleration_size.angular = m.acceleration_size.linear = T(0.0);
  const T far = dot(X_child.p, X_child.p) * T(1e-4);  // an arm of no length is the rounding of two places
  for (int i = 0; i < c.columns; ++i) {
    const int k = c.column[i];
    const Motion<T>& world = s.column[k];
    const Vec3<T> r = X_child.p - s.X[tree.column_body[k]].p;
    Motion<T>& here = l.column[i];
    here.linear = transpose_times(X_child.R, Vec3<T>(world.linear + cross(world.angular, r)));
    here.angular = c.turns ? transpose_times(X_child.R, world.angular) : zero3<T>();
    if (i >= c.own) here = here * T(-1.0);
    if (mobility) {
      l.mobility += mobility[k];
      const T turn = dot(world.angular, world.angular) * mobility[k];
      m.velocity_size.angular += turn;
      m.velocity_size.linear += dot(world.linear, world.linear) * mobility[k] + (dot(r, r) + far) * turn;
    }
    if (s.v) m.V = m.V + here * s.v[k], l.speed += s.v[k] * s.v[k];
  }
  // the drive moves the parent's frame: seen from the child it is taken away
  Motion<T> carried = Motion<T>::zero();
  if (c.driven) {
    carried = m.X.to_child(l.drive);
    m.V = m.V + carried * T(-1.0);
    l.drive = carried;
  }
  m.accelerates = s.body;
  if (!m.accelerates) return;

  const auto motion_at = [&](int body, const Vec3<T>& p, const Mat3<T>& R, Vec3<T>& w, Vec3<T>& dw, Vec3<T>& a) SARRUS_INLINED {
    // R: the child's axes in the body's
    const RneaBody<T>& b = s.body[body];
    w = transpose_times(R, b.w), dw = transpose_times(R, b.dw);
    a = transpose_times(R, Vec3<T>(b.a + times(b.Omega, p)));
  };
  Vec3<T> dw_child, a_child, w_parent, dw_parent, a_parent;
  motion_at(c.child, cast<T>(c.X_child.p), cast<T>(c.X_child.R), m.w_child, dw_child, a_child);
  if (c.parent == 0) {
    w_parent = dw_parent = zero3<T>();
    a_parent = transpose_times(X_child.R, s.body[0].a);
  } else {
    const Transform<T>& X = s.X[c.parent];
    motion_at(c.parent, transpose_times(X.R, Vec3<T>(X_child.p - X.p)), times(Mat3<T>(X.R.transpose()), X_child.R), w_parent,
              dw_parent, a_parent);
  }
  if (c.driven) {
    // the moved frame turns with w_parent + w_d; a point that it carries along at the child's origin moves with u_d besides
    const Vec3<T>&w_d = carried.angular, &u_d = carried.linear;
    const Vec3<T> r = transpose_times(m.X.R, m.X.p);  // from the moved frame's origin, child's axes
    const Vec3<T> dw_d = transpose_times(m.X.R, A_drive.angular);
    const Vec3<T> a_origin = transpose_times(m.X.R, A_drive.linear) + cross(w_d, Vec3<T>(u_d - cross(w_d, r)));
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
}

/// The rows of a constraint between two bodies.
template <class T> SARRUS_INLINE void evaluate(const Constraint& c, const RelativeMotion<T>& m, Row<T>* rows) {
  visit_constraint(c.kind, [&](const auto& kind) SARRUS_INLINED {
    if constexpr (kind.between_bodies) kind.evaluate(m, rows);
  });
}

/// A joint whose rows are plain components of the relative motion, the most frequent kind: neither the pose of one frame in the other nor
/// forces are needed, but for the residual. How far it is off is told by chords instead of angles, from the axes in the world: what a joint
/// leaves free is all, nothing, or what has to do with z.
template <class T>
SARRUS_INLINE void plain_joint_rows(const LoopState<T>& s, const Constraint& c, const LoopJoint& joint,
                                    const RelativeMotion<T>& m, const Columns<T>& l, bool moving, const ConstraintRows<T>& out) {
  const auto component = [&](const Motion<T>& V, int k) SARRUS_INLINED { return k < 3 ? V.angular(k) : V.linear(k - 3); };
  if (out.off) {
    int turns = 0, slides = 0;
    Size<T> rate = {T(0.0), T(0.0)}, gap = {T(0.0), T(0.0)};
    for (int r = 0; r < c.rows; ++r) {
      const int k = joint.component[r];
      if (k < 3)
        rate.angular += square(m.V.angular(k)), ++turns;
      else
        rate.linear += square(m.V.linear(k - 3)), ++slides;
    }
    Transform<T> parent;
    if (c.driven)
      parent = {times(l.child.R, Mat3<T>(m.X.R.transpose())), l.child.p - times(l.child.R, transpose_times(m.X.R, m.X.p))};
    else
      parent = frame_on_parent(s, c);
    const Vec3<T> z = Vec3<T>(parent.R.col(2)), d = l.child.p - parent.p;
    gap.linear = slides > 1 ? dot(d, d) : T(0.0);
    if (slides == 1 || slides == 2) gap.linear = slides == 1 ? square(dot(z, d)) : gap.linear - square(dot(z, d));
    if (turns == 2) gap.angular = T(2.0) - dot(z, Vec3<T>(l.child.R.col(2))) * T(2.0);
    if (turns == 3) {
      gap.angular = T(3.0);
      for (int k = 0; k < 3; ++k) gap.angular -= dot(Vec3<T>(parent.R.col(k)), Vec3<T>(l.child.R.col(k)));
    }
    out.off->see(gap.angular, rate.angular, m.velocity_size.angular, l.mobility, l.speed);
    out.off->see(gap.linear, rate.linear, m.velocity_size.linear, l.mobility, l.speed);
  }
  if (out.gamma_size)
    for (int r = 0; r < c.rows; ++r)
      out.gamma_size[c.row + r] = joint.component[r] < 3 ? m.acceleration_size.angular : m.acceleration_size.linear;
  if (out.residual) {
    ClosingJoint<T> closing;
    close_joint(joint.joint, joint.constants, m.X, m.V, closing);
    for (int r = 0; r < c.rows; ++r) out.residual[c.row + r] = closing.residual[r];
  }
  if (out.J)
    for (int i = 0; i < c.columns; ++i) {
      T six[6];
      store(l.column[i], six);
      for (int r = 0; r < c.rows; ++r) out.J[c.entry + i * c.rows + r] = six[joint.component[r]];
    }
  Motion<T> A;
  if (moving) A = joint.apparent_acceleration(m);
  for (int r = 0; r < c.rows; ++r) {
    const int k = joint.component[r];
    if (out.target) out.target[c.row + r] = component(l.drive, k);
    if (moving) out.gamma[c.row + r] = -component(A, k);
    out.set_scale(c.row + r, k < 3 ? m.velocity_size.angular : m.velocity_size.linear);
  }
}

/// The rows of any other constraint between bodies, which its kind tells by their forces.
template <class T>
SARRUS_NOINLINE void force_rows(const Constraint& c, const RelativeMotion<T>& m, const Columns<T>& l, bool moving,
                                const ConstraintRows<T>& out) {
  Row<T> rows[6];
  evaluate(c, m, rows);
  const bool joint = std::holds_alternative<LoopJoint>(c.kind);
  T gap = T(0.0), slip = T(0.0);
  for (int r = 0; r < c.rows; ++r) {
    const Row<T>& row = rows[r];
    if (out.J)
      for (int i = 0; i < c.columns; ++i) out.J[c.entry + i * c.rows + r] = dot(l.column[i], row.force);
    if (out.target) out.target[c.row + r] = dot(l.drive, row.force);
    if (out.residual) out.residual[c.row + r] = row.residual;
    if (moving) out.gamma[c.row + r] = row.gamma;
    if (out.gamma_size) out.gamma_size[c.row + r] = m.acceleration_size.linear + m.acceleration_size.angular;
    out.set_scale(c.row + r, row.size);
    if (!out.off) continue;
    const T off = square(row.residual), rate = square(dot(m.V, row.force));
    gap += off, slip += rate;
    if (joint) out.off->see(off, rate, out.scale[c.row + r], l.mobility, l.speed);
  }
  // a joint's rows are angles and lengths, one by one; those of other kinds the parts of one length
  if (out.off && !joint) out.off->see(gap, slip, m.velocity_size.linear, l.mobility, l.speed);
}

template <class T>
SARRUS_NOINLINE void rows_between_bodies(const Tree& tree, Arena& arena, const LoopState<T>& s, const Constraint& c,
                                         const ConstraintRows<T>& out) {
  const Arena::Scope scope(arena);
  RelativeMotion<T> m;
  Columns<T> l;
  const LoopJoint* joint = std::get_if<LoopJoint>(&c.kind);
  const bool plain = joint && joint->plain(), moving = out.gamma && s.body;
  relative_motion(tree, arena, s, c, m, l, !plain || out.residual, out.scale ? out.mobility : nullptr);
  plain ? plain_joint_rows(s, c, *joint, m, l, moving, out) : force_rows(c, m, l, moving, out);
}

template <class T> SARRUS_NOINLINE void rows_between_coordinates(const LoopState<T>& s, const Constraint& c,
                                                                 const ConstraintRows<T>& out) {
  const CoordinateState<T> state = {s.q, s.v, s.time, s.given ? s.given + c.values : nullptr, c.coordinate, c.column, c.columns};
  visit_constraint(c.kind, [&](const auto& kind) SARRUS_INLINED {
    if constexpr (!kind.between_bodies) {
      for (int r = 0; r < c.rows; ++r) {
        T size = T(0.0), rate = T(0.0), mobility = T(0.0), speed = T(0.0);
        const CoordinateRow<T> row = kind.evaluate(state, r, [&](int i, const T& slope, const T& terms) SARRUS_INLINED {
          if (out.J) out.J[c.entry + i * c.rows + r] = slope;
          if (out.scale) size += terms * terms * out.mobility[c.column[i]], mobility += out.mobility[c.column[i]];
          if (s.v) rate += slope * s.v[c.column[i]], speed += square(s.v[c.column[i]]);
        });
        if (out.target) out.target[c.row + r] = row.velocity;
        if (out.residual) out.residual[c.row + r] = row.residual;
        if (out.gamma) out.gamma[c.row + r] = row.gamma;
        if (out.gamma_size) out.gamma_size[c.row + r] = square(row.gamma);
        out.set_scale(c.row + r, size);
        if (out.off) out.off->see(square(row.residual), square(T(rate - row.velocity)), size, mobility, speed);
      }
    }
  });
}

/// All constraints from `begin` to `end`.
template <class T>
SARRUS_INLINE void constraint_rows(const Tree& tree, Arena& arena, const LoopState<T>& s, const ConstraintRows<T>& out, int begin,
                                   int end) {
  for (int i = begin; i < end; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    c.child < 0 ? rows_between_coordinates(s, c, out) : rows_between_bodies(tree, arena, s, c, out);
  }
}

/// out += scale * J v, one a row.
template <class T> SARRUS_INLINE void add_motion_along_rows(const Tree& tree, const T* J, const T* v, const T& scale, T* out) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k) {
      const T along = v[c.column[k]] * scale;
      for (int r = 0; r < c.rows; ++r) out[c.row + r] += *J++ * along;
    }
  }
}

/// tau += J^T force.
template <class T> SARRUS_INLINE void add_constraint_forces(const Tree& tree, const T* J, const T* force, T* tau) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) tau[c.column[k]] += *J++ * force[c.row + r];
  }
}

template <class T> SARRUS_INLINE T sum_of_squares(const T* x, int n) {
  T sum = T(0.0);
  for (int k = 0; k < n; ++k) sum += x[k] * x[k];
  return sum;
}

}  // namespace sarrus
