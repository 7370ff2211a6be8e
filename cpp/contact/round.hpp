// Spheres and capsules, represented by points and segments with a radius: their nearest points, and the line through these to both surfaces.
#pragma once

#include "shape.hpp"

namespace sarrus {

/// Sines of the largest angles at which lines and faces are treated as parallel. Below may_rock, a second contact point is added at the other end of
/// a line. This point is harmless if that end does not touch, and detects a touch in time. Below as_parallel, the direction of an edge is replaced by
/// the normal of a face, which changes distances by half the squared angle.
constexpr double may_rock = 0.2, as_parallel = 0.01;
/// Lengths whose difference is below this fraction of the shapes' sizes are treated as equal, so that rounding does not select the touching
/// feature.
constexpr double same_length = 1e-9;

/// A segment: its midpoint, and the vector from the midpoint to one end.
template <class T> struct Segment {
  Vec3<T> middle, half;
  Vec3<T> at(const T& s) const { return middle + half * s; }
  /// Return the parameter, from -1 to 1, of the segment's point that is nearest to p.
  T nearest(const Vec3<T>& p) const {
    const T length2 = dot(half, half);
    return length2 > T(0.0) ? clamped(T(dot(Vec3<T>(p - middle), half) / length2), T(-1.0), T(1.0)) : T(0.0);
  }
};

/// Find the nearest points of two segments; if these are parallel, the middle of their overlap.
template <class T> void nearest_of_two(const Segment<T>& a, const Segment<T>& b, T& s, T& t) {
  const Vec3<T> n = cross(a.half, b.half), between = b.middle - a.middle;
  const T aa = dot(a.half, a.half), bb = dot(b.half, b.half), nn = dot(n, n);
  if (nn > aa * bb * T(1e-24)) {
    s = clamped(T(dot(cross(between, b.half), n) / nn), T(-1.0), T(1.0));
  } else if (aa > T(0.0)) {
    const T at = dot(between, a.half) / aa, reach = abs(T(dot(a.half, b.half) / aa));
    s = (clamped(T(at - reach), T(-1.0), T(1.0)) + clamped(T(at + reach), T(-1.0), T(1.0))) * T(0.5);
  } else {
    s = T(0.0);
  }
  t = b.nearest(a.at(s)), s = a.nearest(b.at(t));
}

/// Find the contact point of two spheres with the centres p and c. Concentric spheres separate along an axis of the second shape.
template <class T>
void sphere_sphere(const Vec3<T>& p, double r, const Vec3<T>& c, double radius, const Vec3<T>& otherwise, int name,
                   Manifold<T>& m) {
  const Vec3<T> d = p - c, n = unit_or(d, otherwise);
  m.add(c + n * T(radius), n, dot(n, d) - T(r) - T(radius), name);
}

/// Return a direction perpendicular to a segment; it depends on the segment only.
template <class T> Vec3<T> across(const Segment<T>& a, const Mat3<T>& axes) {
  const Vec3<T> x = axes.col(0), z = axes.col(2);
  return unit_or(cross(a.half, x), z);
}

/// Find the contact points of two capsules: the nearest points and, if the angle between the axes is small, both ends of the overlap, so that rocking
/// is detected.
template <class T>
void capsule_capsule(const Segment<T>& a, double r, const Segment<T>& b, double radius, const Mat3<T>& axes_of_b,
                     Manifold<T>& m) {
  T s, t;
  nearest_of_two(a, b, s, t);
  const Vec3<T> n = cross(a.half, b.half), otherwise = across(b, axes_of_b);
  const T aa = dot(a.half, a.half), bb = dot(b.half, b.half), nn = dot(n, n);
  const T flat = (sqrt(aa) + sqrt(bb) + T(r + radius)) * T(same_length);
  Manifold<T> ends;
  if (nn < aa * bb * T(may_rock * may_rock)) {
    const T at = dot(Vec3<T>(b.middle - a.middle), a.half) / aa, reach = abs(T(dot(a.half, b.half) / aa));
    const T low = clamped(T(at - reach), T(-1.0), T(1.0)), high = clamped(T(at + reach), T(-1.0), T(1.0));
    if (high - low > T(same_length)) {
      int name = 1;
      for (const T& end : {low, high}) {
        const Vec3<T> p = a.at(end);
        sphere_sphere(p, r, b.at(b.nearest(p)), radius, otherwise, name++, ends);
      }
    }
  }
  // intersecting segments separate along their common normal
  const Vec3<T> parting = nn > T(0.0) ? unit(n) : otherwise;
  Manifold<T> nearest;
  sphere_sphere(a.at(s), r, b.at(t), radius, parting, 0, nearest);
  bool seen = false;
  for (int k = 0; k < ends.count; ++k) seen = seen || ends.at[k].distance < nearest.at[0].distance + flat;
  if (!seen) m = nearest;
  for (int k = 0; k < ends.count; ++k) m.at[m.count] = ends.at[k], m.feature[m.count++] = ends.feature[k];
}

}  // namespace sarrus
