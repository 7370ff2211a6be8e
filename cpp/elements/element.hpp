// Interface of a kind of force element. A kind is a struct with its parameters. set.hpp lists all kinds, and no other file depends on their
// differences.
//
//   name               the name of the kind in descriptions
//   fields(field)      calls field("key", member, sign) for each member that is read from descriptions; `sign` is the required sign of numbers. The
//                      type of the member determines how it is read: see "Fields" below
//   has_rates          true if its force is a function of the present state, and can therefore be too stiff for a step
//   apply(e)           adds its force, and writes the rates of its internal states
//
// A kind may also define the following members, whose defaults are in ForceElement:
//
//   respond(e)         like apply, but after all other elements, whose forces it may use
//   deliver(e)         changes the sum of the commanded efforts (set `delivers`)
//   states()           number of internal states; they start at `iz`
//   state_unit(units)  units of the internal states
//   has_chord          true if its force is limited, and is replaced by a linear damper where its stiffness matters: see Chords
//   has_linear_rates   true if its force has a stiffness and a damping along its joint. For implicit steps it adds them to `e.stiffness` and
//                      `e.damping`, unless a limit is active; or to `e.rows`
//   soft_rows          number of rows of velocities along which it adds a stiffness and a damping to `e.rows`, for implicit steps
//   varies             false if it has no derivatives, so that steps with this kind have none either: see simulation/step_rates.hpp
//   settle()           computes once, from its fields, the values that its functions use
//
// Controllers add their efforts to the commanded efforts of motors; other elements add their forces to the generalised force.
#pragma once

#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "../control/tasks.hpp"
#include "../loops/constraints.hpp"

