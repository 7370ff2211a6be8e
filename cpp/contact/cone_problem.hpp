// Which impulses p contacts, stops and dry friction of joints give, of which the velocities are u = G p + w:
//
//   contact (rows n, t1, t2)   K* contains u + mu |u_t| n, perpendicular to p in K = {|p_t| <= mu p_n}        (De Saxce 1992)
//   interval (one row)         p in [lo, hi]: u >= 0 at lo, u <= 0 at hi, u = 0 between
//   moments (of a contact)     of one row about its normal, or two across it: |m| <= mu_m p_n, one more cone with the same p_n
//   floor                      K without what is below p_n = c: u_n >= 0 there, friction of up to mu c
//
// and, where u are accelerations of contacts that slip already, along d: p_t = -mu p_n d, u_n and p_n as before.
//
// With moments K is the intersection of a contact's cones, whose dual is K* = {u_n >= sum of mu |u_t|, the sum over its frictions}, and De Saxce's
// shift the sum of all mu |u_t|, turning included: with that, and that alone, u_n >= 0 is perpendicular to p_n, and each friction is the most
// dissipative one of its disk. A shift of less would lift what spins or rolls, by mu |u_t|.
//
// G is symmetric and positive semidefinite, of any rank: four points of a rigid foot are twelve rows of rank six. What the normal velocity is to
// be instead of zero stands in w. A solution is where the natural map r = p - proj(p - u - mu |u_t| n) vanishes; it is told in m/s, each row
// weighed by its own inverse mass, so that it means the same of bodies of any mass, and is reached where it is `reached` of the largest w.
// Three stages, each from where the last one helps:
//
//   proximal   Newton on Alart and Curnier's function (1991) of the problem with G + eps, w - eps p_ref, whose friction is unique; p_ref follows
//   interior   primal-dual path with Nesterov and Todd's scaling, De Saxce's shift and its rates in every step: feet at the limit of their
//              friction, where every Newton method crawls, Painleve's impacts, where it is led the wrong way, and many points on few
//              bodies, where a shift that only follows turns around the answer; first in steps as long as they go (Mehrotra's), then
//              near the path
//   sweeps     over exact solutions of one contact, from zero, then Newton
//
// Forces are not unique where G is singular, velocities are but in Painleve's cases: there the answer is the one near the start, if it is found
// from there. (Acary, Bremond and Huber 2018 compare methods: none solves all; so there is a status.)
#pragma once

#include <algorithm>
#include <cmath>

#include "../mechanism/arena.hpp"
#include "../simd/dense.hpp"
#include "contact_kernels.hpp"

namespace sarrus {

namespace cones {
/// The natural map, as a share of the largest w: a hundred thousand times rounding leaves room for a G of many rows.
constexpr double reached = 1e-10;
/// Of proximal points, beside rows whose G is one: small enough that a step is Newton's, large enough that two corners of an edge, of which one
/// sticks and one slips, have a solution.
constexpr double proximity = 1e-5;
/// And of the problem whose solution is the least force, but for as much: little beside the share of a weight that anybody asks for.
constexpr double least = 1e-8;
/// The interior point hands over to Newton.
constexpr double near = 1e-6;
/// No cone is thinner for the interior point, which divides by mu.
constexpr double thinnest = 1e-8;
}  // namespace cones

/// The nearest point of {|p_t| <= mu p_n}.
inline void project_on_cone(double mu, const double* y, double* x) {
  const double t = std::sqrt(y[1] * y[1] + y[2] * y[2]), along = (y[0] + mu * t) / (1.0 + mu * mu);
  const bool inside = t <= mu * y[0], opposite = along <= 0.0;
  const double share = inside ? 1.0 : opposite || t == 0.0 ? 0.0 : mu * along / t;
  x[0] = inside ? y[0] : opposite ? 0.0 : along;
  x[1] = share * y[1], x[2] = share * y[2];
}

/// A disk of friction: rows of which |p| <= mu p_n.
struct FrictionDisk {
  double mu;
  int normal, first, rows;
  const double* slips;  // the direction in which it slips already, or null

