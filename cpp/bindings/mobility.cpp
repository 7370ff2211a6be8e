// Mobility and internal efforts of one mechanism at one configuration, returned as structs of results (results.hpp).
#include "mobility.hpp"

#include <pybind11/eigen.h>

#include <algorithm>
#include <cmath>

#include "../kernels/batch.hpp"
#include "../mobility/actuation.hpp"
#include "../mobility/effective_inertia.hpp"
#include "../mobility/explanation.hpp"
#include "../mobility/free_floating.hpp"
#include "../mobility/free_motions.hpp"
#include "../mobility/joint_wrenches.hpp"
#include "../mobility/mobility.hpp"
#include "../model/text.hpp"
#include "from_python.hpp"
#include "results.hpp"
#include "state.hpp"
#include "values.hpp"

namespace sarrus::bindings {

RowsOfState rows_from_python(const py::handle& self, const Tree& tree) {
  if (tree.loops.pfaffian_values == 0) return {};
  return [self, &tree](const double* q, double* values) {
    const py::object numbers =
        py::handle(bindings::from_python().pfaffian_values)(self, py::array_t<double>(tree.nq, q), py::none(), false);
    const py::object plain = as_plain(numbers.ptr(), "Pfaffian rows");
    std::copy_n(reinterpret_cast<const double*>(proxy(plain.ptr())->data), tree.loops.pfaffian_values, values);
  };
}

namespace {

using Row = py::array_t<double, py::array::c_style | py::array::forcecast>;

const double* configuration(const Row& q, const Tree& tree) {
  if (q.ndim() != 1 || q.shape(0) != tree.nq) throw py::value_error("expected one configuration (nq,)");
  return q.data();
}

py::dict mobility_of(const py::object& self, const Row& q, Names actuated, std::optional<std::string> output,
                     std::vector<int> components, std::optional<double> time) {
  const Mechanism& m = built(self);
  if (output && !m.find_frame(*output)) no_such_name("frame", *output, m.frame_names());
  const MobilityOptions options = {std::move(actuated), std::move(output), std::move(components), time};
  Mobility result = mobility({m, kernels()}, configuration(q, m.tree()), options, rows_from_python(self, m.tree()));
  const py::object text = to_text(report(result));
  py::dict fields = as_python(result);
  fields["report"] = text;
  return fields;
}

/// Return the diagonals C and R of scaled constraints at q, and a flag for each row that is true if it restricts positions. `values`: values of
/// rows that the caller supplies; without a value, they are evaluated by Python. With `lengths`, return a row of each diagonal for each length.
py::tuple loop_scales_of(const py::object& self, const Row& q, const std::optional<double>& time,
                         const std::optional<Row>& values, const std::optional<Vector>& lengths) {
  const Mechanism& m = built(self);
  const StateFunctions functions(m, kernels());
  RowsOfState rows = rows_from_python(self, m.tree());
  if (values) rows = [&values](const double*, double* out) { std::copy_n(values->data(), values->size(), out); };
  const ScaledLoops loops(functions, configuration(q, m.tree()), time, rows);
  const Eigen::Array<bool, Eigen::Dynamic, 1> holonomic =
      Eigen::Map<const Eigen::Array<char, Eigen::Dynamic, 1>>(
          std::vector<char>(loops.holonomic.begin(), loops.holonomic.end()).data(), m.tree().loops.rows)
          .cast<bool>();
  if (!lengths) return py::make_tuple(loops.column_scale, loops.row_scale, holonomic);
  RowMajor columns(lengths->size(), m.tree().nv), all(lengths->size(), m.tree().loops.rows);
  for (Eigen::Index i = 0; i < lengths->size(); ++i) {
    const auto [C, R] = loops.scales_for((*lengths)(i));
    columns.row(i) = C.transpose(), all.row(i) = R.transpose();
  }
  return py::make_tuple(columns, all, holonomic);
}

py::dict indeterminate_reactions_of(const py::object& self, const Row& q, std::optional<double> time) {
  const Mechanism& m = built(self);
  Named<Names> components =
      indeterminate_reactions({m, kernels()}, configuration(q, m.tree()), time, rows_from_python(self, m.tree()));
  return as_python(components);
}

py::dict constraint_rank_of(const py::object& self, const Row& q, const std::optional<std::string>& without,
                            std::optional<double> time) {
  const Mechanism& m = built(self);
  ConstraintRank result =
      constraint_rank({m, kernels()}, configuration(q, m.tree()), without, time, rows_from_python(self, m.tree()));
  return as_python(result);
}

/// Return the joints with these names; without names, those that have a motor in the description.
std::vector<int> motors_by_names(const Mechanism& m, const std::optional<Names>& actuated) {
  return actuated ? joints_by_names(m, *actuated) : actuated_joints(m);
}

/// Return the actuation matrices (..., nv, nu) of configurations (..., nq). A configuration that is not finite has NaN.
py::array_t<double> actuation_matrix_of(const py::object& self, const Row& q, const std::optional<Names>& actuated) {
  const Mechanism& m = built(self);
  const Tree& tree = m.tree();
  const std::vector<int> joints = motors_by_names(m, actuated);
  py::ssize_t motors = 0, states = 1;
  for (const int j : joints) motors += m.description().joints[j].nv;
  std::vector<py::ssize_t> shape(q.shape(), q.shape() + q.ndim() - 1);
  for (const py::ssize_t n : shape) states *= n;
  shape.push_back(tree.nv), shape.push_back(motors);
  py::array_t<double> all(shape);
  for (py::ssize_t i = 0; i < states; ++i) {
    const double* at = q.data() + i * tree.nq;
    Eigen::Map<RowMajor> S(all.mutable_data() + i * tree.nv * motors, tree.nv, motors);
    if (finite(at, tree.nq))
      S = motor_rows({m, kernels()}, at, joints).transpose();
    else
      S.setConstant(std::nan(""));
  }
  return all;
}

/// Return bases (..., nu, k) of the internal efforts of configurations (..., nq), and the number of columns of each; smaller bases are padded with
/// zero columns. A state that is not finite has the number -1, and its entries are NaN. `time`: (states,).
py::tuple internal_efforts_of(const py::object& self, const Row& q, const std::optional<Names>& actuated,
                              const std::optional<Row>& time) {
  const Mechanism& m = built(self);
  const Tree& tree = m.tree();
  const StateFunctions functions(m, kernels());
  const std::vector<int> joints = motors_by_names(m, actuated);
  const py::ssize_t states = tree.nq ? q.size() / tree.nq : 1;
  std::vector<Matrix> bases(static_cast<std::size_t>(states));
  py::array_t<int> counts(states);
  Eigen::Index motors = 0, most = 0;
  for (const int j : joints) motors += m.description().joints[j].nv;
  for (py::ssize_t i = 0; i < states; ++i) {
    const double* at = q.data() + i * tree.nq;
    counts.mutable_at(i) = -1;
    if (!finite(at, tree.nq) || (time && !std::isfinite(time->at(i)))) continue;
    const ScaledLoops loops(functions, at, time ? std::optional<double>(time->at(i)) : std::nullopt,
                            rows_from_python(self, tree));
    bases[i] = internal_efforts(loops, at, joints);
    counts.mutable_at(i) = static_cast<int>(bases[i].cols());
    most = std::max(most, bases[i].cols());
  }
  std::vector<py::ssize_t> shape(q.shape(), q.shape() + q.ndim() - 1);
  shape.push_back(motors), shape.push_back(most);
  py::array_t<double> all(shape);
  double* to = all.mutable_data();
  for (py::ssize_t i = 0; i < states; ++i)
    for (Eigen::Index r = 0; r < motors; ++r)
      for (Eigen::Index c = 0; c < most; ++c)
        *to++ = counts.at(i) < 0 ? std::nan("") : c < bases[i].cols() ? bases[i](r, c) : 0.0;
  return py::make_tuple(all, counts);
}

py::array_t<double> effective_inertia_of(const py::object& self, const std::vector<std::vector<int>>& groups, const Row& q) {
  const Mechanism& m = built(self);
  const RowMajor inertia =
      effective_inertia({m, kernels()}, groups, configuration(q, m.tree()), 1, rows_from_python(self, m.tree()));
  return py::array_t<double>(inertia.size(), inertia.data());
}

void check_interrupt() {
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}
FloatingBase floating_base(const py::object& self) {
  const Mechanism& m = built(self);
  return {{m, kernels()}, rows_from_python(self, m.tree()), "a floating base", check_interrupt};
}
/// Return velocities (states, nv) for which frames have the given velocities (states, all components). If there is none, the row is NaN, or an error
/// is raised if `raises` is true.
RowMajor resolved_rates_of(const py::object& self, const RowMajor& q,
                           const std::vector<std::pair<std::string, std::vector<int>>>& frames, const RowMajor& velocities,
                           const std::vector<int>& still, const std::optional<RowMajor>& momentum,
                           const std::optional<Vector>& time, bool raises) {
  const FloatingBase base = floating_base(self);
  RowMajor v = RowMajor::Constant(q.rows(), built(self).tree().nv, std::nan(""));
  for (Eigen::Index i = 0; i < q.rows(); ++i) {
    if (!q.row(i).allFinite() || !velocities.row(i).allFinite()) continue;
    std::vector<FrameVelocity> motions;
    Eigen::Index next = 0;
    for (const auto& [name, components] : frames) {
      const auto count = static_cast<Eigen::Index>(components.size());
      motions.push_back({name, components, velocities.row(i).segment(next, count)});
      next += count;
    }
    FloatingOptions options{still, {}};
    if (momentum) options.momentum = Vector(momentum->row(i));
    try {
      v.row(i) = base.resolved_rate(q.row(i).data(), motions, options, time ? std::optional<double>((*time)(i)) : std::nullopt)
                     .transpose();
    } catch (const NoAnswer&) {
      if (raises) throw;
    }
  }
  return v;
}
/// Return bases (states, nv, most), padded with zero columns, their numbers of columns, and projectors. A state that is not finite has the number -1,
/// and its entries are NaN.
py::tuple reaction_null_spaces_of(const py::object& self, const RowMajor& q, const std::vector<int>& components,
                                  const std::optional<Vector>& time) {
  const FloatingBase base = floating_base(self);
  const int nv = built(self).tree().nv, n = nv - 6;
  const auto states = static_cast<py::ssize_t>(q.rows());
  std::vector<ReactionNullSpace> found(static_cast<std::size_t>(states));
  py::array_t<std::int64_t> freedom(states);
  Eigen::Index most = 0;
  for (py::ssize_t i = 0; i < states; ++i) {
    const std::optional<double> now = time ? std::optional<double>((*time)(i)) : std::nullopt;
    const bool finite = q.row(i).allFinite() && std::isfinite(now.value_or(0.0));
    if (finite) found[i] = base.reaction_null_space(q.row(i).data(), components, now);
    freedom.mutable_at(i) = finite ? found[i].basis.cols() : -1;
    most = std::max<Eigen::Index>(most, finite ? found[i].basis.cols() : 1);
  }
  py::array_t<double> bases({states, py::ssize_t(nv), py::ssize_t(most)}), projectors({states, py::ssize_t(n), py::ssize_t(n)});
  auto basis = bases.mutable_unchecked<3>(), projector = projectors.mutable_unchecked<3>();
  for (py::ssize_t i = 0; i < states; ++i) {
    const bool finite = freedom.at(i) >= 0;
    for (int r = 0; r < nv; ++r)
      for (Eigen::Index c = 0; c < most; ++c)
        basis(i, r, c) = !finite ? std::nan("") : c < found[i].basis.cols() ? found[i].basis(r, c) : 0.0;
    for (int r = 0; r < n; ++r)
      for (int c = 0; c < n; ++c) projector(i, r, c) = finite ? found[i].projector(r, c) : std::nan("");
  }
  return py::make_tuple(bases, freedom, projectors);
}
py::dict free_floating_motion_of(const py::object& self, const Vector& q, const py::function& velocity,
                                 const std::vector<double>& times, double step, const std::optional<Vector>& momentum) {
  FreeFloatingMotion run = floating_base(self).motion(
      q, [&](double t, const Vector& now) { return velocity(t, now).cast<Vector>(); }, times, step, momentum);
  return as_python(run);
}
/// `way_points`: for each frame its name, true if its orientation is prescribed too, and rows of 12 numbers, [R p].
py::dict free_floating_path_of(const py::object& self, const Vector& q,
                               const std::vector<std::tuple<std::string, bool, RowMajor>>& way_points,
                               const std::vector<double>& times, const std::vector<int>& still,
                               const std::optional<Vector>& momentum, double step, double tolerance) {
  std::vector<WayPoints> all;
  for (const auto& [name, turns, rows] : way_points) {
    all.push_back({name, turns, {}});
    for (Eigen::Index k = 0; k < rows.rows(); ++k) {
      const Eigen::Map<const Eigen::Matrix<double, 3, 4, Eigen::RowMajor>> X(rows.row(k).data());
      all.back().poses.push_back({X.leftCols<3>(), X.col(3)});
    }
  }
  FreeFloatingMotion run = floating_base(self).path(q, all, times, {still, momentum}, step, tolerance);
  return as_python(run);
}

std::string explanation_of(const py::object& self, const std::string& function, int status, const Vector& q,
                           const std::optional<Vector>& v, const std::optional<Vector>& a, const std::optional<Vector>& weight,
                           const std::optional<Vector>& rates, const std::optional<double>& time,
                           const std::optional<Vector>& pfaffian_values, const std::optional<Vector>& result) {
  const Mechanism& m = built(self);
  const auto data = [](const std::optional<Vector>& x) { return x ? x->data() : nullptr; };
  const StateInputs inputs = {
      q.data(), data(v), data(a), data(weight), data(rates), time ? &*time : nullptr, data(pfaffian_values)};
  return explanation({m, kernels()}, function, status, inputs, data(result), rows_from_python(self, m.tree()));
}

void raise_not_realizable_of(const py::object& self, const Vector& q, const Vector& v, const Vector& a, const Vector& force,
                             const std::optional<double>& time, bool exact) {
  const Mechanism& m = built(self);
  raise_not_realizable({m, kernels()}, {q.data(), v.data(), a.data(), nullptr, nullptr, time ? &*time : nullptr}, force.data(),
                       exact, rows_from_python(self, m.tree()));
}

/// Matrices (..., rows, columns) of a batch.
class Matrices {
 public:
  using Array = py::array_t<double, py::array::c_style | py::array::forcecast>;
  Matrices(Array x) : x_(std::move(x)), lead_(x_.shape(), x_.shape() + x_.ndim() - 2) {
    for (const py::ssize_t n : lead_) count_ *= n;
  }
  /// Return an array for matrices of this shape, filled with x.
  Array sized(Eigen::Index rows, Eigen::Index columns, double x = 0.0) const {
    std::vector<py::ssize_t> shape = lead_;
    shape.insert(shape.end(), {static_cast<py::ssize_t>(rows), static_cast<py::ssize_t>(columns)});
    Array result(shape);
    std::fill_n(result.mutable_data(), result.size(), x);
    return result;
  }
  py::ssize_t count() const { return count_; }
  Eigen::Index rows() const { return x_.shape(x_.ndim() - 2); }
  Eigen::Index columns() const { return x_.shape(x_.ndim() - 1); }
  Eigen::Map<const RowMajor> operator[](py::ssize_t i) const { return {x_.data() + i * rows() * columns(), rows(), columns()}; }
  static void set(Array& to, py::ssize_t i, const Matrix& value) {
    const Eigen::Index rows = to.shape(to.ndim() - 2), columns = to.shape(to.ndim() - 1);
    Eigen::Map<RowMajor>(to.mutable_data() + i * rows * columns, rows, columns).leftCols(value.cols()) = value;
  }
  const std::vector<py::ssize_t>& lead() const { return lead_; }

