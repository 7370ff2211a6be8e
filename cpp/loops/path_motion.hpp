// Interpolation of a motion between two samples, with closed loops if there are any.
//
// Between samples every joint follows Hermite's cubic x(s), which matches the configurations and velocities of both samples,
//
//   x = s h (r0 + s (3 m - 2 r0 - r1 + s (r0 + r1 - 2 m)))      h: interval, s in [0, 1], r0, r1: rates, m = x1 / h
//
// in coordinates x (nv) relative to the first sample: those of q, with rates x-dot = E(q) v, E orthogonal. For quaternions x is the rotation vector,
// R = R_0 exp(x) (Kang and Park 1999). Before the first sample x is linear.
//
// For a closed-chain mechanism, this spline p(t) violates the loops between samples. The path is therefore defined by the loop equations together
// with additional equations, called the guide:
//
//   phi(q, t) = 0,    K(t) (q - p(t)) = 0
//
// where K is interpolated between its values at the two samples with the weight s^2 (3 - 2 s). The velocities and accelerations of the path are
// exact: they satisfy J v = c, J a = gamma, and the derivatives of the guide. The equations are solved by Newton steps from p. Dense, one state at a
// time,
// cost O(nv^2 rows) a step.
#pragma once

#include <optional>

#include "../dynamics/configuration.hpp"
#include "../spatial/spin.hpp"
#include "answers.hpp"
#include "pivoted_qr.hpp"

namespace sarrus {

inline Vec3<double> load3(const double* x) { return vec3<double>(x[0], x[1], x[2]); }
inline void put3(const Vec3<double>& x, double* out) {
  for (int i = 0; i < 3; ++i) out[i] = x(i);
}

/// Return the components of v in axes that are rotated by exp(x).
inline Vec3<double> in_turned_axes(const Vec3<double>& x, const Vec3<double>& v) { return transpose_times(rotation(exp(x)), v); }

/// Coordinates x of the joints, relative to a configuration.
class Chart {
 public:
  Chart(const Tree& tree, Arena& arena) : tree_(tree), in_q_(arena.take<double>(tree.nq)) {}

  /// Call of(link, has_rotation_vector, number of plain coordinates, their first index in x, their first index in q) for each joint.
  template <class F> void each(F&& of) const {
    for (int i = 1; i < tree_.links; ++i) {
      const Link& b = tree_.link[i];
      visit_every(b.described, b.nv, [&](auto joint) {
        constexpr bool turns = joint.has_quaternion;
        of(b, turns, joint.nv - 3 * turns, b.iv + 3 * turns, b.iq + 4 * turns);
      });
    }
  }
  /// Compute the coordinates x of q1 relative to q0; rotations along the shorter path.
  void difference(const double* q0, const double* q1, double* x) const {
    sarrus::difference(tree_, q0, q1, x);
    each([&](const Link&, bool, int n, int v, int q) {
      for (int k = 0; k < n; ++k) x[v + k] = q1[q + k] - q0[q + k];
    });
  }
  /// Compute the configuration q1 at x relative to q0. `turns`: work space (nv).
  void moved(const double* q0, const double* x, double* turns, double* q1) const {
    each([&](const Link& b, bool ball, int n, int v, int) {
      for (int k = 0; k < 3 && ball; ++k) turns[b.iv + k] = x[b.iv + k];
      for (int k = 0; k < n; ++k) turns[v + k] = 0.0;
    });
    integrate(tree_, q0, turns, q1);
    each([&](const Link&, bool, int n, int v, int q) {
      for (int k = 0; k < n; ++k) q1[q + k] = q0[q + k] + x[v + k];
    });
  }
  /// Compute x-dot = E v; for rotations the angular velocity.
  void rates(const double* q, const double* v, double* x_dot) const {
    coordinate_rate(tree_, q, v, in_q_);
    assign_rates(v, x_dot);
  }
  /// Compute x-ddot, the rate of E v for the acceleration a; for rotations the angular acceleration.
  void second_rates(Arena& arena, const double* q, const double* v, const double* a, double* x_ddot) const {
    const Arena::Scope scope(arena);
    coordinate_acceleration(tree_, arena, q, v, a, in_q_);
    assign_rates(a, x_ddot);
  }
  /// Compute E (6 x 6, column-major) of one joint, x-dot = E v: column i is x-dot for velocity i equal to 1.
  void block(const Link& b, const double* q, double* E) const {
    visit_every(b.described, b.nv, [&](auto joint) {
      constexpr bool turns = joint.has_quaternion;
      for (int i = 0; i < joint.nv; ++i) {
        double unit[6] = {}, rate[7];
        unit[i] = 1.0;
        joint.rate(q + b.iq, unit, rate);
        for (int k = 0; k < joint.nv; ++k) E[6 * i + k] = turns && k < 3 ? unit[k] : rate[k + turns];
      }
    });
  }
  /// Compute v = E^T x-dot.
  void velocities(const double* q, const double* x_dot, double* v) const {
    each([&](const Link& b, bool, int, int, int) {
      double E[36];
      block(b, q, E);
      for (int i = 0; i < b.nv; ++i) v[b.iv + i] = dot_product(b.nv, E + 6 * i, x_dot + b.iv);
    });
  }

