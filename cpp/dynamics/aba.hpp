// a = M(q)^-1 (tau - h(q, v)): articulated bodies. Featherstone, [RBDA] Table 7.1, with classical accelerations: the force of a
// body is I A + p with p = [w x I w; w x (w x h)] (van der Merwe 4.21), so that linear velocities are not needed.
//
//   reads   q (nq), v, tau (nv), wrenches     writes  a (nv)
//   work    per body, in its own frame: articulated inertia and bias force of its subtree, and the results of its joint
//   cost    O(bodies); accelerations under other forces in the same configuration cost a quarter of that
//
// If a subtree has no inertia along a joint, the result is not finite, and the caller reports the error.
#pragma once

#include "../spatial/symmetric.hpp"
#include "between_bodies.hpp"

namespace sarrus {

template <class T> struct AbaLink {
  Transform<T> X;  // pose in the parent
  Vec3<T> w;
  Motion<T> c;  // acceleration A of this body if A of its parent and the joint's acceleration a are zero
  ArticulatedInertia<T> I;
  Force<T> p;
  Motion<T> A;
};

/// Data stored per velocity between the inward and the outward pass: U = I S, the inverse of D = S^T U + armature, and u = tau -
/// S^T p. The inverse has rows of 6.
template <class T> struct AbaJoints {
  Force<T>* U;
  T *D_inverse, *u;
};

template <class T> struct AbaInput {
  const T *q, *v, *tau;
  int wrenches = 0;
  const ExternalWrench<T>* wrench = nullptr;
};

/// Factors of aba() that remain in the arena, so that accelerations under other forces can be computed in the same configuration.
template <class T> struct AbaWork {
  AbaLink<T>* link;
  Motion<T>* columns;
  AbaJoints<T> joints;
};

/// Outward pass. Call after A of the ground is set. moved(link, A of its parent) returns A of the link for zero acceleration of its joint.
template <class T, class Moved> SARRUS_INLINE void accelerate_outward(const Tree& tree, const AbaWork<T>& work, T* a,
                                                                      Moved moved) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    AbaLink<T>& link = work.link[i];
    const Motion<T> A = moved(link, link.X.to_child(work.link[b.parent].A));
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      T u[decltype(joint)::most];
      for (int k = 0; k < joint.nv; ++k) u[k] = work.joints.u[b.iv + k] - dot(A, work.joints.U[b.iv + k]);
      for (int k = 0; k < joint.nv; ++k) a[b.iv + k] = dot(joint.nv, work.joints.D_inverse + 6 * (b.iv + k), u);
      link.A = A + joint.subspace(work.columns + b.iv) * (a + b.iv);
    });
  }
}

