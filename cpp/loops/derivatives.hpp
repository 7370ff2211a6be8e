// Derivatives of forward dynamics with loop constraints. Along a direction of the state,
//
//   [M J^T; J 0] [Da; -Dlambda] = [Dtau - D(M a + h) + DJ^T lambda; D gamma - DJ a]
//
// with the matrix and the factor of the forward solution. The right-hand side contains the rates of inverse dynamics and of the rows, computed with
// dual numbers (dynamics/derivatives.hpp). For plain trees with plain loop joints and many directions, the recursions of rnea_derivatives.hpp and
// row_derivatives.hpp compute these rates instead. Several right-hand sides are solved at once, in lanes.
//
// Off the loops, dependent rows are inconsistent, so no derivative exists. With `tangent`, directions stay on the loops to first order. Changes of v
// are projected onto the motions that the loops allow, by P = 1 - M^-1 J^T (J M^-1 J^T)^+ J; displacements of q by the same formula with the position
// rows of J. If q moves along P d, v follows with least kinetic energy so that J v = c remains satisfied:
//
//   Dv = -M^-1 J^T (J M^-1 J^T)^+ (DJ v - Dc)
//
// The rank of P is the number of degrees of freedom. An M-orthonormal basis L of its range is sufficient: P = L L^T M, and the inverse of M on the
// loops is L L^T.
//
//   cost    with `tangent` O(bodies) and four solves per degree of freedom; otherwise O(bodies) and two solves per velocity
#pragma once

#include <optional>

#include "../dynamics/aba.hpp"
#include "../dynamics/crba.hpp"
#include "../dynamics/derivatives.hpp"
#include "../dynamics/ltdl.hpp"
#include "../mechanism/scatter.hpp"
#include "constrained_dynamics.hpp"
#include "row_derivatives.hpp"

