// How many numbers an operation takes and gives, by the words of operation_list.hpp.
#pragma once

#include <string>

#include "operation_list.hpp"

namespace sarrus {

inline int size_of_input(const std::string& input, const Tree& t) {
  if (input[0] == 'q') return t.nq;
  if (input == "time" || input == "restitution" || input == "tangent") return 1;
  if (input == "near") return t.loop_nq;
  if (input == "loop_efforts") return t.loop_nv;
  if (input == "multipliers" || input == "rates") return t.loops.rows;
  if (input == "pfaffian_values" || input == "pfaffian_rates") return t.loops.pfaffian_values;
  if (input == "scale") return t.nv + t.loops.rows;
  if (input == "weights" || input == "preload" || input == "effort_cotangent") return t.loops.actuators;
  if (input == "gains") return t.loops.actuators + 6;
  if (input == "coordinates") return t.nv + 6;
  if (input == "piece") return 2 * (t.nq + t.nv + 1);
  if (input == "displacements") return 3 * t.nv;
  if (input == "guide") return 1 + 2 * t.nv * t.nv;
  if (input == "steps") return 3;
  if (input == "momentum") return 6;
  if (input == "cached") return cached_kinematics_size(t);
  return input.rfind("base_", 0) == 0 ? 6 : t.nv;
}

inline int size_of_axis(char axis, const Tree& t) {
  switch (axis) {
    case 'q': return t.nq;
    case 'v': return t.nv;
    case 'p': return t.bodies - 1;
    case 'P': return 10 * (t.bodies - 1);
    case 'k': return cached_kinematics_size(t);
    case 'j': return t.floats ? t.nv - 6 : 0;
    case 'c': return t.loops.rows;
    case 'w': return t.loops.constraints;
    case 'l': return t.bodies - 1 + t.loops.constraints;
    case 'u': return t.loops.actuators;
    case 'Q': return t.nq + 1;
    case 'E': return t.nq + t.loops.rows + t.nv * (3 + t.nv) + 2;
    case 'D': return t.nv * (6 * t.nv + 2);
    case 'G': return 3 * t.nv + 10 * (t.bodies - 1);
    case 'F': return t.nv * t.nv + 1;
    case 'S': return t.nq + 2 * t.nv + 1;
    case 'R': return 3 + t.nv * (5 + 3 * t.nv);
    case 'J': return t.loop_nq;
    case 'K': return t.loop_nv;
    case 'i': return t.nv + t.loops.rows;
    case 'm': return t.nv + t.loops.rows + 2;
    default: return axis - '0';
  }
}

}  // namespace sarrus
