// What a kind of force element is asked, and what it answers. A kind is a struct with its numbers; set.hpp lists all of them, and nothing
// outside its own file knows one from another.
//
//   name               what descriptions call it
//   fields(field)      field("key", member) for each of its members, as a description has them, with the sign that numbers must have. The
//                      member's type says what it is, and how it is read: see "What fields are" below
//   has_rates          whether its force follows the state at once, so that it can be too stiff for a step
//   apply(e)           adds its force, and writes the rates of its internal states
//
// and, where it has them (ForceElement answers for the others):
//
//   respond(e)         the same, where it has to know what all others do
//   deliver(e)         changes what has been asked of the motors in all (`delivers` says so)
//   states()           how many internal states it has; they stand from `iz` on
//   state_unit(units)  what these are compared with
//   has_chord          whether its force is limited, and counts as the damper that it is at a state: see Chords
//   has_linear_rates   true if its force has a stiffness and a damping along its joint, which it adds to `e.stiffness` and `e.damping`, for
//                      implicit steps, while no limit holds it
//   varies             false: it has no derivatives, and steps with it have none: see simulation/step_rates.hpp
//   settle()           makes of its fields, once, what its functions want
//
// Controllers add to what is asked of motors, others to the generalised force.
#pragma once

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "../control/tasks.hpp"
#include "../loops/constraints.hpp"

namespace sarrus {

// ---- What fields are -------------------------------------------------------------------------------------------------

// Coordinates and velocities are numbered on from the tree's over those of joints that close loops, of whose angles a run counts the turns: see
// simulation/turns.hpp.

/// A coordinate of a joint, and the velocity that is its rate.
struct JointCoordinate {
  int iq, iv;
};
struct JointVelocity {
  int iv;
};
/// A coordinate with a law that it is to follow.
struct JointTarget {
  int iq, iv;
  const Law* law;
};
/// One of the mechanism's, and what it sits in.
struct BodyFrame {
  int link, placed;
  template <class T> SARRUS_INLINE decltype(auto) on_the_link(const Tree& t) const { return t.numbers<T>()(t.frame[placed].X); }
};
/// Passive terms of the mechanism: along a velocity of the tree (joint -1), or of a joint that closes a loop.
struct JointTerms {
  int joint, term;
  const PassiveTerms& of(const Tree& t) const { return joint < 0 ? t.passive[term] : t.loop_motion[joint].terms[term]; }
};
/// A unit vector.
struct Direction {
  Vec3<double> n;
};
/// A number that may differ from run to run: where it stands in a run's row of parameters.
struct Number {
  int at;
};
/// Several of them, one behind the other; it is the first.
struct NumberArray {
  int at;
};
/// Two of them, the one no greater than the other.
struct Range {
  Number lower, upper;
};
// besides: double, int and bool, the same in all runs; const Law*, null where there may be none; vectors of velocities and of times;
// const TaskControl*; const ForceElements*, of elements within an element

/// What a number must be.
enum class Sign { any, positive, not_negative, not_negative_or_infinite };

// ---- What elements are told ------------------------------------------------------------------------------------------

template <class T> SARRUS_INLINE T least(const T& a, const T& b) { return select(a < b, a, b); }
template <class T> SARRUS_INLINE T most(const T& a, const T& b) { return select(a > b, a, b); }

inline double exponential(double x) { return std::exp(x); }
inline double power(double x, double n) { return std::pow(x, n); }
inline double logarithm(double x) { return std::log(x); }
template <int W, bool Own> Packet<W, Own> exponential(Packet<W, Own> x) {
  return Packet<W, Own>::each([&](int i) { return std::exp(x.lanes[i]); });
}
template <int W, bool Own> Packet<W, Own> power(Packet<W, Own> x, Packet<W, Own> n) {
  return Packet<W, Own>::each([&](int i) { return std::pow(x.lanes[i], n.lanes[i]); });
}

template <class T, class R> Dual<T, R> exponential(const Dual<T, R>& x) {
  const T y = exponential(x.value);
  return {y, R(y) * x.rate};
}
template <int W, bool Own> Packet<W, Own> logarithm(Packet<W, Own> x) {
  return Packet<W, Own>::each([&](int i) { return std::log(x.lanes[i]); });
}
/// Of a number that is not negative; at zero what a positive one says.
template <class T, class R> Dual<T, R> power(const Dual<T, R>& x, const Dual<T, R>& n) {
  const T y = power(x.value, n.value), positive = select(x.value > T(0.0), x.value, T(1.0));
  const T slope = n.value * power(x.value, T(n.value - T(1.0)));
  return {y, R(slope) * x.rate + R(y * logarithm(positive)) * n.rate};
}

/// Clocks are those of all lanes.
inline double of_any_lane(double x) { return x; }
template <class T, class R> double of_any_lane(const Dual<T, R>& x) { return of_any_lane(x.value); }
template <int W, bool Own> double of_any_lane(const Packet<W, Own>& x) { return x.lanes[0]; }

/// Forces that are limited, as the dampers that they are at a state: where these are to be noted, or, if they are known, from where to be taken.
template <class T> struct Chords {
  T* chord = nullptr;  // of each element that has one
  bool known = false;
};

/// A state, the same for all elements, and where they add what they do. Behind q, v, motor and tau may stand what belongs to joints that close
/// loops.
template <class T> struct ElementCall {
  const Tree& tree;
  Arena& arena;
  const T* parameter;
  const T& time;
  const T *q, *v, *z;
  int width;  // velocities of all joints at hand
  T *motor, *tau, *z_dot;
  const T* springs = nullptr;  // a generalised force of the mechanism that acts besides, of which the tree does not know
  const T* held = nullptr;  // what is held from sample to sample
  T *stiffness = nullptr, *damping = nullptr;  // linear rates along joints (width), for steps that are implicit in them; or null
  Chords<T> chords{};
  Surroundings<T> around{};
  bool rigid = false;  // contacts and stops are rows of the step, and push nothing themselves
  double unwinding = 1e3;  // towards a limit a controller's z goes no faster than it would reach it in the inverse of this [1/s]

  const T* (*caller_rows)(void* run, const T* q, const T* v,
                          bool rates) = nullptr;  // a function of the caller gives rows; null: none does
  void* run = nullptr;

  T pressing = T(0.0);  // a number that is another one wherever other elements press (of the first 50)
  T lacking = T(0.0);  // the largest part of what a law wants that no motor gives, relative
  T status = T(0.0);

  T* chord = nullptr;  // of the element at hand
  double weight = 1.0;
  const LoopState<T>* placed = nullptr;

  const T& operator[](Number n) const { return parameter[n.at]; }
  const T* operator[](NumberArray n) const { return parameter + n.at; }
  /// Value, rate and acceleration of a law.
  void follow(const Law* law, T (&g)[3]) const { evaluate(*law, parameter, &time, g); }
  T value(const Law* law) const {
    T g[3];
    follow(law, g);
    return g[0];
  }
  T within(Range limits, const T& x) const { return least(most(x, (*this)[limits.lower]), (*this)[limits.upper]); }

  /// Rows that a function of the caller gives, with their c and gamma; or how fast they change.
  const T* pfaffian_values() {
    if (caller_rows && !around.pfaffian_values) around.pfaffian_values = caller_rows(run, q, v, false);
    return around.pfaffian_values;
  }
  const T* pfaffian_rates() const { return caller_rows ? caller_rows(run, q, v, true) : nullptr; }

  /// Where the bodies are.
  const LoopState<T>& bodies() {
    if (!placed)  // made where it stays
      placed =
          new (arena.template take<LoopState<T>>(1)) LoopState<T>(place(tree, arena, q, &time, static_cast<const T*>(nullptr)));
    return *placed;
  }
  /// Says in which lanes the element at hand presses.
  template <class Mask> void press(const Mask& presses) {
    pressing += select(presses, T(weight), T(0.0));
    weight = weight < 1e15 ? 2.0 * weight : 0.0;
  }
};

/// What internal states are compared with: of every velocity 1 rad or a length, and of the effort along it.
struct StateUnits {
  const double* velocity;
  double power;
  double effort(int iv) const { return power / velocity[iv]; }
};

struct ForceElements;  // set.hpp

/// What holds of a kind that does not say otherwise.
struct ForceElement {
  int iz = 0;  // where its internal states stand

