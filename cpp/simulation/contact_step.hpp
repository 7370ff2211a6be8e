// A step with rigid contact, stops and dry friction of joints: drift, then kick.
//
//   q' = closed(q + h v)                                             with the old velocity
//   A (v' - v) = h (tau - h(q', v)) - h^2 K v + J^T lambda + J_c^T p      A = M + h D + h^2 K
//   J v' = c,   contacts: u' + b n + mu |u_t'| n in K*, perpendicular to p in K_mu;   stops: p >= 0;   dry friction: |p| <= h f
//
// all of them at q': so (q', v') satisfies loops, in position and velocity, and cones at one configuration, with one factor. The same scheme told
// as (q', v) after a kick and then a drift would leave J v' open by h^2. D and K are linear rates along the tree's joints, of their dampers and
// springs and of controllers, taken where the step ends. b is d / h of a contact that is d away, which may just touch; one that has sunk in comes
// out, not faster than what falls as deep; and one that hits bounces: u_n' >= -e u_n (Newton). Below three times what gravity adds in a step it
// does not: there a ball comes to rest (Zeno). Forces are of first order, as in Moreau's scheme (Acary and Brogliato 2008, ch. 10).
//
// What comes near in this step gets rows, nothing else: with far corners in it the problem has many more rows of the same rank. What was left out
// and would sink in by what was found gets them then, so that this is a matter of cost. Where the cones are not solved the step is halved,
// twice; and then it fails. It is never applied half solved.
#pragma once

#include "../contact/response.hpp"
#include "system.hpp"

namespace sarrus {

namespace contact_steps {
/// Steps are halved so often.
constexpr int halvings = 2;
/// What comes so near, of the mechanism's length, gets rows at once.
constexpr double near = 1e-3;
/// Times what gravity adds in a step: slower hits do not bounce.
constexpr double bounces = 3.0;
}  // namespace contact_steps

/// What may get rows of a step: a contact, whose impulse (n, t1, t2) lies in its cone, or something along one velocity, whose impulse lies between
/// two ends.
struct StepRow {
  const RigidContact* contact;  // null: it is none
  double* J;  // 3 x nv, or nv
  double distance, shift, friction, low, high, guess[3];
  bool acts;

  int rows() const { return contact ? 3 : 1; }
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
    missing_velocity<double>(tree, arena_, e, x_.q, v, &end, in.pfaffian_values, e.b + nv_);
    const LoopSolution<double> free = solve_tightly(e, arena_, e.b);
    s_.flag_contradiction(free.error);
    double* v_free = doubles(nv_);
    for (int k = 0; k < nv_; ++k) v_free[k] = v[k] + free.x[k];

    find_rows(end);
    double* v_end = doubles(nv_);
    std::copy(v_free, v_free + nv_, v_end);
    const double fastest = note_nearing(v_free, contact_steps::near * tree_.length);
    do {
      if (!push_apart(e, free.factor, v_free, v_end)) return false;
    } while (note_missed(v_end, fastest));
    for (int k = 0; k < s_.plan.force_elements.nz; ++k) x_.z[k] += h_ * z_dot[k];
    std::copy(v_end, v_end + nv_, x_.v);
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

  /// Of those that act: impulses within their cones, and what becomes of the velocities. Whether they were found.
  bool push_apart(const LoopEquation<double>& e, const Factor<double>& factor, const double* v_free, double* v_end) {
    const Arena::Scope scope(arena_);
    int n = 0, contacts = 0;
    for (int i = 0; i < count_; ++i)
      if (row_[i].acts) n += row_[i].rows(), contacts += row_[i].contact != nullptr;
    for (const RigidContact& c : s_.plan.force_elements.all<RigidContact>()) std::fill_n(x_.z + c.iz, RigidContact::numbers, 0.0);
    if (n == 0) return true;
    double *J = doubles(n * nv_), *G = doubles(n * n), *w = doubles(n), *p = doubles(n), *least = doubles(n),
           *friction = doubles(contacts), *low = doubles(n), *high = doubles(n);
    int at = 0, k = 0;
    for (int i = 0; i < count_; ++i) {  // contacts come first
      const StepRow& row = row_[i];
      if (!row.acts) continue;
      std::copy_n(row.J, row.rows() * nv_, J + at * nv_), std::copy_n(row.guess, row.rows(), p + at);
      for (int r = 0; r < row.rows(); ++r) w[at + r] = scalar_product(row.J + r * nv_, v_free, nv_) + (r == 0 ? row.shift : 0.0);
      if (row.contact)
        friction[k++] = row.friction;
      else
        low[at - 3 * contacts] = row.low, high[at - 3 * contacts] = row.high;
      at += row.rows();
    }
    inverse_along_rows(e, factor, arena_, n, J, G);
    const ConeSolution found = solve_cones({contacts, n, G, w, friction, low, high}, arena_, p, least);
    if (!found.reached) return false;
    const double* x = solve_pushed(e, factor, arena_, n, J, p);
    for (int c = 0; c < nv_; ++c) v_end[c] = x_.v[c] + x[c];
    at = 0;
    for (int i = 0; i < count_; ++i) {
      if (!row_[i].acts || !row_[i].contact) continue;
      double* z = x_.z + row_[i].contact->iz;
      std::copy_n(least + at, 3, z), z[3] = found.natural_map;
      at += 3;
    }
    return true;
  }

