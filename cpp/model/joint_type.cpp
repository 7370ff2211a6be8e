#include "joint_type.hpp"

#include <algorithm>
#include <cmath>

#include "../joints/visit.hpp"
#include "../mechanism/errors.hpp"
#include "text.hpp"
#include "values.hpp"

namespace sarrus::model {
namespace {

const std::vector<std::string> parameters = {"rx", "ry", "rz", "tx", "ty", "tz"};  // parameters of a gimbal
using Numbers = JointType::Numbers;

std::optional<JointKind> kind_of(const std::string& name) {
  for (const JointKind kind : joint_kinds)
    if (visit_every(kind, 0, [&](auto joint) { return name == joint.name; })) return kind;
  return std::nullopt;
}

/// Call f(key, number) for each of the joint's own parameters.
template <class F> void each_number(JointType& j, F f) {
  visit_every(j.kind, 0,
              [&](auto joint) { joint.fields(j.constants, [&](const char* key, auto& x, const char*) { f(key, x); }); });
}
/// Call f(key, axis) for each axis of the joint.
template <class J, class F> void each_axis(J& j, F f) {
  visit_every(j.kind, 0, [&](auto joint) {
    int k = 0;
    for (const char* key : joint.axis_names) f(key, k++ ? j.axis2 : j.axis);
  });
}
/// Call f(key, numbers, may_be_negative) for each passive force.
template <class J, class F> void each_passive(J& j, F f) {
  f("damping", j.damping, false), f("friction", j.friction, false), f("armature", j.armature, false);
  f("stiffness", j.stiffness, false), f("rest", j.rest, true);
  f("quadratic_stiffness", j.quadratic_stiffness, true), f("cubic_stiffness", j.cubic_stiffness, true);
  f("quadratic_damping", j.quadratic_damping, true), f("cubic_damping", j.cubic_damping, true);
}

bool is_cable(JointKind kind) { return kind == JointKind::cable; }
bool all_zero(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return x == 0.0 && !std::signbit(x); });
}

/// Read one number for each coordinate or velocity, or a single number for all of them.
Numbers per(const std::string& kind, const std::string& name, const Value& value, int count, bool infinite = false) {
  const std::string subject = kind + ": " + name;
  const auto array = numbers_of(value);
  if (!array) throw ModelError(subject + " needs numbers; got " + shown(value));
  const Numbers& x = array->numbers;
  const auto size = static_cast<std::size_t>(count);
  if (count == 0 && std::any_of(x.begin(), x.end(), [](double number) { return number != 0.0; }))
    throw ModelError(subject + " must be zero, because this joint does not move; got " + shown(value));
  if (array->shape.size() > 1 || (array->shape.size() == 1 && x.size() != size))
    throw ModelError(subject + " needs one number or " + std::to_string(count) + "; got " + shown(value));
  for (const double number : x)
    if (std::isnan(number) || (!infinite && !std::isfinite(number)))
      throw ModelError(subject + " must be finite; got " + shown(value));
  return array->shape.empty() ? Numbers(size, x[0]) : x;
}

void set_free(JointType& j, const Value& free, const Value& fixed) {
  const std::string candidates = joined(parameters, " ");
  std::vector<Value> names;
  if (free.is_text()) {
    std::string name;
    for (const char c : free.text() + " ") {
      if (c != ' ' && c != '\t' && c != '\n') {
        name += c;
      } else if (!name.empty()) {
        names.push_back(name), name.clear();
      }
    }
  } else if (free.is_list()) {
    names = free.list();
  } else {
    throw ModelError("Gimbal: free must name some of " + candidates + "; got " + shown(free));
  }
  int bits = 0, count = 0;
  for (const Value& name : names) {
    const auto at = std::find(parameters.begin(), parameters.end(), name.is_text() ? name.text() : "");
    if (at == parameters.end())
      throw ModelError("Gimbal: '" + (name.is_text() ? name.text() : shown(name)) + "' is not one of " + candidates);
    bits |= 1 << (at - parameters.begin()), ++count;
  }
  for (int bit = 0; bit < 6; ++bit) count -= bits >> bit & 1;
  if (count) throw ModelError("Gimbal: free contains a parameter twice: " + shown(free));
  const Numbers fixed_axes = per("Gimbal", "fixed", fixed, 6);
  j.constants.free = bits;
  for (int k = 0; k < 6; ++k) j.constants.number[k] = bits >> k & 1 ? 0.0 : fixed_axes[static_cast<std::size_t>(k)];
}

