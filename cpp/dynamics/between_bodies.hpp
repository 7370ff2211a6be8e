// Forces between two bodies, other than those of tree joints.
//
//   springs    with dampers, between two points: the force k (l - l0) + c l-dot, and its nonlinear terms, pull along the line through the points
//   joints     friction, springs and armature along loop joints, with the same force law as for joints of the tree (joint_force)
//
// The coordinates and velocities of a loop joint follow from the relative motion of its frames, so its angle is known up to whole revolutions. Its
// springs use the angle nearest to their rest angle. Simulations count revolutions, and evaluate these springs themselves (simulation/turns.hpp).
#pragma once

#include "../joints/closing.hpp"
#include "../simd/tolerance.hpp"
#include "kinematics.hpp"

namespace sarrus {

/// A spring in the world: its two end points, and the force on the first; the force on the second is opposite.
template <class T> struct SpringForce {
  Vec3<T> end[2], pull;
  T stretch, rate;  // difference of the length from the rest length, and its rate
};

template <class T> SpringForce<T> spring_force(const PointSpring& s, const NumbersOf<T>& numbers, const Kinematics<T>& k) {
  SpringForce<T> f;
  Vec3<T> u[2];
  for (int i = 0; i < 2; ++i) {
    const LinkMotion<T>& b = k.link[s.link[i]];
    const Vec3<T> arm = b.X.R * numbers(s.point[i]);
    f.end[i] = b.X.p + arm;
    u[i] = b.V.linear + cross(b.V.angular, arm);
  }
  const Vec3<T> d = f.end[1] - f.end[0];
  const T length = sqrt(dot(d, d) + T(1e-300));  // the constant avoids a division by zero; a spring of length zero has no force
  f.stretch = length - numbers(s.rest_length);
  f.rate = dot(d, Vec3<T>(u[1] - u[0])) / length;
  const T nonlinear = nonlinear_force(s.nonlinear, numbers, {f.stretch, f.stretch}, f.rate);
  f.pull = d * ((numbers(s.stiffness) * f.stretch + numbers(s.damping) * f.rate + nonlinear) / length);
  return f;
}

/// Motion of the child's frame relative to the parent's, in the child's axes: velocity V, and A, the time derivative of V in these axes.
template <class T> struct LoopJointMotion {
  Transform<T> X, child;  // pose of the child's frame, in the parent's frame and in the world
  Motion<T> V, A;
  Motion<T> size;  // magnitude of the terms of V
};

template <class T>
LoopJointMotion<T> loop_joint_motion(const LoopMotion& joint, const NumbersOf<T>& numbers, const Kinematics<T>& k) {
  const LinkMotion<T>&parent = k.link[joint.link[0]], &child = k.link[joint.link[1]];
  const Transform<T> X_parent = parent.X * numbers(joint.X[0]);
  LoopJointMotion<T> m;
  m.child = child.X * numbers(joint.X[1]);
  const Mat3<T>& R = m.child.R;
  m.X = {Mat3<T>(X_parent.R.transpose()) * R, transpose_times(X_parent.R, Vec3<T>(m.child.p - X_parent.p))};
  // velocities of the points of the two bodies that coincide with the child's origin
  const auto at = [&](const LinkMotion<T>& b, Motion<T>& V, Motion<T>& A) {
    const Vec3<T> r = m.child.p - b.X.p, &w = b.V.angular;
    V = {transpose_times(R, w), transpose_times(R, Vec3<T>(b.V.linear + cross(w, r)))};
    A = {transpose_times(R, b.A.angular),
         transpose_times(R, Vec3<T>(b.A.linear + cross(b.A.angular, r) + cross(w, cross(w, r))))};
  };
  Motion<T> V_parent, A_parent, V_child, A_child;
  at(parent, V_parent, A_parent), at(child, V_child, A_child);
  m.V = V_child + V_parent * T(-1.0);
  m.A.angular = A_child.angular - A_parent.angular + cross(V_child.angular, V_parent.angular);
  m.A.linear = A_child.linear - A_parent.linear - cross(Vec3<T>(V_child.angular + V_parent.angular), m.V.linear);
  for (int i = 0; i < 3; ++i) {
    m.size.angular(i) = abs(V_child.angular(i)) + abs(V_parent.angular(i));
    m.size.linear(i) = abs(V_child.linear(i)) + abs(V_parent.linear(i));
  }
  return m;
}

/// Compute coordinates and velocities of a loop joint. Among angles that differ by whole revolutions, the one nearest to the spring's rest angle is
/// used.
template <class T>
void read_relaxed(const LoopMotion& joint, const NumbersOf<T>& numbers, const LoopJointMotion<T>& m, ReadJoint<T>& read) {
  T rest[7];
  for (int i = 0; i < 7; ++i) rest[i] = i < joint.nv ? numbers(joint.terms[i].rest) : T(0.0);
  read_joint(joint.joint, joint.nv, {&joint.constants, numbers}, m.X, m.V, rest, read);
}
template <class T> BallDeflection<T> ball_spring(const LoopMotion& joint, const ReadJoint<T>& read) {
  return has_ball_spring(joint.joint) ? BallDeflection<T>(log(Quaternion<T>::load(read.q))) : BallDeflection<T>();
}

/// Compute the force of friction, springs and armature on the child, at the origin and in the axes of its frame. `dry`: include Coulomb friction.
template <class T>
Force<T> loop_joint_force(const LoopMotion& joint, const NumbersOf<T>& numbers, const LoopJointMotion<T>& m, bool dry) {
  ReadJoint<T> read;
  read_relaxed(joint, numbers, m, read);
  const BallDeflection<T> ball = ball_spring(joint, read);
  Force<T> f = Force<T>::zero();
  for (int i = 0; i < joint.nv; ++i) {
    const Force<T>& psi = read.psi[i];
    T size = T(0.0);
    for (int j = 0; j < 3; ++j) size += abs(psi.angular(j)) * m.size.angular(j) + abs(psi.linear(j)) * m.size.linear(j);
    const PassiveTerms& terms = joint.terms[i];
    const Deflection<T> by = deflection(terms, numbers, read.q, ball, i);
    T needed = smooth_joint_force(terms, numbers, read.v[i], by) + nonlinear_force(terms.nonlinear, numbers, by, read.v[i]) +
               numbers(terms.armature) * (dot(m.A, psi) - dot(read.bias, psi));
    if (dry) {  // velocities at the rounding level of the difference count as rest
      const T rest = size * tolerance<T>(1e-14, 5e-6);
      needed += numbers(terms.friction) * select(abs(read.v[i]) > rest, sign(read.v[i]), T(0.0));
    }
    f -= psi * needed;
  }
  return f;
}

/// Call put(link, body, wrench in world axes about the point p, p) for both ends of a spring or a loop joint.
template <class T, class Put>
SARRUS_INLINE void put_forces(const PointSpring& s, const NumbersOf<T>& numbers, const Kinematics<T>& k, Put put) {
  const SpringForce<T> f = spring_force(s, numbers, k);
  put(s.link[0], s.body[0], Force<T>{zero3<T>(), f.pull}, f.end[0]);
  put(s.link[1], s.body[1], Force<T>{zero3<T>(), Vec3<T>(-f.pull)}, f.end[1]);
}
template <class T, class Put>
SARRUS_INLINE void put_forces(const LoopMotion& joint, const NumbersOf<T>& numbers, const Kinematics<T>& k, Put put, bool dry) {
  if (!joint.has_forces && !joint.has_armature) return;
  const LoopJointMotion<T> m = loop_joint_motion(joint, numbers, k);
  const Force<T> f = loop_joint_force(joint, numbers, m, dry);
  const Force<T> world = {m.child.R * f.angular, m.child.R * f.linear};
  put(joint.link[1], joint.body[1], world, m.child.p);
  put(joint.link[0], joint.body[0], world * T(-1.0), m.child.p);
}

/// Call `put` for both ends of all springs and loop joints.
template <class T, class Put> void each_force_between(const Tree& tree, const Kinematics<T>& k, Put put, bool dry = true) {
  const auto numbers = tree.numbers<T>();
  for (int i = 0; i < tree.springs; ++i) put_forces(tree.spring[i], numbers, k, put);
  for (int i = 0; i < tree.loop_motions; ++i) put_forces(tree.loop_motion[i], numbers, k, put, dry);
}

/// Call put(link, wrench at the link's origin in its axes) for all these forces, in recursions without world poses. A null `a` means zero
/// accelerations.
template <class T, class Put>
SARRUS_NOINLINE void forces_between_bodies(const Tree& tree, Arena& arena, const T* q, const T* v, const T* a, Put put) {
  const Kinematics<T> k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, q, v, a, k);
  each_force_between(tree, k, [&](int link, int, const Force<T>& f, const Vec3<T>& p) {
    const Transform<T>& X = k.link[link].X;
    put(link,
        Force<T>{transpose_times(X.R, Vec3<T>(f.angular + cross(Vec3<T>(p - X.p), f.linear))), transpose_times(X.R, f.linear)});
  });
}

