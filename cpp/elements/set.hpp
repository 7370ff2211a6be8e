// List of all kinds of force element, one per line, in the order of evaluation, and functions of all elements.
#pragma once

#include <tuple>
#include <type_traits>

#include "actuator_model.hpp"
#include "applied_wrench.hpp"
#include "bushing.hpp"
#include "collision_contacts.hpp"
#include "compliant_contact.hpp"
#include "computed_torque.hpp"
#include "effort_table.hpp"
#include "end_stop.hpp"
#include "feedforward_effort.hpp"
#include "gas_spring.hpp"
#include "gravity_compensation.hpp"
#include "loop_spring.hpp"
#include "lugre_friction.hpp"
#include "pd_plus.hpp"
#include "pid.hpp"
#include "pin_clearance.hpp"
#include "reaction_wheel.hpp"
#include "rigid_contact.hpp"
#include "sample_and_hold.hpp"
#include "tasks.hpp"
#include "thruster.hpp"
#include "zero_order_hold.hpp"

namespace sarrus {

template <template <class> class Of>
using EveryKind = std::tuple<  //
    Of<PID>,                   //
    Of<FeedforwardEffort>,     //
    Of<LuGreFriction>,         //
    Of<ComputedTorque>,        //
    Of<PDPlus>,                //
    Of<GravityCompensation>,   //
    Of<EffortTable>,           //
    Of<EndStop>,               //
    Of<ActuatorModel>,         //
    Of<ReactionWheel>,         //
    Of<CompliantContact>,      //
    Of<PinClearance>,          //
    Of<Bushing>,               //
    Of<GasSpring>,             //
    Of<RigidContact>,          //
    Of<CollisionContacts>,     //
    Of<Thruster>,              //
    Of<AppliedWrench>,         //
    Of<ZeroOrderHold>,         //
    Of<SampleAndHold>,         //
    Of<Tasks>,                 //
    Of<LoopSpring>             //
    >;

/// Elements of one kind, stored elsewhere.
template <class E> struct Elements {
  using Kind = E;
  const E* first = nullptr;
  int count = 0;
  const E* begin() const { return first; }
  const E* end() const { return first + count; }
  bool empty() const { return count == 0; }
};

struct ForceElements {
  EveryKind<Elements> kinds;
  unsigned nonempty = 0;  // bit set of the kinds with at least one element
  // limit of the controllers' total effort for every velocity, including those of loop joints; or null
  const double* effort_limit = nullptr;
  int nz = 0, parameters = 0;  // number of integrated internal states, and of parameters
  // number of values that are constant between samples; these include the coordinates of loop joints whose revolutions are counted
  int held_size = 0;

  template <class E> const Elements<E>& all() const { return std::get<Elements<E>>(kinds); }
  /// Return the same elements without those of kind E.
  template <class E> ForceElements without() const {
    ForceElements others = *this;
    std::get<Elements<E>>(others.kinds) = {};
    others.nonempty = nonempty & ~bit_of<E>(std::make_index_sequence<std::tuple_size_v<EveryKind<Elements>>>());
    return others;
  }

  /// Call visit(elements) for each kind with elements.
  template <class Visit> SARRUS_INLINE void each_kind(Visit&& visit) const {
    visit_kinds(visit, std::make_index_sequence<std::tuple_size_v<EveryKind<Elements>>>());
  }
  /// Call visit(element) for every element.
  template <class Visit> SARRUS_INLINE void each(Visit&& visit) const {
    each_kind([&](const auto& elements) SARRUS_INLINED {
      for (const auto& element : elements) visit(element);
    });
  }

  /// Return true if the force of some element can be stiff.
  bool have_rates() const {
    return any([](const auto& elements) SARRUS_INLINED { return std::decay_t<decltype(elements)>::Kind::has_rates; });
  }
  bool hold() const {
    return any([](const auto& elements) SARRUS_INLINED { return std::decay_t<decltype(elements)>::Kind::holds; });
  }
  SARRUS_INLINE bool deliver() const {
    return any([](const auto& elements) SARRUS_INLINED { return std::decay_t<decltype(elements)>::Kind::delivers; });
  }
  /// Return true if all elements can be evaluated for several variants in lanes.
  bool beside_variants() const;
  /// Return the largest number of rows between bodies along which elements have a stiffness and a damping.
  int soft_rows() const {
    int n = 0;
    each_kind([&](const auto& elements) { n += std::decay_t<decltype(elements)>::Kind::soft_rows * elements.count; });
    return n;
  }
  int chords() const {
    int n = 0;
    each_kind([&](const auto& elements) { n += std::decay_t<decltype(elements)>::Kind::has_chord ? elements.count : 0; });
    return n;
  }
  /// Return true if an element refers to a velocity with an index of nv or more (a loop joint).
  bool act_beyond(int nv) const;

