// d tau / d q, d tau / d v and d tau / d a of a tree of bodies, by recursion. Singh, Russell and Wensing 2022, with the Coriolis factor B of Echeandia and Wensing
// 2021. All vectors are in world axes at the root body's origin; V and A are spatial, A_0 = -g. For velocity j, p denotes the frame with which its
// column S moves:
//
//   outward   S' = V_p x S       S'' = A_p x S + V_p x S'        V = V_p + S v       A = A_p + S a + S' v
//   bodies    f = I A + V x* I V         K = w~ J + u h^T        l = m u + w x h     J: the Euler tensor; (w, u) = V; all summed over subtrees
//             2 B s = [-2 (K - tr K) s_w; -2 l x s_w]            the Coriolis factor: 12 numbers
//   columns   t1 = I S      t2 = 2 B S + 2 I S'      t3 = 2 B S' + I S'' + S x* f      t4 = -2 (K - tr K)^T S_w + 2 l x S_u
//   pairs     i on the path from j to the ground, or j:    D_q(i, j) = S_i . t3_j          D_v(i, j) = S_i . t2_j          D_a(i, j) = S_i . t1_j
//             i on that path, and not j:                 D_q(j, i) = t1_j . S''_i + t4_j . (S'_i)_w       D_v(j, i) = t1_j . 2 S'_i + t4_j . (S_i)_w
//
// For joints whose velocities are not rates of coordinates (ball, free, planar) all columns move with the parent; 2 S' is replaced by 2 S' + (S v) x
// S, and for two velocities of the same joint t3 is used without S x* f.
//
// D_a is symmetric.
//
//   reads   q, v, a, motion of the ground, wrenches      writes  D_q, D_v, D_a (nv x nv): of bodies and wrenches, without forces in joints
//   cost    O(bodies * depth); lanes (packet R) contain columns of one state; if T is a packet of states, R = T and columns are processed one by one
#pragma once

#include <type_traits>

#include "between_bodies.hpp"

