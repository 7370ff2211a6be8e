// Linearised motion near a state, in independent coordinates: y of the configuration and u of the velocity, as many of each as the loops have degrees
// of freedom. With deviations y and u, the configuration is q = integrate(q0, G y), and v changes by W u, where
//
//   J_q G = 0, E_q G = 1     J W = 0, E_v W = 1
//
// J_q are the position rows of J; E_q and E_v select the velocities that belong to the coordinates; E_v consists of the first rows of E_q. If q moves
// along G y while E_v v remains constant, v changes by V_y = Dv - W E_v Dv (Dv: least kinetic energy, derivatives.hpp). A deviation d of q has the
// rate d-dot = dv + [d, v]:
//
//   [y-dot]   [E_q (V_y + [G, v])         E_q W   ] [y]
//   [u-dot] = [E_v (Da along (G, V_y))  E_v Da W  ] [u]     and by forces u-dot = E_v (M^-1 within the loops) d
//
// Derivatives are computed along these degrees of freedom only, one per lane at a time.
//
//   cost    O(bodies) and four solves per degree of freedom; if rows may be dependent or the coordinates are chosen here, also dense in the loops'
//           rows (loop_motions.hpp)
#pragma once

#include "derivatives.hpp"
#include "reduced_dynamics.hpp"

namespace sarrus {

/// Independent coordinates: indices of k velocities for the configuration, of which the first m are also coordinates of the velocity.
struct LinearCoordinates {
  int k = 0, m = 0;
  int* place;

  /// `coordinates` (nv) lists the velocities that belong to the coordinates: index of each, counted from 1; negative if it is a coordinate of the
  /// configuration only; 0 ends the list. Null: the coordinates are chosen later.
  LinearCoordinates(int nv, Arena& arena, const double* coordinates) : place(arena.take<int>(nv)) {
    for (int i = 0; i < nv && coordinates; ++i) {
      if (coordinates[i] == 0.0) continue;
      place[k++] = static_cast<int>(std::clamp(std::abs(coordinates[i]), 1.0, static_cast<double>(nv))) - 1,
      m += coordinates[i] > 0.0;
    }
  }
  void all(int nv) {
    k = m = nv;
    for (int i = 0; i < nv; ++i) place[i] = i;
  }
  void tell(double* chosen) const {
    for (int i = 0; i < k; ++i) chosen[i] = i < m ? place[i] + 1 : -(place[i] + 1);
  }
};

/// Results, contiguous in the output row of a state; its length is linear_equations_size (kernels/operation_sizes.hpp).
struct LinearOutput {
  double* exact;  // 1: A is exact; 0.5: derivatives exist, but are sensitive to rounding of q; 0: derivatives do not exist
  // [0]: degrees of freedom of the velocity; [1]: how many of them the coordinates determine; [2], [3]: the same two numbers for the configuration.
  // If the coordinates do not determine all of them, all other outputs are zero.
  double* freedom;
  double *rate, *G, *W;  // rate (k + m): E_q v, then E_v a; G (nv, k); W (nv, m)
  double *A, *E;  // A (k + m, k + m); E (k + m, nv), of which the first k rows are zero

