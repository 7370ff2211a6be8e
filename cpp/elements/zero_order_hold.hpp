// Efforts along velocities, held from each of the given times to the next. It holds:
//   [0] how many rows have come to act    then the effort that acts
#pragma once

#include "held.hpp"

namespace sarrus {

struct ZeroOrderHold : HeldElement {
  static constexpr const char* name = "ZeroOrderHold";
  std::vector<double> times;
  std::vector<JointVelocity> motors;
  NumberArray u;  // times x motors
  double shortest = 1.0;  // time between two of them

  template <class F> void fields(F field) { field("times", times), field("motors", motors), field("u", u); }
  void settle() {
    for (std::size_t k = 1; k < times.size(); ++k) shortest = std::min(shortest, times[k] - times[k - 1]);
  }
  int held_size() const { return 1 + width; }

  template <class T> double due(const T* held) const {
    const auto taken = static_cast<std::size_t>(of_any_lane(held[place]));
    return taken < times.size() ? times[taken] : never;
  }
  double instant() const { return shortest * 1e-6; }
  template <class T, class Ask> void take(const T* parameter, double, double upto, T* held, Ask&&, int) const {
    const auto before = static_cast<std::size_t>(of_any_lane(held[place]));
    std::size_t taken = before;
    while (taken < times.size() && times[taken] <= upto) ++taken;
    for (std::size_t k = 0; k < motors.size() && taken > before; ++k)
      held[place + 1 + motors[k].iv] = parameter[u.at + (taken - 1) * motors.size() + k];
    held[place] = T(static_cast<double>(taken));
  }
  /// The parameter that acts along motor k, in a state that holds this; or -1.
  int acting(double taken, std::size_t k) const {
    return taken > 0.0 ? u.at + static_cast<int>((static_cast<std::size_t>(taken) - 1) * motors.size() + k) : -1;
  }
  template <class T> void apply(ElementCall<T>& e) const {
    for (int k = 0; k < e.width; ++k) e.motor[k] += e.held[place + 1 + k];
  }
};

}  // namespace sarrus
