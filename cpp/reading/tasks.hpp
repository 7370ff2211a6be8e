// Creation of task controllers from named arguments, for C++ and Python: tasks, contacts and limits. Arguments are names of joints and frames,
// functions of time, and numbers, which may differ between runs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elements.hpp"

namespace sarrus {

/// Arguments of a controller. Tasks and contacts have a kind and named arguments, like force elements.
struct TaskArguments {
  std::vector<Element> tasks, contacts;
  std::optional<Argument::Named> limits = Argument::Named();  // without a value, neither limits nor friction cones are enforced
  std::vector<std::string> actuated;  // joints with motors
  Argument effort_weights = 1.0;
  std::optional<double> force_arm;  // [m]; without a value, 1/30 of the mean body size
  std::vector<std::string>
      rigid;  // passive joints, such as springs in series, that the model of the controller replaces by rigid ones
};

/// A controller that is created from named arguments, with the names of its tasks and limits.
class NamedTaskControl {
 public:
  /// Raises ModelError, NameNotFoundError or ShapeError if an argument is wrong, or does not fit the mechanism.
  NamedTaskControl(const ElementModel& model, const TaskArguments& arguments);

  /// A frame target that is a function of the caller: the task, and the index of the first of its 24 values in the array of a call.
  struct Function {
    int task, first;
  };

  TaskControl law;
  RunParameters parameters;
  std::vector<std::string> names;  // names of the tasks, in the order of the arguments
  std::vector<int> levels, sizes;  // level (0: hard) and number of rows of each task
  std::vector<std::string> limits;  // names of the limits
  std::vector<Function> functions;
  std::vector<std::string> warnings;

  /// Return the controller as a force element.
  Element element() const {
    return {"TaskControl", {{"law", std::make_shared<const TaskControl>(law)}, {"numbers", parameters.all()}}};
  }
};

}  // namespace sarrus
