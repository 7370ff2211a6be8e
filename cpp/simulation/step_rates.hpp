// Derivatives of fixed steps: the steps of steps.hpp on dual numbers, along as many directions as there are lanes.
//
// Equations are solved for values only; the rates of their solutions follow from the same M, J and factor:
//
//   accelerations             [M J^T; J 0] [Da; -Dlambda] = [Dtau - D(M a + h) + DJ^T lambda; D gamma - DJ a]     loops/derivatives.hpp
//   least motion u            [M J^T; J 0] [Du; Dy]       = [-DM u - DJ^T y; D change - DJ u]
//
// A projection onto the loops repeats least motions until the residual vanishes. So it also yields rates of the projected state, and it continues
// until the rates satisfy the loops as well. A changed initial state is first projected onto the loops, as at the beginning of every run. Therefore a
// derivative exists even along changes that open the loops.
//
// Discontinuous terms have no derivatives: dry friction of joints, functions of the caller, values that are constant between samples, tasks with
// bounds. At limits, end stops and contacts, the derivative is one-sided: that of their current state, active or inactive.
#pragma once

#include "../loops/derivatives.hpp"
#include "../simd/several.hpp"
#include "advance.hpp"
#include "simulation_kernels.hpp"

namespace sarrus {

template <class P, class R> const P* values_of(Arena& arena, int n, const Dual<P, R>* x) {
  P* value = arena.take<P>(n);
  for (int k = 0; k < n; ++k) value[k] = x[k].value;
  return value;
}

/// Compute M with the rates of its diagonal only, because steps need no others, and CRBA on dual numbers is the largest function to compile.
template <class P, class R> void crba(const Tree& tree, Arena& arena, const Dual<P, R>* q, Dual<P, R>* M) {
  using T = Dual<P, R>;
  const Arena::Scope scope(arena);
  const int n = tree.nv;
  P* value = arena.take<P>(n * n);
  crba(tree, arena, values_of(arena, tree.nq, q), value);
  for (int k = 0; k < n * n; ++k) M[k] = {value[k], R(0.0)};
  const auto k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  const T* rest = nullptr;
  kinematics(tree, arena, q, rest, rest, k);
  const Vec3<T> about = zero3<T>();
  const Inertia<T>* subtree = subtree_inertias(tree, arena, k, about);
  for (int c = 0; c < n; ++c) {
    const int i = tree.column_link[c];
    const Motion<T>& column = k.column[c];
    const Motion<T> s = {column.angular, column.linear + cross(column.angular, Vec3<T>(about - k.link[i].X.p))};
    M[c * n + c].rate = dot(s, subtree[i] * s).rate;
  }
  if (tree.loops.rotor_rows == 0) return;
  T* rotors = arena.take<T>(n * n);
  std::fill(rotors, rotors + n * n, T(0.0));
  add_loop_armature(tree, arena, q, rest, rotors);
  for (int c = 0; c < n; ++c) M[c * n + c].rate = M[c * n + c].rate + rotors[c * n + c].rate;
}

/// Compute a at a state of a mechanism without loops, from M alone.
template <class P, class R>
void tree_accelerations_with_rates(System<Dual<P, R>>& s, const Dual<P, R>* q, const Dual<P, R>* v, const Dual<P, R>* tau,
                                   Dual<P, R>* a) {
  const Tree& tree = s.tree;
  const int n = tree.nv;
  P *value = s.arena.template take<P>(n), *L = s.arena.template take<P>(n * n);
  const P* at = values_of(s.arena, tree.nq, q);
  aba(tree, s.arena, AbaInput<P>{at, values_of(s.arena, n, v), values_of(s.arena, n, tau)}, value);
  Dual<P, R>* needed = s.arena.template take<Dual<P, R>>(n);
  for (int k = 0; k < n; ++k) a[k] = {value[k], R(0.0)};
  rnea(tree, s.arena, RneaInput<Dual<P, R>>{q, v, a}, needed);
  crba(tree, s.arena, at, L);
  factorise(tree, s.arena, L);
  for (int d = 0; d < directions_of<R>; ++d) {
    for (int k = 0; k < n; ++k) value[k] = along(tau[k].rate, d) - along(needed[k].rate, d);
    solve_inward(tree, L, value, 1), solve_outward(tree, L, value, 1);
    for (int k = 0; k < n; ++k) along(a[k].rate, d) = value[k];
  }
}

template <class P, class R>
SARRUS_NOINLINE void accelerations_with_rates(System<Dual<P, R>>& s, const Dual<P, R>& time, const Dual<P, R>* q,
                                              const Dual<P, R>* v, Dual<P, R>* tau, Dual<P, R>* a) {
  using T = Dual<P, R>;
  const Tree& tree = s.tree;
  const Loops& loops = tree.loops;
  Arena& arena = s.arena;
  if (loops.rows + loops.rotor_rows == 0) return tree_accelerations_with_rates(s, q, v, tau, a);
  const int n = tree.nv, rows = loops.rows;
  const bool corrects = s.plan.stabilisation == Stabilisation::baumgarte;
  LoopInput<P> in{values_of(arena, tree.nq, q), values_of(arena, n, v), values_of(arena, n, tau)};
  in.time = &time.value;
  if (corrects) in.velocity_gain = s.plan.gains[0], in.position_gain = s.plan.gains[1];
  const LoopEquation<P> e = loop_equation(tree, arena, in);
  const LoopSolution<P> solution = solve_tightly(e, arena, e.b);
  s.flag_contradiction(T(solution.error, R(0.0)));
  // near a singular position there is no derivative, as in loops/derivatives.hpp
  const P size = e.terms + in_metric(e.solved(), solution.y);
  const auto singular = is_near_singular(moved_by_rounding(e, arena, solution.factor, size), size);
  s.status.value = select(singular, sarrus::most(s.status.value, P(double(inconsistent_constraints))), s.status.value);
  for (int k = 0; k < n; ++k) a[k] = {solution.x[k], R(0.0)};

  // rates of the right-hand side
  T* side = arena.template take<T>(n + rows);
  const RneaInput<T> motion = {q, v, a};
  const auto work = rnea(tree, arena, motion, side);
  for (int k = 0; k < n; ++k) side[k] = tau[k] - side[k];
  LoopState<T> state = {q, v, &time, nullptr, nullptr, nullptr, work.link};
  place(tree, arena, work.poses(), work.columns, state);
  ConstraintRows<T> output;
  T* J = output.J = arena.template take<T>(loops.entries);
  T* gamma = output.gamma = side + n;
  if (corrects) output.residual = arena.template take<T>(rows), output.target = arena.template take<T>(rows);
  constraint_rows(tree, arena, state, output, 0, loops.constraints);
  if (corrects) {
    add_motion_along_rows(tree, static_cast<const T*>(J), v, T(-1.0), output.target);
    for (int r = 0; r < rows; ++r) gamma[r] += output.target[r] * T(in.velocity_gain) - output.residual[r] * T(in.position_gain);
  }
  each_entry_of_rows(loops, J, [&](const Constraint& c, int row, int column, const T& entry) {
    side[column].rate = side[column].rate - entry.rate * R(solution.x[n + row]);  // solution.x is -lambda
    // for rows between bodies, gamma already contains -J a, because the motion includes the accelerations of the bodies
    if (c.child < 0) gamma[row].rate = gamma[row].rate - entry.rate * R(solution.x[column]);
  });

  P* b = arena.template take<P>(n + rows + loops.rotor_rows);
  for (int d = 0; d < directions_of<R>; ++d) {
    const Arena::Scope scope(arena);
    for (int k = 0; k < n + rows + loops.rotor_rows; ++k) b[k] = k < n + rows ? along(side[k].rate, d) : P(0.0);
    const P* x = solve_corrected(e, arena, solution.factor, static_cast<const P*>(b));
    for (int k = 0; k < n; ++k) along(a[k].rate, d) = x[k];
  }
}

/// Least motion with its rates, from a factorisation of values only.
template <class P, class R> struct LeastMotion<Dual<P, R>> {
  using T = Dual<P, R>;
  const Tree& tree;
  Arena& arena;
  const T* q;
  const T& time;
  LeastMotion<P> plain;
  T* x;

  LeastMotion(const Tree& t, Arena& a, const T* at, const T& now, const T*, const bool* = nullptr)
      : tree(t), arena(a), q(copy(a, t.nq, at)), time(now), plain(t, a, values_of(a, t.nq, at), now.value, nullptr) {
    x = arena.template take<T>(tree.nv + plain.e.matrix.rows);
    J_ = arena.template take<T>(tree.loops.entries), at_rest_ = arena.template take<T>(tree.nv);
  }

  /// Return J.
  const T* rows() {
    if (std::exchange(has_rows_, true)) return J_;
    const Arena::Scope scope(arena);
    ConstraintRows<T> output;
    output.J = J_;
    constraint_rows(tree, arena, place(tree, arena, q, &time, static_cast<const T*>(nullptr)), output, 0, tree.loops.constraints);
    return J_;
  }
  const T* along(const T* change, double share) {
    const int n = tree.nv, rows = tree.loops.rows, all = n + plain.e.matrix.rows;
    T* side;
    {
      const Arena::Scope scope(arena);
      P* value = arena.template take<P>(rows);
      for (int r = 0; r < rows; ++r) value[r] = change[r].value;
      const P* y = plain.along(value, share);
      for (int k = 0; k < all; ++k) x[k] = {y[k], R(0.0)};
    }
    const Arena::Scope scope(arena);
    side = arena.template take<T>(n + rows);
    for (int k = 0; k < n; ++k) side[k] = T(0.0);
    for (int r = 0; r < rows; ++r) side[n + r] = change[r] * T(share);
    bend(side);
    P* b = arena.template take<P>(all);
    for (int d = 0; d < directions_of<R>; ++d) {  // solve with corrections, because forces, unlike drifts, may be large
      const Arena::Scope direction_scope(arena);
      for (int k = 0; k < all; ++k) b[k] = k < n + rows ? sarrus::along(side[k].rate, d) : P(0.0);
      const P* rates = solve_corrected(plain.e, arena, plain.factor, static_cast<const P*>(b));
      for (int k = 0; k < n; ++k) sarrus::along(x[k].rate, d) = rates[k];
    }
    return x;
  }

 private:
  T *J_, *at_rest_;  // rows, and the generalised force at rest; computed at their first use
  bool has_rows_ = false, has_rest_ = false;

  static const T* copy(Arena& arena, int n, const T* from) {
    T* to = arena.template take<T>(n);
    std::copy(from, from + n, to);
    return to;
  }

  /// Subtract the change of the matrix times the solution x from the right-hand side; omitted if x is at rounding level.
  void bend(T* side) {
    const int n = tree.nv;
    P size = P(0.0);
    for (int k = 0; k < n; ++k) size = sarrus::most(size, P(abs(x[k].value) / tree.numbers<P>()(tree.unit[k])));
    if (!any(size > P(3e-12))) return;
    T* inertial = arena.template take<T>(n);
    const T* zero = zeros<T>(arena, n);
    rnea(tree, arena, RneaInput<T>{q, zero, x}, inertial);
    if (!std::exchange(has_rest_, true)) rnea(tree, arena, RneaInput<T>{q, zero, zero}, at_rest_);
    for (int k = 0; k < n; ++k) side[k] -= inertial[k] - at_rest_[k];
    each_entry_of_rows(tree.loops, rows(), [&](const Constraint&, int row, int column, const T& entry) {
      side[column].rate = side[column].rate - entry.rate * R(x[n + row].value);
      side[n + row].rate = side[n + row].rate - entry.rate * R(x[column].value);
    });
  }
};

/// Sums of squared rates, in the units of their quantities. Each direction has its own sum, because the rate of a slide may be a million times that
/// of a rotation.
template <class P, class R> struct SizeOfRates {
  P of[directions_of<R>];

  SizeOfRates(int n, const Dual<P, R>* x, const double* unit) {
    for (int d = 0; d < directions_of<R>; ++d) {
      of[d] = P(0.0);
      for (int k = 0; k < n; ++k) of[d] += square(P(along(x[k].rate, d) / P(Plan::unit_of(unit, k))));
    }
  }
  SizeOfRates& add(const SizeOfRates& other, const P& share) {
    for (int d = 0; d < directions_of<R>; ++d) of[d] += other.of[d] * share;
    return *this;
  }
  bool exceeds(const SizeOfRates& total, double share) const {
    for (int d = 0; d < directions_of<R>; ++d)
      if (any(of[d] > total.of[d] * P(square(share)) + P(1e-300))) return true;
    return false;
  }
};

/// Compute the least motion u (nv), with rates that follow from the rates of q.
template <class P, class R> void rates_of_displacement(const Tree& tree, Arena& arena, const Dual<P, R>* q, Dual<P, R>* u) {
  const Arena::Scope scope(arena);
  Dual<P, R>* plain = arena.take<Dual<P, R>>(tree.nq);
  for (int k = 0; k < tree.nq; ++k) plain[k] = {q[k].value, R(0.0)};
  difference(tree, plain, q, u);
}
template <class P, class R> SizeOfRates<P, R> size_of_displacement(System<Dual<P, R>>& s, const Dual<P, R>* q) {
  const Arena::Scope scope(s.arena);
  Dual<P, R>* u = s.arena.template take<Dual<P, R>>(s.tree.nv);
  rates_of_displacement(s.tree, s.arena, q, u);
  return {s.tree.nv, u, s.plan.velocity_unit};
}

/// Project as in system.hpp, by the least motions that are used there, until the rates satisfy the loops too.
template <class P, class R>
SARRUS_NOINLINE Dual<P, R> project(System<Dual<P, R>>& s, const Dual<P, R>& time, Dual<P, R>* q, Dual<P, R>* v,
                                   const bool* fixed_velocities = nullptr, bool velocities = true) {
  using T = Dual<P, R>;
  constexpr double no_rate = 1e-13;  // relative to the initial rates
  if (s.tree.loops.rows == 0) return T(0.0);
  const Arena::Scope scope(s.arena);
  const int rows_in_all = s.tree.loops.rows, nv = s.tree.nv;
  LoopRows<T> rows(s, time, nullptr);
  Corrections<T> corrections{s, time, nullptr, fixed_velocities};
  T* displaced = s.arena.template take<T>(s.tree.nq);
  const SizeOfRates<P, R> moving = size_of_displacement(s, q);
  const auto left = [&](const T& residual, const T* x, const SizeOfRates<P, R>& size) {
    return any(residual.value > P(square(tolerances::no_drift))) ||
           SizeOfRates<P, R>(rows_in_all, x, s.plan.row_unit).exceeds(size, no_rate);
  };
  T residual = rows.evaluate(q, rows.phi), before = residual;
  for (int round = 0; round < 12 && left(residual, rows.phi, moving); ++round) {
    if (round > 2 && !any(residual.value < before.value) && !any(residual.value > P(square(tolerances::nearly_closed)))) break;
    if (round == 6 && any(residual.value > P(square(tolerances::nearly_closed)))) corrections.discard_factor();
    integrate(s.tree, q, corrections.along(q, rows.phi, -1.0), displaced);
    std::copy(displaced, displaced + s.tree.nq, q);
    before = residual, residual = rows.evaluate(q, rows.phi);
  }
  if (!velocities) return residual;
  const T slips_of = rows.subtract_motion(v);
  T slips = slips_of;
  const T fine = T(1.0) + s.squares_of_velocities(v);
  const auto changing = SizeOfRates<P, R>(nv, v, s.plan.velocity_unit).add(moving, fine.value);
  for (int round = 0; round < 12 && left(T(slips / fine), rows.slip, changing); ++round) {
    const T* change = corrections.along(q, rows.slip, 1.0);
    for (int k = 0; k < nv; ++k) v[k] += change[k];
    slips = rows.subtract_motion(change);
  }
  return residual;
}

template <class P, class R> bool goes_on(const LeftOpen<Dual<P, R>>&, const LeftOpen<Dual<P, R>>&) { return true; }
/// Return true if the end of a step is on the loops, and if its rates violate them by rounding only, relative to the rates at the beginning.
template <class P, class R>
bool keeps_loops(const LoopRows<Dual<P, R>>& open, const Dual<P, R>& residual, const SimulationState<Dual<P, R>>& begin) {
  System<Dual<P, R>>& s = open.s;
  const int n = open.size();
  const auto size = SizeOfRates<P, R>(s.tree.nv, begin.v, s.plan.velocity_unit).add(size_of_displacement(s, begin.q), P(1.0));
  const auto left = SizeOfRates<P, R>(n, open.phi, s.plan.row_unit).add({n, open.slip, s.plan.row_unit}, P(1.0));
  return !any(residual.value > P(square(tolerances::no_drift))) && !left.exceeds(size, 1e-12);
}

/// Iterate y = G(y) for values and rates at once, to an accuracy relative to both: their errors decrease by the same factor in a round. Returns false if
/// the iteration does not contract.
template <class P, class R, class Evaluate>
bool iterate_with_rates(MidpointRule<Dual<P, R>>& rule, double accuracy, Dual<P, R>* y, Dual<P, R>* next, Evaluate&& evaluate) {
  constexpr int most_rounds = 20;
  constexpr double slowest = 0.2, rounding = 1e-13;
  double before = 1.0;
  for (int round = 0; round < most_rounds; ++round) {
    evaluate(y, next);
    P off = P(0.0), size[directions_of<R>];
    for (int d = 0; d < directions_of<R>; ++d) {
      size[d] = P(1.0);
      for (int k = 0; k < rule.n; ++k) size[d] = most(size[d], P(abs(along(next[k].rate, d)) / rule.unit(k).value));
    }
    for (int k = 0; k < rule.n; ++k) {
      const P unit = rule.unit(k).value;
      off = most(off, P(abs(next[k].value - y[k].value) / (unit + abs(y[k].value))));
      for (int d = 0; d < directions_of<R>; ++d)
        off = most(off, P(abs(along(next[k].rate, d) - along(y[k].rate, d)) / (unit * size[d])));
      y[k] = next[k];
    }
    double now = 0.0;
    for (int l = 0; l < width_of<P>; ++l) {
      if (!finite_bits(double(lane(off, l)))) return false;
      now = std::max(now, double(lane(off, l)));
    }
    if (now == 0.0) return true;
    const double ratio = now / std::exchange(before, now);
    if (round > 0 && (now * ratio <= accuracy || (now <= rounding && ratio > slowest))) return true;
    if (round > 0 && ratio > slowest) return false;
  }
  return false;
}

/// Solve the fixed-point equation y = G(y) by this iteration, or by Newton's method on values. Newton's method then solves (1 - dG/dy) Dy = DG, where
/// DG is the rate of G for constant y. Columns of dG/dy are computed as rates of G.
template <class P, class R>
bool implicit_midpoint_step(System<Dual<P, R>>& s, const Dual<P, R>& time, const Dual<P, R>& h,
                            const SimulationState<Dual<P, R>>& x, const Dual<P, R>* guess = nullptr,
                            MidpointNewton<Dual<P, R>>* = nullptr, bool rough = false) {
  constexpr double fine = 1e-15, preliminary = 1e-9;
  rough = rough && !any(s.closes.value > P(0.5));
  using T = Dual<P, R>;
  Arena& arena = s.arena;
  constexpr int together = directions_of<R>;
  const int n = s.tree.nv + s.plan.force_elements.nz;
  MidpointRule<T> rule(s, time, h, x);
  T *y = rule.take(n), *fixed_point = rule.take(n), *out = rule.take(n);
  P *A = arena.template take<P>(n * n), *step = arena.template take<P>(n);
  double *lane_matrix = arena.template take<double>(n * n), *side = arena.template take<double>(n);
  const auto solve = [&](P* b) {
    for (int l = 0; l < width_of<P>; ++l) {
      for (int k = 0; k < n * n; ++k) lane_matrix[k] = lane(A[k], l);
      for (int k = 0; k < n; ++k) side[k] = lane(b[k], l);
      const auto unit = [&](int k) { return lane(rule.unit(k).value, l); };
      if (!solve_dense(n, lane_matrix, side, unit)) lane(s.status.value, l) = no_convergence;
      for (int k = 0; k < n; ++k) lane(b[k], l) = side[k];
    }
  };
  const T status = s.status;
  for (int k = 0; k < n; ++k) y[k] = guess ? guess[k] : x.v[k];
  // keep only the status of the last round
  if (iterate_with_rates(rule, rough ? preliminary : fine, y, out,
                         [&](const T* from, T* to) { s.status = status, rule.apply(from, to); })) {
    rule.finish(y);
    return !rough;
  }
  for (int k = 0; k < n; ++k) y[k] = {guess ? guess[k].value : x.v[k].value, R(0.0)};
  constexpr int most_rounds = 20;
  for (int round = 1;; ++round) {
    s.status = status;
    rule.apply(y, fixed_point);
    for (int first = 0; first < n; first += together) {
      const int count = std::min(together, n - first);
      P seed[together];  // perturbations with the magnitude of the values from which they are subtracted
      for (int d = 0; d < count; ++d) {
        seed[d] = P(1.0);
        for (int r = 0; r < n; ++r) seed[d] = most(seed[d], P(abs(along(fixed_point[r].rate, d)) / rule.unit(r).value));
        along(y[first + d].rate, d) = seed[d] *= rule.unit(first + d).value;
      }
      rule.apply(y, out);
      for (int d = 0; d < count; ++d) {
        y[first + d].rate = R(0.0);
        for (int r = 0; r < n; ++r)
          A[r * n + first + d] =
              P(r == first + d ? 1.0 : 0.0) - (along(out[r].rate, d) - along(fixed_point[r].rate, d)) / seed[d];
      }
    }
    P off = P(0.0);
    for (int k = 0; k < n; ++k) step[k] = fixed_point[k].value - y[k].value;
    solve(step);
    for (int k = 0; k < n; ++k) {
      off = most(off, P(abs(step[k]) / (rule.unit(k).value + abs(y[k].value))));
      y[k].value += step[k];
    }
    if (round == most_rounds) s.status.value = select(off > P(1e-7), P(double(no_convergence)), s.status.value);
    if (round == most_rounds || !any(off > P(1e-12))) break;
  }
  rule.apply(y, fixed_point);
  for (int d = 0; d < together; ++d) {
    for (int k = 0; k < n; ++k) step[k] = along(fixed_point[k].rate, d);
    solve(step);
    for (int k = 0; k < n; ++k) along(y[k].rate, d) = step[k];
  }
  if (rule.groups.count > 0) rule.apply(y, out);  // the momenta at the end depend on y too
  rule.finish(y);
  return true;
}

/// Set the rates of sampled efforts to the rates of the parameters from which they are copied.
template <class T> void vary_held_efforts(const Plan& plan, const T* numbers, T* held_values) {
  for (const ZeroOrderHold& element : plan.force_elements.all<ZeroOrderHold>())
    for (std::size_t k = 0; k < element.motors.size(); ++k)
      if (const int at = element.acting(first_lane(held_values[element.place].value), k); at >= 0)
        held_values[element.place + 1 + element.motors[k].iv].rate = numbers[at].rate;
}

/// Return the length of a change of the state: a displacement, changes of v and of z.
inline int tangent_size(const Tree& tree, const Plan& plan) { return 2 * tree.nv + plan.force_elements.nz; }

/// Take a step of length h from the row x (q, v, z, sampled values), a state on the loops, and propagate changes of the state (tangent_size) and of
/// parameters. `closes`: 1 if stages are projected onto the loops. With h = 0, only project the state. Returns the status; `x` becomes the final
/// state.
template <class P, class R>
SARRUS_NOINLINE P step_with_rates(const Tree& tree, Arena& arena, const Plan& plan, const P* parameter, double time, double h,
                                  const P& closes, P* x, R* change, const R* parameter_change, Onto onto, R* start = nullptr) {
  using T = Dual<P, R>;
  const Arena::Scope scope(arena);
  const int nq = tree.nq, nv = tree.nv, nz = plan.force_elements.nz, size = nq + nv + nz;
  T *row = arena.take<T>(size + plan.force_elements.held_size), *numbers = arena.take<T>(plan.force_elements.parameters);
  T *u = arena.take<T>(nv), *displaced = arena.take<T>(nq);
  System<T> s{tree, arena, plan, numbers};
  // scale directions to 1 rad or one length of the mechanism, and scale the
  // results back; directions with very different norms would lose precision
  P length[directions_of<R>];
  for (int d = 0; d < directions_of<R>; ++d) {
    length[d] = P(0.0);
    const auto see = [&](int k, const T& unit) { length[d] = sarrus::most(length[d], P(abs(along(change[k], d)) / unit.value)); };
    for (int k = 0; k < 2 * nv; ++k) see(k, s.unit(plan.velocity_unit, k % nv));
    for (int k = 0; k < nz; ++k) see(2 * nv + k, s.unit(plan.z_unit, k));
    length[d] = select(length[d] > P(0.0), length[d], P(1.0));
  }
  const auto shorter = [&](R direction) {
    for (int d = 0; d < directions_of<R>; ++d) along(direction, d) /= length[d];
    return direction;
  };
  const auto as_long = [&](R direction) {
    for (int d = 0; d < directions_of<R>; ++d) along(direction, d) *= length[d];
    return direction;
  };

  for (int k = 0; k < size + plan.force_elements.held_size; ++k) row[k] = {x[k], R(0.0)};
  for (int k = 0; k < nv; ++k) u[k] = {P(0.0), shorter(change[k])};
  integrate(tree, row, u, displaced);
  for (int k = 0; k < nq; ++k) row[k].rate = displaced[k].rate;
  for (int k = 0; k < nv + nz; ++k) row[nq + k].rate = shorter(change[nv + k]);
  for (int k = 0; k < plan.force_elements.parameters; ++k) numbers[k] = {parameter[k], shorter(parameter_change[k])};

  s.held_values = row + size, s.since = T(time), s.closes = T(closes, R(0.0));
  const auto state = SimulationState<T>::of(tree, row);
  const auto tell = [&](R* to) {
    rates_of_displacement(tree, arena, row, u);
    for (int k = 0; k < nv; ++k) to[k] = as_long(u[k].rate);
    for (int k = 0; k < nv + nz; ++k) to[nv + k] = as_long(row[nq + k].rate);
  };
  vary_held_efforts(plan, static_cast<const T*>(numbers), row + size);
  if (onto != Onto::none) project(s, T(time), state.q, state.v, nullptr, onto == Onto::loops);
  if (start) tell(start);
  const double end = time + h;
  for (double from = time, to = end; h != 0.0; from = to) {  // samples divide the step, as in advance()
    const double due = s.samples() ? next_sample(plan.force_elements, s.held_values) : end;
    to = due < end - one_instant(plan.force_elements) ? due : end;
    step_once(s, T(from), T(from != time || to != end ? to - from : h), state);
    s.count_turns(T(to), row);
    if (s.samples()) s.sample(to, row);
    if (to == end) break;
  }
  tell(change);
  for (int k = 0; k < size; ++k) x[k] = row[k].value;
  return s.status.value;
}

}  // namespace sarrus
