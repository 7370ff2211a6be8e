// a = M(q)^-1 (tau - h(q, v)): articulated bodies. Featherstone, [RBDA] Table 7.1, with classical accelerations: the force of a
// body is I A + p with p = [w x I w; w x (w x h)] (van der Merwe 4.21), so that linear velocities are not needed.
//
//   reads   q (nq), v, tau (nv), wrenches     writes  a (nv)
//   work    per body, in its own frame: articulated inertia and bias force of its subtree, and what its joint made of them
//   cost    O(bodies); where a subtree has no inertia along a joint the result is not finite, and the caller says so
#pragma once

#include "springs.hpp"

namespace sarrus {

template <class T> struct AbaBody {
  Transform<T> X;
  Vec3<T> w;
  Motion<T> c;  // acceleration of this body when its parent's A and the joint's a are zero
  ArticulatedInertia<T> I;
  Force<T> p;
  Motion<T> A;
};

/// U = I S, the inverse of S^T U (plus armature), and u: kept per joint from the inward to the outward pass.
template <class T> struct AbaJoint {
  Force<T>* U;     // nv columns
  T* D_inverse;    // nv x 6, rows of a joint's block
  T* u;            // nv
};

/// The inverse of a symmetric positive definite N x N matrix by L D L^T, without pivots or branches. `scale` is the size of what D was
/// made of: an entry that is only its rounding counts as zero, and the inverse is then not finite.
template <class T, int most> SARRUS_INLINE void invert_symmetric(int N, T (&D)[most][most], const T (&scale)[most], T* inverse) {
  if constexpr (most == 1) {
    inverse[0] = T(1.0) / unless_rounding(D[0][0], scale[0]);
  } else {
    T L[most][most], d_inverse[most];
    for (int j = 0; j < N; ++j) {
      T d = D[j][j];
      for (int k = 0; k < j; ++k) d -= L[j][k] * L[j][k] * D[k][k];
      D[j][j] = d, d_inverse[j] = T(1.0) / unless_rounding(d, scale[j]);
      for (int i = j + 1; i < N; ++i) {
        T s = D[i][j];
        for (int k = 0; k < j; ++k) s -= L[i][k] * L[j][k] * D[k][k];
        L[i][j] = s * d_inverse[j];
      }
    }
    for (int c = 0; c < N; ++c) {
      T x[most];
      for (int i = 0; i < N; ++i) {
        x[i] = T(i == c ? 1.0 : 0.0);
        for (int k = 0; k < i; ++k) x[i] -= L[i][k] * x[k];
      }
      for (int i = N - 1; i >= 0; --i) {
        x[i] *= d_inverse[i];
        for (int k = i + 1; k < N; ++k) x[i] -= L[k][i] * x[k];
      }
      for (int i = 0; i < N; ++i) inverse[6 * i + c] = x[i];
    }
  }
}

template <class T> struct AbaInput {
  const T *q, *v, *tau;
  int wrenches = 0;
  const ExternalWrench<T>* wrench = nullptr;
};

template <class T> SARRUS_NOINLINE void aba(const Tree& tree, Arena& arena, const AbaInput<T>& in, T* a) {
  AbaBody<T>* work = arena.take<AbaBody<T>>(tree.bodies);
  Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
  const AbaJoint<T> kept = {arena.take<Force<T>>(tree.nv), arena.take<T>(6 * tree.nv), arena.take<T>(tree.nv)};
  const JointCoordinates<T> coordinates(tree, arena, in.q);

  const T* tau = in.tau;
  if (tree.has_joint_forces) {
    T* net = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) net[k] = in.tau[k];
    add_joint_forces(tree, in.q, in.v, T(-1.0), net);
    tau = net;
  }

  AbaBody<T>& ground = work[0];
  ground.w = zero3<T>();
  ground.A = {zero3<T>(), -cast<T>(tree.gravity)};
  ground.p = Force<T>::zero();

