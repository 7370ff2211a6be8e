// Simulation of several runs in lanes, at the instruction set level for which this file is compiled.
#include "contact_lanes.hpp"
#include "shared.hpp"

namespace sarrus {
namespace {

void advance_many(const Tree& tree, const Plan& plan, const Clock& clock, const Sweep& sweep, std::int64_t begin,
                  std::int64_t end) {
  if (!facts(plan.method).in_lanes() || (plan.method == Method::contact && !contacts_go_in_lanes(tree, plan)) ||
      (plan.variants && !plan.force_elements.beside_variants()))
    return advance_one_by_one(tree, plan, clock, sweep, begin, end);
  if (plan.variants) return advance_variants(plan, clock, sweep, begin, end);
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  using P = Packet<loop_lanes>;
  P *x = arena.take<P>(sweep.size), *parameter = arena.take<P>(plan.force_elements.parameters);
  for (std::int64_t i = begin; i < end; i += loop_lanes) {
    // half of the work of a contact step is done lane by lane, also for lanes without a run
    if (plan.method == Method::contact && 2 * (end - i) <= loop_lanes)
      return advance_one_by_one(tree, plan, clock, sweep, i, end);
    const Arena::Scope inner(arena);
    gather(sweep.x, sweep.size, sweep.size, i, end, x);
    gather(sweep.parameter, sweep.parameter_step, plan.force_elements.parameters, i, end, parameter);
    const P status = advance(tree, arena, plan, parameter, clock.start, clock.step, clock.first, clock.count, x);
    for (std::int64_t l = i; l < std::min<std::int64_t>(i + loop_lanes, end); ++l)
      sweep.status[l] = static_cast<signed char>(status.lanes[l - i]);
    scatter(x, sweep.size, i, end, sweep.x);
  }
}

}  // namespace

void add_simulation_batches(KernelTable& table) { table.simulation.advance_many = advance_many; }

}  // namespace sarrus
