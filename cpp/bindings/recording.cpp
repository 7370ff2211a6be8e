// The extension module sarrus._recording, which sarrus.generation imports: functions of a state on symbolic numbers, and C code generated from them.
// It is a separate module, so that inline functions compiled for symbolic numbers are not merged with those of the kernels.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "../mechanism/variants.hpp"
#include "../recording/c99.hpp"
#include "../recording/derive.hpp"
#include "../recording/operations.hpp"
#include "../recording/step.hpp"
#include "built.hpp"

namespace sarrus::bindings {
namespace {

namespace py = pybind11;
using Samples = py::array_t<double, py::array::c_style | py::array::forcecast>;

/// Expression of a graph, with arithmetic operators that also accept numbers.
struct Number {
  std::shared_ptr<Graph> graph;
  int id;
};
using Numbers = std::vector<Number>;

/// The tree of a mechanism, or a copy of that of its first variant, with the places of the numbers that differ between its variants.
class RecordedTree {
 public:
  RecordedTree(const Mechanism& m, bool in_world) : RecordedTree(m, m.variants() ? &m.variants()->view() : nullptr, in_world) {}
  const Tree& tree() const { return rounded_.tree(); }
  const NumberPlaces& places() const { return places_; }

 private:
  RecordedTree(const Mechanism& m, const VariantNumbers* numbers, bool in_world)
      : copy_(numbers ? numbers->bytes / sizeof(double) : 0),
        rounded_(numbers ? varied(*numbers, m.variant_indices().front()) : m.tree(), in_world) {
    for (int k = 0; numbers && k < numbers->differing; ++k) places_[copy_.data() + numbers->differs[k] / sizeof(double)] = k;
    if (numbers) add_copy(places_, *reinterpret_cast<const Tree*>(copy_.data()), tree());
  }
  const Tree& varied(const VariantNumbers& numbers, std::int64_t variant) {
    numbers.copy(reinterpret_cast<char*>(copy_.data()));
    for (int k = 0; k < numbers.differing; ++k) copy_[numbers.differs[k] / sizeof(double)] = *numbers.value(variant, k);
    return *reinterpret_cast<const Tree*>(copy_.data());
  }

  std::vector<double> copy_;
  RoundedTree rounded_;
  NumberPlaces places_;
};

class Recording {
 public:
  Recording(const py::object& mechanism, int samples, bool single)
      : mechanism_(mechanism),
        m_(mechanism.cast<const Mechanism&>()),
        tree_(m_, false),
        in_world_(m_, true),
        graph_(std::make_shared<Graph>(samples, single)) {
    if (samples < 1) throw py::value_error("samples must be 1 or more");
  }

  /// Create n inputs with these sample values (samples, n).
  Numbers input(const Samples& values) {
    if (values.ndim() != 2 || values.shape(0) != graph_->samples)
      throw py::value_error("input: expected values in the samples (" + std::to_string(graph_->samples) + ", n)");
    Numbers all;
    std::vector<double> samples_of_input(static_cast<std::size_t>(graph_->samples));
    for (py::ssize_t k = 0; k < values.shape(1); ++k) {
      for (py::ssize_t s = 0; s < values.shape(0); ++s) samples_of_input[static_cast<std::size_t>(s)] = values.at(s, k);
      all.push_back(numbered(graph_->input(samples_of_input.data())));
    }
    return all;
  }
  /// Return the numbers that differ between variants (variants, numbers); without variants (0, 0).
  Samples varied() const {
    if (!m_.variants()) return Samples(std::vector<py::ssize_t>{0, 0});
    const VariantNumbers& numbers = m_.variants()->view();
    const auto& indices = m_.variant_indices();
    Samples all({static_cast<py::ssize_t>(indices.size()), static_cast<py::ssize_t>(numbers.differing)});
    for (std::size_t i = 0; i < indices.size(); ++i)
      for (int k = 0; k < numbers.differing; ++k) all.mutable_at(static_cast<py::ssize_t>(i), k) = *numbers.value(indices[i], k);
    return all;
  }
  /// Let inputs be the numbers of variants, and parameters of force elements after them.
  void vary(const Numbers& parameters) { graph_->parameters = ids_of(parameters); }
  bool driven() const {
    const Loops& loops = tree_.tree().loops;
    return std::any_of(loops.constraint, loops.constraint + loops.constraints, [](const Constraint& c) { return c.driven; });
  }
  int pfaffian_values() const { return tree_.tree().loops.pfaffian_values; }
  Number constant(double x) { return numbered(graph_->constant(x)); }

