// Reverse sweep of inverse dynamics: the derivatives of a scalar function of the bodies' motions with respect to q, v and a, by one outward and one
// inward pass.
//
// Motions are those of rnea.hpp, in the axes of each body at its origin; p denotes the parent body, X = (R, r) the pose in it. (W, U) is the virtual
// velocity due to x, and u the linear velocity, on which only rows of loops and forces between bodies depend. S is the motion space of the joint,
// V = S v its velocity and A = S a + S-dot v. An index 0 denotes the motion of the body's axes without that of its own joint:
//
//   outward   w0  = R^T w_p                   w  = w0 + V_w                             W0 = R^T W_p                   W = W0 + S_w x
//             dw0 = R^T dw_p                  dw = dw0 + w0 x V_w + A_w                 U0 = R^T (U_p + W_p x r)       U = U0 + S_u x
//             a0  = R^T (a_p + Omega_p r)     a  = a0 + (2 w0 + V_w) x V_u + A_u        u0 = R^T (u_p + w_p x r)       u = u0 + V_u
//
// An asterisk denotes the derivative of the scalar with respect to a quantity, summed over the subtree. X* is that with respect to a displacement of
// the body with its motions. For the scalar x . inverse dynamics, a body with mass m, first moment h and Euler tensor J contributes:
//
//   bodies    a* = m U + W x h        dw* = ax G        w* = (G + G^T) w - 2 tr(G) w        G = U h^T + skew(W) J,  ax G . b = tr(G^T skew(b))
//             (W*, U*) = f, the force that the joint transmits (rnea.hpp)
//   joint     w0* = w* + V_w x dw* + 2 V_u x a*
//             V* = [w* + dw* x w0 + V_u x a*; u* + a* x (2 w0 + V_w)]         A* = [dw*; a*]
//             E = X* - [w0 x w0* + dw0 x dw* + a0 x a* + W0 x W* + U0 x U* + u0 x u*; dw0 x a* - w0 x (w0 x a*) + W0 x U* + w0 x u*]
//   inward    a_p* = R a*     dw_p* = R dw* + r x a_p*     u_p* = R u*     w_p* = R w0* + r x u_p* + (a_p* r^T + r a_p*^T) w_p - 2 (r . a_p*) w_p
//             W_p*, X_p*: as for forces
//   results   by q   S . E           by v   S . V*           by a   S . A*
//
// Joints whose columns change in the body's axes add the effect of these changes (g = dS v, b = dS a + d bias, h = dS x):
//
//   by q   g . V* + b . A* + h . [W*; U*]               by v   dv bias . A*
//
// A displacement of a joint's frame on its body has the effect of an additional joint at rest in that place: E with V = A = 0. It is summed over all
// bodies beyond the joint, including those with fixed joints, whose frames may be displaced too. A displacement of the frame on the child moves these
// bodies by its inverse.
//
// Rows of loops and forces between bodies are given by covectors in world axes: derivatives with respect to a displacement (E_S), to spatial velocity
// and acceleration V and A, and to a virtual velocity (E_W), where a displacement of a joint changes V by S' and A by S'' + S' x V (S' = V_p x S,
// S'' = A_p x S + V_p x S'), so that E_S' = F_V + V x* F_A and E_S'' = F_A contain all effects of S' and S''.
//
//   cost    O(bodies)
#pragma once

#include "bodies.hpp"
#include "derivatives.hpp"
#include "dimensions.hpp"
#include "rnea.hpp"

