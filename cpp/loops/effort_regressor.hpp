// Motor efforts as linear functions of the bodies' inertial parameters pi: u = W pi + efforts of friction and springs.
//
// The equation of the motors K [y; lambda] = [tau; 0], u = C [y; lambda] (efforts.hpp) is symmetric. Therefore effort k is the power of tau along one
// motion x_k that the loops allow:
//
//   K [x_k; z_k] = C^T e_k     u_k = x_k . tau,    tau = Y pi + ...    W_k = x_k . Y
//
// In row k of W, the entries of a body are parameter_powers() along the body's velocity in the motion x_k; Y itself is not computed.
//
//   writes x_k (nv), W_k (10 bodies) of each motor, contiguous
//   cost   a factor, O(bodies motors), a solve per motor; for many states, three motors share a solve, because a single one is a long chain of
//          dependent operations
#pragma once

#include "../dynamics/bodies.hpp"
#include "../simd/several.hpp"
#include "efforts.hpp"

namespace sarrus {

/// Velocities V of all links for joint velocities x, in world axes at the origins of the links.
template <class T> void link_velocities(const Tree& tree, const Kinematics<T>& k, const T* x, Motion<T>* V) {
  V[0] = Motion<T>::zero();
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const Motion<T>& parent = V[b.parent];
    V[i] = {parent.angular, parent.linear + cross(parent.angular, Vec3<T>(k.link[i].X.p - k.link[b.parent].X.p))};
    for (int c = b.iv; c < b.iv + b.nv; ++c) V[i] = V[i] + k.column[c] * x[c];
  }
}

/// Solve for S::width motors (the lanes of S), beginning with motor `first`. Returns x (nv) of each motor, and the squared residual.
template <class S, class T>
SharedOut<S> motor_motions(const Tree& tree, Arena& arena, MotorEquation<T>* motors, int first) {
  const Loops& loops = tree.loops;
  const int unknowns = tree.nv + loops.rows + loops.motor_rows;
  S* b = arena.take<S>(unknowns);
  for (int i = 0; i < unknowns; ++i) b[i] = S(0.0);
  for (int d = 0; d < directions_of<S> && first + d < loops.actuators; ++d) {
    const int carrier = loops.actuator[first + d];
    along(b[carrier], d) = motors && carrier < tree.nv ? motors->motors[carrier] : T(1.0);
  }
  if (!motors) return {b, S(0.0)};
  const LoopEquation<T>& e = motors->e;
  const Saddle<T>& matrix = e.solved();
  S* y = arena.take<S>(matrix.plan.unknowns);
  const S* lifted = e.pieces ? e.pieces->lift(tree, arena, static_cast<const S*>(b)) : b;
  const S error = refine(matrix, arena, motors->factor, lifted, y, 60);
  return {e.pieces ? e.pieces->lower(tree, arena, static_cast<const S*>(y)) : y, error};
}

/// Compute x_k and W_k of all motors (actuators x (nv + 10 bodies)), in the order of the description. Returns the relative residual of the motions
/// x_k.
template <class T> T effort_regressor(const Tree& tree, Arena& arena, const Kinematics<T>& k, const LoopState<T>& state, T* out) {
  const Loops& loops = tree.loops;
  const int nu = loops.actuators, n = tree.nv, row = n + 10 * (tree.bodies - 1);
  T worst = T(0.0);
  std::optional<MotorEquation<T>> motors;
  if (loops.rows + loops.motor_rows > 0)
    motors.emplace(motor_equation(tree, arena, state, Poses<T>{state.in_parent}, state.stored, Sharing<T>{},
                                  static_cast<OffLoops<T>*>(nullptr)));
  Motion<T>* V = arena.take<Motion<T>>(nu * tree.links);
  const auto add = [&](auto number, int first) {
    using S = decltype(number);
    const Arena::Scope scope(arena);
    const SharedOut<S> shared = motor_motions<S>(tree, arena, motors ? &*motors : nullptr, first);
    for (int m = first; m < std::min(nu, first + directions_of<S>); ++m) {
      T* x = out + m * row;
      for (int i = 0; i < n; ++i) x[i] = along(shared.x[i], m - first);
      const T error = along(shared.error, m - first) * square(unit_of_effort<T>(tree, m));  // per unit moment
      worst = select(error > worst, error, worst);
      link_velocities(tree, k, static_cast<const T*>(x), V + m * tree.links);
    }
  };
  int m = 0;
  if constexpr (width_of<T> > 1)
    if (motors && !motors->e.solved().plan.fronts)  // with fronts, the lanes are used for the rows of one right-hand side
      for (; m + 1 < nu; m += 3) add(Several<T, 3>(), m);
  for (; m < nu; ++m) add(T(), m);
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& body = tree.body[i];
    const BodyMotion<T> motion = body_motion(tree, k, body);
    const Vec3<T> r = motion.X.p - k.link[body.link].X.p;
    for (int m = 0; m < nu; ++m) {
      const Motion<T>& link = V[m * tree.links + body.link];
      const Motion<T> virtual_motion = in_axes(motion.X.R, Motion<T>{link.angular, link.linear + cross(link.angular, r)});
      parameter_powers(motion, virtual_motion, out + m * row + n + 10 * body.described);
    }
  }
  return sqrt(worst);
}

}  // namespace sarrus
