// A force along an axis of a frame, at its origin.
#pragma once

#include "element.hpp"

namespace sarrus {

struct Thruster : ForceElement {
  static constexpr const char* name = "Thruster";
  static constexpr bool has_rates = false;
  BodyFrame frame;
  Direction axis;  // in the axes of the frame
  const Law* thrust;
  Range limits;

  template <class F> void fields(F field) {
    field("frame", frame), field("axis", axis), field("thrust", thrust), field("limits", limits);
  }

  template <class T> void apply(ElementCall<T>& e) const {
    const LoopState<T>& state = e.bodies();
    const Transform<T>&X = state.X[frame.link], &at = frame.on_the_link<T>(e.tree);
    const T force = e.within(limits, e.value(thrust));
    push(e, frame, Vec3<T>(X.p + X.R * at.p), Vec3<T>(X.R * Vec3<T>(at.R * cast<T>(axis.n)) * force));
  }
};

}  // namespace sarrus
