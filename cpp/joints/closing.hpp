// Constraint rows of any loop joint, and the motion along the joint.
#pragma once

#include "../spatial/symmetric.hpp"
#include "visit.hpp"

namespace sarrus {

/// Return the free components of a joint in [angular; linear], as bits; -1 if its rows are not plain components.
inline int free_components(JointKind kind) {
  return visit_every(kind, 0, [](auto joint) -> int { return joint.free_components; });
}

/// Return the number of constraint rows that the joint has as a loop joint.
inline int closing_row_count(JointKind kind, int nv) {
  return visit_every(kind, nv, [&](auto joint) -> int { return joint.is_unconstrained ? 0 : 6 - nv; });
}

/// Compute the residual and, if the rows are not plain components, also the rows and the bias. V is the relative velocity.
template <class T>
SARRUS_NOINLINE void close_joint(JointKind kind, const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>& V,
                                 ClosingJoint<T>& out) {
  out.bias = Motion<T>::zero();
  visit_every(kind, 0, [&](auto joint) { joint.close(k, X, V, out); });
}

/// A joint between two frames of known pose and velocity: its coordinates and velocities, and the wrenches psi of unit forces along it. psi is the
/// dual basis of its motion space phi, psi^T phi = 1 (van der Merwe 2.12). On the loops V = phi v, so that
///
///   v = psi^T V,    v-dot = psi^T (A - phi-dot v)
///
/// where A is the apparent derivative of V. Therefore the rate of psi is not needed.
template <class T> struct ReadJoint {
  T q[7], v[6];
  Force<T> psi[6];
  Motion<T> bias;  // phi-dot v
  bool rates = false;  // true: the next member is computed too
  Force<T> psi_rate[6];  // psi-dot
};

/// Read the joint at the pose X. `near`: reference coordinates; if several coordinates have the same pose, those nearest to the reference are
/// returned.
template <class T>
SARRUS_NOINLINE void read_joint(JointKind kind, int nv, const JointNumbers<T>& k, const Transform<T>& X, const Motion<T>& V,
                                const T* near, ReadJoint<T>& out) {
  visit_every(kind, nv, [&](auto joint) {
    constexpr int n = decltype(joint)::nv, capacity = n > 0 ? n : 1;
    joint.read(k, X, near, out.q);
    if constexpr (joint.is_unconstrained) return joint.measure(k, X, V, out);
    T angle[3], sin[3], cos[3];
    int angles = 0, listed = 0, at = 0;
    for (const Coordinate& c : joint.coordinates) {
      if (!joint.has(*k.constants, listed++)) continue;
      if (c.is_angle()) angle[angles++] = out.q[at];
      ++at;
    }
    sincos(angles, angle, sin, cos);
    const Coordinates<T> coordinates = {out.q, sin, cos, k};
    const auto phi = joint.subspace(coordinates);
    T inverse[6 * capacity];  // inverse of phi^T phi
    if constexpr (joint.free_components != combined) {
      for (int i = 0; i < n; ++i) {
        out.psi[i] = {phi.column[i].angular, phi.column[i].linear};
        for (int j = 0; j < n; ++j) inverse[6 * i + j] = T(i == j ? 1.0 : 0.0);
      }
    } else {
      T G[capacity][capacity], size[capacity];
      for (int i = 0; i < n; ++i) {
        const Force<T> dual = {phi.column[i].angular, phi.column[i].linear};
        for (int j = 0; j < n; ++j) G[j][i] = dot(phi.column[j], dual);
        size[i] = G[i][i];
      }
      invert_symmetric(n, G, size, inverse);
      for (int i = 0; i < n; ++i) {
        out.psi[i] = Force<T>::zero();
        for (int j = 0; j < n; ++j) out.psi[i] += Force<T>{phi.column[j].angular, phi.column[j].linear} * inverse[6 * i + j];
      }
    }
    for (int i = 0; i < n; ++i) out.v[i] = dot(V, out.psi[i]);
    const auto phi_rate = joint.subspace_rate(coordinates, out.v);
    out.bias = phi_rate * out.v;
    if (!out.rates) return;
    // psi phi^T phi = phi, so psi-dot phi^T phi = phi-dot - psi (phi-dot^T phi + phi^T phi-dot)
    const auto as_force = [](const Motion<T>& m) { return Force<T>{m.angular, m.linear}; };
    Force<T> change[capacity];
    for (int i = 0; i < n; ++i) {
      change[i] = out.psi_rate[i] = as_force(phi_rate.column[i]);
      for (int j = 0; j < n; ++j)
        change[i] -=
            out.psi[j] * (dot(phi_rate.column[i], as_force(phi.column[j])) + dot(phi.column[i], as_force(phi_rate.column[j])));
    }
    for (int i = 0; i < n; ++i) {
      out.psi_rate[i] = Force<T>::zero();
      for (int j = 0; j < n; ++j) out.psi_rate[i] += change[j] * inverse[6 * i + j];
    }
  });
}

}  // namespace sarrus
