// Control laws that know the mechanism: what motors must do so that it accelerates as it should.
//
//   computed torque   tau = M a + h,   a = g-double-dot + kd (g-dot - v) + kp (g - q)      (Li and Wu 4.4; Murray, Li and Sastry 4.5)
//   PD+               tau = M a_d + C v_d + n + kp (g - q) + kd (g-dot - v)                 (Paden and Panja 1988)
//   gravity           tau = scale n,   n what gravity and springs do at rest
//
// On loops targets are those of independent coordinates. The loops complete a, v_d and a_d to those of all joints,
//
//   J a = gamma,   J v_d = c,   J a_d = c-dot - J-dot v_d  (so that a_d is the rate of v_d along the motion at hand),
//
// and motors share tau as efforts.hpp says. Where the motors are those of the targets, one factor does all of it: with W = 1 along the
// other velocities and nothing along these, and the columns of J accordingly,
//
//   [W J^T; J 0] [x; 0] = [0; rows - J given]   completes a motion,   and [0; z] of [tau; 0] leaves u = tau - J^T z to the motors.
//
// With v_d on the loops the error v - v_d is a velocity that they allow, and constraint forces
// have no part in the rate of its energy: what PD+ promises of trees holds on loops.
#pragma once

#include <optional>
#include <utility>

#include "../dynamics/coriolis.hpp"
#include "../loops/answers.hpp"
#include "../loops/efforts.hpp"
#include "../loops/projection.hpp"
#include "plan.hpp"

