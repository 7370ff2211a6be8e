// What the constraints of a mechanism are in one state: residual phi(q, t), J with J v = c(q, t), and gamma with J a = gamma.
//
//   closing joint   phi: how far the child's frame is from a pose that the joint can take      rows Phi_c^T V      (thesis 2.16, 5.22)
//   distance        phi = |d| - length                                                        row  n^T u, n = d/|d|
//   rolling         phi = height of the lowest point, 0, 0     the bodies' points in contact have one velocity    (slides 4.6)
//   coupler         phi = sum P_i(q_i) - offset - g(t)                                        row  P_i'(q_i)
//   Pfaffian        A(q) v = c, no phi
//
// V is the velocity of the child's frame relative to the parent's, in the child's axes at the child's origin.
#pragma once

#include "../dynamics/rnea.hpp"
#include "../joints/closing.hpp"
#include "tolerances.hpp"

namespace sarrus {

/// Where the bodies are and, if asked for, how they accelerate while the joints' accelerations are zero.
template <class T> struct LoopState {
  const T *q, *v;  // v may be null: at rest
  const T *time, *given;  // may be null: time 0, no Pfaffian numbers
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

/// Whether a state is off the loops: whether the velocities that some row touches would have to move by more than the limit to close it, or
/// to change by more than that share of what they are, but no less than 1.
template <class T> struct OffLoops {
  T found = T(0.0);  // 1: a velocity is forbidden; 2: a loop stands open

  /// Squares: of gap and rate along a row; of the row's change with a unit of the velocities, weighed by their mobilities; the sum of these;
  /// the sum of the velocities' squares. (No division: this stands on the hottest path.)
  SARRUS_INLINE void see(const T& gap, const T& rate, const T& change, const T& mobility, const T& speed) {
    const T size = select(change > T(0.0), change, mobility) * T(tolerances::off_loops * tolerances::off_loops);
    const auto opens = gap * mobility > size, slips = rate * mobility > size * (T(1.0) + speed);
    found = select(opens, T(2.0), select(both(slips, found < T(1.0)), T(1.0), found));
  }
};

/// What is wanted of all constraints; null: not wanted.
template <class T> struct ConstraintRows {
  T* J = nullptr;  // blocks, rows x columns, column by column
  T* target = nullptr;  // c
  T* gamma = nullptr;
  T* residual = nullptr;
  const T* mobility = nullptr;  // 1/M_ii of the velocities: with it,
  T* scale = nullptr;  // the size that J M^-1 J^T would have if the row were no small difference of large numbers
  T* terms = nullptr;  // size, squared, of what gamma is the difference of: what its rounding is to be compared with
  OffLoops<T>* off = nullptr;  // with scale
};

/// Value, rate and acceleration of a law. Rare, so lane by lane.
inline void evaluate(const Law& law, double t, double* out) {
  int piece = 0;
  while (piece + 1 < law.pieces && t >= law.start[piece + 1]) ++piece;
  const double* c = law.coefficient + piece * law.terms;
  const double s = t - law.start[piece];
  out[0] = out[1] = out[2] = 0.0;
  for (int k = law.terms - 1; k >= 0; --k) {  // Horner, with its derivatives
    out[2] = out[2] * s + 2.0 * out[1];
    out[1] = out[1] * s + out[0];
    out[0] = out[0] * s + c[k];
  }
  for (int h = 0; h < law.harmonics; ++h) {
    const double *x = law.harmonic + 3 * h, phase = x[1] * t + x[2], s1 = x[0] * std::sin(phase);
    out[0] += s1, out[1] += x[0] * x[1] * std::cos(phase), out[2] -= x[1] * x[1] * s1;
  }
}
inline void evaluate(const Law& law, const double* time, double (&out)[3]) { evaluate(law, time ? *time : 0.0, out); }
template <int W> void evaluate(const Law& law, const Packet<W>* time, Packet<W> (&out)[3]) {
  for (int l = 0; l < W; ++l) {
    double x[3];
    evaluate(law, time ? time->lanes[l] : 0.0, x);
    for (int i = 0; i < 3; ++i) out[i].lanes[l] = x[i];
  }
}

/// How the child's frame moves relative to the parent's.
template <class T> struct RelativeMotion {
  Transform<T> X;  // pose of the child's frame in the parent's
  Transform<T> child;  // in the world
  Motion<T>* column;  // of the velocities that the constraint touches, child's axes at its origin, those of the parent negative
  Motion<T> V;
  Motion<T> drive;  // velocity of the parent's frame on the parent, seen there
  Vec3<T> w_parent, w_child;  // angular velocities
  Vec3<T> dw, a;  // alpha_child - alpha_parent; a_child - acceleration of the parent's point that is there; joints' a = 0
  T turning, sliding;  // squares of what these are differences of
  T turns,
      slides;  // sizes, squared, of the columns' parts, by what they are made of: no rounding of a difference counts as motion
  T mobility, speed;  // of the velocities: sum of 1/M_ii, sum of squares
};

/// A frame that is carried along by a gimbal, as both were described: X becomes X R^T Gimbal(g(t)) R, where R turns the joint's axis onto
/// z. V and A (apparent) are what it adds, in the moved frame.
template <class T> SARRUS_NOINLINE void carry(const Constraint& c, const T* time, Transform<T>& X, Motion<T>& V, Motion<T>& A) {
  T q[6], sin[3], cos[3], v[6], a[6];
  for (int k = 0; k < 6; ++k) {
    T x[3] = {T(0.0), T(0.0), T(0.0)};
    if (c.laws[k]) evaluate(*c.laws[k], time, x);
    q[k] = x[0], v[k] = x[1], a[k] = x[2];
  }
  sincos(3, q, sin, cos);
  JointConstants all;
  all.mask = 63;
  const Coordinates<T> coordinates = {q, sin, cos, &all};
  const Mat3<T> R = cast<T>(c.R_joint);
  X = X * pure_rotation(Mat3<T>(R.transpose())) * Gimbal<6>::transform(coordinates) * pure_rotation(R);
  const auto S = Gimbal<6>::subspace(coordinates);
  V = in_axes(R, S * v);
  A = in_axes(R, S * a + Gimbal<6>::subspace_rate(coordinates, v) * v);
}

/// Where a frame is to be, as the call gives it: a point, or the rows of a pose.
template <class T> SARRUS_INLINE Transform<T> target_pose(const Constraint& c, const T* given) {
  Transform<T> X = Transform<T>::identity();
  const int step = c.turns ? 4 : 1;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j + 1 < step; ++j) X.R(i, j) = given[step * i + j];
    X.p(i) = given[step * i + step - 1];
  }
  return X;
}

