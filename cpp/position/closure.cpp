#include "closure.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "../joints/visit.hpp"
#include "../mechanism/variants.hpp"
#include "../model/text.hpp"

namespace sarrus {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Call f(coordinate, index in q of the joint) for each coordinate that the joint has.
template <class F> void each_coordinate(const JointDescription& joint, F f) {
  visit_every(joint.kind, joint.nv, [&](auto type) {
    int listed = 0, own = 0;
    for (const Coordinate& coordinate : type.coordinates)
      if (type.has(joint.constants, listed++)) f(coordinate, own++);
  });
}

/// Return the same mechanism, or the same variants, on the same tree, with these additional constraints.
std::shared_ptr<const Mechanism> with_targets(const PositionModel& model, std::vector<ConstraintDescription> more) {
  const Mechanism& mechanism = model.mechanism;
  Description d = mechanism.description();
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    d.joints[j].close_loop = mechanism.joints()[j].closes_a_loop;
    d.joints[j].keep_in_tree = !d.joints[j].close_loop;
  }
  std::move(more.begin(), more.end(), std::back_inserter(d.constraints));
  auto made = std::make_shared<const Mechanism>(std::move(d));
  if (!mechanism.variants()) return made;
  using Both = std::pair<std::shared_ptr<const Mechanism>, std::shared_ptr<const Mechanism>>;
  const auto both = std::make_shared<const Both>(made, model.vary(*made));  // variants refer to their base
  return std::shared_ptr<const Mechanism>(both, both->second.get());
}

std::vector<ConstraintDescription> target_constraints(const Mechanism& mechanism, const std::vector<FrameKey>& frames,
                                                      const std::vector<int>& loop_joints) {
  std::vector<ConstraintDescription> all;
  for (const FrameKey& key : frames) all.push_back(target_constraint(key));
  for (const int j : loop_joints) {
    ConstraintDescription c{};
    c.joint = mechanism.description().joints[j].name, c.name = "target of joint " + c.joint;
    c.kind = LoopJoint(), c.target = Target::coordinates;
    all.push_back(std::move(c));
  }
  return all;
}

std::vector<int> closing_among(const Mechanism& mechanism, const std::vector<int>& joints) {
  std::vector<int> closing;
  for (const int j : joints)
    if (mechanism.joints()[j].closes_a_loop && mechanism.description().joints[j].nv > 0) closing.push_back(j);
  return closing;
}

/// Return the reference value to which an angle is moved by whole turns: the middle of its two limits, or a quarter turn inside a single limit.
double middle(double low, double high) {
  if (std::isfinite(low) && std::isfinite(high)) return 0.5 * (low + high);
  return std::isfinite(low) ? low + 0.5 * M_PI : std::isfinite(high) ? high - 0.5 * M_PI : 0.0;
}

}  // namespace

