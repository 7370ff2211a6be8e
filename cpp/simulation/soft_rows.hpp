// Springs and dampers between bodies (between points, along loop joints, and of force elements) in a step that is implicit in them.
//
// Each acts along one row J_s of the velocities with the force -(k s + c s-dot). Like K and D of joints (implicit_rates.hpp), it adds b = theta h c +
// theta^2 h^2 k to the matrix of the kick, but as a term J_s^T b J_s of rank one. That term couples joints that are independent in the factor's
// sparsity pattern, so the factor cannot include it:
//
//   (A + J_s^T b J_s)^-1 = A^-1 - W^T W,   U^T W = b^1/2 Y,   U^T U = 1 + b^1/2 J_s Y^T b^1/2,   Y = J_s A^-1
//
// (Sherman, Morrison and Woodbury.) The Cholesky factor U is dimensionless, although rows have units of metres and radians.
//
// The row of a spring rotates with the motion. The drift is a straight line. Along it, the stretch s at both ends of the step exceeds that in its
// middle by h^2/8 J_s-dot v. The rates at the ends are J_s v* - h/2 J_s-dot v and J_s v' + h/2 J_s-dot v. The force is evaluated with these values at
// the ends, because otherwise an oscillating stiff wire would gain an energy of the order h^4 k.
//
// If a spring has no damper and the step resolves its rate, it is integrated explicitly, which is also of second order and costs nothing.
//
//   cost    a solution of the factor's equation for each register of rows, plus the cube of the number of rows
#pragma once

#include "../contact/response.hpp"
#include "glide.hpp"
#include "implicit_rates.hpp"

namespace sarrus {

namespace contact_steps {
/// Largest rate, times the step, of springs without dampers that are integrated explicitly.
constexpr double resolved = 0.1;
}  // namespace contact_steps

class SoftRows {
 public:
  SoftRows(System<double>& s, double h, const AllJoints<double>& joints, const double* q, const double* v,
           const LinearRates<double>& rates, const SoftForces& elements)
      : tree_(s.tree), arena_(s.arena), h_(h), nv_(s.tree.nv), n_(nv_ + s.tree.loops.rows) {
    const int most = tree_.springs + tree_.loop_nv + elements.count;
    if (most == 0) return;
    row_ = arena_.take<Row>(most);
    if (tree_.springs > 0) add_springs(q, v);
    for (int i = 0; i < elements.count; ++i) {
      const double *J = elements.J + i * nv_, k = elements.stiffness[i], c = elements.damping[i];
      row_[count_++] = {J, k, c, scalar_product(J, v, nv_), 0.0, k, c, 0.0, 0.0, 0.0};
    }
    if (!rates.any_closing) return;
    for (const LoopMotion* joint = tree_.loop_motion; joint < tree_.loop_motion + tree_.loop_motions; ++joint)
      for (int k = nv_ + joint->iv; k < nv_ + joint->iv + joint->nv; ++k)
        if (rates.stiffness[k] != 0.0 || rates.damping[k] != 0.0)
          row_[count_++] = {
              joints.J + (k - nv_) * nv_,
              rates.stiffness[k],
              rates.damping[k],
              joints.v[k],
              0.0,
              rates.stiffness_of_elements[k],
              rates.damping_of_elements[k],
              damper(joint->terms[k - nv_ - joint->iv].damping, joint->terms[k - nv_ - joint->iv].nonlinear, joints.v[k]),
              0.0,
              0.0};
  }

  bool empty() const { return count_ == 0; }

