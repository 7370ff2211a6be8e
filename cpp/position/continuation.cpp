// Solutions on the branches of initial configurations with closed loops.
#include <algorithm>
#include <cmath>

#include "../loops/branch_outcome.hpp"
#include "../loops/pivoted_qr.hpp"
#include "../mobility/actuation.hpp"
#include "../model/text.hpp"
#include "requests.hpp"

namespace sarrus {
using namespace position;
namespace {

constexpr double passed_end = 1.0 - 1e-12;  // completed fraction of a path above which its end counts as reached
constexpr double same_coordinates =
    1e-6;  // largest deviation of dependent joints from their prescribed coordinates [rad, mean sizes of the bodies]
constexpr double small = 1e-6;  // singular values below this fraction of the largest one count as zero

}  // namespace

struct Positions::Continuation {
  std::shared_ptr<const Closure> closing;
  RowMajor q, inputs;  // configurations; inputs: one row for each state, with the inputs at the start, then at the goal
  Flags on_branch, free, passed, crossed;

  /// Return the reason why the solution of a state is not on its branch. The text is empty if the only reason is that the branch ends before the
  /// goal.
  std::string reason(int i, bool outside_limits) const {
    if (outside_limits) return "joints exceed their limits on the branch";
    if (crossed(i)) return "the branch passes a singular position, at which branches meet";
    return passed(i) ? "the fixed coordinates of dependent joints do not lie on the branch" : "";
  }
};

std::pair<RowMajor, Vector> Positions::free_motions(const States& states, const RowMajor& q, const Times& time) const {
  const Tree& tree = model_.mechanism.tree();
  const int nv = tree.nv;
  if (tree.loops.rows == 0) {
    const Matrix identity = Matrix::Identity(nv, nv);
    return {repeated(Eigen::Map<const RowMajor>(identity.data(), 1, nv * nv), states.count), Vector::Constant(states.count, nv)};
  }
  const auto closing = closure({}, {});
  const RowMajor scale = closing->scales(states), values = closing->values(q, {});
  const RowMajor numbers = closing->evaluate(Operation::loop_motions, states, {&q, &scale, pointer(time), &values}, nv * nv + 1);
  return {numbers.leftCols(nv * nv), numbers.col(nv * nv)};
}

int Positions::prescribed_motions(const std::vector<int>& joints) const {
  int prescribed = 0;
  for (const int j : joints) prescribed += model_.mechanism.description().joints[j].nv;
  return prescribed;
}

Flags Positions::all_lead(const std::vector<int>& joints, const States& states, const RowMajor& start, const Times& time) const {
  const Tree& tree = model_.mechanism.tree();
  const int prescribed = prescribed_motions(joints),
            certain = std::max(tree.nv - tree.loops.rows, 0);  // lower bound of the degrees of freedom
  if (prescribed <= certain) return Flags::Constant(states.count, true);
  return !(free_motions(states, start, time).second.array() < prescribed);  // NaN (no result) counts as true
}

std::map<std::vector<int>, std::vector<int>> Positions::by_leading_joints(const Request& request, const RowMajor& start) const {
  const Mechanism& mechanism = model_.mechanism;
  const Tree& tree = mechanism.tree();
  const std::vector<int>& all = request.goal.joints;
  const int prescribed = prescribed_motions(all);
  std::map<std::vector<int>, std::vector<int>> groups;
  std::vector<int>& together = groups[all];
  if (prescribed <= std::max(tree.nv - tree.loops.rows, 0)) {
    together = where(Flags::Constant(request.states.count, true));
    return groups;
  }
  auto [projectors, counts] = free_motions(request.states, start, request.time);
  std::vector<int> in_tree = joints_in_tree(all);
  std::sort(in_tree.begin(), in_tree.end(),
            [&](int a, int b) { return mechanism.description().joints[a].name < mechanism.description().joints[b].name; });
  std::vector<std::pair<int, int>> velocities;
  for (const int j : in_tree)
    velocities.emplace_back(mechanism.joints()[j].iv, mechanism.joints()[j].iv + mechanism.joints()[j].nv);
  for (int i = 0; i < request.states.count; ++i) {
    if (!(prescribed > counts(i))) {  // true also if the count is NaN
      together.push_back(i);
      continue;
    }
    const std::vector<bool> leads = determining_groups(tree.nv, projectors.row(i).data(), velocities);
    std::vector<int> joints;
    for (const int j : all) {
      const auto at = std::find(in_tree.begin(), in_tree.end(), j);
      if (at == in_tree.end() || leads[at - in_tree.begin()]) joints.push_back(j);
    }
    groups[joints].push_back(i);
  }
  if (together.empty()) groups.erase(all);
  return groups;
}

Positions::Continuation Positions::continued(const Request& request, const std::vector<int>& leading, const RowMajor& near,
                                             const RowMajor& start) const {
  const Mechanism& mechanism = model_.mechanism;
  const Tree& tree = mechanism.tree();
  const States& states = request.states;
  const Goal& goal = request.goal;
  Continuation result;
  result.closing = closure(goal.frames, leading);
  const Closure& closing = *result.closing;
  RowMajor q = start, turns = RowMajor::Zero(states.count, tree.nq);
  std::vector<RowMajor> first, last, frames;
  for (std::size_t i = 0; i < goal.joints.size(); ++i) {
    const int j = goal.joints[i];
    if (!contains(leading, j)) continue;
    const JointDescription& joint = mechanism.description().joints[j];
    const bool returns = whole_turns_return(mechanism.description(), joint) && model_.limits[j].empty();
    RowMajor removed = RowMajor::Zero(states.count, joint.nq);
    const RowMajor x = repeated(goal.coordinates[i], states.count);
    first.push_back(coordinates_now(j, states, start, request.time));
    for (int k = 0; k < joint.nq; ++k)
      if (returns && coordinate_unit(joint, k) == 'r')
        for (int row = 0; row < states.count; ++row)
          removed(row, k) = full_turn * std::nearbyint((x(row, k) - first.back()(row, k)) / full_turn);
    last.push_back(x - removed);
    if (const auto& at = mechanism.joints()[j]; !at.closes_a_loop)
      q.middleCols(at.iq, at.nq) = last.back(), turns.middleCols(at.iq, at.nq) = removed;
  }
  for (const FrameKey& key : goal.frames) frames.push_back(frame_now(key, states, start));
  const int count = 1 + tree.nq + closing.mechanism().tree().loops.pfaffian_values;
  result.inputs = RowMajor::Zero(states.count, 2 * count);
  const auto set_input = [&](int at, const std::vector<RowMajor>& of_frames, const std::vector<RowMajor>& coordinates) {
    auto input = result.inputs.middleCols(at * count, count);
    for (int i = 0; i < states.count; ++i) input(i, 0) = time_of(request.time, i);
    input.middleCols(1, tree.nq) = q;
    input.rightCols(closing.numbers) = closing.targets(states.count, of_frames, coordinates);
  };
  set_input(0, frames, first), set_input(1, goal.targets, last);

  const RowMajor steps = Eigen::RowVector3d(PathOptions().max_step, PathOptions().min_step, request.tolerance);
  const RowMajor fixed = row(closing.fixed_mask);
  const auto move = [&](const States& subset, const RowMajor& from, const RowMajor& path, int waypoints) {
    const RowMajor scales = closing.scales(subset, {}, true);
    RowMajor answer = closing.evaluate(Operation::move_along_branch, subset, {&from, &fixed, &scales, &steps, &path},
                                       tree.nq + branch_outcome::numbers, waypoints);
    for (Eigen::Index i = 0; i < answer.rows(); ++i)
      if (!answer.row(i).allFinite()) answer.row(i).tail(branch_outcome::numbers) << branch_outcome::free, 0.0, 0.0, 0.0;
    return answer;
  };
  RowMajor answer = move(states, start, result.inputs.rightCols(count), 1);
  if (const std::vector<int> rows = where(answer.col(tree.nq).array() == branch_outcome::doubtful); !rows.empty())
    set_rows(answer, rows, move(states.of(rows), rows_of(start, rows), rows_of(result.inputs, rows), 2));
  const auto outcome = answer.col(tree.nq).array();
  result.crossed = outcome == branch_outcome::followed && answer.col(tree.nq + 3).array() > 0.0;
  result.passed = answer.col(tree.nq + 2).array() >= passed_end;
  result.on_branch = outcome >= branch_outcome::jumped && result.passed && !result.crossed;
  result.free = outcome == branch_outcome::free || outcome == branch_outcome::off_loops;
  result.q = answer.leftCols(tree.nq);
  const RowMajor unwound = closing.unwound(result.q, near) + turns;
  for (const int i : where(result.on_branch)) result.q.row(i) = unwound.row(i);
  if (leading.size() < goal.joints.size()) result.on_branch = result.on_branch && meets_dependent(result, request);
  return result;
}

/// Return true for states in which dependent joints have their prescribed coordinates. In these states, configurations on a branch are corrected such
/// that the prescribed coordinates are exact.
Flags Positions::meets_dependent(Continuation& result, const Request& request) const {
  const Goal& goal = request.goal;
  const auto closing = closure(goal.frames, goal.joints);
  RowMajor start = result.q;
  for (const int i : where(!result.on_branch)) start.row(i) = model_.neutral();
  set_coordinates(model_.mechanism, goal.joints, goal.coordinates, start);
  const ClosingInput input = request.input(*closing);
  Closure::ClosedStates closed = closing->close(request.states, start, input, steps_of_single_attempt);
  const double most = std::min(request.tolerance, tolerances::closed);
  if (const std::vector<int> rows = where(!(closed.open.array() <= most)); !rows.empty()) {
    const Closure::ClosedStates farther =
        closing->close(request.states.of(rows), rows_of(start, rows), input.of(rows), far_steps);
    set_rows(closed.q, rows, farther.q);
    for (std::size_t k = 0; k < rows.size(); ++k) closed.open(rows[k]) = farther.open(k);
  }
  const RowMajor q = closing->unwound(closed.q, start);
  RowMajor deviation = q - result.q;
  for (const int j : goal.joints) {
    const JointDescription& joint = model_.mechanism.description().joints[j];
    if (model_.mechanism.joints()[j].closes_a_loop || !whole_turns_return(model_.mechanism.description(), joint)) continue;
    for (int k = 0; k < joint.nq; ++k)
      if (coordinate_unit(joint, k) == 'r')
        for (double& x : deviation.col(model_.mechanism.joints()[j].iq + k)) x -= full_turn * std::nearbyint(x / full_turn);
  }
  const Eigen::RowVectorXd largest = same_coordinates * closing->coordinate_scale;
  Flags fits(request.states.count);
  for (int i = 0; i < request.states.count; ++i) {
    fits(i) = closed.open(i) <= request.tolerance && (deviation.row(i).cwiseAbs().array() < largest.array()).all();
    if (fits(i) && result.on_branch(i)) result.q.row(i) = q.row(i);
  }
  return fits;
}

std::pair<std::string, Vector> Positions::branch_end(const Closure& closing, const std::vector<int>& joints, const Vector& inputs,
                                                     int count, const PathOptions& options, const Vector& start,
                                                     const RowMajor* path, int& k) const {
  const Tree& tree = closing.mechanism().tree();
  const int numbers = 1 + tree.nq + tree.loops.pfaffian_values;
  const double steps[3] = {options.max_step, options.min_step, options.tolerance};
  Vector answer(tree.nq + branch_outcome::numbers);
  closing.functions().evaluate(Operation::move_along_branch,
                               {start.data(), closing.fixed_mask.data(), closing.units.data(), steps, inputs.data()},
                               answer.data(), {}, count);
  const Vector q = answer.head(tree.nq);
  const double passed = answer(tree.nq + 2);
  k = std::min(static_cast<int>(passed), count - 1);
  const auto time_of = [&](int i) { return inputs(i * numbers); };
  const double time = k + 1 < count ? time_of(k) + (passed - k) * (time_of(k + 1) - time_of(k)) : time_of(k);
  const ClosingInput input{times(time), row(inputs.segment(k * numbers + numbers - closing.numbers, closing.numbers))};
  const Vector before = path ? Vector(path->row(k)) : start;
  const Vector regular = singular_values(closing.jacobian(before, input));
  const int rank = regular.size() ? count_above(regular, small * regular(0)) : 0;

  std::vector<std::string> reached;
  for (const int j : joints)
    reached.push_back(model_.mechanism.description().joints[j].name + " = " +
                      numbers_of(coordinates_now(j, States(), row(q), times(time)).row(0)));
  const std::string where = reached.empty() ? "" : ", at " + joined(reached);
  const Matrix J = closing.jacobian(q, input);
  std::vector<std::string> moving;
  double slowest = 0.0;
  if (J.rows() > 0) {
    const Vector motion = right_singular_vectors(J).V.col(std::max(rank - 1, 0));
    slowest = (J * motion).norm();
    for (std::size_t j = 0; j < model_.mechanism.joints().size(); ++j) {
      const auto& at = model_.mechanism.joints()[j];
      if (!at.closes_a_loop && at.nv > 0 && motion.segment(at.iv, at.nv).cwiseAbs().maxCoeff() > 0.1)
        moving.push_back("'" + model_.mechanism.description().joints[j].name + "'");
    }
  }
  if (slowest < 0.05 && !moving.empty())
    return {where + ": a limit position (dead point), in which " + joined(moving) + " can move although the inputs do not move",
            q};
  return {where + ": even with the shortest step the loops do not close", q};
}

/// Solve states on the branches of their closed starts. If a branch does not reach the goal, the request's `branch` determines which other solution
/// is allowed.
Positions::OnBranch Positions::on_branch(const Request& request, const std::vector<int>& leading, const RowMajor& near,
                                         const RowMajor& start) const {
  const Mechanism& mechanism = model_.mechanism;
  const States& states = request.states;
  const bool only = request.branch == BranchChoice::only;
  Continuation c = continued(request, leading, near, start);
  const Closure& closing = *c.closing;
  if (!request.goal.frames.empty() && !(c.on_branch || c.free).all()) {
    // if there are more prescribed coordinates than degrees of freedom, the loops cannot close along the straight path, so there is no branch to
    // follow
    int prescribed = 0;
    for (const int j : request.goal.joints) prescribed += mechanism.description().joints[j].nq;
    for (const FrameKey& key : request.goal.frames) prescribed += key.is_pose ? 6 : 3;
    const Flags too_many = free_motions(states, start, request.time).second.array() < prescribed;
    c.free = c.free || (!c.on_branch && too_many);
  }
  const RowMajor moved = closing.difference(states, near, start);
  for (const int i : where(!c.on_branch))
    if (moved.cols() && !only && moved.row(i).cwiseAbs().maxCoeff() > tolerances::longest_step) c.free(i) = true;
  const auto is_within = [&](const Request& subset, const RowMajor& q) {
    return closing.limited ? closing.within(subset.states, q, 1.0, subset.time)
                           : Flags(Flags::Constant(subset.states.count, true));
  };
  Flags outside = c.on_branch && !is_within(request, c.q);
  if (only) outside = false;
  if (outside.any())
    // a start outside the limits does not determine the branch: search for any solution within the limits
    c.free = c.free || (outside && !is_within(request, start));
  OnBranch result{c.q, std::vector<signed char>(states.count, fine), c.free, {}};
  const std::vector<int> rows = where(!c.free && (!c.on_branch || outside));
  if (rows.empty()) return result;
  Request rest = request.of(rows);
  rest.near = {};
  rest.near.q = rows_of(start, rows);
  const int count = rest.states.count;
  const Found solution = only ? Found{RowMajor(count, mechanism.tree().nq), Flags::Constant(count, false), {}} : nearest(rest);
  const Flags within = is_within(rest, solution.q);
  for (int k = 0; k < count; ++k) {
    const int i = rows[k];
    // no solution is within the limits: keep this one
    if (outside(i) && !(solution.closed(k) && within(k))) continue;
    result.q.row(i) = solution.q.row(k);
    result.status[i] = solution.closed(k) ? other_branch : no_answer;
    if (!request.explains) continue;
    std::string reason = c.reason(i, outside(i));
    Vector last;
    const bool ends = reason.empty();
    if (ends) {
      int passed = 0;
      PathOptions path;
      path.tolerance = request.tolerance;
      std::tie(reason, last) = branch_end(closing, leading, c.inputs.row(i), 2, path, start.row(i), nullptr, passed);
      reason = "the branch ends" + reason;
    }
    result.reason = reason;
    if (solution.closed(k)) continue;
    const std::string text = (solution.why.empty() ? "" : solution.why + "; ") +
                             "the target is not on the branch of the initial configuration: " + reason;
    if (!ends) throw AssemblyError(text);
    throw PathTrackingError(text, start, last);
  }
  return result;
}

}  // namespace sarrus
