// The constraints of a mechanism in units in which rotations and displacements are comparable: one radian is equivalent to a displacement of the
// mechanism's characteristic length l. The constraints J v = c, with residual phi, become R J C, R c and R phi. C multiplies the velocities of
// sliding joints by l. R divides each row by its largest possible norm, which is the norm of its wrench [moment; l force]. Therefore the mechanism is
// near a singular position if a scaled row is small. Masses have no effect.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../kernels/state_functions.hpp"
#include "linear_algebra.hpp"

namespace sarrus {

/// Error: the loops are open.
struct AssemblyError : std::domain_error {
  using std::domain_error::domain_error;
};

class ScaledLoops {
 public:
  /// Compute the scales at the configuration q.
  ScaledLoops(const StateFunctions& functions, const double* q, const std::optional<double>& time = {}, RowsOfState rows = {});

  Matrix jacobian(const double* q) const;  // R J C (nc, nv)
  Vector residual(const double* q) const;  // R phi (nc)
  Vector prescribed(const double* q) const;  // R c (nc)
  Matrix holonomic_rows(const Matrix& J) const { return rows_of(J, true); }
  Matrix velocity_rows(const Matrix& J) const { return rows_of(J, false); }
  /// Return the largest entry of R phi; raise AssemblyError if it exceeds the tolerance for configurations from the caller.
  double check_closed(const double* q) const;

  /// Return an object with the same scales, at another time and with other values of rows that depend on q.
  ScaledLoops at(const std::optional<double>& time, RowsOfState rows) const {
    ScaledLoops other = *this;
    other.time_ = time, other.rows_ = std::move(rows);
    return other;
  }

  /// Take steps along scaled velocities (k, nv) from q, and close the loops after each. The results are the ends of the steps (k, nq), the
  /// displacements in scaled velocities (k, nv), and the remaining residuals (k). Residuals are infinite if the loops do not close.
  struct Walk {
    RowMajor ends, displacements;
    Vector open;
  };
  Walk walk(const double* q, const Matrix& x) const;

  const StateFunctions& functions;
  const double length;
  Vector column_scale, row_scale;
  std::vector<bool> holonomic;  // for each row: true if it restricts positions

  std::string row_name(int row) const;
  /// Return column_scale and row_scale of a variant of this characteristic length. Rows of coordinate relations keep their scale.
  std::pair<Vector, Vector> scales_for(double variant_length) const;

 private:
  const double* at_time() const { return time_ ? &*time_ : nullptr; }
  std::vector<double> values(const double* q) const;
  Matrix rows_of(const Matrix& J, bool holds_positions) const;

  std::optional<double> time_;
  RowsOfState rows_;
  Vector moments_, forces_;  // squared norms of the moment and force of each row's wrench; zero for rows without a wrench
};

/// Return true if velocity k of a joint is translational.
bool slides(const JointDescription& joint, int k);

}  // namespace sarrus
