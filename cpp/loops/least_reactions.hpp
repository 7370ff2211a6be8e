// Indeterminate reactions: among all reactions that balance every body, those of least norm over all joints and constraints.
//
// A joint's reaction does no work on its free motion phi. It is the component x of the joint's wrench w = [moment / l; force], about the midpoint of
// its two frames, that is perpendicular to [l angular; linear] of phi there. The other component of w is the joint's effort. For rods and rolling
// contacts x is the wrench at the child's frame. For relations between coordinates, such as gears, x consists of efforts [moment / l; force] along
// joints. A maps reactions to forces on bodies:
//
//   A x = f = A x0,   |x| least:    x = A^+ f = A^T y,    (A A^T) y = f
//
// y are the displacements of the bodies if each constrained direction of a joint is a bushing of unit stiffness. A A^T is singular along free
// motions, where f is zero. It is factorised with a regularised diagonal, whose effect corrections remove (as in saddle.hpp). They may not converge
// near a singular position. In this case A^T P = Q R is factorised instead: x is the component of x0 in the span of the first columns of Q; the
// remaining columns of Q span the self-stresses S. With compliances C of joints, the result is x + S z, with the shortest z that minimises |root(C)
// (x + S z)|: least energy first, then least norm. Menabrea's theorem; Wojtyra and Fraczek, Multibody System Dynamics 29, 2013, for the minima.
//
//   reads   multipliers (rows); their loads, as joint_loads() returns them; root(C) (6 x 6 for each load, in its axes), or null
//   writes  multipliers with the same J^T lambda, and their loads
//   cost    see bushings.hpp; by Q R, dense: O(joints bodies^2)
#pragma once

#include "bushings.hpp"
#include "constraints.hpp"
#include "pivoted_qr.hpp"

