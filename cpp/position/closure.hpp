// Loop closure with fixed joints and prescribed frames: the data that all calls with the same fixed joints and frames share. The kernels contain the
// iterations (loops/closing.hpp, loops/branch.hpp). Units are those of mobility/scaled_loops.hpp.
//
// A prescribed frame is modelled as a loop joint from the ground, with the target that each call passes. A fixed loop joint has additional rows,
// whose residuals are the deviations of its coordinates from their targets. The velocities of a fixed tree joint are zero.
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

/// Limits of a joint [rad, m], one number per coordinate; empty: no limits.
struct JointRange {
  std::vector<double> low, high;
  bool empty() const { return low.empty(); }
};

/// A mechanism, or variants of it, with properties of its joints that kernels do not read. Joints are in the order of the description.
struct PositionModel {
  const Mechanism& mechanism;
  const KernelTable& kernels;
  std::vector<JointRange> limits;
  std::optional<Vector> home;  // (nq) initial guess of assembly; none: the neutral configuration
  RowsOfState rows;  // evaluates the rows that depend on q, if constraints have any
  std::function<void()> check_interrupt;  // called before each new initial guess of a search; an exception ends the search
  /// Return the same variants of a mechanism on the same tree with more constraints. Empty: the mechanism has no variants.
  std::function<std::shared_ptr<const Mechanism>(const Mechanism&)> vary = {};

  Vector neutral() const;
};

/// Prescribed frame: its pose, with a target of 12 numbers (the rows of [R p]), or its origin, with a target of 3. Or only some components of these:
/// those of a position, and of motions if `in_world`, are along the world's axes, all others along the frame's axes.
struct FrameKey {
  static constexpr unsigned rotation = 7, position = 56;

  std::string frame;
  bool is_pose;
  unsigned components = is_pose ? rotation | position : position;  // bit set of prescribed components of [angular; linear]
  bool in_world = false;

  bool operator<(const FrameKey& other) const {
    return std::tie(frame, is_pose, components, in_world) <
           std::tie(other.frame, other.is_pose, other.components, other.in_world);
  }
  bool operator==(const FrameKey& other) const { return !(*this < other) && !(other < *this); }
  int numbers() const { return is_pose ? 12 : 3; }
  bool has(int component) const { return components >> component & 1; }
};
/// Return the constraint of a prescribed frame.
ConstraintDescription target_constraint(const FrameKey& key);
/// Return the components of a target (3 or 12 numbers, with a stride of 1) that are prescribed, as a bit set: NaN marks free components. A rotation is
/// prescribed as a whole, or free. 0: the target is invalid.
unsigned prescribed_components(const double* target, int numbers);

/// Damping of the first step, largest number of steps, and largest residual of a start [rad, sizes of the bodies].
struct ClosingSteps {
  double damping, most, farthest;
};
constexpr ClosingSteps near_steps = {tolerances::near_damping, tolerances::near_steps, tolerances::near_gap};
constexpr ClosingSteps steps_of_single_attempt = {1e-2, 30.0, 1e300}, far_steps = {1.0, 100.0, 1e300};

/// Times of prescribed motions, and targets of frames and fixed loop joints (n, numbers).
struct ClosingInput {
  Times time;
  RowMajor targets;
  ClosingInput of(const std::vector<int>& rows) const {
    return {time ? Times(rows_of(*time, rows)) : Times(), rows_of(targets, rows)};
  }
};

class Closure {
 public:
  /// `fixed`: joints by index. Raises ModelError if the fixed joints form a loop, because their coordinates then depend on each other.
  Closure(const PositionModel& model, std::vector<FrameKey> frames, std::vector<int> fixed);

  /// Configurations (n, nq) after the steps, and their residuals (n), which are infinite for states without a result.
  struct ClosedStates {
    RowMajor q;
    Vector open;
  };
  /// Take steps from configurations q (n, nq) to close the loops. `weights` (rows): weights of the residuals; empty: all are 1.
  ClosedStates close(const States& states, const RowMajor& q, const ClosingInput& input, const ClosingSteps& steps,
                     const Vector& weights = {}) const;
  /// Result for one state.
  struct Closed {
    Vector q;
    double open;
  };
  Closed close(const Vector& q, const ClosingInput& input, const ClosingSteps& steps, const Vector& weights = {}) const {
    ClosedStates closed = close(States(), q.transpose(), input, steps, weights);
    return {closed.q.row(0), closed.open(0)};
  }
  /// Return R J C (mobility/scaled_loops.hpp) of the holonomic rows at q. Columns of fixed velocities, and entries that are not finite, are zero.
  Matrix jacobian(const Vector& q, const ClosingInput& input) const;
  /// Return the scaled loops of one state.
  ScaledLoops loops(const ClosingInput& input) const;