/// `posed`: m.X is wanted too; `mobility`: m.turns and m.slides.
template <class T>
SARRUS_INLINE void relative_motion(const Tree& tree, Arena& arena, const LoopState<T>& s, const Constraint& c,
                                   RelativeMotion<T>& m, bool posed = true, const T* mobility = nullptr) {
  const Transform<T> X_child = s.X[c.child] * c.X_child.template cast<T>();
  m.child = X_child;
  Motion<T> A_drive;
  m.drive = Motion<T>::zero();
  if (posed || c.driven) {
    Transform<T> X_parent = c.parent == 0 ? c.X_parent.template cast<T>() : s.X[c.parent] * c.X_parent.template cast<T>();
    if (c.aimed && s.given) X_parent = target_pose(c, s.given + c.given);
    if (c.driven) carry(c, s.time, X_parent, m.drive, A_drive);
    m.X = {times(Mat3<T>(X_parent.R.transpose()), X_child.R), transpose_times(X_parent.R, Vec3<T>(X_child.p - X_parent.p))};
  }

  m.column = arena.take<Motion<T>>(c.columns);
  m.V = Motion<T>::zero();
  m.turns = m.slides = m.mobility = m.speed = T(0.0);
  const T far = dot(X_child.p, X_child.p) * T(1e-4);  // an arm of no length is the rounding of two places
  for (int i = 0; i < c.columns; ++i) {
    const int k = c.column[i];
    const Motion<T>& world = s.column[k];
    const Vec3<T> r = X_child.p - s.X[tree.column_body[k]].p;
    Motion<T>& here = m.column[i];
    here.linear = transpose_times(X_child.R, Vec3<T>(world.linear + cross(world.angular, r)));
    here.angular = c.turns ? transpose_times(X_child.R, world.angular) : zero3<T>();
    if (i >= c.own) here = here * T(-1.0);
    if (mobility) {
      m.mobility += mobility[k];
      const T turn = dot(world.angular, world.angular) * mobility[k];
      m.turns += turn;
      m.slides += dot(world.linear, world.linear) * mobility[k] + (dot(r, r) + far) * turn;
    }
    if (s.v) m.V = m.V + here * s.v[k], m.speed += s.v[k] * s.v[k];
  }
  // the drive moves the parent's frame: seen from the child it is taken away
  Motion<T> carried = Motion<T>::zero();
  if (c.driven) {
    carried = m.X.to_child(m.drive);
    m.V = m.V + carried * T(-1.0);
    m.drive = carried;
  }
  if (!s.body) return;

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
  m.turning = dot(dw_child, dw_child) + dot(dw_parent, dw_parent) + dot(m.w_child, m.w_child) * dot(w_parent, w_parent);
  m.sliding = dot(a_child, a_child) + dot(a_parent, a_parent);
}

