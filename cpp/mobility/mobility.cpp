#include "mobility.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "../dynamics/kinematics.hpp"
#include "../loops/tolerances.hpp"
#include "actuation.hpp"
#include "finite_motion.hpp"

namespace sarrus {
namespace {

using tolerances::nearly_singular, tolerances::negligible, tolerances::present;
constexpr double infinite = std::numeric_limits<double>::infinity();

template <class... X> std::string text(const char* form, X... x) {
  char out[160];
  std::snprintf(out, sizeof out, form, x...);
  return out;
}

/// Return the joints of the tree that move in at least one of the scaled motions (nv, k), or those that move in none.
Names joints_by_motion(bool move, const Mechanism& mechanism, const Matrix& motions) {
  Names names;
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j) {
    const Mechanism::PlacedJoint& at = mechanism.joints()[j];
    if (at.closes_a_loop || at.nv == 0) continue;
    const bool moves = motions.cols() > 0 && motions.middleRows(at.iv, at.nv).cwiseAbs().maxCoeff() > present;
    if (moves == move) names.push_back(mechanism.description().joints[j].name);
  }
  return names;
}

/// Warn if the singular values s do not determine a rank clearly.
void warn_of_rank(const Vector& s, int rank, double gap, Names& warnings) {
  if (gap < 1.0 / nearly_singular)
    warnings.push_back(
        text("the rank is not clear: the largest singular value that is treated as zero is smaller than the next by a factor of "
             "only %.2g",
             gap));
  if (rank > 0 && s(rank - 1) < nearly_singular) {
    const int few = static_cast<int>((s.head(rank).array() < nearly_singular).count());
    warnings.push_back(text("nearly singular: the smallest nonzero singular value is %.1g", s(rank - 1)));
    if (few > 1)
      warnings.back() +=
          text("; %d singular values are below %g, possibly because rounded dimensions of a file lock the mechanism", few,
               nearly_singular);
  }
}

/// Velocities of the motors and of the output in motions of unit scaled velocity, both in units of 1 rad/s (for sliding, the mechanism's length per
/// s).
struct TransmittedRates {
  Matrix motors, output;
};
class Transmission {
 public:
  Transmission(const ScaledLoops& loops, const std::vector<int>& motors, const MobilityOptions& options)
      : loops_(loops),
        motors_(motors),
        rows_(options.output ? options.components : std::vector<int>()),
        motor_unit(motor_units(loops.functions.mechanism(), motors)),
        output_unit(rows_.size()) {
    if (options.output) {
      const PlacedFrame* at = loops.functions.mechanism().find_frame(*options.output);
      if (!at) throw NameNotFoundError("no frame is named '" + *options.output + "'");
      frame_ = {at->link, at->body, at->X, ExpressedIn::world_aligned, loops.functions.mechanism().number_of(*at)};
    }
    for (std::size_t r = 0; r < rows_.size(); ++r) output_unit(r) = rows_[r] < 3 ? 1.0 : loops.length;
  }
  TransmittedRates operator()(const double* q, const Matrix& motions) const {
    const Matrix v = loops_.column_scale.asDiagonal() * motions;
    TransmittedRates rates{motor_unit.cwiseInverse().asDiagonal() * (motor_rows(loops_.functions, q, motors_) * v),
                           Matrix(rows_.size(), motions.cols())};
    if (rows_.empty()) return rates;
    RowMajor J(6, v.rows());
    loops_.functions.evaluate(Operation::jacobian, {q}, J.data(), frame_);
    for (std::size_t r = 0; r < rows_.size(); ++r) rates.output.row(r) = J.row(rows_[r]) * v / output_unit(r);
    return rates;
  }

 private:
  const ScaledLoops& loops_;
  const std::vector<int>& motors_;
  std::vector<int> rows_;
  Frame frame_{};

 public:
  Vector motor_unit, output_unit;
};

/// Ranks, among some motions: of the motors' velocities; of the output's velocities; of the motors' velocities while the output is at rest; and of
/// the motions while all motors are at rest.
struct Ranks {
  int motors = 0, output = 0, internal = 0, locked = 0;

