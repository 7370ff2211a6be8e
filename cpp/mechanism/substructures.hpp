// The mechanism cut into substructures. In joint coordinates the mass matrix of a long chain is dense, and so are the rows of a loop around many
// joints. If the chain is cut at some joints of the tree, each substructure becomes a floating base with six velocities, and the cut joints become
// constraint rows, like loop joints. M then has one block per substructure, and the cost of a factorisation depends on the connections between
// substructures (equation: loops/substructures.hpp).
#pragma once

#include <memory>
#include <vector>

#include "constraint_list.hpp"
#include "fronts.hpp"

namespace sarrus {

/// Owner of Loops::substructures.
class SubstructuredMechanism {
 public:
  /// Cut a tree into substructures of at most `links` links. A joint may be cut if its rows are plain components and no constraint between
  /// coordinates uses it. The body beyond it must have inertia in every direction, or at least in the directions that its joint leaves free, like a
  /// thin rod on a pin. The joint constrains the other directions, so that M together with the rows is regular. `check_interrupt`: as for
  /// EliminationPlan.
  SubstructuredMechanism(const Tree& tree, int links, const std::function<void()>& check_interrupt);
  /// Make the same cuts as `other`, with the parameters of this tree.
  SubstructuredMechanism(const SubstructuredMechanism& other, const Tree& tree);
  SubstructuredMechanism& operator=(const SubstructuredMechanism&) = delete;

  /// Copy the parameters of a tree: the one from which this object was made, or a copy of it.
  void take_numbers(const Tree& tree) {
    bake(tree);
    view_.tree = tree_;
  }
  bool cuts_something() const { return view_.cuts > 0; }
  double operations() const { return operations_; }  // multiplications of one factorisation, including its assembly
  const Substructures& view() const { return view_; }

 private:
  friend class Variants;
  SubstructuredMechanism(const SubstructuredMechanism&) = default;
  std::vector<char> cut(const Tree& tree, int links) const;
  void span(const Tree& tree, const std::vector<char>& is_cut);
  void add(Constraint c, int source);
  void repeat(const Tree& tree, int constraint);
  std::vector<Constraint> join_cuts(const Tree& tree, const std::vector<char>& is_cut,
                                    const std::function<void()>& check_interrupt);
  void add_motions(const Tree& tree, const std::vector<Constraint>& motion, bool with_armature);
  void point();
  void bake(const Tree& tree);

  std::vector<Link> links_;
  std::vector<PassiveTerms> passive_terms_;
  std::vector<int> column_link_, column_parent_, column_depth_, mass_first_, from_, velocity_;
  std::vector<int> carried_;  // the bodies whose joint is cut
  std::vector<int> source_;  // for each constraint: index of the tree's constraint, or -1 - the body whose joint is cut
  std::vector<int> compliant_;  // armature of each compliant row: index of the velocity, or -1 - the index of a rotor
  std::vector<double> compliance_, lacking_, unit_, per_unit_square_;
  std::vector<char> lacks_inertia_;
  ConstraintList constraints_;
  std::shared_ptr<const FrontalPlan> dynamics_, statics_;
  double operations_ = 0.0;
  Tree tree_{};
  Substructures view_{};
};

/// Return, for each link, true if its joint may be cut: the body has enough inertia to float, and no constraint uses the joint's coordinates.
std::vector<char> may_float(const Tree& tree);
/// Return true if a link has inertia in the directions that its joint leaves free. If this is false for any link, a link may only float if it has
/// inertia in all directions.
bool has_inertia_where_free(const Link& b);

/// Cut a tree into substructures of at most `links` links; 0: the number of least cost. Null if no cut is possible.
std::unique_ptr<SubstructuredMechanism> substructured(const Tree& tree, int links, const std::function<void()>& check_interrupt);

}  // namespace sarrus
