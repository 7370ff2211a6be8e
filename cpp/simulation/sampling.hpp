// Sampling of all force elements whose outputs are constant between samples: see ../elements/held.hpp.
#pragma once

#include <algorithm>

#include "plan.hpp"

namespace sarrus {

/// Call visit(element) for each element with sampled values.
template <class Visit> void each_that_holds(const ForceElements& elements, Visit&& visit) {
  elements.each([&](const auto& element) {
    if constexpr (std::decay_t<decltype(element)>::holds) visit(element);
  });
}

/// Return the time of the next sample. If the run has not begun, the next sample is due immediately.
template <class T> double next_sample(const ForceElements& elements, const T* held_values) {
  double due = never;
  each_that_holds(elements, [&](const auto& element) { due = std::min(due, element.due(held_values)); });
  return due;
}

/// Return the largest difference [s] between two times that are treated as equal.
inline double one_instant(const ForceElements& elements) {
  double slack = never;
  each_that_holds(elements, [&](const auto& element) { slack = std::min(slack, element.instant()); });
  return slack < never ? slack : 0.0;
}

/// Take the samples that are due at `time`, for each element with sampled values; they are due before `upto`. `evaluate`: see ../elements/held.hpp.
template <class T, class Time, class Evaluate> void take_samples(const ForceElements& elements, const T* parameter,
                                                                 const Time& time, const Time& upto, T* held_values,
                                                                 Evaluate&& evaluate) {
  elements.each_kind([&](const auto& elements_of_kind) {
    int k = 0;
    for (const auto& element : elements_of_kind)
      if constexpr (std::decay_t<decltype(element)>::holds && acts_in<std::decay_t<decltype(element)>, T>)
        element.take(parameter, time, upto, held_values, evaluate, k++);
  });
}

/// Round each value to the nearest multiple of its step (quantisation). If there are no steps, values do not change.
template <class T> void quantise(const std::vector<double>& step, int count, T* x) {
  for (int k = 0; !step.empty() && k < count; ++k)
    if (step[k] > 0.0) x[k] = nearest(x[k] / T(step[k])) * T(step[k]);
}

}  // namespace sarrus
