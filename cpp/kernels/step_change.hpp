// A step together with changes of its initial state, for derivatives of runs (step_kernels.cpp). Compiled once per level (shared_steps.cpp).
#pragma once

#include "../mechanism/arena.hpp"
#include "../mechanism/tree.hpp"
#include "../simd/lanes.hpp"
#include "../simd/several.hpp"
#include "../simulation/plan.hpp"
#include "../simulation/simulation_kernels.hpp"

namespace sarrus {

/// Scalar type: states in lanes, with their rates along one direction. With several directions, compilation takes three times as long.
#ifdef SARRUS_ONE_STATE
using Abreast = double;
#else
using Abreast = Packet<loop_lanes>;
#endif
using Rates = Abreast;

struct StepAtHand {
  const Tree& tree;
  Arena& arena;
  const Plan& plan;
  const Abreast* parameter;
  double time, h;
};

/// Take a step with changes: see step_with_rates.
Abreast step_with_change(const StepAtHand&, const Abreast& closes, Abreast* x, Rates* change, const Rates* parameter_change, Onto,
                         Rates* start);

/// steps_have_products: true if the following functions support these steps. step_forward_by_products: call StepMatrices::push;
/// step_back_by_products: call StepPullback::pull, unless dual numbers along `directions` take less time. They return true if they succeeded.
bool steps_have_products(const Tree&, const Plan&, bool moves);
bool step_forward_by_products(const StepAtHand&, const Abreast* x, const Abreast* after, Abreast* S, int columns,
                              const int* parameter, Abreast& status);
bool step_back_by_products(const StepAtHand&, const Abreast* x, const Abreast* after, Abreast* lambda, int directions,
                           const int* acting, int count, Abreast* by_parameter, Abreast& status);

}  // namespace sarrus
