#include "contact.hpp"

#include <pybind11/native_enum.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "described.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Count = py::ssize_t;
using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

void require_finite(const Numbers& x, const char* name) {
  if (!std::all_of(x.data(), x.data() + x.size(), [](double number) { return std::isfinite(number); }))
    throw py::value_error(std::string("cone problem: ") + name + " has entries that are not finite");
}

/// Replace infinite ends of intervals by large finite numbers, because kernels assume finite values.
Numbers bounded(const Numbers& ends) {
  Numbers all(ends.size());
  std::transform(ends.data(), ends.data() + ends.size(), all.mutable_data(),
                 [](double x) { return std::clamp(x, -cones::unbounded, cones::unbounded); });
  return all;
}

py::tuple solve_cone_problem(const Numbers& G, const Numbers& w, const Numbers& friction, const Numbers& low, const Numbers& high,
                             const Numbers& guess, const Numbers& slip, const std::vector<std::array<double, 5>>& moments,
                             const std::optional<Numbers>& floor) {
  const Count n = w.size(), contacts = friction.size();
  std::vector<MomentFriction> moment;
  for (const auto& [contact, rows, mu, x, y] : moments)
    moment.push_back({static_cast<int>(contact), static_cast<int>(rows), mu, {x, y}});
  bool in_order = std::is_sorted(moment.begin(), moment.end(), [](auto& a, auto& b) { return a.contact < b.contact; });
  for (const MomentFriction& m : moment) in_order &= m.contact >= 0 && m.contact < contacts && (m.rows == 1 || m.rows == 2);
  ConeProblem problem = {static_cast<int>(contacts),
                         static_cast<int>(n),
                         G.data(),
                         w.data(),
                         friction.data(),
                         nullptr,
                         nullptr,
                         slip.size() ? slip.data() : nullptr,
                         static_cast<int>(moment.size()),
                         moment.data()};
  if (floor) require_finite(*floor, "floor"), problem.floor = floor->data();
  const Count intervals = n - problem.first_interval();
  if (intervals < 0 || !in_order || (floor && floor->size() != contacts) || G.size() != n * n || low.size() != intervals ||
      high.size() != intervals || guess.size() != n || (slip.size() != 0 && slip.size() != 2 * contacts))
    throw std::length_error("cone problem: wrong sizes");
  require_finite(G, "G"), require_finite(w, "w"), require_finite(friction, "friction"), require_finite(guess, "guess");
  require_finite(slip, "slip");
  const Numbers lower = bounded(low), upper = bounded(high);
  problem.low = lower.data(), problem.high = upper.data();
  Numbers p(n), least(n);
  std::copy_n(guess.data(), n, p.mutable_data());
  const ConeSolution solution = kernels().contact.solve(problem, p.mutable_data(), least.mutable_data());
  return py::make_tuple(solution.reached, p, least, solution.natural_map, solution.iterations, solution.stage);
}

/// Compute the response of contacts. Each contact is (first frame, second frame, position of the point or centre on the first, normal in the
/// world, radius, friction, restitution, torsional friction, rolling friction, true for Poisson's restitution). Python has checked the values.
/// If tau is None, the response is to an impact. Returns (status, motion, forces, moments, (natural map, iterations, stage), closing speed).
py::tuple contact_response(const py::object& self, const std::vector<py::tuple>& described, const Numbers& q, const Numbers& v,
                           const std::optional<Numbers>& tau, double time) {
  const Mechanism& m = built(self);
  const Tree& tree = m.tree();
  const Count count = static_cast<Count>(described.size());
  if (q.size() != tree.nq || v.size() != tree.nv || (tau && tau->size() != tree.nv))
    throw std::length_error("contact_response: wrong sizes");
  std::vector<ContactPair> pairs;
  std::vector<double> point, normal, radius;
  for (const py::tuple& t : described) {
    const PlacedFrame &first = m.placed_frame(t[0].cast<std::string>()), &second = m.placed_frame(t[1].cast<std::string>());
    const Vec3<double> p = first.X.p + first.X.R * to_vec3(t[2]), n = to_vec3(t[3]);
    for (int k = 0; k < 3; ++k) point.push_back(p(k)), normal.push_back(n(k));
    radius.push_back(t[4].cast<double>());
    pairs.push_back({first.link, second.link, t[5].cast<double>(), t[6].cast<double>(), t[7].cast<double>(), t[8].cast<double>(),
                     t[9].cast<bool>()});
  }
  Numbers motion(tree.nv), force({count, Count(3)}), moment({count, Count(3)});
  ContactAnswer answer = {motion.mutable_data(), force.mutable_data(), moment.mutable_data(), {}, 0.0};
  const StateContacts contacts = {static_cast<int>(count), pairs.data(), point.data(), normal.data(), radius.data()};
  const double status = kernels().contact.respond(tree, contacts, time, q.data(), v.data(), tau ? tau->data() : nullptr, answer);
  return py::make_tuple(static_cast<Status>(static_cast<int>(status)), motion, force, moment,
                        py::make_tuple(answer.cones.natural_map, answer.cones.iterations, answer.cones.stage), answer.speed);
}

}  // namespace

void bind_contact(py::module_& m) {
  m.def("cone_problem", &solve_cone_problem, py::arg("G"), py::arg("w"), py::arg("friction"), py::arg("low"), py::arg("high"),
        py::arg("guess"), py::arg("slip"), py::arg("moments") = std::vector<std::array<double, 5>>(),
        py::arg("floor") = py::none(), "(reached, p, least p, natural map, iterations, stage) of cpp/contact/cone_solver.hpp.");
  m.def("contact_response", &contact_response, py::arg("mechanism"), py::arg("contacts"), py::arg("q"), py::arg("v"),
        py::arg("tau"), py::arg("time"));
}

}  // namespace sarrus::bindings
