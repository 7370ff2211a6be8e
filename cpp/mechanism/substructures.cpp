#include "substructures.hpp"

#include <Eigen/Cholesky>
#include <algorithm>

#include "../joints/closing.hpp"

namespace sarrus {
namespace {

/// Return true if a body has inertia in all of these components of [angular; linear] (bits) of its velocity, at the origin of its frame.
bool has_inertia(const Link& b, int components) {
  const Sym3<double>& I = b.inertia.I;
  const double m = b.inertia.m, size = I.xx + I.yy + I.zz;
  Eigen::Matrix<double, 6, 6> inertia = Eigen::Matrix<double, 6, 6>::Zero();
  const Vec3<double>& h = b.inertia.h;
  Eigen::Matrix3d cross_h;
  cross_h << 0.0, -h(2), h(1), h(2), 0.0, -h(0), -h(1), h(0), 0.0;
  inertia.topLeftCorner<3, 3>() = I.matrix();
  inertia.topRightCorner<3, 3>() = cross_h, inertia.bottomLeftCorner<3, 3>() = cross_h.transpose();
  inertia.bottomRightCorner<3, 3>() = m * Eigen::Matrix3d::Identity();
  for (int k = 0; k < 6; ++k) {
    if (components >> k & 1) continue;
    inertia.row(k).setZero(), inertia.col(k).setZero();
    inertia(k, k) = k < 3 ? size : m;
  }
  if (!(m > 0.0) || !(size > 0.0)) return false;
  const Eigen::Matrix<double, 6, 1> scale = inertia.diagonal().cwiseMax(1e-300).cwiseSqrt().cwiseInverse();
  return (scale.asDiagonal() * inertia * scale.asDiagonal()).eval().ldlt().vectorD().minCoeff() > 1e-9;
}
constexpr int everywhere = 63;

bool has_armature(const Tree& tree, int link) {
  const PassiveTerms* p = tree.passive + tree.link[link].iv;
  return std::any_of(p, p + tree.link[link].nv, [](const PassiveTerms& t) { return t.armature != 0.0; });
}

/// Return the compliance of an armature row, 1 / armature. If the joint has armature in other directions only, the compliance is nearly
/// infinite.
double compliance_of(double armature) { return 1.0 / std::max(armature, 1e-30); }

}  // namespace

SubstructuredMechanism::SubstructuredMechanism(const Tree& tree, int links, const std::function<void()>& check_interrupt) {
  const std::vector<char> is_cut = cut(tree, links);
  span(tree, is_cut);
  point();
  const std::vector<Constraint> motion = join_cuts(tree, is_cut, check_interrupt);
  const Loops& original = tree.loops;
  Loops& loops = tree_.loops;
  view_.first_motion = constraints_.size();
  view_.compliant_row = loops.rows;
  add_motions(tree, motion, true);
  // add rows for the armature of loop joints
  for (int i = 0, row = 0; original.rotor_rows > 0 && i < original.motor_constraints;
       row += original.constraint[original.constraints + i++].rows) {
    const int rows = original.constraint[original.constraints + i].rows;
    const double* rotor = original.rotor + row;
    if (std::none_of(rotor, rotor + rows, [](double r) { return r != 0.0; })) continue;
    for (int r = 0; r < rows; ++r) compliant_.push_back(-1 - (row + r));
    repeat(tree, original.constraints + i);
  }
  const int constraints = constraints_.size(), rows = loops.rows, entries = loops.entries;
  for (int i = original.constraints; i < original.constraints + original.motor_constraints; ++i) repeat(tree, i);
  add_motions(tree, motion, false);
  loops.motor_constraints = constraints_.size() - constraints;
  loops.motor_rows = loops.rows - rows, loops.motor_entries = loops.entries - entries;
  loops.constraints = constraints, loops.rows = rows, loops.entries = entries;
  loops.pfaffian_values = original.pfaffian_values;
  mass_first_.push_back(0);
  for (int i = 0; i < tree_.nv; ++i) mass_first_.push_back(mass_first_.back() + column_depth_[i] + 1);
  view_.cuts = static_cast<int>(carried_.size());
  for (int i = 1; i < tree.links; ++i) view_.substructures += links_[i].parent == 0;
  compliance_.resize(compliant_.size());
  point();
  bake(tree);

  dynamics_ = std::make_shared<FrontalPlan>(tree_, constraints_.data(), constraints, check_interrupt);
  statics_ = std::make_shared<FrontalPlan>(tree_, constraints_.data(), constraints_.size(), check_interrupt);
  loops.dynamics = dynamics_->view(), loops.statics = statics_->view();
  operations_ = dynamics_->operations() + 10.0 * (mass_first_.back() + loops.entries + loops.motor_entries);
  view_.tree = tree_;
}

SubstructuredMechanism::SubstructuredMechanism(const SubstructuredMechanism& other, const Tree& tree)
    : SubstructuredMechanism(other) {
  point();
  take_numbers(tree);
}

void SubstructuredMechanism::add(Constraint c, int source) {
  constraints_.add(tree_.loops, std::move(c));
  source_.push_back(source);
}

/// Express a constraint of the tree in the velocities of the substructures.
void SubstructuredMechanism::repeat(const Tree& tree, int constraint) {
  Constraint c = tree.loops.constraint[constraint];
  if (c.child >= 0) {
    constraints_.between(tree_, c);
  } else {
    std::vector<int> columns;
    for (int k = 0; k < c.columns; ++k) columns.push_back(velocity_[c.column[k]]);
    c.column = constraints_.keep(std::move(columns));
  }
  add(std::move(c), constraint);
}

/// Add the tree's constraints, then the rows of the joints at the cuts; return the motions of these joints.
std::vector<Constraint> SubstructuredMechanism::join_cuts(const Tree& tree, const std::vector<char>& is_cut,
                                                          const std::function<void()>& check_interrupt) {
  for (int i = 0; i < tree.loops.constraints; ++i) {
    if (check_interrupt) check_interrupt();
    repeat(tree, i);
  }
  std::vector<Constraint> motion;
  for (int i = 1; i < tree.links; ++i) {
    if (!is_cut[i]) continue;
    const Link& b = tree.link[i];
    const bool reversed = b.joint == JointKind::reversed;
    Constraint c{};
    const LoopJoint joint(b.described, b.constants, 6 - b.nv);
    c.R_described = Mat3<double>::Identity();
    c.parent = reversed ? i : b.parent, c.child = reversed ? b.parent : i;
    constraints_.between(tree_, c);
    c.kind = joint, c.turns = joint.component[0] < 3;
    motion.push_back(c);
    motion.back().kind = joint.motion(b.nv), motion.back().turns = true;
    carried_.push_back(i);
    add(std::move(c), -1 - i);
  }
  return motion;
}

void SubstructuredMechanism::add_motions(const Tree& tree, const std::vector<Constraint>& motion, bool with_armature) {
  for (std::size_t k = 0; k < motion.size(); ++k) {
    const Link& b = tree.link[carried_[k]];
    if (has_armature(tree, carried_[k]) != with_armature) continue;
    for (int l = 0; l < b.nv; ++l) {
      velocity_[b.iv + l] = -1 - (tree_.loops.rows + l);
      if (with_armature) compliant_.push_back(b.iv + l);
    }
    add(motion[k], -1 - carried_[k]);
  }
}

/// Set the pointers of the tree to the arrays of this object.
void SubstructuredMechanism::point() {
  tree_.link = links_.data(), tree_.passive = passive_terms_.data();
  tree_.unit = unit_.data(), tree_.per_unit_square = per_unit_square_.data();
  tree_.column_link = column_link_.data(), tree_.column_parent = column_parent_.data(), tree_.column_depth = column_depth_.data();
  tree_.loops.constraint = constraints_.data(), tree_.loops.mass_first = mass_first_.data();
  view_.from = from_.data(), view_.velocity = velocity_.data();
  view_.compliance = compliance_.data(), view_.lacking = lacking_.data();
}

/// Convert the parameters of the tree to those of the substructures.
void SubstructuredMechanism::bake(const Tree& tree) {
  tree_.angle = tree.angle, tree_.mass_parent = tree.mass_parent;
  tree_.body = tree.body, tree_.spring = tree.spring, tree_.loop_motion = tree.loop_motion;
  tree_.length = tree.length, tree_.mass = tree.mass, tree_.light = tree.light, tree_.gravity = tree.gravity;
  tree_.has_joint_forces = tree.has_joint_forces, tree_.has_nonlinear_forces = tree.has_nonlinear_forces;
  tree_.ties_links = tree.ties_links;
  tree_.lacks_inertia = tree.lacks_inertia ? lacks_inertia_.data() : nullptr;
  for (int i = 1; i < tree.links; ++i) {
    Link& b = links_[i];
    const Link& same = tree.link[i];
    b.X_tree = same.X_tree, b.R_joint = same.R_joint, b.inertia = same.inertia, b.euler = same.euler,
    b.constants = same.constants;
    const bool floats = from_[b.iv] < 0, lacks = floats && !has_inertia(b, everywhere);
    for (int k = 0; k < b.nv; ++k) {
      const int velocity = b.iv + k, original = from_[velocity];
      lacking_[velocity] = lacks && k < 3 ? b.inertia.I.xx + b.inertia.I.yy + b.inertia.I.zz : 0.0;
      unit_[velocity] = !floats ? tree.unit[original] : k < 3 ? 1.0 : tree.length;
      per_unit_square_[velocity] = 1.0 / (unit_[velocity] * unit_[velocity]);
      lacks_inertia_[velocity] = !floats && tree.lacks_inertia ? tree.lacks_inertia[original] : char(0);
      passive_terms_[velocity] = floats ? PassiveTerms{} : tree.passive[original];
    }
  }
  for (int i = 0; i < constraints_.size(); ++i) {
    Constraint& c = constraints_[i];
    if (source_[i] >= 0) {
      const Constraint& same = tree.loops.constraint[source_[i]];
      c.kind = same.kind, c.carried = same.carried;
      c.R_described = same.R_described, c.X_parent = same.X_parent, c.X_child = same.X_child;
      continue;
    }
    const Link& b = tree.link[-1 - source_[i]];
    std::get<LoopJoint>(c.kind).constants = b.constants;
    c.X_parent = c.X_child = Transform<double>::identity();
    (b.joint == JointKind::reversed ? c.X_child : c.X_parent) = b.X_tree;
  }
  for (std::size_t r = 0; r < compliant_.size(); ++r) {
    const int of = compliant_[r];
    compliance_[r] = compliance_of(of >= 0 ? tree.passive[of].armature : square(tree.loops.rotor[-1 - of]));
  }
}

bool has_inertia_where_free(const Link& b) {
  const int free = free_components(b.described);
  return has_inertia(b, free < 0 ? everywhere : free);
}

std::vector<char> may_float(const Tree& tree) {
  std::vector<char> tied(tree.nv, 0), can(tree.links, 0);
  for (int i = 0; i < tree.loops.constraints + tree.loops.motor_constraints; ++i) {
    const Constraint& c = tree.loops.constraint[i];
    for (int k = 0; c.child < 0 && k < c.columns; ++k) tied[c.column[k]] = 1;
  }
  bool along_joints = true;
  for (int i = 1; i < tree.links; ++i) along_joints = along_joints && has_inertia_where_free(tree.link[i]);
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    const bool free = std::none_of(tied.begin() + b.iv, tied.begin() + b.iv + b.nv, [](char t) { return t; });
    can[i] = b.parent != 0 && free && b.inertia.m > tree.light && b.described != JointKind::free &&
             free_components(b.described) >= 0 && (along_joints || has_inertia(b, everywhere));
  }
  return can;
}