  /// Record a function of a state; returns the result and the status.
  std::pair<Numbers, Number> call(const std::string& name, const std::vector<std::optional<Numbers>>& inputs,
                                  const std::optional<std::string>& frame, const std::string& expressed_in) {
    const auto& operations = recorded_operations();
    const auto operation =
        std::find_if(operations.begin(), operations.end(), [&](const auto& each) { return name == each.name; });
    if (operation == operations.end()) throw py::value_error("'" + name + "' is not recorded");
    std::vector<std::optional<Ids>> ids;
    for (const auto& numbers : inputs) ids.push_back(numbers ? std::optional(ids_of(*numbers)) : std::nullopt);
    Graph::current() = graph_.get();
    const bool motion =
        operation->operation == Operation::forward_dynamics || operation->operation == Operation::actuator_efforts;
    const RecordedTree& tree = motion || (!frame && expressed_in == "world") ? in_world_ : tree_;
    const WithPlaces scope(tree.places());
    const RecordedResult r = record(tree.tree(), *operation, frame ? placed(*frame, expressed_in) : Frame{}, ids);
    return {all_numbered(r.result), numbered(r.status)};
  }

  /// Record a controller without limits and contacts: efforts, accelerations, errors, residuals, rates of internal states, and the status.
  std::pair<std::vector<Numbers>, Number> tasks(const TaskControl& control, const Numbers& parameters, const Numbers& call,
                                                const Numbers& time, const Numbers& q, const Numbers& v, const Numbers& z) {
    const auto count = [](const Numbers& x) { return static_cast<int>(x.size()); };
    if (count(parameters) != control.parameters || count(call) != control.call_numbers || count(z) != control.states ||
        count(time) != 1 || count(q) != m_.tree().nq || count(v) != m_.tree().nv)
      throw py::value_error("tasks: wrong numbers of inputs");
    if (m_.variants()) throw py::value_error("tasks of variants are not recorded");
    if (control.limited || !control.contact.empty()) throw py::value_error("tasks with limits or contacts are not recorded");
    Graph::current() = graph_.get();
    const RecordedTasks r =
        record(tree_.tree(), control, {ids_of(parameters), ids_of(call), ids_of(time), ids_of(q), ids_of(v), ids_of(z)});
    std::vector<Numbers> all;
    for (const Ids* ids : {&r.efforts, &r.acceleration, &r.error, &r.missed, &r.z_dot}) all.push_back(all_numbered(*ids));
    return {all, numbered(r.status)};
  }

  /// Record a step of a simulation: q, v, z, the residuals, and the status.
  std::pair<std::vector<Numbers>, Number> step(const SimulatedPlan& simulated, double dt, bool midpoint, int substeps,
                                               int corrections, const std::vector<int>& varied, const Numbers& q,
                                               const Numbers& v, const Numbers& z, const Numbers& tau, const Numbers& time) {
    Graph::current() = graph_.get();
    const int first = m_.variants() ? m_.variants()->view().differing : 0;
    const RecordedStep r = record(simulated, {dt, midpoint, substeps, corrections, varied, first},
                                  {ids_of(q), ids_of(v), ids_of(z), ids_of(tau), ids_of(time)});
    return {{all_numbered(r.q), all_numbered(r.v), all_numbered(r.z), all_numbered(r.residual)}, numbered(r.status)};
  }
  /// Return true if results depend on inputs.
  bool depends(const Numbers& results, const Numbers& inputs) const {
    const std::vector<char> live = graph_->needed(ids_of(results));
    const Ids ids = ids_of(inputs);
    return std::any_of(ids.begin(), ids.end(), [&](int i) { return live[static_cast<std::size_t>(i)] != 0; });
  }

  std::vector<Numbers> derivatives(const Numbers& results, const Numbers& inputs) {
    std::vector<Numbers> rows;
    for (const Ids& row : sarrus::derivatives(*graph_, ids_of(results), ids_of(inputs))) rows.push_back(all_numbered(row));
    return rows;
  }

