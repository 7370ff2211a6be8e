// Configurations that close all loops: assembly, assembly modes, inverse kinematics and path continuation; and the velocities and accelerations
// that loops allow. Functions and results are those of Python's Mechanism.
//
// A single state is a batch of one: the algorithms take a row for each state, and the kernels evaluate all rows in parallel. Only searches from
// random starts run state by state.
//
// The loop equations are F(u, x) = 0, with prescribed coordinates x and the other coordinates u. If x determines the motion at the start, the branch
// is the curve u(s) along the straight path of x from the start to the goal. The kernels compute the end of this curve (loops/branch.hpp), in one
// jump if this is certain to stay on the branch, else by continuation. If x does not determine the motion, or the start is singular, there is no such
// curve; then the nearest configuration is searched for from many starts (search.hpp).
#pragma once

#include <map>
#include <mutex>

#include "other_tree.hpp"
#include "search.hpp"

namespace sarrus {

/// Choice of the branch. `start`: the branch of the start; if it does not reach the goal, the nearest solution on another branch. `only`: the branch
/// of the start, or an error. `any`: the nearest solution on any branch.
enum class BranchChoice { start, only, any };

/// Options of assembly. `starts`: number of further initial guesses that are tried if the first one fails; `tolerance`: largest residual of a closed
/// loop [rad, mean sizes of the bodies]; `time`: time of prescribed motions [s].
struct AssemblyOptions {
  BranchChoice branch = BranchChoice::start;
  int starts = 60;
  std::uint64_t seed = 0;
  double tolerance = tolerances::closed;
  std::optional<double> time;
};

/// Values of joints, by name: coordinates [rad, m, quaternions (x, y, z, w)], velocities or accelerations.
using JointNumbersByName = std::vector<std::pair<std::string, std::vector<double>>>;
/// Values of frames, by name: targets, which are 12 numbers (rows of [R p]) or 3 (a point [m]); or velocities or accelerations, [angular; linear] (6)
/// or of the origin only (3). NaN marks free components: coordinates of a point in the world, a whole rotation (nine NaN), components of a velocity.
using FrameNumbersByName = std::vector<std::pair<std::string, std::vector<double>>>;

/// Initial guess of a search: a configuration (nq), or coordinates of some joints, which are kept if the loops can close with them. If both are
/// empty, the home is used.
struct AssemblyStart {
  std::optional<Vector> q;
  JointNumbersByName joints;

  AssemblyStart() = default;
  AssemblyStart(Vector configuration) : q(std::move(configuration)) {}
  AssemblyStart(const std::vector<double>& configuration)
      : q(Eigen::Map<const Vector>(configuration.data(), static_cast<Eigen::Index>(configuration.size()))) {}
  AssemblyStart(JointNumbersByName coordinates) : joints(std::move(coordinates)) {}
};

/// Configuration with closed loops. `other_branch`: true if it is on another branch than the start, or if this cannot be decided; `reason` is the
/// cause.
struct Assembled {
  Vector q;
  bool other_branch = false;
  std::string reason;
};

/// Initial guesses of a batch: configurations (n or 1 rows of nq), or coordinates of joints (n or 1 rows each, flattened).
struct AssemblyStarts {
  std::optional<RowMajor> q;
  JointNumbersByName joints;
};

/// Options of a batch. `starts`: number of random starts of each state; by default zero, but AssemblyOptions::starts if all states share one initial
/// guess that must be closed first. `time`: (n or 1, 1).
struct BatchOptions {
  BranchChoice branch = BranchChoice::start;
  std::optional<int> starts;
  std::uint64_t seed = 0;
  double tolerance = tolerances::closed;
  Times time;
  States states;  // number of states, number of threads and, for variants, the variant of each state
};

/// Configurations (n, nq), which are NaN for states without a solution, and the status of each state (mechanism/status.hpp).
struct AssembledStates {
  RowMajor q;
  std::vector<signed char> status;
};

/// Error: the branch of the start ends before the goal. `path`: the configurations up to the last input that was reached; `last`: the end of the
/// branch.
struct PathTrackingError : AssemblyError {
  PathTrackingError(const std::string& message, RowMajor on_path, Vector end)
      : AssemblyError(message), path(std::move(on_path)), last(std::move(end)) {}
  RowMajor path;
  Vector last;
};

/// Inputs along a path of n configurations: n values of each joint and frame, and times (n) [s], which may be empty.
struct PathInputs {
  JointNumbersByName joints;
  FrameNumbersByName frames;
  std::vector<double> times;
};
/// `max_step`: largest motion of a joint in one step [rad, mean sizes of the bodies]. `min_step`: smallest step, as a fraction of the path between
/// two inputs; the branch ends if a shorter one is needed.
struct PathOptions {
  double max_step = 0.2, min_step = 1e-7, tolerance = tolerances::closed;
};

/// Position functions of one mechanism. The closure for a set of fixed joints and frames is prepared at the first call and cached. Thread-safe.
class Positions {
 public:
  explicit Positions(PositionModel model) : model_(std::move(model)) {}

