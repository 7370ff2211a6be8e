// Limits of a task controller, from named arguments.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "task_context.hpp"

namespace sarrus::reading {

class LimitReader {
 public:
  LimitReader(const TaskContext& context, const TaskArguments& arguments)
      : context_(context), limits_(arguments.limits), actuated_(arguments.actuated), rigid_(arguments.rigid) {}

  void read_motors(const std::vector<double>& weights) {
    std::vector<TaskMotor>& motors = context_.to.law.motor;
    for (const std::string& name : actuated_) {
      const NamedParts::PlacedJoint joint = context_.joint(name);
      const int n = joint.joint.nv;
      const std::optional<std::vector<double>>& rated = context_.model.type(joint.index).effort_limit;
      const Argument effort = limits_ ? of_joint("effort", name) : Argument(infinity),
                     power = limits_ ? of_joint("power", name) : Argument(infinity);
      auto [low, high] =
          effort.is_none() ? both_sides(rated ? *rated : std::vector<double>{infinity}) : both("effort", name, effort);
      const std::vector<double> most = per_velocity("power of '" + name + "'", power.is_none() ? Argument(infinity) : power, n);
      low = per_velocity("effort of '" + name + "'", low, n), high = per_velocity("effort of '" + name + "'", high, n);
      bool sound = true;
      for (int k = 0; k < n; ++k) {
        const auto i = static_cast<std::size_t>(k);
        sound = sound && low[i] <= 0.0 && high[i] >= 0.0 && most[i] >= 0.0;
      }
      if (!sound)
        throw ModelError("limits of effort and power of '" + name + "' must include 0; got " + effort.shown() + ", " +
                         power.shown());
      for (int k = 0; k < n; ++k) {
        const auto i = static_cast<std::size_t>(k);
        const bool angular = !slides(joint.joint, k);
        int same = 1;
        while (k + same < n && !slides(joint.joint, k + same) == angular) ++same;
        motors.push_back({joint.iv + k, angular, same, weights[motors.size()], std::max(low[i], -far_limit),
                          std::min(high[i], far_limit), std::min(most[i], far_limit)});
        context_.to.limits.push_back(named("effort", name, k, n));
      }
    }
    for (const std::string& name : rigid_) {
      const NamedParts::PlacedJoint joint = context_.joint(name);
      // the weight is small, because the constraint force of a rigid joint costs nothing
      for (int k = 0; k < joint.joint.nv; ++k) {
        motors.push_back({joint.iv + k, !slides(joint.joint, k), 1, 1e-6, -far_limit, far_limit, far_limit});
        context_.to.limits.push_back(named("force", name, k, joint.joint.nv)), ++context_.to.law.rigid;
      }
    }
    for (const char* quantity : {"effort", "velocity", "position", "power", "braking"}) {
      const Argument::Named* by_joint = limits_ ? at(quantity).get<Argument::Named>() : nullptr;
      for (const auto& [name, value] : by_joint ? *by_joint : Argument::Named()) {
        context_.joint(name);
        const bool of_motor = std::string(quantity) == "effort" || std::string(quantity) == "power";
        if (of_motor && !std::count(actuated_.begin(), actuated_.end(), name))
          throw ModelError(std::string(quantity) + " of Limits: joint '" + name + "' has no motor in this controller");
      }
    }
  }

  void read_motion() {
    if (!limits_) return;
    for (const bool loops : {false, true})
      for (std::size_t j = 0; j < context_.mechanism.joints().size(); ++j)
        if (const NamedParts::PlacedJoint joint = context_.joint(j); joint.closes_loop == loops) add_motion(joint);
    context_.to.law.horizon = positive("horizon of Limits", at("horizon"));
  }

