// Length of adaptive steps (Hairer, Norsett and Wanner II.4), with a strategy if shorter steps have larger errors.
//
// Near a singular position, rounding errors of accelerations grow with a power of the inverse distance, and shorter steps end closer to it. If the
// error grows there as the length decreases, longer steps are tried, because they may pass the position. If no trial is accurate and the error grows
// once more, no step can satisfy the tolerances. The trial with the smallest error is then accepted and counted (beyond_tolerance).
#pragma once

#include <algorithm>
#include <cmath>

namespace sarrus {

class StepLength {
 public:
  explicit StepLength(double first, double longest = HUGE_VAL) : next_(std::min(first, longest)), longest_(longest) {}

  /// Return the length of the next trial. After an accepted step, this length is the complete state of the object.
  double next() const { return next_; }
  /// Return true if the trial of that length had the smallest error of all trials, so that its step is accepted with any error.
  bool settles() const { return settles_; }

  /// Accept a step of this length. `error`: its error relative to the tolerance.
  void accept(double length, double error) {
    const double factor = factor_of(error);
    *this = StepLength(length * (rejected() ? std::min(1.0, factor) : factor), longest_);
  }

  /// Return true if some step from the current state was rejected.
  bool rejected() const { return tries_ > 0; }

  /// Reject a step, because its error was too large; `error` is infinite if the step failed. `singular`: the state is near a singular position.
  void reject(double length, double error, bool singular) {
    static constexpr double longer[] = {1.4, 2.0, 4.0};
    if (tries_++ == 0) first_ = length;
    if (settles_) growths_ = 0, least_ = HUGE_VAL;  // the end of the run had shortened the previous trial, and it failed too
    if (error < least_) best_ = length, least_ = error;
    if (!leaping_) {
      const bool grew = singular && tries_ > 1 && error > last_;
      growths_ += grew, leaping_ = grew && growths_ == 1;
      last_ = error, shorter_ = length * std::min(0.9, factor_of(error));
    }
    leaping_ = leaping_ && leaps_ < 3;
    settles_ = growths_ > 1 && least_ < far_off;
    next_ = settles_ ? best_ : leaping_ ? std::min(longest_, first_ * longer[leaps_++]) : shorter_;
  }

 private:
  static constexpr double far_off = 1e3;  // a larger error is treated as a failure
  static double factor_of(double error) {
    return std::isfinite(error) ? std::min(5.0, std::max(0.2, 0.9 * std::pow(std::max(error, 1e-10), -0.2))) : 0.2;
  }

  double next_, longest_;
  // values since the last accepted step: first length, last error, next length if no longer step is tried, best length and its error
  double first_ = 0.0, last_ = 0.0, shorter_ = 0.0, best_ = 0.0, least_ = HUGE_VAL;
  int tries_ = 0, growths_ = 0, leaps_ = 0;
  bool leaping_ = false, settles_ = false;
};

}  // namespace sarrus