  double length(const double* x) const {
    x += first;
    return rows == 1 ? std::abs(*x) : std::sqrt(x[0] * x[0] + x[1] * x[1]);
  }
};

/// The nearest point of several cones that share their p_n, no less than `floor`. Where the squares are least, f(x) = x - y_n - sum of mu max(|y_t| - mu x, 0) vanishes: it
/// rises and is concave, so that Newton's steps from the left are at the root after one for each cone.
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

/// p = size scale p', u = size u' / scale: what stands here is p', with G' = scale G scale, of which every diagonal block has mean one, and w' at
/// most one. One scale a contact, and one a moment, so that cones stay cones.
class ConeSolver {
 public:
  ConeSolver(const ConeProblem& problem, Arena& arena)
      : arena_(arena),
        n_(problem.rows),
        contacts_(problem.contacts),
        moments_(problem.moments),
        ends_at_(problem.first_interval()),
        mu_(problem.friction),
        slip_(problem.slip),
        floor_(nullptr),
        slips_(problem.slip) {
    G_ = take(n_ * n_), w_ = take(n_), scale_ = take(n_), weight_ = take(n_), low_ = take(intervals()), high_ = take(intervals());
    double *fast = take(n_), most = 0.0, speed = 1e-300;  // fast: of each row, without impulses or with the least ones
    for (int i = 0; i < n_; ++i) {
      double u = problem.w[i];
      for (int k = 0; k < contacts_ && problem.floor; ++k) u += problem.G[i * n_ + 3 * k] * problem.floor[k];
      fast[i] = std::max(std::abs(problem.w[i]), std::abs(u));
      most = std::max(most, problem.G[i * n_ + i]), speed = std::max(speed, fast[i]);
    }
    if (most == 0.0) most = 1.0;  // nothing gives way
    const auto scale = [&](int first, int rows) {
      double sum = 0.0;
      for (int i = first; i < first + rows; ++i) sum += problem.G[i * n_ + i];
      for (int i = first; i < first + rows; ++i) {
        scale_[i] = 1.0 / std::sqrt(std::max(sum / rows, 1e-12 * most));
        size_ = std::max(size_, scale_[i] * fast[i]);
      }
    };
    for (int i = 0; i < contacts_; ++i) scale(3 * i, 3);
    moment_ = arena.take<FrictionDisk>(moments_);
    int at = 3 * contacts_;
    for (int i = 0; i < moments_; ++i) {
      const MomentFriction& m = problem.moment[i];
      const bool turns = m.slip[0] != 0.0 || m.slip[1] != 0.0;
      scale(at, m.rows), slips_ |= turns;
      moment_[i] = {m.friction * scale_[3 * m.contact] / scale_[at], 3 * m.contact, at, m.rows, turns ? m.slip : nullptr};
      at += m.rows;
    }
    for (; at < n_; ++at) scale(at, 1);
    if (size_ == 0.0) size_ = speed = 1.0;
    for (int i = 0; i < n_; ++i) {
      w_[i] = problem.w[i] * scale_[i] / size_, weight_[i] = size_ / scale_[i];
      for (int j = 0; j < n_; ++j) G_[i * n_ + j] = problem.G[i * n_ + j] * scale_[i] * scale_[j];
    }
    for (int i = 0; i < intervals(); ++i) {
      const double unit = size_ * scale_[ends_at_ + i];
      low_[i] = bounded(problem.low[i]) ? problem.low[i] / unit : -cones::unbounded;
      high_[i] = bounded(problem.high[i]) ? problem.high[i] / unit : cones::unbounded;
    }
    if (problem.floor) floor_ = take(contacts_);
    for (int i = 0; i < contacts_ && floor_; ++i) floor_[i] = problem.floor[i] / (size_ * scale_[3 * i]);
    tolerance_ = cones::reached * speed;
    u_ = take(n_), F_ = take(n_), K_ = take(n_ * n_), active_ = arena.take<int>(n_);
  }

  /// From p, a guess, to the impulses; and, if `least` is not null, of those with the same velocities the least ones, which no start and no order of
  /// the rows has a say in.
  ConeSolution solve(double* p, double* least) {
    double *best = take(n_), *start = take(n_), *zero = take(n_), *x = take(n_);
    std::fill(zero, zero + n_, 0.0);
    project(zero, best);
    ConeSolution solution = {false, natural_map(best), 0, 0};
    for (int i = 0; i < n_; ++i) x[i] = finite_bits(p[i]) ? p[i] / (size_ * scale_[i]) : 0.0;
    project(x, start);
    const auto tries = [&](int stage, auto method, const double* from) {
      if (solution.reached) return;
      std::copy(from, from + n_, x);
      (this->*method)(x);
      const double now = natural_map(x);
      if (now <= std::max(solution.natural_map, tolerance_)) std::copy(x, x + n_, best), solution.natural_map = now;
      solution.reached = now <= tolerance_, solution.stage = stage;
    };
    solution.reached = solution.natural_map == 0.0;
    tries(1, &ConeSolver::proximal, start);
    if (!slips_) tries(2, &ConeSolver::interior_at_once, zero);
    if (!slips_) tries(2, &ConeSolver::interior_slowly, zero);
    tries(3, &ConeSolver::swept, zero);
    tries(4, &ConeSolver::proximal_from_afar, start);
    tries(4, &ConeSolver::proximal_from_afar, zero);
    solution.iterations = iterations_;
    if (least) {
      find_least(best, x), give(x, least);
      // they are what makes the motion, where they are as good
      if (const double now = natural_map(x); now <= tolerance_)
        std::copy(x, x + n_, best), solution.natural_map = now, solution.reached = true;
    }
    give(best, p);
    return solution;
  }

 private:
  double* take(int count) { return arena_.take<double>(static_cast<std::size_t>(count)); }
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
  /// The direction in which a contact slips already, or null.
  const double* slipping(int i) const {
    return slip_ && (slip_[2 * i] != 0.0 || slip_[2 * i + 1] != 0.0) ? slip_ + 2 * i : nullptr;
  }

