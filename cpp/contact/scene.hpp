// Scene of shapes: pairs that may touch, a sweep that finds pairs of nearby shapes, and their contact points.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "../mechanism/arena.hpp"
#include "pairs.hpp"

namespace sarrus {

/// A shape with the pose `at` on a body. `link` is the index of a link of the tree, or of another body whose pose the caller supplies.
struct PlacedShape {
  Shape shape;
  int link;
  Transform<double> at;
};

/// Function that returns the contact points of two shapes at these poses, for a pair without a closed form. The normal pushes the first shape away
/// from the second. Points whose surfaces are farther apart than `within` may be omitted. An empty optional reports that the caller's function
/// failed.
using PairFunction = std::function<std::optional<Manifold<double>>(const Transform<double>& first,
                                                                   const Transform<double>& second, double within)>;

/// Contact points of a scene, valid while the arena's scope lasts.
template <class T> struct Touching {
  TouchingPoint<T>* first;
  int count = 0;
  bool failed = false;  // true: a function of the caller failed
  const TouchingPoint<T>* begin() const { return first; }
  const TouchingPoint<T>* end() const { return first + count; }
};

/// A point of a pair that had a contact force in the last step, and its position (world).
struct PressedPoint {
  int pair;
  Vec3<double> position;
};
/// Largest number of points of a pair that are stored from the last step.
constexpr int most_kept = 4;

class Scene {
 public:
  /// The id of a point is its pair's index times this factor, plus the feature of the two shapes.
  static constexpr long long features = 16384;

  std::vector<PlacedShape> shapes;
  std::vector<ContactPair> pairs;

  /// Allow contact between two shapes, with the given coefficients of the pair.
  void allow(int first, int second, double friction, double restitution, double torsional = 0.0, double rolling = 0.0,
             PairFunction function = nullptr) {
    if (first > second) std::swap(first, second);
    numbers_of_pairs.resize(shapes.size() * shapes.size(), -1);
    numbers_of_pairs[first * shapes.size() + second] = static_cast<int>(pairs.size());
    pairs.push_back({shapes[first].link, shapes[second].link, friction, restitution, torsional, rolling});
    shapes_of_pairs.push_back({first, second}), functions.push_back(std::move(function));
  }
  std::pair<int, int> shapes_of(int pair) const { return shapes_of_pairs[pair]; }

  /// Return the caller's function for a pair; null if the pair has a closed form.
  const PairFunction& function(int pair) const { return functions[pair]; }

  /// Return the two shapes of a pair in the order (body, plane); -1 if neither is a plane.
  std::pair<int, int> on_a_plane(int pair) const {
    const auto [i, j] = shapes_of_pairs[pair];
    if (functions[pair] || (shapes[i].shape.kind != ShapeKind::plane && shapes[j].shape.kind != ShapeKind::plane))
      return {-1, -1};
    return shapes[j].shape.kind == ShapeKind::plane ? std::pair{i, j} : std::pair{j, i};
  }
  /// Return the contact point of a body and a plane at a corner of the body; the corner is in the shape's axes.
  TouchingPoint<double> meeting(int pair, const Transform<double>& body, const Transform<double>& plane,
                                const Vec3<double>& corner, int name) const {
    Manifold<double> m;
    HalfSpace<double>(plane).meet(body.R * corner + body.p, 0.0, name, m);
    if (shapes[shapes_of_pairs[pair].first].shape.kind == ShapeKind::plane) m.at[0].normal = -m.at[0].normal;
    return {m.at[0], pair, pair * features + name};
  }
  /// Return true if two points of a pair are at the same position.
  bool same(const TouchingPoint<double>& a, const TouchingPoint<double>& b) const {
    const int body = on_a_plane(a.pair).first;
    return a.pair == b.pair && body >= 0 &&
           Vec3<double>(a.at.position - b.at.position).norm() < same_place * shapes[body].shape.reach();
  }

  /// Return the largest number of contact points of a pair.
  int most_points(int pair) const {
    if (functions[pair]) return 4;
    const auto [i, j] = shapes_of_pairs[pair];
    const ShapeKind a = std::min(shapes[i].shape.kind, shapes[j].shape.kind);
    const bool many = a == ShapeKind::cylinder || a == ShapeKind::points;
    return a == ShapeKind::sphere || a == ShapeKind::ellipsoid ? 1 : a == ShapeKind::capsule ? 2 : many ? 4 + 2 * most_kept : 4;
  }

