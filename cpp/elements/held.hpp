// Efforts that are held from sample to sample are part of the state of a run, behind q, v and the z that are integrated. A kind that holds some is
// asked, besides,
//
//   held_size()                                   how many numbers it holds, from its place on
//   due(held)                                     when it is to be asked next: at once in a run that has not begun
//   instant()                                     by how much times may differ that are to be one: a millionth of the shortest period
//   take(parameter, time, upto, held, ask, k)     takes the samples that are due up to then; ask(element, k, z, effort) where controllers answer
//
// Steps end wherever something is due: see simulation/advance.hpp and driver.hpp.
#pragma once

#include "element.hpp"

namespace sarrus {

constexpr double never = 1e300;  // compilers are told that numbers are finite

struct HeldElement : ForceElement {
  static constexpr bool holds = true, has_rates = false;
  int place = 0, width = 0;  // where its numbers stand, and how many velocities there are
};

}  // namespace sarrus
