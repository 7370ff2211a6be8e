// Instances of steps on dual numbers, and of derivatives of steps by matrices and by vector-Jacobian products, for several states in lanes.
#include "../simulation/midpoint_sensitivity.hpp"
#include "../simulation/step_matrices.hpp"
#include "../simulation/step_pullback.hpp"
#include "shared.hpp"
#include "step_change.hpp"

namespace sarrus {

Abreast step_with_change(const StepAtHand& step, const Abreast& closes, Abreast* x, Rates* change, const Rates* parameter_change,
                         Onto onto, Rates* start) {
  return step_with_rates<Abreast, Rates>(step.tree, step.arena, step.plan, step.parameter, step.time, step.h, closes, x, change,
                                         parameter_change, onto, start);
}

/// Return true for a step, unlike a projection alone, of the implicit midpoint rule.
static bool solves_middle(const StepAtHand& step) { return step.h != 0.0 && step.plan.method == Method::implicit_midpoint; }

bool steps_have_products(const Tree& tree, const Plan& plan, bool moves) { return steps_by_products(tree, plan, moves); }
bool step_forward_by_products(const StepAtHand& step, const Abreast* x, const Abreast* after, Abreast* S, int columns,
                              const int* parameter, Abreast& status) {
  const Arena::Scope scope(step.arena);
  if (solves_middle(step))
    return MidpointSensitivity<Abreast>(step.tree, step.arena, step.plan, step.parameter)
        .push(step.time, step.h, x, after, S, columns, parameter, status);
  StepMatrices<Abreast> matrices(step.tree, step.arena, step.plan, step.parameter);
  return matrices.push(step.time, step.h, x, after, S, columns, parameter, status);
}
bool step_back_by_products(const StepAtHand& step, const Abreast* x, const Abreast* after, Abreast* lambda, int directions,
                           const int* acting, int count, Abreast* by_parameter, Abreast& status) {
  const Arena::Scope scope(step.arena);
  if (solves_middle(step)) {
    MidpointSensitivity<Abreast> sensitivity(step.tree, step.arena, step.plan, step.parameter);
    return sensitivity.pays(directions + count) &&
           sensitivity.pull(step.time, step.h, x, after, lambda, acting, count, by_parameter, status);
  }
  StepPullback<Abreast> pullback(step.tree, step.arena, step.plan, step.parameter);
  return pullback.pull(step.time, step.h, x, after, lambda, {acting, count}, by_parameter, status);
}

}  // namespace sarrus
