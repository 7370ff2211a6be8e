// Kinematics of all links in uniform motion (glide.hpp), without the rates of the columns. The code of frequent joints is inlined.
#pragma once

#include "../dynamics/kinematics.hpp"
#include "../joints/visit.hpp"
#include "glide.hpp"

namespace sarrus {

/// Compute poses, velocities, accelerations in uniform motion, and columns, as kinematics() does; `column_dot` is not set.
inline Kinematics<double> uniform_links(const Tree& tree, Arena& arena, const double* q, const double* v) {
  const Kinematics<double> out = Kinematics<double>::over(tree, arena.take<double>(Kinematics<double>::size(tree)));
  const Arena::Scope scope(arena);
  const JointCoordinates<double> coordinates(tree, arena, q);
  double* a = arena.take<double>(tree.nv);
  Motion<double>* stored = arena.take<Motion<double>>(tree.nv);
  uniform_motion<double>(tree, v, a);
  out.link[0] = {Transform<double>::identity(), Motion<double>::zero(), Motion<double>::zero()};
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const LinkMotion<double>& parent = out.link[b.parent];
    LinkMotion<double>& link = out.link[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto J = joint.evaluate(b.joint, coordinates.of(b), v + b.iv, stored + b.iv);
      const Transform<double> X = b.X_tree * J.X;
      link.X = b.parent == 0 ? X : parent.X * X;
      const Mat3<double>& R = link.X.R;
      for (int k = 0; k < joint.nv; ++k) out.column[b.iv + k] = turned(R, J.S.column[k]);
      // velocity and acceleration that the joint adds
      const Motion<double> V = turned(R, J.S * (v + b.iv)), A = turned(R, J.S * (a + b.iv) + J.bias);
      const Vec3<double> r = link.X.p - parent.X.p, &w = parent.V.angular, turn = cross(w, r);
      link.V = Motion<double>{w, parent.V.linear + turn} + V;
      link.A.angular = parent.A.angular + cross(w, V.angular) + A.angular;
      link.A.linear = parent.A.linear + cross(parent.A.angular, r) + cross(w, turn) +
                      cross(Vec3<double>(w * 2.0 + V.angular), V.linear) + A.linear;
    });
  }
  return out;
}

}  // namespace sarrus
