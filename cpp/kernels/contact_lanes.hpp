// Steps with rigid contacts of several runs in lanes. The equation of the kick, its factor, bias forces and closed loops (contact_kick.hpp) are computed
// for all lanes at once, and so are the responses of contacts, and the cones of contacts that rest (resting_cones.hpp). Contact points and other cones
// are computed lane by lane (contact_step.hpp). A lane takes the step alone, from its beginning, if its first attempt fails, or if stages are projected
// onto the loops. No lane affects another one: the bits of a run do not depend on its company.
#pragma once

#include "../simulation/advance.hpp"
#include "packets.hpp"
#include "resting_cones.hpp"

namespace sarrus {
namespace {

class ContactLanes {
  using P = Packet<loop_lanes>;
  static constexpr int width = loop_lanes;

 public:
  ContactLanes(System<P>& s, double time, double h, const SimulationState<P>& x)
      : s_(s), tree_(s.tree), arena_(s.arena), x_(x), time_(time), h_(h), kick_(s, time, h, x) {}

  void take() {
    begin();
    const P status = s_.status;
    kick_.drift();
    kick_.set_up();
    find_rows();
    find_velocities();
    push();
    kick_.finish([](P*) {}, [](const P*, const P*) { return P(0.0); });
    for (int l = 0; l < width; ++l) end(l, lane(status, l));
  }

 private:
  /// Values of all lanes, each in a row of its own.
  struct Apart {
    double* first;
    int size;
    double* operator[](int l) const { return first + l * size; }
  };
  Apart apart(const P* values, int size) {
    const Apart rows = {arena_.take<double>(static_cast<std::size_t>(width * size)), size};
    scatter(values, size, 0, width, rows.first);
    return rows;
  }
  void together(const Apart& rows, P* values) { gather(rows.first, rows.size, rows.size, 0, width, values); }

  struct Lane {
    System<double>* system;
    SimulationState<double> at{};  // state in the middle of the step
    ContactStep* step = nullptr;
    const CombinedRows* rows = nullptr;  // rows by which those of the contacts are expressed
    const double* solution = nullptr;  // solution of the kick with impulses; null: it is not known accurately
    bool exact = true;  // false: the responses need corrections, which are computed for one lane at a time
    bool rests = false, alone = false;  // rests: the run has failed in an earlier step; alone: it takes this step alone
    bool attempts() const { return !rests && !alone; }
  };

  /// Create the systems of the lanes.
  void begin() {
    const Plan& plan = s_.plan;
    row_ = apart(x_.q, s_.size() + carried_size(plan));
    const Apart parameters = apart(s_.parameter, plan.force_elements.parameters);
    Record<double>* record = arena_.take<Record<double>>(width);
    for (int l = 0; l < width; ++l) {
      System<double>& s = *new (arena_.take<System<double>>(1)) System<double>{tree_, arena_, plan, parameters[l]};
      s.held_values = row_[l] + s.integrated(), s.since = lane(s_.since, l), s.closes = lane(s_.closes, l);
      if (s_.record) s.record = new (record + l) Record<double>(plan, row_[l] + s.size() + Guard<double>::size);
      if (s_.acting) s.acting = arena_.take<double>(tree_.nv), s.drives = s_.drives;
      lane_[l] = {&s, {}, nullptr, nullptr, nullptr, true, lane(s_.status, l) != 0.0, s.closes > 0.5};
    }
  }

