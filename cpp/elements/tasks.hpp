// Motors controlled by tasks: see ../control/task_control.hpp. The controller uses the forces of all other elements.
#pragma once

#include "element.hpp"

namespace sarrus {

struct Tasks : ForceElement {
  static constexpr const char* name = "TaskControl";
  static constexpr const char* unrecorded = reasons::model;
  static constexpr bool has_rates = true, beside_variants = false, varies = false, can_be_sampled = true;
  const TaskControl* law;
  NumberArray numbers;

  template <class F> void fields(F field) { field("law", law), field("numbers", numbers); }
  int states() const { return law->states; }

  template <class T> void apply(ElementCall<T>&) const {}  // efforts are computed in respond(), after all other elements
  template <class T> void respond(ElementCall<T>& e) const {
    const Arena::Scope scope(e.arena);
    T* other_forces = e.arena.template take<T>(e.width);
    for (int k = 0; k < e.width; ++k) other_forces[k] = e.motor == e.tau ? e.tau[k] : e.tau[k] + e.motor[k];
    e.pfaffian_values();
    const T outcome = task_control(e.tree, e.arena, *law, e[numbers], static_cast<const T*>(nullptr), e.time, e.q, e.v, e.z + iz,
                                   static_cast<const T*>(other_forces), e.motor, e.z_dot + iz, e.around);
    e.status = most(e.status, outcome);
  }
};

}  // namespace sarrus
