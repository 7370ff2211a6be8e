#include "c99.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>

namespace sarrus {
namespace {

bool stands_by_itself(const Graph& g, int i) { return g[i].op == Op::constant || g[i].op == Op::input; }

std::vector<char> needed(const Graph& g, const Ids& results) {
  std::vector<char> live(static_cast<std::size_t>(g.size()), 0);
  for (const int i : results) live[static_cast<std::size_t>(i)] = 1;
  for (int i = g.size() - 1; i >= 0; --i)
    if (live[static_cast<std::size_t>(i)])
      for (const int k : g[i].operand)
        if (k >= 0) live[static_cast<std::size_t>(k)] = 1;
  return live;
}

/// As the algorithm came upon them.
Ids as_recorded(const Graph& g, const std::vector<char>& live) {
  Ids order;
  for (int i = 0; i < g.size(); ++i)
    if (live[static_cast<std::size_t>(i)] && !stands_by_itself(g, i)) order.push_back(i);
  return order;
}

/// Depth first from the results; of operands the one first that needs more numbers at once, as if the graph were a tree (Sethi and Ullman 1970).
Ids depth_first(const Graph& g, const std::vector<char>& live, const Ids& results) {
  std::vector<int> need(live.size(), 0);
  std::vector<Ids> operands(live.size());
  for (int i = 0; i < g.size(); ++i) {
    if (!live[static_cast<std::size_t>(i)] || stands_by_itself(g, i)) continue;
    Ids& of = operands[static_cast<std::size_t>(i)];
    for (const int k : g[i].operand)
      if (k >= 0 && !stands_by_itself(g, k)) of.push_back(k);
    std::stable_sort(of.begin(), of.end(),
                     [&](int a, int b) { return need[static_cast<std::size_t>(a)] > need[static_cast<std::size_t>(b)]; });
    int most = 1;
    for (std::size_t k = 0; k < of.size(); ++k)
      most = std::max(most, need[static_cast<std::size_t>(of[k])] + static_cast<int>(k));
    need[static_cast<std::size_t>(i)] = most;
  }
  Ids order;
  std::vector<char> told(live.size(), 0);
  std::vector<std::pair<int, std::size_t>> open;  // and its next operand: no recursion, chains may be long
  for (const int result : results) {
    if (!stands_by_itself(g, result)) open.push_back({result, 0});
    while (!open.empty()) {
      const int i = open.back().first;
      const Ids& of = operands[static_cast<std::size_t>(i)];
      if (!told[static_cast<std::size_t>(i)] && open.back().second < of.size()) {
        open.push_back({of[open.back().second++], 0});
        continue;
      }
      if (!told[static_cast<std::size_t>(i)]) told[static_cast<std::size_t>(i)] = 1, order.push_back(i);
      open.pop_back();
    }
  }
  return order;
}

/// How many numbers are alive at once: results and operands until they are last used.
int alive(const Graph& g, const Ids& order, const Ids& results) {
  const std::size_t end = order.size();
  std::vector<std::size_t> last(static_cast<std::size_t>(g.size()), 0);
  for (std::size_t at = 0; at < end; ++at)
    for (const int k : g[order[at]].operand)
      if (k >= 0) last[static_cast<std::size_t>(k)] = at;
  for (const int i : results) last[static_cast<std::size_t>(i)] = end;
  std::vector<int> ends(end + 1, 0);
  int now = 0, most = 0;
  for (std::size_t at = 0; at < end; ++at) {
    ++ends[last[static_cast<std::size_t>(order[at])]];
    most = std::max(most, ++now);
    now -= ends[at];
  }
  return most;
}

/// In single precision what is next to nothing, or beyond anything, stays so.
std::string digits(double x, bool single) {
  char text[40];
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
                                                           {"choices", {Op::choice, Op::magnitude, Op::nearest}}};
  std::vector<std::pair<std::string, int>> all;
  for (const auto& [words, ops] : kinds) {
    int count = 0;
    for (const int i : order) count += std::count(ops.begin(), ops.end(), g[i].op) > 0;
    if (count) all.push_back({words, count});
  }
  return all;
}

/// An expression in C, of operands' words x(i); `f` ends the names of the library's functions.
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
    case Op::nearest: return "rint" + f + "(" + x(a) + ")";
    case Op::magnitude: return "fabs" + f + "(" + x(a) + ")";
    case Op::less: return x(a) + " < " + x(b);
    case Op::both: return x(a) + " & " + x(b);
    case Op::opposite: return "!" + x(a);
    case Op::choice: return x(a) + " ? " + x(b) + " : " + x(c);
    case Op::constant:
    case Op::input:
    case Op::sine:
    case Op::cosine: break;  // written where they stand
  }
  return {};
}

}  // namespace

