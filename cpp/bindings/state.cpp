#include "state.hpp"

#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "../kernels/batch.hpp"
#include "../mobility/actuation.hpp"
#include "../mobility/joint_wrenches.hpp"
#include "arguments.hpp"
#include "from_python.hpp"
#include "gil.hpp"

namespace sarrus::bindings {
namespace {

[[noreturn]] void wrong_size(const std::string& name, InputSize kind, const Array* a, const Tree& t) {
  const int want = size_of(kind, t);
  if (a->nd == 0) shape_error(name + " is a single number; it needs an axis of " + std::to_string(want) + " entries");
  const std::int64_t has = a->dimensions[a->nd - 1];
  std::string m = name + " has " + std::to_string(has) + " entries in its last axis; ";
  if (kind == InputSize::q) {
    m += "this mechanism has nq = " + std::to_string(t.nq);
    if (has == t.nv) m += " (nv = " + std::to_string(t.nv) + ": did you pass v?)";
  } else if (kind == InputSize::v) {
    m += "this mechanism has nv = " + std::to_string(t.nv);
    if (has == t.nq) m += " (nq = " + std::to_string(t.nq) + ": did you pass q?)";
  } else if (kind == InputSize::weights || kind == InputSize::preload) {
    m = name + " has shape " + shape_text(a->dimensions, a->nd) + "; its last axis must have " + std::to_string(want) +
        " entries";
  } else if (kind != InputSize::cached) {
    m += "it must have " + std::to_string(want);
  } else {
    m += "it must be a motion that kinematics() returned for this mechanism";
  }
  shape_error(m);
}

void require_sound(const Mechanism& m, const Info& info, const std::string& name, InputSize kind, const double* x,
                   std::int64_t n) {
  if (!finite(x, n))
    for (std::int64_t i = 0; i < n; ++i)
      if (!std::isfinite(x[i]))
        state_error(name + "[" + std::to_string(i) + "] is " + (std::isnan(x[i]) ? "nan" : "infinite") + "; it must be finite");
  if (kind == InputSize::q && !sound_quaternions(m, info.is(fact::any_length), x))
    for (const int k : m.quaternions()) {
      const double* p = x + k;
      const double norm = std::sqrt(p[0] * p[0] + p[1] * p[1] + p[2] * p[2] + p[3] * p[3]);
      if (info.is(fact::any_length) ? !usable_quaternion(p) : !unit_quaternion(p))
        state_error(name + "[" + std::to_string(k) + ":" + std::to_string(k + 4) + "] is a quaternion of norm " +
                    std::to_string(norm) + "; it must be a unit quaternion (x, y, z, w): see normalize()");
    }
}

/// Raise ModelError unless the mechanism floats, because forces from the ground would change its momentum.
void require_floating(const Mechanism& m, const Info& info) {
  if (!m.tie().empty())
    fail(from_python().ModelError,
         std::string(info.name) + " requires a floating mechanism, whose base is carried by a Free joint: " + m.tie());
}

/// Return the joints along which there is no inertia, so that the result would be divided by zero. With loops, return only those of them to which the
/// loops couple no inertia.
const std::vector<std::string>& massless(const Mechanism& m, const Info& info) {
  return info.is(fact::on_loops) && m.tree().loops.rows > 0 ? m.idle() : m.massless();
}

/// Return true if no state has a result, because all would be divided by a zero inertia. This is checked before anything is computed.
bool answerless(const Mechanism& m, const Info& info) {
  return (info.is(fact::divides) && !massless(m, info).empty()) || (info.is(fact::needs_mass) && m.mass() <= 0.0);
}

[[noreturn]] void refuse(const Mechanism& m, const Info& info) {
  std::string why = "values overflow";
  if (info.is(fact::needs_mass) && m.mass() <= 0.0)
    why = "the mechanism has no mass";
  else if (info.is(fact::divides) && !massless(m, info).empty())
    why = "no body has inertia along joint '" + massless(m, info).front() +
          "': give a mass to a body that it carries, or an armature to the joint";
  else if (info.is(fact::floats))
    why = "all bodies together have no inertia about some axis, or values overflow";
  else if (info.is(fact::divides))
    why = "the mass matrix is singular in this configuration, or values overflow";
  state_error(std::string(info.name) + " has no result: " + why);
}

/// Return the length of an axis of the result. It may depend on the number of requested coordinates, or on the number of inputs of a path.
std::int64_t axis_size(char axis, const Tree& t, const SizeInputs& request) {
  if (axis == 'W') return request.inputs;
  if (axis != 'L' || !request.independent) return size_of_axis(axis, t);
  int count = 0;
  for (int k = 0; k < t.nv; ++k) count += (request.independent[k] != 0.0) + (request.independent[k] > 0.0);
  return linear_equations_size(t.nv, count);
}

/// Store the properties of an input on which the length of the result depends.
void note_request(const Info& info, int input, const Tree& t, const double* data, std::int64_t numbers, SizeInputs& request) {
  if (input < 0) return;  // wrenches are not inputs of the operation
  if (input == info.independent) request.independent = data;
  if (info.inputs[static_cast<std::size_t>(input)].size == InputSize::waypoints)
    request.inputs = static_cast<int>(numbers / size_of(InputSize::waypoints, t));
}

/// Return the number of entries of one state's result. Raises an error if it, or the number of entries of an nv x nv matrix, exceeds 32 bits, because
/// kernels use 32-bit indices.
std::int64_t checked_size(const Info& info, const Tree& t, const SizeInputs& request) {
  std::int64_t size = 1, matrix = info.is(fact::dense) ? static_cast<std::int64_t>(t.nv) * t.nv : 0;
  for (const char c : info.axes) size *= axis_size(c, t, request);
  if (std::max(size, matrix) > std::numeric_limits<int>::max())
    shape_error(std::string(info.name) + " of this mechanism has " + std::to_string(std::max(size, matrix)) +
                " numbers per state; at most 2^31 - 1 are supported");
  return size;
}

/// Raise the error for the status of a state without a result.
[[noreturn]] void explain(PyObject* self, const Mechanism& m, const Info& info, const Arguments& a, signed char status,
                          const double* out, std::int64_t size) {
  const bool stays_open = info.is(fact::closes_loops) && finite(out, size_of_axis(info.axes[0], m.tree()));
  const bool undecided = info.is(fact::on_loops) && m.tree().loops.rows > 0;
  if (status == no_answer && !stays_open && !undecided) refuse(m, info);
  py::dict more;
  for (std::size_t i = 0; i < info.inputs.size(); ++i)
    if (a.input[i]) more[py::handle(info.inputs[i].key)] = py::handle(a.input[i]);
  if (a.wrenches) more["wrenches"] = py::handle(a.wrenches);
  if (a.exact) more["exact"] = true;
  py::handle(from_python().explain)(py::handle(self), info.name, static_cast<int>(status), more, py::array_t<double>(size, out));
  throw py::value_error("unreachable");
}

Parameters parameters(const Mechanism& m, const Arguments& a) {
  Parameters p{{0, 0, Transform<double>::identity(), ExpressedIn::frame}, 0, nullptr, a.check, a.exact};
  p.solve = &solve_quadratic_programme;
  if (a.frame) {
    if (!PyUnicode_Check(a.frame)) throw py::type_error("frame must be the name of a frame, as a str");
    const Mechanism::PlacedFrame* at = m.find_frame(text(a.frame));
    if (!at) no_such_name("frame", text(a.frame), m.frame_names());
    p.frame = {at->link, at->body, at->X, ExpressedIn::frame, m.number_of(*at)};
  }
  if (a.expressed_in) {
    const std::string where = PyUnicode_Check(a.expressed_in) ? text(a.expressed_in) : "";
    if (where == "world")
      p.frame.expressed_in = ExpressedIn::world;
    else if (where == "world_aligned")
      p.frame.expressed_in = ExpressedIn::world_aligned;
    else if (where != "frame")
      throw py::value_error("expressed_in must be 'frame', 'world' or 'world_aligned'; got " +
                            py::repr(a.expressed_in).cast<std::string>());
  }
  return p;
}

/// Return true if the values of an input that is not part of the state are valid, for any batch.
bool sound_choice(InputSize kind, const double* x, std::int64_t n) {
  return finite(x, n) && (kind != InputSize::weights || std::all_of(x, x + n, [](double w) { return w > 0.0; }));
}

/// Check weights or a preload, and expand a single number to all motors; ValueError if they are invalid.
py::object checked_choice(const Input& input, const Tree& t, PyObject* value, const py::object& array) {
  const Array* x = proxy(array.ptr());
  std::int64_t n = 1;
  for (int i = 0; i < x->nd; ++i) n *= x->dimensions[i];
  if (!sound_choice(input.size, reinterpret_cast<const double*>(x->data), n))
    throw py::value_error(input.name + (input.size == InputSize::weights ? " must be positive; got " : " must be finite; got ") +
                          py::repr(value).cast<std::string>());
  return x->nd ? array : py::module_::import("numpy").attr("full")(size_of(input.size, t), array);
}

/// External wrenches of one state on a few frames.
struct FewWrenches {
  static constexpr int most = 8;
  int count = 0;
  Frame frame[most];
  const double* value[most];

