// Integration methods, one per line of a table, and the coefficients of the Runge-Kutta methods.
#pragma once

#include <cmath>

namespace sarrus {

/// Coefficients of an explicit Runge-Kutta method.
struct Tableau {
  int stages;
  const double *a, *b, *c;  // a: stages x stages, row-major
  // embedded pairs only, else null: b minus the weights of the lower order; the last coefficients of the interpolating polynomial
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

// coefficients from Hairer, Norsett and Wanner, Table II.5.2 and II.6
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

/// Functions that take one step (advance.hpp). The table of methods below refers to them.
enum class Step : int { euler, semi_implicit, runge_kutta, implicit_midpoint, independent, contact, rosenbrock };

/// Return true if a step function computes several states in lanes; steps with rigid contacts do so for most mechanisms (contacts_go_in_lanes()). The other
/// step functions compute one state at a time, because values of the state determine their branches.
inline constexpr bool in_lanes(Step step) {
  switch (step) {
    case Step::euler:
    case Step::semi_implicit:
    case Step::runge_kutta:
    case Step::contact: return true;
    case Step::implicit_midpoint:
    case Step::independent:
    case Step::rosenbrock: return false;
  }
  return false;
}

struct MethodFacts {
  const char* name;
  Step step;
  int stages;  // evaluations per step; 0: variable, because the method iterates
  int order;
  // largest |lambda| h of stable steps on the negative real axis; infinite if there is no bound or steps are adaptive
  double stable;
  const Tableau* tableau;  // null: the method is not a Runge-Kutta method
  bool exponential;  // true: the method integrates the argument u of q = q0 exp(u); false: it integrates the coordinates
  bool varies;  // true if derivatives of steps are available: see step_rates.hpp
  bool rigid;  // true: contacts, stops and dry friction are rows of the method's steps, which also close loops (contact_step.hpp)

  bool in_lanes() const { return sarrus::in_lanes(step); }
  bool adaptive() const { return tableau && tableau->error; }
};

//  name, Step, then as in MethodFacts: stages, order, stability limit, tableau, exponential, varies, rigid
#define SARRUS_METHODS(X)                                                             \
  X(euler, euler, 1, 1, 2.0, nullptr, true, true, false)                              \
  X(semi_implicit, semi_implicit, 1, 1, 2.0, nullptr, true, true, false)              \
  X(rk4, runge_kutta, 4, 4, 2.78, &tableaus::rk4, false, true, false)                 \
  X(rkmk4, runge_kutta, 4, 4, 2.78, &tableaus::rk4, true, true, false)                \
  X(dopri5, runge_kutta, 7, 5, HUGE_VAL, &tableaus::dopri5, true, false, false)       \
  X(implicit_midpoint, implicit_midpoint, 0, 2, HUGE_VAL, nullptr, true, true, false) \
  X(independent, independent, 4, 4, 2.78, &tableaus::rk4, false, false, false)        \
  X(contact, contact, 1, 1, HUGE_VAL, nullptr, true, false, true)                     \
  X(rosenbrock, rosenbrock, 0, 2, HUGE_VAL, &tableaus::rk4, false, false, false)

enum class Method : int {
#define SARRUS_METHOD_NAME(name, ...) name,
  SARRUS_METHODS(SARRUS_METHOD_NAME)
#undef SARRUS_METHOD_NAME
};
inline constexpr MethodFacts methods[] = {
#define SARRUS_METHOD_FACTS(name, step, ...) {#name, Step::step, __VA_ARGS__},
    SARRUS_METHODS(SARRUS_METHOD_FACTS)
#undef SARRUS_METHOD_FACTS
};
inline constexpr const MethodFacts& facts(Method method) { return methods[static_cast<int>(method)]; }

/// Methods that limit the drift off the loops; their names and formulas are in system.hpp.
enum class Stabilisation : int { none, corrective, baumgarte, projection };

struct StabilisationFacts {
  const char* name;
  // default gains of velocities and of positions: those of van der Merwe 5.5.5; for Baumgarte's method, alpha = beta = 10/s
  double gains[2];
};
inline constexpr StabilisationFacts stabilisations[] = {
    {"none", {}}, {"corrective", {40.0, 60.0}}, {"baumgarte", {20.0, 100.0}}, {"projection", {}}};

}  // namespace sarrus