ConstraintDescription target_constraint(const FrameKey& key) {
  ConstraintDescription c{};
  c.name = (key.components == FrameKey::rotation ? "orientation of " : "target of ") + key.frame;
  LoopJoint joint(key.is_pose ? JointKind::fixed : JointKind::spherical, {}, key.is_pose ? 6 : 3);
  const int all = std::exchange(joint.row_count, 0);
  for (int r = 0; r < all; ++r)
    if (const int k = joint.component[r]; key.has(k)) joint.component[joint.row_count++] = k;
  c.kind = joint;
  c.parent = "ground", c.child = key.frame, c.target = Target::frame, c.in_world = key.in_world;
  c.at_parent = c.at_child = Transform<double>::identity();
  return c;
}
unsigned prescribed_components(const double* target, int numbers) {
  const bool is_pose = numbers == 12;
  unsigned components = 0;
  int turns = 0;
  for (int k = 0; k < numbers; ++k) {
    if (std::isinf(target[k])) return 0;
    if (std::isnan(target[k])) continue;
    if (is_pose && k % 4 < 3)
      ++turns;
    else
      components |= 8U << (is_pose ? k / 4 : k);
  }
  if (turns != 0 && turns != 9) return 0;
  return turns == 9 ? components | FrameKey::rotation : components;
}
char coordinate_unit(const JointDescription& joint, int coordinate) {
  char unit = '1';
  each_coordinate(joint, [&](const Coordinate& c, int k) {
    if (k == coordinate) unit = c.unit[0];
  });
  return unit;
}
/// Return true if a function of an angle has the same value after a whole turn.
static bool repeats(const Law& law) {
  const auto is_whole = [](double x) { return std::abs(x - std::nearbyint(x)) <= 1e-12 * std::abs(x); };  // rounding of 2 pi / n
  const auto zero = [](double x) { return x == 0.0; };
  const bool constant = law.start.size() == 1 && std::all_of(law.coefficient.begin() + 1, law.coefficient.end(), zero);
  bool yes = constant || (law.period > 0.0 && is_whole(full_turn / law.period));
  for (std::size_t h = 0; h < law.harmonic.size(); h += 3) yes = yes && is_whole(law.harmonic[h + 1]);
  return yes;
}
bool whole_turns_return(const Description& description, const JointDescription& joint) {
  if (!visit_every(joint.kind, joint.nv, [](auto type) { return type.whole_turns_return; })) return false;
  const auto differs = [&](const ConstraintDescription& c) {
    const Coupler* coupler = std::get_if<Coupler>(&c.kind);
    if (!coupler) return false;
    const auto is_angle = [&](int i) {
      const auto& coordinate = c.coordinates[static_cast<std::size_t>(i)];
      return coordinate.joint == joint.name && coordinate_unit(joint, coordinate.index) == 'r';
    };
    bool any = false;
    for (std::size_t i = 0; i < coupler->coefficients.size(); ++i)
      any = any || (is_angle(static_cast<int>(i)) && !coupler->coefficients[i].empty());
    for (const Product& product : coupler->products)
      for (std::size_t k = 0; k < product.column.size(); ++k)
        any = any || (is_angle(product.column[k]) && !repeats(product.functions[k]));
    return any;
  };
  return std::none_of(description.constraints.begin(), description.constraints.end(), differs);
}
Vector neutral_coordinates(const JointDescription& joint) {
  Vector q = Vector::Zero(joint.nq);
  each_coordinate(joint, [&](const Coordinate& c, int k) { q(k) = std::string(c.name) == "qw" ? 1.0 : 0.0; });
  return q;
}
Vector PositionModel::neutral() const {
  Vector q = Vector::Zero(mechanism.tree().nq);
  for (const int k : mechanism.quaternions()) q(k + 3) = 1.0;
  return q;
}

double turns_into(double x, double low, double high, double margin) {
  if (x >= low - margin && x <= high + margin) return 0.0;
  const double turns = x < low - margin ? std::ceil((low - x - margin) / full_turn) : std::floor((high - x + margin) / full_turn);
  if (!std::isfinite(turns)) return 0.0;
  const double turned = x + full_turn * turns;
  return turned >= low - margin && turned <= high + margin ? turned - x : 0.0;
}

std::vector<int> without_loops(const Mechanism& mechanism, const std::vector<int>& joints) {
  std::vector<int> group(mechanism.description().bodies.size() + 1);
  std::iota(group.begin(), group.end(), 0);  // one entry for each body; the ground is body 0
  const auto root = [&](int body) {
    while (group[body] != body) body = group[body];
    return body;
  };
  std::vector<int> kept;
  for (const int j : joints) {
    if (std::find(kept.begin(), kept.end(), j) != kept.end()) continue;
    const bool is_unconstrained =
        visit_every(mechanism.description().joints[j].kind, 0, [](auto type) { return type.is_unconstrained; });
    const int parent = root(mechanism.joints()[j].ends[0]), child = root(mechanism.joints()[j].ends[1]);
    // joints without constraint rows are always kept: fixing their coordinates is possible as long as there are degrees of freedom
    if (!is_unconstrained && parent == child) continue;
    if (!is_unconstrained) group[parent] = child;
    kept.push_back(j);
  }
  return kept;
}

std::string quoted_joints(const Mechanism& mechanism, const std::vector<int>& joints) {
  std::vector<std::string> names;
  for (const int j : joints) names.push_back("'" + mechanism.description().joints[j].name + "'");
  return joined(names);
}