 private:
  const Argument& at(const std::string& key) const {
    static const Argument::Named usual = {{"effort", Argument()}, {"velocity", Argument()}, {"position", Argument()},
                                          {"power", Argument()},  {"braking", 10.0},        {"horizon", 0.01}};
    const Argument* x = find_argument(*limits_, key);
    if (x && !x->is_none()) return *x;
    return *find_argument(usual, key);
  }
  /// Return the value for a joint, or the default value if the joint has none.
  Argument of_joint(const char* key, const std::string& joint) const {
    const Argument& value = at(key);
    const Argument::Named* by_joint = value.get<Argument::Named>();
    if (!by_joint) return value;
    const Argument* x = find_argument(*by_joint, joint);
    return x ? *x : Argument();
  }
  static double positive(const std::string& label, const Argument& value) {
    const double x = constant(label, value);
    if (!(x > 0.0)) refuse(label, "be positive and finite", value);
    return x;
  }
  static std::vector<double> per_velocity(const std::string& label, const Argument& value, int n) {
    const Numbers x = real_numbers(label, value);
    if (x.numbers.size() == 1) return std::vector<double>(static_cast<std::size_t>(n), x.numbers[0]);
    if (x.shape != std::vector<std::size_t>{static_cast<std::size_t>(n)})
      throw ShapeError(label + " must be a number, or (" + std::to_string(n) + ",); got shape " + shape_text(x.shape));
    return x.numbers;
  }
  using Sides = std::pair<std::vector<double>, std::vector<double>>;
  static Sides both_sides(std::vector<double> size) {
    Sides sides{size, std::move(size)};
    for (double& x : sides.first) x = -x;
    return sides;
  }
  /// Return the lower and the upper limit, from a pair or from a single number for symmetric limits.
  static Sides both(const char* key, const std::string& joint, const Argument& value) {
    const std::string label = std::string(key) + " of '" + joint + "'";
    const bool position = std::string(key) == "position";
    if (value.is_list() || position) {
      const Argument::List pair = value.items();
      if (!value.is_list() || pair.size() != 2)
        throw ShapeError(label + " must be " + (position ? "" : "a number or ") + "(lower, upper); got " + value.shown());
      return {real_numbers(label, pair[0]).numbers, real_numbers(label, pair[1]).numbers};
    }
    return both_sides(real_numbers(label, value).numbers);
  }
  static std::string named(const char* quantity, const std::string& joint, int k, int count) {
    return std::string(quantity) + " of '" + joint + "'" + (count > 1 ? "[" + std::to_string(k) + "]" : "");
  }

  void add_motion(const NamedParts::PlacedJoint& joint) {
    const std::string& name = joint.joint.name;
    const model::JointType& type = context_.model.type(joint.index);
    const int n = joint.joint.nv;
    const Argument given = of_joint("velocity", name), position = of_joint("position", name);
    std::vector<double> speed = {infinity};
    if (!given.is_none())
      speed = real_numbers("velocity of '" + name + "'", given).numbers;
    else if (type.velocity_limit)
      speed = *type.velocity_limit;
    Sides ends = {{-infinity}, {infinity}};
    if (!position.is_none())
      ends = both("position", name, position);
    else if (at("position").is_none() && type.limits && !type.has_quaternion())
      ends = *type.limits;
    const Argument braking_given = of_joint("braking", name);
    const double braking = positive("braking of '" + name + "'", braking_given.is_none() ? Argument(10.0) : braking_given);
    speed = per_velocity("velocity of '" + name + "'", speed, n);
    const std::vector<double> low = per_velocity("lower position of '" + name + "'", ends.first, n),
                              high = per_velocity("upper position of '" + name + "'", ends.second, n);
    for (int k = 0; k < n; ++k) {
      const auto i = static_cast<std::size_t>(k);
      const double lower = low[i], upper = high[i];
      if (!(speed[i] >= 0.0) || !(lower < upper))
        throw ModelError("limits of '" + name + "' allow no motion: velocity " + shortest(speed[i]) + ", position (" +
                         shortest(lower) + ", " + shortest(upper) + ")");
      const bool placed = std::isfinite(lower) || std::isfinite(upper);
      if (!placed && !std::isfinite(speed[i])) continue;
      MotionLimit limit{};
      // a limit of velocity does not use the coordinate
      limit.coordinate = placed ? context_.task_coordinate(joint, k, "a limit of position")
                                : TaskCoordinate{joint.iq, joint.iv + k, false, !slides(joint.joint, k)};
      limit.lower = std::max(lower, -far_limit), limit.upper = std::min(upper, far_limit);
      limit.velocity = std::min(speed[i], far_limit), limit.braking = braking;
      // whole turns are added such that the angle is nearest to the middle of the limits, or to a quarter turn from a single limit
      constexpr double quarter = 0.5 * M_PI;
      limit.middle = std::isfinite(lower) && std::isfinite(upper) ? 0.5 * (lower + upper)
                     : std::isfinite(lower)                       ? lower + quarter
                     : std::isfinite(upper)                       ? upper - quarter
                                                                  : 0.0;
      context_.to.law.motion.push_back(limit);
      context_.to.limits.push_back(named("motion", name, k, n));
    }
  }

  const TaskContext& context_;
  const std::optional<Argument::Named>& limits_;
  const std::vector<std::string>&actuated_, &rigid_;
};

}  // namespace sarrus::reading