  /// Find the rows of all contacts, and estimates of their impulses.
  void find_rows() {
    const int nv = tree_.nv;
    P *uniform = arena_.take<P>(nv), *block = arena_.take<P>(Kinematics<P>::size(tree_));
    uniform_motion<P>(tree_, x_.v, uniform);
    kinematics<P>(tree_, arena_, x_.q, x_.v, uniform, Kinematics<P>::over(tree_, block), {});
    const Apart links = apart(block, Kinematics<P>::size(tree_)), q = apart(x_.q, tree_.nq), v = apart(x_.v, nv);
    z_ = apart(x_.z, s_.plan.force_elements.nz);
    pressed_ = arena_.take<P>(nv);
    std::fill(pressed_, pressed_ + nv, P(0.0));
    for (int l = 0; l < width; ++l) {
      Lane& me = lane_[l];
      if (!me.attempts()) continue;
      me.at = {q[l], v[l], z_[l]};
      me.step = &begin_lane(*me.system, time_, h_, me.at);
      me.alone = !find_rows_of_lane(*me.step, Kinematics<double>::over(tree_, links[l]));
      if (me.alone) continue;
      const double* pressed = pressed_in_lane(*me.step);
      for (int k = 0; k < nv; ++k) lane(pressed_[k], l) = pressed[k];
    }
  }

  /// Compute the velocities without contact impulses.
  void find_velocities() {
    const P share =
        select(kick_.rates.any > P(0.5), P(contact_steps::iteration_tolerance_with_rates), P(contact_steps::iteration_tolerance));
    const P found = kick_.bias.find(*kick_.equation, kick_.factor, pressed_, share, [](P*) {});
    for (int l = 0; l < width; ++l) lane_[l].alone |= lane(found, l) < 0.5;
    kick_.move_freely([](P*, P*) {});
  }

  /// Compute the velocities after the kick.
  void push() {
    const LoopEquation<P>& e = *kick_.equation;
    const Saddle<P>& matrix = e.matrix;
    const Elimination& plan = matrix.plan;
    const int nv = tree_.nv, rows = matrix.rows, n = nv + rows;
    const Apart M = apart(matrix.M, tree_.loops.mass_first[nv]), J = apart(matrix.J, tree_.loops.entries),
                mobility = apart(matrix.mobility, nv), row_weight = apart(matrix.row_weight, rows), scale = apart(e.scale, rows),
                b = apart(e.b, n), L = apart(kick_.factor.L, plan.slots), D = apart(kick_.factor.D_inverse, plan.unknowns),
                mu = apart(kick_.factor.mu, rows), force = apart(kick_.bias.force, nv), expected = apart(kick_.bias.expected, nv),
                free = apart(kick_.free, n), v_free = apart(kick_.v_free, nv), v_end = apart(kick_.v_free, nv),
                impulse = apart(kick_.impulse, n);
    int count = 0;  // largest number of rows of a lane
    for (int l = 0; l < width; ++l) {
      Lane& me = lane_[l];
      if (!me.attempts()) continue;
      ContactKick<double>& kick = me.step->kick();
      kick.equation.emplace(LoopEquation<double>{
          {matrix.tree, plan, matrix.mass_first, matrix.constraints, rows, M[l], J[l], nullptr, mobility[l], row_weight[l]},
          b[l],
          scale[l],
          lane(e.terms, l)});
      kick.factor = {L[l], D[l], mu[l]};
      kick.bias.force = force[l], kick.bias.expected = expected[l], kick.bias.rests = lane(kick_.bias.rests, l);
      kick.free = free[l], kick.v_free = v_free[l], kick.v_end = v_end[l], kick.impulse = impulse[l];
      kick.residual = lane(kick_.residual, l);
      me.rows = &choose_rows_of_lane(*me.step);
      count = std::max(count, me.rows->fewer);
    }
    if (count > 0) solve_contacts(count);
    for (int l = 0; l < width; ++l) {
      Lane& me = lane_[l];
      if (me.attempts()) me.alone = !(me.exact ? complete_lane(*me.step, me.solution) : push_lane(*me.step));
    }
    together(v_end, kick_.v_end), together(impulse, kick_.impulse), together(z_, x_.z);
  }

