#include "free_floating.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../loops/tolerances.hpp"
#include "../model/text.hpp"
#include "../model/value.hpp"
#include "../spatial/conversions.hpp"

namespace sarrus {
namespace {

constexpr double most_steps = 1e6;
// relative residual above which equations have no solution; smaller residuals may be due to rounding and regularisation
constexpr double unreached = 1e-6;
// singular values below this fraction of the largest one are treated as zero, because the loops of measured states are rarely closed more accurately
constexpr double dependent = 1e-9;
constexpr const char* velocity_names[] = {"rx", "ry", "rz", "tx", "ty", "tz"};

std::string rounded(const char* form, double x) {
  char text[40];
  std::snprintf(text, sizeof text, form, x);
  return text;
}
std::string resting(const std::vector<int>& still) {
  Names names;
  for (const int k : still) names.push_back(velocity_names[k]);
  return still.empty() ? "" : " with zero " + joined(names, " ") + " of the base";
}

/// Return the rotation vector and the displacement (6) from one pose to another, in the world's axes.
Vector between(const Transform<double>& first, const Transform<double>& second) {
  Vector x(6);
  x << log(Mat3<double>(second.R * Mat3<double>(first.R.transpose()))), second.p - first.p;
  return x;
}

void check_steps(const std::vector<double>& times, double step) {
  const double duration = times.back() - times.front();
  if (duration > most_steps * step)
    throw std::invalid_argument(six_digits(duration) + " s in steps of " + six_digits(step) + " s need more than " +
                                std::to_string(static_cast<int>(most_steps)) + " steps; use a longer step");
}
bool increasing(const std::vector<double>& times) {
  for (std::size_t k = 0; k < times.size(); ++k)
    if (!std::isfinite(times[k]) || (k > 0 && !(times[k - 1] < times[k]))) return false;
  return !times.empty();
}
std::string shown(const std::vector<double>& times) { return sarrus::shown(Value(times)); }
int parts(double duration, double step) { return std::max(1, static_cast<int>(std::ceil(duration / step - 1e-9))); }

}  // namespace

FloatingBase::FloatingBase(const StateFunctions& functions, RowsOfState rows, const std::string& question,
                           std::function<void()> check_interrupt)
    : functions_(functions), rows_(std::move(rows)), check_interrupt_(std::move(check_interrupt)) {
  const Mechanism& m = functions.mechanism();
  if (!m.tie().empty())
    throw ModelError(question + " requires a floating mechanism, whose base is carried by a Free joint: " + m.tie());
  base_ = m.tree().link[1].iv;
  for (std::size_t j = 0; j < m.joints().size(); ++j)
    if (const Mechanism::PlacedJoint& at = m.joints()[j]; !at.closes_a_loop && at.nv > 0 && at.iv == base_)
      body_ = frame(at.reversed ? m.description().joints[j].parent : m.description().joints[j].child);
}

Frame FloatingBase::frame(const std::string& name) const {
  const Mechanism& m = functions_.mechanism();
  const PlacedFrame* at = m.find_frame(name);
  if (!at) no_such_name("frame", name, m.frame_names());
  return {at->link, at->body, at->X, ExpressedIn::world_aligned};
}
Transform<double> FloatingBase::pose(const Vector& q, const Frame& frame) const {
  RowMajor X(4, 4);
  functions_.evaluate(Operation::pose, {q.data()}, X.data(), frame);
  return {X.topLeftCorner<3, 3>(), X.topRightCorner<3, 1>()};
}
Vector FloatingBase::with_momentum(const double* q, const Vector& v, const std::optional<Vector>& momentum) const {
  Vector moved(v.size());
  functions_.evaluate(Operation::momentum_velocity, {q, v.data(), momentum ? momentum->data() : nullptr}, moved.data());
  return moved;
}
Matrix FloatingBase::joint_columns(const Matrix& J) const {
  Matrix joints(J.rows(), J.cols() - 6);
  joints << J.leftCols(base_), J.rightCols(J.cols() - 6 - base_);
  return joints;
}

/// Linear equations A x = b of the joints' scaled velocities. Each block of rows is scaled to norm one; otherwise the small but correct rows of a
/// heavy base would be treated as rounding errors.
class FloatingBase::Equations {
 public:
  Equations(const FloatingBase& of, const double* q, const std::optional<Vector>& momentum)
      : units(of.joint_columns(Eigen::Map<const Eigen::RowVectorXd>(of.functions_.tree().unit, of.functions_.tree().nv))
                  .transpose()),
        A(0, units.size()),
        b(0),
        base_(of),
        q_(q),
        rest_(of.with_momentum(q, Vector::Zero(of.functions_.tree().nv), momentum)) {}

