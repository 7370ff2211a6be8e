// Touching shapes, about the origin of their own frame, and the at most four points at which two of them touch.
//
// The caller decides which of two shapes is the first: functions of a pair are written for one order, and `touch` (pairs.hpp) swaps the result. No
// absolute length occurs: the same shapes in micrometres and in kilometres have the same points. The number of points differs from state to state,
// so these functions branch: T is a scalar, no packet.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "../spatial/motion.hpp"
#include "point.hpp"

namespace sarrus {

/// Kinds of shapes, in the order in which pairs.hpp takes them. A point is a sphere without radius.
enum class ShapeKind { sphere, capsule, box, cylinder, ellipsoid, points, plane, terrain };

/// Heights z = f(x, y) over a grid about the origin, x by rows. Between them the surface has one tangent plane everywhere (terrain.hpp); beyond its
/// border it continues level.
struct Heights {
  int nx, ny;
  double dx, dy;
  std::vector<double> z;
};

struct Shape {
  ShapeKind kind = ShapeKind::sphere;
  double radius = 0.0;  // of a sphere, capsule or cylinder; of points, the largest distance from the origin
  double half = 0.0;  // of a capsule, between its centres, or a cylinder; along z
  Vec3<double> box = Vec3<double>::Zero();  // half its size; of an ellipsoid, its semi-axes
  std::shared_ptr<const std::vector<Vec3<double>>> points;  // corners of a convex body, and perhaps some within it
  std::shared_ptr<const Heights> heights;  // of a terrain; a plane is z = 0: both are solid below

  /// Return the radius of the bounding sphere about its origin; negative: it is unbounded.
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

/// Points at which two shapes touch or come near. A feature identifies the touching parts: it is constant while they touch.
template <class T> struct Manifold {
  ContactPoint<T> at[4];
  int feature[4];
  int count = 0;

  /// Add a point by its place on the second shape, the normal there, and the distance of the first along it.
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
/// Return a / |a|, or another direction if a has no length.
template <class T> SARRUS_INLINE Vec3<T> unit_or(const Vec3<T>& a, const Vec3<T>& other) {
  return dot(a, a) > T(0.0) ? unit(a) : other;
}

}  // namespace sarrus