namespace sarrus {

// ---- Fields ----------------------------------------------------------------------------------------------------------

// Indices of coordinates and velocities count those of the tree first, then those of loop joints. The simulation counts the revolutions of loop
// joints (simulation/turns.hpp).

/// Coordinate of a joint, and the velocity that is its rate.
struct JointCoordinate {
  int iq, iv;
};
struct JointVelocity {
  int iv;
};
/// Coordinate with a law that it follows.
struct JointTarget {
  int iq, iv;
  const Law* law;
};
/// Body or frame of the mechanism: its link, and its pose in the link.
struct BodyFrame {
  int link, placed;
  template <class T> SARRUS_INLINE decltype(auto) on_the_link(const Tree& t) const { return t.numbers<T>()(t.frame[placed].X); }
};
/// Index of passive terms of the mechanism: along a velocity of the tree (joint -1), or of a loop joint.
struct JointTerms {
  int joint, term;
  const PassiveTerms& of(const Tree& t) const { return joint < 0 ? t.passive[term] : t.loop_motion[joint].terms[term]; }
};
/// Unit vector.
struct Direction {
  Vec3<double> n;
};
/// Parameter that may differ between runs: its index in the parameters of a run.
struct Number {
  int at;
};
/// Contiguous array of parameters that may differ between runs; `at` is the index of the first one.
struct NumberArray {
  int at;
};
/// Two parameters that may differ between runs, lower <= upper.
struct Range {
  Number lower, upper;
};
// Fields of other types have the same value in all runs: double, int and bool; const Law*, null if optional; an array of six laws, for a wrench;
// vectors of velocities and of times; const TaskControl*; const ForceElements*, for elements within an element

/// Condition on a number.
enum class Sign { any, positive, not_negative, not_negative_or_infinite };

// ---- Inputs of elements ----------------------------------------------------------------------------------------------

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
/// Return x^n for x >= 0. At zero, the derivatives are those at a small positive x.
template <class T, class R> Dual<T, R> power(const Dual<T, R>& x, const Dual<T, R>& n) {
  const T y = power(x.value, n.value), positive = select(x.value > T(0.0), x.value, T(1.0));
  const T slope = n.value * power(x.value, T(n.value - T(1.0)));
  return {y, R(slope) * x.rate + R(y * logarithm(positive)) * n.rate};
}

/// Return the value of the first lane. It is used for times, which are the same in all lanes.
inline double first_lane(double x) { return x; }
template <class T, class R> double first_lane(const Dual<T, R>& x) { return first_lane(x.value); }
template <int W, bool Own> double first_lane(const Packet<W, Own>& x) { return x.lanes[0]; }

/// Chords of limited forces. The chord of a force is the linear damper that has the same force at the present speed; its value is stored for each
/// force. If `frozen`, forces are evaluated as those of the stored chords; otherwise the values are computed and stored.
template <class T> struct Chords {
  T* chord = nullptr;  // chord of each element with has_chord
  bool frozen = false;
};

/// Rows of velocities of the tree, J (count x nv), along which elements have a stiffness and a damping: [N/m, N m/rad], [N s/m, N m s/rad].
struct SoftForces {
  double *J = nullptr, *stiffness = nullptr, *damping = nullptr;
  int count = 0;
};

/// Inputs of all elements (the state), and outputs to which elements add. In q, v, motor and tau, values of loop joints may follow those of the tree.
template <class T> struct ElementCall {
  const Tree& tree;
  Arena& arena;
  const T* parameter;
  const T& time;
  const T *q, *v, *z;
  int width;  // number of velocities of all joints in v, including loop joints
  T *motor, *tau, *z_dot;
  const T* springs = nullptr;  // generalised force of springs that are not along joints of the tree
  const T* held_values = nullptr;  // values held from sample to sample
  // stiffness and damping along joints (width), for steps that are implicit in them; or null
  T *stiffness = nullptr, *damping = nullptr;
  SoftForces* rows = nullptr;  // stiffness and damping between bodies, for the same steps; or null
  Chords<T> chords{};
  Surroundings<T> around{};
  // wrenches [moment; force] that elements apply to frames, at each frame's origin and in its axes (6 for each frame of the tree); null: not required
  T* loads = nullptr;
  bool rigid = false;  // true: contacts and stops are rows of the step, and apply no forces themselves
  // upper bound of (rate at which a controller's z approaches a limit) / (distance of z from the limit) [1/s]
  double unwinding = 1e3;

  const T* (*caller_rows)(void* run, const T* q, const T* v,
                          bool rates) = nullptr;  // function of the caller that returns constraint rows; null: none
  void* run = nullptr;

  T pressing = T(0.0);  // contact signature: bits of the pressing elements (the first 50)
  T lacking = T(0.0);  // largest fraction of a controller's forces that no motor can produce
  T status = T(0.0);

  T* chord = nullptr;  // chord of the current element
  double weight = 1.0;
  const LoopState<T>* placed = nullptr;

  const T& operator[](Number n) const { return parameter[n.at]; }
  const T* operator[](NumberArray n) const { return parameter + n.at; }
  /// Evaluate value, rate and acceleration of a time function.
  void follow(const Law* law, T (&g)[3]) const { evaluate(*law, parameter, &time, g); }
  T value(const Law* law) const {
    T g[3];
    follow(law, g);
    return g[0];
  }
  T within(Range limits, const T& x) const { return least(most(x, (*this)[limits.lower]), (*this)[limits.upper]); }

  /// Evaluate the rows that a function of the caller returns, with their c and gamma; or the rates of these rows.
  const T* pfaffian_values() {
    if (caller_rows && !around.pfaffian_values) around.pfaffian_values = caller_rows(run, q, v, false);
    return around.pfaffian_values;
  }
  const T* pfaffian_rates() const { return caller_rows ? caller_rows(run, q, v, true) : nullptr; }

  /// Return the poses of the bodies.
  const LoopState<T>& bodies() {
    if (!placed)  // computed once for all elements
      placed =
          new (arena.template take<LoopState<T>>(1)) LoopState<T>(place(tree, arena, q, &time, static_cast<const T*>(nullptr)));
    return *placed;
  }
  /// Mark the lanes in which the current element is in contact.
  template <class Mask> void press(const Mask& presses) {
    pressing += select(presses, T(weight), T(0.0));
    weight = weight < 1e15 ? 2.0 * weight : 0.0;
  }
};

/// Units of internal states: for every velocity, the unit of its coordinate (1 rad or a length), and the unit of the effort along it.
struct StateUnits {
  const double* velocity;
  double power;
  double effort(int iv) const { return power / velocity[iv]; }
};

struct ForceElements;  // set.hpp

/// True for symbolic numbers, on which steps are recorded as generated code.
template <class T> constexpr bool is_symbolic = false;

/// Reasons why forces are not recorded, and what can be used instead.
namespace reasons {
constexpr const char
    *model = "solves equations of the mechanism; record it as a TaskControl with Recorder.tasks, and pass its efforts",
    *table = "searches a table by the time; pass its efforts to each step",
    *contact = "solves a contact problem whose number of iterations depends on the state; use CompliantContact";
}  // namespace reasons

/// Defaults of a kind of element.
struct ForceElement {
  int iz = 0;  // index of its first internal state

