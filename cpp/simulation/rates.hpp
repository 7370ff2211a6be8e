// How stiff the forces that act are for a step: the largest |rate| of a motion about the state at hand, times h.
//
// With M and the loops as they are, small motions follow p-dot = w, w-dot = M^-1 d tau(p, w, z), z-dot = d zeta(p, w, z). Power iteration
// on this matrix times h, with its products by differences of the forces, as in explicit methods that choose their stages
// (Sommeijer, Shampine and Verwer 1998): an explicit step is stable only where the result is within its region. What counts is what
// acts: controllers, contact, end stops, friction that sticks; springs and viscous dampers of the mechanism. Functions of the caller do not.
#pragma once

#include <cstdint>

#include "system.hpp"

namespace sarrus {

/// Adds springs and viscous dampers of the mechanism; not dry friction, whose jump at rest is no rate.
template <class T> void add_linear_terms(const Tree& tree, Arena& arena, const T* q, const T* v, T* tau) {
  for (int k = 0; k < tree.nv; ++k) {
    const PassiveTerms& f = tree.passive[k];
    tau[k] -= T(f.damping) * v[k];
    if (f.iq >= 0) tau[k] -= T(f.stiffness) * q[f.iq];
  }
  if (!tree.ties_links) return;
  const Kinematics<T> k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, q, v, static_cast<const T*>(nullptr), k);
  const auto push = [&](int link, int, const Force<T>& f, const Vec3<T>& p) {
    for (int b = link; b > 0; b = tree.link[b].parent) {
      const Vec3<T> moment = f.angular + cross(Vec3<T>(p - k.link[b].X.p), f.linear);
      for (int c = tree.link[b].iv; c < tree.link[b].iv + tree.link[b].nv; ++c)
        tau[c] += dot(k.column[c].linear, f.linear) + dot(k.column[c].angular, moment);
    }
  };
  each_force_between(tree, k, push, false);
}

template <class T>
SARRUS_NOINLINE T fastest_rate(System<T>& s, const T& time, const T& h, const T* q, const T* v, const T* z) {
  const Tree& tree = s.tree;
  Arena& arena = s.arena;
  const Arena::Scope scope(arena);
  const int nv = tree.nv, nz = s.plan.force_elements.nz, n = 2 * nv + nz;
  const auto take = [&](int size) { return arena.template take<T>(size); };
  T *tau = take(nv), *z_dot = take(nz), *there = take(nv), *z_dot_there = take(nz), *a = take(nv), *a_there = take(nv);
  T *y = take(n), *next = take(n), *u = take(nv), *q_there = take(tree.nq), *v_there = take(nv), *z_there = take(nz);
  const auto forces = [&](const T* at, const T* moving, const T* inner, T* f, T* rates) {
    const Arena::Scope inside(arena);
    s.forces(time, at, moving, inner, f, rates, false);
    add_linear_terms(tree, arena, at, moving, f);
  };
  const auto accelerations = [&](T* f, T* to) {
    const Arena::Scope inside(arena);
    s.accelerations(time, q, v, f, to);
  };
  forces(q, v, z, tau, z_dot);
  accelerations(tau, a);
  const T small = h * T(1e-6);  // of a displacement; velocities change by 1e-6: little against any speed at which friction slips
  for (int k = 0; k < n; ++k) y[k] = T(scattered(k));
  T size = sqrt(sum_of_squares(y, n)), growth[3];
  for (T& by : growth) {
    for (int k = 0; k < n; ++k) y[k] = y[k] / size;
    for (int k = 0; k < nv; ++k) u[k] = y[k] * small, v_there[k] = v[k] + y[nv + k] * small / h;
    for (int k = 0; k < nz; ++k) z_there[k] = z[k] + y[2 * nv + k] * small;
    integrate(tree, q, u, q_there);
    forces(q_there, v_there, z_there, there, z_dot_there);
    // accelerations are linear in forces: a change of size 1 keeps its digits
    for (int k = 0; k < nv; ++k) there[k] = tau[k] + (there[k] - tau[k]) / small;
    accelerations(there, a_there);
    for (int k = 0; k < nv; ++k) next[k] = y[nv + k], next[nv + k] = (a_there[k] - a[k]) * h * h;
    for (int k = 0; k < nz; ++k) next[2 * nv + k] = (z_dot_there[k] - z_dot[k]) * h / small;
    std::swap(y, next);
    size = sqrt(sum_of_squares(y, n) + T(1e-300));
    by = size;
  }
  // two turns, because a spring's motion changes from place to speed and back; the first one aims
  const T rate = sqrt(growth[1] * growth[2]);
  return select(rate > T(1e-12), rate, T(0.0));
}

/// Looks, at the end of step k, whether a rate is faster than those in the record: every so many steps, as one look costs as much as four
/// evaluations, and soon where something begins to press or no longer does.
template <class T>
void note_rates(System<T>& s, std::int64_t k, const T& time, const T& h, const SimulationState<T>& x, T* record) {
  const bool regular = k % (facts(s.plan.method).order == 1 ? 256 : 64) == 0;
  const auto changed = both(abs(s.pressing - record[1]) > T(0.0), record[2] < T(static_cast<double>(k - 7)));
  if (!regular && !any(changed)) return;
  const T pressing = s.pressing, status = s.status, rate = fastest_rate(s, time, h, x.q, x.v, x.z);
  s.status = status;
  const auto due = select(changed, T(1.0), T(regular ? 1.0 : 0.0)) > T(0.5);
  record[0] = select(both(due, rate > record[0]), rate, record[0]);
  record[1] = select(due, pressing, record[1]), record[2] = select(due, T(static_cast<double>(k)), record[2]);
}

}  // namespace sarrus
