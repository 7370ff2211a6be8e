// A step with rigid contact, stops and dry friction of joints: drift, then kick.
//
//   q' = closed(q + h v)                                             with the old velocity
//   A (v' - v) = h (tau - h(q', v)) - h^2 K v + J^T lambda + J_c^T p      A = M + h D + h^2 K
//   J v' = c,   contacts: u' + b n + mu |u_t'| n in K*, perpendicular to p in K_mu;   stops: p >= 0;   dry friction: |p| <= h f
//
// all of them at q': so (q', v') satisfies loops, in position and velocity, and cones at one configuration, with one factor. The same scheme told
// as (q', v) after a kick and then a drift would leave J v' open by h^2. D and K are linear rates along the tree's joints, of their dampers and
// springs and of controllers, taken where the step ends. b is d / h of a contact that is d away, which may just touch; one that has sunk in comes
// out, not faster than it would fall; and one that hits bounces: u_n' >= -e u_n (Newton). Below three times what gravity adds in a step it
// does not: there a ball comes to rest (Zeno). Forces are of first order, as in Moreau's scheme (Acary and Brogliato 2008, ch. 10).
//
// What can touch in this step gets rows, nothing else: with far corners in it the problem has many more rows of the same rank. Where the cones
// are not solved the step is halved, twice; and then it fails. It is never applied half solved.
#pragma once

#include "../contact/response.hpp"
#include "system.hpp"

namespace sarrus {

namespace contact_steps {
/// Steps are halved so often.
constexpr int halvings = 2;
/// A contact so far away, of the mechanism's length, may touch whatever its velocity says: impulses elsewhere change that.
constexpr double near = 3e-4;
/// And of the speed of a fall from the mechanism's length, the share that they may change it by; and at which what has sunk in comes out.
constexpr double change = 0.1, rise = 0.25;
/// Times what gravity adds in a step: slower hits do not bounce.
constexpr double bounces = 3.0;
}  // namespace contact_steps

/// The rows of one step: contacts, three each, then what has an interval.
struct StepRows {
  int contacts = 0, intervals = 0;
  const RigidContact** which;  // of each contact
  double *J, *shift, *friction, *low, *high, *guess;

  int count() const { return 3 * contacts + intervals; }
};

/// Linear rates along joints, of the tree's and of elements.
struct LinearRates {
  double *stiffness, *damping;
};

class ContactStep {
 public:
  ContactStep(System<double>& s, double time, double h, const SimulationState<double>& x)
      : s_(s), tree_(s.tree), arena_(s.arena), x_(x), time_(time), h_(h), nv_(s.tree.nv) {}

  /// Whether the cones were solved; the state is that after the step, or what it was.
  bool take() {
    const Arena::Scope scope(arena_);
    const int size = s_.integrated();
    double* before = doubles(size);
    std::copy(x_.q, x_.q + size, before);
    drift();
    const bool solved = kick();
    if (!solved) std::copy(before, before + size, x_.q);
    return solved;
  }

 private:
  double* doubles(int n) { return arena_.take<double>(static_cast<std::size_t>(n)); }

  void drift() {
    double *u = doubles(nv_), *q = doubles(tree_.nq);
    for (int k = 0; k < nv_; ++k) u[k] = h_ * x_.v[k];
    integrate(tree_, x_.q, u, q);
    std::copy(q, q + tree_.nq, x_.q);
    if (s_.projects()) close_step(s_, time_ + h_, x_, nullptr, false);
  }

