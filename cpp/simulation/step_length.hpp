// How long an adaptive step is (Hairer, Norsett and Wanner II.4), and what to do where shorter does not mean better.
//
// Near a singular position accelerations are off by rounding over a power of the distance to it, and shorter steps only end nearer to it.
// Where the error grows as the length falls there, longer steps are tried, which may lead across. If none is good enough and the error grows
// once more, the best that was tried is taken, and counted: no step would do what the tolerances ask.
#pragma once

#include <algorithm>
#include <cmath>

namespace sarrus {

class StepLength {
 public:
  explicit StepLength(double first, double longest = HUGE_VAL) : next_(std::min(first, longest)), longest_(longest) {}

  /// What to try. After a step that was accepted this number is all there is to know.
  double next() const { return next_; }
  /// Whether that is the best there is, and is to be accepted whatever its error.
  bool settles() const { return settles_; }

  /// A step of this length was off by `error`, as a share of what is allowed, and this was little enough.
  void accept(double length, double error) {
    const double factor = factor_of(error);
    *this = StepLength(length * (rejected() ? std::min(1.0, factor) : factor), longest_);
  }

  /// Whether a step from here was rejected already.
  bool rejected() const { return tries_ > 0; }

  /// It was too much, or there was no answer (infinite). `singular`: whether a singular position is near.
  void reject(double length, double error, bool singular) {
    static constexpr double longer[] = {1.4, 2.0, 4.0};
    if (tries_++ == 0) first_ = length;
    if (settles_) growths_ = 0, least_ = HUGE_VAL;  // it was cut short by the end of the run, and of no use so
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
  static constexpr double far_off = 1e3;  // what is worse is no answer
  static double factor_of(double error) {
    return std::isfinite(error) ? std::min(5.0, std::max(0.2, 0.9 * std::pow(std::max(error, 1e-10), -0.2))) : 0.2;
  }

  double next_, longest_;
  // of the tries since a step was accepted: the first length, the last error and the next length apart from leaps, the best of all
  double first_ = 0.0, last_ = 0.0, shorter_ = 0.0, best_ = 0.0, least_ = HUGE_VAL;
  int tries_ = 0, growths_ = 0, leaps_ = 0;
  bool leaping_ = false, settles_ = false;
};

}  // namespace sarrus
