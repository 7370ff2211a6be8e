// A mechanism with its force elements as an ordinary differential equation: q-dot = v, v-dot = a(t, q, v, z), and z-dot.
//
// Accelerations satisfy the loop constraints; the drift of the integration is corrected (Stabilisation)
//   not at all           none
//   by a force           corrective   -K_p phi - K_v (J v - c) along the rows, after lambda is known       (van der Merwe 5.75)
//   in the acceleration  baumgarte    J a = gamma - 2 alpha (J v - c) - beta^2 phi                         (Baumgarte 1972)
//   after each step      projection   of q, then v, in the metric of M: see project() below
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "../dynamics/aba.hpp"
#include "../dynamics/ltdl.hpp"
#include "../loops/loop_joints.hpp"
#include "../loops/projection.hpp"
#include "record.hpp"
#include "sampling.hpp"

namespace sarrus {

/// q, v and the internal states z of force elements, in one row. The values of sampled elements follow.
template <class T> struct SimulationState {
  T *q, *v, *z;
  static SimulationState of(const Tree& tree, T* row) { return {row, row + tree.nq, row + tree.nq + tree.nv}; }
};

/// q and v of all joints: those of the tree, then those of loop joints, whose velocities are J times v of the tree.
template <class T> struct AllJoints {
  const T *q, *v, *J;  // J: loop_nv x tree.nv
  int nv;
};
/// Compute coordinates of all joints. Loop angles include whole revolutions: `counted` contains their values at the time that is `passed` seconds
/// earlier (null: angles in [-pi, pi]).
template <class T>
SARRUS_NOINLINE AllJoints<T> all_joints(const Tree& tree, Arena& arena, const Plan& plan, const T& time, const T* q, const T* v,
                                        const T* counted, const T& passed) {
  T *all_q = arena.take<T>(tree.nq + tree.loop_nq), *all_v = arena.take<T>(tree.nv + tree.loop_nv);
  std::copy(q, q + tree.nq, all_q), std::copy(v, v + tree.nv, all_v);
  LoopJoints<T> joints;
  joints.q = all_q + tree.nq, joints.v = all_v + tree.nv, joints.J = arena.take<T>(tree.loop_nv * tree.nv);
  LoopState<T> state = place(tree, arena, q, &time, static_cast<const T*>(nullptr));
  state.v = v;
  read_loop_joints(tree, arena, state, counted, joints);
  for (int i = 0; counted && i < plan.loop_angles; ++i) {
    const auto& [iq, iv] = plan.loop_angle[i];
    joints.q[iq] = turns_near(joints.q[iq], counted[iq] + passed * joints.v[iv]);
  }
  return {all_q, all_v, joints.J, tree.nv + tree.loop_nv};
}

template <class T> struct LeastMotion;
template <class T> class DryFriction;

template <class T> struct System {
  const Tree& tree;
  Arena& arena;
  const Plan& plan;
  const T* parameter;
  LeastMotion<T>* least = nullptr;  // least motion computed at the beginning of the step, if projections use it; else null
  T status = T(0.0);
  T closes = T(0.0);  // 1: stages of a step are also projected onto the loops (redundancy.hpp)

  const T* held_values = nullptr;  // values of sampled elements, which follow z, and the counted angles
  T since = T(0.0);  // time at which angles were last counted
  bool has_springs = true;  // true if springs of loop joints are included in the forces
  Chords<T> chords{};  // chords of limited forces, to be stored or used (rates.hpp)
  DryFriction<T>* friction = nullptr;  // dry friction of joints (friction.hpp); null: none

  // watches: the next evaluation must compute the work of constraint forces. worked: the square of the ratio of this work to the largest possible
  // work
  bool watches = false;
  T worked = T(0.0);

  // output for the efforts that controllers command, in the first evaluation of a step, or the last one of an implicit step; null: none
  T* demanded = nullptr;
  bool kept = false;
  const Record<T>* record = nullptr;  // output for the residuals of rigid steps; null: none
  bool rigid = false;  // true: contacts and stops apply no forces (contact_step.hpp)
  // stiffness and damping of elements along all joints in the last evaluation; null: not required
  T *stiffness = nullptr, *damping = nullptr;
  SoftForces* rows = nullptr;  // stiffness and damping of elements between bodies in the last evaluation; null: not required
  T* loads = nullptr;  // wrenches of elements on frames in the last evaluation (6 for each frame); null: not required
  const T* late = nullptr;  // additional generalised force (nv), which implicit_midpoint.hpp sets; null: none
  // generalised force (nv), in the last evaluation, of all forces that do work, without dampers of the mechanism; null: work is not computed
  T* acting = nullptr;
  bool drives = false;  // true if rows that time functions or the caller drive do work
  bool fast = false;  // true if the rates of dampers may be too fast for the method's quadrature of work
  T power = T(0.0);  // power of all these forces [W]
  Work<T> work{};  // work in the current step
  T pressing = T(0.0);  // signature of the contacts and end stops that pressed in the last evaluation
  Force<T>* impulses =
      nullptr;  // impulses of external forces on each group of floating bodies, in the last midpoint step; null: not computed

  /// The tree that control laws use.
  const Tree& described() const { return plan.described ? *plan.described : tree; }
  /// The tree with the terms that the run computes itself (run_numbers.hpp).
  const Tree& full_tree() const { return plan.full_tree ? *plan.full_tree : tree; }
  /// Return one of the plan's units.
  SARRUS_INLINE T unit(const double* units, int k) const { return units ? T(tree.numbers<T>()(units[k])) : T(1.0); }
  /// Number of values of the integrated state, and of a state with sampled values.
  int integrated() const { return tree.nq + tree.nv + plan.force_elements.nz; }
  int size() const { return integrated() + plan.force_elements.held_size; }
  bool samples() const { return plan.force_elements.hold(); }
  bool projects() const {
    return tree.loops.rows > 0 && plan.stabilisation == Stabilisation::projection && plan.method != Method::independent;
  }
  /// Return the sum of squared velocities, each in units of its own unit in the plan.
  T squares_of_velocities(const T* v) const {
    T sum = T(0.0);
    for (int k = 0; k < tree.nv; ++k) sum += square(v[k] / unit(plan.velocity_unit, k));
    return sum;
  }
  /// Return true if, after a step, the check for redundant rows that are consistent only on closed loops may be needed.
  bool guards() const { return projects() && any(closes < T(0.5)); }

  AllJoints<T> joints(const T& time, const T* q, const T* v) {
    return all_joints(tree, arena, plan, time, q, v, plan.counts() ? held_values + plan.counted : nullptr, T(time - since));
  }
  /// Count the revolutions of loop joints at the end of a step, in the row x.
  void count_turns(const T& time, T* x) {
    if (!plan.counts()) return;
    const Arena::Scope scope(arena);
    const AllJoints<T> all = joints(time, x, x + tree.nq);
    std::copy(all.q + tree.nq, all.q + tree.nq + tree.loop_nq, x + integrated() + plan.counted);
    since = time;
  }
  /// Compute the generalised force (tree.nv) of springs along angles of loop joints; null if there are no such springs.
  const T* loop_springs(const AllJoints<T>& all) {
    const auto& springs = plan.force_elements.all<LoopSpring>();
    if (springs.empty()) return nullptr;
    T* tau = arena.template take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) tau[k] = T(0.0);
    for (const LoopSpring& s : springs) {
      const auto numbers = tree.numbers<T>();
      const PassiveTerms& terms = s.terms.of(full_tree());
      const T x = all.q[s.joint.iq] - numbers(terms.rest);
      const T force = -(numbers(terms.stiffness) * x + nonlinear_spring(terms.nonlinear, numbers, {x, x}));
      for (int k = 0; k < tree.nv; ++k) tau[k] += all.J[(s.joint.iv - tree.nv) * tree.nv + k] * force;
    }
    return tau;
  }
  /// Set the inputs of force elements, except the state.
  void set_surroundings(ElementCall<T>& e, const T* springs) {
    e.springs = springs, e.around = {plan.counts() && plan.drives_loop_joints ? e.q + tree.nq : nullptr, springs};
    if (tree.loops.pfaffian_values == 0) return;
    e.run = this, e.caller_rows = [](void* run, const T* q, const T* v, bool rates) {
      return static_cast<System*>(run)->pfaffian_values(q, v, rates);
    };
  }