/// Call put(link, wrench at the link's origin in its axes) for all forces on the bodies except those of tree joints. `in` is the input of a
/// recursion.
template <class T, class Input, class Put>
SARRUS_INLINE void external_forces(const Tree& tree, Arena& arena, const Input& in, const T* a, Put put) {
  for (int k = 0; k < in.wrenches; ++k) put(in.wrench[k].link, in.wrench[k].in_link());
  if (tree.ties_links) forces_between_bodies(tree, arena, in.q, in.v, a, put);
}

/// Return the power [W] that the dampers of springs and of loop joints take from a motion. Their forces are those in the state `k`; `motion` has the
/// velocities of the motion.
template <class T> T damped_between_bodies(const Tree& tree, const Kinematics<T>& k, const Kinematics<T>& motion) {
  const auto numbers = tree.numbers<T>();
  T power = T(0.0);
  for (int i = 0; i < tree.springs; ++i) {
    const PointSpring& s = tree.spring[i];
    const T rate = spring_force(s, numbers, k).rate;
    power += (numbers(s.damping) * rate + nonlinear_damper(s.nonlinear, numbers, rate)) * spring_force(s, numbers, motion).rate;
  }
  for (int i = 0; i < tree.loop_motions; ++i) {
    const LoopMotion& joint = tree.loop_motion[i];
    if (!joint.has_forces) continue;
    ReadJoint<T> read, moved;
    read_relaxed(joint, numbers, loop_joint_motion(joint, numbers, k), read);
    read_relaxed(joint, numbers, loop_joint_motion(joint, numbers, motion), moved);
    for (int l = 0; l < joint.nv; ++l) {
      const PassiveTerms& f = joint.terms[l];
      power += (numbers(f.damping) * read.v[l] + nonlinear_damper(f.nonlinear, numbers, read.v[l])) * moved.v[l];
    }
  }
  return power;
}