namespace sarrus {

/// Derivatives of accelerations with respect to q, v and tau (nv x nv each). displacement, change: columns of P, the directions of the derivatives by
/// q and by v. velocity: the change of v that accompanies each displacement of q. residual (2 x nv): relative inconsistency of each derivative by q
/// and by v.
template <class T> struct ForwardDerivatives {
  T *q, *v, *tau, *displacement, *change, *velocity, *residual;
  static int size(int nv) { return nv * (6 * nv + 2); }
  static ForwardDerivatives over(int nv, T* out) {
    const int n = nv * nv;
    return {out, out + n, out + 2 * n, out + 3 * n, out + 4 * n, out + 5 * n, out + 6 * n};
  }
};

/// Return true if row r of a constraint restricts positions, and not only velocities.
inline bool holds_position(const Constraint& c, int r) {
  return visit_constraint(c.kind, [r](const auto& kind) { return kind.holonomic(r); });
}

/// Factorised equation, either at one state, for several right-hand sides [forces (nv); rows] in lanes; or at several states in lanes, with one
/// right-hand side per state.
template <class R, class T = double> class SensitivityEquation {
 public:
  using Truth = decltype(T() < T());

  const T *a, *lambda = nullptr;
  T error = T(0.0);  // relative residual of the state, or a larger value if an inconsistency makes derivatives invalid
  T solved = T(0.0);  // relative residual of its accelerations
  T rounding = T(0.0);  // relative change of the state's accelerations by rounding errors of the rows
  bool dependent = false;  // true if rows depend on one another in any of the states
  bool is_tight = false;  // true if the factor solves without corrections
  bool is_independent = false;  // true if the factor proves that no row depends on other rows

  /// Compute the accelerations and the factor; also the multipliers, unless the caller does this `later` with find_multipliers() or
  /// take_multipliers().
  SensitivityEquation(const Tree& tree, Arena& arena, const LoopInput<T>& in, bool later = false) : tree_(tree) {
    T* acceleration = arena.take<T>(tree.nv);
    a = acceleration;
    equation_.emplace(loop_equation(tree, arena, in));
    solution_.emplace(solve_tightly(*equation_, arena, equation_->b));
    const LoopSolution<T>& solution = *solution_;
    all_.emplace(Factored{equation_->solved(), solution.factor});
    if (in.off) check_gap(*equation_, arena, solution, *in.off);
    for (int k = 0; k < tree.nv; ++k) acceleration[k] = solution.x[k];
    solved = error = solution.error;
    const T size = equation_->terms + in_metric(equation_->solved(), solution.y);
    const T moved = moved_by_rounding(*equation_, arena, solution.factor, size);
    rounding = sqrt(moved / select(size > T(0.0), size, T(1.0)));
    const T least = select(is_near_singular(moved, size), T(tolerances::contradiction), T(0.0));
    error = select(least > error, least, error);
    // corrections are unnecessary where derivatives are exact to rounding. The relative change of a solution by mu is regularisation / (least eigenvalue
    // of the rows), and moved / (size entry_rounding^2) estimates the inverse of that eigenvalue; therefore this change is at most 5e-12
    const bool borrows = equation_->epsilon || equation_->pieces;
    const auto exact = moved < size * T(square(tolerances::regular));
    is_tight = !borrows && !any(select(exact, T(0.0), T(1.0)) > T(0.0));
    is_independent = !borrows && !any(least_pivot(*equation_, solution) < T(tolerances::independent));
    hold_positions(arena);
    if (!later) is_independent ? take_multipliers(arena) : find_multipliers(arena, depend(arena));
  }
  /// Use the multipliers of the solution, not those of least norm. Valid if the caller needs only J^T lambda.
  void take_multipliers(Arena& arena) { find_multipliers(arena, T(0.0) > T(0.0)); }

  void find_multipliers(Arena& arena, const Truth& rows_depend) {
    const int rows = tree_.loops.rows;
    T* multipliers = arena.take<T>(rows);
    lambda = multipliers, dependent = any(rows_depend);
    for (int r = 0; r < rows; ++r) multipliers[r] = -solution_->x[tree_.nv + r];
    if (!dependent) return;
    T *least = arena.take<T>(rows), left = T(0.0);
    const T at_best = least_multipliers(tree_, arena, *equation_, *solution_, least, left);
    for (int r = 0; r < rows; ++r) multipliers[r] = select(rows_depend, least[r], multipliers[r]);
    error = select(both(rows_depend, at_best > error), at_best, error);
  }

  int unknowns() const { return tree_.nv + tree_.loops.rows; }
  bool holds_velocities_only() const { return holding_.has_value(); }  // true if some rows constrain only velocities
  bool uses_fronts() const { return all_->matrix.plan.fronts; }
  /// J, in blocks.
  const T* J() const { return equation_->matrix.J; }
  T terms() const { return equation_->terms; }
  /// Return the dense M if the equation does not contain the complete M (because loop joints have armature, or substructures are used); otherwise
  /// null.
  const T* composed_mass_matrix(Arena& arena, const T* q) const {
    if (!equation_->pieces && tree_.loops.rotor_rows == 0) return nullptr;
    T* M = arena.take<T>(tree_.nv * tree_.nv);
    crba(tree_, arena, q, M);
    return M;
  }
  /// Compute Mx = M x for motions x in lanes. M: result of composed_mass_matrix(), or null for the tree's M.
  template <class S> void momentum(const T* M, const S* x, S* Mx) const {
    const int n = tree_.nv;
    for (int i = 0; i < n; ++i) Mx[i] = S(0.0);
    for (int i = 0; i < n && M; ++i)
      for (int k = 0; k < n; ++k) Mx[i] += x[k] * S(M[i * n + k]);
    if (M) return;
    const Saddle<T>& matrix = equation_->matrix;
    const T* entry = matrix.M;
    for (int i = 0; i < n; ++i) {
      S sum = Mx[i] + x[i] * S(*entry++);
      const int entries = matrix.entries(i);
      for (int k = 1, j = tree_.column_parent[i]; k < entries; ++k, j = tree_.column_parent[j], ++entry)
        sum += x[j] * S(*entry), Mx[j] += x[i] * S(*entry);
      Mx[i] = sum;
    }
  }
  T inertia(int k) const { return inverse_or_zero(equation_->matrix.mobility[k]); }
  T row_weight(int r) const { return equation_->matrix.row_weight[r]; }
  /// Return the entry of row r in a pseudo-random right-hand side, by which dependent rows are detected: for these the equation is inconsistent, and
  /// a residual remains.
  T probe(int r) const { return T(scattered(tree_.nv + r)) / sqrt(row_weight(r)); }

  /// Solve for b; returns the relative residual. `terms` (unknowns): squared norms of the terms of b; if null, no residual is computed. S is R, the
  /// packet type of several right-hand sides, or T for a single one. `positions`: use position rows only. `least`: squared norm below which b is
  /// rounding.
  template <class S>
  S solve(Arena& arena, const S* b, const S* terms, S* x, bool positions = false, const S& least = S(0.0)) const {
    const Arena::Scope scope(arena);
    const Factored& by = positions && holding_ ? *holding_ : *all_;
    const int n = by.matrix.plan.unknowns;
    const S* lifted;
    if (equation_->pieces) {
      lifted = equation_->pieces->lift(tree_, arena, b);
    } else {
      S* with_rotors = arena.take<S>(n);
      for (int k = 0; k < n; ++k) with_rotors[k] = k < unknowns() ? b[k] : S(0.0);
      lifted = with_rotors;
    }
    S* y = arena.take<S>(n);
    const S left = refined(arena, by, lifted, y, terms != nullptr);
    const S* lowered = equation_->pieces ? equation_->pieces->lower(tree_, arena, y) : y;
    for (int k = 0; k < unknowns(); ++k) x[k] = lowered[k];
    if (!terms) return S(0.0);
    S size = S(0.0);
    for (int k = 0; k < tree_.nv; ++k) size += terms[k] * S(equation_->matrix.mobility[k]);
    for (int r = 0; r < tree_.loops.rows; ++r) size += terms[tree_.nv + r] * S(equation_->matrix.row_weight[r]);
    size = select(size > least, size, least);
    return sqrt(left / select(size > S(0.0), size, S(1.0)));
  }

 private:
  struct Factored {
    Saddle<T> matrix;
    Factor<T> factor;
  };

  Truth depend(Arena& arena) const {
    const Arena::Scope scope(arena);
    const int n = unknowns();
    T *b = arena.take<T>(n), *terms = arena.take<T>(n);
    for (int k = 0; k < n; ++k) {
      b[k] = k < tree_.nv ? T(0.0) : probe(k - tree_.nv);
      terms[k] = b[k] * b[k];
    }
    return solve(arena, static_cast<const T*>(b), static_cast<const T*>(terms), arena.take<T>(n)) > T(tolerances::contradiction);
  }

  /// Factorise a second time for position rows only: rows that constrain only velocities become compliant.
  void hold_positions(Arena& arena) {
    constexpr double anything = 1e30;
    const Saddle<T>& matrix = all_->matrix;
    T* soft = nullptr;
    for (int i = 0; i < tree_.loops.constraints; ++i) {
      const Constraint& c = tree_.loops.constraint[i];
      for (int r = 0; r < c.rows; ++r) {
        if (holds_position(c, r)) continue;
        if (!soft) {
          soft = arena.take<T>(matrix.rows);
          for (int k = 0; k < matrix.rows; ++k) soft[k] = matrix.soft ? matrix.soft[k] : T(0.0);
        }
        soft[c.row + r] = T(anything) / matrix.row_weight[c.row + r];
      }
    }
    if (!soft) return;
    holding_.emplace(*all_);
    holding_->matrix.soft = soft;
    T* mu = arena.take<T>(matrix.rows);
    for (int k = 0; k < matrix.rows; ++k) mu[k] = T(tolerances::regularisation) / matrix.row_weight[k];
    const T* epsilon = equation_->pieces ? equation_->pieces->epsilon : equation_->epsilon;
    holding_->factor = factorise(holding_->matrix, arena, epsilon, static_cast<const T*>(mu));
  }

  /// Solve with corrections. A factor by fronts uses the lanes for the rows of one right-hand side; right-hand sides in lanes are then solved one by
  /// one.
  template <class S> S refined(Arena& arena, const Factored& by, const S* b, S* y, bool shows_residual) const {
    const int n = by.matrix.plan.unknowns;
    if constexpr (!std::is_same_v<S, T>)
      if (by.matrix.plan.fronts) {
        S left = S(0.0);
        T *lane_b = arena.take<T>(n), *lane_y = arena.take<T>(n);
        for (int l = 0; l < width_of<S>; ++l) {
          const Arena::Scope scope(arena);
          for (int k = 0; k < n; ++k) lane_b[k] = lane(b[k], l);
          lane(left, l) = refined(arena, by, static_cast<const T*>(lane_b), lane_y, shows_residual);
          for (int k = 0; k < n; ++k) lane(y[k], l) = lane_y[k];
        }
        return left;
      }
    if (!is_tight || shows_residual)
      return refine(by.matrix, arena, by.factor, b, y, is_tight ? 0 : tolerances::most_corrections);
    std::copy(b, b + n, y);
    sarrus::solve(by.matrix.plan, by.factor, arena, y);
    return S(0.0);
  }

  const Tree& tree_;
  std::optional<LoopEquation<T>> equation_;
  std::optional<LoopSolution<T>> solution_;
  std::optional<Factored> all_, holding_;
};

/// Right-hand sides, and the squared norms of their terms.
template <class R> struct Sides {
  R *b, *terms;
  Sides(Arena& arena, int n) : b(arena.take<R>(n)), terms(arena.take<R>(n)) { clear(n); }
  void clear(int n) {
    for (int k = 0; k < n; ++k) b[k] = terms[k] = R(0.0);
  }
  SARRUS_INLINE void add(int k, const R& x) { b[k] += x, terms[k] += x * x; }
};

/// Call put(constraint, row, column, entry) for all entries of J.
template <class T, class Put> SARRUS_INLINE void each_entry_of_rows(const Loops& loops, const T* J, Put put) {
  for (int i = 0; i < loops.constraints; ++i) {
    const Constraint& c = loops.constraint[i];
    for (int k = 0; k < c.columns; ++k)
      for (int r = 0; r < c.rows; ++r) put(c, c.row + r, c.column[k], *J++);
  }
}

/// Rates of the terms of the equation at a motion (q, v, a) with multipliers lambda. R contains several directions of one state (T is double), or one
/// direction of each of several states (T is R).
template <class R, class T = double> class MotionRates {
 public:
  using Varied = sarrus::Varied<R, T>;

  MotionRates(const Tree& tree, Arena& arena, const LoopInput<T>& in, const T* a, const T* lambda)
      : tree_(tree), arena_(arena), in_(in), a_(a), lambda_(lambda) {}
  /// Precompute matrices of derivatives for many directions, if all forces of the model are covered by the recursions for plain trees. `bodies`: false
  /// if only turn_rows() is called.
  void prepare(bool bodies = true) {
    if (!is_plain_tree(tree_) || !has_plain_rows(tree_)) return;
    const RneaInput<T> in = {in_.q, in_.v, a_, {}, in_.wrenches, in_.wrench};
    const auto motion = TreeMotion<T>::at(tree_, arena_, in);
    if (bodies) {
      by_q_ = arena_.take<T>(tree_.nv * tree_.nv), by_v_ = arena_.take<T>(tree_.nv * tree_.nv);
      plain_tree_derivatives<R>(tree_, arena_, in, motion, by_q_, by_v_);
    }
    rows_.emplace(tree_, arena_, motion, lambda_);
  }

  /// Intermediate results, computed only if no matrices are precomputed.
  struct Kept {
    const T* y = nullptr;
    R* DJ_y = nullptr;  // (rows) DJ y
    R* force = nullptr;  // (nv) right-hand side
  };
  /// Add -D inverse dynamics, DJ^T lambda and D gamma - DJ a along these directions.
  void add(const Directions<R>& along, Sides<R>& side, const Kept& kept = {}) const {
    rows_ ? add_prepared(along, side) : add_rates(along, side, kept);
  }
  bool has_matrices() const { return rows_.has_value(); }
  /// Pass the entries of the matrices of add() to put_q(row, column, entry) and put_v(row, column, entry). Precomputed matrices are required.
  template <class PutQ, class PutV> void each_entry(PutQ put_q, PutV put_v) const {
    const int n = tree_.nv;
    const auto put = [&](int i, int j) SARRUS_INLINED { put_q(i, j, -by_q_[i * n + j]), put_v(i, j, -by_v_[i * n + j]); };
    for (int j = 0; j < n; ++j) {
      put(j, j);
      for (int i = tree_.column_parent[j]; i >= 0; i = tree_.column_parent[i]) put(i, j), put(j, i);
    }
    rows_->each_entry(
        [&](int row, int k, const T&, const T& by_q, const T& by_v) { put_q(n + row, k, -by_q), put_v(n + row, k, -by_v); },
        put_q);
  }
  /// Pass the entries of the matrix of turn_rows() to put(row, column, entry). Precomputed matrices are required.
  template <class Put> void each_turning_entry(Put put) const {
    rows_->each_entry([&](int row, int k, const T& rate, const T&, const T&) { put(row, k, -rate); }, [](int, int, const T&) {});
  }
  /// Add the change of c - J v along d, with constant v.
  void turn_rows(const R* d, Sides<R>& side) const {
    if (rows_) return rows_->velocities(d, [&](int row, const R& rate) SARRUS_INLINED { side.add(tree_.nv + row, -rate); });
    const R* none = nullptr;
    const Loops& loops = tree_.loops;
    const Varied time = still(in_.time);
    Varied *J = arena_.take<Varied>(loops.entries), *target = arena_.take<Varied>(loops.rows);
    ConstraintRows<Varied> row_output;
    row_output.J = J, row_output.target = target;
    constraint_rows(tree_, arena_,
                    place<Varied>(tree_, arena_, varied_configuration(tree_, arena_, in_.q, d), in_.time ? &time : nullptr,
                                  varied(arena_, loops.pfaffian_values, in_.pfaffian_values, none)),
                    row_output, 0, loops.constraints);
    for (int r = 0; r < loops.rows; ++r) side.add(tree_.nv + r, target[r].rate);
    each_entry_of_rows(loops, J, [&](const Constraint&, int row, int column, const Varied& entry) SARRUS_INLINED {
      side.add(tree_.nv + row, -entry.rate * R(in_.v[column]));
    });
  }

 private:
  static Varied still(const T* x) { return {x ? *x : T(0.0), R(0.0)}; }

  /// Add the products of the precomputed matrices. Entry (i, k) of the first two is nonzero only if one of the joints of the velocities i and k is on
  /// the path from the other to the ground.
  void add_prepared(const Directions<R>& along, Sides<R>& side) const {
    const int n = tree_.nv;
    R* needed = arena_.take<R>(n);
    for (int k = 0; k < n; ++k) needed[k] = R(0.0);
    const auto add = [&](const T* D, const R* d) {
      for (int j = 0; j < n && d; ++j) {
        needed[j] += d[j] * R(D[j * n + j]);
        for (int i = tree_.column_parent[j]; i >= 0; i = tree_.column_parent[i])
          needed[i] += d[j] * R(D[i * n + j]), needed[j] += d[i] * R(D[j * n + i]);
      }
    };
    add(by_q_, along.q), add(by_v_, along.v);
    for (int k = 0; k < n; ++k) side.add(k, -needed[k]);
    rows_->accelerations(along.q, along.v, [&](int row, const R& rate) SARRUS_INLINED { side.add(n + row, -rate); });
    if (along.q) rows_->forces(along.q, [&](int k, const R& rate) SARRUS_INLINED { side.add(k, rate); });
  }

  /// Compute the rates by inverse dynamics and the constraint rows on dual numbers.
  void add_rates(const Directions<R>& along, Sides<R>& side, const Kept& kept) const {
    Varied* tau = arena_.take<Varied>(tree_.nv);
    const auto motion = varied<R>(tree_, arena_, RneaInput<T>{in_.q, in_.v, a_, {}, in_.wrenches, in_.wrench}, along);
    const auto work = rnea(tree_, arena_, motion, tau);
    for (int k = 0; k < tree_.nv; ++k) side.add(k, -tau[k].rate);
    if (tree_.loops.rows > 0) add_rows(motion, work, along.q != nullptr, side, kept);
  }

  /// Add DJ^T lambda and D gamma - DJ a. For rows between bodies, gamma is evaluated with the accelerations of the bodies, so its value is already
  /// gamma - J a.
  void add_rows(const RneaInput<Varied>& motion, const RneaWork<Varied>& work, bool moves, Sides<R>& side,
                const Kept& kept) const {
    const Loops& loops = tree_.loops;
    const R* none = nullptr;
    const Varied time = still(in_.time);
    LoopState<Varied> state = {
        motion.q, motion.v, in_.time ? &time : nullptr, varied(arena_, loops.pfaffian_values, in_.pfaffian_values, none), nullptr,
        nullptr,  work.link};
    place(tree_, arena_, work.poses(), work.columns, state);
    Varied *J = arena_.take<Varied>(loops.entries), *gamma = arena_.take<Varied>(loops.rows);
    ConstraintRows<Varied> row_output;
    row_output.J = J, row_output.gamma = gamma;
    constraint_rows(tree_, arena_, state, row_output, 0, loops.constraints);
    for (int r = 0; r < loops.rows; ++r) side.add(tree_.nv + r, gamma[r].rate);
    for (int r = 0; r < loops.rows && kept.y; ++r) kept.DJ_y[r] = R(0.0);
    if (!moves) return;
    each_entry_of_rows(loops, J, [&](const Constraint& c, int row, int column, const Varied& entry) SARRUS_INLINED {
      side.add(column, entry.rate * R(lambda_[row]));
      if (c.child < 0) side.add(tree_.nv + row, -entry.rate * R(a_[column]));
      if (kept.y) kept.DJ_y[row] += entry.rate * R(kept.y[column]);
    });
  }

  const Tree& tree_;
  Arena& arena_;
  const LoopInput<T>& in_;
  const T *a_, *lambda_;
  T *by_q_ = nullptr, *by_v_ = nullptr;  // derivatives of inverse dynamics, if prepared
  std::optional<RowDerivatives<T>> rows_;
};

template <class R, class T = double> class ForwardSensitivity {
 public:
  using Kept = typename MotionRates<R, T>::Kept;

  /// `later`: see SensitivityEquation.
  ForwardSensitivity(const Tree& tree, Arena& arena, const LoopInput<T>& in, bool later = false)
      : tree_(tree), arena_(arena), in_(in), equation_(tree, arena, in, later) {
    if (!later) rate_at();
  }
  void find_multipliers(bool rows_depend) { equation_.find_multipliers(arena_, rows_depend), rate_at(); }
  void take_multipliers() { equation_.take_multipliers(arena_), rate_at(); }
  /// Precompute matrices of derivatives for many directions. Call after the multipliers are computed.
  void prepare() { rates_->prepare(); }

  T error() const { return equation_.error; }
  const SensitivityEquation<R, T>& equation() const { return equation_; }
  bool holds_velocities_only() const { return equation_.holds_velocities_only(); }

  /// Set the first nv entries of x (unknowns) to the projection P d of a displacement or a change of v onto the motions that the loops allow.
  void project(const R* d, bool displacement, R* x) const {
    const Arena::Scope scope(arena_);
    R* b = arena_.take<R>(equation_.unknowns());
    for (int k = 0; k < equation_.unknowns(); ++k) b[k] = R(0.0);
    each_entry_of_rows(tree_.loops, equation_.J(), [&](const Constraint&, int row, int column, const T& entry) SARRUS_INLINED {
      b[tree_.nv + row] += d[column] * R(entry);
    });
    equation_.template solve<R>(arena_, b, nullptr, x, displacement);
    for (int k = 0; k < tree_.nv; ++k) x[k] = d[k] - x[k];
  }

  /// Set the first nv entries of x (unknowns) to Dv, the change of v if q moves along d.
  void follow(const R* d, R* x) const {
    const Arena::Scope scope(arena_);
    Sides<R> side(arena_, equation_.unknowns());
    rates_->turn_rows(d, side);
    equation_.template solve<R>(arena_, side.b, nullptr, x);
  }

  /// Set x (unknowns) to Da and -Dlambda along these directions and changes of tau (null: none). Returns the relative residual, or zero if all rows
  /// are independent and therefore consistent. For `least` see SensitivityEquation::solve.
  R accelerate(const Directions<R>& along, const R* tau_rate, R* x, const R& least = R(0.0), const Kept& kept = {}) const {
    const Arena::Scope scope(arena_);
    Sides<R> side(arena_, equation_.unknowns());
    rates_->add(along, side, kept);
    for (int k = 0; k < tree_.nv && tau_rate; ++k) side.add(k, tau_rate[k]);
    for (int k = 0; k < tree_.nv && kept.force; ++k) kept.force[k] = side.b[k];
    return equation_.solve(arena_, side.b, equation_.is_independent ? nullptr : side.terms, x, false, least);
  }

  /// Set x (unknowns) to Da and -Dlambda for a change d of the forces.
  void push(const R* d, R* x) const {
    const Arena::Scope scope(arena_);
    R* b = arena_.take<R>(equation_.unknowns());
    for (int k = 0; k < equation_.unknowns(); ++k) b[k] = k < tree_.nv ? d[k] : R(0.0);
    equation_.template solve<R>(arena_, b, nullptr, x);
  }

 private:
  void rate_at() { rates_.emplace(tree_, arena_, in_, equation_.a, equation_.lambda); }

  const Tree& tree_;
  Arena& arena_;
  const LoopInput<T>& in_;
  SensitivityEquation<R, T> equation_;
  std::optional<MotionRates<R, T>> rates_;
};

/// Without loops: M Da = Dtau - D(M a + h). `inverse_dynamics` computes the derivatives of M a + h; it may use the poses of a recursion.
template <class T, class Inverse>
void tree_dynamics_derivatives(const Tree& tree, Arena& arena, const LoopInput<T>& in, const ForwardDerivatives<T>& out,
                               Inverse inverse_dynamics) {
  const int n = tree.nv;
  T *a = arena.take<T>(n), *L = arena.take<T>(n * n);
  const auto work = rnea(tree, arena, RneaInput<T>{in.q, in.v, zeros<T>(arena, n), {}, in.wrenches, in.wrench}, a);
  crba(tree, arena, in.q, work.poses(), work.columns, L);
  factorise(tree, arena, L);
  for (int k = 0; k < n; ++k) a[k] = in.tau[k] - a[k];
  solve_inward(tree, L, a, 1), solve_outward(tree, L, a, 1);
  inverse_dynamics(RneaInput<T>{in.q, in.v, a, {}, in.wrenches, in.wrench}, work, out.q, out.v);
  const RowSolver<T> by_mass(tree, arena, L);
  std::fill(out.displacement, out.displacement + 2 * n * n, T(0.0)), std::fill(out.velocity, out.residual + 2 * n, T(0.0));
  for (int k = 0; k < n; ++k) out.displacement[k * n + k] = out.change[k * n + k] = T(1.0);
  using R = Along<T>;
  by_mass.template invert<R>(arena, out.tau);
  const int count =
      (2 * n + columns_of<T, R> - 1) / columns_of<T, R>;  // packets of right-hand sides: those of q, then those of v
  R* X = arena.take<R>(n * count);
  std::fill(X, X + n * count, R(0.0));
  for (int k = 0; k < n; ++k) {
    T* row = reinterpret_cast<T*>(X + k * count);
    for (int j = 0; j < n; ++j) row[j] = -out.q[k * n + j], row[n + j] = -out.v[k * n + j];
  }
  by_mass.solve(X, count);
  for (int k = 0; k < n; ++k) {
    const T* row = reinterpret_cast<const T*>(X + k * count);
    std::copy(row, row + n, out.q + k * n), std::copy(row + n, row + 2 * n, out.v + k * n);
  }
}
template <class R>
void tree_dynamics_derivatives(const Tree& tree, Arena& arena, const LoopInput<double>& in,
                               const ForwardDerivatives<double>& out) {
  tree_dynamics_derivatives(
      tree, arena, in, out, [&](const RneaInput<double>& motion, const RneaWork<double>& work, double* by_q, double* by_v) {
        if (!is_plain_tree(tree)) return inverse_dynamics_derivatives<R>(tree, arena, motion, by_q, by_v);
        plain_tree_derivatives<R>(tree, arena, motion, TreeMotion<double>(tree, arena, motion, work.poses(), work.columns), by_q,
                                  by_v);
      });
}

/// Basis of all motions that the loops allow: P = L L^T M with M-orthonormal columns of L. A displacement, or a change of v, is denoted by d. Its
/// components in the basis are L^T M d, and its allowed part is P d = L L^T M d.
class AllowedMotions {
 public:
  int count = 0;
  const double *L, *shares;  // L^T and L^T M, each count x nv and row-major

