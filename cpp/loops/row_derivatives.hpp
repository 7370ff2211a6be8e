// Derivatives of the rows of plain loop joints from the columns of a moving tree (dynamics/rnea_derivatives.hpp). For a joint between bodies b
// (parent) and c (child): the rows psi are fixed in c, f = psi lambda, and all vectors are about one point; e = 1 for columns that move c, -1 for
// columns that move b. S', S'': rates of a column S
//
//   J v              by q     e psi . (S' - V_b x S)
//   J a - gamma      by q     e psi . (S'' - A_b x S - (V_c + V_b) x S' + V_c x (V_b x S))         = psi . (A_c - A_b + V_c x V_b)
//                    by v     e psi . (2 S' - (V_c + V_b) x S)
//   (J^T lambda)_k   by q_j   S_k . (S_j x* f)    both move c, and S_j moves f but not S_k; or both move b, and S_j moves S_k
//                             - S_k . (S_j x* f)  S_k moves b, and S_j moves c
//
// Columns that move both bodies have no effect. If a joint's velocities are not the rates of coordinates (ball joints), another term replaces 2 S',
// and each of its velocities moves all columns of the joint.
//
//   cost    for each joint, the square of the number of its columns
#pragma once

#include "../dynamics/rnea_derivatives.hpp"
#include "constraints.hpp"

namespace sarrus {

/// Return true if all constraints are plain loop joints without prescribed motion.
inline bool has_plain_rows(const Tree& tree) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    const LoopJoint* joint = std::get_if<LoopJoint>(&c.kind);
    if (!joint || !joint->plain() || c.driven || c.target != Target::none) return false;
  }
  return true;
}

