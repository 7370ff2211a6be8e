// Force elements and tasks by the names of joints and frames: runs of a second with the mechanisms of two files, and messages of wrong arguments.
// tests/core/test_core_alone.py compares the output with Python's.
#include <cstdio>

#include "../../cpp/sarrus.hpp"

using sarrus::Argument;
using sarrus::Element;
using sarrus::Numbers;

namespace {

void print(const char* name, const Numbers& x) {
  std::printf("%s:", name);
  for (const double number : x) std::printf(" %.17g", number);
  std::printf("\n");
}

/// Simulate one second from rest in the home configuration, in steps of 1 ms.
void simulate(const char* name, const sarrus::Robot& robot, const std::vector<Element>& elements,
              sarrus::Method method = sarrus::Method::rk4) {
  const sarrus::Assembled closed = robot.assemble();
  sarrus::ElementRun run;  // default values depend on the inertia at the start
  run.start = sarrus::model::NumberArray{{static_cast<std::size_t>(closed.q.size())}, {closed.q.begin(), closed.q.end()}};
  const auto acting = robot.force_elements(elements, run);
  sarrus::Plan plan;
  plan.method = method;
  plan.force_elements = acting.all();
  const sarrus::Simulation simulation = robot.simulation(plan, acting.numbers().numbers.data());
  Numbers state(closed.q.begin(), closed.q.end());
  state.resize(static_cast<std::size_t>(simulation.size()));
  Numbers row = simulation.begin(state);
  const auto done = simulation.run_fixed({0.0, 1e-3, 0, 1000}, row.data());
  if (done.status != 0.0) std::printf("%s failed\n", name);
  row.resize(static_cast<std::size_t>(robot.tree().nq + robot.tree().nv));
  print(name, row);
}

void print_error(const sarrus::Robot& robot, const Element& element) {
  try {
    robot.force_elements({element});
    std::printf("error: none\n");
  } catch (const std::exception& error) {
    std::printf("error: %s\n", error.what());
  }
}

}  // namespace

int main(int, char** arguments) {
  constexpr double target_height = -0.6;
  const sarrus::Robot robot = sarrus::load(arguments[1]);
  const sarrus::Law target = {{0.0}, {0.5}, {0.3, 3.0, 0.0}};
  const Element pid = {"PID",
                       {{"joint", "motor"},
                        {"proportional", 40.0},
                        {"integral", 10.0},
                        {"derivative", 3.0},
                        {"target", target},
                        {"limits", {-15.0, 15.0}}}};
  const Element push = {"FeedforwardEffort", {{"joint", "pin1"}, {"law", 0.2}}};
  simulate("controlled", robot, {push, pid});
  simulate(
      "stopped", robot,
      {{"EndStop", {{"joint", "motor"}, {"limits", {-0.2, 0.3}}}}, {"FeedforwardEffort", {{"joint", "motor"}, {"law", 5.0}}}});
  simulate("computed", robot, {{"ComputedTorque", {{"targets", Argument::Named{{"motor", 1.0}}}}}});
  simulate("loaded", robot, {{"AppliedWrench", {{"frame", "rocker"}, {"wrench", {0.0, target, 0.0, 1.0, 0.0, -2.0}}}}});
  simulate("rubbing", robot, {{"LuGreFriction", {{"joint", "motor"}, {"sliding", 0.5}}}}, sarrus::Method::rosenbrock);
  const Element bushing = {"Bushing",
                           {{"frame", "rocker"},
                            {"on", "crank"},
                            {"stiffness", {0.0, 0.1, 0.0, 5.0, 0.0, 6.0}},
                            {"damping", 0.1},
                            {"preload", {0.0, 0.0, 0.0, 1.0, 0.0, 0.0}}}};
  const Element play = {
      "PinClearance",
      {{"frame", "rocker"}, {"on", "ground"}, {"axis", "y"}, {"clearance", 0.9}, {"radius", 0.1}, {"stiffness", 30.0}}};
  const Element strut = {
      "GasSpring",
      {{"frame", "rocker"}, {"on", "crank"}, {"extended_length", 2.0}, {"stroke", 1.9}, {"force", 2.0}, {"damping", 0.5}}};
  simulate("mounted", robot, {bushing, play, strut}, sarrus::Method::contact);

  const sarrus::Robot delta = sarrus::load(arguments[2]);
  sarrus::TaskArguments tasks;
  tasks.tasks = {{"FrameTask", {{"frame", "platform"}, {"target", {0.1, 0.0, target_height}}, {"stiffness", 400.0}}},
                 {"PostureTask", {{"targets", delta.home()}, {"priority", 1}}}};
  tasks.limits = Argument::Named{{"effort", 60.0}};
  const auto controller = delta.task_control(tasks);
  for (const std::string& name : controller.names) std::printf("task: %s\n", name.c_str());
  simulate("tasks", delta, {controller.element()});
  for (const Element& wrong : std::vector<Element>{{"FrameTask", {{"frame", "platfrm"}, {"target", {0.0, 0.0, 0.0}}}},
                                                   {"FrameTask", {{"frame", "platform"}, {"target", {0.0, 0.0}}}},
                                                   {"JointTask", {{"joint", "platform"}, {"target", 0.0}}}}) {
    tasks.tasks = {wrong};
    try {
      delta.task_control(tasks);
      std::printf("wrong task: none\n");
    } catch (const std::exception& error) {
      std::printf("wrong task: %s\n", error.what());
    }
  }

  const auto runs = robot.force_elements({{"PID", {{"joint", "motor"}, {"proportional", {1.0, 2.0, 3.0}}}}});
  print("parameters", runs.numbers().numbers);

  print_error(robot, {"PID", {{"joint", "moter"}}});
  print_error(robot, {"PID", {{"joint", "motor"}, {"limits", {1.0, -1.0}}}});
  print_error(robot, {"ComputedTorque", {{"targets", Argument::Named{}}}});
  print_error(robot, {"EndStop", {{"joint", "motor"}}});
  print_error(robot, {"LuGreFriction", {{"joint", "motor"}, {"sliding", 1.0}, {"sticking", 0.5}}});
  print_error(robot, {"Thruster", {{"frame", "rockr"}, {"thrust", 1.0}}});
  print_error(robot, {"AppliedWrench", {{"frame", "rocker"}, {"wrench", {1.0, 2.0, 3.0}}}});
  print_error(robot, {"Bushing", {{"frame", "rocker"}, {"on", "rocker"}, {"stiffness", 1.0}}});
  print_error(robot, {"Bushing", {{"frame", "rocker"}, {"on", "crank"}, {"stiffness", {1.0, 2.0}}}});
  // errors only in C++: Python raises them in the class of the element
  print_error(robot, {"PID", {{"joint", "motor"}, {"propotional", 1.0}}});
  print_error(robot, {"PID", {}});
  print_error(robot, {"Pid", {}});
  return 0;
}
