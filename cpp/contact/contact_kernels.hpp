// What is asked about rigid contact, and the kernels of one instruction set level as plain functions: enough for a caller that does not include the
// algorithms.
#pragma once

#include "point.hpp"

namespace sarrus {

struct Tree;

namespace cones {
/// No end of an interval.
constexpr double unbounded = 1e300;
}  // namespace cones

/// Friction of a contact against spinning (one row, about its normal) or rolling (two rows, across it): a moment within friction times p_n.
struct MomentFriction {
  int contact, rows;
  double friction;  // [m]
  double slip[2] = {0.0, 0.0};  // the direction in which it turns already, or zero
};

struct ConeProblem {
  int contacts, rows;  // three rows a contact, then those of moments, then those of intervals
  const double *G, *w;  // (rows, rows), (rows)
  const double* friction;  // (contacts)
  const double *low, *high;  // (intervals) [N s]
  const double* slip = nullptr;  // (contacts, 2): d of those that slip already, zero of the others; null: of all
  int moments = 0;
  const MomentFriction* moment = nullptr;  // contact by contact
  const double* floor =
      nullptr;  // (contacts): p_n is no less [N s], and friction within what p_n allows as a whole; null: zero of all

  int moment_rows() const {
    int count = 0;
    for (int i = 0; i < moments; ++i) count += moment[i].rows;
    return count;
  }
  int first_interval() const { return 3 * contacts + moment_rows(); }
};

struct ConeSolution {
  bool reached;
  double natural_map;  // [m/s]; without contacts in what the intervals have
  int iterations;  // factorisations, of all stages
  int stage;  // which one found it: 0: nothing touches, 1 proximal, 2 interior, 3 sweeps, 4 proximal from afar
};

/// Contacts of one state: a point, or the centre of a ball, of each pair's first body (count, 3), in the axes of its link, on a plane of the second
/// one that has the normal n (count, 3) in the world.
struct StateContacts {
  int count;
  const ContactPair* pair;
  const double *point, *normal, *radius;
};

/// What follows: accelerations and the least forces, or of an impact velocities and impulses.
struct ContactAnswer {
  double* motion;  // (nv)
  double *force, *moment;  // (count, 3), on the first bodies, in the world; moments of friction against turning
  ConeSolution cones;
  double speed;  // by which the fastest contact comes nearer, of what should not [m/s]
};

struct ContactKernels {
  /// p: a guess, which becomes the impulses. `least` (rows), if not null: the least of the same velocities.
  ConeSolution (*solve)(const ConeProblem&, double* p, double* least);
  /// The accelerations under tau, or with tau null the velocities after an impact. Returns the status.
  double (*respond)(const Tree&, const StateContacts&, double time, const double* q, const double* v, const double* tau,
                    ContactAnswer&);
};

}  // namespace sarrus
