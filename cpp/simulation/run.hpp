// A run, which can be advanced in several calls by steps of fixed or adaptive length. Contains its samples, the events within its steps, and
// the data that another run needs to continue it.
#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "../loops/path_motion.hpp"
#include "driver.hpp"
#include "events.hpp"

namespace sarrus {

class Run {
 public:
  struct Shown {
    double time;
    std::vector<double> x;
  };
  /// Current state of the run.
  struct State {
    std::vector<double> x;  // (q, v, z, held values)
    double start;  // times of fixed steps are start + k dt
    Count k;
    double dt, t, h;  // h: length of the next adaptive step
    // last output state; it differs from x if the run ended within a step, because x is then the beginning of that step, where a later run continues
    Shown shown;

    template <class Field> void fields(Field&& field) {
      field("x", x), field("start", start), field("k", k), field("dt", dt), field("t", t), field("h", h), field("shown", shown);
    }
  };
  /// Functions of the caller.
  struct Caller {
    std::function<double(int event, double time, const double* x)>
        event;  // the event's function; NaN if it failed, which ends the run
    std::function<bool()> stop;  // called after each step; true interrupts the run
  };
  /// Times and states, one row each.
  struct Segment {
    std::vector<double> time, x;
    double status = 0.0;
  };

  State at;
  std::vector<double> carried;  // see record.hpp
  EventFinder events;
  Count steps = 0, rejected = 0, beyond_tolerance = 0;

  Run(const Simulation& simulation, Caller caller) : s_(simulation), adaptive_(simulation), caller_(std::move(caller)) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool ended() const { return events.ended_by >= 0; }
  bool finished() const { return finished_; }
  Record<double> record() { return {s_.plan, carried.data() + Guard<double>::size}; }

  /// Begin a run at a state. Controllers take the samples that are due at that time.
  void begin(std::vector<double> x, double time, double dt) {
    at = {std::move(x), time, 0, dt, time, dt, {}};
    check_redundancy();
    sample();
  }
  /// Restart at the current state with other force elements, whose sampling begins there.
  void begin_anew() {
    at.t = at.start = at.shown.time, at.x = at.shown.x, at.k = 0;
    std::fill(at.x.begin() + s_.integrated(), at.x.end() - (s_.plan.counts() ? s_.tree.loop_nq : 0), 0.0);
    sample();
  }
  /// Determine at the current configuration if stages are projected onto the loops, because redundant rows are consistent only there.
  void check_redundancy() {
    const bool projects = s_.plan.stabilisation == Stabilisation::projection && s_.tree.loops.rows > 0;
    Guard<double>(carried.data()).closes = projects ? s_.kernels.only_on_loops(s_.tree, s_.plan, at.t, at.x.data()) : 0.0;
  }

  /// Set the end of the run and its samples. With fixed steps these are the states after every `every` steps and at the end, or states at `times`,
  /// interpolated between steps. With adaptive steps, `times`, or every dt and the end. The state at the beginning is the first sample, unless
  /// `times` begin later. Events up to the last output state are not reported again.
  void aim(double end, std::optional<std::vector<double>> times, Count every, const AdaptiveRun::Options& options) {
    end_ = end, since_ = at.shown.time, every_ = every, options_ = options, sampled_ = 0;
    begins_ = !times || (!times->empty() && times->front() == since_);
    if (times && begins_) times->erase(times->begin());
    times_ = std::move(times);
    finished_ = since_ >= end && refused_ == 0.0;
  }

  /// Advance by at most this number of steps, or of samples if steps are adaptive, and return the samples of this stretch.
  Segment advance(Count most) {
    const auto n = static_cast<std::ptrdiff_t>(at.x.size());
    Segment first = {{at.shown.time}, at.shown.x, refused_};
    finished_ |= refused_ != 0.0;  // failure before the first step
    Segment all = finished_ ? first : facts(s_.plan.method).adaptive() ? adaptive(most) : fixed(most);
    all.time.erase(all.time.begin()), all.x.erase(all.x.begin(), all.x.begin() + n);
    if (std::exchange(begins_, false)) {
      all.time.insert(all.time.begin(), first.time[0]);
      all.x.insert(all.x.begin(), first.x.begin(), first.x.end());
    }
    return all;
  }

