// Conversion of the elements of a description (bodies, joints, ...) to and from Python's dataclasses, field by field; the elements themselves have no
// bindings. This file also binds the joint types, and the core's Builder, which checks an element and returns it with plain numbers.
#include "model.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "../model/builder.hpp"
#include "../model/contacts.hpp"
#include "../model/text.hpp"
#include "../position/closure.hpp"
#include "described.hpp"
#include "from_python.hpp"
#include "values.hpp"

namespace sarrus::bindings {
namespace {

using model::NumberArray;

py::object attribute(const py::handle& of, const char* name) {
  auto value = py::reinterpret_steal<py::object>(PyObject_GetAttrString(of.ptr(), name));
  if (!value) throw py::error_already_set();
  return value;
}
std::string shown(const py::handle& x) { return from_text(py::repr(x)); }
bool is(const py::handle& x, PyObject* type) {
  const int yes = PyObject_IsInstance(x.ptr(), type);
  if (yes < 0) throw py::error_already_set();
  return yes != 0;
}
std::string type_name(const py::handle& x) {
  std::string name = Py_TYPE(x.ptr())->tp_name;
  return name.substr(name.rfind('.') + 1);
}

/// Convert a number, or a tuple or list of numbers, without calls into Python.
bool plain_number(PyObject* x, double& to) {
  if (PyFloat_CheckExact(x)) return to = PyFloat_AS_DOUBLE(x), true;
  if (!PyLong_CheckExact(x)) return false;
  to = PyLong_AsDouble(x);
  if (to == -1.0 && PyErr_Occurred()) return PyErr_Clear(), false;
  return true;
}
bool plain_numbers(const py::handle& h, std::vector<double>& to) {
  if (!PyTuple_CheckExact(h.ptr()) && !PyList_CheckExact(h.ptr())) return false;
  const auto size = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(h.ptr()));
  to.resize(size);
  for (std::size_t k = 0; k < size; ++k)
    if (!plain_number(PySequence_Fast_GET_ITEM(h.ptr(), static_cast<Py_ssize_t>(k)), to[k])) return false;
  return true;
}
}  // namespace

std::optional<NumberArray> numbers_of(const py::handle& h) {
  NumberArray all;
  double x = 0.0;
  if (plain_number(h.ptr(), x)) return NumberArray{{}, {x}};
  if (plain_numbers(h, all.numbers)) return all.shape = {all.numbers.size()}, all;
  const auto array = py::reinterpret_steal<py::object>(PyObject_CallOneArg(from_python().real_numbers, h.ptr()));
  if (!array) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError)) throw py::error_already_set();
    PyErr_Clear();
    return std::nullopt;
  }
  const py::object rows = as_plain(array.ptr(), "an array");
  const Array* a = proxy(rows.ptr());
  all.shape.assign(a->dimensions, a->dimensions + a->nd);
  std::size_t size = 1;
  for (const std::size_t n : all.shape) size *= n;
  const auto* data = reinterpret_cast<const double*>(a->data);
  all.numbers.assign(data, data + size);
  return all;
}

namespace {

Value value_of(const NumberArray& array) {
  if (array.shape.empty()) return array.numbers[0];
  const std::size_t width = array.shape[0] ? array.numbers.size() / array.shape[0] : 0;
  Value::List all;
  for (std::size_t k = 0; k < array.shape[0]; ++k) {
    const auto begin = array.numbers.begin() + static_cast<std::ptrdiff_t>(k * width);
    all.push_back(value_of({{array.shape.begin() + 1, array.shape.end()}, {begin, begin + static_cast<std::ptrdiff_t>(width)}}));
  }
  return all;
}

// ---- values from the caller, shown in errors as the caller wrote them ----------------------------------------------------------------

/// Convert an argument to a value. An object that is neither a number, a text nor a list (or a list that contains itself) becomes an invalid value,
/// which the core rejects.
Value argument(const py::handle& h, bool named, int depth = 0) {
  Value value = Value::Object();
  double x = 0.0;
  if (h.is_none() || PyUnicode_Check(h.ptr())) {
    value = from_python_value(h);
  } else if (plain_number(h.ptr(), x)) {
    value = x;
  } else if (depth < 8 && (PyTuple_CheckExact(h.ptr()) || PyList_CheckExact(h.ptr()))) {
    Value::List all;
    for (const py::handle each : py::reinterpret_borrow<py::sequence>(h)) all.push_back(argument(each, named, depth + 1));
    value = std::move(all);
  } else if (const auto array = numbers_of(h)) {
    value = value_of(*array);
  }
  return named ? std::move(value).written(shown(h)) : value;
}
/// Return make(named). If it raises, call it again with the arguments as text, so that the error shows what the caller wrote.
template <class Make> auto with_texts(Make make) {
  try {
    return make(false);
  } catch (const ModelError&) {
    return make(true);
  }
}

// ---- reading -----------------------------------------------------------------------------------------------------------------------------

/// Visitor of fields that ignores their default values.
template <class F> struct Each {
  F f;
  template <class X> void operator()(const char* key, X& member) { f(key, member); }
  template <class X> void operator()(const char* key, X& member, const std::common_type_t<X>&) { f(key, member); }
};
template <class F> Each(F) -> Each<F>;

std::string kind_of(const model::Body&) { return "body"; }
std::string kind_of(const model::Joint& j) { return j.laws.empty() ? "joint" : "constraint"; }
std::string kind_of(const model::Frame&) { return "frame"; }
std::string kind_of(const model::Spring&) { return "spring"; }
std::string kind_of(const model::Shape&) { return "shape"; }
template <class Part> std::string kind_of(const Part&) { return "constraint"; }

std::string subject_of(const model::Visual& v) { return "visual of body '" + v.body + "'"; }
std::string subject_of(const model::Contact& c) { return "contact of '" + c.first + "' and '" + c.second + "'"; }
template <class Part> std::string subject_of(const Part& part) { return kind_of(part) + " '" + part.name + "'"; }

/// Value of a field, together with the field's name in error messages.
struct Given {
  py::handle value;
  std::string label;
  std::function<std::string()> subject;

