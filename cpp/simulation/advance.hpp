// Fixed steps of all methods: functions for a single step and for a sequence of steps.
#pragma once

#include <cstdint>

#include "contact_step.hpp"
#include "friction.hpp"
#include "implicit_midpoint.hpp"
#include "independent.hpp"
#include "rates.hpp"
#include "redundancy.hpp"
#include "rosenbrock.hpp"

namespace sarrus {

/// Return true if some constraint row is nonholonomic: it restricts velocities only, so a projection of positions cannot satisfy it.
inline bool nonholonomic(const Tree& tree) {
  for (int i = 0; i < tree.loops.constraints; ++i)
    if (!holonomic(tree.loops.constraint[i])) return true;
  return false;
}

/// Take a step, close the loops at its end, and set v to displacement / h (SHAKE: Ryckaert, Ciccotti and Berendsen 1977). This v satisfies the loops
/// to the order of h. v is not projected exactly, because that would add or remove energy in every step. An exception are mechanisms whose redundant
/// rows are consistent only on closed loops (redundancy.hpp): there v must be projected.
template <class T> void semi_implicit_step_on_loops(System<T>& s, const T& time, const T& h, const SimulationState<T>& x) {
  const Tree& tree = s.tree;
  T *before = s.arena.template take<T>(tree.nq), *u = s.arena.template take<T>(tree.nv);
  for (int k = 0; k < tree.nq; ++k) before[k] = x.q[k];
  euler_step(s, time, h, x, true);
  close_step(s, T(time + h), x, nullptr, false);
  difference(tree, before, x.q, u);
  for (int k = 0; k < tree.nv; ++k) u[k] = u[k] / h;
  const auto by_displacement = s.closes < T(0.5);
  if (any(s.closes > T(0.5))) close_step(s, T(time + h), x);
  copy_where(by_displacement, u, x.v, tree.nv);
}

/// Return true if dry friction keeps a joint at rest. Then the linearly implicit step is not used, because it would move that joint.
template <class T> bool holds_a_joint(const System<T>& s) {
  if constexpr (carries_rates<T>) return false;
  return s.friction && s.friction->holds();
}

/// Take a step of the plan's method, without the check of redundant rows (redundancy.hpp).
template <class T> void step_once(System<T>& s, const T& time, const T& h, const SimulationState<T>& x) {
  std::optional<LeastMotion<T>> start;
  s.least = nullptr, s.work = {};
  const Step step = facts(s.plan.method).step;
  const bool implicit = step == Step::implicit_midpoint || (step == Step::rosenbrock && holds_a_joint(s));
  std::optional<FloatingGroups<T>> groups;  // set only if the method conserves the momenta of floating groups
  Force<T>* momenta = nullptr;
  if (s.projects() && implicit && groups.emplace(s.tree, s.arena).count > 0) {
    momenta = s.arena.template take<Force<T>>(groups->count), s.impulses = s.arena.template take<Force<T>>(groups->count);
    groups->momenta(x.q, x.v, momenta);
  }
  if (s.projects() && (any(s.closes > T(0.5)) || implicit))
    s.least = &start.emplace(s.tree, s.arena, x.q, time, s.pfaffian_values(x.q, x.v));
  const bool kicks = step == Step::euler || step == Step::semi_implicit;
  const bool by_displacement = step == Step::semi_implicit && s.projects() && !nonholonomic(s.tree);
  T* begun = s.acting && kicks ? s.arena.template take<T>(s.size()) : nullptr;
  if (begun) std::copy(x.q, x.q + s.tree.nq + s.tree.nv, begun);  // q and v are contiguous
  switch (step) {
    case Step::euler: euler_step(s, time, h, x, false); break;
    case Step::semi_implicit:
      by_displacement ? semi_implicit_step_on_loops(s, time, h, x) : euler_step(s, time, h, x, true);
      break;
    case Step::runge_kutta: runge_kutta_step(s, time, h, x); break;
    case Step::implicit_midpoint:
    case Step::rosenbrock:
      if constexpr (std::is_same_v<T, double> || carries_rates<T>)
        if (implicit) s.projects() ? implicit_midpoint_on_loops(s, time, h, x) : void(implicit_midpoint_step(s, time, h, x));
      if constexpr (std::is_same_v<T, double>)
        if (!implicit) rosenbrock_step(s, time, h, x);
      break;
    case Step::independent:
      if constexpr (std::is_same_v<T, double>) independent_step(s, time, h, x);
      break;
    case Step::contact:
      if constexpr (std::is_same_v<T, double>) contact_step(s, time, h, x);
      if constexpr (std::is_same_v<T, Packet<loop_lanes>>) contact_step_in_lanes(s, lane(time, 0), lane(h, 0), x);
      break;
  }
  if (s.projects() && !by_displacement && !facts(s.plan.method).rigid) close_step(s, T(time + h), x);
  if (begun) s.add_kick(h, begun, begun + s.tree.nq, x.v);
  if (!momenta) return;
  for (int g = 0; g < groups->count; ++g) momenta[g] += s.impulses[g];
  // conservation of momentum changes only the motion of the bases, which does not affect the loops
  groups->move_bases(momenta, x.q, x.v);
  s.impulses = nullptr;
}

/// Record by how much the coordinates and velocities of a state exceed their limits.
template <class T> void record_state_limits(System<T>& s, const T& time, const SimulationState<T>& x, const Record<T>& record) {
  const Arena::Scope scope(s.arena);
  AllJoints<T> all = {x.q, x.v, nullptr, s.tree.nv};
  if (s.plan.watches_loop_joints) all = s.joints(time, x.q, x.v);
  note_limits(s.plan, time, all.q, all.v, static_cast<const T*>(nullptr), record);
}

/// Largest product of step length and fastest rate of the forces (rates.hpp) at which the stages still integrate the work of dampers accurately.
constexpr double resolved_by_quadrature = 0.3;

/// Take `count` steps of length h from time + first h. `row`: (q, v, z, sampled values), then the run's monitored data (record.hpp). Returns the
/// status.
template <class T>
T advance(const Tree& tree, Arena& arena, const Plan& plan, const T* parameter, double time, double h, std::int64_t first,
          std::int64_t count, T* row) {
  System<T> s{tree, arena, plan, parameter};
  const auto x = SimulationState<T>::of(tree, row);
  T* carried = row + s.size();
  const Record<T> record(plan, carried + Guard<T>::size);
  s.held_values = row + s.integrated(), s.since = T(time + static_cast<double>(first) * h);
  if (plan.records && (facts(plan.method).rigid || plan.method == Method::rosenbrock)) s.record = &record;
  if (plan.measures) s.acting = arena.template take<T>(tree.nv), s.drives = rows_do_work(tree);
  std::optional<DryFriction<T>> friction;
  if (plan.frictions > 0 && !facts(plan.method).rigid) s.friction = &friction.emplace(s);
  if (s.samples()) s.sample(time + static_cast<double>(first) * h, row);
  if (plan.limits > 0) {
    s.demanded = arena.template take<T>(tree.nv + tree.loop_nv);
    record_state_limits(s, T(time + static_cast<double>(first) * h), x, record);
  }
  for (std::int64_t k = first; k < first + count; ++k) {
    const double begin = time + static_cast<double>(k) * h, end = time + static_cast<double>(k + 1) * h;
    s.fast = s.acting && (k == 0 || any(*record.stiffness > T(resolved_by_quadrature)));
    int pieces = 0;  // number of parts into which samples have divided the current step so far
    for (double from = begin, to = end;; from = to) {
      const Arena::Scope scope(arena);
      const T now = T(from);
      T step = T(h);
      if (s.samples()) {  // a step ends at each sample that is due
        const double due = next_sample(plan.force_elements, s.held_values);
        to = due < end - one_instant(plan.force_elements) ? due : end;
        if (from != begin || to != end) step = T(to - from);
      }
      guarded_step(s, now, row, Guard<T>(carried), [&] {
        s.kept = false;
        step_with_friction(s, now, step, x,
                           [&](const T& begin_of_piece, const T& length) { step_once(s, begin_of_piece, length, x); });
      });
      if (s.acting) s.work.note(record);
      s.count_turns(T(to), row);
      if (s.samples()) s.sample(to, row);
      if constexpr (std::is_same_v<T, double>)
        if (s.status != 0.0) return s.status;  // after a failure, all later states are invalid
      if (plan.limits > 0) {
        note_limits(plan, now, static_cast<const T*>(nullptr), static_cast<const T*>(nullptr), s.demanded, record);
        record_state_limits(s, T(to), x, record);
      }
      if (to == end) break;
      if (++pieces % 64 == 0 && plan.stops && plan.stops(plan.self)) return s.status = T(interrupted);
    }
    if (plan.watches_rates && plan.records) note_rates(s, k, T(end), T(h), x, record);
  }
  return s.status;
}

}  // namespace sarrus