  Ranks() = default;
  Ranks(const TransmittedRates& rates, Eigen::Index motions) {
    Matrix both(rates.motors.rows() + rates.output.rows(), motions);
    both << rates.motors, rates.output;
    motors = rank(rates.motors, present), output = rank(rates.output, present);
    internal = rank(both, present) - output, locked = static_cast<int>(motions) - motors;
  }
};

ActuationMobility actuation(const ScaledLoops& loops, const double* q, const Matrix& N, const FiniteMotion& finite,
                            const std::vector<int>& motors, const MobilityOptions& options) {
  const Transmission transmission(loops, motors, options);
  const TransmittedRates rates = transmission(q, N);
  const Ranks local(rates, N.cols());
  const bool has_output = options.output.has_value();
  // the ranks of a regular configuration are the highest ones of all nearby configurations; a structure cannot move, so it has no nearby ones
  std::vector<Ranks> nearby;
  for (const Neighbour& n : finite.neighbours) nearby.emplace_back(transmission(n.q.data(), n.tangent), n.tangent.cols());
  const bool reliable = !nearby.empty() || finite.freedom == 0 || local.locked == 0;
  if (nearby.empty()) nearby.push_back(finite.freedom == 0 ? Ranks() : local);
  Ranks usual = nearby.front();
  for (const Ranks& other : nearby) {
    usual.motors = std::max(usual.motors, other.motors), usual.output = std::max(usual.output, other.output);
    usual.locked = std::min(usual.locked, other.locked), usual.internal = std::min(usual.internal, other.internal);
  }

  ActuationMobility result{};
  const bool singular_output = local.locked > usual.locked, singular_input = local.internal > usual.internal;
  result.actuators = static_cast<int>(rates.motors.rows()), result.locked_freedoms = local.locked;
  result.verdict = usual.locked ? "deficient" : result.actuators > usual.motors ? "redundant" : "exact";
  result.uncontrolled = joints_by_motion(true, loops.functions.mechanism(), N * null_space(rates.motors, local.motors));
  if (reliable) result.output_singular = singular_output;
  if (has_output) result.input_singular = singular_input;
  result.singular_values = singular_values(rates.motors);
  result.singular_values.conservativeResize(std::min<Eigen::Index>(usual.motors, result.singular_values.size()));
  if (has_output && local.locked == 0) {
    const Matrix scaled =
        N.cols() ? Matrix(rates.output * pseudo_inverse(rates.motors)) : Matrix::Zero(rates.output.rows(), result.actuators);
    const Vector all = singular_values(scaled), gains = all.head(std::min<Eigen::Index>(usual.output, all.size()));
    if (gains.size()) result.condition = singular_input ? infinite : gains(0) / gains(gains.size() - 1);
    result.output_jacobian = transmission.output_unit.asDiagonal() * scaled * transmission.motor_unit.cwiseInverse().asDiagonal();
  } else if (has_output && singular_output) {
    result.condition = infinite;
  }
  return result;
}

/// Poses of the bodies and joints of a mechanism in one configuration.
class Placed {
 public:
  Placed(const StateFunctions& functions, const double* q)
      : tree_(functions.tree()), mechanism_(functions.mechanism()), block_(Kinematics<double>::size(tree_)) {
    functions.evaluate(Operation::kinematics, {q}, block_.data());
    kinematics_ = Kinematics<double>::over(tree_, block_.data());
  }
  const Transform<double>& link(int i) const { return kinematics_.link[i].X; }
  /// Return the pose of a tree joint's frame. carried: the frame on its successor; placed: the frame on its child in the description.
  Transform<double> carried(const Mechanism::PlacedJoint& joint) const {
    const Body& body = tree_.body[joint.body];
    return link(body.link) * body.X_joint;
  }
  Transform<double> child(const Mechanism::PlacedJoint& joint) const {
    const Body& body = tree_.body[joint.body];
    return link(body.child_link) * body.X_child();
  }
  /// Return an orthonormal basis (6, 6 - nv) of the complement of a joint's motion space, in its frame on the successor.
  Matrix across(const Mechanism::PlacedJoint& joint) const {
    const Transform<double> X = carried(joint);
    const Vec3<double>& origin = link(tree_.body[joint.body].link).p;
    Matrix phi(6, joint.nv);
    for (int k = 0; k < joint.nv; ++k) {
      const Motion<double>& s = kinematics_.column[joint.iv + k];
      const Vec3<double> v = s.linear + cross<double>(s.angular, Vec3<double>(X.p - origin));
      phi.col(k) << X.R.transpose() * s.angular, X.R.transpose() * v;
    }
    return orthogonal_from(phi).rightCols(6 - joint.nv);
  }

