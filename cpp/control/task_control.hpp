// Efforts that bring tasks about in one state: of priorities and limits as limited.hpp says.
//
//   reads   q, v, time, gains and targets     writes  efforts of motors, rates of internal states
//   work    M a + h = B x + J^T lambda, J a = gamma, solved once for every unknown (tasks.hpp); then rows of tasks in x
//   cost    a solution of the saddle equation an unknown; rows x unknowns^2
//
// Unknowns are scaled so that each moves the mechanism by a unit of energy, and rows by what units of energy move them: what counts as singular
// is then a matter of motion, not of which joints are light. Neither scale falls below what the whole mechanism as one rigid body would answer,
// so that a motor or a row whose effect vanishes is seen to (task_rows.hpp). What tasks leave free takes the least efforts.
//
// What motors and forces answer is corrected where loops are nearly singular, and the acceleration that comes of it all is held against the
// loops as that of forward dynamics is.
#pragma once

#include <optional>

#include "../dynamics/ltdl.hpp"
#include "../loops/constrained_dynamics.hpp"
#include "../mechanism/status.hpp"
#include "limited.hpp"
#include "task_rows.hpp"

namespace sarrus {

template <class T> struct TaskUnknowns {
  int n, nv, rows;
  T *B, *A, *Lambda;  // n x nv: generalised forces, accelerations; n x rows of constraints
  T *a, *lambda;  // a_0, lambda_0
  T* scale;  // x = scale xi
};

/// Lane by lane.
inline double lane(double x, int) { return x; }
template <int W> double lane(const Packet<W>& x, int i) { return x.lanes[i]; }
inline void set_lane(double& x, int, double value) { x = value; }
template <int W> void set_lane(Packet<W>& x, int i, double value) { x.lanes[i] = value; }
template <class T> struct Lanes {
  static constexpr int count = 1;
};
template <int W> struct Lanes<Packet<W>> {
  static constexpr int count = W;
};

/// Accelerations and multipliers that forces cause: by the saddle equation, or of a tree by its mass matrix.
template <class T> struct TaskResponses {
  /// A solution of which one more correction would still change this share is known to fewer digits than anybody expects: singular.
  static constexpr double settled = 1e-7;

  const Tree& tree;
  Arena& arena;
  T* b;  // -h, then gamma
  const T* L = nullptr;  // factor of a tree's mass matrix
  const T* mobility;  // 1/M_ii
  T* inertia;  // M_ii
  const bool looks;  // whether it is looked at how well answers are known, also where loops carry little
  std::optional<LoopEquation<T>> e{};
  Factor<T> factor{};
  T unsettled = T(0.0);  // the greatest share of an answer that one more correction would change

  TaskResponses(const Tree& t, Arena& a, const LoopInput<T>& in, bool looks_at_it)
      : tree(t), arena(a), inertia(a.take<T>(t.nv)), looks(looks_at_it) {
    if (tree.loops.constraints > 0) {
      e.emplace(loop_equation(tree, arena, in));
      b = e->b, factor = factorise_tightly(*e, arena), mobility = e->matrix.mobility;
      for (int k = 0; k < tree.nv; ++k) inertia[k] = inverse_or_none(mobility[k]);
      return;
    }
    b = arena.take<T>(tree.nv);
    rnea(tree, arena, RneaInput<T>{in.q, in.v, zeros<T>(arena, tree.nv)}, b);
    for (int k = 0; k < tree.nv; ++k) b[k] = -b[k];
    T* M = arena.take<T>(tree.nv * tree.nv);
    crba(tree, arena, in.q, M);
    T* inverse = arena.take<T>(tree.nv);
    for (int k = 0; k < tree.nv; ++k) inertia[k] = M[k * tree.nv + k], inverse[k] = inverse_or_none(inertia[k]);
    mobility = inverse;
    factorise(tree, arena, M);
    L = M;
  }

  /// a and lambda (rows) of a generalised force (nv) and gamma (rows; null: zero).
  SARRUS_NOINLINE void operator()(const T* force, const T* gamma, T* a, T* lambda) {
    if (L) return each(force, 1, a, lambda);
    const Arena::Scope scope(arena);
    const int nv = tree.nv;
    T *x = arena.take<T>(nv + e->matrix.rows), *own = arena.take<T>(e->solved().plan.unknowns);
    for (int k = 0; k < nv + e->matrix.rows; ++k) x[k] = k < nv ? force[k] : T(0.0);
    for (int r = 0; gamma && r < tree.loops.rows; ++r) x[nv + r] = gamma[r];
    const T* right = e->lifted(arena, x);
    refine(e->solved(), arena, factor, right, own, 60);
    const T* found = e->lowered(arena, own);
    for (int k = 0; k < nv; ++k) a[k] = found[k];
    for (int r = 0; r < tree.loops.rows; ++r) lambda[r] = -found[nv + r];
    if (looks || strained(force, lambda)) settle(right, own);
  }

  /// Of `count` generalised forces: corrected where loops carry far more than what acts, which is where the regularisation of the saddle
  /// equation, that is as large as what they carry, is felt. What cannot move is at rest: its motion would be rounding.
  void answers(const T* forces, int count, T* a, T* lambda) {
    each(forces, count, a, lambda);
    if (L) return;
    constexpr double still = 1e-11;
    const int nv = tree.nv, rows = tree.loops.rows;
    for (int k = 0; k < count; ++k) {
      const T* force = forces + k * nv;
      if (strained(force, lambda + k * rows)) (*this)(force, nullptr, a + k * nv, lambda + k * rows);
      const T acts = weighed_square(force, mobility, nv);
      const auto rests = weighed_square(a + k * nv, inertia, nv) < acts * T(still * still);
      if (any(rests))
        for (int i = 0; i < nv; ++i) a[k * nv + i] = select(rests, T(0.0), a[k * nv + i]);
    }
  }

  /// How far J a is from gamma, relative to what acts: forces and those of the unknowns x along B (count x nv).
  T off(const T* a, const T* B, const T* x, int count) {
    if (L) return T(0.0);
    const Arena::Scope scope(arena);
    const int nv = tree.nv, rows = tree.loops.rows;
    T *r = arena.take<T>(rows), *tau = arena.take<T>(nv);
    for (int i = 0; i < rows; ++i) r[i] = b[nv + i];
    add_motion_along_rows(tree, e->matrix.J, a, T(-1.0), r);
    for (int i = 0; i < nv; ++i) tau[i] = T(0.0);
    for (int k = 0; k < count; ++k) subtract_scaled(tau, B + k * nv, -x[k], nv);
    const T error = weighed_square(r, e->matrix.row_weight, rows), terms = e->terms + weighed_square(tau, mobility, nv);
    return select(terms < T(1e300), sqrt(error * inverse_or_none(terms)), T(0.0));
  }

  /// Of `count` generalised forces, one after the other: with one state's factor several at a time.
  SARRUS_NOINLINE void each(const T* forces, int count, T* a, T* lambda) {
    int k = 0;
    if constexpr (std::is_same_v<T, double>) {
      using P = Packet<sizeof(WideDoubles) / sizeof(double)>;
      for (; k + 1 < count && (L || !(e->pieces || e->matrix.plan.fronts)); k += P::width)
        together<P>(forces + k * tree.nv, std::min(P::width, count - k), a + k * tree.nv, lambda + k * tree.loops.rows);
    }
    for (; k < count; ++k) together<T>(forces + k * tree.nv, 1, a + k * tree.nv, lambda + k * tree.loops.rows);
  }

 private:
  /// Whether loops carry far more than what acts, as they do near singular positions.
  bool strained(const T* force, const T* lambda) const {
    constexpr double strong = 30.0;
    const T carried = weighed_square(lambda, e->scale, tree.loops.rows);
    return any(carried > weighed_square(force, mobility, tree.nv) * T(strong * strong));
  }

  /// How much one more correction would change of a solution.
  void settle(const T* right, const T* own) {
    const Arena::Scope scope(arena);
    const Saddle<T>& matrix = e->solved();
    const int n = matrix.plan.unknowns;
    T *r = arena.take<T>(n), *work = arena.take<T>(n), moved = T(0.0), size = T(0.0);
    residual(matrix, right, own, r);
    sarrus::solve(matrix.plan, factor, arena, r, work);
    for (int k = 0; k < matrix.tree.nv; ++k) {
      const T inverse = inverse_or_none(matrix.mobility[k]);
      moved += square(r[k]) * inverse, size += square(own[k]) * inverse + square(right[k]) * matrix.mobility[k] * T(1e-6);
    }
    const T share = sqrt(moved * inverse_or_none(size));
    unsettled = select(share > unsettled, share, unsettled);
  }

  /// Of right-hand side l: a lane, or all there is.
  template <class P> static T at(const P& x, int l) {
    if constexpr (std::is_same_v<P, T>)
      return x;
    else
      return lane(x, l);
  }
  template <class P> static void put(P& x, int l, const T& value) {
    if constexpr (std::is_same_v<P, T>)
      x = value;
    else
      set_lane(x, l, value);
  }

  template <class P> void together(const T* forces, int count, T* a, T* lambda) {
    const Arena::Scope scope(arena);
    const int nv = tree.nv, rows = tree.loops.rows, all = L ? nv : nv + e->matrix.rows;
    P *x = arena.take<P>(all), *work = arena.take<P>(all);
    for (int i = 0; i < all; ++i) x[i] = P(0.0);
    for (int l = 0; l < count; ++l)
      for (int i = 0; i < nv; ++i) put<P>(x[i], l, forces[l * nv + i]);
    if (L) {
      solve_inward(tree, L, x, 1), solve_outward(tree, L, x, 1);
    } else if constexpr (std::is_same_v<P, T>) {
      solve_once(*e, arena, factor, x);
    } else {
      sarrus::solve(e->matrix.plan, factor, arena, x, work);
    }
    for (int l = 0; l < count; ++l) {
      for (int i = 0; i < nv; ++i) a[l * nv + i] = at<P>(x[i], l);
      for (int r = 0; r < rows; ++r) lambda[l * rows + r] = -at<P>(x[nv + r], l);
    }
  }
};

/// What one limit asks of the unknowns; terms: the size of what its ends are differences of.
template <class T> void limit_rows(const TaskState<T>& s, const TaskControl& c, const TaskUnknowns<T>& u, T* C, T* lower,
                                   T* upper, T* terms) {
  const int n = u.n, motors = static_cast<int>(c.motor.size());
  int row = 0;
  const auto bounds = [&](const T& low, const T& high, const T& size = T(0.0)) {
    lower[row] = low, upper[row] = high, terms[row++] = size;
  };
  for (int k = 0; k < motors; ++k) {
    for (int i = 0; i < n; ++i) C[row * n + i] = T(i == k ? 1.0 : 0.0) * u.scale[i];
    const int iv = c.motor[k];
    const T rate = abs(iv < u.nv ? s.v[iv] : s.loop.v[iv - u.nv]);
    // rounded towards zero, so that no product with the rate exceeds it; at rest there is no power
    const double power = c.limits.power[k];
    T most_power = T(TaskLimits::far);
    if (power < TaskLimits::far) {
      const auto counts = rate > T(power * 1e-250);
      most_power = select(counts, T(power) / select(counts, rate, T(1.0)) * T(1.0 - 0x1p-52), most_power);
    }
    const T low = T(c.limits.effort_lower[k]), high = T(c.limits.effort_upper[k]);
    bounds(select(low < -most_power, -most_power, low), select(high > most_power, most_power, high));
  }
  for (const TaskLimits::Joint& j : c.limits.joint) {
    const bool closes = j.iv >= u.nv;
    const T read = closes ? s.loop.q[j.iq - s.tree.nq] : s.q[j.iq], rate = closes ? s.loop.v[j.iv - u.nv] : s.v[j.iv];
    const T at = j.turns && !s.counts ? turns_near(read, T(j.near)) : read;
    const T* J = closes ? s.loop.J + (j.iv - u.nv) * u.nv : nullptr;
    const auto along = [&](const T* a) { return J ? scalar_product(J, a, u.nv) : a[j.iv]; };
    for (int i = 0; i < n; ++i) C[row * n + i] = along(u.A + i * u.nv) * u.scale[i];
    const T drift = along(u.a) + (closes ? s.loop.a[j.iv - u.nv] : T(0.0));
    const T size = abs(drift) + (closes ? abs(s.loop.a[j.iv - u.nv]) : T(0.0)) + abs(rate) / T(c.limits.horizon);
    // the greatest acceleration upwards: to the greatest speed, or to the u from which the rest of the way suffices to brake after
    // another horizon, u t + u^2 / 2b = room, which then falls by b u / (u + b t) a second. Its slope is nowhere more than 1 / t.
    const auto end = [&](const T& room, const T& speed) {
      const auto inside = room > T(0.0);
      const T slack = T(j.braking * c.limits.horizon), back = room / T(c.limits.horizon);
      const T way = select(inside, room, T(0.0)) * T(2.0 * j.braking), stop = way / (sqrt(slack * slack + way) + slack);
      const T reach = select(inside, stop, select(back < T(-j.speed), T(-j.speed), back));
      const auto brakes = reach < T(j.speed);
      const T most_speed = select(brakes, reach, T(j.speed));
      const T forward = select(speed > T(0.0), select(speed > stop, stop, speed), T(0.0));
      return (most_speed - speed) / T(c.limits.horizon) - select(brakes, T(j.braking) * forward / (stop + slack), T(0.0));
    };
    const bool up =
        j.upper < TaskLimits::far || j.speed<TaskLimits::far, down = j.lower> - TaskLimits::far || j.speed < TaskLimits::far;
    bounds(down ? -end(at - T(j.lower), -rate) - drift : T(-TaskLimits::far),
           up ? end(T(j.upper) - at, rate) - drift : T(TaskLimits::far), size);
  }
  int first = motors;
  for (const TaskContact& contact : c.contact) {
    const auto cone = [&](int component, double share, double sign) {  // 0 <= share f_n - sign f_component
      for (int i = 0; i < n; ++i) C[row * n + i] = T(0.0);
      const int normal = first + (contact.rows == 1 ? 0 : 2);
      C[row * n + normal] = T(share) * u.scale[normal];
      if (component >= 0) C[row * n + first + component] = T(-sign) * u.scale[first + component];
      bounds(T(0.0), T(TaskLimits::far));
    };
    cone(-1, 1.0, 0.0);
    const double share[6] = {contact.friction / std::sqrt(2.0),
                             contact.friction / std::sqrt(2.0),
                             0.0,
                             contact.half_y,
                             contact.half_x,
                             contact.torsion};
    for (int k = 0; k < contact.rows && contact.rows > 1; ++k)
      if (k != 2) cone(k, share[k], 1.0), cone(k, share[k], -1.0);
    first += contact.rows;
  }
}

inline int limit_count(const TaskControl& c) {
  int n = static_cast<int>(c.motor.size() + c.limits.joint.size());
  for (const TaskContact& k : c.contact) n += k.rows == 1 ? 1 : 1 + 2 * (k.rows - 1);
  return n;
}

/// How far a unit of energy would move rows of an angular (0) or linear (3) half of the whole as one rigid body, squared.
template <class T> T rigid_size(const TaskState<T>& s, const Task& task, const RigidWhole<T>& whole, int half) {
  switch (task.kind) {
    case TaskKind::frame: {
      const Transform<T>& X = s.k.link[task.link[0]].X;
      return half == 0 ? whole.turning(X.p + X.R * cast<T>(task.X[0].p)) : whole.moving();
    }
    case TaskKind::center_of_mass: return whole.moving();
    case TaskKind::momentum: return half == 0 ? T(0.5) * whole.trace : whole.m;
    default: return T(0.0);
  }
}

template <class T>
SARRUS_NOINLINE T task_control(const Tree& tree, Arena& arena, const TaskControl& c, const T* parameter, const T* given,
                               const T& time, const T* q, const T* v, const T* z, const T* others, T* motor, T* z_dot,
                               const CountedTurns<T>& turns, const TaskReport<T>& report) {
  const Arena::Scope scope(arena);
  const int nv = tree.nv, motors = static_cast<int>(c.motor.size()), n = c.unknowns(), held = tree.loops.rows;
  const auto take = [&](int count) { return arena.template take<T>(count); };
  TaskState<T> s = {tree,  arena,
                    q,     v,
                    &time, parameter,
                    given, Kinematics<T>::over(tree, take(Kinematics<T>::size(tree))),
                    {},    turns.q != nullptr};
  kinematics(tree, arena, q, v, static_cast<const T*>(nullptr), s.k);
  if (c.drives_loop_joints) {
    s.loop.q = take(tree.loop_nq), s.loop.v = take(tree.loop_nv), s.loop.a = take(tree.loop_nv),
    s.loop.J = take(tree.loop_nv * nv);
    const auto work = rnea(tree, arena, RneaInput<T>{q, v, zeros<T>(arena, nv)}, take(nv));
    LoopState<T> state = {q, v, &time, nullptr, nullptr, nullptr, work.link};
    place(tree, arena, work.poses(), work.columns, state);
    read_loop_joints(tree, arena, state, turns.q, s.loop);
  }

  // accelerations and multipliers as functions of the unknowns
  LoopInput<T> in{q, v, turns.springs};
  in.time = &time;
  const bool asked_for = report.x || report.tau;  // in simulations nobody asks
  OffLoops<T> off;
  if (asked_for) in.off = &off;
  TaskResponses<T> respond(tree, arena, in, asked_for);
  TaskUnknowns<T> u = {n, nv, held, take(n * nv), take(n * nv), take(n * held), take(nv), take(held), take(n)};
  respond(respond.b, respond.b + nv, u.a, u.lambda);
  for (int k = 0; k < n * nv; ++k) u.B[k] = T(0.0);
  for (int k = 0; k < motors; ++k) {
    const int iv = c.motor[k];
    if (iv < nv)
      u.B[k * nv + iv] = T(1.0);
    else
      std::copy(s.loop.J + (iv - nv) * nv, s.loop.J + (iv - nv + 1) * nv, u.B + k * nv);
  }
  T* still = take(n - motors + 1);  // what J a of contacts must be
  for (int k = motors, i = 0; k < n; k += c.contact[i++].rows) contact_rows(s, c.contact[i], u.B + k * nv, still + k - motors);
  respond.answers(u.B, n, u.A, u.Lambda);

  // Units of energy. What belongs together, such as the three of a point, has one scale, so that axes do not matter
  const RigidWhole<T> whole(s);
  const auto set_scale = [&](int first, int count, const T& rigid) {
    T sum = T(0.0);
    for (int k = first; k < first + count; ++k) sum += scalar_product(u.B + k * nv, u.A + k * nv, nv);
    sum = select(sum > T(0.0), sum, T(0.0)) * T(1.0 / count) + rigid;
    const T scale = select(sum > T(0.0), T(1.0) / sqrt(select(sum > T(0.0), sum, T(1.0))), T(1.0));
    for (int k = first; k < first + count; ++k) u.scale[k] = scale;
  };
  for (int k = 0; k < motors; k += c.together[k]) set_scale(k, c.together[k], whole.along(s, c.motor[k], c.angular[k]));
  int force = motors;
  for (const TaskContact& contact : c.contact) {
    set_scale(force, std::min(contact.rows, 3), whole.moving());
    if (contact.rows == 6) set_scale(force + 3, 3, whole.turning(contact_place(s, contact)));
    force += contact.rows;
  }

  // rows of all levels: contacts and what must hold, priorities, least effort
  int rows = n - motors + n, widest = 6;
  for (const Task& task : c.task)
    rows += task.rows(), widest = std::max(widest, task.rows() + static_cast<int>(task.beside.size()));
  T *A = take(rows * n), *b = take(rows), *size = take(rows), *terms = take(rows), *J = take(widest * nv), *right = take(widest),
    *error = take(rows), *reach = take(widest * n), *squares = take(widest);
  int* level = arena.template take<int>(c.levels + 3);
  int row = 0, told = 0, state = 0;
  T* length = take(n);  // of accelerations, squared, by inertias; of a_0:
  for (int k = 0; k < n; ++k) length[k] = weighed_square(u.A + k * nv, respond.inertia, nv);
  const T idle = weighed_square(u.a, respond.inertia, nv);
  Cascade<T> cascade(arena, n, rows);
  // What units of energy make of rows, and how much of that contacts and what must hold leave free. What is left of terms that cancel is none:
  // momentum about the centre of mass, say, that no motor can change
  T* own = take(widest);
  const auto reached = [&](const T* along, int count) {
    for (int r = 0; r < count; ++r) {
      own[r] = weighed_square(along + r * nv, respond.mobility, nv);
      const T least = own[r] * T(1e-22);
      squares[r] = T(0.0);
      for (int k = 0; k < n; ++k) {
        const T sum = scalar_product(along + r * nv, u.A + k * nv, nv);
        const T to = select(sum * sum > least * length[k], sum, T(0.0)) * u.scale[k];
        reach[r * n + k] = to, squares[r] += to * to;
      }
      for (int j = 0; j < cascade.directions; ++j) squares[r] -= square(scalar_product(cascade.q + j * n, reach + r * n, n));
      squares[r] = select(squares[r] > T(0.0), squares[r], T(0.0));
    }
  };
  // J a = wanted, of what was reached, where it is in that; of so much length, squared
  const auto write = [&](int r, const T* along, const T& wanted, const T& weight, const T& of) {
    const T whole_size = sqrt(select(of > T(0.0), of, T(1.0)));
    for (int k = 0; k < n; ++k) A[row * n + k] = reach[r * n + k] * weight;
    b[row] = (wanted - scalar_product(along, u.a, nv)) * weight;
    terms[row] = (square(wanted) + own[r] * idle) / square(whole_size);
    size[row++] = whole_size * weight;
  };
  // rows of forces: of the unknowns themselves
  const auto write_force = [&](const T& wanted, const T& weight, const T& rigid) {
    T of = rigid;
    for (int k = 0; k < n; ++k) of += square(A[row * n + k]);
    of = sqrt(select(of > T(0.0), of, T(1.0)));
    for (int k = 0; k < n; ++k) A[row * n + k] *= weight;
    b[row] = wanted * weight, terms[row] = square(wanted / of), size[row++] = of * weight;
  };
  level[0] = 0;
  for (int k = motors, i = 0; k < n; k += c.contact[i++].rows) {
    const int count = c.contact[i].rows;
    const T* along = u.B + k * nv;
    reached(along, count);
    for (int r = 0; r < count; ++r) {
      T of = r < 3 ? whole.moving() : whole.turning(contact_place(s, c.contact[i]));
      for (int other = r < 3 ? 0 : 3; other < (r < 3 ? std::min(count, 3) : 6); ++other) of += squares[other];
      write(r, along + r * nv, still[k - motors + r], T(1.0), of);
    }
  }
  const int tasks_from = row;
  std::size_t next = 0;
  for (int l = 0; l <= c.levels; ++l) {
    for (; next < c.task.size() && c.task[next].level == l; ++next) {
      const Task& task = c.task[next];
      const T *gain = parameter + task.parameter, *number = gain + 3 * task.rows();
      int first_force = motors;
      for (int i = 0; i < task.contact; ++i) first_force += c.contact[i].rows;
      if (task.kind != TaskKind::multiplier && task.kind != TaskKind::force) {
        const int count = task.rows(), all = count + static_cast<int>(task.beside.size());
        task_rows(s, task, {J, right, error + told});
        reached(J, all);
        T half[2] = {rigid_size(s, task, whole, 0), rigid_size(s, task, whole, 3)};
        if (task.kind != TaskKind::joints)
          for (int r = 0; r < all; ++r) half[(r < count ? task.component[r] : task.beside[r - count]) / 3] += squares[r];
        for (int r = 0; r < count; ++r)
          write(r, J + r * nv, right[r], sqrt(gain[3 * r + 2]),
                task.kind == TaskKind::joints ? squares[r] + whole.along(s, task.iv[r], task.angular[r])
                                              : half[task.component[r] / 3]);
        told += count;
        continue;
      }
      for (int i = 0; i < task.rows(); ++i) {
        const T weight = sqrt(gain[3 * i + 2]);
        T g[3] = {T(0.0), T(0.0), T(0.0)};
        if (task.target[i]) evaluate(*task.target[i], parameter, &time, g);
        g[0] += number[i];
        const int r = task.component[i];
        if (task.kind == TaskKind::multiplier) {
          for (int k = 0; k < n; ++k) A[row * n + k] = u.Lambda[k * held + r] * u.scale[k];
          const T push = task.iz >= 0 ? gain[3 * i] * z[task.iz + i] : T(0.0);
          write_force(g[0] + push - u.lambda[r], weight, respond.e->matrix.row_weight[r]);
        } else {
          for (int k = 0; k < n; ++k) A[row * n + k] = T(k == first_force + r ? 1.0 : 0.0) * u.scale[k];
          write_force(g[0], weight, T(0.0));
        }
        error[told + i] = g[0];  // less what it is: below
      }
      told += task.rows();
    }
    level[l + 1] = row;
    if (l == 0) cascade.add(A, b, size, row, false);
  }
  std::fill(A + row * n, A + (row + n) * n, T(0.0));
  for (int k = 0; k < n; ++k, ++row) {
    size[row] = A[row * n + k] = u.scale[k] * T(k < motors ? std::sqrt(c.effort_weight[k]) : c.force_arm);
    b[row] = T(0.0);
  }
  level[c.levels + 2] = row;

  for (int l = 1; l <= c.levels; ++l) cascade.add(A + level[l] * n, b + level[l], size + level[l], level[l + 1] - level[l], true);
  if (Lanes<T>::count > 1 || cascade.directions < n)
    cascade.add(A + level[c.levels + 1] * n, b + level[c.levels + 1], size + level[c.levels + 1], n, false);

  // rows that must hold, but do not
  T status = select(off.fault > T(0.5), T(off_loops), T(0.0)), missed = T(0.0), asked = T(0.0);
  const T far = scalar_product(cascade.x, cascade.x, n);
  for (int r = 0; r < level[1]; ++r) {
    const T inverse = inverse_or_none(size[r]);
    missed += square((b[r] - scalar_product(A + r * n, cascade.x, n)) * inverse);
    asked += terms[r] + scalar_product(A + r * n, A + r * n, n) * square(inverse) * far;
  }
  status = select(missed > asked * T(square(tolerances::contradiction)), T(contradictory), status);

  if (report.conflict) *report.conflict = 0;
  const T *effort_lower = nullptr, *effort_upper = nullptr;
  if (c.limited) {
    const int limits = limit_count(c);
    T *C = take(limits * n), *lower = take(limits), *upper = take(limits);
    T* limit_terms = take(limits);
    limit_rows(s, c, u, C, lower, upper, limit_terms);
    double *A1 = arena.template take<double>(rows * n), *b1 = arena.template take<double>(rows),
           *size1 = arena.template take<double>(rows), *terms1 = arena.template take<double>(limits),
           *C1 = arena.template take<double>(limits * n), *low = arena.template take<double>(limits),
           *high = arena.template take<double>(limits), *x1 = arena.template take<double>(n);
    bool* soft = arena.template take<bool>(limits);
    for (int i = 0; i < limits; ++i) soft[i] = i >= motors && i < motors + static_cast<int>(c.limits.joint.size());
    signed char* active = report.active ? report.active : arena.template take<signed char>(limits);
    std::fill(active, active + limits, static_cast<signed char>(0));
    for (int l = 0; l < Lanes<T>::count; ++l) {
      for (int k = 0; k < limits * n; ++k) C1[k] = lane(C[k], l);
      for (int k = 0; k < limits; ++k)
        low[k] = lane(lower[k], l), high[k] = lane(upper[k], l), terms1[k] = lane(limit_terms[k], l);
      for (int k = 0; k < n; ++k) x1[k] = lane(cascade.x[k], l);
      LimitedRows p = {n, c.levels + 2, level, A1, b1, size1, limits, C1, low, high, terms1, soft};
      if (limited::within(p, {low, high}, x1)) continue;
      for (int k = 0; k < rows * n; ++k) A1[k] = lane(A[k], l);
      for (int k = 0; k < rows; ++k) b1[k] = lane(b[k], l), size1[k] = lane(size[k], l);
      LimitedReport what = {active};
      double damping = 0.0;
      const int flag = solve_limited(c.solve, arena, p, x1, damping, what);
      set_lane(cascade.damping, l, damping);
      if (flag < 0) set_lane(status, l, no_convergence);
      if (flag == 0 && report.conflict) *report.conflict = what.misses_hard ? 2 : 1;
      for (int k = 0; k < n; ++k) set_lane(cascade.x[k], l, x1[k]);
    }
    effort_lower = lower, effort_upper = upper;
  }

  T *x = report.x ? report.x : take(n), *lambda = report.multipliers ? report.multipliers : take(held);
  for (int k = 0; k < n; ++k) x[k] = cascade.x[k] * u.scale[k];
  for (int k = 0; k < motors; ++k) {
    if (effort_upper) {  // rounding is no excuse
      x[k] = select(x[k] > effort_upper[k], effort_upper[k], x[k]);
      x[k] = select(x[k] < effort_lower[k], effort_lower[k], x[k]);
    }
    motor[c.motor[k]] += x[k];
  }
  T* a = report.a ? report.a : take(nv);
  std::copy(u.a, u.a + nv, a);
  for (int k = 0; k < n; ++k) subtract_scaled(a, u.A + k * nv, -x[k], nv);
  // held against the loops as forward dynamics is, and by how well it is known; in simulations it ends the run
  const auto sound = status < T(0.5);
  status = select(both(sound, respond.off(a, u.B, x, n) > T(tolerances::contradiction)), T(asked_for ? no_answer : contradictory),
                  status);
  status = select(both(sound, respond.unsettled > T(respond.settled)), T(asked_for ? no_answer : contradictory), status);
  if (held > 0 && (c.states > 0 || report.multipliers)) {
    std::copy(u.lambda, u.lambda + held, lambda);
    for (int k = 0; k < n; ++k) subtract_scaled(lambda, u.Lambda + k * held, -x[k], held);
    if (others && c.states > 0) {
      T *a_other = take(nv), *more = take(held), *push = take(nv);
      std::copy(others, others + nv, push);
      for (int r = 0; c.drives_loop_joints && r < tree.loop_nv; ++r)
        subtract_scaled(push, s.loop.J + r * nv, -others[nv + r], nv);
      respond(push, nullptr, a_other, more);
      for (int r = 0; r < held; ++r) lambda[r] += more[r];
    }
  }
  for (const Task& task : c.task) {
    if (task.kind == TaskKind::multiplier || task.kind == TaskKind::force) {
      int first_force = motors;
      for (int i = 0; i < task.contact; ++i) first_force += c.contact[i].rows;
      for (int i = 0; i < task.rows(); ++i) {
        T& off = error[state + i];
        off -= task.kind == TaskKind::force         ? x[first_force + task.component[i]]
               : c.states > 0 || report.multipliers ? lambda[task.component[i]]
                                                    : T(0.0);
        if (task.iz >= 0) z_dot[task.iz + i] = off;
      }
    }
    state += task.rows();
  }
  if (report.error) std::copy(error, error + told, report.error);
  if (report.missed)
    for (int r = tasks_from; r < level[c.levels + 1]; ++r)
      report.missed[r - tasks_from] = scalar_product(A + r * n, cascade.x, n) - b[r];
  if (report.damping) *report.damping = cascade.damping;
  if (report.tau) {
    for (int k = 0; k < nv; ++k) report.tau[k] = T(0.0);
    for (int k = 0; k < motors; ++k) subtract_scaled(report.tau, u.B + k * nv, -x[k], nv);
  }
  return status;
}

}  // namespace sarrus