  std::string called() const {
    const std::string of = subject ? subject() : "";
    return of.empty() ? label : label.empty() ? of : of + ": " + label;
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw ModelError(called() + " " + expected + "; got " + shown(value));
  }
  Given part(const py::handle& of, std::string name) const { return {of, std::move(name), subject}; }
};

void read(const Given& g, double& to) {
  if (plain_number(g.value.ptr(), to)) return;
  const auto array = numbers_of(g.value);
  if (!array || !array->shape.empty()) g.fail("needs one finite number");
  to = array->numbers[0];
}
void read(const Given& g, int& to) {
  constexpr Py_ssize_t most = std::numeric_limits<int>::max();
  Py_ssize_t x = PyIndex_Check(g.value.ptr()) && !PyBool_Check(g.value.ptr()) ? PyNumber_AsSsize_t(g.value.ptr(), nullptr) : -1;
  if (x == -1 && (PyErr_Occurred() || !PyIndex_Check(g.value.ptr()) || PyBool_Check(g.value.ptr()))) {
    PyErr_Clear();
    g.fail("needs a whole number");
  }
  to = static_cast<int>(std::clamp(x, -most, most));
}
void read(const Given& g, bool& to) {
  PyObject* const x = g.value.ptr();
  const bool is_integer = PyIndex_Check(x) && !PySequence_Check(x);
  if (!is_integer && !py::detail::make_caster<bool>().load(g.value, false)) g.fail("must be True or False");
  to = PyObject_IsTrue(x) == 1;
}
void read(const Given& g, std::string& to) {
  if (PyUnicode_Check(g.value.ptr())) return void(to = from_text(g.value));
  if (g.label == "parent" || g.label == "child")
    throw ModelError(g.subject() + ": parent and child must be names of bodies; got " + shown(g.value));
  const std::string kind = g.label == "joint" ? "joint" : g.label == "first" || g.label == "second" ? "shape or group" : "body";
  throw NameNotFoundError(g.subject() + ": no " + kind + " is named '" + printable(from_text(py::str(g.value))) +
                          "'; a name must be a str");
}
void read(const Given& g, std::vector<std::string>& to) {
  to.clear();
  auto names = py::reinterpret_steal<py::object>(PyUnicode_Check(g.value.ptr()) ? nullptr : PySequence_List(g.value.ptr()));
  PyErr_Clear();
  for (const py::handle name : py::list(names ? names : py::object(py::list()))) {
    if (!PyUnicode_Check(name.ptr())) names = py::object();
    if (names) to.push_back(from_text(name));
  }
  if (!names || to.empty()) g.fail("needs a list of one or more names");
}
const char* unit_of(const std::string& label) {
  return label == "gravity" ? "[m/s2]" : label == "scale of a mesh" ? "for x, y and z" : "[m]";
}
template <std::size_t n> void read(const Given& g, std::array<double, n>& to) {
  const auto array = numbers_of(g.value);
  if (!array || array->shape != std::vector<std::size_t>{n})
    g.fail(std::string("needs ") + (n == 2 ? "two" : n == 3 ? "three" : "four") + " finite numbers " + unit_of(g.label));
  std::copy_n(array->numbers.begin(), n, to.begin());
}
void read(const Given& g, std::vector<double>& to) {
  auto array = numbers_of(g.value);
  if (!array || array->shape.size() > 1) g.fail("needs a finite number or a sequence of them");
  to = std::move(array->numbers);
}
/// Read rows of numbers. Rows of unequal lengths are accepted here, because the core checks them.
template <class Row> void read_rows(const Given& g, std::vector<Row>& to, const char* expected) {
  to.clear();
  if (PyTuple_Check(g.value.ptr()) || PyList_Check(g.value.ptr())) {
    for (const py::handle h : py::reinterpret_borrow<py::sequence>(g.value)) {
      const auto row = numbers_of(h);
      if (!row || row->shape.size() != 1) g.fail(expected);
      if constexpr (std::is_same_v<Row, std::vector<double>>) {
        to.push_back(row->numbers);
      } else {
        if (row->shape[0] != 3) g.fail(expected);
        to.push_back({row->numbers[0], row->numbers[1], row->numbers[2]});
      }
    }
    return;
  }
  const auto array = numbers_of(g.value);
  if (!array || array->shape.size() != 2) g.fail(expected);
  for (std::size_t k = 0; k < array->shape[0]; ++k) {
    const auto begin = array->numbers.begin() + static_cast<std::ptrdiff_t>(k * array->shape[1]);
    if constexpr (std::is_same_v<Row, std::vector<double>>) {
      to.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(array->shape[1]));
    } else {
      if (array->shape[1] != 3) g.fail(expected);
      to.push_back({begin[0], begin[1], begin[2]});
    }
  }
}
void read(const Given& g, std::vector<std::vector<double>>& to) { read_rows(g, to, "needs rows of finite numbers [m]"); }
void read(const Given& g, std::vector<model::Point>& to) { read_rows(g, to, ("must be " + model::expected_points).c_str()); }

void read(const Given& g, model::BodyPoint& to) {
  if ((!PyTuple_Check(g.value.ptr()) && !PyList_Check(g.value.ptr())) || PySequence_Size(g.value.ptr()) != 2)
    throw ModelError(g.called() + " end must be a pair (body, point); got " + shown(g.value));
  const auto pair = py::reinterpret_borrow<py::sequence>(g.value);
  const py::object body = pair[0], point = pair[1];
  read({body, "body", [&g] { return g.called(); }}, to.body);
  read(g.part(point, g.label + " point"), to.point);
}
/// Read the coordinate of a term or factor (name of the joint, index or None, numbers); return its key.
template <class Part> py::object read_coordinate(const Given& g, const py::sequence& part, Part& to) {
  const py::object joint = part[0], index = part[1];
  py::object key = index.is_none() ? joint : py::object(py::make_tuple(joint, index));
  read(g.part(joint, "joint"), to.joint);
  to.index = model::Term::only;
  if (!index.is_none()) {
    if (!PyIndex_Check(index.ptr()))
      throw ModelError(g.subject() + ": a coordinate must be the name of a joint, or (name, index); got " + shown(key));
    to.index =
        static_cast<int>(std::max<Py_ssize_t>(-1000000, std::min<Py_ssize_t>(1000000, PyNumber_AsSsize_t(index.ptr(), nullptr))));
  }
  return key;
}
void read(const Given& g, model::Term& to) {
  const auto term = py::reinterpret_borrow<py::sequence>(g.value);
  const py::object key = read_coordinate(g, term, to), coefficients = term[2];
  read(g.part(coefficients, "coefficients of " + shown(key)), to.coefficients);
}

