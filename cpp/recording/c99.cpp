#include "c99.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

namespace sarrus {
namespace {

/// An expression that is an entry of an array is read again from there if it has not been used for this number of statements. Otherwise compilers
/// for a GPU would keep it in a register, or store it a second time.
constexpr int far = 25;
struct Stored {
  std::string place;
  int used;  // number of the statement that used it last
};

bool stands_by_itself(const Graph& g, int i) { return g[i].op == Op::constant || g[i].op == Op::input; }

/// Return the expressions in the order in which the algorithm recorded them.
Ids as_recorded(const Graph& g, const std::vector<char>& live) {
  Ids order;
  for (int i = 0; i < g.size(); ++i)
    if (live[static_cast<std::size_t>(i)] && !stands_by_itself(g, i)) order.push_back(i);
  return order;
}

/// Return a depth-first order that begins at the results. Of two operands, the one that needs more live values is computed first, as for expression
/// trees (Sethi and Ullman 1970).
Ids depth_first(const Graph& g, const std::vector<char>& live, const Ids& results) {
  std::vector<int> need(live.size(), 0);
  std::vector<Ids> operands(live.size());
  for (int i = 0; i < g.size(); ++i) {
    if (!live[static_cast<std::size_t>(i)] || stands_by_itself(g, i)) continue;
    Ids& of = operands[static_cast<std::size_t>(i)];
    g.each_operand(i, [&](int k) {
      if (!stands_by_itself(g, k)) of.push_back(k);
    });
    std::stable_sort(of.begin(), of.end(),
                     [&](int a, int b) { return need[static_cast<std::size_t>(a)] > need[static_cast<std::size_t>(b)]; });
    int most = 1;
    for (std::size_t k = 0; k < of.size(); ++k)
      most = std::max(most, need[static_cast<std::size_t>(of[k])] + static_cast<int>(k));
    need[static_cast<std::size_t>(i)] = most;
  }
  Ids order;
  std::vector<char> ordered_flags(live.size(), 0);
  // stack of (expression, its next operand); recursion is not used, because chains of expressions may be long
  std::vector<std::pair<int, std::size_t>> open;
  for (const int result : results) {
    if (!stands_by_itself(g, result)) open.push_back({result, 0});
    while (!open.empty()) {
      const int i = open.back().first;
      const Ids& of = operands[static_cast<std::size_t>(i)];
      if (!ordered_flags[static_cast<std::size_t>(i)] && open.back().second < of.size()) {
        open.push_back({of[open.back().second++], 0});
        continue;
      }
      if (!ordered_flags[static_cast<std::size_t>(i)]) ordered_flags[static_cast<std::size_t>(i)] = 1, order.push_back(i);
      open.pop_back();
    }
  }
  return order;
}

/// Return the expressions that are written into arrays where they are computed: arguments of calls, and the results of a function other than the
/// generated one.
std::vector<char> in_arrays(const Graph& g, const Ids& order, const Ids& results, bool inner) {
  std::vector<char> written(static_cast<std::size_t>(g.size()), 0);
  for (const int i : inner ? results : Ids{}) written[static_cast<std::size_t>(i)] = 1;
  for (const int i : order)
    if (g[i].op == Op::result) g.each_operand(i, [&](int k) { written[static_cast<std::size_t>(k)] = 1; });
  return written;
}

/// Return the largest number of simultaneously live values: operands until their last use, and the results of the generated function to its end.
/// Arguments and results of calls are in arrays. `again`: values that are read again if their last use is far, so that they are not live in between.
int alive(const Graph& g, const Ids& order, const Ids& results, bool inner, const std::vector<char>& again = {}) {
  const int end = static_cast<int>(order.size());
  std::vector<int> last(static_cast<std::size_t>(g.size()), -1), change(order.size() + 2, 0);
  const auto live = [&](int begin, int at) {
    ++change[static_cast<std::size_t>(begin)], --change[static_cast<std::size_t>(at + 1)];
  };
  const auto use = [&](int i, int at) {
    int& before = last[static_cast<std::size_t>(i)];
    if (before < 0 || before == at) return;  // in an array, or the second operand of this statement
    const bool read = !again.empty() && again[static_cast<std::size_t>(i)] && at - before > far;
    live(read ? at : before + 1, at), before = at;
  };
  for (int at = 0; at < end; ++at) {
    const int i = order[static_cast<std::size_t>(at)];
    for (const int k : g[i].operand)
      if (k >= 0) use(k, at);
    if (g[i].op == Op::result) continue;
    live(at, at), last[static_cast<std::size_t>(i)] = at;
  }
  for (const int i : inner ? Ids{} : results) use(i, end);
  int now = 0, most = 0;
  for (const int x : change) most = std::max(most, now += x);
  return most;
}

/// Return the order of expressions with the fewest simultaneously live values. If these are too many for the registers of a GPU, values that are read
/// again are not counted, and the depth-first order that begins at the last result is another candidate: it computes a factor row by row. Its chains of
/// dependent statements are slower on processors.
Ids ordered(const Graph& g, const std::vector<char>& live, const Ids& results, bool inner, bool for_gpu) {
  const int registers = g.single ? 200 : 100;  // of 255, without addresses and the compiler's own; a double needs two
  const Ids recorded = as_recorded(g, live), first = depth_first(g, live, results);
  const int most = alive(g, recorded, results, inner), most_of_first = alive(g, first, results, inner);
  if (!for_gpu || std::min(most, most_of_first) <= registers) return most_of_first < most ? first : recorded;
  const Ids last = depth_first(g, live, {results.rbegin(), results.rend()});
  const std::vector<char> again = in_arrays(g, recorded, results, inner);
  return std::min({recorded, first, last}, [&](const Ids& a, const Ids& b) {
    return alive(g, a, results, inner, again) < alive(g, b, results, inner, again);
  });
}

/// Return the digits of a number. In single precision, tiny and huge numbers are replaced by the ends of its range.
std::string digits(double x, bool single) {
  char text[40];
  if (!std::isfinite(x)) return std::isnan(x) ? "NAN" : x > 0.0 ? "INFINITY" : "-INFINITY";
  if (single && x != 0.0) x = std::copysign(std::clamp(std::fabs(x), 1e-37, 3e38), x);
  std::snprintf(text, sizeof text, single ? "%.9g" : "%.17g", x);
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  return single ? s + "f" : s;
}

std::vector<std::pair<std::string, int>> counted(const Graph& g, const Ids& order) {
  const std::pair<const char*, std::vector<Op>> kinds[] = {{"products", {Op::product}},
                                                           {"sums", {Op::sum, Op::difference, Op::negative}},
                                                           {"divisions", {Op::quotient}},
                                                           {"roots", {Op::root}},
                                                           {"sines and cosines", {Op::sine, Op::cosine}},
                                                           {"arctangents", {Op::arctangent}},
                                                           {"comparisons", {Op::less, Op::both, Op::opposite}},
                                                           {"powers", {Op::power, Op::exponential, Op::logarithm}},
                                                           {"choices", {Op::choice, Op::magnitude, Op::nearest}}};
  std::vector<std::pair<std::string, int>> all;
  for (const auto& [words, ops] : kinds) {
    int count = 0;
    for (const int i : order) count += std::count(ops.begin(), ops.end(), g[i].op) > 0;
    if (count) all.push_back({words, count});
  }
  return all;
}

/// Return an expression in C; x(i) returns the text of operand i. `f` is the suffix of the library's functions.
template <class Words> std::string written(const Expression& e, const Words& x, const std::string& f) {
  const auto [a, b, c] = e.operand;
  switch (e.op) {
    case Op::same: return x(a);
    case Op::negative: return "-" + x(a);
    case Op::sum: return x(a) + " + " + x(b);
    case Op::difference: return x(a) + " - " + x(b);
    case Op::product: return x(a) + " * " + x(b);
    case Op::quotient: return x(a) + " / " + x(b);
    case Op::root: return "sqrt" + f + "(" + x(a) + ")";
    case Op::arctangent: return "atan2" + f + "(" + x(a) + ", " + x(b) + ")";
    case Op::exponential: return "exp" + f + "(" + x(a) + ")";
    case Op::logarithm: return "log" + f + "(" + x(a) + ")";
    case Op::power: return "pow" + f + "(" + x(a) + ", " + x(b) + ")";
    case Op::nearest: return "rint" + f + "(" + x(a) + ")";
    case Op::magnitude: return "fabs" + f + "(" + x(a) + ")";
    case Op::less: return x(a) + " < " + x(b);
    case Op::both: return x(a) + " & " + x(b);
    case Op::opposite: return "!" + x(a);
    case Op::choice: return x(a) + " ? " + x(b) + " : " + x(c);
    case Op::constant:
    case Op::input:
    case Op::result:
    case Op::sine:
    case Op::cosine: break;  // these are written by the caller
  }
  return {};
}

/// Write a function. `prefix`: name of the generated function, with which the names of called functions begin. Arguments are read where they are used.
/// A function other than the generated one writes its results where they are computed, so that registers become free; its arrays are distinct.
C99Function written(const Graph& g, const std::string& prefix, const std::string& name, const NamedIds& inputs,
                    const NamedIds& outputs, int status, bool for_gpu, std::set<int>& called) {
  const std::string real = g.single ? "float" : "double", f = g.single ? "f" : "";
  Ids results;
  for (const auto& [array, ids] : outputs) results.insert(results.end(), ids.begin(), ids.end());
  if (status >= 0) results.push_back(status);
  const std::vector<char> live = g.needed(results);
  const bool inner = name != prefix;
  const Ids order = ordered(g, live, results, inner, for_gpu);

  const auto computed = std::count_if(order.begin(), order.end(), [&](int i) { return g[i].op != Op::result; });
  C99Function function = {"", "", {}, counted(g, order), static_cast<int>(computed), alive(g, order, results, inner), false};
  std::map<int, std::string> term, unread;  // unread: arguments that have not been used so far
  std::map<int, Stored> stored;  // expressions that are entries of arrays
  std::multimap<int, std::string> places;  // entries of arrays that have the value of an expression
  std::string arguments, body;
  const auto declare = [&](const std::string& type, const std::string& array, std::size_t size) {
    arguments +=
        (arguments.empty() ? "" : ", ") + type + " " + array + "[" + std::to_string(std::max<std::size_t>(size, 1)) + "]";
  };
  for (const auto& [array, ids] : inputs) {
    declare("const " + real, array, ids.size());
    bool used = false;
    for (std::size_t k = 0; k < ids.size(); ++k) {
      if (!live[static_cast<std::size_t>(ids[k])] || !term.emplace(ids[k], array + "_" + std::to_string(k)).second) continue;
      used = true;
      unread[ids[k]] = array + "[" + std::to_string(k) + "]";
      stored[ids[k]] = {unread[ids[k]], 0};
    }
    if (!used) body += "  (void)" + array + ";\n";
  }
  for (const auto& [array, ids] : outputs)
    declare(real, array, ids.size()), body += ids.empty() ? "  (void)" + array + ";\n" : "";

  int now = 0, again = 0;  // statements so far; expressions that are read again
  const auto x = [&](int i) {
    if (const auto at = unread.find(i); at != unread.end()) {
      body += "  const " + real + " " + term[i] + " = " + at->second + ";\n";
      unread.erase(at);
    } else if (const auto entry = stored.find(i); entry != stored.end() && now - entry->second.used > far) {
      term[i] = "sarrus_again" + std::to_string(again++);
      body += "  const " + real + " " + term[i] + " = " + entry->second.place + ";\n";
    }
    if (const auto entry = stored.find(i); entry != stored.end()) entry->second.used = now;
    return g[i].op == Op::constant ? digits(g[i].number, g.single) : term.at(i);
  };
  const auto put = [&](int i) {
    const auto [first, last] = places.equal_range(i);
    for (auto at = first; at != last; ++at) body += "  " + at->second + " = " + term.at(i) + ";\n";
    if (first != last) stored.emplace(i, Stored{first->second, now});
  };
  std::map<int, std::pair<int, int>> turns;  // for each angle, the expressions of its sine and its cosine, if they are used
  for (const int i : order) {
    const auto at = turns.emplace(g[i].operand[0], std::pair{-1, -1}).first;
    if (g[i].op == Op::sine) at->second.first = i;
    if (g[i].op == Op::cosine) at->second.second = i;
  }
  // arrays of the arguments and the results of calls; consecutive results of another call are passed as they are
  std::map<int, std::string> calls, lists;  // array of results and list of arguments of each call
  int arrays = 0;
  for (const int i : order) {
    if (g[i].op != Op::result || calls.count(g.result_of(i).call)) continue;
    const GraphFunction& f_called = g.function(g.call_of(i).function);
    const std::string to = "sarrus_r" + std::to_string(calls.size());
    called.insert(g.call_of(i).function);
    body += "  " + real + " " + to + "[" + std::to_string(std::max<std::size_t>(f_called.written.size(), 1)) + "];\n";
    std::string& list = lists[g.result_of(i).call];
    for (const Ids& group : g.call_of(i).arguments) {
      if (group.empty()) continue;
      bool consecutive = g[group[0]].op == Op::result;
      for (std::size_t k = 0; consecutive && k < group.size(); ++k) {
        if (!(consecutive = g[group[k]].op == Op::result)) break;
        const GraphResult &r = g.result_of(group[k]), &start = g.result_of(group[0]);
        consecutive = r.call == start.call && r.index == start.index + static_cast<int>(k);
      }
      if (consecutive) {
        list += calls.at(g.result_of(group[0]).call) + " + " + std::to_string(g.result_of(group[0]).index) + ", ";
        continue;
      }
      const std::string array = "sarrus_x" + std::to_string(arrays++);
      body += "  " + real + " " + array + "[" + std::to_string(group.size()) + "];\n";
      for (std::size_t k = 0; k < group.size(); ++k) places.emplace(group[k], array + "[" + std::to_string(k) + "]");
      list += array + ", ";
    }
    calls[g.result_of(i).call] = to;
  }
  if (inner)
    for (const auto& [array, ids] : outputs)
      for (std::size_t k = 0; k < ids.size(); ++k) places.emplace(ids[k], array + "[" + std::to_string(k) + "]");
  for (const auto& [array, ids] : inputs)
    for (const int i : ids)
      if (const auto at = places.find(i); at != places.end() && live[static_cast<std::size_t>(i)]) x(i), put(i);
  for (const auto& [i, place] : places)
    if (g[i].op == Op::constant) body += "  " + place + " = " + digits(g[i].number, g.single) + ";\n";
  int count = 0;
  std::set<int> made;  // calls so far
  for (const int i : order) {
    ++now;
    if (term.count(i)) continue;  // this sine (or cosine) has been written together with the cosine (or sine) of the same angle
    const Expression& e = g[i];
    const int a = e.operand[0];
    if (e.op == Op::result) {
      const GraphResult& r = g.result_of(i);
      const std::string& from = calls.at(r.call);
      if (made.insert(r.call).second)
        body += "  " + prefix + "_" + g.function(g.call_of(i).function).name + "(" + lists.at(r.call) + from + ");\n";
      term[i] = from + "[" + std::to_string(r.index) + "]";
      put(i);
      continue;
    }
    const std::string t = "t" + std::to_string(count++);
    if (e.op != Op::sine && e.op != Op::cosine) {
      const std::string text = written(e, x, f);
      term[i] = t;
      body += "  const " + (is_condition(e.op) ? "int" : real) + " " + t + " = " + text + ";\n";
      put(i);
      continue;
    }
    const std::string angle = x(a);
    term[i] = t;
    const auto [sine, cosine] = turns.at(a);
    const std::string other = "t" + std::to_string(count++);
    const int partner = e.op == Op::sine ? cosine : sine;
    if (partner >= 0) term[partner] = other;
    const std::string &s = e.op == Op::sine ? t : other, &c = e.op == Op::sine ? other : t;
    body += "  " + real + " " + s + ", " + c + ";\n  sarrus_turn(" + angle + ", &" + s + ", &" + c + ");\n";
    put(i);
    if (partner >= 0) put(partner);
    function.turns = true;
  }
  // results may overwrite arguments: none is read after the first of them
  for (const auto& [array, ids] : outputs)
    for (const int i : ids)
      if (!inner && unread.count(i)) x(i);
  stored.clear();
  for (const auto& [array, ids] : outputs)
    for (std::size_t k = 0; !inner && k < ids.size(); ++k)
      body += "  " + array + "[" + std::to_string(k) + "] = " + x(ids[k]) + ";\n";
  if (status >= 0) body += "  return (int)" + x(status) + ";\n";
  function.declaration = std::string(status >= 0 ? "int " : "void ") + name + "(" + arguments + ")";
  function.definition = function.declaration + " {\n" + body + "}\n";
  return function;
}

}  // namespace

C99Function c99(const Graph& g, const std::string& name, const NamedIds& inputs, const NamedIds& outputs, int status,
                bool for_gpu) {
  std::set<int> called;
  C99Function function = written(g, name, name, inputs, outputs, status, for_gpu, called);
  // a function calls only earlier ones
  for (int i = g.functions() - 1; i >= 0; --i) {
    if (!called.count(i)) continue;
    const GraphFunction& f = g.function(i);
    NamedIds groups;
    for (std::size_t k = 0; k < f.inputs.size(); ++k)
      if (!f.inputs[k].empty()) groups.push_back({"x" + std::to_string(k), f.inputs[k]});
    const C99Function each = written(*f.graph, name, name + "_" + f.name, groups, {{"y", f.written}}, -1, for_gpu, called);
    function.called.insert(function.called.begin(), each.definition);
    function.statements += each.statements, function.alive = std::max(function.alive, each.alive);
    function.turns |= each.turns;
    for (const auto& [words, count] : each.operations) {
      const auto same = [&words = words](const auto& kind) { return kind.first == words; };
      const auto at = std::find_if(function.operations.begin(), function.operations.end(), same);
      at == function.operations.end() ? function.operations.push_back({words, count}) : void(at->second += count);
    }
  }
  return function;
}

std::string c99_turn(bool single) {
  // the compiler must not reorder the operations of this function, because they reduce an angle exactly
  const std::string kept =
      "#include <float.h>\n#if defined(__FAST_MATH__) || defined(_M_FP_FAST) || FLT_EVAL_METHOD " +
      std::string(single ? "!= 0" : "> 1") +
      "\n#error \"sums must be taken as written, in their own precision: no -ffast-math, no -mfpmath=387\"\n#endif\n\n";
  if (single)
    return kept +
           R"(/* Sine and cosine without a branch: reduction by half turns (Cody and Waite), polynomials within 3e-8; |x| < 1e4. */
static inline void sarrus_turn(float x, float *s, float *c) {
  const float n = (x * 0.318309886f + 12582912.0f) - 12582912.0f; /* half turns */
  const float r = ((x - n * 3.140625f) - n * 9.67502594e-4f) - n * 1.50995799e-7f, z = r * r;
  const float h = n * 0.5f, odd = h - ((h + 12582912.0f) - 12582912.0f), sign = 1.0f - 8.0f * odd * odd;
  const float a = -1.66666660e-1f + z * (8.33324208e-3f + z * (-1.98227322e-4f + z * 2.63473272e-6f));
  const float b = 4.16666661e-2f + z * (-1.38888125e-3f + z * (2.47860763e-5f + z * -2.65458669e-7f));
  *s = sign * (r + r * z * a);
  *c = sign * ((1.0f - 0.5f * z) + z * z * b);
}
)";
  return kept +
         R"(/* Sine and cosine without a branch: reduction by half turns (Cody and Waite), polynomials within 1e-16; |x| < 1e6. */
static inline void sarrus_turn(double x, double *s, double *c) {
  const double n = (x * 0.31830988618379067154 + 6755399441055744.0) - 6755399441055744.0; /* half turns */
  const double r = (x - n * 3.14159265346825122833e+00) - n * 1.2154201013012384e-10;
  const double z = r * r, z2 = z * z, z4 = z2 * z2;
  const double h = n * 0.5, odd = h - ((h + 6755399441055744.0) - 6755399441055744.0), sign = 1.0 - 8.0 * odd * odd;
  const double a = ((-0.16666666666666666 + z * 0.0083333333333333159) + z2 * (-0.00019841269841254955 + z * 2.7557319219158432e-06))
    + z4 * ((-2.5052107616384595e-08 + z * 1.6058977272815506e-10) + z2 * (-7.643969031052769e-13 + z * 2.7314289861226158e-15));
  const double b = ((0.041666666666666657 + z * -0.0013888888888884763) + z2 * (2.4801587298910888e-05 + z * -2.7557318572848315e-07))
    + z4 * ((2.0876681513907184e-09 + z * -1.1466250478536745e-11) + z2 * 4.6464097152277903e-14);
  *s = sign * (r + r * z * a);
  *c = sign * ((1.0 - 0.5 * z) + z2 * b);
}
)";
}

}  // namespace sarrus
