// Motions of end points by the joints of a mechanism with floating base, and the resulting motion of the base.
//
// The joints' velocities solve linear equations, with one block of rows for each requirement:
//
//   loops                                     J phi-dot = c
//   given velocity x_h-dot of a frame         J* phi-dot = x_h-dot - drift
//   zero components of the base's velocity    rows of the J* of the base
//
// The solution has the least norm, with displacements divided by the mechanism's length.
#pragma once

#include "mobility.hpp"

namespace sarrus {

/// Error: the joints cannot produce the motion.
struct NotRealizable : std::domain_error {
  using std::domain_error::domain_error;
};

/// Velocity of a frame along some of rx ry rz tx ty tz, in the world's axes at its origin [rad/s, m/s].
struct FrameVelocity {
  std::string frame;
  std::vector<int> components;
  Vector velocity;
};
/// Poses of a frame, one for each time. Unless `turns` is true, only the positions of its origin are prescribed.
struct WayPoints {
  std::string frame;
  bool turns;
  std::vector<Transform<double>> poses;
};

/// `still`: components of the base's velocity that must be zero. `momentum` (6): [angular, about the world's origin; linear] [N m s, N s]; without a
/// value, zero.
struct FloatingOptions {
  std::vector<int> still;
  std::optional<Vector> momentum;
};

/// Times (n) [s], configurations, velocities, and the rotation vector (n, 3) of the base from its first orientation, in world axes [rad].
struct FreeFloatingMotion {
  Vector t;
  RowMajor q, v, base_rotation;

  template <class Field> void fields(Field field) {
    field("t", t), field("q", q), field("v", v), field("base_rotation", base_rotation);
  }
};

/// Joint velocities that leave the base at rest. `basis` (nv, freedom): such velocities, including those of the base, orthonormal in the scaled
/// velocities of the joints. `projector` (nv - 6, nv - 6): maps joint velocities to the nearest ones that leave the base at rest.
struct ReactionNullSpace {
  Matrix basis, projector;
};

class FloatingBase {
 public:
  /// Raises ModelError if the mechanism is connected to the ground; the message begins with `question`.
  FloatingBase(const StateFunctions& functions, RowsOfState rows = {}, const std::string& question = "a floating base",
               std::function<void()> check_interrupt = {});

  /// Compute the velocity (nv) for which frames have these velocities. Raises NoAnswer if no joint velocities produce them.
  Vector resolved_rate(const double* q, const std::vector<FrameVelocity>& motions, const FloatingOptions& options = {},
                       const std::optional<double>& time = {}) const;

  /// Compute the velocities of the joints for which these components of the base's velocity are zero.
  ReactionNullSpace reaction_null_space(const double* q, const std::vector<int>& components = {0, 1, 2},
                                        const std::optional<double>& time = {}) const;

  /// Function that returns the velocity (nv) at a time and a configuration; its entries for the base are ignored.
  using JointVelocity = std::function<Vector(double t, const Vector& q)>;
  /// Integrate the motion from q through increasing times at constant momentum, in steps of at most `step` [s]. The method has order four
  /// (commutator-free, Celledoni, Marthinsen and Owren 2003).
  FreeFloatingMotion motion(const Vector& q, const JointVelocity& velocity, const std::vector<double>& times, double step = 0.01,
                            const std::optional<Vector>& momentum = {}) const;
  /// Move frames through waypoints at these times, beginning at time 0, along straight lines and about fixed axes, at rest at each waypoint. Raises
  /// NotRealizable if a waypoint is missed by more than `tolerance` [m, rad].
  FreeFloatingMotion path(const Vector& q, const std::vector<WayPoints>& way_points, const std::vector<double>& times,
                          const FloatingOptions& options = {}, double step = 0.01, double tolerance = 1e-6) const;

 private:
  class Path;
  class Equations;

  Frame frame(const std::string& name) const;
  Transform<double> pose(const Vector& q, const Frame& frame) const;
  Vector with_momentum(const double* q, const Vector& v, const std::optional<Vector>& momentum) const;
  Matrix joint_columns(const Matrix& J) const;  // columns of J, without those of the base
  FreeFloatingMotion integrated(Vector q, const JointVelocity& velocity, const std::vector<double>& times, double step) const;

  StateFunctions functions_;
  RowsOfState rows_;
  std::function<void()> check_interrupt_;
  int base_;  // first velocity of the base
  Frame body_;
};

}  // namespace sarrus
