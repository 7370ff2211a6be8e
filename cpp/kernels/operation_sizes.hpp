// Lengths of an operation's inputs and results, computed from the letters in operation_list.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "../dynamics/dimensions.hpp"
#include "../loops/branch_outcome.hpp"
#include "operation_list.hpp"

namespace sarrus {

/// Length of an input, by category.
enum class InputSize : char {
  q,
  v,
  six,
  cached,
  scalar,
  rows,
  pfaffian_values,
  scale,
  gains,
  steps,
  coordinates,
  piece,
  guide,
  waypoints,
  displacements,
  near,
  loop_efforts,
  forces,
  loads,
  compliance,
  weights,
  preload,
  efforts,
  two_of_efforts
};

/// Return the length of an input with this name. Inputs that this function does not list have one value per velocity.
inline InputSize size_by_name(const std::string& input) {
  static const std::pair<const char*, InputSize> named[] = {{"time", InputSize::scalar},
                                                            {"restitution", InputSize::scalar},
                                                            {"tangent", InputSize::scalar},
                                                            {"momentum", InputSize::six},
                                                            {"cached", InputSize::cached},
                                                            {"multipliers", InputSize::rows},
                                                            {"rates", InputSize::rows},
                                                            {"pfaffian_values", InputSize::pfaffian_values},
                                                            {"pfaffian_rates", InputSize::pfaffian_values},
                                                            {"scale", InputSize::scale},
                                                            {"gains", InputSize::gains},
                                                            {"steps", InputSize::steps},
                                                            {"coordinates", InputSize::coordinates},
                                                            {"piece", InputSize::piece},
                                                            {"guide", InputSize::guide},
                                                            {"waypoints", InputSize::waypoints},
                                                            {"near", InputSize::near},
                                                            {"loop_efforts", InputSize::loop_efforts},
                                                            {"forces", InputSize::forces},
                                                            {"loads", InputSize::loads},
                                                            {"compliance", InputSize::compliance},
                                                            {"least_pivot", InputSize::scalar},
                                                            {"weights", InputSize::weights},
                                                            {"preload", InputSize::preload},
                                                            {"displacements", InputSize::displacements},
                                                            {"effort_cotangent", InputSize::efforts},
                                                            {"limits", InputSize::two_of_efforts},
                                                            {"sharing", InputSize::two_of_efforts}};
  for (const auto& [name, size] : named)
    if (input == name) return size;
  if (input.rfind("base_", 0) == 0) return InputSize::six;
  return input[0] == 'q' ? InputSize::q : InputSize::v;
}

inline int size_of(InputSize size, const Tree& t) {
  switch (size) {
    case InputSize::q: return t.nq;
    case InputSize::v: return t.nv;
    case InputSize::six: return 6;
    case InputSize::cached: return cached_kinematics_size(t);
    case InputSize::scalar: return 1;
    case InputSize::rows: return t.loops.rows;
    case InputSize::pfaffian_values: return t.loops.pfaffian_values;
    case InputSize::scale: return t.nv + t.loops.rows;
    case InputSize::gains: return t.loops.actuators + 6;
    case InputSize::steps: return 3;
    case InputSize::coordinates: return t.nv + 6;
    case InputSize::piece: return 2 * (t.nq + t.nv + 1);
    case InputSize::guide: return 1 + 2 * t.nv * t.nv;
    case InputSize::waypoints: return 1 + t.nq + t.loops.pfaffian_values;  // length for one waypoint
    case InputSize::displacements: return 3 * t.nv;
    case InputSize::near: return t.loop_nq;
    case InputSize::loop_efforts: return t.loop_nv;
    case InputSize::forces: return t.nv + t.loop_nv;
    case InputSize::loads: return 6 * (t.bodies - 1 + t.loops.constraints);
    case InputSize::compliance: return 36 * (t.bodies - 1 + t.loops.constraints);
    case InputSize::weights:
    case InputSize::efforts:
    case InputSize::preload: return t.loops.actuators;
    case InputSize::two_of_efforts: return 2 * t.loops.actuators;
  }
  return 0;
}

/// Return true if `numbers` is a valid length of a row of an input whose nominal length is `length`.
inline bool fits(InputSize size, std::int64_t numbers, const Tree& t) {
  const int expected = size_of(size, t);
  return size == InputSize::waypoints ? numbers > 0 && numbers % expected == 0 : numbers == expected;
}

inline int size_of_input(const std::string& input, const Tree& t) { return size_of(size_by_name(input), t); }

/// Inputs of a call on which the lengths of results depend.
struct SizeInputs {
  const double* independent = nullptr;
  int inputs = 0;  // number of waypoints
};

/// Return the length of the results of a linearisation (loops/linear_equations.hpp), where n is the number of coordinates of configuration and
/// velocity together.
inline int linear_equations_size(int nv, int n) { return 5 + n * (1 + 2 * nv + n); }

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
    case 'C': return t.loops.rows + 6 * (t.bodies - 1 + t.loops.constraints);
    case 'T': return t.nv + t.loop_nv + t.loops.rows + 6 * (t.bodies - 1 + t.loops.constraints);  // mobility/joint_wrenches.hpp
    case 'u': return t.loops.actuators;
    case 'B': return t.loops.actuators + 1;
    case 'Q': return t.nq + 1;
    case 'A': return t.nq + branch_outcome::numbers;
    case 'E': return t.nq + t.loops.rows + t.nv * (3 + 2 * t.nv) + 2;
    case 'D': return t.nv * (6 * t.nv + 2);
    case 'L': return linear_equations_size(t.nv, 2 * t.nv) + t.nv;  // largest length, and the indices of the coordinates
    case 'N': return Dimensions<double>::size(t);
    case 'G': return 3 * t.nv + 10 * (t.bodies - 1);
    case 'H': return t.nv + 10 * (t.bodies - 1);
    case 'F': return t.nv * t.nv + 1;
    case 'S': return t.nq + 2 * t.nv + 1;
    case 'R': return 3 + t.nv * (5 + 3 * t.nv);
    case 'W': return 1;  // multiplied by the number of waypoints
    case 'J': return t.loop_nq;
    case 'K': return t.loop_nv;
    case 'i': return t.nv + t.loops.rows;
    case 'm': return t.nv + t.loops.rows + 3;
    default: return axis - '0';
  }
}

}  // namespace sarrus
