// Force at a compliant contact. The normal force is k d^n (1 + c d-dot), with the depth d (Hunt and Crossley 1975). The tangential force is Coulomb
// friction, smoothed at slip speeds below v_s.
#pragma once

#include "element.hpp"

namespace sarrus {

struct ContactLaw {
  Number stiffness, exponent, dissipation, friction, slip_velocity;

  template <class F> void fields(F& field) {
    field("stiffness", stiffness, Sign::positive), field("exponent", exponent, Sign::positive);
    field("dissipation", dissipation, Sign::not_negative), field("friction", friction, Sign::not_negative);
    field("slip_velocity", slip_velocity, Sign::positive);
  }

  /// Force [N]; the normal component and its derivative with respect to the rate of the depth; the ratio of friction to slip speed.
  template <class T> struct Response {
    Vec3<T> force;
    T pressure, damping, drag;
  };

  /// Compute the force on a body whose material at the contact moves at u relative to the other body; n points into it. The value that is stored for
  /// the chord is the slip speed plus v_s.
  template <class T, class Mask>
  SARRUS_NOINLINE Response<T> response(ElementCall<T>& e, const Mask& touches, const T& depth, const Vec3<T>& n,
                                       const Vec3<T>& u) const {
    const T rate = -dot(n, u), elastic = power(select(touches, depth, T(0.0)), e[exponent]) * e[stiffness];
    const T pressed = elastic * (T(1.0) + e[dissipation] * rate);
    const T pressure = select(touches, most(pressed, T(0.0)), T(0.0));  // a contact force never pulls
    const Vec3<T> slip = u + n * rate;
    T speed = sqrt(dot(slip, slip) + e[slip_velocity] * e[slip_velocity]);
    if (e.chord) e.chords.frozen ? speed = *e.chord : * e.chord = speed;
    const T drag = e[friction] * pressure / speed;
    return {n * pressure - slip * drag, pressure, select(pressure > T(0.0), elastic * e[dissipation], T(0.0)), drag};
  }
};

}  // namespace sarrus
