// Changes of the parameters of a description, from Python. Each change consists of a keyword (the category of the parameter), the name of an element,
// and its values. Python has converted the values to floats, arrays of floats, Inertias and Transforms; this file checks them.
// python/sarrus/dynamics/variants.py makes the same changes in Python's own description.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "../joints/visit.hpp"
#include "../mechanism/variants.hpp"
#include "described.hpp"
#include "from_python.hpp"

namespace sarrus::bindings {

/// Access to elements by name. Changes usually have the order of the elements, so the search begins after the element that was found last.
template <class Part> class Named {
 public:
  explicit Named(std::vector<Part>& parts) : parts_(parts) {}
  Part* find(const std::string& name) {
    for (std::size_t tried = 0; tried < parts_.size(); ++tried, ++next_) {
      if (next_ >= parts_.size()) next_ = 0;
      if (parts_[next_].name == name) return &parts_[next_];
    }
    return nullptr;
  }
  Part& at(const char* kind, const std::string& name) {
    if (Part* part = find(name)) return *part;
    no_such(kind, name);
  }
  [[noreturn]] void no_such(const char* kind, const std::string& name) const {
    std::vector<std::string> names;
    for (const Part& part : parts_) names.push_back(part.name);
    no_such_name(kind, name, std::move(names));
  }

 private:
  std::vector<Part>& parts_;
  std::size_t next_ = 0;
};

/// Access by name to the parameters of a description that may change. Raises NameNotFoundError for an unknown name, and ModelError for an element
/// without such parameters.
class Places {
 public:
  explicit Places(Description& d)
      : d_(d), bodies_(d.bodies), joints_(d.joints), frames_(d.frames), constraints_(d.constraints), springs_(d.springs) {}

  /// Parameters of a joint along its velocities, or a single number.
  struct Numbers {
    std::string label;  // text with which messages begin
    bool not_negative, scalar;
    double* first;
    std::size_t count;
  };

  Vec3<double>& gravity() { return d_.gravity; }
  Inertia<double>& inertia(const std::string& name) { return bodies_.at("body", name).inertia; }

  /// Return the placement of a frame, or of a joint's frame on one of its bodies (NAME.parent, NAME.child).
  Transform<double>& placement(const std::string& name) {
    if (FrameDescription* frame = frames_.find(name)) return frame->X;
    const std::size_t dot = name.rfind('.');
    const std::string end = dot == std::string::npos ? "" : name.substr(dot + 1);
    JointDescription* joint = end == "parent" || end == "child" ? joints_.find(name.substr(0, dot)) : nullptr;
    if (!joint) no_place(name);
    return end == "parent" ? joint->at_parent : joint->at_child;
  }

  Numbers numbers(const std::string& key, const std::string& name) {
    return key == "lengths" ? length(name) : key == "pitch" ? pitch(name) : terms(key, name);
  }

 private:
  Numbers length(const std::string& name) {
    const std::string label = "constraint '" + name + "'";
    double* length = nullptr;
    visit_constraint(constraints_.at("constraint", name).kind, [&](auto& kind) {
      kind.fields([&](const char* key, auto& x) {
        if constexpr (std::is_same_v<decltype(x), double&>)
          if (std::string("length") == key) length = &x;
      });
    });
    if (!length) throw ModelError(label + " has no length");
    return {label + ": length", true, true, length, 1};
  }

  Numbers pitch(const std::string& name) {
    const std::string label = "joint '" + name + "'";
    JointDescription& j = joints_.at("joint", name);
    double* pitch = nullptr;
    const char* kind = visit_every(j.kind, 0, [&](auto type) -> const char* {
      type.fields(j.constants, [&](const char* key, auto& x, const char*) {
        if constexpr (std::is_same_v<decltype(x), double&>)
          if (std::string("pitch") == key) pitch = &x;
      });
      return type.name;
    });
    if (!pitch) throw ModelError(label + " is " + kind + ", which has no pitch");
    return {label + ": pitch", false, true, pitch, 1};
  }

