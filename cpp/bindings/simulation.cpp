// Simulations for Python, in segments of a run. The GIL is held only while a Python function is called.
#include "simulation.hpp"

#include <pybind11/stl.h>

#include <atomic>
#include <thread>
#include <tuple>

#include "../elements/list.hpp"
#include "../kernels/state_functions.hpp"
#include "../kernels/variant_run.hpp"
#include "../mechanism/variants.hpp"
#include "../recording/step.hpp"
#include "../simulation/contact_history.hpp"
#include "../simulation/friction.hpp"
#include "../simulation/run.hpp"
#include "../simulation/through_time.hpp"
#include "../simulation/timing.hpp"
#include "force_elements.hpp"
#include "gil.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Which = py::array_t<std::int64_t, py::array::c_style | py::array::forcecast>;

Numbers copy_of(const double* from, Count n) {
  Numbers x(n);
  std::copy(from, from + n, x.mutable_data());
  return x;
}
Numbers copy_of(const std::vector<double>& x) { return copy_of(x.data(), static_cast<Count>(x.size())); }

/// Return the times of the initial state and of stored samples; the last time is exactly the end time, without rounding.
Numbers times_of(const Schedule& s) {
  Numbers times(s.samples() + 1);
  for (Count k = 0; k <= s.samples(); ++k)
    times.mutable_data()[k] = s.clock.start + static_cast<double>(std::min(k * s.every, s.steps())) * s.clock.step;
  return times;
}

py::object to_python(double x) { return py::float_(x); }
py::object to_python(Count x) { return py::int_(x); }
py::object to_python(const std::vector<double>& x) { return copy_of(x); }
py::object to_python(const Run::Shown& shown) { return py::make_tuple(shown.time, copy_of(shown.x)); }

template <class X> void from_python(const py::handle& h, X& x) { x = h.cast<X>(); }
void from_python(const py::handle& h, std::vector<double>& x) {
  const auto numbers = h.cast<Numbers>();
  x.assign(numbers.data(), numbers.data() + numbers.size());
}
void from_python(const py::handle& h, Run::Shown& shown) {
  const auto both = h.cast<py::tuple>();
  from_python(both[0], shown.time), from_python(both[1], shown.x);
}

/// Return the index of the method or stabilisation with this name.
template <class Facts, std::size_t n> int named(const Facts (&all)[n], const std::string& name) {
  for (std::size_t k = 0; k < n; ++k)
    if (name == all[k].name) return static_cast<int>(k);
  throw py::value_error("no method or stabilisation is named '" + name + "'");
}

/// Check if a signal ends the simulation.
class Interrupts {
 public:
  bool pending() { return ++steps_ % 32 == 0 && now(); }

  bool now() {
    if (!signals_.raised()) return false;
    const WithGil gil;
    // after Ctrl-C the simulation ends and returns its results so far; exceptions of other signal handlers are raised
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_Clear();
    return true;
  }

 private:
  unsigned steps_ = 0;
  Signals signals_;
};

class PySimulation {
  void check(Count numbers) const {
    if (numbers != size()) throw std::length_error("simulation: wrong sizes");
  }

  /// Call a Python function; return false if it raised.
  template <class Call> bool call_back(Call&& call) {
    const WithGil gil;
    try {
      call();
      return true;
    } catch (py::error_already_set& e) {
      e.restore();
    }
    failed_ = true;
    return false;
  }

