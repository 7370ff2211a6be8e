// Force elements as a caller adds them, in storage of their own. Each reads its numbers from the row of parameters, in the order in which they
// were added.
#pragma once

#include <algorithm>
#include <cmath>
#include <deque>
#include <list>
#include <tuple>
#include <utility>
#include <vector>

#include "../mechanism/mechanism.hpp"
#include "sampling.hpp"

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
  /// Of coordinates (iq, iv) with a law each, by the motors that drive these velocities, or by those of all. Parameters: kp of every
  /// coordinate, then kd; of gravity, a scale.
  void add_model_law(ModelLawKind kind, const std::vector<int>& iq, const std::vector<int>& iv, std::vector<Law> laws,
                     const std::vector<int>& motors) {
    std::vector<const Law*> targets;
    for (Law& law : laws) targets.push_back(keep(std::move(law)));
    const int n = size(iv), numbers = kind == ModelLawKind::gravity ? 1 : 2 * n;
    const bool own = std::is_permutation(iv.begin(), iv.end(), motors.begin(), motors.end());
    model_laws_.push_back(
        {kind, n, keep_all(iq), keep_all(iv), keep_all(targets), size(motors), keep_all(motors), read(numbers), own});
  }
  /// Of a lag of this order. Parameters: bandwidth and damping ratio of the lag, stall effort, no-load speed.
  void add_drive(int iv, int order) { drives_.push_back({iv, std::exchange(all_.nz, all_.nz + order), order, read(4)}); }
  /// Along velocities, at times in order. Parameters: times x velocities.
  void add_table(const std::vector<double>& times, const std::vector<int>& motors) {
    const int n = size(times), m = size(motors);
    tables_.push_back({n, m, keep_all(times), keep_all(motors), read(n * m)});
  }
  /// The same, but held from each time to the next. `width`: of all velocities, those of joints that close loops too.
  void add_held_table(const std::vector<double>& times, const std::vector<int>& motors, int width) {
    double shortest = 1.0;
    for (std::size_t k = 1; k < times.size(); ++k) shortest = std::min(shortest, times[k] - times[k - 1]);
    const int n = size(times), m = size(motors);
    add_sampling(
        {{}, false, shortest, 0.0, 0, 0, width, nullptr, nullptr, nullptr, n, m, keep_all(times), keep_all(motors), read(n * m)});
  }
  /// What is asked at samples, to be filled before anything else is added. `steps`: of positions, velocities and efforts, or none of them.
  struct Clocked {
    double period, delay;
    bool calls;
    std::vector<double> position_step, velocity_step, effort_step;
    int width;
  };
  template <class Fill> void add_sampled(const Clocked& c, Fill&& fill) {
    ForceElementList& list = sampled_.emplace_back();
    list.all_.parameters = all_.parameters;
    list.all_.unwinding = std::min(1e3, 1.0 / c.period);
    fill(list);
    all_.parameters = list.all_.parameters;
    const int pending = static_cast<int>(std::ceil(c.delay / c.period - 1e-6));
    add_sampling({list.all(), c.calls, c.period, c.delay, std::max(0, pending), 0, c.width, keep_all(c.position_step),
                  keep_all(c.velocity_step), keep_all(c.effort_step), 0, 0, nullptr, nullptr, 0});
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
    for (ForceElementList& list : sampled_) list.drive_loop_joints();
  }
  /// Of every velocity: what controllers give in all is kept within it.
  void limit_efforts(std::vector<double> limits) { effort_limits_ = std::move(limits); }

  /// Whether one of them is at a velocity beyond so many.
  bool beyond(int nv) const {
    const auto any = [nv](const auto& list) {
      return std::any_of(list.begin(), list.end(), [nv](const auto& e) { return e.iv >= nv; });
    };
    const auto any_motor = [nv](const auto& list) {
      return std::any_of(list.begin(), list.end(), [nv](const auto& e) {
        return std::any_of(e.motor, e.motor + e.motors, [nv](int iv) { return iv >= nv; });
      });
    };
    return any(controllers_) || any(efforts_) || any(stictions_) || any(end_stops_) || any(wheels_) || any(drives_) ||
           any_motor(model_laws_) || any_motor(tables_) || any_motor(samplings_) ||
           std::any_of(sampled_.begin(), sampled_.end(), [nv](const ForceElementList& list) { return list.beyond(nv); }) ||
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
    a.model_laws = size(model_laws_), a.model_law = model_laws_.data();
    a.drives = size(drives_), a.drive = drives_.data();
    a.tables = size(tables_), a.table = tables_.data();
    a.samplings = size(samplings_), a.sampling = samplings_.data();
    return a;
  }

 private:
  template <class T> static int size(const std::vector<T>& x) { return static_cast<int>(x.size()); }
  int read(int count) { return std::exchange(all_.parameters, all_.parameters + count); }
  const Law* keep(Law law) {
    laws_.push_back(std::move(law));
    return &laws_.back();
  }

  template <class T> const T* keep_all(const std::vector<T>& x) {
    if (x.empty()) return nullptr;
    auto& kept = std::get<std::deque<std::vector<T>>>(lists_);
    return kept.emplace_back(x).data();
  }
  void add_sampling(Sampling s) {
    s.at = std::exchange(all_.held, all_.held + held_size(s));
    samplings_.push_back(s);
  }

  ForceElements all_{};
  std::deque<Law> laws_;  // what it holds stays where it is
  std::tuple<std::deque<std::vector<int>>, std::deque<std::vector<double>>, std::deque<std::vector<const Law*>>> lists_;
  std::list<ForceElementList> sampled_;  // a list: the type is not complete here
  std::vector<ModelLaw> model_laws_;
  std::vector<Drive> drives_;
  std::vector<EffortTable> tables_;
  std::vector<Sampling> samplings_;
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
