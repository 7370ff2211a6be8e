// Mobility and internal efforts of one mechanism at one configuration, returned as structs of results (results.hpp).
#include "mobility.hpp"

#include <algorithm>
#include <cmath>

#include "../kernels/batch.hpp"
#include "../mobility/actuation.hpp"
#include "../mobility/effective_inertia.hpp"
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

/// Return bases (states, nu, k) of the internal efforts, and the number of columns of each; narrower bases are padded with zero columns. A state that
/// is not finite has -1 columns and NaN.
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
  m.def("internal_efforts", &internal_efforts_of, py::arg("mechanism"), py::arg("q"), py::arg("actuated"), py::arg("time"));
}

}  // namespace sarrus::bindings
