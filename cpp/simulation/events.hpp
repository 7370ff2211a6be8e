// Events: zero crossings of functions of time and state within the steps of a simulation.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace sarrus {

struct Event {
  int direction;  // 1: rising zero crossings only; -1: falling ones only; 0: both
  bool terminal;  // true: the simulation ends at this event
};

/// Detector of events. It is called after each step, like watch() in driver.hpp.
///   value(event, time, x)      value of the event's function; NaN if the function failed, which ends the simulation
///   within(x, time, h, state)  computes the state at h (less than a step) after x
class EventFinder {
 public:
  struct Occurrence {
    int event;
    double time;
  };
  std::vector<Occurrence> occurred;
  int ended_by = -1;  // index of the terminal event, which is the last entry of `occurred`; `end` is the state at this event
  std::vector<double> end;

  EventFinder() = default;
  explicit EventFinder(std::vector<Event> events) : events_(std::move(events)), value_(events_.size()) {}

  bool any() const { return !events_.empty(); }
  /// Begin with a step from `time`. Events up to `since` are ignored, because they were already reported.
  void begin(double time, double since) { last_ = time, since_ = since, evaluated_ = false; }

  template <class Value, class Within>
  bool operator()(double time, const double* before, const double* after, int size, Value&& value, Within&& within) {
    const double begun = std::exchange(last_, time), length = time - begun;
    std::vector<double> x(size);
    const auto state_at = [&](double part) {
      within(before, begun, part * length, x.data());
      return x.data();
    };
    std::vector<std::pair<double, int>> hits;
    for (int k = 0; k < static_cast<int>(events_.size()); ++k) {
      const double old = evaluated_ ? value_[k] : value(k, begun, before), now = value_[k] = value(k, time, after);
      const int direction = events_[k].direction;
      double part = std::isnan(old + now) ? old + now : 0.0;
      if ((old < 0.0 && now >= 0.0 && direction >= 0) || (old > 0.0 && now <= 0.0 && direction <= 0)) {
        part = root(old, now, [&](double p) { return value(k, begun + p * length, state_at(p)); });
        hits.emplace_back(part, k);
      }
      if (std::isnan(part)) return true;
    }
    evaluated_ = true;
    std::sort(hits.begin(), hits.end());
    for (const auto& [part, k] : hits) {
      const double when = begun + part * length;
      if (when <= since_) continue;
      occurred.push_back({k, when});
      if (!events_[k].terminal) continue;
      ended_by = k;
      end.assign(part == 1.0 ? after : state_at(part), (part == 1.0 ? after : x.data()) + size);
      return true;
    }
    return false;
  }

 private:
  /// Find the fraction of the step at which f is zero, by the Illinois variant of false position or, if that converges too slowly, by bisection.
  template <class F> static double root(double old, double now, F&& f) {
    double low = 0.0, high = 1.0, f_low = old, f_high = now;
    for (int k = 0; k < 60 && f_high != 0.0 && !(high - low < 1e-14); ++k) {
      const double part = k < 30 ? (low * f_high - high * f_low) / (f_high - f_low) : 0.5 * (low + high), f_part = f(part);
      if (f_part == 0.0 || std::isnan(f_part)) return f_part == 0.0 ? part : f_part;
      if ((f_part < 0.0) == (old < 0.0))
        low = part, f_low = f_part, f_high /= 2.0;
      else
        high = part, f_high = f_part, f_low /= 2.0;
    }
    return high;
  }

  std::vector<Event> events_;
  std::vector<double> value_;
  double last_ = 0.0, since_ = -std::numeric_limits<double>::infinity();
  bool evaluated_ = false;
};

}  // namespace sarrus
