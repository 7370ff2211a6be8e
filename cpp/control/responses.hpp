// Responses to generalised forces: accelerations and loop multipliers.
#pragma once

#include <optional>

#include "../dynamics/ltdl.hpp"
#include "../loops/constrained_dynamics.hpp"
#include "cascade.hpp"
#include "tasks/task.hpp"

namespace sarrus {

/// Accelerations and multipliers due to forces, computed from the saddle equation or, for a tree, from its mass matrix.
template <class T> struct TaskResponses {
  /// Largest relative change of a solution by one more correction. Above it, the solution has too few digits, and the position is singular.
  static constexpr double singular_correction = 1e-7;

  const Tree& tree;
  Arena& arena;
  T* b;  // right-hand side: -h, then gamma
  const T* L = nullptr;  // factor of the mass matrix of a tree; null if there are loops
  const T* mobility;  // 1/M_ii
  T* inertia;  // M_ii
  const bool checks;  // true: estimate the precision of responses even if the loads of loops are small
  std::optional<LoopEquation<T>> e{};
  Factor<T> factor{};
  T correction = T(0.0);  // largest relative change of a response by one more correction

  TaskResponses(const Tree& t, Arena& a, const LoopInput<T>& in, bool checks_digits)
      : tree(t), arena(a), inertia(a.take<T>(t.nv)), checks(checks_digits) {
    if (tree.loops.constraints > 0) {
      e.emplace(loop_equation(tree, arena, in));
      b = e->b, factor = factorise_tightly(*e, arena), mobility = e->matrix.mobility;
      for (int k = 0; k < tree.nv; ++k) inertia[k] = inverse_or_none(mobility[k]);
      return;
    }
    b = arena.take<T>(tree.nv);
    rnea(tree, arena, RneaInput<T>{in.q, in.v, zeros<T>(arena, tree.nv)}, b);
    for (int k = 0; k < tree.nv; ++k) b[k] = -b[k];
    T* M = arena.take<T>(tree.nv * tree.nv);
    crba(tree, arena, in.q, M);
    T* inverse = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) inertia[k] = M[k * tree.nv + k], inverse[k] = inverse_or_none(inertia[k]);
    mobility = inverse;
    factorise(tree, arena, M);
    L = M;
  }

  /// Compute a and lambda (rows) for a generalised force (nv) and gamma (rows; null: zero).
  SARRUS_NOINLINE void operator()(const T* force, const T* gamma, T* a, T* lambda) {
    if (L) return each(force, 1, a, lambda);
    const Arena::Scope scope(arena);
    const int nv = tree.nv;
    T *x = arena.take<T>(nv + e->matrix.rows), *solution = arena.take<T>(e->solved().plan.unknowns);
    for (int k = 0; k < nv + e->matrix.rows; ++k) x[k] = k < nv ? force[k] : T(0.0);
    for (int r = 0; gamma && r < tree.loops.rows; ++r) x[nv + r] = gamma[r];
    const T* right = e->lifted(arena, x);
    refine(e->solved(), arena, factor, right, solution, 60);
    const T* answer = e->lowered(arena, solution);
    for (int k = 0; k < nv; ++k) a[k] = answer[k];
    for (int r = 0; r < tree.loops.rows; ++r) lambda[r] = -answer[nv + r];
    if (checks || strained(force, lambda)) estimate_correction(right, solution);
  }

  /// Compute responses to `count` generalised forces. If the loads of loops are far larger than the applied forces, the effect of the regularisation
  /// becomes noticeable, and is removed by corrections. Accelerations of immobile joints are rounding errors, and are set to zero.
  void answers(const T* forces, int count, T* a, T* lambda) {
    each(forces, count, a, lambda);
    if (L) return;
    constexpr double still = 1e-11;
    const int nv = tree.nv, rows = tree.loops.rows;
    for (int k = 0; k < count; ++k) {
      const T* force = forces + k * nv;
      if (coarse() || strained(force, lambda + k * rows)) (*this)(force, nullptr, a + k * nv, lambda + k * rows);
      const T acts = weighed_square(force, mobility, nv);
      const auto rests = weighed_square(a + k * nv, inertia, nv) < acts * tolerance<T>(still * still, 1e-10);
      if (any(rests))
        for (int i = 0; i < nv; ++i) a[k * nv + i] = select(rests, T(0.0), a[k * nv + i]);
    }
  }

