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
// with rows for the rates of internal states too. This matrix is factorised once. Dpi and Drho are found by corrections with the residuals of the rows
// at the end, as in the step; their error decreases by about the angle [rad] of the largest rotation in the step in each round. Cotangents pass the
// transposes in reverse order.
//
//   cost    three to five forward dynamics, two factors of least motions, derivative matrices of the middle and of the least motions, and
//           O((nv + rows)^3) for the dense factor; for each column O((nv + rows)^2)
#pragma once

#include "../simd/dense.hpp"
#include "repeated_step.hpp"

namespace sarrus {

/// Factors of a matrix (n x n) of states in lanes, by elimination with row pivots in each lane. The matrix is scaled, and if it is singular, `softness`
/// is subtracted from the diagonal in the rows of constraints, because these depend on one another; a correction removes its effect.
template <class P> class DenseFactor {
 public:
  DenseFactor(Arena& arena, int n, const P* A, const P* scale, int soft_begin, int soft_end)
      : arena_(arena), n_(n), A_(A), scale_(scale) {
    for (int l = 0; l < width_of<P>; ++l) {
      LU_[l] = arena.take<double>(n * n), other_[l] = arena.take<int>(n);
      if (factorise(l, 0.0, soft_begin, soft_end)) continue;
      corrections_ = 1;
      ok_ &= factorise(l, softness, soft_begin, soft_end);
    }
  }
  bool ok() const { return ok_; }
  /// Replace b by A^-1 b or, if `transposed`, by A^-T b.
  void solve(P* b, bool transposed) const {
    const Arena::Scope scope(arena_);
    P *x = arena_.take<P>(n_), *rest = arena_.take<P>(n_);
    std::fill(x, x + n_, P(0.0)), std::copy(b, b + n_, rest);
    for (int round = 0;; ++round) {
      substitute(rest, transposed);
      for (int k = 0; k < n_; ++k) x[k] += rest[k];
      if (round == corrections_) break;
      std::copy(b, b + n_, rest);
      for (int i = 0; i < n_; ++i)
        for (int k = 0; k < n_; ++k) transposed ? rest[k] -= A_[i * n_ + k] * x[i] : rest[i] -= A_[i * n_ + k] * x[k];
    }
    std::copy(x, x + n_, b);
  }

 private:
  static constexpr double softness = 1e-11;  // relative to inertias and rows

  /// Factorise the matrix of lane l. Returns false if it is singular.
  bool factorise(int l, double soft, int soft_begin, int soft_end) {
    constexpr double singular = 1e-9;
    double *LU = LU_[l], least = 1.0;
    for (int i = 0; i < n_; ++i)
      for (int k = 0; k < n_; ++k) LU[i * n_ + k] = lane(A_[i * n_ + k], l) * lane(scale_[i], l) * lane(scale_[k], l);
    for (int k = soft_begin; k < soft_end; ++k) LU[k * n_ + k] -= soft;
    if (!eliminate(n_, LU, [&](int row, int pivot) { other_[l][row] = pivot; })) return false;
    for (int k = 0; k < n_; ++k) least = std::min(least, std::abs(LU[k * n_ + k]));
    return soft > 0.0 || least > singular;
  }
  void substitute(P* b, bool transposed) const {
    double* x = arena_.take<double>(n_);
    for (int l = 0; l < width_of<P>; ++l) {
      const double* LU = LU_[l];
      const int* other = other_[l];
      for (int k = 0; k < n_; ++k) x[k] = lane(b[k], l) * lane(scale_[k], l);
      if (transposed) {
        for (int k = 0; k < n_; ++k) x[k] /= LU[k * n_ + k], subtract_scaled(x + k + 1, LU + k * n_ + k + 1, x[k], n_ - k - 1);
        for (int k = n_ - 1; k > 0; --k) subtract_scaled(x, LU + k * n_, x[k], k);
        for (int k = n_ - 1; k >= 0; --k) std::swap(x[k], x[other[k]]);
      } else {
        for (int k = 0; k < n_; ++k) std::swap(x[k], x[other[k]]);
        solve_eliminated(n_, LU, x);
      }
      for (int k = 0; k < n_; ++k) lane(b[k], l) = x[k] * lane(scale_[k], l);
    }
  }

  Arena& arena_;
  int n_, corrections_ = 0;
  const P *A_, *scale_;
  double* LU_[width_of<P>];
  int* other_[width_of<P>];
  bool ok_ = true;
};

template <class P> class MidpointSensitivity : RepeatedStep<P> {
 public:
  using RepeatedStep<P>::RepeatedStep;

  /// Propagate changes, or pull a cotangent back: see StepMatrices::push and StepPullback::pull.
  bool push(double time, double h, const P* x, const P* after, P* S, int count, const int* parameter, P& status) {
    const Arena::Scope scope(arena_);
    if (!prepare(time, h, x, after, status)) return false;
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
    P *pi = take(rows_), *rho = take(rows_), *off_q = take(n_), *off_v = take(n_), *back = take(n_), *moved = take(nq);
    q_[0] = take(nq), q_[1] = take(nq), v_middle_ = take(n_ + nz_), u_ = take(n_);
    P *begin_v = take(n_), *end_v = take(n_), *q_middle = take(nq), *half = take(n_), *whole = take(n_);
    for (End& e : end_) {
      e.u = take(n_), e.w = take(n_), e.u_multiplier = take(rows_), e.w_multiplier = take(rows_);
      std::fill(e.u, e.u + n_, P(0.0)), std::fill(e.w, e.w + n_, P(0.0));
    }
    if (projects()) {
      end_[0].least.emplace(tree_, arena_, x_, P_start_, static_cast<const P*>(nullptr));
      end_[1].least.emplace(tree_, arena_, after_, P_end_, static_cast<const P*>(nullptr));
    }
    std::fill(pi, pi + rows_, P(0.0)), std::fill(rho, rho + rows_, P(0.0));
    constexpr int most_rounds = 10;
    P before = P(HUGE_VAL);
    for (int round = 0;; ++round) {
      for (End& e : end_) {
        if (!projects()) break;
        least_motion(e, pi, e.u, e.u_multiplier), least_motion(e, rho, e.w, e.w_multiplier);
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
      constexpr double settled = 1e-10;
      const bool done = !any(off > P(settled)) || !projects() || round == most_rounds || !any(off < before * P(0.5));
      before = off;
      if (done) {
        wrong = wrong_here;
        return !any(ends.missed());
      }
      P *by_q = take(rows_), *by_v = take(rows_);
      std::fill(by_q, by_q + rows_, P(0.0)), std::fill(by_v, by_v + rows_, P(0.0));
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(off_q), P(1.0), by_q);
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(off_v), P(1.0), by_v);
      for (int r = 0; r < rows_; ++r) pi[r] -= P(0.5) * by_q[r], rho[r] -= P(0.5) * by_v[r];
    }
  }
  const P* J(int end) const { return end_[end].least->rows(); }
  /// Compute a least motion, and y with M motion + J^T y = 0.
  void least_motion(const End& e, const P* rows, P* motion, P* y) const {
    const Arena::Scope scope(arena_);
    P* b = take(n_ + rows_);
    for (int k = 0; k < n_ + rows_; ++k) b[k] = k < n_ ? P(0.0) : rows[k - n_];
    const P* x = solve(e, b);
    std::copy(x, x + n_, motion), std::copy(x + n_, x + n_ + rows_, y);
  }
  /// Solve the equation of least motions with one correction; the rounds at the end of the step correct the rest.
  const P* solve(const End& e, const P* b) const {
    const LoopEquation<P>& equation = e.least->e;
    P* y = take(equation.solved().plan.unknowns);
    refine(equation.solved(), arena_, e.least->factor, equation.lifted(arena_, b), y, 1);
    return equation.lowered(arena_, y);
  }