  /// Return the parameters along the velocities of a joint, or those of a spring between points.
  Numbers terms(const std::string& key, const std::string& name) {
    JointDescription* j = joints_.find(name);
    SpringDescription* s = springs_.find(name);
    if (j && s) throw ModelError("a joint and a spring are both named '" + name + "', so " + key + " is ambiguous: rename one");
    if (!j && !s) joints_.no_such("joint", name);
    const std::string label = (j ? "joint '" : "spring '") + name + "': " + key;
    if (s) {
      NonlinearTerms& more = s->nonlinear;
      double* x = key == "stiffness"             ? &s->stiffness
                  : key == "damping"             ? &s->damping
                  : key == "rest"                ? &s->rest_length
                  : key == "quadratic_stiffness" ? &more.quadratic_stiffness
                  : key == "cubic_stiffness"     ? &more.cubic_stiffness
                  : key == "quadratic_damping"   ? &more.quadratic_damping
                  : key == "cubic_damping"       ? &more.cubic_damping
                                                 : nullptr;
      if (!x) throw ModelError("spring '" + name + "' has no " + key);
      return {label, !is_signed(key) || key == "rest", true, x, 1};
    }
    PerVelocity& along = key == "stiffness"             ? j->stiffness
                         : key == "damping"             ? j->damping
                         : key == "friction"            ? j->friction
                         : key == "armature"            ? j->armature
                         : key == "quadratic_stiffness" ? j->quadratic_stiffness
                         : key == "cubic_stiffness"     ? j->cubic_stiffness
                         : key == "quadratic_damping"   ? j->quadratic_damping
                         : key == "cubic_damping"       ? j->cubic_damping
                                                        : j->rest;
    return {label, !is_signed(key), false, along.begin(), along.size()};
  }

  /// Return true if a passive term of joints may be negative.
  static bool is_signed(const std::string& key) {
    return key == "rest" || key.rfind("quadratic_", 0) == 0 || key.rfind("cubic_", 0) == 0;
  }

  [[noreturn]] void no_place(const std::string& name) {
    if (bodies_.find(name))
      throw ModelError(
          "'" + name +
          "' is a body, whose position its joints determine; expected a frame, or an end of a joint (NAME.parent or NAME.child)");
    std::vector<std::string> names;
    for (const FrameDescription& f : d_.frames) names.push_back(f.name);
    for (const JointDescription& j : d_.joints) names.push_back(j.name + ".parent"), names.push_back(j.name + ".child");
    no_such_name("frame", name, std::move(names));
  }

