// Removal of redundant constraint rows: loop joints are replaced by joints with more degrees of freedom.
//
// Small inaccuracies of a model, such as an angle of 1.57 instead of pi/2 or an offset of 3e-8 m, make redundant rows inconsistent, and the
// mechanism locks. A loop joint with fewer rows tolerates these inaccuracies. The number r of required rows is the number of singular values of
// R J C (mobility/scaled_loops.hpp) above a tolerance. The replacement is the joint type with the fewest rows; among several, the one with the
// largest r-th singular value.
#pragma once

#include "../mobility/mobility.hpp"
#include "../model/description.hpp"
#include "closure.hpp"

namespace sarrus {

/// `tolerance`: largest singular value that counts as zero, and largest residual of a closed loop [rad, mean sizes of the bodies]. `joints`: names of
/// the loop joints that may be replaced; without a value, all of them.
struct LooseningOptions {
  double tolerance = 3e-3;
  std::optional<Names> joints;
};

/// Joints of the loosened mechanism in the order of the description (no value: the joint is omitted), with hints that keep the spanning tree; and a
/// sentence about each change. If there are no sentences, no row was redundant.
struct Loosened {
  std::vector<std::optional<model::Joint>> joints;
  Names warnings;
};

/// Replace loop joints of a mechanism such that no row is redundant at q (nq). q must close the loops within the tolerance; without a value, the home
/// is used if it closes them, else an assembled configuration. `joints` are those of the description. Raises AssemblyError if the loops are open,
/// and NameNotFoundError if a name is not that of a loop joint. Raises ModelError if no joint can be replaced or q is a singular position.
Loosened without_redundant_constraints(const PositionModel& model, const std::vector<model::Joint>& joints,
                                       const std::optional<Vector>& q = {}, const LooseningOptions& options = {});

}  // namespace sarrus
