#include "graph.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>

namespace sarrus {
namespace {

double evaluated(Op op, double a, double b, double c) {
  switch (op) {
    case Op::constant:
    case Op::input:
    case Op::result: break;
    case Op::same: return a;
    case Op::negative: return -a;
    case Op::sum: return a + b;
    case Op::difference: return a - b;
    case Op::product: return a * b;
    case Op::quotient: return a / b;
    case Op::root: return std::sqrt(a);
    case Op::sine: return std::sin(a);
    case Op::cosine: return std::cos(a);
    case Op::arctangent: return std::atan2(a, b);
    case Op::exponential: return std::exp(a);
    case Op::logarithm: return std::log(a);
    case Op::power: return std::pow(a, b);
    case Op::nearest: return std::nearbyint(a);
    case Op::magnitude: return std::fabs(a);
    case Op::less: return a < b;
    case Op::both: return a != 0.0 && b != 0.0;
    case Op::opposite: return a == 0.0;
    case Op::choice: return a != 0.0 ? b : c;
  }
  return 0.0;
}

std::uint64_t hash(const Expression& e) {
  std::uint64_t number, h = static_cast<std::uint64_t>(e.op) + 1;
  std::memcpy(&number, &e.number, sizeof number);
  for (const std::uint64_t part : {static_cast<std::uint64_t>(e.operand[0] + 1), static_cast<std::uint64_t>(e.operand[1] + 1),
                                   static_cast<std::uint64_t>(e.operand[2] + 1), number})
    h = (h ^ part) * 0x9E3779B97F4A7C15ull, h ^= h >> 29;
  return h;
}

}  // namespace

// ---- the list ------------------------------------------------------------------------------------------------------------------------

int Graph::find(const Expression& e) const {
  const auto [first, last] = found_.equal_range(hash(e));
  for (auto at = first; at != last; ++at) {
    const Expression& other = (*this)[at->second];
    if (other.op == e.op && std::equal(e.operand, e.operand + 3, other.operand) && other.number == e.number) return at->second;
  }
  return -1;
}

int Graph::make(const Expression& e) {
  if (const int existing = find(e); existing >= 0) return existing;
  const int i = size();
  expressions_.push_back(e);
  found_.emplace(hash(e), i);
  for (int s = 0; s < samples; ++s) {
    double x[3] = {};
    for (int k = 0; k < 3; ++k)
      if (e.operand[k] >= 0) x[k] = values(e.operand[k])[s];
    values_.push_back(e.op == Op::constant ? e.number : evaluated(e.op, x[0], x[1], x[2]));
  }
  return i;
}

int Graph::constant(double x) { return make({Op::constant, {-1, -1, -1}, x == 0.0 ? 0.0 : x}); }  // no -0

int Graph::input(const double* sample_values) {
  const int i = make({Op::input, {-1, -1, -1}, static_cast<double>(inputs_++)});
  std::copy_n(sample_values, samples, values_.end() - samples);
  return i;
}

// ---- arithmetic: signs are moved outwards, because sums can absorb them; constants become the second operands ---------------------------

int Graph::negative(int a) {
  if (is_constant(a)) return constant(-number(a));
  if (is(a, Op::negative)) return operand(a);
  if (is(a, Op::difference)) return difference(operand(a, 1), operand(a));
  return make({Op::negative, {a, -1, -1}});
}

int Graph::sum(int a, int b) {
  if (is_constant(a) && is_constant(b)) return constant(number(a) + number(b));
  if (is(a, 0.0)) return b;
  if (is(b, 0.0)) return a;
  if (is(b, Op::negative)) return difference(a, operand(b));
  if (is(a, Op::negative)) return difference(b, operand(a));
  if (is_constant(b) && number(b) < 0.0) return difference(a, constant(-number(b)));
  if (is_constant(a) && number(a) < 0.0) return difference(b, constant(-number(a)));
  if (is(a, Op::difference) && operand(a, 1) == b) return operand(a);
  if (is(b, Op::difference) && operand(b, 1) == a) return operand(b);
  if (const int merged = collected(a, b, 1.0); merged >= 0) return merged;
  return make({Op::sum, {std::min(a, b), std::max(a, b), -1}});
}

int Graph::difference(int a, int b) {
  if (is_constant(a) && is_constant(b)) return constant(number(a) - number(b));
  if (a == b) return constant(0.0);
  if (is(b, 0.0)) return a;
  if (is(a, 0.0)) return negative(b);
  if (is(b, Op::negative)) return sum(a, operand(b));
  if (is(a, Op::negative)) return negative(sum(operand(a), b));
  if (is_constant(b) && number(b) < 0.0) return sum(a, constant(-number(b)));
  if (is(a, Op::sum) && operand(a) == b) return operand(a, 1);
  if (is(a, Op::sum) && operand(a, 1) == b) return operand(a);
  if (const int merged = collected(a, b, -1.0); merged >= 0) return merged;
  if (const int turned = find({Op::difference, {b, a, -1}}); turned >= 0) return make({Op::negative, {turned, -1, -1}});
  return make({Op::difference, {a, b, -1}});
}

/// Simplify c1 x + c2 x to (c1 + c2) x, and sin^2 x + cos^2 x to 1. Return -1 if neither applies.
int Graph::collected(int a, int b, double sign) {
  if (!is(a, Op::product) || !is(b, Op::product)) return -1;
  const int x = operand(a), y = operand(b);
  if (x == y && is_constant(operand(a, 1)) && is_constant(operand(b, 1)))
    return product(x, constant(number(operand(a, 1)) + sign * number(operand(b, 1))));
  const bool squares = operand(a, 1) == x && operand(b, 1) == y;
  const bool turn = (is(x, Op::sine) && is(y, Op::cosine)) || (is(x, Op::cosine) && is(y, Op::sine));
  return sign > 0.0 && squares && turn && operand(x) == operand(y) ? constant(1.0) : -1;
}

int Graph::product(int a, int b) {
  if (is_constant(a)) std::swap(a, b);
  if (is_constant(a)) return constant(number(a) * number(b));
  if (is_constant(b)) {
    const double x = number(b);
    if (x == 0.0) return b;
    if (x == 1.0) return a;
    if (x < 0.0) return negative(product(a, constant(-x)));
    if (is(a, Op::negative)) return negative(product(operand(a), b));
    if (is(a, Op::product) && is_constant(operand(a, 1))) return product(operand(a), constant(number(operand(a, 1)) * x));
    return make({Op::product, {a, b, -1}});
  }
  if (is(a, Op::negative)) return negative(product(operand(a), b));
  if (is(b, Op::negative)) return negative(product(a, operand(b)));
  if (is(a, Op::product) && is_constant(operand(a, 1))) return product(product(operand(a), b), operand(a, 1));
  if (is(b, Op::product) && is_constant(operand(b, 1))) return product(product(a, operand(b)), operand(b, 1));
  return make({Op::product, {std::min(a, b), std::max(a, b), -1}});
}

/// Return a times 1 / b, so that all quotients by b need only one division.
int Graph::quotient(int a, int b) {
  if (is_constant(b)) return product(a, constant(1.0 / number(b)));
  if (is(a, 0.0)) return a;
  if (a == b) return constant(1.0);
  if (is(b, Op::negative)) return negative(quotient(a, operand(b)));
  if (is(a, Op::product) && operand(a) == b) return operand(a, 1);
  if (is(a, Op::product) && operand(a, 1) == b) return operand(a);
  return product(a, make({Op::quotient, {constant(1.0), b, -1}}));
}

// ---- functions -----------------------------------------------------------------------------------------------------------------------

int Graph::function(Op op, int a) {
  return is_constant(a) ? constant(evaluated(op, number(a), 0.0, 0.0)) : make({op, {a, -1, -1}});
}
int Graph::sine(int a) { return is(a, Op::negative) ? negative(sine(operand(a))) : function(Op::sine, a); }
int Graph::cosine(int a) { return function(Op::cosine, is(a, Op::negative) ? operand(a) : a); }
int Graph::magnitude(int a) {
  if (is(a, Op::negative)) return magnitude(operand(a));
  return never_negative(a) ? a : function(Op::magnitude, a);
}
int Graph::arctangent(int y, int x) {
  if (is_constant(y) && is_constant(x)) return constant(std::atan2(number(y), number(x)));
  return make({Op::arctangent, {y, x, -1}});
}

/// Return a^b. Powers with exponents of contact laws and polynomials need no call of pow.
int Graph::power(int a, int b) {
  if (is_constant(a) && is_constant(b)) return constant(std::pow(number(a), number(b)));
  if (is(b, 0.0)) return constant(1.0);
  if (is(b, 1.0)) return a;
  if (is(b, 2.0)) return product(a, a);
  if (is(b, 3.0)) return product(a, product(a, a));
  if (is(b, 0.5)) return root(a);
  if (is(b, 1.5)) return product(a, root(a));
  return make({Op::power, {a, b, -1}});
}

// ---- functions that a graph calls ----------------------------------------------------------------------------------------------------

/// Return the index of the function with this name and these constants; record it if there is none.
int Graph::called(const std::string& name, const std::vector<Ids>& arguments, const Body& record) {
  std::vector<std::vector<double>> constants;
  for (const Ids& group : arguments) {
    constants.emplace_back();
    for (const int k : group) constants.back().push_back(is_constant(k) ? number(k) : std::numeric_limits<double>::quiet_NaN());
  }
  const auto same_constants = [&](const std::vector<std::vector<double>>& other) {
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    return std::equal(constants.begin(), constants.end(), other.begin(), other.end(),
                      [&](const auto& a, const auto& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end(), same); });
  };
  int named = 0;
  for (int i = 0; i < functions(); ++i) {
    if (function(i).kind != name) continue;
    if (++named; same_constants(function(i).constants)) return i;
  }
  GraphFunction f;
  f.kind = name, f.name = named ? name + std::to_string(named + 1) : name;
  f.constants = constants;
  f.graph = std::make_unique<Graph>(samples, single);
  f.graph->functions_ = functions_, f.graph->takes_all_paths = takes_all_paths, f.graph->shares = shares;
  std::vector<Ids> inputs;
  for (const Ids& group : arguments) {
    inputs.emplace_back();
    for (const int k : group) inputs.back().push_back(is_constant(k) ? f.graph->constant(number(k)) : f.graph->input(values(k)));
  }
  if (places) f.graph->parameters = inputs.back(), f.graph->places = places;
  Graph* const caller = std::exchange(current(), f.graph.get());
  f.results = record(inputs);
  const int holds = f.graph->all_assumed();
  f.results.push_back(f.graph->choice(holds, f.graph->constant(1.0), f.graph->constant(0.0)));
  current() = caller;
  for (const int k : f.results)
    if (!f.graph->is_constant(k)) f.written.push_back(k);
  const std::vector<char> used = f.graph->needed(f.results);
  for (std::size_t g = 0; g < arguments.size(); ++g) {
    f.inputs.emplace_back(), f.passed.emplace_back();
    for (std::size_t k = 0; k < arguments[g].size(); ++k) {
      // results of other calls are passed even if they are not used, so that their array can be passed as it is
      const int of = arguments[g][k], to = inputs[g][k];
      f.passed.back().push_back(!is_constant(of) && (is(of, Op::result) || used[static_cast<std::size_t>(to)]));
      if (f.passed.back().back()) f.inputs.back().push_back(to);
    }
  }
  functions_->push_back(std::make_unique<GraphFunction>(std::move(f)));
  return functions() - 1;
}