/// A row of a pair of bodies: the force that it exerts on the child, [moment; force] in the child's axes at its origin.
template <class T>
SARRUS_INLINE void put_row(const Constraint& c, const RelativeMotion<T>& m, int r, const Force<T>& row,
                           const ConstraintRows<T>& out) {
  if (out.J)
    for (int i = 0; i < c.columns; ++i) out.J[c.entry + i * c.rows + r] = dot(m.column[i], row);
  if (out.target) out.target[c.row + r] = dot(m.drive, row);
}

/// Squares of what a pair of bodies is off by in angles and in lengths, and of the rates.
template <class T>
SARRUS_INLINE void see_off(const RelativeMotion<T>& m, const T& turn, const T& slide, const T& turning, const T& sliding,
                           const ConstraintRows<T>& out) {
  out.off->see(turn, turning, m.turns, m.mobility, m.speed);
  out.off->see(slide, sliding, m.slides, m.mobility, m.speed);
}
template <class T> SARRUS_INLINE T square(const T& x) { return x * x; }

/// The same of a joint whose rows are plain components, without the pose of one frame in the other: chords instead of angles, from the axes
/// in the world. What a joint leaves free is all, nothing, or what has to do with z.
template <class T> SARRUS_INLINE void see_plain_joint(const LoopState<T>& s, const Constraint& c, const RelativeMotion<T>& m,
                                                      const ConstraintRows<T>& out) {
  T turning = T(0.0), sliding = T(0.0);
  int turns = 0, slides = 0;
  for (int r = 0; r < c.rows; ++r) {
    const int k = c.component[r];
    if (k < 3)
      turning += square(m.V.angular(k)), ++turns;
    else
      sliding += square(m.V.linear(k - 3)), ++slides;
  }
  Transform<T> parent;
  if (c.driven)
    parent = {times(m.child.R, Mat3<T>(m.X.R.transpose())), m.child.p - times(m.child.R, transpose_times(m.X.R, m.X.p))};
  else if (c.parent == 0)
    parent = c.X_parent.template cast<T>();
  else
    parent = s.X[c.parent] * c.X_parent.template cast<T>();
  const Vec3<T> z = Vec3<T>(parent.R.col(2)), d = m.child.p - parent.p;
  T turn = T(0.0), slide = slides > 1 ? dot(d, d) : T(0.0);
  if (slides == 1 || slides == 2) slide = slides == 1 ? square(dot(z, d)) : slide - square(dot(z, d));
  if (turns == 2) turn = T(2.0) - dot(z, Vec3<T>(m.child.R.col(2))) * T(2.0);
  if (turns == 3) {
    turn = T(3.0);
    for (int k = 0; k < 3; ++k) turn -= dot(Vec3<T>(parent.R.col(k)), Vec3<T>(m.child.R.col(k)));
  }
  see_off(m, turn, slide, turning, sliding, out);
}

