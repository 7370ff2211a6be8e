// A massless rod of constant length between two points, the origins of both frames. d is the vector from the parent's to the child's, and n = d/|d|.
//   phi   = |d| - length                                        (1) [m]
//   J     = n . (velocity of the child's point relative to the parent's)    the constraint force is along the rod
//   gamma = -(n . a + (u . u - (n . u)^2) / |d|)                [m/s2]      u, a relative to the parent's rotating axes
// removes 1 dof. The length must not be zero, because n would be undefined; use a spherical joint instead.
#pragma once

#include "row.hpp"

namespace sarrus {

struct Distance : BetweenBodies {
  static constexpr const char* name = "Distance";
  double length;

  int rows() const { return 1; }
  double own_length() const { return length; }
  std::string row_name(int) const { return "length"; }
  template <class F> void fields(F field) { field("length", length); }

  template <class T> SARRUS_INLINE void evaluate(const RelativeMotion<T>& m, Row<T>* row) const {
    const Vec3<T> d = m.position(), n = unit(d), &u = m.V.linear;
    const T distance = sqrt(dot(d, d)), along = dot(n, u);
    row->force = {zero3<T>(), n};
    row->residual = distance - m.numbers(length);
    row->size = m.velocity_size.linear;
    if (m.accelerates) row->gamma = -(dot(n, m.acceleration()) + (dot(u, u) - along * along) / distance);
  }
};

}  // namespace sarrus
