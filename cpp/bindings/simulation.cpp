// A simulation as Python drives it: stretches of steps, in which the GIL is held only while a function of the caller runs.
#include "simulation.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "../simulation/record.hpp"
#include "../simulation/step_length.hpp"
#include "arrays.hpp"
#include "gil.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Count = std::int64_t;  // long has 32 bits on some systems
using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

Vec3<double> to_vec3(const py::handle& h) {
  const auto x = h.cast<std::array<double, 3>>();
  return vec3<double>(x[0], x[1], x[2]);
}

bool is_finite(const double* x, Count n) {
  for (Count k = 0; k < n; ++k)
    if (!std::isfinite(x[k])) return false;
  return true;
}

/// Whether a run is to end early.
class Interrupts {
 public:
  bool pending() { return ++steps_ % 32 == 0 && now(); }

  bool now() {
    if (!signals_.raised()) return false;
    const WithGil held;
    // Ctrl-C: the run ends with what it has; what another signal's handler raises is the caller's
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_Clear();
    return true;
  }

 private:
  unsigned steps_ = 0;
  Signals signals_;
};

class Simulation {
 public:
  Simulation(const py::object& mechanism, int method, int stabilisation, const std::array<double, 2>& gains,
             const py::dict& actions, py::object controller, py::object pfaffian,
             const std::vector<std::tuple<int, int, double, double>>& limits, bool records)
      : tree_(built(mechanism).tree()), controller_(std::move(controller)), pfaffian_(std::move(pfaffian)) {
    plan_.method = static_cast<Method>(method), plan_.stabilisation = static_cast<Stabilisation>(stabilisation);
    plan_.gains[0] = gains[0], plan_.gains[1] = gains[1];
    plan_.self = this;
    plan_.controller = controller_.is_none() ? nullptr : &call_controller;
    plan_.pfaffian = pfaffian_.is_none() ? nullptr : &call_pfaffian;
    keep(built(mechanism), actions);
    for (const auto& [of, at, lower, upper] : limits) limits_.push_back({static_cast<Quantity>(of), at, lower, upper});
    plan_.limits = static_cast<int>(limits_.size()), plan_.limit = limits_.data();
    // implicit steps are stable whatever the rate, adaptive ones see to it themselves; and rows that ask Python would be asked more often
    plan_.watches_rates = plan_.method != Method::implicit_midpoint && plan_.method != Method::dopri5 &&
                          tree_.loops.pfaffian_values == 0 && has_rates(tree_, plan_.actions);
    plan_.records = records && (plan_.limits > 0 || plan_.watches_rates);
    record_.resize(record_size(plan_));
    begin_record(plan_, record_.data());
  }
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// The run that is on its way, or the next one, ends at its next step: what a signal's handler may call.
  void stop() { stopped_ = true; }
  bool closes_stages() const { return plan_.close_stages; }
  void close_stages(bool yes) { plan_.close_stages = yes; }
  bool calls() const { return plan_.controller != nullptr; }
  int recorded() const { return record_size(plan_); }
  /// Of one run, before it begins.
  Numbers fresh_record() const {
    Numbers record(recorded());
    begin_record(plan_, record.mutable_data());
    return record;
  }
  Numbers record() const { return copy_of(record_.data(), recorded()); }
  int size() const { return tree_.nq + tree_.nv + plan_.actions.memory; }

