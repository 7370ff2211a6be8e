// Response of contacts at one state, with loop constraints: accelerations and forces, or the velocities after an impact.
//
//   M a + h = tau + J^T lambda + J_c^T p,   J a = gamma,   u-dot = J_c a + J_c-dot v
//
// For contacts at rest along their normals, (u-dot, p) satisfy the conditions of cone_problem.hpp. Friction of slipping contacts opposes their
// velocity; separating contacts have no forces. Friction against spinning and rolling adds one cone each, with the same p_n, for rates of rotation.
// An impact has the same equations for impulses and velocities, with Newton's restitution (u_n after >= -e u_n before) or Poisson's (poisson.hpp),
// which is reduced if it would add energy (restitution.hpp). A point or a ball of the first body touches a plane of the second. The relative velocity
// of a ball is that of its centre, differentiated in the plane's frame, because the centre keeps its distance from the plane. The material point in
// contact does not.
//
//   cost    the equation of constrained dynamics, its factor, two solves and half a solve per row
#pragma once

#include <tuple>

#include "../dynamics/kinematics.hpp"
#include "../loops/projection.hpp"
#include "../mechanism/status.hpp"
#include "../spatial/rotation.hpp"
#include "columns.hpp"
#include "restitution.hpp"

namespace sarrus {

/// Add the Jacobian of the point p of a link, in the axes E and multiplied by `sign`, to three rows of J.
inline void add_point_rows(const Tree& tree, const Kinematics<double>& k, int link, const Vec3<double>& p, const Mat3<double>& E,
                           double sign, double* J) {
  for (int b = link; b > 0; b = tree.link[b].parent)
    for (int c = tree.link[b].iv; c < tree.link[b].iv + tree.link[b].nv; ++c) {
      const Motion<double>& s = k.column[c];
      const Vec3<double> along = E * Vec3<double>(s.linear + cross(s.angular, Vec3<double>(p - k.link[b].X.p)));
      for (int r = 0; r < 3; ++r) J[r * tree.nv + c] += sign * along(r);
    }
}

/// Add the Jacobian of a link's angular velocity, in the axes E and multiplied by `sign`, to three rows of J.
inline void add_turning_rows(const Tree& tree, const Kinematics<double>& k, int link, const Mat3<double>& E, double sign,
                             double* J) {
  for (int b = link; b > 0; b = tree.link[b].parent)
    for (int c = tree.link[b].iv; c < tree.link[b].iv + tree.link[b].nv; ++c) {
      const Vec3<double> along = E * k.column[c].angular;
      for (int r = 0; r < 3; ++r) J[r * tree.nv + c] += sign * along(r);
    }
}

/// Return the rate of the relative angular velocity of two bodies at zero joint accelerations, in axes fixed in the second body.
inline Vec3<double> turning_bias(const Kinematics<double>& k, const ContactPair& pair) {
  const LinkMotion<double>&first = k.link[pair.first], &second = k.link[pair.second];
  return first.A.angular - second.A.angular - cross(second.V.angular, first.V.angular);
}

/// Compute velocity and acceleration of the point of a link that coincides with p at this instant.
inline void point_motion(const LinkMotion<double>& b, const Vec3<double>& p, Vec3<double>& v, Vec3<double>& a) {
  const Vec3<double> r = p - b.X.p, &w = b.V.angular;
  v = b.V.linear + cross(w, r);
  a = b.A.linear + cross(b.A.angular, r) + cross(w, cross(w, r));
}

/// Return J_c-dot v of one contact, in the axes of the contact.
inline Vec3<double> contact_bias(const Kinematics<double>& k, const ContactPair& pair, const Vec3<double>& p,
                                 const Mat3<double>& E, double radius) {
  const Vec3<double> normal = E.row(0), center = p + normal * radius;
  const LinkMotion<double>&first = k.link[pair.first], &second = k.link[pair.second];
  Vec3<double> v1, a1, v2, a2;
  point_motion(first, center, v1, a1), point_motion(second, center, v2, a2);
  const Vec3<double>& w = second.V.angular;
  const Vec3<double> a = a1 - a2 - cross(w, Vec3<double>(v1 - v2)) * 2.0;
  return E * Vec3<double>(a - cross(turning_bias(k, pair), normal) * radius);
}

/// A contact point that moves along both surfaces: its velocity, and the rate of the normal there (world).
struct MovingPlace {
  Vec3<double> p_dot, n_dot;
};

/// Return the rate of the relative velocity of two bodies at a moving contact point p, in axes that rotate with the normal but do not spin about it.
/// The accelerations of the bodies are those in k.
inline Vec3<double> moving_bias(const Kinematics<double>& k, const ContactPair& pair, const Vec3<double>& p,
                                const Mat3<double>& E, const MovingPlace& at) {
  Vec3<double> u = zero3<double>(), a = zero3<double>();
  for (const auto& [link, sign] : {std::pair{pair.first, 1.0}, std::pair{pair.second, -1.0}}) {
    const LinkMotion<double>& b = k.link[link];
    const Vec3<double> r = p - b.X.p, leaves = at.p_dot - b.V.linear;
    u += (b.V.linear + cross(b.V.angular, r)) * sign;
    a += (b.A.linear + cross(b.A.angular, r) + cross(b.V.angular, leaves)) * sign;
  }
  const Vec3<double> turns = E * at.n_dot, along = E * u;  // for a tangent t: (t . u)-dot = t . a - (t . n_dot) (n . u)
  return E * a + vec3<double>(dot(turns, along), -turns(1) * along(0), -turns(2) * along(0));
}

/// Constraint rows of the contacts of a state. Separating contacts have no rows.
struct ContactRows {
  int count = 0;
  int* index;
  Mat3<double>* axes;
  double *J, *w, *friction, *slip, *expands, *rebound;  // expands, rebound: Poisson's e, Newton's e u_n
  MomentFriction* moment;
  bool slips = false;
  int moments = 0, size = 0;  // size: number of rows of all contacts and moments

