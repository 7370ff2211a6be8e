// A straight line of action between two bodies, whose length is a coordinate. A cable has no constraint rows, and is never a tree joint. Motors,
// springs and stops act along it, as along any joint.
//
// At the parent's end, the cable may run over a pulley of radius r. The cable arrives at the joint's origin along +z, tangent to the rim, and the
// pulley swivels about that tangent so that the child's point p is in its plane. With rho = |(x, y)|, the pulley's centre is at (r, 0) in the plane
// (rho, z), and d = (rho - r, z) is the vector from the centre to p (Pott 2018, 3.4, without the derivatives):
//
//   t = sqrt(d.d - r^2)                        straight part      sin a = (d_rho t + d_z r) / d.d,  cos a = (d_rho r - d_z t) / d.d
//   q = r theta + t,   theta = pi - a          length of the cable from the joint's origin
//   n = (sin a, -cos a)                        direction of the straight part, away from the pulley: q-dot = n . p-dot
//   n-dot = (p-dot - n n.p-dot)/t + (sin a / rho - 1/t) e e.p-dot     e: normal of the plane; without a pulley only the first term
//
// If p is inside the pulley, the result is NaN. All vectors are in the parent's rotating axes; psi and its rate are in the child's axes.
#pragma once
#include "closing_rows.hpp"

namespace sarrus {

struct Cable : OneAxis, UnitSubspace<tz>, VectorCoordinates<1> {
  static constexpr const char* name = "Cable";
  static constexpr CoordinateList coordinates = {{"", "m"}}, velocities = coordinates;
  static constexpr int free_components = combined;
  static constexpr bool is_unconstrained = true;
  template <class F> static void fields(JointConstants& k, F field) { field("radius", k.number[0], "m"); }

  template <class T> struct Line {
    T length, straight, across;  // length of the cable; length of its straight part; sin a / rho (see above)
    Vec3<T> n;
  };
  template <class T> static Line<T> line(const JointNumbers<T>& k, const Vec3<T>& p) {
    const T tiny = T(1e-300), r = k[0], &z = p(2);
    const T rho = sqrt(p(0) * p(0) + p(1) * p(1) + tiny), d = rho - r, square = d * d + z * z + tiny, t = sqrt(square - r * r);
    const T cosine = (d * r - z * t) / square;
    // if p approaches the cable's axis in front of the pulley, sin a and rho both tend to zero; then use z^2 - t^2 = rho (2 r - rho)
    const auto before = z > T(0.0), straight = r < tiny;
    const T near = (t + r * (r + r - rho) / select(before, z + t, T(1.0))) / square;
    const T across = select(before, near, select(straight, near, (d * t + z * r) / (square * rho)));
    return {r * (T(M_PI) - atan2(across * rho, cosine)) + t, t, across, vec3<T>(across * p(0), across * p(1), -cosine)};
  }

  template <class T> static void read(const JointNumbers<T>& k, const Transform<T>& X, const T*, T* q) {
    q[0] = line(k, X.p).length;
  }
  /// Compute psi, its rate, and the bias. V is the relative velocity in the child's axes.
  template <class T, class Read>
  static void measure(const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>& V, Read& out) {
    const Line<T> l = line(k, X.p);
    const Vec3<T> u = X.R * V.linear, n = transpose_times(X.R, l.n);
    const T inverse = T(1.0) / l.straight, square = X.p(0) * X.p(0) + X.p(1) * X.p(1) + T(1e-300);
    const T swing = (l.across - inverse) * (X.p(0) * u(1) - X.p(1) * u(0)) / square;
    const Vec3<T> turns = (u - l.n * dot(l.n, u)) * inverse + vec3<T>(-X.p(1) * swing, X.p(0) * swing, T(0.0));
    out.psi[0] = {zero3<T>(), n};
    out.v[0] = dot(n, V.linear);
    out.psi_rate[0] = {zero3<T>(), Vec3<T>(transpose_times(X.R, turns) - cross(V.angular, n))};
    out.bias = {zero3<T>(), Vec3<T>(n * -dot(V, out.psi_rate[0]))};
  }

  // never called, because a cable is never a tree joint
  template <class T> static Transform<T> transform(const Coordinates<T>& c) {
    return {Mat3<T>(Mat3<T>::Identity()), vec3<T>(T(0.0), T(0.0), c.q[0])};
  }
  template <class T> static void close(const JointNumbers<T>&, const Transform<T>&, const Motion<T>&, ClosingJoint<T>&) {}
};

}  // namespace sarrus