  /// Fixed steps of h from `start + first h`; the state after every `every`-th is kept in `out`. Returns how many steps were made, and
  /// the status. `watch(time, before, after)`, if given, is asked after each step and ends the stretch by True.
  py::tuple run(Numbers& x, const Numbers& parameters, double start, double h, Count first, Count count, Count every,
                Numbers& out, const py::object& watch) {
    check(x, parameters);
    double* kept = out.mutable_data();
    const double* p = parameters.data();
    const int n = size();
    std::vector<double> state(x.data(), x.data() + n);
    state.insert(state.end(), record_.begin(), record_.end());
    std::vector<double> before = state;
    double* row = state.data();
    const bool watched = !watch.is_none();
    Interrupts interrupts;
    double status = 0.0;
    Count done = 0;
    {
      const WithoutGil free;
      while (done < count) {
        before = state;
        status = kernels().simulation.advance(tree_, plan_, p, {start, h, first + done, 1}, row);
        if (status == 0.0 && !is_finite(row, n)) status = diverged;
        if (status != 0.0) {
          state = before;
          break;
        }
        ++done;
        if (done % every == 0) std::copy(row, row + n, kept + (done / every - 1) * n);
        if (watched && ask(watch, start + static_cast<double>(first + done) * h, before.data(), row)) {
          std::copy(before.begin() + n, before.end(), row + n);  // it ended within this step
          break;
        }
        if (interrupts.pending() || stopped_) {
          status = interrupted;
          break;
        }
      }
    }
    std::copy(row, row + n, x.mutable_data());
    record_.assign(row + n, row + state.size());
    rethrow();
    return py::make_tuple(done, static_cast<int>(status));
  }

  /// The state a part of a step after x, of which nothing is recorded.
  Numbers part_of_step(const Numbers& x, const Numbers& parameters, double time, double h) {
    check(x, parameters);
    Numbers there = copy_of(x.data(), size());
    double* row = there.mutable_data();
    Plan plan = plan_;
    plan.records = false, plan.limits = 0;
    {
      const WithoutGil free;
      kernels().simulation.advance(tree_, plan, parameters.data(), {time, h, 0, 1}, row);
    }
    rethrow();
    return there;
  }

  /// Dormand and Prince's steps from `time`, as long as their tolerances ask, until `pause` is passed or `end` reached. Steps go on as if
  /// there was no end: those that an end makes shorter only make the state there, in `last`, and leave x, time and the next step as they
  /// were, from where another call goes on as if this one had not ended. States at `times`, in order, go to `out`. Returns the time, the next
  /// step, the status, how many of `times` were had, steps taken, refused, and taken though off by more than allowed, and whether the end
  /// was reached.
  py::tuple run_adaptive(Numbers& x, const Numbers& parameters, double time, double pause, double end, double h, double longest,
                         const std::array<double, 2>& tolerance, const Numbers& times, Numbers& out, Numbers& last,
                         const py::object& watch) {
    check(x, parameters);
    const int n = size(), width = 2 * tree_.nv + plan_.actions.memory;
    double *row = x.mutable_data(), *kept = out.mutable_data(), *at_end = last.mutable_data();
    const double *p = parameters.data(), *sample = times.data();
    const Count samples = times.size();
    std::vector<double> there(n), dense(5 * width), told(1 + tree_.nv);  // the error, and what controllers ask for at the start
    const auto record = [&](double begun, double reached, const double* end_state) {
      note_limits(plan_, begun, before_.data(), before_.data() + tree_.nq, told.data() + 1, record_.data());
      note_limits(plan_, reached, end_state, end_state + tree_.nq, static_cast<const double*>(nullptr), record_.data());
    };
    const bool watched = !watch.is_none();
    Interrupts interrupts;
    double status = 0.0;
    Count had = 0, taken = 0, refused = 0, loose = 0;
    bool finished = time >= end;
    StepLength length(h, longest);
    const auto back_to_tail = [&] {
      std::copy(tail_->x.begin(), tail_->x.end(), row);
      time = tail_->time, length = tail_->length;
    };
    // samples that the last stretch had no room for lie in its last step
    for (; !before_.empty() && had < samples && sample[had] <= time; ++had)
      kernels().simulation.between(tree_, plan_, p, from_, step_, sample[had], before_.data(), dense_.data(), kept + had * n);
    {
      const WithoutGil free;
      while (!finished && time < pause) {
        const bool beyond = time + length.next() >= end;
        const double step = beyond ? end - time : length.next();
        if (beyond && !tail_) tail_ = Tail{std::vector<double>(row, row + n), time, length};
        if (!(time + step > time)) {
          status = no_convergence;
          break;
        }
        status = kernels().simulation.try_step(tree_, plan_, p, time, step, tolerance.data(), row, there.data(), dense.data(),
                                               told.data());
        const double error = told[0];
        if (status == caller_failed) break;
        const bool sound = status == 0.0 && is_finite(there.data(), n) && std::isfinite(error);
        if (!sound || (error > 1.0 && !length.settles())) {
          if (step <= 1e-12 * std::max(1.0, std::abs(time))) {
            if (status == 0.0) status = sound ? no_convergence : diverged;
            break;
          }
          status = 0.0;
          length.refuse(step, sound ? error : HUGE_VAL, length.refused() && nearly_singular(time, row));
          ++refused;
          continue;
        }
        const double reached = beyond ? end : time + step;
        for (; had < samples && sample[had] <= reached; ++had) {
          double* to = kept + had * n;
          if (sample[had] == reached)
            std::copy(there.begin(), there.end(), to);
          else
            kernels().simulation.between(tree_, plan_, p, time, step, sample[had], row, dense.data(), to);
        }
        loose += error > 1.0;
        before_.assign(row, row + n), dense_ = dense, from_ = time, step_ = step;
        if (beyond) {
          std::copy(there.begin(), there.end(), at_end);
          finished = true;
          back_to_tail();
          if (!(watched && ask(watch, end, before_.data(), at_end))) record(from_, end, at_end);
          break;
        }
        ++taken;
        time = reached;
        length.accept(step, error);
        const bool ends = watched && ask(watch, time, before_.data(), there.data());
        if (!ends) record(from_, time, there.data());
        std::copy(there.begin(), there.end(), row);
        if (ends) break;
        if (interrupts.pending() || stopped_) {
          status = interrupted;
          if (tail_) back_to_tail();
          break;
        }
      }
    }
    rethrow();
    return py::make_tuple(time, length.next(), static_cast<int>(status), had, taken, refused, loose, finished);
  }