  void add_loops(const std::optional<double>& time) {
    const Tree& tree = base_.functions_.tree();
    if (tree.loops.rows == 0) return;
    std::vector<double> values(tree.loops.pfaffian_values);
    if (!values.empty()) base_.rows_(q_, values.data());
    const double* now = time ? &*time : nullptr;
    RowMajor J(tree.loops.rows, tree.nv);
    Vector c(tree.loops.rows);
    base_.functions_.evaluate(Operation::constraint_jacobian, {q_, now, values.data()}, J.data());
    base_.functions_.evaluate(Operation::constraint_velocity, {q_, now, values.data()}, c.data());
    add(base_.joint_columns(J), c);
  }
  void add_frame(const Frame& at, const std::vector<int>& components, const Vector& velocity) {
    RowMajor all(6, units.size());
    double drift[6];
    base_.functions_.evaluate(Operation::generalized_jacobian, {q_}, all.data(), at);
    base_.functions_.evaluate(Operation::velocity, {q_, rest_.data()}, drift, at);
    const auto count = static_cast<Eigen::Index>(components.size());
    Matrix J(count, units.size());
    Vector target(count);
    for (Eigen::Index r = 0; r < count; ++r) {
      const int k = components[static_cast<std::size_t>(r)];
      const double scale = k < 3 ? 1.0 : 1.0 / base_.functions_.tree().length;
      J.row(r) = scale * all.row(k), target(r) = scale * (velocity(r) - drift[k]);
    }
    add(J, target);
  }
  /// Return the velocity (nv) with scaled velocities x of the joints and a momentum.
  Vector velocity(const Vector& x, const std::optional<Vector>& momentum) const {
    const Vector joints = units.cwiseProduct(x);
    Vector v = Vector::Zero(x.size() + 6);
    v.head(base_.base_) = joints.head(base_.base_), v.tail(x.size() - base_.base_) = joints.tail(x.size() - base_.base_);
    return base_.with_momentum(q_, v, momentum);
  }

  const Vector units;
  Matrix A;
  Vector b;

 private:
  void add(Matrix J, const Vector& target) {
    J *= units.asDiagonal();
    const double norm = J.norm(), size = norm > 0.0 ? norm : 1.0;
    A.conservativeResize(A.rows() + J.rows(), units.size()), b.conservativeResize(A.rows());
    A.bottomRows(J.rows()) = J / size, b.tail(J.rows()) = target / size;
  }

