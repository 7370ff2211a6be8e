// Changes of the end of an explicit step due to changes of its beginning, for many columns at once: forward mode beside step_pullback.hpp.
//
//   a stage    [M J^T; J 0] [Da; -Dlambda] = [Dtau - D(M a + h) + DJ^T lambda; D gamma - DJ a]
//              with the factor and the derivative matrices of the stage (loops/derivatives.hpp); Dtau by force elements on dual numbers
//   the end    Du:  [M J^T; J 0] [Du; Dy] = [-DM u - DJ^T y; ...]  with  J1 (Dq1 + Du) = 0
//              Dw:  [M J^T; J 0] [Dw; Dz] = [-DM w - DJ^T z; ...]  with  J1 (Dv + Dw) = Dc - DJ1 v
//
// D denotes the change along a column. Rows of J1 are satisfied by repeated corrections of the right-hand side, because the factor is that of J. The
// maps of integration are evaluated on dual numbers.
//
//   cost    the step, derivative matrices for each stage, and for each column the solves of the step
#pragma once

#include "repeated_step.hpp"

namespace sarrus {

template <class P> class StepMatrices : RepeatedStep<P> {
 public:
  using RepeatedStep<P>::RepeatedStep;

  /// Propagate `count` columns of changes S (m x count) from the initial state x through a step of length h that ends at `after`. Column c also
  /// changes the parameter with index parameter[c], if it is not negative. Returns false, and changes nothing, under the conditions of repeat().
  bool push(double time, double h, const P* x, const P* after, P* S, int count, const int* parameter, P& status) {
    const Arena::Scope scope(arena_);
    if (!repeat(time, h, x, after, status)) return false;
    const int m = 2 * n_ + nz_, stages = tableau_->stages;
    x_ = x;
    P* slope[most_stages];  // of each column: changes of the slopes of y, v and z
    for (int i = 0; i < stages; ++i) slope[i] = take(count * (ny_ + n_ + nz_));
    Column* column = arena_.template take<Column>(count);
    for (int c = 0; c < count; ++c) {
      P* all = take(m);
      for (int r = 0; r < m; ++r) all[r] = S[r * count + c];
      column[c] = {all, all + n_, by_rates_ || on_u_ ? all : coordinates_along(all)};
    }
    const auto after_slopes = [&](int c, const Point& at, const double* weight, int stage_count) {
      const Moved to = moved();
      std::fill(to.y, to.y + ny_, P(0.0));
      std::copy(column[c].v, column[c].v + n_ + nz_, to.v);
      for (int j = 0; j < stage_count; ++j) {
        const P length = P(h * weight[j]), *from = slope[j] + c * (ny_ + n_ + nz_);
        for (int k = 0; k < ny_; ++k) to.y[k] += from[k] * length;
        for (int k = 0; k < n_ + nz_; ++k) to.v[k] += from[ny_ + k] * length;
      }
      if (follows_ && stage_count > 0)
        for (int k = 0; k < n_; ++k) to.y[k] = to.v[k] * P(h);
      displace(column[c], at, to);
      return to;
    };
    for (int i = 0; i < stages; ++i) {
      const Arena::Scope stage_scope(arena_);
      const Stage& s = *stage_[i];
      MotionRates<P, P> rates(tree_, arena_, s.in, s.a, s.equation ? s.equation->lambda : nullptr);
      rates.prepare();
      for (int c = 0; c < count; ++c) {
        const Arena::Scope column_scope(arena_);
        const Moved at = after_slopes(c, s.at, tableau_->a + i * stages, i);
        P* to = slope[i] + c * (ny_ + n_ + nz_);
        rate(s.at, at, to);
        accelerate(s, rates, at, parameter[c], to + ny_);
      }
    }
    std::optional<Projection> projection;
    if (closing_) projection.emplace(*this, *closing_, after);
    for (int c = 0; c < count; ++c) {
      const Arena::Scope column_scope(arena_);
      const Moved end = after_slopes(c, end_, tableau_->b, stages);
      if (projection) projection->along(end, !shakes());
      if (shakes()) displacement_rate(after, column[c].q, end.d, end.v);
      for (int r = 0; r < n_; ++r) S[r * count + c] = end.d[r];
      for (int r = 0; r < n_ + nz_; ++r) S[(n_ + r) * count + c] = end.v[r];
    }
    return true;
  }

 private:
  using Base = RepeatedStep<P>;
  using Base::most_stages, Base::shakes, Base::repeat, Base::take, Base::constant, Base::system, Base::solve_finely,
      Base::with_inertias_only;
  using Base::sees_state_, Base::ny_, Base::numbers_, Base::time_, Base::h_, Base::tableau_, Base::stage_, Base::end_,
      Base::closing_;
  using Base::tree_, Base::arena_, Base::plan_, Base::n_, Base::nz_, Base::rows_, Base::on_u_, Base::follows_, Base::by_rates_;
  using typename Base::Varied, typename Base::Point, typename Base::Stage, typename Base::Closing;

  /// Change of the initial state: displacement, changes of v and z (contiguous), and change of the coordinates.
  struct Column {
    const P *q, *v, *coordinates;
  };
  /// Change of a later state: of y (see Point), of v and z (contiguous), and displacement.
  struct Moved {
    P *y, *v, *d, *q;  // q: change of the coordinates, if displacements are not added to them
  };
  Moved moved() const { return {take(ny_), take(n_ + nz_), take(n_), by_rates_ ? nullptr : take(tree_.nq)}; }

  Varied* with_rates(const P* x, const P* rate, int n) const {
    Varied* to = arena_.template take<Varied>(n);
    for (int k = 0; k < n; ++k) to[k] = {x[k], rate[k]};
    return to;
  }
  void take_rates(const Varied* x, int n, P* rate) const {
    for (int k = 0; k < n; ++k) rate[k] = x[k].rate;
  }
  /// Return q displaced by d, as dual numbers.
  Varied* displaced(const P* q, const P* d) const {
    Varied* to = arena_.template take<Varied>(tree_.nq);
    integrate(tree_, static_cast<const Varied*>(constant(q, tree_.nq)),
              static_cast<const Varied*>(with_rates(zeros<P>(arena_, n_), d, n_)), to);
    return to;
  }
  const P* coordinates_along(const P* d) const {
    P* rate = take(tree_.nq);
    const Arena::Scope scope(arena_);
    take_rates(displaced(x_, d), tree_.nq, rate);
    return rate;
  }
  /// Set the displacement of a point, from the changes of the initial state and of y.
  void displace(const Column& from, const Point& at, const Moved& to) const {
    if (by_rates_) {
      for (int k = 0; k < n_; ++k) to.d[k] = from.q[k] + to.y[k];
      return;
    }
    const Arena::Scope scope(arena_);
    Varied* q = arena_.template take<Varied>(tree_.nq);
    if (on_u_)
      integrate(tree_, static_cast<const Varied*>(displaced(x_, from.q)), static_cast<const Varied*>(with_rates(at.y, to.y, n_)),
                q);
    else
      for (int k = 0; k < tree_.nq; ++k) q[k] = {at.q[k], from.coordinates[k] + to.y[k]};
    take_rates(q, tree_.nq, to.q);
    displacement_of(at.q, q, to.d);
  }
  void displacement_of(const P* at, const Varied* q, P* d) const {
    const Arena::Scope scope(arena_);
    Varied* u = arena_.template take<Varied>(n_);
    difference(tree_, static_cast<const Varied*>(constant(at, tree_.nq)), q, u);
    take_rates(u, n_, d);
  }
  /// Set the change of the slope of y.
  void rate(const Point& at, const Moved& by, P* slope) const {
    if (by_rates_) return static_cast<void>(std::copy(by.v, by.v + n_, slope));
    const Arena::Scope scope(arena_);
    Varied* out = arena_.template take<Varied>(ny_);
    const Varied* v = with_rates(at.v, by.v, n_);
    if (on_u_)
      exponential_rate(tree_, static_cast<const Varied*>(with_rates(at.y, by.y, n_)), v, out);
    else
      coordinate_rate(tree_, static_cast<const Varied*>(with_rates(at.q, by.q, tree_.nq)), v, out);
    take_rates(out, ny_, slope);
  }
  /// Set the changes of a and z'.
  void accelerate(const Stage& s, const MotionRates<P, P>& rates, const Moved& by, int parameter, P* to) {
    Sides<P> side(arena_, n_ + rows_);
    std::fill(to + n_, to + n_ + nz_, P(0.0));
    if (sees_state_ || parameter >= 0) add_forces(s, by, parameter, side, to + n_);
    rates.add({by.d, by.v}, side);
    P* a = take(n_ + rows_);
    if (rows_ == 0)
      accelerate_from_rest(tree_, arena_, s.tree, static_cast<const P*>(side.b), a);
    else
      s.equation->template solve<P>(arena_, side.b, nullptr, a);
    std::copy(a, a + n_, to);
  }
  void add_forces(const Stage& s, const Moved& by, int parameter, Sides<P>& side, P* z_dot_rate) {
    Varied *tau = arena_.template take<Varied>(n_), *z_dot = arena_.template take<Varied>(nz_);
    Varied* held_values = constant(x_ + tree_.nq + n_ + nz_, plan_.force_elements.held_size);
    if (parameter >= 0) numbers_[parameter].rate = P(1.0);
    vary_held_efforts(plan_, static_cast<const Varied*>(numbers_), held_values);
    auto elements = system(static_cast<const Varied*>(numbers_), static_cast<const Varied*>(held_values), time_);
    elements.forces(Varied(s.time, P(0.0)), with_rates(s.at.q, by_rates_ ? by.d : by.q, tree_.nq), with_rates(s.at.v, by.v, n_),
                    with_rates(s.at.z, by.v + n_, nz_), tau, z_dot);
    if (parameter >= 0) numbers_[parameter].rate = P(0.0);
    for (int k = 0; k < n_; ++k) side.add(k, tau[k].rate);
    take_rates(z_dot, nz_, z_dot_rate);
  }
  /// Set the change of v = displacement / h at the end of the step.
  void displacement_rate(const P* after, const P* start, const P* end, P* v) const {
    const Arena::Scope scope(arena_);
    Varied* u = arena_.template take<Varied>(n_);
    difference(tree_, static_cast<const Varied*>(displaced(x_, start)), static_cast<const Varied*>(displaced(after, end)), u);
    for (int k = 0; k < n_; ++k) v[k] = u[k].rate / P(h_);
  }

  /// The projection at the end, with its derivative matrices.
  class Projection {
   public:
    Projection(const StepMatrices& step, const Closing& closing, const P* after)
        : s_(step), c_(closing), weightless_(step.with_inertias_only()), rest_(zeros<P>(step.arena_, step.n_)) {
      at_start_ = {c_.q, rest_, nullptr}, at_end_ = {after, after + s_.tree_.nq, nullptr};
      at_start_.time = at_end_.time = &c_.time;
      if (c_.turns) bend(by_u_, c_.u, c_.y);
      if (s_.shakes()) return;
      if (c_.changes) bend(by_w_, c_.w, c_.z);
      end_.emplace(s_.tree_, s_.arena_, at_end_, rest_, zeros<P>(s_.arena_, s_.rows_));
      end_->prepare(false);
    }
    /// Replace a displacement and a change of v before the projection by those after it.
    void along(const Moved& by, bool velocities) const {
      const int n = s_.n_;
      const Arena::Scope scope(s_.arena_);
      const P* start = copy(by.d);
      Sides<P> turned(s_.arena_, n + s_.rows_);
      P moves = P(0.0);
      for (int k = 0; k < n; ++k) moves = most(moves, abs(start[k]));
      if (any(moves > P(0.0))) {
        solve(by_u_, start, nullptr, [&](const P* u, P* d) { carry(start, u, d); }, by.d);
        if (velocities) end_->turn_rows(by.d, turned);
      }
      if (!velocities) return;
      const P* before = copy(by.v);
      const auto added = [&](const P* w, P* v) {
        for (int k = 0; k < n; ++k) v[k] = before[k] + w[k];
      };
      solve(by_w_, start, turned.b + n, added, by.v);
    }

   private:
    const P* copy(const P* from) const {
      P* to = s_.take(s_.n_);
      std::copy(from, from + s_.n_, to);
      return to;
    }
    /// Prepare the rates of M motion + J^T y.
    void bend(std::optional<MotionRates<P, P>>& rates, const P* motion, const P* y) {
      P* lambda = s_.take(s_.rows_);
      for (int r = 0; r < s_.rows_; ++r) lambda[r] = -y[r];
      rates.emplace(weightless_, s_.arena_, at_start_, motion, lambda);
      rates->prepare();
    }
    /// Solve for the change of a least motion along the displacement d such that J1 map(change) = rows (null: 0). Sets `result` to map(change).
    template <class Map>
    void solve(const std::optional<MotionRates<P, P>>& rates, const P* d, const P* rows, Map map, P* result) const {
      const int n = s_.n_, row_count = s_.rows_;
      Sides<P> side(s_.arena_, n + row_count);
      if (rates) rates->add({d, nullptr}, side);
      P *change = s_.take(n), *left = s_.take(row_count), before = P(HUGE_VAL);
      std::fill(change, change + n, P(0.0)), std::fill(side.b + n, side.b + n + row_count, P(0.0));
      constexpr int most_rounds = 60;
      for (int round = 0;; ++round) {
        const Arena::Scope scope(s_.arena_);
        map(change, result);
        if (round == most_rounds || (round > 0 && c_.J1 == c_.J)) return;
        P off = P(0.0), size = P(0.0);
        for (int r = 0; r < row_count; ++r) left[r] = rows ? rows[r] : P(0.0);
        add_motion_along_rows(s_.tree_, c_.J1, static_cast<const P*>(result), P(-1.0), left);
        for (int r = 0; r < row_count; ++r) {
          side.b[n + r] += left[r];
          off = most(off, abs(left[r])), size = most(size, abs(side.b[n + r]));
        }
        // dependent rows may keep a residual at rounding level
        if (round > 0 && (!any(off > size * P(1e-14)) || !any(off < before))) return;
        before = off * P(0.9);
        const P* solved = s_.solve_finely(c_, side.b);
        std::copy(solved, solved + n, change);
      }
    }
    /// Set d to the displacement of the projected configuration, for a displacement of q and a change of u.
    void carry(const P* start, const P* u, P* d) const {
      if (!c_.turns || s_.by_rates_) {
        for (int k = 0; k < s_.n_; ++k) d[k] = start[k] + u[k];
        return;
      }
      const Arena::Scope scope(s_.arena_);
      Varied* q = s_.arena_.template take<Varied>(s_.tree_.nq);
      integrate(s_.tree_, static_cast<const Varied*>(s_.displaced(c_.q, start)),
                static_cast<const Varied*>(s_.with_rates(c_.u, u, s_.n_)), q);
      s_.displacement_of(at_end_.q, q, d);
    }

    const StepMatrices& s_;
    const Closing& c_;
    const Tree weightless_;
    const P* rest_;
    LoopInput<P> at_start_{}, at_end_{};
    std::optional<MotionRates<P, P>> by_u_, by_w_, end_;
  };

  const P* x_ = nullptr;
};

}  // namespace sarrus
