#include "symbolic.hpp"

#include <memory>

#include "../kernels/variant_run.hpp"
#include "../simulation/advance.hpp"
#include "operations.hpp"
#include "step.hpp"

namespace sarrus {

template <> constexpr bool is_symbolic<Symbolic> = true;

template <>
void System<Symbolic>::evaluate(const Symbolic& time, const Symbolic* q, const Symbolic* v, const Symbolic* z, Symbolic* a,
                                Symbolic* z_dot);
template <>
void System<Symbolic>::accelerations(const Symbolic& time, const Symbolic* q, const Symbolic* v, Symbolic* tau, Symbolic* a);
template <> void hold_at_rest(Arena& arena, int n, const Symbolic* W, const Symbolic* r, const Symbolic* resting,
                              const Symbolic& compliance, Symbolic* f);
template <> int most_changes<Symbolic>(int) { return 6; }
template <> void expect(const Symbolic& truth) { Symbolic::graph().assume((Symbolic(0.5) < truth).id); }
template <>
void DryFriction<Symbolic>::Columns::compute(DryFriction& f, const Symbolic& time, const Symbolic* q, const Symbolic* v,
                                             const Symbolic* J);

namespace {

using Numbers = std::vector<Symbolic>;

void append(Ids& ids, const Symbolic* x, int n) {
  for (int k = 0; k < n; ++k) ids.push_back(x[k].id);
}
Ids ids_of(const Symbolic* x, int n) {
  Ids ids;
  append(ids, x, n);
  return ids;
}
Numbers numbers_of(const Ids& ids) {
  Numbers all;
  for (const int id : ids) all.push_back(Symbolic::of(id));
  return all;
}

/// Decisions at the sample states within this scope; all paths are recorded outside of it.
class SamplesDecide {
 public:
  SamplesDecide() : before_(std::exchange(Symbolic::graph().takes_all_paths, false)) {}
  ~SamplesDecide() { Symbolic::graph().takes_all_paths = before_; }
  SamplesDecide(const SamplesDecide&) = delete;
  SamplesDecide& operator=(const SamplesDecide&) = delete;

 private:
  bool before_;
};

/// Tree and plan of a step, and the places of the numbers that differ between variants. Those of the first variant are in the arena.
class StepNumbers {
 public:
  StepNumbers(const SimulatedPlan& simulated, const StepOptions& options, Arena& arena)
      : simulated_(simulated), variant_(first_variant(*simulated.plan, arena)), rounded_(own_tree(), true) {
    if (variant_) {
      const VariantNumbers& numbers = *simulated.plan->variants;
      const char* block = reinterpret_cast<const char*>(&variant_->full_tree());
      for (int k = 0; k < numbers.differing; ++k) places[reinterpret_cast<const double*>(block + numbers.differs[k])] = k;
      add_copy(places, variant_->full_tree(), variant_->tree()), add_copy(places, variant_->tree(), tree());
      // the step applies these frictions; in the tree that is integrated they are zero
      for (int k = 0; k < simulated.plan->frictions; ++k)
        places.erase(&simulated.plan->friction[k].terms.of(variant_->tree()).friction);
    }
    for (std::size_t k = 0; k < options.varied.size(); ++k)
      places[&simulated.parameters[static_cast<std::size_t>(options.varied[k])]] = options.first_varied + static_cast<int>(k);
  }
  NumberPlaces places;
  const Tree& tree() const { return rounded_.tree(); }
  Plan plan() const {
    Plan plan = variant_ ? variant_->plan() : *simulated_.plan;
    plan.described = &tree(), plan.variants = nullptr;
    return plan;
  }

 private:
  static std::unique_ptr<VariantRun> first_variant(const Plan& plan, Arena& arena) {
    if (!plan.variants) return nullptr;
    auto variant = std::make_unique<VariantRun>(plan, arena);
    // as in lanes with different mechanisms: the flags of forces are those of all variants
    const_cast<Tree&>(variant->full_tree()).lanes = 1;
    variant->take(0);
    return variant;
  }
  const Tree& own_tree() const { return variant_ ? variant_->tree() : *simulated_.tree; }

  const SimulatedPlan& simulated_;
  std::unique_ptr<VariantRun> variant_;
  RoundedTree rounded_;
};

/// Values of a step that its evaluations use.
struct Around {
  const Tree* tree;
  const Plan* plan;
  const std::vector<double>* constants;  // parameters of the force elements; some may be inputs
  bool called;  // true: evaluations are a function, which is written once
  Ids tau;  // efforts