  /// Find all contact points of pairs whose distance is below the search distances of both shapes, pair by pair, for these poses of the links. At
  /// most four points are found for a pair; which ones depends on the poses. The `pressed` points of the last step, ordered by pairs, are always
  /// added, so that the points of a resting body do not change. An id consists of the index of the pair and a feature number below 2^14.
  template <class T>
  Touching<T> touching(const Transform<T>* links, const T* ahead, Arena& arena, const PressedPoint* pressed = nullptr,
                       int pressed_count = 0) const {
    const int n = static_cast<int>(shapes.size());
    Transform<T>* at = arena.take<Transform<T>>(n);
    T *low = arena.take<T>(n), *high = arena.take<T>(n);  // along x
    int *order = arena.take<int>(n), *near = arena.take<int>(pairs.size()), count = 0;
    for (int i = 0; i < n; ++i) {
      const PlacedShape& s = shapes[i];
      at[i] = links[s.link] * cast<T>(s.at), order[i] = i;
      const double reach = s.shape.reach();
      low[i] = reach < 0.0 ? T(-1e300) : T(at[i].p(0) - T(reach) - ahead[i]);
      high[i] = reach < 0.0 ? T(1e300) : T(at[i].p(0) + T(reach) + ahead[i]);
    }
    // sweep along x: two shapes can be near each other only if one begins before the other ends
    std::sort(order, order + n, [&](int i, int j) { return low[i] < low[j] || (!(low[j] < low[i]) && i < j); });
    for (int k = 0; k < n; ++k)
      for (int l = k + 1; l < n && !(low[order[l]] > high[order[k]]); ++l) {
        const int i = std::min(order[k], order[l]), j = std::max(order[k], order[l]), pair = number(i, j);
        if (pair < 0) continue;
        const double r = shapes[i].shape.reach(), s = shapes[j].shape.reach();
        const Vec3<T> d = at[i].p - at[j].p;
        if (!(r < 0.0) && !(s < 0.0) && dot(d, d) > square(T(T(r + s) + ahead[i] + ahead[j]))) continue;
        near[count++] = pair;
      }
    std::sort(near, near + count);
    Touching<T> result = {arena.take<TouchingPoint<T>>((4 + most_kept) * count)};
    for (int k = 0; k < count; ++k) {
      const int pair = near[k];
      const auto [i, j] = shapes_of_pairs[pair];
      const T within = ahead[i] + ahead[j];
      Manifold<T> m;
      if (!functions[pair])
        m = touch(shapes[i].shape, at[i], shapes[j].shape, at[j], within);
      else if constexpr (std::is_same_v<T, double>) {
        const auto points = functions[pair](at[i], at[j], within);
        result.failed |= !points, m = points.value_or(m);
      }
      for (int l = 0; l < m.count; ++l)
        if (!(m.at[l].distance > within)) result.first[result.count++] = {m.at[l], pair, pair * features + m.feature[l]};
      if constexpr (std::is_same_v<T, double>) {
        while (pressed_count > 0 && pressed->pair < pair) ++pressed, --pressed_count;
        for (int l = 0; l < most_kept && pressed_count > 0 && pressed->pair == pair; ++l, ++pressed, --pressed_count)
          keep(*pressed, at, within, result);
      }
    }
    return result;
  }

 private:
  /// Add the point of a shape on a plane that is nearest to a pressed point of the last step, unless it is already a contact point.
  void keep(const PressedPoint& pressed, const Transform<double>* at, double within, Touching<double>& touching_points) const {
    const auto [body, plane] = on_a_plane(pressed.pair);
    Vec3<double> corner;
    int name;
    if (body < 0 ||
        !nearest_corner(shapes[body].shape, at[body], Vec3<double>(at[plane].R.col(2)), pressed.position, corner, name))
      return;
    const TouchingPoint<double> point = meeting(pressed.pair, at[body], at[plane], corner, name);
    if (point.at.distance > within) return;
    for (const TouchingPoint<double>& other : touching_points)
      if (same(point, other)) return;
    touching_points.first[touching_points.count++] = point;
  }

  /// Distance, relative to the size of a shape, below which two points are treated as one.
  static constexpr double same_place = 1e-6;
  std::vector<int> numbers_of_pairs;  // pair index for two shapes, the lower index first; -1: the shapes may not touch
  std::vector<std::pair<int, int>> shapes_of_pairs;
  std::vector<PairFunction> functions;  // for each pair; most are empty

  int number(int i, int j) const { return numbers_of_pairs.empty() ? -1 : numbers_of_pairs[i * shapes.size() + j]; }
};

}  // namespace sarrus
