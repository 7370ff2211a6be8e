// Loads of every joint in a motion, from the Newton-Euler equations of each body with the constraint forces of the loops: van der Merwe 4.23, 4.30
// with 5.22. Loop joints and tree joints are treated alike, so the result does not depend on the spanning tree.
//
//   reads   multipliers (rows) of the loops; efforts (loop_nv) of motors, or other forces, along loop joints
//   writes  wrenches on the children of joints [moment; force], in the joints' frames there: first of each body's own joint,
//           in the order of bodies in the description, then of the constraints
#pragma once

#include "../dynamics/bodies.hpp"
#include "answers.hpp"
#include "loop_joints.hpp"

namespace sarrus {

/// Compute the wrench of efforts along the motion of loop joint i: on its child, at the origin and in the axes of its frame on the child.
template <class T>
Force<T> effort_wrench(const Tree& tree, Arena& arena, const LoopState<T>& state, int i, const T* efforts) {
  const Arena::Scope scope(arena);
  const LoopMotion& joint = tree.loop_motion[i];
  const T near[7] = {T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
  RelativeMotion<T> m;
  Columns<T> columns;
  relative_motion(tree, arena, state, tree.loops.motion[i], m, columns, true, static_cast<const T*>(nullptr));
  ReadJoint<T> read;
  read_joint(joint.joint, joint.nv, {&joint.constants, state.numbers}, m.X, m.V, near, read);
  Force<T> f = Force<T>::zero();
  for (int k = 0; k < joint.nv; ++k) f += read.psi[k] * efforts[joint.iv + k];
  return f;
}

/// Compute the wrenches of the efforts along all loop joints, in the axes of their frames in the user's description; zero for other constraints.
template <class T>
void effort_wrenches(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* efforts, T* out) {
  for (int i = 0; i < 6 * tree.loops.constraints; ++i) out[i] = T(0.0);
  for (int i = 0; i < tree.loop_motions; ++i) {
    const LoopMotion& joint = tree.loop_motion[i];
    const Force<T> f = effort_wrench(tree, arena, state, i, efforts);
    const Mat3<T> R = state.numbers(tree.loops.constraint[joint.constraint].R_described);
    store(Force<T>{R * f.angular, R * f.linear}, out + 6 * joint.constraint);
  }
}

template <class T>
void joint_loads(const Tree& tree, Arena& arena, const Kinematics<T>& k, const LoopState<T>& state, int wrenches,
                 const ExternalWrench<T>* wrench, const T* multipliers, const T* efforts, T* out) {
  const Loops& loops = tree.loops;
  // wrench of each constraint: of its multipliers and efforts, still without friction, springs and armature
  Force<T>* across = arena.take<Force<T>>(loops.constraints);
  for (int i = 0; i < loops.constraints; ++i) across[i] = constraint_wrench(tree, arena, state, loops.constraint[i], multipliers);
  for (int i = 0; i < tree.loop_motions; ++i)
    across[tree.loop_motion[i].constraint] += effort_wrench(tree, arena, state, i, efforts);
  const auto on_loops = [&](const auto& put) {
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      if (c.child < 0) continue;
      const Transform<T> X = state.X[c.child] * state.numbers(c.X_child);
      const Force<T> world = {X.R * across[i].angular, X.R * across[i].linear};
      put(c.child, c.body[1], world, X.p);
      put(c.parent, c.body[0], world * T(-1.0), X.p);
    }
  };
  const BodyForces<T> bodies = transmitted_by_bodies(tree, arena, k, wrenches, wrench, on_loops);
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& body = tree.body[i];
    const Transform<T> X = k.link[body.child_link].X * state.numbers(body.X_child());
    const T sign = T(body.reversed ? -1.0 : 1.0);
    const Vec3<T> F = bodies.f[i].linear * sign;
    const Vec3<T> N = bodies.f[i].angular * sign + cross(Vec3<T>(bodies.joint[i] - X.p), F);
    store(Force<T>{transpose_times(X.R, N), transpose_times(X.R, F)}, out + 6 * body.described);
  }
  T* constraint_loads = out + 6 * (tree.bodies - 1);
  loop_joint_wrenches(tree, k, constraint_loads);
  for (int i = 0; i < loops.constraints; ++i) {
    const Mat3<T> R = state.numbers(loops.constraint[i].R_described);
    T described[6];
    store(Force<T>{R * across[i].angular, R * across[i].linear}, described);
    for (int j = 0; j < 6; ++j) constraint_loads[6 * i + j] += described[j];
  }
}

}  // namespace sarrus