  /// The state at a time within the last step of run_adaptive.
  Numbers at(double time, const Numbers& parameters) {
    Numbers out(size());
    kernels().simulation.between(tree_, plan_, parameters.data(), from_, step_, time, before_.data(), dense_.data(),
                                 out.mutable_data());
    rethrow();
    return out;
  }

  /// Of the constraint Jacobian at q and rest.
  int rank(const Numbers& q, double time) {
    if (q.size() != tree_.nq) throw std::length_error("simulation: wrong sizes");
    std::vector<double> x(q.data(), q.data() + q.size());
    x.resize(size());
    double weakest = 0.0;
    const int found = kernels().simulation.rank(tree_, plan_, time, x.data(), &weakest);
    rethrow();
    return found;
  }

  /// Many runs, (runs, size), each by fixed steps; states after every `every`-th step go to out (runs, kept, size). Status by run; a run
  /// that fails has NaN from there on, and the others do not know. Behind each state in x stands its record.
  py::array_t<signed char> run_many(Numbers& x, const Numbers& parameters, double start, double h, Count count, Count every,
                                    Numbers& out, Count threads) {
    const Count runs = x.shape(0), n = size(), wide = x.shape(1), samples = out.shape(1);
    if (wide != n + recorded()) throw std::length_error("simulation: wrong sizes");
    py::array_t<signed char> verdicts(runs);
    double *rows = x.mutable_data(), *kept = out.mutable_data();
    signed char* verdict = verdicts.mutable_data();
    std::fill(verdict, verdict + runs, static_cast<signed char>(interrupted));
    std::fill(kept, kept + runs * samples * n, std::numeric_limits<double>::quiet_NaN());
    const Runs all = {rows, static_cast<int>(wide), parameters.data(), parameters.ndim() == 2 ? parameters.shape(1) : 0, nullptr};
    const Count chunk = 16, piece = 256;  // runs of one thread; steps between looks at whether to stop
    std::atomic<Count> next{0};
    std::atomic<bool> stop{false}, failed{false};
    Interrupts interrupts;
    const auto work = [&](bool asks) {
      std::vector<signed char> status(runs > 0 ? static_cast<std::size_t>(chunk) : 0);
      for (Count begin; !stop && (begin = next.fetch_add(chunk)) < runs;) {
        const Count end = std::min(runs, begin + chunk);
        Runs mine = all;
        mine.x += begin * wide, mine.parameter += begin * mine.parameter_step, mine.status = status.data();
        std::fill(verdict + begin, verdict + end, 0);
        for (Count k = 0; k < samples && !stop; ++k) {
          const Count last = std::min(count, (k + 1) * every);
          for (Count first = k * every; first < last && !stop; first += piece) {
            kernels().simulation.advance_many(tree_, plan_, {start, h, first, std::min(piece, last - first)}, mine, 0,
                                              end - begin);
            for (Count i = begin; i < end; ++i) {
              if (verdict[i] == 0) verdict[i] = status[i - begin];
              if (verdict[i] == 0 && !is_finite(rows + i * wide, n)) verdict[i] = static_cast<signed char>(diverged);
            }
            if (asks && interrupts.now()) stop = true;
          }
          for (Count i = begin; i < end && !stop; ++i)
            if (verdict[i] == 0) std::copy(rows + i * wide, rows + i * wide + n, kept + (i * samples + k) * n);
          // what is not copied is NaN; where all have failed no more can come
          if (std::all_of(verdict + begin, verdict + end, [](signed char v) { return v != 0; })) break;
        }
        if (stop) std::fill(verdict + begin, verdict + end, static_cast<signed char>(interrupted));
      }
    };
    {
      const WithoutGil free;
      std::mutex guard;
      std::condition_variable idle;
      const Count wanted = std::max(Count{0}, std::min(threads, (runs + chunk - 1) / chunk) - 1);
      Count running = wanted;
      std::vector<std::thread> others;
      others.reserve(static_cast<std::size_t>(wanted));
      const auto guarded = [&](bool asks) {  // no exception may leave a thread, nor pass threads that still run
        try {
          work(asks);
        } catch (...) {  // out of memory
          failed = stop = true;
        }
      };
      try {
        for (Count t = 0; t < wanted; ++t)
          others.emplace_back([&] {
            guarded(false);
            const std::lock_guard<std::mutex> lock(guard);
            --running;
            idle.notify_one();
          });
      } catch (...) {  // the system gives no more threads: those that there are do it
        const std::lock_guard<std::mutex> lock(guard);
        running -= wanted - static_cast<Count>(others.size());
      }
      guarded(true);
      std::unique_lock<std::mutex> lock(guard);
      while (!idle.wait_for(lock, std::chrono::milliseconds(50), [&] { return running == 0; }))
        if (interrupts.now()) stop = true;
      lock.unlock();
      for (std::thread& t : others) t.join();
    }
    if (failed) throw std::bad_alloc();
    rethrow();
    return verdicts;
  }