  /// Return the residual J a - gamma, relative to the forces: the applied ones, and those of the unknowns x along B (count x nv).
  T residual_ratio(const T* a, const T* B, const T* x, int count) {
    if (L) return T(0.0);
    const Arena::Scope scope(arena);
    const int nv = tree.nv, rows = tree.loops.rows;
    T *r = arena.take<T>(rows), *tau = arena.take<T>(nv);
    for (int i = 0; i < rows; ++i) r[i] = b[nv + i];
    add_motion_along_rows(tree, e->matrix.J, a, T(-1.0), r);
    for (int i = 0; i < nv; ++i) tau[i] = T(0.0);
    for (int k = 0; k < count; ++k) subtract_scaled(tau, B + k * nv, -x[k], nv);
    const T error = weighed_square(r, e->matrix.row_weight, rows), terms = e->terms + weighed_square(tau, mobility, nv);
    return select(terms < T(1e300), sqrt(error * inverse_or_none(terms)), T(0.0));
  }

  /// Compute responses to `count` generalised forces: one after another or, for a single state, several at once in lanes.
  SARRUS_NOINLINE void each(const T* forces, int count, T* a, T* lambda) {
    int k = 0;
    if constexpr (std::is_same_v<T, double>) {
      using P = Packet<sizeof(WideDoubles) / sizeof(double)>;
      for (; k + 1 < count && (L || !(e->pieces || e->matrix.plan.fronts)); k += P::width)
        together<P>(forces + k * tree.nv, std::min(P::width, count - k), a + k * tree.nv, lambda + k * tree.loops.rows);
    }
    for (; k < count; ++k) together<T>(forces + k * tree.nv, 1, a + k * tree.nv, lambda + k * tree.loops.rows);
  }

 private:
  /// Return true if code for single precision is recorded. There the effect of the regularisation is noticeable at every state.
  static bool coarse() { return any(tolerance<T>(0.0, 1.0) > T(0.0)); }
  /// Return true if the loads of loops are far larger than the applied forces, which happens near singular positions.
  bool strained(const T* force, const T* lambda) const {
    constexpr double strong = 30.0;
    const T carried = weighed_square(lambda, e->scale, tree.loops.rows);
    return any(carried > weighed_square(force, mobility, tree.nv) * T(strong * strong));
  }

  /// Estimate the relative change of a solution by one more correction.
  void estimate_correction(const T* right, const T* solution) {
    const Arena::Scope scope(arena);
    const Saddle<T>& matrix = e->solved();
    T *r = arena.take<T>(matrix.plan.unknowns), moved = T(0.0), size = T(0.0);
    residual(matrix, right, solution, r);
    sarrus::solve(matrix.plan, factor, arena, r);
    for (int k = 0; k < matrix.tree.nv; ++k) {
      const T inverse = inverse_or_none(matrix.mobility[k]);
      moved += square(r[k]) * inverse, size += square(solution[k]) * inverse + square(right[k]) * matrix.mobility[k] * T(1e-6);
    }
    const T share = sqrt(moved * inverse_or_none(size));
    correction = select(share > correction, share, correction);
  }

  /// Return the entry of right-hand side l: lane l of x, or x itself if it is not a packet.
  template <class P> static T at(const P& x, int l) {
    if constexpr (std::is_same_v<P, T>)
      return x;
    else
      return lane(x, l);
  }
  template <class P> static void put(P& x, int l, const T& value) {
    if constexpr (std::is_same_v<P, T>)
      x = value;
    else
      lane(x, l) = value;
  }

  template <class P> void together(const T* forces, int count, T* a, T* lambda) {
    const Arena::Scope scope(arena);
    const int nv = tree.nv, rows = tree.loops.rows, all = L ? nv : nv + e->matrix.rows;
    P* x = arena.take<P>(all);
    for (int i = 0; i < all; ++i) x[i] = P(0.0);
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < nv; ++i) put<P>(x[i], l, forces[l * nv + i]);
    if (L) {
      solve_inward(tree, L, x, 1), solve_outward(tree, L, x, 1);
    } else if constexpr (std::is_same_v<P, T>) {
      solve_once(*e, arena, factor, x);
    } else {
      sarrus::solve(e->matrix.plan, factor, arena, x);
    }
    for (int l = 0; l < count; ++l) {
      for (int i = 0; i < nv; ++i) a[l * nv + i] = at<P>(x[i], l);
      for (int r = 0; r < rows; ++r) lambda[l * rows + r] = -at<P>(x[nv + r], l);
    }
  }
};

}  // namespace sarrus