void read(const Given& g, Law& to) {
  model::LawFields fields;
  fields.fields(Each{[&](const char* key, auto& member) {
    const py::object value = attribute(g.value, key);
    read({value, key, {}}, member);
  }});
  to = fields.made();
}
void read(const Given& g, model::Factor& to) {
  const auto factor = py::reinterpret_borrow<py::sequence>(g.value);
  read_coordinate(g, factor, to);
  const py::object function = factor[2];
  read(g.part(function, "function"), to.function);
}
void read(const Given& g, Transform<double>& to) {
  to = Transform<double>::identity();
  if (g.value.is_none()) return;
  if (is(g.value, from_python().Transform)) return void(to = to_transform(g.value));
  const auto array = numbers_of(g.value);
  if (!array || array->shape != std::vector<std::size_t>{3}) g.fail("must be a Transform or a translation of three numbers");
  to.p = vec3(array->numbers[0] + 0.0, array->numbers[1] + 0.0, array->numbers[2] + 0.0);
  if (!to.p.allFinite()) g.fail("must be finite");
}
void read(const Given& g, model::Inertia& to) {
  if (!is(g.value, from_python().Inertia)) throw ModelError(g.subject() + " needs a sarrus.Inertia; got " + shown(g.value));
  double x[12];
  static PyObject* const names[] = {interned("com"), interned("about_com")};
  read_arrays<3, 9>(g.value, names, x);
  to.mass = attribute(g.value, "mass").cast<double>();
  to.com = vec3(x[0], x[1], x[2]);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) to.about_com(i, j) = x[3 + 3 * i + j];
}

/// The core's type of a joint, which the Python object contains.
struct JointOfCore {
  model::JointType type;
};
void read(const Given& g, model::JointType& to) {
  if (!is(g.value, from_python().JointType))
    throw ModelError(g.subject() + " needs a joint type such as sarrus.Free(); got " + shown(g.value));
  to = attribute(g.value, "_core").cast<const JointOfCore&>().type;
}

/// Read nothing for a Python function, because the core's description only stores that there is a function.
void read(const Given&, std::monostate&) {}
template <class T> void read(const Given& g, std::optional<T>& to);
void read(const Given& g, model::Beam::Pair& to) {
  const bool is_pair = PyTuple_CheckExact(g.value.ptr()) || PyList_CheckExact(g.value.ptr());
  if (is_pair && py::len(g.value) == 2) {
    const auto pair = py::reinterpret_borrow<py::sequence>(g.value);
    for (std::size_t k = 0; k < 2; ++k) {
      const py::object x = pair[k];
      read(g.part(x, g.label), to[k]);
    }
  } else if (const auto array = g.value.is_none() ? NumberArray{{}, {0.0}} : numbers_of(g.value);
             array && array->numbers.size() == 2 && array->shape.size() == 1) {
    to = {array->numbers[0], array->numbers[1]};
  } else if (array && array->shape.empty()) {
    read(g, to[0]), read(g, to[1]);
  } else {
    g.fail("needs one number for y and z, or a pair of numbers");
  }
}
template <class T> void read(const Given& g, std::vector<T>& to) {
  if (!PyTuple_Check(g.value.ptr()) && !PyList_Check(g.value.ptr())) g.fail("must be a tuple");
  to.clear();
  for (const py::handle h : py::reinterpret_borrow<py::sequence>(g.value)) read(g.part(h, g.label), to.emplace_back());
}
template <class T> void read(const Given& g, std::optional<T>& to) {
  if (g.value.is_none()) return to.reset();
  if constexpr (std::is_same_v<T, std::string>) {
    if (!PyUnicode_Check(g.value.ptr()))
      throw ModelError(g.subject() + ": group must be a name that no shape has; got " + shown(g.value));
  } else if constexpr (std::is_same_v<T, std::array<double, 4>>) {
    const auto color = model::color(PyUnicode_Check(g.value.ptr()) ? from_python_value(g.value) : argument(g.value, false));
    if (!color) g.fail(model::expected_color);
    return void(to = *color);
  }
  read(g, to.emplace());
}

// ---- shapes ------------------------------------------------------------------------------------------------------------------------------

/// Return the class named `kind` among the bases of the shape's class, or null if there is none.
PyObject* class_of(const py::handle& shape, const std::string& kind) {
  const auto bases = py::reinterpret_borrow<py::tuple>(Py_TYPE(shape.ptr())->tp_mro);
  for (const py::handle base : bases)
    if (kind == reinterpret_cast<PyTypeObject*>(base.ptr())->tp_name) return base.ptr();
  return nullptr;
}
std::string file_name(const py::handle& h, const std::string& subject) {
  const auto name = py::reinterpret_steal<py::object>(PyOS_FSPath(h.ptr()));
  PyErr_Clear();
  if (!name || !PyUnicode_Check(name.ptr())) throw ModelError(subject + ": a mesh needs the name of a file; got " + shown(h));
  return from_text(name);
}

template <class... Kinds> void read(const Given& g, std::variant<Kinds...>& to) {
  bool is_known = false;
  const auto take = [&](auto shape) {
    using S = decltype(shape);
    if (is_known || !class_of(g.value, S::kind)) return;
    const auto member = [&](const char* key, auto& x) {
      using X = std::decay_t<decltype(x)>;
      const py::object value = attribute(g.value, key);
      if constexpr (std::is_same_v<X, std::string>)
        x = file_name(value, g.subject());
      else if constexpr (std::is_same_v<X, std::vector<std::string>>)
        for (const py::handle folder : py::reinterpret_borrow<py::sequence>(value)) x.push_back(file_name(folder, g.subject()));
      else
        read(g.part(value, model::label(S::kind, key)), x);
    };
    shape.fields(Each{member});
    to = std::move(shape), is_known = true;
  };
  (take(Kinds{}), ...);
  if (is_known) return;
  std::vector<std::string> kinds = {Kinds::kind...};
  const std::string last = kinds.back();
  kinds.pop_back();
  throw ModelError(g.subject() + " needs a " + joined(kinds) + " or " + last + " of sarrus.shapes; got " + shown(g.value));
}

