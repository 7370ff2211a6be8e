// Model-based control laws: efforts of motors for given accelerations.
//
// If there are loops, the targets are for independent coordinates. The loop equations determine a, v_d and a_d of all other joints,
//
//   J a = gamma,   J v_d = c,   J a_d = c-dot - J-dot v_d  (so that a_d is the rate of v_d along the current motion),
//
// and tau is distributed to the motors as in ../loops/efforts.hpp. If the coordinates with targets are those with motors, one factor suffices. In its
// matrix, W is 0 for these velocities and 1 for all others, and the columns of J for these velocities are omitted:
//
//   [W J^T; J 0] [x; y] = [0; rows - J given]   yields the velocities x of the other joints; with the right-hand side [tau; 0], the solution [0; z]
//                                               yields the motors' efforts u = tau - J^T z
#pragma once

#include <optional>
#include <utility>

#include "../loops/answers.hpp"
#include "../loops/efforts.hpp"
#include "../loops/projection.hpp"
#include "element.hpp"

namespace sarrus {

/// Members that all such control laws have: motors, and coordinates with a target.
struct ModelLaw : ForceElement {
  static constexpr bool has_rates = true, varies = false, can_be_sampled = true;
  // coordinates with a target: all of a tree; with loops, as many as there are degrees of freedom
  std::vector<JointTarget> targets;
  std::vector<JointVelocity> motors;  // motors of the mechanism; empty: every velocity of the tree has one
  bool own_motors = false;  // true if the coordinates with targets are exactly those with motors

  void settle() {
    own_motors = std::is_permutation(targets.begin(), targets.end(), motors.begin(), motors.end(),
                                     [](const auto& x, const auto& y) { return x.iv == y.iv; });
  }
};

/// Control law with a target for each coordinate, and gains: kp for every target, and kd.
struct TrackingLaw : ModelLaw {
  NumberArray proportional, derivative;

