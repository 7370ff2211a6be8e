// Mobility of a mechanism in one configuration: its motions, redundant constraints, and the effect of its motors.
//
// The velocities that the constraints allow in this configuration are the null space of R J C (scaled_loops.hpp); the self-stresses, which are joint
// loads in equilibrium without external loads, are the null space of its transpose. Steps along the allowed velocities determine if they begin finite
// motions (finite_motion.hpp). A motion that moves no motor is an output singularity; a motor motion that does not move the output is an input
// singularity (Gosselin and Angeles, IEEE Trans. Robotics and Automation 6, 1990).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scaled_loops.hpp"

namespace sarrus {

template <class X> using Named = std::vector<std::pair<std::string, X>>;
using Names = std::vector<std::string>;

struct MobilityOptions {
  std::optional<Names> actuated;  // joints with motors; without a value, the actuated joints of the description
  std::optional<std::string> output;  // the frame whose velocity is the mechanism's output
  // components of the output that are used: rx ry rz tx ty tz in the world's axes
  std::vector<int> components = {0, 1, 2, 3, 4, 5};
  std::optional<double> time;  // [s], for prescribed motion
};

/// Effect of the motors in one configuration. The fields are documented in the Python class of the same name.
struct ActuationMobility {
  int actuators, locked_freedoms;
  std::string verdict;  // "exact", "redundant" or "deficient"
  Names uncontrolled;
  std::optional<bool> output_singular, input_singular;
  Vector singular_values;
  std::optional<Matrix> output_jacobian;
  std::optional<double> condition;

  template <class Field> void fields(Field field) {
    field("actuators", actuators), field("verdict", verdict), field("locked_freedoms", locked_freedoms);
    field("uncontrolled", uncontrolled), field("output_singular", output_singular), field("input_singular", input_singular);
    field("singular_values", singular_values), field("output_jacobian", output_jacobian), field("condition", condition);
  }
};

struct Mobility {
  std::string name;
  int kutzbach, degrees_of_freedom;
  std::optional<int> finite_degrees_of_freedom;
  std::string finite_because;
  Matrix motions;  // (nv, degrees of freedom)
  int rank;
  Vector singular_values;
  double gap, tolerance, closing_error, length;
  Vector row_scale;
  int redundant;
  Names redundant_rows;
  Named<int> dependent_groups;
  Named<bool> unique_reactions;
  Named<Matrix> self_stress;  // (redundant, 6) of each joint and constraint
  Names idle;
  std::optional<ActuationMobility> actuation;
  Names warnings;

  template <class Field> void fields(Field field) {
    field("name", name), field("kutzbach", kutzbach), field("degrees_of_freedom", degrees_of_freedom);
    field("finite_degrees_of_freedom", finite_degrees_of_freedom), field("finite_because", finite_because);
    field("motions", motions), field("rank", rank), field("singular_values", singular_values), field("gap", gap);
    field("tolerance", tolerance), field("closing_error", closing_error), field("length", length), field("row_scale", row_scale);
    field("redundant", redundant), field("redundant_rows", redundant_rows), field("dependent_groups", dependent_groups);
    field("unique_reactions", unique_reactions), field("self_stress", self_stress), field("idle", idle);
    field("actuation", actuation), field("warnings", warnings);
  }
};

/// Compute the mobility at a configuration (nq). Raises AssemblyError if the loops are open. `rows`: evaluates the rows that depend on q.
Mobility mobility(const StateFunctions& functions, const double* q, const MobilityOptions& options = {}, RowsOfState rows = {});

/// Return the report that Python's print(mobility) displays.
std::string report(const Mobility& mobility);

/// Compute which reactions are indeterminate for rigid bodies. The result is the largest value that self-stresses of norm one cause in each component
/// [moment; l force] (6) of the wrench of each joint and constraint on its child. Efforts along a joint's motion are not included. Loops need not be
/// closed.
Named<Vector> open_reactions(const StateFunctions& functions, const double* q, const std::optional<double>& time = {},
                             RowsOfState rows = {});

/// Number of independent constraint rows, the singular values of R J C and the largest entry of R phi. The rows of one constraint may be excluded.
struct ConstraintRank {
  Vector singular_values;
  double closing_error;

  template <class Field> void fields(Field field) {
    field("singular_values", singular_values), field("closing_error", closing_error);
  }
};
ConstraintRank constraint_rank(const StateFunctions& functions, const double* q, const std::optional<std::string>& without = {},
                               const std::optional<double>& time = {}, RowsOfState rows = {});

/// Return rows that can be removed without reducing the rank, with preference for the last rows. They are chosen such that the entries of the
/// self-stresses (nc, k) in these rows are independent.
std::vector<int> removable_rows(const Matrix& stress);

}  // namespace sarrus