  /// Add the constant load, and call the controller. It returns an array (2, nv): the efforts of the motors, and other generalised forces.
  static bool call_controller(void* self, double time, const double* q, const double* v, double* motor, double* tau) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    for (std::size_t k = 0; k < s.load_.size(); ++k) tau[k] += s.load_[k];
    return s.controller_.is_none() || s.call_back([&] {
      const int nv = s.tree_.nv;
      const auto both =
          py::cast<Numbers>(call_python(s.controller_, py::make_tuple(time, copy_of(q, s.tree_.nq), copy_of(v, nv))));
      for (int k = 0; k < nv; ++k) motor[k] += both.data()[k], tau[k] += both.data()[nv + k];
    });
  }

  /// Call a digital controller, which returns efforts (nv) of motors.
  static bool call_sampled(void* self, int sampling, double time, const double* q, const double* v, double* motor) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    return s.call_back([&] {
      const int nv = s.tree_.nv;
      const auto efforts =
          py::cast<Numbers>(call_python(s.sampled_[sampling], py::make_tuple(time, copy_of(q, s.tree_.nq), copy_of(v, nv))));
      for (int k = 0; k < nv; ++k) motor[k] += efforts.data()[k];
    });
  }

  static bool call_pfaffian(void* self, const double* q, const double* v, bool rates, double* numbers) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    return s.call_back([&] {
      const auto values =
          py::cast<Numbers>(call_python(s.pfaffian_, py::make_tuple(copy_of(q, s.tree_.nq), copy_of(v, s.tree_.nv), rates)));
      std::copy(values.data(), values.data() + values.size(), numbers);
    });
  }

  /// Check for signals. May be called from any thread, but only the thread that called the simulation receives signals.
  static bool check_signals(void* self) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    if (std::this_thread::get_id() == s.caller_ && s.interrupts_.now()) s.stopped_ = true;
    return s.stopped_;
  }

  /// Return the value of an event's function of (time, q, v, other states); NaN if this function, or an earlier one, raised an exception.
  double event_value(int event, double time, const double* x) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (failed_) return value;
    call_back([&] {
      const int moving = tree_.nq + tree_.nv;
      value = py::cast<double>(call_python(
          event_functions_[event],
          py::make_tuple(time, copy_of(x, tree_.nq), copy_of(x + tree_.nq, tree_.nv), copy_of(x + moving, size() - moving))));
    });
    return value;
  }

  /// Compute the units of velocities (nv + loop nv), of constraint rows at q, and of internal states z. The unit of an effort is the unit of power
  /// divided by that of the velocity.
  void set_units(const Tree& t, const double* q, const double* velocity, double power, double* unit) const {
    const int velocities = t.nv + t.loop_nv;
    std::copy_n(velocity, velocities, unit);
    if (t.loops.rows > 0) simulation_.kernels.row_units(t, 0.0, q, unit, unit + velocities);
    double* z = unit + velocities + t.loops.rows;
    std::fill_n(z, plan_.force_elements.nz, 1.0);
    plan_.force_elements.each([&](const auto& element) {
      for (int k = 0; k < element.states(); ++k) z[element.iz + k] = element.state_unit({unit, power});
    });
  }

  /// Copy the parameters of the mechanism, or of variants, to the plan, with the units at q: velocities ([runs,] nv + loop nv), powers ([runs]).
  void take_numbers(const Numbers& q, const Numbers& velocities, const Numbers& power) {
    const std::size_t count = variants_ ? mechanism_.variant_indices().size() : 1, units = plan_.units(mechanism_.tree());
    const Count width = tree_.nv + tree_.loop_nv;
    if (q.size() != tree_.nq || velocities.size() != static_cast<Count>(count) * width ||
        power.size() != static_cast<Count>(count))
      throw std::length_error("simulation: wrong sizes");
    units_.resize(count * units);
    const auto compare = [&](const Tree& t, std::size_t i) {
      set_units(t, q.data(), velocities.data() + i * width, power.data()[i], units_.data() + i * units);
    };
    compare(mechanism_.tree(), 0);
    numbers_memory_.resize(RunNumbers::bytes(mechanism_.tree(), static_cast<int>(units)) / sizeof(double));
    const RunNumbers numbers(mechanism_.tree(), static_cast<int>(units), reinterpret_cast<char*>(numbers_memory_.data()));
    numbers.take<double>(mechanism_.tree(), plan_, [&](int) { return units_.data(); });
    numbers.give(plan_, mechanism_.tree());
    tree_ = numbers.tree();
    plan_.watches_rates = rates_matter(tree_, plan_);
    if (!variants_) return;
    const Arena::Scope scope(thread_arena());
    plan_.variants = &variants_->view(), plan_.variant = mechanism_.variant_indices().data(), plan_.units_of = units_.data();
    VariantRun each(plan_, thread_arena());
    for (std::size_t i = 0; i < count; ++i) {
      each.take(static_cast<Count>(i));
      compare(each.full_tree(), i);
      plan_.watches_rates |= rates_matter(each.tree(), plan_);
    }
  }

  /// Let force elements use the tree of another mechanism, whose constraints are some of those of the simulated mechanism.
  void control_by(const Mechanism& other) {
    laws_memory_.resize(RunNumbers::bytes(other.tree(), 0) / sizeof(double));
    const RunNumbers numbers(other.tree(), 0, reinterpret_cast<char*>(laws_memory_.data()));
    numbers.take<double>(other.tree(), plan_, [](int) -> const double* { return nullptr; });
    Plan plan = plan_;
    numbers.give(plan, other.tree());
    plan_.described = plan.described;
  }

  void add_variants() {
    Arena& arena = thread_arena();
    const Arena::Scope scope(arena);
    VariantCopy copy(variants_->view(), 0, arena);
    for (const Count i : mechanism_.variant_indices()) copy.take(i), run_terms_.add(copy.tree());
  }

  void count_turns() {
    plan_.loop_angle = run_terms_.angles().data();
    plan_.loop_angles = static_cast<int>(run_terms_.angles().size());
    plan_.counted = plan_.force_elements.held_size;
    plan_.force_elements.held_size += counted();
  }

  /// Return the monitored data of runs by name (record.hpp), one row for each run.
  py::dict records(double* carried, Count wide, Count runs) const {
    py::dict named;
    Record<double> first(plan_, carried + Guard<double>::size);
    first.fields([&](const char* name, const double* from, auto of, double begin) {
      const Count size = first.size(of);
      Numbers to = of == Record<double>::Of::run ? Numbers(runs) : Numbers({runs, size});
      std::fill_n(to.mutable_data(), runs * size, begin);
      for (Count i = 0; from && i < runs; ++i) std::copy_n(from + i * wide, size, to.mutable_data() + i * size);
      named[name] = to;
    });
    return named;
  }

  void rethrow() {
    failed_ = false;
    if (PyErr_Occurred()) throw py::error_already_set();
  }

 public:
  PySimulation(const py::object& mechanism, const std::string& method, const std::string& stabilisation,
               const std::array<double, 2>& gains, const py::list& force_elements, const std::vector<double>& effort_limits,
               const Numbers& parameters, py::object controller, std::vector<py::object> sampled, py::object pfaffian,
               const std::vector<std::tuple<py::object, int, bool>>& events,
               const std::vector<std::tuple<int, int, double, double>>& limits,
               const std::tuple<Numbers, Numbers, Numbers>& units, const py::object& described, std::vector<double> load)
      : mechanism_(built_or_variants(mechanism)),
        controller_(std::move(controller)),
        sampled_(std::move(sampled)),
        pfaffian_(std::move(pfaffian)),
        load_(std::move(load)),
        parameters_(parameters.data(), parameters.data() + parameters.size()) {
    plan_.method = static_cast<Method>(named(methods, method));
    plan_.stabilisation = static_cast<Stabilisation>(named(stabilisations, stabilisation));
    std::copy(gains.begin(), gains.end(), plan_.gains);
    plan_.self = this;
    if (variants_) add_variants();
    frictions_ = run_terms_.frictions(tree_);
    plan_.frictions = static_cast<int>(frictions_.size()), plan_.friction = frictions_.data();
    plan_.stops = &check_signals;
    if (load_.size() > static_cast<std::size_t>(tree_.nv)) throw std::length_error("simulation: wrong sizes");
    plan_.controller = calls() ? &call_controller : nullptr;
    plan_.sampled = &call_sampled;
    plan_.pfaffian = pfaffian_.is_none() ? nullptr : &call_pfaffian;
    const Mechanism& controlled = described.is_none() ? mechanism_ : built(described);
    add_force_elements(controlled, force_elements, force_elements_);
    force_elements_.limit_efforts(effort_limits);
    for (const LoopSpring& spring : run_terms_.springs(tree_)) force_elements_.add(spring);
    plan_.force_elements = force_elements_.all();
    plan_.force_elements.parameters = static_cast<int>(parameters_.size());
    std::vector<Event> kinds;
    for (const auto& [function, direction, terminal] : events)
      kinds.push_back({direction, terminal}), event_functions_.push_back(function);
    run_.events = EventFinder(std::move(kinds));
    for (const auto& [of, at, lower, upper] : limits) {
      limits_.push_back({static_cast<Quantity>(of), at, lower, upper});
      const bool on_loop_joint = at >= (limits_.back().of == Quantity::position ? tree_.nq : tree_.nv);
      (limits_.back().of == Quantity::effort ? plan_.drives_loop_joints : plan_.watches_loop_joints) |= on_loop_joint;
    }
    plan_.drives_loop_joints |= plan_.force_elements.act_beyond(tree_.nv);
    if (plan_.drives_loop_joints) force_elements_.drive_loop_joints();
    if (plan_.drives_loop_joints || plan_.watches_loop_joints) count_turns();
    plan_.limits = static_cast<int>(limits_.size()), plan_.limit = limits_.data();
    take_numbers(std::get<0>(units), std::get<1>(units), std::get<2>(units));
    if (&controlled != &mechanism_) control_by(controlled);
    plan_.measures = plan_.controller || force_elements.size() > 0 || has_rates(tree_, plan_.force_elements) ||
                     plan_.frictions > 0 || rows_do_work(tree_) || facts(plan_.method).rigid;
    plan_.records = plan_.limits > 0 || plan_.watches_rates || plan_.measures || plan_.method == Method::rosenbrock;
    run_.carried.resize(carried_size(plan_));
    begin_carried(plan_, run_.carried.data());
  }
  PySimulation(const PySimulation&) = delete;
  PySimulation& operator=(const PySimulation&) = delete;

  /// End the simulation at its next step: the current call or, if there is none, the next call. Signal handlers may call this function.
  void stop() { stopped_ = true; }
  /// Return the data from which steps are recorded; they refer to this simulation.
  SimulatedPlan simulated() const { return {&tree_, &plan_, parameters_}; }
  /// Return true if a function of the caller, or a constant load, acts on the mechanism.
  bool calls() const { return !(controller_.is_none() && load_.empty()); }
  int size() const { return simulation_.size(); }
  int integrated() const { return simulation_.integrated(); }
  /// Return true if the state contains values that are constant between samples (digital controllers).
  bool holds() const { return plan_.force_elements.hold(); }
  /// Return the number of loop-joint coordinates, with counted revolutions, at the end of a state vector.
  int counted() const { return plan_.counts() ? tree_.loop_nq : 0; }

  // ---- one run: see run.hpp

  void begin(const Numbers& x, double time, double dt) {
    check(x.size());
    run_.begin({x.data(), x.data() + x.size()}, time, dt);
    rethrow();
  }
  /// Return the state of the run, from which another run can continue, and a flag: 1 if stages are projected onto the loops.
  py::dict state() {
    py::dict named;
    run_.at.fields([&](const char* key, const auto& member) { named[key] = to_python(member); });
    named["close_stages"] = Guard<double>(run_.carried.data()).closes > 0.5;
    return named;
  }
  /// Continue from the state of another run. `looks`: determine again if stages must be projected onto the loops. `anew`: restart the sampling,
  /// because the force elements are different.
  void restore(const py::dict& state, bool looks, bool anew) {
    run_.at.fields([&](const char* key, auto& member) { from_python(state[key], member); });
    check(static_cast<Count>(run_.at.x.size())), check(static_cast<Count>(run_.at.shown.x.size()));
    Guard<double>(run_.carried.data()).closes = state["close_stages"].cast<bool>() ? 1.0 : 0.0;
    if (looks) run_.check_redundancy();
    if (anew) run_.begin_anew();
    rethrow();
  }
  void aim(double end, const std::optional<std::vector<double>>& times, Count every, const std::array<double, 3>& options) {
    run_.aim(end, times, every, {options[0], options[1], options[2]});
  }
  bool finished() const { return run_.finished(); }
  /// Return the times (n,) of the next samples, their states (n, size), and the status.
  py::tuple advance(Count most) {
    caller_ = std::this_thread::get_id();
    Run::Segment segment;
    {
      const WithoutGil free;
      segment = run_.advance(most);
    }
    rethrow();
    Numbers x({static_cast<Count>(segment.time.size()), static_cast<Count>(size())});
    std::copy(segment.x.begin(), segment.x.end(), x.mutable_data());
    return py::make_tuple(copy_of(segment.time), x, static_cast<int>(segment.status));
  }
  py::dict counts() const {
    py::dict all;
    all["steps"] = run_.steps, all["rejected"] = run_.rejected, all["beyond_tolerance"] = run_.beyond_tolerance;
    return all;
  }
  py::dict record() { return records(run_.carried.data(), 0, 1); }
  /// Return a pair (event, time) for each event that occurred.
  py::list occurrences() const {
    py::list all;
    for (const auto& [event, time] : run_.events.occurred) all.append(py::make_tuple(event, time));
    return all;
  }
  /// Return the event that ended the run, or None.
  py::object ended_by() const { return run_.ended() ? py::object(py::int_(run_.events.ended_by)) : py::none(); }

  // ---- many runs

  /// Return the initial monitored data of n runs (n, width), for run_many.
  Numbers carried(Count n) const {
    const Count width = carried_size(plan_);
    Numbers all({n, width});
    for (Count i = 0; i < n; ++i) begin_carried(plan_, all.mutable_data() + i * width);
    return all;
  }

  /// Let controllers take the samples that are due at the initial time, in states x (n, size) with these parameters. Returns the states after
  /// sampling, and their status.
  py::tuple sample(const Numbers& x, const Numbers& parameters, const Which& variant, double time) {
    check(x.shape(1)), check_variants(variant, x.shape(0));
    plan_.force_elements.parameters = static_cast<int>(parameters.shape(parameters.ndim() - 1));
    Numbers sampled = copy_of(x.data(), x.size()).reshape({x.shape(0), x.shape(1)});
    const Count step = parameters.ndim() == 2 ? parameters.shape(1) : 0;
    py::array_t<signed char> status(x.shape(0));
    const auto take = [&](const Tree& tree, const Plan& plan, Count i) {
      status.mutable_data()[i] = static_cast<signed char>(
          simulation_.kernels.sample(tree, plan, parameters.data() + i * step, time, sampled.mutable_data() + i * x.shape(1)));
    };
    if (variants_) {
      const Arena::Scope scope(thread_arena());
      VariantRun run(plan_, thread_arena());
      for (Count i = 0; i < x.shape(0); ++i) run.take(variant.data()[i]), take(run.tree(), run.plan(), i);
    } else {
      for (Count i = 0; i < x.shape(0); ++i) take(tree_, plan_, i);
    }
    rethrow();
    return py::make_tuple(sampled, status);
  }

  /// Return the monitored data of runs by name, from the rows (n, width) that run_many has updated.
  py::dict records_of(Numbers carried) const { return records(carried.mutable_data(), carried.shape(1), carried.shape(0)); }

  /// Run from states x (n, size), with parameters (parameters,), or (n, parameters) if they differ between runs. Returns the states after every
  /// `every` steps and at the end (n, samples, size), the status of each run, and the monitored data. `variant` (n,): variant of each run, if the
  /// mechanism has variants. `carried` (n, width): monitored data, updated by each call; pass it to continue runs in several calls.
  py::tuple run_many(const Numbers& x, const Numbers& parameters, const Which& variant, const Schedule& schedule, Count threads,
                     std::optional<py::array_t<double>> carried) {
    Batch batch = prepare(x, parameters, variant, schedule, carried);
    {
      const WithoutGil free;
      run(batch, schedule, threads, [this] { return interrupts_.now() || stopped_; });
    }
    return results(batch, carried);
  }

  /// Run groups of runs, each with a simulation, states, parameters and variants, on several threads. Returns the result of run_many for each group.
  using Group = std::tuple<PySimulation*, Numbers, Numbers, Which>;
  static py::list run_groups(const std::vector<Group>& groups, const Schedule& schedule, Count threads) {
    std::vector<Batch> batches;
    for (const auto& [simulation, x, parameters, variant] : groups)
      batches.push_back(simulation->prepare(x, parameters, variant, schedule, {}));
    Interrupts interrupts;
    const auto of = [&](auto k) -> PySimulation& { return *std::get<0>(groups[static_cast<std::size_t>(k)]); };
    const auto stop = [&] {
      bool stopped = interrupts.now();
      for (std::size_t k = 0; k < groups.size(); ++k) stopped |= of(k).stopped_;
      for (std::size_t k = 0; stopped && k < groups.size(); ++k) of(k).stop();
      return stopped;
    };
    {
      const WithoutGil free;
      on_threads(static_cast<Count>(groups.size()), threads, 1, stop, [&](Count begin, Count end, auto&& stopped) {
        for (Count k = begin; k < end; ++k) of(k).run(batches[static_cast<std::size_t>(k)], schedule, 1, stopped);
      });
    }
    py::list all;
    for (std::size_t k = 0; k < groups.size(); ++k) all.append(of(k).results(batches[k], {}));
    return all;
  }

  // ---- derivatives of runs: see through_time.hpp

  /// Return the number of entries of a change of a state.
  int tangent() const { return 2 * tree_.nv + plan_.force_elements.nz; }
  /// Return the name of a feature of this simulation that has no derivatives; empty if there is none.
  std::string jumps() const {
    std::string reason;
    plan_.force_elements.each([&](const auto& element) {
      using Kind = std::decay_t<decltype(element)>;
      if (!Kind::varies) reason = Kind::name;
    });
    if (plan_.frictions > 0) reason = "dry friction of joints";
    if (plan_.controller || plan_.pfaffian) reason = "a function of the caller";
    if (plan_.stabilisation == Stabilisation::corrective) reason = "stabilisation 'corrective'";
    if (!facts(plan_.method).varies) reason = "method '" + std::string(facts(plan_.method).name) + "'";
    return reason;
  }

  /// Propagate changes forward. From samples (n, samples, size) and changes `S` (n, tangent, columns) of the initial states, returns the changes
  /// of all samples (n, samples, tangent, columns) and the status of each run. `changing`: the parameter that changes with each column, or -1.
  py::tuple forward(const Numbers& kept, const Numbers& parameters, const Schedule& schedule, const Numbers& S,
                    const std::vector<int>& changing, Count threads) {
    const Count all = schedule.samples() + 1, m = tangent() * static_cast<Count>(changing.size());
    if (S.size() != kept.shape(0) * m) throw std::length_error("simulation: wrong sizes");
    Numbers changes({kept.shape(0), all, static_cast<Count>(tangent()), static_cast<Count>(changing.size())});
    for (Count i = 0; i < kept.shape(0); ++i) std::copy_n(S.data() + i * m, m, changes.mutable_data() + i * all * m);
    double* to = changes.mutable_data();
    const auto status = through_time(kept, parameters, schedule, threads, [&](const ThroughTime& time, Count begin, Count end) {
      time.forward(static_cast<int>(changing.size()), changing.data(), to, begin, end);
    });
    return py::make_tuple(changes, status);
  }
  /// Convert cotangents (n, samples, tangent) of samples to those of the initial states (n, tangent) and of the parameters (n, parameters).
  py::tuple back(const Numbers& kept, const Numbers& parameters, const Schedule& schedule, const Numbers& cotangents,
                 Count threads) {
    if (cotangents.size() != kept.shape(0) * (schedule.samples() + 1) * tangent())
      throw std::length_error("simulation: wrong sizes");
    Numbers state({kept.shape(0), static_cast<Count>(tangent())}),
        numbers({kept.shape(0), parameters.shape(parameters.ndim() - 1)});
    std::fill_n(state.mutable_data(), state.size(), 0.0), std::fill_n(numbers.mutable_data(), numbers.size(), 0.0);
    const double* from = cotangents.data();
    double *to = state.mutable_data(), *to_numbers = numbers.mutable_data();
    const auto status = through_time(kept, parameters, schedule, threads, [&](const ThroughTime& time, Count begin, Count end) {
      time.back(from, to, to_numbers, begin, end);
    });
    return py::make_tuple(state, numbers, status);
  }

  /// Return the generalised force (n, nv), without that of AppliedWrench, in states (n, size) at times (n,). Parameters are (parameters,), or
  /// (n, parameters) if they differ between states; default: those of the run.
  Numbers efforts(const Numbers& times, const Numbers& x, const std::optional<Numbers>& parameters) {
    Plan plan = plan_;
    plan.force_elements = plan_.force_elements.without<AppliedWrench>();
    return at_states(times, x, parameters, tree_.nv, [&](double time, const double* parameter, const double* row, double* tau) {
      plan.force_elements.parameters = plan_.force_elements.parameters;
      simulation_.kernels.forces(tree_, plan, parameter, time, row, tau, nullptr);
    });
  }
  /// Return the wrenches (n, 6 k) of elements on the k named frames in these states, at the frames' origins and in their axes, without those of
  /// rigid contact, AppliedWrench and functions of the caller. The names contain all frames on which elements act.
  Numbers pushes(const Numbers& times, const Numbers& x, const std::vector<std::string>& names,
                 const std::optional<Numbers>& parameters) {
    Plan plan = plan_;
    plan.controller = nullptr;
    std::vector<int> places;
    for (const std::string& name : names) places.push_back(mechanism_.number_of(mechanism_.placed_frame(name)));
    std::vector<double> tau(static_cast<std::size_t>(tree_.nv)),
        all(6 * static_cast<std::size_t>(1 + *std::max_element(places.begin(), places.end())));
    const Count width = 6 * static_cast<Count>(places.size());
    return at_states(times, x, parameters, width, [&](double time, const double* parameter, const double* row, double* out) {
      plan.force_elements.parameters = plan_.force_elements.parameters;
      std::fill(all.begin(), all.end(), 0.0);
      simulation_.kernels.forces(tree_, plan, parameter, time, row, tau.data(), all.data());
      for (const int place : places) out = std::copy_n(all.data() + 6 * place, 6, out);
    });
  }
  /// Return the wrenches (n, 6 k) of the k AppliedWrench in these states, in the axes in which they are given.
  Numbers loads(const Numbers& times, const Numbers& x, const std::optional<Numbers>& parameters) {
    const auto& all = plan_.force_elements.all<AppliedWrench>();
    return at_states(times, x, parameters, 6 * all.count, [&](double time, const double* parameter, const double*, double* out) {
      for (const AppliedWrench& load : all) {
        double w[6], g[3];
        load.components(parameter[load.scale.at], [&](const Law* law) { return evaluate(*law, parameter, &time, g), g[0]; }, w);
        out = std::copy(w, w + 6, out);
      }
    });
  }
  /// Return the force (n, nv + loop nv) of dry friction along every joint in these states. `step`: approximate step length of the run.
  Numbers friction(const Numbers& times, const Numbers& x, double step, const std::optional<Numbers>& parameters) {
    const Count width = tree_.nv + tree_.loop_nv;
    return at_states(times, x, parameters, width, [&](double time, const double* parameter, const double* row, double* force) {
      simulation_.kernels.friction(tree_, plan_, parameter, time, step, row, force);
    });
  }
  bool has_friction() const { return plan_.frictions > 0; }
  /// Return the index of the collision contacts in z, the largest number of points, and the number of entries per point; None without such contacts.
  std::optional<std::tuple<int, int, int>> touching() const {
    const auto& all = plan_.force_elements.all<CollisionContacts>();
    if (all.empty()) return {};
    return {{all.begin()->iz, all.begin()->kept, all.begin()->numbers_per_point()}};
  }
  /// Return, for each RigidContact, the first index and the number of its internal states in z.
  std::vector<std::pair<int, int>> rigid_contacts() const {
    std::vector<std::pair<int, int>> all;
    for (const RigidContact& c : plan_.force_elements.all<RigidContact>()) all.emplace_back(c.iz, c.states());
    return all;
  }

 private:
  /// Data of runs between their preparation and the conversion of results; these two steps need Python, the runs do not.
  struct Batch {
    Numbers parameters;
    Which variant;
    std::vector<double> rows;
    Numbers kept;
    py::array_t<signed char> status;
    Sweep sweep;
    double* to;
  };
  Batch prepare(const Numbers& x, const Numbers& parameters, const Which& variant, const Schedule& schedule,
                const std::optional<py::array_t<double>>& carried) {
    plan_.force_elements.parameters = static_cast<int>(parameters.shape(parameters.ndim() - 1));
    const Count many = x.shape(0), n = size(), wide = simulation_.row_size();
    check(x.shape(1)), check_variants(variant, many);
    Batch b = {parameters, variant, std::vector<double>(many * wide), Numbers({many, schedule.samples(), n}), {}, {}, nullptr};
    b.status = py::array_t<signed char>(many);
    for (Count i = 0; i < many; ++i) {
      std::copy_n(x.data() + i * n, n, b.rows.data() + i * wide);
      carried ? void(std::copy_n(carried->data(i, 0), wide - n, b.rows.data() + i * wide + n))
              : begin_carried(plan_, b.rows.data() + i * wide + n);
    }
    // initial status, for groups that never begin
    std::fill_n(b.status.mutable_data(), many, static_cast<signed char>(interrupted));
    b.to = b.kept.mutable_data();
    std::fill_n(b.to, b.kept.size(), std::numeric_limits<double>::quiet_NaN());
    b.sweep = {b.rows.data(),           static_cast<int>(wide),
               b.parameters.data(),     parameters.ndim() == 2 ? parameters.shape(1) : 0,
               b.status.mutable_data(), variants_ ? b.variant.data() : nullptr};
    caller_ = std::this_thread::get_id();
    return b;
  }
  template <class Stop> void run(const Batch& b, const Schedule& schedule, Count threads, Stop&& stop) const {
    const Count many = static_cast<Count>(b.rows.size()) / simulation_.row_size();
    simulation_.run_many(schedule, b.sweep, many, threads, b.to, stop);
  }
  py::tuple results(Batch& b, std::optional<py::array_t<double>> carried) {
    rethrow();
    const Count many = b.status.size(), n = size(), wide = simulation_.row_size();
    for (Count i = 0; carried && i < many; ++i) std::copy_n(b.rows.data() + i * wide + n, wide - n, carried->mutable_data(i, 0));
    return py::make_tuple(b.kept, b.status, records(b.rows.data() + n, wide, many));
  }

  /// Evaluate forces(time, parameter, state, result) of length `width` at each state.
  template <class Forces> Numbers at_states(const Numbers& times, const Numbers& x, const std::optional<Numbers>& parameters,
                                            Count width, Forces&& forces) {
    const Count n = times.size(), step = parameters && parameters->ndim() == 2 ? parameters->shape(1) : 0;
    if (x.size() != n * size() || (step && parameters->shape(0) != n)) throw std::length_error("simulation: wrong sizes");
    Numbers all({n, width});
    const double *t = times.data(), *rows = x.data(), *parameter = parameters ? parameters->data() : parameters_.data();
    if (parameters) plan_.force_elements.parameters = static_cast<int>(parameters->shape(parameters->ndim() - 1));
    double* out = all.mutable_data();
    {
      const WithoutGil free;
      for (Count i = 0; i < n && !failed_; ++i) forces(t[i], parameter + i * step, rows + i * size(), out + i * width);
    }
    rethrow();
    return all;
  }

  template <class Work>
  py::array_t<signed char> through_time(const Numbers& kept, const Numbers& parameters, const Schedule& schedule, Count threads,
                                        Work&& work) {
    const Count runs = kept.shape(0);
    if (kept.size() != runs * (schedule.samples() + 1) * size()) throw std::length_error("simulation: wrong sizes");
    plan_.force_elements.parameters = static_cast<int>(parameters.shape(parameters.ndim() - 1));
    py::array_t<signed char> status(runs);
    const Samples samples = {
        kept.data(), runs, schedule, parameters.data(), parameters.ndim() == 2 ? parameters.shape(1) : 0, status.mutable_data()};
    std::fill_n(status.mutable_data(), runs, static_cast<signed char>(0));
    caller_ = std::this_thread::get_id();
    {
      const WithoutGil free;
      const ThroughTime time(simulation_, samples);
      on_threads(
          runs, threads, 16, [this] { return interrupts_.now() || stopped_; },
          [&](Count begin, Count end, auto&&) { work(time, begin, end); });
    }
    if (stopped_ || interrupts_.now()) std::fill_n(status.mutable_data(), runs, static_cast<signed char>(interrupted));
    return status;
  }

  void check_variants(const Which& variant, Count runs) const {
    const auto count = static_cast<Count>(mechanism_.variant_indices().size());
    const bool sound = !variants_ || (variant.size() == runs && std::all_of(variant.data(), variant.data() + runs,
                                                                            [&](Count i) { return 0 <= i && i < count; }));
    if (!sound) throw std::length_error("simulation: wrong variants");
  }

  const Mechanism& mechanism_;
  const std::shared_ptr<const Variants> variants_ = mechanism_.variants();
  RunTerms run_terms_{mechanism_.tree()};
  std::vector<JointFriction> frictions_;
  std::vector<double> units_, numbers_memory_, laws_memory_;
  Tree tree_ = mechanism_.tree();  // the tree that is integrated
  Plan plan_;
  py::object controller_;
  // one entry per digital controller: its function, or None if the controller consists of force elements only
  std::vector<py::object> sampled_;
  py::object pfaffian_;
  std::vector<double> load_;  // constant generalised force (nv), in addition to that of force elements; empty: none
  bool failed_ = false;
  std::atomic<bool> stopped_{false};
  std::thread::id caller_{};
  Interrupts interrupts_;
  ForceElementList force_elements_{tree_.nv + tree_.loop_nv};
  std::vector<py::object> event_functions_;
  std::vector<Limit> limits_;
  std::vector<double> parameters_;
  Simulation simulation_{kernels().simulation, tree_, plan_, parameters_.data()};
  Run run_{simulation_,
           {[this](int event, double time, const double* x) { return event_value(event, time, x); },
            [this] { return interrupts_.pending() || stopped_; }}};
};

