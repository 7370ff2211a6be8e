#include "requests.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../constraints/law.hpp"
#include "../mobility/actuation.hpp"
#include "../model/text.hpp"

namespace sarrus {
namespace position {

Vector vector(const std::vector<double>& x) { return Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(x.size())); }
const double* pointer(const std::optional<double>& time) { return time ? &*time : nullptr; }
RowMajor row(const Vector& x) { return x.transpose(); }

Frame placed(const Mechanism& mechanism, const std::string& name) {
  const Mechanism::PlacedFrame* at = mechanism.find_frame(name);
  if (!at) no_such_name("frame", name, mechanism.frame_names());
  return {at->link, at->body, at->X, ExpressedIn::frame};
}

void check_movable(const Mechanism& mechanism, const std::string& name) {
  if (placed(mechanism, name).body == 0)
    throw ModelError("frame '" + name + "' is fixed to the ground; expected a frame of a moving body");
}

int target_size(const Mechanism& mechanism, const std::string& frame, const std::vector<double>& numbers, int count) {
  check_movable(mechanism, frame);
  const int size = static_cast<int>(numbers.size()) / count;
  if ((size != 3 && size != 12) || size * count != static_cast<int>(numbers.size()))
    throw std::invalid_argument("the target of frame '" + frame + "' must be 12 numbers, the rows of [R p], or a point of 3");
  return size;
}

unsigned common_components(const std::string& frame, const std::vector<double>& numbers, int count) {
  const int size = static_cast<int>(numbers.size()) / count;
  const std::string target = "the target of frame '" + frame + "'";
  const auto at = [&](int i) { return count == 1 ? std::string() : " at input " + std::to_string(i); };
  unsigned components = 0;
  for (int i = 0; i < count; ++i) {
    const double* x = numbers.data() + i * size;
    const unsigned now = prescribed_components(x, size);
    if (now == 0) {
      const auto count_if = [&](bool (*is)(double)) { return std::count_if(x, x + size, is); };
      if (count_if([](double y) { return std::isinf(y); }) > 0)
        throw NoAnswer(target + at(i) + " must be finite, or NaN for free components");
      throw NoAnswer(
          target + at(i) +
          (count_if([](double y) { return std::isnan(y); }) == size
               ? " is NaN in all components; NaN marks free components, expected a number for at least one"
               : " has NaN in a part of its rotation; expected a whole rotation, or NaN in its nine entries if it is free"));
    }
    if (i > 0 && now != components)
      throw std::invalid_argument(target + " has other free components (NaN)" + at(i) + " than before; expected the same in all");
    components = now;
  }
  return components;
}

RowMajor checked_coordinates(const JointDescription& joint, const std::vector<double>& numbers, const char* quantity, int size,
                             int count) {
  const auto of = [&] { return std::string(quantity) + " of joint '" + joint.name + "'"; };
  const int given = static_cast<int>(numbers.size());
  if (given != size && given != size * count)
    throw std::invalid_argument("joint '" + joint.name + "' needs " + std::to_string(size) + " " + quantity + "; got " +
                                std::to_string(given));
  RowMajor x = Eigen::Map<const RowMajor>(numbers.data(), given == size ? 1 : count, size);
  if (!x.allFinite()) throw NoAnswer(of() + " must be finite");
  if ((size == 7 || size == 4) && has_quaternion(joint.kind) && joint.nq == size)
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      const double norm = x.row(i).head(4).norm();
      if (!(norm > 0.0)) throw NoAnswer("quaternion of joint '" + joint.name + "' has norm zero; expected a rotation");
      x.row(i).head(4) /= norm;
    }
  return x;
}

void set_coordinates(const Mechanism& mechanism, const std::vector<int>& joints, const std::vector<RowMajor>& coordinates,
                     RowMajor& q) {
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (const auto& joint = mechanism.joints()[joints[i]]; !joint.closes_a_loop)
      q.middleCols(joint.iq, coordinates[i].cols()) = repeated(coordinates[i], static_cast<int>(q.rows()));
}

