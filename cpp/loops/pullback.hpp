// Pullback of a scalar function of the constraint rows to q and v, from which the vector-Jacobian product of forward dynamics is computed.
//
// Rows of a constraint between bodies depend only on their relative motion. Therefore a displacement of the child and the same displacement of the
// parent have opposite effects; likewise for V and A. For plain joints, with the force F = psi f fixed in the child, the covectors E of the child's
// displacement (S), virtual velocity (W), velocity (S') and acceleration (S'') are:
//
//   f . J x            E_S = W_p x* F                              E_W   = F                       p: the parent, whose covectors are the
//   z . (J v - c)      E_S = V_p x* F                              E_S'  = F                       negatives of these
//   g . (J a - gamma)  E_S = A_p x* F + V_p x* (V x* F)          E_S'  = (V_p + V) x* F          E_S'' = F
//
// Covectors of other constraints are computed by dual numbers, with the child displaced along twelve directions.
//
// Derivatives by dimensions use the same covectors: displacing a constraint's frame has the effect of displacing its body.
//
// Forward dynamics, for a cotangent w of the accelerations:
//
//   [M J^T; J 0] [x; y] = [w; 0]     by tau: x     by q, v: derivatives of -x . inverse dynamics(q, v, a) + lambda . J x - y . (J a - gamma)
//
// Along the loops (`tangent`) these derivatives b are projected by P^T b = b - J^T y (derivatives.hpp), where [x; y] is the solution for [b; 0].
// Because a change of q requires the change Dv = -M^-1 J^T (J M^-1 J^T)^+ (DJ v - Dc) of v, the projection of the derivative by v adds the derivative
// of -y . (J v - c) to the derivative by q.
//
// If dimensions p change, q moves by the least displacement that closes the loops again, D_p q = -M^-1 J^T (J M^-1 J^T)^+ D_p phi, and v follows p
// and q. Therefore the projections add two derivatives by p: that of -y . phi, with y from the projection for q; and that of -y . (J v - c), with y
// from the projection for v. If rows are dependent, some dimensions may open the loops: those that change z . phi, or z . (J v - c) along the motion,
// for a pseudo-random combination z with J^T z = 0.
//
//   cost    O(bodies) and a solve; along the loops two more solves. If rows are dependent, also the solution for a pseudo-random
//           right-hand side, which yields z, and the pullback of z
#pragma once

#include "../dynamics/pullback.hpp"
#include "multiplier_rates.hpp"

