// Force elements of a simulation, besides gravity and what joints have: controllers, prescribed efforts, friction that sticks, contact with
// the ground, end stops, thrusters, reaction wheels. Each adds to the generalised force; some have an internal state z, whose rate they give.
//
//   controller   u = kp e + kd e-dot + z, z-dot = ki e, e = g(t) - q, within limits, where z rests rather than drive u beyond them
//   stiction     bristles that bend by z: z-dot = v - |v| z s0/F(v), friction s0 z + min(s1, F/|v|) z-dot   (Canudas de Wit et al. 1995)
//   model laws   computed torque, PD+, gravity held by the motors: see model_laws.hpp
//   end stop     k d + c d-dot beyond a limit, with |c d-dot| at most k d: so it never pulls, and sets in without a jump
//   contact      k d^n (1 + c d-dot) along the normal (Hunt and Crossley 1975), Coulomb friction made smooth at slip speed v_s; d is how deep
//                a sphere is in a plane, or in ground whose height is a law of the distance along a line
//   thruster     f(t) within limits, along an axis that goes with the body
//   table        efforts in straight lines between given times
//   drive        of what is asked for along a velocity, u: z-dot = b (u - z), or z-double-dot = b^2 (u - z) - 2 d b z-dot; z is delivered, or u,
//                within s (1 - |v|/v_0) where it drives and s where it brakes: stall effort s and no-load speed v_0
//   tasks        ../control/task_control.hpp
//   loop spring  k (r - x), x with the turns that a run has counted: see turns.hpp
//   wheel        u(t), and what others ask of its motor, within limits: no faster than it would reach its greatest momentum in 10 ms
//
// Numbers that a sweep may vary are read from a row of parameters, so that every lane can have its own.
#pragma once

#include <algorithm>

#include "../control/tasks.hpp"
#include "../loops/constraints.hpp"
#include "model_laws.hpp"
#include "sampling.hpp"

