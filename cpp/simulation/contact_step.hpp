// A step with rigid contacts, end stops and dry friction of joints: half a drift, one kick, half a drift.
//
//   q_m = q + h/2 v,   v* = v in the axes of q_m                                                             (glide.hpp)
//   A (v' - v*) = h (tau - g - c(u)) + J^T lambda + J_c^T p,   u = (v* + v')/2,   A = M + theta h D + theta^2 h^2 K
//   J v' = c + h/2 (c-dot - J-dot v*)
//   contacts: v_c + mu |v_ct| n in K*, perpendicular to p in K_mu, of v_c = J_c v' + beta + b n;   stops: p >= 0;   dry friction: |p| <= h f
//   q' = closed(q_m + h/2 v'),   v' onto J(q') v' = c
//
// All lines except the first and the last are evaluated at q_m, the middle of the step, with one factor. The drifts, the second and the third line, and
// the closed loops are in contact_kick.hpp, also for several runs in lanes. The reported forces and points of contacts also refer to q_m. The step is of second order if nothing hits, and symmetric except for D. It is a drift-kick-drift splitting (Hairer, Lubich and
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
//   4. Attempts 1 and 2, with all small gaps treated as zero (GapTreatment::zero). Contacts that friction jams need not separate.
//   5. Otherwise the step fails with a status (no_convergence, or exhausted or interrupted if the solver reached its limit).
#pragma once

#include "../contact/cone_residuals.hpp"
#include "../simd/lanes.hpp"
#include "contact_kick.hpp"
#include "soft_rows.hpp"
#include "step_rows.hpp"

namespace sarrus {

namespace contact_steps {
/// Largest number of halvings of a step whose cones are not solved.
constexpr int halvings = 2;
/// A hit: in the energy norm, the velocity differs from the prediction with the last step's impulses by more than this fraction of the velocities.
constexpr double hit_ratio = 0.1;
/// Largest number of rows of a cone problem that is solved in lanes: the matrices of larger ones do not fit into the first cache.
constexpr int most_rows_in_lanes = 48;
}  // namespace contact_steps

/// Treatment of small gaps: the actual distance; only the part that impulses can close; or zero. See the attempts above.
enum class GapTreatment { actual, unreachable_as_zero, zero };

/// Result of a step: cones not solved; solved with zero impulses; or solved with impulses.
enum class StepOutcome { failed, free, pushed };

/// Return true if forces that may depend on velocities are evaluated at v*, which reduces the step to first order.
inline bool acts_on_velocities(const Tree& tree, const Plan& plan) {
  bool acts = plan.controller;
  for (int i = 0; i < tree.loop_motions; ++i) acts |= tree.loop_motion[i].has_armature;
  plan.force_elements.each([&](const auto& element) {
    using Element = std::decay_t<decltype(element)>;
    acts |= !(Element::has_linear_rates || std::is_same_v<Element, RigidContact> || std::is_same_v<Element, CollisionContacts> ||
              std::is_same_v<Element, EndStop>);
  });
  return acts;
}

class ContactStep {
 public:
  ContactStep(System<double>& s, double time, double h, const SimulationState<double>& x, GapTreatment gaps, SolverLimit& limit)
      : s_(s), tree_(s.tree), arena_(s.arena), x_(x), limit_(limit), h_(h), nv_(s.tree.nv), gaps_(gaps), kick_(s, time, h, x) {}

  /// Take the step. If the cones are not solved, the state does not change.
  StepOutcome take() {
    const Arena::Scope scope(arena_);
    const int size = s_.integrated();
    double* before = doubles(size);
    std::copy(x_.q, x_.q + size, before);
    const bool solved = attempt();
    if (!solved) std::copy(before, before + size, x_.q);
    return !solved ? StepOutcome::failed : outcome();
  }

