#include "fronts.hpp"

#include <Eigen/OrderingMethods>
#include <Eigen/SparseCore>
#include <algorithm>
#include <iterator>

namespace sarrus {
namespace {

/// Merge the sorted list b, except its first entry, into the sorted list a.
void unite_rest(std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin() + 1, b.end(), std::back_inserter(both));
  a.swap(both);
}

/// Order the constraints for little fill-in. Two constraints are neighbours if they are attached to the same substructure.
std::vector<int> order_of_little_fill(int constraints, const std::vector<std::vector<int>>& touching) {
  std::vector<Eigen::Triplet<char, int>> meets;
  for (const std::vector<int>& list : touching)
    for (const int a : list)
      for (const int b : list) meets.emplace_back(a, b, 1);
  Eigen::SparseMatrix<char, Eigen::ColMajor, int> graph(constraints, constraints);
  graph.setFromTriplets(meets.begin(), meets.end(), [](char, char) { return char(1); });
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> order;
  Eigen::AMDOrdering<int>()(graph, order);
  return {order.indices().data(), order.indices().data() + constraints};
}

}  // namespace

/// A block of unknowns that are eliminated together: the velocities of a substructure, leaves first, or the rows of a constraint.
struct FrontalPlan::Block {
  std::vector<int> unknown, later;  // later: blocks with coupled unknowns that are eliminated later, sorted
};

FrontalPlan::FrontalPlan(const Tree& tree, const Constraint* constraint, int constraints,
                         const std::function<void()>& check_interrupt) {
  if (check_interrupt) check_interrupt();
  std::vector<Block> block = blocks(tree, constraint, constraints);
  int unknowns = 0;
  for (const Block& b : block) unknowns += static_cast<int>(b.unknown.size());
  place_.assign(unknowns, 0), front_of_.assign(unknowns, 0);
  build(block, unknowns, check_interrupt);
  locate_entries(tree, constraint, constraints, check_interrupt);
}

/// Return the blocks in the order of elimination, each with its later neighbours. Neighbours that result from fill-in are not included yet.
std::vector<FrontalPlan::Block> FrontalPlan::blocks(const Tree& tree, const Constraint* constraint, int constraints) const {
  std::vector<std::vector<int>> velocities(tree.links), touching(tree.links), touched(constraints);
  for (int k = tree.nv - 1; k >= 0; --k) velocities[tree.link[tree.column_link[k]].root].push_back(k);
  for (int c = 0; c < constraints; ++c) {
    for (int k = 0; k < constraint[c].columns; ++k)
      touched[c].push_back(tree.link[tree.column_link[constraint[c].column[k]]].root);
    std::sort(touched[c].begin(), touched[c].end());
    touched[c].erase(std::unique(touched[c].begin(), touched[c].end()), touched[c].end());
    for (const int root : touched[c]) touching[root].push_back(c);
  }
  std::vector<Block> all;
  std::vector<int> at(constraints);
  std::vector<std::pair<int, int>> root_blocks;  // root, block
  const auto add = [&](int root) {
    if (velocities[root].empty()) return;
    root_blocks.emplace_back(root, static_cast<int>(all.size()));
    all.push_back({std::move(velocities[root]), {}});
    velocities[root].clear();
  };
  for (const int c : order_of_little_fill(constraints, touching)) {
    for (const int root : touched[c]) add(root);
    at[c] = static_cast<int>(all.size());
    all.emplace_back();
    for (int r = 0; r < constraint[c].rows; ++r) all.back().unknown.push_back(tree.nv + constraint[c].row + r);
  }
  for (int root = 1; root < tree.links; ++root) add(root);
  for (const auto& [root, b] : root_blocks) {
    for (const int c : touching[root]) all[b].later.push_back(at[c]);
    std::sort(all[b].later.begin(), all[b].later.end());
  }
  return all;
}

