// Positions of a mechanism or of variants.
#include "position.hpp"

#include <pybind11/eigen.h>
#include <pybind11/stl.h>

#include "../kernels/batch.hpp"
#include "../position/loosening.hpp"
#include "../position/positions.hpp"
#include "../position/random.hpp"
#include "../position/waypoint_path.hpp"
#include "arrays.hpp"
#include "changes.hpp"
#include "from_python.hpp"
#include "gil.hpp"
#include "mobility.hpp"
#include "model.hpp"
#include "state.hpp"
#include "values.hpp"

namespace sarrus::bindings {
namespace {

using Limits = std::vector<std::optional<std::pair<std::vector<double>, std::vector<double>>>>;

/// Return the position model of a mechanism. `count`, `changes`: arguments of the variants from which those of this mechanism were selected.
PositionModel model_of(const py::object& self, const Limits& limits, const std::optional<Vector>& home, std::int64_t count,
                       const py::dict& changes) {
  const Mechanism& m = built_or_variants(self);
  PositionModel facts{m, kernels(), {}, home, m.variants() ? RowsOfState() : rows_from_python(self, m.tree()), [] {
                        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
                      }};
  if (m.variants())
    facts.vary = [count, changes](const Mechanism& base) -> std::shared_ptr<const Mechanism> {
      if (count == 0)
        throw ModelError(
            "these variants are a list of mechanisms: targets of frames and fixed loop joints require those of variants()");
      return varied(base, count, changes);
    };
  for (const auto& pair : limits) facts.limits.push_back(pair ? JointRange{pair->first, pair->second} : JointRange{});
  return facts;
}

AssemblyStart start_of(const std::optional<Vector>& q, const JointNumbersByName& joints) {
  AssemblyStart start(joints);
  start.q = q;
  return start;
}

using ArraysByName = std::vector<std::pair<std::string, py::array_t<double, py::array::c_style | py::array::forcecast>>>;

JointNumbersByName numbers_by_name(const ArraysByName& arrays) {
  JointNumbersByName numbers;
  for (const auto& [name, x] : arrays) numbers.emplace_back(name, std::vector<double>(x.data(), x.data() + x.size()));
  return numbers;
}

/// States of a call. With variants, every variant has the same number of states, stored variant by variant.
States states_of(const Mechanism& m, int count, std::int64_t threads) {
  States states{count,
                {},
                threads,
                [](const Batch& batch, std::int64_t most) {
                  Signals signals;
                  bool stopped;
                  {
                    const WithoutGil free;
                    stopped = batch.run(most, [&] { return signals.raised(); });
                  }
                  if (stopped) throw py::error_already_set();
                },
                true};
  if (m.variants())
    for (int i = 0; i < count; ++i)
      states.variant.push_back(m.variant_indices()[i / (count / static_cast<int>(m.variant_indices().size()))]);
  return states;
}

py::tuple answer_of(const AssembledStates& found, const std::vector<py::ssize_t>& shape) {
  py::array_t<double> q(shape);
  std::copy_n(found.q.data(), found.q.size(), q.mutable_data());
  return py::make_tuple(q, py::array_t<signed char>(static_cast<py::ssize_t>(found.status.size()), found.status.data()));
}

/// Call f; convert the core's PathTrackingError to Python's, with the path and the end of the branch.
template <class F> auto tracked(F f) {
  try {
    return f();
  } catch (const PathTrackingError& e) {
    const py::object args = py::make_tuple(bindings::message_text(e.what()), py::cast(e.path), py::cast(e.last));
    PyErr_SetObject(bindings::from_python().PathTrackingError, args.ptr());
    throw py::error_already_set();
  }
}

/// Positions of a mechanism. The frames and joints of the last quick call are stored, because a control loop passes the same names in each cycle.
class PyPositions : public Positions {
 public:
  using Positions::Positions;

  /// Return the solution near a configuration, by a single call of the kernels. Return None if a single call is not sufficient, or if an argument
  /// needs a full check.
  py::object quick(const py::handle& near, const py::handle& frames, const py::handle& fixed, double time) {
    const Mechanism& m = model().mechanism;
    const Tree& tree = m.tree();
    if (!is_plain(near.ptr()) || tree.loops.pfaffian_values > 0 || !std::isfinite(time)) return py::none();
    const Array* q = proxy(near.ptr());
    const auto* x = reinterpret_cast<const double*>(q->data);
    if (q->nd != 1 || q->dimensions[0] != tree.nq || !finite(x, tree.nq) || !sound_quaternions(m, false, x)) return py::none();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!read(frames, fixed)) return py::none();
    input_[0] = time;
    const std::optional<Vector> solution = quick_solution(*closing_, x, input_.data());
    if (!solution) return py::none();
    const Py_ssize_t dims[1] = {tree.nq};
    double* out;
    py::object made = py::reinterpret_steal<py::object>(new_array(1, dims, &out));
    std::copy(solution->begin(), solution->end(), out);
    return made;
  }

