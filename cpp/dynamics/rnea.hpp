// tau = M(q) a + h(q, v): recursive Newton-Euler. van der Merwe 4.27-4.32 with the bias of 4.28 corrected; [RBDA] Table 5.1.
//
// Accelerations are classical, so that no linear velocity is needed, and each body's rotation is one Cartesian tensor, Omega = skew(w') + skew(w)^2
// (thesis ch. 3): a point at r of the body accelerates by a + Omega r, and with the Euler tensor J = int r r^T dm (3.29) the moment required by the
// motion is the axial vector of Omega J - (Omega J)^T.
//
//   reads   q (nq), v, a (nv), motion of the ground, wrenches     writes  tau (nv) [N m or N]
//   work    per body, in its own frame; the ground has the acceleration -g, so that every body's weight is included
//   cost    O(bodies)
#pragma once

#include "between_bodies.hpp"

namespace sarrus {

template <class T> struct RneaLink {
  Transform<T> X;  // pose in the parent
  Vec3<T> w, dw, a;  // angular velocity and angular acceleration of the body, classical acceleration of its origin
  Mat3<T> Omega;
  Force<T> f;  // force that the body's motion requires; after the inward pass, force that its joint transmits (4.30)

  SARRUS_INLINE void set_omega() {
    const T xx = w(0) * w(0), yy = w(1) * w(1), zz = w(2) * w(2), xy = w(0) * w(1), xz = w(0) * w(2), yz = w(1) * w(2);
    Omega(0, 0) = -(yy + zz), Omega(0, 1) = xy - dw(2), Omega(0, 2) = xz + dw(1);
    Omega(1, 0) = xy + dw(2), Omega(1, 1) = -(xx + zz), Omega(1, 2) = yz - dw(0);
    Omega(2, 0) = xz - dw(1), Omega(2, 1) = yz + dw(0), Omega(2, 2) = -(xx + yy);
  }
};

template <class T> struct RneaInput {
  const T *q, *v, *a;
  GroundMotion<T> ground = {};
  int wrenches = 0;
  const ExternalWrench<T>* wrench = nullptr;
};

/// Results of the recursion: each body's motion and transmitted force, in its own frame at its origin.
template <class T> struct RneaWork {
  RneaLink<T>* link;
  Motion<T>* columns;  // columns of the joints that visit() does not inline

  Poses<T> poses() const { return {&link->X, sizeof(RneaLink<T>)}; }
};

template <class T> SARRUS_NOINLINE RneaWork<T> rnea(const Tree& tree, Arena& arena, const RneaInput<T>& in, T* tau) {
  RneaLink<T>* work = arena.take<RneaLink<T>>(tree.links);
  Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
  const JointCoordinates<T> coordinates(tree, arena, in.q);
  const auto numbers = tree.numbers<T>();

  RneaLink<T>& ground = work[0];
  ground.w = ground.dw = zero3<T>();
  ground.a = -numbers(tree.gravity);
  if (in.ground.velocity) ground.w = load_motion(in.ground.velocity).angular;
  if (in.ground.acceleration) {
    const Motion<T> A = load_motion(in.ground.acceleration);
    ground.dw = A.angular, ground.a += A.linear;
  }
  ground.set_omega();
  ground.f = Force<T>::zero();

  // outward pass: motion, and the force that it requires (4.27-4.29)
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    RneaLink<T>& link = work[i];
    const RneaLink<T>& parent = work[b.parent];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto J = joint.evaluate(b.joint, coordinates.of(b), in.v + b.iv, columns + b.iv);
      const Motion<T> V = J.S * (in.v + b.iv), A = J.S * (in.a + b.iv) + J.bias;
      link.X = numbers(b.X_tree) * J.X;
      const Vec3<T> w = transpose_times(link.X.R, parent.w);
      link.w = w + V.angular;
      link.dw = transpose_times(link.X.R, parent.dw) + cross(w, V.angular) + A.angular;
      link.a = transpose_times(link.X.R, Vec3<T>(parent.a + parent.Omega * link.X.p)) +
               cross(Vec3<T>(w * T(2.0) + V.angular), V.linear) + A.linear;
    });
    link.set_omega();
    const Vec3<T> h = numbers(b.inertia.h);
    const Mat3<T> OJ = link.Omega * numbers(b.euler).matrix();
    link.f.linear = link.a * numbers(b.inertia.m) + link.Omega * h;
    link.f.angular = vec3<T>(OJ(2, 1) - OJ(1, 2), OJ(0, 2) - OJ(2, 0), OJ(1, 0) - OJ(0, 1)) + cross(h, link.a);
  }

  external_forces<T>(tree, arena, in, in.a, [work](int link, const Force<T>& push) SARRUS_INLINED { work[link].f -= push; });

  // inward pass: each joint transmits the force that its subtree requires (4.30, 4.31)
  for (int i = tree.links - 1; i > 0; --i) {
    const Link& b = tree.link[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED { joint.subspace(columns + b.iv).project(work[i].f, tau + b.iv); });
    work[b.parent].f += work[i].X.to_parent(work[i].f);
  }

  if (tree.has_armature)
    for (int k = 0; k < tree.nv; ++k) tau[k] += numbers(tree.passive[k].armature) * in.a[k];
  if (tree.has_joint_forces) add_joint_forces(tree, in.q, in.v, T(1.0), tau);
  return {work, columns};
}

}  // namespace sarrus
