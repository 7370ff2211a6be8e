// Islands of a cone problem: sets of contacts that do not affect each other, such as separate heaps. Each island is solved separately, to its own
// tolerance, so that the cost depends on the sizes of islands, and distant contacts do not affect a solution.
#pragma once

#include "cone_solver.hpp"

namespace sarrus {

/// Number the islands. part: index of the island of each contact, and of each row that belongs to no contact. Returns the number of islands.
inline int number_parts(const ConeProblem& problem, Arena& arena, int* part) {
  const Arena::Scope scope(arena);
  const int units = problem.rows - 2 * problem.contacts, n = problem.rows;
  const auto first = [&](int unit) { return unit < problem.contacts ? 3 * unit : unit + 2 * problem.contacts; };
  int* contact = arena.take<int>(units);  // for each row of a moment, the contact that it belongs to
  std::fill(contact, contact + units, -1);
  for (int m = 0, unit = problem.contacts; m < problem.moments; ++m)
    for (int r = 0; r < problem.moment[m].rows; ++r) contact[unit++] = problem.moment[m].contact;
  const auto moves = [&](int a, int b) {
    if (contact[a] == b || contact[b] == a) return true;
    const int last = first(b) + (b < problem.contacts ? 3 : 1);
    for (int i = first(a); i < first(a) + (a < problem.contacts ? 3 : 1); ++i)
      for (int j = first(b); j < last; ++j)
        if (problem.G[i * n + j] != 0.0) return true;
    return false;
  };
  int *open = arena.take<int>(units), parts = 0;
  std::fill(part, part + units, -1);
  for (int begin = 0; begin < units; ++begin) {
    if (part[begin] >= 0) continue;
    int waiting = 0;
    part[begin] = parts, open[waiting++] = begin;
    while (waiting > 0)
      for (int a = open[--waiting], b = 0; b < units; ++b)
        if (part[b] < 0 && moves(a, b)) part[b] = parts, open[waiting++] = b;
    ++parts;
  }
  return parts;
}

/// Solve a problem for its impulses, island by island, from the guess p. unsolved (contacts, or null): true for the contacts of islands that were not
/// solved.
inline ConeSolution solve_parts(const ConeProblem& problem, Arena& arena, double* p, double* least, SolverLimit& limit,
                                bool* unsolved = nullptr) {
  const Arena::Scope scope(arena);
  const int n = problem.rows, contacts = problem.contacts, units = n - 2 * contacts;
  int* part = arena.take<int>(units);
  const int parts = number_parts(problem, arena, part);
  if (parts < 2) {
    const ConeSolution solution = solve_cones(problem, arena, p, least, limit);
    if (unsolved) std::fill(unsolved, unsolved + contacts, !solution.reached);
    return solution;
  }
  const auto take = [&](int count) { return arena.take<double>(count); };
  int* row = arena.take<int>(n);
  double *G = take(n * n), *w = take(n), *p_here = take(n), *least_here = take(n), *friction = take(contacts),
         *slip = take(2 * contacts), *low = take(units), *high = take(units), *floor = take(contacts);
  MomentFriction* moment = arena.take<MomentFriction>(problem.moments);
  const int ends_at = problem.first_interval();
  ConeSolution all = {true, 0.0, 0, 0};
  for (int k = 0; k < parts; ++k) {
    ConeProblem island = {
        0, 0, G, w, friction, low, high, problem.slip ? slip : nullptr, 0, moment, problem.floor ? floor : nullptr};
    for (int i = 0; i < contacts; ++i) {
      if (part[i] != k) continue;
      friction[island.contacts] = problem.friction[i];
      if (problem.floor) floor[island.contacts] = problem.floor[i];
      for (int r = 0; problem.slip && r < 2; ++r) slip[2 * island.contacts + r] = problem.slip[2 * i + r];
      ++island.contacts;
      for (int r = 0; r < 3; ++r) row[island.rows++] = 3 * i + r;
    }
    for (int m = 0, at = 3 * contacts; m < problem.moments; at += problem.moment[m++].rows) {
      const MomentFriction& source = problem.moment[m];
      if (part[source.contact] != k) continue;
      int before = 0;
      for (int i = 0; i < source.contact; ++i) before += part[i] == k;
      moment[island.moments] = source, moment[island.moments++].contact = before;
      for (int r = 0; r < source.rows; ++r) row[island.rows++] = at + r;
    }
    for (int i = ends_at, end = 0; i < n; ++i)
      if (part[i - 2 * contacts] == k)
        low[end] = problem.low[i - ends_at], high[end++] = problem.high[i - ends_at], row[island.rows++] = i;
    for (int i = 0; i < island.rows; ++i) {
      w[i] = problem.w[row[i]], p_here[i] = p[row[i]];
      for (int j = 0; j < island.rows; ++j) G[i * island.rows + j] = problem.G[row[i] * n + row[j]];
    }
    const ConeSolution solution = solve_cones(island, arena, p_here, least ? least_here : nullptr, limit);
    for (int i = 0; i < island.rows; ++i) p[row[i]] = p_here[i];
    for (int i = 0; least && i < island.rows; ++i) least[row[i]] = least_here[i];
    for (int i = 0; unsolved && i < contacts; ++i)
      if (part[i] == k) unsolved[i] = !solution.reached;
    all.reached &= solution.reached, all.natural_map = std::max(all.natural_map, solution.natural_map);
    all.iterations += solution.iterations, all.stage = std::max(all.stage, solution.stage);
  }
  return all;
}

}  // namespace sarrus
