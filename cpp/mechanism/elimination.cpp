#include "elimination.hpp"

#include <algorithm>
#include <iterator>

namespace sarrus {
namespace {

/// Merge b into the sorted list a.
void unite(std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  a.swap(both);
}

}  // namespace

EliminationPlan::EliminationPlan(const Tree& tree, const Constraint* constraint, int constraints, int rows, bool with_mass,
                                 double most, const std::function<void()>& check_interrupt)
    : most_(most) {
  const int nv = tree.nv, n = nv + rows;
  for (int c = 0; c < constraints; ++c) operations_ += 10.0 * constraint[c].columns * constraint[c].rows;
  for (int i = 0; with_mass && i < nv; ++i) operations_ += 10.0 * (tree.column_depth[i] + 1);
  if (!complete()) return;
  std::vector<std::vector<int>> meets(n);
  const auto join = [&](int i, int j) { meets[i].push_back(j), meets[j].push_back(i); };
  for (int i = 0; with_mass && i < nv; ++i) {
    if (check_interrupt) check_interrupt();
    for (int j = tree.column_parent[i]; j >= 0; j = tree.column_parent[j]) join(i, j);
  }
  for (int c = 0; c < constraints; ++c)
    for (int k = 0; k < constraint[c].columns; ++k)
      for (int r = 0; r < constraint[c].rows; ++r) join(constraint[c].column[k], nv + constraint[c].row + r);
  for (std::vector<int>& m : meets) std::sort(m.begin(), m.end());
  order(tree, constraint, constraints, rows, meets, with_mass, check_interrupt);
  if (!complete()) return;

  std::vector<std::vector<int>> later(n);
  for (int k = 0; k < n; ++k) {
    for (const int j : meets[unknown_[k]])
      if (place_[j] > k) later[k].push_back(place_[j]);
    std::sort(later[k].begin(), later[k].end());
  }
  fill(std::move(later), check_interrupt);
  collect_panels(check_interrupt);

  const auto slot = [&](int i, int j) {
    const int k = std::min(place_[i], place_[j]), l = std::max(place_[i], place_[j]);
    if (k == l) return first_[k];
    const auto begin = column_.begin() + first_[k] + 1, end = column_.begin() + first_[k + 1];
    return static_cast<int>(std::lower_bound(begin, end, l) - column_.begin());
  };
  for (int i = 0; i < nv; ++i)
    for (int j = i; j >= 0; j = with_mass ? tree.column_parent[j] : -1) mass_slot_.push_back(slot(i, j));
  for (int c = 0; c < constraints; ++c)
    for (int k = 0; k < constraint[c].columns; ++k)
      for (int r = 0; r < constraint[c].rows; ++r)
        jacobian_slot_.push_back(slot(constraint[c].column[k], nv + constraint[c].row + r));
}

// Return the order of elimination. A velocity becomes a candidate after the velocities of its descendants, so that M causes no fill-in. A row becomes
// a candidate after all velocities in it, so that its pivot is its complete entry of J M^-1 J^T. The candidate with the fewest neighbours is
// eliminated first. Bodies far from the ground precede near ones, so that a loop causes fill-in only within itself. Ties are broken by the shortest
// chain of dependencies. Then independent chains alternate, so that the processor can compute one chain while it waits for a result of another.
void EliminationPlan::order(const Tree& tree, const Constraint* constraint, int constraints, int rows,
                            const std::vector<std::vector<int>>& meets, bool with_mass,
                            const std::function<void()>& check_interrupt) {
  const int nv = tree.nv, n = nv + rows;
  std::vector<int> waits(n, 0);  // number of unknowns that must be eliminated before this one becomes a candidate
  std::vector<std::vector<int>> releases(n);
  for (int i = 0; with_mass && i < nv; ++i)
    if (tree.column_parent[i] >= 0) ++waits[tree.column_parent[i]], releases[i].push_back(tree.column_parent[i]);
  for (int c = 0; c < constraints; ++c)
    for (int r = 0; r < constraint[c].rows; ++r) {
      const int row = nv + constraint[c].row + r;
      for (int k = 0; k < constraint[c].columns; ++k) ++waits[row], releases[constraint[c].column[k]].push_back(row);
    }

  std::vector<std::vector<int>> neighbours = meets;  // neighbours that are not eliminated yet
  std::vector<int> ready, chain(n, 0);
  const auto rank = [&](int i) { return i < nv ? -tree.column_link[i] * 8 - (i - tree.link[tree.column_link[i]].iv) : i; };
  for (int i = 0; i < n; ++i)
    if (waits[i] == 0) ready.push_back(i);
  place_.assign(n, 0);
  while (!ready.empty()) {
    if (check_interrupt) check_interrupt();
    const auto best = std::min_element(ready.begin(), ready.end(), [&](int a, int b) {
      const bool row_a = a >= nv, row_b = b >= nv;  // rows have priority: a row follows directly after its last velocity
      if (row_a != row_b) return row_a;
      if (neighbours[a].size() != neighbours[b].size()) return neighbours[a].size() < neighbours[b].size();
      if (chain[a] != chain[b]) return chain[a] < chain[b];
      return rank(a) < rank(b);
    });
    const int i = *best;
    ready.erase(best);
    operations_ += 0.5 * (neighbours[i].size() + 1.0) * (neighbours[i].size() + 2.0);
    if (!complete()) return;
    place_[i] = static_cast<int>(unknown_.size());
    unknown_.push_back(i);
    for (const int j : neighbours[i]) {
      chain[j] = std::max(chain[j], chain[i] + 1);
      unite(neighbours[j], neighbours[i]);
      neighbours[j].erase(std::remove_if(neighbours[j].begin(), neighbours[j].end(), [&](int k) { return k == i || k == j; }),
                          neighbours[j].end());
    }
    for (const int j : releases[i])
      if (--waits[j] == 0) ready.push_back(j);
  }
}

// Compute the fill-in of the pattern: the first later unknown of row k gets all other later unknowns of this row.
void EliminationPlan::fill(std::vector<std::vector<int>> later, const std::function<void()>& check_interrupt) {
  const int n = static_cast<int>(later.size());
  first_.push_back(0);
  for (int k = 0; k < n; ++k) {
    if (check_interrupt) check_interrupt();
    if (!later[k].empty()) {
      std::vector<int> passed(later[k].begin() + 1, later[k].end());
      unite(later[later[k].front()], passed);
    }
    column_.push_back(k);
    column_.insert(column_.end(), later[k].begin(), later[k].end());
    first_.push_back(static_cast<int>(column_.size()));
  }
  std::vector<std::vector<int>> met(n), at(n);
  for (int k = 0; k < n; ++k)
    for (int s = first_[k] + 1; s < first_[k + 1]; ++s) met[column_[s]].push_back(k), at[column_[s]].push_back(s);
  before_.push_back(0);
  for (int k = 0; k < n; ++k) {
    before_row_.insert(before_row_.end(), met[k].begin(), met[k].end());
    before_slot_.insert(before_slot_.end(), at[k].begin(), at[k].end());
    before_.push_back(static_cast<int>(before_row_.size()));
  }
}

// An unknown continues a panel if its row has the remaining columns of the row before it. The rows of the panel's later neighbours contain the same
// columns and perhaps others.
void EliminationPlan::collect_panels(const std::function<void()>& check_interrupt) {
  const int n = static_cast<int>(unknown_.size());
  const auto columns = [&](int k) { return column_.begin() + first_[k]; };
  const auto continues = [&](int k) {
    return k < n && k - panel_.back() < panel_size && std::equal(columns(k), columns(k + 1), columns(k - 1) + 1, columns(k));
  };
  for (const int k : column_) neighbour_.push_back(unknown_[k]);
  panel_.push_back(0);
  for (int k = 0; k < n; ++k) {
    if (check_interrupt) check_interrupt();
    if (continues(k + 1)) continue;
    panel_.push_back(k + 1);
    for (auto a = columns(k) + 1; a < columns(k + 1); ++a) {
      auto at = columns(*a);
      const auto end = columns(*a + 1), last = columns(k + 1);
      if (end - at >= last - a && std::equal(a, last, at)) {
        run_.push_back(first_[*a]);
        continue;
      }
      run_.push_back(-1 - static_cast<int>(target_.size()));
      for (auto b = a; b < last; ++b) {
        at = std::lower_bound(at, end, *b);
        target_.push_back(static_cast<int>(at - column_.begin()));
      }
    }
  }
}

Elimination EliminationPlan::view() const {
  Elimination e{};
  e.unknowns = static_cast<int>(unknown_.size()), e.slots = static_cast<int>(column_.size());
  e.unknown = unknown_.data(), e.place = place_.data();
  e.first = first_.data(), e.column = column_.data(), e.neighbour = neighbour_.data(), e.panel = panel_.data();
  e.before = before_.data(), e.before_row = before_row_.data(), e.before_slot = before_slot_.data();
  e.run = run_.data(), e.target = target_.data();
  e.mass_slot = mass_slot_.data(), e.jacobian_slot = jacobian_slot_.data();
  return e;
}

}  // namespace sarrus
