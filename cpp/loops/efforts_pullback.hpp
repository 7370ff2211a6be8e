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
template <class R, class T>
T actuator_efforts_vjp(const Tree& tree, Arena& arena, const RneaInput<T>& in, const T* time, const T* pfaffian_values,
                       const T* weights, const T* w, T* out, OffLoops<T>* off) {
  const Loops& loops = tree.loops;
  const int n = tree.nv, rows = loops.rows + loops.motor_rows;
  if (rows == 0) {
    T *u = arena.take<T>(loops.actuators), *x = arena.take<T>(n);
    const T error = actuator_efforts(tree, arena, in, time, pfaffian_values, Sharing<T>{}, u, off);
    std::fill(x, x + n, T(0.0));
    for (int k = 0; k < loops.actuators; ++k) x[loops.actuator[k]] = w[k];
    inverse_dynamics_vjp<R>(tree, arena, in, x, out);
    return error;
  }
  T* tau = arena.take<T>(n);
  const auto work = rnea(tree, arena, in, tau);
  LoopState<T> state = {in.q, in.v, time, pfaffian_values, nullptr, nullptr, nullptr};
  place(tree, arena, work.poses(), work.columns, state);
  auto motors = motor_equation(tree, arena, state, work.poses(), work.columns, Sharing<T>{weights}, off);
  const T size = transmitted(tree, work) + squared_size(tree, static_cast<const T*>(tau));
  T* b = arena.take<T>(n + rows);
  std::fill(b, b + n + rows, T(0.0));
  std::copy(tau, tau + n, b);
  const SharedOut<T> shared = solve(tree, arena, motors, static_cast<const T*>(b), off);
  std::fill(b, b + n + rows, T(0.0));
  for (int k = 0; k < loops.actuators; ++k) {
    const int carrier = loops.actuator[k];
    b[carrier] = carrier < n ? w[k] * motors.motors[carrier] : w[k];
  }
  const T *X = shared.x, *Z = solve(tree, arena, motors, static_cast<const T*>(b), static_cast<OffLoops<T>*>(nullptr)).x;

  const Kinematics<T> k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, in.q, in.v, in.a, k);
  std::fill(out, out + 3 * n, T(0.0));
  const Gradient<T> by = {out, out + n, out + 2 * n};
  const LoopInput<T> at = {in.q, in.v, nullptr, in.wrenches, in.wrench, time, pfaffian_values};
  T* of_x = arena.take<T>(rows);
  for (const bool moved : {true, false}) {  // x, which moves the bodies, then y
    const T *motion = moved ? Z : X, *forces = moved ? X : Z;
    Pullback<T> pullback(tree, arena, k, in.v, in.a, motion);
    for (int r = 0; r < rows; ++r) of_x[r] = -forces[n + r];
    for (int i = loops.constraints; i < loops.constraints + loops.motor_constraints;
         ++i) {  // a joint may have armature and no motor
      const Constraint& c = loops.constraint[i];
      for (int r = c.row; r < c.row + c.rows; ++r) of_x[r] *= T(loops.driven[c.row - loops.rows]);
    }
    LoopPullback<R, T>(tree, arena, at, k, in.a, motion)
        .add({of_x, nullptr, nullptr}, pullback, by, loops.constraints + loops.motor_constraints);
    if (moved) {
      pullback.add_bodies(in.wrenches, in.wrench);
      pullback.template add_passive<R>(in.q, by);
      pullback.by_parameters(out + 3 * n);
    }
    pullback.template see_columns<R>(in.q);
    pullback.inward(by);
  }
  return sqrt(shared.error / select(size > T(0.0), size, T(1.0)));
}

}  // namespace sarrus