  /// Compute the basis: project pseudo-random motions, one per lane, until two of the projections depend on the earlier ones.
  template <class R>
  AllowedMotions(const Tree& tree, Arena& arena, const ForwardSensitivity<R>& state, const double* M, bool displacements)
      : nv_(tree.nv) {
    double *basis = arena.take<double>(nv_ * nv_), *with_mass = arena.take<double>(nv_ * nv_);
    L = basis, shares = with_mass;
    const Arena::Scope scope(arena);
    R *d = arena.take<R>(nv_), *x = arena.take<R>(state.equation().unknowns()), *Mx = arena.take<R>(nv_);
    double* reach = arena.take<double>(nv_);
    for (int k = 0; k < nv_; ++k) reach[k] = std::sqrt(inverse_or_zero(state.equation().inertia(k)));  // 0: no inertia
    const auto project = [&] {
      state.project(d, displacements, x);
      state.equation().momentum(M, x, Mx);
    };
    int old = 0;
    for (int sample = 0; old < 2 && count < nv_; sample += width_of<R>) {
      for (int k = 0; k < nv_; ++k)
        for (int l = 0; l < width_of<R>; ++l) lane(d[k], l) = scattered_anew(k + (sample + l) * nv_) * reach[k];
      project();
      for (int l = 0; l < width_of<R> && old < 2 && count < nv_; ++l) old += !add(x, Mx, l, basis, with_mass);
    }
    // often only a small part of a pseudo-random motion is allowed, but its rounding error is relative to the complete motion; near singular
    // positions that error matters, so the basis is projected a second time
    const int freedom = count;
    count = 0;
    for (int first = 0; first < freedom; first += width_of<R>) {
      const int used_lanes = std::min(width_of<R>, freedom - first);
      for (int k = 0; k < nv_; ++k)
        for (int l = 0; l < width_of<R>; ++l) lane(d[k], l) = basis[(first + (l < used_lanes ? l : 0)) * nv_ + k];
      project();
      for (int l = 0; l < used_lanes; ++l) add(x, Mx, l, basis, with_mass);
    }
  }

