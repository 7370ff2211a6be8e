#include "control.hpp"

#include <pybind11/numpy.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "../control/quadratic_programme.hpp"
#include "arrays.hpp"
#include "described.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Count = py::ssize_t;
using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

TaskKind to_kind(const std::string& name) {
#define SARRUS_TASK_KIND(kind) \
  if (name == #kind) return TaskKind::kind;
  SARRUS_TASK_KINDS(SARRUS_TASK_KIND)
#undef SARRUS_TASK_KIND
  throw std::invalid_argument("tasks: no kind '" + name + "'");
}

Task to_task(const Mechanism& m, const py::dict& d, std::deque<Law>& laws) {
  const auto keep = [&](const char* key) {
    std::vector<const Law*> kept;
    for (const py::handle& h : d[key].cast<py::list>()) {
      if (!h.is_none()) laws.push_back(to_law(h));
      kept.push_back(h.is_none() ? nullptr : &laws.back());
    }
    return kept;
  };
  Task t{};
  t.kind = to_kind(d["kind"].cast<std::string>());
  t.level = d["level"].cast<int>(), t.hard = t.level == 0;
  t.component = d["component"].cast<std::vector<int>>();
  const auto frames = d["frames"].cast<std::vector<std::string>>();
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const auto& placed = m.frames().at(frames[i]);
    t.link[i] = placed.link, t.X[i] = placed.X;
  }
  t.target_axes = d["target_axes"].cast<bool>();
  t.iq = d["iq"].cast<std::vector<int>>(), t.iv = d["iv"].cast<std::vector<int>>();
  t.beside = d["beside"].cast<std::vector<int>>();
  for (const bool turns : d["turns"].cast<std::vector<bool>>()) t.turns.push_back(turns);
  for (const bool angular : d["angular"].cast<std::vector<bool>>()) t.angular.push_back(angular);
  t.contact = d["contact"].cast<int>();
  t.target = keep("target"), t.push = keep("push");
  t.stiffness = d["stiffness"].cast<std::vector<double>>(), t.damping = d["damping"].cast<std::vector<double>>();
  t.yielding = d["yielding"].cast<std::vector<double>>();
  t.parameter = d["parameter"].cast<int>(), t.given = d["given"].cast<int>(), t.iz = d["iz"].cast<int>();
  return t;
}

/// What a controller answers in one state, with all that a report shows.
class TaskController {
 public:
  TaskController(const py::object& mechanism, const py::dict& described, const Numbers& parameters)
      : mechanism_(built(mechanism)),
        tree_(mechanism_.tree()),
        law_(to_task_control(mechanism_, described)),
        parameters_(parameters.data(), parameters.data() + parameters.size()) {
    if (static_cast<int>(parameters_.size()) != law_.parameters) throw std::length_error("tasks: wrong number of parameters");
    for (const Task& t : law_.task) rows_ += t.rows();
  }

  /// (nv,), or None where report() says why there is none.
  py::object tau(double time, const py::object& q, const py::object& v) const {
    const Count nv = tree_.nv;
    double* to;
    py::object answer = py::reinterpret_steal<py::object>(new_array(1, &nv, &to));
    TaskReport<double> report;
    report.tau = to;
    int conflict = 0;
    report.conflict = &conflict;
    return ask(time, q, v, nullptr, nullptr, report) == fine && conflict == 0 ? answer : py::none();
  }