void set_limits(JointType& j, const Value& limits) {
  const std::string kind = j.name();
  if (!limits.is_list() || limits.list().size() != 2)
    throw ModelError(kind + ": limits must be a pair (lower, upper); got " + shown(limits));
  const Value &lower = limits.list()[0], &upper = limits.list()[1];
  const Numbers low = per(kind, "limits", lower, j.nq(), true), high = per(kind, "limits", upper, j.nq(), true);
  for (std::size_t k = 0; k < low.size(); ++k)
    if (low[k] > high[k]) throw ModelError(kind + ": lower limit " + shown(lower) + " is above upper limit " + shown(upper));
  for (std::size_t k = 0; k < 4 && j.has_quaternion(); ++k)
    if (std::isfinite(low[k]) || std::isfinite(high[k]))
      throw ModelError(kind +
                       ": a quaternion cannot have limits, because its entries are not angles: use infinite limits for the first "
                       "four coordinates, or a chain of one-axis joints; got " +
                       shown(limits));
  j.limits = {low, high};
}

/// Call f for each coordinate of this joint. Its type may list more coordinates than this joint has.
template <class F> void each_coordinate(const JointType& j, F f) {
  visit_every(j.kind, 0, [&](auto joint) {
    int listed = 0;
    for (const Coordinate& c : joint.coordinates)
      if (joint.has(j.constants, listed++)) f(c);
  });
}

}  // namespace

const char* JointType::name() const {
  return visit_every(kind, 0, [](auto joint) { return joint.name; });
}
int JointType::nq() const {
  int count = 0;
  each_coordinate(*this, [&](const Coordinate&) { ++count; });
  return count;
}
int JointType::nv() const {
  return visit_every(kind, 0, [&](auto joint) {
    int count = 0;
    for (int k = 0; k < static_cast<int>(joint.velocities.size()); ++k) count += joint.has(constants, k);
    return count;
  });
}
bool JointType::has_quaternion() const {
  return visit_every(kind, 0, [](auto joint) -> bool { return joint.has_quaternion; });
}
bool JointType::is_rate(int k) const {
  return visit_every(kind, 0, [&](auto joint) -> bool { return joint.is_rate(k); });
}
bool JointType::is_angle(int k) const {
  bool angle = false;
  each_coordinate(*this, [&, at = 0](const Coordinate& c) mutable { angle = at++ == k ? c.is_angle() : angle; });
  return angle;
}

std::vector<std::string> joint_kind_names() {
  std::vector<std::string> names;
  for (const JointKind kind : joint_kinds) names.emplace_back(visit_every(kind, 0, [](auto joint) { return joint.name; }));
  return names;
}

std::vector<JointField> joint_fields(const std::string& name) {
  std::vector<JointField> all;
  for (const char* key : {"limits", "velocity_limit", "effort_limit", "damping", "friction", "armature", "stiffness", "rest",
                          "quadratic_stiffness", "cubic_stiffness", "quadratic_damping", "cubic_damping"})
    all.push_back({key, false, false});
  JointType j;
  j.kind = kind_of(name).value();
  const bool cable = is_cable(j.kind), gimbal = j.kind == JointKind::gimbal;
  each_axis(j, [&](const char* key, const Vec3<double>&) { all.push_back({key, false, !cable}); });
  each_number(j, [&](const std::string& key, auto&) {
    if (all.back().name != key) all.push_back({key, !gimbal, key == "free" || !(cable || gimbal)});
  });
  return all;
}