void check_tolerance(double tolerance) {
  if (!(tolerance >= tolerances::rounding) || !std::isfinite(tolerance))
    throw std::invalid_argument("tolerance must be at least " + six_digits(tolerances::rounding) +
                                ", the rounding error of a closed loop; got " + six_digits(tolerance));
}
void check_steps(const PathOptions& options) {
  constexpr double shortest = std::numeric_limits<double>::epsilon();
  if (!(options.min_step >= shortest && options.min_step <= 1.0))
    throw std::invalid_argument("min_step must be a fraction of the distance between two inputs, from " + six_digits(shortest) +
                                " (rounding) to 1; got " + six_digits(options.min_step));
  if (!(options.max_step >= options.min_step) || !std::isfinite(options.max_step))
    throw std::invalid_argument("max_step must be finite, and at least min_step = " + six_digits(options.min_step) + "; got " +
                                six_digits(options.max_step));
}

std::string numbers_of(const Vector& x) {
  std::vector<std::string> all;
  for (const double number : x) all.push_back(six_digits(number));
  return joined(all, " ");
}

bool contains(const std::vector<int>& all, int x) { return std::find(all.begin(), all.end(), x) != all.end(); }

}  // namespace position
using namespace position;

RowMajor start_near(const PositionModel& model, const States& states, const std::optional<RowMajor>& q, const Times& time) {
  const Mechanism& mechanism = model.mechanism;
  RowMajor start = repeated(q ? *q : row(model.home ? *model.home : model.neutral()), states.count);
  if (q) start = evaluate(mechanism, model.kernels, Operation::normalize, states, {&start}, mechanism.tree().nq);
  // set prescribed coordinates to their values at this time; these may differ much from the home configuration
  for (const ConstraintDescription& c : mechanism.description().constraints) {
    const Coupler* coupler = std::get_if<Coupler>(&c.kind);
    if (!coupler || !coupler->law || !coupler->products.empty() ||
        coupler->coefficients != std::vector<std::vector<double>>{{1.0}})
      continue;
    const Mechanism::PlacedJoint& joint = mechanism.joints()[joint_by_name(mechanism, c.coordinates[0].joint)];
    for (int i = 0; i < states.count; ++i) {
      double value[3];
      evaluate(*coupler->law, time_of(time, i), value);
      start(i, joint.iq + c.coordinates[0].index) = coupler->offset + value[0];
    }
  }
  return start;
}

Positions::Goal Positions::goal(const FrameNumbersByName& frames, const JointNumbersByName& joints, int count) const {
  const Mechanism& mechanism = model_.mechanism;
  Goal goal;
  for (const auto& [name, numbers] : joints) {
    goal.joints.push_back(joint_by_name(mechanism, name));
    const JointDescription& joint = mechanism.description().joints[goal.joints.back()];
    goal.coordinates.push_back(checked_coordinates(joint, numbers, "coordinates", joint.nq, count));
  }
  for (const auto& [name, numbers] : frames) {
    const int size = target_size(mechanism, name, numbers, count);
    const unsigned components = common_components(name, numbers, count), position = components & FrameKey::position;
    const RowMajor target =
        Eigen::Map<const RowMajor>(numbers.data(), count, size).unaryExpr([](double x) { return std::isnan(x) ? 0.0 : x; });
    const bool turns = components & FrameKey::rotation, is_point = position == FrameKey::position;
    if (turns) goal.frames.push_back({name, true, is_point ? components : FrameKey::rotation}), goal.targets.push_back(target);
    if (position == 0 || (turns && is_point)) continue;
    // components of the position are rows along the world's axes, separate from those of the rotation
    goal.frames.push_back({name, false, position, !is_point});
    RowMajor& point = goal.targets.emplace_back(count, 3);
    for (int k = 0; k < 3; ++k) point.col(k) = target.col(size == 12 ? 4 * k + 3 : k);
  }
  return goal;
}

Positions::Near Positions::start(const AssemblyStart& near) const {
  Near start;
  if (near.q) {
    if (near.q->size() != model_.mechanism.tree().nq)
      throw std::invalid_argument("near must be a configuration of nq = " + std::to_string(model_.mechanism.tree().nq) +
                                  " numbers");
    for (Eigen::Index k = 0; k < near.q->size(); ++k)
      if (!std::isfinite((*near.q)(k)))
        throw NoAnswer("near must be finite; near[" + std::to_string(k) + "] is " + shortest((*near.q)(k)));
    for (const int k : model_.mechanism.quaternions())
      if (!usable_quaternion(near.q->data() + k))
        throw NoAnswer("near[" + std::to_string(k) + ":" + std::to_string(k + 4) +
                       "] is a quaternion of norm zero; expected a rotation");
    start.q = row(*near.q);
  }
  Goal guess = goal({}, near.joints, 1);
  start.joints = std::move(guess.joints), start.coordinates = std::move(guess.coordinates);
  return start;
}