  /// The nearest point of the cones and intervals.
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
    for (int i = 0, m = 0; i < contacts_; ++i) {  // those that have more than one bound anew
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
  /// To K, the rates of velocities, those of the shifts.
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
  /// Its largest entry [m/s, rad/s]; no less than the rounding of impulses so large that no velocity shows beside them.
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

  /// Alart and Curnier's function at (p, u), and its square. With y = p - u: open, y_n <= 0: p; sticking, |y_t| < mu y_n: u; slipping:
  /// (u_n, p_t - mu y_n y_t / |y_t|); of an interval p - clip(p - u).
  double function(const double* p, const double* u, double* F) const {
    for (int i = 0; i < contacts_; ++i) {
      const int k = 3 * i;
      const double y[3] = {p[k] - u[k], p[k + 1] - u[k + 1], p[k + 2] - u[k + 2]}, t = length(y + 1), floor = floor_of(k),
                   most = mu_[i] * std::max(y[0], floor);
      const double* slips = slipping(i);
      const bool low = y[0] <= floor, open = low && floor == 0.0, sticks = !open && t < most && !slips;
      const double pull = t > 0.0 ? most / t : 0.0;
      F[k] = low ? p[k] - floor : u[k];
      for (int r = 1; r < 3 && slips && !open; ++r) F[k + r] = p[k + r] + most * slips[r - 1];
      if (slips && !open) continue;
      for (int r = 1; r < 3; ++r) F[k + r] = open ? p[k + r] : sticks ? u[k + r] : p[k + r] - pull * y[r];
    }
    for (const FrictionDisk* m = moment_; m < moment_ + moments_; ++m) {
      const double most = m->mu * std::max(p[m->normal] - u[m->normal], floor_of(m->normal));
      double y[2] = {p[m->first] - u[m->first], m->rows == 1 ? 0.0 : p[m->first + 1] - u[m->first + 1]};
      const double t = length(y);
      for (int r = 0, k = m->first; r < m->rows; ++r, ++k)
        F[k] = most <= 0.0 ? p[k] : m->slips ? p[k] + most * m->slips[r] : t < most ? u[k] : p[k] - most / t * y[r];
    }
    for (int i = 0, k = ends_at_; k < n_; ++i, ++k) F[k] = p[k] - std::min(std::max(p[k] - u[k], low_[i]), high_[i]);
    double sum = 0.0;
    for (int k = 0; k < n_; ++k) sum += F[k] * F[k];
    return sum;
  }

  /// Which rows Newton's step finds together: numbers them in `place` (-1: not among them), and has the step of the others. Returns how many.
  int set_apart(const double* p, const double* u, const double* F, double* step, int* place, bool& passive_moves) {
    int count = 0;
    std::fill(place, place + n_, -1), passive_moves = false;
    const auto add = [&](int k, bool passive) {
      step[k] = passive ? -F[k] : 0.0, passive_moves |= step[k] != 0.0;
      if (!passive) place[k] = count, active_[count++] = k;
    };
    const auto low = [&](int n) { return p[n] - u[n] <= floor_of(n); };
    for (int i = 0; i < contacts_; ++i)
      for (int r = 0, n = 3 * i; r < 3; ++r) add(n + r, low(n) && (r == 0 || floor_of(n) == 0.0));
    for (const FrictionDisk* m = moment_; m < moment_ + moments_; ++m)
      for (int r = 0; r < m->rows; ++r) add(m->first + r, low(m->normal) && floor_of(m->normal) == 0.0);
    for (int i = 0, k = ends_at_; k < n_; ++i, ++k) {
      const double y = p[k] - u[k];
      add(k, y <= low_[i] || y >= high_[i]);
    }
    return count;
  }

  /// Newton's step for it, (A + B (G + eps)) step = -F. Rows of open contacts, and of intervals at an end, are those of the identity: they stand
  /// aside, and the matrix has the others only.
  bool newton_step(const double* p, const double* u, const double* F, double eps, double* step) {
    const Arena::Scope scope(arena_);
    int* place = arena_.take<int>(n_);
    bool passive_moves = false;
    const int count = set_apart(p, u, F, step, place, passive_moves);
    if (count == 0) return true;
    double *right = take(count), *tangential = take(2 * count);
    const auto row_of = [&](int a) { return K_ + a * count; };
    for (int a = 0; a < count; ++a) {
      const double* G = G_ + active_[a] * n_;
      double* row = row_of(a);
      for (int b = 0; b < count; ++b) row[b] = G[active_[b]];
      row[a] += eps;
      right[a] = -u[active_[a]] - (passive_moves ? scalar_product(G, step, n_) : 0.0);
    }
    // F_t = p_t - mu y_n d, d = y_t / |y_t|: rows mu d (dp_n - du_n) taken from, N (dp_t - du_t) too, N = mu y_n / |y_t| (1 - d d^T)
    const auto let_slip = [&](double mu, int n, int k, int size, const double* slips) {
      const double y[2] = {p[k] - u[k], size == 1 ? 0.0 : p[k + 1] - u[k + 1]}, t = length(y),
                   most = mu * std::max(p[n] - u[n], floor_of(n));
      if (t < most && !slips) return;
      const double inverse = t > 0.0 ? 1.0 / t : 0.0, pull = slips ? 0.0 : most * inverse;
      const double d[2] = {slips ? -slips[0] : y[0] * inverse, slips ? -slips[1] : y[1] * inverse};
      const int a = place[n], b = place[k], last = size - 1;
      double *normal = row_of(std::max(a, 0)), *rows[2] = {row_of(b), row_of(b + last)},
             change[2] = {right[b] + u[k], right[b + last] + u[k + last]};
      const double change_n = a < 0 ? 0.0 : right[a] + u[n];
      for (int r = 0; r < size; ++r) {
        const double N[2] = {pull * ((r == 0) - d[r] * d[0]), pull * ((r == 1) - d[r] * d[1])},
                     m = a < 0 ? 0.0 : mu * d[r];  // at its floor p_n stays
        double* to = tangential + r * count;
        for (int c = 0; c < count; ++c) to[c] = m * normal[c] + N[0] * rows[0][c] + N[1] * rows[1][c];
        if (a >= 0) to[a] -= m;
        to[b] += (r == 0) - N[0];
        if (size == 2) to[b + 1] += (r == 1) - N[1];
        right[b + r] = -F[k + r] + m * change_n + N[0] * change[0] + N[1] * change[1];
      }
      for (int r = 0; r < size; ++r) std::copy(tangential + r * count, tangential + (r + 1) * count, rows[r]);
    };
    for (int i = 0; i < contacts_; ++i)
      if (place[3 * i + 1] >= 0) let_slip(mu_[i], 3 * i, 3 * i + 1, 2, slipping(i));
    for (const FrictionDisk* m = moment_; m < moment_ + moments_; ++m)
      if (place[m->first] >= 0) let_slip(m->mu, m->normal, m->first, m->rows, m->slips);
    ++iterations_;
    if (!solve_dense(count, K_, right)) return false;
    for (int a = 0; a < count; ++a) step[active_[a]] = right[a];
    return true;
  }

  /// Newton's method on the problem of G + eps, w - eps p_ref, from p to the best of what it meets; p_ref is moved after so many steps, eps a
  /// tenth then. With one step a reference it is Newton's on the problem itself, whose matrix alone is made regular.
  void points(double* p, double eps, int references, int steps, bool searches) {
    const Arena::Scope scope(arena_);
    double *best = take(n_), *reference = take(n_), *step = take(n_), *there = take(n_), *F = take(n_), at = cones::unbounded;
    std::copy(p, p + n_, best);
    const auto evaluate = [&](const double* x, double e, double* out) {
      velocities(x, u_);
      for (int i = 0; i < n_; ++i) u_[i] += e * (x[i] - reference[i]);
      return function(x, u_, out);
    };
    for (int k = 0; k < references && at > tolerance_; ++k, eps = std::max(0.1 * eps, 1e-9)) {
      std::copy(p, p + n_, reference);
      double now = evaluate(p, eps, F);
      for (int l = 0; l < steps && at > tolerance_; ++l) {
        if (now < 1e-26 && k + l > 0) break;
        if (!newton_step(p, u_, F, eps, step)) break;
        double share = 1.0, next = 0.0;
        for (int halvings = 0;; ++halvings, share *= 0.5) {
          for (int i = 0; i < n_; ++i) there[i] = p[i] + share * step[i];
          next = evaluate(there, eps, F_);
          if (!searches || halvings == 4 || now < 1e-20 || next <= (1.0 - 1e-4 * share) * now) break;
        }
        if (!finite_bits(next)) break;
        now = next;
        std::copy(there, there + n_, p), std::copy(F_, F_ + n_, F);
        const double map = natural_map(p);
        if (map < at) at = map, std::copy(p, p + n_, best);
      }
    }
    std::copy(best, best + n_, p);
  }
  void proximal(double* p) { points(p, cones::proximity, 3, 6, true); }
  void proximal_from_afar(double* p) { points(p, 1e3 * cones::proximity, 10, 8, true); }
  void polish(double* p, int steps) { points(p, 0.1 * cones::proximity, steps, 1, false); }

  /// Of all impulses with these velocities the least, in the scales of p', where each counts as the energy that it alone would leave: those of G + eps,
  /// corrected.
  void find_least(const double* p, double* least) {
    std::copy(p, p + n_, least);
    bool found = softened(least, cones::least);
    if (!found) {  // from far: contacts that give way a lot, and then less and less
      std::copy(p, p + n_, least);
      for (double soft = 1.0; soft > cones::least && (found = softened(least, soft)); soft *= 0.1) {
      }
      found = found && softened(least, cones::least);
    }
    // what is found is off by eps p / eigenvalue of G: a reference that is the least one takes that away, and leaves what G does not see
    if (found) points(least, cones::least, 3, 4, false);
    if (!found || natural_map(least) > tolerance_ + 10.0 * cones::least * size_of(p)) std::copy(p, p + n_, least);
  }
  /// Newton's steps to the one answer that there is where contacts give way. Returns whether they arrive.
  bool softened(double* x, double soft) {
    const Arena::Scope scope(arena_);
    double* step = take(n_);
    for (int k = 0; k < 20; ++k) {
      double moved = 0.0, size = 0.0;
      velocities(x, u_);
      for (int i = 0; i < n_; ++i) u_[i] += soft * x[i];
      if (function(x, u_, F_) <= 1e-30 * n_ && k > 0) return true;
      if (!newton_step(x, u_, F_, soft, step)) return false;
      for (int i = 0; i < n_; ++i) x[i] += step[i], moved += step[i] * step[i], size += x[i] * x[i];
      if (!finite_bits(moved)) return false;
      if (moved <= 1e-18 * size) return true;
    }
    return false;
  }
  double size_of(const double* p) const {
    double most = 0.0;
    for (int i = 0; i < n_; ++i) most = std::max(most, std::abs(p[i]) * weight_[i]);
    return most;
  }

  /// One contact alone, exactly: it takes off, sticks, or slips against its velocity; then the root in one number, the ratio of friction and speed.
  static void one_contact(const double G[9], const double* w, double mu, const double* slips, double* p) {
    p[0] = p[1] = p[2] = 0.0;
    if (w[0] >= 0.0) return;
    if (slips) {
      const double along = G[0] - mu * (G[1] * slips[0] + G[2] * slips[1]);
      if (along > 0.0) p[0] = -w[0] / along, p[1] = -mu * p[0] * slips[0], p[2] = -mu * p[0] * slips[1];
      return;
    }
    double A[9], x[3] = {-w[0], -w[1], -w[2]};
    std::copy(G, G + 9, A);
    if (solve_dense(3, A, x) && x[0] >= 0.0 && length(x + 1) <= mu * x[0]) {
      std::copy(x, x + 3, p);
      return;
    }
    if (G[0] <= 0.0) return;
    const double h[2] = {G[3], G[6]}, b[2] = {w[1] - h[0] * w[0] / G[0], w[2] - h[1] * w[0] / G[0]};
    const double S[3] = {G[4] - h[0] * h[0] / G[0], G[5] - h[0] * h[1] / G[0], G[8] - h[1] * h[1] / G[0]};
    const auto slips_within = [&](double ratio) {
      const double a = S[0] + ratio, c = S[2] + ratio, det = a * c - S[1] * S[1];
      p[1] = (S[1] * b[1] - c * b[0]) / det, p[2] = (S[1] * b[0] - a * b[1]) / det;
      p[0] = -(w[0] + h[0] * p[1] + h[1] * p[2]) / G[0];
      return p[0] > 0.0 && length(p + 1) <= mu * p[0];
    };
    double low = 0.0, high = G[0];
    while (!slips_within(high) && high < 1e12 * G[0]) low = high, high *= 8.0;
    for (int k = 0; k < 60; ++k) {
      const double middle = 0.5 * (low + high);
      (slips_within(middle) ? high : low) = middle;
    }
    slips_within(high);
  }
  /// One moment alone, beside what its contact presses: it holds, or is at its limit, by the root in the ratio of moment and speed.
  void turn_alone(const FrictionDisk& m, double* p) const {
    const int k = m.first, l = k + m.rows - 1;
    const double most = m.mu * p[m.normal], G[3] = {G_[k * n_ + k], G_[k * n_ + l], G_[l * n_ + l]};
    double w[2];
    for (int r = 0; r < m.rows; ++r) {
      const double* row = G_ + (k + r) * n_;
      w[r] = w_[k + r] + scalar_product(row, p, n_);
      for (int c = k; c <= l; ++c) w[r] -= row[c] * p[c];
    }
    if (m.slips || m.rows == 1) {
      p[k] = m.slips ? -most * m.slips[0] : std::min(std::max(-w[0] / std::max(G[0], 1e-300), -most), most);
      if (m.rows == 2) p[l] = -most * m.slips[1];
      return;
    }
    const auto holds_by = [&](double ratio) {
      const double a = G[0] + ratio, c = G[2] + ratio, det = a * c - G[1] * G[1];
      if (det <= 0.0) return false;
      p[k] = (G[1] * w[1] - c * w[0]) / det, p[l] = (G[1] * w[0] - a * w[1]) / det;
      return length(p + k) <= most;
    };
    if (holds_by(0.0)) return;
    double low = 0.0, high = G[0] + G[2] + 1e-300;
    while (!holds_by(high) && high < 1e12) low = high, high *= 8.0;
    for (int round = 0; round < 60; ++round) {
      const double middle = 0.5 * (low + high);
      (holds_by(middle) ? high : low) = middle;
    }
    if (!holds_by(high)) p[k] = p[l] = 0.0;
  }
  void swept(double* p) {
    for (int round = 0; round < 20; ++round) {
      for (int i = 0; i < contacts_; ++i) {
        double G[9], w[3];
        for (int r = 0; r < 3; ++r) {
          const double* row = G_ + (3 * i + r) * n_;
          w[r] = w_[3 * i + r] + scalar_product(row, p, n_);
          for (int c = 0; c < 3; ++c) G[3 * r + c] = row[3 * i + c], w[r] -= row[3 * i + c] * p[3 * i + c];
        }
        if (const double floor = floor_of(3 * i); floor > 0.0) {
          p[3 * i] = std::max(floor, -(w[0] + G[1] * p[3 * i + 1] + G[2] * p[3 * i + 2]) / std::max(G[0], 1e-300));
          turn_alone({mu_[i], 3 * i, 3 * i + 1, 2, slipping(i)}, p);
          continue;
        }
        one_contact(G, w, mu_[i], slipping(i), p + 3 * i);
      }
      for (const FrictionDisk* m = moment_; m < moment_ + moments_; ++m) turn_alone(*m, p);
      for (int j = 0, k = ends_at_; k < n_; ++j, ++k) {
        const double u = w_[k] + scalar_product(G_ + k * n_, p, n_), d = G_[k * n_ + k];
        if (d > 0.0) p[k] = std::min(std::max(p[k] - u / d, low_[j]), high_[j]);
      }
      ++iterations_;
      if (natural_map(p) <= tolerance_) return;
    }
    polish(p, 8);
  }

  class InteriorPoint;
  void interior(double* answer, bool slowly);
  void interior_at_once(double* p) { interior(p, false); }
  void interior_slowly(double* p) { interior(p, true); }

  Arena& arena_;
  int n_, contacts_, moments_, ends_at_, iterations_ = 0;  // rows of intervals begin at ends_at_
  const double *mu_, *slip_;
  double* floor_;
  bool slips_;  // something does already
  FrictionDisk* moment_;
  double *G_, *w_, *scale_, *weight_, *low_, *high_, size_ = 0.0, tolerance_ = 0.0;
  double *u_, *F_, *K_;
  int* active_;
};

/// A contact's cone as that of second order: x = (mu p_n, p_t), s = (z_n / mu, z_t); x o s = (x . s, x_0 s_t + s_0 x_t).
struct ScaledCone {
  double x[3], s[3], wide, W[9], inverse[9], lambda[3];  // wide: mu