namespace sarrus {

/// Derivatives of a scalar by the motion of a body, in world axes about a point; see the head of this file.
template <class T> struct Covectors {
  Force<T> S, S1, S2, W;
  bool of_velocities = false;  // true: S2 and W are zero
  bool has_W = true;  // false: W is zero

  static Covectors zero() {
    const Force<T> none = Force<T>::zero();
    return {none, none, none, none};
  }
  Covectors operator-() const { return {S * T(-1.0), S1 * T(-1.0), S2 * T(-1.0), W * T(-1.0), of_velocities, has_W}; }
};

/// Derivatives of a scalar by the motion of a body, in its axes at its origin: a*, dw*, w*, u*, (W*, U*) and X* in the head of this file.
template <class T> struct LinkCotangent {
  Vec3<T> a, dw, w, u;
  Force<T> W, X;

  static LinkCotangent zero() { return {zero3<T>(), zero3<T>(), zero3<T>(), zero3<T>(), Force<T>::zero(), Force<T>::zero()}; }
  LinkCotangent& operator+=(const LinkCotangent& b) {
    a += b.a, dw += b.dw, w += b.w, u += b.u, W += b.W, X += b.X;
    return *this;
  }
};
/// Derivatives by the displacement and velocity of a body, in world axes about its origin.
template <class T> struct VelocityCotangent {
  Force<T> S, S1;
};
/// Derivatives by the motion of a joint: by its displacement (E), V and A.
template <class T> struct JointCotangent {
  Force<T> E, V, A;
};

/// Derivatives with respect to a displacement in the tangent space, v and a (nv each); results are added to these arrays.
template <class T> struct Gradient {
  T *q, *v, *a;
};

/// A body, in its axes at its origin, whose motion is perturbed along a different direction in each lane.
template <class R, class T> struct MovedBody {
  Transform<Varied<R, T>> X;  // pose in the world
  Vec3<Varied<R, T>> w, u, dw, a;  // a: classical acceleration minus that of gravity

  LinkMotion<Varied<R, T>> in_world() const { return {X, {X.R * w, X.R * u}, {X.R * dw, X.R * a}}; }
};
enum class Variation { carried, V, A };  // perturbed quantity: pose, V or A; each has six directions, [angular; linear]

/// Perturb the motion of the body along the directions first .. last - 1, one per lane.
template <class R, class T> MovedBody<R, T> moved_body(const LinkMotion<T>& b, const Vec3<T>& gravity, int first, int last) {
  const auto in_body = [&](const Vec3<T>& x) { return transpose_times(b.X.R, x); };
  const Vec3<T> w = in_body(b.V.angular), u = in_body(b.V.linear);
  MovedBody<R, T> m = {still<R>(b.X), still<R>(w), still<R>(u), still<R>(in_body(b.A.angular)),
                       still<R>(in_body(b.A.linear - gravity))};
  const auto move = [](Vec3<Varied<R, T>>& x, const Vec3<T>& along, int l) {
    for (int n = 0; n < 3; ++n) column_in<T>(x(n).rate, l) += along(n);
  };
  for (int d = first; d < last; ++d) {
    const Vec3<T> e = Vec3<T>::Unit(d % 3);
    const bool angular = d % 6 < 3;
    const int l = d - first;
    switch (static_cast<Variation>(d / 6)) {
      case Variation::carried:
        if (!angular) move(m.X.p, b.X.R * e, l);
        for (int n = 0; n < 3 && angular; ++n) {
          const Vec3<T> turned = b.X.R * cross(e, Vec3<T>(Vec3<T>::Unit(n)));
          for (int k = 0; k < 3; ++k) column_in<T>(m.X.R(k, n).rate, l) = turned(k);
        }
        break;
      case Variation::V:  // the spatial acceleration does not change; the classical one is its linear part plus w x u
        move(angular ? m.w : m.u, e, l);
        move(m.a, angular ? cross(e, u) : cross(w, e), l);
        break;
      case Variation::A: move(angular ? m.dw : m.a, e, l);
    }
  }
  return m;
}

/// Convert the rates of a scalar along these perturbations to covectors of the body about its origin. each(first, last) returns the rates.
template <class R, class T, class Each> Covectors<T> covectors_of(const LinkMotion<T>& b, int variations, Each each) {
  T rate[18];
  for (T& x : rate) x = T(0.0);
  for (int first = 0; first < 6 * variations; first += columns_of<T, R>) {
    const int last = std::min(6 * variations, first + columns_of<T, R>);
    const R rates = each(first, last);
    for (int d = first; d < last; ++d) rate[d] = column_in<T>(rates, d - first);
  }
  const auto along = [&](Variation variation) {
    const Force<T> f = load_force(rate + 6 * static_cast<int>(variation));
    return Force<T>{b.X.R * f.angular, b.X.R * f.linear};
  };
  const Force<T> F_A = along(Variation::A);
  return {along(Variation::carried), along(Variation::V) + cross_force(b.V, F_A), F_A, Force<T>::zero()};
}

template <class T> class Pullback {
 public:
  using Vec = Vec3<T>;
  using Covectors = sarrus::Covectors<T>;
  using Cotangent = LinkCotangent<T>;

  /// work: result of rnea() for this input. x: virtual velocities; may be null.
  Pullback(const Tree& tree, Arena& arena, const RneaInput<T>& in, const RneaWork<T>& work, const T* x)
      : tree_(tree),
        arena_(arena),
        in_(in),
        work_(work),
        x_(x),
        W_(arena.take<Motion<T>>(tree.links)),
        sum_(arena.take<Cotangent>(tree.links)) {
    W_[0] = Motion<T>::zero();
    for (int i = 1; i < tree.links; ++i) {
      const Link& b = tree.link[i];
      W_[i] = b.parent == 0 ? Motion<T>::zero() : work.link[i].X.to_child(W_[b.parent]);
      if (!x) continue;
      visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED { W_[i] = W_[i] + joint.subspace(work.columns + b.iv) * (x + b.iv); });
    }
    if (tree.ties_links || tree.loops.constraints > 0) place();
    clear();
  }

  void clear() {
    has_bodies_ = of_velocities_ = false;
    clear(sum_, tree_.links);
    if (body_sum_) clear(body_sum_, tree_.bodies);
  }
  /// Begin the sums of a scalar that depends on q and velocities only, for inward_of_velocities(). The mechanism has loops.
  void clear_velocities() {
    of_velocities_ = true;
    clear(velocity_sum_, tree_.links);
  }
  /// Enable sums for the bodies of the description, which by_placements() needs. Call before covectors are added.
  void keep_bodies() {
    body_sum_ = arena_.take<Cotangent>(tree_.bodies);
    if (!u_) place();
    clear();
  }

  /// Motions of the links in world axes, without columns. Available if the mechanism has loops or forces between bodies.
  const Kinematics<T>& kinematics() const { return k_; }
  /// Return the spatial velocity of a link about a point of the world.
  Motion<T> V_about(int i, const Vec& p) const {
    const LinkMotion<T>& b = k_.link[i];
    return {b.V.angular, b.V.linear + cross(b.V.angular, Vec(p - b.X.p))};
  }
  Motion<T> A_about(int i, const Vec& p) const {
    const LinkMotion<T>& b = k_.link[i];
    return {b.A.angular,
            b.A.linear - cross(b.V.angular, b.V.linear) + cross(b.A.angular, Vec(p - b.X.p)) - cast<T>(tree_.gravity)};
  }
  Motion<T> W_about(int i, const Vec& p) const {
    const Motion<T> W = turned(k_.link[i].X.R, W_[i]);
    return {W.angular, W.linear + cross(W.angular, Vec(p - k_.link[i].X.p))};
  }

  /// Add covectors for a body of link i, about a point of the world. `in_force`: the force that rnea() transmits contains E_W.
  void add(int i, int body, const Covectors& e, const Vec& p, bool in_force = false) {
    if (i == 0 && !body_sum_) return;
    if (body_sum_) body_sum_[body] += on_link(i, e, p);
    add_on_link(i, e, p, in_force, sum_[i]);
  }

