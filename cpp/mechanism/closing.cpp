// Conversion of the loop joints and other constraints of the description to the form that the kernels read.
#include <algorithm>
#include <limits>

#include "mechanism.hpp"

namespace sarrus {
namespace {

/// Return true if a loop joint has armature. If time functions move a frame of the joint, its armature is ignored, because the formulas of forces
/// along a joint assume frames that are fixed to the bodies.
bool has_armature_across(const JointDescription& j) {
  const bool driven = std::any_of(j.laws.begin(), j.laws.end(), [](const auto& law) { return law.has_value(); });
  return !driven && std::any_of(j.armature.begin(), j.armature.end(), [](double x) { return x != 0.0; });
}

}  // namespace

/// Set the coordinates and velocities that the constraint relates.
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
  const PlacedFrame &on_parent = placed_frame(parent), &on_child = placed_frame(child);
  c.parent = on_parent.link, c.child = on_child.link;
  c.body[0] = on_parent.body, c.body[1] = on_child.body;
  constraints_.between(tree_, c);
}

void Mechanism::add(Constraint c, int source) {
  constraints_.add(tree_.loops, std::move(c));
  source_.push_back(source);
}

Constraint Mechanism::closing_joint(const Description& d, int joint) {
  const JointDescription& j = d.joints[joint];
  Constraint c{};
  const LoopJoint kind(j.kind, j.constants, closing_row_count(j.kind, j.nv));
  c.kind = kind;
  c.turns = !kind.plain() || kind.component[0] < 3;
  for (const auto& law : j.laws) c.driven = c.driven || law.has_value();
  place_between(j.parent, j.child, c);
  return c;
}

/// Add the motion along a loop joint.
void Mechanism::add_motion(const Description& d, int joint, const Constraint& c) {
  const JointDescription& j = d.joints[joint];
  LoopMotion m{};
  m.joint = j.kind, m.nv = j.nv, m.nq = j.nq;
  m.iq = tree_.loop_nq, m.iv = tree_.loop_nv;
  tree_.loop_nq += m.nq, tree_.loop_nv += m.nv;
  m.constraint = joints_[joint].constraint;
  m.link[0] = c.parent, m.link[1] = c.child, m.body[0] = c.body[0], m.body[1] = c.body[1];
  loop_motions_.push_back(m);
  Constraint motion = c;
  motion.kind = std::get<LoopJoint>(c.kind).motion(m.nv);
  motion.turns = true, motion.rows = m.nv, motion.row = motion.entry = 0;
  motions_.push_back(std::move(motion));
}

/// Return the index of the loop joint that a constraint prescribes.
int Mechanism::prescribed_joint(const Description& d, const ConstraintDescription& o) const {
  std::size_t j = 0;
  while (j < d.joints.size() && d.joints[j].name != o.joint) ++j;
  if (j == d.joints.size() || !joints_[j].closes_a_loop)
    throw ModelError("constraint '" + o.name + "' prescribes joint '" + o.joint + "', which is not a loop joint");
  return static_cast<int>(j);
}

/// Return a constraint whose rows are the velocities of a loop joint. It moves the joint to coordinates that each call prescribes.
Constraint Mechanism::prescribed_motion(int joint) {
  Constraint c = motions_[joints_[joint].constraint];
  c.target = Target::coordinates, c.values = tree_.loops.pfaffian_values;
  tree_.loops.pfaffian_values += loop_motions_[joints_[joint].constraint].nq;
  return c;
}

