// What can touch what, and what does in a state: the pairs of shapes that may, a sweep that finds those near each other, and their points.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "pairs.hpp"

namespace sarrus {

/// A shape on a body: of the tree's links, or of other places that the caller counts.
struct PlacedShape {
  Shape shape;
  int link;
  Transform<double> at;
};

/// Where a scene writes: its vectors keep what they have, so that from the second state on nothing is allocated.
template <class T> struct Touching {
  std::vector<Transform<T>> at;
  std::vector<T> low, high;  // along x
  std::vector<int> order, near;
  std::vector<TouchingPoint<T>> found;
};

class Scene {
 public:
  std::vector<PlacedShape> shapes;
  std::vector<ContactPair> pairs;

  /// From now on the second shape may touch the first, as a pair of this friction and restitution.
  void allow(int first, int second, double friction, double restitution) {
    if (first > second) std::swap(first, second);
    numbers_of_pairs.resize(shapes.size() * shapes.size(), -1);
    numbers_of_pairs[first * shapes.size() + second] = static_cast<int>(pairs.size());
    pairs.push_back({shapes[first].link, shapes[second].link, friction, restitution});
    shapes_of_pairs.push_back({first, second});
  }
  std::pair<int, int> shapes_of(int pair) const { return shapes_of_pairs[pair]; }

  /// All points of pairs that are at most so far apart, pair by pair, where links stand so. An id is a pair and one of 2^14 features.
  template <class T> void touching(const Transform<T>* links, const T& within, Touching<T>& work) const {
    const int n = static_cast<int>(shapes.size());
    work.found.clear(), work.near.clear(), work.order.clear(), work.at.clear();
    work.low.resize(n), work.high.resize(n);
    auto& [at, low, high, order, near, found] = work;
    for (int i = 0; i < n; ++i) {
      const PlacedShape& s = shapes[i];
      at.push_back(links[s.link] * cast<T>(s.at)), order.push_back(i);
      const double reach = s.shape.reach();  // half of what may be between goes to either
      low[i] = reach < 0.0 ? T(-1e300) : T(at[i].p(0) - T(reach) - within * T(0.5));
      high[i] = reach < 0.0 ? T(1e300) : T(at[i].p(0) + T(reach) + within * T(0.5));
    }
    // sweep along x: only who begins before another has ended can be near it
    std::sort(order.begin(), order.end(), [&](int i, int j) { return low[i] < low[j] || (!(low[j] < low[i]) && i < j); });
    for (int k = 0; k < n; ++k)
      for (int l = k + 1; l < n && !(low[order[l]] > high[order[k]]); ++l) {
        const int i = std::min(order[k], order[l]), j = std::max(order[k], order[l]), pair = number(i, j);
        if (pair < 0) continue;
        const double r = shapes[i].shape.reach(), s = shapes[j].shape.reach();
        const Vec3<T> d = at[i].p - at[j].p;
        if (!(r < 0.0) && !(s < 0.0) && dot(d, d) > square(T(T(r + s) + within))) continue;
        near.push_back(pair);
      }
    std::sort(near.begin(), near.end());
    for (const int pair : near) {
      const auto [i, j] = shapes_of_pairs[pair];
      const Manifold<T> m = touch(shapes[i].shape, at[i], shapes[j].shape, at[j], within);
      for (int k = 0; k < m.count; ++k) {
        if (m.at[k].distance > within) continue;
        found.push_back({m.at[k], pair, static_cast<long long>(pair) * 16384 + m.feature[k]});
      }
    }
  }

 private:
  std::vector<int> numbers_of_pairs;  // by shapes, the lower number first; -1: they may not
  std::vector<std::pair<int, int>> shapes_of_pairs;

  int number(int i, int j) const { return numbers_of_pairs.empty() ? -1 : numbers_of_pairs[i * shapes.size() + j]; }
};

}  // namespace sarrus
