// Data that the recursions share: sines and cosines of all angles of a state, evaluated in one pass, and their indices by joint.
#pragma once

#include "../joints/visit.hpp"
#include "../mechanism/arena.hpp"
#include "../mechanism/tree.hpp"

namespace sarrus {

template <class T> class JointCoordinates {
 public:
  SARRUS_INLINE JointCoordinates(const Tree& tree, Arena& arena, const T* q) : q_(q), numbers_(tree.numbers<T>()) {
    T* angle = arena.take<T>(3 * tree.angles);
    sin_ = angle + tree.angles;
    cos_ = sin_ + tree.angles;
    for (int i = 0; i < tree.angles; ++i) angle[i] = q[tree.angle[i]];
    sincos(tree.angles, angle, sin_, cos_);
  }
  SARRUS_INLINE Coordinates<T> of(const Link& b) const {
    return {q_ + b.iq, sin_ + b.iangle, cos_ + b.iangle, {&b.constants, numbers_}};
  }

 private:
  const T* q_;
  T *sin_, *cos_;
  NumbersOf<T> numbers_;
};

/// Poses of the bodies in their parents. They are members of the array elements of a recursion, so successive poses are `stride` bytes apart.
template <class T> struct Poses {
  const Transform<T>* first;
  std::size_t stride = sizeof(Transform<T>);
  SARRUS_INLINE const Transform<T>& operator[](int i) const {
    return *reinterpret_cast<const Transform<T>*>(reinterpret_cast<const char*>(first) + i * stride);
  }
};

/// Poses of all bodies in their parents, and the columns of the joints that visit() does not inline.
template <class T> SARRUS_INLINE void joint_poses(const Tree& tree, Arena& arena, const T* q, Transform<T>* X,
                                                  Motion<T>* columns) {
  const JointCoordinates<T> coordinates(tree, arena, q);
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    visit(b.joint, b.nv, [&](auto joint) SARRUS_INLINED {
      X[i] = tree.numbers<T>()(b.X_tree) *
             joint.evaluate(b.joint, coordinates.of(b), static_cast<const T*>(nullptr), columns + b.iv).X;
    });
  }
}

template <class T> SARRUS_INLINE const T* zeros(Arena& arena, int n) {
  T* z = arena.take<T>(n);
  for (int i = 0; i < n; ++i) z[i] = T(0.0);
  return z;
}

/// Velocity and classical acceleration of the ground, six numbers each, without gravity; null: at rest.
template <class T> struct GroundMotion {
  const T* velocity = nullptr;
  const T* acceleration = nullptr;
};

/// External wrench [moment; force] on the mechanism, at the origin and in the axes of a frame that has the pose X in a body.
template <class T> struct ExternalWrench {
  int link, body;
  Transform<T> X;
  const T* value;
  SARRUS_INLINE Force<T> in_link() const { return X.to_parent(load_force(value)); }
};

template <class T>
SARRUS_INLINE T deflection(const PassiveTerms& f, const NumbersOf<T>& numbers, const T* q, const T& ball_spring) {
  return f.iq >= 0 ? q[f.iq < 0 ? 0 : f.iq] - numbers(f.rest) : ball_spring;
}
/// Return the force of viscous friction and spring along velocity k.
template <class T>
SARRUS_INLINE T smooth_joint_force(const PassiveTerms& f, const NumbersOf<T>& numbers, const T* q, const T& v,
                                   const T& ball_spring) {
  return numbers(f.damping) * v + numbers(f.stiffness) * deflection(f, numbers, q, ball_spring);
}
/// Return the sum of all friction and spring forces that a motor must overcome (4.25, 4.26). Coulomb friction is zero at rest.
template <class T>
SARRUS_INLINE T joint_force(const PassiveTerms& f, const NumbersOf<T>& numbers, const T* q, const T& v, const T& ball_spring) {
  return smooth_joint_force(f, numbers, q, v, ball_spring) + numbers(f.friction) * sign(v);
}
/// Return the energy of the spring along velocity k.
template <class T>
SARRUS_INLINE T joint_energy(const PassiveTerms& f, const NumbersOf<T>& numbers, const T* q, const T& ball_spring) {
  const T by = deflection(f, numbers, q, ball_spring);
  return T(0.5) * numbers(f.stiffness) * by * by;
}

/// Add `scale` times the friction and spring forces to tau.
template <class T> void add_joint_forces(const Tree& tree, const T* q, const T* v, const T& scale, T* tau) {
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    Vec3<T> ball = zero3<T>();
    if (has_ball_spring(b.described)) ball = log(Quaternion<T>::load(q + b.iq).normalized());
    for (int k = 0; k < b.nv; ++k)
      tau[b.iv + k] += scale * joint_force(tree.passive[b.iv + k], tree.numbers<T>(), q, v[b.iv + k], ball(k < 3 ? k : 2));
  }
}

}  // namespace sarrus