 private:
  void sample() {
    refused_ = s_.kernels.sample(s_.tree, s_.plan, s_.parameter, at.t, at.x.data());
    at.shown = {at.t, at.x};
  }

  auto watching(double time) {
    events.begin(time, since_);
    return [this, last = time](double now, const double* before, const double* after) mutable {
      const double begun = std::exchange(last, now);
      if (s_.plan.measures && begun < since_ && facts(s_.plan.method).adaptive())
        *record().supplied -= adaptive_.work(std::min(now, since_));  // see subtract_counted_work()
      const bool seen =
          events.any() && events(now, before, after, s_.size(), caller_.event,
                                 [this](const double* x, double t, double h, double* state) { within_step(x, t, h, state); });
      if (ended()) record_part(begun, before);
      return seen;
    };
  }

  /// Record the monitored data of the last step from the time `begun` to the event that ended the run.
  void record_part(double begun, const double* before) {
    const double end = events.occurred.back().time, h = end - begun;
    if (facts(s_.plan.method).adaptive()) {
      if (s_.plan.measures) *record().supplied += adaptive_.work(end);
      return;
    }
    carried_at_end_ = h > 0.0 ? carried_after(begun, end, {before, before + s_.row_size()})
                              : std::vector<double>(before + s_.size(), before + s_.row_size());
  }
  /// Subtract the work of the first step up to the last output state, because it belongs to the earlier run that ended there.
  void subtract_counted_work() {
    std::vector<double> row(at.x);
    row.insert(row.end(), carried.begin(), carried.end());
    std::vector<double> counted = carried_after(at.t, since_, row);
    const Record<double> now = record(), later(s_.plan, counted.data() + Guard<double>::size);
    Work<double>{*now.supplied - *later.supplied, *now.quadrature_error - *later.quadrature_error,
                 now.cones ? *now.pushed - *later.pushed : 0.0}
        .note(now);
  }
  /// Return the monitored data after a part of a step of fixed length, which begins with this row.
  std::vector<double> carried_after(double begin, double end, std::vector<double> row) const {
    Plan plan = s_.plan;
    plan.watches_rates = false;
    s_.kernels.advance(s_.tree, plan, s_.parameter, {begin, end - begin, 0, 1}, row.data());
    return {row.begin() + s_.size(), row.end()};
  }

  /// Compute a state within the last step: by the polynomial of an adaptive step, or by a shorter step.
  void within_step(const double* x, double time, double h, double* state) const {
    if (facts(s_.plan.method).adaptive()) return adaptive_.at(time + h, state);
    s_.part_of_step(time, h, x, state);
  }

  /// Replace the last state by that of the event that ended the run.
  void end_by_event(Segment& segment) {
    at.t = segment.time.back() = events.occurred.back().time, at.x = events.end;
    std::copy(at.x.begin(), at.x.end(), segment.x.end() - s_.size());
    at.shown = {at.t, at.x};
    finished_ = true;
  }

  /// Take steps. The first row of the result is the state before them, and the others are samples.
  Segment fixed(Count most) {
    const Count before = at.k;
    if (s_.plan.measures && at.t < since_) subtract_counted_work();
    Segment steps = every_step(most);
    return times_ ? at_times(steps) : every_ > 1 ? every_few(steps, before) : steps;
  }

  Segment every_few(const Segment& steps, Count before) const {
    Segment kept = {{}, {}, steps.status};
    const auto count = static_cast<Count>(steps.time.size());
    for (Count k = 0; k < count; ++k)
      if (k == 0 || (before + k) % every_ == 0 || (finished_ && k + 1 == count)) keep(kept, steps.time[k], row(steps, k));
    return kept;
  }

