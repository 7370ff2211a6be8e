// Cone problems of several states in lanes, if all contacts rest or separate: the first attempt of ConeSolver (contact/cone_newton.hpp), without moments,
// intervals and floors. Lanes that it does not solve to the tolerance of ConeSolver are solved one by one. Lanes do not affect each other; a problem with
// fewer contacts than another one is completed by contacts without mobility, which do not change its bits.
#pragma once

#include "../contact/cone_newton.hpp"
#include "../simd/lanes.hpp"

namespace sarrus {

/// CombinedRows::share of several problems in lanes: only entries that are not zero in some lane.
class SharesInLanes {
  using P = SideBySide;

 public:
  SharesInLanes(Arena& arena, int rows, int columns)
      : rows_(rows),
        columns_(columns),
        first_(arena.take<int>(rows + 1)),
        column_(arena.take<int>(rows * columns)),
        used_(arena.take<bool>(rows * columns)),
        value_(arena.take<P>(rows * columns)) {
    std::fill(used_, used_ + rows * columns, false);
  }
  void set(int row, int column, int l, double x) {
    const int at = row * columns_ + column;
    if (!used_[at]) used_[at] = true, value_[at] = P(0.0);
    lane(value_[at], l) = x;
  }
  /// Order the entries by rows; necessary before products.
  void compress() {
    int count = 0;
    for (int i = 0; i < rows_; ++i) {
      first_[i] = count;
      for (int c = 0; c < columns_; ++c)
        if (used_[i * columns_ + c]) column_[count] = c, value_[count++] = value_[i * columns_ + c];
    }
    first_[rows_] = count;
  }
  /// Return the sum of term(column, share) over the entries of a row.
  template <class Term> SARRUS_INLINE P sum(int row, Term&& term) const {
    P sum = P(0.0);
    for (int k = first_[row]; k < first_[row + 1]; ++k) sum += term(column_[k], value_[k]);
    return sum;
  }
  /// Call set(j, sum) with the entries j < count of the product of a row of shares and a matrix with `width` columns.
  template <class Set> SARRUS_INLINE void multiply(int row, const P* matrix, int width, int count, Set&& set) const {
    for (int j = 0; j < count; j += block) {
      const int columns = std::min(block, count - j);
      P sums[block] = {P(0.0), P(0.0), P(0.0), P(0.0)};
      for (int k = first_[row]; k < first_[row + 1]; ++k) {
        const P *from = matrix + column_[k] * width + j, x = value_[k];
        for (int c = 0; c < block; ++c)
          if (c < columns) sums[c] += x * from[c];
      }
      for (int c = 0; c < block; ++c)
        if (c < columns) set(j + c, sums[c]);
    }
  }

 private:
  static constexpr int block = 4;
  const int rows_, columns_;
  int *first_, *column_;
  bool* used_;
  P* value_;
};

/// Cone problems of one step of each lane.
class RestingCones {
  using P = SideBySide;

 public:
  P *G, *w, *p;  // (n, n), (n), (n): as in ConeProblem; p: guess, then solution
  P *friction, *present;  // (contacts): coefficient; 1 if the problem has this contact, else 0
  P *shift, *before;  // (n): part of w that is no velocity; velocities before the impulses
  // results: as in ConeSolution and ConeResiduals; pushed: 1 if impulses exceed rounding errors
  P natural_map, pushed, primal, dual, complementarity, work;

  RestingCones(Arena& arena, int rows)
      : G(arena.take<P>(rows * rows)),
        w(zeros(arena, rows)),
        p(zeros(arena, rows)),
        friction(zeros(arena, rows / 3)),
        present(zeros(arena, rows / 3)),
        shift(zeros(arena, rows)),
        before(zeros(arena, rows)),
        n_(rows),
        contacts_(rows / 3),
        scale_(arena.take<P>(rows)),
        weight_(arena.take<P>(rows)),
        active_(arena.take<P>(rows)),
        presses_(arena.take<P>(rows)),
        u_(arena.take<P>(rows)),
        step_(arena.take<P>(rows)),
        U_(arena.take<P>(rows * rows)) {}

