#include "explanation.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../loops/tolerances.hpp"
#include "../mechanism/status.hpp"
#include "../model/text.hpp"
#include "actuation.hpp"
#include "free_floating.hpp"
#include "free_motions.hpp"

namespace sarrus {
namespace {

std::string formatted(const char* form, double x) {
  char text[40];
  std::snprintf(text, sizeof text, form, x);
  return text;
}
std::string in_quotes(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) all.push_back("'" + name + "'");
  return joined(all);
}

class Explanation {
 public:
  Explanation(const StateFunctions& functions, const std::string& function, const StateInputs& inputs, const RowsOfState& rows)
      : functions_(functions), mechanism_(functions.mechanism()), tree_(functions.tree()), function_(function), in_(inputs) {
    if (in_.pfaffian_values || tree_.loops.pfaffian_values == 0) return;
    values_.resize(tree_.loops.pfaffian_values);
    if (rows) rows(in_.q, values_.data());
    in_.pfaffian_values = values_.data();
  }

  /// Return the message for a state off the loops, with the constraint whose position or velocity is violated most.
  std::string off_loops() const {
    const Matrix J = jacobian();
    const Eigen::Map<const Vector> unit(tree_.unit, tree_.nv), v(in_.v, tree_.nv);
    Vector size = (J * unit.asDiagonal()).rowwise().norm();  // change of each row per radian, or per length of the mechanism
    for (double& x : size) x = x > 0.0 ? x : 1.0;
    const Vector gaps = residual(in_.q), slips = J * v - rows_of(Operation::constraint_velocity);
    const Worst open = worst(gaps.cwiseQuotient(size), false), fast = worst(slips.cwiseQuotient(size), false);
    std::string fault = "'" + open.name + "' is open by " + formatted("%.3g", largest(gaps, open)) + " rad or m";
    std::string cure = "assemble() and project_configuration() return a configuration that closes the loops";
    const double speed = std::max(1.0, v.cwiseQuotient(unit).lpNorm<Eigen::Infinity>());
    if (projects() || (open.size <= tolerances::off_loops && fast.size <= tolerances::off_loops * speed)) {
      fault += ", near a position in which rows are dependent: this gap decides whether they lock the mechanism";
    } else if (open.size <= 1e-3 * std::max(1.0, fast.size)) {
      fault = "'" + fast.name + "' does not allow this velocity (" + formatted("%.3g", largest(slips, fast)) +
              " rad/s or m/s along its rows)";
      cure = "project_velocity() returns the nearest allowed velocity";
    }
    const bool required = projects() || function_ == "linearize";
    return function_ + " has no result, because the state violates the loops: " + fault + "; " + cure +
           (required ? "" : ", and check=False disables this check");
  }

  /// Return the message for contradictory constraints, with the constraint of largest residual.
  std::string contradiction() const {
    Matrix J = jacobian();
    Vector required;
    std::string subject = function_, quantity = "velocity";
    if (function_ == "least_motion") {
      const Eigen::Map<const Vector> weight(in_.weight, tree_.nv), x(in_.a ? in_.a : in_.v, tree_.nv);
      required = rows_of(in_.a ? Operation::constraint_bias : Operation::constraint_velocity) - J * x;
      if (in_.rates) required += Eigen::Map<const Vector>(in_.rates, required.size());
      J *= weight.unaryExpr([](double w) { return w > 0.0 ? 1.0 : 0.0; }).asDiagonal();
      const std::string names = in_quotes(fixed_parts(weight));
      subject = "this motion of " + (names.empty() ? "no joint" : names), quantity = "motion of the other joints";
    } else if (computes_acceleration()) {
      required = rows_of(Operation::constraint_bias), quantity = "acceleration";
    } else {
      required = rows_of(Operation::constraint_velocity);
      if (projects() && required.isZero(0.0))  // v = 0 satisfies the velocity constraints, so they are consistent
        return function_ +
               " has no result: this configuration is so near to a singular configuration that the allowed velocities depend on "
               "rounding; use a configuration at a small distance from it";
    }
    const Worst most = worst(required - product(J, least_solution(J, required, 1e-9)).col(0), true);
    return subject + " has no result: no " + quantity +
           " satisfies all constraints in this state; they contradict one another, " + "most at '" + most.name + "' (residual " +
           formatted("%.3g", most.size) + ")";
  }

