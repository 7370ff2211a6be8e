// Type of a joint in a description: axes and other numbers, with the names in the type's file in cpp/joints; limits; and passive forces along each
// velocity.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../joints/joint_set.hpp"
#include "value.hpp"

namespace sarrus::model {

struct JointType {
  using Numbers = std::vector<double>;
  JointKind kind = JointKind::fixed;
  Vec3<double> axis = Vec3<double>::UnitZ(), axis2 = Vec3<double>::UnitZ();  // unit vectors, in the joint's frame
  JointConstants constants;
  std::optional<std::pair<Numbers, Numbers>> limits;  // lower and upper limits, one number per coordinate
  std::optional<Numbers> velocity_limit, effort_limit;  // one number per velocity; the same applies to the following members
  Numbers damping, friction, armature, stiffness, rest;
  Numbers quadratic_stiffness, cubic_stiffness, quadratic_damping, cubic_damping;

  const char* name() const;
  int nq() const;
  int nv() const;
  bool has_quaternion() const;
  /// Return true if the rate of coordinate k is velocity k.
  bool is_rate(int k) const;
  /// Return true if coordinate k is an angle.
  bool is_angle(int k) const;
};

/// Create a joint type of this kind from its fields by name; each field is a number, a list or a text: joint_type("Revolute", {{"axis", "y"},
/// {"damping", 0.1}}). A number applies to all coordinates or velocities. Raises ModelError for numbers that are not finite, negative friction or
/// inertia, reversed limits, unknown or missing fields, and any force of a joint that does not move.
JointType joint_type(const std::string& kind, const Value::Object& fields);

/// Return the names of all kinds.
std::vector<std::string> joint_kind_names();
/// Field of a joint type, with two flags: it is a single plain number; it is required.
struct JointField {
  std::string name;
  bool one_number, required;
};
std::vector<JointField> joint_fields(const std::string& kind);
/// Return the fields that differ from their default values; joint_type() creates the same joint from them.
Value::Object fields_of(const JointType& joint);
/// Return a joint as Python shows it: Revolute('y', damping=0.1).
std::string text_of(const JointType& joint);

// functions that create joint types; optional fields are passed by name: revolute("y", {{"limits", {-1.0, 1.0}}, {"damping", 0.1}})
inline JointType joint_along(const char* kind, const char* key, const Value& axis, Value::Object fields) {
  fields.emplace_back(key, axis);
  return joint_type(kind, fields);
}
inline JointType fixed() { return joint_type("Fixed", {}); }
inline JointType revolute(const Value& axis, const Value::Object& more = {}) {
  return joint_along("Revolute", "axis", axis, more);
}
inline JointType prismatic(const Value& axis, const Value::Object& more = {}) {
  return joint_along("Prismatic", "axis", axis, more);
}
inline JointType cylindrical(const Value& axis, const Value::Object& more = {}) {
  return joint_along("Cylindrical", "axis", axis, more);
}
inline JointType planar(const Value& normal, const Value::Object& more = {}) {
  return joint_along("Planar", "normal", normal, more);
}
inline JointType spherical(const Value::Object& more = {}) { return joint_type("Spherical", more); }
inline JointType free_joint(const Value::Object& more = {}) { return joint_type("Free", more); }

}  // namespace sarrus::model
