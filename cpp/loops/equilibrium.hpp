// Static equilibrium of gravity, springs, a constant force tau and the constraint forces of the loops,
//
//   f(q) = tau - g(q),   f + J^T lambda = 0,   phi = 0,
//
// and its stiffness. N is an orthonormal basis of the motions that J allows (scaled as in closing.hpp). The imbalance is N^T f, and
//
//   K = N^T d/dq (g - J^T lambda) N,   (K + K^T)/2 = V diag(stiffness) V^T,   compliance = N K^-1 N^T
//
// K is the Hessian of the potential energy on the loops: an equilibrium is stable if all stiffnesses are positive. K is not symmetric if rows restrict
// velocities only (rolling), or if tau acts in axes that rotate with a joint, because such a force has no potential. A step moves along each mode V, and
// then closes the loops. In the search for a minimum, the step along a mode is the imbalance divided by |stiffness|, and damping increases until the
// energy decreases. In the search for any equilibrium it is divided by the stiffness (Newton's method), and damping increases until N^T f decreases.
// If rounding hides changes of the energy, N^T f has to decrease in both searches.
//
// For one state at a time. K is found by central differences, one motion of N per lane. Dense; cost O(nv^2 rows) a step.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "../dynamics/momentum.hpp"
#include "closing.hpp"
#include "pivoted_qr.hpp"