Closure::Closure(const PositionModel& m, std::vector<FrameKey> prescribed, std::vector<int> joints)
    : model(m),
      frames(std::move(prescribed)),
      fixed(std::move(joints)),
      loop_joints(closing_among(m.mechanism, fixed)),
      mechanism_(frames.empty() && loop_joints.empty() ? std::shared_ptr<const Mechanism>(std::shared_ptr<void>(), &m.mechanism)
                                                       : with_targets(m, target_constraints(m.mechanism, frames, loop_joints))),
      functions_(*mechanism_, m.kernels) {
  const Mechanism& base = model.mechanism;
  const std::vector<JointDescription>& described = base.description().joints;
  const Tree& tree = mechanism_->tree();
  if (!loop_joints.empty() && without_loops(base, fixed).size() < fixed.size())
    throw ModelError("joints " + quoted_joints(base, fixed) +
                     " cannot all be fixed: they form a loop, so their coordinates depend on each other; expected joints that do "
                     "not form a loop");

  Vector neutral_targets(tree.loops.pfaffian_values - base.tree().loops.pfaffian_values);
  numbers = static_cast<int>(neutral_targets.size());
  int at = 0;
  for (const FrameKey& key : frames) {
    neutral_targets.segment(at, key.numbers()).setZero();
    if (key.is_pose) neutral_targets(at) = neutral_targets(at + 5) = neutral_targets(at + 10) = 1.0;
    at += key.numbers();
  }
  joint_numbers = numbers - at;
  for (const int j : loop_joints) {
    neutral_targets.segment(at, described[j].nq) = neutral_coordinates(described[j]);
    at += described[j].nq;
  }
  const std::vector<int>& constraints = mechanism_->constraints();
  for (std::size_t i = base.constraints().size(); i < constraints.size(); ++i)
    target_rows_.emplace_back(tree.loops.constraint[constraints[i]].row, tree.loops.constraint[constraints[i]].rows);

  // scale the rows at a random configuration, because a row may be unusually small at a special one, for example at a rod of zero length
  std::vector<int> by_name = [&] {
    std::vector<int> order(described.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) { return described[a].name < described[b].name; });
    return order;
  }();
  const Matrix random = RandomNumbers().normal(1, tree.nv);
  Vector away(tree.nv);
  int drawn = 0;
  for (const int j : by_name)
    for (int k = 0; k < base.joints()[j].nv && !base.joints()[j].closes_a_loop; ++k) {
      const int iv = base.joints()[j].iv + k;
      away(iv) = 0.1 * tree.unit[iv] * random(0, drawn++);
    }
  const Vector neutral = model.neutral();
  Vector q(tree.nq);
  functions_.evaluate(Operation::integrate, {neutral.data(), away.data()}, q.data());
  loops_ =
      std::make_unique<ScaledLoops>(functions_, q.data(), std::nullopt, [this, neutral_targets](const double* x, double* out) {
        const RowMajor all = values(Eigen::Map<const RowMajor>(x, 1, mechanism_->tree().nq), neutral_targets.transpose());
        std::copy_n(all.data(), all.size(), out);
      });

  moving.assign(tree.nv, true), whole_turns_.assign(tree.nq, false);
  low_ = Vector::Constant(tree.nq, -infinity), high_ = Vector::Constant(tree.nq, infinity);
  coordinate_scale = Vector::Ones(tree.nq);
  loop_low_ = Vector::Constant(tree.loop_nq, -infinity), loop_high_ = Vector::Constant(tree.loop_nq, infinity);
  loop_margin_ = Vector::Constant(tree.loop_nq, limit_margin), loop_near_ = Vector::Zero(tree.loop_nq);
  bool loops_limited = false;
  for (std::size_t j = 0; j < described.size(); ++j) {
    const Mechanism::PlacedJoint& joint = base.joints()[j];
    const bool is_fixed = std::find(fixed.begin(), fixed.end(), static_cast<int>(j)) != fixed.end();
    if (!joint.closes_a_loop && is_fixed) std::fill_n(moving.begin() + joint.iv, joint.nv, false);
    const bool returns = whole_turns_return(base.description(), described[j]);
    const int first = joint.closes_a_loop ? tree.loop_motion[joint.constraint].iq : joint.iq;
    Vector& low = joint.closes_a_loop ? loop_low_ : low_;
    Vector& high = joint.closes_a_loop ? loop_high_ : high_;
    Vector& scale = joint.closes_a_loop ? loop_margin_ : coordinate_scale;
    for (int k = 0; k < described[j].nq; ++k) {
      if (coordinate_unit(described[j], k) == 'm') scale(first + k) *= tree.length;
      if (is_fixed) continue;
      if (!joint.closes_a_loop) whole_turns_[first + k] = returns && coordinate_unit(described[j], k) == 'r';
      if (model.limits[j].empty()) continue;
      low(first + k) = model.limits[j].low[k], high(first + k) = model.limits[j].high[k];
      const bool finite_limit = std::isfinite(low(first + k)) || std::isfinite(high(first + k));
      limited = limited || finite_limit, loops_limited = loops_limited || (finite_limit && joint.closes_a_loop);
    }
  }
  fixed_mask.resize(tree.nv);
  for (int k = 0; k < tree.nv; ++k) fixed_mask(k) = moving[k] ? 0.0 : 1.0;
  units = scales(States(), {}, true).row(0);
  if (loops_limited)
    for (int k = 0; k < tree.loop_nq; ++k) loop_near_(k) = middle(loop_low_(k), loop_high_(k));
  else
    loop_low_.resize(0);
}

