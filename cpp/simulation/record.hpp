// What a run carries along, written behind its state so that every lane has its own: first what guards it where rows agree only on the loops
// (redundancy.hpp), then, where a plan records, what it is watched for. Each is a view of numbers that stand one after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "../loops/tolerances.hpp"
#include "../mechanism/tree.hpp"
#include "plan.hpp"

namespace sarrus {

/// True where the velocity along a constraint's rows need not be zero, so that they do work.
inline bool does_work(const Constraint& c) {
  return c.driven ||
         visit_constraint(c.kind, [](const auto& kind) { return std::is_same_v<std::decay_t<decltype(kind)>, Pfaffian>; });
}
inline bool rows_do_work(const Tree& tree) {
  return std::any_of(tree.loops.constraint, tree.loops.constraint + tree.loops.constraints, does_work);
}

/// Whether any force can be stiff at all.
inline bool has_rates(const Tree& tree, const ForceElements& elements) {
  bool any = elements.have_rates() || tree.ties_links;
  for (int k = 0; k < tree.nv; ++k) any = any || tree.passive[k].damping != 0.0 || tree.passive[k].stiffness != 0.0;
  return any;
}

/// Whether rates can be too fast for the steps. Rows that ask a function of the caller would be asked more often, so theirs are not looked for.
inline bool rates_matter(const Tree& tree, const Plan& plan) {
  return facts(plan.method).stable < HUGE_VAL && tree.loops.pfaffian_values == 0 && has_rates(tree, plan.force_elements);
}

/// What guards a run where rows agree only on the loops.
template <class T> struct Guard {
  static constexpr int size = 2;
  T& closes;  // 1: its stages are closed; 0: they are not; negative: nobody has looked
  T& alarm;  // how much of what they might constraint forces may work, squared, before somebody looks again

  explicit Guard(T* at) : closes(at[0]), alarm(at[1]) {}
  void begin() { closes = T(-1.0), alarm = T(tolerances::work * tolerances::work); }
};

/// What a run is watched for. Efforts are those that controllers ask for, before they are kept within a limit.
template <class T> struct Record {
  T* stiffness = nullptr;  // the fastest rate of the forces that act, times the step: see rates.hpp
  T* energy_eaten =
      nullptr;  // shares that steps take from the energy of the fastest motion, added up, where nothing else damps it so
  T *supplied = nullptr, *apart = nullptr;  // work [J]: see Work
  T *pressing = nullptr,
    *looked_at = nullptr;  // which contacts and end stops pressed when rates were looked for last, and at which step
  T* left_at = nullptr;  // when each limit was left first [s]; infinite: never
  T* excess = nullptr;  // by how much at most, with its sign: above the upper limit or below the lower one
  // of rigid steps, the largest of all: J v - c and phi of loops, as it is left; how deep something was sunk in [m]; what is left of the equations
  // of motion, of 1; of the cones (cone_residuals.hpp) and their natural map; the work of contacts in a step [J], which is to be none;
  // how many steps were found only with what nearly touches as touching; and the work of contacts, stops and dry friction in all steps [J]
  T *kinematics = nullptr, *positions = nullptr, *penetration = nullptr, *momentum = nullptr, *primal = nullptr, *dual = nullptr,
    *complementarity = nullptr, *natural_map = nullptr, *work = nullptr, *as_touching = nullptr, *pushed = nullptr;
  T* linearly_implicit = nullptr;  // how many of Rosenbrock's steps were
  int limits = 0, cones = 0, stiff = 0;

  Record() = default;
  explicit Record(const Plan& plan)
      : limits(plan.limits), cones(facts(plan.method).rigid), stiff(plan.method == Method::rosenbrock) {}
  Record(const Plan& plan, T* at) : Record(plan) {
    if (plan.records) fields([&](const char*, T*& first, Of of, double) { first = at, at += size(of); });
  }

  enum class Of { run, limit, cones, stiff };
  int size(Of of) const { return of == Of::run ? 1 : of == Of::limit ? limits : of == Of::cones ? cones : stiff; }
  /// field(name, its first number, of what there is one, with what a run begins), in the order in which they stand.
  template <class Field> void fields(Field&& field) {
    field("stiffness", stiffness, Of::run, 0.0);
    field("energy_eaten", energy_eaten, Of::run, 0.0);
    field("supplied", supplied, Of::run, 0.0);
    field("apart", apart, Of::run, 0.0);
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

/// Work [J] of what neither stores energy nor holds: controllers, loads, dampers, dry friction, laws of time.
template <class T> struct Work {
  T supplied = T(0.0);  // by the quadrature of the method
  // How far that may be off: impulses times mean velocities less that, which is exact for linear dampers that the quadrature does not resolve; of linearly
  // implicit steps, what forces do by how the mass matrix and the loops change within a step.
  T apart = T(0.0);
  T pushed = T(0.0);  // of contacts, stops and dry friction in rigid steps

  void add(const Work& other) { supplied += other.supplied, apart += other.apart, pushed += other.pushed; }
  void note(const Record<T>& record) const {
    *record.supplied += supplied, *record.apart += apart;
    if (record.cones) *record.pushed += pushed;
  }
};

/// How many numbers stand behind a state.
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

/// Of the quantities that are given (others: null).
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