  /// Compute the generalised force of force elements, and z-dot. `calls`: include forces from the function of the caller.
  void forces(const T& time, const T* q, const T* v, const T* z, T* tau, T* z_dot, bool calls = true) {
    const ForceElements& elements = plan.force_elements;
    const double* limit = elements.effort_limit;
    AllJoints<T> all = {q, v, nullptr, tree.nv};
    if (plan.drives_loop_joints) all = joints(time, q, v);
    const T* springs = loop_springs(all);
    T* along = all.J ? arena.template take<T>(all.nv) : tau;
    T* motor = limit || demanded || elements.deliver() ? arena.template take<T>(all.nv) : along;
    for (int k = 0; k < all.nv; ++k) motor[k] = along[k] = T(0.0);
    ElementCall<T> e = {described(), arena, parameter, time, all.q, all.v, z, all.nv, motor, along, z_dot};
    e.held_values = held_values, e.chords = chords, e.rigid = rigid;
    if (rows) e.rows = rows, rows->count = 0;
    e.loads = loads;
    if (stiffness) {
      e.stiffness = stiffness, e.damping = damping;
      for (int k = 0; k < tree.nv + tree.loop_nv; ++k) stiffness[k] = damping[k] = T(0.0);
    }
    set_surroundings(e, springs);
    apply(elements, e);
    pressing = e.pressing;
    take_status(e);
    if constexpr (std::is_same_v<T, double>)
      if (calls && plan.controller && status == 0.0 && !plan.controller(plan.self, time, q, v, motor, along))
        status = caller_failed;
    if (motor != along) {
      if (demanded && !kept) {
        for (int k = 0; k < all.nv; ++k) demanded[k] = motor[k];
        kept = plan.method != Method::implicit_midpoint;
      }
      deliver(elements, e);
      for (int k = 0; k < all.nv; ++k) along[k] += limit ? sarrus::least(most(motor[k], T(-limit[k])), T(limit[k])) : motor[k];
      for (int k = 0; stiffness && limit && k < all.nv; ++k) {  // at its effort limit, a motor has no stiffness
        const auto within = abs(motor[k]) < T(limit[k]);
        stiffness[k] = select(within, stiffness[k], T(0.0)), damping[k] = select(within, damping[k], T(0.0));
      }
    }
    for (int k = 0; all.J && k < tree.nv; ++k) {
      tau[k] = along[k];
      for (int r = tree.nv; r < all.nv; ++r) tau[k] += all.J[(r - tree.nv) * tree.nv + k] * along[r];
    }
    for (int k = 0; late && k < tree.nv; ++k) tau[k] += late[k];
    for (int k = 0; acting && k < tree.nv; ++k) acting[k] = tau[k];
    for (int k = 0; springs && has_springs && k < tree.nv; ++k) tau[k] += springs[k];
  }

