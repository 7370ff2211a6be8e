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

/// Coordinates with a unit quaternion; NoAnswer if they are not finite, or the quaternion is zero.
Vector checked_coordinates(const JointDescription& joint, const std::vector<double>& numbers, const char* quantity, int count) {
  const auto of = [&] { return std::string(quantity) + " of joint '" + joint.name + "'"; };
  if (static_cast<int>(numbers.size()) != count)
    throw std::invalid_argument("joint '" + joint.name + "' takes " + std::to_string(count) + " " + quantity + "; got " +
                                std::to_string(numbers.size()));
  Vector x = vector(numbers);
  if (!x.allFinite()) throw NoAnswer(of() + " must be finite");
  if (count == 7 || count == 4)
    if (has_quaternion(joint.kind) && joint.nq == count) {
      const double size = x.head(4).norm();
      if (!(size > 0.0))
        throw NoAnswer("quaternion of joint '" + joint.name + "': is not a rotation; expected a nonzero quaternion");
      x.head(4) /= size;
    }
  return x;
}

/// Set the coordinates of the joints among these that are in the tree.
void set_coordinates(const Mechanism& mechanism, const std::vector<int>& joints, const std::vector<Vector>& coordinates,
                     Vector& q) {
  for (std::size_t i = 0; i < joints.size(); ++i)
    if (const auto& joint = mechanism.joints()[joints[i]]; !joint.closes_a_loop)
      q.segment(joint.iq, coordinates[i].size()) = coordinates[i];
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

Vector start_near(const PositionModel& model, const std::optional<Vector>& q, const std::optional<double>& time) {
  const Mechanism& mechanism = model.mechanism;
  Vector start = q ? *q : model.home ? *model.home : model.neutral();
  if (q) StateFunctions(mechanism, model.kernels).evaluate(Operation::normalize, {q->data()}, start.data());
  for (const ConstraintDescription& c : mechanism.description().constraints) {  // may be far from the home at this time
    const Coupler* coupler = std::get_if<Coupler>(&c.kind);
    if (!coupler || !coupler->law || coupler->coefficients != std::vector<std::vector<double>>{{1.0}}) continue;
    double value[3];
    evaluate(*coupler->law, time.value_or(0.0), value);
    for (std::size_t j = 0; j < mechanism.joints().size(); ++j)
      if (mechanism.description().joints[j].name == c.coordinates[0].joint)
        start(mechanism.joints()[j].iq + c.coordinates[0].index) = coupler->offset + value[0];
  }
  return start;
}

// ---- requests ------------------------------------------------------------------------------------------------------------------------

Positions::Goal Positions::goal(const FrameNumbersByName& frames, const JointNumbersByName& joints) const {
  const Mechanism& mechanism = model_.mechanism;
  Goal goal;
  for (const auto& [name, numbers] : joints) {
    goal.joints.push_back(joint_by_name(mechanism, name));
    const JointDescription& joint = mechanism.description().joints[goal.joints.back()];
    goal.coordinates.push_back(checked_coordinates(joint, numbers, "coordinates", joint.nq));
  }
  for (const auto& [name, numbers] : frames) {
    check_movable(mechanism, name);
    if ((numbers.size() != 3 && numbers.size() != 12) || !vector(numbers).allFinite())
      throw std::invalid_argument("the target of frame '" + name +
                                  "' must be 12 finite numbers, the rows of [R p], or a point of 3");
    goal.frames.push_back({name, numbers.size() == 12}), goal.targets.push_back(vector(numbers));
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
    start.q = near.q;
  }
  Goal guess = goal({}, near.joints);
  start.joints = std::move(guess.joints), start.coordinates = std::move(guess.coordinates);
  return start;
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

Vector Positions::coordinates_now(int joint, const Vector& q, const std::optional<double>& time) const {
  const Mechanism& mechanism = model_.mechanism;
  const Mechanism::PlacedJoint& at = mechanism.joints()[joint];
  if (!at.closes_a_loop) return q.segment(at.iq, at.nq);
  return loop_coordinates(model_, q, time)
      .segment(mechanism.tree().loop_motion[at.constraint].iq, mechanism.description().joints[joint].nq);
}

Vector Positions::frame_now(const FrameKey& key, const Vector& q) const {
  double pose[16];
  StateFunctions(model_.mechanism, model_.kernels)
      .evaluate(Operation::pose, {q.data()}, pose, placed(model_.mechanism, key.frame));
  Vector x(key.numbers());
  for (int k = 0; k < key.numbers(); ++k) x(k) = key.is_pose ? pose[k] : pose[4 * k + 3];
  return x;
}

// ---- the nearest solution on any branch ----------------------------------------------------------------------------------------------

Positions::Found Positions::nearby(const Goal& goal, const Vector& q, const AssemblyOptions& options) const {
  const auto closing = closure(model_, goal.frames, goal.joints);
  Vector start = start_near(model_, q, options.time);
  set_coordinates(model_.mechanism, goal.joints, goal.coordinates, start);
  const ClosingInput input{options.time, closing->targets(goal.targets, goal.coordinates)};
  Closure::Closed closed = closing->close(start, input, near_steps);
  closed.q = closing->unwound(closed.q, start);
  const bool good =
      closed.open <= std::min(options.tolerance, tolerances::closed) && closing->within(closed.q, 1.0, options.time);
  return {closed.q, good, {}};
}

Positions::Found Positions::search_in(const PositionModel& model, const Goal& goal, const Near& near,
                                      const AssemblyOptions& options) const {
  Vector start = start_near(model, near.q, options.time);
  Goal guessed = goal;  // guessed joints are fixed in the first attempt
  for (std::size_t i = 0; i < near.joints.size(); ++i)
    if (!contains(goal.joints, near.joints[i]))
      guessed.joints.push_back(near.joints[i]), guessed.coordinates.push_back(near.coordinates[i]);
  set_coordinates(model.mechanism, guessed.joints, guessed.coordinates, start);
  Found found;
  for (const Goal* attempt : {static_cast<const Goal*>(&guessed), &goal}) {
    if (attempt == &goal && guessed.joints.size() == goal.joints.size()) break;
    const auto closing = closure(model, attempt->frames, attempt->joints);
    Search search(*closing, start, {options.time, closing->targets(attempt->targets, attempt->coordinates)}, options.seed);
    const Closure::Closed closed = search.nearest(options.starts, options.tolerance);
    found = {closed.q, closed.open <= options.tolerance, {}};
    if (found.closed) break;
    if (attempt == &goal || guessed.joints.size() == goal.joints.size())
      found.why = goal.frames.empty() ? search.why_open(closed.q) : search.why_out_of_reach(closed.q);
  }
  return found;
}

Positions::Found Positions::nearest(const Goal& goal, const Near& given, const AssemblyOptions& options) const {
  Near near = given;
  const std::shared_ptr<const OtherTree> tree = other_tree(goal, near);
  if (!tree) return search_in(model_, goal, near, options);
  if (near.q)
    if (Found found = nearby(goal, *near.q, options); found.closed) return found;
  const auto in_other_tree = [&](const std::vector<int>& joints) {
    std::vector<int> there;
    for (const int j : joints) there.push_back(tree->joint(j));
    return there;
  };
  Goal other_goal = goal;
  Near other_near = near;
  other_goal.joints = in_other_tree(goal.joints), other_near.joints = in_other_tree(near.joints);
  if (near.q) other_near.q = tree->convert(start_near(model_, near.q, {}), options.time);
  Found found = search_in(tree->model(), other_goal, other_near, options);
  std::vector<int> fixed_in_tree;
  for (const int j : goal.joints)
    if (!model_.mechanism.joints()[j].closes_a_loop) fixed_in_tree.push_back(j);
  if (found.closed) {
    Vector start = start_near(model_, near.q, options.time);
    set_coordinates(model_.mechanism, near.joints, near.coordinates, start);
    found.q = tree->convert_back(found.q, start, options.time, *closure(model_, {}, fixed_in_tree));
    // close the loops to rounding in these coordinates, too
    if (const Found closer = nearby(goal, found.q, options); closer.closed) found.q = closer.q;
    return found;
  }
  if (fixed_in_tree.size() < goal.joints.size()) return found;  // a loop joint is fixed
  return search_in(model_, goal, near, options);
}

// ---- on the branch of the start ------------------------------------------------------------------------------------------------------

struct Positions::Continuation {
  std::shared_ptr<const Closure> closing;
  std::vector<int> joints;  // fixed joints that determine the motion
  Vector q, inputs;  // configuration; inputs at the start and at the goal
  bool on_branch, free, passed, crossed;

  /// Return the reason for which the branch does not reach the goal, if it does not end before.
  std::string reason(bool outside_limits) const {
    if (outside_limits) return "joints exceed their limits on the branch";
    if (crossed) return "the branch passes a singular position, at which branches meet";
    return passed ? "the fixed coordinates of dependent joints do not lie on the branch" : "";
  }
};

std::pair<Vector, double> Positions::free_motions(const Vector& q, const std::optional<double>& time) const {
  const Tree& tree = model_.mechanism.tree();
  const int nv = tree.nv;
  if (tree.loops.rows == 0) {
    const Matrix identity = Matrix::Identity(nv, nv);
    return {Eigen::Map<const Vector>(identity.data(), nv * nv), nv};
  }
  const auto closing = closure(model_, {}, {});
  const Vector scale = closing->scale(), values = closing->values(q, {});
  Vector numbers(nv * nv + 1);
  closing->functions().evaluate(Operation::loop_motions, {q.data(), scale.data(), pointer(time), values.data()}, numbers.data());
  return {numbers.head(nv * nv), numbers(nv * nv)};
}

bool Positions::all_lead(const std::vector<int>& joints, const Vector& start, const std::optional<double>& time) const {
  const Tree& tree = model_.mechanism.tree();
  int prescribed = 0;
  for (const int j : joints) prescribed += model_.mechanism.description().joints[j].nv;
  const int certain = std::max(tree.nv - tree.loops.rows, 0);  // so many are free at least
  return prescribed <= certain || !(prescribed > free_motions(start, time).second);  // also for a count of NaN
}

std::vector<int> Positions::leading(const Vector& start, const Goal& goal, const std::optional<double>& time) const {
  const Mechanism& mechanism = model_.mechanism;
  const Tree& tree = mechanism.tree();
  if (all_lead(goal.joints, start, time)) return goal.joints;
  Vector projector = free_motions(start, time).first;
  std::vector<int> in_tree;
  for (const int j : goal.joints)
    if (!mechanism.joints()[j].closes_a_loop) in_tree.push_back(j);
  std::sort(in_tree.begin(), in_tree.end(),
            [&](int a, int b) { return mechanism.description().joints[a].name < mechanism.description().joints[b].name; });
  std::vector<std::pair<int, int>> groups;
  for (const int j : in_tree) groups.emplace_back(mechanism.joints()[j].iv, mechanism.joints()[j].iv + mechanism.joints()[j].nv);
  const std::vector<bool> leads = determining_groups(tree.nv, projector.data(), groups);
  std::vector<int> joints;
  for (const int j : goal.joints) {
    const auto at = std::find(in_tree.begin(), in_tree.end(), j);
    if (at == in_tree.end() || leads[at - in_tree.begin()]) joints.push_back(j);
  }
  return joints;
}

Positions::Continuation Positions::continued(const Goal& goal, const Vector& near, const Vector& start,
                                             const AssemblyOptions& options) const {
  const Mechanism& mechanism = model_.mechanism;
  const Tree& tree = mechanism.tree();
  Continuation result;
  result.joints = goal.joints.empty() ? goal.joints : leading(start, goal, options.time);
  result.closing = closure(model_, goal.frames, result.joints);
  const Closure& closing = *result.closing;
  Vector q = start, turns = Vector::Zero(tree.nq);
  std::vector<Vector> first, last, frames;
  for (std::size_t i = 0; i < goal.joints.size(); ++i) {
    const int j = goal.joints[i];
    if (!contains(result.joints, j)) continue;
    const JointDescription& joint = mechanism.description().joints[j];
    const bool returns = whole_turns_return(joint) && model_.limits[j].empty();
    Vector removed = Vector::Zero(joint.nq);
    first.push_back(coordinates_now(j, start, options.time));
    for (int k = 0; k < joint.nq; ++k)
      if (returns && coordinate_unit(joint, k) == 'r')
        removed(k) = full_turn * std::nearbyint((goal.coordinates[i](k) - first.back()(k)) / full_turn);
    last.push_back(goal.coordinates[i] - removed);
    if (const auto& at = mechanism.joints()[j]; !at.closes_a_loop)
      q.segment(at.iq, at.nq) = last.back(), turns.segment(at.iq, at.nq) = removed;
  }
  for (const FrameKey& key : goal.frames) frames.push_back(frame_now(key, start));
  const int count = 1 + tree.nq + closing.mechanism().tree().loops.pfaffian_values;
  const auto input = [&](const std::vector<Vector>& of_frames, const std::vector<Vector>& coordinates) {
    Vector row = Vector::Zero(count);
    row(0) = options.time.value_or(0.0), row.segment(1, tree.nq) = q;
    row.tail(closing.numbers) = closing.targets(of_frames, coordinates);
    return row;
  };
  result.inputs.resize(2 * count);
  result.inputs << input(frames, first), input(goal.targets, last);

  const double steps[3] = {PathOptions().max_step, PathOptions().min_step, options.tolerance};
  Vector answer(tree.nq + branch_outcome::numbers);
  const auto move = [&](const double* path, int waypoints) {
    const double status = closing.functions().evaluate(
        Operation::move_along_branch, {start.data(), closing.fixed_mask.data(), closing.units.data(), steps, path}, answer.data(),
        {}, waypoints);
    if (status != 0.0 || !answer.allFinite()) answer.tail(branch_outcome::numbers) << branch_outcome::free, 0.0, 0.0, 0.0;
  };
  move(result.inputs.data() + count, 1);
  if (answer(tree.nq) == branch_outcome::doubtful) move(result.inputs.data(), 2);
  const double outcome = answer(tree.nq), passed = answer(tree.nq + 2), crossings = answer(tree.nq + 3);
  result.crossed = outcome == branch_outcome::followed && crossings > 0.0;
  result.passed = passed >= passed_end;
  result.on_branch = outcome >= branch_outcome::jumped && result.passed && !result.crossed;
  result.free = outcome == branch_outcome::free || outcome == branch_outcome::off_loops;
  result.q = answer.head(tree.nq);
  if (result.on_branch) result.q = closing.unwound(result.q, near) + turns;
  if (result.joints.size() < goal.joints.size() && result.on_branch) result.on_branch = meets_dependent(result, goal, options);
  return result;
}

/// Return true if dependent joints have their prescribed coordinates; the result is set to these.
bool Positions::meets_dependent(Continuation& result, const Goal& goal, const AssemblyOptions& options) const {
  const auto closing = closure(model_, goal.frames, goal.joints);
  Vector start = result.q;
  set_coordinates(model_.mechanism, goal.joints, goal.coordinates, start);
  const ClosingInput input{options.time, closing->targets(goal.targets, goal.coordinates)};
  Closure::Closed closed = closing->close(start, input, steps_of_single_attempt);
  if (!(closed.open <= std::min(options.tolerance, tolerances::closed))) closed = closing->close(start, input, far_steps);
  if (!(closed.open <= options.tolerance)) return false;
  const Vector q = closing->unwound(closed.q, start);
  Vector deviation = q - result.q;
  for (const int j : goal.joints) {
    const JointDescription& joint = model_.mechanism.description().joints[j];
    if (model_.mechanism.joints()[j].closes_a_loop || !whole_turns_return(joint)) continue;
    for (int k = 0; k < joint.nq; ++k)
      if (double& x = deviation(model_.mechanism.joints()[j].iq + k); coordinate_unit(joint, k) == 'r')
        x -= full_turn * std::nearbyint(x / full_turn);
  }
  const Vector largest = same_coordinates * closing->coordinate_scale;
  if (!(deviation.cwiseAbs().array() < largest.array()).all()) return false;
  result.q = q;
  return true;
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
  const ClosingInput input{time, inputs.segment(k * numbers + numbers - closing.numbers, closing.numbers)};
  const Vector before = path ? Vector(path->row(k)) : start;
  const Vector regular = singular_values(closing.jacobian(before, input));
  const int rank = regular.size() ? count_above(regular, small * regular(0)) : 0;

  std::vector<std::string> reached;
  for (const int j : joints)
    reached.push_back(model_.mechanism.description().joints[j].name + " = " + numbers_of(coordinates_now(j, q, time)));
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

/// Return the solution on the branch of the start, or what `branch` allows instead; nothing if the start selects no branch.
std::optional<Assembled> Positions::on_branch(const Goal& goal, const Vector& near, const Vector& start,
                                              const AssemblyOptions& options) const {
  const Mechanism& mechanism = model_.mechanism;
  const bool only = options.branch == BranchChoice::only;
  Continuation result = continued(goal, near, start, options);
  const Closure& closing = *result.closing;
  if (!goal.frames.empty() && !result.on_branch &&
      !result.free) {  // a path with more prescribed coordinates than freedoms may not exist
    int prescribed = 0;
    for (const int j : goal.joints) prescribed += mechanism.description().joints[j].nq;
    for (const FrameKey& key : goal.frames) prescribed += key.is_pose ? 6 : 3;
    result.free = prescribed > free_motions(start, options.time).second;
  }
  const Vector moved = closing.difference(near, start);
  const bool far = moved.size() && moved.cwiseAbs().maxCoeff() > tolerances::longest_step;
  result.free = result.free || (!result.on_branch && far && !only);
  const auto is_within = [&](const Vector& q) { return !closing.limited || closing.within(q, 1.0, options.time); };
  bool outside = result.on_branch && !only && !is_within(result.q);
  result.free = result.free || (outside && !is_within(start));  // for a start outside the limits, the limits select the branch
  if (result.free) return std::nullopt;
  if (result.on_branch && !outside) return Assembled{result.q, false, {}};
  Near origin;
  origin.q = start;
  const Found found = only ? Found{{}, false, {}} : nearest(goal, origin, options);
  const bool accepted = !only && (!result.on_branch || (found.closed && is_within(found.q)));
  if (outside && !accepted) return Assembled{result.q, false, {}};  // outside of limits, as nothing else is within
  std::string reason = result.reason(outside);
  Vector last;
  bool ends = false;
  if (reason.empty()) {
    int passed = 0;
    PathOptions path;
    path.tolerance = options.tolerance;
    std::tie(reason, last) = branch_end(closing, result.joints, result.inputs, 2, path, start, nullptr, passed);
    reason = "the branch ends" + reason, ends = true;
  }
  if (found.closed) return Assembled{found.q, true, reason};
  const std::string text =
      (found.why.empty() ? "" : found.why + "; ") + "the target is not on the branch of the initial configuration: " + reason;
  if (!ends) throw AssemblyError(text);
  throw PathTrackingError(text, start.transpose(), last);
}

std::optional<Vector> Positions::quick_solution(const Closure& closing, const double* near, const double* input) const {
  const Tree& tree = closing.mechanism().tree();
  const int nq = tree.nq;
  const Eigen::Map<const Vector> start(near, nq);
  if (closing.fixed.empty() && closing.frames.empty()) {
    const Closure::Closed closed = closing.close(start, {*input, {}}, near_steps);
    const bool good = closed.open <= tolerances::closed && (!closing.limited || closing.within(closed.q, 0.0, *input));
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
  if (outcome >= branch_outcome::followed) q = closing.unwound(q, start);
  if (closing.limited && !closing.within(q, 0.0, *input)) return std::nullopt;
  return q;
}

/// Return the closed start.
Positions::Found Positions::closed_start(const Near& near, const AssemblyOptions& options) const {
  const AssemblyOptions usual;
  const bool is_home = !near.q && near.joints.empty() && options.tolerance == usual.tolerance && !options.time &&
                       options.starts == usual.starts && options.seed == usual.seed;
  if (is_home) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_home_) return *closed_home_;
  }
  Found found = nearest({}, near, options);
  if (is_home) {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_home_ = found;
  }
  return found;
}

Assembled Positions::inverse_kinematics(const FrameNumbersByName& frames, const AssemblyStart& near,
                                        const JointNumbersByName& fixed, const AssemblyOptions& options) const {
  check_tolerance(options.tolerance);
  if (options.starts < 0) throw std::invalid_argument("starts must be at least 0; got " + std::to_string(options.starts));
  const Goal request = goal(frames, fixed);
  const Near from = start(near);
  const auto nearest_of_all = [&] {
    Found found = nearest(request, from, options);
    if (!found.closed) throw AssemblyError(found.why);
    return Assembled{found.q, false, {}};
  };
  const bool has_goal = !request.joints.empty() || !request.frames.empty();
  if (options.branch == BranchChoice::any || !has_goal) return nearest_of_all();
  if (request.frames.empty() && model_.mechanism.tree().loops.rows == 0) return nearest_of_all();
  if (options.tolerance == tolerances::closed && model_.mechanism.tree().loops.pfaffian_values == 0 && from.q &&
      from.joints.empty() && sound_quaternions(model_.mechanism, false, from.q->data())) {
    const auto closing = closure(request.frames, request.joints);
    const int nq = model_.mechanism.tree().nq;
    Vector input = Vector::Zero(1 + nq + closing->numbers), fixed = Vector::Zero(nq);
    set_coordinates(model_.mechanism, request.joints, request.coordinates, fixed);
    input << options.time.value_or(0.0), fixed, closing->targets(request.targets, request.coordinates);
    if (std::optional<Vector> q = quick_solution(*closing, from.q->data(), input.data())) return {*q, false, {}};
  }
  const Found start = closed_start(from, options);
  if (!start.closed) return nearest_of_all();
  Vector guess = start_near(model_, from.q, options.time);
  set_coordinates(model_.mechanism, from.joints, from.coordinates, guess);
  if (std::optional<Assembled> found = on_branch(request, guess, start.q, options)) return *found;
  return nearest_of_all();
}

// ---- assembly modes, paths -----------------------------------------------------------------------------------------------------------

std::vector<Vector> Positions::assembly_modes(const JointNumbersByName& fixed, const std::optional<double>& time, int attempts,
                                              std::uint64_t seed, double tolerance) const {
  check_tolerance(tolerance);
  if (attempts < 1) throw std::invalid_argument("attempts must be at least 1; got " + std::to_string(attempts));
  const Goal request = goal({}, fixed);
  Near none;
  const std::shared_ptr<const OtherTree> tree = other_tree(request, none);
  const PositionModel& model = tree ? tree->model() : model_;
  std::vector<int> joints = request.joints;
  if (tree)
    for (int& j : joints) j = tree->joint(j);
  const auto closing = closure(model, {}, joints);
  Vector start = start_near(model, {}, time);
  set_coordinates(model.mechanism, joints, request.coordinates, start);
  Search search(*closing, start, {time, closing->targets({}, request.coordinates)}, seed);
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
  for (Vector& q : modes) q = tree->convert_back(q, start_near(model_, {}, time), time, *back);
  return modes;
}

RowMajor Positions::follow(const PathInputs& inputs, const AssemblyStart& near, const PathOptions& options) const {
  check_steps(options);
  const Mechanism& mechanism = model_.mechanism;
  std::size_t n = inputs.times.size();
  const auto take = [&](const std::string& name, const std::vector<double>& numbers, std::size_t size) {
    if (size == 0 && numbers.empty()) return;  // of a joint without coordinates
    const std::size_t count = size ? numbers.size() / size : 0;
    if (count == 0 || numbers.size() % size != 0 || (n && count != n))
      throw std::invalid_argument("all inputs need the same number of values, at least one; '" + name + "' has " +
                                  std::to_string(numbers.size()));
    n = count;
  };
  for (const auto& [name, numbers] : inputs.joints)
    take(name, numbers, mechanism.description().joints[joint_by_name(mechanism, name)].nq);
  if (!n && !inputs.frames.empty())
    throw std::invalid_argument("paths of frames without joints need times, which determine the number of inputs");
  for (const auto& [name, numbers] : inputs.frames)
    if (numbers.size() != 3 * n && numbers.size() != 12 * n)
      throw std::invalid_argument("path of frame '" + name + "': expected 12 or 3 numbers for each of " + std::to_string(n) +
                                  " inputs");
  const auto at_input = [&](const JointNumbersByName& all, std::size_t k) {
    JointNumbersByName input;
    for (const auto& [name, numbers] : all) {
      const std::size_t size = numbers.size() / n;
      input.emplace_back(name, std::vector<double>(numbers.begin() + k * size, numbers.begin() + (k + 1) * size));
    }
    return input;
  };
  const Goal first = goal(at_input(inputs.frames, 0), at_input(inputs.joints, 0));
  AssemblyOptions assembly;
  assembly.time = inputs.times.empty() ? 0.0 : inputs.times[0], assembly.tolerance = options.tolerance;
  const Vector q = inverse_kinematics(at_input(inputs.frames, 0), near, at_input(inputs.joints, 0), assembly).q;
  const auto closing = closure(model_, first.frames, first.joints);
  const Tree& tree = closing->mechanism().tree();
  const int size = 1 + tree.nq + tree.loops.pfaffian_values, count = static_cast<int>(n);
  Vector waypoints = Vector::Zero(count * size);
  for (std::size_t k = 0; k < n; ++k) {
    const Goal input = goal(at_input(inputs.frames, k), at_input(inputs.joints, k));
    Vector row = Vector::Zero(size), fixed = model_.neutral();
    set_coordinates(mechanism, input.joints, input.coordinates, fixed);
    row(0) = inputs.times.empty() ? 0.0 : inputs.times[k], row.segment(1, tree.nq) = fixed;
    row.tail(closing->numbers) = closing->targets(input.targets, input.coordinates);
    waypoints.segment(k * size, size) = row;
  }
  const double steps[3] = {options.max_step, options.min_step, options.tolerance};
  RowMajor path(count, tree.nq);
  closing->functions().evaluate(Operation::branch,
                                {q.data(), closing->fixed_mask.data(), closing->units.data(), steps, waypoints.data()},
                                path.data(), {}, count);
  if (path.allFinite()) return path;
  int k = 0;
  const auto [why, last] = branch_end(*closing, first.joints, waypoints, count, options, q, &path, k);
  throw PathTrackingError("the branch ends between inputs " + std::to_string(k) + " and " + std::to_string(k + 1) + why,
                          path.topRows(k + 1), last);
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
    rates.push_back(checked_coordinates(joint, numbers, quantity, joint.nv));
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
  const Vector values = closing->values(q, Vector::Zero(closing->numbers));
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
