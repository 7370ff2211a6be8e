// Impulses p of contacts, stops and dry friction of joints, whose velocities are u = G p + w:
//
//   contact (rows n, t1, t2)   K* contains u + mu |u_t| n, perpendicular to p in K = {|p_t| <= mu p_n}        (De Saxce 1992)
//   interval (one row)         p in [lo, hi]: u >= 0 at lo, u <= 0 at hi, u = 0 between
//   moments (of a contact)     one row about its normal, or two about its tangents: |m| <= mu_m p_n, another cone with the same p_n
//   floor                      K without the part below p_n = c: at p_n = c, u_n >= 0, and friction is at most mu c
//
// u may also be accelerations. Then a contact that already slips along d has the friction p_t = -mu p_n d; the conditions for u_n and p_n are the
// same.
//
// With moments, K is the intersection of the contact's cones, and its dual is K* = {u_n >= sum of mu |u_t|}, the sum over all its frictions. De
// Saxce's shift is that sum, including rotation. With this shift the solution satisfies p_n u_n = 0, and each friction is the most dissipative one in
// its disk. A smaller shift would lift a spinning or rolling body at the speed mu |u_t|.
//
// G is symmetric and positive semidefinite, of any rank: four points of a rigid foot are twelve rows of rank six. w contains target values of the
// normal velocity. At a solution the natural map r = p - proj(p - u - mu |u_t| n) vanishes. Its unit is m/s, because each row is weighted by its
// inverse mass; so it has the same meaning for bodies of any mass. A solution is accepted if r is at most `reached` times the largest w. Rotations
// are converted to m/s by their energy, relative to the energy of their contact or to the mean of all intervals, so that radians and metres are not
// compared.
//
// The solver first tries the impulses of least norm, which solve the problem if all contacts rest as in the previous step (cone_newton.hpp). Then it
// runs up to three stages, each for problems that the previous stage does not solve:
//
//   proximal   Newton on Alart and Curnier's function (1991) for G + eps, w - eps p_ref, whose friction is unique; p_ref follows p
//   interior   primal-dual path with Nesterov and Todd's scaling; De Saxce's shift and its derivatives in every step. For feet at the limit of
//              friction, where Newton methods are slow; for Painleve's impacts, where their steps have the wrong direction; for many points on
//              few bodies, where a delayed shift oscillates around the solution. First with the longest steps (Mehrotra's), then near the path
//   sweeps     over exact solutions of single contacts, from zero; then Newton
//
// At last the first stage is repeated, from a stronger to a weaker regularisation: if velocities are consistent only to rounding, impulses must grow by
// many orders along the null space of G before the active set changes.
//
// Forces are not unique if G is singular. Velocities are unique except in Painleve's problems; for these, the stages usually find the solution near
// the initial guess. (Acary, Bremond and Huber 2018 compare methods: none solves all problems. Therefore the result has a status.)
//
// Each stage is a class in its own file, derived from the stage before. This file contains the scaled problem; cone_newton.hpp the first stage and
// the impulses of least norm; cone_interior.hpp and cone_sweeps.hpp the other stages; cone_solver.hpp tries them in order.
#pragma once

#include <algorithm>
#include <cmath>

#include "../mechanism/arena.hpp"
#include "../simd/dense.hpp"
#include "contact_kernels.hpp"

namespace sarrus {

namespace cones {
/// Largest natural map of a solution, relative to the largest w. It is a hundred thousand times eps, so that the rounding errors of a G with many
/// rows remain below it.
constexpr double reached = 1e-10;
}  // namespace cones

/// Limit of the solver's work. The solver stops if its cost exceeds it, or if the caller requests this. All problems of a time step share one limit.
struct SolverLimit {
  bool (*stops)(void* self) = nullptr;
  void* self = nullptr;
  /// Number of multiplications and additions that factorisations may still use. The initial value suffices for 150 factorisations of a thousand rows,
  /// which take ten seconds.
  double operations = 5e10;
  double unchecked = 0.0;  // operations since the last call of stops()
  bool interrupted = false, exhausted = false;

