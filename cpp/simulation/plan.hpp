// What a simulation does, as plain constants: enough for a caller that does not include the algorithms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "../control/tasks.hpp"
#include "../mechanism/status.hpp"
#include "../mechanism/tree.hpp"
#include "methods.hpp"

namespace sarrus {

// Coordinates and velocities are numbered on from the tree's over those of joints that close loops, of whose angles a run counts the turns: see
// turns.hpp.

// Each kind of element says whether its force follows the state at once, so that it can be too stiff for a step (`has_rates`), and whether it
// acts at a velocity beyond the nv of the tree (`beyond`).

struct Controller {
  int iq, iv, iz;  // iz: where its internal state stands
  const Law* target;
  int parameter;  // kp, ki, kd, lower, upper

  static constexpr bool has_rates = true;
  bool beyond(int nv) const { return iv >= nv; }
};
struct PrescribedEffort {
  int iv;
  const Law* law;

  static constexpr bool has_rates = false;
  bool beyond(int nv) const { return iv >= nv; }
};
struct Stiction {
  int iv, iz;
  int parameter;  // sliding and sticking friction, Stribeck's velocity, stiffness s0 and damping s1 of the bristles

  static constexpr bool has_rates = true;
  bool beyond(int nv) const { return iv >= nv; }
};
/// A sphere (or, of no radius, a point) of a body against a plane of the world, or ground that is higher than it by a law.
struct Contact {
  int link;
  Vec3<double> center, normal;  // in the body; in the world
  double offset, radius;        // the plane is at normal . x = offset
  int parameter;                // k, n, c, friction, v_s
  const Law* height = nullptr;  // of the distance along . x; null: the plane
  Vec3<double> along = Vec3<double>::Zero();

  static constexpr bool has_rates = true;
  bool beyond(int nv) const { return nv < 0; }
};

/// A force along an axis of a body.
struct Thruster {
  int link;
  Vec3<double> at, axis;  // in the body
  const Law* thrust;
  int parameter;  // least and greatest force

  static constexpr bool has_rates = false;
  bool beyond(int nv) const { return nv < 0; }
};

/// A motor that turns a wheel: it gives way where the wheel would have more momentum than it may.
struct ReactionWheel {
  int iv;
  double inertia;  // about its axis
  const Law* torque;
  int parameter;  // greatest torque and momentum

  static constexpr bool has_rates = true;
  bool beyond(int nv) const { return iv >= nv; }
};

/// A spring and a damper where a coordinate is beyond its limits; they push back, and never pull.
struct EndStop {
  int iq, iv;
  int parameter;  // lower and upper limit, stiffness, damping

  static constexpr bool has_rates = true;
  bool beyond(int nv) const { return iv >= nv; }
};

/// A spring of the mechanism along an angle of a joint that closes a loop.
struct LoopSpring {
  int iq, iv;
  double stiffness, rest;

  static constexpr bool has_rates = true;
  bool beyond(int) const { return true; }
};

/// Tasks, with their numbers and their internal states behind those of others.
struct TaskElement {
  const TaskControl* law;
  int parameter, iz;

  static constexpr bool has_rates = true;
  bool beyond(int nv) const { return nv < 0 || law->drives_loop_joints; }
};

/// A law that knows the mechanism, of independent coordinates: see model_laws.hpp.
enum class ModelLawKind : int { computed_torque, pd_plus, gravity };
struct ModelLawFacts {
  const char* name;
};
inline constexpr ModelLawFacts model_laws[] = {{"computed_torque"}, {"pd_plus"}, {"gravity"}};
struct ModelLaw {
  ModelLawKind kind;
  int targets;  // coordinates with one: all of a tree, or as many as a mechanism with loops has freedoms
  const int *iq, *iv;
  const Law* const* target;
  int motors;  // those of the mechanism; 0: every velocity of the tree has one
  const int* motor;  // the velocity that each of them drives
  int parameter;  // kp of every target, then kd; or, of gravity, a scale
  bool own_motors;  // whether the motors are those of the targets

