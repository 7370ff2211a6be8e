// The order in which a mechanism's unknowns are eliminated, computed once, and the indices of the entries of L D L^T.
#pragma once

#include <functional>
#include <vector>

#include "tree.hpp"

namespace sarrus {

/// Owns the arrays of an Elimination.
class EliminationPlan {
 public:
  EliminationPlan() = default;
  /// Create the plan for the first `constraints` constraints of the tree. with_mass: M has off-diagonal entries. The search ends if the factorisation
  /// needs more than `most` multiplications. `check_interrupt` is called repeatedly; an exception that it throws ends the search.
  EliminationPlan(const Tree& tree, const Constraint* constraint, int constraints, int rows, bool with_mass, double most,
                  const std::function<void()>& check_interrupt);

  bool complete() const { return operations_ <= most_; }
  double operations() const { return operations_; }  // multiplications of one factorisation, including its assembly
  Elimination view() const;

 private:
  void order(const Tree&, const Constraint*, int constraints, int rows, const std::vector<std::vector<int>>& meets,
             bool with_mass, const std::function<void()>& check_interrupt);
  void fill(std::vector<std::vector<int>> later, const std::function<void()>& check_interrupt);
  void collect_panels(const std::function<void()>& check_interrupt);

  double operations_ = 0.0, most_ = 0.0;
  std::vector<int> unknown_, place_, first_, column_, neighbour_, panel_, before_, before_row_, before_slot_, run_, target_,
      mass_slot_, jacobian_slot_;
};

}  // namespace sarrus
