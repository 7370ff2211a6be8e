// The rows of any joint that closes a loop.
#pragma once

#include "visit.hpp"

namespace sarrus {

/// The components of [angular; linear] that a joint leaves free, as bits; -1 where its rows are not plain components.
inline int free_components(JointKind kind) {
  return visit_every(kind, 0, [](auto joint) -> int { return joint.free_components; });
}

/// Residual, and where the rows are not plain components the rows and the bias too. V is the relative velocity.
template <class T>
SARRUS_NOINLINE void close_joint(JointKind kind, const JointConstants& k, const Transform<T>& X, const Motion<T>& V,
                                 ClosingJoint<T>& out) {
  out.bias = Motion<T>::zero();
  visit_every(kind, 0, [&](auto joint) { joint.close(k, X, V, out); });
}

}  // namespace sarrus
