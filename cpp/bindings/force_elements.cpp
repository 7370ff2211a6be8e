#include "force_elements.hpp"

#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "../elements/list.hpp"
#include "../mechanism/mechanism.hpp"
#include "../reading/elements.hpp"
#include "../reading/run_limits.hpp"
#include "control.hpp"
#include "described.hpp"
#include "from_python.hpp"
#include "mobility.hpp"
#include "model.hpp"
#include "position.hpp"
#include "shapes.hpp"
#include "state.hpp"
#include "values.hpp"

namespace sarrus::bindings {
namespace {

namespace py = pybind11;

/// Call visit(kind), with default values, for each kind that has a name.
template <class Visit> void each_described_kind(Visit&& visit) {
  const auto described = [&](const auto& none) {
    using Kind = typename std::decay_t<decltype(none)>::Kind;
    if (*Kind::name) visit(Kind{});
  };
  std::apply([&](const auto&... none) { (described(none), ...); }, EveryKind<Elements>());
}

// ---- names and categories of fields ----------------------------------------------------------------------------------

const char* sort_of(const JointCoordinate&) { return "coordinate"; }
const char* sort_of(const JointVelocity&) { return "velocity"; }
const char* sort_of(const BodyFrame&) { return "frame"; }
const char* sort_of(const Direction&) { return "direction"; }
const char* sort_of(const Number&) { return "number"; }
const char* sort_of(const NumberArray&) { return "numbers"; }
const char* sort_of(const Range&) { return "range"; }
const char* sort_of(const double&) { return "constant"; }
const char* sort_of(const Law* const&) { return "law"; }
const char* sort_of(const std::array<const Law*, 6>&) { return "wrench"; }
const char* sort_of(const std::vector<JointTarget>&) { return "targets"; }
template <class X> const char* sort_of(const X&) { return "plain"; }  // the value needs no conversion

const char* text(Sign sign) {
  switch (sign) {
    case Sign::positive: return "positive";
    case Sign::not_negative: return "not negative";
    case Sign::not_negative_or_infinite: return "not negative or infinite";
    case Sign::any: break;
  }
  return "";
}

struct Reader {
  const Mechanism& mechanism;
  ForceElementList& list;

