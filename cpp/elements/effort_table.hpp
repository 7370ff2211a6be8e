// Efforts along velocities, interpolated linearly between the times of a table. They are zero before the first time and constant after the last one.
#pragma once

#include "element.hpp"

namespace sarrus {

struct EffortTable : ForceElement {
  static constexpr const char* name = "EffortTable";
  static constexpr const char* unrecorded = reasons::table;
  static constexpr bool has_rates = false;
  std::vector<double> times;
  std::vector<JointVelocity> motors;
  NumberArray u;  // times x motors

  template <class F> void fields(F field) { field("times", times), field("motors", motors), field("u", u); }

  template <class T> void apply(ElementCall<T>& e) const {
    const double now = first_lane(e.time);
    const std::size_t after = std::upper_bound(times.begin(), times.end(), now) - times.begin(), m = motors.size();
    if (after == 0) return;
    const T* row = e[u] + (after - 1) * m;
    const bool between = after < times.size();
    const double part = between ? (now - times[after - 1]) / (times[after] - times[after - 1]) : 0.0;
    for (std::size_t k = 0; k < m; ++k) e.motor[motors[k].iv] += between ? row[k] + (row[m + k] - row[k]) * T(part) : row[k];
  }
};

}  // namespace sarrus
