// Shapes of bodies that touch each other, without compliance: no force, but rows of the step (simulation/contact_step.hpp), like those of
// RigidContact. Which points touch is found anew in every step; its internal states are what the last one has found, so that the next begins there
// and a run that is cut in two goes on bit for bit. They are kept for the points that press, of which there is a name, and a force: a step that is
// halved is begun by what a longer one has said.
#pragma once

#include <memory>

#include "../contact/scene.hpp"
#include "element.hpp"

namespace sarrus {

struct CollisionContacts : ForceElement {
  static constexpr const char* name = "CollisionContacts";
  static constexpr bool has_rates = false, beside_variants = false, varies = false;
  /// Of a step: the natural map [m/s], how many points press; then so many a point that does.
  static constexpr int before_points = 2;
  /// A point's name; the force on the first shape's body (world) [N], the mean of the step; where (world) [m]; and the moment besides, if there may
  /// be any [N m].
  enum : int { id, force, position = 4, moment = 7 };
  /// So many points a shape are kept at most. Of balls no more can press: they have fewer than 15 neighbours on average (Kuperberg and Schramm 1994).
  static constexpr int of_a_shape = 8;

  std::shared_ptr<const Scene> scene;  // its links are these bodies
  std::vector<BodyFrame> bodies;
  NumberArray friction, restitution, torsional_friction, rolling_friction;  // of each pair
  bool turns;  // against friction of the last two, some pair in some run
  bool poisson;  // restitution is Poisson's

  template <class F> void fields(F field) {
    field("scene", scene), field("bodies", bodies), field("friction", friction), field("restitution", restitution);
    field("torsional_friction", torsional_friction), field("rolling_friction", rolling_friction), field("turns", turns);
    field("poisson", poisson);
  }
  int kept = 0;  // points

  void settle() {
    for (int pair = 0; pair < static_cast<int>(scene->pairs.size()); ++pair) kept += scene->most_points(pair);
    kept = std::min(kept, of_a_shape * static_cast<int>(scene->shapes.size()));
  }
  int of_a_point() const { return moment + 3 * turns; }
  int states() const { return before_points + of_a_point() * kept; }

  /// What acted in the step that led to a state, where that is asked; in steps themselves it is rows.
  template <class T> void apply(ElementCall<T>& e) const {
    for (int k = 0; k < states(); ++k) e.z_dot[iz + k] = T(0.0);
    if constexpr (std::is_same_v<T, double>) {
      if (e.rigid) return;
      const double* point = e.z + iz + before_points;
      for (int k = 0; k < kept && k < static_cast<int>(e.z[iz + 1]); ++k, point += of_a_point()) {
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