  // ---- matrices ----

  bool find_matrices() {
    const int N = unknowns();
    P *v_m = v_middle_, *q_m = stage_[0]->at.q;
    const P* q_begin = q_[0];
    const auto cayley = [&, v_m](const Varied* dv, double part, Varied* u) {
      for (int k = 0; k < n_; ++k) u[k] = (Varied(v_m[k], P(0.0)) + dv[k]) * Varied(h_);
      as_exponential(tree_, u);
      for (int k = 0; k < n_; ++k) u[k] = u[k] * Varied(part);
    };
    const auto plain = [&](const P* u) {
      return [this, u](const Varied* du, Varied* to) {
        for (int k = 0; k < n_; ++k) to[k] = Varied(u[k], P(0.0)) + du[k];
      };
    };
    half_ = joint_map(q_begin, q_m, 0.5 * h_, [&](const Varied* dv, Varied* u) { cayley(dv, 0.5, u); });
    whole_ = joint_map(q_begin, q_[1], h_, [&](const Varied* dv, Varied* u) { cayley(dv, 1.0, u); });
    if (projects()) {
      end_[0].map = joint_map(x_, q_begin, 1.0, plain(end_[0].u));
      end_[1].map = joint_map(q_[1], after_, 1.0, plain(end_[1].u));
      bend(end_[0], x_, P_start_), bend(end_[1], after_, P_end_);
      turn_ = turning_rows();
    }
    by_q_ = take(N * n_), by_v_ = take(N * n_), by_z_ = take(N * nz_);
    const Stage& s = *stage_[0];
    {
      const Arena::Scope scope(arena_);
      MotionRates<P, P> rates(tree_, arena_, s.in, s.a, s.equation ? s.equation->lambda : nullptr);
      rates.prepare();
      P *unit = take(n_), *column = take(N), *middle_by_q = take(N * n_);
      std::fill(unit, unit + n_, P(0.0));
      for (int k = 0; k < n_; ++k) {
        const Arena::Scope column_scope(arena_);
        unit[k] = P(1.0);
        for (const int part : {0, 1}) {
          Sides<P> side(arena_, n_ + rows_);
          rates.add({part ? nullptr : unit, part ? unit : nullptr}, side);
          std::fill(column, column + N, P(0.0));
          if (sees_state_) force_rates(part * n_ + k, -1, column);
          for (int i = 0; i < n_ + rows_; ++i) column[i] += side.b[i];
          for (int i = 0; i < N; ++i) (part ? by_v_ : middle_by_q)[i * n_ + k] = column[i];
        }
        unit[k] = P(0.0);
      }
      for (int k = 0; k < nz_; ++k) {
        const Arena::Scope column_scope(arena_);
        std::fill(column, column + N, P(0.0));
        force_rates(2 * n_ + k, -1, column);
        for (int i = 0; i < N; ++i) by_z_[i * nz_ + k] = column[i];
      }
      // displacements of the middle in terms of those of the beginning and of the velocities
      for (int i = 0; i < N; ++i) {
        std::fill(by_q_ + i * n_, by_q_ + (i + 1) * n_, P(0.0));
        pull_map(half_, middle_by_q + i * n_, by_q_ + i * n_, by_v_ + i * n_);
      }
    }
    if (later_) add_late_damping();
    return factorise();
  }

