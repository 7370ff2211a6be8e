// Kernels for functions of a state of mechanisms with loops. Forward dynamics is one of these functions, because loops change its result.
#pragma once

#include "../dynamics/aba.hpp"
#include "../loops/answers.hpp"
#include "../loops/branch.hpp"
#include "../loops/effort_regressor.hpp"
#include "../loops/equilibrium.hpp"
#include "../loops/joint_loads.hpp"
#include "../loops/least_reactions.hpp"
#include "../loops/mobility.hpp"
#include "../loops/path_motion.hpp"
#include "../loops/projection.hpp"
#include "../loops/reduced_dynamics.hpp"
#include "../simd/lanes.hpp"
#include "call.hpp"
#include "verdict.hpp"

namespace sarrus {

/// Compute a. If not null, `multipliers` receives the multipliers, and `residual` three numbers: the residual, the error bound of a, and the least
/// pivot of the rows.
template <class T> T constrained_dynamics(const Call<T>& call, T* a, T* multipliers, T* residual) {
  LoopInput<T> in = {call.in[0], call.in[1], call.in[2], call.wrenches(), call.wrench, call.in[3], call.in[4]};
  OffLoops<T> off;
  if (call.parameters.check) in.off = &off;
  return verdict_of_solution(constrained_dynamics(call.tree, call.arena, in, a, multipliers, residual), off);
}

SARRUS_KERNEL(forward_dynamics, {
  if (tree.loops.rows + tree.loops.rotor_rows > 0)
    return constrained_dynamics(call, out, static_cast<T*>(nullptr), static_cast<T*>(nullptr));
  aba(tree, arena, AbaInput<T>{in[0], in[1], in[2], call.wrenches(), call.wrench}, out);
})
SARRUS_KERNEL(constrained_motion, {
  T* multipliers = out + tree.nv;
  if (tree.loops.rows + tree.loops.rotor_rows == 0) {
    aba(tree, arena, AbaInput<T>{in[0], in[1], in[2], call.wrenches(), call.wrench}, out);
    multipliers[0] = multipliers[1] = T(0.0), multipliers[2] = T(1.0);
    return T(0.0);
  }
  return constrained_dynamics(call, out, multipliers, multipliers + tree.loops.rows);
})
/// Return the status no_answer if loops remain open, else 0.
template <class T> SARRUS_INLINE T closure(const T& error) {
  return select(error > T(square(tolerances::projected)), T(no_answer), T(0.0));
}

SARRUS_KERNEL(constraint_jacobian, constraint_jacobian(tree, arena, place(tree, arena, in[0], in[1], in[2]), out);)
SARRUS_KERNEL(constraint_jacobian_derivative, constraint_jacobian_derivative(tree, arena, in[0], in[1], in[2], in[3], out);)
SARRUS_KERNEL(constraint_velocity, {
  ConstraintRows<T> row_output;
  row_output.target = out;
  constraint_rows(tree, arena, place(tree, arena, in[0], in[1], in[2]), row_output, 0, tree.loops.constraints);
})
SARRUS_KERNEL(constraint_bias, constraint_bias(tree, arena, in[0], in[1], in[2], in[3], out);)
SARRUS_KERNEL(constraint_residual, {
  ConstraintRows<T> row_output;
  row_output.residual = out;
  constraint_rows(tree, arena, place(tree, arena, in[0], in[1], in[2]), row_output, 0, tree.loops.constraints);
})
SARRUS_KERNEL(loop_wrenches, loop_wrenches(tree, arena, place(tree, arena, in[0], in[2], none), in[1], out);)
SARRUS_KERNEL(loop_joint_wrenches, loop_joint_wrenches(tree, call.motion(in[0], in[1], in[2]), out);)
SARRUS_KERNEL(effort_wrenches, effort_wrenches(tree, arena, place(tree, arena, in[0], in[2], none), in[1], out);)
SARRUS_KERNEL(joint_loads, joint_loads(tree, arena, call.motion(in[0], in[1], in[2]), place(tree, arena, in[0], in[5], none),
                                       call.wrenches(), call.wrench, in[3], in[4], out);)
SARRUS_KERNEL(least_reactions,
              return least_reactions(tree, arena, place(tree, arena, in[0], in[5], in[6]), in[1], in[2], in[3], in[4], out);)
SARRUS_KERNEL(loop_joint_coordinates, {
  LoopJoints<T> joints;
  joints.q = out;
  read_loop_joints(tree, arena, place(tree, arena, in[0], in[2], none), in[1], joints);
})
SARRUS_KERNEL(loop_joint_velocities, {
  LoopState<T> state = place(tree, arena, in[0], in[3], none);
  LoopJoints<T> joints;
  state.v = in[1], joints.v = out;
  read_loop_joints(tree, arena, state, in[2], joints);
})
SARRUS_KERNEL(loop_joint_accelerations, {
  const auto work = rnea(tree, arena, RneaInput<T>{in[0], in[1], in[2]}, arena.take<T>(tree.nv));
  LoopState<T> state = {in[0], in[1], in[4], nullptr, nullptr, nullptr, work.link};
  place(tree, arena, work.poses(), work.columns, state);
  LoopJoints<T> joints;
  joints.a = out;
  read_loop_joints(tree, arena, state, in[3], joints);
})
SARRUS_KERNEL(loop_joint_jacobian, {
  LoopJoints<T> joints;
  joints.J = out;
  read_loop_joints(tree, arena, place(tree, arena, in[0], in[1], none), none, joints);
})
/// Return the status inconsistent_constraints if no velocity satisfies the loops. In a consistent linear equation, only a rounding error remains.
template <class T> SARRUS_INLINE T allowed(const T& error) {
  return verdict_beyond(error, T(tolerances::unresolved), inconsistent_constraints);
}

/// Return the status inconsistent_constraints if no velocity satisfies the loops, and off_loops if a gap of the loops determines the result.
template <class T> T changed_velocity(const Call<T>& call, const T* restitution, const T* const* in, bool plain, T* impulses) {
  T ambiguous;
  const T error = change_velocity(call.tree, call.arena, call.in[0], call.in[1], restitution, in[0], in[1], plain, call.out,
                                  impulses, ambiguous);
  return select(ambiguous > T(0.0), T(off_loops), allowed(error));
}
SARRUS_KERNEL(velocity_by_mass, return changed_velocity(call, none, in + 2, false, static_cast<T*>(nullptr));)
SARRUS_KERNEL(velocity_plain, return changed_velocity(call, none, in + 2, true, static_cast<T*>(nullptr));)
SARRUS_KERNEL(velocity_jump, return changed_velocity(call, in[2], in + 3, false, out + tree.nv);)
SARRUS_KERNEL(configuration_by_mass, return closure(project_configuration(tree, arena, in[0], in[1], in[2], in[3], false, out));)
SARRUS_KERNEL(configuration_plain, return closure(project_configuration(tree, arena, in[0], in[1], in[2], in[3], true, out));)
SARRUS_KERNEL(least_motion, return verdict(least_motion(tree, arena, in[0], in[1], in[2], in[3], in[4], in[5], in[6], out));)
// the remaining |phi| is stored after the configuration, because the caller compares it with its tolerance
SARRUS_KERNEL(close, {
  normalize(tree, in[0], out);
  const ClosureOptions<T> options = {in[1], in[1] + tree.nv, in[2][0], in[2][1], in[2][2]};
  out[tree.nq] = close(tree, arena, options, in[3], in[4], out);
})
/// Inputs of path continuation, and the branch from its initial configuration.
template <class T> struct TracedBranch {
  BranchInput<T> in;
  Branch<T> branch;

  explicit TracedBranch(const Call<T>& call)
      : in{call.in[1], call.in[2], call.in[3][0], call.in[3][1], call.in[3][2], call.parameters.inputs, call.in[4]},
        branch(call.tree, call.arena, in) {
    normalize(call.tree, call.in[0], call.out);
  }
};
SARRUS_KERNEL(branch, {
  TracedBranch<T> traced(call);
  T* q = arena.take<T>(tree.nq);
  for (int k = 0; k < tree.nq; ++k) q[k] = out[k];
  return select(traced.branch.trace(q, out) < T(call.parameters.inputs - 1.0), T(no_answer), T(0.0));
})
SARRUS_KERNEL(move_along_branch, TracedBranch<T>(call).branch.move(out, out + tree.nq);)
// the result is not tested here, because the caller compares the imbalance along each mode with its tolerance
SARRUS_KERNEL(equilibrium, {
  const int nv = tree.nv;
  const EquilibriumInput input = {in[1], in[2], in[2] + nv, in[3][0] > 0.0, in[3][1], in[4], in[5]};
  T *holding_effort = out + tree.nq + tree.loops.rows, *freedom = holding_effort + nv, *stiffness = freedom + 2;
  equilibrium<SideBySide>(tree, arena, input, in[0],
                          {out, out + tree.nq, holding_effort, freedom, freedom + 1, stiffness, stiffness + nv,
                           stiffness + 2 * nv, stiffness + (2 + nv) * nv});
})
SARRUS_KERNEL(mobility_numbers, {
  const ClosureOptions<T> options = {in[1], in[1] + tree.nv, T(0.0), T(0.0), T(0.0)};
  mobility_numbers(tree, arena, call.frame(), options, in[2], in[0], in[3], in[4], out);
})
SARRUS_KERNEL(actuator_efforts, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {}, call.wrenches(), call.wrench};
  OffLoops<T> off;
  const Sharing<T> sharing = {in[5], in[6]};
  const T error = actuator_efforts(tree, arena, motion, in[3], in[4], sharing, out, call.parameters.check ? &off : nullptr);
  const T status = verdict(error, off);
  if (!call.parameters.exact || tree.loops.rows == 0) return status;
  return select(forbidden(tree, arena, motion, in[3], in[4]) > T(1.0), T(inconsistent_constraints), status);
})
SARRUS_KERNEL(effort_regressor, return verdict(effort_regressor(tree, arena, call.motion(in[0], in[1], in[2]),
                                                                place(tree, arena, in[0], in[3], in[4]), out));)
