// What a controller of tasks is told, as plain constants: tasks in their order of priority, contacts that push, limits that hold.
//
// The unknowns are what the robot can choose: efforts of its motors, then forces of its contacts. Accelerations follow from them by the
// equation of constrained dynamics, so that nothing that is solved for can contradict the dynamics, the loops or a passive joint:
//
//   a = a_0 + A x      lambda = lambda_0 + Lambda x      x = (u, f)
//
// A task is rows J a = r. Numbers that a sweep may vary are read from a row of parameters.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "../mechanism/arena.hpp"
#include "../mechanism/tree.hpp"

namespace sarrus {

/// Kinds of rows, by the names that descriptions have for them; task_rows.hpp says what they are.
///   frame           pose of a frame relative to another one: J a = a_d + kd (v_d - v) + kp e
///   joints          coordinates of joints, those that close loops too
///   center_of_mass  J a as of a frame
///   momentum        about the centre of mass: its rate, h_d-dot + kp (h_d - h)
///   multiplier      of constraints' rows: lambda = target + ki z, z-dot = target - lambda
///   force           of a contact, along its axes; components follow the kind of contact
#define SARRUS_TASK_KINDS(X) X(frame) X(joints) X(center_of_mass) X(momentum) X(multiplier) X(force)

enum class TaskKind : int {
#define SARRUS_TASK_KIND(name) name,
  SARRUS_TASK_KINDS(SARRUS_TASK_KIND)
#undef SARRUS_TASK_KIND
};

struct Task {
  TaskKind kind;
  int level;  // 0: what must hold; then priorities, from the highest on
  bool hard;  // none of its rows may be missed
  std::vector<int>
      component;  // of each row: 0 .. 5 of [angular; linear]; the row of all constraints; the component of the contact's force
  std::vector<int>
      beside;  // frames, centre of mass, momentum: the other components of those halves; no rows, but they tell rows' sizes
  int link[2] = {0, 0};  // frames: child, reference
  Transform<double> X[2];
  bool target_axes = false;  // rows along the target's axes, not the reference's
  std::vector<int> iq, iv;  // joints, numbered on from the tree's over those that close loops
  std::vector<char> turns;  // whether a pose does not tell how often a coordinate has turned
  std::vector<char> angular;  // whether its velocity turns
  int contact = -1;
  std::vector<const Law*> target;  // frames: rotation vector and position (6); else one a row. Each adds to its parameter
  std::vector<const Law*> push;  // impedances: of each row, the force that acts from outside; or none
  std::vector<double> stiffness, damping, yielding;  // impedances: (rows x rows) inertia^-1 K, inertia^-1 D, inertia^-1; or none
  int parameter;  // rows x (kp, kd, weight), then the targets
  int given = -1;  // frames: where, in the numbers that a call brings along, R (9), p (3), V, A (6 each) of the target start
  int iz = -1;  // multipliers: their internal states

  int rows() const { return static_cast<int>(component.size()); }
};

/// Where a body touches what stands still: it stays there, and is pushed within a cone.
struct TaskContact {
  int link;
  Transform<double> X;  // its frame on the link: z is the normal, away from what is touched,
  bool in_world;  // if these axes do not turn with the link
  int rows;  // 1: along the normal alone; 3: at a point; 6: on a rectangle about the frame's origin
  double friction, torsion, half_x, half_y;  // torsion: moment about the normal per normal force [m]
  double damping;  // of a velocity that it should not have [1/s]
};

/// What is to stay between two numbers: an unknown, an acceleration, or a sum of unknowns.
enum class LimitKind : int { effort, power, velocity, position, cone };

struct TaskLimits {
  std::vector<double> effort_lower, effort_upper, power;  // of each effort
  struct Joint {
    int iq, iv;
    bool turns;
    double lower, upper, speed, braking;  // position [rad or m], velocity, deceleration that brakes; far: none
    double near;  // where turns are not counted, of all angles the one nearest to this is meant
  };
  std::vector<Joint> joint;
  double horizon = 0.01;  // within which a velocity may reach its limit [s]
  static constexpr double far = 1e300;  // no limit: kernels know no infinity
};

/// min 1/2 y^T H y + f^T y, lower <= C y <= upper (rows x n); lambda of each row, positive at its upper bound. Returns 1, -1 where
/// no y satisfies all, another number below where it fails.
using QuadraticProgramme = int (*)(int n, int rows, const double* H, const double* f, const double* C, const double* lower,
                                   const double* upper, double* y, double* lambda);

struct TaskControl {
  std::vector<int> motor;  // of each effort, the velocity that it drives, numbered on over joints that close loops
  std::vector<char> angular;  // of each, whether that velocity turns
  std::vector<int> together;  // of each, how many follow on that are of the same joint and unit, this one included
  std::vector<Task> task;  // by level
  std::vector<TaskContact> contact;
  TaskLimits limits;
  bool limited = false;
  std::shared_ptr<std::deque<Law>> laws;  // what targets point to
  std::vector<double> effort_weight;
  double force_arm = 0.01;  // [m] a contact's force counts like the moment that it has at this arm
  int levels = 0;
  int parameters = 0, given = 0, states = 0;  // numbers of them
  bool drives_loop_joints = false;
  QuadraticProgramme solve = nullptr;

  int forces() const {
    int n = 0;
    for (const TaskContact& c : contact) n += c.rows;
    return n;
  }
  int unknowns() const { return static_cast<int>(motor.size()) + forces(); }
};

/// What a controller found, beside the efforts. Null: not asked for.
template <class T> struct TaskReport {
  T *x = nullptr, *a = nullptr, *tau = nullptr, *multipliers = nullptr,
    *error = nullptr;  // error: of the rows of all tasks, contacts' none
  T* missed = nullptr;  // of the same rows: by how much J a is not what they ask, as a share
  T* damping = nullptr;
  signed char* active = nullptr;  // of each limit: see limited.hpp
  int* conflict = nullptr;  // 1: limits of motion were given up; 2: rows that must hold were
};

/// Where somebody counts the turns of joints that close loops: their coordinates, and the generalised force (nv) of the mechanism's springs that
/// follow these, of which the tree does not know; or null. Where nobody does, an angle is the one that is nearest to what is wanted.
template <class T> struct CountedTurns {
  const T *q = nullptr, *springs = nullptr;
};

/// Adds the efforts of motors to `motor`, of all joints; z and z_dot are of the multipliers' tasks. `others`: forces of what else acts, of
/// the joints (those that close loops too, if the controller reads them): it does not know them, but they change what it measures. Or null.
/// Returns the status.
template <class T>
T task_control(const Tree& tree, Arena& arena, const TaskControl& c, const T* parameter, const T* given, const T& time,
               const T* q, const T* v, const T* z, const T* others, T* motor, T* z_dot, const CountedTurns<T>& turns = {},
               const TaskReport<T>& report = {});

}  // namespace sarrus
