#include "builder.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "../mechanism/errors.hpp"
#include "../spatial/conversions.hpp"
#include "text.hpp"

namespace sarrus::model {
namespace {

std::string of(const std::string& kind, const std::string& name) { return kind + " '" + name + "'"; }

template <class Parts> std::vector<std::string> names_of(const Parts& parts) {
  std::vector<std::string> names;
  for (const auto& part : parts) names.push_back(part.name);
  return names;
}
const std::string& name_of(const Constraint& constraint) {
  return std::visit([](const auto& c) -> const std::string& { return c.name; }, constraint);
}

// ---- numbers in messages, in the format of descriptions: points and rows are tuples ------------------------------------------------

template <std::size_t n> Value list(const std::array<double, n>& x) { return std::vector<double>(x.begin(), x.end()); }
Value list(const std::vector<double>& x) { return x; }
template <class Row> Value list(const std::vector<Row>& rows) {
  Value::List all;
  for (const Row& row : rows) all.push_back(list(row));
  return all;
}
template <class Numbers> bool all_finite(const Numbers& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](double x) { return std::isfinite(x); });
}

void check_number(double x, const std::string& subject) {
  if (!std::isfinite(x)) throw ModelError(subject + " needs one finite number; got " + shown(x));
}
void check_positive(double x, const std::string& subject, const std::string& if_zero = "") {
  check_number(x, subject);
  if (x <= 0.0) throw ModelError(subject + " must be positive; got " + shown(x) + (x == 0.0 ? if_zero : ""));
}
void check_point(const Point& p, const std::string& subject, const std::string& unit = "[m]") {
  if (!all_finite(p)) throw ModelError(subject + " needs three finite numbers " + unit + "; got " + shown(list(p), true));
}
void check_sequence(const std::vector<double>& x, const std::string& subject) {
  if (!all_finite(x)) throw ModelError(subject + " needs a finite number or a sequence of them; got " + shown(x, true));
  if (x.empty()) throw ModelError(subject + " needs at least one number; got ()");
}
Point direction(const Point& axis, const std::string& subject) {
  try {
    const Vec3<double> a = unit_axis(list(axis));
    return {a(0), a(1), a(2)};
  } catch (const ModelError& error) {
    std::string message = error.what();  // replace the value by a tuple, as it is written in descriptions
    message.resize(message.rfind("; got "));
    throw ModelError(subject + ": " + message + "; got " + shown(list(axis), true));
  }
}

Transform<double> checked_placement(const Transform<double>& X, const std::string& subject) {
  const double distance = X.p.cwiseAbs().maxCoeff();
  if (!std::isfinite(distance)) throw ModelError(subject + ": translation = " + shown(X.p) + " is not finite");
  if (distance > largest)
    throw ModelError(subject + " is " + six_digits(distance) + " m from the origin; expected at most " + six_digits(largest) +
                     " m");
  return {rotation(subject + ": rotation", X.R), X.p};
}

void check_coefficients(const Coefficients& c, const std::string& subject) {
  const auto check = [&](const char* name, const std::optional<double>& x, double most = HUGE_VAL) {
    if (!x) return;
    const std::string called = subject + ": " + name;
    check_number(*x, called);
    if (!(*x >= 0.0 && *x <= most))
      throw ModelError(called + " must " + (most == 1.0 ? "be from 0 to 1" : "not be negative") + "; got " + shown(*x));
  };
  check("friction", c.friction), check("restitution", c.restitution, 1.0);
  check("torsional_friction", c.torsional_friction), check("rolling_friction", c.rolling_friction);
}

/// Check of a shape: it can be drawn, and can be in contact.
struct ShapeCheck {
  std::string subject;

  template <class S> void operator()(S& shape) const {
    shape.fields([&](const char* key, const auto& x) { check(x, subject + ": " + label(S::kind, key)); });
  }
  void operator()(Mesh& mesh) const {
    check_point(mesh.scale, subject + ": scale of a mesh", "for x, y and z");
    if (mesh.file.empty() || mesh.file.find('\0') != std::string::npos)
      throw ModelError(subject + ": a mesh needs the name of a file; got " + quoted(mesh.file));
    if (std::count(mesh.scale.begin(), mesh.scale.end(), 0.0))
      throw ModelError(subject + ": scale of a mesh must not be zero; got " + shown(list(mesh.scale), true));
  }
  void operator()(ConvexPoints& shape) const {
    for (const Point& p : shape.points)
      if (!all_finite(p))
        throw ModelError(subject + ": points needs " + expected_points + "; got " + shown(list(shape.points), true));
    const std::size_t n = shape.points.size();
    if (n < 1 || n > most_points)
      throw ModelError(subject + ": points must be " + expected_points + "; got " +
                       (n ? shape_text({n, 3}) : shape_text({std::size_t{0}})));
  }
  void operator()(Terrain& terrain) const {
    const std::vector<std::vector<double>>& rows = terrain.heights;
    const std::string heights = subject + ": heights of a terrain", size = subject + ": size of a terrain";
    const bool even = std::all_of(rows.begin(), rows.end(), [&](const auto& row) { return row.size() == rows[0].size(); });
    if (!even || !std::all_of(rows.begin(), rows.end(), [](const auto& row) { return all_finite(row); }))
      throw ModelError(heights + " needs rows of finite numbers [m]; got " + shown(list(rows), true));
    if (rows.size() < 2 || rows[0].size() < 2)
      throw ModelError(heights + " need at least two rows and two columns; got " +
                       (rows.empty() ? shape_text({std::size_t{0}}) : shape_text({rows.size(), rows[0].size()})));
    if (!all_finite(terrain.size))
      throw ModelError(size + " needs two finite numbers [m]; got " + shown(list(terrain.size), true));
    if (terrain.size[0] <= 0.0 || terrain.size[1] <= 0.0)
      throw ModelError(size + " must be positive; got " + shown(list(terrain.size), true));
  }

