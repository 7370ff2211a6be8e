// Pinocchio's constrained dynamics behind a plain C interface, for benchmarks/loop_peers.py.
//
// Two solvers of M a + h = tau + J^T lambda, J a = gamma:
//   exact  pinocchio::constraintDynamics, a sparse Cholesky factor of the full system, with proximal steps
//   aba    pinocchio::lcaba, loop-constrained articulated bodies, with proximal steps
// The model is passed as numbers, for the reason in pinocchio_peer.cpp.
#include <chrono>
#include <exception>
#include <string>
#include <vector>

#include <pinocchio/algorithm/constrained-dynamics.hpp>
#include <pinocchio/algorithm/loop-constrained-aba.hpp>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Eigen::Map;
using Eigen::Matrix3d;
using Eigen::Vector3d;
using Eigen::VectorXd;
using pinocchio::SE3;
using RowMajor3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
using Vector = Map<const VectorXd>;

enum Solver { exact, aba };

// Workspace of one solver.
struct Workspace {
  explicit Workspace(const pinocchio::Model& model) : data(model), settings(1e-10, 1e-8, 10) {}
  pinocchio::Data data;
  std::vector<pinocchio::RigidConstraintData> constraint_data;
  pinocchio::ProximalSettings settings;
};

struct Peer {
  explicit Peer(const pinocchio::Model& m) : model(m), work{Workspace(m), Workspace(m)} {}
  pinocchio::Model model;
  std::vector<pinocchio::RigidConstraintModel> constraints;
  Workspace work[2];
};

// The order is that of JOINT_KINDS in loop_peers.py.
pinocchio::JointModel joint_model(int kind, const Vector3d& axis, const Vector3d& second_axis) {
  switch (kind) {
    case 0: return pinocchio::JointModelRX();
    case 1: return pinocchio::JointModelRY();
    case 2: return pinocchio::JointModelRZ();
    case 3: return pinocchio::JointModelRevoluteUnaligned(axis);
    case 4: return pinocchio::JointModelPX();
    case 5: return pinocchio::JointModelPY();
    case 6: return pinocchio::JointModelPZ();
    case 7: return pinocchio::JointModelPrismaticUnaligned(axis);
    case 8: return pinocchio::JointModelUniversal(axis, second_axis);
    case 9: return pinocchio::JointModelSpherical();
    default: return pinocchio::JointModelFreeFlyer();
  }
}

SE3 placement(const double* P) { return SE3(Matrix3d(Map<const RowMajor3>(P)), Vector3d(Map<const Vector3d>(P + 9))); }

const double* run(Peer& peer, int solver, const Vector& q, const Vector& v, const Vector& tau) {
  auto& [data, constraint_data, settings] = peer.work[solver];
  const auto& a = solver == exact
                      ? pinocchio::constraintDynamics(peer.model, data, q, v, tau, peer.constraints, constraint_data, settings)
                      : pinocchio::lcaba(peer.model, data, q, v, tau, peer.constraints, constraint_data, settings);
  return a.data();
}

}  // namespace

// n joints, depth first; joint i of the arrays is joint i + 1 of the model (0 is the universe).
//   axes      (n, 2, 3)   of the joint; the second of a universal joint only
//   placement (n, 12)     row-major rotation, then translation, in the parent joint's frame
//   inertia   (n, 13)     mass, centre of mass, row-major inertia about it, in the joint's frame
// and m loop joints
//   rows      (m)         3: a point, 6: a weld
//   joints    (m, 2)      joints of the two bodies, 0 for the universe
//   places    (m, 2, 12)  placements on these
EXPORT Peer* loops_new(int n, const int* parent, const int* kind, const double* axes, const double* place, const double* inertia,
                       const double* gravity, int m, const int* rows, const int* joints, const double* places) {
  try {
    pinocchio::Model model;
    model.gravity.linear() = Map<const Vector3d>(gravity);
    for (int i = 0; i < n; ++i) {
      const double *I = inertia + 13 * i, *axis = axes + 6 * i;
      const auto joint = model.addJoint(parent[i], joint_model(kind[i], Map<const Vector3d>(axis), Map<const Vector3d>(axis + 3)),
                                        placement(place + 12 * i), std::to_string(i));
      model.appendBodyToJoint(joint, pinocchio::Inertia(I[0], Map<const Vector3d>(I + 1), Matrix3d(Map<const RowMajor3>(I + 4))));
    }
    Peer* peer = new Peer(model);
    for (int i = 0; i < m; ++i)
      peer->constraints.emplace_back(rows[i] == 3 ? pinocchio::CONTACT_3D : pinocchio::CONTACT_6D, peer->model, joints[2 * i],
                                     placement(places + 24 * i), joints[2 * i + 1], placement(places + 24 * i + 12),
                                     pinocchio::LOCAL);
    for (auto& work : peer->work)
      for (const auto& constraint : peer->constraints) work.constraint_data.emplace_back(constraint.createData());
    auto& [by_cholesky, by_articulated_bodies] = peer->work;
    pinocchio::initConstraintDynamics(peer->model, by_cholesky.data, peer->constraints, by_cholesky.constraint_data);
    pinocchio::computeJointMinimalOrdering(peer->model, by_articulated_bodies.data, peer->constraints);
    return peer;
  } catch (const std::exception&) {
    return nullptr;
  }
}

EXPORT void loops_delete(Peer* peer) { delete peer; }

EXPORT void loops_settings(Peer* peer, int solver, double accuracy, double mu, int iterations) {
  peer->work[solver].settings = pinocchio::ProximalSettings(accuracy, mu, iterations);
}

// Returns the time per call [s] over `repeats` passes through `states` rows of q (nq), v (nv) and tau (nv).
EXPORT double loops_time(Peer* peer, int solver, int states, const double* q, const double* v, const double* tau, int repeats) {
  const int nq = peer->model.nq, nv = peer->model.nv;
  double sink = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < repeats; ++r)
    for (int s = 0; s < states; ++s) sink += *run(*peer, solver, {q + s * nq, nq}, {v + s * nv, nv}, {tau + s * nv, nv});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  [[maybe_unused]] volatile double kept = sink;  // so that no call is optimised away
  return elapsed.count() / (double(repeats) * states);
}

// Computes a (nv), and the solver's report: iterations, absolute and relative residual.
EXPORT void loops_call(Peer* peer, int solver, const double* q, const double* v, const double* tau, double* a, double* said) {
  const int nq = peer->model.nq, nv = peer->model.nv;
  Map<VectorXd>(a, nv) = Vector(run(*peer, solver, {q, nq}, {v, nv}, {tau, nv}), nv);
  const auto& settings = peer->work[solver].settings;
  said[0] = settings.iter, said[1] = settings.absolute_residual, said[2] = settings.relative_residual;
}
