// Constrained dynamics of a mechanism that is cut into substructures (mechanism/substructures.hpp). With x' the velocities of the floating
// substructures, the velocities of the joints are x = C x'. The rows of C for a joint at a cut express the joint's free motion. Then
//
//   [M' J'^T; J' -S] [x'; y'] = [C^T f; g, 0]      J': rows of the loops, then those of the joints at the cuts
//
// has the same solution as [M J^T; J 0] [x; y] = [f; g], but M' has one block per substructure. The armature A of a joint at a cut is one more row,
// along its free motion, with the compliance S = 1/A.
#pragma once

#include "../dynamics/crba.hpp"
#include "borrowed_inertia.hpp"
#include "constraints.hpp"
#include "saddle.hpp"

namespace sarrus {

/// Return 1/M_ii of each velocity; zero for velocities without inertia.
template <class T> SARRUS_INLINE T* mobilities(const Tree& tree, Arena& arena, const T* M) {
  T* mobility = arena.take<T>(tree.nv);
  for (int i = 0; i < tree.nv; ++i) {
    const T& m = M[tree.loops.mass_first[i]];
    mobility[i] = select(m > T(0.0), T(1.0) / m, T(0.0));
  }
  return mobility;
}

/// Compute the entries of M by rows: each row contains its diagonal entry, then those of the velocities on the path to the ground. Recorded steps
/// call this as a function of q, if it is not null (recording/saddle.cpp).
template <class T>
SARRUS_NOINLINE T* sparse_mass_matrix(const Tree& tree, Arena& arena, const T*, Poses<T> X, const Motion<T>* columns) {
  const int* first = tree.loops.mass_first;
  T* M = arena.take<T>(first[tree.nv]);
  composite_inertias(tree, arena, X, columns, [&](int r, int c, const T& m) SARRUS_INLINED {
    M[first[r] + tree.column_depth[r] - tree.column_depth[c]] = m;
  });
  return M;
}

template <class T> SARRUS_INLINE T* inverses(Arena& arena, int n, const T* x) {
  T* inverse = arena.take<T>(n);
  for (int i = 0; i < n; ++i) inverse[i] = T(1.0) / x[i];
  return inverse;
}

template <class T> SARRUS_INLINE T inverse_or_one(const T& x) { return T(1.0) / select(x > T(0.0), x, T(1.0)); }

// Regularisation of velocities whose entry in the minimised quantity is zero. It is used in the factor only, and corrections remove its effect.
constexpr double floating = 1e-10;  // value for velocities of floating substructures, in units of Tree::unit
constexpr double unfelt = 1e-8;  // minimum of the inertia about the axis of a thin rod, relative to its inertia about other axes

/// Minimised quantity: kinetic energy, or with `plain` the sum of squares of y. The velocities are x = weight y (weight: nv entries; null: ones). A
/// weight of 0 fixes a velocity; for kinetic energy the only other weight is 1.
template <class T> struct Metric {
  const T* weight = nullptr;
  bool plain = false;
  // with plain: (nv) 1/weight of a velocity's motor; 0 if it has no motor and therefore no effect on the objective
  const T* motors = nullptr;
  const T* closing_motors = nullptr;  // only with `motors`: weights of motors in loop joints (motor rows)
  T passive = T(0.0);  // only with `motors`: weight of joints without a motor, tolerances::passive times the largest weight
  bool is_mass() const { return !weight && !plain; }
};

/// State and columns of the constraint rows at zero velocity, for the velocities of the substructures.
template <class T>
LoopState<T> in_substructures(const Substructures& pieces, Arena& arena, const LoopState<T>& state, const Motion<T>* columns,
                              Motion<T>* stored) {
  const Tree& tree = pieces.tree;
  LoopState<T> cut = {state.q, nullptr, state.time, state.pfaffian_values, state.X, arena.take<Motion<T>>(tree.nv), nullptr};
  cut.numbers = state.numbers;
  for (int k = 0; k < tree.nv; ++k) {
    const int link = tree.column_link[k], from = pieces.from[k];
    cut.column[k] = from >= 0 ? state.column[from] : turned(state.X[link].R, unit_motion<T>(k - tree.link[link].iv));
    if (from >= 0) stored[k] = columns[from];
  }
  return cut;
}

/// Saddle matrix of the substructures in one configuration, and conversion between their velocities and those of the joints.
template <class T> class SubstructuredEquation {
 public:
  const Substructures& pieces;
  Saddle<T> matrix;
  T* scale;  // (rows) scale of each row
  T* J;  // entries of J: blocks of the constraint rows, then blocks of the free motions of the joints at cuts
  T* compliance;  // S
  T* row_weight;
  T* epsilon = nullptr;  // (nv) regularisation of velocities with zero metric
  const T* weight;  // if not null, the velocities are `weight` times the unknowns
  bool borrows;  // true if massless bodies borrow inertia

  /// `X`: poses of the bodies in their parents; `columns`: stored columns of the joints that visit() does not inline.
  SARRUS_NOINLINE SubstructuredEquation(const Tree& full_tree, Arena& arena, const LoopState<T>& state, Poses<T> X,
                                        const Motion<T>* columns, const Metric<T>& metric)
      : pieces(*full_tree.loops.substructures),
        matrix{pieces.tree,
               metric.is_mass() ? pieces.tree.loops.dynamics : pieces.tree.loops.statics,
               pieces.tree.loops.mass_first,
               pieces.tree.loops.constraints,
               pieces.tree.loops.rows,
               nullptr,
               nullptr,
               nullptr,
               nullptr,
               nullptr},
        weight(metric.weight),
        borrows(pieces.tree.lacks_inertia && !metric.plain) {
    const Tree& tree = pieces.tree;
    const Loops& loops = tree.loops;
    const int rows = loops.rows + loops.motor_rows;
    if (!metric.is_mass()) matrix.constraints += loops.motor_constraints, matrix.rows = rows;
    Motion<T>* stored = arena.take<Motion<T>>(tree.nv);
    const LoopState<T> cut = in_substructures(pieces, arena, state, columns, stored);
    T* M = metric.plain ? plain_metric(arena, metric.motors)
                        : sparse_mass_matrix(tree, arena, static_cast<const T*>(nullptr), X, stored);
    T* mobility = mobilities(tree, arena, M);
    epsilon = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) {
      const T &m = M[loops.mass_first[k]], lacking = metric.plain ? T(0.0) : T(state.numbers(pieces.lacking[k]));
      if (metric.plain) {
        const auto present = m > T(0.0);
        const T unit = metric.motors ? T(state.numbers(tree.unit[k])) : T(1.0);
        epsilon[k] = select(present, T(0.0), (metric.motors ? metric.passive : T(floating)) / (unit * unit));
        mobility[k] = select(present, mobility[k], unit * unit);
      } else {
        epsilon[k] = lacking * T(unfelt);
        if (pieces.lacking[k] > 0.0) mobility[k] = T(1.0) / (m + lacking * T(0.01));
      }
    }
    if (!metric.plain) leave_out_massless(tree, mobility);
    matrix.M = M, matrix.mobility = mobility;
    matrix.J = J = arena.take<T>(loops.entries + loops.motor_entries);
    scale = arena.take<T>(rows);
    ConstraintRows<T> out;
    out.J = J, out.scale = scale, out.mobility = least_about_any_axis(arena);
    constraint_rows(tree, arena, cut, out, 0, loops.constraints + loops.motor_constraints);
    T* S = arena.take<T>(rows);
    for (int r = 0; r < rows; ++r) {
      const bool compliant = r >= pieces.compliant_row && r < loops.rows;
      S[r] = compliant && !metric.plain ? T(state.numbers(pieces.compliance[r - pieces.compliant_row]))
                                        : T(r < pieces.compliant_row ? 0.0 : free_row) * scale[r];
    }
    for (int k = 0; k < full_tree.nv && !metric.is_mass(); ++k) {
      const int at = pieces.velocity[k];
      const T w = weight ? weight[k] : T(1.0);
      if (at >= 0) continue;
      if (metric.motors)
        S[-1 - at] = select(metric.motors[k] > T(0.0), inverse_or_one(metric.motors[k]), S[-1 - at]);
      else
        S[-1 - at] = metric.plain ? w * w : select(w > T(0.0), S[-1 - at], T(0.0));
    }
    for (int r = 0; metric.motors && r < full_tree.loops.motor_rows; ++r)
      if (full_tree.loops.driven[r] != 0.0) S[loops.rows + r] = metric.closing_motors[r];
    if (weight) apply_weights(M);
    // weight the velocities such that the minimised quantity is the squared norm of the motors' efforts, with forces converted to moments
    if (metric.motors) {
      T* inertia = arena.take<T>(tree.nv);
      for (int k = 0; k < tree.nv; ++k) inertia[k] = square(M[loops.mass_first[k]]) * square(T(state.numbers(tree.unit[k])));
      matrix.inertia = inertia;
    }
    if (borrows) {
      borrow_inertia(matrix, arena, mobility, scale, epsilon);
      matrix.inertia = inverses(arena, tree.nv, mobility);
    }
    matrix.row_weight = row_weight = inverses(arena, rows, scale);
    matrix.soft = compliance = S;
  }