  static LinearOutput over(int nv, int k, int m, double* x) {
    double *G = x + 5 + k + m, *W = G + nv * k, *A = W + nv * m;
    return {x, x + 1, x + 5, G, W, A, A + (k + m) * (k + m)};
  }
};

/// Errors of a linearisation: the relative residual of the state's equation; the largest residual of the derivatives, which exist only if it is
/// small; the relative change of the accelerations by rounding.
struct LinearErrors {
  double state = 0.0, derivatives = 0.0, rounding = 0.0;
};

template <class R> class LinearEquations {
 public:
  /// `numbers`: output, initially zero.
  LinearEquations(const Tree& tree, Arena& arena, const LoopInput<double>& in, LinearCoordinates& y, bool chooses,
                  double* numbers)
      : tree_(tree), arena_(arena), in_(in), y_(y), chooses_(chooses), numbers_(numbers) {}

  /// Linearise a mechanism without loops: every velocity is a coordinate.
  LinearErrors linearize_tree() {
    const int nv = tree_.nv;
    if (chooses_) y_.all(nv);
    make_room(nv, nv);
    out_.freedom[1] = y_.m, out_.freedom[3] = y_.k;
    if (y_.k != nv || y_.m != nv) return {0.0, undetermined};
    const auto D = ForwardDerivatives<double>::over(nv, arena_.take<double>(ForwardDerivatives<double>::size(nv)));
    double* a = arena_.take<double>(nv);
    aba(tree_, arena_, AbaInput<double>{in_.q, in_.v, in_.tau, in_.wrenches, in_.wrench}, a);
    tree_dynamics_derivatives<R>(tree_, arena_, in_, D);
    std::fill(G_, G_ + nv * nv, 0.0), std::fill(W_, W_ + nv * nv, 0.0);
    for (int c = 0; c < nv; ++c) G_[c * nv + y_.place[c]] = W_[c * nv + y_.place[c]] = 1.0;
    put_motions(a);
    for (int j = 0; j < nv; ++j) {
      const int row = y_.place[j] * nv;
      for (int c = 0; c < nv; ++c) A(nv + j, c) = D.q[row + y_.place[c]], A(nv + j, nv + c) = D.v[row + y_.place[c]];
      std::copy(D.tau + row, D.tau + row + nv, out_.E + (nv + j) * nv);
    }
    return {};
  }

  /// Linearise with loops. `column`, `row`: scales as in closing.hpp.
  LinearErrors linearize_loops(const double* column, const double* row) {
    ForwardSensitivity<R> state(tree_, arena_, in_, true);
    bool by_forces = !chooses_ && move_by_forces(state), dependent = false, determined = true;
    if (!by_forces) {
      const double* J = state.equation().J();
      const LoopMotions motions(tree_, arena_, J, column, row);
      std::optional<LoopMotions> holonomic_motions;
      if (state.holds_velocities_only()) holonomic_motions.emplace(tree_, arena_, rows_of_positions(J), column, row);
      const LoopMotions& displacements = holonomic_motions ? *holonomic_motions : motions;
      const double *N = motions.basis(), *N_q = holonomic_motions ? displacements.basis() : N;
      if (chooses_) choose(motions, N, displacements, N_q), by_forces = move_by_forces(state);
      if (!by_forces) {
        make_room(motions.freedom, displacements.freedom);
        determined = depend_on(N, column, y_.m, out_.freedom, W_) && depend_on(N_q, column, y_.k, out_.freedom + 2, G_);
      }
      dependent = tree_.nv - motions.freedom < tree_.loops.rows;
    }
    state.find_multipliers(dependent);
    if (!determined) return {state.equation().solved, undetermined};
    state.prepare();
    const LinearErrors errors = {state.equation().solved, state.error(), state.equation().rounding};
    put_motions(state.equation().a);
    if (!by_forces) push(state);
    std::fill(V_, V_ + tree_.nv * y_.k, 0.0);
    if (!rests()) follow(state);
    double worst = 0.0;
    for (int first = 0; first < y_.k + y_.m; first += width_of<R>) worst = std::max(worst, accelerate(state, first));
    return {errors.state, worst > tolerances::contradiction ? std::max(worst, errors.derivatives) : errors.derivatives,
            errors.rounding};
  }

 private:
  // error of a state whose motion the coordinates do not determine, so that derivatives do not exist
  static constexpr double undetermined = 1.0;

  double& A(int i, int j) const { return out_.A[i * (y_.k + y_.m) + j]; }

  /// Allocate results. Call after the coordinates are set.
  void make_room(int freedom, int freedom_of_positions) {
    const int nv = tree_.nv;
    out_ = LinearOutput::over(nv, y_.k, y_.m, numbers_);
    out_.freedom[0] = freedom, out_.freedom[2] = freedom_of_positions;
    G_ = arena_.take<double>(nv * y_.k), V_ = arena_.take<double>(nv * y_.k), W_ = arena_.take<double>(nv * y_.m);
  }

  /// Compute E, then G and W from E, which contains motions that the loops allow: W = E^T (E_v E^T)^-1. Returns false if the rows may be dependent, or
  /// if the coordinates may not determine the motion.
  bool move_by_forces(const ForwardSensitivity<R>& state) {
    const auto& equation = state.equation();
    const int nv = tree_.nv, m = nv - tree_.loops.rows;
    if (y_.m != m || y_.k != m || !equation.is_independent || !equation.is_tight || state.holds_velocities_only()) return false;
    make_room(m, m);
    push(state);
    std::copy(out_.E + m * nv, out_.E + 2 * m * nv, W_);
    for (int i = 0; i < m; ++i) {
      const int place = y_.place[i];
      double* motion = W_ + i * nv;
      if (!(motion[place] > tolerances::independent * out_.E[(m + i) * nv + place])) {
        std::fill(out_.E, out_.E + 2 * m * nv, 0.0);
        return false;
      }
      const double inverse = 1.0 / motion[place];
      for (int k = 0; k < nv; ++k) motion[k] *= inverse;
      for (int j = 0; j < m; ++j)
        if (j != i) add_multiple(nv, -W_[j * nv + place], motion, W_ + j * nv);
    }
    std::copy(W_, W_ + m * nv, G_);
    out_.freedom[1] = out_.freedom[3] = m;
    return true;
  }

  /// J (blocks) in which rows that constrain only velocities are zero.
  const double* rows_of_positions(const double* J) const {
    const Loops& loops = tree_.loops;
    double* kept = arena_.take<double>(loops.entries);
    std::copy(J, J + loops.entries, kept);
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      for (int k = 0; k < c.columns * c.rows; ++k)
        if (!holds_position(c, k % c.rows)) kept[c.entry + k] = 0.0;
    }
    return kept;
  }

