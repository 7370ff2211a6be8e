#include "random.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include "../joints/visit.hpp"
#include "../loops/tolerances.hpp"

namespace sarrus {
namespace {

constexpr int most_draws = 100;
constexpr int regular_draws =
    10;  // draws after which singular positions are accepted, because some mechanisms have hardly any other

/// Configurations near the starts (n, nq), and their residuals; infinite if there is none.
struct ClosedRows {
  RowMajor q;
  Vector open;
};
ClosedRows close_each(const Closure& closure, const RowMajor& starts, const ClosingSteps& steps) {
  const int n = static_cast<int>(starts.rows()), nq = static_cast<int>(starts.cols());
  const int rows = closure.mechanism().tree().loops.pfaffian_values;
  const Vector scale = closure.scale();
  const double options[3] = {steps.damping, steps.most, steps.farthest};
  RowMajor values(n, rows), closed(n, nq + 1);
  for (int k = 0; rows > 0 && k < n; ++k) values.row(k) = closure.values(starts.row(k), Vector()).transpose();
  closure.functions().evaluate_many(Operation::close,
                                    {{starts.data(), nq, false},
                                     {scale.data(), static_cast<int>(scale.size()), true},
                                     {options, 3, true},
                                     {nullptr, 1, true},
                                     {rows ? values.data() : nullptr, rows, false}},
                                    n, nq + 1, closed.data());
  ClosedRows result{closed.leftCols(nq), closed.col(nq)};
  for (int k = 0; k < n; ++k)
    if (!closed.row(k).allFinite()) result.open(k) = std::numeric_limits<double>::infinity();
  return result;
}

/// Return true if a configuration is singular within rounding: steps end within 1e-8 of a double root.
bool nearly_singular(const Closure& closure, const Vector& q) {
  constexpr double small = 1e-6,
                   zero = 1e-12;  // singular values of independent velocities; those that are zero everywhere, by rounding
  const Vector s = singular_values(closure.jacobian(q, {}));
  return s.size() && ((s.array() > zero * s(0)) && (s.array() < small * s(0))).any();
}

}  // namespace

RowMajor open_configurations(const PositionModel& model, int count, RandomNumbers& numbers, double metre) {
  const Mechanism& mechanism = model.mechanism;
  RowMajor q(count, mechanism.tree().nq);
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j) {
    const Mechanism::PlacedJoint& at = mechanism.joints()[j];
    const JointDescription& joint = mechanism.description().joints[j];
    if (at.closes_a_loop) continue;
    const JointRange& limits = model.limits[j];
    for (int i = 0; i < count; ++i)
      for (int k = 0; k < at.nq; ++k) {
        const char unit = coordinate_unit(joint, k);
        const double spread = unit == 'r' ? M_PI : unit == 'm' ? metre : 1.0;
        double low = limits.empty() ? -spread : limits.low[k], high = limits.empty() ? spread : limits.high[k];
        // with a single limit, the other end of the range is at the default spread, or at twice this spread from the limit
        if (!std::isfinite(low)) low = high > -spread ? -spread : high - 2.0 * spread;
        if (!std::isfinite(high)) high = low < spread ? spread : low + 2.0 * spread;
        q(i, at.iq + k) = numbers.uniform(low, high);
      }
    if (!has_quaternion(joint.kind)) continue;
    const Matrix four = numbers.normal(count, 4);
    for (int i = 0; i < count; ++i) q.row(i).segment<4>(at.iq) = four.row(i) / four.row(i).norm();
  }
  return q;
}

RowMajor closed_configurations(const Positions& positions, RowMajor q, const std::function<RowMajor(int count)>& draw) {
  const std::shared_ptr<const Closure> closure = positions.closure({}, {});
  std::vector<int> missing(static_cast<std::size_t>(q.rows()));
  std::iota(missing.begin(), missing.end(), 0);
  const auto rows_of = [](const RowMajor& all, const std::vector<int>& rows) {
    RowMajor some(rows.size(), all.cols());
    for (std::size_t k = 0; k < rows.size(); ++k) some.row(k) = all.row(rows[k]);
    return some;
  };
  for (int attempt = 0; attempt < most_draws; ++attempt) {
    if (positions.model().check_interrupt) positions.model().check_interrupt();
    const RowMajor starts = rows_of(q, missing);
    ClosedRows closed = close_each(*closure, starts, steps_of_single_attempt);
    std::vector<int> again;
    for (int k = 0; k < starts.rows(); ++k)
      if (std::isfinite(closed.open(k)) && closed.open(k) > tolerances::closed) again.push_back(k);
    const ClosedRows later = close_each(*closure, rows_of(starts, again), far_steps);
    for (std::size_t k = 0; k < again.size(); ++k) closed.q.row(again[k]) = later.q.row(k), closed.open(again[k]) = later.open(k);
    std::vector<int> left;
    for (int k = 0; k < starts.rows(); ++k) {
      const Vector result = closure->unwound(closed.q.row(k), starts.row(k));
      if (closed.open(k) <= tolerances::closed && closure->within(result, 1.0, {}) &&
          (attempt >= regular_draws || !nearly_singular(*closure, result)))
        q.row(missing[k]) = result.transpose();
      else
        left.push_back(missing[k]);
    }
    missing = left;
    if (missing.empty()) return q;
    const RowMajor more = draw(static_cast<int>(missing.size()));
    for (std::size_t k = 0; k < missing.size(); ++k) q.row(missing[k]) = more.row(k);
  }
  throw AssemblyError("closed configurations within joint limits: found " +
                      std::to_string(q.rows() - static_cast<Eigen::Index>(missing.size())) + " of " + std::to_string(q.rows()) +
                      ", from 100 random initial guesses each; check that assemble() finds a configuration, or widen the limits");
}

}  // namespace sarrus
