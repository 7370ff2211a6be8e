// The smooth part of a step with rigid contacts (contact_step.hpp): drifts, the equation of the kick with its factor, bias forces at the mean velocity,
// velocities without contact impulses, closed loops. For one state, or for several states in lanes (contact_lanes.hpp); lanes do not affect each other.
#pragma once

#include <optional>

#include "implicit_rates.hpp"
#include "midpoint_bias.hpp"
#include "uniform_links.hpp"

namespace sarrus {

namespace contact_steps {
/// Largest residual of J v = c, relative to the velocities, that is accepted after corrections with the factor of the step's middle. Above it, the
/// matrix is factorised at the step's end.
constexpr double slips = 1e-13;
}  // namespace contact_steps

template <class T> struct ContactKick {
  System<T>& s;
  const Tree& tree;
  Arena& arena;
  SimulationState<T> x;
  double time, h;
  int nv, rows;  // rows of the loops

  LinearRates<T> rates{};
  SoftForces soft{};  // stiffness and damping of force elements between bodies, at the middle of the step
  Tree kicked;  // tree of the equation
  T* z_dot = nullptr;  // rates of the elements' internal states
  bool flows = false;  // true if internal states change
  // (nv) derivative of the impulse of implicit terms with respect to the change of velocity, without the tree's springs; null: not required
  T* late = nullptr;
  std::optional<LoopEquation<T>> equation{};
  Factor<T> factor{};
  MidpointBias<T> bias;
  // (nv + rows) generalised impulse of contacts, stops and dry friction (nv), then multipliers of loops (rows), which have the sign of the saddle
  // equation's solutions
  T* impulse;
  const T* free = nullptr;  // (nv + rows) solution of the kick without contact impulses, before soft rows
  T *v_free, *v_end;  // (nv) velocities without contact impulses, and after the kick
  // remaining violation of the loops by positions and by velocities; relative residual of the equation
  T open = T(0.0), slip = T(0.0), residual = T(0.0);

  ContactKick(System<T>& system, double begin, double step, const SimulationState<T>& state)
      : s(system),
        tree(system.tree),
        arena(system.arena),
        x(state),
        time(begin),
        h(step),
        nv(system.tree.nv),
        rows(system.tree.loops.rows),
        kicked(system.tree),
        bias(tree, arena, x.q, x.v, h),
        impulse(take(nv + rows)),
        v_free(take(nv)),
        v_end(take(nv)) {}

  T* take(int n) const { return arena.template take<T>(static_cast<std::size_t>(n)); }
  double middle() const { return time + 0.5 * h; }
  double end() const { return time + h; }

  /// Move by half a step at the current velocities.
  void drift() {
    const Arena::Scope scope(arena);
    T *u = take(nv), *q = take(tree.nq);
    for (int k = 0; k < nv; ++k) u[k] = T(0.5 * h) * x.v[k];
    glide<T>(tree, x.q, u, q, x.v);
    std::copy(q, q + tree.nq, x.q);
  }

  /// Set the equation of the kick, with c(v*), and its factor.
  void set_up() {
    const Loops& loops = tree.loops;
    T* tau = forces();
    add_joint_forces<T>(tree, x.q, x.v, T(-1.0), tau);
    // A is the mass matrix with the additional armature `more`
    kicked.has_joint_forces = false;
    const T now = T(middle());
    rates = linear_rates<T>(s, middle(), x.q, x.v);
    const T* more = any(rates.any > T(0.5)) ? implicit_armature(tau) : nullptr;
    LoopInput<T> in{x.q, x.v, tau};
    in.time = &now, in.pfaffian_values = s.pfaffian_values(x.q, x.v);
    if (loops.substructures && more)
      add_armature(more);
    else
      in.armature = more;
    LoopEquation<T>& e = equation.emplace(loop_equation<T>(kicked, arena, in));
    T *uniform = take(nv), *turn = take(rows);
    const bool turns = uniform_motion<T>(tree, x.v, uniform);
    std::copy_n(e.b + nv, rows, turn);  // c-dot - J-dot v
    for (int k = 0; k < nv; ++k) bias.force[k] = tau[k] - e.b[k];
    if (turns) {
      take_uniform(e, uniform, more, turn);
      for (int k = 0; k < nv; ++k) e.b[k] = tau[k] - bias.force[k];
    }
    for (int k = 0; k < nv; ++k) e.b[k] *= T(h);
    std::fill(e.b + nv, e.b + nv + rows, T(0.0));
    if (loops.pfaffian_values == 0 && !rows_do_work(tree))  // in this case c is zero
      add_motion_along_rows(kicked, e.matrix.J, x.v, T(-1.0), e.b + nv);
    else
      missing_velocity<T>(kicked, arena, e, x.q, x.v, &now, in.pfaffian_values, e.b + nv);
    for (int r = 0; r < rows; ++r) e.b[nv + r] += T(0.5 * h) * turn[r];
    factor = factorise_tightly(e, arena);
  }

  /// Set the velocities without contact impulses.
  template <class Soften> void move_freely(Soften&& soften) {
    const LoopEquation<T>& e = *equation;
    const LoopSolution<T> solution = solve_tightly(e, arena, e.b, factor);
    s.flag_contradiction(solution.error);
    residual = solution.error, free = solution.x;
    std::fill(impulse, impulse + nv, T(0.0)), std::copy_n(free + nv, rows, impulse + nv);
    std::copy(free, free + nv, v_free), soften(v_free, impulse + nv);
    for (int k = 0; k < nv; ++k) v_free[k] += x.v[k];
  }

  /// Move to the end of the step with the velocities v_end. add_late(impulse) and damped(passed, mean): see SoftRows.
  template <class AddLate, class Damped> void finish(AddLate&& add_late, Damped&& damped) {
    for (int k = 0; flows && k < s.plan.force_elements.nz; ++k) x.z[k] += T(h) * z_dot[k];
    if (s.acting) add_work(add_late, damped);
    std::copy(v_end, v_end + nv, x.v);
    drift();
    close();
  }

 private:
  /// Compute the generalised force at the middle, without joint forces and contacts, and the rates of the elements' internal states.
  T* forces() {
    const int nz = s.plan.force_elements.nz;
    T* tau = take(nv);
    z_dot = take(nz);
    s.rigid = true;
    s.stiffness = take(nv + tree.loop_nv), s.damping = take(nv + tree.loop_nv);
    if (const int n = s.plan.force_elements.soft_rows()) {
      const auto doubles = [&](int count) { return arena.template take<double>(count); };
      s.rows = &(soft = {doubles(n * nv), doubles(n), doubles(n)});
    }
    s.forces(T(middle()), x.q, x.v, x.z, tau, z_dot);
    T most = T(0.0);
    for (int k = 0; k < nz; ++k) most = sarrus::most(most, abs(z_dot[k]));
    flows = any(most > T(0.0));
    if (flows) {
      T* z = take(nz);
      for (int k = 0; k < nz; ++k) z[k] = x.z[k] + T(0.5 * h) * z_dot[k];
      s.forces(T(middle()), x.q, x.v, z, tau, z_dot);
    }
    s.rigid = false, s.rows = nullptr;
    return tau;
  }

  /// Return theta h D + theta^2 h^2 K (nv). Subtract from the force the contribution of K that this armature does not cover.
  const T* implicit_armature(T* tau) {
    T* more = take(nv);
    if (s.acting) late = take(nv);
    const double* inertia = carried_inertia(tree, arena);
    for (int k = 0; k < nv; ++k) {
      const T damped = T(h) * rates.damping[k],
              theta = implicit_share(inertia[k] > 0.0 ? T(damped * T(1.0 / inertia[k])) : T(1e300));
      const T late_stiffness = square(theta * T(h)), early = T(h) * (theta - T(0.5));
      more[k] = theta * damped + late_stiffness * rates.stiffness[k];
      tau[k] -= early * rates.stiffness[k] * x.v[k];
      if (!s.acting) continue;
      // without the tree's springs: they store energy, so their work is not counted
      late[k] = theta * damped + late_stiffness * rates.stiffness_of_elements[k];
      s.acting[k] -= early * rates.stiffness_of_elements[k] * x.v[k];
    }
    return more;
  }
  /// Add to the armature of the equation's tree; only for one state.
  void add_armature([[maybe_unused]] const T* more) {
    if constexpr (std::is_same_v<T, double>) {
      PassiveTerms* terms = arena.template take<PassiveTerms>(nv);
      std::copy(tree.passive, tree.passive + nv, terms);
      for (int k = 0; k < nv; ++k) terms[k].armature += more[k], kicked.has_armature |= more[k] != 0.0;
      kicked.passive = terms;
    }
  }

  /// Add the forces that uniform motion requires to the bias force, and subtract the rates of rows in that motion from the rates of the rows.
  void take_uniform(const LoopEquation<T>& e, const T* uniform, const T* more, T* turn) {
    T* force = bias.force;
    if (e.pieces) {
      bias_forces(tree, arena, x.q, x.v, force);
    } else {
      const T* M = e.matrix.M;
      for (int i = 0; i < nv; ++i) {
        const int entries = e.matrix.entries(i);
        force[i] += (*M++ - (more ? more[i] : T(0.0))) * uniform[i];
        for (int k = 1, j = tree.column_parent[i]; k < entries; ++k, ++M, j = tree.column_parent[j])
          force[i] += *M * uniform[j], force[j] += *M * uniform[i];
      }
    }
    add_motion_along_rows(tree, e.matrix.J, uniform, T(-1.0), turn);
    for (int i = tree.loops.constraints; i < e.matrix.constraints; ++i) {  // armature of loop joints: see add_rotors()
      const Constraint& c = tree.loops.constraint[i];
      for (int k = 0; k < c.columns * c.rows; ++k)
        e.b[nv + c.row + k % c.rows] -= T(h) * e.matrix.J[c.entry + k] * uniform[c.column[k / c.rows]];
    }
  }

  /// Add the work of the kick that ends at v_end: impulses times mean velocities.
  template <class AddLate, class Damped> void add_work(AddLate&& add_late, Damped&& damped) {
    const Arena::Scope scope(arena);
    T *given = take(nv), *passed = take(nv), *mean = take(nv), dissipated = T(0.0);
    for (int k = 0; k < nv; ++k) {
      given[k] = T(h) * s.acting[k] - (late ? late[k] * (v_end[k] - x.v[k]) : T(0.0));
      passed[k] = T(h) * x.v[k], mean[k] = T(0.5) * (x.v[k] + v_end[k]);
      dissipated += T(tree.passive[k].damping) * passed[k] * mean[k];
      if (tree.has_nonlinear_forces)
        dissipated += T(h) * nonlinear_damper(tree.passive[k].nonlinear, tree.numbers<T>(), x.v[k]) * mean[k];
    }
    add_late(given);
    if (s.drives) s.add_drives(equation->matrix.J, impulse + nv, given);
    s.work.supplied += scalar_product(given, mean, nv) - dissipated - damped(passed, mean);
    s.work.pushed += scalar_product(impulse, mean, nv);
  }

  /// Close the loops at the end of the step, in position and velocity. The factor of the middle is used as long as corrections converge.
  void close() {
    if (!s.projects()) return;
    const Arena::Scope scope(arena);
    const T now = T(end());
    const T* pfaffian_values = s.pfaffian_values(x.q, x.v);
    LeastMotion<T> at_the_middle(tree, arena, *equation, factor);
    LoopRows<T> closing(s, now, pfaffian_values);
    Corrections<T> corrections{s, now, pfaffian_values, nullptr, &at_the_middle};
    const T squares = close_positions(closing, corrections, gaps(closing, now, pfaffian_values), x.q);
    close_velocities(closing, corrections, x.q, x.v);
    const T fine = T(square(contact_steps::slips)) * (T(1.0) + s.squares_of_velocities(x.v));
    slip = largest(closing.slip);
    for (const bool renews : {false, true}) {
      const auto slips = closing.squares(closing.slip) > fine;
      if (!any(slips)) break;
      if (renews) corrections.discard_factor(slips, !any(closing.squares(closing.slip) < fine));
      T* v = take(nv);
      std::copy(x.v, x.v + nv, v);
      closing.evaluate(x.q, closing.phi);
      close_velocities(closing, corrections, x.q, v);
      copy_where(slips, v, x.v, nv), slip = select(slips, largest(closing.slip), slip);
    }
    s.status = select(squares > T(square(tolerances::torn)), most(s.status, T(no_convergence)), s.status);
    open = sqrt(squares);
  }
  /// Compute the gaps of the loops, and their squared norm. J is computed only if no lane moves; otherwise close_positions() computes it.
  T gaps(LoopRows<T>& closing, const T& now, const T* pfaffian_values) {
    const Arena::Scope scope(arena);
    ConstraintRows<T> out;
    out.residual = closing.phi;
    constraint_rows(tree, arena, place(tree, arena, x.q, &now, pfaffian_values), out, 0, tree.loops.constraints);
    const T squares = closing.squares(closing.phi);
    return any(squares > T(square(tolerances::no_drift))) ? squares : closing.evaluate(x.q, closing.phi);
  }
  T largest(const T* entries) const {
    T size = T(0.0);
    for (int r = 0; r < rows; ++r) size = most(size, abs(entries[r]));
    return size;
  }
};

}  // namespace sarrus
