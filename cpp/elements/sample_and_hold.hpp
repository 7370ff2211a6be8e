// Controllers that act through a clock: they are asked at samples, and what they answer is held until it is replaced.
//
//   sample k   at t_0 + k period, t_0 where the run began:   u_k = f(t, q, v, z),  z <- z + period z-dot   (Euler's method)
//   acts       from t_0 + k period + delay until u_k+1 does; before u_0 does, nothing
//
// It holds: [0] samples taken    [1] how many have come to act    [2] t_0    then z, the effort that acts, and those on their way, the oldest first
#pragma once

#include "held.hpp"

namespace sarrus {

struct SampleAndHold : HeldElement {
  static constexpr const char* name = "SampleAndHold";
  static constexpr bool varies = false;
  const ForceElements* controllers;
  bool calls;  // whether the caller's function is asked too
  double period, delay;
  std::vector<double> position_step, velocity_step, effort_step;  // to whose multiples these are rounded; none: they are not
  int pending = 0;  // commands that may be on their way

  template <class F> void fields(F field) {
    field("controllers", controllers), field("calls", calls);
    field("period", period, Sign::positive), field("delay", delay, Sign::not_negative);
    field("position_step", position_step), field("velocity_step", velocity_step), field("effort_step", effort_step);
  }
  void settle() { pending = std::max(0, static_cast<int>(std::ceil(delay / period - 1e-6))); }
  int held_size() const { return 3 + inner_states() + (1 + pending) * width; }

  template <class T> double due(const T* held) const {
    const auto h = Held<const T>::of(*this, held);
    const double taken = of_any_lane(*h.taken), acting = of_any_lane(*h.acting), begun = of_any_lane(*h.begun);
    if (taken == 0.0) return -never;
    const double next = begun + taken * period;
    return acting < taken ? std::min(next, begun + acting * period + delay) : next;
  }
  double instant() const { return period * 1e-6; }

  template <class T, class Ask> void take(const T*, double time, double upto, T* held, Ask&& ask, int which) const {
    const auto h = Held<T>::of(*this, held);
    double taken = of_any_lane(*h.taken), acting = of_any_lane(*h.acting);
    if (taken == 0.0) *h.begun = T(time);
    const double begun = of_any_lane(*h.begun);
    // first what was on its way, or a delay of whole periods would need room for one more
    for (; acting < taken && begun + acting * period + delay <= upto; ++acting)
      std::copy(h.effort + width, h.effort + (1 + pending) * width, h.effort);
    if (begun + taken * period <= upto) {
      ask(*this, which, h.z, pending == 0 ? h.effort : h.effort + (1 + static_cast<int>(taken - acting)) * width);
      ++taken, acting += pending == 0;
    }
    *h.taken = T(taken), *h.acting = T(acting);
  }
  template <class T> void apply(ElementCall<T>& e) const {
    const T* effort = Held<const T>::of(*this, e.held).effort;
    for (int k = 0; k < e.width; ++k) e.motor[k] += effort[k];
  }

 private:
  template <class T> struct Held {
    T *taken, *acting, *begun, *z, *effort;
    static Held of(const SampleAndHold& s, T* held) {
      held += s.place;
      return {held, held + 1, held + 2, held + 3, held + 3 + s.inner_states()};
    }
  };
  int inner_states() const;  // set.hpp: controllers are elements too
};

}  // namespace sarrus
