// Recorded expressions as a C99 function: straight lines without a branch, a loop, a call but of sarrus_turn and math.h, or memory of its own.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace sarrus {

using NamedIds = std::vector<std::pair<std::string, Ids>>;

struct C99Function {
  std::string declaration, definition;
  std::vector<std::pair<std::string, int>> operations;  // how many of each, in words
  int statements, alive;  // alive: numbers at once, at most
  bool turns;  // whether it calls sarrus_turn, for sine and cosine together
};

/// `status`: an expression that the function returns as an int, or -1. Results may stand where arguments stood.
C99Function c99(const Graph& graph, const std::string& name, const NamedIds& inputs, const NamedIds& outputs, int status);

/// Beginning of a file with such functions, without comments: sarrus_turn.
std::string c99_turn(bool single);

}  // namespace sarrus
