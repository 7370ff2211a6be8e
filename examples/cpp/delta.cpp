// Motor efforts of a parallel robot along a path of its platform: a Delta from a file, its inverse kinematics, its motion on one branch, and the
// velocities and efforts of its motors (tests/core/test_core_alone.py compares them with Python).
//   delta FILE.json
#include <cmath>
#include <cstdio>

#include <sarrus.hpp>

using sarrus::Numbers;

int main(int count, char** arguments) {
  if (count != 2) return std::fprintf(stderr, "usage: %s FILE.json\n", arguments[0]), 2;
  const sarrus::Robot robot = sarrus::load(arguments[1]);

  // path: a circle of 10 cm below the home position, one revolution per second
  sarrus::PathInputs path;
  Numbers circle;
  for (int k = 0; k < 50; ++k) {
    const double angle = 2.0 * M_PI * k / 50.0;
    circle.insert(circle.end(), {0.1 * std::cos(angle), 0.1 * std::sin(angle), -0.55});
    path.times.push_back(k / 50.0);
  }
  path.frames = {{"platform", circle}};
  const sarrus::RowMajor q = robot.follow(path);  // closed configurations on the branch of the home

  double largest = 0.0;
  for (int k = 0; k < q.rows(); ++k) {
    const double angle = 2.0 * M_PI * k / 50.0, rate = 2.0 * M_PI;
    const Numbers at(q.row(k).begin(), q.row(k).end());
    // the platform does not rotate, so its axes are parallel to those of the world
    const Numbers velocity = {-0.1 * rate * std::sin(angle), 0.1 * rate * std::cos(angle), 0.0};
    const Numbers v = robot.complete_velocity(at, {}, {{"platform", velocity}});
    const Numbers acceleration = {-0.1 * rate * rate * std::cos(angle), -0.1 * rate * rate * std::sin(angle), 0.0};
    const Numbers a = robot.complete_acceleration(at, v, {}, {{"platform", acceleration}});
    const Numbers efforts = robot.actuator_efforts(at, v, a);
    std::printf("%d:", k);
    for (const double effort : efforts) std::printf(" %.15g", effort), largest = std::max(largest, std::abs(effort));
    std::printf("\n");
  }
  std::printf("largest: %.15g\n", largest);  // [N m]
  return 0;
}