// ---- parts -------------------------------------------------------------------------------------------------------------------------------

template <class Part> struct PartReader {
  py::handle from;
  Part& part;

  template <class X> void operator()(const char* key, X& member) const {
    const py::object value = attribute(from, key);
    const Given g{value, key, [this] { return subject_of(part); }};
    const auto is_key = [&](const char* name) { return g.label == name; };
    if constexpr (std::is_same_v<X, std::string>) {
      if (is_key("name")) return read_name(value, member);
    } else if constexpr (std::is_same_v<Part, model::Pfaffian> && std::is_same_v<X, std::vector<std::vector<double>>>) {
      if (part.is_function = PyCallable_Check(value.ptr()); part.is_function) return;
      return read_rows(g, member, "needs rows of finite numbers or a function of q");
    } else if constexpr (std::is_same_v<Part, model::Rolling> && std::is_same_v<X, model::Point>) {
      if (is_key("normal")) return read_axis(g, member);
    } else if constexpr (std::is_same_v<X, std::optional<model::Point>>) {
      return value.is_none() ? member.reset() : read_axis(g, member.emplace());
    }
    read(g, member);
  }
  template <class X> void operator()(const char* key, X& member, const std::common_type_t<X>&) const { (*this)(key, member); }

 private:
  void read_name(const py::handle& value, std::string& name) const {
    const std::string kind = kind_of(part);
    if (!PyUnicode_Check(value.ptr())) throw ModelError("a " + kind + " needs a name; got " + shown(value));
    name = from_text(value);
    check_printable(kind, name);
  }
  static void read_axis(const Given& g, model::Point& to) {
    try {
      const Vec3<double> axis = with_texts([&](bool named) { return model::unit_axis(argument(g.value, named)); });
      to = {axis(0), axis(1), axis(2)};
    } catch (const ModelError& error) {
      throw ModelError(g.called() + ": " + error.what());
    }
  }
};

template <class Part> Part read_part(const py::handle& from, Part part = {}) {
  if constexpr (std::is_same_v<Part, model::Joint>)  // set first, because it determines the kind that errors contain
    part.laws.resize(py::len(attribute(from, "laws")));
  part.fields(PartReader<Part>{from, part});
  return part;
}

std::string constraint_kind(const py::handle& from) {
  const std::string name = type_name(from);
  return name.size() > 4 && name.substr(name.size() - 4) == "Spec" ? name.substr(0, name.size() - 4) : name;
}
template <class... Kinds> std::tuple<Kinds...> alternatives(const std::variant<Kinds...>&) { return std::tuple<Kinds...>(); }

/// Read a constraint, and call take() with the struct of its kind.
template <class Take> void read_constraint(const py::handle& from, Take take) {
  const std::string kind = constraint_kind(from);
  bool is_known = false;
  if (PyObject_HasAttrString(from.ptr(), "parent")) {  // a kind that is described by frames and numbers
    model::BetweenFrames part;
    each_constraint([&](auto candidate) {
      if (kind == candidate.name) part.kind = candidate, is_known = true;
    });
    if (is_known) return take(read_part(from, part));
  }
  std::apply(
      [&](auto... parts) {
        const auto each = [&](auto part) {
          if constexpr (!std::is_same_v<decltype(part), model::BetweenFrames>)
            if (kind == part.kind) take(read_part(from, part)), is_known = true;
        };
        (each(parts), ...);
      },
      alternatives(model::Constraint()));
  if (!is_known)
    throw ModelError("constraint '" + from_text(py::str(attribute(from, "name"))) + "' has the unknown kind '" + kind + "'");
}

// ---- conversion to Python ----------------------------------------------------------------------------------------------------------------

struct Plain {
  static py::object of(double x) { return py::float_(x); }
  static py::object of(bool x) { return py::bool_(x); }
  static py::object of(int x) { return py::int_(x); }
  static py::object of(const std::string& x) { return to_text(x); }
  template <class T> static py::object of(const std::vector<T>& x) { return row(x); }
  template <std::size_t n> static py::object of(const std::array<double, n>& x) { return row(x); }
  static py::object of(const model::BodyPoint& x) { return py::make_tuple(to_text(x.body), of(x.point)); }
  static py::object of(const model::Term& x) { return py::make_tuple(to_text(x.joint), x.index, of(x.coefficients)); }

 private:
  template <class Row> static py::object row(const Row& x) {
    py::tuple all(x.size());
    std::size_t k = 0;
    for (const auto& each : x) all[k++] = of(each);
    return std::move(all);
  }
};

/// Convert a member to Python. If its value is unchanged, return the object from which it was read.
struct Written {
  py::handle original;