  void assume(const Number& x, double least) {
    ids_of({x});
    graph_->assume(graph_->less(graph_->constant(least), graph_->magnitude(x.id)));
  }
  /// Return an expression that is 0 if all branches are the same as at the sample states, else `otherwise`.
  Number assumptions(double otherwise) {
    const int all = graph_->all_assumed();
    return numbered(graph_->choice(all, graph_->constant(0.0), graph_->constant(otherwise)));
  }

  /// Return an expression for the status, which is at least `otherwise` if a result is not finite.
  Number status_of(const Numbers& results, const Number& status, double otherwise) {
    const int id = ids_of({status})[0], least = graph_->constant(otherwise);
    const int worse = graph_->choice(graph_->less(id, least), least, id);
    return numbered(graph_->choice(graph_->finite(ids_of(results)), id, worse));
  }

  Samples values(const Numbers& numbers) const {
    Samples x({static_cast<py::ssize_t>(graph_->samples), static_cast<py::ssize_t>(numbers.size())});
    const Ids ids = ids_of(numbers);
    for (std::size_t k = 0; k < ids.size(); ++k)
      for (int s = 0; s < graph_->samples; ++s) x.mutable_at(s, static_cast<py::ssize_t>(k)) = graph_->values(ids[k])[s];
    return x;
  }

  C99Function c99(const std::string& name, const std::vector<std::pair<std::string, Numbers>>& inputs,
                  const std::vector<std::pair<std::string, Numbers>>& outputs, const std::optional<Number>& status,
                  bool for_gpu) const {
    return sarrus::c99(*graph_, name, named(inputs), named(outputs), status ? ids_of({*status})[0] : -1, for_gpu);
  }

 private:
  Number numbered(int id) const { return {graph_, id}; }
  Numbers all_numbered(const Ids& ids) const {
    Numbers all;
    for (const int id : ids) all.push_back(numbered(id));
    return all;
  }
  Ids ids_of(const Numbers& numbers) const {
    Ids ids;
    for (const Number& x : numbers) {
      if (x.graph != graph_) throw py::value_error("the output contains a number of another recording");
      ids.push_back(x.id);
    }
    return ids;
  }
  NamedIds named(const std::vector<std::pair<std::string, Numbers>>& arrays) const {
    NamedIds all;
    for (const auto& [name, numbers] : arrays) all.push_back({name, ids_of(numbers)});
    return all;
  }
  Frame placed(const std::string& name, const std::string& expressed_in) const {
    const PlacedFrame* at = m_.find_frame(name);
    if (!at) throw py::key_error(name);
    const ExpressedIn axes = expressed_in == "world"           ? ExpressedIn::world
                             : expressed_in == "world_aligned" ? ExpressedIn::world_aligned
                                                               : ExpressedIn::frame;
    return {at->link, at->body, at->X, axes, m_.number_of(*at)};
  }

