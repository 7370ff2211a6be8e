// Dormand and Prince's pair of orders 5 and 4, on the argument u of q = q0 exp(u), with dense output of order 4 (Hairer, Norsett and
// Wanner II.5 and II.6). The last stage is the
// first of the next step only where no projection moves the state between them: it is not kept.
#pragma once

#include <cmath>

#include "steps.hpp"

namespace sarrus {

inline const Tableau& dormand_prince() {
  // clang-format off
  static const double a[49] = {
      0, 0, 0, 0, 0, 0, 0,
      1.0 / 5, 0, 0, 0, 0, 0, 0,
      3.0 / 40, 9.0 / 40, 0, 0, 0, 0, 0,
      44.0 / 45, -56.0 / 15, 32.0 / 9, 0, 0, 0, 0,
      19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729, 0, 0, 0,
      9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656, 0, 0,
      35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0};
  // clang-format on
  static const double b[] = {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0};
  static const double c[] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
  static const Tableau t = {7, a, b, c};
  return t;
}

/// What a step tried: the state it leads to, how far that may be off, and the polynomial in between.
template <class T> struct Trial {
  T* x;  // (q, v, z) at the end
  T error;  // of (u, v, z), largest, as a share of what is allowed
  T* dense;  // 5 x (2 nv + memory): see `between`
};

template <class T>
void dormand_prince_step(System<T>& s, const T& time, const T& h, const T* row, double relative, double absolute, Trial<T>& out) {
  static const double wrong[] = {71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
  static const double middle[] = {-12715105075.0 / 11282082432,  0,
                                  87487479700.0 / 32700410799,   -10690763975.0 / 1880347072,
                                  701980252875.0 / 199316789632, -1453857185.0 / 822651844,
                                  69997945.0 / 29380423};
  const int nv = s.tree.nv, memory = s.plan.actions.memory, width = 2 * nv + memory;
  RungeKutta<T> step(s, dormand_prince(), true);
  const auto x0 = SimulationState<T>::of(s.tree, const_cast<T*>(row)), x1 = SimulationState<T>::of(s.tree, out.x);
  for (int i = 0; i < 7; ++i) step.look(x0, i, time, h);
  step.combine(x0, step.tableau.b, 6, h, x1.q, x1.v, x1.z);  // leaves the sum of q in u

  out.error = T(0.0);
  const auto part = [&](T* Slopes<T>::* which, int size, int at, const T* before, const T* after, const T* moved) {
    for (int k = 0; k < size; ++k) {
      T off = T(0.0), bend = T(0.0);
      for (int i = 0; i < 7; ++i)
        off += (step.slope[i].*which)[k] * T(wrong[i]), bend += (step.slope[i].*which)[k] * T(middle[i]);
      const T larger = before ? most(abs(before[k]), abs(after[k])) : abs(moved[k]);
      out.error = most(out.error, abs(off * h) / (larger * T(relative) + T(absolute)));
      const T difference = moved ? moved[k] : after[k] - before[k];
      const T first = (step.slope[0].*which)[k] * h, last = (step.slope[6].*which)[k] * h;
      T* d = out.dense + at + k;
      d[0] = before && !moved ? before[k] : T(0.0);
      d[width] = difference;
      d[2 * width] = first - difference;
      d[3 * width] = difference - last - d[2 * width];
      d[4 * width] = bend * h;
    }
  };
  part(&Slopes<T>::q, nv, 0, nullptr, nullptr, step.u);
  part(&Slopes<T>::v, nv, nv, x0.v, x1.v, nullptr);
  part(&Slopes<T>::z, memory, 2 * nv, x0.z, x1.z, nullptr);
}

/// The state at the share theta of the step from row.
template <class T>
void between(const Tree& tree, int memory, const T* row, const T* dense, double theta, T* u, T* out) {
  const int nv = tree.nv, width = 2 * nv + memory;
  const double rest = 1.0 - theta;
  const auto value = [&](int k) {
    const T* d = dense + k;
    return d[0] + (d[width] + (d[2 * width] + (d[3 * width] + d[4 * width] * T(rest)) * T(theta)) * T(rest)) * T(theta);
  };
  for (int k = 0; k < nv; ++k) u[k] = value(k);
  integrate(tree, row, u, out);
  for (int k = nv; k < width; ++k) out[tree.nq + k - nv] = value(k);
}

}  // namespace sarrus
