// Digital controllers: they are evaluated at sample times, and their efforts are constant between samples.
//
//   sample k   at t_0 + k period, with t_0 the beginning of the run:   u_k = f(t, q, v, z),  z <- z + period z-dot   (Euler's method)
//   effort     u_k from t_0 + k period + delay until u_k+1 follows; zero before u_0
//
// Internal values:
//   [0] samples taken    [1] samples applied    [2] t_0    then z, the current effort, and pending efforts, oldest first
#pragma once

#include "held.hpp"

namespace sarrus {

struct SampleAndHold : HeldElement {
  static constexpr const char* name = "SampleAndHold";
  static constexpr bool varies = false;
  const ForceElements* controllers;
  bool calls;  // true if a function of the caller is evaluated too
  double period, delay;
  std::vector<double> position_step, velocity_step,
      effort_step;  // positions, velocities and efforts are rounded to multiples of these values; empty: no rounding
  int pending = 0;  // largest number of delayed commands

  template <class F> void fields(F field) {
    field("controllers", controllers), field("calls", calls);
    field("period", period, Sign::positive), field("delay", delay, Sign::not_negative);
    field("position_step", position_step), field("velocity_step", velocity_step), field("effort_step", effort_step);
  }
  void settle() { pending = std::max(0, static_cast<int>(std::ceil(delay / period - 1e-6))); }
  const char* unrecorded_in_steps(double h) const {
    const auto is_multiple = [h](double x) { return std::abs(std::remainder(x, h)) < 1e-6 * h; };
    if (!is_multiple(period) || !is_multiple(delay)) return "has a period or a delay that is no multiple of the step";
    return calls ? "calls a Python function; sample its efforts between steps, and pass them to each step" : nullptr;
  }
  const ForceElements* contained() const { return controllers; }
  int held_size() const { return 3 + inner_states() + (1 + pending) * width; }

  template <class T> double due(const T* held_values) const {
    const auto h = Held<const T>::of(*this, held_values);
    const double samples = first_lane(*h.samples), acting = first_lane(*h.acting), begun = first_lane(*h.begun);
    if (samples == 0.0) return -never;
    const double next = begun + samples * period;
    return acting < samples ? std::min(next, begun + acting * period + delay) : next;
  }
  double instant() const { return period * 1e-6; }

  template <class T, class Time, class Evaluate>
  void take(const T*, const Time& time, const Time& upto, T* held_values, Evaluate&& evaluate, int sampling) const {
    const auto h = Held<T>::of(*this, held_values);
    const Time begun = select(first_lane(*h.samples) < Time(0.5), time, Time(first_lane(*h.begun)));
    *h.begun = T(begun);
    // apply delayed commands before a new sample is stored: otherwise, for a delay of a whole number of periods, one more effort would be pending
    const auto is_due = [&] {
      const Time acting = first_lane(*h.acting);
      return both(acting < first_lane(*h.samples), begun + acting * Time(period) + Time(delay) < upto);
    };
    while (when(is_due(), h.samples, held_size(), [&] {
      std::copy(h.effort + width, h.effort + (1 + pending) * width, h.effort);
      *h.acting += T(1.0);
    })) {
    }
    T* const newest = h.effort + pending * width;
    when(begun + first_lane(*h.samples) * Time(period) < upto, h.samples, held_size(), [&] {
      const Time waiting = first_lane(*h.samples) - first_lane(*h.acting);
      evaluate(*this, sampling, h.z, newest);
      for (int k = 1; k < pending; ++k)  // until all commands are pending, the newest one is before the last
        when(both(Time(k - 1.5) < waiting, waiting < Time(k - 0.5)), h.effort + k * width, width,
             [&] { std::copy(newest, newest + width, h.effort + k * width); });
      *h.samples += T(1.0), *h.acting += T(pending == 0 ? 1.0 : 0.0);
    });
  }
  template <class T> void apply(ElementCall<T>& e) const {
    const T* effort = Held<const T>::of(*this, e.held_values).effort;
    for (int k = 0; k < e.width; ++k) e.motor[k] += effort[k];
  }

 private:
  template <class T> struct Held {
    T *samples, *acting, *begun, *z, *effort;
    static Held of(const SampleAndHold& s, T* held_values) {
      held_values += s.place;
      return {held_values, held_values + 1, held_values + 2, held_values + 3, held_values + 3 + s.inner_states()};
    }
  };
  int inner_states() const;  // set.hpp: controllers are elements too
};

}  // namespace sarrus
