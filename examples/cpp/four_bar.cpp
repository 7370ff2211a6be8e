// A crank-rocker in C++: closes its loop, computes dynamics, and simulates a second. The results are those of Python
// (tests/core/test_core_alone.py compares them).
#include <sarrus.hpp>

#include <cstdio>

#include "four_bar.hpp"

using sarrus::Numbers;

void print(const char* what, const Numbers& x) {
  std::printf("%s:", what);
  for (const double number : x) std::printf(" %.15g", number);
  std::printf("\n");
}

int main() {
  const sarrus::Robot robot = four_bar(0.4, 1.1, 0.9, 1.0);

  const sarrus::Assembled closed = robot.assemble({}, {{"motor", {0.5}}});  // near the home, on its branch
  const Numbers q(closed.q.begin(), closed.q.end());
  const Numbers v = robot.velocity_by_mass(q, Numbers{6.0, -8.0, -4.0});
  const Numbers tau = {2.0, 0.0, 0.0};
  print("q", q);
  print("constraint_residual", robot.constraint_residual(q));
  print("v", v);
  print("pose", robot.pose(q, robot.frame("coupler")));

  const Numbers a = robot.forward_dynamics(q, v, tau);
  print("a", a);
  print("inverse_dynamics", robot.inverse_dynamics(q, v, a));
  print("actuator_efforts", robot.actuator_efforts(q, v, a));
  print("pushed", robot.forward_dynamics(q, v, tau, sarrus::Wrench{robot.frame("rocker"), {0.0, 3.0, 0.0, 0.0, 0.0, 0.0}}));

  const sarrus::Plan plan;  // RK4, and projection onto the loop after each step
  const sarrus::Simulation simulation = robot.simulation(plan);
  Numbers start = q;
  start.insert(start.end(), v.begin(), v.end());

  Numbers row = simulation.begin(start);
  const auto done = simulation.run_fixed({0.0, 1e-3, 0, 1000}, row.data());
  row.resize(simulation.size());  // the state, then internal variables of the simulation
  print("simulated", row);

  // simulate again, with an event that ends the simulation when the crank is at 1.5 rad
  sarrus::EventFinder turned({{1, true}});
  const auto angle = [](int, double, const double* x) { return x[0] - 1.5; };
  const auto within = [&](const double* x, double time, double h, double* state) { simulation.part_of_step(time, h, x, state); };
  row = simulation.begin(start);
  simulation.run_fixed(
      {0.0, 1e-3, 0, 1000}, row.data(), [](sarrus::Count, const double*) {},
      [&](double time, const double* before, const double* after) {
        return turned(time, before, after, simulation.size(), angle, within);
      },
      [] { return false; });
  print("event", {turned.occurred.at(0).time});
  print("state", turned.end);
  return done.status == 0.0 ? 0 : 1;
}