Ids Graph::call(const std::string& name, std::vector<Ids> arguments, const Body& record) {
  if (places) arguments.push_back(parameters);
  GraphCall made = {called(name, arguments, record), {}};
  const GraphFunction& f = function(made.function);
  for (std::size_t g = 0; g < arguments.size(); ++g) {
    made.arguments.emplace_back();
    for (std::size_t k = 0; k < arguments[g].size(); ++k)
      if (f.passed[g][k]) made.arguments.back().push_back(arguments[g][k]);
  }
  auto same = std::find(calls_.begin(), calls_.end(), made);
  if (same == calls_.end()) same = calls_.insert(calls_.end(), made);
  const int index = static_cast<int>(same - calls_.begin());
  std::vector<std::vector<double>> of_samples;
  for (int s = 0; s < samples; ++s) {
    std::vector<std::vector<double>> x;
    for (const Ids& group : made.arguments) {
      x.emplace_back();
      for (const int k : group) x.back().push_back(values(k)[s]);
    }
    of_samples.push_back(f.graph->results_at(f.inputs, x, f.written));
  }
  Ids written;
  for (int k = 0; k < static_cast<int>(f.written.size()); ++k) {
    auto before =
        std::find_if(results_.begin(), results_.end(), [&](const GraphResult& r) { return r.call == index && r.index == k; });
    if (before == results_.end()) before = results_.insert(results_.end(), {index, k});
    const int count = size(), i = make({Op::result, {-1, -1, -1}, static_cast<double>(before - results_.begin())});
    for (int s = 0; i == count && s < samples; ++s)
      values_[static_cast<std::size_t>(i) * static_cast<std::size_t>(samples) + static_cast<std::size_t>(s)] =
          of_samples[static_cast<std::size_t>(s)][static_cast<std::size_t>(k)];
    written.push_back(i);
  }
  Ids ids;
  auto next = written.begin();
  for (const int k : f.results) {
    if (f.graph->is_constant(k)) {
      ids.push_back(constant(f.graph->number(k)));
      continue;
    }
    ids.push_back(*next++);
  }
  const int holds = less(constant(0.5), ids.back());
  ids.pop_back();
  if (!is_constant(holds)) assume(holds);
  return ids;
}

