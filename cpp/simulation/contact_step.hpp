// A step with rigid contact, stops and dry friction of joints: drift, then kick.
//
//   q' = closed(q + h v)                                             with the old velocity
//   A (v' - v) = h (tau - h(q', v)) - h^2 K v + J^T lambda + J_c^T p      A = M + h D + h^2 K
//   J v' = c,   contacts: u' + b n + mu |u_t'| n in K*, perpendicular to p in K_mu;   stops: p >= 0;   dry friction: |p| <= h f
//
// all of them at q': so (q', v') satisfies loops, in position and velocity, and cones at one configuration, with one factor. The same scheme told
// as (q', v) after a kick and then a drift would leave J v' open by h^2. D and K are linear rates along the tree's joints, of their dampers and
// springs and of controllers, taken where the step ends. b is d / h of a contact that is d away, which may just touch; one that has sunk in comes
// out, not faster than what falls as deep; and one that hits bounces: u_n' >= -e u_n (Newton), or by a second impulse of expansion in the same
// step (Poisson: contact/poisson.hpp). Below three times what gravity adds in a step it
// does not: there a ball comes to rest (Zeno). Steps are of first order, as in Moreau's scheme (Acary and Brogliato 2008, ch. 10); but where nothing
// pushes of second, by extrapolation.
//
// What comes near in this step gets rows, nothing else: with far corners in it the problem has many more rows of the same rank. What was left out
// and would sink in by what was found gets them then, so that this is a matter of cost. Where the cones are not solved the step is halved,
// twice; then what nearly touches counts as touching, at first but for what motions close; and then it fails. It is never applied half solved.
#pragma once

#include "../contact/cone_residuals.hpp"
#include "step_rows.hpp"

namespace sarrus {

namespace contact_steps {
/// Steps are halved so often, where their cones are not solved.
constexpr int halvings = 2;
}  // namespace contact_steps

/// Linear rates along joints, of the tree's and of elements.
struct LinearRates {
  double *stiffness, *damping;
};

/// What nearly touches, where the cones are not solved otherwise: it is as far away as it is; or it touches, but for what motions close; or it touches.
enum class Nearly { apart, closes, touches };

/// Whether the cones were solved, and whether there were any.
enum class StepOutcome { failed, free, pushed };

class ContactStep {
 public:
  ContactStep(System<double>& s, double time, double h, const SimulationState<double>& x, Nearly nearly)
      : s_(s), tree_(s.tree), arena_(s.arena), x_(x), time_(time), h_(h), nv_(s.tree.nv), nearly_(nearly) {}

  /// The state is that after the step, or where the cones were not solved what it was.
  StepOutcome take() {
    const Arena::Scope scope(arena_);
    const int size = s_.integrated();
    double* before = doubles(size);
    std::copy(x_.q, x_.q + size, before);
    drift();
    const bool solved = kick();
    if (!solved) std::copy(before, before + size, x_.q);
    return !solved ? StepOutcome::failed : pushed_ ? StepOutcome::pushed : StepOutcome::free;
  }

 private:
  double* doubles(int n) { return arena_.take<double>(static_cast<std::size_t>(n)); }

  void drift() {
    double *u = doubles(nv_), *q = doubles(tree_.nq);
    for (int k = 0; k < nv_; ++k) u[k] = h_ * x_.v[k];
    integrate(tree_, x_.q, u, q);
    std::copy(q, q + tree_.nq, x_.q);
    if (!s_.projects()) return;
    const double open = project(s_, time_ + h_, x_.q, x_.v, nullptr, false);
    if (open > square(tolerances::torn)) s_.status = std::max(s_.status, double(no_convergence));
    left_.positions = std::sqrt(open);
  }