  /// The generalised force (n, nv) of all that acts in states (n, size) at times (n,).
  Numbers efforts(const Numbers& times, const Numbers& x, const Numbers& parameters) {
    const Count n = times.size();
    if (x.size() != n * size() || parameters.size() != plan_.actions.parameters)
      throw std::length_error("simulation: wrong sizes");
    Numbers tau({n, static_cast<Count>(tree_.nv)});
    const double *t = times.data(), *rows = x.data(), *p = parameters.data();
    double* out = tau.mutable_data();
    {
      const WithoutGil free;
      for (Count i = 0; i < n && !failed_; ++i)
        kernels().simulation.act(tree_, plan_, p, t[i], rows + i * size(), out + i * tree_.nv);
    }
    rethrow();
    return tau;
  }

 private:
  void check(const Numbers& x, const Numbers& parameters) const {
    if (x.size() != size() || parameters.size() != plan_.actions.parameters) throw std::length_error("simulation: wrong sizes");
  }

  bool nearly_singular(double time, const double* x) const {
    double weakest = 1.0;
    if (tree_.loops.rows > 0) kernels().simulation.rank(tree_, plan_, time, x, &weakest);
    return weakest < 1e-4;
  }

  void keep(const Mechanism& m, const py::dict& actions) {
    Actions& a = plan_.actions;
    const auto law = [&](const py::handle& h) {
      const auto t = h.cast<py::tuple>();
      const auto numbers = [&](int k) { return t[k].cast<std::vector<double>>(); };
      laws_.push_back({numbers(0), numbers(1), numbers(2)});
      return &laws_.back();
    };
    const auto remember = [&] { return a.memory++; };
    const auto read = [&](int count) {
      a.parameters += count;
      return a.parameters - count;
    };
    for (const py::handle& h : actions["controllers"].cast<py::list>()) {
      const auto t = h.cast<py::tuple>();
      const Law* target = law(t[2]);
      const int memory = remember();
      controllers_.push_back({t[0].cast<int>(), t[1].cast<int>(), memory, target, read(5)});
    }
    for (const py::handle& h : actions["efforts"].cast<py::list>()) {
      const auto t = h.cast<py::tuple>();
      efforts_.push_back({t[0].cast<int>(), law(t[1])});
    }
    for (const py::handle& h : actions["stictions"].cast<py::list>()) {
      const int memory = remember();
      stictions_.push_back({h.cast<int>(), memory, read(5)});
    }
    for (const py::handle& h : actions["contacts"].cast<py::list>()) {
      const auto t = h.cast<py::tuple>();
      const auto& frame = m.frames().at(t[0].cast<std::string>());
      const Vec3<double> center = times(frame.X.R, to_vec3(t[1])) + frame.X.p;
      contacts_.push_back({frame.body, center, to_vec3(t[2]), t[3].cast<double>(), t[4].cast<double>(), read(5)});
    }
    for (const py::handle& h : actions["end_stops"].cast<py::list>()) {
      const auto t = h.cast<py::tuple>();
      end_stops_.push_back({t[0].cast<int>(), t[1].cast<int>(), read(4)});
    }
    effort_limits_ = actions["effort_limits"].cast<std::vector<double>>();
    for (const py::handle& h : actions["computed_torque"].cast<py::list>()) targets_.push_back(law(h));
    a.target = targets_.empty() ? nullptr : targets_.data();
    if (a.target) a.computed = read(2 * tree_.nv);
    a.controllers = static_cast<int>(controllers_.size()), a.controller = controllers_.data();
    a.efforts = static_cast<int>(efforts_.size()), a.effort = efforts_.data();
    a.stictions = static_cast<int>(stictions_.size()), a.stiction = stictions_.data();
    a.end_stops = static_cast<int>(end_stops_.size()), a.end_stop = end_stops_.data();
    a.effort_limit = effort_limits_.empty() ? nullptr : effort_limits_.data();
    a.contacts = static_cast<int>(contacts_.size()), a.contact = contacts_.data();
  }

