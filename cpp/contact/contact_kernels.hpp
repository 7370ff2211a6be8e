// Problems of rigid contact, and the kernels of one instruction set level as plain functions, which a caller can use without including the
// algorithms.
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
  double slip[2] = {0.0, 0.0};  // direction in which it already rotates, or zero
};

struct ConeProblem {
  int contacts, rows;  // rows: three per contact, then those of moments, then those of intervals
  const double *G, *w;  // (rows, rows), (rows)
  const double* friction;  // (contacts)
  const double *low, *high;  // (intervals) [N s]
  const double* slip = nullptr;  // (contacts, 2) direction of contacts that already slip, else zero; null: all zero
  int moments = 0;
  const MomentFriction* moment = nullptr;  // ordered by contact
  const double* floor = nullptr;  // (contacts) lower bound of p_n [N s], with friction limited by the total p_n; null: all zero

  int moment_rows() const {
    int count = 0;
    for (int i = 0; i < moments; ++i) count += moment[i].rows;
    return count;
  }
  int first_interval() const { return 3 * contacts + moment_rows(); }
};

struct ConeSolution {
  bool reached;
  double natural_map;  // [m/s]; without contacts in the unit of the intervals
  int iterations;  // number of factorisations in all stages
  int stage;  // stage that found the solution: 0 none needed, 1 proximal, 2 interior, 3 sweeps, 4 proximal with strong regularisation
};

/// Contacts of one state. The first body of each pair has a point, or the centre of a ball (count, 3), in the axes of its link. It touches a plane of
/// the second body, with the normal n (count, 3) in the world.
struct StateContacts {
  int count;
  const ContactPair* pair;
  const double *point, *normal, *radius;
};

/// Response of contacts: accelerations and forces of least norm; or velocities after an impact, and impulses.
struct ContactAnswer {
  double* motion;  // (nv)
  double *force, *moment;  // (count, 3), on the first bodies, in the world; moments are those of rotational friction
  ConeSolution cones;
  double speed;  // largest closing speed of a contact [m/s]
};

struct ContactKernels {
  /// Solve from the guess p, which becomes the impulses. `least` (rows, or null): impulses of least norm with the same velocities.
  ConeSolution (*solve)(const ConeProblem&, double* p, double* least);
  /// Compute the accelerations under tau or, if tau is null, the velocities after an impact. Returns the status.
  double (*respond)(const Tree&, const StateContacts&, double time, const double* q, const double* v, const double* tau,
                    ContactAnswer&);
};

}  // namespace sarrus
