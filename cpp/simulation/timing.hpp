// Checks of the times of a run. Messages contain the name and value of the argument, and a valid alternative.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../model/text.hpp"

namespace sarrus {

/// Start, duration and step of a run [s]. The checks throw std::invalid_argument.
struct Timing {
  static constexpr double most_steps = 9007199254740992.0;  // 2^53, the largest count that a double represents exactly
  // period of samples, as a fraction of the duration; more samples would take days
  static constexpr double shortest_period = 1e-9;
  // period of samples, as a fraction of a step; with shorter ones Ctrl-C, which is only checked between steps, would have no effect for a long time
  static constexpr double shortest_part = 1e-3;

  double start, duration, step;

  double end() const { return start + duration; }
  /// Distance of adjacent doubles at the largest time.
  double spacing() const {
    const double latest = std::max(std::abs(start), std::abs(end()));
    return std::nextafter(latest, std::numeric_limits<double>::infinity()) - latest;
  }

  void check() const {
    if (!std::isfinite(end())) refuse("start + duration must be finite; got " + text(start) + " and " + text(duration));
    if (step < std::numeric_limits<double>::min() || duration > step * most_steps)
      refuse("dt = " + text(step) + " s is too short: " + text(duration) + " s must be at most 2^53 steps of it");
  }
  /// Check that a step, and the duration, change the time.
  void check_advance() const {
    if (duration > 0.0 && (end() == start || step < spacing()))
      refuse("time cannot advance from start = " + text(start) + " s by dt = " + text(step) + " s for " + text(duration) +
             " s: adjacent doubles differ by " + digits(spacing()) + " s; pass a start nearer to zero");
  }
  /// Check the longest adaptive step.
  void check_longest_step(double longest) const {
    const double latest = std::max(std::abs(start), std::abs(end()));
    if (latest + longest == latest || duration > longest * most_steps)
      refuse("max_step = " + text(longest) + " s is too short: time near " + text(latest) +
             " s does not advance by such a step, or " + text(duration) + " s take more than 2^53 steps");
  }
  /// Check the period of a digital controller, whose class has this name.
  void check_period(double period, const std::string& controller) const {
    const double least = std::max(shortest_period * duration, shortest_part * step) * (1.0 - 1e-9);
    if (period < least)
      refuse("period = " + text(period) + " s of " + controller + " is too short for " + text(duration) +
             " s in steps of dt = " + text(step) + " s; expected at least " + digits(least) +
             " s. Give the controllers without " + controller + ", or a smaller dt");
  }
  /// Return the divisors, powers of two, by which the step may be divided: time advances, and there are at most 2^20 steps.
  std::vector<int> divisors() const {
    std::vector<int> all;
    for (const int divisor : {4, 16, 64})
      if (step / divisor >= std::max(duration / 1048576.0, spacing())) all.push_back(divisor);
    return all;
  }

 private:
  static std::string text(double x) { return shortest(x); }
  static std::string digits(double x) {
    char buffer[32];
    std::snprintf(buffer, sizeof buffer, "%.3g", x);
    return buffer;
  }
  [[noreturn]] static void refuse(const std::string& message) { throw std::invalid_argument(message); }
};

}  // namespace sarrus