namespace sarrus {

template <class T> SARRUS_INLINE Motion<T> cross_motion(const Motion<T>& a, const Motion<T>& b) {
  return {cross(a.angular, b.angular), cross(a.angular, b.linear) + cross(a.linear, b.angular)};
}
template <class T> SARRUS_INLINE Force<T> cross_force(const Motion<T>& a, const Force<T>& f) {
  return {cross(a.angular, f.angular) + cross(a.linear, f.linear), cross(a.angular, f.linear)};
}

/// Column of a velocity with its rates.
template <class T> struct MovedColumn {
  Motion<T> S, S1, S2, twice;  // S', S'', and 2 S' or the term that replaces it
};
/// Inertia and forces of a subtree.
template <class T> struct CarriedMotion {
  Inertia<T> I;
  Mat3<T> K;  // K - tr K
  Vec3<T> l;
  Force<T> f;

  SARRUS_INLINE CarriedMotion& operator+=(const CarriedMotion& b) {
    I += b.I, K += b.K, l += b.l, f += b.f;
    return *this;
  }
  SARRUS_INLINE Force<T> twice_B(const Motion<T>& s) const {
    return {K * Vec3<T>(s.angular * T(-2.0)), cross(l, Vec3<T>(s.angular * T(-2.0)))};
  }
};

/// Number of columns (or directions) of scalar type T in the lanes of one R, and access to a single lane.
template <class T, class R> constexpr int columns_of = width_of<std::remove_const_t<R>> / width_of<T>;
template <class T, class R> SARRUS_INLINE decltype(auto) column_in(R& x, int l) {
  if constexpr (columns_of<T, R> == 1)
    return static_cast<R&>(x);
  else
    return lane(x, l);
}

/// Combine structs of several columns into lanes.
template <template <class> class Struct, class R, class T> SARRUS_INLINE Struct<R> side_by_side(const Struct<T>* const* from) {
  if constexpr (columns_of<T, R> == 1) {
    return *from[0];
  } else {
    constexpr int numbers = sizeof(Struct<T>) / sizeof(T);
    Struct<R> x;
    R* to = reinterpret_cast<R*>(&x);
    for (int l = 0; l < width_of<R>; ++l) {
      const T* row = reinterpret_cast<const T*>(from[l]);
      for (int k = 0; k < numbers; ++k) lane(to[k], l) = row[k];
    }
    return x;
  }
}
template <class R, class T> SARRUS_INLINE Motion<R> for_every_column(const Motion<T>& m) {
  Motion<R> x;
  for (int k = 0; k < 3; ++k) x.angular(k) = R(m.angular(k)), x.linear(k) = R(m.linear(k));
  return x;
}

/// Return true if the velocities of the link's joint are rates of its coordinates.
inline bool moves_by_rates(const Link& b) {
  return visit_every(b.described, b.nv, [](auto joint) {
    bool all = true;
    for (int k = 0; k < joint.nv; ++k) all &= joint.is_rate(k);
    return all;
  });
}

/// Pose of a body in the world; its spatial velocity, and acceleration minus gravity, about the root body's origin.
template <class T> struct MovedLink {
  Transform<T> X;
  Motion<T> V, A;
};

/// A tree in motion: its bodies and columns, and the quantities of each body summed over its subtree.
template <class T> struct TreeMotion {
  MovedLink<T>* link;
  MovedColumn<T>* column;
  CarriedMotion<T>* carried;

  /// X, columns: poses in the parents, and columns of the joints that visit() does not inline.
  TreeMotion(const Tree& tree, Arena& arena, const RneaInput<T>& in, Poses<T> X, const Motion<T>* columns)
      : link(arena.take<MovedLink<T>>(tree.links)),
        column(arena.take<MovedColumn<T>>(tree.nv)),
        carried(arena.take<CarriedMotion<T>>(tree.links)) {
    move(tree, in, X, columns);
    carry(tree, in);
  }
  static TreeMotion at(const Tree& tree, Arena& arena, const RneaInput<T>& in) {
    Transform<T>* X = arena.take<Transform<T>>(tree.links);
    Motion<T>* columns = arena.take<Motion<T>>(tree.nv);
    joint_poses(tree, arena, in.q, X, columns);
    return TreeMotion(tree, arena, in, Poses<T>{X}, columns);
  }

  const Vec3<T>& origin(const Tree& tree, int i) const { return link[i == 0 ? 0 : tree.link[i].root].X.p; }
  /// Compute V and A of a link about a point of the world.
  void about(const Tree& tree, int i, const Vec3<T>& p, Motion<T>& V, Motion<T>& A) const {
    const Vec3<T> r = p - origin(tree, i);
    V = link[i].V, A = link[i].A;
    V.linear += cross(V.angular, r), A.linear += cross(A.angular, r);
  }

 private:
  /// Outward pass: motions and columns.
  SARRUS_NOINLINE void move(const Tree& tree, const RneaInput<T>& in, Poses<T> X, const Motion<T>* columns) {
    using Vec = Vec3<T>;
    Motion<T> V = Motion<T>::zero(), A = V;
    if (in.ground.velocity) V = load_motion(in.ground.velocity);
    if (in.ground.acceleration) A = load_motion(in.ground.acceleration);
    A.linear -= cross(V.angular, V.linear) + tree.numbers<T>()(tree.gravity);
    link[0] = {Transform<T>::identity(), V, A};
    for (int i = 1; i < tree.links; ++i) {
      const Link& b = tree.link[i];
      MovedLink<T>& body = link[i];
      body.X = b.parent == 0 ? X[i] : link[b.parent].X * X[i];
      const Vec& o = link[b.root].X.p;
      const Vec r = body.X.p - o;
      V = link[b.parent].V, A = link[b.parent].A;  // of the frame with which a column moves
      if (b.parent == 0) V.linear += cross(V.angular, o), A.linear += cross(A.angular, o);
      visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
        const auto S = joint.subspace(columns + b.iv);
        bool rates = joint.nv == 1;
        if constexpr (std::is_same_v<decltype(joint), General>) rates = moves_by_rates(b);
        Motion<T> V_J = Motion<T>::zero(), A_J = V_J;
        for (int k = 0; k < joint.nv; ++k) {
          MovedColumn<T>& c = column[b.iv + k];
          const T &v = in.v[b.iv + k], &a = in.a[b.iv + k];
          const Motion<T> s = turned(body.X.R, S.column[k]);
          c.S = {s.angular, s.linear + cross(r, s.angular)};
          c.S1 = cross_motion(V, c.S);
          c.S2 = cross_motion(A, c.S) + cross_motion(V, c.S1);
          c.twice = c.S1 * T(2.0);
          const Motion<T> V_c = c.S * v, A_c = c.S * a + c.S1 * v;
          if (rates)
            V = V + V_c, A = A + A_c;
          else
            V_J = V_J + V_c, A_J = A_J + A_c;
        }
        for (int k = 0; k < joint.nv && !rates; ++k) {
          MovedColumn<T>& c = column[b.iv + k];
          c.twice = c.twice + cross_motion(V_J, c.S);
        }
        body.V = V + V_J, body.A = A + A_J;
      });
    }
  }

  /// Compute the inertia and forces of each body, then sum them over its subtree.
  SARRUS_NOINLINE void carry(const Tree& tree, const RneaInput<T>& in) {
    using Vec = Vec3<T>;
    for (int i = 1; i < tree.links; ++i) {
      const Motion<T>&V = link[i].V, &A = link[i].A;
      CarriedMotion<T>& subtree = carried[i];
      subtree.I = transformed(Transform<T>{link[i].X.R, link[i].X.p - origin(tree, i)}, tree.numbers<T>()(tree.link[i].inertia));
      const Vec &w = V.angular, &u = V.linear, &h = subtree.I.h;
      const Mat3<T> J = euler_tensor(subtree.I.I).matrix();
      for (int n = 0; n < 3; ++n) subtree.K.col(n) = cross(w, Vec(J.col(n))) + u * h(n);
      const T trace = subtree.K(0, 0) + subtree.K(1, 1) + subtree.K(2, 2);
      for (int n = 0; n < 3; ++n) subtree.K(n, n) -= trace;
      subtree.l = u * subtree.I.m + cross(w, h);
      subtree.f = subtree.I * A;
      subtree.f += cross_force(V, subtree.I * V);
    }
    for (int n = 0; n < in.wrenches; ++n) {
      const int i = in.wrench[n].link;
      if (i == 0) continue;
      const Transform<T>& X = link[i].X;
      carried[i].f -= Transform<T>{X.R, X.p - origin(tree, i)}.to_parent(in.wrench[n].in_link());
    }
    for (int i = tree.links - 1; i > 0; --i)
      if (tree.link[i].parent > 0) carried[tree.link[i].parent] += carried[i];
  }
};

