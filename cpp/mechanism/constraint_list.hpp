// The constraints on a tree during construction: for each, its index among the rows, and the velocities on which it depends.
#pragma once

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "tree.hpp"

namespace sarrus {

class ConstraintList {
 public:
  /// Set the columns of a constraint: the velocities that move only one of its two bodies. A velocity that moves both bodies does not change their
  /// relative motion.
  void between(const Tree& tree, Constraint& c) {
    const auto path_to_ground = [&](int link) {
      std::vector<int> columns;
      for (int b = link; b != 0; b = tree.link[b].parent)
        for (int k = tree.link[b].nv - 1; k >= 0; --k) columns.push_back(tree.link[b].iv + k);
      return columns;
    };
    std::vector<int> columns = path_to_ground(c.child), rest = path_to_ground(c.parent);
    while (!columns.empty() && !rest.empty() && columns.back() == rest.back()) columns.pop_back(), rest.pop_back();
    c.child_columns = static_cast<int>(columns.size());
    columns.insert(columns.end(), rest.begin(), rest.end());
    c.columns = static_cast<int>(columns.size()), c.column = keep(std::move(columns));
  }

  void add(Loops& loops, Constraint c) {
    c.rows = visit_constraint(c.kind, [](const auto& kind) { return kind.rows(); });
    c.row = loops.rows, c.entry = loops.entries;
    loops.rows += c.rows, loops.entries += c.rows * c.columns;
    constraints_.push_back(std::move(c));
  }

  const int* keep(std::vector<int> numbers) {
    kept_->push_back(std::move(numbers));
    return kept_->back().data();
  }

  int size() const { return static_cast<int>(constraints_.size()); }
  const Constraint* data() const { return constraints_.data(); }
  Constraint& operator[](int i) { return constraints_[i]; }
  const Constraint& last() const { return constraints_.back(); }

 private:
  std::vector<Constraint> constraints_;
  // a deque, because its items never move in memory; copies of the list also point to them
  std::shared_ptr<std::deque<std::vector<int>>> kept_ = std::make_shared<std::deque<std::vector<int>>>();
};

}  // namespace sarrus
