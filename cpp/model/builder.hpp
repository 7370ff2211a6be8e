// Builder of a mechanism, for programs and file readers: bodies, joints between any two bodies, and other constraints. Every element is checked when
// it is added. The elements to which it refers must already exist; only the bodies of a joint may be added later. The world is the body "ground".
//
//   sarrus::Builder b("pendulum");
//   b.add_body("bob", sarrus::rod(2.0, {0, 0, 0}, {0, 0, -0.5}));
//   b.add_joint("pivot", sarrus::revolute("y"), "ground", "bob");
//   const sarrus::Robot robot = b.build();                          // with sarrus.hpp
//
// All methods raise ModelError for a duplicate name (joints and constraints share one set of names, bodies and frames another), for numbers that are
// not finite or have the wrong sign, and for a body that is connected to itself. They raise NameNotFoundError for an element that does not exist.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "description.hpp"

namespace sarrus {
class Robot;  // sarrus.hpp
}

namespace sarrus::model {

/// Placement of a frame in a body: at a point, and optionally rotated.
struct Placement {
  Transform<double> X = Transform<double>::identity();
  Placement() = default;
  Placement(const Transform<double>& pose) : X(pose) {}
  Placement(double x, double y, double z) : X{Mat3<double>::Identity(), vec3(x, y, z)} {}
};

/// Options of a joint in addition to its type: it is actuated by a motor; it must be a tree joint; it must be a loop joint.
struct Role {
  bool actuated = false, tree = false, loop = false;
};
constexpr Role actuated{true, false, false}, in_tree{false, true, false}, closes_loop{false, false, true};

/// Motors that drive coordinates of joints through gears, belts or cables: motors = matrix (coordinates) + offset.
struct Transmission {
  std::string name;
  std::vector<std::string> motors;
  std::vector<Term> joints;  // coordinates; their coefficients are not used
  std::vector<std::vector<double>> matrix;  // a row for each motor, a column for each coordinate [rad/rad, rad/m, m/rad, m/m]
  // rotor_inertia, and fields of a joint type: limits, velocity_limit, effort_limit, damping, friction, stiffness, rest; a list has an entry for each
  // motor. `limits` is a pair, or a list of pairs
  Value::Object properties = {};
  std::vector<double> offset = {0.0};  // of each motor, or of all
  std::string base = {};  // body or frame that carries the motors; empty: the parent of the first joint
  bool linear = false;  // true for motors whose coordinates are displacements
};

/// Return (joint, coupler) of the motors of all transmissions in a description: joints to a massless body "NAME_rotor", with a linear coupler.
std::vector<std::pair<const Joint*, const Coupler*>> motors_of(const Description& description);
/// Return coordinates of joints, and the coordinates of those motors that are not among them: matrix (coordinates of joints) + offset.
JointCoordinates with_motors(const Description& description, JointCoordinates coordinates);

/// Straight beam along x of a frame on `parent`, to which it is clamped; beam.cpp divides it into rigid pieces. A stiffness without value is infinite.
/// The first entry of a pair is about y (bending, rotary inertia) or along y (shear), the second about or along z.
struct Beam {
  using Pair = std::array<std::optional<double>, 2>;
  std::string name, parent;
  Transform<double> at_parent = Transform<double>::identity();
  double length = 0.0, mass_per_length = 0.0;  // [m, kg/m]
  int elements = 20;
  Pair EI, GA;  // bending and shear stiffness [N m2, N]
  std::optional<double> EA, GJ;  // axial and torsional stiffness [N, N m2]
  Pair rotary_inertia = {0.0, 0.0};  // of the cross section, per length [kg m]
  double damping = 0.0;  // ratio of each damping to its stiffness [s]
  template <class F> void fields(F field) {
    field("length", length), field("mass_per_length", mass_per_length), field("elements", elements), field("EI", EI);
    field("GA", GA), field("EA", EA), field("GJ", GJ), field("rotary_inertia", rotary_inertia), field("damping", damping);
  }
};

class Builder {
 public:
  explicit Builder(std::string name = "mechanism", const Point& gravity = {0.0, 0.0, -9.81});
  /// Add all elements of a description again, so that everything is checked.
  explicit Builder(const Description& description);

  void add(Body);
  /// `made`: true if the joint's type was created by joint_type() and has not changed since, so that it need not be checked again.
  void add(Joint, bool made = false);
  void add(Frame);
  void add(Spring);
  void add(Constraint);
  void add(Visual);
  void add(Shape);
  /// Add a contact setting; it replaces an earlier setting of the same pair of shapes or groups.
  void add(Contact);
  /// Add the parts of a beam; see beam().
  void add(const Beam&);

