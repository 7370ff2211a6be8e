// A simulation as Python drives it: stretches of steps, in which the GIL is held only while a function of the caller runs.
#include "simulation.hpp"

#include <pybind11/stl.h>

#include <atomic>
#include <thread>
#include <tuple>

#include "../elements/list.hpp"
#include "../simulation/driver.hpp"
#include "../simulation/events.hpp"
#include "../simulation/turns.hpp"
#include "../simulation/without_friction.hpp"
#include "force_elements.hpp"
#include "gil.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

Numbers copy_of(const double* from, Count n) {
  Numbers x(n);
  std::copy(from, from + n, x.mutable_data());
  return x;
}

/// Which of the facts, methods' or others', has this name.
template <class Facts, std::size_t n> int named(const Facts (&all)[n], const std::string& name) {
  for (std::size_t k = 0; k < n; ++k)
    if (name == all[k].name) return static_cast<int>(k);
  throw py::value_error("'" + name + "' is not known");
}

/// Whether a signal ends the simulation.
class Interrupts {
 public:
  bool pending() { return ++steps_ % 32 == 0 && now(); }

  bool now() {
    if (!signals_.raised()) return false;
    const WithGil held;
    // Ctrl-C: it ends with what it has; what another signal's handler raises is the caller's
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_Clear();
    return true;
  }

 private:
  unsigned steps_ = 0;
  Signals signals_;
};

class PySimulation {
  void check(const Numbers& x) const {
    if (x.size() != size()) throw std::length_error("simulation: wrong sizes");
  }

  /// Calls a function of the caller's; false where it raised.
  template <class Call> bool ask(Call&& call) {
    const WithGil held;
    try {
      call();
      return true;
    } catch (py::error_already_set& e) {
      e.restore();
    }
    failed_ = true;
    return false;
  }