  bool kick() {
    const Loops& loops = tree_.loops;
    const double end = time_ + h_;
    double *tau = doubles(nv_), *z_dot = doubles(s_.plan.force_elements.nz);
    const double* v = x_.v;
    const LinearRates rates = linear_rates();
    s_.rigid = true;
    s_.forces(end, x_.q, v, x_.z, tau, z_dot);
    s_.rigid = false;
    // A is the mass matrix of a tree with so much more armature
    Tree tree = tree_;
    PassiveTerms* terms = arena_.take<PassiveTerms>(nv_);
    std::copy(tree_.passive, tree_.passive + nv_, terms);
    for (int k = 0; k < nv_; ++k) terms[k].armature += h_ * rates.damping[k] + h_ * h_ * rates.stiffness[k];
    tree.passive = terms;
    LoopInput<double> in{x_.q, v, tau};
    in.time = &end, in.pfaffian_values = s_.pfaffian_values(x_.q, v);
    LoopEquation<double> e = loop_equation(tree, arena_, in);
    for (int k = 0; k < nv_; ++k) e.b[k] = h_ * e.b[k] - h_ * h_ * rates.stiffness[k] * v[k];
    std::fill(e.b + nv_, e.b + nv_ + loops.rows, 0.0);
    if (rests(loops))
      add_motion_along_rows(tree, e.matrix.J, v, -1.0, e.b + nv_);
    else
      missing_velocity<double>(tree, arena_, e, x_.q, v, &end, in.pfaffian_values, e.b + nv_);
    const LoopSolution<double> free = solve_tightly(e, arena_, e.b);
    s_.flag_contradiction(free.error);
    double* v_free = doubles(nv_);
    for (int k = 0; k < nv_; ++k) v_free[k] = v[k] + free.x[k];
    left_.momentum = free.error;

    StepRows rows(s_, end, h_, x_, v_free);
    if (s_.status == caller_failed) return false;
    double* v_end = doubles(nv_);
    std::copy(v_free, v_free + nv_, v_end);
    const double fastest = rows.note_nearing(v_free);
    do {
      if (!push_apart(rows, e, free.factor, v_free, v_end)) return false;
    } while (rows.note_missed(v_end, fastest));
    note(rows, e, v_end);
    for (int k = 0; k < s_.plan.force_elements.nz; ++k) x_.z[k] += h_ * z_dot[k];
    std::copy(v_end, v_end + nv_, x_.v);
    return true;
  }

  /// Whether c is zero: neither laws of time nor a caller have a say in what rows move by.
  static bool rests(const Loops& loops) {
    bool rests = loops.pfaffian_values == 0;
    for (int i = 0; i < loops.constraints; ++i) rests &= !loops.constraint[i].driven;
    return rests;
  }

  LinearRates linear_rates() {
    const LinearRates rates = {doubles(nv_), doubles(nv_)};
    for (int k = 0; k < nv_; ++k) rates.stiffness[k] = tree_.passive[k].stiffness, rates.damping[k] = tree_.passive[k].damping;
    s_.plan.force_elements.each([&](const auto& element) {
      if constexpr (std::decay_t<decltype(element)>::has_linear_rates)
        if (element.joint.iv < nv_)
          element.add_linear_rates(s_.parameter, rates.stiffness[element.joint.iv], rates.damping[element.joint.iv]);
    });
    return rates;
  }

