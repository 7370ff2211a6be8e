// Wrenches of all joints of a four-bar in two motions, as needed for the choice of its bearings, and the indeterminate components of its reactions
// (tests/core/test_core_alone.py compares them with Python).
#include <sarrus.hpp>

#include <cstdio>

#include "four_bar.hpp"

int main() {
  const sarrus::Robot robot(four_bar(0.4, 1.1, 0.9, 1.0));
  const sarrus::Numbers q = robot.configuration_by_mass(sarrus::Numbers{0.5, -1.7, -1.9});
  const sarrus::Numbers v = robot.velocity_by_mass(q, sarrus::Numbers{6.0, -8.0, -4.0});
  const sarrus::Numbers a = robot.forward_dynamics(q, v, sarrus::Numbers{2.0, 0.0, 0.0});

  const auto print = [](const char* what, const sarrus::Named<sarrus::Matrix>& all) {
    for (const auto& [name, rows] : all) {
      std::printf("%s %s:", what, name.c_str());
      for (Eigen::Index i = 0; i < rows.rows(); ++i)
        for (Eigen::Index k = 0; k < rows.cols(); ++k) std::printf(" %.15g", rows(i, k));
      std::printf("\n");
    }
  };
  sarrus::JointWrenchOptions options;
  options.wrenches = {{robot.frame("rocker"), {0, 3, 0, 0, 0, 0}}};
  const sarrus::JointWrenches one = robot.joint_wrenches(q, v, a, options);
  print("wrench", one.wrenches), print("effort", one.efforts);

  options.actuated = {"pivot", "motor"};
  sarrus::Numbers two[3] = {q, v, a};  // two states: this motion, and rest
  two[0].insert(two[0].end(), q.begin(), q.end());
  for (int k : {1, 2}) two[k].insert(two[k].end(), 3, 0.0);
  const sarrus::JointWrenches many = robot.joint_wrenches(two[0], two[1], two[2], options);
  print("wrenches", many.wrenches), print("efforts", many.efforts);

  for (const auto& [name, components] : robot.indeterminate_reactions(q)) {
    std::printf("indeterminate %s:", name.c_str());
    for (const std::string& component : components) std::printf(" %c%c", component[0], component.back());
    std::printf("\n");
  }
  return 0;
}
