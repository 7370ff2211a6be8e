// Plan of a simulation: everything but its state.
#pragma once

#include "../elements/set.hpp"
#include "../mechanism/status.hpp"
#include "../mechanism/variant_numbers.hpp"
#include "methods.hpp"

namespace sarrus {

/// Quantity that a limit applies to: a coordinate, a velocity, or the effort of controllers along it.
enum class Quantity : int { position, velocity, effort };
struct Limit {
  Quantity of;
  int at;
  double lower, upper;
};

/// An angle of a loop joint, and its rate: indices among the coordinates and the velocities of all loop joints.
struct LoopAngle {
  int iq, iv;
};

/// Dry friction along a velocity, up to the mechanism's limit. The simulated tree has none: see friction.hpp.
struct JointFriction {
  int iv;
  JointTerms terms;
};

struct Plan {
  Method method = Method::rk4;
  Stabilisation stabilisation = Stabilisation::projection;
  double gains[2] = {0.0, 0.0};  // K_v and K_p, or 2 alpha and beta^2
  ForceElements force_elements{};
  int limits = 0;  // limits that are watched, and recorded after the state: see record.hpp
  const Limit* limit = nullptr;
  bool records = false, watches_rates = false, measures = false;  // measures: the work of applied forces is recorded
  int frictions = 0;
  const JointFriction* friction = nullptr;
  // reference values, so that units do not matter: for every velocity 1 rad or a length, for each row of the loops the residual that such a motion
  // causes, for each internal state; times are in seconds. Null: 1
  const double *velocity_unit = nullptr, *row_unit = nullptr, *z_unit = nullptr;
  static double unit_of(const double* units, int k) { return units ? units[k] : 1.0; }  // of a single mechanism
  int units(const Tree& t) const {
    return t.nv + t.loop_nv + t.loops.rows + force_elements.nz;
  }  // they are contiguous, in this order
  void have_units(const double* all, const Tree& t) {
    velocity_unit = all, row_unit = all + t.nv + t.loop_nv, z_unit = row_unit + t.loops.rows;
  }
  const Tree *
      described = nullptr,
     *full_tree =
         nullptr;  // the tree of control laws, and the one with the terms that runs take over: run_numbers.hpp; null: the simulated tree
  // variants: their numbers; the variant of each run; and the units of each run (null without variants)
  const VariantNumbers* variants = nullptr;
  const std::int64_t* variant = nullptr;
  const double* units_of = nullptr;
  bool drives_loop_joints = false,
       watches_loop_joints = false;  // true if force elements, or limits, act on loop joints
  // loop angles whose turns are counted, and the place of the loop joints' coordinates among the held values; 0: no element reads them
  int loop_angles = 0, counted = 0;
  const LoopAngle* loop_angle = nullptr;
  bool counts() const { return loop_angles > 0; }
  // add the efforts of motors and other generalised forces; false: failure, the simulation ends. For single runs only.
  bool (*controller)(void* self, double time, const double* q, const double* v, double* motor, double* tau) = nullptr;
  // the same for a digital controller, by its index
  bool (*sampled)(void* self, int index, double time, const double* q, const double* v, double* motor) = nullptr;
  // rows that depend on q, with their c and gamma; or their rates
  bool (*pfaffian)(void* self, const double* q, const double* v, bool rates, double* numbers) = nullptr;
  // true if the simulation is to end: called from any thread in steps with much work
  bool (*stops)(void* self) = nullptr;
  void* self = nullptr;
};

}  // namespace sarrus