  /// The rows that act: contacts, then their moments, then what has two ends. G is still to be found.
  struct Packed {
    ConeProblem problem;
    double *J, *w, *p, *shift, *expands;
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
                  doubles(contacts)};
    ConeProblem& problem = all.problem;
    problem.w = all.w;
    const auto add = [&](const double* J, int count, const double* guess, double shift) {
      int& at = problem.rows;
      std::copy_n(J, count * nv_, all.J + at * nv_), std::copy_n(guess, count, all.p + at);
      for (int r = 0; r < count; ++r, ++at) {
        all.shift[at] = r == 0 ? shift : 0.0;
        all.w[at] = scalar_product(J + r * nv_, v_free, nv_) + all.shift[at];
      }
    };
    for (const StepRow& row : rows) {
      if (!row.acts || !row.contact) continue;
      add(row.J, 3, row.guess, row.shift);
      all.expands[problem.contacts] = row.expands, friction[problem.contacts++] = row.friction;
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

  /// What touches at many points has rows of the relative motion of its two bodies, of which those of the points are made.
  CombinedRows combine(StepRows& rows, const ConeProblem& problem, const double* J) {
    constexpr int width = CombinedRows::width;
    const int n = problem.rows;
    CombinedRows all = {n, 0, doubles(n * nv_), arena_.take<int>(n), doubles(n * width)};
    std::fill_n(all.share, n * width, 0.0);
    const auto touches = [](const StepRow& row) { return row.acts && row.contact; };
    const auto turning = [](const StepRow& row) { return (row.torsional > 0.0 ? 1 : 0) + (row.rolling > 0.0 ? 2 : 0); };
    const auto alone = [&](int at) {
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
        row.combined < 0 ? alone(at) : share(at, row.combined, cross(arm, axis), axis);
      }
      row.each_moment([&](int first, int count, double) {
        for (int r = first; r < first + count; ++r, ++moment)
          row.combined < 0 ? alone(moment) : share(moment, row.combined, row.axes.row(r), zero3<double>());
      });
    }
    for (int i = problem.first_interval(); i < n; ++i) alone(i);
    return all;
  }

  /// Of those that act: impulses within their cones, and what becomes of the velocities. Whether they were found.
  bool push_apart(StepRows& rows, const LoopEquation<double>& e, const Factor<double>& factor, const double* v_free,
                  double* v_end) {
    const Arena::Scope scope(arena_);
    const ForceElements& elements = s_.plan.force_elements;
    for (const RigidContact& c : elements.all<RigidContact>()) std::fill_n(x_.z + c.iz, c.states(), 0.0);
    for (const ShapeContacts& c : elements.all<ShapeContacts>()) std::fill_n(x_.z + c.iz, c.states(), 0.0);
    auto [problem, J, w, p, shift, expands] = pack(rows, v_free);
    const int n = problem.rows, contacts = problem.contacts;
    if (n == 0) return true;
    double *G = doubles(n * n), *least = doubles(n);
    problem.G = G;
    inverse_along_combined(e, factor, arena_, combine(rows, problem, J), J, G);
    if (nearly_ != Nearly::apart) take_as_touching(rows, n, G, w, shift);
    rest_where_held(e, n, J, G, v_free, shift, w);
    ConeSolution found = solve_parts(problem, arena_, p, least);
    if (!found.reached) return false;
    double* before = s_.record ? doubles(n) : nullptr;
    for (int i = 0; i < n && before; ++i) before[i] = scalar_product(J + i * nv_, x_.v, nv_);
    if (before) left_.cones = cone_residuals(problem, p, shift, before);
    if (std::any_of(expands, expands + contacts, [](double e) { return e > 0.0; })) {
      const ConeProblem second = expansion(problem, expands, arena_, p);
      double* q = doubles(n);
      expand(second, arena_, q, p, least, found);
      if (!found.reached) return false;
      for (int i = 0; i < n && before; ++i) before[i] = second.w[i] - shift[i];
      if (before) left_.cones.add(cone_residuals(second, q, shift, before));
    }
    left_.natural_map = found.natural_map;
    // in roots of energies, in which metres and radians compare; less than that is the solver's rounding, which must not decide on the order of a step
    double fastest = 0.0;
    for (int i = 0; i < n; ++i)
      if (const double mobility = G[i * n + i]; mobility > 0.0) fastest = std::max(fastest, std::abs(w[i]) / std::sqrt(mobility));
    for (int i = 0; i < n; ++i) pushed_ |= std::abs(p[i]) * std::sqrt(G[i * n + i]) > 10.0 * cones::reached * fastest;
    const double* x = solve_pushed(e, factor, arena_, n, J, p, &left_.momentum);
    for (int c = 0; c < nv_; ++c) v_end[c] = x_.v[c] + x[c];
    tell(rows, least, least + 3 * contacts, found.natural_map);
    return true;
  }

