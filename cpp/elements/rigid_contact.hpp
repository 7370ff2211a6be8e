// A point or sphere of a body on a plane of the world or of another body, without compliance: no force, but rows of the step (simulation/contact_step.hpp), with
// Coulomb's friction, friction against spinning and rolling, and Newton's or Poisson's restitution. Its internal states are what it has given in the last step:
// mean forces, which do not depend on the length of that step.
#pragma once

#include "../contact/point.hpp"
#include "element.hpp"

namespace sarrus {

struct RigidContact : ForceElement {
  static constexpr const char* name = "RigidContact";
  static constexpr bool has_rates = false;
  static constexpr int numbers = 4;  // force along the normal and two tangents [N], natural map of the step [m/s]
  static constexpr int moments = 3;  // and where it turns against friction: about the normal and two tangents [N m]
  BodyFrame frame, on;  // the centre is the origin of the one; in the axes of the other the plane is at normal . x = offset
  Direction normal;
  double offset, radius;
  Number friction, restitution, torsional_friction, rolling_friction;
  bool turns;  // against friction of these two, in any run
  bool poisson;  // restitution is Poisson's

  template <class F> void fields(F field) {
    field("frame", frame), field("on", on), field("normal", normal);
    field("offset", offset, Sign::any), field("radius", radius, Sign::not_negative);
    field("friction", friction, Sign::not_negative), field("restitution", restitution, Sign::not_negative);
    field("torsional_friction", torsional_friction, Sign::not_negative);
    field("rolling_friction", rolling_friction, Sign::not_negative), field("turns", turns);
    field("poisson", poisson);
  }
  int states() const { return numbers + turns * moments; }

  /// Forces of the step that led to a state, outside of steps; in steps themselves it is rows.
  template <class T> void apply(ElementCall<T>& e) const {
    for (int k = 0; k < states(); ++k) e.z_dot[iz + k] = T(0.0);
    if constexpr (std::is_same_v<T, double>) {
      if (e.rigid || e.z[iz] == 0.0) return;
      const auto pose = [&](const BodyFrame& f) { return e.bodies().X[f.link] * f.on_the_link<double>(e.tree); };
      const Mat3<double> axes = contact_axes(pose(on).R * normal.n);
      const Vec3<double> p = pose(frame).p - Vec3<double>(axes.row(0)) * radius,
                         f = transpose_times(axes, Vec3<double>(e.z + iz));
      add_point_force(e.tree, e.bodies(), frame.link, p, f, e.tau);
      add_point_force(e.tree, e.bodies(), on.link, p, Vec3<double>(-f), e.tau);
      if (!turns) return;
      const Vec3<double> moment = transpose_times(axes, Vec3<double>(e.z + iz + numbers));
      add_moment(e.tree, e.bodies(), frame.link, moment, e.tau),
          add_moment(e.tree, e.bodies(), on.link, Vec3<double>(-moment), e.tau);
    }
  }
};

}  // namespace sarrus
