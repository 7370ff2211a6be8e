// Loop closure with fixed joints and prescribed frames: what all calls with the same ones share. The kernels iterate (loops/closing.hpp,
// loops/branch.hpp), in the scales of mobility/scaled_loops.hpp.
//
// A prescribed frame is a loop joint from the ground to a target that each call passes. A fixed loop joint has rows for its coordinates, whose
// residual is the deviation from the target coordinates. The velocities of a fixed tree joint are zero.
#pragma once

#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../loops/tolerances.hpp"
#include "../mobility/scaled_loops.hpp"
#include "states.hpp"

namespace sarrus {

/// Limits of a joint, one number per coordinate; empty: none [rad, m].
struct JointRange {
  std::vector<double> low, high;
  bool empty() const { return low.empty(); }
};

/// A mechanism, or variants, with the facts of its joints that the kernels do not need. Joints are in the order of the description.
struct PositionModel {
  const Mechanism& mechanism;
  const KernelTable& kernels;
  std::vector<JointRange> limits;
  std::optional<Vector> home;  // (nq), from which assembly starts; none: the neutral configuration
  RowsOfState rows;  // evaluates the rows that depend on q, if constraints have any
  std::function<void()> check_interrupt;  // called between the starts of a search; an exception ends it
  /// Return the same variants of a mechanism on the same tree with more constraints. Empty: the mechanism has no variants.
  std::function<std::shared_ptr<const Mechanism>(const Mechanism&)> vary = {};

  Vector neutral() const;
};

/// Prescribed frame: its pose, or the point at its origin. Its target is 12 numbers, the rows of [R p], or 3.
struct FrameKey {
  std::string frame;
  bool is_pose;
  bool operator<(const FrameKey& other) const { return std::tie(frame, is_pose) < std::tie(other.frame, other.is_pose); }
  int numbers() const { return is_pose ? 12 : 3; }
};

/// Damping of the first step, largest number of steps, and largest residual of a start [rad, sizes of the bodies].
struct ClosingSteps {
  double damping, most, farthest;
};
constexpr ClosingSteps near_steps = {tolerances::near_damping, tolerances::near_steps, tolerances::near_gap};
constexpr ClosingSteps steps_of_single_attempt = {1e-2, 30.0, 1e300}, far_steps = {1.0, 100.0, 1e300};

/// Times of prescribed motions, and targets of frames and loop joints (n, numbers).
struct ClosingInput {
  Times time;
  RowMajor targets;
  ClosingInput of(const std::vector<int>& rows) const {
    return {time ? Times(rows_of(*time, rows)) : Times(), rows_of(targets, rows)};
  }
};

class Closure {
 public:
  /// `fixed`: joints by index. Raises ModelError if fixed loop joints close a loop among the fixed joints: their coordinates depend on each other.
  Closure(const PositionModel& model, std::vector<FrameKey> frames, std::vector<int> fixed);

  /// Results of steps: configurations (n, nq), and their residuals (n), infinite without a result.
  struct ClosedStates {
    RowMajor q;
    Vector open;
  };
  /// Take steps from configurations q (n, nq). `weights` (rows) of the residual; empty: ones.
  ClosedStates close(const States& states, const RowMajor& q, const ClosingInput& input, const ClosingSteps& steps,
                     const Vector& weights = {}) const;
  /// The same for one state.
  struct Closed {
    Vector q;
    double open;
  };
  Closed close(const Vector& q, const ClosingInput& input, const ClosingSteps& steps, const Vector& weights = {}) const {
    ClosedStates closed = close(States(), q.transpose(), input, steps, weights);
    return {closed.q.row(0), closed.open(0)};
  }
  /// Return R J C of the holonomic rows at q, zero for fixed velocities and for entries that are not finite.
  Matrix jacobian(const Vector& q, const ClosingInput& input) const;
  /// Return the scaled loops of one state.
  ScaledLoops loops(const ClosingInput& input) const;

