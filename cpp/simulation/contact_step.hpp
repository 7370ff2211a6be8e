// A step with rigid contacts, end stops and dry friction of joints: half a drift, one kick, half a drift.
//
//   q_m = q + h/2 v,   v* = v in the axes of q_m                                                             (glide.hpp)
//   A (v' - v*) = h (tau - g - c(u)) + J^T lambda + J_c^T p,   u = (v* + v')/2,   A = M + theta h D + theta^2 h^2 K
//   J v' = c + h/2 (c-dot - J-dot v*)
//   contacts: v_c + mu |v_ct| n in K*, perpendicular to p in K_mu, of v_c = J_c v' + beta + b n;   stops: p >= 0;   dry friction: |p| <= h f
//   q' = closed(q_m + h/2 v'),   v' onto J(q') v' = c
//
// All lines except the first and the last are evaluated at q_m, the middle of the step, with one factor. The reported forces and points of contacts
// also refer to q_m. The step is of second order if nothing hits, and symmetric except for D. It is a drift-kick-drift splitting (Hairer, Lubich and
// Wanner 2006, II.5) with Moreau's impulses (Acary and Brogliato 2008, ch. 10).
//
// - Bias. c(u) is the bias at the mean velocity, which conserves the energy and |I w| of freely rotating bodies (the midpoint rule), without the
//   transport terms that glide() integrates exactly. MidpointBias iterates; it uses the impulses of the last step as p.
// - Loops. The third line makes J v' = c hold to second order at the end of the step instead of at its middle. The kick then reflects the
//   velocity component that violates the loops. A projection onto J(q_m) v' = c would instead remove the fraction (h w)^2 / 2 of the velocities
//   in every step.
// - Moving contacts. Likewise beta = h/2 J_c-dot v* shifts the cone conditions to the end of the step, for points that touch and move along the
//   surface. J_c is the Jacobian of the contact point, which moves along both shapes as their normal rotates.
// - Gaps and bounces. A contact at distance d has b = d / h, so that the two surfaces may touch at the end of the step, but not penetrate. A
//   penetrating contact separates, at most at the speed of a body that falls from that depth. A hit bounces: u_n' >= -e u_n (Newton), or by a
//   second impulse of expansion in the same step (Poisson: contact/poisson.hpp). Restitution is reduced if it would add energy
//   (contact/restitution.hpp). Hits slower than three times the speed that gravity adds in a step do not bounce, so that a bouncing ball comes to
//   rest.
// - Hits. If the impulses differ much from those of the last step, the predicted u is wrong. Then the bias is the mean of the biases before and
//   after the kick, (c(v*) + c(v'))/2, and the cone problem is solved a second time.
// - Implicit terms. D and K of dampers, springs and controllers along joints are implicit (implicit_rates.hpp), and so are those between
//   bodies (soft_rows.hpp). Other forces are evaluated at q_m and v*.
//
// Attempts. A step is applied only if its cone problem is solved. The attempts are made in this order, until one succeeds:
//   1. Rows for the contacts that may close in this step (rows of distant corners would enlarge the problem, but not its rank). Contacts without a
//      row that would penetrate in the solution get rows, and the step is solved again. So the choice of rows affects only the cost.
//   2. Two half steps, each halved once more if its cones are not solved.
//   3. Attempts 1 and 2, without the part of velocities and small gaps that no impulse can change (GapTreatment::unreachable_as_zero).
//   4. Attempts 1 and 2, with all small gaps treated as zero (GapTreatment::zero).
//   5. Otherwise the step fails with a status (no_convergence, or exhausted or interrupted if the solver reached its limit).
#pragma once

#include "../contact/cone_residuals.hpp"
#include "implicit_rates.hpp"
#include "midpoint_bias.hpp"
#include "soft_rows.hpp"
#include "step_rows.hpp"

namespace sarrus {

namespace contact_steps {
/// Largest number of halvings of a step whose cones are not solved.
constexpr int halvings = 2;
/// A hit: in the energy norm, the velocity differs from the prediction with the last step's impulses by more than this fraction of the velocities.
constexpr double hit_ratio = 0.1;
/// Largest residual of J v = c, relative to the velocities, that is accepted after corrections with the factor of the step's middle. Above it, the
/// matrix is factorised at the step's end.
constexpr double slips = 1e-13;
}  // namespace contact_steps

/// Treatment of small gaps: the actual distance; only the part that impulses can close; or zero. See the attempts above.
enum class GapTreatment { actual, unreachable_as_zero, zero };

/// Result of a step: cones not solved; solved with zero impulses; or solved with impulses.
enum class StepOutcome { failed, free, pushed };

/// Return true if forces that may depend on velocities are evaluated at v*, which reduces the step to first order.
inline bool acts_on_velocities(const System<double>& s) {
  bool acts = s.plan.controller;
  for (int i = 0; i < s.tree.loop_motions; ++i) acts |= s.tree.loop_motion[i].has_armature;
  s.plan.force_elements.each([&](const auto& element) {
    using Element = std::decay_t<decltype(element)>;
    acts |= !(Element::has_linear_rates || std::is_same_v<Element, RigidContact> || std::is_same_v<Element, CollisionContacts> ||
              std::is_same_v<Element, EndStop>);
  });
  return acts;
}

class ContactStep {
 public:
  ContactStep(System<double>& s, double time, double h, const SimulationState<double>& x, GapTreatment gaps, SolverLimit& limit)
      : s_(s), tree_(s.tree), arena_(s.arena), x_(x), limit_(limit), time_(time), h_(h), nv_(s.tree.nv), gaps_(gaps) {}

