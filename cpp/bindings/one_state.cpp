#include "one_state.hpp"

#include <cmath>
#include <vector>

#include "../kernels/batch.hpp"
#include "../loops/tolerances.hpp"
#include "../mobility/actuation.hpp"
#include "../mobility/joint_wrenches.hpp"
#include "arguments.hpp"
#include "described.hpp"
#include "from_python.hpp"
#include "state.hpp"

namespace sarrus::bindings {
namespace {

/// A call: the mechanism and its Python object, the other arguments, and the class of the result.
struct Call {
  PyObject* robot;
  const Mechanism& m;
  const Tree& tree;
  PyObject* const* args;
  PyTypeObject* type;
};
using Evaluate = PyObject* (*)(const Call&);

/// Interned names.
struct Names {
  PyObject *_rough = interned("_rough"), *_prepared = interned("_prepared"), *_joints = interned("_joints"),
           *_load_places = interned("_load_places"), *_prescribed = interned("_prescribed"), *_all_v = interned("_all_v"),
           *_at = interned("_at"), *linear = interned("linear");
  PyObject *parts = interned("parts"), *coordinates = interned("coordinates"), *velocities = interned("velocities"),
           *configuration_basis = interned("configuration_basis"), *velocity_basis = interned("velocity_basis"),
           *rate = interned("rate"), *A = interned("A"), *B = interned("B"), *E = interned("E"), *error = interned("error");
  PyObject *q = interned("q"), *v = interned("v"), *a = interned("a"), *time = interned("time"),
           *mechanism = interned("mechanism"), *efforts = interned("efforts"), *constraints = interned("constraints"),
           *multipliers = interned("multipliers"), *wrenches = interned("wrenches");
  PyObject *residual = interned("residual"), *parameters = interned("parameters"), *simple = interned("simple"),
           *v_places = interned("v_places"), *loop_joints = interned("loop_joints"), *rows = interned("rows"),
           *weight = interned("weight"), *robot = interned("robot"), *no_change = interned("no_change");
  PyObject* units_of_rows = interned("units of rows");
};
const Names& names() {
  static const Names all;
  return all;
}

/// Attributes of a result.
class Fields {
 public:
  void put(PyObject* name, const py::handle& value) {
    if (PyDict_SetItem(all_.ptr(), name, value.ptr()) < 0) throw py::error_already_set();
  }
  py::object object(PyTypeObject* type) const { return object_of(type, all_); }
  const py::dict& all() const { return all_; }

