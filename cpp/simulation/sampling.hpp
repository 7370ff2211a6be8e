// Controllers that act through a clock: they are asked at samples, and what they answer is held until it is replaced.
//
//   sample k   at t_0 + k period, t_0 where the run began:   u_k = f(t, q, v, z),  z <- z + period z-dot   (Euler's method)
//   acts       from t_0 + k period + delay until u_k+1 does; before u_0 does, nothing
//
// or at given times, where u_k is a row of a table. Steps end wherever something is due: see advance.hpp and driver.hpp.
//
// What is held is part of the state of a run, behind q, v and the z that are integrated. For each, from its place on:
//   [0] samples taken    [1] how many have come to act    [2] t_0    then z, the effort that acts, and those on their way, the oldest first
#pragma once

#include <algorithm>
#include <utility>

#include "plan.hpp"

namespace sarrus {

constexpr double never = 1e300;  // compilers are told that numbers are finite

/// Clocks are those of all lanes.
inline double of_any_lane(double x) { return x; }
template <int W> double of_any_lane(const Packet<W>& x) { return x.lanes[0]; }

/// How many numbers a sampling holds.
inline int held_size(const Sampling& s) { return 3 + s.elements.nz + (1 + s.pending) * s.width; }

template <class T> struct Held {
  T *taken, *acting, *begun, *z, *effort;
  static Held of(const Sampling& s, T* held) {
    held += s.at;
    return {held, held + 1, held + 2, held + 3, held + 3 + s.elements.nz};
  }
};

/// When something is due: at once in a run that has not begun.
template <class T> double next_sample(const ForceElements& elements, const T* held) {
  double due = never;
  for (const Sampling& s : elements.all<Sampling>()) {
    const auto h = Held<const T>::of(s, held);
    const double taken = of_any_lane(*h.taken), acting = of_any_lane(*h.acting), begun = of_any_lane(*h.begun);
    if (s.times > 0) {
      if (taken < s.times) due = std::min(due, s.time[static_cast<int>(taken)]);
      continue;
    }
    if (taken == 0.0) return -never;
    due = std::min(due, begun + taken * s.period);
    if (acting < taken) due = std::min(due, begun + acting * s.period + s.delay);
  }
  return due;
}

/// By how much times may differ that are to be one: a millionth of the shortest period.
inline double one_instant(const ForceElements& elements) {
  double slack = never;
  for (const Sampling& s : elements.all<Sampling>()) slack = std::min(slack, s.period * 1e-6);
  return elements.any<Sampling>() ? slack : 0.0;
}

/// Hands a row of the table, or the command that `ask(sampling, z, effort)` makes, to each sampling where it is due at `time`.
template <class T, class Ask> void take_samples(const ForceElements& elements, const T* parameter, double time, T* held,
                                                Ask&& ask) {
  const double upto = time + one_instant(elements);
  for (const Sampling& s : elements.all<Sampling>()) {
    const auto h = Held<T>::of(s, held);
    double taken = of_any_lane(*h.taken), acting = of_any_lane(*h.acting);
    if (s.times > 0) {
      const double before = taken;
      while (taken < s.times && s.time[static_cast<int>(taken)] <= upto) ++taken;
      for (int k = 0; k < s.motors && taken > before; ++k)
        h.effort[s.motor[k]] = parameter[s.parameter + (static_cast<int>(taken) - 1) * s.motors + k];
      *h.taken = T(taken);
      continue;
    }
    if (taken == 0.0) *h.begun = T(time);
    const double begun = of_any_lane(*h.begun);
    // first what was on its way, or a delay of whole periods would need room for one more
    for (; acting < taken && begun + acting * s.period + s.delay <= upto; ++acting)
      std::copy(h.effort + s.width, h.effort + (1 + s.pending) * s.width, h.effort);
    if (begun + taken * s.period <= upto) {
      ask(s, static_cast<int>(&s - elements.all<Sampling>().first), h.z,
          s.pending == 0 ? h.effort : h.effort + (1 + static_cast<int>(taken - acting)) * s.width);
      ++taken, acting += s.pending == 0;
    }
    *h.taken = T(taken), *h.acting = T(acting);
  }
}

/// Adds the efforts that act.
template <class T> void add_held(const ForceElements& elements, const T* held, int count, T* motor) {
  for (const Sampling& s : elements.all<Sampling>()) {
    const T* effort = Held<const T>::of(s, held).effort;
    for (int k = 0; k < count; ++k) motor[k] += effort[k];
  }
}

/// The nearest multiple of each step; a step of 0 leaves a number as it is.
template <class T> void quantise(const double* step, int count, T* x) {
  for (int k = 0; step && k < count; ++k)
    if (step[k] > 0.0) x[k] = nearest(x[k] / T(step[k])) * T(step[k]);
}

}  // namespace sarrus
