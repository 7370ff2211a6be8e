// Stiffness of the applied forces relative to the step h: the largest |lambda| h of the eigenvalues lambda of small motions about the state.
//
// If M and the loops are assumed constant, small motions satisfy p-dot = w, w-dot = M^-1 d tau(p, w, z), z-dot = d zeta(p, w, z). Power iteration
// finds the largest eigenvalue of this matrix times h; products with the matrix are finite differences of the forces (as in Sommeijer, Shampine and
// Verwer 1998). An explicit step is stable only if the result is in its stability region. The forces are those of controllers, contacts, end stops,
// sticking friction, and the mechanism's springs and viscous dampers. Functions of the caller are not included. Friction of a contact, and the
// limited damper of an end stop, are replaced by a linear damper with the same force at the current speed (a chord of the force's curve). The slope
// of the curve would not detect the instability: if steps are too long, a contact slips back and forth at speeds at which this slope is small. Fast
// steady slipping is harmless, and its chord is small too.
#pragma once

#include <cstdint>

#include "friction.hpp"

namespace sarrus {

/// Add the mechanism's springs and viscous dampers. Dry friction is omitted: it jumps at rest, so it has no rate.
template <class T> void add_smooth_terms(const Tree& tree, Arena& arena, const T* q, const T* v, T* tau) {
  const auto numbers = tree.numbers<T>();
  for (int k = 0; k < tree.nv; ++k) {
    const PassiveTerms& f = tree.passive[k];
    tau[k] -= T(numbers(f.damping)) * v[k];
    if (f.iq >= 0) tau[k] -= T(numbers(f.stiffness)) * q[f.iq];
    if (!tree.has_nonlinear_forces) continue;
    tau[k] -= nonlinear_damper(f.nonlinear, numbers, v[k]);
    if (f.iq >= 0) tau[k] -= nonlinear_spring(f.nonlinear, numbers, deflection(f, numbers, q, BallDeflection<T>(), 0));
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

/// Fastest rate times h, and the fraction of energy that a step dissipates numerically in the motion with this rate.
template <class T> struct Stiffness {
  T rate, eaten;
};

/// Return the fraction of energy that a step dissipates numerically in the fastest motion. Let z be the complex eigenvalue of this motion times h. It
/// is a root of z^2 - a z + b, where a and b are fitted to three consecutive iterates y0, y1, y2 of the power iteration. In a step, the Runge-Kutta
/// method of order 4 removes the fraction 1 - |R(z)|^2 of the motion's energy, and the exact solution the fraction 1 - |exp z|^2, about -2 Re z. The
/// result is zero unless the method removes more than twice the fraction of the exact solution: a damped motion decays soon anyway.
template <class T> T eaten_by_steps(const T* y0, const T* y1, const T* y2, const T& g1, const T& g2, int n) {
  T s00 = T(0.0), s01 = T(0.0), s02 = T(0.0), s12 = T(0.0);
  for (int k = 0; k < n; ++k) s00 += y0[k] * y0[k], s01 += y0[k] * y1[k], s02 += y0[k] * y2[k], s12 += y1[k] * y2[k];
  // g1 g2 y2 = a g1 y1 - b y0, with y0, y1, y2 of norm 1
  const T independent = T(1.0) - s01 * s01, inverse = T(1.0) / most(independent, T(1e-12));
  const T a = g2 * (s12 - s01 * s02) * inverse, b = -g1 * g2 * (s02 - s01 * s12) * inverse;
  T off = T(0.0);
  for (int k = 0; k < n; ++k) {
    const T left = y2[k] - (a * y1[k] / g2 - b * y0[k] / (g1 * g2));
    off += left * left;
  }
  const T real = T(0.5) * a, square = b - real * real;
  // true if a single pair of complex eigenvalues dominates
  const auto swings = both(both(independent > T(1e-6), off < T(1e-2)), square > real * real);
  const T imaginary = sqrt(select(swings, square, T(0.0)));
  T x = T(1.0), y = T(0.0);  // R(z) = 1 + z (1 + z/2 (1 + z/3 (1 + z/4)))
  for (double k : {4.0, 3.0, 2.0, 1.0}) {
    const T turned = (x * real - y * imaginary) * T(1.0 / k);
    y = (x * imaginary + y * real) * T(1.0 / k), x = T(1.0) + turned;
  }
  const T eaten = T(1.0) - x * x - y * y;
  return select(both(swings, eaten > T(-4.0) * real), eaten, T(0.0));
}

template <class T>
SARRUS_NOINLINE Stiffness<T> fastest_rate(System<T>& s, const T& time, const T& h, const T* q, const T* v, const T* z,
                                          Response<T>& response, bool calls = false) {
  constexpr int rounds = 5;
  const Tree& tree = s.tree;
  Arena& arena = s.arena;
  const Arena::Scope scope(arena);
  const int nv = tree.nv, nz = s.plan.force_elements.nz, n = 2 * nv + nz;
  const auto take = [&](int size) { return arena.template take<T>(size); };
  T *tau = take(nv), *z_dot = take(nz), *tau_varied = take(nv), *z_dot_varied = take(nz);
  T *y = take(n), *next = take(n), *before = take(n), *u = take(nv), *q_varied = take(tree.nq), *v_varied = take(nv),
    *z_varied = take(nz);
  const auto forces = [&](const T* at, const T* moving, const T* inner, T* f, T* rates) {
    const Arena::Scope inside(arena);
    s.forces(time, at, moving, inner, f, rates, calls);
    add_smooth_terms(tree, arena, at, moving, f);
  };
  const int chords = s.plan.force_elements.chords();
  s.chords = {take(chords), false};
  for (int i = 0; i < chords; ++i) s.chords.chord[i] = T(1.0);  // contacts that do not touch do not overwrite this value
  forces(q, v, z, tau, z_dot);
  s.chords.frozen = true;
  // y has the units of the velocities and of z, so that fast motions in metres and in radians have comparable norms
  const auto unit = [&](int k) { return s.unit(s.plan.velocity_unit, k); };
  const auto z_unit = [&](int k) { return s.unit(s.plan.z_unit, k); };
  // length of the displacement for differences; velocities change by 1e-6, far less than any slip speed of friction
  const T small = h * T(1e-6);
  for (int k = 0; k < n; ++k) y[k] = T(scattered(k));
  T size = sqrt(sum_of_squares(y, n)), growth[rounds], eaten = T(0.0);
  for (int round = 0; round < rounds; ++round) {
    for (int k = 0; k < n; ++k) y[k] = y[k] / size;
    for (int k = 0; k < nv; ++k) u[k] = y[k] * small * unit(k), v_varied[k] = v[k] + y[nv + k] * small / h * unit(k);
    for (int k = 0; k < nz; ++k) z_varied[k] = z[k] + y[2 * nv + k] * small * z_unit(k);
    integrate(tree, q, u, q_varied);
    forces(q_varied, v_varied, z_varied, tau_varied, z_dot_varied);
    for (int k = 0; k < nv; ++k) tau_varied[k] = (tau_varied[k] - tau[k]) / small;
    const Arena::Scope inside(arena);
    response(tau_varied);
    for (int k = 0; k < nv; ++k) next[k] = y[nv + k], next[nv + k] = tau_varied[k] * h * h / unit(k);
    for (int k = 0; k < nz; ++k) next[2 * nv + k] = (z_dot_varied[k] - z_dot[k]) * h / (small * z_unit(k));
    size = growth[round] = sqrt(sum_of_squares(next, n) + T(1e-300));
    if (round == rounds - 1 && facts(s.plan.method).order == 4) {
      for (int k = 0; k < n; ++k) next[k] = next[k] / size;
      eaten = eaten_by_steps(before, y, next, growth[rounds - 2], size, n);
    }
    std::swap(before, y), std::swap(y, next);
  }
  s.chords = {};
  // use the geometric mean of the last two rounds, because the growth of an oscillation alternates between the rounds of its displacements and those
  // of its velocities; earlier rounds only find the direction of the eigenvector
  const T rate = sqrt(growth[rounds - 2] * growth[rounds - 1]);
  return {select(rate > T(1e-12), rate, T(0.0)), eaten};
}

/// Record the fastest rate at the end of step k if it exceeds the recorded one. It is computed at intervals, because it costs as much as four
/// evaluations. It is also computed soon after a contact or an end stop begins or ceases to press.
template <class T>
void note_rates(System<T>& s, std::int64_t k, const T& time, const T& h, const SimulationState<T>& x, const Record<T>& record) {
  const int period = facts(s.plan.method).order == 1 ? 256 : 64;
  const bool regular = k % period == 0;
  const auto changed = both(abs(s.pressing - *record.pressing) > T(0.0), *record.looked_at < T(static_cast<double>(k - 7)));
  if (!regular && !any(changed)) return;
  const T pressing = s.pressing, status = s.status;
  const Arena::Scope scope(s.arena);
  Response<T> response(s, time, x.q, x.v);
  const Stiffness<T> fastest = fastest_rate(s, time, h, x.q, x.v, x.z, response);
  s.status = status;
  const auto due = select(changed, T(1.0), T(regular ? 1.0 : 0.0)) > T(0.5);
  *record.stiffness = select(both(due, fastest.rate > *record.stiffness), fastest.rate, *record.stiffness);
  // the computed fraction represents all steps since the last evaluation
  if (regular) *record.energy_eaten += fastest.eaten * T(k == 0 ? 1 : period);
  *record.pressing = select(due, pressing, *record.pressing),
  *record.looked_at = select(due, T(static_cast<double>(k)), *record.looked_at);
}

}  // namespace sarrus