template <class T> class RowDerivatives {
 public:
  /// Compute the derivatives; lambda (rows): multipliers.
  RowDerivatives(const Tree& tree, Arena& arena, const TreeMotion<T>& motion, const T* lambda)
      : loops_(tree.loops),
        velocity_by_q_(arena.take<T>(loops_.entries)),
        by_q_(arena.take<T>(loops_.entries)),
        by_v_(arena.take<T>(loops_.entries)) {
    int pairs = 0;
    for (int i = 0; i < loops_.constraints; ++i) pairs += loops_.constraint[i].columns * loops_.constraint[i].columns;
    T* force = force_by_q_ = arena.take<T>(pairs);
    for (int i = 0; i < loops_.constraints; ++i) {
      const Arena::Scope scope(arena);
      const Constraint& c = loops_.constraint[i];
      derive(tree, arena, motion, c, lambda + c.row, force);
      force += c.columns * c.columns;
    }
  }

  /// Compute the rates of J v (velocities) or of J a - gamma (accelerations) along a displacement d of q and a change w of v; either may be null.
  /// Each rate is passed to put(row, rate).
  template <class R, class Put> void velocities(const R* d, Put put) const {
    along(velocity_by_q_, d, static_cast<const T*>(nullptr), static_cast<const R*>(nullptr), put);
  }
  template <class R, class Put> void accelerations(const R* d, const R* w, Put put) const { along(by_q_, d, by_v_, w, put); }
  /// Compute the rate of J^T lambda along a displacement. Each contribution of a constraint is passed to put(velocity, contribution).
  template <class R, class Put> void forces(const R* d, Put put) const {
    const T* rate = force_by_q_;
    for (int i = 0; i < loops_.constraints; ++i) {
      const Constraint& c = loops_.constraint[i];
      for (int k = 0; k < c.columns; ++k) {
        R sum = R(0.0);
        for (int j = 0; j < c.columns; ++j) sum += d[c.column[j]] * R(*rate++);
        put(c.column[k], sum);
      }
    }
  }
  /// Pass the entries of these derivatives to put(row, velocity, rate of J v by q, of J a - gamma by q, and by v), and those of J^T lambda to
  /// put_force(velocity, velocity of the displacement, rate).
  template <class Put, class PutForce> void each_entry(Put put, PutForce put_force) const {
    const T* rate = force_by_q_;
    for (int i = 0; i < loops_.constraints; ++i) {
      const Constraint& c = loops_.constraint[i];
      for (int k = 0, entry = c.entry; k < c.columns; ++k) {
        for (int r = 0; r < c.rows; ++r, ++entry) put(c.row + r, c.column[k], velocity_by_q_[entry], by_q_[entry], by_v_[entry]);
        for (int j = 0; j < c.columns; ++j) put_force(c.column[k], c.column[j], *rate++);
      }
    }
  }

 private:
  template <class R, class Put> void along(const T* by_q, const R* d, const T* by_v, const R* w, Put put) const {
    for (int i = 0; i < loops_.constraints; ++i) {
      const Constraint& c = loops_.constraint[i];
      R sum[6];
      for (R& x : sum) x = R(0.0);
      int entry = c.entry;
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r, ++entry) {
          if (d) sum[r] += d[c.column[k]] * R(by_q[entry]);
          if (w) sum[r] += w[c.column[k]] * R(by_v[entry]);
        }
      for (int r = 0; r < c.rows; ++r) put(c.row + r, sum[r]);
    }
  }

  void derive(const Tree& tree, Arena& arena, const TreeMotion<T>& motion, const Constraint& c, const T* lambda, T* force) {
    const auto numbers = tree.numbers<T>();
    const LoopJoint& joint = std::get<LoopJoint>(c.kind);
    const Transform<T> X = motion.link[c.child].X * numbers(c.X_child);
    Motion<T> V_c, A_c, V_b, A_b;
    motion.about(tree, c.child, X.p, V_c, A_c), motion.about(tree, c.parent, X.p, V_b, A_b);
    const Motion<T> both = V_c + V_b;
    Force<T> f = Force<T>::zero();
    for (int r = 0; r < c.rows; ++r) {
      const int n = joint.component[r];
      (n < 3 ? f.angular(n) : f.linear(n - 3)) = lambda[r];
    }
    f = {X.R * f.angular, X.R * f.linear};
    Motion<T>* S = arena.take<Motion<T>>(c.columns);
    Force<T>* turned = arena.take<Force<T>>(c.columns);
    int* link = arena.take<int>(c.columns);
    for (int k = 0; k < c.columns; ++k) {
      const MovedColumn<T>& moved = motion.column[c.column[k]];
      link[k] = tree.column_link[c.column[k]];
      const Vec3<T> r = X.p - motion.origin(tree, link[k]);
      const auto about = [&](const Motion<T>& m) { return Motion<T>{m.angular, m.linear + cross(m.angular, r)}; };
      S[k] = about(moved.S), turned[k] = cross_force(S[k], f);
      const Motion<T> S1 = about(moved.S1), across = cross_motion(V_b, S[k]);
      const auto put = [&](const Motion<T>& m, T* out) {
        for (int r = 0; r < c.rows; ++r) {
          const int n = joint.component[r];
          const T rate = n < 3 ? dot(Vec3<T>(X.R.col(n)), m.angular) : dot(Vec3<T>(X.R.col(n - 3)), m.linear);
          out[c.entry + k * c.rows + r] = k < c.child_columns ? rate : -rate;
        }
      };
      put(less(S1, across), velocity_by_q_);
      put(less(about(moved.S2) + cross_motion(V_c, across), cross_motion(A_b, S[k]) + cross_motion(both, S1)), by_q_);
      put(less(about(moved.twice), cross_motion(both, S[k])), by_v_);
    }
    for (int k = 0; k < c.columns; ++k) {
      const bool all_are_carried = !moves_by_rates(tree.link[link[k]]), k_of_child = k < c.child_columns;
      // for two velocities j and k that move the same body: true if j moves column k (the order of columns may differ from that of links)
      const auto carries = [&](int j) {
        return link[j] < link[k] || (link[j] == link[k] && (all_are_carried || c.column[j] <= c.column[k]));
      };
      for (int j = 0; j < c.columns; ++j) {
        const bool j_of_child = j < c.child_columns, counts = k_of_child ? j_of_child && !carries(j) : j_of_child || carries(j);
        const T power = counts ? dot(S[k], turned[j]) : T(0.0);
        *force++ = k_of_child == j_of_child ? power : -power;
      }
    }
  }
  static Motion<T> less(const Motion<T>& a, const Motion<T>& b) { return a + b * T(-1.0); }

  const Loops& loops_;
  T *velocity_by_q_, *by_q_, *by_v_, *force_by_q_;
};

}  // namespace sarrus