template <class T>
void distance_row(const Constraint& c, const RelativeMotion<T>& m, bool moving, const ConstraintRows<T>& out) {
  // in the parent's turning axes the rod's end moves by u and accelerates by a - 2 w x u
  const Vec3<T> d = transpose_times(m.X.R, m.X.p), n = unit(d), &u = m.V.linear;
  put_row(c, m, 0, Force<T>{zero3<T>(), n}, out);
  const T length = sqrt(dot(d, d));
  if (out.residual) out.residual[c.row] = length - T(c.length);
  if (out.off) see_off(m, T(0.0), square(T(length - T(c.length))), T(0.0), square(dot(n, u)), out);
  if (!moving) return;
  const T along = dot(n, u);
  const Vec3<T> a = m.a - cross(m.w_parent, u) * T(2.0);
  out.gamma[c.row] = -(dot(n, a) + (dot(u, u) - along * along) / length);
}

/// The point of contact is at rho from the child's origin; both bodies have one velocity there: e . (u + w x rho) = 0 for three
/// directions e: the normal, along which that is the rate of the height, and two across it.
template <class T>
void rolling_rows(const Constraint& c, const RelativeMotion<T>& m, bool moving, const ConstraintRows<T>& out) {
  const Vec3<T> z = Vec3<T>(m.X.R.row(2)), d = transpose_times(m.X.R, m.X.p), &u = m.V.linear, &w = m.V.angular;
  Vec3<T> e[3], rho, rho_dot = zero3<T>();  // rates in the parent's turning axes
  T height;
  if (c.rolling == Rolling::sphere_on_sphere) {
    const double reach = c.length + c.other_radius;
    const T distance = sqrt(dot(d, d)), side = T(reach < 0.0 ? -1.0 : 1.0);
    e[0] = unit(d);
    rho = e[0] * (side * T(-c.length));
    rho_dot = (u - e[0] * dot(e[0], u)) * (side * T(-c.length) / distance);
    height = distance - T(std::abs(reach));
  } else {
    e[0] = z;
    rho = z * T(-c.length);
    if (c.rolling == Rolling::disc_on_plane) {
      // the lowest point of the rim: the normal's part across the axle, downwards
      const Vec3<T> axle = unit_motion<T>(2).angular, axle_dot = cross(w, axle);
      const T tilt = dot(z, axle);
      const Vec3<T> across = z - axle * tilt, across_dot = -(axle * dot(z, axle_dot) + axle_dot * tilt);
      const T share = T(1.0) / sqrt(dot(across, across));
      const Vec3<T> up = across * share;
      rho = up * T(-c.length);
      rho_dot = (across_dot - up * dot(up, across_dot)) * (share * T(-c.length));
    }
    height = dot(z, Vec3<T>(d + rho));
  }
  perpendiculars(e[0], e[1], e[2]);
  if (c.rolling != Rolling::sphere_on_sphere) e[1] = Vec3<T>(m.X.R.row(0)), e[2] = Vec3<T>(m.X.R.row(1));
  for (int r = 0; r < 3; ++r) put_row(c, m, r, Force<T>{cross(rho, e[r]), e[r]}, out);
  if (out.residual) out.residual[c.row] = height, out.residual[c.row + 1] = out.residual[c.row + 2] = T(0.0);
  if (out.off) {
    const Vec3<T> slip = u + cross(w, rho);
    T sliding = T(0.0);
    for (int r = 0; r < 3; ++r) sliding += square(dot(e[r], slip));
    see_off(m, T(0.0), square(height), T(0.0), sliding, out);
  }
  if (!moving) return;
  const Vec3<T> a =
      m.a - cross(m.w_parent, u) * T(2.0) + cross(Vec3<T>(m.dw - cross(m.w_parent, m.w_child)), rho) + cross(w, rho_dot);
  for (int r = 0; r < 3; ++r) out.gamma[c.row + r] = -dot(e[r], a);
}