  /// Take the step. If the cones are not solved, the state does not change.
  StepOutcome take() {
    const Arena::Scope scope(arena_);
    const int size = s_.integrated();
    double* before = doubles(size);
    std::copy(x_.q, x_.q + size, before);
    impulse_ = doubles(nv_ + tree_.loops.rows);
    drift();
    const bool solved = kick();
    if (!solved) std::copy(before, before + size, x_.q);
    return !solved ? StepOutcome::failed : pushed_ ? StepOutcome::pushed : StepOutcome::free;
  }

 private:
  double* doubles(int n) { return arena_.take<double>(static_cast<std::size_t>(n)); }

  double middle() const { return time_ + 0.5 * h_; }
  double end() const { return time_ + h_; }

  /// Move by half a step at the current velocities.
  void drift() {
    double *u = doubles(nv_), *q = doubles(tree_.nq);
    for (int k = 0; k < nv_; ++k) u[k] = 0.5 * h_ * x_.v[k];
    glide<double>(tree_, x_.q, u, q, x_.v);
    std::copy(q, q + tree_.nq, x_.q);
  }

  /// Close the loops at the end of the step, in position and velocity. The factor of the middle is used as long as corrections converge.
  void close(const LoopEquation<double>& e, const Factor<double>& factor) {
    if (!s_.projects()) return;
    const Arena::Scope scope(arena_);
    const double now = end();
    const double* pfaffian_values = s_.pfaffian_values(x_.q, x_.v);
    LeastMotion<double> at_the_middle(tree_, arena_, e, factor);
    LoopRows<double> rows(s_, now, pfaffian_values);
    Corrections<double> corrections{s_, now, pfaffian_values, nullptr, &at_the_middle};
    const double open = close_positions(rows, corrections, rows.evaluate(x_.q, rows.phi), x_.q);
    close_velocities(rows, corrections, x_.q, x_.v);
    const double fine = square(contact_steps::slips) * (1.0 + s_.squares_of_velocities(x_.v));
    for (const bool renews : {false, true}) {
      if (!(rows.squares(rows.slip) > fine)) break;
      if (renews) corrections.discard_factor();
      rows.evaluate(x_.q, rows.phi);
      close_velocities(rows, corrections, x_.q, x_.v);
    }
    if (open > square(tolerances::torn)) s_.status = std::max(s_.status, double(no_convergence));
    left_.positions = std::sqrt(open);
    for (int r = 0; r < rows.size(); ++r) left_.kinematics = std::max(left_.kinematics, std::abs(rows.slip[r]));
  }

  /// Compute the generalised force at the middle, without joint forces and contacts, and the rates of the elements' internal states.
  double* forces(double* z_dot) {
    const int nz = s_.plan.force_elements.nz;
    double* tau = doubles(nv_);
    s_.rigid = true;
    s_.stiffness = doubles(nv_ + tree_.loop_nv), s_.damping = doubles(nv_ + tree_.loop_nv);
    if (const int n = s_.plan.force_elements.soft_rows()) s_.rows = &(soft_ = {doubles(n * nv_), doubles(n), doubles(n)});
    s_.forces(middle(), x_.q, x_.v, x_.z, tau, z_dot);
    flows_ = std::any_of(z_dot, z_dot + nz, [](double rate) { return rate != 0.0; });
    if (flows_) {
      double* z = doubles(nz);
      for (int k = 0; k < nz; ++k) z[k] = x_.z[k] + 0.5 * h_ * z_dot[k];
      s_.forces(middle(), x_.q, x_.v, z, tau, z_dot);
    }
    s_.rigid = false, s_.rows = nullptr;
    return tau;
  }