C99Function c99(const Graph& g, const std::string& name, const NamedIds& inputs, const NamedIds& outputs, int status) {
  const std::string real = g.single ? "float" : "double", f = g.single ? "f" : "";
  Ids results;
  for (const auto& [array, ids] : outputs) results.insert(results.end(), ids.begin(), ids.end());
  if (status >= 0) results.push_back(status);
  const std::vector<char> live = needed(g, results);
  Ids order = as_recorded(g, live);
  if (Ids other = depth_first(g, live, results); alive(g, other, results) < alive(g, order, results)) order.swap(other);

  C99Function said = {"", "", counted(g, order), static_cast<int>(order.size()), alive(g, order, results), false};
  std::map<int, std::string> term;
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
      body += "  const " + real + " " + term[ids[k]] + " = " + array + "[" + std::to_string(k) + "];\n";
    }
    if (!used) body += "  (void)" + array + ";\n";
  }
  for (const auto& [array, ids] : outputs)
    declare(real, array, ids.size()), body += ids.empty() ? "  (void)" + array + ";\n" : "";

  const auto x = [&](int i) { return g[i].op == Op::constant ? digits(g[i].number, g.single) : term.at(i); };
  std::map<int, std::pair<int, int>> turns;  // angle: its sine and its cosine, where they are asked for
  for (const int i : order) {
    const auto at = turns.emplace(g[i].operand[0], std::pair{-1, -1}).first;
    if (g[i].op == Op::sine) at->second.first = i;
    if (g[i].op == Op::cosine) at->second.second = i;
  }
  int count = 0;
  for (const int i : order) {
    if (term.count(i)) continue;  // with its sine
    const Expression& e = g[i];
    const int a = e.operand[0];
    const std::string t = "t" + std::to_string(count++);
    term[i] = t;
    if (e.op != Op::sine && e.op != Op::cosine) {
      body += "  const " + (is_condition(e.op) ? "int" : real) + " " + t + " = " + written(e, x, f) + ";\n";
      continue;
    }
    const auto [sine, cosine] = turns.at(a);
    const std::string other = "t" + std::to_string(count++);
    const int partner = e.op == Op::sine ? cosine : sine;
    if (partner >= 0) term[partner] = other;
    const std::string &s = e.op == Op::sine ? t : other, &c = e.op == Op::sine ? other : t;
    body += "  " + real + " " + s + ", " + c + ";\n  sarrus_turn(" + x(a) + ", &" + s + ", &" + c + ");\n";
    said.turns = true;
  }
  for (const auto& [array, ids] : outputs)
    for (std::size_t k = 0; k < ids.size(); ++k) body += "  " + array + "[" + std::to_string(k) + "] = " + x(ids[k]) + ";\n";
  if (status >= 0) body += "  return (int)" + x(status) + ";\n";
  said.declaration = std::string(status >= 0 ? "int " : "void ") + name + "(" + arguments + ")";
  said.definition = said.declaration + " {\n" + body + "}\n";
  return said;
}

std::string c99_turn(bool single) {
  if (single)
    return R"(/* Sine and cosine without a branch: Cody and Waite's reduction, Cephes' polynomials; |x| < 1e4. */
static inline void sarrus_turn(float x, float *s, float *c) {
  const float y = x * 0.636619772f;
  const int q = (int)(y + (y < 0.0f ? -0.5f : 0.5f)), odd = q & 1;
  const float n = (float)q, r = ((x - n * 1.5703125f) - n * 4.83751297e-4f) - n * 7.54978995e-8f, z = r * r;
  const float sr = r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
  const float cr = 1.0f - 0.5f * z + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f + z * 2.443315711809948e-5f));
  const float a = odd ? cr : sr, b = odd ? sr : cr;
  *s = q & 2 ? -a : a;
  *c = (q + 1) & 2 ? -b : b;
}
)";
  return R"(/* Sine and cosine without a branch: Cody and Waite's reduction, fdlibm's polynomials; |x| < 1.6e6. */
static inline void sarrus_turn(double x, double *s, double *c) {
  const double y = x * 6.36619772367581382433e-01;
  const int q = (int)(y + (y < 0.0 ? -0.5 : 0.5)), odd = q & 1;
  const double n = (double)q;
  const double r = ((x - n * 1.57079632673412561417e+00) - n * 6.07710050630396597660e-11) - n * 2.02226624879595063154e-21;
  const double z = r * r;
  const double sr = r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z *
    (2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
  const double tail = z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z *
    (-2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)))));
  const double h = 0.5 * z, w = 1.0 - h, cr = w + (((1.0 - w) - h) + tail);
  const double a = odd ? cr : sr, b = odd ? sr : cr;
  *s = q & 2 ? -a : a;
  *c = (q + 1) & 2 ? -b : b;
}
)";
}

}  // namespace sarrus