  const FloatingBase& base_;
  const double* q_;
  Vector rest_;
};

Vector FloatingBase::resolved_rate(const double* q, const std::vector<FrameVelocity>& motions, const FloatingOptions& options,
                                   const std::optional<double>& time) const {
  Equations equations(*this, q, options.momentum);
  equations.add_loops(time);
  for (const FrameVelocity& motion : motions) equations.add_frame(frame(motion.frame), motion.components, motion.velocity);
  if (!options.still.empty()) equations.add_frame(body_, options.still, Vector::Zero(options.still.size()));
  const Matrix& A = equations.A;
  const Vector &b = equations.b, x = least_solution(A, b, dependent);
  const double missing = (A * x - b).norm();
  if (!(missing <= unreached * b.norm()))
    throw NoAnswer("no joint velocity produces these frame velocities" + resting(options.still) + ": the relative residual is " +
                   rounded("%.1g", missing / b.norm()) + "; see dynamic_singularity_map");
  return equations.velocity(x, options.momentum);
}

ReactionNullSpace FloatingBase::reaction_null_space(const double* q, const std::vector<int>& components,
                                                    const std::optional<double>& time) const {
  Equations equations(*this, q, {});
  equations.add_loops(time);
  equations.add_frame(body_, components, Vector::Zero(components.size()));
  const Vector s = singular_values(equations.A);
  const Matrix N = null_space(equations.A, s.size() ? count_above(s, dependent * s(0)) : 0);
  ReactionNullSpace result{Matrix(functions_.tree().nv, N.cols()), equations.units.asDiagonal() * product(N, N.transpose()) *
                                                                       equations.units.cwiseInverse().asDiagonal()};
  for (Eigen::Index k = 0; k < N.cols(); ++k) result.basis.col(k) = equations.velocity(N.col(k), {});
  return result;
}

FreeFloatingMotion FloatingBase::motion(const Vector& q, const JointVelocity& velocity, const std::vector<double>& times,
                                        double step, const std::optional<Vector>& momentum) const {
  if (!increasing(times)) throw std::invalid_argument("times must be finite and increasing; got " + shown(times));
  return integrated(
      q, [&](double t, const Vector& at) { return with_momentum(at.data(), velocity(t, at), momentum); }, times, step);
}

FreeFloatingMotion FloatingBase::integrated(Vector q, const JointVelocity& velocity, const std::vector<double>& times,
                                            double step) const {
  check_steps(times, step);
  const Tree& tree = functions_.tree();
  const auto n = static_cast<Eigen::Index>(times.size());
  Vector weight = Vector::Ones(tree.nv);  // weight 0: corrections of the drift off the loops do not move the base
  weight.segment<6>(base_).setZero();
  const auto moved = [&](const Vector& from, const Vector& by) {
    Vector to(from.size());
    functions_.evaluate(Operation::integrate, {from.data(), by.data()}, to.data());
    return to;
  };
  FreeFloatingMotion run{Eigen::Map<const Vector>(times.data(), n), RowMajor(n, tree.nq), RowMajor(n, tree.nv), RowMajor(n, 3)};
  const Mat3<double> back = pose(q, body_).R.transpose();
  for (Eigen::Index k = 0; k < n; ++k) {
    const int steps = k ? parts(run.t(k) - run.t(k - 1), step) : 0;
    const double h = k ? (run.t(k) - run.t(k - 1)) / steps : 0.0;
    for (int i = 0; i < steps; ++i) {
      if (check_interrupt_) check_interrupt_();
      const double t = run.t(k - 1) + i * h;
      const Vector k1 = h * velocity(t, q), half = moved(q, k1 / 2.0), k2 = h * velocity(t + h / 2.0, half);
      const Vector k3 = h * velocity(t + h / 2.0, moved(q, k2 / 2.0)), k4 = h * velocity(t + h, moved(half, k3 - k1 / 2.0));
      q = moved(q, (3.0 * k1 + 2.0 * k2 + 2.0 * k3 - k4) / 12.0);
      q = moved(q, (-k1 + 2.0 * k2 + 2.0 * k3 + 3.0 * k4) / 12.0);
      if (tree.loops.rows == 0) continue;
      const double end = t + h;
      std::vector<double> values(tree.loops.pfaffian_values);
      if (!values.empty()) rows_(q.data(), values.data());
      Vector closed(tree.nq);
      const double status =
          functions_.evaluate(Operation::configuration_by_mass, {q.data(), weight.data(), &end, values.data()}, closed.data());
      if (status != fine)
        throw NoAnswer("at " + rounded("%.4g", end) +
                       " s the loops are open: return velocities that satisfy the loops, or use a "
                       "shorter step");
      q = closed;
    }
    run.q.row(k) = q.transpose(), run.v.row(k) = velocity(run.t(k), q).transpose();
    run.base_rotation.row(k) = log(Mat3<double>(pose(q, body_).R * back)).transpose();
  }
  return run;
}

/// Path of a frame from waypoint to waypoint, at rest at each of them; 10 s^3 - 15 s^4 + 6 s^5 is the fraction of a segment completed at the time s.
class FloatingBase::Path {
 public:
  Path(const FloatingBase& of, const Vector& start, const WayPoints& way_points, const std::vector<double>& times)
      : name(way_points.frame),
        turns(way_points.turns),
        frame(of.frame(name)),
        poses(times.size(), of.pose(start, frame)),
        times_(times) {
    for (std::size_t k = 1; k < times.size(); ++k) {
      poses[k].p = way_points.poses[k - 1].p;
      if (turns) poses[k].R = way_points.poses[k - 1].R;
    }
  }
  /// Return the pose, and the velocity [angular; linear] in the world's axes.
  std::pair<Transform<double>, Vector> at(double t) const {
    const auto passed = std::upper_bound(times_.begin(), times_.end(), t) - times_.begin();
    const auto k =
        static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(passed - 1, 0, static_cast<std::ptrdiff_t>(times_.size()) - 2));
    const double duration = times_[k + 1] - times_[k], s = std::min((t - times_[k]) / duration, 1.0);
    const Vector by = between(poses[k], poses[k + 1]);
    const double fraction = s * s * s * (10.0 - 15.0 * s + 6.0 * s * s), rate = 30.0 * s * s * (1.0 - s) * (1.0 - s) / duration;
    const Vec3<double> turn = by.head<3>() * fraction, shift = by.tail<3>() * fraction;
    return {{rotation(exp(turn)) * poses[k].R, poses[k].p + shift}, by * rate};
  }