Constraint Mechanism::other_constraint(const Description& d, const ConstraintDescription& o) {
  Constraint c{};
  c.kind = o.kind;
  visit_constraint(c.kind, [&](const auto& kind) {
    c.driven = kind.driven();
    if constexpr (between_bodies<decltype(kind)>) {
      c.turns = true;
      place_between(o.parent, o.child, c);
      if (o.target == Target::none) return;
      const LoopJoint* joint = std::get_if<LoopJoint>(&o.kind);
      c.target = o.target, c.in_world = o.in_world, c.values = tree_.loops.pfaffian_values;
      c.turns = !joint || joint->joint != JointKind::spherical;
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
  loops.actuators = static_cast<int>(actuators_.size());
  rotor_.resize(driven_.size()), motor_unit_.resize(driven_.size());
  const auto has_armature = [&](int source) { return source >= 0 && has_armature_across(d.joints[source]); };
  if (std::any_of(source_.begin() + constraints, source_.end(), has_armature)) {
    loops.rotor_rows = loops.motor_rows;
    chain_.assign(tree_.nv, -1);
    int before = -1;
    for (std::size_t b = 1; b < links_.size(); ++b)
      for (int k = links_[b].iv; k < links_[b].iv + links_[b].nv; ++k) chain_[k] = before, before = k;
  }
}

void Mechanism::add_constraints(const Description& d) {
  const auto describe = [&](const std::string& name) {
    described_constraints_.push_back(constraints_.size() - 1);
    constraint_names_.push_back(name);
  };
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    if (!joints_[j].closes_a_loop) continue;
    if (d.check_interrupt) d.check_interrupt();
    joints_[j].constraint = constraints_.size();
    add(closing_joint(d, static_cast<int>(j)), static_cast<int>(j));
    add_motion(d, static_cast<int>(j), constraints_.last());
    describe(d.joints[j].name);
  }
  tree_.loop_motions = static_cast<int>(loop_motions_.size());
  for (std::size_t k = 0; k < d.constraints.size(); ++k) {
    const ConstraintDescription& o = d.constraints[k];
    if (o.target == Target::coordinates)
      add(prescribed_motion(prescribed_joint(d, o)), prescribed_joint(d, o));
    else
      add(other_constraint(d, o), -1 - static_cast<int>(k));
    describe(o.name);
  }
}

/// Add the motors. For a motor in a loop joint, the velocity that it drives becomes a row, and its effort is the multiplier of that row.
void Mechanism::add_motors(const Description& d) {
  for (std::size_t j = 0; j < d.joints.size(); ++j) {
    const PlacedJoint& placed = joints_[j];
    const int driven = d.joints[j].actuated ? d.joints[j].nv : 0;
    for (int k = 0; k < driven; ++k) actuators_.push_back(placed.closes_a_loop ? tree_.nv + tree_.loops.rows + k : placed.iv + k);
    if (!placed.closes_a_loop) continue;
    if (driven == 0 && !has_armature_across(d.joints[j])) continue;
    driven_.insert(driven_.end(), d.joints[j].nv, driven ? 1.0 : 0.0);
    add(motions_[placed.constraint], static_cast<int>(j));
  }
}

/// Choose the elimination order. Substructures are computed only if they could be faster, and used only if they need at most half the operations.
void Mechanism::order_elimination(const Description& d) {
  Loops& loops = tree_.loops;
  const double any = std::numeric_limits<double>::infinity();
  if (loops.constraints == 0) {  // without loops, an elimination order of M is needed for contacts, which add their own rows
    dynamics_ = std::make_shared<EliminationPlan>(tree_, constraints_.data(), 0, 0, true, any, d.check_interrupt);
    loops.dynamics = dynamics_->view();
    return;
  }
  const bool decided = d.substructures != d.automatic;
  may_be_cut_ = decided ? d.substructures > 0 : tree_.nv + loops.rows > 60;
  if (may_be_cut_) pieces_ = substructured(tree_, decided ? d.substructures : 0, d.check_interrupt);
  if (pieces_) operations_of_substructures_ = pieces_->operations();
  const double most = !pieces_ ? any : decided ? 0.0 : 2.0 * pieces_->operations();
  const int inertial = loops.constraints + (loops.rotor_rows ? loops.motor_constraints : 0);
  dynamics_ = std::make_shared<EliminationPlan>(tree_, constraints_.data(), inertial, loops.rows + loops.rotor_rows, true, most,
                                                d.check_interrupt);
  if (pieces_ && !dynamics_->complete()) {
    loops.substructures = &pieces_->view();
    return;
  }
  pieces_.reset();
  statics_ = std::make_shared<EliminationPlan>(tree_, constraints_.data(), constraints_.size(), loops.rows + loops.motor_rows,
                                               false, any, d.check_interrupt);
  loops.dynamics = dynamics_->view(), loops.statics = statics_->view();
}

}  // namespace sarrus
