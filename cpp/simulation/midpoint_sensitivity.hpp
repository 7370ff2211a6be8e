// Derivatives of a step of the implicit midpoint rule (implicit_midpoint.hpp) by the implicit function theorem at its solution, in forward and in
// reverse mode. On loops, a step from (q0, v0) to (q1, v1) consists of
//
//   start    q0' = q0 exp(u0), v0' = v0 + w0             least motions at q0:  M0 u0 + J0^T y = 0, J0 u0 = pi;  also w0, with J0 w0 = rho
//   middle   v = (v0' + v1')/2 = v0' + h/2 a             [M J^T; J 0] [a; -lambda] = [tau - h; gamma] at q = q0' cay(h/4 (v0' + v1')) and v
//   end      q1 = q1' exp(u1), v1 = v1' + w1             least motions at q1 with the same pi and rho, such that phi(q1) = 0 and J1 v1 = c
//
// The last least motions of the step itself are those of a configuration that differs from q1 by the drift; the effect is of second order in it.
// pi and rho follow from both ends of the step. In the middle, rates of v and q depend on Da, so for constant matrices Q of derivatives of the right-
// hand side along displacements and changes of v (loops/derivatives.hpp)
//
//   ([M J^T; J 0] - h/2 [Q_v + Q_q E, 0]) [Da; -Dlambda] = Q_q Dq0' + (Q_v + Q_q E) Dv0'        E: displacement of the middle by v
//
// with rows for the rates of internal states too. Let S be the solution of the middle's equation for accelerations, by the factor that forward dynamics
// has. Then (1 - h/2 S [Q_v + Q_q E]) Da = S (Q_q Dq0' + (Q_v + Q_q E) Dv0'), without multipliers. This matrix is dense, but only nv wide; it is
// factorised once. With rows in it, long chains of loops would take more time than dual numbers. Dpi and Drho are found by corrections with the residuals
// of the rows at the end, as in the step; their error decreases by about the angle [rad] of the largest rotation in the step in each round. Cotangents
// pass the transposes in reverse order.
//
//   cost    three to five forward dynamics, two factors of least motions, derivative matrices of the middle and of the least motions, nv solutions of
//           the middle's equation, and O(nv^3) for the dense factor; for each column O(nv^2) and five to ten rounds of four least motions
#pragma once

#include "repeated_step.hpp"

