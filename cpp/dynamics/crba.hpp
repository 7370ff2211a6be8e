// M(q): composite rigid bodies. Featherstone, [RBDA] Table 6.2; the same matrix as van der Merwe's structural recursion 5.46.
//
// Composite inertias are summed in the bodies' own frames, without cancellation. The force that accelerates a composite body is then transformed
// directly to the frame of the body next to the ground. The axes of all joints on the path are in that frame too, so an entry of M costs one scalar
// product.
//
//   reads   q (nq)     writes  M (nv x nv), both halves, armature on its diagonal
//   cost    O(bodies * depth)
#pragma once

#include "between_bodies.hpp"

namespace sarrus {

template <class T> struct CompositeLink {
  Transform<T> X_root;  // pose in the root body
  Inertia<T> I;  // inertia of the subtree
};

/// Call put(r, c, m) with every entry m of M for which c is r, or a velocity on the path from r to the ground. X: poses of the bodies in their
/// parents; `columns`: stored columns of the joints that visit() does not inline.
template <class T, class Put>
SARRUS_INLINE void composite_inertias(const Tree& tree, Arena& arena, Poses<T> X, const Motion<T>* columns, Put put) {
  CompositeLink<T>* work = arena.take<CompositeLink<T>>(tree.links);
  Motion<T>* columns_root = arena.take<Motion<T>>(tree.nv);

  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    CompositeLink<T>& body = work[i];
    body.I = tree.numbers<T>()(b.inertia);
    if (b.root == i) continue;
    body.X_root = b.root == b.parent ? X[i] : work[b.parent].X_root * X[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto S = joint.subspace(columns + b.iv);
      for (int k = 0; k < joint.nv; ++k) columns_root[b.iv + k] = body.X_root.to_parent(S.column[k]);
    });
  }

  // leaves first: a composite inertia must be complete before the entries of its joint are computed
  for (int i = tree.links - 1; i > 0; --i) {
    const Link &b = tree.link[i], &root = tree.link[b.root];
    const Inertia<T>& I = work[i].I;
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      const auto S = joint.subspace(columns + b.iv);
      for (int k = 0; k < joint.nv; ++k) {
        const int r = b.iv + k;
        Force<T> F = I * S.column[k];
        T row[decltype(joint)::most];
        S.project(F, row);
        row[k] += tree.numbers<T>()(tree.passive[r].armature);
        for (int l = 0; l <= k; ++l) put(r, b.iv + l, row[l]);
        if (b.root == i) continue;
        F = work[i].X_root.to_parent(F);
        for (int c = tree.column_parent[b.iv]; tree.column_link[c] != b.root; c = tree.column_parent[c])
          put(r, c, dot(columns_root[c], F));
        visit(root.joint, root.nv, [&](auto joint_root) SARRUS_INLINED {
          T moved[decltype(joint_root)::most];
          joint_root.subspace(columns + root.iv).project(F, moved);
          for (int l = 0; l < joint_root.nv; ++l) put(r, root.iv + l, moved[l]);
        });
      }
    });
    if (b.root != i) work[b.parent].I += transformed(X[i], I);
  }
}

/// Compute the mass matrix from the bodies' poses in their parents.
template <class T>
SARRUS_NOINLINE void crba(const Tree& tree, Arena& arena, const T* q, Poses<T> X, const Motion<T>* columns, T* M) {
  const int n = tree.nv;
  for (int k = 0; k < n * n; ++k) M[k] = T(0.0);
  composite_inertias(tree, arena, X, columns,
                     [M, n](int r, int c, const T& m) SARRUS_INLINED { M[r * n + c] = M[c * n + r] = m; });
  if (tree.loops.rotor_rows > 0) add_loop_armature(tree, arena, q, static_cast<const T*>(nullptr), M);
}
template <class T> void crba(const Tree& tree, Arena& arena, const T* q, T* M) {
  Transform<T>* X = arena.take<Transform<T>>(tree.links);
  Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
  joint_poses(tree, arena, q, X, columns);
  crba(tree, arena, q, Poses<T>{X}, columns, M);
}

}  // namespace sarrus