  /// Where points outnumber the motions of what they are on, distances of nanometres make velocities that no motion has, or that a motion has which
  /// hardly moves the points: which of these carry is then theirs to say, by forces without bound. As near as what gets rows at once they count
  /// as touching instead, but for what motions that do move them close: the least squares of what is to be closed and, small beside it, of what
  /// closes it, s <- G (G + c)^-1 s.
  void take_as_touching(StepRows& rows, int n, const double* G, double* w, double* shift) {
    const Arena::Scope scope(arena_);
    int *at = arena_.take<int>(n), count = 0, i = 0;
    for (StepRow& row : rows) {
      if (!row.acts || !row.contact) continue;
      if (!row.bounces && std::abs(row.distance) < row.near) at[count++] = i;
      i += 3;
    }
    double *A = doubles(count * count), *closes = doubles(count), largest = 0.0;
    for (int k = 0; k < count; ++k) largest = std::max(largest, G[at[k] * n + at[k]]);
    for (int k = 0; k < count; ++k) {
      closes[k] = shift[at[k]];
      for (int l = 0; l < count; ++l) A[k * count + l] = G[at[k] * n + at[l]];
      A[k * count + k] += square(contact_steps::near) * largest;
    }
    const bool solved = nearly_ == Nearly::closes && largest > 0.0 && solve_dense(count, A, closes);
    for (int k = 0; k < count; ++k) {
      double closed = 0.0;
      for (int l = 0; l < count && solved; ++l) closed += G[at[k] * n + at[l]] * closes[l];
      w[at[k]] += closed - shift[at[k]], shift[at[k]] = closed;
    }
  }

  /// How well all of that holds.
  void note(StepRows& rows, const LoopEquation<double>& e, const double* v_end) {
    if (!s_.record) return;
    const int loops = tree_.loops.rows;
    double *slip = doubles(loops), *change = doubles(nv_), sunk = 0.0;
    std::copy_n(e.b + nv_, loops, slip);
    for (int k = 0; k < nv_; ++k) change[k] = v_end[k] - x_.v[k];
    add_motion_along_rows(tree_, e.matrix.J, change, -1.0, slip);
    for (const StepRow& row : rows) sunk = row.contact ? std::max(sunk, -row.distance) : sunk;
    const auto most = [](double* noted, double now) { *noted = std::max(*noted, now); };
    const Record<double>& record = *s_.record;
    for (int r = 0; r < loops; ++r) most(record.kinematics, std::abs(slip[r]));
    most(record.positions, left_.positions), most(record.penetration, sunk), most(record.momentum, left_.momentum);
    most(record.primal, left_.cones.primal), most(record.dual, left_.cones.dual);
    most(record.complementarity, left_.cones.complementarity), most(record.natural_map, left_.natural_map);
    most(record.work, left_.cones.work);
  }

