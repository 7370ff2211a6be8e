// A simulation from its start to its end, by the kernels' steps: of fixed length, as long as their error allows, and many side by side.
// What a caller does on the way comes as functions, all of them asked after each step:
//
//   sample(step, x)               keeps the state after so many steps
//   watch(time, before, after)    true: something happened in this step, and the simulation ends with it
//   stop()                        true: it is interrupted
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

/// Whole steps from the clock's start, then one of length `rest` if this is positive; kept is the state after every so many, and the end.
struct Schedule {
  Clock clock;
  double rest;
  Count every = 1;

  /// How many steps there are up to an end, and what is left then, is not decided by rounding.
  static Schedule between(double start, double end, double step, Count every = 1) {
    const double whole = std::floor((end - start) / step * (1.0 + 1e-14) + 1e-9), rest = end - (start + whole * step);
    const Schedule all = {{start, step, 0, static_cast<Count>(whole)}, rest > 1e-9 * step ? rest : 0.0};
    return {all.clock, all.rest, std::min(every, std::max(all.steps(), Count{1}))};
  }
  Count steps() const { return clock.count + (rest > 0.0); }
  Count samples() const { return (steps() + every - 1) / every; }
  /// Its step k, alone.
  Schedule step(Count k) const {
    return {{clock.start + static_cast<double>(k) * clock.step, k < clock.count ? clock.step : rest, 0, 1}, 0.0};
  }
};

/// work(begin, end, stopped) of a chunk of so many runs at a time, on threads of which this is one; only it asks stop().
template <class Stop, class Work> void on_threads(Count count, Count threads, Count chunk, Stop&& stop, Work&& work) {
  std::atomic<Count> next{0};
  std::atomic<bool> stopping{false};
  const auto some = [&](bool asks) {
    const auto stopped = [&] {
      if (asks && stop()) stopping = true;
      return stopping.load();
    };
    try {
      for (Count begin; !stopping && (begin = next.fetch_add(chunk)) < count;)
        work(begin, std::min(count, begin + chunk), stopped);
    } catch (...) {  // out of memory
      stopping = true;
      throw;
    }
  };
  std::vector<std::future<void>> others;
  const Count helpers = std::min(threads, (count + chunk - 1) / chunk) - 1;
  others.reserve(static_cast<std::size_t>(std::max(Count{0}, helpers)));
  try {
    for (Count t = 0; t < helpers; ++t) others.push_back(std::async(std::launch::async, some, false));
  } catch (const std::system_error&) {  // there are no more threads to be had: those that there are do it
  }
  some(true);
  for (std::future<void>& other : others) {
    while (other.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready)
      if (stop()) stopping = true;
    other.get();
  }
}

struct Simulation {
  const SimulationKernels& kernels;
  const Tree& tree;
  const Plan& plan;
  const double* parameter;  // the numbers of its force elements

