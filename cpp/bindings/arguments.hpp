// What each function of a state takes and gives, read once from its line in the list, and the arguments of one call.
#pragma once

#include <cstring>
#include <vector>

#include "../kernels/operation_list.hpp"
#include "arrays.hpp"

namespace sarrus::bindings {

enum class Size : char { q, v, six, known, one, rows, given, scale, gains, steps };

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
  bool has_frame, has_wrenches, has_reactions, divides, needs_mass, any_length, checks = false;
  bool dense = false;  // works on an nv x nv matrix, whatever its result
  const char* beyond = nullptr;  // the method that answers where keywords ask for more
  int given = -1;  // which input the core asks the mechanism itself for
};

inline Info read(const char* name, const char* inputs, const char* axes, bool has_frame, bool has_wrenches) {
  Info info{name, {}, 0, 0, axes, has_frame, has_wrenches, false, false, false, false};
  const std::string text = inputs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    Input in{word, nullptr, Size::v, word.back() == '?', false};
    if (in.optional) in.name.pop_back();
    if (in.name[0] == 'q') in.size = Size::q;
    if (in.name == "known") in.size = Size::known;
    if (in.name == "multipliers" || in.name == "rows") in.size = Size::rows;
    if (in.name == "scale") in.size = Size::scale;
    if (in.name == "gains") in.size = Size::gains;
    if (in.name == "steps") in.size = Size::steps;
    if (in.name == "restitution" || in.name == "time") in.size = Size::one, in.by_keyword = true;
    if (in.name == "given") in.size = Size::given, in.by_keyword = true, info.given = static_cast<int>(info.inputs.size());
    if (in.name.rfind("base_", 0) == 0) in.size = Size::six, in.by_keyword = true;
    in.key = PyUnicode_InternFromString(in.name.c_str());
    info.positional += !in.by_keyword, info.required += !in.optional;
    info.inputs.push_back(in);
  }
  info.has_reactions = std::strcmp(name, "inverse_dynamics") == 0 || std::strcmp(name, "forward_dynamics") == 0;
  if (std::strcmp(name, "actuator_efforts") == 0) info.beyond = "_actuator_efforts";
  info.needs_mass = std::strncmp(name, "center_of_mass", 14) == 0 || std::strncmp(name, "centroidal", 10) == 0;
  info.dense = std::strcmp(name, "omega") == 0 || std::strcmp(name, "operational_inertia_inverse") == 0;
  info.any_length = std::strcmp(name, "normalize") == 0;  // a quaternion that is not unit is what it is for
  info.checks = std::strcmp(name, "forward_dynamics") == 0 || std::strcmp(name, "constrained_motion") == 0 ||
                std::strcmp(name, "actuator_efforts") == 0;
  // only these solve for something, so only these can fail on a state that is itself sound
  const std::string n = name;
  info.divides = n == "forward_dynamics" || n == "constrained_motion" || n.rfind("velocity_", 0) == 0 ||
                 n == "mass_matrix_inverse" || n == "omega" || n == "operational_inertia_inverse";
  return info;
}

inline const std::vector<Info>& infos() {
  static const std::vector<Info>* all = new std::vector<Info>{
#define SARRUS_INFO(name, inputs, axes, frame, wrenches) read(#name, inputs, axes, frame, wrenches),
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
    case Size::given: return t.loops.given;
    case Size::scale: return t.nv + t.loops.rows;
    case Size::gains: return t.loops.actuators + 6;
    case Size::steps: return 3;
    default: return kept_motion_size(t);
  }
}
inline int size_of_axis(char c, const Tree& t) {
  switch (c) {
    case 'q': return t.nq;
    case 'v': return t.nv;
    case 'p': return t.parts - 1;
    case 'P': return 10 * (t.parts - 1);
    case 'k': return kept_motion_size(t);
    case 'c': return t.loops.rows;
    case 'w': return t.loops.constraints;
    case 'u': return t.loops.actuators;
    case 'Q': return t.nq + 1;
    case 'i': return t.nv + t.loops.rows;
    case 'm': return t.nv + t.loops.rows + 1;
    default: return c - '0';
  }
}