/// Return the links whose joint is cut. Links are added to a substructure, from the ground outwards, until it has the largest allowed number of
/// links.
std::vector<char> SubstructuredMechanism::cut(const Tree& tree, int links) const {
  const std::vector<char> can = may_float(tree);
  std::vector<char> is_cut(tree.links, 0);
  std::vector<int> root(tree.links, 0), size(tree.links, 0);
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    is_cut[i] = can[i] && size[root[b.parent]] >= links;
    root[i] = is_cut[i] || b.parent == 0 ? i : root[b.parent];
    ++size[root[i]];
  }
  return is_cut;
}

void SubstructuredMechanism::span(const Tree& tree, const std::vector<char>& is_cut) {
  links_.assign(tree.link, tree.link + tree.links);
  velocity_.assign(tree.nv, 0);
  tree_ = tree;
  tree_.loops = Loops{};
  tree_.has_armature = false;
  for (int i = 1; i < tree.links; ++i) {
    Link& b = links_[i];
    const int iv = static_cast<int>(from_.size());
    if (is_cut[i]) {
      b.parent = 0, b.joint = b.described = JointKind::free, b.nv = 6;
      from_.insert(from_.end(), 6, -1);
    } else {
      for (int k = 0; k < b.nv; ++k) {
        velocity_[b.iv + k] = iv + k;
        from_.push_back(b.iv + k);
      }
    }
    b.iv = iv, b.end = i + 1;
    b.root = b.parent == 0 ? i : links_[b.parent].root;
    const Link& p = links_[b.parent];
    for (int k = 0; k < b.nv; ++k) {
      column_link_.push_back(i);
      column_parent_.push_back(k > 0 ? iv + k - 1 : b.parent == 0 ? -1 : p.iv + p.nv - 1);
      column_depth_.push_back(column_parent_.back() < 0 ? 0 : column_depth_[column_parent_.back()] + 1);
    }
  }
  tree_.nv = static_cast<int>(from_.size());
  passive_terms_.resize(tree_.nv), unit_.resize(tree_.nv), per_unit_square_.resize(tree_.nv);
  lacking_.resize(tree_.nv), lacks_inertia_.resize(tree_.nv);
}

std::unique_ptr<SubstructuredMechanism> substructured(const Tree& tree, int links, const std::function<void()>& check_interrupt) {
  std::unique_ptr<SubstructuredMechanism> best;
  for (const int most : links ? std::vector<int>{links} : std::vector<int>{1, 2, 3, 4, 6, 8}) {
    auto pieces = std::make_unique<SubstructuredMechanism>(tree, most, check_interrupt);
    if (pieces->cuts_something() && (!best || pieces->operations() < best->operations())) best = std::move(pieces);
  }
  return best;
}

}  // namespace sarrus
