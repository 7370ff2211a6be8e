// Efforts that are held from sample to sample are part of the state of a run, after q, v and the z that are integrated. A kind with held values has
// in addition
//
//   held_size()                                       number of held values, from its place on
//   due(held_values)                                  time of the next sample: at once in a run that has not begun
//   instant()                                         difference below which times count as equal: a millionth of the shortest period
//   take(parameter, time, upto, held_values, evaluate, k)   takes the samples that are due up to then; evaluate(element, k, z, effort) calls
//                                                     the controllers
//
// Steps end at every sample that is due: see simulation/advance.hpp and driver.hpp.
#pragma once

#include "element.hpp"

namespace sarrus {

constexpr double never = 1e300;  // finite, because the compiler assumes finite numbers

struct HeldElement : ForceElement {
  static constexpr bool holds = true, has_rates = false;
  int place = 0, width = 0;  // place: index of its first value; width: number of velocities
};

}  // namespace sarrus
