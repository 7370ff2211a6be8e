// Steps on numbers that carry their rates, of as many states as a packet holds.
#include "../simulation/step_rates.hpp"
#include "shared.hpp"
#include "step_change.hpp"

namespace sarrus {

Abreast step_with_change(const StepAtHand& step, const Abreast& closes, Abreast* x, Rates* change, const Rates* parameter_change,
                         Onto onto, Rates* start) {
  return step_with_rates<Abreast, Rates>(step.tree, step.arena, step.plan, step.parameter, step.time, step.h, closes, x, change,
                                         parameter_change, onto, start);
}

}  // namespace sarrus