 private:
  /// Return the number of values of a target: 3 for a point, of which some may be free (NaN), 12 for a pose (4 x 4), 0 for anything else.
  static int numbers_of(PyObject* value, double* out) {
    if (PyTuple_CheckExact(value) && PyTuple_GET_SIZE(value) == 3) {
      for (int k = 0; k < 3; ++k) {
        PyObject* x = PyTuple_GET_ITEM(value, k);
        if (!PyFloat_Check(x)) return 0;
        out[k] = PyFloat_AS_DOUBLE(x);
      }
      return prescribed_components(out, 3) ? 3 : 0;
    }
    if (!is_plain(value)) return 0;
    const Array* x = proxy(value);
    const auto* data = reinterpret_cast<const double*>(x->data);
    const bool is_pose = x->nd == 2 && x->dimensions[0] == 4 && x->dimensions[1] == 4;
    if (!is_pose && !(x->nd == 1 && x->dimensions[0] == 3)) return 0;
    if (is_pose && (data[12] != 0.0 || data[13] != 0.0 || data[14] != 0.0 || data[15] != 1.0)) return 0;
    const int count = is_pose ? 12 : 3;
    std::copy_n(data, count, out);
    return finite(out, count) || (!is_pose && prescribed_components(out, count)) ? count : 0;
  }

  bool read(const py::handle& frames, const py::handle& fixed) {
    if (!PyDict_CheckExact(frames.ptr()) || !(fixed.is_none() || PyDict_CheckExact(fixed.ptr()))) return false;
    const std::size_t count = PyDict_Size(frames.ptr()) + (fixed.is_none() ? 0 : PyDict_Size(fixed.ptr()));
    numbers_.clear();
    bool same = count == names_.size() && closing_;
    std::size_t k = 0;
    PyObject *name, *value;
    std::vector<FrameKey> keys;
    std::vector<PyObject*> names;
    for (Py_ssize_t at = 0; PyDict_Next(frames.ptr(), &at, &name, &value); ++k) {
      double x[12];
      const int size = numbers_of(value, x);
      if (size == 0 || !PyUnicode_Check(name)) return false;
      FrameKey key = {{}, size == 12};
      if (size == 3) key.components = prescribed_components(x, size), key.in_world = key.components != FrameKey::position;
      std::replace_if(x, x + size, [](double number) { return std::isnan(number); }, 0.0);
      same = same && names_[k].ptr() == name && sizes_[k] == size && k < keys_.size() && keys_[k] == key;
      names.push_back(name), keys.push_back(std::move(key));
      numbers_.insert(numbers_.end(), x, x + size);
    }
    for (Py_ssize_t at = 0; !fixed.is_none() && PyDict_Next(fixed.ptr(), &at, &name, &value); ++k) {
      if (!PyUnicode_Check(name) || !PyFloat_Check(value)) return false;
      const double x = PyFloat_AS_DOUBLE(value);
      constexpr double degrees = 12.0;  // larger angles may be in degrees
      if (!(std::abs(x) < degrees)) return false;
      same = same && names_[k].ptr() == name && sizes_[k] == 1;
      names.push_back(name), numbers_.push_back(x);
    }
    if (!same && !prepare(names, std::move(keys))) return false;
    for (std::size_t i = 0; i < numbers_.size(); ++i) input_[places_[i]] = numbers_[i];
    return true;
  }

  bool prepare(const std::vector<PyObject*>& names, std::vector<FrameKey> frames) {
    const Mechanism& m = model().mechanism;
    std::vector<int> joints;
    closing_ = nullptr, names_.clear(), sizes_.clear(), places_.clear(), keys_ = frames;
    for (std::size_t k = 0; k < names.size(); ++k) {
      const std::string name = py::handle(names[k]).cast<std::string>();
      if (k < frames.size()) {
        const Mechanism::PlacedFrame* frame = m.find_frame(name);
        const auto is = [&name](const auto& described) { return described.name == name; };
        const auto& [bodies, added] = std::tie(m.description().bodies, m.description().frames);
        // the frames of joints are not targets
        if (!frame || frame->body == 0 ||
            (std::none_of(bodies.begin(), bodies.end(), is) && std::none_of(added.begin(), added.end(), is)))
          return false;
        frames[k].frame = name;
        continue;
      }
      for (std::size_t j = 0; j < m.joints().size(); ++j)
        if (m.description().joints[j].name == name && m.description().joints[j].nq == 1) joints.push_back(static_cast<int>(j));
      if (joints.size() != k + 1 - frames.size()) return false;
    }
    try {
      closing_ = closure(frames, joints);
    } catch (const std::invalid_argument&) {
      return false;
    }
    int target = 1 + m.tree().nq;
    for (const FrameKey& key : frames) {
      sizes_.push_back(key.numbers());
      for (int i = 0; i < key.numbers(); ++i) places_.push_back(target++);
    }
    for (const int j : joints)
      sizes_.push_back(1), places_.push_back(m.joints()[j].closes_a_loop ? target++ : 1 + m.joints()[j].iq);
    input_.assign(1 + m.tree().nq + closing_->numbers, 0.0);
    for (PyObject* name : names) names_.push_back(py::reinterpret_borrow<py::object>(name));
    return true;
  }

