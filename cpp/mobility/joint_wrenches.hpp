// Wrenches of all joints in a motion, for one state or many. They are computed in four steps: efforts of motors (loops/efforts.hpp), multipliers
// (loops/constrained_dynamics.hpp), loads of joints (loops/joint_loads.hpp), and reactions of least norm (loops/least_reactions.hpp).
//
// A motion needs the generalised force tau = M a + h = S u + J^T lambda. If the caller passes no multipliers, u are the least efforts of the motors,
// and lambda the multipliers of the motion that they produce. If the caller passes multipliers lambda, u = S^+ (tau - J^T lambda).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "../mechanism/status.hpp"
#include "mobility.hpp"

namespace sarrus {

/// Status of a state for which the caller passed multipliers, if motors in loop joints cannot produce all of the applied forces.
constexpr signed char other_forces = 32;

/// Function of a batch that computes the wrenches of all joints.
///
///   reads   q, v, a. Optional: multipliers (rows); other forces along all joints (all velocities), only with multipliers; time; values of
///           rows that depend on q
///   writes  efforts of motors along all joints (all velocities); multipliers (rows); loads (6 for each joint and constraint, joint_loads.hpp)
class JointWrenchRows {
 public:
  static constexpr const char *inputs = "q v a multipliers? forces? time? pfaffian_values?", *axes = "T";
  static constexpr const char* other_forces_act =
      "joint wrenches: tau includes forces besides those of the motors, and some motors are in loop joints; pass the driven "
      "joints as actuated=";

  /// `joints`: joints with motors; if no multipliers are passed, they must be the actuated joints of the mechanism. `determinate`: true if no
  /// reaction is indeterminate, so that any valid multipliers may be used.
  JointWrenchRows(const Mechanism& mechanism, const KernelTable& kernels, const std::vector<int>& joints, bool determinate);

  /// Compute the rows of states begin .. end - 1 of a batch.
  void operator()(const Tree& tree, const Parameters& p, const Rows& rows, std::int64_t begin, std::int64_t end) const;

 private:
  class Chunk;

  const KernelTable& kernels_;
  std::vector<int> motors_;  // velocity index of each effort, in the order of the motors
  std::vector<int> carriers_;  // velocity index of each effort of the mechanism's own motors
  bool closing_, constrained_, determinate_;
};

/// External wrench on a frame, in its axes: [moment; force] [N m, N].
struct Wrench {
  Frame frame;
  std::array<double, 6> value;
};

struct JointWrenchOptions {
  std::vector<double> multipliers;  // multipliers (states, rows); empty: those of the motion that the motors produce
  std::optional<Names> actuated;  // joints with motors; empty: those of the description, or all joints if there are no loops
  std::optional<double> time;  // [s], for prescribed motion
  std::vector<Wrench> wrenches;  // external wrenches, which are the same for all states
  int threads = 1;
};

/// Results by name, each with a row for every state; NaN for states without a result.
struct JointWrenches {
  // (states, 6) [moment; force] on the child, in the joint's frame on the child [N m, N]; includes rods and rolling contacts
  Named<Matrix> wrenches;
  Named<Matrix> efforts;  // (states, k) efforts of motors, and of prescribed motions [N m, N]
  std::vector<signed char> status;

  template <class Field> void fields(Field field) { field("wrenches", wrenches), field("efforts", efforts); }
};

/// Compute the wrenches of all joints in motions q (states, nq), v and a (states, nv). `rows`: evaluates the rows that depend on q.
JointWrenches joint_wrenches(const StateFunctions& functions, std::int64_t states, const double* q, const double* v,
                             const double* a, const JointWrenchOptions& options = {}, const RowsOfState& rows = {});

/// Return the indeterminate components of reactions ("moment x" to "force z"), by the names of joints and other constraints.
Named<Names> indeterminate_reactions(const StateFunctions& functions, const double* q, const std::optional<double>& time = {},
                                     RowsOfState rows = {});

}  // namespace sarrus
