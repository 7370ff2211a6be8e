// Description of a mechanism with names, as plain data: bodies, joints between them, frames on them, further constraints and shapes. Builder checks
// it; JSON files contain all of it.
//
// Every struct has a function that visits its fields: field("key", member) for required fields, field("key", member, usual) for fields with the
// default value `usual`. Descriptions are read, written, compared and hashed with this function (document.cpp).
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "../constraints/law.hpp"
#include "../constraints/set.hpp"
#include "joint_type.hpp"
#include "values.hpp"

namespace sarrus {
struct Description;  // mechanism/mechanism.hpp
struct JointDescription;
}  // namespace sarrus

namespace sarrus::model {

/// Point of a body, in its frame [m].
struct BodyPoint {
  std::string body;
  Point point{};
};

struct Body {
  std::string name;
  Inertia inertia;
  template <class F> void fields(F field) { field("name", name), field("inertia", inertia); }
};

/// Joint between two bodies, with the placement of its frame in each. `tree` and `loop` are hints: the joint must be a tree joint, or must be a loop
/// joint. `laws`: empty, or an optional time function for each of rx ry rz tx ty tz; a gimbal then moves the frame on the parent by these functions.
struct Joint {
  std::string name;
  JointType joint;
  std::string parent, child;
  Transform<double> at_parent = Transform<double>::identity(), at_child = Transform<double>::identity();
  bool actuated = false, tree = false, loop = false;
  std::vector<std::optional<Law>> laws;
  template <class F> void fields(F field) {
    field("name", name), field("joint", joint), field("parent", parent), field("child", child);
    field("at_parent", at_parent, Transform<double>::identity()), field("at_child", at_child, Transform<double>::identity());
    field("actuated", actuated, false), field("tree", tree, false), field("loop", loop, false), field("laws", laws, {});
  }
};

struct Frame {
  std::string name, body;
  Transform<double> placement = Transform<double>::identity();
  template <class F> void fields(F field) {
    field("name", name), field("body", body), field("placement", placement, Transform<double>::identity());
  }
};

/// Spring with a damper between points of two bodies.
struct Spring {
  std::string name;
  BodyPoint first, second;
  double stiffness = 0.0, rest_length = 0.0, damping = 0.0;
  double quadratic_stiffness = 0.0, cubic_stiffness = 0.0, quadratic_damping = 0.0, cubic_damping = 0.0;
  template <class F> void fields(F field) {
    field("name", name), field("first", first), field("second", second), field("stiffness", stiffness);
    field("rest_length", rest_length), field("damping", damping, 0.0);
    field("quadratic_stiffness", quadratic_stiffness, 0.0), field("cubic_stiffness", cubic_stiffness, 0.0);
    field("quadratic_damping", quadratic_damping, 0.0), field("cubic_damping", cubic_damping, 0.0);
  }
};

// ---- constraints other than joints ---------------------------------------------------------------------------------------------------

/// Massless rod between points of two bodies.
struct Distance {
  static constexpr const char* kind = "Distance";
  std::string name;
  BodyPoint first, second;
  double length = 0.0;
  template <class F> void fields(F field) {
    field("name", name), field("first", first), field("second", second), field("length", length);
  }
};

/// A disc (if it has an axle) or a sphere that rolls on a plane of another body, or on a sphere about `point`.
struct Rolling {
  static constexpr const char* kind = "Rolling";
  std::string name, body;
  double radius = 0.0;
  Point center{};
  std::optional<Point> axle;
  std::string on = "ground";
  Point point{}, normal = {0.0, 0.0, 1.0};
  std::optional<double> on_radius;  // radius of the sphere about `point`; negative: the child rolls on its inside
  bool spin = true;
  template <class F> void fields(F field) {
    field("name", name), field("body", body), field("radius", radius), field("center", center), field("axle", axle);
    field("on", on), field("point", point), field("normal", normal), field("on_radius", on_radius), field("spin", spin, true);
  }
};

/// Coordinate of a joint, and the coefficients of its powers 1, 2, ... in a polynomial.
struct Term {
  static constexpr int only = std::numeric_limits<int>::min();  // index of a joint's only coordinate
  std::string joint;
  int index = 0;
  std::vector<double> coefficients;
};

/// Function of a coordinate of a joint, which is a factor of a product.
struct Factor {
  std::string joint;
  int index = 0;
  Law function;
};

/// Constraint: the sum of polynomials in coordinates, and of products of functions of coordinates, equals offset + law(t).
struct Coupler {
  static constexpr const char* kind = "Coupler";
  std::string name;
  std::vector<Term> terms;
  double offset = 0.0;
  std::optional<Law> law;
  std::vector<std::vector<Factor>> products{};
  template <class F> void fields(F field) {
    field("name", name), field("terms", terms), field("offset", offset, 0.0), field("law", law, {});
    field("products", products, {});
  }
};

/// Constraint rows A v = c on the velocities of some joints.
struct Pfaffian {
  static constexpr const char* kind = "Pfaffian";
  std::string name;
  std::vector<std::vector<double>> rows;
  std::vector<std::string> joints;
  std::vector<double> value;
  std::optional<std::monostate> derivative;  // true if the rows are a function, which only Python can provide
  bool is_function = false;
  template <class F> void fields(F field) {
    field("name", name), field("rows", rows), field("joints", joints), field("value", value), field("derivative", derivative, {});
  }
};

/// Constraint between two bodies that is described by a frame on each body and by numbers. Each type has a file in cpp/constraints.
struct BetweenFrames {
  AnyConstraint kind;
  std::string name, parent, child;
  Transform<double> at_parent = Transform<double>::identity(), at_child = Transform<double>::identity();
  template <class F> void fields(F field) {
    field("name", name), field("parent", parent), field("child", child);
    field("at_parent", at_parent, Transform<double>::identity()), field("at_child", at_child, Transform<double>::identity());
    visit_constraint(kind, [&](auto& kind_in_use) {
      kind_in_use.fields([&](const char* key, auto& x) {
        if constexpr (std::is_same_v<decltype(x), double&>) field(key, x);
      });
    });
  }
};
/// Call add(kind) for every constraint type of this form.
template <class Add> void each_between_frames(Add add) {
  each_constraint([&](auto kind) {
    bool plain = kind.between_bodies && std::string(kind.name) != Distance::kind;
    kind.fields([&](const char*, auto& x) { plain = plain && std::is_same_v<decltype(x), double&>; });
    if (plain) add(kind);
  });
}

using Constraint = std::variant<Distance, Rolling, Coupler, Pfaffian, BetweenFrames>;

// ---- shapes ------------------------------------------------------------------------------------------------------------------------

struct Box {
  static constexpr const char* kind = "Box";
  Point size{};
  template <class F> void fields(F field) { field("size", size); }
};
struct Cylinder {
  static constexpr const char* kind = "Cylinder";
  double radius = 0.0, length = 0.0;
  template <class F> void fields(F field) { field("radius", radius), field("length", length); }
};
struct Sphere {
  static constexpr const char* kind = "Sphere";
  double radius = 0.0;
  template <class F> void fields(F field) { field("radius", radius); }
};
/// File of a mesh; a relative file name refers to the folder `beside`.
struct Mesh {
  static constexpr const char* kind = "Mesh";
  std::string file;
  Point scale = {1.0, 1.0, 1.0};
  std::string beside;
  std::vector<std::string> package_dirs;
  template <class F> void fields(F field) {
    field("file", file), field("scale", scale, Point{1.0, 1.0, 1.0}), field("beside", beside, "");
    field("package_dirs", package_dirs, {});
  }
};
struct Capsule {
  static constexpr const char* kind = "Capsule";
  double radius = 0.0, length = 0.0;
  template <class F> void fields(F field) { field("radius", radius), field("length", length); }
};
struct ConvexPoints {
  static constexpr const char* kind = "ConvexPoints";
  std::vector<Point> points;
  template <class F> void fields(F field) { field("points", points); }
};
struct Ellipsoid {
  static constexpr const char* kind = "Ellipsoid";
  Point semi_axes{};
  template <class F> void fields(F field) { field("semi_axes", semi_axes); }
};
struct Plane {
  static constexpr const char* kind = "Plane";
  template <class F> void fields(F) {}
};
struct SinglePoint {
  static constexpr const char* kind = "Point";
  template <class F> void fields(F) {}
};
struct Terrain {
  static constexpr const char* kind = "Terrain";
  std::vector<std::vector<double>> heights;
  std::array<double, 2> size{};
  template <class F> void fields(F field) { field("heights", heights), field("size", size); }
};

using VisualShape = std::variant<Box, Cylinder, Sphere, Mesh>;
using ContactShape = std::variant<Box, Capsule, ConvexPoints, Cylinder, Ellipsoid, Mesh, Plane, SinglePoint, Sphere, Terrain>;

/// Appearance of a body, or of a part of it; the colour is red, green, blue and opacity.
struct Visual {
  std::string body;
  VisualShape shape;
  Transform<double> placement = Transform<double>::identity();
  std::optional<std::array<double, 4>> color;
  template <class F> void fields(F field) {
    field("body", body), field("shape", shape), field("placement", placement, Transform<double>::identity());
    field("color", color, {});
  }
};

/// Contact coefficients of a shape, or of a pair of shapes. A coefficient without a value is taken from the other shape.
struct Coefficients {
  std::optional<double> friction, restitution, torsional_friction, rolling_friction;
};

/// Shape with which a body touches others.
struct Shape : Coefficients {
  std::string name, body;
  ContactShape shape;
  Transform<double> placement = Transform<double>::identity();
  std::optional<std::string> group;
  template <class F> void fields(F field) {
    field("name", name), field("body", body), field("shape", shape);
    field("placement", placement, Transform<double>::identity()), field("friction", friction, {});
    field("restitution", restitution, {}), field("group", group, {}), field("torsional_friction", torsional_friction, {});
    field("rolling_friction", rolling_friction, {});
  }
};

/// Contact setting for two shapes, or for all shapes of two groups: true if they may touch, and the coefficients.
struct Contact : Coefficients {
  std::string first, second;
  bool touching = true;
  std::optional<std::monostate> points;  // has a value if contact points are computed by a function, which exists only in Python
  template <class F> void fields(F field) {
    field("first", first), field("second", second), field("touching", touching, true), field("friction", friction, {});
    field("restitution", restitution, {}), field("torsional_friction", torsional_friction, {});
    field("rolling_friction", rolling_friction, {}), field("points", points, {});
  }
};

// ---- the description -----------------------------------------------------------------------------------------------------------------

template <class T> using Named = std::vector<std::pair<std::string, T>>;
using JointCoordinates = Named<std::vector<double>>;

/// Description of a mechanism. `home`: initial guess of assembly; `configurations`: named configurations. Warnings and visuals are ignored when
/// descriptions are compared.
struct Description {
  std::string name;
  Point gravity = {0.0, 0.0, -9.81};
  std::vector<Body> bodies;
  std::vector<Joint> joints;
  std::vector<Frame> frames;
  std::vector<Constraint> constraints;
  JointCoordinates home;
  std::vector<Spring> springs;
  std::vector<std::string> warnings;
  std::vector<Visual> visuals;
  Named<JointCoordinates> configurations;
  std::vector<Shape> shapes;
  std::vector<Contact> contacts;
  template <class F> void fields(F field) {
    field("name", name), field("gravity", gravity), field("bodies", bodies), field("joints", joints), field("frames", frames, {});
    field("constraints", constraints, {}), field("home", home, {}), field("springs", springs, {});
    field("warnings", warnings, {}), field("visuals", visuals, {}), field("configurations", configurations, {});
    field("shapes", shapes, {}), field("contacts", contacts, {});
  }
};

bool operator==(const Description& a, const Description& b);
inline bool operator!=(const Description& a, const Description& b) { return !(a == b); }
std::size_t hash(const Description& description);

// access to elements by name; these functions raise NameNotFoundError
std::size_t joint_index(const Description& description, const std::string& name);
const JointCoordinates& named_configuration(const Description& description, const std::string& name);

/// Convert a description, or a joint, to the form from which Mechanism is created.
sarrus::Description core_description(const Description& description);
JointDescription core_joint(const Joint& joint);
/// Return true if angles of a joint are probably in degrees, because they are multiples of five between 4 pi and 720.
bool in_degrees(const JointType& joint, const std::vector<double>& q);
/// Return a warning for each parameter of a joint that has no effect, or that seems to be in another unit.
std::vector<std::string> doubtful(const Description& description);

}  // namespace sarrus::model
