// Checks of arguments, and access to elements of a mechanism by name, for elements.cpp and tasks.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../elements/element.hpp"
#include "../mobility/actuation.hpp"
#include "../model/joint_type.hpp"
#include "../model/text.hpp"
#include "argument.hpp"

namespace sarrus::reading {

using Numbers = Argument::Numbers;

constexpr double infinity = std::numeric_limits<double>::infinity();

inline const Argument* find_argument(const Argument::Named& named, const std::string& key) {
  const auto at = std::find_if(named.begin(), named.end(), [&](const auto& each) { return each.first == key; });
  return at == named.end() ? nullptr : &at->second;
}
/// Return a name, or the text for messages of any other argument.
inline std::string text(const Argument& x) { return x.is<std::string>() ? *x.get<std::string>() : x.shown(); }

// ---- numbers ---------------------------------------------------------------------------------------------------------

inline bool all_of(const Numbers& x, bool (*sound)(double)) { return std::all_of(x.numbers.begin(), x.numbers.end(), sound); }
inline bool is_finite_number(double x) { return std::isfinite(x); }

[[noreturn]] inline void refuse(const std::string& label, const std::string& expected, const Argument& got) {
  throw ModelError(label + " must " + expected + "; got " + got.shown());
}

/// Return numbers of any shape.
inline const Numbers& array(const std::string& label, const Argument& value, bool finite = true) {
  const Numbers* x = value.get<Numbers>();
  if (!x) refuse(label, "be a number, or (runs,) numbers", value);
  if (finite && !all_of(*x, is_finite_number)) refuse(label, "be finite", value);
  return *x;
}

/// Return a number () or (runs,) of the required sign.
inline const Numbers& number(const std::string& label, const Argument& value, Sign sign) {
  const bool infinite = sign == Sign::not_negative_or_infinite, not_negative = infinite || sign == Sign::not_negative;
  const Numbers& x = array(label, value, !infinite);
  if (x.shape.size() > 1) throw ShapeError(label + " must be a number, or (runs,); got " + shape_text(x.shape));
  // the comparison is written such that NaN is an error too
  if (sign == Sign::positive && !all_of(x, [](double each) { return each > 0.0; })) refuse(label, "be positive", value);
  if (not_negative && !all_of(x, [](double each) { return each >= 0.0; })) refuse(label, "not be negative", value);
  return x;
}

/// Return a finite number, which must be the same in all runs.
inline double constant(const std::string& label, const Argument& value, Sign sign = Sign::any) {
  const Numbers* x = value.get<Numbers>();
  if (!x || !x->shape.empty() || !std::isfinite(x->numbers[0])) refuse(label, "be a finite number", value);
  return number(label, value, sign).numbers[0];
}

/// Return the argument as a function of time; a number is a constant function.
inline Law to_law(const std::string& label, const Argument& value) {
  if (const Law* law = value.get<Law>()) return *law;
  if (const Numbers* x = value.get<Numbers>(); x && x->shape.empty() && std::isfinite(x->numbers[0]))
    return {{0.0}, {x->numbers[0]}, {}};
  refuse(label, "be a time function, such as sarrus.laws.harmonic(1.0, rate=2.0), or a finite number", value);
}

/// Return a unit vector: "x", "-z" or three numbers.
inline Vec3<double> unit_direction(const Argument& value) {
  if (const std::string* name = value.get<std::string>()) return model::unit_axis(*name);
  const Numbers* x = value.get<Numbers>();
  return model::unit_axis((x && x->shape.size() == 1 ? Value(x->numbers) : Value(Value::Object())).written(value.shown()));
}

// ---- elements by name --------------------------------------------------------------------------------------------------

/// Joints and frames of a mechanism by name. Indices of coordinates and velocities of loop joints follow those of the tree.
class NamedParts {
 public:
  const Mechanism& mechanism;
  const Tree& tree = mechanism.tree();