  bool over() const { return interrupted || exhausted; }
  /// Return true if one factorisation of this number of rows is within the limit.
  bool allows(double rows) { return exhausted |= rows * rows * rows / 3.0 > operations, !over(); }
  /// Subtract the cost of a factorisation. Returns true if the solver may continue.
  bool spend(double rows) {
    if (!allows(rows)) return false;
    operations -= rows * rows * rows / 3.0;
    if (rows > 30.0 && stops) interrupted = stops(self);
    return !over();
  }
  /// Return a function that large factorisations call several times per second; it returns true if they must stop.
  auto within() {
    return [this](double done) {
      if (stops && (unchecked += done) > 1e8) unchecked = 0.0, interrupted |= stops(self);
      return interrupted;
    };
  }
};

/// Project y onto the cone {|p_t| <= mu p_n}.
template <class T> SARRUS_INLINE void project_on_cone(const T& mu, const T* y, T* x) {
  const T t = sqrt(y[1] * y[1] + y[2] * y[2]), along = most((y[0] + mu * t) / (T(1.0) + mu * mu), T(0.0));
  // also compare y_n with zero: if mu = 0 and y_t = 0, |y_t| <= mu y_n is true even for a negative y_n
  const auto outside = most(t - mu * y[0], -y[0]) > T(0.0);
  const T share = select(outside, mu * along / select(t > T(0.0), t, T(1.0)), T(1.0));
  x[0] = select(outside, along, y[0]), x[1] = share * y[1], x[2] = share * y[2];
}

/// Friction disk of a contact or moment: the rows with |p| <= mu p_n.
struct FrictionDisk {
  double mu;
  int normal, first, rows;
  const double* slips;  // direction in which the contact already slips; null if it does not slip

