// Motor efforts in a closed-chain mechanism. A motion requires the generalised force tau = M a + h, which is the sum of S u from the motors and J^T
// lambda from the loops. Among all u with S u + J^T lambda = tau, the one of least norm is, by Lagrange's method, u = S^T y with
//
//   [S S^T  J^T; J  0] [y; lambda] = [tau; 0]
//
// This is the equation of constrained dynamics with motors instead of masses: y is a motion that the loops allow. S S^T is diagonal: 1 at each tree
// velocity with a motor, 0 elsewhere. A motor in a loop joint is a compliant row: J_s y - u = 0. Li and Wu 4.6; Sonoda, Ishii and Isobe use a basis G
// of the motions allowed by J; here no basis is needed.
//
// Forces and moments are compared by the mechanism's length l. In the norm, a force f counts as the moment l f, and a slide x as the rotation x / l
// (Tree::unit). The diagonal entry of a slide's motor is then 1/l^2, so the result and its residual do not depend on the unit of length. With weights
// w the entry is 1/w instead (u = S^T y / w). With a preload p the motors share tau - S p.
#pragma once

#include <optional>

#include "../dynamics/frames.hpp"
#include "answers.hpp"
#include "constrained_dynamics.hpp"

namespace sarrus {

/// Load sharing of the motors: the efforts u minimise the sum of weights (u - preload)^2; both have `actuators` entries. If null: weights by
/// Tree::unit, zero preload.
template <class T> struct Sharing {
  const T *weights = nullptr, *preload = nullptr;
};

template <class T> SARRUS_INLINE T unit_of_effort(const Tree& tree, int k) {
  const int carrier = tree.loops.actuator[k] - tree.nv;
  return tree.numbers<T>()(carrier < 0 ? tree.unit[carrier + tree.nv] : tree.loops.motor_unit[carrier - tree.loops.rows]);
}

/// Scale the weights (actuators) so that the least one is 1 in units of Tree::unit; only their ratios change the result. Returns the largest weight
/// in these units.
template <class T> SARRUS_NOINLINE T relative_weights(const Tree& tree, const T* weights, T* weight) {
  const int actuators = tree.loops.actuators;
  T least = T(1e300), most = T(1.0);
  for (int k = 0; k < actuators; ++k) {
    const T w = weights[k] / square(unit_of_effort<T>(tree, k));
    least = select(w < least, w, least);
  }
  for (int k = 0; k < actuators; ++k) {
    weight[k] = weights[k] / least;
    const T w = weight[k] / square(unit_of_effort<T>(tree, k));
    most = select(w > most, w, most);
  }
  return most;
}

/// b -= S p, for motors in the tree and, through their rows of J, for motors in loop joints.
template <class T> SARRUS_NOINLINE void take_preload(const Tree& tree, Arena& arena, const T* J, const T* preload, T* b) {
  const Loops& loops = tree.loops;
  T* closing = arena.take<T>(loops.motor_rows);
  for (int r = 0; r < loops.motor_rows; ++r) closing[r] = T(0.0);
  for (int k = 0; k < loops.actuators; ++k)
    if (const int carrier = loops.actuator[k]; carrier < tree.nv)
      b[carrier] -= preload[k];
    else
      closing[carrier - tree.nv - loops.rows] = preload[k];
  for (int i = loops.constraints; i < loops.constraints + loops.motor_constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) b[c.column[k]] -= J[c.entry + k * c.rows + r] * closing[c.row + r - loops.rows];
  }
}

/// Factorised equation of the motors, for right-hand sides [forces (nv); rows].
template <class T> struct MotorEquation {
  LoopEquation<T> e;
  Factor<T> factor;
  const T* motors;  // (nv) entries of S S^T: inverse weight of the velocity's motor, or 0 without a motor
};

