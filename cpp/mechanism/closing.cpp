// From the described joints that close loops, and the other constraints, to what the kernels see.
#include <algorithm>
#include <cmath>

#include "../joints/closing.hpp"
#include "mechanism.hpp"

namespace sarrus {
namespace {

std::vector<int> way_to_ground(const Tree& tree, int body) {
  std::vector<int> columns;
  for (int b = body; b != 0; b = tree.body[b].parent)
    for (int k = tree.body[b].nv - 1; k >= 0; --k) columns.push_back(tree.body[b].iv + k);
  return columns;
}

}  // namespace

const Law* Mechanism::keep(const LawDescription& law) {
  const int pieces = static_cast<int>(law.start.size());
  numbers_.push_back(law.start);
  const double* start = numbers_.back().data();
  numbers_.push_back(law.coefficient);
  const double* coefficient = numbers_.back().data();
  numbers_.push_back(law.harmonic);
  laws_.push_back({pieces, static_cast<int>(law.coefficient.size()) / pieces, static_cast<int>(law.harmonic.size()) / 3, start,
                   coefficient, numbers_.back().data()});
  return &laws_.back();
}

/// The bodies, and the velocities that move one of them and not the other: what moves both cancels.
void Mechanism::between(const std::string& parent, const std::string& child, Constraint& c, std::vector<int>& own,
                        std::vector<int>& rest) const {
  const PlacedFrame &p = frames_.at(parent), &k = frames_.at(child);
  c.parent = p.body, c.child = k.body;
  own = way_to_ground(tree_, c.child), rest = way_to_ground(tree_, c.parent);
  while (!own.empty() && !rest.empty() && own.back() == rest.back()) own.pop_back(), rest.pop_back();
}

void Mechanism::add(Constraint c, const std::vector<int>& own, const std::vector<int>& rest) {
  columns_.push_back(own);
  columns_.back().insert(columns_.back().end(), rest.begin(), rest.end());
  c.column = columns_.back().data();
  c.columns = static_cast<int>(columns_.back().size());
  c.own = static_cast<int>(own.size());
  c.row = tree_.loops.rows, c.entry = tree_.loops.entries;
  tree_.loops.rows += c.rows, tree_.loops.entries += c.rows * c.columns;
  constraints_.push_back(c);
}

Constraint Mechanism::closing_joint(const Description& d, int joint) {
  const JointDescription& j = d.joints[joint];
  Constraint c{};
  c.kind = ConstraintKind::joint, c.joint = j.kind, c.constants = j.constants, c.rows = 6 - j.nv;
  const Mat3<double> axes = joint_axes(j, 1.0);
  c.R_joint = axes;
  const Transform<double> turn = {axes, zero3<double>()};
  c.X_parent = frames_.at(j.parent).X * j.at_parent * turn;
  c.X_child = frames_.at(j.child).X * j.at_child * turn;
  if (j.kind == JointKind::universal) {
    const Vec3<double> first = transpose_times(axes, j.axis);
    c.constants.first_axis[0] = first(0), c.constants.first_axis[1] = first(2);
    if (std::abs(first(0)) < 1e-9)
      throw ModelError("joint '" + j.name + "' closes a loop, and its two axes are parallel: use a Revolute");
  }
  const int free = free_components(j.kind);
  std::fill(c.component, c.component + 6, -1);
  for (int k = 0, r = 0; free >= 0 && k < 6; ++k)
    if (!(free >> k & 1)) c.component[r++] = k;
  c.turns = free < 0 || (free & 7) != 7;
  for (std::size_t k = 0; k < j.laws.size(); ++k)
    if (j.laws[k]) c.laws[k] = keep(*j.laws[k]), c.driven = true;
  return c;
}

Constraint Mechanism::other_constraint(const Description& d, const ConstraintDescription& o) {
  Constraint c{};
  c.kind = o.kind, c.length = o.length, c.other_radius = o.other_radius, c.rolling = o.rolling, c.offset = o.offset;
  c.rows = o.kind == ConstraintKind::rolling ? 3 : o.kind == ConstraintKind::pfaffian ? o.rows : 1;
  std::fill(c.component, c.component + 6, -1);
  c.turns = true;
  c.R_joint = Mat3<double>::Identity();
  c.X_parent = c.X_child = Transform<double>::identity();
  if (o.law) c.law = keep(*o.law);
  if (o.kind == ConstraintKind::distance || o.kind == ConstraintKind::rolling) {
    const auto axes = [](const Vec3<double>& z) { return axis_frame(z); };
    const bool rolls = o.kind == ConstraintKind::rolling;
    const Mat3<double> identity = Mat3<double>::Identity();
    c.X_parent = frames_.at(o.parent).X *
                 Transform<double>{rolls && o.rolling != Rolling::sphere_on_sphere ? axes(o.normal) : identity, o.at_parent};
    if (rolls && o.rolling == Rolling::disc_on_plane) c.R_joint = axes(o.axle);
    c.X_child = frames_.at(o.child).X * Transform<double>{c.R_joint, o.at_child};
  }
  const auto placed = [&](const std::string& name) -> const PlacedJoint& {
    for (std::size_t k = 0; k < d.joints.size(); ++k)
      if (d.joints[k].name == name) {
        if (joints_[k].closes_a_loop)
          throw ModelError("constraint '" + o.name + "' refers to joint '" + name +
                           "', which closes a loop and so has no coordinates: add it with tree=True");
        return joints_[k];
      }
    throw ModelError("constraint '" + o.name + "' refers to joint '" + name + "', which does not exist");
  };
  std::vector<int> columns;
  if (o.kind == ConstraintKind::coupler) {
    terms_.emplace_back();
    for (const auto& t : o.terms) {
      const PlacedJoint& j = placed(t.joint);
      numbers_.push_back(t.coefficient);
      terms_.back().push_back({j.iq + t.index, j.iv + t.index, static_cast<int>(t.coefficient.size()), numbers_.back().data()});
      columns.push_back(j.iv + t.index);
    }
    c.term = terms_.back().data(), c.terms = static_cast<int>(terms_.back().size());
  } else if (o.kind == ConstraintKind::pfaffian) {
    for (const std::string& name : o.joints) {
      const PlacedJoint& j = placed(name);
      for (int k = 0; k < j.nv; ++k) columns.push_back(j.iv + k);
    }
    if (o.matrix.empty()) {
      c.given = tree_.loops.given;
      tree_.loops.given += o.rows * (static_cast<int>(columns.size()) + 2);
    } else {
      numbers_.push_back(o.matrix);
      c.pfaffian = numbers_.back().data();
      if (o.matrix.size() != columns.size() * o.rows)
        throw ModelError("constraint '" + o.name + "' has rows of " + std::to_string(o.matrix.size() / o.rows) +
                         " entries; its joints have " + std::to_string(columns.size()) + " velocities");
    }
    numbers_.push_back(o.value);
    c.value = numbers_.back().data();
  }
  std::vector<int> rest;
  if (o.kind == ConstraintKind::joint) {  // a frame that a call leads somewhere: a closing joint from the ground to there
    c.joint = o.turned ? JointKind::fixed : JointKind::spherical, c.rows = o.turned ? 6 : 3, c.turns = o.turned;
    for (int r = 0; r < c.rows; ++r) c.component[r] = o.turned ? r : 3 + r;
    c.X_child = frames_.at(o.child).X;
    c.aimed = true, c.given = tree_.loops.given;
    tree_.loops.given += o.turned ? 12 : 3;
    between("ground", o.child, c, columns, rest);
  }
  if (o.kind == ConstraintKind::distance || o.kind == ConstraintKind::rolling) between(o.parent, o.child, c, columns, rest);
  add(c, columns, rest);
  return c;
}

void Mechanism::close(const Description& d) {
  Loops& loops = tree_.loops;
  const auto describe = [&](const std::string& name) {
    described_constraints_.push_back(static_cast<int>(constraints_.size()) - 1);
    constraint_names_.push_back(name);
  };
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    if (!joints_[j].closes_a_loop) continue;
    std::vector<int> own, rest;
    Constraint c = closing_joint(d, static_cast<int>(j));
    between(d.joints[j].parent, d.joints[j].child, c, own, rest);
    joints_[j].constraint = static_cast<int>(constraints_.size());
    add(c, own, rest);
    describe(d.joints[j].name);
  }
  for (const ConstraintDescription& o : d.constraints) {
    other_constraint(d, o);
    describe(o.name);
  }
  const int hard = loops.rows, hard_constraints = static_cast<int>(constraints_.size()), hard_entries = loops.entries;