  py::dict report(double time, const py::object& q, const py::object& v, const Numbers& given, const Numbers& z) const {
    if (given.size() != law_.given || z.size() != law_.states) throw std::length_error("tasks: wrong sizes");
    Numbers x(law_.unknowns()), a(tree_.nv), tau(tree_.nv), multipliers(tree_.loops.rows), error(rows_), missed(rows_);
    py::array_t<signed char> active(limits());
    double damping = 0.0;
    int conflict = 0;
    const TaskReport<double> report = {x.mutable_data(),
                                       a.mutable_data(),
                                       tau.mutable_data(),
                                       multipliers.mutable_data(),
                                       error.mutable_data(),
                                       missed.mutable_data(),
                                       &damping,
                                       active.mutable_data(),
                                       &conflict};
    std::fill(active.mutable_data(), active.mutable_data() + active.size(), static_cast<signed char>(0));
    const double status = ask(time, q, v, given.data(), z.data(), report);
    py::dict d;
    d["status"] = static_cast<int>(status), d["conflict"] = conflict, d["damping"] = damping;
    d["x"] = x, d["acceleration"] = a, d["tau"] = tau, d["multipliers"] = multipliers;
    d["error"] = error, d["missed"] = missed, d["active"] = active;
    return d;
  }

  /// Seconds per call from C++, in states (n, nq) and (n, nv) in turn.
  double time_one_state(const Numbers& q, const Numbers& v, int repeats) const {
    const Count n = q.shape(0);
    std::vector<double> motor(tree_.nv + tree_.loop_nv), z(law_.states + 1), given(law_.given + 1);
    double tau_sum = 0.0;
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < repeats; ++k) {
      std::fill(motor.begin(), motor.end(), 0.0);
      kernels().tasks(tree_, law_, parameters_.data(), given.data(), 0.0, q.data() + k % n * tree_.nq,
                      v.data() + k % n * tree_.nv, z.data(), motor.data(), {});
      tau_sum += motor[0];
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return tau_sum == 0.1234 ? 0.0 : seconds / repeats;
  }

 private:
  Count limits() const {
    Count n = static_cast<Count>(law_.motor.size() + law_.limits.joint.size());
    for (const TaskContact& c : law_.contact) n += c.rows == 1 ? 1 : 1 + 2 * (c.rows - 1);
    return law_.limited ? n : 0;
  }

  double ask(double time, const py::object& q, const py::object& v, const double* given, const double* z,
             const TaskReport<double>& report) const {
    const py::object kept_q = as_plain(q.ptr(), "q"), kept_v = as_plain(v.ptr(), "v");
    const auto numbers = [](const py::object& o, const char* name, int n) {
      const Array* a = proxy(o.ptr());
      if (a->nd != 1 || a->dimensions[0] != n)
        throw py::value_error(std::string(name) + " has the shape " + shape_text(a->dimensions, a->nd) + ", not (" +
                              std::to_string(n) + ",)");
      return reinterpret_cast<const double*>(a->data);
    };
    const double *x = numbers(kept_q, "q", tree_.nq), *u = numbers(kept_v, "v", tree_.nv);
    const auto finite = [](const double* p, int n) { return std::all_of(p, p + n, [](double e) { return std::isfinite(e); }); };
    if (!std::isfinite(time) || !finite(x, tree_.nq) || !finite(u, tree_.nv)) return unsound;
    for (const int i : mechanism_.quaternions())
      if (x[i] * x[i] + x[i + 1] * x[i + 1] + x[i + 2] * x[i + 2] + x[i + 3] * x[i + 3] < 1e-12) return unsound;
    std::vector<double> motor(tree_.nv + tree_.loop_nv), none(law_.states + law_.given);
    return kernels().tasks(tree_, law_, parameters_.data(), given ? given : none.data(), time, x, u, z ? z : none.data(),
                           motor.data(), report);
  }

  const Mechanism& mechanism_;
  const Tree& tree_;
  TaskControl law_;
  std::vector<double> parameters_;
  int rows_ = 0;
};

}  // namespace