  /// Take the samples that are due in the state x.
  SARRUS_NOINLINE void sample(double time, T* x) { sample(time, time + one_instant(plan.force_elements), x); }
  template <class Time> SARRUS_INLINE void sample(const Time& time, const Time& upto, T* x) {
    const auto at = SimulationState<T>::of(tree, x);
    take_samples(plan.force_elements, parameter, time, upto, x + integrated(),
                 [&](const SampleAndHold& s, int sampling, T* z, T* effort) {
                   evaluate_controllers(s, sampling, T(time), at.q, at.v, z, effort);
                 });
  }

  /// Compute the efforts of sampled controllers, and their internal states z after the sample.
  void evaluate_controllers(const SampleAndHold& s, int sampling, const T& time, const T* q, const T* v, T* z, T* effort) {
    const Arena::Scope scope(arena);
    AllJoints<T> all = {q, v, nullptr, tree.nv};
    if (plan.drives_loop_joints) all = joints(time, q, v);
    const T* springs = loop_springs(all);
    const int nq = plan.drives_loop_joints ? tree.nq + tree.loop_nq : tree.nq;
    T *q_seen = arena.template take<T>(nq), *v_seen = arena.template take<T>(all.nv), *tau = arena.template take<T>(all.nv);
    const ForceElements& controllers = *s.controllers;
    T* z_dot = arena.template take<T>(controllers.nz);
    std::copy(all.q, all.q + nq, q_seen), std::copy(all.v, all.v + all.nv, v_seen);
    quantise(s.position_step, nq, q_seen), quantise(s.velocity_step, all.nv, v_seen);
    for (int k = 0; k < s.width; ++k) effort[k] = T(0.0);
    for (int k = 0; k < all.nv; ++k) tau[k] = T(0.0);
    ElementCall<T> e = {described(), arena, parameter, time, q_seen, v_seen, z, all.nv, effort, tau, z_dot};
    e.unwinding = std::min(e.unwinding, 1.0 / s.period);
    set_surroundings(e, springs);
    apply(controllers, e);
    take_status(e);
    if constexpr (std::is_same_v<T, double>)
      if (s.calls && status == 0.0 && !plan.sampled(plan.self, sampling, time, q_seen, v_seen, effort)) status = caller_failed;
    for (int k = 0; k < controllers.nz; ++k) z[k] += T(s.period) * z_dot[k];
    quantise(s.effort_step, all.nv, effort);
  }

