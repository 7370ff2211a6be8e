#include "positions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../kernels/batch.hpp"
#include "../loops/branch_outcome.hpp"
#include "requests.hpp"

namespace sarrus {
using namespace position;

std::optional<Vector> Positions::quick_solution(const Closure& closing, const double* near, const double* input) const {
  const Tree& tree = closing.mechanism().tree();
  const int nq = tree.nq;
  const Eigen::Map<const Vector> start(near, nq);
  const Times time = RowMajor::Constant(1, 1, *input);
  if (closing.fixed.empty() && closing.frames.empty()) {
    const Closure::Closed closed = closing.close(start, {time, {}}, near_steps);
    const bool good = closed.open <= tolerances::closed && (!closing.limited || closing.within(closed.q, 0.0, time));
    return good ? std::optional<Vector>(closed.q) : std::nullopt;
  }
  const States one;
  const RowMajor from = start.transpose();
  if (!all_lead(closing.fixed, one, from, time)(0)) return std::nullopt;
  const RowMajor inputs = Eigen::Map<const RowMajor>(input, 1, 1 + nq + closing.numbers);
  auto [q, certain] = jump(closing, one, from, inputs);
  return certain(0) ? std::optional<Vector>(q.row(0)) : std::nullopt;
}

/// Move along branches from starts (n, nq) in one call of the kernels. The flag of a state is true if its result is certain to be on the branch and
/// within limits.
std::pair<RowMajor, Flags> Positions::jump(const Closure& closing, const States& states, const RowMajor& start,
                                           const RowMajor& inputs) const {
  const int nq = closing.mechanism().tree().nq;
  const RowMajor steps = Eigen::RowVector3d(PathOptions().max_step, PathOptions().min_step, tolerances::closed);
  const RowMajor fixed = row(closing.fixed_mask), scales = closing.scales(states, {}, true), times = inputs.leftCols(1);
  const RowMajor answer = closing.evaluate(Operation::move_along_branch, states, {&start, &fixed, &scales, &steps, &inputs},
                                           nq + branch_outcome::numbers);
  const auto outcome = answer.col(nq).array();
  RowMajor q = answer.leftCols(nq);
  if ((outcome >= branch_outcome::followed).any()) {
    const RowMajor unwound = closing.unwound(q, start);
    for (const int i : where(outcome >= branch_outcome::followed)) q.row(i) = unwound.row(i);
  }
  Flags certain = answer.array().isFinite().rowwise().all() && outcome >= branch_outcome::free &&
                  answer.col(nq + 2).array() >= 1.0 && answer.col(nq + 3).array() == 0.0;
  if (closing.limited) certain = certain && closing.within(states, q, 0.0, times);
  return {std::move(q), std::move(certain)};
}

/// Return the starts with closed loops; if all states share one start, its loops are closed only once.
Positions::Found Positions::closed_start(const Request& request) const {
  Request from = request.start_only();
  const auto is_shared = [](const RowMajor& x) { return x.rows() == 1; };
  const bool shared = request.states.variant.empty() && (!from.near.q || is_shared(*from.near.q)) &&
                      (!from.time || is_shared(*from.time)) &&
                      std::all_of(from.near.coordinates.begin(), from.near.coordinates.end(), is_shared);
  if (!shared) return nearest(from);
  from.states = States(), from.starts = request.starts_of_start, from.explains = false;
  const AssemblyOptions usual;
  const bool is_home = !from.near.q && from.near.joints.empty() && from.tolerance == usual.tolerance && !from.time &&
                       from.starts == usual.starts && from.seed == usual.seed;
  std::optional<Found> solution;
  if (is_home) {
    const std::lock_guard<std::mutex> lock(mutex_);
    solution = closed_home_;
  }
  if (!solution) {
    solution = nearest(from);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_home) closed_home_ = solution;
  }
  solution->q = repeated(solution->q, request.states.count);
  solution->closed = Flags::Constant(request.states.count, solution->closed(0));
  return *solution;
}