  template <class X> void read(const py::handle& h, X& x) const { x = h.cast<X>(); }
  void read(const py::handle& h, JointCoordinate& x) const { std::tie(x.iq, x.iv) = h.cast<std::tuple<int, int>>(); }
  void read(const py::handle& h, JointVelocity& x) const { x.iv = h.cast<int>(); }
  void read(const py::handle& h, BodyFrame& x) const {
    const auto& placed = mechanism.placed_frame(h.cast<std::string>());
    x = {placed.link, mechanism.number_of(placed)};
  }
  void read(const py::handle& h, Direction& x) const { x.n = to_vec3(h); }
  void read(const py::handle& h, Number& x) const { x.at = h.cast<int>(); }
  void read(const py::handle& h, NumberArray& x) const { x.at = h.cast<int>(); }
  void read(const py::handle& h, Range& x) const { x.lower.at = h.cast<int>(), x.upper.at = x.lower.at + 1; }
  void read(const py::handle& h, const Law*& x) const { x = h.is_none() ? nullptr : list.keep(to_law(h)); }
  void read(const py::handle& h, std::array<const Law*, 6>& x) const {
    for (std::size_t k = 0; k < x.size(); ++k) read(h.cast<py::list>()[k], x[k]);
  }
  void read(const py::handle& h, JointTarget& x) const {
    const auto t = h.cast<py::tuple>();
    x = {t[0].cast<int>(), t[1].cast<int>(), list.keep(to_law(t[2]))};
  }
  void read(const py::handle& h, std::vector<JointCoordinate>& x) const { read_each(h, x); }
  void read(const py::handle& h, std::vector<JointVelocity>& x) const { read_each(h, x); }
  void read(const py::handle& h, std::vector<BodyFrame>& x) const { read_each(h, x); }
  void read(const py::handle& h, std::shared_ptr<const Scene>& x) const {
    const auto [shapes, pairs] = h.cast<std::pair<std::vector<py::tuple>, std::vector<DescribedPair>>>();
    x = std::make_shared<const Scene>(to_scene(shapes, pairs));
  }
  void read(const py::handle& h, std::vector<JointTarget>& x) const { read_each(h, x); }
  void read(const py::handle& h, const TaskControl*& x) const { x = list.keep(to_task_control(mechanism, h.cast<py::dict>())); }
  void read(const py::handle& h, const ForceElements*& x) const {
    x = list.keep_inner([&](ForceElementList& inner) { add_force_elements(mechanism, h.cast<py::list>(), inner); });
  }
  template <class X> void read_each(const py::handle& h, std::vector<X>& all) const {
    for (const py::handle& item : h) read(item, all.emplace_back());
  }
};

/// Return the fields of each kind as (key, category, sign), by the name of the kind.
py::dict element_table() {
  py::dict table;
  each_described_kind([&](auto kind) {
    py::list rows;
    const auto add = [&](const char* key, const auto& x, Sign sign = Sign::any) {
      rows.append(py::make_tuple(key, sort_of(x), text(sign)));
    };
    kind.fields(add);
    table[kind.name] = py::tuple(rows);
  });
  return table;
}

// ---- elements of Python ----------------------------------------------------------------------------------------------

bool is_instance(const py::handle& x, PyObject* type) {
  const int yes = PyObject_IsInstance(x.ptr(), type);
  if (yes < 0) throw py::error_already_set();
  return yes != 0;
}
std::string text_of(const py::handle& x) { return from_text(py::repr(x)); }

/// Append the numbers in nested tuples.
void append(const py::handle& h, std::vector<double>& to) {
  if (PyFloat_Check(h.ptr()))
    to.push_back(PyFloat_AS_DOUBLE(h.ptr()));
  else
    for (const py::handle item : h.cast<py::tuple>()) append(item, to);
}
Law law_of_python(const py::handle& h) {
  static PyObject* const names[] = {interned("starts"), interned("coefficients"), interned("harmonics")};
  Law law;
  std::vector<double>* const parts[] = {&law.start, &law.coefficient, &law.harmonic};
  for (int k = 0; k < 3; ++k) {
    const auto numbers = py::reinterpret_steal<py::object>(PyObject_GetAttr(h.ptr(), names[k]));
    if (!numbers) throw py::error_already_set();
    append(numbers, *parts[k]);
  }
  law.period = h.attr("period").cast<double>();
  return law;
}
bool is_law(const py::handle& h) { return is_instance(h, bindings::from_python().Law); }
/// Return true for a list that begins with a time function, such as the time functions of many runs. No other conversion is tried for it.
bool begins_with_law(const py::handle& h) {
  const bool list = (PyList_Check(h.ptr()) || PyTuple_Check(h.ptr())) && PySequence_Fast_GET_SIZE(h.ptr()) > 0;
  return list && is_law(PySequence_Fast_GET_ITEM(h.ptr(), 0));
}

}  // namespace

Argument to_argument(const py::handle& h, const std::string& label, int depth) {
  constexpr int deepest = 8;  // a list may contain itself
  const auto convert = [&]() -> Argument {
    if (h.is_none()) return {};
    if (PyBool_Check(h.ptr())) return h.ptr() == Py_True;
    if (PyUnicode_Check(h.ptr())) return from_text(h);
    if (!PyFloat_CheckExact(h.ptr()) && is_law(h)) return law_of_python(h);
    const auto has = [&](const char* attribute) { return PyObject_HasAttrString(h.ptr(), attribute) == 1; };
    if (PyDict_Check(h.ptr()) || (has("items") && !has("__array__"))) {
      Argument::Named named;
      Argument::List pairs;
      const py::list items = h.attr("items")();
      for (const py::handle item : items) {
        const auto pair = py::reinterpret_borrow<py::tuple>(item);
        const py::object key = pair[0], value = pair[1];
        if (PyUnicode_Check(key.ptr()))
          named.emplace_back(from_text(key), to_argument(value, label, depth + 1));
        else
          pairs.push_back(Argument::List{to_argument(key, label, depth + 1), to_argument(value, label, depth + 1)});
      }
      return pairs.empty() ? Argument(std::move(named)) : Argument(std::move(pairs));
    }
    if (auto numbers = begins_with_law(h) ? std::nullopt : numbers_of(h)) {
      Argument all(std::move(*numbers));
      return PyList_Check(h.ptr()) || PyTuple_Check(h.ptr()) ? std::move(all).listed() : all;
    }
    if (has("mask")) throw py::type_error(label + " has masked entries, whose hidden values would be used; pass .filled(value)");
    if (depth < deepest && PySequence_Check(h.ptr()) && !PyBytes_Check(h.ptr())) {
      Argument::List all;
      const auto items = py::reinterpret_steal<py::object>(PySequence_Fast(h.ptr(), ""));
      if (!items) return PyErr_Clear(), Argument(Argument::Other());
      all.reserve(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.ptr())));
      for (const py::handle item : items) all.push_back(to_argument(item, label, depth + 1));
      return all;
    }
    return PyCallable_Check(h.ptr()) ? Argument(Argument::Function()) : Argument(Argument::Other());
  };
  return convert().written([h] { return text_of(h); });
}