  // The parts of a step. In lanes (contact_lanes.hpp), a step consists of those that concern contacts; the caller computes the kick of all lanes.
  ContactKick<double>& kick() { return kick_; }
  StepOutcome outcome() const { return pushed_ ? StepOutcome::pushed : StepOutcome::free; }
  /// Find the rows of the contacts at the middle of the step. `links`: kinematics of all links in uniform motion. Returns false if the step failed.
  bool find_rows(const Kinematics<double>& links) {
    AllJoints<double> joints = {x_.q, x_.v, nullptr, nv_};
    if (kick_.rates.any_closing || s_.plan.frictions > 0 || s_.plan.drives_loop_joints)
      joints = s_.joints(kick_.middle(), x_.q, x_.v);
    soft_.emplace(s_, h_, joints, x_.q, x_.v, kick_.rates, kick_.soft);
    rows_.emplace(s_, joints, h_, x_, links);
    return s_.status != caller_failed;
  }
  /// Return the estimated generalised impulse (nv) of all contacts.
  const double* pressed() { return rows_->guessed(doubles(nv_)); }
  /// Choose the rows that act. Returns the rows by which they are expressed; their number is 0 if no row acts.
  const CombinedRows& choose_rows() {
    std::copy(kick_.v_free, kick_.v_free + nv_, kick_.v_end);
    fastest_ = rows_->note_nearing(kick_.v_free);
    collect();
    return active_->combined;
  }
  /// Active rows: those of contacts, of their moments, then rows whose impulse is in an interval. G of these rows is computed later.
  struct Packed {
    ConeProblem problem;
    double *J, *w, *p, *shift;
    double* expands;  // (contacts) coefficient e by Poisson's law, or 0
    double* rebound;  // (contacts) e u_n by Newton's law, or 0; it is included in `shift`
    CombinedRows combined{};
    double *G = nullptr, *least = nullptr;
  };
  const Packed& chosen() const { return *active_; }
  /// Return true if the problem of these rows consists of contacts that neither bounce nor have moments.
  bool may_rest() const {
    const ConeProblem& problem = active_->problem;
    bool rests = problem.rows == 3 * problem.contacts && problem.rows <= contact_steps::most_rows_in_lanes;
    for (int i = 0; i < problem.contacts; ++i) rests &= active_->rebound[i] == 0.0 && active_->expands[i] == 0.0;
    return rests;
  }
  /// Use the solution p of this problem, which has the least norm.
  void accept(const double* p, double natural_map, bool pushes, const ConeResiduals& residuals) {
    const int n = active_->problem.rows;
    std::copy_n(p, n, active_->p), std::copy_n(p, n, active_->least);
    left_ = {natural_map, residuals}, pushed_ |= pushes;
  }
  /// Solve the cone problem of these rows, with G of the rows by which they are expressed. Returns the impulses along these, or null if the cones were
  /// not solved.
  const double* solve_chosen(double* fewer) {
    const CombinedRows& combined = active_->combined;
    lock_rows(*kick_.equation, combined.fewer, combined.J, fewer);
    if (combined.fewer == combined.count)
      std::copy_n(fewer, combined.count * combined.count, active_->G);
    else
      combine_inverse(*kick_.equation, arena_, combined, active_->J, fewer, active_->G);
    if (!solve_cones()) return nullptr;
    return combined.forces(active_->p, doubles(combined.fewer));
  }
  /// Compute the velocities after the kick. x: the solution with the impulses of solve_chosen(), or null if it is not known accurately. Returns false
  /// if the cones were not solved.
  bool complete(const double* x) {
    const CombinedRows& combined = active_->combined;
    if (combined.count > 0)
      push_by(x ? x
                : solve_pushed(*kick_.equation, kick_.factor, arena_, combined.count, active_->J, active_->p, &kick_.residual));
    if (rows_->note_missed(kick_.v_end, fastest_) && !solve_all_contacts()) return false;
    push_again_if_hit();
    return true;
  }
  /// Compute the velocities after the kick, with contact impulses. Returns false if the cones were not solved.
  bool push() {
    std::copy(kick_.v_free, kick_.v_free + nv_, kick_.v_end);
    fastest_ = rows_->note_nearing(kick_.v_free);
    if (!solve_all_contacts()) return false;
    push_again_if_hit();
    return true;
  }
  /// Record the residuals of the step, if they exceed those of all earlier steps.
  void note() {
    if (!s_.record) return;
    double sunk = 0.0;
    for (const StepRow& row : *rows_) sunk = row.contact ? std::max(sunk, -row.distance) : sunk;
    const auto most = [](double* noted, double now) { *noted = std::max(*noted, now); };
    const Record<double>& record = *s_.record;
    most(record.kinematics, kick_.slip), most(record.positions, kick_.open), most(record.penetration, sunk),
        most(record.momentum, kick_.residual);
    most(record.primal, left_.cones.primal), most(record.dual, left_.cones.dual);
    most(record.complementarity, left_.cones.complementarity), most(record.natural_map, left_.natural_map);
    most(record.work, left_.cones.work);
  }

 private:
  double* doubles(int n) { return arena_.take<double>(static_cast<std::size_t>(n)); }

