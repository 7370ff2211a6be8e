// What is held from sample to sample, of all elements that hold some: see ../elements/held.hpp.
#pragma once

#include <algorithm>

#include "plan.hpp"

namespace sarrus {

/// visit(element) of each that holds something.
template <class Visit> void each_that_holds(const ForceElements& elements, Visit&& visit) {
  elements.each([&](const auto& element) {
    if constexpr (std::decay_t<decltype(element)>::holds) visit(element);
  });
}

/// When something is due: at once in a run that has not begun.
template <class T> double next_sample(const ForceElements& elements, const T* held) {
  double due = never;
  each_that_holds(elements, [&](const auto& element) { due = std::min(due, element.due(held)); });
  return due;
}

/// By how much times may differ that are to be one.
inline double one_instant(const ForceElements& elements) {
  double slack = never;
  each_that_holds(elements, [&](const auto& element) { slack = std::min(slack, element.instant()); });
  return slack < never ? slack : 0.0;
}

/// Hands what is due at `time` to each that holds it; see ../elements/held.hpp for `ask`.
template <class T, class Ask> void take_samples(const ForceElements& elements, const T* parameter, double time, T* held,
                                                Ask&& ask) {
  const double upto = time + one_instant(elements);
  elements.each_kind([&](const auto& some) {
    int k = 0;
    for (const auto& element : some)
      if constexpr (std::decay_t<decltype(element)>::holds && (!carries_rates<T> || std::decay_t<decltype(element)>::varies))
        element.take(parameter, time, upto, held, ask, k++);
  });
}

/// The nearest multiple of each step; none: numbers stay as they are.
template <class T> void quantise(const std::vector<double>& step, int count, T* x) {
  for (int k = 0; !step.empty() && k < count; ++k)
    if (step[k] > 0.0) x[k] = nearest(x[k] / T(step[k])) * T(step[k]);
}

}  // namespace sarrus