namespace sarrus {

struct EquilibriumInput {
  // tau (null: zero); column, row: scales of velocities (0: fixed joint) and of rows (0: row that restricts velocities only), as in closing.hpp
  const double *tau, *column, *row;
  bool minimum;
  double steps;
  const double *time, *pfaffian_values;
};

/// Results. Only the first `freedom` entries (or rows) of stiffness, imbalance and motion are set; the remaining ones are zero.
struct EquilibriumOutput {
  // holding_effort (nv): f + J^T lambda; at a fixed joint, the negative of the effort that fixes it
  double *q, *multipliers, *holding_effort;
  double *freedom, *gap;
  double *stiffness, *imbalance, *motion;  // of each mode: stiffness (nv), imbalance (nv), velocities (nv x nv)
  double* compliance;  // (nv x nv) change of the configuration by small forces, without motions that have no stiffness
};

/// Compute g - tau - J^T lambda at q, and J (blocks).
template <class T> void unbalanced(const Tree& tree, Arena& arena, const T* q, const T* time, const T* pfaffian_values,
                                   const double* tau, const double* lambda, T* J, T* out) {
  const Arena::Scope scope(arena);
  const T* rest = zeros<T>(arena, tree.nv);
  const auto work = rnea(tree, arena, RneaInput<T>{q, rest, rest}, out);
  for (int k = 0; k < tree.nv && tau; ++k) out[k] -= T(tau[k]);
  LoopState<T> state = {q, nullptr, time, pfaffian_values, nullptr, nullptr, nullptr};
  place(tree, arena, work.poses(), work.columns, state);
  ConstraintRows<T> row_output;
  row_output.J = J;
  constraint_rows(tree, arena, state, row_output, 0, tree.loops.constraints);
  if (!lambda) return;
  T* push = arena.take<T>(tree.loops.rows);
  for (int r = 0; r < tree.loops.rows; ++r) push[r] = T(-lambda[r]);
  add_constraint_forces(tree, J, push, out);
}

/// Jacobi's method: replace A (n x n, symmetric) by a diagonal matrix of its eigenvalues; the rows of V are eigenvectors.
inline void diagonalise(int n, double* A, double* V) {
  for (int i = 0; i < n * n; ++i) V[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
  const auto rotate = [](double& a, double& b, double c, double s) {
    const double x = a;
    a = c * x - s * b, b = s * x + c * b;
  };
  for (int sweep = 0; sweep < 30; ++sweep) {
    double off = 0.0, size = 0.0;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j) (i == j ? size : off) += square(A[i * n + j]);
    if (off <= 1e-32 * size) return;
    for (int p = 0; p < n; ++p)
      for (int q = p + 1; q < n; ++q) {
        if (A[p * n + q] == 0.0) continue;
        const double turn = (A[q * n + q] - A[p * n + p]) / (2.0 * A[p * n + q]);
        const double t = (turn < 0.0 ? -1.0 : 1.0) / (std::abs(turn) + std::sqrt(1.0 + turn * turn));
        const double c = 1.0 / std::sqrt(1.0 + t * t), s = t * c;
        for (int k = 0; k < n; ++k) rotate(A[k * n + p], A[k * n + q], c, s);
        for (int k = 0; k < n; ++k) rotate(A[p * n + k], A[q * n + k], c, s);
        for (int k = 0; k < n; ++k) rotate(V[p * n + k], V[q * n + k], c, s);
      }
  }
}

/// Forces and stiffness at one configuration, in the scaled velocities of the joints that are not fixed. L is a packet type, which computes one
/// difference quotient per lane.
template <class L> class Balance {
 public:
  int moving = 0, freedom = 0;
  double *q, *lambda, *f, *N, *open, *r, *stiffness, *mode, *K;  // open, r: imbalance along N, and along the modes
  double U = 0.0, imbalance = 0.0, size = 0.0, stiffest = 0.0, gap = 0.0;
  bool answers = false;  // true if the stiffness is accurate enough for a result, not only for a step

  Balance(const Tree& tree, Arena& arena, const EquilibriumInput& in)
      : tree_(tree), arena_(arena), in_(in), index_(arena.take<int>(tree.nv)) {
    for (int k = 0; k < tree.nv; ++k)
      if (in.column[k] > 0.0) index_[moving++] = k;
    const auto take = [&](int n) { return arena.take<double>(n); };
    q = take(tree.nq), lambda = take(tree.loops.rows), f = take(tree.nv), open = take(moving), r = take(moving),
    stiffness = take(moving);
    N = take(moving * moving), mode = take(moving * moving), K = take(moving * moving);
  }

  /// Compute forces, allowed motions and energy at q.
  void evaluate() {
    const Arena::Scope scope(arena_);
    const Loops& loops = tree_.loops;
    const int rows = loops.rows;
    double *J = arena_.take<double>(loops.entries), *A = arena_.take<double>(rows * moving), *b = arena_.take<double>(moving);
    int* place_of = arena_.take<int>(tree_.nv);
    unbalanced<double>(tree_, arena_, q, in_.time, in_.pfaffian_values, in_.tau, nullptr, J, f);
    std::fill(place_of, place_of + tree_.nv, -1), std::fill(A, A + rows * moving, 0.0);
    for (int i = 0; i < moving; ++i) place_of[index_[i]] = i, b[i] = f[index_[i]] * in_.column[index_[i]];
    // rows that constrain only velocities have no scale; they are weighted with 1
    const double* entry = J;
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int l = 0; l < c.rows; ++l, ++entry)
          if (const int at = place_of[c.column[k]]; at >= 0)
            A[(c.row + l) * moving + at] = *entry * in_.column[c.column[k]] * weight(c.row + l);
    }
    for (int i = 0; i < moving; ++i) size = std::max(size, std::abs(b[i]));
    const PivotedQr loop(moving, rows, A, arena_);
    loop.solve(b, lambda);
    for (int l = 0; l < rows; ++l) lambda[l] *= weight(l);
    freedom = moving - loop.rank;
    imbalance = 0.0;
    for (int i = 0; i < freedom; ++i) {
      double* n = N + i * moving;
      std::fill(n, n + moving, 0.0), n[loop.rank + i] = 1.0;
      loop.times(n);
      open[i] = dot_product(moving, n, b), imbalance += square(open[i]);
    }
    double* push = arena_.take<double>(rows);
    for (int l = 0; l < rows; ++l) push[l] = -lambda[l];
    add_constraint_forces(tree_, J, push, f);
    const Kinematics<double> k = Kinematics<double>::over(tree_, arena_.take<double>(Kinematics<double>::size(tree_)));
    kinematics<double>(tree_, arena_, q, nullptr, nullptr, k);
    U = potential_energy<double>(tree_, k, q);
  }

  /// Return true if the next step is so short that the stiffness will hardly change.
  bool nearly() const { return imbalance < square(1e-10 * size); }
  /// Compute the stiffness along allowed motions, its modes, and the imbalance r along the modes. If `last`, compute twelve correct digits; otherwise
  /// nine, which suffice for a step.
  void stiffen(bool last) {
    const Arena::Scope scope(arena_);
    answers = last;
    struct Side {
      double reach, weight;
    };
    // Central differences: of second order for steps, with an error below 1e-9; of fourth order with longer displacements for results, with an error
    // below 1e-12.
    constexpr double h = 1e-5, H = 3e-4;
    static constexpr Side two[] = {{h, 0.5 / h}, {-h, -0.5 / h}},
                          four[] = {
                              {H, 2.0 / 3.0 / H}, {-H, -2.0 / 3.0 / H}, {2.0 * H, -1.0 / 12.0 / H}, {-2.0 * H, 1.0 / 12.0 / H}};
    constexpr int lanes = width_of<L>;
    const int nv = tree_.nv, values = in_.pfaffian_values ? tree_.loops.pfaffian_values : 0;
    double *symmetric = arena_.take<double>(freedom * freedom), *V = arena_.take<double>(freedom * freedom);
    L *at = arena_.take<L>(tree_.nq), *displaced = arena_.take<L>(tree_.nq), *x = arena_.take<L>(nv), *force = arena_.take<L>(nv),
      *slope = arena_.take<L>(nv), *J = arena_.take<L>(tree_.loops.entries), *value = arena_.take<L>(values);
    for (int k = 0; k < tree_.nq; ++k) at[k] = L(q[k]);
    for (int k = 0; k < values; ++k) value[k] = L(in_.pfaffian_values[k]);
    const L time = L(in_.time ? *in_.time : 0.0);
    for (int first = 0; first < freedom; first += lanes) {
      const int count = std::min(lanes, freedom - first);
      for (int k = 0; k < nv; ++k) slope[k] = L(0.0);
      for (const Side* side = answers ? four : two; side < (answers ? four + 4 : two + 2); ++side) {
        for (int k = 0; k < nv; ++k) x[k] = L(0.0);
        for (int l = 0; l < count; ++l)
          for (int i = 0; i < moving; ++i)
            lane(x[index_[i]], l) = side->reach * in_.column[index_[i]] * N[(first + l) * moving + i];
        integrate<L>(tree_, at, x, displaced);
        unbalanced<L>(tree_, arena_, displaced, in_.time ? &time : nullptr, values ? value : nullptr, nullptr, lambda, J, force);
        for (int k = 0; k < nv; ++k) slope[k] += force[k] * L(side->weight);
      }
      for (int l = 0; l < count; ++l)
        for (int j = 0; j < freedom; ++j) {
          double sum = 0.0;
          for (int i = 0; i < moving; ++i) sum += N[j * moving + i] * in_.column[index_[i]] * lane(slope[index_[i]], l);
          K[(first + l) * freedom + j] = sum;
        }
    }
    for (int i = 0; i < freedom; ++i)
      for (int j = 0; j < freedom; ++j) symmetric[i * freedom + j] = 0.5 * (K[i * freedom + j] + K[j * freedom + i]);
    diagonalise(freedom, symmetric, V);
    for (int i = 0; i < freedom; ++i) {
      stiffness[i] = symmetric[i * freedom + i], r[i] = dot_product(freedom, V + i * freedom, open);
      for (int k = 0; k < moving; ++k) {
        mode[i * moving + k] = 0.0;
        for (int j = 0; j < freedom; ++j) mode[i * moving + k] += V[i * freedom + j] * N[j * moving + k];
      }
    }
    stiffest = 0.0;
    for (int i = 0; i < freedom; ++i) stiffest = std::max(stiffest, std::abs(stiffness[i]));
  }

  /// Set x (nv) to the step, whose component along each mode is limited. Returns the expected decrease of the energy.
  double step(double damping, double* x) const {
    const double least = std::max(tolerances::negligible * stiffest, 1e-300);
    double falls = 0.0;
    std::fill(x, x + tree_.nv, 0.0);
    for (int i = 0; i < freedom; ++i) {
      const double newton = -r[i] / (std::max(std::abs(stiffness[i]), least) + damping);
      const double signed_step = in_.minimum || stiffness[i] > 0.0 ? newton : -newton;
      const double along = std::clamp(signed_step, -tolerances::longest_step, tolerances::longest_step);
      falls -= along * (r[i] + 0.5 * stiffness[i] * along);
      for (int k = 0; k < moving; ++k) x[index_[k]] += along * mode[i * moving + k] * in_.column[index_[k]];
    }
    return falls;
  }

  /// Return the imbalance of a mode relative to the tolerance of an equilibrium: 1e-8 of the mode's stiffness, or 1e-12 of the largest force or
  /// stiffness if that is larger.
  double share_open(int i) const {
    const double allowed = std::max(1e-8 * std::abs(stiffness[i]), 1e-12 * std::max(size, stiffest));
    return r[i] == 0.0 ? 0.0 : r[i] / std::max(allowed, 1e-300);
  }
  bool exact() const {
    for (int i = 0; i < freedom; ++i)
      if (std::abs(share_open(i)) > 1e-5) return false;
    return true;
  }

  /// Write the results. Destroys K.
  void answer(const EquilibriumOutput& out) const {
    const int nv = tree_.nv;
    std::copy(q, q + tree_.nq, out.q), std::copy(lambda, lambda + tree_.loops.rows, out.multipliers),
        std::copy(f, f + nv, out.holding_effort);
    std::fill(out.stiffness, out.stiffness + 2 * nv + nv * nv, 0.0);
    *out.freedom = freedom, *out.gap = gap;
    for (int i = 0; i < freedom; ++i) {
      out.stiffness[i] = stiffness[i], out.imbalance[i] = share_open(i);
      for (int k = 0; k < moving; ++k) out.motion[i * nv + index_[k]] = mode[i * moving + k] * in_.column[index_[k]];
    }
    const PivotedQr stiff(freedom, freedom, K, arena_, tolerances::no_stiffness);
    std::fill(out.compliance, out.compliance + nv * nv, 0.0);
    double *force = arena_.take<double>(freedom), *along = arena_.take<double>(freedom);
    for (int k = 0; k < moving; ++k) {  // the effect of a unit force along each velocity
      for (int i = 0; i < freedom; ++i) force[i] = N[i * moving + k] * in_.column[index_[k]];
      stiff.solve(force, along);
      for (int i = 0; i < freedom; ++i)
        for (int m = 0; m < moving; ++m)
          out.compliance[index_[m] * nv + index_[k]] += along[i] * N[i * moving + m] * in_.column[index_[m]];
    }
  }

 private:
  double weight(int row) const { return in_.row[row] > 0.0 ? in_.row[row] : 1.0; }

  const Tree& tree_;
  Arena& arena_;
  const EquilibriumInput& in_;
  int* index_;
};