  static double det(const double* a) { return std::max(a[0] * a[0] - a[1] * a[1] - a[2] * a[2], 1e-300); }
  static void product(const double* a, const double* b, double* out) {
    const double dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const double t[2] = {a[0] * b[1] + b[0] * a[1], a[0] * b[2] + b[0] * a[2]};
    out[0] = dot, out[1] = t[0], out[2] = t[1];
  }
  static void times(const double* A, const double* a, double* out) {
    for (int r = 0; r < 3; ++r) out[r] = A[3 * r] * a[0] + A[3 * r + 1] * a[1] + A[3 * r + 2] * a[2];
  }
  /// The a with lambda o a = r.
  void divide(const double* r, double* a) const {
    a[0] = (lambda[0] * r[0] - lambda[1] * r[1] - lambda[2] * r[2]) / det(lambda);
    for (int k = 1; k < 3; ++k) a[k] = (r[k] - lambda[k] * a[0]) / lambda[0];
  }
  /// Nesterov and Todd's W with W s = W^-1 x = lambda.
  void scale(const double* p, const double* z, double mu) {
    wide = mu;
    for (int k = 0; k < 3; ++k) x[k] = p[k] * (k == 0 ? mu : 1.0), s[k] = z[k] / (k == 0 ? mu : 1.0);
    const double dx = std::sqrt(det(x)), ds = std::sqrt(det(s)), eta = std::sqrt(dx / ds);
    double dot = 0.0, w[3];
    for (int k = 0; k < 3; ++k) dot += x[k] * s[k] / (dx * ds);
    const double twice = 2.0 * std::sqrt(0.5 * (1.0 + dot));
    for (int k = 0; k < 3; ++k) w[k] = (x[k] / dx + (k == 0 ? 1.0 : -1.0) * s[k] / ds) / twice;
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c) {
        const double entry = r == 0 || c == 0 ? w[r + c] : (r == c) + w[r] * w[c] / (1.0 + w[0]);
        W[3 * r + c] = entry * eta, inverse[3 * r + c] = ((r == 0) != (c == 0) ? -entry : entry) / eta;
      }
    times(W, s, lambda);
  }
  /// How far along d the point a stays within the cone.
  static double reach(const double* a, const double* d) {
    const double A = d[0] * d[0] - d[1] * d[1] - d[2] * d[2], B = 2.0 * (a[0] * d[0] - a[1] * d[1] - a[2] * d[2]), C = det(a);
    double most = d[0] < 0.0 ? -a[0] / d[0] : 1e9;
    const double root = B * B - 4.0 * A * C;
    if (root < 0.0) return most;
    const double q = -0.5 * (B + (B >= 0.0 ? 1.0 : -1.0) * std::sqrt(root));
    if (q * A > 0.0) most = std::min(most, q / A);
    if (q > 0.0) most = std::min(most, C / q);
    return most;
  }
};

/// The unknowns of the path, the equation of a step at them, and the step.
class ConeSolver::InteriorPoint {
 public:
  static constexpr double start = 2.0;