  /// Return false for anything else than names of frames with six finite numbers each.
  bool read(const Mechanism& m, PyObject* wrenches) {
    if (!PyDict_CheckExact(wrenches) || PyDict_GET_SIZE(wrenches) > most) return false;
    PyObject *name, *wrench;
    for (Py_ssize_t at = 0; PyDict_Next(wrenches, &at, &name, &wrench); ++count) {
      if (!PyUnicode_Check(name) || !is_plain(wrench) || proxy(wrench)->nd != 1 || proxy(wrench)->dimensions[0] != 6)
        return false;
      value[count] = reinterpret_cast<const double*>(proxy(wrench)->data);
      const Mechanism::PlacedFrame* placed = m.find_frame(text(name));
      if (!placed || !finite(value[count], 6)) return false;
      frame[count] = {placed->link, placed->body, placed->X, ExpressedIn::frame, m.number_of(*placed)};
    }
    return true;
  }
};

/// Evaluate the most frequent call of a control loop: one state in plain arrays, optionally with out=. Returns null, without any effect, for other
/// calls.
PyObject* one_state(PyObject* self, int op, const Info& info, const Mechanism& m, const Arguments& a) {
  const Tree& t = m.tree();
  if (m.variants() || a.threads || a.return_status ||
      (info.pfaffian_values >= 0 && t.loops.pfaffian_values > 0 && !a.input[info.pfaffian_values]))
    return nullptr;
  if (answerless(m, info)) return nullptr;
  std::optional<FewWrenches> loads;
  if (a.wrenches && !loads.emplace().read(m, a.wrenches)) return nullptr;
  const double* in[max_inputs] = {};
  double number[max_inputs];
  std::int64_t count[max_inputs] = {};
  SizeInputs request;
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    if (!a.input[i]) continue;
    // an array with one entry is not accepted here, because it may be a batch of one
    if (info.inputs[i].size == InputSize::scalar) {
      if (!PyFloat_CheckExact(a.input[i])) return nullptr;
      number[i] = PyFloat_AS_DOUBLE(a.input[i]), in[i] = number + i;
      if (!std::isfinite(number[i])) return nullptr;
      continue;
    }
    if (!is_plain(a.input[i])) return nullptr;
    const Array* x = proxy(a.input[i]);
    if (x->nd != 1 || !fits(info.inputs[i].size, x->dimensions[0], t)) return nullptr;
    in[i] = reinterpret_cast<const double*>(x->data), count[i] = x->dimensions[0];
    note_request(info, static_cast<int>(i), t, in[i], count[i], request);
    if (!finite(in[i], x->dimensions[0])) return nullptr;
    if (info.inputs[i].size == InputSize::weights && !sound_choice(InputSize::weights, in[i], x->dimensions[0])) return nullptr;
    if (info.inputs[i].size == InputSize::q && !sound_quaternions(m, info.is(fact::any_length), in[i])) return nullptr;
  }
  Py_ssize_t dims[3];  // no result has more axes
  int nd = 0;
  const std::int64_t size = checked_size(info, t, request);
  for (const char c : info.axes) dims[nd++] = axis_size(c, t, request);
  double* out = nullptr;
  PyObject* result = nullptr;
  double scalar;
  if (a.out) {
    if (!is_plain(a.out)) return nullptr;
    const Array* x = proxy(a.out);
    if (x->nd != nd || !(x->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_)) return nullptr;
    for (int i = 0; i < nd; ++i)
      if (x->dimensions[i] != dims[i]) return nullptr;
    out = reinterpret_cast<double*>(x->data);
    for (std::size_t i = 0; i < info.inputs.size(); ++i)
      if (in[i] && in[i] < out + size && out < in[i] + count[i]) return nullptr;
    for (int k = 0; loads && k < loads->count; ++k)
      if (loads->value[k] < out + size && out < loads->value[k] + 6) return nullptr;
    result = a.out;
    Py_INCREF(result);
  } else if (nd == 0) {
    out = &scalar;
  } else {
    result = new_array(nd, dims, &out);
  }
  py::object keep = py::reinterpret_steal<py::object>(result);
  Parameters p = parameters(m, a);
  p.inputs = request.inputs;
  if (loads) p.wrenches = loads->count, p.wrench_frame = loads->frame;
  const double status = kernels().single[op](t, p, in, loads ? loads->value : nullptr, out);
  if (status != 0.0) explain(self, m, info, a, static_cast<signed char>(status), out, size);
  if (!finite(out, size)) explain(self, m, info, a, no_answer, out, size);
  return nd == 0 && !a.out ? PyFloat_FromDouble(scalar) : keep.release().ptr();
}

/// An input of a call as rows; its leading axes are broadcast to those of the call.
struct Operand {
  std::string name;
  InputSize kind;
  py::object array;
  const double* data = nullptr;
  std::int64_t size = 0, step = 0;
};

/// Arguments of a call as arrays (first the inputs, then the wrenches), and their common leading axes.
struct Operands {
  std::vector<Operand> all;
  std::vector<int> input;  // index among the operation's inputs, or -1 for a wrench
  std::vector<Frame> wrench_frame;
  std::vector<Py_ssize_t> batch;
  std::int64_t count = 1;

