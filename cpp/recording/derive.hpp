// Derivatives of recorded expressions: one backward sweep over the graph for each result (reverse mode; Griewank and Walther, Evaluating Derivatives,
// 2008, section 3.2). If several sweeps contain equal expressions, these are recorded only once.
#pragma once

#include <stdexcept>

#include "graph.hpp"

namespace sarrus {

/// Return d result / d input, one row per result. Inputs may be any expressions; the sweep ends at them, so they are treated as independent
/// variables. For a choice (select), the chosen operand is differentiated.
inline std::vector<Ids> derivatives(Graph& g, const Ids& results, const Ids& inputs) {
  std::vector<Ids> rows;
  std::vector<char> is_input(static_cast<std::size_t>(g.size()), 0);
  for (const int i : inputs) is_input[static_cast<std::size_t>(i)] = 1;
  const int zero = g.constant(0.0);
  for (const int result : results) {
    // derivative of the result with respect to each expression; complete for the expressions that the sweep has passed
    Ids by(static_cast<std::size_t>(result) + 1, zero);
    by[static_cast<std::size_t>(result)] = g.constant(1.0);
    for (int i = result; i >= 0; --i) {
      const int w = by[static_cast<std::size_t>(i)];
      const Expression e = g[i];  // a copy, because the list grows
      if (w == zero || is_input[static_cast<std::size_t>(i)] || e.op == Op::constant || e.op == Op::input) continue;
      const int a = e.operand[0], b = e.operand[1];
      const auto pass = [&](int to, int share) {
        by[static_cast<std::size_t>(to)] = g.sum(by[static_cast<std::size_t>(to)], share);
      };
      switch (e.op) {
        case Op::same: pass(a, w); break;
        case Op::negative: pass(a, g.negative(w)); break;
        case Op::sum: pass(a, w), pass(b, w); break;
        case Op::difference: pass(a, w), pass(b, g.negative(w)); break;
        case Op::product: pass(a, g.product(w, b)), pass(b, g.product(w, a)); break;
        case Op::quotient: pass(a, g.quotient(w, b)), pass(b, g.negative(g.product(g.quotient(w, b), i))); break;
        case Op::root: pass(a, g.quotient(g.product(w, g.constant(0.5)), i)); break;
        case Op::sine: pass(a, g.product(w, g.cosine(a))); break;
        case Op::cosine: pass(a, g.negative(g.product(w, g.sine(a)))); break;
        case Op::arctangent: {
          const int share = g.quotient(w, g.sum(g.product(a, a), g.product(b, b)));
          pass(a, g.product(share, b)), pass(b, g.negative(g.product(share, a)));
          break;
        }
        case Op::magnitude: pass(a, g.choice(g.less(a, zero), g.negative(w), w)); break;
        case Op::choice: pass(b, g.choice(a, w, zero)), pass(e.operand[2], g.choice(a, zero, w)); break;
        case Op::exponential: pass(a, g.product(w, i)); break;
        case Op::logarithm: pass(a, g.quotient(w, a)); break;
        case Op::power:
          pass(a, g.product(w, g.product(b, g.power(a, g.difference(b, g.constant(1.0))))));
          pass(b, g.product(w, g.product(i, g.logarithm(a))));
          break;
        case Op::result: throw std::invalid_argument("derivatives of called functions are not recorded");
        default: break;  // conditions and rounded numbers have derivative zero
      }
    }
    Ids row;
    for (const int i : inputs) row.push_back(i <= result ? by[static_cast<std::size_t>(i)] : zero);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace sarrus
