// A task controller as plain data: motors, tasks by priority, contacts with forces, limits.
//
// The unknowns are the efforts of motors and the forces of contacts. The accelerations follow from them by the equation of constrained dynamics, so
// that no solution can violate the dynamics, the loops or a passive joint:
//
//   a = a_0 + A x      lambda = lambda_0 + Lambda x      x = (u, f)
//
// Values that may differ between the runs of a sweep are stored in the row of parameters of a run.
#pragma once

#include "contacts.hpp"
#include "quadratic_programme.hpp"
#include "tasks/set.hpp"

namespace sarrus {

struct Task {
  AnyTask kind;
  int level;  // 0: hard task; 1 and more: priority, of which 1 is the highest
  RowNumbers weight;
  template <class F> void fields(F field) { field("level", level), field("weight", weight); }

  int rows() const {
    return std::visit([](const auto& kind) { return kind.rows(); }, kind);
  }
  /// Return the number of rows, including companion rows that complete groups.
  int all_rows() const {
    return std::visit(
        [](const auto& kind) {
          if constexpr (std::decay_t<decltype(kind)>::is_force)
            return kind.rows();
          else
            return kind.rows() + kind.companions();
        },
        kind);
  }
};

constexpr double far_limit = 1e300;  // bound that means no limit; it is finite, because kernels assume finite values

struct TaskMotor {
  int iv;  // index of the velocity that the motor drives; those of loop joints follow those of the tree
  bool angular;  // true for a rotation
  // number of consecutive motors, beginning with this one, that have the same joint and unit, and therefore share one scale
  int same;
  double weight;  // weight of the squared effort
  double lower, upper, power;  // limits

  template <class F> void fields(F field) {
    field("v", iv), field("angular", angular), field("same", same), field("weight", weight);
    field("lower", lower), field("upper", upper), field("power", power);
  }
};

/// Limits of a coordinate [rad or m] and of its velocity, and the largest deceleration for braking.
struct MotionLimit {
  TaskCoordinate coordinate;
  double lower, upper, velocity, braking;
  double middle;  // if revolutions are not counted, whole turns are added such that the angle is nearest to this value

  template <class F> void fields(F field) {
    field("coordinate", coordinate), field("lower", lower), field("upper", upper), field("velocity", velocity);
    field("braking", braking), field("middle", middle);
  }
};

struct TaskControl {
  std::vector<TaskMotor> motor;
  // number of motors at the end of the list that represent the constraint forces of rigid joints: they are unknowns, and are not applied. A hard task
  // prevents the accelerations of these joints
  int rigid = 0;
  std::vector<Task> task;  // sorted by level
  std::vector<TaskContact> contact;
  std::vector<MotionLimit> motion;
  double horizon = 0.01;  // [s] time in which a velocity may reach its limit
  bool limited = false;
  double force_arm = 0.01;  // [m] the scale of a contact's force is that of its moment, divided by this arm
  int levels = 0;
  int parameters = 0, call_numbers = 0, states = 0;  // number of parameters, of arguments of the call, and of internal states
  bool drives_loop_joints = false;
  QuadraticProgramme solve = nullptr;

  template <class F> void fields(F field) {
    field("motors", motor), field("rigid", rigid), field("tasks", task), field("contacts", contact), field("motion", motion);
    field("horizon", horizon), field("limited", limited), field("force_arm", force_arm), field("levels", levels);
    field("parameters", parameters), field("call_numbers", call_numbers), field("states", states);
  }

  int motors() const { return static_cast<int>(motor.size()); }
  int unknowns() const {
    int n = motors();
    for (const TaskContact& k : contact) n += k.rows;
    return n;
  }
  int limits() const {
    int n = motors() + static_cast<int>(motion.size());
    for (const TaskContact& k : contact) n += k.limits();
    return n;
  }
};

/// Outputs of a controller in addition to the efforts; a null pointer: not computed.
template <class T> struct TaskReport {
  T *x = nullptr, *a = nullptr, *tau = nullptr, *multipliers = nullptr,
    *error = nullptr;  // error of each row of all tasks, without the rows of contacts
  T* missed = nullptr;  // for the same rows: weighted difference between required and actual J a
  T* damping = nullptr;
  signed char* active = nullptr;  // for each limit: see limited.hpp
  int* conflict = nullptr;  // 1: limits of motion were relaxed; 2: hard rows were relaxed; 3: contacts contradict one another
};

/// Data of a state in addition to q and v; null: not available. loop_q: coordinates of loop joints from a caller that counts revolutions; if null,
/// whole turns are added such that an angle is nearest to its target. springs: generalised force (nv) of springs along these angles, which are not
/// part of the tree in this case. pfaffian_values: rows from a function of the caller, with their c and gamma.
template <class T> struct Surroundings {
  const T *loop_q = nullptr, *springs = nullptr, *pfaffian_values = nullptr;
};

/// Add the efforts of motors to `motor` (all joints). z, z_dot: internal states of multiplier tasks, and their rates. `call`: arguments of the call.
/// `other_forces` (or null): forces of other elements on the joints, and on loop joints if the controller reads them. The control law does not use
/// them, but they change the multipliers that the controller measures. Returns the status.
template <class T>
T task_control(const Tree& tree, Arena& arena, const TaskControl& c, const T* parameter, const T* call, const T& time, const T* q,
               const T* v, const T* z, const T* other_forces, T* motor, T* z_dot, const Surroundings<T>& around = {},
               const TaskReport<T>& report = {});

}  // namespace sarrus
