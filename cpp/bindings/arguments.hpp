// What each function of a state takes and gives, read once from its line in the list, and the arguments of one call.
#pragma once

#include <string>
#include <vector>

#include "../kernels/operation_sizes.hpp"
#include "arrays.hpp"

namespace sarrus::bindings {

enum class Size : char {
  q,
  v,
  six,
  cached,
  one,
  rows,
  pfaffian_values,
  scale,
  gains,
  steps,
  coordinates,
  piece,
  guide,
  displacements,
  effort_cotangent,
  near,
  loop_efforts,
  weights,
  preload
};

struct Input {
  std::string name;
  PyObject* key;  // interned
  Size size;
  bool optional, by_keyword;
};
struct Info {
  const char* name;
  std::vector<Input> inputs;
  int positional = 0, required = 0;
  std::string axes;
  unsigned facts;
  int pfaffian_values = -1;         // which input the core asks the mechanism itself for
  PyObject* declaration = nullptr;  // the Python function that answers where its own keywords ask for more

  bool is(fact::Fact f) const { return facts & f; }
};

inline Info read(const char* name, const char* inputs, const char* axes, unsigned facts) {
  Info info{name, {}, 0, 0, axes, facts};
  const std::string text = inputs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    Input in{word, nullptr, Size::v, word.back() == '?', false};
    if (in.optional) in.name.pop_back();
    if (in.name[0] == 'q') in.size = Size::q;
    if (in.name == "cached") in.size = Size::cached;
    if (in.name == "multipliers" || in.name == "rates") in.size = Size::rows;
    if (in.name == "near") in.size = Size::near;
    if (in.name == "loop_efforts") in.size = Size::loop_efforts;
    if (in.name == "weights") in.size = Size::weights, in.by_keyword = true;
    if (in.name == "preload") in.size = Size::preload, in.by_keyword = true;
    if (in.name == "scale") in.size = Size::scale;
    if (in.name == "gains") in.size = Size::gains;
    if (in.name == "steps") in.size = Size::steps;
    if (in.name == "coordinates") in.size = Size::coordinates;
    if (in.name == "piece") in.size = Size::piece;
    if (in.name == "effort_cotangent") in.size = Size::effort_cotangent;
    if (in.name == "displacements") in.size = Size::displacements;
    if (in.name == "guide") in.size = Size::guide;
    if (in.name == "restitution" || in.name == "time" || in.name == "tangent") in.size = Size::one, in.by_keyword = true;
    if (in.name == "pfaffian_values")
      in.size = Size::pfaffian_values, in.by_keyword = true, info.pfaffian_values = static_cast<int>(info.inputs.size());
    if (in.name == "pfaffian_rates") in.size = Size::pfaffian_values, in.by_keyword = true;
    if (in.name.rfind("base_", 0) == 0) in.size = Size::six, in.by_keyword = true;
    if (in.name == "momentum") in.size = Size::six;
    in.key = PyUnicode_InternFromString(in.name.c_str());
    info.positional += !in.by_keyword, info.required += !in.optional;
    info.inputs.push_back(in);
  }
  return info;
}

inline std::vector<Info>& infos() {
  using namespace fact;
  static auto* all = new std::vector<Info>{
#define SARRUS_INFO(name, ...) read(#name, __VA_ARGS__),
      SARRUS_OPERATIONS(SARRUS_INFO)
#undef SARRUS_INFO
  };
  return *all;
}

inline int size_of(Size s, const Tree& t) {
  switch (s) {
    case Size::q: return t.nq;
    case Size::v: return t.nv;
    case Size::six: return 6;
    case Size::one: return 1;
    case Size::rows: return t.loops.rows;
    case Size::pfaffian_values: return t.loops.pfaffian_values;
    case Size::near: return t.loop_nq;
    case Size::loop_efforts: return t.loop_nv;
    case Size::weights:
    case Size::preload: return t.loops.actuators;
    case Size::scale: return size_of_input("scale", t);
    case Size::gains: return size_of_input("gains", t);
    case Size::coordinates: return size_of_input("coordinates", t);
    case Size::piece: return size_of_input("piece", t);
    case Size::effort_cotangent: return size_of_input("effort_cotangent", t);
    case Size::displacements: return size_of_input("displacements", t);
    case Size::guide: return size_of_input("guide", t);
    case Size::steps: return size_of_input("steps", t);
    default: return cached_kinematics_size(t);
  }
}

