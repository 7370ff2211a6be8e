// Linear springs with dampers between points of two bodies: along the line that joins them they pull with k (l - l0) + c l-dot.
#pragma once

#include "kinematics.hpp"

namespace sarrus {

/// In the world: its ends, and the force on the first of them; the second is pulled the other way.
template <class T> struct SpringForce {
  Vec3<T> end[2], pull;
  T stretch;
};

template <class T> SpringForce<T> spring_force(const PointSpring& s, const Kinematics<T>& k) {
  SpringForce<T> f;
  Vec3<T> u[2];
  for (int i = 0; i < 2; ++i) {
    const BodyMotion<T>& b = k.body[s.body[i]];
    const Vec3<T> arm = b.X.R * cast<T>(s.point[i]);
    f.end[i] = b.X.p + arm;
    u[i] = b.V.linear + cross(b.V.angular, arm);
  }
  const Vec3<T> d = f.end[1] - f.end[0];
  const T length = sqrt(dot(d, d) + T(1e-300));  // of no length: no direction, no force
  f.stretch = length - T(s.rest_length);
  f.pull = d * ((T(s.stiffness) * f.stretch + T(s.damping) * dot(d, Vec3<T>(u[1] - u[0])) / length) / length);
  return f;
}

/// Calls put(end's body, end's part, force in world axes about the world point p) for both ends of every spring.
template <class T, class Put> void each_spring_force(const Tree& tree, const Kinematics<T>& k, Put put) {
  for (int i = 0; i < tree.springs; ++i) {
    const PointSpring& s = tree.spring[i];
    const SpringForce<T> f = spring_force(s, k);
    put(s.body[0], s.part[0], f.pull, f.end[0]);
    put(s.body[1], s.part[1], Vec3<T>(-f.pull), f.end[1]);
  }
}

/// The same as wrenches on the bodies: put(body, wrench in its axes at its origin). For recursions that have no world poses.
template <class T, class Put> SARRUS_NOINLINE void springs_on_bodies(const Tree& tree, Arena& arena, const T* q, const T* v,
                                                                     Put put) {
  const Kinematics<T> k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, q, v, static_cast<const T*>(nullptr), k);
  each_spring_force(tree, k, [&](int body, int, const Vec3<T>& force, const Vec3<T>& p) {
    const Transform<T>& X = k.body[body].X;
    put(body, Force<T>{transpose_times(X.R, cross(Vec3<T>(p - X.p), force)), transpose_times(X.R, force)});
  });
}

/// All that pushes the bodies from outside, wrenches and springs: put(body, wrench in its axes at its origin). `in` is what a recursion is given.
template <class T, class Input, class Put> SARRUS_INLINE void external_forces(const Tree& tree, Arena& arena, const Input& in,
                                                                              Put put) {
  for (int k = 0; k < in.wrenches; ++k) put(in.wrench[k].body, in.wrench[k].in_body());
  if (tree.springs > 0) springs_on_bodies(tree, arena, in.q, in.v, put);
}

template <class T> T spring_energy(const Tree& tree, const Kinematics<T>& k) {
  T U = T(0.0);
  for (int i = 0; i < tree.springs; ++i) {
    const T stretch = spring_force(tree.spring[i], k).stretch;
    U += T(0.5 * tree.spring[i].stiffness) * stretch * stretch;
  }
  return U;
}

}  // namespace sarrus
