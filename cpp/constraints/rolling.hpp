// A disc or a sphere rolls without slip on a plane, or a sphere on a sphere, in lasting contact (Li and Wu 2011, 4.6). The origin of the child's
// frame is the centre of the disc or sphere, and its z axis the axle of a disc. The z axis of the parent's frame is the plane's normal; for a sphere
// on a sphere, its origin is the other sphere's centre. At the point of contact, which is at rho from the centre, both bodies have the same velocity
// along the normal e_0 and the tangents e_1, e_2:
//   phi   = height of the lowest point, 0, 0          (3) [m]      the two slip rows are nonholonomic
//   J     = e_r . (u + w x rho)                       along e_0 it is the rate of the height
//   gamma = -e_r . (a + alpha x rho + w x rho-dot)    [m/s2]       all vectors are relative to the parent's rotating axes
// Without spin about the normal there is a fourth row, e_0 . w, with gamma = -(e_0 . alpha + e_0-dot . w).
// removes 3 or 4 dof of velocity, 1 of position; a disc that lies flat has no lowest point.
#pragma once

#include "../joints/closing.hpp"
#include "row.hpp"

namespace sarrus {

struct Rolling : BetweenBodies {
  static constexpr const char* name = "Rolling";
  double radius, on_radius;  // radius of the sphere on which it rolls; negative if it rolls inside that sphere
  bool disc, on_sphere, spins;
  static constexpr int parts_of_a_length = 3;
  static constexpr bool holds_a_point_of_the_parent = false;
  double own_length() const { return radius; }

  int rows() const { return spins ? 3 : 4; }
  std::string row_name(int r) const { return r == 0 ? "contact" : r == 3 ? "spin" : "slip " + std::to_string(r); }
  bool holonomic(int r) const { return r == 0; }
  template <class F> void fields(F field) {
    field("radius", radius), field("on_radius", on_radius), field("disc", disc), field("on_sphere", on_sphere),
        field("spins", spins);
  }

  template <class T> SARRUS_INLINE void evaluate(const RelativeMotion<T>& m, Row<T>* row) const {
    const Vec3<T> z = Vec3<T>(m.X.R.row(2)), d = m.position(), &u = m.V.linear, &w = m.V.angular;
    Vec3<T> e[3], e_dot = zero3<T>(), rho, rho_dot = zero3<T>();  // e_dot: rate of the normal
    T height;
    if (on_sphere) {
      const double reach = radius + on_radius;
      const T distance = sqrt(dot(d, d)), side = T(reach < 0.0 ? -1.0 : 1.0);
      e[0] = unit(d);
      e_dot = (u - e[0] * dot(e[0], u)) * (T(1.0) / distance);
      rho = e[0] * (side * -m.numbers(radius)), rho_dot = e_dot * (side * -m.numbers(radius));
      height = distance - abs(T(m.numbers(radius) + m.numbers(on_radius)));
      perpendiculars(e[0], e[1], e[2]);
    } else {
      e[0] = z, e[1] = Vec3<T>(m.X.R.row(0)), e[2] = Vec3<T>(m.X.R.row(1));
      rho = z * -m.numbers(radius);
      if (disc) {
        // direction of the lowest point of the rim: downwards, along the component of the normal perpendicular to the axle
        const Vec3<T> axle = unit_motion<T>(2).angular, axle_dot = cross(w, axle);
        const T tilt = dot(z, axle);
        const Vec3<T> across = z - axle * tilt, across_dot = -(axle * dot(z, axle_dot) + axle_dot * tilt);
        const T inverse = T(1.0) / sqrt(dot(across, across));
        const Vec3<T> up = across * inverse;
        rho = up * -m.numbers(radius);
        rho_dot = (across_dot - up * dot(up, across_dot)) * (inverse * -m.numbers(radius));
      }
      height = dot(z, Vec3<T>(d + rho));
    }
    Vec3<T> a = zero3<T>(), alpha = a;
    if (m.accelerates) {
      alpha = m.dw - cross(m.w_parent, m.w_child);
      a = m.acceleration() + cross(alpha, rho) + cross(w, rho_dot);
    }
    for (int r = 0; r < 3; ++r) {
      row[r].force = {cross(rho, e[r]), e[r]};
      row[r].residual = r == 0 ? height : T(0.0);
      row[r].gamma = -dot(e[r], a);
      row[r].size = m.velocity_size.linear + m.velocity_size.angular * square(T(m.numbers(radius)));
    }
    if (!spins) row[3] = {{e[0], zero3<T>()}, T(0.0), -(dot(e[0], alpha) + dot(e_dot, w)), m.velocity_size.angular};
  }
};

}  // namespace sarrus
