// Gas spring between the origins of two frames, which pushes them apart. At a length L - x, compressed by x from the extended length L, the gas of
// polytropic exponent n has the force
//
//   F(x) = F1 (1 - (1 - P^(-1/n)) x / stroke)^(-n),      F(0) = F1,  F(stroke) = P F1
//
// because the volume decreases linearly (force proportional to the gas pressure: the pressure of the atmosphere is neglected). In addition: damping
// c x-dot, Coulomb friction that is smoothed below v_s, and stops at x = 0 and x = stroke with the law of end_stop.hpp.
#pragma once

#include "between_frames.hpp"

namespace sarrus {

struct GasSpring : BetweenFrames {
  static constexpr const char* name = "GasSpring";
  static constexpr bool has_rates = true, has_chord = true;  // chord: all forces that depend on the rate, divided by the rate
  static constexpr int soft_rows = 1;
  Number extended_length, stroke, force, progression, exponent, damping, friction, slip_velocity, stop_stiffness, stop_damping;

  template <class F> void fields(F field) {
    BetweenFrames::fields(field);
    field("extended_length", extended_length, Sign::positive), field("stroke", stroke, Sign::positive);
    field("force", force, Sign::positive), field("progression", progression, Sign::positive);
    field("exponent", exponent, Sign::positive), field("damping", damping, Sign::not_negative);
    field("friction", friction, Sign::not_negative), field("slip_velocity", slip_velocity, Sign::positive);
    field("stop_stiffness", stop_stiffness, Sign::not_negative), field("stop_damping", stop_damping, Sign::not_negative);
  }

  template <class T> void apply(ElementCall<T>& e) const {
    const Vec3<T> p = pose(e, frame).p, d = p - pose(e, on).p;
    const T length = sqrt(dot(d, d) + T(1e-300));  // the constant avoids a division by zero
    const Vec3<T> n = d * (T(1.0) / length);
    const T v = dot(n, relative_velocity(e, p).linear), x = e[extended_length] - length;
    const T slope = (T(1.0) - power(e[progression], T(T(-1.0) / e[exponent]))) / e[stroke];
    const T volume = most(T(1.0) - slope * x, T(1e-3));  // relative to the extended spring; the bound keeps it positive
    const T gas = e[force] * power(volume, T(-e[exponent]));
    const T stop = e[stop_stiffness] * (most(x - e[stroke], T(0.0)) + least(x, T(0.0))), room = abs(stop);
    T chord = e[damping] + e[friction] / sqrt(v * v + e[slip_velocity] * e[slip_velocity]) +
              least(e[stop_damping], room / most(abs(v), e[slip_velocity] * T(1e-6)));  // no division by zero
    if (e.chord) e.chords.frozen ? chord = *e.chord : * e.chord = chord;
    push_apart(e, p, Force<T>{zero3<T>(), n * (gas + stop - chord * v)});
    e.press(room > T(0.0));
    if constexpr (takes_rows<T>) {
      const double stop_slope = room > 0.0 ? e[stop_stiffness] : 0.0;
      if (e.rows) add_row(e, p, {zero3<T>(), n}, e[exponent] * slope * gas / volume + stop_slope, chord);
    }
  }
};

}  // namespace sarrus