/// Find an equilibrium from a configuration q with closed loops. Results refer to the last configuration.
template <class L>
void equilibrium(const Tree& tree, Arena& arena, const EquilibriumInput& in, const double* q, const EquilibriumOutput& out) {
  const ClosureOptions<double> options = {in.column, in.row, 1e-2, 10.0, 1e300};
  Balance<L> first(tree, arena, in), second(tree, arena, in), *current = &first, *trial = &second;
  double *x = arena.take<double>(tree.nv), damping = 0.0;
  normalize(tree, q, current->q);
  const auto closed = [&](Balance<L>& at) {
    const Arena::Scope scope(arena);
    return at.gap = close(tree, arena, options, in.time, in.pfaffian_values, at.q);
  };
  closed(*current);
  current->evaluate(), current->stiffen(current->nearly());
  for (int k = 0; k < in.steps && !current->exact(); ++k) {
    const double falls = current->step(damping, x);
    integrate(tree, current->q, x, trial->q);
    trial->size = current->size;
    bool better = closed(*trial) < tolerances::closed, ends = false;
    if (better) {
      trial->evaluate();
      double work = 0.0;
      difference(tree, current->q, trial->q, x);
      for (int i = 0; i < tree.nv && in.tau; ++i) work += in.tau[i] * x[i];
      const double fallen = current->U - trial->U + work, rounding = 1e-11 * (std::abs(current->U) + current->size);
      better = trial->imbalance < current->imbalance;
      if (in.minimum && falls > rounding)
        better = fallen > 1e-4 * falls;
      else
        ends = !better && std::abs(falls) < rounding;
    }
    if (better) {
      std::swap(current, trial);
      current->stiffen(current->nearly());
      damping = damping > 1e-6 * current->stiffest ? 0.1 * damping : 0.0;
    } else if (ends || damping > tolerances::stuck * std::max(current->stiffest, current->size)) {
      break;
    } else {
      damping = std::max(4.0 * damping, 1e-3 * std::max(current->stiffest, current->size));
    }
  }
  if (!current->answers) current->stiffen(true);
  current->answer(out);
}

}  // namespace sarrus