  /// Return the message for an undetermined result. Its cause is a motion that moves no mass, or nearly dependent rows.
  std::string undecided() const {
    Matrix J = jacobian();
    Vector size = J.colwise().norm().transpose();
    for (double& x : size) x = x > 0.0 ? x : 1.0;
    J *= size.cwiseInverse().asDiagonal();
    const RightFactor left = right_singular_vectors(J.transpose());
    const Vector s = left.values.head(std::min(J.rows(), J.cols()));
    const double first = s.size() ? s(0) : 0.0;
    const Matrix N = null_space(J, count_above(s, tolerances::negligible * first));
    const std::string no_answer = function_ + " has no result: ";
    if (N.cols() > 0) {
      RowMajor M(tree_.nv, tree_.nv);
      functions_.evaluate(Operation::mass_matrix, {in_.q}, M.data());
      const Matrix free = size.cwiseInverse().asDiagonal() * N;
      // inertia of each free motion, relative to the inertia of one tree joint with all bodies that it moves
      const RightFactor inertia = right_singular_vectors(transposed_product(free, product(M, free)));
      const Eigen::Index last = N.cols() - 1;
      const double most = std::max(inertia.values(0), M.cwiseAbs().maxCoeff() * free.col(0).squaredNorm());
      if (inertia.values(last) <= tolerances::negligible * most) {
        const Vector moving = (N * inertia.V.col(last)).cwiseAbs();
        return no_answer + "the loops allow a motion without inertia, of joints " +
               in_quotes(joints([&](int iv, int nv) { return moving.segment(iv, nv).maxCoeff() > 0.1 * moving.maxCoeff(); })) +
               ": give mass to a body that moves in this motion, or armature to one of these joints";
      }
    }
    Eigen::Index weakest = -1;
    const auto counted = [&](Eigen::Index k) { return s(k) > tolerances::rounding * first ? s(k) : 0.0; };
    for (Eigen::Index k = 0; k < s.size(); ++k)
      if (s(k) < tolerances::nearly_singular * first && (weakest < 0 || counted(k) > counted(weakest))) weakest = k;
    const Worst open = worst(residual(in_.q), false);
    const bool gap = open.size > 10.0 * tolerances::rounding;
    // exactly dependent rows have a solution, unless gaps of the loops make them inconsistent
    if (weakest < 0 || (counted(weakest) == 0.0 && !gap)) return no_answer + "the result overflows";
    const Vector share = left.V.col(weakest).cwiseAbs();
    const Worst most = worst(share, false);
    std::vector<std::string> names;
    each_constraint_rows([&](const std::string& name, const Constraint& c) {
      if (largest(share, c) > 0.1 * most.size) names.push_back(name);
    });
    return no_answer + "rows of " + in_quotes(names) + " are nearly, but not exactly, dependent in this state (singular value " +
           formatted("%.1g", s(weakest) / first) + " of the largest), so " +
           (gap ? "the gap of " + formatted("%.3g", open.size) + " rad or m at '" + open.name + "'" : "rounding") +
           " decides whether they lock the mechanism; " + (gap ? "project_configuration() closes it; " : "") +
           "if the rows should be redundant, use without_redundant_constraints(); otherwise this is a singular position: use a "
           "state at a small distance from it";
  }

  /// Return the message for a projection that failed, with the constraint that remains open.
  std::string stays_open(const double* q) const {
    const Worst open = worst(residual(q), false);
    constexpr int most = 12;
    std::vector<std::string> numbers;
    for (int k = 0; k < tree_.nq; ++k)
      if (tree_.nq <= most || k < 3 || k >= tree_.nq - 3)
        numbers.push_back(formatted("%.4g", q[k]));
      else if (k == 3)
        numbers.push_back("...");
    return function_ + " does not close the loops from this configuration: '" + open.name + "' still has an error of " +
           formatted("%.3g", open.size) + " rad or m at q = [" + joined(numbers) +
           "]; pass a configuration nearer to a closed one, or use assemble(), which searches farther and reports parts that do "
           "not fit";
  }

