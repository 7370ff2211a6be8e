#include "path_timing.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace sarrus {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double unlimited = 1e200;    // instead of infinity, which would give NaN in differences
constexpr double no_share_of_u =
    1e-9;  // |u| is at most about x / h, so that |a| below this fraction of |b| h changes a limit by a rounding error
constexpr double active_from = 0.999;   // use of a limit from which it is active
constexpr double slow = 1e-9;           // fraction of the largest x below which tangents of sqrt(x) are those at this fraction
constexpr double converged = 1e-9;      // change of x, as a fraction of the largest x
constexpr double rounding = 1e-12;     // relative error of u at which bounds agree

/// Bounds of one interval: low - slope x <= u <= high - slope x for each row, and bounds of x.
class Interval {
 public:
  double least = 0.0, most = infinity;  // of x
  int least_row = -1, most_row = -1;

  void clear() { rows_.clear(), least = 0.0, most = infinity, least_row = most_row = contradiction_ = -1; }

  /// Add |a u + b x + c| <= 1.
  void add(double a, double b, double c, double h, int name) {
    if (!std::isfinite(a + b + c)) {
      contradiction_ = name;  // the limit is so small that the division by it overflowed
    } else if (std::abs(a) > no_share_of_u * h * std::abs(b)) {
      const double low = (-1.0 - c) / a, high = (1.0 - c) / a;
      rows_.push_back({std::min(low, high), std::max(low, high), b / a, name});
    } else if (b != 0.0) {
      const double low = (-1.0 - c) / b, high = (1.0 - c) / b;
      if (std::min(low, high) > least) least = std::min(low, high), least_row = name;
      if (std::max(low, high) < most) most = std::max(low, high), most_row = name;
    } else if (std::abs(c) > 1.0) {
      contradiction_ = name;
    }
  }
  /// Keep x at the end of the interval between `lowest` and `highest`.
  void end_within(double lowest, double highest, double h) {
    rows_.push_back({lowest / (2.0 * h), highest / (2.0 * h), 1.0 / (2.0 * h), -1});
  }

  /// Bounds of u at x, and the rows that they are from.
  struct Bounds {
    double low, high;
    const int low_row, high_row;
  };
  Bounds at(double x) const {
    double low = -infinity, high = infinity;
    int low_row = 0, high_row = 0;
    for (int k = 0; k < static_cast<int>(rows_.size()); ++k) {
      const double drop = rows_[k].slope * x, lower = rows_[k].low - drop, upper = rows_[k].high - drop;
      if (lower > low) low = lower, low_row = k;
      if (upper < high) high = upper, high_row = k;
    }
    return {low, high, low_row, high_row};
  }

  /// Compute the interval of x for which some u exists. The width high - low of the bounds of u is concave and piecewise linear in x. Therefore Newton's
  /// method from outside reaches its zeros monotonically, in a finite number of steps. Returns false if there is no x, or if x is unbounded; `answer` then
  /// names the rows.
  bool feasible(double& lowest, double& highest, PathTiming& answer) const {
    if (contradiction_ >= 0) return fail(answer, contradiction_, contradiction_);
    if (most < least) return fail(answer, most_row, least_row);
    // the bounds for large x are the rows of largest and of smallest slope
    const auto slopes = [](const Row& r, const Row& s) { return r.slope < s.slope; };
    const auto [flat, steep] = std::minmax_element(rows_.begin(), rows_.end(), slopes);
    double x = most;
    if (steep->slope > flat->slope) x = std::min(x, std::max(least, (steep->high - flat->low) / (steep->slope - flat->slope)));
    if (std::isfinite(x) && !newton(x, 1.0, answer)) return false;
    if (!(x < unlimited / 2.0)) return answer.unbounded = true, false;
    highest = x, x = least;
    if (!newton(x, -1.0, answer)) return false;
    lowest = std::min(x, highest);
    return true;
  }

 private:
  struct Row {
    double low, high, slope;
    int name;
  };

  static bool fail(PathTiming& answer, int first, int second) { return answer.first = first, answer.second = second, false; }

  /// Move x against `direction`, to the first point where the bounds of u agree.
  bool newton(double& x, double direction, PathTiming& answer) const {
    for (;;) {
      const Bounds u = at(x);
      if (u.high - u.low >= -rounding * (std::abs(u.high) + std::abs(u.low))) return true;
      const Row &high = rows_[u.high_row], &low = rows_[u.low_row];
      const double slope = high.slope - low.slope, next = (high.high - low.low) / slope;
      if (!(direction * slope > 0.0) || next < least || next > most) return fail(answer, high.name, low.name);
      if (!(direction * (x - next) > 0.0)) return true;  // rounding
      x = next;
    }
  }

  std::vector<Row> rows_;
  int contradiction_ = -1;
};

/// Coefficients of one limit at a Bezier point of an interval.
struct Point {
  double a, b, c;
};

/// Return the Bezier points of column k in interval i.
std::array<Point, 3> bezier_points(const PathLimits& path, int i, int k) {
  const int m = path.scalars + 3 * path.vectors, at = 2 * i * m + k;
  std::array<Point, 3> f;
  for (int j = 0; j < 3; ++j)
    f[j] = {path.a[at + j * m] + j * path.lengths[i] * path.b[at + j * m], path.b[at + j * m], path.c[at + j * m]};
  f[1] = {2.0 * f[1].a - 0.5 * (f[0].a + f[2].a), 2.0 * f[1].b - 0.5 * (f[0].b + f[2].b), 2.0 * f[1].c - 0.5 * (f[0].c + f[2].c)};
  return f;
}