  /// Return the parameters: the constants, then value, rate and acceleration of each effort, which FeedforwardEffort reads.
  Numbers parameters(const Ids& efforts) const {
    Numbers all;
    for (const double& x : *constants) all.push_back(Symbolic::of(Symbolic::graph().number_at(&x)));
    for (const int id : efforts) all.push_back(Symbolic::of(id)), all.push_back(0.0), all.push_back(0.0);
    return all;
  }
};

/// Largest magnitude of the rows x, each in its unit.
Symbolic largest(const System<Symbolic>& s, const Symbolic* x) {
  Symbolic all = 0.0;
  for (int r = 0; r < s.tree.loops.rows; ++r) all = most(all, abs(x[r] / s.unit(s.plan.row_unit, r)));
  return all;
}

/// Return the bit of a kind in ForceElements::nonempty.
template <class E, std::size_t... k> constexpr unsigned bit_of(std::index_sequence<k...>) {
  return ((std::is_same_v<std::tuple_element_t<k, EveryKind<Elements>>, Elements<E>> ? 1U << k : 0U) | ...);
}

/// Project the state onto the loops by a fixed number of corrections with one factor, as project() does until the residual vanishes. Write the
/// residuals that remain.
void project(System<Symbolic>& s, const Symbolic& time, const SimulationState<Symbolic>& x, int corrections, bool velocities,
             Symbolic (&residual)[2]) {
  const Tree& tree = s.tree;
  const SamplesDecide scope;
  LoopRows<Symbolic> rows(s, time, nullptr);
  LeastMotion<Symbolic> least(tree, s.arena, x.q, time, nullptr);
  Symbolic* moved = s.arena.take<Symbolic>(tree.nq);
  rows.evaluate(x.q, rows.phi);
  for (int round = 0; round < corrections; ++round) {
    integrate(tree, x.q, least.along(rows.phi, -1.0), moved);
    std::copy(moved, moved + tree.nq, x.q);
    rows.evaluate(x.q, rows.phi);
  }
  residual[0] = largest(s, rows.phi);
  s.status = select(residual[0] > tolerance<Symbolic>(tolerances::torn, tolerances::torn_in_single),
                    most(s.status, Symbolic(no_convergence)), s.status);
  if (!velocities) return;
  rows.subtract_motion(x.v);
  for (int round = 0; round < corrections; ++round) {
    const Symbolic* change = least.along(rows.slip, 1.0);
    for (int k = 0; k < tree.nv; ++k) x.v[k] += change[k];
    rows.subtract_motion(change);
  }
  residual[1] = largest(s, rows.slip);
}

/// Explicit midpoint rule.
void midpoint_step(System<Symbolic>& s, const Symbolic& time, const Symbolic& h, const SimulationState<Symbolic>& x) {
  const int nq = s.tree.nq, nv = s.tree.nv, nz = s.plan.force_elements.nz;
  const auto take = [&](int n) { return s.arena.take<Symbolic>(n); };
  Symbolic *a = take(nv), *z_dot = take(nz), *u = take(nv), *q = take(nq), *v = take(nv), *z = take(nz);
  const Symbolic half = h * Symbolic(0.5);
  s.evaluate(time, x.q, x.v, x.z, a, z_dot);
  for (int k = 0; k < nv; ++k) u[k] = x.v[k] * half, v[k] = x.v[k] + a[k] * half;
  for (int k = 0; k < nz; ++k) z[k] = x.z[k] + z_dot[k] * half;
  integrate(s.tree, x.q, u, q);
  s.evaluate(time + half, q, v, z, a, z_dot);
  for (int k = 0; k < nv; ++k) u[k] = v[k] * h, x.v[k] += a[k] * h;
  for (int k = 0; k < nz; ++k) x.z[k] += z_dot[k] * h;
  integrate(s.tree, x.q, u, q);
  std::copy(q, q + nq, x.q);
}

}  // namespace

/// Evaluate forces on all paths, because contacts begin and end; accelerations by the decisions of the samples.
template <>
void System<Symbolic>::evaluate(const Symbolic& time, const Symbolic* q, const Symbolic* v, const Symbolic* z, Symbolic* a,
                                Symbolic* z_dot) {
  const Around& around = *static_cast<const Around*>(plan.self);
  const int nq = tree.nq, nv = tree.nv, nz = plan.force_elements.nz, held = plan.force_elements.held_size;
  // with dry friction, which changes accelerations, only the forces are a function
  const auto rates = [&](const Ids& in) {
    const Numbers all = numbers_of(in);
    const Symbolic* x = all.data() + 1;
    const Numbers parameters = around.parameters({in.begin() + 1 + nq + nv + nz + held, in.end()});
    const Arena::Scope scope(arena);
    System inner{*around.tree, arena, *around.plan, parameters.data()};
    inner.held_values = x + nq + nv + nz;
    Symbolic *tau = arena.take<Symbolic>(nv), *rate = arena.take<Symbolic>(nv + nz);
    for (int k = 0; k < nv + nz; ++k) rate[k] = 0.0;
    inner.forces(all[0], x, x + nq, x + nq + nv, tau, rate + nv);
    friction ? void(std::copy(tau, tau + nv, rate)) : inner.accelerations(all[0], x, x + nq, tau, rate);
    Ids results = ids_of(rate, nv + nz);
    results.push_back(inner.status.id);
    return results;
  };
  Ids in = {time.id};
  append(in, q, nq), append(in, v, nv), append(in, z, nz), append(in, held_values, held);
  in.insert(in.end(), around.tau.begin(), around.tau.end());
  Numbers out = numbers_of(around.called ? Symbolic::graph().call(friction ? "forces" : "rates", {in},
                                                                  [&](const std::vector<Ids>& x) { return rates(x[0]); })
                                         : rates(in));
  std::copy(out.begin() + nv, out.begin() + nv + nz, z_dot);
  status = most(status, out.back());
  friction ? friction->accelerate(time, q, v, out.data(), a) : void(std::copy(out.begin(), out.begin() + nv, a));
}

template <>
void System<Symbolic>::accelerations(const Symbolic& time, const Symbolic* q, const Symbolic* v, Symbolic* tau, Symbolic* a) {
  const int nq = tree.nq, nv = tree.nv;
  if (!friction) {
    const SamplesDecide scope;
    return plain_accelerations(time, q, v, tau, a);
  }
  Ids in = {time.id};
  append(in, q, nq), append(in, v, nv), append(in, tau, nv);
  const Numbers out = numbers_of(Symbolic::graph().call("accelerations", {in}, [&](const std::vector<Ids>& x) {
    Numbers all = numbers_of(x[0]), rate(static_cast<std::size_t>(nv), 0.0);
    const Arena::Scope scope(arena);
    System inner{tree, arena, plan, nullptr};
    inner.accelerations(all[0], &all[1], all.data() + 1 + nq, all.data() + 1 + nq + nv, rate.data());
    rate.push_back(inner.status);
    return ids_of(rate.data(), nv + 1);
  }));
  std::copy(out.begin(), out.begin() + nv, a);
  status = most(status, out.back());
}

template <> void hold_at_rest(Arena& arena, int n, const Symbolic* W, const Symbolic* r, const Symbolic* resting,
                              const Symbolic& compliance, Symbolic* f) {
  const std::vector<Ids> in = {ids_of(W, n * n), ids_of(r, n), ids_of(resting, n), {compliance.id}};
  const Numbers out = numbers_of(Symbolic::graph().call("held", in, [&](const std::vector<Ids>& x) {
    const Numbers inner_W = numbers_of(x[0]), inner_r = numbers_of(x[1]), rests = numbers_of(x[2]);
    Numbers force(static_cast<std::size_t>(n), 0.0);
    held_forces(arena, n, inner_W.data(), inner_r.data(), rests.data(), Symbolic::of(x[3][0]), force.data());
    return ids_of(force.data(), n);
  }));
  std::copy(out.begin(), out.end(), f);
}

template <>
void DryFriction<Symbolic>::Columns::compute(DryFriction& f, const Symbolic& time, const Symbolic* q, const Symbolic* v,
                                             const Symbolic*) {
  const int nq = f.tree_.nq;
  Ids in = {time.id};
  append(in, q, nq), append(in, v, nv);
  const Numbers out = numbers_of(Symbolic::graph().call("columns", {in}, [&](const std::vector<Ids>& x) {
    const Numbers all = numbers_of(x[0]);
    const Arena::Scope scope(f.s_.arena);
    const SamplesDecide samples_decide;
    System<Symbolic> inner{f.tree_, f.s_.arena, f.s_.plan, nullptr};
    DryFriction friction(inner);
    Columns columns = *this;
    columns.M_inverse_E = f.take(n * nv), columns.W = f.take(n * n);
    columns.evaluate(friction, all[0], &all[1], all.data() + 1 + nq, friction.rows(all[0], &all[1]));
    Ids results = ids_of(columns.M_inverse_E, n * nv);
    append(results, columns.W, n * n);
    return results;
  }));
  std::copy(out.begin(), out.begin() + n * nv, M_inverse_E), std::copy(out.begin() + n * nv, out.end(), W);
}

namespace {

std::string not_recorded(const ForceElements& elements, double step) {
  std::string text;
  elements.each([&](const auto& element) {
    using Kind = std::decay_t<decltype(element)>;
    if (Kind::unrecorded) text = std::string(Kind::name) + " " + Kind::unrecorded;
    if (const char* reason = element.unrecorded_in_steps(step)) text = std::string(Kind::name) + " " + reason;
    if (!element.contained()) return;
    if (const std::string inner = not_recorded(*element.contained(), step); !inner.empty()) text = inner;
  });
  return text;
}

}  // namespace

std::string not_recorded(const SimulatedPlan& simulated, double step) {
  if (simulated.plan->counts()) return "an element acts along a loop joint, whose revolutions a simulation counts";
  return not_recorded(simulated.plan->force_elements, step);
}

RecordedStep record(const SimulatedPlan& simulated, const StepOptions& options, const StepInputs& in) {
  Arena& arena = thread_arena();
  const Arena::Scope scope_of_variant(arena);
  const StepNumbers numbers(simulated, options, arena);
  const Tree& tree = numbers.tree();
  const WithPlaces scope_of_places(numbers.places);
  Plan plan = numbers.plan();
  plan.limits = 0, plan.records = plan.watches_rates = plan.measures = false;
  plan.controller = nullptr;
  // efforts are commands of motors, like those of controllers
  const auto& given = plan.force_elements.all<FeedforwardEffort>();
  std::vector<FeedforwardEffort> efforts(given.begin(), given.end());
  std::vector<Law> laws(in.tau.size());
  for (std::size_t k = 0; k < laws.size(); ++k) {
    laws[k].parameter_index = static_cast<int>(simulated.parameters.size() + 3 * k);
    FeedforwardEffort effort{};
    effort.joint.iv = static_cast<int>(k), effort.law = &laws[k];
    efforts.push_back(effort);
  }
  std::get<Elements<FeedforwardEffort>>(plan.force_elements.kinds) = {efforts.data(), static_cast<int>(efforts.size())};
  plan.force_elements.nonempty |= bit_of<FeedforwardEffort>(std::make_index_sequence<std::tuple_size_v<EveryKind<Elements>>>());

  const bool closes = tree.loops.rows > 0;
  // in single precision, velocities are projected, because the rounding errors of coordinates are too large to be divided by the step
  const bool by_displacement =
      closes && !options.midpoint && plan.method == Method::semi_implicit && !nonholonomic(tree) && !Symbolic::graph().single;
  const int nq = tree.nq, nv = tree.nv, integrated = nq + nv + plan.force_elements.nz;
  const int size = integrated + plan.force_elements.held_size;
  const bool brakes = plan.frictions > 0;
  Around around = {&tree, &plan, &simulated.parameters, brakes || options.midpoint || plan.method == Method::rk4, {}};
  plan.self = &around;

  Graph& graph = Symbolic::graph();
  /// Record a step of the method, with the projection onto the loops.
  const auto step = [&](System<Symbolic>& s, const Symbolic& time, const Symbolic& h, const SimulationState<Symbolic>& x,
                        Symbolic(&residual)[2]) {
    Symbolic *begun = arena.take<Symbolic>(nq), *u = arena.take<Symbolic>(nv);
    std::copy(x.q, x.q + nq, begun);
    if (options.midpoint)
      midpoint_step(s, time, h, x);
    else if (plan.method == Method::rk4)
      runge_kutta_step(s, time, h, x);
    else
      euler_step(s, time, h, x, plan.method == Method::semi_implicit);
    if (closes) project(s, time + h, x, options.corrections, !by_displacement, residual);
    if (!by_displacement) return;  // as in semi_implicit_step_on_loops()
    difference(tree, begun, x.q, u);
    for (int k = 0; k < nv; ++k) x.v[k] = u[k] / h;
  };
  /// Write the residuals of the loops.
  const auto find_residuals = [&](System<Symbolic>& s, const Symbolic& time, const SimulationState<Symbolic>& x,
                                  Symbolic(&residual)[2]) {
    LoopRows<Symbolic> rows(s, time, nullptr);
    rows.evaluate(x.q, rows.phi), rows.subtract_motion(x.v);
    residual[0] = largest(s, rows.phi), residual[1] = largest(s, rows.slip);
  };
  /// Record a part of a step with dry friction as a function. The directions of joints at rest are undecided until its first evaluation.
  const auto part = [&](System<Symbolic>& s, const Symbolic& time, const Symbolic& h, const SimulationState<Symbolic>& x) {
    Ids in = {time.id, h.id};
    append(in, x.q, size);
    s.friction->each_value([&](const Symbolic* values, int n) { append(in, values, n); });
    const bool undecided = s.friction->is_undecided();
    const Ids outer = around.tau;
    const Numbers out = numbers_of(graph.call(undecided ? "first_part" : "part", {in, outer}, [&](const std::vector<Ids>& ids) {
      Numbers all = numbers_of(ids[0]);
      around.tau = ids[1];
      const Numbers parameters = around.parameters(around.tau);
      const Arena::Scope scope(arena);
      System<Symbolic> inner{tree, arena, plan, parameters.data()};
      DryFriction<Symbolic> friction(inner);
      const Symbolic* values = all.data() + 2 + size;
      friction.each_value([&](Symbolic* to, int n) { std::copy(values, values + n, to), values += n; });
      friction.continue_with(undecided);
      inner.friction = &friction, inner.held_values = all.data() + 2 + integrated;
      Symbolic residual[2];
      step(inner, all[0], all[1], SimulationState<Symbolic>::of(tree, all.data() + 2), residual);
      Ids results = ids_of(all.data() + 2, integrated);
      friction.each_value([&](const Symbolic* from, int n) { append(results, from, n); });
      results.push_back(inner.status.id);
      return results;
    }));
    around.tau = outer;
    std::copy(out.begin(), out.begin() + integrated, x.q);
    const Symbolic* values = out.data() + integrated;
    s.friction->each_value([&](Symbolic* to, int n) { std::copy(values, values + n, to), values += n; });
    s.friction->continue_with(false);
    s.status = most(s.status, out.back());
  };
  /// Record one substep: time, q, v, z and efforts to the next q, v and z, residuals and the status.
  const auto substep = [&](const Ids& ids) {
    const Arena::Scope scope(arena);
    const Numbers all = numbers_of(ids);
    around.tau.assign(ids.begin() + 1 + size, ids.end());
    const Numbers parameters = around.parameters(around.tau);
    Numbers row(all.begin() + 1, all.begin() + 1 + size);
    row.push_back(0.0);  // z may be empty
    const auto x = SimulationState<Symbolic>::of(tree, row.data());
    const Symbolic time = all[0], h = options.step;
    System<Symbolic> s{tree, arena, plan, parameters.data()};
    s.held_values = row.data() + integrated;
    // periods are multiples of the step, so that samples are due at its beginning. Times have rounding errors, in single precision large ones
    if (s.samples()) s.sample(time, time + Symbolic(0.5 * options.step), row.data());
    Symbolic residual[2] = {0.0, 0.0};
    std::optional<DryFriction<Symbolic>> friction;
    if (brakes) {
      s.friction = &friction.emplace(s);
      step_with_friction(s, time, h, x, [&](const Symbolic& begin, const Symbolic& length) { part(s, begin, length, x); });
    } else {
      step(s, time, h, x, residual);
    }
    if (closes && (brakes || by_displacement)) find_residuals(s, time + h, x, residual);
    Ids results = ids_of(row.data(), size);
    for (const Symbolic& r : {residual[0], residual[1], s.status}) results.push_back(r.id);
    return results;
  };

  const bool before = std::exchange(graph.takes_all_paths, true), shared = std::exchange(graph.shares, closes);
  Ids state;
  for (const Ids* part : {&in.q, &in.v, &in.z}) state.insert(state.end(), part->begin(), part->end());
  Symbolic time = Symbolic::of(in.time[0]), residual[2] = {0.0, 0.0}, status = 0.0;
  for (int k = 0; k < options.substeps; ++k) {
    Ids arguments = {(time + Symbolic(k * options.step)).id};
    arguments.insert(arguments.end(), state.begin(), state.end());
    arguments.insert(arguments.end(), in.tau.begin(), in.tau.end());
    const Ids next = options.substeps > 1
                         ? graph.call("substep", {arguments}, [&](const std::vector<Ids>& x) { return substep(x[0]); })
                         : substep(arguments);
    std::copy(next.begin(), next.begin() + size, state.begin());
    for (int i = 0; i < 2; ++i) residual[i] = most(residual[i], Symbolic::of(next[static_cast<std::size_t>(size + i)]));
    status = most(status, Symbolic::of(next.back()));
  }
  graph.takes_all_paths = before, graph.shares = shared;
  return {{state.begin(), state.begin() + nq},
          {state.begin() + nq, state.begin() + nq + nv},
          {state.begin() + nq + nv, state.end()},
          {residual[0].id, residual[1].id},
          status.id};
}

}  // namespace sarrus