  /// Call visit(first, count, d) for all motions of the basis: d contains motions first .. first + count - 1, one per lane.
  template <class R, class Visit> void each(Arena& arena, Visit visit) const {
    for (int first = 0; first < count; first += width_of<R>) {
      const Arena::Scope scope(arena);
      R* d = arena.take<R>(nv_);
      const int used_lanes = std::min(width_of<R>, count - first);
      for (int k = 0; k < nv_; ++k)
        for (int l = 0; l < width_of<R>; ++l) lane(d[k], l) = l < used_lanes ? L[(first + l) * nv_ + k] : 0.0;
      visit(first, used_lanes, d);
    }
  }
  /// Compute out = X L^T M. X (rows x count, row-major) contains the derivatives along the motions of the basis.
  void spread(const double* X, int rows, double* out) const { products(X, rows, shares, out); }
  /// Compute out = L L^T, the inverse of M on the loops.
  void inverse_inertia(double* out) const { products(L, nv_, L, out); }

 private:
  void products(const double* X, int rows, const double* Y, double* out) const {
    // four motions are summed at once, because each row of the result is then traversed a quarter as often
    constexpr int together = 4;
    for (int r = 0; r < rows; ++r) {
      std::fill(out + r * nv_, out + (r + 1) * nv_, 0.0);
      int i = 0;
      for (; i + 1 < count; i += together) {
        const double* from[together];
        double share[together];
        for (int l = 0; l < together; ++l) {
          const bool is_used = i + l < count;
          from[l] = Y + (is_used ? i + l : i) * nv_, share[l] = is_used ? -X[(i + l) * rows + r] : 0.0;
        }
        subtract_scaled(out + r * nv_, from, share, nv_);
      }
      if (i < count) subtract_scaled(out + r * nv_, Y + i * nv_, -X[i * rows + r], nv_);
    }
  }