RowMajor Closure::values(const RowMajor& q, const RowMajor& targets) const {
  const int rows = model.mechanism.tree().loops.pfaffian_values;
  if (rows == 0) return numbers > 0 ? targets : RowMajor(1, 0);
  RowMajor all(std::max(q.rows(), targets.rows()), rows + numbers);
  for (Eigen::Index i = 0; i < all.rows(); ++i) model.rows(q.row(q.rows() == 1 ? 0 : i).data(), all.row(i).data());
  if (numbers > 0) all.rightCols(numbers) = repeated(targets, static_cast<int>(all.rows()));
  return all;
}

ScaledLoops Closure::loops(const ClosingInput& input) const {
  const std::optional<double> time = input.time ? std::optional<double>((*input.time)(0, 0)) : std::nullopt;
  return loops_->at(time, [this, targets = input.targets](const double* q, double* out) {
    const RowMajor all = values(Eigen::Map<const RowMajor>(q, 1, mechanism_->tree().nq), targets);
    std::copy_n(all.data(), all.size(), out);
  });
}

RowMajor Closure::scales(const States& states, const Vector& weights, bool all) const {
  const Tree& tree = mechanism_->tree();
  const int count = states.variant.empty() ? 1 : states.count;
  RowMajor rows(count, tree.nv + tree.loops.rows);
  for (int i = 0; i < count; ++i) {
    const auto [columns, factors] = states.variant.empty()
                                        ? std::pair(loops_->column_scale, loops_->row_scale)
                                        : loops_->scales_for(mechanism_->variants()->length(states.variant[i]));
    for (int k = 0; k < tree.nv; ++k) rows(i, k) = moving[k] || all ? columns(k) : 0.0;
    for (int r = 0; r < tree.loops.rows; ++r)
      rows(i, tree.nv + r) = loops_->holonomic[r] ? factors(r) * (weights.size() ? weights(r) : 1.0) : 0.0;
  }
  return rows;
}
Vector Closure::scale(const Vector& weights) const { return scales(States(), weights).row(0); }

Closure::ClosedStates Closure::close(const States& states, const RowMajor& q, const ClosingInput& input,
                                     const ClosingSteps& steps, const Vector& weights) const {
  const int nq = mechanism_->tree().nq;
  const RowMajor options = Eigen::RowVector3d(steps.damping, steps.most, steps.farthest);
  const RowMajor factors = scales(states, weights), rows = values(q, input.targets);
  const RowMajor out = evaluate(Operation::close, states, {&q, &factors, &options, pointer(input.time), &rows}, nq + 1);
  const Vector open = out.col(nq);
  return {out.leftCols(nq), open.array().isFinite().select(open, infinity)};
}

Matrix Closure::jacobian(const Vector& q, const ClosingInput& input) const {
  const ScaledLoops at = loops(input);
  Matrix J = at.holonomic_rows(at.jacobian(q.data()));
  for (int k = 0; k < J.cols(); ++k)
    if (!moving[k]) J.col(k).setZero();
  return J.unaryExpr([](double x) { return std::isfinite(x) ? x : 0.0; });
}