  /// Choose the coordinates that determine the velocities with the best conditioning, then the additional coordinates of the configuration.
  void choose(const LoopMotions& motions, const double* N, const LoopMotions& displacements, const double* N_q) {
    const int nv = tree_.nv, m = motions.freedom, k = displacements.freedom;
    double* P = arena_.take<double>(nv * nv);
    int* shown = arena_.take<int>(nv);
    motions.projector(N, P);
    showing(nv, P, m, 0, y_.place);
    y_.k = y_.m = m;
    if (N_q == N) return;
    std::copy(y_.place, y_.place + m, shown);
    displacements.projector(N_q, P);
    showing(nv, P, k, m, shown);
    for (int i = 0; i < k && y_.k < nv; ++i)
      if (std::find(y_.place, y_.place + m, shown[i]) == y_.place + m) y_.place[y_.k++] = shown[i];
  }

  /// X = N (E N)^-1 for the first `count` coordinates; each motion is contiguous. `answer`: [0] degrees of freedom (input), [1] how many of them the
  /// coordinates determine (output). Returns false if they do not determine all.
  bool depend_on(const double* N, const double* column, int count, double* answer, double* X) const {
    const int nv = tree_.nv, freedom = static_cast<int>(answer[0]);
    const Arena::Scope scope(arena_);
    double *EN = arena_.take<double>(count * freedom), *target = arena_.take<double>(count),
           *along = arena_.take<double>(freedom);
    for (int j = 0; j < freedom; ++j)
      for (int i = 0; i < count; ++i) EN[j * count + i] = N[j * nv + y_.place[i]] / column[y_.place[i]];
    const PivotedQr chosen(count, freedom, EN, arena_, tolerances::negligible, 1.0);
    answer[1] = chosen.rank;
    if (chosen.rank < freedom || count > freedom) return false;
    std::fill(X, X + nv * count, 0.0);
    for (int i = 0; i < count; ++i) {
      std::fill(target, target + count, 0.0), target[i] = 1.0 / column[y_.place[i]];
      chosen.solve(target, along);
      for (int j = 0; j < count; ++j) add_multiple(nv, along[j], N + j * nv, X + i * nv);
    }
    return true;
  }

  /// Store G, W, the rates, and those entries of A that follow from G and W.
  void put_motions(const double* a) const {
    const int nv = tree_.nv, k = y_.k, m = y_.m;
    double* bracket_with_v = arena_.take<double>(nv);
    for (int c = 0; c < k; ++c) {
      for (int i = 0; i < nv; ++i) out_.G[i * k + c] = G_[c * nv + i];
      bracket(tree_, G_ + c * nv, in_.v, bracket_with_v);
      for (int i = 0; i < k; ++i) A(i, c) = bracket_with_v[y_.place[i]];
      out_.rate[c] = in_.v[y_.place[c]];
    }
    for (int j = 0; j < m; ++j) {
      for (int i = 0; i < nv; ++i) out_.W[i * m + j] = W_[j * nv + i];
      for (int i = 0; i < k; ++i) A(i, k + j) = W_[j * nv + y_.place[i]];
      out_.rate[k + j] = a[y_.place[j]];
    }
  }