  /// Append lane l of x to the basis, after removing its components along the motions that the basis already contains. Mx is M x. Returns false if
  /// nothing independent remains.
  template <class R> bool add(const R* x, const R* Mx, int l, double* basis, double* with_mass) {
    double *column = basis + count * nv_, *mass_column = with_mass + count * nv_;
    for (int k = 0; k < nv_; ++k) column[k] = lane(x[k], l), mass_column[k] = lane(Mx[k], l);
    const auto size = [&] { return std::sqrt(std::max(scalar_product(column, mass_column, nv_), 0.0)); };
    const double total = size();
    for (int twice = 0; twice < 2; ++twice)
      for (int i = 0; i < count; ++i) {
        const double along = scalar_product(shares + i * nv_, column, nv_);
        subtract_scaled(column, L + i * nv_, along, nv_), subtract_scaled(mass_column, shares + i * nv_, along, nv_);
      }
    const double left = size();
    if (!(left > tolerances::present * total) || !(total > tolerances::present)) return false;
    const double inverse = 1.0 / left;
    for (int k = 0; k < nv_; ++k) column[k] *= inverse, mass_column[k] *= inverse;
    ++count;
    return true;
  }

  int nv_;
};

/// Compute derivatives along all motions of the basis. Returns the largest relative residual.
template <class R>
double derivatives_along_loops(const Tree& tree, Arena& arena, const LoopInput<double>& in, const ForwardSensitivity<R>& state,
                               const ForwardDerivatives<double>& out) {
  const int n = tree.nv, unknowns = n + tree.loops.rows;
  const double* M = state.equation().composed_mass_matrix(arena, in.q);
  const AllowedMotions changes(tree, arena, state, M, false);
  std::optional<AllowedMotions> holonomic_motions;
  if (state.holds_velocities_only()) holonomic_motions.emplace(tree, arena, state, M, true);
  const AllowedMotions& displacements = holonomic_motions ? *holonomic_motions : changes;
  // for each direction, first the derivative by a displacement, then the derivative by a change of v
  const int moves = displacements.count, all = moves + changes.count;
  double *with = arena.take<double>(moves * n), *by = arena.take<double>(all * n), worst[2] = {0.0, 0.0};
  R *d = arena.take<R>(n), *change = arena.take<R>(n), *x = arena.take<R>(unknowns);
  const auto load = [n](const double* columns, int first, int last, R* to, int lane_of_first = 0) {
    for (int l = 0; l < last - first; ++l)
      for (int k = 0; k < n; ++k) lane(to[k], lane_of_first + l) = columns[(first + l) * n + k];
  };
  const auto keep = [n](const R* x, int first, int last, double* to) {
    for (int l = 0; l < last - first; ++l)
      for (int k = 0; k < n; ++k) to[(first + l) * n + k] = lane(x[k], l);
  };
  for (int first = 0; first < moves; first += width_of<R>) {
    const int last = std::min(first + width_of<R>, moves);
    std::fill(d, d + n, R(0.0));
    load(displacements.L, first, last, d);
    state.follow(d, x);
    keep(x, first, last, with);
  }
  for (int first = 0; first < all; first += width_of<R>) {
    const int last = std::min(first + width_of<R>, all), moving = std::clamp(moves - first, 0, last - first);
    std::fill(d, d + n, R(0.0)), std::fill(change, change + n, R(0.0));
    load(displacements.L, first, first + moving, d), load(with, first, first + moving, change);
    load(changes.L, first + moving - moves, last - moves, change, moving);
    const R left = state.accelerate({moving > 0 ? d : nullptr, change}, nullptr, x);
    for (int l = 0; l < last - first; ++l) worst[l >= moving] = std::max(worst[l >= moving], lane(left, l));
    keep(x, first, last, by);
  }
  const double *by_q = by, *by_v = by + moves * n;
  displacements.spread(displacements.L, n, out.displacement);
  displacements.spread(by_q, n, out.q);
  displacements.spread(with, n, out.velocity);
  if (holonomic_motions)
    changes.spread(changes.L, n, out.change);
  else
    std::copy(out.displacement, out.displacement + n * n, out.change);
  changes.spread(by_v, n, out.v);
  changes.inverse_inertia(out.tau);
  std::fill(out.residual, out.residual + n, worst[0]), std::fill(out.residual + n, out.residual + 2 * n, worst[1]);
  return std::max(worst[0], worst[1]);
}

/// Compute all derivatives. Returns the relative error bound of the accelerations or, if larger, the inconsistency of the derivatives along the
/// loops.
template <class R>
double forward_dynamics_derivatives(const Tree& tree, Arena& arena, const LoopInput<double>& in, bool tangent,
                                    const ForwardDerivatives<double>& out) {
  if (tree.loops.rows + tree.loops.rotor_rows == 0) {
    tree_dynamics_derivatives<R>(tree, arena, in, out);
    return 0.0;
  }
  const bool along = tangent && tree.loops.rows > 0;
  ForwardSensitivity<R> state(tree, arena, in, along);
  // multipliers other than those of least norm are valid too: a self-stress of dependent rows contributes nothing to J^T lambda, and Dlambda
  // compensates its contribution to DJ^T lambda
  if (along) state.take_multipliers();
  state.prepare();
  if (along) {
    const double worst = derivatives_along_loops(tree, arena, in, state, out);
    return worst > tolerances::contradiction ? std::max(worst, state.error()) : state.error();
  }
  const int n = tree.nv, unknowns = n + tree.loops.rows;
  std::fill(out.velocity, out.velocity + n * n, 0.0);
  each_direction<R>(tree, arena, [&](int first, int count, const R* unit) {
    R* x = arena.take<R>(unknowns);
    const auto keep = [&](const R* columns, double* to) { store_columns(tree, n, columns, first, count, to); };
    state.push(unit, x);
    keep(x, out.tau);
    for (double* columns : {out.displacement, out.change}) keep(unit, columns);
    const R by_q = state.accelerate({unit, nullptr}, nullptr, x);
    keep(x, out.q);
    const R by_v = state.accelerate({nullptr, unit}, nullptr, x);
    keep(x, out.v);
    for (int l = 0; l < count; ++l) out.residual[first + l] = lane(by_q, l), out.residual[n + first + l] = lane(by_v, l);
  });
  return state.error();
}

/// Compute the rate of a along a displacement of q and changes of v and tau (null: none); with `tangent` along their projections onto the motions
/// that the loops allow. Returns the relative residual.
inline double accelerate_along(const Tree& tree, Arena& arena, const ForwardSensitivity<double>& state, const double* q,
                               const double* v, const double* tau, bool tangent, double* rate) {
  const int n = tree.nv, unknowns = n + tree.loops.rows;
  double *x = arena.take<double>(unknowns), *displacement = arena.take<double>(unknowns), *change = arena.take<double>(unknowns),
         *with = arena.take<double>(unknowns);
  std::copy(q, q + n, displacement), std::copy(v, v + n, change);
  if (tangent && tree.loops.rows > 0) {
    state.project(q, true, displacement);
    state.project(v, false, change);
    state.follow(displacement, with);
    for (int k = 0; k < n; ++k) change[k] += with[k];
  }
  const double left = state.accelerate({displacement, change}, tau, x);
  std::copy(x, x + n, rate);
  return left;
}

/// Compute the rate (nv) of a along one direction of q, v and tau (nv each). Returns the error of the state, or the relative residual if it is so
/// large that no derivative exists.
inline double forward_dynamics_jvp(const Tree& tree, Arena& arena, const LoopInput<double>& in, const double* q, const double* v,
                                   const double* tau, bool tangent, double* rate) {
  const int n = tree.nv;
  if (tree.loops.rows + tree.loops.rotor_rows == 0) {
    double *a = arena.take<double>(n), *needs = arena.take<double>(n);
    const auto work = aba(tree, arena, AbaInput<double>{in.q, in.v, in.tau, in.wrenches, in.wrench}, a);
    inverse_dynamics_jvp(tree, arena, RneaInput<double>{in.q, in.v, a, {}, in.wrenches, in.wrench}, {q, v}, needs);
    for (int k = 0; k < n; ++k) needs[k] = tau[k] - needs[k];
    accelerate_from_rest(tree, arena, work, needs, rate);
    return 0.0;
  }
  const ForwardSensitivity<double> state(tree, arena, in);
  const double left = accelerate_along(tree, arena, state, q, v, tau, tangent, rate);
  return left > tolerances::contradiction ? std::max(left, state.error()) : state.error();
}

}  // namespace sarrus