namespace sarrus {

/// Factors of a matrix (n x n, overwritten) of states in lanes, by elimination with row pivots that all lanes share.
template <class P> class FactorInLanes {
 public:
  /// `unit`: units of the unknowns, in which pivots are compared.
  template <class Unit> FactorInLanes(Arena& arena, int n, P* A, Unit unit) : n_(n), LU_(A), other_(arena.take<int>(n)) {
    for (int k = 0; k < n && ok_; ++k) {
      P largest = P(1e-300);
      for (int r = k; r < n; ++r) largest = most(largest, abs(A[r * n + k]) / P(unit(r)));
      const auto size = [&](int r) {  // relative to the largest entry of the column, in the lane in which this is least
        double least_size = HUGE_VAL;
        for (int l = 0; l < width_of<P>; ++l)
          least_size = std::min(least_size, std::abs(lane(A[r * n + k], l)) / (unit(r) * lane(largest, l)));
        return least_size;
      };
      int pivot = k;
      double best = size(k);
      for (int r = k + 1; r < n && !(best > sufficient); ++r)
        if (const double other = size(r); other > best) best = other, pivot = r;
      ok_ = best > least_pivot;
      if (pivot != k) std::swap_ranges(A + k * n, A + (k + 1) * n, A + pivot * n);
      other_[k] = pivot;
      const P inverse = A[k * n + k] = P(1.0) / A[k * n + k];
      for (int r = k + 1; r < n; ++r) {
        const P factor = A[r * n + k] *= inverse;
        for (int c = k + 1; c < n; ++c) A[r * n + c] -= factor * A[k * n + c];
      }
    }
  }
  /// Return false if lanes need different pivots, or if the matrix is singular.
  bool ok() const { return ok_; }
  /// Replace b by A^-1 b.
  void solve(P* b) const {
    for (int k = 0; k < n_; ++k) std::swap(b[k], b[other_[k]]);
    for (int k = 1; k < n_; ++k) b[k] -= product(LU_ + k * n_, b, k);
    for (int k = n_ - 1; k >= 0; --k) b[k] = (b[k] - product(LU_ + k * n_ + k + 1, b + k + 1, n_ - k - 1)) * LU_[k * n_ + k];
  }
  /// Replace b by A^-T b.
  void solve_transposed(P* b) const {
    for (int k = 0; k < n_; ++k) {
      b[k] *= LU_[k * n_ + k];
      for (int c = k + 1; c < n_; ++c) b[c] -= LU_[k * n_ + c] * b[k];
    }
    for (int k = n_ - 1; k > 0; --k)
      for (int c = 0; c < k; ++c) b[c] -= LU_[k * n_ + c] * b[k];
    for (int k = n_ - 1; k >= 0; --k) std::swap(b[k], b[other_[k]]);
  }

 private:
  // relative sizes of pivots: one that is used at once, and the least one that is used
  static constexpr double sufficient = 0.3, least_pivot = 0.01;
  static P product(const P* a, const P* b, int count) {
    P sum = P(0.0);
    for (int k = 0; k < count; ++k) sum += a[k] * b[k];
    return sum;
  }
  int n_;
  P* LU_;  // the diagonal contains inverses of pivots
  int* other_;
  bool ok_ = true;
};

template <class P> class MidpointSensitivity : RepeatedStep<P> {
 public:
  using RepeatedStep<P>::RepeatedStep;

  /// Return true if these derivatives take less time than dual numbers along `directions`. The matrices have columns for all velocities, and each needs a
  /// corrected solution of the middle's equation. Ladders of bars with one degree of freedom (two directions) take 0.8 of the time with 33 velocities, but
  /// 1.1 with 65. Without the recursions for plain trees and rows (loops/derivatives.hpp), each of eleven columns for a velocity costs as much as one of
  /// the 60 to 120 evaluations for a direction: rods joined by distances take 0.9 with 9 velocities, but 1.3 with 17.
  bool pays(int directions) const {
    const int velocities_per_direction = is_plain_tree(tree_) && has_plain_rows(tree_) ? 20 : 6;
    return n_ <= velocities_per_direction * directions;
  }
  /// Propagate changes, or pull a cotangent back: see StepMatrices::push and StepPullback::pull.
  bool push(double time, double h, const P* x, const P* after, P* S, int count, const int* parameter, P& status) {
    const Arena::Scope scope(arena_);
    if (!pays(count) || !prepare(time, h, x, after, status)) return false;
    // with few columns, it takes less time to solve for each of them
    if (rounds_of_columns * count > n_) respond_in_columns(by_q_, n_), by_q_responds_ = true;
    P *d = take(m()), *out = take(m());
    for (int c = 0; c < count; ++c) {
      const Arena::Scope column_scope(arena_);
      for (int r = 0; r < m(); ++r) d[r] = S[r * count + c];
      advance(d, parameter[c] < 0 ? nullptr : forces_by_parameter(parameter[c]), out);
      for (int r = 0; r < m(); ++r) S[r * count + c] = out[r];
    }
    return true;
  }
  bool pull(double time, double h, const P* x, const P* after, P* lambda, const int* acting, int count, P* by_parameter,
            P& status) {
    const Arena::Scope scope(arena_);
    if (!prepare(time, h, x, after, status)) return false;
    P* sides = take(unknowns());
    retreat(lambda, sides);
    for (int c = 0; c < count; ++c) {
      const Arena::Scope parameter_scope(arena_);
      const P* force = forces_by_parameter(acting[c]);
      for (int k = 0; k < unknowns(); ++k) by_parameter[acting[c]] += force[k] * sides[k];
    }
    return true;
  }

 private:
  using Base = RepeatedStep<P>;
  using Base::tree_, Base::arena_, Base::plan_, Base::n_, Base::nz_, Base::rows_, Base::by_rates_, Base::sees_state_, Base::ny_,
      Base::numbers_, Base::stage_, Base::projects, Base::take, Base::constant, Base::system, Base::with_inertias_only,
      Base::is_cut, Base::evaluate, Base::rounding, Base::time_, Base::h_, Base::late_;
  using typename Base::Varied, typename Base::Point, typename Base::Stage;

  static constexpr int rounds_of_columns = 6;  // usual number of rounds of advance()

  int m() const { return 2 * n_ + nz_; }
  int unknowns() const { return n_ + rows_ + nz_; }

  /// Displacement of the end of a motion by a displacement d of its beginning and a change of its argument: blocks of joints (nv x 6). Null: d plus a
  /// multiple of the change.
  struct JointMap {
    P *by_d = nullptr, *by_u = nullptr;
    double multiple = 1.0;
  };
  static constexpr int widest = 6;
  /// Least motions u of positions and w of velocities at an end of the step, with the derivatives (nv + rows) x nv of the right-hand sides of their
  /// equations; null: the motion is zero.
  struct End {
    std::optional<LeastMotion<P>> least{};
    P *u, *w, *u_multiplier, *w_multiplier, *u_by_q = nullptr, *w_by_q = nullptr;
    P largest_u = P(0.0);  // relative to the units of velocities
    JointMap map{};
  };

  // ---- values ----

  bool prepare(double time, double h, const P* x, const P* after, P& status) {
    if (is_cut(time + h, x) || FloatingGroups<P>(tree_, arena_).count > 0) return false;
    time_ = time, h_ = h, x_ = x, after_ = after, P_start_ = P(time), P_end_ = P(time + h);
    P wrong = P(0.0);
    if (!repeat(wrong)) return false;
    if (!find_matrices()) return false;
    status = select(wrong > status, wrong, status);
    return true;
  }

  /// Compute the force of joints' dampers that is evaluated after the middle of the step, as MidpointRule does: later_ (v0' - v1'). Returns false if a
  /// nonlinear damper is so fast.
  bool damp_late(const P* q, const P* v0, const P* v1) {
    if (!tree_.has_joint_forces) return true;
    const auto numbers = tree_.template numbers<P>();
    P *M = take(n_ * n_), *later = take(n_), *late = take(n_);
    crba(tree_, arena_, q, M);
    bool any_later = false, linear = true;
    for (int k = 0; k < n_; ++k) {
      const PassiveTerms& f = tree_.passive[k];
      const P damping = tangent_damping(P(numbers(f.damping)), f.nonlinear, numbers, v0[k]);
      const auto fast = damping * P(h_) > M[k * n_ + k] * P(2.0);
      later[k] = select(fast, damping * P(0.5) - M[k * n_ + k] / P(h_), P(0.0)), late[k] = later[k] * (v0[k] - v1[k]);
      any_later |= any(fast), linear &= !any(fast) || !f.nonlinear.has_forces();
    }
    later_ = any_later ? later : nullptr, late_ = any_later ? late : nullptr;
    return linear;
  }
  /// Add the derivatives of this force to the equation of the middle. It contains M_kk at the beginning, whose rate is multiplied by a_k.
  void add_late_damping() {
    const P* a = stage_[0]->a;
    const Arena::Scope scope(arena_);
    Varied *q = arena_.template take<Varied>(tree_.nq), *M = arena_.template take<Varied>(n_ * n_);
    const Varied* from = constant(q_[0], tree_.nq);
    each_unit([&](int j, const P* unit) {
      Varied* d = constant(unit, n_);
      for (int k = 0; k < n_; ++k) d[k] = {P(0.0), unit[k]};
      integrate(tree_, from, static_cast<const Varied*>(d), q);
      crba(tree_, arena_, static_cast<const Varied*>(q), M);
      for (int k = 0; k < n_; ++k) by_q_[k * n_ + j] += select(later_[k] > P(0.0), M[k * n_ + k].rate * a[k], P(0.0));
    });
  }

  /// Find the middle state, and the least motions at both ends, from the ends. Returns false if these are not the ends of such a step.
  bool repeat(P& wrong) {
    const int nq = tree_.nq;
    const P *v0 = x_ + nq, *v1 = after_ + nq;
    P *pi = take(rows_), *rho = take(rows_);  // changes in a round
    P *off_q = take(n_), *off_v = take(n_), *back = take(n_), *moved = take(nq);
    q_[0] = take(nq), q_[1] = take(nq), v_middle_ = take(n_ + nz_), u_ = take(n_);
    P *begin_v = take(n_), *end_v = take(n_), *q_middle = take(nq), *half = take(n_), *whole = take(n_);
    for (End& e : end_) {
      e.u = zero(n_), e.w = zero(n_), e.u_multiplier = zero(rows_), e.w_multiplier = zero(rows_);
    }
    if (projects()) {
      end_[0].least.emplace(tree_, arena_, x_, P_start_, static_cast<const P*>(nullptr));
      end_[1].least.emplace(tree_, arena_, after_, P_end_, static_cast<const P*>(nullptr));
    }
    constexpr int most_rounds = 10;
    P before = P(HUGE_VAL);
    for (int round = 0;; ++round) {
      for (End& e : end_) {
        if (round == 0) break;
        add_least_motion(round - 1, e, pi, e.u, e.u_multiplier), add_least_motion(round - 1, e, rho, e.w, e.w_multiplier);
      }
      integrate(tree_, x_, end_[0].u, q_[0]);
      for (int k = 0; k < n_; ++k) back[k] = -end_[1].u[k], begin_v[k] = v0[k] + end_[0].w[k], end_v[k] = v1[k] - end_[1].w[k];
      integrate(tree_, after_, static_cast<const P*>(back), q_[1]);
      for (int k = 0; k < n_; ++k) v_middle_[k] = P(0.5) * (begin_v[k] + end_v[k]);
      for (int k = 0; k < nz_; ++k) v_middle_[n_ + k] = P(0.5) * (v0[n_ + k] + v1[n_ + k]);
      for (int k = 0; k < n_; ++k) u_[k] = P(h_) * v_middle_[k];
      std::copy(u_, u_ + n_, whole);
      as_exponential(tree_, whole);
      for (int k = 0; k < n_; ++k) half[k] = P(0.5) * whole[k];
      integrate(tree_, static_cast<const P*>(q_[0]), static_cast<const P*>(half), q_middle);
      integrate(tree_, static_cast<const P*>(q_[0]), static_cast<const P*>(whole), moved);
      difference(tree_, static_cast<const P*>(q_[1]), static_cast<const P*>(moved), off_q);
      P wrong_here = P(0.0);
      if (!damp_late(q_[0], begin_v, end_v)) return false;
      Stage& s = stage_[0].emplace(Stage{Point{half, q_middle, v_middle_, v_middle_ + n_}});
      evaluate(s, time_ + 0.5 * h_, x_, time_, wrong_here);
      Reproduced<P> ends(plan_);
      P off = P(0.0);
      for (int k = 0; k < n_; ++k) {
        off_v[k] = begin_v[k] + P(h_) * s.a[k] - end_v[k];
        ends.see_displacement(k, off_q[k]), ends.see_velocity(k, end_v[k] + off_v[k], end_v[k]);
        off = most(off, (abs(off_q[k]) + abs(off_v[k])) / P(Plan::unit_of(plan_.velocity_unit, k)));
      }
      for (int k = 0; k < nz_; ++k) ends.see_internal_state(k, v0[n_ + k] + P(h_) * s.z_dot[k], v1[n_ + k]);
      constexpr double settled = 1e-12;
      const bool done = !any(off > P(settled)) || !projects() || round == most_rounds || !any(off < before * P(0.5));
      before = off;
      if (done) {
        wrong = wrong_here;
        return !any(ends.missed());
      }
      std::fill(pi, pi + rows_, P(0.0)), std::fill(rho, rho + rows_, P(0.0));
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(off_q), P(-0.5), pi);
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(off_v), P(-0.5), rho);
    }
  }
  const P* J(int end) const { return end_[end].least->rows(); }
  /// Add the least motion that changes the rows by `rows`, and y with M motion + J^T y = 0.
  void add_least_motion(int round, const End& e, const P* rows, P* motion, P* y) const {
    const Arena::Scope scope(arena_);
    const P* x = change(round, e, nullptr, nullptr, rows);
    for (int k = 0; k < n_; ++k) motion[k] += x[k];
    for (int r = 0; r < rows_; ++r) y[r] += x[n_ + r];
  }
  /// Solve the equation of least motions in the given round of corrections. The first rounds need one correction of the solution; in later rounds
  /// right-hand sides are so small that errors of the regularised factor are at rounding level.
  const P* solve(const End& e, P* b, int round) const {
    constexpr int corrected = 2;
    const LoopEquation<P>& equation = e.least->e;
    if (round >= corrected && !equation.epsilon && !equation.pieces) return solve_once(equation, arena_, e.least->factor, b), b;
    P* y = take(equation.solved().plan.unknowns);
    refine(equation.solved(), arena_, e.least->factor, equation.lifted(arena_, b), y, 1);
    return equation.lowered(arena_, y);
  }

  // ---- matrices ----

  bool find_matrices() {
    const int N = unknowns();
    P *v_m = v_middle_, *q_m = stage_[0]->at.q;
    const P* q_begin = q_[0];
    half_ = joint_map(q_begin, q_m, v_m, h_, 0.5), whole_ = joint_map(q_begin, q_[1], v_m, h_, 1.0);
    if (projects()) {
      end_[0].map = joint_map(x_, q_begin, end_[0].u), end_[1].map = joint_map(q_[1], after_, end_[1].u);
      bend(end_[0], x_, P_start_), bend(end_[1], after_, P_end_);
      turn_ = turning_rows();
    }
    by_q_ = take(N * n_), by_v_ = take(N * n_), by_z_ = take(N * nz_);
    const Stage& s = *stage_[0];
    {
      const Arena::Scope scope(arena_);
      P *column = take(N), *middle_by_q = take(N * n_);
      for (P* matrix : {middle_by_q, by_q_, by_v_}) std::fill(matrix, matrix + N * n_, P(0.0));
      MotionRates<P, P> rates(tree_, arena_, s.in, s.a, s.equation ? s.equation->lambda : nullptr);
      rates.prepare();
      differentiate(rates, middle_by_q, by_v_);
      for (int k = sees_state_ ? 0 : 2 * n_; k < m(); ++k) {
        const Arena::Scope column_scope(arena_);
        const int part = std::min(k / n_, 2), columns = part < 2 ? n_ : nz_;
        P* matrix = part == 0 ? middle_by_q : part == 1 ? by_v_ : by_z_;
        std::fill(column, column + N, P(0.0));
        force_rates(k, -1, column);
        for (int i = 0; i < N; ++i) {
          P& entry = matrix[i * columns + k - part * n_];
          entry = part < 2 ? entry + column[i] : column[i];
        }
      }
      // displacements of the middle in terms of those of the beginning and of the velocities
      for (int i = 0; i < N; ++i) pull_map(half_, middle_by_q + i * n_, by_q_ + i * n_, by_v_ + i * n_);
    }
    if (later_) add_late_damping();
    return factorise();
  }
  /// Add the derivatives ((n + rows) x n) of right-hand sides by displacements and by changes of v.
  void differentiate(const MotionRates<P, P>& rates, P* by_q, P* by_v) const {
    const auto put = [this](P* to) { return [this, to](int i, int k, const P& x) SARRUS_INLINED { to[i * n_ + k] += x; }; };
    if (rates.has_matrices()) return rates.each_entry(put(by_q), put(by_v));
    each_unit([&](int k, const P* unit) {
      for (P* matrix : {by_q, by_v}) {
        Sides<P> side(arena_, n_ + rows_);
        rates.add({matrix == by_q ? unit : nullptr, matrix == by_q ? nullptr : unit}, side);
        for (int i = 0; i < n_ + rows_; ++i) matrix[i * n_ + k] += side.b[i];
      }
    });
  }

  /// Solve [M J^T; J 0] x = side in the middle (n + rows).
  void respond(const P* side, P* x) const {
    const Stage& s = *stage_[0];
    if (rows_ == 0)
      accelerate_from_rest(tree_, arena_, s.tree, side, x);
    else
      s.equation->template solve<P>(arena_, side, nullptr, x);
  }
  /// Replace right-hand sides (unknowns x columns) by the accelerations and the rates of internal states (n + nz rows).
  void respond_in_columns(P* matrix, int columns) const {
    const Arena::Scope scope(arena_);
    P *side = take(n_ + rows_), *x = take(n_ + rows_);
    for (int c = 0; c < columns; ++c) {
      for (int i = 0; i < n_ + rows_; ++i) side[i] = matrix[i * columns + c];
      respond(side, x);
      for (int i = 0; i < n_; ++i) matrix[i * columns + c] = x[i];
    }
    std::copy(matrix + (n_ + rows_) * columns, matrix + unknowns() * columns, matrix + n_ * columns);
  }

  bool factorise() {
    const int n = n_ + nz_;
    respond_in_columns(by_v_, n_), respond_in_columns(by_z_, nz_);
    P* A = take(n * n);
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k)
        A[i * n + k] = P(i == k ? 1.0 : 0.0) - (k < n_ ? by_v_[i * n_ + k] : by_z_[i * nz_ + k - n_]) * P(0.5 * h_);
    for (int k = 0; later_ && k < n_; ++k) {
      const Arena::Scope scope(arena_);
      if (!any(later_[k] > P(0.0))) continue;
      P *side = take(n_ + rows_), *x = take(n_ + rows_);
      std::fill(side, side + n_ + rows_, P(0.0)), side[k] = later_[k] * P(h_);
      respond(side, x);
      for (int i = 0; i < n_; ++i) A[i * n + k] += x[i];
    }
    factor_.emplace(arena_, n, A,
                    [&](int k) { return k < n_ ? Plan::unit_of(plan_.velocity_unit, k) : Plan::unit_of(plan_.z_unit, k - n_); });
    return factor_->ok();
  }

  /// Compute the map of the motion h u. part: fraction of the rotation, by Cayley's transform; 0: the motion is an exponential.
  JointMap joint_map(const P* from, const P* to, const P* u_value, double h = 1.0, double part = 0.0) {
    if (by_rates_) return {nullptr, nullptr, part > 0.0 ? part * h : h};
    const JointMap map = {take(n_ * widest), take(n_ * widest)};
    const Arena::Scope scope(arena_);
    Varied *d = constant(zeros<P>(arena_, n_), n_), *du = constant(zeros<P>(arena_, n_), n_),
           *u = arena_.template take<Varied>(n_), *out = arena_.template take<Varied>(n_);
    Varied *begin = arena_.template take<Varied>(tree_.nq), *end = arena_.template take<Varied>(tree_.nq);
    const Varied *from_constant = constant(from, tree_.nq), *to_constant = constant(to, tree_.nq);
    for (int number = 0; number < widest; ++number)
      for (Varied* seed : {d, du}) {
        const auto each = [&](auto act) {
          for (int i = 1; i < tree_.links; ++i)
            if (number < tree_.link[i].nv) act(tree_.link[i].iv, tree_.link[i].nv);
        };
        P* block = seed == d ? map.by_d : map.by_u;
        each([&](int iv, int) { seed[iv + number].rate = P(1.0); });
        integrate(tree_, from_constant, static_cast<const Varied*>(d), begin);
        for (int k = 0; k < n_; ++k) u[k] = (Varied(u_value[k], P(0.0)) + du[k]) * Varied(h);
        if (part > 0.0) as_exponential(tree_, u);
        for (int k = 0; part > 0.0 && k < n_; ++k) u[k] = u[k] * Varied(part);
        integrate(tree_, static_cast<const Varied*>(begin), static_cast<const Varied*>(u), end);
        difference(tree_, to_constant, static_cast<const Varied*>(end), out);
        each([&](int iv, int nv) {
          for (int k = iv; k < iv + nv; ++k) block[k * widest + number] = out[k].rate;
          seed[iv + number].rate = P(0.0);
        });
      }
    return map;
  }
  /// Return the displacement (nv) of the end of a motion.
  P* push_map(const JointMap& map, const P* d, const P* u) const {
    P* out = take(n_);
    if (!map.by_d) {
      for (int k = 0; k < n_; ++k) out[k] = d[k] + u[k] * P(map.multiple);
      return out;
    }
    each_block([&](int k, int iv, int c) {
      if (c == 0) out[k] = P(0.0);
      out[k] += map.by_d[k * widest + c] * d[iv + c] + map.by_u[k * widest + c] * u[iv + c];
    });
    return out;
  }
  /// Add the cotangents of a displacement and of an argument.
  void pull_map(const JointMap& map, const P* by, P* by_d, P* by_u) const {
    if (!map.by_d)
      for (int k = 0; k < n_; ++k) by_d[k] += by[k], by_u[k] += by[k] * P(map.multiple);
    else
      each_block([&](int k, int iv, int c) {
        by_d[iv + c] += map.by_d[k * widest + c] * by[k], by_u[iv + c] += map.by_u[k * widest + c] * by[k];
      });
  }
  template <class Act> void each_block(Act act) const {
    for (int i = 1; i < tree_.links; ++i)
      for (int k = 0, iv = tree_.link[i].iv, nv = tree_.link[i].nv; k < nv; ++k)
        for (int c = 0; c < nv; ++c) act(iv + k, iv, c);
  }

  /// Compute the derivatives of the right-hand sides of the equations of least motions.
  void bend(End& e, const P* q, const P& time) {
    const auto by_q = [&](const P* motion, const P* y, P& size) -> P* {
      for (int k = 0; k < n_; ++k) size = most(size, abs(motion[k]) / P(Plan::unit_of(plan_.velocity_unit, k)));
      if (!any(size > P(rounding))) return nullptr;
      P* H = take((n_ + rows_) * n_);
      const Arena::Scope scope(arena_);
      const Tree weightless = with_inertias_only();
      const P *rest = zeros<P>(arena_, n_), *none = zeros<P>(arena_, rows_);
      P* lambda = take(rows_);
      for (int r = 0; r < rows_; ++r) lambda[r] = -y[r];
      LoopInput<P> in{q, rest, nullptr};
      in.time = &time;
      MotionRates<P, P> rates(weightless, arena_, in, motion, lambda), still(weightless, arena_, in, rest, none);
      rates.prepare();
      std::fill(H, H + (n_ + rows_) * n_, P(0.0));
      const auto put = [&](int i, int k, const P& x) SARRUS_INLINED { H[i * n_ + k] += x; };
      if (rates.has_matrices()) return rates.each_entry(put, [](int, int, const P&) {}), H;
      each_unit([&](int k, const P* unit) {
        Sides<P> side(arena_, n_ + rows_), at_rest(arena_, n_ + rows_);
        rates.add({unit, nullptr}, side),
            still.add({unit, nullptr}, at_rest);  // also subtract changes of prescribed accelerations
        for (int i = 0; i < n_ + rows_; ++i) put(i, k, side.b[i] - at_rest.b[i]);
      });
      return H;
    };
    P largest_w = P(0.0);
    e.u_by_q = by_q(e.u, e.u_multiplier, e.largest_u), e.w_by_q = by_q(e.w, e.w_multiplier, largest_w);
  }
  /// Return the derivative (rows x nv) of c - J v by q at the end of the step.
  P* turning_rows() {
    P* turn = take(rows_ * n_);
    const Arena::Scope scope(arena_);
    LoopInput<P> in{after_, after_ + tree_.nq, nullptr};
    in.time = &P_end_;
    MotionRates<P, P> rates(tree_, arena_, in, zeros<P>(arena_, n_), zeros<P>(arena_, rows_));
    rates.prepare(false);
    std::fill(turn, turn + rows_ * n_, P(0.0));
    if (rates.has_matrices())
      return rates.each_turning_entry([&](int row, int k, const P& x) SARRUS_INLINED { turn[row * n_ + k] += x; }), turn;
    each_unit([&](int k, const P* unit) {
      Sides<P> side(arena_, n_ + rows_);
      rates.turn_rows(unit, side);
      for (int r = 0; r < rows_; ++r) turn[r * n_ + k] = side.b[n_ + r];
    });
    return turn;
  }
  template <class Act> void each_unit(Act act) const {
    P* unit = take(n_);
    std::fill(unit, unit + n_, P(0.0));
    for (int k = 0; k < n_; ++k) {
      const Arena::Scope scope(arena_);
      unit[k] = P(1.0), act(k, unit), unit[k] = P(0.0);
    }
  }

  /// Set the rates of the forces and of z' in a column of right-hand sides (unknowns) along a direction of the state, or of a parameter.
  void force_rates(int direction, int parameter, P* column) {
    const Arena::Scope scope(arena_);
    const Stage& s = *stage_[0];
    Varied *q = constant(s.at.q, tree_.nq), *v = constant(s.at.v, n_), *z = constant(s.at.z, nz_);
    if (direction >= 0 && direction < n_) {
      Varied* d = constant(zeros<P>(arena_, n_), n_);
      d[direction].rate = P(1.0);
      integrate(tree_, static_cast<const Varied*>(constant(s.at.q, tree_.nq)), static_cast<const Varied*>(d), q);
    } else if (direction >= 0) {
      (direction < 2 * n_ ? v[direction - n_] : z[direction - 2 * n_]).rate = P(1.0);
    }
    Varied *tau = arena_.template take<Varied>(n_), *z_dot = arena_.template take<Varied>(nz_);
    Varied* held_values = constant(x_ + tree_.nq + n_ + nz_, plan_.force_elements.held_size);
    if (parameter >= 0) numbers_[parameter].rate = P(1.0);
    vary_held_efforts(plan_, static_cast<const Varied*>(numbers_), held_values);
    auto elements = system(static_cast<const Varied*>(numbers_), static_cast<const Varied*>(held_values), time_);
    elements.forces(Varied(s.time, P(0.0)), q, v, z, tau, z_dot);
    if (parameter >= 0) numbers_[parameter].rate = P(0.0);
    for (int k = 0; k < n_; ++k) column[k] = tau[k].rate;
    for (int k = 0; k < nz_; ++k) column[n_ + rows_ + k] = z_dot[k].rate;
  }
  const P* forces_by_parameter(int parameter) {
    P* column = take(unknowns());
    std::fill(column, column + unknowns(), P(0.0));
    force_rates(-1, parameter, column);
    return column;
  }

  // ---- products ----

  /// Add A x, or A^T y, of a row-major matrix (rows x columns); null: zero.
  static void add_product(const P* A, int rows, int columns, const P* x, P* to) {
    for (int i = 0; A && i < rows; ++i) {
      P sum = P(0.0);
      for (int k = 0; k < columns; ++k) sum += A[i * columns + k] * x[k];
      to[i] += sum;
    }
  }
  static void add_transposed(const P* A, int rows, int columns, const P* y, P* to) {
    for (int i = 0; A && i < rows; ++i)
      for (int k = 0; k < columns; ++k) to[k] += A[i * columns + k] * y[i];
  }

  /// Compute the change of the end (2 nv + nz) due to a change of the start, and to right-hand sides `force` (null: zero). Each round adds the
  /// effect of a change of pi and rho.
  void advance(const P* d, const P* force, P* out) const {
    if (!projects()) return middle(d, d + n_, d + 2 * n_, force, out);
    P *pi = zero(rows_), *rho = zero(rows_), *phi = take(rows_), *slip = take(rows_), *end = take(m()), *by = zero(m()),
      *none = zero(m());
    std::fill(out, out + m(), P(0.0));
    Settled settled;
    for (int round = 0;; ++round) {
      const Arena::Scope scope(arena_);
      const bool first = round == 0;
      const P *q0 = push_map(end_[0].map, d, change(round, end_[0], first ? end_[0].u_by_q : nullptr, d, pi)),
              *w0 = change(round, end_[0], first ? end_[0].w_by_q : nullptr, d, rho);
      P* v0 = take(n_);
      for (int k = 0; k < n_; ++k) v0[k] = d[n_ + k] + w0[k];
      middle(q0, v0, d + 2 * n_, force, end);
      const P* q1 = push_map(end_[1].map, end, change(round, end_[1], end_[1].u_by_q, by, pi));
      const P* w1 = change(round, end_[1], end_[1].w_by_q, q1, rho);
      for (int k = 0; k < n_; ++k) by[k] = q1[k], by[n_ + k] = end[n_ + k] + w1[k];
      std::copy(end + 2 * n_, end + m(), by + 2 * n_);
      for (int k = 0; k < m(); ++k) out[k] += by[k];
      std::fill(phi, phi + rows_, P(0.0)), std::fill(slip, slip + rows_, P(0.0));
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(out), P(1.0), phi);
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(out + n_), P(-1.0), slip);
      add_product(turn_, rows_, n_, out, slip);
      // the least motion at the end changes with the end itself, of which a round includes the changes of the rounds before
      P pending = P(0.0);
      for (int k = 0; k < n_ && end_[1].u_by_q; ++k) pending = most(pending, abs(by[k]) * end_[1].largest_u);
      if (settled(rows_, phi, slip, pending, 2 * n_, out)) return;
      for (int r = 0; r < rows_; ++r) pi[r] = P(-0.5) * phi[r] - P(0.25 * h_) * slip[r], rho[r] = P(0.5) * slip[r];
      d = none, force = nullptr;
    }
  }
  P* zero(int n) const {
    P* x = take(n);
    std::fill(x, x + n, P(0.0));
    return x;
  }
  /// Return the change of a least motion.
  const P* change(int round, const End& e, const P* by_q, const P* dq, const P* rows) const {
    P* b = take(n_ + rows_);
    for (int k = 0; k < n_ + rows_; ++k) b[k] = k < n_ ? P(0.0) : rows[k - n_];
    add_product(by_q, n_ + rows_, n_, dq, b);
    return solve(e, b, round);
  }
  void middle(const P* dq, const P* dv, const P* dz, const P* force, P* out) const {
    const Arena::Scope scope(arena_);
    const int N = unknowns(), n = n_ + nz_;
    P *side = take(N), *x = zero(n_ + rows_ + nz_), *v = take(n_);
    if (force || !by_q_responds_) {
      for (int k = 0; k < N; ++k) side[k] = force ? force[k] : P(0.0);
      if (!by_q_responds_) add_product(by_q_, N, n_, dq, side);
      respond(side, x);
      std::copy(side + n_ + rows_, side + N, x + n_);
    }
    if (by_q_responds_) add_product(by_q_, n, n_, dq, x);
    add_product(by_v_, n, n_, dv, x), add_product(by_z_, n, nz_, dz, x);
    factor_->solve(x);
    for (int k = 0; k < n_; ++k) v[k] = dv[k] + P(0.5 * h_) * x[k];
    const P* q = push_map(whole_, dq, v);
    std::copy(q, q + n_, out);
    for (int k = 0; k < n_; ++k) out[n_ + k] = dv[k] + P(h_) * x[k];
    for (int k = 0; k < nz_; ++k) out[2 * n_ + k] = dz[k] + P(h_) * x[n_ + k];
  }

  /// Replace the cotangent of the end by that of the start. `sides`: cotangent of right-hand sides (unknowns). Each round adds the effect of a change
  /// of phi and slip, the cotangents of the rows at the end.
  void retreat(P* lambda, P* sides) const {
    std::fill(sides, sides + unknowns(), P(0.0));
    if (!projects()) return pull_middle(lambda, sides, lambda);
    P *by_pi = zero(rows_), *by_rho = zero(rows_), *phi = zero(rows_), *slip = zero(rows_), *start = zero(m()), *bent = zero(n_);
    Settled settled;
    for (int round = 0;; ++round) {
      const Arena::Scope scope(arena_);
      P *q = take(n_), *by_u = zero(n_), *by_end = take(m()), *begin = take(m()), *v = by_end + n_, *away = take(rows_);
      std::copy(lambda, lambda + m(), by_end);
      for (int r = 0; r < rows_; ++r) away[r] = -slip[r];
      add_constraint_forces(tree_, J(1), static_cast<const P*>(away), v);
      for (int k = 0; k < n_; ++k) q[k] = lambda[k] + bent[k];
      add_constraint_forces(tree_, J(1), static_cast<const P*>(phi), q);
      add_transposed(turn_, rows_, n_, slip, q);
      const P* w1 = solve_for(round, end_[1], v);
      add_transposed(end_[1].w_by_q, n_ + rows_, n_, w1, q);
      std::fill(by_end, by_end + n_, P(0.0));
      pull_map(end_[1].map, q, by_end, by_u);
      const P* u1 = solve_for(round, end_[1], by_u);
      std::fill(bent, bent + n_, P(0.0));
      add_transposed(end_[1].u_by_q, n_ + rows_, n_, u1, bent);
      pull_middle(by_end, sides, begin);
      std::fill(by_u, by_u + n_, P(0.0));
      pull_map(end_[0].map, begin, start, by_u);
      const P *u0 = solve_for(round, end_[0], by_u), *w0 = solve_for(round, end_[0], begin + n_);
      add_transposed(end_[0].u_by_q, n_ + rows_, n_, u0, start), add_transposed(end_[0].w_by_q, n_ + rows_, n_, w0, start);
      for (int k = n_; k < m(); ++k) start[k] += begin[k];
      for (int r = 0; r < rows_; ++r) by_pi[r] += u0[n_ + r] + u1[n_ + r], by_rho[r] += w0[n_ + r] + w1[n_ + r];
      // cotangents along which dependent rows cannot change have no effect
      P *pi_force = zero(n_), *rho_force = zero(n_);
      add_constraint_forces(tree_, J(1), static_cast<const P*>(by_pi), pi_force);
      add_constraint_forces(tree_, J(1), static_cast<const P*>(by_rho), rho_force);
      P pending = P(0.0);
      for (int k = 0; k < n_; ++k) pending = most(pending, abs(bent[k]));
      if (settled(n_, pi_force, rho_force, pending, m(), start)) break;
      for (int r = 0; r < rows_; ++r) phi[r] = P(-0.5) * by_pi[r], slip[r] = P(0.5) * by_rho[r] - P(0.25 * h_) * by_pi[r];
      std::fill(lambda, lambda + m(), P(0.0));
    }
    std::copy(start, start + m(), lambda);
  }
  const P* solve_for(int round, const End& e, const P* force) const {
    P* b = take(n_ + rows_);
    for (int k = 0; k < n_ + rows_; ++k) b[k] = k < n_ ? force[k] : P(0.0);
    return solve(e, b, round);
  }
  /// Compute the cotangent of the beginning of the middle, and add to `sides`.
  void pull_middle(const P* by_end, P* sides, P* begin) const {
    const Arena::Scope scope(arena_);
    const int n = n_ + nz_;
    P *q = zero(n_), *by_middle = zero(n_), *v = take(n_ + nz_), *z = v + n_, *x = take(n), *side = zero(n_ + rows_),
      *force = zero(n_ + rows_);
    pull_map(whole_, by_end, q, by_middle);
    for (int k = 0; k < n_; ++k) {
      v[k] = by_end[n_ + k] + by_middle[k];
      x[k] = P(h_) * by_end[n_ + k] + P(0.5 * h_) * by_middle[k];
    }
    for (int k = 0; k < nz_; ++k) z[k] = by_end[2 * n_ + k], x[n_ + k] = P(h_) * z[k];
    factor_->solve_transposed(x);
    add_transposed(by_v_, n, n_, x, v), add_transposed(by_z_, n, nz_, x, z);
    std::copy(x, x + n_, force);
    respond(force, side);
    add_transposed(by_q_, n_ + rows_, n_, side, q), add_transposed(by_q_ + (n_ + rows_) * n_, nz_, n_, x + n_, q);
    for (int k = 0; k < n_ + rows_; ++k) sides[k] += side[k];
    for (int k = 0; k < nz_; ++k) sides[n_ + rows_ + k] += x[n_ + k];
    std::copy(q, q + n_, begin), std::copy(v, v + n_ + nz_, begin + n_);
  }

  /// Stop of the corrections: residuals, and effects that the next round would add (`pending`), are at rounding level, relative to the solution, or do
  /// not decrease.
  class Settled {
   public:
    bool operator()(int residuals, const P* a, const P* b, const P& pending, int n, const P* solution) {
      P off = pending, size = P(0.0);
      for (int r = 0; r < residuals; ++r) off = most(off, most(abs(a[r]), abs(b[r])));
      for (int k = 0; k < n; ++k) size = most(size, abs(solution[k]));
      // residuals of the velocities follow those of the positions, so the largest one may increase at first
      constexpr int least_rounds = 4, most_rounds = 40;
      if (++round_ > most_rounds || !any(off > size * P(1e-14)) || (round_ > least_rounds && !any(off < before_))) return true;
      before_ = off * P(0.9);
      return false;
    }

   private:
    int round_ = 0;
    P before_ = P(HUGE_VAL);
  };

  const P *x_ = nullptr, *after_ = nullptr;
  P P_start_{}, P_end_{};
  P *q_[2], *v_middle_, *u_;  // corrected ends; v and z in the middle; h v
  End end_[2];
  JointMap half_, whole_;
  const P* later_ = nullptr;  // (nv) coefficients of damp_late(); null: zero
  P *turn_ = nullptr, *by_q_ = nullptr, *by_v_ = nullptr, *by_z_ = nullptr;
  std::optional<FactorInLanes<P>> factor_;
  bool by_q_responds_ = false;  // true if by_q_ contains responses, as by_v_ and by_z_ do, instead of right-hand sides
};

}  // namespace sarrus
