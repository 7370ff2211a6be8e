// What a run carries along, written behind its state so that every lane has its own. First what guards it where rows agree only on the loops
// (redundancy.hpp):
//
//   closes     1: its stages are closed; 0: they are not; negative: nobody has looked
//   alarm      how much of what they might constraint forces may work, squared, before somebody looks again
//
// Then, where a plan records, what the run is watched for:
//
//   [0]        the fastest rate of the forces that act, times the step: see rates.hpp
//   [1], [2]   which contacts and end stops pressed when that was looked for last, and at which step
//   [3]        shares of its energy that steps take from the fastest motion, added up, where nothing else damps it so: see rates.hpp
//   [4 + 2 i]  when limit i was left first [s]; infinite: never
//   [5 + 2 i]  by how much at most, with its sign: above the upper limit or below the lower one
//
// Efforts are those that controllers ask for, before they are kept within a limit.
#pragma once

#include <cmath>

#include "../loops/tolerances.hpp"
#include "../mechanism/tree.hpp"
#include "plan.hpp"

namespace sarrus {

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

constexpr int guard_size = 2, record_head = 4;
inline void begin_guard(double* guard) { guard[0] = -1.0, guard[1] = tolerances::work * tolerances::work; }

inline int carried_size(const Plan& plan) { return guard_size + (plan.records ? record_head + 2 * plan.limits : 0); }

inline void begin_carried(const Plan& plan, double* carried) {
  begin_guard(carried);
  double* record = carried + guard_size;
  for (int i = 0; i < carried_size(plan) - guard_size; ++i)
    record[i] = i == 2 ? -HUGE_VAL : i >= record_head && i % 2 == 0 ? HUGE_VAL : 0.0;
}

/// Of the quantities that are given (others: null).
template <class T> void note_limits(const Plan& plan, const T& time, const T* q, const T* v, const T* motor, T* record) {
  for (int i = 0; i < plan.limits; ++i) {
    const Limit& limit = plan.limit[i];
    const T* from = limit.of == Quantity::position ? q : limit.of == Quantity::velocity ? v : motor;
    if (!from) continue;
    const T x = from[limit.at], above = x - T(limit.upper), below = x - T(limit.lower);
    const T excess = select(above > T(0.0), above, select(below < T(0.0), below, T(0.0)));
    T &first = record[record_head + 2 * i], &largest = record[record_head + 1 + 2 * i];
    const auto more = abs(excess) > abs(largest);
    first = select(both(more, time < first), time, first);
    largest = select(more, excess, largest);
  }
}

}  // namespace sarrus
