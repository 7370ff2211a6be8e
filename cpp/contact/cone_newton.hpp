// First stage: Newton's method on the function of Alart and Curnier (1991), for a slightly regularised problem. This file also computes the impulses
// of least norm that produce given velocities.
#pragma once

#include "cone_problem.hpp"

namespace sarrus {

namespace cones {
/// Regularisation of the proximal method, relative to rows with unit G. It is small enough for steps that are nearly Newton's, and large enough for a
/// unique solution if one corner of an edge sticks and the other one slips.
constexpr double proximity = 1e-5;
/// Smallest regularisation of the last stage. Rounding errors of G, divided by it, are still small relative to one.
constexpr double weakest = 1e-12;
/// Regularisation of the problem whose solution is the force of least norm. The change that it causes is negligible relative to a body's weight.
constexpr double least = 1e-8;
}  // namespace cones

class ConeNewton : public ScaledCones {
 public:
  ConeNewton(const ConeProblem& problem, Arena& arena, SolverLimit& limit) : ScaledCones(problem, arena, limit) {
    F_ = take(n_), active_ = arena.take<int>(n_);
    factor_ = {take(n_ * n_), arena.take<int>(n_), 0, 0.0};
  }

 protected:
  /// Evaluate the function F of Alart and Curnier at (p, u) and return its squared norm. Let y = p - u. For an open contact (y_n <= 0) F = p; for a
  /// sticking contact (|y_t| < mu y_n) F = u; for a slipping contact F = (u_n, p_t - mu y_n y_t / |y_t|); for an interval F = p - clip(p - u).
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