  void accelerations(const T& time, const T* q, const T* v, T* tau, T* a) {
    if constexpr (carries_rates<T>)
      return accelerations_with_rates(*this, time, q, v, tau, a);  // step_rates.hpp
    else
      return plain_accelerations(time, q, v, tau, a);
  }
  void plain_accelerations(const T& time, const T* q, const T* v, T* tau, T* a) {
    if (tree.loops.rows + tree.loops.rotor_rows == 0) return static_cast<void>(aba(tree, arena, AbaInput<T>{q, v, tau}, a));
    LoopInput<T> in{q, v, tau};
    in.time = &time, in.pfaffian_values = pfaffian_values(q, v);
    if (plan.stabilisation == Stabilisation::baumgarte) in.velocity_gain = plan.gains[0], in.position_gain = plan.gains[1];
    if (plan.stabilisation == Stabilisation::corrective) return correct(in, tau, a);
    if (!watches && !(acting && drives))
      return flag_contradiction(constrained_dynamics(tree, arena, in, a, static_cast<T*>(nullptr), static_cast<T*>(nullptr)));
    const LoopEquation<T> e = loop_equation(tree, arena, in);
    const LoopSolution<T> solution = solve_tightly(e, arena, e.b);
    flag_contradiction(solution.error);
    for (int k = 0; k < tree.nv; ++k) a[k] = solution.x[k];
    if (acting && drives) add_drives(e.matrix.J, solution.x + tree.nv, acting);
    if (watches) watch(e, v, solution.x + tree.nv);
  }