  Description& d_;
  Named<BodyDescription> bodies_;
  Named<JointDescription> joints_;
  Named<FrameDescription> frames_;
  Named<ConstraintDescription> constraints_;
  Named<SpringDescription> springs_;
};

inline std::string shown(const py::handle& value) { return py::repr(value).cast<std::string>(); }

inline void assign(Transform<double>& place, const std::string& name, const py::handle& value) {
  const Transform<double> X = to_transform(value);
  constexpr double largest = 1e100;  // the same limit as in spatial.py
  if (!(X.p.cwiseAbs().maxCoeff() <= largest))
    throw ModelError("placement of '" + name + "' is too far away; expected at most 1e+100 m");
  place = X;
}

/// Assign one float to all entries, or an array with one value per entry. Scalar parameters accept only a float.
inline void assign(const Places::Numbers& to, bool positive, const py::handle& value) {
  const auto checked = [&](double x) {
    if (!std::isfinite(x)) throw ModelError(to.label + " must be finite; got " + shown(value));
    if (to.not_negative && x < 0.0) throw ModelError(to.label + " cannot be negative; got " + shown(value));
    if (positive && !(x > 0.0)) throw ModelError(to.label + " must be positive; got " + shown(value));
    return x;
  };
  if (PyFloat_Check(value.ptr())) {
    const double x = checked(PyFloat_AS_DOUBLE(value.ptr()));
    if (to.count == 0 && x != 0.0)
      throw ModelError(to.label + " must be zero, because this joint does not move; got " + shown(value));
    std::fill_n(to.first, to.count, x);
    return;
  }
  if (to.scalar) throw ModelError(to.label + " must be one number; got " + shown(value));
  const py::object plain = as_plain(value.ptr(), to.label);
  const Array* x = proxy(plain.ptr());
  if (x->nd != 1 || x->dimensions[0] != static_cast<Py_ssize_t>(to.count))
    throw ModelError(to.label + " needs one number or " + std::to_string(to.count) + "; got " + shown(value));
  for (std::size_t k = 0; k < to.count; ++k) to.first[k] = checked(reinterpret_cast<const double*>(x->data)[k]);
}

/// Call change(keyword, name, value) for each change; the name is empty for gravity, which belongs to no element.
template <class Change> void each_change(const py::dict& changes, Change change) {
  for (const auto& [sort, values] : changes) {
    const std::string key = text(sort.ptr());
    if (key == "gravity") {
      change(key, std::string(), values);
      continue;
    }
    for (const auto& [part, value] : py::reinterpret_borrow<py::dict>(values)) {
      if (!PyUnicode_Check(part.ptr()))
        throw py::type_error(key + " must be a mapping whose keys are names (str); got " + shown(values));
      change(key, text(part.ptr()), value);
    }
  }
}

inline void change(Description& d, const py::dict& changes) {
  Places places(d);
  each_change(changes, [&](const std::string& key, const std::string& name, const py::handle& value) {
    if (key == "gravity")
      places.gravity() = to_vec3(value);
    else if (key == "inertias")
      places.inertia(name) = to_inertia(value);
    else if (key == "placements")
      assign(places.placement(name), name, value);
    else
      assign(places.numbers(key, name), key == "lengths", value);
  });
}

/// Create `count` variants from arrays whose row i contains the parameters of variant i; Python has checked the arrays.
inline std::unique_ptr<Mechanism> varied(const Mechanism& base, std::int64_t count, const py::dict& changes) {
  struct Change {
    double* to;
    const double* from;
    std::size_t size;
  };
  auto variants = std::make_shared<Variants>(base);
  Places places(variants->description());
  std::vector<Change> all;
  std::vector<py::object> kept;
  each_change(changes, [&](const std::string& key, const std::string& name, const py::handle& value) {
    kept.push_back(as_plain(value.ptr(), key));
    const Array* x = proxy(kept.back().ptr());
    const auto* from = reinterpret_cast<const double*>(x->data);
    const auto add = [&](double* to, std::size_t size) {
      if (x->nd != 2 || x->dimensions[0] != count || x->dimensions[1] != static_cast<Py_ssize_t>(size))
        shape_error(key + (name.empty() ? "" : " of '" + name + "'") + " needs shape " + "(" + std::to_string(count) + ", " +
                    std::to_string(size) + "); got " + shape_text(x->dimensions, x->nd));
      all.push_back({to, from, size});
    };
    if (key == "gravity") {
      add(places.gravity().data(), 3);
    } else if (key == "inertias") {
      add(&places.inertia(name).m, 10);
    } else if (key == "placements") {
      add(places.placement(name).R.data(), 12);
    } else {
      const Places::Numbers to = places.numbers(key, name);
      add(to.first, to.count);
    }
  });
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Change& c : all) std::copy_n(c.from + static_cast<std::size_t>(i) * c.size, c.size, c.to);
    try {
      variants->add();
    } catch (const ModelError& e) {
      throw ModelError("variant " + std::to_string(i) + ": " + e.what());
    }
    indices.push_back(i);
    if (i % 1000 == 999 && PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  variants->finish();
  return std::make_unique<Mechanism>(base, std::move(variants), std::move(indices));
}

}  // namespace sarrus::bindings
