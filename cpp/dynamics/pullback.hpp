// Pullback of a scalar function of the bodies' motions to the joints: its derivatives with respect to q, v, a and virtual velocities x,
// by one inward pass.
//
// All vectors are in world axes at the root body's origin. V and A are the velocity and spatial acceleration of a body (A_0 = -g), W its virtual
// velocity due to x. S is the column of velocity j; p denotes the parent body. A displacement of joint j moves its whole subtree rigidly, and rotates
// the contribution of the joint itself to the motion:
//
//   d_j V = S' + S x V        d_j A = S'' + S' x V + S x A        d_j W = W_p x S + S x W        S' = V_p x S, S'' = A_p x S + V_p x S'
//
// So four covectors E of each body, summed over its subtree, determine all derivatives. They are computed from the derivatives F of the scalar by V,
// A and W:
//
//   E_S: derivative with respect to a displacement of the body with its motions      E_S' = F_V + V x* F_A      E_S'' = F_A      E_W = F_W
//
//   by q   S . E_S + S' . E_S' + S'' . E_S'' + (W_p x S) . E_W        by v   S . E_S' + (S' + V x S) . E_S''        by a   S . E_S''
//
// Joints whose columns change in the body's axes add the effect of these changes (g = dS v, b = dS a + d bias, h = dS x):
//
//   by q   g . E_S' + (b + (V_p + V) x g) . E_S'' + h . E_W               by v   dv bias . E_S''
//
// For x . inverse dynamics of a body E_S = 0 (it is invariant), E_S' = I (W x V) - W x* I V + V x* I W, E_S'' = I W, E_W = I A + V x* I V.
//
// A displacement of a joint's frame on its body has the effect of an additional joint at rest in that place. With V, A and W of that body,
//
//   by a displacement S    S . (E_S - V x* E_S' - A x* E_S'' + V x* (V x* E_S'') - W x* E_W)
//
// is summed over all bodies beyond the joint, including those with fixed joints, whose frames may be displaced too. A displacement of the frame on
// the child moves these bodies by its inverse.
//
//   cost    O(bodies)
#pragma once

#include "bodies.hpp"
#include "derivatives.hpp"
#include "dimensions.hpp"