 private:
  template <class E, std::size_t... k> static constexpr unsigned bit_of(std::index_sequence<k...>) {
    return ((std::is_same_v<std::tuple_element_t<k, EveryKind<Elements>>, Elements<E>> ? 1U << k : 0U) | ...);
  }
  template <class Visit, std::size_t... k> SARRUS_INLINE void visit_kinds(Visit& visit, std::index_sequence<k...>) const {
    static_assert(sizeof...(k) <= 32);
    ((nonempty >> k & 1U ? visit(std::get<k>(kinds)) : void()), ...);
  }
  /// Return true if the predicate is true for some kind of which there are elements.
  template <class Predicate> SARRUS_INLINE bool any(Predicate predicate) const {
    bool yes = false;
    each_kind([&](const auto& elements) SARRUS_INLINED { yes |= predicate(elements); });
    return yes;
  }
};

inline int SampleAndHold::inner_states() const { return controllers->nz; }

inline bool ForceElements::beside_variants() const {
  bool all = true;
  each([&](const auto& element) {
    using Kind = std::decay_t<decltype(element)>;
    all = all && Kind::beside_variants;
    if constexpr (std::is_same_v<Kind, SampleAndHold>) all = all && element.controllers->beside_variants();
  });
  return all;
}
/// True if elements of this kind are evaluated for scalar type T.
template <class Kind, class T> constexpr bool acts_in = (Kind::beside_variants || !has_own_numbers<T>) &&
                                                        (Kind::varies || !carries_rates<T>) &&
                                                        (!Kind::unrecorded || !is_symbolic<T>);

/// Return true if a field refers to a velocity with an index of nv or more (a loop joint).
template <class X> bool is_beyond(const X&, int) { return false; }
inline bool is_beyond(const JointCoordinate& x, int nv) { return x.iv >= nv; }
inline bool is_beyond(const JointVelocity& x, int nv) { return x.iv >= nv; }
inline bool is_beyond(const JointTarget& x, int nv) { return x.iv >= nv; }
inline bool is_beyond(const TaskControl* const& law, int) { return law->drives_loop_joints; }
inline bool is_beyond(const ForceElements* const& elements, int nv) { return elements->act_beyond(nv); }
template <class X> bool is_beyond(const std::vector<X>& all, int nv) {
  return std::any_of(all.begin(), all.end(), [nv](const X& x) { return is_beyond(x, nv); });
}
inline bool ForceElements::act_beyond(int nv) const {
  bool any = false;
  each([&](const auto& element) {
    using Kind = std::decay_t<decltype(element)>;
    const_cast<Kind&>(element).fields([&](const char*, const auto& x, auto...) { any |= is_beyond(x, nv); });  // read only
  });
  return any;
}

/// Call visit(element) for the elements that are evaluated for scalar type T.
template <class T, class Visit> SARRUS_INLINE void each_evaluated(const ForceElements& elements, Visit&& visit) {
  elements.each([&](const auto& element) SARRUS_INLINED {
    if constexpr (acts_in<std::decay_t<decltype(element)>, T>) visit(element);
  });
}

/// Add the forces of all elements; elements that use the forces of others are evaluated last.
template <class T> void apply(const ForceElements& elements, ElementCall<T>& e) {
  const Arena::Scope scope(e.arena);
  int chords = 0;
  each_evaluated<T>(elements, [&](const auto& element) {
    if constexpr (std::decay_t<decltype(element)>::has_chord) e.chord = e.chords.chord ? e.chords.chord + chords++ : nullptr;
    element.apply(e);
  });
  each_evaluated<T>(elements, [&](const auto& element) { element.respond(e); });
}

/// Convert the commanded efforts to those that motors produce.
template <class T> void deliver(const ForceElements& elements, ElementCall<T>& e) {
  each_evaluated<T>(elements, [&](const auto& element) { element.deliver(e); });
}

}  // namespace sarrus
