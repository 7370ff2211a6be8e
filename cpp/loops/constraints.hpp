// Rows of all constraints at one state: J with J v = c, phi and gamma, as the files in constraints/ define them.
#pragma once

#include "relative_motion.hpp"
#include "tolerances.hpp"

namespace sarrus {

/// Test if a state is off the loops. A row is violated if closing its gap needs a displacement of more than tolerances::off_loops, or if its rate
/// needs a change of velocity of more than that fraction of max(1, norm of the velocities).
template <class T> struct OffLoops {
  T fault = T(0.0);  // 1: the velocity violates the loops (J v != c); 2: a loop is open (phi != 0)
  // square of the largest gap below tolerances::off_loops and above rounding, measured as the displacement that closes it
  T open = T(0.0);

  /// Include a row r in the test. Arguments: squares of its gap and rate; `change`, the sum of J_rk^2 / M_kk over the velocities k; `mobility`, the
  /// sum of 1 / (M_kk unit_k^2) over the same velocities; `speed`, the sum of (v_k / unit_k)^2, with Tree::unit. (There is no division, because this
  /// code is on the hottest path.)
  SARRUS_INLINE void include(const T& gap, const T& rate, const T& change, const T& mobility, const T& speed) {
    const T size = select(change > T(0.0), change, mobility) * T(tolerances::off_loops * tolerances::off_loops);
    const auto opens = gap * mobility > size, slips = rate * mobility > size * (T(1.0) + speed);
    fault = select(opens, T(2.0), select(both(slips, fault < T(1.0)), T(1.0), fault));
    constexpr double rounding = tolerances::rounding / tolerances::off_loops;
    if (const auto visible = gap * mobility > size * T(rounding * rounding); any(visible)) {
      const T share = gap * mobility / select(visible, size, T(1.0)) * T(tolerances::off_loops * tolerances::off_loops);
      open = select(both(visible, share > open), share, open);
    }
  }
};

/// Outputs of the evaluation of rows, one entry per row in the order of the constraints. A null pointer: not computed.
template <class T> struct ConstraintRows {
  T* J = nullptr;  // blocks of rows x columns, column-major
  T* target = nullptr;  // c
  T* gamma = nullptr;
  T* residual = nullptr;
  const T* mobility = nullptr;  // input (nv): 1/M_ii of the velocities, for `scale`; null: `scale` is not computed
  T* scale = nullptr;  // diagonal entry of J M^-1 J^T that the row would have without cancellation in its entries
  T* gamma_size = nullptr;  // squared norm of the terms whose sum is gamma; rounding errors of gamma are relative to it
  OffLoops<T>* off = nullptr;  // needs `scale`

  SARRUS_INLINE void set_scale(int row, const T& size) const {
    if (scale) scale[row] = select(size > T(0.0), size, T(1.0));
  }
};

/// Compute the rows of a constraint between two bodies. Returns the number of leading rows that are components of one length.
template <class T> SARRUS_INLINE int evaluate(const Constraint& c, const RelativeMotion<T>& m, Row<T>* rows) {
  return visit_constraint(c.kind, [&](const auto& kind) SARRUS_INLINED {
    if constexpr (between_bodies<decltype(kind)>) {
      kind.evaluate(m, rows);
      return kind.parts_of_a_length;
    }
    return 0;
  });
}

/// Add the residual of a joint with plain component rows to `off`. Rotations are measured by chords between the world's axes instead of angles. The
/// joint's free rotations are: all, none, or those about z; its free translations: all, none, those along z, or those normal to z.
template <class T>
SARRUS_INLINE void check_plain_joint(const LoopState<T>& s, const Constraint& c, const LoopJoint& joint,
                                     const RelativeMotion<T>& m, const Columns<T>& l, OffLoops<T>& off) {
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
    parent = {l.child.R * Mat3<T>(m.X.R.transpose()), l.child.p - l.child.R * transpose_times(m.X.R, m.X.p)};
  else
    parent = frame_on_parent(s, c);
  const Vec3<T> z = Vec3<T>(parent.R.col(2)), d = l.child.p - parent.p;
  // these formulas are chosen because they lose no digits if the gaps are small
  if (slides == 1) gap.linear = square(dot(z, d));
  if (slides == 2) gap.linear = dot(cross(z, d), cross(z, d));
  if (slides == 3) gap.linear = dot(d, d);
  for (int k = turns == 2 ? 2 : 0; turns > 1 && k < 3; ++k) {
    const Vec3<T> chord = Vec3<T>(parent.R.col(k)) - Vec3<T>(l.child.R.col(k));
    gap.angular += dot(chord, chord) * T(turns == 2 ? 1.0 : 0.5);
  }
  off.include(gap.angular, rate.angular, m.velocity_size.angular, l.mobility, l.speed);
  off.include(gap.linear, rate.linear, m.velocity_size.linear, l.mobility, l.speed);
}

/// True if the joint fixes a point and leaves all rotations free, so that the orientation of its frames does not matter.
inline bool is_ball(const Constraint& c, const LoopJoint& joint) {
  return joint.joint == JointKind::spherical && joint.moves == 0 && !c.driven;
}

/// Compute the rows of a joint that are plain components of the relative motion; most constraints are of this type. The pose of one frame in the
/// other is computed only for the residual.
template <class T>
SARRUS_INLINE void plain_joint_rows(const LoopState<T>& s, const Constraint& c, const LoopJoint& joint,
                                    const RelativeMotion<T>& m, const Columns<T>& l, bool moving, const ConstraintRows<T>& out) {
  const auto component = [&](const Motion<T>& V, int k) SARRUS_INLINED { return k < 3 ? V.angular(k) : V.linear(k - 3); };
  if (out.off) check_plain_joint(s, c, joint, m, l, *out.off);
  if (out.gamma_size)
    for (int r = 0; r < c.rows; ++r)
      out.gamma_size[c.row + r] = joint.component[r] < 3 ? m.acceleration_size.angular : m.acceleration_size.linear;
  if (out.residual && is_ball(c, joint)) {
    const Vec3<T> gap = transpose_times(l.child.R, Vec3<T>(l.child.p - frame_on_parent(s, c).p));
    for (int r = 0; r < c.rows; ++r) out.residual[c.row + r] = gap(joint.component[r] - 3);
  } else if (out.residual) {
    ClosingJoint<T> closing;
    close_joint(joint.joint, {&joint.constants, s.numbers}, m.X, m.V, closing);
    // a target may prescribe only some components of a pose
    const bool some = joint.joint == JointKind::fixed;
    for (int r = 0; r < c.rows; ++r) out.residual[c.row + r] = closing.residual[some ? joint.component[r] : r];
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

/// Compute the rows of any other constraint between bodies. Its type defines the rows by the directions of its constraint forces.
template <class T>
SARRUS_NOINLINE void force_rows(const Constraint& c, const RelativeMotion<T>& m, const Columns<T>& l, bool moving,
                                const ConstraintRows<T>& out) {
  Row<T> rows[6];
  const int parts_of_a_length = evaluate(c, m, rows);
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
    if (r < parts_of_a_length)
      gap += off, slip += rate;
    else
      out.off->include(off, rate, out.scale[c.row + r], l.mobility, l.speed);
  }
  if (out.off && parts_of_a_length > 0) out.off->include(gap, slip, m.velocity_size.linear, l.mobility, l.speed);
}

template <class T>
SARRUS_NOINLINE void rows_between_bodies(const Tree& tree, Arena& arena, const LoopState<T>& s, const Constraint& c,
                                         const ConstraintRows<T>& out) {
  const Arena::Scope scope(arena);
  RelativeMotion<T> m;
  Columns<T> l;
  const LoopJoint* joint = std::get_if<LoopJoint>(&c.kind);
  const bool plain = joint && joint->plain() && c.target != Target::coordinates, moving = out.gamma && s.link;
  relative_motion(tree, arena, s, c, m, l, !plain || (out.residual && !is_ball(c, *joint)), out.scale ? out.mobility : nullptr);
  plain ? plain_joint_rows(s, c, *joint, m, l, moving, out) : force_rows(c, m, l, moving, out);
}

template <class T> SARRUS_NOINLINE void rows_between_coordinates(const Tree& tree, const LoopState<T>& s, const Constraint& c,
                                                                 const ConstraintRows<T>& out) {
  const CoordinateState<T> state = {s.q,          s.v,      s.time,   s.pfaffian_values ? s.pfaffian_values + c.values : nullptr,
                                    c.coordinate, c.column, c.columns};
  visit_constraint(c.kind, [&](const auto& kind) SARRUS_INLINED {
    if constexpr (!between_bodies<decltype(kind)>) {
      for (int r = 0; r < c.rows; ++r) {
        T size = T(0.0), rate = T(0.0), mobility = T(0.0), speed = T(0.0);
        const CoordinateRow<T> row = kind.evaluate(state, r, [&](int i, const T& slope, const T& terms) SARRUS_INLINED {
          const int k = c.column[i];
          const T per_unit = s.numbers(tree.per_unit_square[k]);
          if (out.J) out.J[c.entry + i * c.rows + r] = slope;
          if (out.scale) size += terms * terms * out.mobility[k], mobility += out.mobility[k] * per_unit;
          if (s.v) rate += slope * s.v[k], speed += square(s.v[k]) * per_unit;
        });
        if (out.target) out.target[c.row + r] = row.velocity;
        if (out.residual) out.residual[c.row + r] = row.residual;
        if (out.gamma) out.gamma[c.row + r] = row.gamma;
        if (out.gamma_size) out.gamma_size[c.row + r] = square(row.gamma);
        out.set_scale(c.row + r, size);
        if (out.off) out.off->include(square(row.residual), square(T(rate - row.velocity)), size, mobility, speed);
      }
    }
  });
}

/// Compute the rows of the constraints from `begin` to `end` (exclusive). Recorded steps compute J and `scale` by a function (recording/saddle.cpp).
template <class T>
SARRUS_INLINE void constraint_rows(const Tree& tree, Arena& arena, const LoopState<T>& s, const ConstraintRows<T>& out, int begin,
                                   int end) {
  for (int i = begin; i < end; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    c.child < 0 ? rows_between_coordinates(tree, s, c, out) : rows_between_bodies(tree, arena, s, c, out);
  }
}

/// Compute the scale of each row (rows), to which residuals are relative. Each velocity alone moves by 1 rad, or by the mechanism's length for a
/// slide; the largest change of the row is its scale.
template <class T>
T* row_sizes(const Tree& tree, Arena& arena, const T* q, const T* time, const T* pfaffian_values) {
  T *size = arena.take<T>(tree.loops.rows), *mobility = arena.take<T>(tree.nv);
  const Arena::Scope scope(arena);
  const LoopState<T> state = place(tree, arena, q, time, pfaffian_values);
  for (int k = 0; k < tree.nv; ++k) mobility[k] = square(T(state.numbers(tree.unit[k])));
  ConstraintRows<T> row_output;
  row_output.J = arena.take<T>(tree.loops.entries), row_output.scale = size, row_output.mobility = mobility;
  constraint_rows(tree, arena, state, row_output, 0, tree.loops.constraints);
  for (int r = 0; r < tree.loops.rows; ++r) size[r] = sqrt(size[r]);
  return size;
}

/// Add scale * J v to out, one entry per row.
template <class T> SARRUS_INLINE void add_motion_along_rows(const Tree& tree, const T* J, const T* v, const T& scale, T* out) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k) {
      const T along = v[c.column[k]] * scale;
      for (int r = 0; r < c.rows; ++r) out[c.row + r] += *J++ * along;
    }
  }
}

/// Add J^T force to tau.
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
