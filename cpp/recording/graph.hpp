// Graph of the expressions of a computation. Equal expressions are stored once (common subexpressions), constants are folded, and signs and zeros are
// simplified at creation. The expressions are a list in which operands precede the expressions that use them.
//
// Each expression stores its values at a few sample states. These values determine branches and loops that depend on data: only paths that some
// sample takes are recorded. The condition of a path that is not recorded is stored as an assumption, which generated code can check.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace sarrus {

enum class Op : unsigned char {
  constant,
  input,
  same,  // a copy of an expression that is not folded with the original: derivatives end at it
  negative,
  sum,
  difference,
  product,
  quotient,
  root,
  sine,
  cosine,
  arctangent,  // atan2(y, x)
  exponential,
  logarithm,
  power,
  nearest,
  magnitude,
  less,
  both,
  opposite,  // negated condition
  choice,  // condition, value if true, value if false
  result  // result of a called function; `number` is the index in Graph::results()
};
inline bool is_condition(Op op) { return op == Op::less || op == Op::both || op == Op::opposite; }

struct Expression {
  Op op;
  int operand[3] = {-1, -1, -1};
  double number = 0.0;  // for a constant its value; for an input its index
};

using Ids = std::vector<int>;

/// Numbers of a mechanism, and of copies of its arrays, that are inputs: the address of each, and its index in Graph::parameters.
using NumberPlaces = std::unordered_map<const double*, int>;

class Graph;

/// Function that a graph calls. It has a graph of its own, because it is written once; its decisions are those for the arguments of its first call.
/// Arguments that are constants in the first call are constants of the function.
struct GraphFunction {
  std::string kind, name;  // the name that callers use, and the unique name of the function for these constants
  std::unique_ptr<Graph> graph;
  std::vector<Ids> inputs;  // groups of inputs, each an array; only those that are passed
  std::vector<std::vector<bool>> passed;  // false: a constant, or an argument that the function does not use
  Ids results, written;  // all results, and those that are not constants, which the function writes
  std::vector<std::vector<double>> constants;  // values of the constants in each group of arguments; NaN for the inputs
};
struct GraphCall {
  int function;
  std::vector<Ids> arguments;  // groups, with the arguments that are passed
  bool operator==(const GraphCall& other) const { return function == other.function && arguments == other.arguments; }
};
/// Result of a call: index in GraphFunction::written.
struct GraphResult {
  int call, index;
};

class Graph {
 public:
  const int samples;
  const bool single;  // true if code for single precision is recorded (tolerances of Symbolic)
  // true: paths that no sample takes are recorded too, for conditions that change in use, such as those of contacts
  bool takes_all_paths = false;
  bool shares = false;  // true: the factorisation and the solution of the saddle equation are functions that are called
  Ids parameters;  // inputs for the numbers of the mechanism that are not constants; functions have those that they use as their last arguments
  std::shared_ptr<const NumberPlaces> places;  // null: all numbers are constants

  Graph(int samples, bool single) : samples(samples), single(single) {}

  /// Return the graph into which operations on this thread are recorded.
  static Graph*& current() {
    static thread_local Graph* graph = nullptr;
    return graph;
  }

  const Expression& operator[](int i) const { return expressions_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(expressions_.size()); }
  const double* values(int i) const { return values_.data() + static_cast<std::size_t>(i) * static_cast<std::size_t>(samples); }
  /// Return the conditions that were assumed to be true; each of them is true in all samples.
  const Ids& assumed() const { return assumed_; }

  int constant(double x);
  int input(const double* values);
  /// Return the input for a number of the mechanism, or a constant.
  int number_at(const double* x) {
    if (!places) return constant(*x);
    const auto at = places->find(x);
    return at == places->end() ? constant(*x) : parameters[static_cast<std::size_t>(at->second)];
  }
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
  int exponential(int a) { return function(Op::exponential, a); }
  int logarithm(int a) { return function(Op::logarithm, a); }
  int power(int a, int b);
  int less(int a, int b);
  int both(int a, int b);
  int opposite(int a);
  int choice(int condition, int a, int b);
  /// Return true if a condition is true in any sample. If it is false in all samples, its negation becomes an assumption. In single precision it does
  /// not, because there such conditions only compare corrections with the rounding errors of doubles.
  bool any(int condition);
  bool holds_somewhere(int condition) const;
  void assume(int condition) { assumed_.push_back(condition); }
  /// Return an expression that is 1 if all assumptions are true, for use in a choice (select).
  int all_assumed();
  /// Call a function with groups of arguments. At the first call with this name and these constants, `record` records it: it returns the results for
  /// these inputs, in Graph::current().
  using Body = std::function<Ids(const std::vector<Ids>& inputs)>;
  Ids call(const std::string& name, std::vector<Ids> arguments, const Body& record);
  const GraphFunction& function(int i) const { return *(*functions_)[static_cast<std::size_t>(i)]; }
  int functions() const { return static_cast<int>(functions_->size()); }
  const GraphCall& call_of(int result) const { return calls_[static_cast<std::size_t>(result_of(result).call)]; }
  const GraphResult& result_of(int i) const { return results_[static_cast<std::size_t>((*this)[i].number)]; }
  /// Call visit(operand) for each operand of an expression; those of a result are the arguments of the call.
  template <class Visit> void each_operand(int i, Visit&& visit) const {
    const Expression& e = (*this)[i];
    if (e.op == Op::result)
      for (const Ids& group : call_of(i).arguments)
        for (const int k : group) visit(k);
    for (const int k : e.operand)
      if (k >= 0) visit(k);
  }
  /// Return true for each expression that the results need.
  std::vector<char> needed(const Ids& results) const;
  /// Return the condition that all results are finite. It is the constant 1 if no division or root occurs in them.
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
  int called(const std::string& name, const std::vector<Ids>& arguments, const Body& record);
  /// Return the results of a function for values of its inputs.
  std::vector<double> results_at(const std::vector<Ids>& inputs, const std::vector<std::vector<double>>& x,
                                 const Ids& results) const;

  std::vector<Expression> expressions_;
  std::vector<double> values_;
  std::unordered_multimap<std::uint64_t, int> found_;
  Ids assumed_;
  int inputs_ = 0;
  // functions that this graph and those of its functions call, each after those that it calls itself
  std::shared_ptr<std::vector<std::unique_ptr<GraphFunction>>> functions_ =
      std::make_shared<std::vector<std::unique_ptr<GraphFunction>>>();
  std::vector<GraphCall> calls_;
  std::vector<GraphResult> results_;
};

}  // namespace sarrus