 private:
  Array x_;
  std::vector<py::ssize_t> lead_;
  py::ssize_t count_ = 1;
};

/// Return bases (..., nv, most), padded with zero columns, their numbers of columns (...), and pseudo-inverses (..., nv, rows). A state that is not
/// finite has the number -1, and its entries are NaN.
py::tuple free_motions_of(const Matrices::Array& jacobians, const Vector& column_scale, const Vector& row_scale) {
  const Matrices J(jacobians);
  std::vector<FreeMotions> free(static_cast<std::size_t>(J.count()));
  py::array_t<std::int64_t> freedom(J.lead());
  Eigen::Index most = 0;
  for (py::ssize_t i = 0; i < J.count(); ++i) {
    const bool finite = J[i].allFinite();
    if (finite) free[i] = free_motions(J[i], column_scale, row_scale);
    freedom.mutable_data()[i] = finite ? free[i].basis.cols() : -1;
    most = std::max<Eigen::Index>(most, finite ? free[i].basis.cols() : 1);
  }
  Matrices::Array bases = J.sized(J.columns(), most), inverses = J.sized(J.columns(), J.rows());
  for (py::ssize_t i = 0; i < J.count(); ++i) {
    const bool finite = freedom.data()[i] >= 0;
    Matrices::set(bases, i, finite ? free[i].basis : Matrix::Constant(J.columns(), most, std::nan("")));
    Matrices::set(inverses, i, finite ? free[i].inverse : Matrix::Constant(J.columns(), J.rows(), std::nan("")));
  }
  return py::make_tuple(bases, freedom, inverses);
}
/// Zero columns of N are padding. The result is NaN if N or M is not finite.
Matrices::Array constrained_inverse_of(const Matrices::Array& motions, const Matrices::Array& masses) {
  const Matrices N(motions), M(masses);
  Matrices::Array all = N.sized(N.rows(), N.rows(), std::nan(""));
  for (py::ssize_t i = 0; i < N.count(); ++i) {
    if (!N[i].allFinite() || !M[i].allFinite()) continue;
    Eigen::Index count = N.columns();
    while (count > 0 && N[i].col(count - 1).isZero(0.0)) --count;
    Matrices::set(all, i, constrained_inverse(N[i].leftCols(count), M[i]));
  }
  return all;
}
/// Return phi_c (..., 6, 6 - nv) and psi (..., 6, nv) of motion spaces (..., 6, nv); NaN for a motion space that is not finite.
py::tuple joint_bases_of(const Matrices::Array& spaces) {
  const Matrices phi(spaces);
  const Eigen::Index nv = phi.columns();
  Matrices::Array phi_c = phi.sized(6, 6 - nv, std::nan("")), psi = phi.sized(6, nv, std::nan(""));
  for (py::ssize_t i = 0; i < phi.count(); ++i) {
    if (!phi[i].allFinite()) continue;
    const JointBases bases = joint_bases(phi[i]);
    Matrices::set(phi_c, i, bases.phi_c), Matrices::set(psi, i, bases.psi);
  }
  return py::make_tuple(phi_c, psi);
}
Matrices::Array orthonormal_basis_of(const Matrices::Array& projectors, int count) {
  const Matrices P(projectors);
  Matrices::Array bases = P.sized(P.rows(), count);
  for (py::ssize_t i = 0; i < P.count(); ++i) Matrices::set(bases, i, orthonormal_basis(P[i], count));
  return bases;
}
/// `across`: (..., loop_nv, nv); `tau`: (..., nv, 1). Returns (..., loop_nv, 1).
Matrices::Array efforts_of_closing_motors_of(const py::object& self, const Matrices::Array& across, const Matrices::Array& tau) {
  const Matrices J(across), force(tau);
  Matrices::Array all = J.sized(J.rows(), 1);
  for (py::ssize_t i = 0; i < J.count(); ++i)
    Matrices::set(all, i, efforts_of_closing_motors(built(self), J[i], force[i].col(0)));
  return all;
}

/// `q`: (..., nq, 1); `wrenches`: (..., constraints, 6). Returns (..., joints, 6).
Matrices::Array loads_on_tree_of(const py::object& self, const Matrices::Array& q, const Matrices::Array& wrenches) {
  const Mechanism& m = built(self);
  const Matrices states(q), W(wrenches);
  Matrices::Array all = W.sized(static_cast<Eigen::Index>(m.joints().size()), 6);
  for (py::ssize_t i = 0; i < W.count(); ++i) Matrices::set(all, i, loads_on_tree({m, kernels()}, states[i].data(), W[i]));
  return all;
}

/// Return `count` random numbers of the sequence of a seed, beginning with number `first`; they are the same on every machine.
py::array_t<double> uniform_numbers(std::uint64_t seed, std::uint64_t first, py::ssize_t count, double low, double high) {
  RandomNumbers numbers(seed + first * RandomNumbers::step);
  py::array_t<double> all(count);
  for (py::ssize_t k = 0; k < count; ++k) all.mutable_at(k) = numbers.uniform(low, high);
  return all;
}
py::array_t<double> normal_numbers(py::ssize_t count) {
  const Matrix all = RandomNumbers().normal(1, static_cast<int>(count));
  return py::array_t<double>(count, all.data());
}

}  // namespace

void bind_mobility(py::module_& m) {
  m.def("uniform_numbers", &uniform_numbers, py::arg("seed"), py::arg("first"), py::arg("count"), py::arg("low"),
        py::arg("high"));
  m.def("normal_numbers", &normal_numbers, py::arg("count"));
  m.def("mobility", &mobility_of, py::arg("mechanism"), py::arg("q"), py::arg("actuated"), py::arg("output"),
        py::arg("components"), py::arg("time"));
  m.def("indeterminate_reactions", &indeterminate_reactions_of, py::arg("mechanism"), py::arg("q"), py::arg("time"));
  m.def("effective_inertia", &effective_inertia_of, py::arg("mechanism"), py::arg("groups"), py::arg("q"));
  m.def("constraint_rank", &constraint_rank_of, py::arg("mechanism"), py::arg("q"), py::arg("without"), py::arg("time"));
  m.def("resolved_rates", &resolved_rates_of, py::arg("mechanism"), py::arg("q"), py::arg("frames"), py::arg("velocities"),
        py::arg("still"), py::arg("momentum"), py::arg("time"), py::arg("raises"));
  m.def("reaction_null_spaces", &reaction_null_spaces_of, py::arg("mechanism"), py::arg("q"), py::arg("components"),
        py::arg("time"));
  m.def("free_floating_motion", &free_floating_motion_of, py::arg("mechanism"), py::arg("q"), py::arg("velocity"),
        py::arg("times"), py::arg("step"), py::arg("momentum"));
  m.def("free_floating_path", &free_floating_path_of, py::arg("mechanism"), py::arg("q"), py::arg("way_points"), py::arg("times"),
        py::arg("still"), py::arg("momentum"), py::arg("step"), py::arg("tolerance"));
  m.def("explanation", &explanation_of, py::arg("mechanism"), py::arg("function"), py::arg("status"), py::arg("q"),
        py::arg("v") = py::none(), py::arg("a") = py::none(), py::arg("weight") = py::none(), py::arg("rates") = py::none(),
        py::arg("time") = py::none(), py::arg("pfaffian_values") = py::none(), py::arg("result") = py::none());
  m.def("loop_scales", &loop_scales_of, py::arg("mechanism"), py::arg("q"), py::arg("time"), py::arg("values"),
        py::arg("lengths") = py::none());
  m.def("raise_not_realizable", &raise_not_realizable_of, py::arg("mechanism"), py::arg("q"), py::arg("v"), py::arg("a"),
        py::arg("force"), py::arg("time"), py::arg("exact"));
  m.def("free_motions", &free_motions_of, py::arg("jacobians"), py::arg("column_scale"), py::arg("row_scale"));
  m.def("constrained_inverse", &constrained_inverse_of, py::arg("motions"), py::arg("masses"));
  m.def("joint_bases", &joint_bases_of, py::arg("spaces"));
  m.def("orthonormal_basis", &orthonormal_basis_of, py::arg("projectors"), py::arg("count"));
  m.def("loads_on_tree", &loads_on_tree_of, py::arg("mechanism"), py::arg("q"), py::arg("wrenches"));
  m.def("efforts_of_closing_motors", &efforts_of_closing_motors_of, py::arg("mechanism"), py::arg("across"), py::arg("tau"));
  m.def(
      "compliance_roots",
      [](const py::object& self, const std::vector<std::pair<std::string, RowMajor>>& compliance) {
        return compliance_roots(built(self), Named<Matrix>(compliance.begin(), compliance.end()));
      },
      py::arg("mechanism"), py::arg("compliance"));
  m.def("load_places", [](const py::object& self) { return load_places(built(self)); }, py::arg("mechanism"));
  m.def("actuation_matrix", &actuation_matrix_of, py::arg("mechanism"), py::arg("q"), py::arg("actuated"));
  m.def("internal_efforts", &internal_efforts_of, py::arg("mechanism"), py::arg("q"), py::arg("actuated"), py::arg("time"));
}

}  // namespace sarrus::bindings