/// Add |a u + b x| <= 1 for vectors a and b: sides of a polygon inside the circle, in the plane of a and b.
void add_polygon(Interval& interval, const std::array<Point, 3>& f, double h, int name) {
  constexpr int sides = 64;  // of half a circle: the polygon's inner radius is 1 - 3e-4
  constexpr double step = 3.14159265358979323846 / sides;
  double aa = 0.0, ab = 0.0, bb = 0.0;
  for (const Point& p : f) aa += p.a * p.a, ab += p.a * p.b, bb += p.b * p.b;
  // the axes are along b, which is not zero where a is, and across it
  const double along = bb > 0.0 ? ab / std::sqrt(bb) : 0.0, across = std::sqrt(std::max(0.0, aa - along * along));
  for (int k = 0; k < sides; ++k) {
    const double x = std::cos(k * step) / std::cos(0.5 * step), y = std::sin(k * step) / std::cos(0.5 * step);
    interval.add(x * along + y * across, x * std::sqrt(bb), 0.0, h, name);
  }
}

void read(const PathLimits& path, int i, Interval& interval) {
  const double h = path.lengths[i];
  interval.clear();
  for (int k = 0; k < path.scalars; ++k)
    for (const Point& p : bezier_points(path, i, k)) interval.add(p.a, p.b, p.c, h, k);
  for (int k = 0; k < path.vectors; ++k) {
    std::array<std::array<Point, 3>, 3> axes;
    for (int j = 0; j < 3; ++j) axes[j] = bezier_points(path, i, path.scalars + 3 * k + j);
    for (int j = 0; j < 3; ++j) add_polygon(interval, {axes[0][j], axes[1][j], axes[2][j]}, h, path.scalars + k);
  }
}

PathTiming both_passes(const PathLimits& path, bool free_start, bool free_end) {
  const int n = path.intervals;
  PathTiming answer;
  Interval interval;
  std::vector<double> lowest(n + 1, 0.0), highest(n + 1, free_end ? unlimited : 0.0);
  for (int i = n - 1; i >= 0; --i) {
    read(path, i, interval);
    interval.end_within(lowest[i + 1], highest[i + 1], path.lengths[i]);
    if (!interval.feasible(lowest[i], highest[i], answer)) return answer.interval = i, answer;
  }
  if (!free_start && lowest[0] > 0.0) return answer.interval = 0, answer;
  std::vector<double> x(n + 1, free_start ? highest[0] : 0.0);
  for (int i = 0; i < n; ++i) {
    read(path, i, interval);
    interval.end_within(lowest[i + 1], highest[i + 1], path.lengths[i]);
    x[i + 1] = std::clamp(x[i] + 2.0 * path.lengths[i] * interval.at(x[i]).high, lowest[i + 1], highest[i + 1]);
    if (x[i] == 0.0 && x[i + 1] == 0.0) return answer.interval = i, answer;
  }
  answer.x = std::move(x);
  return answer;
}

/// Return the index of the limit that is used most in interval i, or -1 if it is not active.
int active_limit(const PathLimits& path, const std::vector<double>& x, int i) {
  const int m = path.scalars + 3 * path.vectors;
  const double u = (x[i + 1] - x[i]) / (2.0 * path.lengths[i]);
  double most = active_from;
  int limit = -1;
  for (int j = 0; j < 3; ++j) {
    const int at = (2 * i + j) * m;
    const double squared = x[i] + 0.5 * j * (x[i + 1] - x[i]);
    const auto f = [&](int k) { return path.a[at + k] * u + path.b[at + k] * squared + path.c[at + k]; };
    for (int k = 0; k < path.scalars + path.vectors; ++k) {
      const int first = path.scalars + 3 * (k - path.scalars);
      const double use = k < path.scalars ? std::abs(f(k)) : std::hypot(f(first), f(first + 1), f(first + 2));
      if (use > most) most = use, limit = k;
    }
  }
  return limit;
}

}  // namespace

PathTiming fastest_timing(const PathLimits& path, bool free_start, bool free_end) {
  const int n = path.intervals, samples = 2 * n + 1, m = path.scalars + 3 * path.vectors;
  PathLimits near = path;
  PathTiming answer = both_passes(near, free_start, free_end);
  std::vector<double> b, c;
  const auto linearised = [&](const std::vector<double>& x) {
    const double fastest = *std::max_element(x.begin(), x.end());
    b.assign(path.b, path.b + samples * m), c.assign(path.c, path.c + samples * m);
    for (int j = 0; j < samples; ++j) {
      const double root = std::sqrt(std::max(0.5 * (x[j / 2] + x[(j + 1) / 2]), slow * fastest));
      for (int k = j * m; k < (j + 1) * m; ++k) b[k] += 0.5 * path.d[k] / root, c[k] += 0.5 * path.d[k] * root;
    }
    near.b = b.data(), near.c = c.data();
    return both_passes(near, free_start, free_end);
  };
  for (int round = 0; path.d && round < 50 && answer.interval < 0; ++round) {
    std::vector<double> before = answer.x;
    const double fastest = *std::max_element(before.begin(), before.end());
    answer = linearised(before);
    // the tangents at a much too fast timing can have no solution; those at a slower one have
    for (int slower = 0; slower < 40 && answer.interval >= 0; ++slower) {
      for (double& x : before) x *= 0.25;
      answer = linearised(before);
    }
    double change = 0.0;
    for (int i = 0; i <= n && answer.interval < 0; ++i) change = std::max(change, std::abs(answer.x[i] - before[i]));
    if (change <= converged * fastest) break;
  }
  for (int i = 0; i < n && answer.interval < 0; ++i) answer.active.push_back(active_limit(near, answer.x, i));
  return answer;
}

}  // namespace sarrus