  bool factorise() {
    const int N = unknowns();
    const Stage& s = *stage_[0];
    P *K = take(N * N), *scale = take(N);
    set_saddle(s.at.q, rows_ > 0 ? s.equation->J() : nullptr, N, K, scale, [&](int r) { return s.equation->row_weight(r); });
    for (int z = n_ + rows_; z < N; ++z) scale[z] = K[z * N + z] = P(1.0);
    for (int i = 0; i < N; ++i) {
      for (int k = 0; k < n_; ++k) K[i * N + k] -= by_v_[i * n_ + k] * P(0.5 * h_);
      for (int k = 0; k < nz_; ++k) K[i * N + n_ + rows_ + k] -= by_z_[i * nz_ + k] * P(0.5 * h_);
    }
    for (int k = 0; later_ && k < n_; ++k) K[k * N + k] += later_[k] * P(h_);
    factor_.emplace(arena_, N, K, scale, n_, n_ + rows_);
    return factor_->ok();
  }
  /// Set K (N x N) to [M J^T; J 0], and the scales of its rows.
  template <class Weight> void set_saddle(const P* q, const P* J, int N, P* K, P* scale, Weight row_weight) const {
    const Arena::Scope scope(arena_);
    P* M = take(n_ * n_);
    crba(tree_, arena_, q, M);
    std::fill(K, K + N * N, P(0.0));
    for (int i = 0; i < n_; ++i) {
      const P inertia = M[i * n_ + i];
      scale[i] = P(1.0) / sqrt(select(inertia > P(0.0), inertia, P(1.0)));
      for (int k = 0; k < n_; ++k) K[i * N + k] = M[i * n_ + k];
    }
    if (J)
      each_entry_of_rows(tree_.loops, J, [&](const Constraint&, int row, int column, const P& entry) {
        K[(n_ + row) * N + column] += entry, K[column * N + n_ + row] += entry;
      });
    for (int r = 0; r < rows_; ++r) scale[n_ + r] = sqrt(row_weight(r));
  }

