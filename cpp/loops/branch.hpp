// Path continuation on a branch: configurations q(s) with closed loops, while prescribed joints, time and targets go from waypoint to waypoint.
//
// J and phi are the rows scaled as in closing.hpp, restricted to the velocities that are not prescribed. The tangent x of the branch has the least
// norm of all x with J x = c, where c is the rate of the rows due to the inputs alone:
//
//   x = onward + argmin |J y - (c - J onward)|^2 + mu |y|^2,    c = -d phi / ds along the inputs
//
// A step follows the tangent and then closes the loops again; it is halved if the correction is too long. Branches intersect at positions at which J
// loses rank. At an intersection the inputs do not determine the motion completely, and the undetermined component continues in its previous
// direction (`onward`, which is zero at all other positions). If two branches come close without an intersection, a step must not jump from one to
// the other. Such a jump is detected by a sign: let Q be an orthonormal basis of the range of J at one end of a step; det(Q^T J) has one sign along a
// branch, and the opposite sign on the other branch. The same holds for det(J_0^T J_1), with J at both ends. A step with a negative determinant is
// halved too. If the determinant is still negative at the shortest step, the branches intersect exactly, and the step is accepted.
//
// If the inputs determine the motion and it is smooth, no tangent is needed: the differences of previous steps predict the next step, and two Newton
// steps with one factor correct it. If e is the error of the prediction, it is C e^2 after the first Newton step and C^2 e^3 after the second. The
// length of the second step yields C without another evaluation of the rows (Ortega and Rheinboldt 1970, 10.2). C changes little between inputs. If C
// predicts that the first Newton step reaches rounding level, the second one is computed at every fourth input only.
//
// All lanes of a packet proceed from input to input together; lanes that have arrived, or whose branch has ended, wait.
//
// If only the last configuration is requested, a single jump suffices if it stays on the branch. The criteria: Newton's second step is at most a
// quarter as long as the first (Deuflhard's estimate of Kantorovich's condition: Newton Methods for Nonlinear Problems, 2.1), and det(J_0^T J_1) is
// positive. One criterion alone could accept another branch: if two dyads fold over together, the sign does not change, and Newton steps also
// converge to mirrored positions.
#pragma once

#include <limits>

#include "../spatial/conversions.hpp"
#include "branch_outcome.hpp"
#include "closing.hpp"
#include "mobility.hpp"

