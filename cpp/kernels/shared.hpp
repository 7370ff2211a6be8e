// Algorithms that several kernel files need, compiled once per instruction set level. The instances for joints are in shared_joints.cpp, for one
// state in shared_one.cpp, for packets in shared_many.cpp, for dual numbers in rate_kernels.cpp, and for task control in control_kernels.cpp. Files
// that include this header call these instances, because compiling them in each file would double the build time.
#pragma once

#include "../control/tasks.hpp"
#include "../dynamics/aba.hpp"
#include "../dynamics/crba.hpp"
#include "../dynamics/ltdl.hpp"
#include "../loops/constrained_dynamics.hpp"
#include "../loops/efforts.hpp"
#include "../loops/loop_joints.hpp"
#include "../loops/projection.hpp"
#include "../simd/lanes.hpp"

// EXTERN is `extern`; in the file that compiles the instances it is empty
#define SARRUS_SHARED(EXTERN, T)                                                                                                \
  EXTERN template void kinematics(const Tree&, Arena&, const T*, const T*, const T*, const Kinematics<T>&,                      \
                                  const GroundMotion<T>&);                                                                      \
  EXTERN template void add_joint_forces(const Tree&, const T*, const T*, const T&, T*);                                         \
  EXTERN template void integrate(const Tree&, const T*, const T*, T*);                                                          \
  EXTERN template void difference(const Tree&, const T*, const T*, T*);                                                         \
  EXTERN template RneaWork<T> rnea(const Tree&, Arena&, const RneaInput<T>&, T*);                                               \
  EXTERN template AbaWork<T> aba(const Tree&, Arena&, const AbaInput<T>&, T*);                                                  \
  EXTERN template T* sparse_mass_matrix(const Tree&, Arena&, const T*, Poses<T>, const Motion<T>*);                             \
  EXTERN template void crba(const Tree&, Arena&, const T*, Poses<T>, const Motion<T>*, T*);                                     \
  EXTERN template void crba(const Tree&, Arena&, const T*, T*);                                                                 \
  EXTERN template void add_loop_armature(const Tree&, Arena&, const T*, const T*, T*);                                          \
  EXTERN template void coordinate_rate(const Tree&, const T*, const T*, T*);                                                    \
  EXTERN template void place(const Tree&, Arena&, Poses<T>, const Motion<T>*, LoopState<T>&);                                   \
  EXTERN template LoopState<T> place(const Tree&, Arena&, const T*, const T*, const T*);                                        \
  EXTERN template void rows_between_bodies(const Tree&, Arena&, const LoopState<T>&, const Constraint&,                         \
                                           const ConstraintRows<T>&);                                                           \
  EXTERN template void rows_between_coordinates(const Tree&, const LoopState<T>&, const Constraint&, const ConstraintRows<T>&); \
  EXTERN template void read_loop_joints(const Tree&, Arena&, const LoopState<T>&, const T*, const LoopJoints<T>&);              \
  EXTERN template void tied_dynamics(const Tree&, Arena&, const T*, const T*, const T*, T*);                                    \
  EXTERN template Factor<T> factorise_by_fronts(const Saddle<T>&, Arena&, const T*, const T*);                                  \
  EXTERN template void solve_by_fronts(const Elimination&, const Factor<T>&, Arena&, T*);                                       \
  EXTERN template Factor<T> factorise(const Saddle<T>&, Arena&, const T*, const T*);                                            \
  EXTERN template void solve(const Elimination&, const Factor<T>&, Arena&, T*);                                                 \
  EXTERN template T refine(const Saddle<T>&, Arena&, const Factor<T>&, const T*, T*, int);                                      \
  EXTERN template class SubstructuredEquation<T>;                                                                               \
  EXTERN template LoopEquation<T> loop_equation(const Tree&, Arena&, const LoopInput<T>&);                                      \
  EXTERN template LoopEquation<T> metric_equation(const Tree&, Arena&, const T*, const T*, const T*, const T*, bool,            \
                                                  OffLoops<T>*, T*, T*);                                                        \
  EXTERN template LoopSolution<T> solve_tightly(const LoopEquation<T>&, Arena&, const T*);                                      \
  EXTERN template T moved_by_errors(const LoopEquation<T>&, Arena&, const Factor<T>&, const T&, const T&, bool);                \
  EXTERN template MotorEquation<T> motor_equation(const Tree&, Arena&, const LoopState<T>&, Poses<T>, const Motion<T>*,         \
                                                  const Sharing<T>&, OffLoops<T>*);                                             \
  EXTERN template SharedOut<T> solve(const Tree&, Arena&, MotorEquation<T>&, const T*, OffLoops<T>*);                           \
  EXTERN template T* least_multipliers(const Tree&, Arena&, const LoopEquation<T>&, const LoopSolution<T>&);                    \
  EXTERN template T constrained_dynamics(const Tree&, Arena&, const LoopInput<T>&, T*, T*, T*);

#define SARRUS_SHARED_JOINTS(EXTERN, T)                                                                                         \
  EXTERN template void joint_motion(JointKind, int, const Coordinates<T>&, const T*, JointMotion<T>&);                          \
  EXTERN template void close_joint(JointKind, const JointNumbers<T>&, const Transform<T>&, const Motion<T>&, ClosingJoint<T>&); \
  EXTERN template void read_joint(JointKind, int, const JointNumbers<T>&, const Transform<T>&, const Motion<T>&, const T*,      \
                                  ReadJoint<T>&);

#define SARRUS_SHARED_CONTROL(EXTERN, T)                                                                                    \
  EXTERN template T task_control(const Tree&, Arena&, const TaskControl&, const T*, const T*, const T&, const T*, const T*, \
                                 const T*, const T*, T*, T*, const Surroundings<T>&, const TaskReport<T>&);

#define SARRUS_SHARED_RATES(EXTERN, T)                                                                                   \
  EXTERN template void joint_motion(JointKind, int, const Coordinates<Dual<T>>&, const Dual<T>*, JointMotion<Dual<T>>&); \
  EXTERN template LoopState<Dual<T>> place(const Tree&, Arena&, const Dual<T>*, const Dual<T>*, const Dual<T>*);         \
  EXTERN template void rows_between_bodies(const Tree&, Arena&, const LoopState<Dual<T>>&, const Constraint&,            \
                                           const ConstraintRows<Dual<T>>&);                                              \
  EXTERN template void rows_between_coordinates(const Tree&, const LoopState<Dual<T>>&, const Constraint&,               \
                                                const ConstraintRows<Dual<T>>&);

namespace sarrus {
SARRUS_SHARED_JOINTS(extern, double)
#ifndef SARRUS_ONE_STATE
SARRUS_SHARED_JOINTS(extern, Packet<loop_lanes>)
#ifdef SARRUS_TREE_LANES_DIFFER
SARRUS_SHARED_JOINTS(extern, Packet<tree_lanes>)
#endif
#endif
#ifndef SARRUS_COMPILES_SHARED
SARRUS_SHARED(extern, double)
SARRUS_SHARED_CONTROL(extern, double)
SARRUS_SHARED_RATES(extern, double)
#ifndef SARRUS_ONE_STATE
SARRUS_SHARED(extern, Packet<loop_lanes>)
SARRUS_SHARED_CONTROL(extern, Packet<loop_lanes>)
SARRUS_SHARED_RATES(extern, Packet<loop_lanes>)
#endif
#endif
}  // namespace sarrus