  template <class Argument> JointMap joint_map(const P* from, const P* to, double multiple, Argument argument) {
    if (by_rates_) return {nullptr, nullptr, multiple};
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
        argument(static_cast<const Varied*>(du), u);
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
    const auto by_q = [&](const P* motion, const P* y) -> P* {
      P size = P(0.0);
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
      const bool is_plain = has_plain_rows(tree_);
      each_unit([&](int k, const P* unit) {
        Sides<P> side(arena_, n_ + rows_), at_rest(arena_, n_ + rows_);
        rates.add({unit, nullptr}, side);
        if (!is_plain) still.add({unit, nullptr}, at_rest);  // changes of prescribed accelerations
        for (int i = 0; i < n_ + rows_; ++i) H[i * n_ + k] = side.b[i] - at_rest.b[i];
      });
      return H;
    };
    e.u_by_q = by_q(e.u, e.u_multiplier), e.w_by_q = by_q(e.w, e.w_multiplier);
  }
  /// Return the derivative (rows x nv) of c - J v by q at the end of the step.
  P* turning_rows() {
    P* turn = take(rows_ * n_);
    const Arena::Scope scope(arena_);
    LoopInput<P> in{after_, after_ + tree_.nq, nullptr};
    in.time = &P_end_;
    MotionRates<P, P> rates(tree_, arena_, in, zeros<P>(arena_, n_), zeros<P>(arena_, rows_));
    rates.prepare(false);
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

  /// Compute the change of the end (2 nv + nz) due to a change of the start, and to right-hand sides `force` (null: zero).
  void advance(const P* d, const P* force, P* out) const {
    const P *dq = d, *dv = d + n_, *dz = d + 2 * n_;
    if (!projects()) return middle(dq, dv, dz, force, out);
    P *pi = take(rows_), *rho = take(rows_), *phi = take(rows_), *slip = take(rows_), *end = take(m());
    std::fill(pi, pi + rows_, P(0.0)), std::fill(rho, rho + rows_, P(0.0)), std::fill(out, out + m(), P(0.0));
    Settled settled;
    for (;;) {
      const Arena::Scope scope(arena_);
      const P *q0 = push_map(end_[0].map, dq, change(end_[0], end_[0].u_by_q, dq, pi)),
              *w0 = change(end_[0], end_[0].w_by_q, dq, rho);
      P* v0 = take(n_);
      for (int k = 0; k < n_; ++k) v0[k] = dv[k] + w0[k];
      middle(q0, v0, dz, force, end);
      const P* q1 = push_map(end_[1].map, end, change(end_[1], end_[1].u_by_q, out, pi));
      const P* w1 = change(end_[1], end_[1].w_by_q, q1, rho);
      for (int k = 0; k < n_; ++k) out[k] = q1[k], out[n_ + k] = end[n_ + k] + w1[k];
      std::copy(end + 2 * n_, end + m(), out + 2 * n_);
      std::fill(phi, phi + rows_, P(0.0)), std::fill(slip, slip + rows_, P(0.0));
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(out), P(1.0), phi);
      add_motion_along_rows(tree_, J(1), static_cast<const P*>(out + n_), P(-1.0), slip);
      add_product(turn_, rows_, n_, out, slip);
      if (settled(rows_, phi, slip, 2 * n_, out)) return;
      for (int r = 0; r < rows_; ++r) pi[r] -= P(0.5) * phi[r] + P(0.25 * h_) * slip[r], rho[r] += P(0.5) * slip[r];
    }
  }
  /// Return the change of a least motion.
  const P* change(const End& e, const P* by_q, const P* dq, const P* rows) const {
    P* b = take(n_ + rows_);
    for (int k = 0; k < n_ + rows_; ++k) b[k] = k < n_ ? P(0.0) : rows[k - n_];
    add_product(by_q, n_ + rows_, n_, dq, b);
    return solve(e, b);
  }
  void middle(const P* dq, const P* dv, const P* dz, const P* force, P* out) const {
    const Arena::Scope scope(arena_);
    const int N = unknowns();
    P *x = take(N), *v = take(n_);
    for (int k = 0; k < N; ++k) x[k] = force ? force[k] : P(0.0);
    add_product(by_q_, N, n_, dq, x), add_product(by_v_, N, n_, dv, x), add_product(by_z_, N, nz_, dz, x);
    factor_->solve(x, false);
    for (int k = 0; k < n_; ++k) v[k] = dv[k] + P(0.5 * h_) * x[k];
    const P* q = push_map(whole_, dq, v);
    std::copy(q, q + n_, out);
    for (int k = 0; k < n_; ++k) out[n_ + k] = dv[k] + P(h_) * x[k];
    for (int k = 0; k < nz_; ++k) out[2 * n_ + k] = dz[k] + P(h_) * x[n_ + rows_ + k];
  }