namespace sarrus {

template <class T> struct BranchInput {
  const T* prescribed;  // (nv) 1 for velocities of prescribed (fixed) joints, else 0; the same for all lanes
  const T* scale;  // (nv + rows) scales of velocities and rows, as in closing.hpp
  // longest scaled step of a joint; fraction of a segment below which a step is too short and the branch has ended
  T max_step, min_step;
  T tolerance;  // largest |phi| of closed loops
  int inputs;
  // for each waypoint: time, a configuration (only its prescribed coordinates are used), and targets; BranchInput::numbers values
  const T* waypoints;

  static int numbers(const Tree& tree) { return 1 + tree.nq + tree.loops.pfaffian_values; }
};

/// Inputs between two waypoints: prescribed joints move along `displacement`; time and targets are interpolated linearly, rotations along geodesics.
template <class T> class PathSegment {
 public:
  T time, *targets, *displacement;
  T* pace;  // (paces) change of each input over the segment: joint displacements, then time, then targets

  static int paces(const Tree& tree) { return tree.nv + 1 + tree.loops.pfaffian_values; }

  PathSegment(const Tree& tree, Arena& arena, const T* prescribed)
      : targets(arena.take<T>(tree.loops.pfaffian_values)),
        displacement(arena.take<T>(tree.nv)),
        pace(arena.take<T>(paces(tree))),
        tree_(tree),
        prescribed_(prescribed),
        turn_(arena.take<T>(tree.loops.pfaffian_values)),
        goal_(arena.take<T>(tree.nq)) {
    for (int k = 0; k < paces(tree); ++k) pace[k] = T(0.0);
  }

  /// Set the prescribed joints' coordinates in q to their values at the end of the segment.
  void prescribe(T* q) const {
    for (int i = 1; i < tree_.links; ++i) {
      const Link& b = tree_.link[i];
      visit_every(b.described, b.nv, [&](auto joint) {
        for (int k = 0; k < joint.nq && b.nv > 0; ++k)
          q[b.iq + k] = select(prescribed_[b.iv] > T(0.5), to_[1 + b.iq + k], q[b.iq + k]);
      });
    }
  }
  /// Start the segment between two waypoints; q is the configuration at the first one.
  void begin(const T* from, const T* to, const T* q) {
    from_ = from, to_ = to;
    for (int k = 0; k < tree_.nq; ++k) goal_[k] = q[k];
    prescribe(goal_);
    difference(tree_, q, goal_, displacement);
    for (int k = 0; k < tree_.nv; ++k) pace[k] = displacement[k] *= prescribed_[k];
    pace[tree_.nv] = to[0] - from[0];
    const int first = 1 + tree_.nq;
    for (int k = 0; k < tree_.loops.pfaffian_values; ++k) pace[tree_.nv + 1 + k] = to[first + k] - from[first + k];
    each_rotation([&](int at, bool matrix) {
      const Vec3<T> turn = log(rotation_at(from_, at, matrix).conjugate() * rotation_at(to_, at, matrix));
      for (int k = 0; k < 3; ++k) turn_[at + k] = turn(k);
      T* x = pace + tree_.nv + 1 + at;
      for (int k = 0; k < 4; ++k) x[k] = k < 3 ? turn_[at + k] : T(0.0);
    });
  }
  void at(const T& part) {
    const T left = T(1.0) - part;
    const int first = 1 + tree_.nq;
    time = left * from_[0] + part * to_[0];
    for (int k = 0; k < tree_.loops.pfaffian_values; ++k) targets[k] = left * from_[first + k] + part * to_[first + k];
    each_rotation([&](int at, bool matrix) {
      const Quaternion<T> turn = exp(Vec3<T>(vec3<T>(turn_[at], turn_[at + 1], turn_[at + 2]) * part));
      const Quaternion<T> q = rotation_at(from_, at, matrix) * turn;
      if (!matrix) return q.store(targets + at);
      const Mat3<T> R = rotation(q);
      for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) targets[at + 4 * i + j] = R(i, j);
    });
  }

 private:
  Quaternion<T> rotation_at(const T* input, int at, bool matrix) const {
    const T* x = input + 1 + tree_.nq + at;
    if (!matrix) return Quaternion<T>::load(x);
    Mat3<T> R;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) R(i, j) = x[4 * i + j];
    return quaternion(R);
  }
  /// Call f(index in the targets, is_matrix) for each rotation in the targets: is_matrix is true for the rotation matrix of a pose, false for a
  /// quaternion.
  template <class F> void each_rotation(F f) const {
    for (int i = 0; i < tree_.loops.constraints; ++i) {
      const Constraint& c = tree_.loops.constraint[i];
      if (c.target == Target::frame && c.turns) f(c.values, true);
      if (c.target == Target::coordinates && has_quaternion(std::get<LoopJoint>(c.kind).joint)) f(c.values, false);
    }
  }

  const Tree& tree_;
  const T* prescribed_;
  const T *from_ = nullptr, *to_ = nullptr;
  T *turn_, *goal_;
};

/// Return the sign of the determinant of A (n x n, destroyed), -1, 0 or 1, by Gaussian elimination. Rows are exchanged only if a pivot is much
/// smaller than the entries below it. The sign is 0 if a pivot is at most `zero` times the largest diagonal entry of A.
template <class T> SARRUS_NOINLINE T sign_of_determinant(int n, T* A, double zero = 0.0) {
  T sign = T(1.0), least = T(0.0);
  for (int k = 0; k < n && zero > 0.0; ++k) {
    const T size = abs(A[k * n + k]) * T(zero);
    least = select(size > least, size, least);
  }
  for (int k = 0; k < n; ++k) {
    for (int i = k + 1; i < n; ++i) {
      const auto larger = abs(A[i * n + k]) > abs(A[k * n + k]) * T(8.0);
      if (!any(larger)) continue;
      sign = select(larger, -sign, sign);
      for (int j = k; j < n; ++j) {
        const T above = A[k * n + j];
        A[k * n + j] = select(larger, A[i * n + j], above), A[i * n + j] = select(larger, above, A[i * n + j]);
      }
    }
    const T pivot = A[k * n + k];
    sign = select(pivot > least, sign, select(pivot < -least, -sign, T(0.0)));
    const T inverse = T(1.0) / select(abs(pivot) > T(0.0), pivot, T(1.0));
    for (int i = k + 1; i < n; ++i) {
      if (!any(abs(A[i * n + k]) > T(0.0))) continue;  // entries for two joints in different loops are zero
      const T l = A[i * n + k] * inverse;
      for (int j = k + 1; j < n; ++j) A[i * n + j] -= l * A[k * n + j];
    }
  }
  return sign;
}

