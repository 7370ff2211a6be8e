// Pinocchio's C++ templates behind a plain C interface, for benchmarks/peers.py.
//
// The model is passed as numbers, so that no Eigen or Pinocchio type is shared with the libraries of the `pin` wheel. These were built with other
// vector flags, on which the alignment of Eigen's types depends.
#include <chrono>
#include <exception>
#include <memory>
#include <string>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using Eigen::Map;
using Eigen::Matrix3d;
using Eigen::MatrixXd;
using Eigen::Vector3d;
using Eigen::VectorXd;
using pinocchio::Convention;
using RowMajor3 = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;

struct Peer {
  explicit Peer(const pinocchio::Model& m) : model(m), data(m) {}
  pinocchio::Model model;
  pinocchio::Data data;
};

// The order is that of JOINT_KINDS in peers.py.
pinocchio::JointModel joint_model(int kind, const Vector3d& axis) {
  switch (kind) {
    case 0: return pinocchio::JointModelRX();
    case 1: return pinocchio::JointModelRY();
    case 2: return pinocchio::JointModelRZ();
    case 3: return pinocchio::JointModelRevoluteUnaligned(axis);
    case 4: return pinocchio::JointModelPX();
    case 5: return pinocchio::JointModelPY();
    case 6: return pinocchio::JointModelPZ();
    case 7: return pinocchio::JointModelPrismaticUnaligned(axis);
    default: return pinocchio::JointModelFreeFlyer();
  }
}

enum Algorithm { rnea, aba_local, aba_world, crba_local, crba_world, rnea_derivatives, aba_derivatives };

// Makes one call; x is the acceleration (rnea) or the force (aba). Returns a pointer to Pinocchio's result.
const double* run(Peer& peer, int algorithm, const Map<const VectorXd>& q, const Map<const VectorXd>& v,
                  const Map<const VectorXd>& x) {
  auto& [model, data] = peer;
  switch (algorithm) {
    case rnea: return pinocchio::rnea(model, data, q, v, x).data();
    case aba_local: return pinocchio::aba(model, data, q, v, x, Convention::LOCAL).data();
    case aba_world: return pinocchio::aba(model, data, q, v, x, Convention::WORLD).data();
    case crba_local: return pinocchio::crba(model, data, q, Convention::LOCAL).data();
    case crba_world: return pinocchio::crba(model, data, q, Convention::WORLD).data();
    case rnea_derivatives: pinocchio::computeRNEADerivatives(model, data, q, v, x); return data.dtau_dq.data();
    default: pinocchio::computeABADerivatives(model, data, q, v, x); return data.ddq_dq.data();
  }
}

}  // namespace

// n joints, parents first; joint i of the arrays is joint i + 1 of the model (0 is the universe).
//   placement (n, 12)  row-major rotation, then translation, in the parent joint's frame
//   inertia   (n, 13)  mass, centre of mass, row-major inertia about it, in the joint's frame
EXPORT Peer* peer_new(int n, const int* parent, const int* kind, const double* axis, const double* placement,
                      const double* inertia, const double* gravity) {
  try {
    pinocchio::Model model;
    model.gravity.linear() = Map<const Vector3d>(gravity);
    for (int i = 0; i < n; ++i) {
      const double *P = placement + 12 * i, *I = inertia + 13 * i;
      const auto joint = model.addJoint(parent[i], joint_model(kind[i], Map<const Vector3d>(axis + 3 * i)),
                                        pinocchio::SE3(Matrix3d(Map<const RowMajor3>(P)), Vector3d(Map<const Vector3d>(P + 9))),
                                        std::to_string(i));
      model.appendBodyToJoint(joint, pinocchio::Inertia(I[0], Map<const Vector3d>(I + 1), Matrix3d(Map<const RowMajor3>(I + 4))));
    }
    return new Peer(model);
  } catch (const std::exception&) {
    return nullptr;
  }
}

EXPORT void peer_delete(Peer* peer) { delete peer; }

// Returns the time per call [s] over `repeats` passes through `states` rows of q (nq), v (nv) and x (nv).
EXPORT double peer_time(Peer* peer, int algorithm, int states, const double* q, const double* v, const double* x, int repeats) {
  const int nq = peer->model.nq, nv = peer->model.nv;
  double sink = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < repeats; ++r)
    for (int s = 0; s < states; ++s) sink += *run(*peer, algorithm, {q + s * nq, nq}, {v + s * nv, nv}, {x + s * nv, nv});
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  [[maybe_unused]] volatile double kept = sink;  // so that no call is optimised away
  return elapsed.count() / (double(repeats) * states);
}

// Computes one result: (nv), or (nv, nv), of which Pinocchio writes only the upper triangle.
EXPORT void peer_call(Peer* peer, int algorithm, const double* q, const double* v, const double* x, double* out) {
  const int nq = peer->model.nq, nv = peer->model.nv;
  const double* result = run(*peer, algorithm, {q, nq}, {v, nv}, {x, nv});
  if (algorithm < crba_local)
    Map<VectorXd>(out, nv) = Map<const VectorXd>(result, nv);
  else  // column-major in Pinocchio, row-major in sarrus
    Map<MatrixXd>(out, nv, nv) = Map<const MatrixXd>(result, nv, nv).transpose();
}