  static constexpr bool has_rates = true;
  bool beyond(int nv) const {
    return std::any_of(motor, motor + motors, [nv](int at) { return at >= nv; });
  }
};

/// What a drive makes of the effort that controllers ask for along a velocity: a lag, and less the faster it turns. See force_elements.hpp.
struct Drive {
  int iv, iz, order;  // of the lag; it has as many internal states
  int parameter;  // bandwidth (1/time constant, or natural frequency) and damping ratio; stall effort and no-load speed

  static constexpr bool has_rates = true;
  bool beyond(int nv) const { return iv >= nv; }
};

/// Efforts that go through given points of time in straight lines.
struct EffortTable {
  int times, motors;
  const double* time;
  const int* motor;  // velocities
  int parameter;  // times x motors

  static constexpr bool has_rates = false;
  bool beyond(int nv) const {
    return std::any_of(motor, motor + motors, [nv](int at) { return at >= nv; });
  }
};

struct Sampling;

template <class E> struct Elements {
  const E* first = nullptr;
  int count = 0;
  const E* begin() const { return first; }
  const E* end() const { return first + count; }
  bool empty() const { return count == 0; }
};

/// All kinds, in one place: what is asked of every kind visits them.
template <template <class> class Of>
using EveryKind =
    std::tuple<Of<Controller>, Of<PrescribedEffort>, Of<Stiction>, Of<Contact>, Of<EndStop>, Of<Thruster>, Of<ReactionWheel>,
               Of<ModelLaw>, Of<Drive>, Of<EffortTable>, Of<Sampling>, Of<TaskElement>, Of<LoopSpring>>;

struct ForceElements {
  EveryKind<Elements> kinds;
  const double*
      effort_limit;  // of every velocity, those of joints that close loops too: what controllers give in all is kept within it; or null
  int nz, parameters;  // internal states that are integrated, and the numbers that all of them read
  int held = 0;  // numbers that samplings hold, and behind them the coordinates whose turns are counted
  double unwinding = 1e3;  // towards a limit a controller's z goes no faster than it would reach it in the inverse of this [1/s]

  template <class E> const Elements<E>& all() const { return std::get<Elements<E>>(kinds); }
  template <class E> bool any() const { return !all<E>().empty(); }
  /// Whether any force can be stiff at all.
  bool have_rates() const;
  /// Whether one of them is at a velocity beyond so many.
  bool beyond(int nv) const;
};

/// Controllers that are asked at samples only, or a table of efforts: see sampling.hpp.
struct Sampling {
  ForceElements elements;
  bool calls;  // whether the caller's function is asked too
  double period, delay;
  int pending;  // commands that may be on their way
  int at, width;  // where it holds its numbers, and how many velocities there are
  const double *position_step, *velocity_step, *effort_step;  // to whose multiples these are rounded; null: they are not
  int times, motors;  // of a table, else 0
  const double* time;
  const int* motor;
  int parameter;