  void add(const std::string& name, InputSize kind, PyObject* value, int input_of) {
    all.push_back({name, kind, as_plain(value, name)});
    input.push_back(input_of);
  }
};

void add_wrenches(const Mechanism& m, const py::handle& wrenches, Operands& operands) {
  if (!PyDict_Check(wrenches.ptr()) && !py::isinstance(wrenches, py::module_::import("collections.abc").attr("Mapping")))
    throw py::type_error("wrenches must be a mapping of frame names to [moment; force]; got " +
                         py::repr(wrenches).cast<std::string>());
  // a copy of the list, because the conversion below may run Python code that changes the dict
  PyObject* pairs = PyMapping_Items(wrenches.ptr());
  if (!pairs) throw py::error_already_set();
  for (const py::handle pair : py::reinterpret_steal<py::list>(pairs)) {
    const auto [name, value] = pair.cast<std::pair<py::object, py::object>>();
    Arguments wrench_arguments;
    wrench_arguments.frame = name.ptr();
    operands.wrench_frame.push_back(parameters(m, wrench_arguments).frame);
    operands.add("wrenches['" + text(name.ptr()) + "']", InputSize::six, value.ptr(), -1);
  }
}

/// Broadcast leading axes like NumPy.
void broadcast_axes(const Tree& t, Operands& operands) {
  std::vector<Py_ssize_t>& batch = operands.batch;
  for (const Operand& o : operands.all) {
    const Array* x = proxy(o.array.ptr());
    if (x->nd == 0 || !fits(o.kind, x->dimensions[x->nd - 1], t)) wrong_size(o.name, o.kind, x, t);
    const std::size_t lead = static_cast<std::size_t>(x->nd - 1);
    if (lead > batch.size()) batch.insert(batch.begin(), lead - batch.size(), 1);
    for (std::size_t i = 0; i < lead; ++i) {
      Py_ssize_t& b = batch[batch.size() - lead + i];
      const Py_ssize_t d = x->dimensions[i];
      if (b == 1)
        b = d;
      else if (d != 1 && d != b)
        shape_error(o.name + " has leading axes " + shape_text(x->dimensions, x->nd - 1) + ", which do not broadcast with " +
                    shape_text(batch.data(), static_cast<int>(batch.size())));
    }
  }
  for (const Py_ssize_t d : batch) operands.count *= d;
}

/// Broadcast the leading axes so that the first one is that of the variants. A single state applies to all variants.
void broadcast_to_variants(const Mechanism& m, Operands& operands) {
  if (!m.variants()) return;
  const auto variants = static_cast<Py_ssize_t>(m.variant_indices().size());
  std::vector<Py_ssize_t>& batch = operands.batch;
  if (batch.empty()) batch.push_back(1);
  if (batch[0] != 1 && batch[0] != variants)
    shape_error("the first leading axis must be that of the " + std::to_string(variants) +
                " variants; these states have leading axes " + shape_text(batch.data(), static_cast<int>(batch.size())) +
                ". For k states of each variant use (1, k)");
  if (batch[0] == 1) operands.count *= variants;
  batch[0] = variants;
}

/// Set the address of each state's values: in consecutive rows, or in one row for all states.
void lay_out(const Tree& t, Operands& operands) {
  for (Operand& o : operands.all) {
    const Array* x = proxy(o.array.ptr());
    o.size = x->dimensions[x->nd - 1];
    std::int64_t rows = 1;
    for (int i = 0; i + 1 < x->nd; ++i) rows *= x->dimensions[i];
    if (rows != operands.count && rows != 1) {
      py::tuple shape(operands.batch.size() + 1);
      for (std::size_t i = 0; i < operands.batch.size(); ++i) shape[i] = operands.batch[i];
      shape[operands.batch.size()] = o.size;
      const py::module_ np = py::module_::import("numpy");
      o.array = np.attr("ascontiguousarray")(np.attr("broadcast_to")(o.array, shape));
      rows = operands.count;
    }
    o.data = reinterpret_cast<const double*>(proxy(o.array.ptr())->data);
    o.step = rows == 1 ? 0 : o.size;
  }
}

Operands operands_of(PyObject* self, const Info& info, const Mechanism& m, const Arguments& a) {
  const Tree& t = m.tree();
  Operands operands;
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    if (!a.input[i]) continue;
    operands.add(info.inputs[i].name, info.inputs[i].size, a.input[i], static_cast<int>(i));
    py::object& array = operands.all.back().array;
    if (info.inputs[i].size == InputSize::weights || info.inputs[i].size == InputSize::preload)
      array = checked_choice(info.inputs[i], t, a.input[i], array);
    // an input with one value per state: expand it to the leading axes of the other inputs
    if (info.inputs[i].size == InputSize::scalar) array = array[py::make_tuple(py::ellipsis(), py::none())];
  }
  if (info.pfaffian_values >= 0 && t.loops.pfaffian_values > 0 && !a.input[info.pfaffian_values]) {
    const bool has_v = info.inputs[1].name == "v";
    const py::handle q = a.input[0], v = has_v ? a.input[1] : Py_None;
    const py::object numbers = py::handle(from_python().pfaffian_values)(py::handle(self), q, v, info.is(fact::row_rates));
    operands.add("Pfaffian rows", InputSize::pfaffian_values, numbers.ptr(), info.pfaffian_values);
  }
  if (a.wrenches) add_wrenches(m, a.wrenches, operands);
  broadcast_axes(t, operands);
  broadcast_to_variants(m, operands);
  lay_out(t, operands);
  return operands;
}

