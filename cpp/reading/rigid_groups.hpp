// Dependent rows and rigid groups of frames, from ranks at configurations in which the constraints are independent.
#pragma once

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <vector>

#include "../mobility/linear_algebra.hpp"
#include "elements.hpp"

namespace sarrus::reading {

/// Return the home configuration and a nearby one, because the home may be a singular position. Empty if the loops do not close.
std::vector<Vector> two_places(const ElementModel& model) {
  const PositionModel& positions = model.positions().model();
  const StateFunctions functions(positions.mechanism, positions.kernels);
  const int nv = functions.tree().nv;
  try {
    const Vector home = model.positions().assemble().q;
    const ScaledLoops loops(functions, home.data(), {}, positions.rows);
    const Matrix motions = null_space(loops.jacobian(home.data()), tolerances::negligible);
    constexpr double aside = 0.1;  // [rad, mean body sizes]
    const Vector step = motions * (motions.transpose() * RandomNumbers().normal(nv, 1));
    const ScaledLoops::Walk walk = loops.walk(home.data(), aside * step.transpose());
    if (!(walk.open(0) <= tolerances::closed)) return {};
    return {home, walk.ends.row(0).transpose()};
  } catch (const AssemblyError&) {
    return {};
  }
}

/// Return the rows of a constraint, among `rows`, that are redundant in two configurations.
std::vector<int> shared_rows(const ElementModel& model, const std::vector<int>& rows) {
  const PositionModel& positions = model.positions().model();
  const StateFunctions functions(positions.mechanism, positions.kernels);
  std::vector<int> shared = rows;
  const std::vector<Vector> places = two_places(model);
  for (const Vector& q : places) {
    const ScaledLoops loops(functions, q.data(), {}, positions.rows);
    const Matrix stress = null_space(Matrix(loops.jacobian(q.data()).transpose()), tolerances::negligible);
    shared.erase(
        std::remove_if(shared.begin(), shared.end(), [&](int r) { return !(stress.row(r).norm() > tolerances::present); }),
        shared.end());
  }
  return places.empty() ? std::vector<int>() : shared;
}

/// Groups of frames without relative motion: on one body, or on bodies that are welded or rigidly connected by loops.
class RigidGroups {
 public:
  RigidGroups(const ElementModel& model, std::vector<Frame> frames) : model_(model), frames_(std::move(frames)) {
    const std::size_t n = frames_.size();
    const Mechanism& mechanism = model_.functions.mechanism();
    const PositionModel& positions = model_.positions().model();
    const Vector neutral = positions.neutral();
    alike_ = move_alike(neutral, Matrix::Identity(mechanism.tree().nv, mechanism.tree().nv));
    if (mechanism.tree().loops.rows > 0 && !std::all_of(alike_.begin(), alike_.end(), [](char x) { return x != 0; })) {
      const std::vector<Vector> places = two_places(model_);
      std::vector<char> rigid(n * n, !places.empty());
      for (const Vector& q : places) {
        const ScaledLoops loops(model_.functions, q.data(), {}, positions.rows);
        const Matrix motions = loops.column_scale.asDiagonal() * null_space(loops.jacobian(q.data()), tolerances::negligible);
        const std::vector<char> here = move_alike(q, motions);
        for (std::size_t k = 0; k < n * n; ++k) rigid[k] = rigid[k] && here[k];
      }
      for (std::size_t k = 0; k < n * n; ++k) alike_[k] = alike_[k] || rigid[k];
    }
  }
  /// Return the first frame of the group of each frame.
  std::vector<int> first() const {
    const std::size_t n = frames_.size();
    std::vector<int> all;
    for (std::size_t k = 0; k < n; ++k) {
      int first = static_cast<int>(k);
      for (std::size_t g = 0; g < k && first == static_cast<int>(k); ++g)
        if (all[g] == static_cast<int>(g) && alike_[g * n + k]) first = static_cast<int>(g);
      all.push_back(first);
    }
    return all;
  }

 private:
  /// Return for each pair of frames if they have the same twist in all free motions (nv, k).
  std::vector<char> move_alike(const Vector& q, const Matrix& free) const {
    const StateFunctions& functions = model_.functions;
    const int nv = functions.tree().nv;
    const double length = functions.tree().length;
    std::vector<Matrix> twists;
    Vec3<double> middle = zero3<double>();
    double size = 0.0;
    for (const Frame& frame : frames_) {
      RowMajor pose(4, 4), jacobian(6, nv);
      functions.evaluate(Operation::pose, {q.data()}, pose.data(), frame);
      functions.evaluate(Operation::jacobian, {q.data()}, jacobian.data(), frame);
      const Vec3<double> at = vec3(pose(0, 3), pose(1, 3), pose(2, 3));
      if (twists.empty()) middle = at;
      const Vec3<double> arm = at - middle;
      Matrix twist = jacobian * free;
      for (Eigen::Index k = 0; k < twist.cols(); ++k) {
        const Vec3<double> w = twist.col(k).head(3);
        twist.col(k).tail(3) = (Vec3<double>(twist.col(k).tail(3)) + cross<double>(arm, w)) / length;
      }
      size += twist.squaredNorm();
      twists.push_back(std::move(twist));
    }
    const double threshold = tolerances::present * std::max(1.0, std::sqrt(size));
    std::vector<char> alike;
    for (const Matrix& one : twists)
      for (const Matrix& other : twists) alike.push_back((one - other).norm() <= threshold);
    return alike;
  }

  const ElementModel& model_;
  std::vector<Frame> frames_;
  std::vector<char> alike_;  // for each pair of frames: true if they have no relative motion
};

}  // namespace sarrus::reading
