// Explicit steps on the manifold of configurations.
//
//   euler            q + h v,        v + h a                        van der Merwe, ch. 5.5
//   semi_implicit    v' = v + h a,   q + h v'                       symplectic if M is constant
//   rk4              Runge-Kutta of order 4, on the coordinates; quaternions are normalised
//   rkmk4, dopri5    on the argument u of q = q0 exp(u)             (Munthe-Kaas 1999; Dormand and Prince 1980)
//
// In some linkages (Bennett's, Bricard's), redundant rows are consistent only on closed loops, and lock the mechanism elsewhere. The stages of a step
// are off the loops by the order of the step. For such linkages each stage is first projected onto the loops. The step then integrates the projected
// f with the same order, and the projected f equals f on the loops.
#pragma once

#include <algorithm>

#include "system.hpp"

namespace sarrus {

/// Rates in one stage: q is the rate of the coordinates or of the argument u of exp(u), v that of v, z that of z.
template <class T> struct Slopes {
  T *q, *v, *z;
};

/// Stages of an explicit Runge-Kutta method with the initial state x0 = (q, v, z) at `time`.
template <class T> struct RungeKutta {
  System<T>& s;
  const Tableau& tableau;
  bool exponential;
  // if not null, each stage is projected onto the loops, and the velocities in this mask do not change
  const bool* fixed_velocities;
  Slopes<T>* slope;  // slopes of each stage
  T *u, *q, *v, *z;  // argument of the exponential and state of the current stage
  // only if work is computed: power in each stage; sums of the impulses (nv) of forces, and of the displacements (nv) for dampers, over the previous
  // stages; q in the middle of the step
  T *power = nullptr, *impulse = nullptr, *passed = nullptr, *q_middle = nullptr;

  explicit RungeKutta(System<T>& system, const bool* fixed = nullptr)
      : s(system),
        tableau(*facts(s.plan.method).tableau),
        exponential(facts(s.plan.method).exponential),
        fixed_velocities(fixed) {
    const int nq = s.tree.nq, nv = s.tree.nv, nz = s.plan.force_elements.nz;
    slope = s.arena.template take<Slopes<T>>(tableau.stages);
    for (int i = 0; i < tableau.stages; ++i)
      slope[i] = {s.arena.template take<T>(nq + 1), s.arena.template take<T>(nv), s.arena.template take<T>(nz)};
    u = s.arena.template take<T>(nq + 1), q = s.arena.template take<T>(nq);
    v = s.arena.template take<T>(nv), z = s.arena.template take<T>(nz);
    if (!s.acting) return;
    power = s.arena.template take<T>(tableau.stages), q_middle = s.arena.template take<T>(nq);
    impulse = s.arena.template take<T>(nv), passed = s.arena.template take<T>(nv);
    std::fill(impulse, impulse + nv, T(0.0)), std::fill(passed, passed + nv, T(0.0));
  }

  /// Compute the state at the time h after x0, from the weighted slopes of the first n stages.
  SARRUS_INLINE void combine(const SimulationState<T>& x0, const double* weight, int n, const T& h, T* q_to, T* v_to, T* z_to) {
    const auto sum = [&](T* to, const T* from, int size, T* Slopes<T>::* part) SARRUS_INLINED {
      for (int k = 0; k < size; ++k) to[k] = from ? from[k] : T(0.0);
      for (int j = 0; j < n; ++j)
        if (weight[j] != 0.0) {
          const T length = h * T(weight[j]);
          const T* rate = slope[j].*part;
          for (int k = 0; k < size; ++k) to[k] += rate[k] * length;
        }
    };
    if (exponential) {
      sum(u, nullptr, s.tree.nv, &Slopes<T>::q);
      integrate(s.tree, x0.q, u, q_to);
    } else {
      sum(q_to, x0.q, s.tree.nq, &Slopes<T>::q);
    }
    sum(v_to, x0.v, s.tree.nv, &Slopes<T>::v);
    sum(z_to, x0.z, s.plan.force_elements.nz, &Slopes<T>::z);
  }

  /// Project the current stage onto the loops, in the lanes that need it.
  SARRUS_INLINE void close(const T& stage_time) {
    const int nq = s.tree.nq, nv = s.tree.nv;
    T *q_on = s.arena.template take<T>(nq), *v_on = s.arena.template take<T>(nv);
    std::copy(q, q + nq, q_on), std::copy(v, v + nv, v_on);
    project(s, stage_time, q_on, v_on);
    copy_where(s.closes > T(0.0), q_on, q, nq), copy_where(s.closes > T(0.0), v_on, v, nv);
  }

  /// Compute the slopes of stage i.
  SARRUS_INLINE void evaluate_stage(const SimulationState<T>& x0, int i, const T& time, const T& h) {
    const T stage_time = time + h * T(tableau.c[i]);
    if (i == 0) {
      s.evaluate(stage_time, x0.q, x0.v, x0.z, slope[0].v, slope[0].z);
      add_work(i, h, x0.v);
      if (!exponential) return coordinate_rate(s.tree, x0.q, x0.v, slope[0].q);
      for (int k = 0; k < s.tree.nv; ++k) slope[0].q[k] = x0.v[k];  // u = 0
      return;
    }
    combine(x0, tableau.a + i * tableau.stages, i, h, q, v, z);
    if (fixed_velocities) project(s, stage_time, q, v, fixed_velocities);
    if (!fixed_velocities && any(s.closes > T(0.0))) {
      close(stage_time);
      if (exponential) difference(s.tree, x0.q, q, u);
    }
    s.watches = i == tableau.stages / 2 && !fixed_velocities && s.guards();
    if (exponential)
      exponential_rate(s.tree, u, v, slope[i].q);
    else
      coordinate_rate(s.tree, q, v, slope[i].q);
    s.evaluate(stage_time, q, v, z, slope[i].v, slope[i].z);
    add_work(i, h, v);
    if (s.acting && i == tableau.stages / 2) std::copy(q, q + s.tree.nq, q_middle);
  }

  SARRUS_INLINE void add_work(int i, const T& h, const T* v_now) {
    if (!s.acting) return;
    const T length = h * T(tableau.b[i]);
    power[i] = s.power;
    s.work.supplied += power[i] * length;
    for (int k = 0; k < s.tree.nv; ++k) impulse[k] += s.acting[k] * length, passed[k] += v_now[k] * length;
  }
};

template <class T> void euler_step(System<T>& s, const T& time, const T& h, const SimulationState<T>& x, bool semi_implicit) {
  const int nq = s.tree.nq, nv = s.tree.nv, nz = s.plan.force_elements.nz;
  T *a = s.arena.template take<T>(nv), *z_dot = s.arena.template take<T>(nz);
  T *u = s.arena.template take<T>(nv), *q = s.arena.template take<T>(nq);
  s.evaluate(time, x.q, x.v, x.z, a, z_dot);
  for (int k = 0; k < nv; ++k) {
    const T before = x.v[k];
    x.v[k] += h * a[k];
    u[k] = h * (semi_implicit ? x.v[k] : before);
  }
  integrate(s.tree, x.q, u, q);
  for (int k = 0; k < nq; ++k) x.q[k] = q[k];
  for (int k = 0; k < nz; ++k) x.z[k] += h * z_dot[k];
}

template <class T> void runge_kutta_step(System<T>& s, const T& time, const T& h, const SimulationState<T>& x,
                                         const bool* fixed_velocities = nullptr) {
  RungeKutta<T> step(s, fixed_velocities);
  const int stages = step.tableau.stages;
  for (int i = 0; i < stages; ++i) step.evaluate_stage(x, i, time, h);
  step.combine(x, step.tableau.b, stages, h, step.q, step.v, step.z);
  if (s.acting && (s.fast || !s.tree.ties_links))
    s.work.quadrature_error += s.impulse_work(h, step.impulse, step.passed, step.q_middle, x.v, step.v) - s.work.supplied;
  if (step.exponential)
    for (int k = 0; k < s.tree.nq; ++k) x.q[k] = step.q[k];
  else
    normalize(s.tree, step.q, x.q);
  for (int k = 0; k < s.tree.nv; ++k) x.v[k] = step.v[k];
  for (int k = 0; k < s.plan.force_elements.nz; ++k) x.z[k] = step.z[k];
}

}  // namespace sarrus
