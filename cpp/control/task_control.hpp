// Motor efforts for tasks at one state, with priorities and limits as in limited.hpp.
//
//   reads   q, v, time, gains and targets     writes  efforts of motors, rates of internal states
//   work    M a + h = B x + J^T lambda, J a = gamma, solved once for every unknown (responses.hpp); then rows of tasks in x (levels.hpp)
//   cost    a solution of the saddle equation per unknown; rows x unknowns^2
#pragma once

#include "../mechanism/status.hpp"
#include "levels.hpp"
#include "limits.hpp"

namespace sarrus {

/// True for scalars whose values the code may branch on, as limits require; false for scalars that record operations.
template <class T> constexpr bool has_lanes = std::is_same_v<T, double> || width_of<T> > 1;

template <class T> struct TaskController {
  const Tree& tree;
  Arena& arena;
  const TaskControl& c;
  const TaskReport<T>& report;
  // true: check the precision of the result, and that the state is on the loops; simulations need neither check
  const bool checks;

  T* take(int count) const { return arena.template take<T>(count); }

  /// Return the velocity after the rigid joints have locked: the nearest one, in the metric of kinetic energy, at which they are at rest. The law of a
  /// stiffer model must not react to vibrations of the springs that this model replaces by rigid joints.
  const T* locked(TaskState<T>& s, const Surroundings<T>& around) const {
    read_joints(s, around);
    const int nv = tree.nv, n = c.rigid;
    LoopInput<T> in{s.q, s.v, around.springs};
    in.time = s.time, in.pfaffian_values = around.pfaffian_values;
    TaskResponses<T> respond(tree, arena, in, false);
    T *B = take(n * nv), *A = take(n * nv), *Lambda = take(n * tree.loops.rows), *row = take(n * n), *rate = take(n);
    T *size = take(n), *scale = take(n), *v = take(nv);
    motor_columns(s, c.motors() - n, n, B);
    respond.answers(B, n, A, Lambda);
    for (int i = 0; i < n; ++i) scale[i] = inverse_or_none(sqrt(scalar_product(B + i * nv, A + i * nv, nv)));
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < n; ++k) row[i * n + k] = scalar_product(B + i * nv, A + k * nv, nv) * scale[i] * scale[k];
      rate[i] = scalar_product(B + i * nv, s.v, nv) * scale[i], size[i] = T(1.0);
    }
    Cascade<T> impulses(arena, n, n);
    impulses.add(row, rate, size, n, false);
    std::copy(s.v, s.v + nv, v);
    for (int k = 0; k < n; ++k) subtract_scaled(v, A + k * nv, impulses.x[k] * scale[k], nv);
    return v;
  }

  /// Write the generalised forces per unit of `count` motors, as columns of length nv.
  void motor_columns(const TaskState<T>& s, int first, int count, T* column) const {
    const int nv = tree.nv;
    std::fill(column, column + count * nv, T(0.0));
    for (int k = first; k < first + count; ++k, column += nv) {
      const int iv = c.motor[k].iv;
      if (iv < nv)
        column[iv] = T(1.0);
      else
        std::copy(s.loop.J + (iv - nv) * nv, s.loop.J + (iv - nv + 1) * nv, column);
    }
  }

  void read_joints(TaskState<T>& s, const Surroundings<T>& around) const {
    kinematics(tree, arena, s.q, s.v, static_cast<const T*>(nullptr), s.k);
    if (!c.drives_loop_joints) return;
    s.loop = {take(tree.loop_nq), take(tree.loop_nv), take(tree.loop_nv), take(tree.loop_nv * tree.nv)};
    const auto work = rnea(tree, arena, RneaInput<T>{s.q, s.v, zeros<T>(arena, tree.nv)}, take(tree.nv));
    LoopState<T> state = {s.q, s.v, s.time, around.pfaffian_values, nullptr, nullptr, work.link};
    place(tree, arena, work.poses(), work.columns, state);
    read_loop_joints(tree, arena, state, around.loop_q, s.loop);
  }

  /// Compute the accelerations and multipliers due to each unknown. contact_right: the J a that contacts require.
  TaskUnknowns<T> unknowns(const TaskState<T>& s, TaskResponses<T>& respond, T* contact_right) const {
    const int nv = tree.nv, n = c.unknowns(), rows = tree.loops.rows;
    TaskUnknowns<T> u = {n, nv, rows, take(n * nv), take(n * nv), take(n * rows), take(nv), take(rows), take(n)};
    respond(respond.b, respond.b + nv, u.a, u.lambda);
    motor_columns(s, 0, c.motors(), u.B);
    T* column = u.B + c.motors() * nv;
    for (const TaskContact& contact : c.contact) {
      contact.evaluate(s, c.contact, column, contact_right);
      column += contact.rows * nv, contact_right += contact.rows;
    }
    respond.answers(u.B, n, u.A, u.Lambda);
    return u;
  }

  /// Replace the cascade's solution x by a solution within the limits, in each lane in which x exceeds limits.
  SARRUS_NOINLINE void keep_limits(const TaskLevels<T>& levels, const LimitRows<T>& limit, T* x, T& damping, T& status) const {
    const int n = limit.n, limits = limit.row, rows = levels.row, motors = c.motors();
    const auto numbers = [&](int count) { return arena.template take<double>(count); };
    double *y = numbers(n), *lower = numbers(limits), *upper = numbers(limits);
    bool* soft = arena.template take<bool>(limits);
    for (int i = 0; i < limits; ++i) soft[i] = i >= motors && i < motors + static_cast<int>(c.motion.size());
    signed char* active = report.active ? report.active : arena.template take<signed char>(limits);
    std::fill(active, active + limits, static_cast<signed char>(0));
    for (int l = 0; l < width_of<T>; ++l) {
      const Arena::Scope scope(arena);
      const auto copy = [&](const T* from, int count) -> const double* {  // numbers of this lane
        if constexpr (std::is_same_v<T, double>) {
          return from;
        } else {
          double* to = numbers(count);
          for (int k = 0; k < count; ++k) to[k] = lane(from[k], l);
          return to;
        }
      };
      for (int k = 0; k < n; ++k) y[k] = lane(x[k], l);
      for (int i = 0; i < limits; ++i) lower[i] = lane(limit.lower[i], l), upper[i] = lane(limit.upper[i], l);
      LimitedRows p = {n, c.levels + 2, levels.level, nullptr, nullptr, nullptr, limits, copy(limit.C, limits * n)};
      p.lower = lower, p.upper = upper, p.terms = copy(limit.terms, limits), p.soft = soft;
      if (limited::within_exactly(p, y)) continue;
      p.set_factors(arena, limit.pair);
      if (limited::within(p, {lower, upper}, y)) continue;
      p.A = copy(levels.A, rows * n), p.b = copy(levels.b, rows), p.size = copy(levels.size, rows);
      p.set_diagonal(arena);
      if constexpr (std::is_same_v<T, double>)
        p.q = levels.cascade.q, p.directions = levels.cascade.directions, p.mark = levels.mark;
      else
        p.set_marks(arena);
      LimitedReport answer = {active};
      double damped = 0.0;
      const int flag = solve_limited(c.solve, arena, p, y, damped, answer);
      lane(damping, l) = damped;
      if (flag < 0) lane(status, l) = no_convergence;
      if (flag == 0 && report.conflict) *report.conflict = answer.misses_hard ? 2 : 1;
      for (int k = 0; k < n; ++k) lane(x[k], l) = y[k];
    }
  }

  /// Compute multipliers of constraints. They include those due to forces of other elements, because the controller measures them.
  void multipliers(const TaskState<T>& s, TaskResponses<T>& respond, const TaskUnknowns<T>& u, const T* x, const T* other_forces,
                   T* lambda) const {
    const int nv = u.nv, rows = u.rows;
    std::copy(u.lambda, u.lambda + rows, lambda);
    for (int k = 0; k < u.n; ++k) subtract_scaled(lambda, u.Lambda + k * rows, -x[k], rows);
    if (!other_forces || c.states == 0) return;
    T *a = take(nv), *added = take(rows), *force = take(nv);
    std::copy(other_forces, other_forces + nv, force);
    for (int r = 0; c.drives_loop_joints && r < tree.loop_nv; ++r)
      subtract_scaled(force, s.loop.J + r * nv, -other_forces[nv + r], nv);
    respond(force, nullptr, a, added);
    for (int r = 0; r < rows; ++r) lambda[r] += added[r];
  }

  /// Compute errors of forces: subtract the actual forces from `error`, which contains their targets on entry. lambda: multipliers; null if no task
  /// needs them.
  void force_errors(const T* x, const T* lambda, T* error, T* z_dot) const {
    for (const Task& task : c.task) {
      std::visit(
          [&](const auto& kind) {
            if constexpr (std::decay_t<decltype(kind)>::is_force)
              for (int i = 0; i < kind.rows(); ++i) {
                error[i] -= kind.value(x, lambda, i);
                if (kind.state >= 0) z_dot[kind.state + i] = error[i];
              }
            error += kind.rows();
          },
          task.kind);
    }
  }
};