  template <class X> py::object operator()(const X& x) const { return Plain::of(x); }
  py::object operator()(const model::Inertia&) const { return unchanged(); }
  py::object operator()(const model::JointType&) const { return unchanged(); }
  py::object operator()(const std::monostate&) const { return unchanged(); }
  py::object operator()(const Transform<double>& X) const {
    if (is(original, from_python().Transform)) {
      const Transform<double> before = to_transform(original);
      if (before.R == X.R && before.p == X.p) return unchanged();
    }
    if (X.R == Mat3<double>::Identity()) {
      if (X.p == zero3<double>()) {
        static PyObject* const identity =
            py::handle(from_python().Transform)().release().ptr();  // immutable, and shared because most elements have it
        return py::reinterpret_borrow<py::object>(identity);
      }
      return py::handle(from_python().Transform)(py::arg("translation") = Plain::of(model::Point{X.p(0), X.p(1), X.p(2)}));
    }
    py::list rows;
    for (int i = 0; i < 3; ++i) rows.append(Plain::of(model::Point{X.R(i, 0), X.R(i, 1), X.R(i, 2)}));
    return py::handle(from_python().Transform)(rows, Plain::of(model::Point{X.p(0), X.p(1), X.p(2)}));
  }
  py::object operator()(const Law& law) const {
    Law before;
    read({original, "law", {}}, before);
    if (before.start == law.start && before.coefficient == law.coefficient && before.harmonic == law.harmonic &&
        before.period == law.period)
      return unchanged();
    return made(Py_TYPE(original.ptr()), model::LawFields(law));
  }
  template <class T> py::object operator()(const std::optional<T>& x) const { return x ? (*this)(*x) : py::none(); }
  py::object operator()(const std::vector<std::optional<Law>>& laws) const {
    py::tuple all(laws.size());
    const auto before = py::reinterpret_borrow<py::sequence>(original);
    for (std::size_t k = 0; k < laws.size(); ++k) all[k] = k < before.size() ? py::object(before[k]) : py::none();
    return std::move(all);
  }
  py::object operator()(const std::vector<std::vector<model::Factor>>& products) const {
    py::tuple all(products.size());
    const auto before = py::reinterpret_borrow<py::sequence>(original);
    for (std::size_t m = 0; m < products.size(); ++m) {
      const py::sequence factors = before[m];
      py::tuple product(products[m].size());
      for (std::size_t k = 0; k < products[m].size(); ++k) {
        const py::sequence factor = factors[k];
        product[k] = py::make_tuple(to_text(products[m][k].joint), products[m][k].index, factor[2]);
      }
      all[m] = product;
    }
    return std::move(all);
  }
  py::object operator()(const std::vector<std::vector<double>>& rows) const {
    return PyCallable_Check(original.ptr()) ? unchanged() : Plain::of(rows);
  }
  template <class... Kinds> py::object operator()(const std::variant<Kinds...>& x) const {
    return std::visit(
        [&](const auto& shape) {
          return made(reinterpret_cast<PyTypeObject*>(class_of(original, std::decay_t<decltype(shape)>::kind)), shape);
        },
        x);
  }

  /// Create an object of a class from these fields.
  template <class T> py::object made(PyTypeObject* type, T fields) const {
    py::dict all;
    fields.fields(Each{[&](const char* key, auto& member) {
      const py::object from = PyObject_HasAttrString(original.ptr(), key) ? attribute(original, key) : py::none();
      all[key] = Written{from}(member);
    }});
    const py::tuple none(0);
    auto object = py::reinterpret_steal<py::object>(PyObject_Call(reinterpret_cast<PyObject*>(type), none.ptr(), all.ptr()));
    if (!object) throw py::error_already_set();
    return object;
  }

 private:
  py::object unchanged() const { return py::reinterpret_borrow<py::object>(original); }
};

template <class Part> py::object add(model::Builder& builder, const py::handle& from, Part part) {
  if constexpr (std::is_same_v<Part, model::Joint>)
    builder.add(std::move(part), true);
  else
    builder.add(std::move(part));
  const model::Description& d = builder.description();
  const auto written = [&](const auto& last) { return Written{from}.made(Py_TYPE(from.ptr()), last); };
  if constexpr (std::is_same_v<Part, model::Body>)
    return written(d.bodies.back());
  else if constexpr (std::is_same_v<Part, model::Joint>)
    return written(d.joints.back());
  else if constexpr (std::is_same_v<Part, model::Frame>)
    return written(d.frames.back());
  else if constexpr (std::is_same_v<Part, model::Spring>)
    return written(d.springs.back());
  else if constexpr (std::is_same_v<Part, model::Visual>)
    return written(d.visuals.back());
  else if constexpr (std::is_same_v<Part, model::Shape>)
    return written(d.shapes.back());
  else if constexpr (std::is_same_v<Part, model::Contact>)
    return written(d.contacts.back());
  else
    return written(std::get<Part>(d.constraints.back()));
}

/// Add an element to the core's description; return it with plain numbers and its default values.
py::object add_part(model::Builder& builder, const py::handle& from) {
  const std::string kind = constraint_kind(from);
  if (kind == "Body") return add(builder, from, read_part<model::Body>(from));
  if (kind == "Joint") return add(builder, from, read_part<model::Joint>(from));
  if (kind == "Frame") return add(builder, from, read_part<model::Frame>(from));
  if (kind == "Spring") return add(builder, from, read_part<model::Spring>(from));
  if (kind == "Visual") return add(builder, from, read_part<model::Visual>(from));
  if (kind == "Shape") return add(builder, from, read_part<model::Shape>(from));
  if (kind == "Contact") return add(builder, from, read_part<model::Contact>(from));
  py::object made;
  read_constraint(from, [&](const auto& constraint) { made = add(builder, from, constraint); });
  return made;
}

/// Check a beam. Return its parts: (name, mass, com, about_com) of each body, (kind, fields) of the joints between them, (name, parent, child, at_parent,
/// at_child) of each joint, and (name, body) of each frame.
py::tuple beam_parts(const model::Builder& builder, const py::handle& name, const py::handle& parent, const py::handle& at_parent,
                     const py::dict& numbers) {
  model::Beam beam;
  if (!PyUnicode_Check(name.ptr())) throw ModelError("a beam needs a name; got " + shown(name));
  beam.name = from_text(name);
  const auto subject = [called = "beam " + quoted(printable(beam.name))] { return called; };
  read({parent, "parent", subject}, beam.parent), read({at_parent, "at_parent", subject}, beam.at_parent);
  beam.fields([&](const char* key, auto& member) { read({numbers[key], key, subject}, member); });
  const model::Description d = builder.beam(beam);
  py::list bodies, joints, frames;
  for (const model::Body& b : d.bodies) {
    const model::InertiaFields inertia(b.inertia);
    bodies.append(py::make_tuple(to_text(b.name), inertia.mass, to_python(inertia.com), to_python(inertia.about_com)));
  }
  for (const model::Joint& j : d.joints)
    joints.append(py::make_tuple(to_text(j.name), to_text(j.parent), to_text(j.child),
                                 Plain::of(model::Point{j.at_parent.p(0), j.at_parent.p(1), j.at_parent.p(2)}),
                                 Plain::of(model::Point{j.at_child.p(0), j.at_child.p(1), j.at_child.p(2)})));
  for (const model::Frame& f : d.frames) frames.append(py::make_tuple(to_text(f.name), to_text(f.body)));
  const model::JointType& joint = d.joints.back().joint;
  return py::make_tuple(bodies, joint.name(), to_python(model::fields_of(joint)), joints, frames);
}