  static Numbers copy_of(const double* from, Count n) {
    Numbers x(n);
    std::copy(from, from + n, x.mutable_data());
    return x;
  }

  /// It returns (2, nv): of motors, and of other forces.
  static bool call_controller(void* self, double time, const double* q, const double* v, double* motor, double* tau) {
    Simulation& s = *static_cast<Simulation*>(self);
    const WithGil held;
    try {
      const int nv = s.tree_.nv;
      const Numbers both =
          py::cast<Numbers>(call_python(s.controller_, py::make_tuple(time, copy_of(q, s.tree_.nq), copy_of(v, nv))));
      for (int k = 0; k < nv; ++k) motor[k] += both.data()[k], tau[k] += both.data()[nv + k];
      return true;
    } catch (py::error_already_set& e) {
      e.restore();
    }
    s.failed_ = true;
    return false;
  }

  static bool call_pfaffian(void* self, const double* q, const double* v, double* numbers) {
    Simulation& s = *static_cast<Simulation*>(self);
    const WithGil held;
    try {
      const Numbers values =
          py::cast<Numbers>(call_python(s.pfaffian_, py::make_tuple(copy_of(q, s.tree_.nq), copy_of(v, s.tree_.nv))));
      std::copy(values.data(), values.data() + s.tree_.loops.pfaffian_values, numbers);
      return true;
    } catch (py::error_already_set& e) {
      e.restore();
    }
    s.failed_ = true;
    return false;
  }