// Merge blocks into fronts. The parent of a block is the first of its later neighbours; the remaining later neighbours become later neighbours of the
// parent. If the union of both contains few additional zeros, the parent continues the front of the block.
std::vector<FrontalPlan::Merged> FrontalPlan::merge(std::vector<Block>& block, const std::function<void()>& check_interrupt) {
  const auto count = [&](const std::vector<int>& blocks) {
    int sum = 0;
    for (const int b : blocks) sum += static_cast<int>(block[b].unknown.size());
    return sum;
  };
  std::vector<Merged> all(block.size());
  for (std::size_t b = 0; b < block.size(); ++b) {
    if (check_interrupt) check_interrupt();
    Merged& m = all[b];
    if (!block[b].later.empty()) {
      m.parent = block[b].later.front();
      unite_rest(block[m.parent].later, block[b].later);
      all[m.parent].children.push_back(static_cast<int>(b));
    }
    m.pivots = static_cast<int>(block[b].unknown.size()), m.later = count(block[b].later);
    for (const int c : m.children) {
      const double zeros = double(all[c].pivots) * (m.pivots + m.later - all[c].later);
      const bool little = zeros <= 0.1 * all[c].pivots * (all[c].pivots + all[c].later);
      if (little && (m.heir_of < 0 || all[c].later > all[m.heir_of].later)) m.heir_of = c;
    }
    if (m.heir_of < 0) continue;
    m.pivots += all[m.heir_of].pivots;
    all[m.heir_of].inherited = true;
  }
  return all;
}

/// Return an order with children before parents. The child whose front the parent continues is the last child.
std::vector<int> FrontalPlan::postorder(std::vector<Merged>& all) {
  std::vector<int> order, stack;
  for (int b = static_cast<int>(all.size()) - 1; b >= 0; --b)
    if (all[b].parent < 0) stack.push_back(b);
  while (!stack.empty()) {
    const int b = stack.back();
    stack.pop_back();
    order.push_back(b);
    std::vector<int>& children = all[b].children;
    if (all[b].heir_of >= 0) {
      children.erase(std::find(children.begin(), children.end(), all[b].heir_of));
      children.push_back(all[b].heir_of);
    }
    stack.insert(stack.end(), children.begin(), children.end());
  }
  std::reverse(order.begin(), order.end());
  return order;
}

void FrontalPlan::build(std::vector<Block>& block, int unknowns, const std::function<void()>& check_interrupt) {
  std::vector<Merged> merged = merge(block, check_interrupt);
  const std::vector<int> order = postorder(merged);
  std::vector<int> start(block.size());
  for (const int b : order) {
    start[b] = static_cast<int>(unknown_.size());
    unknown_.insert(unknown_.end(), block[b].unknown.begin(), block[b].unknown.end());
  }
  for (int k = 0; k < unknowns; ++k) place_[unknown_[k]] = k;
  for (const int b : order) {
    if (merged[b].inherited) continue;
    if (check_interrupt) check_interrupt();
    Front f{};
    f.pivots = merged[b].pivots, f.first = start[b] + static_cast<int>(block[b].unknown.size()) - f.pivots;
    f.size = f.pivots + merged[b].later, f.slot = slots_, f.later = static_cast<int>(later_.size()), f.parent = -1;
    slots_ += f.pivots * f.size;
    for (const int l : block[b].later)
      for (std::size_t k = 0; k < block[l].unknown.size(); ++k) later_.push_back(start[l] + static_cast<int>(k));
    std::sort(later_.begin() + f.later, later_.end());
    const int index = static_cast<int>(front_.size());
    for (int k = 0; k < f.pivots; ++k) front_of_[f.first + k] = index;
    front_.push_back(f);
    widest_ = std::max(widest_, f.size), largest_ = std::max(largest_, merged[b].later);
    for (int k = 0; k < f.pivots; ++k) operations_ += 0.5 * (f.size - k) * (f.size - k + 1.0);
  }
  link_fronts(check_interrupt);
  size_stack();
}