std::pair<AssembledStates, std::string> Positions::solve(const Request& request) const {
  const int count = request.states.count;
  const Tree& tree = model_.mechanism.tree();
  AssembledStates result{RowMajor::Constant(count, tree.nq, std::numeric_limits<double>::quiet_NaN()),
                         std::vector<signed char>(count, no_answer)};
  const auto take_nearest = [&](const std::vector<int>& rows) {
    if (rows.empty()) return;
    const Found solution = nearest(request.of(rows));
    if (request.explains && !solution.closed(0)) throw AssemblyError(solution.why);
    for (std::size_t k = 0; k < rows.size(); ++k)
      if (solution.closed(k)) result.q.row(rows[k]) = solution.q.row(k), result.status[rows[k]] = fine;
  };
  const bool has_goal = !request.goal.joints.empty() || !request.goal.frames.empty();
  if (request.branch == BranchChoice::any || !has_goal || (request.goal.frames.empty() && tree.loops.rows == 0)) {
    take_nearest(where(Flags::Constant(count, true)));
    return {result, {}};
  }
  const Flags solved = quick_solutions(request, result.q);
  for (const int i : where(solved)) result.status[i] = fine;
  if (solved.all()) return {result, {}};
  const std::vector<int> rows = where(!solved);
  const OnBranch rest = from_closed_starts(request.of(rows));
  set_rows(result.q, rows, rest.q);
  for (std::size_t k = 0; k < rows.size(); ++k) result.status[rows[k]] = rest.status[k];
  std::vector<int> undecided;
  for (const int k : where(rest.free)) undecided.push_back(rows[k]);
  take_nearest(undecided);
  return {result, rest.reason};
}

/// Solve states whose starts nearly close the loops in one call of the kernels, which is the fast path for control loops. The flags of other states
/// are false, and their rows of q do not change.
Flags Positions::quick_solutions(const Request& request, RowMajor& q) const {
  const Mechanism& mechanism = model_.mechanism;
  const int nq = mechanism.tree().nq;
  const States& states = request.states;
  if (!request.near.q || request.near.q->rows() != states.count || !request.near.joints.empty() ||
      request.tolerance != tolerances::closed || mechanism.tree().loops.pfaffian_values > 0)
    return Flags::Constant(states.count, false);
  const RowMajor& start = *request.near.q;
  const auto closing = closure(request.goal.frames, request.goal.joints);
  RowMajor inputs(states.count, 1 + nq + closing->numbers), coordinates = RowMajor::Zero(states.count, nq);
  set_coordinates(mechanism, request.goal.joints, request.goal.coordinates, coordinates);
  for (int i = 0; i < states.count; ++i) inputs(i, 0) = time_of(request.time, i);
  inputs.middleCols(1, nq) = coordinates, inputs.rightCols(closing->numbers) = request.input(*closing).targets;
  auto [solution, solved] = jump(*closing, states, start, inputs);
  solved = solved && all_lead(request.goal.joints, states, start, request.time);
  for (int i = 0; i < states.count; ++i) solved(i) = solved(i) && sound_quaternions(mechanism, false, start.row(i).data());
  for (const int i : where(solved)) q.row(i) = solution.row(i);
  return solved;
}

/// Solve states on the branches of their closed starts; states without a branch are marked as free.
Positions::OnBranch Positions::from_closed_starts(const Request& request) const {
  const int count = request.states.count;
  const RowMajor nothing = RowMajor::Constant(count, model_.mechanism.tree().nq, std::numeric_limits<double>::quiet_NaN());
  const Found start = closed_start(request);
  OnBranch result{nothing, std::vector<signed char>(count, no_answer), !start.closed, {}};
  RowMajor guess = start_near(model_, request.states, request.near.q, request.time);
  set_coordinates(model_.mechanism, request.near.joints, request.near.coordinates, guess);
  const std::vector<int> begun = where(start.closed);
  if (begun.empty()) return result;
  const Request tracked = request.of(begun);
  const RowMajor starts = rows_of(start.q, begun), guesses = rows_of(guess, begun);
  for (const auto& [leading, group] : by_leading_joints(tracked, starts)) {
    const OnBranch solution = on_branch(tracked.of(group), leading, rows_of(guesses, group), rows_of(starts, group));
    for (std::size_t k = 0; k < group.size(); ++k) {
      const int i = begun[group[k]];
      result.free(i) = solution.free(k);
      if (solution.free(k)) continue;
      result.status[i] = solution.status[k];
      if (solution.status[k] != no_answer) result.q.row(i) = solution.q.row(k);
    }
    result.reason = solution.reason;
  }
  return result;
}

