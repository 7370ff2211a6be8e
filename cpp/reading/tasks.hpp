// Task controllers by named arguments, in C++ and Python: tasks, contacts and limits, with joints and frames by their names, functions of time, and
// numbers, which may differ between runs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elements.hpp"

namespace sarrus {

/// Arguments of a controller. Tasks and contacts are given by kind, as elements are.
struct TaskArguments {
  std::vector<Element> tasks, contacts;
  std::optional<Argument::Named> limits = Argument::Named();  // none: no limits, and no friction cones
  std::vector<std::string> actuated;  // joints with motors
  Argument effort_weights = 1.0;
  std::optional<double> force_arm;  // none: 1/30 of the mean body size
};

/// Controller that was made from named arguments, and the names of its parts.
class NamedTaskControl {
 public:
  /// ModelError, NameNotFoundError, ShapeError: an argument is wrong, or does not fit the mechanism.
  NamedTaskControl(const ElementModel& model, const TaskArguments& arguments);

  /// Target of a frame that is a function of the caller: the task, and the index of its 24 values in the array of a call.
  struct Function {
    int task, first;
  };

  TaskControl law;
  RunParameters parameters;
  std::vector<std::string> names;  // of the tasks, in the order of the arguments
  std::vector<int> levels, sizes;  // level (0: hard) and number of rows of each task
  std::vector<std::string> limits;  // names
  std::vector<Function> functions;
  std::vector<std::string> warnings;

  /// Return the controller as a force element.
  Element element() const {
    return {"TaskControl", {{"law", std::make_shared<const TaskControl>(law)}, {"numbers", parameters.all()}}};
  }
};

}  // namespace sarrus