std::vector<double> Graph::results_at(const std::vector<Ids>& inputs, const std::vector<std::vector<double>>& x,
                                      const Ids& results) const {
  std::vector<double> value(expressions_.size(), 0.0);
  for (std::size_t g = 0; g < inputs.size(); ++g)
    for (std::size_t k = 0; k < inputs[g].size(); ++k) value[static_cast<std::size_t>(inputs[g][k])] = x[g][k];
  std::vector<std::vector<double>> of_call(calls_.size());
  for (int i = 0; i < size(); ++i) {
    const Expression& e = (*this)[i];
    double& to = value[static_cast<std::size_t>(i)];
    if (e.op == Op::input) continue;
    if (e.op == Op::result) {
      const GraphResult& r = result_of(i);
      std::vector<double>& all = of_call[static_cast<std::size_t>(r.call)];
      if (all.empty()) {
        const GraphFunction& f = function(call_of(i).function);
        std::vector<std::vector<double>> arguments;
        for (const Ids& group : call_of(i).arguments) {
          arguments.emplace_back();
          for (const int k : group) arguments.back().push_back(value[static_cast<std::size_t>(k)]);
        }
        all = f.graph->results_at(f.inputs, arguments, f.written);
      }
      to = all[static_cast<std::size_t>(r.index)];
      continue;
    }
    double operands[3] = {};
    for (int k = 0; k < 3; ++k)
      if (e.operand[k] >= 0) operands[k] = value[static_cast<std::size_t>(e.operand[k])];
    to = e.op == Op::constant ? e.number : evaluated(e.op, operands[0], operands[1], operands[2]);
  }
  std::vector<double> all;
  for (const int i : results) all.push_back(value[static_cast<std::size_t>(i)]);
  return all;
}