void bind_methods(py::module_& m) {
  py::class_<MethodFacts>(m, "Method")
      .def_readonly("name", &MethodFacts::name)
      .def_readonly("stages", &MethodFacts::stages)
      .def_readonly("order", &MethodFacts::order)
      .def_property_readonly("in_lanes", &MethodFacts::in_lanes)
      .def_readonly("stable", &MethodFacts::stable)
      .def_readonly("rigid", &MethodFacts::rigid)
      .def_property_readonly("adaptive", &MethodFacts::adaptive);
  py::dict facts_by_name, gains;
  for (const MethodFacts& method : methods) facts_by_name[method.name] = py::cast(method);
  for (const StabilisationFacts& s : stabilisations) gains[s.name] = py::make_tuple(s.gains[0], s.gains[1]);
  m.attr("methods") = facts_by_name;
  m.attr("stabilisations") = gains;
}

void bind_schedule(py::module_& m) {
  py::class_<Schedule>(m, "Schedule")
      .def(py::init(&Schedule::between), py::arg("start"), py::arg("end"), py::arg("step"), py::arg("every") = 1)
      .def_property_readonly("start",
                             [](const Schedule& s) { return s.clock.start + static_cast<double>(s.clock.first) * s.clock.step; })
      .def_readonly("every", &Schedule::every)
      .def_property_readonly("steps", &Schedule::steps)
      .def_property_readonly("samples", &Schedule::samples)
      .def_property_readonly("times", &times_of)
      .def("step", &Schedule::step, py::arg("k"))
      .def(py::pickle(
          [](const Schedule& s) { return py::make_tuple(s.clock.start, s.clock.step, s.clock.count, s.rest, s.every); },
          [](const py::tuple& t) {
            return Schedule{
                {t[0].cast<double>(), t[1].cast<double>(), 0, t[2].cast<Count>()}, t[3].cast<double>(), t[4].cast<Count>()};
          }));
}