  static constexpr bool delivers = false, has_chord = false, holds = false;  // holds: see held.hpp
  static constexpr bool beside_variants = true;  // whether it acts on variants side by side; else these go one by one
  static constexpr bool has_linear_rates = false;
  static constexpr bool varies = true;  // whether it is asked on numbers that carry rates, for derivatives of steps
  int states() const { return 0; }
  double state_unit(const StateUnits&) const { return 1.0; }
  void settle() {}
  template <class T> void respond(ElementCall<T>&) const {}
  template <class T> void deliver(ElementCall<T>&) const {}
};

// ---- Forces at points of bodies --------------------------------------------------------------------------------------

/// Adds what a force f at the point p (world) of a body does to the generalised force: from the body to the ground, f . (u + w x r).
template <class T>
SARRUS_INLINE void add_point_force(const Tree& tree, const LoopState<T>& state, int link, const Vec3<T>& p, const Vec3<T>& f,
                                   T* tau) {
  for (int b = link; b > 0; b = tree.link[b].parent) {
    const Link& joint = tree.link[b];
    const Vec3<T> moment = cross(Vec3<T>(p - state.X[b].p), f);
    for (int k = 0; k < joint.nv; ++k)
      tau[joint.iv + k] += dot(state.column[joint.iv + k].linear, f) + dot(state.column[joint.iv + k].angular, moment);
  }
}

/// Adds to tau (nv) a moment (world) on a body.
template <class T>
SARRUS_INLINE void add_moment(const Tree& tree, const LoopState<T>& state, int link, const Vec3<T>& moment, T* tau) {
  for (int b = link; b > 0; b = tree.link[b].parent)
    for (int k = tree.link[b].iv; k < tree.link[b].iv + tree.link[b].nv; ++k) tau[k] += dot(state.column[k].angular, moment);
}

/// Of the point p (world) of a body.
template <class T>
SARRUS_INLINE Vec3<T> point_velocity(const Tree& tree, const LoopState<T>& state, int link, const Vec3<T>& p, const T* v) {
  Vec3<T> u = zero3<T>();
  for (int b = link; b > 0; b = tree.link[b].parent) {
    const Link& joint = tree.link[b];
    for (int k = 0; k < joint.nv; ++k) {
      const Motion<T>& s = state.column[joint.iv + k];
      u += (s.linear + cross(s.angular, Vec3<T>(p - state.X[b].p))) * v[joint.iv + k];
    }
  }
  return u;
}

}  // namespace sarrus
