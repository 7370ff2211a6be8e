// From the described joints that close loops, and the other constraints, to what the kernels see.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mechanism.hpp"

namespace sarrus {
/// The coordinates and velocities that it names.
void Mechanism::along(const Description& d, const ConstraintDescription& o, Constraint& c) {
  std::vector<int> columns, coordinates;
  for (const auto& [name, index] : o.coordinates) {
    std::size_t k = 0;
    while (k < d.joints.size() && d.joints[k].name != name) ++k;
    if (k == d.joints.size())
      throw ModelError("constraint '" + o.name + "' refers to joint '" + name + "', which does not exist");
    const PlacedJoint& j = joints_[k];
    if (j.closes_a_loop)
      throw ModelError("constraint '" + o.name + "' refers to joint '" + name +
                       "', which closes a loop and so has no coordinates: add it with tree=True");
    for (int i = index < 0 ? 0 : index; i < (index < 0 ? j.nv : index + 1); ++i)
      columns.push_back(j.iv + i), coordinates.push_back(j.iq + i);
  }
  c.columns = static_cast<int>(columns.size());
  c.column = constraints_.keep(std::move(columns)), c.coordinate = constraints_.keep(std::move(coordinates));
}

void Mechanism::place_between(const std::string& parent, const std::string& child, Constraint& c) {
  const PlacedFrame &on_parent = frames_.at(parent), &on_child = frames_.at(child);
  c.parent = on_parent.link, c.child = on_child.link;
  c.body[0] = on_parent.body, c.body[1] = on_child.body;
  constraints_.between(tree_, c);
}

Constraint Mechanism::closing_joint(const Description& d, int joint) {
  const JointDescription& j = d.joints[joint];
  Constraint c{};
  JointConstants constants = j.constants;
  c.R_described = joint_axes(j, 1.0, constants);
  const Transform<double> turn = {c.R_described, zero3<double>()};
  c.X_parent = frames_.at(j.parent).X * j.at_parent * turn;
  c.X_child = frames_.at(j.child).X * j.at_child * turn;
  if (const char* why = visit_every(j.kind, 0, [&](auto joint) { return joint.cannot_close(constants); }))
    throw ModelError("joint '" + j.name + "' closes a loop, and " + why);
  const LoopJoint kind(j.kind, constants, 6 - j.nv);
  c.kind = kind;
  c.turns = !kind.plain() || kind.component[0] < 3;
  c.carried = j.laws;
  for (const auto& law : j.laws) c.driven = c.driven || law.has_value();
  place_between(j.parent, j.child, c);
  return c;
}

/// What moves along a joint that closes a loop. Frames that laws carry along move in time, which its forces are not told: it has none.
void Mechanism::add_motion(const Description& d, int joint, const Constraint& c) {
  const JointDescription& j = d.joints[joint];
  LoopMotion m{};
  m.joint = j.kind, m.constants = std::get<LoopJoint>(c.kind).constants, m.nv = j.nv, m.nq = j.nq;
  m.iq = tree_.loop_nq, m.iv = tree_.loop_nv;
  tree_.loop_nq += m.nq, tree_.loop_nv += m.nv;
  m.constraint = joints_[joint].constraint;
  m.link[0] = c.parent, m.link[1] = c.child, m.X[0] = c.X_parent, m.X[1] = c.X_child;
  m.body[0] = frames_.at(j.parent).body, m.body[1] = frames_.at(j.child).body;
  for (int k = 0; k < m.nv; ++k) {
    m.terms[k] = passive_terms(j, k, 0);
    m.has_forces |= !c.driven && m.terms[k].has_forces();
    m.has_armature |= !c.driven && m.terms[k].armature != 0.0;
  }
  tree_.ties_links |= m.has_forces || m.has_armature;
  loop_motions_.push_back(m);
  Constraint motion = c;
  motion.kind = std::get<LoopJoint>(c.kind).motion(m.nv);
  motion.turns = true, motion.rows = m.nv, motion.row = motion.entry = 0;
  motions_.push_back(std::move(motion));
}

/// The velocities of a joint that closes a loop, as rows that lead it to coordinates which come with the call.
Constraint Mechanism::led_joint(const Description& d, const ConstraintDescription& o) {
  std::size_t j = 0;
  while (j < d.joints.size() && d.joints[j].name != o.joint) ++j;
  if (j == d.joints.size() || !joints_[j].closes_a_loop)
    throw ModelError("constraint '" + o.name + "' leads joint '" + o.joint + "', which closes no loop");
  Constraint c = motions_[joints_[j].constraint];
  c.target = Target::coordinates, c.values = tree_.loops.pfaffian_values;
  tree_.loops.pfaffian_values += loop_motions_[joints_[j].constraint].nq;
  return c;
}

Constraint Mechanism::other_constraint(const Description& d, const ConstraintDescription& o) {
  if (o.target == Target::coordinates) return led_joint(d, o);
  Constraint c{};
  c.kind = o.kind;
  visit_constraint(c.kind, [&](const auto& kind) {
    c.driven = kind.driven();
    if constexpr (between_bodies<decltype(kind)>) {
      c.turns = true;
      c.R_described = o.at_child.R;
      c.X_parent = frames_.at(o.parent).X * o.at_parent;
      c.X_child = frames_.at(o.child).X * o.at_child;
      place_between(o.parent, o.child, c);
      if (o.target == Target::none) return;
      c.target = o.target, c.turns = kind.rows() == 6, c.values = tree_.loops.pfaffian_values;
      tree_.loops.pfaffian_values += c.turns ? 12 : 3;
    } else {
      along(d, o, c);
      if (const std::string fault = kind.fault(c.columns); !fault.empty())
        throw ModelError("constraint '" + o.name + "' " + fault);
      c.values = tree_.loops.pfaffian_values;
      tree_.loops.pfaffian_values += kind.values_with_call(c.columns);
    }
  });
  return c;
}

void Mechanism::close(const Description& d) {
  Loops& loops = tree_.loops;
  add_constraints(d);
  const int rows = loops.rows, constraints = constraints_.size(), entries = loops.entries;
  add_motors(d);
  loops.motor_rows = loops.rows - rows, loops.motor_entries = loops.entries - entries;
  loops.motor_constraints = constraints_.size() - constraints;
  loops.rows = rows, loops.constraints = constraints, loops.entries = entries;
  loops.constraint = constraints_.data(), loops.motion = motions_.data();
  loops.driven = driven_.data(), loops.rotor = rotor_.data(), loops.motor_unit = motor_unit_.data();
  loops.actuators = static_cast<int>(actuators_.size()), loops.actuator = actuators_.data();
  if (std::any_of(rotor_.begin(), rotor_.end(), [](double r) { return r != 0.0; })) {
    loops.rotor_rows = loops.motor_rows;
    chain_.assign(tree_.nv, -1);
    int before = -1;
    for (std::size_t b = 1; b < links_.size(); ++b)
      for (int k = links_[b].iv; k < links_[b].iv + links_[b].nv; ++k) chain_[k] = before, before = k;
    tree_.mass_parent = chain_.data();
  }
  mass_first_.push_back(0);
  for (int i = 0; i < tree_.nv; ++i) mass_first_.push_back(mass_first_.back() + column_depth_[i] + 1);
  loops.mass_first = mass_first_.data();
  find_idle(d);
  if (constraints > 0) order_elimination(d);
}

void Mechanism::add_constraints(const Description& d) {
  const auto describe = [&](const std::string& name) {
    described_constraints_.push_back(constraints_.size() - 1);
    constraint_names_.push_back(name);
  };
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    if (!joints_[j].closes_a_loop) continue;
    if (d.look) d.look();
    joints_[j].constraint = constraints_.size();
    constraints_.add(tree_.loops, closing_joint(d, static_cast<int>(j)));
    add_motion(d, static_cast<int>(j), constraints_.last());
    describe(d.joints[j].name);
  }
  tree_.loop_motions = static_cast<int>(loop_motions_.size()), tree_.loop_motion = loop_motions_.data();
  for (const ConstraintDescription& o : d.constraints) {
    constraints_.add(tree_.loops, other_constraint(d, o));
    describe(o.name);
  }
}

