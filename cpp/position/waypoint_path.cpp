#include "waypoint_path.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <stdexcept>

#include "../kernels/batch.hpp"
#include "../loops/path_motion.hpp"
#include "../loops/tolerances.hpp"
#include "../mobility/scaled_loops.hpp"

namespace sarrus {
namespace {

// if cos(angle / 2) is below this value, the angle is half a revolution; the sign of the quaternion, instead of rounding, then determines its direction
constexpr double half_turn = 1e-9;
constexpr double error_of_time_function = 1e-10;  // relative to the range of the coordinate

using Row3 = Eigen::Matrix<double, Eigen::Dynamic, 3, Eigen::RowMajor>;
using Mat = Eigen::Matrix3d;
using Vec = Vec3<double>;

template <class... Numbers> std::string message(const char* form, Numbers... numbers) {
  char text[400];
  std::snprintf(text, sizeof text, form, numbers...);
  return text;
}

NoAnswer too_far(int k) {
  return NoAnswer(
      message("waypoints %d and %d are too far apart for a path along the loops, or on different branches: add waypoints in "
              "between, for example by mechanism.follow",
              k, k + 1));
}

/// Change the signs of quaternions such that each quaternion is nearest to the previous one.
void unify_signs(const Mechanism& mechanism, RowMajor& q) {
  for (const int k : mechanism.quaternions()) {
    double sign = 1.0;
    for (Eigen::Index i = 1; i < q.rows(); ++i) {
      // the previous quaternion already has its sign, but the direction of half a turn depends on the signs of the caller
      if (sign * q.row(i - 1).segment<4>(k).dot(q.row(i).segment<4>(k)) < -half_turn) sign = -sign;
      q.row(i).segment<4>(k) *= sign;
    }
  }
}

/// Accelerations at both ends of a piece that rotates by x within h, for its angular velocities at both ends.
std::pair<Vec, Vec> accelerations(const Vec& x, double h, const Vec& first, const Vec& second) {
  const Vec rate = vector_rate(x, second), bend = (2.0 * first + 4.0 * rate - 6.0 / h * x) / h;
  Vec velocity, end;
  spin(x.data(), rate.data(), bend.data(), velocity.data(), end.data());
  return {(6.0 / h * x - 4.0 * first - 2.0 * rate) / h, end};
}

using Ends = std::function<std::pair<Vec, Vec>(int piece, const Vec& first, const Vec& second)>;

/// Return Newton's step (pieces + 1, 3) of the velocities w at waypoints, for the jumps `left` of the acceleration (pieces - 1, 3): block tridiagonal
/// equations, by elimination and substitution. `size`: magnitude of the velocities.
Row3 newton_step(const Ends& of, const Row3& w, const Row3& left, double size) {
  const int pieces = static_cast<int>(w.rows()) - 1;
  std::vector<Mat> ratio(pieces);
  Row3 step = Row3::Zero(pieces + 1, 3);
  Mat end_by_first = Mat::Zero(), end_by_second = Mat::Zero();
  for (int k = 0; k < pieces; ++k) {
    Mat start[2], end[2];
    for (int c = 0; c < 6; ++c) {
      Vec change[2] = {Vec::Zero(), Vec::Zero()};
      change[c / 3](c % 3) = size;
      const Vec first = w.row(k), second = w.row(k + 1);
      const auto ahead = of(k, first + change[0], second + change[1]), back = of(k, first - change[0], second - change[1]);
      start[c / 3].col(c % 3) = (ahead.first - back.first) / (2.0 * size);
      end[c / 3].col(c % 3) = (ahead.second - back.second) / (2.0 * size);
    }
    if (k > 0) {
      Mat pivot = end_by_second - start[0];
      Vec right = -left.row(k - 1).transpose();
      if (k > 1) pivot -= end_by_first * ratio[k - 1], right -= end_by_first * step.row(k - 1).transpose();
      const Mat inverse = pivot.inverse();
      ratio[k] = -inverse * start[1], step.row(k) = (inverse * right).transpose();
    }
    end_by_first = end[0], end_by_second = end[1];
  }
  for (int k = pieces - 2; k > 0; --k) step.row(k) -= (ratio[k] * step.row(k + 1).transpose()).transpose();
  return step;
}

/// Compute the angular velocities (n, 3) at all waypoints that make the angular acceleration continuous, by Newton's method. Each acceleration is at
/// most quadratic in the velocities at both ends of its piece, so that central differences are exact. All pieces are solved together, because errors
/// of a solution piece by piece (Kang and Park) grow from piece to piece. `x` (n - 1, 3): rotations; `w`: velocities at the first and last waypoint.
void solve_spins(const std::string& name, const Vector& t, const Row3& x, Row3& w) {
  const int pieces = static_cast<int>(x.rows());
  const Vector h = t.tail(pieces) - t.head(pieces);
  const auto speed = [&](int k) { return Vec(x.row(k).transpose() / h(k)); };
  const Ends of = [&](int k, const Vec& first, const Vec& second) { return accelerations(x.row(k), h(k), first, second); };
  for (int k = 1; k < pieces; ++k) w.row(k) = (speed(k - 1) + speed(k)).transpose() / 2.0;
  double size = w.cwiseAbs().maxCoeff();
  for (int k = 0; k < pieces; ++k) size = std::max(size, speed(k).cwiseAbs().maxCoeff());
  if (pieces == 1 || size == 0.0) return;
  const auto jumps = [&](const Row3& spins) {  // jump k - 1 is that of the acceleration at waypoint k
    Row3 all(pieces - 1, 3);
    Vec end;
    for (int k = 0; k < pieces; ++k) {
      const auto [starts, ends] = of(k, spins.row(k), spins.row(k + 1));
      if (k > 0) all.row(k - 1) = (end - starts).transpose();
      end = ends;
    }
    return all;
  };
  const auto measure = [&](const Row3& all) { return (h.tail(pieces - 1).cwiseInverse().asDiagonal() * all).norm(); };
  Row3 left = jumps(w);
  for (int iteration = 0; iteration < 100; ++iteration) {
    const Row3 step = newton_step(of, w, left, size);
    Row3 tried, jumped;
    for (double part = 1.0;; part /= 2.0) {
      tried = w + part * step, jumped = jumps(tried);
      if (measure(jumped) <= (1.0 - part / 4.0) * measure(left) || part < 1e-3) break;
    }
    if (!jumped.allFinite()) break;
    w = tried, left = jumped;
    if (step.cwiseAbs().maxCoeff() <= 1e-9 * size) return;  // quadratic convergence: the next step would be about 1e-18
  }
  Eigen::Index worst;
  const double angle = x.rowwise().norm().maxCoeff(&worst);
  throw NoAnswer("no smooth rotation of joint '" + name +
                 message("' through its waypoints was found: from waypoint %d to %d it rotates by %.3g rad within %.3g s; add "
                         "waypoints, or space "
                         "them more evenly in time",
                         static_cast<int>(worst), static_cast<int>(worst) + 1, angle, h(worst)));
}

/// Return the velocities (n, nv) that make the accelerations of all joints continuous.
RowMajor smooth_velocities(const Mechanism& mechanism, const Vector& t, const RowMajor& q, const RowMajor& ends) {
  Arena arena;
  const Tree& tree = mechanism.tree();
  const Chart chart(tree, arena);
  const Eigen::Index n = t.size();
  RowMajor rates = RowMajor::Zero(n, tree.nv), turns(n - 1, tree.nv), v(n, tree.nv);
  chart.rates(q.row(0).data(), ends.row(0).data(), rates.row(0).data());
  chart.rates(q.row(n - 1).data(), ends.row(1).data(), rates.row(n - 1).data());
  for (Eigen::Index k = 0; k + 1 < n; ++k) chart.difference(q.row(k).data(), q.row(k + 1).data(), turns.row(k).data());
  chart.each([&](const Link& b, bool ball, int count, int x, int first) {
    for (int i = 0; i < count; ++i) rates.col(x + i) = spline_slopes(t, q.col(first + i), rates(0, x + i), rates(n - 1, x + i));
    if (!ball) return;
    std::string name;
    for (std::size_t j = 0; j < mechanism.joints().size(); ++j)
      if (const auto& at = mechanism.joints()[j]; !at.closes_a_loop && at.nv > 0 && at.iv == b.iv)
        name = mechanism.description().joints[j].name;
    Row3 spins = rates.middleCols<3>(b.iv);
    solve_spins(name, t, turns.middleCols<3>(b.iv), spins);
    rates.middleCols<3>(b.iv) = spins;
  });
  for (Eigen::Index k = 0; k < n; ++k) chart.velocities(q.row(k).data(), rates.row(k).data(), v.row(k).data());
  v.row(0) = ends.row(0), v.row(n - 1) = ends.row(1);
  return v;
}

void check_on_loops(const ScaledLoops& loops, const Vector& t, const RowMajor& q, const RowsOfState& rows) {
  double worst = tolerances::given_closed;
  std::string fault;
  for (Eigen::Index k = 0; k < t.size(); ++k) {
    const Vector residual = loops.at(t(k), rows).residual(q.row(k).data());
    Eigen::Index row;
    if (const double off = residual.cwiseAbs().maxCoeff(&row); off > worst) {
      worst = off;
      fault = message("waypoint %d does not close the loops: '", static_cast<int>(k)) + loops.row_name(static_cast<int>(row)) +
              message(
                  "' is violated by %.3g (relative to the mechanism's length: %.1g; allowed: %g); project it by "
                  "mechanism.project_configuration(q), or from farther away by mechanism.assemble(near=q)",
                  residual(row) / loops.row_scale(row), off, tolerances::given_closed);
    }
  }
  if (!fault.empty()) throw NoAnswer(fault);
}

/// Close the loops of the waypoints to rounding, and return the guide without its velocities.
PathGuides guides_on_loops(const StateFunctions& functions, const Vector& t, RowMajor& q, const std::optional<RowMajor>& ends,
                           const RowsOfState& rows) {
  const Tree& tree = functions.tree();
  const Mechanism& mechanism = functions.mechanism();
  for (std::size_t i = 0; i < mechanism.constraints().size(); ++i) {
    const Constraint& c = tree.loops.constraint[mechanism.constraints()[i]];
    for (int r = 0; r < c.rows; ++r)
      if (!visit_constraint(c.kind, [r](const auto& kind) { return kind.holonomic(r); }))
        throw ModelError(
            "constraint '" + mechanism.constraint_name(static_cast<int>(i)) +
            "' constrains velocities only, so that reachable waypoints depend on the path; expected position constraints");
  }
  const ScaledLoops loops(functions, q.row(0).data(), t(0), rows);
  check_on_loops(loops, t, q, rows);
  for (Eigen::Index k = 0; k < t.size(); ++k) {
    const RowMajor start = q.row(k);
    if (functions.evaluate(Operation::configuration_plain, {start.data(), nullptr, &t(k)}, q.row(k).data()) != 0.0)
      throw NoAnswer(
          message("waypoint %d does not close the loops, and the projection onto them failed: try mechanism.assemble(near=q)",
                  static_cast<int>(k)));
  }
  unify_signs(mechanism, q);
  PathGuides guides{{}, Vector(tree.nv + tree.loops.rows), {}};
  guides.scale << loops.column_scale, loops.row_scale;
  Matrix previous;
  std::vector<Matrix> bases;
  Eigen::Index most = 0, least = tree.nv, at_most = 0;
  for (Eigen::Index k = 0; k < t.size(); ++k) {
    const ScaledLoops now = loops.at(t(k), rows);
    const Matrix J = now.jacobian(q.row(k).data());
    if (const bool last = k + 1 == t.size(); ends && (k == 0 || last)) {
      const Vector x = ends->row(last).transpose().cwiseQuotient(loops.column_scale);
      const double wrong = (product(J, x).col(0) - now.prescribed(q.row(k).data())).cwiseAbs().maxCoeff();
      if (wrong > tolerances::given_closed * std::max(1.0, x.lpNorm<Eigen::Infinity>()))
        throw NoAnswer(
            message("the velocity at the %s waypoint violates the loops: J v - c is up to %.3g; pass "
                    "mechanism.project_velocity(q, v), the nearest consistent velocity",
                    last ? "last" : "first", wrong));
    }
    bases.push_back(null_space(J, tolerances::present));
    if (bases.back().cols() > most) most = bases.back().cols(), at_most = k;
    least = std::min(least, bases.back().cols());
  }
  if (most > least)
    throw NoAnswer(
        message("at waypoint %d the loops allow %d independent motions, elsewhere %d: the loops lose rank at this waypoint, "
                "where branches meet; omit it, or pass another waypoint nearby",
                static_cast<int>(at_most), static_cast<int>(most), static_cast<int>(least)));
  guides.K.resize(t.size(), most * tree.nv);
  for (std::size_t k = 0; k < bases.size(); ++k) {
    if (k > 0) {
      // rotate each basis so that it is nearest to the previous basis, because an interpolation of the two must also be a basis
      const Matrix turn = transposed_product(bases[k], bases[k - 1]);
      const RightFactor factor = right_singular_vectors(turn);  // values are cosines
      if (factor.values.size() && factor.values.minCoeff() < 0.1) throw too_far(static_cast<int>(k) - 1);
      const Matrix lengthened = factor.V * factor.values.cwiseInverse().asDiagonal();
      bases[k] = product(bases[k], product(turn, product(lengthened, factor.V.transpose())));
    }
    Eigen::Map<RowMajor>(guides.K.row(k).data(), most, tree.nv) = bases[k].transpose();
  }
  return guides;
}

/// Return the times with `pieces` equal intervals in each of their intervals.
Vector divided(const Vector& t, int pieces) {
  const Eigen::Index n = t.size();
  Vector times((n - 1) * pieces + 1);
  for (Eigen::Index k = 0; k + 1 < n; ++k)
    for (int i = 0; i < pieces; ++i) times(k * pieces + i) = t(k) + (t(k + 1) - t(k)) * i / pieces;
  times(times.size() - 1) = t(n - 1);
  return times;
}

}  // namespace

Vector spline_slopes(const Vector& t, const Vector& y, double first, double last) {
  // solves h[i] d[i-1] + 2 (h[i-1] + h[i]) d[i] + h[i-1] d[i+1] = 3 (h[i] secant[i-1] + h[i-1] secant[i]) by elimination and substitution, without
  // pivots
  const Eigen::Index n = t.size() - 1;
  const Vector h = t.tail(n) - t.head(n), secant = (y.tail(n) - y.head(n)).cwiseQuotient(h);
  Vector d(n + 1), ratio = Vector::Zero(n), right_side(n);
  d(0) = right_side(0) = first, d(n) = last;
  for (Eigen::Index i = 1; i < n; ++i) {
    const double pivot = 2.0 * (h(i - 1) + h(i)) - h(i) * ratio(i - 1);
    ratio(i) = h(i - 1) / pivot;
    right_side(i) = (3.0 * (h(i) * secant(i - 1) + h(i - 1) * secant(i)) - h(i) * right_side(i - 1)) / pivot;
  }
  for (Eigen::Index i = n - 1; i > 0; --i) d(i) = right_side(i) - ratio(i) * d(i + 1);
  return d;
}

namespace {

void check_size(const char* name, const RowMajor& x, Eigen::Index rows, Eigen::Index columns) {
  if (x.rows() != rows || x.cols() != columns)
    throw std::invalid_argument(message("%s of a path must be (%d, %d); got (%d, %d)", name, static_cast<int>(rows),
                                        static_cast<int>(columns), static_cast<int>(x.rows()), static_cast<int>(x.cols())));
  if (!x.allFinite()) throw std::invalid_argument(message("%s of a path must be finite", name));
}

}  // namespace

Path::Path(const StateFunctions& f, Vector times, RowMajor waypoints, RowMajor velocities,
           std::optional<PathGuides> spline_guides)
    : functions(f), t(std::move(times)), q(std::move(waypoints)), v(std::move(velocities)), guides(std::move(spline_guides)) {
  const Tree& tree = f.tree();
  const Eigen::Index n = t.size();
  if (n < 2) throw std::invalid_argument(message("a path needs at least two waypoints; got %d", static_cast<int>(n)));
  check_size("q", q, n, tree.nq), check_size("v", v, n, tree.nv);
  for (Eigen::Index k = 0; k + 1 < n; ++k)
    if (!(t(k) < t(k + 1))) throw ModelError(message("times of a path must increase; got %.9g and then %.9g", t(k), t(k + 1)));
  starts_.assign(t.begin() + 1, t.end() - 1);
  starts_.push_back(std::nextafter(t(n - 1), std::numeric_limits<double>::infinity()));
  pieces_.resize(n, PathPiece::size(tree));
  if (guides) guide_rows_ = RowMajor::Zero(n, PathGuide::size(tree.nv));
  for (Eigen::Index k = 0; k < n; ++k) {
    const Eigen::Index to = k + 1 < n ? k + 1 : n - 2;
    const RowMajor& at_waypoints = guides ? guides->v : v;
    pieces_.row(k) << q.row(k), at_waypoints.row(k), q.row(to), at_waypoints.row(to), t(k), t(to);
    if (!guides) continue;
    const Eigen::Index size = guides->K.cols();
    guide_rows_(k, 0) = static_cast<double>(size / std::max(tree.nv, 1));
    guide_rows_.row(k).segment(1, size) = guides->K.row(k), guide_rows_.row(k).segment(1 + size, size) = guides->K.row(to);
  }
}

Path Path::through(const StateFunctions& functions, const Vector& t, RowMajor q, const std::optional<RowMajor>& ends,
                   const RowsOfState& rows) {
  const Mechanism& mechanism = functions.mechanism();
  const Tree& tree = mechanism.tree();
  const RowMajor end_velocities = ends ? *ends : RowMajor(RowMajor::Zero(2, tree.nv));
  check_size("q", q, t.size(), tree.nq), check_size("the velocities at both ends", end_velocities, 2, tree.nv);
  for (Eigen::Index k = 0; k < t.size(); ++k) {
    if (!sound_quaternions(mechanism, true, q.row(k).data()))
      throw NoAnswer(message("waypoint %d: a quaternion is [0, 0, 0, 0]; expected a rotation", static_cast<int>(k)));
    const RowMajor raw = q.row(k);
    functions.evaluate(Operation::normalize, {raw.data()}, q.row(k).data());
  }
  unify_signs(mechanism, q);
  Path(functions, t, q, RowMajor::Zero(t.size(), tree.nv));  // checks the times
  if (tree.loops.rows == 0) return {functions, t, q, smooth_velocities(mechanism, t, q, end_velocities)};
  PathGuides guides = guides_on_loops(functions, t, q, ends, rows);
  guides.v = smooth_velocities(mechanism, t, q, end_velocities);
  const RowMajor on_path = Path(functions, t, q, guides.v, guides).at(t);
  Path path(functions, t, q, on_path.middleCols(tree.nq, tree.nv), guides);
  path.check_continuity();
  return path;
}

int Path::piece(double time) const {
  return static_cast<int>(std::upper_bound(starts_.begin(), starts_.end(), time) - starts_.begin());
}

void Path::at(double time, double* out) const {
  const int k = piece(time);
  functions.evaluate(
      Operation::path_motion,
      {pieces_.row(k).data(), guides ? guides->scale.data() : nullptr, guides ? guide_rows_.row(k).data() : nullptr, &time}, out);
  if (!guides || out[functions.tree().nq + 2 * functions.tree().nv] == 0.0) return;
  const double first = t(0), last = t(t.size() - 1);
  if (first <= time && time <= last) throw too_far(k);
  throw NoAnswer(
      message("at t = %.9g s the loops cannot close: the waypoints are from %.9g s to %.9g s, and the path is extrapolated", time,
              first, last));
}

RowMajor Path::at(const Vector& times) const {
  const int size = functions.tree().nq + 2 * functions.tree().nv;
  std::vector<double> numbers(size + 1);
  RowMajor all(times.size(), size);
  for (Eigen::Index i = 0; i < times.size(); ++i)
    at(times(i), numbers.data()), all.row(i) = Eigen::Map<const Vector>(numbers.data(), size).transpose();
  return all;
}

/// Raise NoAnswer if the loops cannot close along the path, or the path jumps to another branch, before a controller uses it. A jump is detected by
/// cubic interpolation: its error in the middle of a piece does not vanish with the length of the pieces.
void Path::check_continuity() const {
  const Tree& tree = functions.tree();
  const Vector times = divided(t, 8);
  std::vector<std::pair<double, double>> pieces;
  for (Eigen::Index k = 0; k + 1 < times.size(); ++k) pieces.push_back({times(k), times(k + 1)});
  std::vector<double> motion(tree.nq + 2 * tree.nv + 1);
  Vector off(tree.nv);
  RowMajor input(1, PathPiece::size(tree));
  for (int halving = 0; halving < 10; ++halving) {
    std::vector<std::pair<double, double>> rough;
    for (const auto& [first, last] : pieces) {
      const double middle = (first + last) / 2.0;
      const RowMajor states = at(Vector(Eigen::Vector3d(first, last, middle)));
      input << states.row(0).head(tree.nq + tree.nv), states.row(1).head(tree.nq + tree.nv), first, last;
      functions.evaluate(Operation::path_motion, {input.data(), nullptr, nullptr, &middle}, motion.data());
      functions.evaluate(Operation::difference, {motion.data(), states.row(2).data()}, off.data());
      if (off.cwiseQuotient(guides->scale.head(tree.nv)).lpNorm<Eigen::Infinity>() > 1e-4)
        rough.push_back({first, middle}), rough.push_back({middle, last});
    }
    if (rough.empty()) return;
    pieces = std::move(rough);
  }
  const double first = std::min_element(pieces.begin(), pieces.end())->first;
  throw too_far(static_cast<int>(std::upper_bound(t.begin(), t.end(), first) - t.begin()) - 1);
}

std::pair<Vector, RowMajor> Path::time_function(int coordinate, double size) const {
  const int nq = functions.tree().nq, nv = functions.tree().nv;
  for (int count = 4;; count *= 2) {
    const Vector times = divided(t, 2 * count);
    const RowMajor motion = at(times);
    RowMajor values(times.size(), 3);  // value, rate and acceleration of the coordinate
    Vector rate(nq), bend(nq);
    for (Eigen::Index i = 0; i < times.size(); ++i) {
      const double *x = motion.row(i).data(), *velocity = x + nq;
      functions.evaluate(Operation::coordinate_rate, {x, velocity}, rate.data());
      functions.evaluate(Operation::coordinate_acceleration, {x, velocity, velocity + nv}, bend.data());
      values.row(i) << x[coordinate], rate(coordinate), bend(coordinate);
    }
    const Eigen::Index n = times.size() / 2;  // pieces; the time function is linear before and after them
    Vector starts(n + 2);
    RowMajor rows = RowMajor::Zero(n + 2, 6);
    double error = 0.0;
    starts(0) = times(0), starts(n + 1) = times(2 * n);
    rows.row(0).head<2>() = values.row(0).head<2>(), rows.row(n + 1).head<2>() = values.row(2 * n).head<2>();
    for (Eigen::Index k = 0; k < n; ++k) {
      const double h = times(2 * k + 2) - times(2 * k), half = times(2 * k + 1) - times(2 * k);
      const Eigen::RowVector3d start = values.row(2 * k), end = values.row(2 * k + 2);
      // value, rate and acceleration at the end of the piece, minus those of the quadratic polynomial that continues from its beginning
      const double x = end(0) - start(0) - h * (start(1) + h * start(2) / 2.0), r = (end(1) - start(1) - h * start(2)) * h,
                   b = (end(2) - start(2)) * h * h;
      starts(k + 1) = times(2 * k);
      rows.row(k + 1) << start(0), start(1), start(2) / 2.0, (10.0 * x - 4.0 * r + b / 2.0) / std::pow(h, 3),
          (-15.0 * x + 7.0 * r - b) / std::pow(h, 4), (6.0 * x - 3.0 * r + b / 2.0) / std::pow(h, 5);
      double interpolated = 0.0;
      for (int i = 5; i >= 0; --i) interpolated = interpolated * half + rows(k + 1, i);
      error = std::max(error, std::abs(interpolated - values(2 * k + 1, 0)));
    }
    const double range = values.col(0).maxCoeff() - values.col(0).minCoeff();
    if (error <= error_of_time_function * std::max(range, 1e-3 * size) || count >= 256) return {starts, rows};
  }
}

}  // namespace sarrus