  static constexpr bool has_rates = false;  // it holds what it gives
  bool beyond(int nv) const {
    return elements.beyond(nv) || std::any_of(motor, motor + motors, [nv](int at) { return at >= nv; });
  }
};

template <class E> bool have_rates(const Elements<E>& some) { return E::has_rates && !some.empty(); }
inline bool ForceElements::have_rates() const {
  return std::apply([](const auto&... some) { return (sarrus::have_rates(some) || ...); }, kinds);
}
inline bool ForceElements::beyond(int nv) const {
  const auto any_of = [nv](const auto& some) {
    return std::any_of(some.begin(), some.end(), [nv](const auto& element) { return element.beyond(nv); });
  };
  return std::apply([&](const auto&... some) { return (any_of(some) || ...); }, kinds);
}

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

/// Dry friction along a velocity, up to this limit. The tree that is simulated has none: see friction.hpp.
struct JointFriction {
  int iv;
  double limit;
};

/// What a simulation does, besides its state.
struct Plan {
  Method method = Method::rk4;
  Stabilisation stabilisation = Stabilisation::projection;
  double gains[2] = {0.0, 0.0};  // K_v and K_p, or 2 alpha and beta^2
  ForceElements force_elements{};
  int limits = 0;  // what is watched, and recorded behind the state: see record.hpp
  const Limit* limit = nullptr;
  bool records = false, watches_rates = false;
  int frictions = 0;
  const JointFriction* friction = nullptr;
  // what numbers are compared with, so that units do not matter: of every velocity 1 rad or a length, of each row of the loops what that moves
  // it by, of each internal state; times are in seconds. Null: 1
  const double *velocity_unit = nullptr, *row_unit = nullptr, *z_unit = nullptr;
  static double one_of(const double* units, int k) { return units ? units[k] : 1.0; }
  const Tree* described = nullptr;  // with its friction: what control laws know; null: the tree at hand
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
  // rows that depend on q, with their c and gamma
  bool (*pfaffian)(void* self, const double* q, const double* v, double* numbers) = nullptr;
  // whether the simulation is to end: asked where much is done within one step, from any thread
  bool (*stops)(void* self) = nullptr;
  void* self = nullptr;
};

struct Clock {
  double start, step;  // the time is start + k step
  std::int64_t first, count;
};

/// Many simulations side by side: row i of x is a state (q, v, z, held), with its record behind it; parameters may be its own (a step of 0 shares them).
struct Sweep {
  double* x;
  int size;
  const double* parameter;
  std::int64_t parameter_step;
  signed char* status;
};

/// Simulation at one instruction set level: of one state, in place, and of many. What returns a double returns the status.
struct SimulationKernels {
  double (*advance)(const Tree&, const Plan&, const double* parameter, const Clock&, double* x);
  void (*advance_many)(const Tree&, const Plan&, const Clock&, const Sweep&, std::int64_t begin, std::int64_t end);
  /// A trial step from x of a method with an embedded pair: where it leads, its polynomial, and what is found of it. `guard`: see record.hpp.
  struct Found {
    double error;  // as a share of what is allowed
    double part;  // of the step, after which a joint comes to rest: there the step ends; 1: none does
    double* demanded;  // where limits are watched, what motors ask for (nv)
  };
  double (*try_step)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* tolerance,
                     const double* x, double* guard, double* there, double* dense, Found& found);
  /// The state at `time` within that step of length `step` from x at `from`, on the loops as its end is.
  void (*between)(const Tree&, const Plan&, const double* parameter, double from, double step, double time, const double* x,
                  const double* guard, const double* dense, double* there);
  /// Takes the samples that are due, of a state.
  double (*sample)(const Tree&, const Plan&, const double* parameter, double time, double* x);
  /// The generalised force of all force elements and functions of the caller, but for springs of the mechanism.
  double (*forces)(const Tree&, const Plan&, const double* parameter, double time, const double* x, double* tau);
  /// The force (nv + loop_nv) of dry friction along every joint, in a state of a run with steps of about this length.
  double (*friction)(const Tree&, const Plan&, const double* parameter, double time, double step, const double* x, double* force);
  /// Coordinates and velocities of the tree's joints at x, and behind them those of joints that close loops.
  void (*all_joints)(const Tree&, const Plan&, double time, const double* x, double* q, double* v);
  /// How near the configuration q is to a singular one: the smallest pivot of the constraints that is none of a redundant row.
  double (*weakest_row)(const Tree&, const Plan&, double time, const double* q);
  /// By how much such units of the velocities (nv) move each row of the loops, or 1.
  void (*row_units)(const Tree&, double time, const double* q, const double* unit, double* rows);
  /// 1 where redundant rows agree only on the loops, else 0.
  double (*only_on_loops)(const Tree&, const Plan&, double time, const double* q);
};

}  // namespace sarrus
