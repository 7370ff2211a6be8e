// Conversion of a description's parameters to the form that the kernels read: axes are rotated onto z, the inertias of welded bodies are summed, and
// frames are converted to link frames. The arrays already exist, in this mechanism or in the one from which it is copied; mechanism.cpp and
// closing.cpp create them.
#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "../joints/visit.hpp"
#include "mechanism.hpp"

namespace sarrus {
namespace {

/// Largest mass, relative to the heaviest body, of a body that is treated as massless. The loop forces that such a body transmits are much larger
/// than its inertial forces, so that residuals relative to its inertial forces would be meaningless.
constexpr double light = 1e-6;

/// Return true if a body's own inertia, with the armature of its joint, resists every motion of the joint.
bool has_inertia_along(const Link& b, const Motion<double>* S, const PassiveTerms* passive) {
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor, 6, 6> G(b.nv, b.nv);
  for (int k = 0; k < b.nv; ++k) {
    const Sym3<double>& I = b.inertia.I;
    const double size = (I.xx + I.yy + I.zz) * dot(S[k].angular, S[k].angular) + b.inertia.m * dot(S[k].linear, S[k].linear);
    for (int l = 0; l < b.nv; ++l) G(k, l) = dot(S[l], b.inertia * S[k]);
    if (!(G(k, k) > 1e-14 * size)) G(k, k) = 0.0;
    G(k, k) += passive[k].armature;
    if (!(G(k, k) > 0.0)) return false;
  }
  if (b.nv == 1) return true;
  const auto scale = G.diagonal().cwiseSqrt().cwiseInverse().eval();
  return (scale.asDiagonal() * G * scale.asDiagonal()).eval().ldlt().vectorD().minCoeff() > 1e-12;
}

/// Return true if the columns of the link's joint depend on the configuration.
bool has_varying_columns(const Link& b) {
  return b.joint == JointKind::reversed || !visit_every(b.joint, b.nv, [](auto joint) { return joint.constant_subspace; });
}

JointConstants settled(const JointDescription& j) {
  JointConstants constants = j.constants;
  visit_every(j.kind, 0, [&](auto joint) { joint.settle(constants); });
  return constants;
}

/// Return the axes of the joint frame in the axes of the description, for the joint axis multiplied by `sign`. `constants` receives the constants
/// that depend on these axes.
Mat3<double> joint_axes(const JointDescription& j, double sign, JointConstants& constants) {
  return visit_every(j.kind, 0, [&](auto joint) { return joint.axes(j.axis * sign, j.axis2, constants); });
}

/// Convert the passive terms along velocity k of a joint whose coordinates start at iq. Raises ModelError for a spring along a velocity without a
/// coordinate.
PassiveTerms passive_terms(const JointDescription& j, int k, int iq) {
  return visit_every(j.kind, j.nv, [&](auto joint) {
    const NonlinearTerms nonlinear = {j.quadratic_stiffness[k], j.cubic_stiffness[k], j.quadratic_damping[k], j.cubic_damping[k]};
    if ((j.stiffness[k] != 0.0 || nonlinear.has_spring()) && !joint.has_ball_spring && !joint.is_rate(k))
      throw ModelError("joint '" + j.name + "': a " + joint.name + " joint cannot have stiffness along velocity " +
                       std::to_string(k));
    return PassiveTerms{
        j.armature[k], j.damping[k], j.friction[k], j.stiffness[k], j.rest[k], nonlinear, joint.has_ball_spring ? -1 : iq + k};
  });
}

/// Return true if velocity k of the joint is angular.
bool turns(const JointDescription& j, int k) {
  return visit_every(j.kind, j.nv, [&](auto joint) {
    int listed = 0, velocity_index = 0;
    for (const Coordinate& velocity : joint.velocities)
      if (joint.has(j.constants, listed++) && velocity_index++ == k) return velocity.is_angle();
    return true;
  });
}

/// Compute the units of a joint's coordinates: `length` for displacements, 1 for angles and quaternions.
void units_of_coordinates(const JointDescription& j, double length, double* unit) {
  visit_every(j.kind, j.nv, [&](auto joint) {
    int listed = 0;
    for (const Coordinate& coordinate : joint.coordinates)
      if (joint.has(j.constants, listed++)) *unit++ = coordinate.is_length() ? length : 1.0;
  });
}

/// Attachment points on bodies, and the largest distance between two points of the same body.
class AttachmentPoints {
 public:
  explicit AttachmentPoints(std::size_t bodies) : first_(bodies + 1, 0) {}
  void add(int body, const Vec3<double>& point) { all_.push_back({body, point}); }
  /// Sort the points by body.
  void sort() {
    std::stable_sort(all_.begin(), all_.end(), [](const Point& a, const Point& b) { return a.body < b.body; });
    for (std::size_t i = 0, b = 0; b < first_.size(); first_[b++] = i)
      while (i < all_.size() && all_[i].body < static_cast<int>(b)) ++i;
  }
  double span(int body) const {
    double span = 0.0;
    for (std::size_t i = first_[body]; i < first_[body + 1]; ++i)
      for (std::size_t j = i + 1; j < first_[body + 1]; ++j) span = std::max(span, (all_[i].p - all_[j].p).norm());
    return span;
  }
  /// Return the root mean square distance of the body's mass from its first attachment point.
  double swing(int body, const Inertia<double>& b) const {
    const Vec3<double> p = first_[body] < first_[body + 1] ? all_[first_[body]].p : zero3<double>();
    const double square = 0.5 * (b.I.xx + b.I.yy + b.I.zz) - 2.0 * dot(b.h, p) + b.m * dot(p, p);
    return b.m > 0.0 ? std::sqrt(std::max(square / b.m, 0.0)) : 0.0;
  }

