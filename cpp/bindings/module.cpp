// The extension module sarrus._core: creation of mechanisms from descriptions, functions of a state, and spatial algebra.
#include <pybind11/native_enum.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "../joints/visit.hpp"
#include "../loops/branch_outcome.hpp"
#include "../loops/pivoted_qr.hpp"
#include "../mechanism/mechanism.hpp"
#include "../mechanism/status.hpp"
#include "../mobility/free_floating.hpp"
#include "../model/builder.hpp"
#include "../reading/argument.hpp"
#include "built.hpp"
#include "changes.hpp"
#include "contact.hpp"
#include "control.hpp"
#include "described.hpp"
#include "force_elements.hpp"
#include "from_python.hpp"
#include "mobility.hpp"
#include "model.hpp"
#include "named_parts.hpp"
#include "one_state.hpp"
#include "position.hpp"
#include "processor.hpp"
#include "shapes.hpp"
#include "simulation.hpp"
#include "spatial.hpp"
#include "state.hpp"
#include "values.hpp"

namespace sarrus::bindings {
namespace {

/// Return the properties of each type of joint, by its name: see JointType in joints.py.
py::dict joint_table() {
  py::dict table;
  const auto listed = [](const CoordinateList& list) {
    py::list names;
    for (const Coordinate& c : list) names.append(py::make_tuple(c.name, c.unit));
    return py::tuple(names);
  };
  for (const JointKind kind : joint_kinds)
    visit_every(kind, 0, [&](auto joint) {
      py::list rates;
      for (std::size_t k = 0; k < joint.coordinates.size(); ++k) rates.append(joint.is_rate(static_cast<int>(k)));
      py::dict row;
      row["coordinates"] = listed(joint.coordinates), row["velocities"] = listed(joint.velocities);
      row["rates"] = py::tuple(rates);
      row["quaternion"] = joint.has_quaternion;
      row["whole_turns_return"] = joint.whole_turns_return, row["constant_subspace"] = joint.constant_subspace;
      py::list axes, numbers;
      for (const char* axis : joint.axis_names) axes.append(axis);
      JointConstants none;
      joint.fields(none, [&](const char* key, auto&, const char* unit) { numbers.append(py::make_tuple(key, unit)); });
      row["axes"] = py::tuple(axes), row["numbers"] = py::tuple(numbers);
      py::object free = py::none();
      if constexpr (joint.free_components != combined) free = py::int_(int(joint.free_components));
      row["free_components"] = free;
      table[joint.name] = row;
    });
  return table;
}

std::unique_ptr<Mechanism> build(const py::handle& description, int substructures) {
  Description d = to_description(description);
  d.substructures = substructures;
  d.check_interrupt = [] {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  };
  return std::make_unique<Mechanism>(std::move(d));
}

std::unique_ptr<Mechanism> copy(const Mechanism& other, const py::dict& changes) {
  Description d = other.description();
  change(d, changes);
  return std::make_unique<Mechanism>(other, std::move(d));
}

/// Create variants from these mechanisms, in their order.
std::unique_ptr<Mechanism> listed(const py::list& mechanisms) {
  const Mechanism& base = built(mechanisms[0]);
  auto variants = std::make_shared<Variants>(base);
  std::vector<std::int64_t> indices;
  for (const py::handle& mechanism : mechanisms) indices.push_back(variants->size()), variants->add(built(mechanism));
  variants->finish();
  return std::make_unique<Mechanism>(base, std::move(variants), std::move(indices));
}

/// Select variants, in this order.
std::unique_ptr<Mechanism> select_variants(const Mechanism& variants, const std::vector<std::int64_t>& indices) {
  std::vector<std::int64_t> selected;
  const auto count = static_cast<std::int64_t>(variants.variant_indices().size());
  for (const std::int64_t i : indices) {
    if (i < 0 || i >= count) throw py::index_error("there are " + std::to_string(count) + " variants; got " + std::to_string(i));
    selected.push_back(variants.variant_indices()[static_cast<std::size_t>(i)]);
  }
  return std::make_unique<Mechanism>(variants, variants.variants(), std::move(selected));
}

/// Return true if a parameter of a joint may have no effect: see doubtful() in specs.py.
bool is_doubtful(const Mechanism& m) {
  const auto any = [](const PerVelocity& numbers) {
    return std::any_of(numbers.begin(), numbers.end(), [](double x) { return x != 0.0; });
  };
  return std::any_of(m.description().joints.begin(), m.description().joints.end(), [&](const JointDescription& j) {
    const bool spring = any(j.stiffness) || any(j.quadratic_stiffness) || any(j.cubic_stiffness);
    const bool forces = any(j.damping) || any(j.friction) || any(j.armature) || any(j.quadratic_damping) || any(j.cubic_damping);
    return (any(j.rest) && !spring) || (!j.laws.empty() && (forces || spring));
  });
}

/// Return for each constraint (name, first row, [name of each row], [true if the row also constrains positions]).
py::list placed_constraints(const py::object& self) {
  const Mechanism& m = built_or_variants(self);
  py::list all;
  for (std::size_t i = 0; i < m.constraints().size(); ++i) {
    const Constraint& c = m.tree().loops.constraint[m.constraints()[i]];
    py::list names, holonomic;
    visit_constraint(c.kind, [&](const auto& kind) {
      for (int r = 0; r < c.rows; ++r) names.append(kind.row_name(r)), holonomic.append(kind.holonomic(r));
    });
    all.append(py::make_tuple(m.constraint_name(static_cast<int>(i)), c.row, names, holonomic));
  }
  return all;
}

/// Return, for each joint of the description, (q_start, nq, v_start, nv, true for a loop joint, true if it is reversed in the tree, body).
py::list placed_joints(const py::object& self) {
  py::list all;
  for (const auto& j : built_or_variants(self).joints())
    all.append(py::make_tuple(j.iq, j.nq, j.iv, j.nv, j.closes_a_loop, j.reversed, j.body));
  return all;
}

/// Return the parameters of each constraint type by name; None for a type that is not fully described by two frames and numbers.
py::dict constraint_kinds() {
  py::dict all;
  each_constraint([&](auto kind) {
    bool plain = kind.between_bodies;
    py::list numbers;
    kind.fields([&](const char* key, auto& x) {
      plain = plain && std::is_same_v<decltype(x), double&>;
      numbers.append(key);
    });
    all[kind.name] = plain ? py::object(py::tuple(numbers)) : py::object(py::none());
  });
  return all;
}

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#else
  return "GCC " __VERSION__;
#endif
}

/// Return one number for each variant.
template <double (sarrus::Variants::*number)(std::int64_t) const>
py::array_t<double> numbers_of_variants(const py::object& self) {
  const Mechanism& m = built_or_variants(self);
  py::array_t<double> all(static_cast<py::ssize_t>(m.variant_indices().size()));
  double* to = all.mutable_data();
  for (const std::int64_t i : m.variant_indices()) *to++ = (*m.variants().*number)(i);
  return all;
}

void bind_mechanism(py::module_& m) {
  py::class_<Mechanism>(m, "Mechanism")
      .def(py::init(&build), py::arg("description"), py::arg("substructures"))
      .def(py::init(&copy), py::arg("other"), py::arg("changes"))
      .def(py::init(&varied), py::arg("like"), py::arg("count"), py::arg("changes"))
      .def(py::init(&select_variants), py::arg("variants"), py::arg("which"))
      .def(py::init(&listed), py::arg("mechanisms"))
      .def_property_readonly(
          "nq", [](const py::object& self) { return built_or_variants(self).tree().nq; }, "Number of coordinates.")
      .def_property_readonly(
          "nv", [](const py::object& self) { return built_or_variants(self).tree().nv; }, "Number of velocities.")
      .def_property_readonly(
          "_count", [](const py::object& self) { return built_or_variants(self).variant_indices().size(); },
          "Number of variants.")
      .def_property_readonly("_lengths", &numbers_of_variants<&sarrus::Variants::length>)
      .def_property_readonly("_masses", &numbers_of_variants<&sarrus::Variants::mass>)
      .def_property_readonly("_placed_joints", &placed_joints)
      .def_property_readonly("_placed_constraints", &placed_constraints)
      .def_property_readonly("_actuators", [](const py::object& self) { return built_or_variants(self).actuators(); })
      .def_property_readonly(
          "nc", [](const py::object& self) { return built_or_variants(self).tree().loops.rows; },
          "Number of rows of all constraints.")
      .def_property_readonly(
          "nu", [](const py::object& self) { return built_or_variants(self).tree().loops.actuators; },
          "Number of velocities that motors drive.")
      .def_property_readonly("_solver",
                             [](const py::object& self) {
                               const Mechanism& m = built_or_variants(self);
                               const sarrus::Substructures* s = m.tree().loops.substructures;
                               return py::make_tuple(m.operations_of_joints(), m.operations_of_substructures(),
                                                     s ? s->substructures : 0, s ? s->cuts : 0);
                             })
      .def_property_readonly("_massless",
                             [](const py::object& self) {
                               const Mechanism& m = built_or_variants(self);
                               return m.tree().loops.rows > 0 ? m.idle() : m.massless();
                             })
      .def_property_readonly("_without_inertia", [](const py::object& self) { return built_or_variants(self).massless(); })
      .def_property_readonly(
          "_length", [](const py::object& self) { return built_or_variants(self).tree().length; },
          "Length that compares metres with radians [m].")
      .def_property_readonly("_doubtful", [](const py::object& self) { return is_doubtful(built_or_variants(self)); })
      .def_property_readonly("_tie", [](const py::object& self) { return built_or_variants(self).tie(); })
      .def_property_readonly("_base_velocity", [](const py::object& self) {  // index of the base's first velocity, if it floats
        const sarrus::Tree& t = built_or_variants(self).tree();
        return t.floats ? t.link[1].iv : -1;
      });
}

void bind_status(py::module_& m) {
  py::native_enum<sarrus::Status>(
      m, "Status", "enum.IntEnum",
      R"(Status of one state, or of one run of a simulation. If it is not 0 the numbers are NaN, in a run from then on.

Attributes
----------
FINE, FINISHED : 0
INVALID_STATE : 1, NaN, infinite, or a quaternion that is no rotation; of a run also: its start is off the loops, and small steps do not close them
NO_ANSWER : 2, a freedom has no inertia, or steps do not close the loops
INCONSISTENT_CONSTRAINTS : 3, constraints contradict one another
OFF_LOOPS : 4, q or v is off the loops
NO_CONVERGENCE : 5, implicit steps do not converge
DIVERGED : 6, the state became infinite
INTERRUPTED : 7, by Ctrl-C
OTHER_BRANCH : 9, a closed configuration on another branch than that of the start, or not known to be on it: the only status with numbers
EXHAUSTED : 10, the contact solver of a step reached its limit
)")
      .value("FINE", sarrus::fine)
      .value("FINISHED", sarrus::fine)
      .value("INVALID_STATE", sarrus::invalid_state)
      .value("NO_ANSWER", sarrus::no_answer)
      .value("INCONSISTENT_CONSTRAINTS", sarrus::inconsistent_constraints)
      .value("OFF_LOOPS", sarrus::off_loops)
      .value("NO_CONVERGENCE", sarrus::no_convergence)
      .value("DIVERGED", sarrus::diverged)
      .value("INTERRUPTED", sarrus::interrupted)
      .value("OTHER_BRANCH", sarrus::other_branch)
      .value("EXHAUSTED", sarrus::exhausted)
      .finalize();
}

void bind_tolerances(py::module_& m) {
  auto limits = m.def_submodule("tolerances", "Tolerances of loops; cpp/loops/tolerances.hpp gives the reason of each.");
#define SARRUS_TOLERANCE(name) limits.attr(#name) = sarrus::tolerances::name;
  SARRUS_TOLERANCE(rounding)
  SARRUS_TOLERANCE(off_loops)
  SARRUS_TOLERANCE(allowed)
  SARRUS_TOLERANCE(at_rest)
  SARRUS_TOLERANCE(closed)
  SARRUS_TOLERANCE(torn)
  SARRUS_TOLERANCE(torn_in_single)
  SARRUS_TOLERANCE(given_closed)
  SARRUS_TOLERANCE(least_square)
  SARRUS_TOLERANCE(near_damping)
  SARRUS_TOLERANCE(near_steps)
  SARRUS_TOLERANCE(near_gap)
  SARRUS_TOLERANCE(negligible)
  SARRUS_TOLERANCE(no_stiffness)
  SARRUS_TOLERANCE(longest_step)
  SARRUS_TOLERANCE(present)
  SARRUS_TOLERANCE(nearly_singular)
  SARRUS_TOLERANCE(independent)
#undef SARRUS_TOLERANCE
  auto outcome = m.def_submodule("branch_outcome", "Outcomes of continuation along a branch: cpp/loops/branch_outcome.hpp.");
  outcome.attr("jumped") = sarrus::branch_outcome::jumped, outcome.attr("followed") = sarrus::branch_outcome::followed;
  outcome.attr("free") = sarrus::branch_outcome::free, outcome.attr("doubtful") = sarrus::branch_outcome::doubtful;
  outcome.attr("off_loops") = sarrus::branch_outcome::off_loops, outcome.attr("numbers") = sarrus::branch_outcome::numbers;
}

std::vector<std::string> texts(const py::iterable& names) {
  std::vector<std::string> all;
  for (const py::handle name : names) all.push_back(from_text(name));
  return all;
}

/// Bind functions for texts of messages.
void bind_messages(py::module_& m) {
  m.def(
      "did_you_mean",
      [](const py::str& name, const py::iterable& names) { return to_text(did_you_mean(from_text(name), texts(names))); },
      py::arg("name"), py::arg("known"));
  m.def(
      "unknown_name",
      [](const py::str& kind, const py::str& name, const py::iterable& names, const py::str& subject) {
        return to_text(unknown_name(from_text(kind), from_text(name), texts(names), from_text(subject)));
      },
      py::arg("kind"), py::arg("name"), py::arg("known"), py::arg("what"));
  m.def(
      "check_printable", [](const py::str& kind, const py::str& name) { check_printable(from_text(kind), from_text(name)); },
      py::arg("kind"), py::arg("name"));
  m.def("printable", [](const py::str& text) { return to_text(printable(from_text(text))); }, py::arg("text"));
}

/// Bind the functions for JSON in the format of sarrus: reading with checks, and writing.
void bind_documents(py::module_& m) {
  m.def(
      "read_json",
      [](const py::str& text, const std::string& source) {
        return to_python(model::document_of(model::read_json(from_text(text), source).description()));
      },
      py::arg("text"), py::arg("source"));
  m.def(
      "write_json",
      [](const py::dict& document) { return to_text(model::write_json(model::described(from_python_value(document)))); },
      py::arg("document"));
  m.def(
      "json_in_lines", [](const py::handle& value) { return to_text(json_in_lines(from_python_value(value))); },
      py::arg("value"));
}

void bind_kernels(py::module_& m) {  // choice of kernels for this processor
  m.def("level", [] { return kernels().level; });
  m.def("lanes", [] { return kernels().lanes; });
  m.def(
      "use_kernels", [](const py::capsule& table) { use_kernels(table.get_pointer<const sarrus::KernelTable>()); },
      py::arg("table"));
  m.def(
      "processor_supports",
      [](const std::string& level) { return level == "baseline" || sarrus::processor_supports(level.c_str()); },
      py::arg("level"));
}

}  // namespace
}  // namespace sarrus::bindings