  // a motor in a joint that closes a loop: the velocity that it drives is a row, and its effort that row's multiplier
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    if (!d.joints[j].actuated) continue;
    if (!joints_[j].closes_a_loop) {
      for (int k = 0; k < joints_[j].nv; ++k) actuators_.push_back(joints_[j].iv + k);
      continue;
    }
    Constraint c = constraints_[joints_[j].constraint];
    const int free = free_components(c.joint);
    if (free < 0 || c.joint == JointKind::free)
      throw ModelError("joint '" + d.joints[j].name +
                       "' is actuated and closes a loop, which this type cannot: add it with tree=True");
    c.rows = 0, c.turns = true;
    for (const int k : {0, 1, 3, 4, 2, 5})  // a planar joint counts its displacements first
      if (free >> k & 1) c.component[c.rows++] = k;
    const std::vector<int> own(c.column, c.column + c.own), rest(c.column + c.own, c.column + c.columns);
    for (int k = 0; k < c.rows; ++k) actuators_.push_back(tree_.nv + loops.rows + k);
    add(c, own, rest);
  }
  loops.soft_rows = loops.rows - hard, loops.soft_entries = loops.entries - hard_entries;
  loops.soft_constraints = static_cast<int>(constraints_.size()) - hard_constraints;
  loops.rows = hard, loops.constraints = hard_constraints, loops.entries = hard_entries;
  loops.constraint = constraints_.data();

  mass_first_.push_back(0);
  for (int i = 0; i < tree_.nv; ++i) mass_first_.push_back(mass_first_.back() + column_depth_[i] + 1);
  loops.mass_first = mass_first_.data();
  loops.actuators = static_cast<int>(actuators_.size()), loops.actuator = actuators_.data();
  if (hard_constraints == 0) return;
  dynamics_ = EliminationPlan(tree_, constraints_.data(), hard_constraints, hard, true);
  statics_ = EliminationPlan(tree_, constraints_.data(), static_cast<int>(constraints_.size()), hard + loops.soft_rows, false);
  loops.dynamics = dynamics_.view(), loops.statics = statics_.view();
}

}  // namespace sarrus