/// Compute D_q, D_v and, unless by_a is null, D_a.
template <class R, class T>
SARRUS_NOINLINE void rnea_derivatives(const Tree& tree, Arena& arena, const TreeMotion<T>& motion, T* by_q, T* by_v, T* by_a) {
  constexpr int lanes = columns_of<T, R>;
  const int n = tree.nv;
  const MovedColumn<T>* column = motion.column;
  const CarriedMotion<T>* carried = motion.carried;
  for (T* out : {by_q, by_v, by_a})
    if (out) std::fill(out, out + n * n, T(0.0));
  unsigned* on_path = arena.take<unsigned>(n);  // bit set of the lanes whose column has this velocity on its path to the ground
  int* path = arena.take<int>(n);
  std::fill(on_path, on_path + n, 0u);

  for (int first = 0; first < n; first += lanes) {
    const int count = std::min(lanes, n - first);
    const MovedColumn<T>* columns[lanes];
    const CarriedMotion<T>* subtree[lanes];
    int stops = 0;
    for (int l = 0; l < lanes; ++l) {
      const int j = first + std::min(l, count - 1);
      columns[l] = column + j, subtree[l] = carried + tree.column_link[j];
      for (int i = j; i >= 0 && l < count; i = tree.column_parent[i]) {
        if (!on_path[i]) path[stops++] = i;
        on_path[i] |= 1u << l;
      }
    }
    const auto c = side_by_side<MovedColumn, R, T>(columns);
    const auto b = side_by_side<CarriedMotion, R, T>(subtree);
    const Force<R> t1 = b.I * c.S, t2 = b.twice_B(c.S) + b.I * c.twice, inside = b.twice_B(c.S1) + b.I * c.S2,
                   t3 = inside + cross_force(c.S, b.f);
    const Vec3<R> t4 = transpose_times(b.K, Vec3<R>(c.S.angular * R(-2.0))) + cross(b.l, Vec3<R>(c.S.linear * R(2.0)));
    for (int stop = 0; stop < stops; ++stop) {
      const int i = path[stop];
      const unsigned from = on_path[i];
      on_path[i] = 0;
      const MovedColumn<T>& at = column[i];
      const Motion<R> S = for_every_column<R>(at.S), S1 = for_every_column<R>(at.S1), S2 = for_every_column<R>(at.S2),
                      twice = for_every_column<R>(at.twice);
      const R q_up = dot(S, t3), v_up = dot(S, t2), q_down = dot(S2, t1) + dot(S1.angular, t4),
              v_down = dot(twice, t1) + dot(S.angular, t4), a_both = dot(S, t1);
      for (int l = 0; l < count; ++l) {
        if (!(from >> l & 1)) continue;
        const int j = first + l;
        by_q[i * n + j] = column_in<T>(q_up, l), by_v[i * n + j] = column_in<T>(v_up, l);
        if (i != j) by_q[j * n + i] = column_in<T>(q_down, l), by_v[j * n + i] = column_in<T>(v_down, l);
        if (by_a) by_a[i * n + j] = by_a[j * n + i] = column_in<T>(a_both, l);
      }
    }
    // for joints whose columns all move with the parent, the entries (i, j) and (j, i) have the same formula
    for (int l = 0; l < count; ++l) {
      const Link& link = tree.link[tree.column_link[first + l]];
      if (link.nv == 1 || moves_by_rates(link)) continue;
      for (int i = link.iv; i < link.iv + link.nv; ++i) {
        const Motion<R> S = for_every_column<R>(column[i].S);
        const R q_within = dot(S, inside), v_within = dot(S, t2);
        by_q[i * n + first + l] = column_in<T>(q_within, l), by_v[i * n + first + l] = column_in<T>(v_within, l);
      }
    }
  }
}

}  // namespace sarrus
