#include "loosening.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "../joints/closing.hpp"
#include "../loops/tolerances.hpp"
#include "../mechanism/mechanism.hpp"
#include "../model/text.hpp"
#include "positions.hpp"

namespace sarrus {
namespace {

using model::JointType;

// a joint with fewer rows is accepted only if the smallest singular value above the tolerance remains at least this fraction of its initial value
constexpr double kept_fraction = 0.1;
// number of samples of the motion, and their distance [rad, mean sizes of the bodies]
constexpr int samples = 6;
constexpr double away = 0.4;
// a row that is redundant in a singular position only is violated at the distance d from it, by at least about this factor times d squared
constexpr double curved = 0.1;

std::string two_digits(double x, const char* form = "%.2g") {
  char text[32];
  std::snprintf(text, sizeof text, form, x);
  return text;
}

constexpr std::vector<double> JointType::* forces[] = {&JointType::damping,
                                                       &JointType::friction,
                                                       &JointType::armature,
                                                       &JointType::stiffness,
                                                       &JointType::rest,
                                                       &JointType::quadratic_stiffness,
                                                       &JointType::cubic_stiffness,
                                                       &JointType::quadratic_damping,
                                                       &JointType::cubic_damping};
bool has_forces(const JointType& joint) {
  return std::any_of(std::begin(forces), std::end(forces), [&](auto force) {
    return std::any_of((joint.*force).begin(), (joint.*force).end(), [](double x) { return x != 0.0; });
  });
}
/// Return true if some velocity of a joint is not the rate of a coordinate, as those of gimbals are.
bool has_own_velocities(JointKind kind) {
  return visit_every(kind, 0, [](auto type) {
    for (std::size_t k = 0; k < type.velocities.size(); ++k)
      if (!type.is_rate(static_cast<int>(k))) return true;
    return false;
  });
}

/// Return the kind of joint with exactly these free directions (bits, at least two); none if only a gimbal has these directions.
std::optional<JointKind> kind_with(int free) {
  const bool several = (free & (free - 1)) != 0;
  for (const JointKind kind : joint_kinds)
    if (several && free_components(kind) == free) return kind;
  return {};
}

/// Return the reason why a joint cannot be replaced, or an empty string if it can.
std::string reason_to_stay(const model::Joint& joint) {
  if (!joint.laws.empty()) return "it follows time functions";
  if (joint.actuated) return "it has a motor";
  if (free_components(joint.joint.kind) < 0)
    return std::string("no less restrictive joint type exists for ") + joint.joint.name();
  if (has_own_velocities(joint.joint.kind) && has_forces(joint.joint))
    return "no joint with fewer constraint rows has its velocities, on which its damping, friction or spring acts";
  return {};
}

/// Return the joint type with these free directions (bits), z along the axis of `joint`, with its springs, friction and limits.
JointType looser_type(const JointType& joint, int free) {
  JointType looser;
  looser.kind = JointKind::gimbal, looser.constants.free = free;
  const int before = free_components(joint.kind);
  const auto spread = [&](const std::vector<double>& numbers, double rest) {
    std::vector<double> all;
    std::size_t next = 0;
    for (int k = 0; k < 6; ++k)
      if (free >> k & 1) all.push_back(before >> k & 1 ? numbers[next++] : rest);
    return all;
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool keeps = !has_own_velocities(joint.kind);
  for (const auto force : forces) looser.*force = keeps ? spread(joint.*force, 0.0) : std::vector<double>(looser.nv());
  if (keeps && joint.velocity_limit) looser.velocity_limit = spread(*joint.velocity_limit, infinity);
  if (keeps && joint.effort_limit) looser.effort_limit = spread(*joint.effort_limit, infinity);
  if (keeps && joint.limits) looser.limits = {spread(joint.limits->first, -infinity), spread(joint.limits->second, infinity)};
  const bool plain = !has_forces(looser) && !looser.velocity_limit && !looser.effort_limit && !looser.limits;
  if (const std::optional<JointKind> kind = kind_with(free); kind && (plain || !has_own_velocities(*kind)))
    looser.kind = *kind, looser.constants = JointConstants();
  return looser;
}

/// A mechanism with some joints replaced or omitted; `origin` is the index of each joint in the description.
struct Candidate {
  std::vector<model::Joint> joints;
  std::vector<std::size_t> origin;
  std::shared_ptr<const Mechanism> mechanism;

  Candidate(std::vector<model::Joint> all, std::vector<std::size_t> origins, Description d)
      : joints(std::move(all)), origin(std::move(origins)) {
    d.joints.clear();
    for (const model::Joint& joint : joints) d.joints.push_back(model::core_joint(joint));
    mechanism = std::make_shared<const Mechanism>(std::move(d));
  }
  /// Return the same mechanism with another joint k, or without it.
  Candidate with(std::size_t k, const std::optional<model::Joint>& joint) const {
    std::vector<model::Joint> all = joints;
    std::vector<std::size_t> origins = origin;
    const auto at = static_cast<std::ptrdiff_t>(k);
    if (joint)
      all[k] = *joint;
    else
      all.erase(all.begin() + at), origins.erase(origins.begin() + at);
    return {std::move(all), std::move(origins), mechanism->description()};
  }
  std::size_t index(const std::string& name) const {
    const auto at = std::find_if(joints.begin(), joints.end(), [&](const model::Joint& j) { return j.name == name; });
    return static_cast<std::size_t>(at - joints.begin());
  }
  const Constraint& constraint(std::size_t k) const {
    return mechanism->tree().loops.constraint[mechanism->joints()[k].constraint];
  }
};

class Loosening {
 public:
  Loosening(const PositionModel& model, const std::vector<model::Joint>& joints, const LooseningOptions& options)
      : model_(model), original_(with_its_tree(model.mechanism, joints)), tolerance_(options.tolerance) {
    const std::vector<Mechanism::PlacedJoint>& placed = model.mechanism.joints();
    Names all;
    for (std::size_t k = 0; k < placed.size(); ++k)
      if (placed[k].closes_a_loop) all.push_back(joints[k].name);
    allowed_ = options.joints ? *options.joints : all;
    for (const std::string& name : allowed_)
      if (std::find(all.begin(), all.end(), name) == all.end()) no_such_name("loop joint", name, all);
  }

  Loosened result(const std::optional<Vector>& start) const {
    Loosened result;
    const Vector q = start ? *start : closed_start();
    const ConstraintRank rank = constraint_rank(functions(original_), q.data(), {}, 0.0, model_.rows);
    const Vector& s = rank.singular_values;
    if (rank.closing_error > tolerance_)
      throw AssemblyError("q violates the loops by " + two_digits(rank.closing_error) +
                          ", relative to the mechanism's length; expected at most the tolerance, " + six_digits(tolerance_));
    const int rows = static_cast<int>(model_.mechanism.tree().loops.rows);
    const int needed = count_above(s, tolerance_ * std::max(1.0, s.size() ? s(0) : 0.0));
    if (needed == rows) return result;
    const double least = needed ? kept_fraction * s(needed - 1) : 0.0;
    Candidate loose = original_;
    for (auto name = allowed_.rbegin(); name != allowed_.rend(); ++name)
      if (std::optional<Candidate> looser = loosest(loose, *name, q, needed, least)) {
        result.warnings.push_back(change(loose, *looser, *name));
        loose = std::move(*looser);
      }
    const std::string name = "'" + model_.mechanism.description().name + "'", within = six_digits(tolerance_);
    Names unchanged;
    for (const model::Joint& joint : original_.joints)
      if (const std::string why = reason_to_stay(joint);
          !why.empty() && std::find(allowed_.begin(), allowed_.end(), joint.name) != allowed_.end())
        unchanged.push_back("'" + joint.name + "' cannot be replaced (" + why + ")");
    if (result.warnings.empty()) {
      Names parts = {"no joint of " + name + " can be replaced by a joint with fewer constraint rows, although " +
                     std::to_string(rows - needed) + " of " + std::to_string(rows) + " rows are redundant within " + within};
      parts.insert(parts.end(), unchanged.begin(), unchanged.end());
      parts.push_back(unchanged.empty() ? "these rows do not belong to loop joints" : "tree= and loop= select the loop joints");
      throw ModelError(joined(parts, "; "));
    }

    const PositionModel looser = position_model(loose);
    AssemblyOptions now;
    now.time = 0.0;
    const Vector closed = Positions(looser).assemble(q, {}, now).q;
    const auto [open, row] = omitted_rows(loose, closed);
    if (open > std::max(10.0 * tolerance_, curved * away * away))
      throw ModelError(name + " is in a singular position at q: in nearby positions '" + row + "' is violated by " +
                       two_digits(open) + " (relative to the mechanism's length) if the rows that are redundant at q (within " +
                       within + ") are removed; expected a regular position q");
    Names parts = {needed == 0 ? "all singular values are treated as zero"
                               : "the smallest nonzero singular value is " + two_digits(s(needed - 1)) +
                                     (needed < s.size() ? ", and " + two_digits(s(needed)) + " is treated as zero"
                                                        : ", and no singular value is treated as zero")};
    if (const int left = loose.mechanism->tree().loops.rows - needed; left > 0) {
      parts.push_back(std::to_string(left) + " redundant rows are left");
      parts.insert(parts.end(), unchanged.begin(), unchanged.end());
    }
    const double after = constraint_rank(functions(loose), closed.data(), {}, 0.0, model_.rows).closing_error;
    result.warnings.push_back("loosened within " + within + ": " + joined(parts, "; "));
    result.warnings.push_back("loosened: relative to the mechanism's length, the loop error was " +
                              two_digits(rank.closing_error, "%.1g") + " and is now " + two_digits(after, "%.1g") +
                              "; in nearby configurations '" + row + "' is violated by " + two_digits(open, "%.1g"));
    result.joints.resize(original_.joints.size());
    for (std::size_t k = 0; k < loose.joints.size(); ++k) result.joints[loose.origin[k]] = loose.joints[k];
    return result;
  }

 private:
  /// Return the mechanism with hints for its present tree joints, so that the spanning tree does not change when joint types are replaced.
  static Candidate with_its_tree(const Mechanism& mechanism, std::vector<model::Joint> joints) {
    std::vector<std::size_t> origin(joints.size());
    for (std::size_t k = 0; k < joints.size(); ++k) {
      const bool closes = mechanism.joints()[k].closes_a_loop;
      joints[k].tree = !closes && joints[k].laws.empty(), joints[k].loop = closes, origin[k] = k;
    }
    return {std::move(joints), std::move(origin), mechanism.description()};
  }
  StateFunctions functions(const Candidate& of) const { return {*of.mechanism, model_.kernels}; }
  PositionModel position_model(const Candidate& of) const {
    PositionModel facts{*of.mechanism, model_.kernels, {}, model_.home, model_.rows, model_.check_interrupt};
    for (const model::Joint& joint : of.joints)
      facts.limits.push_back(joint.joint.limits ? JointRange{joint.joint.limits->first, joint.joint.limits->second}
                                                : JointRange{});
    return facts;
  }
  Vector closed_start() const {
    // prefer the home configuration: assembly minimises the residual, and may therefore end in a singular position
    const Vector home = start_near(model_, States(), {}, times(0.0)).row(0);
    if (constraint_rank(functions(original_), home.data(), {}, 0.0, model_.rows).closing_error <= tolerance_) return home;
    AssemblyOptions now;
    now.time = 0.0, now.tolerance = tolerance_;
    return Positions(model_).assemble({}, {}, now).q;
  }

  /// Replace this joint by the possible joint with the fewest rows, and return the mechanism; none if no replacement is possible. After the
  /// replacement, `needed` singular values must still exceed `least`.
  std::optional<Candidate> loosest(const Candidate& from, const std::string& name, const Vector& q, int needed,
                                   double least) const {
    const std::size_t k = from.index(name);
    const model::Joint& joint = from.joints[k];
    if (!reason_to_stay(joint).empty()) return std::nullopt;
    const Vector others = constraint_rank(functions(from), q.data(), name, 0.0, model_.rows).singular_values;
    for (int rows = std::max(0, needed - count_above(others, least)); rows < from.constraint(k).rows; ++rows) {
      std::optional<Candidate> best;
      double largest = least;
      for (const std::optional<model::Joint>& other : looser(from, k, rows, q)) {
        if (model_.check_interrupt) model_.check_interrupt();
        Candidate next = from.with(k, other);
        const Vector s = constraint_rank(functions(next), q.data(), {}, 0.0, model_.rows).singular_values;
        if (needed > 0 && !(s.size() >= needed && s(needed - 1) >= largest)) continue;
        best = std::move(next), largest = needed ? s(needed - 1) : 0.0;
      }
      if (best) return best;
    }
    return std::nullopt;
  }

  /// Return the joints with this number of rows that can replace joint k. An entry without value stands for removal of the joint.
  std::vector<std::optional<model::Joint>> looser(const Candidate& from, std::size_t k, int rows, const Vector& q) const {
    const model::Joint& joint = from.joints[k];
    std::vector<std::optional<model::Joint>> all;
    if (rows == 0) {
      if (!has_forces(joint.joint)) all.emplace_back();
      return all;
    }
    Transform<double> in_parent{axis_frame(joint.joint.axis), zero3<double>()}, in_child = in_parent;
    if (joint.joint.kind == JointKind::spherical) {
      in_child.R = directions_of_stress(from, k, q);
      in_parent.R = (pose(from, joint.parent, q).R * joint.at_parent.R).transpose() * pose(from, joint.child, q).R *
                    joint.at_child.R * in_child.R;
    }
    const int free = free_components(joint.joint.kind);
    std::vector<int> locked, chosen;
    for (int p = 0; p < 6; ++p)
      if (!(free >> p & 1)) locked.push_back(p);
    chosen.assign(locked.size(), 0);
    std::fill_n(chosen.begin(), static_cast<int>(locked.size()) - rows, 1);
    do {
      int more = free;
      for (std::size_t p = 0; p < locked.size(); ++p) more |= chosen[p] << locked[p];
      model::Joint other = joint;
      other.joint = looser_type(joint.joint, more);
      other.at_parent = joint.at_parent * in_parent, other.at_child = joint.at_child * in_child;
      all.emplace_back(std::move(other));
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
    return all;
  }
  /// Return axes for the replacement of a ball joint, which has no axis of its own: the directions of its self-stress.
  Mat3<double> directions_of_stress(const Candidate& from, std::size_t k, const Vector& q) const {
    const StateFunctions of = functions(from);
    const Matrix J = ScaledLoops(of, q.data(), 0.0, model_.rows).jacobian(q.data());
    const Vector s = singular_values(J);
    const Matrix stress = null_space(J.transpose(), count_above(s, 1e-3 * (s.size() ? s(0) : 0.0)));
    const Constraint& c = from.constraint(k);
    Mat3<double> axes = right_singular_vectors(stress.middleRows(c.row, c.rows).transpose()).V;
    axes.col(2) = cross<double>(axes.col(0), axes.col(1));  // make the axes right-handed
    return axes;
  }
  Transform<double> pose(const Candidate& of, const std::string& body, const Vector& q) const {
    const Mechanism::PlacedFrame& at = of.mechanism->placed_frame(body);
    RowMajor X(4, 4);
    functions(of).evaluate(Operation::pose, {q.data()}, X.data(), {at.link, at.body, at.X, ExpressedIn::frame});
    return {X.topLeftCorner<3, 3>(), X.topRightCorner<3, 1>()};
  }

  /// Return the sentence about the replacement of a joint.
  static std::string change(const Candidate& before, const Candidate& after, const std::string& name) {
    const std::size_t k = before.index(name), now = after.index(name);
    const std::string was = std::to_string(before.constraint(k).rows) + " rows as " + text_of(before.joints[k].joint);
    if (now == after.joints.size()) return "loosened: '" + name + "' is omitted; it had " + was;
    return "loosened: '" + name + "' has " + std::to_string(after.constraint(now).rows) + " constraint rows as " +
           text_of(after.joints[now].joint) + " instead of " + was;
  }

  /// Return the largest scaled residual of the original rows in nearby configurations of the mechanism `loose`, and the row's name.
  std::pair<double, std::string> omitted_rows(const Candidate& loose, const Vector& q) const {
    const StateFunctions original = functions(original_), other = functions(loose);
    const ScaledLoops loops(original, q.data(), 0.0, model_.rows), loosened(other, q.data(), 0.0, model_.rows);
    const Matrix motions = null_space(loosened.jacobian(q.data()), tolerances::present);
    Matrix x =
        product(RandomNumbers().normal(motions.cols() ? samples : 0, static_cast<int>(motions.cols())), motions.transpose());
    for (Eigen::Index k = 0; k < x.rows(); ++k) x.row(k) *= away / x.row(k).lpNorm<Eigen::Infinity>();
    const ScaledLoops::Walk nearby = loosened.walk(q.data(), x);
    Vector open = loops.residual(q.data()).cwiseAbs();
    for (Eigen::Index k = 0; k < x.rows(); ++k)
      if (nearby.open(k) < tolerances::given_closed) open = open.cwiseMax(loops.residual(nearby.ends.row(k).data()).cwiseAbs());
    Eigen::Index worst = 0;
    const double most = open.size() ? open.maxCoeff(&worst) : 0.0;
    return {most, open.size() ? loops.row_name(static_cast<int>(worst)) : ""};
  }

  const PositionModel& model_;
  Candidate original_;
  double tolerance_;
  Names allowed_;
};

}  // namespace

Loosened without_redundant_constraints(const PositionModel& model, const std::vector<model::Joint>& joints,
                                       const std::optional<Vector>& q, const LooseningOptions& options) {
  return Loosening(model, joints, options).result(q);
}

}  // namespace sarrus
