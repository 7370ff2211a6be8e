// Fastest timing of a mass along a line, with a damper, in C++ alone. tests/core/test_core_alone.py compares the output with Python's.
#include <control/path_timing.hpp>
#include <cstdio>
#include <vector>

int main() {
  constexpr int intervals = 100;
  const std::vector<double> lengths(intervals, 0.01), none(2 * intervals + 1, 0.0), acceleration(2 * intervals + 1, 0.25),
      damping(2 * intervals + 1, 0.1);
  const sarrus::PathLimits path{intervals, 1, 0, lengths.data(), acceleration.data(), none.data(), none.data(), damping.data()};
  const sarrus::PathTiming timing = sarrus::fastest_timing(path, false, false);
  std::printf("x:");
  for (const double x : timing.x) std::printf(" %.17g", x);
  std::printf("\ninterval: %d\n", timing.interval);
}
