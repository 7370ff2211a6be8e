// The expressions that a computation leaves behind: each stands once (common subexpressions), constants are folded, signs and zeros taken out
// where they arise. Operands come before what is made of them, so a walk through the list is a walk up the graph.
//
// Beside each expression stand its values in a few sample states. They answer where data decides (does a loop go on, is a branch taken): what
// no sample wants is left out, and that it was is kept as a condition which generated code can check.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sarrus {

enum class Op : unsigned char {
  constant,
  input,
  same,  // a number once more, as an expression of its own, which nothing folds into: what derivatives end at
  negative,
  sum,
  difference,
  product,
  quotient,
  root,
  sine,
  cosine,
  arctangent,  // of y, x
  nearest,
  magnitude,
  less,
  both,
  opposite,  // of a condition
  choice  // condition, where it holds, where not
};
inline bool is_condition(Op op) { return op == Op::less || op == Op::both || op == Op::opposite; }

struct Expression {
  Op op;
  int operand[3] = {-1, -1, -1};
  double number = 0.0;  // of a constant; of an input which one it is
};

using Ids = std::vector<int>;

class Graph {
 public:
  const int samples;
  const bool single;  // whether it is recorded for single precision (Record's tolerances)

  Graph(int samples, bool single) : samples(samples), single(single) {}

  /// Graph that records on this thread belong to.
  static Graph*& current() {
    static thread_local Graph* graph = nullptr;
    return graph;
  }

  const Expression& operator[](int i) const { return expressions_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(expressions_.size()); }
  const double* values(int i) const { return values_.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(samples); }
  /// Conditions that were taken for true: each of them held in all samples.
  const Ids& assumed() const { return assumed_; }

  int constant(double x);
  int input(const double* values);
  int same(int a) { return is_constant(a) ? a : make({Op::same, {a, -1, -1}}); }
  int negative(int a);
  int sum(int a, int b);
  int difference(int a, int b);
  int product(int a, int b);
  int quotient(int a, int b);
  int root(int a) { return function(Op::root, a); }
  int sine(int a);
  int cosine(int a);
  int nearest(int a) { return function(Op::nearest, a); }
  int magnitude(int a);
  int arctangent(int y, int x);
  int less(int a, int b);
  int both(int a, int b);
  int opposite(int a);
  int choice(int condition, int a, int b);
  /// True if a condition holds in any sample. That it holds in none becomes an assumption; not in single precision, where the question is whether
  /// corrections are smaller than the rounding of doubles.
  bool any(int condition);
  bool holds_somewhere(int condition) const;
  void assume(int condition) { assumed_.push_back(condition); }
  /// Expression that is 1 if all assumptions hold, for a choice.
  int all_assumed();
  /// The condition that all of these are finite; 1 where nothing that they are made of divides or takes a root.
  int finite(const Ids& results);

 private:
  bool is(int i, Op op) const { return (*this)[i].op == op; }
  bool is(int i, double x) const { return is(i, Op::constant) && (*this)[i].number == x; }
  bool is_constant(int i) const { return is(i, Op::constant); }
  double number(int i) const { return (*this)[i].number; }
  int operand(int i, int k = 0) const { return (*this)[i].operand[k]; }
  bool never_negative(int i) const;
  int collected(int a, int b, double sign);
  int function(Op op, int a);
  int find(const Expression& e) const;
  int make(const Expression& e);

  std::vector<Expression> expressions_;
  std::vector<double> values_;
  std::unordered_multimap<std::uint64_t, int> found_;
  Ids assumed_;
  int inputs_ = 0;
};

}  // namespace sarrus
