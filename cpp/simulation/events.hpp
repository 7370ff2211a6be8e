// Where functions of time and state go through zero, within the steps of a simulation.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace sarrus {

struct Event {
  int direction;  // 1: only where its function rises, -1: only where it falls, 0: both
  bool terminal;  // whether the simulation ends there
};

/// Asked after each step, as a simulation's watch() is:
///   value(event, time, x)      of the event's function; NaN where it failed, and the simulation ends
///   within(x, time, h, there)  the state a part h of the step after x
class EventFinder {
 public:
  struct Occurrence {
    int event;
    double time;
  };
  std::vector<Occurrence> occurred;
  int ended_by = -1;  // the terminal event, which is the last that was found, in the state
  std::vector<double> end;

  EventFinder() = default;
  explicit EventFinder(std::vector<Event> events) : events_(std::move(events)), value_(events_.size()) {}

  bool any() const { return !events_.empty(); }
  /// Steps go on from `time`; events up to `since` were found before.
  void begin(double time, double since) { last_ = time, since_ = since, known_ = false; }

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
      const double old = known_ ? value_[k] : value(k, begun, before), now = value_[k] = value(k, time, after);
      const int direction = events_[k].direction;
      double part = std::isnan(old + now) ? old + now : 0.0;
      if ((old < 0.0 && now >= 0.0 && direction >= 0) || (old > 0.0 && now <= 0.0 && direction <= 0)) {
        part = root(old, now, [&](double p) { return value(k, begun + p * length, state_at(p)); });
        hits.emplace_back(part, k);
      }
      if (std::isnan(part)) return true;
    }
    known_ = true;
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
  /// The part of the step at which f is zero: false position that does not get stuck (Illinois), then halving.
  template <class F> static double root(double old, double now, F&& f) {
    double low = 0.0, high = 1.0, f_low = old, f_high = now;
    for (int k = 0; k < 60 && f_high != 0.0 && !(high - low < 1e-14); ++k) {
      const double part = k < 30 ? (low * f_high - high * f_low) / (f_high - f_low) : 0.5 * (low + high), there = f(part);
      if (there == 0.0 || std::isnan(there)) return there == 0.0 ? part : there;
      if ((there < 0.0) == (old < 0.0))
        low = part, f_low = there, f_high /= 2.0;
      else
        high = part, f_high = there, f_low /= 2.0;
    }
    return high;
  }

  std::vector<Event> events_;
  std::vector<double> value_;
  double last_ = 0.0, since_ = -std::numeric_limits<double>::infinity();
  bool known_ = false;
};

}  // namespace sarrus
