#include "free_motions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "../loops/tolerances.hpp"
#include "../model/text.hpp"
#include "../model/value.hpp"
#include "actuation.hpp"

namespace sarrus {
namespace {

Value as_value(const Matrix& A) {
  Value::List rows;
  for (Eigen::Index i = 0; i < A.rows(); ++i) rows.push_back(Value(std::vector<double>(A.row(i).begin(), A.row(i).end())));
  return Value(std::move(rows));
}
Matrix orthonormal(const Matrix& A) { return orthogonal_from(A).leftCols(A.cols()); }

}  // namespace

FreeMotions free_motions(const Matrix& J, const Vector& column_scale, const Vector& row_scale) {
  const auto C = column_scale.asDiagonal();
  const auto R = row_scale.asDiagonal();
  const Matrix A = R * J * C;
  const Vector s = A.size() ? singular_values(A) : Vector();
  const int rank = s.size() ? count_above(s, tolerances::negligible * s(0)) : 0;
  FreeMotions free{orthonormal(C * null_space(A, rank)), C * pseudo_inverse(A, rank) * R};
  const Matrix idle = orthonormal(R * null_space(A.transpose(), rank));
  // remove the effect of the scales on the pseudo-inverse
  free.inverse -= product(free.basis, transposed_product(free.basis, free.inverse));
  free.inverse -= product(product(free.inverse, idle), idle.transpose());
  return free;
}

Matrix constrained_inverse(const Matrix& motions, const Matrix& M) {
  // M is scaled to a unit diagonal, because otherwise the rounding errors of large masses could exceed small masses
  const Vector units = M.diagonal().unaryExpr([](double x) { return x > 0.0 ? std::sqrt(x) : 1.0; }),
               inverse = units.cwiseInverse();
  const Matrix N = orthonormal(units.asDiagonal() * motions);
  if (N.cols() == 0) return Matrix::Zero(M.rows(), M.cols());
  const Matrix scaled = inverse.asDiagonal() * M * inverse.asDiagonal();
  double pivots;
  const Matrix x = solution(transposed_product(N, product(scaled, N)), N.transpose() * inverse.asDiagonal(), &pivots);
  if (!(pivots > std::numeric_limits<double>::epsilon() * tolerances::decides))
    throw NoAnswer("M is singular along a motion that the constraints allow: no mass moves in this motion");
  return inverse.asDiagonal() * product(N, x);
}

Matrix orthonormal_basis(Matrix left, int count) {
  Matrix basis(left.rows(), count);
  for (int k = 0; k < count; ++k) {
    // choose the unit vector that is nearest to the range; of several equally near ones, the first
    Eigen::Index best;
    (left.diagonal() * 1e12).array().round().maxCoeff(&best);
    basis.col(k) = left.col(best).normalized();
    left -= product(basis.col(k), basis.col(k).transpose());
  }
  return basis;
}

JointBases joint_bases(const Matrix& phi) {
  const auto nv = static_cast<int>(phi.cols());
  const Matrix complement = orthogonal_from(phi).rightCols(6 - nv);
  const Vector s = nv ? singular_values(phi) : Vector();
  const int rank = nv ? count_above(s, tolerances::exact * s(0)) : 0;
  return {phi, orthonormal_basis(product(complement, complement.transpose()), 6 - nv), pseudo_inverse(phi, rank).transpose()};
}

Named<int> load_places(const Mechanism& m) {
  const Loops& loops = m.tree().loops;
  const int bodies = m.tree().bodies - 1;
  Named<int> places;
  for (std::size_t j = 0; j < m.joints().size(); ++j) {
    const Mechanism::PlacedJoint& joint = m.joints()[j];
    places.push_back(
        {m.description().joints[j].name, joint.closes_a_loop ? bodies + joint.constraint : m.tree().body[joint.body].described});
  }
  for (std::size_t i = m.constraints().size() - m.description().constraints.size(); i < m.constraints().size(); ++i)
    if (loops.constraint[m.constraints()[i]].child >= 0)
      places.push_back({m.constraint_name(static_cast<int>(i)), bodies + m.constraints()[i]});
  return places;
}

Vector compliance_roots(const Mechanism& m, const Named<Matrix>& compliance) {
  const Named<int> places = load_places(m);
  const double length = m.tree().length;
  Vector unit = Vector::Ones(6);  // scales that make radians and metres comparable
  unit.head<3>().setConstant(1.0 / length);
  Vector roots = Vector::Zero(36 * (m.tree().bodies - 1 + m.tree().loops.constraints));
  for (const auto& [name, C] : compliance) {
    const auto at =
        std::find_if(places.begin(), places.end(), [&, &key = name](const auto& place) { return place.first == key; });
    if (at == places.end()) {
      std::vector<std::string> all;
      for (const auto& place : places) all.push_back(quoted(place.first));
      throw NameNotFoundError("compliance: no joint or rod is named '" + name + "'; joints and rods are " + joined(all));
    }
    const Matrix scaled = unit.cwiseInverse().asDiagonal() * C * unit.cwiseInverse().asDiagonal();
    const double size = scaled.cwiseAbs().maxCoeff();
    if (!C.allFinite() || !((scaled - scaled.transpose()).cwiseAbs().maxCoeff() <= 1e-9 * size))
      throw std::invalid_argument("compliance['" + name + "'] must be finite and symmetric; got " + sarrus::shown(as_value(C)));
    // singular values of a positive semidefinite matrix are its eigenvalues
    const double shift = 6.0 * size;
    const double least = right_singular_vectors(scaled + shift * Matrix::Identity(6, 6)).values(5) - shift;
    if (least < -1e-9 * size) {
      char text[40];
      std::snprintf(text, sizeof text, "%.3g", least);
      throw std::invalid_argument("compliance['" + name + "'] must be positive semidefinite; its least eigenvalue is " + text);
    }
    const RightFactor eigen = right_singular_vectors(scaled);
    Eigen::Map<RowMajor> root(roots.data() + 36 * at->second, 6, 6);
    for (int k = 0; k < 6; ++k) {
      const Vector axis = eigen.V.col(k);
      root.row(k) = std::sqrt(std::max(axis.dot(product(scaled, axis).col(0)), 0.0)) * axis.cwiseProduct(unit).transpose();
    }
  }
  return roots;
}

Vector efforts_of_closing_motors(const Mechanism& m, const Matrix& across, const Vector& tau) {
  const int nv = m.tree().nv;
  std::vector<int> closing;  // index of each effort among the velocities of loop joints; -1 for a motor of the tree
  std::vector<int> tree;
  for (std::size_t j = 0, next = 0; j < m.joints().size(); ++j) {
    const int count = m.description().joints[j].nv;
    for (int k = 0; k < count && m.description().joints[j].actuated; ++k)
      m.joints()[j].closes_a_loop ? closing.push_back(static_cast<int>(next) + k) : tree.push_back(m.joints()[j].iv + k);
    if (m.joints()[j].closes_a_loop) next += static_cast<std::size_t>(count);
  }
  Matrix S = Matrix::Zero(nv, static_cast<Eigen::Index>(tree.size() + closing.size()));
  Eigen::Index column = 0;
  for (const int k : tree) S(k, column++) = 1.0;
  for (const int k : closing)
    S.col(column++) = across.row(k).transpose().unaryExpr([](double x) { return std::isfinite(x) ? x : 0.0; });
  Vector efforts = Vector::Zero(m.tree().loop_nv);
  if (!tau.allFinite() || nv == 0) return efforts;
  const Vector u = least_solution(S, tau, tolerances::exact);
  if ((product(S, u).col(0) - tau).cwiseAbs().maxCoeff() > tolerances::allowed * tau.cwiseAbs().maxCoeff()) return efforts;
  for (std::size_t k = 0; k < closing.size(); ++k) efforts(closing[k]) = u(static_cast<Eigen::Index>(tree.size() + k));
  return efforts;
}

Matrix loads_on_tree(const StateFunctions& functions, const double* q, const Matrix& wrenches) {
  const Mechanism& m = functions.mechanism();
  const std::vector<JointDescription>& joints = m.description().joints;
  std::map<std::string, std::size_t> carrier;  // the tree joint that carries a body
  const auto successor = [&](std::size_t j) { return m.joints()[j].reversed ? joints[j].parent : joints[j].child; };
  for (std::size_t j = 0; j < joints.size(); ++j)
    if (!m.joints()[j].closes_a_loop) carrier[successor(j)] = j;
  const auto pose = [&](const std::string& body, const Transform<double>& frame) {
    const PlacedFrame& at = m.placed_frame(body);
    Eigen::Matrix<double, 4, 4, Eigen::RowMajor> X;
    functions.evaluate(Operation::pose, {q}, X.data(), {at.link, at.body, at.X, ExpressedIn::frame});
    return Transform<double>{X.topLeftCorner<3, 3>(), X.topRightCorner<3, 1>()} * frame;
  };
  Matrix loads = Matrix::Zero(static_cast<Eigen::Index>(joints.size()), 6);
  const auto add = [&](const auto& constraint, int row, const Mat3<double>& axes) {
    if (constraint.child.empty()) return;
    Transform<double> X = pose(constraint.child, constraint.at_child);
    X.R = X.R * axes;
    Vector world(6);  // about the world's origin, in its axes
    const Vec3<double> force = X.R * wrenches.row(row).tail<3>().transpose();
    world << X.R * wrenches.row(row).head<3>().transpose() + cross<double>(X.p, force), force;
    for (const auto& [sign, end] : {std::pair{1.0, constraint.child}, std::pair{-1.0, constraint.parent}}) {
      std::string body = end;
      for (auto at = carrier.find(body); at != carrier.end(); at = carrier.find(body)) {
        loads.row(static_cast<Eigen::Index>(at->second)) += sign * world.transpose();
        body = m.joints()[at->second].reversed ? joints[at->second].child : joints[at->second].parent;
      }
    }
  };
  for (std::size_t j = 0; j < joints.size(); ++j)
    if (m.joints()[j].closes_a_loop) add(joints[j], m.joints()[j].constraint, Mat3<double>::Identity());
  const std::vector<ConstraintDescription>& descriptions = m.description().constraints;
  for (std::size_t i = 0; i < descriptions.size(); ++i) {
    const int row = m.constraints()[m.constraints().size() - descriptions.size() + i];
    add(descriptions[i], row, m.tree().loops.constraint[row].R_described.transpose());
  }
  for (std::size_t j = 0; j < joints.size(); ++j) {
    if (m.joints()[j].closes_a_loop) continue;
    const Transform<double> X = pose(successor(j), m.joints()[j].reversed ? joints[j].at_parent : joints[j].at_child);
    const Vec3<double> moment = loads.row(j).head<3>().transpose(), force = loads.row(j).tail<3>().transpose();
    loads.row(j) << (X.R.transpose() * (moment - cross<double>(X.p, force))).transpose(), (X.R.transpose() * force).transpose();
  }
  return loads;
}

}  // namespace sarrus
