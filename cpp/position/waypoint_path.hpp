// Paths through waypoints, with continuous velocity and acceleration.
//
// Between two waypoints every joint follows Hermite's cubic (loops/path_motion.hpp). The velocities at the waypoints are chosen such that
// accelerations are continuous: a complete cubic spline for each scalar coordinate, and the spline of Kang and Park (1999) for each rotation. With
// loops, the guide K = N^T at a waypoint, where the columns of N are an orthonormal basis of the motions that the loops allow there, in scaled
// velocities.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "../kernels/state_functions.hpp"
#include "../mobility/linear_algebra.hpp"

namespace sarrus {

/// Guide of a path on loops: the velocities (n, nv) of the spline, the scales (nv + rows) of velocities and rows, and K (n, freedoms nv).
struct PathGuides {
  RowMajor v;
  Vector scale;
  RowMajor K;
};

class Path {
 public:
  /// Path with velocities v (n, nv) at waypoints q (n, nq) at times (n) [s]. Raises ModelError if the times do not increase.
  Path(const StateFunctions& functions, Vector times, RowMajor q, RowMajor v, std::optional<PathGuides> guides = {});
  /// Compute the path through waypoints. `ends`: velocities (2, nv) at the first and at the last waypoint; none: at rest. `rows`: evaluates the rows
  /// that depend on q. Raises NoAnswer for waypoints or velocities that violate the loops, and if there is no path.
  static Path through(const StateFunctions& functions, const Vector& times, RowMajor q, const std::optional<RowMajor>& ends = {},
                      const RowsOfState& rows = {});

  /// Compute q, v and a (nq + 2 nv + 1; the last number is 0). Raises NoAnswer if the loops cannot close.
  void at(double time, double* out) const;
  /// Compute q, v and a in rows of nq + 2 nv numbers.
  RowMajor at(const Vector& times) const;
  /// Return the pieces of a time function that equals a coordinate up to 1e-10 of its range, or of a thousandth of `size` if this is larger: initial
  /// times and coefficients of polynomials of the fifth degree.
  std::pair<Vector, RowMajor> time_function(int coordinate, double size) const;

  const StateFunctions functions;
  const Vector t;
  const RowMajor q, v;
  const std::optional<PathGuides> guides;

 private:
  int piece(double time) const;
  void check_continuity() const;

  std::vector<double> starts_;  // initial times of all pieces except the first
  RowMajor pieces_,
      guide_rows_;  // the kernels' inputs of each piece; the last one is the last piece in reverse, for extrapolation
};

/// Return the slopes (n) at points y of a cubic spline with continuous acceleration, for given slopes at both ends.
Vector spline_slopes(const Vector& times, const Vector& y, double first, double last);

}  // namespace sarrus