template <class T>
MotorEquation<T> motor_equation(const Tree& tree, Arena& arena, const LoopState<T>& state, Poses<T> in_parent,
                                const Motion<T>* stored, const Sharing<T>& sharing, OffLoops<T>* off) {
  const Loops& loops = tree.loops;
  const int nv = tree.nv, rows = loops.rows + loops.motor_rows, constraints = loops.constraints + loops.motor_constraints;
  T *weight = nullptr, passive = tolerance<T>(tolerances::passive, tolerances::passive_in_single);
  if (sharing.weights) {
    weight = arena.take<T>(loops.actuators);
    // this value makes two errors equal: the rounding error of the factor, eps / passive, and passive * largest, the error that remains after one
    // correction for the motor of largest weight
    passive = passive / sqrt(relative_weights(tree, sharing.weights, weight));
  }
  T *mobility = arena.take<T>(nv), *motors = arena.take<T>(nv), *epsilon = arena.take<T>(nv);
  for (int k = 0; k < nv; ++k) {
    mobility[k] = square(T(state.numbers(tree.unit[k]))), motors[k] = T(0.0), epsilon[k] = passive / mobility[k];
  }
  T *J = arena.take<T>(loops.entries + loops.motor_entries), *soft = arena.take<T>(rows), *mu = arena.take<T>(rows);
  for (int r = 0; r < rows; ++r) {
    soft[r] = r < loops.rows ? T(0.0) : square(T(state.numbers(loops.motor_unit[r - loops.rows])));
  }
  for (int k = 0; k < loops.actuators; ++k) {
    const int carrier = loops.actuator[k];
    if (carrier < nv)
      motors[carrier] = T(1.0) / (weight ? weight[k] : mobility[carrier]), epsilon[carrier] = T(0.0);
    else if (weight)
      soft[carrier - nv] = weight[k];
  }

  T *b = arena.take<T>(nv + rows), *scale = arena.take<T>(rows);
  ConstraintRows<T> row_output;
  row_output.J = J, row_output.scale = scale, row_output.mobility = mobility, row_output.off = off;
  constraint_rows(tree, arena, state, row_output, 0, loops.constraints);
  row_output.off = nullptr;  // rows of motors are no constraints, so the state cannot violate them
  constraint_rows(tree, arena, state, row_output, loops.constraints, constraints);
  for (int i = loops.constraints; i < constraints; ++i) {  // rows of joints with armature, but without a motor, are set to zero
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns * c.rows; ++k) J[c.entry + k] *= T(loops.driven[c.row - loops.rows]);
  }
  for (int k = 0; k < nv + rows; ++k) b[k] = T(0.0);
  for (int r = 0; r < rows; ++r) {
    mu[r] = r < loops.rows ? scale[r] * tolerance<T>(tolerances::passive, tolerances::passive_in_single) : T(0.0);
  }
  LoopEquation<T> e = {{tree, loops.statics, nullptr, constraints, rows, motors, J, soft, mobility, nullptr}, b, scale, T(0.0)};
  set_row_weights(arena, e);
  if (weight) {  // without this scaling, residuals would neglect motors of small weight
    T* inertia = arena.take<T>(nv);
    for (int k = 0; k < nv; ++k) inertia[k] = motors[k] * motors[k] * mobility[k];
    e.matrix.inertia = inertia;
  }
  if (loops.substructures)
    e.pieces = new (arena.take<SubstructuredEquation<T>>(1))
        SubstructuredEquation<T>(tree, arena, state, in_parent, stored, {nullptr, true, motors, soft + loops.rows, passive});
  return {e, e.pieces ? e.pieces->factorise(arena) : factorise(e.solved(), arena, epsilon, mu), motors};
}

/// Solution [y; lambda] of the motors' equation, and the squared norm of the forces that it does not balance [N m].
template <class T> struct SharedOut {
  const T* x;
  T error;
};

/// Solve for the right-hand side b = [forces (nv); rows].
template <class T>
SharedOut<T> solve(const Tree& tree, Arena& arena, MotorEquation<T>& m, const T* b, OffLoops<T>* off) {
  LoopEquation<T>& e = m.e;
  const Saddle<T>& matrix = e.solved();
  T* y = arena.take<T>(matrix.tree.nv + matrix.rows);
  const T error = refine(matrix, arena, m.factor, e.lifted(arena, b), y, 60);
  const T* x = e.lowered(arena, y);
  if (off && any(off->open > T(0.0))) {
    for (int k = 0; k < tree.nv; ++k) e.terms += b[k] * b[k] * e.matrix.mobility[k];
    off->fault = select(gap_decides(e, arena, LoopSolution<T>{x, y, error, m.factor}, off->open, true), T(2.0), off->fault);
  }
  return {x, error};
}