PythonModel::PythonModel(const py::object& mechanism, const py::object& positions)
    : description_(mechanism.attr("_base").attr("description")),
      positions_(positions),
      model{{built_or_variants(mechanism), kernels()},
            [this]() -> const Positions& {
              if (!kept_positions_) kept_positions_ = positions_();
              return positions_of(kept_positions_);
            },
            [this](int joint) -> const model::JointType& { return joint_type_of(description_, joint); },
            rows_from_python(mechanism, built_or_variants(mechanism).tree())} {}

namespace {

/// Force element from Python: (object, kind, name of its class, values of arguments that are not attributes).
struct PythonElement {
  py::object self;
  std::string kind, name;
  py::dict values;

  explicit PythonElement(const py::handle& h) {
    const auto t = h.cast<py::tuple>();
    self = t[0], kind = t[1].cast<std::string>(), name = t[2].cast<std::string>(), values = t[3].cast<py::dict>();
  }
  static std::vector<PythonElement> sorted(const py::handle& list) {
    std::vector<PythonElement> all;
    for (const py::handle h : list.cast<py::list>()) all.emplace_back(h);
    std::stable_sort(all.begin(), all.end(), [](const PythonElement& a, const PythonElement& b) {
      return order_of_kind(a.kind) < order_of_kind(b.kind);
    });
    return all;
  }
  /// Return the value of an argument; null if there is none.
  py::object value(const std::string& key) const {
    if (values.contains(key.c_str())) return values[key.c_str()];
    return py::getattr(self, key.c_str(), py::object());
  }
  /// Convert the element. `kept`: list to which all values are appended, so that they exist as long as messages may show them.
  Element element(const Mechanism& mechanism, py::list& kept) const {
    Element all{kind, {}, name};
    for (const auto& argument : element_arguments(kind)) {
      const std::string& key = argument.first;
      const py::object x = value(key);
      if (!x) continue;
      kept.append(x);
      if (key == "controllers") {
        std::vector<Element> inner;
        for (const PythonElement& each : sorted(x)) inner.push_back(each.element(mechanism, kept));
        all.arguments.emplace_back(key, std::make_shared<const std::vector<Element>>(std::move(inner)));
      } else if (kind == "TaskControl" && key == "law") {
        all.arguments.emplace_back(key, controller_of(x));
      } else if (key == "scene") {
        const auto [shapes, pairs] = x.cast<std::pair<std::vector<py::tuple>, std::vector<DescribedPair>>>();
        all.arguments.emplace_back(key, std::make_shared<const Scene>(to_scene(shapes, pairs)));
      } else {
        all.arguments.emplace_back(key, to_argument(x, key + " of " + name));
      }
    }
    return all;
  }
};

/// Writer of elements in the form that Reader reads, so that other processes can create the same elements.
struct TermWriter {
  const PythonElement& from;

  static py::object of(double x) { return py::float_(x); }
  static py::object of(int x) { return py::int_(x); }
  static py::object of(bool x) { return py::bool_(x); }
  static py::object of(const JointCoordinate& x) { return py::make_tuple(x.iq, x.iv); }
  static py::object of(const JointVelocity& x) { return py::int_(x.iv); }
  static py::object of(const JointTarget& x) { return py::make_tuple(x.iq, x.iv, of(x.law)); }
  static py::object of(const Direction& x) { return of(std::vector<double>{x.n(0), x.n(1), x.n(2)}); }
  static py::object of(const Number& x) { return py::int_(x.at); }
  static py::object of(const NumberArray& x) { return py::int_(x.at); }
  static py::object of(const Range& x) { return py::int_(x.lower.at); }
  static py::object of(const Law& law) {
    if (law.each.empty()) return py::make_tuple(of(law.start), of(law.coefficient), of(law.harmonic), law.period);
    return py::make_tuple(of(law.each), law.parameter_index);
  }
  static py::object of(const Law* const& law) { return law ? of(*law) : py::none(); }
  static py::object of(const std::array<const Law*, 6>& laws) { return of(std::vector<const Law*>(laws.begin(), laws.end())); }
  template <class X> static py::object of(const std::vector<X>& all) {
    py::list list;
    for (const X& x : all) list.append(of(x));
    return std::move(list);
  }

  template <class X> py::object operator()(const char*, const X& x) const { return of(x); }
  py::object operator()(const char* key, const BodyFrame&) const { return from.value(key); }
  py::object operator()(const char* key, const std::vector<BodyFrame>&) const { return from.value(key); }
  py::object operator()(const char* key, const std::shared_ptr<const Scene>&) const { return from.value(key); }
  py::object operator()(const char*, const TaskControl* const& law) const { return described(*law); }
  py::object operator()(const char* key, const ForceElements* const& inner) const {
    return written(*inner, PythonElement::sorted(from.value(key)));
  }