 private:
  const Tree& tree_;
  const Mechanism& mechanism_;
  std::vector<double> block_;
  Kinematics<double> kinematics_;
};

/// Convert wrenches (k, 6) from the axes and origin of a frame to those of another frame.
Matrix transformed(const Transform<double>& to, const Transform<double>& from, const Matrix& wrenches) {
  Matrix result(wrenches.rows(), 6);
  for (Eigen::Index k = 0; k < wrenches.rows(); ++k) {
    const Vec3<double> F = from.R * Vec3<double>(wrenches.row(k).tail<3>());
    const Vec3<double> N = from.R * Vec3<double>(wrenches.row(k).head<3>()) + cross<double>(Vec3<double>(from.p - to.p), F);
    result.row(k) << N.transpose() * to.R, F.transpose() * to.R;
  }
  return result;
}

/// Return the wrenches (k, 6) that each constraint, then each tree joint, transmits in equilibrium with the multipliers (nc, k): [moment; force] on
/// the child of a constraint, or on the successor of a joint, at its frame and in that frame's axes.
Named<Matrix> braced_wrenches(const StateFunctions& functions, const Placed& placed, const double* q, const Matrix& multipliers,
                              const std::optional<double>& time) {
  const Mechanism& mechanism = functions.mechanism();
  const Tree& tree = functions.tree();
  const Loops& loops = tree.loops;
  const int count = static_cast<int>(multipliers.cols()), constraints = static_cast<int>(mechanism.constraints().size());
  Named<Matrix> all;
  for (int i = 0; i < constraints; ++i) all.push_back({mechanism.constraint_name(i), Matrix(count, 6)});
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j)
    if (!mechanism.joints()[j].closes_a_loop) all.push_back({mechanism.description().joints[j].name, Matrix(count, 6)});
  RowMajor wrenches(loops.constraints, 6);
  std::vector<Force<double>> subtree_load(
      tree.bodies);  // sum of the loads on a body and all bodies beyond it, in the world's axes about the body's origin
  for (int k = 0; k < count; ++k) {
    functions.evaluate(Operation::loop_wrenches, {q, multipliers.col(k).data(), time ? &*time : nullptr}, wrenches.data());
    std::fill(subtree_load.begin(), subtree_load.end(), Force<double>::zero());
    for (int i = 0; i < constraints; ++i) {
      const int at = mechanism.constraints()[i];
      const Constraint& c = loops.constraint[at];
      all[i].second.row(k) = wrenches.row(at);
      if (c.child < 0) continue;
      const Transform<double> X = placed.link(c.child) * c.X_child;
      const Mat3<double> R = X.R * Mat3<double>(c.R_described.transpose());
      const Force<double> f = {R * Vec3<double>(wrenches.row(at).head<3>()), R * Vec3<double>(wrenches.row(at).tail<3>())};
      const Vec3<double> N = f.angular + cross<double>(X.p, f.linear);
      subtree_load[c.body[1]] += {N, f.linear}, subtree_load[c.body[0]] -= {N, f.linear};
    }
    for (int b = tree.bodies - 1; b > 0; --b) subtree_load[tree.body[b].parent] += subtree_load[b];
    int next = constraints;
    for (const Mechanism::PlacedJoint& joint : mechanism.joints()) {
      if (joint.closes_a_loop) continue;
      const Transform<double> X = placed.carried(joint);
      const Force<double>& f = subtree_load[joint.body];
      const Vec3<double> N = f.angular - cross<double>(X.p, f.linear);
      all[next++].second.row(k) << -(X.R.transpose() * N).transpose(), -(X.R.transpose() * f.linear).transpose();
    }
  }
  return all;
}

/// Convert [moment; force] to [moment; l force], in one unit.
Matrix in_one_unit(Matrix wrenches, double length) {
  wrenches.rightCols<3>() *= length;
  return wrenches;
}

Names named_rows(const ScaledLoops& loops, const std::vector<int>& rows) {
  Names names;
  for (const int r : rows) names.push_back(loops.row_name(r));
  return names;
}

