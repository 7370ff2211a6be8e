#include "control.hpp"

#include <pybind11/numpy.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <tuple>

#include "../control/path_timing.hpp"
#include "../control/quadratic_programme.hpp"
#include "../mobility/actuation.hpp"
#include "../reading/tasks.hpp"
#include "arrays.hpp"
#include "described.hpp"
#include "fields.hpp"
#include "force_elements.hpp"
#include "from_python.hpp"
#include "gil.hpp"
#include "one_state.hpp"
#include "results.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

using Count = py::ssize_t;
using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// Call visit(kind), with default values, for kind number I of the list and all kinds after it.
template <int I = 0, class Visit> void each_task(Visit&& visit) {
  if constexpr (I < std::variant_size_v<AnyTask>) visit(std::variant_alternative_t<I, AnyTask>()), each_task<I + 1>(visit);
}

// Names of the categories of fields, by type, for code generation.
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
    const auto [link, X] = h.cast<std::pair<int, py::list>>();
    frame = {link, to_transform(X)};
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
    if (!exists) throw std::invalid_argument("no task type is named '" + name + "'");
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

/// Writer of descriptions that ControllerReader reads.
struct ControllerWriter {
  static py::object of(double x) { return py::float_(x); }
  static py::object of(int x) { return py::int_(x); }
  static py::object of(bool x) { return py::bool_(x); }
  static py::list of(const Transform<double>& X) {
    py::list all;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) all.append(X.R(i, j));
    for (int i = 0; i < 3; ++i) all.append(X.p(i));
    return all;
  }
  static py::object of(const Mat3<double>& R) { return of(Transform<double>{R, zero3<double>()}); }
  static py::object of(const Law& law) {
    if (law.each.empty()) return py::make_tuple(of(law.start), of(law.coefficient), of(law.harmonic), law.period);
    return py::make_tuple(of(law.each), law.parameter_index);
  }
  static py::object of(const Components& x) { return of(x.row); }
  static py::object of(const TaskFrame& x) { return py::make_tuple(x.link, of(x.X)); }
  static py::object of(const RowNumbers& x) { return py::make_tuple(x.first, x.rows); }
  static py::object of(const Targets& x) { return py::make_tuple(x.first, of(x.law)); }
  static py::object of(const Task& task) {
    py::dict all = fields(task);
    std::visit([&](const auto& kind) { all["kind"] = kind.name, all["fields"] = fields(kind); }, task.kind);
    return std::move(all);
  }
  template <class X> static py::object of(const std::vector<X>& all) {
    py::list list;
    for (const X& x : all) list.append(of(x));
    return std::move(list);
  }
  template <class X> static py::object of(const std::optional<X>& x) { return x ? of(*x) : py::none(); }
  template <class X, class = std::enable_if_t<HasFields<X>::value>> static py::object of(const X& x) { return fields(x); }

  template <class X> static py::dict fields(X x) {
    py::dict all;
    x.fields([&](const char* key, auto& member) { all[key] = of(member); });
    return all;
  }
};

/// Convert tasks or contacts from Python, each (kind, name of the class, arguments).
std::vector<Element> described_elements(const py::list& list) {
  std::vector<Element> all;
  for (const py::handle h : list) {
    const auto t = h.cast<py::tuple>();
    Element element{t[0].cast<std::string>(), {}, t[1].cast<std::string>()};
    for (const auto& [key, value] : t[2].cast<py::dict>()) {
      const auto name = key.cast<std::string>();
      element.arguments.emplace_back(name, to_argument(value, name + " of " + element.name));
    }
    all.push_back(std::move(element));
  }
  return all;
}

NamedTaskControl read_tasks(const py::object& mechanism, const py::list& tasks, const py::list& contacts,
                            const py::object& limits, const std::vector<std::string>& actuated, const py::object& effort_weights,
                            const std::optional<double>& force_arm, const std::vector<std::string>& rigid,
                            const py::object& positions) {
  built(mechanism);
  const PythonModel of(mechanism, positions);
  TaskArguments arguments{described_elements(tasks), described_elements(contacts), {}, actuated, {}, force_arm, rigid};
  if (!limits.is_none()) {
    Argument::Named named;
    for (const auto& [key, value] : limits.cast<py::dict>()) {
      const auto name = key.cast<std::string>();
      named.emplace_back(name, to_argument(value, name + " of Limits"));
    }
    arguments.limits = std::move(named);
  } else {
    arguments.limits.reset();
  }
  arguments.effort_weights = to_argument(effort_weights, "effort_weights");
  return NamedTaskControl(of.model, arguments);
}

