#pragma once

#include <sarrus.hpp>

/// Four bars in the x-z plane, with pins about y: the crank turns at the origin, the rocker about a pivot on the x axis.
inline sarrus::Description four_bar(double crank, double coupler, double rocker, double ground) {
  const auto x = [](double at) { return sarrus::vec3(at, 0.0, 0.0); };
  const auto pin = [&](const char* name, const char* parent, const char* child, double at_parent, double at_child) {
    return sarrus::joint(sarrus::JointKind::revolute, name, parent, child, sarrus::vec3(0.0, 1.0, 0.0), x(at_parent),
                         x(at_child));
  };
  sarrus::Description d;
  d.name = "four-bar", d.gravity = sarrus::vec3(0.0, 0.0, -9.81);
  d.bodies = {{"crank", sarrus::rod(1.0, x(0.0), x(crank))},
              {"coupler", sarrus::rod(1.0, x(0.0), x(coupler))},
              {"rocker", sarrus::rod(1.0, x(0.0), x(rocker))}};
  d.joints = {pin("motor", "ground", "crank", 0.0, 0.0), pin("pin1", "crank", "coupler", crank, 0.0),
              pin("pivot", "ground", "rocker", ground, 0.0), pin("pin2", "coupler", "rocker", coupler, rocker)};
  d.joints[0].actuated = d.joints[3].close_loop = true;
  return d;
}
