#include "actuation.hpp"

#include "../joints/visit.hpp"
#include "../loops/tolerances.hpp"

namespace sarrus {

int joint_by_name(const Mechanism& mechanism, const std::string& name) {
  const std::vector<JointDescription>& joints = mechanism.description().joints;
  const auto at = std::find_if(joints.begin(), joints.end(), [&](const JointDescription& j) { return j.name == name; });
  if (at == joints.end()) throw NameNotFoundError("no joint is named '" + name + "'");
  return static_cast<int>(at - joints.begin());
}

std::vector<int> joints_by_names(const Mechanism& mechanism, const std::vector<std::string>& names) {
  std::vector<int> joints;
  for (const std::string& name : names) {
    joints.push_back(joint_by_name(mechanism, name));
    if (std::count(joints.begin(), joints.end(), joints.back()) > 1)
      throw ModelError("actuated contains joint '" + name + "' twice");
  }
  return joints;
}

std::vector<int> actuated_joints(const Mechanism& mechanism) {
  std::vector<int> joints;
  for (std::size_t j = 0; j < mechanism.joints().size(); ++j)
    if (mechanism.description().joints[j].actuated) joints.push_back(static_cast<int>(j));
  return joints;
}

Matrix motor_rows(const StateFunctions& functions, const double* q, const std::vector<int>& joints) {
  const Mechanism& mechanism = functions.mechanism();
  const Tree& tree = functions.tree();
  RowMajor loop_jacobian;
  int motors = 0, row = 0;
  // index of each loop joint's first velocity among all velocities of loop joints
  std::vector<int> first(mechanism.joints().size(), 0);
  for (std::size_t j = 0, next = 0; j < first.size(); ++j)
    if (first[j] = static_cast<int>(next); mechanism.joints()[j].closes_a_loop) next += mechanism.description().joints[j].nv;
  for (const int j : joints) motors += mechanism.description().joints[j].nv;
  Matrix S = Matrix::Zero(motors, tree.nv);
  for (const int j : joints) {
    const Mechanism::PlacedJoint& at = mechanism.joints()[j];
    const JointDescription& joint = mechanism.description().joints[j];
    if (!at.closes_a_loop) {
      S.block(row, at.iv, joint.nv, joint.nv).setIdentity();
    } else {
      if (!joint.laws.empty() && !visit_every(joint.kind, joint.nv, [](auto type) { return type.constant_subspace; }))
        throw ModelError("joint '" + joint.name +
                         "' follows time functions, so it cannot have a motor; name the motor of another joint");
      if (loop_jacobian.size() == 0) {
        loop_jacobian.resize(tree.loop_nv, tree.nv);
        functions.evaluate(Operation::loop_joint_jacobian, {q}, loop_jacobian.data());
      }
      S.middleRows(row, joint.nv) = loop_jacobian.middleRows(first[j], joint.nv);
    }
    row += joint.nv;
  }
  return S;
}

Vector motor_units(const Mechanism& mechanism, const std::vector<int>& joints) {
  std::vector<double> units;
  for (const int j : joints)
    for (int k = 0; k < mechanism.description().joints[j].nv; ++k)
      units.push_back(slides(mechanism.description().joints[j], k) ? mechanism.tree().length : 1.0);
  return Eigen::Map<const Vector>(units.data(), static_cast<Eigen::Index>(units.size()));
}

Matrix internal_efforts(const ScaledLoops& loops, const double* q, const std::vector<int>& joints) {
  const Matrix S = motor_rows(loops.functions, q, joints);
  // dependent rows are detected in scaled units, in which radians and metres are comparable; the motions are converted to the velocities' own units
  const Matrix motions = loops.column_scale.asDiagonal() * null_space_by_pivots(loops.jacobian(q), tolerances::negligible);
  const Matrix N = orthogonal_from(motions).leftCols(motions.cols());
  return null_space_by_pivots((S * N).transpose(), tolerances::negligible, S.norm());
}

}  // namespace sarrus
