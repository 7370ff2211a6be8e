// A cone problem falls into parts of which none moves another: heaps that stand apart. Each is solved by itself, to a tolerance of its own, so that
// many bodies cost what their neighbours do, and what is far away has no part in an answer.
#pragma once

#include "cone_solver.hpp"

namespace sarrus {

/// Numbers the parts; contacts and other rows count one each. Returns how many parts there are.
inline int number_parts(const ConeProblem& problem, Arena& arena, int* part) {
  const Arena::Scope scope(arena);
  const int units = problem.rows - 2 * problem.contacts, n = problem.rows;
  const auto first = [&](int unit) { return unit < problem.contacts ? 3 * unit : unit + 2 * problem.contacts; };
  int* contact = arena.take<int>(units);  // that a row of a moment belongs to
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

/// The impulses of a problem, from a guess, part by part.
inline ConeSolution solve_parts(const ConeProblem& problem, Arena& arena, double* p, double* least, SolverLimit& limit) {
  const Arena::Scope scope(arena);
  const int n = problem.rows, contacts = problem.contacts, units = n - 2 * contacts;
  int* part = arena.take<int>(units);
  const int parts = number_parts(problem, arena, part);
  if (parts < 2) return solve_cones(problem, arena, p, least, limit);
  const auto take = [&](int count) { return arena.take<double>(count); };
  int* row = arena.take<int>(n);
  double *G = take(n * n), *w = take(n), *p_here = take(n), *least_here = take(n), *friction = take(contacts),
         *slip = take(2 * contacts), *low = take(units), *high = take(units), *floor = take(contacts);
  MomentFriction* moment = arena.take<MomentFriction>(problem.moments);
  const int ends_at = problem.first_interval();
  ConeSolution all = {true, 0.0, 0, 0};
  for (int k = 0; k < parts; ++k) {
    ConeProblem some = {
        0, 0, G, w, friction, low, high, problem.slip ? slip : nullptr, 0, moment, problem.floor ? floor : nullptr};
    for (int i = 0; i < contacts; ++i) {
      if (part[i] != k) continue;
      friction[some.contacts] = problem.friction[i];
      if (problem.floor) floor[some.contacts] = problem.floor[i];
      for (int r = 0; problem.slip && r < 2; ++r) slip[2 * some.contacts + r] = problem.slip[2 * i + r];
      ++some.contacts;
      for (int r = 0; r < 3; ++r) row[some.rows++] = 3 * i + r;
    }
    for (int m = 0, at = 3 * contacts; m < problem.moments; at += problem.moment[m++].rows) {
      const MomentFriction& one = problem.moment[m];
      if (part[one.contact] != k) continue;
      int before = 0;
      for (int i = 0; i < one.contact; ++i) before += part[i] == k;
      moment[some.moments] = one, moment[some.moments++].contact = before;
      for (int r = 0; r < one.rows; ++r) row[some.rows++] = at + r;
    }
    for (int i = ends_at, end = 0; i < n; ++i)
      if (part[i - 2 * contacts] == k)
        low[end] = problem.low[i - ends_at], high[end++] = problem.high[i - ends_at], row[some.rows++] = i;
    for (int i = 0; i < some.rows; ++i) {
      w[i] = problem.w[row[i]], p_here[i] = p[row[i]];
      for (int j = 0; j < some.rows; ++j) G[i * some.rows + j] = problem.G[row[i] * n + row[j]];
    }
    const ConeSolution solution = solve_cones(some, arena, p_here, least ? least_here : nullptr, limit);
    for (int i = 0; i < some.rows; ++i) p[row[i]] = p_here[i];
    for (int i = 0; least && i < some.rows; ++i) least[row[i]] = least_here[i];
    all.reached &= solution.reached, all.natural_map = std::max(all.natural_map, solution.natural_map);
    all.iterations += solution.iterations, all.stage = std::max(all.stage, solution.stage);
  }
  return all;
}

}  // namespace sarrus