  /// Add the rows to the kick of an equation, and subtract the explicit part of the stiffness from its right-hand side (impulses). Returns false if
  /// the result is not finite.
  bool join(LoopEquation<double>& e, const Factor<double>& factor) {
    int kept = 0;
    for (int i = 0; i < count_; ++i)
      if (!is_resolved(row_[i], e.matrix.mobility)) row_[kept++] = row_[i];
    count_ = kept;
    if (empty()) return true;
    W_ = doubles(count_ * n_), U_ = doubles(count_ * count_), scale_ = doubles(count_);
    const bool one_by_one =
        e.pieces || e.matrix.plan.fronts;  // a factor by fronts uses the lanes for the rows of a single right-hand side
    for (int i = 0; i < count_; i += one_by_one ? 1 : width_of<SideBySide>)
      one_by_one ? solve<double>(e, factor, i) : solve<SideBySide>(e, factor, i);
    for (int i = 0; i < count_; ++i) {
      const Row row = row_[i];
      const double mobility = std::max(0.0, scalar_product(row.J, W_ + i * n_, nv_)), damped = h_ * row.damping;
      const double theta = implicit_share(damped * mobility), by = theta * damped + square(theta * h_) * row.stiffness;
      const double ahead = h_ * (theta - 0.5) * row.rate + square(h_) * (0.125 - 0.5 * theta + square(theta)) * row.bend;
      subtract_scaled(e.b, row.J, h_ * row.stiffness * ahead + damped * h_ * (theta - 0.5) * row.bend, nv_);
      scale_[i] = std::sqrt(by);
      row_[i].late = theta * damped + square(theta * h_) * row.stiffness_of_elements;
      row_[i].ahead = damped * h_ * (theta - 0.5) * row.bend + h_ * row.stiffness_of_elements * ahead;
    }
    for (int i = 0; i < count_; ++i)
      for (int j = 0; j < count_; ++j)
        U_[i * count_ + j] =
            (i == j) + scale_[i] * scale_[j] * scalar_product(row_[std::min(i, j)].J, W_ + std::max(i, j) * n_, nv_);
    if (!cholesky(count_, U_)) return false;
    for (int i = 0; i < count_; ++i) {
      double* w = W_ + i * n_;
      for (int k = 0; k < n_; ++k) w[k] *= scale_[i];
      for (int j = 0; j < i; ++j) subtract_scaled(w, W_ + j * n_, U_[j * count_ + i], n_);
      for (int k = 0; k < n_; ++k) w[k] *= U_[i * count_ + i];
    }
    return true;
  }

  /// Correct velocities and loop multipliers that were computed with the factor alone, so that they include the soft rows.
  void soften(double* v, double* multipliers = nullptr) const {
    if (empty()) return;
    const Arena::Scope scope(arena_);
    double* along = doubles(count_);
    for (int i = 0; i < count_; ++i) along[i] = scale_[i] * scalar_product(row_[i].J, v, nv_);
    cholesky_forward(count_, U_, along);
    for (int i = 0; i < count_; ++i) {
      subtract_scaled(v, W_ + i * n_, along[i], nv_);
      if (multipliers) subtract_scaled(multipliers, W_ + i * n_ + nv_, along[i], n_ - nv_);
    }
  }
  /// Add to an impulse (nv) the contribution of dampers and elements that exceeds h times their force at the beginning, for a kick from v to v_end.
  void add_late(const double* v, const double* v_end, double* impulse) const {
    for (int i = 0; i < count_; ++i) {
      const Row& row = row_[i];
      const double change = scalar_product(row.J, v_end, nv_) - scalar_product(row.J, v, nv_);
      subtract_scaled(impulse, row.J, row.late * change + row.ahead, nv_);
    }
  }
  /// Return the work that the mechanism's dampers dissipate. `passed` (nv): motion that determines their forces; `mean` (nv): motion along which the
  /// forces do work.
  double damped(const double* passed, const double* mean) const {
    double work = 0.0;
    for (int i = 0; i < count_; ++i) {
      const Row& row = row_[i];
      work += row.mean_damping * scalar_product(row.J, passed, nv_) * scalar_product(row.J, mean, nv_);
    }
    return work;
  }
  /// Convert G = J A^-1 J^T of rows J (count x nv), computed with the factor alone, so that it includes the soft rows.
  void soften(int count, const double* J, double* G) const {
    if (empty()) return;
    const Arena::Scope scope(arena_);
    double* along = doubles(count * count_);
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < count_; ++k) along[i * count_ + k] = scalar_product(J + i * nv_, W_ + k * n_, nv_);
    for (int i = 0; i < count; ++i)
      for (int j = 0; j <= i; ++j) {
        const double softening = scalar_product(along + i * count_, along + j * count_, count_);
        G[i * count + j] = G[j * count + i] = i == j ? std::max(0.0, G[i * count + i] - softening) : G[i * count + j] - softening;
      }
  }

