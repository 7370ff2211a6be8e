// Radial play of a pin (journal) in a bearing. Without contact the pin moves freely within the clearance c. If its axis is farther than c from the
// bearing's axis, in the plane perpendicular to the bearing's axis, it presses on the wall: contact_law.hpp, with the depth d = distance - c.
// The bearing is infinitely long, and the point of the pin's axis is the origin of `frame`: axial motion and tilting are free except for friction.
#pragma once

#include "between_frames.hpp"
#include "contact_law.hpp"

namespace sarrus {

struct PinClearance : BetweenFrames {
  static constexpr const char* name = "PinClearance";
  static constexpr bool has_rates = true, has_chord = true;
  static constexpr int soft_rows = 3;
  Direction axis;  // of the bearing, in the axes of `on`
  Number clearance, radius;  // radius: of the pin; friction acts at this radius
  ContactLaw law;

  template <class F> void fields(F field) {
    BetweenFrames::fields(field);
    field("axis", axis), field("clearance", clearance, Sign::not_negative), field("radius", radius, Sign::not_negative);
    law.fields(field);
  }

  template <class T> void apply(ElementCall<T>& e) const {
    const Transform<T> bearing = pose(e, on), pin = pose(e, frame);
    const Vec3<T> along = bearing.R * cast<T>(axis.n), d = pin.p - bearing.p, off = d - along * dot(along, d);
    const T square_of_distance = dot(off, off);
    const auto touches = square_of_distance > e[clearance] * e[clearance];
    e.press(touches);
    if (!any(touches)) return;
    const T distance = sqrt(select(touches, square_of_distance, T(1.0)));
    const Vec3<T> n = off * (T(-1.0) / distance), p = pin.p - n * e[radius];  // from the wall to the pin's axis
    const T depth = select(touches, distance - e[clearance], T(1.0));
    const auto contact = law.response(e, touches, depth, n, relative_velocity(e, p).linear);
    push_apart(e, p, Force<T>{zero3<T>(), contact.force});
    if constexpr (takes_rows<T>) {
      if (!e.rows) return;
      add_row(e, p, {zero3<T>(), n}, e[law.exponent] * contact.pressure / depth, contact.damping);
      for (const Vec3<T>& tangent : {along, cross(along, n)}) add_row(e, p, {zero3<T>(), tangent}, 0.0, contact.drag);
    }
  }
};

}  // namespace sarrus
