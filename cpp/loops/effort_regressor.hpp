// How the efforts of motors depend on the bodies' inertial parameters, on which they depend linearly: u = W pi + what friction and springs add.
//
// The equation of the motors K [y; lambda] = [tau; 0], u = C [y; lambda] (efforts.hpp) is symmetric, so that effort k is the power of tau along one
// motion that the loops allow:
//
//   K [x_k; z_k] = C^T e_k     u_k = x_k . tau,    tau = Y pi + ...    W_k = x_k . Y
//
// What a body adds to row k is parameter_powers() along its own velocity under x_k: Y is not made.
//
//   writes  x_k (nv), W_k (10 bodies) of each motor, in one run
//   cost    a factor, a solve a motor, O(bodies motors)
#pragma once

#include "../dynamics/bodies.hpp"
#include "efforts.hpp"

namespace sarrus {

/// Velocities of all links under joint velocities x, in world axes at their origins.
template <class T> void link_velocities(const Tree& tree, const Kinematics<T>& k, const T* x, Motion<T>* V) {
  V[0] = Motion<T>::zero();
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const Motion<T>& parent = V[b.parent];
    V[i] = {parent.angular, parent.linear + cross(parent.angular, Vec3<T>(k.link[i].X.p - k.link[b.parent].X.p))};
    for (int c = b.iv; c < b.iv + b.nv; ++c) V[i] = V[i] + k.column[c] * x[c];
  }
}

/// W (actuators x (nv + 10 bodies)), in the order of the description. Returns what of a motor's motion stays open, relative.
template <class T> T effort_regressor(const Tree& tree, Arena& arena, const Kinematics<T>& k, const LoopState<T>& state, T* out) {
  const Loops& loops = tree.loops;
  const int nu = loops.actuators, n = tree.nv, rows = loops.rows + loops.motor_rows, row = n + 10 * (tree.bodies - 1);
  T worst = T(0.0), *b = arena.take<T>(n + rows);
  std::optional<MotorEquation<T>> motors;
  if (rows > 0)
    motors.emplace(motor_equation(tree, arena, state, Poses<T>{state.in_parent}, state.stored, Sharing<T>{},
                                  static_cast<OffLoops<T>*>(nullptr)));
  Motion<T>* V = arena.take<Motion<T>>(nu * tree.links);
  for (int m = 0; m < nu; ++m) {
    const Arena::Scope scope(arena);
    const int carrier = loops.actuator[m];
    for (int i = 0; i < n + rows; ++i) b[i] = T(0.0);
    b[carrier] = rows > 0 && carrier < n ? motors->motors[carrier] : T(1.0);
    const T* x = b;
    if (rows > 0) {
      const SharedOut<T> shared = solve(tree, arena, *motors, static_cast<const T*>(b), static_cast<OffLoops<T>*>(nullptr));
      const T error = shared.error * square(unit_of_effort<T>(tree, m));  // of a moment of 1 along its unit of effort
      x = shared.x, worst = select(error > worst, error, worst);
    }
    for (int i = 0; i < n; ++i) out[m * row + i] = x[i];
    link_velocities(tree, k, x, V + m * tree.links);
  }
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& body = tree.body[i];
    const BodyMotion<T> motion = body_motion(tree, k, body);
    const Vec3<T> r = motion.X.p - k.link[body.link].X.p;
    for (int m = 0; m < nu; ++m) {
      const Motion<T>& link = V[m * tree.links + body.link];
      const Motion<T> here = in_axes(motion.X.R, Motion<T>{link.angular, link.linear + cross(link.angular, r)});
      parameter_powers(motion, here, out + m * row + n + 10 * body.described);
    }
  }
  return sqrt(worst);
}

}  // namespace sarrus