struct Keys {
  PyObject *out, *threads, *wrenches, *expressed_in, *return_status, *frame, *check, *exact;
};
inline const Keys& keys() {
  const auto key = [](const char* name) { return PyUnicode_InternFromString(name); };
  static const Keys* k = new Keys{key("out"),           key("threads"), key("wrenches"), key("expressed_in"),
                                  key("return_status"), key("frame"),   key("check"),    key("exact")};
  return *k;
}

struct Arguments {
  PyObject* input[max_inputs] = {};
  PyObject *frame = nullptr, *out = nullptr, *wrenches = nullptr, *expressed_in = nullptr, *threads = nullptr;
  bool return_status = false, check = true, exact = false;
  bool asks_more = false;  // than the core answers: a keyword of the declaration's own
};

inline std::string join(const Info& info, const char* what) { return std::string(info.name) + "() " + what; }

inline void put_keyword(const Info& info, Arguments& a, PyObject* key, PyObject* value) {
  const auto once = [&](PyObject*& slot) {
    if (slot) throw py::type_error(join(info, "got multiple values for argument '") + text(key) + "'");
    slot = value;
  };
  // interned names are the same object; others are compared
  const auto is = [&](PyObject* name) { return key == name || PyUnicode_Compare(key, name) == 0; };
  const Keys& k = keys();
  if (is(k.out)) return once(a.out);
  if (is(k.threads)) return once(a.threads);
  if (info.is(fact::loads) && is(k.wrenches)) return once(a.wrenches);
  if (info.is(fact::at_frame) && is(k.expressed_in)) return once(a.expressed_in);
  if (info.is(fact::at_frame) && is(k.frame)) return once(a.frame);
  const auto flag = [&](bool& to) {
    const int yes = PyObject_IsTrue(value);
    if (yes < 0) {  // an array of several
      PyErr_Clear();
      throw py::type_error(join(info, "takes True or False as ") + text(key) + "; got " + py::repr(value).cast<std::string>());
    }
    to = yes;
  };
  if (is(k.return_status)) return flag(a.return_status);
  if (info.is(fact::checks_loops) && is(k.check)) return flag(a.check);
  if (info.is(fact::checks_motion) && is(k.exact)) return flag(a.exact);
  for (std::size_t i = 0; i < info.inputs.size(); ++i)
    if (is(info.inputs[i].key)) return once(a.input[i]);
  PyObject* own = info.declaration ? PyFunction_GetKwDefaults(info.declaration) : nullptr;
  if (own && PyDict_Contains(own, key) == 1) {
    a.asks_more = true;
    return;
  }
  throw py::type_error(join(info, "got an unexpected keyword argument '") + text(key) + "'");
}

inline Arguments parse(const Info& info, PyObject* const* args, Py_ssize_t given, PyObject* names) {
  Arguments a;
  const Py_ssize_t most = info.positional + info.is(fact::at_frame);
  if (given > most)
    throw py::type_error(join(info, "takes ") + std::to_string(most) + " positional arguments but " + std::to_string(given) +
                         " were given");
  for (Py_ssize_t i = 0; i < given; ++i) (i < info.positional ? a.input[i] : a.frame) = args[i];
  if (names)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) put_keyword(info, a, PyTuple_GET_ITEM(names, i), args[given + i]);
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    if (a.input[i] == Py_None && info.inputs[i].optional) a.input[i] = nullptr;
    if (!a.input[i] && !info.inputs[i].optional)
      throw py::type_error(join(info, "missing argument: '") + info.inputs[i].name + "'");
  }
  if (info.is(fact::at_frame) && !a.frame) throw py::type_error(join(info, "missing argument: 'frame'"));
  if (a.out == Py_None) a.out = nullptr;
  if (a.wrenches == Py_None) a.wrenches = nullptr;
  return a;
}

}  // namespace sarrus::bindings
