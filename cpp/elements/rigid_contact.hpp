// A point or sphere of a body on a plane of the world or of another body, without compliance. It is not a force but adds rows to the step
// (simulation/contact_step.hpp), with Coulomb friction, friction against spinning and rolling, and Newton's or Poisson's restitution. Its internal
// states are the mean forces of the last step; unlike impulses they do not depend on the step length.
#pragma once

#include "../contact/point.hpp"
#include "element.hpp"

namespace sarrus {

struct RigidContact : ForceElement {
  static constexpr const char* name = "RigidContact";
  static constexpr const char* unrecorded = reasons::contact;
  static constexpr bool has_rates = false;
  static constexpr int numbers = 4;  // force along the normal and two tangents [N], natural map of the step [m/s]
  static constexpr int moments = 3;  // moments of friction about the normal and two tangents [N m]
  BodyFrame frame, on;  // the centre of the sphere is the origin of `frame`; the plane is normal . x = offset in the axes of `on`
  Direction normal;
  double offset, radius;
  Number friction, restitution, torsional_friction, rolling_friction;
  bool turns;  // true if torsional or rolling friction differs from zero in any run
  bool poisson;  // true: Poisson's law of restitution; false: Newton's law

  template <class F> void fields(F field) {
    field("frame", frame), field("on", on), field("normal", normal);
    field("offset", offset, Sign::any), field("radius", radius, Sign::not_negative);
    field("friction", friction, Sign::not_negative), field("restitution", restitution, Sign::not_negative);
    field("torsional_friction", torsional_friction, Sign::not_negative);
    field("rolling_friction", rolling_friction, Sign::not_negative), field("turns", turns);
    field("poisson", poisson);
  }
  int states() const { return numbers + turns * moments; }

  /// Outside of steps, apply the forces of the last step. Within steps, the contact is a set of rows and applies no force.
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
