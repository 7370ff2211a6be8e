// A load on a body: a wrench whose components are functions of time, at the origin of a frame. With w(t) = scale * [moment; force],
//   tau += J^T w      J: Jacobian of the frame, in the axes of the frame or, if `world_aligned`, in those of the world
#pragma once

#include <array>

#include "element.hpp"

namespace sarrus {

struct AppliedWrench : ForceElement {
  static constexpr const char* name = "AppliedWrench";
  static constexpr bool has_rates = false;
  BodyFrame frame;
  std::array<const Law*, 6> wrench;  // [moment; force]
  Number scale;
  bool world_aligned = false;

  template <class F> void fields(F field) {
    field("frame", frame), field("wrench", wrench), field("scale", scale), field("world_aligned", world_aligned);
  }

  /// Compute the components, in the axes in which they are given. `value(law)` evaluates a function of time.
  template <class T, class Value> void components(const T& factor, const Value& value, T (&w)[6]) const {
    for (int k = 0; k < 6; ++k) w[k] = factor * value(wrench[k]);
  }
  template <class T> void apply(ElementCall<T>& e) const {
    const LoopState<T>& state = e.bodies();
    const Transform<T> X = state.X[frame.link] * frame.on_the_link<T>(e.tree);
    T w[6];
    components(e[scale], [&](const Law* law) { return e.value(law); }, w);
    Vec3<T> moment = vec3<T>(w[0], w[1], w[2]), force = vec3<T>(w[3], w[4], w[5]);
    if (!world_aligned) moment = X.R * moment, force = X.R * force;
    add_point_force(e.tree, state, frame.link, X.p, force, e.tau);
    add_moment(e.tree, state, frame.link, moment, e.tau);
  }
};

}  // namespace sarrus
