// Groups of floating bodies, which are connected to the ground by free joints only, and to one another by constraints. The momentum of each group
// changes only by external forces, for any choice of loop joints. A common rigid motion of its bases, X, does not change the loops of the group, and
// adds I X to its momentum:
//
//   p = p(v) + I X      I: the inertia of the group with its joints locked
//
// A mechanism with a single base of any six velocities floats as a whole (Tree::floats).
#pragma once

#include "free_floating.hpp"

namespace sarrus {

template <class T> class FloatingGroups {
 public:
  int count = 0;

  FloatingGroups(const Tree& tree, Arena& arena) : tree_(tree), arena_(arena), group_(arena.take<int>(tree.links)) {
    std::fill(group_, group_ + tree.links, ground_group);
    if (tree.floats) {
      count = 1;
      return;  // all links belong to group 0
    }
    for (int i = 1; i < tree.links; ++i)
      group_[i] = tree.link[i].parent == 0 ? (is_free(i) ? i : ground_group) : group_[tree.link[i].parent];
    const Loops& loops = tree.loops;
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      if (c.child >= 0)
        merge(group_[c.parent], group_[c.child]);
      else  // a constraint between coordinates, which may belong to a base
        for (int k = 0; k < c.columns; ++k)
          if (const int link = tree.column_link[c.column[k]]; tree.link[link].parent == 0) merge(group_[link], ground_group);
    }
    // give each group, after constraints have merged some of them, the index of its first base
    for (int i = 1; i < tree.links; ++i)
      if (group_[i] == i) rename(i, -++count);
    for (int i = 0; i < tree.links; ++i) group_[i] = -group_[i] - 1;  // -1 for the ground
  }

  /// Compute the momentum of each group about the world's origin.
  void momenta(const T* q, const T* v, Force<T>* out) const {
    const Arena::Scope scope(arena_);
    const Kinematics<T> k = motion(q, v, nullptr);
    sum(out, [&](int i) { return momentum_of(tree_, i, k, zero3<T>()); });
  }
  void momentum_rates(const T* q, const T* v, const T* a, Force<T>* out) const {
    const Arena::Scope scope(arena_);
    const Kinematics<T> k = motion(q, v, a);
    sum(out, [&](int i) { return momentum_rate_of(tree_, i, k, zero3<T>()); });
  }

  /// Set the velocities of the bases in v so that the momenta of the groups are p.
  void move_bases(const Force<T>* p, const T* q, T* v) const {
    const Arena::Scope scope(arena_);
    if (tree_.floats) {
      T six[6], *moving = arena_.take<T>(tree_.nv);
      store(p[0], six);
      momentum_velocity(tree_, arena_, q, static_cast<const T*>(v), static_cast<const T*>(six), moving);
      std::copy(moving, moving + tree_.nv, v);
      return;
    }
    const Kinematics<T> k = motion(q, v, nullptr);
    for (int g = 0; g < count; ++g) {
      const int base = static_cast<int>(std::find(group_ + 1, group_ + tree_.links, g) - group_);
      const Vec3<T> about = k.link[base].X.p;
      Force<T> lacking = p[g];
      lacking.angular -= cross(about, lacking.linear);
      Inertia<T> all = Inertia<T>::zero();
      for (int i = base; i < tree_.links; ++i) {
        if (group_[i] != g) continue;
        Transform<T> X = k.link[i].X;
        X.p -= about;
        all += transformed(X, tree_.numbers<T>()(tree_.link[i].inertia)), lacking -= momentum_of(tree_, i, k, about);
      }
      const LockedBodies<T> locked(all);
      Motion<T> together = locked.motion(lacking);
      lacking -= all * together;
      // one correction step: without it, rounding errors of the inverse would accumulate in a simulation
      together = together + locked.motion(lacking);
      for (int i = base; i < tree_.links; ++i) {
        if (group_[i] != g || tree_.link[i].parent != 0) continue;
        const Motion<T> base_motion = {together.angular,
                                       together.linear + cross(together.angular, Vec3<T>(k.link[i].X.p - about))};
        for (int c = 0; c < 6; ++c) {  // columns of a free joint are orthonormal
          const Motion<T>& s = k.column[tree_.link[i].iv + c];
          v[tree_.link[i].iv + c] += dot(s.angular, base_motion.angular) + dot(s.linear, base_motion.linear);
        }
      }
    }
  }

 private:
  static constexpr int ground_group = 0;

  bool is_free(int i) const {
    return tree_.link[i].joint == tree_.link[i].described &&
           visit_every(tree_.link[i].described, 0, [](auto joint) { return std::is_same_v<decltype(joint), Free>; });
  }
  void rename(int from, int to) {
    if (from != ground_group) std::replace(group_ + 1, group_ + tree_.links, from, to);
  }
  void merge(int a, int b) { rename(std::max(a, b), std::min(a, b)); }

  Kinematics<T> motion(const T* q, const T* v, const T* a) const {
    const auto k = Kinematics<T>::over(tree_, arena_.take<T>(Kinematics<T>::size(tree_)));
    kinematics(tree_, arena_, q, v, a, k);
    return k;
  }
  template <class Of> void sum(Force<T>* out, Of of) const {
    std::fill(out, out + count, Force<T>::zero());
    for (int i = 1; i < tree_.links; ++i)
      if (group_[i] >= 0) out[group_[i]] += of(i);
  }

  const Tree& tree_;
  Arena& arena_;
  int* group_;  // index of the group of each link; -1: no group
};

}  // namespace sarrus