  /// Scale the loops' rows by `row`, and set their compliance S, as the steps of closing.hpp require.
  void weigh_rows(const Tree& full_tree, const T* row, const T& S) {
    for (int i = 0; i < full_tree.loops.constraints; ++i) {
      const Constraint& c = pieces.tree.loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) J[c.entry + k * c.rows + r] *= row[c.row + r];
    }
    for (int r = 0; r < full_tree.loops.rows; ++r) {
      compliance[r] = S;
      scale[r] *= row[r] * row[r], row_weight[r] = T(1.0);
    }
  }
  /// Solve for x = [y; multipliers] of the full mechanism, for b = [f; g]. Returns the squared norm of the residual.
  T solve(const Tree& full_tree, Arena& arena, const Factor<T>& factor, const T* b, T* x, int corrections) const {
    T* y = arena.take<T>(pieces.tree.nv + matrix.rows);
    const T error = refine(matrix, arena, factor, lift(full_tree, arena, b), y, corrections);
    const T* lowered = lower(full_tree, arena, y);
    for (int k = 0; k < full_tree.nv + full_tree.loops.rows + full_tree.loops.motor_rows; ++k) x[k] = lowered[k];
    return error;
  }
  Factor<T> factorise(Arena& arena) const {
    T* mu = arena.take<T>(matrix.rows);
    for (int r = 0; r < matrix.rows; ++r)
      mu[r] = scale[r] * tolerance<T>(tolerances::regularisation, tolerances::regularisation_in_single);
    return sarrus::factorise(matrix, arena, epsilon, mu);
  }

  /// Return the mobility of each velocity of the tree (nv): its acceleration by a unit force along it, a diagonal entry of J M'^-1 J^T.
  T* joint_mobilities(Arena& arena, int nv) const {
    T* mobility = arena.take<T>(nv);
    for (int k = 0; k < nv; ++k) {
      const int at = pieces.velocity[k];
      mobility[k] = at >= 0 ? matrix.mobility[at] : scale[-1 - at];
    }
    return mobility;
  }

  /// Convert [f; g] of the full tree to [C^T f; g, 0]. B is T, or a packet of right-hand sides.
  template <class B> B* lift(const Tree& full_tree, Arena& arena, const B* b) const {
    const Tree& tree = pieces.tree;
    B *y = arena.take<B>(tree.nv + matrix.rows), *f = arena.take<B>(full_tree.nv);
    for (int k = 0; k < full_tree.nv; ++k) f[k] = weight ? select(weight[k] > T(0.0), b[k] / B(weight[k]), B(0.0)) : b[k];
    for (int k = 0; k < tree.nv; ++k) y[k] = pieces.from[k] >= 0 ? f[pieces.from[k]] : B(0.0);
    for (int r = 0; r < matrix.rows; ++r) y[tree.nv + r] = r < full_tree.loops.rows ? b[full_tree.nv + r] : B(0.0);
    B* force = arena.take<B>(tree.loops.rows + tree.loops.motor_rows);
    for (int r = 0; r < tree.loops.rows + tree.loops.motor_rows; ++r) force[r] = B(0.0);
    for (int k = 0; k < full_tree.nv; ++k)
      if (pieces.velocity[k] < 0) force[-1 - pieces.velocity[k]] = f[k];
    each_motion([&](const Constraint& c, const T* block) SARRUS_INLINED {
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) y[c.column[k]] += *block++ * force[c.row + r];
    });
    return y;
  }

  /// Convert [x'; y'] to [C x'; y] of the full tree.
  template <class B> const B* lower(const Tree& full_tree, Arena& arena, const B* y) const {
    const Tree& tree = pieces.tree;
    B *motion = arena.take<B>(tree.loops.rows + tree.loops.motor_rows),
      *x = arena.take<B>(full_tree.nv + full_tree.loops.rows + full_tree.loops.motor_rows);
    each_motion([&](const Constraint& c, const T* block) SARRUS_INLINED {
      for (int r = 0; r < c.rows; ++r) motion[c.row + r] = B(0.0);
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) motion[c.row + r] += *block++ * y[c.column[k]];
    });
    for (int k = 0; k < full_tree.nv; ++k) {
      x[k] = pieces.velocity[k] >= 0 ? y[pieces.velocity[k]] : motion[-1 - pieces.velocity[k]];
      if (weight) x[k] = select(weight[k] > T(0.0), x[k] / B(weight[k]), B(0.0));
    }
    for (int r = 0; r < full_tree.loops.rows; ++r) x[full_tree.nv + r] = y[tree.nv + r];
    const bool motors = matrix.rows > tree.loops.rows;  // motor rows are the first rows after those of dynamics
    for (int r = 0; r < full_tree.loops.motor_rows; ++r)
      x[full_tree.nv + full_tree.loops.rows + r] = motors ? y[tree.nv + tree.loops.rows + r] : B(0.0);
    return x;
  }

 private:
  /// Return the mobilities from which scales of rows are computed. For a floating body, the rotational mobility about its axis of largest inertia is
  /// used for all three axes. Reason: the mobility of a thin rod about its own axis is thousands of times larger, and would make the scale and the
  /// regularisation of its rows too large, although these rows hardly depend on that rotation.
  const T* least_about_any_axis(Arena& arena) const {
    const Tree& tree = pieces.tree;
    T* mobility = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) mobility[k] = matrix.mobility[k];
    for (int i = 1; i < tree.links; ++i) {
      T* turning = mobility + tree.link[i].iv;
      if (pieces.from[tree.link[i].iv] >= 0) continue;
      T least = select(turning[0] < turning[1], turning[0], turning[1]);
      least = select(turning[2] < least, turning[2], least);
      for (int k = 0; k < 3; ++k) turning[k] = least;
    }
    return mobility;
  }

  static constexpr double free_row = 1e30;  // compliance of an inactive row

  /// Return the diagonal of the metric: 1/weight^2 for velocities of joints that are not cut, zero for velocities of floating substructures.
  T* plain_metric(Arena& arena, const T* motors) const {
    const Tree& tree = pieces.tree;
    T* M = arena.take<T>(tree.loops.mass_first[tree.nv]);
    for (int k = 0; k < tree.loops.mass_first[tree.nv]; ++k) M[k] = T(0.0);
    for (int k = 0; k < tree.nv; ++k) {
      const int from = pieces.from[k];
      const T w = from >= 0 && weight ? weight[from] : T(1.0);
      M[tree.loops.mass_first[k]] = from < 0 ? T(0.0) : motors ? motors[from] : select(w > T(0.0), T(1.0) / (w * w), T(1.0));
    }
    return M;
  }
  /// Remove the fixed velocities of uncut joints from M and J.
  void apply_weights(T* M) const {
    const Tree& tree = pieces.tree;
    const auto weight_of = [&](int k) {
      return pieces.from[k] >= 0 ? select(weight[pieces.from[k]] > T(0.0), T(1.0), T(0.0)) : T(1.0);
    };
    for (int i = 0; i < tree.nv; ++i)
      for (int j = i; j >= 0; j = tree.column_parent[j], ++M)
        *M = i == j ? select(weight_of(i) > T(0.0), *M, T(1.0)) : *M * (weight_of(i) * weight_of(j));
    for (int i = 0; i < tree.loops.constraints + tree.loops.motor_constraints; ++i) {
      const Constraint& c = tree.loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) J[c.entry + k * c.rows + r] *= weight_of(c.column[k]);
    }
  }

  template <class F> SARRUS_INLINE void each_motion(F f) const {
    const Loops& loops = pieces.tree.loops;
    for (int i = pieces.first_motion; i < loops.constraints + loops.motor_constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      f(c, static_cast<const T*>(J + c.entry));
    }
  }
};

}  // namespace sarrus