  explicit InteriorPoint(ConeSolver& c)
      : c_(c), n_(c.n_), cones_(c.contacts_ + c.moments_), m_(3 * cones_), ends_(c.intervals() + (c.floor_ ? c.contacts_ : 0)) {
    end_ = c.arena_.take<int>(ends_), low_ = c.take(ends_), high_ = c.take(ends_);
    for (int j = 0; j < ends_; ++j) {
      const int i = j - c.intervals();  // after those of intervals floors, of rows p_n
      end_[j] = i < 0 ? c.ends_at_ + j : 3 * i;
      low_[j] = i < 0 ? c.low_[j] : c.floor_[i] > 0.0 ? c.floor_[i] : -cones::unbounded;
      high_[j] = i < 0 ? c.high_[j] : cones::unbounded;
    }
    at_ = unknowns(), by_ = unknowns();
    cone_ = c.arena_.take<ScaledCone>(cones_), other_ = c.arena_.take<int>(n_);
    r_ = c.take(n_), K_ = c.take(n_ * n_), right_ = c.take(n_), left_ = c.take(n_), h_ = c.take(m_);
    correction_ = c.take(m_), correct_low_ = c.take(ends_), correct_high_ = c.take(ends_);
    std::fill(at_.p, at_.p + n_, 0.0), std::fill(at_.z, at_.z + m_, 0.0);
    for (int i = 0; i < cones_; ++i) at_.p[row(i, 0)] = start, at_.z[3 * i] = start * std::max(1.0, mu(i));
    pairs_ = cones_;
    for (int j = 0; j < ends_; ++j) {
      const double low = low_[j], high = high_[j];
      const bool l = bounded(low), u = bounded(high);
      if (j < c.intervals() || l) at_.p[end_[j]] = l && u ? 0.5 * (low + high) : l ? low + start : u ? high - start : 0.0;
      at_.low[j] = l ? start : 0.0, at_.high[j] = u ? start : 0.0, pairs_ += l + u;
    }
  }

