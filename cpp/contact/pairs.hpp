// Selection of the function for any pair of shapes, and the list of supported pairs.
#pragma once

#include <utility>

#include "box_box.hpp"
#include "plane.hpp"
#include "terrain.hpp"

namespace sarrus {

/// Return true if the pair, in either order, is supported by a function in closed form.
inline bool can_touch(ShapeKind a, ShapeKind b) {
  if (a > b) std::swap(a, b);
  switch (b) {
    case ShapeKind::sphere:
    case ShapeKind::capsule:
    case ShapeKind::box: return true;  // a is a sphere, capsule or box
    case ShapeKind::cylinder:
    case ShapeKind::terrain: return a == ShapeKind::sphere;
    case ShapeKind::ellipsoid:
    case ShapeKind::points: return false;
    case ShapeKind::plane: return a < ShapeKind::plane;
  }
  return false;
}
constexpr const char* touching_pairs =
    "sphere, capsule and box with each other; these, cylinder, ellipsoid and convex points with plane; sphere with cylinder and "
    "terrain; a "
    "point is a "
    "sphere";

/// Find the contact points of two shapes of a pair that can_touch(). Points farther apart than `within` may be omitted.
template <class T>
Manifold<T> touch(const Shape& a, const Transform<T>& X, const Shape& b, const Transform<T>& Y, const T& within) {
  Manifold<T> m;
  if (a.kind > b.kind) {
    m = touch(b, Y, a, X, within);
    for (int k = 0; k < m.count; ++k) m.at[k].normal = -m.at[k].normal;
    return m;
  }
  const auto segment = [](const Shape& s, const Transform<T>& at) { return Segment<T>{at.p, at.R.col(2) * T(s.half)}; };
  const bool sphere = a.kind == ShapeKind::sphere, capsule = a.kind == ShapeKind::capsule;
  switch (b.kind) {
    case ShapeKind::sphere: sphere_sphere(X.p, a.radius, Y.p, b.radius, Vec3<T>(Y.R.col(2)), 0, m); break;
    case ShapeKind::capsule: {
      const Segment<T> s = segment(b, Y);
      if (sphere)
        sphere_sphere(X.p, a.radius, s.at(s.nearest(X.p)), b.radius, across(s, Y.R), 0, m);
      else
        capsule_capsule(segment(a, X), a.radius, s, b.radius, Y.R, m);
      break;
    }
    case ShapeKind::box:
      if (sphere)
        sphere_box(X.p, a.radius, Y, b.box, m);
      else if (capsule)
        capsule_box(segment(a, X), a.radius, Y, b.box, m);
      else
        box_box(OrientedBox<T>{X, a.box}, OrientedBox<T>{Y, b.box}, within, m);
      break;
    case ShapeKind::cylinder:
      if (sphere) sphere_cylinder(X.p, a.radius, Y, b.radius, b.half, m);
      break;
    case ShapeKind::ellipsoid:
    case ShapeKind::points: break;
    case ShapeKind::plane: {
      const HalfSpace<T> plane(Y);
      if (sphere)
        sphere_plane(X.p, a.radius, plane, m);
      else if (capsule)
        capsule_plane(segment(a, X), a.radius, plane, m);
      else if (a.kind == ShapeKind::box)
        box_plane(X, a.box, plane, m);
      else if (a.kind == ShapeKind::cylinder)
        cylinder_plane(X, a.radius, a.half, plane, m);
      else if (a.kind == ShapeKind::ellipsoid)
        ellipsoid_plane(X, a.box, plane, m);
      else if (a.kind == ShapeKind::points)
        points_plane(X, *a.points, a.radius, plane, within, m);
      break;
    }
    case ShapeKind::terrain:
      if (sphere) sphere_terrain(X.p, a.radius, Y, [&](const T& x, const T& y) { return height_at(*b.heights, x, y); }, m);
      break;
  }
  return m;
}

}  // namespace sarrus
