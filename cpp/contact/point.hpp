// Points at which two bodies touch or are close: results of the functions of shapes, and input of contact rows.
//
// All vectors are in the world. The normal is that of the second body's surface: an impulse p_n >= 0 along it acts on the first body, the opposite
// one on the second. The position is midway between both surfaces, so that it does not depend on the order of the bodies.
#pragma once

#include "../joints/joint.hpp"

namespace sarrus {

template <class T> struct ContactPoint {
  Vec3<T> position;  // midway between both surfaces
  Vec3<T> normal;  // unit vector that points from the second body to the first
  T distance;  // distance of the surfaces along the normal; negative: penetration
};

/// A pair of links in contact, with its coefficients. Link 0 is the ground.
struct ContactPair {
  int first, second;  // links of the tree; always different
  double friction;  // Coulomb friction coefficient of the pair; not negative
  double restitution = 0.0;  // 0 to 1
  // coefficients of friction against spinning about the normal and against rolling [m]; not negative
  double torsional = 0.0, rolling = 0.0;
  bool poisson = false;  // true: Poisson's law of restitution; false: Newton's law
};

/// A contact point of a pair. The same feature of the same two shapes has the same id in every step, independent of the order of points. Warm starts
/// and outputs use the id.
template <class T> struct TouchingPoint {
  ContactPoint<T> at;
  int pair;  // index of the pair
  long long id;  // id of this point
};

/// Number of values that precede those of the contact points in a step: the residual of the contact conditions, and the number of active points.
constexpr int values_before_points = 2;

/// Return the contact's axes as rows: the unit normal, then two tangents. The choice of tangents has no effect on the solution's velocities.
inline Mat3<double> contact_axes(const Vec3<double>& normal) {
  const Mat3<double> Q = axis_frame(normal);
  Mat3<double> E;
  E.row(0) = Q.col(2).transpose(), E.row(1) = Q.col(0).transpose(), E.row(2) = Q.col(1).transpose();
  return E;
}

}  // namespace sarrus