/// Compute u (actuators) for tau (nv). Returns the squared norm of the part of tau that motors and loops cannot supply [N m].
template <class T>
T share_out(const Tree& tree, Arena& arena, MotorEquation<T>& m, const T* tau, const T* preload, T* u, OffLoops<T>* off) {
  T* b = m.e.b;
  for (int k = 0; k < tree.nv; ++k) b[k] = tau[k];
  if (preload) take_preload(tree, arena, m.e.matrix.J, preload, b);
  const SharedOut<T> shared = solve(tree, arena, m, static_cast<const T*>(b), off);
  for (int k = 0; k < tree.loops.actuators; ++k) {
    const int carrier = tree.loops.actuator[k];
    u[k] = carrier < tree.nv ? shared.x[carrier] * m.motors[carrier] : shared.x[carrier];
    if (preload) u[k] += preload[k];
  }
  return shared.error;
}

template <class T>
T share_out(const Tree& tree, Arena& arena, const LoopState<T>& state, Poses<T> in_parent, const Motion<T>* stored, const T* tau,
            const Sharing<T>& sharing, T* u, OffLoops<T>* off) {
  MotorEquation<T> motors = motor_equation(tree, arena, state, in_parent, stored, sharing, off);
  return share_out(tree, arena, motors, tau, sharing.preload, u, off);
}

/// Compute P (actuators x actuators): column k contains the least efforts for tau = 0 with a preload of 1 at motor k. These are internal efforts,
/// which cause no motion.
template <class T> void internal_efforts(const Tree& tree, Arena& arena, MotorEquation<T>& m, T* P) {
  const int nu = tree.loops.actuators;
  T *none = arena.take<T>(tree.nv), *unit = arena.take<T>(nu);
  for (int i = 0; i < tree.nv; ++i) none[i] = T(0.0);
  for (int i = 0; i < nu; ++i) unit[i] = T(0.0);
  for (int k = 0; k < nu; ++k) {
    const Arena::Scope scope(arena);
    unit[k] = T(1.0);
    share_out(tree, arena, m, static_cast<const T*>(none), static_cast<const T*>(unit), P + k * nu,
              static_cast<OffLoops<T>*>(nullptr));
    unit[k] = T(0.0);
  }
}

/// Return the squared norm of generalised forces; forces [N] are converted to moments [N m] by Tree::unit.
template <class T> T squared_size(const Tree& tree, const T* tau) {
  T sum = T(0.0);
  for (int k = 0; k < tree.nv; ++k) sum += square(T(tau[k] * tree.numbers<T>()(tree.unit[k])));
  return sum;
}

/// Return the squared norm [N m] of the forces and moments that the joints transmit. tau is a difference of these, so its rounding is relative to
/// them.
template <class T> T transmitted(const Tree& tree, const RneaWork<T>& work) {
  T sum = T(0.0);
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const Force<T>& f = work.link[i].f;
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto S = joint.subspace(work.columns + b.iv);
      for (int k = 0; k < joint.nv; ++k)
        sum += (dot(S.column[k].angular, S.column[k].angular) * dot(f.angular, f.angular) +
                dot(S.column[k].linear, S.column[k].linear) * dot(f.linear, f.linear)) *
               square(T(tree.numbers<T>()(tree.unit[b.iv + k])));
    });
  }
  return sum;
}

/// Return the largest |J v - c| or |J a - gamma| of a motion, relative to the largest value that rounding or poorly closed loops can cause.
template <class T>
SARRUS_NOINLINE T forbidden(const Tree& tree, Arena& arena, const RneaInput<T>& in, const T* time, const T* pfaffian_values) {
  const Loops& loops = tree.loops;
  T *J = arena.take<T>(loops.entries), *target = arena.take<T>(loops.rows), *gamma = arena.take<T>(loops.rows);
  ConstraintRows<T> row_output;
  row_output.J = J, row_output.target = target;
  constraint_rows(tree, arena, place(tree, arena, in.q, time, pfaffian_values), row_output, 0, loops.constraints);
  constraint_bias(tree, arena, in.q, in.v, time, pfaffian_values, gamma);
  const T* unit = row_sizes(tree, arena, in.q, time, pfaffian_values);
  T worst = T(0.0);
  const auto check_row = [&](const Constraint& c, int r, const T* motion, const T& required) SARRUS_INLINED {
    T off = -required, size = abs(required);
    for (int k = 0; k < c.columns; ++k) {
      const T part = J[c.entry + k * c.rows + r] * motion[c.column[k]];
      off += part, size += abs(part);
    }
    const T share = abs(off) / (size * T(tolerances::allowed) + unit[c.row + r] * T(tolerances::at_rest));
    worst = select(share > worst, share, worst);
  };
  for (int i = 0; i < loops.constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int r = 0; r < c.rows; ++r) check_row(c, r, in.v, target[c.row + r]), check_row(c, r, in.a, gamma[c.row + r]);
  }
  return worst;
}

