// Force elements that a caller adds, with memory for the objects to which their fields point.
#pragma once

#include <deque>
#include <list>
#include <memory>
#include <utility>

#include "set.hpp"

namespace sarrus {

class ForceElementList {
 public:
  /// Create a list for runs with `width` velocities, including those of loop joints.
  explicit ForceElementList(int width) : width_(width) {}
  ForceElementList(const ForceElementList&) = delete;
  ForceElementList& operator=(const ForceElementList&) = delete;

  template <class Kind> void add(Kind element) {
    element.settle();
    element.iz = std::exchange(all_.nz, all_.nz + element.states());
    if constexpr (Kind::holds) {
      element.width = width_;
      element.place = std::exchange(all_.held_size, all_.held_size + element.held_size());
    }
    std::get<std::vector<Kind>>(elements_).push_back(std::move(element));
  }
  const Law* keep(Law law) { return &laws_.emplace_back(std::move(law)); }
  const TaskControl* keep(TaskControl law) { return &laws_of_tasks_.emplace_back(std::move(law)); }
  /// Store the elements of an element, such as the controllers of a sample-and-hold: fill(list) adds them.
  template <class Fill> const ForceElements* keep_inner(Fill&& fill) {
    ForceElementList& inner = inner_.emplace_back(width_);
    fill(inner);
    return inner.kept_ = std::make_unique<ForceElements>(inner.all()), inner.kept_.get();
  }

  /// Mark task controllers as users of the loop joints' state. This is necessary if elements apply forces to loop joints.
  void drive_loop_joints() {
    for (TaskControl& law : laws_of_tasks_) law.drives_loop_joints = true;
    for (ForceElementList& list : inner_) list.drive_loop_joints();
  }
  /// Set the limits of the sum of all controllers' efforts, for every velocity.
  void limit_efforts(std::vector<double> limits) { effort_limits_ = std::move(limits); }

  ForceElements all() const {
    ForceElements a = all_;
    point_to(a, std::make_index_sequence<std::tuple_size_v<EveryKind<Elements>>>());
    a.effort_limit = effort_limits_.empty() ? nullptr : effort_limits_.data();
    return a;
  }

 private:
  template <class E> using Storage = std::vector<E>;
  template <std::size_t... k> void point_to(ForceElements& a, std::index_sequence<k...>) const {
    const auto point = [&](auto& to, const auto& from) { to = {from.data(), static_cast<int>(from.size())}; };
    (point(std::get<k>(a.kinds), std::get<k>(elements_)), ...);
    ((a.nonempty |= std::get<k>(elements_).empty() ? 0U : 1U << k), ...);
  }

  int width_;
  ForceElements all_{};
  EveryKind<Storage> elements_;
  std::deque<Law> laws_;  // addresses of its elements are stable
  std::deque<TaskControl> laws_of_tasks_;
  std::list<ForceElementList> inner_;
  std::unique_ptr<ForceElements> kept_;  // all() of an inner list
  std::vector<double> effort_limits_;
};

}  // namespace sarrus