  /// Return true if moving joints and loop joints are within their limits, with a tolerance of `margin` times `limit_margin`.
  Flags within(const States& states, const RowMajor& q, double margin, const Times& time) const;
  bool within(const Vector& q, double margin, const Times& time) const {
    return within(States(), q.transpose(), margin, time)(0);
  }
  /// Add whole turns to the angles of q, such that they are as near to those of the start (n or 1 rows) as limits allow.
  RowMajor unwound(RowMajor q, const RowMajor& start) const;
  Vector unwound(const Vector& q, const Vector& start) const {
    return unwound(RowMajor(q.transpose()), RowMajor(start.transpose())).row(0).transpose();
  }
  /// Return q, with the coordinates of moving joints clamped to their limits.
  Vector clipped(const Vector& q) const { return q.cwiseMax(low_).cwiseMin(high_); }
  /// Return the name of the kind of a constraint: that of a loop joint, of another constraint, or "Target".
  std::string kind_of(int constraint) const;
  /// step: return q after a displacement along scaled velocities x (nv). difference: return the scaled velocities of the displacement from q0 to q1.
  Vector step(const Vector& q, const Vector& x) const;
  Vector difference(const Vector& q0, const Vector& q1) const;
  RowMajor difference(const States& states, const RowMajor& q0, const RowMajor& q1) const;
  /// Return the targets in the order of the kernels, from the targets of frames and the coordinates of all fixed joints (n or 1 rows each).
  RowMajor targets(int count, const std::vector<RowMajor>& frames, const std::vector<RowMajor>& coordinates) const;
  /// Return the targets of frames, which are the first columns of all targets.
  RowMajor frame_targets(const RowMajor& targets) const { return targets.leftCols(targets.cols() ? numbers - joint_numbers : 0); }
  /// Return the scales (nv + rows) for the kernels; those of fixed velocities and of rows that restrict only velocities are zero.
  Vector scale(const Vector& weights = {}) const;
  /// Return these scales for the variant of each state, or one row for all states of one mechanism. With `all`, scales of fixed velocities are not
  /// zero.
  RowMajor scales(const States& states, const Vector& weights = {}, bool all = false) const;
  /// Return the values of rows that the caller supplies to the kernels: the rows that depend on q, then the targets.
  RowMajor values(const RowMajor& q, const RowMajor& targets) const;
  /// Return first row and number of rows of a target. Targets are numbered like `frames`, then like `loop_joints`.
  std::pair<int, int> target_rows(std::size_t target) const { return target_rows_[target]; }

  const PositionModel& model;
  const std::vector<FrameKey> frames;
  const std::vector<int> fixed, loop_joints;  // indices of the fixed joints; loop_joints: those fixed joints that are loop joints
  int numbers = 0, joint_numbers = 0;  // number of values of all targets, and of the targets of loop joints
  std::vector<bool> moving;  // (nv) true for velocities that are not fixed
  Vector fixed_mask, units;  // (nv) 1 for fixed velocities; (nv + rows) scales of all velocities and rows, fixed or not
  Vector coordinate_scale;  // (nq) scale of coordinates: the mechanism's length for displacements, 1 for angles and quaternions
  bool limited = false;  // true if a joint that is not fixed has limits

  const Mechanism& mechanism() const { return *mechanism_; }
  const StateFunctions& functions() const { return functions_; }
  /// Evaluate an operation of the mechanism that contains a constraint for each target.
  RowMajor evaluate(Operation operation, const States& states, std::initializer_list<const RowMajor*> inputs, int size,
                    int waypoints = 1) const {
    return sarrus::evaluate(*mechanism_, model.kernels, operation, states, inputs, size, {}, waypoints);
  }

 private:
  std::shared_ptr<const Mechanism> mechanism_;  // the mechanism with an additional constraint for each target
  StateFunctions functions_;
  std::unique_ptr<ScaledLoops> loops_;
  std::vector<std::pair<int, int>> target_rows_;  // first row and number of rows
  Vector low_, high_;
  std::vector<bool> whole_turns_;  // (nq) true for angles for which a whole turn gives the same configuration
  Vector loop_low_, loop_high_, loop_near_, loop_margin_;  // limits of the coordinates of all loop joints; empty: no limits
};

/// Cache of the closures of a model, one for each set of frames and fixed joints. A closure is prepared when it is first requested. Thread-safe.
class Closures {
 public:
  explicit Closures(const PositionModel& m) : model(m) {}
  std::shared_ptr<const Closure> of(const std::vector<FrameKey>& frames, const std::vector<int>& fixed) const;

  const PositionModel& model;

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::pair<std::vector<FrameKey>, std::vector<int>>, std::shared_ptr<const Closure>> closures_;
};

/// Return the unit of a coordinate of a joint: 'r' (radian), 'm' (metre) or '1' (none).
char coordinate_unit(const JointDescription& joint, int coordinate);
/// Return true if a whole turn of an angle of the joint restores the configuration. It does not for a helical joint, which also translates, and for
/// an angle in a coupler, unless the coupler's functions of it repeat after a turn.
bool whole_turns_return(const Description& description, const JointDescription& joint);
/// Return the neutral coordinates of a joint.
Vector neutral_coordinates(const JointDescription& joint);
/// Return the fewest whole turns [rad] that bring an angle within its limits; 0 if no turns do.
double turns_into(double x, double low, double high, double margin);
/// Return those of the joints that do not form a loop with preceding joints of the list.
std::vector<int> without_loops(const Mechanism& mechanism, const std::vector<int>& joints);
/// Return the names in quotation marks, separated by commas.
std::string quoted_joints(const Mechanism& mechanism, const std::vector<int>& joints);

constexpr double full_turn = 2.0 * M_PI;
/// Tolerance of joint limits [rad, sizes of the bodies]; it is larger than the error of any joint after the loops are closed.
constexpr double limit_margin = 1e-5;

}  // namespace sarrus
