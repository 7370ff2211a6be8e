// Recorded steps of a simulation: the methods of simulation/ on symbolic numbers, with their force elements.
#pragma once

#include <string>
#include <vector>

#include "../simulation/plan.hpp"
#include "graph.hpp"

namespace sarrus {

/// Mechanism and force elements of a simulation, as runs use them, with the parameters of the force elements.
struct SimulatedPlan {
  const Tree* tree;
  const Plan* plan;
  std::vector<double> parameters;
};

struct StepOptions {
  double step;
  bool midpoint;  // true: the explicit midpoint rule instead of the plan's method
  int substeps, corrections;
  // parameters of the force elements that are inputs, and the index of the first of them in Graph::parameters, after the numbers of variants
  std::vector<int> varied;
  int first_varied;
};
struct StepInputs {
  Ids q, v, z, tau, time;
};
/// The state after a step; the largest residuals of the loops (2): in position, relative to the units of the rows, and in velocity; the status.
struct RecordedStep {
  Ids q, v, z, residual;
  int status;
};

/// Return the reason for which steps of a plan of this length [s] cannot be recorded; empty if they can.
std::string not_recorded(const SimulatedPlan& simulated, double step);

/// Record a step into Graph::current().
RecordedStep record(const SimulatedPlan& simulated, const StepOptions& options, const StepInputs& in);

}  // namespace sarrus
