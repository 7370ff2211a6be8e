// What motors must do in a closed mechanism. A motion needs the generalised force tau = M a + h; motors give it S u, the loops J^T lambda.
// Of all u with S u + J^T lambda = tau the one of least norm is (Lagrange) u = S^T y with
//
//   [S S^T  J^T; J  0] [y; lambda] = [tau; 0]
//
// the equation of constrained dynamics with the motors in place of the masses: y is a motion that the loops allow, along which the
// motors share. S S^T has a one where a motor drives a velocity of the tree and nothing elsewhere. A motor in a joint that closes a loop
// is a row that gives way: J_s y - u = 0. Li and Wu 4.6; Sonoda, Ishii and Isobe's G is a basis of what J allows, which is not needed here.
//
// Newtons and newton metres compare by the mechanism's length l: a force f counts as a moment l f, a slide x as a turn x / l (Tree::unit). Its
// motor's one is then 1/l^2, and neither the answer nor what is left of it depends on the unit of length.
#pragma once

#include <optional>

#include "../dynamics/frames.hpp"
#include "constrained_dynamics.hpp"

namespace sarrus {

/// The equation of the motors, factorised; a right-hand side is to come.
template <class T> struct MotorEquation {
  LoopEquation<T> e;
  Factor<T> factor;
  const T* motors;  // of each velocity: what a motor's one counts, or 0
};

template <class T>
MotorEquation<T> motor_equation(const Tree& tree, Arena& arena, const LoopState<T>& state, Poses<T> in_parent,
                                const Motion<T>* stored, OffLoops<T>* off) {
  const Loops& loops = tree.loops;
  const int nv = tree.nv, rows = loops.rows + loops.motor_rows, constraints = loops.constraints + loops.motor_constraints;
  T *mobility = arena.take<T>(nv), *motors = arena.take<T>(nv), *epsilon = arena.take<T>(nv);
  for (int k = 0; k < nv; ++k) {
    const double square = tree.unit[k] * tree.unit[k];
    mobility[k] = T(square), motors[k] = T(0.0), epsilon[k] = T(tolerances::passive / square);
  }
  for (int k = 0; k < loops.actuators; ++k)
    if (const int driven = loops.actuator[k]; driven < nv) motors[driven] = T(1.0) / mobility[driven], epsilon[driven] = T(0.0);

  T *J = arena.take<T>(loops.entries + loops.motor_entries), *soft = arena.take<T>(rows), *mu = arena.take<T>(rows);
  T *b = arena.take<T>(nv + rows), *scale = arena.take<T>(rows);
  ConstraintRows<T> asked;
  asked.J = J, asked.scale = scale, asked.mobility = mobility, asked.off = off;
  constraint_rows(tree, arena, state, asked, 0, loops.constraints);
  asked.off = nullptr;  // motors need not stand still
  constraint_rows(tree, arena, state, asked, loops.constraints, constraints);
  for (int i = loops.constraints; i < constraints; ++i) {  // a joint may have armature and no motor
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns * c.rows; ++k) J[c.entry + k] *= T(loops.driven[c.row - loops.rows]);
  }
  for (int k = 0; k < nv + rows; ++k) b[k] = T(0.0);
  for (int r = 0; r < rows; ++r) {
    const bool gives_way = r >= loops.rows;
    soft[r] = T(gives_way ? loops.motor_unit[r - loops.rows] * loops.motor_unit[r - loops.rows] : 0.0);
    mu[r] = gives_way ? T(0.0) : scale[r] * T(tolerances::passive);
  }
  LoopEquation<T> e = {{tree, loops.statics, nullptr, constraints, rows, motors, J, soft, mobility, nullptr}, b, scale, T(0.0)};
  set_row_weights(arena, e);
  if (loops.substructures)
    e.pieces = new (arena.take<SubstructuredEquation<T>>(1))
        SubstructuredEquation<T>(tree, arena, state, in_parent, stored, {nullptr, true, motors});
  return {e, e.pieces ? e.pieces->factorise(arena) : factorise(e.solved(), arena, epsilon, mu), motors};
}

