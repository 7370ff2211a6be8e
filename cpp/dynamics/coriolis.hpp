// Coriolis matrix C(q, v): C v are the Coriolis and centrifugal forces, and M-dot - 2C is skew. For joints with q-dot = v it consists of Christoffel
// symbols (Li and Wu, 4.3; Murray, Li and Sastry 4.23). Echeandia and Wensing (2021):
//   B = 1/2 [(V x*) I - I (V x) + (I V) xbar*] for each body,  C = sum over bodies of J^T (I J-dot + B J)
//
// All quantities refer to one point at rest, the present origin of the body next to the ground.
#pragma once

#include "kinematics.hpp"

namespace sarrus {

template <class T> using Mat6 = Eigen::Matrix<T, 6, 6>;
template <class T> using Vec6 = Eigen::Matrix<T, 6, 1>;

template <class T> Mat6<T> blocks(const Mat3<T>& a, const Mat3<T>& b, const Mat3<T>& c, const Mat3<T>& d) {
  Mat6<T> m;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) m(i, j) = a(i, j), m(i, 3 + j) = b(i, j), m(3 + i, j) = c(i, j), m(3 + i, 3 + j) = d(i, j);
  return m;
}

template <class T> struct CoriolisLink {
  Mat6<T> I, B;  // sums over the subtree
};

template <class T> SARRUS_NOINLINE void coriolis_of_link(const Inertia<T>& inertia, const Motion<T>& V, CoriolisLink<T>& out) {
  const Mat3<T> O = skew(zero3<T>()), H = skew(inertia.h), Ht = H.transpose();
  const Mat3<T> m = Sym3<T>{inertia.m, T(0.0), T(0.0), inertia.m, T(0.0), inertia.m}.matrix();
  out.I = blocks<T>(inertia.I.matrix(), H, Ht, m);
  const Mat3<T> w = skew(V.angular), v = skew(V.linear);
  const Force<T> h = inertia * V;
  const Mat3<T> n = skew(h.angular), f = skew(h.linear);
  const Mat6<T> crm = blocks<T>(w, O, v, w), crf = blocks<T>(w, v, O, w), bar = blocks<T>(-n, -f, -f, O);
  out.B = (crf.lazyProduct(out.I) - out.I.lazyProduct(crm) + bar) * T(0.5);
}

template <class T> void coriolis(const Tree& tree, Arena& arena, const Kinematics<T>& k, T* C) {
  CoriolisLink<T>* work = arena.take<CoriolisLink<T>>(tree.links);
  Vec6<T>* S = arena.take<Vec6<T>>(tree.nv);
  Vec6<T>* S_dot = arena.take<Vec6<T>>(tree.nv);
  const int n = tree.nv;
  for (int i = 0; i < n * n; ++i) C[i] = T(0.0);

  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const LinkMotion<T>& motion = k.link[i];
    const Vec3<T>& origin = k.link[b.root].X.p;
    const Vec3<T> r = origin - motion.X.p;
    coriolis_of_link(transformed(Transform<T>{motion.X.R, Vec3<T>(-r)}, tree.numbers<T>()(b.inertia)),
                     Motion<T>{motion.V.angular, motion.V.linear + cross(motion.V.angular, r)}, work[i]);
    for (int c = b.iv; c < b.iv + b.nv; ++c) {
      const Motion<T>&s = k.column[c], &d = k.column_dot[c];
      const Vec3<T> lin = s.linear + cross(s.angular, r);
      const Vec3<T> lin_dot = d.linear + cross(d.angular, r) - cross(s.angular, motion.V.linear);
      for (int x = 0; x < 3; ++x) {
        S[c](x) = s.angular(x), S[c](3 + x) = lin(x);
        S_dot[c](x) = d.angular(x), S_dot[c](3 + x) = lin_dot(x);
      }
    }
  }

  const auto product = [](const Vec6<T>& a, const Vec6<T>& b) {
    T sum = a(0) * b(0);
    for (int x = 1; x < 6; ++x) sum += a(x) * b(x);
    return sum;
  };
  for (int i = tree.links - 1; i > 0; --i) {
    const Link& b = tree.link[i];
    for (int j = b.iv; j < b.iv + b.nv; ++j) {
      const Vec6<T> F1 = work[i].I.lazyProduct(S_dot[j]) + work[i].B.lazyProduct(S[j]);
      const Vec6<T> F2 = work[i].I.lazyProduct(S[j]), F3 = work[i].B.transpose().lazyProduct(S[j]);
      for (int c = b.iv + b.nv - 1; c >= 0; c = tree.column_parent[c]) {
        C[c * n + j] = product(S[c], F1);
        if (tree.column_link[c] != i) C[j * n + c] = product(S_dot[c], F2) + product(S[c], F3);
      }
    }
    if (b.parent != 0) work[b.parent].I += work[i].I, work[b.parent].B += work[i].B;
  }
}

}  // namespace sarrus
