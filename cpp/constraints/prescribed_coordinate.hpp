// A prescribed coordinate x_k of a tree joint: for a quaternion a component of the rotation vector x with q = exp(x), for other joints a component of
// q.
//   phi = x_k - target     [rad or m]
//   J   = row k of E, where x-dot = E v; for rotations E is the inverse of the exponential's differential in the successor's axes
//         (Hairer, Lubich and Wanner IV.7), 1 + x~/2 + c x~ x~  with  c = (1 - |x|/2 cot(|x|/2)) / |x|^2
// This constraint is used only for closing loops, so it has no acceleration rows.
#pragma once

#include "../joints/closing.hpp"
#include "row.hpp"

namespace sarrus {

struct PrescribedCoordinate : BetweenCoordinates {
  static constexpr const char* name = "";  // empty, because descriptions do not contain this constraint
  JointKind joint;
  int index;  // k, which is less than the number of velocities of the joint

  int rows() const { return 1; }
  int values_with_call(int) const { return 1; }
  template <class F> void fields(F) {}

  template <class T, class Entry> SARRUS_INLINE CoordinateRow<T> evaluate(const CoordinateState<T>& s, int, Entry entry) const {
    const T* q = s.q + s.coordinate[0];
    T x[6], x_dot[7];
    visit_every(joint, s.columns, [&](auto type) {
      const auto rotation_vector = [&] { return log(Quaternion<T>::load(q).normalized()); };
      for (int k = 0; k < type.nv; ++k) x[k] = q[k + type.has_quaternion];
      if constexpr (type.has_quaternion) copy3(rotation_vector(), x);
      for (int i = 0; i < type.nv; ++i) {
        T unit[6];
        for (int k = 0; k < type.nv; ++k) unit[k] = T(k == i);
        type.rate(q, unit, x_dot);
        T slope = x_dot[index + type.has_quaternion];
        if constexpr (type.has_quaternion)
          if (index < 3) slope = exponential_rate(x, unit)(index);
        entry(i, slope, slope);
      }
    });
    return {x[index] - (s.values ? s.values[0] : T(0.0)), T(0.0), T(0.0)};
  }

 private:
  template <class T> static void copy3(const Vec3<T>& r, T* x) {
    for (int k = 0; k < 3; ++k) x[k] = r(k);
  }
  template <class T> static Vec3<T> exponential_rate(const T* rotation, const T* velocity) {
    const Vec3<T> x = vec3<T>(rotation[0], rotation[1], rotation[2]), w = vec3<T>(velocity[0], velocity[1], velocity[2]);
    const T square = dot(x, x);
    const auto small = square < T(1e-4);
    const T half = T(0.5) * sqrt(select(small, T(1.0), square));
    T s, c;
    sincos(1, &half, &s, &c);
    const T curved = select(small, T(1.0 / 12.0) + square / T(720.0), (T(1.0) - half * c / s) / select(small, T(1.0), square));
    return w + cross(x, w) * T(0.5) + cross(x, cross(x, w)) * curved;
  }
};

}  // namespace sarrus