/// u (actuators) for tau (nv); returns the square of the part of tau that nobody gives [N m].
template <class T> T share_out(const Tree& tree, Arena& arena, MotorEquation<T>& m, const T* tau, T* u, OffLoops<T>* off) {
  LoopEquation<T>& e = m.e;
  const Saddle<T>& matrix = e.solved();
  for (int k = 0; k < tree.nv; ++k) e.b[k] = tau[k];
  T* y = arena.take<T>(matrix.tree.nv + matrix.rows);
  const T error = refine(matrix, arena, m.factor, e.lifted(arena, e.b), y, 60);
  const T* x = e.lowered(arena, y);
  if (off && any(off->open > T(0.0))) {
    for (int k = 0; k < tree.nv; ++k) e.terms += tau[k] * tau[k] * e.matrix.mobility[k];
    off->fault = select(gap_decides(e, arena, LoopSolution<T>{x, y, error, m.factor}, off->open, true), T(2.0), off->fault);
  }
  for (int k = 0; k < tree.loops.actuators; ++k) {
    const int carrier = tree.loops.actuator[k];
    u[k] = carrier < tree.nv ? x[carrier] * m.motors[carrier] : x[carrier];
  }
  return error;
}

template <class T>
T share_out(const Tree& tree, Arena& arena, const LoopState<T>& state, Poses<T> in_parent, const Motion<T>* stored, const T* tau,
            T* u, OffLoops<T>* off) {
  MotorEquation<T> motors = motor_equation(tree, arena, state, in_parent, stored, off);
  return share_out(tree, arena, motors, tau, u, off);
}

/// Of generalised forces [N m].
template <class T> T squared_size(const Tree& tree, const T* tau) {
  T sum = T(0.0);
  for (int k = 0; k < tree.nv; ++k) sum += tau[k] * tau[k] * T(tree.unit[k] * tree.unit[k]);
  return sum;
}

/// Size, squared, of the forces and moments that the joints transmit, as far as they could work along the joint: tau is their difference
/// [N m].
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
               T(tree.unit[b.iv + k] * tree.unit[b.iv + k]);
    });
  }
  return sum;
}

/// u, and the part of the needed force that nobody gives, relative; if asked for, how far the state is off the loops.
template <class T>
T actuator_efforts(const Tree& tree, Arena& arena, const RneaInput<T>& in, const T* time, const T* pfaffian_values, T* u,
                   OffLoops<T>* off) {
  T* tau = arena.take<T>(tree.nv);
  const auto work = rnea(tree, arena, in, tau);
  T size = transmitted(tree, work) + squared_size(tree, static_cast<const T*>(tau));
  size = select(size > T(0.0), size, T(1.0));
  if (tree.loops.rows + tree.loops.motor_rows == 0) {
    for (int k = 0; k < tree.loops.actuators; ++k) {
      T& mine = tau[tree.loops.actuator[k]];
      u[k] = mine, mine = T(0.0);
    }
    return sqrt(squared_size(tree, static_cast<const T*>(tau)) / size);
  }
  LoopState<T> state = {in.q, in.v, time, pfaffian_values, nullptr, nullptr, nullptr};
  place(tree, arena, work.poses(), work.columns, state);
  return sqrt(share_out(tree, arena, state, work.poses(), work.columns, tau, u, off) / size);
}

/// G (6 x actuators): what a frame's velocity is per velocities of the motors, V = G u-dot, while what drives the loops rests. By virtual work a
/// row is what the motors must do against a unit of load on the frame: of motors that depend on one another the least. Returns what of the
/// frame's motion no motor determines, relative.
template <class T>
T loop_jacobian(const Tree& tree, Arena& arena, const Kinematics<T>& k, const LoopState<T>& state, const Frame& f, T* out) {
  const int nu = tree.loops.actuators;
  T *J = arena.take<T>(6 * tree.nv), missing = T(0.0), size = T(0.0);
  frame_jacobian<T>(tree, k, f, J, nullptr);
  const bool open = tree.loops.rows + tree.loops.motor_rows == 0;
  std::optional<MotorEquation<T>> motors;
  if (!open)
    motors.emplace(
        motor_equation(tree, arena, state, Poses<T>{state.in_parent}, state.stored, static_cast<OffLoops<T>*>(nullptr)));
  for (int i = 0; i < 6; ++i) {
    const Arena::Scope scope(arena);
    const T unit = T(i < 3 ? 1.0 : 1.0 / (tree.length * tree.length));
    T* row = J + i * tree.nv;
    size += squared_size(tree, static_cast<const T*>(row)) * unit;
    if (!open) {
      missing +=
          share_out(tree, arena, *motors, static_cast<const T*>(row), out + i * nu, static_cast<OffLoops<T>*>(nullptr)) * unit;
      continue;
    }
    for (int a = 0; a < nu; ++a) {
      T& mine = row[tree.loops.actuator[a]];
      out[i * nu + a] = mine, mine = T(0.0);
    }
    missing += squared_size(tree, static_cast<const T*>(row)) * unit;
  }
  return sqrt(missing / select(size > T(0.0), size, T(1.0)));
}

}  // namespace sarrus