std::vector<char> Graph::needed(const Ids& results) const {
  std::vector<char> live(expressions_.size(), 0);
  for (const int i : results) live[static_cast<std::size_t>(i)] = 1;
  for (int i = size() - 1; i >= 0; --i)
    if (live[static_cast<std::size_t>(i)]) each_operand(i, [&](int k) { live[static_cast<std::size_t>(k)] = 1; });
  return live;
}

// ---- conditions ----------------------------------------------------------------------------------------------------------------------

bool Graph::never_negative(int i) const {
  const Expression& e = (*this)[i];
  switch (e.op) {
    case Op::constant: return e.number >= 0.0;
    case Op::root:
    case Op::exponential:
    case Op::magnitude: return true;
    case Op::product: return e.operand[0] == e.operand[1] || (never_negative(e.operand[0]) && never_negative(e.operand[1]));
    case Op::sum:
    case Op::quotient: return never_negative(e.operand[0]) && never_negative(e.operand[1]);
    case Op::choice: return never_negative(e.operand[1]) && never_negative(e.operand[2]);
    default: return false;
  }
}

int Graph::less(int a, int b) {
  if (is_constant(a) && is_constant(b)) return constant(number(a) < number(b));
  if (a == b) return constant(0.0);
  if (is_constant(b) && number(b) <= 0.0 && never_negative(a)) return constant(0.0);
  if (is_constant(a) && number(a) < 0.0 && never_negative(b)) return constant(1.0);
  return make({Op::less, {a, b, -1}});
}
int Graph::both(int a, int b) {
  if (is_constant(a)) return number(a) != 0.0 ? b : a;
  if (is_constant(b)) return number(b) != 0.0 ? a : b;
  return a == b ? a : make({Op::both, {std::min(a, b), std::max(a, b), -1}});
}
int Graph::opposite(int a) {
  if (is_constant(a)) return constant(number(a) == 0.0);
  return is(a, Op::opposite) ? operand(a) : make({Op::opposite, {a, -1, -1}});
}
int Graph::choice(int condition, int a, int b) {
  if (is_constant(condition)) return number(condition) != 0.0 ? a : b;
  return a == b ? a : make({Op::choice, {condition, a, b}});
}