namespace sarrus {

template <class T> SARRUS_INLINE Vec3<T> moment_of(const Six<T>& w) { return w.template head<3>(); }
template <class T> SARRUS_INLINE Vec3<T> force_of(const Six<T>& w) { return w.template tail<3>(); }

/// Orthonormal basis u of the added columns V, built from the independent ones: V = u T. from[i]: index of the column that produced u[i].
template <class T> struct Orthonormal {
  int n = 0, from[6];
  bool differs = false;  // true if a column is dependent in some lanes, but not in all
  Six<T> u[6];
  T R[6][6];

  /// Add a column, unless it is dependent: the norm of its independent part is at most `negligible` times its norm.
  void add(Six<T> v, int column, double negligible) {
    const T length = sqrt(T(v.squaredNorm()));
    T along[6] = {T(0.0), T(0.0), T(0.0), T(0.0), T(0.0), T(0.0)};
    for (int twice = 0; twice < 2; ++twice)
      for (int i = 0; i < n; ++i) {
        const T part = u[i].dot(v);
        along[i] += part, v -= part * u[i];
      }
    const T left = sqrt(T(v.squaredNorm()));
    const auto independent = left > length * T(negligible);
    if (n == 6 || !any(independent)) return;
    differs = differs || any(left < length * T(negligible));
    for (int i = 0; i < n; ++i) R[i][n] = along[i];
    R[n][n] = left, u[n] = v * (T(1.0) / left), from[n++] = column;
  }
  Six<T> project(const Six<T>& w) const {
    Six<T> sum = Six<T>::Zero();
    for (int i = 0; i < n; ++i) sum += u[i].dot(w) * u[i];
    return sum;
  }
};

/// A joint or another constraint between bodies, with its reaction.
template <class T> struct Bearing {
  int body[2];  // indices of its two bodies, parent and child; for a tree joint, predecessor and successor. -1: the ground
  // reference point of its moments, relative to the common reference point of the connected bodies [mechanism lengths]
  Vec3<T> at;
  Transform<T> X;  // pose in the world of the frame in which the joint's load is expressed
  Vec3<T> arm;  // vector from `at` to the origin of that frame [mechanism lengths]
  int load;  // index of its load in the input
  double sign;  // 1 or -1: the reaction on the child is `sign` times that load
  // true if u is a basis of its motions, to which its reactions are perpendicular; false if u is a basis of its reactions
  bool moves;
  Orthonormal<T> basis;
  Six<T> w, before;  // reaction on the child: the current one, and the initial one

  bool is_free() const { return moves && basis.n == 6; }
  Six<T> carried(const Six<T>& w) const {
    if (is_free()) return Six<T>::Zero();
    return moves ? Six<T>(w - basis.project(w)) : basis.project(w);
  }
  /// on_bodies: convert a wrench of the joint to one about the bodies' common reference point. moved: the transpose, which converts displacements of
  /// bodies to those at the joint.
  Six<T> on_bodies(Six<T> w) const {
    w.template head<3>() += cross(at, force_of(w));
    return w;
  }
  Six<T> moved(Six<T> y) const {
    y.template tail<3>() += cross(moment_of(y), at);
    return y;
  }
};

/// Orthonormal effort of a relation between coordinates, such as a gear. A unit of it applies the wrenches `put` to bodies and the efforts `along` to
/// joints.
template <class T> struct Effort {
  int bodies, *body;
  Six<T>* put;
  int joints, *joint;
  Six<T>* along;
  T x, before;
};
/// A relation between coordinates, such as a gear. `from` lists its independent rows; their efforts are u T, where u are the orthonormal efforts.
template <class T> struct Relation {
  int row, first, n, *from;
  T* R;  // n x n
};

template <class T> class Reactions {
 public:
  SARRUS_NOINLINE Reactions(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* loads, const T* multipliers)
      : tree_(tree), arena_(arena), state_(state), loads_(loads), l_(state.numbers(tree.length)), n_(tree.bodies - 1) {
    const Loops& loops = tree.loops;
    bearing_ = arena.template take<Bearing<T>>(n_ + loops.constraints);
    relation_ = arena.template take<Relation<T>>(loops.constraints), effort_ = arena.template take<Effort<T>>(loops.rows);
    link_bearing_ = arena.take<int>(tree.links);
    bearings_ = n_;
    for (int i = 1; i < tree.bodies; ++i) add_tree_joint(i);
    for (int i = 0; i < loops.constraints; ++i)
      if (loops.constraint[i].child >= 0) add_constraint(i);
    share_points();
    for (int i = 0; i < loops.constraints; ++i)
      if (loops.constraint[i].child < 0) add_relation(loops.constraint[i], multipliers);
  }

  /// Compute reactions of least norm by bushings. Returns 1 if corrections do not converge, or if the dependent columns are not the same in all
  /// lanes.
  SARRUS_NOINLINE T by_bushings() {
    if (differs()) return T(1.0);
    Bushings<T> K(n_, arena_);
    for (int j = 0; j < bearings_; ++j)
      if (const int* body = bearing_[j].body; body[0] >= 0 && body[1] >= 0) K.join(body[0], body[1]);
    for (int e = 0; e < efforts_; ++e)
      for (int i = 0; i < effort_[e].bodies; ++i)
        for (int k = 0; k < i; ++k) K.join(effort_[e].body[i], effort_[e].body[k]);
    K.plan();
    for (int j = 0; j < bearings_; ++j) {
      const Bearing<T>& b = bearing_[j];
      const Block<T> S = stiffness(b);
      for (const int body : b.body)
        if (body >= 0) K.add(body, body, 1.0, S);
      if (b.body[0] >= 0 && b.body[1] >= 0) K.add(b.body[0], b.body[1], -1.0, S);
    }
    for (int e = 0; e < efforts_; ++e)
      for (int i = 0; i < effort_[e].bodies; ++i)
        for (int k = 0; k <= i; ++k) {
          Block<T> S;
          S.clear();
          add_product(S, T(1.0), effort_[e].put[i], effort_[e].put[k]);
          K.add(effort_[e].body[i], effort_[e].body[k], 1.0, S);
        }
    K.factorise(tolerances::free_bushings);

    Padded<T>* y = arena_.template take<Padded<T>>(n_);
    Six<T>* w = arena_.template take<Six<T>>(bearings_);
    T *x = arena_.template take<T>(efforts_), size = T(0.0), last = T(0.0), failed = T(0.0);
    for (int j = 0; j < bearings_; ++j) size += bearing_[j].w.squaredNorm(), w[j].setZero();
    for (int e = 0; e < efforts_; ++e) size += square(effort_[e].x), x[e] = T(0.0);
    T moves = select(size > T(0.0), T(1.0), T(0.0));  // 1 in lanes whose reactions still change, else 0
    for (int k = 0; any(moves > T(0.0)); ++k) {
      for (int b = 0; b < n_; ++b) std::fill(y[b].value, y[b].value + padded<T>, T(0.0));
      for (int j = 0; j < bearings_; ++j) {
        const Bearing<T>& b = bearing_[j];
        const Six<T> missing = b.on_bodies((b.w - w[j]) * moves);
        if (b.body[1] >= 0) y[b.body[1]].six() += missing;
        if (b.body[0] >= 0) y[b.body[0]].six() -= missing;
      }
      for (int e = 0; e < efforts_; ++e)
        for (int i = 0; i < effort_[e].bodies; ++i)
          y[effort_[e].body[i]].six() += ((effort_[e].x - x[e]) * moves) * effort_[e].put[i];
      K.solve(y);
      T step = T(0.0);
      for (int j = 0; j < bearings_; ++j) {
        const Bearing<T>& b = bearing_[j];
        Six<T> relative = Six<T>::Zero();
        if (b.body[1] >= 0) relative += y[b.body[1]].six();
        if (b.body[0] >= 0) relative -= y[b.body[0]].six();
        const Six<T> more = b.carried(b.moved(relative));
        w[j] += more, step += more.squaredNorm();
      }
      for (int e = 0; e < efforts_; ++e) {
        T more = T(0.0);
        for (int i = 0; i < effort_[e].bodies; ++i) more += effort_[e].put[i].dot(y[effort_[e].body[i]].six());
        x[e] += more, step += more * more;
      }
      // successive corrections decrease by a constant ratio
      const T larger = select(last > step, last, step), left = step * step - larger * size * T(square(tolerances::exact)),
              rounding = step - size * T(square(tolerances::rounding));
      moves = select(both(left > T(0.0), rounding > T(0.0)), moves, T(0.0));
      if (k == tolerances::most_corrections) failed = select(moves > T(0.0), T(1.0), failed);
      if (k > 2) failed = select(both(moves > T(0.0), step > last * T(0.1)), T(1.0), failed);
      moves = select(failed > T(0.0), T(0.0), moves);
      last = k > 0 ? step : size;
    }
    const auto fails = failed > T(0.0);
    for (int j = 0; j < bearings_; ++j)
      for (int i = 0; i < 6; ++i) bearing_[j].w(i) = select(fails, bearing_[j].w(i), w[j](i));
    for (int e = 0; e < efforts_; ++e) effort_[e].x = select(fails, effort_[e].x, x[e]);
    return failed;
  }

  /// Compute reactions of least norm by A^T P = Q R; if `root` is not null, reactions of least elastic energy.
  SARRUS_NOINLINE void by_self_stresses(const double* root) {
    int *first = arena_.template take<int>(bearings_ + 1), unknowns = 0;
    Six<T>* basis = arena_.template take<Six<T>>(6 * bearings_);
    for (int j = 0; j < bearings_; ++j) first[j] = unknowns, unknowns += basis_of(bearing_[j], basis + unknowns);
    first[bearings_] = unknowns;
    const int m = unknowns + efforts_, n = 6 * n_;
    double *A = arena_.template take<double>(m * n), *x = arena_.template take<double>(m);
    std::fill(A, A + m * n, 0.0);
    for (int j = 0; j < bearings_; ++j) {
      const Bearing<T>& b = bearing_[j];
      for (int i = first[j]; i < first[j + 1]; ++i) {
        const Six<T> on = b.on_bodies(basis[i]);
        x[i] = basis[i].dot(b.w);
        for (int s = 0; s < 2; ++s)
          for (int c = 0; b.body[s] >= 0 && c < 6; ++c) A[(6 * b.body[s] + c) * m + i] = s == 1 ? on(c) : -on(c);
      }
    }
    for (int e = 0; e < efforts_; ++e) {
      x[unknowns + e] = effort_[e].x;
      for (int i = 0; i < effort_[e].bodies; ++i)
        for (int c = 0; c < 6; ++c) A[(6 * effort_[e].body[i] + c) * m + unknowns + e] = effort_[e].put[i](c);
    }
    const PivotedQr Q(m, n, A, arena_);
    Q.times_transpose(x);
    std::fill(x + Q.rank, x + m, 0.0);
    Q.times(x);
    if (root && Q.rank < m) share_by_compliance(Q, m, first, basis, root, x);
    for (int j = 0; j < bearings_; ++j) {
      bearing_[j].w.setZero();
      for (int i = first[j]; i < first[j + 1]; ++i) bearing_[j].w += x[i] * basis[i];
    }
    for (int e = 0; e < efforts_; ++e) effort_[e].x = x[unknowns + e];
  }

  /// Add the change of the reactions, current minus initial ones, to lambda (rows) and to the loads.
  SARRUS_NOINLINE void change(T* lambda, T* loads) const {
    change_loads(loads);
    for (int j = n_; j < bearings_; ++j) {
      const Bearing<T>& b = bearing_[j];
      const Constraint& c = tree_.loops.constraint[constraint_index(j)];
      const Six<T> w = b.w - b.before;
      if (const LoopJoint* joint = plain(c)) {  // components in the child's frame
        const Vec3<T> F = force_of(w), N = (moment_of(w) - cross(b.arm, F)) * l_;
        const Mat3<T> R = b.X.R * state_.numbers(c.R_described);
        const Vec3<T> components[2] = {transpose_times(R, N), transpose_times(R, F)};
        for (int r = 0; r < c.rows; ++r) lambda[c.row + r] += components[joint->component[r] / 3](joint->component[r] % 3);
      } else {
        T x[6];
        for (int i = b.basis.n - 1; i >= 0; --i) {
          x[i] = b.basis.u[i].dot(w);
          for (int k = i + 1; k < b.basis.n; ++k) x[i] -= b.basis.R[i][k] * x[k];
          x[i] /= b.basis.R[i][i];
          lambda[c.row + b.basis.from[i]] += x[i];
        }
      }
    }
    T* x = arena_.template take<T>(efforts_);
    for (int j = 0; j < relations_; ++j) {
      const Relation<T>& r = relation_[j];
      for (int i = r.n - 1; i >= 0; --i) {
        x[i] = effort_[r.first + i].x - effort_[r.first + i].before;
        for (int k = i + 1; k < r.n; ++k) x[i] -= r.R[i * r.n + k] * x[k];
        x[i] /= r.R[i * r.n + i];
        lambda[r.row + r.from[i]] += x[i];
      }
    }
  }

 private:
  bool differs() const {
    bool some = differs_;
    for (int j = 0; j < bearings_; ++j) some = some || bearing_[j].basis.differs;
    return some;
  }
  void change_loads(T* loads) const {
    const Arena::Scope scope(arena_);
    Six<T>* more = arena_.template take<Six<T>>(bearings_);
    for (int j = 0; j < bearings_; ++j) more[j] = bearing_[j].w - bearing_[j].before;
    for (int e = 0; e < efforts_; ++e)
      for (int i = 0; i < effort_[e].joints; ++i)
        more[effort_[e].joint[i]] += (effort_[e].x - effort_[e].before) * effort_[e].along[i];
    for (int j = 0; j < bearings_; ++j) {
      const Bearing<T>& b = bearing_[j];
      const Vec3<T> F = force_of(more[j]) * T(b.sign), N = (moment_of(more[j]) * T(b.sign) - cross(b.arm, F)) * l_;
      const Vec3<T> components[2] = {transpose_times(b.X.R, N), transpose_times(b.X.R, F)};
      for (int k = 0; k < 6; ++k) loads[6 * b.load + k] += components[k / 3](k % 3);
    }
  }

  static const LoopJoint* plain(const Constraint& c) {
    const LoopJoint* joint = std::get_if<LoopJoint>(&c.kind);
    return joint && joint->plain() ? joint : nullptr;
  }
  int constraint_index(int bearing) const { return bearing_[bearing].load - n_; }

  void add_tree_joint(int i) {
    const Body& body = tree_.body[i];
    const int inner = tree_.body[body.parent].link;
    Bearing<T>& b = bearing_[i - 1];
    b.body[0] = body.parent - 1, b.body[1] = i - 1, b.load = body.described;
    const Transform<T> outer_frame = state_.X[body.link] * state_.numbers(body.X_joint),
                       inner_frame = state_.X[inner] * state_.numbers(body.X_before);
    b.X = body.reversed ? inner_frame : outer_frame;
    b.sign = body.reversed ? -1.0 : 1.0, b.at = (outer_frame.p + inner_frame.p) * T(0.5);
    b.moves = true, b.basis = {};
    if (inner == body.link) return;  // the body is welded to its parent
    const Link& link = tree_.link[body.link];
    link_bearing_[body.link] = i - 1;
    for (int k = 0; k < link.nv; ++k) {
      const Motion<T>& s = state_.column[link.iv + k];
      const Vec3<T> v = s.linear + cross(s.angular, Vec3<T>(b.at - state_.X[body.link].p));
      Six<T> phi;
      phi << s.angular * l_, v;
      b.basis.add(phi, k, tolerances::present);
    }
  }
  void add_constraint(int i) {
    const Constraint& c = tree_.loops.constraint[i];
    Bearing<T>& b = bearing_[bearings_];
    const Arena::Scope scope(arena_);
    const Transform<T> child = state_.X[c.child] * state_.numbers(c.X_child),
                       parent = state_.X[c.parent] * state_.numbers(c.X_parent);
    const bool joint = std::holds_alternative<LoopJoint>(c.kind);
    b.body[0] = c.body[0] - 1, b.body[1] = c.body[1] - 1, b.load = n_ + i;
    b.X = {child.R * Mat3<T>(state_.numbers(c.R_described).transpose()), child.p};
    b.sign = 1.0, b.at = joint ? Vec3<T>((child.p + parent.p) * T(0.5)) : child.p;
    b.basis = {}, b.moves = plain(c);
    if (c.rows == 0) {  // a cable or a free joint has no reactions
    } else if (const LoopJoint* plainly = plain(c)) {
      bool is_constrained[6] = {};
      for (int r = 0; r < c.rows; ++r) is_constrained[plainly->component[r]] = true;
      for (int k = 0; k < 6; ++k) {
        const Vec3<T> axis = child.R.col(k % 3);
        Six<T> phi;
        if (k < 3)
          phi << axis * l_, cross(axis, Vec3<T>(b.at - child.p));
        else
          phi << zero3<T>(), axis;
        if (!is_constrained[k]) b.basis.add(phi, k, tolerances::present);
      }
    } else {
      RelativeMotion<T> m;
      Columns<T> columns;
      relative_motion(tree_, arena_, state_, c, m, columns, true, static_cast<const T*>(nullptr));
      Row<T> rows[6];
      evaluate(c, m, rows);
      for (int r = 0; r < c.rows; ++r) {
        const Vec3<T> F = child.R * rows[r].force.linear, N = child.R * rows[r].force.angular;
        Six<T> w;
        w << (N + cross(Vec3<T>(child.p - b.at), F)) / l_, F;
        b.basis.add(w, r, tolerances::negligible);
      }
    }
    ++bearings_;
  }

  /// Choose for each group of connected bodies one reference point of moments, in the middle of their joints; then set the reactions.
  void share_points() {
    int *group = arena_.template take<int>(n_), *joints = arena_.template take<int>(n_);
    Vec3<T>* middle = arena_.template take<Vec3<T>>(n_);
    for (int i = 0; i < n_; ++i) group[i] = i, joints[i] = 0, middle[i] = zero3<T>();
    const auto of = [&](int body) {
      while (group[body] != body) body = group[body] = group[group[body]];
      return body;
    };
    for (int j = 0; j < bearings_; ++j)
      if (const int* body = bearing_[j].body; body[0] >= 0 && body[1] >= 0) group[of(body[0])] = of(body[1]);
    const auto group_of_bearing = [&](const Bearing<T>& b) { return of(b.body[1] >= 0 ? b.body[1] : b.body[0]); };
    for (int j = 0; j < bearings_; ++j) {
      const int g = bearing_[j].body[0] < 0 && bearing_[j].body[1] < 0 ? -1 : group_of_bearing(bearing_[j]);
      if (g >= 0) middle[g] += bearing_[j].at, ++joints[g];
    }
    for (int j = 0; j < bearings_; ++j) {
      Bearing<T>& b = bearing_[j];
      b.arm = (b.X.p - b.at) / l_;
      if (b.body[0] >= 0 || b.body[1] >= 0) {
        const int g = group_of_bearing(b);
        b.at = (b.at - middle[g] * T(1.0 / joints[g])) / l_;
      }
      const T* load = loads_ + 6 * b.load;
      const Vec3<T> F = b.X.R * vec3(load[3], load[4], load[5]), N = b.X.R * vec3(load[0], load[1], load[2]);
      Six<T> w;
      w << N / l_ + cross(b.arm, F), F;
      b.w = b.before = b.carried(Six<T>(w * T(b.sign)));
    }
  }

  void add_relation(const Constraint& c, const T* multipliers) {
    const int rows = c.rows, columns = c.columns;
    // if the axes of the joint are parallel, no wrench has exactly these efforts; then the reactions are not changed
    for (int k = 0; k < columns; ++k) {
      const int link = tree_.column_link[c.column[k]];
      if (bearing_[link_bearing_[link]].basis.n < tree_.link[link].nv) return;
    }
    Relation<T>& relation = relation_[relations_++];
    relation = {c.row, efforts_, 0, arena_.template take<int>(rows), arena_.template take<T>(rows * rows)};
    T *J = arena_.template take<T>(tree_.loops.entries), *u = arena_.template take<T>(rows * columns),
      *along = arena_.template take<T>(rows * rows), *left = arena_.template take<T>(columns);
    std::fill(along, along + rows * rows, T(0.0));
    ConstraintRows<T> row_output;
    row_output.J = J;
    rows_between_coordinates(tree_, state_, c, row_output);
    for (int r = 0; r < rows; ++r) {  // along(i, r): component of the efforts of row r along the i-th basis vector
      for (int k = 0; k < columns; ++k) left[k] = J[c.entry + k * rows + r] * state_.numbers(tree_.unit[c.column[k]]) / l_;
      const T length = sqrt(scalar_product(left, left, columns));
      for (int twice = 0; twice < 2; ++twice)
        for (int i = 0; i < relation.n; ++i) {
          const T part = scalar_product(u + i * columns, left, columns);
          along[i * rows + r] += part, subtract_scaled(left, u + i * columns, part, columns);
        }
      const T size = sqrt(scalar_product(left, left, columns));
      const auto independent = size > length * T(tolerances::negligible);
      if (!any(independent)) continue;
      differs_ = differs_ || any(size < length * T(tolerances::negligible));
      along[relation.n * rows + r] = size;
      for (int k = 0; k < columns; ++k) u[relation.n * columns + k] = left[k] / size;
      relation.from[relation.n++] = r;
    }
    for (int i = 0; i < relation.n; ++i) {
      for (int k = 0; k < relation.n; ++k) relation.R[i * relation.n + k] = along[i * rows + relation.from[k]];
      Effort<T>& e = effort_[efforts_++];
      e = {0,
           arena_.template take<int>(2 * columns),
           arena_.template take<Six<T>>(2 * columns),
           0,
           arena_.template take<int>(columns),
           arena_.template take<Six<T>>(columns),
           T(0.0),
           T(0.0)};
      for (int r = 0; r < rows; ++r) e.x += along[i * rows + r] * multipliers[c.row + r];
      e.before = e.x;
      put_along_joints(c, u + i * columns, e);
    }
  }

  /// For each column of efforts, convert the efforts to wrenches along the joint to which the column belongs.
  void put_along_joints(const Constraint& c, const T* efforts, Effort<T>& e) {
    for (int begin = 0, end; begin < c.columns; begin = end) {
      const int link = tree_.column_link[c.column[begin]];
      T tau[6];
      std::fill(tau, tau + 6, T(0.0));
      for (end = begin; end < c.columns && tree_.column_link[c.column[end]] == link; ++end)
        tau[c.column[end] - tree_.link[link].iv] = efforts[end] * l_ / state_.numbers(tree_.unit[c.column[end]]);
      const Bearing<T>& b = bearing_[link_bearing_[link]];
      const Orthonormal<T>& phi = b.basis;  // R^T (along u) = tau
      T along[6];
      Six<T> w = Six<T>::Zero();
      for (int i = 0; i < phi.n; ++i) {
        along[i] = tau[phi.from[i]];
        for (int k = 0; k < i; ++k) along[i] -= phi.R[k][i] * along[k];
        along[i] /= phi.R[i][i], w += along[i] * phi.u[i];
      }
      e.joint[e.joints] = link_bearing_[link], e.along[e.joints++] = w;
      const Six<T> on = b.on_bodies(w);
      for (int s = 0; s < 2; ++s) {
        if (b.body[s] < 0) continue;
        int at = 0;
        while (at < e.bodies && e.body[at] != b.body[s]) ++at;
        if (at == e.bodies) e.body[at] = b.body[s], e.put[at].setZero(), ++e.bodies;
        if (s == 1)
          e.put[at] += on;
        else
          e.put[at] -= on;
      }
    }
  }

  static void add_product(Block<T>& S, const T& sign, const Six<T>& a, const Six<T>& b) {
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j) S(i, j) += sign * a(i) * b(j);
  }

