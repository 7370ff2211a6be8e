// Search for the nearest solution on any branch.
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

/// Close the loops from initial guesses (n, nq). First a few steps are taken; states that fail get more steps; for states that fail again, random
/// initial guesses are tried, state by state.
Positions::Found Positions::closed_from(const Closures& closures, const Request& request, const RowMajor& start,
                                        bool is_last) const {
  const auto closing = closures.of(request.goal.frames, request.goal.joints);
  const auto take_steps = [&](const Request& states, const RowMajor& from, const ClosingSteps& steps) {
    Closure::ClosedStates closed = closing->close(states.states, from, states.input(*closing), steps);
    closed.q = closing->unwound(std::move(closed.q), from);
    return closed;
  };
  const auto is_within = [&](const Request& states, const RowMajor& q) {
    return closing->limited ? closing->within(states.states, q, 1.0, states.time) : Flags(Flags::Constant(q.rows(), true));
  };
  Closure::ClosedStates closed = take_steps(request, start, near_steps);
  Flags good = closed.open.array() <= std::min(request.tolerance, tolerances::closed);
  good = good && is_within(request, closed.q);
  const std::vector<int> rows = where(!good);
  if (rows.empty()) return {std::move(closed.q), good, {}};

  const Request rest = request.of(rows);
  const Closure::ClosedStates farther = take_steps(rest, rows_of(start, rows), far_steps);
  const Flags accepted = farther.open.array() <= request.tolerance, within = is_within(rest, farther.q);
  const bool searches = request.states.variant.empty() && (request.starts > 0 || request.explains);
  std::string why;
  for (int k = 0; k < rest.states.count; ++k) {
    const int i = rows[k];
    closed.q.row(i) = farther.q.row(k), good(i) = accepted(k);
    if (!searches || (accepted(k) && within(k))) continue;
    Search search(*closing, start.row(i), rest.input(*closing).of({k}), request.seed);
    const Closure::Closed best = search.nearest(request.starts, request.tolerance);
    closed.q.row(i) = best.q, good(i) = best.open <= request.tolerance;
    if (request.explains && is_last && !good(i))
      why = request.goal.frames.empty() ? search.why_open(best.q) : search.why_out_of_reach(best.q);
  }
  return {std::move(closed.q), good, why};
}

/// Search in one tree: first with the guessed joints fixed; if this fails, with these joints free.
Positions::Found Positions::search_in(const Closures& closures, const Request& request) const {
  const PositionModel& model = closures.model;
  Request guessed = request;
  for (std::size_t i = 0; i < request.near.joints.size(); ++i)
    if (!contains(request.goal.joints, request.near.joints[i]))
      guessed.goal.joints.push_back(request.near.joints[i]), guessed.goal.coordinates.push_back(request.near.coordinates[i]);
  RowMajor start = start_near(model, request.states, request.near.q, request.time);
  set_coordinates(model.mechanism, guessed.goal.joints, guessed.goal.coordinates, start);
  const bool has_guess = guessed.goal.joints.size() > request.goal.joints.size();
  Found solution = closed_from(closures, guessed, start, !has_guess);
  if (const std::vector<int> rows = where(!solution.closed); has_guess && !rows.empty())
    solution.take(rows, closed_from(closures, request.of(rows), rows_of(start, rows), true));
  return solution;
}

/// Search in the coordinates of another tree; results are converted to the coordinates of the mechanism.
Positions::Found Positions::search_in_other(const OtherTree& tree, const Request& request) const {
  const auto converted = [&](std::vector<int> joints) {
    for (int& j : joints) j = tree.joint(j);
    return joints;
  };
  Request other = request;
  other.goal.joints = converted(request.goal.joints), other.near.joints = converted(request.near.joints);
  if (request.near.q)
    other.near.q = tree.convert(request.states, start_near(model_, request.states, request.near.q, {}), request.time);
  Found solution = search_in(tree.closures(), other);
  for (const int i : where(!solution.closed))
    solution.q.row(i) = tree.model().neutral();  // a state without solution needs some finite configuration for the conversion
  RowMajor start = start_near(model_, request.states, request.near.q, request.time);
  set_coordinates(model_.mechanism, request.near.joints, request.near.coordinates, start);
  solution.q =
      tree.convert_back(request.states, solution.q, start, request.time, *closure({}, joints_in_tree(request.goal.joints)));
  // the conversion adds rounding errors: close the loops once more, in these coordinates
  const Found closer = nearby(request, solution.q);
  for (const int i : where(closer.closed && solution.closed)) solution.q.row(i) = closer.q.row(i);
  return solution;
}

Positions::Found Positions::nearest(const Request& request) const {
  Request now = request;
  // for variants, the search always uses their own tree
  const std::shared_ptr<const OtherTree> tree = model_.mechanism.variants() ? nullptr : other_tree(now.goal, now.near);
  if (!tree) return search_in(closures_, now);
  const int count = now.states.count;
  Found solution{RowMajor(count, model_.mechanism.tree().nq), Flags::Constant(count, false), {}};
  if (now.near.q) solution = nearby(now, *now.near.q);
  // if a loop joint is fixed, the search in the mechanism's own tree is skipped
  const bool is_last = joints_in_tree(now.goal.joints).size() < now.goal.joints.size();
  if (const std::vector<int> rows = where(!solution.closed); !rows.empty()) {
    Request rest = now.of(rows);
    rest.explains = now.explains && is_last;
    solution.take(rows, search_in_other(*tree, rest));
  }
  if (const std::vector<int> rows = where(!solution.closed); !is_last && !rows.empty())
    solution.take(rows, search_in(closures_, now.of(rows)));
  return solution;
}

}  // namespace sarrus