template <class T>
SARRUS_NOINLINE T task_control(const Tree& tree, Arena& arena, const TaskControl& c, const T* parameter, const T* call,
                               const T& time, const T* q, const T* v, const T* z, const T* other_forces, T* motor, T* z_dot,
                               const Surroundings<T>& around, const TaskReport<T>& report) {
  const Arena::Scope scope(arena);
  const int nv = tree.nv, n = c.unknowns();
  const TaskController<T> controller = {tree, arena, c, report, report.x || report.tau};
  const auto take = [&](int count) { return arena.template take<T>(count); };
  TaskState<T> s = {tree,  arena,
                    q,     v,
                    &time, parameter,
                    call,  Kinematics<T>::over(tree, take(Kinematics<T>::size(tree))),
                    {},    around.loop_q != nullptr};
  if (c.rigid > 0) s.v = controller.locked(s, around);
  controller.read_joints(s, around);

  LoopInput<T> in{q, s.v, around.springs};
  in.time = &time, in.pfaffian_values = around.pfaffian_values;
  OffLoops<T> off;
  if (controller.checks) in.off = &off;
  TaskResponses<T> respond(tree, arena, in, controller.checks);
  T* contact_right = take(n - c.motors() + 1);
  const TaskUnknowns<T> u = controller.unknowns(s, respond, contact_right);
  TaskLevels<T> levels(s, c, u, respond);
  levels.write(contact_right, z);
  levels.solve();

  T status = select(off.fault > T(0.5), T(off_loops), T(0.0)), damping = levels.cascade.damping;
  status = select(levels.contradicts(), T(inconsistent_constraints), status);
  T *xi = levels.cascade.x, *x = report.x ? report.x : take(n);
  if (report.conflict) *report.conflict = 0;
  LimitRows<T> limit{};
  if constexpr (has_lanes<T>) {
    if (c.limited) limit = limit_rows(s, c, u), controller.keep_limits(levels, limit, xi, damping, status);
    if (report.conflict && lane(levels.contacts_contradict, 0) > 0.5) *report.conflict = 3;
  }
  for (int k = 0; k < n; ++k) x[k] = xi[k] * u.scale[k];
  for (int k = 0; k < c.motors(); ++k) {
    if (c.limited) {  // clamp the efforts, because they may exceed the bounds by rounding
      x[k] = select(x[k] > limit.upper[k], limit.upper[k], x[k]);
      x[k] = select(x[k] < limit.lower[k], limit.lower[k], x[k]);
    }
    if (k < c.motors() - c.rigid) motor[c.motor[k].iv] += x[k];
  }

  T* a = report.a ? report.a : take(nv);
  std::copy(u.a, u.a + nv, a);
  for (int k = 0; k < n; ++k) subtract_scaled(a, u.A + k * nv, -x[k], nv);
  // check the violation of the loops as in forward dynamics, and the number of correct digits; a failure ends a simulation
  const auto sound = status < T(0.5);
  const T singular = T(controller.checks ? no_answer : inconsistent_constraints);
  const T contradiction = tolerance<T>(tolerances::contradiction, tolerances::contradiction_in_single);
  status = select(both(sound, respond.residual_ratio(a, u.B, x, n) > contradiction), singular, status);
  const T singular_correction = tolerance<T>(respond.singular_correction, tolerances::unresolved_in_single);
  status = select(both(sound, respond.correction > singular_correction), singular, status);

  T* lambda = report.multipliers ? report.multipliers : take(u.rows);
  std::fill(lambda, lambda + u.rows, T(0.0));
  if (u.rows > 0 && (c.states > 0 || report.multipliers)) controller.multipliers(s, respond, u, x, other_forces, lambda);
  controller.force_errors(x, lambda, levels.error, z_dot);
  const int rows = levels.level[c.levels + 1] - levels.tasks_from;
  if (report.error) std::copy(levels.error, levels.error + rows, report.error);
  for (int r = 0; report.missed && r < rows; ++r) {
    const int row = levels.tasks_from + r;
    report.missed[r] = scalar_product(levels.A + row * n, xi, n) - levels.b[row];
  }
  if (report.damping) *report.damping = damping;
  if (report.tau) {
    std::fill(report.tau, report.tau + nv, T(0.0));
    for (int k = 0; k < c.motors() - c.rigid; ++k) subtract_scaled(report.tau, u.B + k * nv, -x[k], nv);
  }
  return status;
}

}  // namespace sarrus