  /// Return true if v does not depend on q.
  bool rests() const {
    bool rests = true;
    for (int k = 0; k < tree_.nv; ++k) rests &= in_.v[k] == 0.0;
    for (int i = 0; i < tree_.loops.constraints; ++i) rests &= !tree_.loops.constraint[i].driven;
    return rests;
  }
  R* displacements(int first, int count) const {
    R* d = arena_.take<R>(tree_.nv);
    for (int i = 0; i < tree_.nv; ++i) {
      d[i] = R(0.0);
      for (int l = 0; l < count; ++l) lane(d[i], l) = G_[(first + l) * tree_.nv + i];
    }
    return d;
  }

  /// Compute E by symmetry, from the accelerations under a unit force along each u.
  void push(const ForwardSensitivity<R>& state) const {
    const int nv = tree_.nv;
    for (int first = 0; first < y_.m; first += width_of<R>) {
      const Arena::Scope scope(arena_);
      const int count = std::min(width_of<R>, y_.m - first);
      R *force = arena_.take<R>(nv), *x = arena_.take<R>(state.equation().unknowns());
      for (int i = 0; i < nv; ++i) force[i] = R(0.0);
      for (int l = 0; l < count; ++l) lane(force[y_.place[first + l]], l) = 1.0;
      state.push(force, x);
      for (int l = 0; l < count; ++l)
        for (int i = 0; i < nv; ++i) out_.E[(y_.k + first + l) * nv + i] = lane(x[i], l);
    }
  }
  /// Compute V_y.
  void follow(const ForwardSensitivity<R>& state) const {
    const int nv = tree_.nv;
    for (int first = 0; first < y_.k; first += width_of<R>) {
      const Arena::Scope scope(arena_);
      const int count = std::min(width_of<R>, y_.k - first);
      R* x = arena_.take<R>(state.equation().unknowns());
      state.follow(displacements(first, count), x);
      for (int l = 0; l < count; ++l) {
        double* V = V_ + (first + l) * nv;
        for (int i = 0; i < nv; ++i) V[i] = lane(x[i], l);
        for (int j = 0; j < y_.m; ++j) add_multiple(nv, -lane(x[y_.place[j]], l), W_ + j * nv, V);
        for (int i = 0; i < y_.k; ++i) A(i, first + l) += V[y_.place[i]];
      }
    }
  }

  /// Compute columns of A. Returns the largest relative residual.
  double accelerate(const ForwardSensitivity<R>& state, int first) const {
    const Arena::Scope scope(arena_);
    const int nv = tree_.nv, k = y_.k;
    const int count = std::min(width_of<R>, y_.k + y_.m - first), moving = std::clamp(y_.k - first, 0, count);
    R *d = moving > 0 ? displacements(first, moving) : nullptr, *change = arena_.take<R>(nv),
      *x = arena_.take<R>(state.equation().unknowns());
    // the residual is compared with the change of the forces in a rotation by 1 rad, not with their change along the motion itself: some motions,
    // such as a common translation, change the forces by rounding errors only
    R least = R(0.0);
    for (int i = 0; i < nv; ++i) {
      change[i] = R(0.0);
      for (int l = 0; l < count; ++l) lane(change[i], l) = l < moving ? V_[(first + l) * nv + i] : W_[(first + l - k) * nv + i];
      least += (change[i] * change[i] + (d ? d[i] * d[i] : R(0.0))) * R(tree_.per_unit_square[i]);
    }
    const R left = state.accelerate({d, change}, nullptr, x, least * R(state.equation().terms()));
    double worst = 0.0;
    for (int l = 0; l < count; ++l) {
      worst = std::max(worst, lane(left, l));
      for (int j = 0; j < y_.m; ++j) A(k + j, first + l) = lane(x[y_.place[j]], l);
    }
    return worst;
  }

  const Tree& tree_;
  Arena& arena_;
  const LoopInput<double>& in_;
  LinearCoordinates& y_;
  bool chooses_;
  double* numbers_;
  LinearOutput out_{};
  double *G_ = nullptr, *V_ = nullptr, *W_ = nullptr;  // columns, each contiguous
};

/// Linearise. If `chooses` is true, the best-conditioned coordinates are chosen and stored in y; otherwise those in y are used.
template <class R>
LinearErrors linear_equations(const Tree& tree, Arena& arena, const LoopInput<double>& in, LinearCoordinates& y, bool chooses,
                              const double* column, const double* row, double* numbers) {
  LinearEquations<R> equations(tree, arena, in, y, chooses, numbers);
  return tree.loops.rows + tree.loops.rotor_rows == 0 ? equations.linearize_tree() : equations.linearize_loops(column, row);
}

}  // namespace sarrus