/// Compute u. Returns the fraction of the required force that motors and loops cannot supply. On request, also compute the violation of the loops by
/// the state, and internal_efforts().
template <class T>
T actuator_efforts(const Tree& tree, Arena& arena, const RneaInput<T>& in, const T* time, const T* pfaffian_values,
                   const Sharing<T>& sharing, T* u, OffLoops<T>* off, T* internal = nullptr) {
  T* tau = arena.take<T>(tree.nv);
  const auto work = rnea(tree, arena, in, tau);
  T size = transmitted(tree, work) + squared_size(tree, static_cast<const T*>(tau));
  for (int k = 0; sharing.preload && k < tree.loops.actuators; ++k)
    size += square(T(sharing.preload[k] * unit_of_effort<T>(tree, k)));
  size = select(size > T(0.0), size, T(1.0));
  if (tree.loops.rows + tree.loops.motor_rows == 0) {
    for (int k = 0; k < tree.loops.actuators; ++k) {
      T& effort = tau[tree.loops.actuator[k]];
      u[k] = effort, effort = T(0.0);
    }
    for (int k = 0; internal && k < tree.loops.actuators * tree.loops.actuators; ++k) internal[k] = T(0.0);
    return sqrt(squared_size(tree, static_cast<const T*>(tau)) / size);
  }
  LoopState<T> state = {in.q, in.v, time, pfaffian_values, nullptr, nullptr, nullptr};
  place(tree, arena, work.poses(), work.columns, state);
  MotorEquation<T> motors = motor_equation(tree, arena, state, work.poses(), work.columns, sharing, off);
  const T error = share_out(tree, arena, motors, static_cast<const T*>(tau), sharing.preload, u, off);
  if (internal) internal_efforts(tree, arena, motors, internal);
  return sqrt(error / size);
}

/// Compute G (6 x actuators), which maps motor velocities to a frame's velocity, V = G u-dot, with zero rates of prescribed motions. By virtual work,
/// a row of G contains the motor efforts that balance a unit load on the frame: those of least norm, if motors are redundant. Returns the fraction of
/// the frame's motion that the motors do not determine.
template <class T>
T loop_jacobian(const Tree& tree, Arena& arena, const Kinematics<T>& k, const LoopState<T>& state, const Frame& f, T* out) {
  const int nu = tree.loops.actuators;
  T *J = arena.take<T>(6 * tree.nv), missing = T(0.0), size = T(0.0);
  frame_jacobian<T>(tree, k, f, J, nullptr);
  const bool open = tree.loops.rows + tree.loops.motor_rows == 0;
  std::optional<MotorEquation<T>> motors;
  if (!open)
    motors.emplace(motor_equation(tree, arena, state, Poses<T>{state.in_parent}, state.stored, Sharing<T>{},
                                  static_cast<OffLoops<T>*>(nullptr)));
  for (int i = 0; i < 6; ++i) {
    const Arena::Scope scope(arena);
    const T unit = i < 3 ? T(1.0) : T(1.0) / square(T(tree.numbers<T>()(tree.length)));
    T* row = J + i * tree.nv;
    size += squared_size(tree, static_cast<const T*>(row)) * unit;
    if (!open) {
      missing += share_out(tree, arena, *motors, static_cast<const T*>(row), static_cast<const T*>(nullptr), out + i * nu,
                           static_cast<OffLoops<T>*>(nullptr)) *
                 unit;
      continue;
    }
    for (int a = 0; a < nu; ++a) {
      T& effort = row[tree.loops.actuator[a]];
      out[i * nu + a] = effort, effort = T(0.0);
    }
    missing += squared_size(tree, static_cast<const T*>(row)) * unit;
  }
  return sqrt(missing / select(size > T(0.0), size, T(1.0)));
}

}  // namespace sarrus
