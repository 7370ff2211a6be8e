// The mechanism cut into substructures. In joint coordinates the mass matrix of a long chain is full, and so are the rows of a loop around
// many joints. Cut at some joints of the tree, each piece floats with six velocities of its own, and the joints at the cuts are rows like
// those that close loops: M is then a block a piece, and the cost of a factor follows the graph (loops/substructures.hpp has the equation).
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "fronts.hpp"

namespace sarrus {

/// Owns what Loops::substructures points to.
class SubstructuredMechanism {
 public:
  /// At most so many bodies a piece. Joints are cut whose rows are plain components and that no relation between coordinates touches, and
  /// where the body behind them has inertia in every direction.
  SubstructuredMechanism(const Tree& tree, int bodies);
  SubstructuredMechanism(const SubstructuredMechanism&) = delete;
  SubstructuredMechanism& operator=(const SubstructuredMechanism&) = delete;

  bool cuts_something() const { return view_.cuts > 0; }
  double operations() const { return operations_; }  // multiplications of one factor, and of what fills it
  const Substructures& view() const { return view_; }

 private:
  std::vector<char> cut(const Tree& tree, int bodies) const;
  void span(const Tree& tree, const std::vector<char>& is_cut);
  void between(Constraint& c);
  void add(Constraint c);
  const int* keep(std::vector<int> numbers);

  std::vector<Body> bodies_;
  std::vector<PassiveTerms> passive_terms_;
  std::vector<int> column_body_, column_parent_, column_depth_, mass_first_, from_, velocity_;
  std::vector<double> compliance_;
  std::vector<Constraint> constraints_;
  std::deque<std::vector<int>> columns_;  // a deque: what it holds stays where it is
  FrontalPlan dynamics_, statics_;
  double operations_ = 0.0;
  Tree tree_{};
  Substructures view_{};
};

/// With at most so many bodies in each, or (0) as many as cost least; null: it cannot be cut.
std::unique_ptr<SubstructuredMechanism> substructured(const Tree& tree, int bodies);

}  // namespace sarrus