/// Return check(numbers); its errors show the values as the caller wrote them.
template <class Check> auto coordinates_of(const py::handle& value, Check check) {
  const auto array = numbers_of(value);
  const bool fits = array && array->shape.size() < 2;
  try {
    return check(fits ? array->numbers : std::vector<double>{std::nan("")});
  } catch (const NameNotFoundError&) {
    throw;
  } catch (const ModelError& error) {
    const std::string message = error.what();
    const std::size_t end = message.rfind("; got ");
    throw ModelError(end == std::string::npos ? message : message.substr(0, end) + "; got " + shown(value));
  }
}
model::JointCoordinates read_coordinates(const model::Builder& builder, const py::dict& given, const std::string& subject) {
  model::JointCoordinates all;
  for (const auto& [name, value] : given) {
    std::string joint;
    read(Given{name, "joint", [&] { return subject; }}, joint);
    all.push_back(coordinates_of(value, [&](const auto& q) { return builder.coordinates({{joint, q}}, subject)[0]; }));
  }
  return all;
}
py::dict written_coordinates(const model::JointCoordinates& all) {
  py::dict coordinates;
  for (const auto& [name, q] : all) coordinates[to_text(name)] = Plain::of(q);
  return coordinates;
}

// ---- types of joints ---------------------------------------------------------------------------------------------------------------------

py::object frozen(const std::vector<double>& numbers) {
  const auto size = static_cast<Py_ssize_t>(numbers.size());
  double* data = nullptr;
  auto array = py::reinterpret_steal<py::object>(new_array(1, &size, &data));
  std::copy(numbers.begin(), numbers.end(), data);
  py::detail::array_proxy(array.ptr())->flags &= ~py::detail::npy_api::NPY_ARRAY_WRITEABLE_;
  return array;
}
std::vector<double> numbers(const Value& list) {
  std::vector<double> all;
  for (const Value& x : list.list()) all.push_back(x.number());
  return all;
}
const std::vector<std::string> passive = {
    "damping",         "friction",          "armature",     "stiffness", "rest", "quadratic_stiffness",
    "cubic_stiffness", "quadratic_damping", "cubic_damping"};
py::object zeros(int count) {
  static const std::vector<PyObject*> all = [] {  // create the arrays once, because most joints have zeros
    std::vector<PyObject*> made;
    for (std::size_t k = 0; k < 8; ++k) made.push_back(frozen(std::vector<double>(k)).release().ptr());
    return made;
  }();
  return py::reinterpret_borrow<py::object>(all[static_cast<std::size_t>(count)]);
}

/// Return the core's type of a joint, and all its fields by name. The fields are read-only arrays and numbers; for a gimbal also names.
py::tuple joint_type(const std::string& kind, const py::dict& arguments) {
  const std::vector<model::JointField> candidates = model::joint_fields(kind);
  const auto make = [&](bool named) {
    Value::Object fields;
    for (const model::JointField& f : candidates) {
      py::object value = arguments[f.name.c_str()];
      if (!f.required && PyFloat_CheckExact(value.ptr()) && PyFloat_AS_DOUBLE(value.ptr()) == 0.0) continue;
      if (f.name == "free" && !PyUnicode_Check(value.ptr()) && !PyTuple_Check(value.ptr()) && !PyList_Check(value.ptr()))
        if (auto names = py::reinterpret_steal<py::object>(PySequence_Tuple(value.ptr()))) value = names;
      PyErr_Clear();
      fields.emplace_back(f.name, argument(value, named));
    }
    return model::joint_type(kind, fields);
  };
  JointOfCore made{with_texts(make)};
  const Value::Object written = model::fields_of(made.type);
  py::dict fields;
  for (const model::JointField& f : candidates) {
    const Value* value = Value::find(written, f.name);
    const std::string& key = f.name;
    py::object x = py::none();  // value of an optional limit or bound
    if (key == "limits") {
      if (value) x = py::make_tuple(frozen(numbers(value->list()[0])), frozen(numbers(value->list()[1])));
    } else if (key == "free") {
      x = py::tuple(to_python(value ? *value : Value::List()));
    } else if (f.one_number || value) {
      x = value && value->is_list() ? frozen(numbers(*value)) : py::float_(value ? value->number() : 0.0);
    } else if (key == "fixed") {
      x = zeros(6);
    } else if (key.find("_limit") == std::string::npos) {
      const bool axis = std::find(passive.begin(), passive.end(), key) == passive.end();
      x = axis ? frozen({0.0, 0.0, 1.0}) : zeros(made.type.nv());
    }
    fields[key.c_str()] = x;
  }
  return py::make_tuple(std::move(made), fields);
}

// ---- descriptions of the kernels ---------------------------------------------------------------------------------------------------------

