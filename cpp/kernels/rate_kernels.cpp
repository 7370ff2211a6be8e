// Kernels of first derivatives of functions of a state: one column for each displacement of an input (of q in the tangent space). The kernel of the
// function is evaluated on dual numbers (simd/dual.hpp), with as many directions as there are lanes, so no derivative formulas are needed.
#include "../dynamics/derivatives.hpp"
#include "loop_operations.hpp"
#include "run.hpp"
#include "shared.hpp"
#include "tree_operations.hpp"

namespace sarrus {

/// Call each(input, first, count, result) for each varied input, where result contains `size` dual numbers along its displacements first .. first +
/// count - 1. `inputs` names the inputs in the order of the operation: q and inputs of nv values are varied; t (a time) and p (values of rows) are
/// constant.
template <class R, Operation op, class Each>
void along_displacements(const Call<double>& call, const char* inputs, int size, const Each& each) {
  const Tree& tree = call.tree;
  Arena& arena = call.arena;
  for (int varies = 0; inputs[varies] == 'q' || inputs[varies] == 'v'; ++varies)
    each_direction<R>(tree, arena, [&](int first, int count, const R* d) {
      const R* none = nullptr;
      const Varied<R>* in[max_inputs] = {};
      for (int k = 0; inputs[k]; ++k) {
        const R* along = k == varies ? d : none;
        switch (inputs[k]) {
          case 'q': in[k] = varied_configuration(tree, arena, call.in[k], along); break;
          case 'v': in[k] = varied(arena, tree.nv, call.in[k], along); break;
          case 't': in[k] = varied(arena, 1, call.in[k], none); break;
          default: in[k] = varied(arena, tree.loops.pfaffian_values, call.in[k], none);
        }
      }
      auto* answer = arena.take<Varied<R>>(size);
      Kernel<op>::template run<Varied<R>>({tree, arena, call.parameters, in, nullptr, answer});
      each(varies, first, count, answer);
    });
}

/// Write the derivatives (inputs x size x nv) of a function whose result is a row of values.
template <class R, Operation op> void derivatives(const Call<double>& call, const char* inputs, int size) {
  along_displacements<R, op>(call, inputs, size, [&](int input, int first, int count, const Varied<R>* answer) {
    double* out = call.out + input * size * call.tree.nv;
    for (int i = 0; i < size; ++i)
      for (int l = 0; l < count; ++l) out[i * call.tree.nv + first + l] = lane(answer[i].rate, l);
  });
}

/// Compute E (nq x nv), q-dot = E v. Columns of a joint are orthogonal, therefore v = N q-dot with N (nv x nq) = (E^T E)^-1 E^T.
inline void coordinates_by_tangent(const Tree& tree, Arena& arena, const double* q, double* E) {
  double *v = arena.take<double>(tree.nv), *rate = arena.take<double>(tree.nq);
  std::fill(v, v + tree.nv, 0.0);
  for (int k = 0; k < tree.nv; ++k) {
    v[k] = 1.0;
    coordinate_rate(tree, q, v, rate);
    for (int i = 0; i < tree.nq; ++i) E[i * tree.nv + k] = rate[i];
    v[k] = 0.0;
  }
}
inline void tangent_by_coordinates(const Tree& tree, Arena& arena, const double* q, double* N) {
  double* E = arena.take<double>(tree.nq * tree.nv);
  coordinates_by_tangent(tree, arena, q, E);
  for (int k = 0; k < tree.nv; ++k) {
    double square = 0.0;
    for (int i = 0; i < tree.nq; ++i) square += E[i * tree.nv + k] * E[i * tree.nv + k];
    for (int i = 0; i < tree.nq; ++i) N[k * tree.nq + i] = E[i * tree.nv + k] / square;
  }
}

/// Write the derivatives of J(q) v: those with respect to q, which are rates of J times v, and those with respect to v, the matrix J.
inline void constraint_rates_derivatives(const Call<double>& call) {
  const Tree& tree = call.tree;
  const int nv = tree.nv, rows = tree.loops.rows;
  const double *v = call.in[1], *const state[max_inputs] = {call.in[0], call.in[2], call.in[3]};
  const Call<double> row_call = {tree, call.arena, call.parameters, state, nullptr, nullptr};
  const auto keep = [&](int, int column, int, const Varied<double>* J) {
    for (int r = 0; r < rows; ++r) {
      double rate = 0.0;
      for (int k = 0; k < nv; ++k) rate += J[r * nv + k].rate * v[k];
      call.out[r * nv + column] = rate;
    }
  };
  along_displacements<double, Operation::constraint_jacobian>(row_call, "qtp", rows * nv, keep);
  constraint_jacobian(tree, call.arena, place(tree, call.arena, state[0], state[1], state[2]), call.out + rows * nv);
}

/// Write the derivatives of the integrated configuration, as displacements in the tangent space of that configuration.
inline void integrate_derivatives(const Call<double>& call) {
  const Tree& tree = call.tree;
  const int nq = tree.nq, nv = tree.nv;
  double *q1 = call.arena.take<double>(nq), *N = call.arena.take<double>(nv * nq);
  integrate(tree, call.in[0], call.in[1], q1);
  tangent_by_coordinates(tree, call.arena, q1, N);
  const auto keep = [&](int input, int column, int, const Varied<double>* moved) {
    for (int k = 0; k < nv; ++k) {
      double rate = 0.0;
      for (int i = 0; i < nq; ++i) rate += N[k * nq + i] * moved[i].rate;
      call.out[(input * nv + k) * nv + column] = rate;
    }
  };
  along_displacements<double, Operation::integrate>(call, "qv", nq, keep);
}

SARRUS_KERNEL(pose_derivatives, derivatives<SideBySide, Operation::pose>(call, "q", 16);)
SARRUS_KERNEL(velocity_derivatives, derivatives<SideBySide, Operation::velocity>(call, "qv", 6);)
SARRUS_KERNEL(acceleration_derivatives, derivatives<SideBySide, Operation::acceleration>(call, "qvv", 6);)
SARRUS_KERNEL(momentum_derivatives, derivatives<SideBySide, Operation::momentum>(call, "qv", 6);)
SARRUS_KERNEL(centroidal_momentum_derivatives, derivatives<SideBySide, Operation::centroidal_momentum>(call, "qv", 6);)
SARRUS_KERNEL(kinetic_energy_derivatives, derivatives<SideBySide, Operation::kinetic_energy>(call, "qv", 1);)
SARRUS_KERNEL(potential_energy_derivatives, derivatives<SideBySide, Operation::potential_energy>(call, "q", 1);)
SARRUS_KERNEL(gravity_forces_derivatives, derivatives<double, Operation::gravity_forces>(call, "q", tree.nv);)
SARRUS_KERNEL(constraint_residual_derivatives, derivatives<double, Operation::constraint_residual>(call, "qtp", tree.loops.rows);)
SARRUS_KERNEL(constraint_rates_derivatives, constraint_rates_derivatives(call);)
SARRUS_KERNEL(integrate_derivatives, integrate_derivatives(call);)
SARRUS_KERNEL(difference_derivatives, derivatives<double, Operation::difference>(call, "qq", tree.nv);)
SARRUS_KERNEL(coordinates_by_tangent, coordinates_by_tangent(tree, arena, in[0], out);)
SARRUS_KERNEL(tangent_by_coordinates, tangent_by_coordinates(tree, arena, in[0], out);)

// instances on dual numbers of algorithms that other kernel files use
SARRUS_SHARED_RATES(, double)
#ifndef SARRUS_ONE_STATE
SARRUS_SHARED_RATES(, Packet<loop_lanes>)
#endif

void add_rate_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                                      \
  table.single[static_cast<int>(Operation::name)] = single_state<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = table.each[static_cast<int>(Operation::name)] = one_by_one<Operation::name>;
  SARRUS_RATE_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