JointType joint_type(const std::string& name, const Value::Object& fields) {
  JointType j;
  if (const auto kind = kind_of(name))
    j.kind = *kind;
  else
    throw ModelError("no joint type is named '" + name + "'" + did_you_mean(name, joint_kind_names()));
  const Value zero(0.0);
  const auto find = [&](const std::string& key) { return Value::find(fields, key); };
  const auto candidates = joint_fields(name);
  for (const auto& [key, value] : fields)
    if (std::none_of(candidates.begin(), candidates.end(), [&key = key](const JointField& f) { return f.name == key; }))
      throw ModelError(name + " has no parameter '" + key + "'");
  for (const JointField& f : candidates)
    if (f.required && !find(f.name)) throw ModelError(name + " needs the parameter '" + f.name + "'");
  const auto of = [&](const std::string& key) {
    const Value* value = find(key);
    return value ? *value : zero;
  };

  if (j.kind == JointKind::gimbal) set_free(j, of("free"), of("fixed"));
  each_axis(j, [&](const char* key, Vec3<double>& axis) {
    axis = find(key) ? unit_axis(*find(key)) : Vec3<double>(Vec3<double>::UnitZ());
  });
  if (j.kind != JointKind::gimbal)
    each_number(
        j, [&](const std::string& key, auto& x) { x = static_cast<std::decay_t<decltype(x)>>(per(name, key, of(key), 1)[0]); });
  const auto along = [&](const char* key, bool infinite, bool negative) {
    const Value value = of(key);
    Numbers numbers = per(name, key, value, j.nv(), infinite);
    if (!negative && std::any_of(numbers.begin(), numbers.end(), [](double x) { return x < 0.0; }))
      throw ModelError(name + ": " + key + " cannot be negative; got " + shown(value));
    return numbers;
  };
  each_passive(j, [&](const char* key, Numbers& numbers, bool negative) { numbers = along(key, false, negative); });
  const auto given_bound = [&](const char* key) { return find(key) && !find(key)->is_null(); };
  if (given_bound("velocity_limit")) j.velocity_limit = along("velocity_limit", true, false);
  if (given_bound("effort_limit")) j.effort_limit = along("effort_limit", true, false);
  if (given_bound("limits")) set_limits(j, of("limits"));
  const auto equal = [](const Numbers& x) { return x == Numbers(x.size(), x[0]); };
  if (visit_every(j.kind, 0, [](auto joint) -> bool { return joint.has_ball_spring; }))
    if (!equal(j.stiffness) || !equal(j.quadratic_stiffness) || !equal(j.cubic_stiffness) ||
        std::any_of(j.rest.begin(), j.rest.end(), [](double x) { return x != 0.0; }))
      throw ModelError(
          name + ": the spring of a ball joint needs equal stiffness about all axes, and no rest: it is relaxed at the identity");
  if (is_cable(j.kind) && j.constants.number[0] < 0.0)
    throw ModelError("Cable: the radius of its pulley cannot be negative; got " + shown(j.constants.number[0]));
  return j;
}

Value::Object fields_of(const JointType& j) {
  Value::Object all;
  if (j.limits) all.emplace_back("limits", Value{j.limits->first, j.limits->second});
  if (j.velocity_limit) all.emplace_back("velocity_limit", *j.velocity_limit);
  if (j.effort_limit) all.emplace_back("effort_limit", *j.effort_limit);
  each_passive(j, [&](const char* key, const Numbers& numbers, bool) {
    if (!all_zero(numbers)) all.emplace_back(key, numbers);
  });
  each_axis(j, [&](const char* key, const Vec3<double>& axis) {
    if (!is_cable(j.kind) || axis != Vec3<double>::UnitZ()) all.emplace_back(key, axis);
  });
  JointType copy = j;
  if (j.kind == JointKind::gimbal) {
    Value::List free;
    for (std::size_t k = 0; k < 6; ++k)
      if (j.constants.free >> k & 1) free.push_back(parameters[k]);
    const Numbers fixed(j.constants.number, j.constants.number + 6);
    all.emplace_back("free", free);
    if (!all_zero(fixed)) all.emplace_back("fixed", fixed);
  } else {
    each_number(copy, [&](const char* key, auto& x) {
      if (!is_cable(j.kind) || x != 0) all.emplace_back(key, static_cast<double>(x));
    });
  }
  return all;
}

std::string text_of(const JointType& j) {
  const auto numbers = [](const Numbers& x) {
    std::vector<std::string> all;
    for (const double number : x) all.push_back(six_digits(number));
    return all.size() == 1 ? all[0] : "[" + joined(all) + "]";
  };
  std::vector<std::string> words;
  each_axis(j, [&](const char*, const Vec3<double>& axis) {
    words.push_back(numbers({axis(0), axis(1), axis(2)}));
    for (int k = 0; k < 3; ++k)
      if (axis.cwiseAbs() == Vec3<double>::Unit(k)) words.back() = quoted((axis(k) < 0.0 ? "-" : "") + std::string(1, "xyz"[k]));
  });
  JointType copy = j;
  if (j.kind == JointKind::gimbal) {
    Value::List free;
    for (std::size_t k = 0; k < 6; ++k)
      if (j.constants.free >> k & 1) free.push_back(parameters[k]);
    words.push_back(shown(free, true)), words.push_back(numbers(Numbers(j.constants.number, j.constants.number + 6)));
  } else {
    each_number(copy, [&](const char*, auto& x) { words.push_back(shortest(static_cast<double>(x))); });
  }
  each_passive(j, [&](const char* key, const Numbers& x, bool) {
    if (std::any_of(x.begin(), x.end(), [](double number) { return number != 0.0; }))
      words.push_back(std::string(key) + "=" + numbers(x));
  });
  if (j.limits) words.push_back("limits=(" + numbers(j.limits->first) + ", " + numbers(j.limits->second) + ")");
  return std::string(j.name()) + "(" + joined(words) + ")";
}

}  // namespace sarrus::model