/// Determine which reactions of constraints and joints are unique. `stress` (rows, redundant): multipliers of the self-stresses; their wrenches are
/// in `result`.
void decide_reactions(const StateFunctions& functions, const Placed& placed, const Matrix& stress, Mobility& result) {
  const Mechanism& mechanism = functions.mechanism();
  Named<bool> constraints;
  for (std::size_t i = 0; i < mechanism.constraints().size(); ++i) {
    const Constraint& c = functions.tree().loops.constraint[mechanism.constraints()[i]];
    const std::string& name = mechanism.constraint_name(static_cast<int>(i));
    const int dependent = stress.cols() ? sarrus::rank(stress.middleRows(c.row, c.rows), present) : 0;
    if (dependent) result.dependent_groups.push_back({name, dependent});
    constraints.push_back({name, dependent == 0});
  }
  std::size_t wrench = constraints.size(), closing = 0;
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j) {
    const Mechanism::PlacedJoint& joint = mechanism.joints()[j];
    if (joint.closes_a_loop) {
      result.unique_reactions.push_back(constraints[closing++]);
      continue;
    }
    // remove the efforts that couplers apply along a joint's motion, because these are not reactions
    const auto& [name, wrenches] = result.self_stress[wrench++];
    const bool unique = wrenches.rows() == 0 || joint.nv == 6 ||
                        (in_one_unit(wrenches, result.length) * placed.across(joint)).cwiseAbs().maxCoeff() < present;
    result.unique_reactions.push_back({name, unique});
  }
  result.unique_reactions.insert(result.unique_reactions.end(), constraints.begin() + closing, constraints.end());
}

/// Add a sentence for each rank that is not clear, each singularity and each contradiction.
void warn(const ScaledLoops& loops, const double* q, const Matrix& stress, Mobility& result) {
  Names& warnings = result.warnings;
  warn_of_rank(result.singular_values, result.rank, result.gap, warnings);
  if (const auto finite = result.finite_degrees_of_freedom; finite && *finite < result.degrees_of_freedom)
    warnings.push_back("singular: " + std::to_string(result.degrees_of_freedom) +
                       " degrees of freedom in this configuration, but finite motions have only " + std::to_string(*finite));
  const Vector c = loops.prescribed(q);
  if ((stress.transpose() * c).norm() > present * c.norm())
    warnings.push_back("no velocity satisfies the prescribed motions and keeps the loops closed");
  if (result.actuation && !result.actuation->output_singular.value_or(false) && result.actuation->singular_values.size()) {
    const double slowest = result.actuation->singular_values.minCoeff();
    if (slowest > present && slowest < nearly_singular)
      warnings.push_back(text("near an output singularity: joints move %.1g times as fast as motors", 1.0 / slowest));
  }
}

}  // namespace