 private:
  void assign_rates(const double* turning, double* x) const {
    each([&](const Link& b, bool ball, int n, int v, int q) {
      for (int k = 0; k < 3 && ball; ++k) x[b.iv + k] = turning[b.iv + k];
      for (int k = 0; k < n; ++k) x[v + k] = in_q_[q + k];
    });
  }

  const Tree& tree_;
  double* in_q_;
};

/// Two samples: q and v of each, and their times. After the last sample, the two samples are exchanged and time is reversed, so that the formula for
/// times before the first sample also applies after the last one.
struct PathPiece {
  const double *q0, *v0, *q1, *v1;
  double start, end;

  static int size(const Tree& t) { return 2 * (t.nq + t.nv + 1); }
  static PathPiece over(const Tree& t, const double* x) {
    const double *second = x + t.nq + t.nv, *times = second + t.nq + t.nv;
    return {x, x + t.nq, second, second + t.nq, times[0], times[1]};
  }
};

/// K of the guide at both samples, (count, nv) each; its columns refer to scaled velocities.
struct PathGuide {
  int count;
  const double *K0, *K1;

  static int size(int nv) { return 1 + 2 * nv * nv; }
  static PathGuide over(int nv, const double* x) {
    const int count = std::clamp(static_cast<int>(x[0]), 0, nv);
    return {count, x + 1, x + 1 + count * nv};
  }
};

/// Values of the cubic at one time: q, x-dot and x-ddot; for rotations the angular velocity and acceleration.
struct SplinePoint {
  double *q, *rate, *second;
};

inline SplinePoint cubic(const Tree& tree, Arena& arena, const Chart& chart, const PathPiece& p, double time) {
  const int nv = tree.nv;
  const auto take = [&](int n) { return arena.take<double>(n); };
  double *x = take(nv), *r0 = take(nv), *r1 = take(nv), *turns = take(nv);
  const SplinePoint at = {take(tree.nq), take(nv), take(nv)};
  chart.difference(p.q0, p.q1, x), chart.rates(p.q0, p.v0, r0), chart.rates(p.q1, p.v1, r1);
  chart.each([&](const Link& b, bool ball, int, int, int) {
    if (ball) put3(vector_rate(load3(x + b.iv), load3(r1 + b.iv)), r1 + b.iv);
  });
  const double h = p.end - p.start, s = (time - p.start) / h, inside = std::max(s, 0.0);
  for (int k = 0; k < nv; ++k) {
    const double slope = x[k] / h, second = 3.0 * slope - 2.0 * r0[k] - r1[k], third = r0[k] + r1[k] - 2.0 * slope;
    x[k] = s * h * r0[k] + inside * inside * h * (second + inside * third);
    at.rate[k] = r0[k] + inside * (2.0 * second + 3.0 * inside * third);
    at.second[k] = s < 0.0 ? 0.0 : (2.0 * second + 6.0 * inside * third) / h;
  }
  chart.moved(p.q0, x, turns, at.q);
  chart.each([&](const Link& b, bool ball, int, int, int) {
    if (ball) spin(x + b.iv, at.rate + b.iv, at.second + b.iv, at.rate + b.iv, at.second + b.iv);
  });
  return at;
}

/// Residual of the loop equations and the guide, in the scales of velocities and rows of closing.hpp.
class GuidedLoops {
 public:
  double *offset, *rate, *bend;  // scaled displacement from p to q, and its first and second derivative

  GuidedLoops(const Tree& tree, Arena& arena, const Chart& chart, const SplinePoint& p, const PathPiece& piece,
              const PathGuide& guide, const double* scale, const double* time)
      : tree_(tree),
        arena_(arena),
        chart_(chart),
        p_(p),
        column_(scale),
        row_(scale + tree.nv),
        time_(time),
        count_(guide.count) {
    const int n = count_ * tree.nv;
    const auto take = [&](int size) { return arena.take<double>(size); };
    offset = take(tree.nv), rate = take(tree.nv), bend = take(tree.nv);
    K_ = take(n), K1_ = take(n), K2_ = take(n), J_ = take(tree.loops.entries), A_ = take(rows() * tree.nv);
    b_ = take(rows()), target_ = take(tree.loops.rows);
    const double h = piece.end - piece.start, s = std::max((*time - piece.start) / h, 0.0);
    for (int k = 0; k < n; ++k) {
      const double change = guide.K1[k] - guide.K0[k];
      K_[k] = guide.K0[k] + s * s * (3.0 - 2.0 * s) * change;
      K1_[k] = 6.0 * s * (1.0 - s) / h * change;
      K2_[k] = s > 0.0 ? (6.0 - 12.0 * s) / (h * h) * change : 0.0;
    }
  }
  int rows() const { return tree_.loops.rows + count_; }