  /// Apply the kick and the second drift. Returns false if the cones were not solved.
  bool kick() {
    const Loops& loops = tree_.loops;
    // if redundant rows are consistent only on closed loops (redundancy.hpp), the loops must be closed at the middle
    if (s_.projects() && s_.closes > 0.5) project(s_, middle(), x_.q, x_.v, nullptr, false);
    const double* v = x_.v;
    double* z_dot = doubles(s_.plan.force_elements.nz);
    double* tau = forces(z_dot);
    add_joint_forces<double>(tree_, x_.q, v, -1.0, tau);
    // if the mechanism is a tree, A is its mass matrix with this additional armature
    Tree tree = tree_;
    tree.has_joint_forces = false;
    const double now = middle();
    const LinearRates rates = linear_rates(s_, now, x_.q, v);
    double* more = rates.any ? implicit_armature(tree, rates, tau) : nullptr;
    LoopInput<double> in{x_.q, v, tau};
    in.time = &now, in.pfaffian_values = s_.pfaffian_values(x_.q, v);
    LoopEquation<double> e = loop_equation<double>(tree, arena_, in);
    double *uniform = doubles(nv_), *turn = doubles(loops.rows);
    const bool turns = uniform_motion<double>(tree_, v, uniform);
    std::copy_n(e.b + nv_, loops.rows, turn);  // c-dot - J-dot v
    MidpointBias bias(tree_, arena_, x_.q, v, h_);
    for (int k = 0; k < nv_; ++k) bias.force[k] = tau[k] - e.b[k];
    if (turns) {
      take_uniform(e, uniform, more, bias.force, turn);
      for (int k = 0; k < nv_; ++k) e.b[k] = tau[k] - bias.force[k];
    }
    for (int k = 0; k < nv_; ++k) e.b[k] *= h_;
    std::fill(e.b + nv_, e.b + nv_ + loops.rows, 0.0);
    if (loops.pfaffian_values == 0 && !rows_do_work(tree_))  // in this case c is zero
      add_motion_along_rows(tree, e.matrix.J, v, -1.0, e.b + nv_);
    else
      missing_velocity<double>(tree, arena_, e, x_.q, v, &now, in.pfaffian_values, e.b + nv_);
    for (int r = 0; r < loops.rows; ++r) e.b[nv_ + r] += 0.5 * h_ * turn[r];

    const Factor<double> factor = factorise_tightly(e, arena_);
    AllJoints<double> joints = {x_.q, v, nullptr, nv_};
    if (rates.any_closing || s_.plan.frictions > 0 || s_.plan.drives_loop_joints) joints = s_.joints(now, x_.q, v);
    SoftRows soft(s_, h_, joints, x_.q, v, rates, soft_);
    if (!soft.join(e, factor)) return false;
    StepRows rows(s_, joints, h_, x_);
    if (s_.status == caller_failed) return false;
    const double share =
        rates.any || !soft.empty() ? contact_steps::iteration_tolerance_with_rates : contact_steps::iteration_tolerance;
    if (!bias.find(e, factor, soft, rows.guessed(doubles(nv_)), share)) return false;
    double *v_free = doubles(nv_), *v_end = doubles(nv_);
    move_freely(e, factor, soft, v_free);
    std::copy(v_free, v_free + nv_, v_end);
    const double fastest = rows.note_nearing(v_free);
    if (!solve_all_contacts(rows, e, factor, soft, v_free, v_end, fastest)) return false;
    if (bias.missed(e, v_end, contact_steps::hit_ratio))
      solve_contacts_again(rows, bias, e, factor, soft, v_free, v_end, fastest);
    for (int k = 0; flows_ && k < s_.plan.force_elements.nz; ++k) x_.z[k] += h_ * z_dot[k];
    if (s_.acting) add_work(e.matrix.J, soft, v_end);
    std::copy(v_end, v_end + nv_, x_.v);
    drift();
    close(e, factor);
    note(rows);
    return true;
  }

  /// Add theta h D + theta^2 h^2 K (nv) to the tree's armature. Subtract from the force the contribution of K that the armature does not cover.
  double* implicit_armature(Tree& tree, const LinearRates& rates, double* tau) {
    double* more = doubles(nv_);
    if (s_.acting) late_ = doubles(nv_);
    const double* inertia = carried_inertia(tree_, arena_);
    PassiveTerms* terms = arena_.take<PassiveTerms>(nv_);
    std::copy(tree_.passive, tree_.passive + nv_, terms);
    for (int k = 0; k < nv_; ++k) {
      const double damped = h_ * rates.damping[k], theta = implicit_share(inertia[k] > 0.0 ? damped / inertia[k] : HUGE_VAL);
      more[k] = theta * damped + square(theta * h_) * rates.stiffness[k];
      terms[k].armature += more[k], tree.has_armature |= more[k] != 0.0;
      tau[k] -= h_ * (theta - 0.5) * rates.stiffness[k] * x_.v[k];
      if (!s_.acting) continue;
      // without the tree's springs: they store energy, so their work is not counted
      const double stiffness_of_elements = rates.stiffness_of_elements[k];
      late_[k] = theta * damped + square(theta * h_) * stiffness_of_elements;
      s_.acting[k] -= h_ * (theta - 0.5) * stiffness_of_elements * x_.v[k];
    }
    tree.passive = terms;
    return more;
  }