  double approach(const StepRow& row, const double* v) const { return scalar_product(row.J, v, nv_); }
  /// Those that come as near as that in this step, at such velocities; returns the largest of these along all.
  double note_nearing(const double* v, double near) {
    double fastest = 0.0;
    for (int i = 0; i < count_; ++i) {
      const double speed = approach(row_[i], v);
      fastest = std::max(fastest, std::abs(speed));
      row_[i].acts = row_[i].acts || row_[i].distance + h_ * speed < near;
    }
    return fastest;
  }
  /// Those that would sink in; returns whether there were some.
  bool note_missed(const double* v, double fastest) {
    bool missed = false;
    for (int i = 0; i < count_; ++i) {
      const bool sinks = approach(row_[i], v) + row_[i].shift < -cones::reached * fastest;
      missed |= sinks && !row_[i].acts, row_[i].acts |= sinks;
    }
    return missed;
  }

  /// Contacts, stops and dry friction at x_.q.
  void find_rows(double end) {
    const auto& contacts = s_.plan.force_elements.all<RigidContact>();
    const auto& stops = s_.plan.force_elements.all<EndStop>();
    row_ = arena_.take<StepRow>(contacts.count + 2 * stops.count + s_.plan.frictions), count_ = 0;
    const double gravity = std::sqrt(dot(tree_.gravity, tree_.gravity));
    const auto add = [&](int rows) -> StepRow& {
      StepRow& row = row_[count_++];
      row = {nullptr, doubles(rows * nv_), 0.0, 0.0, 0.0, 0.0, 0.0, {}, false};
      std::fill(row.J, row.J + rows * nv_, 0.0);
      return row;
    };
    // `unit` is what a velocity weighs as much as 1 rad/s with
    const auto place = [&](StepRow& row, double distance, double unit) {
      row.distance = distance;
      row.shift =
          distance >= 0.0 ? distance / h_ : std::max(distance / h_, -std::sqrt(-2.0 * distance * unit * gravity / tree_.length));
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
        StepRow& row = add(3);
        row.contact = &c, row.friction = s_.parameter[c.friction.at];
        add_point_rows(tree_, k, c.frame.link, p, E, 1.0, row.J), add_point_rows(tree_, k, c.on.link, p, E, -1.0, row.J);
        place(row, distance, tree_.length);
        std::copy_n(x_.z + c.iz, 3, row.guess);
        const double e = s_.parameter[c.restitution.at], before = approach(row, x_.v);
        if (!(e > 0.0 && before < -contact_steps::bounces * gravity * h_)) continue;
        row.shift = e * before;
        if (distance > 0.0) --count_;  // it bounces once it touches
      }
    }
    const AllJoints<double> all = s_.plan.frictions > 0 || s_.plan.drives_loop_joints
                                      ? s_.joints(end, x_.q, x_.v)
                                      : AllJoints<double>{x_.q, x_.v, nullptr, nv_};
    const auto along = [&](int iv, double sign, double* J) {
      for (int k = 0; k < nv_ && iv >= nv_; ++k) J[k] = sign * all.J[(iv - nv_) * nv_ + k];
      if (iv < nv_) J[iv] = sign;
    };
    for (const EndStop& stop : stops)
      for (const double side : {1.0, -1.0}) {
        const double bound = s_.parameter[(side > 0.0 ? stop.limits.lower : stop.limits.upper).at];
        StepRow& row = add(1);
        along(stop.joint.iv, side, row.J);
        place(row, side * (all.q[stop.joint.iq] - bound), s_.unit(s_.plan.velocity_unit, stop.joint.iv));
        row.high = cones::unbounded;
      }
    for (int i = 0; i < s_.plan.frictions; ++i) {
      const JointFriction& friction = s_.plan.friction[i];
      StepRow& row = add(1);
      along(friction.iv, 1.0, row.J);
      row.high = h_ * friction.terms.of(s_.whole()).friction, row.low = -row.high, row.acts = true;
    }
  }

  System<double>& s_;
  const Tree& tree_;
  Arena& arena_;
  const SimulationState<double>& x_;
  double time_, h_;
  int nv_, count_ = 0;
  StepRow* row_ = nullptr;
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