Assembled Positions::inverse_kinematics(const FrameNumbersByName& frames, const AssemblyStart& near,
                                        const JointNumbersByName& fixed, const AssemblyOptions& options) const {
  check_tolerance(options.tolerance);
  if (options.starts < 0) throw std::invalid_argument("starts must be at least 0; got " + std::to_string(options.starts));
  Request request{{}, goal(frames, fixed, 1), start(near), times(options.time), options.branch};
  request.starts = request.starts_of_start = options.starts, request.seed = options.seed, request.tolerance = options.tolerance;
  request.explains = true;
  const auto [solved, reason] = solve(request);
  return {solved.q.row(0), solved.status[0] == other_branch, reason};
}

AssembledStates Positions::inverse_kinematics_many(const FrameNumbersByName& frames, const AssemblyStarts& near,
                                                   const JointNumbersByName& fixed, const BatchOptions& options) const {
  check_tolerance(options.tolerance);
  const int count = options.states.count;
  if (count < 0 || options.states.threads < 1)
    throw std::invalid_argument("the number of states must be at least 0, and the number of threads at least 1; got " +
                                std::to_string(count) + " and " + std::to_string(options.states.threads));
  if (options.starts.value_or(0) < 0)
    throw std::invalid_argument("starts must be at least 0; got " + std::to_string(*options.starts));
  if (count == 0) return {RowMajor(0, model_.mechanism.tree().nq), {}};
  const auto check_rows = [&](const RowMajor& x, int columns, const std::string& name) {
    if ((x.rows() != 1 && x.rows() != count) || x.cols() != columns)
      throw std::invalid_argument(name + " must have 1 or " + std::to_string(count) + " rows of " + std::to_string(columns) +
                                  " numbers; got " + std::to_string(x.rows()) + " of " + std::to_string(x.cols()));
  };
  if (near.q) check_rows(*near.q, model_.mechanism.tree().nq, "near");
  if (options.time) check_rows(*options.time, 1, "time");
  Request request{options.states, goal({}, fixed, count), {}, options.time, options.branch};
  request.near.q = near.q;
  Goal guess = goal({}, near.joints, count);
  request.near.joints = std::move(guess.joints), request.near.coordinates = std::move(guess.coordinates);
  request.seed = options.seed, request.tolerance = options.tolerance;
  request.starts = options.starts.value_or(0), request.starts_of_start = options.starts.value_or(request.starts_of_start);
  Flags sound = Flags::Constant(count, true);
  for (int i = 0; i < count && near.q; ++i) {
    const auto row = near.q->row(near.q->rows() == 1 ? 0 : i);
    sound(i) = row.allFinite() && sound_quaternions(model_.mechanism, true, row.data());
  }
  std::map<std::vector<unsigned>, std::vector<int>> groups;  // states by the components that their targets prescribe
  std::vector<std::vector<unsigned>> components(static_cast<std::size_t>(count));
  for (const auto& [name, numbers] : frames) {
    const int size = target_size(model_.mechanism, name, numbers, count);
    for (int i = 0; i < count; ++i) {
      const unsigned prescribed = prescribed_components(numbers.data() + i * size, size);
      components[static_cast<std::size_t>(i)].push_back(prescribed), sound(i) = sound(i) && prescribed != 0;
    }
  }
  for (const int i : where(sound)) groups[components[static_cast<std::size_t>(i)]].push_back(i);
  AssembledStates result{RowMajor::Constant(count, model_.mechanism.tree().nq, std::numeric_limits<double>::quiet_NaN()),
                         std::vector<signed char>(count, invalid_state)};
  for (const auto& group : groups) {
    const std::vector<int>& rows = group.second;
    FrameNumbersByName targets;
    for (const auto& [name, numbers] : frames) {
      const std::size_t size = numbers.size() / static_cast<std::size_t>(count);
      std::vector<double>& x = targets.emplace_back(name, std::vector<double>()).second;
      for (const int i : rows)
        x.insert(x.end(), numbers.data() + static_cast<std::size_t>(i) * size,
                 numbers.data() + static_cast<std::size_t>(i + 1) * size);
    }
    Request part = request.of(rows);
    Goal prescribed = goal(targets, {}, part.states.count);
    part.goal.frames = std::move(prescribed.frames), part.goal.targets = std::move(prescribed.targets);
    const AssembledStates subset = solve(part).first;
    if (groups.size() == 1 && part.states.count == count) return subset;
    set_rows(result.q, rows, subset.q);
    for (std::size_t k = 0; k < rows.size(); ++k) result.status[rows[k]] = subset.status[k];
  }
  return result;
}

}  // namespace sarrus