 private:
  static void check(double x, const std::string& measure) { check_positive(x, measure); }
  static void check(const Point& x, const std::string& measure) {
    check_point(x, measure);
    if (*std::min_element(x.begin(), x.end()) <= 0.0)
      throw ModelError(measure + " must be positive; got " + shown(list(x), true));
  }
};

std::string coordinate_text(const Term& term) {
  return term.index == Term::only ? quoted(term.joint) : "(" + quoted(term.joint) + ", " + std::to_string(term.index) + ")";
}

bool same(const Law& a, const Law& b) {
  return a.start == b.start && a.coefficient == b.coefficient && a.harmonic == b.harmonic && a.period == b.period;
}
/// Return true unless a function is constant.
bool varies(const Law& law) {
  const std::size_t terms = law.coefficient.size() / law.start.size();
  for (std::size_t k = 0; k < law.coefficient.size(); ++k)
    if (law.coefficient[k] != (k % terms ? 0.0 : law.coefficient[0])) return true;
  for (std::size_t h = 0; h < law.harmonic.size(); h += 3)
    if (law.harmonic[h] != 0.0 && law.harmonic[h + 1] != 0.0) return true;
  return false;
}

}  // namespace

const std::string no_contacts = "which only simulate(method='contact') computes";
const std::string some_contacts = "in method='contact' of simulate()";
const std::string expected_points = "(n, 3) finite numbers [m], n from 1 to " + std::to_string(most_points);