  /// Add the force of rows with prescribed motion to a generalised force (nv). `multipliers` have the sign of the saddle equation's solutions.
  void add_drives(const T* J, const T* multiplier, T* force) const {
    for (int i = 0; i < tree.loops.constraints; ++i) {
      const Constraint& c = tree.loops.constraint[i];
      if (!does_work(c)) continue;
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) force[c.column[k]] -= J[c.entry + k * c.rows + r] * multiplier[c.row + r];
    }
  }

  /// Compute the work ratio of constraint forces, without rows driven by time functions. Off the loops, velocities may violate the rows by the square
  /// of a step, so constraint forces do some work. It is noticeable only if redundant rows, consistent on the loops, lock the mechanism at a small
  /// distance from them.
  SARRUS_NOINLINE void watch(const LoopEquation<T>& e, const T* v, const T* force) {
    T work = T(0.0), speed = T(0.0);
    const T* J = e.matrix.J;
    for (int i = 0; i < tree.loops.constraints; ++i) {
      const Constraint& c = tree.loops.constraint[i];
      for (int k = 0; k < c.columns; ++k) {
        T along = T(0.0);
        for (int r = 0; r < c.rows; ++r) along += *J++ * force[c.row + r];
        if (!c.driven) work += along * v[c.column[k]];
      }
    }
    for (int k = 0; k < tree.nv; ++k) {
      const T& mobility = e.matrix.mobility[k];
      if (e.matrix.M)
        speed += v[k] * v[k] * e.matrix.M[e.matrix.first_entry(k)];
      else  // substructures have their own matrix
        speed += select(mobility > T(0.0), v[k] * v[k] / select(mobility > T(0.0), mobility, T(1.0)), T(0.0));
    }
    worked = select(speed > T(0.0), work * work / select(speed > T(0.0), speed * e.terms, T(1.0)), T(0.0));
    watches = false;
  }

  /// Compute a and z-dot.
  SARRUS_NOINLINE void evaluate(const T& time, const T* q, const T* v, const T* z, T* a, T* z_dot) {
    const Arena::Scope scope(arena);
    T* tau = arena.template take<T>(tree.nv);
    forces(time, q, v, z, tau, z_dot);
    if constexpr (carries_rates<T>) {
      accelerations(time, q, v, tau, a);
    } else {
      friction ? friction->accelerate(time, q, v, tau, a) : accelerations(time, q, v, tau, a);
      if (acting) power = scalar_product(acting, v, tree.nv) - damped(q, v, v);
    }
  }

  /// Return the power that the mechanism's dampers take from a motion w [W]. Their forces are those for the velocity v.
  SARRUS_NOINLINE T damped(const T* q, const T* v, const T* w) {
    T sum = T(0.0);
    for (int k = 0; k < tree.nv; ++k) sum += T(tree.template numbers<T>()(tree.passive[k].damping)) * v[k] * w[k];
    for (int k = 0; tree.has_nonlinear_forces && k < tree.nv; ++k)
      sum += nonlinear_damper(tree.passive[k].nonlinear, tree.template numbers<T>(), v[k]) * w[k];
    if (!tree.ties_links) return sum;
    const Arena::Scope scope(arena);
    const auto moving_at = [&](const T* velocity) {
      const Kinematics<T> k = Kinematics<T>::over(tree, arena.template take<T>(Kinematics<T>::size(tree)));
      kinematics(tree, arena, q, velocity, static_cast<const T*>(nullptr), k);
      return k;
    };
    const Kinematics<T> k = moving_at(v);
    return sum + damped_between_bodies(tree, k, v == w ? k : moving_at(w));
  }

  /// Return the work in the time h over the mean of the velocities before and after. It is that of impulses (nv), and of dampers with their forces for
  /// the motion `passed` (nv).
  T impulse_work(const T& h, const T* impulse, const T* passed, const T* q, const T* before, const T* after) {
    const Arena::Scope scope(arena);
    T *mean = arena.template take<T>(tree.nv), *velocity = arena.template take<T>(tree.nv);
    const T per_second = T(1.0) / select(h > T(0.0), h, T(1.0));
    for (int k = 0; k < tree.nv; ++k) mean[k] = T(0.5) * (before[k] + after[k]), velocity[k] = passed[k] * per_second;
    return scalar_product(impulse, mean, tree.nv) - h * damped(q, velocity, mean);
  }
  /// Add the work of a kick. Its forces are those of the last evaluation, at the configuration `q` and the velocity `before`.
  void add_kick(const T& h, const T* q, const T* before, const T* after) {
    const Arena::Scope scope(arena);
    T *impulse = arena.template take<T>(tree.nv), *passed = arena.template take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) impulse[k] = h * acting[k], passed[k] = h * before[k];
    work.supplied += impulse_work(h, impulse, passed, q, before, after);
  }

  /// Compute the rows that a function of the caller returns for q, with their c and gamma; or the rates of these rows.
  const T* pfaffian_values(const T* q, const T* v, bool rates = false) {
    if (tree.loops.pfaffian_values == 0) return nullptr;
    T* numbers = arena.template take<T>(tree.loops.pfaffian_values);
    if constexpr (std::is_same_v<T, double>)
      if (status == 0.0 && !plan.pfaffian(plan.self, q, v, rates, numbers)) status = caller_failed;
    return numbers;
  }

  /// Set the status if an element failed: motors cannot supply the required efforts, or a task controller has no solution.
  SARRUS_INLINE void take_status(const ElementCall<T>& e) {
    flag_contradiction(e.lacking);
    status = sarrus::most(status, e.status);
  }

  SARRUS_INLINE void flag_contradiction(const T& residual) {
    status = select(residual > T(tolerances::contradiction), most(status, T(inconsistent_constraints)), status);
  }

  /// Apply lambda and the corrective term as forces to the tree without loops.
  SARRUS_NOINLINE void correct(const LoopInput<T>& in, T* tau, T* a) {
    const LoopEquation<T> e = loop_equation(tree, arena, in);
    const int nv = tree.nv, rows = tree.loops.rows;
    T *phi = arena.template take<T>(rows), *target = arena.template take<T>(rows);
    const LoopSolution<T> solution = solve_tightly(e, arena, e.b);
    flag_contradiction(solution.error);
    ConstraintRows<T> out;
    out.residual = phi, out.target = target;
    constraint_rows(tree, arena, place(tree, arena, in.q, in.time, in.pfaffian_values), out, 0, tree.loops.constraints);
    add_motion_along_rows(tree, e.matrix.J, in.v, T(-1.0), target);
    if (acting && drives) add_drives(e.matrix.J, solution.x + nv, acting);
    for (int r = 0; r < rows; ++r) phi[r] = target[r] * T(plan.gains[0]) - phi[r] * T(plan.gains[1]) - solution.x[nv + r];
    add_constraint_forces(tree, e.matrix.J, phi, tau);
    if (tree.loops.rotor_rows > 0) return tied_dynamics(tree, arena, in.q, in.v, tau, a);
    aba(tree, arena, AbaInput<T>{in.q, in.v, tau}, a);
  }
};