 private:
  struct Row {
    const double* J;
    double stiffness, damping, rate, bend;  // rate: s-dot; bend: J_s-dot v
    double stiffness_of_elements, damping_of_elements;  // contributions of force elements
    double mean_damping;  // ratio of the force of the mechanism's damper to the velocity
    // impulse of dampers and elements: its derivative with respect to the velocity along the row, and its constant part
    double late, ahead;
  };
  /// Solve for Y of T::width rows (the lanes of T), beginning with row `first`.
  template <class T> void solve(const LoopEquation<double>& e, const Factor<double>& factor, int first) {
    const Arena::Scope scope(arena_);
    const int rows = std::min(width_of<T>, count_ - first), n = nv_ + tree_.loops.rows + tree_.loops.motor_rows;
    T *b = arena_.take<T>(n), *x = arena_.take<T>(n);
    std::fill(b, b + n, T(0.0));
    for (int l = 0; l < rows; ++l)
      for (int k = 0; k < nv_; ++k) lane(b[k], l) = row_[first + l].J[k];
    const T* y = x;
    if constexpr (std::is_same_v<T, double>)
      y = solve_corrected(e, arena_, factor, b);
    else
      refine(e.matrix, arena_, factor, b, x, tolerances::most_corrections);
    for (int l = 0; l < rows; ++l)
      for (int k = 0; k < n_; ++k) W_[(first + l) * n_ + k] = lane(y[k], l);
  }
  double* doubles(int n) const { return arena_.take<double>(static_cast<std::size_t>(n)); }

  /// Return the ratio of the force of a damper to its velocity.
  double damper(double damping, const NonlinearTerms& f, double v) const {
    return damping + (f.quadratic_damping + f.cubic_damping * std::abs(v)) * std::abs(v);
  }

  void add_springs(const double* q, const double* v) {
    const Kinematics<double> k = Kinematics<double>::over(tree_, doubles(Kinematics<double>::size(tree_)));
    double* uniform = doubles(nv_);
    uniform_motion<double>(tree_, v, uniform);
    kinematics<double>(tree_, arena_, q, v, uniform, k);
    for (int i = 0; i < tree_.springs; ++i) {
      const PointSpring& spring = tree_.spring[i];
      const SpringForce<double> force = spring_force(spring, tree_.numbers<double>(), k);
      const Vec3<double> difference = force.end[1] - force.end[0];
      const double length = difference.norm();
      const NonlinearTerms& f = spring.nonlinear;
      const double stiffness = std::max(0.0, tangent_stiffness(spring.stiffness, f, tree_.numbers<double>(), force.stretch)),
                   damping = std::max(0.0, tangent_damping(spring.damping, f, tree_.numbers<double>(), force.rate));
      if (!(length > 0.0) || (stiffness == 0.0 && damping == 0.0)) continue;
      double* J = doubles(3 * nv_);  // along the spring, and perpendicular to it
      std::fill(J, J + 3 * nv_, 0.0);
      const Mat3<double> E = contact_axes(Vec3<double>(difference / length));
      for (const int end : {0, 1}) add_point_rows(tree_, k, spring.link[end], force.end[end], E, end ? 1.0 : -1.0, J);
      Vec3<double> u[2], a[2];
      for (const int end : {0, 1}) point_motion(k.link[spring.link[end]], force.end[end], u[end], a[end]);
      const Vec3<double> passing = u[1] - u[0];
      const double bend =
          dot(difference, Vec3<double>(a[1] - a[0])) / length + (dot(passing, passing) - square(force.rate)) / length;
      row_[count_++] = {J, stiffness, damping, force.rate, bend, 0.0, 0.0, damper(spring.damping, f, force.rate), 0.0, 0.0};
    }
  }
  /// Return true if the step resolves the spring's rate, computed with the mobility of its ends without loops.
  bool is_resolved(const Row& row, const double* mobility) const {
    if (row.damping != 0.0) return false;
    double most = 0.0;
    for (int k = 0; k < nv_; ++k) most += square(row.J[k]) * mobility[k];
    return square(h_) * row.stiffness * most <= square(contact_steps::resolved);
  }

  const Tree& tree_;
  Arena& arena_;
  double h_;
  int nv_, n_, count_ = 0;  // n: velocities and multipliers of loops
  Row* row_ = nullptr;
  double *W_ = nullptr, *U_ = nullptr, *scale_ = nullptr;  // W (count x n); U (count x count); square roots of b (count)
};

}  // namespace sarrus