 private:
  struct Point {
    int body;
    Vec3<double> p;
  };
  std::vector<Point> all_;
  std::vector<std::size_t> first_;
};

bool same_structure(const JointDescription& a, const JointDescription& b) {
  const auto same_laws = [](const auto& x, const auto& y) { return x.has_value() == y.has_value(); };
  // a joint without constraint rows is always a loop joint, even if the flag is not set
  const bool closes_anyway = visit_every(a.kind, 0, [](auto joint) -> bool { return joint.is_unconstrained; });
  return a.name == b.name && a.parent == b.parent && a.child == b.child && a.kind == b.kind && a.nq == b.nq && a.nv == b.nv &&
         a.constants.free == b.constants.free && a.actuated == b.actuated && a.keep_in_tree == b.keep_in_tree &&
         (a.close_loop == b.close_loop || closes_anyway) &&
         std::equal(a.laws.begin(), a.laws.end(), b.laws.begin(), b.laws.end(), same_laws);
}

bool same_structure(const ConstraintDescription& a, const ConstraintDescription& b) {
  const auto same_coordinate = [](const auto& x, const auto& y) { return x.joint == y.joint && x.index == y.index; };
  if (a.name != b.name || a.parent != b.parent || a.child != b.child || a.kind.index() != b.kind.index() ||
      a.target != b.target || a.joint != b.joint ||
      !std::equal(a.coordinates.begin(), a.coordinates.end(), b.coordinates.begin(), b.coordinates.end(), same_coordinate))
    return false;
  return visit_constraint(a.kind, [&](const auto& x) {
    const auto& y = std::get<std::decay_t<decltype(x)>>(b.kind);
    return x.rows() == y.rows() && x.driven() == y.driven();
  });
}

/// Raise ModelError, with the name of the item, if two items differ in more than parameters.
void require_same_structure(const Description& a, const Description& b) {
  const auto compare = [](const char* item, const auto& all, const auto& changed, auto same) {
    const auto [first, second] = std::mismatch(all.begin(), all.end(), changed.begin(), changed.end(), same);
    if (first != all.end() || second != changed.end())
      throw ModelError(std::string("a copy may differ in parameters only, but ") + item + " '" +
                       (first != all.end() ? first->name : second->name) + "' differs in structure: build a new mechanism");
  };
  const auto alike = [](const auto& x, const auto& y) { return same_structure(x, y); };
  compare("body", a.bodies, b.bodies, [](const auto& x, const auto& y) { return x.name == y.name; });
  compare("joint", a.joints, b.joints, alike);
  compare("frame", a.frames, b.frames, [](const auto& x, const auto& y) { return x.name == y.name && x.body == y.body; });
  compare("constraint", a.constraints, b.constraints, alike);
  compare("spring", a.springs, b.springs,
          [](const auto& x, const auto& y) { return x.name == y.name && x.body[0] == y.body[0] && x.body[1] == y.body[1]; });
  if (a.substructures != b.substructures)
    throw ModelError("a copy cannot change the argument substructures: build a new mechanism");
}

/// Return true if kernels read all parameters of the mechanism from arrays. This is false if it contains time functions, couplers, or Pfaffian
/// rows.
bool is_plain(const Description& d) {
  const auto plain = [](const ConstraintDescription& c) {
    bool yes = true;
    visit_constraint(c.kind, [&](const auto& kind) {
      const_cast<std::decay_t<decltype(kind)>&>(kind).fields(  // fields() only reads here
          [&](const char*, auto& x) { yes = yes && std::is_same_v<decltype(x), double&>; });
    });
    return yes;
  };
  return std::all_of(d.joints.begin(), d.joints.end(), [](const JointDescription& j) { return j.laws.empty(); }) &&
         std::all_of(d.constraints.begin(), d.constraints.end(), plain);
}

void set_frames(Constraint& c, const Constraint& from) {
  c.R_described = from.R_described, c.X_parent = from.X_parent, c.X_child = from.X_child;
}

}  // namespace

/// Raise ModelError if two descriptions differ in properties that variants must share. Parameters that kernels do not read from arrays are the same
/// if both descriptions are copies of one description.
void Mechanism::require_to_vary_from(const Mechanism& other) const {
  require_same_structure(other.description_, description_);
  if (frame_of_ != other.frame_of_ && !is_plain(description_))
    throw ModelError(
        "variants must have the same time functions, couplers and Pfaffian rows: copy one mechanism by replace or variants");
}

Mechanism::Mechanism(const Mechanism& other, Description changed) : Mechanism(other) {
  require_same_structure(description_, changed);
  description_ = std::move(changed);
  description_.check_interrupt = nullptr;
  point();
  bake();
  if (pieces_) {
    pieces_ = std::make_shared<SubstructuredMechanism>(*pieces_, tree_);
    tree_.loops.substructures = &pieces_->view();
  }
  require_same_decisions(other.decisions_);
}

/// Return the decisions on structure that depend on parameters. The first flags are true for loop joints with armature. If the mechanism may be cut,
/// three flags for each link follow: its joint may be cut; the joint has armature; the body has enough inertia to float.
std::vector<char> Mechanism::decisions() const {
  std::vector<char> all;
  for (const LoopMotion& m : loop_motions_) all.push_back(m.has_armature);
  if (!may_be_cut_) return all;
  const std::vector<char> can = may_float(tree_);
  for (std::size_t i = 1; i < links_.size(); ++i) {
    const PassiveTerms* p = passive_terms_.data() + links_[i].iv;
    const bool turns = std::any_of(p, p + links_[i].nv, [](const PassiveTerms& t) { return t.armature != 0.0; });
    all.push_back(static_cast<char>(can[i] | turns << 1 | has_inertia_where_free(links_[i]) << 2));
  }
  return all;
}

void Mechanism::require_same_decisions(const std::vector<char>& before) {
  decisions_ = decisions();
  for (std::size_t i = 0; i < loop_motions_.size(); ++i)
    if (decisions_[i] != before[i])
      throw ModelError(
          "loop joint '" + constraint_names_[i] +
          "': a copy cannot add or remove armature, because this changes the constraint rows: build a new mechanism");
  // the first link for which the decision about its cut differs, and the first link whose inertia changed a decision
  std::size_t first = 0, with_inertia = 0;
  for (std::size_t i = decisions_.size(); i-- > loop_motions_.size();) {
    const int changed = decisions_[i] ^ before[i];
    if (changed & 3) first = i - loop_motions_.size() + 1;
    if (changed & 6) with_inertia = i - loop_motions_.size() + 1;
  }
  if (first == 0) return;
  const int link = static_cast<int>(with_inertia ? with_inertia : first);
  const auto on = std::find_if(bodies_.begin() + 1, bodies_.end(), [&](const Body& b) { return b.link == link; });
  throw ModelError(
      "body '" + description_.bodies[on->described].name +
      "': a copy cannot add or remove the inertia of the body, or the armature of its joint, because this changes the "
      "substructures of the mechanism: build a new mechanism");
}

void Mechanism::bake() {
  tree_.gravity = description_.gravity;
  tree_.has_armature = tree_.has_joint_forces = tree_.has_nonlinear_forces = false, tree_.ties_links = tree_.springs > 0;
  bake_bodies();
  bake_frames();
  bake_springs();
  tree_.length = description_.length > 0.0 ? description_.length : characteristic_length();
  bake_terms();
  for (std::size_t j = 0; j < joints_.size(); ++j)
    if (joints_[j].closes_a_loop) bake_closing_joint(static_cast<int>(j));
  bake_constraints();
  bake_motors();
  weigh();
  find_idle();
}

// The frame of a link is the joint's frame on it, with the joint's axis on z. A welded body belongs to the link of its parent.
void Mechanism::bake_bodies() {
  for (Link& b : links_) b.inertia = Inertia<double>::zero();
  for (std::size_t n = 1; n < bodies_.size(); ++n) {
    Body& body = bodies_[n];
    const int index = carrier_[body.described];
    const JointDescription& j = description_.joints[index];
    const bool reversed = body.reversed;
    const Transform<double> before = bodies_[body.parent].X * (reversed ? j.at_child : j.at_parent);
    const JointConstants constants = settled(j);
    if (j.nv == 0) {  // a gimbal without degrees of freedom may still have a constant displacement
      const Coordinates<double> none = {nullptr, nullptr, nullptr, {&constants}};
      Transform<double> across = visit_every(j.kind, 0, [&](auto joint) { return joint.transform(none); });
      if (reversed) across = across.inverse();
      body.X_joint = before * across;
    } else {
      Link& b = links_[body.link];
      b.constants = constants;
      const bool turned_round = reversed && b.joint != JointKind::reversed;
      const Transform<double> turn = {joint_axes(j, turned_round ? -1.0 : 1.0, b.constants), zero3<double>()};
      if (b.joint == JointKind::reversed) b.constants.reversed = j.kind;
      b.X_tree = before * turn;
      b.R_joint = turn.R;
      body.X_joint = turn.inverse();
    }
    body.inertia = description_.bodies[body.described].inertia;
    body.X = body.X_joint * (reversed ? j.at_parent : j.at_child).inverse();
    body.X_before = before;
    links_[body.link].inertia += transformed(body.X, body.inertia);
  }
  for (Link& b : links_) b.euler = euler_tensor(b.inertia.I);
}

void Mechanism::bake_frames() {
  std::size_t i = 1;
  for (; i <= description_.bodies.size(); ++i) frames_[i].X = bodies_[frames_[i].body].X;
  for (const FrameDescription& f : description_.frames) frames_[i].X = bodies_[frames_[i].body].X * f.X, ++i;
  for (const auto& [joint, end] : joint_frames_) {
    const JointDescription& j = description_.joints[joint];
    frames_[i].X = bodies_[frames_[i].body].X * (end ? j.at_child : j.at_parent), ++i;
  }
}

void Mechanism::bake_springs() {
  for (std::size_t i = 0; i < springs_.size(); ++i) {
    const SpringDescription& s = description_.springs[i];
    for (const int end : {0, 1}) {
      const Transform<double>& X = placed_frame(s.body[end]).X;
      springs_[i].point[end] = X.R * s.point[end] + X.p;
    }
    springs_[i].stiffness = s.stiffness, springs_[i].rest_length = s.rest_length, springs_[i].damping = s.damping;
    springs_[i].nonlinear = s.nonlinear;
  }
}

/// Convert the passive terms along the velocities of the tree, and their units.
void Mechanism::bake_terms() {
  for (std::size_t i = 0; i < joints_.size(); ++i) {
    const JointDescription& j = description_.joints[i];
    const PlacedJoint& placed = joints_[i];
    for (int k = 0; k < placed.nv; ++k) {
      const PassiveTerms terms = passive_terms_[placed.iv + k] = passive_terms(j, k, placed.iq);
      const double unit = unit_[placed.iv + k] = turns(j, k) ? 1.0 : tree_.length;
      per_unit_square_[placed.iv + k] = 1.0 / (unit * unit);
      tree_.has_armature |= terms.armature != 0.0;
      tree_.note(terms);
    }
  }
}

/// Convert the constraint, motion and passive terms of a loop joint. If time functions move its frame it has no passive terms, because the formulas
/// of these forces do not depend on time.
void Mechanism::bake_closing_joint(int joint) {
  const JointDescription& j = description_.joints[joint];
  const int at = joints_[joint].constraint;
  Constraint &c = constraints_[at], &motion = motions_[at];
  LoopMotion& m = loop_motions_[at];
  m.constants = settled(j);
  c.R_described = joint_axes(j, 1.0, m.constants);
  const Transform<double> turn = {c.R_described, zero3<double>()};
  c.X_parent = bodies_[joints_[joint].ends[0]].X * j.at_parent * turn;
  c.X_child = bodies_[joints_[joint].ends[1]].X * j.at_child * turn;
  if (const char* why = visit_every(j.kind, 0, [&](auto type) { return type.cannot_close(m.constants); }))
    throw ModelError("joint '" + j.name + "' is a loop joint, and " + why);
  std::get<LoopJoint>(c.kind).constants = std::get<LoopJoint>(motion.kind).constants = m.constants;
  c.carried = motion.carried = j.laws;
  set_frames(motion, c);
  m.X[0] = c.X_parent, m.X[1] = c.X_child;
  m.has_forces = m.has_armature = false;
  for (int k = 0; k < m.nv; ++k) {
    m.terms[k] = passive_terms(j, k, 0);
    m.has_forces |= !c.driven && m.terms[k].has_forces();
    m.has_armature |= !c.driven && m.terms[k].armature != 0.0;
  }
  tree_.ties_links |= m.has_forces || m.has_armature;
}

/// Convert the constraints after the loop joints: first those of the description; then prescribed motions of joints, and joints with a motor.
void Mechanism::bake_constraints() {
  for (int i = static_cast<int>(loop_motions_.size()); i < constraints_.size(); ++i) {
    Constraint& c = constraints_[i];
    if (source_[i] >= 0) {
      const Constraint& motion = motions_[joints_[source_[i]].constraint];
      c.kind = motion.kind, c.carried = motion.carried;
      set_frames(c, motion);
      continue;
    }
    const ConstraintDescription& o = description_.constraints[-1 - source_[i]];
    c.kind = o.kind;
    if (c.child < 0) continue;
    c.R_described = o.at_child.R;
    c.X_parent = placed_frame(o.parent).X * o.at_parent;
    c.X_child = placed_frame(o.child).X * o.at_child;
  }
}

void Mechanism::bake_motors() {
  const Loops& loops = tree_.loops;
  std::size_t row = 0;
  for (int i = loops.constraints; i < constraints_.size(); ++i) {
    const JointDescription& j = description_.joints[source_[i]];
    const LoopMotion& m = loop_motions_[joints_[source_[i]].constraint];
    for (int k = 0; k < m.nv; ++k, ++row) {
      motor_unit_[row] = turns(j, k) ? 1.0 : tree_.length;
      rotor_[row] = m.has_armature ? std::sqrt(m.terms[k].armature) : 0.0;
    }
  }
}

/// Return the mean, over the bodies, of the largest distance [m] between two attachment points of a body, including those of rods and wheels. If no
/// body has two such points, return the mean distance of the bodies' masses from their points.
double Mechanism::characteristic_length() const {
  AttachmentPoints points(bodies_.size());
  double sum = 0.0;
  int count = 0;
  const auto include = [&](double size) {
    if (size > 0.0) sum += size, ++count;
  };
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    points.add(joints_[j].ends[0], description_.joints[j].at_parent.p);
    points.add(joints_[j].ends[1], description_.joints[j].at_child.p);
  }
  for (std::size_t k = 0; k < description_.constraints.size(); ++k) {
    const ConstraintDescription& o = description_.constraints[k];
    if (o.target != Target::none) continue;
    const Constraint& c = constraints_.data()[described_constraints_[loop_motions_.size() + k]];
    visit_constraint(o.kind, [&](const auto& kind) {
      if constexpr (between_bodies<decltype(kind)>) {
        if (kind.holds_a_point_of_the_parent) points.add(c.body[0], o.at_parent.p);
        points.add(c.body[1], o.at_child.p);
        include(kind.own_length());
      }
    });
  }
  points.sort();
  const auto include_bodies = [&] {
    for (std::size_t b = 1; b < bodies_.size(); ++b) include(points.span(static_cast<int>(b)));
  };
  include_bodies();
  if (count == 0 && !(points.span(0) > 0.0)) {  // no body has two attachment points: include those of springs
    for (std::size_t i = 0; i < springs_.size(); ++i)
      for (const int end : {0, 1}) points.add(springs_[i].body[end], description_.springs[i].point[end]);
    points.sort();
    include_bodies();
  }
  if (count == 0 && !(points.span(0) > 0.0))  // still no body has two points: use the mean distance of the masses from the points
    for (std::size_t b = 1; b < bodies_.size(); ++b)
      include(points.swing(static_cast<int>(b), description_.bodies[bodies_[b].described].inertia));
  const double length = count > 0 ? sum / count : points.span(0);
  return 0.0 < length && std::isfinite(length) ? length : 1.0;
}