/// Set the entries of J to zero in rows that time functions drive.
template <class T> void drop_driven_rows(const Tree& tree, const T* J) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; c.driven && k < c.columns * c.rows; ++k) const_cast<T*>(J)[c.entry + k] = T(0.0);
  }
}

/// Least motion, in the metric of M, that changes the rows by prescribed values. If `fixed_velocities` is not null, only the other velocities change.
template <class T> struct LeastMotion {
  const Tree& tree;
  LoopEquation<T> e;
  Factor<T> factor;
  Arena& arena;
  T* x;

  LeastMotion(const Tree& t, Arena& a, const T* q, const T& time, const T* pfaffian_values,
              const bool* fixed_velocities = nullptr, bool driven = true)
      : tree(t),
        e(metric_equation(t, a, q, free_weights(t, a, fixed_velocities), &time, pfaffian_values, fixed_velocities != nullptr)),
        arena(a) {
    if (!driven) drop_driven_rows(tree, e.matrix.J), drop_driven_rows(e.solved().tree, e.solved().J);
    factor = factorise_tightly(e, arena);
    x = arena.take<T>(tree.nv + e.matrix.rows);
  }
  /// Use an existing equation and its factor.
  LeastMotion(const Tree& t, Arena& a, const LoopEquation<T>& equation, const Factor<T>& given_factor)
      : tree(t), e(equation), factor(given_factor), arena(a), x(a.take<T>(t.nv + equation.matrix.rows)) {}
  const T* rows() const { return e.matrix.J; }
  const T* along(const T* change, double share) {
    for (int k = 0; k < tree.nv + e.matrix.rows; ++k) x[k] = T(0.0);
    for (int r = 0; r < tree.loops.rows; ++r) x[tree.nv + r] = change[r] * T(share);
    solve_once(e, arena, factor, x);
    return x;
  }

  /// Replace a force (nv) by the change of the velocities. X is T, or a packet of forces.
  template <class X> void by(X* force) {
    const Saddle<T>& matrix = e.solved();
    const Arena::Scope scope(arena);
    if constexpr (!std::is_same_v<T, X>)
      if (matrix.plan.fronts) return one_by_one(force);
    X *right_side = arena.take<X>(tree.nv + e.matrix.rows), *y = right_side;
    for (int k = 0; k < tree.nv + e.matrix.rows; ++k) right_side[k] = k < tree.nv ? force[k] : X(0.0);
    if (e.pieces) y = e.pieces->lift(tree, arena, right_side);
    solve(matrix.plan, factor, arena, y);
    const X* change = e.pieces ? e.pieces->lower(tree, arena, y) : y;
    std::copy(change, change + tree.nv, force);
  }

 private:
  /// Solve lane by lane, because a factor by fronts uses the lanes for the rows of one right-hand side.
  template <class X> void one_by_one(X* force) {
    T* force_of_lane = arena.take<T>(tree.nv);
    for (int l = 0; l < width_of<X>; ++l) {
      for (int k = 0; k < tree.nv; ++k) force_of_lane[k] = lane(force[k], l);
      by(force_of_lane);
      for (int k = 0; k < tree.nv; ++k) lane(force[k], l) = force_of_lane[k];
    }
  }
  /// Return the weights of metric_equation(): 0 for fixed velocities, 1 for the others.
  static const T* free_weights(const Tree& tree, Arena& arena, const bool* fixed_velocities) {
    if (!fixed_velocities) return nullptr;
    T* weight = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) weight[k] = T(fixed_velocities[k] ? 0.0 : 1.0);
    return weight;
  }
};

/// Return a measure of the distance from a singular position: the smallest pivot of the factor above rounding, relative to the diagonal entry of its
/// row. Pivots of dependent rows are rounding and not included, and neither are those of driven rows. (The remaining matrix of J M^-1 J^T is positive
/// semidefinite: it has no negative pivots, and the row of a zero pivot is zero.)
inline double weakest_row(System<double>& s, double time, const double* q) {
  const Arena::Scope scope(s.arena);
  const LeastMotion<double> motion(s.tree, s.arena, q, time, s.pfaffian_values(q, zeros<double>(s.arena, s.tree.nv)), nullptr,
                                   false);
  const Saddle<double>& matrix = motion.e.solved();
  const int rows = motion.e.pieces ? motion.e.pieces->pieces.compliant_row : matrix.rows;
  const double* scale = motion.e.pieces ? motion.e.pieces->scale : motion.e.scale;
  double weakest = 1.0;
  for (int k = 0; k < matrix.plan.unknowns; ++k) {
    const int row = matrix.plan.unknown[k] - matrix.tree.nv;
    if (row < 0 || row >= rows) continue;
    const double pivot = std::abs(1.0 / motion.factor.D_inverse[k]) / scale[row];
    if (pivot > 1e-10) weakest = std::min(weakest, pivot);
  }
  return weakest;
}

