// Functions of a state, recorded: an operation of kernels/operation_list.hpp by its name, on numbers that are not known yet.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../control/tasks.hpp"
#include "../kernels/operation_list.hpp"
#include "../mechanism/mechanism.hpp"
#include "graph.hpp"

namespace sarrus {

/// Operations that are compiled for records.
// clang-format off: it does not come to an end here
#define SARRUS_RECORDED(X) \
  X(inverse_dynamics) X(mass_matrix) X(bias_forces) X(gravity_forces) X(pose) X(velocity) X(jacobian) \
  X(integrate) X(coordinate_rate) X(forward_dynamics) X(constraint_jacobian) X(constraint_residual) \
  X(actuator_efforts) X(constraint_bias)
// clang-format on

struct RecordedOperation {
  Operation operation;
  const char *name, *inputs, *axes;
  unsigned facts;
};
const std::vector<RecordedOperation>& recorded_operations();

/// A mechanism whose numbers are rounded where arithmetic has left next to nothing of a zero or of a one (cosines of quarter turns): what is
/// multiplied by a zero falls away. They change by less than rounding of the mechanism's size.
class RoundedTree {
 public:
  /// Round the numbers of a tree. `in_world`: rows of ball joints along the world's axes, which leaves motions unchanged.
  RoundedTree(const Tree& tree, bool in_world);
  RoundedTree(const RoundedTree&) = delete;
  RoundedTree& operator=(const RoundedTree&) = delete;
  const Tree& tree() const { return tree_; }

 private:
  Tree tree_;
  std::vector<Link> links_;
  std::vector<Constraint> constraints_;
};

/// Expressions of the result and of the status, from the expressions `in` (none: not given), recorded in Graph::current().
struct RecordedResult {
  Ids result;
  int status;
};
RecordedResult record(const Tree& tree, const RecordedOperation& operation, const Frame& frame,
                      const std::vector<std::optional<Ids>>& in);

/// A controller of tasks without limits and contacts: efforts of its motors, accelerations, and of the rows of all tasks errors and what they miss.
/// A law without any piece stands for three numbers, value, rate and acceleration, among the parameters, from the place `which` on.
struct RecordedTasks {
  Ids efforts, acceleration, error, missed, z_dot;
  int status;
};
struct TaskInputs {
  Ids parameter, call, time, q, v, z;
};
RecordedTasks record(const Tree& tree, const TaskControl& control, const TaskInputs& in);

}  // namespace sarrus