void bind_timing(py::module_& m) {
  py::class_<Timing>(m, "Timing")
      .def(py::init<double, double, double>(), py::arg("start"), py::arg("duration"), py::arg("step"))
      .def("check", &Timing::check)
      .def("check_advance", &Timing::check_advance)
      .def("check_longest_step", &Timing::check_longest_step, py::arg("longest"))
      .def("check_period", &Timing::check_period, py::arg("period"), py::arg("controller"))
      .def("divisors", &Timing::divisors);
}

/// Return the directions (n) in which brakes at rest begin to slide, and the forces (n) that hold all of them at rest. W (n, n) maps forces to
/// accelerations, `r` are the accelerations without these forces, and `limit` their limits: see friction.hpp.
py::tuple brakes_at_rest(const Numbers& W, const Numbers& r, const Numbers& limit) {
  constexpr double tolerance = 1e-12;  // of limits, instead of the margin for joints
  const auto n = static_cast<int>(r.size());
  if (W.size() != Count{n} * n || limit.size() != n) throw std::length_error("simulation: wrong sizes");
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  const std::vector<double> resting(static_cast<std::size_t>(n), 1.0);
  std::vector<double> largest(limit.data(), limit.data() + n);
  for (double& x : largest) x *= (1.0 + tolerance) / (1.0 + margin);
  Numbers direction(n), force(n);
  decide_directions(arena, n, W.data(), r.data(), largest.data(), resting.data(), direction.mutable_data());
  hold_at_rest(arena, n, W.data(), r.data(), resting.data(), tight<double>(), force.mutable_data());
  return py::make_tuple(direction, force);
}

