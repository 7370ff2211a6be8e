// Contact of spheres and capsules with a box, and of a sphere with a cylinder, in the frame of the box or cylinder.
#pragma once

#include "round.hpp"

namespace sarrus {

/// The point of a surface that is nearest to a given point, the normal there, and the signed distance of the given point along it.
template <class T> struct Nearest {
  Vec3<T> place, normal;
  T distance;
};

template <class T> Nearest<T> nearest_on_box(const Vec3<T>& p, const Vec3<double>& half) {
  Vec3<T> place, depth;
  int side = 0;
  for (int k = 0; k < 3; ++k) {
    place(k) = clamped(p(k), T(-half(k)), T(half(k))), depth(k) = T(half(k)) - abs(p(k));
    if (depth(k) < depth(side)) side = k;
  }
  const Vec3<T> out = p - place;
  if (const T d2 = dot(out, out); d2 > T(0.0)) {
    const T d = sqrt(d2);
    return {place, out * (T(1.0) / d), d};
  }
  Vec3<T> n = zero3<T>();  // if the point is inside: the normal of the nearest side
  n(side) = T(p(side) < T(0.0) ? -1.0 : 1.0);
  place(side) = n(side) * T(half(side));
  return {place, n, -depth(side)};
}

template <class T>
void sphere_box(const Vec3<T>& center, double radius, const Transform<T>& X, const Vec3<double>& half, Manifold<T>& m) {
  const auto near = nearest_on_box(Vec3<T>(transpose_times(X.R, Vec3<T>(center - X.p))), half);
  m.add(X.R * near.place + X.p, X.R * near.normal, near.distance - T(radius), 0);
}

/// Find the point of a cylinder nearest to a point. In the half plane through the axis and the point, the cylinder's section is a box.
template <class T>
void sphere_cylinder(const Vec3<T>& center, double r, const Transform<T>& X, double radius, double half, Manifold<T>& m) {
  const Vec3<T> p = transpose_times(X.R, Vec3<T>(center - X.p));
  const Vec3<T> out = unit_or(vec3<T>(p(0), p(1), T(0.0)), vec3<T>(T(1.0), T(0.0), T(0.0)));
  // the box is so long along y, the normal of the half plane, that its two sides normal to y are never the nearest ones
  const auto near = nearest_on_box(vec3<T>(dot(out, p), T(0.0), p(2)), {radius, 2.0 * (radius + half), half});
  const auto turned = [&](const Vec3<T>& x) { return Vec3<T>(X.R * vec3<T>(out(0) * x(0), out(1) * x(0), x(2))); };
  m.add(turned(near.place) + X.p, turned(near.normal), near.distance - T(r), 0);
}

/// Return an edge of a box: edge 4 k + j is along axis k.
template <class T> Segment<T> edge_of_box(const Vec3<double>& half, int edge) {
  const int k = edge / 4, i = (k + 1) % 3, j = (k + 2) % 3;
  Segment<T> e = {zero3<T>(), zero3<T>()};
  e.half(k) = T(half(k)), e.middle(i) = T(edge & 1 ? half(i) : -half(i)), e.middle(j) = T(edge & 2 ? half(j) : -half(j));
  return e;
}
/// Return the edge along axis k that is farthest along n.
template <class T> int farthest_edge(const Vec3<T>& n, int k) {
  return 4 * k + (n((k + 1) % 3) > T(0.0) ? 1 : 0) + (n((k + 2) % 3) > T(0.0) ? 2 : 0);
}

/// Find the point of a segment, in the box's frame, that is nearest to the box. If several points are equally near, the middle one is returned. Half
/// the squared distance is convex along the segment. Its slope g is linear between the planes of the sides, so the zero of g is between two of these
/// planes.
template <class T> T nearest_along(const Segment<T>& a, const Vec3<double>& half) {
  const auto slope = [&](const T& t) {
    const Vec3<T> p = a.at(t);
    T g = T(0.0);
    for (int k = 0; k < 3; ++k) g += (p(k) - clamped(p(k), T(-half(k)), T(half(k)))) * a.half(k);
    return g;
  };
  T low = T(-1.0), high = T(1.0), g_low = slope(low), g_high = slope(high), first = T(2.0), last = T(-2.0);
  for (int k = 0; k < 3; ++k)
    for (const double side : {-half(k), half(k)}) {
      if (!(abs(a.half(k)) > T(0.0))) continue;
      const T t = (T(side) - a.middle(k)) / a.half(k);
      if (!(t > low && t < high)) continue;
      const T g = slope(t);
      if (g < T(0.0))
        low = t, g_low = g;
      else if (g > T(0.0))
        high = t, g_high = g;
      else
        first = select(t < first, t, first), last = select(t > last, t, last);
    }
  if (!(g_low < T(0.0))) first = low, last = g_low > T(0.0) ? low : select(last > low, last, low);
  if (!(g_high > T(0.0))) last = high, first = g_high < T(0.0) ? high : select(first < high, first, high);
  if (!(first > last)) return (first + last) * T(0.5);
  return low - g_low * (high - low) / (g_high - g_low);
}

/// Find the contact points of a capsule and a box. If a part of the capsule's segment projects onto the nearest side of the box, the two ends of this
/// part are the points. If an edge or a corner of the box is nearest, there is only one point.
template <class T>
void capsule_box(const Segment<T>& in_world, double radius, const Transform<T>& X, const Vec3<double>& half, Manifold<T>& m) {
  const Segment<T> a = {transpose_times(X.R, Vec3<T>(in_world.middle - X.p)), transpose_times(X.R, in_world.half)};
  Nearest<T> near = nearest_on_box(a.at(nearest_along(a, half)), half);
  // the segment is in the box: separate along the direction of least penetration (Gottschalk et al. 1996)
  if (!(near.distance > T(0.0))) {
    near.distance = T(-1e300);
    for (int axis = 0; axis < 6; ++axis) {
      Vec3<T> n = zero3<T>();
      n(axis % 3) = T(1.0);
      if (axis > 2) {
        const Vec3<T> e = n;
        n = cross(e, a.half);
        if (!(dot(n, n) > T(as_parallel * as_parallel) * dot(a.half, a.half))) continue;
        n = unit(n);
      }
      const T along = dot(n, a.middle);
      if (along < T(0.0)) n = -n;
      T separation = abs(along) - abs(T(dot(n, a.half)));
      for (int k = 0; k < 3; ++k) separation -= abs(n(k)) * T(half(k));
      if (!(separation > near.distance)) continue;
      near.distance = separation, near.normal = n;
      T s = dot(n, a.half) < T(0.0) ? T(1.0) : T(-1.0);
      if (axis > 2) {
        const Segment<T> edge = edge_of_box<T>(half, farthest_edge(n, axis - 3));
        T at;
        nearest_of_two(a, edge, at, s);
        near.place = edge.at(s);
      } else {
        near.place = a.at(s) - n * separation;
      }
    }
  }
  int side = -1;
  for (int k = 0; k < 3; ++k)
    if (abs(near.normal(k)) > T(1.0 - 0.5 * as_parallel * as_parallel)) side = k;
  T ends[] = {T(-1.0), T(1.0)};
  for (int k = 0; k < 3; ++k) {
    if (k == side || !(abs(a.half(k)) > T(0.0))) continue;
    const T first_cut = (T(-half(k)) - a.middle(k)) / a.half(k), second_cut = (T(half(k)) - a.middle(k)) / a.half(k);
    const bool turned = first_cut > second_cut;
    ends[0] = clamped(turned ? second_cut : first_cut, ends[0], T(1.0)),
    ends[1] = clamped(turned ? first_cut : second_cut, T(-1.0), ends[1]);
  }
  if (side < 0 || !(ends[1] - ends[0] > T(same_length)))
    return m.add(X.R * near.place + X.p, X.R * near.normal, near.distance - T(radius), 0);
  Vec3<T> n = zero3<T>();
  n(side) = T(near.normal(side) < T(0.0) ? -1.0 : 1.0);
  for (const int end : {0, 1}) {
    const Vec3<T> p = a.at(ends[end]);
    const T d = n(side) * p(side) - T(half(side));
    m.add(X.R * Vec3<T>(p - n * d) + X.p, X.R * n, d - T(radius), 1 + end);
  }
}

}  // namespace sarrus
