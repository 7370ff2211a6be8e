// An element between frames of two bodies. It applies opposite wrenches, at one point of the world, to both bodies.
#pragma once

#include <type_traits>

#include "element.hpp"

namespace sarrus {

struct BetweenFrames : ForceElement {
  BodyFrame frame, on;  // the wrench acts on the body of `frame`, and its opposite on the body of `on`

  template <class F> void fields(F& field) { field("frame", frame), field("on", on); }

 protected:
  template <class T> static SARRUS_NOINLINE Transform<T> pose(ElementCall<T>& e, const BodyFrame& f) {
    return e.bodies().X[f.link] * f.on_the_link<T>(e.tree);
  }

  /// Return the velocity of the body of `frame` relative to the body of `on`, at the point p (world).
  template <class T> SARRUS_NOINLINE Motion<T> relative_velocity(ElementCall<T>& e, const Vec3<T>& p) const {
    const LoopState<T>& state = e.bodies();
    Motion<T> V = Motion<T>::zero();
    each_joint_between(e.tree, [&](int b, double side) {
      const Vec3<T> arm = p - state.X[b].p;
      for (int k = e.tree.link[b].iv; k < e.tree.link[b].iv + e.tree.link[b].nv; ++k) {
        const Motion<T>& s = state.column[k];
        const T rate = e.v[k] * T(side);
        V.angular += s.angular * rate, V.linear += (s.linear + cross(s.angular, arm)) * rate;
      }
    });
    return V;
  }

  /// Add the generalised force of the wrench F at the point p (world) on the body of `frame`, and of its opposite.
  template <class T>
  SARRUS_NOINLINE void add_wrench(ElementCall<T>& e, const Vec3<T>& p, const Force<T>& F, T* tau) const {
    const LoopState<T>& state = e.bodies();
    each_joint_between(e.tree, [&](int b, double side) {
      const Vec3<T> f = F.linear * T(side), moment = F.angular * T(side) + cross(Vec3<T>(p - state.X[b].p), f);
      for (int k = e.tree.link[b].iv; k < e.tree.link[b].iv + e.tree.link[b].nv; ++k)
        tau[k] += dot(state.column[k].linear, f) + dot(state.column[k].angular, moment);
    });
  }

  /// Apply the wrench F at the point p (world) to the body of `frame`, and its opposite to the body of `on`.
  template <class T> void push_apart(ElementCall<T>& e, const Vec3<T>& p, const Force<T>& F) const {
    add_wrench(e, p, F, e.tau);
    note_load(e, frame, p, F), note_load(e, on, p, Force<T>(F * T(-1.0)));
  }

  /// True if steps of this scalar type may be implicit in rows.
  template <class T> static constexpr bool takes_rows = std::is_same_v<T, double>;
  /// Add a stiffness and a damping along the row whose unit wrench is F.
  void add_row(ElementCall<double>& e, const Vec3<double>& p, const Force<double>& F, double stiffness, double damping) const {
    if (stiffness == 0.0 && damping == 0.0) return;
    SoftForces& rows = *e.rows;
    double* J = rows.J + rows.count * e.tree.nv;
    std::fill(J, J + e.tree.nv, 0.0);
    add_wrench(e, p, F, J);
    rows.stiffness[rows.count] = stiffness, rows.damping[rows.count++] = damping;
  }

 private:
  /// Call visit(link, side) for each joint between the two bodies; side is 1 on the path to `frame`, and -1 on the path to `on`.
  template <class Visit> SARRUS_INLINE void each_joint_between(const Tree& tree, Visit&& visit) const {
    for (int a = frame.link, b = on.link; a != b;) {  // the index of a parent is less than that of its child
      const bool first = a > b;
      visit(first ? a : b, first ? 1.0 : -1.0);
      (first ? a : b) = tree.link[first ? a : b].parent;
    }
  }
};

}  // namespace sarrus