  std::mutex mutex_;
  std::shared_ptr<const Closure> closing_;
  std::vector<FrameKey> keys_;  // targets of frames, without names
  std::vector<py::object> names_;
  std::vector<int> sizes_, places_;  // count of values of each name; index of each value in the input
  std::vector<double> numbers_, input_;
};

BranchChoice choice_of(const std::string& branch) {
  return branch == "any" ? BranchChoice::any : branch == "only" ? BranchChoice::only : BranchChoice::start;
}

/// Loosen a mechanism. Returns the fields of each joint of the loosened mechanism (None: the joint is omitted), and a sentence about each change.
py::tuple loosened(const PyPositions& self, const py::object& description, const std::optional<Vector>& q, double tolerance,
                   const std::optional<Names>& joints) {
  const Loosened loose =
      without_redundant_constraints(self.model(), to_joints(description), q, LooseningOptions{tolerance, joints});
  py::list changed, sentences;
  const py::object specs = py::getattr(description, "joints");
  for (std::size_t k = 0; k < loose.joints.size(); ++k)
    changed.append(loose.joints[k] ? py::object(changed_joint(specs[py::int_(k)], *loose.joints[k])) : py::none());
  for (const std::string& sentence : loose.warnings) sentences.append(to_text(sentence));
  return py::make_tuple(changed, py::tuple(sentences));
}

using Guides = std::tuple<RowMajor, Vector, RowMajor>;

/// Return q, v and a of a path in rows. A signal ends the evaluation.
RowMajor motions(const Path& path, const Vector& times) {
  constexpr Eigen::Index together = 512;
  RowMajor all(times.size(), path.functions.tree().nq + 2 * path.functions.tree().nv);
  Signals signals;
  bool stopped = false;
  {
    const WithoutGil free;
    for (Eigen::Index i = 0; i < times.size() && !stopped; i += together) {
      const Eigen::Index count = std::min(together, times.size() - i);
      all.middleRows(i, count) = path.at(Vector(times.segment(i, count)));
      stopped = signals.raised();
    }
  }
  if (stopped) throw py::error_already_set();
  return all;
}

void bind_path(py::module_& m) {
  const auto functions = [](const py::object& mechanism) { return StateFunctions(built(mechanism), kernels()); };
  py::class_<Path>(m, "Path")
      .def(py::init([functions](const py::object& mechanism, const Vector& t, const RowMajor& q, const RowMajor& v,
                                const std::optional<Guides>& guides) {
             std::optional<PathGuides> all_guides;
             if (guides) all_guides = PathGuides{std::get<0>(*guides), std::get<1>(*guides), std::get<2>(*guides)};
             return std::make_unique<Path>(functions(mechanism), t, q, v, std::move(all_guides));
           }),
           py::keep_alive<1, 2>(), py::arg("mechanism"), py::arg("t"), py::arg("q"), py::arg("v"), py::arg("guides"))
      .def_static(
          "through",
          [functions](const py::object& mechanism, const Vector& t, const RowMajor& q, const std::optional<RowMajor>& ends) {
            const Path path =
                Path::through(functions(mechanism), t, q, ends, rows_from_python(mechanism, built(mechanism).tree()));
            std::optional<Guides> guides;
            if (path.guides) guides = Guides(path.guides->v, path.guides->scale, path.guides->K);
            return py::make_tuple(path.q, path.v, guides);
          },
          py::arg("mechanism"), py::arg("t"), py::arg("q"), py::arg("ends"))
      .def(
          "at",
          [](const Path& path, double time) {
            Vector numbers(path.functions.tree().nq + 2 * path.functions.tree().nv + 1);
            path.at(time, numbers.data());
            return numbers;
          },
          py::arg("time"))
      .def("motions", &motions, py::arg("times"))
      .def("time_function", &Path::time_function, py::arg("coordinate"), py::arg("size"));
  m.def("spline_slopes", &spline_slopes, py::arg("times"), py::arg("y"), py::arg("first"), py::arg("last"));
}

}  // namespace