  /// Solve the cone problems, and compute the solutions with their impulses. count: largest number of rows.
  void solve_contacts(int count) {
    const LoopEquation<P>& e = *kick_.equation;
    const int nv = tree_.nv, n = nv + e.matrix.rows, *unknown = e.matrix.plan.unknown;
    P *J = arena_.take<P>(count * nv), *G = arena_.take<P>(count * count), *forces = zeros_of(count), sufficient, error;
    const Apart rows = {arena_.take<double>(static_cast<std::size_t>(width * count * nv)), count * nv};
    for (int l = 0; l < width; ++l) {
      const int own = lane_[l].rows ? lane_[l].rows->fewer * nv : 0;
      if (own > 0) std::copy_n(lane_[l].rows->J, own, rows[l]);
      std::fill(rows[l] + own, rows[l] + rows.size, 0.0);
    }
    together(rows, J);
    const RowMotions motions = inverse_along_rows(e, kick_.factor, arena_, count, J, G, sufficient);
    const P rest = solve_resting(count, J, G, sufficient, forces);
    for (int l = 0; l < width; ++l) {
      Lane& me = lane_[l];
      const int own = me.attempts() ? me.rows->fewer : 0;
      if (own == 0 || lane(rest, l) > 0.5) continue;
      me.exact = lane(sufficient, l) > 0.5;
      if (!me.exact) continue;
      double* fewer = arena_.take<double>(own * own);
      for (int i = 0; i < own; ++i)
        for (int j = 0; j < own; ++j) fewer[i * own + j] = lane(G[i * count + j], l);
      const double* force = solve_lane(*me.step, fewer);
      me.alone = !force;
      for (int i = 0; i < own && force; ++i) lane(forces[i], l) = force[i];
    }
    P *x = arena_.take<P>(n), *b = arena_.take<P>(n);
    for (int k = 0; k < n; ++k) {
      P moved = P(0.0);
      for (int i = 0; i < count; ++i) moved += motions.of(k, i) * forces[i];
      x[unknown[k]] = kick_.free[unknown[k]] + moved;
    }
    std::copy(e.b, e.b + n, b);
    for (int i = 0; i < count; ++i) subtract_scaled(b, J + i * nv, -forces[i], nv);
    const P accurate = correct_once(e, kick_.factor, arena_, b, x, error);
    const Apart solution = apart(x, n);
    for (int l = 0; l < width; ++l) {
      Lane& me = lane_[l];
      if (!me.attempts() || !me.exact || me.rows->count == 0 || lane(accurate, l) < 0.5) continue;
      me.solution = solution[l], me.step->kick().residual = lane(error, l);
    }
  }
  /// Solve the cone problems whose contacts rest, from the inverse G along the rows J. Adds the forces along these rows. Returns 1 in the lanes that are
  /// solved, else 0.
  P solve_resting(int count, const P* J, const P* G, const P& sufficient, P* forces) {
    const Arena::Scope scope(arena_);
    const int nv = tree_.nv;
    const auto goes = [&](int l) {
      return lane_[l].attempts() && lane_[l].rows->count > 0 && lane(sufficient, l) > 0.5 && lane_[l].step->may_rest();
    };
    int rows = 0;
    for (int l = 0; l < width; ++l) rows = goes(l) ? std::max(rows, lane_[l].rows->count) : rows;
    if (rows == 0) return P(0.0);
    RestingCones problems(arena_, rows);
    SharesInLanes share(arena_, rows, count);
    P tried = P(0.0);
    for (int l = 0; l < width; ++l) {
      if (!goes(l)) continue;
      const auto& [problem, J_all, w, p, shift, expands, rebound, combined, G_all, least] = lane_[l].step->chosen();
      lane(tried, l) = 1.0;
      for (int i = 0; i < problem.contacts; ++i)
        lane(problems.friction[i], l) = problem.friction[i], lane(problems.present[i], l) = 1.0;
      for (int i = 0; i < problem.rows; ++i) {
        lane(problems.w[i], l) = w[i], lane(problems.p[i], l) = p[i], lane(problems.shift[i], l) = shift[i];
        const double* from = combined.share + i * CombinedRows::width;
        for (int k = 0; k < 6; ++k)
          if (from[k] != 0.0) share.set(i, combined.first[i] + k, l, from[k]);
      }
    }
    share.compress();
    P *along = arena_.take<P>(count * rows), *speed = arena_.take<P>(count), *freedom = arena_.take<P>(count);
    for (int c = 0; c < count; ++c) {
      const P* mobility = kick_.equation->matrix.mobility;
      P squares = P(0.0);
      for (int k = 0; k < nv; ++k) squares += square(J[c * nv + k]) * mobility[k];
      speed[c] = scalar_product(J + c * nv, static_cast<const P*>(x_.v), nv), freedom[c] = sqrt(squares);
      // rows that the loops lock are treated lane by lane
      tried *= select(squares > P(0.0), select(G[c * count + c] > P(cones::locked) * squares, P(1.0), P(0.0)), P(1.0));
    }
    for (int i = 0; i < rows; ++i)
      share.multiply(i, G, count, count, [&](int c, const P& sum) SARRUS_INLINED { along[c * rows + i] = sum; });
    for (int i = 0; i < rows; ++i) {
      P* row = problems.G + i * rows;
      share.multiply(i, along, rows, i + 1, [&](int j, const P& sum) SARRUS_INLINED { row[j] = problems.G[j * rows + i] = sum; });
      problems.before[i] = share.sum(i, [&](int c, const P& x) { return x * speed[c]; });
      const P most_free = share.sum(i, [&](int c, const P& x) { return abs(x) * freedom[c]; });
      tried *= select(row[i] > P(cones::locked) * square(most_free), P(1.0), P(1.0) - problems.present[i / 3]);
    }
    const P solved = problems.solve(tried);
    const Apart impulses = apart(problems.p, rows);
    for (int l = 0; l < width; ++l) {
      if (lane(solved, l) < 0.5) continue;
      const auto of_lane = [&](const P& x) { return lane(x, l); };
      lane_[l].step->accept(
          impulses[l], of_lane(problems.natural_map), of_lane(problems.pushed) > 0.5,
          {of_lane(problems.primal), of_lane(problems.dual), of_lane(problems.complementarity), of_lane(problems.work)});
    }
    for (int i = 0; i < rows; ++i) share.sum(i, [&](int c, const P& x) { return forces[c] += x * (solved * problems.p[i]); });
    return solved;
  }
  P* zeros_of(int size) {
    P* values = arena_.take<P>(size);
    std::fill(values, values + size, P(0.0));
    return values;
  }

