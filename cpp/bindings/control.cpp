#include "control.hpp"

#include <pybind11/numpy.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "../control/quadratic_programme.hpp"
#include "arrays.hpp"
#include "described.hpp"
#include "fields.hpp"
#include "from_python.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Count = py::ssize_t;
using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// Call visit(kind), with default values, for kind number I of the list and all kinds after it.
template <int I = 0, class Visit> void each_task(Visit&& visit) {
  if constexpr (I < std::variant_size_v<AnyTask>) visit(std::variant_alternative_t<I, AnyTask>()), each_task<I + 1>(visit);
}

// Categories of fields, by type; they determine the form of the values from Python: see SORTS in task_terms.py.
const char* sort_of(const TaskFrame&) { return "frame"; }
const char* sort_of(const Components&) { return "components"; }
const char* sort_of(const std::vector<TaskCoordinate>&) { return "coordinates"; }
const char* sort_of(const Targets&) { return "targets"; }
const char* sort_of(const std::optional<Targets>&) { return "targets or none"; }
const char* sort_of(const PoseTarget&) { return "pose"; }
const char* sort_of(const RowNumbers& x) { return x.any_sign ? "numbers of any sign" : "numbers"; }
const char* sort_of(const std::vector<double>&) { return "matrix"; }
const char* sort_of(const bool&) { return "target's axes"; }
template <class X> const char* sort_of(const X&) { return "plain"; }

/// Return the fields of each kind as (key, category), by the name of the kind.
py::dict task_table() {
  py::dict table;
  each_task([&](auto kind) {
    py::list fields;
    kind.fields([&](const char* key, const auto& x) { fields.append(py::make_tuple(key, sort_of(x))); });
    table[kind.name] = py::tuple(fields);
  });
  return table;
}

/// Reader of Python's description of a controller.
class ControllerReader {
 public:
  bool loop_joints = false;  // true if the coordinates passed are those of loop joints

  explicit ControllerReader(const Mechanism& mechanism) : mechanism_(mechanism) {}

  template <class X> void operator()(const py::handle& h, X& x) {
    if constexpr (HasFields<X>::value)
      read_fields("a part of TaskControl", h.cast<py::dict>(), x, *this);
    else
      x = h.cast<X>();
  }
  template <class X> void operator()(const py::handle& h, std::vector<X>& x) {
    for (const py::handle& item : h.cast<py::sequence>()) (*this)(item, x.emplace_back());
  }
  void operator()(const py::handle& h, std::optional<Law>& law) { law = to_optional_law(h); }
  void operator()(const py::handle& h, std::optional<Mat3<double>>& R) {
    if (!h.is_none()) R = to_transform(h).R;
  }
  void operator()(const py::handle& h, Components& x) { x = Components(h.cast<std::vector<int>>()); }
  void operator()(const py::handle& h, TaskFrame& frame) {
    const auto& placed = mechanism_.placed_frame(h.cast<std::string>());
    frame = {placed.link, placed.X};
  }
  void operator()(const py::handle& h, RowNumbers& x) { std::tie(x.first, x.rows) = h.cast<std::pair<int, int>>(); }
  void operator()(const py::handle& h, Targets& x) {
    const auto [first, laws] = h.cast<std::pair<int, py::list>>();
    x.first = first, (*this)(laws, x.law);
  }
  void operator()(const py::handle& h, std::optional<Targets>& x) {
    if (!h.is_none()) (*this)(h, x.emplace());
  }
  void operator()(const py::handle& h, TaskCoordinate& x) {
    read_fields("a coordinate", h.cast<py::dict>(), x, *this);
    loop_joints = loop_joints || x.iv >= mechanism_.tree().nv;
  }
  void operator()(const py::handle& h, TaskMotor& x) {
    read_fields("a motor", h.cast<py::dict>(), x, *this);
    loop_joints = loop_joints || x.iv >= mechanism_.tree().nv;
  }
  void operator()(const py::handle& h, Task& task) {
    auto d = h.cast<py::dict>().attr("copy")().cast<py::dict>();
    const auto name = d.attr("pop")("kind").cast<std::string>();
    const auto fields = d.attr("pop")("fields").cast<py::dict>();
    read_fields(name, d, task, *this);
    bool exists = false;
    each_task([&](const auto& kind) {
      if (name == kind.name) task.kind = kind, exists = true;
    });
    if (!exists) throw std::invalid_argument("no kind of task is named '" + name + "'");
    std::visit([&](auto& kind) { read_fields(name, fields, kind, *this), check_rows(name, kind, task.weight); }, task.kind);
  }

 private:
  const Mechanism& mechanism_;

  template <class Kind> static void check_rows(const std::string& name, Kind& kind, const RowNumbers& weight) {
    const auto check = [&](const char* key, int rows) {
      if (rows != kind.rows())
        throw std::invalid_argument(name + " has " + std::to_string(kind.rows()) + " rows, but its " + key + " has " +
                                    std::to_string(rows));
    };
    check("weight", weight.rows);
    kind.fields([&](const char* key, auto& x) {
      using X = std::decay_t<decltype(x)>;
      if constexpr (std::is_same_v<X, RowNumbers>) check(key, x.rows);
      if constexpr (std::is_same_v<X, Targets>) check(key, static_cast<int>(x.law.size()));
    });
  }
};