/// Controller evaluated in one state, with the results that Python's report contains.
class TaskController {
 public:
  TaskController(const py::object& mechanism, const py::list& tasks, const py::list& contacts, const py::object& limits,
                 const std::vector<std::string>& actuated, const py::object& effort_weights,
                 const std::optional<double>& force_arm, const std::vector<std::string>& rigid, const py::object& positions)
      : python_(mechanism),
        mechanism_(built(mechanism)),
        tree_(mechanism_.tree()),
        read(read_tasks(mechanism, tasks, contacts, limits, actuated, effort_weights, force_arm, rigid, positions)),
        numbers(read.parameters.all()),
        parameters_(static_cast<std::size_t>(law_.parameters)) {
    // `numbers` is empty if there are no runs
    if (!numbers.numbers.empty()) std::copy_n(numbers.numbers.begin(), law_.parameters, parameters_.begin());
    for (const Task& t : law_.task) rows_ += t.rows();
    for (const std::string& name : actuated) efforts_.emplace_back(name, joint_nv(name));
    for (const std::string& name : rigid) rigid_ += joint_nv(name);
    for (const py::handle contact : contacts) frames_.push_back(contact[py::int_(2)]["frame"]);
    // rows of the errors are ordered by priority
    std::vector<int> order(read.sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int i, int j) { return read.levels[i] < read.levels[j]; });
    std::vector<Count> first(order.size());
    Count next = 0;
    for (const int i : order) first[i] = next, next += read.sizes[i];
    for (std::size_t i = 0; i < tasks.size(); ++i) tasks_.emplace_back(first[i], read.sizes[i]);
  }
  TaskController(const TaskController&) = delete;
  TaskController& operator=(const TaskController&) = delete;

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

  /// Return the fields of a TaskSolution; `status` and `conflict` are numbers.
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
    d["acceleration"] = a, d["tau"] = tau;
    py::dict efforts, forces;
    Count next = 0;
    for (const auto& [name, size] : efforts_) {
      efforts[name] = size == 1 ? py::object(py::float_(x.data()[next])) : part(x, next, size);
      next += size;
    }
    next += rigid_;
    for (std::size_t k = 0; k < frames_.size(); next += law_.contact[k++].rows)
      forces[frames_[k]] = part(x, next, law_.contact[k].rows);
    d["efforts"] = efforts, d["forces"] = forces;
    py::tuple errors(tasks_.size()), all_missed(tasks_.size());
    for (std::size_t i = 0; i < tasks_.size(); ++i) {
      errors[i] = part(error, tasks_[i].first, tasks_[i].second);
      all_missed[i] = part(missed, tasks_[i].first, tasks_[i].second);
    }
    d["errors"] = errors, d["missed"] = all_missed;
    py::list reached, violated;
    for (Count i = 0; i < std::min<Count>(active.size(), static_cast<Count>(read.limits.size())); ++i) {
      if (active.data()[i] == 0) continue;
      reached.append(read.limits[i]);
      if (std::abs(active.data()[i]) > 1) violated.append(read.limits[i]);
    }
    d["active"] = py::tuple(reached), d["conflicts"] = py::tuple(violated);
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
  Count joint_nv(const std::string& name) const { return mechanism_.description().joints[joint_by_name(mechanism_, name)].nv; }
  static py::object part(const Numbers& whole, Count first, Count size) {
    return part_of(whole, const_cast<double*>(whole.data()) + first, 1, &size);
  }
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

  py::handle python_;  // the Python object; it owns this object, so no reference is held
  const Mechanism& mechanism_;
  const Tree& tree_;

 public:
  const NamedTaskControl read;
  const model::NumberArray numbers;

 private:
  const TaskControl& law_ = read.law;
  std::vector<double> parameters_;  // parameters of the first run
  int rows_ = 0;
  std::vector<std::pair<py::str, Count>> efforts_;  // joints with motors, and their numbers of efforts
  Count rigid_ = 0;  // number of forces along rigid joints
  std::vector<py::object> frames_;  // of contacts
  std::vector<std::pair<Count, Count>> tasks_;  // first row of each task's errors, and number of rows
};

