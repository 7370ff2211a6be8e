// Recorded functions of a state: the operations of kernels/operation_list.hpp by name, evaluated on symbolic numbers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
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

/// Copy of a mechanism in which parameters that are zero or one up to rounding (such as cosines of quarter revolutions) are exactly zero or one, so
/// that products with zero can be omitted. The changes are smaller than the rounding error of the mechanism's length.
class RoundedTree {
 public:
  /// Round the parameters of a tree. `in_world`: express the rows of ball joints along the world's axes, which does not change motions.
  RoundedTree(const Tree& tree, bool in_world);
  RoundedTree(const RoundedTree&) = delete;
  RoundedTree& operator=(const RoundedTree&) = delete;
  const Tree& tree() const { return tree_; }

 private:
  Tree tree_;
  std::vector<Link> links_;
  std::vector<Constraint> constraints_;
};

/// Add the places of the numbers in a copy of this memory; those of a copy of a tree, with its links, passive terms and constraints.
void add_copy(NumberPlaces& places, const void* from, const void* to, std::size_t bytes);
void add_copy(NumberPlaces& places, const Tree& from, const Tree& to);

/// Places of the numbers that are parameters of the current recording, within this scope.
class WithPlaces {
 public:
  explicit WithPlaces(NumberPlaces places)
      : before_(std::exchange(Graph::current()->places,
                              places.empty() ? nullptr : std::make_shared<const NumberPlaces>(std::move(places)))) {}
  ~WithPlaces() { Graph::current()->places = std::move(before_); }
  WithPlaces(const WithPlaces&) = delete;
  WithPlaces& operator=(const WithPlaces&) = delete;

 private:
  std::shared_ptr<const NumberPlaces> before_;
};

/// Record an operation into Graph::current(); returns the expressions of the result and of the status. `in`: expressions of the inputs (none:
/// omitted).
struct RecordedResult {
  Ids result;
  int status;
};
RecordedResult record(const Tree& tree, const RecordedOperation& operation, const Frame& frame,
                      const std::vector<std::optional<Ids>>& in);

/// A recorded task controller without limits and contacts: efforts of its motors, accelerations, and errors and residuals of the rows of all tasks.
/// If a time function has no pieces, its value, rate and acceleration are inputs: three parameters, beginning at its `parameter_index`.
struct RecordedTasks {
  Ids efforts, acceleration, error, missed, z_dot;
  int status;
};
struct TaskInputs {
  Ids parameter, call, time, q, v, z;
};
RecordedTasks record(const Tree& tree, const TaskControl& control, const TaskInputs& in);

}  // namespace sarrus