Frame frame_named(const Mechanism& mechanism, const std::string& name) {
  const PlacedFrame* at = mechanism.find_frame(name);
  if (!at) no_such_name("frame", name, mechanism.frame_names());
  return {at->link, at->body, at->X, ExpressedIn::frame};
}

using PlaneOfPython = std::tuple<std::string, std::string, std::array<double, 3>, double, int, int>;

/// Return the fields of ContactHistory (contact_history.hpp), from q (samples, nq) and z (samples, nz).
py::tuple contact_points(const py::object& mechanism, const Numbers& q, const Numbers& z,
                         const std::optional<std::array<int, 3>>& shapes, const std::vector<PlaneOfPython>& planes) {
  const Mechanism& of = built(mechanism);
  const auto width = static_cast<int>(z.shape(1));
  const auto outside = [&](int first, Count size) { return first < 0 || size < 0 || first + size > width; };
  std::optional<ShapePoints> points;
  if (shapes) points = {(*shapes)[0], (*shapes)[1], (*shapes)[2]};
  bool wrong = q.shape(0) != z.shape(0) || q.shape(1) != of.tree().nq;
  if (points)
    wrong |= points->width < 7 || outside(points->first, CollisionContacts::before_points + Count{points->kept} * points->width);
  std::vector<PlaneContact> contacts;
  std::vector<std::array<Frame, 2>> frames;
  for (const auto& [frame, on, n, radius, first, states] : planes) {
    wrong |= outside(first, states) || states < 4;
    contacts.push_back({vec3<double>(n[0], n[1], n[2]), radius, first, states});
    frames.push_back({frame_named(of, frame), frame_named(of, on)});
  }
  if (wrong) throw py::value_error("the layout of contacts does not fit the internal states");
  const StateFunctions functions(of, kernels());
  const auto pose = [&](std::size_t k, bool on, const double* at) {
    std::array<double, 16> X;
    functions.evaluate(Operation::pose, {at}, X.data(), frames[k][on]);
    return X;
  };
  const ContactHistory all = contact_history(q.shape(0), q.data(), of.tree().nq, z.data(), width, points, contacts, pose);
  const auto rows = static_cast<Count>(all.sample.size());
  const auto vectors = [&](const std::vector<double>& x) { return copy_of(x).reshape({rows, Count{3}}); };
  const auto indices = [&](const std::vector<std::int64_t>& x) { return Which(rows, x.data()); };
  return py::make_tuple(indices(all.sample), indices(all.id), vectors(all.position), vectors(all.force), vectors(all.moment),
                        copy_of(all.natural_map), all.left_out);
}

}  // namespace

