// List of all constraint types, one per line, and the only switch over them.
#pragma once

#include <variant>

#include "coupler.hpp"
#include "distance.hpp"
#include "loop_joint.hpp"
#include "pfaffian.hpp"
#include "prescribed_coordinate.hpp"
#include "rolling.hpp"

namespace sarrus {

using AnyConstraint = std::variant<  //
    LoopJoint,                       //
    PrescribedCoordinate,                   //
    Distance,                        //
    Rolling,                         //
    Coupler,                         //
    Pfaffian                         //
    >;

/// Call `visit` with the constraint, converted to its own type.
template <int I = 0, class Any, class Visit> SARRUS_INLINE auto visit_constraint(Any& any, Visit&& visit) {
  if constexpr (I + 1 < std::variant_size_v<AnyConstraint>)
    if (any.index() != I) return visit_constraint<I + 1>(any, visit);
  return visit(*std::get_if<I>(&any));
}

/// Call add(kind) for every constraint type that descriptions name, with unset parameters. Joints, and coordinates that calls prescribe, are not
/// visited.
template <int I = 2, class Add> void each_constraint(Add add) {
  if constexpr (I < std::variant_size_v<AnyConstraint>) {
    add(std::variant_alternative_t<I, AnyConstraint>());
    each_constraint<I + 1>(add);
  }
}

}  // namespace sarrus
