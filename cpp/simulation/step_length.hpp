// Length of an adaptive step (Hairer, Norsett and Wanner II.4), and the strategy if shorter steps are not better.
//
// Near a singular position accelerations have rounding errors that grow with a power of the inverse distance, and shorter steps only end nearer
// to it. If the error grows there as the length falls, longer steps are tried, which may pass the position. If none is accurate enough and the
// error grows once more, the best trial is accepted, and counted: no step would meet the tolerances.
#pragma once

#include <algorithm>
#include <cmath>

namespace sarrus {

class StepLength {
 public:
  explicit StepLength(double first, double longest = HUGE_VAL) : next_(std::min(first, longest)), longest_(longest) {}

  /// Return the length of the next trial. After an accepted step this number is the whole state.
  double next() const { return next_; }
  /// Return true if that length is the best of all trials, to be accepted with any error.
  bool settles() const { return settles_; }

  /// Accept a step of this length, whose error, relative to the tolerance, was small enough.
  void accept(double length, double error) {
    const double factor = factor_of(error);
    *this = StepLength(length * (rejected() ? std::min(1.0, factor) : factor), longest_);
  }

  /// Return true if a step from this state was already rejected.
  bool rejected() const { return tries_ > 0; }

  /// Reject a step whose error was too large, or infinite if it failed. `singular`: true near a singular position.
  void reject(double length, double error, bool singular) {
    static constexpr double longer[] = {1.4, 2.0, 4.0};
    if (tries_++ == 0) first_ = length;
    if (settles_) growths_ = 0, least_ = HUGE_VAL;  // the end of the run cut the step short, so that it failed too
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
  static constexpr double far_off = 1e3;  // a larger error counts as a failure
  static double factor_of(double error) {
    return std::isfinite(error) ? std::min(5.0, std::max(0.2, 0.9 * std::pow(std::max(error, 1e-10), -0.2))) : 0.2;
  }

  double next_, longest_;
  // of the trials since the last accepted step: the first length, the last error, the next length without leaps, and the best trial
  double first_ = 0.0, last_ = 0.0, shorter_ = 0.0, best_ = 0.0, least_ = HUGE_VAL;
  int tries_ = 0, growths_ = 0, leaps_ = 0;
  bool leaping_ = false, settles_ = false;
};

}  // namespace sarrus