/// The rows of a pair whose relative motion is known; `moving`: gamma too.
template <class T> SARRUS_INLINE void rows_of(const Constraint& c, const RelativeMotion<T>& m, bool moving,
                                              const ConstraintRows<T>& out) {
  const auto set_scale = [&](int r, T size) { out.scale[c.row + r] = select(size > T(0.0), size, T(1.0)); };
  if (out.terms)
    for (int r = 0; r < c.rows; ++r) {
      const bool plain_turn = c.component[r] >= 0 && c.component[r] < 3;
      out.terms[c.row + r] = plain_turn ? m.turning : m.sliding + (c.component[r] < 0 ? m.turning : T(0.0));
    }

  if (c.kind == ConstraintKind::distance) {
    distance_row(c, m, moving, out);
    if (out.scale) set_scale(0, m.slides);
    return;
  }
  if (c.kind == ConstraintKind::rolling) {
    rolling_rows(c, m, moving, out);
    for (int r = 0; r < 3 && out.scale; ++r) set_scale(r, m.slides + m.turns * T(c.length * c.length));
    return;
  }

  const bool plain = c.component[0] >= 0;
  ClosingJoint<T> joint;
  if (!plain || out.residual) close_joint(c.joint, c.constants, m.X, m.V, joint);
  if (out.residual)
    for (int r = 0; r < c.rows; ++r) out.residual[c.row + r] = joint.residual[r];
  Motion<T> A;  // the apparent acceleration, in the child's axes
  if (moving) A = {m.dw + cross(m.w_child, m.w_parent), m.a - cross(Vec3<T>(m.w_parent + m.w_child), m.V.linear)};
  if (plain) {
    if (out.J)
      for (int i = 0; i < c.columns; ++i) {
        T six[6];
        store(m.column[i], six);
        for (int r = 0; r < c.rows; ++r) out.J[c.entry + i * c.rows + r] = six[c.component[r]];
      }
    for (int r = 0; r < c.rows; ++r) {
      const int k = c.component[r];
      if (out.target) out.target[c.row + r] = k < 3 ? m.drive.angular(k) : m.drive.linear(k - 3);
      if (moving) out.gamma[c.row + r] = -(k < 3 ? A.angular(k) : A.linear(k - 3));
      if (out.scale) set_scale(r, k < 3 ? m.turns : m.slides);
    }
  } else {
    for (int r = 0; r < c.rows; ++r) {
      const Force<T>& row = joint.row[r];
      put_row(c, m, r, row, out);
      if (moving) out.gamma[c.row + r] = dot(joint.bias, row) - dot(A, row);
      if (out.scale) set_scale(r, m.turns * dot(row.angular, row.angular) + m.slides * dot(row.linear, row.linear));
      if (out.off) out.off->see(square(joint.residual[r]), square(dot(m.V, row)), out.scale[c.row + r], m.mobility, m.speed);
    }
  }
}