/// Determine the index in the parent's front of each entry of a front's contribution.
void FrontalPlan::link_fronts(const std::function<void()>& check_interrupt) {
  for (Front& f : front_) {
    if (check_interrupt) check_interrupt();
    f.into = static_cast<int>(into_.size());
    if (f.size == f.pivots) continue;
    f.parent = front_of_[later_[f.later]];
    Front& up = front_[f.parent];
    ++up.children;
    for (int k = 0; k < f.size - f.pivots; ++k) into_.push_back(find(up, later_[f.later + k]));
  }
}

/// Determine the largest total size of contributions that are on the stack at the same time.
void FrontalPlan::size_stack() {
  std::vector<int> stacked;
  int on_stack = 0;
  const auto packed = [](int m) { return m * (m + 1) / 2 + m; };
  for (const Front& f : front_) {
    for (int c = 0; c < f.children; ++c) on_stack -= packed(stacked.back()), stacked.pop_back();
    if (f.parent < 0) continue;
    stacked.push_back(f.size - f.pivots), on_stack += packed(stacked.back());
    stack_ = std::max(stack_, on_stack);
  }
}

/// Return the index, within the front, of the unknown eliminated at `position`.
int FrontalPlan::find(const Front& f, int position) const {
  if (position < f.first + f.pivots) return position - f.first;
  const auto begin = later_.begin() + f.later;
  return f.pivots + static_cast<int>(std::lower_bound(begin, begin + (f.size - f.pivots), position) - begin);
}

void FrontalPlan::locate_entries(const Tree& tree, const Constraint* constraint, int constraints,
                                 const std::function<void()>& check_interrupt) {
  struct Entry {
    int front, source, slot;
  };
  const auto locate = [&](int i, int j, int source) {
    if (check_interrupt && source % 1024 == 0) check_interrupt();
    const int k = std::min(place_[i], place_[j]), l = std::max(place_[i], place_[j]);
    const Front& f = front_[front_of_[k]];
    return Entry{front_of_[k], source, find(f, k) * f.size + find(f, l)};
  };
  std::vector<Entry> mass, jacobian;
  int source = 0;
  for (int i = 0; i < tree.nv; ++i)
    for (int j = i; j >= 0; j = tree.column_parent[j]) mass.push_back(locate(i, j, source++));
  source = 0;
  for (int c = 0; c < constraints; ++c)
    for (int k = 0; k < constraint[c].columns; ++k)
      for (int r = 0; r < constraint[c].rows; ++r)
        jacobian.push_back(locate(constraint[c].column[k], tree.nv + constraint[c].row + r, source++));
  const auto sort = [&](std::vector<Entry>& all, int Front::* begin, std::vector<int>& entry, std::vector<int>& slot) {
    std::stable_sort(all.begin(), all.end(), [](const Entry& a, const Entry& b) { return a.front < b.front; });
    std::size_t k = 0;
    for (std::size_t i = 0; i < front_.size(); ++i) {
      front_[i].*begin = static_cast<int>(entry.size());
      for (; k < all.size() && all[k].front == static_cast<int>(i); ++k)
        entry.push_back(all[k].source), slot.push_back(all[k].slot);
    }
  };
  sort(mass, &Front::mass, mass_entry_, mass_slot_);
  sort(jacobian, &Front::jacobian, jacobian_entry_, jacobian_slot_);
  Front end{};  // an additional front, whose first indices are the end of the last front's entries
  end.mass = static_cast<int>(mass_entry_.size()), end.jacobian = static_cast<int>(jacobian_entry_.size());
  front_.push_back(end);
}

Elimination FrontalPlan::view() const {
  Elimination e{};
  e.unknowns = static_cast<int>(unknown_.size()), e.slots = slots_;
  e.unknown = unknown_.data(), e.place = place_.data();
  e.mass_slot = mass_slot_.data(), e.jacobian_slot = jacobian_slot_.data();
  e.fronts = static_cast<int>(front_.size()) - 1, e.front = front_.data();
  e.later = later_.data(), e.into = into_.data();
  e.mass_entry = mass_entry_.data(), e.jacobian_entry = jacobian_entry_.data();
  e.stack = stack_, e.widest = widest_, e.largest = largest_;
  return e;
}

}  // namespace sarrus