  /// The states of contacts, of the least impulses, and of moments, which stand behind those of all contacts.
  void tell(StepRows& rows, const double* impulse, const double* moment, double natural_map) {
    const auto& shapes = s_.plan.force_elements.all<ShapeContacts>();
    for (const ShapeContacts& all : shapes) x_.z[all.iz] = natural_map;
    for (const StepRow& row : rows) {
      if (!row.acts || !row.contact) continue;
      double turned[3] = {0.0, 0.0, 0.0};
      row.each_moment([&](int first, int count, double) { std::copy_n(moment, count, turned + first), moment += count; });
      if (row.told) {
        double* z = x_.z + row.told->iz;
        std::copy_n(impulse, 3, z), z[3] = natural_map;
        if (row.told->turns) std::copy_n(turned, 3, z + RigidContact::numbers);
      } else if (impulse[0] > 0.0) {
        const ShapeContacts& all = *shapes.begin();
        double& count = x_.z[all.iz + 1];
        double* z = x_.z + all.iz + ShapeContacts::before_points + static_cast<int>(count) * all.of_a_point();
        if (count++ < all.kept) {
          const Vec3<double> force = transpose_times(row.axes, Vec3<double>(impulse)) / h_,
                             torque = transpose_times(row.axes, Vec3<double>(turned)) / h_;
          z[ShapeContacts::id] = static_cast<double>(row.point->id);
          for (int r = 0; r < 3; ++r)
            z[ShapeContacts::force + r] = force(r), z[ShapeContacts::position + r] = row.point->at.position(r);
          for (int r = 0; r < 3 && all.turns; ++r) z[ShapeContacts::moment + r] = torque(r);
        }
      }
      impulse += 3;
    }
  }

  System<double>& s_;
  const Tree& tree_;
  Arena& arena_;
  const SimulationState<double>& x_;
  double time_, h_;
  int nv_;
  Nearly nearly_;
  bool pushed_ = false;
  struct {
    double positions = 0.0, momentum = 0.0, natural_map = 0.0;
    ConeResiduals cones;
  } left_;
};

/// A state as far beyond the end of one step as that is beyond what came before: of two halves and a whole, what is of second order in their length
/// (extrapolated, linearly implicit Euler steps: Deuflhard, Hairer and Zugck 1987).
inline void extrapolate(System<double>& s, double end, const double* whole, const SimulationState<double>& x) {
  const Arena::Scope scope(s.arena);
  const int nq = s.tree.nq, nv = s.tree.nv;
  double *u = s.arena.take<double>(nv), *q = s.arena.take<double>(nq);
  difference(s.tree, whole, x.q, u);
  integrate(s.tree, x.q, u, q);
  std::copy(q, q + nq, x.q);
  for (int k = nq; k < s.integrated(); ++k) x.q[k] += x.q[k] - whole[k];  // v and z stand behind
  if (s.projects()) close_step(s, end, x);
}

/// The step, or where its cones are not solved its halves; false: nor theirs. What nothing pushes moves to second order.
inline bool halved_step(System<double>& s, double time, double h, const SimulationState<double>& x, Nearly nearly,
                        int halvings = contact_steps::halvings) {
  const Arena::Scope scope(s.arena);
  const int size = s.integrated();
  double *before = s.arena.take<double>(size), *whole = s.arena.take<double>(size);
  std::copy(x.q, x.q + size, before);
  const StepOutcome outcome = ContactStep(s, time, h, x, nearly).take();
  if (outcome == StepOutcome::pushed || s.status != 0.0) return true;
  if (outcome == StepOutcome::free) {
    std::copy(x.q, x.q + size, whole), std::copy(before, before + size, x.q);
    for (const double begin : {time, time + 0.5 * h})
      if (ContactStep(s, begin, 0.5 * h, x, nearly).take() != StepOutcome::free) return std::copy(whole, whole + size, x.q), true;
    extrapolate(s, time + h, whole, x);
    return true;
  }
  if (halvings == 0) return false;
  for (const double begin : {time, time + 0.5 * h})
    if (s.status == 0.0 && !halved_step(s, begin, 0.5 * h, x, nearly, halvings - 1))
      return std::copy(before, before + size, x.q), false;
  return true;
}

/// As it is, in halves, or with what nearly touches as touching; else its status says that it is none.
inline void contact_step(System<double>& s, double time, double h, const SimulationState<double>& x) {
  for (const Nearly nearly : {Nearly::apart, Nearly::closes, Nearly::touches})
    if (halved_step(s, time, h, x, nearly)) {
      if (nearly != Nearly::apart && s.record) *s.record->as_touching += 1.0;
      return;
    }
  s.status = no_convergence;
}

}  // namespace sarrus