namespace sarrus {

template <class T> struct Covectors {
  Force<T> S, S1, S2, W;

  static Covectors zero() {
    const Force<T> none = Force<T>::zero();
    return {none, none, none, none};
  }
  Covectors& operator+=(const Covectors& b) {
    S += b.S, S1 += b.S1, S2 += b.S2, W += b.W;
    return *this;
  }
  Covectors operator-() const { return {S * T(-1.0), S1 * T(-1.0), S2 * T(-1.0), W * T(-1.0)}; }
  /// Move the reference point by -r.
  Covectors moved(const Vec3<T>& r) const {
    const auto about = [&](const Force<T>& f) { return Force<T>{f.angular + cross(r, f.linear), f.linear}; };
    return {about(S), about(S1), about(S2), about(W)};
  }
  /// Covector with respect to a displacement of a frame on a body with the motion V_b, A_b, W_b.
  Force<T> on(const Motion<T>& V_b, const Motion<T>& A_b, const Motion<T>& W_b) const {
    Force<T> f = S;
    f -= cross_force(V_b, S1), f -= cross_force(A_b, S2), f += cross_force(V_b, cross_force(V_b, S2)), f -= cross_force(W_b, W);
    return f;
  }
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

  /// x: virtual velocities; may be null.
  Pullback(const Tree& tree, Arena& arena, const Kinematics<T>& k, const T* v, const T* a, const T* x)
      : tree_(tree),
        arena_(arena),
        k_(k),
        v_(v),
        a_(a),
        x_(x),
        V_(arena.take<Motion<T>>(tree.links)),
        A_(arena.take<Motion<T>>(tree.links)),
        W_(arena.take<Motion<T>>(tree.links)),
        sum_(arena.take<Covectors>(tree.links)),
        gravity_(cast<T>(tree.gravity)) {
    for (int i = 0; i < tree.links; ++i) {
      V_[i] = V_about(i, root(i)), A_[i] = A_about(i, root(i));
      W_[i] = i == 0 ? Motion<T>::zero() : about_root_of(i, W_[tree.link[i].parent], tree.link[i].parent);
      for (int c = tree.link[i].iv; i > 0 && x && c < tree.link[i].iv + tree.link[i].nv; ++c) W_[i] = W_[i] + column(c) * x[c];
    }
    clear();
  }

  void clear() {
    for (int i = 0; i < tree_.links; ++i) sum_[i] = Covectors::zero();
    for (int i = 0; body_covectors_ && i < tree_.bodies; ++i) body_covectors_[i] = Covectors::zero();
  }
  /// Enable sums for the bodies of the description, which by_placements() needs. Call before covectors are added.
  void keep_bodies() {
    body_covectors_ = arena_.take<Covectors>(tree_.bodies);
    clear();
  }

  /// Return the spatial velocity of a link about a point of the world.
  Motion<T> V_about(int i, const Vec& p) const {
    const LinkMotion<T>& b = k_.link[i];
    return {b.V.angular, b.V.linear + cross(b.V.angular, Vec(p - b.X.p))};
  }
  Motion<T> A_about(int i, const Vec& p) const {
    const LinkMotion<T>& b = k_.link[i];
    return {b.A.angular, b.A.linear - cross(b.V.angular, b.V.linear) + cross(b.A.angular, Vec(p - b.X.p)) - gravity_};
  }
  Motion<T> W_about(int i, const Vec& p) const { return {W_[i].angular, W_[i].linear + cross(W_[i].angular, Vec(p - root(i)))}; }

  /// Add covectors for a body of link i, about a point of the world.
  void add(int i, int body, const Covectors& e, const Vec& p) {
    const Covectors covectors = e.moved(p - root(i));
    sum_[i] += covectors;
    if (body_covectors_) body_covectors_[body] += covectors;
  }

  /// Add the scalar x . (forces for the bodies' motion - wrenches).
  void add_bodies(int wrenches, const ExternalWrench<T>* wrench) {
    for (int i = 1; i < tree_.links; ++i) add_inertia(i, cast<T>(tree_.link[i].inertia), k_.link[i].X, sum_[i]);
    for (int i = 1; body_covectors_ && i < tree_.bodies; ++i) {
      const Body& b = tree_.body[i];
      add_inertia(b.link, cast<T>(b.inertia), k_.link[b.link].X * cast<T>(b.X), body_covectors_[i]);
    }
    for (int n = 0; n < wrenches; ++n) {
      const Transform<T>& X = k_.link[wrench[n].link].X;
      const Force<T> f = Transform<T>{X.R, X.p - root(wrench[n].link)}.to_parent(wrench[n].in_link());
      sum_[wrench[n].link].W -= f;
      if (body_covectors_) body_covectors_[wrench[n].body].W -= f;
    }
  }

  /// Add covectors for two links whose interaction depends only on their relative motion. The second link receives e, the first link the opposite
  /// covectors.
  void add_between(const int* link, const int* body, const Covectors& e, const Vec& p) {
    add(link[1], body[1], e, p);
    add(link[0], body[0], -e, p);
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
      put(e.on(V_about(link, p), A_about(link, p), W_about(link, p)), p, k_.link[link].X * cast<T>(X) * turn,
          T(side ? 1.0 : -1.0), by.constraint_placement(i, side));
    };
    on(c.parent, c.X_parent, 0), on(c.child, c.X_child, 1);
  }

  /// Compute derivatives of x . inverse dynamics with respect to the inertial parameters of all bodies, in the order of regressor().
  void by_parameters(T* out) const {
    for (int i = 1; i < tree_.bodies; ++i) {
      const Body& body = tree_.body[i];
      const BodyMotion<T> m = body_motion(tree_, k_, body);
      parameter_powers(m, in_axes(m.X.R, W_about(body.link, m.X.p)), out + 10 * body.described);
    }
  }

