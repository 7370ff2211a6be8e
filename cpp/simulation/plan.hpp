// What a simulation does, as plain constants: enough for a caller that does not include the algorithms.
#pragma once

#include "../mechanism/loops.hpp"
#include "../mechanism/status.hpp"

namespace sarrus {

struct Controller {
  int iq, iv, memory;  // memory: where its z stands
  const Law* target;
  int parameter;  // kp, ki, kd, lower, upper
};
struct PrescribedEffort {
  int iv;
  const Law* law;
};
struct Stiction {
  int iv, memory;
  int parameter;  // sliding and sticking friction, Stribeck's velocity, stiffness s0 and damping s1 of the bristles
};
/// A sphere (or, of no radius, a point) of a body against a plane of the world.
struct Contact {
  int body;
  Vec3<double> center, normal;  // in the body; in the world
  double offset, radius;        // the plane is at normal . x = offset
  int parameter;                // k, n, c, friction, v_s
};

/// A spring and a damper where a coordinate is beyond its limits; they push back, and never pull.
struct EndStop {
  int iq, iv;
  int parameter;  // lower and upper limit, stiffness, damping
};

struct Actions {
  int controllers, efforts, stictions, contacts, end_stops;
  const Controller* controller;
  const PrescribedEffort* effort;
  const Stiction* stiction;
  const Contact* contact;
  const EndStop* end_stop;
  const double* effort_limit;  // of every velocity: what controllers give in all is kept within it; or null
  const Law* const* target;  // computed torque: of every velocity, or null
  int computed;              // its parameters: kp of every velocity, then kd
  int memory, parameters;    // how many numbers they remember; how many they read
};

enum class Method : int { euler, semi_implicit, rk4, rkmk4, dopri5, implicit_midpoint, independent };
enum class Stabilisation : int { none, corrective, baumgarte, projection };

/// A coordinate, a velocity, or what controllers ask for along it, that is to stay between two numbers.
enum class Quantity : int { position, velocity, effort };
struct Limit {
  Quantity of;
  int at;
  double lower, upper;
};

/// What one run does, besides its state.
struct Plan {
  Method method;
  Stabilisation stabilisation;
  double gains[2];  // K_v and K_p, or 2 alpha and beta^2
  bool close_stages;  // what a step looks at on its way is brought onto the loops too
  Actions actions;
  int limits;  // what a run is watched for, and recorded behind its state: see record.hpp
  const Limit* limit;
  bool records, watches_rates;
  // adds what motors give and what other forces do; false: it failed, and the run ends. Only one state at a time may have one.
  bool (*controller)(void* self, double time, const double* q, const double* v, double* motor, double* tau);
  bool (*pfaffian)(void* self, const double* q, const double* v,
                   double* numbers);  // rows that depend on q, with their c and gamma
  void* self;
};

}  // namespace sarrus
