#include "other_tree.hpp"

#include <algorithm>
#include <numeric>
#include <set>

namespace sarrus {
namespace {

/// Return the index of a joint's first coordinate among all coordinates: those of q, then those of loop joints.
int place(const Mechanism& mechanism, int joint) {
  const Mechanism::PlacedJoint& j = mechanism.joints()[joint];
  return j.closes_a_loop ? mechanism.tree().nq + mechanism.tree().loop_motion[j.constraint].iq : j.iq;
}

Description on_other_tree(const Mechanism& base, const std::vector<int>& joints, std::vector<int>& order) {
  Description d = base.description();
  std::set<std::string> in_tree;
  for (const int j : joints) in_tree.insert(d.joints[j].name);
  // the joints of constraints between coordinates must be tree joints
  for (const ConstraintDescription& c : d.constraints)
    for (const auto& coordinate : c.coordinates) in_tree.insert(coordinate.joint);
  order.resize(d.joints.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return d.joints[a].name < d.joints[b].name; });
  std::vector<JointDescription> sorted;
  for (const int j : order) {
    sorted.push_back(d.joints[j]);
    sorted.back().keep_in_tree = in_tree.count(d.joints[j].name) > 0, sorted.back().close_loop = !d.joints[j].laws.empty();
  }
  d.joints = std::move(sorted);
  std::sort(d.bodies.begin(), d.bodies.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return d;
}

}  // namespace

RowMajor loop_coordinates(const PositionModel& model, const States& states, const RowMajor& q, const Times& time) {
  const Mechanism& m = model.mechanism;
  const Tree& tree = m.tree();
  const RowMajor near = RowMajor::Zero(1, tree.loop_nq);
  RowMajor x = evaluate(m, model.kernels, Operation::loop_joint_coordinates, states, {&q, &near, pointer(time)}, tree.loop_nq);
  for (std::size_t j = 0; j < m.joints().size(); ++j) {
    const JointDescription& joint = m.description().joints[j];
    if (!m.joints()[j].closes_a_loop || model.limits[j].empty() || !whole_turns_return(m.description(), joint)) continue;
    const int first = tree.loop_motion[m.joints()[j].constraint].iq;
    for (int k = 0; k < joint.nq; ++k) {
      if (coordinate_unit(joint, k) != 'r') continue;
      for (double& angle : x.col(first + k))
        angle += turns_into(angle, model.limits[j].low[k], model.limits[j].high[k], limit_margin);
    }
  }
  return x;
}

OtherTree::OtherTree(const PositionModel& base, const std::vector<int>& joints) : base_(base) {
  std::vector<int> order;
  mechanism_ = std::make_unique<const Mechanism>(on_other_tree(base.mechanism, joints, order));
  model_.emplace(PositionModel{*mechanism_, base.kernels, {}, {}, {}, base.check_interrupt});
  closures_.emplace(*model_);
  joint_.resize(order.size());
  for (std::size_t k = 0; k < order.size(); ++k)
    joint_[order[k]] = static_cast<int>(k), model_->limits.push_back(base.limits[order[k]]);
  const Tree& tree = mechanism_->tree();
  places_.resize(tree.nq), places_back_.resize(base.mechanism.tree().nq), reference_.assign(tree.loop_nq, -1);
  for (std::size_t j = 0; j < order.size(); ++j) {
    const Mechanism::PlacedJoint &here = base.mechanism.joints()[j], &there = mechanism_->joints()[joint_[j]];
    const int at = place(base.mechanism, static_cast<int>(j)), other = place(*mechanism_, joint_[j]);
    is_same_ = is_same_ && here.closes_a_loop == there.closes_a_loop;
    for (int k = 0; k < base.mechanism.description().joints[j].nq; ++k) {
      if (!there.closes_a_loop) places_[other + k] = at + k;
      if (!here.closes_a_loop) places_back_[at + k] = other + k;
      if (there.closes_a_loop && !here.closes_a_loop) reference_[other - tree.nq + k] = at + k;
    }
  }
  if (!base.home || is_same_) return;
  // convert the home if it closes the loops; otherwise copy the coordinates of the joints that are in both trees
  const States one;
  const Vector start = start_near(base, one, RowMajor(base.home->transpose()), {}).row(0);
  const Closure closure(base, {}, {});
  const ScaledLoops loops = closure.loops({});
  double open = 0.0;
  const Vector residual = loops.residual(start.data());
  for (Eigen::Index r = 0; r < residual.size(); ++r) open += loops.holonomic[r] ? residual(r) * residual(r) : 0.0;
  Vector home = model_->neutral();
  if (std::sqrt(open) <= near_steps.farthest)
    home = convert(one, start.transpose(), {}).row(0);
  else
    for (int k = 0; k < tree.nq; ++k)
      if (places_[k] < start.size()) home(k) = (*base.home)(places_[k]);
  model_->home = home;
}

RowMajor OtherTree::convert(const States& states, const RowMajor& q, const Times& time) const {
  const RowMajor x = loop_coordinates(base_, states, q, time);
  const RowMajor normalized =
      evaluate(base_.mechanism, base_.kernels, Operation::normalize, states, {&q}, static_cast<int>(q.cols()));
  RowMajor converted(states.count, places_.size());
  for (std::size_t k = 0; k < places_.size(); ++k)
    converted.col(k) = places_[k] < q.cols() ? normalized.col(places_[k]) : x.col(places_[k] - q.cols());
  return converted;
}

RowMajor OtherTree::convert_back(const States& states, const RowMajor& q, const RowMajor& start, const Times& time,
                                 const Closure& closure) const {
  RowMajor near = RowMajor::Zero(states.count, reference_.size()), converted(states.count, places_back_.size());
  for (std::size_t k = 0; k < reference_.size(); ++k)
    if (reference_[k] >= 0) near.col(k) = start.col(reference_[k]);
  const RowMajor x = evaluate(*mechanism_, base_.kernels, Operation::loop_joint_coordinates, states, {&q, &near, pointer(time)},
                              static_cast<int>(reference_.size()));
  for (std::size_t k = 0; k < places_back_.size(); ++k)
    converted.col(k) = places_back_[k] < q.cols() ? q.col(places_back_[k]) : x.col(places_back_[k] - q.cols());
  return closure.unwound(std::move(converted), start);
}

}  // namespace sarrus
