// Mobility and internal efforts of one mechanism at one configuration, as structs of results (results.hpp).
#include "mobility.hpp"

#include <algorithm>
#include <cmath>

#include "../kernels/batch.hpp"
#include "../mobility/actuation.hpp"
#include "../mobility/joint_wrenches.hpp"
#include "../model/text.hpp"
#include "from_python.hpp"
#include "results.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Row = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// Return rows that depend on q, which Python evaluates.
RowsOfState rows_from_python(const py::handle& self, const Tree& tree) {
  if (tree.loops.pfaffian_values == 0) return {};
  return [self, &tree](const double* q, double* values) {
    const py::object numbers =
        py::handle(bindings::from_python().pfaffian_values)(self, py::array_t<double>(tree.nq, q), py::none(), false);
    const py::object plain = as_plain(numbers.ptr(), "Pfaffian rows");
    std::copy_n(reinterpret_cast<const double*>(proxy(plain.ptr())->data), tree.loops.pfaffian_values, values);
  };
}

const double* configuration(const Row& q, const Tree& tree) {
  if (q.ndim() != 1 || q.shape(0) != tree.nq) throw py::value_error("one configuration is needed");
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

/// Return bases (states, nu, most) of internal efforts, each followed by zero columns, and their sizes: -1 and NaN for states that are not finite.
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

}  // namespace

void bind_mobility(py::module_& m) {
  m.def("mobility", &mobility_of, py::arg("mechanism"), py::arg("q"), py::arg("actuated"), py::arg("output"),
        py::arg("components"), py::arg("time"));
  m.def("indeterminate_reactions", &indeterminate_reactions_of, py::arg("mechanism"), py::arg("q"), py::arg("time"));
  m.def("constraint_rank", &constraint_rank_of, py::arg("mechanism"), py::arg("q"), py::arg("without"), py::arg("time"));
  m.def("internal_efforts", &internal_efforts_of, py::arg("mechanism"), py::arg("q"), py::arg("actuated"), py::arg("time"));
}

}  // namespace sarrus::bindings