py::dict fastest_timing_of(const Numbers& lengths, const Numbers& a, const Numbers& b, const Numbers& c,
                           const std::optional<Numbers>& d, int vectors, bool free_start, bool free_end) {
  const Count n = lengths.size(), m = a.ndim() == 2 ? a.shape(1) : 0;
  for (const Numbers* x : {&a, &b, &c, d ? &*d : &c})
    if (lengths.ndim() != 1 || n == 0 || x->ndim() != 2 || x->shape(0) != 2 * n + 1 || x->shape(1) != m || m < 3 * vectors)
      throw py::value_error("expected n lengths, and limits (2 n + 1, m)");
  const PathLimits path{
      static_cast<int>(n),    static_cast<int>(m) - 3 * vectors, vectors, lengths.data(), a.data(), b.data(), c.data(),
      d ? d->data() : nullptr};
  PathTiming timing;
  {
    const WithoutGil free;
    timing = fastest_timing(path, free_start, free_end);
  }
  return as_python(timing);
}

}  // namespace

TaskControl to_task_control(const Mechanism& m, const py::dict& d) {
  TaskControl c;
  ControllerReader read(m);
  read_fields("TaskControl", d, c, read);
  c.drives_loop_joints = read.loop_joints;
  c.solve = &solve_quadratic_programme;
  return c;
}

py::dict described(const TaskControl& law) { return ControllerWriter::fields(law); }

std::shared_ptr<const TaskControl> controller_of(const py::handle& object) {
  return std::make_shared<const TaskControl>(object.cast<const TaskController&>().read.law);
}

void bind_control(py::module_& m) {
  py::class_<TaskController>(m, "TaskController")
      .def(py::init<const py::object&, const py::list&, const py::list&, const py::object&, const std::vector<std::string>&,
                    const py::object&, const std::optional<double>&, const std::vector<std::string>&, const py::object&>(),
           py::arg("mechanism"), py::arg("tasks"), py::arg("contacts"), py::arg("limits"), py::arg("actuated"),
           py::arg("effort_weights"), py::arg("force_arm"), py::arg("rigid"), py::arg("positions"), py::keep_alive<1, 2>())
      .def_property_readonly("described", [](const TaskController& c) { return described(c.read.law); })
      .def_property_readonly("names", [](const TaskController& c) { return c.read.names; })
      .def_property_readonly("limits", [](const TaskController& c) { return c.read.limits; })
      .def_property_readonly("warnings", [](const TaskController& c) { return c.read.warnings; })
      .def_property_readonly("levels", [](const TaskController& c) { return c.read.levels; })
      .def_property_readonly("sizes", [](const TaskController& c) { return c.read.sizes; })
      .def_property_readonly("states", [](const TaskController& c) { return c.read.law.states; })
      .def_property_readonly("call_size", [](const TaskController& c) { return c.read.law.call_numbers; })
      .def_property_readonly("contact_rows",
                             [](const TaskController& c) {
                               std::vector<int> rows;
                               for (const TaskContact& contact : c.read.law.contact) rows.push_back(contact.rows);
                               return rows;
                             })
      .def_property_readonly(
          "functions",
          [](const TaskController& c) {
            std::vector<std::pair<int, int>> all;
            for (const NamedTaskControl::Function& f : c.read.functions) all.emplace_back(f.task, f.first);
            return all;
          },
          "(task, index of its first value in the array of a call) of each target that is a function.")
      .def_property_readonly("parameters",
                             [](const TaskController& c) {
                               const std::vector<py::ssize_t> shape(c.numbers.shape.begin(), c.numbers.shape.end());
                               return py::array_t<double>(shape, c.numbers.numbers.data());
                             })
      .def("tau", &TaskController::tau, py::arg("t"), py::arg("q"), py::arg("v"))
      .def("report", &TaskController::report, py::arg("t"), py::arg("q"), py::arg("v"), py::arg("call"), py::arg("z"))
      .def("time_one_state", &TaskController::time_one_state, py::arg("q"), py::arg("v"), py::arg("repeats"));
  py::class_<TaskControl>(m, "TaskDescription", "Description of a task controller, for recordings.")
      .def(py::init([](const py::object& mechanism, const py::dict& d) {
             return to_task_control(mechanism.cast<const Mechanism&>(), d);
           }),
           py::arg("mechanism"), py::arg("described"));
  m.def("fastest_timing", &fastest_timing_of, py::arg("lengths"), py::arg("a"), py::arg("b"), py::arg("c"), py::arg("d"),
        py::arg("vectors"), py::arg("free_start"), py::arg("free_end"));
  m.def("task_table", &task_table, "(key, sort) of the fields of each kind of task, by its name.");
}

}  // namespace sarrus::bindings
