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
#include "../mobility/joint_wrenches.hpp"
#include "../mobility/mobility.hpp"
#include "../model/text.hpp"
#include "from_python.hpp"
#include "results.hpp"
#include "state.hpp"

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
  return as_python(result);
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

/// Return bases (states, nu, k) of the internal efforts, and the number of columns of each; smaller bases are padded with zero columns. A state that
/// is not finite has the number -1, and its entries are NaN.
py::tuple internal_efforts_of(const py::object& self, const Row& q, const Names& actuated, const std::optional<Row>& time) {
  const Mechanism& m = built(self);
  const Tree& tree = m.tree();
  const StateFunctions functions(m, kernels());
  const std::vector<int> joints = joints_by_names(m, actuated);
  const py::ssize_t states = q.shape(0);
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
  py::array_t<double> all({states, static_cast<py::ssize_t>(motors), static_cast<py::ssize_t>(most)});
  auto to = all.mutable_unchecked<3>();
  for (py::ssize_t i = 0; i < states; ++i)
    for (Eigen::Index r = 0; r < motors; ++r)
      for (Eigen::Index c = 0; c < most; ++c)
        to(i, r, c) = counts.at(i) < 0 ? std::nan("") : c < bases[i].cols() ? bases[i](r, c) : 0.0;
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
  m.def("internal_efforts", &internal_efforts_of, py::arg("mechanism"), py::arg("q"), py::arg("actuated"), py::arg("time"));
}

}  // namespace sarrus::bindings
