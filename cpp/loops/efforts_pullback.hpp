// The vector-Jacobian product of what motors must do (efforts.hpp). Their equation K [y; lambda] = [tau; 0], with rows of motors in joints that
// close loops among J and lambda, is symmetric: for a cotangent w of the efforts u = C [y; lambda]
//
//   K [x; z] = C^T w          by q, v, a, of   x . inverse dynamics(q, v, a) - lambda . J x - z . J y
//
//   cost    O(bodies) and two solves
#pragma once

#include "efforts.hpp"
#include "pullback.hpp"

namespace sarrus {

/// w . u by q, v, a and the inertial parameters of all bodies, in one run of 3 nv + 10 (bodies - 1). Returns as actuator_efforts() does.
template <class R>
double actuator_efforts_vjp(const Tree& tree, Arena& arena, const RneaInput<double>& in, const double* time,
                            const double* pfaffian_values, const double* weights, const double* w, double* out,
                            OffLoops<double>* off) {
  const Loops& loops = tree.loops;
  const int n = tree.nv, rows = loops.rows + loops.motor_rows;
  if (rows == 0) {
    double *u = arena.take<double>(loops.actuators), *x = arena.take<double>(n);
    const double error = actuator_efforts(tree, arena, in, time, pfaffian_values, Sharing<double>{}, u, off);
    std::fill(x, x + n, 0.0);
    for (int k = 0; k < loops.actuators; ++k) x[loops.actuator[k]] = w[k];
    inverse_dynamics_vjp<R>(tree, arena, in, x, out);
    return error;
  }
  double* tau = arena.take<double>(n);
  const auto work = rnea(tree, arena, in, tau);
  LoopState<double> state = {in.q, in.v, time, pfaffian_values, nullptr, nullptr, nullptr};
  place(tree, arena, work.poses(), work.columns, state);
  auto motors = motor_equation(tree, arena, state, work.poses(), work.columns, Sharing<double>{weights}, off);
  const double size = transmitted(tree, work) + squared_size(tree, static_cast<const double*>(tau));
  double* b = arena.take<double>(n + rows);
  std::fill(b, b + n + rows, 0.0);
  std::copy(tau, tau + n, b);
  const SharedOut<double> shared = solve(tree, arena, motors, b, off);
  std::fill(b, b + n + rows, 0.0);
  for (int k = 0; k < loops.actuators; ++k) {
    const int carrier = loops.actuator[k];
    b[carrier] = carrier < n ? w[k] * motors.motors[carrier] : w[k];
  }
  const double *X = shared.x, *Z = solve(tree, arena, motors, b, static_cast<OffLoops<double>*>(nullptr)).x;

  const Kinematics<double> k = Kinematics<double>::over(tree, arena.take<double>(Kinematics<double>::size(tree)));
  kinematics(tree, arena, in.q, in.v, in.a, k);
  std::fill(out, out + 3 * n, 0.0);
  const Gradient by = {out, out + n, out + 2 * n};
  const LoopInput<double> at = {in.q, in.v, nullptr, in.wrenches, in.wrench, time, pfaffian_values};
  double* of_x = arena.take<double>(rows);
  for (const bool moved : {true, false}) {  // x, which moves the bodies, then y
    const double *motion = moved ? Z : X, *forces = moved ? X : Z;
    Pullback pullback(tree, arena, k, in.v, in.a, motion);
    for (int r = 0; r < rows; ++r) of_x[r] = -forces[n + r];
    for (int i = loops.constraints; i < loops.constraints + loops.motor_constraints;
         ++i) {  // a joint may have armature and no motor
      const Constraint& c = loops.constraint[i];
      for (int r = c.row; r < c.row + c.rows; ++r) of_x[r] *= loops.driven[c.row - loops.rows];
    }
    LoopPullback<R>(tree, arena, at, k, in.a, motion)
        .add({of_x, nullptr, nullptr}, pullback, by, loops.constraints + loops.motor_constraints);
    if (moved) {
      pullback.add_bodies(in.wrenches, in.wrench);
      pullback.template add_passive<R>(in.q, by);
      pullback.by_parameters(out + 3 * n);
    }
    pullback.template see_columns<R>(in.q);
    pullback.inward(by);
  }
  return std::sqrt(shared.error / (size > 0.0 ? size : 1.0));
}

}  // namespace sarrus
