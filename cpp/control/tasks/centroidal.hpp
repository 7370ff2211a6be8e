// Tasks for the mechanism's centre of mass and momentum. h = H v is the momentum about the centre of mass c, m the mass of the mechanism, and g the
// target:
//
//   centre of mass   (H / m) a = g-dot-dot + kd (g-dot - h / m) + kp (g - c) - H-dot v / m
//   momentum         H a = g-dot + gain (g - h) - H-dot v
#pragma once

#include "task.hpp"

namespace sarrus {

/// Quantities of both tasks: H (6 x nv), h, H-dot v, c and m.
template <class T> struct CentroidalMotion {
  T *H, h[6], drift[6], mass = T(0.0);
  Vec3<T> c;

  explicit CentroidalMotion(const TaskState<T>& s) : H(s.arena.template take<T>(6 * s.tree.nv)), c(center_of_mass(s.tree, s.k)) {
    momentum_matrix(s.tree, s.arena, s.k, c, H);
    store(momentum(s.tree, s.k, c), h), store(momentum_rate(s.tree, s.k, c), drift);
    for (int i = 1; i < s.tree.links; ++i) mass += T(s.tree.link[i].inertia.m);
  }
  void rows(const TaskState<T>& s, const Components& components, const T& factor, T* J) const {
    const int nv = s.tree.nv;
    for (int i = 0; i < components.rows() + components.companions(); ++i)
      for (int l = 0; l < nv; ++l) J[i * nv + l] = H[components[i] * nv + l] * factor;
  }
};

struct CenterOfMassTask : FollowingTask {
  static constexpr const char* name = "CenterOfMassTask";
  Components components;
  Targets target;

  int rows() const { return components.rows(); }
  int companions() const { return components.companions(); }
  int group(int row) const { return components[row] / 3; }
  template <class F> void fields(F field) {
    field("components", components), field("target", target), FollowingTask::fields(field);
  }
  template <class T> void evaluate(const TaskState<T>& s, const TaskRows<T>& out) const {
    const Arena::Scope scope(s.arena);
    const CentroidalMotion<T> m(s);
    const T inverse = T(1.0) / m.mass;
    m.rows(s, components, inverse, out.J);
    for (int i = 0; i < rows(); ++i) {
      const int k = components[i];
      T g[3];
      target.evaluate(s, i, g);
      out.error[i] = g[0] - m.c(k - 3);
      out.right[i] = g[2] - m.drift[k] * inverse + feedback(s, i, out.error[i], T(g[1] - m.h[k] * inverse));
    }
  }
  template <class T> T rigid_mobility(const TaskState<T>&, const RigidMechanism<T>& rigid_body, int) const {
    return rigid_body.linear_mobility();
  }
};

struct MomentumTask : AccelerationTask {
  static constexpr const char* name = "MomentumTask";
  Components components;
  Targets target;
  RowNumbers gain;

  int rows() const { return components.rows(); }
  int companions() const { return components.companions(); }
  int group(int row) const { return components[row] / 3; }
  template <class F> void fields(F field) { field("components", components), field("target", target), field("gain", gain); }
  template <class T> void evaluate(const TaskState<T>& s, const TaskRows<T>& out) const {
    const Arena::Scope scope(s.arena);
    const CentroidalMotion<T> m(s);
    m.rows(s, components, T(1.0), out.J);
    for (int i = 0; i < rows(); ++i) {
      T g[3];
      target.evaluate(s, i, g);
      out.error[i] = g[0] - m.h[components[i]];
      out.right[i] = g[1] - m.drift[components[i]] + gain(s, i) * out.error[i];
    }
  }
  template <class T> T rigid_mobility(const TaskState<T>&, const RigidMechanism<T>& rigid_body, int row) const {
    return components[row] < 3 ? T(0.5) * rigid_body.trace : rigid_body.mass;
  }
};

}  // namespace sarrus
