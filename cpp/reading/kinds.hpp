// The kinds of force elements, by their names.
#pragma once

#include <tuple>
#include <type_traits>

#include "elements.hpp"

namespace sarrus::reading {

/// Call visit(kind) for each kind that has a name, with default values, in the order of evaluation.
template <class Visit> void each_kind(Visit&& visit) {
  const auto named = [&](const auto& none) {
    using Kind = typename std::decay_t<decltype(none)>::Kind;
    if (*Kind::name) visit(Kind{});
  };
  std::apply([&](const auto&... none) { (named(none), ...); }, EveryKind<Elements>());
}

}  // namespace sarrus::reading