  /// Solve the problems of the lanes in which `tried` is 1. Returns 1 in the lanes that are solved, else 0.
  P solve(P tried) {
    const P softness = P(cones::least);
    tried *= is_connected(), scale();
    const P separates = select(natural_map_of(nullptr) > P(0.0), P(0.0), P(1.0));
    for (int i = 0; i < contacts_; ++i) project_on_cone(friction[i], p + 3 * i, p + 3 * i);
    velocities(p);
    P rests = tried * (P(1.0) - separates) * choose_active(softness, active_), moves = rests;
    P rows = P(0.0), lifted = P(0.0);  // rows of the lane's own problem; impulses of contacts that do not press
    for (int i = 0; i < n_; ++i) lifted += abs(p[i] * (P(1.0) - active_[i])), p[i] *= active_[i];
    for (int i = 0; i < contacts_; ++i) rows += P(3.0) * present[i];
    if (any(lifted > P(0.0))) velocities(p);
    factorise(softness);
    for (int round = 0; round < 3 && any(moves > P(0.5)); ++round) {
      const P moved = step(softness, moves);
      velocities(p);
      P squares = P(0.0), size = P(0.0), same = choose_active(softness, presses_);
      for (int i = 0; i < n_; ++i) squares += active_[i] * square(residual(i, softness)), size += square(p[i]);
      for (int i = 0; i < n_; i += 3) same *= P(1.0) - abs(presses_[i] - active_[i]);
      const P settled = most(select(squares > P(1e-30) * rows, P(0.0), P(1.0)), select(moved > P(1e-18) * size, P(0.0), P(1.0)));
      rests = select(moves > P(0.5), same, rests), moves *= same * (P(1.0) - settled);
    }
    rests *= P(1.0) - moves;
    P solved = separates * tried;
    for (int i = 0; i < n_; ++i) p[i] *= rests;
    if (any(rests < P(0.5))) velocities(p);
    for (int round = 0; round < 3; ++round) {  // remove the effect of the softness
      const P open = rests * (P(1.0) - solved);
      if (round > 0 && !any(open > P(0.5))) break;
      step(P(0.0), open), natural_map = natural_map_of(p);
      solved = select(natural_map > tolerance_, solved, most(solved, rests));
    }
    for (int l = 0; l < width_of<P>; ++l)
      if (!finite_bits(lane(sum_, l))) lane(solved, l) = 0.0;
    give();
    return solved;
  }

 private:
  static P* zeros(Arena& arena, int count) {
    P* x = arena.take<P>(count);
    std::fill(x, x + count, P(0.0));
    return x;
  }
  static P length(const P* t) { return sqrt(t[0] * t[0] + t[1] * t[1]); }

  /// Return 1 in lanes in which the first contact affects all others, so that all contacts are one island, else 0.
  P is_connected() const {
    P all = P(1.0);
    for (int i = 1; i < contacts_; ++i) {
      P sum = P(0.0);
      for (int r = 0; r < 3; ++r)
        for (int c = 3 * i; c < 3 * i + 3; ++c) sum += abs(G[r * n_ + c]);
      all *= select(sum > P(0.0), P(1.0), P(1.0) - present[i]);
    }
    return all;
  }

  /// Scale the variables, as ScaledCones does.
  void scale() {
    P largest = P(0.0), speed = P(0.0);
    for (int i = 0; i < n_; ++i) largest = most(largest, G[i * n_ + i]);
    largest = select(largest > P(0.0), largest, P(1.0)), size_ = P(0.0);
    for (int i = 0; i < contacts_; ++i) {
      const int k = 3 * i;
      const P mean = (G[k * n_ + k] + G[(k + 1) * n_ + k + 1] + G[(k + 2) * n_ + k + 2]) / P(3.0);
      const P unit = P(1.0) / sqrt(most(mean, P(1e-12) * largest));
      for (int r = k; r < k + 3; ++r) scale_[r] = unit, speed = most(speed, abs(w[r])), size_ = most(size_, unit * abs(w[r]));
    }
    const auto moves = size_ > P(0.0);
    size_ = select(moves, size_, P(1.0)), tolerance_ = P(cones::reached) * select(moves, speed, P(1.0));
    for (int i = 0; i < n_; ++i) {
      w[i] *= scale_[i] / size_, p[i] /= scale_[i] * size_, weight_[i] = size_ / scale_[i];
      const P unit = scale_[i];
      P* row = G + i * n_;
      for (int j = 0; j < n_; ++j) row[j] *= unit * scale_[j];
    }
  }
  /// Return to the variables of the problem, and compute the residuals (contact/cone_residuals.hpp).
  void give() {
    P fastest = P(0.0);
    for (int i = 0; i < n_; ++i) {
      const P mobility = G[i * n_ + i];
      fastest = most(fastest, select(mobility > P(0.0), abs(w[i]) / sqrt(select(mobility > P(0.0), mobility, P(1.0))), P(0.0)));
    }
    pushed = primal = dual = complementarity = work = P(0.0);
    for (int i = 0; i < n_; ++i)
      pushed = select(abs(p[i]) * sqrt(G[i * n_ + i]) > P(10.0 * cones::reached) * fastest, P(1.0), pushed);
    for (int i = 0; i < contacts_; ++i) {
      P u[3], near[3], off[3], power = P(0.0);
      for (int r = 0, k = 3 * i; r < 3; ++r, ++k) {
        u[r] = u_[k] * size_ / scale_[k], p[k] *= size_ * scale_[k];
        work += P(0.5) * p[k] * (u[r] - shift[k] + before[k]);
      }
      u[0] += friction[i] * length(u + 1);
      for (int r = 0; r < 3; ++r) power += p[3 * i + r] * u[r], u[r] = -u[r];
      project_on_cone(friction[i], p + 3 * i, near), project_on_cone(friction[i], u, off);
      for (int r = 0; r < 3; ++r) primal = most(primal, abs(p[3 * i + r] - near[r])), dual = most(dual, abs(off[r]));
      complementarity = most(complementarity, abs(power));
    }
  }