  const double* impulses() const { return at_.p; }
  double gap() const { return gap_; }
  double worst() const { return worst_; }  // of what the equations still lack

  /// What the equations lack here, and the matrix of a step, eliminated. Returns whether it could be.
  bool set_up() {
    gap_ = worst_ = 0.0;
    c_.velocities(at_.p, r_), c_.add_shift(r_);
    double* K = c_.K_;
    std::copy(c_.G_, c_.G_ + n_ * n_, K);
    for (int i = 0; i < n_; ++i) K[i * n_ + i] += 1e-14;
    c_.add_rate_of_shift(at_.p);
    for (int i = 0; i < cones_; ++i) {
      ScaledCone& cone = cone_[i];
      double p[3];
      of_cone(i, at_.p, p), cone.scale(p, at_.z + 3 * i, wide(i));
      for (int a = 0; a < size(i); ++a) {
        gap_ += square(cone.lambda[a]);
        r_[row(i, a)] -= at_.z[3 * i + a];
        for (int b = 0; b < size(i); ++b) {
          double sum = 0.0;
          for (int k = 0; k < 3; ++k) sum += cone.inverse[3 * a + k] * cone.inverse[3 * k + b];
          K[row(i, a) * n_ + row(i, b)] += sum * (a == 0 ? wide(i) : 1.0) * (b == 0 ? wide(i) : 1.0);
        }
      }
    }
    for (int j = 0; j < ends_; ++j) {
      gap_ += above(j) * at_.low[j] + below(j) * at_.high[j];
      r_[end_[j]] -= at_.low[j] - at_.high[j];
      K[end_[j] * n_ + end_[j]] += at_.low[j] / above(j) + at_.high[j] / below(j);
    }
    for (int i = 0; i < n_; ++i) worst_ = std::max(worst_, std::abs(r_[i]));
    gap_ /= std::max(pairs_, 1), ++c_.iterations_;
    std::copy(K, K + n_ * n_, K_);
    forget_corrections();
    return eliminate(n_, K, [&](int row, int with) { other_[row] = with; });
  }