  /// Add the scalar x . (forces for the bodies' motion - wrenches).
  void add_bodies() {
    has_bodies_ = true;
    if (!body_sum_) return;
    for (int i = 1; i < tree_.bodies; ++i) {
      const Body& b = tree_.body[i];
      const Inertia<T> inertia = transformed(cast<T>(b.X), cast<T>(b.inertia));
      const RneaLink<T>& link = work_.link[b.link];
      add_inertia(b.link, inertia, euler_tensor(inertia.I).matrix(), body_sum_[i]);
      const Mat3<T> OJ = link.Omega * euler_tensor(inertia.I).matrix();
      body_sum_[i].W += {ax(OJ) + cross(inertia.h, link.a), link.a * inertia.m + link.Omega * inertia.h};
    }
    for (int n = 0; n < in_.wrenches; ++n) body_sum_[in_.wrench[n].body].W -= in_.wrench[n].in_link();
  }

  /// Add covectors for two links whose interaction depends only on their relative motion. The second link receives e, the first link the opposite
  /// covectors.
  void add_between(const int* link, const int* body, const Covectors& e, const Vec& p, bool in_force = false) {
    if (of_velocities_) {
      add_velocities(link[1], e, p, [](Force<T>& sum, const Force<T>& f) SARRUS_INLINED { sum += f; });
      add_velocities(link[0], e, p, [](Force<T>& sum, const Force<T>& f) SARRUS_INLINED { sum -= f; });
      return;
    }
    add(link[1], body[1], e, p, in_force);
    add(link[0], body[0], -e, p, in_force);
  }

  /// Add the scalar x . (forces of the joints' friction, springs and armatures, and forces between bodies).
  template <class R> void add_passive(const T* q, const Gradient<T>& by, const Dimensions<T>* dimensions = nullptr) {
    if (tree_.has_armature)
      for (int c = 0; c < tree_.nv; ++c) by.a[c] += T(tree_.passive[c].armature) * x_[c];
    if (tree_.has_joint_forces) add_joint_springs<R>(q, by);
    if (!tree_.ties_links) return;
    for (int i = 0; i < tree_.springs; ++i)
      add_tie<R>(tree_.spring[i].link, tree_.spring[i].body,
                 [&](const auto& k, auto put) { put_forces(tree_.spring[i], {}, k, put); });
    for (int i = 0; i < tree_.loop_motions; ++i)
      if (const LoopMotion& joint = tree_.loop_motion[i]; joint.has_forces || joint.has_armature) {
        const Covectors e =
            add_tie<R>(joint.link, joint.body, [&](const auto& k, auto put) { put_forces(joint, {}, k, put, true); });
        if (dimensions) by_frames(joint.constraint, e, k_.link[joint.link[1]].X.p, *dimensions);
      }
  }
  /// Compute derivatives with respect to displacements of the frames of constraint i. e: covectors of its child, about the point p.
  void by_frames(int i, const Covectors& e, const Vec& p, const Dimensions<T>& by) const {
    const Constraint& c = tree_.loops.constraint[i];
    Transform<T> turn = Transform<T>::identity();
    if (std::holds_alternative<LoopJoint>(c.kind)) turn.R = cast<T>(c.R_described).transpose();
    const auto on = [&](int link, const Transform<double>& X, int side) {
      put(at_rest(link, on_link(link, e, p)), cast<T>(X) * turn, T(side ? 1.0 : -1.0), by.constraint_placement(i, side));
    };
    on(c.parent, c.X_parent, 0), on(c.child, c.X_child, 1);
  }

  /// Compute derivatives of x . inverse dynamics with respect to the inertial parameters of all bodies, in the order of regressor().
  void by_parameters(T* out) const {
    for (int i = 1; i < tree_.bodies; ++i) {
      const Body& body = tree_.body[i];
      const RneaLink<T>& link = work_.link[body.link];
      const Transform<T> X = cast<T>(body.X);
      const BodyMotion<T> m = {X, transpose_times(X.R, link.w), transpose_times(X.R, link.dw),
                               transpose_times(X.R, Vec(link.a + link.Omega * X.p))};
      parameter_powers(m, X.to_child(W_[body.link]), out + 10 * body.described);
    }
  }

  /// Compute derivatives with respect to placements of all joints, pitches of screws and gravity. Call this function before inward().
  void by_placements(const T* q, const Dimensions<T>& by) {
    for (int i = 0; i < tree_.bodies; ++i) {  // gravity acts on every body like an acceleration of the opposite sign
      const Vec a = k_.link[tree_.body[i].link].X.R * body_sum_[i].a;
      for (int k = 0; k < 3; ++k) by.gravity()[k] -= a(k);
    }
    for (int i = tree_.bodies - 1; i > 0; --i) {
      const Body& b = tree_.body[i];
      const int before = tree_.body[b.parent].link;
      const bool fixed = before == b.link;
      const Cotangent& here = body_sum_[i];
      const RneaLink<T>&link = work_.link[b.link], &parent = work_.link[before];
      // velocity of the joint
      const Vec w0 = transpose_times(link.X.R, parent.w), u0 = velocity_at_rest(b.link, before);
      const Motion<T> V = {link.w - w0, u_[b.link] - u0};
      const Cotangent there = fixed ? here : to_parent(b.link, here, V);
      put(at_rest(before, there), cast<T>(b.X_before), T(1.0), by.joint_placement(b, b.reversed));
      put(at_rest(b.link, here), cast<T>(b.X_joint), T(-1.0), by.joint_placement(b, !b.reversed));
      const Link& joint = tree_.link[b.link];
      if (!fixed && visit_every(joint.described, joint.nv, [](auto type) -> bool { return type.has_pitch; }))
        by.joint_term(Dimensions<T>::pitch, joint.iv) += by_pitch(b.link, q[joint.iq], here, V);
      body_sum_[b.parent] += there;
    }
  }
  /// Convert a covector f of a link to derivatives with respect to displacements of a frame that has the pose X in the link.
  static void put(const Force<T>& f, const Transform<T>& X, const T& sign, T* out) {
    const Vec turn = transpose_times(X.R, Vec(f.angular - cross(X.p, f.linear))), shift = transpose_times(X.R, f.linear);
    for (int k = 0; k < 3; ++k) out[k] += sign * turn(k), out[3 + k] += sign * shift(k);
  }