  void velocities(const P* x) {
    for (int i = 0; i < n_; i += 3) {
      const P* row = G + i * n_;
      P u[3] = {w[i], w[i + 1], w[i + 2]};
      for (int j = 0; j < n_; ++j, ++row)
        for (int r = 0; r < 3; ++r) u[r] += row[r * n_] * x[j];
      for (int r = 0; r < 3; ++r) u_[i + r] = u[r];
    }
  }
  /// Return the largest entry of the natural map of impulses x; null: of no impulses.
  P natural_map_of(const P* x) {
    x ? velocities(x) : void(std::copy(w, w + n_, u_));
    P largest = P(0.0);
    sum_ = P(0.0);
    for (int i = 0; i < contacts_; ++i) {
      P y[3], near[3];
      for (int r = 0, k = 3 * i; r < 3; ++r, ++k) y[r] = (x ? x[k] : P(0.0)) - u_[k], sum_ += abs(y[r]);
      y[0] -= friction[i] * length(u_ + 3 * i + 1);
      project_on_cone(friction[i], y, near);
      for (int r = 0, k = 3 * i; r < 3; ++r, ++k) {
        const P now = x ? x[k] : P(0.0);
        largest = most(largest, most(abs(now - near[r]), P(2e-16) * abs(now)) * weight_[k]);
      }
    }
    return largest;
  }

  P residual(int k, const P& softness) const { return u_[k] + softness * p[k]; }
  /// Set `active` to 1 for contacts that press, else to 0. Returns 1 in lanes in which all of them stick, else 0.
  P choose_active(const P& softness, P* active) const {
    P sticks = P(1.0);
    for (int i = 0; i < contacts_; ++i) {
      P y[3];
      for (int r = 0, k = 3 * i; r < 3; ++r, ++k) y[r] = p[k] - residual(k, softness);
      const P presses = select(y[0] > P(0.0), P(1.0), P(0.0));
      std::fill_n(active + 3 * i, 3, presses);
      sticks *= select(friction[i] * y[0] > length(y + 1), P(1.0), P(1.0) - presses);
    }
    return sticks;
  }

  /// Factorise G + softness of the contacts that press: U^T U, with 1 / u on the diagonal. Other rows are those of the identity.
  void factorise(const P& softness) {
    for (int i = 0; i < n_; ++i) {
      P *row = U_ + i * n_, active = active_[i];
      for (int j = i; j < n_; j += 3) {  // columns of one contact; in those left of the diagonal, no entry is used
        const int first = 3 * (j / 3);
        P sums[3];
        for (int c = 0; c < 3; ++c) sums[c] = active * active_[first + c] * G[i * n_ + first + c];
        for (int c = 0; c < 3; ++c)
          if (first + c == i) sums[c] += select(active > P(0.5), softness, P(1.0));
        const P* above = U_ + first;
        for (int k = 0; k < i; ++k, above += n_) {
          const P share = U_[k * n_ + i];
          for (int c = 0; c < 3; ++c) sums[c] -= share * above[c];
        }
        for (int c = 0; c < 3; ++c) row[first + c] = sums[c];
        j = first;
      }
      const P inverse = P(1.0) / sqrt(most(row[i], P(1e-300)));
      row[i] = inverse;
      for (int j = i + 1; j < n_; ++j) row[j] *= inverse;
    }
  }
  /// Take Newton's step with this factor, in the lanes in which `moves` is 1. Returns the squared norm of the step.
  P step(const P& softness, const P& moves) {
    for (int i = 0; i < n_; ++i) step_[i] = -moves * active_[i] * residual(i, softness);
    for (int k = 0; k < n_; ++k) {
      const P x = step_[k] *= U_[k * n_ + k];
      for (int j = k + 1; j < n_; ++j) step_[j] -= U_[k * n_ + j] * x;
    }
    P squares = P(0.0);
    for (int k = n_ - 1; k >= 0; --k) {
      P sum = step_[k];
      for (int j = k + 1; j < n_; ++j) sum -= U_[k * n_ + j] * step_[j];
      step_[k] = sum * U_[k * n_ + k], p[k] += step_[k], squares += square(step_[k]);
    }
    return squares;
  }

  const int n_, contacts_;
  P size_, tolerance_, sum_;
  P *scale_, *weight_, *active_, *presses_, *u_, *step_, *U_;
};

}  // namespace sarrus
