// Force elements as a caller adds them, in storage of their own. Each reads its numbers from the row of parameters, in the order in which they
// were added.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "../mechanism/mechanism.hpp"
#include "plan.hpp"

namespace sarrus {

class ForceElementList {
 public:
  ForceElementList() = default;
  ForceElementList(const ForceElementList&) = delete;
  ForceElementList& operator=(const ForceElementList&) = delete;

  /// Parameters: kp, ki, kd, lower and upper limit.
  void add_controller(int iq, int iv, Law target, bool turns = false) {
    const int iz = all_.nz++;
    controllers_.push_back({iq, iv, iz, keep(std::move(target)), read(5), turns});
  }
  void add_effort(int iv, Law law) { efforts_.push_back({iv, keep(std::move(law))}); }
  /// Parameters: sliding and sticking friction, Stribeck's velocity, stiffness and damping of the bristles.
  void add_stiction(int iv) {
    const int iz = all_.nz++;
    stictions_.push_back({iv, iz, read(5)});
  }
  /// Of a sphere about `center` in a frame with the plane normal . x = offset. Parameters: k, n, c, friction, v_s.
  void add_contact(const Mechanism::PlacedFrame& frame, const Vec3<double>& center, const Vec3<double>& normal, double offset,
                   double radius) {
    contacts_.push_back({frame.link, frame.X.R * center + frame.X.p, normal, offset, radius, read(5)});
  }
  /// The same with ground that is higher than the plane by a law of the distance along . x, across the normal.
  void add_contact(const Mechanism::PlacedFrame& frame, const Vec3<double>& center, const Vec3<double>& normal, double offset,
                   double radius, Law height, const Vec3<double>& along) {
    add_contact(frame, center, normal, offset, radius);
    contacts_.back().height = keep(std::move(height)), contacts_.back().along = along;
  }
  /// Along an axis of a frame, at its origin. Parameters: least and greatest force.
  void add_thruster(const Mechanism::PlacedFrame& frame, const Vec3<double>& axis, Law thrust) {
    thrusters_.push_back({frame.link, frame.X.p, frame.X.R * axis, keep(std::move(thrust)), read(2)});
  }
  /// Of a wheel with this inertia about its axis. Parameters: greatest torque and momentum.
  void add_wheel(int iv, double inertia, Law torque) { wheels_.push_back({iv, inertia, keep(std::move(torque)), read(2)}); }
  /// Parameters: lower and upper limit, stiffness, damping.
  void add_end_stop(int iq, int iv, bool turns = false, double near = 0.0) {
    end_stops_.push_back({iq, iv, read(4), turns, near});
  }
  /// A law for each velocity. Parameters: kp of every velocity, then kd.
  void add_computed_torque(std::vector<Law> laws) {
    for (Law& law : laws) targets_.push_back(keep(std::move(law)));
    all_.computed = read(2 * static_cast<int>(laws.size()));
  }
  /// Parameters: its own.
  void add_task_control(TaskControl law) {
    laws_of_tasks_.push_back(std::move(law));
    const TaskControl& kept = laws_of_tasks_.back();
    task_controls_.push_back({&kept, read(kept.parameters), std::exchange(all_.nz, all_.nz + kept.states)});
  }
  /// Tells controllers of tasks that elements act on joints that close loops, whose state they are to read then.
  void drive_loop_joints() {
    for (TaskControl& law : laws_of_tasks_) law.drives_loop_joints = true;
  }
  /// Of every velocity: what controllers give in all is kept within it.
  void limit_efforts(std::vector<double> limits) { effort_limits_ = std::move(limits); }

  /// Whether one of them is at a velocity beyond so many.
  bool beyond(int nv) const {
    const auto any = [nv](const auto& list) {
      return std::any_of(list.begin(), list.end(), [nv](const auto& e) { return e.iv >= nv; });
    };
    return any(controllers_) || any(efforts_) || any(stictions_) || any(end_stops_) || any(wheels_) ||
           std::any_of(laws_of_tasks_.begin(), laws_of_tasks_.end(), [](const TaskControl& c) { return c.drives_loop_joints; });
  }

  ForceElements all() const {
    ForceElements a = all_;
    a.controllers = size(controllers_), a.controller = controllers_.data();
    a.efforts = size(efforts_), a.effort = efforts_.data();
    a.stictions = size(stictions_), a.stiction = stictions_.data();
    a.contacts = size(contacts_), a.contact = contacts_.data();
    a.end_stops = size(end_stops_), a.end_stop = end_stops_.data();
    a.thrusters = size(thrusters_), a.thruster = thrusters_.data();
    a.wheels = size(wheels_), a.wheel = wheels_.data();
    a.task_controls = size(task_controls_), a.task_control = task_controls_.data();
    a.effort_limit = effort_limits_.empty() ? nullptr : effort_limits_.data();
    a.target = targets_.empty() ? nullptr : targets_.data();
    return a;
  }

 private:
  template <class T> static int size(const std::vector<T>& x) { return static_cast<int>(x.size()); }
  int read(int count) { return std::exchange(all_.parameters, all_.parameters + count); }
  const Law* keep(Law law) {
    laws_.push_back(std::move(law));
    return &laws_.back();
  }

  ForceElements all_{};
  std::deque<Law> laws_;  // what it holds stays where it is
  std::vector<const Law*> targets_;
  std::vector<Controller> controllers_;
  std::vector<PrescribedEffort> efforts_;
  std::vector<Stiction> stictions_;
  std::vector<Contact> contacts_;
  std::vector<EndStop> end_stops_;
  std::vector<Thruster> thrusters_;
  std::vector<ReactionWheel> wheels_;
  std::deque<TaskControl> laws_of_tasks_;
  std::vector<TaskElement> task_controls_;
  std::vector<double> effort_limits_;
};

}  // namespace sarrus
