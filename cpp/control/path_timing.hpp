// Fastest timing of a path within limits, by reachability analysis. [Pham and Pham 2018]
//
//   s               parameter of the path;   x = s'^2 and u = s'' along it, with u constant in each interval of s: x' = 2 u
//   |a u + b x + c| <= 1    a limit: velocity (a = c = 0), acceleration (c = 0), effort of a motor, ... at a value of s
//
// Within an interval of length h, at the fraction theta, x(theta) = x + 2 theta h u. Therefore a limit is linear in u and in x at the start of the interval:
//
//   f(theta) = (a + 2 theta h b) u + b x + c         a, b, c at theta
//
// It is imposed for the Bezier points f(0), 2 f(1/2) - (f(0) + f(1)) / 2, f(1) of the parabola through three values. This parabola lies within their convex
// hull, so that limits hold between the samples, too. For a vector f, such as the acceleration of a tool, |f| <= 1 is an ellipse of (u, x). It is replaced
// by a polygon inside.
//
// Backward pass: controllable set of each grid point, which is an interval of x from which the end can be reached.
// Forward pass: the largest u that stays within the limits and the next controllable set.
//
// Forces of dampers are proportional to s'. They are replaced by their tangents at the previous timing, until it converges.
#pragma once

#include <vector>

namespace sarrus {

/// Limits of a path with n intervals of s, at 2 n + 1 samples: the grid points and the middles of the intervals. Their m columns are `scalars` limits of
/// numbers, and then three for each of `vectors` limits of vectors, with c = 0.
struct PathLimits {
  int intervals = 0, scalars = 0, vectors = 0;
  const double* lengths = nullptr;  ///< (n) lengths of the intervals of s
  const double *a = nullptr, *b = nullptr, *c = nullptr;  ///< (2 n + 1, m) each
  const double* d = nullptr;  ///< (2 n + 1, m), for forces of dampers: a u + b x + c + d sqrt(x); null: none
};

struct PathTiming {
  std::vector<double> x;  ///< (n + 1) s'^2 at the grid points; empty if there is no timing
  int interval = -1;  ///< interval in which no motion is within the limits, s' is unbounded, or the motion stops; -1: none
  int first = -1,
      second = -1;  ///< limits (scalars, then vectors) that contradict each other there; -1: limits of later intervals
  bool unbounded = false;
  std::vector<int> active;  ///< (n) limit that is used most in each interval; -1 if it is not active

  template <class F> void fields(F&& f) {
    f("x", x), f("interval", interval), f("first", first), f("second", second), f("unbounded", unbounded), f("active", active);
  }
};

/// Return the fastest timing. At the start and the end of the path s' is 0, or free if `free_start` or `free_end`, because the path is at rest there at any s'.
///
///   cost    O(n m)
PathTiming fastest_timing(const PathLimits& path, bool free_start, bool free_end);

}  // namespace sarrus
