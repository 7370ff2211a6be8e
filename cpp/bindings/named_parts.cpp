#include "named_parts.hpp"

#include <algorithm>

#include "../mechanism/mechanism.hpp"
#include "arguments.hpp"
#include "from_python.hpp"
#include "one_state.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

struct Part {
  PyObject* name;  // interned
  std::string axes;
};

struct CallWithParts {
  int operation;
  PyTypeObject *mechanism, *type;  // type: null for the array itself
  std::vector<Part> parts;
  bool keeps;
  PyObject *state, *robot, *tangent;  // names of attributes, and the number 1.0
};

/// Return a new array of rows, one after the other.
py::object joined(PyObject* const* rows, int count) {
  Py_ssize_t size = 0;
  for (int i = 0; i < count; ++i) size += proxy(rows[i])->dimensions[0];
  double* to;
  py::object made = taken(new_array(1, &size, &to));
  for (int i = 0; i < count; ++i) to = std::copy_n(numbers(rows[i]), proxy(rows[i])->dimensions[0], to);
  return made;
}

/// Return the inputs of a call, or false if they are not those of one state in plain arrays. `displacements` keeps the joined displacements.
bool read_arguments(const CallWithParts& call, const Info& info, const Tree& tree, PyObject* const* args, Py_ssize_t count,
                    Arguments& a, py::object& displacements) {
  Py_ssize_t next = 0;
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    const Input& input = info.inputs[i];
    if (input.optional) continue;
    if (input.size == InputSize::scalar) {
      a.input[i] = call.tangent;
    } else if (input.size == InputSize::displacements) {
      if (next + 3 > count) return false;
      for (int k = 0; k < 3; ++k)
        if (!is_row(args[next + k], tree.nv)) return false;
      displacements = joined(args + next, 3);
      a.input[i] = displacements.ptr(), next += 3;
    } else {
      if (next + 1 > count) return false;
      a.input[i] = args[next++];
    }
  }
  if (info.is(fact::at_frame) && next < count) a.frame = args[next++];
  return next == count && (!info.is(fact::at_frame) || a.frame);
}

py::object object_of_parts(const CallWithParts& call, const Tree& tree, PyObject* robot, const py::object& answer,
                           PyObject* const* inputs) {
  py::dict fields;
  double* data = reinterpret_cast<double*>(proxy(answer.ptr())->data);
  for (const Part& part : call.parts) {
    Py_ssize_t dims[3], size = 1;
    int nd = 0;
    for (const char axis : part.axes) size *= dims[nd++] = size_of_axis(axis, tree);
    fields[py::handle(part.name)] = part_of(answer, data, nd, dims);
    data += size;
  }
  if (call.keeps) fields[py::handle(call.state)] = joined(inputs, 3), fields[py::handle(call.robot)] = py::handle(robot);
  return object_of(call.type, fields);
}

PyObject* evaluate(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with_python_errors([&] {
    const auto& call = *static_cast<const CallWithParts*>(PyCapsule_GetPointer(self, nullptr));
    const py::object none = py::none();
    if (count < 2 || !PyObject_TypeCheck(args[0], call.mechanism)) return none.inc_ref().ptr();
    const Mechanism& m = built_or_variants(args[0]);
    const Info& info = infos()[call.operation];
    Arguments a;
    py::object displacements;
    if (m.variants() || !read_arguments(call, info, m.tree(), args + 1, count - 1, a, displacements)) return none.inc_ref().ptr();
    PyObject* result = one_state(args[0], call.operation, a);
    if (!result) return none.inc_ref().ptr();
    const auto answer = py::reinterpret_steal<py::object>(result);
    return (call.type ? object_of_parts(call, m.tree(), args[0], answer, args + 1) : answer).inc_ref().ptr();
  });
}

}  // namespace

py::function call_with_parts(const std::string& operation, const py::object& type, const NamedAxes& parts, bool keeps) {
  // never freed, because the functions refer to these until the interpreter ends
  auto* call = new CallWithParts{find_operation(operation),
                                 reinterpret_cast<PyTypeObject*>(py::type::of<Mechanism>().inc_ref().ptr()),
                                 type.is_none() ? nullptr : reinterpret_cast<PyTypeObject*>(type.inc_ref().ptr()),
                                 {},
                                 keeps,
                                 PyUnicode_InternFromString("_state"),
                                 PyUnicode_InternFromString("_robot"),
                                 PyFloat_FromDouble(1.0)};
  for (const auto& [name, axes] : parts)
    call->parts.push_back(
        {PyUnicode_InternFromString(name.c_str()), axes.empty() ? infos()[call->operation].axes.substr(1) : axes});
  static PyMethodDef definition{"call_with_parts", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&evaluate)),
                                METH_FASTCALL, nullptr};
  return py::function(taken(PyCFunction_New(&definition, py::capsule(call).ptr())));
}

}  // namespace sarrus::bindings
