#pragma once

#include <sarrus.hpp>

/// Four bars in the x-z plane, with pins about y: the crank turns at the origin, the rocker about a pivot on the x axis.
inline sarrus::Robot four_bar(double crank, double coupler, double rocker, double ground) {
  sarrus::Builder b("four-bar");
  b.add_body("crank", sarrus::rod(1.0, {0.0, 0.0, 0.0}, {crank, 0.0, 0.0}));
  b.add_body("coupler", sarrus::rod(1.0, {0.0, 0.0, 0.0}, {coupler, 0.0, 0.0}));
  b.add_body("rocker", sarrus::rod(1.0, {0.0, 0.0, 0.0}, {rocker, 0.0, 0.0}));
  const auto pin = sarrus::revolute("y");
  b.add_joint("motor", pin, "ground", "crank", {}, {}, sarrus::actuated);
  b.add_joint("pin1", pin, "crank", "coupler", {crank, 0.0, 0.0});
  b.add_joint("pivot", pin, "ground", "rocker", {ground, 0.0, 0.0});
  b.add_joint("pin2", pin, "coupler", "rocker", {coupler, 0.0, 0.0}, {rocker, 0.0, 0.0}, sarrus::closes_loop);
  b.set_home({{"motor", {0.5}}, {"pin1", {-1.7}}, {"pivot", {-1.9}}});
  return b.build();
}
