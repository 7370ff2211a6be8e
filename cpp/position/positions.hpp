// Configurations that close all loops: assembly, assembly modes, inverse kinematics and path continuation; and the velocities and accelerations
// that loops allow. Functions and results are those of Python's Mechanism.
//
// One state is a batch of one: the algorithms take a row for each state, and the kernels evaluate all rows side by side. Only a search from
// random starts goes on state by state.
//
// The rows of the loops are F(u, x) = 0, with prescribed coordinates x and the other coordinates u. If x determines the motion at the start, the
// branch along the straight path from the start to the goal is one curve u(s), whose end the kernels compute (loops/branch.hpp): in one jump if
// it is certain to stay on the branch, else by continuation. If x leaves motion, or the start is singular, there is no branch, and the
// nearest configuration is searched for from many starts (search.hpp).
#pragma once

#include <map>
#include <mutex>

#include "other_tree.hpp"
#include "search.hpp"

namespace sarrus {

/// Behaviour if the branch of the start does not reach the goal: return the nearest solution on any branch, raise an error, or ignore the branch.
enum class BranchChoice { start, only, any };

/// Options of assembly. `starts`: number of other starts that are tried if the first one fails; `tolerance`: largest residual of a
/// closed loop [rad, mean sizes of the bodies]; `time` of prescribed motions [s].
struct AssemblyOptions {
  BranchChoice branch = BranchChoice::start;
  int starts = 60;
  std::uint64_t seed = 0;
  double tolerance = tolerances::closed;
  std::optional<double> time;
};

/// Numbers of joints, by name: coordinates [rad, m, quaternions (x, y, z, w)], or velocities or accelerations.
using JointNumbersByName = std::vector<std::pair<std::string, std::vector<double>>>;
/// Numbers of frames, by name: targets, 12 numbers (rows of [R p]) or a point of 3 [m]; or velocities or accelerations, [angular; linear] or
/// those of the origin only.
using FrameNumbersByName = std::vector<std::pair<std::string, std::vector<double>>>;

/// Start of a search: a configuration (nq), or coordinates of joints, which are kept if the loops can close with them; none: the home.
struct AssemblyStart {
  std::optional<Vector> q;
  JointNumbersByName joints;

  AssemblyStart() = default;
  AssemblyStart(Vector configuration) : q(std::move(configuration)) {}
  AssemblyStart(const std::vector<double>& configuration)
      : q(Eigen::Map<const Vector>(configuration.data(), static_cast<Eigen::Index>(configuration.size()))) {}
  AssemblyStart(JointNumbersByName coordinates) : joints(std::move(coordinates)) {}
};

/// Closed configuration. `other_branch`: it is on another branch than the start, or on an undecided one, for this reason.
struct Assembled {
  Vector q;
  bool other_branch = false;
  std::string reason;
};

/// Starts of a batch: configurations (n or 1 rows of nq), or coordinates of joints, n or 1 times their numbers.
struct AssemblyStarts {
  std::optional<RowMajor> q;
  JointNumbersByName joints;
};

/// Options of a batch. `starts`: number of random starts of each state; default: none for a state, and the usual number for a start that all
/// states share. `time`: (n or 1, 1).
struct BatchOptions {
  BranchChoice branch = BranchChoice::start;
  std::optional<int> starts;
  std::uint64_t seed = 0;
  double tolerance = tolerances::closed;
  Times time;
  States states;  // their number, and the number of threads; for variants, the variant of each
};

/// Configurations (n, nq), NaN without a solution, and the status of each: status.hpp.
struct AssembledStates {
  RowMajor q;
  std::vector<signed char> status;
};

/// The branch of the start ends before the goal: its configurations up to there, and its end.
struct PathTrackingError : AssemblyError {
  PathTrackingError(const std::string& message, RowMajor on_path, Vector end)
      : AssemblyError(message), path(std::move(on_path)), last(std::move(end)) {}
  RowMajor path;
  Vector last;
};

/// Inputs along a path of n configurations: joints and frames with n times their numbers, and times (n) [s], which may be empty.
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

/// Positions of one mechanism. Closures are prepared at the first call with the same joints and frames and kept; any number of threads may call.
class Positions {
 public:
  explicit Positions(PositionModel model) : model_(std::move(model)) {}

  /// Solve the loop-closure equations for a configuration near another one, on its branch, with coordinates of the `fixed` joints.
  /// AssemblyError: the loops cannot close, or no start succeeded; PathTrackingError: the branch of the start ends before.
  Assembled assemble(const AssemblyStart& near = {}, const JointNumbersByName& fixed = {},
                     const AssemblyOptions& options = {}) const {
    return inverse_kinematics({}, near, fixed, options);
  }
  /// The same, with frames at their targets.
  Assembled inverse_kinematics(const FrameNumbersByName& frames, const AssemblyStart& near = {},
                               const JointNumbersByName& fixed = {}, const AssemblyOptions& options = {}) const;
  /// The same for many states. Targets and coordinates have one row for each state, or one for all. A state without a solution has a status.
  AssembledStates inverse_kinematics_many(const FrameNumbersByName& frames, const AssemblyStarts& near,
                                          const JointNumbersByName& fixed, const BatchOptions& options) const;
  /// Search for all assembly modes with these joints fixed, the nearest to the home first. ModelError: the mechanism can still move.
  std::vector<Vector> assembly_modes(const JointNumbersByName& fixed, const std::optional<double>& time = {}, int attempts = 200,
                                     std::uint64_t seed = 0, double tolerance = tolerances::closed) const;
  /// Compute closed configurations (n, nq) along prescribed inputs, on one branch. PathTrackingError: the branch ends.
  RowMajor follow(const PathInputs& inputs, const AssemblyStart& near = {}, const PathOptions& options = {}) const;
  /// The same for many states, from starts (n or 1): configurations (n, waypoints * nq), NaN after the end of a branch.
  AssembledStates follow_many(const PathInputs& inputs, const AssemblyStarts& near, const PathOptions& options,
                              const States& states) const;
  /// Compute the velocity (nv) that the constraints allow with given velocities of joints and frames, in the frames' axes; other motion is minimal.
  /// NoAnswer: the loops do not allow these velocities.
  Vector complete_velocity(const Vector& q, const JointNumbersByName& joints, const FrameNumbersByName& frames = {},
                           const std::optional<double>& time = {}) const {
    return completed(q, nullptr, joints, frames, time);
  }
  /// The same for an acceleration at a velocity v. Accelerations of frames are the rates of their velocities' components.
  Vector complete_acceleration(const Vector& q, const Vector& v, const JointNumbersByName& joints,
                               const FrameNumbersByName& frames = {}, const std::optional<double>& time = {}) const {
    return completed(q, &v, joints, frames, time);
  }