  double length(const double* x) const {
    x += first;
    return rows == 1 ? std::abs(*x) : std::sqrt(x[0] * x[0] + x[1] * x[1]);
  }
};

/// Project onto the intersection of several cones with a common p_n >= `floor`. The sum of squares is minimal at the zero of f(x) = x - y_n - sum of
/// mu max(|y_t| - mu x, 0), which is increasing and concave. Therefore Newton's method, started left of the zero, reaches it after at most one step
/// per cone.
inline void project_on_cones(int count, const FrictionDisk* disk, double floor, const double* y, double* x) {
  double normal = floor;
  for (int k = 0; k <= count; ++k) {
    double right = y[disk->normal], slope = 1.0;
    for (int i = 0; i < count; ++i)
      if (const double t = disk[i].length(y), mu = disk[i].mu; !disk[i].slips && t > mu * normal)
        right += mu * t, slope += mu * mu;
    normal = std::max(normal, right / slope);
  }
  x[disk->normal] = normal;
  for (int i = 0; i < count; ++i) {
    const double t = disk[i].length(y), most = disk[i].mu * normal, share = t <= most ? 1.0 : most / t;
    for (int r = 0, k = disk[i].first; r < disk[i].rows; ++r, ++k) x[k] = disk[i].slips ? -most * disk[i].slips[r] : share * y[k];
  }
}

/// The problem in scaled variables: p = size scale p', u = size u' / scale. The members are p', G' = scale G scale, whose diagonal blocks have a mean
/// of one, and w', which is at most one. Each contact and each moment has one scale, so that cones remain cones.
class ScaledCones {
 public:
  ScaledCones(const ConeProblem& problem, Arena& arena, SolverLimit& limit)
      : arena_(arena),
        limit_(limit),
        n_(problem.rows),
        contacts_(problem.contacts),
        moments_(problem.moments),
        ends_at_(problem.first_interval()),
        mu_(problem.friction),
        slip_(problem.slip),
        floor_(nullptr),
        slips_(problem.slip) {
    G_ = take(n_ * n_), w_ = take(n_), scale_ = take(n_), weight_ = take(n_), low_ = take(intervals()), high_ = take(intervals());
    double* fast = take(n_);  // speed along each row: the larger of the speeds without impulses and with the lower bounds of p_n
    for (int i = 0; i < n_; ++i) {
      double u = problem.w[i];
      for (int k = 0; k < contacts_ && problem.floor; ++k) u += problem.G[i * n_ + 3 * k] * problem.floor[k];
      fast[i] = std::max(std::abs(problem.w[i]), std::abs(u));
    }
    // compare only rows of one type: translations with translations, rotations with rotations
    double most = 1.0;
    const auto compare = [&](int first, int end) {
      most = 0.0;
      for (int i = first; i < end; ++i) most = std::max(most, problem.G[i * n_ + i]);
      if (most == 0.0) most = 1.0;  // no row can move
    };
    const auto scale = [&](int first, int rows) {
      double sum = 0.0;
      for (int i = first; i < first + rows; ++i) sum += problem.G[i * n_ + i];
      for (int i = first; i < first + rows; ++i) {
        scale_[i] = 1.0 / std::sqrt(std::max(sum / rows, 1e-12 * most));
        size_ = std::max(size_, scale_[i] * fast[i]);
      }
    };
    double mean = 0.0;
    compare(0, 3 * contacts_);
    for (int i = 0; i < contacts_; ++i) scale(3 * i, 3), mean += square(scale_[3 * i]) / contacts_;
    compare(3 * contacts_, ends_at_);
    moment_ = arena.take<FrictionDisk>(moments_);
    int at = 3 * contacts_;
    for (int i = 0; i < moments_; ++i) {
      const MomentFriction& m = problem.moment[i];
      const bool turns = m.slip[0] != 0.0 || m.slip[1] != 0.0;
      scale(at, m.rows), slips_ |= turns;
      moment_[i] = {m.friction * scale_[3 * m.contact] / scale_[at], 3 * m.contact, at, m.rows, turns ? m.slip : nullptr};
      at += m.rows;
    }
    compare(ends_at_, n_);
    for (; at < n_; ++at) scale(at, 1);
    // the unit is m/s, also for rotations
    double speed = 1e-300;
    std::copy(scale_, scale_ + n_, weight_);
    for (int i = 0; i < moments_; ++i)
      for (int r = moment_[i].first; r < moment_[i].first + moment_[i].rows; ++r) weight_[r] = scale_[moment_[i].normal];
    if (contacts_) std::fill(weight_ + ends_at_, weight_ + n_, std::sqrt(mean));
    for (int i = 0; i < n_; ++i) speed = std::max(speed, fast[i] * scale_[i] / weight_[i]);
    if (size_ == 0.0) size_ = speed = 1.0;
    for (int i = 0; i < n_; ++i) {
      w_[i] = problem.w[i] * scale_[i] / size_, weight_[i] = size_ / weight_[i];
      scale_row(problem.G + i * n_, scale_[i], G_ + i * n_);
    }
    for (int i = 0; i < intervals(); ++i) {
      const double unit = size_ * scale_[ends_at_ + i];
      low_[i] = bounded(problem.low[i]) ? problem.low[i] / unit : -cones::unbounded;
      high_[i] = bounded(problem.high[i]) ? problem.high[i] / unit : cones::unbounded;
    }
    if (problem.floor) floor_ = take(contacts_);
    for (int i = 0; i < contacts_ && floor_; ++i) floor_[i] = problem.floor[i] / (size_ * scale_[3 * i]);
    tolerance_ = cones::reached * speed;
    u_ = take(n_), K_ = take(n_ * n_);
  }

 protected:
  double* take(int count) { return arena_.take<double>(static_cast<std::size_t>(count)); }
  /// Multiply the entries of a row by the scales of the columns and of the row.
  void scale_row(const double* from, double scale, double* to) const {
    using Wide = WideDoubles;
    constexpr int width = sizeof(Wide) / sizeof(double);
    int j = 0;
    for (; j + width <= n_; j += width)
      *reinterpret_cast<Wide*>(to + j) =
          *reinterpret_cast<const Wide*>(from + j) * scale * *reinterpret_cast<const Wide*>(scale_ + j);
    for (; j < n_; ++j) to[j] = from[j] * scale * scale_[j];
  }
  int intervals() const { return n_ - ends_at_; }
  static bool bounded(double end) { return std::abs(end) < 0.1 * cones::unbounded; }
  void give(const double* from, double* p) const {
    for (int i = 0; i < n_; ++i) p[i] = from[i] * size_ * scale_[i];
  }
  void velocities(const double* p, double* u) const {
    for (int i = 0; i < n_; ++i) u[i] = w_[i] + scalar_product(G_ + i * n_, p, n_);
  }
  static double length(const double* t) { return std::sqrt(t[0] * t[0] + t[1] * t[1]); }
  double floor_of(int normal) const { return floor_ ? floor_[normal / 3] : 0.0; }
  /// Return the direction in which a contact already slips, or null.
  const double* slipping(int i) const {
    return slip_ && (slip_[2 * i] != 0.0 || slip_[2 * i + 1] != 0.0) ? slip_ + 2 * i : nullptr;
  }

