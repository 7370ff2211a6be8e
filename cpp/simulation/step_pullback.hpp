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
// step_rates.hpp is used instead for closed stages, for steps that solve equations, and for rows that constrain only velocities.
//
//   cost    two to three times that of forward dynamics for each stage
#pragma once

#include <optional>

#include "../loops/pullback.hpp"
#include "reproduced.hpp"
#include "step_rates.hpp"

namespace sarrus {

inline bool goes_back_by_products(const Tree& tree, const Plan& plan) {
  bool yes = facts(plan.method).in_lanes() && !facts(plan.method).adaptive() && !nonholonomic(tree) && tree.loops.rotor_rows == 0;
  if (tree.loops.rows > 0) yes &= plan.stabilisation == Stabilisation::none || plan.stabilisation == Stabilisation::projection;
  for (int i = 0; i < tree.loop_motions; ++i) yes &= !tree.loop_motion[i].has_armature;
  return yes;
}

/// Indices of the parameters that have an effect in a step.
struct Acting {
  const int* at;
  int count;
};

template <class P, class R> class StepPullback {
 public:
  /// Prepare the pullback of steps from rows (q, v, z, sampled values), with these parameters.
  StepPullback(const Tree& tree, Arena& arena, const Plan& plan, const P* parameter)
      : tree_(tree),
        arena_(arena),
        plan_(plan),
        parameter_(parameter),
        n_(tree.nv),
        nz_(plan.force_elements.nz),
        rows_(tree.loops.rows),
        on_u_(facts(plan.method).exponential),
        follows_(plan.method == Method::semi_implicit),
        shake_(follows_ && projects()),
        ny_(on_u_ ? tree.nv : tree.nq),
        numbers_(arena.take<Varied>(plan.force_elements.parameters)) {
    for (int k = 0; k < plan.force_elements.parameters; ++k) numbers_[k] = {parameter[k], R(0.0)};
    for (int i = 1; i < tree.links; ++i) by_rates_ &= moves_by_rates(tree.link[i]) && tree.link[i].iq == tree.link[i].iv;
    plan.force_elements.each([&](const auto& element) { sees_state_ |= !is_of_time_alone<std::decay_t<decltype(element)>>; });
  }

  /// Replace the cotangent (2 nv + nz) of the end `after` of a step of length h by that of its initial state x at `time`. Cotangents of parameters
  /// are accumulated. The step is repeated from x. Returns true if the repeated step is undivided and ends at `after`; otherwise changes nothing.
  bool pull(double time, double h, const P* x, const P* after, P* lambda, const Acting& acting, P* by_parameter, P& status) {
    const Arena::Scope scope(arena_);
    if (is_cut(time + h, x)) return false;
    const Tableau& tableau = stages_of_method();
    std::optional<Stage> stage[most_stages];
    P wrong = P(0.0);
    const auto point_after = [&](const double* weight, int count) {
      const Point to = point();
      std::fill(to.y, to.y + ny_, P(0.0));
      std::copy(x + tree_.nq, x + tree_.nq + n_ + nz_, to.v);
      for (int j = 0; j < count; ++j) {
        const P length = P(h * weight[j]);
        for (int k = 0; k < ny_; ++k) to.y[k] += stage[j]->slope[k] * length;
        for (int k = 0; k < n_; ++k) to.v[k] += stage[j]->a[k] * length;
        for (int k = 0; k < nz_; ++k) to.z[k] += stage[j]->z_dot[k] * length;
      }
      if (follows_ && count > 0)
        for (int k = 0; k < n_; ++k) to.y[k] = to.v[k] * P(h);
      if (on_u_)
        integrate(tree_, x, to.y, to.q);
      else
        for (int k = 0; k < tree_.nq; ++k) to.q[k] = x[k] + to.y[k];
      return to;
    };
    for (int i = 0; i < tableau.stages; ++i)
      evaluate(stage[i].emplace(Stage{point_after(tableau.a + i * tableau.stages, i)}), time + h * tableau.c[i], x, time, wrong);
    const Point end = point_after(tableau.b, tableau.stages);
    std::optional<Closing> closing;
    if (!arrive(end, P(time + h), after, closing)) return false;
    status = select(wrong > status, wrong, status);

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
    if (shake_) pull_displacement(h, x, after, begin.q, at_end.q);
    if (closing) open(*closing, after, at_end.q);
    pull_point(end, x, at_end, begin.q);
    if (follows_)
      for (int k = 0; k < n_; ++k) at_end.v[k] += std::exchange(at_end.y[k], P(0.0)) * P(h);
    spread(at_end, tableau.b, tableau.stages);
    for (int i = tableau.stages - 1; i >= 0; --i) {
      const Cotangent by = cotangent();
      pull_stage(*stage[i], x, time, slope[i], by.q, acting, by_parameter);
      pull_slope(stage[i]->at, slope[i].y, by);
      pull_point(stage[i]->at, x, by, begin.q);
      spread(by, tableau.a + i * tableau.stages, i);
    }
    if (!on_u_) pull_start(x, begin);
    std::copy(begin.q, begin.q + 2 * n_ + nz_, lambda);
    return true;
  }

 private:
  using Varied = Dual<P, R>;
  template <class Kind> static constexpr bool is_of_time_alone =
      std::is_same_v<Kind, EffortTable> || std::is_same_v<Kind, ZeroOrderHold>;
  static constexpr int most_stages = 4;
  static constexpr double rounding = 3e-12;  // motions below this value, in the plan's units, are treated as zero

  /// State after a step along weighted slopes. y is the weighted sum of the slopes: of the argument u, or of the coordinates.
  struct Point {
    P *y, *q, *v, *z;
  };
  /// Cotangents of a displacement, of v and z (contiguous), and of y. For slopes, the members v and z are the cotangents of a and z'.
  struct Cotangent {
    P *q, *v, *y;
  };
  struct Stage {
    Point at;
    P time{}, *slope = nullptr, *a = nullptr, *z_dot = nullptr;
    LoopInput<P> in{};
    std::optional<SensitivityEquation<P, P>> equation{};
    AbaWork<P> tree{};
  };
  /// Projection of (q, v) onto the loops: the changes u and w, their multipliers y and z, J before the projection, and J1 after it.
  struct Closing {
    P time;
    const P *q, *u, *w;
    P *y = nullptr, *z = nullptr;
    std::optional<LeastMotion<P>> least{};
    const P *J = nullptr, *J1 = nullptr;
    bool turns = false, changes = false;  // true if u, or w, is larger than rounding
  };

  P* take(int n) const { return arena_.take<P>(n); }
  P* copy(const P* from, int n) const {
    P* to = take(n);
    std::copy(from, from + n, to);
    return to;
  }
  /// Return true if a sample is due before the end of the step.
  bool is_cut(double end, const P* x) const {
    const ForceElements& elements = plan_.force_elements;
    return elements.hold() && next_sample(elements, x + tree_.nq + n_ + nz_) < end - one_instant(elements);
  }
  bool projects() const { return rows_ > 0 && plan_.stabilisation == Stabilisation::projection; }
  const Tableau& stages_of_method() const {
    static constexpr double none[] = {0.0}, unit_weight[] = {1.0};
    static constexpr Tableau euler = {1, none, unit_weight, none, nullptr, nullptr};
    const Tableau* tableau = facts(plan_.method).tableau;
    return tableau ? *tableau : euler;
  }
  Point point() const {
    P* state = take(n_ + nz_);
    return {take(ny_), take(tree_.nq), state, state + n_};
  }
  Cotangent cotangent() const {
    P* all = take(2 * n_ + nz_ + ny_);
    std::fill(all, all + 2 * n_ + nz_ + ny_, P(0.0));
    return {all, all + n_, all + 2 * n_ + nz_};
  }

  template <class T> System<T> system(const T* parameter, const T* held_values, double since) const {
    System<T> s{tree_, arena_, plan_, parameter};
    s.held_values = held_values, s.since = T(since);
    return s;
  }

  void evaluate(Stage& s, double time, const P* x, double since, P& wrong) {
    const Point& at = s.at;
    s.time = P(time), s.slope = take(ny_), s.a = take(n_), s.z_dot = take(nz_);
    if (on_u_)
      exponential_rate(tree_, at.y, at.v, s.slope);
    else
      coordinate_rate(tree_, at.q, at.v, s.slope);
    P* tau = take(n_);
    auto element_system = system(parameter_, x + tree_.nq + n_ + nz_, since);
    element_system.forces(s.time, at.q, at.v, at.z, tau, s.z_dot);
    wrong = select(element_system.status > wrong, element_system.status, wrong);
    s.in = LoopInput<P>{at.q, at.v, tau};
    s.in.time = &s.time;
    if (rows_ == 0) return static_cast<void>(s.tree = aba(tree_, arena_, AbaInput<P>{at.q, at.v, tau}, s.a));
    s.equation.emplace(tree_, arena_, s.in, true);
    s.equation->take_multipliers(arena_);
    std::copy(s.equation->a, s.equation->a + n_, s.a);
    wrong = select(s.equation->error < P(tolerances::contradiction), wrong, P(double(Status::inconsistent_constraints)));
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

  /// Pull cotangents of tau and z' back through the force elements, along as many directions of state and parameters at once as there are lanes.
  void pull_forces(const Stage& s, const P* row, double since, const P* by_tau, const P* by_z_dot, P* by, const Acting& acting,
                   P* by_parameter) {
    const int nq = tree_.nq, m = 2 * n_ + nz_, end = m + acting.count, begin = sees_state_ ? 0 : m;
    if (begin == end) return;
    Varied *q = constant(s.at.q, nq), *v = constant(s.at.v, n_), *z = constant(s.at.z, nz_), *d = arena_.take<Varied>(n_);
    Varied *tau = arena_.take<Varied>(n_), *z_dot = arena_.take<Varied>(nz_);
    Varied* held_values = constant(row + nq + n_ + nz_, plan_.force_elements.held_size);
    const Varied* q_constant = constant(s.at.q, nq);
    const auto rate = [&](int k) -> R& {
      return k < n_ ? d[k].rate : k < 2 * n_ ? v[k - n_].rate : k < m ? z[k - 2 * n_].rate : numbers_[acting.at[k - m]].rate;
    };
    for (int k = 0; k < n_; ++k) d[k] = Varied(0.0);
    for (int first = begin; first < end; first += directions_of<R>) {
      const Arena::Scope scope(arena_);
      const int last = std::min(first + directions_of<R>, end);
      for (int k = first; k < last; ++k) along(rate(k), k - first) = P(1.0);
      // one more call after the last direction resets q to its value
      if (first < n_ + directions_of<R>) integrate(tree_, q_constant, d, q);
      vary_held_efforts(plan_, static_cast<const Varied*>(numbers_), held_values);
      auto element_system = system(static_cast<const Varied*>(numbers_), static_cast<const Varied*>(held_values), since);
      element_system.forces(Varied(s.time, R(0.0)), q, v, z, tau, z_dot);
      for (int k = first; k < last; ++k) {
        P sum = P(0.0);
        for (int i = 0; i < n_; ++i) sum += by_tau[i] * along(tau[i].rate, k - first);
        for (int i = 0; i < nz_; ++i) sum += by_z_dot[i] * along(z_dot[i].rate, k - first);
        (k < m ? by[k] : by_parameter[acting.at[k - m]]) += sum;
        rate(k) = R(0.0);
      }
    }
  }
  Varied* constant(const P* x, int n) const {
    Varied* to = arena_.take<Varied>(n);
    for (int k = 0; k < n; ++k) to[k] = {x[k], R(0.0)};
    return to;
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
    Varied* out = arena_.take<Varied>(size);
    const auto place = [&](const Link& b, bool is_coordinate, int& count) {
      count = is_coordinate ? visit_every(b.described, b.nv, [](auto joint) -> int { return joint.nq; }) : b.nv;
      return is_coordinate ? b.iq : b.iv;
    };
    for (const int part : {0, 1}) {
      const Part& in = part == 0 ? x0 : x1;
      constexpr int most_numbers = 7;
      for (int first = 0; in.by && first < most_numbers; first += directions_of<R>) {
        const Arena::Scope round_scope(arena_);
        bool any_seeded = false;
        const auto each = [&](auto act) {
          for (int i = 1; i < tree_.links; ++i) {
            int count, outs;
            const int at = place(tree_.link[i], in.is_coordinate, count), out_at = place(tree_.link[i], out_is_coordinate, outs);
            for (int l = 0; l < directions_of<R> && first + l < count; ++l) act(at + first + l, l, out_at, outs);
          }
        };
        each([&](int k, int l, int, int) { along(x[part][k].rate, l) = P(1.0), any_seeded = true; });
        if (!any_seeded) break;
        map(static_cast<const Varied*>(x[0]), static_cast<const Varied*>(x[1]), out);
        each([&](int k, int l, int at, int outs) {
          for (int o = at; o < at + outs; ++o) in.by[k] += by_out[o] * along(out[o].rate, l);
          along(x[part][k].rate, l) = P(0.0);
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
    Varied *begin = arena_.take<Varied>(tree_.nq), *end = arena_.take<Varied>(tree_.nq);
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
    Varied *begin = arena_.take<Varied>(tree_.nq), *end = arena_.take<Varied>(tree_.nq);
    pull_joints({rest, by_start, false}, {rest, by_end, false}, by, false, [&](const Varied* d0, const Varied* d1, Varied* out) {
      integrate(tree_, from, d0, begin), integrate(tree_, to, d1, end);
      difference(tree_, static_cast<const Varied*>(begin), static_cast<const Varied*>(end), out);
    });
  }

  /// Return true if the end of the repeated step equals the stored state `after`. If the end was projected onto the loops, `closing` receives the
  /// projection.
  bool arrive(const Point& end, const P& time, const P* after, std::optional<Closing>& closing) {
    const int nq = tree_.nq;
    Reproduced<P> ends(plan_);
    for (int k = 0; k < nz_; ++k) ends.see_internal_state(k, end.z[k], after[nq + n_ + k]);
    P *q = take(nq), *u = take(n_), *w = take(n_);
    normalize(tree_, static_cast<const P*>(end.q), q);
    difference(tree_, static_cast<const P*>(q), after, u);
    for (int k = 0; k < n_; ++k) w[k] = shake_ ? P(0.0) : P(after[nq + k] - end.v[k]);
    if (projects())
      close(closing.emplace(Closing{time, q, u, w}), after, ends);
    else
      for (int k = 0; k < n_; ++k) ends.see_displacement(k, u[k]), ends.see_velocity(k, end.v[k], after[nq + k]);
    return !any(ends.missed());
  }
  void close(Closing& c, const P* after, Reproduced<P>& ends) {
    c.y = take(rows_), c.z = take(rows_);
    c.least.emplace(tree_, arena_, c.q, c.time, static_cast<const P*>(nullptr));
    c.J = c.J1 = c.least->rows();
    c.turns = split(c, c.u, c.y, ends), c.changes = split(c, c.w, c.z, ends);
    if (!c.turns) return;
    P* J1 = arena_.take<P>(tree_.loops.entries);
    c.J1 = J1;
    const Arena::Scope scope(arena_);
    ConstraintRows<P> output;
    output.J = J1;
    constraint_rows(tree_, arena_, place(tree_, arena_, after, &c.time, static_cast<const P*>(nullptr)), output, 0,
                    tree_.loops.constraints);
  }
  /// Return true if a motion is larger than rounding. If it is a projection onto the loops, also compute y with M motion + J^T y = 0.
  bool split(Closing& c, const P* motion, P* y, Reproduced<P>& ends) {
    const Arena::Scope scope(arena_);
    P *b = take(n_ + rows_), size = P(0.0);
    std::fill(b, b + n_ + rows_, P(0.0)), std::fill(y, y + rows_, P(0.0));
    for (int k = 0; k < n_; ++k) size = most(size, abs(motion[k]) / P(Plan::unit_of(plan_.velocity_unit, k)));
    if (!any(size > P(rounding))) return false;
    add_motion_along_rows(tree_, c.J, motion, P(1.0), b + n_);
    const P* x = solve_finely(c, b);
    for (int k = 0; k < n_; ++k) ends.see_displacement(k, x[k] - motion[k]);
    std::copy(x + n_, x + n_ + rows_, y);
    return true;
  }
  const P* solve_finely(const Closing& c, const P* b) const { return solve_corrected(c.least->e, arena_, c.least->factor, b); }

  /// Replace the cotangent lambda after a projection by the cotangent before it.
  void open(const Closing& c, const P* after, P* lambda) {
    const Arena::Scope scope(arena_);
    P *x = take(n_), *b = take(rows_), *bent = take(n_);
    std::fill(bent, bent + n_, P(0.0));
    if (!shake_) {
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
    constexpr int most_rounds = 12;
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
      if (c.J1 == c.J || !any(off > size * P(1e-14))) break;
    }
    leave();
    if (carried) carry(side);
    std::copy(carried ? at_start : rest, (carried ? at_start : rest) + n_, lambda);
  }
  /// Add the derivative of x . M u + y . J x with respect to q.
  void bend(const Closing& c, const P* x, const P* u, const P* y, P* by) {
    const Arena::Scope scope(arena_);
    Tree weightless = tree_;
    weightless.gravity = Vec3<double>::Zero();
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

  const Tree& tree_;
  Arena& arena_;
  const Plan& plan_;
  const P* parameter_;
  int n_, nz_, rows_;
  bool on_u_;  // true: slopes are rates of u; false: rates of the coordinates
  bool follows_;  // true: q moves with the velocity at the end of the step
  bool shake_;  // true: v on the loops is computed from the displacement
  bool by_rates_ = true;  // true: displacements are added to coordinates, and velocities are the rates of coordinates
  bool sees_state_ = false;
  int ny_;
  Varied* numbers_;
};

}  // namespace sarrus