  void add_body(std::string name, Inertia inertia = {}) { add(Body{std::move(name), std::move(inertia)}); }
  /// Add a joint between two bodies or frames. A body may be added after the joint; a frame must exist already.
  void add_joint(std::string name, JointType joint, std::string parent, std::string child, const Placement& at_parent = {},
                 const Placement& at_child = {}, Role role = {}) {
    add(Joint{std::move(name),
              std::move(joint),
              std::move(parent),
              std::move(child),
              at_parent.X,
              at_child.X,
              role.actuated,
              role.tree,
              role.loop,
              {}});
  }
  void add_frame(std::string name, std::string body, const Placement& placement = {}) {
    add(Frame{std::move(name), std::move(body), placement.X});
  }
  void add_spring(std::string name, BodyPoint first, BodyPoint second, double stiffness, double rest_length,
                  double damping = 0.0) {
    add(Spring{std::move(name), std::move(first), std::move(second), stiffness, rest_length, damping});
  }
  void add_distance(std::string name, BodyPoint first, BodyPoint second, double length) {
    add(Distance{std::move(name), std::move(first), std::move(second), length});
  }
  /// Add a constraint: the sum of polynomials in coordinates, and of products of functions of coordinates, equals offset + law(t).
  void add_coupler(std::string name, std::vector<Term> terms, double offset = 0.0, std::optional<Law> law = {},
                   std::vector<std::vector<Factor>> products = {}) {
    add(Coupler{std::move(name), std::move(terms), offset, std::move(law), std::move(products)});
  }
  /// Add a massless rotor, its actuated joint and a coupler for each motor. The joints are then tree joints without motors of their own.
  void add_transmission(const Transmission& transmission);
  /// Prescribe a coordinate of a joint: q(t) = law(t).
  void add_prescribed_motion(std::string name, std::string joint, Law law, int index = 0) {
    add(Coupler{std::move(name), {{std::move(joint), index, {1.0}}}, 0.0, std::move(law)});
  }
  void add_pfaffian(std::string name, std::vector<std::vector<double>> rows, std::vector<std::string> joints,
                    std::vector<double> value = {0.0}) {
    add(Pfaffian{std::move(name), std::move(rows), std::move(joints), std::move(value), {}});
  }
  /// Set the initial guess of assembly to these coordinates of joints; all other joints are neutral.
  void set_home(const JointCoordinates& home);
  void set_configuration(const std::string& name, const JointCoordinates& coordinates);
  void warn(std::string sentence) { written_.warnings.push_back(std::move(sentence)); }

  /// Return the description so far.
  const Description& description() const { return written_; }
  /// Return the description. Raises an error if it is incomplete: it must have bodies, and the bodies of its joints must exist.
  const Description& complete() const;
  Robot build() const;  // sarrus.hpp

  /// Return the bodies NAME_0, NAME_1, ... of a beam, its joints (NAME_clamp, NAME_element_1, ...) and its frames NAME_start and NAME_end. All of them are
  /// checked: they can be added.
  Description beam(const Beam&) const;

  // The following functions are checks; their errors begin with `subject`. new_name() checks the name of a new element, and returns the subject of
  // its errors.
  std::string new_name(const std::string& kind, const std::string& name) const;
  const std::string& known_body(const std::string& name, const std::string& subject) const;
  void check_ends(const BodyPoint& first, const BodyPoint& second, const std::string& subject) const;
  JointCoordinates coordinates(const JointCoordinates& by_joint, const std::string& subject) const;
  /// Parts into which a transmission is expanded, one of each kind for each motor.
  struct TransmissionParts {
    std::vector<Body> rotors;
    std::vector<Joint> joints;
    std::vector<Coupler> couplers;
  };
  TransmissionParts transmission_parts(Transmission transmission) const;
  /// Return the name for the next shape of a body: the body's name, with a number appended from the second shape on.
  std::string shape_name(const std::string& body) const;

 private:
  using Index = std::unordered_map<std::string, std::size_t>;

  const Joint& tree_joint(const std::string& name, const std::string& subject) const;
  void check_coordinate(const std::string& joint, int& index, const std::string& subject) const;
  void place(Joint& joint, const std::string& subject) const;
  void check(Distance&) const;
  void check(Rolling&) const;
  void check(Coupler&) const;
  void check(Pfaffian&) const;
  void check(BetweenFrames&) const;

  Description written_;
  Index bodies_, joints_, frames_, springs_, constraints_, shapes_;
  std::map<std::string, int> groups_;
};

/// Return the name of a dimension of a shape for messages, such as "radius of a sphere".
std::string label(std::string kind, std::string measure);
// largest number of points of a convex hull, limited by the number of features of a pair of shapes (contact/scene.hpp)
constexpr std::size_t most_points = 1u << 14;
extern const std::string expected_points;
/// Raise ModelError unless a shape can be drawn and can be in contact.
void check_shape(ContactShape& shape, const std::string& subject);
/// Check the coordinates of a joint, and return them with normalised quaternions.
std::vector<double> joint_coordinates(const JointType& joint, std::vector<double> q, const std::string& subject);
/// Return one value per row, from one value for all rows or from as many values as rows.
std::vector<double> per_row(std::vector<double> value, std::size_t rows, const std::string& subject);
// last sentences of warnings about contacts of shapes in a file; some_contacts is used if the caller has added shapes to those of the file
extern const std::string no_contacts, some_contacts;

/// Return a builder with the mechanism of a JSON document; error messages begin with `source`. docs/files.md describes the format.
Builder read_json(const std::string& text, const std::string& source = "<string>");
Builder load_builder(const std::string& path);
/// Convert a description to a document (the content of a JSON file), and to text.
Value document_of(const Description& description);
std::string write_json(const Description& description);
/// Read the description in a document; only the types of its fields are checked.
Description described(const Value& document);

// inertias of uniform bodies about their centre of mass; a rod is between two points [kg, m]
Inertia rod(double mass, const Point& start, const Point& end, double radius = 0.0);
Inertia box(double mass, const Point& size);
Inertia sphere(double mass, double radius);
Inertia cylinder(double mass, double radius, double length, const Value& axis = "z");

}  // namespace sarrus::model

namespace sarrus {

using model::actuated, model::closes_loop, model::in_tree, model::Beam, model::Builder, model::Placement, model::Role;
using model::box, model::cylinder, model::rod, model::sphere;
using model::cylindrical, model::fixed, model::free_joint, model::joint_type, model::planar, model::prismatic, model::revolute,
    model::spherical;
using model::load_builder, model::read_json, model::write_json;

}  // namespace sarrus