  /// Solve the loop-closure equations for a configuration on the branch of `near`, with the given coordinates of the `fixed` joints. Raises
  /// AssemblyError if no start yields closed loops, PathTrackingError if the branch ends before the given coordinates.
  Assembled assemble(const AssemblyStart& near = {}, const JointNumbersByName& fixed = {},
                     const AssemblyOptions& options = {}) const {
    return inverse_kinematics({}, near, fixed, options);
  }
  /// Solve the loop-closure equations with frames at their targets; otherwise like assemble().
  Assembled inverse_kinematics(const FrameNumbersByName& frames, const AssemblyStart& near = {},
                               const JointNumbersByName& fixed = {}, const AssemblyOptions& options = {}) const;
  /// Compute inverse kinematics for many states. Targets and coordinates have one row for each state, or one for all. States without a solution have
  /// a nonzero status.
  AssembledStates inverse_kinematics_many(const FrameNumbersByName& frames, const AssemblyStarts& near,
                                          const JointNumbersByName& fixed, const BatchOptions& options) const;
  /// Search for all assembly modes with these joints fixed; the mode nearest to the home is the first. Raises ModelError if the mechanism can still
  /// move.
  std::vector<Vector> assembly_modes(const JointNumbersByName& fixed, const std::optional<double>& time = {}, int attempts = 200,
                                     std::uint64_t seed = 0, double tolerance = tolerances::closed) const;
  /// Compute configurations with closed loops (n, nq) along prescribed inputs, on one branch. Raises PathTrackingError if the branch ends.
  RowMajor follow(const PathInputs& inputs, const AssemblyStart& near = {}, const PathOptions& options = {}) const;
  /// Compute such paths for many starts (n or 1). Returns configurations (n, waypoints * nq), which are NaN after the end of a branch.
  AssembledStates follow_many(const PathInputs& inputs, const AssemblyStarts& near, const PathOptions& options,
                              const States& states) const;
  /// Compute the constraint-consistent velocity (nv) with given velocities of joints and of frames; all other velocities are as small as possible.
  /// `axes`: the axes of the frames' velocities, their own or the world's (world_aligned). Raises NoAnswer if the loops do not allow the given
  /// velocities.
  Vector complete_velocity(const Vector& q, const JointNumbersByName& joints, const FrameNumbersByName& frames = {},
                           const std::optional<double>& time = {}, ExpressedIn axes = ExpressedIn::frame) const {
    return completed(q, nullptr, joints, frames, time, axes);
  }
  /// Compute the constraint-consistent acceleration (nv) at a velocity v, for given accelerations of joints and frames. The acceleration of a frame
  /// is the rate of the components of its velocity.
  Vector complete_acceleration(const Vector& q, const Vector& v, const JointNumbersByName& joints,
                               const FrameNumbersByName& frames = {}, const std::optional<double>& time = {},
                               ExpressedIn axes = ExpressedIn::frame) const {
    return completed(q, &v, joints, frames, time, axes);
  }

  const PositionModel& model() const { return model_; }
  /// Return the closure with these frames and fixed joints, prepared at the first call.
  std::shared_ptr<const Closure> closure(const std::vector<FrameKey>& frames, const std::vector<int>& fixed) const {
    return closures_.of(frames, fixed);
  }

  /// Return the solution on the branch of a closed configuration, or no value if one call of the kernels does not yield it. This is the fast path for
  /// control loops. `input`: time, a configuration with the fixed coordinates, and targets. Without frames and fixed joints, return the nearest
  /// solution.
  std::optional<Vector> quick_solution(const Closure& closure, const double* near, const double* input) const;

 private:
  /// Fixed joints (indices) with their coordinates, and frames with their targets; n or 1 rows each.
  struct Goal {
    std::vector<int> joints;
    std::vector<RowMajor> coordinates;
    std::vector<FrameKey> frames;
    std::vector<RowMajor> targets;
  };
  /// Initial guess of a search: a configuration (n or 1 rows), or coordinates of some joints.
  struct Near {
    std::optional<RowMajor> q;
    std::vector<int> joints;
    std::vector<RowMajor> coordinates;
  };
  /// Request with checked arguments. `explains`: if its only state has no solution, raise an error with the reason.
  struct Request {
    States states;
    Goal goal;
    Near near;
    Times time;
    BranchChoice branch = BranchChoice::start;
    int starts = AssemblyOptions().starts, starts_of_start = AssemblyOptions().starts;
    std::uint64_t seed = 0;
    double tolerance = tolerances::closed;
    bool explains = false;

