// A pendulum, and a crank-rocker under its motor, by the method that was added: where they are after a second, by steps of h, h/2 and h/4.
#include <sarrus.hpp>

#include <cstdio>

#include "four_bar.hpp"

static sarrus::Description pendulum() {
  sarrus::Description d;
  d.name = "pendulum", d.gravity = sarrus::vec3(0.0, 0.0, -9.81);
  d.bodies = {{"rod", sarrus::rod(1.0, sarrus::zero3<double>(), sarrus::vec3(0.0, 0.0, -1.0))}};
  d.joints = {sarrus::joint(sarrus::JointKind::revolute, "pivot", "ground", "rod", sarrus::vec3(0.0, 1.0, 0.0))};
  return d;
}

static void ends(const char* name, const sarrus::Robot& robot, sarrus::Numbers start) {
  std::printf("%s =", name);
  for (const int steps : {50, 100, 200}) {
    sarrus::Plan plan;
    plan.method = sarrus::Method::kutta3;
    const sarrus::Simulation simulation = robot.simulation(plan);
    sarrus::Numbers row = simulation.begin(start);
    const auto done = simulation.run_fixed({0.0, 1.0 / steps, 0, steps}, row.data());
    std::printf(" %.15g", done.status == 0.0 ? row[0] : 1e300);
  }
  std::printf("\n");
}

int main() {
  const sarrus::Robot robot(four_bar(0.4, 1.1, 0.9, 1.0));
  sarrus::Numbers start = robot.configuration_by_mass(sarrus::Numbers{0.5, -1.7, -1.9});
  const sarrus::Numbers v = robot.velocity_by_mass(start, sarrus::Numbers{6.0, -8.0, -4.0});
  start.insert(start.end(), v.begin(), v.end());
  ends("four-bar", robot, start);
  ends("pendulum", sarrus::Robot(pendulum()), {0.3, 0.0});
  return 0;
}