template <class T> T spring_energy(const Tree& tree, const Kinematics<T>& k) {
  const auto numbers = tree.numbers<T>();
  T U = T(0.0);
  for (int i = 0; i < tree.springs; ++i) {
    const PointSpring& s = tree.spring[i];
    const T stretch = spring_force(s, numbers, k).stretch;
    U += T(0.5) * numbers(s.stiffness) * stretch * stretch + nonlinear_energy(s.nonlinear, numbers, {stretch, stretch});
  }
  for (int i = 0; i < tree.loop_motions; ++i) {
    const LoopMotion& joint = tree.loop_motion[i];
    if (!joint.has_forces) continue;
    ReadJoint<T> read;
    read_relaxed(joint, numbers, loop_joint_motion(joint, numbers, k), read);
    const BallDeflection<T> ball = ball_spring(joint, read);
    for (int l = 0; l < joint.nv; ++l)
      U += joint_energy(joint.terms[l], numbers, deflection(joint.terms[l], numbers, read.q, ball, l));
  }
  return U;
}

/// Add J_m^T A J_m of the loop joints, with armatures A, to M (nv x nv). If v is not null, add J_m^T A J_m-dot instead; its product with v is the
/// contribution of the loop joints to the bias forces.
template <class T> SARRUS_NOINLINE void add_loop_armature(const Tree& tree, Arena& arena, const T* q, const T* v, T* M) {
  const Kinematics<T> k = Kinematics<T>::over(tree, arena.take<T>(Kinematics<T>::size(tree)));
  kinematics(tree, arena, q, v, static_cast<const T*>(nullptr), k);
  const int n = tree.nv;
  const auto numbers = tree.numbers<T>();
  T *J = arena.take<T>(6 * n), *J_dot = arena.take<T>(6 * n);
  for (int i = 0; i < tree.loop_motions; ++i) {
    const LoopMotion& joint = tree.loop_motion[i];
    if (!joint.has_armature) continue;
    const LoopJointMotion<T> m = loop_joint_motion(joint, numbers, k);
    ReadJoint<T> read;
    read.rates = true;
    read_relaxed(joint, numbers, m, read);
    for (int r = 0; r < 6 * n; ++r) J[r] = J_dot[r] = T(0.0);
    const Mat3<T>& R = m.child.R;
    const LinkMotion<T>& child = k.link[joint.link[1]];
    const Vec3<T>& w = child.V.angular;
    const Vec3<T> u = child.V.linear + cross(w, Vec3<T>(m.child.p - child.X.p));
    for (const int end : {0, 1})
      for (int b = joint.link[end]; b > 0; b = tree.link[b].parent) {
        const Vec3<T> arm = m.child.p - k.link[b].X.p, arm_dot = u - k.link[b].V.linear;
        for (int c = tree.link[b].iv; c < tree.link[b].iv + tree.link[b].nv; ++c) {
          const Motion<T>&s = k.column[c], &d = k.column_dot[c];
          const Vec3<T> along = s.linear + cross(s.angular, arm);
          const Motion<T> column = in_axes(R, Motion<T>{s.angular, along});
          const Vec3<T> turn_dot = d.angular - cross(w, s.angular);
          const Vec3<T> along_dot = d.linear + cross(d.angular, arm) + cross(s.angular, arm_dot) - cross(w, along);
          const Motion<T> rate = in_axes(R, Motion<T>{turn_dot, along_dot});
          const T sign = T(end ? 1.0 : -1.0);
          for (int r = 0; r < joint.nv; ++r) {
            J[r * n + c] += sign * dot(column, read.psi[r]);
            J_dot[r * n + c] += sign * (dot(rate, read.psi[r]) + dot(column, read.psi_rate[r]));
          }
        }
      }
    const T* right = v ? J_dot : J;
    for (int r = 0; r < joint.nv; ++r)
      for (int c = 0; c < n; ++c)
        for (int l = 0; l < n; ++l) M[c * n + l] += J[r * n + c] * numbers(joint.terms[r].armature) * right[r * n + l];
  }
}

/// Return the kinetic energy 1/2 A v^2 of the armature of loop joints.
template <class T> T loop_armature_energy(const Tree& tree, const Kinematics<T>& k) {
  const auto numbers = tree.numbers<T>();
  T twice = T(0.0);
  for (int i = 0; i < tree.loop_motions; ++i) {
    const LoopMotion& joint = tree.loop_motion[i];
    if (!joint.has_armature) continue;
    ReadJoint<T> read;
    read_relaxed(joint, numbers, loop_joint_motion(joint, numbers, k), read);
    for (int l = 0; l < joint.nv; ++l) twice += numbers(joint.terms[l].armature) * read.v[l] * read.v[l];
  }
  return T(0.5) * twice;
}

}  // namespace sarrus
