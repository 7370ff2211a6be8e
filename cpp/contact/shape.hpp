// Collision shapes, each about the origin of its own frame, and the contact points of two shapes, at most four.
//
// The functions of pairs are written for one order of the two shapes; for the other order, `touch` (pairs.hpp) exchanges the shapes and reverses the
// result. No tolerance is an absolute length, so the results are the same for shapes of micrometres and of kilometres. T is a scalar, not a packet,
// because these functions branch on values: the number of points depends on the state.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "../spatial/motion.hpp"
#include "point.hpp"

namespace sarrus {

/// Types of shapes, in the order that pairs.hpp requires. A point is a sphere with radius zero.
enum class ShapeKind { sphere, capsule, box, cylinder, ellipsoid, points, plane, terrain };

/// Heights z = f(x, y) on a grid about the origin, one row of the array per x. The interpolated surface has a continuous tangent plane (terrain.hpp).
/// Outside the grid it continues horizontally.
struct Heights {
  int nx, ny;
  double dx, dy;
  std::vector<double> z;
};

struct Shape {
  ShapeKind kind = ShapeKind::sphere;
  // radius of a sphere, capsule or cylinder; of a point set: the largest distance of a point from the origin
  double radius = 0.0;
  double half = 0.0;  // half length along z: of a cylinder, or between the centres of a capsule's ends
  Vec3<double> box = Vec3<double>::Zero();  // half edge lengths of a box; semi-axes of an ellipsoid
  std::shared_ptr<const std::vector<Vec3<double>>> points;  // corners of a convex body; points within the body may be included
  std::shared_ptr<const Heights> heights;  // heights of a terrain. A terrain and a plane (z = 0) are solid below their surface

  /// Return the radius of the bounding sphere about the origin; negative if the shape is unbounded.
  double reach() const {
    switch (kind) {
      case ShapeKind::sphere:
      case ShapeKind::points: return radius;
      case ShapeKind::capsule: return radius + half;
      case ShapeKind::cylinder: return std::sqrt(radius * radius + half * half);
      case ShapeKind::box: return box.norm();
      case ShapeKind::ellipsoid: return std::max({box(0), box(1), box(2)});
      case ShapeKind::plane:
      case ShapeKind::terrain: break;
    }
    return -1.0;
  }
};

/// Contact points of two shapes. The feature number of a point identifies the touching corners, edges or sides; it is constant while they touch.
template <class T> struct Manifold {
  ContactPoint<T> at[4];
  int feature[4];
  int count = 0;

  /// Add a contact point. Arguments: its position on the second shape, the normal there, and the distance of the first shape along the normal.
  void add(const Vec3<T>& on_second, const Vec3<T>& normal, const T& distance, int name) {
    at[count] = {on_second + normal * (distance * T(0.5)), normal, distance};
    feature[count++] = name;
  }
  const ContactPoint<T>* find_feature(int name) const {
    for (int k = 0; k < count; ++k)
      if (feature[k] == name) return at + k;
    return nullptr;
  }
  const ContactPoint<T>* nearest(const Vec3<T>& place) const {
    const auto away = [&](const ContactPoint<T>& point) {
      const Vec3<T> d = point.position - place;
      return dot(d, d);
    };
    const auto closer = [&](const ContactPoint<T>& a, const ContactPoint<T>& b) { return away(a) < away(b); };
    return count > 0 ? std::min_element(at, at + count, closer) : nullptr;
  }
};

template <class T> SARRUS_INLINE T clamped(const T& x, const T& low, const T& high) {
  const T above = select(x < low, low, x);
  return select(above > high, high, above);
}
/// Return a / |a|, or `other` if a is zero.
template <class T> SARRUS_INLINE Vec3<T> unit_or(const Vec3<T>& a, const Vec3<T>& other) {
  return dot(a, a) > T(0.0) ? unit(a) : other;
}

}  // namespace sarrus