  /// Replace the cotangent of the end by that of the start. `sides`: cotangent of right-hand sides (unknowns).
  void retreat(P* lambda, P* sides) const {
    if (!projects()) return pull_middle(lambda, sides, lambda);
    P *by_pi = take(rows_), *by_rho = take(rows_), *phi = take(rows_), *slip = take(rows_), *begin = take(m());
    P *bent = take(n_), *by_q = take(n_), *by_end = take(m());
    std::fill(phi, phi + rows_, P(0.0)), std::fill(slip, slip + rows_, P(0.0)), std::fill(bent, bent + n_, P(0.0));
    Settled settled;
    for (;;) {
      const Arena::Scope scope(arena_);
      P *q = take(n_), *by_u = take(n_);
      std::copy(lambda, lambda + m(), by_end);
      P* v = by_end + n_;
      P* away = take(rows_);
      for (int r = 0; r < rows_; ++r) away[r] = -slip[r];
      add_constraint_forces(tree_, J(1), static_cast<const P*>(away), v);
      for (int k = 0; k < n_; ++k) q[k] = lambda[k] + bent[k];
      add_constraint_forces(tree_, J(1), static_cast<const P*>(phi), q);
      add_transposed(turn_, rows_, n_, slip, q);
      const P* w1 = solve_for(end_[1], v);
      add_transposed(end_[1].w_by_q, n_ + rows_, n_, w1, q);
      std::fill(by_end, by_end + n_, P(0.0)), std::fill(by_u, by_u + n_, P(0.0));
      pull_map(end_[1].map, q, by_end, by_u);
      const P* u1 = solve_for(end_[1], by_u);
      std::fill(bent, bent + n_, P(0.0));
      add_transposed(end_[1].u_by_q, n_ + rows_, n_, u1, bent);
      pull_middle(by_end, sides, begin);
      std::fill(by_q, by_q + n_, P(0.0)), std::fill(by_u, by_u + n_, P(0.0));
      pull_map(end_[0].map, begin, by_q, by_u);
      const P *u0 = solve_for(end_[0], by_u), *w0 = solve_for(end_[0], begin + n_);
      add_transposed(end_[0].u_by_q, n_ + rows_, n_, u0, by_q), add_transposed(end_[0].w_by_q, n_ + rows_, n_, w0, by_q);
      for (int r = 0; r < rows_; ++r) by_pi[r] = u0[n_ + r] + u1[n_ + r], by_rho[r] = w0[n_ + r] + w1[n_ + r];
      // cotangents along which dependent rows cannot change have no effect
      P *pi_force = take(n_), *rho_force = take(n_);
      std::fill(pi_force, pi_force + n_, P(0.0)), std::fill(rho_force, rho_force + n_, P(0.0));
      add_constraint_forces(tree_, J(1), static_cast<const P*>(by_pi), pi_force);
      add_constraint_forces(tree_, J(1), static_cast<const P*>(by_rho), rho_force);
      if (settled(n_, pi_force, rho_force, m(), begin)) break;
      for (int r = 0; r < rows_; ++r) phi[r] -= P(0.5) * by_pi[r], slip[r] += P(0.5) * by_rho[r] - P(0.25 * h_) * by_pi[r];
    }
    std::copy(by_q, by_q + n_, lambda), std::copy(begin + n_, begin + m(), lambda + n_);
  }
  const P* solve_for(const End& e, const P* force) const {
    P* b = take(n_ + rows_);
    for (int k = 0; k < n_ + rows_; ++k) b[k] = k < n_ ? force[k] : P(0.0);
    return solve(e, b);
  }
  void pull_middle(const P* by_end, P* x, P* begin) const {
    const Arena::Scope scope(arena_);
    const int N = unknowns();
    P *q = take(n_), *by_middle = take(n_), *v = take(n_), *z = take(nz_);
    std::fill(q, q + n_, P(0.0)), std::fill(by_middle, by_middle + n_, P(0.0)), std::fill(x, x + N, P(0.0));
    pull_map(whole_, by_end, q, by_middle);
    for (int k = 0; k < n_; ++k) {
      v[k] = by_end[n_ + k] + by_middle[k];
      x[k] = P(h_) * by_end[n_ + k] + P(0.5 * h_) * by_middle[k];
    }
    for (int k = 0; k < nz_; ++k) z[k] = by_end[2 * n_ + k], x[n_ + rows_ + k] = P(h_) * z[k];
    factor_->solve(x, true);
    add_transposed(by_q_, N, n_, x, q), add_transposed(by_v_, N, n_, x, v), add_transposed(by_z_, N, nz_, x, z);
    std::copy(q, q + n_, begin), std::copy(v, v + n_, begin + n_), std::copy(z, z + nz_, begin + 2 * n_);
  }

  /// Stop of the corrections: residuals are at rounding level, relative to the solution, or do not decrease.
  class Settled {
   public:
    bool operator()(int residuals, const P* a, const P* b, int n, const P* solution) {
      P off = P(0.0), size = P(0.0);
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
  std::optional<DenseFactor<P>> factor_;
};

}  // namespace sarrus