  /// Contribution of a joint ("bearing") to A A^T, about the reference point of its bodies.
  static Block<T> stiffness(const Bearing<T>& b) {
    Block<T> S;
    S.clear();
    if (b.is_free()) return S;
    if (b.moves) {
      const Mat3<T> R = skew(b.at), RR = R * R;
      for (int i = 0; i < 3; ++i) {
        S(i, i) = S(i + 3, i + 3) = T(1.0);
        for (int j = 0; j < 3; ++j) S(i, j) -= RR(i, j), S(i, j + 3) = S(j + 3, i) = R(i, j);
      }
    }
    for (int i = 0; i < b.basis.n; ++i) {
      const Six<T> u = b.on_bodies(b.basis.u[i]);
      add_product(S, T(b.moves ? -1.0 : 1.0), u, u);
    }
    return S;
  }

  /// Compute an orthonormal basis of the reactions of a joint ("bearing"). Returns the number of basis vectors.
  int basis_of(const Bearing<T>& b, Six<T>* basis) const {
    if (!b.moves) {
      std::copy(b.basis.u, b.basis.u + b.basis.n, basis);
      return b.basis.n;
    }
    const Arena::Scope scope(arena_);
    double* u = arena_.template take<double>(6 * 6);
    for (int i = 0; i < b.basis.n; ++i) std::copy(b.basis.u[i].data(), b.basis.u[i].data() + 6, u + 6 * i);
    const PivotedQr Q(6, b.basis.n, u, arena_);
    for (int k = Q.rank; k < 6; ++k) {
      double e[8] = {};
      e[k] = 1.0, Q.times(e);
      std::copy(e, e + 6, basis[k - Q.rank].data());
    }
    return 6 - Q.rank;
  }

