// Limits of the joints of a mechanism in a simulation.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../mobility/scaled_loops.hpp"
#include "../simulation/plan.hpp"
#include "checks.hpp"

namespace sarrus::reading {

/// Limits of joints that a simulation watches or enforces. An effort is the sum of all controllers' efforts along a velocity.
struct RunLimits {
  struct Watched {
    std::string joint;
    int index;  // of the coordinate or velocity in the joint
    double lower, upper;
    bool enforced;
    Limit limit;  // of the simulation, beyond rounding
  };
  std::vector<Watched> watched;
  std::vector<std::pair<std::string, int>> end_stops;  // joint and coordinate of end stops to be added
  std::vector<double> effort_limits;  // along each velocity, those of loop joints last; empty: efforts are not limited
};

/// Return the limits of all joints, those of the tree first. With `enforce`, coordinates that are not yet `stopped` get end stops, and efforts are
/// limited. Raises ModelError if a coordinate cannot have an end stop.
inline RunLimits run_limits(const NamedParts& parts, const std::function<const model::JointType&(int)>& type_of, double length,
                            bool enforce, const std::set<std::pair<std::string, int>>& stopped) {
  // tolerance of a limit, relative to the sum of its magnitude and a scale: 1 rad or the characteristic length, per second for velocities
  constexpr double rounding = 1e-9;
  // joints in the order of their velocities, those of loop joints last
  std::vector<std::size_t> joints(parts.mechanism.joints().size());
  std::iota(joints.begin(), joints.end(), std::size_t{0});
  std::stable_sort(joints.begin(), joints.end(),
                   [&](std::size_t a, std::size_t b) { return parts.joint(a).iv < parts.joint(b).iv; });

  std::size_t velocities = 0;
  for (const std::size_t j : joints) velocities += static_cast<std::size_t>(parts.joint(j).joint.nv);

  RunLimits all;
  all.effort_limits.assign(velocities, infinity);
  bool limited = false;
  for (const std::size_t j : joints) {
    const NamedParts::PlacedJoint joint = parts.joint(j);
    const std::string& name = joint.joint.name;
    const model::JointType& type = type_of(joint.index);
    const auto watch = [&](Quantity quantity, int k, double lower, double upper, int first, double scale, bool enforced) {
      if (!std::isfinite(lower) && !std::isfinite(upper)) return;
      const Limit watched_limit{quantity, first + k, lower - rounding * (scale + std::abs(lower)),
                                upper + rounding * (scale + std::abs(upper))};
      all.watched.push_back({name, k, lower, upper, enforced, watched_limit});
    };
    for (int k = 0; type.limits && k < joint.joint.nq; ++k) {
      const double lower = type.limits->first[static_cast<std::size_t>(k)],
                   upper = type.limits->second[static_cast<std::size_t>(k)];
      bool has_stop = stopped.count({name, k}) > 0;
      if (enforce && (std::isfinite(lower) || std::isfinite(upper))) {
        try {
          parts.coordinate(joint, Argument(static_cast<double>(k)), "an end stop");
        } catch (const ModelError& error) {
          throw ModelError("limits of '" + name + "' do not allow an end stop: " + error.what() +
                           ". Remove the limits, or give limits='warn'");
        }
        if (!has_stop) all.end_stops.emplace_back(name, k);
        has_stop = true;
      }
      watch(Quantity::position, k, lower, upper, joint.iq, type.is_angle(k) ? 1.0 : length, has_stop);
    }
    for (int k = 0; type.velocity_limit && k < joint.joint.nv; ++k) {
      const double most = (*type.velocity_limit)[static_cast<std::size_t>(k)];
      watch(Quantity::velocity, k, -most, most, joint.iv, slides(joint.joint, k) ? length : 1.0, false);
    }
    for (int k = 0; type.effort_limit && k < joint.joint.nv; ++k) {
      const double most = (*type.effort_limit)[static_cast<std::size_t>(k)];
      watch(Quantity::effort, k, -most, most, joint.iv, 0.0, enforce);
      all.effort_limits[static_cast<std::size_t>(joint.iv + k)] = most;
      limited = limited || std::isfinite(most);
    }
  }
  if (!enforce || !limited) all.effort_limits.clear();
  return all;
}

}  // namespace sarrus::reading
