// Conversion of recorded expressions to a C99 function: straight-line code without branches, loops and static memory; it calls only sarrus_turn,
// functions of math.h, and the functions that the graph calls.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace sarrus {

using NamedIds = std::vector<std::pair<std::string, Ids>>;

struct C99Function {
  std::string declaration, definition;
  std::vector<std::string> called;  // definitions of the functions that it calls, each after those that it calls itself
  std::vector<std::pair<std::string, int>> operations;  // name of each operation, and how often it occurs
  int statements, alive;  // with those of called functions; alive: largest number of simultaneously live values
  bool turns;  // true if the function calls sarrus_turn, which computes sine and cosine together
};

/// Generate a function. `status`: index of the expression that the function returns as an int, or -1. Results may overwrite arguments. `for_gpu`: long
/// code is ordered for the registers of a GPU, which is slower on processors.
C99Function c99(const Graph& graph, const std::string& name, const NamedIds& inputs, const NamedIds& outputs, int status,
                bool for_gpu = false);

/// Return the function sarrus_turn, without comments; it is written at the beginning of a file with such functions.
std::string c99_turn(bool single);

}  // namespace sarrus