  /// Replace x, the reactions of least norm, by those of least elastic energy. If these are not unique, by those nearest to x.
  void share_by_compliance(const PivotedQr& Q, int m, const int* first, const Six<T>* basis, const double* root,
                           double* x) const {
    const int k = m - Q.rank, rows = 6 * bearings_;
    double *S = arena_.template take<double>(m * k), *strain = arena_.template take<double>(rows * k),
           *b = arena_.template take<double>(rows), *z = arena_.template take<double>(k);
    const auto strained = [&](const double* x, double factor, double* out) {
      std::fill(out, out + rows, 0.0);
      for (int j = 0; j < bearings_; ++j) {
        const Bearing<T>& bearing = bearing_[j];
        Six<T> w = Six<T>::Zero();
        for (int i = first[j]; i < first[j + 1]; ++i) w += x[i] * basis[i];
        const Vec3<double> F = force_of(w), N = (moment_of(w) - cross(bearing.arm, F)) * l_;
        const Vec3<double> components[2] = {transpose_times(bearing.X.R, N), transpose_times(bearing.X.R, F)};
        for (int r = 0; r < 6; ++r)
          for (int c = 0; c < 6; ++c) out[6 * j + r] += factor * root[36 * bearing.load + 6 * r + c] * components[c / 3](c % 3);
      }
    };
    for (int i = 0; i < k; ++i) {
      double* s = S + i * m;
      std::fill(s, s + m, 0.0), s[Q.rank + i] = 1.0;
      Q.times(s);
      strained(s, 1.0, strain + i * rows);
    }
    strained(x, -1.0, b);
    const PivotedQr strains(rows, k, strain, arena_, tolerances::rigid);
    strains.solve(b, z);
    for (int i = 0; i < k; ++i) add_multiple(m, z[i], S + i * m, x);
  }

