#include "force_elements.hpp"

#include <pybind11/stl.h>

#include <tuple>

#include "../elements/list.hpp"
#include "../mechanism/mechanism.hpp"
#include "control.hpp"
#include "described.hpp"
#include "shapes.hpp"

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

// ---- names of fields, and how each is read ---------------------------------------------------------------------------

const char* sort_of(const JointCoordinate&) { return "coordinate"; }
const char* sort_of(const JointVelocity&) { return "velocity"; }
const char* sort_of(const BodyFrame&) { return "frame"; }
const char* sort_of(const Direction&) { return "direction"; }
const char* sort_of(const Number&) { return "number"; }
const char* sort_of(const NumberArray&) { return "numbers"; }
const char* sort_of(const Range&) { return "range"; }
const char* sort_of(const double&) { return "constant"; }
const char* sort_of(const Law* const&) { return "law"; }
const char* sort_of(const std::vector<JointTarget>&) { return "targets"; }
template <class X> const char* sort_of(const X&) { return "plain"; }  // as it is

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

}  // namespace

void add_force_elements(const Mechanism& mechanism, const py::list& described, ForceElementList& list) {
  const Reader reader = {mechanism, list};
  for (const py::handle& h : described) {
    const auto d = h.cast<py::dict>();
    const auto name = d["kind"].cast<std::string>();
    std::size_t keys = 0;  // 0: no kind has this name
    each_described_kind([&](auto kind) {
      if (name != kind.name) return;
      keys = 1;
      kind.fields([&](const char* key, auto& x, auto...) { reader.read(d[key], x), ++keys; });
      list.add(std::move(kind));
    });
    if (keys == 0) throw py::value_error("no force element is named '" + name + "'");
    if (keys != d.size())
      throw py::value_error(name + " has fields that differ from those of " + py::repr(d).cast<std::string>());
  }
}

void bind_force_elements(py::module_& m) { m.def("element_table", &element_table); }

}  // namespace sarrus::bindings
