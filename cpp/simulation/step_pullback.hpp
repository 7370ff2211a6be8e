// Vector-Jacobian products of explicit steps (steps.hpp): the transpose of step_rates.hpp, at a cost that does not grow with the number of
// directions.
//
//   a stage    a = a(q, v, tau) and z': loops/pullback.hpp, with the factor of the stage; force elements by derivatives along directions
//   the end    passes h b_j to each slope; then, from the last stage on, each stage passes h a_ij to the slopes before it
//
// A projection satisfies  M u + J^T y = 0, phi(q1 + u) = 0  and  M w + J^T z = 0, J1 (v + w) = c.  u and w are the changes of q and v; M and J are
// those at the end of the step, J1 that of the projected state. So, with
//
//   M x + J1^T b = lambda,  J x = 0                              once for positions, once for velocities
//
// the cotangent before the projection is lambda - J1^T b, minus the derivative of x . M u + y . J x with respect to q (and likewise for w, z). The
// derivative of -b . (J v - c) with respect to q is added at the projected state.
//
// The maps of integration are separate for each joint, so they are pulled back along the directions of all joints at once: q0 exp(u), the rate of u
// or of the coordinates, and displacements. With u, J1 is multiplied by the differential of these maps.
//
//   cost    two to three times that of forward dynamics for each stage
#pragma once

#include "../loops/pullback.hpp"
#include "repeated_step.hpp"