  const Tree& tree_;
  Arena& arena_;
  const LoopState<T>& state_;
  const T* loads_;
  T l_;
  int n_, bearings_ = 0, relations_ = 0, efforts_ = 0;
  bool differs_ = false;
  Bearing<T>* bearing_;  // one for the joint of each body, then one for each constraint between bodies
  Relation<T>* relation_;
  Effort<T>* effort_;
  int* link_bearing_;  // for each link, the index of its joint in bearing_
};

/// Compute the reactions of a packet of states. Returns 1 if they must be computed state by state instead, because compliances are given, bushings do
/// not converge, or the dependent columns are not the same in all lanes.
template <class T>
T least_reactions(const Tree& tree, Arena& arena, const LoopState<T>& state, const T* multipliers, const T* loads, const T* root,
                  const T* least_pivot, T* out) {
  const int rows = tree.loops.rows, numbers = rows + 6 * (tree.bodies - 1 + tree.loops.constraints);
  T* out_loads = std::copy(multipliers, multipliers + rows, out);
  std::copy(loads, loads + numbers - rows, out_loads);
  // 1 if all reactions are determinate; the least pivot of a row in the factorisation for accelerations decides this
  T determined = T(0.0);
  if (least_pivot) determined = select(*least_pivot > T(tolerances::independent), T(1.0), T(0.0));
  if (!any(determined < T(1.0))) return T(0.0);
  Reactions<T> reactions(tree, arena, state, loads, multipliers);
  T fails = T(1.0);
  if (!root) fails = reactions.by_bushings();
  if constexpr (width_of<T> == 1) {
    if (fails > 0.0) reactions.by_self_stresses(root), fails = 0.0;
    reactions.change(out, out_loads);
  } else if (any(determined > T(0.0))) {
    T* changed = arena.template take<T>(numbers);
    std::copy(out, out + numbers, changed);
    reactions.change(changed, changed + rows);
    for (int k = 0; k < numbers; ++k) out[k] = select(determined > T(0.0), out[k], changed[k]);
  } else {
    reactions.change(out, out_loads);
  }
  return select(determined > T(0.0), T(0.0), fails);
}

}  // namespace sarrus
