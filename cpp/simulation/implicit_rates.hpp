// Steps that are implicit in stiffness K and damping D along joints: of the tree's springs and dampers, and of controllers.
//
// With A = M + theta h D + theta^2 h^2 K, a kick v' - v uses the forces at the velocity v + theta (v' - v) and at the resulting position. theta = 1/2
// is the implicit midpoint rule: it is of second order, and undamped oscillations of any frequency conserve their energy. theta = 1 is implicit
// Euler: if damping is faster than the step, it stops the motion in one step. In between, theta is fitted to the decay of a single joint, v' = v
// exp(-x) with x = h D / I (exponential fitting: Liniger and Willoughby 1970):
//
//   theta = 1 / (1 - exp(-x)) - 1 / x,      1/2 + x / 12 for small x, so that the step is still of second order;  1 for large x
//
// I is the inertia that the joint moves in the configuration q = 0; for rotations, the mean moment of inertia. An approximate I is sufficient: the
// step is stable for any 1/2 <= theta <= 1, and I only affects how fast motions with stiff dampers come to rest.
#pragma once

#include "system.hpp"

namespace sarrus {

/// Stiffness and damping, for nonlinear forces their tangents, along the tree's joints, then along loop joints: [N m/rad, N/m], [N m s/rad, N s/m].
template <class T> struct LinearRates {
  T *stiffness, *damping;
  const T *stiffness_of_elements, *damping_of_elements;  // contributions of force elements
  T any = T(0.0);  // 1 if a joint of the tree has stiffness or damping, else 0
  bool any_closing = false;  // true if a loop joint has stiffness or damping
};

/// Collect the stiffness and damping of joints in the state (q, v), and those of force elements in the last evaluation, which `s` stores. Negative
/// slopes of nonlinear forces are not included, so that these forces are explicit. In lanes, nonlinear forces are not supported.
template <class T> LinearRates<T> linear_rates(System<T>& s, double time, const T* q, const T* v) {
  const Tree& tree = s.full_tree();  // here springs along angles of loop joints are included in this tree
  const int nv = tree.nv, all = nv + tree.loop_nv;
  LinearRates<T> rates = {s.arena.template take<T>(all), s.arena.template take<T>(all), s.stiffness, s.damping};
  const auto begin = [&](int k, const PassiveTerms& f, [[maybe_unused]] const T* coordinates, [[maybe_unused]] const T* speed) {
    rates.stiffness[k] = T(f.stiffness), rates.damping[k] = T(f.damping);
    if constexpr (std::is_same_v<T, double>) {
      if (!f.nonlinear.has_forces()) return;
      const double x = f.iq < 0 ? 0.0 : coordinates[f.iq] - f.rest;
      rates.stiffness[k] = std::max(0.0, tangent_stiffness(f.stiffness, f.nonlinear, tree.numbers<double>(), x));
      rates.damping[k] = std::max(0.0, tangent_damping(f.damping, f.nonlinear, tree.numbers<double>(), speed[k]));
    }
  };
  for (int k = 0; k < nv; ++k) begin(k, tree.passive[k], q, v);
  const auto end = tree.loop_motion + tree.loop_motions;
  const bool nonlinear = std::any_of(tree.loop_motion, end, [](const LoopMotion& joint) {
    return std::any_of(joint.terms, joint.terms + joint.nv, [](const PassiveTerms& f) { return f.nonlinear.has_forces(); });
  });
  const AllJoints<T> joints = nonlinear ? s.joints(T(time), q, v) : AllJoints<T>{q, v, nullptr, nv};
  for (const LoopMotion* joint = tree.loop_motion; joint < end; ++joint)
    for (int k = 0; k < joint->nv; ++k) begin(nv + joint->iv + k, joint->terms[k], joints.q + tree.nq + joint->iq, joints.v);
  for (int k = 0; k < all; ++k) rates.stiffness[k] += s.stiffness[k], rates.damping[k] += s.damping[k];
  for (int k = 0; k < all; ++k) {
    const auto acts = T(0.0) < abs(rates.stiffness[k]) + abs(rates.damping[k]);
    if (k < nv)
      rates.any = select(acts, T(1.0), rates.any);
    else
      rates.any_closing |= sarrus::any(acts);
  }
  return rates;
}

/// Compute the inertia (nv) that each joint moves in the configuration q = 0: a mass, or the mean moment of inertia about the joint's origin; plus
/// the armature.
inline const double* carried_inertia(const Tree& tree, Arena& arena) {
  struct Carried {
    double mass, spread;  // spread: integral of r^2 dm about the origin
    Vec3<double> moment;
  };
  double* inertia = arena.take<double>(tree.nv);
  Carried* carried = arena.take<Carried>(tree.links);
  for (int i = 0; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    carried[i] = {b.inertia.m, b.euler.xx + b.euler.yy + b.euler.zz, b.inertia.h};
  }
  for (int i = tree.links - 1; i > 0; --i) {
    const Link& b = tree.link[i];
    const Carried& me = carried[i];
    visit_every(b.described, b.nv, [&](auto joint) {
      int k = b.iv, listed = 0;
      for (const Coordinate& velocity : joint.velocities)
        if (b.constants.free == 0 || b.constants.free >> listed++ & 1) {
          inertia[k] = (velocity.is_length() ? me.mass : me.spread * (2.0 / 3.0)) + tree.passive[k].armature;
          ++k;
        }
    });
    Carried& parent = carried[b.parent];
    const Vec3<double>& p = b.X_tree.p;
    const Vec3<double> moment = b.X_tree.R * me.moment;
    parent.mass += me.mass, parent.moment += Vec3<double>(moment + p * me.mass);
    parent.spread += me.spread + 2.0 * dot(p, moment) + me.mass * dot(p, p);
  }
  return inertia;
}

/// Return theta (see the head of this file) for x = h D / I.
inline double implicit_share(double x) {
  if (x < 1e-3) return 0.5 + x * (1.0 / 12.0);
  return x < 1e3 ? 1.0 / (1.0 - std::exp(-x)) - 1.0 / x : 1.0;
}
template <int W> Packet<W> implicit_share(const Packet<W>& x) {
  Packet<W> theta;
  for (int l = 0; l < W; ++l)  // in most runs, all lanes have the same gains
    lane(theta, l) = l > 0 && lane(x, l) == lane(x, l - 1) ? lane(theta, l - 1) : implicit_share(lane(x, l));
  return theta;
}

}  // namespace sarrus