  /// Return the terms of elements, which are in the same order as those of Python.
  static py::list written(const ForceElements& elements, const std::vector<PythonElement>& from) {
    py::list all;
    elements.each([&](auto element) {
      py::dict term;
      const TermWriter write{from[all.size()]};
      term["kind"] = element.name;
      element.fields([&](const char* key, auto& member, auto...) { term[key] = write(key, member); });
      all.append(std::move(term));
    });
    return all;
  }
};

/// Read elements from Python. Returns their terms, names with slices of the parameters, and the parameters (width,) or (runs, width). `positions`
/// returns the Positions object of the core.
py::tuple read_force_elements(const py::object& mechanism, const py::list& elements, std::vector<double> effort_limits,
                              const py::object& start, const std::optional<std::vector<std::int64_t>>& rows, std::size_t runs,
                              bool rigid, const py::object& positions) {
  const Mechanism& m = built_or_variants(mechanism);
  const PythonModel of(mechanism, positions);
  ElementRun run{std::move(effort_limits), {}, rows, runs, rigid};
  if (!start.is_none()) run.start = numbers_of(start);
  const std::vector<PythonElement> sorted = PythonElement::sorted(elements);
  py::list kept;
  std::vector<Element> all;
  for (const PythonElement& each : sorted) all.push_back(each.element(m, kept));
  const ActingElements acting(of.model, all, run);
  py::dict names;
  for (const RunParameters::Name& name : acting.parameters().names())
    names[to_text(name.name)] = py::slice(py::int_(name.begin), py::int_(name.end), py::none());
  const model::NumberArray& numbers = acting.numbers();
  const std::vector<py::ssize_t> shape(numbers.shape.begin(), numbers.shape.end());
  return py::make_tuple(TermWriter::written(acting.all(), sorted), names, py::array_t<double>(shape, numbers.numbers.data()));
}

/// Return the limits of a mechanism's joints: (joint, index, quantity, lower, upper) of each, if it is enforced, the limit of the core, the coordinates
/// to which end stops are added, and the limits of efforts.
py::tuple joint_limits(const py::object& mechanism, bool enforce, const std::vector<std::pair<std::string, int>>& stopped) {
  const py::object base = mechanism.attr("_base"), description = base.attr("description");
  const reading::RunLimits limits =
      reading::run_limits(reading::NamedParts(built_or_variants(mechanism)),
                          [&](int joint) -> const model::JointType& { return joint_type_of(description, joint); },
                          base.attr("_length").cast<double>(), enforce, {stopped.begin(), stopped.end()});
  static constexpr const char* quantities[] = {"position", "velocity", "effort"};
  py::list watched, enforced, terms;
  for (const reading::RunLimits::Watched& w : limits.watched) {
    const int of = static_cast<int>(w.limit.of);
    watched.append(py::make_tuple(to_text(w.joint), w.index, quantities[of], w.lower, w.upper)), enforced.append(w.enforced);
    terms.append(py::make_tuple(of, w.limit.at, w.limit.lower, w.limit.upper));
  }
  py::list stops;
  for (const auto& [joint, index] : limits.end_stops) stops.append(py::make_tuple(to_text(joint), index));
  return py::make_tuple(watched, enforced, terms, stops, limits.effort_limits);
}

}  // namespace

void add_force_elements(const Mechanism& mechanism, const py::list& described, ForceElementList& list) {
  const Reader reader = {mechanism, list};
  for (const py::handle& h : described) {
    const auto d = h.cast<py::dict>();
    const auto name = d["kind"].cast<std::string>();
    std::size_t keys = 0;  // number of fields of this kind; 0: no kind has this name
    each_described_kind([&](auto kind) {
      if (name != kind.name) return;
      keys = 1;
      kind.fields([&](const char* key, auto& x, auto...) { reader.read(d[key], x), ++keys; });
      list.add(std::move(kind));
    });
    if (keys == 0) throw py::value_error("no force element is named '" + name + "'");
    if (keys != d.size())
      throw py::value_error("force element '" + name + "' has unknown fields; got " + py::repr(d).cast<std::string>());
  }
}

void bind_force_elements(py::module_& m) {
  m.def("element_table", &element_table);
  m.def(
      "element_defaults",
      [](const std::string& kind) {
        py::dict all;
        for (const auto& [key, value] : element_arguments(kind))
          if (!value.is<Argument::Other>()) all[to_text(key)] = to_text(value.shown());
        return all;
      },
      py::arg("kind"), "Texts of the default values of a kind's arguments.");
  m.def("joint_limits", &joint_limits, py::arg("mechanism"), py::arg("enforce"), py::arg("stopped"));
  m.def("read_force_elements", &read_force_elements, py::arg("mechanism"), py::arg("elements"), py::arg("effort_limits"),
        py::arg("start"), py::arg("rows"), py::arg("runs"), py::arg("rigid"), py::arg("positions"));
}

}  // namespace sarrus::bindings
