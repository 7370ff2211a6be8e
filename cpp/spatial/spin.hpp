// Angular velocity and acceleration of rotations R = R_0 exp(x) with moving rotation vectors x, in the rotated axes.
#pragma once

#include "../simd/dual.hpp"
#include "exponential.hpp"

namespace sarrus {

/// Return the rate of the rotation vector x (shorter than a whole revolution) for which exp(x) has the angular velocity w.
inline Vec3<double> vector_rate(const Vec3<double>& x, const Vec3<double>& w) {
  return left_jacobian_inverse<double>(x * -1.0) * w;
}

/// Compute the angular velocity and acceleration of exp(x), from x and its derivatives.
inline void spin(const double* x, const double* rate, const double* second, double* velocity, double* acceleration) {
  Vec3<Dual<double>> minus, moving;
  for (int i = 0; i < 3; ++i) minus(i) = {-x[i], -rate[i]}, moving(i) = {rate[i], second[i]};
  const Vec3<Dual<double>> w = left_jacobian(minus) * moving;
  for (int i = 0; i < 3; ++i) velocity[i] = w(i).value, acceleration[i] = w(i).rate;
}

}  // namespace sarrus