struct Keys {
  PyObject *out, *threads, *wrenches, *expressed_in, *return_status, *frame, *return_reactions, *solver, *check;
};
inline const Keys& keys() {
  static const Keys* k = new Keys{PyUnicode_InternFromString("out"),
                                  PyUnicode_InternFromString("threads"),
                                  PyUnicode_InternFromString("wrenches"),
                                  PyUnicode_InternFromString("expressed_in"),
                                  PyUnicode_InternFromString("return_status"),
                                  PyUnicode_InternFromString("frame"),
                                  PyUnicode_InternFromString("return_reactions"),
                                  PyUnicode_InternFromString("solver"),
                                  PyUnicode_InternFromString("check")};
  return *k;
}

struct Arguments {
  PyObject* input[max_inputs] = {};
  PyObject *frame = nullptr, *out = nullptr, *wrenches = nullptr, *expressed_in = nullptr, *threads = nullptr, *solver = nullptr;
  bool return_status = false, return_reactions = false, check = true;
};

inline std::string join(const Info& info, const char* what) { return std::string(info.name) + "() " + what; }

/// Whether a keyword asks for more than the core's function does: the Python method beside it then answers.
inline bool goes_beyond(const Info& info, PyObject* names) {
  if (!info.beyond || !names) return false;
  const Keys& k = keys();
  for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(names); ++n) {
    PyObject* key = PyTuple_GET_ITEM(names, n);
    const auto is = [&](PyObject* name) { return key == name || PyUnicode_Compare(key, name) == 0; };
    bool known = is(k.out) || is(k.threads) || is(k.wrenches) || is(k.return_status) || is(k.check);
    for (const Input& in : info.inputs) known = known || is(in.key);
    if (!known) return true;
  }
  return false;
}

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
  if (info.has_wrenches && is(k.wrenches)) return once(a.wrenches);
  if (info.has_frame && is(k.expressed_in)) return once(a.expressed_in);
  if (info.has_frame && is(k.frame)) return once(a.frame);
  const auto flag = [&](bool& to) {
    const int yes = PyObject_IsTrue(value);
    if (yes < 0) {  // an array of several
      PyErr_Clear();
      throw py::type_error(join(info, "takes True or False as ") + text(key) + "; got " + py::repr(value).cast<std::string>());
    }
    to = yes;
  };
  if (is(k.return_status)) return flag(a.return_status);
  if (info.checks && is(k.check)) return flag(a.check);
  if (info.has_reactions && is(k.return_reactions)) return flag(a.return_reactions);
  if (info.has_reactions && is(k.solver)) {
    if (value == Py_None) return;
    if (!PyUnicode_Check(value) || text(value) != "reference-member" || std::strcmp(info.name, "forward_dynamics") != 0)
      throw py::value_error("solver must be None or, for forward_dynamics, 'reference-member'; got " +
                            py::repr(value).cast<std::string>());
    return once(a.solver);
  }
  for (std::size_t i = 0; i < info.inputs.size(); ++i)
    if (is(info.inputs[i].key)) return once(a.input[i]);
  throw py::type_error(join(info, "got an unexpected keyword argument '") + text(key) + "'");
}

inline Arguments parse(const Info& info, PyObject* const* args, Py_ssize_t given, PyObject* names) {
  Arguments a;
  const Py_ssize_t most = info.positional + info.has_frame;
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
  if (info.has_frame && !a.frame) throw py::type_error(join(info, "missing argument: 'frame'"));
  if (a.out == Py_None) a.out = nullptr;
  if (a.wrenches == Py_None) a.wrenches = nullptr;
  return a;
}

}  // namespace sarrus::bindings