  /// Project onto the cones and intervals.
  void project(const double* y, double* x) const {
    for (int i = 0; i < contacts_; ++i) {
      const double* from = y + 3 * i;
      double* to = x + 3 * i;
      if (const double* d = slipping(i)) {
        to[0] = std::max(from[0], 0.0), to[1] = -mu_[i] * to[0] * d[0], to[2] = -mu_[i] * to[0] * d[1];
        continue;
      }
      project_on_cone(mu_[i], from, to);
    }
    if (moments_ == 0 && !floor_) return project_on_intervals(y, x);
    for (int i = 0, m = 0; i < contacts_; ++i) {  // if a contact has moments, project onto the intersection of all its cones
      FrictionDisk all[3] = {{mu_[i], 3 * i, 3 * i + 1, 2, slipping(i)}};
      int count = 1;
      while (m < moments_ && moment_[m].normal == 3 * i) all[count++] = moment_[m++];
      if (count > 1 || floor_of(3 * i) > 0.0) project_on_cones(count, all, floor_of(3 * i), y, x);
    }
    project_on_intervals(y, x);
  }
  void project_on_intervals(const double* y, double* x) const {
    for (int i = 0, k = ends_at_; k < n_; ++i, ++k) x[k] = std::min(std::max(y[k], low_[i]), high_[i]);
  }
  void add_shift(double* u) const {
    for (int i = 0; i < contacts_; ++i)
      if (!slipping(i)) u[3 * i] += mu_[i] * length(u + 3 * i + 1);
    for (int m = 0; m < moments_; ++m)
      if (!moment_[m].slips) u[moment_[m].normal] += moment_[m].mu * moment_[m].length(u);
  }
  /// Add the derivatives of De Saxce's shifts to K, which contains the derivatives of the velocities.
  void add_rate_of_shift(const double* p) {
    velocities(p, u_);
    for (int i = 0; i < contacts_; ++i)
      if (const double t = length(u_ + 3 * i + 1); t > 0.0)
        for (int r = 3 * i + 1; r < 3 * i + 3; ++r)
          for (int k = 0; k < n_; ++k) K_[3 * i * n_ + k] += mu_[i] * u_[r] / t * G_[r * n_ + k];
    for (const FrictionDisk* m = moment_; m < moment_ + moments_; ++m)
      if (const double t = m->length(u_); t > 0.0)
        for (int r = m->first; r < m->first + m->rows; ++r)
          for (int k = 0; k < n_; ++k) K_[m->normal * n_ + k] += m->mu * u_[r] / t * G_[r * n_ + k];
  }
  /// Return the larger of two values [m/s]: the largest entry of the natural map, and the rounding error of the velocities that the impulses cause.
  /// The second value matters if impulses are so large that the velocities are smaller than their rounding errors.
  double natural_map(const double* p) {
    const Arena::Scope scope(arena_);
    double *y = take(n_), *x = take(n_), most = 0.0, sum = 0.0;
    velocities(p, y), add_shift(y);
    for (int i = 0; i < n_; ++i) y[i] = p[i] - y[i], sum += std::abs(y[i]);
    if (!finite_bits(sum)) return cones::unbounded;
    project(y, x);
    for (int i = 0; i < n_; ++i) most = std::max(most, std::max(std::abs(p[i] - x[i]), 2e-16 * std::abs(p[i])) * weight_[i]);
    return most;
  }
  double size_of(const double* p) const {
    double most = 0.0;
    for (int i = 0; i < n_; ++i) most = std::max(most, std::abs(p[i]) * weight_[i]);
    return most;
  }

  Arena& arena_;
  SolverLimit& limit_;
  int n_, contacts_, moments_, ends_at_, iterations_ = 0;  // ends_at_: index of the first row of intervals
  const double *mu_, *slip_;
  double* floor_;
  bool slips_;  // true if some contact already slips
  FrictionDisk* moment_;
  double *G_, *w_, *scale_, *weight_, *low_, *high_, size_ = 0.0, tolerance_ = 0.0;
  double *u_, *K_;  // memory for all stages: velocities, and a matrix
};

}  // namespace sarrus