  /// Add the forces that uniform motion requires to a bias force, and subtract the rates of rows in that motion from the rates of the rows.
  void take_uniform(const LoopEquation<double>& e, const double* uniform, const double* more, double* force, double* turn) {
    if (e.pieces) {
      bias_forces(tree_, arena_, x_.q, x_.v, force);
    } else {
      const double* M = e.matrix.M;
      for (int i = 0; i < nv_; ++i) {
        const int entries = e.matrix.entries(i);
        force[i] += (*M++ - (more ? more[i] : 0.0)) * uniform[i];
        for (int k = 1, j = tree_.column_parent[i]; k < entries; ++k, ++M, j = tree_.column_parent[j])
          force[i] += *M * uniform[j], force[j] += *M * uniform[i];
      }
    }
    add_motion_along_rows(tree_, e.matrix.J, uniform, -1.0, turn);
  }

  /// Add the work of the kick that ends at v_end: impulses times mean velocities.
  void add_work(const double* J, const SoftRows& soft, const double* v_end) {
    double *impulse = doubles(nv_), *passed = doubles(nv_), *mean = doubles(nv_), dissipated = 0.0;
    for (int k = 0; k < nv_; ++k) {
      impulse[k] = h_ * s_.acting[k] - (late_ ? late_[k] * (v_end[k] - x_.v[k]) : 0.0);
      passed[k] = h_ * x_.v[k], mean[k] = 0.5 * (x_.v[k] + v_end[k]),
      dissipated += tree_.passive[k].damping * passed[k] * mean[k] +
                    h_ * nonlinear_damper(tree_.passive[k].nonlinear, tree_.numbers<double>(), x_.v[k]) * mean[k];
    }
    soft.add_late(x_.v, v_end, impulse);
    if (s_.drives) s_.add_drives(J, impulse_ + nv_, impulse);
    s_.work.supplied += scalar_product(impulse, mean, nv_) - dissipated - soft.damped(passed, mean);
    s_.work.pushed += scalar_product(impulse_, mean, nv_);
  }

  /// Compute the velocities after a kick without contact impulses.
  void move_freely(const LoopEquation<double>& e, const Factor<double>& factor, const SoftRows& soft, double* v_free) {
    const LoopSolution<double> free = solve_tightly(e, arena_, e.b, factor);
    s_.flag_contradiction(free.error);
    left_.momentum = free.error, free_ = free.x;
    std::fill(impulse_, impulse_ + nv_, 0.0), std::copy_n(free.x + nv_, tree_.loops.rows, impulse_ + nv_);
    std::copy(free.x, free.x + nv_, v_free), soft.soften(v_free, impulse_ + nv_);
    for (int k = 0; k < nv_; ++k) v_free[k] += x_.v[k];
  }

  /// Solve the kick with rows for all contacts that would otherwise penetrate.
  bool solve_all_contacts(StepRows& rows, const LoopEquation<double>& e, const Factor<double>& factor, const SoftRows& soft,
                          const double* v_free, double* v_end, double fastest) {
    do {
      if (!solve_contacts(rows, e, factor, soft, v_free, v_end)) return false;
    } while (rows.note_missed(v_end, fastest));
    return true;
  }

  /// If a contact hits in this step, solve the kick again, with the mean of the bias forces at the velocities before and after the kick. If the
  /// cones are not solved this time, the first solution is used.
  void solve_contacts_again(StepRows& rows, MidpointBias& bias, LoopEquation<double>& e, const Factor<double>& factor,
                            const SoftRows& soft, double* v_free, double* v_end, double fastest) {
    const Arena::Scope scope(arena_);
    const int nz = s_.plan.force_elements.nz;
    const int size = nv_ + tree_.loops.rows;
    double *first = doubles(nv_), *reported = doubles(nz), *impulse = doubles(size);
    std::copy(v_end, v_end + nv_, first), std::copy(x_.z, x_.z + nz, reported), std::copy_n(impulse_, size, impulse);
    bias.take_ends(e, v_end);
    move_freely(e, factor, soft, v_free);
    std::copy(v_free, v_free + nv_, v_end);
    if (solve_all_contacts(rows, e, factor, soft, v_free, v_end, fastest)) return;
    std::copy(first, first + nv_, v_end), std::copy(reported, reported + nz, x_.z), std::copy_n(impulse, size, impulse_);
  }