  [[noreturn]] void not_realizable(const double* force, bool exact) const {
    const Matrix J = jacobian();
    const std::optional<double> time = in_.time ? std::optional<double>(*in_.time) : std::nullopt;
    const ScaledLoops loops(functions_, in_.q, time, [this](const double*, double* values) {
      std::copy_n(in_.pfaffian_values, tree_.loops.pfaffian_values, values);
    });
    const auto check = [&](const double* x, Operation operation, const std::string& quantity, const std::string& cure) {
      const Eigen::Map<const Vector> rates(x, tree_.nv);
      const Vector required = rows_of(operation), size = J.cwiseAbs() * rates.cwiseAbs() + required.cwiseAbs();
      const Vector unit = loops.row_scale.cwiseInverse(), off = (J * rates - required).cwiseAbs();
      Eigen::Index row;
      if (off.cwiseQuotient(tolerances::allowed * size + tolerances::at_rest * unit).maxCoeff(&row) > 1.0)
        throw NoAnswer("the loops do not allow this motion: its " + quantity + " does not satisfy '" +
                       loops.row_name(static_cast<int>(row)) + "' (" + cure + ")");
    };
    if (exact && tree_.loops.rows > 0) {
      check(in_.v, Operation::constraint_velocity, "velocity", "project_velocity() returns a velocity that does");
      check(in_.a, Operation::constraint_bias, "acceleration", "forward_dynamics() returns an acceleration that does");
    }
    const std::vector<int> motors = actuated_joints(mechanism_);
    const Vector& unit = loops.column_scale;  // the characteristic length makes moments and forces comparable
    const Matrix free = free_motions(J, unit, loops.row_scale).basis;
    const Matrix basis = orthogonal_from(unit.cwiseInverse().asDiagonal() * free).leftCols(free.cols());
    const Matrix effect = unit.asDiagonal() * motor_rows(functions_, in_.q, motors).transpose() *
                          motor_units(mechanism_, motors).cwiseInverse().asDiagonal();
    const Matrix along = transposed_product(basis, effect);
    const int drives = rank(along, tolerances::negligible * effect.norm());
    const Matrix need = transposed_product(basis, unit.cwiseProduct(Eigen::Map<const Vector>(force, tree_.nv)));
    const Matrix left = need - product(along, product(pseudo_inverse(along, drives), need));
    const Vector missing = product(basis, left).col(0).cwiseQuotient(unit);
    if (missing.isZero(0.0)) throw NotRealizable("the actuated joints cannot produce this motion");
    std::vector<std::pair<double, std::string>> parts;
    for (std::size_t j = 0; j < mechanism_.joints().size(); ++j)
      if (const Mechanism::PlacedJoint& at = mechanism_.joints()[j]; !at.closes_a_loop)
        parts.push_back({missing.segment(at.iv, at.nv).norm(), mechanism_.description().joints[j].name});
    std::sort(parts.rbegin(), parts.rend());
    std::vector<std::string> names, listed;
    for (std::size_t k = 0; k < parts.size() && k < 3; ++k)
      if (parts[k].first > 0.1 * parts[0].first)
        listed.push_back(formatted("%.3g", parts[k].first) + " along '" + parts[k].second + "'");
    for (const int j : motors) names.push_back(mechanism_.description().joints[j].name);
    throw NotRealizable(
        (names.empty() ? "a mechanism without motors" : (names.size() == 1 ? "the motor " : "the motors ") + in_quotes(names)) +
        " cannot produce this motion: it also requires efforts of " + joined(listed) + " [N m, N]; the motors drive " +
        std::to_string(drives) + " of " + std::to_string(free.cols()) + " degrees of freedom in this configuration");
  }

 private:
  /// The constraint with the largest rows, and their size.
  struct Worst {
    std::string name;
    double size;
    const Constraint* constraint;
  };

