#include "search.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "../model/text.hpp"

namespace sarrus {
namespace {

std::string three_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

/// Round to six decimals, so that rounding errors do not affect the order of configurations.
double rounded(double x) { return std::nearbyint(x * 1e6) / 1e6; }

}  // namespace

Search::Search(const Closure& closure, Vector start, ClosingInput input, std::uint64_t seed)
    : closure_(closure), start_(std::move(start)), input_(std::move(input)), random_(seed) {
  const Mechanism& base = closure.model.mechanism;
  std::vector<int> joints(base.joints().size());
  std::iota(joints.begin(), joints.end(), 0);
  std::sort(joints.begin(), joints.end(),
            [&](int a, int b) { return base.description().joints[a].name < base.description().joints[b].name; });
  reach_ = aside_ = Vector::Zero(base.tree().nv);
  for (const int j : joints)
    for (int k = 0; k < base.joints()[j].nv && !base.joints()[j].closes_a_loop; ++k) {
      const int iv = base.joints()[j].iv + k;
      by_name_.push_back(iv);
      if (closure.moving[iv]) reach_(iv) = slides(base.description().joints[j], k) ? 1.0 : M_PI;
    }
}

Vector Search::next_start() {
  constexpr double spreads[] = {0.3, 1.0, 0.1};
  if (drawn_ % 2 == 0)
    for (const int k : by_name_) aside_(k) = spreads[drawn_ / 2 % 3] * reach_(k) * random_.uniform(-1.0, 1.0);
  return closure_.clipped(closure_.step(start_, drawn_++ % 2 == 0 ? aside_ : Vector(-aside_)));
}

Closure::Closed Search::nearest(int starts, double tolerance) {
  Closure::Closed closed = closure_.close(start_, input_, near_steps);
  closed.q = closure_.unwound(closed.q, start_);
  if (closed.open <= std::min(tolerance, tolerances::closed) && closure_.within(closed.q, 1.0, input_.time)) return closed;
  std::vector<Closure::Closed> candidates;
  const auto is_within = [&](const Closure::Closed& c) { return closure_.within(c.q, 1.0, input_.time); };
  while (static_cast<int>(candidates.size()) <= starts) {
    const int tried = static_cast<int>(candidates.size()), count = std::min(1 + 3 * tried, starts + 1 - tried);
    bool found = false;
    for (int k = 0; k < count; ++k) {
      check_interrupt();
      closed = closure_.close(tried + k == 0 ? start_ : next_start(), input_, far_steps);
      closed.q = closure_.unwound(closed.q, start_);
      found = found || (closed.open <= tolerance && is_within(closed));
      candidates.push_back(closed);
    }
    if (found) break;
  }
  const Closure::Closed* best = nullptr;
  for (const Closure::Closed& c : candidates) {
    if (!(c.open <= tolerance)) continue;
    if (!best || is_within(c) > is_within(*best) || (is_within(c) == is_within(*best) && is_nearer(c.q, best->q))) best = &c;
  }
  if (best) return *best;
  return *std::min_element(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) { return a.open < b.open; });
}

std::vector<Vector> Search::all(int starts, double tolerance) {
  std::vector<Vector> found;
  for (int k = 0; k < starts; ++k) {
    check_interrupt();
    const Closure::Closed closed = closure_.close(k == 0 ? start_ : next_start(), input_, far_steps);
    if (closed.open <= tolerance) found.push_back(closure_.unwound(closed.q, start_));
  }
  std::stable_sort(found.begin(), found.end(), [&](const Vector& a, const Vector& b) { return is_nearer(a, b); });
  return found;
}

/// Return the keys by which configurations are sorted: the distance from the start, then the components of this distance, in reverse order of the
/// joints' names.
std::vector<double> Search::distances(const Vector& q) const {
  const Vector x = closure_.difference(start_, q);
  std::vector<double> all = {rounded(x.norm())};
  for (auto k = by_name_.rbegin(); k != by_name_.rend(); ++k) all.push_back(rounded(x(*k)));
  return all;
}
bool Search::is_nearer(const Vector& a, const Vector& b) const { return distances(a) < distances(b); }

int Search::degrees_of_freedom(const Vector& q) const {
  constexpr double small = 1e-6;  // singular values below this fraction of the largest one count as zero
  const Vector s = singular_values(closure_.jacobian(q, input_));
  const auto moving = std::count(closure_.moving.begin(), closure_.moving.end(), true);
  return static_cast<int>(moving) - (s.size() ? count_above(s, small * s(0)) : 0);
}

/// Return the scaled residual of each constraint.
Vector Search::open_by(const Vector& q) const {
  const Mechanism& mechanism = closure_.mechanism();
  const Vector phi = closure_.loops(input_).residual(q.data());
  Vector sizes(mechanism.constraints().size());
  for (Eigen::Index i = 0; i < sizes.size(); ++i) {
    const Constraint& c = mechanism.tree().loops.constraint[mechanism.constraints()[i]];
    sizes(i) = phi.segment(c.row, c.rows).norm();
  }
  return sizes;
}

