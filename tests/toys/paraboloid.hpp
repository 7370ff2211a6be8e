// A point, the origin of the child's frame, stays on a bowl of the parent: p = (x, y, z) in the parent's frame.
//   phi   = z - a (x^2 + y^2)                                (1) [m]
//   J     = n . (velocity of the child's point in the parent's turning axes),   n = e_z - 2 a (x e_x + y e_y)
//   gamma = -n . a + 2 a (x-dot^2 + y-dot^2)                 [m/s2]
// removes 1 dof.
#pragma once

#include "row.hpp"

namespace sarrus {

struct Paraboloid : BetweenBodies {
  static constexpr const char* name = "Paraboloid";
  double a;

  int rows() const { return 1; }
  std::string row_name(int) const { return "height"; }
  template <class F> void fields(F field) { field("a", a); }

  template <class T> SARRUS_INLINE void evaluate(const RelativeMotion<T>& m, Row<T>* row) const {
    const Vec3<T> e_x = Vec3<T>(m.X.R.row(0)), e_y = Vec3<T>(m.X.R.row(1)), e_z = Vec3<T>(m.X.R.row(2)), &u = m.V.linear;
    const T x = m.X.p(0), y = m.X.p(1), curvature = T(2.0 * a);
    const Vec3<T> n = e_z - (e_x * x + e_y * y) * curvature;
    row->force = {zero3<T>(), n};
    row->residual = m.X.p(2) - T(a) * (x * x + y * y);
    row->size = m.velocity_size.linear * dot(n, n);
    if (m.accelerates) row->gamma = curvature * (square(dot(e_x, u)) + square(dot(e_y, u))) - dot(n, m.acceleration());
  }
};

}  // namespace sarrus