namespace sarrus {

template <class T> SARRUS_INLINE T least(const T& a, const T& b) { return select(a < b, a, b); }
template <class T> SARRUS_INLINE T most(const T& a, const T& b) { return select(a > b, a, b); }

inline double exponential(double x) { return std::exp(x); }
inline double power(double x, double n) { return std::pow(x, n); }
template <int W> Packet<W> exponential(Packet<W> x) {
  return Packet<W>::each([&](int i) { return std::exp(x.lanes[i]); });
}
template <int W> Packet<W> power(Packet<W> x, Packet<W> n) {
  return Packet<W>::each([&](int i) { return std::pow(x.lanes[i], n.lanes[i]); });
}

/// Adds what a force f at the point p (world) of a body does to the generalised force: from the body to the ground, f . (u + w x r).
template <class T>
void add_point_force(const Tree& tree, const LoopState<T>& state, int link, const Vec3<T>& p, const Vec3<T>& f, T* tau) {
  for (int b = link; b > 0; b = tree.link[b].parent) {
    const Link& joint = tree.link[b];
    const Vec3<T> moment = cross(Vec3<T>(p - state.X[b].p), f);
    for (int k = 0; k < joint.nv; ++k)
      tau[joint.iv + k] += dot(state.column[joint.iv + k].linear, f) + dot(state.column[joint.iv + k].angular, moment);
  }
}

/// Of the point p (world) of a body.
template <class T> Vec3<T> point_velocity(const Tree& tree, const LoopState<T>& state, int link, const Vec3<T>& p, const T* v) {
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

/// How far a point at this height over the plane is from ground that rises from it, z = h(s); n becomes the ground's normal. The nearest place
/// on the ground is where the way there is across its slope, (s - at) + (h - height) h' = 0, by Newton's method from below the point.
template <class T> T above_ground(const Contact& c, const T* row, const T& height, const Vec3<T>& center, Vec3<T>& n) {
  const Vec3<T> along = cast<T>(c.along);
  const T at = dot(along, center);
  T s = at, g[3];
  for (int k = 0; k < 8; ++k) {
    evaluate(*c.height, row, &s, g);
    const T steep = T(1.0) + g[1] * g[1];
    // in a valley as narrow as the way there two places are equally near: then without the curvature
    s -= ((s - at) + (g[0] - height) * g[1]) / most(steep + (g[0] - height) * g[2], T(0.5) * steep);
  }
  evaluate(*c.height, row, &s, g);
  const T cosine = T(1.0) / sqrt(T(1.0) + g[1] * g[1]);
  n = (n - along * g[1]) * cosine;
  return (height - g[0] + (s - at) * g[1]) * cosine;
}

/// Forces that are limited, as the dampers that they are at a state: where these are to be noted, or, if they are known, from where to be taken.
template <class T> struct Chords {
  T* slip;  // of each contact, the speed at which it slips, with its v_s
  T* damping;  // of each end stop
  bool known;
};

template <class T>
void add_contact(const Tree& tree, const LoopState<T>& state, const Contact& c, const T* row, const T* v, T* tau, const T& weight,
                 T& pressing, const Chords<T>& chords, int number) {
  const T* parameter = row + c.parameter;
  const Transform<T>& X = state.X[c.link];
  Vec3<T> n = cast<T>(c.normal);
  const Vec3<T> center = X.p + X.R * cast<T>(c.center);
  T height = dot(n, center) - T(c.offset);  // of the centre, above the plane or along the ground's normal
  if (c.height) height = above_ground(c, row, height, center, n);
  const T depth = T(c.radius) - height;
  const auto touches = depth > T(0.0);
  if (!any(touches)) return;
  pressing += select(touches, weight, T(0.0));
  const Vec3<T> p = center - n * T(c.radius);
  const Vec3<T> u = point_velocity(tree, state, c.link, p, v);
  const T rate = -dot(n, u);
  const T pressed = power(select(touches, depth, T(0.0)), parameter[1]) * parameter[0] * (T(1.0) + parameter[2] * rate);
  const T normal = select(touches, most(pressed, T(0.0)), T(0.0));  // a plane does not pull
  const Vec3<T> slip = u + n * rate;
  T speed = sqrt(dot(slip, slip) + parameter[4] * parameter[4]);
  if (chords.slip) chords.known ? speed = chords.slip[number] : chords.slip[number] = speed;
  add_point_force(tree, state, c.link, p, Vec3<T>(n * normal - slip * (parameter[3] * normal / speed)), tau);
}

/// Before the first time nothing, after the last one what it was.
template <class T> void add_table(const EffortTable& table, const T* parameter, const T& time, T* motor) {
  const double now = of_any_lane(time), *end = table.time + table.times;
  const int after = static_cast<int>(std::upper_bound(table.time, end, now) - table.time);
  if (after == 0) return;
  const T* row = parameter + table.parameter + (after - 1) * table.motors;
  const bool between = after < table.times;
  const double part = between ? (now - table.time[after - 1]) / (table.time[after] - table.time[after - 1]) : 0.0;
  for (int k = 0; k < table.motors; ++k)
    motor[table.motor[k]] += between ? row[k] + (row[table.motors + k] - row[k]) * T(part) : row[k];
}

/// What acts at places of bodies: contacts and thrusters.
template <class T>
void add_spatial_forces(const Tree& tree, Arena& arena, const ForceElements& elements, const T* parameter, const T& time,
                        const T* q, const T* v, T* tau, double weight, T& pressing, const Chords<T>& chords) {
  const Arena::Scope scope(arena);
  const LoopState<T> state = place(tree, arena, q, &time, static_cast<const T*>(nullptr));
  for (const Contact& c : elements.all<Contact>()) {
    add_contact(tree, state, c, parameter, v, tau, T(weight), pressing, chords,
                static_cast<int>(&c - elements.all<Contact>().first));
    weight = weight < 1e15 ? 2.0 * weight : 0.0;
  }
  for (const Thruster& c : elements.all<Thruster>()) {
    const T* p = parameter + c.parameter;
    const Transform<T>& X = state.X[c.link];
    T g[3];
    evaluate(*c.thrust, parameter, &time, g);
    const T force = least(most(g[0], p[0]), p[1]);
    add_point_force(tree, state, c.link, Vec3<T>(X.p + X.R * cast<T>(c.at)), Vec3<T>(X.R * cast<T>(c.axis) * force), tau);
  }
}

/// Adds what controllers give to `motor` and all other forces to tau, and writes the rates of internal states. `pressing`: a number that is
/// another one wherever other contacts and end stops press (of the first 50). `lacking`: the largest part of what a law wants that no motor
/// gives, relative. `springs`: a generalised force of the mechanism that acts besides, of which the tree does not know, or null. Behind q, v,
/// motor and tau may stand what belongs to joints that close loops.
template <class T>
void apply(const Tree& tree, Arena& arena, const ForceElements& elements, const T* parameter, const T& time, const T* q,
           const T* v, const T* z, T* motor, T* tau, T* z_dot, T& pressing, T& lacking, const T* springs = nullptr,
           const Chords<T>& chords = {}) {
  pressing = lacking = T(0.0);
  double weight = 1.0;
  for (const Controller& c : elements.all<Controller>()) {
    const T* p = parameter + c.parameter;
    T g[3];
    evaluate(*c.target, parameter, &time, g);
    const T off = g[0] - q[c.iq];
    const T effort = p[0] * off + z[c.iz] + p[2] * (g[1] - v[c.iv]);
    motor[c.iv] += least(most(effort, p[3]), p[4]);
    // towards a limit z goes no faster than it would reach it in 1 ms: so its rate has no jump, which implicit steps could not solve for
    const T unwinding = T(elements.unwinding);
    const T room = most(p[4] - effort, T(0.0)), room_below = least(p[3] - effort, T(0.0));
    z_dot[c.iz] = most(least(p[1] * off, room * unwinding), room_below * unwinding);
  }
  for (const PrescribedEffort& e : elements.all<PrescribedEffort>()) {
    T g[3];
    evaluate(*e.law, parameter, &time, g);
    motor[e.iv] += g[0];
  }
  for (const Stiction& s : elements.all<Stiction>()) {
    const T *p = parameter + s.parameter, rate = v[s.iv], ratio = rate / p[2];
    const T most_friction = p[0] + (p[1] - p[0]) * exponential(-(ratio * ratio));
    // how fast bristles follow; no faster than 1/ms, or steps would have to be
    const T settling = abs(rate) * p[3] / most_friction;
    z_dot[s.iz] = (rate - settling * z[s.iz]) / (T(1.0) + settling * T(1e-3));
    const T damping = select(settling * p[4] > p[3], p[3] / settling, p[4]);  // while they slip no more than friction in all
    tau[s.iv] -= p[3] * z[s.iz] + damping * z_dot[s.iz];
  }
  for (const ModelLaw& law : elements.all<ModelLaw>())
    lacking = most(lacking, ModelBased<T>(tree, arena, law, parameter, time, q, v, springs).act(motor));
  for (const EffortTable& table : elements.all<EffortTable>()) add_table(table, parameter, time, motor);
  for (const EndStop& s : elements.all<EndStop>()) {
    const T* p = parameter + s.parameter;
    const T& at = q[s.iq];
    const T spring = p[2] * (most(at - p[1], T(0.0)) + least(at - p[0], T(0.0))), room = abs(spring);
    T damper = least(most(p[3] * v[s.iv], -room), room);
    if (chords.damping) {
      T& damping = chords.damping[&s - elements.all<EndStop>().first];
      const auto moves = abs(v[s.iv]) > T(0.0);
      if (!chords.known)
        damping = select(moves, abs(damper) / select(moves, abs(v[s.iv]), T(1.0)), select(room > T(0.0), p[3], T(0.0)));
      damper = damping * v[s.iv];
    }
    tau[s.iv] -= spring + damper;
    pressing += select(room > T(0.0), T(weight), T(0.0));
    weight = weight < 1e15 ? 2.0 * weight : 0.0;
  }
  for (const ReactionWheel& wheel : elements.all<ReactionWheel>()) {
    T g[3];
    evaluate(*wheel.torque, parameter, &time, g);
    motor[wheel.iv] += g[0];
  }
  if (elements.any<Contact>() || elements.any<Thruster>())
    add_spatial_forces(tree, arena, elements, parameter, time, q, v, tau, weight, pressing, chords);
}

/// What drives deliver of what is asked of them, and the rates of their lags.
template <class T>
void deliver(const ForceElements& elements, const T* parameter, const T* v, const T* z, T* motor, T* z_dot) {
  for (const Drive& d : elements.all<Drive>()) {
    const T *p = parameter + d.parameter, *lag = z + d.iz;
    T& effort = motor[d.iv];
    if (d.order == 1) z_dot[d.iz] = p[0] * (effort - lag[0]);
    if (d.order == 2) z_dot[d.iz] = lag[1], z_dot[d.iz + 1] = p[0] * (p[0] * (effort - lag[0]) - T(2.0) * p[1] * lag[1]);
    if (d.order > 0) effort = lag[0];
    const T slower = v[d.iv] / p[3], forth = most(least(T(1.0) - slower, T(1.0)), T(0.0)),
            back = most(least(T(1.0) + slower, T(1.0)), T(0.0));
    effort = least(most(effort, -p[2] * back), p[2] * forth);
  }
}

/// Motors that bring tasks about. `tau`: what others have added to the forces that are not of motors; `all`: velocities of all joints.
template <class T>
void control_tasks(const Tree& tree, Arena& arena, const ForceElements& elements, const T* parameter, const T& time, const T* q,
                   const T* v, const T* z, T* motor, const T* tau, const CountedTurns<T>& turns, T* z_dot, int all, T& status) {
  const Arena::Scope scope(arena);
  T* others = arena.take<T>(all);
  for (const TaskElement& c : elements.all<TaskElement>()) {
    for (int k = 0; k < all; ++k) others[k] = motor == tau ? tau[k] : tau[k] + motor[k];
    const T outcome = task_control(tree, arena, *c.law, parameter + c.parameter, static_cast<const T*>(nullptr), time, q, v,
                                   z + c.iz, static_cast<const T*>(others), motor, z_dot + c.iz, turns);
    status = most(status, outcome);
  }
}

/// What reaction wheels give of what is asked of their motors: beyond the greatest momentum they are braked.
template <class T> void saturate(const ForceElements& elements, const T* parameter, const T* v, T* motor) {
  for (const ReactionWheel& c : elements.all<ReactionWheel>()) {
    const T *p = parameter + c.parameter, h = v[c.iv] * T(c.inertia);
    const T within = least(most(motor[c.iv], (-p[1] - h) * T(100.0)), (p[1] - h) * T(100.0));
    motor[c.iv] = least(most(within, -p[0]), p[0]);
  }
}

}  // namespace sarrus
