#include "random.hpp"

#include <cmath>
#include <numeric>

#include "../joints/visit.hpp"
#include "../loops/tolerances.hpp"

namespace sarrus {
namespace {

constexpr int most_draws = 100;
// number of draws after which singular positions are accepted, because some mechanisms have hardly any other positions
constexpr int regular_draws = 10;

/// Return true if a configuration is singular within the accuracy of the steps, which end at a distance of up to 1e-8 from a double root.
bool nearly_singular(const Closure& closure, const Vector& q) {
  // relative to the largest singular value: below `small` it indicates a singular position; below `zero` it is zero in every configuration
  constexpr double small = 1e-6, zero = 1e-12;
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
        // a missing limit is replaced by the default spread. If the existing limit exceeds this spread, the missing one is placed at twice the spread
        // from it
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
  const auto states = [](const std::vector<int>& rows) { return States{static_cast<int>(rows.size()), {}, 1, {}, true}; };
  for (int attempt = 0; attempt < most_draws; ++attempt) {
    if (positions.model().check_interrupt) positions.model().check_interrupt();
    const RowMajor starts = all_rows_of(q, missing);
    Closure::ClosedStates closed = closure->close(states(missing), starts, {}, steps_of_single_attempt);
    const std::vector<int> again = where(closed.open.array().isFinite() && closed.open.array() > tolerances::closed);
    if (!again.empty()) {
      const Closure::ClosedStates farther = closure->close(states(again), all_rows_of(starts, again), {}, far_steps);
      set_rows(closed.q, again, farther.q);
      for (std::size_t k = 0; k < again.size(); ++k) closed.open(again[k]) = farther.open(k);
    }
    const RowMajor results = closure->unwound(closed.q, starts);
    const Flags within = closure->within(states(missing), results, 1.0, {});
    std::vector<int> left;
    for (std::size_t k = 0; k < missing.size(); ++k) {
      const bool good = closed.open(k) <= tolerances::closed && within(k);
      if (good && (attempt >= regular_draws || !nearly_singular(*closure, results.row(k))))
        q.row(missing[k]) = results.row(k);
      else
        left.push_back(missing[k]);
    }
    missing = left;
    if (missing.empty()) return q;
    set_rows(q, missing, draw(static_cast<int>(missing.size())));
  }
  throw AssemblyError("found only " + std::to_string(q.rows() - static_cast<Eigen::Index>(missing.size())) + " of " +
                      std::to_string(q.rows()) +
                      " closed configurations within the joint limits, from 100 random initial guesses each; check that "
                      "assemble() finds a configuration, or widen the limits");
}

}  // namespace sarrus
