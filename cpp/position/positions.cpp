#include "positions.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../constraints/law.hpp"
#include "../kernels/batch.hpp"
#include "../loops/branch_outcome.hpp"
#include "../loops/pivoted_qr.hpp"
#include "../mobility/actuation.hpp"
#include "../model/text.hpp"
#include "../spatial/conversions.hpp"

namespace sarrus {
namespace {

constexpr double passed_end = 1.0 - 1e-12;  // fraction of the path at which its end counts as reached
constexpr double same_coordinates =
    1e-6;  // largest deviation of dependent joints from their prescribed coordinates [rad, mean sizes of the bodies]
constexpr double same_poses = 1e-5;  // poses that differ by less are the same assembly mode
constexpr double small = 1e-6;  // relative singular values of independent velocities are larger

Vector vector(const std::vector<double>& x) { return Eigen::Map<const Vector>(x.data(), static_cast<Eigen::Index>(x.size())); }
const double* pointer(const std::optional<double>& time) { return time ? &*time : nullptr; }
RowMajor row(const Vector& x) { return x.transpose(); }

Frame placed(const Mechanism& mechanism, const std::string& name) {
  const Mechanism::PlacedFrame* at = mechanism.find_frame(name);
  if (!at) no_such_name("frame", name, mechanism.frame_names());
  return {at->link, at->body, at->X, ExpressedIn::frame};
}

/// Raise ModelError for a frame on the ground.
void check_movable(const Mechanism& mechanism, const std::string& name) {
  if (placed(mechanism, name).body == 0)
    throw ModelError("frame '" + name + "' is fixed to the ground; expected a frame of a moving body");
}

/// Coordinates (n or 1 rows) with unit quaternions; NoAnswer if they are not finite, or a quaternion is zero.
RowMajor checked_coordinates(const JointDescription& joint, const std::vector<double>& numbers, const char* quantity, int size,
                             int count) {
  const auto of = [&] { return std::string(quantity) + " of joint '" + joint.name + "'"; };
  const int given = static_cast<int>(numbers.size());
  if (given != size && given != size * count)
    throw std::invalid_argument("joint '" + joint.name + "' takes " + std::to_string(size) + " " + quantity + "; got " +
                                std::to_string(given));
  RowMajor x = Eigen::Map<const RowMajor>(numbers.data(), given == size ? 1 : count, size);
  if (!x.allFinite()) throw NoAnswer(of() + " must be finite");
  if ((size == 7 || size == 4) && has_quaternion(joint.kind) && joint.nq == size)
    for (Eigen::Index i = 0; i < x.rows(); ++i) {
      const double norm = x.row(i).head(4).norm();
      if (!(norm > 0.0))
        throw NoAnswer("quaternion of joint '" + joint.name + "': is not a rotation; expected a nonzero quaternion");
      x.row(i).head(4) /= norm;
    }
  return x;
}

/// Set the coordinates of the joints among these that are in the tree.
void set_coordinates(const Mechanism& mechanism, const std::vector<int>& joints, const std::vector<RowMajor>& coordinates,
                     RowMajor& q) {
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (const auto& joint = mechanism.joints()[joints[i]]; !joint.closes_a_loop)
      q.middleCols(joint.iq, coordinates[i].cols()) = repeated(coordinates[i], static_cast<int>(q.rows()));
}

/// Raise std::invalid_argument for a tolerance of loops that no search reaches.
void check_tolerance(double tolerance) {
  if (!(tolerance >= tolerances::rounding) || !std::isfinite(tolerance))
    throw std::invalid_argument("tolerance must be at least " + six_digits(tolerances::rounding) +
                                ", the rounding error of a closed loop; got " + six_digits(tolerance));
}
/// Raise std::invalid_argument for steps with which a path would not end.
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

}  // namespace

RowMajor start_near(const PositionModel& model, const States& states, const std::optional<RowMajor>& q, const Times& time) {
  const Mechanism& mechanism = model.mechanism;
  RowMajor start = repeated(q ? *q : row(model.home ? *model.home : model.neutral()), states.count);
  if (q) start = evaluate(mechanism, model.kernels, Operation::normalize, states, {&start}, mechanism.tree().nq);
  for (const ConstraintDescription& c : mechanism.description().constraints) {  // may be far from the home at this time
    const Coupler* coupler = std::get_if<Coupler>(&c.kind);
    if (!coupler || !coupler->law || coupler->coefficients != std::vector<std::vector<double>>{{1.0}}) continue;
    const Mechanism::PlacedJoint& joint = mechanism.joints()[joint_by_name(mechanism, c.coordinates[0].joint)];
    for (int i = 0; i < states.count; ++i) {
      double value[3];
      evaluate(*coupler->law, time_of(time, i), value);
      start(i, joint.iq + c.coordinates[0].index) = coupler->offset + value[0];
    }
  }
  return start;
}

// ---- requests ------------------------------------------------------------------------------------------------------------------------

Positions::Goal Positions::goal(const FrameNumbersByName& frames, const JointNumbersByName& joints, int count) const {
  const Mechanism& mechanism = model_.mechanism;
  Goal goal;
  for (const auto& [name, numbers] : joints) {
    goal.joints.push_back(joint_by_name(mechanism, name));
    const JointDescription& joint = mechanism.description().joints[goal.joints.back()];
    goal.coordinates.push_back(checked_coordinates(joint, numbers, "coordinates", joint.nq, count));
  }
  for (const auto& [name, numbers] : frames) {
    check_movable(mechanism, name);
    const int size = static_cast<int>(numbers.size()) / count;
    if ((size != 3 && size != 12) || size * count != static_cast<int>(numbers.size()) ||
        (count == 1 && !vector(numbers).allFinite()))
      throw std::invalid_argument("the target of frame '" + name +
                                  "' must be 12 finite numbers, the rows of [R p], or a point of 3");
    goal.frames.push_back({name, size == 12});
    goal.targets.push_back(Eigen::Map<const RowMajor>(numbers.data(), count, size));
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
  Request some = *this;
  some.states = states.of(rows);
  some.goal.coordinates = rows_of(goal.coordinates, rows), some.goal.targets = rows_of(goal.targets, rows);
  some.near.coordinates = rows_of(near.coordinates, rows);
  if (near.q) some.near.q = rows_of(*near.q, rows);
  if (time) some.time = rows_of(*time, rows);
  return some;
}
Positions::Request Positions::Request::start_only() const {
  Request start = *this;
  start.goal = {};
  return start;
}
ClosingInput Positions::Request::input(const Closure& closure) const {
  return {time, closure.targets(states.count, goal.targets, goal.coordinates)};
}

std::shared_ptr<const Closure> Positions::closure(const PositionModel& model, const std::vector<FrameKey>& frames,
                                                  const std::vector<int>& fixed) const {
  const Key key{&model, frames, fixed};
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

std::shared_ptr<const OtherTree> Positions::other_tree(const Goal& goal, Near& near) const {
  const Mechanism& mechanism = model_.mechanism;
  const auto by_name = [&](std::vector<int> joints) {
    std::sort(joints.begin(), joints.end(),
              [&](int a, int b) { return mechanism.description().joints[a].name < mechanism.description().joints[b].name; });
    joints.erase(std::unique(joints.begin(), joints.end()), joints.end());
    return joints;
  };
  if (!near.joints.empty()) {  // without joints that depend on others
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
      } catch (const ModelError&) {  // some kinds of joints cannot be loop joints, and require a hint
      }
      lock.lock();
      tree = trees_.emplace(joints, tree).first->second;
    }
    if (tree) return tree->is_same() ? nullptr : tree;
  }
  return nullptr;
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

// ---- the nearest solution on any branch ----------------------------------------------------------------------------------------------

Positions::Found Positions::nearby(const Request& request, const RowMajor& q) const {
  const Goal& goal = request.goal;
  const auto closing = closure(model_, goal.frames, goal.joints);
  RowMajor start = start_near(model_, request.states, q, request.time);
  set_coordinates(model_.mechanism, goal.joints, goal.coordinates, start);
  Closure::ClosedStates closed = closing->close(request.states, start, request.input(*closing), near_steps);
  closed.q = closing->unwound(std::move(closed.q), start);
  const Flags good = closed.open.array() <= std::min(request.tolerance, tolerances::closed);
  const Flags within = closing->within(request.states, closed.q, 1.0, request.time);
  return {std::move(closed.q), good && within, {}};
}

/// Solve states of one tree from their starts by a few steps, then by more steps, and then one by one from random starts.
Positions::Found Positions::search_in(const PositionModel& model, const Request& request) const {
  RowMajor start = start_near(model, request.states, request.near.q, request.time);
  Request guessed = request;  // guessed joints are fixed in the first attempt
  for (std::size_t i = 0; i < request.near.joints.size(); ++i)
    if (!contains(request.goal.joints, request.near.joints[i]))
      guessed.goal.joints.push_back(request.near.joints[i]), guessed.goal.coordinates.push_back(request.near.coordinates[i]);
  set_coordinates(model.mechanism, guessed.goal.joints, guessed.goal.coordinates, start);
  const int count = request.states.count;
  Found found{RowMajor(count, model.mechanism.tree().nq), Flags::Constant(count, false), {}};
  const auto attempt = [&](const Request& now, const RowMajor& from, bool is_last) {
    const auto closing = closure(model, now.goal.frames, now.goal.joints);
    const auto closed_by = [&](const Request& some, const RowMajor& q, const ClosingSteps& steps) {
      Closure::ClosedStates closed = closing->close(some.states, q, some.input(*closing), steps);
      closed.q = closing->unwound(std::move(closed.q), q);
      return closed;
    };
    const auto is_within = [&](const Request& some, const RowMajor& q) {
      return closing->limited ? closing->within(some.states, q, 1.0, some.time) : Flags(Flags::Constant(some.states.count, true));
    };
    Closure::ClosedStates closed = closed_by(now, from, near_steps);
    Flags good = closed.open.array() <= std::min(now.tolerance, tolerances::closed);
    good = good && is_within(now, closed.q);
    if (const std::vector<int> rows = where(!good); !rows.empty()) {
      const Request rest = now.of(rows);
      const RowMajor starts = rows_of(from, rows);
      const Closure::ClosedStates farther = closed_by(rest, starts, far_steps);
      const Flags accepted = farther.open.array() <= now.tolerance, within = is_within(rest, farther.q);
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const int i = rows[k];
        closed.q.row(i) = farther.q.row(k), closed.open(i) = farther.open(k), good(i) = accepted(k);
        if (now.states.variant.empty() && (now.starts > 0 || now.explains) && !(accepted(k) && within(k))) {
          const ClosingInput input = rest.input(*closing).of({static_cast<int>(k)});
          Search search(*closing, from.row(from.rows() == 1 ? 0 : i), input, now.seed);
          const Closure::Closed best = search.nearest(now.starts, now.tolerance);
          closed.q.row(i) = best.q, closed.open(i) = best.open, good(i) = best.open <= now.tolerance;
          if (now.explains && is_last && !good(i))
            found.why = now.goal.frames.empty() ? search.why_open(best.q) : search.why_out_of_reach(best.q);
        }
      }
    }
    return Found{std::move(closed.q), good, {}};
  };
  const bool guesses = guessed.goal.joints.size() > request.goal.joints.size();
  Found first = attempt(guessed, start, !guesses);
  found.q = std::move(first.q), found.closed = first.closed;
  if (const std::vector<int> rows = where(!found.closed); guesses && !rows.empty()) {
    const Found second = attempt(request.of(rows), rows_of(start, rows), true);
    set_rows(found.q, rows, second.q);
    for (std::size_t k = 0; k < rows.size(); ++k) found.closed(rows[k]) = second.closed(k);
  }
  return found;
}

Positions::Found Positions::nearest(const Request& request) const {
  Request now = request;
  // variants are searched for in their own tree
  const std::shared_ptr<const OtherTree> tree = model_.mechanism.variants() ? nullptr : other_tree(now.goal, now.near);
  if (!tree) return search_in(model_, now);
  const int count = now.states.count;
  Found found{RowMajor(count, model_.mechanism.tree().nq), Flags::Constant(count, false), {}};
  const auto take = [&](const std::vector<int>& rows, const Found& more) {
    set_rows(found.q, rows, more.q);
    for (std::size_t k = 0; k < rows.size(); ++k) found.closed(rows[k]) = more.closed(k);
    found.why = more.why;
  };
  if (now.near.q) found = nearby(now, *now.near.q);
  const auto in_other_tree = [&](const std::vector<int>& joints) {
    std::vector<int> there;
    for (const int j : joints) there.push_back(tree->joint(j));
    return there;
  };
  std::vector<int> fixed_in_tree;
  for (const int j : now.goal.joints)
    if (!model_.mechanism.joints()[j].closes_a_loop) fixed_in_tree.push_back(j);
  const bool is_last = fixed_in_tree.size() < now.goal.joints.size();  // a loop joint is fixed
  if (const std::vector<int> rows = where(!found.closed); !rows.empty()) {
    const Request rest = now.of(rows);
    Request other = rest;
    other.goal.joints = in_other_tree(rest.goal.joints), other.near.joints = in_other_tree(rest.near.joints);
    other.explains = now.explains && is_last;
    if (rest.near.q) other.near.q = tree->convert(rest.states, start_near(model_, rest.states, rest.near.q, {}), rest.time);
    Found in_tree = search_in(tree->model(), other);
    RowMajor start = start_near(model_, rest.states, rest.near.q, rest.time);
    set_coordinates(model_.mechanism, rest.near.joints, rest.near.coordinates, start);
    // without a solution, any configuration that the kernels accept
    const RowMajor back = in_tree.closed.all() ? in_tree.q : [&] {
      RowMajor q = in_tree.q;
      for (const int i : where(!in_tree.closed)) q.row(i) = tree->model().neutral();
      return q;
    }();
    in_tree.q = tree->convert_back(rest.states, back, start, rest.time, *closure(model_, {}, fixed_in_tree));
    // close the loops to rounding in these coordinates, too
    const Found closer = nearby(rest, in_tree.q);
    for (const int i : where(closer.closed && in_tree.closed)) in_tree.q.row(i) = closer.q.row(i);
    take(rows, in_tree);
  }
  if (const std::vector<int> rows = where(!found.closed); !is_last && !rows.empty()) take(rows, search_in(model_, now.of(rows)));
  return found;
}

// ---- on the branch of the start ------------------------------------------------------------------------------------------------------

struct Positions::Continuation {
  std::shared_ptr<const Closure> closing;
  RowMajor q, inputs;  // configurations; inputs at the start, then at the goal, in a row for each state
  Flags on_branch, free, passed, crossed;