std::vector<int> removable_rows(const Matrix& stress) {
  // number of chosen rows after which their span is subtracted from all remaining rows at once; this is faster than row by row
  constexpr int block_size = 64;
  std::vector<int> rows;
  Matrix left = stress;
  while (static_cast<Eigen::Index>(rows.size()) < stress.cols()) {
    const Vector size = left.rowwise().norm();
    const double least = 1e-3 * size.maxCoeff();
    std::vector<int> last;
    for (int k = static_cast<int>(size.size()) - 1; k >= 0 && static_cast<int>(last.size()) < block_size; --k)
      if (size(k) > least) last.push_back(k);
    RowMajor block(last.size(), stress.cols()), directions(last.size(), stress.cols());
    for (std::size_t k = 0; k < last.size(); ++k) block.row(k) = left.row(last[k]);
    int result = 0;
    for (std::size_t k = 0; k < last.size() && static_cast<Eigen::Index>(rows.size()) < stress.cols(); ++k) {
      const double length = block.row(k).norm();
      if (length <= least) continue;
      directions.row(result) = block.row(k) / length;
      const Vector along = block * directions.row(result).transpose();
      block -= along * directions.row(result++);
      rows.push_back(last[k]);
    }
    const Matrix D = directions.topRows(result);
    left -= product(product(left, D.transpose()), D);
    for (const int k : rows) left.row(k).setZero();
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

Mobility mobility(const StateFunctions& functions, const double* q, const MobilityOptions& options, RowsOfState rows) {
  const Mechanism& mechanism = functions.mechanism();
  const int nv = functions.tree().nv, nc = functions.tree().loops.rows;
  std::vector<int> motors;
  for (const int j : options.actuated ? joints_by_names(mechanism, *options.actuated) : actuated_joints(mechanism))
    if (mechanism.description().joints[j].nv > 0) motors.push_back(j);
  const ScaledLoops loops(functions, q, options.time, std::move(rows));

  Mobility result{};
  result.name = mechanism.description().name, result.length = loops.length;
  result.row_scale = loops.row_scale;
  result.closing_error = loops.check_closed(q);
  const Matrix J = loops.jacobian(q);
  const Vector& s = result.singular_values = singular_values(J);
  result.tolerance = std::max(negligible, 100.0 * result.closing_error) * std::max(1.0, s.size() ? s(0) : 0.0);
  const int rank = result.rank = count_above(s, result.tolerance);
  const Matrix N = null_space(J, rank), stress = null_space(J.transpose(), rank);
  const FiniteMotion finite = finite_motion(loops, q, N, result.tolerance, !motors.empty());
  if (!motors.empty()) result.actuation = actuation(loops, q, N, finite, motors, options);

  result.kutzbach = nv - nc, result.degrees_of_freedom = nv - rank, result.redundant = nc - rank;
  result.finite_degrees_of_freedom = finite.freedom, result.finite_because = finite.reason;
  result.motions = loops.column_scale.asDiagonal() * N;
  result.gap = rank > 0 && rank < s.size() && s(rank) > s(rank - 1) * 1e-300 ? s(rank - 1) / s(rank) : infinite;
  result.redundant_rows = named_rows(loops, removable_rows(stress));
  const Placed placed(functions, q);
  result.self_stress = braced_wrenches(functions, placed, q, loops.row_scale.asDiagonal() * stress, options.time);
  result.idle = joints_by_motion(false, mechanism, N);

  decide_reactions(functions, placed, stress, result);
  warn(loops, q, stress, result);
  return result;
}

namespace {

using Lines = std::vector<std::pair<std::string, std::string>>;

std::string padded(std::string x, std::size_t size) { return x.resize(std::max(size, x.size()), ' '), x; }
std::string first_names(const Names& names) {
  constexpr std::size_t most = 12;
  std::string all = names.empty() ? "" : names[0];
  for (std::size_t k = 1; k < std::min(names.size(), most); ++k) all += ", " + names[k];
  return all + (names.size() > most ? text(" and %d more", static_cast<int>(names.size() - most)) : "");
}
/// Return the entry of a key, added at the end if it does not exist.
template <class X> X& entry(Named<X>& all, const std::string& key) {
  for (auto& [name, x] : all)
    if (name == key) return x;
  all.push_back({key, {}});
  return all.back().second;
}
/// Append a table of joints and their entries; joints with the same entries share a line.
void add_table(Lines& lines, std::string head, const Lines& entries) {
  Named<std::string> by_name;
  for (const auto& [name, words] : entries) {
    const bool is_first =
        std::none_of(by_name.begin(), by_name.end(), [&, &key = name](const auto& x) { return x.first == key; });
    entry(by_name, name) += (is_first ? "" : ", ") + words;
  }
  Named<Names> alike;
  for (const auto& [name, words] : by_name) entry(alike, words).push_back(name);
  for (const auto& [words, names] : alike)
    lines.push_back({std::exchange(head, ""), first_names(names) + (words.empty() ? "" : ": ") + words});
}
/// Return the names of the indeterminate components of the wrench of a joint.
std::string loose_components(const Matrix& self_stress, double length) {
  const Eigen::RowVectorXd sizes = in_one_unit(self_stress, length).colwise().norm();
  std::string all;
  for (const int first : {0, 3}) {
    std::string axes;
    for (int k = 0; k < 3; ++k)
      if (sizes(first + k) > present) axes += std::string(" ") + "xyz"[k];
    if (!axes.empty()) all += (all.empty() ? "" : ", ") + std::string(first ? "force" : "moment") + axes;
  }
  return all.empty() ? "multiplier" : all;
}
Lines report_lines(const Mobility& m) {
  const int nv = static_cast<int>(m.motions.rows()), nc = m.rank + m.redundant;
  const auto count = [](int n) { return padded(std::to_string(n), 4); };
  std::string rank = count(m.rank) + text("of %d rows", nc);
  if (m.rank > 0) rank += text(", singular values %.3g to %.3g", m.singular_values(0), m.singular_values(m.rank - 1));
  if (m.singular_values.size() > m.rank) rank += text(", then %.1g", m.singular_values(m.rank));
  if (m.closing_error > 1e-12) rank += text("; loops open by %.1g", m.closing_error);
  Lines lines = {
      {"degrees of freedom", count(m.degrees_of_freedom) + text("here: %d velocities, rank %d", nv, m.rank)},
      {"  finite", (m.finite_degrees_of_freedom ? count(*m.finite_degrees_of_freedom) : "?   ") + m.finite_because},
      {"  Kutzbach", count(m.kutzbach) + text("%d velocities, %d rows", nv, nc)},
      {"rank", rank},
  };
  if (m.redundant > 0) {
    Lines rows, loose;
    for (const std::string& row : m.redundant_rows) {
      const std::size_t end = row.find(": ");
      rows.push_back({row.substr(0, end), row.substr(end + 2)});
    }
    for (const auto& [name, unique] : m.unique_reactions)
      if (!unique)
        for (const auto& [other, stress] : m.self_stress)
          if (other == name) loose.push_back({name, loose_components(stress, m.length)});
    add_table(lines, "redundant rows " + std::to_string(m.redundant), rows);
    add_table(lines, "not unique", loose.empty() ? Lines{{"no reaction", ""}} : loose);
  }
  if (!m.idle.empty()) lines.push_back({"cannot move", first_names(m.idle)});
  if (m.actuation) {
    const ActuationMobility& motors = *m.actuation;
    lines.push_back({"motors", count(motors.actuators) + motors.verdict});
    lines.push_back({"  output singular", !motors.output_singular ? "?" : *motors.output_singular ? "yes" : "no"});
    if (motors.input_singular) lines.push_back({"  input singular", *motors.input_singular ? "yes" : "no"});
    if (motors.locked_freedoms > 0)
      lines.push_back({"  while they stand", count(motors.locked_freedoms) + "left, of " + first_names(motors.uncontrolled)});
    if (motors.condition) lines.push_back({"  condition", text("%.3g", *motors.condition)});
  }
  for (const std::string& warning : m.warnings) lines.push_back({"warning", warning});
  return lines;
}

}  // namespace

std::string report(const Mobility& mobility) {
  std::string all = "Mobility of '" + mobility.name + "'";
  for (const auto& [head, words] : report_lines(mobility)) all += "\n  " + padded(head, 20) + words;
  return all;
}

Named<Vector> open_reactions(const StateFunctions& functions, const double* q, const std::optional<double>& time,
                             RowsOfState rows) {
  const Mechanism& mechanism = functions.mechanism();
  const ScaledLoops loops(functions, q, time, std::move(rows));
  const Vector phi = loops.residual(q);
  const Matrix J = loops.jacobian(q);
  const Vector s = singular_values(J);
  const double open = phi.size() ? phi.cwiseAbs().maxCoeff() : 0.0;
  const double tolerance = std::max(negligible, 100.0 * open) * std::max(1.0, s.size() ? s(0) : 0.0);
  const Matrix stress = null_space(J.transpose(), count_above(s, tolerance));
  const Placed placed(functions, q);
  Named<Matrix> braced = braced_wrenches(functions, placed, q, loops.row_scale.asDiagonal() * stress, time);
  std::size_t next = mechanism.constraints().size();
  for (const Mechanism::PlacedJoint& joint : mechanism.joints()) {
    if (joint.closes_a_loop) continue;
    Matrix& wrenches = braced[next++].second;
    const Matrix across = placed.across(joint);
    wrenches = product(product(wrenches, across), across.transpose());
    if (joint.reversed) wrenches = -transformed(placed.child(joint), placed.carried(joint), wrenches);
  }
  Named<Vector> sizes;
  for (const auto& [name, wrenches] : braced)
    sizes.push_back({name, in_one_unit(wrenches, loops.length).colwise().norm().transpose()});
  return sizes;
}

ConstraintRank constraint_rank(const StateFunctions& functions, const double* q, const std::optional<std::string>& without,
                               const std::optional<double>& time, RowsOfState rows) {
  const Mechanism& mechanism = functions.mechanism();
  const ScaledLoops loops(functions, q, time, std::move(rows));
  Matrix J = loops.jacobian(q);
  for (std::size_t i = 0; without && i < mechanism.constraints().size(); ++i) {
    const Constraint& c = functions.tree().loops.constraint[mechanism.constraints()[i]];
    if (mechanism.constraint_name(static_cast<int>(i)) == *without) J.middleRows(c.row, c.rows).setZero();
  }
  const Vector phi = loops.residual(q);
  return {singular_values(J), phi.size() ? phi.cwiseAbs().maxCoeff() : 0.0};
}

}  // namespace sarrus