  /// Return true if moving joints and loop joints are within their limits, up to `margin` times the margin of limits.
  Flags within(const States& states, const RowMajor& q, double margin, const Times& time) const;
  bool within(const Vector& q, double margin, const Times& time) const {
    return within(States(), q.transpose(), margin, time)(0);
  }
  /// Return configurations without unnecessary whole turns: as near to those of the start (n or 1 rows) as limits allow.
  RowMajor unwound(RowMajor q, const RowMajor& start) const;
  Vector unwound(const Vector& q, const Vector& start) const {
    return unwound(RowMajor(q.transpose()), RowMajor(start.transpose())).row(0).transpose();
  }
  /// Return q with the coordinates of moving joints within their limits.
  Vector clipped(const Vector& q) const { return q.cwiseMax(low_).cwiseMin(high_); }
  /// Return the name of the kind of a constraint: that of a loop joint, of another constraint, or "Target".
  std::string kind_of(int constraint) const;
  /// Return q moved along scaled velocities x (nv), and the scaled velocities from q0 to q1.
  Vector step(const Vector& q, const Vector& x) const;
  Vector difference(const Vector& q0, const Vector& q1) const;
  RowMajor difference(const States& states, const RowMajor& q0, const RowMajor& q1) const;
  /// Return targets in the order of the kernels, from those of frames, and from coordinates of all fixed joints (n or 1 rows each).
  RowMajor targets(int count, const std::vector<RowMajor>& frames, const std::vector<RowMajor>& coordinates) const;
  /// Return the targets of frames, the first of all.
  RowMajor frame_targets(const RowMajor& targets) const { return targets.leftCols(targets.cols() ? numbers - joint_numbers : 0); }
  /// Return the scales (nv + rows) for the kernels; fixed velocities and velocity constraints have zero.
  Vector scale(const Vector& weights = {}) const;
  /// The same for the variant of each state, or one row for all states of one mechanism; with `all`, also of fixed velocities.
  RowMajor scales(const States& states, const Vector& weights = {}, bool all = false) const;
  /// Return the values of the rows of a call: those that depend on q, then targets.
  RowMajor values(const RowMajor& q, const RowMajor& targets) const;
  /// Return the rows of the target of a frame, by its position in `frames`, or of a fixed loop joint, by its position in `loop_joints` after these.
  std::pair<int, int> target_rows(std::size_t target) const { return target_rows_[target]; }

  const PositionModel& model;
  const std::vector<FrameKey> frames;
  const std::vector<int> fixed, loop_joints;  // joints by index; loop_joints: the fixed ones that close loops
  int numbers = 0, joint_numbers = 0;  // of targets: all, and those of loop joints
  std::vector<bool> moving;  // (nv) true for velocities that are not fixed
  Vector fixed_mask, units;  // (nv) 1 for fixed velocities; (nv + rows) scales of all velocities and rows, fixed or not
  Vector coordinate_scale;  // (nq) scale of coordinates: the mechanism's length for displacements, 1 for angles and quaternions
  bool limited = false;  // true if a joint that is not fixed has limits

  const Mechanism& mechanism() const { return *mechanism_; }
  const StateFunctions& functions() const { return functions_; }
  /// Evaluate an operation of the mechanism with a constraint for each target.
  RowMajor evaluate(Operation operation, const States& states, std::initializer_list<const RowMajor*> inputs, int size,
                    int waypoints = 1) const {
    return sarrus::evaluate(*mechanism_, model.kernels, operation, states, inputs, size, {}, waypoints);
  }

 private:
  std::shared_ptr<const Mechanism> mechanism_;  // with a constraint for each target
  StateFunctions functions_;
  std::unique_ptr<ScaledLoops> loops_;
  std::vector<std::pair<int, int>> target_rows_;  // first row and number of rows
  Vector low_, high_;
  std::vector<bool> whole_turns_;  // (nq) true for angles for which a whole turn gives the same configuration
  Vector loop_low_, loop_high_, loop_near_, loop_margin_;  // of the coordinates of all loop joints; empty: no limits
};

/// Cache of the closures of a model, one for each set of frames and fixed joints, prepared at its first request. Several threads may use it at once.
class Closures {
 public:
  explicit Closures(const PositionModel& m) : model(m) {}
  std::shared_ptr<const Closure> of(const std::vector<FrameKey>& frames, const std::vector<int>& fixed) const;

  const PositionModel& model;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::vector<FrameKey>, std::vector<int>>, std::shared_ptr<const Closure>> closures_;
};

/// Unit of a coordinate of a joint: 'r' [rad], 'm' [m] or '1'.
char coordinate_unit(const JointDescription& joint, int coordinate);
/// True if a whole turn of an angle of the joint restores the pose; a screw's does not.
bool whole_turns_return(const JointDescription& joint);
/// Return the neutral coordinates of a joint.
Vector neutral_coordinates(const JointDescription& joint);
/// Return the fewest whole turns [rad] that bring an angle within its limits; 0 if no turns do.
double turns_into(double x, double low, double high, double margin);
/// Return the joints of these that close no loop with the preceding ones.
std::vector<int> without_loops(const Mechanism& mechanism, const std::vector<int>& joints);
/// Return the names in quotation marks, separated by commas.
std::string quoted_joints(const Mechanism& mechanism, const std::vector<int>& joints);

constexpr double full_turn = 2.0 * M_PI;
/// Margin of limits [rad, sizes of the bodies]: more than closing the loops leaves in any joint.
constexpr double limit_margin = 1e-5;

}  // namespace sarrus