  /// Evaluate the residual at q, which becomes the right-hand side. On request also set the matrix, and c for `velocity`.
  void evaluate(const double* q, bool matrix, bool rates = false) {
    const Arena::Scope scope(arena_);
    const Loops& loops = tree_.loops;
    ConstraintRows<double> row_output;
    row_output.J = matrix ? J_ : nullptr, row_output.residual = b_, row_output.target = rates ? target_ : nullptr;
    constraint_rows(tree_, arena_, place<double>(tree_, arena_, q, time_, nullptr), row_output, 0, loops.constraints);
    for (int r = 0; r < loops.rows; ++r) b_[r] *= row_[r];
    chart_.difference(p_.q, q, offset);
    if (matrix) fill(q);
    for (int k = 0; k < tree_.nv; ++k) offset[k] /= column_[k];
    for (int r = 0; r < count_; ++r) b_[loops.rows + r] = dot_product(tree_.nv, K_ + r * tree_.nv, offset);
  }
  PivotedQr factor(Arena& arena) { return PivotedQr(rows(), tree_.nv, A_, arena, 0.0); }
  /// Solve for the scaled velocities that produce the right-hand side.
  void step(const PivotedQr& factor, double* x) const { factor.solve(b_, x); }
  void scale(double share, double* x) const {
    for (int k = 0; k < tree_.nv; ++k) x[k] *= column_[k] * share;
  }

  void velocity(const double* q, const PivotedQr& factor, double* v) {
    const Arena::Scope scope(arena_);
    std::copy(target_, target_ + tree_.loops.rows, b_);
    offset_motion(q, zeros<double>(arena_, tree_.nv), false);
    prescribe([&](int r) { return -dot(K_, r, rate) - dot(K1_, r, offset); });
    solve(factor, v);
  }
  void acceleration(const double* q, const double* v, const PivotedQr& factor, double* a) {
    const Arena::Scope scope(arena_);
    constraint_bias<double>(tree_, arena_, q, v, time_, nullptr, b_);
    offset_motion(q, v, true);
    prescribe([&](int r) { return -dot(K_, r, bend) - 2.0 * dot(K1_, r, rate) - dot(K2_, r, offset); });
    solve(factor, a);
  }

 private:
  double dot(const double* K, int r, const double* x) const { return dot_product(tree_.nv, K + r * tree_.nv, x); }

  /// Fill the matrix: rows of the loops, then K times the derivatives of the displacement from p to q with respect to the velocities. These
  /// derivatives are a block per joint.
  void fill(const double* q) {
    const int nv = tree_.nv, m = rows();
    std::fill(A_, A_ + m * nv, 0.0);
    const double* entry = J_;
    for (int i = 0; i < tree_.loops.constraints; ++i) {
      const Constraint& c = tree_.loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) A_[c.column[k] * m + c.row + r] = *entry++ * column_[c.column[k]] * row_[c.row + r];
    }
    chart_.each([&](const Link& b, bool ball, int, int, int) {
      double E[36];
      chart_.block(b, q, E);
      for (int i = 0; i < b.nv; ++i) {
        double* x = E + 6 * i;
        if (ball) put3(vector_rate(load3(offset + b.iv), load3(x)), x);
        for (int k = 0; k < b.nv; ++k) x[k] *= column_[b.iv + i] / column_[b.iv + k];
        for (int r = 0; r < count_; ++r) A_[(b.iv + i) * m + tree_.loops.rows + r] = dot_product(b.nv, K_ + r * nv + b.iv, x);
      }
    });
  }
  /// Compute the rate of the displacement from p to q along v; if `bends`, also its second derivative. For rotations the rate is the angular velocity
  /// of q relative to p in the axes of q. In these axes a vector that is fixed in p rotates backwards.
  void offset_motion(const double* q, const double* v, bool bends) {
    chart_.rates(q, v, rate);
    if (bends) chart_.second_rates(arena_, q, v, zeros<double>(arena_, tree_.nv), bend);
    for (int k = 0; k < tree_.nv; ++k) {
      rate[k] -= p_.rate[k];
      if (bends) bend[k] -= p_.second[k];
    }
    chart_.each([&](const Link& b, bool ball, int, int, int) {
      if (!ball) return;
      const Vec3<double> x = load3(offset + b.iv), moved = in_turned_axes(x, load3(p_.rate + b.iv));
      const Vec3<double> relative = load3(v + b.iv) - moved;
      put3(vector_rate(x, relative), rate + b.iv);
      if (!bends) return;
      const Vec3<double> spin_rate = cross(relative, moved) - in_turned_axes(x, load3(p_.second + b.iv));
      constexpr double still[3] = {};
      double turning[3], apparent[3];
      spin(offset + b.iv, rate + b.iv, still, turning, apparent);
      put3(vector_rate(x, spin_rate - load3(apparent)), bend + b.iv);
    });
    for (int k = 0; k < tree_.nv; ++k) {
      rate[k] /= column_[k];
      if (bends) bend[k] /= column_[k];
    }
  }
  template <class Of> void prescribe(Of&& of) {
    for (int r = 0; r < tree_.loops.rows; ++r) b_[r] *= row_[r];
    for (int r = 0; r < count_; ++r) b_[tree_.loops.rows + r] = of(r);
  }
  void solve(const PivotedQr& factor, double* x) {
    factor.solve(b_, x);
    for (int k = 0; k < tree_.nv; ++k) x[k] *= column_[k];
  }

