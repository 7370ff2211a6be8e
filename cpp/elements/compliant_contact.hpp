// Contact of a sphere (or, of radius zero, a point) of a body with a plane of the world, or with ground whose height above the plane is a function of
// the distance along it.
#pragma once

#include "contact_law.hpp"

namespace sarrus {

struct CompliantContact : ForceElement {
  static constexpr const char* name = "CompliantContact";
  static constexpr bool has_rates = true, has_chord = true;
  BodyFrame frame;  // the centre of the sphere is the frame's origin
  Direction normal;
  double offset, radius;  // plane: normal . x = offset
  const Law* height;  // height of the ground as a function of the distance along . x; null: the ground is the plane itself
  Direction along;
  ContactLaw law;

  template <class F> void fields(F field) {
    field("frame", frame), field("normal", normal);
    field("offset", offset, Sign::any), field("radius", radius, Sign::not_negative);
    field("height", height), field("along", along);
    law.fields(field);
  }

  template <class T> void apply(ElementCall<T>& e) const {
    const LoopState<T>& state = e.bodies();
    const Transform<T>& X = state.X[frame.link];
    Vec3<T> n = cast<T>(normal.n);
    const Vec3<T> center = X.p + X.R * frame.on_the_link<T>(e.tree).p;
    T above = dot(n, center) - T(offset);  // distance of the centre from the plane, or from the ground along its normal
    if (height) above = above_ground(e.parameter, above, center, n);
    const T depth = T(radius) - above;
    const auto touches = depth > T(0.0);
    e.press(touches);
    if (!any(touches)) return;
    const Vec3<T> p = center - n * T(radius);
    const Vec3<T> u = point_velocity(e.tree, state, frame.link, p, e.v);
    push(e, frame, p, law.response(e, touches, depth, n, u).force);
  }

 private:
  /// Return the distance between the ground z = h(s) and a point at the height `above` over the plane. n is set to the ground's normal. The nearest
  /// point s of the ground satisfies (s - at) + (h - above) h' = 0, because the vector to it is normal to the slope. Newton's method starts below the
  /// point.
  template <class T> T above_ground(const T* parameter, const T& above, const Vec3<T>& center, Vec3<T>& n) const {
    const Vec3<T> forward = cast<T>(along.n);
    const T at = dot(forward, center);
    T s = at, g[3];
    for (int k = 0; k < 8; ++k) {
      evaluate(*height, parameter, &s, g);
      const T steep = T(1.0) + g[1] * g[1];
      // in a valley whose radius of curvature equals the distance, two points are equally near: omit the curvature
      s -= ((s - at) + (g[0] - above) * g[1]) / most(steep + (g[0] - above) * g[2], T(0.5) * steep);
    }
    evaluate(*height, parameter, &s, g);
    const T cosine = T(1.0) / sqrt(T(1.0) + g[1] * g[1]);
    n = (n - forward * g[1]) * cosine;
    return (above - g[0] + (s - at) * g[1]) * cosine;
  }
};

}  // namespace sarrus
