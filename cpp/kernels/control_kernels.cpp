// Control of tasks, at the instruction set level that this file is compiled for.
#include "../control/task_control.hpp"
#include "kernels.hpp"
#include "shared.hpp"

namespace sarrus {
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
#ifndef SARRUS_FALLBACK
SARRUS_SHARED_CONTROL(, Packet<loop_lanes>)
#endif

void add_control_kernels(KernelTable& table) { table.tasks = control_tasks; }

}  // namespace sarrus
