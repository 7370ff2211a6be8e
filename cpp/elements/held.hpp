// Efforts that are constant between samples are part of the state of a run, stored after q, v and the integrated z. An element with such efforts
// ("held values") also defines
//
//   held_size()                                       number of held values, which start at `place`
//   due(held_values)                                  time of the next sample; the first sample is taken at the start of a run
//   instant()                                         difference below which times are equal: a millionth of the shortest period
//   take(parameter, time, upto, held_values, evaluate, k)   takes the samples that are due before `upto`; evaluate(element, k, z, effort) calls
//                                                     the controllers
//
// Steps end at every sample that is due: see simulation/advance.hpp and driver.hpp.
#pragma once

#include "element.hpp"

namespace sarrus {

constexpr double never = 1e300;  // finite, because the compiler options assume that all numbers are finite

/// Run `body`, which changes x (n), if a condition holds. Return true if it may hold again. Recorded code has the results of both cases, and `body` is
/// run once (recording/symbolic.hpp).
template <class T, class Body> bool when(bool holds, T*, int, Body&& body) {
  if (holds) body();
  return holds;
}

struct HeldElement : ForceElement {
  static constexpr bool holds = true, has_rates = false;
  int place = 0, width = 0;  // place: index of the first sampled value in the state; width: number of velocities
};

}  // namespace sarrus
