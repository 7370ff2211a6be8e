// Simulation of one run, at the instruction set level for which this file is compiled.
#include "../simulation/advance.hpp"
#include "../simulation/dormand_prince.hpp"
#include "kernels.hpp"
#include "shared.hpp"
#include "variant_run.hpp"

namespace sarrus {
namespace {

double advance_one(const Tree& tree, const Plan& plan, const double* parameter, const Clock& clock, double* x) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  return advance(tree, arena, plan, parameter, clock.start, clock.step, clock.first, clock.count, x);
}

double try_step(const Tree& tree, const Plan& plan, const double* parameter, double time, double step, const double* tolerance,
                const double* x, double* guard, double* end_state, double* dense, SimulationKernels::TrialResult& result) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  System<double> s{tree, arena, plan, parameter};
  std::optional<DryFriction<double>> friction;
  if (plan.frictions > 0) s.friction = &friction.emplace(s);
  Trial<double> trial = {end_state, 0.0, dense, result.work};
  if (plan.limits > 0) s.demanded = result.demanded;
  if (plan.measures) s.acting = arena.take<double>(tree.nv), s.drives = rows_do_work(tree);
  s.held_values = x + s.integrated(), s.since = time;
  double* row = arena.take<double>(s.size());
  std::copy(x, x + s.size(), row);
  std::copy(x + s.integrated(), x + s.size(), end_state + s.integrated());
  guarded_step(s, time, row, Guard<double>(guard), [&] {
    s.kept = false;
    std::optional<LeastMotion<double>> start;
    s.least = nullptr, s.work = {};
    if (s.closes > 0.5) s.least = &start.emplace(tree, arena, x, time, s.pfaffian_values(x, x + tree.nq));
    if (s.friction) s.friction->begin(time, step, SimulationState<double>::of(tree, row));
    embedded_step(s, time, step, x, tolerance[0], tolerance[1], trial);
    const auto end = SimulationState<double>::of(tree, end_state);
    result.part = s.friction ? end_where_a_joint_stops(s, time, step, x, dense, end) : 1.0;
    if (result.part < 1.0 && s.acting) s.work.supplied = value(result.work, 1, result.part);
    if (plan.stabilisation == Stabilisation::projection) close_step(s, time + result.part * step, end);
    if (s.friction) s.friction->settle(time + result.part * step, result.part * step, step, end);
  });
  s.count_turns(time + result.part * step, end_state);
  result.error = trial.error, result.supplied = s.work.supplied;
  return s.status;
}

void between_steps(const Tree& tree, const Plan& plan, const double* parameter, double from, double step, double time,
                   const double* x, const double* guard, const double* dense, double* end_state) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  between(tree, plan.force_elements.nz, x, dense, (time - from) / step, arena.take<double>(tree.nv), end_state);
  System<double> s{tree, arena, plan, parameter};
  std::copy(x + s.integrated(), x + s.size(), end_state + s.integrated());
  std::optional<LeastMotion<double>> start;
  if (Guard<const double>(guard).closes > 0.5) s.least = &start.emplace(tree, arena, x, from, s.pfaffian_values(x, x + tree.nq));
  const auto state = SimulationState<double>::of(tree, end_state);
  if (plan.stabilisation == Stabilisation::projection) project(s, time, state.q, state.v);
  s.held_values = x + s.integrated(), s.since = from;
  s.count_turns(time, end_state);
}

double sample_controllers(const Tree& tree, const Plan& plan, const double* parameter, double time, double* x) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  System<double> s{tree, arena, plan, parameter};
  s.held_values = x + s.integrated(), s.since = time;
  if (s.samples()) s.sample(time, x);
  return s.status;
}

double forces_on(const Tree& tree, const Plan& plan, const double* parameter, double time, const double* x, double* tau,
                 double* loads) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  const auto state = SimulationState<const double>{x, x + tree.nq, x + tree.nq + tree.nv};
  System<double> s{tree, arena, plan, parameter};
  s.held_values = x + s.integrated(), s.since = time, s.has_springs = false;
  s.loads = loads;
  s.forces(time, state.q, state.v, state.z, tau, arena.take<double>(plan.force_elements.nz));
  return s.status;
}

double friction_in(const Tree& tree, const Plan& plan, const double* parameter, double time, double step, const double* x,
                   double* force) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  System<double> s{tree, arena, plan, parameter};
  DryFriction<double> friction(s);
  double *row = arena.take<double>(s.size()), *tau = arena.take<double>(tree.nv), *along = arena.take<double>(plan.frictions);
  std::copy(x, x + s.size(), row);
  s.held_values = x + s.integrated(), s.since = time;
  const auto state = SimulationState<double>::of(tree, row);
  s.forces(time, state.q, state.v, state.z, tau, arena.take<double>(plan.force_elements.nz));
  friction.forces(time, step, state, tau, along);
  std::fill(force, force + tree.nv + tree.loop_nv, 0.0);
  for (int k = 0; k < plan.frictions; ++k) force[plan.friction[k].iv] = along[k];
  return s.status;
}