  /// It returns (2, nv): of motors, and of other forces.
  static bool call_controller(void* self, double time, const double* q, const double* v, double* motor, double* tau) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    return s.ask([&] {
      const int nv = s.tree_.nv;
      const auto both =
          py::cast<Numbers>(call_python(s.controller_, py::make_tuple(time, copy_of(q, s.tree_.nq), copy_of(v, nv))));
      for (int k = 0; k < nv; ++k) motor[k] += both.data()[k], tau[k] += both.data()[nv + k];
    });
  }

  /// Of a sampling: efforts (nv) of motors.
  static bool call_sampled(void* self, int which, double time, const double* q, const double* v, double* motor) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    return s.ask([&] {
      const int nv = s.tree_.nv;
      const auto efforts =
          py::cast<Numbers>(call_python(s.sampled_[which], py::make_tuple(time, copy_of(q, s.tree_.nq), copy_of(v, nv))));
      for (int k = 0; k < nv; ++k) motor[k] += efforts.data()[k];
    });
  }

  static bool call_pfaffian(void* self, const double* q, const double* v, bool rates, double* numbers) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    return s.ask([&] {
      const auto values =
          py::cast<Numbers>(call_python(s.pfaffian_, py::make_tuple(copy_of(q, s.tree_.nq), copy_of(v, s.tree_.nv), rates)));
      std::copy(values.data(), values.data() + values.size(), numbers);
    });
  }

  /// Asked from any thread, of which only the one that calls sees signals.
  static bool look_for_signals(void* self) {
    PySimulation& s = *static_cast<PySimulation*>(self);
    if (std::this_thread::get_id() == s.caller_ && s.interrupts_.now()) s.stopped_ = true;
    return s.stopped_;
  }

  /// Of the function of an event, which takes (time, q, v); NaN where it or what led there raised.
  double event_value(int event, double time, const double* x) {
    double value = std::numeric_limits<double>::quiet_NaN();
    if (failed_) return value;
    ask([&] {
      value = py::cast<double>(
          call_python(event_functions_[event], py::make_tuple(time, copy_of(x, tree_.nq), copy_of(x + tree_.nq, tree_.nv))));
    });
    return value;
  }

  auto watching(double time) {
    events_.begin(time, since_);
    return [this](double now, const double* before, const double* after) {
      return !event_functions_.empty() &&
             events_(
                 now, before, after, size(), [this](int k, double t, const double* x) { return event_value(k, t, x); },
                 [this](const double* x, double t, double h, double* there) { within_step(x, t, h, there); });
    };
  }

  /// By the polynomial of the last adaptive step, or by a step that is so much shorter.
  void within_step(const double* x, double time, double h, double* there) const {
    if (facts(plan_.method).adaptive()) return adaptive_.at(time + h, there);
    simulation_.part_of_step(time, h, x, there);
  }

  auto stopping() {
    return [this, interrupts = Interrupts()]() mutable { return interrupts.pending() || stopped_; };
  }

  /// Units in which numbers compare: of velocities (nv + loop nv), of rows, at a configuration, by those, and of z by efforts of this power.
  void compare_with(const Numbers& q, const Numbers& unit, double power) {
    if (q.size() != tree_.nq || unit.size() != tree_.nv + tree_.loop_nv) throw std::length_error("simulation: wrong sizes");
    velocity_unit_.assign(unit.data(), unit.data() + unit.size());
    row_unit_.resize(tree_.loops.rows), z_unit_.assign(plan_.force_elements.nz, 1.0);
    if (tree_.loops.rows > 0) simulation_.kernels.row_units(tree_, 0.0, q.data(), velocity_unit_.data(), row_unit_.data());
    const StateUnits units = {velocity_unit_.data(), power};
    plan_.force_elements.each([&](const auto& element) {
      for (int k = 0; k < element.states(); ++k) z_unit_[element.iz + k] = element.state_unit(units);
    });
    plan_.velocity_unit = velocity_unit_.data(), plan_.row_unit = row_unit_.data(), plan_.z_unit = z_unit_.data();
  }

  void count_turns() {
    plan_.loop_angle = without_springs_.angles().data();
    plan_.loop_angles = static_cast<int>(without_springs_.angles().size());
    plan_.counted = plan_.force_elements.held;
    plan_.force_elements.held += counted();
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
               const std::vector<std::tuple<int, int, double, double>>& limits, const std::tuple<Numbers, Numbers, double>& units,
               bool records)
      : without_springs_(built(mechanism).tree()),
        controller_(std::move(controller)),
        sampled_(std::move(sampled)),
        pfaffian_(std::move(pfaffian)),
        parameters_(parameters.data(), parameters.data() + parameters.size()) {
    plan_.method = static_cast<Method>(named(methods, method));
    plan_.stabilisation = static_cast<Stabilisation>(named(stabilisations, stabilisation));
    std::copy(gains.begin(), gains.end(), plan_.gains);
    plan_.self = this;
    plan_.frictions = static_cast<int>(without_friction_.frictions().size()),
    plan_.friction = without_friction_.frictions().data();
    plan_.described = &without_springs_.tree();
    plan_.stops = &look_for_signals;
    plan_.controller = controller_.is_none() ? nullptr : &call_controller;
    plan_.sampled = &call_sampled;
    plan_.pfaffian = pfaffian_.is_none() ? nullptr : &call_pfaffian;
    add_force_elements(built(mechanism), force_elements, force_elements_);
    force_elements_.limit_efforts(effort_limits);
    for (const LoopSpring& spring : without_springs_.springs()) force_elements_.add(spring);
    plan_.force_elements = force_elements_.all();
    plan_.force_elements.parameters = static_cast<int>(parameters_.size());
    std::vector<Event> kinds;
    for (const auto& [function, direction, terminal] : events)
      kinds.push_back({direction, terminal}), event_functions_.push_back(function);
    events_ = EventFinder(std::move(kinds));
    for (const auto& [of, at, lower, upper] : limits) {
      limits_.push_back({static_cast<Quantity>(of), at, lower, upper});
      const bool beyond = at >= (limits_.back().of == Quantity::position ? tree_.nq : tree_.nv);
      (limits_.back().of == Quantity::effort ? plan_.drives_loop_joints : plan_.watches_loop_joints) |= beyond;
    }
    plan_.drives_loop_joints |= plan_.force_elements.beyond(tree_.nv);
    if (plan_.drives_loop_joints) force_elements_.drive_loop_joints();
    if (plan_.drives_loop_joints || plan_.watches_loop_joints) count_turns();
    plan_.limits = static_cast<int>(limits_.size()), plan_.limit = limits_.data();
    plan_.watches_rates = rates_matter(tree_, plan_);
    plan_.records = records && (plan_.limits > 0 || plan_.watches_rates);
    compare_with(std::get<0>(units), std::get<1>(units), std::get<2>(units));
    carried_.resize(carried_size(plan_));
    begin_carried(plan_, carried_.data());
  }
  PySimulation(const PySimulation&) = delete;
  PySimulation& operator=(const PySimulation&) = delete;

  /// The call that is on its way, or the next one, ends at its next step: what a signal's handler may call.
  void stop() { stopped_ = true; }
  bool closes_stages() const { return carried_[0] > 0.5; }
  void close_stages(bool yes) { carried_[0] = yes ? 1.0 : 0.0; }
  /// Takes the samples that are due in x at this time, those at the start of a run. Returns the status.
  int sample(Numbers& x, double time) {
    check(x);
    const double status = simulation_.kernels.sample(tree_, plan_, parameters_.data(), time, x.mutable_data());
    rethrow();
    return static_cast<int>(status);
  }
  bool calls() const { return plan_.controller != nullptr; }
  int size() const { return simulation_.size(); }
  int integrated() const { return simulation_.integrated(); }
  /// How many coordinates of joints that close loops end a state, with their turns.
  int counted() const { return plan_.counts() ? tree_.loop_nq : 0; }
  Numbers record() const { return copy_of(carried_.data() + guard_size, static_cast<Count>(carried_.size()) - guard_size); }

  /// Events up to here are no news.
  void watch_since(double time) { since_ = time; }
  /// (which, when) of all that were found.
  py::list found() const {
    py::list all;
    for (const auto& [event, time] : events_.found) all.append(py::make_tuple(event, time));
    return all;
  }
  /// (which, when, state) of the event that ended the simulation, or None.
  py::object ended() const {
    if (events_.ended_by < 0) return py::none();
    return py::make_tuple(events_.ended_by, events_.found.back().time, copy_of(events_.end.data(), size()));
  }

  /// The state after each step goes to `out`. Returns how many steps were made, and the status.
  py::tuple run(Numbers& x, double start, double h, Count first, Count count, Numbers& out) {
    check(x);
    caller_ = std::this_thread::get_id();
    const int n = size();
    double* kept = out.mutable_data();
    std::vector<double> row(x.data(), x.data() + n);
    row.insert(row.end(), carried_.begin(), carried_.end());
    Simulation::Outcome done;
    {
      const WithoutGil free;
      done = simulation_.run_fixed(
          {start, h, first, count}, row.data(),
          [&](Count step, const double* at) { std::copy(at, at + n, kept + (step - 1) * n); },
          watching(start + static_cast<double>(first) * h), stopping());
    }
    std::copy(row.begin(), row.begin() + n, x.mutable_data());
    carried_.assign(row.begin() + n, row.end());
    rethrow();
    return py::make_tuple(done.steps, static_cast<int>(done.status));
  }

  /// The time, the next step, the status, how many of `times` were had, steps taken, rejected, and taken though off by more than allowed, and
  /// whether the end was reached: see AdaptiveRun.
  py::tuple run_adaptive(Numbers& x, double time, double pause, double end, double h, const std::array<double, 3>& options,
                         const Numbers& times, Numbers& out, Numbers& last) {
    check(x);
    AdaptiveRun::State at = {x.mutable_data(), time, h, carried_.data()};
    const AdaptiveRun::Samples samples = {times.data(), times.size(), out.mutable_data()};
    double* at_end = last.mutable_data();
    AdaptiveRun::Outcome done;
    {
      const WithoutGil free;
      done = adaptive_.run(at, pause, end, {options[0], options[1], options[2]}, samples, at_end, carried_.data() + guard_size,
                           watching(time), stopping());
    }
    rethrow();
    return py::make_tuple(at.time, at.next, static_cast<int>(done.status), done.samples, done.steps, done.rejected,
                          done.beyond_tolerance, done.finished);
  }

  /// Decides by the configuration q to start from whether stages are closed: where redundant rows agree only on the loops.
  void look(const Numbers& q, double time) {
    if (q.size() != tree_.nq) throw std::length_error("simulation: wrong sizes");
    const bool projects = plan_.stabilisation == Stabilisation::projection && tree_.loops.rows > 0;
    carried_[0] = projects ? simulation_.kernels.only_on_loops(tree_, plan_, time, q.data()) : 0.0;
    rethrow();
  }

  /// From states x (n, size), with parameters (parameters,) or of each (n, parameters): those after every so many steps, and the last
  /// (n, samples, size), the status of each and its record.
  py::tuple run_many(const Numbers& x, const Numbers& parameters, double start, double h, Count count, double rest, Count every,
                     Count threads) {
    plan_.force_elements.parameters = static_cast<int>(parameters.shape(parameters.ndim() - 1));
    const Count many = x.shape(0), n = size(), recorded = static_cast<Count>(carried_.size()) - guard_size,
                wide = n + guard_size + recorded;
    if (x.shape(1) != n) throw std::length_error("simulation: wrong sizes");
    std::vector<double> rows(many * wide);
    for (Count i = 0; i < many; ++i) {
      std::copy_n(x.data() + i * n, n, rows.data() + i * wide);
      begin_carried(plan_, rows.data() + i * wide + n);
    }
    const Simulation::Schedule schedule = {{start, h, 0, count}, rest, every};
    Numbers kept({many, schedule.samples(), n}), ended({many, recorded});
    py::array_t<signed char> status(many);
    const Sweep sweep = {rows.data(), static_cast<int>(wide), parameters.data(), parameters.ndim() == 2 ? parameters.shape(1) : 0,
                         status.mutable_data()};
    double* to = kept.mutable_data();
    caller_ = std::this_thread::get_id();
    Interrupts interrupts;
    {
      const WithoutGil free;
      simulation_.run_many(schedule, sweep, many, threads, to, [&] { return interrupts.now() || stopped_; });
    }
    rethrow();
    for (Count i = 0; i < many; ++i)
      std::copy_n(rows.data() + i * wide + n + guard_size, recorded, ended.mutable_data() + i * recorded);
    return py::make_tuple(kept, status, ended);
  }

  /// The generalised force (n, nv) in states (n, size) at times (n,).
  Numbers efforts(const Numbers& times, const Numbers& x) {
    const Count n = times.size();
    if (x.size() != n * size()) throw std::length_error("simulation: wrong sizes");
    Numbers tau({n, static_cast<Count>(tree_.nv)});
    const double *t = times.data(), *rows = x.data();
    double* out = tau.mutable_data();
    {
      const WithoutGil free;
      for (Count i = 0; i < n && !failed_; ++i)
        simulation_.kernels.forces(tree_, plan_, parameters_.data(), t[i], rows + i * size(), out + i * tree_.nv);
    }
    rethrow();
    return tau;
  }

  /// The force (n, nv + loop nv) of dry friction along every joint, in states (n, size) at times (n,) of a run with steps of about this length.
  Numbers friction(const Numbers& times, const Numbers& x, double step) {
    const Count n = times.size(), width = tree_.nv + tree_.loop_nv;
    if (x.size() != n * size()) throw std::length_error("simulation: wrong sizes");
    Numbers force({n, width});
    const double *t = times.data(), *rows = x.data();
    double* out = force.mutable_data();
    {
      const WithoutGil free;
      for (Count i = 0; i < n && !failed_; ++i)
        simulation_.kernels.friction(tree_, plan_, parameters_.data(), t[i], step, rows + i * size(), out + i * width);
    }
    rethrow();
    return force;
  }
  bool has_friction() const { return plan_.frictions > 0; }

 private:
  WithoutLoopSprings without_springs_;
  WithoutFriction without_friction_{without_springs_.tree()};
  const Tree& tree_ = without_friction_.tree();
  Plan plan_;
  py::object controller_;
  std::vector<py::object> sampled_;  // one a sampling, None where only elements are asked
  py::object pfaffian_;
  bool failed_ = false;
  std::atomic<bool> stopped_{false};
  std::thread::id caller_{};
  Interrupts interrupts_;
  ForceElementList force_elements_{tree_.nv + tree_.loop_nv};
  std::vector<py::object> event_functions_;
  EventFinder events_;
  double since_ = 0.0;
  std::vector<Limit> limits_;
  std::vector<double> parameters_, carried_, velocity_unit_, row_unit_, z_unit_;
  Simulation simulation_{kernels().simulation, tree_, plan_, parameters_.data()};
  AdaptiveRun adaptive_{simulation_};
};

}  // namespace

