// A simulation from its initial to its final time, by steps of the kernels: of fixed length, of adaptive length, or of many runs in parallel. The
// caller passes functions that are called after each step:
//
//   sample(step, x)               store the state after `step` steps
//   watch(time, before, after)    true: the simulation ends with this step
//   stop()                        true: the run is interrupted
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <future>
#include <limits>
#include <optional>
#include <system_error>
#include <vector>

#include "record.hpp"
#include "sampling.hpp"
#include "simulation_kernels.hpp"
#include "step_length.hpp"

namespace sarrus {

using Count = std::int64_t;  // long has 32 bits on some systems

inline bool is_finite(const double* x, Count n) {
  return std::all_of(x, x + n, [](double number) { return std::isfinite(number); });
}

/// A schedule: full steps from the clock's initial time, then one step of length `rest` if that is positive. States are stored after every `every`
/// steps, and at the end.
struct Schedule {
  Clock clock;
  double rest;
  Count every = 1;

  /// Build the schedule. The number of full steps is rounded such that rounding of the end time neither changes it nor causes a tiny last step.
  static Schedule between(double start, double end, double step, Count every = 1) {
    const double full_steps = std::floor((end - start) / step * (1.0 + 1e-14) + 1e-9), rest = end - (start + full_steps * step);
    const Schedule all = {{start, step, 0, static_cast<Count>(full_steps)}, rest > 1e-9 * step ? rest : 0.0};
    return {all.clock, all.rest, std::min(every, std::max(all.steps(), Count{1}))};
  }
  Count steps() const { return clock.count + (rest > 0.0); }
  Count samples() const { return (steps() + every - 1) / every; }
  /// Return a schedule that consists of step k only.
  Schedule step(Count k) const {
    if (k < clock.count) return {{clock.start, clock.step, k, 1}, 0.0};
    return {{clock.start + static_cast<double>(k) * clock.step, rest, 0, 1}, 0.0};
  }
};

/// Call work(begin, end, stopped) for chunks of runs, on several threads. Only the thread that called this function calls stop().
template <class Stop, class Work> void on_threads(Count count, Count threads, Count chunk, Stop&& stop, Work&& work) {
  std::atomic<Count> next{0};
  std::atomic<bool> stopping{false};
  const auto work_on_chunks = [&](bool is_caller) {
    const auto stopped = [&] {
      if (is_caller && stop()) stopping = true;
      return stopping.load();
    };
    try {
      for (Count begin; !stopping && (begin = next.fetch_add(chunk)) < count;)
        work(begin, std::min(count, begin + chunk), stopped);
    } catch (...) {  // an exception, for example out of memory, must not leave a thread
      stopping = true;
      throw;
    }
  };
  std::vector<std::future<void>> helping;
  const Count helpers = std::min(threads, (count + chunk - 1) / chunk) - 1;
  helping.reserve(static_cast<std::size_t>(std::max(Count{0}, helpers)));
  try {
    for (Count t = 0; t < helpers; ++t) helping.push_back(std::async(std::launch::async, work_on_chunks, false));
  } catch (const std::system_error&) {  // the system cannot start another thread: the existing ones do the work
  }
  work_on_chunks(true);
  for (std::future<void>& helper : helping) {
    while (helper.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
      if (stop()) stopping = true;
    helper.get();
  }
}

struct Simulation {
  const SimulationKernels& kernels;
  const Tree& tree;
  const Plan& plan;
  const double* parameter;  // parameters of the force elements

  int integrated() const { return tree.nq + tree.nv + plan.force_elements.nz; }
  int size() const { return integrated() + plan.force_elements.held_size; }
  int row_size() const { return size() + carried_size(plan); }
  /// Return true if a state is finite, and no velocity would move a joint by more than `farthest` in a step [rad, lengths of the mechanism].
  bool is_sound(const double* x, double step) const {
    constexpr double farthest = 1e12;
    if (!is_finite(x, size())) return false;
    for (int k = 0; k < tree.nv; ++k)
      if (std::abs(x[tree.nq + k]) * step > farthest * (plan.velocity_unit ? plan.velocity_unit[k] : 1.0)) return false;
    return true;
  }
  /// Apply is_sound() to the row of a run, and require that its work is finite. The work must be checked because dry friction can stop a motion whose
  /// forces overflow, so that its state remains finite.
  bool is_sound_row(double* row, double step) const {
    if (plan.records && !std::isfinite(*Record<double>(plan, row + size() + Guard<double>::size).supplied)) return false;
    return is_sound(row, step);
  }
  /// Return the row of a run (state and monitored data) with the initial state (q, v, z).
  std::vector<double> begin(const std::vector<double>& state) const {
    std::vector<double> row(row_size());
    std::copy_n(state.begin(), size(), row.begin());
    begin_carried(plan, row.data() + size());
    return row;
  }

  struct Outcome {
    Count steps = 0;
    double status = 0.0;
  };
  /// Take fixed steps from the row: a state, then the run's monitored data. A failed step does not change the row.
  template <class Sample, class Watch, class Stop>
  Outcome run_fixed(const Clock& clock, double* row, Sample&& sample, Watch&& watch, Stop&& stop) const {
    const int n = size(), wide = row_size();
    std::vector<double> before(wide);
    Outcome done;
    while (done.steps < clock.count) {
      std::copy(row, row + wide, before.begin());
      done.status = kernels.advance(tree, plan, parameter, {clock.start, clock.step, clock.first + done.steps, 1}, row);
      if (done.status == 0.0 && !is_sound_row(row, clock.step)) done.status = diverged;
      if (done.status != 0.0) {
        std::copy(before.begin(), before.end(), row);
        break;
      }
      ++done.steps;
      sample(done.steps, row);
      if (watch(clock.start + static_cast<double>(clock.first + done.steps) * clock.step, before.data(), row)) {
        // the run ended within this step: restore the monitored data from before the step
        std::copy(before.begin() + n, before.end(), row + n);
        break;
      }
      if (stop()) {
        done.status = interrupted;
        break;
      }
    }
    return done;
  }

  Outcome run_fixed(const Clock& clock, double* row) const {
    return run_fixed(
        clock, row, [](Count, const double*) {}, [](double, const double*, const double*) { return false; },
        [] { return false; });
  }

  /// Compute the state at the time h (less than a step) after a row. Nothing is recorded.
  void part_of_step(double time, double h, const double* row, double* end_state) const {
    Plan only_step = plan;
    only_step.records = only_step.measures = false, only_step.limits = 0;
    std::vector<double> x(row, row + size() + carried_size(only_step));
    kernels.advance(tree, only_step, parameter, {time, h, 0, 1}, x.data());
    std::copy_n(x.data(), size(), end_state);
  }

  bool nearly_singular(double time, const double* q) const {
    return tree.loops.rows > 0 && kernels.weakest_row(tree, plan, time, q) < 1e-4;
  }

  /// Run many simulations in parallel; only the calling thread calls stop(). States go to `kept` (runs, samples, size). If a run fails, its later
  /// states are NaN; other runs are not affected. sweep.status receives the status of each run.
  template <class Stop>
  void run_many(const Schedule& schedule, const Sweep& sweep, Count count, Count threads, double* kept, Stop&& stop) const {
    const Count samples = schedule.samples(),
                chunk = plan.variants ? std::clamp(count / (2 * threads) / 16 * 16, Count{16}, Count{64})
                                      : 16;  // without variants, all lanes have the same parameters and share one copy
    std::fill(sweep.status, sweep.status + count, static_cast<signed char>(interrupted));
    std::fill(kept, kept + count * samples * size(), std::numeric_limits<double>::quiet_NaN());
    on_threads(count, threads, chunk, stop, [&](Count begin, Count end, auto&& stopped) {
      Sweep mine = sweep;
      mine.x += begin * sweep.size, mine.parameter += begin * sweep.parameter_step, mine.status += begin;
      if (mine.variant) mine.variant += begin;
      run_chunk(schedule, mine, end - begin, kept + begin * samples * size(), stopped);
    });
  }

 private:
  template <class Stopped>
  void run_chunk(const Schedule& schedule, const Sweep& mine, Count count, double* kept, Stopped&& stopped) const {
    const auto& [start, step, first, full_steps] = schedule.clock;
    const Count n = size(), samples = schedule.samples(), piece = 256;  // number of steps between calls of stop()
    std::vector<signed char> status(static_cast<std::size_t>(count));
    Sweep now = mine;
    now.status = status.data();
    std::fill(mine.status, mine.status + count, static_cast<signed char>(0));
    for (Count k = 0, done = 0; k < samples; ++k) {
      for (const Count last = std::min(schedule.steps(), (k + 1) * schedule.every); done < last;) {
        const Count steps = done < full_steps ? std::min({piece, last - done, full_steps - done}) : 1;
        const Clock clock = done < full_steps
                                ? Clock{start, step, first + done, steps}
                                : Clock{start + static_cast<double>(first + full_steps) * step, schedule.rest, 0, 1};
        kernels.advance_many(tree, plan, clock, now, 0, count);
        done += steps;
        for (Count i = 0; i < count; ++i) {
          if (mine.status[i] == 0) mine.status[i] = status[i];
          if (mine.status[i] == 0 && !is_sound_row(mine.x + i * mine.size, step))
            mine.status[i] = static_cast<signed char>(diverged);
        }
        if (stopped()) return std::fill(mine.status, mine.status + count, static_cast<signed char>(interrupted));
      }
      for (Count i = 0; i < count; ++i)
        if (mine.status[i] == 0) std::copy_n(mine.x + i * mine.size, n, kept + (i * samples + k) * n);
      // states that are not copied remain NaN; if all runs have failed, this applies to all later states
      if (std::all_of(mine.status, mine.status + count, [](signed char s) { return s != 0; })) return;
    }
  }
};

/// A run with adaptive steps, which can be continued, and interpolation within its last step.
class AdaptiveRun {
 public:
  struct State {
    double* x;  // (q, v, z, held values)
    double time, next;  // next: length of the next step
    double* guard;  // see record.hpp
  };
  struct Options {
    double relative, absolute, longest;
  };
  struct Samples {
    const double* time;  // times of the samples, in ascending order
    Count count;
    double* kept;  // count x size
  };
  struct Outcome {
    Count steps = 0, rejected = 0, beyond_tolerance = 0, samples = 0;
    double status = 0.0;
    bool finished = false;  // true if the end was reached
  };

  explicit AdaptiveRun(const Simulation& simulation) : s_(simulation) {}

  /// Run until the time passes `pause` or reaches `end`. Step lengths do not depend on the end: a step that is shortened to reach the end yields only
  /// the state `last`. It does not change `at`, so another call continues with full steps. `beyond_tolerance`: number of steps that were accepted
  /// because no other length had a smaller error.
  template <class Watch, class Stop>
  Outcome run(State& at, double pause, double end, const Options& options, const Samples& samples, double* last,
              const Record<double>& record, Watch&& watch, Stop&& stop) {
    const int n = s_.size();
    const double tolerance[] = {options.relative, options.absolute};
    std::vector<double> end_state(n), dense(5 * (2 * s_.tree.nv + s_.plan.force_elements.nz)),
        demanded(s_.tree.nv + s_.tree.loop_nv);  // efforts of controllers at the beginning of the step
    SimulationKernels::TrialResult trial = {0.0, 1.0, demanded.data()};
    const double& error = trial.error;
    Outcome done;
    done.finished = at.time >= end;
    StepLength length(at.next, options.longest);
    const auto before_the_end = [&] {
      std::copy(tail_->x.begin(), tail_->x.end(), at.x);
      at.time = tail_->time, length = tail_->length, std::copy_n(tail_->guard, Guard<double>::size, at.guard);
    };
    const auto note = [&](double reached, const double* x) {
      note_limits(s_.plan, from_, static_cast<const double*>(nullptr), static_cast<const double*>(nullptr), trial.demanded,
                  record);
      record_state_limits(from_, x_.data(), record), record_state_limits(reached, x, record);
    };
    const ForceElements& elements = s_.plan.force_elements;
    done.status = sample(at.time, at.x);
    if (!x_.empty()) keep(samples, at.time, nullptr, done);  // samples that did not fit into the output of the previous call
    while (!done.finished && at.time < pause && done.status == 0.0) {
      const double due = next_sample(elements, at.x + s_.integrated()), instant = one_instant(elements);
      bool samples_end = due < end + instant && at.time + length.next() >= due - instant;
      bool ends = !samples_end && at.time + length.next() >= end;
      bool finishes = ends || (samples_end && due > end - instant);  // `instant`: the two times may differ by rounding
      double reached = samples_end ? due : ends ? end : at.time + length.next();
      const double planned = length.next();
      const double step = samples_end || ends ? reached - at.time : planned;
      if (ends && !tail_) tail_ = Tail{std::vector<double>(at.x, at.x + n), at.time, {at.guard[0], at.guard[1]}, length};
      if (!(at.time + step > at.time)) {
        done.status = no_convergence;
        break;
      }
      const double status = s_.kernels.try_step(s_.tree, s_.plan, s_.parameter, at.time, step, tolerance, at.x, at.guard,
                                                end_state.data(), dense.data(), trial);
      if (status == caller_failed) {
        done.status = status;
        break;
      }
      const bool sound = status == 0.0 && s_.is_sound(end_state.data(), step) && std::isfinite(error);
      if (!sound || (error > 1.0 && !length.settles())) {
        if (step <= 1e-12 * std::max(std::min(1.0, end - at.time), std::abs(at.time))) {
          done.status = status != 0.0 ? status : double(sound ? no_convergence : diverged);
          break;
        }
        length.reject(step, sound ? error : HUGE_VAL, length.rejected() && s_.nearly_singular(at.time, at.x));
        ++done.rejected;
        continue;
      }
      if (trial.part < 1.0) reached = at.time + trial.part * step, samples_end = ends = finishes = false;
      if (samples_end && (done.status = sample(reached, end_state.data())) != 0.0) break;
      x_.assign(at.x, at.x + n), dense_ = dense, from_ = at.time, step_ = step,
                                 std::copy_n(at.guard, Guard<double>::size, guard_);
      keep(samples, finishes ? std::max(reached, end) : reached, end_state.data(), done);
      done.beyond_tolerance += error > 1.0;
      std::copy_n(trial.work, 5, work_);
      const bool seen = watch(reached, x_.data(), end_state.data());
      if (!seen) note(reached, end_state.data());
      if (!seen && s_.plan.measures) *record.supplied += trial.supplied;
      if (ends) {
        std::copy(end_state.begin(), end_state.end(), last);
        before_the_end();
        done.finished = true;
        break;
      }
      ++done.steps;
      at.time = reached;
      const bool cut = step < planned && !length.rejected();
      length.accept(step, error);
      if (cut && length.next() < planned) length = StepLength(planned, options.longest);
      std::copy(end_state.begin(), end_state.end(), at.x);
      if (finishes) std::copy(end_state.begin(), end_state.end(), last), done.finished = true;
      if (seen) break;
      if (stop()) {
        done.status = interrupted;
        if (tail_) before_the_end();
        break;
      }
    }
    at.next = length.next();
    return done;
  }

  /// Interpolate the state at a time within the last step.
  void at(double time, double* x) const {
    s_.kernels.between(s_.tree, s_.plan, s_.parameter, from_, step_, time, x_.data(), guard_, dense_.data(), x);
  }
  /// Return the work of applied forces from the beginning of the last step to a time; only if work is computed.
  double work(double time) const { return value(work_, 1, (time - from_) / step_); }

 private:
  double sample(double time, double* x) const {
    return s_.plan.force_elements.hold() ? s_.kernels.sample(s_.tree, s_.plan, s_.parameter, time, x) : 0.0;
  }

  void record_state_limits(double time, const double* x, const Record<double>& record) const {
    const Tree& tree = s_.tree;
    std::vector<double> q(x, x + tree.nq), v(x + tree.nq, x + tree.nq + tree.nv);
    if (s_.plan.watches_loop_joints) {
      q.resize(tree.nq + tree.loop_nq), v.resize(tree.nv + tree.loop_nv);
      s_.kernels.all_joints(tree, s_.plan, time, x, q.data(), v.data());
    }
    note_limits(s_.plan, time, q.data(), v.data(), static_cast<const double*>(nullptr), record);
  }

  /// Store samples up to the time `upto` within the last step. `end_state`: the state at its end.
  void keep(const Samples& samples, double upto, const double* end_state, Outcome& done) const {
    for (; done.samples < samples.count && samples.time[done.samples] <= upto; ++done.samples) {
      double* to = samples.kept + done.samples * s_.size();
      if (end_state && samples.time[done.samples] == upto)
        std::copy_n(end_state, s_.size(), to);
      else
        at(samples.time[done.samples], to);
    }
  }

  const Simulation& s_;
  std::vector<double> x_, dense_;  // initial state and polynomial of the last step
  double from_ = 0.0, step_ = 1.0, guard_[Guard<double>::size] = {}, work_[5] = {};
  struct Tail {  // state at the beginning of the first step that would pass the end
    std::vector<double> x;
    double time, guard[Guard<double>::size];
    StepLength length;
  };
  std::optional<Tail> tail_;
};

}  // namespace sarrus