  explicit NamedParts(const Mechanism& m) : mechanism(m) {
    int iq = tree.nq, iv = tree.nv;
    for (std::size_t j = 0; j < mechanism.joints().size(); ++j) {
      const Mechanism::PlacedJoint& at = mechanism.joints()[j];
      const JointDescription& joint = mechanism.description().joints[j];
      by_name_.emplace(joint.name, j);
      placed_.push_back(at.closes_a_loop ? std::make_pair(iq, iv) : std::make_pair(at.iq, at.iv));
      if (at.closes_a_loop) iq += joint.nq, iv += joint.nv;
    }
  }

  /// A joint of the description, with the indices of its first coordinate and velocity.
  struct PlacedJoint {
    int index;
    const JointDescription& joint;
    int iq, iv;
    bool closes_loop;
    model::JointType type() const {
      model::JointType type;
      type.kind = joint.kind, type.constants = joint.constants;
      return type;
    }
  };
  PlacedJoint joint(std::size_t j) const {
    return {static_cast<int>(j), mechanism.description().joints[j], placed_[j].first, placed_[j].second,
            mechanism.joints()[j].closes_a_loop};
  }
  PlacedJoint joint(const Argument& name) const {
    const std::string* text = name.get<std::string>();
    const auto at = text ? by_name_.find(*text) : by_name_.end();
    if (at != by_name_.end()) return joint(at->second);
    std::vector<std::string> names;
    for (const JointDescription& each : mechanism.description().joints) names.push_back(each.name);
    no_such_name("joint", text ? *text : name.shown(), std::move(names));
  }
  PlacedJoint tree_joint(const Argument& name, const std::string& quantity) const {
    const PlacedJoint at = joint(name);
    if (at.closes_loop)
      throw ModelError("joint '" + at.joint.name + "' closes a loop and has no " + quantity + ": add it with tree=True");
    return at;
  }
  const PlacedFrame& frame(const Argument& name) const {
    const std::string* text = name.get<std::string>();
    if (const PlacedFrame* at = text ? mechanism.find_frame(*text) : nullptr) return *at;
    no_such_name("frame", text ? *text : name.shown(), mechanism.frame_names());
  }

  static int checked_index(const PlacedJoint& at, const char* quantities, const Argument& index) {
    const Numbers* x = index.get<Numbers>();
    if (!x || !x->shape.empty() || x->numbers[0] != std::floor(x->numbers[0]) || x->numbers[0] < 0.0 ||
        x->numbers[0] >= at.joint.nv)
      throw ModelError("joint '" + at.joint.name + "' has " + std::to_string(at.joint.nv) + " " + quantities + "; index " +
                       index.shown() + " is out of range");
    return static_cast<int>(x->numbers[0]);
  }
  /// Return a coordinate of a joint. Raises ModelError, which begins with `label`, if its rate is not a velocity.
  JointCoordinate coordinate(const PlacedJoint& at, const Argument& index, const std::string& label) const {
    const model::JointType type = at.type();
    if (type.has_quaternion())
      throw ModelError(label + " needs a joint without quaternion; '" + at.joint.name + "' is " + type.name());
    const int k = checked_index(at, "coordinates", index);
    if (!type.is_rate(k))
      throw ModelError(label + " needs a coordinate whose rate is a velocity; coordinate " + std::to_string(k) + " of '" +
                       at.joint.name + "', " + type.name() +
                       ", is not such a coordinate, because the velocities of this joint are along axes that rotate with it");
    return {at.iq + k, at.iv + k};
  }
  JointVelocity velocity(const Argument& joint_name, const Argument& index) const {
    const PlacedJoint at = joint(joint_name);
    return {at.iv + checked_index(at, "velocities", index)};
  }
  void add_velocities(const PlacedJoint& at, std::vector<JointVelocity>& all) const {
    for (int k = 0; k < at.joint.nv; ++k) all.push_back({at.iv + k});
  }
  /// Return the velocities that motors drive.
  std::vector<JointVelocity> motors(const std::string& label) const {
    const std::vector<int> joints = actuated_joints(mechanism);
    if (joints.empty()) throw ModelError(label + " needs motors, but no joint is actuated: build joints with actuated=True");
    std::vector<JointVelocity> all;
    for (const int j : joints) add_velocities(joint(static_cast<std::size_t>(j)), all);
    return all;
  }

 private:
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::pair<int, int>> placed_;
};

}  // namespace sarrus::reading