    Request of(const std::vector<int>& rows) const;
    /// Return the request without fixed joints and frames, by which only the loops of the start are closed.
    Request start_only() const;
    ClosingInput input(const Closure& closure) const;
  };
  struct Continuation;
  /// Configurations (n, nq), and flags that are true if their loops are closed. `why`: for a request that explains, the error message if they are
  /// not.
  struct Found {
    RowMajor q;
    Flags closed;
    std::string why;

    /// Replace the results of the states `rows` by those of `other`.
    void take(const std::vector<int>& rows, const Found& other) {
      set_rows(q, rows, other.q);
      for (std::size_t k = 0; k < rows.size(); ++k) closed(rows[k]) = other.closed(k);
      why = other.why;
    }
  };
  /// Solutions on branches, and the status of each state. `free` is true for states without a branch, which are not solved.
  struct OnBranch {
    RowMajor q;
    std::vector<signed char> status;
    Flags free;
    std::string reason;
  };

  Goal goal(const FrameNumbersByName& frames, const JointNumbersByName& joints, int count) const;
  Near start(const AssemblyStart& near) const;
  /// Solve all states of a request. If the request explains, the second result is the reason why the solution is on another branch.
  std::pair<AssembledStates, std::string> solve(const Request& request) const;
  Found nearest(const Request& request) const;
  Found search_in(const Closures& closures, const Request& request) const;
  Found closed_from(const Closures& closures, const Request& request, const RowMajor& start, bool is_last) const;
  Found search_in_other(const OtherTree& tree, const Request& request) const;
  Found nearby(const Request& request, const RowMajor& q) const;
  std::vector<int> joints_in_tree(const std::vector<int>& joints) const;
  int prescribed_motions(const std::vector<int>& joints) const;
  /// Return true if the number of coordinates of these joints does not exceed the number of degrees of freedom, so that all of them can be
  /// prescribed.
  Flags all_lead(const std::vector<int>& joints, const States& states, const RowMajor& start, const Times& time) const;
  std::pair<RowMajor, Flags> jump(const Closure& closing, const States& states, const RowMajor& start,
                                  const RowMajor& inputs) const;
  /// Group the states by the subset of the fixed joints that determines the motion. Returns the states of each subset of joints.
  std::map<std::vector<int>, std::vector<int>> by_leading_joints(const Request& request, const RowMajor& start) const;
  Continuation continued(const Request& request, const std::vector<int>& leading, const RowMajor& near,
                         const RowMajor& start) const;
  Flags meets_dependent(Continuation& result, const Request& request) const;
  Found closed_start(const Request& request) const;
  Flags quick_solutions(const Request& request, RowMajor& q) const;
  OnBranch from_closed_starts(const Request& request) const;
  OnBranch on_branch(const Request& request, const std::vector<int>& leading, const RowMajor& near, const RowMajor& start) const;
  std::pair<std::string, Vector> branch_end(const Closure& closure, const std::vector<int>& joints, const Vector& inputs,
                                            int count, const PathOptions& options, const Vector& start, const RowMajor* path,
                                            int& passed) const;
  Vector completed(const Vector& q, const Vector* v, const JointNumbersByName& joints, const FrameNumbersByName& frames,
                   const std::optional<double>& time, ExpressedIn axes) const;
  RowMajor coordinates_now(int joint, const States& states, const RowMajor& q, const Times& time) const;
  RowMajor frame_now(const FrameKey& key, const States& states, const RowMajor& q) const;
  /// Return the projectors (n, nv nv) onto the motions that the loops allow, and the number of these motions (n).
  std::pair<RowMajor, Vector> free_motions(const States& states, const RowMajor& q, const Times& time) const;
  /// Inputs of a path: the goal at the first waypoint, and the inputs of all waypoints in the kernels' order.
  struct Waypoints {
    int count;
    Goal first;
    std::shared_ptr<const Closure> closing;
    Vector numbers;
  };
  Waypoints waypoints(const PathInputs& inputs) const;

  /// Return the tree in which a search for these joints runs; null: the mechanism's own tree.
  std::shared_ptr<const OtherTree> other_tree(const Goal& goal, Near& near) const;

  const PositionModel model_;
  Closures closures_{model_};
  mutable std::mutex mutex_;
  mutable std::optional<Found> closed_home_;
  mutable std::map<std::vector<int>, std::shared_ptr<const OtherTree>> trees_;  // null: no tree contains all of these joints
};

}  // namespace sarrus