  /// Add the rows of rotational friction of a contact. `turning`: three candidate rows, the first about the normal; u: velocities along them.
  void add_moments(const ContactPair& pair, int contact, int nv, const double* turning, const double* free, const double* u,
                   double rest) {
    for (const auto& [first, count, mu] : {std::tuple{0, 1, pair.torsional}, std::tuple{1, 2, pair.rolling}}) {
      if (mu == 0.0) continue;
      MomentFriction& m = moment[moments++] = {contact, count, mu};
      double fast = 0.0;
      for (int r = first; r < first + count; ++r) fast += u[r] * u[r];
      fast = std::sqrt(fast);
      for (int r = 0; r < count; ++r, ++size) {
        std::copy_n(turning + (first + r) * nv, nv, J + size * nv), w[size] = free[first + r];
        if (fast > rest) m.slip[r] = u[first + r] / fast;
      }
    }
  }
};

inline double contact_response(const Tree& tree, Arena& arena, const StateContacts& contacts, double time, const double* q,
                               const double* v, const double* tau, ContactAnswer& answer) {
  const int nv = tree.nv, most = contacts.count;
  const auto take = [&](int n) { return arena.take<double>(n); };
  const bool impact = !tau;
  OffLoops<double> off;
  LoopInput<double> in = {q, v, tau};
  in.time = &time, in.off = &off;
  LoopEquation<double> e =
      impact ? metric_equation<double>(tree, arena, q, nullptr, &time, nullptr, false, &off) : loop_equation(tree, arena, in);
  if (impact && tree.loops.rows > 0) {
    missing_velocity<double>(tree, arena, e, q, v, &time, nullptr, e.b + nv);
    e.terms = in_metric(e.matrix, v);
  }
  const LoopSolution<double> free = solve_tightly(e, arena, e.b);
  if (off.open > 0.0) check_gap(e, arena, free, off);
  if (off.fault > 1.0 || (!impact && off.fault > 0.0)) return off_loops;
  if (free.error > tolerances::contradiction) return free.error < tolerances::undetermined ? inconsistent_constraints : no_answer;

  const Kinematics<double> k = Kinematics<double>::over(tree, take(Kinematics<double>::size(tree)));
  kinematics<double>(tree, arena, q, v, nullptr, k);
  ContactRows rows = {0,
                      arena.take<int>(most),
                      arena.take<Mat3<double>>(most),
                      take(6 * most * nv),
                      take(6 * most),
                      take(most),
                      take(2 * most),
                      take(most),
                      take(most),
                      arena.take<MomentFriction>(2 * most)};
  double speed = tree.length, turning = 1.0;  // units of velocity: one mechanism length per second, one radian per second
  for (int i = 1; i < tree.links; ++i) {
    speed = std::max(speed, std::sqrt(dot(k.link[i].V.linear, k.link[i].V.linear)));
    turning = std::max(turning, std::sqrt(dot(k.link[i].V.angular, k.link[i].V.angular)));
  }
  const double rest = tolerances::at_rest * speed;
  answer.speed = 0.0;
  for (int i = 0; i < most; ++i) {
    const ContactPair& pair = contacts.pair[i];
    const Vec3<double> normal = Vec3<double>(contacts.normal + 3 * i), centre = Vec3<double>(contacts.point + 3 * i);
    const Transform<double>& X = k.link[pair.first].X;
    const Vec3<double> p = X.p + X.R * centre - normal * contacts.radius[i];
    const Mat3<double> E = contact_axes(normal);
    double *J = rows.J + 3 * rows.count * nv, *w = rows.w + 3 * rows.count, *slip = rows.slip + 2 * rows.count;
    std::fill(J, J + 3 * nv, 0.0);
    add_point_rows(tree, k, pair.first, p, E, 1.0, J), add_point_rows(tree, k, pair.second, p, E, -1.0, J);
    const double u[3] = {scalar_product(J, v, nv), scalar_product(J + nv, v, nv), scalar_product(J + 2 * nv, v, nv)};
    answer.speed = std::max(answer.speed, -u[0] > rest ? -u[0] : 0.0);
    if (!impact && u[0] > rest) continue;  // the contact separates
    slip[0] = slip[1] = 0.0;
    const Vec3<double> bias = impact ? zero3<double>() : contact_bias(k, pair, p, E, contacts.radius[i]);
    for (int r = 0; r < 3; ++r) w[r] = scalar_product(J + r * nv, free.x, nv) + (impact ? u[r] : bias(r));
    if (impact) {
      rows.expands[rows.count] = pair.poisson ? pair.restitution : 0.0;
      w[0] += rows.rebound[rows.count] = (pair.poisson ? 0.0 : pair.restitution) * std::min(u[0], 0.0);
    } else if (const double fast = std::sqrt(u[1] * u[1] + u[2] * u[2]); fast > rest) {
      slip[0] = u[1] / fast, slip[1] = u[2] / fast, rows.slips = true;
    }
    rows.index[rows.count] = i, rows.axes[rows.count] = E, rows.friction[rows.count] = pair.friction, ++rows.count;
  }
  rows.size = 3 * rows.count;
  for (int i = 0; i < rows.count; ++i) {
    const ContactPair& pair = contacts.pair[rows.index[i]];
    if (pair.torsional == 0.0 && pair.rolling == 0.0) continue;
    double *J = take(3 * nv), w[3], u[3];
    std::fill(J, J + 3 * nv, 0.0);
    add_turning_rows(tree, k, pair.first, rows.axes[i], 1.0, J), add_turning_rows(tree, k, pair.second, rows.axes[i], -1.0, J);
    const Vec3<double> bias = impact ? zero3<double>() : rows.axes[i] * turning_bias(k, pair);
    for (int r = 0; r < 3; ++r)
      u[r] = scalar_product(J + r * nv, v, nv), w[r] = scalar_product(J + r * nv, free.x, nv) + (impact ? u[r] : bias(r));
    rows.add_moments(pair, i, nv, J, w, u, impact ? HUGE_VAL : tolerances::at_rest * turning);
  }

  const int n = rows.size;
  double *G = take(n * n), *p = take(n), *least = take(n);
  std::fill(p, p + n, 0.0), std::fill(answer.force, answer.force + 3 * most, 0.0);
  std::fill(answer.moment, answer.moment + 3 * most, 0.0);
  inverse_along_rows(e, free.factor, arena, n, rows.J, G);
  double* motion = take(nv);
  for (int c = 0; c < nv; ++c) motion[c] = free.x[c] + (impact ? v[c] : 0.0);
  rest_on_loops(e, n, rows.J, G, motion, nullptr, rows.w);
  const ConeProblem problem = {
      rows.count, n, G, rows.w, rows.friction, nullptr, nullptr, rows.slips ? rows.slip : nullptr, rows.moments, rows.moment};
  SolverLimit limit;
  answer.cones = solve_parts(problem, arena, p, least, limit);
  if (impact && answer.cones.reached) {
    double* before = take(n);
    std::copy(rows.w, rows.w + n, before);
    for (int i = 0; i < rows.count; ++i) before[3 * i] -= rows.rebound[i];
    RestitutionLimit restitution(problem, {before, nullptr, rows.rebound}, arena, p, least, answer.cones, limit);
    restitution.newton(rows.w);
    if (answer.cones.reached && std::any_of(rows.expands, rows.expands + rows.count, [](double e) { return e > 0.0; }))
      restitution.poisson(rows.expands, take(n));
  }
  if (!answer.cones.reached) return no_convergence;
  const double* x = solve_pushed(e, free.factor, arena, n, rows.J, p);
  for (int c = 0; c < nv; ++c) answer.motion[c] = x[c] + (impact ? v[c] : 0.0);
  for (int i = 0; i < rows.count; ++i)
    for (int r = 0; r < 3; ++r)
      for (int axis = 0; axis < 3; ++axis) answer.force[3 * rows.index[i] + axis] += rows.axes[i](r, axis) * least[3 * i + r];
  int at = 3 * rows.count;
  for (const MomentFriction* m = rows.moment; m < rows.moment + rows.moments; ++m)
    for (int r = 0; r < m->rows; ++r, ++at)
      for (int axis = 0; axis < 3; ++axis)
        answer.moment[3 * rows.index[m->contact] + axis] += rows.axes[m->contact](m->rows == 1 ? 0 : 1 + r, axis) * least[at];
  return fine;
}

}  // namespace sarrus