TaskControl to_task_control(const Mechanism& m, const py::dict& d) {
  TaskControl c;
  c.motor = d["motors"].cast<std::vector<int>>();
  for (const bool angular : d["angular"].cast<std::vector<bool>>()) c.angular.push_back(angular);
  c.together = d["together"].cast<std::vector<int>>();
  c.effort_weight = d["effort_weight"].cast<std::vector<double>>(), c.force_arm = d["force_arm"].cast<double>();
  c.laws = std::make_shared<std::deque<Law>>();
  for (const py::handle& t : d["tasks"].cast<py::list>()) c.task.push_back(to_task(m, t.cast<py::dict>(), *c.laws));
  for (const py::handle& h : d["contacts"].cast<py::list>()) {
    const auto k = h.cast<py::dict>();
    const auto& placed = m.frames().at(k["frame"].cast<std::string>());
    TaskContact contact{};
    contact.link = placed.link, contact.in_world = k["in_world"].cast<bool>();
    contact.X = placed.X;
    const Transform<double> axes =
        to_transform(k["axes"]);  // its place and axes in the frame, or its place there and its axes in the world
    contact.X.p = placed.X.R * axes.p + placed.X.p;
    contact.X.R = contact.in_world ? axes.R : placed.X.R * axes.R;
    contact.rows = k["rows"].cast<int>();
    contact.friction = k["friction"].cast<double>(), contact.torsion = k["torsion"].cast<double>();
    const auto half = k["half"].cast<std::array<double, 2>>();
    contact.half_x = half[0], contact.half_y = half[1], contact.damping = k["damping"].cast<double>();
    c.contact.push_back(contact);
  }
  const auto limits = d["limits"].cast<py::dict>();
  c.limited = d["limited"].cast<bool>();
  c.limits.effort_lower = limits["effort_lower"].cast<std::vector<double>>();
  c.limits.effort_upper = limits["effort_upper"].cast<std::vector<double>>();
  c.limits.power = limits["power"].cast<std::vector<double>>(), c.limits.horizon = limits["horizon"].cast<double>();
  for (const auto& [iq, iv, turns, lower, upper, speed, braking, near] :
       limits["joints"].cast<std::vector<std::tuple<int, int, bool, double, double, double, double, double>>>())
    c.limits.joint.push_back({iq, iv, turns, lower, upper, speed, braking, near});
  c.levels = d["levels"].cast<int>(), c.parameters = d["parameters"].cast<int>(), c.given = d["given"].cast<int>();
  c.states = d["states"].cast<int>(), c.drives_loop_joints = d["drives_loop_joints"].cast<bool>();
  c.solve = &solve_quadratic_programme;
  return c;
}

void bind_control(py::module_& m) {
  py::class_<TaskController>(m, "TaskController")
      .def(py::init<const py::object&, const py::dict&, const Numbers&>(), py::arg("mechanism"), py::arg("described"),
           py::arg("parameters"), py::keep_alive<1, 2>())
      .def("tau", &TaskController::tau, py::arg("t"), py::arg("q"), py::arg("v"))
      .def("report", &TaskController::report, py::arg("t"), py::arg("q"), py::arg("v"), py::arg("given"), py::arg("z"))
      .def("time_one_state", &TaskController::time_one_state, py::arg("q"), py::arg("v"), py::arg("repeats"));
  m.def(
      "quadratic_programme",
      [](const Numbers& H, const Numbers& f, const Numbers& C, const Numbers& lower, const Numbers& upper) {
        const Count n = f.size(), rows = lower.size();
        if (H.size() != n * n || C.size() != n * rows || upper.size() != rows)
          throw std::length_error("quadratic programme: wrong sizes");
        Numbers y(n), lambda(rows);
        const int flag = solve_quadratic_programme(static_cast<int>(n), static_cast<int>(rows), H.data(), f.data(), C.data(),
                                                   lower.data(), upper.data(), y.mutable_data(), lambda.mutable_data());
        return py::make_tuple(flag, y, lambda);
      },
      py::arg("H"), py::arg("f"), py::arg("C"), py::arg("lower"), py::arg("upper"),
      "min 1/2 y^T H y + f^T y with lower <= C y <= upper: (flag, y, multipliers); flag 1, or -1 where no y satisfies all.");
}

}  // namespace sarrus::bindings
