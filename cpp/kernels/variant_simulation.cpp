// Simulation of several variants in lanes, each with its own parameters.
#include "../simulation/advance.hpp"
#include "packets.hpp"
#include "shared.hpp"
#include "variant_run.hpp"

namespace sarrus {

SARRUS_SHARED(extern, OwnLanes)
SARRUS_SHARED_JOINTS(extern, OwnLanes)

void advance_variants(const Plan& all, const Clock& clock, const Sweep& sweep, std::int64_t begin, std::int64_t end) {
  using P = OwnLanes;
  constexpr int width = P::width;
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  const int units = VariantRun::units_of(all);
  VariantLanes<width> copy(*all.variants, RunNumbers::bytes(VariantRun::block(all), units), arena);
  const RunNumbers numbers(copy.tree(), units, copy.behind());
  Plan plan = all;
  numbers.give(plan, copy.tree());
  P *x = arena.take<P>(sweep.size), *parameter = arena.take<P>(plan.force_elements.parameters);
  for (std::int64_t i = begin; i < end; i += width) {
    const Arena::Scope inner(arena);
    const auto variant = [&](int l) { return sweep.variant[std::min(i + l, end - 1)]; };
    copy.take(width, [&](int l) { return plan.variant[variant(l)]; });
    numbers.take<P>(copy.tree(), plan, [&](int l) { return plan.units_of + variant(l) * units; });
    gather(sweep.x, sweep.size, sweep.size, i, end, x);
    gather(sweep.parameter, sweep.parameter_step, plan.force_elements.parameters, i, end, parameter);
    const P status = advance(numbers.tree(), arena, plan, parameter, clock.start, clock.step, clock.first, clock.count, x);
    for (std::int64_t l = i; l < std::min(i + width, end); ++l) sweep.status[l] = static_cast<signed char>(status.lanes[l - i]);
    scatter(x, sweep.size, i, end, sweep.x);
  }
}

}  // namespace sarrus
