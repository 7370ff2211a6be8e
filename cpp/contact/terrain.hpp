// Contact of points and spheres with a terrain of heights z = f(x, y).
#pragma once

#include "shape.hpp"

namespace sarrus {

/// Height z of a terrain at a point, with its slopes along x and y, and its second derivatives xx, xy, yy.
template <class T> struct Height {
  T z, x, y, xx, xy, yy;
};

/// Interpolate the heights of a grid, first along x, then along y, by cubics whose slopes at grid points are central differences (Catmull and Rom
/// 1974).
template <class T> Height<T> height_at(const Heights& grid, const T& x, const T& y) {
  T w[2][3][4];  // weights of four heights in a row, for the value and its first two derivatives
  int first[2];
  const int counts[] = {grid.nx, grid.ny};
  const double steps[] = {grid.dx, grid.dy};
  for (int k = 0; k < 2; ++k) {
    const T& at = k ? y : x;
    const T along = clamped(T(at / T(steps[k]) + T(0.5 * (counts[k] - 1))), T(0.0), T(counts[k] - 1.0));
    int cell = 0;
    while (cell < counts[k] - 2 && along > T(cell + 1.0)) ++cell;
    const T u = along - T(double(cell)), h = T(0.5), s = T(1.0 / steps[k]);
    const T value[] = {h * u * (u * (T(2.0) - u) - T(1.0)), T(1.0) + h * u * u * (T(3.0) * u - T(5.0)),
                       h * u * (T(1.0) + u * (T(4.0) - T(3.0) * u)), h * u * u * (u - T(1.0))};
    const T slope[] = {h * (u * (T(4.0) - T(3.0) * u) - T(1.0)), h * u * (T(9.0) * u - T(10.0)),
                       h * (T(1.0) + u * (T(8.0) - T(9.0) * u)), h * u * (T(3.0) * u - T(2.0))};
    const T bend[] = {T(2.0) - T(3.0) * u, T(9.0) * u - T(5.0), T(4.0) - T(9.0) * u, T(3.0) * u - T(1.0)};
    const bool inside = !(abs(at) > T(0.5 * steps[k] * (counts[k] - 1)));
    for (int i = 0; i < 4; ++i) {
      w[k][0][i] = value[i];
      w[k][1][i] = inside ? T(slope[i] * s) : T(0.0), w[k][2][i] = inside ? T(bend[i] * s * s) : T(0.0);
    }
    first[k] = cell - 1;
  }
  const auto sum = [&](int dx, int dy) {
    T z = T(0.0);
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 4; ++i) {
        const int column = std::min(std::max(first[0] + i, 0), grid.nx - 1),
                  row = std::min(std::max(first[1] + j, 0), grid.ny - 1);
        z += w[0][dx][i] * w[1][dy][j] * T(grid.z[std::size_t(row) * grid.nx + column]);
      }
    return z;
  };
  return {sum(0, 0), sum(1, 0), sum(0, 1), sum(2, 0), sum(1, 1), sum(0, 2)};
}

/// Find the point (x, y, f) of the terrain whose normal passes through p, and which is nearest to p: (x, y) - p_xy + (f - p_z) grad f = 0. Newton's
/// method starts below p. If its full matrix is not positive definite, the terms with the curvature are omitted (Gauss-Newton). At most 20 steps.
template <class T, class Law>
void sphere_terrain(const Vec3<T>& center, double radius, const Transform<T>& X, const Law& law, Manifold<T>& m) {
  const Vec3<T> p = transpose_times(X.R, Vec3<T>(center - X.p));
  T x = p(0), y = p(1);
  Height<T> f = law(x, y);
  for (int k = 0; k < 20; ++k) {
    const T over = f.z - p(2), gx = x - p(0) + over * f.x, gy = y - p(1) + over * f.y;
    T a = T(1.0) + f.x * f.x, b = f.x * f.y, c = T(1.0) + f.y * f.y;
    const T aa = a + over * f.xx, bb = b + over * f.xy, cc = c + over * f.yy;
    if (aa > T(0.1) * a && aa * cc - bb * bb > T(0.1) * (a * c - b * b)) a = aa, b = bb, c = cc;
    const T inverse = T(1.0) / (a * c - b * b), dx = (b * gy - c * gx) * inverse, dy = (b * gx - a * gy) * inverse;
    x += dx, y += dy, f = law(x, y);
    if (!(dx * dx + dy * dy > T(1e-30) * over * over)) break;
  }
  const Vec3<T> n = unit(vec3<T>(-f.x, -f.y, T(1.0))), place = vec3<T>(x, y, f.z);
  m.add(X.R * place + X.p, X.R * n, dot(n, Vec3<T>(p - place)) - T(radius), 0);
}

}  // namespace sarrus
