#include "finite_motion.hpp"

#include <cmath>

#include "../loops/tolerances.hpp"

namespace sarrus {
namespace {

using tolerances::present;

// largest component [rad, mechanism lengths] of the displacement to a nearby configuration, and of a test step from there
constexpr double step_size = 0.02, small_step = 1e-3;
constexpr int most_neighbours = 4;

/// Divide each row by its largest entry.
Matrix scaled_to_one(Matrix v) {
  for (Eigen::Index k = 0; k < v.rows(); ++k) v.row(k) /= std::max(v.row(k).lpNorm<Eigen::Infinity>(), 1e-300);
  return v;
}

/// Steps along scaled velocities (k, nv). `size` (k): largest component of each displacement. The results are the ends of the steps, and the
/// displacements divided by `size`.
struct Steps {
  RowMajor ends, displacements;
  std::vector<bool> reliable;

  Steps(const ScaledLoops& loops, const double* q, const Matrix& aim, const Vector& size) : reliable(size.size()) {
    ScaledLoops::Walk walk = loops.walk(q, size.asDiagonal() * aim);
    ends = std::move(walk.ends), displacements = size.cwiseInverse().asDiagonal() * walk.displacements;
    // use the square root of the residual: at the distance x from a double root, the residual is of the order x^2
    for (Eigen::Index k = 0; k < size.size(); ++k) reliable[k] = std::sqrt(walk.open(k)) < 0.01 * size(k);
  }
  double distance(int k) const { return displacements.row(k).lpNorm<Eigen::Infinity>(); }
};

/// Return the velocities at q that J allows and that begin finite motions, or no value if they cannot be determined. J alone does not determine them:
/// if a mechanism contains a structure at its dead centre, J allows a velocity in every configuration that does not begin a motion.
std::optional<Neighbour> tangent(const ScaledLoops& loops, const Vector& q, RandomNumbers& random) {
  const Matrix N = null_space(loops.holonomic_rows(loops.jacobian(q.data())), present);
  const int d = static_cast<int>(N.cols());
  const Matrix directions = d ? orthogonal_from(random.normal(d, d)) : Matrix(0, 0);
  std::optional<Neighbour> result;
  // if there are many directions, test a few of them first; no more are needed if all of these have the same result
  for (const bool few : {true, false}) {
    if (few && d <= 16) continue;
    const int count = few ? 8 : d;
    const Matrix aim = directions.topRows(count) * (few ? std::sqrt(d / 8.0) : 1.0);
    const Steps steps(loops, q.data(), product(aim, N.transpose()), Vector::Constant(count, small_step));
    bool clear = std::all_of(steps.reliable.begin(), steps.reliable.end(), [](bool reliable) { return reliable; });
    result.reset();
    if (!clear) continue;
    const RightFactor parts = right_singular_vectors(steps.displacements * N);
    const int followed = count_above(parts.values, 0.1);
    for (const double part : parts.values) clear = clear && !(part > 0.05 && part < 0.3);
    if (!clear) continue;
    result = {q, N * parts.V.leftCols(followed)};
    if (followed < count / 2) break;
  }
  return result;
}

/// Compute the dimension of the largest branch. If the end of a step deviates from its target, the step is repeated towards this end, because that
/// direction is closer to a branch.
FiniteMotion largest_branch(const ScaledLoops& loops, const double* q, const Matrix& N, const Vector& size, Steps steps,
                            RandomNumbers& random) {
  const int d = static_cast<int>(N.cols()), count = static_cast<int>(size.size());
  for (int again = 0; again < 2; ++again)
    steps = Steps(loops, q, scaled_to_one(product(product(steps.displacements, N), N.transpose())), size);
  int back = 0;
  for (int k = 0; k < count; ++k) back += steps.reliable[k] && steps.distance(k) < 0.02;
  if (back == count)
    return {0, std::to_string(count) + " random steps along possible velocities returned to this configuration", {}};
  FiniteMotion result;
  int most[2] = {0, 0};
  bool clear = true;
  for (const int small : {0, 1}) {
    int used = 0;
    for (int k = small; k < count && used < most_neighbours; k += 2) {
      if (!(steps.reliable[k] && steps.distance(k) > 0.8 && steps.distance(k) < 1.25)) continue;
      ++used;
      const std::optional<Neighbour> neighbour = tangent(loops, steps.ends.row(k), random);
      clear = clear && neighbour;
      if (!neighbour) continue;
      most[small] = std::max(most[small], static_cast<int>(neighbour->tangent.cols()));
      if (neighbour->tangent.cols() > 0) result.neighbours.push_back(*neighbour);
    }
  }
  if (!clear || most[0] != most[1] || result.neighbours.empty()) {
    result.reason = "undecided: steps of different lengths and directions give different results";
    return result;
  }
  result.freedom = most[0];
  result.reason = std::string(most[0] < d ? "bifurcation: of" : "of") + " the largest branch, from " +
                  std::to_string(result.neighbours.size()) + " configurations nearby";
  return result;
}

/// Find the branches of the closed configurations, ignoring rows that constrain only velocities.
FiniteMotion branches(const ScaledLoops& loops, const double* q, const Matrix& motions, double tolerance, bool compared) {
  const bool plain = loops.holonomic_rows(Matrix::Zero(loops.holonomic.size(), 0)).rows() == Eigen::Index(loops.holonomic.size());
  const Matrix J = loops.holonomic_rows(loops.jacobian(q));
  const Matrix N = plain ? motions : null_space(J, tolerance);
  const int d = static_cast<int>(N.cols()), nv = static_cast<int>(N.rows());
  if (d == 0) return {0, "no possible velocity in this configuration", {}};
  RandomNumbers random;
  const int count = std::min(d, 8) + 4;
  const bool independent = J.rows() + d == nv;
  if (independent && plain && !compared) return {d, "the constraints are independent here", {}};
  const Matrix drawn = scaled_to_one(product(random.normal(count, d), N.transpose()));
  Vector size(count);
  for (int k = 0; k < count; ++k) size(k) = k % 2 ? step_size / 4.0 : step_size;
  const auto straight = [&](const Steps& steps, int k, int first) {
    return steps.reliable[k] && (steps.displacements.row(k) - drawn.row(first + k)).lpNorm<Eigen::Infinity>() < 0.2;
  };
  const auto add = [&](FiniteMotion& to, const Vector& end) {
    to.neighbours.push_back({end, null_space(loops.holonomic_rows(loops.jacobian(end.data())), nv - d)});
  };
  if (independent) {
    FiniteMotion result{d, "the constraints are independent here", {}};
    for (int first = 0; first < count && result.neighbours.empty(); first += most_neighbours) {
      const int batch = std::min(most_neighbours, count - first);
      const Steps steps(loops, q, drawn.middleRows(first, batch), size.segment(first, batch));
      for (int k = 0; k < batch; ++k)
        if (straight(steps, k, first)) add(result, steps.ends.row(k));
    }
    return result;
  }
  Steps steps(loops, q, drawn, size);
  int straight_steps = 0;
  for (int k = 0; k < count; ++k) straight_steps += straight(steps, k, 0);
  if (straight_steps == count) {
    FiniteMotion result{d, std::to_string(count) + " random steps along possible velocities could be taken", {}};
    for (int k = 0; k < most_neighbours; ++k) add(result, steps.ends.row(k));
    return result;
  }
  return largest_branch(loops, q, N, size, std::move(steps), random);
}

}  // namespace

FiniteMotion finite_motion(const ScaledLoops& loops, const double* q, const Matrix& motions, double tolerance, bool compared) {
  FiniteMotion result = branches(loops, q, motions, tolerance, compared);
  const bool nonholonomic = std::find(loops.holonomic.begin(), loops.holonomic.end(), false) != loops.holonomic.end();
  if (nonholonomic && result.freedom.value_or(1) != 0) {  // subtract the number of velocities that only nonholonomic rows forbid
    result.freedom.reset();
    for (Neighbour& n : result.neighbours) {
      const Matrix A = loops.velocity_rows(loops.jacobian(n.q.data())) * n.tangent;
      n.tangent = n.tangent * null_space(A, present);
      result.freedom = std::max(result.freedom.value_or(0), static_cast<int>(n.tangent.cols()));
    }
  }
  std::vector<Neighbour> largest;
  for (Neighbour& n : result.neighbours)
    if (result.freedom && n.tangent.cols() == *result.freedom) largest.push_back(std::move(n));
  result.neighbours = std::move(largest);
  return result;
}

}  // namespace sarrus