  const std::string name;
  const bool turns;
  const Frame frame;
  std::vector<Transform<double>> poses;

 private:
  const std::vector<double>& times_;
};

FreeFloatingMotion FloatingBase::path(const Vector& q, const std::vector<WayPoints>& way_points, const std::vector<double>& times,
                                      const FloatingOptions& options, double step, double tolerance) const {
  std::vector<double> arrivals = {0.0};
  arrivals.insert(arrivals.end(), times.begin(), times.end());
  if (times.empty() || !increasing(arrivals))
    throw std::invalid_argument("times must be the times of the waypoints, increasing and after 0; got " + shown(times));
  check_steps(arrivals, step);
  std::vector<Path> paths;
  Names names;
  for (const WayPoints& each : way_points) paths.emplace_back(*this, q, each, arrivals), names.push_back(each.frame);
  const double gain = 1.0 / (2.0 * step);  // gain: position errors decrease by the factor e in two steps
  const auto missed = [&](double t, const std::string& why) {
    const auto passed = std::lower_bound(arrivals.begin(), arrivals.end(), t) - arrivals.begin();
    const auto k = std::clamp<std::ptrdiff_t>(passed - 1, 0, static_cast<std::ptrdiff_t>(times.size()) - 1);
    return NotRealizable("waypoint " + std::to_string(k) + " of " + joined(names) + " is not reached" + resting(options.still) +
                         ": " + why);
  };
  const auto resolved = [&](double t, const Vector& now) {
    std::vector<FrameVelocity> motions;
    for (const Path& path : paths) {
      const auto [goal, twist] = path.at(t);
      const Vector corrected = twist + gain * between(pose(now, path.frame), goal);
      if (path.turns)
        motions.push_back({path.name, {0, 1, 2, 3, 4, 5}, corrected});
      else
        motions.push_back({path.name, {3, 4, 5}, corrected.tail(3)});
    }
    Vector v;
    try {
      v = resolved_rate(now.data(), motions, options, t);
    } catch (const NoAnswer& error) {
      throw missed(t, error.what());
    }
    if (const double most = (v * step).cwiseAbs().maxCoeff(); !(most < tolerances::longest_step))
      throw missed(t,
                   "at " + rounded("%.4g", t) + " s the joints would move by " + rounded("%.2g", most) +
                       " rad or m in one step, which is too far; use a shorter step, or a path farther from singular positions");
    return v;
  };

  std::vector<double> ends = {0.0};
  std::vector<std::size_t> arrived;
  for (std::size_t k = 0; k + 1 < arrivals.size(); ++k) {
    const int count = parts(arrivals[k + 1] - arrivals[k], step);
    for (int i = 1; i < count; ++i) ends.push_back(arrivals[k] + (arrivals[k + 1] - arrivals[k]) * i / count);
    ends.push_back(arrivals[k + 1]), arrived.push_back(ends.size() - 1);
  }
  const FreeFloatingMotion run = integrated(q, resolved, ends, step);
  const Transform<double> home = pose(q, body_);
  for (std::size_t k = 0; k < arrived.size(); ++k) {
    const Vector end = run.q.row(static_cast<Eigen::Index>(arrived[k])).transpose();
    for (const Path& path : paths) {
      const Vector off = between(pose(end, path.frame), path.poses[k + 1]).tail(path.turns ? 6 : 3).cwiseAbs();
      if (!(off.maxCoeff() <= tolerance))
        throw missed(times[k], "'" + path.name + "' is off by " + rounded("%.2g", off.maxCoeff()) + " rad or m");
    }
    const Vector turned = between(home, pose(end, body_));
    double moved = 0.0;
    for (const int r : options.still) moved = std::max(moved, std::abs(turned(r)));
    if (!(moved <= tolerance)) throw missed(times[k], "the base moves by " + rounded("%.2g", moved) + " rad or m");
  }
  return run;
}

}  // namespace sarrus