  /// Choose the active rows of Newton's step and number them in `place`. Inactive rows have the number -1, and their step is set. Returns the number
  /// of active rows.
  int choose_active(const double* p, const double* u, const double* F, double* step, int* place, bool& passive_moves) {
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

  /// Visit all friction disks: of contacts, then of moments.
  template <class Visit> void each_disk(Visit&& visit) const {
    for (int i = 0; i < contacts_; ++i) visit(FrictionDisk{mu_[i], 3 * i, 3 * i + 1, 2, slipping(i)});
    for (const FrictionDisk* m = moment_; m < moment_ + moments_; ++m) visit(*m);
  }
  /// Return true if friction is at its limit, or if the contact already slips. In both cases the rows of F that belong to this disk differ from u.
  bool slides(const FrictionDisk& disk, const double* p, const double* u) const {
    const int k = disk.first, n = disk.normal;
    const double y[2] = {p[k] - u[k], disk.rows == 1 ? 0.0 : p[k + 1] - u[k + 1]};
    return disk.slips || !(length(y) < disk.mu * std::max(p[n] - u[n], floor_of(n)));
  }

  /// Compute Newton's step, (A + B (G + eps)) step = -F. Rows of open contacts, and of intervals at a bound, are rows of the identity. These rows are
  /// eliminated, so that the matrix contains only the active ones.
  bool newton_step(const double* p, const double* u, const double* F, double eps, double* step) {
    const Arena::Scope scope(arena_);
    int* place = arena_.take<int>(n_);
    bool passive_moves = false, holds = true;
    const int count = choose_active(p, u, F, step, place, passive_moves);
    if (count == 0) return true;
    double* right = take(count);
    for (int a = 0; a < count; ++a)
      right[a] = -u[active_[a]] - (passive_moves ? scalar_product(G_ + active_[a] * n_, step, n_) : 0.0);
    each_disk([&](const FrictionDisk& disk) { holds = holds && (place[disk.first] < 0 || !slides(disk, p, u)); });
    if (!(holds && solve_holding(count, eps, right))) {
      if (!limit_.spend(count)) return false;
      fill(count, eps, K_), ++iterations_;
      each_disk([&](const FrictionDisk& disk) {
        if (place[disk.first] >= 0 && slides(disk, p, u)) let_slip(disk, p, u, F, place, count, right);
      });
      if (!eliminate(count, K_, [&](int row, int other) { std::swap(right[row], right[other]); }, limit_.within())) return false;
      solve_eliminated(count, K_, right);
    }
    for (int a = 0; a < count; ++a) step[active_[a]] = right[a];
    return true;
  }
  /// Write the entries of G + eps for the active rows.
  void fill(int count, double eps, double* K) const {
    if (count == n_) std::copy(G_, G_ + n_ * n_, K);
    for (int a = 0; a < count; ++a) {
      const double* G = G_ + active_[a] * n_;
      double* row = K + a * count;
      for (int b = 0; b < count && count < n_; ++b) row[b] = G[active_[b]];
      row[a] += eps;
    }
  }
  /// Compute the step if no friction is at its limit. The matrix is G + eps, and its factor is reused as long as the same rows are active.
  bool solve_holding(int count, double eps, double* x) {
    if (factor_.count != count || factor_.eps != eps || !std::equal(active_, active_ + count, factor_.row)) {
      factor_.count = 0;
      if (!limit_.spend(count)) return false;
      fill(count, eps, factor_.U), ++iterations_;
      factor_.count = cholesky(count, factor_.U, limit_.within()) ? count : 0, factor_.eps = eps;
      std::copy(active_, active_ + count, factor_.row);
    }
    if (factor_.count > 0) cholesky_solve(count, factor_.U, x);
    return factor_.count > 0;
  }
  /// Subtract the derivatives of F_t = p_t - mu y_n d, d = y_t / |y_t|: mu d (dp_n - du_n) and N (dp_t - du_t), N = mu y_n / |y_t| (1 - d d^T).
  void let_slip(const FrictionDisk& disk, const double* p, const double* u, const double* F, const int* place, int count,
                double* right) {
    const Arena::Scope scope(arena_);
    const int n = disk.normal, k = disk.first, size = disk.rows, a = place[n], b = place[k], last = size - 1;
    const double y[2] = {p[k] - u[k], size == 1 ? 0.0 : p[k + 1] - u[k + 1]}, t = length(y),
                 most = disk.mu * std::max(p[n] - u[n], floor_of(n));
    const double inverse = t > 0.0 ? 1.0 / t : 0.0, pull = disk.slips ? 0.0 : most * inverse;
    const double d[2] = {disk.slips ? -disk.slips[0] : y[0] * inverse, disk.slips ? -disk.slips[1] : y[1] * inverse};
    const auto row_of = [&](int row) { return K_ + row * count; };
    double *normal = row_of(std::max(a, 0)), *rows[2] = {row_of(b), row_of(b + last)}, *tangential = take(2 * count),
           change[2] = {right[b] + u[k], right[b + last] + u[k + last]};
    const double change_n = a < 0 ? 0.0 : right[a] + u[n];
    for (int r = 0; r < size; ++r) {
      const double N[2] = {pull * ((r == 0) - d[r] * d[0]), pull * ((r == 1) - d[r] * d[1])},
                   m = a < 0 ? 0.0 : disk.mu * d[r];  // p_n remains at its floor
      double* to = tangential + r * count;
      for (int c = 0; c < count; ++c) to[c] = m * normal[c] + N[0] * rows[0][c] + N[1] * rows[1][c];
      if (a >= 0) to[a] -= m;
      to[b] += (r == 0) - N[0];
      if (size == 2) to[b + 1] += (r == 1) - N[1];
      right[b + r] = -F[k + r] + m * change_n + N[0] * change[0] + N[1] * change[1];
    }
    for (int r = 0; r < size; ++r) std::copy(tangential + r * count, tangential + (r + 1) * count, rows[r]);
  }

  /// Run Newton's method on the problem with G + eps and w - eps p_ref, from p, which becomes the best iterate. After every `steps` steps, p_ref is
  /// set to the iterate, and eps is divided by ten. With steps = 1 this is Newton's method on the problem itself, with a regularised matrix. Returns
  /// the largest entry of the natural map.
  double points(double* p, double eps, int references, int steps, bool searches, double least_eps = 1e-9) {
    const Arena::Scope scope(arena_);
    double *best = take(n_), *reference = take(n_), *step = take(n_), *trial = take(n_), *F = take(n_), at = cones::unbounded;
    std::copy(p, p + n_, best);
    const auto evaluate = [&](const double* x, double e, double* out) {
      velocities(x, u_);
      for (int i = 0; i < n_; ++i) u_[i] += e * (x[i] - reference[i]);
      return function(x, u_, out);
    };
    for (int k = 0; k < references && at > tolerance_; ++k, eps = std::max(0.1 * eps, least_eps)) {
      std::copy(p, p + n_, reference);
      double now = evaluate(p, eps, F);
      for (int l = 0; l < steps && at > tolerance_; ++l) {
        if (now < 1e-26 && k + l > 0) break;
        if (!newton_step(p, u_, F, eps, step)) break;
        double share = 1.0, next = 0.0;
        for (int halvings = 0;; ++halvings, share *= 0.5) {
          for (int i = 0; i < n_; ++i) trial[i] = p[i] + share * step[i];
          next = evaluate(trial, eps, F_);
          if (!searches || halvings == 4 || now < 1e-20 || next <= (1.0 - 1e-4 * share) * now) break;
        }
        if (!finite_bits(next)) break;
        now = next;
        std::copy(trial, trial + n_, p), std::copy(F_, F_ + n_, F);
        const double map = natural_map(p);
        if (map < at) at = map, std::copy(p, p + n_, best);
      }
    }
    std::copy(best, best + n_, p);
    return at < cones::unbounded ? at : natural_map(p);
  }
  void proximal(double* p) { points(p, cones::proximity, 3, 6, true); }
  void proximal_from_afar(double* p) { points(p, 1e3 * cones::proximity, 10, 8, true); }
  /// With velocities that differ from consistent ones by little, the active set changes only after large changes of impulses, along the null space of
  /// G. These are the velocities divided by eps.
  void proximal_to_weakest(double* p) { points(p, 1e3 * cones::proximity, 14, 20, true, cones::weakest); }
  void polish(double* p, int steps) { points(p, 0.1 * cones::proximity, steps, 1, false); }

  /// Find the impulses `least` of least norm that have the same velocities as p: the solution with G + eps, then corrected. The norm is that of the
  /// scaled impulses p' (cone_problem.hpp), which measures each entry by its energy. Returns the largest entry of their natural map; if the search
  /// fails, returns `unbounded` and sets `least` to p.
  double find_least(const double* p, double* least) {
    std::copy(p, p + n_, least);
    bool converged = solve_softened(least, cones::least);
    if (!converged) {  // begin with a strong regularisation, and weaken it step by step
      std::copy(p, p + n_, least);
      for (double soft = 1.0; soft > cones::least && (converged = solve_softened(least, soft)); soft *= 0.1) {
      }
      converged = converged && solve_softened(least, cones::least);
    }
    const double map = converged ? refine_least(least) : cones::unbounded;
    if (map <= tolerance_ + 10.0 * cones::least * size_of(p)) return map;
    std::copy(p, p + n_, least);
    return cones::unbounded;
  }
  /// Find the impulses of least norm with one factor. This succeeds for resting contacts, if the sets of sticking, open and limited rows do not
  /// change. Returns the largest entry of their natural map; if it fails, returns `unbounded`, and x is invalid.
  double find_least_at_rest(double* x) { return solve_softened(x, cones::least, 1) ? refine_least(x) : cones::unbounded; }
  /// Remove the error eps p / (eigenvalue of G) that the regularisation causes, by a moving reference p_ref. Components in the null space of G do not
  /// change.
  double refine_least(double* x) { return points(x, cones::least, 3, 4, false); }
  /// Take Newton steps to the unique solution of the regularised problem. Returns true if they converge with at most `factors` factorisations.
  bool solve_softened(double* x, double soft, int factors = 20) {
    const Arena::Scope scope(arena_);
    double* step = take(n_);
    const int before = iterations_;
    for (int k = 0; k < 20; ++k) {
      double moved = 0.0, size = 0.0;
      velocities(x, u_);
      for (int i = 0; i < n_; ++i) u_[i] += soft * x[i];
      if (function(x, u_, F_) <= 1e-30 * n_ && k > 0) return true;
      if (!newton_step(x, u_, F_, soft, step) || iterations_ - before > factors) return false;
      for (int i = 0; i < n_; ++i) x[i] += step[i], moved += step[i] * step[i], size += x[i] * x[i];
      if (!finite_bits(moved)) return false;
      if (moved <= 1e-18 * size) return true;
    }
    return false;
  }

 private:
  double* F_;
  int* active_;
  struct {
    double* U;
    int *row, count;  // count 0: no factor
    double eps;
  } factor_;  // factor of G + eps for the active rows
};

}  // namespace sarrus