  /// Towards the point of the path where all products are `centre`. Returns how much of it stays within cones and intervals.
  double step(double centre) {
    for (int i = 0; i < n_; ++i) by_.p[i] = -r_[i];
    for (int i = 0; i < cones_; ++i) {
      const ScaledCone& cone = cone_[i];
      double turned[3], moved[3];
      ScaledCone::product(cone.lambda, cone.lambda, turned);
      for (int a = 0; a < 3; ++a) turned[a] = (a == 0 ? centre : 0.0) - turned[a] - correction_[3 * i + a];
      cone.divide(turned, h_ + 3 * i);
      ScaledCone::times(cone.inverse, h_ + 3 * i, moved);
      for (int a = 0; a < size(i); ++a) by_.p[row(i, a)] += moved[a] * (a == 0 ? wide(i) : 1.0);
    }
    for (int j = 0; j < ends_; ++j) {
      by_.low[j] = bounded(low_[j]) ? (centre - above(j) * at_.low[j] - correct_low_[j]) / above(j) : 0.0;
      by_.high[j] = bounded(high_[j]) ? (centre - below(j) * at_.high[j] - correct_high_[j]) / below(j) : 0.0;
      by_.p[end_[j]] += by_.low[j] - by_.high[j];
    }
    solve(by_.p);
    for (int i = 0; i < cones_; ++i) {
      double d[3], moved[3];
      motion(i, d), ScaledCone::times(cone_[i].inverse, d, moved);
      for (int a = 0; a < 3; ++a) moved[a] = h_[3 * i + a] - moved[a];
      ScaledCone::times(cone_[i].inverse, moved, by_.z + 3 * i);  // of s = (z_n / mu, z_t)
    }
    for (int j = 0; j < ends_; ++j) {
      by_.low[j] -= at_.low[j] / above(j) * by_.p[end_[j]];
      by_.high[j] += at_.high[j] / below(j) * by_.p[end_[j]];
    }
    return reach();
  }

  /// How far the products are from being `middle`, all of them, relative to it.
  double off_path(double middle) const {
    double most = 0.0;
    for (int i = 0; i < cones_; ++i) {
      double squared[3];
      ScaledCone::product(cone_[i].lambda, cone_[i].lambda, squared);
      for (int a = 0; a < 3; ++a) most = std::max(most, std::abs(squared[a] - (a == 0 ? middle : 0.0)));
    }
    for (int j = 0; j < ends_; ++j) {
      if (bounded(low_[j])) most = std::max(most, std::abs(above(j) * at_.low[j] - middle));
      if (bounded(high_[j])) most = std::max(most, std::abs(below(j) * at_.high[j] - middle));
    }
    return most / middle;
  }

  /// Mehrotra's: the products of the last step's parts, of which the next one is aware.
  void correct() {
    for (int i = 0; i < cones_; ++i) {
      double d[3], a[3], b[3];
      motion(i, d), ScaledCone::times(cone_[i].inverse, d, a), ScaledCone::times(cone_[i].W, by_.z + 3 * i, b);
      ScaledCone::product(a, b, correction_ + 3 * i);
    }
    for (int j = 0; j < ends_; ++j)
      correct_low_[j] = by_.p[end_[j]] * by_.low[j], correct_high_[j] = -by_.p[end_[j]] * by_.high[j];
  }
  void forget_corrections() {
    std::fill(correction_, correction_ + m_, 0.0);
    std::fill(correct_low_, correct_low_ + ends_, 0.0), std::fill(correct_high_, correct_high_ + ends_, 0.0);
  }