/// Return `out`, or a new array; its rows begin at `rows.out`.
py::object result_of(const Info& info, const Tree& t, const Arguments& a, const Operands& operands, SizeInputs& request,
                     Rows& rows) {
  if (operands.batch.size() + info.axes.size() > 32)  // the limit of the oldest NumPy version that is supported
    shape_error("the result would have " + std::to_string(operands.batch.size() + info.axes.size()) +
                " axes; expected at most 32");
  std::vector<Py_ssize_t> dims = operands.batch;
  for (std::size_t i = 0; i < operands.all.size(); ++i) {
    const Operand& o = operands.all[i];
    note_request(info, operands.input[i], t, o.data, o.size, request);
    if (request.independent == o.data && o.step) shape_error("coordinates must be the same for all states");
  }
  rows.out_size = static_cast<int>(checked_size(info, t, request));
  for (const char c : info.axes) dims.push_back(axis_size(c, t, request));
  const int nd = static_cast<int>(dims.size());
  if (!a.out) return py::reinterpret_steal<py::object>(new_array(nd, dims.data(), &rows.out));
  if (!is_plain(a.out) || !(proxy(a.out)->flags & py::detail::npy_api::NPY_ARRAY_WRITEABLE_))
    shape_error("out must be a writable, C-contiguous float64 array");
  const Array* x = proxy(a.out);
  if (x->nd != nd || !std::equal(dims.begin(), dims.end(), x->dimensions))
    shape_error("out has shape " + shape_text(x->dimensions, x->nd) + "; the result has " + shape_text(dims.data(), nd));
  rows.out = reinterpret_cast<double*>(x->data);
  for (const Operand& o : operands.all) {
    const double* end = o.data + (o.step ? operands.count * o.step : o.size);
    if (o.data < rows.out + operands.count * rows.out_size && rows.out < end) shape_error("out shares memory with " + o.name);
  }
  return py::reinterpret_borrow<py::object>(a.out);
}

