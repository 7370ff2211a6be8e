// A function of time g(t), or of a coordinate: piecewise polynomial plus harmonics, with its derivatives.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../simd/dual.hpp"

namespace sarrus {

struct Law {
  std::vector<double> start;        // start time of each piece [s]
  std::vector<double> coefficient;  // (pieces x terms) coefficients of (t - start)^k
  std::vector<double> harmonic;     // for each harmonic: amplitude, angular frequency [rad/s], phase [rad]
  std::vector<Law> each{};          // time functions of the runs, if they differ
  int parameter_index = -1;  // index, in the parameters of a run, of the number that selects the time function
  double period = 0.0;       // period of the pieces [s]; 0: they are not repeated

  const Law& at_run(double number) const { return each[static_cast<std::size_t>(number)]; }
  /// Return the time in the first period that has the same value of the pieces.
  double within(double t) const { return period > 0.0 ? t - period * std::floor((t - start[0]) / period) : t; }
};

/// Compute f, f', f'', ... of a function of time or of a coordinate; `bound`: bounds of |f| and |f'|, the sums of the magnitudes of their terms.
SARRUS_NOINLINE inline void derivatives(const Law& law, double x, int orders, double* out, double* bound) {
  const int pieces = static_cast<int>(law.start.size()), terms = static_cast<int>(law.coefficient.size()) / pieces;
  const double at = law.within(x);
  int piece = 0;
  while (piece + 1 < pieces && at >= law.start[piece + 1]) ++piece;
  const double* c = law.coefficient.data() + piece * terms;
  const double s = at - law.start[piece];
  std::fill_n(out, orders, 0.0), bound[0] = bound[1] = 0.0;
  for (int k = terms - 1; k >= 0; --k) {
    for (int n = orders - 1; n > 0; --n) out[n] = out[n] * s + n * out[n - 1];
    out[0] = out[0] * s + c[k];
    bound[0] = bound[0] * std::abs(s) + std::abs(c[k]);
    if (k > 0) bound[1] = bound[1] * std::abs(s) + k * std::abs(c[k]);
  }
  for (std::size_t h = 0; h < law.harmonic.size(); h += 3) {
    const double *a = law.harmonic.data() + h, phase = a[1] * x + a[2];
    double sine = a[0] * std::sin(phase), cosine = a[0] * std::cos(phase);
    bound[0] += std::abs(a[0]), bound[1] += std::abs(a[0] * a[1]);
    for (int n = 0; n < orders; ++n) {
      const double slope = a[1] * cosine;
      out[n] += sine, cosine = -a[1] * sine, sine = slope;
    }
  }
}
/// Compute value, rate and acceleration of a time function. Lanes are evaluated one by one, because time functions are rare.
inline void evaluate(const Law& law, double t, double* out) {
  double bound[2];
  derivatives(law, t, 3, out, bound);
}
inline void evaluate(const Law& law, const double* time, double (&out)[3]) { evaluate(law, time ? *time : 0.0, out); }
template <int W, bool Own> void evaluate(const Law& law, const Packet<W, Own>* time, Packet<W, Own> (&out)[3]) {
  for (int l = 0; l < W; ++l) {
    double x[3];
    evaluate(law, time ? time->lanes[l] : 0.0, x);
    for (int i = 0; i < 3; ++i) out[i].lanes[l] = x[i];
  }
}
/// Evaluate the time function for the run with these parameters.
inline void evaluate(const Law& law, const double* parameter, const double* time, double (&out)[3]) {
  evaluate(law.each.empty() ? law : law.at_run(parameter[law.parameter_index]), time, out);
}
template <int W, bool Own> void evaluate(const Law& law, const Packet<W, Own>* parameter, const Packet<W, Own>* time,
                                         Packet<W, Own> (&out)[3]) {
  if (law.each.empty()) return evaluate(law, time, out);
  for (int l = 0; l < W; ++l) {
    double x[3];
    evaluate(law.at_run(parameter[law.parameter_index].lanes[l]), time->lanes[l], x);
    for (int i = 0; i < 3; ++i) out[i].lanes[l] = x[i];
  }
}
/// Evaluate a time function together with the rates of value and rate; the rate of the acceleration is set to zero.
template <class T, class R> void evaluate(const Law& law, const Dual<T, R>* time, Dual<T, R> (&out)[3]) {
  T x[3];
  evaluate(law, time ? &time->value : nullptr, x);
  const R along = time ? time->rate : R(0.0);
  out[0] = {x[0], R(x[1]) * along}, out[1] = {x[1], R(x[2]) * along}, out[2] = {x[2], R(0.0)};
}
/// Evaluate the time function for the run with these parameters, with rates.
template <class T, class R> void evaluate(const Law& law, const Dual<T, R>* parameter, const Dual<T, R>* time,
                                          Dual<T, R> (&out)[3]) {
  if (law.each.empty()) return evaluate(law, time, out);
  T x[3];
  for (int l = 0; l < width_of<T>; ++l) {
    double values[3];
    evaluate(law.at_run(lane(parameter[law.parameter_index].value, l)), lane(time->value, l), values);
    for (int i = 0; i < 3; ++i) lane(x[i], l) = values[i];
  }
  out[0] = {x[0], R(x[1]) * time->rate}, out[1] = {x[1], R(x[2]) * time->rate}, out[2] = {x[2], R(0.0)};
}

}  // namespace sarrus
