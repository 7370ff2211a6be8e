// Kernels of task control, at the instruction set level for which this file is compiled.
#include "../control/bounded_efforts.hpp"
#include "../control/task_control.hpp"
#include "kernels.hpp"
#include "run.hpp"
#include "shared.hpp"
#include "verdict.hpp"

namespace sarrus {

SARRUS_KERNEL(bounded_efforts, {
  const RneaInput<T> motion = {in[0], in[1], in[2], {}, call.wrenches(), call.wrench};
  const int nu = tree.loops.actuators;
  const Sharing<T> sharing = in[6] ? Sharing<T>{in[6], in[6] + nu} : Sharing<T>{};
  return verdict(
      bounded_efforts(call.parameters.solve, tree, arena, motion, in[4], in[5], sharing, {in[3], in[3] + nu}, out, out[nu]));
})

namespace {

double control_tasks(const Tree& tree, const TaskControl& c, const double* parameter, const double* call, double time,
                     const double* q, const double* v, const double* z, double* motor, const Surroundings<double>& around,
                     const TaskReport<double>& report) {
  Arena& arena = thread_arena();
  const Arena::Scope scope(arena);
  double* z_dot = arena.take<double>(c.states);
  return task_control<double>(tree, arena, c, parameter, call, time, q, v, z, nullptr, motor, z_dot, around, report);
}

}  // namespace

SARRUS_SHARED_CONTROL(, double)
#ifndef SARRUS_ONE_STATE
SARRUS_SHARED_CONTROL(, Packet<loop_lanes>)
#endif

void add_control_kernels(KernelTable& table) {
  table.tasks = control_tasks;
#define SARRUS_ADD(name, ...)                                                      \
  table.single[static_cast<int>(Operation::name)] = single_state<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = table.each[static_cast<int>(Operation::name)] = one_by_one<Operation::name>;
  SARRUS_CONTROL_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