/// Values of all rows at one configuration, computed in one pass: phi, J, and c - J v.
template <class T> struct LoopRows {
  System<T>& s;
  const T& time;
  const T* pfaffian_values;
  T *phi, *J, *slip;

  LoopRows(System<T>& system, const T& now, const T* values) : s(system), time(now), pfaffian_values(values) {
    const Loops& loops = s.tree.loops;
    phi = s.arena.template take<T>(loops.rows), slip = s.arena.template take<T>(loops.rows);
    J = s.arena.template take<T>(loops.entries);
  }
  int size() const { return s.tree.loops.rows; }
  /// Return the squared norm of phi. Write phi to `residual`, and c to `slip`.
  T evaluate(const T* q, T* residual) {
    const Arena::Scope scope(s.arena);
    ConstraintRows<T> out;
    out.residual = residual, out.target = slip, out.J = J;
    constraint_rows(s.tree, s.arena, place(s.tree, s.arena, q, &time, pfaffian_values), out, 0, s.tree.loops.constraints);
    return squares(residual);
  }
  /// Subtract J v from slip, and return its squared norm.
  T subtract_motion(const T* v) {
    add_motion_along_rows(s.tree, J, v, T(-1.0), slip);
    return squares(slip);
  }
  /// Return the sum of the squares of x, each entry in the unit of its row.
  T squares(const T* x) const {
    T sum = T(0.0);
    for (int r = 0; r < size(); ++r) sum += square(x[r] / s.unit(s.plan.row_unit, r));
    return sum;
  }
};

/// Least motions for corrections: the one computed at the beginning of the step, if the system has one; otherwise a new one, computed at its first
/// use. If its factor is discarded for some lanes only, the other lanes keep it, so that no lane affects another one.
template <class T> struct Corrections {
  using Lanes = decltype(std::declval<T>() < std::declval<T>());
  static constexpr int most = 6;

  System<T>& s;
  const T& time;
  const T* pfaffian_values;
  const bool* fixed_velocities;  // velocities that must not change; null: none
  LeastMotion<T>* first = fixed_velocities ? nullptr : s.least;
  int oldest = 0, newest = 0;
  LeastMotion<T>* least[most] = {first};
  std::optional<LeastMotion<T>> made[most]{};
  Lanes uses[most]{};  // lanes whose older factor was discarded

  const T* along(const T* q, const T* rows, double share) {
    for (int k = oldest; k <= newest; ++k)
      if (!least[k]) least[k] = &made[k].emplace(s.tree, s.arena, q, time, pfaffian_values, fixed_velocities);
    const T* motion = least[oldest]->along(rows, share);
    if (oldest == newest) return motion;
    const int nv = s.tree.nv;
    T* all = s.arena.template take<T>(nv);
    std::copy(motion, motion + nv, all);
    for (int k = oldest + 1; k <= newest; ++k) {
      motion = least[k]->along(rows, share);
      for (int i = 0; i < nv; ++i) all[i] = select(uses[k], motion[i], all[i]);
    }
    return all;
  }
  /// Compute a new factor at the next use, in all lanes, or in some of them.
  void discard_factor() { oldest = newest = 0, least[0] = nullptr; }
  void discard_factor(const Lanes& lanes, bool in_all) {
    if (in_all || newest + 1 == most) return discard_factor();
    uses[++newest] = lanes, least[newest] = nullptr;
  }
};

template <class T, class M> void copy_where(const M& lanes, const T* from, T* to, int n) {
  for (int k = 0; k < n; ++k) to[k] = select(lanes, from[k], to[k]);
}