void bind_simulation(py::module_& m) {
  bind_methods(m), bind_schedule(m), bind_timing(m);
  m.def("contact_points", &contact_points, py::arg("mechanism"), py::arg("q"), py::arg("z"), py::arg("shapes"),
        py::arg("planes"));
  m.def("brakes_at_rest", &brakes_at_rest, py::arg("W"), py::arg("r"), py::arg("limit"));
  py::class_<SimulatedPlan>(m, "SimulatedPlan", "Data of a simulation, for recordings of its steps.");
  py::class_<PySimulation>(m, "Simulation")
      .def(py::init<const py::object&, const std::string&, const std::string&, const std::array<double, 2>&, const py::list&,
                    const std::vector<double>&, const Numbers&, py::object, std::vector<py::object>, py::object,
                    const std::vector<std::tuple<py::object, int, bool>>&,
                    const std::vector<std::tuple<int, int, double, double>>&, const std::tuple<Numbers, Numbers, Numbers>&,
                    const py::object&, std::vector<double>>(),
           py::arg("mechanism"), py::arg("method"), py::arg("stabilisation"), py::arg("gains"), py::arg("force_elements"),
           py::arg("effort_limits"), py::arg("parameters"), py::arg("controller"), py::arg("sampled"), py::arg("pfaffian"),
           py::arg("events"), py::arg("limits"), py::arg("units"), py::arg("described") = py::none(),
           py::arg("load") = std::vector<double>(), py::keep_alive<1, 2>(), py::keep_alive<1, 15>())
      .def_property_readonly("record", &PySimulation::record)
      .def("simulated", &PySimulation::simulated, py::keep_alive<0, 1>())
      .def_property_readonly("size", &PySimulation::size)
      .def_property_readonly("integrated", &PySimulation::integrated)
      .def_property_readonly("counted", &PySimulation::counted)
      .def_property_readonly("holds", &PySimulation::holds)
      .def_property_readonly("calls", &PySimulation::calls)
      .def("stop", &PySimulation::stop)
      .def("begin", &PySimulation::begin, py::arg("x"), py::arg("time"), py::arg("dt"))
      .def_property_readonly("state", &PySimulation::state)
      .def("restore", &PySimulation::restore, py::arg("state"), py::arg("looks"), py::arg("anew"))
      .def("aim", &PySimulation::aim, py::arg("end"), py::arg("times"), py::arg("every"), py::arg("options"))
      .def_property_readonly("finished", &PySimulation::finished)
      .def("advance", &PySimulation::advance, py::arg("most"))
      .def_property_readonly("counts", &PySimulation::counts)
      .def_property_readonly("found", &PySimulation::occurrences)
      .def_property_readonly("ended_by", &PySimulation::ended_by)
      .def("sample", &PySimulation::sample, py::arg("x"), py::arg("parameters"), py::arg("which"), py::arg("time"))
      .def("run_many", &PySimulation::run_many, py::arg("x"), py::arg("parameters"), py::arg("which"), py::arg("schedule"),
           py::arg("threads"), py::arg("carried") = py::none())
      .def_static("run_groups", &PySimulation::run_groups, py::arg("groups"), py::arg("schedule"), py::arg("threads"))
      .def("carried", &PySimulation::carried, py::arg("runs"))
      .def("records", &PySimulation::records_of, py::arg("carried"))
      .def_property_readonly("tangent", &PySimulation::tangent)
      .def_property_readonly("jumps", &PySimulation::jumps)
      .def("forward", &PySimulation::forward, py::arg("kept"), py::arg("parameters"), py::arg("schedule"), py::arg("S"),
           py::arg("changing"), py::arg("threads"))
      .def("back", &PySimulation::back, py::arg("kept"), py::arg("parameters"), py::arg("schedule"), py::arg("cotangents"),
           py::arg("threads"))
      .def_property_readonly("touching", &PySimulation::touching)
      .def_property_readonly("rigid_contacts", &PySimulation::rigid_contacts)
      .def_property_readonly("has_friction", &PySimulation::has_friction)
      .def("friction", &PySimulation::friction, py::arg("times"), py::arg("x"), py::arg("step"),
           py::arg("parameters") = py::none())
      .def("efforts", &PySimulation::efforts, py::arg("times"), py::arg("x"), py::arg("parameters") = py::none())
      .def("pushes", &PySimulation::pushes, py::arg("times"), py::arg("x"), py::arg("names"), py::arg("parameters") = py::none())
      .def("loads", &PySimulation::loads, py::arg("times"), py::arg("x"), py::arg("parameters") = py::none());
}

}  // namespace sarrus::bindings