  /// Complete the step of a lane. `status`: its status before the step.
  void end(int l, double status) {
    const Lane& me = lane_[l];
    System<double>& s = *me.system;
    double* row = row_[l];
    if (me.alone && !me.rests) {
      contact_step_alone(s, time_, h_, SimulationState<double>::of(tree_, row));
      lane(s_.status, l) = s.status;
      lane(s_.work.supplied, l) = s.work.supplied, lane(s_.work.pushed, l) = s.work.pushed;
    }
    if (me.rests) lane(s_.status, l) = status;
    for (int k = 0; !me.attempts() && k < s.integrated(); ++k) lane(x_.q[k], l) = row[k];
    if (me.rests || !s.record) return;
    if (!me.alone) {
      ContactKick<double>& kick = me.step->kick();
      kick.slip = lane(kick_.slip, l), kick.open = lane(kick_.open, l);
      note_lane(*me.step);
    }
    for (int k = s.size(); k < row_.size; ++k) lane(x_.q[k], l) = row[k];
  }

  System<P>& s_;
  const Tree& tree_;
  Arena& arena_;
  const SimulationState<P>& x_;
  double time_, h_;
  ContactKick<P> kick_;
  Lane lane_[width];
  Apart row_{}, z_{};  // states and recorded data of all lanes at the beginning; internal states
  P* pressed_ = nullptr;  // (nv) estimated generalised impulse of all contacts
};

}  // namespace

void contact_step_in_lanes(System<Packet<loop_lanes>>& s, double time, double h, const SimulationState<Packet<loop_lanes>>& x) {
  const Arena::Scope scope(s.arena);
  ContactLanes(s, time, h, x).take();
}

}  // namespace sarrus