Flags Closure::within(const States& states, const RowMajor& q, double margin, const Times& time) const {
  const Eigen::RowVectorXd allowance = margin * limit_margin * coordinate_scale;
  const Eigen::RowVectorXd low = low_.transpose() - allowance, high = high_.transpose() + allowance;
  Flags flags(states.count);
  for (int i = 0; i < states.count; ++i)  // the comparisons are written such that NaN is treated as within the limits
    flags(i) = !(q.row(i).array() < low.array()).any() && !(q.row(i).array() > high.array()).any();
  if (loop_low_.size() == 0) return flags;
  const RowMajor near = loop_near_.transpose();
  const RowMajor x = evaluate(Operation::loop_joint_coordinates, states, {&q, &near, pointer(time)}, mechanism_->tree().loop_nq);
  for (int i = 0; i < states.count; ++i)
    flags(i) = flags(i) && ((x.row(i).transpose() - loop_low_ + margin * loop_margin_).array() >= 0.0).all() &&
               ((loop_high_ + margin * loop_margin_ - x.row(i).transpose()).array() >= 0.0).all();
  return flags;
}

RowMajor Closure::unwound(RowMajor q, const RowMajor& start) const {
  for (Eigen::Index k = 0; k < q.cols(); ++k) {
    if (!whole_turns_[k]) continue;
    const bool has_limits = std::isfinite(low_(k)) || std::isfinite(high_(k));
    for (Eigen::Index i = 0; i < q.rows(); ++i) {
      double& x = q(i, k);
      x -= full_turn * std::nearbyint((x - start(start.rows() == 1 ? 0 : i, k)) / full_turn);
      if (has_limits) x += turns_into(x, low_(k), high_(k), limit_margin * coordinate_scale(k));
    }
  }
  return q;
}

std::string Closure::kind_of(int constraint) const {
  const Mechanism& base = model.mechanism;
  if (constraint >= static_cast<int>(base.constraints().size())) return "Target";
  const int index = base.constraints()[constraint];
  for (std::size_t j = 0; j < base.joints().size(); ++j)
    if (base.joints()[j].closes_a_loop && base.joints()[j].constraint == index)
      return visit_every(base.description().joints[j].kind, 0, [](auto type) { return std::string(type.name); });
  return visit_constraint(base.tree().loops.constraint[index].kind, [](const auto& kind) { return std::string(kind.name); });
}

Vector Closure::step(const Vector& q, const Vector& x) const {
  const Vector v = loops_->column_scale.cwiseProduct(x);
  Vector next(q.size());
  functions_.evaluate(Operation::integrate, {q.data(), v.data()}, next.data());
  return next;
}
Vector Closure::difference(const Vector& q0, const Vector& q1) const {
  Vector v(mechanism_->tree().nv);
  functions_.evaluate(Operation::difference, {q0.data(), q1.data()}, v.data());
  return v.cwiseQuotient(loops_->column_scale);
}

RowMajor Closure::difference(const States& states, const RowMajor& q0, const RowMajor& q1) const {
  const int nv = mechanism_->tree().nv;
  RowMajor v = sarrus::evaluate(model.mechanism, model.kernels, Operation::difference, states, {&q0, &q1}, nv);
  const RowMajor columns = scales(states, {}, true).leftCols(nv);
  for (int i = 0; i < states.count; ++i) v.row(i).array() /= columns.row(columns.rows() == 1 ? 0 : i).array();
  return v;
}

RowMajor Closure::targets(int count, const std::vector<RowMajor>& of_frames, const std::vector<RowMajor>& coordinates) const {
  RowMajor all(count, numbers);
  Eigen::Index at = 0;
  const auto add = [&](const RowMajor& x) { all.middleCols(at, x.cols()) = repeated(x, count), at += x.cols(); };
  for (const RowMajor& x : of_frames) add(x);
  for (std::size_t i = 0; i < fixed.size(); ++i)
    if (std::find(loop_joints.begin(), loop_joints.end(), fixed[i]) != loop_joints.end()) add(coordinates[i]);
  return all;
}

std::shared_ptr<const Closure> Closures::of(const std::vector<FrameKey>& frames, const std::vector<int>& fixed) const {
  const std::pair key(frames, fixed);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto at = closures_.find(key); at != closures_.end()) return at->second;
  }
  auto made = std::make_shared<const Closure>(model, frames, fixed);
  const std::lock_guard<std::mutex> lock(mutex_);
  constexpr std::size_t most = 100;
  if (closures_.size() > most) closures_.clear();
  return closures_[key] = made;
}

}  // namespace sarrus
