// Recorded functions of a state: operations of kernels/operation_list.hpp by name, evaluated with symbolic numbers.
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
// clang-format off: it does not terminate on this macro
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

/// Mechanism whose parameters are set to zero or one if they differ from these only by rounding (cosines of quarter
/// turns), so that products with zero vanish. The changes are below the rounding of the mechanism's length.
class RoundedTree {
 public:
  /// Round the parameters of a tree. `in_world`: rows of ball joints along the world's axes, which leaves motions unchanged.
  RoundedTree(const Tree& tree, bool in_world);
  RoundedTree(const RoundedTree&) = delete;
  RoundedTree& operator=(const RoundedTree&) = delete;
  const Tree& tree() const { return tree_; }

 private:
  Tree tree_;
  std::vector<Link> links_;
  std::vector<Constraint> constraints_;
};

/// Expressions of the result and of the status, from the expressions `in` (none: omitted), recorded in Graph::current().
struct RecordedResult {
  Ids result;
  int status;
};
RecordedResult record(const Tree& tree, const RecordedOperation& operation, const Frame& frame,
                      const std::vector<std::optional<Ids>>& in);

/// A recorded task controller without limits and contacts: efforts of its motors, accelerations, and of the rows of all tasks errors and residuals. A
/// law without pieces is read from the parameters: value, rate and acceleration, from index `which` on.
struct RecordedTasks {
  Ids efforts, acceleration, error, missed, z_dot;
  int status;
};
struct TaskInputs {
  Ids parameter, call, time, q, v, z;
};
RecordedTasks record(const Tree& tree, const TaskControl& control, const TaskInputs& in);

}  // namespace sarrus