  const PositionModel& model() const { return model_; }
  /// Return the closure with these frames and fixed joints, prepared at the first call.
  std::shared_ptr<const Closure> closure(const std::vector<FrameKey>& frames, const std::vector<int>& fixed) const {
    return closures_.of(frames, fixed);
  }

  /// Return the solution on the branch of a closed configuration in one call of the kernels, as in a control loop; nothing if that takes more.
  /// `input`: time, a configuration with the fixed coordinates, and targets. Without frames and fixed joints: the nearest solution.
  std::optional<Vector> quick_solution(const Closure& closure, const double* near, const double* input) const;

 private:
  /// Joints by index with their coordinates, frames with their targets; n or 1 rows each.
  struct Goal {
    std::vector<int> joints;
    std::vector<RowMajor> coordinates;
    std::vector<FrameKey> frames;
    std::vector<RowMajor> targets;
  };
  /// Start of a search: a configuration (n or 1 rows), or guessed coordinates of joints.
  struct Near {
    std::optional<RowMajor> q;
    std::vector<int> joints;
    std::vector<RowMajor> coordinates;
  };
  /// Checked request for `states`. `explains`: raise an error with the reason if the (only) state has no solution.
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
    /// Return the request without goal.
    Request start_only() const;
    ClosingInput input(const Closure& closure) const;
  };
  struct Continuation;
  /// Configurations (n, nq), and true for those that are closed. `why`: message if the only state of a request that explains is not.
  struct Found {
    RowMajor q;
    Flags closed;
    std::string why;

    /// Replace the results of these states.
    void take(const std::vector<int>& rows, const Found& other) {
      set_rows(q, rows, other.q);
      for (std::size_t k = 0; k < rows.size(); ++k) closed(rows[k]) = other.closed(k);
      why = other.why;
    }
  };
  /// Solutions on branches, with the status of each state, and true for states without a branch, which are not solved.
  struct OnBranch {
    RowMajor q;
    std::vector<signed char> status;
    Flags free;
    std::string reason;
  };

  Goal goal(const FrameNumbersByName& frames, const JointNumbersByName& joints, int count) const;
  Near start(const AssemblyStart& near) const;
  /// Solve all states of a request; the reason of another branch if it explains.
  std::pair<AssembledStates, std::string> solve(const Request& request) const;
  Found nearest(const Request& request) const;
  Found search_in(const Closures& closures, const Request& request) const;
  Found closed_from(const Closures& closures, const Request& request, const RowMajor& start, bool is_last) const;
  Found search_in_other(const OtherTree& tree, const Request& request) const;
  Found nearby(const Request& request, const RowMajor& q) const;
  std::vector<int> joints_in_tree(const std::vector<int>& joints) const;
  int prescribed_motions(const std::vector<int>& joints) const;
  /// Return true if no more coordinates of these joints are prescribed than the loops leave free, so that all of them determine the motion.
  Flags all_lead(const std::vector<int>& joints, const States& states, const RowMajor& start, const Times& time) const;
  std::pair<RowMajor, Flags> jump(const Closure& closing, const States& states, const RowMajor& start,
                                  const RowMajor& inputs) const;
  /// Return the states for which the same of the fixed joints determine the motion, by these joints.
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
                   const std::optional<double>& time) const;
  RowMajor coordinates_now(int joint, const States& states, const RowMajor& q, const Times& time) const;
  RowMajor frame_now(const FrameKey& key, const States& states, const RowMajor& q) const;
  /// Return the projectors (n, nv nv) onto the motions that the loops allow, and the number of these motions (n).
  std::pair<RowMajor, Vector> free_motions(const States& states, const RowMajor& q, const Times& time) const;
  /// Inputs of a path: the first ones as a goal, and all of them in the kernels' order.
  struct Waypoints {
    int count;
    Goal first;
    std::shared_ptr<const Closure> closing;
    Vector numbers;
  };
  Waypoints waypoints(const PathInputs& inputs) const;

  /// The tree in which a search for these joints runs; null: the mechanism's own.
  std::shared_ptr<const OtherTree> other_tree(const Goal& goal, Near& near) const;

  const PositionModel model_;
  Closures closures_{model_};
  mutable std::mutex mutex_;
  mutable std::optional<Found> closed_home_;
  mutable std::map<std::vector<int>, std::shared_ptr<const OtherTree>> trees_;  // null: these joints cannot all be in a tree
};

}  // namespace sarrus