  /// Interpolate at the times of samples. The state at which an event ended the run is a sample, too.
  Segment at_times(const Segment& steps) {
    Segment kept = {{}, {}, steps.status};
    keep(kept, steps.time[0], row(steps, 0));
    const double last = steps.time.back();
    for (const auto all = static_cast<Count>(times_->size()); sampled_ < all && (*times_)[sampled_] <= last; ++sampled_) {
      const double time = (*times_)[sampled_];
      const auto after = std::upper_bound(steps.time.begin(), steps.time.end(), time);
      const Count k = after - steps.time.begin() - 1;
      keep(kept, time, row(steps, k));
      if (time > steps.time[k]) interpolate(steps, k, time, &*(kept.x.end() - s_.size()));
    }
    if (ended()) {
      if (kept.time.size() == 1 || kept.time.back() != last) keep(kept, last, row(steps, 0));
      std::copy_n(row(steps, static_cast<Count>(steps.time.size()) - 1), s_.size(), kept.x.end() - s_.size());
    }
    return kept;
  }

  /// Interpolate after step k: coordinates and velocities by Hermite's cubic; internal states and counted turns linearly, except for the data of
  /// contacts of shapes, which begin with identifiers. Values that are held between samples stay those of step k, which x contains.
  void interpolate(const Segment& steps, Count k, double time, double* x) const {
    const Tree& tree = s_.tree;
    const double *x0 = row(steps, k), *x1 = row(steps, k + 1), begin = steps.time[k], end = steps.time[k + 1];
    Arena& arena = thread_arena();
    const Arena::Scope scope(arena);
    const Chart chart(tree, arena);
    const SplinePoint p = cubic(tree, arena, chart, {x0, x0 + tree.nq, x1, x1 + tree.nq, begin, end}, time);
    std::copy_n(p.q, tree.nq, x);
    chart.velocities(p.q, p.rate, x + tree.nq);
    const auto linear = [&](int from, int to) {
      for (int i = from; i < to; ++i) x[i] = (x1[i] - x0[i]) / (end - begin) * (time - begin) + x0[i];
    };
    int first = tree.nq + tree.nv;
    s_.plan.force_elements.each([&](const auto& element) {
      if constexpr (std::decay_t<decltype(element)>::states_jump) {
        const int at = tree.nq + tree.nv + element.iz;
        linear(first, at), first = at + element.states();
      }
    });
    linear(first, s_.integrated());
    if (s_.plan.counts()) linear(s_.size() - tree.loop_nq, s_.size());
  }

  const double* row(const Segment& steps, Count k) const { return steps.x.data() + k * s_.size(); }
  void keep(Segment& kept, double time, const double* x) const {
    kept.time.push_back(time), kept.x.insert(kept.x.end(), x, x + s_.size());
  }

  Segment every_step(Count most) {
    const Schedule all = Schedule::between(at.start, end_, at.dt);
    const Count full_steps = std::min(most, all.clock.count - at.k);
    if (full_steps <= 0) return rest(all.rest);
    Segment segment = {{at.t}, at.x};
    const Clock clock = {at.start, at.dt, at.k, full_steps};
    segment.status = run(clock, at.x, segment);
    const Count made = static_cast<Count>(segment.time.size()) - 1;
    at.k += made, steps += made;
    at.t = at.start + static_cast<double>(at.k) * at.dt;
    const bool arrived = at.k == all.clock.count;
    finished_ = segment.status != 0.0 || (arrived && all.rest == 0.0);
    if (arrived && std::abs(segment.time.back() - end_) <= 1e-9 * at.dt) segment.time.back() = end_;  // the exact end
    if (ended()) {
      end_by_event(segment);
      at.start = at.t, at.k = 0;  // a later run continues from this state
      return segment;
    }
    at.shown = {at.t, at.x};
    return segment;
  }

  /// Take the remaining part of a step, up to the end time. Its end is output, but a later run does not continue from it.
  Segment rest(double length) {
    at.shown = {at.t, at.x}, finished_ = true;
    Segment segment = {{at.t}, at.x};
    if (length == 0.0) return segment;
    std::vector<double> x = at.x;
    segment.status = run({at.t, length, 0, 1}, x, segment);
    if (segment.status != 0.0) {
      segment.time.resize(1), segment.x.resize(s_.size());
    } else if (ended()) {
      end_by_event(segment);
      at.start = at.t, at.k = 0;
    } else {
      segment.time.back() = end_;
      at.shown = {end_, std::move(x)};
    }
    return segment;
  }