/// Return (names of the driven joints, body and placement of the motors, one tuple per motor), with the names of motor, rotor and coupler, the fields
/// of the joint type, the coupler's terms and its offset for each motor.
py::tuple transmission(const model::Builder& builder, const py::handle& name, const py::handle& motors, const py::handle& joints,
                       const py::handle& matrix, const py::handle& offset, const py::handle& base, const py::handle& linear,
                       const py::dict& properties) {
  if (!PyUnicode_Check(name.ptr())) throw ModelError("a transmission needs a name; got " + shown(name));
  model::Transmission t;
  t.name = from_text(name);
  check_printable("transmission", t.name);
  const auto subject = [&t] { return "transmission '" + t.name + "'"; };
  read(Given{motors, "motors", subject}, t.motors);
  const Given coordinates{joints, "joints", subject};
  auto all = py::reinterpret_steal<py::object>(PyUnicode_Check(joints.ptr()) ? nullptr : PySequence_List(joints.ptr()));
  PyErr_Clear();
  if (!all || py::len(all) == 0) coordinates.fail("needs a list of one or more names of joints, or pairs (name, index)");
  for (const py::handle each : py::list(all)) {
    const bool pair = PyTuple_Check(each.ptr()) && PyTuple_GET_SIZE(each.ptr()) == 2;
    const py::tuple part = pair ? py::reinterpret_borrow<py::tuple>(each) : py::make_tuple(each, py::none());
    read_coordinate(coordinates, part, t.joints.emplace_back());
  }
  read_rows(Given{matrix, "matrix", subject}, t.matrix, "needs rows of finite numbers, one for each motor");
  read(Given{offset, "offset", subject}, t.offset);
  if (!base.is_none()) read(Given{base, "base", subject}, t.base);
  read(Given{linear, "linear", subject}, t.linear);
  const model::Builder::TransmissionParts parts = with_texts([&](bool named) {
    t.properties.clear();
    for (const auto& [key, value] : properties) t.properties.emplace_back(from_text(key), argument(value, named));
    return builder.transmission_parts(t);
  });
  py::list driven, each;
  for (const model::Term& joint : t.joints) driven.append(to_text(joint.joint));
  for (std::size_t k = 0; k < parts.joints.size(); ++k) {
    const model::Joint& joint = parts.joints[k];
    const model::Coupler& coupler = parts.couplers[k];
    each.append(py::make_tuple(to_text(joint.name), to_text(joint.child), to_text(coupler.name),
                               to_python(model::fields_of(joint.joint)), Plain::of(coupler.terms), coupler.offset));
  }
  const model::Joint& first = parts.joints[0];
  return py::make_tuple(driven, to_text(first.parent), Written{py::none()}(first.at_parent), each);
}

/// A constraint whose target is an argument of each call: a joint from the ground to a frame, or the coordinates of a joint.
ConstraintDescription target(const py::handle& from, const std::vector<JointDescription>& joints) {
  ConstraintDescription c{};
  c.name = from_text(attribute(from, "name")), c.joint = from_text(attribute(from, "joint"));
  if (!c.joint.empty()) {
    const int index = attribute(from, "index").cast<int>();
    const auto driven = std::find_if(joints.begin(), joints.end(), [&](const auto& j) { return j.name == c.joint; });
    if (index < 0 || driven == joints.end())
      c.kind = LoopJoint(), c.target = Target::coordinates;
    else
      c.kind = PrescribedCoordinate{{}, driven->kind, index}, c.coordinates = {{c.joint, -1}};
    return c;
  }
  FrameKey key = {from_text(attribute(from, "frame")), attribute(from, "turned").cast<bool>()};
  if (const auto only = attribute(from, "components").cast<unsigned>()) key.components = only;
  key.in_world = attribute(from, "in_world").cast<bool>();
  ConstraintDescription target = target_constraint(key);
  target.name = std::move(c.name);
  return target;
}

}  // namespace

Description to_description(const py::handle& from) {
  model::Description d;
  std::vector<std::pair<std::size_t, py::object>> targets;
  d.name = from_text(attribute(from, "name"));
  const py::object gravity = attribute(from, "gravity");
  read({gravity, "gravity", {}}, d.gravity);
  const auto each = [&](const char* key, auto take) {
    const py::object parts = attribute(from, key);
    const auto fault = [&] {
      return ModelError(std::string("a description's ") + key + " must be a tuple of parts of this kind; got " + shown(parts));
    };
    if (!PyTuple_Check(parts.ptr()) && !PyList_Check(parts.ptr())) throw fault();
    try {
      for (const py::handle part : py::reinterpret_borrow<py::sequence>(parts)) take(part);
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_AttributeError)) throw;
      throw fault();
    }
  };
  each("bodies", [&](const py::handle& part) { d.bodies.push_back(read_part<model::Body>(part)); });
  each("joints", [&](const py::handle& part) { d.joints.push_back(read_part<model::Joint>(part)); });
  each("frames", [&](const py::handle& part) { d.frames.push_back(read_part<model::Frame>(part)); });
  each("constraints", [&](const py::handle& part) {
    if (constraint_kind(part) == "Target")
      targets.emplace_back(d.constraints.size() + targets.size(), py::reinterpret_borrow<py::object>(part));
    else
      read_constraint(part, [&](auto&& constraint) { d.constraints.push_back(std::move(constraint)); });
  });
  each("springs", [&](const py::handle& part) { d.springs.push_back(read_part<model::Spring>(part)); });
  Description made = core_description(d);
  for (const auto& [at, part] : targets)
    made.constraints.insert(made.constraints.begin() + static_cast<std::ptrdiff_t>(at), target(part, made.joints));
  return made;
}

const model::JointType& joint_type_of(const py::handle& description, int j) {
  const auto joints = py::reinterpret_borrow<py::sequence>(attribute(description, "joints"));
  return attribute(attribute(joints[static_cast<std::size_t>(j)], "joint"), "_core").cast<const JointOfCore&>().type;
}
template <class Part> std::vector<Part> parts_of(const py::handle& description, const char* key) {
  std::vector<Part> all;
  const py::object parts = attribute(description, key);
  for (const py::handle part : py::reinterpret_borrow<py::sequence>(parts)) all.push_back(read_part<Part>(part));
  return all;
}
std::vector<model::Joint> to_joints(const py::handle& description) { return parts_of<model::Joint>(description, "joints"); }
py::dict changed_joint(const py::handle& spec, const model::Joint& joint) {
  py::dict fields;
  fields["joint"] = py::make_tuple(joint.joint.name(), to_python(model::fields_of(joint.joint)));
  fields["at_parent"] = Written{attribute(spec, "at_parent")}(joint.at_parent);
  fields["at_child"] = Written{attribute(spec, "at_child")}(joint.at_child);
  fields["tree"] = joint.tree, fields["loop"] = joint.loop;
  return fields;
}

