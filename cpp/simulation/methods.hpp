// The methods of integration, a line each, with the coefficients of those that are Runge and Kutta's.
#pragma once

#include <cmath>

namespace sarrus {

/// Of an explicit Runge-Kutta method.
struct Tableau {
  int stages;
  const double *a, *b, *c;  // a: stages x stages, row by row
  // of an embedded pair, else null: b less the weights of the lower order; and the last coefficient of the polynomial between both ends
  const double *error, *dense;
};

namespace tableaus {
// clang-format off
inline constexpr double rk4_a[] = {
    0, 0, 0, 0,
    0.5, 0, 0, 0,
    0, 0.5, 0, 0,
    0, 0, 1, 0};
inline constexpr double rk4_b[] = {1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6};
inline constexpr double rk4_c[] = {0, 0.5, 0.5, 1};
inline constexpr Tableau rk4 = {4, rk4_a, rk4_b, rk4_c, nullptr, nullptr};

// Hairer, Norsett and Wanner, Table II.5.2 and II.6
inline constexpr double dopri5_a[] = {
    0, 0, 0, 0, 0, 0, 0,
    1.0 / 5, 0, 0, 0, 0, 0, 0,
    3.0 / 40, 9.0 / 40, 0, 0, 0, 0, 0,
    44.0 / 45, -56.0 / 15, 32.0 / 9, 0, 0, 0, 0,
    19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729, 0, 0, 0,
    9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656, 0, 0,
    35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0};
inline constexpr double dopri5_b[] = {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0};
inline constexpr double dopri5_c[] = {0, 1.0 / 5, 3.0 / 10, 4.0 / 5, 8.0 / 9, 1, 1};
inline constexpr double dopri5_error[] = {
    71.0 / 57600, 0, -71.0 / 16695, 71.0 / 1920, -17253.0 / 339200, 22.0 / 525, -1.0 / 40};
inline constexpr double dopri5_dense[] = {
    -12715105075.0 / 11282082432, 0, 87487479700.0 / 32700410799, -10690763975.0 / 1880347072,
    701980252875.0 / 199316789632, -1453857185.0 / 822651844, 69997945.0 / 29380423};
inline constexpr Tableau dopri5 = {7, dopri5_a, dopri5_b, dopri5_c, dopri5_error, dopri5_dense};
// clang-format on
}  // namespace tableaus

enum class Method : int { euler, semi_implicit, rk4, rkmk4, dopri5, implicit_midpoint, independent, contact, rosenbrock };

struct MethodFacts {
  const char* name;
  int stages;  // evaluations a step; 0: as many as an iteration takes
  int order;
  bool in_lanes;  // what the others do depends on the state: one at a time
  double
      stable;  // up to which |rate| h steps are stable, on the negative real axis; infinite: whatever the rate, or steps shorten themselves
  const Tableau* tableau;  // or null
  bool exponential;  // on the argument u of q = q0 exp(u), not on the coordinates
  bool varies;  // whether steps have derivatives: see step_rates.hpp
  bool rigid =
      false;  // what touches, stops and dry friction are rows of its steps, which close loops themselves: see contact_step.hpp

  bool adaptive() const { return tableau && tableau->error; }
};

inline constexpr MethodFacts methods[] = {
    {"euler", 1, 1, true, 2.0, nullptr, true, true},
    {"semi_implicit", 1, 1, true, 2.0, nullptr, true, true},
    {"rk4", 4, 4, true, 2.78, &tableaus::rk4, false, true},
    {"rkmk4", 4, 4, true, 2.78, &tableaus::rk4, true, true},
    {"dopri5", 7, 5, true, HUGE_VAL, &tableaus::dopri5, true, false},
    {"implicit_midpoint", 0, 2, false, HUGE_VAL, nullptr, true, true},
    {"independent", 4, 4, false, 2.78, &tableaus::rk4, false, false},
    {"contact", 1, 1, false, HUGE_VAL, nullptr, true, false, true},
    {"rosenbrock", 0, 2, false, HUGE_VAL, &tableaus::rk4, false, false},
};
inline constexpr const MethodFacts& facts(Method method) { return methods[static_cast<int>(method)]; }

/// How loops are kept from drifting apart: see system.hpp.
enum class Stabilisation : int { none, corrective, baumgarte, projection };

struct StabilisationFacts {
  const char* name;
  double gains[2];  // of velocities and of positions, where it takes any: the thesis' own (5.5.5); alpha = beta = 10/s
};
inline constexpr StabilisationFacts stabilisations[] = {
    {"none", {}}, {"corrective", {40.0, 60.0}}, {"baumgarte", {20.0, 100.0}}, {"projection", {}}};

}  // namespace sarrus
