#include "quadratic_programme.hpp"

#include <vector>

extern "C" {
#include <api.h>
}

namespace sarrus {

int solve_quadratic_programme(int n, int rows, const double* H, const double* f, const double* C, const double* lower,
                              const double* upper, double* y, double* lambda) {
  thread_local std::vector<int> sense;
  sense.assign(rows, 0);
  DAQPProblem problem{};
  problem.n = n, problem.m = rows, problem.ms = 0;
  // the casts are safe, because DAQP modifies none of its input arrays except `sense`
  problem.H = const_cast<double*>(H), problem.f = const_cast<double*>(f), problem.A = const_cast<double*>(C);
  problem.blower = const_cast<double*>(lower), problem.bupper = const_cast<double*>(upper), problem.sense = sense.data();
  DAQPSettings settings;
  daqp_default_settings(&settings);
  settings.primal_tol = 1e-9;
  settings.iter_limit = 1000;
  DAQPResult result{};
  result.x = y, result.lam = lambda;
  daqp_quadprog(&result, &problem, &settings);
  return result.exitflag;  // -1: infeasible
}

}  // namespace sarrus