template <class T> class Branch {
 public:
  Branch(const Tree& tree, Arena& arena, const BranchInput<T>& in)
      : tree_(tree),
        arena_(arena),
        in_(in),
        segment_(tree, arena, in.prescribed),
        options_{arena.take<T>(tree.nv), in.scale + tree.nv, T(damping), T(0.0), T(1e300)},
        current_(gap()),
        trial_(gap()),
        moving_(arena.take<int>(tree.nv)),
        onward_(arena.take<T>(tree.nv)),
        pace_(arena.take<T>(segment_.paces(tree))),
        before_(arena.take<T>(tree.nq)),
        per_unit_(arena.take<T>(tree.nv)) {
    T* column = const_cast<T*>(options_.column);
    for (int k = 0; k < tree.nv; ++k) {
      column[k] = in.scale[k] * (T(1.0) - in.prescribed[k]), per_unit_[k] = T(1.0) / in.scale[k], onward_[k] = T(0.0);
      if (lane(in.prescribed[k], 0) < 0.5) moving_[movings_++] = k;
    }
    for (T*& d : change_) {
      d = arena.take<T>(tree.nv);
      for (int k = 0; k < tree.nv; ++k) d[k] = T(0.0);
    }
    for (int k = 0; k < segment_.paces(tree); ++k) pace_[k] = T(0.0);
  }

  /// Trace the branch from q (nq), a configuration with closed loops at the first waypoint, along all waypoints. q becomes the last configuration of
  /// the branch; `path` (inputs x nq, or null) is NaN after the end of the branch. Returns the number of waypoints passed plus the completed fraction
  /// of the next segment.
  T trace(T* q, T* path) {
    const int nq = tree_.nq, stride = in_.numbers(tree_);
    const T ended = T(std::numeric_limits<double>::quiet_NaN());
    T passed = T(0.0);
    for (int i = 0; path && i < nq; ++i) path[i] = q[i];
    for (int k = 1; k < in_.inputs; ++k) {
      pass(in_.waypoints + (k - 1) * stride, in_.waypoints + k * stride, q);
      for (int i = 0; path && i < nq; ++i) path[k * nq + i] = select(ended_ > T(0.5), ended, q[i]);
      passed = select(ended_ > T(0.5), passed, T(k));
      if (any(ended_ < T(0.5))) note_step(q);
    }
    return select(ended_ > T(0.5), passed + reached_, passed);
  }
  /// Move q, which closes the loops, along its branch to the last waypoint. If there is only one waypoint, the segment goes from q to it, and a jump
  /// is tried first. `out`: the outcome (`branch_outcome`), the remaining |phi|, the number of waypoints passed plus the completed fraction of the
  /// next segment, and the number of singular positions.
  void move(T* q, T* out) {
    T outcome = T(branch_outcome::followed), open = in_.tolerance, passed = T(0.0);
    if (in_.inputs > 1) {
      passed = trace(q, nullptr);
    } else {
      T* end = arena_.take<T>(tree_.nq);
      for (int i = 0; i < tree_.nq; ++i) end[i] = q[i];
      outcome = jump(end, open);
      const auto unsure = abs(outcome - T(branch_outcome::doubtful)) < T(0.5);
      const auto doubtful = both(unsure, largest(segment_.displacement) < T(half_turn));
      if (tree_.loops.pfaffian_values == 0 && any(doubtful)) {
        ended_ = select(doubtful, T(0.0), T(1.0));
        pass(in_.waypoints, in_.waypoints, q);
        passed = select(ended_ > T(0.5), reached_, T(1.0));
        outcome = select(doubtful, T(branch_outcome::followed), outcome);
      }
      const auto followed = outcome > T(branch_outcome::followed - 0.5);
      passed = select(followed, passed, select(open < in_.tolerance * T(1.0 + 1e-12), T(1.0), T(0.0)));
      for (int i = 0; i < tree_.nq; ++i) q[i] = select(followed, q[i], end[i]);
    }
    const T none = no_rotation(tree_, in_.waypoints + (in_.inputs - 1) * in_.numbers(tree_) + 1 + tree_.nq);
    out[0] = outcome, out[1] = open, out[2] = select(none > T(0.5), T(0.0), passed), out[3] = crossings_;
  }
  /// Return the rank of J at the beginning of the last step; at an intersection of branches, the rank of J near the intersection.
  T rank() const { return rank_; }

 private:
  // damping (mu / |phi|) of the steps that close the loops; it is small because predictions are near the branch
  static constexpr double damping = 1e-3;
  static constexpr double most_steps = 18.0;
  // largest allowed distance of a prediction from the branch, relative to the length of the step
  static constexpr double aside = 0.1;
  static constexpr int changes = 10;  // number of orders of differences between steps; order 0 are the steps themselves
  static constexpr int most_unseen = 3;  // largest number of consecutive inputs without a second Newton step
  static constexpr double jump_farthest = 1.0;  // largest |phi| for which a jump is tried; the jump is verified afterwards
  // largest displacement of a revolute joint in a segment [rad]; in a longer segment the direction of rotation is ambiguous, so it is not traced
  static constexpr double half_turn = 3.2;
  static constexpr double contraction = 0.25;  // largest ratio of Newton's second step to the first
  // largest squared ratio of a step to the previous one for which the next step reuses the factor
  static constexpr double shares = 5e-4;
  static constexpr int most_newton_steps = 10;
  // pivots of J^T J below this fraction of its largest diagonal entry are zero
  static constexpr double singular = tolerances::present * tolerances::present;

  Residual<T> gap() { return {arena_.take<T>(tree_.loops.rows), arena_.take<T>(tree_.loops.entries), T(0.0)}; }

  /// Advance from one input to the next.
  void pass(const T* from, const T* to, T* q) {
    for (int i = 0; i < tree_.nq; ++i) before_[i] = q[i];
    segment_.begin(from, to, q);
    done_ = select(ended_ > T(0.5), T(1.0), T(0.0)), step_ = T(1.0), failures_ = T(0.0);
    const T was_quick = quick_;
    quick_ = T(0.0);
    extrapolate(q);
    if (any(done_ < T(1.0))) remember(was_quick);
    while (any(done_ < T(1.0))) advance(q);
  }

  void evaluate(const T* q, Residual<T>& out) { scaled_rows(tree_, arena_, options_, q, &segment_.time, segment_.targets, out); }

  /// Largest scaled component of a velocity.
  T largest(const T* x) const {
    T most = T(0.0);
    for (int k = 0; k < tree_.nv; ++k) {
      const T size = abs(x[k]) * per_unit_[k];
      most = select(size > most, size, most);
    }
    return most;
  }

  /// Compute A^T B for the velocities that are not prescribed, where A and B are J in two configurations.
  T* gram(const T* A, const T* B) {
    const int n = movings_;
    T* all = arena_.take<T>(n * n);
    int *index = arena_.take<int>(tree_.nv), *at = arena_.take<int>(tree_.nv), *from = arena_.take<int>(tree_.nv);
    for (int k = 0; k < tree_.nv; ++k) index[k] = -1;
    for (int i = 0; i < n; ++i) index[moving_[i]] = i;
    for (int k = 0; k < n * n; ++k) all[k] = T(0.0);
    for (int i = 0; i < tree_.loops.constraints; ++i) {
      const Constraint& c = tree_.loops.constraint[i];
      int count = 0;
      for (int a = 0; a < c.columns; ++a)
        if (index[c.column[a]] >= 0) at[count] = index[c.column[a]], from[count++] = c.entry + a * c.rows;
      for (int a = 0; a < count; ++a)
        for (int b = 0; b < count; ++b) {
          T sum = T(0.0);
          for (int r = 0; r < c.rows; ++r) sum += A[from[a] + r] * B[from[b] + r];
          all[at[a] * n + at[b]] += sum;
        }
    }
    return all;
  }
  /// Return a negative value if the inputs determine the motion at both ends of a step, but the two ends are on different branches.
  T sense(const Residual<T>& a, const Residual<T>& b) {
    const Arena::Scope scope(arena_);
    if (!any(determined_ > T(0.5))) return T(1.0);
    return select(determined_ > T(0.5), sign_of_determinant(movings_, gram(a.J, b.J)), T(1.0));
  }

  /// Return the sign of det(A^T B), or 0 if A or B has lost rank.
  T orientation(const T* A, const T* B) {
    const Arena::Scope scope(arena_);
    return sign_of_determinant(movings_, gram(A, B), singular);
  }

  /// Take Newton steps from q, where J is current_.J, to the input: q becomes the result, `open` the remaining |phi|, and trial_.J is J near the
  /// result. Returns true if the steps contract and close the loops. Steps share a factor while each is at most 1/45 as long as the previous step
  /// (`shares`).
  auto newton(T* q, T& open) {
    const Arena::Scope scope(arena_);
    const int nv = tree_.nv, nq = tree_.nq, rows = tree_.loops.rows;
    T *x = arena_.take<T>(nv), *next = arena_.take<T>(nq), *phi = arena_.take<T>(rows);
    Residual<T> gap = {phi, nullptr, T(0.0)};
    segment_.prescribe(q);
    evaluate(q, gap);
    auto active = gap.size < T(jump_farthest);
    T first = T(0.0), second = T(0.0), before = T(0.0);
    StepSolver<T>* equation = nullptr;
    bool shared = false;
    const auto contracts = [&] { return second < T(contraction) * first + T(tolerances::closed); };
    for (int k = 0; k < most_newton_steps && any(active); ++k) {
      if (!shared)
        equation = new (arena_.take<StepSolver<T>>(1))
            StepSolver<T>(tree_, arena_, options_, q, &segment_.time, segment_.targets, k == 0 ? current_.J : trial_.J,
                          T(tolerances::least_square), T(0.0));
      const T* y = equation->solve(gap.phi);
      const T length = sqrt(sum_of_squares(y, nv));
      if (k < 2) (k == 0 ? first : second) = length;
      scaled_step(tree_, options_, y, x);
      integrate(tree_, q, x, next);
      for (int i = 0; i < nq; ++i) next[i] = select(active, next[i], q[i]);
      shared = k > 0 && !any(both(active, square(length) > square(before) * T(shares)));
      Residual<T> trial = {trial_.phi, shared ? nullptr : trial_.J, T(0.0)};
      evaluate(next, trial);
      const auto improves = both(active, trial.size < gap.size);
      for (int i = 0; i < nq; ++i) q[i] = select(improves, next[i], q[i]);
      for (int r = 0; r < rows; ++r) phi[r] = select(improves, trial.phi[r], phi[r]);
      gap.size = select(improves, trial.size, gap.size);
      active = both(improves, gap.size > sqrt(T(rows)) * T(tolerances::exact));
      active = both(active, contracts());
      before = length;
    }
    open = gap.size;
    return both(contracts(), open < in_.tolerance * T(1.0 + 1e-12));
  }

  /// Move q by a single jump to a nearby configuration with the prescribed inputs. Returns one of `branch_outcome`.
  T jump(T* q, T& open) {
    const Loops& loops = tree_.loops;
    segment_.begin(in_.waypoints, in_.waypoints, q);
    segment_.at(T(1.0));
    evaluate(q, current_);
    T violation = T(0.0);
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      for (int r = c.row; r < c.row + c.rows && c.target == Target::none; ++r) violation += square(current_.phi[r]);
    }
    T outcome = T(branch_outcome::free);
    if (movings_ <= loops.rows) {
      T* start = arena_.take<T>(tree_.nq);
      for (int i = 0; i < tree_.nq; ++i) start[i] = q[i];
      const auto contracts = newton(q, open);
      if (any(contracts))
        outcome = select(both(contracts, orientation(current_.J, trial_.J) > T(0.5)), T(branch_outcome::jumped),
                         T(branch_outcome::doubtful));
      else
        outcome = T(branch_outcome::doubtful);
      if (any(outcome < T(0.0)))
        outcome = select(both(outcome < T(0.0), orientation(current_.J, current_.J) < T(0.5)), T(branch_outcome::free), outcome);
      const auto jumped = outcome > T(branch_outcome::free + 0.5);
      for (int i = 0; i < tree_.nq; ++i) q[i] = select(jumped, q[i], start[i]);
    }
    // if the inputs leave motions free, return the nearest configuration, as a search does
    if (const auto free = abs(outcome - T(branch_outcome::free)) < T(0.5); any(free)) {
      segment_.prescribe(q);
      const ClosureOptions<T> near = {options_.column, options_.row, T(tolerances::near_damping),
                                      select(free, T(tolerances::near_steps), T(0.0)), T(tolerances::near_gap)};
      const T left = close(tree_, arena_, near, &segment_.time, segment_.targets, q);
      open = select(free, left, open);
    }
    return select(violation < square(in_.tolerance + T(tolerances::given_closed)), outcome, T(branch_outcome::off_loops));
  }

  /// Store the step over a complete segment; the next segment is predicted from these steps.
  void note_step(const T* q) {
    const Arena::Scope scope(arena_);
    T* step = arena_.take<T>(tree_.nv);
    difference(tree_, before_, q, step);
    for (T* d : change_)
      for (int k = 0; k < tree_.nv; ++k) {
        const T value = step[k];
        step[k] = value - d[k], d[k] = value;
      }
  }

  /// Extrapolate over the whole segment in one step, in lanes in which the inputs determine the motion and the motion is smooth.
  void extrapolate(T* q) {
    const auto tried = both(determined_ > T(0.5), done_ < T(1.0));
    if (!any(tried)) return;
    const Arena::Scope scope(arena_);
    const int nv = tree_.nv, nq = tree_.nq;
    T *x = arena_.take<T>(nv), *start = arena_.take<T>(nq), *next = arena_.take<T>(nq);
    T before = largest(change_[0]), use = T(1.0);
    for (int k = 0; k < nv; ++k) x[k] = change_[0][k];
    // a difference of higher order is used while each order is at most half of the previous one
    for (int j = 1; j < changes; ++j) {
      const T size = largest(change_[j]);
      use = select(size < before * T(0.5), use, T(0.0)), before = size;
      for (int k = 0; k < nv; ++k) x[k] += use * change_[j][k];
    }
    integrate(tree_, q, x, start);
    segment_.prescribe(start);
    segment_.at(T(1.0));
    evaluate(start, trial_);
    const T mu =
        select(trial_.size * T(damping) > T(tolerances::least_square), trial_.size * T(damping), T(tolerances::least_square));
    StepSolver<T> equation(tree_, arena_, options_, start, &segment_.time, segment_.targets, trial_.J, mu, T(0.0));
    const auto newton = [&](T* from) {
      const T* y = equation.solve(trial_.phi);
      for (int k = 0; k < nv; ++k) x[k] = y[k] * options_.column[k];
      integrate(tree_, from, x, next);
      for (int i = 0; i < nq; ++i) from[i] = next[i];
      return largest(x);
    };
    const T first = newton(start);
    const T rounding = T(tolerances::rounding * 0.1), predicted = second_length_ * square(first / first_length_);
    T second = predicted, left = predicted;
    if (++unseen_ > most_unseen || any(both(tried, predicted > rounding))) {
      evaluate(start, trial_);
      second = newton(start), left = trial_.size, unseen_ = 0;
      first_length_ = first, second_length_ = select(second > T(tolerances::exact), second, T(tolerances::exact));
    }
    difference(tree_, q, start, x);
    const T length = largest(x);
    const T closed = select(second < rounding, T(1.0), select(second * second < first * T(tolerances::exact), T(1.0), T(0.0)));
    auto good = both(both(tried, closed > T(0.5)), both(length < in_.max_step, left < in_.tolerance));
    good = both(good, first < T(aside) * length + in_.tolerance);
    if (any(good)) good = both(good, sense(current_, trial_) > T(-0.5));
    for (int i = 0; i < nq; ++i) q[i] = select(good, start[i], q[i]);
    for (int k = 0; k < tree_.loops.entries; ++k) current_.J[k] = select(good, trial_.J[k], current_.J[k]);
    for (int k = 0; k < segment_.paces(tree_); ++k) pace_[k] = select(good, segment_.pace[k], pace_[k]);
    done_ = select(good, T(1.0), done_), quick_ = select(good, T(1.0), quick_);
  }

  /// Compute J at q, and the rate at which inputs change the rows while the other joints are at rest.
  void rates(const T* q, T* opening) {
    const Arena::Scope scope(arena_);
    const Loops& loops = tree_.loops;
    T* target = arena_.take<T>(loops.rows);
    for (int r = 0; r < loops.rows; ++r) opening[r] = T(0.0);
    if (loops.pfaffian_values > 0) {  // rates of targets by finite differences, which suffice for a tangent
      constexpr double little = 1e-4;
      Residual<T> side = {target, nullptr, T(0.0)};
      for (const double sign : {1.0, -1.0}) {
        segment_.at(done_ + T(sign * little));
        evaluate(q, side);
        for (int r = 0; r < loops.rows; ++r) opening[r] += side.phi[r] * T(sign * 0.5 / little);
      }
    }
    segment_.at(done_);
    ConstraintRows<T> row_output;
    row_output.J = current_.J, row_output.target = target;
    constraint_rows(tree_, arena_, place(tree_, arena_, q, &segment_.time, segment_.targets), row_output, 0, loops.constraints);
    const T seconds = segment_.pace[tree_.nv];
    for (int r = 0; r < loops.rows; ++r) opening[r] -= target[r] * seconds * options_.row[r];
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) {
          const T x = current_.J[c.entry + k * c.rows + r] * options_.row[c.row + r];
          opening[c.row + r] += select(abs(x) < T(1e300), x, T(0.0)) * segment_.displacement[c.column[k]];
        }
    }
    scale_jacobian(tree_, options_, current_.J);
  }

  /// Compute the scaled tangent at q, and detect the lanes in which the inputs determine the motion.
  void tangent(const T* q, T* x) {
    const int nv = tree_.nv, rows = tree_.loops.rows;
    T* opening = arena_.take<T>(rows);  // rate at which inputs change the rows while the other joints are at rest
    rates(q, opening);

    SingularValues<T> values(movings_, gram(current_.J, current_.J), arena_);
    determined_ = select(values.rank > T(movings_ - 0.5), T(1.0), T(0.0));
    const auto meet = values.rank < rank_ - T(0.5);
    crossings_ += select(both(meet, done_ > T(0.0)), T(1.0), T(0.0));
    rank_ = select(meet, rank_, values.rank);
    T along = T(0.0), size = T(0.0);
    for (int k = 0; k < segment_.paces(tree_); ++k) along += segment_.pace[k] * pace_[k], size += pace_[k] * pace_[k];
    // `onward` is used in all lanes whose inputs determine the motion, too: there it does not change the result, but improves the conditioning near
    // an intersection of branches
    const T continues = select(meet, T(1.0), determined_), share = continues * (along / select(size > T(0.0), size, T(1.0)));
    for (int k = 0; k < nv; ++k) x[k] = select(options_.column[k] > T(0.0), onward_[k] * share, T(0.0));

    for (int i = 0; i < tree_.loops.constraints; ++i) {
      const Constraint& c = tree_.loops.constraint[i];
      for (int k = 0; k < c.columns; ++k)
        for (int r = 0; r < c.rows; ++r) opening[c.row + r] += current_.J[c.entry + k * c.rows + r] * x[c.column[k]];
    }
    StepSolver<T> equation(tree_, arena_, options_, q, &segment_.time, segment_.targets, current_.J, T(tolerances::least_square),
                           T(0.0));
    const T* y = equation.solve(opening);
    for (int k = 0; k < nv; ++k) x[k] += y[k];
  }

  /// Take one step in the lanes that have not reached the next input yet.
  void advance(T* q) {
    const Arena::Scope scope(arena_);
    const int nv = tree_.nv, nq = tree_.nq;
    const auto active = done_ < T(1.0);
    T *x = arena_.take<T>(nv), *v = arena_.take<T>(nv), *predicted = arena_.take<T>(nq), *next = arena_.take<T>(nq);
    // save the data of lanes that have arrived, because they do not take this step
    const T rank = rank_, determined = determined_;
    T* J = arena_.take<T>(tree_.loops.entries);
    for (int k = 0; k < tree_.loops.entries; ++k) J[k] = current_.J[k];
    const T was = done_;
    done_ = select(active, done_, T(0.0));
    tangent(q, x);
    done_ = was;
    rank_ = select(active, rank_, rank), determined_ = select(active, determined_, determined);
    for (int k = 0; k < tree_.loops.entries; ++k) J[k] = select(active, current_.J[k], J[k]);

    for (int k = 0; k < nv; ++k) v[k] = x[k] * options_.column[k] + segment_.displacement[k];
    const T fastest = largest(v), left = T(1.0) - done_;
    T part = select(step_ < left, step_, left);
    const T longest = in_.max_step / select(fastest > in_.max_step, fastest, in_.max_step);
    step_ = select(active, select(part < longest, part, longest), step_);
    for (int k = 0; k < nv; ++k) v[k] *= step_;
    integrate(tree_, q, v, predicted);
    const auto last = left < step_ * T(1.0 + 1e-12);
    for (int i = 0; i < nq; ++i) next[i] = predicted[i];
    segment_.prescribe(next);
    for (int i = 0; i < nq; ++i) predicted[i] = next[i] = select(last, next[i], predicted[i]);
    part = select(last, T(1.0), done_ + step_);
    segment_.at(select(active, part, T(1.0)));
    ClosureOptions<T> onto = options_;
    onto.steps = select(active, T(most_steps), T(0.0));
    const T open = close(tree_, arena_, onto, &segment_.time, segment_.targets, next);
    difference(tree_, predicted, next, v);
    const T off = largest(v);
    for (int k = 0; k < tree_.loops.entries; ++k) current_.J[k] = J[k];
    evaluate(next, trial_);
    const T side = sense(current_, trial_), onward = select(step_ < in_.min_step, T(1.0), side);
    const auto near = both(off < T(aside) * step_ * fastest + in_.tolerance, open < in_.tolerance * T(1.0 + 1e-12));
    const auto good = both(active, both(near, onward > T(-0.5)));
    const auto crosses = both(good, side < T(-0.5));
    if (any(crosses)) crossings_ += select(both(crosses, orientation(current_.J, trial_.J) < T(-0.5)), T(1.0), T(0.0));
    failures_ = select(active, select(good, T(0.0), failures_ + T(1.0)), failures_);
    for (int k = 0; k < nv; ++k) onward_[k] = select(active, x[k], onward_[k]);
    for (int k = 0; k < segment_.paces(tree_); ++k) pace_[k] = select(active, segment_.pace[k], pace_[k]);
    for (int i = 0; i < nq; ++i) q[i] = select(good, next[i], q[i]);
    for (int k = 0; k < tree_.loops.entries; ++k) current_.J[k] = select(good, trial_.J[k], current_.J[k]);
    // after 60 halvings the step is negligible in any unit
    const T size = select(failures_ > T(60.0), T(0.0), step_);
    const auto ends = both(both(active, failures_ > T(0.5)), size < in_.min_step);
    ended_ = select(ends, T(1.0), ended_), reached_ = select(ends, done_, reached_);
    done_ = select(good, part, select(ends, T(1.0), done_));
    step_ = select(good, step_ * T(2.0), step_ * T(0.5));
  }

  /// Set the tangent in lanes whose last segment was extrapolated in one step: it is the derivative of the extrapolation at the end of the segment.
  void remember(const T& quick) {
    for (int k = 0; k < tree_.nv; ++k) {
      T x = T(0.0);
      for (int j = 0; j < changes; ++j) x += change_[j][k] * T(1.0 / (j + 1));
      onward_[k] = select(quick > T(0.5), x * per_unit_[k], onward_[k]);
    }
  }

  const Tree& tree_;
  Arena& arena_;
  const BranchInput<T>& in_;
  PathSegment<T> segment_;
  ClosureOptions<T> options_;
  Residual<T> current_, trial_;  // current_.J: J at the end of the last step
  int* moving_;
  int movings_ = 0;
  T *onward_, *pace_;  // the last tangent, scaled; the input rates for which it was computed
  T *before_, *per_unit_;  // the last configuration; 1 / scale
  T* change_[changes];  // differences of the steps between inputs: [0] the last step, [k] the k-th difference
  T rank_ = T(0.0), determined_ = T(0.0), quick_ = T(0.0);  // quick_: 1 in lanes whose last segment was extrapolated in one step
  T first_length_ = T(1.0), second_length_ = T(1.0);  // lengths of Newton's two steps at the last input that had a second step
  int unseen_ = 0;  // number of inputs since then
  T failures_ = T(0.0);  // number of consecutive failed steps
  // fractions of the segment: completed part, next step, completed part when the branch ended (reached_); ended_: 1 if the branch has ended
  T done_ = T(0.0), step_ = T(1.0), ended_ = T(0.0), reached_ = T(0.0);
  T crossings_ = T(0.0);  // singular positions that were passed
};

}  // namespace sarrus