/// Addresses of the operands' rows. Addresses of wrenches are stored in this object.
struct RowsOfOperands {
  const Operands& operands;
  std::vector<const double*> wrench;
  std::vector<std::int64_t> wrench_step;

  RowsOfOperands(const Operands& from, Rows& rows) : operands(from) {
    for (std::size_t i = 0; i < operands.all.size(); ++i) {
      const Operand& o = operands.all[i];
      if (const int k = operands.input[i]; k >= 0)
        rows.in[k] = o.data, rows.in_step[k] = o.step, rows.in_size[k] = static_cast<int>(o.size);
      else
        wrench.push_back(o.data), wrench_step.push_back(o.step);
    }
    rows.wrench = wrench.data(), rows.wrench_step = wrench_step.data();
  }
  Parameters parameters(Parameters p) const {
    p.wrenches = static_cast<int>(operands.wrench_frame.size());
    p.wrench_frame = operands.wrench_frame.data();
    return p;
  }
};

std::int64_t thread_count(PyObject* count) {
  if (!count) return 1;
  int overflow = 0;
  const std::int64_t threads = PyLong_AsLongLongAndOverflow(count, &overflow);
  if (threads == -1 && overflow == 0 && PyErr_Occurred()) {
    PyErr_Clear();
    throw py::type_error("threads must be an integer of at least 1; got " + py::repr(count).cast<std::string>());
  }
  // harmless, because there are never more threads than chunks
  if (overflow > 0) return std::numeric_limits<std::int64_t>::max();
  if (threads < 1) throw py::value_error("threads must be at least 1; got " + std::to_string(threads));
  return threads;
}

