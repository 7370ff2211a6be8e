// Coordinate partitioning: the loops are satisfied by choice of coordinates instead of multipliers. The number of dependent velocities equals the
// number of independent constraints, and only the independent velocities are integrated. In every stage, positions and velocities of the dependent
// joints are computed from the loops (Wehage and Haug 1982). In each step, elimination with pivots on J chooses the dependent velocities: those that
// the loops constrain most. The columns of J are scaled so that rotations and displacements are comparable.
#pragma once

#include <algorithm>
#include <cmath>

#include "steps.hpp"

namespace sarrus {

constexpr double dependent_pivot = 1e-7;  // a row whose pivot is below this fraction of the largest pivot depends on other rows

/// Mark the independent velocities by Gaussian elimination with complete pivoting. Each row is divided by the norm of the terms that are summed in
/// it. If it were divided by its own norm, a row of rounding errors would become large.
inline void choose_independent(System<double>& s, double time, const double* q, const double* v, bool* independent) {
  const Tree& tree = s.tree;
  const int rows = tree.loops.rows, nv = tree.nv;
  const Arena::Scope scope(s.arena);
  double *J = s.arena.take<double>(rows * nv), *entries = s.arena.take<double>(tree.loops.entries);
  double *scale = s.arena.take<double>(rows), *mobility = s.arena.take<double>(nv);
  for (int k = 0; k < nv; ++k) mobility[k] = square(s.unit(s.plan.velocity_unit, k));
  ConstraintRows<double> out;
  out.J = entries, out.scale = scale, out.mobility = mobility;
  constraint_rows(tree, s.arena, place(tree, s.arena, q, &time, s.pfaffian_values(q, v)), out, 0, tree.loops.constraints);
  std::fill(J, J + rows * nv, 0.0);
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) J[(c.row + r) * nv + c.column[k]] = *entries++ * s.unit(s.plan.velocity_unit, c.column[k]);
  }
  for (int r = 0; r < rows; ++r)
    for (int k = 0; k < nv && scale[r] > 0.0; ++k) J[r * nv + k] /= std::sqrt(scale[r]);
  std::fill(independent, independent + nv, true);
  double first = 0.0;
  for (int done = 0; done < rows; ++done) {
    int row = done, column = 0;
    double largest = 0.0;
    for (int r = done; r < rows; ++r)
      for (int k = 0; k < nv; ++k)
        if (independent[k] && std::abs(J[r * nv + k]) > largest) largest = std::abs(J[r * nv + k]), row = r, column = k;
    if (done == 0) first = largest;
    if (!(largest > dependent_pivot * first)) break;
    independent[column] = false;
    for (int k = 0; k < nv; ++k) std::swap(J[done * nv + k], J[row * nv + k]);
    for (int r = done + 1; r < rows; ++r) {
      const double share = J[r * nv + column] / J[done * nv + column];
      for (int k = 0; k < nv && share != 0.0; ++k) J[r * nv + k] -= share * J[done * nv + k];
    }
  }
}

inline void independent_step(System<double>& s, double time, double h, const SimulationState<double>& x) {
  bool* independent = s.arena.take<bool>(s.tree.nv);
  choose_independent(s, time, x.q, x.v, independent);
  runge_kutta_step(s, time, h, x, independent);
  close_step(s, time + h, x, independent);
}

}  // namespace sarrus