  // outward: velocities, and the bias accelerations and forces that come with them
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& b = tree.body[i];
    AbaBody<T>& me = work[i];
    const AbaBody<T>& parent = work[b.parent];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto J = joint.evaluate(b.joint, coordinates.of(b), in.v + b.iv, columns + b.iv);
      const Motion<T> V = J.S * (in.v + b.iv);
      me.X = b.X_tree.template cast<T>() * J.X;
      const Vec3<T> w = transpose_times(me.X.R, parent.w);
      me.w = w + V.angular;
      me.c.angular = cross(w, V.angular) + J.bias.angular;
      me.c.linear = transpose_times(me.X.R, cross(parent.w, cross(parent.w, me.X.p))) +
                    cross(Vec3<T>(w * T(2.0) + V.angular), V.linear) + J.bias.linear;
    });
    me.p = b.inertia.template cast<T>().gyroscopic(me.w);
  }

  for (int k = 0; k < in.wrenches; ++k) {
    const Force<T> f = in.wrench[k].in_body();
    work[in.wrench[k].body].p.angular -= f.angular;
    work[in.wrench[k].body].p.linear -= f.linear;
  }

  if (tree.springs > 0)
    springs_on_bodies(tree, arena, in.q, in.v, [work](int body, const Force<T>& f) {
      work[body].p.angular -= f.angular;
      work[body].p.linear -= f.linear;
    });

  // inward: a joint hides from its parent what it can give way to
  for (int i = tree.bodies - 1; i > 0; --i) {
    const Body& b = tree.body[i];
    AbaBody<T>& me = work[i];
    if (b.end == i + 1) me.I = ArticulatedInertia<T>::rigid(b.inertia.template cast<T>());  // a leaf
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      constexpr int most = decltype(joint)::most;
      const int N = joint.nv;
      const auto S = joint.subspace(columns + b.iv);
      Force<T>* U = kept.U + b.iv;
      T D[most][most], scale[most], *D_inverse = kept.D_inverse + 6 * b.iv, *u = kept.u + b.iv, Du[most];
      S.project(me.p, u);
      for (int k = 0; k < N; ++k) {
        U[k] = me.I * S.column[k];
        u[k] = tau[b.iv + k] - u[k];
      }
      for (int k = 0; k < N; ++k) {
        for (int l = 0; l <= k; ++l) D[k][l] = dot(S.column[k], U[l]);
        D[k][k] += T(tree.freedom[b.iv + k].armature);
        const Motion<T>& s = S.column[k];
        scale[k] = (me.I.I.xx + me.I.I.yy + me.I.I.zz) * dot(s.angular, s.angular) +
                   (me.I.M.xx + me.I.M.yy + me.I.M.zz) * dot(s.linear, s.linear);
      }
      invert_symmetric(N, D, scale, D_inverse);
      for (int k = 0; k < N; ++k) {
        Du[k] = T(0.0);
        for (int l = 0; l < N; ++l) Du[k] += D_inverse[6 * k + l] * u[l];
      }
      if (b.parent == 0) return;  // the ground takes what comes

      // I - U D^-1 U^T and p + I c + U D^-1 u, each column k of U D^-1 at a time
      ArticulatedInertia<T> I = me.I;
      Force<T> p = me.p;
      for (int k = 0; k < N; ++k) {
        Force<T> UD = {U[0].angular * D_inverse[k], U[0].linear * D_inverse[k]};
        for (int l = 1; l < N; ++l) UD += {U[l].angular * D_inverse[6 * l + k], U[l].linear * D_inverse[6 * l + k]};
        const Vec3<T>&x = U[k].angular, &y = U[k].linear;
        const Vec3<T>&dx = UD.angular, &dy = UD.linear;
        I.I += Sym3<T>{-dx(0) * x(0), -dx(0) * x(1), -dx(0) * x(2), -dx(1) * x(1), -dx(1) * x(2), -dx(2) * x(2)};
        I.M += Sym3<T>{-dy(0) * y(0), -dy(0) * y(1), -dy(0) * y(2), -dy(1) * y(1), -dy(1) * y(2), -dy(2) * y(2)};
        for (int r = 0; r < 3; ++r)
          for (int s = 0; s < 3; ++s) I.H(r, s) -= dx(r) * y(s);
        p += {x * Du[k], y * Du[k]};
      }
      if (!tree.has_armature) joint.clear_transmitted(I);
      p += I * me.c;
      const Body& parent = tree.body[b.parent];
      ArticulatedInertia<T> seen = transformed(me.X, I);
      // the last child comes first, and finds the parent's inertia not yet written
      if (b.end == parent.end)
        seen += ArticulatedInertia<T>::rigid(parent.inertia.template cast<T>());
      else
        seen += work[b.parent].I;
      work[b.parent].I = seen;
      work[b.parent].p += me.X.to_parent(p);
    });
  }

  // outward: accelerations
  for (int i = 1; i < tree.bodies; ++i) {
    const Body& b = tree.body[i];
    AbaBody<T>& me = work[i];
    const Motion<T> A = me.X.to_child(work[b.parent].A) + me.c;
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const int N = joint.nv;
      const auto S = joint.subspace(columns + b.iv);
      T u[decltype(joint)::most];
      for (int k = 0; k < N; ++k) u[k] = kept.u[b.iv + k] - dot(A, kept.U[b.iv + k]);
      for (int k = 0; k < N; ++k) {
        a[b.iv + k] = T(0.0);
        for (int l = 0; l < N; ++l) a[b.iv + k] += kept.D_inverse[6 * (b.iv + k) + l] * u[l];
      }
      me.A = A + S * (a + b.iv);
    });
  }
}

}  // namespace sarrus