std::string label(std::string kind, std::string measure) {
  if (kind == ConvexPoints::kind) return measure;
  std::replace(measure.begin(), measure.end(), '_', '-');
  const char* article = std::string("AEIO").find(kind[0]) == std::string::npos ? " of a " : " of an ";
  std::transform(kind.begin(), kind.end(), kind.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return measure + article + kind;
}

std::vector<double> joint_coordinates(const JointType& joint, std::vector<double> q, const std::string& subject) {
  const int nq = joint.nq();
  if (static_cast<int>(q.size()) != nq || !all_finite(q))
    throw ModelError(subject + " needs " + (nq == 1 ? "one finite number" : std::to_string(nq) + " finite numbers") + "; got " +
                     shown(q, true));
  if (joint.has_quaternion()) {
    long double square = 0.0;
    for (int k = 0; k < 4; ++k) square += static_cast<long double>(q[k]) * q[k];
    const double length = static_cast<double>(std::sqrt(square));
    if (length == 0.0) throw ModelError(subject + " needs a quaternion that is not zero; got " + shown(q, true));
    if (std::abs(length - 1.0) > 4e-16)  // a quaternion that already has unit norm is not changed
      for (int k = 0; k < 4; ++k) q[k] /= length;
  }
  return q;
}

std::vector<double> per_row(std::vector<double> value, std::size_t rows, const std::string& subject) {
  if (value.size() != 1 && value.size() != rows)
    throw ModelError(subject + ": value has " + std::to_string(value.size()) + " entries for " + std::to_string(rows) +
                     " rows; expected one number, or one number per row");
  value.resize(rows, value[0]);
  return value;
}

void check_shape(ContactShape& shape, const std::string& subject) { std::visit(ShapeCheck{subject}, shape); }

Builder::Builder(std::string name, const Point& gravity) {
  check_printable("mechanism", name);
  check_point(gravity, "gravity", "[m/s2]");
  written_.name = std::move(name), written_.gravity = gravity;
}

Builder::Builder(const Description& d) : Builder(d.name, d.gravity) {
  const auto add_all = [&](const auto& parts) {
    for (const auto& part : parts) add(part);
  };
  add_all(d.bodies), add_all(d.joints), add_all(d.frames), add_all(d.springs), add_all(d.constraints), add_all(d.visuals);
  add_all(d.shapes), add_all(d.contacts);
  set_home(d.home);
  for (const auto& [name, q] : d.configurations)
    written_.configurations.emplace_back(name, coordinates(q, of("configuration", name)));
  written_.warnings.insert(written_.warnings.end(), d.warnings.begin(), d.warnings.end());
}

// ---- names -----------------------------------------------------------------------------------------------------------------------------

/// Check the name of a new element; return the subject with which its error messages begin, such as "joint 'crank'".
std::string Builder::new_name(const std::string& kind, const std::string& name) const {
  if (name.empty()) throw ModelError("a " + kind + " needs a name; got ''");
  check_printable(kind, name);
  if (kind == "body" && name == "ground") throw ModelError("a body cannot be named 'ground': that is the world");
  const bool on_body = kind == "body" || kind == "frame", tie = kind == "joint" || kind == "constraint";
  const bool is_duplicate = on_body            ? name == "ground" || bodies_.count(name) || frames_.count(name)
                            : tie              ? joints_.count(name) || constraints_.count(name)
                            : kind == "spring" ? springs_.count(name)
                            : kind == "shape"  ? shapes_.count(name)
                                               : 0;
  if (is_duplicate && tie && (joints_.count(name) > 0) != (kind == "joint"))
    throw ModelError("a joint and a constraint are both named '" + name + "'");
  if (is_duplicate) throw ModelError("two " + (kind == "body" ? "bodies" : kind + "s") + " are named '" + name + "'");
  return of(kind, name);
}

const std::string& Builder::known_body(const std::string& name, const std::string& subject) const {
  if (name == "ground" || bodies_.count(name)) return name;
  std::vector<std::string> candidates = names_of(written_.bodies);
  candidates.push_back("ground");
  no_such_name("body", name, std::move(candidates), subject);
}

const Joint& Builder::tree_joint(const std::string& name, const std::string& subject) const {
  const auto at = joints_.find(name);
  if (at == joints_.end()) no_such_name("joint", name, names_of(written_.joints), subject);
  const Joint& joint = written_.joints[at->second];
  if (joint.loop)
    throw ModelError(subject + " refers to joint '" + name +
                     "', which closes a loop and so has no coordinates: add it with tree=True");
  return joint;
}

/// Check that the rate of a coordinate is a velocity.
void Builder::check_coordinate(const std::string& name, int& number, const std::string& subject) const {
  const JointType& joint = tree_joint(name, subject).joint;
  if (number == Term::only) {
    if (joint.nq() > 1)
      throw ModelError(subject + ": joint '" + name + "' has " + std::to_string(joint.nq()) +
                       " coordinates; give an index, such as ('" + name + "', 0) for the first");
    number = 0;
  }
  const std::string called = of("joint", name) + " (" + joint.name() + ")", index = std::to_string(number);
  if (number < 0 || number >= joint.nq())
    throw ModelError(subject + ": " + called + " has " + std::to_string(joint.nq()) + " coordinates; index " + index +
                     " is out of range");
  if (!joint.is_rate(number))
    throw ModelError(subject + ": the rate of coordinate " + index + " of " + called +
                     " is not a velocity, so it cannot be coupled: use a chain of one-axis joints instead");
}

void Builder::check_ends(const BodyPoint& first, const BodyPoint& second, const std::string& subject) const {
  known_body(first.body, subject + ": first"), check_point(first.point, subject + ": first point");
  known_body(second.body, subject + ": second"), check_point(second.point, subject + ": second point");
  if (first.body == second.body) throw ModelError(subject + " connects body '" + first.body + "' to itself");
}

/// Check the two bodies of a joint; if a frame was named instead of a body, use the frame's body and placement.
void Builder::place(Joint& j, const std::string& subject) const {
  if (j.parent == j.child) throw ModelError(subject + " connects body '" + j.parent + "' to itself");
  j.at_parent = checked_placement(j.at_parent, subject + ": at_parent"),
  j.at_child = checked_placement(j.at_child, subject + ": at_child");
  const auto on_body = [&](std::string& end, Transform<double>& at) {
    const auto frame_index = frames_.find(end);
    if (frame_index == frames_.end()) return;
    const Frame& frame = written_.frames[frame_index->second];
    end = frame.body, at = frame.placement * at;
  };
  on_body(j.parent, j.at_parent), on_body(j.child, j.at_child);
  if (j.parent == j.child) throw ModelError(subject + " connects body '" + j.parent + "' to itself");
}

JointCoordinates Builder::coordinates(const JointCoordinates& by_joint, const std::string& subject) const {
  JointCoordinates all;
  for (const auto& [name, q] : by_joint)
    all.emplace_back(name, joint_coordinates(tree_joint(name, subject).joint, q, subject + ": joint " + quoted(name)));
  return all;
}

std::string Builder::shape_name(const std::string& body) const {
  std::string name = known_body(body, "shape");
  for (int k = 2; shapes_.count(name); ++k) name = body + "_" + std::to_string(k);
  return name;
}

// ---- parts -----------------------------------------------------------------------------------------------------------------------------

void Builder::add(Body body) {
  new_name("body", body.name);
  body.inertia = checked(body.inertia);
  bodies_.emplace(body.name, written_.bodies.size());
  written_.bodies.push_back(std::move(body));
}

void Builder::add(Joint j, bool made) {
  const std::string subject = new_name(j.laws.empty() ? "joint" : "constraint", j.name);
  if (j.laws.empty()) {
    if (j.tree && j.loop)
      throw ModelError(subject + " cannot be both a tree joint and a loop joint: give either tree=True or loop=True");
  } else {
    j.laws.resize(6);
    if (std::none_of(j.laws.begin(), j.laws.end(), [](const auto& law) { return law.has_value(); }))
      throw ModelError(subject + " needs a dict whose keys are some of rx ry rz tx ty tz, and whose values are laws; got {}");
    known_body(j.parent, subject), known_body(j.child, subject);
    j.loop = true, j.actuated = j.tree = false;
  }
  if (!made) j.joint = joint_type(j.joint.name(), fields_of(j.joint));
  place(j, subject);
  joints_.emplace(j.name, written_.joints.size());
  written_.joints.push_back(std::move(j));
}

void Builder::add(Frame frame) {
  const std::string subject = new_name("frame", frame.name);
  known_body(frame.body, subject);
  frame.placement = checked_placement(frame.placement, subject);
  frames_.emplace(frame.name, written_.frames.size());
  written_.frames.push_back(std::move(frame));
}

void Builder::add(Spring s) {
  const std::string subject = new_name("spring", s.name);
  check_ends(s.first, s.second, subject);
  const std::vector<double> numbers = {s.stiffness, s.rest_length, s.damping};
  check_number(s.stiffness, subject + ": stiffness"), check_number(s.rest_length, subject + ": rest_length");
  check_number(s.damping, subject + ": damping"), check_number(s.quadratic_stiffness, subject + ": quadratic_stiffness");
  check_number(s.cubic_stiffness, subject + ": cubic_stiffness");
  check_number(s.quadratic_damping, subject + ": quadratic_damping"), check_number(s.cubic_damping, subject + ": cubic_damping");
  if (*std::min_element(numbers.begin(), numbers.end()) < 0.0)
    throw ModelError(subject + ": stiffness, rest_length and damping must not be negative; got " + shown(numbers));
  springs_.emplace(s.name, written_.springs.size());
  written_.springs.push_back(std::move(s));
}

void Builder::add(Constraint constraint) {
  new_name("constraint", name_of(constraint));
  std::visit([&](auto& c) { check(c); }, constraint);
  constraints_.emplace(name_of(constraint), written_.constraints.size());
  written_.constraints.push_back(std::move(constraint));
}

void Builder::check(Distance& c) const {
  const std::string subject = of("constraint", c.name);
  check_ends(c.first, c.second, subject);
  check_positive(c.length, subject + ": length", "; for two points that coincide use a Spherical joint");
}

void Builder::check(Rolling& c) const {
  const std::string subject = of("constraint", c.name);
  check_positive(c.radius, subject + ": radius");
  if (c.on_radius) {
    const double other = *c.on_radius;
    check_number(other, subject + ": on_radius");
    if (c.axle) throw ModelError(subject + ": a disc rolls on planes only; got an axle and on_radius = " + shown(other));
    if (other == 0.0)
      throw ModelError(subject + ": on_radius must be positive, or negative for the inside of a sphere; got " + shown(other));
    if (-c.radius <= other && other < 0.0)
      throw ModelError(subject + ": a sphere of radius " + shown(c.radius) + " cannot roll inside one of radius " +
                       shown(-other));
    c.normal = {0.0, 0.0, 1.0};
  }
  if (known_body(c.body, subject) == known_body(c.on, subject))
    throw ModelError(subject + ": body '" + c.body + "' cannot roll on itself");
  c.normal = direction(c.normal, subject + ": normal");
  if (c.axle) c.axle = direction(*c.axle, subject + ": axle");
  check_point(c.center, subject + ": center"), check_point(c.point, subject + ": point");
}

void Builder::check(Coupler& c) const {
  const std::string subject = of("constraint", c.name);
  if (c.terms.empty() && c.products.empty()) throw ModelError(subject + " needs a dict from joints to coefficients; got {}");
  std::set<std::pair<std::string, int>> named;
  bool zeros = true;
  for (Term& term : c.terms) {
    const std::string coordinate = coordinate_text(term);
    check_coordinate(term.joint, term.index, subject);
    if (!named.emplace(term.joint, term.index).second)
      throw ModelError(subject + " names coordinate " + std::to_string(term.index) + " of joint '" + term.joint + "' twice");
    check_sequence(term.coefficients, subject + ": coefficients of " + coordinate);
    zeros = zeros && std::all_of(term.coefficients.begin(), term.coefficients.end(), [](double x) { return x == 0.0; });
  }
  for (std::vector<Factor>& product : c.products) {
    if (product.empty()) throw ModelError(subject + ": a product needs one coordinate or more; got ()");
    for (Factor& factor : product) {
      check_coordinate(factor.joint, factor.index, subject);
      factor.function = LawFields(factor.function).made();
      zeros = zeros && !varies(factor.function);
    }
  }
  if (zeros && c.products.empty())
    throw ModelError(subject + " has only zero coefficients; expected at least one nonzero coefficient");
  if (zeros) throw ModelError(subject + " has only constant terms; expected at least one that varies with a coordinate");
  check_number(c.offset, subject + ": offset");
  if (!c.law) return;
  const std::size_t pieces = c.law->start.size(), terms_per_piece = c.law->coefficient.size() / std::max(pieces, std::size_t{1});
  for (std::size_t k = 0; k < pieces; ++k) c.law->coefficient[k * terms_per_piece] += c.offset;
  c.offset = 0.0;
  c.law = LawFields(*c.law).made();
  const auto same_term = [](const Term& a, const Term& b) {
    return a.joint == b.joint && a.index == b.index && a.coefficients == b.coefficients;
  };
  if (c.terms.size() != 1 || !c.products.empty() || c.terms[0].coefficients != std::vector<double>{1.0}) return;
  const bool only = tree_joint(c.terms[0].joint, subject).joint.nq() == 1;
  for (const Constraint& constraint : written_.constraints)  // find another prescribed motion of the same coordinate
    if (const Coupler* other = std::get_if<Coupler>(&constraint))
      if (other->law && other->terms.size() == 1 && other->products.empty() && same_term(other->terms[0], c.terms[0]) &&
          !same(*other->law, *c.law))
        throw ModelError(subject + " contradicts '" + other->name + "', which prescribes another time function for " +
                         (only ? quoted(c.terms[0].joint) : coordinate_text(c.terms[0])));
}

// ---- transmissions -----------------------------------------------------------------------------------------------------------------------

namespace {

/// Return the joint type of motor k of a transmission. A property is one value for all motors, or a list with a value for each.
JointType motor_type(const Transmission& t, std::size_t k, const std::string& subject) {
  static const std::vector<std::string> known = {"rotor_inertia",       "damping",         "friction",          "limits",
                                                 "stiffness",           "velocity_limit",  "effort_limit",      "rest",
                                                 "quadratic_stiffness", "cubic_stiffness", "quadratic_damping", "cubic_damping"};
  const auto is_pair = [](const Value& x) { return x.is_list() && x.list().size() == 2; };
  Value::Object fields;
  for (const auto& [key, value] : t.properties) {
    const std::string called = subject + ": " + key;
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw ModelError(subject + " has no property '" + key + "'; expected some of " + joined(known));
    const bool ranges = key == "limits";
    const bool for_each = value.is_list() && !(ranges && is_pair(value) && !is_pair(value.list()[0]));
    if (for_each && value.list().size() != t.motors.size())
      throw ModelError(called + " needs " +
                       (ranges ? "a pair (lower, upper), or one for each motor" : "a number, or one for each motor") + ": " +
                       joined(t.motors) + "; got " + shown(value));
    const Value& x = for_each ? value.list()[k] : value;
    if (x.is_null()) continue;
    if (!ranges && !x.is_number()) throw ModelError(called + " needs a number, or one for each motor; got " + shown(value));
    if (key == "rotor_inertia" && !(std::isfinite(x.number()) && x.number() >= 0.0))
      throw ModelError(called + " must be finite and not negative; got " + shown(value));
    fields.emplace_back(key == "rotor_inertia" ? "armature" : key, x);
  }
  try {
    return t.linear ? prismatic("z", fields) : revolute("z", fields);
  } catch (const ModelError& error) {
    throw ModelError(subject + ": motor '" + t.motors[k] + "': " + error.what());
  }
}

}  // namespace

Builder::TransmissionParts Builder::transmission_parts(Transmission t) const {
  if (t.name.empty()) throw ModelError("a transmission needs a name; got ''");
  check_printable("transmission", t.name);
  const std::string subject = of("transmission", t.name);
  const std::size_t rows = t.motors.size(), columns = t.joints.size();
  if (!rows) throw ModelError(subject + ": motors needs a list of one or more names; got ()");
  if (!columns) throw ModelError(subject + ": joints needs a list of one or more coordinates; got ()");
  if (std::set<std::string>(t.motors.begin(), t.motors.end()).size() < rows)
    throw ModelError(subject + " names a motor twice: " + joined(t.motors));
  std::set<std::pair<std::string, int>> named;
  for (Term& joint : t.joints) {
    check_coordinate(joint.joint, joint.index, subject);
    if (!named.emplace(joint.joint, joint.index).second)
      throw ModelError(subject + " names coordinate " + std::to_string(joint.index) + " of joint '" + joint.joint + "' twice");
  }
  for (const Term& term : t.joints) {
    const Joint& joint = written_.joints[joints_.at(term.joint)];
    for (int k = 0; k < joint.joint.nv() && joint.actuated; ++k)
      if (!named.count({term.joint, k}))
        throw ModelError(subject + ": joint '" + term.joint + "' is actuated, but coordinate " + std::to_string(k) +
                         " is not in joints; expected all its coordinates, or a joint without a motor");
  }
  const auto fits = [&](const std::vector<double>& row) { return row.size() == columns; };
  if (t.matrix.size() != rows || !std::all_of(t.matrix.begin(), t.matrix.end(), fits))
    throw ModelError(subject + ": matrix must be " + shape_text({rows, columns}) +
                     ", a row for each motor and a column for each coordinate of joints; got " + shown(list(t.matrix), true));
  if (!std::all_of(t.matrix.begin(), t.matrix.end(), [](const auto& row) { return all_finite(row); }))
    throw ModelError(subject + ": matrix needs finite numbers; got " + shown(list(t.matrix), true));
  if (!all_finite(t.offset) || (t.offset.size() != 1 && t.offset.size() != rows))
    throw ModelError(subject + ": offset needs a finite number, or one for each motor: " + joined(t.motors) + "; got " +
                     shown(t.offset, true));
  t.offset.resize(rows, t.offset[0]);

  const Joint& first = written_.joints[joints_.at(t.joints[0].joint)];
  Joint on_base;
  on_base.parent = t.base.empty() ? first.parent : t.base;
  if (!t.base.empty() && !frames_.count(t.base)) known_body(t.base, subject + ": base");
  place(on_base, subject);  // the child is empty until the rotor is known
  TransmissionParts parts;
  for (std::size_t k = 0; k < rows; ++k) {
    const std::string& motor = t.motors[k];
    Body rotor{motor + "_rotor", {}};
    Coupler coupler;
    coupler.name = t.name + "_" + motor, coupler.offset = t.offset[k];
    new_name("joint", motor), new_name("body", rotor.name), new_name("constraint", coupler.name);
    coupler.terms.push_back({motor, 0, {1.0}});
    for (std::size_t i = 0; i < columns; ++i)
      if (t.matrix[k][i] != 0.0) coupler.terms.push_back({t.joints[i].joint, t.joints[i].index, {-t.matrix[k][i]}});
    if (coupler.terms.size() == 1)
      throw ModelError(subject + ": the row of motor '" + motor +
                       "' in matrix has only zeros; expected a ratio to at least one joint");
    Joint joint = on_base;
    joint.name = motor, joint.joint = motor_type(t, k, subject), joint.child = rotor.name, joint.actuated = true;
    parts.rotors.push_back(std::move(rotor)), parts.joints.push_back(std::move(joint));
    parts.couplers.push_back(std::move(coupler));
  }
  return parts;
}

void Builder::add_transmission(const Transmission& t) {
  const TransmissionParts parts = transmission_parts(t);
  Builder changed = *this;  // an error changes nothing
  for (const Term& driven : t.joints) {
    Joint& joint = changed.written_.joints[changed.joints_.at(driven.joint)];
    joint.actuated = false, joint.tree = true;
  }
  for (const Body& rotor : parts.rotors) changed.add(rotor);
  for (const Joint& joint : parts.joints) changed.add(joint);
  for (const Coupler& coupler : parts.couplers) changed.add(coupler);
  *this = std::move(changed);
}

std::vector<std::pair<const Joint*, const Coupler*>> motors_of(const Description& d) {
  std::vector<std::pair<const Joint*, const Coupler*>> motors;
  const auto is_linear = [](const Term& term) { return term.coefficients.size() == 1; };
  for (const Constraint& constraint : d.constraints) {
    const Coupler* c = std::get_if<Coupler>(&constraint);
    if (!c || c->law || !c->products.empty() || c->terms.empty() || !std::all_of(c->terms.begin(), c->terms.end(), is_linear))
      continue;
    const std::string& motor = c->terms[0].joint;
    const auto joint = std::find_if(d.joints.begin(), d.joints.end(), [&](const Joint& j) { return j.name == motor; });
    if (joint == d.joints.end() || joint->child != motor + "_rotor" || joint->joint.nq() != 1 ||
        c->terms[0].coefficients[0] != 1.0)
      continue;
    const std::string& rotor = joint->child;
    const auto has_mass = [&](const Body& body) { return body.name == rotor && body.inertia.mass != 0.0; };
    const auto is_attached = [&](const Joint& j) { return j.name != motor && (j.parent == rotor || j.child == rotor); };
    if (std::none_of(d.bodies.begin(), d.bodies.end(), has_mass) && std::none_of(d.joints.begin(), d.joints.end(), is_attached))
      motors.emplace_back(&*joint, c);
  }
  return motors;
}

JointCoordinates with_motors(const Description& d, JointCoordinates coordinates) {
  const auto value = [&coordinates](const std::string& joint, int index) {
    for (const auto& [name, q] : coordinates)
      if (name == joint && static_cast<std::size_t>(index) < q.size()) return q[static_cast<std::size_t>(index)];
    return 0.0;  // no coordinate that can be coupled has another neutral value
  };
  const std::size_t given = coordinates.size();
  for (const auto& [motor, coupler] : motors_of(d)) {
    const std::string& name = motor->name;
    const auto end = coordinates.begin() + static_cast<std::ptrdiff_t>(given);
    if (std::any_of(coordinates.begin(), end, [&](const auto& x) { return x.first == name; })) continue;
    double q = coupler->offset;
    for (const Term& term : coupler->terms)
      if (term.joint != name) q -= term.coefficients[0] * value(term.joint, term.index);
    coordinates.push_back({name, {q}});
  }
  return coordinates;
}

void Builder::check(Pfaffian& c) const {
  const std::string subject = of("constraint", c.name);
  if (c.joints.empty()) throw ModelError(subject + ": joints needs a list of one or more names; got ()");
  if (std::set<std::string>(c.joints.begin(), c.joints.end()).size() < c.joints.size())
    throw ModelError(subject + " names a joint twice: " + joined(c.joints));
  std::size_t n = 0;
  for (const std::string& joint : c.joints) n += static_cast<std::size_t>(tree_joint(joint, subject).joint.nv());
  check_sequence(c.value, subject + ": value");
  if (c.is_function) return;  // the number of rows of the function is known only after its first call
  const std::string columns = "(k, " + std::to_string(n) + ")";
  const std::size_t rows = c.rows.size(), width = rows ? c.rows[0].size() : 0;
  for (const std::vector<double>& row : c.rows)
    if (row.size() != width || !all_finite(row))
      throw ModelError(subject + ": rows needs " + columns + " finite numbers or a function of q; got " +
                       shown(list(c.rows), true));
  if (width != n || rows * width == 0)
    throw ModelError(subject + ": rows must be " + columns + ", for the velocities of " + joined(c.joints) + "; got " +
                     (rows ? shape_text({rows, width}) : shape_text({std::size_t{0}})));
  c.value = per_row(std::move(c.value), rows, subject);
}

void Builder::check(BetweenFrames& c) const {
  const std::string subject = of("constraint", c.name);
  known_body(c.parent, subject), known_body(c.child, subject);
  Joint weld{c.name, fixed(), c.parent, c.child, c.at_parent, c.at_child, false, false, false, {}};
  place(weld, subject);
  c.parent = weld.parent, c.child = weld.child, c.at_parent = weld.at_parent, c.at_child = weld.at_child;
  visit_constraint(c.kind, [&](auto& kind) {
    kind.fields([&](const char* key, auto& x) {
      if constexpr (std::is_same_v<decltype(x), double&>) check_number(x, subject + ": " + key);
    });
  });
}

void Builder::add(Visual v) {
  known_body(v.body, "visual");
  const std::string subject = "visual of body '" + v.body + "'";
  v.placement = checked_placement(v.placement, subject + ": placement");
  if (v.color && !std::all_of(v.color->begin(), v.color->end(), [](double x) { return x >= 0.0 && x <= 1.0; }))
    throw ModelError(subject + ": color " + expected_color + "; got " + shown(list(*v.color), true));
  std::visit(ShapeCheck{subject}, v.shape);
  written_.visuals.push_back(std::move(v));
}

void Builder::add(Shape s) {
  known_body(s.body, "shape");
  const std::string subject = new_name("shape", s.name);
  if (s.group && (s.group->empty() || shapes_.count(*s.group)))
    throw ModelError(subject + ": group must be a name that no shape has; got " + quoted(*s.group));
  if (groups_.count(s.name)) throw ModelError(subject + " has the name of a group; expected a different name");
  s.placement = checked_placement(s.placement, subject + ": placement");
  check_coefficients(s, subject);
  check_shape(s.shape, subject);
  if (s.group) ++groups_[*s.group];
  shapes_.emplace(s.name, written_.shapes.size());
  written_.shapes.push_back(std::move(s));
  for (std::string& sentence : written_.warnings)
    if (const std::size_t at = sentence.find(no_contacts); at != std::string::npos)
      sentence.replace(at, no_contacts.size(), some_contacts);
}

void Builder::add(Contact c) {
  const std::string subject = "contact of '" + c.first + "' and '" + c.second + "'";
  for (const std::string& name : {c.first, c.second})
    if (!shapes_.count(name) && !groups_.count(name)) {
      std::vector<std::string> candidates = names_of(written_.shapes);
      for (const auto& group : groups_) candidates.push_back(group.first);
      no_such_name("shape or group", name, std::move(candidates), subject);
    }
  const auto first = shapes_.find(c.first), second = shapes_.find(c.second);
  if (first != shapes_.end() && second != shapes_.end() && c.touching)
    if (const std::string& body = written_.shapes[first->second].body; body == written_.shapes[second->second].body)
      throw ModelError(subject + ": both shapes are on body '" + body + "', so they cannot touch");
  check_coefficients(c, subject);
  if (c.points && (!c.touching || first == shapes_.end() || second == shapes_.end()))
    throw ModelError(subject + ": points are only for a pair of shapes (not groups) that may touch");
  const auto same_pair = [&](const Contact& set) {
    return (set.first == c.first && set.second == c.second) || (set.first == c.second && set.second == c.first);
  };
  std::vector<Contact>& all = written_.contacts;
  all.erase(std::remove_if(all.begin(), all.end(), same_pair), all.end());
  all.push_back(std::move(c));
}

void Builder::set_home(const JointCoordinates& home) { written_.home = coordinates(home, "home"); }

void Builder::set_configuration(const std::string& name, const JointCoordinates& by_joint) {
  const std::string subject = new_name("configuration", name);
  JointCoordinates q = coordinates(by_joint, subject);
  for (auto& [candidates, earlier] : written_.configurations)
    if (candidates == name) return void(earlier = std::move(q));
  written_.configurations.emplace_back(name, std::move(q));
}

const Description& Builder::complete() const {
  check_printable("mechanism", written_.name);
  if (written_.bodies.empty()) throw ModelError("a mechanism needs at least one body");
  for (const Joint& joint : written_.joints)
    for (const std::string& end : {joint.parent, joint.child})
      if (end != "ground" && !bodies_.count(end)) {
        std::vector<std::string> candidates = names_of(written_.bodies);
        candidates.push_back("ground");
        throw ModelError("joint '" + joint.name + "' refers to body '" + printable(end) + "', which does not exist" +
                         did_you_mean(end, std::move(candidates)));
      }
  return written_;
}

std::size_t joint_index(const Description& d, const std::string& name) {
  for (std::size_t k = 0; k < d.joints.size(); ++k)
    if (d.joints[k].name == name) return k;
  no_such_name("joint", name, names_of(d.joints));
}

const JointCoordinates& named_configuration(const Description& d, const std::string& name) {
  std::vector<std::string> candidates;
  for (const auto& [candidate, q] : d.configurations) {
    if (candidate == name) return q;
    candidates.push_back(candidate);
  }
  no_such_name("configuration", name, std::move(candidates));
}

// ---- inertias ----------------------------------------------------------------------------------------------------------------------------

namespace {

/// Return the inertia of a body from its Euler tensor about the centre of mass, divided by the mass (van der Merwe 3.30).
Inertia from_euler(double mass, const Vec3<double>& com, const Mat3<double>& spread) {
  const Mat3<double> J = spread * mass;
  Inertia b{mass, com, Mat3<double>(Mat3<double>::Identity() * J.trace() - J)};
  b = checked(b);
  if (mass < 0.0) throw ModelError("mass = " + six_digits(mass) + " is negative");
  return b;
}
double checked_length(const char* name, double x) {
  if (!std::isfinite(x)) throw ModelError(std::string(name) + " = " + shown(x) + " is not finite");
  if (x < 0.0) throw ModelError(std::string(name) + " = " + six_digits(x) + " is negative");
  if (x > largest)
    throw ModelError(std::string(name) + " = " + six_digits(x) + " is too large for a body: at most " + six_digits(largest) +
                     " m");
  return x;
}
Mat3<double> outer(const Vec3<double>& u) { return u * u.transpose(); }

}  // namespace

Inertia rod(double mass, const Point& start, const Point& end, double radius) {
  const Vec3<double> a = vector(start), d = vector(end) - a;
  Mat3<double> spread = outer(d) / 12.0;
  if (checked_length("radius", radius) > 0.0) {
    if (d == zero3<double>()) throw ModelError("end - start = " + shown(d) + " has no direction");
    spread += (Mat3<double>::Identity() - outer(d / d.norm())) * (radius * radius / 4.0);
  }
  return from_euler(mass, (vector(start) + vector(end)) * 0.5, spread);
}
Inertia box(double mass, const Point& size) {
  Mat3<double> spread = Mat3<double>::Zero();
  for (int k = 0; k < 3; ++k) spread(k, k) = std::pow(checked_length("size", size[static_cast<std::size_t>(k)]), 2) / 12.0;
  return from_euler(mass, zero3<double>(), spread);
}
Inertia sphere(double mass, double radius) {
  return from_euler(mass, zero3<double>(), Mat3<double>::Identity() * (std::pow(checked_length("radius", radius), 2) / 5.0));
}
Inertia cylinder(double mass, double radius, double length, const Value& axis) {
  const Mat3<double> uu = outer(unit_axis(axis));
  const double r = checked_length("radius", radius), h = checked_length("length", length);
  return from_euler(mass, zero3<double>(), (Mat3<double>::Identity() - uu) * (r * r / 4.0) + uu * (h * h / 12.0));
}

}  // namespace sarrus::model
