// Interface of a type of task. A task consists of rows of one of two categories:
//
//   accelerations    J a = r, where r reduces the error of the task to zero
//   forces           a force of a constraint or a contact, an affine function of the unknowns, is equal to a target
//
// A type is a struct with its parameters, and
//
//   name                    name of the type in descriptions
//   rows()                  number of rows
//   fields(field)           calls field("key", member) for each member of a description; the types of members are below
//
// A type of acceleration task is derived from AccelerationTask, and defines for a state s
//
//   evaluate(s, out)        J, r and the error of each row
//   rigid_mobility(s, rigid_body, row)   J M^-1 J^T of a row if the mechanism were one rigid body: a lower bound of the row's scale
//   group(row)              rows of a group share one scale; default: each row is a separate group
//   companions()            number of additional rows of J without targets that complete the groups; default: none
//
// A type of force task is derived from ForceTask:
//
//   affine(u, row, along)   the force: its value at zero unknowns, and the contribution of each unknown
//   value(x, lambda, row)   the force for a solution
//   size(row_weight, row)   lower bound of the row's squared scale
//   state                   index of its first integral among the controller's internal states; -1: none
#pragma once

#include <optional>
#include <vector>

#include "../../constraints/law.hpp"
#include "../../dynamics/momentum.hpp"
#include "../../loops/loop_joints.hpp"
#include "../cascade.hpp"

namespace sarrus {

// ---- the state -----------------------------------------------------------------------------------------------------

/// State, the input of tasks.
template <class T> struct TaskState {
  const Tree& tree;
  Arena& arena;
  const T *q, *v, *time, *parameter;
  const T* call;  // arguments of the call, for targets that the caller computes
  Kinematics<T> k;  // its accelerations are those at zero joint accelerations
  // motion of loop joints, if tasks, motors or limits use it; its `a` is the acceleration at zero tree accelerations (drift)
  LoopJoints<T> loop;
  bool counts;  // true if the caller counts the revolutions of loop joints
};

/// A frame on a link.
struct TaskFrame {
  int link = 0;
  Transform<double> X = Transform<double>::identity();
};

/// Compute the frame's pose, velocity, and acceleration at zero joint accelerations, in world axes at its origin.
template <class T> SARRUS_INLINE LinkMotion<T> frame_motion(const TaskState<T>& s, const TaskFrame& frame) {
  const LinkMotion<T>& link = s.k.link[frame.link];
  const Transform<T> X = link.X * cast<T>(frame.X);
  const Vec3<T> r = X.p - link.X.p, &w = link.V.angular;
  return {
      X, {w, link.V.linear + cross(w, r)}, {link.A.angular, link.A.linear + cross(link.A.angular, r) + cross(w, cross(w, r))}};
}

/// Add to J (rows x nv) the velocity of the point p of a link per unit velocity, times `sign`. axis(row, angular, linear) returns the component for a
/// row.
template <class T, class Axis>
SARRUS_INLINE void add_columns(const TaskState<T>& s, int link, const Vec3<T>& p, double sign, int rows, Axis&& axis, T* J) {
  const int nv = s.tree.nv;
  for (int b = link; b != 0; b = s.tree.link[b].parent) {
    const Link& joint = s.tree.link[b];
    const Vec3<T> arm = p - s.k.link[b].X.p;
    for (int c = joint.iv; c < joint.iv + joint.nv; ++c) {
      const Motion<T>& m = s.k.column[c];
      const Vec3<T> u = m.linear + cross(m.angular, arm);
      for (int r = 0; r < rows; ++r) J[r * nv + c] += T(sign) * axis(r, m.angular, u);
    }
  }
}

/// The mechanism as one rigid body, whose mobility is a lower bound of the mobilities in regular positions. Only near a singular position or a dead
/// centre does a joint or frame have a lower mobility, because of leverage.
template <class T> struct RigidMechanism {
  T mass = T(0.0), trace = T(0.0);  // trace of the inertia about c
  Vec3<T> c = zero3<T>();

  explicit RigidMechanism(const TaskState<T>& s) {
    for (int i = 1; i < s.tree.links; ++i) {
      const auto& b = s.tree.link[i].inertia;
      if (b.m > 0.0) mass += T(b.m), c += s.k.link[i].X.p * T(b.m) + s.k.link[i].X.R * cast<T>(b.h);
    }
    c = c * inverse_or_none(mass);
    for (int i = 1; i < s.tree.links; ++i) {
      const auto& b = s.tree.link[i].inertia;
      trace += T(b.I.xx + b.I.yy + b.I.zz);
      if (!(b.m > 0.0)) continue;
      const Vec3<T> r = s.k.link[i].X.p + s.k.link[i].X.R * cast<T>(Vec3<double>(b.h * (1.0 / b.m))) - c;
      trace += T(2.0 * b.m) * dot(r, r) - T(2.0 / b.m * dot(b.h, b.h));
    }
  }

  /// Return a lower bound of the mobility about any axis through p: the inertia is at most half the trace of the inertia tensor about p, plus the
  /// armature of a joint.
  T angular_mobility(const Vec3<T>& p, double armature = 0.0) const {
    const Vec3<T> r = p - c;
    return inverse_or_none(T(0.5) * trace + mass * dot(r, r) + T(armature));
  }
  T linear_mobility(double armature = 0.0) const { return inverse_or_none(mass + T(armature)); }
  /// Return the mobility of the rigid mechanism along the velocity of any joint.
  T joint_mobility(const TaskState<T>& s, int iv, bool angular) const {
    if (iv < s.tree.nv) {
      const double armature = s.tree.passive[iv].armature;
      return angular ? angular_mobility(s.k.link[s.tree.column_link[iv]].X.p, armature) : linear_mobility(armature);
    }
    int i = 0;
    while (i + 1 < s.tree.loop_motions && s.tree.loop_motion[i + 1].iv <= iv - s.tree.nv) ++i;
    const LoopMotion& joint = s.tree.loop_motion[i];
    const double armature = joint.terms[iv - s.tree.nv - joint.iv].armature;
    if (!angular) return linear_mobility(armature);
    const Transform<T>& X = s.k.link[joint.link[1]].X;
    return angular_mobility(X.p + X.R * cast<T>(joint.X[1].p), armature);
  }
};

// ---- members of a kind ---------------------------------------------------------------------------------------------

/// Values of a task, one per row, which may differ between runs: index of the first value in the parameters of a run.
struct RowNumbers {
  int first = 0, rows = 0;
  bool any_sign = false;  // true if values may be negative
  template <class T> T operator()(const TaskState<T>& s, int row) const { return s.parameter[first + row]; }
};

/// Targets of a task: values that may differ between runs, plus optional time functions.
struct Targets {
  std::vector<std::optional<Law>> law;
  int first = 0;

