// Two boxes. Penetrating boxes separate along one of fifteen axes: normals of sides, and common normals of two edges (Gottschalk, Lin and Manocha
// 1996). The distance along each axis is a lower bound of the distance of the boxes. Therefore the correct axis is the one whose distance equals the
// distance of two points of the boxes. For the normal of a side, the facing side of the other box is clipped to the prism of that side (Sutherland
// and Hodgman 1974); the remaining polygon is the contact area. If a corner of one box is nearest to a corner or edge of the other, none of these
// axes connects the nearest points; then all edges are tried.
#pragma once

#include "box.hpp"

namespace sarrus {

template <class T> struct OrientedBox {
  Transform<T> X;
  Vec3<double> half;
  Segment<T> edge(int name) const {
    const Segment<T> e = edge_of_box<T>(half, name);
    return {X.R * e.middle + X.p, X.R * e.half};
  }
  T reach(const Vec3<T>& n) const {
    T sum = T(0.0);
    for (int k = 0; k < 3; ++k) sum += abs(T(dot(Vec3<T>(X.R.col(k)), n))) * T(half(k));
    return sum;
  }
};

/// Polygon: the part of a side of one box that projects onto a side of the other box. The feature number of a corner consists of the two lines that
/// intersect in it: 0 to 3 are edges of this side, 4 to 7 are sides of the other box's prism.
template <class T> struct CutSide {
  static constexpr int most = 12;
  Vec3<T> corner[most];
  int edge[most];  // edge from each corner to the next
  int count = 0;

  int name(int k) const { return 8 * edge[(k + count - 1) % count] + edge[k]; }
  void add(const Vec3<T>& p, int along) {
    if (count < most) corner[count] = p, edge[count++] = along;
  }
  /// Return the part of the polygon with n . x < offset. Corners at which n . x exceeds the offset by less than `little` are included.
  CutSide cut(const Vec3<T>& n, const T& offset, const T& little, int name) const {
    CutSide left;
    for (int k = 0; k < count; ++k) {
      const Vec3<T>&a = corner[k], &b = corner[(k + 1) % count];
      const T height_a = dot(n, a) - offset, height_b = dot(n, b) - offset;
      const bool in_a = height_a < little, in_b = height_b < little;
      if (in_a) left.add(a, edge[k]);
      if (in_a == in_b) continue;
      left.add(a + (b - a) * (height_a / (height_a - height_b)), in_a ? name : edge[k]);
    }
    return left;
  }
};

/// Choose four of the points within the distance `within`: the lowest, the one farthest from it, and on each side of the line through these two the
/// farthest one. Their polygon covers most of the polygon of all points. Among points that are equally good, the one with the smallest feature number
/// is chosen.
template <class T> void choose_four(const Vec3<T>* at, const T* height, int count, const T& within, const Vec3<T>& n,
                                    const T& size, int (&kept)[4], int& k) {
  const T little = size * T(same_length);
  k = 0;
  const auto farthest = [&](auto measure, const T& least) {
    int best = -1;
    T most = least;
    for (int i = 0; i < count; ++i) {
      if (height[i] > within) continue;
      const T x = measure(i);
      if (best < 0 ? x > least : x > most + abs(most) * T(same_length)) best = i, most = x;
    }
    if (best >= 0) kept[k++] = best;
    return best >= 0;
  };
  T lowest = within;
  for (int i = 0; i < count; ++i) lowest = height[i] < lowest ? height[i] : lowest;
  for (int i = 0; i < count && k == 0; ++i)
    if (height[i] < lowest + little) kept[k++] = i;
  if (k == 0) return;
  const auto away = [&](int i) { return dot(Vec3<T>(at[i] - at[kept[0]]), Vec3<T>(at[i] - at[kept[0]])); };
  if (!farthest(away, little * little)) return;
  const Vec3<T> aside = cross(n, Vec3<T>(at[kept[1]] - at[kept[0]]));
  const auto left = [&](int i) { return dot(aside, Vec3<T>(at[i] - at[kept[0]])); };
  const T least = little * sqrt(dot(aside, aside));
  farthest(left, least);
  farthest([&](int i) { return -left(i); }, least);
}

/// Find the contact points of two boxes. If there are more than four points, points farther apart than `within` are not chosen.
template <class T> void box_box(const OrientedBox<T>& a, const OrientedBox<T>& b, const T& within, Manifold<T>& m) {
  const OrientedBox<T>* const boxes[] = {&a, &b};
  const Vec3<T> between = b.X.p - a.X.p;
  const T size = sqrt(T(a.half.squaredNorm())) + sqrt(T(b.half.squaredNorm()));
  Vec3<T> normal = zero3<T>();
  T separation = T(0.0), most = T(0.0);
  int chosen = -1;
  for (int axis = 0; axis < 15; ++axis) {
    Vec3<T> n = axis < 6 ? Vec3<T>(boxes[axis / 3]->X.R.col(axis % 3))
                         : cross(Vec3<T>(a.X.R.col((axis - 6) / 3)), Vec3<T>(b.X.R.col((axis - 6) % 3)));
    if (const T sine2 = dot(n, n); sine2 > T(as_parallel * as_parallel))
      n = n * (T(1.0) / sqrt(sine2));
    else
      continue;
    const T along = dot(n, between);
    if (along < T(0.0)) n = -n;
    const T distance = abs(along) - a.reach(n) - b.reach(n);
    if (chosen >= 0 && !(distance > most)) continue;
    most = distance;
    // if an axis is nearly parallel to the normal of a side, use this normal instead; distances change only by half the squared angle
    if (chosen >= 0 && distance > separation && !(dot(n, normal) > T(1.0 - 0.5 * as_parallel * as_parallel))) chosen = -1;
    if (chosen < 0) chosen = axis, separation = distance, normal = n;
  }
  if (most > within) return;
  const T little = size * T(same_length), enough = most + abs(most) * T(as_parallel * as_parallel) + little;

  if (chosen < 6) {
    const bool side_on_b = chosen > 2;
    const OrientedBox<T>&face = *boxes[side_on_b], &other = *boxes[!side_on_b];
    const Vec3<T> n = side_on_b ? Vec3<T>(-normal) : normal;  // outward normal of that side
    const Vec3<T> down = transpose_times(other.X.R, n);
    int side = 2;
    for (const int k : {1, 0})
      if (abs(down(k)) > abs(down(side)) * T(1.0 + same_length)) side = k;
    const int i = (side + 1) % 3, j = (side + 2) % 3;
    const bool upper = down(side) < T(0.0);
    CutSide<T> cut;
    for (int k = 0; k < 4; ++k) {
      Vec3<T> p;
      p(side) = T(upper ? other.half(side) : -other.half(side));
      p(i) = T(k == 0 || k == 3 ? -other.half(i) : other.half(i)), p(j) = T(k < 2 ? -other.half(j) : other.half(j));
      cut.add(other.X.R * p + other.X.p, k);
    }
    const int normal_axis = chosen % 3;
    for (int k = 0; k < 4; ++k) {
      const int axis = (normal_axis + 1 + k / 2) % 3;
      const Vec3<T> out = face.X.R.col(axis) * T(k % 2 ? 1.0 : -1.0);
      cut = cut.cut(out, dot(out, face.X.p) + T(face.half(axis)), little, 4 + k);
    }
    T height[CutSide<T>::most], lowest = within + abs(within) + size;
    for (int k = 0; k < cut.count; ++k) {
      height[k] = dot(n, Vec3<T>(cut.corner[k] - face.X.p)) - T(face.half(normal_axis));
      lowest = height[k] < lowest ? height[k] : lowest;
    }
    if (cut.count > 0 && (!(most > T(0.0)) || !(lowest > enough))) {
      int kept[4], count;
      choose_four(cut.corner, height, cut.count, within, n, size, kept, count);
      for (int k = 0; k < count; ++k) {
        const Vec3<T>& p = cut.corner[kept[k]];
        // point on b; the opposite point on a is at the distance height[kept[k]] along the normal
        const Vec3<T> on_b = side_on_b ? Vec3<T>(p - n * height[kept[k]]) : p;
        const int sides = ((chosen * 2 + (dot(n, Vec3<T>(face.X.R.col(normal_axis))) > T(0.0))) * 6 + 2 * side + upper) * 64;
        m.add(on_b, -normal, height[kept[k]], sides + cut.name(kept[k]));
      }
      return;
    }
    // the boxes penetrate so deeply that the projections of the two sides do not overlap: use the lowest corner
    if (!(most > T(0.0))) {
      Vec3<T> p;
      for (int k = 0; k < 3; ++k) p(k) = T(down(k) > T(0.0) ? -other.half(k) : other.half(k));
      p = other.X.R * p + other.X.p;
      return m.add(side_on_b ? Vec3<T>(p - n * separation) : p, -normal, separation, 8416 + chosen);
    }
  } else {
    const int k = (chosen - 6) / 3, l = (chosen - 6) % 3;
    const int edge_a = farthest_edge(Vec3<T>(transpose_times(a.X.R, normal)), k);
    const int edge_b = farthest_edge(Vec3<T>(-transpose_times(b.X.R, normal)), l);
    const Segment<T> e = a.edge(edge_a), f = b.edge(edge_b);
    T s, t;
    nearest_of_two(e, f, s, t);
    const Vec3<T> d = f.at(t) - e.at(s);
    if (!(separation > T(0.0)) || !(sqrt(dot(d, d)) > enough))
      return m.add(f.at(t), -normal, separation, 8192 + 12 * edge_a + edge_b);
  }

  // the nearest points include a corner: try corners of each box against the other box, then edges
  Nearest<T> best{zero3<T>(), zero3<T>(), T(1e300)};
  int name = 0;
  const auto take = [&](const Vec3<T>& on_b, const Vec3<T>& from_b, int named) {
    const T d2 = dot(from_b, from_b), d = d2 > T(0.0) ? T(sqrt(d2)) : T(0.0);
    if (d < best.distance - little) best = {on_b, from_b * (T(1.0) / (d > T(0.0) ? d : T(1.0))), d}, name = named;
  };
  for (int first = 0; first < 2; ++first)
    for (int corner = 0; corner < 8; ++corner) {
      Vec3<T> p;
      for (int k = 0; k < 3; ++k) p(k) = T((corner >> k) & 1 ? boxes[first]->half(k) : -boxes[first]->half(k));
      const OrientedBox<T>& other = *boxes[!first];
      p = boxes[first]->X.R * p + boxes[first]->X.p;
      const auto near = nearest_on_box(Vec3<T>(transpose_times(other.X.R, Vec3<T>(p - other.X.p))), other.half);
      const Vec3<T> place = other.X.R * near.place + other.X.p;
      first ? take(p, place - p, 8400 + corner) : take(place, p - place, 8408 + corner);
    }
  for (int edge_a = 0; edge_a < 12; ++edge_a)
    for (int edge_b = 0; edge_b < 12; ++edge_b) {
      const Segment<T> e = a.edge(edge_a), f = b.edge(edge_b);
      T s, t;
      nearest_of_two(e, f, s, t);
      take(f.at(t), e.at(s) - f.at(t), 8192 + 12 * edge_a + edge_b);
    }
  m.add(best.place, best.normal, best.distance, name);
}

}  // namespace sarrus
