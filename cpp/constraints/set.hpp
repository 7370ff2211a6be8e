// The set of all kinds of constraint, a line each, and the one switch over them.
#pragma once

#include <variant>

#include "coupler.hpp"
#include "distance.hpp"
#include "loop_joint.hpp"
#include "pfaffian.hpp"
#include "rolling.hpp"

namespace sarrus {

using AnyConstraint = std::variant<  //
    LoopJoint,                       //
    Distance,                        //
    Rolling,                         //
    Coupler,                         //
    Pfaffian                         //
    >;

/// Calls `ask` with the kind as it is.
template <int I = 0, class Any, class Ask> SARRUS_INLINE auto visit_constraint(Any& any, Ask&& ask) {
  if constexpr (I + 1 < std::variant_size_v<AnyConstraint>)
    if (any.index() != I) return visit_constraint<I + 1>(any, ask);
  return ask(*std::get_if<I>(&any));
}

/// The kind of that name with its numbers still to come; what it holds is a LoopJoint where there is none.
template <int I = 1> AnyConstraint constraint_named(const std::string& name) {
  if constexpr (I < std::variant_size_v<AnyConstraint>) {
    using Kind = std::variant_alternative_t<I, AnyConstraint>;
    if (name == Kind::name) return Kind();
    return constraint_named<I + 1>(name);
  }
  return LoopJoint();
}

}  // namespace sarrus