  /// Active rows: those of contacts, of their moments, then rows whose impulse is in an interval. The matrix G of these rows is computed later.
  struct Packed {
    ConeProblem problem;
    double *J, *w, *p, *shift;
    double* expands;  // (contacts) coefficient e by Poisson's law, or 0
    double* rebound;  // (contacts) e u_n by Newton's law, or 0; it is included in `shift`
  };
  Packed pack(StepRows& rows, const double* v_free) {
    int n = 0, contacts = 0, moments = 0;
    for (const StepRow& row : rows) {
      if (!row.acts) continue;
      n += row.rows(), contacts += row.contact;
      row.each_moment([&](int, int count, double) { n += count, ++moments; });
    }
    double *friction = doubles(contacts), *low = doubles(n), *high = doubles(n);
    MomentFriction* moment = arena_.take<MomentFriction>(moments);
    Packed all = {{0, 0, nullptr, nullptr, friction, low, high, nullptr, 0, moment},
                  doubles(n * nv_),
                  doubles(n),
                  doubles(n),
                  doubles(n),
                  doubles(contacts),
                  doubles(contacts)};
    ConeProblem& problem = all.problem;
    problem.w = all.w;
    const auto add = [&](const double* J, int count, const double* guess, double shift,
                         const Vec3<double>& bend = zero3<double>()) {
      int& at = problem.rows;
      std::copy_n(J, count * nv_, all.J + at * nv_), std::copy_n(guess, count, all.p + at);
      for (int r = 0; r < count; ++r, ++at) {
        all.shift[at] = (r == 0 ? shift : 0.0) + bend(r);
        all.w[at] = scalar_product(J + r * nv_, v_free, nv_) + all.shift[at];
      }
    };
    for (const StepRow& row : rows) {
      if (!row.acts || !row.contact) continue;
      add(row.J, 3, row.guess, row.shift, row.bend);
      all.expands[problem.contacts] = row.expands,
      all.rebound[problem.contacts] = row.bounces && row.expands == 0.0 ? row.shift : 0.0;
      friction[problem.contacts++] = row.friction;
    }
    int contact = 0, end = 0;
    for (const StepRow& row : rows) {
      if (!row.acts || !row.contact) continue;
      row.each_moment([&](int first, int count, double mu) {
        moment[problem.moments++] = {contact, count, mu};
        add(row.turning + first * nv_, count, row.guessed_moment + first, 0.0);
      });
      ++contact;
    }
    for (const StepRow& row : rows)
      if (row.acts && !row.contact) add(row.J, 1, row.guess, row.shift), low[end] = row.low, high[end++] = row.high;
    return all;
  }

  /// Express the rows of all contact points of two bodies by the six rows of their relative motion, if the bodies touch at many points.
  CombinedRows combine(StepRows& rows, const ConeProblem& problem, const double* J) {
    constexpr int width = CombinedRows::width;
    const int n = problem.rows;
    CombinedRows all = {n, 0, doubles(n * nv_), arena_.take<int>(n), doubles(n * width)};
    std::fill_n(all.share, n * width, 0.0);
    const auto touches = [](const StepRow& row) { return row.acts && row.contact; };
    const auto turning = [](const StepRow& row) { return (row.torsional > 0.0 ? 1 : 0) + (row.rolling > 0.0 ? 2 : 0); };
    const auto add_single = [&](int at) {
      std::copy_n(J + at * nv_, nv_, all.J + all.fewer * nv_);
      all.share[at * width] = 1.0, all.first[at] = all.fewer++;
    };
    const auto share = [&](int at, int first, const Vec3<double>& angular, const Vec3<double>& linear) {
      all.first[at] = first;
      for (int k = 0; k < 3; ++k) all.share[at * width + k] = angular(k), all.share[at * width + 3 + k] = linear(k);
    };
    int at = 0, moment = 3 * problem.contacts;
    for (StepRow& row : rows) row.combined = -1;
    for (StepRow& row : rows) {
      if (!touches(row)) continue;
      const auto same = [&](const StepRow& other) {
        return touches(other) && other.first == row.first && other.second == row.second;
      };
      if (row.combined < 0) {
        int together = 0;
        for (const StepRow& other : rows) together += same(other) ? 3 + turning(other) : 0;
        if (together > 6) {
          double* motion = all.J + all.fewer * nv_;
          std::fill_n(motion, 6 * nv_, 0.0), rows.add_relative_motion(row, row.position, motion);
          for (StepRow& other : rows)
            if (same(other)) other.combined = all.fewer, other.about = row.position;
          all.fewer += 6;
        }
      }
      const Vec3<double> arm = row.position - row.about;
      for (int r = 0; r < 3; ++r, ++at) {
        const Vec3<double> axis = row.axes.row(r);
        row.combined < 0 ? add_single(at) : share(at, row.combined, cross(arm, axis), axis);
      }
      row.each_moment([&](int first, int count, double) {
        for (int r = first; r < first + count; ++r, ++moment)
          row.combined < 0 ? add_single(moment) : share(moment, row.combined, row.axes.row(r), zero3<double>());
      });
    }
    for (int i = problem.first_interval(); i < n; ++i) add_single(i);
    return all;
  }