/// Evaluate any call, including many states, wrenches, a returned status, and `out`.
PyObject* general(PyObject* self, int op, const Info& info, const Mechanism& m, const Arguments& a) {
  const Tree& t = m.tree();
  const Operands operands = operands_of(self, info, m, a);
  Rows rows{};
  SizeInputs request;
  py::object result = result_of(info, t, a, operands, request, rows);
  const std::int64_t threads = thread_count(a.threads);

  const RowsOfOperands given(operands, rows);
  Parameters p = given.parameters(parameters(m, a));
  p.inputs = request.inputs;

  py::array_t<signed char> status(operands.batch);
  rows.status = status.mutable_data();
  Batch work{m,  kernels().many[op],        kernels().each[op],  kernels().variants[op], kernels().lanes, p, rows, operands.count,
             {}, info.is(fact::any_length), answerless(m, info), info.is(fact::ends)};
  for (std::size_t k = 0; k < info.inputs.size(); ++k) work.is_configuration[k] = info.inputs[k].size == InputSize::q;
  if (!operands.batch.empty()) {
    Signals signals;
    bool stopped;
    {
      const WithoutGil free;
      stopped = work.run(threads, [&] { return signals.raised(); });
    }
    if (stopped) throw py::error_already_set();
  } else if (a.return_status) {
    rows.status[0] = static_cast<signed char>(kernels().single[op](t, p, rows.in, rows.wrench, rows.out));
    rows.status[0] = work.judge(0);
  } else {
    for (const Operand& o : operands.all) require_sound(m, info, o.name, o.kind, o.data, o.size);
    if (answerless(m, info)) refuse(m, info);
    const double status_of_state = kernels().single[op](t, p, rows.in, rows.wrench, rows.out);
    if (status_of_state != 0.0) explain(self, m, info, a, static_cast<signed char>(status_of_state), rows.out, rows.out_size);
    if (!finite(rows.out, rows.out_size)) explain(self, m, info, a, no_answer, rows.out, rows.out_size);
    rows.status[0] = fine;
  }
  if (operands.batch.empty() && info.axes.empty() && !a.out) result = py::float_(*rows.out);
  if (a.return_status) return py::make_tuple(result, status).release().ptr();
  return result.release().ptr();
}

