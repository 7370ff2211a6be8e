// Data and functions that the readers of tasks, contacts and limits share.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "../joints/visit.hpp"
#include "checks.hpp"
#include "tasks.hpp"

namespace sarrus::reading {

/// Return real numbers of any shape.
inline Numbers real_numbers(const std::string& label, const Argument& value) {
  if (const bool* truth = value.get<bool>()) return {{}, {*truth ? 1.0 : 0.0}};
  const Numbers* x = value.get<Numbers>();
  if (!x) throw ShapeError(label + " must be an array of real numbers; got " + value.shown());
  return *x;
}

/// Return a finite number that is not negative.
inline double not_negative(const std::string& label, const Argument& value) {
  const double x = constant(label, value);
  if (x < 0.0) refuse(label, "not be negative", value);
  return x;
}

/// Data that the parts of a controller share.
struct TaskContext : NamedParts {
  const ElementModel& model;
  NamedTaskControl& to;
  std::map<std::string, std::pair<int, int>> contact_unknowns;  // first unknown and number of unknowns of a contact's frame

  TaskContext(const ElementModel& m, NamedTaskControl& result) : NamedParts(m.functions.mechanism()), model(m), to(result) {}

  bool turns(const PlacedJoint& at, int k) const {
    // true unless the pose determines the number of revolutions, as the displacement of a helical joint does
    const bool returns = visit_every(at.joint.kind, 0, [](auto joint) -> bool { return joint.whole_turns_return; });
    bool pitch_is_zero = false;
    visit_every(at.joint.kind, 0, [&](auto joint) {
      JointConstants constants = at.joint.constants;
      joint.fields(constants, [&](const char* key, auto& x, const char*) {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, double>) pitch_is_zero |= std::string(key) == "pitch" && x == 0.0;
      });
    });
    return at.closes_loop && (returns || pitch_is_zero) && at.type().is_angle(k);
  }
  TaskCoordinate task_coordinate(const PlacedJoint& at, const Argument& index, const std::string& label) const {
    const JointCoordinate x = coordinate(at, index, label);
    const int k = x.iv - at.iv;
    return {x.iq, x.iv, turns(at, k), !slides(at.joint, k)};
  }
  TaskFrame task_frame(const Argument& name) const {
    const PlacedFrame& placed = frame(name);
    return {placed.link, placed.X};
  }
  int column(const Numbers& x) const { return to.parameters.add(x, 0); }
};

}  // namespace sarrus::reading