  static constexpr bool delivers = false, has_chord = false, holds = false;  // holds: see held.hpp
  // true if the element can be evaluated for several variants in lanes; false if only one by one
  static constexpr bool beside_variants = true;
  static constexpr bool has_linear_rates = false;
  static constexpr int soft_rows = 0;
  static constexpr bool can_be_sampled = false;  // true for controllers that SampleAndHold may contain
  static constexpr bool states_jump = false;  // true if internal states cannot be interpolated, such as identifiers of points
  // reason why the element cannot be evaluated on symbolic numbers; null: it can
  static constexpr const char* unrecorded = nullptr;
  static constexpr bool varies = true;  // true if the element can be evaluated with dual numbers, for derivatives of steps
  // reason why recorded steps of length h cannot contain the element; null: they can
  const char* unrecorded_in_steps([[maybe_unused]] double h) const { return nullptr; }
  const ForceElements* contained() const { return nullptr; }  // elements that are evaluated by this one
  int states() const { return 0; }
  double state_unit(const StateUnits&) const { return 1.0; }
  void settle() {}
  template <class T> void respond(ElementCall<T>&) const {}
  template <class T> void deliver(ElementCall<T>&) const {}
};

// ---- Forces at points of bodies --------------------------------------------------------------------------------------

/// Add the generalised force of a force f at the point p (world) of a body, joint by joint from the body to the ground: f . (u + w x r).
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

/// Add the generalised force (nv) of a moment (world) on a body to tau.
template <class T>
SARRUS_INLINE void add_moment(const Tree& tree, const LoopState<T>& state, int link, const Vec3<T>& moment, T* tau) {
  for (int b = link; b > 0; b = tree.link[b].parent)
    for (int k = tree.link[b].iv; k < tree.link[b].iv + tree.link[b].nv; ++k) tau[k] += dot(state.column[k].angular, moment);
}

/// Add the wrench F at the point p (world) on the body of a frame to the wrenches on frames, if these are required.
template <class T> SARRUS_INLINE void note_load(ElementCall<T>& e, const BodyFrame& frame, const Vec3<T>& p, const Force<T>& F) {
  if constexpr (std::is_same_v<T, double>) {  // wrenches are computed for recorded states, one by one
    if (!e.loads) return;
    const Transform<T> X = e.bodies().X[frame.link] * frame.on_the_link<T>(e.tree);
    const Vec3<T> moment = transpose_times(X.R, Vec3<T>(F.angular + cross(Vec3<T>(p - X.p), F.linear))),
                  force = transpose_times(X.R, F.linear);
    for (int k = 0; k < 3; ++k) e.loads[6 * frame.placed + k] += moment(k), e.loads[6 * frame.placed + 3 + k] += force(k);
  }
}
/// Apply a force f at the point p (world) to the body of a frame.
template <class T> SARRUS_INLINE void push(ElementCall<T>& e, const BodyFrame& frame, const Vec3<T>& p, const Vec3<T>& f) {
  add_point_force(e.tree, e.bodies(), frame.link, p, f, e.tau);
  note_load(e, frame, p, Force<T>{zero3<T>(), f});
}

/// Return the velocity of the point p (world) of a body.
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
