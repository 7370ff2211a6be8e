// What functions of a state change by, first order: a column for each displacement of an input, of q in the tangent space. Each function's own
// kernel on numbers that carry their rates (simd/dual.hpp), along as many directions as go side by side; no formula stands here.
#include "../dynamics/derivatives.hpp"
#include "loop_operations.hpp"
#include "run.hpp"
#include "shared.hpp"
#include "tree_operations.hpp"

namespace sarrus {

/// Calls each(which, first, count, answer) with what the function says, `size` numbers, along displacements of each input that `inputs`
/// names: q or v (nv numbers like it), in the order of the operation; t and p, a time and values of rows, are constant.
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

/// The rates (inputs x size x nv) of a function whose answer are numbers.
template <class R, Operation op> void derivatives(const Call<double>& call, const char* inputs, int size) {
  along_displacements<R, op>(call, inputs, size, [&](int which, int first, int count, const Varied<R>* answer) {
    double* out = call.out + which * size * call.tree.nv;
    for (int i = 0; i < size; ++i)
      for (int l = 0; l < count; ++l) out[i * call.tree.nv + first + l] = lane(answer[i].rate, l);
  });
}

/// E (nq x nv): q-dot = E v. A joint's columns are orthogonal, so that v = N q-dot with N (nv x nq) = (E^T E)^-1 E^T.
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

SARRUS_KERNEL(pose_derivatives, derivatives<SideBySide, Operation::pose>(call, "q", 16);)
SARRUS_KERNEL(velocity_derivatives, derivatives<SideBySide, Operation::velocity>(call, "qv", 6);)
SARRUS_KERNEL(acceleration_derivatives, derivatives<SideBySide, Operation::acceleration>(call, "qvv", 6);)
SARRUS_KERNEL(momentum_derivatives, derivatives<SideBySide, Operation::momentum>(call, "qv", 6);)
SARRUS_KERNEL(centroidal_momentum_derivatives, derivatives<SideBySide, Operation::centroidal_momentum>(call, "qv", 6);)
SARRUS_KERNEL(kinetic_energy_derivatives, derivatives<SideBySide, Operation::kinetic_energy>(call, "qv", 1);)
SARRUS_KERNEL(potential_energy_derivatives, derivatives<SideBySide, Operation::potential_energy>(call, "q", 1);)
SARRUS_KERNEL(gravity_forces_derivatives, derivatives<double, Operation::gravity_forces>(call, "q", tree.nv);)
SARRUS_KERNEL(constraint_residual_derivatives, derivatives<double, Operation::constraint_residual>(call, "qtp", tree.loops.rows);)
// of J(q) v: J on its way along q times v, and J
SARRUS_KERNEL(constraint_rates_derivatives, {
  const double* const rows[max_inputs] = {in[0], in[2], in[3]};
  const Call<double> at = {tree, arena, call.parameters, rows, nullptr, nullptr};
  const int nv = tree.nv;
  along_displacements<double, Operation::constraint_jacobian>(at, "qtp", tree.loops.rows * nv,
                                                              [&](int, int column, int, const Varied<double>* J) {
                                                                for (int r = 0; r < tree.loops.rows; ++r) {
                                                                  double rate = 0.0;
                                                                  for (int k = 0; k < nv; ++k)
                                                                    rate += J[r * nv + k].rate * in[1][k];
                                                                  out[r * nv + column] = rate;
                                                                }
                                                              });
  constraint_jacobian(tree, arena, place(tree, arena, in[0], in[2], in[3]), out + tree.loops.rows * nv);
})
// the configuration's rates in its own tangent space
SARRUS_KERNEL(integrate_derivatives, {
  double *q1 = arena.take<double>(tree.nq), *N = arena.take<double>(tree.nv * tree.nq);
  integrate(tree, in[0], in[1], q1);
  tangent_by_coordinates(tree, arena, q1, N);
  along_displacements<double, Operation::integrate>(call, "qv", tree.nq, [&](int which, int column, int, const auto* moved) {
    for (int k = 0; k < tree.nv; ++k) {
      double rate = 0.0;
      for (int i = 0; i < tree.nq; ++i) rate += N[k * tree.nq + i] * moved[i].rate;
      out[(which * tree.nv + k) * tree.nv + column] = rate;
    }
  });
})
SARRUS_KERNEL(difference_derivatives, derivatives<double, Operation::difference>(call, "qq", tree.nv);)
SARRUS_KERNEL(coordinates_by_tangent, coordinates_by_tangent(tree, arena, in[0], out);)
SARRUS_KERNEL(tangent_by_coordinates, tangent_by_coordinates(tree, arena, in[0], out);)

void add_rate_kernels(KernelTable& table) {
#define SARRUS_ADD(name, ...)                                          \
  table.one[static_cast<int>(Operation::name)] = one<Operation::name>; \
  table.many[static_cast<int>(Operation::name)] = table.each[static_cast<int>(Operation::name)] = one_by_one<Operation::name>;
  SARRUS_RATE_OPERATIONS(SARRUS_ADD)
#undef SARRUS_ADD
}

}  // namespace sarrus