namespace sarrus {

/// Indices of the parameters that have an effect in a step.
struct Acting {
  const int* at;
  int count;
};

template <class P> class StepPullback : RepeatedStep<P> {
 public:
  using RepeatedStep<P>::RepeatedStep;

  /// Replace the cotangent (2 nv + nz) of the end `after` of a step of length h by that of its initial state x at `time`. Cotangents of parameters
  /// are accumulated. The step is repeated from x. Returns true if the repeated step is undivided and ends at `after`; otherwise changes nothing.
  bool pull(double time, double h, const P* x, const P* after, P* lambda, const Acting& acting, P* by_parameter, P& status) {
    const Arena::Scope scope(arena_);
    if (!repeat(time, h, x, after, status)) return false;
    const Tableau& tableau = *tableau_;
    const Cotangent begin = cotangent(), slope[most_stages] = {cotangent(), cotangent(), cotangent(), cotangent()};
    const auto spread = [&](const Cotangent& from, const double* weight, int count) {
      for (int j = 0; j < count; ++j) {
        const P length = P(h * weight[j]);
        for (int k = 0; k < ny_; ++k) slope[j].y[k] += from.y[k] * length;
        for (int k = 0; k < n_ + nz_; ++k) slope[j].v[k] += from.v[k] * length;
      }
      for (int k = 0; k < tree_.nq && !on_u_; ++k) begin.y[k] += from.y[k];
      for (int k = 0; k < n_ + nz_; ++k) begin.v[k] += from.v[k];
    };
    const Cotangent at_end = cotangent();
    std::copy(lambda, lambda + 2 * n_ + nz_, at_end.q);
    if (shakes()) pull_displacement(h, x, after, begin.q, at_end.q);
    if (closing_) open(*closing_, after, at_end.q);
    pull_point(end_, x, at_end, begin.q);
    if (follows_)
      for (int k = 0; k < n_; ++k) at_end.v[k] += std::exchange(at_end.y[k], P(0.0)) * P(h);
    spread(at_end, tableau.b, tableau.stages);
    for (int i = tableau.stages - 1; i >= 0; --i) {
      const Cotangent by = cotangent();
      pull_stage(*stage_[i], x, time, slope[i], by.q, acting, by_parameter);
      pull_slope(stage_[i]->at, slope[i].y, by);
      pull_point(stage_[i]->at, x, by, begin.q);
      spread(by, tableau.a + i * tableau.stages, i);
    }
    if (!on_u_) pull_start(x, begin);
    std::copy(begin.q, begin.q + 2 * n_ + nz_, lambda);
    return true;
  }

 private:
  using Base = RepeatedStep<P>;
  using Base::tree_, Base::arena_, Base::plan_, Base::n_, Base::nz_, Base::rows_, Base::on_u_, Base::follows_, Base::by_rates_,
      Base::sees_state_, Base::ny_, Base::numbers_, Base::tableau_, Base::stage_, Base::end_, Base::closing_, Base::most_stages,
      Base::shakes, Base::repeat, Base::take, Base::constant, Base::system, Base::solve_finely, Base::with_inertias_only;
  using typename Base::Varied, typename Base::Point, typename Base::Stage, typename Base::Closing;

  /// Cotangents of a displacement, of v and z (contiguous), and of y. For slopes, the members v and z are the cotangents of a and z'.
  struct Cotangent {
    P *q, *v, *y;
  };
  Cotangent cotangent() const {
    P* all = take(2 * n_ + nz_ + ny_);
    std::fill(all, all + 2 * n_ + nz_ + ny_, P(0.0));
    return {all, all + n_, all + 2 * n_ + nz_};
  }

  /// Pull back a stage: add the cotangents of q, v and z to `by` (2 nv + nz).
  void pull_stage(const Stage& s, const P* row, double since, const Cotangent& slope, P* by, const Acting& acting,
                  P* by_parameter) {
    const Arena::Scope scope(arena_);
    const P *by_a = slope.v, *by_z_dot = slope.v + n_, *q = s.at.q, *v = s.at.v;
    P *x = take(n_ + rows_), *gradient = take(3 * n_);
    if (rows_ > 0)
      solve(*s.equation, by_a, x);
    else
      accelerate_from_rest(tree_, arena_, s.tree, by_a, x);
    std::fill(gradient, gradient + 3 * n_, P(0.0));
    const Gradient<P> of = {gradient, gradient + n_, gradient + 2 * n_};
    const RneaInput<P> motion = {q, v, s.a};
    Pullback<P> pullback(tree_, arena_, motion, rnea(tree_, arena_, motion, take(n_)), x);
    pullback.add_bodies();
    pullback.template add_passive<P>(q, of);
    if (rows_ > 0) {
      P* multiplier_forces = take(rows_);
      for (int r = 0; r < rows_; ++r) multiplier_forces[r] = -s.equation->lambda[r];
      LoopPullback<P, P>(tree_, arena_, s.in, pullback.kinematics(), s.a, x).add({multiplier_forces, x + n_}, pullback, of);
    }
    pullback.template collect_columns<P>(q);
    pullback.inward(of);
    for (int c = 0; c < 2 * n_; ++c) by[c] -= gradient[c];
    pull_forces(s, row, since, x, by_z_dot, by, acting, by_parameter);
  }
  void solve(const SensitivityEquation<P, P>& equation, const P* force, P* x) {
    const Arena::Scope scope(arena_);
    P *b = take(n_ + rows_), *terms = take(n_ + rows_);
    for (int k = 0; k < n_ + rows_; ++k) b[k] = k < n_ ? force[k] : P(0.0), terms[k] = b[k] * b[k];
    equation.solve(arena_, static_cast<const P*>(b), static_cast<const P*>(terms), x);
  }

  /// Pull cotangents of tau and z' back through the force elements, along each direction of the state and the parameters.
  void pull_forces(const Stage& s, const P* row, double since, const P* by_tau, const P* by_z_dot, P* by, const Acting& acting,
                   P* by_parameter) {
    const int nq = tree_.nq, m = 2 * n_ + nz_, end = m + acting.count, begin = sees_state_ ? 0 : m;
    if (begin == end) return;
    Varied *q = constant(s.at.q, nq), *v = constant(s.at.v, n_), *z = constant(s.at.z, nz_),
           *d = arena_.template take<Varied>(n_);
    Varied *tau = arena_.template take<Varied>(n_), *z_dot = arena_.template take<Varied>(nz_);
    Varied* held_values = constant(row + nq + n_ + nz_, plan_.force_elements.held_size);
    const Varied* q_constant = constant(s.at.q, nq);
    const auto rate = [&](int k) -> P& {
      return k < n_ ? d[k].rate : k < 2 * n_ ? v[k - n_].rate : k < m ? z[k - 2 * n_].rate : numbers_[acting.at[k - m]].rate;
    };
    for (int k = 0; k < n_; ++k) d[k] = Varied(0.0);
    for (int k = begin; k < end; ++k) {
      const Arena::Scope scope(arena_);
      rate(k) = P(1.0);
      if (k <= n_) integrate(tree_, q_constant, d, q);  // the call after the last displacement resets q to its value
      vary_held_efforts(plan_, static_cast<const Varied*>(numbers_), held_values);
      auto element_system = system(static_cast<const Varied*>(numbers_), static_cast<const Varied*>(held_values), since);
      element_system.forces(Varied(s.time, P(0.0)), q, v, z, tau, z_dot);
      P sum = P(0.0);
      for (int i = 0; i < n_; ++i) sum += by_tau[i] * tau[i].rate;
      for (int i = 0; i < nz_; ++i) sum += by_z_dot[i] * z_dot[i].rate;
      (k < m ? by[k] : by_parameter[acting.at[k - m]]) += sum;
      rate(k) = P(0.0);
    }
  }

  /// Coordinates or velocities of all joints, and their cotangents; or null.
  struct Part {
    const P* value;
    P* by;
    bool is_coordinate;  // false: velocities
  };
  /// Add the cotangents of map(x0, x1, out), joint by joint, to those of x0 and x1.
  template <class Map> void pull_joints(const Part& x0, const Part& x1, const P* by_out, bool out_is_coordinate, Map map) {
    const Arena::Scope scope(arena_);
    const int size = std::max(tree_.nq, n_);
    const auto numbers = [&](const Part& in) { return in.by ? constant(in.value, in.is_coordinate ? tree_.nq : n_) : nullptr; };
    Varied* x[] = {numbers(x0), numbers(x1)};
    Varied* out = arena_.template take<Varied>(size);
    const auto place = [&](const Link& b, bool is_coordinate, int& count) {
      count = is_coordinate ? visit_every(b.described, b.nv, [](auto joint) -> int { return joint.nq; }) : b.nv;
      return is_coordinate ? b.iq : b.iv;
    };
    for (const int part : {0, 1}) {
      const Part& in = part == 0 ? x0 : x1;
      constexpr int most_numbers = 7;
      for (int number = 0; in.by && number < most_numbers; ++number) {
        const Arena::Scope round_scope(arena_);
        bool any_seeded = false;
        const auto each = [&](auto act) {
          for (int i = 1; i < tree_.links; ++i) {
            int count, outs;
            const int at = place(tree_.link[i], in.is_coordinate, count), out_at = place(tree_.link[i], out_is_coordinate, outs);
            if (number < count) act(at + number, out_at, outs);
          }
        };
        each([&](int k, int, int) { x[part][k].rate = P(1.0), any_seeded = true; });
        if (!any_seeded) break;
        map(static_cast<const Varied*>(x[0]), static_cast<const Varied*>(x[1]), out);
        each([&](int k, int at, int outs) {
          for (int o = at; o < at + outs; ++o) in.by[k] += by_out[o] * out[o].rate;
          x[part][k].rate = P(0.0);
        });
      }
    }
  }
  /// Convert a cotangent of integrate(q, u) into those of a displacement of q, and of u.
  void pull_integration(const P* q, const P* u, const P* by, P* by_q, P* by_u) {
    const Arena::Scope scope(arena_);
    const P* rest = zeros<P>(arena_, n_);
    P* moved = take(tree_.nq);
    integrate(tree_, q, u, moved);
    const Varied *from = constant(q, tree_.nq), *to = constant(moved, tree_.nq);
    Varied *begin = arena_.template take<Varied>(tree_.nq), *end = arena_.template take<Varied>(tree_.nq);
    pull_joints({rest, by_q, false}, {u, by_u, false}, by, false, [&](const Varied* d, const Varied* along_u, Varied* out) {
      integrate(tree_, from, d, begin), integrate(tree_, static_cast<const Varied*>(begin), along_u, end);
      difference(tree_, to, static_cast<const Varied*>(end), out);
    });
  }
  /// Convert a cotangent of a point's displacement into that of y and, if slopes are those of u, also into that of a displacement of the initial
  /// state.
  void pull_point(const Point& at, const P* x, const Cotangent& by, P* by_start) {
    if (by_rates_) {
      for (int k = 0; k < n_; ++k) by.y[k] += by.q[k];
      for (int k = 0; k < n_ && on_u_; ++k) by_start[k] += by.q[k];
      return;
    }
    if (on_u_) return pull_integration(x, at.y, by.q, by_start, by.y);
    const Arena::Scope scope(arena_);
    const Varied* q_constant = constant(at.q, tree_.nq);
    pull_joints({at.q, by.y, true}, {}, by.q, false,
                [&](const Varied* q, const Varied*, Varied* out) { difference(tree_, q_constant, q, out); });
  }
  /// Convert a cotangent of the slope of y into those of y and v.
  void pull_slope(const Point& at, const P* by_slope, const Cotangent& by) {
    if (by_rates_)
      for (int k = 0; k < n_; ++k) by.v[k] += by_slope[k];
    else if (on_u_)
      pull_joints({at.y, by.y, false}, {at.v, by.v, false}, by_slope, false,
                  [&](const Varied* u, const Varied* v, Varied* out) { exponential_rate(tree_, u, v, out); });
    else
      pull_joints({at.q, by.y, true}, {at.v, by.v, false}, by_slope, true,
                  [&](const Varied* q, const Varied* v, Varied* out) { coordinate_rate(tree_, q, v, out); });
  }
  /// Convert a cotangent of the initial coordinates into that of a displacement.
  void pull_start(const P* x, const Cotangent& begin) {
    if (by_rates_) {
      for (int k = 0; k < n_; ++k) begin.q[k] += begin.y[k];
      return;
    }
    const Arena::Scope scope(arena_);
    const P* rest = zeros<P>(arena_, n_);
    const Varied* from = constant(x, tree_.nq);
    pull_joints({rest, begin.q, false}, {}, begin.y, true,
                [&](const Varied* d, const Varied*, Varied* out) { integrate(tree_, from, d, out); });
  }
  /// Pull back the rule v = displacement / h at the end of the step to displacements of both ends.
  void pull_displacement(double h, const P* x, const P* after, P* by_start, P* by_end) {
    const Arena::Scope scope(arena_);
    P* by = take(n_);
    for (int k = 0; k < n_; ++k) by[k] = std::exchange(by_end[n_ + k], P(0.0)) / P(h);
    const P* rest = zeros<P>(arena_, n_);
    const Varied *from = constant(x, tree_.nq), *to = constant(after, tree_.nq);
    Varied *begin = arena_.template take<Varied>(tree_.nq), *end = arena_.template take<Varied>(tree_.nq);
    pull_joints({rest, by_start, false}, {rest, by_end, false}, by, false, [&](const Varied* d0, const Varied* d1, Varied* out) {
      integrate(tree_, from, d0, begin), integrate(tree_, to, d1, end);
      difference(tree_, static_cast<const Varied*>(begin), static_cast<const Varied*>(end), out);
    });
  }

  /// Replace the cotangent lambda after a projection by the cotangent before it.
  void open(const Closing& c, const P* after, P* lambda) {
    const Arena::Scope scope(arena_);
    P *x = take(n_), *b = take(rows_), *bent = take(n_);
    std::fill(bent, bent + n_, P(0.0));
    if (!shakes()) {
      take_away(c, false, lambda + n_, x, b);
      if (c.changes) bend(c, x, c.w, c.z, bent);
      pull_velocities(c, after, b, lambda);
    }
    take_away(c, c.turns && !by_rates_, lambda, x, b);
    if (c.turns) bend(c, x, c.u, c.y, bent);
    for (int k = 0; k < n_; ++k) lambda[k] -= bent[k];
  }
  /// Replace lambda by lambda - J1^T b. `carried`: also pull the result back through the displacement u.
  void take_away(const Closing& c, bool carried, P* lambda, P* x, P* b) {
    const Arena::Scope scope(arena_);
    P *side = take(n_ + rows_), *rest = take(n_), *away = take(rows_), *at_start = take(n_);
    constexpr int most_rounds = 60;
    const auto leave = [&] {
      for (int r = 0; r < rows_; ++r) away[r] = -b[r];
      std::copy(lambda, lambda + n_, rest);
      add_constraint_forces(tree_, c.J1, static_cast<const P*>(away), rest);
    };
    const auto carry = [&](P* by_u) {
      std::fill(at_start, at_start + n_, P(0.0));
      pull_integration(c.q, c.u, rest, at_start, by_u);
    };
    for (int r = 0; r < rows_; ++r) b[r] = P(0.0);
    P before = P(HUGE_VAL);
    for (int round = 0; round < most_rounds; ++round) {
      const Arena::Scope round_scope(arena_);
      std::fill(side, side + n_ + rows_, P(0.0));
      leave();
      if (carried)
        carry(side);
      else
        std::copy(rest, rest + n_, side);
      add_constraint_forces(tree_, c.J, static_cast<const P*>(b), side);  // add the difference of J1 and J to the right-hand side
      const P* solved = solve_finely(c, side);
      P off = P(0.0), size = P(0.0);
      for (int r = 0; r < rows_; ++r) off = most(off, abs(P(solved[n_ + r] - b[r]))), size = most(size, abs(solved[n_ + r]));
      std::copy(solved, solved + n_, x), std::copy(solved + n_, solved + n_ + rows_, b);
      // dependent rows may keep a residual at rounding level
      if (c.J1 == c.J || !any(off > size * P(1e-14)) || !any(off < before)) break;
      before = off * P(0.9);
    }
    leave();
    if (carried) carry(side);
    std::copy(carried ? at_start : rest, (carried ? at_start : rest) + n_, lambda);
  }
  /// Add the derivative of x . M u + y . J x with respect to q.
  void bend(const Closing& c, const P* x, const P* u, const P* y, P* by) {
    const Arena::Scope scope(arena_);
    const Tree weightless = with_inertias_only();
    const P* rest = zeros<P>(arena_, n_);
    pull_rows(weightless, c.time, c.q, rest, u, x, {y}, true, by);
  }
  /// Add the derivative of -b . (J v - c) with respect to q.
  void pull_velocities(const Closing& c, const P* after, const P* b, P* by) {
    const Arena::Scope scope(arena_);
    P* velocity_forces = take(rows_);
    for (int r = 0; r < rows_; ++r) velocity_forces[r] = -b[r];
    pull_rows(tree_, c.time, after, after + tree_.nq, zeros<P>(arena_, n_), nullptr, {nullptr, nullptr, velocity_forces}, false,
              by);
  }
  void pull_rows(const Tree& tree, const P& time, const P* q, const P* v, const P* a, const P* x, const RowForces<P>& forces,
                 bool bodies, P* by) {
    P* other_gradients = take(2 * n_);
    std::fill(other_gradients, other_gradients + 2 * n_, P(0.0));
    const Gradient<P> of = {by, other_gradients, other_gradients + n_};
    LoopInput<P> in{q, v, nullptr};
    in.time = &time;
    const RneaInput<P> motion = {q, v, a};
    Pullback<P> pullback(tree, arena_, motion, rnea(tree, arena_, motion, take(n_)), x);
    if (bodies) pullback.add_bodies();
    LoopPullback<P, P>(tree, arena_, in, pullback.kinematics(), a, x).add(forces, pullback, of);
    pullback.template collect_columns<P>(q);
    pullback.inward(of);
  }
};

}  // namespace sarrus