  bool projects() const { return function_ == "project_velocity" || function_ == "impact"; }
  bool computes_acceleration() const {
    for (const char* name : {"forward_dynamics", "constrained_motion", "reference_member", "linearize"})
      if (function_ == name) return true;
    return function_.rfind("derivatives.forward_dynamics", 0) == 0;
  }
  template <class F> void each_constraint_rows(F f) const {
    for (std::size_t i = 0; i < mechanism_.constraints().size(); ++i)
      if (const Constraint& c = tree_.loops.constraint[mechanism_.constraints()[i]]; c.rows > 0)
        f(mechanism_.constraint_name(static_cast<int>(i)), c);
  }
  static double largest(const Vector& rows, const Constraint& c) { return rows.segment(c.row, c.rows).lpNorm<Eigen::Infinity>(); }
  static double largest(const Vector& rows, const Worst& of) { return of.constraint ? largest(rows, *of.constraint) : 0.0; }
  Worst worst(const Vector& rows, bool euclidean) const {
    Worst most{"", -1.0, nullptr};
    each_constraint_rows([&](const std::string& name, const Constraint& c) {
      const double size = euclidean ? rows.segment(c.row, c.rows).norm() : largest(rows, c);
      if (size > most.size) most = {name, size, &c};
    });
    return most;
  }
  /// Return the names of the tree joints whose velocities iv .. iv + nv - 1 fulfil a condition.
  template <class F> std::vector<std::string> joints(F condition) const {
    std::vector<std::string> names;
    for (std::size_t j = 0; j < mechanism_.joints().size(); ++j)
      if (const Mechanism::PlacedJoint& at = mechanism_.joints()[j]; !at.closes_a_loop && at.nv > 0 && condition(at.iv, at.nv))
        names.push_back(mechanism_.description().joints[j].name);
    return names;
  }
  /// Return the names of the joints and frames whose motion the caller prescribes.
  std::vector<std::string> fixed_parts(const Vector& weight) const {
    std::vector<std::string> names = joints([&](int iv, int nv) { return !(weight.segment(iv, nv).minCoeff() > 0.0); });
    for (const ConstraintDescription& c : mechanism_.description().constraints)
      if (c.target != Target::none) names.push_back(c.joint.empty() ? c.child : c.joint);
    return names;
  }
  Matrix jacobian() const {
    RowMajor J(tree_.loops.rows, tree_.nv);
    functions_.evaluate(Operation::constraint_jacobian, {in_.q, in_.time, in_.pfaffian_values}, J.data());
    return J;
  }
  Vector residual(const double* q) const {
    Vector phi(tree_.loops.rows);
    functions_.evaluate(Operation::constraint_residual, {q, in_.time, in_.pfaffian_values}, phi.data());
    return phi;
  }
  Vector rows_of(Operation operation) const {
    Vector rows(tree_.loops.rows);
    if (operation == Operation::constraint_bias)
      functions_.evaluate(operation, {in_.q, in_.v, in_.time, in_.pfaffian_values}, rows.data());
    else
      functions_.evaluate(operation, {in_.q, in_.time, in_.pfaffian_values}, rows.data());
    return rows;
  }

  const StateFunctions& functions_;
  const Mechanism& mechanism_;
  const Tree& tree_;
  const std::string& function_;
  StateInputs in_;
  std::vector<double> values_;
};

}  // namespace

std::string explanation(const StateFunctions& functions, const std::string& function, int status, const StateInputs& inputs,
                        const double* result, const RowsOfState& rows) {
  const Explanation why(functions, function, inputs, rows);
  if (status == off_loops) return why.off_loops();
  if (status == inconsistent_constraints) return why.contradiction();
  return result ? why.stays_open(result) : why.undecided();
}

void raise_not_realizable(const StateFunctions& functions, const StateInputs& inputs, const double* force, bool exact,
                          const RowsOfState& rows) {
  const std::string function = "actuator_efforts";
  Explanation(functions, function, inputs, rows).not_realizable(force, exact);
}

}  // namespace sarrus