  /// That share of the step. Returns whether all are numbers still.
  bool go(double share) {
    double sum = 0.0;
    for (int i = 0; i < n_; ++i) at_.p[i] += share * by_.p[i], sum += std::abs(at_.p[i]);
    for (int i = 0; i < m_; ++i) at_.z[i] += share * by_.z[i] * (i % 3 == 0 ? wide(i / 3) : 1.0), sum += std::abs(at_.z[i]);
    for (int j = 0; j < ends_; ++j) at_.low[j] += share * by_.low[j], at_.high[j] += share * by_.high[j];
    return finite_bits(sum);
  }

 private:
  struct Unknowns {
    double *p, *z, *low, *high;  // (rows), (cones, 3), and of the intervals' ends
  };
  Unknowns unknowns() { return {c_.take(n_), c_.take(m_), c_.take(ends_), c_.take(ends_)}; }
  /// Cones are those of contacts, then those of moments: (p_n, p_t), of one tangential row or two. What three numbers have no row for stays zero.
  const FrictionDisk* moment(int i) const { return i < c_.contacts_ ? nullptr : c_.moment_ + (i - c_.contacts_); }
  double mu(int i) const { return moment(i) ? moment(i)->mu : c_.mu_[i]; }
  int size(int i) const { return moment(i) ? 1 + moment(i)->rows : 3; }
  int row(int i, int a) const { return !moment(i) ? 3 * i + a : a == 0 ? moment(i)->normal : moment(i)->first + a - 1; }
  void of_cone(int i, const double* p, double* x) const {
    x[2] = 0.0;
    for (int a = 0; a < size(i); ++a) x[a] = p[row(i, a)];
  }
  double wide(int i) const { return std::max(mu(i), cones::thinnest); }
  double above(int j) const { return bounded(low_[j]) ? at_.p[end_[j]] - low_[j] : 1.0; }
  double below(int j) const { return bounded(high_[j]) ? high_[j] - at_.p[end_[j]] : 1.0; }
  /// The step of cone i's impulse, as ScaledCone measures it.
  void motion(int i, double* d) const { of_cone(i, by_.p, d), d[0] *= wide(i); }

  void solve(double* x) {
    std::copy(x, x + n_, right_), std::fill(x, x + n_, 0.0);
    for (int round = 0; round < 2; ++round) {  // the second one takes away the rounding of the first
      for (int i = 0; i < n_; ++i) left_[i] = right_[i] - scalar_product(K_ + i * n_, x, n_);
      for (int i = 0; i < n_; ++i) std::swap(left_[i], left_[other_[i]]);
      solve_eliminated(n_, c_.K_, left_);
      for (int i = 0; i < n_; ++i) x[i] += left_[i];
    }
  }
  double reach() const {
    double most = 1e9;
    const auto stays = [&](double a, double d) { most = d < 0.0 ? std::min(most, -a / d) : most; };
    for (int i = 0; i < cones_; ++i) {
      double d[3];
      motion(i, d);
      most = std::min({most, ScaledCone::reach(cone_[i].x, d), ScaledCone::reach(cone_[i].s, by_.z + 3 * i)});
    }
    for (int j = 0; j < ends_; ++j) {
      if (bounded(low_[j])) stays(above(j), by_.p[end_[j]]), stays(at_.low[j], by_.low[j]);
      if (bounded(high_[j])) stays(below(j), -by_.p[end_[j]]), stays(at_.high[j], by_.high[j]);
    }
    return std::min(1.0, 0.995 * most);
  }

  ConeSolver& c_;
  const int n_, cones_, m_, ends_;
  Unknowns at_, by_;
  ScaledCone* cone_;
  int *other_, *end_;  // rows exchanged; of ends
  double *low_, *high_, *r_, *K_, *right_, *left_, *h_, *correction_, *correct_low_, *correct_high_;
  int pairs_ = 0;
  double gap_ = 0.0, worst_ = 0.0;
};

inline void ConeSolver::interior(double* answer, bool slowly) {
  const Arena::Scope scope(arena_);
  InteriorPoint point(*this);
  double *x = take(n_), best = cones::unbounded, target = square(InteriorPoint::start);
  int stuck = 0;
  for (int k = 0; k < (slowly ? 100 : 50); ++k) {
    project(point.impulses(), x);
    if (const double map = natural_map(x); map < best) {
      best = map, std::copy(x, x + n_, answer);
      if (map < cones::near * tolerance_ / cones::reached) {
        polish(x, 3);
        if (natural_map(x) <= tolerance_) return void(std::copy(x, x + n_, answer));
      }
    }
    if (!point.set_up()) break;
    const double gap = point.gap(), worst = point.worst();
    double share = 0.0;
    if (slowly) {  // near the path of this target, and only then the next
      while (point.off_path(target) < 0.5 && worst < std::min(0.3 * std::sqrt(target), 1e3 * target)) target *= 0.3;
      share = point.step(target);
    } else {
      const double blocked = 1.0 - point.step(0.0), centre = std::max(gap * blocked * blocked * blocked, 0.01 * worst * worst);
      point.correct();
      share = point.step(centre);
      if (share < 0.3) {  // it is too near to an edge to go along the path: back to the middle
        point.forget_corrections();
        share = point.step(std::max(0.5 * gap, centre));
      }
    }
    stuck = share < 0.05 ? stuck + 1 : 0;
    if (!point.go(share) || stuck == (slowly ? 20 : 6)) break;
  }
  polish(answer, 8);
}

/// The impulses of a problem, from a guess.
inline ConeSolution solve_cones(const ConeProblem& problem, Arena& arena, double* p, double* least = nullptr) {
  const Arena::Scope scope(arena);
  return ConeSolver(problem, arena).solve(p, least);
}

}  // namespace sarrus
