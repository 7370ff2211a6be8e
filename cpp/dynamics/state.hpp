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

/// Deflection of a spring: the component x along a velocity, and s, which is x or, for a ball joint, the norm of the rotation vector.
template <class T> struct Deflection {
  T x, s;
};
/// Rotation vector of a ball joint whose spring acts along it, and its norm; zeros for other joints.
template <class T> struct BallDeflection {
  Vec3<T> w = zero3<T>();
  T norm = T(0.0);

  BallDeflection() = default;
  explicit SARRUS_INLINE BallDeflection(const Vec3<T>& vector)
      : w(vector), norm(sqrt(dot(vector, vector) + T(1e-300))) {}  // the constant keeps the derivative at zero finite
};
template <class T>
SARRUS_INLINE Deflection<T> deflection(const PassiveTerms& f, const NumbersOf<T>& numbers, const T* q,
                                       const BallDeflection<T>& ball, int k) {
  if (f.iq < 0) return {ball.w(k < 3 ? k : 2), ball.norm};
  const T x = q[f.iq] - numbers(f.rest);
  return {x, x};
}

/// Return the nonlinear part of the force of a spring, of a damper, and of both; and of the energy of a spring.
template <class T>
SARRUS_INLINE T nonlinear_spring(const NonlinearTerms& f, const NumbersOf<T>& numbers, const Deflection<T>& by) {
  return (numbers(f.quadratic_stiffness) + numbers(f.cubic_stiffness) * by.s) * by.s * by.x;
}
template <class T> SARRUS_INLINE T nonlinear_damper(const NonlinearTerms& f, const NumbersOf<T>& numbers, const T& v) {
  const T speed = abs(v);
  return (numbers(f.quadratic_damping) + numbers(f.cubic_damping) * speed) * speed * v;
}
template <class T>
SARRUS_INLINE T nonlinear_force(const NonlinearTerms& f, const NumbersOf<T>& numbers, const Deflection<T>& by, const T& v) {
  return nonlinear_spring(f, numbers, by) + nonlinear_damper(f, numbers, v);
}
template <class T>
SARRUS_INLINE T nonlinear_energy(const NonlinearTerms& f, const NumbersOf<T>& numbers, const Deflection<T>& by) {
  return (numbers(f.quadratic_stiffness) * T(1.0 / 3.0) + numbers(f.cubic_stiffness) * T(0.25) * by.s) * by.s * by.x * by.x;
}
/// Return the derivative of the force of a spring with respect to x, and of a damper with respect to v.
template <class T>
SARRUS_INLINE T tangent_stiffness(const T& stiffness, const NonlinearTerms& f, const NumbersOf<T>& numbers, const T& x) {
  return stiffness + (T(2.0) * numbers(f.quadratic_stiffness) + T(3.0) * numbers(f.cubic_stiffness) * x) * x;
}
template <class T>
SARRUS_INLINE T tangent_damping(const T& damping, const NonlinearTerms& f, const NumbersOf<T>& numbers, const T& v) {
  const T speed = abs(v);
  return damping + (T(2.0) * numbers(f.quadratic_damping) + T(3.0) * numbers(f.cubic_damping) * speed) * speed;
}

/// Return the force of viscous friction and spring along velocity k.
template <class T>
SARRUS_INLINE T smooth_joint_force(const PassiveTerms& f, const NumbersOf<T>& numbers, const T& v, const Deflection<T>& by) {
  return numbers(f.damping) * v + numbers(f.stiffness) * by.x;
}
/// Return the sum of all linear friction and spring forces that a motor must overcome (4.25, 4.26). Coulomb friction is zero at rest.
template <class T>
SARRUS_INLINE T joint_force(const PassiveTerms& f, const NumbersOf<T>& numbers, const T& v, const Deflection<T>& by) {
  return smooth_joint_force(f, numbers, v, by) + numbers(f.friction) * sign(v);
}
/// Return the energy of the spring along velocity k.
template <class T> SARRUS_INLINE T joint_energy(const PassiveTerms& f, const NumbersOf<T>& numbers, const Deflection<T>& by) {
  return T(0.5) * numbers(f.stiffness) * by.x * by.x + nonlinear_energy(f.nonlinear, numbers, by);
}

/// Add `scale` times the friction and spring forces to tau.
template <class T> void add_joint_forces(const Tree& tree, const T* q, const T* v, const T& scale, T* tau) {
  const auto numbers = tree.numbers<T>();
  for (int i = 1; i < tree.links; ++i) {
    const Link& b = tree.link[i];
    BallDeflection<T> ball;
    if (has_ball_spring(b.described)) ball = BallDeflection<T>(log(Quaternion<T>::load(q + b.iq).normalized()));
    for (int k = 0; k < b.nv; ++k) {
      const PassiveTerms& f = tree.passive[b.iv + k];
      const Deflection<T> by = deflection(f, numbers, q, ball, k);
      T force = joint_force(f, numbers, v[b.iv + k], by);
      if (tree.has_nonlinear_forces) force += nonlinear_force(f.nonlinear, numbers, by, v[b.iv + k]);
      tau[b.iv + k] += scale * force;
    }
  }
}

}  // namespace sarrus
