// What a simulation does, besides its state.
#pragma once

#include "../elements/set.hpp"
#include "../mechanism/status.hpp"
#include "../mechanism/variant_numbers.hpp"
#include "methods.hpp"

namespace sarrus {

/// A coordinate, a velocity, or what controllers ask for along it, that is to stay between two numbers.
enum class Quantity : int { position, velocity, effort };
struct Limit {
  Quantity of;
  int at;
  double lower, upper;
};

/// An angle of a joint that closes a loop, and its rate: places among the coordinates and the velocities of all such joints.
struct LoopAngle {
  int iq, iv;
};

/// Dry friction along a velocity, up to the mechanism's limit. The tree that is simulated has none: see friction.hpp.
struct JointFriction {
  int iv;
  JointTerms terms;
};

struct Plan {
  Method method = Method::rk4;
  Stabilisation stabilisation = Stabilisation::projection;
  double gains[2] = {0.0, 0.0};  // K_v and K_p, or 2 alpha and beta^2
  ForceElements force_elements{};
  int limits = 0;  // what is watched, and recorded behind the state: see record.hpp
  const Limit* limit = nullptr;
  bool records = false, watches_rates = false, measures = false;  // measures: the work of what acts is recorded
  int frictions = 0;
  const JointFriction* friction = nullptr;
  // what numbers are compared with, so that units do not matter: of every velocity 1 rad or a length, of each row of the loops what that moves
  // it by, of each internal state; times are in seconds. Null: 1
  const double *velocity_unit = nullptr, *row_unit = nullptr, *z_unit = nullptr;
  static double one_of(const double* units, int k) { return units ? units[k] : 1.0; }  // of one mechanism
  int units(const Tree& t) const {
    return t.nv + t.loop_nv + t.loops.rows + force_elements.nz;
  }  // they stand so, one behind the other
  void have_units(const double* all, const Tree& t) {
    velocity_unit = all, row_unit = all + t.nv + t.loop_nv, z_unit = row_unit + t.loops.rows;
  }
  const Tree *described = nullptr,
             *whole = nullptr;  // what control laws know, and with what runs take over: run_numbers.hpp; null: the tree at hand
  // of variants: their numbers; of each that runs may be of, which one it is, and its units (none where there are none)
  const VariantNumbers* variants = nullptr;
  const std::int64_t* variant = nullptr;
  const double* units_of = nullptr;
  bool drives_loop_joints = false,
       watches_loop_joints = false;  // whether force elements, or limits, are at joints that close loops
  // whose turns are counted, and where the coordinates of joints that close loops stand in what is held; none: nothing reads them
  int loop_angles = 0, counted = 0;
  const LoopAngle* loop_angle = nullptr;
  bool counts() const { return loop_angles > 0; }
  // adds the efforts of motors and other generalised forces; false: it failed, and the simulation ends. Not for many at once.
  bool (*controller)(void* self, double time, const double* q, const double* v, double* motor, double* tau) = nullptr;
  // the same of a sampling, by its number
  bool (*sampled)(void* self, int which, double time, const double* q, const double* v, double* motor) = nullptr;
  // rows that depend on q, with their c and gamma; or how fast they change
  bool (*pfaffian)(void* self, const double* q, const double* v, bool rates, double* numbers) = nullptr;
  // whether the simulation is to end: asked where much is done within one step, from any thread
  bool (*stops)(void* self) = nullptr;
  void* self = nullptr;
};

}  // namespace sarrus