  /// Move the state by the step. Returns false if the cones were not solved.
  bool attempt() {
    kick_.drift();
    // if redundant rows are consistent only on closed loops (redundancy.hpp), the loops must be closed at the middle
    if (s_.projects() && s_.closes > 0.5) project(s_, kick_.middle(), x_.q, x_.v, nullptr, false);
    kick_.set_up();
    const ForceElements& elements = s_.plan.force_elements;
    const bool touches = !elements.all<RigidContact>().empty() || !elements.all<CollisionContacts>().empty();
    if (!find_rows(touches ? uniform_links(tree_, arena_, x_.q, x_.v) : Kinematics<double>{})) return false;
    if (!soft_->join(*kick_.equation, kick_.factor)) return false;
    const double share = kick_.rates.any > 0.5 || !soft_->empty() ? contact_steps::iteration_tolerance_with_rates
                                                                  : contact_steps::iteration_tolerance;
    if (kick_.bias.find(*kick_.equation, kick_.factor, pressed(), share, [&](double* x) { soft_->soften(x); }) < 0.5)
      return false;
    move_freely();
    if (!push()) return false;
    kick_.finish([&](double* impulse) { soft_->add_late(x_.v, kick_.v_end, impulse); },
                 [&](const double* passed, const double* mean) { return soft_->damped(passed, mean); });
    note();
    return true;
  }
  void move_freely() {
    kick_.move_freely([&](double* v, double* multipliers) { soft_->soften(v, multipliers); });
  }

  void push_again_if_hit() {
    if (kick_.bias.missed(*kick_.equation, kick_.v_end, contact_steps::hit_ratio)) solve_contacts_again();
  }
  /// Solve the kick with rows for all contacts that would otherwise penetrate.
  bool solve_all_contacts() {
    do {
      if (!solve_contacts()) return false;
    } while (rows_->note_missed(kick_.v_end, fastest_));
    return true;
  }