  /// Compute impulses of the active rows within their cones, and the velocities after them. Returns true if the cone problem was solved.
  bool solve_contacts(StepRows& rows, const LoopEquation<double>& e, const Factor<double>& factor, const SoftRows& soft,
                      const double* v_free, double* v_end) {
    const Arena::Scope scope(arena_);
    const ForceElements& elements = s_.plan.force_elements;
    for (const RigidContact& c : elements.all<RigidContact>()) std::fill_n(x_.z + c.iz, c.states(), 0.0);
    for (const CollisionContacts& c : elements.all<CollisionContacts>()) std::fill_n(x_.z + c.iz, c.states(), 0.0);
    for (const EndStop& stop : elements.all<EndStop>()) std::fill_n(x_.z + stop.iz, stop.states(), 0.0);
    auto [problem, J, w, p, shift, expands, rebound] = pack(rows, v_free);
    const int n = problem.rows, contacts = problem.contacts;
    if (n == 0) return true;
    double *G = doubles(n * n), *least = doubles(n);
    problem.G = G;
    const CombinedRows combined = combine(rows, problem, J);
    const RowMotions motions = inverse_along_combined(e, factor, arena_, combined, J, G);
    soft.soften(n, J, G);
    if (gaps_ != GapTreatment::actual) close_gaps(rows, n, G, w, shift);
    rest_on_loops(e, n, J, G, v_free, shift, w);
    ConeSolution solution = solve_parts(problem, arena_, p, least, limit_);
    if (!solution.reached) return false;
    const bool bounces = std::any_of(rebound, rebound + contacts, [](double speed) { return speed < 0.0; });
    const bool expanded = std::any_of(expands, expands + contacts, [](double e) { return e > 0.0; });
    double *q = doubles(n), *before = s_.record || bounces || expanded ? doubles(n) : nullptr;
    std::fill(q, q + n, 0.0);
    for (int i = 0; i < n && before; ++i) before[i] = scalar_product(J + i * nv_, x_.v, nv_);
    ConeProblem second = problem;
    if (bounces || expanded) {
      for (int i = 0; i < contacts; ++i) shift[3 * i] -= rebound[i];
      RestitutionLimit restitution(problem, {before, shift, rebound}, arena_, p, least, solution, limit_);
      if (bounces) restitution.newton(w);
      if (expanded && solution.reached) second = restitution.poisson(expands, q);
      for (int i = 0; i < contacts; ++i) shift[3 * i] += rebound[i];
      if (!solution.reached) return false;
    }
    if (s_.record) {
      double* compression = doubles(n);
      for (int i = 0; i < n; ++i) compression[i] = p[i] - q[i];
      left_.cones = cone_residuals(problem, compression, shift, before);
      for (int i = 0; i < n; ++i) before[i] = second.w[i] - shift[i];
      if (expanded) left_.cones.add(cone_residuals(second, q, shift, before));
    }
    left_.natural_map = solution.natural_map;
    // impulses below this limit are rounding errors of the solver: they must not count as contact, which would reduce the step's order. Square roots
    // of energies are compared, because these have the same unit for forces and for moments
    double fastest = 0.0;
    for (int i = 0; i < n; ++i)
      if (const double mobility = G[i * n + i]; mobility > 0.0) fastest = std::max(fastest, std::abs(w[i]) / std::sqrt(mobility));
    for (int i = 0; i < n; ++i) pushed_ |= std::abs(p[i]) * std::sqrt(G[i * n + i]) > 10.0 * cones::reached * fastest;
    const double* x =
        solve_pushed(e, factor, arena_, n, J, p, free_, combined.forces(p, doubles(combined.fewer)), motions, &left_.momentum);
    std::fill(impulse_, impulse_ + nv_, 0.0), std::copy_n(x + nv_, tree_.loops.rows, impulse_ + nv_);
    std::copy(x, x + nv_, v_end), soft.soften(v_end, impulse_ + nv_);
    for (int c = 0; c < nv_; ++c) v_end[c] += x_.v[c];
    for (int i = 0; i < n; ++i) subtract_scaled(impulse_, J + i * nv_, -p[i], nv_);
    report_contacts(rows, least, least + 3 * contacts, solution.natural_map);
    report_stops(rows, least + problem.first_interval());
    return true;
  }