  const Tree& tree_;
  Arena& arena_;
  const Chart& chart_;
  const SplinePoint& p_;
  const double *column_, *row_, *time_;
  int count_;
  double *K_, *K1_, *K2_, *J_, *A_, *b_, *target_;
};

/// Take Newton steps from q onto the loops, each at most 0.3 rad. Returns true if they converge at most 1 rad from p.
inline bool follow(const Tree& tree, Arena& arena, GuidedLoops& loops, double* q, double* v, double* a) {
  constexpr double small = 1e-9;  // length of a Newton step whose result has an error of 1e-18, because convergence is quadratic
  constexpr double close_by = 1e-3;  // fraction of the residual that remains after a step with an old factor
  double *x = arena.take<double>(tree.nv), *next = arena.take<double>(tree.nq), size = 1e300, before = size;
  std::optional<Arena::Scope> scope;
  std::optional<PivotedQr> factor;
  const auto refactorise = [&] { scope.emplace(arena), factor.emplace(loops.factor(arena)); };
  bool arrived = false;
  for (int k = 0; k < 40 && !arrived; ++k) {
    const bool again = !(size < close_by && size < 0.1 * before);
    loops.evaluate(q, again);
    if (again) refactorise();
    if (factor->rank < tree.nv) return false;
    loops.step(*factor, x);
    before = size, size = 0.0;
    for (int i = 0; i < tree.nv; ++i) size = std::max(size, std::abs(x[i]));
    if (!std::isfinite(size)) return false;
    loops.scale(-std::min(1.0, 0.3 / std::max(size, 1e-300)), x);
    integrate(tree, q, x, next), std::copy(next, next + tree.nq, q);
    // the last test: steps that no longer become shorter are at rounding level
    arrived = size < small && (again || size < close_by * small || size > 0.1 * before);
  }
  loops.evaluate(q, true, true);
  refactorise();
  double largest = 0.0;
  for (int i = 0; i < tree.nv; ++i) largest = std::max(largest, std::abs(loops.offset[i]));
  if (!arrived || !(largest <= 1.0) || factor->rank < tree.nv) return false;
  loops.velocity(q, *factor, v), loops.acceleration(q, v, *factor, a);
  return true;
}

/// Write q, v and a of the cubic or, with a guide, of a configuration with closed loops near the cubic. The last entry is 1 if there is no such
/// configuration near the cubic, else 0.
inline void path_motion(const Tree& tree, Arena& arena, const PathPiece& piece, const double* scale, const double* guide,
                        const double* time, double* out) {
  const double now = time ? *time : piece.start;
  double *q = out, *v = q + tree.nq, *a = v + tree.nv, *lost = a + tree.nv;
  const Chart chart(tree, arena);
  const SplinePoint p = cubic(tree, arena, chart, piece, now);
  std::copy(p.q, p.q + tree.nq, q);
  *lost = 0.0;
  if (guide && scale && tree.loops.rows > 0) {
    GuidedLoops loops(tree, arena, chart, p, piece, PathGuide::over(tree.nv, guide), scale, &now);
    // no path is computed if the caller supplies values of rows: such rows restrict only velocities, or are targets whose values between samples are
    // not known
    if (tree.loops.pfaffian_values > 0 || !follow(tree, arena, loops, q, v, a)) std::fill(q, lost, 0.0), *lost = 1.0;
    return;
  }
  chart.velocities(q, p.rate, v);
  double *turning = arena.take<double>(tree.nv), *left = arena.take<double>(tree.nv);
  std::fill(turning, turning + tree.nv, 0.0);
  chart.second_rates(arena, q, v, turning, left);
  for (int k = 0; k < tree.nv; ++k) left[k] = p.second[k] - left[k];
  chart.velocities(q, left, a);
}

}  // namespace sarrus