  /// Compute derivatives with respect to placements of all joints, pitches of screws and gravity. Call this function before inward().
  void by_placements(const T* q, const Dimensions<T>& by) {
    for (int i = 0; i < tree_.links; ++i)  // gravity acts on every body like an acceleration of the opposite sign
      for (int k = 0; k < 3; ++k) by.gravity()[k] -= sum_[i].S2.linear(k);
    for (int i = tree_.bodies - 1; i > 0; --i) {
      const Body& b = tree_.body[i];
      const int before = tree_.body[b.parent].link;
      const Vec& o = root(b.link);
      put(body_covectors_[i].on(V_about(before, o), A_about(before, o), W_about(before, o)), o,
          k_.link[before].X * cast<T>(b.X_before), T(1.0), by.joint_placement(b, b.reversed));
      put(body_covectors_[i].on(V_[b.link], A_[b.link], W_[b.link]), o, k_.link[b.link].X * cast<T>(b.X_joint), T(-1.0),
          by.joint_placement(b, !b.reversed));
      const Link& link = tree_.link[b.link];
      if (before != b.link && visit_every(link.described, link.nv, [](auto joint) -> bool { return joint.has_pitch; }))
        by.joint_term(Dimensions<T>::pitch, link.iv) += by_pitch(b.link, q[link.iq], body_covectors_[i]);
      body_covectors_[b.parent] += body_covectors_[i].moved(o - root(before));
    }
  }
  /// Convert a covector f about a point of the world to derivatives with respect to displacements of a frame.
  static void put(const Force<T>& f, const Vec& p, const Transform<T>& X, const T& sign, T* out) {
    const Vec N = f.angular + cross(Vec(p - X.p), f.linear), turn = transpose_times(X.R, N),
              shift = transpose_times(X.R, f.linear);
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
      add_joint_forces(tree, q, v_, T(1.0), tau);
      for (int c = 0; c < n; ++c) {
        by.joint_term(term, c) += x_[c] * tau[c];
        by.joint_term(Dimensions<T>::rest, c) -= x_[c] * tau[c] * T(slope(term, tree_.passive[c].nonlinear));
      }
    }
    for (int c = 0; c < n; ++c) {
      by.joint_term(Dimensions<T>::rest, c) -= x_[c] * T(tree_.passive[c].stiffness);
      by.joint_term(Dimensions<T>::armature, c) += x_[c] * a_[c];
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
  /// Sum the covectors of subtrees inwards, and add the derivatives to the gradient.
  void inward(const Gradient<T>& by) {
    for (int i = tree_.links - 1; i > 0; --i) {
      const Link& b = tree_.link[i];
      const Covectors& e = sum_[i];
      const Motion<T> V_p = about_root_of(i, V_[b.parent], b.parent), A_p = about_root_of(i, A_[b.parent], b.parent),
                      W_p = about_root_of(i, W_[b.parent], b.parent);
      for (int c = b.iv; c < b.iv + b.nv; ++c) {
        const Motion<T> S = column(c), S1 = cross_motion(V_p, S), S2 = cross_motion(A_p, S) + cross_motion(V_p, S1);
        by.q[c] += dot(S, e.S) + dot(S1, e.S1) + dot(S2, e.S2) + dot(cross_motion(W_p, S), e.W);
        by.v[c] += dot(S, e.S1) + dot(S1 + cross_motion(V_[i], S), e.S2);
        by.a[c] += dot(S, e.S2);
      }
      for (int c = b.iv; change_ && c < b.iv + b.nv; ++c) {
        if (has_constant_columns(b)) break;
        const ColumnChange& change = change_[c];
        by.q[c] += dot(change.g, e.S1) + dot(change.b + cross_motion(V_p + V_[i], change.g), e.S2) + dot(change.h, e.W);
        by.v[c] += dot(change.bias_by_v, e.S2);
      }
      if (b.parent > 0) sum_[b.parent] += e;
    }
  }
  /// Sum the covectors inwards and add the derivatives, for a scalar that depends on q and V only.
  void inward_of_velocities(T* by_q) {
    for (int i = tree_.links - 1; i > 0; --i) {
      const Link& b = tree_.link[i];
      const Covectors& e = sum_[i];
      const Motion<T> V_p = about_root_of(i, V_[b.parent], b.parent);
      const bool turns = change_ && !has_constant_columns(b);
      for (int c = b.iv; c < b.iv + b.nv; ++c) {
        const Motion<T> S = column(c), S1 = cross_motion(V_p, S);
        by_q[c] += dot(S, e.S) + dot(turns ? S1 + change_[c].g : S1, e.S1);
      }
      if (b.parent > 0) sum_[b.parent].S += e.S, sum_[b.parent].S1 += e.S1;
    }
  }

 private:
  const Vec& root(int i) const { return k_.link[i == 0 ? 0 : tree_.link[i].root].X.p; }
  /// Convert a motion m of the parent of link i to the reference point of link i, its root's origin.
  Motion<T> about_root_of(int i, const Motion<T>& m, int parent) const {
    return {m.angular, m.linear + cross(m.angular, Vec(root(i) - root(parent)))};
  }
  Motion<T> column(int c) const {
    const int i = tree_.column_link[c];
    const Motion<T>& s = k_.column[c];
    return {s.angular, s.linear + cross(s.angular, Vec(root(i) - k_.link[i].X.p))};
  }

  void add_inertia(int i, const Inertia<T>& inertia, const Transform<T>& X, Covectors& to) const {
    const Inertia<T> I = transformed(Transform<T>{X.R, X.p - root(i)}, inertia);
    const Motion<T>&V = V_[i], &A = A_[i], &W = W_[i];
    const Force<T> IV = I * V, IW = I * W;
    to.S1 += I * cross_motion(W, V) + cross_force(V, IW);
    to.S1 -= cross_force(W, IV);
    to.S2 += IW;
    to.W += I * A + cross_force(V, IV);
  }

  /// Return the derivative with respect to the pitch of the helical joint of link i. A change of the pitch shifts the subtree along the axis by q
  /// times the change, and also changes the joint's column; see the head of this file.
  T by_pitch(int i, const T& q, const Covectors& e) const {
    const Link& b = tree_.link[i];
    const Motion<T> shift = {Vec::Zero(), k_.column[b.iv].angular};
    const Motion<T> V_p = about_root_of(i, V_[b.parent], b.parent), A_p = about_root_of(i, A_[b.parent], b.parent),
                    W_p = about_root_of(i, W_[b.parent], b.parent);
    const Motion<T> S1 = cross_motion(V_p, shift), S2 = cross_motion(A_p, shift) + cross_motion(V_p, S1);
    const T moved = dot(shift, e.S) + dot(S1, e.S1) + dot(S2, e.S2) + dot(cross_motion(W_p, shift), e.W);
    const T changed = v_[b.iv] * (dot(shift, e.S1) + dot(cross_motion(V_p + V_[i], shift), e.S2)) + a_[b.iv] * dot(shift, e.S2) +
                      x_[b.iv] * dot(shift, e.W);
    return q * moved + changed;
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

  /// Add the forces of joints. Each joint's forces depend on its own coordinates, so all joints are perturbed at the same time, along as many of
  /// their velocities as there are lanes.
  template <class R> void add_joint_springs(const T* q, const Gradient<T>& by) {
    int most = 0;
    for (int i = 1; i < tree_.links; ++i) most = std::max(most, tree_.link[i].nv);
    for (int first = 0; first < most; first += columns_of<T, R>) {
      const Arena::Scope scope(arena_);
      R* d = arena_.take<R>(tree_.nv);
      Varied<R, T>* tau = arena_.take<Varied<R, T>>(tree_.nv);
      const auto each = [&](auto act) {
        for (int i = 1; i < tree_.links; ++i)
          for (int l = 0; l < std::min(columns_of<T, R>, tree_.link[i].nv - first); ++l) act(tree_.link[i], l);
      };
      for (const bool along_q : {true, false}) {
        for (int c = 0; c < tree_.nv; ++c) d[c] = R(0.0), tau[c] = 0.0;
        each([&](const Link& b, int l) { column_in<T>(d[b.iv + first + l], l) = T(1.0); });
        const R* none = nullptr;
        add_joint_forces(tree_, varied_configuration(tree_, arena_, q, along_q ? d : none),
                         varied(arena_, tree_.nv, v_, along_q ? none : d), Varied<R, T>(1.0), tau);
        each([&](const Link& b, int l) {
          for (int c = b.iv; c < b.iv + b.nv; ++c)
            (along_q ? by.q : by.v)[b.iv + first + l] += x_[c] * column_in<T>(tau[c].rate, l);
        });
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
    all[other] = moved_body<R>(k_.link[other], gravity_, 0, 0).in_world();
    Force<T> pushed = Force<T>::zero();  // force on the perturbed link, at its origin
    Covectors e = covectors_of<R>(link_motion, 3, [&](int first, int last) {
      const MovedBody<R, T> body = moved_body<R>(link_motion, gravity_, first, last);
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
    if (moved != other) add_between(link, body_of, e, link_motion.X.p);
    return e;
  }

  /// Changes of a joint's own columns by its rotations, about the root's origin; see the head of this file.
  struct ColumnChange {
    Motion<T> g, b, h, bias_by_v;
  };

  /// Compute the changes of the joint's columns along displacements and changes of velocity of the joint itself, one direction per lane.
  template <class R> void change_columns(int i, const T* q) {
    using Number = Varied<R, T>;
    const Arena::Scope scope(arena_);
    const Link& b = tree_.link[i];
    const LinkMotion<T>& link = k_.link[i];
    const Vec to_root = root(i) - link.X.p;
    const auto in_world = [&](const Motion<T>& m) {
      const Motion<T> w = turned(link.X.R, m);
      return Motion<T>{w.angular, w.linear + cross(w.angular, to_root)};
    };
    const int coordinates = visit_every(b.described, b.nv, [](auto joint) -> int { return joint.nq; });
    for (int first = 0; first < 2 * b.nv; first += columns_of<T, R>) {  // displacements, then changes of v
      const int count = std::min(columns_of<T, R>, 2 * b.nv - first);
      Number varied_q[7], v[6], sin[7], cos[7];
      for (int n = 0; n < coordinates; ++n) varied_q[n] = {q[b.iq + n], R(0.0)};
      for (int n = 0; n < b.nv; ++n) v[n] = {v_[b.iv + n], R(0.0)};
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
      JointMotion<Number> J;
      joint_motion(b.joint, b.nv, Coordinates<Number>{varied_q, sin, cos, {&b.constants}}, static_cast<const Number*>(v), J);
      for (int l = 0; l < count; ++l) {
        const auto rate_of = [l](const Motion<Number>& m) {
          Motion<T> rate;
          for (int r = 0; r < 3; ++r)
            rate.angular(r) = column_in<T>(m.angular(r).rate, l), rate.linear(r) = column_in<T>(m.linear(r).rate, l);
          return rate;
        };
        const int d = first + l;
        if (d >= b.nv) {
          change_[b.iv + d - b.nv].bias_by_v = in_world(rate_of(J.bias));
          continue;
        }
        Motion<T> g = Motion<T>::zero(), bias_rate = rate_of(J.bias), h = g;
        for (int n = 0; n < b.nv; ++n) {
          const Motion<T> dS = rate_of(J.column[n]);
          g = g + dS * v_[b.iv + n], bias_rate = bias_rate + dS * a_[b.iv + n];
          if (x_) h = h + dS * x_[b.iv + n];
        }
        ColumnChange& change = change_[b.iv + d];
        change.g = in_world(g), change.b = in_world(bias_rate), change.h = in_world(h);
      }
    }
  }

  const Tree& tree_;
  Arena& arena_;
  const Kinematics<T>& k_;
  const T *v_, *a_, *x_;
  Motion<T>*V_, *A_, *W_;
  Covectors *sum_, *body_covectors_ = nullptr;
  ColumnChange* change_ = nullptr;
  Vec gravity_;
};

/// Compute the derivatives of w . inverse dynamics with respect to q, v, a and the inertial parameters of all bodies: 3 nv + 10 (bodies - 1) numbers.
/// If `dimensions` is not null, its entries, which must be zero on entry, receive the derivatives with respect to dimensions.
template <class R, class T>
void inverse_dynamics_vjp(const Tree& tree, Arena& arena, const RneaInput<T>& in, const T* w, T* out,
                          const Dimensions<T>* dimensions = nullptr) {
  const Kinematics<T> k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, in.q, in.v, in.a, k, in.ground);
  std::fill(out, out + 3 * tree.nv, T(0.0));
  const Gradient<T> by = {out, out + tree.nv, out + 2 * tree.nv};
  Pullback<T> pullback(tree, arena, k, in.v, in.a, w);
  if (dimensions) pullback.keep_bodies();
  pullback.add_bodies(in.wrenches, in.wrench);
  pullback.template add_passive<R>(in.q, by, dimensions);
  if (dimensions) pullback.by_forces(in.q, *dimensions), pullback.by_placements(in.q, *dimensions);
  pullback.template collect_columns<R>(in.q);
  pullback.inward(by);
  pullback.by_parameters(out + 3 * tree.nv);
}

}  // namespace sarrus