  bool moves() const {
    for (const auto& target_law : law)
      if (target_law) return true;
    return false;
  }
  /// Compute value, rate and acceleration of the i-th target.
  template <class T> SARRUS_INLINE void evaluate(const TaskState<T>& s, int i, T (&g)[3]) const {
    g[0] = g[1] = g[2] = T(0.0);
    if (law[i]) sarrus::evaluate(*law[i], s.parameter, s.time, g);
    g[0] += s.parameter[first + i];
  }
};

/// Selected components 0 .. 5 of [angular; linear]. Companions: if an angular (or linear) component is selected, the other angular (or linear) ones,
/// because all three share one scale.
struct Components {
  std::vector<int> row, companion;

  Components(std::vector<int> rows = {}) : row(std::move(rows)) {
    for (int k = 0; k < 6; ++k) {
      bool is_selected = false, half = false;
      for (const int c : row) is_selected = is_selected || c == k, half = half || c / 3 == k / 3;
      if (half && !is_selected) companion.push_back(k);
    }
  }
  int rows() const { return static_cast<int>(row.size()); }
  int companions() const { return static_cast<int>(companion.size()); }
  int operator[](int r) const { return r < rows() ? row[r] : companion[r - rows()]; }
  bool rotates() const {
    for (const int c : row)
      if (c < 3) return true;
    return false;
  }
};

/// Coordinate of a joint: its index among the coordinates of the tree, which those of loop joints follow.
struct TaskCoordinate {
  int iq, iv;
  bool turns;  // true for an angle whose number of revolutions the pose does not determine
  bool angular;  // true if its velocity is a rotation
  template <class F> void fields(F field) { field("q", iq), field("v", iv), field("turns", turns), field("angular", angular); }

  /// Value, rate, drift (acceleration at zero tree accelerations), and row of J (nv; null: the row is the unit vector of velocity iv).
  template <class T> struct Motion {
    T q, v, a;
    const T* J;
  };
  template <class T> Motion<T> motion(const TaskState<T>& s) const {
    const int nv = s.tree.nv, i = iv - nv;
    if (i < 0) return {s.q[iq], s.v[iv], T(0.0), nullptr};
    return {s.loop.q[iq - s.tree.nq], s.loop.v[i], s.loop.a[i], s.loop.J + i * nv};
  }
};

// ---- the two types -------------------------------------------------------------------------------------------------

/// Rows of one task: J (rows and companions x nv), the required J a, and the error, which is target minus actual value.
template <class T> struct TaskRows {
  T *J, *right, *error;
};

struct AccelerationTask {
  static constexpr bool is_force = false;
  int group(int row) const { return row; }
  int companions() const { return 0; }
};

/// Task whose errors decay like damped oscillators, e'' = -damping e' - stiffness e.
struct FollowingTask : AccelerationTask {
  RowNumbers stiffness, damping;
  template <class F> void fields(F field) { field("stiffness", stiffness), field("damping", damping); }
  template <class T> T feedback(const TaskState<T>& s, int row, const T& error, const T& rate) const {
    return stiffness(s, row) * error + damping(s, row) * rate;
  }
};

/// Responses to the unknowns x = (efforts, contact forces): a = a_0 + sum x_k A_k, lambda = lambda_0 + sum x_k Lambda_k.
template <class T> struct TaskUnknowns {
  int n, nv, rows;
  // generalised forces of the unknowns, and accelerations A_k (n x nv each); multipliers Lambda_k (n x rows of constraints)
  T *B, *A, *Lambda;
  T *a, *lambda;  // a_0, lambda_0
  T* scale;  // x = scale xi
};

struct ForceTask {
  static constexpr bool is_force = true;
  static constexpr int state = -1;
  Targets target;
  template <class F> void fields(F field) { field("target", target); }
  /// Return the change of the target due to integral action; z: internal states.
  template <class T> T integral_action(const TaskState<T>&, int, const T*) const { return T(0.0); }
};

}  // namespace sarrus