namespace sarrus {

/// Coefficients (rows) of four terms of the scalar: J x, J a - gamma, J v - c, and phi. Null: zero.
template <class T> struct RowForces {
  const T *force_x = nullptr, *force_a = nullptr, *force_v = nullptr, *force_position = nullptr;
};

template <class R, class T> class LoopPullback {
 public:
  using Number = Varied<R, T>;
  using Covectors = sarrus::Covectors<T>;
  using RowForces = sarrus::RowForces<T>;

  LoopPullback(const Tree& tree, Arena& arena, const LoopInput<T>& in, const Kinematics<T>& k, const T* a, const T* x)
      : tree_(tree), arena_(arena), in_(in), k_(k), a_(a), x_(x) {
    const int count = tree.loops.constraints + tree.loops.motor_constraints;
    child_ = arena.take<Transform<T>>(count);
    for (int i = 0; i < count; ++i)
      if (const Constraint& c = tree.loops.constraint[i]; c.child >= 0) child_[i] = k.link[c.child].X * cast<T>(c.X_child);
  }

  /// Add the pullback of all constraints, or of the first `constraints` ones, which may include those of motors. If `dimensions` is not null, also
  /// add the derivatives with respect to dimensions.
  void add(const RowForces& by, Pullback<T>& to, const Gradient<T>& gradient, int constraints = -1,
           const Dimensions<T>* dimensions = nullptr) const {
    for (int i = 0; i < (constraints < 0 ? tree_.loops.constraints : constraints); ++i) {
      const Arena::Scope scope(arena_);
      const Constraint& c = tree_.loops.constraint[i];
      const LoopJoint* joint = std::get_if<LoopJoint>(&c.kind);
      if (c.child < 0) {
        add_between_coordinates(c, by, gradient);
        if (dimensions) by_coefficients(c, by, dimensions->constraint_numbers(i));
        continue;
      }
      const bool plain = joint && joint->plain() && !c.driven && c.target != Target::coordinates;
      const Vec3<T> p = plain ? child_[i].p : k_.link[c.child].X.p;
      const Covectors e = plain ? plain_joint_covectors(c, *joint, child_[i], by, to) : body_covectors(c, child_[i], by, to);
      const int link[] = {c.parent, c.child};
      to.add_between(link, c.body, e, p);
      if (!dimensions) continue;
      to.by_frames(i, e, p, *dimensions);
      by_own_numbers(c, by, to, dimensions->constraint_numbers(i));
    }
  }

 private:
  static Number number(const T& x) { return {x, R(0.0)}; }

  /// Return the covectors of the child, about the origin of its frame, whose pose is `child`.
  Covectors plain_joint_covectors(const Constraint& c, const LoopJoint& joint, const Transform<T>& child, const RowForces& by,
                                  const Pullback<T>& to) const {
    const auto force = [&](const T* rows) {
      Force<T> f = Force<T>::zero();
      for (int r = 0; r < c.rows; ++r) {
        const int n = joint.component[r];
        (n < 3 ? f.angular(n) : f.linear(n - 3)) = rows[c.row + r];
      }
      return Force<T>{child.R * f.angular, child.R * f.linear};
    };
    Covectors e = Covectors::zero();
    e.of_velocities = !by.force_x && !by.force_a, e.has_W = by.force_x;
    const Motion<T> V_p = to.V_about(c.parent, child.p);
    if (by.force_x) e.W = force(by.force_x), e.S += cross_force(to.W_about(c.parent, child.p), e.W);
    if (by.force_v) e.S1 = force(by.force_v), e.S += cross_force(V_p, e.S1);
    if (by.force_position) e.S += force(by.force_position);
    if (by.force_a) {
      const Motion<T> V = to.V_about(c.child, child.p);
      e.S2 = force(by.force_a);
      e.S1 += cross_force(V_p + V, e.S2);
      e.S += cross_force(to.A_about(c.parent, child.p), e.S2) + cross_force(V_p, cross_force(V, e.S2));
    }
    return e;
  }

  /// Evaluate the rows of a constraint for the relative motion of its frames, at the velocity V and at the virtual velocity W.
  struct MovedRows {
    Row<Number> row[6];
    Motion<Number> V, W;
  };

  /// Return the covectors of the child, about its origin, for a constraint whose rows are not those of a plain joint. frame: pose of the child's frame.
  Covectors body_covectors(const Constraint& c, const Transform<T>& frame, const RowForces& by, const Pullback<T>& to) const {
    const LinkMotion<T>&child = k_.link[c.child], &parent = k_.link[c.parent];
    const LoopState<Number> s = beside_the_child(c);
    const Motion<T> W = in_axes(child.X.R, to.W_about(c.child, child.X.p)), W_p = to.W_about(c.parent, parent.X.p);
    Force<T> force_x, force_a, force_position;  // forces of J x, J a and phi on the child, in the axes of its frame
    Covectors e = covectors_of<R>(child, 2, [&](int first, int last) {
      MovedRows moved;
      move_child(c, s, moved_body<R>(child, cast<T>(tree_.gravity), first, last), W, W_p, moved);
      Number scalar = 0.0;
      force_x = force_a = force_position = Force<T>::zero();
      for (int r = 0; r < c.rows; ++r) {
        const Row<Number>& row = moved.row[r];
        const auto put = [&](Force<T>& sum, const T& share) {
          for (int n = 0; n < 3; ++n)
            sum.angular(n) += row.force.angular(n).value * share, sum.linear(n) += row.force.linear(n).value * share;
        };
        if (by.force_x) scalar += dot(moved.W, row.force) * number(by.force_x[c.row + r]), put(force_x, by.force_x[c.row + r]);
        if (by.force_v) scalar += dot(moved.V, row.force) * number(by.force_v[c.row + r]);
        if (by.force_a) scalar -= row.gamma * number(by.force_a[c.row + r]), put(force_a, by.force_a[c.row + r]);
        // if the loops are closed, J is the derivative of phi
        if (by.force_position) put(force_position, by.force_position[c.row + r]);
      }
      return scalar.rate;
    });
    const auto about_child = [&](const Force<T>& f) {
      const Vec3<T> F = frame.R * f.linear;
      return Force<T>{frame.R * f.angular + cross(Vec3<T>(frame.p - child.X.p), F), F};
    };
    e.W = about_child(force_x), e.S2 = about_child(force_a), e.S += about_child(force_position);
    e.S1 += cross_force(child.V, e.S2);
    return e;
  }

  /// Compute derivatives with respect to the parameters of the constraint's type, by finite differences, which are exact because rows are linear in
  /// these parameters.
  void by_own_numbers(const Constraint& c, const RowForces& by, const Pullback<T>& to, T* out) const {
    visit_constraint(c.kind, [&](const auto& kind) {
      using Kind = std::decay_t<decltype(kind)>;
      if constexpr (between_bodies<Kind> && !std::is_same_v<Kind, LoopJoint>) {
        const LinkMotion<T>&child = k_.link[c.child], &parent = k_.link[c.parent];
        RelativeMotion<Number> m;
        Motion<Number> W;
        relative(c, beside_the_child(c), moved_body<R>(child, cast<T>(tree_.gravity), 0, 0),
                 in_axes(child.X.R, to.W_about(c.child, child.X.p)), to.W_about(c.parent, parent.X.p), m, W);
        Kind other = kind;
        other.fields([&](const char*, auto& x) {
          if constexpr (std::is_same_v<decltype(x), double&>) {
            const double value = x, step = value == 0.0 ? 1e-3 : 1e-3 * std::abs(value);
            T slope = T(0.0);
            for (const double sign : {1.0, -1.0}) {
              x = value + sign * step;
              Row<Number> row[6];
              other.evaluate(m, row);
              for (int r = 0; r < c.rows; ++r) {
                T sum = T(0.0);
                if (by.force_x) sum += dot(W, row[r].force).value * by.force_x[c.row + r];
                if (by.force_v) sum += dot(m.V, row[r].force).value * by.force_v[c.row + r];
                if (by.force_a) sum -= row[r].gamma.value * by.force_a[c.row + r];
                if (by.force_position) sum += row[r].residual.value * by.force_position[c.row + r];
                slope += T(sign) * sum;
              }
            }
            x = value, *out++ += slope * T(0.5 / step);
          }
        });
      }
    });
  }
  /// Compute derivatives with respect to the parameters of a coupler, in which its row is linear. Coefficient k multiplies q^k, with the derivatives
  /// k q^(k - 1) and k (k - 1) q^(k - 2). The offset is subtracted.
  void by_coefficients(const Constraint& c, const RowForces& by, T* out) const {
    const Coupler* coupler = std::get_if<Coupler>(&c.kind);
    if (!coupler) return;
    const auto times = [&](const T* force) { return force ? force[c.row] : T(0.0); };
    for (int i = 0; i < c.columns; ++i) {
      const T q = in_.q[c.coordinate[i]], v = in_.v[c.column[i]];
      T power[3] = {T(0.0), T(0.0), T(1.0)};  // the last three powers of q
      for (int k = 1; k <= static_cast<int>(coupler->coefficients[i].size()); ++k) {
        const T slope = T(k) * power[2], curvature = T(k * (k - 1)) * power[1];
        *out++ += times(by.force_x) * slope * x_[c.column[i]] + times(by.force_v) * slope * v +
                  times(by.force_a) * (slope * a_[c.column[i]] + curvature * v * v) + times(by.force_position) * q * power[2];
        power[0] = power[1], power[1] = power[2], power[2] *= q;
      }
    }
    *out -= times(by.force_position);
  }

  static void place(const LoopState<Number>& s, int i, const MovedBody<R, T>& b) {
    s.X[i] = b.X;
    RneaLink<Number>& link = const_cast<RneaLink<Number>&>(s.link[i]);
    link.w = b.w, link.dw = b.dw, link.a = b.a;
    link.set_omega();
  }

  /// Return a state that contains the pose of the parent. The child's pose is allocated but not set, because callers set it to displaced poses.
  LoopState<Number> beside_the_child(const Constraint& c) const {
    LoopState<Number> s = {};
    const R* none = nullptr;
    s.time = varied(arena_, 1, in_.time, none);
    s.pfaffian_values = varied(arena_, tree_.loops.pfaffian_values, in_.pfaffian_values, none);
    s.X = arena_.take<Transform<Number>>(tree_.links), s.link = arena_.take<RneaLink<Number>>(tree_.links);
    place(s, c.parent, moved_body<R>(k_.link[c.parent], cast<T>(tree_.gravity), 0, 0));
    return s;
  }

  void move_child(const Constraint& c, const LoopState<Number>& s, const MovedBody<R, T>& b, const Motion<T>& W,
                  const Motion<T>& W_p, MovedRows& out) const {
    RelativeMotion<Number> m;
    relative(c, s, b, W, W_p, m, out.W);
    rows_of(c, m, out.row);
    out.V = m.V;
  }

  /// Compute relative motion and relative virtual motion of the frames.
  void relative(const Constraint& c, const LoopState<Number>& s, const MovedBody<R, T>& b, const Motion<T>& W,
                const Motion<T>& W_p, RelativeMotion<Number>& m, Motion<Number>& virtually) const {
    place(s, c.child, b);
    const LinkMotion<T>& parent = k_.link[c.parent];
    Columns<Number> l;
    Motion<Number> A_drive;
    relative_pose(s, c, true, m, l, A_drive);
    const auto child_motion = [&](const Vec3<Number>& w, const Vec3<Number>& u) {
      return cast<Number>(c.X_child).to_child(Motion<Number>{w, u});
    };
    // velocity of the point of the parent that coincides with the child's frame
    const auto parent_motion = [&](const Motion<T>& V) {
      const Vec3<Number> w = still<R>(V.angular), r = l.child.p - still<R>(parent.X.p);
      return in_axes(l.child.R, Motion<Number>{w, still<R>(V.linear) + cross(w, r)});
    };
    m.V = child_motion(b.w, b.u) + parent_motion(parent.V) * Number(-1.0);
    m.velocity_size.angular = m.velocity_size.linear = Number(1.0);
    complete_relative_motion(s, c, l.child, A_drive, m, l);
    virtually = child_motion(still<R>(W.angular), still<R>(W.linear)) + parent_motion(W_p) * Number(-1.0);
  }

  /// Compute the rows without residuals.
  static void rows_of(const Constraint& c, const RelativeMotion<Number>& m, Row<Number>* rows) {
    const LoopJoint* joint = std::get_if<LoopJoint>(&c.kind);
    if (!joint || !joint->plain()) {
      evaluate(c, m, rows);
      return;
    }
    const Motion<Number> A = LoopJoint::apparent_acceleration(m);
    for (int r = 0; r < c.rows; ++r) {
      const Motion<Number> unit = unit_motion<Number>(joint->component[r]);
      rows[r].force = {unit.angular, unit.linear};
      rows[r].gamma = -dot(A, rows[r].force);
    }
  }

  /// Add the derivatives along the velocities that occur in a constraint between coordinates.
  void add_between_coordinates(const Constraint& c, const RowForces& by, const Gradient<T>& gradient) const {
    Number *q = arena_.take<Number>(tree_.nq), *v = arena_.take<Number>(tree_.nv);
    for (int k = 0; k < c.columns; ++k)
      q[c.coordinate[k]] = number(in_.q[c.coordinate[k]]), v[c.column[k]] = number(in_.v[c.column[k]]);
    Number* J = arena_.take<Number>(c.rows * c.columns);
    const T* values = in_.pfaffian_values;
    const R* none = nullptr;
    const CoordinateState<Number> state = {
        q,
        v,
        varied(arena_, 1, in_.time, none),
        values ? varied(arena_, tree_.loops.pfaffian_values, values, none) + c.values : nullptr,
        c.coordinate,
        c.column,
        c.columns};
    for (int first = 0; first < c.columns; first += columns_of<T, R>) {
      const int count = std::min(columns_of<T, R>, c.columns - first);
      for (const bool along_q : {true, false}) {
        const auto along = [&](int l) -> R& {
          const int k = first + l;
          return along_q ? q[c.coordinate[k]].rate : v[c.column[k]].rate;
        };
        for (int l = 0; l < count; ++l) column_in<T>(along(l), l) = T(1.0);
        Number scalar = 0.0;
        visit_constraint(c.kind, [&](const auto& kind) {
          if constexpr (!between_bodies<decltype(kind)>)
            for (int r = 0; r < c.rows; ++r) {
              const auto row =
                  kind.evaluate(state, r, [&](int k, const Number& slope, const Number&) { J[k * c.rows + r] = slope; });
              const auto motion = [&](const T* of) {
                Number sum = 0.0;
                for (int k = 0; k < c.columns; ++k) sum += J[k * c.rows + r] * number(of[c.column[k]]);
                return sum;
              };
              if (by.force_x) scalar += motion(x_) * number(by.force_x[c.row + r]);
              if (by.force_v && along_q) scalar += (motion(in_.v) - row.velocity) * number(by.force_v[c.row + r]);
              if (by.force_a) scalar += (motion(a_) - row.gamma) * number(by.force_a[c.row + r]);
            }
        });
        for (int l = 0; l < count; ++l) {
          (along_q ? gradient.q : gradient.v)[c.column[first + l]] += column_in<T>(scalar.rate, l);
          along(l) = R(0.0);
        }
      }
    }
  }

  const Tree& tree_;
  Arena& arena_;
  const LoopInput<T>& in_;
  const Kinematics<T>& k_;
  const T *a_, *x_;
  Transform<T>* child_;  // poses of the constraints' frames on their children
};

/// Gradient of w . forward dynamics with respect to q, v, tau and the inertial parameters of all bodies: 3 nv + 10 (bodies - 1)
/// entries.
template <class R, class T> class ForwardPullback {
 public:
  using RowForces = sarrus::RowForces<T>;
  using Gradient = sarrus::Gradient<T>;
  using Pullback = sarrus::Pullback<T>;
  ForwardPullback(const Tree& tree, Arena& arena, const LoopInput<T>& in, const T* w, T* out)
      : tree_(tree),
        arena_(arena),
        in_(in),
        w_(w),
        n_(tree.nv),
        rows_(tree.loops.rows),
        out_(out),
        x_(arena.take<T>(tree.nv + tree.loops.rows)),
        by_{out, out + tree.nv, arena.take<T>(tree.nv)} {}

  void pull_tree(const Dimensions<T>* dimensions) {
    T* a = arena_.take<T>(n_);
    const auto work = aba(tree_, arena_, AbaInput<T>{in_.q, in_.v, in_.tau, in_.wrenches, in_.wrench}, a);
    accelerate_from_rest(tree_, arena_, work, w_, x_);
    const auto motion = motion_at(a);
    Pullback pullback(tree_, arena_, motion, rnea(tree_, arena_, motion, arena_.take<T>(n_)), x_);
    by_motion(pullback, dimensions, [](const Gradient&) {});
  }

  /// Return the relative error bound of the accelerations, or the contradiction of the rows if that is larger. `open`: receives the rates at which
  /// dimensions open the loops.
  T pull_loops(bool tangent, const Dimensions<T>* dimensions, const Dimensions<T>* open) {
    SensitivityEquation<R, T> equation(tree_, arena_, in_, true);
    // right-hand sides: first w, with the solution [x; y]; then, unless all rows are known to be independent, a pseudo-random one that detects dependent
    // rows: its residual z satisfies J^T z = 0
    const int n = n_ + rows_, sides = equation.is_independent ? 1 : 2;
    T *b = cleared(2 * n), left[2] = {T(0.0), T(0.0)}, *solved = arena_.take<T>(2 * n), *z = solved + n + n_;
    std::copy(w_, w_ + n_, b);
    for (int r = 0; r < rows_ && sides == 2; ++r) b[n + n_ + r] = equation.probe(r);
    solve(equation, sides, b, solved, false, sides == 2 ? left : nullptr);
    const auto dependent = left[1] > T(tolerances::contradiction);
    const bool any_dependent = any(dependent);  // true if rows are dependent in any of the states
    std::copy(solved, solved + n, x_);
    if (dimensions)
      equation.find_multipliers(arena_, dependent);
    else
      equation.take_multipliers(arena_);
    const auto motion = motion_at(equation.a);
    Pullback pullback(tree_, arena_, motion, rnea(tree_, arena_, motion, arena_.take<T>(n_)), x_);
    const LoopPullback<R, T> loops(tree_, arena_, in_, pullback.kinematics(), equation.a, x_);
    T *force_x = arena_.take<T>(rows_), *force_a = arena_.take<T>(rows_);
    for (int r = 0; r < rows_; ++r) force_x[r] = -equation.lambda[r], force_a[r] = x_[n_ + r];
    by_motion(pullback, dimensions,
              [&](const Gradient& by) { loops.add({force_x, force_a, nullptr}, pullback, by, -1, dimensions); });
    if (rows_ == 0) return equation.error;

    T* c = cleared(2 * n_);  // first, compute the derivatives of z . (J a - gamma) with respect to q and v
    if (any_dependent) {
      set_size(equation, z);
      pull(pullback, loops, {nullptr, z, nullptr}, {c, c + n_, by_.a}, nullptr);
    }
    const T* allowed = nullptr;  // an allowed displacement
    if (tangent) {  // project onto the allowed changes of v: remove the component of the derivative that is in the range of J^T
      T *by_v = cleared(3 * n), *along = arena_.take<T>(3 * n);
      std::copy(by_.v, by_.v + n_, by_v), std::copy(c + n_, c + 2 * n_, by_v + n);
      scatter(equation, by_v + 2 * n);
      solve(equation, any_dependent ? 3 : 1, by_v, along, false);
      allowed = along + 2 * n;
      subtract_forces(equation, along + n_, by_.v);
      project_along_loops(equation, pullback, loops, along + n_, by_.q, dimensions);
      if (any_dependent) pull_velocities(pullback, loops, along + n + n_, c, nullptr);
      if constexpr (std::is_same_v<T, double>)
        if (open && any_dependent) include_open(equation, pullback, loops, *open);
    }
    if (!any_dependent) return equation.error;
    const T contradicts = contradiction(equation, c, allowed);
    return select(both(dependent, contradicts > equation.error), contradicts, equation.error);
  }

 private:
  RneaInput<T> motion_at(const T* a) const { return {in_.q, in_.v, a, {}, in_.wrenches, in_.wrench}; }
  T* cleared(int n) {
    T* x = arena_.take<T>(n);
    std::fill(x, x + n, T(0.0));
    return x;
  }

  /// Solve for `count` right-hand sides (n_ + rows_ each), in lanes if that is faster. `left`: relative residual of each.
  void solve(const SensitivityEquation<R, T>& equation, int count, const T* b, T* solved, bool positions, T* left = nullptr) {
    if (count == 1 || equation.uses_fronts())
      solve_by<T>(equation, count, b, solved, positions, left);
    else
      solve_by<R>(equation, count, b, solved, positions, left);
  }
  template <class S>
  void solve_by(const SensitivityEquation<R, T>& equation, int count, const T* b, T* solved, bool positions, T* left) {
    const Arena::Scope scope(arena_);
    const int n = n_ + rows_;
    S *sides = arena_.take<S>(n), *terms = arena_.take<S>(n), *x = arena_.take<S>(n);
    for (int first = 0; first < count; first += columns_of<T, S>) {
      const int used_lanes = std::min(columns_of<T, S>, count - first);
      for (int k = 0; k < n; ++k) {
        sides[k] = S(0.0);
        for (int l = 0; l < used_lanes; ++l) column_in<T>(sides[k], l) = b[(first + l) * n + k];
        terms[k] = sides[k] * sides[k];
      }
      const S* term_sizes = left ? terms : nullptr;
      const S residual = equation.solve(arena_, static_cast<const S*>(sides), term_sizes, x, positions);
      for (int l = 0; l < used_lanes; ++l) {
        for (int k = 0; k < n; ++k) solved[(first + l) * n + k] = column_in<T>(x[k], l);
        if (left) left[first + l] = column_in<T>(residual, l);
      }
    }
  }

  /// Pull back the coefficients of the rows in one pass.
  template <class Loops>
  void pull(Pullback& pullback, const Loops& loops, const RowForces& forces, const Gradient& by,
            const Dimensions<T>* dimensions) {
    const bool of_velocities = forces.force_v && !dimensions;
    of_velocities ? pullback.clear_velocities() : pullback.clear();
    loops.add(forces, pullback, by, -1, dimensions);
    if (dimensions) pullback.by_placements(in_.q, *dimensions);
    if (of_velocities)
      pullback.inward_of_velocities(by.q);
    else
      pullback.inward(by);
  }
  /// Add the derivative of -y . (J v - c) with respect to q to `by`.
  template <class Loops>
  void pull_velocities(Pullback& pullback, const Loops& loops, const T* y, T* by, const Dimensions<T>* dimensions) {
    const Arena::Scope scope(arena_);
    T *none = arena_.take<T>(n_), *force_v = arena_.take<T>(rows_);
    for (int r = 0; r < rows_; ++r) force_v[r] = -y[r];
    pull(pullback, loops, {nullptr, nullptr, force_v}, {by, none, none}, dimensions);
  }
  /// Call pull_velocities(), then project `by` along the loops. Unless `dimensions` is null, add to `pullback` also the derivatives with respect to
  /// the dimensions through q, which moves with them.
  template <class Loops> void project_along_loops(const SensitivityEquation<R, T>& equation, Pullback& pullback,
                                                  const Loops& loops, const T* y, T* by, const Dimensions<T>* dimensions) {
    pull_velocities(pullback, loops, y, by, dimensions);
    T *b = cleared(n_ + rows_), *position_forces = arena_.take<T>(n_ + rows_), *none = arena_.take<T>(n_);
    std::copy(by, by + n_, b);
    solve(equation, 1, b, position_forces, true);
    subtract_forces(equation, position_forces + n_, by);
    if (!dimensions) return;
    T* force_position = position_forces + n_;
    for (int r = 0; r < rows_; ++r) force_position[r] = -force_position[r];
    keep_positions(force_position);
    pullback.clear();
    loops.add({nullptr, nullptr, nullptr, force_position}, pullback, {none, none, none}, -1, dimensions);
    pullback.by_placements(in_.q, *dimensions);
  }
  void keep_positions(T* force_position) const {
    for (int i = 0; i < tree_.loops.constraints; ++i) {
      const Constraint& c = tree_.loops.constraint[i];
      for (int r = 0; r < c.rows; ++r)
        if (!holds_position(c, r)) force_position[c.row + r] = T(0.0);
    }
  }
  template <class Loops>
  void include_open(const SensitivityEquation<R, T>& equation, Pullback& pullback, const Loops& loops,
                    const Dimensions<T>& open) {
    const MultiplierRates<R> rates(tree_, arena_, in_.q, equation);
    T *z = arena_.take<T>(rows_), *turned = arena_.take<T>(rows_), *by = cleared(n_), *none = arena_.take<T>(n_);
    T size = T(0.0);
    for (int r = 0; r < rows_; ++r) z[r] = T(scattered(r));
    rates.leave_dependent(z);
    for (int r = 0; r < rows_; ++r) size += z[r] * z[r];
    for (int r = 0; r < rows_ && size > 0.0; ++r) z[r] /= std::sqrt(size);
    for (int r = 0; r < rows_; ++r) turned[r] = -z[r];
    project_along_loops(equation, pullback, loops, turned, by, &open);
    keep_positions(z);
    pullback.clear();
    loops.add({nullptr, nullptr, nullptr, z}, pullback, {none, none, none}, -1, &open);
    pullback.by_placements(in_.q, open);
  }

  /// Set the gradient to minus the pullback of x . inverse dynamics - lambda . J x + y . (J a - gamma).
  template <class Loops> void by_motion(Pullback& pullback, const Dimensions<T>* dimensions, Loops loops) {
    const int parameters = 10 * (tree_.bodies - 1);
    std::fill(out_, out_ + 2 * n_, T(0.0)), std::fill(by_.a, by_.a + n_, T(0.0));
    if (dimensions) pullback.keep_bodies();
    pullback.add_bodies();
    pullback.template add_passive<R>(in_.q, by_, dimensions);
    loops(by_);
    if (dimensions) {
      pullback.by_forces(in_.q, *dimensions), pullback.by_placements(in_.q, *dimensions);
      dimensions->turn_round();
    }
    pullback.template collect_columns<R>(in_.q);
    pullback.inward(by_);
    pullback.by_parameters(out_ + 3 * n_);
    for (int k = 0; k < 2 * n_; ++k) out_[k] = -out_[k];
    std::copy(x_, x_ + n_, out_ + 2 * n_);
    for (int k = 0; k < parameters; ++k) out_[3 * n_ + k] = -out_[3 * n_ + k];
  }

  /// Subtract J^T y from `force`. The result is P^T force if y belongs to the solution for this force.
  void subtract_forces(const SensitivityEquation<R, T>& equation, const T* y, T* force) {
    const Arena::Scope scope(arena_);
    T* away = arena_.take<T>(rows_);
    for (int r = 0; r < rows_; ++r) away[r] = -y[r];
    add_constraint_forces(tree_, equation.J(), away, force);
  }

  /// Normalise z over all rows, with the weights of residuals.
  void set_size(const SensitivityEquation<R, T>& equation, T* z) const {
    T size = T(0.0);
    for (int r = 0; r < rows_; ++r) size += z[r] * z[r] / equation.row_weight(r);
    for (int r = 0; r < rows_; ++r) z[r] /= sqrt(size);
  }

  /// Set pseudo-random forces that give all velocities accelerations of comparable magnitude.
  void scatter(const SensitivityEquation<R, T>& equation, T* force) const {
    for (int k = 0; k < n_; ++k) force[k] = equation.inertia(k) * T(scattered(k) * tree_.unit[k]);
  }
  /// Return the inconsistency of dependent rows along pseudo-random changes of q and v, or along allowed changes. If it is not zero, no derivative
  /// exists. c: derivatives of z . (J a - gamma) with respect to q and v, for a combination z of all rows. The result is relative to the terms of J
  /// and gamma, and to the change of the forces in a rotation by 1 rad.
  T contradiction(const SensitivityEquation<R, T>& equation, const T* c, const T* allowed) {
    const Arena::Scope scope(arena_);
    T *q = arena_.take<T>(n_), *v = arena_.take<T>(n_);
    for (int k = 0; k < n_; ++k) q[k] = v[k] = allowed ? allowed[k] : T(scattered(k) * tree_.unit[k]);
    if (allowed && equation.holds_velocities_only()) {
      T *b = cleared(n_ + rows_), *by_positions = arena_.take<T>(n_ + rows_);
      scatter(equation, b);
      solve(equation, 1, b, by_positions, true);
      std::copy(by_positions, by_positions + n_, q);
    }
    T speed = T(0.0), size_q = T(0.0), size_v = T(0.0), turned = equation.terms(), moved = T(0.0), by_q = T(0.0), by_v = T(0.0);
    for (int k = 0; k < n_; ++k) {
      const T per_unit = T(tree_.per_unit_square[k]);
      speed += square(in_.v[k]) * per_unit;
      size_q += square(q[k]) * per_unit, size_v += square(v[k]) * per_unit;
      by_q += c[k] * q[k], by_v += c[n_ + k] * v[k];
    }
    for (int k = 0; k < n_; ++k) {
      turned += equation.inertia(k) * (square(equation.a[k]) + square(in_.v[k]) * speed);
      moved += equation.inertia(k) * square(in_.v[k]);
    }
    const T size = turned * size_q + moved * size_v;
    const T left = select(size > T(0.0), sqrt((square(by_q) + square(by_v)) / select(size > T(0.0), size, T(1.0))), T(0.0));
    return select(left > T(tolerances::contradiction), left, T(0.0));
  }

  const Tree& tree_;
  Arena& arena_;
  const LoopInput<T>& in_;
  const T* w_;
  int n_, rows_;
  T *out_, *x_;
  Gradient by_;
};

/// Vector-Jacobian product of forward dynamics. On request also computes the derivatives with respect to `dimensions`, and the rate at which each
/// dimension opens the loops (`open`). The caller must set both outputs to zero before the call.
template <class R, class T>
T forward_dynamics_vjp(const Tree& tree, Arena& arena, const LoopInput<T>& in, const T* w, bool tangent, T* out,
                       const Dimensions<T>* dimensions = nullptr, const Dimensions<T>* open = nullptr) {
  ForwardPullback<R, T> pullback(tree, arena, in, w, out);
  if (tree.loops.rows + tree.loops.rotor_rows > 0) return pullback.pull_loops(tangent, dimensions, open);
  pullback.pull_tree(dimensions);
  return T(0.0);
}

}  // namespace sarrus