  /// If a contact hits in this step, solve the kick again, with the mean of the bias forces at the velocities before and after the kick. If the
  /// cones are not solved this time, the first solution is used.
  void solve_contacts_again() {
    const Arena::Scope scope(arena_);
    const int nz = s_.plan.force_elements.nz, size = nv_ + tree_.loops.rows;
    double *v_end = kick_.v_end, *first = doubles(nv_), *reported = doubles(nz), *impulse = doubles(size);
    std::copy(v_end, v_end + nv_, first), std::copy(x_.z, x_.z + nz, reported), std::copy_n(kick_.impulse, size, impulse);
    kick_.bias.take_ends(*kick_.equation, v_end);
    move_freely();
    std::copy(kick_.v_free, kick_.v_free + nv_, v_end);
    if (solve_all_contacts()) return;
    std::copy(first, first + nv_, v_end), std::copy(reported, reported + nz, x_.z), std::copy_n(impulse, size, kick_.impulse);
  }

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
    }
    // after the rows of all contacts: rows that are not combined keep their order
    for (StepRow& row : rows) {
      if (!touches(row)) continue;
      row.each_moment([&](int first, int count, double) {
        for (int r = first; r < first + count; ++r, ++moment)
          row.combined < 0 ? add_single(moment) : share(moment, row.combined, row.axes.row(r), zero3<double>());
      });
    }
    for (int i = problem.first_interval(); i < n; ++i) add_single(i);
    return all;
  }

  /// Compute impulses of the active rows within their cones, and the velocities after them. Returns true if the cone problem was solved.
  bool solve_contacts() {
    const Arena::Scope scope(arena_);
    collect();
    const auto& [problem, J, w, p, shift, expands, rebound, combined, G, least] = *active_;
    if (problem.rows == 0) return true;
    const LoopEquation<double>& e = *kick_.equation;
    const RowMotions motions = inverse_along_combined(e, kick_.factor, arena_, combined, J, G);
    if (!solve_cones()) return false;
    push_by(solve_pushed(e, kick_.factor, arena_, problem.rows, J, p, kick_.free, combined.forces(p, doubles(combined.fewer)),
                         motions, &kick_.residual));
    return true;
  }

  /// Collect the active rows, and erase the stored states of all contacts.
  void collect() {
    const ForceElements& elements = s_.plan.force_elements;
    for (const RigidContact& c : elements.all<RigidContact>()) std::fill_n(x_.z + c.iz, c.states(), 0.0);
    for (const CollisionContacts& c : elements.all<CollisionContacts>()) std::fill_n(x_.z + c.iz, c.states(), 0.0);
    for (const EndStop& stop : elements.all<EndStop>()) std::fill_n(x_.z + stop.iz, stop.states(), 0.0);
    active_.emplace(pack(*rows_, kick_.v_free));
    const int n = active_->problem.rows;
    if (n == 0) return;
    active_->combined = combine(*rows_, active_->problem, active_->J);
    active_->problem.G = active_->G = doubles(n * n), active_->least = doubles(n);
  }

  /// Compute the impulses p of the active rows from G, without the effect of soft rows. Returns true if the cone problem was solved.
  bool solve_cones() {
    const auto& [problem, J, w, p, shift, expands, rebound, combined, G, least] = *active_;
    const int n = problem.rows, contacts = problem.contacts;
    soft_->soften(n, J, G);
    if (gaps_ != GapTreatment::actual) close_gaps(*rows_, n, G, w, shift);
    rest_on_loops(*kick_.equation, n, J, G, kick_.v_free, shift, w);
    bool* unsolved = arena_.take<bool>(contacts);
    ConeSolution solution = solve_parts(problem, arena_, p, least, limit_, unsolved);
    if (!solution.reached && gaps_ == GapTreatment::zero) {
      // friction may jam contacts such that no impulses separate them, be it to bounce or to leave a penetration; then they need not separate
      for (int i = 0; i < contacts; ++i)
        if (unsolved[i] && shift[3 * i] < 0.0) w[3 * i] -= shift[3 * i], shift[3 * i] = rebound[i] = 0.0;
      solution = solve_parts(problem, arena_, p, least, limit_);
    }
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
    return true;
  }
  /// Set the velocities after the kick, and report the impulses. x: the solution with the impulses, before soft rows.
  void push_by(const double* x) {
    const auto& [problem, J, w, p, shift, expands, rebound, combined, G, least] = *active_;
    double *impulse = kick_.impulse, *v_end = kick_.v_end;
    std::fill(impulse, impulse + nv_, 0.0), std::copy_n(x + nv_, tree_.loops.rows, impulse + nv_);
    std::copy(x, x + nv_, v_end), soft_->soften(v_end, impulse + nv_);
    for (int c = 0; c < nv_; ++c) v_end[c] += x_.v[c];
    add_impulses();
    report_contacts(*rows_, least, least + 3 * problem.contacts, left_.natural_map);
    report_stops(*rows_, least + problem.first_interval());
  }
  void add_impulses() {
    for (int i = 0; i < active_->problem.rows; ++i) subtract_scaled(kick_.impulse, active_->J + i * nv_, -active_->p[i], nv_);
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
  double h_;
  int nv_;
  GapTreatment gaps_;
  bool pushed_ = false;
  double fastest_ = 0.0;  // largest speed along all rows
  ContactKick<double> kick_;
  std::optional<SoftRows> soft_{};
  std::optional<StepRows> rows_{};
  std::optional<Packed> active_{};
  struct {
    double natural_map = 0.0;
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
    if (!acts_on_velocities(s.tree, s.plan)) return true;
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

// ---- Steps in lanes -----------------------------------------------------------------------------------------------------

/// Return true if several runs can take steps in lanes. Other runs go one by one.
inline bool contacts_go_in_lanes(const Tree& tree, const Plan& plan) {
  const Loops& loops = tree.loops;
  return !plan.variants && !tree.ties_links && !tree.has_nonlinear_forces && !tree.lacks_inertia && !loops.substructures &&
         loops.dynamics.fronts == 0 && loops.rotor_rows == 0 && loops.pfaffian_values == 0 && !plan.drives_loop_joints &&
         plan.force_elements.soft_rows() == 0 && !acts_on_velocities(tree, plan);
}

/// Take a step of several runs in lanes (kernels/contact_lanes.hpp).
void contact_step_in_lanes(System<Packet<loop_lanes>>& s, double time, double h, const SimulationState<Packet<loop_lanes>>& x);

// Parts of a step of one lane: see ContactStep. They are compiled in kernels/simulation_kernels.cpp only, with the step of a single run.
ContactStep& begin_lane(System<double>& s, double time, double h, const SimulationState<double>& x);
bool find_rows_of_lane(ContactStep& step, const Kinematics<double>& links);
const double* pressed_in_lane(ContactStep& step);
bool push_lane(ContactStep& step);
const CombinedRows& choose_rows_of_lane(ContactStep& step);
const double* solve_lane(ContactStep& step, double* fewer);
bool complete_lane(ContactStep& step, const double* x);
void note_lane(ContactStep& step);
void contact_step_alone(System<double>& s, double time, double h, const SimulationState<double>& x);

}  // namespace sarrus
