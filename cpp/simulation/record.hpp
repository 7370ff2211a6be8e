// Data of a run that are stored after its state, so that every lane has its own: first the guard against redundant rows (redundancy.hpp), then the
// monitored quantities, if the plan records them. Guard and Record are views of consecutive values.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "../loops/tolerances.hpp"
#include "../mechanism/tree.hpp"
#include "plan.hpp"

namespace sarrus {

/// Return true if a constraint can do work, because it prescribes velocities along its rows that may be nonzero.
inline bool does_work(const Constraint& c) {
  return c.driven ||
         visit_constraint(c.kind, [](const auto& kind) { return std::is_same_v<std::decay_t<decltype(kind)>, Pfaffian>; });
}
inline bool rows_do_work(const Tree& tree) {
  return std::any_of(tree.loops.constraint, tree.loops.constraint + tree.loops.constraints, does_work);
}

/// Return true if some force may be stiff.
inline bool has_rates(const Tree& tree, const ForceElements& elements) {
  bool any = elements.have_rates() || tree.ties_links;
  for (int k = 0; k < tree.nv; ++k) any = any || tree.passive[k].damping != 0.0 || tree.passive[k].stiffness != 0.0;
  any = any || tree.has_nonlinear_forces;
  return any;
}

/// Return true if rates may be too fast for the steps. Mechanisms with rows from a function of the caller are not checked, because the check would
/// call that function more often.
inline bool rates_matter(const Tree& tree, const Plan& plan) {
  return facts(plan.method).stable < HUGE_VAL && tree.loops.pfaffian_values == 0 && has_rates(tree, plan.force_elements);
}

/// Guard of a run against redundant rows that are consistent only on closed loops (redundancy.hpp).
template <class T> struct Guard {
  static constexpr int size = 2;
  T& closes;  // 1: stages are projected onto the loops; 0: they are not; negative: not determined yet
  T& alarm;  // squared work ratio of constraint forces (System::watch) above which `closes` is determined again

  explicit Guard(T* at) : closes(at[0]), alarm(at[1]) {}
  void begin() { closes = T(-1.0), alarm = T(tolerances::work * tolerances::work); }
};

/// Monitored quantities of a run. Efforts are those commanded by controllers, before limits.
template <class T> struct Record {
  T* stiffness = nullptr;  // the largest rate of the applied forces, multiplied by the step (rates.hpp)
  T* energy_eaten =
      nullptr;  // sum over all steps of the energy fraction that a step dissipates in the fastest motion (rates.hpp)
  T *supplied = nullptr, *quadrature_error = nullptr;  // work [J]: see Work
  T* pressing = nullptr;  // signature of the contacts and end stops that pressed when rates were last computed
  T* looked_at = nullptr;  // index of the step in which they were computed
  T* left_at = nullptr;  // time at which each limit was first exceeded [s]; infinite: never
  T* excess = nullptr;  // largest excess: positive above the upper limit, negative below the lower one
  // Of rigid steps only. Maxima over all steps: J v - c and phi of loops at the end of the step; penetration [m]; relative residual of the equations
  // of motion; residuals of the cones and of their natural map (cone_residuals.hpp); work that contacts add in a step [J], which should be zero. Sums
  // over all steps: number of steps in which small gaps were treated as zero; work of contacts, stops and dry friction [J]
  T *kinematics = nullptr, *positions = nullptr, *penetration = nullptr, *momentum = nullptr, *primal = nullptr, *dual = nullptr,
    *complementarity = nullptr, *natural_map = nullptr, *work = nullptr, *as_touching = nullptr, *pushed = nullptr;
  T* linearly_implicit = nullptr;  // number of steps of method "rosenbrock" that were linearly implicit
  int limits = 0, cones = 0, stiff = 0;

  Record() = default;
  explicit Record(const Plan& plan)
      : limits(plan.limits), cones(facts(plan.method).rigid), stiff(plan.method == Method::rosenbrock) {}
  Record(const Plan& plan, T* at) : Record(plan) {
    if (plan.records) fields([&](const char*, T*& first, Of of, double) { first = at, at += size(of); });
  }

  enum class Of { run, limit, cones, stiff };
  int size(Of of) const { return of == Of::run ? 1 : of == Of::limit ? limits : of == Of::cones ? cones : stiff; }
  /// Call field(name, pointer to the first value, count, initial value) for each field, in the order of storage.
  template <class Field> void fields(Field&& field) {
    field("stiffness", stiffness, Of::run, 0.0);
    field("energy_eaten", energy_eaten, Of::run, 0.0);
    field("supplied", supplied, Of::run, 0.0);
    field("apart", quadrature_error, Of::run, 0.0);
    field("pressing", pressing, Of::run, 0.0);
    field("looked_at", looked_at, Of::run, -HUGE_VAL);
    field("left_at", left_at, Of::limit, HUGE_VAL);
    field("excess", excess, Of::limit, 0.0);
    field("kinematics", kinematics, Of::cones, 0.0);
    field("positions", positions, Of::cones, 0.0);
    field("penetration", penetration, Of::cones, 0.0);
    field("momentum", momentum, Of::cones, 0.0);
    field("primal", primal, Of::cones, 0.0);
    field("dual", dual, Of::cones, 0.0);
    field("complementarity", complementarity, Of::cones, 0.0);
    field("natural_map", natural_map, Of::cones, 0.0);
    field("work", work, Of::cones, 0.0);
    field("as_touching", as_touching, Of::cones, 0.0);
    field("pushed", pushed, Of::cones, 0.0);
    field("linearly_implicit", linearly_implicit, Of::stiff, 0.0);
  }
};

/// Work [J] of forces that neither store energy nor constrain motions: of controllers, loads, dampers, dry friction and time functions.
template <class T> struct Work {
  T supplied = T(0.0);  // work according to the quadrature of the method
  // Estimated error of `supplied`. In most methods it is the difference between `supplied` and the product of impulses and mean velocities. This
  // product is exact for linear dampers, including those that are too fast for the quadrature. In linearly implicit steps, it is the work due to
  // changes of the mass matrix and the loops within a step.
  T quadrature_error = T(0.0);
  T pushed = T(0.0);  // work of contacts, stops and dry friction in rigid steps

  void add(const Work& other) { supplied += other.supplied, quadrature_error += other.quadrature_error, pushed += other.pushed; }
  void note(const Record<T>& record) const {
    *record.supplied += supplied, *record.quadrature_error += quadrature_error;
    if (record.cones) *record.pushed += pushed;
  }
};

/// Return the number of values that are stored after the state of a run.
inline int carried_size(const Plan& plan) {
  int size = Guard<double>::size;
  Record<double> record(plan);
  if (plan.records) record.fields([&](const char*, double*, auto of, double) { size += record.size(of); });
  return size;
}

inline void begin_carried(const Plan& plan, double* carried) {
  Guard<double>(carried).begin();
  Record<double> record(plan, carried + Guard<double>::size);
  if (plan.records)
    record.fields([&](const char*, double* at, auto of, double begin) { std::fill(at, at + record.size(of), begin); });
}

/// Record by how much quantities exceed their limits; null quantities are skipped.
template <class T>
void note_limits(const Plan& plan, const T& time, const T* q, const T* v, const T* motor, const Record<T>& record) {
  for (int i = 0; i < plan.limits; ++i) {
    const Limit& limit = plan.limit[i];
    const T* from = limit.of == Quantity::position ? q : limit.of == Quantity::velocity ? v : motor;
    if (!from) continue;
    const T x = from[limit.at], above = x - T(limit.upper), below = x - T(limit.lower);
    const T excess = select(above > T(0.0), above, select(below < T(0.0), below, T(0.0)));
    T &first = record.left_at[i], &largest = record.excess[i];
    const auto more = abs(excess) > abs(largest);
    first = select(both(more, time < first), time, first);
    largest = select(more, excess, largest);
  }
}

}  // namespace sarrus