  /// Compute derivatives of x . inverse dynamics with respect to the parameters of forces along joints, and of springs. The derivative is the power
  /// of the force for a unit of the parameter.
  void by_forces(const T* q, const Dimensions<T>& by) const {
    const int n = tree_.nv;
    PassiveTerms* unit = arena_.take<PassiveTerms>(n);
    T* tau = arena_.take<T>(n);
    Tree tree = tree_;
    tree.passive = unit, tree.has_nonlinear_forces = true;
    for (const auto term : forces) {
      for (int c = 0; c < n; ++c) unit[c] = only(term, tree_.passive[c]), tau[c] = T(0.0);
      add_joint_forces(tree, q, in_.v, T(1.0), tau);
      for (int c = 0; c < n; ++c) {
        by.joint_term(term, c) += x_[c] * tau[c];
        by.joint_term(Dimensions<T>::rest, c) -= x_[c] * tau[c] * T(slope(term, tree_.passive[c].nonlinear));
      }
    }
    for (int c = 0; c < n; ++c) {
      by.joint_term(Dimensions<T>::rest, c) -= x_[c] * T(tree_.passive[c].stiffness);
      by.joint_term(Dimensions<T>::armature, c) += x_[c] * in_.a[c];
    }
    for (int i = 0; i < tree_.loop_motions; ++i)
      if (!tree_.loops.constraint[tree_.loop_motion[i].constraint].driven)
        for (int c = 0; c < tree_.loop_motion[i].nv; ++c) by_loop_joint(tree_.loop_motion[i], c, by);
    for (int i = 0; i < tree_.springs; ++i) {
      const PointSpring& s = tree_.spring[i];
      const auto needs = [&](double stiffness, double rest, double damping, const NonlinearTerms& nonlinear = {}) {
        PointSpring other = s;
        other.stiffness = stiffness, other.rest_length = rest, other.damping = damping, other.nonlinear = nonlinear;
        return power([&](auto put) { put_forces(other, {}, k_, put); });
      };
      const T linear = needs(1.0, s.rest_length, 0.0), square = needs(0.0, s.rest_length, 0.0, {1.0});
      T* out = by.spring_numbers(i);
      out[0] += linear;
      // the linear part of the force is linear in the rest length; the derivatives of powers of the stretch are lower powers
      out[1] += needs(s.stiffness, 1.0, 0.0) - needs(s.stiffness, 0.0, 0.0) - T(2.0 * s.nonlinear.quadratic_stiffness) * linear -
                T(3.0 * s.nonlinear.cubic_stiffness) * square;
      out[2] += needs(0.0, 0.0, 1.0);
      out[3] += square;
      out[4] += needs(0.0, s.rest_length, 0.0, {0.0, 1.0});
      out[5] += needs(0.0, 0.0, 0.0, {0.0, 0.0, 1.0});
      out[6] += needs(0.0, 0.0, 0.0, {0.0, 0.0, 0.0, 1.0});
    }
  }

