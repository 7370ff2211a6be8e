// Quadratic programme for limits, solved by DAQP, a dual active-set method (Arnstroem, Bemporad and Axehill 2022).
#pragma once

namespace sarrus {

/// Solve min 1/2 y^T H y + f^T y, lower <= C y <= upper (rows x n). `lambda`: multiplier of each row, positive at its upper bound. Returns 1; -1 if
/// no y is feasible; another negative value if the solver fails.
using QuadraticProgramme = int (*)(int n, int rows, const double* H, const double* f, const double* C, const double* lower,
                                   const double* upper, double* y, double* lambda);

int solve_quadratic_programme(int n, int rows, const double* H, const double* f, const double* C, const double* lower,
                              const double* upper, double* y, double* lambda);

}  // namespace sarrus