 private:
  py::dict all_;
};

py::object attribute(PyObject* of, PyObject* name) { return taken(PyObject_GetAttr(of, name)); }

py::object array_of(int nd, const Py_ssize_t (&dims)[2], double*& data) {
  return py::reinterpret_steal<py::object>(new_array(nd, dims, &data));
}
py::object row_of(Py_ssize_t size, double*& data) { return array_of(1, {size, 0}, data); }
py::object zeros(Py_ssize_t size) {
  double* data;
  py::object made = row_of(size, data);
  std::fill_n(data, size, 0.0);
  return made;
}
py::object copied(const double* from, Py_ssize_t size) {
  double* data;
  py::object made = row_of(size, data);
  std::copy_n(from, size, data);
  return made;
}
py::object number(double x) {
  double* data;
  py::object made = array_of(0, {0, 0}, data);
  *data = x;
  return made;
}
py::object row_part(const py::object& whole, double* data, Py_ssize_t size) { return part_of(whole, data, 1, &size); }

/// Return the result of an operation, or null if the inputs are not those of one state. Raises the error of a state without a result.
py::object result_of(const Call& call, Operation operation, std::initializer_list<PyObject*> inputs, bool check = true) {
  Arguments a;
  std::copy(inputs.begin(), inputs.end(), a.input);
  a.check = check;
  return py::reinterpret_steal<py::object>(one_state(call.robot, static_cast<int>(operation), a));
}
/// Compute the result of an operation for inputs that were checked; false if there is none.
bool computed(const Call& call, Operation operation, std::initializer_list<const double*> inputs, double* out,
              std::int64_t size) {
  const double* in[max_inputs] = {};
  std::copy(inputs.begin(), inputs.end(), in);
  const Parameters p = {
      {0, 0, Transform<double>::identity(), ExpressedIn::frame}, 0, nullptr, false, false, 1, &solve_quadratic_programme};
  return kernels().single[static_cast<int>(operation)](call.tree, p, in, nullptr, out) == 0.0 && finite(out, size);
}

bool has_motors_in_loops(const Mechanism& m) {
  for (std::size_t j = 0; j < m.joints().size(); ++j)
    if (m.joints()[j].closes_a_loop && m.description().joints[j].actuated) return true;
  return false;
}
/// Return the index in v of each effort of motors in tree joints.
std::vector<int> motor_places(const Mechanism& m) {
  std::vector<int> places;
  for (const int j : actuated_joints(m))
    for (int i = 0; i < m.joints()[j].nv; ++i) places.push_back(m.joints()[j].iv + i);
  return places;
}
int loads_size(const Tree& tree) { return 6 * (tree.bodies - 1 + tree.loops.constraints); }

/// Replace multipliers by those for which the reactions of all joints have least norm. `least_pivot` as in least_reactions.hpp; null: unknown.
bool share_reactions(const Call& call, const double* q, const double* v, const double* a, const double* least_pivot,
                     double* multipliers) {
  const int nc = call.tree.loops.rows, size = loads_size(call.tree);
  std::vector<double> loads(size), shared(nc + size), along(call.tree.loop_nv);
  if (!computed(call, Operation::joint_loads, {q, v, a, multipliers, along.data()}, loads.data(), size) ||
      !computed(call, Operation::least_reactions, {q, multipliers, loads.data(), nullptr, least_pivot}, shared.data(), nc + size))
    return false;
  std::copy_n(shared.begin(), nc, multipliers);
  return true;
}

// ---- linearised equations of motion ---------------------------------------------------------------------------------------------

/// (q, v, tau or None, coordinates): the Linearization with exact derivatives, of a mechanism without friction and without motors in loop joints.
PyObject* linearize(const Call& call) {
  PyObject *q = call.args[0], *coordinates = call.args[3];
  const int nv = call.tree.nv;
  if (PyObject_IsTrue(attribute(call.robot, names()._rough).ptr()) || has_motors_in_loops(call.m)) return nullptr;
  const py::object prepared = attribute(call.robot, names()._prepared);
  PyObject* scale = PyDict_GetItemWithError(prepared.ptr(), names().units_of_rows);
  const auto parts_of = [&](const py::object& key) {
    PyObject* choice = PyDict_GetItemWithError(prepared.ptr(), taken(PyTuple_Pack(2, names().linear, key.ptr())).ptr());
    PyErr_Clear();  // a key that has no hash
    return choice ? attribute(choice, names().parts) : py::object();
  };
  const bool chooses = coordinates == Py_None;
  py::object parts;
  if (!chooses)
    parts = parts_of(PyList_CheckExact(coordinates) ? taken(PyList_AsTuple(coordinates))
                                                    : py::reinterpret_borrow<py::object>(coordinates));
  if (!scale || (!chooses && !parts)) return nullptr;
  const py::object tau = call.args[2] == Py_None ? zeros(nv) : py::reinterpret_borrow<py::object>(call.args[2]);
  PyObject* order = chooses ? nullptr : PyTuple_GET_ITEM(parts.ptr(), 0);
  const py::object answer = result_of(call, Operation::linear_equations, {q, call.args[1], tau.ptr(), order, scale});
  if (!answer) return nullptr;
  double* data = numbers(answer.ptr());
  if (data[0] != 1.0) return nullptr;  // the derivatives are sensitive to rounding, or do not exist
  const Py_ssize_t size = proxy(answer.ptr())->dimensions[0];
  if (chooses) {
    const auto* bytes = reinterpret_cast<const char*>(data + size - nv);
    parts = parts_of(taken(PyBytes_FromStringAndSize(bytes, static_cast<Py_ssize_t>(nv * sizeof(double)))));
    if (!parts) return nullptr;
  }
  PyObject *all = PyTuple_GET_ITEM(parts.ptr(), 1), *velocities = PyTuple_GET_ITEM(parts.ptr(), 2);
  const Py_ssize_t k = PyTuple_GET_SIZE(all), w = PyTuple_GET_SIZE(velocities), n = k + w;
  data += 5;
  Fields fields;
  fields.put(names().coordinates, all), fields.put(names().velocities, velocities);
  const auto put = [&](PyObject* name, Py_ssize_t rows, Py_ssize_t columns) {
    const Py_ssize_t dims[2] = {rows, columns};
    fields.put(name, part_of(answer, data, 2, dims));
    data += rows * columns;
  };
  fields.put(names().rate, row_part(answer, data, n));
  data += n;
  put(names().configuration_basis, nv, k), put(names().velocity_basis, nv, w), put(names().A, n, n);
  const double* E = data;
  put(names().E, n, nv);
  const std::vector<int> motors = motor_places(call.m);
  double *B, *error;
  fields.put(names().B, array_of(2, {n, static_cast<Py_ssize_t>(motors.size())}, B));
  for (Py_ssize_t i = 0; i < n; ++i)
    for (const int motor : motors) *B++ = E[i * nv + motor];
  fields.put(names().error, array_of(2, {n, n}, error));
  std::fill_n(error, n * n, 0.0);
  fields.put(names().q, q), fields.put(names().time, Py_None), fields.put(names().mechanism, call.robot);
  return fields.object(call.type).release().ptr();
}

// ---- joints -----------------------------------------------------------------------------------------------------------------------

/// (q, v or None, a or None): the JointStates.
PyObject* joint_states(const Call& call) {
  PyObject *q = call.args[0], *v = call.args[1], *a = call.args[2];
  const bool moves = v != Py_None, accelerates = a != Py_None;
  const py::object loop_q = result_of(call, Operation::loop_joint_coordinates, {q});
  if (!loop_q) return nullptr;
  const py::object tree_q = result_of(call, Operation::normalize, {q});
  const py::object loop_v = moves ? result_of(call, Operation::loop_joint_velocities, {q, v}) : py::object();
  const py::object loop_a = accelerates ? result_of(call, Operation::loop_joint_accelerations, {q, v, a}) : py::object();
  if (!tree_q || (moves && !loop_v) || (accelerates && !loop_a)) return nullptr;
  const py::object joints = attribute(call.robot, names()._joints);
  py::dict by_q, by_v, by_a;
  Py_ssize_t at = 0, iq = 0, iv = 0;  // of the next loop joint
  PyObject *name, *joint;
  for (std::size_t j = 0; PyDict_Next(joints.ptr(), &at, &name, &joint); ++j) {
    const Mechanism::PlacedJoint& placed = call.m.joints()[j];
    const int nq = call.m.description().joints[j].nq, nv = call.m.description().joints[j].nv;
    const bool closes = placed.closes_a_loop;
    const auto put = [&](py::dict& to, PyObject* tree, const py::object& loops, Py_ssize_t first, int size) {
      to[py::handle(name)] = copied(numbers(closes ? loops.ptr() : tree) + first, size);
    };
    put(by_q, tree_q.ptr(), loop_q, closes ? iq : placed.iq, nq);
    if (moves) put(by_v, v, loop_v, closes ? iv : placed.iv, nv);
    if (accelerates) put(by_a, a, loop_a, closes ? iv : placed.iv, nv);
    if (closes) iq += nq, iv += nv;
  }
  Fields fields;
  fields.put(names().q, by_q), fields.put(names().v, by_v), fields.put(names().a, by_a);
  return fields.object(call.type).release().ptr();
}

/// Efforts, multipliers and loads of joint_wrenches.hpp in one array; null if the state has no result.
py::object joint_wrench_rows(const Call& call) {
  const int nq = call.tree.nq, nv = call.tree.nv;
  if (!is_row(call.args[0], nq) || !is_row(call.args[1], nv) || !is_row(call.args[2], nv)) return {};
  Rows rows{};
  for (int i = 0; i < 3; ++i) {
    rows.in[i] = numbers(call.args[i]), rows.in_size[i] = i == 0 ? nq : nv, rows.in_step[i] = rows.in_size[i];
    if (!finite(rows.in[i], rows.in_size[i])) return {};
  }
  if (!sound_quaternions(call.m, false, rows.in[0])) return {};
  std::vector<int> motors;
  if (call.tree.loops.constraints > 0) motors = actuated_joints(call.m);
  Parameters p = {{0, 0, Transform<double>::identity(), ExpressedIn::frame}, 0, nullptr, true};
  p.solve = &solve_quadratic_programme;
  signed char status = fine;
  rows.out_size = static_cast<int>(size_of_axis(*JointWrenchRows::axes, call.tree)), rows.status = &status;
  py::object answer = row_of(rows.out_size, rows.out);
  JointWrenchRows(call.m, kernels(), motors, false)(call.tree, p, rows, 0, 1);
  return status == fine && finite(rows.out, rows.out_size) ? answer : py::object();
}

/// (q, v, a): the JointWrenches of the mechanism's own motors; without loops, of a motor in each joint.
PyObject* joint_wrenches(const Call& call) {
  const py::object answer = joint_wrench_rows(call);
  if (!answer) return nullptr;
  const bool closed = call.tree.loops.constraints > 0;
  const int first_row = call.tree.nv + call.tree.loop_nv, first_load = first_row + call.tree.loops.rows;
  double* data = numbers(answer.ptr());
  py::dict efforts;
  const py::object joints = attribute(call.robot, names()._joints);
  Py_ssize_t at = 0, loop = call.tree.nv;
  PyObject *name, *joint;
  for (std::size_t j = 0; PyDict_Next(joints.ptr(), &at, &name, &joint); ++j) {
    const Mechanism::PlacedJoint& placed = call.m.joints()[j];
    const auto& described = call.m.description().joints[j];
    const Py_ssize_t first = placed.closes_a_loop ? loop : placed.iv;
    if (placed.closes_a_loop) loop += described.nv;
    if (closed ? described.actuated : described.nv > 0) efforts[py::handle(name)] = row_part(answer, data + first, described.nv);
  }
  for (const py::handle row : attribute(call.robot, names()._prescribed)) {
    Py_ssize_t start, stop, step;
    if (PySlice_Unpack(PyTuple_GET_ITEM(row.ptr(), 1), &start, &stop, &step) < 0) throw py::error_already_set();
    efforts[py::handle(PyTuple_GET_ITEM(row.ptr(), 0))] = row_part(answer, data + first_row + start, stop - start);
  }
  static PyObject* nothing = PyTuple_New(0);
  py::object made = taken(PyDict_Type.tp_new(call.type, nothing, nullptr));
  for (const py::handle row : attribute(call.robot, names()._load_places)) {
    const Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(row.ptr(), 1));
    const py::object load = row_part(answer, data + first_load + 6 * place, 6);
    if (PyDict_SetItem(made.ptr(), PyTuple_GET_ITEM(row.ptr(), 0), load.ptr()) < 0) throw py::error_already_set();
  }
  Fields fields;
  fields.put(names().efforts, efforts), fields.put(names()._at, taken(PyTuple_Pack(3, call.robot, call.args[0], Py_None)));
  if (PyObject_GenericSetDict(made.ptr(), fields.all().ptr(), nullptr) < 0) throw py::error_already_set();
  return made.release().ptr();
}

// ---- efforts of motors, and reactions -----------------------------------------------------------------------------------------

/// (q, v, a): efforts of motors in tree joints, and multipliers.
PyObject* efforts_and_reactions(const Call& call) {
  if (has_motors_in_loops(call.m)) return nullptr;
  const py::object efforts = result_of(call, Operation::actuator_efforts, {call.args[0], call.args[1], call.args[2]});
  if (!efforts) return nullptr;
  const int nv = call.tree.nv, nc = call.tree.loops.rows;
  const double *q = numbers(call.args[0]), *v = numbers(call.args[1]), *u = numbers(efforts.ptr());
  std::vector<double> tau(nv), motion(nv + nc + 3);
  for (const int motor : motor_places(call.m)) tau[motor] = *u++;
  if (!computed(call, Operation::constrained_motion, {q, v, tau.data()}, motion.data(), nv + nc + 3)) return nullptr;
  const double* least_pivot = &motion[nv + nc + 2];
  py::object multipliers = copied(motion.data() + nv, nc);
  if (nc > 0 && *least_pivot <= tolerances::independent &&
      !share_reactions(call, q, v, motion.data(), least_pivot, numbers(multipliers.ptr())))
    return nullptr;
  return py::make_tuple(efforts, multipliers).release().ptr();
}

/// Set limits of motors, each a number or a value for each motor; false for anything else.
bool read_limits(PyObject* from, int nu, double least, double most, double* to) {
  const bool single = PyFloat_CheckExact(from);
  if (!single && !is_row(from, nu)) return false;
  for (int i = 0; i < nu; ++i) {
    const double x = single ? PyFloat_AS_DOUBLE(from) : numbers(from)[i];
    if (std::isnan(x)) return false;
    to[i] = std::clamp(x, least, most);
  }
  return true;
}

/// (q, v, a, (lower, upper)): efforts within limits.
PyObject* limited_efforts(const Call& call) {
  PyObject *q = call.args[0], *v = call.args[1], *a = call.args[2], *pair = call.args[3];
  const int nu = call.tree.loops.actuators;
  constexpr double far = 1e30;  // means "no limit" in bounded_efforts.hpp
  double* limits;
  const py::object both = row_of(2 * nu, limits);
  if (!PyTuple_CheckExact(pair) || PyTuple_GET_SIZE(pair) != 2) return nullptr;
  if (!read_limits(PyTuple_GET_ITEM(pair, 0), nu, -far, HUGE_VAL, limits)) return nullptr;
  if (!read_limits(PyTuple_GET_ITEM(pair, 1), nu, -HUGE_VAL, far, limits + nu)) return nullptr;
  for (int i = 0; i < nu; ++i)
    if (!(limits[i] <= limits[nu + i])) return nullptr;
  py::object efforts = result_of(call, Operation::actuator_efforts, {q, v, a});
  if (!efforts) return nullptr;
  const double* u = numbers(efforts.ptr());
  bool inside = true;
  for (int i = 0; i < nu; ++i) inside = inside && limits[i] <= u[i] && u[i] <= limits[nu + i];
  if (inside) return efforts.release().ptr();
  const py::object least = result_of(call, Operation::bounded_efforts, {q, v, a, both.ptr()});
  if (!least || numbers(least.ptr())[nu] > 0.0) return nullptr;
  return copied(numbers(least.ptr()), nu).release().ptr();
}

/// (q, v, tau): the accelerations and the LoopReactions.
PyObject* dynamics_and_reactions(const Call& call) {
  if (has_motors_in_loops(call.m)) return nullptr;
  const py::object answer = result_of(call, Operation::constrained_motion, {call.args[0], call.args[1], call.args[2]});
  if (!answer) return nullptr;
  const int nv = call.tree.nv, nc = call.tree.loops.rows, constraints = call.tree.loops.constraints;
  const double *q = numbers(call.args[0]), *v = numbers(call.args[1]), *x = numbers(answer.ptr());
  const py::object a = copied(x, nv), multipliers = copied(x + nv, nc);
  const double* accuracy = x + nv + nc;
  if (nc > 0 && accuracy[2] <= tolerances::independent &&
      !share_reactions(call, q, v, x, accuracy + 2, numbers(multipliers.ptr())))
    return nullptr;
  double* carried;
  const py::object wrenches = row_of(6 * constraints, carried);
  std::vector<double> of_joints(6 * static_cast<std::size_t>(constraints));
  if (!computed(call, Operation::loop_wrenches, {q, numbers(multipliers.ptr())}, carried, 6 * constraints) ||
      !computed(call, Operation::loop_joint_wrenches, {q, v, x}, of_joints.data(), 6 * constraints))
    return nullptr;
  for (int i = 0; i < 6 * constraints; ++i) carried[i] += of_joints[i];
  py::dict by_name;
  for (const py::handle name : attribute(call.robot, names().constraints))
    by_name[name] = row_part(wrenches, carried, 6), carried += 6;
  Fields fields;
  fields.put(names().multipliers, multipliers), fields.put(names().wrenches, by_name);
  fields.put(names().residual, number(accuracy[0])), fields.put(names().error, number(accuracy[1]));
  return py::make_tuple(a, fields.object(call.type)).release().ptr();
}

/// (q, v, restitution): velocity after an impact of the constraints, and impulses.
PyObject* impact(const Call& call) {
  const py::object answer = result_of(call, Operation::velocity_jump, {call.args[0], call.args[1], call.args[2]});
  if (!answer) return nullptr;
  const int nv = call.tree.nv, nc = call.tree.loops.rows;
  const double *q = numbers(call.args[0]), *v = numbers(call.args[1]), *after = numbers(answer.ptr());
  const py::object velocity = copied(after, nv), impulses = copied(after + nv, nc);
  if (nc > 0) {
    std::vector<double> rest(nv), change(nv), at_rest(nc);
    for (int i = 0; i < nv; ++i) change[i] = after[i] - v[i];
    // impulses change velocities as reactions change accelerations; the reactions at rest are those of gravity and springs
    if (!share_reactions(call, q, rest.data(), change.data(), nullptr, numbers(impulses.ptr())) ||
        !share_reactions(call, q, rest.data(), rest.data(), nullptr, at_rest.data()))
      return nullptr;
    for (int i = 0; i < nc; ++i) numbers(impulses.ptr())[i] -= at_rest[i];
  }
  return py::make_tuple(velocity, impulses).release().ptr();
}

/// (q, v, a): the derivatives of the efforts of motors. `type` has the attributes q, v, a and parameters.
PyObject* efforts_derivatives(const Call& call) {
  const int nq = call.tree.nq, nv = call.tree.nv, nu = call.tree.loops.actuators;
  if (PyObject_IsTrue(attribute(call.robot, names()._rough).ptr())) return nullptr;
  if (!is_row(call.args[0], nq) || !is_row(call.args[1], nv) || !is_row(call.args[2], nv)) return nullptr;
  std::vector<double> unit(static_cast<std::size_t>(nu) * nu);
  Rows rows{};
  for (int i = 0; i < 3; ++i) {
    rows.in[i] = numbers(call.args[i]), rows.in_size[i] = i == 0 ? nq : nv;
    if (!finite(rows.in[i], rows.in_size[i])) return nullptr;
  }
  if (!sound_quaternions(call.m, false, rows.in[0])) return nullptr;
  for (int i = 0; i < nu; ++i) unit[i * nu + i] = 1.0;
  rows.in[3] = unit.data(), rows.in_size[3] = nu, rows.in_step[3] = nu;
  rows.out_size = static_cast<int>(size_of_axis('G', call.tree));
  std::vector<double> out(static_cast<std::size_t>(nu) * rows.out_size);
  std::vector<signed char> status(nu);
  rows.out = out.data(), rows.status = status.data();
  Parameters p = {{0, 0, Transform<double>::identity(), ExpressedIn::frame}, 0, nullptr, true};
  p.solve = &solve_quadratic_programme;
  const auto& table = leaves_the_cache(call.tree, kernels().lanes) ? kernels().each : kernels().many;
  table[static_cast<int>(Operation::actuator_efforts_vjp)](call.tree, p, rows, 0, nu);
  if (std::any_of(status.begin(), status.end(), [](signed char s) { return s != fine; })) return nullptr;
  if (!finite(out.data(), static_cast<std::int64_t>(out.size()))) return nullptr;
  Fields fields;
  int first = 0;
  const auto put = [&](PyObject* name, int columns) {
    double* to;
    fields.put(name, array_of(2, {nu, columns}, to));
    for (int i = 0; i < nu; ++i) to = std::copy_n(out.data() + i * rows.out_size + first, columns, to);
    first += columns;
  };
  put(names().q, nv), put(names().v, nv), put(names().a, nv), put(names().parameters, rows.out_size - 3 * nv);
  return fields.object(call.type).release().ptr();
}

// ---- prescribed motions of joints and frames ----

/// Return the number of components of a frame's velocity, 3 or 6; 0 for anything else.
int read_velocity(PyObject* from, double* to) {
  Py_ssize_t size = 0;
  if (is_row(from, 3) || is_row(from, 6)) {
    size = proxy(from)->dimensions[0];
    std::copy_n(numbers(from), size, to);
  } else if (PyTuple_CheckExact(from) || PyList_CheckExact(from)) {
    size = PySequence_Fast_GET_SIZE(from);
    for (Py_ssize_t k = 0; k < size && (size == 3 || size == 6); ++k) {
      PyObject* x = PySequence_Fast_GET_ITEM(from, k);
      if (!PyFloat_Check(x)) return 0;
      to[k] = PyFloat_AS_DOUBLE(x);
    }
  }
  return (size == 3 || size == 6) && std::none_of(to, to + size, [](double x) { return std::isnan(x); }) ? static_cast<int>(size)
                                                                                                         : 0;
}

/// Multiply by the transpose of the rotation of a pose, if the components are in the world's axes.
bool rotate(const Call& call, PyObject* frame, int size, double* x) {
  Arguments a;
  a.input[0] = call.args[0], a.frame = frame;
  const auto pose = py::reinterpret_steal<py::object>(one_state(call.robot, static_cast<int>(Operation::pose), a));
  if (!pose) return false;
  const double* X = numbers(pose.ptr());
  for (int k = 0; k < size; k += 3) {
    const double y[3] = {x[k], x[k + 1], x[k + 2]};
    for (int i = 0; i < 3; ++i) x[k + i] = X[i] * y[0] + X[4 + i] * y[1] + X[8 + i] * y[2];
  }
  return true;
}

/// (q, v or None, velocities or accelerations of joints, of frames, axes, options): the motion of least norm, with the closure of an earlier call.
PyObject* complete(const Call& call) {
  PyObject *q = call.args[0], *v = call.args[1], *joints = call.args[2], *frames = call.args[3], *options = call.args[5];
  const bool moves = frames != Py_None;
  if (!PyDict_CheckExact(joints) || (moves && (!PyDict_CheckExact(frames) || v != Py_None))) return nullptr;
  const bool aligned = PyUnicode_CompareWithASCIIString(call.args[4], "world_aligned") == 0;
  std::vector<double> of_frames;
  std::vector<int> sizes;
  py::tuple key(2), frame_keys(moves ? PyDict_Size(frames) : 0);
  PyObject *name, *value;
  for (Py_ssize_t at = 0, k = 0; moves && PyDict_Next(frames, &at, &name, &value); ++k) {
    double x[6];
    sizes.push_back(read_velocity(value, x));
    if (sizes.back() == 0) return nullptr;
    of_frames.insert(of_frames.end(), x, x + sizes.back());
    frame_keys[k] = taken(PyTuple_Pack(2, name, sizes.back() == 6 ? Py_True : Py_False));
  }
  key[0] = frame_keys, key[1] = taken(PySequence_Tuple(joints));
  const py::object prepared = attribute(call.robot, names()._prepared);
  PyObject* closure = PyDict_GetItemWithError(prepared.ptr(), key.ptr());
  PyErr_Clear();
  if (!closure || attribute(closure, names().simple).ptr() != Py_True) return nullptr;

  const py::object fixed = zeros(call.tree.nv), places = attribute(closure, names().v_places);
  for (Py_ssize_t at = 0, k = 0; PyDict_Next(joints, &at, &name, &value); ++k) {
    if (!PyFloat_Check(value)) return nullptr;
    if (const Py_ssize_t place = PyLong_AsSsize_t(PyList_GET_ITEM(places.ptr(), k)); place >= 0)
      numbers(fixed.ptr())[place] = PyFloat_AS_DOUBLE(value);
  }
  const py::object target = attribute(closure, names().robot), weight = attribute(closure, names().weight);
  py::object rates, values;
  if (target.ptr() != call.robot) {
    rates = zeros(built(target).tree().loops.rows), values = attribute(closure, names().no_change);
    const py::object rows = attribute(closure, names().rows);
    double* x = of_frames.data();
    Py_ssize_t k = 0;
    const auto put = [&](const double* from, Py_ssize_t size) {
      Py_ssize_t start, stop, step;
      if (PySlice_Unpack(PyList_GET_ITEM(rows.ptr(), k++), &start, &stop, &step) < 0) throw py::error_already_set();
      std::copy_n(from, size, numbers(rates.ptr()) + start);
    };
    for (Py_ssize_t at = 0; moves && PyDict_Next(frames, &at, &name, &value);) {
      const int size = sizes[static_cast<std::size_t>(k)];
      if (aligned && !rotate(call, name, size, x)) return nullptr;
      put(x, size), x += size;
    }
    for (const py::handle loop_joint : attribute(closure, names().loop_joints)) {
      const double rate = PyFloat_AS_DOUBLE(PyDict_GetItem(joints, loop_joint.ptr()));
      put(&rate, 1);
    }
  }
  const Info& info = infos()[static_cast<int>(Operation::least_motion)];
  Arguments a;
  for (Py_ssize_t at = 0; PyDict_Next(options, &at, &name, &value);)
    if (value != Py_None) put_keyword(info, a, name, value);
  a.input[0] = q, a.input[1] = v == Py_None ? fixed.ptr() : v, a.input[2] = v == Py_None ? nullptr : fixed.ptr();
  a.input[3] = weight.ptr(), a.input[4] = rates.ptr(), a.input[6] = values.ptr();
  return one_state(target.ptr(), static_cast<int>(Operation::least_motion), a);
}

// ---- the table ------------------------------------------------------------------------------------------------------------------

struct Function {
  const char* name;
  int arguments;  // besides the mechanism
  Evaluate evaluate;
};
constexpr Function functions[] = {
    {"linearize", 4, &linearize},
    {"joint_states", 3, &joint_states},
    {"joint_wrenches", 3, &joint_wrenches},
    {"efforts_and_reactions", 3, &efforts_and_reactions},
    {"limited_efforts", 4, &limited_efforts},
    {"dynamics_and_reactions", 3, &dynamics_and_reactions},
    {"impact", 3, &impact},
    {"efforts_derivatives", 3, &efforts_derivatives},
    {"complete", 6, &complete},
};

struct Bound {
  const Function& function;
  PyTypeObject *mechanism, *type;
};

PyObject* evaluate_bound(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with_python_errors([&] {
    const auto& bound = *static_cast<const Bound*>(PyCapsule_GetPointer(self, nullptr));
    PyObject* made = nullptr;
    if (count == 1 + bound.function.arguments && PyObject_TypeCheck(args[0], bound.mechanism)) {
      const Mechanism& m = built_or_variants(args[0]);
      // rows that depend on q are evaluated by Python
      if (!m.variants() && m.tree().loops.pfaffian_values == 0)
        made = bound.function.evaluate({args[0], m, m.tree(), args + 1, bound.type});
    }
    return made ? made : py::none().release().ptr();
  });
}

}  // namespace

py::function of_one_state(const std::string& name, const py::object& type) {
  const auto* function =
      std::find_if(std::begin(functions), std::end(functions), [&](const Function& f) { return f.name == name; });
  if (function == std::end(functions)) throw py::value_error("no function of one state is named '" + name + "'");
  // never freed, because the function refers to it until the interpreter ends
  auto* bound = new Bound{*function, reinterpret_cast<PyTypeObject*>(py::type::of<Mechanism>().inc_ref().ptr()),
                          type.is_none() ? nullptr : reinterpret_cast<PyTypeObject*>(py::object(type).release().ptr())};
  static PyMethodDef definition{"of_one_state", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&evaluate_bound)),
                                METH_FASTCALL, nullptr};
  return py::function(taken(PyCFunction_New(&definition, py::capsule(bound).ptr())));
}

}  // namespace sarrus::bindings