  /// Treat small gaps as zero (attempts 3 and 4). The reason: if there are more contact points than degrees of freedom, even gaps of nanometres may
  /// require velocities that no motion has, or that need a huge impulse. Such gaps would then determine how forces are distributed, and these forces
  /// may be arbitrarily large. Attempt 4 sets gaps smaller than the limit for rows to zero. Attempt 3 changes w instead, to the part that impulses of
  /// these contacts can produce: w <- G (G + c)^-1 w, with a small weight c on the impulses. This also removes parts that come from the bend of
  /// surfaces and from motion along loop rows. It is repeated, because the first impulses may be so large that their rounding errors matter.
  void close_gaps(StepRows& rows, int n, const double* G, double* w, double* shift) {
    const Arena::Scope scope(arena_);
    int *at = arena_.take<int>(n), count = 0, i = 0;
    double *limit = doubles(n), largest = 0.0;
    for (const StepRow& row : rows) {
      if (!row.acts || !row.contact) continue;
      for (int r = 0; r < 3 && !row.bounces && std::abs(row.distance) < row.near; ++r)
        limit[count] = row.near / h_, at[count++] = i + r;
      i += 3;
    }
    double *A = doubles(count * count), *softened = doubles(count * count), *impulse = doubles(count), *closed = doubles(count);
    for (int k = 0; k < count; ++k)
      for (int l = 0; l < count; ++l) A[k * count + l] = G[at[k] * n + at[l]];
    for (int k = 0; k < count; ++k) largest = std::max(largest, A[k * count + k]), closed[k] = w[at[k]];
    bool solved = gaps_ == GapTreatment::unreachable_as_zero && largest > 0.0;
    for (int pass = 0; pass < 2 && solved; ++pass) {
      std::copy(A, A + count * count, softened), std::copy(closed, closed + count, impulse);
      for (int k = 0; k < count; ++k) softened[k * count + k] += square(contact_steps::near) * largest;
      solved = solve_dense(count, softened, impulse);
      for (int k = 0; k < count; ++k) closed[k] = scalar_product(A + k * count, impulse, count);
    }
    for (int k = 0; k < count; ++k) solved &= std::abs(closed[k] - w[at[k]]) < limit[k];
    for (int k = 0; k < count; ++k) {
      const double change = solved ? closed[k] - w[at[k]] : at[k] % 3 == 0 ? -shift[at[k]] : 0.0;
      w[at[k]] += change, shift[at[k]] += change;
    }
  }

  /// Record the residuals of the step, if they exceed those of all earlier steps.
  void note(StepRows& rows) {
    if (!s_.record) return;
    double sunk = 0.0;
    for (const StepRow& row : rows) sunk = row.contact ? std::max(sunk, -row.distance) : sunk;
    const auto most = [](double* noted, double now) { *noted = std::max(*noted, now); };
    const Record<double>& record = *s_.record;
    most(record.kinematics, left_.kinematics), most(record.positions, left_.positions), most(record.penetration, sunk),
        most(record.momentum, left_.momentum);
    most(record.primal, left_.cones.primal), most(record.dual, left_.cones.dual);
    most(record.complementarity, left_.cones.complementarity), most(record.natural_map, left_.natural_map);
    most(record.work, left_.cones.work);
  }

  /// Write the states of contacts: mean forces from the impulses of least norm. `moment`: impulses of the moments, stored after the impulses of all
  /// contacts.
  void report_contacts(StepRows& rows, const double* impulse, const double* moment, double natural_map) {
    const auto& shapes = s_.plan.force_elements.all<CollisionContacts>();
    for (const CollisionContacts& all : shapes) x_.z[all.iz] = natural_map;
    for (const StepRow& row : rows) {
      if (!row.acts || !row.contact) continue;
      double turned[3] = {0.0, 0.0, 0.0};
      row.each_moment([&](int first, int count, double) { std::copy_n(moment, count, turned + first), moment += count; });
      if (row.element) {
        double* z = x_.z + row.element->iz;
        for (int r = 0; r < 3; ++r) z[r] = impulse[r] / h_;
        z[3] = natural_map;
        for (int r = 0; r < 3 && row.element->turns; ++r) z[RigidContact::numbers + r] = turned[r] / h_;
      } else if (impulse[0] > 0.0) {
        const CollisionContacts& all = *shapes.begin();
        double& count = x_.z[all.iz + 1];
        double* z = x_.z + all.iz + CollisionContacts::before_points + static_cast<int>(count) * all.numbers_per_point();
        if (count++ < all.kept) {
          const Vec3<double> force = transpose_times(row.axes, Vec3<double>(impulse)) / h_,
                             torque = transpose_times(row.axes, Vec3<double>(turned)) / h_;
          z[CollisionContacts::id] = static_cast<double>(row.point->id);
          for (int r = 0; r < 3; ++r)
            z[CollisionContacts::force + r] = force(r), z[CollisionContacts::position + r] = row.point->at.position(r);
          for (int r = 0; r < 3 && all.turns; ++r) z[CollisionContacts::moment + r] = torque(r);
        }
      }
      impulse += 3;
    }
  }

