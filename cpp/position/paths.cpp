// Assembly modes, paths on one branch, and the velocities and accelerations that loops allow.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../loops/branch_outcome.hpp"
#include "../mobility/actuation.hpp"
#include "../model/text.hpp"
#include "requests.hpp"

namespace sarrus {
using namespace position;
namespace {

constexpr double same_poses = 1e-5;  // configurations whose poses differ by less are the same assembly mode

}  // namespace

std::vector<Vector> Positions::assembly_modes(const JointNumbersByName& fixed, const std::optional<double>& time, int attempts,
                                              std::uint64_t seed, double tolerance) const {
  check_tolerance(tolerance);
  if (attempts < 1) throw std::invalid_argument("attempts must be at least 1; got " + std::to_string(attempts));
  const Goal request = goal({}, fixed, 1);
  Near none;
  const std::shared_ptr<const OtherTree> tree = other_tree(request, none);
  const PositionModel& model = tree ? tree->model() : model_;
  std::vector<int> joints = request.joints;
  if (tree)
    for (int& j : joints) j = tree->joint(j);
  const auto closing = (tree ? tree->closures() : closures_).of({}, joints);
  const States one;
  RowMajor start = start_near(model, one, {}, times(time));
  set_coordinates(model.mechanism, joints, request.coordinates, start);
  Search search(*closing, start.row(0), {times(time), closing->targets(1, {}, request.coordinates)}, seed);
  const std::vector<Vector> found = search.all(attempts, tolerance);
  if (found.empty()) return {};
  int freedom = closing->mechanism().tree().nv;
  for (const Vector& q : found) freedom = std::min(freedom, search.degrees_of_freedom(q));
  if (freedom > 0)
    throw ModelError("with " + (fixed.empty() ? "no joint" : quoted_joints(model_.mechanism, request.joints)) + " fixed " +
                     std::to_string(freedom) +
                     " degrees of freedom remain, so there are infinitely many configurations: fix more joints");
  const StateFunctions functions(model.mechanism, model.kernels);
  const auto appearance = [&](const Vector& q) {  // poses of the bodies, which do not depend on the choice of coordinates
    Vector all(12 * model.mechanism.description().bodies.size());
    for (std::size_t b = 0; b < model.mechanism.description().bodies.size(); ++b) {
      double pose[16];
      functions.evaluate(Operation::pose, {q.data()}, pose,
                         placed(model.mechanism, model.mechanism.description().bodies[b].name));
      for (int k = 0; k < 12; ++k) all(12 * b + k) = pose[k] / (k % 4 == 3 ? model.mechanism.tree().length : 1.0);
    }
    return all;
  };
  std::vector<Vector> modes, seen;
  for (const Vector& q : found) {
    const Vector pose = appearance(q);
    if (std::any_of(seen.begin(), seen.end(),
                    [&](const Vector& other) { return (other - pose).cwiseAbs().maxCoeff() <= same_poses; }))
      continue;
    seen.push_back(pose), modes.push_back(q);
  }
  if (!tree) return modes;
  const auto back = closure({}, joints_in_tree(request.joints));
  const RowMajor home = start_near(model_, one, {}, times(time));
  for (Vector& q : modes) q = tree->convert_back(one, row(q), home, times(time), *back).row(0);
  return modes;
}

Positions::Waypoints Positions::waypoints(const PathInputs& inputs) const {
  const Mechanism& mechanism = model_.mechanism;
  std::size_t n = inputs.times.size();
  const auto take = [&](const std::string& name, const std::vector<double>& numbers, std::size_t size) {
    if (size == 0 && numbers.empty()) return;  // a joint without coordinates has no inputs
    const std::size_t count = size ? numbers.size() / size : 0;
    if (count == 0 || numbers.size() % size != 0 || (n && count != n))
      throw std::invalid_argument("all inputs need the same number of values, at least one; '" + name + "' has " +
                                  std::to_string(numbers.size()));
    n = count;
  };
  for (const auto& [name, numbers] : inputs.joints)
    take(name, numbers, mechanism.description().joints[joint_by_name(mechanism, name)].nq);
  if (!n && !inputs.frames.empty())
    throw std::invalid_argument("follow(): frames without joints need times=, which determines the number of inputs");
  for (const auto& [name, numbers] : inputs.frames)
    if (numbers.size() != 3 * n && numbers.size() != 12 * n)
      throw std::invalid_argument("path of frame '" + name + "' has " + std::to_string(numbers.size()) +
                                  " numbers; expected 12 or 3 for each of " + std::to_string(n) + " inputs");
  const int count = static_cast<int>(n);
  Goal all = goal(inputs.frames, inputs.joints, count);
  const auto closing = closure(all.frames, all.joints);
  const Tree& tree = closing->mechanism().tree();
  RowMajor rows = RowMajor::Zero(count, 1 + tree.nq + tree.loops.pfaffian_values), fixed = repeated(row(model_.neutral()), count);
  set_coordinates(mechanism, all.joints, all.coordinates, fixed);
  for (int k = 0; k < count && !inputs.times.empty(); ++k) rows(k, 0) = inputs.times[k];
  rows.middleCols(1, tree.nq) = fixed;
  rows.rightCols(closing->numbers) = closing->targets(count, all.targets, all.coordinates);
  return {count,
          {all.joints, rows_of(all.coordinates, {0}), all.frames, rows_of(all.targets, {0})},
          closing,
          Eigen::Map<const Vector>(rows.data(), rows.size())};
}

RowMajor Positions::follow(const PathInputs& inputs, const AssemblyStart& near, const PathOptions& options) const {
  check_steps(options);
  const Waypoints path = waypoints(inputs);
  Request first{{}, path.first, start(near), times(inputs.times.empty() ? 0.0 : inputs.times[0])};
  first.tolerance = options.tolerance, first.explains = true;
  check_tolerance(options.tolerance);
  const RowMajor q = solve(first).first.q, steps = Eigen::RowVector3d(options.max_step, options.min_step, options.tolerance);
  const RowMajor fixed = row(path.closing->fixed_mask), units = row(path.closing->units), numbers = row(path.numbers);
  const int nq = model_.mechanism.tree().nq;
  const RowMajor flat =
      path.closing->evaluate(Operation::branch, States(), {&q, &fixed, &units, &steps, &numbers}, path.count * nq, path.count);
  const RowMajor configurations = Eigen::Map<const RowMajor>(flat.data(), path.count, nq);
  if (configurations.allFinite()) return configurations;
  int k = 0;
  const auto [why, last] =
      branch_end(*path.closing, path.first.joints, path.numbers, path.count, options, q.row(0), &configurations, k);
  throw PathTrackingError("the branch ends between inputs " + std::to_string(k) + " and " + std::to_string(k + 1) + why,
                          configurations.topRows(k + 1), last);
}

AssembledStates Positions::follow_many(const PathInputs& inputs, const AssemblyStarts& near, const PathOptions& options,
                                       const States& states) const {
  check_steps(options);
  const Waypoints path = waypoints(inputs);
  const auto numbers_of = [](const RowMajor& x, int count) {
    const RowMajor all = repeated(x, count);
    return std::vector<double>(all.data(), all.data() + all.size());
  };
  JointNumbersByName joints;
  FrameNumbersByName frames;
  for (std::size_t i = 0; i < path.first.joints.size(); ++i)
    joints.emplace_back(model_.mechanism.description().joints[path.first.joints[i]].name,
                        numbers_of(path.first.coordinates[i], 1));
  for (const auto& [name, numbers] : inputs.frames) {
    const auto size = static_cast<Eigen::Index>(numbers.size()) / path.count;
    frames.emplace_back(name, numbers_of(Eigen::Map<const RowMajor>(numbers.data(), 1, size), states.count));
  }
  BatchOptions assembly;
  assembly.tolerance = options.tolerance, assembly.states = states;
  assembly.time = times(inputs.times.empty() ? 0.0 : inputs.times[0]);
  const AssembledStates first = inverse_kinematics_many(frames, near, joints, assembly);
  RowMajor q = first.q;
  for (int i = 0; i < states.count; ++i)
    if (!q.row(i).allFinite()) q.row(i) = model_.neutral();
  const RowMajor steps = Eigen::RowVector3d(options.max_step, options.min_step, options.tolerance), numbers = row(path.numbers);
  const RowMajor fixed = row(path.closing->fixed_mask), scales = path.closing->scales(states, {}, true);
  AssembledStates result{path.closing->evaluate(Operation::branch, states, {&q, &fixed, &scales, &steps, &numbers},
                                                path.count * model_.mechanism.tree().nq, path.count),
                         std::vector<signed char>(states.count, fine)};
  for (int i = 0; i < states.count; ++i) {
    if (!first.q.row(i).allFinite())
      result.q.row(i).setConstant(std::numeric_limits<double>::quiet_NaN()), result.status[i] = first.status[i];
    else if (!result.q.row(i).allFinite())
      result.status[i] = no_answer;
  }
  return result;
}

// ---- velocities and accelerations ----------------------------------------------------------------------------------------------------

Vector Positions::completed(const Vector& q, const Vector* v, const JointNumbersByName& joints, const FrameNumbersByName& frames,
                            const std::optional<double>& time, ExpressedIn axes) const {
  const Mechanism& mechanism = model_.mechanism;
  const int nv = mechanism.tree().nv;
  if (q.size() != mechanism.tree().nq || (v && v->size() != nv) || !q.allFinite() || (v && !v->allFinite()))
    throw std::invalid_argument("q must have " + std::to_string(mechanism.tree().nq) + " finite numbers, and v " +
                                std::to_string(nv));
  const char* quantity = v ? "accelerations" : "velocities";
  std::vector<int> given;
  std::vector<Vector> rates;
  for (const auto& [name, numbers] : joints) {
    given.push_back(joint_by_name(mechanism, name));
    const JointDescription& joint = mechanism.description().joints[given.back()];
    rates.push_back(checked_coordinates(joint, numbers, quantity, joint.nv, 1).row(0));
  }
  std::vector<FrameKey> keys;
  std::vector<Vector> of_frames;
  for (const auto& [name, numbers] : frames) {
    check_movable(mechanism, name);
    const int size = static_cast<int>(numbers.size()), first = 6 - size;
    FrameKey key = {name, size == 6, 0, axes == ExpressedIn::world_aligned};
    std::vector<double> prescribed;
    for (int k = 0; k < size && (size == 3 || size == 6); ++k)
      if (!std::isnan(numbers[k])) key.components |= 1U << (first + k), prescribed.push_back(numbers[k]);
    if (prescribed.empty() || !vector(prescribed).allFinite())
      throw std::invalid_argument(
          std::string(quantity) + " of frame '" + name +
          "' must be 6 numbers, [angular; linear], or 3 for its origin, finite or NaN for free components, at least "
          "one of them finite");
    keys.push_back(std::move(key)), of_frames.push_back(vector(prescribed));
  }
  const auto closing = closure(keys, given);
  const StateFunctions& functions = closing->functions();
  Vector x = Vector::Zero(nv), weight = closing->scale().head(nv), rows = Vector::Zero(closing->mechanism().tree().loops.rows);
  for (std::size_t i = 0; i < given.size(); ++i)
    if (const auto& at = mechanism.joints()[given[i]]; !at.closes_a_loop) x.segment(at.iv, at.nv) = rates[i];
  std::size_t target = 0;
  for (const Vector& rate : of_frames) rows.segment(closing->target_rows(target++).first, rate.size()) = rate;
  for (const int j : closing->loop_joints) {
    const Vector& rate = rates[std::find(given.begin(), given.end(), j) - given.begin()];
    rows.segment(closing->target_rows(target++).first, rate.size()) = rate;
  }
  const RowMajor values = closing->values(row(q), RowMajor::Zero(1, closing->numbers));
  const Vector& given_v = v ? *v : x;
  Vector out(nv);
  const double status = functions.evaluate(
      Operation::least_motion,
      {q.data(), given_v.data(), v ? x.data() : nullptr, weight.data(), rows.data(), pointer(time), values.data()}, out.data());
  if (status != 0.0 || !out.allFinite())
    throw NoAnswer(std::string("the loops do not allow these ") + quantity + ": " + meaning(static_cast<int>(status)));
  return out;
}

}  // namespace sarrus