/// A motor in a joint that closes a loop: the velocity that it drives is a row, and its effort that row's multiplier.
void Mechanism::add_motors(const Description& d) {
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    const PlacedJoint& placed = joints_[j];
    const int driven = d.joints[j].actuated ? d.joints[j].nv : 0;
    for (int k = 0; k < driven; ++k) actuators_.push_back(placed.closes_a_loop ? tree_.nv + tree_.loops.rows + k : placed.iv + k);
    if (!placed.closes_a_loop) continue;
    const LoopMotion& m = loop_motions_[placed.constraint];
    if (driven == 0 && !m.has_armature) continue;
    for (int k = 0; k < m.nv; ++k) {
      driven_.push_back(driven ? 1.0 : 0.0);
      motor_unit_.push_back(turns(d.joints[j], k) ? 1.0 : d.length);
      rotor_.push_back(m.has_armature ? std::sqrt(m.terms[k].armature) : 0.0);
    }
    constraints_.add(tree_.loops, motions_[placed.constraint]);
  }
}

/// Joints along which nothing that they carry has inertia, nor what rows of constraints, or armature across a loop, tie to them.
void Mechanism::find_idle(const Description& d) {
  if (massless_.empty()) return;
  const int felt = tree_.loops.constraints + (tree_.loops.rotor_rows ? tree_.loops.motor_constraints : 0);
  std::vector<char> held(tree_.nv, 0);
  for (int i = 0; i < felt; ++i) {
    const Constraint& c = constraints_.data()[i];
    for (int k = 0; k < c.columns; ++k) held[c.column[k]] = 1;
  }
  for (std::size_t j = 0; j < joints_.size(); ++j) {
    if (std::find(massless_.begin(), massless_.end(), d.joints[j].name) == massless_.end()) continue;
    const auto first = held.begin() + joints_[j].iv, last = first + joints_[j].nv;
    if (std::find(first, last, 0) != last) idle_.push_back(d.joints[j].name);
  }
}

/// Substructures are looked for where they may pay, and taken where they take half the time.
void Mechanism::order_elimination(const Description& d) {
  Loops& loops = tree_.loops;
  const double any = std::numeric_limits<double>::infinity();
  const bool decided = d.substructures != d.automatic;
  if (decided ? d.substructures > 0 : tree_.nv + loops.rows > 60)
    pieces_ = substructured(tree_, decided ? d.substructures : 0, d.look);
  if (pieces_) operations_of_substructures_ = pieces_->operations();
  const double most = !pieces_ ? any : decided ? 0.0 : 2.0 * pieces_->operations();
  const int inertial = loops.constraints + (loops.rotor_rows ? loops.motor_constraints : 0);
  dynamics_ = EliminationPlan(tree_, constraints_.data(), inertial, loops.rows + loops.rotor_rows, true, most, d.look);
  if (pieces_ && !dynamics_.complete()) {
    loops.substructures = &pieces_->view();
    return;
  }
  pieces_.reset();
  statics_ = EliminationPlan(tree_, constraints_.data(), constraints_.size(), loops.rows + loops.motor_rows, false, any, d.look);
  loops.dynamics = dynamics_.view(), loops.statics = statics_.view();
}

}  // namespace sarrus