  template <class F> void fields(F field) {
    field("targets", targets), field("motors", motors);
    field("proportional", proportional), field("derivative", derivative);
  }
};

template <class T> class ModelBased {
 public:
  ModelBased(const ModelLaw& law, ElementCall<T>& e)
      : law_(law), e_(e), tree_(e.tree), arena_(e.arena), time_(e.time), q_(e.q), v_(e.v) {}

  int targets() const { return static_cast<int>(law_.targets.size()); }
  int motors() const { return static_cast<int>(law_.motors.size()); }
  T* take(int size) { return arena_.template take<T>(size); }

  RneaWork<T> inverse_dynamics(const T* v, const T* a, T* tau) {
    RneaWork<T> work = rnea(tree_, arena_, RneaInput<T>{q_, v, a}, tau);
    for (int k = 0; e_.springs && k < tree_.nv; ++k) tau[k] -= e_.springs[k];
    return work;
  }

  /// Factorise the matrix in which the velocities with a target are fixed, and evaluate J.
  void factorise() {
    if (tree_.loops.rows == 0) return;
    T* free_weights = take(tree_.nv);
    for (int k = 0; k < tree_.nv; ++k) free_weights[k] = T(1.0);
    for (int k = 0; k < targets(); ++k) free_weights[law_.targets[k].iv] = T(0.0);
    equation_.emplace(
        metric_equation(tree_, arena_, q_, static_cast<const T*>(free_weights), &time_, e_.pfaffian_values(), true));
    factor_ = factorise_tightly(*equation_, arena_);
    J_ = take(tree_.loops.entries);
    ConstraintRows<T> output;
    output.J = J_;
    constraint_rows(tree_, arena_, place(tree_, arena_, q_, &time_, e_.pfaffian_values()), output, 0, tree_.loops.constraints);
  }

  /// Compute x (nv) with J x = rows, in which the velocities with a target have their prescribed values. Entries of `rows` are differences of larger
  /// terms. If not null, the second argument contains the squared norms of these terms.
  T complete(const T* prescribed, const T* rows, const T* size, T* x) {
    for (int k = 0; k < tree_.nv; ++k) x[k] = T(0.0);
    for (int k = 0; k < targets(); ++k) x[law_.targets[k].iv] = prescribed[k];
    if (!equation_) return T(0.0);
    T *missing = equation_->b + tree_.nv, error;
    std::fill(equation_->b, missing, T(0.0)), std::copy(rows, rows + tree_.loops.rows, missing);
    add_motion_along_rows(tree_, static_cast<const T*>(J_), static_cast<const T*>(x), T(-1.0), missing);
    const T* solution = solve(size_of_motion<T>(*equation_, x, rows, size), error);
    for (int k = 0; k < tree_.nv; ++k) x[k] += solution[k];
    for (int k = 0; k < targets(); ++k) x[law_.targets[k].iv] = prescribed[k];
    return error;
  }

  void targets_of_rows(T* c) {
    if (tree_.loops.rows == 0) return;
    ConstraintRows<T> output;
    output.target = c;
    constraint_rows(tree_, arena_, place(tree_, arena_, q_, &time_, e_.pfaffian_values()), output, 0, tree_.loops.constraints);
  }

  /// Compute c-dot - J-dot x for a constant x along the current motion: the rate of c - J x at q + epsilon q-dot, t + epsilon. `size`: norm of the
  /// terms of gamma, for the larger of the velocities v and x.
  void rates_of_rows(const T* x, T* c_dot, T* size) {
    if (tree_.loops.rows == 0) return;
    T* both_motions = take(tree_.nv);
    for (int k = 0; k < tree_.nv; ++k) both_motions[k] = sqrt(v_[k] * v_[k] + x[k] * x[k]);
    constraint_bias(tree_, arena_, q_, static_cast<const T*>(both_motions), &time_, e_.pfaffian_values(), c_dot, size);
    using D = Dual<T>;
    T* q_dot = take(tree_.nq);
    coordinate_rate(tree_, q_, v_, q_dot);
    const D now = {time_, T(1.0)}, *moving_q = moving(arena_, tree_.nq, q_, q_dot);
    D *J = arena_.template take<D>(tree_.loops.entries), *slip = arena_.template take<D>(tree_.loops.rows);
    ConstraintRows<D> output;
    output.J = J, output.target = slip;
    const T* numbers = e_.pfaffian_values();
    const D* rows = numbers ? moving(arena_, tree_.loops.pfaffian_values, numbers, e_.pfaffian_rates()) : nullptr;
    constraint_rows(tree_, arena_, place<D>(tree_, arena_, moving_q, &now, rows), output, 0, tree_.loops.constraints);
    add_motion_along_rows(tree_, J, moving(arena_, tree_.nv, x, zeros<T>(arena_, tree_.nv)), D(-1.0), slip);
    for (int r = 0; r < tree_.loops.rows; ++r) c_dot[r] = slip[r].rate;
  }

  /// Distribute tau to the motors. Returns the fraction of tau that no motor can produce.
  T share(const RneaWork<T>& work, T* tau) {
    T* motor = e_.motor;
    if (law_.motors.empty()) {  // in a tree, all joints have a motor
      for (int k = 0; k < tree_.nv; ++k) motor[k] += tau[k];
      return T(0.0);
    }
    T size = transmitted(tree_, work) + squared_size(tree_, static_cast<const T*>(tau)), missing = T(0.0), *u = take(motors());
    if (tree_.loops.rows + tree_.loops.motor_rows == 0) {
      for (int k = 0; k < motors(); ++k) u[k] = std::exchange(tau[law_.motors[k].iv], T(0.0));
      missing = squared_size(tree_, static_cast<const T*>(tau));
    } else if (equation_ && law_.own_motors && !equation_->pieces) {
      for (int k = 0; k < tree_.nv; ++k) equation_->b[k] = tau[k];
      for (int k = 0; k < targets(); ++k) equation_->b[law_.targets[k].iv] = T(0.0);
      for (int r = 0; r < equation_->matrix.rows; ++r) equation_->b[tree_.nv + r] = T(0.0);
      T error, *z = take(tree_.loops.rows);
      const T* solution = solve(size, error);
      for (int r = 0; r < tree_.loops.rows; ++r) z[r] = -solution[tree_.nv + r];
      add_constraint_forces(tree_, static_cast<const T*>(J_), static_cast<const T*>(z), tau);
      for (int k = 0; k < motors(); ++k) u[k] = std::exchange(tau[law_.motors[k].iv], T(0.0));
      missing = squared_size(tree_, static_cast<const T*>(tau));
    } else {
      LoopState<T> state = {q_, v_, &time_, e_.pfaffian_values(), nullptr, nullptr, nullptr};
      place(tree_, arena_, work.poses(), work.columns, state);
      missing =
          share_out(tree_, arena_, state, work.poses(), work.columns, tau, Sharing<T>{}, u, static_cast<OffLoops<T>*>(nullptr));
    }
    for (int k = 0; k < motors(); ++k) motor[law_.motors[k].iv] += u[k];
    return sqrt(missing / select(size > T(0.0), size, T(1.0)));
  }

 private:
  /// Solve for the right-hand side of the equation. `terms`: its squared norm before cancellation; `error` receives the relative residual.
  const T* solve(const T& terms, T& error) {
    T* corrected = take(equation_->solved().plan.unknowns);
    equation_->terms = terms;
    error = equation_->relative(
        refine(equation_->solved(), arena_, *factor_, equation_->lifted(arena_, equation_->b), corrected, 60));
    return equation_->lowered(arena_, corrected);
  }

  const ModelLaw& law_;
  ElementCall<T>& e_;
  const Tree& tree_;
  Arena& arena_;
  const T& time_;
  const T *q_, *v_;
  std::optional<LoopEquation<T>> equation_{};  // no value if there are no loops
  std::optional<Factor<T>> factor_{};
  T* J_ = nullptr;
};

}  // namespace sarrus