  /// Integrate from x, append the samples to the segment, and return the status.
  double run(const Clock& clock, std::vector<double>& x, Segment& segment) {
    const auto n = static_cast<std::ptrdiff_t>(x.size());
    std::vector<double> row(x);
    row.insert(row.end(), carried.begin(), carried.end());
    segment.x.reserve(static_cast<std::size_t>((clock.count + 1) * n));
    const auto keep = [&](Count step, const double* now) {
      segment.time.push_back(clock.start + static_cast<double>(clock.first + step) * clock.step);
      segment.x.insert(segment.x.end(), now, now + n);
    };
    const auto done = s_.run_fixed(clock, row.data(), keep, watching(clock.start + static_cast<double>(clock.first) * clock.step),
                                   caller_.stop);
    x.assign(row.begin(), row.begin() + n), carried.assign(row.begin() + n, row.end());
    if (ended()) carried = carried_at_end_;
    return done.status;
  }

  Segment adaptive(Count most) {
    const auto n = static_cast<std::ptrdiff_t>(at.x.size());
    Segment segment = {{at.shown.time}, at.shown.x};
    const Schedule grid = Schedule::between(since_, end_, at.dt);
    const Count all = times_ ? static_cast<Count>(times_->size()) : grid.steps();
    for (Count k = sampled_; k < std::min(sampled_ + most, all); ++k)
      segment.time.push_back(times_ ? (*times_)[k] : k + 1 == all ? end_ : since_ + at.dt * static_cast<double>(k + 1));
    segment.x.resize(segment.time.size() * n);
    const Count requested = static_cast<Count>(segment.time.size()) - 1;
    const double pause = std::max(requested > 0 ? segment.time.back() : end_, std::nextafter(at.t, HUGE_VAL));
    std::vector<double> last(n);
    AdaptiveRun::State now = {at.x.data(), at.t, at.h, carried.data()};
    const auto done = adaptive_.run(now, pause, end_, options_, {segment.time.data() + 1, requested, segment.x.data() + n},
                                    last.data(), record(), watching(at.t), caller_.stop);
    at.t = now.time, at.h = now.next, sampled_ += done.samples;
    steps += done.steps, rejected += done.rejected, beyond_tolerance += done.beyond_tolerance;
    segment.status = done.status;
    std::size_t kept = static_cast<std::size_t>(1 + done.samples);
    while (ended() && kept > 1 && segment.time[kept - 1] >= events.occurred.back().time) --kept;
    kept += ended();
    segment.time.resize(kept), segment.x.resize(kept * n);
    at.shown = {segment.time.back(), {segment.x.end() - n, segment.x.end()}};
    finished_ = done.finished || done.status != 0.0;
    if (ended())
      end_by_event(segment);
    else if (done.status != 0.0 && times_ && at.t > at.shown.time)
      at.shown = {at.t, at.x};  // so that a later run outputs only samples after this state
    else if (done.status == 0.0 && finished_)
      at.shown = {end_, std::move(last)};
    return segment;
  }

  const Simulation& s_;
  AdaptiveRun adaptive_;
  Caller caller_;
  double end_ = 0.0, since_ = -std::numeric_limits<double>::infinity();
  std::optional<std::vector<double>> times_;
  Count every_ = 1;
  bool begins_ = false;  // true if the state at the beginning is a sample that was not returned yet
  AdaptiveRun::Options options_ = {};
  Count sampled_ = 0;
  double refused_ = 0.0;  // status of the controllers' first samples, taken at the beginning of the run; nonzero after a failure
  bool finished_ = false;
  std::vector<double> carried_at_end_;  // monitored data (record.hpp) at the event that ended a run with fixed steps
};

}  // namespace sarrus
