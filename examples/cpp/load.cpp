// A mechanism from a JSON file that Python's robot.save("robot.json") wrote: prints its joints with their indices in q and v, its home, and the
// gravity forces at home. tests/core/test_core_alone.py compares the numbers with Python's.
#include <sarrus.hpp>

#include <cstdio>

int main(int, char** arguments) {
  try {
    const sarrus::Robot robot = sarrus::load(arguments[1]);
    for (const auto& written : robot.written().joints) {
      const sarrus::Joint joint = robot.joint(written.name);
      std::printf("%s: %d %d %d %d %d\n", written.name.c_str(), joint.q_start, joint.nq, joint.v_start, joint.nv,
                  joint.closes_loop);
    }
    const sarrus::Numbers q = robot.configuration_by_mass(robot.home());
    for (const auto& [name, numbers] :
         {std::pair<const char*, sarrus::Numbers>{"home", robot.home()}, {"q", q}, {"gravity_forces", robot.gravity_forces(q)}}) {
      std::printf("%s:", name);
      for (const double x : numbers) std::printf(" %.15g", x);
      std::printf("\n");
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
