#include "scaled_loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "../joints/visit.hpp"
#include "../loops/tolerances.hpp"

namespace sarrus {

bool slides(const JointDescription& joint, int k) {
  return visit_every(joint.kind, joint.nv, [&](auto type) {
    int listed = 0, velocity = 0;
    for (const Coordinate& coordinate : type.velocities)
      if (type.has(joint.constants, listed++) && velocity++ == k) return coordinate.is_length();
    return false;
  });
}

namespace {

/// Return bounds of a function of a coordinate and of its slope, in its pieces and within one unit of the start of the last piece.
std::pair<double, double> sizes(const Law& law, double unit) {
  const std::size_t pieces = law.start.size(), terms = law.coefficient.size() / pieces;
  double value = 0.0, slope = 0.0;
  for (std::size_t k = 0; k < pieces; ++k) {
    const double end = k + 1 < pieces ? law.start[k + 1] : law.start[k] + unit, reach = end - law.start[k];
    double size = 0.0, rate = 0.0;
    for (std::size_t n = terms; n-- > 0;) {
      const double c = std::abs(law.coefficient[k * terms + n]);
      size = size * reach + c;
      if (n > 0) rate = rate * reach + static_cast<double>(n) * c;
    }
    value = std::max(value, size), slope = std::max(slope, rate);
  }
  for (std::size_t h = 0; h < law.harmonic.size(); h += 3)
    value += std::abs(law.harmonic[h]), slope += std::abs(law.harmonic[h] * law.harmonic[h + 1]);
  return {value, slope};
}

/// Return the largest possible norm of a constraint row between coordinates. It is computed from the coefficients, because the slope of a function
/// may vanish at q.
double row_size(const Constraint& c, const Vector& column_scale, const Eigen::RowVectorXd& row) {
  const Coupler* coupler = std::get_if<Coupler>(&c.kind);
  if (!coupler) return row.norm();
  double square = 0.0;
  for (int i = 0; i < c.columns; ++i) {
    const std::vector<double>& coefficients = coupler->coefficients[static_cast<std::size_t>(i)];
    const double unit = column_scale(c.column[i]);
    double size = 0.0;
    for (std::size_t k = 0; k < coefficients.size(); ++k)
      size += static_cast<double>(k + 1) * std::abs(coefficients[k]) * std::pow(unit, static_cast<double>(k + 1));
    for (const Product& product : coupler->products) {
      double value = 1.0, slope = 0.0;
      for (std::size_t k = 0; k < product.column.size(); ++k) {
        const auto [f, rate] = sizes(product.functions[k], column_scale(c.column[product.column[k]]));
        slope = slope * f + (product.column[k] == i ? value * rate : 0.0), value *= f;
      }
      size += slope * unit;
    }
    square += size * size;
  }
  return std::sqrt(square);
}

}  // namespace

ScaledLoops::ScaledLoops(const StateFunctions& f, const double* q, const std::optional<double>& time, RowsOfState rows)
    : functions(f),
      length(f.tree().length),
      column_scale(Eigen::Map<const Vector>(f.tree().unit, f.tree().nv)),
      time_(time),
      rows_(std::move(rows)) {
  const Loops& loops = f.tree().loops;
  const Mechanism& mechanism = f.mechanism();
  row_scale = Vector::Ones(loops.rows), holonomic.resize(loops.rows);
  moments_ = forces_ = Vector::Zero(loops.rows);
  const Matrix J = jacobian(q);
  // one call evaluates row r of all constraints: the wrench of a constraint does not depend on the multipliers of others
  std::vector<double> multipliers(loops.rows), wrenches(6 * loops.constraints);
  for (int r = 0; r < 6; ++r) {
    std::fill(multipliers.begin(), multipliers.end(), 0.0);
    bool any = false;
    for (int i = 0; i < loops.constraints; ++i)
      if (const Constraint& c = loops.constraint[i]; c.child >= 0 && r < c.rows) multipliers[c.row + r] = 1.0, any = true;
    if (!any) break;
    f.evaluate(Operation::loop_wrenches, {q, multipliers.data(), at_time()}, wrenches.data());
    for (int i = 0; i < loops.constraints; ++i) {
      const Constraint& c = loops.constraint[i];
      if (c.child < 0 || r >= c.rows) continue;
      const Eigen::Map<const Vec3<double>> moment(wrenches.data() + 6 * i), force(wrenches.data() + 6 * i + 3);
      moments_(c.row + r) = moment.squaredNorm(), forces_(c.row + r) = force.squaredNorm();
      row_scale(c.row + r) = std::sqrt(moments_(c.row + r) + length * length * forces_(c.row + r));
    }
  }
  for (std::size_t i = 0; i < mechanism.constraints().size(); ++i) {
    const Constraint& c = loops.constraint[mechanism.constraints()[i]];
    visit_constraint(c.kind, [&](const auto& kind) {
      for (int r = 0; r < c.rows; ++r) holonomic[c.row + r] = kind.holonomic(r);
    });
    for (int r = 0; c.child < 0 && r < c.rows; ++r) row_scale(c.row + r) = row_size(c, column_scale, J.row(c.row + r));
  }
  // rows of a fixed loop joint's coordinates get a smaller weight. Reason: the coordinates are computed from a pose that violates the joint's own
  // rows by the square of a step. The next step corrects the pose, and thereby changes the coordinates by this amount; with full weight, the residual
  // would increase
  constexpr double shifted = 64.0;
  for (int i = 0; i < loops.constraints; ++i)
    if (const Constraint& c = loops.constraint[i]; c.target == Target::coordinates) row_scale.segment(c.row, c.rows) *= shifted;
  for (double& size : row_scale) size = size > 0.0 ? 1.0 / size : 1.0;
}

std::pair<Vector, Vector> ScaledLoops::scales_for(double variant_length) const {
  const Tree& tree = functions.tree();
  Vector columns = column_scale, rows = row_scale;
  for (std::size_t j = 0; j < functions.mechanism().joints().size(); ++j) {
    const Mechanism::PlacedJoint& at = functions.mechanism().joints()[j];
    for (int k = 0; k < at.nv && !at.closes_a_loop; ++k)
      if (slides(functions.mechanism().description().joints[j], k)) columns(at.iv + k) = variant_length;
  }
  for (int r = 0; r < tree.loops.rows; ++r) {
    const double square = moments_(r) + length * length * forces_(r);
    if (square > 0.0) rows(r) *= std::sqrt(square / (moments_(r) + variant_length * variant_length * forces_(r)));
  }
  return {columns, rows};
}

std::string ScaledLoops::row_name(int row) const {
  const Mechanism& mechanism = functions.mechanism();
  for (std::size_t i = 0; i < mechanism.constraints().size(); ++i) {
    const Constraint& c = functions.tree().loops.constraint[mechanism.constraints()[i]];
    if (row < c.row || row >= c.row + c.rows) continue;
    const std::string& name = mechanism.constraint_name(static_cast<int>(i));
    return name + ": " + visit_constraint(c.kind, [&](const auto& kind) { return kind.row_name(row - c.row); });
  }
  return {};
}

std::vector<double> ScaledLoops::values(const double* q) const {
  std::vector<double> numbers(functions.tree().loops.pfaffian_values);
  if (!numbers.empty() && !rows_) throw ModelError("constraint rows depend on q: pass a function that evaluates them");
  if (!numbers.empty()) rows_(q, numbers.data());
  return numbers;
}

Matrix ScaledLoops::jacobian(const double* q) const {
  const Tree& tree = functions.tree();
  RowMajor J(tree.loops.rows, tree.nv);
  functions.evaluate(Operation::constraint_jacobian, {q, at_time(), values(q).data()}, J.data());
  return row_scale.asDiagonal() * J * column_scale.asDiagonal();
}
Vector ScaledLoops::residual(const double* q) const {
  Vector phi(functions.tree().loops.rows);
  functions.evaluate(Operation::constraint_residual, {q, at_time(), values(q).data()}, phi.data());
  return phi.cwiseProduct(row_scale);
}
Vector ScaledLoops::prescribed(const double* q) const {
  Vector c(functions.tree().loops.rows);
  functions.evaluate(Operation::constraint_velocity, {q, at_time(), values(q).data()}, c.data());
  return c.cwiseProduct(row_scale);
}

Matrix ScaledLoops::rows_of(const Matrix& J, bool holds_positions) const {
  std::vector<int> chosen;
  for (std::size_t r = 0; r < holonomic.size(); ++r)
    if (holonomic[r] == holds_positions) chosen.push_back(static_cast<int>(r));
  if (chosen.size() == holonomic.size()) return J;
  Matrix result(chosen.size(), J.cols());
  for (std::size_t r = 0; r < chosen.size(); ++r) result.row(r) = J.row(chosen[r]);
  return result;
}

double ScaledLoops::check_closed(const double* q) const {
  const Vector off = residual(q).cwiseAbs();
  if (off.size() == 0) return 0.0;
  Eigen::Index worst;
  const double most = off.maxCoeff(&worst);
  if (most <= tolerances::given_closed) return most;
  char text[200];
  std::snprintf(
      text, sizeof text,
      "' has an error of %.3g (relative to the mechanism's length: %.1g; expected at most %g); mobility needs a closed ",
      residual(q)(worst) / row_scale(worst), most, tolerances::given_closed);
  throw AssemblyError("q does not close the loops: '" + row_name(static_cast<int>(worst)) + text +
                      "configuration: use assemble or project_configuration");
}

ScaledLoops::Walk ScaledLoops::walk(const double* q, const Matrix& x) const {
  const Tree& tree = functions.tree();
  const int count = static_cast<int>(x.rows());
  constexpr double missing = std::numeric_limits<double>::quiet_NaN();
  Walk walked{RowMajor::Constant(count, tree.nq, missing), RowMajor::Constant(count, tree.nv, missing),
              Vector::Constant(count, std::numeric_limits<double>::infinity())};
  std::vector<int> sound;
  for (int k = 0; k < count; ++k)
    if (x.row(k).allFinite()) sound.push_back(k);
  const int n = static_cast<int>(sound.size()), numbers = tree.loops.pfaffian_values;
  RowMajor starts(n, tree.nq), target_values(n, numbers), closed(n, tree.nq + 1);
  for (int k = 0; k < n; ++k) {
    const Vector step = column_scale.cwiseProduct(x.row(sound[k]).transpose());
    functions.evaluate(Operation::integrate, {q, step.data()}, starts.row(k).data());
    if (numbers) rows_(starts.row(k).data(), target_values.row(k).data());
  }
  Vector scale(tree.nv + tree.loops.rows);
  scale.head(tree.nv) = column_scale;
  for (int r = 0; r < tree.loops.rows; ++r) scale(tree.nv + r) = holonomic[r] ? row_scale(r) : 0.0;
  const double steps[3] = {1.0, 100.0, 1e300};  // damping of the first step, largest number of steps, largest initial residual
  functions.evaluate_many(Operation::close,
                          {{starts.data(), tree.nq, false},
                           {scale.data(), static_cast<int>(scale.size()), true},
                           {steps, 3, true},
                           {at_time(), 1, true},
                           {numbers ? target_values.data() : nullptr, numbers, false}},
                          n, tree.nq + 1, closed.data());
  for (int k = 0; k < n; ++k) {
    if (!closed.row(k).allFinite()) continue;
    walked.open(sound[k]) = closed(k, tree.nq);
    walked.ends.row(sound[k]) = closed.row(k).head(tree.nq);
    functions.evaluate(Operation::difference, {q, walked.ends.row(sound[k]).data()}, walked.displacements.row(sound[k]).data());
    walked.displacements.row(sound[k]).array() /= column_scale.transpose().array();
  }
  return walked;
}

}  // namespace sarrus