  bool kick() {
    const Loops& loops = tree_.loops;
    const double end = time_ + h_;
    double *tau = doubles(nv_), *z_dot = doubles(s_.plan.force_elements.nz), *v = x_.v;
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
    missing_velocity<double>(tree, arena_, e, x_.q, v, &end, in.pfaffian_values, e.b + nv_);
    const LoopSolution<double> free = solve_tightly(e, arena_, e.b);
    s_.flag_contradiction(free.error);
    double* v_free = doubles(nv_);
    for (int k = 0; k < nv_; ++k) v_free[k] = v[k] + free.x[k];

    const StepRows rows = touching(end, v_free);
    const int n = rows.count();
    double *G = doubles(n * n), *w = doubles(n), *p = doubles(n), *least = doubles(n);
    if (n > 0) {
      inverse_along_rows(e, free.factor, arena_, n, rows.J, G);
      for (int i = 0; i < n; ++i) w[i] = scalar_product(rows.J + i * nv_, v_free, nv_) + rows.shift[i];
      std::copy(rows.guess, rows.guess + n, p);
      const ConeSolution told = solve_cones({rows.contacts, n, G, w, rows.friction, rows.low, rows.high}, arena_, p, least);
      if (!told.reached) return false;
      for (int i = 0; i < n; ++i)
        for (int c = 0; c < nv_; ++c) e.b[c] += rows.J[i * nv_ + c] * p[i];
      const Saddle<double>& matrix = e.solved();
      double* y = doubles(matrix.plan.unknowns);
      refine(matrix, arena_, free.factor, e.lifted(arena_, e.b), y, tolerances::most_corrections);
      const double* x = e.lowered(arena_, y);
      for (int k = 0; k < nv_; ++k) v_free[k] = v[k] + x[k];
      natural_map_ = told.natural_map;
    }
    for (const RigidContact& c : s_.plan.force_elements.all<RigidContact>()) std::fill_n(x_.z + c.iz, RigidContact::numbers, 0.0);
    for (int i = 0; i < rows.contacts; ++i) {
      double* z = x_.z + rows.which[i]->iz;
      std::copy(least + 3 * i, least + 3 * i + 3, z), z[3] = natural_map_;
    }
    for (int k = 0; k < s_.plan.force_elements.nz; ++k) x_.z[k] += h_ * z_dot[k];
    std::copy(v_free, v_free + nv_, v);
    return true;
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

  /// What may touch at x_.q when the free velocity is v, and what stops and brakes joints.
  StepRows touching(double end, const double* v) {
    const auto& contacts = s_.plan.force_elements.all<RigidContact>();
    const auto& stops = s_.plan.force_elements.all<EndStop>();
    const int most = 3 * contacts.count + 2 * stops.count + s_.plan.frictions;
    StepRows rows;
    rows.which = arena_.take<const RigidContact*>(contacts.count);
    rows.J = doubles(most * nv_), rows.shift = doubles(most), rows.friction = doubles(contacts.count), rows.guess = doubles(most);
    rows.low = doubles(most), rows.high = doubles(most);
    std::fill(rows.J, rows.J + most * nv_, 0.0), std::fill(rows.shift, rows.shift + most, 0.0);
    std::fill(rows.guess, rows.guess + most, 0.0);
    const double gravity = std::sqrt(dot(tree_.gravity, tree_.gravity)), fall = std::sqrt(2.0 * gravity * tree_.length);
    const auto within_reach = [&](double distance, double length, double speed) {
      return distance < contact_steps::near * length +
                            h_ * (contact_steps::change * fall * length / tree_.length + 2.0 * std::max(-speed, 0.0));
    };
    const auto shifted = [&](double distance, double length) {
      return std::max(distance / h_, -contact_steps::rise * (fall > 0.0 ? fall / tree_.length : 1.0) * length);
    };
    if (!contacts.empty()) {
      const Kinematics<double> k = Kinematics<double>::over(tree_, doubles(Kinematics<double>::size(tree_)));
      kinematics<double>(tree_, arena_, x_.q, x_.v, nullptr, k);
      for (const RigidContact& c : contacts) {
        const Transform<double> X = k.link[c.frame.link].X * c.frame.on_the_link<double>(tree_),
                                on = k.link[c.on.link].X * c.on.on_the_link<double>(tree_);
        const Vec3<double> normal = on.R * c.normal.n;
        const double distance = dot(normal, Vec3<double>(X.p - on.p)) - c.offset - c.radius;
        const Vec3<double> p = X.p - normal * (c.radius + 0.5 * distance);
        const Mat3<double> E = contact_axes(normal);
        double* J = rows.J + 3 * rows.contacts * nv_;
        std::fill(J, J + 3 * nv_, 0.0);
        add_point_rows(tree_, k, c.frame.link, p, E, 1.0, J), add_point_rows(tree_, k, c.on.link, p, E, -1.0, J);
        const double e = s_.parameter[c.restitution.at], before = scalar_product(J, x_.v, nv_);
        const bool bounces = e > 0.0 && before < -contact_steps::bounces * gravity * h_;
        if (!within_reach(distance, tree_.length, scalar_product(J, v, nv_)) || (bounces && distance > 0.0)) continue;
        rows.which[rows.contacts] = &c, rows.friction[rows.contacts] = s_.parameter[c.friction.at];
        rows.shift[3 * rows.contacts] = bounces ? e * before : shifted(distance, tree_.length);
        std::copy_n(x_.z + c.iz, 3, rows.guess + 3 * rows.contacts);
        ++rows.contacts;
      }
      std::fill(rows.J + 3 * rows.contacts * nv_, rows.J + most * nv_, 0.0);
    }
    const auto interval = [&](double low, double high, double shift) {
      const int row = rows.count();
      rows.low[rows.intervals] = low, rows.high[rows.intervals] = high, rows.shift[row] = shift;
      ++rows.intervals;
      return rows.J + row * nv_;
    };
    const AllJoints<double> all = s_.plan.frictions > 0 || s_.plan.drives_loop_joints
                                      ? s_.joints(end, x_.q, x_.v)
                                      : AllJoints<double>{x_.q, x_.v, nullptr, nv_};
    const auto put = [&](int iv, double sign, double* J) {
      for (int k = 0; k < nv_ && iv >= nv_; ++k) J[k] = sign * all.J[(iv - nv_) * nv_ + k];
      if (iv < nv_) J[iv] = sign;
    };
    for (const EndStop& stop : stops)
      for (const double side : {1.0, -1.0}) {
        const double bound = s_.parameter[(side > 0.0 ? stop.limits.lower : stop.limits.upper).at];
        const double distance = side * (all.q[stop.joint.iq] - bound);
        const int beyond = stop.joint.iv - nv_;
        const double speed = side * (beyond < 0 ? v[stop.joint.iv] : scalar_product(all.J + beyond * nv_, v, nv_));
        const double unit = beyond < 0 ? s_.unit(s_.plan.velocity_unit, stop.joint.iv) : 1.0;
        if (within_reach(distance, unit, speed))
          put(stop.joint.iv, side, interval(0.0, cones::unbounded, shifted(distance, unit)));
      }
    for (int i = 0; i < s_.plan.frictions; ++i) {
      const JointFriction& friction = s_.plan.friction[i];
      const double limit = friction.terms.of(s_.whole()).friction;
      put(friction.iv, 1.0, interval(-h_ * limit, h_ * limit, 0.0));
    }
    return rows;
  }

  System<double>& s_;
  const Tree& tree_;
  Arena& arena_;
  const SimulationState<double>& x_;
  double time_, h_, natural_map_ = 0.0;
  int nv_;
};

/// The step, or where its cones are not solved its halves.
inline void contact_step(System<double>& s, double time, double h, const SimulationState<double>& x,
                         int halvings = contact_steps::halvings) {
  if (ContactStep(s, time, h, x).take() || s.status != 0.0) return;
  if (halvings == 0) {
    s.status = no_convergence;
    return;
  }
  contact_step(s, time, 0.5 * h, x, halvings - 1);
  if (s.status == 0.0) contact_step(s, time + 0.5 * h, 0.5 * h, x, halvings - 1);
}

}  // namespace sarrus