  /// Return the reason for which the branch of a state does not reach the goal, if it does not end before.
  std::string reason(int i, bool outside_limits) const {
    if (outside_limits) return "joints leave their limits on it";
    if (crossed(i)) return "a singular position lies on the path, at which branches meet";
    return passed(i) ? "the fixed coordinates of dependent joints contradict it" : "";
  }
};

std::pair<RowMajor, Vector> Positions::free_motions(const States& states, const RowMajor& q, const Times& time) const {
  const Tree& tree = model_.mechanism.tree();
  const int nv = tree.nv;
  if (tree.loops.rows == 0) {
    const Matrix identity = Matrix::Identity(nv, nv);
    return {repeated(Eigen::Map<const RowMajor>(identity.data(), 1, nv * nv), states.count), Vector::Constant(states.count, nv)};
  }
  const auto closing = closure(model_, {}, {});
  const RowMajor scale = closing->scales(states), values = closing->values(q, {});
  const RowMajor numbers = closing->evaluate(Operation::loop_motions, states, {&q, &scale, pointer(time), &values}, nv * nv + 1);
  return {numbers.leftCols(nv * nv), numbers.col(nv * nv)};
}

int Positions::prescribed_motions(const std::vector<int>& joints) const {
  int prescribed = 0;
  for (const int j : joints) prescribed += model_.mechanism.description().joints[j].nv;
  return prescribed;
}

bool Positions::all_lead(const std::vector<int>& joints, const Vector& start, const std::optional<double>& time) const {
  const Tree& tree = model_.mechanism.tree();
  const int prescribed = prescribed_motions(joints),
            certain = std::max(tree.nv - tree.loops.rows, 0);  // so many are free at least
  return prescribed <= certain || !(prescribed > free_motions(States(), row(start), times(time)).second(0));  // also for NaN
}

std::map<std::vector<int>, std::vector<int>> Positions::by_leading_joints(const Request& request, const RowMajor& start) const {
  const Mechanism& mechanism = model_.mechanism;
  const Tree& tree = mechanism.tree();
  const std::vector<int>& all = request.goal.joints;
  const int prescribed = prescribed_motions(all);
  std::map<std::vector<int>, std::vector<int>> groups;
  std::vector<int>& together = groups[all];
  if (prescribed <= std::max(tree.nv - tree.loops.rows, 0)) {
    for (int i = 0; i < request.states.count; ++i) together.push_back(i);
    return groups;
  }
  auto [projectors, counts] = free_motions(request.states, start, request.time);
  std::vector<int> in_tree;
  for (const int j : all)
    if (!mechanism.joints()[j].closes_a_loop) in_tree.push_back(j);
  std::sort(in_tree.begin(), in_tree.end(),
            [&](int a, int b) { return mechanism.description().joints[a].name < mechanism.description().joints[b].name; });
  std::vector<std::pair<int, int>> velocities;
  for (const int j : in_tree)
    velocities.emplace_back(mechanism.joints()[j].iv, mechanism.joints()[j].iv + mechanism.joints()[j].nv);
  for (int i = 0; i < request.states.count; ++i) {
    if (!(prescribed > counts(i))) {  // also for a count of NaN
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
  result.closing = closure(model_, goal.frames, leading);
  const Closure& closing = *result.closing;
  RowMajor q = start, turns = RowMajor::Zero(states.count, tree.nq);
  std::vector<RowMajor> first, last, frames;
  for (std::size_t i = 0; i < goal.joints.size(); ++i) {
    const int j = goal.joints[i];
    if (!contains(leading, j)) continue;
    const JointDescription& joint = mechanism.description().joints[j];
    const bool returns = whole_turns_return(joint) && model_.limits[j].empty();
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
  const auto move = [&](const States& some, const RowMajor& from, const RowMajor& path, int waypoints) {
    const RowMajor scales = closing.scales(some, {}, true);
    RowMajor answer = closing.evaluate(Operation::move_along_branch, some, {&from, &fixed, &scales, &steps, &path},
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

/// Return true if dependent joints have their prescribed coordinates; configurations on a branch are set to these.
Flags Positions::meets_dependent(Continuation& result, const Request& request) const {
  const Goal& goal = request.goal;
  const auto closing = closure(model_, goal.frames, goal.joints);
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
    if (model_.mechanism.joints()[j].closes_a_loop || !whole_turns_return(joint)) continue;
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
    return {where + ": a limit position (dead point), in which " + joined(moving) + " can move while the inputs rest", q};
  return {where + ": no step closes the loops, not even the shortest", q};
}

/// Solve states on the branches of their closed starts, or as the request's `branch` allows instead.
Positions::OnBranch Positions::on_branch(const Request& request, const std::vector<int>& leading, const RowMajor& near,
                                         const RowMajor& start) const {
  const Mechanism& mechanism = model_.mechanism;
  const States& states = request.states;
  const bool only = request.branch == BranchChoice::only;
  Continuation c = continued(request, leading, near, start);
  const Closure& closing = *c.closing;
  if (!request.goal.frames.empty() && !(c.on_branch || c.free).all()) {
    // a path with more prescribed coordinates than freedoms may not exist
    int prescribed = 0;
    for (const int j : request.goal.joints) prescribed += mechanism.description().joints[j].nq;
    for (const FrameKey& key : request.goal.frames) prescribed += key.is_pose ? 6 : 3;
    const Flags too_many = free_motions(states, start, request.time).second.array() < prescribed;
    c.free = c.free || (!c.on_branch && too_many);
  }
  const RowMajor moved = closing.difference(states, near, start);
  for (const int i : where(!c.on_branch))
    if (moved.cols() && !only && moved.row(i).cwiseAbs().maxCoeff() > tolerances::longest_step) c.free(i) = true;
  const auto is_within = [&](const Request& some, const RowMajor& q) {
    return closing.limited ? closing.within(some.states, q, 1.0, some.time) : Flags(Flags::Constant(some.states.count, true));
  };
  Flags outside = c.on_branch && !is_within(request, c.q);
  if (only) outside = false;
  if (outside.any())
    c.free = c.free || (outside && !is_within(request, start));  // for a start outside the limits, they select the branch
  OnBranch result{c.q, std::vector<signed char>(states.count, fine), c.free, {}};
  const std::vector<int> rows = where(!c.free && (!c.on_branch || outside));
  if (rows.empty()) return result;
  Request rest = request.of(rows);
  rest.near = {};
  rest.near.q = rows_of(start, rows);
  const int count = rest.states.count;
  const Found found = only ? Found{RowMajor(count, mechanism.tree().nq), Flags::Constant(count, false), {}} : nearest(rest);
  const Flags within = is_within(rest, found.q);
  for (int k = 0; k < count; ++k) {
    const int i = rows[k];
    if (outside(i) && !(found.closed(k) && within(k))) continue;  // outside of limits, as nothing else is within
    result.q.row(i) = found.q.row(k);
    result.status[i] = found.closed(k) ? other_branch : no_answer;
    if (!request.explains) continue;
    std::string reason = c.reason(i, outside(i));
    Vector last;
    const bool ends = reason.empty();
    if (ends) {
      int passed = 0;
      PathOptions path;
      path.tolerance = request.tolerance;
      std::tie(reason, last) = branch_end(closing, leading, c.inputs.row(i), 2, path, start.row(i), nullptr, passed);
      reason = "it ends" + reason;
    }
    result.reason = reason;
    if (found.closed(k)) continue;
    const std::string text =
        (found.why.empty() ? "" : found.why + "; ") + "the goal is not on the branch of the start: " + reason;
    if (!ends) throw AssemblyError(text);
    throw PathTrackingError(text, start, last);
  }
  return result;
}

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
  if (!all_lead(closing.fixed, start, *input)) return std::nullopt;
  const double steps[3] = {PathOptions().max_step, PathOptions().min_step, tolerances::closed};
  Vector answer(nq + branch_outcome::numbers);
  const double status = closing.functions().evaluate(
      Operation::move_along_branch, {near, closing.fixed_mask.data(), closing.units.data(), steps, input}, answer.data());
  const double outcome = answer(nq), passed = answer(nq + 2), crossings = answer(nq + 3);
  if (status != 0.0 || !answer.allFinite() || outcome < branch_outcome::free || passed < 1.0 || crossings > 0.0)
    return std::nullopt;
  Vector q = answer.head(nq);
  if (outcome >= branch_outcome::followed) q = closing.unwound(q, Vector(start));
  if (closing.limited && !closing.within(q, 0.0, time)) return std::nullopt;
  return q;
}

/// Return the closed starts; a start that all states share is closed once.
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
  std::optional<Found> found;
  if (is_home) {
    const std::lock_guard<std::mutex> lock(mutex_);
    found = closed_home_;
  }
  if (!found) {
    found = nearest(from);
    const std::lock_guard<std::mutex> lock(mutex_);
    if (is_home) closed_home_ = found;
  }
  found->q = repeated(found->q, request.states.count);
  found->closed = Flags::Constant(request.states.count, found->closed(0));
  return *found;
}

std::pair<AssembledStates, std::string> Positions::solve(const Request& request) const {
  const int count = request.states.count;
  const Tree& tree = model_.mechanism.tree();
  AssembledStates result{RowMajor::Constant(count, tree.nq, std::numeric_limits<double>::quiet_NaN()),
                         std::vector<signed char>(count, no_answer)};
  std::string reason;
  const auto take_nearest = [&](const std::vector<int>& rows) {
    if (rows.empty()) return;
    const Found found = nearest(request.of(rows));
    if (request.explains && !found.closed(0)) throw AssemblyError(found.why);
    for (std::size_t k = 0; k < rows.size(); ++k)
      if (found.closed(k)) result.q.row(rows[k]) = found.q.row(k), result.status[rows[k]] = fine;
  };
  const bool has_goal = !request.goal.joints.empty() || !request.goal.frames.empty();
  if (request.branch == BranchChoice::any || !has_goal || (request.goal.frames.empty() && tree.loops.rows == 0)) {
    take_nearest(where(Flags::Constant(count, true)));
    return {result, reason};
  }
  const Found start = closed_start(request);
  Flags free = !start.closed;
  RowMajor guess = start_near(model_, request.states, request.near.q, request.time);
  set_coordinates(model_.mechanism, request.near.joints, request.near.coordinates, guess);
  if (const std::vector<int> begun = where(start.closed); !begun.empty()) {
    const Request tracked = request.of(begun);
    const RowMajor starts = rows_of(start.q, begun), guesses = rows_of(guess, begun);
    for (const auto& [leading, group] : by_leading_joints(tracked, starts)) {
      const OnBranch found = on_branch(tracked.of(group), leading, rows_of(guesses, group), rows_of(starts, group));
      for (std::size_t k = 0; k < group.size(); ++k) {
        const int i = begun[group[k]];
        free(i) = found.free(k);
        if (free(i)) continue;
        result.status[i] = found.status[k];
        if (found.status[k] != no_answer) result.q.row(i) = found.q.row(k);
      }
      reason = found.reason;
    }
  }
  take_nearest(where(free));
  return {result, reason};
}

Assembled Positions::inverse_kinematics(const FrameNumbersByName& frames, const AssemblyStart& near,
                                        const JointNumbersByName& fixed, const AssemblyOptions& options) const {
  check_tolerance(options.tolerance);
  if (options.starts < 0) throw std::invalid_argument("starts must be at least 0; got " + std::to_string(options.starts));
  Request request{{}, goal(frames, fixed, 1), start(near), times(options.time), options.branch};
  request.starts = request.starts_of_start = options.starts, request.seed = options.seed, request.tolerance = options.tolerance;
  request.explains = true;
  const Goal& to = request.goal;
  const bool is_tracked = options.branch != BranchChoice::any &&
                          (!to.frames.empty() || (!to.joints.empty() && model_.mechanism.tree().loops.rows > 0));
  if (is_tracked && options.tolerance == tolerances::closed && model_.mechanism.tree().loops.pfaffian_values == 0 &&
      request.near.q && request.near.joints.empty() && sound_quaternions(model_.mechanism, false, request.near.q->data())) {
    const auto closing = closure(to.frames, to.joints);
    RowMajor coordinates = RowMajor::Zero(1, model_.mechanism.tree().nq);
    set_coordinates(model_.mechanism, to.joints, to.coordinates, coordinates);
    Vector input(1 + coordinates.size() + closing->numbers);
    input << options.time.value_or(0.0), coordinates.transpose(), request.input(*closing).targets.transpose();
    if (std::optional<Vector> q = quick_solution(*closing, request.near.q->data(), input.data())) return {*q, false, {}};
  }
  const auto [solved, reason] = solve(request);
  return {solved.q.row(0), solved.status[0] == other_branch, reason};
}

AssembledStates Positions::solve_many(const FrameNumbersByName& frames, const AssemblyStarts& near,
                                      const JointNumbersByName& fixed, const BatchOptions& options) const {
  check_tolerance(options.tolerance);
  const int count = options.states.count;
  Request request{options.states, goal(frames, fixed, count), {}, options.time, options.branch};
  request.near.q = near.q;
  Goal guess = goal({}, near.joints, count);
  request.near.joints = std::move(guess.joints), request.near.coordinates = std::move(guess.coordinates);
  request.seed = options.seed, request.tolerance = options.tolerance;
  request.starts = options.starts.value_or(0), request.starts_of_start = options.starts.value_or(request.starts_of_start);
  Flags sound = Flags::Constant(count, true);
  const auto exclude = [&](const RowMajor& x, const auto& is_sound) {
    for (int i = 0; i < count; ++i) sound(i) = sound(i) && is_sound(x.row(x.rows() == 1 ? 0 : i));
  };
  for (const RowMajor& x : request.goal.targets) exclude(x, [](const auto& row) { return row.allFinite(); });
  if (near.q)
    exclude(*near.q, [&](const auto& row) { return row.allFinite() && sound_quaternions(model_.mechanism, true, row.data()); });
  const std::vector<int> rows = where(sound);
  if (static_cast<int>(rows.size()) == count) return solve(request).first;
  AssembledStates result{RowMajor::Constant(count, model_.mechanism.tree().nq, std::numeric_limits<double>::quiet_NaN()),
                         std::vector<signed char>(count, invalid_state)};
  if (rows.empty()) return result;
  const AssembledStates some = solve(request.of(rows)).first;
  set_rows(result.q, rows, some.q);
  for (std::size_t k = 0; k < rows.size(); ++k) result.status[rows[k]] = some.status[k];
  return result;
}

// ---- assembly modes, paths -----------------------------------------------------------------------------------------------------------

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
  const auto closing = closure(model, {}, joints);
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
  const auto back = closure(model_, {}, [&] {
    std::vector<int> in_tree;
    for (const int j : request.joints)
      if (!model_.mechanism.joints()[j].closes_a_loop) in_tree.push_back(j);
    return in_tree;
  }());
  const RowMajor home = start_near(model_, one, {}, times(time));
  for (Vector& q : modes) q = tree->convert_back(one, row(q), home, times(time), *back).row(0);
  return modes;
}

Positions::Waypoints Positions::waypoints(const PathInputs& inputs) const {
  const Mechanism& mechanism = model_.mechanism;
  std::size_t n = inputs.times.size();
  const auto take = [&](const std::string& name, const std::vector<double>& numbers, std::size_t size) {
    if (size == 0 && numbers.empty()) return;  // of a joint without coordinates
    const std::size_t count = size ? numbers.size() / size : 0;
    if (count == 0 || numbers.size() % size != 0 || (n && count != n))
      throw std::invalid_argument("inputs need equally many values, at least one; '" + name + "' has " +
                                  std::to_string(numbers.size()));
    n = count;
  };
  for (const auto& [name, numbers] : inputs.joints)
    take(name, numbers, mechanism.description().joints[joint_by_name(mechanism, name)].nq);
  if (!n && !inputs.frames.empty()) throw std::invalid_argument("paths of frames alone need times, which count them");
  for (const auto& [name, numbers] : inputs.frames)
    if (numbers.size() != 3 * n && numbers.size() != 12 * n)
      throw std::invalid_argument("path of frame '" + name + "': expected 12 numbers or 3 of each of " + std::to_string(n) +
                                  " inputs");
  const int count = static_cast<int>(n);
  Goal all = goal(inputs.frames, inputs.joints, count);
  if (!std::all_of(all.targets.begin(), all.targets.end(), [](const RowMajor& x) { return x.allFinite(); }))
    throw std::invalid_argument("paths of frames must be finite");
  const auto closing = closure(model_, all.frames, all.joints);
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
  for (std::size_t i = 0; i < path.first.frames.size(); ++i)
    frames.emplace_back(path.first.frames[i].frame, numbers_of(path.first.targets[i], states.count));
  BatchOptions assembly;
  assembly.tolerance = options.tolerance, assembly.states = states;
  assembly.time = times(inputs.times.empty() ? 0.0 : inputs.times[0]);
  const AssembledStates first = solve_many(frames, near, joints, assembly);
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
                            const std::optional<double>& time) const {
  const Mechanism& mechanism = model_.mechanism;
  const int nv = mechanism.tree().nv;
  if (q.size() != mechanism.tree().nq || (v && v->size() != nv) || !q.allFinite() || (v && !v->allFinite()))
    throw std::invalid_argument("q and v must be a finite state of " + std::to_string(mechanism.tree().nq) + " and " +
                                std::to_string(nv) + " numbers");
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
    if ((numbers.size() != 3 && numbers.size() != 6) || !vector(numbers).allFinite())
      throw std::invalid_argument(std::string(quantity) + " of frame '" + name +
                                  "' must be 6 finite numbers, [angular; linear], or 3 for its origin");
    keys.push_back({name, numbers.size() == 6}), of_frames.push_back(vector(numbers));
  }
  const auto closing = closure(model_, keys, given);
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
    throw NoAnswer(std::string("the loops do not allow these ") + quantity + ": status " +
                   std::to_string(static_cast<int>(status)));
  return out;
}

}  // namespace sarrus