/// Evaluate a call of an operation. This function is compiled once, and not for each operation.
SARRUS_NOINLINE PyObject* evaluate_call(int op, PyObject* self, PyObject* const* args, Py_ssize_t positional, PyObject* names) {
  return with_python_errors([&] {
    const Mechanism& m = built_or_variants(self);
    const Info& info = infos()[op];
    const Arguments a = parse(info, args, positional, names);
    if (info.is(fact::floats)) require_floating(m, info);
    if (a.declared) {
      if (m.variants())
        throw py::type_error(join(info, "of variants has no argument '") + text(a.declared) + "': use variants[i]");
      const auto method = py::reinterpret_steal<py::object>(PyMethod_New(info.declaration, self));
      return PyObject_Vectorcall(method.ptr(), args, static_cast<std::size_t>(positional), names);
    }
    PyObject* result = one_state(self, op, info, m, a);
    return result ? result : general(self, op, info, m, a);
  });
}

template <int op> PyObject* call(PyObject* self, PyObject* const* args, Py_ssize_t positional, PyObject* names) {
  return evaluate_call(op, self, args, positional, names);
}

template <int... op> std::vector<PyCFunction> make_calls(std::integer_sequence<int, op...>) {
  return {reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call<op>))...};
}

const KernelTable* in_use = nullptr;

}  // namespace

int find_operation(const std::string& name) {
  for (int i = 0; i < operations; ++i)
    if (name == infos()[i].name) return i;
  throw py::value_error("no operation is named '" + name + "'");
}

PyObject* one_state(PyObject* self, int op, const Arguments& a) {
  const Mechanism& m = built_or_variants(self);
  const Info& info = infos()[op];
  if (info.is(fact::floats)) require_floating(m, info);
  return one_state(self, op, info, m, a);
}

const Mechanism& built_or_variants(const py::handle& self) {
  // Mechanism is the only C++ base class, so its value is in the first slot; pybind11 allocates that memory at the first access
  const auto slot = reinterpret_cast<py::detail::instance*>(self.ptr())->get_value_and_holder();
  if (!slot.holder_constructed())
    throw py::type_error("this Mechanism was never initialised: __init__ of the base class was not called");
  return *slot.value_ptr<Mechanism>();
}

const Mechanism& built(const py::handle& self) {
  const Mechanism& m = built_or_variants(self);
  if (m.variants())
    throw py::type_error("this function needs a single mechanism, not variants: use variants[i], or variants.base");
  return m;
}