void bind_model(py::module_& m) {
  py::class_<JointOfCore>(m, "JointType").def("__repr__", [](const JointOfCore& of) { return model::text_of(of.type); });
  m.def("joint_type", &joint_type, py::arg("kind"), py::arg("fields"));
  m.def(
      "unit_axis",
      [](const py::handle& axis) {
        const Vec3<double> a = with_texts([&](bool named) { return model::unit_axis(argument(axis, named)); });
        return frozen({a(0), a(1), a(2)});
      },
      py::arg("axis"));
  m.def(
      "in_degrees",
      [](const py::handle& joint, const std::vector<double>& q) {
        model::JointType type;
        read({joint, "joint", {}}, type);
        return model::in_degrees(type, q);
      },
      py::arg("joint"), py::arg("q"));
  m.def(
      "doubtful",
      [](const py::iterable& joints) {
        model::Description d;
        for (const py::handle joint : joints) d.joints.push_back(read_part<model::Joint>(joint));
        py::list all;
        for (const std::string& sentence : model::doubtful(d)) all.append(to_text(sentence));
        return all;
      },
      py::arg("joints"));
  m.def(
      "motors_of",
      [](const py::handle& description) {
        model::Description d;
        d.bodies = parts_of<model::Body>(description, "bodies"), d.joints = to_joints(description);
        const py::object constraints = attribute(description, "constraints");
        for (const py::handle part : py::reinterpret_borrow<py::sequence>(constraints))
          if (constraint_kind(part) == model::Coupler::kind) d.constraints.push_back(read_part<model::Coupler>(part));
        py::dict all;
        for (const auto& [joint, coupler] : model::motors_of(d)) all[to_text(joint->name)] = to_text(coupler->name);
        return all;
      },
      py::arg("description"), "Motors of transmissions, and the names of their couplers.");
  m.def(
      "joint_coordinates",
      [](const py::handle& joint, const py::handle& value, const std::string& subject) {
        model::JointType type;
        read({joint, "joint", [&] { return subject; }}, type);
        return Plain::of(coordinates_of(value, [&](const auto& q) { return model::joint_coordinates(type, q, subject); }));
      },
      py::arg("joint"), py::arg("value"), py::arg("subject"));
  m.def(
      "checked_shape",
      [](const py::handle& shape, const std::string& subject) {
        model::ContactShape solid;
        read({shape, "", [&] { return subject; }}, solid);
        model::check_shape(solid, subject);
        return Written{shape}(solid);
      },
      py::arg("shape"), py::arg("subject"));
  m.def(
      "per_row",
      [](const std::vector<double>& value, std::size_t rows, const std::string& subject) {
        return Plain::of(model::per_row(value, rows, subject));
      },
      py::arg("value"), py::arg("rows"), py::arg("subject"));
  m.attr("most_points") = model::most_points;
  m.def(
      "pairs_of_shapes",
      [](const py::object& description) {
        model::Description d;
        d.joints = to_joints(description);
        d.shapes = parts_of<model::Shape>(description, "shapes"), d.contacts = parts_of<model::Contact>(description, "contacts");
        py::list all;
        for (const model::TouchingPair& p : model::touching_pairs(d))
          all.append(
              py::make_tuple(p.first, p.second, p.friction, p.restitution, p.torsional_friction, p.rolling_friction, p.setting));
        return all;
      },
      py::arg("description"),
      "Pairs of shapes that may touch: indices, coefficients, and the index of the contact setting or -1.");
  m.attr("contact_sentences") = py::make_tuple(model::no_contacts, model::some_contacts);
  py::class_<model::Builder>(m, "Builder")
      .def(py::init([](const py::str& name, const py::handle& gravity) {
             model::Point g;
             read({gravity, "gravity", {}}, g);
             return model::Builder(from_text(name), g);
           }),
           py::arg("name"), py::arg("gravity"))
      .def_property_readonly("gravity", [](const model::Builder& b) { return Plain::of(b.description().gravity); })
      .def("add", &add_part, py::arg("part"))
      .def("beam", &beam_parts, py::arg("name"), py::arg("parent"), py::arg("at_parent"), py::arg("numbers"))
      .def(
          "set_configuration",
          [](model::Builder& b, const py::handle& name, const py::dict& coordinates) {
            if (!PyUnicode_Check(name.ptr())) throw ModelError("a configuration needs a name; got " + shown(name));
            const std::string called = from_text(name), subject = b.new_name("configuration", called);
            return written_coordinates(read_coordinates(b, coordinates, subject));
          },
          py::arg("name"), py::arg("coordinates"))
      .def(
          "set_home",
          [](model::Builder& b, const py::dict& coordinates) {
            return written_coordinates(read_coordinates(b, coordinates, "home"));
          },
          py::arg("coordinates"))
      .def(
          "ends",
          [](const model::Builder& b, const py::handle& first, const py::handle& second, const py::str& subject) {
            model::BodyPoint ends[2];
            const std::string of = printable(from_text(subject));
            read({first, "first", [&] { return of; }}, ends[0]), read({second, "second", [&] { return of; }}, ends[1]);
            b.check_ends(ends[0], ends[1], of);
            return py::make_tuple(Plain::of(ends[0]), Plain::of(ends[1]));
          },
          py::arg("first"), py::arg("second"), py::arg("subject"))
      .def("transmission", &transmission, py::arg("name"), py::arg("motors"), py::arg("joints"), py::arg("matrix"),
           py::arg("offset"), py::arg("base"), py::arg("linear"), py::arg("properties"))
      .def(
          "body",
          [](const model::Builder& b, const py::handle& body, const py::str& subject) {
            std::string name;
            const std::string of = printable(from_text(subject));
            read({body, "body", [&] { return of; }}, name);
            return to_text(b.known_body(name, of));
          },
          py::arg("body"), py::arg("subject"))
      .def(
          "shape_name",
          [](const model::Builder& b, const py::handle& body) {
            std::string name;
            read({body, "body", [] { return std::string("shape"); }}, name);
            return to_text(b.shape_name(name));
          },
          py::arg("body"))
      .def("complete", [](const model::Builder& b) { b.complete(); });
}

}  // namespace sarrus::bindings
