// Record: a symbolic number. If an algorithm that is a template on its scalar runs on Records, it stores the expressions of its result in a graph. A
// comparison returns a symbolic condition: select() stores both operands, and any(), which controls loops, evaluates the condition at the sample
// states of the graph.
#pragma once

#include "../loops/tolerances.hpp"
#include "../spatial/vector.hpp"
#include "graph.hpp"

namespace sarrus {

struct Condition {
  int id;
};

struct Record {
  int id;

  Record() = default;
  Record(double x) : id(graph().constant(x)) {}
  static Record of(int id) {
    Record x;
    x.id = id;
    return x;
  }
  static Graph& graph() { return *Graph::current(); }

  Record& operator+=(Record b) { return *this = *this + b; }
  Record& operator-=(Record b) { return *this = *this - b; }
  Record& operator*=(Record b) { return *this = *this * b; }
  Record& operator/=(Record b) { return *this = *this / b; }
  Record operator-() const { return of(graph().negative(id)); }
  friend Record operator+(Record a, Record b) { return of(graph().sum(a.id, b.id)); }
  friend Record operator-(Record a, Record b) { return of(graph().difference(a.id, b.id)); }
  friend Record operator*(Record a, Record b) { return of(graph().product(a.id, b.id)); }
  friend Record operator/(Record a, Record b) { return of(graph().quotient(a.id, b.id)); }
  friend Condition operator<(Record a, Record b) { return {graph().less(a.id, b.id)}; }
  friend Condition operator>(Record a, Record b) { return b < a; }
};

inline Record select(Condition m, Record a, Record b) { return Record::of(Record::graph().choice(m.id, a.id, b.id)); }
inline bool any(Condition m) { return Record::graph().any(m.id); }
inline Condition both(Condition a, Condition b) { return {Record::graph().both(a.id, b.id)}; }
inline Record sqrt(Record x) { return Record::of(Record::graph().root(x.id)); }
inline Record abs(Record x) { return Record::of(Record::graph().magnitude(x.id)); }
inline Record nearest(Record x) { return Record::of(Record::graph().nearest(x.id)); }
inline Record atan2(Record y, Record x) { return Record::of(Record::graph().arctangent(y.id, x.id)); }
inline void sincos(Record x, Record& s, Record& c) {
  s = Record::of(Record::graph().sine(x.id)), c = Record::of(Record::graph().cosine(x.id));
}

/// Return the tolerance of rounding errors, which is different in single precision.
template <> inline Record tolerance<Record>(double x, double in_single) { return Record(Record::graph().single ? in_single : x); }

/// Assume that the next correction is below 1e-5 of the solution, because the ratio of successive corrections is nearly constant.
template <> inline void expect_settled(const LastCorrection<Record>& last) {
  if (!Record::graph().single) return;
  const Record most = sqrt(last.size * last.before) * Record(1e-5) + last.unheld * Record(1e-14);
  Record::graph().assume((last.moved < most).id);
}

struct Law;
void derivatives(const Law& law, const Record& x, int orders, Record* out, Record* bound);
template <int N> void derivatives(const Law& law, const Record& x, Record (&out)[N], Record (&bound)[2]) {
  derivatives(law, x, N, out, bound);
}
void evaluate(const Law& law, const Record* time, Record (&out)[3]);
void evaluate(const Law& law, const Record* parameter, const Record* time, Record (&out)[3]);

}  // namespace sarrus

namespace Eigen {
template <> struct NumTraits<sarrus::Record> : ScalarTraits<sarrus::Record> {};
}  // namespace Eigen