Positions::Request Positions::Request::of(const std::vector<int>& rows) const {
  if (static_cast<int>(rows.size()) == states.count) return *this;
  Request subset = *this;
  subset.states = states.of(rows);
  subset.goal.coordinates = rows_of(goal.coordinates, rows), subset.goal.targets = rows_of(goal.targets, rows);
  subset.near.coordinates = rows_of(near.coordinates, rows);
  if (near.q) subset.near.q = rows_of(*near.q, rows);
  if (time) subset.time = rows_of(*time, rows);
  return subset;
}
Positions::Request Positions::Request::start_only() const {
  Request start = *this;
  start.goal = {};
  return start;
}
ClosingInput Positions::Request::input(const Closure& closure) const {
  return {time, closure.targets(states.count, goal.targets, goal.coordinates)};
}

std::shared_ptr<const OtherTree> Positions::other_tree(const Goal& goal, Near& near) const {
  const Mechanism& mechanism = model_.mechanism;
  const auto by_name = [&](std::vector<int> joints) {
    std::sort(joints.begin(), joints.end(),
              [&](int a, int b) { return mechanism.description().joints[a].name < mechanism.description().joints[b].name; });
    joints.erase(std::unique(joints.begin(), joints.end()), joints.end());
    return joints;
  };
  if (!near.joints.empty()) {  // keep only guesses of joints that form no loop with prescribed joints or with each other
    std::vector<int> all;
    for (const ConstraintDescription& c : mechanism.description().constraints)
      for (const auto& coordinate : c.coordinates) all.push_back(joint_by_name(mechanism, coordinate.joint));
    all = by_name(all);
    for (const std::vector<int>& more : {by_name(goal.joints), by_name(near.joints)})
      all.insert(all.end(), more.begin(), more.end());
    const std::vector<int> independent = without_loops(mechanism, all);
    Near kept;
    kept.q = near.q;
    for (std::size_t i = 0; i < near.joints.size(); ++i)
      if (contains(independent, near.joints[i]))
        kept.joints.push_back(near.joints[i]), kept.coordinates.push_back(near.coordinates[i]);
    near = std::move(kept);
  }
  if (mechanism.tree().loops.rows == 0 || mechanism.tree().loops.pfaffian_values > 0) return nullptr;
  std::vector<int> all = goal.joints;
  all.insert(all.end(), near.joints.begin(), near.joints.end());
  for (const std::vector<int>& joints : {by_name(all), by_name(goal.joints)}) {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto at = trees_.find(joints);
    std::shared_ptr<const OtherTree> tree = at == trees_.end() ? nullptr : at->second;
    const bool tried = at != trees_.end();
    lock.unlock();
    if (!tried) {
      try {
        tree = std::make_shared<const OtherTree>(model_, joints);
      } catch (const ModelError&) {  // some kinds of joints cannot be loop joints
      }
      lock.lock();
      constexpr std::size_t most = 100;
      if (trees_.size() > most) trees_.clear();
      tree = trees_.emplace(joints, tree).first->second;
    }
    if (tree) return tree->is_same() ? nullptr : tree;
  }
  return nullptr;
}

std::vector<int> Positions::joints_in_tree(const std::vector<int>& joints) const {
  std::vector<int> in_tree;
  for (const int j : joints)
    if (!model_.mechanism.joints()[j].closes_a_loop) in_tree.push_back(j);
  return in_tree;
}

RowMajor Positions::coordinates_now(int joint, const States& states, const RowMajor& q, const Times& time) const {
  const Mechanism& mechanism = model_.mechanism;
  const Mechanism::PlacedJoint& at = mechanism.joints()[joint];
  if (!at.closes_a_loop) return q.middleCols(at.iq, at.nq);
  return loop_coordinates(model_, states, q, time)
      .middleCols(mechanism.tree().loop_motion[at.constraint].iq, mechanism.description().joints[joint].nq);
}

RowMajor Positions::frame_now(const FrameKey& key, const States& states, const RowMajor& q) const {
  const RowMajor pose =
      evaluate(model_.mechanism, model_.kernels, Operation::pose, states, {&q}, 16, placed(model_.mechanism, key.frame));
  RowMajor x(states.count, key.numbers());
  for (int k = 0; k < key.numbers(); ++k) x.col(k) = pose.col(key.is_pose ? k : 4 * k + 3);
  return x;
}

}  // namespace sarrus
