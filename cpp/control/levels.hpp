// Rows A xi = b of all levels, in scaled unknowns x = scale xi: contacts and hard tasks, then priorities, then least effort.
//
// Unknowns are scaled such that a unit of each of them causes accelerations of unit norm in the metric of inertia. Rows are scaled by their response
// to these units. Therefore the detection of singular positions depends on the motion of the mechanism, not on its lightest joints. Scales are
// bounded from below by those of the mechanism as one rigid body (tasks/task.hpp), so that a motor or a row without effect is detected.
#pragma once

#include "limited.hpp"
#include "responses.hpp"
#include "tasks.hpp"

namespace sarrus {

template <class T> class TaskLevels {
 public:
  T *A, *b, *size;  // A (rows x n), b (rows) and sizes (rows), all weighted: the input of the cascade
  T* terms;  // squared norm of the terms whose difference is b, divided by the square of the row's size
  int* level;  // (levels + 3) first row of each level
  int row = 0, tasks_from = 0;  // number of rows; first row of tasks
  T* error;  // errors of the tasks' rows: target minus actual value; for forces, the target
  const RigidMechanism<T> rigid_body;
  Cascade<T> cascade;

  TaskLevels(const TaskState<T>& state, const TaskControl& control, const TaskUnknowns<T>& unknowns, const TaskResponses<T>& r)
      : rigid_body(state),
        cascade(state.arena, unknowns.n, row_count(control)),
        s(state),
        c(control),
        u(unknowns),
        respond(r),
        n(unknowns.n),
        nv(unknowns.nv) {
    const int rows = row_count(c);
    int widest = 6;
    for (const Task& task : c.task) widest = std::max(widest, task.all_rows());
    A = take(rows * n), b = take(rows), size = take(rows), terms = take(rows), error = take(rows);
    level = s.arena.template take<int>(c.levels + 3);
    J = take(widest * nv), right = take(widest), reach = take(widest * n), squares = take(widest), mobility = take(widest);
    length = take(n);
    if (c.limited && std::is_same_v<T, double>)
      mark = s.arena.template take<CascadeMark>(c.levels + 2), x_after = take((c.levels + 2) * n);
    set_scales();
    for (int k = 0; k < n; ++k) length[k] = weighed_square(u.A + k * nv, respond.inertia, nv);
    rest_length = weighed_square(u.a, respond.inertia, nv);
  }

  /// Write the rows of all levels. The hard rows are solved too, because the sizes of the other rows depend on the directions that remain.
  void write(const T* contact_right, const T* z) {
    level[0] = 0;
    for (int k = c.motors(), i = 0; k < n; k += c.contact[i++].rows)
      write_accelerations(c.contact[i], c.contact[i].rows, 0, u.B + k * nv, contact_right + k - c.motors(), nullptr);
    tasks_from = row;
    std::size_t next = 0;
    for (int l = 0; l <= c.levels; ++l) {
      for (; next < c.task.size() && c.task[next].level == l; ++next)
        std::visit([&](const auto& kind) { write_task(kind, c.task[next].weight, z); }, c.task[next].kind);
      level[l + 1] = row;
      if (l == 0) add_hard_rows();
    }
    std::fill(A + row * n, A + (row + n) * n, T(0.0));
    for (int k = 0; k < n; ++k, ++row) {
      size[row] = A[row * n + k] = u.scale[k] * T(k < c.motors() ? std::sqrt(c.motor[k].weight) : c.force_arm);
      b[row] = T(0.0);
    }
    level[c.levels + 2] = row;
  }

  /// Solve without limits: first the priorities, then least effort in the remaining directions.
  void solve() {
    for (int l = 1; l <= c.levels; ++l) add(l, true);
    if (!cascade.full()) add(c.levels + 1, false);
  }

  /// State of the cascade after each level. Only for a single state with limits, otherwise null.
  CascadeMark* mark = nullptr;

  /// Return true if hard rows are violated: their squared relative residual exceeds the tolerance of a contradiction.
  auto contradicts() const {
    T missed = T(0.0), size_of_terms = T(0.0);
    const T squared_length = scalar_product(cascade.x, cascade.x, n);
    for (int r = 0; r < level[1]; ++r) {
      const T inverse = inverse_or_none(size[r]);
      missed += square((b[r] - scalar_product(A + r * n, cascade.x, n)) * inverse);
      size_of_terms += terms[r] + scalar_product(A + r * n, A + r * n, n) * square(inverse) * squared_length;
    }
    const T share = tolerance<T>(tolerances::contradiction, tolerances::contradiction_in_single);
    return select(missed > size_of_terms * square(share), T(1.0), contacts_contradict) > T(0.5);
  }
  T contacts_contradict = T(0.0);  // 1 if contacts contradict one another

 private:
  const TaskState<T>& s;
  const TaskControl& c;
  const TaskUnknowns<T>& u;
  const TaskResponses<T>& respond;
  const int n, nv;
  T *J, *right;  // rows of one task
  T* reach;  // (rows x n) response of the task's rows to units of energy along each unknown
  T* squares;  // squared norm of a row's response in the directions that contacts and hard rows leave free
  T* mobility;  // mobility of these rows
  T* x_after = nullptr;  // (levels x n) solutions after each level
  T *length, rest_length;  // squared norms, in the metric of inertia, of the accelerations per unit of each unknown, and of a_0

  T* take(int count) { return s.arena.template take<T>(count); }
  static int row_count(const TaskControl& c) {
    int rows = 2 * c.unknowns() - c.motors();
    for (const Task& task : c.task) rows += task.rows();
    return rows;
  }
  void add(int l, bool yields) {
    keep_mark(l, cascade.add(A + level[l] * n, b + level[l], size + level[l], level[l + 1] - level[l], yields));
  }
  void keep_mark(int l, bool damped) {
    if constexpr (std::is_same_v<T, double>) {
      if (!mark) return;
      mark[l] = {cascade.directions, damped, cascade.damping, std::copy(cascade.x, cascade.x + n, x_after + l * n) - n};
    }
  }

  /// Add contacts, then hard tasks, to the cascade.
  void add_hard_rows() {
    cascade.add(A, b, size, tasks_from, false);
    if (tasks_from > (width_of<T> > 1 ? 0 : cascade.directions)) yield_contacts();
    const int k = tasks_from;
    cascade.add(A + k * n, b + k, size + k, row - k, false);
    keep_mark(0, false);
  }

  /// Relax contacts whose rows depend on one another or on loops: their required accelerations are replaced by the nearest feasible ones. This is
  /// valid only if the differences may be centripetal accelerations, which are products of velocities. At rest there are none, so consistent contacts
  /// do not contradict one another.
  void yield_contacts() {
    T missed = T(0.0), moves = T(0.0), size_of_terms = T(0.0), fastest = T(0.0);
    double damping = 0.0;
    for (int i = 1; i < s.tree.links; ++i) {
      const T speed = dot(s.k.link[i].V.angular, s.k.link[i].V.angular);
      fastest = select(speed > fastest, speed, fastest);
    }
    for (const TaskContact& contact : c.contact) damping = std::max(damping, contact.damping);
    const T squared_length = scalar_product(cascade.x, cascade.x, n);
    for (int r = 0; r < tasks_from; ++r) {
      const T *along = A + r * n, at = scalar_product(along, cascade.x, n), weight = square(inverse_or_none(size[r]));
      missed += square(b[r] - at) * weight;
      moves += square(scalar_product(u.B + (c.motors() + r) * nv, s.v, nv)) * weight;
      size_of_terms += terms[r] + scalar_product(along, along, n) * weight * squared_length;
      b[r] = at;
    }
    // factor of an upper bound of accelerations due to products of velocities; it includes the factor two of the two bodies of a row
    constexpr double rates = 4.0;
    const T explained =
        moves * square(T(rates) * sqrt(fastest) + T(damping)) + size_of_terms * T(square(tolerances::contradiction));
    contacts_contradict = select(missed > explained, T(1.0), T(0.0));
  }

  /// Set the scales of the unknowns. The members of a group, such as the three components of a force at a point, share one scale, so that the result
  /// does not depend on the choice of axes.
  void set_scales() {
    for (int k = 0; k < c.motors(); k += c.motor[k].same)
      set_scale(k, c.motor[k].same, rigid_body.joint_mobility(s, c.motor[k].iv, c.motor[k].angular));
    int k = c.motors();
    for (const TaskContact& contact : c.contact) {
      for (int r = 0; r < contact.rows; r += 3)
        set_scale(k + r, std::min(contact.rows - r, 3), contact.rigid_mobility(s, rigid_body, r));
      k += contact.rows;
    }
  }
  void set_scale(int first, int count, const T& rigid) {
    T sum = T(0.0);
    for (int k = first; k < first + count; ++k) sum += scalar_product(u.B + k * nv, u.A + k * nv, nv);
    sum = select(sum > T(0.0), sum, T(0.0)) * T(1.0 / count) + rigid;
    const T scale = select(sum > T(0.0), T(1.0) / sqrt(select(sum > T(0.0), sum, T(1.0))), T(1.0));
    for (int k = first; k < first + count; ++k) u.scale[k] = scale;
  }

  /// Compute `reach`. Entries whose terms cancel are set to zero, such as those of the momentum about the centre of mass, which no motor changes.
  void set_reach(const T* rows, int count) {
    for (int r = 0; r < count; ++r) {
      mobility[r] = weighed_square(rows + r * nv, respond.mobility, nv);
      const T least = mobility[r] * tolerance<T>(1e-22, 1e-10);
      squares[r] = T(0.0);
      for (int k = 0; k < n; ++k) {
        const T sum = scalar_product(rows + r * nv, u.A + k * nv, nv);
        const T to = select(sum * sum > least * length[k], sum, T(0.0)) * u.scale[k];
        reach[r * n + k] = to, squares[r] += to * to;
      }
      for (int j = 0; j < cascade.directions; ++j) squares[r] -= square(scalar_product(cascade.q + j * n, reach + r * n, n));
      squares[r] = select(squares[r] > T(0.0), squares[r], T(0.0));
    }
  }

  /// Write `count` rows J a = r, followed by `companions` rows without targets. weight: weights of the rows; null: all one.
  template <class Kind>
  void write_accelerations(const Kind& kind, int count, int companions, const T* rows, const T* r_wanted, const T* weight) {
    const int all = count + companions;
    set_reach(rows, all);
    T whole_size = T(1.0);
    for (int r = 0; r < count; ++r) {
      const int group = kind.group(r);
      if (r == 0 || group != kind.group(r - 1)) {
        T sum = kind.rigid_mobility(s, rigid_body, r);
        for (int other = 0; other < all; ++other)
          if (kind.group(other) == group) sum += squares[other];
        whole_size = sqrt(select(sum > T(0.0), sum, T(1.0)));
      }
      const T w = weight ? sqrt(weight[r]) : T(1.0);
      for (int k = 0; k < n; ++k) A[row * n + k] = reach[r * n + k] * w;
      b[row] = (r_wanted[r] - scalar_product(rows + r * nv, u.a, nv)) * w;
      terms[row] = (square(r_wanted[r]) + mobility[r] * rest_length) / square(whole_size);
      size[row++] = whole_size * w;
    }
  }

  template <class Kind> void write_task(const Kind& kind, const RowNumbers& weight, const T* z) {
    T* errors = error + row - tasks_from;
    if constexpr (std::decay_t<decltype(kind)>::is_force) {
      for (int i = 0; i < kind.rows(); ++i) write_force(kind, i, sqrt(weight(s, i)), z, errors[i]);
    } else {
      kind.evaluate(s, {J, right, errors});
      write_accelerations(kind, kind.rows(), kind.companions(), J, right, s.parameter + weight.first);
    }
  }

  template <class Kind> void write_force(const Kind& kind, int i, const T& weight, const T* z, T& target) {
    T g[3], *along = A + row * n, sum = T(0.0);
    kind.target.evaluate(s, i, g);
    target = g[0];
    const T difference = g[0] + kind.integral_action(s, i, z) - kind.affine(u, i, along);
    if (respond.e) sum = kind.size(respond.e->matrix.row_weight, i);
    for (int k = 0; k < n; ++k) along[k] *= u.scale[k], sum += square(along[k]);
    const T whole_size = sqrt(select(sum > T(0.0), sum, T(1.0)));
    for (int k = 0; k < n; ++k) along[k] *= weight;
    b[row] = difference * weight, terms[row] = square(difference / whole_size), size[row++] = whole_size * weight;
  }
};

}  // namespace sarrus
