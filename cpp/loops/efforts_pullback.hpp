// Vector-Jacobian product of motor efforts (efforts.hpp). In their equation K [y; lambda] = [tau; 0], J and lambda include the rows of motors in loop
// joints. K is symmetric; for a cotangent w of the efforts u = C [y; lambda]
//
//   K [x; z] = C^T w     gradients by q, v, a of   x . inverse dynamics(q, v, a) - lambda . J x - z . J y
//
//   cost    O(bodies) and two solves
#pragma once

#include "efforts.hpp"
#include "projection.hpp"
#include "pullback.hpp"

namespace sarrus {

/// Return tolerances::undetermined if the position is so close to a singular one that efforts have no derivative, else 0. The test is: at a singular
/// position, rows are dependent, z . J = 0 for some z, but become independent along some allowed displacement, so z . J w becomes nonzero for an
/// allowed motion w. The test uses scaled velocities [rad, lengths of the mechanism] instead of the equation of the motors, because that contains no
/// inertia, and its factor is regularised too strongly.
template <class R, class T> T singularity(const Tree& tree, Arena& arena, const LoopInput<T>& in) {
  const int n = tree.nv, rows = tree.loops.rows;
  const T *none = nullptr, *a = zeros<T>(arena, n);
  T *unit = arena.take<T>(n), *J = arena.take<T>(tree.loops.entries);
  for (int i = 0; i < n; ++i) unit[i] = T(tree.numbers<T>()(tree.unit[i]));
  const LoopEquation<T> e = metric_equation<T>(tree, arena, in.q, unit, in.time, in.pfaffian_values, true, nullptr, nullptr, J);
  const Saddle<T>& matrix = e.solved();
  const Factor<T> factor = factorise_tightly(e, arena);
  const T undetermined = T(tolerances::undetermined);
  const T near = select(is_near_singular(moved_by_rounding(e, arena, factor, T(1.0)), T(1.0)), undetermined, T(0.0));

  // z is the residual of a pseudo-random right-hand side; it is nonzero only if rows are dependent
  T *b = arena.take<T>(n + e.matrix.rows), *y = arena.take<T>(matrix.plan.unknowns), probed = T(0.0);
  const auto clear = [&] { std::fill(b, b + n + e.matrix.rows, T(0.0)); };
  clear();
  for (int r = 0; r < rows; ++r) {
    const T size = T(scattered(n + r));
    b[n + r] = size * sqrt(e.scale[r]), probed += size * size;
  }
  const T left = refine(matrix, arena, factor, e.lifted(arena, b), y, tolerances::most_corrections);
  const auto dependent = left > probed * T(square(tolerances::contradiction));
  if (!any(dependent)) return near;
  T *z = arena.take<T>(rows), size = T(0.0);
  const T* x = e.lowered(arena, y);
  for (int r = 0; r < rows; ++r) size += square(x[n + r]) * e.scale[r];
  for (int r = 0; r < rows; ++r) z[r] = x[n + r] / sqrt(select(size > T(0.0), size, T(1.0)));

  // return the projection of a pseudo-random motion onto the motions that the loops allow, and its squared norm
  const auto allowed = [&](int first) {
    T *motion = arena.take<T>(n), sum = T(0.0);
    for (int i = 0; i < n; ++i) motion[i] = T(scattered(first + i)) * unit[i];
    clear();
    add_motion_along_rows(tree, J, static_cast<const T*>(motion), T(1.0), b + n);
    const T* away = solve_corrected(e, arena, factor, static_cast<const T*>(b));
    for (int i = 0; i < n; ++i) motion[i] -= away[i] * unit[i], sum += square(T(motion[i] / unit[i]));
    return std::pair<const T*, T>(motion, sum);
  };
  const auto [d, moved] = allowed(0);
  const auto [w, moving] = allowed(n);
  T* by_q = arena.take<T>(3 * n);
  std::fill(by_q, by_q + 3 * n, T(0.0));
  const Gradient<T> by = {by_q, by_q + n, by_q + 2 * n};
  const RneaInput<T> motion = {in.q, in.v, a};
  Pullback<T> pullback(tree, arena, motion, rnea(tree, arena, motion, arena.take<T>(n)), w);
  LoopPullback<R, T>(tree, arena, in, pullback.kinematics(), a, w).add({z, none, none}, pullback, by);
  pullback.template collect_columns<R>(in.q);
  pullback.inward(by);
  T change = T(0.0);
  for (int i = 0; i < n; ++i) change += by_q[i] * d[i];
  const auto contradicts = square(change) > moved * moving * T(square(tolerances::contradiction));
  return select(both(dependent, contradicts), undetermined, near);
}

/// Gradient of w . u with respect to q, v, a and the inertial parameters of all bodies: 3 nv + 10 (bodies - 1) entries. Returns the fraction of the
/// required force that motors and loops cannot supply, as actuator_efforts() does.
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

  std::fill(out, out + 3 * n, T(0.0));
  const Gradient<T> by = {out, out + n, out + 2 * n};
  const LoopInput<T> at = {in.q, in.v, nullptr, in.wrenches, in.wrench, time, pfaffian_values};
  T* force_x = arena.take<T>(rows);
  // add two terms: the derivative of x . inverse dynamics, then that of the terms with y
  for (const bool moved : {true, false}) {
    const T *motion = moved ? Z : X, *forces = moved ? X : Z;
    Pullback<T> pullback(tree, arena, in, work, motion);
    for (int r = 0; r < rows; ++r) force_x[r] = -forces[n + r];
    for (int i = loops.constraints; i < loops.constraints + loops.motor_constraints;
         ++i) {  // rows of joints with armature only are zero
      const Constraint& c = loops.constraint[i];
      for (int r = c.row; r < c.row + c.rows; ++r) force_x[r] *= T(loops.driven[c.row - loops.rows]);
    }
    LoopPullback<R, T>(tree, arena, at, pullback.kinematics(), in.a, motion)
        .add({force_x, nullptr, nullptr}, pullback, by, loops.constraints + loops.motor_constraints);
    if (moved) {
      pullback.add_bodies();
      pullback.template add_passive<R>(in.q, by);
      pullback.by_parameters(out + 3 * n);
    }
    pullback.template collect_columns<R>(in.q);
    pullback.inward(by);
  }
  const T error = sqrt(shared.error / select(size > T(0.0), size, T(1.0)));
  if (loops.rows == 0) return error;
  const T singular = singularity<R>(tree, arena, at);
  return select(singular > error, singular, error);
}

}  // namespace sarrus