const KernelTable& kernels() { return *in_use; }
void use_kernels(const KernelTable* table) { in_use = table; }

py::object method(const py::handle& type, const std::string& name, const std::string& doc, const py::function& declaration) {
  static const std::vector<PyCFunction> calls = make_calls(std::make_integer_sequence<int, operations>{});
  // never freed, because method descriptors refer to these until the interpreter ends
  auto* text = new std::string(doc);
  const int op = find_operation(name);
  infos()[op].declaration = py::handle(declaration).inc_ref().ptr();
  auto* definition = new PyMethodDef{infos()[op].name, calls[op], METH_FASTCALL | METH_KEYWORDS, text->c_str()};
  PyObject* made = PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(type.ptr()), definition);
  if (!made) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(made);
}

py::tuple joint_wrenches(const py::object& self, const py::object& q, const py::object& v, const py::object& a,
                         const py::object& multipliers, const py::object& forces, const py::object& time,
                         const py::object& wrenches, const Names& joints, bool determinate) {
  static const Info info = read("joint_wrenches", JointWrenchRows::inputs, JointWrenchRows::axes, fact::loads);
  const Mechanism& m = built_or_variants(self);
  Arguments arguments;
  const py::object* inputs[] = {&q, &v, &a, &multipliers, &forces, &time};
  constexpr int required = 3;  // number of required arguments; None for one of these is an error
  for (int i = 0; i < 6; ++i) arguments.input[i] = i >= required && inputs[i]->is_none() ? nullptr : inputs[i]->ptr();
  arguments.wrenches = wrenches.is_none() ? nullptr : wrenches.ptr();
  const Operands operands = operands_of(self.ptr(), info, m, arguments);
  Rows rows{};
  SizeInputs request;
  const py::object result = result_of(info, m.tree(), arguments, operands, request, rows);
  const RowsOfOperands given(operands, rows);
  const Parameters p = given.parameters(parameters(m, arguments));
  py::array_t<signed char> status(operands.batch);
  rows.status = status.mutable_data();
  const JointWrenchRows compute(m, kernels(), joints_by_names(m, joints), determinate);
  const Batch work{m, compute, compute, nullptr, kernels().lanes, p, rows, operands.count, {true}, false, false, false};
  Signals signals;
  bool stopped;
  {
    const WithoutGil free;
    stopped = work.run(1, [&] { return signals.raised(); });
  }
  if (stopped) throw py::error_already_set();
  if (std::count(rows.status, rows.status + operands.count, other_forces))
    fail(from_python().ModelError, JointWrenchRows::other_forces_act);
  return py::make_tuple(result, operands.batch.empty() && rows.status[0] != fine);
}

double time_one_state(const py::object& mechanism, const std::string& operation, const std::vector<py::array_t<double>>& inputs,
                      int repeats, bool check) {
  const Mechanism& m = built(mechanism);
  const int op = find_operation(operation);
  const Info& info = infos()[op];
  Parameters p = parameters(m, {});
  p.check = check;
  std::vector<const double*> data;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k].ndim() != 2 || inputs[k].shape(0) != inputs[0].shape(0) ||
        inputs[k].shape(1) != size_of(info.inputs[k].size, m.tree()))
      throw py::value_error("time_one_state: inputs must be (N, size of the input), with the same N");
    data.push_back(inputs[k].data());
  }
  std::int64_t size = 1;
  for (const char c : info.axes) size *= size_of_axis(c, m.tree());
  std::vector<double> out(size);
  const std::int64_t rows = inputs[0].shape(0);
  const OneState run = kernels().single[op];
  const auto start = std::chrono::steady_clock::now();
  for (int r = 0; r < repeats; ++r)
    for (std::int64_t i = 0; i < rows; ++i) {
      const double* in[max_inputs] = {};
      for (std::size_t k = 0; k < data.size(); ++k) in[k] = data[k] + i * inputs[k].shape(1);
      run(m.tree(), p, in, nullptr, out.data());
    }
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / (static_cast<double>(rows) * repeats);
}

}  // namespace sarrus::bindings
