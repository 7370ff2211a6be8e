// Conversion of a description with names to the kernels' description of the mechanism, and warnings about parameters without effect.
#include <algorithm>
#include <cmath>

#include "../joints/visit.hpp"
#include "../mechanism/mechanism.hpp"
#include "description.hpp"
#include "text.hpp"

namespace sarrus::model {
namespace {

PerVelocity per_velocity(const std::vector<double>& numbers) {
  PerVelocity all;
  all.assign(numbers.begin(), numbers.end());
  return all;
}

/// Return a frame at a point of a body, with the body's axes, or rotated so that its z-axis is `z`.
Transform<double> frame_at(const Point& origin, const std::optional<Point>& z = {}) {
  return {z ? axis_frame(vector(*z)) : Mat3<double>(Mat3<double>::Identity()), vector(origin)};
}

struct CoreConstraint {
  ConstraintDescription& to;

  void operator()(const Distance& c) {
    to.parent = c.first.body, to.child = c.second.body;
    to.at_parent = frame_at(c.first.point), to.at_child = frame_at(c.second.point);
    sarrus::Distance kind{};
    kind.length = c.length, to.kind = kind;
  }
  void operator()(const Rolling& c) {
    to.parent = c.on, to.child = c.body;
    to.at_parent = frame_at(c.point, c.on_radius ? std::nullopt : std::optional<Point>(c.normal));
    to.at_child = frame_at(c.center, c.axle);
    sarrus::Rolling kind{};
    kind.radius = c.radius, kind.on_radius = c.on_radius.value_or(0.0), kind.disc = c.axle.has_value();
    kind.on_sphere = c.on_radius.has_value(), kind.spins = c.spin;
    to.kind = kind;
  }
  void operator()(const Coupler& c) {
    sarrus::Coupler kind;
    for (const Term& term : c.terms)
      to.coordinates.push_back({term.joint, term.index}), kind.coefficients.push_back(term.coefficients);
    kind.offset = c.offset, kind.law = c.law;
    for (const std::vector<Factor>& factors : c.products) {
      Product& product = kind.products.emplace_back();
      for (const Factor& factor : factors) {
        const auto same = [&](const auto& x) { return x.joint == factor.joint && x.index == factor.index; };
        const auto coordinate = std::find_if(to.coordinates.begin(), to.coordinates.end(), same);
        product.column.push_back(static_cast<int>(coordinate - to.coordinates.begin()));
        product.functions.push_back(factor.function);
        if (coordinate == to.coordinates.end())
          to.coordinates.push_back({factor.joint, factor.index}), kind.coefficients.emplace_back();
      }
    }
    to.kind = kind;
  }
  void operator()(const Pfaffian& c) {
    sarrus::Pfaffian kind;
    for (const std::string& joint : c.joints) to.coordinates.push_back({joint, -1});
    for (const std::vector<double>& row : c.rows) kind.matrix.insert(kind.matrix.end(), row.begin(), row.end());
    kind.value = c.value, to.kind = kind;
  }
  void operator()(const BetweenFrames& c) {
    to.parent = c.parent, to.child = c.child, to.at_parent = c.at_parent, to.at_child = c.at_child, to.kind = c.kind;
  }
};

bool any(const std::vector<double>& numbers) {
  return std::any_of(numbers.begin(), numbers.end(), [](double x) { return x != 0.0; });
}

}  // namespace

JointDescription core_joint(const Joint& j) {
  JointDescription to{};
  to.name = j.name, to.parent = j.parent, to.child = j.child;
  to.kind = j.joint.kind, to.axis = j.joint.axis, to.axis2 = j.joint.axis2, to.constants = j.joint.constants;
  to.at_parent = j.at_parent, to.at_child = j.at_child, to.actuated = j.actuated;
  to.nq = j.joint.nq(), to.nv = j.joint.nv(), to.keep_in_tree = j.tree, to.close_loop = j.loop, to.laws = j.laws;
  to.armature = per_velocity(j.joint.armature), to.damping = per_velocity(j.joint.damping);
  to.friction = per_velocity(j.joint.friction), to.stiffness = per_velocity(j.joint.stiffness);
  to.rest = per_velocity(j.joint.rest);
  to.quadratic_stiffness = per_velocity(j.joint.quadratic_stiffness), to.cubic_stiffness = per_velocity(j.joint.cubic_stiffness);
  to.quadratic_damping = per_velocity(j.joint.quadratic_damping), to.cubic_damping = per_velocity(j.joint.cubic_damping);
  return to;
}

sarrus::Description core_description(const Description& d) {
  sarrus::Description to;
  to.name = d.name, to.gravity = vector(d.gravity);
  for (const Body& body : d.bodies) to.bodies.push_back({body.name, body.inertia.about_origin()});
  for (const Joint& joint : d.joints) to.joints.push_back(core_joint(joint));
  for (const Frame& frame : d.frames) to.frames.push_back({frame.name, frame.body, frame.placement});
  for (const Constraint& constraint : d.constraints) {
    ConstraintDescription c{};
    std::visit(
        [&](const auto& kind) {
          c.name = kind.name;
          CoreConstraint{c}(kind);
        },
        constraint);
    to.constraints.push_back(std::move(c));
  }
  for (const Spring& s : d.springs)
    to.springs.push_back({s.name,
                          {s.first.body, s.second.body},
                          {vector(s.first.point), vector(s.second.point)},
                          s.stiffness,
                          s.rest_length,
                          s.damping,
                          {s.quadratic_stiffness, s.cubic_stiffness, s.quadratic_damping, s.cubic_damping}});
  return to;
}

bool in_degrees(const JointType& joint, const std::vector<double>& q) {
  for (std::size_t k = 0; k < q.size(); ++k) {
    const double x = std::abs(q[k]);
    if (joint.is_angle(static_cast<int>(k)) && 4.0 * M_PI < x && x <= 720.0 && std::fmod(x, 5.0) == 0.0) return true;
  }
  return false;
}

std::vector<std::string> doubtful(const Description& d) {
  std::vector<std::string> all;
  for (const Joint& j : d.joints) {
    const JointType& type = j.joint;
    const std::string joint = "joint '" + j.name + "'";
    if (type.limits && (in_degrees(type, type.limits->first) || in_degrees(type, type.limits->second))) {
      std::vector<std::string> limits;
      for (const auto* limit : {&type.limits->first, &type.limits->second})
        for (const double x : *limit) limits.push_back(six_digits(x));
      all.push_back("limits of " + joint + " look like degrees, but are read as radians: " + joined(limits));
    }
    // warn about forces of a joint whose frame moves in time, because the formulas of forces along a joint do not include that motion
    std::vector<std::string> terms;
    const auto add = [&](const char* name, const std::vector<double>& numbers) {
      if (!j.laws.empty() && any(numbers)) terms.push_back(name);
    };
    add("damping", type.damping), add("friction", type.friction), add("stiffness", type.stiffness);
    add("armature", type.armature), add("quadratic_stiffness", type.quadratic_stiffness);
    add("cubic_stiffness", type.cubic_stiffness), add("quadratic_damping", type.quadratic_damping);
    add("cubic_damping", type.cubic_damping);
    if (!terms.empty())
      all.push_back(joint + " follows time functions, so its " + joined(terms) + " have no effect. Set them at another joint");
    if (any(type.rest) && !any(type.stiffness) && !any(type.quadratic_stiffness) && !any(type.cubic_stiffness))
      all.push_back(joint + " has a rest but no stiffness, so the rest has no effect");
    if (j.actuated && type.nv() == 0) all.push_back(joint + " is actuated but does not move, so its motor has no effect");
  }
  return all;
}

}  // namespace sarrus::model
