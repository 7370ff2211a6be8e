// Conversion of a joint's kind (a number) to its type; no other file contains such a switch. Revolute, prismatic and free joints are inlined into the
// algorithms. The functions of other joints are called through General; they are not inlined, and the number of columns is a run-time value.
// Therefore an algorithm is compiled four times instead of fourteen.
#pragma once

#include "joint_set.hpp"

namespace sarrus {

template <class Joint, class... Larger, class F> SARRUS_INLINE auto visit_size(int nv, F&& f) {
  if constexpr (sizeof...(Larger) > 0)
    if (nv > Joint::nv) return visit_size<Larger...>(nv, f);
  return f(Joint{});
}

/// Call f with a value of the joint's own type. nv may be 0 if f does not depend on the number of velocities of a gimbal.
template <class F> SARRUS_INLINE auto visit_every(JointKind kind, int nv, F&& f) {
  switch (kind) {
#define SARRUS_CASE(kind, ...) \
  case JointKind::kind: return visit_size<__VA_ARGS__>(nv, f);
    SARRUS_JOINTS(SARRUS_CASE)
#undef SARRUS_CASE
    case JointKind::reversed: break;  // the type of the original joint is stored in the constants
  }
  return decltype(f(Fixed{}))();
}

inline bool has_quaternion(JointKind kind) {
  return visit_every(kind, 0, [](auto joint) { return joint.has_quaternion; });
}
inline bool has_ball_spring(JointKind kind) {
  return visit_every(kind, 0, [](auto joint) { return joint.has_ball_spring; });
}

/// Transform, columns, their rates and the bias phi-dot v of any joint, by functions that are not inlined.
template <class T> struct JointMotion {
  Transform<T> X;
  Motion<T> column[6], column_rate[6];
  Motion<T> bias;
};
/// Convert the motion of a joint to that of the reversed joint, in which the predecessor moves relative to the successor. X, the columns s and their
/// rates become those of the inverse pose: X^-1, -Ad_X s, and -Ad_X (s-dot + V x s).
template <class T> SARRUS_INLINE void reverse(int nv, const T* v, JointMotion<T>& m) {
  Motion<T> V = Motion<T>::zero();
  for (int k = 0; v && k < nv; ++k) V = V + m.column[k] * v[k];
  m.bias = Motion<T>::zero();
  for (int k = 0; k < nv; ++k) {
    const Motion<T>& s = m.column[k];
    if (v) {
      const Motion<T> along = {cross(V.angular, s.angular), cross(V.angular, s.linear) + cross(V.linear, s.angular)};
      m.column_rate[k] = m.X.to_parent((m.column_rate[k] + along) * T(-1.0));
      m.bias = m.bias + m.column_rate[k] * v[k];
    }
    m.column[k] = m.X.to_parent(s * T(-1.0));
  }
  m.X = m.X.inverse();
}

template <class T>
SARRUS_NOINLINE void joint_motion(JointKind kind, int nv, const Coordinates<T>& c, const T* v, JointMotion<T>& m) {
  if (kind == JointKind::reversed) {
    joint_motion(c.constants.constants->reversed, nv, c, v, m);
    return reverse(nv, v, m);
  }
  visit_every(kind, nv, [&](auto joint) {
    m.X = joint.transform(c);
    const auto S = joint.subspace(c);
    for (int k = 0; k < joint.nv; ++k) m.column[k] = S.column[k];
    m.bias = Motion<T>::zero();
    if (!v) return;
    const auto rate = joint.subspace_rate(c, v);
    for (int k = 0; k < joint.nv; ++k) m.column_rate[k] = rate.column[k];
    m.bias = rate * v;
  });
}

/// Motion of a joint in one state: its successor's pose in the predecessor, the columns of phi, and phi-dot v.
template <class T, class Columns> struct Evaluated {
  Transform<T> X;
  Columns S;
  Motion<T> bias;
};

/// A joint whose functions are inlined. Its motion space is constant, so nothing has to be stored for the following passes.
template <class Joint> struct Inlined {
  static constexpr int nv = Joint::nv, most = nv;  // nv: number of velocities; most: length of an array for them
  template <class T>
  static SARRUS_INLINE Evaluated<T, Subspace<T, nv>> evaluate(JointKind, const Coordinates<T>& c, const T*, Motion<T>*) {
    return {Joint::transform(c), Joint::subspace(c), Motion<T>::zero()};
  }
  template <class T> static SARRUS_INLINE Subspace<T, nv> subspace(const Motion<T>*) { return Joint::subspace(Coordinates<T>{}); }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>& A) { Joint::clear_transmitted(A); }
};

/// Any joint. Its columns are stored for the following passes.
struct General {
  int nv;
  static constexpr int most = 6;
  template <class T>
  SARRUS_INLINE Evaluated<T, StoredSubspace<T>> evaluate(JointKind kind, const Coordinates<T>& c, const T* v,
                                                         Motion<T>* stored) const {
    JointMotion<T> m;
    joint_motion(kind, nv, c, v, m);
    for (int k = 0; k < nv; ++k) stored[k] = m.column[k];
    return {m.X, subspace(stored), m.bias};
  }
  template <class T> SARRUS_INLINE StoredSubspace<T> subspace(const Motion<T>* stored) const { return {stored, nv}; }
  template <class T> static SARRUS_INLINE void clear_transmitted(ArticulatedInertia<T>&) {}
};

template <class F> SARRUS_INLINE void visit(JointKind kind, int nv, F&& f) {
  switch (kind) {
    case JointKind::revolute: return f(Inlined<Revolute>{});
    case JointKind::prismatic: return f(Inlined<Prismatic>{});
    case JointKind::free: return f(Inlined<Free>{});
    default: return f(General{nv});
  }
}

}  // namespace sarrus
