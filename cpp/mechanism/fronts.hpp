// Order in which the unknowns of [M J^T; J -mu] of substructures are eliminated by the multifrontal method (Duff and Reid, ACM TOMS 9, 1983). A front
// is the dense matrix of unknowns that are eliminated together, and of all their later neighbours. After their elimination, the remaining matrix is
// added to the front of the first later neighbour. The order is computed once per mechanism.
#pragma once

#include <functional>
#include <vector>

#include "tree.hpp"

namespace sarrus {

/// Plan of an elimination by fronts; owns the arrays of an Elimination.
class FrontalPlan {
 public:
  FrontalPlan() = default;
  /// Each body next to the ground is the base of a substructure, whose velocities are eliminated together. Each of the first `constraints`
  /// constraints of the tree is eliminated after all substructures to which it is attached. The constraints are in an order with little fill-in
  /// (approximate minimum degree: Amestoy, Davis and Duff). `check_interrupt`: as for EliminationPlan.
  FrontalPlan(const Tree& tree, const Constraint* constraint, int constraints, const std::function<void()>& check_interrupt);

  Elimination view() const;
  double operations() const { return operations_; }  // multiplications of one factor

 private:
  struct Block;
  /// A block, perhaps merged from several blocks. Members: its parent, or -1; number of unknowns that its front eliminates; number of their later
  /// neighbours; the child whose front it continues, or -1; true if the parent continues its front.
  struct Merged {
    int parent = -1, pivots = 0, later = 0, heir_of = -1;
    bool inherited = false;
    std::vector<int> children{};
  };
  std::vector<Block> blocks(const Tree&, const Constraint*, int constraints) const;
  static std::vector<Merged> merge(std::vector<Block>& block, const std::function<void()>& check_interrupt);
  static std::vector<int> postorder(std::vector<Merged>& all);
  void build(std::vector<Block>& block, int unknowns, const std::function<void()>& check_interrupt);
  void link_fronts(const std::function<void()>& check_interrupt);
  void size_stack();
  void locate_entries(const Tree&, const Constraint*, int constraints, const std::function<void()>& check_interrupt);
  int find(const Front& front, int position) const;

  std::vector<Front> front_;
  std::vector<int> unknown_, place_, later_, into_, front_of_, mass_entry_, mass_slot_, jacobian_entry_, jacobian_slot_;
  int slots_ = 0, stack_ = 0, widest_ = 0, largest_ = 0;
  double operations_ = 0.0;
};

}  // namespace sarrus