/// Close the positions. One factor serves all corrections: its relative error is of the order of the drift, and each correction leaves that fraction
/// of the residual.
template <class T> T close_positions(LoopRows<T>& rows, Corrections<T>& corrections, T residual, T* q) {
  const Tree& tree = rows.s.tree;
  T *moved = rows.s.arena.template take<T>(tree.nq), *phi_moved = rows.s.arena.template take<T>(rows.size());
  auto active = residual > T(square(tolerances::no_drift));
  for (int factors = 0; factors < 4 && any(active); ++factors) {
    for (int round = 0; round < 8 && any(active); ++round) {
      integrate(tree, q, corrections.along(q, rows.phi, -1.0), moved);
      for (int k = 0; width_of<T> > 1 && k < tree.nq; ++k)  // rows of finished lanes remain those at q
        moved[k] = select(active, moved[k], q[k]);
      const T now = rows.evaluate(moved, phi_moved);
      const auto improved = both(active, now < residual), worse = residual < now;
      copy_where(improved, moved, q, tree.nq), copy_where(improved, phi_moved, rows.phi, rows.size());
      active = both(both(improved, now > T(square(tolerances::no_drift))), now < residual * T(0.1));
      residual = select(improved, now, residual);
      if (any(worse)) rows.evaluate(q, rows.phi);
    }
    // the step was so long that the factor was inaccurate: factorise again
    active = residual > T(square(tolerances::nearly_closed));
    if (any(active)) corrections.discard_factor(active, !any(residual < T(square(tolerances::nearly_closed))));
  }
  return residual;
}

/// Project the velocities. Lanes whose velocities already satisfy the loops are skipped; this is frequent, because Runge-Kutta methods preserve
/// linear relations.
template <class T> void close_velocities(LoopRows<T>& rows, Corrections<T>& corrections, const T* q, T* v) {
  const int nv = rows.s.tree.nv;
  const T fine = T(square(tolerances::no_drift)) * (T(1.0) + rows.s.squares_of_velocities(v));
  T slips = rows.subtract_motion(v), *change = rows.s.arena.template take<T>(nv);
  auto active = slips > fine;
  for (int round = 0; round < 4 && any(active); ++round) {
    const T* motion = corrections.along(q, rows.slip, 1.0);
    for (int k = 0; k < nv; ++k) change[k] = select(active, motion[k], T(0.0)), v[k] += change[k];
    const T now = rows.subtract_motion(change);
    active = both(both(active, now > fine), now < slips * T(0.1));
    slips = now;
  }
}

/// Project q and v onto the loops by the least motion in the metric of M. With `fixed_velocities` (nv, or null), only the other velocities change. If
/// redundant rows are consistent only on closed loops, the factor of the beginning of the step is used, because its loops are closed: rows slightly
/// off the loops would allow no motion. Returns the squared residual.
template <class T>
SARRUS_NOINLINE T project(System<T>& s, const T& time, T* q, T* v, const bool* fixed_velocities = nullptr,
                          bool velocities = true) {
  if (s.tree.loops.rows == 0) return T(0.0);
  const Arena::Scope scope(s.arena);
  const T* pfaffian_values = s.pfaffian_values(q, v);
  LoopRows<T> rows(s, time, pfaffian_values);
  Corrections<T> corrections{s, time, pfaffian_values, fixed_velocities};
  const T residual = close_positions(rows, corrections, rows.evaluate(q, rows.phi), q);
  if (velocities) close_velocities(rows, corrections, q, v);
  return residual;
}

/// Project at the end of a step; set the status if loops remain open. Lanes with projected stages use the factor of the beginning of the step.
template <class T>
void close_step(System<T>& s, const T& time, const SimulationState<T>& x, const bool* fixed_velocities = nullptr,
                bool velocities = true) {
  const auto closes = s.closes > T(0.5);
  T residual;
  if (any(closes) && any(s.closes < T(0.5))) {
    const Arena::Scope scope(s.arena);
    const int nq = s.tree.nq, nv = s.tree.nv;
    T *q = s.arena.template take<T>(nq), *v = s.arena.template take<T>(nv);
    std::copy(x.q, x.q + nq, q), std::copy(x.v, x.v + nv, v);
    residual = project(s, time, q, v, fixed_velocities, velocities);
    LeastMotion<T>* start = std::exchange(s.least, nullptr);
    residual = select(closes, residual, project(s, time, x.q, x.v, fixed_velocities, velocities));
    s.least = start;
    copy_where(closes, q, x.q, nq), copy_where(closes, v, x.v, nv);
  } else {
    residual = project(s, time, x.q, x.v, fixed_velocities, velocities);
  }
  s.status = select(residual > T(square(tolerances::torn)), most(s.status, T(no_convergence)), s.status);
}

}  // namespace sarrus
