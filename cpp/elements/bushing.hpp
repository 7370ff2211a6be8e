// Six springs and dampers between two frames: A of the body of `on`, B of the body of `frame`.
//
//   theta     (3) [rad]  rotation vector of B relative to A; its components in A, in B and in the frame M halfway between them are equal
//   d         (3) [m]    displacement of B's origin from A's origin, in the axes of M
//   U = (theta^T K_r theta + d^T K_d d) / 2,   force along each coordinate x:   preload - k x - c x-dot
//
// The law does not change if A and B are exchanged, and conserves energy without damping. Let w and u (in M) be the angular velocity of B relative to
// A, and the velocity of the material of B relative to A's at the midpoint of the origins; t = |theta|, n = theta / t. Then
//
//   theta-dot = S w,                   S = n n^T + (1 - n n^T) t/2 / sin(t/2)
//   d-dot     = u + (g x w) x d / 2,   g = n tan(t/4)
//
// because the angular velocity of M exceeds the mean of those of A and B by -(g x w) / 2. By virtual work, forces Q along theta and f along d are the
// wrench [S Q + (d x f) x g / 2; f] at the midpoint. At half a revolution the direction of theta is reversed.
#pragma once

#include "../spatial/conversions.hpp"
#include "between_frames.hpp"

namespace sarrus {

struct Bushing : BetweenFrames {
  static constexpr const char* name = "Bushing";
  static constexpr bool has_rates = true, has_linear_rates = true;
  static constexpr int soft_rows = 6;
  NumberArray stiffness, damping, preload;  // along theta, then along d

  template <class F> void fields(F field) {
    BetweenFrames::fields(field);
    field("stiffness", stiffness), field("damping", damping), field("preload", preload);
  }

  template <class T> void apply(ElementCall<T>& e) const {
    const Transform<T> A = pose(e, on), B = pose(e, frame);
    const Quaternion<T> turn = quaternion(Mat3<T>(A.R.transpose() * B.R));  // w >= 0
    const Mat3<T> R = A.R * rotation(Quaternion<T>{turn.x, turn.y, turn.z, turn.w + T(1.0)});  // axes of M
    const Vec3<T> theta = log(turn), g = turn.vector() * (T(1.0) / (T(1.0) + turn.w)), p = (A.p + B.p) * T(0.5),
                  d = transpose_times(R, Vec3<T>(B.p - A.p));
    // S = across + along theta theta^T. Below 2 mrad, the closed form of `along` would lose digits
    const T t2 = dot(theta, theta), s2 = dot(turn.vector(), turn.vector());
    const auto small = t2 < T(4e-6);
    const T safe = select(small, T(1.0), t2), large = T(0.5) * sqrt(safe / select(small, T(1.0), s2));
    const T along = select(small, T(-1.0 / 24.0) - t2 * T(7.0 / 5760.0), (T(1.0) - large) / safe);
    const T across = select(small, T(1.0) - t2 * along, large);
    const auto stretched = [&](const Vec3<T>& x) { return Vec3<T>(x * across + theta * (along * dot(theta, x))); };
    const auto wrench = [&](const Vec3<T>& Q, const Vec3<T>& f) {
      return Force<T>{R * Vec3<T>(stretched(Q) + cross(Vec3<T>(cross(d, f)), g) * T(0.5)), R * f};
    };

    const Motion<T> V = in_axes(R, relative_velocity(e, p));
    const Vec3<T> rate[2] = {stretched(V.angular), V.linear + cross(Vec3<T>(cross(g, V.angular)), d) * T(0.5)};
    const T *k = e[stiffness], *c = e[damping], *f = e[preload];
    Vec3<T> force[2];
    for (int i = 0; i < 6; ++i) force[i / 3](i % 3) = f[i] - k[i] * (i < 3 ? theta : d)(i % 3) - c[i] * rate[i / 3](i % 3);
    push_apart(e, p, wrench(force[0], force[1]));
    if constexpr (takes_rows<T>)
      for (int i = 0; e.rows && i < 6; ++i) {
        Vec3<T> unit[2] = {zero3<T>(), zero3<T>()};
        unit[i / 3](i % 3) = 1.0;
        add_row(e, p, wrench(unit[0], unit[1]), k[i], c[i]);
      }
  }
};

}  // namespace sarrus