template <class T> SARRUS_NOINLINE void coupler_row(const LoopState<T>& s, const Constraint& c, const ConstraintRows<T>& out) {
  T g[3] = {T(0.0), T(0.0), T(0.0)};
  if (c.law) evaluate(*c.law, s.time, g);
  T value = -(T(c.offset) + g[0]), gamma = g[2], size = T(0.0), rate = -g[1], mobility = T(0.0), speed = T(0.0);
  for (int i = 0; i < c.terms; ++i) {
    const CouplerTerm& term = c.term[i];
    const T q = s.q[term.iq];
    T p = T(0.0), p1 = T(0.0), p2 = T(0.0), steepest = T(0.0);
    for (int k = term.degree; k >= 0; --k) {
      if (k > 0) steepest = steepest * abs(q) + T(k * std::abs(term.coefficient[k - 1]));
      p2 = p2 * q + T(2.0) * p1;
      p1 = p1 * q + p;
      p = p * q + T(k > 0 ? term.coefficient[k - 1] : 0.0);
    }
    value += p;
    if (out.J) out.J[c.entry + i] = p1;
    if (out.scale) size += steepest * steepest * out.mobility[term.iv], mobility += out.mobility[term.iv];
    if (s.v) gamma -= p2 * s.v[term.iv] * s.v[term.iv], rate += p1 * s.v[term.iv], speed += square(s.v[term.iv]);
  }
  if (out.off) out.off->see(square(value), square(rate), size, mobility, speed);
  if (out.residual) out.residual[c.row] = value;
  if (out.target) out.target[c.row] = g[1];
  if (out.gamma) out.gamma[c.row] = gamma;
  if (out.terms) out.terms[c.row] = gamma * gamma;
  if (out.scale) out.scale[c.row] = select(size > T(0.0), size, T(1.0));
}

/// Given with the call are, one after the other, A (row by row), c and gamma of each constraint whose rows depend on q.
template <class T> SARRUS_NOINLINE void pfaffian_rows(const LoopState<T>& s, const Constraint& c, const ConstraintRows<T>& out) {
  const T* given = c.pfaffian ? nullptr : s.given + c.given;
  for (int r = 0; r < c.rows; ++r) {
    T size = T(0.0), rate = -(given ? given[c.rows * c.columns + r] : T(c.value[r])), mobility = T(0.0), speed = T(0.0);
    for (int i = 0; i < c.columns; ++i) {
      const T x = given ? given[r * c.columns + i] : T(c.pfaffian[given ? 0 : r * c.columns + i]);
      if (out.J) out.J[c.entry + i * c.rows + r] = x;
      if (out.scale) size += x * x * out.mobility[c.column[i]], mobility += out.mobility[c.column[i]];
      if (s.v) rate += x * s.v[c.column[i]], speed += square(s.v[c.column[i]]);
    }
    if (out.off) out.off->see(T(0.0), square(rate), size, mobility, speed);
    if (out.residual) out.residual[c.row + r] = T(0.0);
    if (out.target) out.target[c.row + r] = given ? given[c.rows * c.columns + r] : T(c.value[r]);
    if (out.gamma) out.gamma[c.row + r] = given ? given[c.rows * (c.columns + 1) + r] : T(0.0);
    if (out.terms) out.terms[c.row + r] = out.gamma[c.row + r] * out.gamma[c.row + r];
    if (out.scale) out.scale[c.row + r] = select(size > T(0.0), size, T(1.0));
  }
}

template <class T>
SARRUS_NOINLINE void pair_rows(const Tree& tree, Arena& arena, const LoopState<T>& s, const Constraint& c,
                               const ConstraintRows<T>& out) {
  const Arena::Scope scope(arena);
  RelativeMotion<T> m;
  const bool plain = c.kind == ConstraintKind::joint && c.component[0] >= 0;
  relative_motion(tree, arena, s, c, m, !plain || out.residual, out.scale ? out.mobility : nullptr);
  if (out.off && plain) see_plain_joint(s, c, m, out);
  rows_of(c, m, out.gamma && s.body, out);
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

/// All constraints from `begin` to `end`.
template <class T>
SARRUS_INLINE void constraint_rows(const Tree& tree, Arena& arena, const LoopState<T>& s, const ConstraintRows<T>& out, int begin,
                                   int end) {
  for (int i = begin; i < end; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    switch (c.kind) {
      case ConstraintKind::coupler: coupler_row(s, c, out); break;
      case ConstraintKind::pfaffian: pfaffian_rows(s, c, out); break;
      default: pair_rows(tree, arena, s, c, out);
    }
  }
}

}  // namespace sarrus
