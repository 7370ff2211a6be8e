// Efforts along velocities, from a table; each is constant from its time to the next time. Internal values:
//   [0] number of rows used so far    then the current effort
#pragma once

#include "held.hpp"

namespace sarrus {

struct ZeroOrderHold : HeldElement {
  static constexpr const char* name = "ZeroOrderHold";
  static constexpr const char* unrecorded = reasons::table;
  std::vector<double> times;
  std::vector<JointVelocity> motors;
  NumberArray u;  // times x motors
  double shortest = 1.0;  // shortest interval between two times

  template <class F> void fields(F field) { field("times", times), field("motors", motors), field("u", u); }
  void settle() {
    for (std::size_t k = 1; k < times.size(); ++k) shortest = std::min(shortest, times[k] - times[k - 1]);
  }
  int held_size() const { return 1 + width; }

  template <class T> double due(const T* held_values) const {
    const auto rows_taken = static_cast<std::size_t>(first_lane(held_values[place]));
    return rows_taken < times.size() ? times[rows_taken] : never;
  }
  double instant() const { return shortest * 1e-6; }
  template <class T, class Evaluate> void take(const T* parameter, double, double upto, T* held_values, Evaluate&&, int) const {
    const auto before = static_cast<std::size_t>(first_lane(held_values[place]));
    std::size_t rows_taken = before;
    while (rows_taken < times.size() && times[rows_taken] <= upto) ++rows_taken;
    for (std::size_t k = 0; k < motors.size() && rows_taken > before; ++k)
      held_values[place + 1 + motors[k].iv] = parameter[u.at + (rows_taken - 1) * motors.size() + k];
    held_values[place] = T(static_cast<double>(rows_taken));
  }
  /// Return the index of the parameter that is the effort of motor k in a state that has used this number of rows; -1 if there is none yet.
  int acting(double rows_taken, std::size_t k) const {
    return rows_taken > 0.0 ? u.at + static_cast<int>((static_cast<std::size_t>(rows_taken) - 1) * motors.size() + k) : -1;
  }
  template <class T> void apply(ElementCall<T>& e) const {
    for (int k = 0; k < e.width; ++k) e.motor[k] += e.held_values[place + 1 + k];
  }
};

}  // namespace sarrus