  /// Compute the data of joints whose columns change; once per state.
  template <class R> void collect_columns(const T* q) {
    for (int i = 1; i < tree_.links; ++i) {
      if (has_constant_columns(tree_.link[i])) continue;
      if (!change_) change_ = arena_.take<ColumnChange>(tree_.nv);
      change_columns<R>(i, q);
    }
  }
  /// Sum the cotangents of subtrees inwards, and add the derivatives to the gradient.
  void inward(const Gradient<T>& by) {
    for (int i = tree_.links - 1; i > 0; --i) {
      const Link& b = tree_.link[i];
      Cotangent& c = sum_[i];
      if (has_bodies_) add_inertia(i, cast<T>(b.inertia), cast<T>(b.euler).matrix(), c);
      visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
        constexpr int most = decltype(joint)::most;
        const auto S = joint.subspace(work_.columns + b.iv);
        const Motion<T> V = S * (in_.v + b.iv);
        const RneaLink<T>& link = work_.link[i];
        const Vec w0 = link.w - V.angular;
        Vec dw0, a0;
        if constexpr (std::is_same_v<decltype(joint), General>) {
          dw0 = transpose_times(link.X.R, work_.link[b.parent].dw), a0 = acceleration_at_rest(i, b.parent);
        } else {
          const Motion<T> A = S * (in_.a + b.iv);
          dw0 = link.dw - cross(w0, V.angular) - A.angular;
          a0 = link.a - cross(Vec(w0 * T(2.0) + V.angular), V.linear) - A.linear;
        }
        Motion<T> W0 = W_[i];
        if (x_) W0 = W0 + (S * (x_ + b.iv)) * T(-1.0);
        Force<T> W = c.W;
        if (has_bodies_) W += link.f;
        const JointCotangent<T> at = at_joint(c, V, w0, dw0, a0, W0, W, u_ ? Vec(u_[i] - V.linear) : zero3<T>());
        T by_q[most], by_v[most], by_a[most];
        S.project(at.E, by_q), S.project(at.V, by_v), S.project(at.A, by_a);
        for (int k = 0; k < joint.nv; ++k) by.q[b.iv + k] += by_q[k], by.v[b.iv + k] += by_v[k], by.a[b.iv + k] += by_a[k];
        if constexpr (std::is_same_v<decltype(joint), General>)
          for (int k = b.iv; change_ && !has_constant_columns(b) && k < b.iv + b.nv; ++k) {
            const ColumnChange& change = change_[k];
            by.q[k] += dot(change.g, at.V) + dot(change.b, at.A) + dot(change.h, W);
            by.v[k] += dot(change.bias_by_v, at.A);
          }
        if (b.parent > 0) add_to_parent(i, c, V, sum_[b.parent]);
      });
    }
  }
  /// Sum inwards and add the derivatives by q, for a scalar that depends on q and velocities only: S . (E_S - V_p x* E_S').
  void inward_of_velocities(T* by_q) {
    for (int i = tree_.links - 1; i > 0; --i) {
      const Link& b = tree_.link[i];
      const VelocityCotangent<T>& c = velocity_sum_[i];
      const Transform<T>& X = k_.link[i].X;
      const auto in_link = [&](const Force<T>& f) SARRUS_INLINED {
        return Force<T>{transpose_times(X.R, f.angular), transpose_times(X.R, f.linear)};
      };
      const Force<T> E = in_link(c.S + cross_force(V_about(b.parent, X.p), c.S1) * T(-1.0));
      visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
        T by[decltype(joint)::most];
        joint.subspace(work_.columns + b.iv).project(E, by);
        for (int k = 0; k < joint.nv; ++k) by_q[b.iv + k] += by[k];
      });
      for (int k = b.iv; change_ && !has_constant_columns(b) && k < b.iv + b.nv; ++k) by_q[k] += dot(change_[k].g, in_link(c.S1));
      if (b.parent == 0) continue;
      const Vec r = X.p - k_.link[b.parent].X.p;
      velocity_sum_[b.parent].S += about(c.S, r), velocity_sum_[b.parent].S1 += about(c.S1, r);
    }
  }

 private:
  /// Return ax G, with ax G . b = tr(G^T skew(b)).
  static SARRUS_INLINE Vec ax(const Mat3<T>& G) { return vec3<T>(G(2, 1) - G(1, 2), G(0, 2) - G(2, 0), G(1, 0) - G(0, 1)); }

  template <class Sum> static void clear(Sum* c, int count) {
    constexpr int numbers = sizeof(Sum) / sizeof(T);
    std::fill(reinterpret_cast<T*>(c), reinterpret_cast<T*>(c) + numbers * count, T(0.0));
  }

  /// Compute poses and motions in the world, and linear velocities in the links' axes.
  void place() {
    u_ = arena_.take<Vec>(tree_.links), velocity_sum_ = arena_.take<VelocityCotangent<T>>(tree_.links);
    k_.link = arena_.take<LinkMotion<T>>(tree_.links), k_.column = k_.column_dot = nullptr;
    const Vec gravity = cast<T>(tree_.gravity);
    for (int i = 0; i < tree_.links; ++i) {
      const Link& b = tree_.link[i];
      const RneaLink<T>& link = work_.link[i];
      Transform<T>& X = k_.link[i].X;
      if (i == 0) {
        X = Transform<T>::identity();
        u_[0] = in_.ground.velocity ? load_motion(in_.ground.velocity).linear : zero3<T>();
      } else {
        X = k_.link[b.parent].X * link.X;
        u_[i] = velocity_at_rest(i, b.parent);
        visit(b.joint, b.nv,
              [&](auto joint) SARRUS_INLINED { u_[i] = u_[i] + (joint.subspace(work_.columns + b.iv) * (in_.v + b.iv)).linear; });
      }
      k_.link[i].V = turned(X.R, Motion<T>{link.w, u_[i]});
      k_.link[i].A = turned(X.R, Motion<T>{link.dw, link.a});
      k_.link[i].A.linear += gravity;
    }
  }
  /// Return u0 and a0 of link i, see the head of this file.
  SARRUS_INLINE Vec velocity_at_rest(int i, int parent) const {
    const Transform<T>& X = work_.link[i].X;
    return transpose_times(X.R, Vec(u_[parent] + cross(work_.link[parent].w, X.p)));
  }
  SARRUS_INLINE Vec acceleration_at_rest(int i, int parent) const {
    const Transform<T>& X = work_.link[i].X;
    return transpose_times(X.R, Vec(work_.link[parent].a + work_.link[parent].Omega * X.p));
  }

  /// Convert covectors about a point of the world to a link's axes and origin.
  Cotangent on_link(int i, const Covectors& e, const Vec& p) const {
    Cotangent c = Cotangent::zero();
    add_on_link(i, e, p, false, c);
    return c;
  }
  /// Pass the covectors S and S', about the link's origin, to add(sum, covector).
  template <class Add> SARRUS_INLINE void add_velocities(int i, const Covectors& e, const Vec& p, Add add) {
    const Vec r = p - k_.link[i].X.p;
    add(velocity_sum_[i].S, about(e.S, r)), add(velocity_sum_[i].S1, about(e.S1, r));
  }
  /// Return a force f that acts at r, about the origin.
  static SARRUS_INLINE Force<T> about(const Force<T>& f, const Vec& r) { return {f.angular + cross(r, f.linear), f.linear}; }
  void add_on_link(int i, const Covectors& e, const Vec& p, bool in_force, Cotangent& to) const {
    const Transform<T>& X = k_.link[i].X;
    const Vec r = p - X.p, &w = work_.link[i].w;
    const auto in_link = [&](const Force<T>& f) SARRUS_INLINED {
      return Force<T>{transpose_times(X.R, Vec(f.angular + cross(r, f.linear))), transpose_times(X.R, f.linear)};
    };
    const Force<T> S1 = in_link(e.S1);
    to.w += S1.angular, to.u += S1.linear, to.X += in_link(e.S);
    if (e.of_velocities) return;
    const Force<T> S2 = in_link(e.S2);
    to.a += S2.linear, to.dw += S2.angular;
    to.w -= cross(w, S2.angular) + cross(u_[i], S2.linear) * T(2.0);  // the spatial acceleration is [dw; a - w x u]
    if (e.has_W && !in_force) to.W += in_link(e.W);
  }

  SARRUS_INLINE void add_inertia(int i, const Inertia<T>& I, const Mat3<T>& J, Cotangent& to) const {
    const Vec &W = W_[i].angular, &U = W_[i].linear, &w = work_.link[i].w;
    Mat3<T> G;
    for (int n = 0; n < 3; ++n) G.col(n) = U * I.h(n) + cross(W, Vec(J.col(n)));
    const T twice = T(2.0) * (G(0, 0) + G(1, 1) + G(2, 2));
    to.a += U * I.m + cross(W, I.h);
    to.dw += ax(G);
    to.w += G * w + transpose_times(G, w) - w * twice;
  }

  /// Return the derivatives by the motion of a joint with the velocity V, from those of its body.
  SARRUS_INLINE JointCotangent<T> at_joint(const Cotangent& c, const Motion<T>& V, const Vec& w0, const Vec& dw0, const Vec& a0,
                                           const Motion<T>& W0, const Force<T>& W, const Vec& u0) const {
    JointCotangent<T> at;
    at.A = {c.dw, c.a};
    at.V = {c.w + cross(c.dw, w0) + cross(V.linear, c.a), cross(c.a, Vec(w0 * T(2.0) + V.angular))};
    const Vec by_w0 = c.w + cross(V.angular, c.dw) + cross(V.linear, c.a) * T(2.0);
    at.E.angular =
        cross(by_w0, w0) + cross(c.dw, dw0) + cross(c.a, a0) + cross(W.angular, W0.angular) + cross(W.linear, W0.linear);
    at.E.linear = cross(c.a, dw0) + cross(w0, cross(w0, c.a)) + cross(W.linear, W0.angular);
    if (u_) {
      at.V.linear += c.u;
      at.E.angular += c.X.angular + cross(c.u, u0), at.E.linear += c.X.linear + cross(c.u, w0);
    }
    return at;
  }
  /// Return E of a frame on a link, as that of a joint at rest.
  Force<T> at_rest(int i, const Cotangent& c) const {
    const RneaLink<T>& link = work_.link[i];
    return at_joint(c, Motion<T>::zero(), link.w, link.dw, link.a, W_[i], c.W, u_[i]).E;
  }
  /// Add the cotangent of link i, whose joint has the velocity V, to that of its parent.
  SARRUS_INLINE void add_to_parent(int i, const Cotangent& c, const Motion<T>& V, Cotangent& to) const {
    const Transform<T>& X = work_.link[i].X;
    const Vec &r = X.p, &w = work_.link[tree_.link[i].parent].w, a = X.R * c.a;
    to.a += a;
    to.dw += X.R * c.dw + cross(r, a);
    to.w += X.R * Vec(c.w + cross(V.angular, c.dw) + cross(V.linear, c.a) * T(2.0)) + a * dot(r, w) + r * dot(a, w) -
            w * (T(2.0) * dot(r, a));
    if (!u_) return;
    const Vec u = X.R * c.u;
    to.u += u, to.w += cross(r, u);
    to.W += X.to_parent(c.W), to.X += X.to_parent(c.X);
  }
  Cotangent to_parent(int i, const Cotangent& c, const Motion<T>& V) const {
    Cotangent to = Cotangent::zero();
    add_to_parent(i, c, V, to);
    return to;
  }

  /// Return the derivative with respect to the pitch of the helical joint of link i. A change of the pitch shifts the subtree along the axis by q
  /// times the change, and also changes the joint's column; see the head of this file.
  T by_pitch(int i, const T& q, const Cotangent& c, const Motion<T>& V) const {
    const Link& b = tree_.link[i];
    const RneaLink<T>& link = work_.link[i];
    const Motion<T> shift = {zero3<T>(), work_.columns[b.iv].angular};
    const Vec w0 = link.w - V.angular;
    const JointCotangent<T> at =
        at_joint(c, V, w0, transpose_times(link.X.R, work_.link[b.parent].dw), acceleration_at_rest(i, b.parent),
                 link.X.to_child(W_[b.parent]), c.W, velocity_at_rest(i, b.parent));
    const T changed = in_.v[b.iv] * dot(shift, at.V) + in_.a[b.iv] * dot(shift, at.A) + x_[b.iv] * dot(shift, c.W);
    return q * dot(shift, at.E) + changed;
  }
  /// Return passive terms in which one parameter is one and all others are zero, with the spring's rest position at zero.
  static PassiveTerms only(typename Dimensions<T>::Term term, const PassiveTerms& of) {
    PassiveTerms t = {0.0, 0.0, 0.0, 0.0, of.rest, {}, of.iq};
    (term == Dimensions<T>::stiffness             ? t.stiffness
     : term == Dimensions<T>::damping             ? t.damping
     : term == Dimensions<T>::friction            ? t.friction
     : term == Dimensions<T>::quadratic_stiffness ? t.nonlinear.quadratic_stiffness
     : term == Dimensions<T>::cubic_stiffness     ? t.nonlinear.cubic_stiffness
     : term == Dimensions<T>::quadratic_damping   ? t.nonlinear.quadratic_damping
     : term == Dimensions<T>::cubic_damping       ? t.nonlinear.cubic_damping
                                                  : t.armature) = 1.0;
    return t;
  }
  /// Terms of forces along joints, other than armature.
  static constexpr typename Dimensions<T>::Term forces[] = {Dimensions<T>::stiffness,       Dimensions<T>::damping,
                                                            Dimensions<T>::friction,        Dimensions<T>::quadratic_stiffness,
                                                            Dimensions<T>::cubic_stiffness, Dimensions<T>::quadratic_damping,
                                                            Dimensions<T>::cubic_damping};
  /// Return the factor of a term's force, for a unit of the term, in the derivative of the nonlinear force with respect to the deflection.
  static double slope(typename Dimensions<T>::Term term, const NonlinearTerms& f) {
    return term == Dimensions<T>::stiffness             ? 2.0 * f.quadratic_stiffness
           : term == Dimensions<T>::quadratic_stiffness ? 3.0 * f.cubic_stiffness
                                                        : 0.0;
  }
  /// Return - x . (the forces between bodies that `each` passes to its argument).
  template <class Each> T power(Each each) const {
    T sum = T(0.0);
    each([&](int link, int, const Force<T>& f, const Vec& p) { sum -= dot(W_about(link, p), f); });
    return sum;
  }
  void by_loop_joint(const LoopMotion& joint, int c, const Dimensions<T>& by) const {
    const auto needs = [&](const PassiveTerms& terms) {
      LoopMotion other = joint;
      for (int k = 0; k < joint.nv; ++k)
        other.terms[k] = PassiveTerms{0.0, 0.0, 0.0, 0.0, joint.terms[k].rest, {}, joint.terms[k].iq};
      other.terms[c] = terms, other.has_forces = true;
      return power([&](auto put) { put_forces(other, {}, k_, put, true); });
    };
    const int at = tree_.nv + joint.iv + c;
    by.joint_term(Dimensions<T>::armature, at) += needs(only(Dimensions<T>::armature, joint.terms[c]));
    for (const auto term : forces) {
      const T force = needs(only(term, joint.terms[c]));
      by.joint_term(term, at) += force;
      by.joint_term(Dimensions<T>::rest, at) -= force * T(slope(term, joint.terms[c].nonlinear));
    }
    if (has_ball_spring(joint.joint) || joint.terms[c].stiffness == 0.0) return;
    // the linear part of the force is a linear function of the rest position if this changes by less than a revolution
    PassiveTerms less = only(Dimensions<T>::stiffness, joint.terms[c]), more = less;
    less.rest -= 1e-3, more.rest += 1e-3;
    by.joint_term(Dimensions<T>::rest, at) += (needs(more) - needs(less)) * T(joint.terms[c].stiffness / 2e-3);
  }

  static bool has_constant_columns(const Link& b) {
    if (b.nv <= 1) return true;
    return b.joint != JointKind::reversed &&
           visit_every(b.described, b.nv, [](auto joint) -> bool { return joint.constant_subspace; });
  }

  /// Add the springs and dampers of joints.
  template <class R> void add_joint_springs(const T* q, const Gradient<T>& by) {
    const auto numbers = tree_.numbers<T>();
    for (int c = 0; c < tree_.nv; ++c) {
      const PassiveTerms& f = tree_.passive[c];
      by.v[c] += x_[c] * tangent_damping(numbers(f.damping), f.nonlinear, numbers, in_.v[c]);
      if (f.iq >= 0) by.q[c] += x_[c] * tangent_stiffness(numbers(f.stiffness), f.nonlinear, numbers, q[f.iq] - numbers(f.rest));
    }
    for (int i = 1; i < tree_.links; ++i)
      if (has_ball_spring(tree_.link[i].described)) add_ball_spring<R>(tree_.link[i], q, by.q);
  }
  template <class R> void add_ball_spring(const Link& b, const T* q, T* by_q) {
    for (int first = 0; first < 3; first += columns_of<T, R>) {
      const int count = std::min(columns_of<T, R>, 3 - first);
      Varied<R, T> varied_q[7];
      for (int n = 0; n < 4; ++n) varied_q[n] = {q[b.iq + n], R(0.0)};
      for (int l = 0; l < count; ++l) {
        T unit[6], rate[7];
        for (int n = 0; n < 6; ++n) unit[n] = T(n == first + l ? 1.0 : 0.0);
        visit_every(b.described, b.nv, [&](auto joint) { joint.rate(q + b.iq, unit, rate); });
        for (int n = 0; n < 4; ++n) column_in<T>(varied_q[n].rate, l) = rate[n];
      }
      const auto numbers = tree_.numbers<Varied<R, T>>();
      const BallDeflection<Varied<R, T>> ball(log(Quaternion<Varied<R, T>>::load(varied_q).normalized()));
      for (int k = 0; k < 3; ++k) {
        const PassiveTerms& f = tree_.passive[b.iv + k];
        const Varied<R, T> force =
            numbers(f.stiffness) * ball.w(k) + nonlinear_spring(f.nonlinear, numbers, {ball.w(k), ball.norm});
        for (int l = 0; l < count; ++l) by_q[b.iv + first + l] += x_[b.iv + k] * column_in<T>(force.rate, l);
      }
    }
  }

  /// Add the scalar - x . (the forces that `put` applies to these two links). Returns the covectors of the second link, about its origin.
  template <class R, class Put> Covectors add_tie(const int* link, const int* body_of, Put put_between) {
    const Arena::Scope scope(arena_);
    auto* all = arena_.take<LinkMotion<Varied<R, T>>>(tree_.links);
    const int moved = link[1], other = link[0];
    const LinkMotion<T>& link_motion = k_.link[moved];
    const Motion<T> W = in_axes(link_motion.X.R, W_about(moved, link_motion.X.p)), W_other = W_about(other, k_.link[other].X.p);
    const Vec gravity = cast<T>(tree_.gravity);
    all[other] = moved_body<R>(k_.link[other], gravity, 0, 0).in_world();
    Force<T> pushed = Force<T>::zero();  // force on the perturbed link, at its origin
    Covectors e = covectors_of<R>(link_motion, 3, [&](int first, int last) {
      const MovedBody<R, T> body = moved_body<R>(link_motion, gravity, first, last);
      all[moved] = body.in_world();
      Varied<R, T> power = 0.0;
      pushed = Force<T>::zero();
      const auto put = [&](int on, int, const Force<Varied<R, T>>& f, const Vec3<Varied<R, T>>& p) {
        const bool mine = on == moved;
        const Motion<Varied<R, T>> m = mine ? turned(body.X.R, Motion<Varied<R, T>>{still<R>(W.angular), still<R>(W.linear)})
                                            : Motion<Varied<R, T>>{still<R>(W_other.angular), still<R>(W_other.linear)};
        const Vec3<Varied<R, T>> r = p - all[on].X.p;
        power += dot(m, Force<Varied<R, T>>{f.angular + cross(r, f.linear), f.linear});
        if (!mine) return;
        const Vec3<Varied<R, T>> moment = f.angular + cross(r, f.linear);
        for (int n = 0; n < 3; ++n) pushed.angular(n) += moment(n).value, pushed.linear(n) += f.linear(n).value;
      };
      Kinematics<Varied<R, T>> k;
      k.link = all, k.column = k.column_dot = nullptr;
      put_between(k, put);
      return power.rate;
    });
    e.W = pushed;
    e = -e;
    if (moved != other) add_between(link, body_of, e, link_motion.X.p, true);
    return e;
  }

  /// Changes of a joint's own columns by its rotations, in the body's axes; see the head of this file.
  struct ColumnChange {
    Motion<T> g, b, h, bias_by_v;
  };

  /// Compute the columns of a joint that depend on its coordinates, and their rate times v.
  template <class Number>
  static void columns_at(const Link& b, const Coordinates<Number>& c, const Number* v, Motion<Number>* column,
                         Motion<Number>& bias) {
    if (b.joint == JointKind::reversed) {
      JointMotion<Number> J;
      joint_motion(b.joint, b.nv, c, v, J);
      std::copy(J.column, J.column + b.nv, column), bias = J.bias;
    } else {
      visit_every(b.joint, b.nv, [&](auto joint) {
        if constexpr (!decltype(joint)::constant_subspace) {
          const auto S = joint.subspace(c);
          std::copy(S.column, S.column + b.nv, column), bias = joint.subspace_rate(c, v) * v;
        }
      });
    }
  }

  /// Compute the changes of the joint's columns along displacements and changes of velocity of the joint itself, one direction per lane.
  template <class R> void change_columns(int i, const T* q) {
    using Number = Varied<R, T>;
    const Arena::Scope scope(arena_);
    const Link& b = tree_.link[i];
    const int coordinates = visit_every(b.described, b.nv, [](auto joint) -> int { return joint.nq; });
    for (int first = 0; first < 2 * b.nv; first += columns_of<T, R>) {  // displacements, then changes of v
      const int count = std::min(columns_of<T, R>, 2 * b.nv - first);
      Number varied_q[7], v[6], sin[7], cos[7];
      for (int n = 0; n < coordinates; ++n) varied_q[n] = {q[b.iq + n], R(0.0)};
      for (int n = 0; n < b.nv; ++n) v[n] = {in_.v[b.iv + n], R(0.0)};
      for (int l = 0; l < count; ++l) {
        const int d = first + l;
        if (d >= b.nv) {
          column_in<T>(v[d - b.nv].rate, l) = T(1.0);
          continue;
        }
        T unit[6], rate[7];
        for (int n = 0; n < 6; ++n) unit[n] = T(n == d ? 1.0 : 0.0);
        visit_every(b.described, b.nv, [&](auto joint) { joint.rate(q + b.iq, unit, rate); });
        for (int n = 0; n < coordinates; ++n) column_in<T>(varied_q[n].rate, l) = rate[n];
      }
      for (int n = b.iangle; n < tree_.angles; ++n) {
        const int index = tree_.angle[n] - b.iq;
        if (index < 0 || index >= coordinates) break;
        sincos(varied_q[index], sin[n - b.iangle], cos[n - b.iangle]);
      }
      Motion<Number> column[6], bias;
      columns_at(b, Coordinates<Number>{varied_q, sin, cos, {&b.constants}}, v, column, bias);
      const auto rates_of = [](const Motion<Number>& m) {
        Motion<R> rates;
        for (int r = 0; r < 3; ++r) rates.angular(r) = m.angular(r).rate, rates.linear(r) = m.linear(r).rate;
        return rates;
      };
      Motion<R> bias_by_v = rates_of(bias), g = Motion<R>::zero(), bias_rate = bias_by_v, h = g;
      for (int n = 0; n < b.nv; ++n) {
        const Motion<R> dS = rates_of(column[n]);
        g = g + dS * R(in_.v[b.iv + n]), bias_rate = bias_rate + dS * R(in_.a[b.iv + n]);
        if (x_) h = h + dS * R(x_[b.iv + n]);
      }
      for (int l = 0; l < count; ++l) {
        const auto along = [l](Motion<R>& m) {
          Motion<T> rate;
          for (int r = 0; r < 3; ++r)
            rate.angular(r) = column_in<T>(m.angular(r), l), rate.linear(r) = column_in<T>(m.linear(r), l);
          return rate;
        };
        const int d = first + l;
        if (d >= b.nv) {
          change_[b.iv + d - b.nv].bias_by_v = along(bias_by_v);
          continue;
        }
        ColumnChange& change = change_[b.iv + d];
        change.g = along(g), change.b = along(bias_rate), change.h = along(h);
      }
    }
  }

  const Tree& tree_;
  Arena& arena_;
  const RneaInput<T> in_;
  const RneaWork<T> work_;
  const T* x_;
  Motion<T>* W_;  // virtual velocity of each link, in its axes
  Cotangent *sum_, *body_sum_ = nullptr;
  VelocityCotangent<T>* velocity_sum_ = nullptr;
  bool has_bodies_ = false, of_velocities_ = false;
  Vec* u_ = nullptr;  // null: nothing depends on linear velocities and poses
  Kinematics<T> k_ = {};
  ColumnChange* change_ = nullptr;
};

/// Compute the derivatives of w . inverse dynamics with respect to q, v, a and the inertial parameters of all bodies: 3 nv + 10 (bodies - 1) numbers.
/// If `dimensions` is not null, its entries, which must be zero on entry, receive the derivatives with respect to dimensions.
template <class R, class T>
void inverse_dynamics_vjp(const Tree& tree, Arena& arena, const RneaInput<T>& in, const T* w, T* out,
                          const Dimensions<T>* dimensions = nullptr) {
  const RneaWork<T> work = rnea(tree, arena, in, arena.take<T>(tree.nv));
  std::fill(out, out + 3 * tree.nv, T(0.0));
  const Gradient<T> by = {out, out + tree.nv, out + 2 * tree.nv};
  Pullback<T> pullback(tree, arena, in, work, w);
  if (dimensions) pullback.keep_bodies();
  pullback.add_bodies();
  pullback.template add_passive<R>(in.q, by, dimensions);
  if (dimensions) pullback.by_forces(in.q, *dimensions), pullback.by_placements(in.q, *dimensions);
  pullback.template collect_columns<R>(in.q);
  pullback.inward(by);
  pullback.by_parameters(out + 3 * tree.nv);
}

}  // namespace sarrus
