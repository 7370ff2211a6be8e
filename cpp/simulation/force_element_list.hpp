// Force elements as a caller adds them, in storage of their own. Each reads its numbers from the row of parameters, in the order in which they
// were added. Where runs have laws of their own, the number of the law comes before those of the element, of a contact's ground behind them.
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
  void add_controller(int iq, int iv, Law target) {
    const int iz = all_.nz++;
    of<Controller>().push_back({iq, iv, iz, keep(std::move(target)), read(5)});
  }
  void add_effort(int iv, Law law) { of<PrescribedEffort>().push_back({iv, keep(std::move(law))}); }
  /// Parameters: sliding and sticking friction, Stribeck's velocity, stiffness and damping of the bristles.
  void add_stiction(int iv) {
    const int iz = all_.nz++;
    of<Stiction>().push_back({iv, iz, read(5)});
  }
  /// Of a sphere about `center` in a frame with the plane normal . x = offset. Parameters: k, n, c, friction, v_s.
  void add_contact(const Mechanism::PlacedFrame& frame, const Vec3<double>& center, const Vec3<double>& normal, double offset,
                   double radius) {
    of<Contact>().push_back({frame.link, frame.X.R * center + frame.X.p, normal, offset, radius, read(5)});
  }
  /// The same with ground that is higher than the plane by a law of the distance along . x, across the normal.
  void add_contact(const Mechanism::PlacedFrame& frame, const Vec3<double>& center, const Vec3<double>& normal, double offset,
                   double radius, Law height, const Vec3<double>& along) {
    add_contact(frame, center, normal, offset, radius);
    of<Contact>().back().height = keep(std::move(height)), of<Contact>().back().along = along;
  }
  /// Along an axis of a frame, at its origin. Parameters: least and greatest force.
  void add_thruster(const Mechanism::PlacedFrame& frame, const Vec3<double>& axis, Law thrust) {
    of<Thruster>().push_back({frame.link, frame.X.p, frame.X.R * axis, keep(std::move(thrust)), read(2)});
  }
  /// Of a wheel with this inertia about its axis. Parameters: greatest torque and momentum.
  void add_wheel(int iv, double inertia, Law torque) {
    of<ReactionWheel>().push_back({iv, inertia, keep(std::move(torque)), read(2)});
  }
  /// Parameters: lower and upper limit, stiffness, damping.
  void add_end_stop(int iq, int iv) { of<EndStop>().push_back({iq, iv, read(4)}); }
  /// Of coordinates (iq, iv) with a law each, by the motors that drive these velocities, or by those of all. Parameters: kp of every
  /// coordinate, then kd; of gravity, a scale.
  void add_model_law(ModelLawKind kind, const std::vector<int>& iq, const std::vector<int>& iv, std::vector<Law> laws,
                     const std::vector<int>& motors) {
    std::vector<const Law*> targets;
    for (Law& law : laws) targets.push_back(keep(std::move(law)));
    const int n = size(iv), numbers = kind == ModelLawKind::gravity ? 1 : 2 * n;
    const bool own = std::is_permutation(iv.begin(), iv.end(), motors.begin(), motors.end());
    of<ModelLaw>().push_back(
        {kind, n, keep_all(iq), keep_all(iv), keep_all(targets), size(motors), keep_all(motors), read(numbers), own});
  }
  /// Of a lag of this order. Parameters: bandwidth and damping ratio of the lag, stall effort, no-load speed.
  void add_drive(int iv, int order) { of<Drive>().push_back({iv, std::exchange(all_.nz, all_.nz + order), order, read(4)}); }
  /// Along velocities, at times in order. Parameters: times x velocities.
  void add_table(const std::vector<double>& times, const std::vector<int>& motors) {
    const int n = size(times), m = size(motors);
    of<EffortTable>().push_back({n, m, keep_all(times), keep_all(motors), read(n * m)});
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
    of<TaskElement>().push_back({&kept, read(kept.parameters), std::exchange(all_.nz, all_.nz + kept.states)});
  }
  /// Tells controllers of tasks that elements act on joints that close loops, whose state they are to read then.
  void drive_loop_joints() {
    for (TaskControl& law : laws_of_tasks_) law.drives_loop_joints = true;
    for (ForceElementList& list : sampled_) list.drive_loop_joints();
  }
  /// Of every velocity: what controllers give in all is kept within it.
  void limit_efforts(std::vector<double> limits) { effort_limits_ = std::move(limits); }

  ForceElements all() const {
    ForceElements a = all_;
    fill(a.kinds, std::make_index_sequence<std::tuple_size_v<EveryKind<Elements>>>());
    a.effort_limit = effort_limits_.empty() ? nullptr : effort_limits_.data();
    return a;
  }

 private:
  template <class E> using Storage = std::vector<E>;
  template <class E> std::vector<E>& of() { return std::get<std::vector<E>>(elements_); }
  template <std::size_t... k> void fill(EveryKind<Elements>& kinds, std::index_sequence<k...>) const {
    ((std::get<k>(kinds) = {std::get<k>(elements_).data(), size(std::get<k>(elements_))}), ...);
  }
  template <class T> static int size(const std::vector<T>& x) { return static_cast<int>(x.size()); }
  int read(int count) { return std::exchange(all_.parameters, all_.parameters + count); }
  const Law* keep(Law law) {
    if (!law.each.empty()) law.which = read(1);
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
    of<Sampling>().push_back(s);
  }

  ForceElements all_{};
  std::deque<Law> laws_;  // what it holds stays where it is
  std::tuple<std::deque<std::vector<int>>, std::deque<std::vector<double>>, std::deque<std::vector<const Law*>>> lists_;
  std::list<ForceElementList> sampled_;  // a list: the type is not complete here
  EveryKind<Storage> elements_;
  std::deque<TaskControl> laws_of_tasks_;
  std::vector<double> effort_limits_;
};

}  // namespace sarrus
