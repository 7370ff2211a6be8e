// Other numbers for a description, as Python hands them over: which sort, the name of what has them, and they themselves. Python has turned all of
// them into floats, arrays of floats, Inertias and Transforms; whether they can be is looked at here. python/sarrus/description/replaced.py does the
// same to Python's own description.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../joints/visit.hpp"
#include "../mechanism/mechanism.hpp"
#include "described.hpp"
#include "from_python.hpp"

namespace sarrus::bindings {

/// Parts by their names. Who changes many goes through them in their order, so the next one is looked at first.
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
    py::list names;
    for (const Part& part : parts_) names.append(part.name);
    py::handle(from_python().raise_no_such_name)(kind, name, names);
    throw py::value_error("unreachable");
  }

 private:
  std::vector<Part>& parts_;
  std::size_t next_ = 0;
};

class Changes {
 public:
  explicit Changes(Description& d)
      : d_(d), bodies_(d.bodies), joints_(d.joints), frames_(d.frames), constraints_(d.constraints), springs_(d.springs) {}

  void inertia(const std::string& name, const py::handle& value) { bodies_.at("body", name).inertia = to_inertia(value); }

  /// Of a frame, or of a joint in one of its bodies: NAME.parent, NAME.child.
  void placement(const std::string& name, const py::handle& value) {
    const Transform<double> X = to_transform(value);
    constexpr double largest = 1e100;  // as in spatial.py
    if (!(X.p.cwiseAbs().maxCoeff() <= largest)) throw ModelError("placement of '" + name + "': at most 1e+100 m away");
    if (FrameDescription* frame = frames_.find(name)) {
      frame->X = X;
      return;
    }
    const std::size_t dot = name.rfind('.');
    const std::string end = dot == std::string::npos ? "" : name.substr(dot + 1);
    JointDescription* joint = end == "parent" || end == "child" ? joints_.find(name.substr(0, dot)) : nullptr;
    if (!joint) no_place(name);
    (end == "parent" ? joint->at_parent : joint->at_child) = X;
  }

  void length(const std::string& name, const py::handle& value) {
    const std::string what = "constraint '" + name + "'";
    double* length = nullptr;
    visit_constraint(constraints_.at("constraint", name).kind, [&](auto& kind) {
      kind.fields([&](const char* key, auto& x) {
        if constexpr (std::is_same_v<decltype(x), double&>)
          if (std::string("length") == key) length = &x;
      });
    });
    if (!length) throw ModelError(what + " has no length");
    *length = number(what + ": length", value, true);
    if (!(*length > 0.0)) throw ModelError(what + ": length must be positive; got " + shown(value));
  }

  void pitch(const std::string& name, const py::handle& value) {
    const std::string what = "joint '" + name + "'";
    JointDescription& j = joints_.at("joint", name);
    double* pitch = nullptr;
    const char* kind = visit_every(j.kind, 0, [&](auto type) -> const char* {
      type.fields(j.constants, [&](const char* key, auto& x, const char*) {
        if constexpr (std::is_same_v<decltype(x), double&>)
          if (std::string("pitch") == key) pitch = &x;
      });
      return type.name;
    });
    if (!pitch) throw ModelError(what + " is " + kind + ", which has no pitch");
    *pitch = number(what + ": pitch", value, false);
  }

  /// Along the velocities of a joint, or of a spring between points.
  void terms(const std::string& key, const std::string& name, const py::handle& value) {
    JointDescription* j = joints_.find(name);
    SpringDescription* s = springs_.find(name);
    if (j && s) throw ModelError("a joint and a spring are both named '" + name + "': " + key + " of which?");
    if (!j && !s) joints_.no_such("joint", name);
    const std::string what = (j ? "joint '" : "spring '") + name + "': " + key;
    if (s) {
      double* x = key == "stiffness" ? &s->stiffness : key == "damping" ? &s->damping : key == "rest" ? &s->rest_length : nullptr;
      if (!x) throw ModelError("spring '" + name + "' has no " + key);
      *x = number(what, value, true);
      return;
    }
    PerVelocity& along = key == "stiffness"  ? j->stiffness
                         : key == "damping"  ? j->damping
                         : key == "friction" ? j->friction
                         : key == "armature" ? j->armature
                                             : j->rest;
    per_velocity(what, value, key != "rest", along);
  }

  void gravity(const py::handle& value) { d_.gravity = to_vec3(value); }

 private:
  static std::string shown(const py::handle& value) { return py::repr(value).cast<std::string>(); }

  static double checked(const std::string& what, double x, bool not_negative, const py::handle& value) {
    if (!std::isfinite(x)) throw ModelError(what + " must be finite; got " + shown(value));
    if (not_negative && x < 0.0) throw ModelError(what + " cannot be negative; got " + shown(value));
    return x;
  }
  static double number(const std::string& what, const py::handle& value, bool not_negative) {
    if (!PyFloat_Check(value.ptr())) throw ModelError(what + " must be one number; got " + shown(value));
    return checked(what, PyFloat_AS_DOUBLE(value.ptr()), not_negative, value);
  }
  static void per_velocity(const std::string& what, const py::handle& value, bool not_negative, PerVelocity& out) {
    if (PyFloat_Check(value.ptr())) {
      const double x = number(what, value, not_negative);
      if (out.empty() && x != 0.0) throw ModelError(what + " acts on nothing, as this joint does not move; got " + shown(value));
      std::fill(out.begin(), out.end(), x);
      return;
    }
    const py::object plain = as_plain(value.ptr(), what);
    const Array* x = proxy(plain.ptr());
    if (x->nd != 1 || x->dimensions[0] != static_cast<Py_ssize_t>(out.size()))
      throw ModelError(what + " needs one number or " + std::to_string(out.size()) + "; got " + shown(value));
    for (std::size_t k = 0; k < out.size(); ++k)
      out[k] = checked(what, reinterpret_cast<const double*>(x->data)[k], not_negative, value);
  }
  [[noreturn]] void no_place(const std::string& name) {
    if (bodies_.find(name))
      throw ModelError("'" + name + "' is a body: its joints place it; a copy has other places of frames and joints");
    py::list names;
    for (const FrameDescription& f : d_.frames) names.append(f.name);
    for (const JointDescription& j : d_.joints) names.append(j.name + ".parent"), names.append(j.name + ".child");
    py::handle(from_python().raise_no_such_name)("frame", name, names);
    throw py::value_error("unreachable");
  }

  Description& d_;
  Named<BodyDescription> bodies_;
  Named<JointDescription> joints_;
  Named<FrameDescription> frames_;
  Named<ConstraintDescription> constraints_;
  Named<SpringDescription> springs_;
};

inline void change(Description& d, const py::dict& changes) {
  Changes to(d);
  for (const auto& [sort, values] : changes) {
    const std::string key = text(sort.ptr());
    if (key == "gravity") {
      to.gravity(values);
      continue;
    }
    for (const auto& [part, value] : py::reinterpret_borrow<py::dict>(values)) {
      if (!PyUnicode_Check(part.ptr()))
        throw py::type_error(key + " must be a mapping of names, each a str; got " + py::repr(values).cast<std::string>());
      const std::string name = text(part.ptr());
      if (key == "inertias")
        to.inertia(name, value);
      else if (key == "placements")
        to.placement(name, value);
      else if (key == "lengths")
        to.length(name, value);
      else if (key == "pitch")
        to.pitch(name, value);
      else
        to.terms(key, name, value);
    }
  }
}

}  // namespace sarrus::bindings