const Positions& positions_of(const py::handle& object) { return object.cast<const PyPositions&>(); }

void bind_position(py::module_& m) {
  bind_path(m);
  // the mechanism owns its Positions object, which refers to the mechanism
  py::class_<PyPositions>(m, "Positions")
      .def(py::init([](const py::object& mechanism, const Limits& limits, const std::optional<Vector>& home, std::int64_t count,
                       const py::dict& changes) {
             return std::make_unique<PyPositions>(model_of(mechanism, limits, home, count, changes));
           }),
           py::arg("mechanism"), py::arg("limits"), py::arg("home"), py::arg("count") = 0, py::arg("changes") = py::dict())
      .def("quick", &PyPositions::quick, py::arg("near"), py::arg("frames"), py::arg("fixed"), py::arg("time"))
      .def(
          "solve",
          [](const PyPositions& self, const FrameNumbersByName& frames, const std::optional<Vector>& near,
             const JointNumbersByName& guess, const JointNumbersByName& fixed, const std::string& branch, int starts,
             std::uint64_t seed, double tolerance, const std::optional<double>& time) {
            const AssemblyOptions options{choice_of(branch), starts, seed, tolerance, time};
            const Assembled found =
                tracked([&] { return self.inverse_kinematics(frames, start_of(near, guess), fixed, options); });
            return py::make_tuple(found.q, found.other_branch, found.reason);
          },
          py::arg("frames"), py::arg("near"), py::arg("guess"), py::arg("fixed"), py::arg("branch"), py::arg("starts"),
          py::arg("seed"), py::arg("tolerance"), py::arg("time"))
      .def(
          "solve_many",
          [](const PyPositions& self, const ArraysByName& frames, const std::optional<RowMajor>& near, const ArraysByName& guess,
             const ArraysByName& fixed, const std::string& branch, const std::optional<int>& starts, std::uint64_t seed,
             double tolerance, const Times& time, std::int64_t threads, int count) {
            const Mechanism& m = self.model().mechanism;
            const BatchOptions options{choice_of(branch), starts, seed, tolerance, time, states_of(m, count, threads)};
            const AssembledStates found = self.inverse_kinematics_many(numbers_by_name(frames), {near, numbers_by_name(guess)},
                                                                       numbers_by_name(fixed), options);
            return answer_of(found, {count, m.tree().nq});
          },
          py::arg("frames"), py::arg("near"), py::arg("guess"), py::arg("fixed"), py::arg("branch"), py::arg("starts"),
          py::arg("seed"), py::arg("tolerance"), py::arg("time"), py::arg("threads"), py::arg("count"))
      .def(
          "follow_many",
          [](const PyPositions& self, const ArraysByName& joints, const std::vector<double>& times,
             const std::optional<RowMajor>& near, const ArraysByName& guess, double max_step, double min_step, double tolerance,
             std::int64_t threads, int count) {
            const Mechanism& m = self.model().mechanism;
            const AssembledStates found = self.follow_many({numbers_by_name(joints), {}, times}, {near, numbers_by_name(guess)},
                                                           {max_step, min_step, tolerance}, states_of(m, count, threads));
            return answer_of(found, {count, static_cast<py::ssize_t>(times.size()), m.tree().nq});
          },
          py::arg("joints"), py::arg("times"), py::arg("near"), py::arg("guess"), py::arg("max_step"), py::arg("min_step"),
          py::arg("tolerance"), py::arg("threads"), py::arg("count"))
      .def("assembly_modes", &PyPositions::assembly_modes, py::arg("fixed"), py::arg("time"), py::arg("attempts"),
           py::arg("seed"), py::arg("tolerance"))
      .def(
          "closed_configurations",
          [](const PyPositions& self, const RowMajor& drawn, const py::function& draw) {
            return closed_configurations(self, drawn, [&](int count) { return draw(count).cast<RowMajor>(); });
          },
          py::arg("drawn"), py::arg("draw"))
      .def("without_redundant_constraints", &loosened, py::arg("description"), py::arg("q"), py::arg("tolerance"),
           py::arg("joints"))
      .def(
          "follow",
          [](const PyPositions& self, const JointNumbersByName& joints, const FrameNumbersByName& frames,
             const std::vector<double>& times, const std::optional<Vector>& near, const JointNumbersByName& guess,
             double max_step, double min_step, double tolerance) {
            return tracked(
                [&] { return self.follow({joints, frames, times}, start_of(near, guess), {max_step, min_step, tolerance}); });
          },
          py::arg("joints"), py::arg("frames"), py::arg("times"), py::arg("near"), py::arg("guess"), py::arg("max_step"),
          py::arg("min_step"), py::arg("tolerance"));
}

}  // namespace sarrus::bindings
