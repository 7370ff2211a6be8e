// Contact of shapes with the half space z < 0 of a frame; the z axis is the plane's normal n.
#pragma once

#include "round.hpp"

namespace sarrus {

template <class T> struct HalfSpace {
  Vec3<T> n, origin;
  explicit HalfSpace(const Transform<T>& X) : n(X.R.col(2)), origin(X.p) {}
  void meet(const Vec3<T>& p, double radius, int name, Manifold<T>& m) const {
    const T height = dot(n, Vec3<T>(p - origin));
    m.add(p - n * height, n, height - T(radius), name);
  }
};

template <class T> void sphere_plane(const Vec3<T>& p, double radius, const HalfSpace<T>& plane, Manifold<T>& m) {
  plane.meet(p, radius, 0, m);
}

template <class T> void capsule_plane(const Segment<T>& a, double radius, const HalfSpace<T>& plane, Manifold<T>& m) {
  for (const int end : {0, 1}) plane.meet(a.at(T(end ? 1.0 : -1.0)), radius, end, m);
}

/// Add the corners of the box's side that faces the plane most. They include the lowest corner, and the corners on which the box would land.
template <class T> void box_plane(const Transform<T>& X, const Vec3<double>& half, const HalfSpace<T>& plane, Manifold<T>& m) {
  const Vec3<T> up = transpose_times(X.R, plane.n);
  int side = 2;
  for (const int k : {1, 0})
    if (abs(up(k)) > abs(up(side)) * T(1.0 + same_length)) side = k;
  for (int corner = 0; corner < 8; ++corner) {
    if (((corner >> side) & 1) != (up(side) < T(0.0) ? 1 : 0)) continue;
    Vec3<T> p;
    for (int k = 0; k < 3; ++k) p(k) = T((corner >> k) & 1 ? half(k) : -half(k));
    plane.meet(X.R * p + X.p, 0.0, corner, m);
  }
}

/// First feature number of the points on a cylinder's rims whose position on the cylinder depends on its pose.
constexpr int rim_of_cylinder = 8;

/// Add the lowest point of a cylinder's lower rim and the two points a third of a revolution from it, and the lowest point of the other rim. The rims
/// of an upright cylinder have no lowest point; in this case add four points of the lower rim that are fixed in the cylinder.
template <class T>
void cylinder_plane(const Transform<T>& X, double radius, double half, const HalfSpace<T>& plane, Manifold<T>& m) {
  const Vec3<T> up = transpose_times(X.R, plane.n);
  const T lower = T(up(2) < T(0.0) ? half : -half), tilt = sqrt(up(0) * up(0) + up(1) * up(1));
  const auto rim = [&](const T& x, const T& y, const T& z, int name) {
    plane.meet(X.R * vec3<T>(x * T(radius), y * T(radius), z) + X.p, 0.0, name, m);
  };
  if (tilt < T(1e-6)) {
    for (int k = 0; k < 4; ++k) {
      const double sign = k < 2 ? 1.0 : -1.0;
      rim(T(k % 2 ? 0.0 : sign), T(k % 2 ? sign : 0.0), lower, k);
    }
    return;
  }
  const T x = -up(0) / tilt, y = -up(1) / tilt, c = T(-0.5), s = T(0.5 * std::sqrt(3.0));
  rim(x, y, lower, 4), rim(x, y, -lower, 5);
  rim(x * c - y * s, y * c + x * s, lower, 6), rim(x * c + y * s, y * c - x * s, lower, 7);
}

/// Find the corner of a shape, or the point of an upright cylinder's rims, that is nearest to p (world) on a plane with the normal n; also return its
/// feature number. Returns false if the shape has no corners or rims, or rolls on its rim.
inline bool nearest_corner(const Shape& shape, const Transform<double>& X, const Vec3<double>& n, const Vec3<double>& p,
                           Vec3<double>& corner, int& name) {
  const Vec3<double> local = transpose_times(X.R, Vec3<double>(p - X.p));
  if (shape.kind == ShapeKind::cylinder) {
    const double out = std::sqrt(local(0) * local(0) + local(1) * local(1));
    const double upright = dot(n, Vec3<double>(X.R.col(2)));
    if (out == 0.0 || 1.0 - square(upright) > square(as_parallel)) return false;
    corner =
        vec3<double>(local(0) * shape.radius / out, local(1) * shape.radius / out, local(2) < 0.0 ? -shape.half : shape.half);
    name = rim_of_cylinder;
    return true;
  }
  if (shape.kind != ShapeKind::points) return false;
  double nearest = HUGE_VAL;
  for (int i = 0; i < static_cast<int>(shape.points->size()); ++i) {
    const Vec3<double> d = (*shape.points)[i] - local;
    if (const double away = dot(d, d); away < nearest) nearest = away, corner = (*shape.points)[i], name = i;
  }
  return true;
}

/// Find the corner of a shape, or the point of an upright cylinder's rims, that is lowest with respect to the direction `up` (axes of the shape), and
/// its feature number. Returns false if the shape has no corners or rims, if several points are equally low, or if it rolls on its rim.
inline bool lowest_corner(const Shape& shape, const Vec3<double>& up, Vec3<double>& corner, int& name) {
  if (shape.kind == ShapeKind::cylinder) {
    const double tilt = std::sqrt(up(0) * up(0) + up(1) * up(1)), out = -shape.radius / tilt;
    if (!(tilt > 0.0) || tilt > as_parallel) return false;
    corner = vec3<double>(up(0) * out, up(1) * out, up(2) < 0.0 ? shape.half : -shape.half), name = rim_of_cylinder;
    return true;
  }
  if (shape.kind != ShapeKind::points) return false;
  double lowest = HUGE_VAL;
  for (int i = 0; i < static_cast<int>(shape.points->size()); ++i)
    if (const double height = dot(up, (*shape.points)[i]); height < lowest)
      lowest = height, corner = (*shape.points)[i], name = i;
  return true;
}

/// Add the lowest point p of an ellipsoid with semi-axes A. The ellipsoid's normal at p, A^-2 p, is opposite to the plane's, so p = -A^2 n / |A n|.
template <class T>
void ellipsoid_plane(const Transform<T>& X, const Vec3<double>& semi_axes, const HalfSpace<T>& plane, Manifold<T>& m) {
  Vec3<T> stretched = transpose_times(X.R, plane.n);
  for (int k = 0; k < 3; ++k) stretched(k) *= T(semi_axes(k));
  Vec3<T> lowest = unit(stretched);
  for (int k = 0; k < 3; ++k) lowest(k) *= T(-semi_axes(k));
  plane.meet(X.R * lowest + X.p, 0.0, 0, m);
}

/// Add up to four points of a point set: the lowest point; the point farthest from it; and on each side of the line through both, the point farthest
/// from the line. Distances are measured in the plane, and the height is subtracted, so that points of a supporting face are preferred to points
/// above it. Points inside the convex hull are never chosen, because they are never lowest.
template <class T>
void points_plane(const Transform<T>& X, const std::vector<Vec3<double>>& points, double reach, const HalfSpace<T>& plane,
                  const T& within, Manifold<T>& m) {
  const Vec3<T> up = transpose_times(X.R, plane.n);
  const T offset = dot(plane.n, Vec3<T>(X.p - plane.origin)), flat = T(reach * same_length);
  const int n = static_cast<int>(points.size());
  const auto height = [&](int i) { return dot(up, cast<T>(points[i])) + offset; };
  T low = height(0);
  for (int i = 1; i < n; ++i) low = height(i) < low ? height(i) : low;
  int first = 0;
  while (height(first) > low + flat) ++first;
  const auto add = [&](int i) { plane.meet(X.R * cast<T>(points[i]) + X.p, 0.0, i, m); };
  add(first);
  // return the index of the point with the largest measure, or -1
  const auto farthest = [&](auto&& measure) {
    int best = -1;
    T most = flat;
    for (int i = 0; i < n; ++i) {
      if (height(i) > within) continue;
      const Vec3<T> d = cast<T>(points[i]) - cast<T>(points[first]);
      const T rise = dot(up, d), distance = measure(Vec3<T>(d - up * rise)) - abs(rise);
      if (distance > most * T(1.0 + same_length)) most = distance, best = i;
    }
    return best;
  };
  const int second = farthest([](const Vec3<T>& d) { return d.norm(); });
  if (second < 0) return;
  add(second);
  const Vec3<T> across = unit(cross(up, Vec3<T>(cast<T>(points[second]) - cast<T>(points[first]))));
  for (const double side : {1.0, -1.0})
    if (const int i = farthest([&](const Vec3<T>& d) { return dot(across, d) * T(side); }); i >= 0) add(i);
}

}  // namespace sarrus