void bind_simulation(py::module_& m) {
  py::class_<MethodFacts>(m, "Method")
      .def_readonly("name", &MethodFacts::name)
      .def_readonly("stages", &MethodFacts::stages)
      .def_readonly("order", &MethodFacts::order)
      .def_readonly("in_lanes", &MethodFacts::in_lanes)
      .def_readonly("stable", &MethodFacts::stable)
      .def_property_readonly("adaptive", &MethodFacts::adaptive);
  py::dict known, gains;
  for (const MethodFacts& method : methods) known[method.name] = py::cast(method);
  for (const StabilisationFacts& s : stabilisations) gains[s.name] = py::make_tuple(s.gains[0], s.gains[1]);
  m.attr("methods") = known;
  m.attr("stabilisations") = gains;

  py::class_<PySimulation>(m, "Simulation")
      .def(
          py::init<const py::object&, const std::string&, const std::string&, const std::array<double, 2>&, const py::list&,
                   const std::vector<double>&, const Numbers&, py::object, std::vector<py::object>, py::object,
                   const std::vector<std::tuple<py::object, int, bool>>&,
                   const std::vector<std::tuple<int, int, double, double>>&, const std::tuple<Numbers, Numbers, double>&, bool>(),
          py::arg("mechanism"), py::arg("method"), py::arg("stabilisation"), py::arg("gains"), py::arg("force_elements"),
          py::arg("effort_limits"), py::arg("parameters"), py::arg("controller"), py::arg("sampled"), py::arg("pfaffian"),
          py::arg("events"), py::arg("limits"), py::arg("units"), py::arg("records"), py::keep_alive<1, 2>())
      .def_property_readonly("record", &PySimulation::record)
      .def_property_readonly("size", &PySimulation::size)
      .def_property_readonly("integrated", &PySimulation::integrated)
      .def_property_readonly("counted", &PySimulation::counted)
      .def_property_readonly("calls", &PySimulation::calls)
      .def_property("close_stages", &PySimulation::closes_stages, &PySimulation::close_stages)
      .def("look", &PySimulation::look, py::arg("q"), py::arg("time"))
      .def("sample", &PySimulation::sample, py::arg("x").noconvert(), py::arg("time"))
      .def("stop", &PySimulation::stop)
      .def("watch_since", &PySimulation::watch_since, py::arg("time"))
      .def_property_readonly("found", &PySimulation::found)
      .def_property_readonly("ended", &PySimulation::ended)
      .def("run", &PySimulation::run, py::arg("x").noconvert(), py::arg("start"), py::arg("step"), py::arg("first"),
           py::arg("count"), py::arg("out").noconvert())
      .def("run_adaptive", &PySimulation::run_adaptive, py::arg("x").noconvert(), py::arg("time"), py::arg("pause"),
           py::arg("end"), py::arg("step"), py::arg("options"), py::arg("times"), py::arg("out").noconvert(),
           py::arg("last").noconvert())
      .def("run_many", &PySimulation::run_many, py::arg("x"), py::arg("parameters"), py::arg("start"), py::arg("step"),
           py::arg("count"), py::arg("rest"), py::arg("every"), py::arg("threads"))
      .def_property_readonly("has_friction", &PySimulation::has_friction)
      .def("friction", &PySimulation::friction, py::arg("times"), py::arg("x"), py::arg("step"))
      .def("efforts", &PySimulation::efforts, py::arg("times"), py::arg("x"));
}

}  // namespace sarrus::bindings
