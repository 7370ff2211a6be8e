// Contact between shapes of bodies, without compliance. Like RigidContact, it is not a force but adds rows to the step (simulation/contact_step.hpp).
// Every step detects the touching points anew, and uses the solution of the last step as initial guess. The internal states store an id and a force
// of every point that presses. Therefore a run that is divided into two runs has bit-for-bit the same results. The initial guess of a half step is
// the solution of the last full step.
#pragma once

#include <memory>

#include "../contact/scene.hpp"
#include "element.hpp"

namespace sarrus {

struct CollisionContacts : ForceElement {
  static constexpr const char* name = "CollisionContacts";
  static constexpr const char* unrecorded = reasons::contact;
  static constexpr bool has_rates = false, beside_variants = false, varies = false, states_jump = true;
  /// Number of internal states before those of the points: the natural map [m/s], and the number of pressing points.
  static constexpr int before_points = values_before_points;
  /// Values of a point: id; mean force of the step on the first shape's body (world) [N]; position (world) [m]; and, with rotational friction, moment
  /// [N m].
  enum : int { id, force, position = 4, moment = 7 };
  /// Largest number of pressing points per shape. Spheres have fewer: a sphere has below 15 neighbours on average (Kuperberg and Schramm 1994).
  static constexpr int points_per_shape = 8;

  std::shared_ptr<const Scene> scene;  // its `link` indices refer to `bodies`
  std::vector<BodyFrame> bodies;
  NumberArray friction, restitution, torsional_friction, rolling_friction;  // one value for each pair
  bool turns;  // true if the last two coefficients (torsional and rolling friction) of some pair are nonzero in any run
  bool poisson;  // true: Poisson's law of restitution; false: Newton's law

  template <class F> void fields(F field) {
    field("scene", scene), field("bodies", bodies), field("friction", friction), field("restitution", restitution);
    field("torsional_friction", torsional_friction), field("rolling_friction", rolling_friction), field("turns", turns);
    field("poisson", poisson);
  }
  int kept = 0;  // largest number of points

  void settle() {
    for (int pair = 0; pair < static_cast<int>(scene->pairs.size()); ++pair) kept += scene->most_points(pair);
    kept = std::min(kept, points_per_shape * static_cast<int>(scene->shapes.size()));
  }
  int numbers_per_point() const { return moment + 3 * turns; }
  int states() const { return before_points + numbers_per_point() * kept; }

  /// Outside of steps, apply the forces of the last step. Within steps, the contact is a set of rows and applies no force.
  template <class T> void apply(ElementCall<T>& e) const {
    for (int k = 0; k < states(); ++k) e.z_dot[iz + k] = T(0.0);
    if constexpr (std::is_same_v<T, double>) {
      if (e.rigid) return;
      const double* point = e.z + iz + before_points;
      for (int k = 0; k < kept && k < static_cast<int>(e.z[iz + 1]); ++k, point += numbers_per_point()) {
        const ContactPair& pair = scene->pairs[static_cast<long long>(point[id]) / Scene::features];
        const Vec3<double> p(point + position), f(point + force);
        add_point_force(e.tree, e.bodies(), bodies[pair.first].link, p, f, e.tau);
        add_point_force(e.tree, e.bodies(), bodies[pair.second].link, p, Vec3<double>(-f), e.tau);
        if (!turns) continue;
        add_moment(e.tree, e.bodies(), bodies[pair.first].link, Vec3<double>(point + moment), e.tau);
        add_moment(e.tree, e.bodies(), bodies[pair.second].link, Vec3<double>(Vec3<double>(point + moment) * -1.0), e.tau);
      }
    }
  }
};

}  // namespace sarrus