// Find joints along which no mass moves. If the subtree of a joint, as one rigid body, has zero inertia along the joint in a few random
// configurations, the inertia is zero in every configuration. Also find joints whose own body has little or no inertia along the joint. Their subtree
// may have no inertia in some configurations, because the joints beyond the body are free to move.
void Mechanism::weigh() {
  mass_ = 0.0;
  double heaviest = 0.0;
  for (const Link& b : links_) mass_ += b.inertia.m, heaviest = std::max(heaviest, b.inertia.m);
  tree_.light = light * heaviest;
  std::vector<char> moves_mass(tree_.nv, 0);
  lacks_inertia_.assign(tree_.nv, 0);
  std::vector<double> q(tree_.nq), unit(tree_.nq), sines(angles_.size() + 1), cosines(angles_.size() + 1);
  for (std::size_t j = 0; j < joints_.size(); ++j)
    if (!joints_[j].closes_a_loop) units_of_coordinates(description_.joints[j], tree_.length, unit.data() + joints_[j].iq);
  std::vector<Inertia<double>> composite(links_.size());
  bool moves = false, decided = false;  // moves: true if all subtrees have inertia; decided: true if all joints are classified
  for (int trial = 1; trial <= 3 && !decided; ++trial) {
    for (int k = 0; k < tree_.nq; ++k) q[k] = unit[k] * std::sin(trial + 1.7 * k);
    for (std::size_t k = 0; k < angles_.size(); ++k) sines[k] = std::sin(q[angles_[k]]), cosines[k] = std::cos(q[angles_[k]]);
    if (!moves) std::fill(composite.begin(), composite.end(), Inertia<double>::zero());
    decided = true;
    for (std::size_t i = links_.size() - 1; i > 0; --i) {
      const Link& b = links_[i];
      const bool is_checked = trial == 1 || (has_varying_columns(b) && !lacks_inertia_[b.iv]);
      if (moves && !is_checked) continue;
      const Coordinates<double> c = {q.data() + b.iq, sines.data() + b.iangle, cosines.data() + b.iangle, {&b.constants}};
      JointMotion<double> J;
      joint_motion<double>(b.joint, b.nv, c, nullptr, J);
      if (is_checked && (b.inertia.m <= tree_.light || !has_inertia_along(b, J.column, passive_terms_.data() + b.iv)))
        std::fill_n(lacks_inertia_.begin() + b.iv, b.nv, char(1));
      decided = decided && (lacks_inertia_[b.iv] || !has_varying_columns(b));
      if (moves) continue;
      composite[i] += b.inertia;
      for (int k = 0; k < b.nv; ++k) {
        const Motion<double>& s = J.column[k];
        const Sym3<double>& I = composite[i].I;
        const double rounding = 1e-14 * (I.xx + I.yy + I.zz + composite[i].m * dot(s.linear, s.linear));
        moves_mass[b.iv + k] |= dot(s, composite[i] * s) > rounding || passive_terms_[b.iv + k].armature > 0.0;
      }
      composite[b.parent] += transformed(b.X_tree * J.X, composite[i]);
    }
    moves = std::find(moves_mass.begin(), moves_mass.end(), 0) == moves_mass.end();
    decided = decided && moves;
  }
  tree_.mass = mass_;
  tree_.lacks_inertia =
      std::find(lacks_inertia_.begin(), lacks_inertia_.end(), 1) == lacks_inertia_.end() ? nullptr : lacks_inertia_.data();
  massless_.clear();
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    const auto first = moves_mass.begin() + joints_[j].iv, last = first + joints_[j].nv;
    if (!joints_[j].closes_a_loop && std::find(first, last, 0) != last) massless_.push_back(description_.joints[j].name);
  }
}

/// Find joints that move no inertia at all: neither that of their subtree, nor that of other bodies or armature through the rows of loops.
void Mechanism::find_idle() {
  idle_.clear();
  if (massless_.empty()) return;
  const int coupled = tree_.loops.constraints + (tree_.loops.rotor_rows ? tree_.loops.motor_constraints : 0);
  std::vector<char> constrained(tree_.nv, 0);
  for (int i = 0; i < coupled; ++i)
    for (int k = 0; k < constraints_[i].columns; ++k) constrained[constraints_[i].column[k]] = 1;
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    if (std::find(massless_.begin(), massless_.end(), description_.joints[j].name) == massless_.end()) continue;
    const auto first = constrained.begin() + joints_[j].iv, last = first + joints_[j].nv;
    if (std::find(first, last, 0) != last) idle_.push_back(description_.joints[j].name);
  }
}

}  // namespace sarrus
