// Plan of a simulation: all of its data except its state.
#pragma once

#include "../elements/set.hpp"
#include "../mechanism/status.hpp"
#include "../mechanism/variant_numbers.hpp"
#include "methods.hpp"

namespace sarrus {

/// Quantity to which a limit applies: a coordinate, a velocity, or the effort that controllers apply along that velocity.
enum class Quantity : int { position, velocity, effort };
struct Limit {
  Quantity of;
  int at;
  double lower, upper;
};

/// Angle and rate of a loop joint: indices into the coordinates and the velocities of all loop joints.
struct LoopAngle {
  int iq, iv;
};

/// Dry friction along a velocity, up to a limit from the mechanism. The simulated tree itself contains no dry friction: see friction.hpp.
struct JointFriction {
  int iv;
  JointTerms terms;
};

struct Plan {
  Method method = Method::rk4;
  Stabilisation stabilisation = Stabilisation::projection;
  double gains[2] = {0.0, 0.0};  // gains of the stabilisation: K_v and K_p, or 2 alpha and beta^2 (Stabilisation)
  ForceElements force_elements{};
  int limits = 0;  // number of monitored limits; violations are recorded (record.hpp)
  const Limit* limit = nullptr;
  bool records = false, watches_rates = false, measures = false;  // measures: record the work of applied forces
  int frictions = 0;
  const JointFriction* friction = nullptr;
  // Units by which values are divided before they are compared, so that results do not depend on the user's units: 1 rad or one length for each
  // velocity (times are in seconds), for each row of the loops the residual that such motions cause, and one for each internal state. Null: all are 1
  const double *velocity_unit = nullptr, *row_unit = nullptr, *z_unit = nullptr;
  static double unit_of(const double* units, int k) { return units ? units[k] : 1.0; }  // of a single mechanism
  int units(const Tree& t) const {
    return t.nv + t.loop_nv + t.loops.rows + force_elements.nz;
  }  // number of units; contiguous in this order
  void have_units(const double* all, const Tree& t) {
    velocity_unit = all, row_unit = all + t.nv + t.loop_nv, z_unit = row_unit + t.loops.rows;
  }
  const Tree *
      described = nullptr,
     *full_tree =
         nullptr;  // trees for control laws, and a tree with the terms that runs compute themselves (run_numbers.hpp); null: the simulated tree
  // variants: their parameters; the variant of each run; the units of each run (all null without variants)
  const VariantNumbers* variants = nullptr;
  const std::int64_t* variant = nullptr;
  const double* units_of = nullptr;
  bool drives_loop_joints = false,
       watches_loop_joints = false;  // true if force elements, or limits, use loop joints
  // loop angles whose revolutions are counted; index of the loop coordinates among the sampled values (0: no element uses them)
  int loop_angles = 0, counted = 0;
  const LoopAngle* loop_angle = nullptr;
  bool counts() const { return loop_angles > 0; }
  // Add efforts of motors and other generalised forces. Returns false after a failure, which ends the simulation. Only for single runs.
  bool (*controller)(void* self, double time, const double* q, const double* v, double* motor, double* tau) = nullptr;
  // Compute the efforts of digital controller `index`. Returns false after a failure, which ends the simulation. Only for single runs.
  bool (*sampled)(void* self, int index, double time, const double* q, const double* v, double* motor) = nullptr;
  // Compute rows that depend on q by a function of the caller, with their c and gamma; or the rates of these rows.
  bool (*pfaffian)(void* self, const double* q, const double* v, bool rates, double* numbers) = nullptr;
  // Return true if the simulation must end. It is called from any thread, during steps that take long.
  bool (*stops)(void* self) = nullptr;
  void* self = nullptr;
};

}  // namespace sarrus
