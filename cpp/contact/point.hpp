// Where two bodies touch, or come near: what shapes answer and what rows of contact are made of.
//
// Everything is in the world. The normal is that of the surface touched: an impulse p_n >= 0 along it acts on the first body, its opposite on
// the second. The place stands midway between both surfaces, so that nothing depends on which body is the first.
#pragma once

#include "../joints/joint.hpp"

namespace sarrus {

template <class T> struct ContactPoint {
  Vec3<T> position;  // midway between both surfaces
  Vec3<T> normal;  // unit; pushes the first body away from the second
  T distance;  // between the surfaces along it; negative: sunk in
};

/// What does not change while two bodies touch. A link 0 is the ground.
struct ContactPair {
  int first, second;  // links of the tree (what the joints' rows are made of); never the same
  double friction;  // Coulomb's, of the pair; not negative
  double restitution = 0.0;  // 0 to 1
  double torsional = 0.0, rolling = 0.0;  // friction against spinning about the normal and against rolling [m]; not negative
  bool poisson = false;  // restitution is Poisson's, not Newton's
};

/// A point of a pair, with a name that stays while it touches: the same feature of the same two shapes has the same id in the next step, in
/// whatever order points come. Warm starts and reports go by it.
template <class T> struct TouchingPoint {
  ContactPoint<T> at;
  int pair;  // which of the pairs
  long long id;  // of this point among all
};

/// Rows: a unit normal, then two tangents, a choice that no velocity depends on.
inline Mat3<double> contact_axes(const Vec3<double>& normal) {
  const Mat3<double> Q = axis_frame(normal);
  Mat3<double> E;
  E.row(0) = Q.col(2).transpose(), E.row(1) = Q.col(0).transpose(), E.row(2) = Q.col(1).transpose();
  return E;
}

}  // namespace sarrus