bool Graph::any(int condition) {
  if (takes_all_paths && !is_constant(condition)) return true;
  if (holds_somewhere(condition)) return true;
  if (!single && !is_constant(condition)) assume(opposite(condition));
  return false;
}

bool Graph::holds_somewhere(int condition) const {
  const double* holds = values(condition);
  return std::any_of(holds, holds + samples, [](double x) { return x != 0.0; });
}

int Graph::all_assumed() {
  std::sort(assumed_.begin(), assumed_.end());
  assumed_.erase(std::unique(assumed_.begin(), assumed_.end()), assumed_.end());
  int all = constant(1.0);
  for (const int i : assumed_) all = both(all, i);
  return all;
}

int Graph::finite(const Ids& results) {
  const std::vector<char> live = needed(results);
  bool may_fail = false;
  for (int i = 0; i < size(); ++i)
    if (live[static_cast<std::size_t>(i)])
      for (const Op op : {Op::quotient, Op::root, Op::exponential, Op::logarithm, Op::power, Op::result}) may_fail |= is(i, op);
  if (!may_fail) return constant(1.0);
  // sum the absolute values: positive and negative values could cancel
  int total = constant(0.0);
  Ids each = results;
  std::sort(each.begin(), each.end());
  each.erase(std::unique(each.begin(), each.end()), each.end());
  for (const int i : each)
    if (!is_constant(i)) total = sum(total, magnitude(i));
  return less(total, constant(single ? std::numeric_limits<float>::max() : std::numeric_limits<double>::max()));
}

}  // namespace sarrus
