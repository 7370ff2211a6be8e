// Inputs and results of rigid contact problems; the kernels of one instruction set level are plain functions, without the algorithms.
#pragma once

#include "point.hpp"

namespace sarrus {

struct Tree;

namespace cones {
/// Bound of an unbounded interval.
constexpr double unbounded = 1e300;
}  // namespace cones

/// Friction of a contact against spinning (one row, about its normal) or rolling (two rows, about its tangents): |moment| <= friction * p_n.
struct MomentFriction {
  int contact, rows;
  double friction;  // [m]
  double slip[2] = {0.0, 0.0};  // direction in which the contact already rotates, or zero
};

struct ConeProblem {
  int contacts, rows;  // rows: three per contact, then those of moments, then those of intervals
  const double *G, *w;  // (rows, rows), (rows)
  const double* friction;  // (contacts)
  const double *low, *high;  // (intervals) [N s]
  const double* slip = nullptr;  // (contacts, 2) direction of contacts that already slip, else zero; null: all zero
  int moments = 0;
  const MomentFriction* moment = nullptr;  // ordered by contact
  // (contacts) lower bound of p_n [N s] in an expansion phase, with friction limited by the total p_n of both phases (poisson.hpp); null: all zero
  const double* floor = nullptr;

  int moment_rows() const {
    int count = 0;
    for (int i = 0; i < moments; ++i) count += moment[i].rows;
    return count;
  }
  int first_interval() const { return 3 * contacts + moment_rows(); }
};

struct ConeSolution {
  bool reached;
  // residual: largest entry of the natural map [m/s]; without contacts, its unit is that of the intervals
  double natural_map;
  int iterations;  // number of factorisations in all stages
  // stage that found the solution: 0 no stage needed, 1 proximal, 2 interior, 3 sweeps, 4 proximal with strong regularisation
  int stage;
};

/// Contacts of one state. The first body of each pair has a point or the centre of a ball (count, 3), in the axes of its link. The second body has a
/// plane with the normal n (count, 3), in the world.
struct StateContacts {
  int count;
  const ContactPair* pair;
  const double *point, *normal, *radius;
};

/// Result of a contact problem: either accelerations and forces of least norm; or velocities after an impact, and impulses.
struct ContactAnswer {
  double* motion;  // (nv)
  // (count, 3) forces and moments on the first bodies, in the world; the moments are those of rotational friction
  double *force, *moment;
  ConeSolution cones;
  double speed;  // largest closing speed of a contact [m/s]
};

struct ContactKernels {
  /// Solve from the guess p, which becomes the impulses. `least` (rows, or null) receives the impulses of least norm that have the same velocities.
  ConeSolution (*solve)(const ConeProblem&, double* p, double* least);
  /// Compute the accelerations under tau or, if tau is null, the velocities after an impact. Returns the status.
  double (*respond)(const Tree&, const StateContacts&, double time, const double* q, const double* v, const double* tau,
                    ContactAnswer&);
};

}  // namespace sarrus