namespace sarrus {

template <class T> class ModelBased {
 public:
  ModelBased(const Tree& tree, Arena& arena, const ModelLaw& law, const T* parameter, const T& time, const T* q, const T* v,
             const T* springs)
      : tree_(tree),
        arena_(arena),
        law_(law),
        row_(parameter),
        p_(parameter + law.parameter),
        time_(time),
        q_(q),
        v_(v),
        springs_(springs) {}

  /// Adds to `motor`. Returns what no motion of the loops, or no effort of the motors, gives: a relative residual.
  T act(T* motor) {
    const Arena::Scope scope(arena_);
    switch (law_.kind) {
      case ModelLawKind::computed_torque: return computed_torque(motor);
      case ModelLawKind::pd_plus: return pd_plus(motor);
      default: return gravity(motor);
    }
  }

 private:
  T* take(int size) { return arena_.template take<T>(size); }

  T computed_torque(T* motor) {
    factorise();
    T *asked = take(law_.targets), *a = take(tree_.nv), *gamma = take(tree_.loops.rows), *size = take(tree_.loops.rows),
      *tau = take(tree_.nv), g[3];
    for (int k = 0; k < law_.targets; ++k) {
      evaluate(*law_.target[k], row_, &time_, g);
      asked[k] = g[2] + p_[law_.targets + k] * (g[1] - v_[law_.iv[k]]) + p_[k] * (g[0] - q_[law_.iq[k]]);
    }
    if (tree_.loops.rows > 0) constraint_bias(tree_, arena_, q_, v_, &time_, static_cast<const T*>(nullptr), gamma, size);
    const T off = complete(asked, gamma, size, a);
    return most_of(off, share(inverse_dynamics(v_, a, tau), tau, motor));
  }

  T pd_plus(T* motor) {
    factorise();
    const int nv = tree_.nv, rows = tree_.loops.rows;
    T *rate = take(law_.targets), *second = take(law_.targets), *push = take(law_.targets), *c = take(rows), *c_dot = take(rows),
      *size = take(rows);
    T *v_d = take(nv), *a_d = take(nv), *tau = take(nv), *C = take(nv * nv), g[3];
    for (int k = 0; k < law_.targets; ++k) {
      evaluate(*law_.target[k], row_, &time_, g);
      rate[k] = g[1], second[k] = g[2];
      push[k] = p_[k] * (g[0] - q_[law_.iq[k]]) + p_[law_.targets + k] * (g[1] - v_[law_.iv[k]]);
    }
    targets_of_rows(c);
    T off = complete(rate, c, nullptr, v_d);
    rates_of_rows(v_d, c_dot, size);
    off = most_of(off, complete(second, c_dot, size, a_d));
    const T* rest = zeros<T>(arena_, nv);
    const auto work = inverse_dynamics(rest, a_d, tau);
    if (tree_.has_joint_forces) {  // friction as of the desired motion: what there is more or less of it brakes the error
      add_joint_forces(tree_, q_, rest, T(-1.0), tau);
      add_joint_forces(tree_, q_, v_d, T(1.0), tau);
    }
    const auto k = Kinematics<T>::over(tree_, take(Kinematics<T>::size(tree_)));
    kinematics(tree_, arena_, q_, v_, static_cast<const T*>(nullptr), k);
    coriolis(tree_, arena_, k, C);
    for (int r = 0; r < nv; ++r)
      for (int j = 0; j < nv; ++j) tau[r] += C[r * nv + j] * v_d[j];
    for (int j = 0; j < law_.targets; ++j) tau[law_.iv[j]] += push[j];
    return most_of(off, share(work, tau, motor));
  }

  T gravity(T* motor) {
    const T* rest = zeros<T>(arena_, tree_.nv);
    T* tau = take(tree_.nv);
    const auto work = inverse_dynamics(rest, rest, tau);
    for (int k = 0; k < tree_.nv; ++k) tau[k] *= p_[0];
    const T off = share(work, tau, motor);
    return tree_.loops.rows > 0 ? off : T(0.0);  // on trees motors hold what is on their own joints
  }

  RneaWork<T> inverse_dynamics(const T* v, const T* a, T* tau) {
    RneaWork<T> work = rnea(tree_, arena_, RneaInput<T>{q_, v, a}, tau);
    for (int k = 0; springs_ && k < tree_.nv; ++k) tau[k] -= springs_[k];
    return work;
  }

  /// The matrix in which velocities with a target are held, and its factor; and J as it is.
  void factorise() {
    if (tree_.loops.rows == 0) return;
    T* others = take(tree_.nv);
    for (int k = 0; k < tree_.nv; ++k) others[k] = T(1.0);
    for (int k = 0; k < law_.targets; ++k) others[law_.iv[k]] = T(0.0);
    e_.emplace(metric_equation(tree_, arena_, q_, static_cast<const T*>(others), &time_, static_cast<const T*>(nullptr), true));
    factor_ = factorise_tightly(*e_, arena_);
    J_ = take(tree_.loops.entries);
    ConstraintRows<T> asked;
    asked.J = J_;
    constraint_rows(tree_, arena_, place(tree_, arena_, q_, &time_, static_cast<const T*>(nullptr)), asked, 0,
                    tree_.loops.constraints);
  }

  /// x with the right-hand side that stands in the equation, whose size, squared, is `terms`; `error`: the relative residual.
  const T* solve(const T& terms, T& error) {
    T* own = take(e_->solved().plan.unknowns);
    e_->terms = terms;
    error = e_->relative(refine(e_->solved(), arena_, *factor_, e_->lifted(arena_, e_->b), own, 60));
    return e_->lowered(arena_, own);
  }

  /// x (nv) with J x = rows, which are differences of numbers of that size (squares; or null), in which velocities with a target are what
  /// is given.
  T complete(const T* given, const T* rows, const T* size, T* x) {
    for (int k = 0; k < tree_.nv; ++k) x[k] = T(0.0);
    for (int k = 0; k < law_.targets; ++k) x[law_.iv[k]] = given[k];
    if (!e_) return T(0.0);
    T *missing = e_->b + tree_.nv, error;
    std::fill(e_->b, missing, T(0.0)), std::copy(rows, rows + tree_.loops.rows, missing);
    add_motion_along_rows(tree_, static_cast<const T*>(J_), static_cast<const T*>(x), T(-1.0), missing);
    const T* found = solve(size_of_motion<T>(*e_, x, rows, size), error);
    for (int k = 0; k < tree_.nv; ++k) x[k] += found[k];
    for (int k = 0; k < law_.targets; ++k) x[law_.iv[k]] = given[k];
    return error;
  }

  void targets_of_rows(T* c) {
    if (tree_.loops.rows == 0) return;
    ConstraintRows<T> asked;
    asked.target = c;
    constraint_rows(tree_, arena_, place(tree_, arena_, q_, &time_, static_cast<const T*>(nullptr)), asked, 0,
                    tree_.loops.constraints);
  }

  /// c-dot - J-dot x along the motion at hand, x being fixed: the rate of c - J x at q + epsilon q-dot, t + epsilon. Numbers that it is the
  /// difference of are no larger than those of gamma where joints move as fast as in both motions.
  void rates_of_rows(const T* x, T* c_dot, T* size) {
    if (tree_.loops.rows == 0) return;
    T* both_motions = take(tree_.nv);
    for (int k = 0; k < tree_.nv; ++k) both_motions[k] = sqrt(v_[k] * v_[k] + x[k] * x[k]);
    constraint_bias(tree_, arena_, q_, static_cast<const T*>(both_motions), &time_, static_cast<const T*>(nullptr), c_dot, size);
    using D = Dual<T>;
    T* q_dot = take(tree_.nq);
    coordinate_rate(tree_, q_, v_, q_dot);
    const D now = {time_, T(1.0)}, *there = moving(arena_, tree_.nq, q_, q_dot);
    D *J = arena_.template take<D>(tree_.loops.entries), *slip = arena_.template take<D>(tree_.loops.rows);
    ConstraintRows<D> asked;
    asked.J = J, asked.target = slip;
    constraint_rows(tree_, arena_, place<D>(tree_, arena_, there, &now, static_cast<const D*>(nullptr)), asked, 0,
                    tree_.loops.constraints);
    add_motion_along_rows(tree_, J, moving(arena_, tree_.nv, x, zeros<T>(arena_, tree_.nv)), D(-1.0), slip);
    for (int r = 0; r < tree_.loops.rows; ++r) c_dot[r] = slip[r].rate;
  }

  /// tau by the motors; returns the part of it that nobody gives, relative.
  T share(const RneaWork<T>& work, T* tau, T* motor) {
    if (law_.motors == 0) {  // all joints of a tree have one
      for (int k = 0; k < tree_.nv; ++k) motor[k] += tau[k];
      return T(0.0);
    }
    T size = transmitted(tree_, work) + squared_size(tree_, static_cast<const T*>(tau)), missing = T(0.0), *u = take(law_.motors);
    if (tree_.loops.rows + tree_.loops.motor_rows == 0) {
      for (int k = 0; k < law_.motors; ++k) u[k] = std::exchange(tau[law_.motor[k]], T(0.0));
      missing = squared_size(tree_, static_cast<const T*>(tau));
    } else if (e_ && law_.own_motors && !e_->pieces) {
      for (int k = 0; k < tree_.nv; ++k) e_->b[k] = tau[k];
      for (int k = 0; k < law_.targets; ++k) e_->b[law_.iv[k]] = T(0.0);
      for (int r = 0; r < e_->matrix.rows; ++r) e_->b[tree_.nv + r] = T(0.0);
      T error, *z = take(tree_.loops.rows);
      const T* found = solve(size, error);
      for (int r = 0; r < tree_.loops.rows; ++r) z[r] = -found[tree_.nv + r];
      add_constraint_forces(tree_, static_cast<const T*>(J_), static_cast<const T*>(z), tau);
      for (int k = 0; k < law_.motors; ++k) u[k] = std::exchange(tau[law_.motor[k]], T(0.0));
      missing = squared_size(tree_, static_cast<const T*>(tau));
    } else {
      LoopState<T> state = {q_, v_, &time_, nullptr, nullptr, nullptr, nullptr};
      place(tree_, arena_, work.poses(), work.columns, state);
      missing = share_out(tree_, arena_, state, work.poses(), work.columns, tau, u, static_cast<OffLoops<T>*>(nullptr));
    }
    for (int k = 0; k < law_.motors; ++k) motor[law_.motor[k]] += u[k];
    return sqrt(missing / select(size > T(0.0), size, T(1.0)));
  }

  static T most_of(const T& a, const T& b) { return select(a > b, a, b); }

  const Tree& tree_;
  Arena& arena_;
  const ModelLaw& law_;
  const T *row_, *p_;  // the parameters of all that acts, and its own
  const T& time_;
  const T *q_, *v_, *springs_;  // springs: a generalised force besides those of the tree, or null
  std::optional<LoopEquation<T>> e_{};  // on loops
  std::optional<Factor<T>> factor_{};
  T* J_ = nullptr;
};

}  // namespace sarrus
