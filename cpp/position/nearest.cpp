// The nearest solution on any branch.
#include "requests.hpp"

namespace sarrus {
using namespace position;

Positions::Found Positions::nearby(const Request& request, const RowMajor& q) const {
  const Goal& goal = request.goal;
  const auto closing = closure(goal.frames, goal.joints);
  RowMajor start = start_near(model_, request.states, q, request.time);
  set_coordinates(model_.mechanism, goal.joints, goal.coordinates, start);
  Closure::ClosedStates closed = closing->close(request.states, start, request.input(*closing), near_steps);
  closed.q = closing->unwound(std::move(closed.q), start);
  const Flags good = closed.open.array() <= std::min(request.tolerance, tolerances::closed);
  const Flags within = closing->within(request.states, closed.q, 1.0, request.time);
  return {std::move(closed.q), good && within, {}};
}

/// Solve states of one tree from their starts by a few steps, then by more steps, and then one by one from random starts.
Positions::Found Positions::search_in(const Closures& closures, const Request& request) const {
  const PositionModel& model = closures.model;
  RowMajor start = start_near(model, request.states, request.near.q, request.time);
  Request guessed = request;  // guessed joints are fixed in the first attempt
  for (std::size_t i = 0; i < request.near.joints.size(); ++i)
    if (!contains(request.goal.joints, request.near.joints[i]))
      guessed.goal.joints.push_back(request.near.joints[i]), guessed.goal.coordinates.push_back(request.near.coordinates[i]);
  set_coordinates(model.mechanism, guessed.goal.joints, guessed.goal.coordinates, start);
  const int count = request.states.count;
  Found found{RowMajor(count, model.mechanism.tree().nq), Flags::Constant(count, false), {}};
  const auto attempt = [&](const Request& now, const RowMajor& from, bool is_last) {
    const auto closing = closures.of(now.goal.frames, now.goal.joints);
    const auto closed_by = [&](const Request& subset, const RowMajor& q, const ClosingSteps& steps) {
      Closure::ClosedStates closed = closing->close(subset.states, q, subset.input(*closing), steps);
      closed.q = closing->unwound(std::move(closed.q), q);
      return closed;
    };
    const auto is_within = [&](const Request& subset, const RowMajor& q) {
      return closing->limited ? closing->within(subset.states, q, 1.0, subset.time)
                              : Flags(Flags::Constant(subset.states.count, true));
    };
    Closure::ClosedStates closed = closed_by(now, from, near_steps);
    Flags good = closed.open.array() <= std::min(now.tolerance, tolerances::closed);
    good = good && is_within(now, closed.q);
    if (const std::vector<int> rows = where(!good); !rows.empty()) {
      const Request rest = now.of(rows);
      const RowMajor starts = rows_of(from, rows);
      const Closure::ClosedStates farther = closed_by(rest, starts, far_steps);
      const Flags accepted = farther.open.array() <= now.tolerance, within = is_within(rest, farther.q);
      for (std::size_t k = 0; k < rows.size(); ++k) {
        const int i = rows[k];
        closed.q.row(i) = farther.q.row(k), closed.open(i) = farther.open(k), good(i) = accepted(k);
        if (now.states.variant.empty() && (now.starts > 0 || now.explains) && !(accepted(k) && within(k))) {
          const ClosingInput input = rest.input(*closing).of({static_cast<int>(k)});
          Search search(*closing, from.row(from.rows() == 1 ? 0 : i), input, now.seed);
          const Closure::Closed best = search.nearest(now.starts, now.tolerance);
          closed.q.row(i) = best.q, closed.open(i) = best.open, good(i) = best.open <= now.tolerance;
          if (now.explains && is_last && !good(i))
            found.why = now.goal.frames.empty() ? search.why_open(best.q) : search.why_out_of_reach(best.q);
        }
      }
    }
    return Found{std::move(closed.q), good, {}};
  };
  const bool guesses = guessed.goal.joints.size() > request.goal.joints.size();
  Found first = attempt(guessed, start, !guesses);
  found.q = std::move(first.q), found.closed = first.closed;
  if (const std::vector<int> rows = where(!found.closed); guesses && !rows.empty()) {
    const Found second = attempt(request.of(rows), rows_of(start, rows), true);
    set_rows(found.q, rows, second.q);
    for (std::size_t k = 0; k < rows.size(); ++k) found.closed(rows[k]) = second.closed(k);
  }
  return found;
}

Positions::Found Positions::nearest(const Request& request) const {
  Request now = request;
  // variants are searched for in their own tree
  const std::shared_ptr<const OtherTree> tree = model_.mechanism.variants() ? nullptr : other_tree(now.goal, now.near);
  if (!tree) return search_in(closures_, now);
  const int count = now.states.count;
  Found found{RowMajor(count, model_.mechanism.tree().nq), Flags::Constant(count, false), {}};
  const auto take = [&](const std::vector<int>& rows, const Found& more) {
    set_rows(found.q, rows, more.q);
    for (std::size_t k = 0; k < rows.size(); ++k) found.closed(rows[k]) = more.closed(k);
    found.why = more.why;
  };
  if (now.near.q) found = nearby(now, *now.near.q);
  const auto in_other_tree = [&](const std::vector<int>& joints) {
    std::vector<int> there;
    for (const int j : joints) there.push_back(tree->joint(j));
    return there;
  };
  std::vector<int> fixed_in_tree;
  for (const int j : now.goal.joints)
    if (!model_.mechanism.joints()[j].closes_a_loop) fixed_in_tree.push_back(j);
  const bool is_last = fixed_in_tree.size() < now.goal.joints.size();  // a loop joint is fixed
  if (const std::vector<int> rows = where(!found.closed); !rows.empty()) {
    const Request rest = now.of(rows);
    Request other = rest;
    other.goal.joints = in_other_tree(rest.goal.joints), other.near.joints = in_other_tree(rest.near.joints);
    other.explains = now.explains && is_last;
    if (rest.near.q) other.near.q = tree->convert(rest.states, start_near(model_, rest.states, rest.near.q, {}), rest.time);
    Found in_tree = search_in(tree->closures(), other);
    RowMajor start = start_near(model_, rest.states, rest.near.q, rest.time);
    set_coordinates(model_.mechanism, rest.near.joints, rest.near.coordinates, start);
    // without a solution, any configuration that the kernels accept
    const RowMajor back = in_tree.closed.all() ? in_tree.q : [&] {
      RowMajor q = in_tree.q;
      for (const int i : where(!in_tree.closed)) q.row(i) = tree->model().neutral();
      return q;
    }();
    in_tree.q = tree->convert_back(rest.states, back, start, rest.time, *closure({}, fixed_in_tree));
    // close the loops to rounding in these coordinates, too
    const Found closer = nearby(rest, in_tree.q);
    for (const int i : where(closer.closed && in_tree.closed)) in_tree.q.row(i) = closer.q.row(i);
    take(rows, in_tree);
  }
  if (const std::vector<int> rows = where(!found.closed); !is_last && !rows.empty())
    take(rows, search_in(closures_, now.of(rows)));
  return found;
}

}  // namespace sarrus