SARRUS_KERNEL(loop_jacobian, return verdict(loop_jacobian(tree, arena, call.motion(in[0], none, none),
                                                          place(tree, arena, in[0], in[1], in[2]), call.frame(), out));)
// the result is not tested here, because the caller checks if the coordinates determine the motion
SARRUS_KERNEL(reduced_dynamics, {
  const ReducedInput input = {in[0], in[1], in[2], in[2] + tree.nv, in[3], in[4], in[5], in[6], call.wrenches(), call.wrench};
  reduced_dynamics(tree, arena, input, call.frame(), out);
})
SARRUS_KERNEL(path_motion, path_motion(tree, arena, PathPiece::over(tree, in[0]), in[1], in[2], in[3], out);)
// out: projector onto the motions that the loops allow, for scaled velocities; then the number of these motions
SARRUS_KERNEL(loop_motions, {
  T* J = arena.take<T>(tree.loops.entries);
  ConstraintRows<T> row_output;
  row_output.J = J;
  constraint_rows(tree, arena, place(tree, arena, in[0], in[2], in[3]), row_output, 0, tree.loops.constraints);
  const LoopMotions motions(tree, arena, J, in[1], in[1] + tree.nv);
  motions.projector(motions.basis(), out);
  out[tree.nv * tree.nv] = motions.freedom;
})

}  // namespace sarrus