template <class T> SARRUS_NOINLINE AbaWork<T> aba(const Tree& tree, Arena& arena, const AbaInput<T>& in, T* a) {
  AbaLink<T>* work = arena.take<AbaLink<T>>(tree.links);
  Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
  const AbaJoints<T> joints = {arena.take<Force<T>>(tree.nv), arena.take<T>(6 * tree.nv), arena.take<T>(tree.nv)};
  const JointCoordinates<T> coordinates(tree, arena, in.q);
  const auto numbers = tree.numbers<T>();

  const T* tau = in.tau;
  if (tree.has_joint_forces) {
    T* net = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) net[k] = in.tau[k];
    add_joint_forces(tree, in.q, in.v, T(-1.0), net);
    tau = net;
  }

  AbaLink<T>& ground = work[0];
  ground.w = zero3<T>();
  ground.A = {zero3<T>(), -numbers(tree.gravity)};
  ground.p = Force<T>::zero();

  // outward pass: velocities, and the bias accelerations and bias forces that result from them
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    AbaLink<T>& link = work[i];
    const AbaLink<T>& parent = work[b.parent];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto J = joint.evaluate(b.joint, coordinates.of(b), in.v + b.iv, columns + b.iv);
      const Motion<T> V = J.S * (in.v + b.iv);
      link.X = numbers(b.X_tree) * J.X;
      const Vec3<T> w = transpose_times(link.X.R, parent.w);
      link.w = w + V.angular;
      link.c.angular = cross(w, V.angular) + J.bias.angular;
      link.c.linear = transpose_times(link.X.R, cross(parent.w, cross(parent.w, link.X.p))) +
                      cross(Vec3<T>(w * T(2.0) + V.angular), V.linear) + J.bias.linear;
    });
    link.p = numbers(b.inertia).gyroscopic(link.w);
  }
  external_forces<T>(tree, arena, in, static_cast<const T*>(nullptr),
                     [work](int link, const Force<T>& push) SARRUS_INLINED { work[link].p -= push; });

  // inward pass: each joint transmits to its parent the force that does not accelerate the joint itself
  for (int i = tree.links - 1; i > 0; --i) {
    const Link& b = tree.link[i];
    AbaLink<T>& link = work[i];
    if (b.end == i + 1) link.I = ArticulatedInertia<T>::rigid(numbers(b.inertia));  // the link has no children
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      constexpr int most = decltype(joint)::most;
      const int N = joint.nv;
      const auto S = joint.subspace(columns + b.iv);
      Force<T>* U = joints.U + b.iv;
      T D[most][most], size[most], *D_inverse = joints.D_inverse + 6 * b.iv, *u = joints.u + b.iv;
      S.project(link.p, u);
      for (int k = 0; k < N; ++k) {
        U[k] = link.I * S.column[k];
        u[k] = tau[b.iv + k] - u[k];
      }
      for (int k = 0; k < N; ++k) {
        for (int l = 0; l <= k; ++l) D[k][l] = dot(S.column[k], U[l]);
        D[k][k] += numbers(tree.passive[b.iv + k].armature);
        size[k] = link.I.size_along(S.column[k]);
      }
      invert_symmetric(N, D, size, D_inverse);
      if (b.parent == 0) return;  // loads on the ground are not needed

      // the joint transmits the inertia I - U D^-1 U^T and the force p + I c + U D^-1 u
      ArticulatedInertia<T> I = link.I;
      Force<T> p = link.p;
      for (int k = 0; k < N; ++k) {
        Force<T> UD = U[0] * D_inverse[k];
        for (int l = 1; l < N; ++l) UD += U[l] * D_inverse[6 * l + k];
        I.subtract_product(UD, U[k]);
        p += U[k] * dot(N, D_inverse + 6 * k, u);
      }
      if (!tree.has_armature) joint.clear_transmitted(I);
      p += I * link.c;

      // the last child of a parent is visited first and sets the parent's inertia; the other children add their inertias to this value
      const Link& parent = tree.link[b.parent];
      ArticulatedInertia<T> inertia = transformed(link.X, I);
      if (b.end == parent.end)
        inertia += ArticulatedInertia<T>::rigid(numbers(parent.inertia));
      else
        inertia += work[b.parent].I;
      work[b.parent].I = inertia;
      work[b.parent].p += link.X.to_parent(p);
    });
  }

  const AbaWork<T> kept = {work, columns, joints};
  accelerate_outward(tree, kept, a, [](const AbaLink<T>& link, const Motion<T>& A) SARRUS_INLINED { return A + link.c; });
  return kept;
}

/// Compute a = M^-1 tau after aba(), by passes for forces only: zero velocities, no gravity. Overwrites u and A of aba().
template <class T> SARRUS_NOINLINE void accelerate_from_rest(const Tree& tree, Arena& arena, const AbaWork<T>& work, const T* tau,
                                                             T* a) {
  const Arena::Scope scope(arena);
  Force<T>* p = arena.take<Force<T>>(tree.links);
  for (int i = 0; i < tree.links; ++i) p[i] = Force<T>::zero();
  for (int i = tree.links - 1; i > 0; --i) {
    const Link& b = tree.link[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      T* u = work.joints.u + b.iv;
      joint.subspace(work.columns + b.iv).project(p[i], u);
      for (int k = 0; k < joint.nv; ++k) u[k] = tau[b.iv + k] - u[k];
      if (b.parent == 0) return;
      for (int k = 0; k < joint.nv; ++k)
        p[i] += work.joints.U[b.iv + k] * dot(joint.nv, work.joints.D_inverse + 6 * (b.iv + k), u);
      p[b.parent] += work.link[i].X.to_parent(p[i]);
    });
  }
  work.link[0].A = Motion<T>::zero();
  accelerate_outward(tree, work, a, [](const AbaLink<T>&, const Motion<T>& A) SARRUS_INLINED { return A; });
}

}  // namespace sarrus
