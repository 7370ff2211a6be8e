// Problems of rigid contact, and the kernels of one instruction set level as plain functions: sufficient for a caller that does not include the
// algorithms.
#pragma once

#include "point.hpp"

namespace sarrus {

struct Tree;

namespace cones {
/// End of an unbounded interval.
constexpr double unbounded = 1e300;
}  // namespace cones

/// Friction of a contact against spinning (one row, about its normal) or rolling (two rows, across it): |moment| <= friction times p_n.
struct MomentFriction {
  int contact, rows;
  double friction;  // [m]
  double slip[2] = {0.0, 0.0};  // direction in which it turns already, or zero
};

struct ConeProblem {
  int contacts, rows;  // three rows per contact, then those of moments, then those of intervals
  const double *G, *w;  // (rows, rows), (rows)
  const double* friction;  // (contacts)
  const double *low, *high;  // (intervals) [N s]
  const double* slip = nullptr;  // (contacts, 2): direction of contacts that slip already, else zero; null: all zero
  int moments = 0;
  const MomentFriction* moment = nullptr;  // ordered by contacts
  const double* floor = nullptr;  // (contacts): lower bound of p_n [N s], with friction limited by the total p_n; null: all zero

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
  int stage;  // stage of the solution: 0: no contact, 1 proximal, 2 interior, 3 sweeps, 4 proximal with a strong regularisation
};

/// Contacts of one state. Each pair's first body has a point, or the centre of a ball (count, 3), in the axes of its link. It touches a plane of the
/// second body with the normal n (count, 3) in the world.
struct StateContacts {
  int count;
  const ContactPair* pair;
  const double *point, *normal, *radius;
};

/// Response of contacts: accelerations and minimal forces, or the velocities after an impact and impulses.
struct ContactAnswer {
  double* motion;  // (nv)
  double *force, *moment;  // (count, 3), on the first bodies, in the world; moments of friction against turning
  ConeSolution cones;
  double speed;  // largest closing speed of a contact [m/s]
};

struct ContactKernels {
  /// Solve from the guess p, which becomes the impulses. `least` (rows), if not null: the minimal ones with the same velocities.
  ConeSolution (*solve)(const ConeProblem&, double* p, double* least);
  /// Compute the accelerations under tau or, if tau is null, the velocities after an impact. Returns the status.
  double (*respond)(const Tree&, const StateContacts&, double time, const double* q, const double* v, const double* tau,
                    ContactAnswer&);
};

}  // namespace sarrus