PYBIND11_MODULE(_core, m, pybind11::mod_gil_not_used()) {
  using namespace sarrus::bindings;
  using sarrus::Mechanism;
  m.doc() = "Compiled core of sarrus. Use it through the package.";
  // raise an error if this module was compiled with options such as -march=native and the processor lacks some of the instructions; otherwise it
  // would crash without a message
  if (const std::string level = sarrus::compiled_level(); level != "baseline" && !sarrus::processor_supports(level.c_str()))
    throw py::import_error(
        "sarrus was compiled for processors of the level " + level +
        ", which this processor does not support: install it again on this machine, or compile it without -march in CXXFLAGS");

  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const sarrus::NameNotFoundError& e) {
      set_error(from_python().NameNotFoundError, e.what());
    } catch (const sarrus::ModelError& e) {
      set_error(from_python().ModelError, e.what());
    } catch (const sarrus::NoAnswer& e) {
      set_error(from_python().StateError, e.what());
    } catch (const sarrus::ShapeError& e) {
      set_error(from_python().ShapeError, e.what());
    } catch (const sarrus::AssemblyError& e) {
      set_error(from_python().AssemblyError, e.what());
    } catch (const sarrus::NotRealizable& e) {
      set_error(from_python().NotRealizableError, e.what());
    }
  });

  bind_mechanism(m);
  bind_model(m);
  m.def("hand_over", &hand_over);
  bind_status(m);
  m.def("of_one_state", &of_one_state, py::arg("name"), py::arg("type") = py::none());
  m.def("call_with_parts", &call_with_parts, py::arg("operation"), py::arg("type"), py::arg("parts"), py::arg("keeps"));
  m.def("method", &method, py::arg("type"), py::arg("name"), py::arg("doc"), py::arg("declaration"));
  m.def("joint_wrenches", &joint_wrenches, py::arg("mechanism"), py::arg("q"), py::arg("v"), py::arg("a"), py::arg("multipliers"),
        py::arg("forces"), py::arg("time"), py::arg("wrenches"), py::arg("joints"), py::arg("determinate"));
  m.def("time_one_state", &time_one_state, py::arg("mechanism"), py::arg("operation"), py::arg("inputs"), py::arg("repeats"),
        py::arg("check") = true);
  m.def(
      "axis_frame",
      [](const py::handle& n) {
        const auto Q = sarrus::axis_frame(to_vec3(n));
        std::vector<std::vector<double>> rows(3, std::vector<double>(3));
        for (int i = 0; i < 3; ++i)
          for (int j = 0; j < 3; ++j) rows[i][j] = Q(i, j);
        return rows;
      },
      py::arg("normal"));
  m.def(
      "showing",
      [](const py::array_t<double, py::array::c_style | py::array::forcecast>& projector, int count, std::vector<int> first) {
        const int n = static_cast<int>(projector.shape(0)), chosen = static_cast<int>(first.size());
        if (projector.ndim() != 2 || projector.shape(1) != n || chosen > count || count > n)
          throw py::value_error("showing: expected a square matrix, and no more columns than it has");
        for (const int k : first)
          if (k < 0 || k >= n) throw py::value_error("showing: expected columns of the matrix");
        std::vector<double> P(projector.data(), projector.data() + n * n);
        first.resize(count);
        sarrus::showing(n, P.data(), count, chosen, first.data());
        return first;
      },
      py::arg("projector"), py::arg("count"), py::arg("first"));
  m.def(
      "determining_groups",
      [](const py::array_t<double, py::array::c_style | py::array::forcecast>& projector,
         const std::vector<std::pair<int, int>>& groups) {
        const int n = static_cast<int>(projector.shape(0));
        if (projector.ndim() != 2 || projector.shape(1) != n) throw py::value_error("projector: expected a square matrix");
        for (const auto& [first, end] : groups)
          if (first < 0 || first > end || end > n) throw py::value_error("groups: expected ranges of columns of projector");
        std::vector<double> P(projector.data(), projector.data() + n * n);
        return sarrus::determining_groups(n, P.data(), groups);
      },
      py::arg("projector"), py::arg("groups"));
  m.def("joint_table", &joint_table);
  m.def("compiler", &compiler);
  m.def("constraint_kinds", &constraint_kinds);
  bind_messages(m);
  bind_documents(m);
  bind_kernels(m);
  bind_tolerances(m);

  bind_simulation(m);
  bind_force_elements(m);
  bind_control(m);
  bind_contact(m);
  bind_shapes(m);
  bind_mobility(m);
  bind_position(m);

  auto spatial = m.def_submodule("spatial", "Rotations, rigid transforms and inertias on small arrays.");
  bind_spatial(spatial);
  refuse_unbuilt(m);
}