std::string Search::why_open(const Vector& q) const {
  const Mechanism& mechanism = closure_.mechanism();
  const ScaledLoops loops = closure_.loops(input_);
  const Vector residuals = open_by(q), scaled = loops.residual(q.data()), phi = scaled.cwiseQuotient(loops.row_scale);
  Eigen::Index worst = 0, row = 0;
  const double open = residuals.maxCoeff(&worst);
  const Constraint& c = mechanism.tree().loops.constraint[mechanism.constraints()[worst]];
  scaled.segment(c.row, c.rows).cwiseAbs().maxCoeff(&row);
  const auto row_name = [&](int r) { return visit_constraint(c.kind, [&](const auto& kind) { return kind.row_name(r); }); };
  const std::string name = mechanism.constraint_name(static_cast<int>(worst));
  std::string text = "no configuration was found that closes all loops: '" + name + "' (" +
                     closure_.kind_of(static_cast<int>(worst)) + ") stays open by " + three_digits(open) +
                     " times the mechanism's length in the best configuration (" + loops.row_name(c.row + static_cast<int>(row)) +
                     ": " + three_digits(phi(c.row + row)) + ")";
  if (c.child >= 0) {
    double squares[2] = {0.0, 0.0};
    bool has[2] = {false, false};
    for (int r = 0; r < c.rows; ++r) {
      const bool turns = row_name(r).find("rotation") != std::string::npos;
      squares[turns] += phi(c.row + r) * phi(c.row + r), has[turns] = true;
    }
    std::vector<std::string> gaps;
    if (has[0]) gaps.push_back(three_digits(std::sqrt(squares[0])) + " m");
    if (has[1]) gaps.push_back(three_digits(std::sqrt(squares[1])) + " rad");
    text += "; the remaining gap is " + joined(gaps, " and ");
  }
  std::vector<std::string> further;
  for (Eigen::Index i = 0; i < residuals.size(); ++i)
    if (i != worst && residuals(i) > 0.1 * open) further.push_back("'" + mechanism.constraint_name(static_cast<int>(i)) + "'");
  if (!further.empty())
    text += "; " + joined(further) + " stay open too: these constraints contradict one another, or none of them can be satisfied";
  if (!closure_.fixed.empty()) {
    const Closure released(closure_.model, closure_.frames, {});
    Search search(released, q, {input_.time, closure_.frame_targets(input_.targets)}, 0);
    if (search.nearest(10, tolerances::closed).open <= tolerances::closed)
      return text + "; the loops can close if " + quoted_joints(closure_.model.mechanism, closure_.fixed) +
             " may move: their fixed coordinates contradict the loops";
  }
  if (open < 1e-3)
    return text +
           "; if the remaining error comes from rounded numbers of a file, sarrus.without_redundant_constraints(robot) "
           "returns the "
           "mechanism without the contradictory rows; tolerance= accepts the best fit, but most functions require closed loops";
  return text +
         "; either the lengths and placements do not allow closed loops, or another initial guess is needed (near=, starts=)";
}

std::string Search::why_out_of_reach(const Vector& best) const {
  const Mechanism& mechanism = closure_.mechanism();
  Vector weights = Vector::Constant(mechanism.tree().loops.rows, 1e4);  // closing the loops is more important than the targets
  for (std::size_t i = 0; i < closure_.frames.size(); ++i)
    weights.segment(closure_.target_rows(i).first, closure_.target_rows(i).second).setOnes();
  const Vector q = closure_.close(best, input_, far_steps, weights).q, residuals = open_by(q);
  const std::size_t first = closure_.model.mechanism.constraints().size();
  for (std::size_t i = 0; i < static_cast<std::size_t>(residuals.size()); ++i)
    if ((i < first || i >= first + closure_.frames.size()) && residuals(i) > 1e-6) return why_open(q);
  std::vector<std::string> texts;
  int at = 0;
  for (const FrameKey& key : closure_.frames) {
    double pose[16];
    const Mechanism::PlacedFrame& frame = mechanism.placed_frame(key.frame);
    closure_.functions().evaluate(Operation::pose, {q.data()}, pose, {frame.link, frame.body, frame.X, ExpressedIn::frame});
    const Vector goal = input_.targets.row(0).segment(at, key.numbers());
    at += key.numbers();
    Vec3<double> off;
    Mat3<double> R, to;
    for (int i = 0; i < 3; ++i) {
      off(i) = key.has(3 + i) ? pose[4 * i + 3] - goal(key.is_pose ? 4 * i + 3 : i) : 0.0;
      for (int j = 0; j < 3 && key.is_pose; ++j) R(i, j) = pose[4 * i + j], to(i, j) = goal(4 * i + j);
    }
    std::vector<std::string> distances;
    if (key.components & FrameKey::position) distances.push_back(three_digits(off.norm()) + " m");
    if (key.is_pose) distances.push_back(three_digits(log(quaternion(Mat3<double>(to.transpose() * R))).norm()) + " rad");
    texts.push_back("frame '" + key.frame + "' stays " + joined(distances, " and ") + " away");
  }
  const std::string given =
      closure_.fixed.empty() ? "" : " with " + quoted_joints(closure_.model.mechanism, closure_.fixed) + " fixed";
  return "no configuration was found with all frames at their targets" + given + ": at best, with loops closed, " +
         joined(texts, "; ");
}

}  // namespace sarrus
