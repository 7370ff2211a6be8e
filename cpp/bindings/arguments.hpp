// Inputs and results of each function of a state, which are read once from the list of operations; and the arguments of one call.
#pragma once

#include <string>
#include <vector>

#include "../kernels/operation_sizes.hpp"
#include "arrays.hpp"

namespace sarrus::bindings {

struct Input {
  std::string name;
  PyObject* key;  // interned
  InputSize size;
  bool optional, by_keyword;
};
struct Info {
  const char* name;
  std::vector<Input> inputs;
  int positional = 0, required = 0;
  std::string axes;
  unsigned facts;
  int pfaffian_values = -1;  // index of the input that the core computes itself, from the mechanism; -1: none
  int independent = -1;  // index of the input on which the size of the result depends; -1: none
  PyObject* declaration = nullptr;  // the Python function that handles calls with keywords unknown to the core

  bool is(fact::Fact f) const { return facts & f; }
};

inline Info read(const char* name, const char* inputs, const char* axes, unsigned facts) {
  Info info{name, {}, 0, 0, axes, facts};
  const std::string text = inputs;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    at = end + 1;
    Input in{word, nullptr, InputSize::v, word.back() == '?', false};
    if (in.optional) in.name.pop_back();
    in.size = size_by_name(in.name);
    in.by_keyword = in.name.rfind("base_", 0) == 0 || in.size == InputSize::scalar || in.size == InputSize::weights ||
                    in.size == InputSize::preload || in.size == InputSize::pfaffian_values;
    if (in.name == "pfaffian_values") info.pfaffian_values = static_cast<int>(info.inputs.size());
    if (in.name == "independent") info.independent = static_cast<int>(info.inputs.size());
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
  PyObject* declared = nullptr;  // a keyword that exists only in the Python declaration; null: none
};

inline std::string join(const Info& info, const char* error) { return std::string(info.name) + "() " + error; }

inline void put_keyword(const Info& info, Arguments& a, PyObject* key, PyObject* value) {
  const auto once = [&](PyObject*& slot) {
    if (slot) throw py::type_error(join(info, "got multiple values for argument '") + text(key) + "'");
    slot = value;
  };
  // Python interns keywords, so equal keywords usually are the same object; otherwise compare the strings
  const auto is = [&](PyObject* name) { return key == name || PyUnicode_Compare(key, name) == 0; };
  const Keys& k = keys();
  if (is(k.out)) return once(a.out);
  if (is(k.threads)) return once(a.threads);
  if (info.is(fact::loads) && is(k.wrenches)) return once(a.wrenches);
  if (info.is(fact::at_frame) && is(k.expressed_in)) return once(a.expressed_in);
  if (info.is(fact::at_frame) && is(k.frame)) return once(a.frame);
  const auto flag = [&](bool& to) {
    const int yes = PyObject_IsTrue(value);
    if (yes < 0) {  // an array of several entries has no truth value
      PyErr_Clear();
      throw py::type_error(join(info, "needs True or False as ") + text(key) + "; got " + py::repr(value).cast<std::string>());
    }
    to = yes;
  };
  if (is(k.return_status)) return flag(a.return_status);
  if (info.is(fact::checks_loops) && is(k.check)) return flag(a.check);
  if (info.is(fact::checks_motion) && is(k.exact)) return flag(a.exact);
  for (std::size_t i = 0; i < info.inputs.size(); ++i)
    if (is(info.inputs[i].key)) return once(a.input[i]);
  PyObject* defaults = info.declaration ? PyFunction_GetKwDefaults(info.declaration) : nullptr;
  if (defaults && PyDict_Contains(defaults, key) == 1) {
    a.declared = key;
    return;
  }
  throw py::type_error(join(info, "got an unexpected keyword argument '") + text(key) + "'");
}

inline Arguments parse(const Info& info, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  Arguments a;
  const Py_ssize_t most = info.positional + info.is(fact::at_frame);
  if (count > most)
    throw py::type_error(join(info, "takes ") + std::to_string(most) + " positional arguments but " + std::to_string(count) +
                         " were given");
  for (Py_ssize_t i = 0; i < count; ++i) (i < info.positional ? a.input[i] : a.frame) = args[i];
  if (names)
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) put_keyword(info, a, PyTuple_GET_ITEM(names, i), args[count + i]);
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