  bool ask(const py::object& watch, double time, const double* before, const double* after) {
    const WithGil held;
    try {
      return py::cast<bool>(call_python(watch, py::make_tuple(time, copy_of(before, size()), copy_of(after, size()))));
    } catch (py::error_already_set& e) {
      e.restore();
    }
    failed_ = true;
    return true;
  }

  void rethrow() {
    failed_ = false;
    if (PyErr_Occurred()) throw py::error_already_set();
  }

  const Tree& tree_;
  Plan plan_{};
  py::object controller_, pfaffian_;
  bool failed_ = false;
  std::atomic<bool> stopped_{false};
  std::deque<std::vector<double>> numbers_;
  std::deque<Law> laws_;
  std::vector<const Law*> targets_;
  std::vector<Controller> controllers_;
  std::vector<PrescribedEffort> efforts_;
  std::vector<Stiction> stictions_;
  std::vector<Contact> contacts_;
  std::vector<EndStop> end_stops_;
  std::vector<double> effort_limits_, record_;
  std::vector<Limit> limits_;
  struct Tail {  // where the first step stood that would lead beyond the end
    std::vector<double> x;
    double time;
    StepLength length;
  };
  std::optional<Tail> tail_;
  std::vector<double> before_, dense_;
  double from_ = 0.0, step_ = 1.0;
};

}  // namespace

void bind_simulation(py::module_& m) {
  py::class_<Simulation>(m, "Simulation")
      .def(py::init<const py::object&, int, int, const std::array<double, 2>&, const py::dict&, py::object, py::object,
                    const std::vector<std::tuple<int, int, double, double>>&, bool>(),
           py::arg("mechanism"), py::arg("method"), py::arg("stabilisation"), py::arg("gains"), py::arg("actions"),
           py::arg("controller"), py::arg("pfaffian"), py::arg("limits"), py::arg("records"), py::keep_alive<1, 2>())
      .def_property_readonly("record", &Simulation::record)
      .def_property_readonly("recorded", &Simulation::recorded)
      .def("begin_record", &Simulation::fresh_record)
      .def("part_of_step", &Simulation::part_of_step, py::arg("x"), py::arg("parameters"), py::arg("time"), py::arg("step"))
      .def_property_readonly("size", &Simulation::size)
      .def("rank", &Simulation::rank, py::arg("q"), py::arg("time"))
      .def_property("close_stages", &Simulation::closes_stages, &Simulation::close_stages)
      .def("stop", &Simulation::stop)
      .def_property_readonly("calls", &Simulation::calls)
      .def("run", &Simulation::run, py::arg("x").noconvert(), py::arg("parameters"), py::arg("start"), py::arg("step"),
           py::arg("first"), py::arg("count"), py::arg("every"), py::arg("out").noconvert(), py::arg("watch"))
      .def("run_adaptive", &Simulation::run_adaptive, py::arg("x").noconvert(), py::arg("parameters"), py::arg("time"),
           py::arg("pause"), py::arg("end"), py::arg("step"), py::arg("longest"), py::arg("tolerance"), py::arg("times"),
           py::arg("out").noconvert(), py::arg("last").noconvert(), py::arg("watch"))
      .def("at", &Simulation::at, py::arg("time"), py::arg("parameters"))
      .def("run_many", &Simulation::run_many, py::arg("x").noconvert(), py::arg("parameters"), py::arg("start"), py::arg("step"),
           py::arg("count"), py::arg("every"), py::arg("out").noconvert(), py::arg("threads"))
      .def("efforts", &Simulation::efforts, py::arg("times"), py::arg("x"), py::arg("parameters"));
}

}  // namespace sarrus::bindings
