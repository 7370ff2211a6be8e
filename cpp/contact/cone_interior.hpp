// Second stage: an interior-point method on the cones, with the scaling of Nesterov and Todd. De Saxce's shift and its derivatives are part of every
// step.
#pragma once

#include "cone_newton.hpp"

namespace sarrus {

namespace cones {
/// Complementarity gap below which Newton's method takes over.
constexpr double near = 1e-6;
/// Lower limit of the friction coefficient mu in the interior-point method, which divides by mu.
constexpr double thinnest = 1e-8;
}  // namespace cones

/// A contact's cone in the form of a second-order cone: x = (mu p_n, p_t), s = (z_n / mu, z_t), and the product x o s = (x . s, x_0 s_t + s_0 x_t).
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
  /// Solve lambda o a = r for a; o is the product of ScaledCone.
  void divide(const double* r, double* a) const {
    a[0] = (lambda[0] * r[0] - lambda[1] * r[1] - lambda[2] * r[2]) / det(lambda);
    for (int k = 1; k < 3; ++k) a[k] = (r[k] - lambda[k] * a[0]) / lambda[0];
  }
  /// Compute the scaling W of Nesterov and Todd, with W s = W^-1 x = lambda.
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
  /// Return the largest fraction s of the step d for which a + s d remains in the cone.
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

class ConeInterior : public ConeNewton {
 public:
  using ConeNewton::ConeNewton;

 protected:
  void interior_at_once(double* p) { interior(p, false); }
  void interior_slowly(double* p) { interior(p, true); }

 private:
  class InteriorPoint;
  void interior(double* answer, bool slowly);
};

/// State of the interior-point method: the iterate, the equation of a step, and the step.
class ConeInterior::InteriorPoint {
 public:
  static constexpr double start = 2.0;

  explicit InteriorPoint(ConeInterior& c)
      : c_(c), n_(c.n_), cones_(c.contacts_ + c.moments_), m_(3 * cones_), ends_(c.intervals() + (c.floor_ ? c.contacts_ : 0)) {
    end_ = c.arena_.take<int>(ends_), low_ = c.take(ends_), high_ = c.take(ends_);
    for (int j = 0; j < ends_; ++j) {
      const int i = j - c.intervals();  // the bounds p_n >= c of floors follow those of intervals
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
  double worst() const { return worst_; }  // largest residual of the equations

  /// Compute the residuals at the current iterate, and factorise the matrix of a step. Returns false if that fails.
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
      cone_vector(i, at_.p, p), cone.scale(p, at_.z + 3 * i, wide(i));
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
    return eliminate(n_, K, [&](int row, int with) { other_[row] = with; }, c_.limit_.within());
  }

  /// Compute the step towards the point of the central path at which all products equal `centre`. Returns the fraction of the step that remains
  /// within cones and intervals.
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
      ScaledCone::times(cone_[i].inverse, moved, by_.z + 3 * i);  // the step of s, in the variables s = (z_n / mu, z_t)
    }
    for (int j = 0; j < ends_; ++j) {
      by_.low[j] -= at_.low[j] / above(j) * by_.p[end_[j]];
      by_.high[j] += at_.high[j] / below(j) * by_.p[end_[j]];
    }
    return reach();
  }

  /// Return the largest deviation of the products x o s from `middle`, relative to `middle`.
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

  /// Compute Mehrotra's correction, from the products of the components of the last step.
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

  /// Move by the fraction `share` of the step. Returns true if all values are finite.
  bool go(double share) {
    double sum = 0.0;
    for (int i = 0; i < n_; ++i) at_.p[i] += share * by_.p[i], sum += std::abs(at_.p[i]);
    for (int i = 0; i < m_; ++i) at_.z[i] += share * by_.z[i] * (i % 3 == 0 ? wide(i / 3) : 1.0), sum += std::abs(at_.z[i]);
    for (int j = 0; j < ends_; ++j) at_.low[j] += share * by_.low[j], at_.high[j] += share * by_.high[j];
    return finite_bits(sum);
  }

 private:
  struct Unknowns {
    double *p, *z, *low, *high;  // impulses (rows), z of the cones (cones, 3), and multipliers of the bounds of intervals
  };
  Unknowns unknowns() { return {c_.take(n_), c_.take(m_), c_.take(ends_), c_.take(ends_)}; }
  /// Cones of contacts, then cones of moments: the impulses (p_n, p_t), with one or two tangential rows. Entries of missing rows are zero.
  const FrictionDisk* moment(int i) const { return i < c_.contacts_ ? nullptr : c_.moment_ + (i - c_.contacts_); }
  double mu(int i) const { return moment(i) ? moment(i)->mu : c_.mu_[i]; }
  int size(int i) const { return moment(i) ? 1 + moment(i)->rows : 3; }
  int row(int i, int a) const { return !moment(i) ? 3 * i + a : a == 0 ? moment(i)->normal : moment(i)->first + a - 1; }
  void cone_vector(int i, const double* p, double* x) const {
    x[2] = 0.0;
    for (int a = 0; a < size(i); ++a) x[a] = p[row(i, a)];
  }
  double wide(int i) const { return std::max(mu(i), cones::thinnest); }
  double above(int j) const { return bounded(low_[j]) ? at_.p[end_[j]] - low_[j] : 1.0; }
  double below(int j) const { return bounded(high_[j]) ? high_[j] - at_.p[end_[j]] : 1.0; }
  /// Return the step of the impulse of cone i, in the variables x of ScaledCone.
  void motion(int i, double* d) const { cone_vector(i, by_.p, d), d[0] *= wide(i); }

  void solve(double* x) {
    std::copy(x, x + n_, right_), std::fill(x, x + n_, 0.0);
    for (int round = 0; round < 2; ++round) {  // the second pass removes rounding errors of the first
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

  ConeInterior& c_;
  const int n_, cones_, m_, ends_;
  Unknowns at_, by_;
  ScaledCone* cone_;
  int *other_, *end_;  // exchanged rows; rows of bounds
  double *low_, *high_, *r_, *K_, *right_, *left_, *h_, *correction_, *correct_low_, *correct_high_;
  int pairs_ = 0;
  double gap_ = 0.0, worst_ = 0.0;
};

inline void ConeInterior::interior(double* answer, bool slowly) {
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
    if (!limit_.spend(n_) || !point.set_up()) break;
    const double gap = point.gap(), worst = point.worst();
    double share = 0.0;
    if (slowly) {  // converge to the present target on the central path before the next target is chosen
      while (point.off_path(target) < 0.5 && worst < std::min(0.3 * std::sqrt(target), 1e3 * target)) target *= 0.3;
      share = point.step(target);
    } else {
      const double blocked = 1.0 - point.step(0.0), centre = std::max(gap * blocked * blocked * blocked, 0.01 * worst * worst);
      point.correct();
      share = point.step(centre);
      if (share < 0.3) {  // the iterate is too close to the boundary to follow the path: return to the central path
        point.forget_corrections();
        share = point.step(std::max(0.5 * gap, centre));
      }
    }
    stuck = share < 0.05 ? stuck + 1 : 0;
    if (!point.go(share) || stuck == (slowly ? 20 : 6)) break;
  }
  polish(answer, 8);
}

}  // namespace sarrus
