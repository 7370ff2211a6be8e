// Limits of a task controller, as rows lower <= C xi <= upper of the scaled unknowns: for efforts of motors, motions of joints, and the sides of the
// contacts' friction cones.
#pragma once

#include "tasks.hpp"

namespace sarrus {

/// Rows of limits. terms: for each row, the norm of the terms whose difference is the bound. pair: see limited.hpp.
template <class T> struct LimitRows {
  int n;
  T *C, *lower, *upper, *terms;
  int* pair;
  int row = 0;

  T* next(const T& low, const T& high, int first = -1, int second = -1, const T& size = T(0.0)) {
    lower[row] = low, upper[row] = high, terms[row] = size, pair[2 * row] = first, pair[2 * row + 1] = second;
    return C + row++ * n;
  }
};

/// Add the limits of an effort: its lower and upper bound, and |effort velocity| <= power.
template <class T>
void effort_limit(const TaskState<T>& s, const TaskUnknowns<T>& u, const TaskMotor& motor, int k, LimitRows<T>& out) {
  const T rate = abs(motor.iv < u.nv ? s.v[motor.iv] : s.loop.v[motor.iv - u.nv]);
  // round the bound towards zero, so that its product with the velocity never exceeds the power; at rest, the power does not limit the effort
  T most = T(far_limit);
  if (motor.power < far_limit) {
    const auto counts = rate > T(motor.power * 1e-250);
    most = select(counts, T(motor.power) / select(counts, rate, T(1.0)) * T(1.0 - 0x1p-52), most);
  }
  const T low = T(motor.lower), high = T(motor.upper);
  T* row = out.next(select(low < -most, -most, low), select(high > most, most, high), k, k);
  for (int i = 0; i < u.n; ++i) row[i] = T(i == k ? 1.0 : 0.0) * u.scale[i];
}

/// Add a limit of the acceleration that keeps a velocity and a coordinate within their limits. After one horizon t, the speed must not exceed its
/// limit. It must also not exceed the speed u from which a deceleration b, begun one horizon later, stops the motion within the remaining distance: u
/// t + u^2 / 2b = room. This u decreases by b u / (u + b t) per second, with a slope of at most 1 / t.
template <class T>
void motion_limit(const TaskState<T>& s, const TaskUnknowns<T>& u, const MotionLimit& limit, double horizon, LimitRows<T>& out) {
  const auto joint = limit.coordinate.motion(s);
  const T q = limit.coordinate.turns && !s.counts ? turns_near(joint.q, T(limit.middle)) : joint.q;
  const auto along = [&](const T* a) { return joint.J ? scalar_product(joint.J, a, u.nv) : a[limit.coordinate.iv]; };
  const T drift = along(u.a) + joint.a;
  const T size = abs(drift) + abs(joint.a) + abs(joint.v) / T(horizon);
  const auto end = [&](const T& room, const T& speed) {
    const auto inside = room > T(0.0);
    const T slack = T(limit.braking * horizon), back = room / T(horizon), greatest = T(limit.velocity);
    const T braking_length = select(inside, room, T(0.0)) * T(2.0 * limit.braking),
            stop = braking_length / (sqrt(slack * slack + braking_length) + slack);
    const T reach = select(inside, stop, select(back < -greatest, -greatest, back));
    const auto brakes = reach < greatest;
    const T forward = select(speed > T(0.0), select(speed > stop, stop, speed), T(0.0));
    return (select(brakes, reach, greatest) - speed) / T(horizon) -
           select(brakes, T(limit.braking) * forward / (stop + slack), T(0.0));
  };
  const bool fast = limit.velocity < far_limit, up = fast || limit.upper < far_limit, down = fast || limit.lower > -far_limit;
  T* row = out.next(down ? -end(q - T(limit.lower), -joint.v) - drift : T(-far_limit),
                    up ? end(T(limit.upper) - q, joint.v) - drift : T(far_limit), -1, -1, size);
  for (int i = 0; i < u.n; ++i) row[i] = along(u.A + i * u.nv) * u.scale[i];
}

/// Add the sides of a contact's friction cone. `first`: index of the contact's first unknown.
template <class T> void cone(const TaskUnknowns<T>& u, const TaskContact& contact, int first, LimitRows<T>& out) {
  contact.each_side([&](int component, double ratio, double sign) {
    const int normal = first + contact.normal();
    T* row = out.next(T(0.0), T(far_limit), normal, component < 0 ? normal : first + component);
    for (int i = 0; i < u.n; ++i) row[i] = T(0.0);
    row[normal] = T(ratio) * u.scale[normal];
    if (component >= 0) row[first + component] = T(-sign) * u.scale[first + component];
  });
}

/// Return all limits, in the order in which they are reported.
template <class T> LimitRows<T> limit_rows(const TaskState<T>& s, const TaskControl& c, const TaskUnknowns<T>& u) {
  const int count = c.limits();
  const auto take = [&](int size) { return s.arena.template take<T>(size); };
  LimitRows<T> out = {u.n, take(count * u.n), take(count), take(count), take(count), s.arena.template take<int>(2 * count)};
  int k = 0;
  for (const TaskMotor& motor : c.motor) effort_limit(s, u, motor, k++, out);
  for (const MotionLimit& limit : c.motion) motion_limit(s, u, limit, c.horizon, out);
  for (const TaskContact& contact : c.contact) cone(u, contact, k, out), k += contact.rows;
  return out;
}

}  // namespace sarrus