  int integrated() const { return tree.nq + tree.nv + plan.force_elements.nz; }
  int size() const { return integrated() + plan.force_elements.held; }
  int row_size() const { return size() + carried_size(plan); }
  /// True for a state of a motion: finite, with no velocity that goes beyond every scale of the mechanism in a step [rad, its lengths].
  bool is_sound(const double* x, double step) const {
    constexpr double farthest = 1e12;
    if (!is_finite(x, size())) return false;
    for (int k = 0; k < tree.nv; ++k)
      if (std::abs(x[tree.nq + k]) * step > farthest * (plan.velocity_unit ? plan.velocity_unit[k] : 1.0)) return false;
    return true;
  }
  /// The row of a run that begins at a state (q, v, z).
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
  /// Fixed steps from the row, a state with what it carries, which a step that fails leaves as it was.
  template <class Sample, class Watch, class Stop>
  Outcome run_fixed(const Clock& clock, double* row, Sample&& sample, Watch&& watch, Stop&& stop) const {
    const int n = size(), wide = row_size();
    std::vector<double> before(wide);
    Outcome done;
    while (done.steps < clock.count) {
      std::copy(row, row + wide, before.begin());
      done.status = kernels.advance(tree, plan, parameter, {clock.start, clock.step, clock.first + done.steps, 1}, row);
      if (done.status == 0.0 && !is_sound(row, clock.step)) done.status = diverged;
      if (done.status != 0.0) {
        std::copy(before.begin(), before.end(), row);
        break;
      }
      ++done.steps;
      sample(done.steps, row);
      if (watch(clock.start + static_cast<double>(clock.first + done.steps) * clock.step, before.data(), row)) {
        std::copy(before.begin() + n, before.end(), row + n);  // it ended within this step, of which nothing is recorded
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

  /// The state a part of a step after that of a row; nothing is recorded.
  void part_of_step(double time, double h, const double* row, double* there) const {
    Plan only_step = plan;
    only_step.records = only_step.measures = false, only_step.limits = 0;
    std::vector<double> x(row, row + size() + carried_size(only_step));
    kernels.advance(tree, only_step, parameter, {time, h, 0, 1}, x.data());
    std::copy_n(x.data(), size(), there);
  }

  bool nearly_singular(double time, const double* q) const {
    return tree.loops.rows > 0 && kernels.weakest_row(tree, plan, time, q) < 1e-4;
  }

  /// Many of them side by side, on threads of which this is one; only it asks stop(). States go to kept (sweep, samples, size), NaN from where
  /// one fails, of which the others do not know; how each ended is in sweep.status.
  template <class Stop>
  void run_many(const Schedule& schedule, const Sweep& sweep, Count count, Count threads, double* kept, Stop&& stop) const {
    const Count samples = schedule.samples(), chunk = plan.variants
                                                          ? std::clamp(count / (2 * threads) / 16 * 16, Count{16}, Count{64})
                                                          : 16;  // a copy of their block serves all
    std::fill(sweep.status, sweep.status + count, static_cast<signed char>(interrupted));
    std::fill(kept, kept + count * samples * size(), std::numeric_limits<double>::quiet_NaN());
    on_threads(count, threads, chunk, stop, [&](Count begin, Count end, auto&& stopped) {
      Sweep mine = sweep;
      mine.x += begin * sweep.size, mine.parameter += begin * sweep.parameter_step, mine.status += begin;
      if (mine.which) mine.which += begin;
      run_chunk(schedule, mine, end - begin, kept + begin * samples * size(), stopped);
    });
  }

 private:
  template <class Stopped>
  void run_chunk(const Schedule& schedule, const Sweep& mine, Count count, double* kept, Stopped&& stopped) const {
    const auto& [start, step, first, whole] = schedule.clock;
    const Count n = size(), samples = schedule.samples(), piece = 256;  // steps between looks at whether to stop
    std::vector<signed char> status(static_cast<std::size_t>(count));
    Sweep now = mine;
    now.status = status.data();
    std::fill(mine.status, mine.status + count, static_cast<signed char>(0));
    for (Count k = 0, done = 0; k < samples; ++k) {
      for (const Count last = std::min(schedule.steps(), (k + 1) * schedule.every); done < last;) {
        const Count steps = done < whole ? std::min({piece, last - done, whole - done}) : 1;
        const Clock clock = done < whole ? Clock{start, step, first + done, steps}
                                         : Clock{start + static_cast<double>(first + whole) * step, schedule.rest, 0, 1};
        kernels.advance_many(tree, plan, clock, now, 0, count);
        done += steps;
        for (Count i = 0; i < count; ++i) {
          if (mine.status[i] == 0) mine.status[i] = status[i];
          if (mine.status[i] == 0 && !is_sound(mine.x + i * mine.size, step)) mine.status[i] = static_cast<signed char>(diverged);
        }
        if (stopped()) return std::fill(mine.status, mine.status + count, static_cast<signed char>(interrupted));
      }
      for (Count i = 0; i < count; ++i)
        if (mine.status[i] == 0) std::copy_n(mine.x + i * mine.size, n, kept + (i * samples + k) * n);
      // what is not copied is NaN; where all have failed no more can come
      if (std::all_of(mine.status, mine.status + count, [](signed char s) { return s != 0; })) return;
    }
  }
};

/// Steps of their own length from a state, and what lies within the last of them.
class AdaptiveRun {
 public:
  struct State {
    double* x;  // (q, v, z, held)
    double time, next;  // the length of the next step
    double* guard;  // see record.hpp
  };
  struct Options {
    double relative, absolute, longest;
  };
  struct Samples {
    const double* time;  // in order
    Count count;
    double* kept;  // count x size
  };
  struct Outcome {
    Count steps = 0, rejected = 0, beyond_tolerance = 0, samples = 0;
    double status = 0.0;
    bool finished = false;  // whether the end was reached
  };

  explicit AdaptiveRun(const Simulation& simulation) : s_(simulation) {}

  /// On until `pause` is passed or `end` reached. Steps go on as if there was no end: those that it cuts short only make the state there, `last`,
  /// and leave `at` as it was before, from where another call goes on as if this one had not ended. `beyond_tolerance` counts steps that were
  /// taken because none of another length was better.
  template <class Watch, class Stop>
  Outcome run(State& at, double pause, double end, const Options& options, const Samples& samples, double* last,
              const Record<double>& record, Watch&& watch, Stop&& stop) {
    const int n = s_.size();
    const double tolerance[] = {options.relative, options.absolute};
    std::vector<double> there(n), dense(5 * (2 * s_.tree.nv + s_.plan.force_elements.nz)),
        demanded(s_.tree.nv + s_.tree.loop_nv);  // by controllers, at the start of the step
    SimulationKernels::Taken taken = {0.0, 1.0, demanded.data()};
    const double& error = taken.error;
    Outcome done;
    done.finished = at.time >= end;
    StepLength length(at.next, options.longest);
    const auto before_the_end = [&] {
      std::copy(tail_->x.begin(), tail_->x.end(), at.x);
      at.time = tail_->time, length = tail_->length, std::copy_n(tail_->guard, Guard<double>::size, at.guard);
    };
    const auto note = [&](double reached, const double* x) {
      note_limits(s_.plan, from_, static_cast<const double*>(nullptr), static_cast<const double*>(nullptr), taken.demanded,
                  record);
      note_state(from_, x_.data(), record), note_state(reached, x, record);
    };
    const ForceElements& elements = s_.plan.force_elements;
    done.status = sample(at.time, at.x);
    if (!x_.empty()) keep(samples, at.time, nullptr, done);  // for which the last call had no room
    while (!done.finished && at.time < pause && done.status == 0.0) {
      const double due = next_sample(elements, at.x + s_.integrated()), instant = one_instant(elements);
      bool samples_there = due < end + instant && at.time + length.next() >= due - instant;
      bool ends = !samples_there && at.time + length.next() >= end;
      bool finishes = ends || (samples_there && due > end - instant);  // though rounding may part the two
      double reached = samples_there ? due : ends ? end : at.time + length.next();
      const double planned = length.next();
      const double step = samples_there || ends ? reached - at.time : planned;
      if (ends && !tail_) tail_ = Tail{std::vector<double>(at.x, at.x + n), at.time, {at.guard[0], at.guard[1]}, length};
      if (!(at.time + step > at.time)) {
        done.status = no_convergence;
        break;
      }
      const double status = s_.kernels.try_step(s_.tree, s_.plan, s_.parameter, at.time, step, tolerance, at.x, at.guard,
                                                there.data(), dense.data(), taken);
      if (status == caller_failed) {
        done.status = status;
        break;
      }
      const bool sound = status == 0.0 && s_.is_sound(there.data(), step) && std::isfinite(error);
      if (!sound || (error > 1.0 && !length.settles())) {
        if (step <= 1e-12 * std::max(std::min(1.0, end - at.time), std::abs(at.time))) {
          done.status = status != 0.0 ? status : double(sound ? no_convergence : diverged);
          break;
        }
        length.reject(step, sound ? error : HUGE_VAL, length.rejected() && s_.nearly_singular(at.time, at.x));
        ++done.rejected;
        continue;
      }
      if (taken.part < 1.0) reached = at.time + taken.part * step, samples_there = ends = finishes = false;
      if (samples_there && (done.status = sample(reached, there.data())) != 0.0) break;
      x_.assign(at.x, at.x + n), dense_ = dense, from_ = at.time, step_ = step,
                                 std::copy_n(at.guard, Guard<double>::size, guard_);
      keep(samples, finishes ? std::max(reached, end) : reached, there.data(), done);
      done.beyond_tolerance += error > 1.0;
      std::copy_n(taken.work, 5, work_);
      const bool seen = watch(reached, x_.data(), there.data());
      if (!seen) note(reached, there.data());
      if (!seen && s_.plan.measures) *record.supplied += taken.supplied;
      if (ends) {
        std::copy(there.begin(), there.end(), last);
        before_the_end();
        done.finished = true;
        break;
      }
      ++done.steps;
      at.time = reached;
      const bool cut = step < planned && !length.rejected();
      length.accept(step, error);
      if (cut && length.next() < planned) length = StepLength(planned, options.longest);
      std::copy(there.begin(), there.end(), at.x);
      if (finishes) std::copy(there.begin(), there.end(), last), done.finished = true;
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

  /// The state at a time within the last step.
  void at(double time, double* x) const {
    s_.kernels.between(s_.tree, s_.plan, s_.parameter, from_, step_, time, x_.data(), guard_, dense_.data(), x);
  }
  /// The work of what acts in the last step up to a time, if it is added up.
  double work(double time) const { return value(work_, 1, (time - from_) / step_); }

 private:
  double sample(double time, double* x) const {
    return s_.plan.force_elements.hold() ? s_.kernels.sample(s_.tree, s_.plan, s_.parameter, time, x) : 0.0;
  }

  void note_state(double time, const double* x, const Record<double>& record) const {
    const Tree& tree = s_.tree;
    std::vector<double> q(x, x + tree.nq), v(x + tree.nq, x + tree.nq + tree.nv);
    if (s_.plan.watches_loop_joints) {
      q.resize(tree.nq + tree.loop_nq), v.resize(tree.nv + tree.loop_nv);
      s_.kernels.all_joints(tree, s_.plan, time, x, q.data(), v.data());
    }
    note_limits(s_.plan, time, q.data(), v.data(), static_cast<const double*>(nullptr), record);
  }

  /// Samples up to a time within the last step, which ends at `there`.
  void keep(const Samples& samples, double upto, const double* there, Outcome& done) const {
    for (; done.samples < samples.count && samples.time[done.samples] <= upto; ++done.samples) {
      double* to = samples.kept + done.samples * s_.size();
      if (there && samples.time[done.samples] == upto)
        std::copy_n(there, s_.size(), to);
      else
        at(samples.time[done.samples], to);
    }
  }

  const Simulation& s_;
  std::vector<double> x_, dense_;  // the last step
  double from_ = 0.0, step_ = 1.0, guard_[Guard<double>::size] = {}, work_[5] = {};
  struct Tail {  // where the first step began that would lead beyond the end
    std::vector<double> x;
    double time, guard[Guard<double>::size];
    StepLength length;
  };
  std::optional<Tail> tail_;
};

}  // namespace sarrus