  py::object mechanism_;  // keeps the mechanism alive, because the tree refers to it
  const Mechanism& m_;
  RecordedTree tree_, in_world_;
  std::shared_ptr<Graph> graph_;
};

template <class F> Number combined(const Number& a, const Number& b, const F& f) {
  if (a.graph != b.graph) throw py::value_error("numbers of two different recordings cannot be combined");
  return {a.graph, f(*a.graph, a.id, b.id)};
}

void bind_number(py::module_& m) {
  py::class_<Number> number(m, "Number");
  const char* undecided =
      "numbers of a Recorder have no value yet, so a condition (if, ==, <, max, np.where) cannot depend on them: record both "
      "results, or generate a function for each";
  number.def("__bool__", [=](const Number&) -> bool { throw py::type_error(undecided); });
  for (const char* comparison : {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"})
    number.def(comparison, [=](const Number&, const py::object&) -> bool { throw py::type_error(undecided); });
  const auto both_ways = [&](const std::string& name, int (Graph::*f)(int, int)) {
    const auto apply = [f](Graph& g, int a, int b) { return (g.*f)(a, b); };
    const auto flipped = [f](Graph& g, int a, int b) { return (g.*f)(b, a); };
    const auto of = [](const Number& a, double b) { return Number{a.graph, a.graph->constant(b)}; };
    number.def(("__" + name + "__").c_str(), [=](const Number& a, const Number& b) { return combined(a, b, apply); },
               py::is_operator());
    number.def(("__" + name + "__").c_str(), [=](const Number& a, double b) { return combined(a, of(a, b), apply); },
               py::is_operator());
    number.def(("__r" + name + "__").c_str(), [=](const Number& a, double b) { return combined(a, of(a, b), flipped); },
               py::is_operator());
  };
  both_ways("add", &Graph::sum), both_ways("sub", &Graph::difference);
  both_ways("mul", &Graph::product), both_ways("truediv", &Graph::quotient);
  const auto function = [&](const char* name, int (Graph::*f)(int)) {
    number.def(name, [f](const Number& a) { return Number{a.graph, (*a.graph.*f)(a.id)}; });
  };
  number.def_property_readonly("constant", [](const Number& a) -> std::optional<double> {
    const Expression& e = (*a.graph)[a.id];
    return e.op == Op::constant ? std::optional(e.number) : std::nullopt;
  });
  number.def("larger", [](const Number& a, const Number& b) {
    return combined(a, b, [](Graph& g, int x, int y) { return g.choice(g.less(x, y), y, x); });
  });
  // method names that NumPy calls on the items of object arrays
  function("apart", &Graph::same), function("__neg__", &Graph::negative), function("sqrt", &Graph::root),
      function("sin", &Graph::sine), function("cos", &Graph::cosine);
}

}  // namespace
}  // namespace sarrus::bindings

PYBIND11_MODULE(_recording, m, pybind11::mod_gil_not_used()) {
  using namespace sarrus::bindings;
  using sarrus::C99Function;
  m.doc() = "Recorded functions of a state. Use it through sarrus.generation.";
  bind_number(m);
  m.def(
      "recording",
      [](const py::object& mechanism, int samples, bool single) {
        return std::make_unique<Recording>(mechanism, samples, single);
      },
      py::arg("mechanism"), py::arg("samples"), py::arg("single"));
  py::class_<Recording>(m, "Recording")
      .def_property_readonly("driven", &Recording::driven, "True if constraints depend on laws of time.")
      .def_property_readonly("pfaffian_values", &Recording::pfaffian_values)
      .def("input", &Recording::input)
      .def("varied", &Recording::varied)
      .def("vary", &Recording::vary)
      .def("constant", &Recording::constant)
      .def("call", &Recording::call, py::arg("operation"), py::arg("inputs"), py::arg("frame"), py::arg("expressed_in"))
      .def("tasks", &Recording::tasks, py::arg("control"), py::arg("parameters"), py::arg("call"), py::arg("time"), py::arg("q"),
           py::arg("v"), py::arg("z"))
      .def("step", &Recording::step, py::arg("simulated"), py::arg("dt"), py::arg("midpoint"), py::arg("substeps"),
           py::arg("corrections"), py::arg("varied"), py::arg("q"), py::arg("v"), py::arg("z"), py::arg("tau"), py::arg("time"))
      .def("depends", &Recording::depends)
      .def("derivatives", &Recording::derivatives)
      .def("assume", &Recording::assume)
      .def("assumptions", &Recording::assumptions)
      .def("status_of", &Recording::status_of, py::arg("results"), py::arg("status"), py::arg("otherwise"))
      .def("values", &Recording::values)
      .def("c99", &Recording::c99, py::arg("name"), py::arg("inputs"), py::arg("outputs"), py::arg("status"), py::arg("for_gpu"));
  py::class_<C99Function>(m, "C99Function")
      .def_readonly("declaration", &C99Function::declaration)
      .def_readonly("definition", &C99Function::definition)
      .def_readonly("called", &C99Function::called)
      .def_readonly("operations", &C99Function::operations)
      .def_readonly("statements", &C99Function::statements)
      .def_readonly("alive", &C99Function::alive)
      .def_readonly("turns", &C99Function::turns);
  m.def("not_recorded", &sarrus::not_recorded, py::arg("simulated"), py::arg("step"));
  m.def("turn", &sarrus::c99_turn, py::arg("single"));
  py::dict operations;
  for (const auto& each : sarrus::recorded_operations())
    operations[each.name] = py::make_tuple(each.inputs, each.axes, (each.facts & sarrus::fact::at_frame) != 0);
  m.attr("operations") = operations;
  refuse_unbuilt(m);
}
