// Yoshikawa's measure of how well motors move a frame: the product of the singular values of V = G u-dot.
#pragma once

#include "scaled_loops.hpp"

namespace sarrus {

struct Manipulability {
  double measure;
  Vector singular_values;

  template <class Field> void fields(Field field) { field("measure", measure), field("singular_values", singular_values); }
};

inline Manipulability manipulability(const StateFunctions& functions, const double* q, const Frame& frame) {
  RowMajor G(6, functions.tree().loops.actuators);
  functions.evaluate(Operation::loop_jacobian, {q}, G.data(), frame);
  const Vector values = singular_values(G);
  return {values.prod(), values};
}

}  // namespace sarrus