void read_all_joints(const Tree& tree, const Plan& plan, double time, const double* x, double* q, double* v) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  System<double> s{tree, arena, plan, nullptr};
  s.held_values = x + s.integrated(), s.since = time;
  const AllJoints<double> all = s.joints(time, x, x + tree.nq);
  std::copy(all.q, all.q + tree.nq + tree.loop_nq, q), std::copy(all.v, all.v + all.nv, v);
}

double weakest_row_at(const Tree& tree, const Plan& plan, double time, const double* q) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  System<double> s{tree, arena, plan, nullptr};
  return weakest_row(s, time, q);
}

void row_units_at(const Tree& tree, double time, const double* q, const double* unit, double* rows) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  double* mobility = arena.take<double>(tree.nv);
  for (int k = 0; k < tree.nv; ++k) mobility[k] = unit[k] * unit[k];
  ConstraintRows<double> out;
  out.J = arena.take<double>(tree.loops.entries), out.scale = rows, out.mobility = mobility;
  const double* none = zeros<double>(arena, tree.loops.pfaffian_values);
  constraint_rows(tree, arena, place(tree, arena, q, &time, none), out, 0, tree.loops.constraints);
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    // divide by the number of columns, so that the tolerance does not depend on the number of joints in a loop
    const double columns = c.columns > 0 ? c.columns : 1;
    for (int r = c.row; r < c.row + c.rows; ++r) rows[r] = rows[r] > 0.0 ? std::sqrt(rows[r] / columns) : 1.0;
  }
}

double only_on_loops(const Tree& tree, const Plan& plan, double time, const double* q) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  System<double> s{tree, arena, plan, nullptr};
  return Redundancy<double>(s, time).only_on_loops(q);
}

}  // namespace

void advance_one_by_one(const Tree& tree, const Plan& plan, const Clock& clock, const Sweep& sweep, std::int64_t begin,
                        std::int64_t end) {
  const auto run = [&](const Tree& of, const Plan& by, std::int64_t i) {
    const double* parameter = sweep.parameter + i * sweep.parameter_step;
    sweep.status[i] = static_cast<signed char>(advance_one(of, by, parameter, clock, sweep.x + i * sweep.size));
  };
  if (!plan.variants) {
    for (std::int64_t i = begin; i < end; ++i) run(tree, plan, i);
    return;
  }
  const Arena::Scope scope(thread_arena());
  VariantRun one(plan, thread_arena());
  for (std::int64_t i = begin; i < end; ++i) one.take(sweep.variant[i]), run(one.tree(), one.plan(), i);
}

ContactStep& begin_lane(System<double>& s, double time, double h, const SimulationState<double>& x) {
  SolverLimit* limit = new (s.arena.take<SolverLimit>(1)) SolverLimit{s.plan.stops, s.plan.self};
  return *new (s.arena.take<ContactStep>(1)) ContactStep(s, time, h, x, GapTreatment::actual, *limit);
}
bool find_rows_of_lane(ContactStep& step, const Kinematics<double>& links) { return step.find_rows(links); }
const double* pressed_in_lane(ContactStep& step) { return step.pressed(); }
bool push_lane(ContactStep& step) { return step.push(); }
const CombinedRows& choose_rows_of_lane(ContactStep& step) { return step.choose_rows(); }
const double* solve_lane(ContactStep& step, double* fewer) { return step.solve_chosen(fewer); }
bool complete_lane(ContactStep& step, const double* x) { return step.complete(x); }
void note_lane(ContactStep& step) { step.note(); }
void contact_step_alone(System<double>& s, double time, double h, const SimulationState<double>& x) {
  const Arena::Scope scope(s.arena);
  std::optional<LeastMotion<double>> start;
  s.status = 0.0, s.work = {};
  if (s.projects() && s.closes > 0.5) s.least = &start.emplace(s.tree, s.arena, x.q, time, s.pfaffian_values(x.q, x.v));
  contact_step(s, time, h, x);
}

void add_simulation_kernels(KernelTable& table) {
  table.simulation = {advance_one, advance_one_by_one, try_step,       between_steps, sample_controllers, forces_on,
                      friction_in, read_all_joints,    weakest_row_at, row_units_at,  only_on_loops};
}

}  // namespace sarrus
