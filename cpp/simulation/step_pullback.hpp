// Cotangents back through explicit steps (steps.hpp) by products of derivatives: what step_rates.hpp does along directions, transposed, at a cost
// that does not grow with how many there are.
//
//   a stage    a = a(q, v, tau), z' of it                        loops/pullback.hpp, with the factor of the stage; forces of elements along directions
//   the end    h b_j of each slope; back from the last stage, h a_ij of those before it
//
// A projection ends where  M u + J^T y = 0, phi(q1 + u) = 0  and  M w + J^T z = 0, J1 (v + w) = c,  with M and J of the step's end and J1 of where it
// leads. So, with
//
//   M x + J1^T b = lambda,  J x = 0                              once for positions, once for velocities
//
// lambda before it is lambda - J1^T b, less what x . M u + y . J x is by q (and of w, z likewise), and -b . (J v - c) by q is added where it leads.
//
// Of steps whose joints have rates for velocities: there a displacement is added to q. Others, stages that are closed, steps that solve equations,
// and rows that hold velocities only go by step_rates.hpp.
//
//   cost    of each stage as much as two to three forward dynamics
#pragma once

#include <optional>

#include "../loops/pullback.hpp"
#include "step_rates.hpp"

namespace sarrus {

inline bool goes_back_by_products(const Tree& tree, const Plan& plan) {
  bool yes = facts(plan.method).in_lanes && !facts(plan.method).adaptive() && !nonholonomic(tree) && tree.loops.rotor_rows == 0;
  if (tree.loops.rows > 0) yes &= plan.stabilisation == Stabilisation::none || plan.stabilisation == Stabilisation::projection;
  for (int i = 1; i < tree.links; ++i) yes &= moves_by_rates(tree.link[i]);
  for (int i = 0; i < tree.loop_motions; ++i) yes &= !tree.loop_motion[i].has_armature;
  return yes;
}

/// Parameters that may act in a step.
struct Acting {
  const int* at;
  int count;
};

template <class P, class R> class StepPullback {
 public:
  /// Of steps from rows (q, v, z, held), with these parameters.
  StepPullback(const Tree& tree, Arena& arena, const Plan& plan, const P* parameter)
      : tree_(tree),
        arena_(arena),
        plan_(plan),
        parameter_(parameter),
        n_(tree.nv),
        nz_(plan.force_elements.nz),
        rows_(tree.loops.rows),
        shake_(plan.method == Method::semi_implicit && projects()),
        numbers_(arena.take<Varied>(plan.force_elements.parameters)) {
    for (int k = 0; k < plan.force_elements.parameters; ++k) numbers_[k] = {parameter[k], R(0.0)};
    plan.force_elements.each([&](const auto& element) { sees_state_ |= !is_of_time_alone<std::decay_t<decltype(element)>>; });
  }

  /// The cotangent (2 nv + nz) of where a step of h from x at `time` has led, `after`, becomes that of x; those of parameters are added up.
  /// Returns whether that is where it leads, in one piece; else nothing has changed.
  bool pull(double time, double h, const P* x, const P* after, P* lambda, const Acting& acting, P* by_parameter, P& status) {
    const Arena::Scope scope(arena_);
    const ForceElements& elements = plan_.force_elements;
    if (elements.hold() && next_sample(elements, x + tree_.nq + n_ + nz_) < time + h - one_instant(elements)) return false;
    const Tableau& tableau = stages_of_method();
    std::optional<Stage> stage[most_stages];
    const int nq = tree_.nq;
    P *q = take(nq), *v = take(n_), *z = take(nz_), *u = take(n_), wrong = P(0.0);
    const auto lead = [&](const double* weight, int count) {
      for (int k = 0; k < n_; ++k) u[k] = P(0.0), v[k] = x[nq + k];
      for (int k = 0; k < nz_; ++k) z[k] = x[nq + n_ + k];
      for (int j = 0; j < count; ++j) {
        const P length = P(h * weight[j]);
        for (int k = 0; k < n_; ++k) u[k] += stage[j]->v[k] * length, v[k] += stage[j]->a[k] * length;
        for (int k = 0; k < nz_; ++k) z[k] += stage[j]->z_dot[k] * length;
      }
      if (plan_.method == Method::semi_implicit && count > 0)
        for (int k = 0; k < n_; ++k) u[k] = v[k] * P(h);
      integrate(tree_, x, u, q);
    };
    for (int i = 0; i < tableau.stages; ++i) {
      lead(tableau.a + i * tableau.stages, i);
      evaluate(stage[i].emplace(), time + h * tableau.c[i], q, v, z, x, time, wrong);
    }
    lead(tableau.b, tableau.stages);
    for (int k = 0; k < nz_; ++k) see_gap(z[k], after[nq + n_ + k]);
    std::optional<Closing> closing;
    if (projects()) {
      close(closing.emplace(), P(time + h), q, v, after);
    } else {
      for (int k = 0; k < nq; ++k) see_gap(q[k], after[k]);
      for (int k = 0; k < n_; ++k) see_gap(v[k], after[nq + k]);
    }
    if (any(std::exchange(gap_, P(0.0)) > P(reproduced))) return false;
    status = select(wrong > status, wrong, status);

    P *by_start = take(2 * n_ + nz_), *by_v = take(n_ * most_stages), *by_a = take(n_ * most_stages),
      *by_z_dot = take(nz_ * most_stages);
    std::fill(by_start, by_start + 2 * n_ + nz_, P(0.0));
    if (shake_)  // v is what the displacement was
      for (int k = 0; k < n_; ++k) {
        const P share = std::exchange(lambda[n_ + k], P(0.0)) / P(h);
        lambda[k] += share, by_start[k] -= share;
      }
    if (closing) open(*closing, after, lambda);
    if (plan_.method == Method::semi_implicit)
      for (int k = 0; k < n_; ++k) lambda[n_ + k] += lambda[k] * P(h);
    for (int k = 0; k < 2 * n_ + nz_; ++k) by_start[k] += lambda[k];
    const auto spread = [&](const P* from, const double* weight, int count) {
      for (int j = 0; j < count; ++j) {
        const P length = P(h * weight[j]);
        for (int k = 0; k < n_; ++k) by_v[j * n_ + k] += from[k] * length, by_a[j * n_ + k] += from[n_ + k] * length;
        for (int k = 0; k < nz_; ++k) by_z_dot[j * nz_ + k] += from[2 * n_ + k] * length;
      }
    };
    for (P* part : {by_v, by_a}) std::fill(part, part + n_ * most_stages, P(0.0));
    std::fill(by_z_dot, by_z_dot + nz_ * most_stages, P(0.0));
    spread(lambda, tableau.b, tableau.stages);
    if (plan_.method == Method::semi_implicit) std::fill(by_v, by_v + n_, P(0.0));  // q follows the velocity at the end
    P* by = take(2 * n_ + nz_);
    for (int i = tableau.stages - 1; i >= 0; --i) {
      std::fill(by, by + 2 * n_ + nz_, P(0.0));
      std::copy(by_v + i * n_, by_v + (i + 1) * n_, by + n_);
      pull_stage(*stage[i], x, time, by_a + i * n_, by_z_dot + i * nz_, by, acting, by_parameter);
      for (int k = 0; k < 2 * n_ + nz_; ++k) by_start[k] += by[k];
      spread(by, tableau.a + i * tableau.stages, i);
    }
    std::copy(by_start, by_start + 2 * n_ + nz_, lambda);
    return true;
  }

 private:
  using Varied = Dual<P, R>;
  template <class Kind> static constexpr bool is_of_time_alone =
      std::is_same_v<Kind, Efforts> || std::is_same_v<Kind, HeldEfforts>;
  static constexpr int most_stages = 4;
  static constexpr double reproduced = 1e-8;  // what rounding makes of a step, in other registers
  static constexpr double rounding = 3e-12;  // smaller motions bend nothing to speak of

  struct Stage {
    P time, *q, *v, *z, *a, *z_dot;
    LoopInput<P> in;
    std::optional<SensitivityEquation<P, P>> equation;
    AbaWork<P> tree;
  };
  /// A projection from q, v to where it led: by u and w, with y and z; J, and J1 there.
  struct Closing {
    P time, *q, *u, *w, *y, *z;
    std::optional<LeastMotion<P>> least;
    const P *J, *J1;
    bool turns = false, changes = false;  // by more than rounding
  };

  P* take(int n) const { return arena_.take<P>(n); }
  P* copy(const P* from, int n) const {
    P* to = take(n);
    std::copy(from, from + n, to);
    return to;
  }
  bool projects() const { return rows_ > 0 && plan_.stabilisation == Stabilisation::projection; }
  const Tableau& stages_of_method() const {
    static constexpr double none[] = {0.0}, one[] = {1.0};
    static constexpr Tableau euler = {1, none, one, none, nullptr, nullptr};
    const Tableau* tableau = facts(plan_.method).tableau;
    return tableau ? *tableau : euler;
  }
  void see_gap(const P& a, const P& b) {
    const P gap = abs(P(a - b)) / (P(1.0) + abs(b));
    gap_ = select(gap < gap_, gap_, gap);
  }

  template <class T> System<T> system(const T* parameter, const T* held, double since) const {
    System<T> s{tree_, arena_, plan_, parameter};
    s.held = held, s.since = T(since);
    return s;
  }

  void evaluate(Stage& s, double time, const P* q, const P* v, const P* z, const P* x, double since, P& wrong) {
    s.time = P(time), s.q = copy(q, tree_.nq), s.v = copy(v, n_), s.z = copy(z, nz_), s.z_dot = take(nz_), s.a = take(n_);
    P* tau = take(n_);
    auto of_elements = system(parameter_, x + tree_.nq + n_ + nz_, since);
    of_elements.forces(s.time, s.q, s.v, s.z, tau, s.z_dot);
    wrong = select(of_elements.status > wrong, of_elements.status, wrong);
    s.in = LoopInput<P>{s.q, s.v, tau};
    s.in.time = &s.time;
    if (rows_ == 0) return static_cast<void>(s.tree = aba(tree_, arena_, AbaInput<P>{s.q, s.v, tau}, s.a));
    s.equation.emplace(tree_, arena_, s.in, true);
    s.equation->take_multipliers(arena_);
    std::copy(s.equation->a, s.equation->a + n_, s.a);
    wrong = select(s.equation->error < P(tolerances::contradiction), wrong, P(double(Status::contradictory)));
  }

  /// `by` (2 nv + nz): those of q, v and z are added to it.
  void pull_stage(const Stage& s, const P* row, double since, const P* by_a, const P* by_z_dot, P* by, const Acting& acting,
                  P* by_parameter) {
    const Arena::Scope scope(arena_);
    P *x = take(n_ + rows_), *gradient = take(3 * n_);
    if (rows_ > 0)
      solve(*s.equation, by_a, x);
    else
      accelerate_from_rest(tree_, arena_, s.tree, by_a, x);
    std::fill(gradient, gradient + 3 * n_, P(0.0));
    const Gradient<P> of = {gradient, gradient + n_, gradient + 2 * n_};
    const Kinematics<P> k = motion(tree_, s.q, s.v, s.a);
    Pullback<P> pullback(tree_, arena_, k, s.v, s.a, x);
    pullback.add_bodies(0, nullptr);
    pullback.template add_passive<P>(s.q, of);
    if (rows_ > 0) {
      P* of_x = take(rows_);
      for (int r = 0; r < rows_; ++r) of_x[r] = -s.equation->lambda[r];
      LoopPullback<P, P>(tree_, arena_, s.in, k, s.a, x).add({of_x, x + n_}, pullback, of);
    }
    pullback.template see_columns<P>(s.q);
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
  Kinematics<P> motion(const Tree& tree, const P* q, const P* v, const P* a) const {
    const auto k = Kinematics<P>::over(tree, arena_.take<P>(Kinematics<P>::size(tree)));
    kinematics(tree, arena_, q, v, a, k, GroundMotion<P>{});
    return k;
  }

  /// What elements make of cotangents of tau and z', along as many directions of the state and of parameters as go side by side.
  void pull_forces(const Stage& s, const P* row, double since, const P* by_tau, const P* by_z_dot, P* by, const Acting& acting,
                   P* by_parameter) {
    const int nq = tree_.nq, m = 2 * n_ + nz_, end = m + acting.count, begin = sees_state_ ? 0 : m;
    if (begin == end) return;
    Varied *q = constant(s.q, nq), *v = constant(s.v, n_), *z = constant(s.z, nz_), *d = arena_.take<Varied>(n_);
    Varied *tau = arena_.take<Varied>(n_), *z_dot = arena_.take<Varied>(nz_);
    Varied* held = constant(row + nq + n_ + nz_, plan_.force_elements.held);
    const Varied* here = constant(s.q, nq);
    const auto rate = [&](int k) -> R& {
      return k < n_ ? d[k].rate : k < 2 * n_ ? v[k - n_].rate : k < m ? z[k - 2 * n_].rate : numbers_[acting.at[k - m]].rate;
    };
    for (int k = 0; k < n_; ++k) d[k] = Varied(0.0);
    for (int first = begin; first < end; first += directions_of<R>) {
      const Arena::Scope scope(arena_);
      const int last = std::min(first + directions_of<R>, end);
      for (int k = first; k < last; ++k) along(rate(k), k - first) = P(1.0);
      if (first < n_ + directions_of<R>) integrate(tree_, here, d, q);  // and once more, so that it stands still again
      vary_held_efforts(plan_, static_cast<const Varied*>(numbers_), held);
      auto of_elements = system(static_cast<const Varied*>(numbers_), static_cast<const Varied*>(held), since);
      of_elements.forces(Varied(s.time, R(0.0)), q, v, z, tau, z_dot);
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

  void close(Closing& c, const P& time, const P* q, const P* v, const P* after) {
    c.time = time, c.q = copy(q, tree_.nq);
    c.u = take(n_), c.w = take(n_), c.y = take(rows_), c.z = take(rows_);
    c.least.emplace(tree_, arena_, c.q, c.time, static_cast<const P*>(nullptr));
    c.J = c.J1 = c.least->rows();
    difference(tree_, c.q, after, c.u);
    for (int k = 0; k < n_; ++k) c.w[k] = shake_ ? P(0.0) : P(after[tree_.nq + k] - v[k]);
    c.turns = split(c, c.u, c.y), c.changes = split(c, c.w, c.z);
    if (!c.turns) return;
    P* J1 = arena_.take<P>(tree_.loops.entries);
    c.J1 = J1;
    const Arena::Scope scope(arena_);
    ConstraintRows<P> asked;
    asked.J = J1;
    constraint_rows(tree_, arena_, place(tree_, arena_, after, &c.time, static_cast<const P*>(nullptr)), asked, 0,
                    tree_.loops.constraints);
  }
  /// Whether a motion is more than rounding; y with M motion + J^T y = 0, if it is one onto the loops.
  bool split(Closing& c, const P* motion, P* y) {
    const Arena::Scope scope(arena_);
    P *b = take(n_ + rows_), size = P(0.0);
    std::fill(b, b + n_ + rows_, P(0.0)), std::fill(y, y + rows_, P(0.0));
    for (int k = 0; k < n_; ++k) size = most(size, abs(motion[k]));
    if (!any(size > P(rounding))) return false;
    add_motion_along_rows(tree_, c.J, motion, P(1.0), b + n_);
    const P* x = solve_finely(c, b);
    for (int k = 0; k < n_; ++k) see_gap(P(x[k] - motion[k]), P(0.0));
    std::copy(x + n_, x + n_ + rows_, y);
    return true;
  }
  const P* solve_finely(const Closing& c, const P* b) const {
    const Saddle<P>& matrix = c.least->e.solved();
    P* y = take(matrix.plan.unknowns);
    refine(matrix, arena_, c.least->factor, c.least->e.lifted(arena_, b), y, tolerances::most_corrections);
    return c.least->e.lowered(arena_, y);
  }

  /// lambda of where a projection led becomes that of where it began.
  void open(const Closing& c, const P* after, P* lambda) {
    const Arena::Scope scope(arena_);
    P *x = take(n_), *b = take(rows_), *bent = take(n_);
    std::fill(bent, bent + n_, P(0.0));
    if (!shake_) {
      take_away(c, lambda + n_, x, b);
      if (c.changes) bend(c, x, c.w, c.z, bent);
      pull_velocities(c, after, b, lambda);
    }
    take_away(c, lambda, x, b);
    if (c.turns) bend(c, x, c.u, c.y, bent);
    for (int k = 0; k < n_; ++k) lambda[k] -= bent[k];
  }
  /// lambda - J1^T b, in its place.
  void take_away(const Closing& c, P* lambda, P* x, P* b) {
    const Arena::Scope scope(arena_);
    P *side = take(n_ + rows_), *away = take(rows_);
    constexpr int most_rounds = 12;
    for (int r = 0; r < rows_; ++r) b[r] = P(0.0);
    for (int round = 0; round < most_rounds; ++round) {
      const Arena::Scope of_round(arena_);
      std::copy(lambda, lambda + n_, side), std::fill(side + n_, side + n_ + rows_, P(0.0));
      if (c.J1 != c.J) {  // J^T b on the left, what J1 has besides on the right
        add_constraint_forces(tree_, c.J, b, side);
        for (int r = 0; r < rows_; ++r) away[r] = -b[r];
        add_constraint_forces(tree_, c.J1, away, side);
      }
      const P* solved = solve_finely(c, side);
      P off = P(0.0), size = P(0.0);
      for (int r = 0; r < rows_; ++r) off = most(off, abs(P(solved[n_ + r] - b[r]))), size = most(size, abs(solved[n_ + r]));
      std::copy(solved, solved + n_, x), std::copy(solved + n_, solved + n_ + rows_, b);
      if (c.J1 == c.J || !any(off > size * P(1e-14))) break;
    }
    for (int r = 0; r < rows_; ++r) away[r] = -b[r];
    add_constraint_forces(tree_, c.J1, away, lambda);
  }
  /// x . M u + y . J x by q is added.
  void bend(const Closing& c, const P* x, const P* u, const P* y, P* by) {
    const Arena::Scope scope(arena_);
    Tree weightless = tree_;
    weightless.gravity = Vec3<double>::Zero();
    const P* rest = zeros<P>(arena_, n_);
    pull_rows(weightless, c.time, c.q, rest, u, x, {y}, true, by);
  }
  /// -b . (J v - c) by q is added.
  void pull_velocities(const Closing& c, const P* after, const P* b, P* by) {
    const Arena::Scope scope(arena_);
    P* of_v = take(rows_);
    for (int r = 0; r < rows_; ++r) of_v[r] = -b[r];
    pull_rows(tree_, c.time, after, after + tree_.nq, zeros<P>(arena_, n_), nullptr, {nullptr, nullptr, of_v}, false, by);
  }
  void pull_rows(const Tree& tree, const P& time, const P* q, const P* v, const P* a, const P* x, const RowForces<P>& forces,
                 bool bodies, P* by) {
    P* others = take(2 * n_);
    std::fill(others, others + 2 * n_, P(0.0));
    const Gradient<P> of = {by, others, others + n_};
    LoopInput<P> in{q, v, nullptr};
    in.time = &time;
    const Kinematics<P> k = motion(tree, q, v, a);
    Pullback<P> pullback(tree, arena_, k, v, a, x);
    if (bodies) pullback.add_bodies(0, nullptr);
    LoopPullback<P, P>(tree, arena_, in, k, a, x).add(forces, pullback, of);
    pullback.template see_columns<P>(q);
    pullback.inward(of);
  }

  const Tree& tree_;
  Arena& arena_;
  const Plan& plan_;
  const P* parameter_;
  int n_, nz_, rows_;
  bool shake_, sees_state_ = false;
  Varied* numbers_;
  P gap_ = P(0.0);
};

}  // namespace sarrus
