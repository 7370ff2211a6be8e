// A step of an explicit method (steps.hpp), repeated from its stored ends. It provides the state, the accelerations and the factor of each stage, and the
// projection onto the loops at the end, from which step_matrices.hpp and step_pullback.hpp compute derivatives.
//
// A projection satisfies  M u + J^T y = 0, phi(q1 + u) = 0  and  M w + J^T z = 0, J1 (v + w) = c.  u and w are the changes of q and v; M and J are
// those at the end of the step, J1 that of the projected state.
//
// midpoint_sensitivity.hpp uses the same state for steps of the implicit midpoint rule. step_rates.hpp is used instead for closed stages and for rows
// that constrain only velocities.
#pragma once

#include <optional>

#include "../loops/derivatives.hpp"
#include "reproduced.hpp"
#include "step_rates.hpp"

namespace sarrus {

/// Return true if RepeatedStep supports these steps; or, unless the state `moves`, projections onto the loops alone.
inline bool steps_by_products(const Tree& tree, const Plan& plan, bool moves) {
  bool yes = !nonholonomic(tree) && tree.loops.rotor_rows == 0;
  if (moves) yes &= plan.method == Method::implicit_midpoint || (facts(plan.method).in_lanes() && !facts(plan.method).adaptive());
  if (tree.loops.rows > 0)
    yes &= plan.stabilisation == Stabilisation::projection || (moves && plan.stabilisation == Stabilisation::none);
  for (int i = 0; i < tree.loop_motions; ++i) yes &= !tree.loop_motion[i].has_armature;
  return yes;
}

template <class P> class RepeatedStep {
 public:
  /// Prepare steps from rows (q, v, z, sampled values), with these parameters.
  RepeatedStep(const Tree& tree, Arena& arena, const Plan& plan, const P* parameter)
      : tree_(tree),
        arena_(arena),
        plan_(plan),
        parameter_(parameter),
        n_(tree.nv),
        nz_(plan.force_elements.nz),
        rows_(tree.loops.rows),
        on_u_(facts(plan.method).exponential),
        follows_(plan.method == Method::semi_implicit),
        shakes_(follows_ && projects()),
        ny_(on_u_ ? tree.nv : tree.nq),
        numbers_(constant(parameter, plan.force_elements.parameters)) {
    for (int i = 1; i < tree.links; ++i) by_rates_ &= moves_by_rates(tree.link[i]) && tree.link[i].iq == tree.link[i].iv;
    plan.force_elements.each([&](const auto& element) { sees_state_ |= !is_of_time_alone<std::decay_t<decltype(element)>>; });
  }

 protected:
  using Varied = Dual<P>;

  /// Repeat the step of length h from x at `time`; with h = 0, only the projection of x, which must be on the loops. Returns true if the step is
  /// undivided and ends at `after`.
  bool repeat(double time, double h, const P* x, const P* after, P& status) {
    if (h == 0.0 && !starts_on_loops(P(time), x)) return false;
    if (h != 0.0 && is_cut(time + h, x)) return false;
    h_ = h, time_ = time, tableau_ = h == 0.0 ? &rest : stages_of_method();
    P wrong = P(0.0);
    for (int i = 0; i < tableau_->stages; ++i)
      evaluate(stage_[i].emplace(Stage{point_after(x, tableau_->a + i * tableau_->stages, i)}), time + h * tableau_->c[i], x,
               time, wrong);
    end_ = point_after(x, tableau_->b, tableau_->stages);
    if (!arrive(end_, P(time + h), after, closing_)) return false;
    status = select(wrong > status, wrong, status);
    return true;
  }

  template <class Kind> static constexpr bool is_of_time_alone =
      std::is_same_v<Kind, EffortTable> || std::is_same_v<Kind, ZeroOrderHold>;
  static constexpr int most_stages = 4;
  static constexpr double rounding = 3e-12;  // motions below this value, in the plan's units, are treated as zero
  static constexpr double none_[] = {0.0}, unit_weight_[] = {1.0};
  static constexpr Tableau rest = {0, none_, none_, none_, nullptr, nullptr},
                           euler = {1, none_, unit_weight_, none_, nullptr, nullptr};

  /// State after a step along weighted slopes. y is the weighted sum of the slopes: of the argument u, or of the coordinates.
  struct Point {
    P *y, *q, *v, *z;
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
  bool shakes() const { return shakes_ && h_ != 0.0; }  // true: v on the loops is computed from the displacement
  /// Return true if a sample is due before the end of the step.
  bool is_cut(double end, const P* x) const {
    const ForceElements& elements = plan_.force_elements;
    return elements.hold() && next_sample(elements, x + tree_.nq + n_ + nz_) < end - one_instant(elements);
  }
  bool projects() const { return rows_ > 0 && plan_.stabilisation == Stabilisation::projection; }
  const Tableau* stages_of_method() const {
    const Tableau* tableau = facts(plan_.method).tableau;
    return tableau ? tableau : &euler;
  }
  Point point() const {
    P* state = take(n_ + nz_);
    return {take(ny_), take(tree_.nq), state, state + n_};
  }
  Point point_after(const P* x, const double* weight, int count) {
    const Point to = point();
    std::fill(to.y, to.y + ny_, P(0.0));
    std::copy(x + tree_.nq, x + tree_.nq + n_ + nz_, to.v);
    for (int j = 0; j < count; ++j) {
      const P length = P(h_ * weight[j]);
      for (int k = 0; k < ny_; ++k) to.y[k] += stage_[j]->slope[k] * length;
      for (int k = 0; k < n_; ++k) to.v[k] += stage_[j]->a[k] * length;
      for (int k = 0; k < nz_; ++k) to.z[k] += stage_[j]->z_dot[k] * length;
    }
    if (follows_ && count > 0)
      for (int k = 0; k < n_; ++k) to.y[k] = to.v[k] * P(h_);
    if (on_u_)
      integrate(tree_, x, to.y, to.q);
    else
      for (int k = 0; k < tree_.nq; ++k) to.q[k] = x[k] + to.y[k];
    return to;
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
    element_system.late = late_;
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

  Varied* constant(const P* x, int n) const {
    Varied* to = arena_.take<Varied>(n);
    for (int k = 0; k < n; ++k) to[k] = {x[k], P(0.0)};
    return to;
  }

  /// Return the tree without gravity and springs: at rest, its inverse dynamics is M a.
  Tree with_inertias_only() const {
    Tree tree = tree_;
    tree.gravity = Vec3<double>::Zero();
    tree.has_joint_forces = tree.ties_links = false;
    return tree;
  }
  /// Return true if q and v satisfy the loops to rounding.
  bool starts_on_loops(const P& time, const P* x) {
    if (!projects()) return true;
    const Arena::Scope scope(arena_);
    ConstraintRows<P> output;
    P *phi = output.residual = take(rows_), *slip = output.target = take(rows_), *J = output.J = take(tree_.loops.entries);
    constraint_rows(tree_, arena_, place(tree_, arena_, x, &time, static_cast<const P*>(nullptr)), output, 0,
                    tree_.loops.constraints);
    add_motion_along_rows(tree_, static_cast<const P*>(J), x + tree_.nq, P(-1.0), slip);
    P off = P(0.0), speed = P(1.0);
    for (int k = 0; k < n_; ++k) speed = most(speed, abs(x[tree_.nq + k]) / P(Plan::unit_of(plan_.velocity_unit, k)));
    for (int r = 0; r < rows_; ++r)
      off = most(off, most(abs(phi[r]), abs(slip[r]) / speed) / P(Plan::unit_of(plan_.row_unit, r)));
    return !any(off > P(1e-10));
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
    for (int k = 0; k < n_; ++k) w[k] = shakes() ? P(0.0) : P(after[nq + k] - end.v[k]);
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

  const Tree& tree_;
  Arena& arena_;
  const Plan& plan_;
  const P* parameter_;
  int n_, nz_, rows_;
  bool on_u_;  // true: slopes are rates of u; false: rates of the coordinates
  bool follows_;  // true: q moves with the velocity at the end of the step
  bool shakes_;
  bool by_rates_ = true;  // true: displacements are added to coordinates, and velocities are the rates of coordinates
  bool sees_state_ = false;
  int ny_;
  Varied* numbers_;
  double time_ = 0.0, h_ = 0.0;
  const P* late_ = nullptr;  // (nv) additional generalised force in all stages; null: zero
  const Tableau* tableau_ = &rest;
  std::optional<Stage> stage_[most_stages];
  Point end_{};
  std::optional<Closing> closing_;
};

}  // namespace sarrus
