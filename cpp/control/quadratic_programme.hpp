// The quadratic programme of tasks.hpp, solved by DAQP, a dual active-set method (Arnstroem, Bemporad and Axehill 2022).
#pragma once

namespace sarrus {

int solve_quadratic_programme(int n, int rows, const double* H, const double* f, const double* C, const double* lower,
                              const double* upper, double* y, double* lambda);

}  // namespace sarrus
