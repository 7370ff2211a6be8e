// A step of Dormand and Prince's pair of orders 5 and 4, for the argument u of q = q0 exp(u), with dense output of order 4 (Hairer, Norsett and
// Wanner II.5 and II.6). The last stage is not reused as the first one of the next step, because a projection may change the state in between.
#pragma once

#include "friction.hpp"
#include "simulation_kernels.hpp"
#include "steps.hpp"

namespace sarrus {

/// Result of a trial step: final state, error, and interpolating polynomial.
template <class T> struct Trial {
  T* x;  // final (q, v, z)
  T error;  // largest error of (u, v, z), relative to the tolerance
  T* dense;  // 5 x (2 nv + nz): coefficients of the polynomials of (u, v, z), see `between`
  T* work = nullptr;  // (5) coefficients of the polynomial of the work in the step; null: not computed
};

/// Write the five coefficients of the interpolating polynomial of one component, each `width` values after the previous one. The component changes
/// from `start` by `difference`; `first` and `last` are its rates in the first and the last stage (Hairer, Norsett and Wanner II.6, DOPRI5: contd5).
template <class T>
SARRUS_INLINE void polynomial(const T& start, const T& difference, const T& first, const T& last, const T& bend, int width,
                              T* d) {
  d[0] = start;
  d[width] = difference;
  d[2 * width] = first - difference;
  d[3 * width] = difference - last - d[2 * width];
  d[4 * width] = bend;
}

template <class T>
void embedded_step(System<T>& s, const T& time, const T& h, const T* row, double relative, double absolute, Trial<T>& out) {
  const int nv = s.tree.nv, nz = s.plan.force_elements.nz, width = 2 * nv + nz;
  RungeKutta<T> step(s);
  const Tableau& tableau = step.tableau;
  const int stages = tableau.stages;
  const auto x0 = SimulationState<T>::of(s.tree, const_cast<T*>(row)), x1 = SimulationState<T>::of(s.tree, out.x);
  for (int i = 0; i < stages; ++i) step.evaluate_stage(x0, i, time, h);
  step.combine(x0, tableau.b, stages - 1, h, x1.q, x1.v, x1.z);  // this call also leaves the weighted sum of the q slopes in u

  out.error = T(0.0);
  T* d = out.dense;
  // set the polynomial of one component from its slopes, its initial value and its change (for u: zero and the displacement)
  const auto finish = [&](T* Slopes<T>::* part, int k, const T& start, const T& difference, const T& size, double unit) {
    T off = T(0.0), bend = T(0.0);
    for (int i = 0; i < stages; ++i)
      off += (step.slope[i].*part)[k] * T(tableau.error[i]), bend += (step.slope[i].*part)[k] * T(tableau.dense[i]);
    out.error = most(out.error, abs(off * h) / (size * T(relative) + T(absolute * unit)));
    polynomial(start, difference, T((step.slope[0].*part)[k] * h), T((step.slope[stages - 1].*part)[k] * h), T(bend * h), width,
               d++);
  };
  const auto unit = [&](int k) { return s.unit(s.plan.velocity_unit, k); };
  for (int k = 0; k < nv; ++k) finish(&Slopes<T>::q, k, T(0.0), step.u[k], abs(step.u[k]), unit(k));
  for (int k = 0; k < nv; ++k) finish(&Slopes<T>::v, k, x0.v[k], x1.v[k] - x0.v[k], most(abs(x0.v[k]), abs(x1.v[k])), unit(k));
  if (s.acting) {
    T bend = T(0.0);
    for (int i = 0; i < stages; ++i) bend += step.power[i] * T(tableau.dense[i]);
    polynomial(T(0.0), s.work.supplied, T(step.power[0] * h), T(step.power[stages - 1] * h), T(bend * h), 1, out.work);
  }
  for (int k = 0; k < nz; ++k)
    finish(&Slopes<T>::z, k, x0.z[k], x1.z[k] - x0.z[k], most(abs(x0.z[k]), abs(x1.z[k])), s.unit(s.plan.z_unit, k));
}

/// Evaluate the state at the fraction theta of the step that begins at the state `row`.
template <class T> void between(const Tree& tree, int nz, const T* row, const T* dense, double theta, T* u, T* out) {
  const int nv = tree.nv, width = 2 * nv + nz;
  for (int k = 0; k < nv; ++k) u[k] = value(dense + k, width, theta);
  integrate(tree, row, u, out);
  for (int k = nv; k < width; ++k) out[tree.nq + k - nv] = value(dense + k, width, theta);
}

/// Find the time in the step at which the first sliding joint stops: evaluate its velocity polynomial at eighths of the step, then bisect. The state
/// at that time becomes the end of the step. Returns the fraction of the step up to that time; 1 if no joint stops.
inline double end_where_a_joint_stops(System<double>& s, double time, double step, const double* row, const double* dense,
                                      const SimulationState<double>& end) {
  const Arena::Scope scope(s.arena);
  DryFriction<double>& friction = *s.friction;
  double *x = s.arena.take<double>(s.size()), *u = s.arena.take<double>(s.tree.nv);
  const auto shifted = SimulationState<double>::of(s.tree, x);
  const auto turned = [&](double part) {
    between(s.tree, s.plan.force_elements.nz, row, dense, part, u, x);
    return friction.turned(time + part * step, shifted);
  };
  double before = 0.0, after = 0.0;
  for (int k = 1; k <= 8 && after == 0.0 && friction.slides(); ++k) (turned(0.125 * k) ? after : before) = 0.125 * k;
  if (after == 0.0) {
    friction.stopped(time + step, step, end);
    return 1.0;
  }
  for (double middle = 0.5 * (before + after); before < middle && middle < after; middle = 0.5 * (before + after))
    (turned(middle) ? after : before) = middle;
  turned(after);
  std::copy(x, x + s.integrated(), end.q);
  friction.stopped(time + after * step, after * step, end);
  return after;
}

}  // namespace sarrus