  /// Write the states of stops. `impulse`: impulses of the stops, stored after those of contacts and moments.
  void report_stops(StepRows& rows, const double* impulse) {
    for (const StepRow& row : rows) {
      if (!row.acts || row.contact) continue;
      if (row.stop) x_.z[row.stop->iz] += row.sign * *impulse / h_;
      ++impulse;
    }
  }

  System<double>& s_;
  const Tree& tree_;
  Arena& arena_;
  const SimulationState<double>& x_;
  SolverLimit& limit_;
  double time_, h_;
  int nv_;
  GapTreatment gaps_;
  bool pushed_ = false, flows_ = false;  // flows: internal states of elements change
  SoftForces soft_;  // stiffness and damping of force elements between bodies, at the middle of the step
  // (nv + rows) generalised impulse of contacts, stops and dry friction (nv), then multipliers of loops (rows), which have the sign of the saddle
  // equation's solutions
  double* impulse_ = nullptr;
  const double* free_ = nullptr;  // (nv + rows) solution of the kick without contact impulses, before soft rows
  // (nv) derivative of the impulse of implicit terms with respect to the change of velocity, without the tree's springs; null: not required
  double* late_ = nullptr;
  struct {
    double positions = 0.0, kinematics = 0.0, momentum = 0.0, natural_map = 0.0;
    ConeResiduals cones;
  } left_;
};

/// Extrapolate, to second order, from one full step and two half steps: add to the end of the half steps its difference from the end of the full step
/// (Deuflhard, Hairer and Zugck 1987).
inline void extrapolate(System<double>& s, double end, const double* full_step, const SimulationState<double>& x) {
  const Arena::Scope scope(s.arena);
  const int nq = s.tree.nq, nv = s.tree.nv;
  double *u = s.arena.take<double>(nv), *q = s.arena.take<double>(nq);
  difference(s.tree, full_step, x.q, u);
  integrate(s.tree, x.q, u, q);
  std::copy(q, q + nq, x.q);
  for (int k = nq; k < s.integrated(); ++k) x.q[k] += x.q[k] - full_step[k];  // v and z follow q in memory
  if (s.projects()) close_step(s, end, x);
}

/// Take the step or, if its cone problem is not solved, its two halves. Returns false if the halves are not solved either. If forces that are
/// evaluated at v* reduce the step to first order and no contact acts, the step is extrapolated to second order.
inline bool halved_step(System<double>& s, double time, double h, const SimulationState<double>& x, GapTreatment gaps,
                        SolverLimit& limit, int halvings = contact_steps::halvings) {
  const Arena::Scope scope(s.arena);
  const int size = s.integrated();
  double *before = s.arena.take<double>(size), *full_step = s.arena.take<double>(size);
  std::copy(x.q, x.q + size, before);
  const Work<double> done = s.work;
  const StepOutcome outcome = ContactStep(s, time, h, x, gaps, limit).take();
  if (outcome == StepOutcome::pushed || s.status != 0.0) return true;
  if (outcome == StepOutcome::free) {
    if (!acts_on_velocities(s)) return true;
    std::copy(x.q, x.q + size, full_step), std::copy(before, before + size, x.q);
    const Work<double> work = std::exchange(s.work, done);
    for (const double begin : {time, time + 0.5 * h})
      if (ContactStep(s, begin, 0.5 * h, x, gaps, limit).take() != StepOutcome::free)
        return std::copy(full_step, full_step + size, x.q), s.work = work, true;
    extrapolate(s, time + h, full_step, x);
    s.work.supplied += s.work.supplied - work.supplied;
    return true;
  }
  if (halvings == 0 || limit.over()) return false;
  for (const double begin : {time, time + 0.5 * h})
    if (s.status == 0.0 && !halved_step(s, begin, 0.5 * h, x, gaps, limit, halvings - 1))
      return std::copy(before, before + size, x.q), s.work = done, false;
  return true;
}

/// Take the step by the first successful attempt (see the list at the top). If none succeeds, set the status.
inline void contact_step(System<double>& s, double time, double h, const SimulationState<double>& x) {
  SolverLimit limit = {s.plan.stops, s.plan.self};
  for (const GapTreatment gaps : {GapTreatment::actual, GapTreatment::unreachable_as_zero, GapTreatment::zero}) {
    if (limit.over()) break;
    if (halved_step(s, time, h, x, gaps, limit)) {
      if (gaps != GapTreatment::actual && s.record) *s.record->as_touching += 1.0;
      return;
    }
  }
  s.status = limit.interrupted ? interrupted : limit.exhausted ? exhausted : no_convergence;
}

}  // namespace sarrus