/// Controller that is evaluated at single states, with the results for Python's report.
class TaskController {
 public:
  TaskController(const py::object& mechanism, const py::dict& described, const Numbers& parameters)
      : python_(mechanism),
        mechanism_(built(mechanism)),
        tree_(mechanism_.tree()),
        law_(to_task_control(mechanism_, described)),
        parameters_(parameters.data(), parameters.data() + parameters.size()) {
    if (static_cast<int>(parameters_.size()) != law_.parameters) throw std::length_error("tasks: wrong number of parameters");
    for (const Task& t : law_.task) rows_ += t.rows();
  }

  /// Return the efforts (nv,), or None if there is no solution; report() then contains the reason.
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

  py::dict report(double time, const py::object& q, const py::object& v, const Numbers& call, const Numbers& z) const {
    if (call.size() != law_.call_numbers || z.size() != law_.states) throw std::length_error("tasks: wrong sizes");
    Numbers x(law_.unknowns()), a(tree_.nv), tau(tree_.nv), multipliers(tree_.loops.rows), error(rows_), missed(rows_);
    py::array_t<signed char> active(law_.limited ? law_.limits() : 0);
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
    const double status = ask(time, q, v, call.data(), z.data(), report);
    py::dict d;
    d["status"] = static_cast<int>(status), d["conflict"] = conflict, d["damping"] = damping;
    d["x"] = x, d["acceleration"] = a, d["tau"] = tau, d["multipliers"] = multipliers;
    d["error"] = error, d["missed"] = missed, d["active"] = active;
    return d;
  }

  /// Return seconds per call, measured in C++. The calls cycle through the states (n, nq) and (n, nv).
  double time_one_state(const Numbers& q, const Numbers& v, int repeats) const {
    const Count n = q.shape(0);
    std::vector<double> motor(tree_.nv + tree_.loop_nv), z(law_.states + 1), call(law_.call_numbers + 1);
    double tau_sum = 0.0;
    const auto start = std::chrono::steady_clock::now();
    for (int k = 0; k < repeats; ++k) {
      std::fill(motor.begin(), motor.end(), 0.0);
      kernels().tasks(tree_, law_, parameters_.data(), call.data(), 0.0, q.data() + k % n * tree_.nq, v.data() + k % n * tree_.nv,
                      z.data(), motor.data(), {}, {});
      tau_sum += motor[0];
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return tau_sum == 0.1234 ? 0.0 : seconds / repeats;
  }

 private:
  double ask(double time, const py::object& q, const py::object& v, const double* call, const double* z,
             const TaskReport<double>& report) const {
    const py::object kept_q = as_plain(q.ptr(), "q"), kept_v = as_plain(v.ptr(), "v");
    const auto numbers = [](const py::object& o, const char* name, int n) {
      const Array* a = proxy(o.ptr());
      if (a->nd != 1 || a->dimensions[0] != n)
        throw py::value_error(std::string(name) + " has shape " + shape_text(a->dimensions, a->nd) + "; expected (" +
                              std::to_string(n) + ",)");
      return reinterpret_cast<const double*>(a->data);
    };
    const double *x = numbers(kept_q, "q", tree_.nq), *u = numbers(kept_v, "v", tree_.nv);
    const auto finite = [](const double* p, int n) { return std::all_of(p, p + n, [](double e) { return std::isfinite(e); }); };
    if (!std::isfinite(time) || !finite(x, tree_.nq) || !finite(u, tree_.nv)) return invalid_state;
    for (const int i : mechanism_.quaternions())
      if (x[i] * x[i] + x[i + 1] * x[i + 1] + x[i + 2] * x[i + 2] + x[i + 3] * x[i + 3] < 1e-12) return invalid_state;
    std::vector<double> motor(tree_.nv + tree_.loop_nv), none(law_.states + law_.call_numbers);
    Surroundings<double> around;
    Numbers rows;
    if (tree_.loops.pfaffian_values > 0) {
      rows = py::cast<Numbers>(py::handle(from_python().pfaffian_values)(python_, kept_q, kept_v, false));
      around.pfaffian_values = rows.data();
    }
    return kernels().tasks(tree_, law_, parameters_.data(), call ? call : none.data(), time, x, u, z ? z : none.data(),
                           motor.data(), around, report);
  }

  py::handle python_;  // kept alive by the class
  const Mechanism& mechanism_;
  const Tree& tree_;
  TaskControl law_;
  std::vector<double> parameters_;
  int rows_ = 0;
};

}  // namespace

TaskControl to_task_control(const Mechanism& m, const py::dict& d) {
  TaskControl c;
  ControllerReader read(m);
  read_fields("TaskControl", d, c, read);
  c.drives_loop_joints = read.loop_joints;
  c.solve = &solve_quadratic_programme;
  return c;
}

void bind_control(py::module_& m) {
  py::class_<TaskController>(m, "TaskController")
      .def(py::init<const py::object&, const py::dict&, const Numbers&>(), py::arg("mechanism"), py::arg("described"),
           py::arg("parameters"), py::keep_alive<1, 2>())
      .def("tau", &TaskController::tau, py::arg("t"), py::arg("q"), py::arg("v"))
      .def("report", &TaskController::report, py::arg("t"), py::arg("q"), py::arg("v"), py::arg("call"), py::arg("z"))
      .def("time_one_state", &TaskController::time_one_state, py::arg("q"), py::arg("v"), py::arg("repeats"));
  py::class_<TaskControl>(m, "TaskDescription", "Description of a task controller, for recordings.")
      .def(py::init([](const py::object& mechanism, const py::dict& d) {
             return to_task_control(mechanism.cast<const Mechanism&>(), d);
           }),
           py::arg("mechanism"), py::arg("described"));
  m.def("task_table", &task_table, "(key, sort) of the fields of each kind of task, by its name.");
}

}  // namespace sarrus::bindings
