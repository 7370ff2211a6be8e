// A control loop at 1 kHz in C++: the crank of a four-bar follows a sine by computed torque. Each cycle of 1 ms computes the effort of the motor, and
// simulates the mechanism. The loop allocates no memory; the program counts allocations. tests/core/test_core_alone.py runs the same loop in Python.
#include <sarrus.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "four_bar.hpp"

static long allocations = 0;
void* operator new(std::size_t size) {
  ++allocations;
  if (void* p = std::malloc(size)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

using Vector = std::array<double, 3>;  // one entry for each velocity of the tree: motor, pin1, pivot

int main() {
  const sarrus::Robot robot = four_bar(0.4, 1.1, 0.9, 1.0);
  sarrus::Workspace work;
  const double dt = 1e-3;

  Vector q, v = {0.0, 0.0, 0.0};
  const auto copy = [](const sarrus::Answer& from, Vector& to) { std::copy(from.begin(), from.end(), to.begin()); };
  copy(robot.project_configuration(work, Vector{0.5, -1.7, -1.9}), q);
  const double begins_at = q[0];

  long before = 0;
  double longest = 0.0;
  for (int k = 0; k < 1000; ++k) {
    if (k == 1) before = allocations;  // the first step allocates the workspace
    const auto begun = std::chrono::steady_clock::now();

    // desired angle, velocity and acceleration of the crank, with feedback of the motor's angle
    const double t = k * dt, phase = 3.0 * t;
    const double error = begins_at + 0.3 * (1.0 - std::cos(phase)) - q[0], rate = 0.9 * std::sin(phase) - v[0];
    const double reference = 2.7 * std::cos(phase) + 100.0 * error + 20.0 * rate;

    // compute the effort for the desired acceleration of the crank; the acceleration is an affine function of the effort
    const Vector zero = {0.0, 0.0, 0.0}, unit = {1.0, 0.0, 0.0};
    const double idle = robot.forward_dynamics(work, q, v, zero)[0];
    const double gain = robot.forward_dynamics(work, q, v, unit)[0] - idle;
    const Vector tau = {(reference - idle) / gain, 0.0, 0.0};

    // simulation of the mechanism: semi-implicit Euler steps, and projection onto the loop
    const sarrus::Answer a = robot.forward_dynamics(work, q, v, tau);
    if (a.status != sarrus::fine) return 1;
    Vector step;
    for (int i = 0; i < 3; ++i) v[i] += dt * a[i], step[i] = dt * v[i];
    copy(robot.integrate(work, q, step), q);
    copy(robot.project_configuration(work, q), q);
    copy(robot.project_velocity(work, q, v), v);
    longest = std::max(longest, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  }
  std::printf("q: %.15g %.15g %.15g\n", q[0], q[1], q[2]);
  std::printf("allocations: %ld\n", allocations - before);
  std::fprintf(stderr, "longest of 1000 rounds: %.1f us\n", 1e6 * longest);
  return 0;
}
